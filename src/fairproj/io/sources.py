"""Rows for training and reports that are read in parts: Parquet files, and batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol

from fairproj.data.columns import GROUPS_TWICE
from fairproj.data.parts import Part

_FIELDS = ("X", "y", "sensitive_features", "sample_weight")
_SHAPES = "(X, y), (X, y, groups) or (X, y, groups, weight)"


class Source(Protocol):
    """Rows in parts that can be read again and again, always the same.

    Attributes
    ----------
    n_parts : int or None
        None if only reading them tells.
    """

    n_parts: int | None

    def parts(self) -> Iterator[Part]:
        """All parts with all that ``fit`` needs."""

    def features(self, parts: Collection[int]) -> Iterator[tuple[int, Part]]:
        """Some parts, by their numbers and in order; only X is needed."""

    def select(self, columns: Sequence[str] | None) -> Source:
        """The same rows; X has these columns if it can be chosen, and with None what it had."""


class Batches:
    """Rows in batches, to train on or report on more rows than fit into memory.

    Pass this as X to ``fit`` of an estimator with ``engine="xgboost"``, or to
    `FairnessReport.from_batches`.

    Parameters
    ----------
    batches : callable or iterable
        A function without parameters that returns an iterator, or an object that can be iterated
        over several times. Items are tuples (X, y), (X, y, groups) or (X, y, groups, weight) of
        what ``fit`` takes in memory. Each batch is in memory by itself: about 100,000 rows are a
        good size.

    Notes
    -----
    The batches must be the same, in the same order, each time. ``fit`` reads them four times: once
    to check them and to find classes, groups and categories, once for the rows that decide how
    columns are binned, and twice to bin them. Where rows are held out, these are binned in two
    more passes. Training itself reads what is binned.

    Examples
    --------
    >>> import numpy as np
    >>> from fairproj import Batches
    >>> def read():
    ...     for seed in range(3):
    ...         rng = np.random.default_rng(seed)
    ...         X, group = rng.normal(size=(1000, 4)), rng.choice(["a", "b"], 1000)
    ...         yield X, X[:, 0] + (group == "a") > 0, group
    >>> batches = Batches(read)
    """

    n_parts: int | None = None

    def __init__(self, batches: Callable[[], Iterable[Any]] | Iterable[Any]) -> None:
        if isinstance(batches, Iterator):
            raise ValueError(
                f"Batches got a {type(batches).__name__}, which can be read only once, and "
                "training reads rows several times; pass the function that makes it, or a list"
            )
        if not callable(batches) and not isinstance(batches, Iterable):
            raise ValueError(
                f"Batches needs a function that returns an iterator of {_SHAPES}, or a list of "
                f"these; got {type(batches).__name__}"
            )
        self._batches = batches

    def parts(self) -> Iterator[Part]:
        """All batches as parts of a table."""
        batches = self._batches() if callable(self._batches) else self._batches
        if not isinstance(batches, Iterable):
            raise ValueError(
                "the function given to Batches must return an iterator, such as a generator; it "
                f"returned {type(batches).__name__}"
            )
        for number, batch in enumerate(batches):
            if not isinstance(batch, tuple) or not 2 <= len(batch) <= 4:
                found = type(batch).__name__
                if isinstance(batch, tuple):
                    found = f"tuple of length {len(batch)}"
                raise ValueError(f"batch {number} is a {found}; it must be {_SHAPES}")
            yield Part(**dict(zip(_FIELDS, batch, strict=False)), name=f"batch {number}")

    def features(self, parts: Collection[int]) -> Iterator[tuple[int, Part]]:
        """Some of the batches.

        Parameters
        ----------
        parts : collection of int
            The numbers of the batches, from 0.

        Returns
        -------
        iterator of tuple
            The number of a batch, and the batch.
        """
        wanted = set(parts)
        for number, part in enumerate(self.parts()):
            if number in wanted:
                yield number, part
            if number >= max(wanted, default=-1):
                return

    def select(self, columns: Sequence[str] | None) -> Batches:
        """The batches as they are; whoever makes them chooses the columns.

        Parameters
        ----------
        columns : sequence of str or None
            Ignored.

        Returns
        -------
        Batches
        """
        return self


def find_source(
    X: Any,
    y: Any = None,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    sensitive_columns: Any = None,
) -> Source | None:
    """What to read rows from, where X is not a table in memory; None where it is one.

    Parameters
    ----------
    X : object
        The path of a Parquet file, a folder of them, a pattern, a list of paths or patterns, a URL
        that ``fsspec`` can open, `Batches`, or a `Source`.
    y, sensitive_features, sample_weight : str or list of str, optional
        For paths, the columns with the labels, the groups and the weights; all other columns are
        features.
    sensitive_columns : object, optional
        The parameter of the estimator: features that are the groups.
    """
    if isinstance(X, Iterator):
        raise ValueError(
            f"X is a {type(X).__name__}, which can be read only once; pass "
            "fairproj.Batches(function), with the function that makes it"
        )
    if _is_path(X) or (isinstance(X, list | tuple) and len(X) and all(map(_is_path, X))):
        from fairproj.io.parquet import ParquetSource

        _check_names(X, y, sensitive_features, sample_weight)
        if sensitive_features is not None and sensitive_columns is not None:
            raise ValueError(GROUPS_TWICE)
        return ParquetSource(X, y, as_names(sensitive_features), sample_weight)
    if not (hasattr(X, "parts") and hasattr(X, "features")):
        return None
    given = {"y": y, "sensitive_features": sensitive_features, "sample_weight": sample_weight}
    if names := [name for name, value in given.items() if value is not None]:
        raise ValueError(
            f"{type(X).__name__} has labels, groups and weights with its rows, and {names[0]} is "
            "given too; leave it out"
        )
    found: Source = X
    return found


def _is_path(X: Any) -> bool:
    return isinstance(X, str | os.PathLike)


def _check_names(X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> None:
    """Refuse anything but the names of columns beside a path."""
    meanings = {
        "y": (y, "the column with the labels", _is_name(y)),
        "sensitive_features": (
            sensitive_features,
            "the columns with the groups",
            sensitive_features is None or all(map(_is_name, as_names(sensitive_features))),
        ),
        "sample_weight": (
            sample_weight,
            "the column with the weights",
            sample_weight is None or _is_name(sample_weight),
        ),
    }
    for name, (given, meaning, right) in meanings.items():
        if not right:
            path = os.fspath(X[0] if isinstance(X, list | tuple) else X)
            raise ValueError(
                f"X is a path ({path!r}), so {name} must name {meaning}, got "
                f"{type(given).__name__}; to pass arrays, read the file first"
            )


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


def as_names(names: Any) -> list[Any]:
    """A list of names, from one or several or none."""
    if names is None:
        return []
    return [*names] if isinstance(names, list | tuple) else [names]
