"""Columns in which nearly every row has a value of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairproj.data.types import Array, Codes
from fairproj.inspection.columns import Column, read_columns
from fairproj.inspection.proxies import MAX_ROWS

OWN_SHARE = 0.95  # of the rows that have a value of their own
_FEWEST_ROWS = 20
_FEWEST_DIGITS = 6


def find_identifiers(X: Any, *, max_rows: int = MAX_ROWS, random_state: int = 0) -> pd.DataFrame:
    """Columns that name rows, such as a customer number, rather than describe them.

    At least 95 % of the rows have a value of their own, and the values are text or whole numbers
    but not measurements. Whole numbers are not measurements if they repeat more rarely than n
    random numbers between the smallest and the largest would: r + 3 sqrt(e) < e for r repeats,
    where e = n - R (1 - (1 - 1/R)^n) is expected with R possible values. Nor are
    they if all have the same number of digits, six or more.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame
    max_rows : int, default=100,000
        Of more rows, a random sample is taken.
    random_state : int, default=0
        Of the sample.

    Returns
    -------
    DataFrame
        The columns that were found: ``column`` and ``distinct``, the share of different values.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairproj.inspection import find_identifiers
    >>> X = pd.DataFrame({"customer": range(1000, 1500), "age": [20 + i % 50 for i in range(500)]})
    >>> find_identifiers(X)["column"].tolist()
    ['customer']
    """
    columns, rows = read_columns(X, max_rows, random_state)
    return identifiers_of(columns, X, rows)


def identifiers_of(columns: Sequence[Column], X: Any, rows: Codes) -> pd.DataFrame:
    """The same from columns that were read for some rows of X.

    What looks like an identifier among some rows is looked at in all: values that occur twice
    rarely do in a sample.
    """
    found = _identifiers(columns)
    if len(found) and len(rows) < np.shape(X)[0]:
        names = [column.name for column in columns]
        positions = [names.index(name) for name in found["column"]]
        found = _identifiers(read_columns(X, np.shape(X)[0], 0, positions)[0])
    return found


def _identifiers(columns: Sequence[Column]) -> pd.DataFrame:
    shares = {column.name: _own_share(column) for column in columns if _names_rows(column)}
    found = {name: share for name, share in shares.items() if share >= OWN_SHARE}
    return pd.DataFrame({"column": list(found), "distinct": list(found.values())})


def _own_share(column: Column) -> float:
    present = column.numbers[~np.isnan(column.numbers)]
    return len(np.unique(present)) / len(present) if len(present) >= _FEWEST_ROWS else 0.0


def _names_rows(column: Column) -> bool:
    if column.is_text:
        return True
    present = column.numbers[np.isfinite(column.numbers)]
    if column.is_time or not len(present) or (present != np.floor(present)).any():
        return False
    return _repeats_rarely(present) or _same_length(present)


def _repeats_rarely(numbers: Array) -> bool:
    """Whether random numbers of the same range would repeat more often."""
    n, n_values = len(numbers), float(numbers.max() - numbers.min()) + 1
    if n_values <= 1:
        return False
    expected = n + n_values * math.expm1(n * math.log1p(-1 / n_values))
    repeats = n - len(np.unique(numbers))
    return repeats + 3 * math.sqrt(max(expected, 0.0)) < expected


def _same_length(numbers: Array) -> bool:
    low, high = float(numbers.min()), float(numbers.max())
    if low < 1:
        return False
    digits = math.floor(math.log10(low)) + 1
    return digits >= _FEWEST_DIGITS and high < 10**digits
