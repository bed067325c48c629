"""Text columns in which nearly all values are numbers: a few cells make a number column text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fairproj.data.checks import counted
from fairproj.io.number_texts import Problem, is_number

_LEAST_SHARE = 0.95  # of the values that are numbers
_MOST_CATEGORIES = 12  # different numbers of a column such as 0, 1, 2, 3+
_MOST_A_TREE_TELLS = 255
_SHOWN = 3


@dataclass(frozen=True)
class NearlyNumbers:
    """A text column in which nearly all values are numbers.

    Attributes
    ----------
    name : str
    n_values, n_numbers, n_different : int
        Its values that are not missing, those that are numbers, and the different values.
    others : list of (str, int)
        The first values that are not numbers, with their rows, counted from 1.
    """

    name: str
    n_values: int
    n_numbers: int
    n_different: int
    others: list[tuple[str, int]]

    @property
    def is_unusable(self) -> bool:
        """Whether the values are too many to be categories."""
        return self.n_different > _MOST_A_TREE_TELLS or 2 * self.n_different > self.n_values

    @property
    def n_others(self) -> int:
        return self.n_values - self.n_numbers

    @property
    def problem(self) -> Problem:
        """Why the column cannot be used, where its values are too many to be categories."""
        value, row = self.others[0]
        holds = (
            f"numbers, except {counted(self.n_others, 'value')}, such as {value!r} (row {row:,})"
        )
        return Problem(holds, self.sentence())

    def sentence(self) -> str:
        n_others = self.n_others
        shown = ", ".join(f"{value!r} (row {row:,})" for value, row in self.others)
        start = f"{self.n_numbers:,} of {self.n_values:,} values of {self.name!r} are numbers"
        if n_others == 1:
            return f"{start}, {shown} is not; correct it or leave it empty"
        more = f" and {n_others - len(self.others):,} more" if n_others > len(self.others) else ""
        return f"{start}, {n_others:,} are not: {shown}{more}; correct them or leave them empty"


def find_nearly_numbers(columns: Iterable[tuple[str, Any]]) -> dict[str, NearlyNumbers]:
    """The columns among these in which nearly all values are numbers, but not all."""
    found = {}
    for name, column in columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            nearly = _look(name, column)
            if nearly is not None:
                found[name] = nearly
    return found


def _look(name: str, column: Any) -> NearlyNumbers | None:
    numbers = is_number(column)  # null where the value is missing
    n_numbers, n_values = pc.sum(numbers).as_py() or 0, len(column) - column.null_count
    if n_numbers == n_values or n_numbers < _LEAST_SHARE * n_values:
        return None
    if pc.count_distinct(column.filter(numbers)).as_py() <= _MOST_CATEGORIES:
        return None
    rows = pc.indices_nonzero(pc.fill_null(pc.invert(numbers), False)).to_pylist()[:_SHOWN]
    others = [(column[row].as_py(), row + 1) for row in rows]
    return NearlyNumbers(name, n_values, n_numbers, pc.count_distinct(column).as_py(), others)
