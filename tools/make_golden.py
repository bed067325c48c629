"""Write the golden model files and what their models predict.

    python tools/make_golden.py tests/data

The tests load these files to show that a model saved then still opens and predicts the same. Run it
once for each version of the file format and never again after that version is frozen. Files that
exist are replaced with ``--force`` only.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.estimators.base import BoostedClassifier
from fairproj.io.atomic import write_text
from fairproj.io.model_file import VERSION

MODELS = {
    "fairproj": FairProjClassifier(
        "equalized_odds", [0.02, 0.05], n_estimators=10, max_depth=3, sensitive_columns="sex"
    ),
    "fairboost": FairBoostClassifier(
        "equal_opportunity",
        0.02,
        n_estimators=10,
        max_depth=3,
        class_weight={"bad": 2.0, "good": 1.0},
        baseline=True,
        validation_fraction=None,
        sensitive_columns="sex",
        random_state=0,
    ),
    "first-order": FairBoostClassifier(
        ["demographic_parity", "equal_opportunity"],
        [0.02, 0.02],
        tree_step="first_order",
        n_estimators=10,
        max_depth=3,
        selection_rate=0.3,
        validation_fraction=None,
        sensitive_columns="sex",
        pos_label="bad",
        random_state=0,
    ),
}


def rows(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows).astype(float),
            "income, net": rng.lognormal(7, 1, n_rows),
            "housing": rng.choice(["own", "rent", "für frei"], n_rows),
            "district": rng.choice([3, 7, 11, 20], n_rows),
            "sex": rng.choice(["female", "male"], n_rows),
        }
    )
    frame.loc[rng.random(n_rows) < 0.15, "age"] = np.nan
    frame.loc[rng.random(n_rows) < 0.1, "housing"] = None
    frame["housing"] = frame["housing"].astype("category")
    frame["district"] = frame["district"].astype("category")
    return frame


def labels(frame: pd.DataFrame, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    score = np.log(frame["income, net"]) - 7 + (frame["housing"] == "own") - frame["age"].isna()
    score += 0.5 * (frame["sex"] == "male") + 0.4 * (frame["district"].astype(int) == 7)
    return np.where(score + rng.logistic(size=len(frame)) > 0.5, "good", "bad")


def margins(model: BoostedClassifier, frame: pd.DataFrame) -> list[str]:
    return [value.hex() for value in model.decision_function(frame).tolist()]


def write_golden(name: str, model_file: Path) -> None:
    train, asked = rows(400, seed=0), rows(60, seed=2).drop(columns="sex")
    model = MODELS[name].fit(train, labels(train, seed=1))
    model.save(model_file, metadata={"made by": "tools/make_golden.py"})
    plain = asked.astype({"housing": object, "district": int})
    baseline = getattr(model, "baseline_", None)
    expected = {
        "rows": json.loads(plain.to_json(orient="split", index=False, double_precision=15)),
        "labels": model.predict(asked).tolist(),
        "decision_function": margins(model, asked),
        "baseline": None if baseline is None else margins(baseline, asked),
        "threshold": getattr(model, "threshold_", 0.5),
        "n_rounds": model.certificate_.n_rounds,
    }
    write_text(model_file.with_suffix(".json"), json.dumps(expected, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    arguments = parser.parse_args()
    paths = {name: arguments.folder / f"golden-v{VERSION}-{name}.fairproj" for name in MODELS}
    for name, path in paths.items():
        if path.exists() and not arguments.force:
            parser.error(f"{path} exists already; give --force to replace it")
        write_golden(name, path)


if __name__ == "__main__":
    main()
