"""The bundled data as a matrix, labels 0 and 1 and groups, and their splits."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from fairproj import datasets
from fairproj.experiments._plan import Features


class Part(NamedTuple):
    """Rows of a dataset."""

    X: NDArray[np.float64]
    y: NDArray[np.intp]
    groups: NDArray[Any]


def split(dataset: str, features: Features, test_size: float, seed: int) -> tuple[Part, Part]:
    """Training and test rows, stratified by label."""
    whole = prepare(dataset, features)
    rows = np.arange(len(whole.y))
    parts = train_test_split(rows, test_size=test_size, stratify=whole.y, random_state=seed)
    train, test = (Part(*(array[chosen] for array in whole)) for chosen in parts)
    return train, test


@lru_cache(maxsize=4)
def prepare(dataset: str, features: Features) -> Part:
    """The whole dataset, with its features encoded. The positive label is 1."""
    data = getattr(datasets, f"load_{dataset}")()
    columns = data.data.drop(columns=[name for name in features.leave_out if name in data.data])
    if features.keep_sensitive:
        sensitive = data.sensitive_features
        columns = columns.assign(**{sensitive.name: sensitive.astype("category")})
    positive = max(data.target_names)
    y = (data.target == positive).to_numpy().astype(np.intp)
    groups = data.sensitive_features.to_numpy()
    if features.drop_incomplete:
        complete = columns.notna().all(axis=1).to_numpy()
        columns, y, groups = columns[complete], y[complete], groups[complete]
    return Part(encode(columns, features.encoding), y, groups)


def encode(columns: pd.DataFrame, encoding: str) -> NDArray[np.float64]:
    """Categories as indicators ("one-hot"), as positions in sort order ("codes"), or left out.

    A missing value is a category of its own: an indicator column, or the code -1.
    """
    names = [str(n) for n in columns if isinstance(columns[n].dtype, pd.CategoricalDtype)]
    if encoding == "numbers":
        return columns.drop(columns=names).to_numpy(dtype=float)
    if encoding == "codes":
        codes = {name: columns[name].cat.codes for name in names}
        return columns.assign(**codes).to_numpy(dtype=float)
    if encoding != "one-hot":
        raise ValueError(f"encoding={encoding!r} is unknown; use 'one-hot', 'codes' or 'numbers'")
    full = columns.assign(
        **{
            name: columns[name].cat.add_categories("missing").fillna("missing")
            for name in names
            if columns[name].isna().any()
        }
    )
    return pd.get_dummies(full, columns=names, dtype=float).to_numpy(dtype=float)
