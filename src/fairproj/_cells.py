"""Cells: rows that share group and label, hence every constraint feature and every factor w/q.

Apart because this is what makes the projection cheap: a round needs one pass over the rows for the
cells' masses; whatever follows has the size of the number of cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj._validation import Array, Codes, Groups


@dataclass(frozen=True)
class Cells:
    """The (group, label) cells of a sample; cell ``2 g + l`` holds group g and class l.

    Attributes
    ----------
    index : array of shape (n_rows,)
        Each row's cell.
    group_values, group_names : list
        The groups' values and how to print them.
    classes : array of shape (2,)
        The two labels.
    positive_class : int
        Which of the two the constraints call positive.
    """

    index: Codes
    group_values: list[Any]
    group_names: list[str]
    classes: NDArray[Any]
    positive_class: int

    @classmethod
    def of(cls, y: Array, groups: Groups, classes: NDArray[Any], positive_class: int = 1) -> Cells:
        index = 2 * groups.codes + (y > 0)
        return cls(index.astype(np.intp), groups.values, groups.names, classes, positive_class)

    def __len__(self) -> int:
        return 2 * len(self.group_values)

    @property
    def group(self) -> Codes:
        """The group of each cell."""
        return np.repeat(np.arange(len(self.group_values)), 2)

    @property
    def label(self) -> Codes:
        """The class (0 or 1) of each cell."""
        return np.tile(np.arange(2), len(self.group_values))

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Whether a cell's label is the positive one."""
        return np.asarray(self.label == self.positive_class)

    @property
    def counts(self) -> Codes:
        """Rows in each cell."""
        return np.bincount(self.index, minlength=len(self))

    def total(self, values: Array) -> Array:
        """The sum of the rows' values in each cell."""
        return np.asarray(np.bincount(self.index, values, len(self)), dtype=float)

    def name(self, cell: int) -> str:
        group, label = divmod(cell, 2)
        return f"group {self.group_names[group]!r} with label {self.classes[label]!s}"
