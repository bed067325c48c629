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

    def gap(self, predicts: Any) -> float:
        """Largest less smallest P(prediction 1 | label 1, group)."""
        rates = self._rates() @ np.asarray(predicts)
        return float(rates.max() - rates.min())

    def best_accuracy(self, max_gap: float) -> float:
        """The frontier: the most accurate classifier with a gap of at most max_gap.

        Accuracy and rates are linear in the chances h, so it is a linear program:
        maximise <gain, h> with <r_a - r_b, h> <= max_gap for all pairs of groups, 0 <= h <= 1.
        """
        gain, least = self._accuracy()
        rates = self._rates()
        pairs = [rates[a] - rates[b] for a, b in combinations(range(len(rates)), 2)]
        A = np.vstack([*pairs, *(-pair for pair in pairs)])
        solution = linprog(-gain, A_ub=A, b_ub=np.full(len(A), max_gap), bounds=(0, 1))
        return float(least - solution.fun)

    def _accuracy(self) -> tuple[Array, float]:
        """Accuracy is <gain, h> + least."""
        gain = self.share * (2 * self.positive - 1)
        return gain, float(self.share @ (1 - self.positive))

    def _rates(self) -> Array:
        """One row per group: its true positive rate is the row times h."""
        joint = self.share * self.positive * (self.groups == np.unique(self.groups)[:, None])
        rates: Array = joint / joint.sum(axis=1, keepdims=True)
        return rates


def make_population(n_groups: int = 2, seed: int = 0) -> Population:
    """Groups that differ in the link of merit to label 1 and in how often they have label 1."""
    rng = np.random.default_rng(seed)
    merit, skill, group = (
        part.ravel()
        for part in np.meshgrid(
            np.linspace(-2, 2, 15), np.linspace(-1, 1, 5), np.arange(n_groups), indexing="ij"
        )
    )
    shift = np.linspace(-0.6, 0.6, n_groups)
    slope = rng.uniform(1.0, 2.0, size=n_groups)
    size = rng.uniform(0.7, 1.3, size=n_groups)
    share = size[group] * np.exp(-0.5 * (merit - 0.5 * shift[group]) ** 2)
    positive = expit(slope[group] * merit + skill + 1.5 * shift[group] - 0.3)
    X = np.column_stack([merit, skill, group]).astype(float).round(6)
    return Population(X, group.astype(np.intp), share / share.sum(), positive)
