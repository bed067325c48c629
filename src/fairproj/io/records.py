"""Dataclasses as JSON and back, checked against their annotations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

Record = TypeVar("Record")

_TOO_DEEP = "it is nested too deeply"
_SINGLE = (float, int, str, type(None), Enum)


class RecordError(ValueError):
    """A record that cannot be written as JSON, or JSON that does not hold the expected record."""


def to_json(record: Any) -> str:
    """The record as compact JSON; numbers that are not finite become null."""
    try:
        encoded: bytes = _msgspec().json.encode(record)
    except RecursionError:
        raise RecordError(_TOO_DEEP) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise RecordError(str(error)) from None
    return encoded.decode()


def from_json(text: str | bytes, kind: type[Record]) -> Record:
    """The record that `to_json` wrote.

    The text must be exactly what `to_json` writes for the record. So every field has its declared
    type, and none is missing, given twice or unknown.
    """
    msgspec = _msgspec()
    raw = text.encode() if isinstance(text, str) else text
    try:
        record: Record = msgspec.json.decode(raw, type=kind)
        written: bytes = msgspec.json.encode(record)
    except RecursionError:
        raise RecordError(_TOO_DEEP) from None
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise RecordError(str(error)) from None
    if written != raw:
        raise RecordError("a field is unknown, given twice or not written as fairproj writes it")
    _check_complete(record)
    return record


def from_dict(values: Any, kind: type[Record]) -> Record:
    """The record whose fields are given as dicts, lists, texts, numbers and booleans."""
    return from_json(to_json(values), kind)


def to_dict(record: Any) -> Any:
    """The record as dicts, lists, texts, numbers and booleans."""
    return _msgspec().json.decode(to_json(record))


def _check_complete(record: Any) -> None:
    """Fields with a default must be there too; msgspec leaves those that are missing unset."""
    parts = [] if isinstance(record, _SINGLE) else [record]
    while parts:
        part = parts.pop()
        values: Iterable[Any] = part
        if is_dataclass(part):
            values = vars(part).values()
            for field in fields(part):
                if field.name not in vars(part):
                    raise RecordError(f"the field {field.name} is missing")
        elif isinstance(part, dict):
            values = part.values()
        parts.extend(value for value in values if not isinstance(value, _SINGLE))


def _msgspec() -> Any:
    try:
        import msgspec
    except ImportError:
        raise ImportError(
            "model files need msgspec; install it with pip install 'fairproj[files]'"
        ) from None
    return msgspec
