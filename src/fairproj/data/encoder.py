"""Encoding of X as the matrix of numbers that the built-in trees read."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from fairproj.data.checks import counted, listing
from fairproj.data.columns import is_frame, is_lazy
from fairproj.data.dates import are_dates
from fairproj.data.reduction import Reduction
from fairproj.data.types import Matrix
from fairproj.data.user_warning import warn_user

_LARGEST = float(np.finfo(np.float64).max) / 2
_ZERO = 1e-35  # up to which LightGBM takes a number for zero, kZeroThreshold in its meta.h
_MEDIAN_ROWS = 1_000


@dataclass(frozen=True)
class Encoding:
    """What new rows are encoded by.

    Attributes
    ----------
    columns : list
        Names, or positions for an array.
    categories : dict of int to array
        The categories of a column in the order of their codes, by its position.
    booleans : list of bool
        Which columns hold booleans.
    had_missing : array of bool
        Which columns had missing values in training.
    typical : array of float
        The median of each column of numbers, of the rows that were given for training; NaN for
        columns of categories, and where all values were missing.
    """

    columns: list[Any]
    categories: dict[int, NDArray[Any]]
    booleans: list[bool]
    had_missing: NDArray[np.bool_]
    typical: NDArray[np.float64]


class FeatureEncoder:
    """Turns categories and strings into codes, leaves numbers as they are and refuses the rest.

    Parameters
    ----------
    categorical_features : "from_dtype" or sequence of names, positions or booleans
        Which columns hold categories. By default those of a data frame whose type is category,
        string or enum.
    max_categories : int
        The most categories a column may have.
    kept, taken : list, optional
        Where the columns stood in the user's X, and the columns that were taken out of it.
    texts : collection of str
        The columns of category type that are text in the user's table: they count as text.
    """

    def __init__(
        self,
        categorical_features: Any,
        max_categories: int,
        kept: list[int] | None = None,
        taken: list[Any] | None = None,
        texts: Collection[str] = (),
    ) -> None:
        self._wanted = categorical_features
        self._max_categories = max_categories
        self._kept = kept  # where the columns stood before sensitive ones were taken out
        self._taken = taken or []
        self._texts = texts

    def fit_transform(self, X: Any) -> Matrix:
        if is_frame(X):
            frame = nw.from_native(X, eager_only=True)
            self._names: list[Any] = list(frame.columns)
            self._undeclared = self._find_undeclared(frame)
            self._categories = self._learn_frame(frame)
            self._booleans = [_is_boolean(frame[:, at]) for at in range(len(self._names))]
            matrix = self._frame_matrix(frame)
        else:
            matrix = _csr_matrix(X)
            self._names = list(range(matrix.shape[1]))
            self._undeclared = set()
            self._categories = self._learn_array(matrix)
            self._booleans = [False] * len(self._names)
            matrix = self._with_codes(matrix)
        self._check_range(matrix)
        self._warn_of_tiny(matrix)
        self._had_missing = _columns_with_missing(matrix)
        self._typical, self._n_values = _medians(matrix, self._categories)
        return matrix

    def transform(self, X: Any, *, fill: bool = False) -> Matrix:
        """The matrix of new rows; a category not seen in training counts as missing.

        With ``fill``, a number that is missing where training had none missing is replaced by the
        median; else it is refused.
        """
        if is_frame(X):
            matrix = self._frame_matrix(nw.from_native(X, eager_only=True))
        else:
            words = [i for i, index in self._categories.items() if index.dtype.kind not in "biuf"]
            if words:
                raise ValueError(
                    f"X is an array, and in training column {self._names[words[0]]!r} held text; "
                    "pass a data frame like the one of training"
                )
            matrix = self._with_codes(_csr_matrix(X))
        self._check_range(matrix)
        if fill:
            return self.fill_missing(matrix)
        self.check_missing(matrix)
        return matrix

    def unknown(self, X: pd.DataFrame, matrix: Matrix) -> dict[Any, pd.Series]:
        """Of each column of categories, the values of X that its ``matrix`` has no code for."""
        found = {}
        for position in self._categories:
            values = X[self._names[position]]
            found[self._names[position]] = values[np.isnan(matrix[:, position]) & values.notna()]
        return found

    @property
    def encoding(self) -> Encoding:
        categories = {position: index.to_numpy() for position, index in self._categories.items()}
        return Encoding(self._names, categories, self._booleans, self._had_missing, self._typical)

    def refuse_dates(self) -> None:
        """Refuse text whose values in the whole table are dates: new rows have other ones.

        A column is not refused where the user declares that it holds categories, by its type
        (category or enum) or in ``categorical_features``.
        """
        for position, categories in self._categories.items():
            if self._are_dates(categories, position):
                raise _date_error(self._names[position], categories)

    def _are_dates(self, categories: pd.Index[Any], position: int) -> bool:
        return position in self._undeclared and are_dates(categories)

    def refuse_missing(self, reader: str) -> None:
        """Refuse rows with missing values, which ``reader`` cannot use."""
        names = [self._names[i] for i in np.flatnonzero(self._had_missing)]
        if names:
            raise ValueError(
                f"{reader} does not take missing values, and column {listing(names)} has some; "
                "fill them, or use the built-in trees"
            )

    def for_rows(self, matrix: Matrix, reduction: Reduction) -> FeatureEncoder:
        """The encoder of a model that is trained on these encoded rows only, of all workers."""
        if is_lazy(matrix):  # to look at its rows would take another pass over the data
            return self
        encoder = copy.copy(self)
        missing = _columns_with_missing(matrix).astype(float)
        encoder._had_missing = reduction.max(missing) > 0
        return encoder

    @classmethod
    def merge(
        cls,
        encoders: Sequence[FeatureEncoder],
        has_values: Sequence[NDArray[np.bool_]],
        sources: Sequence[str],
    ) -> FeatureEncoder:
        """The encoder of a table, from those of its parts.

        Parameters
        ----------
        encoders : sequence of FeatureEncoder
            One for each part, for the same columns.
        has_values : sequence of array of bool
            Which columns have any value in a part; one without is of the type of the other parts.
        sources : sequence of str
            The names of the parts.
        """
        merged = copy.copy(encoders[0])
        merged._categories, merged._booleans, merged._undeclared = {}, [], set()
        for position in range(len(merged._names)):
            parts = [i for i, has in enumerate(has_values) if has[position]]
            typed = [encoders[i] for i in parts or range(len(encoders))]
            if merged._is_category(typed, position, [sources[i] for i in parts]):
                if any(position in each._undeclared for each in typed):
                    merged._undeclared.add(position)
                values = [pd.Series(each._categories[position]) for each in typed]
                known = pd.concat(values, ignore_index=True)
                merged._categories[position] = merged._learn(known, position)
            merged._booleans.append(all(each._booleans[position] for each in typed))
        merged._had_missing = np.any([each._had_missing for each in encoders], axis=0)
        merged.refuse_dates()
        merged._merge_medians(encoders)
        return merged

    def _merge_medians(self, encoders: Sequence[FeatureEncoder]) -> None:
        """The medians of the parts' medians: between the quartiles of the table in any case."""
        medians = np.array([each._typical for each in encoders])
        weights = np.array([each._n_values for each in encoders])
        columns = zip(medians.T, weights.T, strict=True)
        self._typical = np.array([_weighted_median(*column) for column in columns])
        self._typical[list(self._categories)] = np.nan
        self._n_values = weights.sum(axis=0)

    def _is_category(
        self, encoders: list[FeatureEncoder], position: int, sources: list[str]
    ) -> bool:
        """Whether a column holds categories in all of some parts that have values in it."""
        found = [position in each._categories for each in encoders]
        if sources and len(set(found)) > 1:
            raise ValueError(
                f"column {self._names[position]!r} holds categories in {sources[found.index(True)]}"
                f" and numbers in {sources[found.index(False)]}; make it the same in all parts"
            )
        return all(found)

    @classmethod
    def from_encoding(cls, encoding: Encoding) -> FeatureEncoder:
        """An encoder for new rows only."""
        most = max((len(values) for values in encoding.categories.values()), default=0)
        encoder = cls(None, most)
        encoder._names = encoding.columns
        encoder._categories = {at: pd.Index(values) for at, values in encoding.categories.items()}
        encoder._booleans = encoding.booleans
        encoder._had_missing = encoding.had_missing
        encoder._typical = encoding.typical
        return encoder

    @property
    def categories(self) -> dict[int, list[Any]]:
        """Positions of the columns that hold category codes, with the categories in code order."""
        return {position: index.tolist() for position, index in self._categories.items()}

    def _learn_frame(self, frame: nw.DataFrame[Any]) -> dict[int, pd.Index[Any]]:
        chosen = self._chosen()
        return {
            position: self._learn(_to_pandas(frame[:, position]), position)
            for position in range(len(self._names))
            if (_is_categorical(frame[:, position]) if chosen is None else position in chosen)
        }

    def _find_undeclared(self, frame: nw.DataFrame[Any]) -> set[int]:
        """Positions of columns that hold categories only because they are text."""
        if self._chosen() is not None:
            return set()
        return {
            position
            for position, name in enumerate(self._names)
            if name in self._texts or frame[:, position].dtype not in (nw.Categorical, nw.Enum)
        }

    def _learn_array(self, matrix: Matrix) -> dict[int, pd.Index[Any]]:
        chosen = self._chosen() or set()
        if chosen and sparse.issparse(matrix):
            raise ValueError("categorical_features needs a dense X, got a sparse one")
        return {
            position: self._learn(pd.Series(matrix[:, position]), position)
            for position in sorted(chosen)
        }

    def _with_codes(self, matrix: Matrix) -> Matrix:
        if self._categories:
            matrix = matrix.copy()
        for position, categories in self._categories.items():
            matrix[:, position] = _codes(pd.Series(matrix[:, position]), categories)
        return matrix

    def _learn(self, values: pd.Series, position: int) -> pd.Index[Any]:
        name = self._names[position]
        present = values.dropna().unique()
        try:
            categories = np.sort(np.asarray(present))
        except TypeError:
            raise ValueError(
                f"column {name!r} mixes values of several types; make it all text or all numbers"
            ) from None
        index: pd.Index[Any] = pd.Index(categories)
        if len(categories) > self._max_categories:
            if self._are_dates(index, position):
                raise _date_error(name, index)
            raise ValueError(
                f"column {name!r} has {len(categories)} categories, the most a tree can tell apart "
                f"is max_bins={self._max_categories}; drop it or join rare categories"
            )
        return index

    def _frame_matrix(self, frame: nw.DataFrame[Any]) -> Matrix:
        dtypes: set[Any] = {frame[:, position].dtype for position in range(len(self._names))}
        matrix = None
        if dtypes in ({nw.Float32}, {nw.Float64}) and not self._categories:
            matrix = frame.to_numpy()  # no copy where the frame is one block
        if matrix is None or matrix.dtype.kind != "f":
            matrix = np.empty((len(frame), len(self._names)), order="F")
            for position in range(len(self._names)):
                matrix[:, position] = self._column(frame[:, position], position)
        return matrix

    def _column(self, series: nw.Series[Any], position: int) -> NDArray[np.float64]:
        if position in self._categories:
            codes = _codes(_to_pandas(series), self._categories[position])
            self._warn_if_all_unknown(codes, series, position)
            return codes
        if not _is_categorical(series):
            return _to_numbers(series, self._names[position])
        if not len(series.drop_nulls()):  # a type for text, but no value
            return np.full(len(series), np.nan)
        was = "categorical_features leaves it out; name it there too"
        if hasattr(self, "_had_missing"):
            was = "it held numbers in training; turn it into numbers"
        raise ValueError(f"column {self._names[position]!r} is of type {series.dtype}, and {was}")

    def _warn_if_all_unknown(
        self, codes: NDArray[np.float64], series: nw.Series[Any], position: int
    ) -> None:
        if np.isnan(codes).all() and len(given := series.drop_nulls()):
            warn_user(
                f"column {self._names[position]!r} has no value known from training: found "
                f"{listing(given.unique(maintain_order=True).head(3).to_list())}, known are "
                f"{listing(self._categories[position].tolist(), 4)}; all count as missing"
            )

    def _check_range(self, matrix: Matrix) -> None:
        """Refuse numbers that are infinite, or so large that their differences are."""
        if sparse.issparse(matrix):
            wide = np.unique(matrix.indices[np.abs(matrix.data) > _LARGEST])
            self._refuse_wide([self._names[i] for i in wide])
            return
        # The extremes of each column tell, without an array of the size of X.
        lowest, highest = column_extremes(matrix)
        infinite = [self._names[i] for i in np.flatnonzero(np.isinf(lowest) | np.isinf(highest))]
        if infinite:
            raise ValueError(
                f"Input X contains infinity in column {listing(infinite)}; use missing values or "
                "large finite numbers instead"
            )

        wide = np.flatnonzero(np.maximum(-lowest, highest) > _LARGEST)
        self._refuse_wide([self._names[i] for i in wide])

    def _refuse_wide(self, names: list[Any]) -> None:
        if names:
            raise ValueError(
                f"column {listing(names)} has numbers beyond {_LARGEST:.2g}, whose differences are "
                "infinite; scale the column"
            )

    def _warn_of_tiny(self, matrix: Matrix) -> None:
        """Name columns of numbers that LightGBM takes for a column of zeros."""
        if sparse.issparse(matrix):
            return
        lowest, highest = column_extremes(matrix)
        largest = np.maximum(-lowest, highest)
        tiny = np.flatnonzero((largest > 0) & (largest <= _ZERO))
        if len(tiny):
            warn_user(
                f"column {listing([self._names[i] for i in tiny])} has no number beyond {_ZERO:g}, "
                "which the built-in trees take for zero; scale the column"
            )

    def _chosen(self) -> set[int] | None:
        """Positions of the columns the user calls categorical; None: decide by their types."""
        if isinstance(self._wanted, str) and self._wanted == "from_dtype":
            return None
        wanted = [] if self._wanted is None else np.ravel(np.asarray(self._wanted, object)).tolist()
        kept = list(range(len(self._names))) if self._kept is None else self._kept
        n_columns = len(kept) + len(self._taken)
        if wanted and all(isinstance(item, bool) for item in wanted):
            if len(wanted) != n_columns:
                raise ValueError(
                    f"categorical_features is a mask of {counted(len(wanted), 'entry', 'entries')} "
                    f"for {n_columns} "
                    "columns; they must be equal"
                )
            wanted = [position for position, chosen in enumerate(wanted) if chosen]
        return {
            position
            for item in wanted
            if (position := self._position(item, kept, n_columns)) is not None
        }

    def _position(self, item: Any, kept: list[int], n_columns: int) -> int | None:
        """Where a column named by the user stands now; None if it was taken out."""
        if item in self._names and not (isinstance(item, int) and self._kept is not None):
            return self._names.index(item)
        if item in self._taken and not isinstance(item, int):
            return None
        if isinstance(item, int) and 0 <= item < n_columns:
            return kept.index(item) if item in kept else None
        raise ValueError(
            f"categorical_features has {item!r}, which is no column of X; "
            f"use names or positions from 0 to {n_columns - 1}"
        )

    def check_missing(self, matrix: Matrix) -> None:
        """A numeric column that never missed a value has no branch for a missing one.

        LightGBM would read it as 0.0, without a word.
        """
        new = self._newly_missing(matrix)
        if new.any():
            names = [self._names[i] for i in np.flatnonzero(new)]
            raise ValueError(
                f"missing values in column {listing(names)}, which had none in training, so the "
                "trees have no branch for them; fill them, or train with rows that miss some"
            )

    def _newly_missing(self, matrix: Matrix) -> NDArray[np.bool_]:
        """Which columns of numbers miss values now, and did not in training."""
        new = _columns_with_missing(matrix) & ~self._had_missing
        new[list(self._categories)] = False
        return new

    def fill_missing(self, matrix: Matrix) -> Matrix:
        """The matrix with medians in place of numbers that are missing for the first time."""
        new = self._newly_missing(matrix)
        if not new.any():
            return matrix
        matrix = matrix.copy()  # it may be the user's own
        if sparse.issparse(matrix):
            empty = np.isnan(matrix.data) & new[matrix.indices]
            matrix.data[empty] = self._typical[matrix.indices[empty]]
            return matrix
        for position in np.flatnonzero(new):
            column = matrix[:, position]
            column[np.isnan(column)] = self._typical[position]
        return matrix


def _date_error(name: Any, dates: pd.Index[Any]) -> ValueError:
    return ValueError(
        f"column {name!r} holds dates as text, such as {dates[0]!r}, which trees cannot use; turn "
        "it into numbers, drop it, or make it a categorical column if its dates are categories"
    )


def column_extremes(matrix: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The smallest and the largest value of each column; NaN where all are missing."""
    extremes = [ufunc.reduce(matrix, axis=0, initial=np.nan) for ufunc in (np.fmin, np.fmax)]
    return extremes[0], extremes[1]


def _medians(
    matrix: Matrix, categories: Collection[int]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The lower median of each column of numbers, and how many values it is of.

    The lower median is a value of the column, and of booleans the one that occurs more often. Of
    many rows it is that of a sample at equal distances.
    """
    rows = matrix[:: -(-matrix.shape[0] // _MEDIAN_ROWS) or 1]
    medians, n_values = np.full(rows.shape[1], np.nan), np.zeros(rows.shape[1], dtype=np.int64)
    for position, values in _columns_of_numbers(rows, categories):
        present = values[~np.isnan(values)]
        n_values[position] = len(present)
        if len(present):
            middle = (len(present) - 1) // 2
            medians[position] = np.partition(present, middle)[middle]
    return medians, n_values


def _columns_of_numbers(
    rows: Matrix, categories: Collection[int]
) -> Iterator[tuple[int, NDArray[Any]]]:
    if not sparse.issparse(rows):
        for position in range(rows.shape[1]):
            if position not in categories:
                yield position, rows[:, position]
        return
    by_column = rows.tocsc()
    one_zero = np.zeros(1)
    for position, n_stored in enumerate(np.diff(by_column.indptr)):
        stored = by_column.data[by_column.indptr[position] :][:n_stored]
        n_zeros = rows.shape[0] - n_stored
        # Where zeros are more than half, one tells as much as all of them.
        yield position, one_zero if n_zeros > n_stored else np.append(stored, np.zeros(n_zeros))


def _weighted_median(values: NDArray[np.float64], weights: NDArray[Any]) -> float:
    """The smallest value such that half of the weight is at or below it; NaN without weight."""
    if not weights.any():
        return float("nan")
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, below[-1] / 2)])


def _is_categorical(series: nw.Series[Any]) -> bool:
    if series.dtype in (nw.Categorical, nw.Enum, nw.String):
        return True
    if series.dtype != nw.Object:
        return False
    values = series.to_pandas().dropna()
    return bool(values.map(lambda value: isinstance(value, str)).all()) and len(values) > 0


def _is_boolean(series: nw.Series[Any]) -> bool:
    """Whether a column holds booleans; pandas keeps those with missing values as objects."""
    if series.dtype != nw.Object:
        return bool(series.dtype == nw.Boolean)
    values = series.to_pandas().dropna()
    return len(values) > 0 and bool(values.map(lambda value: isinstance(value, bool)).all())


def _to_pandas(series: nw.Series[Any]) -> pd.Series:
    """The values as a pandas series of categories, numbers or objects."""
    values = series.to_pandas()
    if isinstance(values.dtype, pd.CategoricalDtype) or values.dtype.kind in "biuf":
        return values
    return values.astype(object)


def _codes(values: pd.Series, categories: pd.Index[Any]) -> NDArray[np.float64]:
    """Positions among the categories; NaN for a missing or unknown value."""
    if isinstance(values.dtype, pd.CategoricalDtype):  # look up each category, not each row
        known = categories.astype(object).get_indexer(values.cat.categories.astype(object))
        return _as_codes(np.append(known, -1))[values.cat.codes.to_numpy()]
    return _as_codes(categories.get_indexer(pd.Index(values)))


def _as_codes(positions: NDArray[np.intp]) -> NDArray[np.float64]:
    codes = positions.astype(float)
    codes[positions < 0] = np.nan
    return codes


def _to_numbers(series: nw.Series[Any], name: Any) -> NDArray[np.float64]:
    try:
        if series.dtype.is_numeric() or series.dtype == nw.Boolean:
            return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float)
        if series.dtype in (nw.Object, nw.Unknown):
            values = series.to_pandas()
            if not values.map(lambda value: isinstance(value, str | complex)).any():
                return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        pass
    kind = series.dtype if series.dtype != nw.Object else series.to_pandas().dtype
    raise ValueError(
        f"column {name!r} is of type {kind}, which trees cannot use; "
        "turn it into numbers, categories or text, or drop it"
    )


def _csr_matrix(matrix: Matrix) -> Matrix:
    """LightGBM knows SciPy's sparse matrices, not its sparse arrays."""
    return sparse.csr_matrix(matrix) if sparse.issparse(matrix) else matrix


def _columns_with_missing(matrix: Matrix) -> NDArray[np.bool_]:
    if sparse.issparse(matrix):
        missing = np.zeros(matrix.shape[1], dtype=bool)
        missing[matrix.indices[np.isnan(matrix.data)]] = True
        return missing
    # A column's minimum is NaN exactly where it misses a value; no array of the size of X.
    return np.isnan(matrix.min(axis=0)) if len(matrix) else np.zeros(matrix.shape[1], dtype=bool)
