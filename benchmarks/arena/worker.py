"""Fits the points of one case in the environment it is started in, and keeps their predictions.

``python -m arena.worker`` reads one request a line, as JSON, and answers each with one line. It
needs NumPy and what the method needs, and neither fairproj nor pandas. Within the environment of
the command, `answer` is called without a process in between.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PARTS = ("train", "validation", "test")
WARM_UP_ROWS = 400


class Rows(NamedTuple):
    """Features, labels (0 and 1), groups (0 to G - 1)."""

    X: NDArray[np.float64]
    y: NDArray[np.intp]
    groups: NDArray[np.intp]

    def take(self, rows: Any) -> Rows:
        return Rows(self.X[rows], self.y[rows], self.groups[rows])


class Prediction(NamedTuple):
    """The chance with which each row is predicted positive, and a score to rank rows by.

    The chance is 0 or 1 unless the method draws its predictions. A score is a probability where
    the method says so.
    """

    chance: NDArray[np.float64]
    score: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Task:
    """What a method is asked to fit.

    Attributes
    ----------
    train : Rows
    constraint : str
        Empty for a method that knows none.
    goal : {"accuracy", "balanced_accuracy"}
    settings : list of dict
        The whole grid.
    learner : dict
        Parameters of LightGBM, for all methods that are built on it.
    seed : int
    """

    train: Rows
    constraint: str
    goal: str
    settings: list[dict[str, Any]]
    learner: dict[str, Any]
    seed: int

    @property
    def n_groups(self) -> int:
        return int(self.train.groups.max()) + 1

    @property
    def balanced(self) -> bool:
        """Whether both labels count alike, however rare one of them is."""
        return self.goal == "balanced_accuracy"

    def hold_out(self, share: float = 0.25) -> tuple[Rows, Rows]:
        """Rows to fit a score on and rows to set thresholds on, split by group and label.

        The share is that which FairBoost holds out to watch gaps on.
        """
        random = np.random.default_rng(self.seed)
        held = np.zeros(len(self.train.y), dtype=bool)
        cells = 2 * self.train.groups + self.train.y
        for cell in np.unique(cells):
            rows = random.permutation(np.flatnonzero(cells == cell))
            held[rows[: max(1, round(share * len(rows)))]] = True
        return self.train.take(~held), self.train.take(held)


Predict = Callable[[Rows], Prediction]
# A method does what its points share, once, and returns the function that fits one point, or
# returns None where the method has no such point for the constraint.
Method = Callable[[Task], Callable[[dict[str, Any]], Predict | None]]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Fit every point of a request, and write the predictions beside the answer.

    A point that fails has an ``error`` in place of predictions. A request with a ``timed`` setting
    is for the clock: only that point is fitted, after a warm-up.
    """
    start = cpu_seconds()
    parts = load_parts(request["arrays"], request["rows"])
    peers = importlib.import_module(f"arena.peers.{request['environment']}")
    method: Method = getattr(peers, request["kind"])
    asked = [request[name] for name in ("constraint", "goal", "settings", "learner", "seed")]
    task = Task(parts["train"], *asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tables say what was reached
        if "timed" in request:
            return measure(method, task, request["timed"], parts["test"])
        points, kept = predict_all(method, task, parts)
    with open(request["output"], "wb") as file:
        np.savez(file, **kept)
    return {"points": points, "cpu_seconds": cpu_seconds() - start}


def predict_all(
    method: Method, task: Task, parts: dict[str, Rows]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The points, with the seconds of each fit or an error, and the arrays of their predictions."""
    points: list[dict[str, Any]] = []
    kept: dict[str, Any] = {}
    try:
        fit = method(task)
    except Exception as error:
        return [{"setting": each, "error": _sentence(error)} for each in task.settings], kept
    for setting in task.settings:
        start = time.perf_counter()
        try:
            predict = fit(setting)
            seconds = time.perf_counter() - start
            if predict is None:
                continue
            predictions = {part: predict(parts[part]) for part in PARTS[1:]}
        except Exception as error:
            points.append({"setting": setting, "error": _sentence(error)})
            continue
        at = len(points)
        points.append({"setting": setting, "seconds": seconds})
        for part, (chance, score) in predictions.items():
            kept[f"{part}_chance_{at}"] = np.asarray(chance, dtype=np.float32)
            if score is not None:
                kept[f"{part}_score_{at}"] = np.asarray(score, dtype=np.float64)
    return points, kept


def measure(method: Method, task: Task, setting: dict[str, Any], test: Rows) -> dict[str, Any]:
    """Seconds of a fit, rows predicted in a second, and the memory that the fit added at its peak.

    Call it in a process that has done nothing else: the memory that it already has is not counted.
    """
    few = _few(task.train)
    warm = method(replace(task, train=few))(setting)  # imports what is imported on first use
    if warm is None:
        return {"error": "the method has no such point for this constraint"}
    warm(few)
    del warm
    before, children = memory(), _largest(resource.RUSAGE_CHILDREN)
    start, cpu = time.perf_counter(), cpu_seconds()
    predict = method(task)(setting)
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    after, grown = peak_memory(), _largest(resource.RUSAGE_CHILDREN)
    assert predict is not None
    start = time.perf_counter()
    predict(test)
    predicting = time.perf_counter() - start
    return {
        "fit_seconds": seconds,
        "fit_cpu_seconds": cpu,
        "predict_rows_per_second": len(test.y) / predicting,
        "peak_megabytes": max(0.0, after - before) + (grown if grown > children else 0.0),
        "rows": len(task.train.y),
    }


def _few(rows: Rows) -> Rows:
    """Some rows of every group and label."""
    cells = 2 * rows.groups + rows.y
    each = max(20, WARM_UP_ROWS // len(np.unique(cells)))
    taken = [np.flatnonzero(cells == cell)[:each] for cell in np.unique(cells)]
    return rows.take(np.sort(np.concatenate(taken)))


def cpu_seconds() -> float:
    """What this process and its children computed so far."""
    return sum(os.times()[:4])


def memory() -> float:
    """What this process holds now, in megabytes; its peak starts anew, where the system can."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return peak_memory()
    return _status("VmRSS")


def peak_memory() -> float:
    """The most that this process held since `memory` was called, in megabytes."""
    try:
        return _status("VmHWM")
    except OSError:
        return _largest(resource.RUSAGE_SELF)


def _largest(who: int) -> float:
    """The largest memory ever of this process, or of one of its children, in megabytes."""
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(who).ru_maxrss / scale


def _status(name: str) -> float:
    """A figure of Linux about this process, in megabytes."""
    with open("/proc/self/status") as file:
        found = next(line for line in file if line.startswith(name))
    return float(found.split()[1]) / 1e3


@lru_cache(maxsize=2)
def load_arrays(path: str) -> Rows:
    with np.load(path) as file:
        return Rows(file["X"], file["y"], file["groups"])


@lru_cache(maxsize=1)
def load_parts(arrays: str, rows: str) -> dict[str, Rows]:
    """Training, validation and test rows; the next case is often of the same split."""
    whole = load_arrays(arrays)
    with np.load(rows) as file:
        return {part: whole.take(file[part]) for part in PARTS}


def _sentence(error: Exception) -> str:
    """The error as one line, without paths and addresses of this machine."""
    words = f"{type(error).__name__}: {error}".split()
    return " ".join("..." if "/" in word else word for word in words)[:300]


def main() -> None:
    """Answer requests until the input ends. What libraries print goes to the error stream."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            reply = {"error": _sentence(error)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
