"""Splits that keep the share of every (group, label) cell."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold, train_test_split
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.utils import check_random_state

from fairproj.data.cells import Cells
from fairproj.data.checks import check_aligned, check_groups, check_labels, counted
from fairproj.data.columns import take_rows


class FairStratifiedKFold(GroupsConsumerMixin, BaseCrossValidator):  # type: ignore[misc]
    """K folds, each with the same share of every group and label.

    Use it as ``cv=`` and pass the sensitive features as scikit-learn's ``groups``.

    Parameters
    ----------
    n_splits : int, default=5
    shuffle : bool, default=True
    random_state : int, RandomState or None, default=0
        Of the shuffling.

    Examples
    --------
    >>> from fairproj.datasets import load_german
    >>> from fairproj.selection import FairStratifiedKFold
    >>> data = load_german()
    >>> folds = FairStratifiedKFold().split(data.data, data.target, data.sensitive_features)
    >>> [len(test) for _, test in folds]
    [200, 200, 200, 200, 200]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = 0) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self, X: Any, y: Any, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Pairs of training and test rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        groups : array-like of shape (n_rows,) or (n_rows, n_columns)
            The sensitive features; several columns are crossed.

        Returns
        -------
        iterator of tuple of array
            Training rows and test rows, by position.
        """
        yield from self.split_cells(make_cells(y, groups))

    def split_cells(self, cells: Cells) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """The same for rows whose labels and groups are checked already.

        Parameters
        ----------
        cells : Cells

        Returns
        -------
        iterator of tuple of array
        """
        if not isinstance(self.n_splits, Integral) or self.n_splits < 2:
            raise ValueError(
                f"n_splits must be a number of folds, 2 or more; got {self.n_splits!r}"
            )
        check_sizes(cells, int(self.n_splits), f"n_splits={self.n_splits}")
        random_state = self.random_state if self.shuffle else None
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=random_state)
        yield from folds.split(np.zeros(len(cells.index)), cells.index)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        int
        """
        return self.n_splits

    def __repr__(self) -> str:
        return (
            f"FairStratifiedKFold(n_splits={self.n_splits}, shuffle={self.shuffle}, "
            f"random_state={self.random_state})"
        )


def fair_train_test_split(
    X: Any,
    y: Any,
    sensitive_features: Any,
    *more: Any,
    test_size: float = 0.25,
    random_state: Any = None,
) -> list[Any]:
    """scikit-learn's ``train_test_split``, stratified by group and label.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
        The groups; several columns are crossed.
    *more : array-like
        Further arrays to split, such as sample weights.
    test_size : float, default=0.25
        The share of the rows in the test part.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    list
        Training and test part of X, of y, of the sensitive features, and of what follows.

    Examples
    --------
    >>> from fairproj.datasets import load_german
    >>> from fairproj.selection import fair_train_test_split
    >>> data = load_german()
    >>> parts = fair_train_test_split(data.data, data.target, data.sensitive_features)
    >>> [len(part) for part in parts]
    [750, 250, 750, 250, 750, 250]
    """
    check_aligned(X=X, y=y, sensitive_features=sensitive_features)
    split = split_rows(make_cells(y, sensitive_features), test_size, random_state)
    if isinstance(sensitive_features, dict):
        sensitive_features = pd.DataFrame(sensitive_features)
    return [take_rows(part, rows) for part in (X, y, sensitive_features, *more) for rows in split]


def split_rows(cells: Cells, test_size: float, random_state: Any) -> list[NDArray[np.intp]]:
    """Training and test rows, with each cell on both sides."""
    check_sizes(cells, 2, "a split")
    rows = np.arange(len(cells.index))
    check_random_state(random_state)  # here, where its error is not one of test_size
    try:
        split: list[NDArray[np.intp]] = train_test_split(
            rows, test_size=test_size, random_state=random_state, stratify=cells.index
        )
    except ValueError as error:
        raise ValueError(
            f"test_size={test_size!r} does not split {counted(len(rows), 'row')} such that each "
            "group and "
            f"label is on both sides ({error}); choose another, or merge groups"
        ) from None
    check_parts(cells, {"training part": split[0], "test part": split[1]})
    return split


def hold_out_rows(
    cells: Cells, fraction: float, by_label: bool, random_state: Any
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Training rows and an independent sample of every group to judge on.

    Where the rates are those among rows of one label, the split may keep each label's share
    (``by_label``); not for selection rates: they depend on that share, which must then be left to
    chance.
    """
    try:
        parts = train_test_split(
            np.arange(len(cells.index)),
            test_size=fraction,
            stratify=cells.index if by_label else cells.index // 2,
            random_state=random_state,
        )
    except ValueError:
        counts = cells.counts
        few = int(np.flatnonzero(counts == counts[counts > 0].min())[0])
        raise ValueError(
            f"{cells.name(few)} has {counted(counts[few], 'row')}, too few to hold out "
            f"{100 * fraction:g} %; merge that group with another or drop it"
        ) from None
    return np.sort(parts[0]), np.sort(parts[1])


def check_parts(cells: Cells, parts: dict[str, Any], *, by_label: bool = True) -> None:
    """Refuse parts of the rows that lack a cell (or, not by label, a group) that the rows have."""
    kind = cells.index if by_label else cells.index // 2
    present = np.unique(kind)
    for name, rows in parts.items():
        missing = np.setdiff1d(present, kind[rows])
        if len(missing):
            first = int(missing[0])
            what = cells.name(first) if by_label else f"group {cells.group_names[first]!r}"
            raise ValueError(
                f"the {name} has no row of {what}, so its gap cannot be measured there; merge that "
                "group with another, or split otherwise"
            )


def make_cells(y: Any, sensitive_features: Any) -> Cells:
    """The (group, label) cells of labels and groups, after checking both."""
    if sensitive_features is None:
        raise ValueError(
            "splits by group and label need the groups; pass the sensitive features (as groups= "
            "where scikit-learn splits)"
        )
    signs, classes = check_labels(y)
    groups = check_groups(sensitive_features, len(signs), beside="y")
    return Cells.of(signs, groups, classes)


def check_sizes(cells: Cells, least: int, wanted_by: str) -> None:
    """Refuse cells that have rows, but fewer than ``least``."""
    few = np.flatnonzero((cells.counts > 0) & (cells.counts < least))
    if len(few):
        raise ValueError(
            f"{cells.name(int(few[0]))} has {counted(cells.counts[few[0]], 'row')}, and "
            f"{wanted_by} needs "
            f"{least}; merge the group with another or drop it"
        )
