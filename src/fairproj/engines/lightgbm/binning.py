"""Data in LightGBM's bins, such that a dense column of few values has a bin for each value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
from scipy import sparse

from fairproj.data.types import Array, Matrix

SAMPLED_ROWS = 200_000  # LightGBM's default for finding bins
_MANY_BINS = 1 << 20


def bin_rows(
    matrix: Matrix,
    params: dict[str, Any],
    categorical: list[int],
    feature_names: Sequence[str] | None,
    *,
    exact: bool = True,
) -> lgb.Dataset:
    """Bin the training rows.

    Three properties of LightGBM need care where trees are to be ``exact``. It splits its budget of
    bins between negative and positive values by their counts, and so may merge values of a column
    with far fewer values than bins: a column of at most ``max_bin`` values gets an unlimited
    budget. It drops the rarest category of a column without missing values if that is rarer than
    1 %: a last row without any category, and without weight, keeps it. It looks at 200,000 rows
    only: at all of them, where something rare matters.

    The result does not depend on the order of the rows, up to 200,000 of them. Without ``exact``,
    the bins are those that LightGBM makes for any data.
    """
    data: Any = matrix
    if exact:
        params = _exact_params(matrix, params, categorical)
        if categorical:
            data = [matrix, _row_without_categories(matrix, categorical)]
    return lgb.Dataset(
        data,
        params=params,
        categorical_feature=categorical,
        feature_name=_plain_names(feature_names, matrix.shape[1]),
    ).construct()


def bin_held_out(matrix: Matrix, training: lgb.Dataset) -> lgb.Dataset:
    """Put other rows into the bins of the training rows."""
    return training.create_valid(matrix, params=dict(training.params)).construct()


def binning_key(params: dict[str, Any], n_rows: int) -> tuple[Any, ...]:
    """What the bins of the same rows depend on."""
    names = ["max_bin", "min_data_in_bin", "feature_pre_filter", "num_threads"]
    if params["feature_pre_filter"]:  # drops columns that no split can use
        names.append("min_data_in_leaf")
    if n_rows > SAMPLED_ROWS:
        names.append("seed")
    return tuple(params.get(name) for name in names)


def _exact_params(matrix: Matrix, params: dict[str, Any], categorical: list[int]) -> dict[str, Any]:
    n_rows, n_columns = matrix.shape
    n_rows += bool(categorical)
    if n_rows > SAMPLED_ROWS and (categorical or _has_missing(matrix)):
        params = params | {"bin_construct_sample_cnt": n_rows}
    few = columns_of_few_values(matrix, params["max_bin"])
    if few:
        budget = [_MANY_BINS if c in few else params["max_bin"] for c in range(n_columns)]
        params = params | {"max_bin_by_feature": budget}
    return params


def _row_without_categories(matrix: Array, categorical: list[int]) -> Array:
    """The least value of every numeric column, which does not depend on the order of the rows."""
    row = np.fmin.reduce(matrix, axis=0, keepdims=True)
    row[:, categorical] = np.nan
    return row


def columns_of_few_values(matrix: Matrix, max_bin: int) -> set[int]:
    """Dense columns with at most ``max_bin`` different values."""
    if sparse.issparse(matrix):
        return set()
    sample = np.sort(matrix[:: max(1, len(matrix) // (16 * max_bin))], axis=0)
    changes = (sample[1:] != sample[:-1]) & ~np.isnan(sample[1:])
    maybe = np.flatnonzero(changes.sum(axis=0) < max_bin)  # no column of few values is missed
    return {int(c) for c in maybe if pd.Series(matrix[:, c]).nunique() <= max_bin}


def _has_missing(matrix: Matrix) -> bool:
    if sparse.issparse(matrix):
        return bool(np.isnan(matrix.data).any())
    return bool(np.isnan(matrix.min(axis=0)).any())


def _plain_names(names: Sequence[str] | None, n_columns: int) -> Any:
    """Names that LightGBM's text format can hold, or its own."""
    if names is None:
        return "auto"
    plain = [re.sub(r"[^\w.-]", "_", str(name)) for name in names]
    return plain if len(set(plain)) == n_columns and all(plain) else "auto"
