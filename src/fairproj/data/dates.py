"""Dates as texts: 2026-03-31 and 31.03.2026, with or without a time of day."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pandas as pd

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?")
_WITH_POINTS = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?: (\d{1,2})(:\d{2}.*))?")  # day first
_OTHER = re.compile(
    r"(?:\d{4}([/.-])\d{1,2}\1\d{1,2}|\d{1,2}([/.-])\d{1,2}\2\d{4}|\d\d([/.])\d\d\3\d\d)(?:[T ].*)?"
)


def to_iso(text: str) -> str | None:
    """A date as ISO text, with its time of day if it has one; None for text of other forms.

    Examples
    --------
    >>> from fairproj.data.dates import to_iso
    >>> to_iso("31.03.2026 9:30")
    '2026-03-31T09:30'
    """
    try:
        if points := _WITH_POINTS.fullmatch(text):
            day, month, year, hour, rest = points.groups()
            date = datetime.date(int(year), int(month), int(day)).isoformat()
            return date if hour is None else f"{date}T{hour.zfill(2)}{rest}"
        if not _ISO.fullmatch(text):
            return None
        datetime.date.fromisoformat(text[:10])
    except ValueError:  # such as month 13
        return None
    return text


def are_dates(values: pd.Series | pd.Index[Any]) -> bool:
    """Whether all values that are not missing are texts of dates."""
    different = values.dropna().unique()
    return len(different) > 0 and all(isinstance(one, str) and to_iso(one) for one in different)


def check_no_other_date(value: Any, name: str) -> None:
    """Refuse text such as 03/31/2026, a form that is not read, or 31.04.2026, which is no date."""
    if not isinstance(value, str):
        return
    read = _ISO.fullmatch(value) or _WITH_POINTS.fullmatch(value)
    if read and to_iso(value) is None:
        raise ValueError(f"{name} holds {value!r}, and the calendar has no such date")
    if _OTHER.fullmatch(value):
        raise ValueError(
            f"{name} holds {value!r}, a date in a form that is not read; write dates as 2026-03-31 "
            "or 31.03.2026"
        )
