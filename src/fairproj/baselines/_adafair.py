"""AdaFair: boosting that raises the cost of mistakes on the group that fares worse so far."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from fairproj.data.checks import Array, Codes, check_labels
from fairproj.baselines._wrapper import Wrapper, two_groups


class AdaFair(Wrapper):
    """Cumulative fairness adaptive boosting: own version of AdaFair (Iosifidis & Ntoutsi 2019).

    Each round fits a learner h on weights D, with vote a = log((1 - error) / error). The ensemble
    so far then has true-positive and true-negative rates by group. A row whose label's rate is the
    lower one for its group has the cost u = the difference of the two rates, others u = 0. Rows
    that h gets wrong are weighted by::

        D_i <- D_i (1 + u_i) exp(a conf_i),   conf_i = the larger of h's two probabilities

    Of all rounds but the first, the one with the least ``c BER + (1 - c) ER + |dTPR| + |dTNR|`` on
    the training rows is kept (ER: error rate; BER: mean of the two classes' error rates). Written
    after the published code (github.com/iosifidisvasileios/AdaFair), with one slip there mended:
    costs of negatives follow the sign of dTNR, not of dTPR.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Any that takes ``sample_weight`` and has ``predict_proba``; by default a stump.
    n_estimators : int, default=100
    c : float, default=1.0
        1 weighs both classes alike when the rounds are chosen, 0 every row.
    """

    def __init__(self, estimator: Any = None, n_estimators: int = 100, *, c: float = 1.0) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.c = c

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> AdaFair:
        if not self.n_estimators >= 1:
            raise ValueError(f"n_estimators must be 1 or more, got {self.n_estimators!r}")
        y, self.classes_ = check_labels(y)
        groups = two_groups(sensitive_features, len(y), "AdaFair")
        learner = DecisionTreeClassifier(max_depth=1, random_state=0)
        learner = learner if self.estimator is None else self.estimator
        weight, margin = np.full(len(y), 1 / len(y)), np.zeros(len(y))
        learners: list[Any] = []
        votes: list[float] = []
        scores: list[float] = []
        for t in range(self.n_estimators):
            fitted = clone(learner).fit(X, y, sample_weight=weight)
            share = fitted.predict_proba(X)[:, 1]
            h = np.where(share > 0.5, 1.0, -1.0)
            wrong = h != y
            error = float(weight[wrong].sum())
            if error >= 0.5 and learners:
                break
            votes.append(float(np.log((1 - max(error, 1e-16)) / max(error, 1e-16))))
            learners.append(fitted)
            margin += votes[-1] * h
            right = rates_by_group(y, np.where(margin > 0, 1.0, -1.0), groups)
            scores.append(self._score(y, margin, right) if t else np.inf)
            if not 0 < error < 0.5:
                break
            cost = fairness_costs(y, groups, right) if t else np.zeros(len(y))
            confidence = np.maximum(share, 1 - share)
            weight[wrong] *= ((1 + cost) * np.exp(votes[-1] * confidence))[wrong]
            weight /= weight.sum()
        self.n_rounds_ = int(np.argmin(scores)) + 1
        self.estimators_ = learners[: self.n_rounds_]
        self.estimator_weights_ = np.array(votes[: self.n_rounds_])
        return self

    def _score(self, y: Array, margin: Array, right: Array) -> float:
        predicted = np.where(margin > 0, 1.0, -1.0)
        by_class = [np.mean(predicted[y == label] != label) for label in (-1, 1)]
        balanced, plain = np.mean(by_class), np.mean(predicted != y)
        gaps = np.abs(right[0] - right[1]).sum()
        return float(self.c * balanced + (1 - self.c) * plain + gaps)

    def decision_function(self, X: Any) -> Array:
        check_is_fitted(self)
        margin = np.zeros(len(X))
        for learner, vote in zip(self.estimators_, self.estimator_weights_, strict=True):
            margin += vote * np.where(learner.predict_proba(X)[:, 1] > 0.5, 1.0, -1.0)
        return margin

    def predict(self, X: Any) -> NDArray[Any]:
        return self._labels(self.decision_function(X) > 0)


def rates_by_group(y: Array, predicted: Array, groups: Codes) -> Array:
    """Share predicted right of each group (row) and label -1, +1 (column); 0 where it has none."""
    cell = 2 * groups + (y > 0)
    count = np.bincount(cell, minlength=4)
    right = np.bincount(cell, predicted == y, minlength=4)
    rates: Array = (right / np.maximum(count, 1)).reshape(2, 2)
    return rates


def fairness_costs(y: Array, groups: Codes, right: Array) -> Array:
    """u_i: how far the group's rate lies below the other group's, for the row's label."""
    below = np.maximum(right[::-1] - right, 0.0)
    cost: Array = below[groups, (y > 0).astype(np.intp)]
    return cost
