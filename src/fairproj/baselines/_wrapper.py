"""The base classes of the baselines, and how they look up constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from fairproj.constraints import Statistic, find_statistic, statistic_names
from fairproj.data.checks import check_aligned, listing
from fairproj.data.columns import check_table, is_frame
from fairproj.data.sample import Sample, make_sample
from fairproj.data.types import Array
from fairproj.data.user_warning import warn_user


class Wrapper(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes around another one."""

    estimator: Any
    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    @property
    def _template(self) -> Any:
        """The inner estimator, not fitted."""
        return self._default_estimator() if self.estimator is None else self.estimator

    def _default_estimator(self) -> Any:
        return AdaBoostClassifier(random_state=0)  # its stumps break ties at random

    def _inner(self) -> Any:
        return clone(self._template)

    def _prepare(self, X: Any, y: Any, sensitive_features: Any) -> Sample:
        """Validate what ``fit`` gets; without sensitive features, all rows are one group."""
        check_aligned(X=X, y=y, sensitive_features=sensitive_features)
        X = self._check_features(X, reset=True)
        sample = make_sample(X, y, sensitive_features, None)
        self.classes_ = sample.classes
        if len(sample.groups.values) == 1:
            groups = f"sensitive_features holds one group only ({sample.groups.values[0]!s})"
            if sensitive_features is None:
                groups = "no sensitive_features were given"
            warn_user(f"{groups}, so {type(self).__name__} has nothing to balance; pass the groups")
        return sample

    def _check_features(self, X: Any, *, reset: bool) -> Any:
        """X with its names and number of columns checked; data frames stay data frames."""
        check_table(X)
        if is_frame(X):
            validate_data(self, X, skip_check_array=True, reset=reset)
            return X
        accepted = get_tags(self).input_tags
        return validate_data(
            self,
            X,
            accept_sparse=accepted.sparse,
            dtype=None,
            ensure_all_finite="allow-nan" if accepted.allow_nan else True,
            reset=reset,
        )

    def _labels(self, positive: Any) -> NDArray[Any]:
        return self.classes_[np.asarray(positive).astype(np.intp)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags = get_tags(self._template).input_tags
        return tags


def _delegated(method: str) -> Any:
    """Make a method available where the inner estimator has it."""

    def has_method(wrapper: Wrapper) -> bool:
        getattr(getattr(wrapper, "estimator_", wrapper._template), method)
        return True

    return available_if(has_method)


class Weighted(Wrapper):
    """A method that only chooses the weights on which ``estimator_`` is trained."""

    estimator_: Any

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        return self._answer("predict", X)

    @_delegated("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The inner estimator's probability of each class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, 2)
        """
        return self._answer("predict_proba", X)

    @_delegated("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """The inner estimator's decision function.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        return self._answer("decision_function", X)

    def _answer(self, method: str, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        X = self._check_features(X, reset=False)
        return np.asarray(getattr(self.estimator_, method)(X))


def check_two_groups(sample: Sample, method: str) -> None:
    groups = sample.groups
    if len(groups.values) > 2:
        raise ValueError(
            f"{method} is defined for two groups, found {len(groups.values)} "
            f"({listing(groups.names)}); join groups, or use Reweighing"
        )


def find_supported(
    constraints: Any, method: str, supports: Callable[[Statistic], bool]
) -> Statistic:
    """The statistic of that name, where the method supports it."""
    names = [
        name
        for name in statistic_names(constraints=True)
        if find_statistic(name).kind == "difference" and supports(find_statistic(name))
    ]
    if not isinstance(constraints, str) or constraints not in names:
        raise ValueError(
            f"{method} does not support constraints={constraints!r}; use one of "
            f"{listing(names, 20)}"
        )
    return find_statistic(constraints)
