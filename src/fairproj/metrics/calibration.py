"""How far scores are from the frequencies that they stand for, overall and by group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairproj.data.checks import (
    check_aligned,
    check_groups,
    check_scores,
    check_weights,
)
from fairproj.data.types import Array, Codes
from fairproj.metrics.gaps import positive_masks


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
    for calibrated probabilities it is above zero, especially if bins have few rows.

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
    prob = check_scores(y_prob, "y_prob", len(actual))
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
