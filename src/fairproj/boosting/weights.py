"""The exponential weights q of `FairProjClassifier`, and the exact loss (paper, section 3.2).

Beside the weight of every training row, the mass of each (group, label) cell is kept; the
projection works on those masses only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.chunks import CHUNK_ROWS, RowChunks
from fairproj.data.reduction import LocalReduction, Reduction
from fairproj.data.types import Array, Codes
from fairproj.engines.base import TIE, Targets

RENEWAL = 16  # rounds after which relative weights are computed afresh from the margins
MILD_VOTE = 1.0  # up to which cosh - sinh loses no digits worth mentioning


class ExponentialWeights:
    """q_i proportional to s_i exp(-y_i f(x_i)) (Definition 3.1).

    A row's weight is kept relative to a recent total of its cell, and those totals as logarithms.
    No weight under- or overflows then, whatever the margin, and the rows of a cell of mass
    exp(-1400) keep their shares at full precision.

    Parameters
    ----------
    y : array of -1 and +1
    weight : array of shape (n_rows,)
        The user's weights s, all positive.
    index : array of shape (n_rows,)
        Each row's cell; no cell is without rows.
    n_cells : int
    margin : array of shape (n_rows,), optional
        The margin to start from; zero by default.
    discrete : bool
        Whether learners predict -1 or +1 only; most rounds then need no exponential.
    reduction : Reduction, optional
        Adds up over workers, where each holds some of the rows.
    """

    link_scale = 2.0

    def __init__(
        self,
        y: Array,
        weight: Array,
        index: Codes,
        n_cells: int,
        margin: Array | None = None,
        *,
        discrete: bool = False,
        reduction: Reduction | None = None,
    ) -> None:
        self._y = y.astype(np.int8) if discrete else y
        self._weight = weight
        self._index = index
        self._n_cells = n_cells
        self._reduction = reduction or LocalReduction()
        # Sums over few cells wait for one another; two places for each cell halve the wait.
        self._doubled = 2 * index.astype(np.min_scalar_type(2 * n_cells))
        self._discrete = discrete
        chunk_rows = max(CHUNK_ROWS, 8 * n_cells)  # a chunk's sums are of the size of the cells
        self._parity = (np.arange(min(chunk_rows, len(y))) % 2).astype(np.uint8)
        self._chunks = RowChunks(len(y), chunk_rows)
        self._log_s = np.log(weight) if (weight != 1).any() else None
        # y f, added up in the order of the model's own sum.
        self._agreed = np.zeros(len(y)) if margin is None else y * margin
        self._weight_total = float(self._reduction.sum(np.array([weight.sum()]))[0])
        log_cell = np.full(n_cells, -np.inf)
        log_s = 0.0 if self._log_s is None else self._log_s
        np.maximum.at(log_cell, index, log_s - self._agreed)
        self._log_cell = self._reduction.max(log_cell)
        self._relative = np.empty(len(y))  # s_i exp(-y_i f(x_i) - log_cell)
        # y h of the last learner
        kind: Any = np.int8 if discrete else np.float64
        self._agreement = np.empty(len(y), dtype=kind)
        self._w, self._gradient = np.empty((2, len(y)))
        self._pending: float | None = None  # a vote that `_relative` does not have yet
        self._renew()

    def _renew(self) -> None:
        """Bring the cells' totals near one, with relative weights computed from the margin."""
        self._set_total(self._exponentiate())
        self._log_cell = self._log_cell + np.log(self._total)
        self._set_total(self._exponentiate())
        self._since_renewal = 0

    def _exponentiate(self) -> Array:
        def part(rows: slice, _: Array) -> Array:
            relative = self._relative[rows]
            np.take(self._log_cell, self._index[rows], out=relative, mode="clip")
            relative += self._agreed[rows]
            np.subtract(0.0 if self._log_s is None else self._log_s[rows], relative, out=relative)
            np.exp(relative, out=relative)
            return self._bincount(self._doubled[rows] + self._parity[: len(relative)], relative)

        totals: Array = self._sum(part).sum(axis=1)
        return totals

    def _bincount(self, places: NDArray[Any], values: Array) -> Array:
        return np.asarray(np.bincount(places, values, 2 * self._n_cells), dtype=float)

    def _sum(self, part: Callable[[slice, Array], Array]) -> Array:
        """The chunks' sums over all rows, of shape (n_cells, 2)."""
        local = np.zeros(2 * self._n_cells)
        for chunk in self._chunks(part):
            local += chunk
        return self._reduction.sum(local).reshape(self._n_cells, 2)

    def _set_total(self, total: Array) -> None:
        self._total = total
        log_totals = self._log_cell + np.log(total)
        log_sum = float(np.logaddexp.reduce(log_totals))
        self.log_mass = log_totals - log_sum
        self.log_loss = log_sum - math.log(self._weight_total)

    def targets(self, mass: Array) -> Targets:
        """Gradient -w y and Hessian w for row weights w_i = mass_c q_i / Q_c."""
        scale = mass / self._total

        def part(rows: slice, scratch: Array) -> None:
            w, relative = self._w[rows], self._relative[rows]
            if self._pending is not None:
                relative *= self._factor(self._pending, self._agreement[rows], scratch)
            np.take(scale, self._index[rows], out=w, mode="clip")
            w *= relative
            np.negative(w, out=scratch)
            np.multiply(scratch, self._y[rows], out=self._gradient[rows])

        self._chunks(part)
        self._pending = None
        return Targets(self._gradient, self._w)

    def _factor(self, vote: float, agreement: NDArray[Any], out: Array) -> Array:
        """exp(-vote y h); where y h is -1 or +1 that is cosh(vote) - sinh(vote) y h."""
        if self._discrete:
            np.multiply(agreement, -math.sinh(vote), out=out)
            out += math.cosh(vote)
        else:
            np.exp(np.multiply(agreement, -vote, out=out), out=out)
        return out

    def errors(self, h: NDArray[Any]) -> Array:
        """Each cell's error: the mean of (1 - y h) / 2 within the cell, under q."""

        def part(rows: slice, scratch: Array) -> Array:
            agreement, places = self._agreement[rows], self._doubled[rows]
            np.multiply(self._y[rows], h[rows], out=agreement, casting="unsafe")
            if self._discrete:  # correct and mistaken rows in the cell's two places
                return self._bincount(places + (agreement < 0), self._relative[rows])
            mistakes = np.subtract(1.0, agreement, out=scratch)
            mistakes *= self._relative[rows]
            return self._bincount(places + self._parity[: len(scratch)], mistakes)

        both = self._sum(part)
        self._mistaken = both[:, 1] if self._discrete else both.sum(axis=1) / 2
        share: Array = self._mistaken / self._total
        return share

    def add(self, vote: float) -> None:
        """Go from f to f + vote h, for the h of the last call of `errors`."""
        mild = vote <= MILD_VOTE and self._since_renewal < RENEWAL

        def advance(rows: slice, scratch: Array) -> None:
            self._agreed[rows] += np.multiply(self._agreement[rows], vote, out=scratch)

        def reweigh(rows: slice, scratch: Array) -> Array:
            relative = self._relative[rows]
            relative *= self._factor(vote, self._agreement[rows], scratch)
            return self._bincount(self._doubled[rows] + self._parity[: len(scratch)], relative)

        self._chunks(advance)
        self._since_renewal += 1
        if not mild:
            self._renew()
        elif self._discrete:  # the totals follow from the mistakes; the rows wait for `targets`
            correct = self._total - self._mistaken
            self._set_total(correct * math.exp(-vote) + self._mistaken * math.exp(vote))
            self._pending = vote
        else:
            self._set_total(self._sum(reweigh).sum(axis=1))

    def train_error(self) -> float:
        """The share of the user's weight on rows that the sign of f gets wrong; a tie is -1."""

        def part(rows: slice, _: Array) -> Array:
            agreed = self._agreed[rows]
            correct = agreed > TIE
            correct |= (np.abs(agreed) <= TIE) & (self._y[rows] < 0)
            return self._bincount(self._doubled[rows], self._weight[rows] * correct)

        mistaken = self._weight_total - float(self._sum(part)[:, 0].sum())
        return max(0.0, mistaken) / self._weight_total

    def majority(self) -> float:
        """+1 or -1, the label of the larger mass under q."""
        gradient = self.targets(np.exp(self.log_mass)).gradient
        total = float(self._reduction.sum(np.array([-gradient.sum()]))[0])
        return 1.0 if total > TIE else -1.0
