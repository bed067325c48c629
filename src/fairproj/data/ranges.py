"""Ranges of numbers as groups: cutting a column, and proposing where to cut it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairproj.data.types import Array

Cuts = Sequence[float]

# Numbers of ranges to propose, and the fewest rows of each label that each must have. The last is
# the least that can be split into training and test rows.
_PROPOSALS = ((4, 30), (3, 30), (2, 30), (2, 2))
_NEAR = 0.3  # how far a round cut may be from its quantile, as a share of a range's rows
_ROUND = (1.0, 0.5, 0.2)  # a cut is a multiple of one of these times a power of ten


def check_cuts(cuts: Any) -> list[float]:
    """Cuts as numbers; they must be finite and increase.

    Examples
    --------
    >>> from fairproj.data.ranges import check_cuts
    >>> check_cuts(["25", "40"])
    [25.0, 40.0]
    """
    try:
        numbers = [float(cut) for cut in cuts]
    except (TypeError, ValueError):
        numbers = [math.nan]
    finite = all(map(math.isfinite, numbers))
    if not numbers or not finite or not all(np.diff(numbers) > 0):
        raise ValueError(
            f"the cuts {','.join(map(str, cuts))} must be increasing numbers separated by commas, "
            "such as 25,40,60"
        )
    return numbers


def range_names(cuts: Cuts) -> list[str]:
    """What to call the ranges, in their order.

    Parameters
    ----------
    cuts : sequence of float
        Increasing.

    Returns
    -------
    list of str
        One name more than there are cuts.

    Examples
    --------
    >>> from fairproj.data import range_names
    >>> range_names([25, 40])
    ['under 25', '25 to under 40', '40 and over']
    """
    texts = [number_text(cut) for cut in cuts]
    between = [f"{low} to under {high}" for low, high in pairwise(texts)]
    return [f"under {texts[0]}", *between, f"{texts[-1]} and over"]


def number_text(number: float) -> str:
    """The shortest text that means the number, without .0."""
    whole = number == math.floor(number) and abs(number) < 1e15
    return str(int(number)) if whole else repr(float(number))


def cut_ranges(values: Any, cuts: Cuts) -> pd.Categorical[Any]:
    """The range of each value, as an ordered categorical; missing values stay missing.

    With cuts c_1 < ... < c_k the ranges are [-inf, c_1), [c_1, c_2), ..., [c_k, inf]: a value that
    equals a cut belongs to the range above it, as people who are 25 are not under 25.

    Parameters
    ----------
    values : array-like of numbers
    cuts : sequence of float
        Increasing.

    Returns
    -------
    Categorical
        With the names of `range_names` as ordered categories.

    Examples
    --------
    >>> from fairproj.data import cut_ranges
    >>> list(cut_ranges([24.9, 25, 70, 31], [25, 40]))
    ['under 25', '25 to under 40', '40 and over', '25 to under 40']
    """
    numbers: Array = np.asarray(values, dtype=float)
    codes = np.searchsorted(np.asarray(cuts, dtype=float), numbers, side="right")
    codes = np.where(np.isnan(numbers), -1, codes)
    ordered = pd.CategoricalDtype(range_names(cuts), ordered=True)
    return pd.Categorical.from_codes(codes, dtype=ordered)


def cut_columns(frame: pd.DataFrame, ranges: Mapping[str, Cuts]) -> pd.DataFrame:
    """A frame some columns of which are cut into ranges."""
    if not ranges:
        return frame
    return frame.assign(**{name: cut_ranges(frame[name], cuts) for name, cuts in ranges.items()})


def propose_cuts(values: Any, positive: Any, counts: Any = None) -> list[float]:
    """Round cuts near quantiles, such that each range has enough rows of both labels.

    Four ranges if each then has 30 rows of each label, else three, else two; then two with 2 rows
    of each label.

    Parameters
    ----------
    values : array-like of numbers
        Without missing ones.
    positive : array-like of bool
        Whether the label is the positive one.
    counts : array-like of int, optional
        How many rows each of these stands for; one by default.

    Returns
    -------
    list of float
        Increasing; empty if there is no such cut.

    Examples
    --------
    >>> import numpy as np
    >>> from fairproj.data import propose_cuts
    >>> ages = np.arange(20, 80).repeat(50)
    >>> propose_cuts(ages, np.arange(len(ages)) % 2 == 0)
    [35.0, 50.0, 65.0]
    """
    numbers: Array = np.asarray(values, dtype=float)
    rows: Array = np.ones(len(numbers)) if counts is None else np.asarray(counts, dtype=float)
    distinct, place = np.unique(numbers, return_inverse=True)
    labels = np.column_stack([~np.asarray(positive, bool), np.asarray(positive, bool)])
    by_label: Array = np.column_stack(
        [np.bincount(place, rows * labels[:, at], len(distinct)) for at in range(2)]
    )
    for n_ranges, fewest in _PROPOSALS:
        cuts = _round_quantiles(distinct, by_label.sum(axis=1), n_ranges)
        if cuts and _fewest_rows(distinct, by_label, cuts) >= fewest:
            return cuts
    return []


def _fewest_rows(distinct: Array, by_label: Array, cuts: list[float]) -> float:
    """The rows of the rarest label in any range."""
    ranges = np.searchsorted(cuts, distinct, side="right")
    sums = [np.bincount(ranges, by_label[:, at], len(cuts) + 1) for at in range(2)]
    return float(np.min(sums))


def _round_quantiles(distinct: Array, rows: Array, n_ranges: int) -> list[float]:
    """Cuts that make ranges of nearly equal size; empty if two of them would be the same."""
    below = np.concatenate([[0.0], np.cumsum(rows) / rows.sum()])  # the share below each value
    cuts = [
        _round_near(distinct, below, at / n_ranges, _NEAR / n_ranges) for at in range(1, n_ranges)
    ]
    increasing = all(low < high for low, high in pairwise(cuts))
    return cuts if increasing and cuts[0] > distinct[0] else []


def _round_near(distinct: Array, below: Array, share: float, slack: float) -> float:
    """The roundest number with about this share of the rows below it.

    Without one within ``slack`` it is the nearest of the values themselves.
    """
    at = int(np.argmin(np.abs(below[:-1] - share)))
    exact = float(distinct[at])
    for step in _steps(distinct):
        cut = float(np.round(exact / step) * step)
        cut = float(f"{cut:.12g}")  # 3 * 0.1 is 0.30000000000000004
        if abs(below[np.searchsorted(distinct, cut)] - share) <= slack:
            return cut
    return exact


def _steps(distinct: Array) -> NDArray[np.float64]:
    """Multiples of which are round, the roundest first; down to a thousandth of the span."""
    span = float(distinct[-1] - distinct[0])
    if not 0 < span < math.inf:
        return np.array([])
    top = 10.0 ** math.ceil(math.log10(span))
    steps = [top / 10**power * one for power in range(4) for one in _ROUND]
    return np.array([step for step in steps if span / 1000 <= step <= span])
