"""What the parts of the FairBoost benchmark share."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from lightgbm import LGBMClassifier

from fairproj.datasets import load_adult, load_compas, load_german
from fairproj.selection import fair_train_test_split

RESULTS = Path(__file__).parent / "results"
RUNS = RESULTS / "fairboost"
TARGET = 0.05
EG_BOUND = TARGET / 2  # fairlearn bounds the distance of each group's rate from that of all rows
LOADERS = {"Adult": load_adult, "COMPAS": load_compas, "German credit": load_german}
WORDS = {
    "demographic_parity": "demographic parity",
    "equal_opportunity": "equal opportunity",
    "equalized_odds": "equalized odds",
}


def quiet(model: Any, *rows: Any, **more: Any) -> Any:
    """Fit without warnings: the tables say what was reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*rows, **more)


def trees(leaves: int, n_estimators: int) -> LGBMClassifier:
    return LGBMClassifier(
        num_leaves=leaves, n_estimators=n_estimators, n_jobs=1, verbosity=-1, deterministic=True
    )


def load(name: str, seed: int, max_rows: int | None = None) -> tuple[Any, ...]:
    """Training and test rows of a dataset without its sensitive column: 70 % and 30 %."""
    data = LOADERS[name]()
    sensitive = data.sensitive_features.name
    X = data.data.drop(columns=sensitive, errors="ignore")
    for column in X.columns[X.dtypes.map(lambda dtype: not pd.api.types.is_numeric_dtype(dtype))]:
        X[column] = X[column].astype("category")
    parts = fair_train_test_split(
        X, data.target, data.sensitive_features, test_size=0.3, random_state=seed
    )
    if max_rows is None:
        return tuple(parts)
    return tuple(part.iloc[:max_rows] if at % 2 == 0 else part for at, part in enumerate(parts))
