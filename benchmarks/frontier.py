"""Frontiers of score and gap beside peers, a picture for each dataset; and what a frontier costs.

python benchmarks/frontier.py    # into benchmarks/results/frontier.md, docs/images/frontier-*.png

Fits and times are kept in benchmarks/results/frontier; --fresh runs them again.
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
from sklearn.base import clone

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.baselines import AdaFair, ExponentiatedGradient, Reweighing, ThresholdOptimizer
from fairproj.experiments._data import prepare, split
from fairproj.experiments._plan import Features
from fairproj.experiments._tables import DATASETS, markdown
from fairproj.io.atomic import write_text
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
        "FairProj",
        FairProjClassifier(),
        "epsilon",
        EPSILONS,
        {"marker": "o", "color": "#0072B2"},
    ),
    (
        "FairBoost",
        FairBoostClassifier(),
        "max_gap",
        EPSILONS,
        {"marker": "^", "color": "#CC79A7"},
    ),
    (
        "FairBoost with stumps",
        FairBoostClassifier(max_leaf_nodes=2),
        "max_gap",
        EPSILONS,
        {"marker": "v", "color": "#E69F00"},
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
# Some of the fits of a frontier, for the clock.
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
        for kept in RESULTS.iterdir():
            kept.unlink()
    RESULTS.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn's own; gaps out of reach are in the table
        frontiers = {
            dataset: [one(dataset, *method[:4]) for method in METHODS] for dataset in DATASETS
        }
        for dataset, drawn in frontiers.items():
            draw(dataset, drawn)
        text = (
            "# Frontiers beside peers\n\n`python benchmarks/frontier.py`: five folds stratified by "
            "group and label, one-hot features with the sensitive column among them. Means ± "
            "standard errors. FairBoost has LightGBM's default trees of up to 31 leaves, all other "
            "methods have stumps.\n\n"
            + "\n".join(table(dataset, drawn) for dataset, drawn in frontiers.items())
            + "\n## What a frontier costs\n\n"
            + kept_cost()
        )
    write_text(HERE / "results" / "frontier.md", text)
    print(HERE / "results" / "frontier.md")


def one(dataset: str, name: str, estimator: Any, parameter: str, values: list[float]) -> Frontier:
    kept = RESULTS / f"{dataset}-{name.replace(' ', '-')}.csv"
    if not kept.exists():
        whole = prepare(dataset, FEATURES)
        frontier = fairness_frontier(
            estimator,
            whole.X,
            whole.y,
            sensitive_features=whole.groups,
            param_values=values,
            param_name=parameter,
            n_jobs=-1,
            verbose=True,
        )
        write_text(kept, frontier.fits.to_csv(index=False, float_format="%.8g"))
    return Frontier(pd.read_csv(kept), parameter, name)


def draw(dataset: str, frontiers: list[Frontier]) -> None:
    figure = Figure(figsize=(6.4, 5.0), layout="constrained")
    ax = figure.subplots()
    for frontier, method in zip(frontiers, METHODS, strict=True):
        frontier.plot(ax=ax, **method[4])
    ax.set_title(DATASETS[dataset])
    figure.legend(loc="outside lower center", ncols=3, fontsize="small")
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


def kept_cost() -> str:
    kept = RESULTS / "cost.md"
    if not kept.exists():
        write_text(kept, cost())
    return kept.read_text("utf-8")


def cost() -> str:
    """Seconds of 20 values on Adult's training rows, one thread: shared bins, separate, peers."""
    train, _ = split("adult", FEATURES, 0.2, 42)
    values = np.linspace(0.01, 0.3, 20).tolist()
    rows = np.arange(len(train.y))
    lines = [["20 values, Adult, 39,073 rows", "seconds", "times the frontier"]]
    first = None
    estimators = {
        "FairBoostClassifier, up to 31 leaves": (FairBoostClassifier(), "max_gap"),
        "FairProjClassifier, stumps": (FairProjClassifier(), "epsilon"),
    }
    for name, (estimator, parameter) in estimators.items():
        start = time.perf_counter()
        fairness_frontier(
            estimator,
            train.X,
            train.y,
            sensitive_features=train.groups,
            param_values=values,
            cv=[(rows, rows)],  # trained and measured on the same rows: for the clock only
        )
        together = time.perf_counter() - start
        first = together if first is None else first
        start = time.perf_counter()
        for value in values:
            model = clone(estimator).set_params(**{parameter: value})
            model.fit(train.X, train.y, sensitive_features=train.groups)
        separate = time.perf_counter() - start
        lines.append([f"{name}: frontier", f"{together:.1f}", f"{together / first:.1f}"])
        lines.append([f"{name}: 20 fits", f"{separate:.1f}", f"{separate / first:.1f}"])
    assert first is not None
    for peer_name, peers in PEERS.items():
        start = time.perf_counter()
        for peer in peers:
            peer.fit(train.X, train.y, sensitive_features=train.groups)
        seconds = 20 / len(peers) * (time.perf_counter() - start)
        lines.append(
            [f"{peer_name}: 20 fits, from {len(peers)}", f"{seconds:.0f}", f"{seconds / first:.0f}"]
        )
    return markdown(lines)


if __name__ == "__main__":
    main()
