"""The first line of a CSV file, and the cell or line that pyarrow cannot read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow_csv

from fairproj.data.checks import counted
from fairproj.io.number_texts import spelling_advice

_OPTIONS = arrow_csv.ConvertOptions()
_MISSING = frozenset(_OPTIONS.null_values)
_BOOLEANS = frozenset([*_OPTIONS.true_values, *_OPTIONS.false_values])


_LONGEST_FIELD = 1 << 26  # characters; that of the csv module by itself is 131,072


class LongLineError(ValueError):
    """A line that is longer than a line may be."""


@contextmanager
def long_fields() -> Iterator[None]:
    """A context in which the csv module reads long fields too."""
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def read_first_line(text: str, delimiter: str) -> tuple[list[str], bool]:
    """The cells of the first line that is not empty, and whether more text follows it.

    pyarrow skips empty lines too.
    """
    lines, cells = io.StringIO(text, newline=""), []
    with long_fields(), suppress(csv.Error):
        cells = next(filter(None, csv.reader(lines, delimiter=delimiter)), [])
    return cells, bool(lines.read(1))


def whole_lines(lines: Any, longest: int) -> Iterator[str]:
    """The lines of a text file; an error where one has ``longest`` characters."""
    number = 0
    while line := lines.readline(longest):
        number += 1
        if len(line) == longest:
            raise LongLineError(
                f"line {number:,} has more than {longest / 1e6:,.0f} million characters, which is "
                "too long; shorten it"
            )
        yield line


def find_fault(
    lines: Iterable[str], delimiter: str, types: Mapping[str, Any], columns: Iterable[str] | None
) -> str | None:
    """A sentence about the first line or cell that cannot be read; None if there is none.

    Parameters
    ----------
    lines : iterable of str
        The text of the file.
    delimiter : str
    types : mapping of str to DataType
        The types that columns are read with.
    columns : iterable of str, optional
        The columns that are read; by default all.
    """
    reader = csv.reader(lines, delimiter=delimiter)
    rows = filter(None, reader)  # pyarrow skips empty lines too
    names = next(rows)
    read = set(names if columns is None else columns)
    checked = {at: types[name] for at, name in enumerate(names) if name in read and name in types}
    with_comma: tuple[int, str] | None = None
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            return (
                f"line {reader.line_num:,} has {counted(len(row), 'value')} and there are "
                f"{counted(len(names), 'column name')}; correct that line"
            )
        for at, kind in checked.items():
            if (with_comma is None or at == with_comma[0]) and not _is_of(kind, row[at]):
                words = _cell(names[at], row[at], number, kind)
                if not _is_of(kind, row[at].replace(",", ".")):
                    return words
                # All cells of the column may have commas, and then another one is at fault.
                with_comma = with_comma or (at, words)
    return None if with_comma is None else with_comma[1]


def _is_of(kind: Any, cell: str) -> bool:
    """Whether a cell can be read as a number or a boolean; other kinds are not checked."""
    if cell in _MISSING:
        return True
    if pa.types.is_boolean(kind):
        return cell.strip() in _BOOLEANS
    if not pa.types.is_floating(kind):
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000


def _cell(name: str, cell: str, number: int, kind: Any) -> str:
    wanted, advice = "true or false", None
    if pa.types.is_floating(kind):
        wanted, advice = "a number", spelling_advice(cell)
    return (
        f"column {name!r} holds {cell!r} in row {number:,}, which is not {wanted}; "
        f"{advice or 'correct it or leave it empty'}"
    )
