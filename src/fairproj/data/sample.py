"""A sample: X, y, groups and weights, validated and encoded once for every fit on its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from fairproj.data.blocks import Blocks
from fairproj.data.cells import Cells
from fairproj.data.checks import (
    Groups,
    check_groups,
    check_labels,
    check_lengths,
    check_pos_label,
    check_weights,
    listing,
)
from fairproj.data.columns import take_rows
from fairproj.data.encoder import FeatureEncoder
from fairproj.data.reduction import LocalReduction, Reduction
from fairproj.data.types import Array, Codes


@dataclass(frozen=True)
class Sample:
    """Validated rows.

    Attributes
    ----------
    X : array, CSR matrix or data frame
        As the learners read it: encoded where the engine asks for a matrix.
    y : array of -1 and +1
        Of doubles, or of small integers where rows are many.
    classes : array of shape (2,)
        The labels that -1 and +1 stand for.
    weight : array of shape (n_rows,)
        The user's weights, scaled so that the largest is at least 1 and below 2. Equal weights are
        one number, repeated without memory.
    groups : Groups
    positive_class : int
        Which class the constraints call positive.
    encoder : FeatureEncoder, optional
        What made the matrix, where X is one.
    reduction : Reduction
        Adds up over workers, where each holds some of the rows.
    parts : Blocks, optional
        Where the rows stand in the whole table; by default they are all of it.
    cache : dict
        What engines keep with these rows, such as binned data.
    """

    X: Any
    y: Array
    classes: NDArray[Any]
    weight: Array
    groups: Groups
    positive_class: int
    encoder: FeatureEncoder | None = None
    reduction: Reduction = field(default=LocalReduction(), repr=False)
    parts: Blocks | None = field(default=None, repr=False)
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.y)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self.has_one_weight:
            state["weight"] = self.weight[0]  # pickle would write the number once for each row
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if not np.ndim(weight := state["weight"]):
            weight = np.broadcast_to(weight, state["y"].shape)
        self.__dict__.update(state, weight=weight)

    @property
    def has_one_weight(self) -> bool:
        """Whether the weights are one number, repeated without memory."""
        return len(self) > 0 and self.weight.strides == (0,)

    @property
    def blocks(self) -> Blocks:
        return self.parts or Blocks.whole(len(self))

    @property  # a cached one has a lock, and workers in threads would wait for each other
    def n_rows(self) -> int:
        """The number of rows, over all workers, each of which must ask."""
        return int(self.reduction.sum(np.array([float(len(self))]))[0])

    @cached_property
    def cells(self) -> Cells:
        return Cells.of(self.y, self.groups, self.classes, self.positive_class, self.reduction)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels as the user gave them."""
        return self.classes[(self.y > 0).astype(np.intp)]

    @property
    def positive_label(self) -> Any:
        return self.classes[self.positive_class]

    def take(self, rows: Codes, *, keep_groups: bool = False) -> Sample:
        """Some of the rows; a group that loses all of its rows is dropped unless it is kept."""
        groups = self.groups.take(rows)
        if keep_groups:
            groups = Groups(self.groups.codes[rows], self.groups.values)
        X = take_rows(self.X, rows)
        return replace(
            self,
            X=X,
            y=self.y[rows],
            weight=self._take_weights(rows),
            groups=groups,
            encoder=None if self.encoder is None else self.encoder.for_rows(X, self.reduction),
            parts=None if self.parts is None else self.parts.take(rows),
            cache={},
        )

    def _take_weights(self, rows: Codes) -> Array:
        taken: Array = self.weight[rows]
        return np.broadcast_to(self.weight[0], len(taken)) if self.has_one_weight else taken

    def with_weight(self) -> Sample:
        """The rows whose weight is not zero."""
        if self.weight.all():
            return self
        sample = self.take(np.flatnonzero(self.weight))
        if (sample.y == sample.y[0]).all():
            raise ValueError("rows of positive sample_weight must hold two classes, found one")
        return sample

    def without_features(self) -> Sample:
        """The same without features, which are large and not needed once they are binned."""
        return replace(self, X=None, cache={})


def make_sample(
    X: Any, y: Any, sensitive_features: Any, sample_weight: Any, *, pos_label: Any = None
) -> Sample:
    """Check what comes with X and put it together; without sensitive features, one group."""
    y, classes = check_labels(y)
    check_lengths(X, y)
    weight = compact_weights(scale_weights(check_weights(sample_weight, len(y))))
    groups = Groups(np.zeros(len(y), dtype=np.intp), ["all"])
    if sensitive_features is not None:
        groups = check_groups(sensitive_features, len(y))
    return Sample(X, y, classes, weight, groups, check_pos_label(pos_label, classes))


def scale_weights(weight: Array, largest: float | None = None) -> Array:
    """The weights by a power of two: only ratios matter, and 1e308 + 1e308 is infinite.

    Any other factor would round them, and a row of weight 2 would not count exactly like two rows.
    ``largest`` is the largest weight of all rows, where these are some of them.
    """
    exponent = int(np.frexp(weight.max() if largest is None else largest)[1]) - 1
    scaled: Array = np.ldexp(weight, -exponent)
    return scaled


def compact_weights(weight: Array) -> Array:
    """The weights of all rows of a table; equal ones as one number, repeated without memory."""
    if not len(weight) or weight.min() < weight.max():
        return weight
    return np.broadcast_to(weight[0], len(weight))


def split_sample(sample: Sample, fraction: float, random_state: Any) -> tuple[Sample, Sample]:
    """Rows to train on and rows to hold out, the same share of every (group, label) cell.

    At least one row of a cell is trained on, and of two rows or more at least one is held out. The
    rows held out are drawn by their places among the rows of their cell in the whole table, so
    that it does not matter how the table is spread over workers.
    """
    rng = check_random_state(random_state)
    held_out = np.zeros(len(sample), dtype=bool)
    blocks, index = sample.blocks, sample.cells.index
    counts = [np.bincount(index[rows], minlength=len(sample.cells)) for rows in blocks.slices]
    by_cell = np.array(counts, dtype=float).reshape(-1, len(sample.cells))  # also without blocks
    before, total = blocks.before(by_cell, sample.reduction)
    for cell in np.flatnonzero(total):
        n_rows = int(total[cell])
        n_held_out = min(max(1, round(fraction * n_rows)), n_rows - 1)
        chosen = np.zeros(n_rows, dtype=bool)
        chosen[rng.permutation(n_rows)[:n_held_out]] = True
        for rows, start in zip(blocks.slices, before[:, cell].astype(int), strict=True):
            here = np.flatnonzero(index[rows] == cell)
            held_out[rows.start + here] = chosen[start : start + len(here)]
    train, rest = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    return sample.take(train, keep_groups=True), sample.take(rest, keep_groups=True)


def match_groups(sample: Sample, training: Sample) -> Sample:
    """Validation rows with the classes and groups of the training rows."""
    known = training.groups.values
    check_watched(sample.groups.values, sample.classes, known, training.classes)
    codes = np.array([known.index(value) for value in sample.groups.values], dtype=np.intp)
    groups = Groups(codes[sample.groups.codes], known)
    return replace(sample, groups=groups, positive_class=training.positive_class, cache={})


def check_watched(
    groups: Sequence[Any], classes: NDArray[Any], known: Sequence[Any], known_classes: NDArray[Any]
) -> None:
    """Refuse validation rows with other groups or labels than the training rows have."""
    unknown = [value for value in groups if value not in known]
    if unknown:
        raise ValueError(
            f"the validation rows have groups that the training rows lack: {listing(unknown)}; "
            "drop these rows"
        )
    if list(classes) != list(known_classes):
        raise ValueError(
            f"the validation rows have the labels {listing(classes)}, the training rows "
            f"{listing(known_classes)}; they must be the same"
        )
