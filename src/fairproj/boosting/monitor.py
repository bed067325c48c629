"""The rates of the ensemble's predictions so far, on the training rows or on rows held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fairproj.boosting.losses import Loss
from fairproj.boosting.moments import check_cells
from fairproj.constraints import Constraint, Rate, find_constraint, statistic_names
from fairproj.data.cells import CellCounts, Cells
from fairproj.data.checks import listing
from fairproj.data.sample import Sample
from fairproj.data.types import Array
from fairproj.data.user_warning import warn_user
from fairproj.engines.base import TIE, Fitted

FEW_ROWS = 30  # a rate over fewer rows than this draws a warning


@dataclass(frozen=True)
class WatchedRates:
    """The rates that must be alike.

    Attributes
    ----------
    cells : Cells
        All (group, label) cells of the training rows, also those without rows.
    rates : tuple of Rate
    """

    cells: Cells
    rates: tuple[Rate, ...]

    @property
    def events(self) -> list[str]:
        return [rate.words for rate in self.rates]

    @property
    def names(self) -> list[str]:
        """What to call each rate of each group, rates within groups."""
        groups = self.cells.group_names
        if len(self.rates) == 1:
            return list(groups)
        return [f"{group}, {event}" for group in groups for event in self.events]

    @property
    def comparable(self) -> bool:
        """Whether there is a gap to speak of: a rate, and two groups or more."""
        return bool(self.rates) and len(self.cells.group_names) > 1

    def values(self, counts: CellCounts) -> Array:
        """Each group's rates, of shape (n_groups, n_rates); NaN where no row is watched."""
        if not self.rates:
            return np.zeros((len(counts.size), 0))
        return np.column_stack([rate.values(counts) for rate in self.rates])


def watched_rates(constraints: Any, cells: Cells) -> WatchedRates:
    """The rates that this ``constraints`` parameter keeps alike."""
    constraint = find_constraint(constraints)
    if constraint is None:
        return WatchedRates(cells, ())
    if not isinstance(constraint, Constraint):
        raise ValueError(
            "FairBoostClassifier needs a constraint by name or object, got "
            f"{type(constraint).__name__}; use one of {listing(statistic_names(), 20)}, or "
            "AllOf([...]) of fairproj.constraints for several"
        )
    rates = constraint.rates()
    check_cells(constraint, cells)
    return WatchedRates(cells, rates)


class Monitor(Protocol):
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

    def update(self, fitted: Fitted, vote: float, loss: Loss) -> Array:
        """The weight of each cell that is predicted correctly, now that the vote was added."""


class TrainingRows:
    """The rows the learners are trained on; the loss knows their margin."""

    name = "training rows"

    def __init__(self, cells: Cells, weight: Array) -> None:
        self.size = cells.total(weight)
        self._present = np.flatnonzero(self.size > 0)

    def update(self, fitted: Fitted, vote: float, loss: Loss) -> Array:
        correct = np.zeros(len(self.size))
        correct[self._present] = loss.correct_weight()
        return correct


class HeldOutRows:
    """Rows no learner is trained on."""

    name = "held-out rows"

    def __init__(self, y: Array, weight: Array, cells: Cells) -> None:
        self._positive, self._weight, self._cells = y > 0, weight, cells
        self._margin = np.zeros(len(y))
        self.size = cells.total(weight)

    def update(self, fitted: Fitted, vote: float, loss: Loss) -> Array:
        assert fitted.held_out is not None
        self._margin += vote * fitted.held_out
        correct = (self._margin > TIE) == self._positive
        return self._cells.total(self._weight * correct)


def make_monitor(watched: WatchedRates, sample: Sample, held_out: Sample | None) -> Monitor:
    """Watch the rows held out if there are some, else the training rows."""
    if held_out is None:
        _warn_of_few_rows(watched, sample.cells)
        return TrainingRows(sample.cells, sample.weight)
    _check_held_out(watched, held_out.cells)
    _warn_of_few_rows(watched, held_out.cells)
    return HeldOutRows(held_out.y, held_out.weight, held_out.cells)


def _check_held_out(watched: WatchedRates, cells: Cells) -> None:
    """Refuse rows that leave a rate unwatched: its gap would look like zero."""
    for rate, rows in _rows(watched, cells).items():
        if not rows.all():
            group = cells.group_names[int(np.argmin(rows))]
            raise ValueError(
                f"the rows held out to watch the gap have none of group {group!r} for the {rate}; "
                "add some, merge the group with another, or watch the training rows"
            )


def _warn_of_few_rows(watched: WatchedRates, cells: Cells) -> None:
    """Name groups whose rates are mostly noise, where there are groups to compare."""
    if not watched.comparable:
        return
    few = [
        f"{cells.group_names[g]}, {rate}: {rows[g]:.0f}"
        for rate, rows in _rows(watched, cells).items()
        for g in np.flatnonzero(rows < FEW_ROWS)
    ]
    if few:
        warn_user(
            f"some groups have fewer than {FEW_ROWS} watched rows ({'; '.join(few[:6])}), too "
            "few to say much about their rates; consider merging groups"
        )


def _rows(watched: WatchedRates, cells: Cells) -> dict[str, Array]:
    """The watched rows of each group, for each rate."""
    counts = CellCounts.of_cells(cells, cells.counts.astype(float), np.zeros(len(cells)))
    return {rate.words: rate.counts(counts)[1] for rate in watched.rates}
