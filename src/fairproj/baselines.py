"""Other people's methods as ordinary scikit-learn classifiers, to compare with.

Each takes ``fit(X, y, *, sensitive_features, sample_weight=None)`` like `FairProjClassifier`.
fairlearn, where it is used, is imported inside the methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from fairproj._validation import Array, check_groups, check_labels, check_weights, listing

__all__ = ["ExponentiatedGradient", "Reweighing", "ThresholdOptimizer", "reweighing_weights"]

_MOMENTS = {
    "demographic_parity": "DemographicParity",
    "equal_opportunity": "TruePositiveRateParity",
    "true_positive_rate_parity": "TruePositiveRateParity",
    "false_positive_rate_parity": "FalsePositiveRateParity",
    "equalized_odds": "EqualizedOdds",
}


def reweighing_weights(y: Any, sensitive_features: Any, sample_weight: Any = None) -> Array:
    """Weights that make label and group independent (Kamiran & Calders 2012).

    A row of group a and label y gets P(a) P(y) / P(a, y), times its own weight.
    """
    signs, _ = check_labels(y)
    weight = check_weights(sample_weight, len(signs))
    groups = check_groups(sensitive_features, len(signs)).codes
    label = (signs > 0).astype(np.intp)
    joint = np.zeros((groups.max() + 1, 2))
    np.add.at(joint, (groups, label), weight)
    joint /= weight.sum()
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    ratio = np.divide(independent, joint, out=np.zeros_like(joint), where=joint > 0)
    balanced: Array = ratio[groups, label] * weight
    return balanced


class _Wrapper(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the baselines share: an inner estimator, two classes, binary tags."""

    classes_: NDArray[Any]

    def _labels(self, ones: Any) -> NDArray[Any]:
        return self.classes_[np.asarray(ones).astype(np.intp)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class Reweighing(_Wrapper):
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

    def predict(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))


class ExponentiatedGradient(_Wrapper):
    """The reductions approach (Agarwal et al. 2018), by fairlearn.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The learner that the reduction calls, again and again.
    constraints : str
        Named as in `FairProjClassifier`.
    epsilon : float
        Slack of the constraint: fairlearn's ``difference_bound``.
    max_iter : int, default=50
    random_state : int, default=0
        The result is a randomised mixture; this fixes what it draws at predict.
    """

    def __init__(
        self,
        estimator: Any,
        constraints: str = "equal_opportunity",
        epsilon: float = 0.05,
        *,
        max_iter: int = 50,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.constraints = constraints
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> ExponentiatedGradient:
        reductions = _fairlearn("reductions")
        signs, self.classes_ = check_labels(y)
        moment = getattr(reductions, _MOMENTS[_known(self.constraints)])
        self.mitigator_ = reductions.ExponentiatedGradient(
            clone(self.estimator),
            constraints=moment(difference_bound=self.epsilon),
            eps=self.epsilon,
            max_iter=self.max_iter,
        )
        ones = (signs > 0).astype(int)
        self.mitigator_.fit(X, ones, sensitive_features=np.asarray(sensitive_features))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return self._labels(self.mitigator_.predict(X, random_state=self.random_state))


class ThresholdOptimizer(_Wrapper):
    """Group-specific thresholds on a classifier's scores (Hardt et al. 2016), by fairlearn.

    It needs the groups at predict as well: ``predict(X, sensitive_features=...)``.

    Parameters
    ----------
    estimator : scikit-learn classifier
    constraints : str
        Named as in `FairProjClassifier`.
    random_state : int, default=0
        Thresholds may be randomised; this fixes what is drawn at predict.
    """

    def __init__(
        self, estimator: Any, constraints: str = "equal_opportunity", *, random_state: int = 0
    ) -> None:
        self.estimator = estimator
        self.constraints = constraints
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> ThresholdOptimizer:
        postprocessing = _fairlearn("postprocessing")
        signs, self.classes_ = check_labels(y)
        name = _known(self.constraints)
        name = "true_positive_rate_parity" if name == "equal_opportunity" else name
        self.optimizer_ = postprocessing.ThresholdOptimizer(
            estimator=clone(self.estimator), constraints=name, predict_method="auto"
        )
        ones = (signs > 0).astype(int)
        self.optimizer_.fit(X, ones, sensitive_features=np.asarray(sensitive_features))
        return self

    def predict(self, X: Any, *, sensitive_features: Any) -> NDArray[Any]:
        check_is_fitted(self)
        groups = np.asarray(sensitive_features)
        found = self.optimizer_.predict(
            X, sensitive_features=groups, random_state=self.random_state
        )
        return self._labels(found)


def _known(constraints: str) -> str:
    if constraints not in _MOMENTS:
        raise ValueError(
            f"constraints={constraints!r} is unknown; use one of {listing(list(_MOMENTS))}"
        )
    return constraints


def _fairlearn(module: str) -> Any:
    try:
        from importlib import import_module

        return import_module(f"fairlearn.{module}")
    except ImportError:
        raise ImportError(
            "this baseline needs fairlearn; install it with pip install 'fairproj[baselines]'"
        ) from None
