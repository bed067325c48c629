"""Reading tables from CSV, Parquet, Feather and Arrow files, all rows at once or in chunks.

pyarrow's readers of single files do this. pyarrow.dataset does not fit: it infers the types of a
CSV file from its first block alone, decodes a whole row group of a Parquet file at once, and reads
Arrow files ahead without a limit if chunks are used more slowly than they are read.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import glob
import hashlib
import io
import lzma
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import ipc, parquet

from fairproj.data.checks import listing
from fairproj.data.user_warning import UserNote, warn_user
from fairproj.io.csv_faults import (
    LongLineError,
    find_fault,
    long_fields,
    read_first_line,
    whole_lines,
)
from fairproj.io.nearly_numbers import find_nearly_numbers
from fairproj.io.number_texts import (
    AMBIGUOUS,
    NumberTexts,
    Problem,
    Traits,
    find_traits,
    read_commas,
)
from fairproj.io.table_types import (
    NUMBERS,
    ColumnTypes,
    apply_types,
    column_kinds,
    csv_types,
    kind_words,
    known_decimals,
    mark_missing,
)
from fairproj.io.unpacked import Limit, TooLargeError

CHUNK_ROWS = 131_072
_CSV_BLOCK = 4 << 20  # bytes; pyarrow reads several blocks ahead
_HEAD = 1 << 20  # bytes of a CSV file in which its first line is looked for at first
_READ_ROWS = 2048  # of a Parquet file at a time, so that its size is seen before all are read
_PARQUET_BUFFER = 1 << 20
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".xz": "xz", ".zip": "zip"}
_KINDS = dict.fromkeys((".csv", ".tsv", ".txt"), "csv")
_KINDS |= dict.fromkeys((".parquet", ".pq"), "parquet")
_KINDS |= dict.fromkeys((".feather", ".arrow", ".ipc"), "arrow")
_DELIMITERS = ",;\t|"
_WANTED = (
    "a .csv, .tsv, .parquet, .feather or .arrow file (.csv also with .gz, .bz2, .xz, .zst or .zip)"
)
# What pyarrow, the csv module and decompressors raise for damaged files and full disks.
FILE_ERRORS = (
    OSError,
    EOFError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
    csv.Error,
    pa.ArrowException,
)


class DataFileError(ValueError):
    """A file that cannot be read or written as a table; the message says why."""


@dataclass(frozen=True)
class DataFile:
    """A file with a table."""

    path: Path
    kind: str  # csv, parquet or arrow
    compression: str | None = None  # of a CSV file

    @classmethod
    def from_path(cls, path: str | Path) -> DataFile:
        """Find the kind of a file from its name."""
        path = Path(path)
        suffixes = ["", *(suffix.lower() for suffix in path.suffixes)]
        compression = _COMPRESSIONS.get(suffixes[-1])
        kind = _KINDS.get(suffixes[-2] if compression else suffixes[-1])
        if kind is None or (compression and kind != "csv"):
            raise DataFileError(f"{path} is a file of unknown kind; give {_WANTED}")
        return cls(path, kind, compression)

    def read(self, types: ColumnTypes | None = None) -> pa.Table:
        """Read all rows; types that are not given are inferred from all rows.

        Columns of a CSV file with decimal commas are read as numbers.
        """
        return self.read_spelled(types)[0]

    def read_spelled(self, types: ColumnTypes | None = None) -> tuple[pa.Table, NumberTexts]:
        """The same, and the text columns of a CSV file that hold numbers."""
        types = types or {}
        spelled = NumberTexts({})
        self.column_names()
        with translate_errors(self.path):
            limit = self._limit(at_once=True)
            if self.kind == "parquet":
                table = self._read_parquet(limit)
            elif self.kind == "arrow":
                limit.check_arrow()
                table = self._open_arrow().read_all()
            else:
                table, spelled = self._read_csv(types)
            if not table.num_rows:
                raise no_rows(self.path)
            limit.check_rows(table)
            table = apply_types(table, types)  # validates it, which nothing may come before
            nearly = find_nearly_numbers(
                (name, table.column(name)) for name in _inferred(table, types)
            )
            return table, replace(spelled, nearly=nearly)

    def _limit(self, *, at_once: bool) -> Limit:
        return Limit.of(self.path, at_once=at_once, packed_text=self.compression is not None)

    def _read_parquet(self, limit: Limit) -> pa.Table:
        file = parquet.ParquetFile(self.path, page_checksum_verification=True)
        batches = limit.held(self._parquet_batches(file, limit, _READ_ROWS))
        return pa.Table.from_batches(batches, file.schema_arrow)

    def _parquet_batches(
        self, file: Any, limit: Limit, n_rows: int, columns: list[str] | None = None, **options: Any
    ) -> Iterator[Any]:
        """Batches of rows; texts of which a few bytes may stand for very many are counted first."""
        limit.check_parquet(file.metadata)
        if coded := limit.repeated(file.metadata, n_rows):
            schema, options = file.schema_arrow, {**options, "page_checksum_verification": True}
            file = parquet.ParquetFile(self.path, read_dictionary=coded, **options)
            for batch in file.iter_batches(n_rows, columns=columns):
                yield limit.decode(batch, schema)
        else:
            yield from file.iter_batches(n_rows, columns=columns)

    def _read_csv(self, types: ColumnTypes) -> tuple[pa.Table, NumberTexts]:
        commas = self._commas(types)
        used = _as_text(types, commas)
        with self._explained(used), self._open_for_arrow(at_once=True) as stream:
            table = arrow_csv.read_csv(stream, **self._csv_options(used))
        table = read_commas(mark_missing(table, types), commas)
        traits = find_traits((name, table.column(name)) for name in _inferred(table, types))
        points = [
            name
            for name in _inferred(table, types)
            if pa.types.is_floating(table.schema.field(name).type)
        ]
        has_commas = bool(commas)
        if has_commas or NumberTexts.of_traits(traits).commas:
            traits |= self._grouped_points(points)
        spelled = NumberTexts.of_traits(traits, has_commas=has_commas)
        return read_commas(table, spelled.commas), replace(spelled, points=points)

    def _grouped_points(self, numbers: list[str]) -> dict[str, Traits]:
        """Columns such as 1.234, 12.500 in a file with decimal commas: they were read as numbers.

        The text of the file tells.
        """
        texts = dict.fromkeys(numbers, pa.string())
        with self._open_for_arrow(at_once=True) as stream:
            again = arrow_csv.read_csv(stream, **self._csv_options(texts, numbers))
        columns = mark_missing(again, {})
        return find_traits((name, columns.column(name)) for name in numbers)

    def _commas(self, types: ColumnTypes) -> list[str]:
        """The columns to be read as numbers in which the beginning of the file has commas."""
        numbers = [name for name, one in csv_types(types).items() if one == pa.float64()]
        names = [name for name in self.column_names() if name in numbers]
        if self.kind != "csv" or not names:
            return []
        decimals = known_decimals(types)
        traits = self._head_traits(names, [name for name in names if decimals.get(name) == ","])
        spelled = NumberTexts.of_traits(traits, decimals)
        unsure = any(one in AMBIGUOUS for one, _ in spelled.found.values())
        if unsure or any(one.is_whole for one in traits.values()):
            spelled = NumberTexts.of_traits(self._all_traits(traits), decimals)
        for problem in spelled.problems().values():
            raise DataFileError(f"{self.path}: {problem.sentence}")
        self._say(spelled)
        return spelled.commas

    def _head_traits(self, names: list[str], with_commas: list[str]) -> dict[str, Traits]:
        """Those of the first rows, by `find_traits`."""
        with self._open_csv() as stream:
            head = stream.read(_HEAD)
        if len(head) == _HEAD:  # the last line may be cut
            head = head[: head.rfind(b"\n") + 1] or head
        options = self._csv_options(dict.fromkeys(names, pa.string()), names)
        try:
            table = arrow_csv.read_csv(pa.BufferReader(head), **options)
        except pa.ArrowException:
            return {}  # a quoted text is cut, or the file is damaged: reading it tells
        table = mark_missing(table, {})
        return find_traits(((name, table.column(name)) for name in names), with_commas)

    def _all_traits(self, traits: Mapping[str, Traits]) -> dict[str, Traits]:
        """Those of all rows, of columns that have commas at the beginning of the file."""
        found = dict(traits)
        types = dict.fromkeys(found, pa.string())
        with self._open_for_arrow() as stream:
            for batch in arrow_csv.open_csv(stream, **self._csv_options(types, list(found))):
                for name in found:
                    column = mark_missing(pa.Table.from_batches([batch]), {}).column(name)
                    found[name] = found[name].add(column.combine_chunks().drop_null())
        return found

    def _say(self, spelled: NumberTexts) -> None:
        if note := spelled.note():
            warn_user(f"{self.path}: {note}", UserNote)

    def read_frame(
        self, types: ColumnTypes | None = None, unused: Sequence[str] = ()
    ) -> tuple[pd.DataFrame, dict[str, str]]:
        """Read all rows as a data frame, with the kind of each column.

        Numbers with separators of thousands are refused, except for ``unused`` columns.
        """
        frame, kinds, problems, _ = self.read_any_frame(types, unused)
        for problem in problems.values():
            raise self.unread(problem)
        return frame, kinds

    def read_any_frame(
        self, types: ColumnTypes | None = None, unused: Sequence[str] = ()
    ) -> tuple[pd.DataFrame, dict[str, str], dict[str, Problem], dict[str, str]]:
        """The same, and the columns whose numbers cannot be read, which are not refused.

        The last are the signs before the decimals of columns of numbers, where a CSV file has them.
        """
        frame, kinds, spelled = self.read_spelled_frame(types)
        problems = spelled.problems()
        for name, nearly in spelled.nearly.items():
            if nearly.is_unusable:
                problems[name] = nearly.problem
            elif name not in unused:
                warn_user(f"{self.path}: {nearly.sentence()}")
        self._say(spelled)
        problems = {name: one for name, one in problems.items() if name not in unused}
        return frame, kinds, problems, spelled.decimals

    def unread(self, problem: Problem) -> DataFileError:
        """What to say of a column whose numbers cannot be read."""
        return DataFileError(f"{self.path}: {problem.sentence}, or leave it out with --drop")

    def read_spelled_frame(
        self, types: ColumnTypes | None = None
    ) -> tuple[pd.DataFrame, dict[str, str], NumberTexts]:
        """The same, and the text columns of a CSV file that hold numbers; none is refused."""
        table, spelled = self.read_spelled(types)
        with translate_errors(self.path):
            # Metadata that pandas wrote is not needed, and may be damaged.
            return table.replace_schema_metadata().to_pandas(), column_kinds(table), spelled

    def chunks(
        self, columns: Sequence[str], types: ColumnTypes, text_columns: Sequence[str] = ()
    ) -> Iterator[pa.Table]:
        """Read some columns, at most ``CHUNK_ROWS`` rows at a time.

        ``text_columns`` of a CSV file keep the text of the file, such as 007, unless they have a
        type.
        """
        check_columns(self.path, self.column_names(), columns)
        all_types = dict.fromkeys(text_columns, pa.string()) | dict(types)
        with translate_errors(self.path):
            for batch in self._batches(list(columns), all_types):
                table = pa.Table.from_batches([batch])
                for start in range(0, table.num_rows, CHUNK_ROWS):
                    yield apply_types(table.slice(start, CHUNK_ROWS), types)

    def _batches(self, columns: list[str], types: ColumnTypes) -> Iterator[Any]:
        if self.kind == "parquet":
            # Without a buffer, a column of a row group would be read at once.
            options: dict[str, Any] = {"pre_buffer": False, "buffer_size": _PARQUET_BUFFER}
            file = parquet.ParquetFile(self.path, page_checksum_verification=True, **options)
            limit = self._limit(at_once=False)
            for batch in self._parquet_batches(file, limit, CHUNK_ROWS, columns, **options):
                limit.check(batch.nbytes)  # lists may hold more values than the file says
                yield batch.select(columns)
        elif self.kind == "arrow":
            self._limit(at_once=False).check_arrow()
            for batch in _arrow_batches(self._open_arrow(columns)):
                yield batch.select(columns)
        else:
            commas = self._commas({name: types[name] for name in columns if name in types})
            used = _as_text(types, commas)
            options = self._csv_options(used, columns)
            with self._explained(used, columns), self._open_for_arrow() as stream:
                for batch in arrow_csv.open_csv(stream, **options):
                    yield read_commas(mark_missing(batch, types), commas)

    def _open_arrow(self, columns: Sequence[str] | None = None) -> Any:
        """Open an Arrow file in the file format or the stream format, to read some columns."""
        fields = None  # if all columns are read, those that are not compressed need no copy
        if columns is not None and len(columns) < len(names := self.column_names()):
            fields = [names.index(name) for name in columns]
        options = ipc.IpcReadOptions(included_fields=fields)
        source = pa.memory_map(str(self.path))
        try:
            return ipc.open_file(source, options=options)
        except pa.ArrowInvalid:
            source.seek(0)
            return ipc.open_stream(source, options=options)

    def column_names(self) -> list[str]:
        """Read the names of the columns, and refuse names that occur more than once."""
        with translate_errors(self.path):
            self._check_exists()
            if self.kind == "parquet":
                names = list(parquet.read_schema(self.path).names)
            elif self.kind == "arrow":
                names = list(self._open_arrow().schema.names)
            else:
                names = self._header[1]
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise DataFileError(
                f"{self.path} has several columns called {listing(repeated)}; rename some"
            )
        return names

    def sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def _header(self) -> tuple[str, list[str]]:
        """The delimiter of a CSV file that gives the most columns, and the names of these.

        pyarrow does not detect delimiters. Each pass over the rows needs both, and of a compressed
        file the beginning would be decompressed each time.
        """
        for size in (_HEAD, _CSV_BLOCK):  # pyarrow reads no longer lines than a block
            with self._open_csv() as stream:
                head = stream.read(size)
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
            if not text.strip():
                raise DataFileError(
                    f"{self.path} is empty; give a table with a line of column names"
                )
            first = {delimiter: read_first_line(text, delimiter) for delimiter in _DELIMITERS}
            delimiter, (names, is_whole) = max(first.items(), key=lambda one: len(one[1][0]))
            if is_whole or len(head) < size:
                break
        else:
            raise DataFileError(
                f"the line of column names of {self.path} has more than "
                f"{_CSV_BLOCK >> 20} MB; use fewer or shorter names"
            )
        if not names:
            raise DataFileError(f"{self.path} has no line of column names; give one")
        return delimiter, names

    def _csv_options(
        self, types: ColumnTypes, columns: Sequence[str] | None = None
    ) -> dict[str, Any]:
        return {
            "read_options": arrow_csv.ReadOptions(block_size=_CSV_BLOCK),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self._header[0], newlines_in_values=True
            ),
            "convert_options": arrow_csv.ConvertOptions(
                include_columns=columns, column_types=csv_types(types)
            ),
        }

    @contextmanager
    def _explained(
        self, types: ColumnTypes, columns: Sequence[str] | None = None
    ) -> Iterator[None]:
        """Name the line or the cell of a CSV file that pyarrow cannot read."""
        try:
            yield
        except pa.ArrowInvalid:
            if fault := self._find_fault(types, columns):
                raise DataFileError(f"{self.path}: {fault}") from None
            raise

    def _find_fault(self, types: ColumnTypes, columns: Sequence[str] | None) -> str | None:
        delimiter = self._header[0]
        with self._open_csv() as stream, suppress(csv.Error), long_fields():
            lines = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
            try:
                return find_fault(
                    whole_lines(lines, _CSV_BLOCK), delimiter, csv_types(types), columns
                )
            except LongLineError as error:
                return str(error)
        return None

    def _open_csv(self) -> Any:
        """Open a CSV file for reading bytes, decompressed."""
        if self.compression == "xz":  # not among the codecs of pyarrow
            return lzma.open(self.path)
        if self.compression == "zip":
            return self._open_zip()
        return pa.input_stream(str(self.path), compression=self.compression)

    def _open_for_arrow(self, *, at_once: bool = False) -> Any:
        """The same for pyarrow's own reading, if the content does not take too much.

        pyarrow reads in threads that may outlive an error, and with it Python. They must not use
        Python's decompressors, or the process never ends.
        """
        if self.compression is None:
            return self._open_csv()
        with self._open_csv() as stream:
            limit = self._limit(at_once=at_once)
            if self.compression in ("xz", "zip"):
                return limit.unpack(stream)
            limit.count(stream)
        return self._open_csv()

    def _open_zip(self) -> Any:
        """Open the one table in a ZIP archive; what macOS adds to archives is passed over."""
        with zipfile.ZipFile(self.path) as archive:
            members = [
                member
                for member in archive.infolist()
                if not member.is_dir() and not member.filename.startswith("__MACOSX/")
            ]
            names = [member.filename for member in members]
            if len(members) != 1 or _KINDS.get(Path(names[0]).suffix.lower()) != "csv":
                raise DataFileError(
                    f"{self.path} holds {listing(names) or 'no file'}, and an archive with one "
                    ".csv file is wanted; unpack it and name a file"
                )
            if members[0].flag_bits & 1:
                raise DataFileError(f"{self.path} has a password; unpack it and name the file")
            return archive.open(members[0])

    def _check_exists(self) -> None:
        if self.path.is_file():
            return
        problem = "does not exist"
        if self.path.is_dir():
            problem = "is a folder"
        elif self.path.exists():
            problem = "is not a plain file, and it would be read more than once"
        raise DataFileError(f"{self.path} {problem}; give {_WANTED}")


@dataclass(frozen=True)
class DataFiles:
    """One or more files with the same columns; their rows follow one another.

    Attributes
    ----------
    name : str
        What to call them.
    short_name : str
        The same without folders.
    files : tuple of DataFile
        In the order of their paths if a pattern or a folder named them, else as given.
    """

    name: str
    short_name: str
    files: tuple[DataFile, ...]

    @classmethod
    def from_paths(cls, paths: Sequence[str | Path]) -> DataFiles:
        """Find the files that paths, patterns such as ``data/*.parquet`` and folders name."""
        found = [file for path in paths for file in _expand(Path(path))]
        files = tuple(DataFile.from_path(path) for path in found)
        repeated = [path for path in dict.fromkeys(found) if found.count(path) > 1]
        if repeated:
            raise DataFileError(f"{repeated[0]} is named more than once; name it once")
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        count = f" ({len(files)} files)" if len(files) > len(paths) else ""
        return cls(f"{paths[0]}{more}", f"{Path(paths[0]).name}{more}{count}", files)

    @property
    def n_bytes(self) -> int:
        return sum(file.path.stat().st_size for file in self.files)

    def column_names(self) -> list[str]:
        """Those of the first file."""
        return self.files[0].column_names()

    def chunks(
        self, columns: Sequence[str], types: ColumnTypes, text_columns: Sequence[str] = ()
    ) -> Iterator[pa.Table]:
        """Read some columns of all files, as `DataFile.chunks` does."""
        for file in self.files:
            yield from file.chunks(columns, types, text_columns)

    def read_spelled_frame(self) -> tuple[pd.DataFrame, dict[str, str], NumberTexts]:
        """Read all rows of all files, as `DataFile.read_spelled_frame` does."""
        frame, kinds, spelled = self.files[0].read_spelled_frame()
        frames, names = [frame], list(frame.columns)
        for file in self.files[1:]:
            check_columns(file.path, file.column_names(), names)
            more, its_kinds, its_spelled = file.read_spelled_frame()
            frames.append(more[names])
            for name in names:
                kinds[name] = _common_kind(file.path, name, kinds[name], its_kinds[name])
            spelled = NumberTexts(
                {**its_spelled.found, **spelled.found}, {**its_spelled.nearly, **spelled.nearly}
            )
        return (pd.concat(frames, ignore_index=True) if frames[1:] else frame), kinds, spelled

    def sha256(self) -> str:
        """The checksum of the file; of several files, that of their checksums in order."""
        digests = [file.sha256() for file in self.files]
        if len(digests) == 1:
            return digests[0]
        return hashlib.sha256("".join(digests).encode()).hexdigest()


def _as_text(types: ColumnTypes, names: Sequence[str]) -> ColumnTypes:
    """The types, with text for some columns."""
    return {**types, **dict.fromkeys(names, pa.string())}


def _inferred(table: pa.Table, types: ColumnTypes) -> list[str]:
    """The columns of a table whose types were not given."""
    return [name for name in table.column_names if name not in types]


def _common_kind(path: Path, name: str, kind: str, other: str) -> str:
    """The kind of a column in several files; a column without values may be of any kind."""
    if kind == other or other == "empty":
        return kind
    if kind == "empty" or {kind, other} <= set(NUMBERS):
        return other if kind == "empty" else "number"
    raise DataFileError(
        f"column {name!r} of {path} holds {kind_words(other)}, and {kind_words(kind)} in the files "
        "before; write the same kind of values in all files"
    )


def is_pattern(path: str | Path) -> bool:
    """Whether a path names several files: a folder, or a pattern such as ``data/*.parquet``."""
    return Path(path).is_dir() or (glob.has_magic(str(path)) and not Path(path).exists())


def _expand(path: Path) -> list[Path]:
    if re.match(r"[\w+.-]{2,}:/", str(path)):
        raise DataFileError(f"{path} is a URL; give local files, or read it in Python")
    if not is_pattern(path):
        return [path]
    if path.is_dir():
        names = in_folder(str(path), (str(each) for each in path.rglob("*") if each.is_file()))
    else:
        names = [name for name in glob.glob(str(path), recursive=True) if Path(name).is_file()]
    found = [Path(name) for name in sorted(names, key=natural_order) if is_data_path(Path(name))]
    if any(each.suffix.lower() != ".txt" for each in found):  # notes beside the data
        found = [each for each in found if each.suffix.lower() != ".txt"]
    if not found:
        raise DataFileError(f"{path} names no data file; give {_WANTED}")
    return found


def in_folder(folder: str, names: Iterable[str], endings: tuple[str, ...] = ("",)) -> list[str]:
    """The files of a folder that may hold data; values in the names of folders are refused.

    Files such as _SUCCESS and .part.crc, which other programs leave beside the data, do not.
    """
    named = [name for name in names if name.lower().endswith(endings)]
    inside = {name: Path(name[len(folder) :].lstrip("/\\")).parts for name in named}
    shown = [name for name in named if not any(part[0] in "._" for part in inside[name])]
    if partitioned := [name for name in shown if any("=" in part for part in inside[name][:-1])]:
        raise DataFileError(
            f"{folder} keeps values of a column in the names of folders ({partitioned[0]}), which "
            "are not read; write the column into the files"
        )
    return shown


def natural_order(path: str) -> list[tuple[int, str]]:
    """A key that sorts numbers in names by their size: part.2 stands before part.10."""
    texts = re.split(r"(\d+)", path)
    return [(int(text), "") if text.isdecimal() else (-1, text) for text in texts]


def _arrow_batches(reader: Any) -> Iterator[Any]:
    if isinstance(reader, ipc.RecordBatchStreamReader):
        return iter(reader)
    return (reader.get_batch(number) for number in range(reader.num_record_batches))


def check_columns(path: Path, present: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse columns that a file does not have, and suggest a similar name."""
    missing = [name for name in wanted if name not in present]
    if missing:
        folded = {name.casefold(): name for name in present}
        similar = difflib.get_close_matches(missing[0].casefold(), folded, 1)
        hint = f"it has {listing(list(present), 40)}"
        if similar:
            hint = f"did you mean {folded[similar[0]]!r}?"
        raise DataFileError(f"{path} has no column {listing(missing)}; {hint}")


def is_data_path(path: Path) -> bool:
    """Whether a file has the name of a table."""
    try:
        DataFile.from_path(path)
    except DataFileError:
        return False
    return True


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise errors of pyarrow and of decompressors as `DataFileError`, in one sentence."""
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except TooLargeError as error:
        raise DataFileError(str(error)) from None
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"{path} is not text in UTF-8 (byte {error.start}); save it as UTF-8"
        ) from None
    except FILE_ERRORS as error:
        raise DataFileError(f"{path} cannot be read as a table: {one_line(error)}") from None


def no_rows(path: object) -> DataFileError:
    """The error for a file without rows."""
    return DataFileError(f"{path} has column names but no rows; give a file with rows")


def one_line(error: Exception) -> str:
    """The beginning of an error message on one line."""
    return " ".join(str(error).split())[:200]
