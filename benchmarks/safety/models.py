"""Good model files of every kind, each with rows to ask the model about."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from fairproj import FairBoostClassifier, FairProjClassifier


def table(n_rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b c", "d"])
    frame.loc[::7, "d"] = np.nan
    frame["kind"] = pd.Categorical(rng.choice(["x", "y", "z", "w"], n_rows))
    frame["code"] = pd.Categorical(rng.choice([3, 5, 8], n_rows))
    frame["sex"] = rng.choice(["f", "m"], n_rows)
    return frame


def good_models() -> dict[str, tuple[Any, Any]]:
    """Fitted models, each with rows to ask it about."""
    X = table()
    rng = np.random.default_rng(1)
    y = np.where(X["a"] + (X["kind"] == "x") + rng.normal(size=len(X)) > 0.4, "yes", "no")
    numbers, sex = X[["a", "b c"]].to_numpy(), X["sex"]
    named = {"n_estimators": 6, "sensitive_columns": "sex"}
    plain = {"n_estimators": 5}

    def fit(model: Any, data: Any, labels: Any, groups: Any = None) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(data, labels, sensitive_features=groups), data[:8]

    logistic, first_order = LogisticRegression(), {**plain, "tree_step": "first_order"}
    deep = FairProjClassifier(max_depth=4, votes="confidence", epsilon=[0.1], **named)
    odds = FairBoostClassifier("equalized_odds", [0.1, 0.2], max_depth=3, **plain)
    return {
        "stumps": fit(FairProjClassifier(**plain), numbers, y == "yes", sex),
        "deep": fit(deep, X, y),
        "crossed": fit(FairProjClassifier(**plain), X[["a", "kind"]], y, X[["sex", "code"]]),
        "constant": fit(FairProjClassifier(**plain), np.zeros((len(y), 2)), y, sex),
        "skops": fit(FairProjClassifier(estimator=logistic, **plain), numbers, y, sex),
        "fairboost": fit(FairBoostClassifier(baseline=True, **named), X, y),
        "fairboost steps": fit(FairBoostClassifier(**first_order), numbers, y, sex),
        "fairboost odds": fit(odds, numbers, y, sex),
        "xgboost": fit(FairBoostClassifier(engine="xgboost", max_depth=3, **named), X, y),
        "xgboost stumps": fit(FairProjClassifier(engine="xgboost", **plain), numbers, y, sex),
        "fairboost skops": fit(
            FairBoostClassifier(estimator=logistic, **first_order), numbers, y, sex
        ),
    }


def write_models(folder: Path) -> None:
    """Save all of them."""
    for name, (model, _) in good_models().items():
        model.save(folder / f"{name}.fairproj")


def read_models(folder: Path) -> dict[str, bytes]:
    """The bytes of all of them, by their names."""
    return {path.stem: path.read_bytes() for path in sorted(folder.glob("*.fairproj"))}
