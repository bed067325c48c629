"""The exponential loss: weights, votes and the exact value of a margin (paper, section 3.2).

Apart because the loop only needs three things of a loss: how much each row weighs now, how large
the learner's vote is, and what the loss has become.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj._rows import CHUNK, RowPasses
from fairproj._validation import Array, Codes

ERROR_FLOOR = 1e-16  # a perfect learner votes as one of this error: 18.4
RENEWAL = 16  # rounds after which rounding errors of products are swept away
MILD_VOTE = 1.0  # up to which cosh - sinh loses no digits worth mentioning


def vote(error_q: float) -> float:
    """alpha = 1/2 ln((1 - error_q) / error_q); large but finite for a perfect learner."""
    error = max(error_q, ERROR_FLOOR)
    return 0.5 * math.log((1 - error) / error)


class ExponentialWeights:
    """q_i proportional to s_i exp(-y_i f(x_i)) (Definition 3.1), cell by cell.

    A row's weight is kept relative to a recent total of its cell, and those totals as logarithms.
    No weight under- or overflows then, whatever the margin, and a cell of mass exp(-1400) has its
    rows' shares at full precision.

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
        Whether learners say -1 or +1 only; most rounds then need no exponential.

    Attributes
    ----------
    log_mass : array of shape (n_cells,)
        log of the cells' masses under q.
    log_loss : float
        log of the mean exponential loss, log(sum_i s_i exp(-y_i f(x_i)) / sum_i s_i).
    """

    def __init__(
        self,
        y: Array,
        weight: Array,
        index: Codes,
        n_cells: int,
        margin: Array | None = None,
        *,
        discrete: bool = False,
    ) -> None:
        self.y = y.astype(np.int8) if discrete else y
        self._weight = weight
        self._index = index
        self._n_cells = n_cells
        # Sums over few cells wait for one another; two places for each cell halve the wait.
        self._doubled = (2 * index).astype(np.min_scalar_type(2 * n_cells))
        self._discrete = discrete
        chunk = max(CHUNK, 8 * n_cells)  # a chunk's sums are of the size of the cells
        self._parity = (np.arange(min(chunk, len(y))) % 2).astype(np.uint8)
        self._passes = RowPasses(len(y), chunk)
        self._log_s = np.log(weight) if (weight != 1).any() else np.zeros(1)
        # y f, added up in the order of the model's own sum: a tie there is a tie here.
        self._agreed = np.zeros(len(y)) if margin is None else y * margin
        self._log_weight_total = math.log(weight.sum())
        self._log_cell = np.full(n_cells, -np.inf)
        np.maximum.at(self._log_cell, index, self._log_s - self._agreed)
        self._relative = np.empty(len(y))  # s_i exp(-y_i f(x_i) - log_cell)
        self._agreement = np.empty(len(y), dtype=self.y.dtype)  # y h of the last learner
        self._w = np.empty(len(y))
        self._pending: float | None = None
        self._renew()

    def _renew(self) -> None:
        """Bring the cells' totals near one, with relative weights fresh from the margin."""
        self._set_total(self._exponentiate())
        self._log_cell = self._log_cell + np.log(self._total)
        self._set_total(self._exponentiate())
        self._since_renewal = 0

    def _exponentiate(self) -> Array:
        def part(rows: slice, _: Array) -> Array:
            relative = self._relative[rows]
            np.take(self._log_cell, self._index[rows], out=relative, mode="clip")
            relative += self._agreed[rows]
            np.subtract(self._log_s[rows] if len(self._log_s) > 1 else 0.0, relative, out=relative)
            np.exp(relative, out=relative)
            return self._sums(self._doubled[rows] + self._parity[: len(relative)], relative)

        total: Array = self._both(self._passes(part)).sum(axis=1)
        return total

    def _sums(self, places: NDArray[Any], values: Array) -> Array:
        return np.asarray(np.bincount(places, values, 2 * self._n_cells), dtype=float)

    def _both(self, parts: list[Array]) -> Array:
        """The chunks' sums, of shape (n_cells, 2)."""
        return np.asarray(np.sum(parts, axis=0)).reshape(self._n_cells, 2)

    def _set_total(self, total: Array) -> None:
        self._total = total
        log_totals = self._log_cell + np.log(total)
        log_sum = float(np.logaddexp.reduce(log_totals))
        self.log_mass = log_totals - log_sum
        self.log_loss = log_sum - self._log_weight_total

    def spread(self, mass: Array) -> Array:
        """Row weights with the given cell masses: w_i = mass_c q_i / Q_c. Valid until the next."""
        scale = mass / self._total

        def part(rows: slice, scratch: Array) -> None:
            w, relative = self._w[rows], self._relative[rows]
            if self._pending is not None:
                relative *= self._step(self._pending, self._agreement[rows], scratch)
            np.take(scale, self._index[rows], out=w, mode="clip")
            w *= relative

        self._passes(part)
        self._pending = None
        return self._w

    def _step(self, vote: float, agreement: NDArray[Any], out: Array) -> Array:
        """exp(-vote y h); where y h is -1 or +1 that is cosh(vote) - sinh(vote) y h."""
        if self._discrete:
            np.multiply(agreement, -math.sinh(vote), out=out)
            out += math.cosh(vote)
        else:
            np.exp(np.multiply(agreement, -vote, out=out), out=out)
        return out

    def errors(self, h: NDArray[Any]) -> Array:
        """Each cell's share of mistakes: the mean of (1 - y h) / 2 within the cell, under q."""

        def part(rows: slice, scratch: Array) -> Array:
            agreement, places = self._agreement[rows], self._doubled[rows]
            np.multiply(self.y[rows], h[rows], out=agreement, casting="unsafe")
            if self._discrete:  # right and wrong in the cell's two places
                return self._sums(places + (agreement < 0), self._relative[rows])
            mistakes = np.subtract(1.0, agreement, out=scratch)
            mistakes *= self._relative[rows]
            return self._sums(places + self._parity[: len(scratch)], mistakes)

        both = self._both(self._passes(part))
        self._mistaken = both[:, 1] if self._discrete else both.sum(axis=1) / 2
        share: Array = self._mistaken / self._total
        return share

    def add(self, vote: float) -> None:
        """Go from f to f + vote h, for the h of the last call of `errors`."""
        mild = vote <= MILD_VOTE and self._since_renewal < RENEWAL

        def part(rows: slice, scratch: Array) -> Array | None:
            agreement, relative = self._agreement[rows], self._relative[rows]
            self._agreed[rows] += np.multiply(agreement, vote, out=scratch)
            if not mild or self._discrete:
                return None
            relative *= self._step(vote, agreement, scratch)
            return self._sums(self._doubled[rows] + self._parity[: len(scratch)], relative)

        sums = self._passes(part)
        self._since_renewal += 1
        if not mild:
            self._renew()
        elif self._discrete:  # the totals follow from the mistakes; the rows can wait for `spread`
            right = self._total - self._mistaken
            self._set_total(right * math.exp(-vote) + self._mistaken * math.exp(vote))
            self._pending = vote
        else:
            self._set_total(self._both([part for part in sums if part is not None]).sum(axis=1))

    def right(self) -> Array:
        """The user's weight that the sign of f gets right, by cell; f = 0 says -1."""

        def part(rows: slice, _: Array) -> Array:
            agreed = self._agreed[rows]
            right = agreed > 0
            right |= (agreed == 0) & (self.y[rows] < 0)
            weight = self._weight[rows] * right
            return np.asarray(np.bincount(self._index[rows], weight, self._n_cells), dtype=float)

        total: Array = np.sum(self._passes(part), axis=0)
        return total

    def train_error(self) -> float:
        """Share of the user's weight on rows that the sign of f gets wrong."""
        total = self._weight.sum()
        return float(max(0.0, total - self.right().sum()) / total)
