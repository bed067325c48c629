"""Fits along a parameter on the same rows, the built-in trees' data binned for the first only."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from fairproj._classifier import FairProjClassifier
from fairproj._splits import FairStratifiedKFold
from fairproj._validation import take_rows

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


def path(
    estimator: Any, X: Any, y: Any, with_rows: dict[str, Any], settings: Sequence[dict[str, Any]]
) -> Iterator[tuple[Any, float]]:
    """A fitted model for each setting, and the seconds that it took.

    ``with_rows`` is what fit takes beside X and y.
    """
    engines: list[Any] = []
    varied = {name for setting in settings for name in setting}
    for setting in settings:
        model = clone(estimator).set_params(**setting)
        if bins_once(estimator, varied):
            model._engines = engines
        start = time.perf_counter()
        model.fit(X, y, **with_rows)
        yield model, time.perf_counter() - start


def folds_of(cv: Any, X: Any, y: Any, groups: Any) -> list[tuple[Any, Any]]:
    """Training and test rows of each fold; a number means `FairStratifiedKFold`."""
    if isinstance(cv, Integral):
        cv = FairStratifiedKFold(int(cv))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The groups parameter is ignored")
        return list(cv.split(X, y, groups) if hasattr(cv, "split") else cv)


def take(part: Any, rows: Any) -> Any:
    """Some rows of X, y or groups."""
    if part is None:
        return None
    return part.iloc[rows] if isinstance(part, pd.Series) else take_rows(part, np.asarray(rows))
