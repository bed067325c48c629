"""Which rows to watch: a study behind ``validation_fraction="auto"``.

python benchmarks/watched.py    # into benchmarks/results/watched.md

Each case is a frontier: one model for each of six targets, read on test rows. Its hypervolume is
the mean, over gaps from 0 to 0.2, of the best test accuracy at that gap less the constant's, times
1000. The excess is the mean of max(0, test gap - target).
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from fairproj import FairBoostClassifier
from fairproj.constraints import find_statistic
from fairproj.datasets import load_adult, load_compas
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions
from fairproj.metrics import gap_difference
from kept import Case, run_cases
from problems import make_problem

HERE = Path(__file__).parent / "results"
TARGETS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
WIDEST = 0.2
CONSTRAINTS = ("equal_opportunity", "demographic_parity", "equalized_odds")
SIZES: dict[str, tuple[int, ...]] = {
    "Adult": (1000, 2000, 4000, 8000, 16_000, 30_000),
    "COMPAS": (1000, 2000, 4000),
    "simulated": (1000, 2000),
}
WATCHED: dict[str, dict[str, Any]] = {
    "training rows": {"validation_fraction": None},
    "a quarter held out": {"validation_fraction": 0.25},
    "0.4 held out": {"validation_fraction": 0.4},
    "a quarter, one_se": {"validation_fraction": 0.25, "margin": "one_se"},
}


def load(name: str, n_rows: int, seed: int) -> list[Any]:
    """n_rows training rows and the other rows, which are test rows."""
    if name == "simulated":
        problem = make_problem(seed, "equal_opportunity", 3, 1)
        parts = pd.DataFrame(problem.X), pd.Series(problem.y), pd.Series(problem.groups)
    else:
        data = {"Adult": load_adult, "COMPAS": load_compas}[name]()
        X = data.data.drop(columns=data.sensitive_features.name, errors="ignore")
        texts = X.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes]]
        parts = X.astype(dict.fromkeys(texts, "category")), data.target, data.sensitive_features
    strata = parts[1].astype(str) + parts[2].astype(str)
    return list(train_test_split(*parts, train_size=n_rows, stratify=strata, random_state=seed))


def measure(case: Case) -> Case:
    X, X_new, y, y_new, known, new = load(case["data"], case["rows"], case["seed"])
    constraint = case["constraint"]
    points = []
    for target in TARGETS:
        model = FairBoostClassifier(constraint, target, random_state=0, **WATCHED[case["watched"]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the frontier tells
            model.fit(X, y, sensitive_features=known)
        predicted = model.predict(X_new)
        gap = gap_difference(y_new, predicted, sensitive_features=new, statistic=constraint)
        points.append((float(np.mean(predicted == y_new.to_numpy())), gap))
    constant = float(y_new.value_counts(normalize=True).max())
    excess = [max(0.0, gap - target) for (_, gap), target in zip(points, TARGETS, strict=True)]
    return {
        "hypervolume": hypervolume(points, constant),
        "excess": float(np.mean(excess)),
        "smallest": smallest(y, known, constraint),
    }


def hypervolume(points: list[tuple[float, float]], floor: float) -> float:
    """1000 times the mean over gaps in [0, WIDEST] of the best accuracy above the floor."""
    gaps = np.linspace(0, WIDEST, 401)
    best = [max([a - floor for a, gap in points if gap <= at] + [0.0]) for at in gaps]
    return 1000 * float(np.mean(best))


def smallest(y: Any, groups: Any, constraint: str) -> int:
    """A quarter of the rows of the smallest group in an event of the constraint."""
    positive = (y == np.unique(y)[1]).to_numpy()
    counts = []
    for rate in find_statistic(constraint).rates:
        inside = {"all": positive == positive, "positive": positive, "negative": ~positive}
        counts.append(groups[inside[rate.event]].value_counts().min())
    return int(0.25 * min(counts))


def page(frame: pd.DataFrame) -> str:
    pivot = ["data", "rows", "constraint"]
    small = frame.groupby(pivot, sort=False)["smallest"].median().astype(int)
    means = frame.groupby([*pivot, "watched"], sort=False)[["hypervolume", "excess"]].mean()
    lines = [["data", "rows", "constraint", "smallest held out", *WATCHED]]
    for key, held_out in small.items():
        line = [key[0], f"{key[1]:,}", key[2].replace("_", " "), str(held_out)]
        for watched in WATCHED:
            row = means.loc[(*key, watched)]
            line.append(f"{row['hypervolume']:.1f} / {row['excess']:.3f}")
        lines.append(line)
    return f"{summary(frame)}\n{markdown(lines)}"


def summary(frame: pd.DataFrame) -> str:
    """Means by the number of rows that the smallest group would have among those held out."""
    edges = [0, 25, 50, 100, 200, 400, 10**9]
    words = ["below 25", "25 to 50", "50 to 100", "100 to 200", "200 to 400", "400 and more"]
    bins = pd.cut(frame["smallest"], edges, labels=words, right=False)
    means = frame.groupby([bins, "watched"], observed=True)[["hypervolume", "excess"]].mean()
    counts = frame[frame["watched"] == "training rows"].groupby(bins, observed=True).size()
    lines = [["smallest held out", "frontiers", *WATCHED]]
    for word, count in counts.items():
        rows = [means.loc[(word, watched)] for watched in WATCHED]
        cells = [f"{row['hypervolume']:.1f} / {row['excess']:.3f}" for row in rows]
        lines.append([str(word), str(count), *cells])
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="discard kept runs")
    options = parser.parse_args()
    cases = [
        {"data": data, "rows": rows, "constraint": constraint, "seed": seed, "watched": watched}
        for data, sizes in SIZES.items()
        for rows in sizes
        for constraint in CONSTRAINTS
        for seed in range(3000, 3003)
        for watched in WATCHED
    ]
    frame = run_cases(cases, measure, HERE / "watched" / "runs.jsonl", fresh=options.fresh)
    made = f"LightGBM {versions()['lightgbm']}, Python {versions()['python']}"
    text = (
        "# Which rows to watch\n\n`python benchmarks/watched.py`, seeds 3000 to 3002; "
        f"{made}. Hypervolume / excess on test rows: the first should be large, the second small. "
        "Rows are grouped by how many the smallest group of an event has in a quarter of the "
        f"training rows.\n\n{page(frame)}"
    )
    print(text)
    write_text(HERE / "watched.md", text)


if __name__ == "__main__":
    main()
