"""When a run may continue an earlier one (``warm_start``).

A history makes statements about certain rows, labels, weights and constraints. A certificate over a
mixture of runs would be false, so a run continues only where all of these are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from fairproj.boosting.moments import Moments
from fairproj.boosting.record import History, StopReason
from fairproj.constraints import Blocks
from fairproj.data.checks import counted, listing
from fairproj.data.sample import Sample
from fairproj.data.types import Array
from fairproj.data.user_warning import warn_user


@dataclass(frozen=True)
class RunFacts:
    """What must be the same for a run to go on; texts to compare and to show."""

    learner: str
    votes: str
    learning_rate: float
    labels: str
    positive_label: str
    constraints: str
    epsilon: tuple[float, ...]
    groups: tuple[str, ...]
    balance: str  # a checksum of who is in which cell, and of the cells' features

    @classmethod
    def of(
        cls,
        sample: Sample,
        moments: Moments,
        epsilon: Array,
        *,
        learner: str,
        votes: str,
        learning_rate: float,
    ) -> RunFacts:
        return cls(
            learner=learner,
            votes=votes,
            learning_rate=float(learning_rate),
            labels=listing(sample.classes),
            positive_label=listing([sample.positive_label]),
            constraints=", ".join(moments.names),
            epsilon=tuple(np.minimum(epsilon, np.finfo(float).max).tolist()),
            groups=tuple(sample.groups.names),
            balance=joblib.hash((sample.y, moments.index, _compared(moments))),
        )


def _compared(moments: Moments) -> Array | Blocks:
    return moments.features if moments.blocks is None else moments.blocks


def check_same_learner(facts: RunFacts, learner: str) -> None:
    """Check this first: one engine cannot compute the margin of another engine's model."""
    if facts.learner != learner:
        raise ValueError(
            f"warm_start cannot continue from {facts.learner} to {learner} as learner; "
            "fit from scratch with warm_start=False"
        )


def check_same_run(then: RunFacts, now: RunFacts, recorded: float, log_loss: float) -> None:
    """Refuse what would make the record false, by name."""
    new = [value for value in now.groups if value not in then.groups]
    if new:
        raise ValueError(
            f"sensitive_features has groups seen for the first time: {listing(new)}; "
            "warm_start continues with the rows of the first fit"
        )
    refusal = "warm_start continues with the rows, weights and constraints of the first fit; "
    advice = "; fit from scratch with warm_start=False"
    for what, value in vars(now).items():
        before: Any = vars(then)[what]
        if value == before:
            continue
        if what == "balance":
            raise ValueError(
                f"{refusal}the rows' groups, labels or constraint features changed{advice}"
            )
        raise ValueError(f"{refusal}{what} was {before} there and is {value} here{advice}")
    if not np.isclose(log_loss, recorded, rtol=1e-6, atol=1e-6):
        raise ValueError(
            f"{refusal}the model's log loss was {recorded:.6f} there and is {log_loss:.6f} "
            f"here{advice}"
        )


def nothing_to_add(history: History, n_estimators: int) -> bool:
    """Whether the run is over; warns if so."""
    done = len(history)
    if n_estimators < done:
        raise ValueError(
            f"n_estimators={n_estimators} is below the {counted(done, 'round')} that the model "
            "has; "
            "with warm_start it can only grow"
        )
    ended = history.stop_reason in (StopReason.PERFECT, StopReason.FALLBACK)
    if ended or n_estimators == done:
        why = history.stop_reason.sentence if ended else f"n_estimators is {done} already"
        warn_user(f"warm_start adds no round: {why}")
        return True
    return False
