"""Who chooses the training weights w each round: the paper's projection, or the closed loop.

A policy is shown the cells' log masses under q and answers with a `Projection`. After the round it
is told the vote, and answers with what it observed.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fairproj.boosting.losses import Loss
from fairproj.boosting.monitor import Monitor, WatchedRates
from fairproj.boosting.projection import Projection, Projector, tilt
from fairproj.boosting.record import Observation
from fairproj.data.cells import CellCounts
from fairproj.data.types import Array
from fairproj.engines.base import Fitted


class WeightPolicy(Protocol):
    """Chooses w.

    Attributes
    ----------
    vote_under_w : bool
        Whether the policy changes the loss itself, so that votes are computed under w; else
        under q.
    """

    vote_under_w: bool

    def choose(self, log_mass: Array) -> Projection: ...

    def observe(self, fitted: Fitted, vote: float, loss: Loss) -> Observation | None:
        """Update the policy after a round; the vote is already part of the loss."""


class ProjectedWeights:
    """w is the projection of q on the balanced distributions (Definition 3.2).

    Each projection starts from the multipliers of the last one.
    """

    vote_under_w = False

    def __init__(self, features: Array, epsilon: Array, start: Array | None = None) -> None:
        self._project = Projector(features, epsilon)
        self._multipliers = start

    def choose(self, log_mass: Array) -> Projection:
        projection = self._project(log_mass, self._multipliers)
        self._multipliers = projection.multipliers
        return projection

    def observe(self, fitted: Fitted, vote: float, loss: Loss) -> None:
        return None


class ClosedLoop:
    """w proportional to q b, where the tilt b follows the gaps of the predictions so far.

    With mu of each group a and rate e, zero at first, and ``direction`` +1 where a correct
    prediction raises the rate and -1 where it lowers it::

        log b_i = -sum_{e contains i} direction_i(e) mu(a_i, e)
        mu(a, e) += step / t^decay * violation(a, e)          after round t

    A group predicted positive too often gets less weight on its positives, more on its negatives.

    Parameters
    ----------
    watched : WatchedRates
        The rates that must be alike.
    max_gap : array of shape (n_rates,)
        The gap allowed for each.
    monitor : Monitor
        On which rows.
    step, decay : float
    """

    vote_under_w = True

    def __init__(
        self,
        watched: WatchedRates,
        max_gap: Array,
        monitor: Monitor,
        *,
        step: float,
        decay: float,
    ) -> None:
        self._watched, self._max_gap, self._monitor = watched, max_gap, monitor
        self._step, self._decay = step, decay
        cells = watched.cells
        self._present = np.flatnonzero(cells.counts > 0)
        self._reach = np.zeros((len(cells), len(watched.rates)))
        for e, rate in enumerate(watched.rates):
            self._reach[:, e] = rate.direction(cells) * rate.inside(cells)
        self._mu = np.zeros((len(cells.group_names), len(watched.rates)))
        self._log_b = np.zeros(len(self._present))
        self._tilt_cost = 0.0
        self._rounds = 0

    def choose(self, log_mass: Array) -> Projection:
        return tilt(log_mass, self._log_b)

    def observe(self, fitted: Fitted, vote: float, loss: Loss) -> Observation:
        correct = self._monitor.update(fitted, vote, loss)
        counts = CellCounts.of_cells(self._watched.cells, self._monitor.size, correct)
        rates = self._watched.values(counts)
        log_tilted = float(np.logaddexp.reduce(loss.log_cell_losses + self._log_b))
        observed = Observation(
            tilt_cost=self._tilt_cost,
            log_tilted_loss=log_tilted,
            accuracy=counts.accuracy,
            rates=tuple(None if np.isnan(rate) else rate for rate in rates.ravel().tolist()),
            tilt=tuple(self._mu.ravel().tolist()),
            least_log_tilt=float(self._log_b.min()),
            train_error=float(loss.train_error()),
            gaps=tuple(gaps(rates).tolist()),
        )
        self._rounds += 1
        self._mu = self._mu + self._step / self._rounds**self._decay * violations(
            rates, self._max_gap
        )
        by_cell = self._mu[self._watched.cells.group] * self._reach
        self._log_b = -by_cell.sum(axis=1)[self._present]
        tilted = np.logaddexp.reduce(loss.log_cell_losses + self._log_b)
        self._tilt_cost = float(tilted) - log_tilted
        return observed


def gaps(rates: Array) -> Array:
    """The largest rate less the smallest, for each event; 0 where none is known."""
    low, high = _extremes(rates)
    return high - low


def violations(rates: Array, max_gap: Array) -> Array:
    """How far each rate lies outside the band of width max_gap around the middle of the extremes.

    violation(a, e) = rate(a, e) - mid_e, soft-thresholded at max_gap_e / 2, with mid_e halfway
    between the largest and the smallest rate. All zero where the gap is at most max_gap.
    """
    low, high = _extremes(rates)
    off = np.nan_to_num(rates - (low + high) / 2)
    beyond: Array = np.sign(off) * np.maximum(np.abs(off) - max_gap / 2, 0.0)
    return beyond


def _extremes(rates: Array) -> tuple[Array, Array]:
    known = ~np.isnan(rates)
    low = np.where(known, rates, np.inf).min(axis=0)
    high = np.where(known, rates, -np.inf).max(axis=0)
    some = known.any(axis=0)
    return np.where(some, low, 0.0), np.where(some, high, 0.0)
