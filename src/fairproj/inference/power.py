"""How many rows it takes to confirm that a gap is small, and which gaps given rows confirm.

A gap is confirmed if the exact upper bound of `fairproj.inference.differences` is at most
``max_gap``. For two groups with n_a and n_b rows and true rates p_a and p_b that has the chance

    power = sum_{(i, j) in S} P(X_a = i) P(X_b = j),
    S = {(i, j) : the bounds of p_a - p_b and of p_b - p_a are both at most max_gap}.

For each j, S holds the counts i from lo(j) to hi(j), because the bounds are monotone in i. To find
hi(j) for every j from a few evaluations of the exact bound, write it as

    bound(i, j) = d + k (T(i, j) - d),    d = i / n_a - j / n_b,

with Newcombe's limit T. The factor k is near 1 and changes slowly with j. It is computed where the
bound crosses ``max_gap`` for a few j, and interpolated in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairproj.data.types import Array
from fairproj.inference.differences import FINE, Pair, _at_least, _rank, _Test
from fairproj.inference.intervals import check_confidence

_NODES = 3  # counts j where k is computed
_REACH = 2.5  # standard deviations from the mean to the outermost of them
_STEPS = 3  # of the iteration that finds k
_CLOSE = 0.02  # in standard deviations, where the iteration stops
_UPDATES = 5  # of rows or gap, each with factors of the last
_TYPICAL = 1.04  # factor k
_PRECISION = 0.02  # relative change of rows or gap, below which the factors still apply
_BLOCKS = 1024  # into which the counts j are grouped, if there are more

Sizes = tuple[int, int]
Rates = tuple[float, float]


def rows_to_confirm(
    max_gap: float,
    rate: float = 0.5,
    *,
    gap: float = 0.0,
    confidence: float = 0.95,
    power: float = 0.8,
    n_groups: int = 2,
) -> int:
    """How many rows each group needs to confirm that their gap is at most ``max_gap``.

    The least n, up to the steps of a discrete distribution, with

        P(bound of the difference <= max_gap; p_a = rate + gap / 2, p_b = rate - gap / 2) >= power

    for n rows in each of two groups, where the bound holds with ``confidence``. Rates beyond 0 and
    1 are both moved back. With the normal distribution, and a gap that is not near 0, n would be

        (z_confidence + z_power)^2 (p_a (1 - p_a) + p_b (1 - p_b)) / (max_gap - gap)^2.

    For a gap of 0 either of the two groups may seem to have the higher rate, and (1 + power) / 2
    takes the place of power.

    With more groups, all pairs of them have to be confirmed, as in `largest_confirmable_gap`: all
    other groups have the rate ``rate``.

    Parameters
    ----------
    max_gap : float
        The gap to confirm, above ``gap``.
    rate : float, default=0.5
        The rate that is compared between the groups; 0.5 needs the most rows.
    gap : float, default=0.0
        The true gap.
    confidence : float, default=0.95
        Of the upper bound alone. `FairnessReport` at 0.95 has an upper bound at 0.975.
    power : float, default=0.8
        The chance to confirm.
    n_groups : int, default=2
        The number of groups, all with the same number of rows.

    Returns
    -------
    int
        Rows of each group over which the rate is taken: for true positive rates, rows with the
        positive label.

    Examples
    --------
    >>> from fairproj.inference import rows_to_confirm
    >>> rows_to_confirm(0.1) < rows_to_confirm(0.1, gap=0.05) < rows_to_confirm(0.04)
    True
    """
    _check_arguments(max_gap, rate, confidence, power)
    if not 0 <= gap < max_gap:
        raise ValueError(
            f"gap must be at least 0 and below max_gap={max_gap:g}, got {gap!r}; no number of rows "
            "confirms a gap that is not there"
        )
    if n_groups < 2:
        raise ValueError(f"n_groups must be at least 2, got {n_groups!r}")
    if max_gap >= 1:
        return 1
    target = _Target(float(max_gap), float(confidence))
    return _rows_to_confirm(target, float(rate), float(gap), float(power), int(n_groups))


def largest_confirmable_gap(
    rows: Sequence[int] | NDArray[Any],
    max_gap: float,
    rate: float = 0.5,
    *,
    confidence: float = 0.95,
    power: float = 0.8,
) -> float | None:
    """The largest true gap at which given rows confirm ``max_gap`` with the chance ``power``.

    The two smallest groups have the rates ``rate + gap / 2`` and ``rate - gap / 2``, and all others
    ``rate``. The largest gap is returned for which

        sum over pairs of groups of P(a bound of the pair > max_gap)  <=  1 - power.

    The sum bounds the chance that some pair is not confirmed. The chance of the two smallest groups
    is computed from the exact bound, that of other pairs with the normal distribution.

    Parameters
    ----------
    rows : sequence of int
        The rows of each group over which the rate is taken.
    max_gap : float
        The gap to confirm.
    rate : float, default=0.5
        The rate that is compared between the groups; 0.5 is the hardest.
    confidence : float, default=0.95
        Of the upper bound alone. `FairnessReport` at 0.95 has an upper bound at 0.975.
    power : float, default=0.8
        The chance to confirm.

    Returns
    -------
    float or None
        None if not even a gap of 0 would be confirmed.

    Examples
    --------
    >>> from fairproj.inference import largest_confirmable_gap
    >>> gap = largest_confirmable_gap([3000, 5000], 0.05)
    >>> print(f"{gap:.2f}")
    0.02
    >>> largest_confirmable_gap([100, 5000], 0.05) is None
    True
    """
    _check_arguments(max_gap, rate, confidence, power)
    sizes = _check_rows(rows)
    if max_gap >= 1:
        return 1.0
    if not sizes[0]:
        return None  # nothing is known about a group without rows
    target = _Target(float(max_gap), float(confidence))
    factors = _Factors.solve((int(sizes[0]), int(sizes[1])), _rates(rate, max_gap), target)

    def confirmed(gap: float) -> bool:
        return _chance_of_all(sizes, rate, gap, target, factors) >= power

    if not confirmed(0.0):
        return None
    return _bisect(confirmed, 0.0, float(max_gap), 1e-4 * max_gap)


def smallest_max_gap(
    rows: Sequence[int] | NDArray[Any],
    rate: float = 0.5,
    *,
    confidence: float = 0.95,
    power: float = 0.8,
) -> float | None:
    """The smallest ``max_gap`` that given rows confirm with the chance ``power``.

    That is where `largest_confirmable_gap` is 0: the groups' true rates are alike.

    Parameters
    ----------
    rows : sequence of int
        The rows of each group over which the rate is taken.
    rate : float, default=0.5
    confidence, power : float
        As in `largest_confirmable_gap`.

    Returns
    -------
    float or None
        None if a group has no rows or so few that no gap below 1 would be confirmed.

    Examples
    --------
    >>> from fairproj.inference import smallest_max_gap
    >>> print(f"{smallest_max_gap([400, 5000]):.2f}")
    0.08
    """
    _check_arguments(0.0, rate, confidence, power)
    sizes = _check_rows(rows)
    if not sizes[0]:
        return None
    pair = (int(sizes[0]), int(sizes[1]))
    z = float(_TYPICAL * special.ndtri(confidence) + special.ndtri((1 + power) / 2))
    max_gap = z * math.sqrt(max(rate * (1 - rate), 0.01) * (1 / pair[0] + 1 / pair[1]))
    for _ in range(_UPDATES):
        target = _Target(min(max_gap, 0.999), float(confidence))
        factors = _Factors.solve(pair, (rate, rate), target)

        def missed(gap: float, factors: _Factors = factors) -> bool:
            goal = _Target(gap, float(confidence))
            return _chance_of_all(sizes, rate, 0.0, goal, factors) < power

        previous, max_gap = max_gap, _bisect(missed, 0.0, 1.0, 1e-4)
        if abs(max_gap - previous) <= _PRECISION * max_gap:
            break
    return max_gap if max_gap < 0.999 else None


def _bisect(holds: Callable[[float], bool], low: float, high: float, precision: float) -> float:
    """The largest number for which it holds, where it holds below some number only."""
    while high - low > precision:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _check_rows(rows: Any) -> NDArray[np.int_]:
    """The numbers of rows, sorted."""
    sizes: NDArray[np.int_] = np.sort(np.asarray(rows))
    if sizes.ndim != 1 or len(sizes) < 2 or sizes[0] < 0:
        raise ValueError(
            f"rows must hold the number of rows of each of two or more groups, got {rows!r}"
        )
    return sizes


class _Target(NamedTuple):
    """The gap to confirm, and the confidence of the bound."""

    max_gap: float
    confidence: float

    @property
    def z(self) -> float:
        return float(special.ndtri(self.confidence))


@lru_cache(maxsize=256)
def _rows_to_confirm(target: _Target, rate: float, gap: float, power: float, n_groups: int) -> int:
    rates = _rates(rate, gap)
    variance = max(sum(each * (1 - each) for each in rates), 0.01)
    z = _TYPICAL * target.z + max(float(special.ndtri(power)), 0.0)
    n = math.ceil(variance * (z / (target.max_gap - gap)) ** 2)
    for _ in range(_UPDATES):
        factors = _Factors.solve((n, n), rates, target)
        previous, n = n, _least_rows(rate, gap, n_groups, target, power, factors, start=n)
        if abs(n - previous) <= _PRECISION * n:
            break
    return n


def _least_rows(
    rate: float,
    gap: float,
    n_groups: int,
    target: _Target,
    power: float,
    factors: _Factors,
    start: int,
) -> int:
    """The least number of rows with enough power, by bisection."""

    def enough(n: int) -> bool:
        return _chance_of_all(np.full(n_groups, n), rate, gap, target, factors) >= power

    low, high = 0, start
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class _Factors:
    """The factor k at a few counts j of b, for the bound of p_a - p_b and for that of p_b - p_a.

    Counts are kept as shares of the rows, so that the factors apply to similar numbers of rows.
    """

    shares: Array
    upper: Array
    lower: Array

    @classmethod
    def solve(cls, sizes: Sizes, rates: Rates, target: _Target) -> _Factors:
        n_b = sizes[1]
        spread = [_REACH * math.sqrt(rate * (1 - rate) / n_b) for rate in rates]
        low = min(rate - wide for rate, wide in zip(rates, spread, strict=True))
        high = max(rate + wide for rate, wide in zip(rates, spread, strict=True))
        shares = np.unique(np.linspace(max(low, 0.0), min(high, 1.0), _NODES))
        found: dict[float, float] = {}  # at a rate of a half, the same shares from both sides
        k = _TYPICAL
        for share in (*shares, *(1 - shares)):
            if (key := round(share, 9)) not in found:
                found[key] = k = _factor(sizes, share, target, start=k)
        upper, lower = ([found[round(one, 9)] for one in each] for each in (shares, 1 - shares))
        return cls(shares, np.array(upper), np.array(lower))


def _factor(sizes: Sizes, share: float, target: _Target, start: float) -> float:
    """The factor k where the bound of p_a - p_b crosses ``max_gap``, for j = share n_b.

    With the p-value p at the count i that is tried, the bound is about max_gap + s (z(p) -
    z(alpha)), where s = (T - d) / z(confidence) is the standard deviation of d.
    """
    n_a, n_b = sizes
    k, i = start, -1
    for _ in range(_STEPS):
        last, i = i, _highest_count(sizes, share * n_b, k, target)
        if i in (last, n_a):  # at n_a the bound does not cross max_gap
            break
        pair = Pair(i, n_a, share * n_b, n_b)
        d = i / n_a - share
        width = float(_rank(pair, target.z)) - d
        excess = _Test(pair, target.confidence, *FINE).excess(target.max_gap)
        if i == n_a and excess < 0:
            break  # no count of a is too high, so the bound crosses nowhere
        k = (target.max_gap + excess * width / target.z - d) / width
        if abs(excess) < _CLOSE:
            break
    return k


def _highest_count(sizes: Sizes, j: float, k: float, target: _Target) -> int:
    return max(int(_highest_counts(sizes, np.array([j]), np.array([k]), target)[0]), 0)


def _highest_counts(sizes: Sizes, j: Array, k: Array, target: _Target) -> NDArray[np.int_]:
    """The largest count i with d + k (T - d) <= max_gap, for each j; -1 if there is none."""
    n_a, n_b = sizes
    low, high = np.full(len(j), -1), np.full(len(j), n_a)
    while (low < high).any():
        middle = np.maximum((low + high + 1) // 2, 0)
        d = middle / n_a - j / n_b
        bound = d + k * (_rank(Pair(middle, n_a, j, n_b), target.z) - d)
        inside = bound <= target.max_gap
        low, high = np.where(inside, middle, low), np.where(inside, high, middle - 1)
    return low


def _chance(sizes: Sizes, rates: Rates, target: _Target, factors: _Factors) -> float:
    """The power for two groups: the sum in the docstring of the module."""
    (n_a, n_b), (p_a, p_b) = sizes, rates
    first, last = _likely_counts(n_b, p_b)
    starts = np.unique(np.linspace(first, last + 1, _BLOCKS + 1).astype(np.int64))
    mass = -np.diff(_at_least(starts, n_b, np.array(p_b)))
    j = (starts[:-1] + starts[1:] - 1) / 2
    upper = np.interp(j / n_b, factors.shares, factors.upper)
    lower = np.interp(j / n_b, factors.shares, factors.lower)
    highest = _highest_counts(sizes, j, upper, target)
    lowest = n_a - _highest_counts(sizes, n_b - j, lower, target)  # counts what is not hit
    inside = _at_least(lowest, n_a, np.array(p_a)) - _at_least(highest + 1, n_a, np.array(p_a))
    return float((mass * np.maximum(inside, 0.0)).sum())


def _chance_of_all(
    sizes: NDArray[np.int_], rate: float, gap: float, target: _Target, factors: _Factors
) -> float:
    """A lower bound of the power for several groups, of which the smallest two differ."""
    high, low = _rates(rate, gap)
    pair = (int(sizes[0]), int(sizes[1]))
    worse = min(_chance(pair, rates, target, factors) for rates in ((high, low), (low, high)))
    return worse - _other_failures(sizes, rate, gap, target, factors)


def _likely_counts(n: int, rate: float) -> tuple[int, int]:
    """Counts outside of which a binomial variable has a chance below 1e-9."""
    reach = 6.5 * math.sqrt(n * rate * (1 - rate)) + 25
    return max(math.floor(n * rate - reach), 0), min(math.ceil(n * rate + reach), n)


def _other_failures(
    sizes: NDArray[np.int_], rate: float, gap: float, target: _Target, factors: _Factors
) -> float:
    """The sum over all pairs but that of the two smallest groups, with the normal distribution."""
    rates = np.full(len(sizes), rate)
    rates[:2] = _rates(rate, gap)
    a, b = np.indices((len(sizes), len(sizes))).reshape(2, -1)
    a, b = (side[(a != b) & (np.maximum(a, b) > 1)] for side in (a, b))
    difference = rates[a] - rates[b]
    pairs = Pair(rates[a] * sizes[a], sizes[a], rates[b] * sizes[b], sizes[b])
    width = _rank(pairs, target.z) - difference
    variance = rates * (1 - rates) / sizes
    deviation = np.sqrt(np.maximum(variance[a] + variance[b], 1e-300))
    k = max(factors.upper.max(), factors.lower.max())
    return float(special.ndtr((difference + k * width - target.max_gap) / deviation).sum())


def _rates(rate: float, gap: float) -> Rates:
    """Two rates around ``rate`` that differ by ``gap``, the higher one first."""
    high = min(max(rate + gap / 2, gap), 1.0)
    return high, high - gap


def _check_arguments(max_gap: float, rate: float, confidence: float, power: float) -> None:
    check_confidence(confidence)
    if confidence <= 0.5:
        raise ValueError(f"confidence must be above 0.5 to confirm a gap, got {confidence!r}")
    for name, value in (("max_gap", max_gap), ("rate", rate)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    if not 0 < power < 1:
        raise ValueError(f"power must lie between 0 and 1, got {power!r}")
