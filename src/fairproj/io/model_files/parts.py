"""A part of a model file that hands out checked values and knows where it stands."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairproj.boosting.record import Observation
from fairproj.io.model_files.format import DTYPES, NOT_FINITE, ModelFileError

Record = TypeVar("Record")


class Part:
    """A dict of the file that hands out checked values and knows where it stands."""

    def __init__(self, content: Any, where: str) -> None:
        if not isinstance(content, dict):
            raise ModelFileError(f"{where or 'the file'} must be a dict")
        self._content = content
        self._where = where

    def _name(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def only(self, *names: str) -> None:
        """Refuse what nothing would read."""
        unknown = set(self._content) - set(names)
        if unknown:
            raise ModelFileError(f"{self._name(min(unknown))} is unknown")

    def get(self, key: str) -> Any:
        if key not in self._content:
            raise ModelFileError(f"{self._name(key)} is missing")
        return self._content[key]

    def part(self, key: str) -> Part:
        return Part(self.get(key), self._name(key))

    def _of(self, key: str, kind: type, name: str) -> Any:
        value = self.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ModelFileError(f"{self._name(key)} must be {name}, found {shown(value)}")
        return value

    def text(self, key: str) -> str:
        found: str = self._of(key, str, "a text")
        return found

    def integer(self, key: str, low: int, high: int) -> int:
        found: int = self._of(key, int, "a whole number")
        if not low <= found <= high:
            raise ModelFileError(
                f"{self._name(key)} is {shown(found)}, and {low} to {high} are allowed"
            )
        return found

    def items(self, key: str, length: int | None = None) -> list[Any]:
        found: list[Any] = self._of(key, list, "a list")
        if length is not None and len(found) != length:
            raise ModelFileError(
                f"{self._name(key)} holds {len(found)} entries, and {length} are expected"
            )
        return found

    def texts(self, key: str) -> list[str]:
        return self._all(key, lambda value: isinstance(value, str), "texts")

    def floats(self, key: str, length: int | None = None) -> list[float]:
        return [float(v) for v in self._all(key, is_number, "numbers", length)]

    def truths(self, key: str, length: int) -> list[bool]:
        return self._all(key, lambda value: isinstance(value, bool), "truth values", length)

    def _all(
        self, key: str, right: Callable[[Any], bool], name: str, length: int | None = None
    ) -> list[Any]:
        found = self.items(key, length)
        if not all(map(right, found)):
            raise ModelFileError(f"{self._name(key)} must hold {name} only")
        return found

    def parts(self, key: str) -> list[Part]:
        name = self._name(key)
        return [Part(entry, f"{name}[{at}]") for at, entry in enumerate(self.items(key))]

    def scalars(self, key: str) -> list[Any]:
        return [to_scalar(value, self._name(key)) for value in self.items(key)]

    def array(self) -> NDArray[Any]:
        """What `_packed_array` made."""
        dtype = self.text("dtype")
        if dtype not in DTYPES:
            raise ModelFileError(f"{self._name('dtype')} is unknown: {shown(dtype)}")
        values = self.scalars("values")
        if dtype == "object":
            found: NDArray[Any] = np.empty(len(values), dtype=object)
            for at, value in enumerate(values):
                found[at] = value
            return found
        wanted = {"b": bool, "i": int, "u": int, "f": int | float, "U": str}[np.dtype(dtype).kind]
        if not all(
            isinstance(v, wanted) and (dtype == "bool" or not isinstance(v, bool)) for v in values
        ):
            raise ModelFileError(f"{self._name('values')} must all be of type {dtype}")
        with np.errstate(over="ignore"):
            found = np.array(values, dtype=dtype)
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ModelFileError(f"{self._name('values')} do not fit the type {dtype}")
        return found

    def record(self, kind: type[Record], *more: str) -> Record:
        """A dataclass, its fields checked for the types it declares."""
        fields = {field.name: str(field.type) for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
        self.only(*fields, *more)
        return kind(**{name: self._field(name, of) for name, of in fields.items()})

    def _field(self, name: str, of: str) -> Any:
        value = self.get(name)
        if of.endswith("| None") and value is None:
            return None
        if of.startswith("Observation"):
            return self.part(name).record(Observation)
        if of.startswith("tuple[float"):
            return tuple(to_float(entry, self._name(name)) for entry in self.items(name))
        if of.startswith("tuple"):
            return tuple(self.scalars(name))
        if of.startswith("float"):
            return to_float(value, self._name(name))
        return self._of(name, {"int": int, "bool": bool, "str": str}[of], f"of type {of}")


def shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    return text[:40]


def is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def to_float(value: Any, where: str) -> float:
    """A float of a record; those that JSON has no number for are words."""
    if isinstance(value, str) and value in NOT_FINITE:
        return NOT_FINITE[value]
    if not is_number(value):
        raise ModelFileError(f"{where} must be a number, found {shown(value)}")
    return float(value)


def to_scalar(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        if set(value) != {"tuple"} or not isinstance(value["tuple"], list):
            raise ModelFileError(f"{where} holds a dict that is no tuple")
        if any(isinstance(part, dict) for part in value["tuple"]):
            raise ModelFileError(f"{where} holds a tuple within a tuple")
        return tuple(to_scalar(part, where) for part in value["tuple"])
    if isinstance(value, float) and not math.isfinite(value):
        raise ModelFileError(f"{where} holds a number that is not finite")
    if isinstance(value, list):
        raise ModelFileError(f"{where} holds a list, and single values are expected")
    return value
