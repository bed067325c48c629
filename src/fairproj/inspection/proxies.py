"""Columns that tell the group or the label, each alone and all together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from fairproj.data.checks import check_aligned, check_groups, check_labels, counted
from fairproj.data.types import Array, Codes
from fairproj.inspection.columns import Column, read_columns, sample_rows
from fairproj.inspection.strength import class_aucs, deal_folds, usable_classes

PROXY_AUC = 0.9  # that of a copy of the group with every tenth row wrong
LOOK_AUC = 0.8  # with every fifth row wrong
LEAK_AUC = 0.98
JOINT_PROXY_AUC = 0.98  # of all features together, which often tell the group with 0.9 and more
MAX_ROWS = 100_000
JOINT_ROWS = 10_000
_JOINT_FOLDS = 3
JOINT_GROUPS = 4
_JOINT_TREES = {
    "num_leaves": 15,
    "learning_rate": 0.2,
    "min_data_in_leaf": 20,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,  # for so few rows, threads cost more than they save
    "verbosity": -1,
}
_JOINT_ROUNDS = 30


def find_proxies(
    X: Any,
    sensitive_features: Any,
    *,
    threshold: float = PROXY_AUC,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
) -> pd.DataFrame:
    """How well each column of X alone tells the group of a row.

    The measure is the area under the ROC curve: the chance that of a row of a group and a row of
    another, the column gives the first a higher score for that group; 0.5 is chance, 1 is certain.
    The score of a row is the share of the group among the rows of *other* folds with a similar
    value (see `fairproj.inspection.strength`), so a column with many different values gains
    nothing by them. With several groups, the group that a column tells best counts, among groups
    with at least 20 rows.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame
        Missing values are a value of their own.
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
        The groups; several columns are crossed.
    threshold : float, default=0.9
        Columns at or above it nearly determine the group. A copy of two groups with every tenth
        row wrong has 0.9.
    max_rows : int, default=100,000
        Of more rows, a random sample is taken.
    random_state : int, default=0
        Of the sample and the folds.

    Returns
    -------
    DataFrame
        A row for each column of X, the strongest first: ``column``, ``auc``, ``group`` (the one it
        tells best), ``mean_auc`` (over the groups) and ``nearly_determines``. The measures are NaN
        if there are no two groups of 20 rows.

    Examples
    --------
    >>> from fairproj.datasets import load_adult
    >>> from fairproj.inspection import find_proxies
    >>> data = load_adult()
    >>> proxies = find_proxies(data.data, data.sensitive_features)
    >>> proxies["column"].iloc[0], bool(proxies["nearly_determines"].any())
    ('relationship', False)
    """
    check_aligned(X=X, sensitive_features=sensitive_features)
    columns, rows = read_columns(X, max_rows, random_state)
    groups = check_groups(sensitive_features, np.shape(X)[0])
    return rank_columns(columns, groups.codes[rows], groups.names, threshold, random_state)


def find_leaks(
    X: Any,
    y: Any,
    *,
    threshold: float = LEAK_AUC,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
) -> pd.DataFrame:
    """How well each column of X alone tells the label.

    A column that tells it nearly perfectly was often recorded after the label was known, and will
    not be there when predictions are made.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame
    y : array-like of shape (n_rows,)
        Two labels.
    threshold : float, default=0.98
        Columns at or above it nearly determine the label.
    max_rows, random_state
        As in `find_proxies`.

    Returns
    -------
    DataFrame
        A row for each column of X, the strongest first: ``column``, ``auc`` and
        ``nearly_determines``; the AUC is as in `find_proxies`.

    Examples
    --------
    >>> import numpy as np
    >>> from fairproj.inspection import find_leaks
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=500)
    >>> X = np.column_stack([rng.normal(size=500), y + 0.01 * rng.normal(size=500)])
    >>> find_leaks(X, y)["nearly_determines"].tolist()
    [True, False]
    """
    check_aligned(X=X, y=y)
    columns, rows = read_columns(X, max_rows, random_state)
    signs, classes = check_labels(y)
    if len(signs) != np.shape(X)[0]:
        raise ValueError(
            f"X has {counted(np.shape(X)[0], 'row')} and y has {len(signs):,}; they must be equal"
        )
    labels = (signs[rows] > 0).astype(np.intp)
    ranked = rank_columns(columns, labels, list(map(str, classes)), threshold, random_state)
    return ranked.drop(columns=["group", "mean_auc"])


def rank_columns(
    columns: Sequence[Column], codes: Codes, names: Sequence[str], threshold: float, seed: int
) -> pd.DataFrame:
    """A table of how well columns tell the classes that the codes stand for."""
    wanted, folds = usable_classes(codes), deal_folds(codes, seed)
    measured = [_measure(column, codes, wanted, folds) for column in columns]
    table = pd.DataFrame(
        {
            "column": [column.name for column in columns],
            "auc": [aucs.max() if len(aucs) else np.nan for aucs in measured],
            "group": [names[wanted[aucs.argmax()]] if len(aucs) else None for aucs in measured],
            "mean_auc": [aucs.mean() if len(aucs) else np.nan for aucs in measured],
        }
    )
    table["nearly_determines"] = table["auc"] >= threshold
    return table.sort_values("auc", ascending=False, kind="stable", ignore_index=True)


def _measure(column: Column, codes: Codes, wanted: Codes, folds: Codes) -> Array:
    bins, n_bins = column.bins()
    return class_aucs(bins, n_bins, codes, wanted, folds)


def joint_auc(X: Any, sensitive_features: Any, *, random_state: int = 0) -> float:
    """How well all columns of X together tell the group of a row.

    The AUC of `find_proxies`, with scores of a small LightGBM model that is trained on the rows of
    other folds. At most 10,000 rows are used, and of several groups the four largest are told from
    all others.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
    random_state : int, default=0

    Returns
    -------
    float
        Of the group that is told best; NaN if there are no two groups of 20 rows.

    Examples
    --------
    >>> from fairproj.datasets import load_adult
    >>> from fairproj.inspection import joint_auc
    >>> data = load_adult()
    >>> joint_auc(data.data, data.sensitive_features) > 0.9
    True
    """
    check_aligned(X=X, sensitive_features=sensitive_features)
    columns, rows = read_columns(X, JOINT_ROWS, random_state)
    groups = check_groups(sensitive_features, np.shape(X)[0])
    return joint_strength(columns, groups.codes[rows], random_state)


def joint_strength(columns: Sequence[Column], codes: Codes, seed: int) -> float:
    """The same from columns that were read."""
    rows = sample_rows(len(codes), JOINT_ROWS, seed)
    codes = codes[rows]
    wanted = usable_classes(codes)
    if not len(wanted) or not columns:
        return float("nan")
    matrix = np.column_stack([column.numbers[rows] for column in columns])
    texts = [position for position, column in enumerate(columns) if column.is_text]
    folds = deal_folds(codes, seed, _JOINT_FOLDS)
    wanted = wanted[np.argsort(-np.bincount(codes)[wanted], kind="stable")][:JOINT_GROUPS]
    if len(wanted) == 2 and codes.max() == 1:
        wanted = wanted[1:]
    return max(_joint_auc(matrix, texts, codes == each, folds, seed) for each in wanted)


def _joint_auc(matrix: Array, texts: list[int], inside: Any, folds: Codes, seed: int) -> float:
    """The mean over folds of the AUC of one group against all others."""
    import lightgbm

    aucs = []
    for fold in range(_JOINT_FOLDS):
        rows = folds != fold
        data = lightgbm.Dataset(matrix[rows], inside[rows].astype(float), categorical_feature=texts)
        parameters = {"objective": "binary", "seed": seed, **_JOINT_TREES}
        model = lightgbm.train(parameters, data, _JOINT_ROUNDS)
        aucs.append(roc_auc_score(inside[~rows], model.predict(matrix[~rows])))
    return float(np.mean(aucs))
