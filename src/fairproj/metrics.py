"""Group rates and gaps of predictions, in fairlearn's conventions, and scorers made of them.

Every gap is the largest minus the smallest rate over the groups. For more than gaps, use
fairlearn's ``MetricFrame``: these functions fit into it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import make_scorer

from fairproj.data.checks import (
    check_groups,
    check_labels,
    check_pos_label,
    check_weights,
    listing,
    plain_labels,
    split_sensitive_columns,
)

__all__ = [
    "demographic_parity_difference",
    "demographic_parity_scorer",
    "equal_opportunity_difference",
    "equal_opportunity_scorer",
    "equalized_odds_difference",
    "equalized_odds_scorer",
    "false_positive_rate_difference",
    "false_positive_rate_scorer",
    "group_rates",
    "make_gap_scorer",
]


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
        Columns ``count``, ``accuracy``, ``selection_rate``, ``true_positive_rate``,
        ``false_positive_rate``; a rate over no rows is NaN.
    """
    y, predictions, positive = two_labels(y_true, y_pred, pos_label)
    actual, predicted = y == positive, predictions == positive
    weight = check_weights(sample_weight, len(y))
    groups = check_groups(sensitive_features, len(y), beside="y_true")
    n_groups = len(groups.values)

    def mean(values: NDArray[np.bool_], among: NDArray[np.bool_]) -> NDArray[np.float64]:
        total = np.bincount(groups.codes, weight * among, n_groups)
        hits = np.bincount(groups.codes, weight * (values & among), n_groups)
        rates: NDArray[np.float64] = np.full(n_groups, np.nan)
        return np.divide(hits, total, out=rates, where=total > 0)

    everyone = np.ones(len(y), dtype=bool)
    return pd.DataFrame(
        {
            "count": np.bincount(groups.codes, minlength=n_groups),
            "accuracy": mean(actual == predicted, everyone),
            "selection_rate": mean(predicted, everyone),
            "true_positive_rate": mean(predicted, actual),
            "false_positive_rate": mean(predicted, ~actual),
        },
        index=pd.Index(groups.names, name="group"),
    )


def two_labels(y_true: Any, y_pred: Any, pos_label: Any) -> tuple[NDArray[Any], NDArray[Any], Any]:
    """Labels, predictions and which label is positive; either may hold one class only."""
    y, predicted = plain_labels(y_true), plain_labels(y_pred)
    if len(predicted) != len(y):
        raise ValueError(
            f"y_pred has {len(predicted)} rows and y_true {len(y)}; they must be equal"
        )
    classes = np.unique(y)
    unknown = np.setdiff1d(predicted, classes)
    if len(unknown) and len(classes) > 1:
        raise ValueError(
            f"y_pred holds {listing(unknown[:1])}, which is not a label of y_true "
            f"({listing(classes)}); pass predicted labels, coded as in y_true"
        )
    both = np.union1d(y, predicted)
    if len(both) == 1 and pos_label is None:  # one class in all: 1, True and the like are positive
        pos_label = both[0] if both[0] in (1, "1") else object()
    if len(both) > 1:
        _, classes = check_labels(np.concatenate([y, predicted]))
        pos_label = classes[check_pos_label(pos_label, classes)]
    return y, predicted, pos_label


def demographic_parity_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Gap of the selection rates, P(positive prediction | group)."""
    return _gap("selection_rate", y_true, y_pred, sensitive_features, sample_weight, pos_label)


def equal_opportunity_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Gap of the true positive rates, P(positive prediction | positive, group)."""
    return _gap("true_positive_rate", y_true, y_pred, sensitive_features, sample_weight, pos_label)


def false_positive_rate_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Gap of the false positive rates, P(positive prediction | negative, group)."""
    return _gap("false_positive_rate", y_true, y_pred, sensitive_features, sample_weight, pos_label)


def equalized_odds_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """The worse of the gaps of the true and of the false positive rates."""
    arguments = y_true, y_pred, sensitive_features, sample_weight, pos_label
    return max(_gap("true_positive_rate", *arguments), _gap("false_positive_rate", *arguments))


def _gap(
    rate: str, y_true: Any, y_pred: Any, groups: Any, sample_weight: Any, pos_label: Any
) -> float:
    rates = group_rates(
        y_true, y_pred, sensitive_features=groups, sample_weight=sample_weight, pos_label=pos_label
    )[rate]
    if rates.isna().any():
        raise ValueError(
            f"group {rates.index[rates.isna()][0]!r} has no rows for its {rate.replace('_', ' ')}; "
            "merge it with another group or leave it out"
        )
    return float(rates.max() - rates.min())


# For GridSearchCV and friends, with set_score_request(sensitive_features=True).
demographic_parity_scorer = make_scorer(demographic_parity_difference, greater_is_better=False)
equal_opportunity_scorer = make_scorer(equal_opportunity_difference, greater_is_better=False)
false_positive_rate_scorer = make_scorer(false_positive_rate_difference, greater_is_better=False)
equalized_odds_scorer = make_scorer(equalized_odds_difference, greater_is_better=False)


def make_gap_scorer(metric: Callable[..., float], sensitive_columns: Any) -> Callable[..., float]:
    """A scorer that takes the groups from columns of X, where metadata routing is not used.

    Parameters
    ----------
    metric : callable
        One of the differences of this module.
    sensitive_columns : str, int or sequence of them
        Columns of X that hold the sensitive features, as in `FairProjClassifier`.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, minus the gap: larger is better.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from fairproj import FairProjClassifier
    >>> from fairproj.metrics import equal_opportunity_difference, make_gap_scorer
    >>> search = GridSearchCV(
    ...     FairProjClassifier(sensitive_columns="sex"),
    ...     {"epsilon": [0.05, 0.1, 0.2]},
    ...     scoring=make_gap_scorer(equal_opportunity_difference, "sex"),
    ... )
    """

    def scorer(estimator: Any, X: Any, y: Any) -> float:
        _, groups, *_ = split_sensitive_columns(X, sensitive_columns)
        return -metric(y, estimator.predict(X), sensitive_features=groups)

    return scorer
