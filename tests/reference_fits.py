"""Fits whose votes, margins and certificates were recorded with version 0.1.

`CASES` says what was fitted; ``tests/data/reference-paper.json`` holds what came out at commit
386b265. `run` fits a case with the present code.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.tree import DecisionTreeClassifier

from conftest import make_sample
from fairproj import FairProjClassifier
from fairproj.datasets import load_compas, load_german

SHOWN_ROWS = 120  # margins are kept of these many rows, spread over the data


@dataclass(frozen=True)
class Case:
    """One fit: the data, the parameters, and what goes to ``fit``."""

    name: str
    data: str
    constraints: Any
    epsilon: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    weights: bool = False
    first_rounds: int = 0  # a warm start after so many


def _categories(
    n_rows: int = 600, seed: int = 5, *, missing: bool = True, continuous: bool = False
):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows).astype(float),
            "income": rng.lognormal(7, 1, n_rows).round(6 if continuous else -2),
            "housing": rng.choice(["own", "rent", "free"], n_rows, p=[0.6, 0.37, 0.03]),
            "district": rng.choice([3, 7, 11, 20], n_rows),
        }
    )
    groups = rng.choice(["a", "b", "c"], n_rows, p=[0.5, 0.3, 0.2])
    score = np.log(frame["income"] + 1) - 7 + (frame["housing"] == "own") - (frame["age"] < 30)
    score = score + 0.6 * (groups == "a") + 0.4 * (frame["district"] == 7)
    y = np.where(score + rng.logistic(size=n_rows) > 0.4, "good", "bad")
    if missing:
        frame.loc[rng.random(n_rows) < 0.15, "age"] = np.nan
        frame.loc[rng.random(n_rows) < 0.1, "housing"] = None
    frame["housing"] = frame["housing"].astype("category")
    frame["district"] = frame["district"].astype("category")
    return frame, y, groups


@cache
def data(name: str) -> tuple[Any, Any, Any]:
    if name == "two":
        return make_sample(500, seed=1, decimals=1)
    if name == "continuous":
        return make_sample(700, seed=2)
    if name == "four":
        return make_sample(900, n_groups=4, seed=3, decimals=1)
    if name == "sparse":
        X, y, groups = make_sample(500, seed=4, decimals=0)
        return sparse.csr_matrix(X * (np.abs(X) > 0.5)), y, groups
    if name == "categories":
        return _categories()
    if name == "continuous categories":
        return _categories(900, 6, missing=False, continuous=True)
    if name == "crossed":
        X, y, groups = make_sample(800, seed=7, decimals=1)
        other = np.where(np.random.default_rng(8).random(800) < 0.4, "old", "young")
        return X, y, pd.DataFrame({"sex": groups, "age": other})
    loaded = {"german": load_german, "compas": load_compas}[name]()
    return loaded.data, loaded.target, loaded.sensitive_features


def sample_weight(n_rows: int) -> np.ndarray:
    return np.random.default_rng(9).uniform(0.2, 3.0, n_rows).round(2)


STUMP = DecisionTreeClassifier(max_depth=1, random_state=0)
DEEP = DecisionTreeClassifier(max_depth=3, max_features=2)
EO, DP, FPR, ODDS = (
    "equal_opportunity",
    "demographic_parity",
    "false_positive_rate_parity",
    "equalized_odds",
)

CASES = [
    Case("adaboost", "two", None, 0.1),
    *(Case(f"stumps {c}", "two", c, 0.05) for c in (EO, DP, FPR, ODDS)),
    *(Case(f"four groups {c}", "four", c, 0.08) for c in (EO, DP, ODDS)),
    Case("equality", "two", EO, 0.0, {"n_estimators": 60}),
    Case("own slack", "two", ODDS, [0.05, 0.2]),
    Case("alias", "german", "true_positive_rate_parity", 0.05),
    Case("depth 3", "continuous", EO, 0.05, {"max_depth": 3, "n_estimators": 30}),
    Case("leaves", "continuous", DP, 0.02, {"max_leaf_nodes": 8, "n_estimators": 30}),
    Case("confidence", "continuous", EO, 0.03, {"votes": "confidence", "max_depth": 2}),
    Case("rate", "two", EO, 0.05, {"learning_rate": 0.3, "n_estimators": 40}),
    Case("least weight", "two", EO, 0.05, {"min_weight_fraction_leaf": 0.1}),
    Case("few bins", "continuous", EO, 0.05, {"max_bins": 16}),
    Case("weights", "two", EO, 0.05, weights=True),
    Case("weights, confidence", "four", ODDS, 0.1, {"votes": "confidence"}, weights=True),
    Case("sparse", "sparse", DP, 0.05),
    Case("categories", "categories", EO, 0.05),
    Case("categories, depth 3", "categories", DP, 0.05, {"max_depth": 3}, weights=True),
    Case("continuous categories", "continuous categories", EO, 0.05, {"max_depth": 2}),
    Case("crossed", "crossed", DP, 0.1),
    Case("positive label", "german", EO, 0.05, {"pos_label": "bad"}),
    Case("compas", "compas", ODDS, 0.05),
    Case("estimator", "two", EO, 0.05, {"estimator": STUMP}),
    Case(
        "seeded estimator",
        "two",
        DP,
        0.05,
        {"estimator": DEEP, "random_state": 3, "votes": "confidence", "n_estimators": 15},
    ),
    Case("warm start", "two", EO, 0.05, {"n_estimators": 25}, first_rounds=10),
    Case(
        "warm start, estimator",
        "four",
        ODDS,
        0.1,
        {"n_estimators": 12, "estimator": DEEP, "random_state": 0},
        first_rounds=5,
    ),
    Case(
        "warm start, categories",
        "categories",
        EO,
        0.05,
        {"n_estimators": 20, "votes": "confidence"},
        first_rounds=8,
    ),
]


def run(case: Case) -> tuple[Any, Any]:
    """Fit a case; the model and the rows it was trained on."""
    X, y, groups = data(case.data)
    weight = sample_weight(X.shape[0]) if case.weights else None
    with_rows = {"sensitive_features": groups, "sample_weight": weight}
    model = FairProjClassifier(case.constraints, case.epsilon, **case.parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small groups, targets out of reach
        if case.first_rounds:
            model.set_params(warm_start=True, n_estimators=case.first_rounds)
            model.fit(X, y, **with_rows)
            model.set_params(n_estimators=case.parameters["n_estimators"])
        model.fit(X, y, **with_rows)
    return model, X
