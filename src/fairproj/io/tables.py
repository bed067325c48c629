"""Tables in files: CSV, Parquet, Feather and Arrow, compressed or not, whole or in chunks.

Apart because it is where pyarrow is used, and where whatever may be wrong with a file becomes a
sentence.
"""

from __future__ import annotations

import bz2
import csv
import difflib
import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fairproj.io.atomic import whole
from fairproj.data.checks import listing

CHUNK_ROWS = 131_072
_CSV_BLOCK = 4 << 20  # bytes; several are read ahead
_BUFFER = 1 << 20
_AS_TEXT = ("whole number", "number", "truth value", "empty")
USABLE = (*_AS_TEXT, "text")  # kinds of columns that trees can use
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
        import pyarrow.compute
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
class KnownText:
    """The type of a column that held text in training, with the values it held there."""

    values: frozenset[str]


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

    def read(self, types: Mapping[str, Any] | None = None) -> Any:
        """The whole table; types that are not given are inferred from all rows."""
        types = types or {}
        with _explained(self.path):
            pa = _arrow()
            self._check_there()
            if self.kind == "parquet":
                table = pa.parquet.ParquetFile(self.path).read()
            elif self.kind == "arrow":
                table = pa.Table.from_batches(*self._batches(pa, None))
            else:
                self._check_names(self.names())
                with self._stream() as stream:
                    table = pa.csv.read_csv(stream, **self._csv_options(types))
                table = _with_nulls(table, types)
            self._check_names(table.column_names)
            if not table.num_rows:
                raise DataFileError(f"{self.path} has column names but no rows")
            return _typed(table, types)

    def frame(self, types: Mapping[str, Any] | None = None) -> tuple[Any, list[tuple[str, str]]]:
        """The whole table as pandas has it, and what each column was taken for."""
        table = self.read(types)
        with _explained(self.path):
            # What pandas once noted about the table is not needed, and may be damaged.
            return table.replace_schema_metadata().to_pandas(), described(table)

    def chunks(
        self, columns: Sequence[str], types: Mapping[str, Any], as_is: Sequence[str] = ()
    ) -> Iterator[Any]:
        """Tables of some rows at a time, with these columns; CSV's ``as_is`` stay text.

        That text is what stands in the file: 007 is no number.
        """
        with _explained(self.path):
            pa = _arrow()
            self._check_there()
            self._check_names(self.names())
            check_columns(self.path, self.names(), columns)
            text = {name: pa.string() for name in as_is}
            for table in self._pieces(pa, list(columns), text | dict(types)):
                for start in range(0, table.num_rows, CHUNK_ROWS):
                    yield _typed(table.slice(start, CHUNK_ROWS), types)

    def _pieces(self, pa: Any, columns: list[str], types: Mapping[str, Any]) -> Iterator[Any]:
        if self.kind == "parquet":
            # Buffered, or a column of a row group would be read whole.
            file = pa.parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=_BUFFER)
            for batch in file.iter_batches(CHUNK_ROWS, columns=columns):
                yield pa.Table.from_batches([batch]).select(columns)
        elif self.kind == "arrow":
            batches, _ = self._batches(pa, columns)
            for batch in batches:
                yield pa.Table.from_batches([batch]).select(columns)
        else:
            with self._stream() as stream:
                for batch in pa.csv.open_csv(stream, **self._csv_options(types, columns)):
                    yield _with_nulls(pa.Table.from_batches([batch]), types)

    def _batches(self, pa: Any, columns: Sequence[str] | None) -> tuple[Iterator[Any], Any]:
        """Record batches of a file or a stream of them, and their schema."""
        source = pa.memory_map(str(self.path))
        names = self.names()
        fields = None  # all of them: what is not compressed then stays where it is, in the file
        if columns is not None and set(columns) < set(names):
            fields = [names.index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        reader = _ipc_reader(pa, source, options)
        if hasattr(reader, "num_record_batches"):
            numbers = range(reader.num_record_batches)
            return (reader.get_batch(number) for number in numbers), reader.schema
        return iter(reader), reader.schema

    def names(self) -> list[str]:
        """The columns."""
        with _explained(self.path):
            pa = _arrow()
            self._check_there()
            if self.kind == "parquet":
                return list(pa.parquet.read_schema(self.path).names)
            if self.kind == "arrow":
                with pa.memory_map(str(self.path)) as source:
                    return list(_ipc_reader(pa, source, pa.ipc.IpcReadOptions()).schema.names)
            return self._header()[1]

    def sha256(self) -> str:
        found = hashlib.sha256()
        with self.path.open("rb") as file:
            while part := file.read(1 << 20):
                found.update(part)
        return found.hexdigest()

    def _header(self) -> tuple[str, list[str]]:
        """The delimiter, of comma, semicolon, tab and bar, that gives most columns; and these."""
        with self._stream() as stream:
            head = stream.read(1 << 20)
        if not head.strip():
            raise DataFileError(f"{self.path} is empty; give a table with a line of column names")
        text = _decoded(head)
        found = {}
        for delimiter in _DELIMITERS:
            records = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            found[delimiter] = next(filter(None, records))  # pyarrow skips empty lines too
        best = max(_DELIMITERS, key=lambda delimiter: len(found[delimiter]))
        return best, found[best]

    def _csv_options(
        self, types: Mapping[str, Any], columns: Sequence[str] | None = None
    ) -> dict[str, Any]:
        pa = _arrow()
        return {
            "read_options": pa.csv.ReadOptions(block_size=_CSV_BLOCK),
            "parse_options": pa.csv.ParseOptions(
                delimiter=self._header()[0], newlines_in_values=True
            ),
            "convert_options": pa.csv.ConvertOptions(
                strings_can_be_null=not _known_nulls(types),
                include_columns=None if columns is None else list(columns),
                column_types={
                    name: pa.string() if isinstance(kind, KnownText) else kind
                    for name, kind in types.items()
                },
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
        if self.path.is_file():
            return
        what = "is a folder" if self.path.is_dir() else "is not there"
        if self.path.exists() and not self.path.is_dir():
            what = "is not a plain file, and is read more than once"
        raise DataFileError(f"{self.path} {what}; give {_WANTED}")

    def _check_names(self, names: Sequence[str]) -> None:
        twice = [name for name in dict.fromkeys(names) if list(names).count(name) > 1]
        if twice:
            raise DataFileError(
                f"{self.path} has several columns called {listing(twice)}; rename some"
            )


def _decoded(head: bytes) -> str:
    """The beginning of a text; what is cut off in the middle of a character is left out."""
    try:
        return head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if len(head) - error.start > 3:
            raise
        return head[: error.start].decode("utf-8-sig")


def _ipc_reader(pa: Any, source: Any, options: Any) -> Any:
    """Of the file format with its index, or of the stream format."""
    try:
        return pa.ipc.open_file(source, options=options)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source, options=options)


def _known_nulls(types: Mapping[str, Any]) -> bool:
    """Whether what stands for a missing value in CSV was a value of some column in training."""
    spelt = set(_arrow().csv.ConvertOptions().null_values)
    return any(isinstance(kind, KnownText) and kind.values & spelt for kind in types.values())


def _with_nulls(table: Any, types: Mapping[str, Any]) -> Any:
    """Missing values, column by column, in the text of a CSV file that was read without."""
    if not _known_nulls(types):
        return table
    pa = _arrow()
    spelt = pa.csv.ConvertOptions().null_values
    for position, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            kind = types.get(field.name)
            known = kind.values if isinstance(kind, KnownText) else ()
            nulls = pa.array([text for text in spelt if text not in known], pa.string())
            column = table.column(position)
            missing = pa.compute.is_in(column, value_set=nulls)
            column = pa.compute.if_else(missing, pa.scalar(None, pa.string()), column)
            table = table.set_column(position, field.name, column)
    return table


def _typed(table: Any, types: Mapping[str, Any]) -> Any:
    """Checked, for pyarrow takes a damaged file as it is; numbers as text where text is meant."""
    table.validate(full=True)
    for position, field in enumerate(table.schema):
        column = _without_views(table.column(position))
        kind = types.get(field.name)
        if is_text(kind) and kind_of(column.type) in _AS_TEXT:
            column = _as_text(column, kind)
        if column.type != field.type:
            table = table.set_column(position, field.name, column)
    return table


def _as_text(column: Any, kind: Any) -> Any:
    """Truth values as training spelt them: True in a CSV file, where pyarrow says true."""
    pa = _arrow()
    text = column.cast(pa.string())
    if pa.types.is_boolean(column.type) and isinstance(kind, KnownText):
        for said in ("true", "false"):
            spelt = [value for value in kind.values if value.lower() == said]
            if said not in kind.values and len(spelt) == 1:
                text = pa.compute.replace_substring(text, said, spelt[0])
    return text


def _without_views(column: Any) -> Any:
    """Views and runs, which most of pyarrow does not work on, as plain values."""
    pa = _arrow()
    if pa.types.is_run_end_encoded(column.type):
        column = pa.compute.run_end_decode(column)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    return column.cast(pa.binary()) if pa.types.is_binary_view(column.type) else column


def _without_dictionaries(table: Any) -> Any:
    """Values themselves: an output has one dictionary for all chunks, an input may have many."""
    pa = _arrow()
    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            parts = table.column(position).chunks
            values = [_without_views(part.dictionary).take(part.indices) for part in parts]
            table = table.set_column(position, field.name, pa.chunked_array(values))
    return table


def check_columns(path: Path, present: Sequence[str], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in present]
    if missing:
        folded = {name.casefold(): name for name in present}
        near = difflib.get_close_matches(missing[0].casefold(), folded, 1)
        hint = f"it has {listing(list(present), 40)}"
        if near:
            hint = f"did you mean {folded[near[0]]!r}?"
        raise DataFileError(f"{path} has no column {listing(missing)}; {hint}")


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
        ("text", types.is_string_view),
        ("empty", types.is_null),
        ("date", types.is_date),
        ("date and time", types.is_timestamp),
        ("time", types.is_time),
        ("time span", types.is_duration),
    ):
        if is_of(arrow_type):
            return name
    return str(arrow_type)


def is_data_name(path: Path) -> bool:
    """Whether a file's name is that of a table."""
    try:
        DataFile.of(path)
    except DataFileError:
        return False
    return True


def is_text(arrow_type: Any) -> bool:
    """Whether a type that a column is to have is text."""
    if arrow_type is None or isinstance(arrow_type, KnownText):
        return arrow_type is not None
    return kind_of(arrow_type) == "text"


def column_types(
    features: Sequence[str], categories: Mapping[int, Sequence[Any]], truth_values: Sequence[bool]
) -> dict[str, Any]:
    """How to read CSV columns of new rows, such that they mean what they meant in training."""
    pa = _arrow()
    found: dict[str, Any] = {}
    for position, name in enumerate(features):
        values = categories.get(position, [])
        if any(isinstance(value, str) for value in values):
            texts = frozenset(value for value in values if isinstance(value, str))
            found[name] = KnownText(texts)
        elif truth_values[position]:
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

    def __init__(self, sink: Any, kind: str, schema: Any) -> None:
        pa = _arrow()
        if kind == "parquet":
            self._writer = pa.parquet.ParquetWriter(sink, schema)
        elif kind == "arrow":
            self._writer = pa.ipc.new_file(sink, schema)
        else:
            self._writer = pa.csv.CSVWriter(sink, schema)

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
    writer = None
    with whole(path) as partial:
        try:
            for chunk in map(_without_dictionaries, chunks):
                with _written(path, target.kind, chunk):
                    writer = writer or ChunkWriter(str(partial), target.kind, chunk.schema)
                    writer.write(chunk)
                rows += chunk.num_rows
            if writer is None:
                raise DataFileError("there are no rows to write")
        except BaseException:
            if writer is not None:
                with suppress(*_foreign_errors()):  # the file goes; the first error tells more
                    writer.close()
            raise
        with _written(path):
            writer.close()
    return rows


@contextmanager
def _written(path: Path, kind: str = "", chunk: Any = None) -> Iterator[None]:
    """What the writer complains of as one sentence, which names the columns it is about."""
    try:
        yield
    except _foreign_errors() as error:
        names = (
            [] if chunk is None else [n for n in chunk.column_names if _is_refused(chunk, n, kind)]
        )
        if names:
            found = ", ".join(f"{name!r} of type {chunk.schema.field(name).type}" for name in names)
            said = f"has no place for column {found}; leave it out, or name a .feather file"
        else:
            said = "cannot be written: " + " ".join(str(error).split())[:200]
        raise DataFileError(f"{path} {said}") from None


def _is_refused(chunk: Any, name: str, kind: str) -> bool:
    """Whether a column cannot be written by itself either."""
    pa = _arrow()
    part = chunk.select([name]).slice(0, 1)
    try:
        writer = ChunkWriter(pa.BufferOutputStream(), kind, part.schema)
        writer.write(part)
        writer.close()
    except pa.ArrowException:
        return True
    return False
