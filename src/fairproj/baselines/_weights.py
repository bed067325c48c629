"""Methods that choose weights and leave the training to any classifier that takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairproj.baselines._wrapper import Weighted, check_two_groups, find_supported
from fairproj.constraints import Rate, Statistic
from fairproj.data.cells import CellCounts, Cells
from fairproj.data.checks import check_aligned, check_groups, check_labels, check_weights
from fairproj.data.types import Array


def reweighing_weights(y: Any, sensitive_features: Any, sample_weight: Any = None) -> Array:
    """Weights that make label and group independent (Kamiran & Calders 2012).

    A row of group a and label y gets P(a) P(y) / P(a, y), times its own weight.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
        The groups; several columns are crossed.
    sample_weight : array-like of shape (n_rows,), optional

    Returns
    -------
    array of shape (n_rows,)
    """
    check_aligned(y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    signs, classes = check_labels(y)
    groups = check_groups(sensitive_features, len(signs), beside="y")
    return _independent(Cells.of(signs, groups, classes), check_weights(sample_weight, len(signs)))


def _independent(cells: Cells, weight: Array) -> Array:
    joint = cells.total(weight).reshape(-1, 2) / weight.sum()
    if len(joint) == 1:
        return weight
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    ratio = np.divide(independent, joint, out=np.zeros_like(joint), where=joint > 0)
    balanced: Array = ratio.ravel()[cells.index] * weight
    return balanced


class Reweighing(Weighted):
    """A classifier trained on reweighing's weights (Kamiran & Calders 2012).

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Any that takes ``sample_weight``; by default AdaBoost.

    Attributes
    ----------
    estimator_ : scikit-learn classifier
        The trained estimator.
    classes_ : array of shape (2,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.
    """

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Train on X, y and the rows' groups.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Two classes of any kind.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            The groups; None means one group, and the estimator is trained without reweighing.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        check_aligned(X=X, y=y, sample_weight=sample_weight)
        sample = self._prepare(X, y, sensitive_features)
        weight = _independent(sample.cells, check_weights(sample_weight, len(sample)))
        self.estimator_ = self._inner().fit(sample.X, sample.labels, sample_weight=weight)
        return self


class FAB(Weighted):
    """Boosting from fairness-aware first weights: our version of FAB (Song, Liu & Jiang 2024).

    FAB ("Adaptive Boosting with Fairness-aware Reweighting Technique for Fair Classification") is
    AdaBoost started from::

        s_i = 1/n + trade_off ([i in G1] / |G1| - [i in G0] / |G0|)

    where G1 holds the rows of the group with the higher error rate and G0 those of the other: all
    rows, or those of one label. The error under s is then the error plus ``trade_off`` times the
    gap of the two groups' error rates, which AdaBoost's bound covers. Written after the published
    code (github.com/sxb2001/FAB), which does not change the later rounds of AdaBoost. There the
    user names the group with the higher error rate; here a first fit on equal weights finds it.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The boosting to start, or any classifier that takes ``sample_weight``; by default AdaBoost.
    constraints : {"equal_opportunity", "false_positive_rate_parity", "accuracy_parity"}
        Whose gap is weighed.
    trade_off : float, default=0.05
        At most ``|G0| / n``, where the weights reach zero.

    Attributes
    ----------
    estimator_ : scikit-learn classifier
        The trained estimator.
    classes_ : array of shape (2,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.
    """

    def __init__(
        self,
        estimator: Any = None,
        constraints: str = "equal_opportunity",
        trade_off: float = 0.05,
    ) -> None:
        self.estimator = estimator
        self.constraints = constraints
        self.trade_off = trade_off

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> Self:
        """Train on X, y and the rows' groups.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Two classes of any kind.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Two groups; None means one, and the estimator is trained on equal weights.

        Returns
        -------
        self
        """
        rate = find_supported(self.constraints, "FAB", _is_an_error_rate).rates[0]
        sample = self._prepare(X, y, sensitive_features)
        check_two_groups(sample, "FAB")
        self.estimator_ = self._inner().fit(sample.X, sample.labels)
        if len(sample.groups.values) == 2:
            wrong = np.asarray(self.estimator_.predict(sample.X)) != sample.labels
            weight = fab_weights(sample.cells, wrong, rate, self.trade_off)
            self.estimator_ = self._inner().fit(sample.X, sample.labels, sample_weight=weight)
        return self


def _is_an_error_rate(statistic: Statistic) -> bool:
    """Whether the gap is one of error rates, taken over all rows or over those of one label."""
    rate = statistic.rates[0]
    return len(statistic.rates) == 1 and (rate.outcome == "correct" or rate.event != "all")


def fab_weights(cells: Cells, wrong: NDArray[np.bool_], rate: Rate, trade_off: float) -> Array:
    """n s_i, with s_i as in `FAB`."""
    counts = CellCounts.of_cells(
        cells, cells.counts.astype(float), cells.total((~wrong).astype(float))
    )
    correct, size = replace(rate, outcome="correct").counts(counts)
    if not size.all():
        raise ValueError(
            f"group {cells.group_names[int(np.argmin(size))]!r} has no rows for its {rate.words}; "
            "drop the group or choose another constraint"
        )
    worse = int(np.argmin(correct / size))
    largest = size[1 - worse] / len(wrong)
    if not 0 <= trade_off <= largest:
        raise ValueError(
            f"trade_off={trade_off} would make weights negative; use a value from 0 to {largest:g}"
        )
    group = cells.group[cells.index]
    tilt = rate.inside(cells)[cells.index] * np.where(group == worse, 1.0, -1.0) / size[group]
    weight: Array = 1 + len(wrong) * trade_off * tilt
    return weight


class AdaptiveReweighting(Weighted):
    """Weights that follow the losses within each group and label: our version of Chai & Wang 2022.

    "Fairness with Adaptive Weights" gives every (group, label) cell the same total weight c and
    moves it to the rows with the larger losses l. In each cell::

        max_w  sum_i w_i l_i - penalty sum_i w_i^2   s.t.  w >= 0, sum_i w_i = c

    Fits and weights alternate until the weights hardly change. Written after the published code
    (github.com/cjy24/fairness_with_adaptive_weights), with the closed form of this problem, c = the
    size of the largest cell, and any classifier where the authors use logistic regression; they
    choose ``penalty`` by cross-validation.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Any that takes ``sample_weight`` and has ``predict_proba``; by default AdaBoost.
    penalty : float, default=5.0
        Larger values give more equal weights within a cell.
    max_iter : int, default=10
        The most fits.
    tol : float, default=1e-4
        Stop where the relative change of the weights (Euclidean norm) is at most this.

    Attributes
    ----------
    estimator_ : scikit-learn classifier
        The trained estimator.
    n_iter_ : int
        Number of fits.
    classes_ : array of shape (2,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.
    """

    def __init__(
        self, estimator: Any = None, penalty: float = 5.0, *, max_iter: int = 10, tol: float = 1e-4
    ) -> None:
        self.estimator = estimator
        self.penalty = penalty
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> Self:
        """Train on X, y and the rows' groups.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Two classes of any kind.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            The groups; None means one group, and the estimator is trained on equal weights.

        Returns
        -------
        self
        """
        if not self.penalty > 0:
            raise ValueError(f"penalty must be a positive number, got {self.penalty!r}")
        if not self.max_iter >= 1:
            raise ValueError(f"max_iter must be 1 or more, got {self.max_iter!r}")
        sample = self._prepare(X, y, sensitive_features)
        weight = np.ones(len(sample))
        for iteration in range(self.max_iter):
            self.n_iter_ = iteration + 1
            self.estimator_ = self._inner().fit(sample.X, sample.labels, sample_weight=weight)
            if len(sample.groups.values) == 1:
                break
            share = self.estimator_.predict_proba(sample.X)[:, 1]
            loss = -np.log(np.maximum(np.where(sample.y > 0, share, 1 - share), 1e-15))
            last, weight = weight, self._next_weights(sample.cells, loss)
            if np.linalg.norm(weight - last) <= self.tol * np.linalg.norm(last):
                break
        return self

    def _next_weights(self, cells: Cells, loss: Array) -> Array:
        weight = np.empty_like(loss)
        for cell in np.flatnonzero(cells.counts):
            rows = cells.index == cell
            weight[rows] = adaptive_weights(loss[rows], self.penalty, float(cells.counts.max()))
        return weight


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
