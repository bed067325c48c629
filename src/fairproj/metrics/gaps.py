"""Group rates and gaps of predictions, in fairlearn's conventions.

A gap is the largest minus the smallest rate over the groups; that of the selection ratio is 1 minus
the smallest divided by the largest. For more than gaps, use fairlearn's ``MetricFrame``: these
functions fit into it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
        Weights of the rows; by default every row counts as one.
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
    y_true, y_pred : array-like of shape (n_rows,)
        Labels and predicted labels.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
        The groups; several columns are crossed.
    statistic : str, default="equal_opportunity"
        A name of `fairproj.constraints.STATISTICS` or an alias.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows; by default every row counts as one.
    pos_label : label, optional
        The positive label; by default the larger of the two in sort order.

    Returns
    -------
    float
        The largest gap of the statistic's rates: 0 where the groups' rates are equal, at most 1.

    Raises
    ------
    ValueError
        If a group has no rows for one of the rates.
    """
    counts, groups = cell_counts(y_true, y_pred, sensitive_features, sample_weight, pos_label)
    return checked_gap(find_statistic(statistic), counts, groups)


def checked_gap(statistic: Statistic, counts: CellCounts, groups: Groups) -> float:
    """The gap, after a check that every group has rows for it."""
    check_group_rows(statistic, counts, groups)
    return statistic.value(counts)


def check_group_rows(statistic: Statistic, counts: CellCounts, groups: Groups) -> None:
    for rate in statistic.rates:
        unknown = np.isnan(rate.values(counts))
        if unknown.any():
            raise ValueError(
                f"group {groups.names[int(np.argmax(unknown))]!r} has no rows for its "
                f"{rate.words}; merge it with another group or leave it out"
            )


_DIFFERENCE_DOC = """{summary}

    {details}

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Labels and predicted labels.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
        The groups; several columns are crossed.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows; by default every row counts as one.
    pos_label : label, optional
        The positive label; by default the larger of the two in sort order.

    Returns
    -------
    float
        {returns}

    Examples
    --------
    >>> from fairproj.metrics import {name}
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0]
    >>> gap = {name}(y_true, y_pred, sensitive_features=list("aaaabbbb"))
    >>> round(gap, 2)
    {example}
    """


def _difference(name: str, statistic: str, example: float, summary: str) -> Callable[..., float]:
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

    ratio = find_statistic(statistic).kind == "ratio"
    difference.__name__ = difference.__qualname__ = name
    difference.__doc__ = _DIFFERENCE_DOC.format(
        name=name,
        summary=summary,
        details=f'The same as `gap_difference` with ``statistic="{statistic}"``.',
        returns="0 where the groups' rates are equal, at most 1."
        + (" It is 1 where nobody is selected." if ratio else ""),
        example=example,
    )
    return difference


demographic_parity_difference = _difference(
    "demographic_parity_difference",
    "demographic_parity",
    0.5,
    "Gap of the selection rates, P(positive prediction | group).",
)
equal_opportunity_difference = _difference(
    "equal_opportunity_difference",
    "equal_opportunity",
    0.5,
    "Gap of the true positive rates, P(positive prediction | positive, group).",
)
false_positive_rate_difference = _difference(
    "false_positive_rate_difference",
    "false_positive_rate_parity",
    0.5,
    "Gap of the false positive rates, P(positive prediction | negative, group).",
)
equalized_odds_difference = _difference(
    "equalized_odds_difference",
    "equalized_odds",
    0.5,
    "The larger of the gaps of the true and of the false positive rates.",
)
accuracy_difference = _difference(
    "accuracy_difference",
    "accuracy_parity",
    0.0,
    "Gap of the accuracies, P(correct prediction | group).",
)
selection_ratio_shortfall = _difference(
    "selection_ratio_shortfall",
    "selection_ratio",
    0.67,
    "1 minus the ratio of the smallest to the largest selection rate.",
)
predictive_parity_difference = _difference(
    "predictive_parity_difference",
    "predictive_parity",
    0.33,
    "Gap of the precisions, P(positive | positive prediction, group).",
)
