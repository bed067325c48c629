"""Validation of labels, weights, groups and slacks.

Input is checked once, here and in `columns` and `encoder`; nothing behind them checks again. Every
message names the value found, the value wanted and the next step.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from fairproj.data.types import Array, Codes

MOST_GROUPS = 1000  # all pairs of groups are compared: 499,500 of them
ALL_ZERO = "sample_weight is zero for every row; at least two rows need weight"


@dataclass(frozen=True)
class Groups:
    """Each row's group, as a code, and the groups' values (tuples where columns were crossed)."""

    codes: Codes
    values: list[Any]

    @property
    def names(self) -> list[str]:
        """How to print them; no two alike."""
        plain = [
            ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            for value in self.values
        ]
        if len(set(plain)) == len(plain):
            return plain
        return [repr(_to_python(value)) for value in self.values]

    def take(self, rows: Codes) -> Groups:
        """The groups of some rows only; a group that loses all its rows is gone."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        return Groups(codes.astype(self.codes.dtype), [self.values[i] for i in present])


def in_words(items: Sequence[str], last: str = "and") -> str:
    """The items as in "a, b and c"."""
    *first, end = items
    return f"{', '.join(first)} {last} {end}" if first else end


def listing(items: Sequence[Any] | NDArray[Any], most: int = 8) -> str:
    """``'a', 'b', 'c' and 4 more`` for use in a sentence."""
    shown = ", ".join(repr(_to_python(item)) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def in_order(values: Sequence[Any]) -> list[Any]:
    """Values in sort order; those of several types, which have none, sorted as texts."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def percent(share: float, digits: int = 1) -> str:
    """A share as text.

    Examples
    --------
    >>> from fairproj.data.checks import percent
    >>> percent(0.7284)
    '72.8 %'
    """
    return f"{100 * share:.{digits}f} %"


def counted(count: Any, noun: str, plural: str = "") -> str:
    """``1 row``, ``2 rows`` or ``1,234 rows``; every message that counts something uses it."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def _to_python(item: Any) -> Any:
    if isinstance(item, tuple):
        return tuple(_to_python(part) for part in item)
    return item.item() if isinstance(item, np.generic) else item


def plain_labels(y: Any) -> NDArray[Any]:
    """Labels as a flat array."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None; pass the labels")
    flat: NDArray[Any] = column_or_1d(_native_array(y), warn=True)
    return flat


def check_labels(y: Any) -> tuple[Array, NDArray[Any]]:
    """Labels as -1 and +1, and the two classes in sort order; +1 stands for the second."""
    classes, codes = distinct_labels(y)
    check_classes(classes)
    return np.where(codes == 1, 1.0, -1.0), classes


def distinct_labels(y: Any) -> tuple[NDArray[Any], Codes]:
    """The labels that occur, any number of them, in sort order, and each row's place among them."""
    y = plain_labels(y)
    missing = int(pd.isna(y).sum())
    if missing:
        raise ValueError(
            f"Input y contains NaN: {missing:,} of {counted(len(y), 'label')} are missing; drop "
            "those rows"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(
            f"Input y contains infinity: {int(np.isinf(y).sum())} of {counted(len(y), 'label')}; "
            "labels must be two finite numbers, strings or booleans"
        )
    if y.dtype.kind == "O":  # hashing is many times faster than sorting text
        codes, classes = pd.factorize(y)
        some = classes[:20]  # of more, scikit-learn would say that they are many
    else:
        classes, codes = np.unique(y, return_inverse=True)
        some = y
    try:
        order = np.argsort(classes, kind="stable")
    except TypeError:
        raise ValueError(
            f"y holds labels without an order ({listing(classes)}); use numbers, strings or "
            "booleans, all of one type"
        ) from None
    if len(y):
        check_classification_targets(some)
    if y.dtype.kind in "OU" and (classes == "nan").any():
        raise ValueError(
            "y holds the text 'nan', as missing values turned into text do; drop those rows"
        )
    return classes[order], np.argsort(order)[codes]


def check_classes(classes: NDArray[Any]) -> None:
    """Refuse labels that are not two."""
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. y has "
            f"{len(classes)} classes ({listing(classes)}); keep two, or join some of them"
        )
    if len(classes) < 2:
        raise ValueError(
            f"y must hold two classes, found one class ({listing(classes)}); add rows of the other"
        )


def check_pos_label(pos_label: Any, classes: NDArray[Any]) -> int:
    """Which of the two classes the constraints call positive: 0 or 1 (the default)."""
    if pos_label is None:
        return 1
    found = np.flatnonzero(classes == pos_label)
    if not len(found):
        raise ValueError(
            f"pos_label={pos_label!r} is not one of the labels in y ({listing(classes)})"
        )
    return int(found[0])


def check_weights(sample_weight: Any, n_rows: int) -> Array:
    """User weights, zero or more and not all zero; ``None`` means one for each row."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = weight_values(sample_weight, n_rows)
    if not (weight > 0).any():
        raise ValueError(ALL_ZERO)
    return weight


def weight_values(sample_weight: Any, n_rows: int) -> Array:
    """User weights, zero or more; they may all be zero."""
    if np.isscalar(sample_weight):
        raise ValueError(f"sample_weight must hold one weight for each row, got {sample_weight!r}")
    weight = np.asarray(_native_array(sample_weight), dtype=float)
    if weight.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar: one number for each row; got shape "
            f"{weight.shape}"
        )
    if len(weight) != n_rows:
        raise ValueError(
            f"sample_weight has {counted(len(weight), 'entry', 'entries')} and X has "
            f"{counted(n_rows, 'row')}; they must be equal"
        )
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight has missing or infinite entries; all must be finite")
    if (weight < 0).any():
        raise ValueError(
            f"Negative values in data passed to `sample_weight`: {int((weight < 0).sum())} of "
            f"{n_rows}; weights must be zero or more"
        )
    return weight


def check_groups(sensitive_features: Any, n_rows: int, beside: str = "X") -> Groups:
    """Groups from one sensitive column, or from several, crossed.

    Groups are in the order of their values; those of an ordered categorical column, in its order.
    Missing values are refused: whether "unknown" is a group of its own is the user's to say.
    """
    if isinstance(sensitive_features, str):
        raise ValueError(
            f"sensitive_features must hold a value for each row, got {sensitive_features!r}; to "
            f"name a column of X, use sensitive_columns={sensitive_features!r}"
        )
    table = sensitive_table(sensitive_features)
    if len(table) != n_rows:
        raise ValueError(
            f"sensitive_features has {counted(len(table), 'row')} and {beside} has {n_rows:,}; "
            "they must be "
            "equal (to name columns of X, use sensitive_columns)"
        )
    codes = np.zeros(n_rows, dtype=np.intp)
    values: list[tuple[Any, ...]] = [()]
    for position, name in enumerate(table.columns):
        column_codes, column_values = _factorize(table.iloc[:, position], name)
        codes = codes * len(column_values) + column_codes
        values = [(*value, new) for value in values for new in column_values]
        present, codes = np.unique(codes, return_inverse=True)  # keep the product small
        values = [values[i] for i in present]
    present, codes = np.unique(codes, return_inverse=True)
    if len(present) > MOST_GROUPS:
        raise ValueError(
            f"sensitive_features has {len(present)} groups, the most is {MOST_GROUPS}; a feature "
            "with so many values is rather a number: cut it into a few ranges"
        )
    crossed = [values[i] for i in present]
    if table.shape[1] == 1:
        return Groups(codes.astype(np.intp), [value[0] for value in crossed])
    return Groups(codes.astype(np.intp), crossed)


def sensitive_table(sensitive_features: Any) -> pd.DataFrame:
    """The sensitive features as a table with texts as names; it may share memory with them."""
    native = nw.from_native(
        sensitive_features, pass_through=True, eager_only=True, allow_series=True
    )
    if isinstance(native, nw.DataFrame):
        table = native.to_pandas()
    elif isinstance(native, nw.Series):
        table = native.to_pandas().to_frame()
    elif isinstance(sensitive_features, dict):
        table = pd.DataFrame(sensitive_features)
    else:
        array = _array_of(sensitive_features)
        if array.ndim not in (1, 2):
            raise ValueError(
                "sensitive_features must be one column or a table of columns, "
                f"got an array of {array.ndim} dimensions"
            )
        table = pd.DataFrame(array)
    if not table.shape[1]:
        raise ValueError("sensitive_features has no columns; pass at least one, or None")
    table.columns = [str(name) for name in table.columns]
    return table.reset_index(drop=True)


def _factorize(column: pd.Series, name: str) -> tuple[Codes, list[Any]]:
    missing = int(column.isna().sum())
    where = "sensitive_features" if name in ("0", "None") else f"sensitive feature {name!r}"
    if missing:
        raise ValueError(
            f"{where} has {counted(missing, 'missing value')}; every row needs a group: drop those "
            "rows or "
            "fill them with a value of their own, such as 'unknown'"
        )
    values = column.to_numpy(dtype=object)
    if (values == "nan").any():
        raise ValueError(
            f"{where} holds the text 'nan', as missing values turned into text do; "
            "drop those rows or give them a value of their own, such as 'unknown'"
        )
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        present, codes = np.unique(column.cat.codes, return_inverse=True)
        names = column.cat.categories.to_numpy(dtype=object)
        return codes.astype(np.intp), names[present].tolist()
    try:
        codes, uniques = pd.factorize(values, sort=True)
    except TypeError:  # values of several types have no order among them
        codes, uniques = _factorize_unordered(values, where)
    return codes.astype(np.intp), list(uniques)


def _factorize_unordered(values: Any, where: str) -> tuple[Any, Any]:
    try:
        return pd.factorize(values)
    except TypeError:
        other = next(value for value in values if not isinstance(value, Hashable))
        raise ValueError(
            f"{where} holds {listing([other])}, a {type(other).__name__}, which cannot name a "
            "group; use texts, numbers or categories, and a column for each sensitive feature"
        ) from None


def check_slack(slack: Any, names: Sequence[str], parameter: str, largest: float = np.inf) -> Array:
    """One number for each of ``names``, from a single number or one number each.

    ``parameter`` is what the user calls it: epsilon or max_gap.
    """
    try:
        if slack is None or isinstance(slack, str | bool):
            raise TypeError
        values = np.asarray(slack, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{parameter} must be a number or a sequence of numbers, got {slack!r}"
        ) from None
    if np.isnan(values).any() or (values < 0).any():
        raise ValueError(f"{parameter} must be zero or more, got {slack!r}")
    if (values > largest).any():
        raise ValueError(
            f"{parameter} must be at most {largest:g}, got {slack!r}; 5 percentage points are 0.05"
        )
    if values.ndim > 1 or (values.ndim == 1 and len(values) != len(names)):
        each = f", or one for each of {listing(names)}" if len(names) > 1 else ""
        raise ValueError(f"{parameter} must be one number{each}; got {values.size} numbers")
    return np.broadcast_to(values, (len(names),)).copy()


def _native_array(values: Any) -> NDArray[Any]:
    series = nw.from_native(values, pass_through=True, eager_only=True, allow_series=True)
    if isinstance(series, nw.Series):
        array = series.to_numpy()
        return array.astype(object) if array.dtype.kind in "SU" else array
    if isinstance(series, nw.DataFrame):
        return series.to_numpy()
    return _array_of(values)


def _array_of(values: Any) -> NDArray[Any]:
    """An array that has not turned a missing value of a list into the text 'nan'."""
    array = np.asarray(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        return np.asarray(values, dtype=object)
    return array


def check_aligned(**arguments: Any) -> None:
    """Refuse pandas objects whose indexes have labels in common, but not in the same rows.

    Rows correspond by position, as in scikit-learn. Labels in another order say that the rows do
    not. Indexes without a common label say nothing, and other objects have no index. Nor does a
    default index after one with labels that it does not have, as that of y after ``reset_index``
    beside the X of a split.
    """
    indexes = {
        name: each.index
        for name, each in arguments.items()
        if isinstance(each, pd.DataFrame | pd.Series)
    }
    for (first, index), (name, other) in combinations(indexes.items(), 2):
        if len(other) != len(index) or index.equals(other) or not other.isin(index).any():
            continue
        if _is_default(other) and not index.isin(other).all():
            continue
        pairs = enumerate(zip(index, other, strict=True))
        row = next((row for row, labels in pairs if labels[0] != labels[1]), None)
        if row is not None:
            raise ValueError(
                f"the indexes of {first} and {name} have labels in common in different rows (row "
                f"{row} is {listing([index[row]])} in {first} and {listing([other[row]])} in "
                f"{name}); align them, as in {name}.loc[{first}.index], or pass "
                f"{name}.to_numpy() if their rows correspond by position"
            )


def _is_default(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index)))


def check_lengths(X: Any, y: Any) -> None:
    try:
        check_consistent_length(X, y)
    except ValueError:
        raise ValueError(
            f"X has {counted(np.shape(X)[0], 'row')} and y has {np.shape(y)[0]:,}; they must be "
            "equal"
        ) from None


def check_scores(scores: Any, name: str, n_rows: int) -> Array:
    values = np.asarray(scores, dtype=float)
    if values.shape != (n_rows,):
        raise ValueError(
            f"{name} has shape {values.shape}; it must hold one number for each of the {n_rows} "
            "rows of y_true, such as predict_proba(X)[:, 1]"
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"{name} has {int((~np.isfinite(values)).sum())} missing or infinite entries; all must "
            "be finite"
        )
    return values
