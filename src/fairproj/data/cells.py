"""Cells: rows that share group and label, and what is counted in them.

Every named constraint depends on group and label only. A round therefore needs one pass over the
rows for the cells' masses, and every rate of a classifier follows from two numbers a cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.checks import Groups
from fairproj.data.chunks import RowChunks
from fairproj.data.reduction import LocalReduction, Reduction
from fairproj.data.types import Array, Codes


@dataclass(frozen=True)
class Cells:
    """The (group, label) cells of a sample; cell ``2 g + l`` holds group g and class l.

    Attributes
    ----------
    index : array of shape (n_rows,)
        Each row's cell, as integers of any size.
    group_values, group_names : list
        The groups' values and how to print them.
    classes : array of shape (2,)
        The two labels.
    positive_class : int
        Which of the two the constraints call positive.
    reduction : Reduction
        Adds up over workers, where each holds some of the rows.
    """

    index: Codes
    group_values: list[Any]
    group_names: list[str]
    classes: NDArray[Any]
    positive_class: int
    reduction: Reduction = field(default=LocalReduction(), repr=False)

    @classmethod
    def of(
        cls,
        y: Array,
        groups: Groups,
        classes: NDArray[Any],
        positive_class: int = 1,
        reduction: Reduction | None = None,
    ) -> Cells:
        index = 2 * groups.codes.astype(_index_type(groups)) + (y > 0)
        reduction = reduction or LocalReduction()
        return cls(index, groups.values, groups.names, classes, positive_class, reduction)

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
        """Rows in each cell, over all workers."""
        return self.total(np.broadcast_to(1.0, len(self.index))).astype(np.intp)

    def total(self, values: Array) -> Array:
        """The sum of the rows' values in each cell, over all workers."""

        def part(rows: slice, _: Array) -> Array:
            return np.bincount(self.index[rows], values[rows], len(self)).astype(float)

        return self.reduction.sum(np.sum(RowChunks(len(self.index))(part), axis=0))

    def name(self, cell: int) -> str:
        group, label = divmod(cell, 2)
        return f"group {self.group_names[group]!r} with label {self.classes[label]!s}"


def _index_type(groups: Groups) -> np.dtype[Any]:
    """Wide enough for all cells; codes of machine integers stay that, for speed."""
    if groups.codes.dtype == np.intp:
        return np.dtype(np.intp)
    return np.min_scalar_type(2 * len(groups.values))


@dataclass(frozen=True)
class CellCounts:
    """The weight of all rows, and of those predicted positive, by group and label.

    Attributes
    ----------
    size, predicted : array of shape (n_groups, 2)
        Column 0 holds rows of the negative label, column 1 of the positive one.
    """

    size: Array
    predicted: Array

    @classmethod
    def of_rows(
        cls,
        actual: NDArray[np.bool_],
        predicted: NDArray[np.bool_],
        groups: Groups,
        weight: Array | None = None,
    ) -> CellCounts:
        """From the rows' labels and predictions; True is positive.

        Parameters
        ----------
        actual, predicted : array of bool of shape (n_rows,)
        groups : Groups
        weight : array of shape (n_rows,), optional

        Returns
        -------
        CellCounts
        """
        n_groups = len(groups.values)
        place = 4 * groups.codes + 2 * actual + predicted
        counts = np.bincount(place, weight, 4 * n_groups).reshape(n_groups, 2, 2).astype(float)
        return cls(counts.sum(axis=2), counts[:, :, 1])

    @classmethod
    def of_cells(cls, cells: Cells, size: Array, correct: Array) -> CellCounts:
        """From each cell's weight and the part of it that is predicted correctly.

        Parameters
        ----------
        cells : Cells
        size, correct : array of shape (n_cells,)

        Returns
        -------
        CellCounts
        """
        predicted = np.where(cells.positive, correct, size - correct)
        order = [1 - cells.positive_class, cells.positive_class]
        return cls(size.reshape(-1, 2)[:, order], predicted.reshape(-1, 2)[:, order])

    @property
    def correct(self) -> Array:
        """The weight predicted correctly, by group and label."""
        return np.stack([self.size[:, 0] - self.predicted[:, 0], self.predicted[:, 1]], axis=1)

    @property
    def accuracy(self) -> float:
        """The share of the weight of all rows that is predicted correctly."""
        return float(self.correct.sum() / self.size.sum())

    @property
    def constant_accuracy(self) -> float:
        """Of the better of the two constant predictions."""
        by_label = self.size.sum(axis=0)
        return float(by_label.max() / by_label.sum())
