"""Scores that are ranked once, and what follows from them under any weights of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairproj.data.types import Array, Codes


@dataclass(frozen=True)
class RankedScores:
    """The ranks of the scores of rows with two labels.

    Attributes
    ----------
    places : array of shape (n_rows,)
        ``2 r + l`` for a row whose score is the r-th of the distinct ones, from the lowest, and
        whose label is negative (l = 0) or positive (l = 1).
    n_scores : int
        The number of distinct scores.
    """

    places: Codes
    n_scores: int

    @classmethod
    def of(cls, actual: NDArray[np.bool_], score: Array) -> RankedScores:
        distinct, ranks = np.unique(score, return_inverse=True)
        return cls(2 * ranks + actual, len(distinct))

    def auc_and_ks(self, weight: Array) -> tuple[float, float]:
        """The area under the ROC curve, and the Kolmogorov-Smirnov distance.

        With F0 and F1 the distribution functions of the scores of the negative and of the positive
        label, the area is the probability that a positive row scores higher than a negative one,
        where equal scores count one half: the sum of ``dF1(t) (F0(t) - dF0(t) / 2)`` over the
        scores t. The distance is the largest ``|F1(t) - F0(t)|``. Both are NaN where the rows of a
        label have no weight.
        """
        mass = np.bincount(self.places, weight, 2 * self.n_scores).reshape(-1, 2)
        with np.errstate(invalid="ignore"):
            negative, positive = (mass / mass.sum(axis=0)).T
        below = np.cumsum(negative)
        distance = np.abs(np.cumsum(positive) - below).max()
        area = (positive * (below - negative / 2)).sum()  # BLAS would start threads for @
        return float(area), float(distance)
