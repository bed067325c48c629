"""Splitting rows by time: those before a point in time, and those from it on."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairproj.data.checks import counted
from fairproj.data.dates import check_no_other_date, to_iso
from fairproj.data.ranges import number_text

_WANTED = "dates, timestamps, numbers or text such as 2024-03-01 or 01.03.2024"
_UNIT: Literal["us"] = "us"


@dataclass(frozen=True)
class TimeCut:
    """A point in time; the rows from it on are held out.

    Attributes
    ----------
    column : str
        The column with the times.
    start : str
        The first time that is held out: a number, or an ISO date with or without a time of day in
        UTC.
    is_number : bool
        Whether times are numbers.
    """

    column: str
    start: str
    is_number: bool

    def __post_init__(self) -> None:
        self.mask(pd.Series([self.start]))  # refuses a start that is no time

    @property
    def which(self) -> str:
        """What to call the rows."""
        return f"the rows from {self.start} on, by {self.column}"

    def mask(self, values: pd.Series) -> NDArray[np.bool_]:
        """Which of the rows are held out, from their times."""
        start = _points(pd.Series([self.start]), self.column, self.is_number)[0]
        return np.asarray(_points(values, self.column, self.is_number) >= start)


@dataclass
class Times:
    """The times of rows that are read in parts.

    Attributes
    ----------
    column : str
        What to call them in messages.
    """

    column: str

    def __post_init__(self) -> None:
        self._is_number: bool | None = None
        self._parts: list[NDArray[Any]] = []

    def add(self, values: pd.Series) -> None:
        """The next rows; the first ones say whether times are numbers or dates."""
        if self._is_number is None:
            self._is_number = is_number(values)
        self._parts.append(_points(values, self.column, self._is_number))

    def cut(self, fraction: float) -> TimeCut:
        """The point in time from which on about this share of the rows lies.

        All rows of the same time are on one side. Of the two times next to the wanted share the
        one that is nearer to it is taken, and at least one time is on each side.
        """
        points = np.concatenate(self._parts)
        distinct, counts = np.unique(points, return_counts=True)
        if len(distinct) < 2:
            raise ValueError(
                f"column {self.column!r} has the same time in all {len(points)} rows, so no rows "
                "come after others; name another column of times"
            )
        share_from = counts[::-1].cumsum()[::-1] / len(points)
        at = 1 + int(np.argmin(np.abs(share_from[1:] - fraction)))
        numbers = bool(self._is_number)
        return TimeCut(self.column, _text(distinct[at], numbers), numbers)


def is_number(values: pd.Series) -> bool:
    """Whether times are numbers, also where these are text."""
    known = values[values.notna()]
    if pd.api.types.is_numeric_dtype(known):
        return True
    if pd.api.types.is_datetime64_any_dtype(known) or not _is_text(known):
        return False
    return bool(pd.to_numeric(known.astype(object), errors="coerce").notna().all())


def _points(values: pd.Series, column: str, numbers: bool) -> NDArray[Any]:
    """Times as numbers that sort alike: as they are, or microseconds since 1970 in UTC."""
    if pd.api.types.is_bool_dtype(values):
        raise _no_time(column, values)
    if missing := int(values.isna().sum()):
        raise ValueError(
            f"column {column!r} lacks the time of {counted(missing, 'row')}; drop those rows, or "
            "fill in a time"
        )
    values = values.astype(object) if isinstance(values.dtype, pd.CategoricalDtype) else values
    try:
        if numbers:
            return np.asarray(pd.to_numeric(values), dtype=float)
        if pd.api.types.is_numeric_dtype(values):  # pandas would read them as nanoseconds
            raise ValueError
        times = pd.to_datetime(_iso(values), utc=True, format="ISO8601")
        return times.dt.as_unit(_UNIT).astype(np.int64).to_numpy()
    except (TypeError, ValueError):  # OutOfBoundsDatetime is a ValueError
        raise _no_time(column, values) from None


def _iso(values: pd.Series) -> pd.Series:
    """Dates such as 01.03.2024 as ISO text."""
    if not _is_text(values):
        return values
    return values.map({text: to_iso(text) or text for text in values.unique()})


def _no_time(column: str, values: pd.Series) -> ValueError:
    example = next((value for value in values.tolist() if not _is_time(value)), values.iloc[0])
    check_no_other_date(example, f"column {column!r}")
    return ValueError(
        f"column {column!r} holds {str(example)!r}, which is not a date or time; name a "
        f"column of {_WANTED}"
    )


def _is_time(value: Any) -> bool:
    if not isinstance(value, str):
        return isinstance(value, datetime.date)
    try:
        pd.to_datetime(_iso(pd.Series([value])), utc=True, format="ISO8601")
    except ValueError:
        return False
    return True


def _is_text(values: pd.Series) -> bool:
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(object)
    return pd.api.types.infer_dtype(values) == "string"


def _text(point: Any, numbers: bool) -> str:
    """A point in time as text: a number, or ISO without a time of day at midnight."""
    if numbers:
        return number_text(float(point))
    moment = pd.Timestamp(int(point), unit=_UNIT)
    return moment.isoformat() if moment != moment.normalize() else str(moment.date())
