"""Tables of features: which kinds are accepted, and taking rows and columns out of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from scipy import sparse

from fairproj.data.checks import listing


def check_table(X: Any) -> None:
    """Refuse what is no table of rows and columns, before anything asks for its columns."""
    if X is None or isinstance(X, str | dict) or hasattr(X, "collect"):
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


def take_rows(values: Any, rows: Any) -> Any:
    """The given rows of an array, sparse matrix, data frame or series; None stays None."""
    if values is None:
        return None
    rows = np.asarray(rows)
    if isinstance(values, pd.DataFrame | pd.Series):
        return values.iloc[rows]
    if is_frame(values):
        return nw.from_native(values, eager_only=True)[rows.tolist(), :].to_native()
    if sparse.issparse(values):
        return values.tocsr()[rows]
    return np.asarray(values)[rows]


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
    names = _column_names(X)
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
    names = _column_names(X)
    named = is_frame(X) and all(isinstance(name, str) for name in names)
    if not named and len(names) != n_features + len(columns):
        return X  # numbers as names tell nothing about what is missing
    keep = [i for i, name in enumerate(names) if name not in columns]
    return X if len(keep) == len(names) else _columns(X, keep)


def _column_names(X: Any) -> list[Any]:
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
