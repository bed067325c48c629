"""How much the content of a compressed file may take: by the size of the file, and by free memory.

A file of a megabyte can hold a gigabyte. Such a file is refused before it fills the memory.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from fairproj.io import arrow_sizes, parquet_sizes

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

VARIABLE = "FAIRPROJ_MAX_UNPACKED"
_MOST_TIMES = 100  # the size of the file
_ALWAYS = 256 << 20  # bytes; a content up to this size may take any number of times the file's
_BLOCK = 1 << 20
_UNITS = {"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_GROUPS = Path("/sys/fs/cgroup")


class TooLargeError(ValueError):
    """The content of a file takes more than it may; the message says how much that is."""


@dataclass(frozen=True)
class Limit:
    """The bytes that the content of a file may take."""

    path: Path
    most: float
    packed: int
    advice: str

    @classmethod
    def of(cls, path: Path, *, at_once: bool, packed_text: bool = False) -> Limit:
        """The limit of a file: 100 times its size, 256 MB if that is more, and free memory.

        Free memory counts if the content is read ``at_once``. The environment variable
        FAIRPROJ_MAX_UNPACKED replaces all of these. ``packed_text`` is a file that a user can
        unpack.
        """
        packed = path.stat().st_size
        unpack = "unpack it, or " if packed_text else ""
        advice = f"if you trust it, {unpack}set {VARIABLE} to what it may take, such as 20GB"
        if text := os.environ.get(VARIABLE):
            return cls(path, _parse(text), packed, f"set {VARIABLE} to more, if you trust it")
        most = max(_MOST_TIMES * packed, _ALWAYS)
        free = free_memory() if at_once else None
        if free is not None and free < most:
            advice = "give the process more memory, or use fewer rows"
            return cls(path, free, packed, f"which is the memory that is free; {advice}")
        return cls(path, most, packed, advice)

    def check(self, n_bytes: int) -> None:
        """Refuse a content of at least this size."""
        if n_bytes > self.most:
            mark = ", " if self.advice.startswith("which") else "; "
            raise TooLargeError(
                f"{self.path} takes {in_units(self.packed)}, and its content more than "
                f"{in_units(self.most)}{mark}{self.advice}"
            )

    def check_parquet(self, metadata: Any) -> None:
        """Refuse a Parquet file by what its metadata say, before anything is read."""
        self.check(parquet_sizes.content_bytes(self.path, metadata))

    def repeated(self, metadata: Any, n_rows: int) -> list[str]:
        """The columns of a Parquet file with values so long that so many rows could exceed it."""
        return parquet_sizes.large_dictionaries(self.path, metadata, self.most / n_rows)

    def decode(self, batch: Any, schema: pa.Schema) -> Any:
        """Decode columns that were read with their dictionaries, unless they would take too much.

        ``schema`` has the types of the columns by their names.
        """
        columns, n_bytes = [], 0
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kind = schema.field(name).type
            if column.type != kind and pa.types.is_dictionary(column.type):
                lengths = pa.compute.binary_length(column.dictionary).take(column.indices)
                n_bytes += pa.compute.sum(lengths, min_count=0).as_py()
                self.check(n_bytes)
                column = column.cast(kind)
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def check_arrow(self) -> None:
        """Refuse an Arrow file by the sizes that its buffers have when they are unpacked."""
        self.check(arrow_sizes.content_bytes(self.path))

    def check_rows(self, table: Any) -> None:
        """Refuse a table with many rows that take no space in a file, such as nulls."""
        self.check(table.num_rows * table.num_columns)

    def held(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches, until they take too much together."""
        n_bytes = 0
        for batch in batches:
            n_bytes += batch.nbytes
            self.check(n_bytes)
            yield batch

    def count(self, stream: Any) -> None:
        """Read a stream to its end, and refuse more bytes than it may have."""
        for _ in self._blocks(stream):
            pass

    def unpack(self, stream: Any) -> Any:
        """Copy a stream to a temporary file, which is gone when it is closed."""
        descriptor, name = tempfile.mkstemp(prefix="fairproj-")
        try:
            with open(descriptor, "wb") as file:
                file.writelines(self._blocks(stream))
            return pa.OSFile(name)
        finally:
            with suppress(OSError):  # on Windows a file that is open stays
                os.unlink(name)

    def _blocks(self, stream: Any) -> Iterator[bytes]:
        n_bytes = 0
        while block := stream.read(_BLOCK):
            n_bytes += len(block)
            self.check(n_bytes)
            yield block


def _parse(text: str) -> float:
    found = re.fullmatch(r"([\d.]+(?:e\d+)?)\s*([KMGT]?B)?", text.strip(), re.IGNORECASE)
    try:
        return float(found[1]) * _UNITS[(found[2] or "").upper()]  # type: ignore[index]
    except (TypeError, ValueError):
        raise TooLargeError(
            f"{VARIABLE} is {text!r}, and a number of bytes is wanted, such as 20GB; correct it"
        ) from None


def in_units(n_bytes: float) -> str:
    """A size as people read it, such as 1.3 MB."""
    unit = next((u for u in ("TB", "GB", "MB", "KB") if n_bytes >= _UNITS[u]), "B")
    return f"{n_bytes / _UNITS[unit]:.3g} {unit}" if unit != "B" else f"{n_bytes:.0f} bytes"


def free_memory() -> int | None:
    """The bytes that this process may still allocate; None where that is not known."""
    found = [_of_machine(), _of_container(), _of_process()]
    return min((n_bytes for n_bytes in found if n_bytes is not None), default=None)


def _of_machine() -> int | None:
    found = re.search(r"MemAvailable:\s+(\d+) kB", _text(Path("/proc/meminfo")))
    return int(found[1]) * 1024 if found else None


def _of_container() -> int | None:
    """What a control group leaves, which is how containers are limited."""
    most, used = _text(_GROUPS / "memory.max").strip(), _text(_GROUPS / "memory.current").strip()
    if not (most.isdecimal() and used.isdecimal()):
        return None
    # Pages of files that were read count as used, and are given back when they are needed.
    cached = re.search(r"^inactive_file (\d+)$", _text(_GROUPS / "memory.stat"), re.MULTILINE)
    return max(0, int(most) - int(used) + (int(cached[1]) if cached else 0))


def _of_process() -> int | None:
    """What ``ulimit -v`` leaves."""
    pages = _text(Path("/proc/self/statm")).split()
    if resource is None or not pages:
        return None
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return None
    return max(0, most - int(pages[0]) * os.sysconf("SC_PAGE_SIZE"))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
