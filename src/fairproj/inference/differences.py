"""Bounds for the difference of two probabilities that hold at any sample size.

Two independent counts, x_a of n_a rows and x_b of n_b. The bound inverts a test, as Buehler's
(1957). Let T rank outcomes by how large a difference they indicate. The outcomes that rank no
higher than the one observed are

    R = {(i, j) : T(i, j) <= T(x_a, x_b)},

and a difference D is refuted if R is improbable for all rates that differ by D:

    p(D) = sup_{p_b in C} P(R; p_b + D, p_b) + gamma  <=  1 - confidence.

C is Clopper & Pearson's interval of p_b at confidence 1 - gamma (Berger & Boos 1994). T is
Newcombe's (1998) upper limit of the difference from Wilson's limits of the two rates, by itself not
exact, but nearly so: outcomes are ranked by it, so that the exact bound is little wider.

T rises with i and falls with j. (Wilson's lower limit l has 0 <= l' < 2, so that T's derivative in
the rate of b, -1 + (p - l) (1 - l') / sqrt(... + (p - l)^2), is negative; likewise for a. At a
confidence below a half the two limits change places, and the same holds of the upper.)
Therefore P(R) falls with p_a and rises with p_b. So the supremum over a short interval of p_b is
bounded by p_a at its lower and p_b at its upper end; R has for every i a least j, which rises with
i, so that a block of neighbouring i may be counted with the least j of its first; and p(D) falls
with D. All rounding is upwards, so the bound holds however coarse the grid is.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from fairproj.data.types import Array
from fairproj.inference.intervals import largest_over_pairs, upper_limit

FINE = (96, 192)  # cells of the rate p_b and blocks of the counts of a
COARSE = (8, 24)  # often enough to tell that a pair does not matter
GAMMA = 0.01  # as a share of 1 - confidence
REACH = 5.0  # standard deviations of a count around its mean that are cut into blocks
AT_ONCE = 512  # pairs that are looked at together
TRIED = 4  # pairs whose lower bound is looked at
TIE = 1e-12
SUMMED = 10  # counts that are summed in the time of one incomplete beta function
MOST_SUMMED = 1_000_000  # rows; of more, the logarithms of factorials have too few digits


class Pair(NamedTuple):
    """Hits and rows of two groups; they may be arrays of outcomes or of pairs."""

    hits_a: Any
    n_a: Any
    hits_b: Any
    n_b: Any


def difference_bound(pair: Pair, confidence: float) -> float:
    """A number that p_a - p_b is at most, wrong with a chance of at most 1 - confidence.

    Of a group without rows nothing is known but that its rate lies between 0 and 1.
    """
    if not pair.n_a or not pair.n_b:
        return float(_one_rate_bound(pair, confidence))
    return _Test(pair, confidence, *FINE).bound()


def largest_difference_bound(hits: Array, rows: Array, confidence: float) -> float:
    """A number that max_{a,b} (p_a - p_b) is at most, wrong with at most 1 - confidence.

    The largest of the pairs' bounds, each at ``confidence``: it is too small only if that of the
    pair which truly differs most is, so one level does for any number of groups.
    """
    pairs = _ordered(hits, rows)
    known = (pairs.n_a > 0) & (pairs.n_b > 0)
    unknown = _chosen(pairs, ~known)
    bound = float(np.max(_one_rate_bound(unknown, confidence), initial=0.0))
    z = float(special.ndtri(confidence))
    leading = _leading(_chosen(pairs, known))
    ranks = _rank(leading, z)
    order = np.lexsort((*leading[::-1], ranks))[::-1]  # likely bounds first, the largest of all
    leading, ranks = _chosen(leading, order), ranks[order]
    at, n_tested = 0, 1
    while at < len(ranks) and bound < 1:
        some = slice(at, at + n_tested)
        left = ~_far_below(bound, ranks[some], _chosen(leading, some), confidence)
        bound = _raised(bound, _chosen(_chosen(leading, some), left), confidence)
        at, n_tested = at + n_tested, AT_ONCE
    return bound


def _raised(bound: float, pairs: Pair, confidence: float) -> float:
    """The largest of the bounds of some pairs and the given one."""
    if not len(pairs.n_a):
        return bound
    tests = _Tests(pairs, confidence, *COARSE)
    for at in np.flatnonzero(tests.p_values(bound) > tests.error).tolist():
        test = _Test(_pair(pairs, at), confidence, *FINE)
        if not test.refutes(bound):
            bound = test.bound()
    return bound


def largest_difference_low(hits: Array, rows: Array, confidence: float) -> float:
    """A number that max_{a,b} (p_a - p_b) is at least, or 0.

    The best lower bound of the few pairs that look farthest apart. Since any pair may be one of
    them, it is wrong with a chance of at most 1 - confidence for each ordered pair: take that into
    account.
    """
    # p_a - p_b >= -(bound of p_b - p_a), so look for the pair with the least bound.
    z = float(special.ndtri(confidence))
    pairs = _ordered(hits, rows)
    pairs = _chosen(pairs, (pairs.n_a > 0) & (pairs.n_b > 0))
    ranks = _rank(pairs, z)
    few = np.partition(ranks, TRIED - 1)[TRIED - 1] if len(ranks) > TRIED else np.inf
    tried = np.flatnonzero((ranks < 0) & (ranks <= few))  # above 0, they bound nothing
    tried = tried[np.lexsort((*_chosen(pairs, tried)[::-1], ranks[tried]))][:TRIED]
    bounds = [difference_bound(_pair(pairs, at), confidence) for at in tried.tolist()]
    return max([0.0, *(-bound for bound in bounds)])


def difference_range(low: Array, high: Array) -> tuple[float, float]:
    """The least and the largest that max p - min p can be if low <= p <= high in all groups."""
    least, largest = low[:, None] - high, high[:, None] - low
    return max(0.0, largest_over_pairs(least)), largest_over_pairs(largest)


def _ordered(hits: Array, rows: Array) -> Pair:
    """All ordered pairs of groups, as arrays."""
    hits, rows = np.asarray(hits).astype(np.int64), np.asarray(rows).astype(np.int64)
    a, b = np.nonzero(~np.eye(len(rows), dtype=bool))
    return Pair(hits[a], rows[a], hits[b], rows[b])


def _chosen(pairs: Pair, which: Any) -> Pair:
    return Pair(*(side[which] for side in pairs))


def _pair(pairs: Pair, at: int) -> Pair:
    return Pair(*(int(side[at]) for side in pairs))


def _as_arrays(pair: Pair) -> Pair:
    return Pair(*(np.array([side]) for side in pair))


def _turned(pair: Pair) -> Pair:
    """The same difference as (1 - p_b) - (1 - p_a) where b has fewer rows: C is then shorter."""
    if pair.n_a <= pair.n_b:
        return pair
    return Pair(pair.n_b - pair.hits_b, pair.n_b, pair.n_a - pair.hits_a, pair.n_a)


def _all_turned(pairs: Pair) -> Pair:
    turned = Pair(pairs.n_b - pairs.hits_b, pairs.n_b, pairs.n_a - pairs.hits_a, pairs.n_a)
    swap = pairs.n_a > pairs.n_b
    return Pair(*(np.where(swap, new, old) for new, old in zip(turned, pairs, strict=True)))


def _leading(pairs: Pair) -> Pair:
    """Of pairs that are alike but for the hits of a, the one with most: its R holds theirs."""
    pairs = _all_turned(pairs)
    order = np.lexsort((-pairs.hits_a, pairs.n_b, pairs.hits_b, pairs.n_a))
    pairs = _chosen(pairs, order)
    alike = np.stack([pairs.n_a, pairs.hits_b, pairs.n_b])
    first = np.append(True, (alike[:, 1:] != alike[:, :-1]).any(axis=0))
    return _chosen(pairs, first[: len(order)])


def _far_below(bound: float, rank: Array, pair: Pair, confidence: float) -> NDArray[np.bool_]:
    """Whether p(bound) <= 1 - confidence for certain.

    T exceeds the difference of the rates seen, so R lies where that is at most ``rank``, of which
    Hoeffding bounds the chance: exp(-2 (bound - rank)^2 / (1 / n_a + 1 / n_b)).
    """
    apart = np.maximum(bound - rank - TIE, 0.0)
    chance = np.exp(-2 * apart**2 / (1 / pair.n_a + 1 / pair.n_b))
    return np.asarray(chance <= (1 - GAMMA) * (1 - confidence))


def _one_rate_bound(pair: Pair, confidence: float) -> Array:
    """The same where a group has no rows: its rate is as bad as can be."""
    high = upper_limit(pair.hits_a, pair.n_a, confidence)
    low = 1 - upper_limit(pair.n_b - pair.hits_b, pair.n_b, confidence)
    return np.asarray(high - low)


class _Tests:
    """Which differences each of several pairs of counts refutes.

    Parameters
    ----------
    pairs : Pair of arrays
    cells, blocks : int
        Into how many parts C and the counts of a are cut: more, and the bound is nearer to exact.
    """

    def __init__(self, pairs: Pair, confidence: float, cells: int, blocks: int) -> None:
        pairs = Pair(*(side[:, None] for side in _all_turned(pairs)))
        self.pairs, self.error = pairs, 1 - confidence
        self._gamma = GAMMA * self.error
        side = 1 - self._gamma / 2
        lowest = 1 - upper_limit(pairs.n_b - pairs.hits_b, pairs.n_b, side)
        highest = upper_limit(pairs.hits_b, pairs.n_b, side)
        edges = np.linspace(lowest, highest, cells + 1, axis=1)[:, :, 0]
        self._lower = edges[:, :-1]
        z = float(special.ndtri(confidence))
        self.rank = _rank(pairs, z)
        self.seen = pairs.hits_a / pairs.n_a - pairs.hits_b / pairs.n_b
        first = pairs.n_a * np.maximum(0.0, lowest + self.seen)
        last = pairs.n_a * np.minimum(1.0, highest + np.maximum(self.rank, 0.0))
        widest = np.clip(pairs.n_a / 2, first, last)
        reach = REACH * np.sqrt(widest * (1 - widest / pairs.n_a) + REACH)
        ends = np.maximum(first - reach, 0), np.minimum(last + reach, pairs.n_a)
        span = np.linspace(*ends, blocks, axis=1)[:, :, 0].astype(int)
        self._starts = np.hstack([np.zeros((len(span), 1), dtype=int), span])
        least = _least(self._starts, pairs, z, self.rank + TIE)
        self._in_region = _at_least(least[:, None, :], pairs.n_b[:, :, None], edges[:, 1:, None])

    def p_values(self, difference: float) -> Array:
        """Upper bounds of p(D); they fall with D."""
        rate = self._lower + difference
        inside = np.clip(rate, 0.0, 1.0)[:, :, None]
        beyond = _at_least(self._starts[:, None, :], self.pairs.n_a[:, :, None], inside)
        mass = beyond - np.append(beyond[:, :, 1:], np.zeros((*rate.shape, 1)), axis=2)
        chance = np.where(rate <= 1, (mass * self._in_region).sum(axis=2), 0.0)
        return np.asarray(chance.max(axis=1) + self._gamma)


class _Test:
    """Which differences a pair of counts refutes; see `_Tests`."""

    def __init__(self, pair: Pair, confidence: float, cells: int, blocks: int) -> None:
        pair = _turned(pair)
        self._tests = _Tests(_as_arrays(pair), confidence, cells, blocks)
        self._pair, self._error = pair, self._tests.error
        self._rank, self._seen = float(self._tests.rank[0, 0]), float(self._tests.seen[0, 0])

    def p_value(self, difference: float) -> float:
        """An upper bound of p(D); falls with D."""
        return float(self._tests.p_values(difference)[0])

    def refutes(self, difference: float) -> bool:
        """Whether the true difference is smaller, at the confidence asked for."""
        return self.p_value(difference) <= self._error

    def bound(self) -> float:
        """The least difference that is refuted; 1 if none is."""
        excess = cache(self.excess)  # brentq looks at both ends again
        if excess(1.0) > 0:
            return 1.0
        likely = min(2 * self._rank - self._seen, 1.0)  # twice as far out as Newcombe's limit
        high = likely if excess(likely) <= 0 else 1.0
        low = -1.0 if excess(self._seen) <= 0 else self._seen
        precise = 1e-4 / math.sqrt(self._pair.n_a + self._pair.n_b)
        found: float = optimize.brentq(excess, low, high, xtol=precise)
        return min(found + 2 * precise, 1.0)

    def excess(self, difference: float) -> float:
        """Of p(D) over the error allowed, in normal quantiles; nearly straight in D."""
        p_value = min(self.p_value(difference), 1 - TIE)
        return float(special.ndtri(p_value) - special.ndtri(self._error))


def _rank(pair: Pair, z: float) -> Array:
    """T: Newcombe's upper limit of p_a - p_b."""
    rate_a, rate_b = pair.hits_a / pair.n_a, pair.hits_b / pair.n_b
    above = _wilson(pair.hits_a, pair.n_a, z) - rate_a
    below = _wilson(pair.n_b - pair.hits_b, pair.n_b, z) - (1 - rate_b)
    rank: Array = rate_a - rate_b + np.hypot(above, below)
    return rank


def _wilson(hits: Any, n: Any, z: float) -> Array:
    """Wilson's upper limit of a rate; the lower is one less that of the misses."""
    half = z * np.sqrt(hits * ((n - hits) / n) + z * z / 4)
    limit: Array = (hits + z * z / 2 + half) / (n + z * z)
    return limit


def _least(starts: NDArray[np.int_], pair: Pair, z: float, seen: Array) -> NDArray[np.int_]:
    """The least count j of b with T(i, j) <= seen, for each count i of a; n_b + 1 if none has."""
    low, high = np.zeros(starts.shape, dtype=int), np.full(starts.shape, pair.n_b + 1)
    while (low < high).any():
        middle = np.minimum((low + high) // 2, pair.n_b)
        inside = (low < high) & (_rank(Pair(starts, pair.n_a, middle, pair.n_b), z) <= seen)
        high = np.where(inside, middle, high)
        low = np.where(inside, low, np.minimum(middle + 1, high))
    return high


def _at_least(count: NDArray[np.int_], n: Any, rate: Array) -> Array:
    """P(X >= count) for X binomial, I_rate(count, n - count + 1).

    Of several pairs, shapes are (n_pairs, 1, n_blocks), (n_pairs, 1, 1) and (n_pairs, n_cells, 1).
    """
    inner = None
    if rate.ndim == 3 and len(rate) == 1:
        inner = _summed(count[0, 0], n.item(), rate[0])
    if inner is None:
        inner = special.betainc(np.clip(count, 1, n), np.clip(n - count + 1, 1, n), rate)
    return np.where(count <= 0, 1.0, np.where(count > n, 0.0, inner))


def _summed(count: NDArray[np.int_], n: int, rate: Array) -> Array | None:
    """The same of one pair by sums, for counts from 1 to n; None where that is slow or inexact.

    The counts rise from block to block.
    """
    possible = count[(count > 0) & (count <= n)]
    if not len(possible) or n > MOST_SUMMED:
        return None
    first, last = int(possible[0]), int(possible[-1])
    if last - first >= SUMMED * len(count):
        return None
    return _tails(n, rate, first, last)[:, np.clip(count, first, last) - first]


def _tails(n: int, rate: Array, first: int, last: int) -> Array:
    """P(X >= i) for i = first, ..., last: sums of C(n, i) rate^i (1 - rate)^(n - i).

    ``rate`` is a column, and the chances have a row for each rate.
    """
    hits = np.arange(last, first - 1, -1)  # sums begin at the last
    ways = special.gammaln(n + 1) - special.gammaln(hits + 1) - special.gammaln(n - hits + 1)
    rate = np.clip(rate, 1e-300, 1 - 2.0**-53)  # the logarithms are finite
    chance = hits * special.logit(rate)
    chance += ways
    chance += n * np.log1p(-rate)
    np.exp(chance, out=chance)
    if last < n:
        chance[:, 0] += special.betainc(last + 1, n - last, rate[:, 0])  # all counts beyond
    np.cumsum(chance, axis=1, out=chance)
    tails: Array = np.minimum(chance, 1.0, out=chance)[:, ::-1]
    return tails
