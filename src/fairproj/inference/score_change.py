"""How far two models differ in their score on the same rows, with a standard error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from fairproj.data.types import Array


@dataclass(frozen=True)
class ScoreParts:
    """A score as a mean over rows, or as two means, one over the rows of each label.

    The accuracy is the mean of [the row is predicted correctly]. The area under the ROC curve is
    the mean, over the positive rows, of the share of negative rows that score lower, and the mean,
    over the negative rows, of the share of positive rows that score higher; equal scores count one
    half. With these parts the variance of the area, and of the difference between two areas on the
    same rows, is that of means (DeLong, DeLong and Clarke-Pearson, 1988).

    Attributes
    ----------
    means : tuple of arrays
        What each mean is taken of.
    """

    means: tuple[Array, ...]

    @classmethod
    def of(
        cls,
        scoring: str,
        actual: NDArray[np.bool_],
        predicted: NDArray[np.bool_],
        score: Array,
    ) -> Self:
        """Parts of the ``"accuracy"`` or of ``"roc_auc"``; both labels must occur."""
        if scoring == "accuracy":
            return cls(((actual == predicted).astype(float),))
        rank, n_positive = rankdata(score), int(actual.sum())
        n_negative = len(actual) - n_positive
        lower = (rank[actual] - rankdata(score[actual])) / n_negative
        higher = 1 - (rank[~actual] - rankdata(score[~actual])) / n_positive
        return cls((lower, higher))

    def difference_error(self, other: ScoreParts) -> float:
        """The standard error of the difference between the two scores, of models on these rows."""
        variances = (
            np.var(one - two, ddof=1) / len(one)
            for one, two in zip(self.means, other.means, strict=True)
        )
        return float(np.sqrt(sum(variances)))


def difference_to_confirm(
    error: Array, rows_ratio: float, confidence: float, power: float
) -> Array:
    """By how much a difference must exceed a limit, so that other rows probably confirm it.

    A difference d that is measured with a standard error on some rows is d' on others, with a
    standard error ``error sqrt(rows_ratio)`` where they are fewer by that factor. The interval
    around d' lies above the limit with a chance of ``power`` if

        d >= limit + z((1 + confidence) / 2) error' + z(power) sqrt(error^2 + error'^2).

    Returns d less the limit.
    """
    later = error * np.sqrt(rows_ratio)
    certain, likely = norm.ppf((1 + confidence) / 2), norm.ppf(power)
    total: Array = certain * later + likely * np.sqrt(error**2 + later**2)
    return total
