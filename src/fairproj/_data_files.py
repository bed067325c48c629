"""Tables in files: CSV, Parquet, Feather and Arrow, compressed or not, whole or in chunks.

Apart because it is where pyarrow is used, and where whatever may be wrong with a file becomes a
sentence.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import lzma
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fairproj._files import whole
from fairproj._validation import listing

CHUNK_ROWS = 131_072
_CSV_BLOCK = 16 << 20  # bytes
_PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
}
_DELIMITERS = ",;\t|"
_WANTED = "a .csv, .tsv, .parquet, .feather or .arrow file (.csv also with .gz, .bz2, .xz or .zst)"


class DataFileError(ValueError):
    """A file that is no table, with what was found in a sentence."""


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.feather
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            "reading data files needs pyarrow; install it with pip install 'fairproj[cli]'"
        ) from None
    return pyarrow


@dataclass(frozen=True)
class DataFile:
    """A file and how it is to be read."""

    path: Path
    kind: str
    packed: str = ""  # the suffix of an outer compression

    @classmethod
    def of(cls, path: str | Path) -> DataFile:
        """From the name alone."""
        found = Path(path)
        suffixes = [suffix.lower() for suffix in found.suffixes]
        packed = ""
        if suffixes and (suffixes[-1] in _PACKED or suffixes[-1] == ".zst"):
            packed = suffixes.pop()
        kind = _KINDS.get(suffixes[-1] if suffixes else "", "")
        if not kind or (packed and kind != "csv"):
            raise DataFileError(f"{found} has a name of unknown kind; give {_WANTED}")
        return cls(found, kind, packed)

    def read(self) -> Any:
        """The whole table, types inferred from all rows."""
        with _explained(self.path):
            pa = _arrow()
            self._check_there()
            if self.kind == "parquet":
                table = pa.parquet.read_table(self.path)
            elif self.kind == "arrow":
                table = pa.feather.read_table(self.path, memory_map=False)
            else:
                with self._stream() as stream:
                    table = pa.csv.read_csv(stream, **self._csv_options({}))
            return self._checked(table)

    def frame(self) -> tuple[Any, list[tuple[str, str]]]:
        """The whole table as pandas has it, and what each column was taken for."""
        table = self.read()
        with _explained(self.path):
            return table.to_pandas(), described(table)

    def chunks(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Tables of some rows at a time; ``types`` are those of CSV columns."""
        with _explained(self.path):
            pa = _arrow()
            self._check_there()
            if self.kind == "parquet":
                file = pa.parquet.ParquetFile(self.path, pre_buffer=True)
                self._check_columns(file.schema_arrow.names, columns)
                batches = file.iter_batches(CHUNK_ROWS, columns=list(columns))
                for batch in batches:
                    batch.validate(full=True)
                    yield pa.Table.from_batches([batch])
            elif self.kind == "arrow":
                yield from self._arrow_chunks(pa, columns)
            else:
                self._check_columns(self.names(), columns)
                with self._stream() as stream:
                    options = self._csv_options(types, columns)
                    for batch in pa.csv.open_csv(stream, **options):
                        yield pa.Table.from_batches([batch])

    def _arrow_chunks(self, pa: Any, columns: Sequence[str]) -> Iterator[Any]:
        with pa.memory_map(str(self.path)) as source:
            reader = pa.ipc.open_file(source)
            self._check_columns(reader.schema.names, columns)
            for number in range(reader.num_record_batches):
                table = pa.Table.from_batches([reader.get_batch(number)]).select(list(columns))
                table.validate(full=True)
                for start in range(0, table.num_rows, CHUNK_ROWS):
                    yield table.slice(start, CHUNK_ROWS)

    def names(self) -> list[str]:
        """The columns."""
        with _explained(self.path):
            pa = _arrow()
            self._check_there()
            if self.kind == "parquet":
                return list(pa.parquet.read_schema(self.path).names)
            if self.kind == "arrow":
                with pa.memory_map(str(self.path)) as source:
                    return list(pa.ipc.open_file(source).schema.names)
            return next(csv.reader([self._first_line()], delimiter=self.delimiter()), [])

    def sha256(self) -> str:
        found = hashlib.sha256()
        with self.path.open("rb") as file:
            while part := file.read(1 << 20):
                found.update(part)
        return found.hexdigest()

    def delimiter(self) -> str:
        """The one of comma, semicolon, tab and bar that the first line has most of."""
        line = self._first_line()
        return max(_DELIMITERS, key=line.count)

    def _first_line(self) -> str:
        with self._stream() as stream:
            head = stream.read(1 << 20)
        if not head.strip():
            raise DataFileError(f"{self.path} is empty; give a table with a line of column names")
        return head.split(b"\n", 1)[0].decode("utf-8-sig").rstrip("\r")

    def _csv_options(
        self, types: Mapping[str, Any], columns: Sequence[str] | None = None
    ) -> dict[str, Any]:
        pa = _arrow()
        return {
            "read_options": pa.csv.ReadOptions(block_size=_CSV_BLOCK),
            "parse_options": pa.csv.ParseOptions(
                delimiter=self.delimiter(), newlines_in_values=True
            ),
            "convert_options": pa.csv.ConvertOptions(
                strings_can_be_null=True,
                include_columns=None if columns is None else list(columns),
                column_types=dict(types),
            ),
        }

    @contextmanager
    def _stream(self) -> Iterator[IO[bytes]]:
        if self.packed == ".zst":
            with _arrow().input_stream(str(self.path), compression="zstd") as stream:
                yield stream
        else:
            opened: Any = _PACKED.get(self.packed, open)
            with opened(self.path, "rb") as file:
                yield file

    def _check_there(self) -> None:
        if not self.path.is_file():
            what = "is a folder" if self.path.is_dir() else "is not there"
            raise DataFileError(f"{self.path} {what}; give {_WANTED}")

    def _checked(self, table: Any) -> Any:
        table.validate(full=True)  # pyarrow takes a damaged file as it is
        names = table.column_names
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise DataFileError(
                f"{self.path} has several columns called {listing(twice)}; rename some"
            )
        if not table.num_rows:
            raise DataFileError(f"{self.path} has column names but no rows")
        return table

    def _check_columns(self, present: Sequence[str], wanted: Sequence[str]) -> None:
        check_columns(self.path, present, wanted)


def check_columns(path: Path, present: Sequence[str], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in present]
    if missing:
        raise DataFileError(
            f"{path} has no column {listing(missing)}; it has {listing(list(present), 12)}"
        )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Whatever pyarrow or a decompressor complains of, as one sentence."""
    try:
        yield
    except (DataFileError, ImportError, FileNotFoundError, PermissionError, KeyboardInterrupt):
        raise
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"{path} is not text in UTF-8 (byte {error.start}); save it as UTF-8"
        ) from None
    except _foreign_errors() as error:
        said = " ".join(str(error).split())[:200]
        raise DataFileError(f"{path} cannot be read as a table: {said}") from None


def _foreign_errors() -> tuple[type[Exception], ...]:
    arrow = _arrow().ArrowException
    return (OSError, EOFError, lzma.LZMAError, zlib.error, csv.Error, arrow)


def described(table: Any) -> list[tuple[str, str]]:
    """Each column and what it was taken for."""
    return [(field.name, kind_of(field.type)) for field in table.schema]


def kind_of(arrow_type: Any) -> str:
    """A type in a user's words."""
    types = _arrow().types
    if types.is_dictionary(arrow_type):
        return "text"
    for name, is_of in (
        ("truth value", types.is_boolean),
        ("whole number", types.is_integer),
        ("number", types.is_floating),
        ("number", types.is_decimal),
        ("text", types.is_string),
        ("text", types.is_large_string),
        ("empty", types.is_null),
    ):
        if is_of(arrow_type):
            return name
    return str(arrow_type)


def column_types(
    categories: Mapping[int, Sequence[Any]], features: Sequence[str], kinds: Mapping[str, str]
) -> dict[str, Any]:
    """How to read CSV columns of new rows, such that they mean what they meant in training."""
    pa = _arrow()
    found = {}
    for position, name in enumerate(features):
        values = categories.get(position, [])
        if any(isinstance(value, str) for value in values):
            found[name] = pa.string()
        elif kinds.get(name) == "truth value":
            found[name] = pa.bool_()
        else:
            found[name] = pa.float64()
    return found


def as_frame(table: Any, names: Sequence[str]) -> Any:
    """Some columns as pandas has them, text as categories: each value is looked up once."""
    pa = _arrow()
    columns = [table.column(name) for name in names]
    coded = [c.dictionary_encode() if kind_of(c.type) == "text" else c for c in columns]
    return pa.table(coded, names=list(names)).to_pandas()


class ChunkWriter:
    """Writes tables one after the other into a file of the kind that its name tells."""

    def __init__(self, path: Path, kind: str, schema: Any) -> None:
        pa = _arrow()
        if kind == "parquet":
            self._writer = pa.parquet.ParquetWriter(path, schema)
        elif kind == "arrow":
            self._writer = pa.ipc.new_file(str(path), schema)
        else:
            self._writer = pa.csv.CSVWriter(str(path), schema)

    def write(self, table: Any) -> None:
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()


def write_chunks(path: Path, chunks: Iterator[Any]) -> int:
    """All chunks into one file, there whole or not at all; how many rows that were."""
    target = DataFile.of(path)
    if target.packed or path.suffix.lower() == ".tsv":
        raise DataFileError(
            f"{path} would be written compressed or with tabs, which is not done; name a .csv, "
            ".parquet or .feather file"
        )
    rows = 0
    with whole(path) as partial:
        writer = None
        try:
            for chunk in chunks:
                writer = writer or ChunkWriter(partial, target.kind, chunk.schema)
                writer.write(chunk)
                rows += chunk.num_rows
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise DataFileError("there are no rows to write")
    return rows
