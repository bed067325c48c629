"""Going on with a run that was interrupted, from its learners.

The rounds that are done run again with the learners that they had, so that the objective comes into
the state it was in by the same code, without a record of that state. The search for learners is
left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fairproj.boosting.record import Round
from fairproj.engines.base import Engine, Ensemble, Fitted, Learner, ResumableEngine, Targets

SAME = 1e-6  # votes and log losses of a run and of its repetition differ by less


@dataclass(frozen=True)
class Progress:
    """The rounds of a run that are done.

    Attributes
    ----------
    learners : list
    votes, log_losses : list of float
        Of each round, to recognise the run by.
    """

    learners: list[Learner]
    votes: list[float]
    log_losses: list[float]

    def __len__(self) -> int:
        return len(self.learners)


@dataclass(frozen=True)
class RunControl:
    """How a run is resumed, and who is informed of each round.

    Attributes
    ----------
    done : Progress, optional
        The rounds to repeat before the run continues.
    after_round : callable, optional
        Called as ``after_round(learner, round)`` after each round, repeated ones too.
    """

    done: Progress | None = None
    after_round: Callable[[Learner, Round], None] | None = None

    def engine(self, engine: Any) -> Engine:
        """The engine of the run, which repeats the rounds that are done."""
        return engine if self.done is None else ReplayEngine(engine, self.done.learners)

    def record(self, number: int, learner: Learner, record: Round) -> None:
        """Check a repeated round, and report the round."""
        if self.done is not None and number < len(self.done):
            check_repeated(self.done, number, record)
        if self.after_round is not None:
            self.after_round(learner, record)


class OtherRoundError(ValueError):
    """A repeated round came out otherwise than it did.

    Attributes
    ----------
    number : int
        Of the round, from 0.
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


def check_repeated(done: Progress, number: int, record: Round) -> None:
    """Refuse a run whose rounds come out otherwise than they did."""
    was = done.votes[number], done.log_losses[number]
    now = record.vote, record.log_loss
    if not all(map(_close, was, now)):
        raise OtherRoundError(
            f"in round {number + 1} the vote was {was[0]:.6f} and the log loss {was[1]:.6f}, and "
            f"here they are {now[0]:.6f} and {now[1]:.6f}",
            number,
        )


def _close(was: float, now: float) -> bool:
    return math.isclose(was, now, rel_tol=SAME, abs_tol=SAME)


class ReplayEngine:
    """An engine that returns given learners first, and fits further ones then."""

    def __init__(self, engine: ResumableEngine, learners: Sequence[Learner]) -> None:
        self._engine = engine
        self._repeated = engine.evaluate(learners)

    def fit(self, targets: Targets) -> Fitted:
        repeated = next(self._repeated, None)
        return self._engine.fit(targets) if repeated is None else repeated

    def constant(self, h: float) -> Fitted:
        return self._engine.constant(h)

    def ensemble(
        self,
        learners: Sequence[Learner],
        votes: Sequence[float],
        link_scale: float,
        intercept: float = 0.0,
    ) -> Ensemble:
        return self._engine.ensemble(learners, votes, link_scale, intercept)
