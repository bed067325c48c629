"""Kinds of columns in words for users, and the column types that new rows are read with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.compute
from pyarrow import csv as arrow_csv

from fairproj.data.dates import are_dates

NUMBERS = ("whole number", "number")
_SPELLED_AS_TEXT = (*NUMBERS, "boolean", "empty")
USABLE = (*_SPELLED_AS_TEXT, "text")  # kinds of columns that trees can use
DATE_TEXT = "date as text"
DATES = ("date", "date and time", DATE_TEXT)
_NULL_SPELLINGS = arrow_csv.ConvertOptions().null_values
_KINDS = (
    ("text", pa.types.is_dictionary),
    ("boolean", pa.types.is_boolean),
    ("whole number", pa.types.is_integer),
    ("number", pa.types.is_floating),
    ("number", pa.types.is_decimal),
    ("text", pa.types.is_string),
    ("text", pa.types.is_large_string),
    ("text", pa.types.is_string_view),
    ("empty", pa.types.is_null),
    ("date", pa.types.is_date),
    ("date and time", pa.types.is_timestamp),
    ("time", pa.types.is_time),
    ("time span", pa.types.is_duration),
)

_KIND_WORDS = {
    "text": "text",
    "boolean": "booleans",
    "whole number": "whole numbers",
    "number": "numbers",
    "empty": "no values",
    "date": "dates",
    "date and time": "dates with times",
    DATE_TEXT: "dates as text",
    "time": "times of day",
    "time span": "time spans",
}


@dataclass(frozen=True)
class KnownText:
    """The type of a column that held text in training, with its categories there."""

    categories: frozenset[str]


@dataclass(frozen=True)
class KnownNumber:
    """The type of a column that held numbers in training.

    ``decimal`` is the sign before decimals there, ``"."`` or ``","``; None if no text told it.
    """

    decimal: str | None = None


# What the reading functions accept for each column.
ColumnType: TypeAlias = pa.DataType | KnownText | KnownNumber
ColumnTypes = Mapping[str, ColumnType]


def kind_of(arrow_type: pa.DataType) -> str:
    """Name a pyarrow type in words for users; a type that is not listed keeps pyarrow's name."""
    return next((kind for kind, matches in _KINDS if matches(arrow_type)), str(arrow_type))


def kind_words(kind: str) -> str:
    """What a column of a kind holds, as in "holds dates"."""
    return _KIND_WORDS.get(kind, f"values of type {kind}")


def column_kinds(table: pa.Table) -> dict[str, str]:
    """Find the kind of each column of a table."""
    return {field.name: kind_of(field.type) for field in table.schema}


def with_date_texts(
    kinds: Mapping[str, str], frame: pd.DataFrame, names: Iterable[str]
) -> dict[str, str]:
    """The kinds of columns, with those of some columns that are text and hold dates."""
    texts = [name for name in names if kinds[name] == "text" and are_dates(frame[name])]
    return {**kinds, **dict.fromkeys(texts, DATE_TEXT)}


def is_text(column_type: ColumnType | None) -> bool:
    """Whether a column type is text; None stands for a type that is not known."""
    if isinstance(column_type, pa.DataType):
        return kind_of(column_type) == "text"
    return isinstance(column_type, KnownText)


def column_types(
    features: Sequence[str],
    categories: Mapping[int, Sequence[Any]],
    booleans: Sequence[bool],
    decimals: Mapping[str, str],
) -> dict[str, Any]:
    """Choose types for the columns of new rows, so that values mean what they meant in training.

    ``categories`` has the categories of a column by its position, ``booleans`` whether it held
    booleans, ``decimals`` the sign before decimals by the names of columns.
    """
    types: dict[str, Any] = {}
    for position, name in enumerate(features):
        texts = frozenset(v for v in categories.get(position, ()) if isinstance(v, str))
        if texts:
            types[name] = KnownText(texts)
        else:
            number = KnownNumber(decimals.get(name))
            types[name] = pa.bool_() if booleans[position] else number
    return types


def csv_types(types: ColumnTypes) -> dict[str, pa.DataType]:
    """The types as pyarrow's CSV reader accepts them."""
    return {name: _csv_type(column_type) for name, column_type in types.items()}


def _csv_type(column_type: ColumnType) -> pa.DataType:
    if isinstance(column_type, KnownText):
        return pa.string()
    return pa.float64() if isinstance(column_type, KnownNumber) else column_type


def known_decimals(types: ColumnTypes) -> dict[str, str]:
    """The sign before decimals in training, of the columns of numbers where it is known."""
    return {
        name: one.decimal
        for name, one in types.items()
        if isinstance(one, KnownNumber) and one.decimal is not None
    }


def mark_missing(table: pa.Table, types: ColumnTypes) -> pa.Table:
    """Replace spellings of a missing value in text columns of a CSV file, such as NA, by nulls.

    pyarrow can do this for all text columns alike only. Here a spelling that was a value of the
    column in training stays a value.
    """
    for position, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            column_type = types.get(field.name)
            known = column_type.categories if isinstance(column_type, KnownText) else ()
            nulls = pa.array([text for text in _NULL_SPELLINGS if text not in known], pa.string())
            column = table.column(position)
            is_missing = pa.compute.is_in(column, value_set=nulls)
            column = pa.compute.if_else(is_missing, pa.scalar(None, pa.string()), column)
            table = table.set_column(position, field.name, column)
    return table


def apply_types(table: pa.Table, types: ColumnTypes) -> pa.Table:
    """Validate a table, and convert numbers and booleans to text where training had text."""
    table.validate(full=True)  # pyarrow's readers accept some damaged files
    for position, field in enumerate(table.schema):
        column = expand(table.column(position))
        column_type = types.get(field.name)
        if is_text(column_type) and kind_of(column.type) in _SPELLED_AS_TEXT:
            column = _to_text(column, column_type)
        if column.type != field.type:
            table = table.set_column(position, field.name, column)
    return table


def _to_text(column: Any, column_type: Any) -> Any:
    """Convert to text, with booleans as training spelled them: True, where pyarrow writes true."""
    text = column.cast(pa.string())
    if pa.types.is_boolean(column.type) and isinstance(column_type, KnownText):
        for boolean in ("true", "false"):
            spellings = [value for value in column_type.categories if value.lower() == boolean]
            if boolean not in column_type.categories and len(spellings) == 1:
                text = pa.compute.replace_substring(text, boolean, spellings[0])
    return text


def expand(column: Any) -> Any:
    """Convert views and run-end encoded values, which few functions accept, to plain values."""
    if pa.types.is_run_end_encoded(column.type):
        column = pa.compute.run_end_decode(column)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    return column.cast(pa.binary()) if pa.types.is_binary_view(column.type) else column


def to_frame(table: pa.Table, names: Sequence[str]) -> pd.DataFrame:
    """Convert some columns to a data frame, text to categories: each value is encoded once."""
    coded = [_with_codes(table.column(name)) for name in names]
    frame: pd.DataFrame = pa.table(coded, names=list(names)).to_pandas()
    return frame


def plain_texts(table: pa.Table, names: Sequence[str]) -> frozenset[str]:
    """The columns of text among some, without those that the file declares as categories."""
    types = {name: table.schema.field(name).type for name in names}
    return frozenset(
        name
        for name, one in types.items()
        if kind_of(one) == "text" and not pa.types.is_dictionary(one)
    )


def _with_codes(column: Any) -> Any:
    """Encode text; codes that have no sign, as polars writes them, get one for old pyarrow."""
    kind = column.type
    if pa.types.is_dictionary(kind) and pa.types.is_unsigned_integer(kind.index_type):
        return column.cast(pa.dictionary(pa.int64(), kind.value_type, kind.ordered))
    return column.dictionary_encode() if kind_of(column.type) == "text" else column
