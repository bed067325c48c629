"""Plans: problems, splits, methods and their grids, read from TOML, and the cases that follow.

``methods.toml`` holds every method; a plan names the problems and splits, and may take a part of
the methods.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CONSTRAINTS = ("equal_opportunity", "demographic_parity", "equalized_odds")
Setting = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """Rows, groups and what is compared on them.

    Attributes
    ----------
    name : str
    title : str
        As the page shows it.
    data : str
        A name that `arena.data` knows.
    sensitive : tuple of str
        Columns that are crossed into groups.
    n_groups : int
    keep_sensitive : bool
        Whether they are also features.
    own_groups : dict
        For a sensitive column, the values that keep a group of their own; others are merged.
    goal : {"accuracy", "balanced_accuracy"}
        The score that is set against the gap, and that methods aim at where they can.
    constraints : tuple of str
    options : dict
        Passed to the reader of the data.
    """

    name: str
    title: str
    data: str
    sensitive: tuple[str, ...] = ()
    n_groups: int = 2
    keep_sensitive: bool = False
    own_groups: dict[str, list[str]] = field(default_factory=dict)
    goal: str = "accuracy"
    constraints: tuple[str, ...] = CONSTRAINTS
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A method, its grid, and what must be known to read its results.

    Attributes
    ----------
    name : str
    kind : str
        The function of the module ``arena.peers.<environment>`` that fits it.
    environment : str
        Where it runs; "here" is the environment of the command.
    grid : tuple of dict
        One entry for each point.
    learners : tuple of str
        The learners of LightGBM that it is built on, each with the whole grid; empty for a method
        that is built on something else.
    constraints : tuple of str
        Those it can be fitted for. Empty: it knows none, is fitted once, and is read for all.
    groups : {"none", "inferred", "used"}
        What it needs of the groups at predict.
    max_groups : int
        The most groups it takes.
    probabilities : bool
        Whether its scores are meant as probabilities.
    problems : tuple of str
        Those it runs on; empty for all.
    seconds : float
        About how long a case takes with 10,000 rows, for the first estimate of the time left.
    code : str
        What a user writes for one fit and its predictions, given X, y, groups, X_new, groups_new.
    note : str
        For the page.
    gives : str
        What comes out, for the short table of the README.
    timed : dict
        The setting that is timed; by default the middle of the grid.
    """

    name: str
    kind: str
    code: str
    environment: str = "here"
    grid: tuple[Setting, ...] = ({},)
    learners: tuple[str, ...] = ()
    constraints: tuple[str, ...] = CONSTRAINTS
    groups: str = "none"
    max_groups: int = 100
    probabilities: bool = True
    problems: tuple[str, ...] = ()
    seconds: float = 1.0
    note: str = ""
    gives: str = "one model"
    timed: Setting | None = None

    def takes(self, problem: Problem) -> bool:
        """Whether it runs on a problem."""
        named = not self.problems or problem.name in self.problems
        return named and problem.n_groups <= self.max_groups

    @property
    def lines(self) -> int:
        """Lines of user code."""
        return sum(bool(line.strip()) for line in self.code.splitlines())

    @property
    def timed_setting(self) -> Setting:
        return self.grid[len(self.grid) // 2] if self.timed is None else self.timed


@dataclass(frozen=True)
class Environment:
    """Packages that methods need and that do not fit beside the others.

    ``unpinned`` are installed without the versions that they ask for.
    """

    name: str
    packages: tuple[str, ...]
    unpinned: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Timing:
    """What is timed, one fit at a time; all methods, unless some are named.

    ``training_rows`` may be more than in the comparison. Fits that took longer than ``slow``
    seconds are repeated ``slow_repeats`` times only.
    """

    problems: tuple[str, ...] = ()
    constraints: tuple[str, ...] = CONSTRAINTS
    methods: tuple[str, ...] = ()
    training_rows: int = 0
    repeats: int = 3
    slow: float = 5.0
    slow_repeats: int = 1


@dataclass(frozen=True)
class Plan:
    """What is run."""

    name: str
    title: str
    splits: tuple[int, ...]
    test: float
    validation: float
    training_rows: int
    targets: tuple[float, ...]
    learners: dict[str, Setting]
    problems: tuple[Problem, ...]
    methods: tuple[Method, ...]
    environments: tuple[Environment, ...]
    timing: Timing
    case_limit: float = 300.0
    remark: str = ""  # on the page, below the first table

    def cases(self) -> Iterator[dict[str, Any]]:
        """Everything to run, split by split: a run that is stopped has fewer splits, not methods.

        A case is one method with one learner on one split of one problem, for one constraint (""
        for a method that knows none), over its whole grid.
        """
        for split in self.splits:
            for problem in self.problems:
                for method in self.methods:
                    yield from self._cases_of(split, problem, method)

    def _cases_of(self, split: int, problem: Problem, method: Method) -> Iterator[dict[str, Any]]:
        if not method.takes(problem):
            return
        for constraint in method.constraints or ("",):
            if constraint in (*problem.constraints, ""):
                for learner in self.learners_of(method):
                    yield {
                        "split": split,
                        "problem": problem.name,
                        "method": method.name,
                        "constraint": constraint,
                        "plan": self.fingerprint(problem, method, learner),
                    }

    def learners_of(self, method: Method) -> list[str]:
        """The learners that a method is fitted with; one, that it ignores, if it needs none."""
        return [name for name in self.learners if name in method.learners] or [self.first_learner]

    @property
    def first_learner(self) -> str:
        """The one with LightGBM's defaults, with which fits are timed."""
        return next(iter(self.learners))

    def learner_of(self, case: dict[str, Any]) -> str:
        """The learner of a case, which its fingerprint tells."""
        problem, method = self.problem(case["problem"]), self.method(case["method"])
        known = {self.fingerprint(problem, method, name): name for name in self.learners}
        return known[case["plan"]]

    def fingerprint(self, problem: Problem, method: Method, learner: str) -> str:
        """A hash of everything that the results of a case depend on, besides versions."""
        asked = asdict(problem)
        fitted = {name: getattr(method, name) for name in ("kind", "environment", "grid")}
        for shown in ("title", "constraints"):
            del asked[shown]
        protocol = (self.test, self.validation, self.training_rows, self.learners[learner])
        content = json.dumps([asked, fitted, protocol], sort_keys=True, default=list)
        return hashlib.sha256(content.encode()).hexdigest()[:8]

    def overlap(self, problem: str) -> float:
        """Test rows divided by rows that are left to train on; populations are drawn anew."""
        if self.problem(problem).data == "population":
            return 0.0
        return self.test / (1 - self.test - self.validation)

    def problem(self, name: str) -> Problem:
        return next(problem for problem in self.problems if problem.name == name)

    def method(self, name: str) -> Method:
        return next(method for method in self.methods if method.name == name)

    def without(self, *, problems: set[str], environments: set[str]) -> Plan:
        """The part that does not need these problems and environments."""
        return replace(
            self,
            problems=tuple(each for each in self.problems if each.name not in problems),
            methods=tuple(each for each in self.methods if each.environment not in environments),
        )


def read_plan(path: Path) -> Plan:
    """A plan from its file, with the methods that it names, or all, from ``methods.toml``.

    ``grids`` of a plan replaces the grids of some methods, ``learners`` names those that are used,
    ``learner`` replaces parameters of all of them, and ``variants`` are methods that are defined as
    another, under a name and with a grid of their own.
    """
    content = tomllib.loads(path.read_text("utf-8"))
    known = tomllib.loads((HERE / "methods.toml").read_text("utf-8"))
    grids = content.get("grids", {})
    names = [entry["name"] for entry in known["methods"]]
    wanted = content.get("methods", names)
    variants = content.get("variants", [])
    unknown = {*wanted, *grids, *(each["of"] for each in variants)} - set(names)
    if unknown:
        raise ValueError(f"{path} names methods that methods.toml lacks: {sorted(unknown)}")
    methods = [
        _method(entry | ({"grid": grids[entry["name"]]} if entry["name"] in grids else {}))
        for entry in known["methods"]
        if entry["name"] in wanted
    ]
    entries = dict(zip(names, known["methods"], strict=True))
    methods += [
        _method(entries[each["of"]] | {name: v for name, v in each.items() if name != "of"})
        for each in variants
    ]
    used = {method.environment for method in methods}
    environments = [_tuples(Environment, entry) for entry in known["environments"]]
    return Plan(
        name=path.stem,
        title=content["title"],
        remark=content.get("remark", ""),
        splits=tuple(range(content["first_split"], content["first_split"] + content["splits"])),
        test=content["test"],
        validation=content["validation"],
        training_rows=content["training_rows"],
        targets=tuple(content["targets"]),
        learners={
            name: known["learners"][name] | content.get("learner", {})
            for name in content.get("learners", known["learners"])
        },
        problems=tuple(_tuples(Problem, entry) for entry in content["problems"]),
        methods=tuple(methods),
        environments=tuple(each for each in environments if each.name in used),
        timing=_tuples(Timing, content.get("timing", {})),
        case_limit=content.get("case_limit", 300.0),
    )


def _method(entry: dict[str, Any]) -> Method:
    """The grid of a method is a table of lists, crossed, or a list of such tables."""
    tables = entry.get("grid", [{}])
    tables = [tables] if isinstance(tables, dict) else tables
    grid = tuple(
        dict(zip(table, values, strict=True))
        for table in tables
        for values in product(*table.values())
    )
    return replace(_tuples(Method, entry | {"grid": []}), grid=grid)


def _tuples(kind: Any, entry: dict[str, Any]) -> Any:
    return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in entry.items()})
