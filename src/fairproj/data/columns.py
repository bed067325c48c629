"""Tables of features: which kinds are accepted, and taking rows and columns out of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import validate_data

from fairproj.data.checks import listing

GROUPS_TWICE = (
    "groups are given twice, by sensitive_columns and by sensitive_features; use one of them"
)


def check_table(X: Any) -> None:
    """Refuse what is no table of rows and columns, before anything asks for its columns."""
    read_in_parts = isinstance(X, str | os.PathLike) or hasattr(X, "parts")
    if X is None or isinstance(X, dict) or hasattr(X, "collect") or read_in_parts:
        hint = "call collect() on it" if hasattr(X, "collect") else "pass the features of each row"
        raise ValueError(
            f"X must be an array, a sparse matrix or a data frame, got {type(X).__name__}; {hint}"
        )
    if isinstance(X, pd.DataFrame) and not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()].unique().tolist()
        raise ValueError(f"X has several columns called {listing(twice)}; rename or drop some")


def is_frame(X: Any) -> bool:
    """Whether X is a data frame (pandas, polars, Arrow table) rather than an array."""
    return isinstance(nw.from_native(X, pass_through=True, eager_only=True), nw.DataFrame)


def is_lazy(X: Any) -> bool:
    """Whether X is a `fairproj.data.batches.BatchMatrix`, whose rows are not in memory."""
    return hasattr(X, "batches")


def take_rows(values: Any, rows: Any) -> Any:
    """The given rows of an array, sparse matrix, data frame or series; None stays None."""
    if values is None:
        return None
    if is_lazy(values):
        return values.take(rows)
    rows = np.asarray(rows)
    if isinstance(values, pd.DataFrame | pd.Series):
        return values.iloc[rows]
    if is_frame(values):
        return nw.from_native(values, eager_only=True)[rows.tolist(), :].to_native()
    if sparse.issparse(values):
        return values.tocsr()[rows]
    return np.asarray(values)[rows]


def split_columns(
    X: Any, sensitive_features: Any, sensitive_columns: Any
) -> tuple[Any, Any, list[Any], list[int] | None]:
    """X without sensitive columns, the groups, those columns, and where the others stood."""
    check_table(X)
    if sensitive_columns is None:
        return X, sensitive_features, [], None
    if sensitive_features is not None:
        raise ValueError(GROUPS_TWICE)
    return split_sensitive_columns(X, sensitive_columns)


def check_numbers(estimator: Any, X: Any, *, accepts: Collection[str], **options: Any) -> Any:
    """An array of numbers, checked as scikit-learn does, which also sets ``n_features_in_``.

    ``accepts`` is that of an engine; ``options`` are those of ``validate_data``.
    """
    # Sums by which scikit-learn looks for missing values may overflow.
    with text_explained(), np.errstate(over="ignore", invalid="ignore"):
        return validate_data(
            estimator,
            X,
            accept_sparse="csr" if "sparse" in accepts else False,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan" if "missing" in accepts else True,
            **options,
        )


def refuse_complex(X: Any) -> None:
    kind = getattr(getattr(X, "dtype", None), "kind", None)
    if kind == "c":
        raise ValueError(
            "Complex data not supported: X holds complex numbers; split them into real columns"
        )


@contextmanager
def text_explained() -> Iterator[None]:
    """Turn NumPy's complaint about text in an array into what to do about it."""
    try:
        yield
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        raise ValueError(
            f"X is an array that holds text ({error}); pass a data frame, whose text columns are "
            "read as categories, or turn the text into numbers"
        ) from None


def split_sensitive_columns(X: Any, columns: Any) -> tuple[Any, Any, list[Any], list[int]]:
    """X without the sensitive columns, these, their names (or positions), the others' positions."""
    wanted: list[Any] = [columns] if isinstance(columns, str | int | np.integer) else [*columns]
    if not wanted:
        raise ValueError("sensitive_columns is empty; name at least one column of X, or pass None")
    names = column_names(X)
    masked = any(isinstance(column, bool | np.bool_) for column in wanted)
    positions = [] if masked else [_position(column, names) for column in wanted]
    if len(set(positions)) < len(wanted):
        raise ValueError(
            f"sensitive_columns={columns!r} must be names or positions of columns, each once"
        )
    if len(positions) == len(names):
        raise ValueError("sensitive_columns names every column of X; none is left to learn from")
    keep = [i for i in range(len(names)) if i not in positions]
    taken = [names[i] for i in positions]
    return _columns(X, keep), _columns(X, positions, dense=True), taken, keep


def drop_sensitive_columns(X: Any, columns: list[Any], n_features: int) -> Any:
    """X as the learners want it at predict, where the sensitive columns may or may not be there."""
    if not is_frame(X) and np.ndim(X) != 2:
        return X
    names = column_names(X)
    named = is_frame(X) and all(isinstance(name, str) for name in names)
    if not named and len(names) != n_features + len(columns):
        return X  # numbers as names tell nothing about what is missing
    keep = [i for i, name in enumerate(names) if name not in columns]
    return X if len(keep) == len(names) else _columns(X, keep)


def column_names(X: Any) -> list[Any]:
    """The names of a frame's columns, or positions."""
    if is_frame(X):
        return list(nw.from_native(X, eager_only=True).columns)
    shape = np.shape(X)
    if len(shape) != 2:
        raise ValueError(f"X must have two dimensions, rows and columns, got shape {shape}")
    return list(range(shape[1]))


def _position(column: Any, names: list[Any]) -> int:
    if column in names:
        return names.index(column)
    if isinstance(column, int | np.integer) and 0 <= column < len(names):
        return int(column)
    hint = f"its columns are {listing(names)}"
    if names == list(range(len(names))):
        hint = f"it has no column names, so give positions from 0 to {len(names) - 1}"
    raise ValueError(f"sensitive_columns names {column!r}, which X does not have; {hint}")


def _columns(X: Any, positions: list[int], *, dense: bool = False) -> Any:
    if is_frame(X):
        return nw.from_native(X, eager_only=True)[:, positions].to_native()
    if sparse.issparse(X):
        some = X.tocsc()[:, positions]
        return some.toarray() if dense else some.tocsr()
    return np.asarray(X)[:, positions]
