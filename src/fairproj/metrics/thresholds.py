"""Gaps, accuracy and selection rate by the threshold of a score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairproj.constraints import RATES, find_statistic
from fairproj.data.cells import CellCounts
from fairproj.data.checks import (
    Groups,
    check_aligned,
    check_groups,
    check_scores,
    check_weights,
)
from fairproj.data.types import Array
from fairproj.metrics.gaps import check_group_rows, positive_masks

_MOST_THRESHOLDS = 200  # of a curve, unless they are given


def gap_curve(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    statistic: str = "equal_opportunity",
    pos_label: Any = None,
    thresholds: Any = None,
) -> pd.DataFrame:
    """Gap, accuracy and selection rate for every threshold of a score.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels.
    y_score : array-like of shape (n_rows,)
        Scores, such as probabilities of the positive label; a row is predicted positive where its
        score exceeds the threshold.
    sensitive_features, sample_weight, pos_label : as for `group_rates`
    statistic : str, default="equal_opportunity"
        A name of `fairproj.constraints.STATISTICS` or an alias.
    thresholds : array-like, optional
        By default the distinct scores, or 200 quantiles of the scores if there are more.

    Returns
    -------
    DataFrame
        One row for each distinct threshold, in ascending order: ``threshold``, ``gap``,
        ``accuracy``, ``balanced_accuracy``, ``selection_rate``, and each group's rates that the
        statistic compares, such as ``true_positive_rate[women]``. The gap of precisions is NaN
        where a group has no positive predictions.

    Examples
    --------
    >>> from fairproj.metrics import gap_curve
    >>> curve = gap_curve(
    ...     [1, 1, 0, 1, 0, 1], [0.9, 0.6, 0.3, 0.7, 0.6, 0.2],
    ...     sensitive_features=list("aaabbb"), thresholds=[0.25, 0.5, 0.65])
    >>> curve[["threshold", "gap"]].to_numpy().tolist()
    [[0.25, 0.5], [0.5, 0.5], [0.65, 0.0]]
    """
    compared = find_statistic(statistic)
    groups_and_weights = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    check_aligned(y_true=y_true, y_score=y_score, **groups_and_weights)
    actual, _ = positive_masks(y_true, y_true, pos_label)
    score = check_scores(y_score, "y_score", len(actual))
    weight = check_weights(sample_weight, len(actual))
    groups = check_groups(sensitive_features, len(actual), beside="y_true")
    check_group_rows(compared, CellCounts.of_rows(actual, actual, groups, weight), groups)
    cuts = _check_thresholds(thresholds, score)
    counts = _counts_by_threshold(actual, score, groups, weight, cuts)
    everyone = _over_groups(counts, len(groups.values))
    rates = {rate: rate.values(counts).reshape(-1, len(cuts)) for rate in compared.rates}
    curve = {
        "threshold": cuts,
        "gap": np.max([each.gap(rates[each.rate]) for each in compared.requirements], axis=0),
        "accuracy": RATES["accuracy"].values(everyone),
        "balanced_accuracy": _balanced_accuracy(everyone),
        "selection_rate": RATES["selection_rate"].values(everyone),
    }
    for rate, by_group in rates.items():
        names = [f"{rate.name}[{name}]" for name in groups.names]
        curve |= dict(zip(names, by_group, strict=True))
    return pd.DataFrame(curve)


def _counts_by_threshold(
    actual: NDArray[np.bool_], score: Array, groups: Groups, weight: Array, cuts: Array
) -> CellCounts:
    """Counts with a row for each group and threshold, thresholds within groups.

    Each cell's weight is binned by the number of thresholds that its rows exceed; the sum of the
    bins above a threshold is what is predicted positive there.
    """
    shape = (len(groups.values), 2, len(cuts) + 1)
    place = (2 * groups.codes + actual) * shape[2] + np.searchsorted(cuts, score)
    binned = np.bincount(place, weight, int(np.prod(shape))).reshape(shape).astype(float)
    above = np.cumsum(binned[:, :, ::-1], axis=2)[:, :, ::-1].swapaxes(1, 2)
    size = np.repeat(above[:, 0], len(cuts), axis=0)
    return CellCounts(size, above[:, 1:].reshape(-1, 2))


def _over_groups(counts: CellCounts, n_groups: int) -> CellCounts:
    """The same over all groups together, a row for each threshold."""
    size, predicted = (
        part.reshape(n_groups, -1, 2).sum(axis=0) for part in (counts.size, counts.predicted)
    )
    return CellCounts(size, predicted)


def _balanced_accuracy(counts: CellCounts) -> Array:
    """The mean share of correct predictions over the labels that occur."""
    present = counts.size[0] > 0
    recall = counts.correct[:, present] / counts.size[:, present]
    return np.asarray(recall.mean(axis=1))


def _check_thresholds(thresholds: Any, score: Array) -> Array:
    if thresholds is not None:
        cuts = np.asarray(thresholds, dtype=float)
        if cuts.ndim != 1 or not len(cuts) or np.isnan(cuts).any():
            raise ValueError(f"thresholds must be a sequence of numbers, got {thresholds!r}")
        return np.unique(cuts)
    cuts = np.unique(score)
    if len(cuts) <= _MOST_THRESHOLDS:
        return cuts
    shares = np.linspace(0, 1, _MOST_THRESHOLDS)
    return np.unique(np.quantile(score, shares, method="inverted_cdf"))
