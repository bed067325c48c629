"""The boosting loop, as a generator of (learner, Round).

Both estimators run this loop; they differ in the objective, which chooses the training weights and
keeps the loss. Whoever consumes the generator shows progress, keeps checkpoints or stops early; the
loop needs no callbacks.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from fairproj.boosting.record import Round, StopReason
from fairproj.engines.base import Engine, Fitted, Learner, Targets

# The last learner picked again has error exactly 1/2 under the new q; without a tolerance,
# rounding would decide whether to go on with it.
CHANCE = 0.5 - 1e-9


class Objective(Protocol):
    """What is minimised: `ProjectedWeights` of the paper, or `SignedCosts`."""

    def targets(self) -> Targets:
        """What the next learner is fitted on."""

    def judge(self, fitted: Fitted) -> float | None:
        """The learner's error in the distribution of its vote; None if no error ends the run."""

    def step(self) -> float:
        """The vote of the learner judged last, before the learning rate."""

    def add(self, fitted: Fitted, vote: float) -> Round:
        """Go from f to f + vote h, and record the round."""

    def stop_reason(self) -> StopReason | None:
        """Why to stop after the last round; None to go on."""

    def majority(self) -> float:
        """What a constant learner predicts where no learner beats chance."""


def boost(
    engine: Engine,
    objective: Objective,
    *,
    n_rounds: int,
    learning_rate: float = 1.0,
    may_fall_back: bool = True,
) -> Generator[tuple[Learner, Round], None, StopReason]:
    """Run at most ``n_rounds`` rounds, then return why the run ended.

    Each round (Algorithm 1 of the paper): (1) the objective chooses weights from the margin; (2)
    fit h on them; (3) its error: no better than chance ends the run, and the learner is not kept;
    (4) its vote; f = f + vote h.

    If the very first learner fails, the run falls back to the majority class (``may_fall_back``):
    a constant learner, whose round is recorded like any other.
    """
    for t in range(n_rounds):
        fitted = engine.fit(objective.targets())
        error = objective.judge(fitted)
        failed = error is not None and error >= CHANCE
        fallback = failed and t == 0 and may_fall_back
        if failed and not fallback:
            return StopReason.NO_EDGE
        if fallback:
            fitted = engine.constant(objective.majority())
            error = objective.judge(fitted)
        vote = float(learning_rate * objective.step())
        yield fitted.learner, objective.add(fitted, vote)
        if fallback:
            return StopReason.FALLBACK
        if error is not None and error <= 0:
            return StopReason.PERFECT
        reason = objective.stop_reason()
        if reason is not None:
            return reason
    return StopReason.ALL_ROUNDS
