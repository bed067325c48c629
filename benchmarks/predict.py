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
from fairproj._files import write
from fairproj._versions import versions
from fairproj.datasets import load_adult
from fairproj.experiments._tables import markdown

RESULTS = Path(__file__).parent / "results" / "predict.md"
REPEAT = 5
N_ROWS = 4_000_000


def main() -> None:
    lines = [["model and rows", "way", "million rows a second", "share of LightGBM's own"]]
    for name, trees in (("100 stumps", {}), ("100 trees of 31 leaves", {"max_leaf_nodes": 31})):
        for kind, frame, y, groups in (numbers(), adult()):
            model = FairProjClassifier(n_estimators=100, **trees)
            model.fit(frame, y, sensitive_features=groups)
            many = repeated(frame)
            lines += measured(f"{name}, {kind}", model, many)
    text = (
        "# Prediction\n\n`python benchmarks/predict.py`: LightGBM's own `predict(raw_score=True)` "
        "on the matrix it needs, the library's `decision_function` on the frame it is given, and "
        f"`fairproj predict` from Parquet to Parquet, {N_ROWS:,} rows, one thread. Best of "
        f"{REPEAT} for the first two. The command's time is its own clock's, from opening the data "
        "to the finished file; starting Python and loading the model comes on top (about two "
        "seconds, whatever the number of rows).\n\n" + markdown(lines)
    )
    text += f"\nPython {versions()['python']}, LightGBM {versions()['lightgbm']}.\n"
    write(RESULTS, text)
    print(text)


def numbers() -> tuple[str, pd.DataFrame, Any, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50_000, 14)), columns=[f"x{i}" for i in range(14)])
    groups = rng.integers(2, size=len(X))
    y = X["x0"] + X["x1"] * X["x2"] + 0.5 * groups + rng.normal(size=len(X)) > 0
    return "14 columns of numbers", X, y, groups


def adult() -> tuple[str, pd.DataFrame, Any, Any]:
    found = load_adult()
    return "Adult (6 of numbers, 7 of text)", found.data, found.target, found.sensitive_features


def repeated(frame: pd.DataFrame) -> pd.DataFrame:
    rows = np.random.default_rng(1).integers(len(frame), size=N_ROWS)
    return frame.iloc[rows].reset_index(drop=True)


def measured(name: str, model: FairProjClassifier, frame: pd.DataFrame) -> list[list[str]]:
    part = frame.iloc[: N_ROWS // 4]
    matrix = np.ascontiguousarray(model.to_matrix(part))
    booster = model.booster_
    own = best(lambda: booster.predict(matrix, raw_score=True, num_threads=1)) / len(part)
    ours = best(lambda: model.decision_function(part)) / len(part)
    with tempfile.TemporaryDirectory() as folder:
        command = by_command(model, frame, Path(folder)) / len(frame)
    return [
        [name, way, f"{1e-6 / seconds:.2f}", f"{own / seconds:.0%}"]
        for way, seconds in (
            ("LightGBM itself", own),
            ("library", ours),
            ("`fairproj predict`, Parquet", command),
        )
    ]


def best(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEAT):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


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
