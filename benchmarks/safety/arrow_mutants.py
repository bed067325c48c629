"""Parquet, Feather and Arrow files with odd types, odd layouts and damaged bytes."""

from __future__ import annotations

import datetime
import decimal
import functools
import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.ipc
import pyarrow.parquet

from safety.data_tables import table

WORDS = ["a", "b", None, "", "\0", "x" * 500, "\x1b[2J", "=1+1"]
EXTREME = [0, 1, -1, None, 2**63 - 1, -(2**63)]
_DAY = datetime.date(2020, 2, 29)


def _of(values: list[Any], kind: pa.DataType | None = None) -> Callable[[int], pa.Array]:
    """A function that makes a column of a length out of a few values."""
    return lambda n: pa.array([values[i % len(values)] for i in range(n)], kind)


def _cast(kind: pa.DataType) -> Callable[[int], pa.Array]:
    """A column of 64-bit numbers, extreme ones too, taken as another type of that width."""
    return lambda n: pa.array([EXTREME[i % len(EXTREME)] for i in range(n)], pa.int64()).view(kind)


def _union(n: int) -> pa.Array:
    kinds = pa.array([i % 2 for i in range(n)], pa.int8())
    return pa.UnionArray.from_sparse(kinds, [pa.array(range(n)), pa.array(["a"] * n)])


ODD: dict[str, Callable[[int], pa.Array]] = {
    "decimal128": _of([decimal.Decimal("1.25"), None, decimal.Decimal(-7)], pa.decimal128(10, 2)),
    "decimal256": _of([decimal.Decimal(10) ** 40, None], pa.decimal256(50, 3)),
    "list": _of([[1, 2], [], None]),
    "list of text": _of([["a"], [None], []]),
    "large list": _of([[1], []], pa.large_list(pa.int64())),
    "fixed list": _of([[1, 2], None], pa.list_(pa.int64(), 2)),
    "nested": _of([[[1], []], [[2, None]]]),
    "struct": _of([{"a": 1, "b": "x"}, None]),
    "empty struct": _of([{}, None], pa.struct([])),
    "map": _of([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    "dictionary": lambda n: _of(["f", "m", None])(n).dictionary_encode(),
    "dictionary of numbers": lambda n: _of([1, 2, None])(n).dictionary_encode(),
    "dictionary of one": lambda n: _of(["f"])(n).dictionary_encode(),
    "timestamp": _of([datetime.datetime(2020, 1, 1), None]),
    "timestamp with zone": _of([0, 10**9, None], pa.timestamp("ms", "Europe/Berlin")),
    "timestamp with offset": _of([0, 10**9], pa.timestamp("s", "+05:30")),
    "timestamp with unknown zone": _of([0, 10**9], pa.timestamp("ns", "No/Where")),
    "timestamps beyond": _cast(pa.timestamp("s")),
    "nanoseconds beyond": _cast(pa.timestamp("ns", "UTC")),
    "durations beyond": _cast(pa.duration("s")),
    "dates beyond": _cast(pa.date64()),
    "date": _of([_DAY, None]),
    "time": _of([datetime.time(12, 30), None]),
    "duration": _of([datetime.timedelta(1), None]),
    "null": pa.nulls,
    "binary": _of([b"a", b"\xff", None]),
    "fixed binary": _of([b"ab", None], pa.binary(2)),
    "large text": _of(WORDS, pa.large_string()),
    "text": _of(WORDS),
    "text not in UTF-8": lambda n: _of([b"\xff\xfe", b"a"])(n).view(pa.string()),
    "views": _of(WORDS, pa.string_view()),
    "half": lambda n: pa.array(np.arange(n), pa.float16()),
    "unsigned": _of([0, 2**64 - 1, None], pa.uint64()),
    "bytes": _of([-128, 127, None], pa.int8()),
    "extreme numbers": _of(EXTREME),
    "not finite": _of([np.nan, np.inf, -np.inf, 1e308, None, -0.0]),
    "booleans": _of([True, False, None]),
    "constant": _of([1.0]),
    "uuid": lambda n: pa.array([bytes(16)] * n, pa.uuid()),
    "json": lambda n: pa.array(['{"a": 1}'] * n, pa.json_()),
    "bool8": lambda n: pa.array([1, 0] * n, pa.bool8())[:n],
    "interval": _of([pa.MonthDayNano([1, 2, 3]), None]),
    "runs": lambda n: pa.compute.run_end_encode(pa.array(["a"] * n)),
    "union": _union,
}
NAMES = [
    "",
    " ",
    "age",
    "é",
    "a\nb",
    "\x1b[2J",
    "x" * 3000,
    "a.b",
    "__index_level_0__",
    "Y",
    "=1+1",
]


@functools.cache
def _good_table(preserve_index: bool) -> pa.Table:
    return pa.Table.from_pandas(table(), preserve_index=preserve_index)


def odd_table(rng: random.Random) -> pa.Table:
    """The good table with some columns replaced or added."""
    good = _good_table(rng.random() < 0.2)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 4])):
        column = ODD[rng.choice(list(ODD))](good.num_rows)
        at = rng.randrange(good.num_columns)
        if rng.random() < 0.7:
            good = good.set_column(at, good.column_names[at], column)
        else:
            good = good.add_column(at, rng.choice(NAMES), column)
    return _odd_layout(good, rng)


def _odd_layout(good: pa.Table, rng: random.Random) -> pa.Table:
    """Another order, fewer rows, other names or other metadata."""
    kind = rng.random()
    if kind < 0.1:
        good = good.select(rng.sample(range(good.num_columns), rng.randrange(1, good.num_columns)))
    elif kind < 0.15:
        good = good.slice(0, rng.choice([0, 1, 2]))
    elif kind < 0.2:
        names = list(good.column_names)
        names[rng.randrange(len(names))] = rng.choice(NAMES)
        good = good.rename_columns(names)
    elif kind < 0.3:
        notes = {b"pandas": rng.choice([b"", b"{", b"[]", b'{"index_columns": 5}', b"\xff"])}
        good = good.replace_schema_metadata(notes)
    elif kind < 0.35:
        at = rng.randrange(good.num_columns)
        marks = {"ARROW:extension:name": rng.choice(["arrow.uuid", "geo.point", ""])}
        field = good.schema.field(at).with_metadata(marks)
        good = good.cast(good.schema.set(at, field))
    return good


def as_parquet(odd: pa.Table, rng: random.Random) -> bytes:
    file = io.BytesIO()
    options: dict[str, Any] = {
        "compression": rng.choice(["snappy", "zstd", "gzip", "none", "lz4", "brotli"]),
        "use_dictionary": rng.random() < 0.7,
        "version": rng.choice(["1.0", "2.4", "2.6"]),
        "data_page_version": rng.choice(["1.0", "2.0"]),
        "write_page_checksum": rng.random() < 0.3,
        "write_statistics": rng.random() < 0.7,
        "store_schema": rng.random() < 0.7,
        "data_page_size": rng.choice([16, 1 << 20]),
    }
    with pa.parquet.ParquetWriter(file, odd.schema, **options) as writer:
        for part in _parts(odd, rng):
            writer.write_table(part, row_group_size=rng.choice([1, 30, 1000]))
    return file.getvalue()


def _parts(odd: pa.Table, rng: random.Random) -> list[pa.Table]:
    """The table in one or two pieces, and sometimes an empty one."""
    cut = rng.randrange(odd.num_rows + 1)
    parts = [odd] if rng.random() < 0.7 else [odd.slice(0, cut), odd.slice(cut)]
    return [*parts, odd.slice(0, 0)] if rng.random() < 0.1 else parts


def as_arrow(odd: pa.Table, rng: random.Random) -> bytes:
    sink = pa.BufferOutputStream()
    compression = rng.choice([None, "lz4", "zstd"])
    options = pa.ipc.IpcWriteOptions(compression=compression, unify_dictionaries=True)
    write = pa.ipc.new_file if rng.random() < 0.7 else pa.ipc.new_stream
    with write(sink, odd.schema, options=options) as writer:
        for part in _parts(odd, rng):
            writer.write_table(part)
    return bytes(sink.getvalue())


def damaged(raw: bytes, rng: random.Random) -> bytes:
    """Bytes changed anywhere, in the footer, or in the first pages; or a cut file."""
    data = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 8])):
        place = rng.randrange(5)
        start, stop = 0, len(data)
        if place == 0:
            start = max(0, len(data) - 2000)
        elif place == 1:
            stop = min(len(data), 600)
        elif place == 2 and rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
            break
        at = rng.randrange(start, stop)
        width = rng.choice([1, 1, 1, 4, 8])
        value = rng.choice([bytes(width), b"\xff" * width, b"\x7f" * width, rng.randbytes(width)])
        if width == 1 and rng.random() < 0.5:
            value = bytes([data[at] ^ (1 << rng.randrange(8))])
        data[at : at + width] = value
    return bytes(data)


WRITERS = {
    ".parquet": as_parquet,
    ".feather": as_arrow,
    ".arrow": as_arrow,
}


def arrow_mutant(rng: random.Random) -> tuple[str, bytes]:
    """The suffix of a file and its content."""
    suffix = rng.choices(list(WRITERS), [6, 3, 1])[0]
    while True:
        odd = odd_table(rng)
        try:
            raw = WRITERS[suffix](odd, rng)
        except (pa.ArrowException, ValueError):  # a type that the format does not have
            continue
        return suffix, damaged(raw, rng) if rng.random() < 0.6 else raw
