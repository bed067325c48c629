"""What the ensemble predicts so far, group by group: on the training rows, or on rows held out.

Apart because the loop must not care on which rows a gap is measured.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fairproj._cells import Cells
from fairproj._losses import ExponentialWeights
from fairproj._sample import Sample
from fairproj._validation import Array
from fairproj.engines import Engine


class Watch(Protocol):
    """Rows on which predictions are watched.

    Attributes
    ----------
    size : array of shape (n_cells,)
        Their weight in each (group, label) cell.
    """

    size: Array

    def right(self, vote: float) -> Array:
        """The weight of each cell that is predicted right, now that the vote was added."""

    def train_error(self) -> float:
        """The error on the training rows, which these may or may not be."""


class TrainingRows:
    """The rows the learners are trained on; their margin is known already."""

    def __init__(self, weights: ExponentialWeights, size: Array) -> None:
        self._weights = weights
        self._present = np.flatnonzero(size > 0)
        self.size = size

    def right(self, vote: float) -> Array:
        right = np.zeros(len(self.size))
        right[self._present] = self._weights.right()
        self._last = float(right.sum())
        return right

    def train_error(self) -> float:
        return max(0.0, 1 - self._last / float(self.size.sum()))


class HeldOutRows:
    """Rows no learner is trained on. The engine says what its last learner says of them."""

    def __init__(
        self,
        y: Array,
        weight: Array,
        cells: Cells,
        engine: Engine,
        weights: ExponentialWeights,
    ) -> None:
        self._y, self._weight, self._cells = y, weight, cells
        self._engine, self._weights = engine, weights
        self._margin = np.zeros(len(y))
        self.size = cells.total(weight)

    def right(self, vote: float) -> Array:
        self._margin += vote * self._engine.held_out_h
        right = (self._margin > 0) == (self._y > 0)
        return self._cells.total(self._weight * right)

    def train_error(self) -> float:
        return self._weights.train_error()


def watch_of(
    sample: Sample, held_out: Sample | None, engine: Engine, weights: ExponentialWeights
) -> Watch | None:
    """Where the closed loop looks at predictions; nowhere for the paper's projection."""
    if sample.watched is None:
        return None
    if held_out is None or held_out.watched is None:
        return TrainingRows(weights, sample.watched.cells.total(sample.weight))
    return HeldOutRows(held_out.y, held_out.weight, held_out.watched.cells, engine, weights)
