"""A small table with labels and groups, and a model of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from fairproj import FairProjClassifier

FEATURES = ["age", "pay", "job", "ok"]


def table(n_rows: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, size=n_rows),
            "pay": rng.normal(size=n_rows).round(3),
            "job": rng.choice(["clerk", "cook, chef", 'the "boss"', ""], size=n_rows),
            "ok": rng.integers(2, size=n_rows).astype(bool),
            "sex": rng.choice(["f", "m"], size=n_rows),
        }
    )
    frame["y"] = np.where(frame["pay"] + (frame["sex"] == "f") > 0.5, "yes", "no")
    return frame.assign(predicted=np.where(frame["pay"] > 0.4, "yes", "no"))


def write_model(folder: Path) -> None:
    frame = table()
    model = FairProjClassifier(n_estimators=3)
    model.fit(frame[FEATURES], frame["y"], sensitive_features=frame["sex"])
    model.save(folder / "model.fairproj")
