"""Dataclasses as JSON and back, checked against their annotations."""

from __future__ import annotations

from typing import Any, TypeVar

Record = TypeVar("Record")


class RecordError(ValueError):
    """A record that cannot be written as JSON, or JSON that does not hold the expected record."""


def to_json(record: Any) -> str:
    """The record as compact JSON; numbers that are not finite become null."""
    try:
        encoded: bytes = _msgspec().json.encode(record)
    except (TypeError, ValueError, RecursionError) as error:
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
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RecordError(str(error)) from None
    if written != raw:
        raise RecordError(
            "a field is missing, unknown, given twice or not written as fairproj writes it"
        )
    return record


def from_dict(values: Any, kind: type[Record]) -> Record:
    """The record whose fields are given as dicts, lists, texts, numbers and booleans."""
    return from_json(to_json(values), kind)


def to_dict(record: Any) -> Any:
    """The record as dicts, lists, texts, numbers and booleans."""
    return _msgspec().json.decode(to_json(record))


def _msgspec() -> Any:
    try:
        import msgspec
    except ImportError:
        raise ImportError(
            "model files need msgspec; install it with pip install 'fairproj[files]'"
        ) from None
    return msgspec
