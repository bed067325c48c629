"""Group rates and gaps of predictions, in fairlearn's conventions, and scorers made of them.

A gap is the largest minus the smallest rate over the groups; that of the selection ratio is 1 minus
the smallest divided by the largest. For more than gaps, use fairlearn's ``MetricFrame``: these
functions fit into it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import make_scorer

from fairproj.constraints import RATES, Statistic, find_statistic
from fairproj.data.cells import CellCounts
from fairproj.data.checks import (
    Groups,
    check_aligned,
    check_groups,
    check_labels,
    check_pos_label,
    check_weights,
    counted,
    listing,
    plain_labels,
)
from fairproj.data.columns import split_sensitive_columns
from fairproj.data.ranking import RankedScores
from fairproj.data.types import Array, Codes

__all__ = [
    "accuracy_difference",
    "accuracy_parity_scorer",
    "adverse_impact_ratio",
    "calibration_error",
    "demographic_parity_difference",
    "demographic_parity_scorer",
    "equal_opportunity_difference",
    "equal_opportunity_scorer",
    "equalized_odds_difference",
    "equalized_odds_scorer",
    "false_positive_rate_difference",
    "false_positive_rate_parity_scorer",
    "gap_curve",
    "gap_difference",
    "group_rates",
    "ks_statistic",
    "make_gap_scorer",
    "predictive_parity_difference",
    "selection_ratio_scorer",
    "selection_ratio_shortfall",
    "standardized_mean_difference",
]

_MOST_THRESHOLDS = 200  # of a curve, unless they are given


def group_rates(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> pd.DataFrame:
    """Rates of each group, one row a group.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Labels and predictions.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
        The groups; several columns are crossed.
    sample_weight : array-like of shape (n_rows,), optional
    pos_label : label, optional
        The positive label; by default the larger of the two in sort order.

    Returns
    -------
    DataFrame
        Columns ``count``, ``selection_rate``, ``true_positive_rate``, ``false_positive_rate``,
        ``accuracy``, ``precision`` and ``false_negative_rate``; a rate over no rows is NaN.
    """
    counts, groups = cell_counts(y_true, y_pred, sensitive_features, sample_weight, pos_label)
    rows = np.bincount(groups.codes, minlength=len(groups.values))
    rates = {name: rate.values(counts) for name, rate in RATES.items()}
    return pd.DataFrame({"count": rows, **rates}, index=pd.Index(groups.names, name="group"))


def cell_counts(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> tuple[CellCounts, Groups]:
    """Rows and positive predictions by group and label, and the groups."""
    groups_and_weights = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    check_aligned(y_true=y_true, y_pred=y_pred, **groups_and_weights)
    actual, predicted = positive_masks(y_true, y_pred, pos_label)
    weight = None if sample_weight is None else check_weights(sample_weight, len(actual))
    groups = check_groups(sensitive_features, len(actual), beside="y_true")
    return CellCounts.of_rows(actual, predicted, groups, weight), groups


def positive_masks(
    y_true: Any, y_pred: Any, pos_label: Any
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which labels and which predictions are positive; either may hold one class only."""
    y, predicted = plain_labels(y_true), plain_labels(y_pred)
    if len(predicted) != len(y):
        raise ValueError(
            f"y_pred has {counted(len(predicted), 'row')} and y_true {len(y):,}; they must be equal"
        )
    classes, codes = _two_classes(y, predicted)
    if len(classes) == 1 and pos_label is None:
        # A single class in all: 1, True and the like are positive, anything else is negative.
        positive = classes[0] in (1, "1")
        return np.full(len(y), positive), np.full(len(y), positive)
    code = check_pos_label(pos_label, classes) if len(classes) == 2 else 0
    if len(classes) == 1 and classes[0] != pos_label:
        code = -1
    return codes[: len(y)] == code, codes[len(y) :] == code


def _two_classes(y: NDArray[Any], predicted: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The labels that occur in either, at most two, and both arrays as codes, one after the other.

    Values are hashed, which for text is many times faster than sorting.
    """
    for name, labels in (("y_true", y), ("y_pred", predicted)):
        if missing := int(pd.isna(labels).sum()):
            raise ValueError(
                f"{name} has {counted(missing, 'missing value')} in {counted(len(labels), 'row')}; "
                "drop those rows"
            )
    values = pd.concat([pd.Series(y), pd.Series(predicted)], ignore_index=True)
    codes, uniques = pd.factorize(values)
    known = np.unique(codes[: len(y)])
    unknown = np.setdiff1d(codes[len(y) :], known)
    if len(unknown) and len(known) > 1:
        raise ValueError(
            f"y_pred holds {listing([uniques[unknown[0]]])}, which is not a label of y_true "
            f"({listing(np.unique(y))}); pass predicted labels, coded as in y_true"
        )
    if len(uniques) == 1:
        return np.asarray(uniques), codes
    _, classes = check_labels(np.asarray(uniques))
    order = [classes.tolist().index(value) for value in np.asarray(uniques).tolist()]
    return classes, np.asarray(order)[codes]


def gap_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    statistic: str = "equal_opportunity",
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """The gap between groups of the named statistic.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight, pos_label : as for `group_rates`
    statistic : str, default="equal_opportunity"
        A name of `fairproj.constraints.STATISTICS` or an alias.

    Returns
    -------
    float
    """
    counts, groups = cell_counts(y_true, y_pred, sensitive_features, sample_weight, pos_label)
    return checked_gap(find_statistic(statistic), counts, groups)


def checked_gap(statistic: Statistic, counts: CellCounts, groups: Groups) -> float:
    """The gap, after a check that every group has rows for it."""
    _check_rows(statistic, counts, groups)
    return statistic.value(counts)


def _check_rows(statistic: Statistic, counts: CellCounts, groups: Groups) -> None:
    for rate in statistic.rates:
        unknown = np.isnan(rate.values(counts))
        if unknown.any():
            raise ValueError(
                f"group {groups.names[int(np.argmax(unknown))]!r} has no rows for its "
                f"{rate.words}; merge it with another group or leave it out"
            )


def _difference(function: str, statistic: str, doc: str) -> Callable[..., float]:
    """`gap_difference` of one statistic, as a function of this module."""

    def difference(
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        pos_label: Any = None,
    ) -> float:
        return gap_difference(
            y_true,
            y_pred,
            sensitive_features=sensitive_features,
            statistic=statistic,
            sample_weight=sample_weight,
            pos_label=pos_label,
        )

    difference.__name__ = difference.__qualname__ = function
    difference.__doc__ = doc
    return difference


demographic_parity_difference = _difference(
    "demographic_parity_difference",
    "demographic_parity",
    "Gap of the selection rates, P(positive prediction | group).",
)
equal_opportunity_difference = _difference(
    "equal_opportunity_difference",
    "equal_opportunity",
    "Gap of the true positive rates, P(positive prediction | positive, group).",
)
false_positive_rate_difference = _difference(
    "false_positive_rate_difference",
    "false_positive_rate_parity",
    "Gap of the false positive rates, P(positive prediction | negative, group).",
)
equalized_odds_difference = _difference(
    "equalized_odds_difference",
    "equalized_odds",
    "The larger of the gaps of the true and of the false positive rates.",
)
accuracy_difference = _difference(
    "accuracy_difference",
    "accuracy_parity",
    "Gap of the accuracies, P(correct prediction | group).",
)
selection_ratio_shortfall = _difference(
    "selection_ratio_shortfall",
    "selection_ratio",
    "1 minus the ratio of the smallest to the largest selection rate; 1 if nobody is selected.",
)
predictive_parity_difference = _difference(
    "predictive_parity_difference",
    "predictive_parity",
    "Gap of the precisions, P(positive | positive prediction, group).",
)

# For GridSearchCV and friends, with set_score_request(sensitive_features=True).
demographic_parity_scorer = make_scorer(demographic_parity_difference, greater_is_better=False)
equal_opportunity_scorer = make_scorer(equal_opportunity_difference, greater_is_better=False)
false_positive_rate_parity_scorer = make_scorer(
    false_positive_rate_difference, greater_is_better=False
)
equalized_odds_scorer = make_scorer(equalized_odds_difference, greater_is_better=False)
accuracy_parity_scorer = make_scorer(accuracy_difference, greater_is_better=False)
selection_ratio_scorer = make_scorer(selection_ratio_shortfall, greater_is_better=False)


def make_gap_scorer(
    metric: Any, sensitive_columns: Any, *, pos_label: Any = None
) -> Callable[..., float]:
    """A scorer that takes the groups from columns of X, where metadata routing is not used.

    Parameters
    ----------
    metric : str or callable
        The name of a statistic, or one of the differences of this module.
    sensitive_columns : str, int or sequence of them
        Columns of X that hold the sensitive features, as in `FairProjClassifier`.
    pos_label : label, optional
        The positive label; by default the estimator's ``pos_label``, or the larger in sort order.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, minus the gap: larger is better.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from fairproj import FairProjClassifier
    >>> from fairproj.metrics import make_gap_scorer
    >>> search = GridSearchCV(
    ...     FairProjClassifier(sensitive_columns="sex"),
    ...     {"epsilon": [0.05, 0.1, 0.2]},
    ...     scoring=make_gap_scorer("equal_opportunity", "sex"),
    ... )
    """
    difference = metric
    if isinstance(metric, str):
        difference = partial(gap_difference, statistic=find_statistic(metric, "metric").name)

    def scorer(estimator: Any, X: Any, y: Any) -> float:
        _, groups, *_ = split_sensitive_columns(X, sensitive_columns)
        label = getattr(estimator, "pos_label", None) if pos_label is None else pos_label
        return -float(
            difference(y, estimator.predict(X), sensitive_features=groups, pos_label=label)
        )

    return scorer


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
    score = _check_scores(y_score, "y_score", len(actual))
    weight = check_weights(sample_weight, len(actual))
    groups = check_groups(sensitive_features, len(actual), beside="y_true")
    _check_rows(compared, CellCounts.of_rows(actual, actual, groups, weight), groups)
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


def _check_scores(scores: Any, name: str, n_rows: int) -> Array:
    values = np.asarray(scores, dtype=float)
    if values.shape != (n_rows,):
        raise ValueError(
            f"{name} has shape {values.shape}; it must hold one number for each of the {n_rows} "
            "rows of y_true, such as predict_proba(X)[:, 1]"
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"{name} has {int((~np.isfinite(values)).sum())} missing or infinite entries; all must "
            "be finite"
        )
    return values


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


def calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    n_bins: int = 10,
) -> pd.DataFrame:
    """Expected calibration error of probabilities, overall and in each group.

    Rows are sorted by probability into bins of equal weight. The error is the mean over the bins,
    by weight, of the distance between the mean probability and the share of positive labels. Even
    for calibrated probabilities it is above zero, the more so the fewer rows a bin has.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels.
    y_prob : array-like of shape (n_rows,)
        Probabilities of the positive label.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
        The groups; several columns are crossed.
    sample_weight : array-like of shape (n_rows,), optional
    pos_label : label, optional
        The positive label; by default the larger of the two in sort order.
    n_bins : int, default=10
        Each group has its own bins. Rows of equal probability share a bin.

    Returns
    -------
    DataFrame
        A row ``overall`` and one for each group: ``ece``, ``mean_probability``, ``observed_rate``
        (the share of positive labels) and ``count`` (rows).

    Examples
    --------
    >>> from fairproj.metrics import calibration_error
    >>> errors = calibration_error(
    ...     [0, 1, 1, 1], [0.2, 0.9, 0.6, 0.6], sensitive_features=list("aabb"), n_bins=2)
    >>> errors["ece"].round(3).to_dict()
    {'overall': 0.175, 'a': 0.15, 'b': 0.4}
    """
    groups_and_weights = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
    check_aligned(y_true=y_true, y_prob=y_prob, **groups_and_weights)
    actual, _ = positive_masks(y_true, y_true, pos_label)
    prob = _check_scores(y_prob, "y_prob", len(actual))
    if (prob < 0).any() or (prob > 1).any():
        outside = prob[(prob < 0) | (prob > 1)][0]
        raise ValueError(f"y_prob holds {outside:g}; probabilities must lie between 0 and 1")
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number from 1 on, got {n_bins!r}")
    weight = check_weights(sample_weight, len(actual))
    names, parts = ["overall"], [np.ones(len(actual), dtype=bool)]
    if sensitive_features is not None:
        groups = check_groups(sensitive_features, len(actual), beside="y_true")
        names += groups.names
        parts += [groups.codes == g for g in range(len(groups.values))]
    rows = [_calibration(actual[part], prob[part], weight[part], n_bins) for part in parts]
    return pd.DataFrame(rows, index=pd.Index(names, name="group"))


def _calibration(
    actual: NDArray[np.bool_], prob: Array, weight: Array, n_bins: int
) -> dict[str, float]:
    total = weight.sum()
    if not total:
        unknown = dict.fromkeys(("ece", "mean_probability", "observed_rate"), np.nan)
        return {**unknown, "count": len(prob)}
    return {
        "ece": CalibrationBins.of_rows(actual, prob, weight, n_bins).error,
        "mean_probability": float((weight * prob).sum() / total),
        "observed_rate": float(weight[actual].sum() / total),
        "count": len(prob),
    }


@dataclass(frozen=True)
class CalibrationBins:
    """Rows in bins of equal weight, sorted by probability; rows of equal probability share a bin.

    Attributes
    ----------
    weight, positives : array of shape (n_bins,)
        Of all rows of a bin, and of those with the positive label.
    probability : array of shape (n_bins,)
        The mean probability in a bin.
    """

    weight: Array
    positives: Array
    probability: Array

    @classmethod
    def of_rows(
        cls,
        actual: NDArray[np.bool_],
        prob: Array,
        weight: Array | None = None,
        n_bins: int = 10,
    ) -> CalibrationBins:
        """Bins that hold rows; there may be fewer than ``n_bins``."""
        weight = np.ones(len(prob)) if weight is None else weight
        bins = _equal_weight_bins(prob, weight / weight.sum(), n_bins)
        sums = [np.bincount(bins, values) for values in (weight, weight * actual, weight * prob)]
        mass, positives, expected = (one.astype(float)[sums[0] > 0] for one in sums)
        return cls(mass, positives, expected / mass)

    @property
    def error(self) -> float:
        """The expected calibration error."""
        distance = np.abs(self.weight * self.probability - self.positives)
        return float(distance.sum() / self.weight.sum())


def _equal_weight_bins(values: Array, share: Array, n_bins: int) -> Codes:
    """The bin of each row; where bins begin is decided by the weight below a value."""
    distinct, index = np.unique(values, return_inverse=True)
    mass = np.bincount(index, share, len(distinct))
    below = np.cumsum(mass) - mass
    rounding = 1e-9  # ten times 0.1 may come out below 1
    bins = np.minimum(np.floor(n_bins * below + rounding), n_bins - 1)
    return np.asarray(bins[index], dtype=np.intp)


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
    signs, classes = check_labels(y_true)
    actual = signs > 0
    score = _check_scores(y_score, "y_score", len(actual))
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
    score = _check_scores(y_score, "y_score", np.size(y_score))
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
