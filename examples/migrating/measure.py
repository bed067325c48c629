"""What all scripts of this folder share: the rows of Adult as numbers, and what is printed.

It needs pandas and nothing of fairproj, so that it runs in the environments of other libraries.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

# Which rows each gap compares: those with a positive label, those with a negative one, or all.
EVENTS = {
    "demographic_parity": [None],
    "equal_opportunity": [1],
    "equalized_odds": [0, 1],
}


class Rows(NamedTuple):
    """Features, labels (1 for a high income) and sex of the rows to train on and to test with."""

    X: pd.DataFrame
    y: pd.Series[Any]
    sex: pd.Series[Any]
    X_test: pd.DataFrame
    y_test: pd.Series[Any]
    sex_test: pd.Series[Any]


def read_adult() -> Rows:
    """Read train.csv and test.csv, which run.py writes."""
    folder = Path(os.environ.get("MIGRATING_ROWS", "."))
    parts: list[Any] = []
    for name in ("train.csv", "test.csv"):
        frame = pd.read_csv(folder / name)
        parts += [frame.drop(columns=["income", "sex"]), frame["income"], frame["sex"]]
    return Rows(*parts)


def show(y: Any, predicted: Any, sex: Any, constraint: str) -> None:
    """Print the accuracy and the gap on the test rows."""
    frame = pd.DataFrame({"y": list(y), "yes": [int(each) for each in predicted], "sex": list(sex)})
    gaps = []
    for label in EVENTS[constraint]:
        rows = frame if label is None else frame[frame["y"] == label]
        rates = rows.groupby("sex")["yes"].mean()
        gaps.append(rates.max() - rates.min())
    accuracy = (frame["y"] == frame["yes"]).mean()
    print(f"accuracy {accuracy:.4f} gap {max(gaps):.4f}")
