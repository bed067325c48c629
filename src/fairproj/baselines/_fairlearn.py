"""Methods that fairlearn implements, with the signature of the other baselines.

fairlearn is an optional dependency and imported where it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from fairproj.baselines._wrapper import Wrapper, find_supported
from fairproj.data.checks import Groups, check_groups, counted, listing

# fairlearn's class for each statistic of the registry.
_MOMENTS = {
    "demographic_parity": "DemographicParity",
    "equal_opportunity": "TruePositiveRateParity",
    "false_positive_rate_parity": "FalsePositiveRateParity",
    "equalized_odds": "EqualizedOdds",
    "accuracy_parity": "ErrorRateParity",
}


class Mitigated(Wrapper):
    """A classifier that fairlearn trains; with one group, the plain estimator."""

    group_values_: list[Any]
    mitigator_: Any

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> Self:
        """Train on X, y and the rows' groups.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Two classes of any kind.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            The groups; None means one group, and the estimator is trained as it is.

        Returns
        -------
        self
        """
        mitigator = self._mitigator()
        sample = self._prepare(X, y, sensitive_features)
        positive = (sample.y > 0).astype(int)
        self.group_values_ = sample.groups.values
        self.mitigator_ = (
            self._inner().fit(sample.X, positive)
            if len(self.group_values_) == 1
            else mitigator.fit(sample.X, positive, sensitive_features=self._names(sample.groups))
        )
        return self

    def _mitigator(self) -> Any:
        """fairlearn's object, not fitted."""
        raise NotImplementedError

    def _names(self, groups: Groups) -> NDArray[Any]:
        """The name of each row's group, the same at fit and at predict."""
        known = Groups(groups.codes, self.group_values_)
        names = dict(zip(known.values, known.names, strict=True))
        return np.array([names[value] for value in groups.values], dtype=object)[groups.codes]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False  # fairlearn refuses sparse matrices
        return tags


class ExponentiatedGradient(Mitigated):
    """The reductions approach (Agarwal et al. 2018), by fairlearn.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The learner that the reduction calls up to ``max_iter`` times or more; it must take
        ``sample_weight``. By default AdaBoost.
    constraints : str, default="equal_opportunity"
        A name as in `FairProjClassifier`.
    epsilon : float, default=0.05
        fairlearn's ``difference_bound``, and its ``eps`` as well. It bounds the distance of each
        group's rate from the rate of all, so that two groups may differ by up to twice as much.
    max_iter : int, default=50
    random_state : int, default=0
        The result is a randomised mixture; this fixes what it draws at predict.

    Attributes
    ----------
    mitigator_ : fairlearn.reductions.ExponentiatedGradient
        Or the plain estimator, where training had one group.
    group_values_ : list
        The groups of the training rows.
    n_iter_ : int
        Number of iterations.
    classes_ : array of shape (2,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.
    """

    def __init__(
        self,
        estimator: Any = None,
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

    @property
    def n_iter_(self) -> int:
        return int(getattr(self.mitigator_, "last_iter_", 0)) + 1

    def _mitigator(self) -> Any:
        statistic = find_supported(
            self.constraints, "ExponentiatedGradient", lambda known: known.name in _MOMENTS
        )
        reductions = fairlearn("reductions")
        moment = getattr(reductions, _MOMENTS[statistic.name])
        return reductions.ExponentiatedGradient(
            self._inner(),
            constraints=moment(difference_bound=self.epsilon),
            eps=self.epsilon,
            max_iter=self.max_iter,
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row, drawn from the mixture with ``random_state``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self)
        X = self._check_features(X, reset=False)
        if len(self.group_values_) == 1:
            return self._labels(self.mitigator_.predict(X))
        return self._labels(self.mitigator_.predict(X, random_state=self.random_state))


class ThresholdOptimizer(Mitigated):
    """Group-specific thresholds on a classifier's scores (Hardt et al. 2016), by fairlearn.

    It needs the groups at predict as well: ``predict(X, sensitive_features=...)``.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        By default AdaBoost.
    constraints : str, default="equal_opportunity"
        A name as in `FairProjClassifier`, except ``"accuracy_parity"``.
    random_state : int, default=0
        Thresholds may be randomised; this fixes what is drawn at predict.

    Attributes
    ----------
    mitigator_ : fairlearn.postprocessing.ThresholdOptimizer
        Or the plain estimator, where training had one group.
    group_values_ : list
        The groups of the training rows.
    classes_ : array of shape (2,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X had names.
    """

    def __init__(
        self,
        estimator: Any = None,
        constraints: str = "equal_opportunity",
        *,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.constraints = constraints
        self.random_state = random_state

    def _mitigator(self) -> Any:
        statistic = find_supported(
            self.constraints,
            "ThresholdOptimizer",
            lambda known: all(rate.outcome == "positive" for rate in known.rates),
        )
        names = [f"{rate.name}_parity" for rate in statistic.rates]  # as fairlearn calls them
        return fairlearn("postprocessing").ThresholdOptimizer(
            estimator=self._inner(),
            constraints=names[0] if len(names) == 1 else statistic.name,
            predict_method="auto",
        )

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            The groups; needed unless training had one group only.

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self)
        X = self._check_features(X, reset=False)
        groups = self._known_groups(sensitive_features, np.shape(X)[0])
        if groups is None or len(self.group_values_) == 1:
            return self._labels(self.mitigator_.predict(X))
        predicted = self.mitigator_.predict(
            X, sensitive_features=self._names(groups), random_state=self.random_state
        )
        return self._labels(predicted)

    def _known_groups(self, sensitive_features: Any, n_rows: int) -> Groups | None:
        if sensitive_features is None:
            if len(self.group_values_) == 1:
                return None
            raise ValueError(
                f"training had {counted(len(self.group_values_), 'group')} and each has its own "
                "threshold; "
                "pass sensitive_features to predict"
            )
        groups = check_groups(sensitive_features, n_rows)
        unknown = [value for value in groups.values if value not in self.group_values_]
        if unknown:
            raise ValueError(
                f"sensitive_features has groups that training lacked: {listing(unknown)}; "
                "their thresholds are unknown"
            )
        return groups


def fairlearn(module: str) -> Any:
    """A module of fairlearn, or an error with the command that installs it."""
    try:
        return import_module(f"fairlearn.{module}")
    except ImportError:
        raise ImportError(
            "this baseline needs fairlearn; install it with pip install 'fairproj[baselines]'"
        ) from None
