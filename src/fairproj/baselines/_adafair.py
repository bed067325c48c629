"""AdaFair: boosting that raises the cost of mistakes on the group with the lower rate so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import _num_samples, check_is_fitted

from fairproj.baselines._wrapper import Wrapper, check_two_groups
from fairproj.constraints import Rate
from fairproj.data.cells import CellCounts
from fairproj.data.sample import Sample
from fairproj.data.types import Array

_BY_LABEL = (
    Rate("true_negative_rate", "negative", "correct"),
    Rate("true_positive_rate", "positive", "correct"),
)


class AdaFair(Wrapper):
    """Cumulative fairness adaptive boosting: our version of AdaFair (Iosifidis & Ntoutsi 2019).

    Each round fits a learner h on weights D, with vote a = log((1 - error) / error). The ensemble
    so far then has true-positive and true-negative rates by group. A row whose label's rate is the
    lower one for its group has the cost u = the difference of the two rates, others u = 0. Rows
    that h gets wrong are weighted by::

        D_i <- D_i (1 + u_i) exp(a conf_i),   conf_i = the larger of h's two probabilities

    Of all rounds but the first, the one with the least ``c BER + (1 - c) ER + |dTPR| + |dTNR|`` on
    the training rows is kept (ER: error rate; BER: mean of the two classes' error rates). Written
    after the published code (github.com/iosifidisvasileios/AdaFair), with one mistake corrected:
    costs of negatives follow the sign of dTNR, not of dTPR.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Any that takes ``sample_weight`` and has ``predict_proba``; by default a stump.
    n_estimators : int, default=100
        The most rounds.
    c : float, default=1.0
        Weight of the balanced error rate against the plain one, when the round is chosen.

    Attributes
    ----------
    estimators_ : list of scikit-learn classifiers
    estimator_weights_ : array of shape (n_rounds,)
        Their votes.
    n_rounds_ : int
        Number of rounds that are kept.
    classes_ : array of shape (2,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.
    """

    def __init__(self, estimator: Any = None, n_estimators: int = 100, *, c: float = 1.0) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.c = c

    def _default_estimator(self) -> DecisionTreeClassifier:
        return DecisionTreeClassifier(max_depth=1, random_state=0)

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> Self:
        """Train on X, y and the rows' groups.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Two classes of any kind.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Two groups; None means one, and all costs are zero.

        Returns
        -------
        self
        """
        if not self.n_estimators >= 1:
            raise ValueError(f"n_estimators must be 1 or more, got {self.n_estimators!r}")
        sample = self._prepare(X, y, sensitive_features)
        check_two_groups(sample, "AdaFair")
        learners, votes, scores = zip(*self._rounds(sample), strict=True)
        self.n_rounds_ = int(np.argmin(scores)) + 1
        self.estimators_ = list(learners[: self.n_rounds_])
        self.estimator_weights_ = np.array(votes[: self.n_rounds_])
        return self

    def _rounds(self, sample: Sample) -> Iterator[tuple[Any, float, float]]:
        """The learner, vote and score of each round."""
        y = sample.y
        weight, margin = np.full(len(y), 1 / len(y)), np.zeros(len(y))
        for t in range(self.n_estimators):
            learner = self._inner().fit(sample.X, y, sample_weight=weight)
            share = learner.predict_proba(sample.X)[:, 1]
            h = np.where(share > 0.5, 1.0, -1.0)
            wrong = h != y
            error = float(weight[wrong].sum())
            if error >= 0.5 and t:
                return
            vote = float(np.log((1 - max(error, 1e-16)) / max(error, 1e-16)))
            margin += vote * h
            counts = CellCounts.of_rows(y > 0, margin > 0, sample.groups)
            yield learner, vote, self._score(counts) if t else np.inf
            if not 0 < error < 0.5:
                return
            cost = fairness_costs(sample, counts) if t else np.zeros(len(y))
            confidence = np.maximum(share, 1 - share)
            weight[wrong] *= ((1 + cost) * np.exp(vote * confidence))[wrong]
            weight /= weight.sum()

    def _score(self, counts: CellCounts) -> float:
        wrong, size = (counts.size - counts.correct).sum(axis=0), counts.size.sum(axis=0)
        balanced, plain = np.mean(wrong / size), wrong.sum() / size.sum()
        gaps = np.ptp(rates_by_label(counts), axis=0).sum()
        return float(self.c * balanced + (1 - self.c) * plain + gaps)

    def decision_function(self, X: Any) -> Array:
        """The sum of the votes; above zero means ``classes_[1]``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self)
        X = self._check_features(X, reset=False)
        margin = np.zeros(_num_samples(X))
        for learner, vote in zip(self.estimators_, self.estimator_weights_, strict=True):
            margin += vote * np.where(learner.predict_proba(X)[:, 1] > 0.5, 1.0, -1.0)
        return margin

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        return self._labels(self.decision_function(X) > 0)


def rates_by_label(counts: CellCounts) -> Array:
    """Share predicted right of each group (row) and label (column); 0 where it has no rows."""
    return np.nan_to_num(np.column_stack([rate.values(counts) for rate in _BY_LABEL]))


def fairness_costs(sample: Sample, counts: CellCounts) -> Array:
    """u_i: how far the group's rate lies below the other group's, for the row's label."""
    rates = rates_by_label(counts)
    cost: Array = (rates.max(axis=0) - rates).ravel()[sample.cells.index]
    return cost
