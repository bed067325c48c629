"""Plans: datasets, seeds, features, methods and epsilons, and the tasks that follow."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Features:
    """How columns become numbers."""

    name: str
    encoding: str  # "one-hot", "codes" or "numbers"
    leave_out: tuple[str, ...] = ()
    keep_sensitive: bool = False
    drop_incomplete: bool = False


@dataclass(frozen=True)
class Method:
    """A method by name, with the constraints and epsilons it is run for, if it has any.

    ``kind`` is the method where ``name`` is only a title, ``settings`` are parameters of it, and
    ``datasets`` are those it is run on; by default all.
    """

    name: str
    constraints: tuple[str, ...] = ("",)
    epsilons: tuple[float | None, ...] = (None,)
    kind: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    datasets: tuple[str, ...] = ()


class Task(NamedTuple):
    """One fit. The fields are the key columns of the tidy file."""

    dataset: str
    features: str
    method: str
    constraint: str
    epsilon: float | None
    seed: int


@dataclass(frozen=True)
class Plan:
    """What is run."""

    name: str
    title: str
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    test_size: float
    rounds: int
    features: tuple[Features, ...]
    methods: tuple[Method, ...]

    def tasks(self) -> Iterator[Task]:
        """Every combination, in the order of the tidy file."""
        for dataset in self.datasets:
            for features in self.features:
                for method in self.methods:
                    if method.datasets and dataset not in method.datasets:
                        continue
                    for constraint in method.constraints:
                        for epsilon in method.epsilons:
                            for seed in self.seeds:
                                yield Task(
                                    dataset, features.name, method.name, constraint, epsilon, seed
                                )

    @property
    def fingerprint(self) -> str:
        """A hash of everything that a result depends on."""
        content = asdict(self)
        for method in content["methods"]:
            for name in ("kind", "settings", "datasets"):
                if not method[name]:
                    del method[name]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    def method(self, name: str) -> Method:
        return next(method for method in self.methods if method.name == name)


def read_plan(name: str, *, quick: bool = False) -> Plan:
    """The package's plan ``name``, "paper" or "readings"; ``quick`` keeps a small part of it."""
    text = (files(__package__) / f"{name}.toml").read_text("utf-8")
    return parse_plan(name, text, quick=quick)


def parse_plan(name: str, text: str, *, quick: bool = False) -> Plan:
    """A plan from the text of its file."""
    content = tomllib.loads(text)
    plan = Plan(
        name=name,
        title=content["title"],
        datasets=tuple(content["datasets"]),
        seeds=tuple(content["seeds"]),
        test_size=content["test_size"],
        rounds=content["rounds"],
        features=tuple(Features(**_tuples(entry)) for entry in content["features"]),
        methods=tuple(Method(**_tuples(entry)) for entry in content["methods"]),
    )
    return _smaller(plan, content["quick"]) if quick else plan


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items()}


def _smaller(plan: Plan, quick: dict[str, Any]) -> Plan:
    methods = tuple(
        replace(method, epsilons=tuple(quick["epsilons"].get(method.name, method.epsilons)))
        for method in plan.methods
    )
    return replace(plan, seeds=tuple(quick["seeds"]), methods=methods)


def published() -> dict[str, Any]:
    """The numbers that the paper prints."""
    return tomllib.loads((files(__package__) / "published.toml").read_text("utf-8"))
