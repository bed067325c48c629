"""Rows predicted in a second: the library and the command line beside LightGBM on the same trees.

python benchmarks/predict.py    # into benchmarks/results/predict.md
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fairproj import FairProjClassifier
from fairproj.datasets import load_adult
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions

RESULTS = Path(__file__).parent / "results" / "predict.md"
REPEAT = 5
N_ROWS = 4_000_000


def main() -> None:
    lines = [["model and rows", "way", "million rows a second", "share of LightGBM's own"]]
    trees: dict[str, Any]
    for name, trees in (("stumps", {}), ("31 leaves", {"max_leaf_nodes": 31})):
        for kind, frame, y in (numbers(), adult()):
            model = FairProjClassifier(None, n_estimators=100, **trees).fit(frame, y)
            many = repeated(frame)
            lines += measured(f"{name}, {kind}", model, many)
    text = (
        "# Prediction\n\n`python benchmarks/predict.py`: raw scores of a million rows by "
        "LightGBM's own `predict`, on the matrix it needs and on the data frame, and by the "
        "library's "
        f"`decision_function`, one thread, best of {REPEAT} in turns; and `fairproj predict --jobs "
        f"1` from Parquet to Parquet, {N_ROWS:,} rows, better of 2, which reads in a second thread "
        "while it predicts. The command's time is its own clock's, from opening the data to the "
        "finished file; starting Python and loading the model comes on top (about two seconds, "
        "whatever the number of rows).\n\n" + markdown(lines)
    )
    text += f"\nPython {versions()['python']}, LightGBM {versions()['lightgbm']}.\n"
    write_text(RESULTS, text)
    print(text)


def numbers() -> tuple[str, pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50_000, 14)), columns=[f"x{i}" for i in range(14)])
    y = X["x0"] + X["x1"] * X["x2"] + rng.normal(size=len(X)) > 0
    return "14 columns of numbers", X, y


def adult() -> tuple[str, pd.DataFrame, Any]:
    found = load_adult()
    return "Adult (6 of numbers, 7 of categories)", found.data, found.target


def repeated(frame: pd.DataFrame) -> pd.DataFrame:
    rows = np.random.default_rng(1).integers(len(frame), size=N_ROWS)
    return frame.iloc[rows].reset_index(drop=True)


def measured(name: str, model: FairProjClassifier, frame: pd.DataFrame) -> list[list[str]]:
    part = frame.iloc[: N_ROWS // 4].copy()
    matrix = np.ascontiguousarray(model.to_matrix(part))
    booster = model.booster_
    ways: dict[str, Callable[[], Any]] = {
        "LightGBM itself, on its matrix": lambda: booster.predict(
            matrix, raw_score=True, num_threads=1
        ),
        "LightGBM itself, on the frame": lambda: booster.predict(
            part, raw_score=True, num_threads=1
        ),
        "library, on the frame": lambda: model.decision_function(part),
    }
    seconds = {way: found / len(part) for way, found in best(ways).items()}
    with tempfile.TemporaryDirectory() as folder:
        seconds["`fairproj predict`, Parquet"] = by_command(model, frame, Path(folder)) / len(frame)
    own, *_ = seconds.values()
    return [
        [
            f"{name} ({len(model.estimators_)} trees)",
            way,
            f"{1e-6 / found:.2f}",
            f"{own / found:.0%}",
        ]
        for way, found in seconds.items()
    ]


def best(ways: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Each in turn, so that a busy moment hits all of them."""
    found = dict.fromkeys(ways, np.inf)
    for _ in range(REPEAT):
        for way, work in ways.items():
            start = time.perf_counter()
            work()
            found[way] = min(found[way], time.perf_counter() - start)
    return found


def by_command(model: FairProjClassifier, frame: pd.DataFrame, folder: Path) -> float:
    import json

    data, saved = folder / "data.parquet", folder / "model.fairproj"
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), data)
    model.save(saved)
    line = [sys.executable, "-m", "fairproj", "predict", saved, data]
    line += ["-o", folder / "out.parquet", "--jobs", "1", "--json", "--force"]
    found = [
        json.loads(subprocess.run(list(map(str, line)), capture_output=True, check=True).stdout)
        for _ in range(2)
    ]
    return min(float(one["seconds"]) for one in found)


if __name__ == "__main__":
    main()
