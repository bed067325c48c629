"""Bounds for the ratio of the smallest to the largest of several probabilities.

The shortfall 1 - min p / max p is bounded through Clopper & Pearson's limits of the groups' rates,
which are independent. Both bounds hold at any sample size and are conservative: their coverage is
above the confidence asked for. For two groups of 1,000 and rates of a half, the upper bound is 1.6
times the textbook's.
"""

from __future__ import annotations

import numpy as np

from fairproj.data.types import Array
from fairproj.inference.intervals import exact_interval, largest_over_pairs, upper_limit


def shortfall_bound(hits: Array, rows: Array, confidence: float) -> float:
    """A number that 1 - min p / max p is at most, wrong with at most 1 - confidence.

    The largest of 1 - (lower limit of p_a) / (upper limit of p_b) over all pairs. It is too small
    only if one of the two limits of the pair with the smallest true ratio fails, so each limit has
    the confidence sqrt(confidence) (Sidak), for any number of groups. A group without rows gives 1.
    """
    side = np.sqrt(confidence)
    low, high = 1 - upper_limit(rows - hits, rows, side), upper_limit(hits, rows, side)
    return shortfall_range(low, high)[1]


def shortfall_low(hits: Array, rows: Array, confidence: float) -> float:
    """A number that 1 - min p / max p is at least, or 0; wrong with at most 1 - confidence.

    The largest of 1 - (upper limit of p_a) / (lower limit of p_b) over all pairs, of intervals that
    hold together with that confidence (Sidak over the groups), since any pair may be the largest.
    """
    return shortfall_range(*exact_interval(hits, rows, confidence ** (1 / len(rows))))[0]


def shortfall_range(low: Array, high: Array) -> tuple[float, float]:
    """The least and the largest that 1 - min p / max p can be if low <= p <= high in all groups."""
    ratio = np.divide(high[:, None], low, out=np.ones((len(low), len(low))), where=low > 0)
    least, largest = 1 - ratio, 1 - low[:, None] / high
    return max(0.0, largest_over_pairs(least)), max(0.0, largest_over_pairs(largest))


def ratio_intervals(
    hits: Array, rows: Array, reference: int, confidence: float
) -> tuple[Array, Array]:
    """Intervals of each p divided by that of the reference, each wrong with at most 1 - confidence.

    ``low = (lower limit of p) / (upper limit of the reference's p)``, and ``high`` the other way
    round. Either end is wrong only if one of its two limits is, and with at most half of
    1 - confidence; so each limit has the confidence sqrt((1 + confidence) / 2) (Sidak). ``high`` is
    infinite where the reference's lower limit is 0. Both are 1 for the reference itself.
    """
    side = np.sqrt((1 + confidence) / 2)
    low, high = 1 - upper_limit(rows - hits, rows, side), upper_limit(hits, rows, side)
    infinite: Array = np.full(len(rows), np.inf)
    highs = np.divide(high, low[reference], out=infinite, where=low[reference] > 0)
    lows = np.asarray(low / high[reference])
    lows[reference] = highs[reference] = 1.0
    return lows, highs
