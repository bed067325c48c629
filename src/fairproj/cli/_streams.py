"""Labels and groups of files of any size, read in chunks."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from fairproj.cli._by import ByColumn, check_number
from fairproj.cli._columns import (
    check_groups_of_training,
    check_kinds,
    check_no_missing,
    check_ranged,
    check_ranges_named,
)
from fairproj.cli._console import busy
from fairproj.cli._labels import positive_label
from fairproj.cli._rows import left_out_words
from fairproj.cli._task import MissingGroups, Task, check_task
from fairproj.data.periods import MISSING
from fairproj.data.ranges import range_names
from fairproj.data.user_warning import UserNote, warn_user
from fairproj.io.cell_codes import CellCoder, cut_column
from fairproj.io.number_texts import NumberTexts, find_traits, read_commas
from fairproj.io.table_types import (
    NUMBERS,
    USABLE,
    ColumnTypes,
    KnownNumber,
    column_kinds,
    kind_of,
)
from fairproj.io.tables import (
    DataFile,
    DataFiles,
    check_columns,
    no_rows,
    translate_errors,
)

MOST_VALUES = 10_000  # different values of the label and the sensitive columns together


@dataclass(frozen=True)
class Keys:
    """Values of some columns with few different ones, from a first pass over all rows.

    Attributes
    ----------
    data : DataFiles
    columns : list of str
    types : dict
        The types to read the columns with.
    kinds : dict of str to str
        What the columns hold, in words.
    rows : dict of tuple to int
        The number of rows of each combination of values, in order of first appearance; missing
        values are None.
    ranges : dict of str to list of float
        Where columns of numbers are cut; their values are the names of ranges.
    """

    data: DataFiles
    columns: list[str]
    types: dict[str, Any]
    kinds: dict[str, str]
    rows: dict[tuple[Any, ...], int]
    ranges: dict[str, list[float]]

    @cached_property
    def n_rows(self) -> int:
        return sum(self.rows.values())

    def are_of(self, task: Task) -> bool:
        """Whether they are the label and the groups of a task."""
        return self.columns == task.keys and self.ranges == task.ranges

    def values(self, name: str) -> list[Any]:
        """The different values of a column, without missing ones."""
        at = self.columns.index(name)
        return list(dict.fromkeys(row[at] for row in self.rows if row[at] is not None))

    def missing(self, name: str) -> int:
        at = self.columns.index(name)
        return sum(count for row, count in self.rows.items() if row[at] is None)

    def table(self, names: Sequence[str]) -> pd.DataFrame:
        """Some columns, with a row for each combination of values."""
        places = [self.columns.index(name) for name in names]
        rows = [tuple(row[at] for at in places) for row in self.rows]
        table = pd.DataFrame(rows, columns=list(names), dtype=object)
        for name, cuts in self.ranges.items():
            if name in names:
                names_of_ranges = [*range_names(cuts), MISSING]
                table[name] = pd.Categorical(table[name], names_of_ranges, ordered=True)
        return table

    def coder(self, task: Task) -> CellCoder:
        """Codes of the label and the groups of a task."""
        table = self.table(task.sensitive)
        labels = self.values(task.label)
        own = task.missing_groups is MissingGroups.own
        missing = MISSING if own else None
        return CellCoder(task.label, labels, table, self.data.name, self.ranges, missing)

    def cell_sizes(self, task: Task, coder: CellCoder) -> NDArray[np.intp]:
        """The number of rows of each cell of a coder."""
        at = self.columns.index(task.label)
        labels = np.array([coder.labels.index(row[at]) for row in self.rows])
        cells = len(coder.labels) * coder.groups.codes + labels
        rows = np.array(list(self.rows.values()))
        return np.bincount(cells, rows, coder.n_cells).astype(np.intp)

    def check(self, task: Task) -> Any:
        """Refuse a label or groups that cannot be used; returns the positive label."""
        name = self.data.name
        check_no_missing(name, {one: self.missing(one) for one in task.keys}, self.n_rows)
        check_kinds(name, self.kinds, task.keys, "or give another column")
        check_ranged(name, self.kinds, task)
        return positive_label(self.values(task.label), task)

    def check_groups_of_training(self, task: Task, positive: Any) -> None:
        """Refuse groups that cannot be trained for."""
        check_groups_of_training(self.data.name, task, *self._groups(task, positive))

    def check_ranges_named(self, task: Task, positive: Any) -> None:
        """Refuse groups that are many numbers."""
        check_ranges_named(self.data.name, task, *self._groups(task, positive))

    def _groups(self, task: Task, positive: Any) -> tuple[pd.DataFrame, Any, list[int]]:
        """Groups, whether the label is positive, and the rows that each pair of them has."""
        is_positive = self.table([task.label])[task.label] == positive
        return self.table(task.sensitive), is_positive, list(self.rows.values())


def check_names(data: DataFiles, task: Task, others: Sequence[str]) -> None:
    """Refuse columns that a file lacks, and a task that contradicts itself."""
    for file in data.files:
        check_columns(file.path, file.column_names(), [*task.keys, *others])
    check_task(task)


def find_keys(
    data: DataFiles,
    task: Task,
    types: ColumnTypes | None = None,
    more: Sequence[str] = (),
    by: ByColumn | None = None,
) -> Keys:
    """Read the label and the sensitive columns of a task, and perhaps more columns like them.

    ``types`` are those of the features of a model; columns without one have their own types, which
    are inferred from all rows of a CSV file. Rows are also counted by the column ``by``.
    """
    columns = list(dict.fromkeys([*task.keys, *more]))
    if by is not None:
        columns.append(by.name)
    known = {name: kind for name, kind in (types or {}).items() if name in columns}
    known = dict.fromkeys(task.ranges, KnownNumber()) | known
    texts = [name for name in columns if name not in known]
    found = _KeyFinder(columns, texts, task, by)
    with busy("reading labels and groups", data.n_bytes):
        for file in data.files:
            found.read(file, known)
    if found.left_out:
        n_rows = found.left_out + sum(found.rows.values())
        warn_user(left_out_words(data.name, task.complete, found.left_out, n_rows), UserNote)
    if not found.rows:
        raise no_rows(data.name)
    return found.keys(data, known)


class _KeyFinder:
    """Collects combinations of values; of a CSV file the text, since types depend on all rows."""

    def __init__(
        self,
        columns: list[str],
        texts: list[str],
        task: Task,
        by: ByColumn | None,
    ) -> None:
        self.columns, self.ranges, self._by = columns, task.ranges, by
        self.left_out = 0
        self._task = task
        self.rows: dict[tuple[Any, ...], int] = {}  # keys begin with whether it is text
        self.kinds: dict[str, str] = {}
        self._texts = texts

    def read(self, file: DataFile, known: ColumnTypes) -> None:
        is_csv = file.kind == "csv"
        for chunk in file.chunks(self.columns, known, self._texts if is_csv else ()):
            n_rows = chunk.num_rows
            chunk = with_complete_rows(chunk, self._task.complete)
            self.left_out += n_rows - chunk.num_rows
            if self._by is not None:
                chunk = self._by.replace(chunk)
            self.kinds |= column_kinds(chunk)
            with translate_errors(file.path):
                self._add(chunk, is_csv)
            if len(self.rows) > MOST_VALUES * self._count_by():
                self._refuse(file)

    def _count_by(self) -> int:
        """The number of values that rows are counted by besides."""
        if self._by is None:
            return 1
        n_values = len({row[-1] for row in self.rows})
        check_number(self._by, n_values)
        return n_values

    def _add(self, chunk: pa.Table, is_csv: bool) -> None:
        for at, name in enumerate(chunk.column_names):
            if self.kinds[name] not in USABLE:  # an error later; lists cannot be compared
                chunk = chunk.set_column(at, name, pa.array([""] * chunk.num_rows))
            elif name in self.ranges and self.kinds[name] in NUMBERS:
                cut = cut_column(chunk.column(name), self.ranges[name])
                chunk = chunk.set_column(at, name, cut)
        counted = chunk.group_by(self.columns, use_threads=False).aggregate([([], "count_all")])
        lists = [_to_list(counted.column(name)) for name in (*self.columns, "count_all")]
        for *values, count in zip(*lists, strict=True):
            row = (is_csv, *values)
            self.rows[row] = self.rows.get(row, 0) + count

    def _refuse(self, file: DataFile) -> None:
        sizes = {
            name: len({row[1 + at] for row in self.rows}) for at, name in enumerate(self.columns)
        }
        name = max(sizes, key=sizes.__getitem__)
        raise ValueError(
            f"column {name!r} of {file.path} has too many different values for a label, a "
            f"prediction or a group ({sizes[name]:,} in the first rows); name another column, or "
            f"cut numbers into a few ranges, as in --sensitive {name}:25,40,60"
        )

    def keys(self, data: DataFiles, known: Mapping[str, Any]) -> Keys:
        types = dict(known)
        lists = [list(values) for values in zip(*self.rows, strict=True)]
        if any(lists[0]):
            for at, name in enumerate(self.columns, start=1):
                if name in self._texts and not (self._by and name == self._by.name):
                    inferred, lists[at] = _infer(lists[at], lists[0])
                    types[name], self.kinds[name] = inferred, kind_of(inferred)
        if self._task.missing_groups is MissingGroups.own:
            for at, name in enumerate(self.columns, start=1):
                if name in self._task.sensitive:
                    lists[at] = [MISSING if value is None else value for value in lists[at]]
        rows: dict[tuple[Any, ...], int] = {}
        for row, count in zip(zip(*lists[1:], strict=True), self.rows.values(), strict=True):
            rows[row] = rows.get(row, 0) + count
        return Keys(data, self.columns, types, self.kinds, rows, self.ranges)


def with_complete_rows(chunk: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows in which these columns have values."""
    for name in names:
        chunk = chunk.filter(pc.invert(pc.is_null(chunk.column(name), nan_is_null=True)))
    return chunk


def _to_list(column: Any) -> list[Any]:
    """The values as Python objects, None for NaN too."""
    return [None if value != value else value for value in column.to_pylist()]


def _infer(values: list[Any], is_text: list[bool]) -> tuple[pa.DataType, list[Any]]:
    """The type that pyarrow finds in texts of a CSV file, and the values of that type.

    Values that are not text stay as they are.
    """
    texts = [value for value, text in zip(values, is_text, strict=True) if text]
    different = [text for text in dict.fromkeys(texts) if text is not None]
    if not different:
        return pa.null(), values
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows([["text"], *([one] for one in different)])
    table = arrow_csv.read_csv(
        pa.BufferReader(written.getvalue().encode()),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
    )
    spelled = NumberTexts.of_traits(find_traits([("text", table.column(0))]))
    table = read_commas(table, spelled.commas)
    read = {None: None} | dict(zip(different, _to_list(table.column(0)), strict=True))
    inferred = [read[value] if text else value for value, text in zip(values, is_text, strict=True)]
    return table.schema.field(0).type, inferred


def checksum(data: DataFiles) -> str:
    """The checksum of the files."""
    with busy("computing the checksum of the data", data.n_bytes):
        return data.sha256()


def feature_chunks(
    data: DataFiles, columns: Sequence[str], types: ColumnTypes, *, typed: bool
) -> Iterator[pa.Table]:
    """Chunks of all files; where types are not known, a CSV file is read at once to infer them."""
    for file in data.files:
        if typed or file.kind != "csv":
            yield from file.chunks(columns, types)
        else:
            yield file.read(types).select(list(columns))
