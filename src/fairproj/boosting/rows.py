"""Rows with the margin of the ensemble so far, and what is summed over them by cell.

Rows are kept in the order of their cells; see `fairproj.data.cell_order`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.boosting.losses import Loss
from fairproj.data.cell_order import CellOrder, Segments
from fairproj.data.sample import Sample
from fairproj.data.types import Array, Codes
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
    order : CellOrder
        Which row stands where in ``margin`` and ``slope``.
    margin : array of shape (n_rows,)
    size, squares : array of shape (n_cells,)
        The sum of the weights, and of their squares, in each cell.
    slope : array of shape (n_rows,)
        u(y f) of each row after a call of `losses`, with ``keep_slopes``.
    """

    def __init__(self, sample: Sample, loss: Loss, *, keep_slopes: bool = False) -> None:
        self.cells = sample.cells
        self.order = CellOrder(self.cells)
        total = float(self.cells.total(sample.weight).sum())
        differ = len(sample) > 0 and not sample.has_one_weight
        any_differ, n_rows = self.cells.reduction.sum(np.array([float(differ), len(sample)]))
        # Equal weights are one number on all workers, and their rows have no weights of their own.
        self._unit = 1.0 if any_differ else 1.0 / n_rows
        self._weight = sample.weight[self.order.rows] / total if any_differ else None
        self.margin = np.zeros(len(sample))
        self.slope = np.empty(len(sample) if keep_slopes else 0)
        self._loss = loss
        self.size = self.cells.total(sample.weight) / total
        self.squares = self.sum_by_cell(lambda chunk: self.weight[chunk.places])
        self._known: dict[str, Array] = {}

    @property
    def effective_rows(self) -> float:
        """(sum s)^2 / sum s^2: as many rows of equal weight are as informative."""
        return float(1.0 / self.squares.sum())

    @property
    def weight(self) -> Array:
        """s of each row; equal weights take no memory."""
        if self._weight is None:
            return np.broadcast_to(self._unit, len(self.margin))
        return self._weight

    def add(self, h: NDArray[Any] | float, vote: float) -> None:
        """Go from f to f + vote h; ``h`` is in the order of the sample."""
        each = np.broadcast_to(h, self.margin.shape)
        for chunk in self.order:
            self.margin[chunk.places] += np.multiply(each[chunk.rows], vote, out=chunk.scratch)
        self._known = {}

    def sum_by_cell(self, values: Callable[[Segments], NDArray[Any]]) -> Array:
        """The sum of s_i times the values in each cell, over all workers."""
        if self._weight is None:
            return self._unit * self.order.sum(lambda chunk: chunk.sum(values(chunk)))
        return self.order.sum(lambda chunk: chunk.sum(self.weight[chunk.places] * values(chunk)))

    def losses(self) -> Array:
        """The sum of s phi(y f) in each cell; with ``keep_slopes``, sets the slopes too."""
        if "losses" not in self._known:
            self._known["losses"] = self._sum_losses(keep_slopes=len(self.slope) > 0)
        return self._known["losses"]

    def flipped_losses(self) -> Array:
        """The sum of s phi(-y f) in each cell."""
        if "flipped" not in self._known:
            self._known["flipped"] = self._sum_losses(sign=-1.0)
        return self._known["flipped"]

    def shifted_losses(self, shift: float) -> Array:
        """The sum of s phi(y (f + shift)) in each cell."""
        return self._sum_losses(shift=shift)

    def _sum_losses(
        self, *, sign: float = 1.0, shift: float = 0.0, keep_slopes: bool = False
    ) -> Array:
        """The sum of s phi(sign y (f + shift)) in each cell."""

        def sums(chunk: Segments) -> Array:
            f = self.margin[chunk.places]
            margin = chunk.signed(f + shift if shift else f, sign)
            weight = None if self._weight is None else self.weight[chunk.places]
            total, slope = self._loss.sums_and_slope(margin, chunk.segment_starts, weight)
            if keep_slopes:
                self.slope[chunk.places] = slope
            return chunk.sum_of_segments(total)

        total = self.order.sum(sums)
        return total if self._weight is not None else self._unit * total

    def correct(self, cut: float = 0.0) -> Array:
        """The weight in each cell that is predicted correctly; a margin at the cut is class 0."""
        key = f"correct at {cut!r}"
        if key not in self._known:
            predicted = self.sum_by_cell(lambda chunk: self.margin[chunk.places] > cut + TIE)
            self._known[key] = correct_weight(predicted, self.size)
        return self._known[key]

    def above(self) -> tuple[Array, Array]:
        """Edges of bins, and the weight of each cell above them, of shape (n_cells, n_edges).

        Bins are even in f / (1 + |f|), so that all margins are covered and those near zero finely.
        `separate` makes a cut of an edge.
        """
        n_bins = max(FEWEST_BINS, min(N_BINS, MOST_PLACES // len(self.cells)))
        every = np.arange(len(self.cells))
        histogram = self._histogram(-1.0, 1.0, every, len(self.cells), n_bins)
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
        apart = inside.astype(np.intp)
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
        largest = np.full(2, -np.inf)
        for chunk in self.order:
            margin = self.margin[chunk.places]
            above = margin / (1 + np.abs(margin)) >= edge
            lower = np.max(margin, initial=-np.inf, where=~above)
            upper = np.max(-margin, initial=-np.inf, where=above)
            largest = np.maximum(largest, [lower, upper])
        lower, upper = self.cells.reduction.max(largest) * [1.0, -1.0]
        if not np.isfinite(lower):  # every row is above the edge
            return float(upper) - 1.0
        return float(lower) + 1.0 if not np.isfinite(upper) else float(lower + upper) / 2

    def _histogram(
        self, low: float, high: float, part_of: Codes, n_parts: int, n_bins: int
    ) -> Array:
        """Weights by part and bin of f / (1 + |f|), of shape (n_parts, n_bins).

        ``part_of`` has the part of each cell.
        """
        scale, everything = n_bins / (high - low), low == -1.0 and high == 1.0
        total = np.zeros(n_parts * n_bins)
        for chunk in self.order:
            margin, squashed = self.margin[chunk.places], chunk.scratch
            np.abs(margin, out=squashed)
            squashed += 1.0
            np.divide(margin, squashed, out=squashed)
            places, weight = chunk.expand(part_of * n_bins), self.weight[chunk.places]
            if not everything:
                inside = (squashed >= low) & (squashed < high)
                squashed, places, weight = squashed[inside], places[inside], weight[inside]
            squashed -= low
            squashed *= scale
            places += np.minimum(squashed.astype(np.intp), n_bins - 1)
            total += np.bincount(places, weight, len(total))
        return self.cells.reduction.sum(total).reshape(n_parts, n_bins)


def correct_weight(predicted: Array, size: Array) -> Array:
    """The correct part of each cell, from the part predicted as class 1; cells along axis 0."""
    correct = predicted.copy()
    correct[::2] = size[::2].reshape(-1, *[1] * (predicted.ndim - 1)) - predicted[::2]
    return correct
