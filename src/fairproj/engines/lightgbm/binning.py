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
    held_out: Matrix | None = None,
) -> lgb.Dataset:
    """Bin the rows, those held out after those of training.

    Three properties of LightGBM need care. It splits its budget of bins between negative and
    positive values by their counts, and so may merge values of a column with far fewer values than
    bins: a column of at most ``max_bin`` values gets an unlimited budget. It drops the rarest
    category of a column without missing values if that is rarer than 1 %: a last row without any
    category, and without weight, keeps it. It looks at 200,000 rows only: at all of them, where
    something rare matters.

    The result does not depend on the order of the rows, up to 200,000 of them.
    """
    n_rows = matrix.shape[0] + bool(categorical) + (0 if held_out is None else held_out.shape[0])
    if n_rows > SAMPLED_ROWS and (categorical or _has_missing(matrix)):
        params = params | {"bin_construct_sample_cnt": n_rows}
    few = columns_of_few_values(matrix, params["max_bin"])
    if few:
        budget = [
            _MANY_BINS if column in few else params["max_bin"] for column in range(matrix.shape[1])
        ]
        params = params | {"max_bin_by_feature": budget}
    parts = [matrix] if held_out is None else [matrix, held_out]
    if categorical:
        parts.append(_row_without_categories(matrix, categorical))
    data: Any = parts if len(parts) > 1 else matrix
    if sparse.issparse(matrix) and len(parts) > 1:
        data = sparse.vstack(parts, format="csr")
    return lgb.Dataset(
        data,
        params=params,
        categorical_feature=categorical,
        feature_name=_plain_names(feature_names, matrix.shape[1]),
    ).construct()


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
