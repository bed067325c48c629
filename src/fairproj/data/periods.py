"""Days, months, quarters and years of dates."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairproj.data.checks import in_order, listing, sensitive_table
from fairproj.data.dates import check_no_other_date, to_iso
from fairproj.data.types import Codes

MOST_VALUES = 400  # a year of days; each is compared by itself
MISSING = "missing"

_NAMES: dict[str, Callable[[str], str]] = {
    "day": lambda day: day,
    "month": lambda day: day[:7],
    "quarter": lambda day: f"{day[:4]}-Q{(int(day[5:7]) + 2) // 3}",
    "year": lambda day: day[:4],
}
PERIODS = tuple(_NAMES)


def period_names(values: Sequence[Any], period: str) -> list[str | None]:
    """The period of each date, such as 2026-03 or 2026-Q1, by its own clock; None for other values.

    Dates are those of Python and pandas, and texts such as 2026-03-31, 2026-03-31T12:00 and
    31.03.2026.
    """
    if period not in _NAMES:
        raise ValueError(f"period={period!r} is unknown; use one of {listing(PERIODS)}")
    days = map(_day, values)
    return [None if day is None else _NAMES[period](day) for day in days]


def _day(value: Any) -> str | None:
    if isinstance(value, datetime.date):
        return value.isoformat()[:10]
    iso = to_iso(value) if isinstance(value, str) else None
    return None if iso is None else iso[:10]


def split_by(by: Any, n_rows: int, period: str | None = None) -> tuple[Codes, list[str]]:
    """Codes of the values of a column, and their names in order.

    Parameters
    ----------
    by : array-like of shape (n_rows,)
        Any values; missing ones are a value of their own, the last.
    n_rows : int
    period : {"day", "month", "quarter", "year"}, optional
        What dates are joined to; by default months. Other values are refused if it is given.
    """
    table = sensitive_table(by)
    if table.shape != (n_rows, 1):
        raise ValueError(
            f"by must be one column with a value for each of the {n_rows:,} rows, got a table of "
            f"shape {table.shape}"
        )
    codes, uniques = pd.factorize(table.iloc[:, 0])
    values = pd.Series(uniques).tolist()
    names, order = _name_values(values, period)
    if len(missing := np.flatnonzero(codes < 0)):
        order.append(MISSING)
    if len(order) > MOST_VALUES:
        raise ValueError(
            f"by has {len(order):,} different values, the most is {MOST_VALUES}; join some, or "
            "use a longer period"
        )
    places = {name: at for at, name in enumerate(order)}
    found = np.array([places[name] for name in names], dtype=np.intp)[codes]
    found[missing] = len(order) - 1
    return found, order


def _name_values(values: list[Any], period: str | None) -> tuple[list[str], list[str]]:
    """The name of each value, and the different names in order."""
    periods = period_names(values, period or "month")
    names = [name for name in periods if name is not None]
    if len(names) == len(values):
        return names, sorted(set(names))
    if period is not None:
        other = values[periods.index(None)]
        raise ValueError(
            f"by holds {listing([other])}, which is not a date such as 2026-03-31; leave out "
            f"period={period!r}"
        )
    check_no_other_date(values[periods.index(None)], "by")
    return list(map(_text, values)), list(dict.fromkeys(map(_text, in_order(values))))


def _text(value: Any) -> str:
    """Whole numbers without a point, since missing values turn integers into floats."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)
