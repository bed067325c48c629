"""Running the cases of a plan: fit the points, score their predictions, keep the rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from arena import environments, scores, worker
from arena.data import DataMissingError, Files, Folders, make_files
from arena.plan import Method, Plan
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions
from kept import Case, read_kept, run_cases

DIGITS = 5
# Packages whose versions are shown, and are the same for all results of a run.
SHOWN = ("fairproj", "lightgbm", "fairlearn", "scikit-learn", "numpy", "pandas", "python")


def prepare_data(plan: Plan, folders: Folders) -> dict[str, str]:
    """Write the files of every split; the problems whose data are missing, with the reason."""
    missing = {}
    for problem in plan.problems:
        try:
            for split in plan.splits:
                make_files(problem, split, plan, folders)
        except DataMissingError as error:
            missing[problem.name] = str(error)
    return missing


def run(
    plan: Plan, folders: Folders, built: Path, path: Path, *, fresh: bool = False, n_jobs: int = 2
) -> None:
    """Run the cases that are left, and keep what they give in ``path``."""
    measure = partial(measure_case, plan=plan, folders=folders, built=built)
    expected = expected_seconds(plan, path)
    run_cases(plan.cases(), measure, path, fresh=fresh, n_jobs=n_jobs, expected=expected)


def measure_case(case: Case, *, plan: Plan, folders: Folders, built: Path) -> Case:
    """One row for each point of a method's grid: its scores and gaps, or the error."""
    problem, method = plan.problem(case["problem"]), plan.method(case["method"])
    files = make_files(problem, case["split"], plan, folders)
    parts = worker.load_parts(str(files.arrays), str(files.rows))
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "predictions.npz"
        request = make_request(case, plan, files) | {"output": str(output)}
        reply = reply_to(request, method, plan, built)
        if "error" in reply:
            return {"columns": scores.COLUMNS, "rows": [], "errors": [reply["error"]]}
        with np.load(output) as arrays:
            kept = dict(arrays)
    table = _tabulate(reply["points"], kept, parts, method, test_weight(files))
    return table | {"cpu_seconds": reply["cpu_seconds"]}


def make_request(case: Case, plan: Plan, files: Files) -> dict[str, Any]:
    """What the worker is asked to fit."""
    method = plan.method(case["method"])
    return {
        "arrays": str(files.arrays),
        "rows": str(files.rows),
        "environment": method.environment,
        "kind": method.kind,
        "constraint": case["constraint"],
        "goal": plan.problem(case["problem"]).goal,
        "settings": list(method.grid),
        "learner": plan.learners[plan.learner_of(case)],
        "seed": case["split"],
    }


def reply_to(request: dict[str, Any], method: Method, plan: Plan, built: Path) -> dict[str, Any]:
    if method.environment == "here":
        return worker.answer(request)
    return environments.ask(built / method.environment, request, plan.case_limit)


def test_weight(files: Files) -> Any:
    """The weight of each test row, where they differ."""
    with np.load(files.rows) as rows:
        return rows.get("test_weight")


def _tabulate(points: Any, kept: Any, parts: Any, method: Method, weight: Any) -> Case:
    rows, errors = [], []
    for at, point in enumerate(points):
        if "error" in point:
            errors.append(point["error"])
            continue
        row = {"point": method.grid.index(point["setting"]), "seconds": point["seconds"]}
        for part, weights in (("validation", None), ("test", weight)):
            measured = scores.measure(parts[part], kept[f"{part}_chance_{at}"], weights)
            row |= {f"{part}_{name}": value for name, value in measured.items()}
        score = kept.get(f"test_score_{at}")
        row |= scores.measure_scores(
            parts["test"], score, weight, probabilities=method.probabilities
        )
        rows.append([_short(row[name]) for name in scores.COLUMNS])
    return {"columns": scores.COLUMNS, "rows": rows, "errors": errors}


def _short(value: float) -> float | int | None:
    if isinstance(value, int):
        return value
    return None if np.isnan(value) else round(float(value), DIGITS)


def expected_seconds(plan: Plan, path: Path) -> Callable[[Case], float]:
    """How long a case takes: as long as the same on another split, or what the plan guesses."""
    measured: dict[tuple[str, ...], list[float]] = {}
    for row in read_kept(path):
        measured.setdefault(_place(row["case"]), []).append(row["result"]["seconds"])
    medians = {place: float(np.median(seconds)) for place, seconds in measured.items()}
    guesses = {method.name: method.seconds for method in plan.methods}
    return lambda case: medians.get(_place(case), guesses[case["method"]])


def _place(case: Case) -> tuple[str, ...]:
    return case["problem"], case["method"], case["constraint"], case["plan"]


def read_results(plan: Plan, path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tidy table, one row for each point; and one row for each case, with errors and time.

    Rows of a method that knows no constraint are repeated for every constraint of the problem.
    """
    wanted = {json.dumps(case, sort_keys=True) for case in plan.cases()}
    points, cases = [], []
    for row in read_kept(path):
        case, result = row["case"], row["result"]
        if json.dumps(case, sort_keys=True) not in wanted:
            continue
        named = {name: case[name] for name in ("problem", "split", "method")}
        named["learner"] = plan.learner_of(case)
        spent = result.get("cpu_seconds", np.nan)
        cases.append({**named, "errors": result["errors"], "cpu_seconds": spent})
        asked = plan.problem(case["problem"]).constraints
        for constraint in [case["constraint"]] if case["constraint"] else asked:
            for values in result["rows"]:
                measured = dict(zip(result["columns"], values, strict=True))
                points.append({**named, "constraint": constraint, **measured})
    if not points:
        raise ValueError(f"{path} holds no results of the plan {plan.name!r}")
    order = {problem.name: at for at, problem in enumerate(plan.problems)}
    tidy = pd.DataFrame(points).sort_values(
        "problem", key=lambda names: names.map(order), kind="stable", ignore_index=True
    )
    return add_goal(tidy, plan), pd.DataFrame(cases)


def add_goal(tidy: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """Add the score that the problem is about, and the gap that the constraint is about."""
    goals = tidy["problem"].map({problem.name: problem.goal for problem in plan.problems})
    added = {}
    for part in ("validation", "test"):
        for new, wanted in (("score", goals), ("gap", tidy["constraint"])):
            columns = [f"{part}_{name}" for name in scores.MEASURED]
            places = pd.Index(columns).get_indexer(f"{part}_" + wanted)
            values = tidy[columns].to_numpy(dtype=float)
            added[f"{part}_{new}"] = values[np.arange(len(tidy)), places]
    return tidy.assign(**added, point=tidy["point"].astype(int))


def discard(path: Path, methods: list[str]) -> None:
    """Forget the cases of some methods, so that they are run again."""
    kept = [row for row in read_kept(path) if row["case"]["method"] not in methods]
    if path.exists():
        write_text(path, "".join(json.dumps(row) + "\n" for row in kept))


def prune(path: Path, plan: Plan, *, timed: bool = False) -> None:
    """Forget cases of problems and methods that the plan has now defined otherwise."""
    now = {
        (problem.name, method.name): {
            plan.fingerprint(problem, method, learner)
            for learner in ([plan.first_learner] if timed else plan.learners_of(method))
        }
        for problem in plan.problems
        for method in plan.methods
    }
    rows = read_kept(path)
    places = [(row["case"]["problem"], row["case"]["method"]) for row in rows]
    kept = [
        row
        for row, place in zip(rows, places, strict=True)
        if place not in now or row["case"]["plan"] in now[place]
    ]
    if len(kept) < len(rows):
        write_text(path, "".join(json.dumps(row) + "\n" for row in kept))


def check_versions(path: Path, note: Path) -> None:
    """Refuse to add to results that were made with other versions."""
    if not (read_kept(path) and note.exists()):
        return
    before, now = json.loads(note.read_text("utf-8"))["versions"], versions()
    other = [
        f"{name} {before[name]}, now {now[name]}" for name in SHOWN if before[name] != now[name]
    ]
    if other:
        raise ValueError(
            f"{path} holds results made with other versions ({'; '.join(other)}); use --fresh to "
            "start again, or --results to keep others elsewhere"
        )


def write_note(path: Path, note: dict[str, Any]) -> None:
    write_text(path, json.dumps(note, indent=1) + "\n")
