"""What an audit keeps of any number of rows: cell counts, and a sample of probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.cells import CellCounts
from fairproj.data.checks import Groups
from fairproj.data.types import Array, Codes
from fairproj.estimators.price import Price, make_scores
from fairproj.report import ScoredRows, sampled_words

MOST_SAMPLED = 1_000_000


class RowSample:
    """At most ``most`` rows of a stream, drawn at random, in their order; all if there are fewer.

    Each row draws a number, and the rows with the smallest numbers stay. The sample therefore does
    not depend on the chunks that the rows come in.
    """

    def __init__(self, most: int) -> None:
        self.n_rows = 0
        self._most = most
        self._draws = np.random.Philox(0)
        self._limit = np.iinfo(np.uint64).max  # rows that draw more cannot stay
        self._parts: list[tuple[NDArray[Any], ...]] = []

    def add(self, *columns: NDArray[Any]) -> None:
        drawn = self._draws.random_raw(len(columns[0]))
        self.n_rows += len(drawn)
        near = drawn <= self._limit
        self._parts.append(tuple(column[near] for column in (drawn, *columns)))
        if sum(len(part[0]) for part in self._parts) > 1.25 * self._most:
            self._shrink()

    def _shrink(self) -> None:
        drawn, *columns = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        if len(drawn) > self._most:
            kept = np.sort(np.argsort(drawn, kind="stable")[: self._most])
            drawn, columns = drawn[kept], [column[kept] for column in columns]
            self._limit = drawn.max()
        self._parts = [(drawn, *columns)]

    def columns(self) -> list[NDArray[Any]]:
        """The columns of the rows that were drawn."""
        self._shrink()
        return list(self._parts[0][1:])


@dataclass
class Tally:
    """Counts of rows by group, label and prediction, and a sample of their probabilities.

    Attributes
    ----------
    groups : Groups
        All groups that may occur.
    with_plain : bool
        Whether the same settings without a constraint are compared.
    """

    groups: Groups
    with_plain: bool = False
    sample: RowSample = field(default_factory=lambda: RowSample(MOST_SAMPLED))

    def __post_init__(self) -> None:
        shape = (len(self.groups.values), 2, 2)
        self._model, self._plain = np.zeros(shape), np.zeros(shape)

    @property
    def n_rows(self) -> int:
        return int(self._model.sum())

    def count(self, codes: Codes, actual: Any, predicted: Any, weight: Any = None) -> None:
        """Count rows alone; ``weight`` says how many of each kind there are."""
        self._model += self._counts(codes, actual, predicted, weight)

    def add(
        self,
        codes: Codes,
        actual: NDArray[np.bool_],
        model: tuple[NDArray[np.bool_], Array],
        plain: tuple[NDArray[np.bool_], Array] | None,
    ) -> None:
        """Count rows with the positive predictions and the probabilities of the models."""
        self.count(codes, actual, model[0])
        if plain is not None:
            self._plain += self._counts(codes, actual, plain[0])
        small = codes.astype(np.min_scalar_type(len(self.groups.values)))
        self.sample.add(small, actual, model[1], *(() if plain is None else plain[1:]))

    def _counts(self, codes: Codes, actual: Any, predicted: Any, weight: Any = None) -> Array:
        place = 4 * codes + 2 * np.asarray(actual, dtype=np.intp) + predicted
        counted = np.bincount(place, weight, self._model.size)
        return np.asarray(counted.reshape(self._model.shape), dtype=float)

    def _present(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._model.sum(axis=(1, 2)))

    @property
    def names(self) -> list[str]:
        """Those of the groups that have rows."""
        values = [self.groups.values[at] for at in self._present()]
        return Groups(np.zeros(0, dtype=np.intp), values).names

    def counts(self, *, plain: bool = False) -> CellCounts:
        counted = (self._plain if plain else self._model)[self._present()]
        return CellCounts(counted.sum(axis=2), counted[:, :, 1])

    @property
    def has_both_labels(self) -> bool:
        return bool(self.counts().size.sum(axis=0).all())

    def scored(self) -> ScoredRows | None:
        """The probabilities; None where all rows have one label."""
        if not self.has_both_labels:
            return None
        codes, actual, probability, *_ = self.sample.columns()
        n_rows = self.sample.n_rows
        return ScoredRows(actual, probability, codes, n_rows if n_rows > len(codes) else 0)

    @property
    def note(self) -> str:
        """What to say where some numbers come from a sample of the rows."""
        scored = self.scored()
        if scored is None or not scored.sampled_from:
            return ""
        return sampled_words(len(scored.actual), scored.sampled_from)

    def price(self, positive_class: int) -> Price | None:
        """What the constraint cost; the positive label is that of the first or second class."""
        if not self.with_plain or not self.has_both_labels:
            return None
        codes, actual, *probabilities = self.sample.columns()
        scores = [
            make_scores(
                self.counts(plain=bool(at)).accuracy,
                actual == bool(positive_class),
                _both(probability, positive_class),
                codes,
            )
            for at, probability in enumerate(probabilities)
        ]
        return Price("held-out rows", self.n_rows, *scores)


def _both(probability: Array, positive_class: int) -> Array:
    """Probabilities of both classes, from those of the positive one."""
    pair = [1 - probability, probability]
    return np.column_stack(pair if positive_class else pair[::-1])
