"""Methods that choose weights and leave the training to any classifier that takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from fairproj.data.checks import (
    Array,
    Codes,
    check_groups,
    check_labels,
    check_weights,
    listing,
)
from fairproj.baselines._wrapper import Weighted, two_groups


def reweighing_weights(y: Any, sensitive_features: Any, sample_weight: Any = None) -> Array:
    """Weights that make label and group independent (Kamiran & Calders 2012).

    A row of group a and label y gets P(a) P(y) / P(a, y), times its own weight.
    """
    signs, _ = check_labels(y)
    weight = check_weights(sample_weight, len(signs))
    groups = check_groups(sensitive_features, len(signs), beside="y").codes
    label = (signs > 0).astype(np.intp)
    joint = np.zeros((groups.max() + 1, 2))
    np.add.at(joint, (groups, label), weight)
    joint /= weight.sum()
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    ratio = np.divide(independent, joint, out=np.zeros_like(joint), where=joint > 0)
    balanced: Array = ratio[groups, label] * weight
    return balanced


class Reweighing(Weighted):
    """A classifier trained on reweighing's weights (Kamiran & Calders 2012).

    Parameters
    ----------
    estimator : scikit-learn classifier
        Any that takes ``sample_weight``.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any, sample_weight: Any = None
    ) -> Reweighing:
        _, self.classes_ = check_labels(y)
        weight = reweighing_weights(y, sensitive_features, sample_weight)
        self.estimator_ = clone(self.estimator).fit(X, y, sample_weight=weight)
        return self


# Which rows a rate is taken over: labels -1, +1 or both.
_EVENTS = {
    "equal_opportunity": (1,),
    "true_positive_rate_parity": (1,),
    "false_positive_rate_parity": (-1,),
    "accuracy": (-1, 1),
}


class FAB(Weighted):
    """Boosting from fairness-aware first weights: own version of FAB (Song, Liu and Jiang 2024).

    FAB ("Adaptive Boosting with Fairness-aware Reweighting Technique for Fair Classification") is
    AdaBoost started from::

        s_i = 1/n + trade_off ([i in G1] / |G1| - [i in G0] / |G0|)

    where G1 holds the rows of the group that fares worse and G0 those of the other: all rows, or
    those of one label. The error under s is then the error plus ``trade_off`` times the gap of the
    two groups' error rates, which AdaBoost's bound covers. Written after the published code
    (github.com/sxb2001/FAB), which leaves the later rounds of AdaBoost as they are. The code is
    told which group fares worse; here a first fit on equal weights tells.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The boosting to start: AdaBoost, or any that takes ``sample_weight``.
    constraints : {"equal_opportunity", "false_positive_rate_parity", "accuracy"}
        Whose gap is weighed.
    trade_off : float, default=0.05
        At most ``|G0| / n``, where the weights reach zero.
    """

    def __init__(
        self, estimator: Any, constraints: str = "equal_opportunity", trade_off: float = 0.05
    ) -> None:
        self.estimator = estimator
        self.constraints = constraints
        self.trade_off = trade_off

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> FAB:
        if self.constraints not in _EVENTS:
            raise ValueError(
                f"constraints={self.constraints!r} is unknown; use one of {listing(list(_EVENTS))}"
            )
        signs, self.classes_ = check_labels(y)
        groups = two_groups(sensitive_features, len(signs), "FAB")
        wrong = clone(self.estimator).fit(X, y).predict(X) != np.asarray(y)
        weight = fab_weights(signs, groups, wrong, _EVENTS[self.constraints], self.trade_off)
        self.estimator_ = clone(self.estimator).fit(X, y, sample_weight=weight)
        return self


def fab_weights(
    signs: Array, groups: Codes, wrong: Any, event: tuple[int, ...], trade_off: float
) -> Array:
    """n s_i, with s_i as in `FAB`."""
    members = [np.isin(signs, event) & (groups == group) for group in (0, 1)]
    if not all(rows.any() for rows in members):
        raise ValueError("a group has no rows of the label whose rate is asked for; drop the group")
    worse = int(np.mean(wrong[members[1]]) > np.mean(wrong[members[0]]))
    sizes = [rows.sum() for rows in members]
    largest = sizes[1 - worse] / len(signs)
    if not 0 <= trade_off <= largest:
        raise ValueError(
            f"trade_off={trade_off} would make weights negative; use a value from 0 to {largest:g}"
        )
    tilt = members[worse] / sizes[worse] - members[1 - worse] / sizes[1 - worse]
    weight: Array = 1 + len(signs) * trade_off * tilt
    return weight


class AdaptiveReweighting(Weighted):
    """Weights that follow the losses within each group and label: own version of Chai & Wang 2022.

    "Fairness with Adaptive Weights" gives every (group, label) cell the same total weight c and
    moves it to the rows with the larger losses l. In each cell::

        max_w  sum_i w_i l_i - penalty sum_i w_i^2   s.t.  w >= 0, sum_i w_i = c

    Fit and weights alternate until the weights stand still. Written after the published code
    (github.com/cjy24/fairness_with_adaptive_weights), with the closed form of this problem, c = the
    size of the largest cell, and any classifier where the authors use logistic regression; they
    choose ``penalty`` by cross-validation.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Any that takes ``sample_weight`` and has ``predict_proba``.
    penalty : float, default=5.0
        Towards equal weights within a cell.
    max_iter : int, default=10
    tol : float, default=1e-4
        Relative change of the weights (Euclidean norm) that counts as standing still.
    """

    def __init__(
        self, estimator: Any, penalty: float = 5.0, *, max_iter: int = 10, tol: float = 1e-4
    ) -> None:
        self.estimator = estimator
        self.penalty = penalty
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> AdaptiveReweighting:
        if not self.penalty > 0:
            raise ValueError(f"penalty must be a positive number, got {self.penalty!r}")
        signs, self.classes_ = check_labels(y)
        groups = check_groups(sensitive_features, len(signs), beside="y").codes
        cell = 2 * groups + (signs > 0)
        total = float(np.bincount(cell).max())
        weight = np.ones(len(signs))
        for iteration in range(self.max_iter):
            self.n_iter_ = iteration + 1
            self.estimator_ = clone(self.estimator).fit(X, y, sample_weight=weight)
            share = self.estimator_.predict_proba(X)[:, 1]
            loss = -np.log(np.maximum(np.where(signs > 0, share, 1 - share), 1e-15))
            last, weight = weight, np.empty_like(weight)
            for members in (cell == code for code in np.unique(cell)):
                weight[members] = adaptive_weights(loss[members], self.penalty, total)
            if np.linalg.norm(weight - last) <= self.tol * np.linalg.norm(last):
                break
        return self


def adaptive_weights(loss: Array, penalty: float, total: float) -> Array:
    """argmax of sum w l - penalty sum w^2 over w >= 0, sum w = total.

    w_i = max(l_i - mu, 0) / (2 penalty); mu is found among the k largest losses for the one k at
    which it lies between the k-th and the next.
    """
    falling = np.sort(loss)[::-1]
    counts = np.arange(1, len(loss) + 1)
    levels = (np.cumsum(falling) - 2 * penalty * total) / counts
    level = levels[np.flatnonzero(falling > levels)[-1]]
    weight: Array = np.maximum(loss - level, 0) / (2 * penalty)
    return weight
