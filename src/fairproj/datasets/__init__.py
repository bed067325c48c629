"""Bundled datasets. The loaders share one signature and never download anything.

``tools/build_datasets.py`` builds the files from the original ones; the documentation has a data
card for each.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

__all__ = ["load_adult", "load_compas", "load_german"]


@dataclass(frozen=True)
class _Source:
    """A bundled file and the roles of its columns."""

    file: str
    target: str
    sensitive: str
    description: str
    not_features: tuple[str, ...] = ()


_ADULT = _Source(
    "adult.csv.gz",
    target="income",
    sensitive="sex",
    description="""Adult (Census Income): 48,842 people in the US census of 1994.

Target: income, ">50K" (11,687 rows, positive) or "<=50K". Sensitive feature: sex ("Male",
"Female"); it is not among the features, race is. Both original files, train and test, in this
order. Missing values (a question mark in the original) in workclass, occupation and native_country
are missing here too. fnlwgt, the census's sampling weight, is among the features, as in most
studies.

Source: B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996,
doi:10.24432/C5XW20, licence CC BY 4.0.
""",
)

_GERMAN = _Source(
    "german.csv.gz",
    target="credit",
    sensitive="sex",
    description="""German Credit (Statlog): 1,000 credits of a German bank, 1973 to 1975.

Target: credit, "good" (700 rows, positive) or "bad" (300). The bank drew a larger share of bad
credits than it had. Sensitive feature: sex, from the attribute of personal status (690 male, 310
female); it is not among the features. No values are missing. Several codes of the published
attribute list are known to be wrong (U. Groemping, "South German Credit Data: Correcting a Widely
Used Data Set", 2019), among them the one for personal status: treat results on sex with care.

Source: H. Hofmann, Statlog (German Credit Data), UCI Machine Learning Repository, 1994,
doi:10.24432/C5NC77, licence CC BY 4.0; codes turned into words, personal status split in two.
""",
)

_COMPAS = _Source(
    "compas.csv.gz",
    target="two_year_recid",
    sensitive="race",
    not_features=("decile_score",),
    description="""COMPAS: 5,278 defendants of Broward County, Florida, screened in 2013 and 2014.

Target: two_year_recid, "yes" (2,483 rows, positive) where a new charge followed within two years,
or "no". Sensitive feature: race, the two largest groups only ("African-American", 3,175 rows, and
"Caucasian", 2,103); it is not among the features. ProPublica's filter: screened within 30 days of
the arrest, recidivism known, no ordinary traffic offence, a score given. No values are missing.
decile_score, the COMPAS score itself, is in ``frame`` and not among the features. A charge is not a
crime: arrests depend on policing. And the sample holds too many people who were charged again
(M. Barenstein, "ProPublica's COMPAS Data Revisited", 2019).

Source: J. Larson, S. Mattu, L. Kirchner and J. Angwin, ProPublica, 2016, compas-analysis
(compas-scores-two-years.csv), public records; columns that name people or cases left out.
""",
)


def load_adult(*, return_X_y: bool = False, as_frame: bool = True) -> Any:
    """Adult (Census Income): 48,842 rows, label income ">50K" or "<=50K", sensitive feature sex.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a `Bunch`.
    as_frame : bool, default=True
        Return pandas objects, with columns of category type. Otherwise ``data`` is an array of
        numbers, and ``categorical`` marks the columns that hold codes of categories.

    Returns
    -------
    Bunch
        With ``data``, ``target``, ``sensitive_features``, ``feature_names``, ``target_names``,
        ``categorical``, ``frame`` and ``DESCR``.

    Examples
    --------
    >>> from fairproj.datasets import load_adult
    >>> load_adult().data.shape
    (48842, 13)
    """
    return _load(_ADULT, return_X_y=return_X_y, as_frame=as_frame)


def load_german(*, return_X_y: bool = False, as_frame: bool = True) -> Any:
    """German Credit: 1,000 rows, label credit "good" or "bad", sensitive feature sex.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a `Bunch`.
    as_frame : bool, default=True
        Return pandas objects; otherwise arrays of numbers, as `load_adult` does.

    Returns
    -------
    Bunch
        With the fields of the result of `load_adult`.

    Examples
    --------
    >>> from fairproj.datasets import load_german
    >>> load_german().data.shape
    (1000, 20)
    """
    return _load(_GERMAN, return_X_y=return_X_y, as_frame=as_frame)


def load_compas(*, return_X_y: bool = False, as_frame: bool = True) -> Any:
    """COMPAS: 5,278 rows, label two_year_recid "yes" or "no", sensitive feature race.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a `Bunch`.
    as_frame : bool, default=True
        Return pandas objects; otherwise arrays of numbers, as `load_adult` does.

    Returns
    -------
    Bunch
        With the fields of the result of `load_adult`.

    Examples
    --------
    >>> from fairproj.datasets import load_compas
    >>> load_compas().data.shape
    (5278, 8)
    """
    return _load(_COMPAS, return_X_y=return_X_y, as_frame=as_frame)


def _load(source: _Source, *, return_X_y: bool, as_frame: bool) -> Any:
    frame = _read(source.file)
    data: Any = frame.drop(columns=[source.target, source.sensitive, *source.not_features])
    names = list(data.columns)
    categorical = np.array([isinstance(dtype, pd.CategoricalDtype) for dtype in data.dtypes])
    labels: Any = frame[source.target].astype(object)
    groups: Any = frame[source.sensitive].astype(object)
    if not as_frame:
        data = _numbers(data)
        labels, groups = labels.to_numpy(), groups.to_numpy()
    if return_X_y:
        return data, labels
    return Bunch(
        data=data,
        target=labels,
        sensitive_features=groups,
        feature_names=names,
        target_names=sorted(frame[source.target].unique()),
        categorical=categorical,
        frame=frame if as_frame else None,
        DESCR=source.description,
    )


def _read(name: str) -> pd.DataFrame:
    with (files(__name__) / "data" / name).open("rb") as file, gzip.open(file) as text:
        frame = pd.read_csv(text, keep_default_na=False, na_values=[""])
    for column in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype("category")
    return frame


def _numbers(data: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Categories as codes, missing ones as NaN."""
    matrix = np.empty(data.shape)
    for position, name in enumerate(data.columns):
        column = data[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes = column.cat.codes.to_numpy().astype(float)
            matrix[:, position] = np.where(codes < 0, np.nan, codes)
        else:
            matrix[:, position] = column
    return matrix
