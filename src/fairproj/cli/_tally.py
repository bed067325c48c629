"""What an audit keeps of any number of rows: counts, and samples of the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.cells import CellCounts
from fairproj.data.checks import Groups
from fairproj.data.types import Array, Codes
from fairproj.estimators.price import Price, make_scores
from fairproj.report._importance import MOST_EXPLAINED, importance_content
from fairproj.report._price import Comparison
from fairproj.report._sample import GroupSample, RowSample
from fairproj.report._scores import ScoreCounts, ScoredRows
from fairproj.report._summary import Evidence, decision_threshold, sampled_words

MOST_SAMPLED = 1_000_000


@dataclass
class Tally:
    """Counts of rows by group, label, prediction and probability, and samples of the rows.

    Attributes
    ----------
    groups : Groups
        All groups that may occur.
    with_plain : bool
        Whether the same settings without a constraint are compared.
    explains : bool
        Whether to keep some rows, to tell which features decide.
    """

    groups: Groups
    with_plain: bool = False
    explains: bool = False
    sample: RowSample = field(default_factory=lambda: RowSample(MOST_SAMPLED))

    def __post_init__(self) -> None:
        n_groups = len(self.groups.values)
        self._model, self._plain = np.zeros((n_groups, 2, 2)), np.zeros((n_groups, 2, 2))
        self._only_model = self._only_plain = 0
        self._scores = ScoreCounts(n_groups)
        self._explained = GroupSample(n_groups, MOST_EXPLAINED)

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
        matrix: Any,
    ) -> None:
        """Count rows with the positive predictions and the probabilities of the models."""
        self.count(codes, actual, model[0])
        self._scores.add(codes, actual, model[1])
        if plain is not None:
            self._plain += self._counts(codes, actual, plain[0])
            self._only_model += int(((model[0] == actual) & (plain[0] != actual)).sum())
            self._only_plain += int(((model[0] != actual) & (plain[0] == actual)).sum())
        if self.explains:
            self._explained.add(codes, matrix)
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
        places = np.searchsorted(self._present(), codes)
        return ScoredRows(actual, probability, places, n_rows if n_rows > len(codes) else 0)

    def evidence(self, model: Any, positive: Any) -> Evidence:
        """What was measured of a model, for a report."""
        scored, comparison = self.scored(), None
        price = self.price()
        if price is not None:
            only = self._only_model, self._only_plain
            comparison = Comparison(price, self.counts(plain=True), *only)
        return Evidence(
            counts=self.counts(),
            threshold=decision_threshold(model, positive),
            scored=scored,
            scores=None if scored is None else self._scores.take(self._present()),
            comparison=comparison,
            importance=self._importance(model, positive) if self.explains else None,
        )

    def _importance(self, model: Any, positive: Any) -> dict[str, Any]:
        place = {code: at for at, code in enumerate(self._present().tolist())}
        rows = {place[code]: rows for code, rows in self._explained.by_group().items()}
        sizes = self.counts().size.sum(axis=1).astype(int).tolist()
        return importance_content(model, rows, self.names, sizes, positive)

    @property
    def note(self) -> str:
        """What to say where some numbers come from a sample of the rows."""
        scored = self.scored()
        if scored is None or not scored.sampled_from:
            return ""
        return sampled_words(len(scored.actual), scored.sampled_from)

    def price(self) -> Price | None:
        """What the constraint cost."""
        if not self.with_plain or not self.has_both_labels:
            return None
        codes, actual, *probabilities = self.sample.columns()
        scores = [
            make_scores(
                self.counts(plain=bool(at)).accuracy, actual.astype(bool), probability, codes
            )
            for at, probability in enumerate(probabilities)
        ]
        return Price("test rows", self.n_rows, *scores)
