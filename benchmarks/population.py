"""A population with known rates, to compare samples with.

The accuracy and gap of any classifier, and the best accuracy at a gap, can be computed exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import expit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Population:
    """Finitely many kinds of people: features, group, share of the whole, chance of label 1.

    A classifier is given by its chance of predicting 1 for each kind.
    """

    X: Array
    groups: NDArray[np.intp]
    share: Array
    positive: Array

    def sample(self, n: int, seed: Any) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
        """Features, labels and groups of n people."""
        rng = np.random.default_rng(seed)
        kinds = rng.choice(len(self.share), size=n, p=self.share)
        y = (rng.random(n) < self.positive[kinds]).astype(np.intp)
        return self.X[kinds], y, self.groups[kinds]

    def accuracy(self, predicts: Any) -> float:
        """P(prediction = label)."""
        gain, least = self._accuracy()
        return float(gain @ np.asarray(predicts) + least)

    def gap(self, predicts: Any, statistic: str = "equal_opportunity") -> float:
        """Largest less smallest rate of a group; of equalized odds, the worse of two."""
        return max(float(np.ptp(rates @ np.asarray(predicts))) for rates in self._rates(statistic))

    def best_accuracy(
        self, max_gap: float, statistic: str = "equal_opportunity", *, blind: bool = False
    ) -> float:
        """The frontier: the most accurate classifier with a gap of at most max_gap.

        Accuracy and rates are linear in the chances h, so it is a linear program:
        maximise <gain, h> with <r_a - r_b, h> <= max_gap for all pairs of groups, 0 <= h <= 1.
        A classifier that is ``blind`` does not see the group, the last of the features: kinds that
        differ in nothing else share a chance.
        """
        gain, least = self._accuracy()
        pairs = [
            rates[a] - rates[b]
            for rates in self._rates(statistic)
            for a, b in combinations(range(len(rates)), 2)
        ]
        A = np.vstack([*pairs, *(-pair for pair in pairs)])
        if blind:
            seen = np.unique(self.X[:, :-1], axis=0, return_inverse=True)[1].ravel()
            shared = (seen[:, None] == np.arange(seen.max() + 1)).astype(float)
            gain, A = gain @ shared, A @ shared
        solution = linprog(-gain, A_ub=A, b_ub=np.full(len(A), max_gap), bounds=(0, 1))
        return float(least - solution.fun)

    def _accuracy(self) -> tuple[Array, float]:
        """Accuracy is <gain, h> + least."""
        gain = self.share * (2 * self.positive - 1)
        return gain, float(self.share @ (1 - self.positive))

    def _rates(self, statistic: str) -> list[Array]:
        """For each rate of a statistic, one row per group: its rate is the row times h."""
        member = self.share * (self.groups == np.unique(self.groups)[:, None])
        true_positive, false_positive = member * self.positive, member * (1 - self.positive)
        counted = {
            "equal_opportunity": [true_positive],
            "demographic_parity": [member],
            "equalized_odds": [true_positive, false_positive],
        }[statistic]
        return [joint / joint.sum(axis=1, keepdims=True) for joint in counted]


def make_population(
    n_groups: int = 2, seed: int = 0, merits: int = 15, skills: int = 5
) -> Population:
    """Groups that differ in the link of merit to label 1 and in how often they have label 1.

    ``merits`` and ``skills`` say how many values the two features have.
    """
    rng = np.random.default_rng(seed)
    merit, skill, group = (
        part.ravel()
        for part in np.meshgrid(
            np.linspace(-2, 2, merits),
            np.linspace(-1, 1, skills),
            np.arange(n_groups),
            indexing="ij",
        )
    )
    shift = np.linspace(-0.6, 0.6, n_groups)
    slope = rng.uniform(1.0, 2.0, size=n_groups)
    size = rng.uniform(0.7, 1.3, size=n_groups)
    share = size[group] * np.exp(-0.5 * (merit - 0.5 * shift[group]) ** 2)
    positive = expit(slope[group] * merit + skill + 1.5 * shift[group] - 0.3)
    X = np.column_stack([merit, skill, group]).astype(float).round(6)
    return Population(X, group.astype(np.intp), share / share.sum(), positive)
