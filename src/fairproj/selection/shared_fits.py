"""Fits along a parameter on the same rows: their folds, and data binned for the first only."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from fairproj.estimators.fairproj import FairProjClassifier
from fairproj.selection.splits import FairStratifiedKFold

GAPS = ("equal_opportunity", "demographic_parity", "false_positive_rate", "equalized_odds")


# What may differ between fits that share binned data: nothing that an engine is built from.
_OF_NO_CONCERN = {"epsilon", "enforce", "constraints", "tilt_step", "tilt_decay", "n_estimators"}


def bins_once(estimator: Any, varied: Collection[str]) -> bool:
    """Whether fits that differ in these parameters can share binned data."""
    return (
        set(varied) <= _OF_NO_CONCERN
        and isinstance(estimator, FairProjClassifier)
        and estimator.estimator is None
        and estimator.validation_fraction is None
        and not estimator.warm_start
    )


def fit_one(
    estimator: Any,
    X: Any,
    y: Any,
    with_rows: dict[str, Any],
    setting: dict[str, Any],
    engines: list[Any] | None,
) -> Any:
    """A model of that setting; ``engines`` holds binned data between fits that may share it.

    ``with_rows`` is what fit takes beside X and y.
    """
    model = clone(estimator).set_params(**setting)
    if engines is not None:
        model._engines = engines
    return model.fit(X, y, **with_rows)


def folds_of(cv: Any, X: Any, y: Any, groups: Any) -> list[tuple[Any, Any]]:
    """Training and test rows of each fold; a number means `FairStratifiedKFold`."""
    if cv is None or isinstance(cv, Integral):
        cv = FairStratifiedKFold(5 if cv is None else int(cv))
    if isinstance(cv, str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        raise ValueError(f"cv={cv!r} must be a number of folds, a splitter or a list of splits")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The groups parameter is ignored")
        splits = list(cv.split(X, y, groups) if hasattr(cv, "split") else cv)
    if not splits:
        raise ValueError("cv holds no split; give at least one pair of training and test rows")
    return [(_positions(train), _positions(test)) for train, test in splits]


def _positions(rows: Any) -> Any:
    """Rows by position, also where they came as a mask."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype.kind == "b" else rows
