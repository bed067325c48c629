"""Rows with the margin of the ensemble so far, and what is summed over them by cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.boosting.losses import Loss
from fairproj.data.chunks import RowChunks
from fairproj.data.sample import Sample
from fairproj.data.types import Array
from fairproj.engines.base import TIE

N_BINS, FEWEST_BINS = 1024, 128
MOST_PLACES = 1 << 16  # cells times bins; with many groups, bins are fewer
SEARCHED_BINS = (1024, 1024, 1024)  # of a cut, each within one of the last


class ScoredRows:
    """Rows with margins; weights are scaled to sum to one.

    A row is predicted as class 1 where its margin exceeds the cut.

    Attributes
    ----------
    cells : Cells
    y, weight, margin : array of shape (n_rows,)
    size, squares : array of shape (n_cells,)
        The sum of the weights, and of their squares, in each cell.
    slope : array of shape (n_rows,)
        u(y f) of each row after a call of `losses`, with ``keep_slopes``.
    """

    def __init__(self, sample: Sample, loss: Loss, *, keep_slopes: bool = False) -> None:
        self.cells = sample.cells
        self.y = sample.y
        self.weight = divide(sample.weight, self.cells.total(sample.weight).sum())
        self.margin = np.zeros(len(sample))
        self.slope = np.empty(len(sample) if keep_slopes else 0)
        self._loss = loss
        self._chunks = RowChunks(len(sample))
        self.size = self.cells.total(self.weight)
        self.squares = self.sum_by_cell(lambda rows: self.weight[rows])
        self._known: dict[str, Array] = {}

    @property
    def effective_rows(self) -> float:
        """(sum s)^2 / sum s^2: as many rows of equal weight are as informative."""
        return float(1.0 / self.squares.sum())

    def add(self, h: NDArray[Any] | float, vote: float) -> None:
        """Go from f to f + vote h."""
        each = np.broadcast_to(h, self.margin.shape)

        def part(rows: slice, scratch: Array) -> None:
            self.margin[rows] += np.multiply(each[rows], vote, out=scratch)

        self._chunks(part)
        self._known = {}

    def sum_by_cell(self, values: Callable[[slice], NDArray[Any]]) -> Array:
        """The sum of s_i times the values in each cell, over all workers."""

        def part(rows: slice, scratch: Array) -> Array:
            np.multiply(self.weight[rows], values(rows), out=scratch)
            return np.bincount(self.cells.index[rows], scratch, len(self.cells)).astype(float)

        return self.cells.reduction.sum(np.sum(self._chunks(part), axis=0))

    def losses(self) -> Array:
        """The sum of s phi(y f) in each cell; with ``keep_slopes``, sets the slopes too."""

        def values(rows: slice) -> Array:
            margin = self.y[rows] * self.margin[rows]
            if not len(self.slope):
                return self._loss.value(margin)
            value, self.slope[rows] = self._loss.value_and_slope(margin)
            return value

        if "losses" not in self._known:
            self._known["losses"] = self.sum_by_cell(values)
        return self._known["losses"]

    def flipped_losses(self) -> Array:
        """The sum of s phi(-y f) in each cell."""
        if "flipped" not in self._known:
            self._known["flipped"] = self.sum_by_cell(
                lambda rows: self._loss.value(-self.y[rows] * self.margin[rows])
            )
        return self._known["flipped"]

    def shifted_losses(self, shift: float) -> Array:
        """The sum of s phi(y (f + shift)) in each cell."""
        return self.sum_by_cell(
            lambda rows: self._loss.value(self.y[rows] * (self.margin[rows] + shift))
        )

    def correct(self, cut: float = 0.0) -> Array:
        """The weight in each cell that is predicted correctly; a margin at the cut is class 0."""
        key = f"correct at {cut!r}"
        if key not in self._known:
            predicted = self.sum_by_cell(lambda rows: self.margin[rows] > cut + TIE)
            self._known[key] = correct_weight(predicted, self.size)
        return self._known[key]

    def above(self) -> tuple[Array, Array]:
        """Edges of bins, and the weight of each cell above them, of shape (n_cells, n_edges).

        Bins are even in f / (1 + |f|), so that all margins are covered and those near zero finely.
        `separate` makes a cut of an edge.
        """
        n_bins = max(FEWEST_BINS, min(N_BINS, MOST_PLACES // len(self.cells)))
        histogram = self._histogram(-1.0, 1.0, self.cells.index, len(self.cells), n_bins)
        above = histogram[:, ::-1].cumsum(axis=1)[:, ::-1]
        return np.linspace(-1.0, 1.0, n_bins + 1)[1:-1], above[:, 1:]

    def find_cut(self, inside: NDArray[np.bool_], share: float, side: str) -> float:
        """The cut above which a share of the weight in some cells lies.

        ``side`` is "nearest", "at_most" (the lowest cut with at most that share above it) or
        "at_least" (the highest with at least that share).
        """
        low, high = -1.0, 1.0
        wanted = share * self.size[inside].sum()
        beyond = 0.0  # the weight above the bins
        apart = inside[self.cells.index].view(np.uint8)
        for n_bins in SEARCHED_BINS:
            bins = self._histogram(low, high, apart, 2, n_bins)[1]
            above = beyond + np.append(bins[::-1].cumsum()[::-1], 0.0)
            edges = np.linspace(low, high, n_bins + 1)
            at = int(np.searchsorted(-above, -wanted - TIE))  # the first edge with at most `wanted`
            at = min(max(at, 1), n_bins)
            low, high, beyond = edges[at - 1], edges[at], above[at]
        upper = side == "at_most" or wanted - above[at] < (
            above[at - 1] - wanted if side == "nearest" else TIE
        )
        return self.separate(high if upper else low)

    def separate(self, edge: float) -> float:
        """The middle between the margins next to the edge of a bin of f / (1 + |f|)."""

        def part(rows: slice, scratch: Array) -> Array:
            margin = self.margin[rows]
            above = margin / (1 + np.abs(margin)) >= edge
            lower = np.max(margin, initial=-np.inf, where=~above)
            return np.array([lower, np.max(-margin, initial=-np.inf, where=above)])

        lower, upper = self.cells.reduction.max(np.max(self._chunks(part), axis=0)) * [1.0, -1.0]
        if not np.isfinite(lower):  # every row is above the edge
            return float(upper) - 1.0
        return float(lower) + 1.0 if not np.isfinite(upper) else float(lower + upper) / 2

    def _histogram(
        self, low: float, high: float, index: NDArray[Any], n_parts: int, n_bins: int
    ) -> Array:
        """Weights by part of the rows and bin of f / (1 + |f|), of shape (n_parts, n_bins)."""
        scale, everything = n_bins / (high - low), low == -1.0 and high == 1.0
        total = np.zeros(n_parts * n_bins)

        def part(rows: slice, scratch: Array) -> None:
            places, weight = index[rows], self.weight[rows]
            np.abs(self.margin[rows], out=scratch)
            scratch += 1.0
            np.divide(self.margin[rows], scratch, out=scratch)
            squashed = scratch
            if not everything:
                inside = (scratch >= low) & (scratch < high)
                squashed, places, weight = scratch[inside], places[inside], weight[inside]
            squashed -= low
            squashed *= scale
            bins = np.minimum(squashed.astype(np.intp), n_bins - 1)
            bins += places.astype(np.intp) * n_bins
            np.add(total, np.bincount(bins, weight, len(total)), out=total)

        self._chunks(part)
        return self.cells.reduction.sum(total).reshape(n_parts, n_bins)


def divide(weight: Array, total: float) -> Array:
    """The weights divided by a total; equal weights that take no memory still take none."""
    if len(weight) and weight.strides == (0,):
        return np.broadcast_to(weight[0] / total, weight.shape)
    return weight / total


def correct_weight(predicted: Array, size: Array) -> Array:
    """The correct part of each cell, from the part predicted as class 1; cells along axis 0."""
    shape = (-1, *[1] * (predicted.ndim - 1))
    label = (np.arange(len(size)) % 2 == 1).reshape(shape)
    correct: Array = np.where(label, predicted, size.reshape(shape) - predicted)
    return correct
