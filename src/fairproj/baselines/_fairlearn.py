"""Methods that fairlearn implements, behind the signature the other baselines have.

fairlearn is imported inside the methods: it is an extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from fairproj.data.checks import check_groups, check_labels, listing
from fairproj.baselines._wrapper import Wrapper

_MOMENTS = {
    "demographic_parity": "DemographicParity",
    "equal_opportunity": "TruePositiveRateParity",
    "true_positive_rate_parity": "TruePositiveRateParity",
    "false_positive_rate_parity": "FalsePositiveRateParity",
    "equalized_odds": "EqualizedOdds",
}


class ExponentiatedGradient(Wrapper):
    """The reductions approach (Agarwal et al. 2018), by fairlearn.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The learner that the reduction calls, again and again.
    constraints : str
        Named as in `FairProjClassifier`.
    epsilon : float
        fairlearn's ``difference_bound``, and its ``eps`` as well. It bounds the distance of each
        group's rate from the rate of all, so that two groups may differ by up to twice as much.
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
        reductions = fairlearn("reductions")
        signs, self.classes_ = check_labels(y)
        moment = getattr(reductions, _MOMENTS[_known(self.constraints)])
        self.mitigator_ = reductions.ExponentiatedGradient(
            clone(self.estimator),
            constraints=moment(difference_bound=self.epsilon),
            eps=self.epsilon,
            max_iter=self.max_iter,
        )
        ones = (signs > 0).astype(int)
        self.mitigator_.fit(X, ones, sensitive_features=_names(sensitive_features, len(ones)))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return self._labels(self.mitigator_.predict(X, random_state=self.random_state))


class ThresholdOptimizer(Wrapper):
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
        postprocessing = fairlearn("postprocessing")
        signs, self.classes_ = check_labels(y)
        name = _known(self.constraints)
        name = "true_positive_rate_parity" if name == "equal_opportunity" else name
        self.optimizer_ = postprocessing.ThresholdOptimizer(
            estimator=clone(self.estimator), constraints=name, predict_method="auto"
        )
        ones = (signs > 0).astype(int)
        self._groups = set(_names(sensitive_features, len(ones)))
        self.optimizer_.fit(X, ones, sensitive_features=_names(sensitive_features, len(ones)))
        return self

    def predict(self, X: Any, *, sensitive_features: Any) -> NDArray[Any]:
        check_is_fitted(self)
        groups = _names(sensitive_features, np.shape(X)[0], beside="X")
        unknown = set(groups) - self._groups
        if unknown:
            raise ValueError(
                f"sensitive_features has groups that training lacked: {listing(sorted(unknown))}; "
                "their thresholds are unknown"
            )
        found = self.optimizer_.predict(
            X, sensitive_features=groups, random_state=self.random_state
        )
        return self._labels(found)


def _names(sensitive_features: Any, n_rows: int, beside: str = "y") -> NDArray[Any]:
    """Each row's group by name, checked as everywhere here."""
    groups = check_groups(sensitive_features, n_rows, beside=beside)
    return np.array(groups.names, dtype=object)[groups.codes]


def _known(constraints: str) -> str:
    if constraints not in _MOMENTS:
        raise ValueError(
            f"constraints={constraints!r} is unknown; use one of {listing(list(_MOMENTS))}"
        )
    return constraints


def fairlearn(module: str) -> Any:
    try:
        return import_module(f"fairlearn.{module}")
    except ImportError:
        raise ImportError(
            "this baseline needs fairlearn; install it with pip install 'fairproj[baselines]'"
        ) from None
