"""Who chooses the training weights w each round: the projection of the paper, or the closed loop.

Apart because it is the one thing that differs between ways of enforcing a constraint. A chooser is
shown the cells' log masses under q and answers with a `Projection`; after the round it is told the
vote, and answers with what it observed.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fairproj._projection import Array, Projection, Projector, tilt
from fairproj._rounds import Observation
from fairproj._watch import Watch
from fairproj.constraints import Watched


class Chooser(Protocol):
    """Chooses w.

    Attributes
    ----------
    part_of_the_loss : bool
        Whether the loss itself is tilted, so that votes are computed under w; else under q.
    """

    part_of_the_loss: bool

    def __call__(self, log_mass: Array) -> Projection: ...

    def observe(self, vote: float, log_mass: Array, log_loss: float) -> Observation | None:
        """Hear of the round's vote, and of q and the loss after it."""


class ProjectedWeights:
    """w = the projection of q on the balanced distributions, warm-started with the last round's."""

    part_of_the_loss = False

    def __init__(self, features: Array, epsilon: Array, start: Array | None = None) -> None:
        self._project = Projector(features, epsilon)
        self._multipliers = start

    def __call__(self, log_mass: Array) -> Projection:
        projection = self._project(log_mass, self._multipliers)
        self._multipliers = projection.multipliers
        return projection

    def observe(self, vote: float, log_mass: Array, log_loss: float) -> None:
        return None


class ClosedLoop:
    """w proportional to q b, where the tilt b follows the gaps of the predictions so far.

    With mu of each group a and event e, zero at first, and ``sign_i`` = +1 for rows of the positive
    label, -1 for others::

        log b_i = -sign_i sum_{e contains i} mu(a_i, e)
        mu(a, e) += step / t^decay * violation(a, e)          after round t

    A group predicted positive too often gets less weight on its positives, more on its negatives.

    Parameters
    ----------
    what : Watched
        The rates that must be alike.
    epsilon : array of shape (n_events,)
        The gap allowed for each.
    watch : Watch
        On which rows.
    step, decay : float
    """

    part_of_the_loss = True

    def __init__(
        self, what: Watched, epsilon: Array, watch: Watch, *, step: float, decay: float
    ) -> None:
        self._what, self._epsilon, self._watch = what, epsilon, watch
        self._step, self._decay = step, decay
        cells = what.cells
        self._sign = np.where(cells.positive, 1.0, -1.0)
        self._present = np.flatnonzero(cells.counts > 0)
        self._mu = np.zeros((len(cells.group_names), len(what.events)))
        self._log_b = np.zeros(len(self._present))
        self._tilt_cost = 0.0
        self._rounds = 0

    def __call__(self, log_mass: Array) -> Projection:
        return tilt(log_mass, self._log_b)

    def observe(self, vote: float, log_mass: Array, log_loss: float) -> Observation:
        right = self._watch.right(vote)
        rates = event_rates(right, self._watch.size, self._what)
        log_tilted = float(np.logaddexp.reduce(log_mass + self._log_b))
        seen = Observation(
            tilt_cost=self._tilt_cost,
            log_tilted_loss=log_loss + log_tilted,
            accuracy=float(right.sum() / self._watch.size.sum()),
            rates=tuple(rates.ravel().tolist()),
            tilt=tuple(self._mu.ravel().tolist()),
            least_log_tilt=float(self._log_b.min()),
            train_error=self._watch.train_error(),
            gaps=tuple(gaps(rates).tolist()),
        )
        self._rounds += 1
        self._mu = self._mu + self._step / self._rounds**self._decay * violations(
            rates, self._epsilon
        )
        by_group = self._mu[self._what.cells.group] * self._what.inside.T
        self._log_b = (-self._sign * by_group.sum(axis=1))[self._present]
        self._tilt_cost = float(np.logaddexp.reduce(log_mass + self._log_b)) - log_tilted
        return seen


def event_rates(right: Array, size: Array, what: Watched) -> Array:
    """Share predicted positive, by group and event; NaN where no row is watched.

    ``right`` and ``size`` are the weights of each cell that are predicted right, and all of it.
    """
    positive = np.where(what.cells.positive, right, size - right)
    n_groups = len(what.cells.group_names)
    rates = np.full((n_groups, len(what.events)), np.nan)
    for e, inside in enumerate(what.inside):
        total = np.bincount(what.cells.group, size * inside, n_groups)
        hits = np.bincount(what.cells.group, positive * inside, n_groups)
        np.divide(hits, total, out=rates[:, e], where=total > 0)
    return rates


def gaps(rates: Array) -> Array:
    """The largest rate less the smallest, for each event; 0 where none is known."""
    low, high = _extremes(rates)
    return high - low


def violations(rates: Array, epsilon: Array) -> Array:
    """How far each rate lies outside the band of width epsilon around the middle of the extremes.

    violation(a, e) = rate(a, e) - mid_e, soft-thresholded at epsilon_e / 2, with mid_e halfway
    between the largest and the smallest rate. All zero where the gap is at most epsilon.
    """
    low, high = _extremes(rates)
    off = np.nan_to_num(rates - (low + high) / 2)
    beyond: Array = np.sign(off) * np.maximum(np.abs(off) - epsilon / 2, 0.0)
    return beyond


def _extremes(rates: Array) -> tuple[Array, Array]:
    known = ~np.isnan(rates)
    low = np.where(known, rates, np.inf).min(axis=0)
    high = np.where(known, rates, -np.inf).max(axis=0)
    some = known.any(axis=0)
    return np.where(some, low, 0.0), np.where(some, high, 0.0)
