"""What the ensemble predicts so far, group by group: on the training rows, or on rows held out.

Apart because the loop must not care on which rows a gap is measured.
"""

from __future__ import annotations

import warnings
from typing import Protocol

import numpy as np

from fairproj._cells import Cells
from fairproj._losses import ExponentialWeights
from fairproj._sample import Sample
from fairproj._validation import Array
from fairproj.constraints import Watched
from fairproj.engines import Engine

FEW_ROWS = 30  # a rate over fewer rows than this draws a warning


class Watch(Protocol):
    """Rows on which predictions are watched.

    Attributes
    ----------
    name : str
        What to call them.
    size : array of shape (n_cells,)
        Their weight in each (group, label) cell.
    """

    name: str
    size: Array

    def right(self, vote: float) -> Array:
        """The weight of each cell that is predicted right, now that the vote was added."""

    def train_error(self) -> float:
        """The error on the training rows, which these may or may not be."""


class TrainingRows:
    """The rows the learners are trained on; their margin is known already."""

    name = "training rows"

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

    name = "held-out rows"

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
        warn_of_few(sample.watched)
        return TrainingRows(weights, sample.watched.cells.total(sample.weight))
    check_watched(held_out.watched)
    warn_of_few(held_out.watched)
    return HeldOutRows(held_out.y, held_out.weight, held_out.watched.cells, engine, weights)


def check_watched(what: Watched) -> None:
    """Refuse rows that leave a rate unwatched: its gap would look like none."""
    for name, rows in _rows(what).items():
        if not rows.all():
            group = what.cells.group_names[int(np.argmin(rows))]
            raise ValueError(
                f"the rows held out to watch the gap have none of group {group!r} for the {name}; "
                "add some, merge the group with another, or watch the training rows"
            )


def warn_of_few(what: Watched) -> None:
    """Name groups whose rates are mostly noise."""
    found = []
    groups = what.cells.group_names
    for name, rows in _rows(what).items():
        found += [f"{groups[g]}, {name}: {rows[g]:.0f}" for g in np.flatnonzero(rows < FEW_ROWS)]
    if found:
        warnings.warn(
            f"some groups have fewer than {FEW_ROWS} watched rows ({'; '.join(found[:6])}), too "
            "few to say much about their rates; consider merging groups",
            UserWarning,
            stacklevel=6,
        )


def _rows(what: Watched) -> dict[str, Array]:
    """The watched rows of each group, for each event."""
    cells = what.cells
    return {
        name: np.asarray(np.bincount(cells.group, cells.counts * inside, len(cells.group_names)))
        for name, inside in zip(what.events, what.inside, strict=True)
    }
