"""Bundled data, offline. Each loader has scikit-learn's signature and never downloads."""

from __future__ import annotations

import gzip
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

__all__ = ["load_german"]

_GERMAN = """German Credit (Statlog), 1,000 applicants of a bank in southern Germany, 1973 to 1975.

Target: credit, "good" (700 rows) or "bad" (300). The bank drew a larger share of bad credits than
it had. Sensitive feature: sex, from the attribute of personal status (690 male, 310 female); it is
not among the features. No values are missing. Several codes of the published attribute list are
known to be wrong (U. Groemping, "South German Credit Data: Correcting a Widely Used Data Set",
2019), among them the one for personal status: treat results on sex with care.

Source: H. Hofmann, Statlog (German Credit Data), UCI Machine Learning Repository, 1994,
doi:10.24432/C5NC77, licence CC BY 4.0; codes turned into words, personal status split in two.
"""


def load_german(*, return_X_y: bool = False, as_frame: bool = True) -> Any:
    """German Credit: 1,000 rows, label credit "good" or "bad", sensitive feature sex.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a `Bunch`.
    as_frame : bool, default=True
        Return pandas objects, with categories as such. Otherwise ``data`` is an array of numbers
        with categories as codes, and ``categorical`` says which columns those are.

    Returns
    -------
    Bunch
        With ``data``, ``target``, ``sensitive_features``, ``feature_names``, ``target_names``,
        ``categorical``, ``frame`` and ``DESCR``.

    Examples
    --------
    >>> from fairproj.datasets import load_german
    >>> data = load_german()
    >>> data.data.shape
    (1000, 20)
    """
    frame = _read("german.csv.gz")
    return _bunch(frame, "credit", "sex", _GERMAN, return_X_y=return_X_y, as_frame=as_frame)


def _read(name: str) -> pd.DataFrame:
    with (files(__name__) / "data" / name).open("rb") as file, gzip.open(file) as text:
        frame = pd.read_csv(text, keep_default_na=False)
    for column in frame.columns[[not pd.api.types.is_numeric_dtype(t) for t in frame.dtypes]]:
        frame[column] = frame[column].astype("category")
    return frame


def _bunch(
    frame: pd.DataFrame,
    target: str,
    sensitive: str,
    description: str,
    *,
    return_X_y: bool,
    as_frame: bool,
) -> Any:
    data: Any = frame.drop(columns=[target, sensitive])
    names = list(data.columns)
    categorical = [isinstance(dtype, pd.CategoricalDtype) for dtype in data.dtypes]
    labels: Any = frame[target].astype(object)
    groups: Any = frame[sensitive].astype(object)
    if not as_frame:
        for name, is_category in zip(names, categorical, strict=True):
            if is_category:
                data[name] = data[name].cat.codes
        data, labels, groups = data.to_numpy(float), labels.to_numpy(), groups.to_numpy()
    if return_X_y:
        return data, labels
    return Bunch(
        data=data,
        target=labels,
        sensitive_features=groups,
        feature_names=names,
        target_names=sorted(frame[target].unique()),
        categorical=np.array(categorical),
        frame=frame if as_frame else None,
        DESCR=description,
    )
