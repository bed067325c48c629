"""Write the golden model file and what it predicts.

    python tools/make_golden.py tests/data

Run once for each version of the file format, by the version that introduces it, and never again:
the tests load these files to show that a model saved then still opens and predicts the same. It
refuses to write where such a file is already.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from fairproj import FairProjClassifier
from fairproj.io.model_files import VERSION


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


def main(folder: Path) -> None:
    model_file = folder / f"golden-v{VERSION}.fairproj"
    if model_file.exists():
        sys.exit(f"{model_file} is there already, and a golden file is never rewritten")
    train = rows(400, seed=0)
    model = FairProjClassifier(
        "equal_opportunity",
        0.1,
        enforce="classifier",
        n_estimators=20,
        max_depth=3,
        sensitive_columns="sex",
    ).fit(train, labels(train, seed=1))
    model.save(model_file, metadata={"made by": "tools/make_golden.py"})
    asked = rows(60, seed=2).drop(columns="sex")
    plain = asked.astype({"housing": object, "district": int})
    expected = {
        "rows": json.loads(plain.to_json(orient="split", index=False, double_precision=15)),
        "labels": model.predict(asked).tolist(),
        "decision_function": [value.hex() for value in model.decision_function(asked).tolist()],
    }
    text = json.dumps(expected, indent=1)
    model_file.with_suffix(".json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
