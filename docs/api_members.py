"""Which members of each class the API reference shows."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parent / "reference"


def documented_names() -> list[str]:
    """The full names that the tables of the reference list."""
    lines = [
        line.strip()
        for page in sorted(REFERENCE.glob("*.rst"))
        for line in page.read_text("utf-8").splitlines()
    ]
    return [line for line in lines if line.startswith("fairproj.") and " " not in line]


def find_object(full_name: str) -> Any:
    module, _, name = full_name.rpartition(".")
    return getattr(import_module(module), name)


def members_by_class() -> dict[str, list[tuple[str, str]]]:
    """For each class of the reference, a directive and a name for each member."""
    objects = {name: find_object(name) for name in documented_names()}
    return {name: list(own_members(cls)) for name, cls in objects.items() if inspect.isclass(cls)}


def own_members(cls: type) -> Iterator[tuple[str, str]]:
    """The public methods and properties that classes of fairproj define."""
    seen: set[str] = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("fairproj") or issubclass(cls, enum.Enum):
            continue
        for member, value in vars(base).items():
            if member.startswith("_") or member in seen:
                continue
            seen.add(member)
            if isinstance(value, property | cached_property):
                yield "autoproperty", member
            elif inspect.isfunction(value) or isinstance(value, classmethod | staticmethod):
                yield "automethod", member
