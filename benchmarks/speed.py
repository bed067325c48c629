"""Speed and memory, each as a ratio of two things measured in the same run.

    make bench            everything, several minutes
    python benchmarks/speed.py --only projection

Machines are noisy, so competitors take turns and the best time of each counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")

import lightgbm as lgb
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import train_test_split

from fairproj import FairProjClassifier
from fairproj.boosting.loop import boost
from fairproj.boosting.projected import ProjectedWeights
from fairproj.boosting.projection import Projector
from fairproj.boosting.weights import ExponentialWeights
from fairproj.data.sample import make_sample
from fairproj.datasets import load_adult
from fairproj.engines import LearnerSettings, find_engine
from fairproj.engines.lightgbm.binning import bin_rows
from fairproj.engines.lightgbm.engine import tree_parameters

RESULTS = Path(__file__).parent / "results" / "speed.md"
Row = tuple[str, str, str, str]


def best_of(repeats: int, *competitors: Callable[[], object]) -> list[float]:
    """The best time of each, in seconds; they take turns."""
    times = [[] for _ in competitors]
    for _ in range(repeats):
        for run, kept in zip(competitors, times, strict=True):
            begin = time.perf_counter()
            run()
            kept.append(time.perf_counter() - begin)
    return [min(kept) for kept in times]


def one_hot_train() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Adult as numbers, 39,073 x 108: the training part of a stratified split with seed 42."""
    frame = load_adult().frame
    y = (frame.pop("income") == ">50K").to_numpy().astype(int)
    unknown = frame.astype(dict.fromkeys(frame.select_dtypes("category"), object)).fillna("?")
    X = pd.get_dummies(unknown, dtype=float)
    X, _, y, _, sex, _ = train_test_split(
        X.to_numpy(), y, frame["sex"].to_numpy(), test_size=0.2, stratify=y, random_state=42
    )
    return np.ascontiguousarray(X), y, sex


def synthetic(n_rows: int, n_features: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal features, a label that depends on three of them, a group that depends on one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows) > 0, 1, -1)
    group = (X[:, 0] + rng.normal(size=n_rows) > 0.5).astype(int)
    return X, y, group


def cells_of(y: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cell of each row, and equal opportunity's feature of each cell."""
    _, codes = np.unique(group, return_inverse=True)
    return (2 * codes + (y > 0)).astype(np.intp), np.array([[0.0], [-1.0], [0.0], [1.0]])


def against_adaboost() -> list[Row]:
    X, y, sex = one_hot_train()
    ours = FairProjClassifier("equal_opportunity", epsilon=0.4, n_estimators=100)
    both = FairProjClassifier("equal_opportunity", epsilon=0.4, n_estimators=100, n_jobs=2)
    mine, threaded, theirs = best_of(
        5,
        lambda: ours.fit(X, y, sensitive_features=sex),
        lambda: both.fit(X, y, sensitive_features=sex),
        lambda: AdaBoostClassifier(n_estimators=100, random_state=0).fit(X, y),
    )
    what = f"100 stumps, Adult one-hot {X.shape[0]:,} x {X.shape[1]}, binning included, threads"
    beside = f"AdaBoostClassifier {theirs:.2f} s"
    assert len(ours.history_) == 100
    return [
        (f"{what}: 1", f"{mine:.3f} s", beside, f"{theirs / mine:.1f} x faster"),
        (f"{what}: 2", f"{threaded:.3f} s", beside, f"{theirs / threaded:.1f} x faster"),
    ]


def tree_settings(leaves: int, threads: int) -> LearnerSettings:
    """Stumps with discrete votes, or larger trees with confidence votes."""
    if leaves == 2:
        return LearnerSettings(votes="discrete", n_threads=threads)
    return LearnerSettings(votes="confidence", max_leaf_nodes=leaves, n_threads=threads)


def our_loop(dataset: tuple, leaves: int, n_rounds: int, threads: int) -> Callable[[], object]:
    """The loop on data binned already: what `fit` does between binning and the certificate."""
    X, y, group = dataset
    settings = tree_settings(leaves, threads)
    sample = make_sample(X, y, group, None)
    index, features = cells_of(sample.y, group)

    def run() -> None:
        weights = ExponentialWeights(
            sample.y, sample.weight, index, 4, discrete=settings.votes == "discrete"
        )
        objective = ProjectedWeights(weights, Projector(features, np.array([0.4])))
        engine = find_engine("lightgbm").bind(settings, sample)
        kept = list(boost(engine, objective, n_rounds=n_rounds, learning_rate=0.3))
        votes = [record.vote for _, record in kept]
        engine.ensemble([learner for learner, _ in kept], votes, weights.link_scale)
        assert len(kept) == n_rounds, len(kept)

    find_engine("lightgbm").bind(settings, sample)  # bins the rows; the sample keeps the bins
    return run


def against_lightgbm() -> list[Row]:
    """Our loop beside LightGBM's own training, trees and threads alike, on data binned already."""
    rows = []
    datasets = {
        "Adult one-hot, 39,073 x 108": (one_hot_train, 100),
        "1,000,000 x 20": (lambda: synthetic(1_000_000), 20),
    }
    for name, (make, n_rounds) in datasets.items():
        dataset = make()
        for leaves, threads in product((2, 31), (1, 2)):
            ours = our_loop(dataset, leaves, n_rounds, threads)
            mine, theirs = best_of(9, ours, plain_lightgbm(dataset, leaves, n_rounds, threads))
            size = "stumps" if leaves == 2 else "31 leaves"
            rows.append(
                (
                    f"{n_rounds} trees, {size}, {name}, data binned, threads: {threads}",
                    f"{mine:.3f} s",
                    f"lightgbm.train {theirs:.3f} s",
                    f"{mine / theirs:.2f} x its time",
                )
            )
    return rows


def plain_lightgbm(
    dataset: tuple, leaves: int, n_rounds: int, threads: int
) -> Callable[[], object]:
    """LightGBM's own objective on data binned with our parameters."""
    X, y, _ = dataset
    ours = tree_parameters(tree_settings(leaves, threads), X)
    data = bin_rows(X, ours, [], None).set_label((y > 0).astype(int))
    params = ours | {"objective": "binary", "learning_rate": 0.1}
    return lambda: lgb.train(params, data, n_rounds)


def growth() -> list[Row]:
    rows, last = [], None
    for n_rows in (10_000, 100_000, 1_000_000):
        run = our_loop(synthetic(n_rows), 2, 20, 1)
        (seconds,) = best_of(3, run)
        per_round = seconds / 20
        factor = "" if last is None else f"{per_round / last:.1f} x for 10 x the rows"
        rows.append(
            (
                f"a round of stumps, {n_rows:,} x 20, threads: 1",
                f"{1e3 * per_round:.2f} ms",
                "",
                factor,
            )
        )
        last = per_round
    return rows


def pair_features(n_groups: int, events: int) -> np.ndarray:
    columns = []
    for event in range(events):
        for a in range(n_groups):
            for b in range(a + 1, n_groups):
                column = np.zeros(2 * n_groups)
                column[2 * a + event], column[2 * b + event] = -1.0, 1.0
                columns.append(column)
    return np.array(columns).T


def projection() -> list[Row]:
    """Times of one projection, started from the multipliers of a slightly different q."""
    rng = np.random.default_rng(0)
    rows = []
    for n_groups, events, wanted in ((2, 2, 0.1), (5, 2, 1.0), (15, 1, 5.0)):
        features = pair_features(n_groups, events)
        n_cells, n_constraints = features.shape
        project = Projector(features, np.full(n_constraints, 0.02))
        starts, masses = [], []
        for _ in range(50):
            mass = rng.dirichlet(np.ones(n_cells))
            near = mass * np.exp(0.1 * rng.normal(size=n_cells))
            masses.append(np.log(near / near.sum()))
            starts.append(project(np.log(mass)).multipliers)

        def all_of_them(project=project, masses=masses, starts=starts):
            for mass, start in zip(masses, starts, strict=True):
                project(mass, start)

        (seconds,) = best_of(7, all_of_them)
        rows.append(
            (
                f"projection, {n_constraints} constraints on {n_cells} cells",
                f"{1e3 * seconds / len(masses):.3f} ms",
                f"wanted: under {wanted:g} ms",
                "",
            )
        )
    for n_rows in (10_000, 1_000_000):
        _, y, group = synthetic(n_rows, 3)
        index, features = cells_of(y, group)
        weights = ExponentialWeights(y * 1.0, np.ones(n_rows), index, 4)
        project = Projector(features, np.array([0.0]))
        (solve,) = best_of(200, lambda: project(weights.log_mass))  # noqa: B023
        (masses_time,) = best_of(20, lambda: np.bincount(index, weights._relative, 4))  # noqa: B023
        rows.append(
            (
                f"projection at {n_rows:,} rows",
                f"{1e3 * solve:.3f} ms",
                f"the pass for the masses: {1e3 * masses_time:.3f} ms",
                "",
            )
        )
    return rows


MEMORY = """
import sys
import numpy as np
from fairproj import FairProjClassifier
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
rng = np.random.default_rng(0)
FairProjClassifier(None, n_estimators=2).fit(rng.normal(size=(100, 3)), np.tile([0, 1], 50))
before = peak()
n = 1_000_000
X = rng.standard_normal((n, 20))
y = (X[:, 0] > 0.3).astype(np.int8)
group = (X[:, 1] > 0).astype(np.int8)
if sys.argv[1] == "frame":
    import pandas as pd
    X = pd.DataFrame(X, copy=False)
    X.columns = [f"c{i}" for i in range(20)]
FairProjClassifier(n_estimators=5, epsilon=0.05).fit(X, y, sensitive_features=group)
print((peak() - before) / (n * 20 * 8))
"""


def memory() -> list[Row]:
    """Peak memory of the process, X included, over the size of X; in a process of its own."""
    rows = []
    for kind, name in (("array", "NumPy array"), ("frame", "pandas frame")):
        command = [sys.executable, "-W", "ignore", "-c", MEMORY, kind]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows.append(
            (
                f"peak memory of a fit, 1,000,000 x 20 {name}",
                f"{float(out):.2f} x X",
                "X itself included",
                "",
            )
        )
    return rows


PARTS = {
    "adaboost": against_adaboost,
    "lightgbm": against_lightgbm,
    "growth": growth,
    "projection": projection,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    chosen = parser.parse_args().only
    console = Console()
    table = Table("what", "fairproj", "beside", "ratio", title="Speed and memory")
    rows = []
    for name in chosen:
        with console.status(f"measuring: {name}"):
            new = PARTS[name]()
        for row in new:
            table.add_row(*row)
        rows += new
    console.print(table)
    if chosen == list(PARTS):
        lines = ["| what | fairproj | beside | ratio |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        note = f"Made by `make bench`; {os.cpu_count()} cores, lightgbm {lgb.__version__}.\n"
        RESULTS.write_text("\n".join(["# Speed and memory", "", note, *lines, ""]))


if __name__ == "__main__":
    main()
