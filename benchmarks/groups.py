"""Seconds a round, and seconds of a report, by the number of groups.

    python benchmarks/groups.py            # into benchmarks/results/groups.md
    python benchmarks/groups.py --fresh    # forget what was measured

Every group has 100 rows. Seconds a round are those of a fit of 20 rounds less those of a fit of 5,
divided by 15, so that binning and checks are left out. What was measured is kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from fairproj import FairBoostClassifier, FairnessReport, FairProjClassifier
from fairproj.boosting.projection import BlockProjector, Projector, project
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions
from kept import Case, run_cases

RESULTS = Path(__file__).parent / "results" / "groups"
GROUPS = (2, 20, 100, 200, 1000)
ROWS = 100  # of each group
MOST_PAIRED = 200  # groups whose pairs are features of a projection
LIMIT = 0.1  # seconds a round at 200 groups
ROUNDS = ("blocks", "fairproj", "fairboost")
PARTS = {
    "project": "`project` with all pairs as features, once",
    "pairs": "the same, a round of many",
    "blocks": "projection of a round, without the features",
    "fairproj": "`FairProjClassifier`, a round",
    "fairboost": "`FairBoostClassifier`, a round",
    "report": "`FairnessReport`",
    "audit": "`fairproj audit`, the whole command",
}


def rows(n_groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(n_groups), ROWS))
    X = rng.normal(size=(len(group), 6))
    shift = rng.normal(scale=0.5, size=n_groups)
    y = (X[:, 0] + shift[group] + rng.normal(size=len(group)) > 0).astype(int)
    return X, y, np.array([f"group {g:04d}" for g in range(n_groups)])[group]


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """The least of several measurements."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def of_projection(n_groups: int, part: str) -> float:
    """Equalized odds with a slack that binds, for masses that differ from round to round."""
    rng = np.random.default_rng(0)
    epsilon = 0.1 / n_groups
    masses = np.log(rng.dirichlet(np.full(2 * n_groups, 5.0), size=5))
    if part != "blocks":
        first, second = np.triu_indices(n_groups, 1)
        member = np.eye(n_groups)
        pairs = member[:, second] - member[:, first]
        features = np.zeros((2 * n_groups, 2 * len(first)))
        features[1::2, : len(first)], features[::2, len(first) :] = pairs, pairs
        slack = np.full(features.shape[1], epsilon)
        if part == "project":
            return seconds(lambda: project(masses[0], features, slack))
        by_pair = Projector(features, slack)
        return seconds(lambda: [by_pair(mass) for mass in masses]) / len(masses)
    block = np.repeat(np.arange(n_groups), 2) + n_groups * np.tile([0, 1], n_groups)
    event = np.repeat([0, 1], n_groups)
    solve = BlockProjector(block, event, np.full(len(event), epsilon))
    return seconds(lambda: [solve(mass) for mass in masses]) / len(masses)


def of_round(make: Callable[[int], Any], n_groups: int) -> float:
    X, y, names = rows(n_groups)

    def fit(n_rounds: int) -> float:
        model = make(n_rounds)
        taken = seconds(lambda: model.fit(X, y, sensitive_features=names))
        assert len(model.history_) == n_rounds, "the run ended early"
        return taken

    return max((fit(20) - fit(5)) / 15, 0.0)


def of_audit(n_groups: int) -> float:
    X, y, names = rows(n_groups)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        table = pd.DataFrame({"group": names, "y": y, "predicted": (X[:, 0] > 0).astype(int)})
        table.to_csv(path, index=False)
        asked = ["--predictions", "predicted", "--label", "y", "--sensitive", "group", "--json"]
        line = [sys.executable, "-m", "fairproj", "audit", str(path), *asked]
        return seconds(lambda: subprocess.run(line, check=True, stdout=subprocess.DEVNULL), 2)


def of_report(n_groups: int) -> float:
    X, y, names = rows(n_groups)
    predicted = (X[:, 0] > 0).astype(int)
    return seconds(
        lambda: FairnessReport.from_predictions(y, predicted, sensitive_features=names), 2
    )


def measure(case: Case) -> Case:
    n_groups = case["groups"]
    measured: dict[str, Callable[[], float]] = {
        **{
            part: lambda part=part: of_projection(n_groups, part)
            for part in ("project", "pairs", "blocks")
        },
        "fairproj": lambda: of_round(
            lambda n: FairProjClassifier(
                "equalized_odds", 0.5 / n_groups, max_depth=3, n_estimators=n
            ),
            n_groups,
        ),
        "fairboost": lambda: of_round(
            lambda n: FairBoostClassifier("equalized_odds", 0.1, n_estimators=n), n_groups
        ),
        "report": lambda: of_report(n_groups),
        "audit": lambda: of_audit(n_groups),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"value": measured[case["part"]]()}


def page(table: pd.DataFrame) -> str:
    values = table.set_index(["part", "groups"])["value"]
    lines = [["seconds", *(f"{n:,} groups" for n in GROUPS)]]
    for part, title in PARTS.items():
        cells = [f"{values[part, n]:.4f}" if (part, n) in values.index else "" for n in GROUPS]
        lines.append([title, *cells])
    slowest = max(values[part, 200] for part in ROUNDS)
    side = "below" if slowest < LIMIT else "ABOVE"
    return (
        "# Many groups\n\n`python benchmarks/groups.py`: equalized odds, 100 rows a group, one "
        f"thread, Python {versions()['python']}. All pairs of groups are features of `project` up "
        f"to {MOST_PAIRED} groups (39,800 of them); `FairProjClassifier` compares the masses of "
        "more than 50 groups without them. Epsilon binds: it is 0.5 divided by the number of "
        "groups in training, 0.1 divided by it for a projection alone. At 200 groups, the slowest "
        f"round takes {slowest:.3f} s, {side} the {LIMIT:g} s aimed at.\n\n{markdown(lines)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fresh", action="store_true", help="forget what was measured")
    arguments = parser.parse_args()
    cases = [
        {"part": part, "groups": n}
        for part in PARTS
        for n in GROUPS
        if part not in ("project", "pairs") or n <= MOST_PAIRED
    ]
    kept = RESULTS.with_suffix(".jsonl")
    table = run_cases(cases, measure, kept, fresh=arguments.fresh, n_jobs=1)
    text = page(table)
    write_text(RESULTS.with_suffix(".md"), text)
    print(text)


if __name__ == "__main__":
    main()
