"""Frontiers of score and gap beside peers, a picture for each dataset; and what a path costs.

python benchmarks/frontier.py    # into benchmarks/results/frontier.md, docs/images/frontier-*.png

Fits are kept in benchmarks/results/frontier; --fresh runs them again.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from matplotlib.figure import Figure

from fairproj import FairProjClassifier
from fairproj.io.atomic import write_text
from fairproj.baselines import AdaFair, ExponentiatedGradient, Reweighing, ThresholdOptimizer
from fairproj.experiments._data import prepare, split
from fairproj.experiments._plan import Features
from fairproj.experiments._tables import DATASETS, markdown
from fairproj.selection import Frontier, fairness_frontier

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "frontier"
IMAGES = HERE.parent / "docs" / "images"
FEATURES = Features("one-hot, sensitive kept", "one-hot", keep_sensitive=True)
EPSILONS = [0.01, 0.02, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3]
PLAIN = FairProjClassifier(None)
# What to call it, the estimator, its parameter, the values to try, and how to draw it.
METHODS: list[tuple[str, Any, str, list[float], dict[str, Any]]] = [
    ("AdaBoost", PLAIN, "epsilon", [1.0], {"marker": "*", "color": "#000000", "markersize": 10}),
    (
        "Reweighing",
        Reweighing(PLAIN),
        "estimator__n_estimators",
        [100],
        {"marker": "s", "color": "#D55E00"},
    ),
    (
        "FairProj, paper's surrogate",
        FairProjClassifier(),
        "epsilon",
        EPSILONS,
        {"marker": "o", "color": "#0072B2"},
    ),
    (
        "FairProj, closed loop",
        FairProjClassifier(enforce="classifier"),
        "epsilon",
        EPSILONS,
        {"marker": "^", "color": "#CC79A7"},
    ),
    (
        "EG around AdaBoost",
        ExponentiatedGradient(PLAIN),
        "epsilon",
        [0.01, 0.05, 0.1],
        {"marker": "D", "color": "#009E73"},
    ),
]

LIGHTGBM = LGBMClassifier(num_leaves=2, n_jobs=1, verbose=-1)
# Some of the fits of a path, for the clock.
PEERS: dict[str, list[Any]] = {
    "fairlearn's Exponentiated Gradient around AdaBoost": [
        ExponentiatedGradient(PLAIN, epsilon=epsilon) for epsilon in (0.01, 0.1)
    ],
    "fairlearn's Exponentiated Gradient around LightGBM, 100 stumps": [
        ExponentiatedGradient(LIGHTGBM, epsilon=epsilon) for epsilon in (0.01, 0.1)
    ],
    "fairlearn's ThresholdOptimizer around AdaBoost": [ThresholdOptimizer(PLAIN)] * 2,
    "AdaFair, own version, 100 stumps of scikit-learn": [AdaFair(c=c) for c in (0.5, 1.0)],
}


def main() -> None:
    if "--fresh" in sys.argv[1:]:
        for kept in RESULTS.glob("*.csv"):
            kept.unlink()
    RESULTS.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn's own; gaps out of reach are in the table
        frontiers = {
            dataset: [one(dataset, *method[:4]) for method in METHODS] for dataset in DATASETS
        }
        for dataset, found in frontiers.items():
            draw(dataset, found)
        text = (
            "# Frontiers beside peers\n\n`python benchmarks/frontier.py`: five folds stratified by "
            "group and label, one-hot features with the sensitive column among them. Means ± "
            "standard errors.\n\n"
            + "\n".join(table(dataset, found) for dataset, found in frontiers.items())
            + "\n## What a path costs\n\n"
            + cost()
        )
    write_text(HERE / "results" / "frontier.md", text)
    print(HERE / "results" / "frontier.md")


def one(dataset: str, name: str, estimator: Any, parameter: str, values: list[float]) -> Frontier:
    kept = RESULTS / f"{dataset}-{name.replace(' ', '-').replace(',', '')}.csv"
    if not kept.exists():
        whole = prepare(dataset, FEATURES)
        found = fairness_frontier(
            estimator,
            whole.X,
            whole.y,
            sensitive_features=whole.groups,
            epsilons=values,
            parameter=parameter,
            n_jobs=-1,
            verbose=True,
        )
        write_text(kept, found.fits.to_csv(index=False, float_format="%.8g"))
    return Frontier(pd.read_csv(kept), parameter, name)


def draw(dataset: str, frontiers: list[Frontier]) -> None:
    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    ax = figure.subplots()
    for frontier, method in zip(frontiers, METHODS, strict=True):
        frontier.plot(ax=ax, **method[4])
    ax.set_title(DATASETS[dataset])
    ax.legend(fontsize="small")
    path = IMAGES / f"frontier-{dataset}.png"
    figure.savefig(path, dpi=110, metadata={"Software": None})


def table(dataset: str, frontiers: list[Frontier]) -> str:
    lines = [["Method", "value", "accuracy", "EOpp gap", "ROC AUC", "on its frontier"]]
    for frontier in frontiers:
        best = frontier.pareto()
        for row, kept in zip(frontier.frame.to_dict("records"), best, strict=True):
            lines.append(
                [
                    frontier.name,
                    f"{row[frontier.parameter]:g}",
                    f"{row['accuracy']:.3f} ± {row['accuracy_se']:.3f}",
                    f"{row['equal_opportunity']:.3f} ± {row['equal_opportunity_se']:.3f}",
                    "-" if np.isnan(row["roc_auc"]) else f"{row['roc_auc']:.3f}",
                    "yes" if kept else "no",
                ]
            )
    return f"## {DATASETS[dataset]}\n\n{markdown(lines)}"


def cost() -> str:
    """Seconds of 20 epsilons on Adult's training rows, one thread: shared bins, separate, peers."""
    train, _ = split("adult", FEATURES, 0.2, 42)
    values = np.linspace(0.01, 0.3, 20).tolist()
    rows = np.arange(len(train.y))
    lines = [["20 epsilons, Adult, 39,073 rows", "seconds", "times the path"]]
    whole = None
    for name, estimator in (
        ("closed loop, stumps", FairProjClassifier(enforce="classifier")),
        ("paper's surrogate, stumps", FairProjClassifier()),
    ):
        found = fairness_frontier(
            estimator,
            train.X,
            train.y,
            sensitive_features=train.groups,
            epsilons=values,
            cv=_Once(rows),
        )
        path = float(found.fits["seconds"].sum())
        whole = path if whole is None else whole
        start = time.perf_counter()
        for value in values:
            model = FairProjClassifier(epsilon=value, enforce=estimator.enforce)
            model.fit(train.X, train.y, sensitive_features=train.groups)
        separate = time.perf_counter() - start
        lines.append([f"{name}: one path, bins shared", f"{path:.1f}", f"{path / whole:.1f}"])
        lines.append([f"{name}: 20 fits", f"{separate:.1f}", f"{separate / whole:.1f}"])
    assert whole is not None
    for name, peers in PEERS.items():
        start = time.perf_counter()
        for peer in peers:
            peer.fit(train.X, train.y, sensitive_features=train.groups)
        seconds = 20 / len(peers) * (time.perf_counter() - start)
        lines.append(
            [f"{name}: 20 fits, from {len(peers)}", f"{seconds:.0f}", f"{seconds / whole:.0f}"]
        )
    return markdown(lines)


class _Once:
    """A splitter that trains and scores on the same rows: for the clock only."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def split(self, X: Any, y: Any, groups: Any) -> Any:
        yield self._rows, self._rows


if __name__ == "__main__":
    main()
