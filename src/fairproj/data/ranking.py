"""Scores that are sorted once, and what follows from them under any weights of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairproj.data.types import Array, Codes


@dataclass(frozen=True)
class RankedScores:
    """The scores of rows with two labels, in ascending order.

    With F0 and F1 the distribution functions of the scores of the negative and of the positive
    label, `ks` is the largest |F1(t) - F0(t)| over all scores t, and `auc` the probability that a
    positive row scores higher than a negative one, where equal scores count one half.

    Attributes
    ----------
    order : array of shape (n_rows,)
        The rows from the lowest to the highest score.
    starts : array
        Where in this order each of the distinct scores begins.
    actual : array of bool
        Which rows are positive, in this order.
    """

    order: Codes
    starts: Codes
    actual: NDArray[np.bool_]

    @classmethod
    def of(cls, actual: NDArray[np.bool_], score: Array) -> RankedScores:
        order = np.argsort(score, kind="stable")
        ranked = score[order]
        starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
        return cls(order, starts, actual[order])

    def shares(self, weight: Array) -> tuple[Array, Array]:
        """The share of the negative and of the positive rows' weight that has each score."""
        ranked = weight[self.order]
        negative, positive = (
            np.add.reduceat(np.where(rows, ranked, 0.0), self.starts)
            for rows in (~self.actual, self.actual)
        )
        return negative / negative.sum(), positive / positive.sum()

    def ks(self, weight: Array) -> float:
        """The Kolmogorov-Smirnov distance between the two labels."""
        negative, positive = self.shares(weight)
        return float(np.abs(np.cumsum(positive - negative)).max())

    def auc(self, weight: Array) -> float:
        """The area under the ROC curve."""
        negative, positive = self.shares(weight)
        return float(positive @ (np.cumsum(negative) - negative / 2))
