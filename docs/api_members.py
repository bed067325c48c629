"""Which members of each class the API reference shows."""

from __future__ import annotations

import ast
import enum
import inspect
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parent / "reference"
# What users look for comes first; the other members follow in the order of the alphabet.
FIRST = ("fit", "predict", "predict_proba", "decision_function", "score")


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
    return {name: own_members(value) for name, value in _classes().items()}


def outcomes_by_class() -> dict[str, list[tuple[str, str, str]]]:
    """For each enum of the reference, the name, the value and the sentence of each member."""
    return {
        name: [(member.name, repr(member.value), _sentence(member.sentence)) for member in value]
        for name, value in _classes().items()
        if issubclass(value, enum.Enum)
    }


def _classes() -> dict[str, type]:
    objects = {name: find_object(name) for name in documented_names()}
    return {name: value for name, value in objects.items() if inspect.isclass(value)}


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def own_members(cls: type) -> list[tuple[str, str]]:
    """The public methods and properties that classes of fairproj define.

    Not those that scikit-learn makes for the routing of metadata, such as ``set_fit_request``.
    Properties without a docstring are left out: the class describes them among its attributes.
    """
    members = dict(_members(cls))
    first = [name for name in FIRST if name in members]
    return [(members[name], name) for name in [*first, *sorted(members.keys() - {*first})]]


def _members(cls: type) -> Iterator[tuple[str, str]]:
    """The name of each member, and its directive."""
    bases = [base for base in cls.__mro__ if base.__module__.startswith("fairproj")]
    for name in {name for base in bases for name in vars(base) if not name.startswith("_")}:
        value = inspect.getattr_static(cls, name)
        if isinstance(value, property | cached_property):
            if inspect.getdoc(value):
                yield name, "autoproperty"
        elif inspect.isroutine(getattr(cls, name, None)) and not name.endswith("_request"):
            yield name, "automethod"


def docstring(full_name: str) -> str:
    """An object's own docstring, or the text below the assignment of what has none."""
    value = find_object(full_name)
    if inspect.isroutine(value) or "__doc__" in getattr(value, "__dict__", {}):
        return inspect.cleandoc(value.__doc__ or "")
    name = full_name.rpartition(".")[2]
    module = getattr(value, "__module__", None) or full_name.rpartition(".")[0]
    body = ast.parse(inspect.getsource(import_module(module))).body
    for statement, below in pairwise(body):
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        if name in {getattr(target, "id", None) for target in targets}:
            text = getattr(getattr(below, "value", None), "value", None)
            return inspect.cleandoc(text) if isinstance(text, str) else ""
    return ""
