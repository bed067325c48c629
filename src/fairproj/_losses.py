"""The exponential loss: weights, votes and the exact value of a margin (paper, section 3.2).

Apart because the loop only needs three things of a loss: how much each row weighs now, how large
the learner's vote is, and what the loss has become.
"""

from __future__ import annotations

import math

import numpy as np

from fairproj._validation import Array, Codes

ERROR_FLOOR = 1e-16  # a perfect learner votes as one of this error: 18.4


def vote(error_q: float) -> float:
    """alpha = 1/2 ln((1 - error_q) / error_q); large but finite for a perfect learner."""
    error = max(error_q, ERROR_FLOOR)
    return 0.5 * math.log((1 - error) / error)


class ExponentialWeights:
    """q_i proportional to s_i exp(-y_i f(x_i)) (Definition 3.1), cell by cell.

    A row's weight is kept relative to its cell's total of the round before, and the totals as
    logarithms. No weight under- or overflows then, whatever the margin, and a cell of mass
    exp(-1400) has its rows' shares at full precision.

    Attributes
    ----------
    log_mass : array of shape (n_cells,)
        log of the cells' masses under q.
    log_loss : float
        log of the mean exponential loss, log(sum_i s_i exp(-y_i f(x_i)) / sum_i s_i).
    """

    def __init__(
        self, y: Array, weight: Array, index: Codes, n_cells: int, margin: Array | None = None
    ) -> None:
        self.y = y
        self._weight = weight
        self._index = index
        self._n_cells = n_cells
        self._log_weight = np.log(weight)  # log s_i - y_i f(x_i)
        if margin is not None:
            self._log_weight -= y * margin
        self._log_weight_total = math.log(weight.sum())
        self._log_cell = np.full(n_cells, -np.inf)
        np.maximum.at(self._log_cell, index, self._log_weight)
        self._relative = np.empty(len(y))
        self._gather = np.empty(len(y))
        self._weigh()

    def _weigh(self) -> None:
        relative = np.take(self._log_cell, self._index, out=self._relative, mode="clip")
        np.subtract(self._log_weight, relative, out=relative)
        np.exp(relative, out=relative)
        self._total = np.bincount(self._index, relative, self._n_cells)
        self._log_cell = self._log_cell + np.log(self._total)
        log_sum = float(np.logaddexp.reduce(self._log_cell))
        self.log_mass = self._log_cell - log_sum
        self.log_loss = log_sum - self._log_weight_total

    def spread(self, mass: Array) -> Array:
        """Row weights with the given cell masses: w_i = mass_c q_i / Q_c. Valid until the next."""
        rows = np.take(mass / self._total, self._index, out=self._gather, mode="clip")
        return np.multiply(rows, self._relative, out=rows)

    def errors(self, agreement: Array) -> Array:
        """Each cell's share of mistakes: the mean of (1 - y h) / 2 within the cell, under q."""
        mistakes = np.subtract(1.0, agreement, out=self._gather)
        mistakes *= self._relative
        return np.bincount(self._index, mistakes, self._n_cells) / (2 * self._total)

    def add(self, vote: float, agreement: Array) -> None:
        """Go from f to f + vote h, where ``agreement`` is y h."""
        self._log_weight -= np.multiply(agreement, vote, out=self._gather)
        self._weigh()

    def train_error(self) -> float:
        """Share of the user's weight on rows that the sign of f gets wrong; f = 0 says -1."""
        agreement = np.log(self._weight) - self._log_weight
        wrong = (agreement < 0) | ((agreement == 0) & (self.y > 0))
        return float(self._weight[wrong].sum() / self._weight.sum())
