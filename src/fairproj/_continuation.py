"""When a run may go on from an earlier one (``warm_start``).

Apart because it guards the record: what a history states is about certain rows, labels, weights and
constraints, and a certificate over a mixture of runs would be false.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from fairproj._rounds import History, StopReason
from fairproj._sample import Sample
from fairproj._validation import check_pos_label, listing


@dataclass(frozen=True)
class RunFacts:
    """What must be the same for a run to go on; texts to compare and to show."""

    enforce: str
    estimator: str
    votes: str
    learning_rate: float
    labels: str
    positive_label: str
    constraints: str
    epsilon: tuple[float, ...]
    group_values: tuple[Any, ...]
    balance: str  # a checksum of who is in which cell, and of the cells' features

    @classmethod
    def of(cls, model: Any, sample: Sample) -> RunFacts:
        moments = sample.moments
        positive = sample.classes[check_pos_label(model.pos_label, sample.classes)]
        return cls(
            enforce=model.enforce,
            estimator=type(model.estimator).__name__,
            votes=model.votes,
            learning_rate=model.learning_rate,
            labels=listing(sample.classes),
            positive_label=listing([positive]),
            constraints=", ".join(moments.names),
            epsilon=tuple(sample.epsilon.tolist()),
            group_values=tuple(sample.groups.values),
            balance=joblib.hash((sample.y, moments.index, moments.features)),
        )


def check_same_learner(facts: RunFacts, estimator: Any) -> None:
    """Ask first: the margin of one engine's model cannot be had from another's data."""
    name = type(estimator).__name__
    if facts.estimator != name:
        raise ValueError(
            f"warm_start cannot go on from {facts.estimator} to {name} as estimator; "
            "fit anew with warm_start=False"
        )


def check_same_run(then: RunFacts, now: RunFacts, recorded: float, log_loss: float) -> None:
    """Refuse what would make the record false, by name."""
    new = [value for value in now.group_values if value not in then.group_values]
    if new:
        raise ValueError(
            f"sensitive_features has groups seen for the first time: {listing(new)}; "
            "warm_start goes on with the rows of the first fit"
        )
    refusal = "warm_start goes on with the rows, weights and constraints of the first fit; "
    advice = "; fit anew with warm_start=False"
    for what, value in vars(now).items():
        before = vars(then)[what]
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
            f"n_estimators={n_estimators} is below the {done} rounds that the model has; "
            "with warm_start it can only grow"
        )
    ended = history.stop_reason in (StopReason.PERFECT, StopReason.FALLBACK)
    if ended or n_estimators == done:
        why = history.stop_reason.value if ended else f"n_estimators is {done} already"
        warnings.warn(f"warm_start adds no round: {why}", UserWarning, stacklevel=4)
        return True
    return False
