"""Columns of any table as numbers or codes, and their values in bins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from fairproj.data.columns import check_table, is_frame, take_rows
from fairproj.data.types import Array, Codes

_MOST_VALUES = 256  # of a column of numbers, each of which is a bin
_BINS = 128  # of a column with more


@dataclass(frozen=True)
class Column:
    """A column of X.

    Attributes
    ----------
    name : object
        Its name, or its position in an array.
    numbers : array of float
        Numbers, or the codes of text and categories; NaN marks a missing value.
    is_text : bool
        Whether the values are codes.
    is_time : bool
        Whether they are dates, times or time spans.
    """

    name: Any
    numbers: Array
    is_text: bool
    is_time: bool = False

    def bins(self) -> tuple[Codes, int]:
        """The bin of each row and the number of bins; missing values are a bin of their own.

        Each category and each of at most 256 numbers is a bin. More numbers are cut into 128 bins
        with about the same number of rows.
        """
        missing = np.isnan(self.numbers)
        if self.is_text:
            n_bins = int(np.nanmax(self.numbers, initial=-1.0)) + 1
            codes = np.where(missing, n_bins, self.numbers).astype(np.intp)
        else:
            edges = _edges(np.sort(self.numbers[~missing]))
            n_bins = len(edges) + 1
            codes = np.where(missing, n_bins, np.searchsorted(edges, self.numbers, side="right"))
        return codes, n_bins + 1


def _edges(values: Array) -> Array:
    """Where to cut sorted values: a value that equals an edge lies above it."""
    distinct: Array = values[np.append(True, values[1:] != values[:-1])[: len(values)]]
    if len(distinct) > _MOST_VALUES:
        distinct = np.unique(values[np.arange(_BINS) * len(values) // _BINS])
    return distinct[1:]


def read_columns(
    X: Any, max_rows: int, seed: int, positions: Sequence[int] | None = None
) -> tuple[list[Column], Codes]:
    """Columns of X, and the rows they are of: a random sample if there are many."""
    check_table(X)
    if not (is_frame(X) or sparse.issparse(X)):
        X = np.asarray(X)
    if len(np.shape(X)) != 2:
        raise ValueError(f"X must be a table of rows and columns, got shape {np.shape(X)}")
    rows = sample_rows(np.shape(X)[0], max_rows, seed)
    if len(rows) < np.shape(X)[0]:
        X = take_rows(X, rows)
    wanted = range(np.shape(X)[1]) if positions is None else positions
    return list(_columns(X, wanted)), rows


def sample_rows(n_rows: int, max_rows: int, seed: int) -> Codes:
    """At most ``max_rows`` of the rows, in their order."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    chosen = np.random.default_rng(seed).choice(n_rows, max_rows, replace=False)
    return np.sort(chosen)


def _columns(X: Any, positions: Sequence[int]) -> Iterator[Column]:
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        for position in positions:
            yield _from_series(frame.columns[position], frame[:, position])
    else:
        matrix = X.tocsc() if sparse.issparse(X) else X
        for position in positions:
            column = matrix[:, [position]]
            dense = column.toarray() if sparse.issparse(column) else column
            yield _from_array(position, dense.ravel())


def _from_series(name: Any, series: nw.Series[Any]) -> Column:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return Column(name, np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float), False)
    values = series.to_pandas()
    if isinstance(values.dtype, pd.CategoricalDtype):
        return Column(name, _with_missing(values.cat.codes.to_numpy()), True)
    if isinstance(values.dtype, pd.StringDtype):  # text already, unlike that of object columns
        return Column(name, _with_missing(pd.factorize(values)[0]), True)
    if values.dtype.kind in "Mm":
        numbers = values.astype("int64").to_numpy().astype(float)
        return Column(name, np.where(values.isna(), np.nan, numbers), False, is_time=True)
    return _from_array(name, values.to_numpy(dtype=object))


def _from_array(name: Any, values: NDArray[Any]) -> Column:
    if values.dtype.kind in "biuf":
        return Column(name, values.astype(float), False)
    present = values[~pd.isna(values)]
    if len(present) and all(isinstance(one, bool | int | float | np.number) for one in present):
        return Column(name, pd.to_numeric(pd.Series(values)).to_numpy(dtype=float), False)
    texts = pd.Series(values).astype(object).where(pd.notna(values))
    codes, _ = pd.factorize(texts.map(str, na_action="ignore"))
    return Column(name, _with_missing(codes), True)


def _with_missing(codes: NDArray[Any]) -> Array:
    return np.where(codes < 0, np.nan, codes)
