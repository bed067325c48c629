"""What the baselines share: an inner estimator, two classes, and how they refuse a third group.

Apart so that each method's file holds its method alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from fairproj.data.checks import Array, Codes, check_groups, listing


class Wrapper(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes around another one."""

    classes_: NDArray[Any]

    def _labels(self, ones: Any) -> NDArray[Any]:
        return self.classes_[np.asarray(ones).astype(np.intp)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class Weighted(Wrapper):
    """A method that only chooses the weights on which ``estimator_`` was trained."""

    estimator_: Any

    def predict(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))


def two_groups(sensitive_features: Any, n_rows: int, method: str) -> Codes:
    """Each row's group as 0 or 1."""
    groups = check_groups(sensitive_features, n_rows, beside="y")
    if len(groups.values) != 2:
        advice = "join groups" if len(groups.values) > 2 else "give it rows of both"
        raise ValueError(
            f"{method} is defined for two groups, found {len(groups.values)} "
            f"({listing(groups.names)}); {advice}, or use Reweighing"
        )
    return groups.codes
