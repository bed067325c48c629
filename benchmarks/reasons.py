"""Rows explained in a second, beside rows predicted, with either engine.

python benchmarks/reasons.py    # into benchmarks/results/reasons.md
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairproj import FairBoostClassifier
from fairproj.datasets import load_adult
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions

RESULTS = Path(__file__).parent / "results" / "reasons.md"
REPEAT = 3
N_ROWS = 8_000


def main() -> None:
    lines = [["100 trees", "predicted", "explained", "ratio"]]
    adult = load_adult()
    for engine in ("lightgbm", "xgboost"):
        for leaves in (2, 8, 31):
            model = FairBoostClassifier(
                None, engine=engine, max_leaf_nodes=leaves, validation_fraction=None
            ).fit(adult.data, adult.target)
            matrix = model.to_matrix(adult.data.iloc[:N_ROWS])
            predicted = seconds(lambda: model.predict_matrix(matrix))  # noqa: B023 (called at once)
            explained = seconds(lambda: model.contributions_matrix(matrix))  # noqa: B023
            speeds = [f"{N_ROWS / found:,.0f}" for found in (predicted, explained)]
            ratio = f"{explained / predicted:.0f}"
            lines.append([f"engine={engine}, {leaves} leaves", *speeds, ratio])
    text = (
        "# Explanation\n\n`python benchmarks/reasons.py`: rows of Adult (13 columns) in a second "
        f"of processor time, one thread, best of {REPEAT}.\n\n{markdown(lines)}"
        f"\nPython {versions()['python']}, LightGBM {versions()['lightgbm']}, XGBoost "
        f"{versions()['xgboost']}.\n"
    )
    write_text(RESULTS, text)
    print(text)


def seconds(work: Callable[[], Any]) -> float:
    found = []
    for _ in range(REPEAT):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


if __name__ == "__main__":
    main()
