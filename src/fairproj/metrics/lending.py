"""What lenders report: KS distance, adverse impact ratio and standardized mean difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fairproj.constraints import RATES
from fairproj.data.checks import (
    Groups,
    check_aligned,
    check_groups,
    check_labels,
    check_scores,
    check_weights,
    listing,
)
from fairproj.data.ranking import RankedScores
from fairproj.data.types import Array
from fairproj.metrics.gaps import cell_counts


def ks_statistic(y_true: Any, y_score: Any, *, sample_weight: Any = None) -> float:
    """The Kolmogorov-Smirnov distance between the scores of the two labels, lenders' "KS".

    With F0 and F1 the distribution functions of the scores of either label, weighted where weights
    are given, it is the largest ``|F1(t) - F0(t)|`` over all scores t: 0 if both labels have the
    same scores, 1 if a threshold separates them. It does not matter which label is positive.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels, two of them.
    y_score : array-like of shape (n_rows,)
        Scores, such as probabilities of the positive label.
    sample_weight : array-like of shape (n_rows,), optional

    Returns
    -------
    float

    Examples
    --------
    >>> from fairproj.metrics import ks_statistic
    >>> ks_statistic([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.5
    """
    check_aligned(y_true=y_true, y_score=y_score, sample_weight=sample_weight)
    signs, classes = check_labels(y_true)
    actual = signs > 0
    score = check_scores(y_score, "y_score", len(actual))
    weight = check_weights(sample_weight, len(actual))
    for label, rows in zip(classes, (~actual, actual), strict=True):
        if not weight[rows].any():
            raise ValueError(
                f"every row with label {label!s} has sample_weight zero, and both labels are "
                "compared; give such rows weight"
            )
    return RankedScores.of(actual, score).auc_and_ks(weight)[1]


def adverse_impact_ratio(
    y_pred: Any,
    *,
    sensitive_features: Any,
    reference: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> pd.Series:
    """The selection rate of each group divided by that of the reference group.

    ``AIR(g) = P(positive prediction | g) / P(positive prediction | reference)``. Under the
    four-fifths rule a ratio below 0.8 is taken as a sign of adverse impact, if the positive label
    is the outcome that people want.

    Parameters
    ----------
    y_pred : array-like of shape (n_rows,)
        Predicted labels.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
        The groups; several columns are crossed.
    reference : group, optional
        A value of the sensitive feature, or a group's name as the result prints it. By default the
        group with the highest selection rate, as the four-fifths rule has it: no ratio is then
        above 1, and the smallest is fairlearn's ``demographic_parity_ratio``.
    sample_weight : array-like of shape (n_rows,), optional
    pos_label : label, optional
        The positive label; by default the larger of the two in sort order.

    Returns
    -------
    Series
        The ratio of each group, 1 for the reference; NaN where nobody of the reference group is
        selected, or where a group has no weight.

    Examples
    --------
    >>> from fairproj.metrics import adverse_impact_ratio
    >>> ratios = adverse_impact_ratio([1, 1, 1, 0, 1, 0], sensitive_features=list("aaabbb"))
    >>> ratios.round(2).to_dict()
    {'a': 1.0, 'b': 0.33}
    """
    counts, groups = cell_counts(y_pred, y_pred, sensitive_features, sample_weight, pos_label)
    rates = RATES["selection_rate"].values(counts)
    position = find_reference(reference, groups, rates)
    index = pd.Index(groups.names, name="group")
    return pd.Series(ratios_to(rates, position), index, name="adverse_impact_ratio")


def ratios_to(rates: Array, reference: int) -> Array:
    """Each rate divided by that of the reference; NaN where that is 0."""
    ratios: Array = np.full(len(rates), np.nan)
    if rates[reference] > 0:
        ratios = rates / rates[reference]
    return ratios


def find_reference(reference: Any, groups: Groups, values: Array) -> int:
    """The position of the group that is named by value or name; by default of the largest value."""
    if reference is None:
        if np.isnan(values).all():
            raise ValueError("no group has rows with weight; give some rows weight")
        return int(np.nanargmax(values))
    for names in (list(groups.values), groups.names):
        if reference in names:
            return names.index(reference)
    raise ValueError(
        f"reference={reference!r} is not a group; the groups are {listing(groups.names)}"
    )


def standardized_mean_difference(
    y_score: Any, *, sensitive_features: Any, reference: Any = None, sample_weight: Any = None
) -> pd.Series:
    """How far the mean score of each group is from that of the reference, in standard deviations.

    ``SMD(g) = (mean_g - mean_r) / s`` with the pooled standard deviation of the two groups that are
    compared, ``s**2 = (sum_g w (x - mean_g)**2 + sum_r w (x - mean_r)**2) / (sum_g w + sum_r w)``,
    without a correction for the number of means, so that only ratios of weights matter. Some
    lenders divide by the standard deviation of all scores instead. That is larger wherever means
    differ, so the result is then nearer to 0.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Scores, such as probabilities of the positive label.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
        The groups; several columns are crossed.
    reference : group, optional
        A value of the sensitive feature, or a group's name as the result prints it; by default the
        group with the highest mean score.
    sample_weight : array-like of shape (n_rows,), optional

    Returns
    -------
    Series
        The difference for each group, 0 for the reference; NaN where a group has no weight.

    Examples
    --------
    >>> from fairproj.metrics import standardized_mean_difference
    >>> differences = standardized_mean_difference(
    ...     [0.2, 0.4, 0.6, 0.8], sensitive_features=list("aabb"), reference="b")
    >>> differences.round(2).to_dict()
    {'a': -4.0, 'b': 0.0}
    """
    groups_and_weights = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    check_aligned(y_score=y_score, **groups_and_weights)
    score = check_scores(y_score, "y_score", np.size(y_score))
    groups = check_groups(sensitive_features, len(score), beside="y_score")
    weight = check_weights(sample_weight, len(score))
    means = _group_means(score, groups, weight)
    differences = mean_differences(score, groups, weight, find_reference(reference, groups, means))
    index = pd.Index(groups.names, name="group")
    return pd.Series(differences, index, name="standardized_mean_difference")


def mean_differences(score: Array, groups: Groups, weight: Array, reference: int) -> Array:
    """`standardized_mean_difference` of checked rows; 0 where all scores of both groups agree."""
    mean = _group_means(score, groups, weight)
    n_groups = len(groups.values)
    squares = np.bincount(groups.codes, weight * (score - mean[groups.codes]) ** 2, n_groups)
    mass = np.bincount(groups.codes, weight, n_groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.sqrt((squares + squares[reference]) / (mass + mass[reference]))
        differences = (mean - mean[reference]) / deviation
    return np.where(mean == mean[reference], 0.0, differences)


def _group_means(score: Array, groups: Groups, weight: Array) -> Array:
    """NaN for a group without weight."""
    n_groups = len(groups.values)
    mass = np.bincount(groups.codes, weight, n_groups)
    total = np.bincount(groups.codes, weight * score, n_groups)
    means: Array = np.full(n_groups, np.nan)
    return np.divide(total, mass, out=means, where=mass > 0)
