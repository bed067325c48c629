"""Predictions for Dask collections, computed when they are needed."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairproj.estimators.base import BoostedClassifier


def map_rows(
    model: BoostedClassifier,
    method: str,
    X: Any,
    dtype: np.dtype[Any],
    columns: NDArray[Any] | None,
) -> Any:
    """What a method of a fitted model returns for the rows of a Dask collection.

    ``columns`` are the names of the columns of a result that has several.
    """
    shared = dask.delayed(model, pure=False)
    if hasattr(X, "map_partitions"):
        meta: Any = pd.Series([], dtype=dtype)
        if columns is not None:
            meta = pd.DataFrame(np.empty((0, len(columns)), dtype=dtype), columns=columns)
        return X.map_partitions(_of_frame, shared, method, dtype, columns, meta=meta)
    X = X.rechunk({1: -1})
    size = {"drop_axis": 1} if columns is None else {"chunks": (X.chunks[0], (len(columns),))}
    meta = np.empty((0,) * (1 if columns is None else 2), dtype=dtype)
    return X.map_blocks(_of_array, shared, method, dtype, columns, dtype=dtype, meta=meta, **size)


def _of_array(
    X: Any, model: Any, method: str, dtype: np.dtype[Any], columns: NDArray[Any] | None
) -> NDArray[Any]:
    if len(X):
        values: NDArray[Any] = getattr(model, method)(X)
        return values
    return np.empty((0,) if columns is None else (0, len(columns)), dtype=dtype)


def _of_frame(
    X: Any, model: Any, method: str, dtype: np.dtype[Any], columns: NDArray[Any] | None
) -> Any:
    values = _of_array(X, model, method, dtype, columns)
    if columns is None:
        return pd.Series(values, index=X.index)
    return pd.DataFrame(values, index=X.index, columns=columns)
