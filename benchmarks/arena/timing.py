"""Time and memory of single fits, one at a time, in processes that do nothing else.

Methods take turns within a repeat, so that what slows the machine down for a while slows all of
them, and ratios are taken within repeats.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from arena.data import Folders, make_files
from arena.environments import BENCHMARKS, ONE_THREAD, python_of
from arena.plan import Method, Plan
from arena.run import make_request
from kept import Case, read_kept, run_cases


def timing_cases(plan: Plan, path: Path) -> list[Case]:
    """One fit each; methods that took long in the first repeat are not repeated as often."""
    timing = plan.timing
    long = {
        (row["case"]["problem"], row["case"]["method"], row["case"]["constraint"])
        for row in read_kept(path)
        if row["result"].get("fit_seconds", 0) > timing.slow
    }
    cases = []
    for repeat in range(timing.repeats):
        for problem in timing.problems:
            for constraint in timing.constraints:
                for method in _timed(plan):
                    place = (problem, method.name, constraint)
                    if repeat < timing.slow_repeats or place not in long:
                        cases += _case(plan, method, place, repeat)
    return cases


def for_the_clock(plan: Plan) -> Plan:
    """The plan with the rows that are timed."""
    return replace(plan, training_rows=plan.timing.training_rows or plan.training_rows)


def _timed(plan: Plan) -> list[Method]:
    named = plan.timing.methods
    return [each for each in plan.methods if not named or each.name in named]


def _case(plan: Plan, method: Method, place: tuple[str, str, str], repeat: int) -> list[Case]:
    problem, name, constraint = place
    known = [each for each in plan.problems if each.name == problem]
    asked = method.constraints or plan.timing.constraints
    if not known or not method.takes(known[0]) or constraint not in asked:
        return []
    return [
        {
            "repeat": repeat,
            "problem": problem,
            "method": name,
            "constraint": constraint,
            "plan": for_the_clock(plan).fingerprint(known[0], method, plan.first_learner),
        }
    ]


def run_timing(
    plan: Plan, folders: Folders, built: Path, path: Path, *, fresh: bool = False
) -> None:
    """Time what is left. The first repeat tells which methods are slow, so it is run by itself."""
    measure = partial(measure_time, plan=for_the_clock(plan), folders=folders, built=built)
    cases = timing_cases(plan, path)
    first = [case for case in cases if case["repeat"] < plan.timing.slow_repeats]
    run_cases(first, measure, path, fresh=fresh, n_jobs=1)
    run_cases(timing_cases(plan, path), measure, path, n_jobs=1)


def measure_time(case: Case, *, plan: Plan, folders: Folders, built: Path) -> Case:
    """A fit of one point in a process of its own, on the first split."""
    problem, method = plan.problem(case["problem"]), plan.method(case["method"])
    files = make_files(problem, plan.splits[0], plan, folders)
    named = {**case, "split": plan.splits[0]}
    if not method.constraints:
        named["constraint"] = ""
    request = make_request(named, plan, files) | {"timed": method.timed_setting}
    here = method.environment == "here"
    python = Path(sys.executable) if here else python_of(built / method.environment)
    return _one_shot(python, request, plan.case_limit, keep_path=here)


def _one_shot(
    python: Path, request: dict[str, Any], limit: float, *, keep_path: bool
) -> dict[str, Any]:
    environ = dict(os.environ) | ONE_THREAD
    if not keep_path:
        environ.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            [str(python), "-m", "arena.worker"],
            input=json.dumps(request) + "\n",
            capture_output=True,
            text=True,
            timeout=limit,
            cwd=BENCHMARKS,
            env=environ,
        )
        return dict(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return {"error": f"no answer in {limit:g} s"}
    except ValueError:
        return {"error": "the process ended without an answer"}


def read_timing(plan: Plan, path: Path) -> pd.DataFrame:
    """One row for each timed fit."""
    wanted = {_key(case) for case in timing_cases(plan, path)}
    rows = [row["case"] | row["result"] for row in read_kept(path) if _key(row["case"]) in wanted]
    return pd.DataFrame(rows)


def _key(case: Case) -> str:
    return json.dumps(case, sort_keys=True)


def time_ratios(
    times: pd.DataFrame, over: str, under: str, turn: str = "repeat", values: str = "fit_seconds"
) -> pd.Series:
    """Seconds of one method divided by those of another, within turns; the median of each place.

    The index is problem and constraint.
    """
    if values not in times:
        return pd.Series(dtype=float)
    wide = times.pivot_table(index=["problem", "constraint", turn], columns="method", values=values)
    if over not in wide or under not in wide:
        return pd.Series(dtype=float)
    ratios = (wide[over] / wide[under]).dropna()
    return ratios.groupby(level=["problem", "constraint"]).median()


def ratios_with_same_trees(tidy: pd.DataFrame, over: str, under: str) -> pd.Series:
    """`time_ratios` over all fits of the comparison with the trees that ``over`` has."""
    shared = tidy["learner"].isin(tidy.loc[tidy["method"] == over, "learner"].unique())
    return time_ratios(tidy[shared], over, under, turn="split", values="seconds")
