"""Parquet files, read in parts."""

from __future__ import annotations

import copy
import glob
import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

try:
    import pyarrow as pa
except ImportError:
    raise ImportError(
        "reading Parquet files needs pyarrow; install it with pip install 'fairproj[parquet]'"
    ) from None
from pyarrow import parquet

from fairproj.data.checks import listing
from fairproj.data.parts import Part
from fairproj.data.ranges import Cuts, cut_columns
from fairproj.io.prefetch import prefetch
from fairproj.io.table_types import apply_types, plain_texts, to_frame
from fairproj.io.tables import (
    CHUNK_ROWS,
    DataFileError,
    check_columns,
    in_folder,
    natural_order,
    translate_errors,
)

_ENDINGS = (".parquet", ".pq")
_BUFFER = 1 << 20  # bytes; without a buffer, a column of a row group would be read at once


@dataclass(frozen=True)
class ParquetPath:
    """A Parquet file, on a file system of fsspec unless it is a local file."""

    path: str
    filesystem: Any = None

    def open(self) -> Any:
        with translate_errors(Path(self.path)):
            file = self.path if self.filesystem is None else self.filesystem.open(self.path, "rb")
            return parquet.ParquetFile(
                file, pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=True
            )


@dataclass(frozen=True)
class _Run:
    """Row groups of a file that are read together, and the lengths of the parts that they are."""

    file: ParquetPath
    row_groups: list[int]
    lengths: list[int]
    first: int  # the number of the first of these parts


class ParquetSource:
    """The rows of Parquet files.

    A part is a row group, several small ones, or at most 131,072 rows of a large one.

    Parameters
    ----------
    paths : str, path or list of these
        Files, folders or patterns; also URLs, such as ``s3://bucket/rows/*.parquet``, where fsspec
        can open them.
    label : str, optional
        The column with the labels.
    sensitive : sequence of str
        The columns with the groups.
    weight : str, optional
        The column with the weights.
    features : sequence of str, optional
        By default all other columns, without the index of a pandas frame.
    ranges : mapping of str to sequence of float, optional
        Where columns of numbers among ``sensitive`` are cut into ranges.

    Attributes
    ----------
    n_parts : int
    n_rows : int
    columns : list of str
        Of the files.
    features_ : list of str
    """

    def __init__(
        self,
        paths: Any,
        label: str | None = None,
        sensitive: Sequence[str] = (),
        weight: str | None = None,
        features: Sequence[str] | None = None,
        ranges: Mapping[str, Cuts] | None = None,
    ) -> None:
        self._ranges = dict(ranges or {})
        self._label, self._sensitive, self._weight = label, list(sensitive), weight
        self._check_roles()
        self._runs: list[_Run] = []
        self.n_parts: int | None = 0
        files = find_files(paths)
        for path in files:
            with path.open() as file:
                if path is files[0]:
                    self._first = path
                    self.columns = _names(path, file)
                    self.features_ = self._choose(file, features)
                self._check_columns(path, file)
                self._add_runs(path, file.metadata)
        self.n_rows = sum(sum(run.lengths) for run in self._runs)

    def parts(self, numbers: Iterable[int] | None = None) -> Iterator[Part]:
        """All parts, or some by their numbers and in order, with labels, groups and weights."""
        wanted = set(range(self.n_parts or 0) if numbers is None else numbers)
        columns = [*dict.fromkeys([*self.features_, *self._roles])]
        for number, path, table in prefetch(self._tables(wanted, columns)):
            yield Part(
                to_frame(table, self.features_),
                self._column(table, self._label),
                self._groups(table),
                self._column(table, self._weight),
                _part_name(number, path),
                plain_texts(table, self.features_),
            )

    def features(self, parts: Collection[int]) -> Iterator[tuple[int, Part]]:
        """Some parts, by their numbers and in order, with X only."""
        for number, path, table in prefetch(self._tables(set(parts), self.features_)):
            yield number, Part(to_frame(table, self.features_), name=_part_name(number, path))

    def select(self, columns: Sequence[str] | None) -> ParquetSource:
        """The same rows with these columns as features; None changes nothing."""
        if columns is None:
            return self
        check_columns(Path(self._first.path), self.columns, columns)
        selected = copy.copy(self)
        selected.features_ = list(columns)
        return selected

    def read(self, number: int) -> Part:
        """One part."""
        return next(self.parts([number]))

    def _groups(self, table: pa.Table) -> Any:
        if not self._sensitive:
            return None
        return cut_columns(_to_pandas(table, self._sensitive), self._ranges)

    def _column(self, table: pa.Table, name: str | None) -> Any:
        return None if name is None else _to_pandas(table, [name])[name]

    def _tables(
        self, wanted: set[int], columns: list[str]
    ) -> Iterator[tuple[int, ParquetPath, pa.Table]]:
        for path, runs in itertools.groupby(self._runs, lambda run: run.file):
            needed = [run for run in runs if not wanted.isdisjoint(_numbers(run))]
            if not needed:
                continue
            with translate_errors(Path(path.path)), path.open() as file:
                for run in needed:
                    for number, table in _read_run(file, run, wanted, columns):
                        yield number, path, table

    @property
    def _roles(self) -> list[str]:
        """The columns that are not features."""
        return [name for name in (self._label, *self._sensitive, self._weight) if name is not None]

    def _check_roles(self) -> None:
        twice = [name for name in dict.fromkeys(self._roles) if self._roles.count(name) > 1]
        if twice:
            raise ValueError(
                f"column {listing(twice)} is named for more than one of labels, groups and "
                "weights; name different columns"
            )

    def _choose(self, file: Any, features: Sequence[str] | None) -> list[str]:
        """The features; by default the columns without a role."""
        if features is not None:
            return list(features)
        roles = {*self._roles, *_index_columns(file.schema_arrow)}
        left = [name for name in self.columns if name not in roles]
        if not left:
            raise DataFileError(f"{self._first.path} has no column left to predict from")
        return left

    def _check_columns(self, path: ParquetPath, file: Any) -> None:
        names = _names(path, file)
        check_columns(Path(path.path), names, [*self._roles, *self.features_])
        if new := [name for name in names if name not in self.columns]:
            raise DataFileError(
                f"{path.path} has columns that {self._first.path} lacks: {listing(new)}; "
                "all files must have the same"
            )

    def _add_runs(self, path: ParquetPath, metadata: Any) -> None:
        """Small row groups that follow each other share a part; a large one has several."""
        for row_groups, n_rows in _runs_of(metadata):
            lengths = [min(CHUNK_ROWS, n_rows - start) for start in range(0, n_rows, CHUNK_ROWS)]
            self._runs.append(_Run(path, row_groups, lengths, self.n_parts or 0))
            self.n_parts = (self.n_parts or 0) + len(lengths)


def _to_pandas(table: pa.Table, names: list[str]) -> pd.DataFrame:
    """Some columns, also those that pandas wrote as an index."""
    frame: pd.DataFrame = table.select(names).replace_schema_metadata().to_pandas()
    return frame


def _part_name(number: int, path: ParquetPath) -> str:
    return f"part {number} ({Path(path.path).name})"


def _numbers(run: _Run) -> range:
    """The numbers of the parts of a run."""
    return range(run.first, run.first + len(run.lengths))


def _read_run(
    file: Any, run: _Run, wanted: set[int], columns: list[str]
) -> Iterator[tuple[int, pa.Table]]:
    """The wanted parts of a run; rows before them are read too."""
    last = max(wanted.intersection(_numbers(run)))
    batches = file.iter_batches(CHUNK_ROWS, row_groups=run.row_groups, columns=columns)
    lengths = run.lengths[: last - run.first + 1]
    for number, table in enumerate(_cut(batches, lengths), run.first):
        if number in wanted:
            yield number, apply_types(table.select(columns), {})


def _names(path: ParquetPath, file: Any) -> list[str]:
    names = list(file.schema_arrow.names)
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise DataFileError(
            f"{path.path} has several columns called {listing(repeated)}; rename some"
        )
    return names


def _index_columns(schema: pa.Schema) -> list[str]:
    """Columns that pandas would read as the index of the frame that was written."""
    try:
        index = (schema.pandas_metadata or {}).get("index_columns", [])
    except (AttributeError, ValueError):  # what is written there may be anything
        return []
    return [name for name in index if isinstance(name, str)] if isinstance(index, list) else []


def _runs_of(metadata: Any) -> Iterator[tuple[list[int], int]]:
    """Row groups to read together, and their number of rows.

    These are several small ones of at most `CHUNK_ROWS` rows together, or a single one.
    """
    together: list[int] = []
    n_rows = 0
    for group in range(metadata.num_row_groups):
        length = metadata.row_group(group).num_rows
        if together and n_rows + length > CHUNK_ROWS:
            yield together, n_rows
            together, n_rows = [], 0
        together, n_rows = [*together, group], n_rows + length
    if together:
        yield together, n_rows


def _cut(batches: Iterator[Any], lengths: Sequence[int]) -> Iterator[pa.Table]:
    """Tables of the given numbers of rows, from batches of any."""
    pending: list[Any] = []
    for length in lengths:
        while sum(batch.num_rows for batch in pending) < length:
            pending.append(next(batches))
        table = pa.Table.from_batches(pending)
        yield table.slice(0, length)
        pending = table.slice(length).to_batches()


def find_files(paths: Any) -> list[ParquetPath]:
    """The Parquet files that paths, folders, patterns and URLs name, each list in order."""
    several = [*paths] if isinstance(paths, list | tuple) else [paths]
    return [file for path in several for file in _files_of(os.fspath(path))]


def _files_of(path: str) -> list[ParquetPath]:
    filesystem, found = _remote(path) if "://" in path else (None, _local(path))
    if not found:
        raise DataFileError(
            f"no Parquet file is found at {path}; give a file, a folder or a pattern"
        )
    for name in found:
        _check_name(name)
    return [ParquetPath(name, filesystem) for name in sorted(found, key=natural_order)]


def _local(path: str) -> list[str]:
    if os.path.isdir(path):
        inside = (str(name) for name in Path(path).rglob("*") if name.is_file())
        return in_folder(path, inside, _ENDINGS)
    if os.path.exists(path) or not glob.has_magic(path):
        if not os.path.exists(path):
            raise DataFileError(
                f"{path} does not exist; give a Parquet file, a folder or a pattern"
            )
        return [path]
    return [name for name in glob.glob(path, recursive=True) if os.path.isfile(name)]


def _remote(url: str) -> tuple[Any, list[str]]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ImportError(
            f"reading {url} needs fsspec; install it with pip install 'fairproj[parquet]'"
        ) from None
    try:
        filesystem, path = url_to_fs(url)
        if filesystem.isdir(path):
            return filesystem, in_folder(path, filesystem.find(path), _ENDINGS)
        return filesystem, filesystem.glob(path)
    except (OSError, ValueError) as error:
        raise DataFileError(f"{url} cannot be read: {error}") from error


def _check_name(path: str) -> None:
    if not path.lower().endswith(_ENDINGS):
        raise DataFileError(
            f"{path} is not a Parquet file (.parquet or .pq), and only these are read in parts; "
            "convert it to Parquet, or read it and pass a data frame"
        )
