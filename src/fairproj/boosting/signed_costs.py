"""FairBoost: rows carry signed costs that follow the gaps of the predictions.

A round minimises L_lam(f) = sum_i s_i |worth_c| phi(y~_i f(x_i)) / phi(0), where worth_c is the
signed cost of the row's cell and y~_i its label, flipped where the cost is negative. After the
round the multipliers move against the gaps on the watched rows, and the costs with them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.boosting.costs import CostModel, Costs
from fairproj.boosting.losses import Loss, vote
from fairproj.boosting.monitor import Monitor, Reading, known_rates
from fairproj.boosting.multipliers import Multipliers
from fairproj.boosting.operating_point import Share
from fairproj.boosting.record import Observation, Round, StopReason
from fairproj.boosting.rows import ScoredRows
from fairproj.data.cell_order import Segments
from fairproj.data.types import Array
from fairproj.engines.base import TIE, Fitted, Targets

# Where labels have flipped, a margin may be far on the wrong side, the Hessian near zero and a
# Newton step huge; leaves are bounded as soon as a multiplier is not zero.
LARGEST_STEP = 4.0
LARGEST_VOTE = vote(0.0)
_MOST_STEPS = 20
_FLOOR = 1e-300


class SignedCosts:
    """The objective of `FairBoostClassifier`.

    Parameters
    ----------
    rows : ScoredRows
        The training rows.
    monitor : Monitor
        Watches the training rows or others.
    loss : Loss
    class_cost : array of shape (n_cells,)
        What an error costs by label, with mean one over the training rows.
    newton : bool
        Whether trees take Newton steps; else first-order steps with a vote.
    discrete : bool
        Whether learners predict -1 or +1 only.
    multipliers : Multipliers
    patience : int, optional
        Stop after so many rounds without a better one; by default never.
    """

    def __init__(
        self,
        rows: ScoredRows,
        monitor: Monitor,
        loss: Loss,
        class_cost: Array,
        *,
        newton: bool,
        discrete: bool,
        multipliers: Multipliers,
        patience: int | None = None,
    ) -> None:
        self._rows, self.monitor, self.loss, self.newton = rows, monitor, loss, newton
        self._discrete, self._multipliers, self._patience = discrete, multipliers, patience
        self._unit = float(loss.value(np.zeros(1))[0])
        point = monitor.point
        self._limited = point.inside if isinstance(point, Share) and point.limited else None
        rates = [part.rate for part in monitor.requirements.parts]
        self._cost_model = CostModel(rows.cells, rows.size, rates, class_cost, self._limited)
        self._gradient, self._hessian = np.zeros((2, len(rows.order)))
        self._rates = monitor.requirements.reader(rows.size)
        self._cost_change = 0.0
        self._at_rest = True  # whether the costs are those of the round before
        self._best, self._since_best = math.inf, 0
        self._found = False
        self.intercept = self._log_odds() if newton else 0.0
        self._add(self.intercept, 1.0)
        self._set_costs()

    @property
    def constant_error(self) -> float:
        """The error of the better constant prediction on the training rows."""
        return float(self._by_label().min())

    def _by_label(self) -> Array:
        by_label = (self._rows.size * self._cost_model.class_cost).reshape(-1, 2).sum(axis=0)
        return np.asarray(by_label)

    def _log_odds(self) -> float:
        """The log odds of class 1: the constant of least loss, if the loss has their link."""
        by_label = self._by_label()
        return float(np.log(by_label[1] / by_label[0])) / self.loss.link_scale

    def _add(self, h: Any, vote: float, held_out: Any = None) -> None:
        self._rows.add(h, vote)
        if self.monitor.rows is not self._rows:
            self.monitor.rows.add(h if held_out is None else held_out, vote)

    def _set_costs(self) -> None:
        self._costs = self._cost_model(self._multipliers.by_group, self._multipliers.limit)
        magnitude, size = self._costs.magnitude, self._rows.size
        self._scale = magnitude / max(float(size @ magnitude), _FLOOR)  # costs that sum to one
        # Elsewhere q is a multiple of w within each cell.
        self._apart = self._costs.flipped | (self._scale < 1e-9)

    # A round

    def targets(self) -> Targets:
        """Gradient -c u y~ and Hessian c phi'' of costs c; in a first-order round -w y~ and w."""
        rows, loss, flipped = self._rows, self.loss, self._costs.flipped
        rows.losses()  # sets the slopes
        flips = bool(flipped.any())

        def sums(chunk: Segments) -> Array:
            margin, slope = chunk.signed(rows.margin[chunk.places]), rows.slope[chunk.places]
            if flips:
                other = chunk.expand(flipped)
                np.negative(margin, out=margin, where=other)
                slope = slope.copy()
                slope[other] = loss.slope(margin[other])
            cost = chunk.expand(self._scale)
            cost *= rows.weight[chunk.places]
            if self.newton:
                self._hessian[chunk.rows] = cost * loss.curvature(margin, slope)
            w = np.multiply(cost, slope, out=cost)
            mass = chunk.sum(w)
            gradient = chunk.signed(w, -1.0)
            if flips:
                np.negative(gradient, out=gradient, where=other)
            self._gradient[chunk.rows] = gradient
            return mass

        self._mass = rows.order.sum(sums)
        if not self.newton:
            total = max(float(self._mass.sum()), _FLOOR)
            self._gradient /= total
            np.abs(self._gradient, out=self._hessian)
        moved = self._multipliers.by_group.any() or self._multipliers.limit > 0
        largest = LARGEST_STEP if self.newton and moved else math.inf
        return Targets(self._gradient, self._hessian, largest)

    def judge(self, fitted: Fitted) -> float | None:
        """The learner's error under w, or None where no error ends the run (Newton steps)."""
        h = self._h = _sign(fitted.h) if self.newton else fitted.h

        def sums(chunk: Segments) -> Array:
            gradient = self._gradient[chunk.rows]
            wrong = np.multiply(gradient, h[chunk.rows], out=chunk.scratch)
            wrong += np.abs(gradient, out=gradient)
            return chunk.sum(wrong)

        total = max(float(self._mass.sum()), _FLOOR)
        # Sums of w (1 - y~ h): exactly zero for a learner without mistakes.
        wrong = self._rows.order.sum(sums)
        wrong = wrong / total if self.newton else wrong
        self._error_w = float(wrong.sum()) / 2
        self._error_q, self._tv = self._unconstrained(h, self._mass / total - wrong)
        if not self.newton:
            return self._error_w
        return 0.5 if fitted.constant and self._at_rest else None

    def _unconstrained(self, h: NDArray[Any], agreed: Array) -> tuple[float, float]:
        """The error under q, and the signed total variation 1/2 sum_i |w_i y~_i - q_i y_i|.

        q, proportional to s_i u(y_i f(x_i)), has the labels as they are and no multipliers.
        """
        w = self._mass / max(float(self._mass.sum()), _FLOOR)
        cost = self._cost_model.class_cost
        ratio = np.divide(cost, self._scale, out=np.zeros(len(cost)), where=~self._apart)
        q, agreed_q = self._mass * ratio, agreed * self._mass.sum() * ratio
        if self._apart.any():
            own_q, own_agreed = self._own_sums(h)
            q, agreed_q = q + own_q, agreed_q + own_agreed
        total = max(float(q.sum()), _FLOOR)
        q = q / total
        tv = np.where(self._costs.flipped, w + q, np.abs(w - q)).sum() / 2
        return (1 - float(agreed_q.sum()) / total) / 2, float(tv)

    def _own_sums(self, h: NDArray[Any]) -> tuple[Array, Array]:
        """Sums of s k u and s k u y h over the rows of cells where q is no multiple of w."""
        rows, loss = self._rows, self.loss
        local = np.zeros((2, len(rows.size)))
        for cell in np.flatnonzero(self._apart).tolist():
            at = rows.order.places(cell)
            label = 1.0 if cell % 2 else -1.0
            slope = rows.weight[at] * loss.slope(label * rows.margin[at])
            agreed = label * (slope @ h[rows.order.rows[at]])
            local[:, cell] = self._cost_model.class_cost[cell] * np.array([slope.sum(), agreed])
        sums = rows.cells.reduction.sum(local)
        return sums[0], sums[1]

    def step(self) -> float:
        """The vote of the judged learner: 1 for a Newton step, else by a line search."""
        return 1.0 if self.newton else self._line_search()

    def _line_search(self) -> float:
        """The vote alpha that minimises E_w[exp(-alpha y~ h)].

        Where h is -1 or +1 that is 1/2 ln((1 - error) / error), where Newton's method starts. Every
        bound on the expectation at that vote holds at the minimum too.
        """
        alpha = vote(self._error_w)
        if self._discrete:
            return alpha
        reduction = self._rows.cells.reduction
        for _ in range(_MOST_STEPS):
            local = np.zeros(2)
            for chunk in self._rows.order:
                w, rows = self._hessian[chunk.rows], chunk.rows
                agreed = self._gradient[rows] * self._h[rows]  # -w y~ h
                exponent = np.divide(agreed, w, out=np.zeros(len(w)), where=w > 0)
                tilted = agreed * np.exp(alpha * exponent)
                local += [tilted.sum(), tilted @ exponent]
            slope, curvature = reduction.sum(local)
            move = float(-slope / max(curvature, _FLOOR))
            alpha = min(max(alpha + move, 0.0), LARGEST_VOTE)
            if abs(move) <= 1e-9 * (1 + alpha):
                break
        return alpha

    def add(self, fitted: Fitted, vote: float) -> Round:
        """Go to f + vote h, read the watched rows, and move the multipliers."""
        slope_mass = float(self._mass.sum()) * float(self._rows.size @ self._costs.magnitude)
        self._add(fitted.h, vote, fitted.held_out)
        reading = self.monitor.read(sweep=self.monitor.requirements.comparable and not self._found)
        self._found |= reading.within and reading.useful
        cost_loss = self._cost_loss(self._costs)
        observed = self._observe(reading, cost_loss, slope_mass)
        before = self._costs
        self._multipliers.update(reading.rates, reading.allowed, reading.limit_excess)
        self._set_costs()
        self._at_rest = bool(np.array_equal(before.worth, self._costs.worth))
        self._cost_change = 0.0
        if not self._at_rest:
            self._cost_change = _log(self._cost_loss(self._costs)) - _log(cost_loss)
        self._count(reading)
        return Round(
            error_q=self._error_q,
            error_w=self._error_w,
            kl=None,
            tv=self._tv,
            vote=vote,
            log_loss=_log(self._plain_loss()),
            multipliers=(),
            balance=(),
            balance_q=(),
            observed=observed,
        )

    def _cost_loss(self, costs: Costs) -> float:
        """L_lam(f), from each cell's sums of s phi(y f) and s phi(-y f)."""
        losses = self._rows.losses()
        if costs.flipped.any():
            losses = np.where(costs.flipped, self._rows.flipped_losses(), losses)
        return float(costs.magnitude @ losses) / self._unit

    def _plain_loss(self) -> float:
        return float(self._cost_model.class_cost @ self._rows.losses()) / self._unit

    def _observe(self, reading: Reading, cost_loss: float, slope_mass: float) -> Observation:
        correct = self._rows.correct()
        wrong = self._rows.size - correct
        rates = self._rates(correct)
        penalty = float(np.nansum(self._multipliers.by_group * rates))
        if self._limited is not None:
            rate = wrong[self._limited].sum() / self._rows.size[self._limited].sum()
            penalty += self._multipliers.limit * float(rate)
        return Observation(
            accuracy=reading.accuracy,
            loss=reading.loss,
            cut=reading.cut,
            rates=known_rates(reading.rates),
            gaps=tuple(reading.gaps.tolist()),
            within=reading.within,
            useful=reading.useful,
            bias=reading.bias,
            multipliers=tuple(self._multipliers.by_group.ravel().tolist()),
            limit_multiplier=self._multipliers.limit,
            flipped=int(self._costs.flipped.sum()),
            constant=self._costs.constant,
            penalty=penalty,
            log_cost_loss=_log(cost_loss),
            cost_change=self._cost_change,
            zero_loss=float(self._rows.size @ self._costs.magnitude),
            slope_mass=slope_mass / self._unit,
            train_error=float(self._cost_model.class_cost @ wrong),
        )

    def _count(self, reading: Reading) -> None:
        """Rounds since the best one that could be kept."""
        compared = self.monitor.requirements.comparable
        if reading.within and (reading.useful or not compared):
            better = reading.loss < self._best - 1e-12
            self._best = min(self._best, reading.loss)
            self._since_best = 0 if better else self._since_best + 1
        elif math.isfinite(self._best):
            self._since_best += 1

    def stop_reason(self) -> StopReason | None:
        """Why to stop after the last round, if there is a reason."""
        if self._patience is not None and self._since_best >= self._patience:
            return StopReason.EARLY
        return None

    def majority(self) -> float:
        """The constant learner of a run without a useful first learner."""
        if self.newton:
            return 0.0  # the intercept has the log odds already
        total = -float(self._rows.cells.reduction.sum(np.array([self._gradient.sum()]))[0])
        return 1.0 if total > TIE else -1.0


def _sign(h: NDArray[Any]) -> NDArray[np.int8]:
    return (h > 0).view(np.int8) - (h < 0).view(np.int8)


def _log(value: float) -> float:
    return math.log(max(value, _FLOOR))
