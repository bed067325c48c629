"""What is read off the watched rows after each round: rates, gaps, loss, and a bias if needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairproj.boosting.bounds import GAP_TIE
from fairproj.boosting.operating_point import OperatingPoint, Share
from fairproj.boosting.record import Bias
from fairproj.boosting.requirements import Requirements
from fairproj.boosting.rows import ScoredRows, correct_weight
from fairproj.data.types import Array

LEAST_SPREAD = 0.1  # of the rarer label's share; with less, nearly everyone gets one prediction
ROUNDING = 1e-9  # scores that differ by no more than this are equal


def better_than_constants(
    correct: Array, size: Array, costs: Array, effective_rows: float
) -> NDArray[np.bool_]:
    """Whether the errors cost less than those of both constant predictions, by a standard error.

    A model and a constant differ on the rows that the model predicts otherwise: there it saves the
    cost of an error where it is right and adds it where it is wrong. The standard error is that of
    this paired difference. Cells are along axis 0 and alternate between class 0 and class 1.
    """
    saved = costs @ correct  # less the cost of the constant's correct predictions
    squares = costs**2
    useful = np.ones(correct.shape[1:], dtype=bool)
    for constant in (0, 1):
        same, other = slice(constant, None, 2), slice(1 - constant, None, 2)
        mean = saved - costs[same] @ size[same]
        differ = squares[other] @ correct[other] - squares[same] @ correct[same]
        variance = differ + squares[same] @ size[same] - mean**2
        useful &= mean > np.sqrt(np.maximum(variance, 0.0) / effective_rows) + ROUNDING
    return useful


def says_both(correct: Array, size: Array) -> NDArray[np.bool_]:
    """Whether the rarer prediction is made for a tenth as many rows as have the rarer label.

    Cells are along axis 0 and alternate between class 0 and class 1.
    """
    predicted = correct[1::2].sum(axis=0) + size[::2].sum() - correct[::2].sum(axis=0)
    positive = float(size[1::2].sum())
    rarer = np.minimum(predicted, 1 - predicted)
    return np.asarray(rarer >= LEAST_SPREAD * min(positive, 1 - positive) - ROUNDING)


@dataclass(frozen=True)
class Reading:
    """What the watched rows tell after a round; see `Observation`."""

    cut: float
    accuracy: float
    loss: float
    rates: Array
    gaps: Array
    allowed: Array
    within: bool
    useful: bool
    limit_excess: float
    bias: Bias | None


class Monitor:
    """Reads rates and gaps of the predictions on the watched rows.

    Parameters
    ----------
    rows : ScoredRows
    name : str
        What to call them.
    requirements : Requirements
    point : OperatingPoint
        Where predictions are made.
    class_cost : array of shape (n_cells,)
        What an error costs by label.
    unit : float
        The loss of a margin of zero.
    spare : bool
        Whether a gap must be within its limit by a standard error.
    """

    def __init__(
        self,
        rows: ScoredRows,
        name: str,
        requirements: Requirements,
        point: OperatingPoint,
        class_cost: Array,
        *,
        unit: float,
        spare: bool = False,
    ) -> None:
        self.rows, self.name, self.requirements, self.point = rows, name, requirements, point
        self._spare = spare
        self._rates = requirements.reader(rows.size)
        self._loss_weight = class_cost / (class_cost @ rows.size) / unit
        self._costs = point.error_costs(rows.size, class_cost)

    def read(self, *, sweep: bool) -> Reading:
        """The state after a round; with ``sweep``, the best bias if a gap is above its limit."""
        cut = self.point.cut(self.rows)
        correct = self.rows.correct(cut)
        rates, gaps, allowed, within = self._judge(correct)
        useful = bool(self._useful(correct))
        bias = None
        if sweep and self.point.fixed and not within:
            bias = self._sweep(cut)
        return Reading(
            cut=cut,
            accuracy=float(correct.sum()),
            loss=float(self._loss_weight @ self.rows.losses()),
            rates=rates,
            gaps=gaps,
            allowed=allowed,
            within=bool(within),
            useful=useful,
            limit_excess=self._limit_excess(),
            bias=bias,
        )

    def _judge(self, correct: Array) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
        required = self.requirements
        rates = self._rates(correct)
        gaps = required.gaps(rates)
        allowed = required.limits.reshape(-1, *[1] * (correct.ndim - 1))
        if self._spare and required.parts:
            allowed = np.maximum(0.0, allowed - required.standard_errors(rates, self.rows))
        within = np.asarray((gaps - allowed <= GAP_TIE).all(axis=0))
        return rates, gaps, np.broadcast_to(allowed, gaps.shape), within

    def _useful(self, correct: Array) -> NDArray[np.bool_]:
        size = self.rows.size
        useful = better_than_constants(correct, size, self._costs, self.rows.effective_rows)
        # A share that was asked for is not held against a model.
        return useful & says_both(correct, size) if self.point.fixed else useful

    def _limit_excess(self) -> float:
        """The rate at a probability of one half, less its global limit."""
        if not isinstance(self.point, Share) or not self.point.limited:
            return 0.0
        inside = self.point.inside
        size = self.rows.size[inside].sum()
        return float(1 - self.rows.correct()[inside].sum() / size - self.point.limit)

    def _sweep(self, cut: float) -> Bias | None:
        """Of all constants added to the margin, the one of least error within the limits."""
        edges, above = self.rows.above()
        correct = correct_weight(above, self.rows.size)
        fit = self._judge(correct)[3] & self._useful(correct)
        if not fit.any():
            return None
        errors = self._costs @ (self.rows.size[:, None] - correct)
        errors = np.where(fit, errors, np.inf)
        best = int(np.argmax(errors <= errors.min() + ROUNDING))
        shift = cut - self.rows.separate(float(edges[best]))
        correct = self.rows.correct(cut - shift)
        rates, gaps, _, within = self._judge(correct)
        if not (within and self._useful(correct)):
            return None
        return Bias(
            value=shift,
            accuracy=float(correct.sum()),
            loss=float(self._loss_weight @ self.rows.shifted_losses(shift)),
            rates=known_rates(rates),
            gaps=tuple(gaps.tolist()),
        )


def known_rates(rates: Array) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(rate) else rate for rate in rates.ravel().tolist())
