"""Frontiers of score and gap: which points are on one, how much it encloses, and intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Array = NDArray[np.float64]
DRAWS = 2000
FEWEST = 3  # splits, below which an interval has no ends


class Reference(NamedTuple):
    """The corner against which hypervolumes are taken: the worst gap and score that count."""

    gap: float
    score: float


def pareto(gaps: Any, scores: Any) -> NDArray[np.bool_]:
    """Which points no other point beats: in gap, in score, and strictly in one of them.

    Points with a NaN are never among them.
    """
    gaps, scores = np.asarray(gaps, dtype=float), np.asarray(scores, dtype=float)
    known = ~(np.isnan(gaps) | np.isnan(scores))
    no_worse = (gaps <= gaps[:, None]) & (scores >= scores[:, None])
    better = no_worse & ((gaps < gaps[:, None]) | (scores > scores[:, None]))
    return known & ~better.any(axis=1)


def hypervolume(gaps: Any, scores: Any, reference: Reference) -> float:
    """The mean, over limits on the gap from 0 to the reference, of the best score within the limit.

    Scores count from the score of the reference upwards, and as zero below it: the area that the
    points dominate, divided by the gap of the reference.
    """
    gaps, scores = np.asarray(gaps, dtype=float), np.asarray(scores, dtype=float)
    inside = (gaps < reference.gap) & (scores > reference.score)
    order = np.argsort(gaps[inside], kind="stable")
    if not len(order):
        return 0.0
    start = gaps[inside][order]
    best = np.maximum.accumulate(scores[inside][order] - reference.score)
    width = np.diff(np.append(start, reference.gap))
    return float(width @ best / reference.gap)


def mixed_hypervolume(gaps: Any, scores: Any, reference: Reference) -> float:
    """The same for predictions that may be drawn: by one of the points, or by the constant.

    The score within a limit is then that of the concave envelope of the points and of the constant,
    which has no gap: a mixture has the mean of the scores, and a gap of at most the mean of the
    gaps.
    """
    gaps, scores = np.asarray(gaps, dtype=float), np.asarray(scores, dtype=float)
    useful = scores > reference.score
    hull = [(0.0, reference.score)]
    for point in sorted(zip(gaps[useful], scores[useful], strict=True), key=_by_gap):
        if point[1] <= hull[-1][1]:
            continue  # the envelope does not fall
        while len(hull) > 1 and not _bends(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    x, y = np.array(hull).T
    at = np.append(x[x < reference.gap], reference.gap)
    return float(np.trapezoid(np.interp(at, x, y) - reference.score, at) / reference.gap)


def _by_gap(point: tuple[float, float]) -> tuple[float, float]:
    return point[0], -point[1]


def _bends(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b is above the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) > (c[1] - a[1]) * (b[0] - a[0])


def choose(gaps: Any, scores: Any, target: float) -> int | None:
    """The point of best score whose gap is within the target; failing that, of least gap.

    Ties go to the smaller gap, then to the first. None if there are no points.
    """
    gaps, scores = np.asarray(gaps, dtype=float), np.asarray(scores, dtype=float)
    known = np.flatnonzero(~(np.isnan(gaps) | np.isnan(scores)))
    if not len(known):
        return None
    within = known[gaps[known] <= target + 1e-12]
    if len(within):
        return int(within[np.lexsort((gaps[within], -scores[within]))[0]])
    return int(known[np.lexsort((-scores[known], gaps[known]))[0]])


class Interval(NamedTuple):
    """An estimate with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def paired_difference(ours: Any, theirs: Any, *, relative: bool = False, seed: int = 0) -> Interval:
    """The mean of ours - theirs over splits, with a percentile bootstrap that resamples splits.

    ``relative`` divides by the mean of theirs, in every draw. Splits that lack one of the two are
    left out. With fewer than three splits the ends are NaN.
    """
    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    both = ~(np.isnan(ours) | np.isnan(theirs))
    ours, theirs = ours[both], theirs[both]
    if not len(ours):
        return Interval(np.nan, np.nan, np.nan)
    value = float(_difference(ours, theirs, relative=relative))
    drawn = np.random.default_rng(seed).integers(len(ours), size=(DRAWS, len(ours)))
    draws = _difference(ours[drawn], theirs[drawn], relative=relative)
    if len(ours) < FEWEST or not np.isfinite(draws).any():
        return Interval(value, np.nan, np.nan)
    low, high = np.nanquantile(draws, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def corrected_difference(ours: Any, theirs: Any, overlap: float) -> Interval:
    """The mean of ours - theirs, with the corrected t interval of Nadeau & Bengio (2003).

    Splits of the same rows are not independent: the variance of the mean is taken as
    (1 / J + overlap) times that of the J differences, where ``overlap`` is the number of test rows
    divided by the number of rows to train on, and 0 for independent samples. With fewer than three
    splits the ends are NaN.
    """
    differences = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    differences = differences[~np.isnan(differences)]
    n = len(differences)
    if n < FEWEST:
        return Interval(float(differences.mean()) if n else np.nan, np.nan, np.nan)
    half = student.ppf(0.975, n - 1) * differences.std(ddof=1) * np.sqrt(1 / n + overlap)
    mean = float(differences.mean())
    return Interval(mean, mean - float(half), mean + float(half))


def _difference(ours: Array, theirs: Array, *, relative: bool) -> Any:
    difference, base = (ours - theirs).mean(axis=-1), theirs.mean(axis=-1)
    if not relative:
        return difference
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(base > 0, difference / base, np.nan)
