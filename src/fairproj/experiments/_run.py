"""Running tasks in parallel; each becomes a row of a tidy file, and a stopped run continues."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from fairproj.constraints import STATISTICS
from fairproj.data.cells import CellCounts
from fairproj.data.checks import check_groups
from fairproj.experiments import _methods
from fairproj.experiments._data import Part, split
from fairproj.experiments._plan import Plan, Task
from fairproj.io.atomic import write_text
from fairproj.io.records import to_json
from fairproj.io.versions import versions
from fairproj.selection.workers import run_calls

KEY = list(Task._fields)
GAPS = ["equal_opportunity", "demographic_parity", "equalized_odds"]
MEASURED = [
    "accuracy",
    *GAPS,
    "rounds",
    "fairness_cost",
    "edge_w",
    "edge_q",
    "loss_falls",
    "edge_bound_holds",
    "violation",
    "seconds",
]
# The run that Figure 3 draws.
DRAWN = ("paper", "adult", "FairProj", "equal_opportunity", 0.25)


def run_task(task: Task, plan: Plan) -> tuple[dict[str, Any], str | None]:
    """One row of the tidy file, and the history as JSON if this is the run that is drawn."""
    features = next(entry for entry in plan.features if entry.name == task.features)
    train, test = split(task.dataset, features, plan.test_size, task.seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        # fairlearn's use of pandas is deprecated, and fits of one class are expected
        warnings.simplefilter("ignore")
        model = _methods.fit(task, plan, train)
        seconds = time.perf_counter() - start
        predicted = _methods.predict(model, test)
    row = {
        **task._asdict(),
        **_accuracy_and_gaps(test, predicted),
        "rounds": _methods.n_rounds(model),
        **_methods.training_facts(model),
        "seconds": seconds,
    }
    drawn = (plan.name, task.dataset, task.method, task.constraint, task.epsilon) == DRAWN
    record = _methods.history(model) if drawn and task.seed == plan.seeds[0] else None
    return row, to_json(record) if record else None


def _accuracy_and_gaps(test: Part, predicted: Any) -> dict[str, float]:
    groups = check_groups(test.groups, len(test.y))
    counts = CellCounts.of_rows(test.y == 1, np.asarray(predicted) == 1, groups)
    gaps = {name: STATISTICS[name].value(counts) for name in GAPS}
    return {"accuracy": counts.accuracy} | gaps


class Results:
    """The folder of a run: ``results.csv``, ``dynamics.json`` and the plan they belong to."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        self.file = folder / "results.csv"
        folder.mkdir(parents=True, exist_ok=True)
        self._note = folder / "plan.json"
        if self._has_rows():
            note = self._read_note()
        else:
            note = {"fingerprint": plan.fingerprint} | versions()
            write_text(self._note, json.dumps(note, indent=1) + "\n")
        if note.get("fingerprint") != plan.fingerprint:
            raise ValueError(
                f"{folder} holds results of another plan; choose another --output, or --fresh to "
                "discard them"
            )
        self.versions = {name: v for name, v in note.items() if name != "fingerprint"}

    def _has_rows(self) -> bool:
        return self.file.exists() and self.file.read_text("utf-8").count("\n") > 1

    def _read_note(self) -> dict[str, str]:
        try:
            return dict(json.loads(self._note.read_text("utf-8")))
        except (OSError, ValueError) as error:
            raise ValueError(f"{self._note} cannot be read ({error}); use --fresh") from None

    def read(self) -> pd.DataFrame:
        """The rows so far, in the order of the plan; an incomplete last line is removed."""
        if not self.file.exists():
            return pd.DataFrame(columns=KEY + MEASURED)
        text = self.file.read_text("utf-8")
        complete = text[: text.rfind("\n") + 1]
        if complete != text:
            write_text(self.file, complete)
        if not complete:
            return pd.DataFrame(columns=KEY + MEASURED)
        order = {_key(task): position for position, task in enumerate(self.plan.tasks())}
        empty: dict[Any, list[str]] = {column: [""] for column in _NUMBERS}
        try:
            frame = pd.read_csv(self.file, keep_default_na=False, na_values=empty)
            frame["order"] = [order[_key(row)] for row in frame[KEY].itertuples(index=False)]
        except (KeyError, ValueError) as error:
            raise ValueError(f"{self.file} cannot be read ({error}); use --fresh") from None
        frame = frame.drop_duplicates("order").sort_values("order", ignore_index=True)
        return frame.drop(columns="order")

    def todo(self) -> list[Task]:
        """The tasks that are left, longest first so that no core is idle at the end."""
        done = {_key(row) for row in self.read()[KEY].itertuples(index=False)}
        left = [task for task in self.plan.tasks() if _key(task) not in done]
        return sorted(left, key=lambda task: expected_seconds(task, self.plan), reverse=True)

    def check_versions(self, todo: list[Task]) -> None:
        """Refuse to add rows to results that were made with other versions."""
        now = versions()
        other = [f"{n} {v}, now {now[n]}" for n, v in self.versions.items() if now.get(n) != v]
        if todo and other and len(self.read()):
            raise ValueError(
                f"{self.folder} holds results made with other versions ({'; '.join(other)}); "
                "choose another --output, or --fresh to start again"
            )

    def add(self, row: dict[str, Any], drawn: str | None) -> None:
        """Append a row, and write the history of the run that is drawn."""
        if drawn is not None:
            write_text(self.folder / "dynamics.json", drawn + "\n")
        line = pd.DataFrame([row], columns=KEY + MEASURED)
        with self.file.open("a", encoding="utf-8") as file:
            line.to_csv(file, header=file.tell() == 0, index=False, float_format="%.10g")

    def tidy(self) -> pd.DataFrame:
        """Write the finished file in the order of the plan, and return its rows."""
        frame = self.read()
        write_text(self.file, frame.to_csv(index=False, float_format="%.10g"))
        return frame


_NUMBERS = ["epsilon", *MEASURED]


def _key(row: Any) -> tuple[Any, ...]:
    """A task, or the key columns of a row, in a form that can be compared."""
    epsilon = -1.0 if row.epsilon is None or np.isnan(row.epsilon) else float(row.epsilon)
    return (row.dataset, row.features, row.method, row.constraint, epsilon, int(row.seed))


_SIZE = {"adult": 1.0, "german": 0.08, "compas": 0.12}


def expected_seconds(task: Task, plan: Plan) -> float:
    """An estimate, for the order of the tasks and the time left."""
    method = plan.method(task.method)
    return _methods.METHODS[method.kind or method.name][1] * _SIZE.get(task.dataset, 1.0)


def run(results: Results, n_jobs: int, done: Callable[[float], None]) -> None:
    """Run what is left, ``n_jobs`` tasks at a time; ``done`` gets the expected seconds of each."""
    todo = results.todo()
    results.check_versions(todo)
    work = joblib.Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
    calls = (joblib.delayed(run_task)(task, results.plan) for task in todo)
    for row, drawn in run_calls(work, calls):
        results.add(row, drawn)
        done(expected_seconds(Task(**{name: row[name] for name in KEY}), results.plan))


def discard(folder: Path) -> None:
    """Delete the results of an earlier run; tables and figures stay until they are redrawn."""
    for name in ("results.csv", "dynamics.json", "plan.json"):
        (folder / name).unlink(missing_ok=True)
