"""How much smaller the gap of one model is than that of another on the same rows.

A gap is the largest of the differences D(a, b) over ordered pairs of groups: the rate of a less
that of b, or 1 minus the rate of b divided by that of a. In a sample, the largest of many noisy
differences is larger than the true gap, especially if the rates are noisy. Of two models
without any gap, the one whose rates are noisier would seem to have the larger one, and resampling
repeats that. So what is compared here are single pairs, whose differences have no such bias.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairproj.constraints import Requirement, Statistic
from fairproj.data.cells import CellCounts
from fairproj.data.types import Array
from fairproj.inference.figures import ModelFigures
from fairproj.inference.report import gap_upper_bound

_PRIOR = 0.25  # rows added to each cell; a rate among rows of one label has Jeffreys' prior then


class WidestPair(NamedTuple):
    """Where a gap was found: the requirement, and the groups of the largest and smallest rate."""

    requirement: int
    highest: int
    lowest: int


def find_widest_pair(statistic: Statistic, counts: CellCounts) -> WidestPair:
    """The pair of groups that attains the gap."""
    rates = [each.rate.values(counts) for each in statistic.requirements]
    gaps = [each.gap(values) for each, values in zip(statistic.requirements, rates, strict=True)]
    widest = int(np.argmax(gaps))
    return WidestPair(widest, int(np.argmax(rates[widest])), int(np.argmin(rates[widest])))


def gap_change_interval(
    first: ModelFigures,
    second: ModelFigures,
    widest: tuple[WidestPair, WidestPair],
    confidence: float,
    n_draws: int,
    seed: int,
) -> tuple[float, float]:
    """An interval for the gap of the second model less that of the first.

    With the pair w1 that attained the gap of the first model on other rows, and q the upper end of
    the interval of a single difference,

        high = max over (c, d) of q[D2(c, d) - D1(w1)],   gap2 - gap1 <= gap2 - D1(w1).

    The gap of the second model is D2(c, d) of some pair (c, d), so ``high`` is too low only if the
    end for that one pair is: no correction for the number of pairs is needed
    (intersection-union test). The lower end changes the parts of the models.

    Where w1 differs the other way round than on the other rows, D1(w1) is negative and ``high`` is
    far above what the gap of the second model can be. No gap is below 0, so neither end is let go
    beyond

        -upper(gap1) <= gap2 - gap1 <= upper(gap2),

    with the exact upper ends of the gaps, as in a `FairnessReport`. They are on either side of 0,
    so they never decide which gap is smaller.

    Parameters
    ----------
    first, second : ModelFigures
        Of the same rows.
    widest : pair of WidestPair
        Of each model, from rows other than these.
    confidence : float
        Of the interval; each end by itself is exceeded with at most half of the rest.
    n_draws, seed : int

    Returns
    -------
    low, high : float
        They contain the difference found; NaN where that is.
    """
    drawn = _draw_counts(first, second, n_draws, np.random.default_rng(seed))
    requirements = first.statistic.requirements
    tail = (1 - confidence) / 2
    ends = [
        _highest_end(requirements, drawn[1 - i], _of_pair(requirements, drawn[i], widest[i]), tail)
        for i in (0, 1)
    ]
    counts = [model.counts() for model in (first, second)]
    most = [gap_upper_bound(each, first.statistic, 1 - tail) for each in counts]
    low, high = max(-ends[1], -most[0]), min(ends[0], most[1])
    gaps = [first.statistic.value(each) for each in counts]
    found = gaps[1] - gaps[0]
    return float(np.minimum(low, found)), float(np.maximum(high, found))


def _draw_counts(
    first: ModelFigures, second: ModelFigures, n_draws: int, rng: np.random.Generator
) -> tuple[CellCounts, CellCounts]:
    """Shares of each group's rows by label and prediction, of each model, with draws last.

    The shares of the 8 combinations of label and both predictions are drawn from the Dirichlet
    distribution with the numbers of rows plus a quarter. This is the Bayesian bootstrap of the rows
    of each group, except that a combination without rows is not taken to be impossible.
    """
    n_groups = len(first.groups.values)
    place = 4 * first.actual + 2 * first.predicted + second.predicted
    rows = np.bincount(8 * first.groups.codes.astype(np.intp) + place, minlength=8 * n_groups)
    gamma = rng.gamma(rows[:, None] + _PRIOR, size=(8 * n_groups, n_draws))
    cells = gamma.reshape(n_groups, 2, 2, 2, n_draws)
    cells = cells / cells.sum(axis=(1, 2, 3), keepdims=True)
    size = cells.sum(axis=(2, 3))
    return CellCounts(size, cells[:, :, 1].sum(axis=2)), CellCounts(size, cells[:, :, :, 1].sum(2))


def _difference(requirement: Requirement, highest: Array, lowest: Array) -> Array:
    """D(a, b) of the rates of a and b."""
    if requirement.kind == "difference":
        return highest - lowest
    smallest = np.finfo(float).tiny  # a rate of 0 is drawn where a share is below what floats hold
    return np.asarray(1 - lowest / np.maximum(highest, smallest))


def _of_pair(requirements: tuple[Requirement, ...], counts: CellCounts, pair: WidestPair) -> Array:
    requirement = requirements[pair.requirement]
    rates = requirement.rate.values(counts)
    return _difference(requirement, rates[pair.highest], rates[pair.lowest])


def _highest_end(
    requirements: tuple[Requirement, ...], counts: CellCounts, of_pair: Array, tail: float
) -> float:
    """The largest, over pairs, of the upper ends of their differences to the given one.

    The ends of all pairs (a, b) of a group a are at most that of D(a, the lowest rate drawn), so
    groups are looked at only while this is above the largest end found.
    """
    highest = -np.inf
    for requirement in requirements:
        rates = requirement.rate.values(counts)
        farthest = _difference(requirement, rates, rates.min(axis=0)) - of_pair
        bounds = np.quantile(farthest, 1 - tail, axis=-1)
        for a in np.argsort(-bounds, kind="stable").tolist():
            if bounds[a] <= highest:
                break
            others = np.delete(rates, a, axis=0)
            of_a = _difference(requirement, rates[a], others) - of_pair
            highest = np.maximum(highest, np.quantile(of_a, 1 - tail, axis=-1).max())
    return float(highest)
