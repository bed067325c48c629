"""From the rounds of a run to what is kept of it: model, history and certificate.

Apart from the classifier because which rounds make the model, and what can be certified of them,
differs between the paper's projection and the closed loop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fairproj._certificate import (
    Certificate,
    ClosedLoopCertificate,
    certify,
    certify_closed_loop,
)
from fairproj._choice import best_round
from fairproj._losses import ExponentialWeights
from fairproj._rounds import History, Round, StopReason
from fairproj._sample import Sample
from fairproj._watch import Watch
from fairproj.engines import Engine, Ensemble


@dataclass(frozen=True)
class Run:
    """A run that has ended, one way or another. ``learners`` are those of the last rounds."""

    engine: Engine
    weights: ExponentialWeights
    sample: Sample
    watch: Watch | None
    learners: list[Any]
    rounds: list[Round]
    reason: StopReason
    learning_rate: float


class Outcome(NamedTuple):
    ensemble: Ensemble
    history: History
    certificate: Certificate | ClosedLoopCertificate


def outcome(run: Run) -> Outcome:
    """All rounds, or in the closed loop the best of them."""
    history = History(
        tuple(run.rounds),
        tuple(run.sample.moments.names),
        tuple(run.sample.epsilon.tolist()),
        run.learning_rate,
        run.reason,
    )
    if run.watch is None:
        return _of_all(run, history)
    return _of_the_best(run, history, run.watch)


def _of_all(run: Run, history: History) -> Outcome:
    votes = [record.vote for record in run.rounds[len(run.rounds) - len(run.learners) :]]
    certificate = certify(
        history.columns,
        history.by_constraint("balance"),
        run.sample.epsilon,
        train_error=run.weights.train_error(),
        learning_rate=run.learning_rate,
        stop=run.reason.value,
    )
    return Outcome(run.engine.ensemble(run.learners, votes), history, certificate)


def _of_the_best(run: Run, history: History, watch: Watch) -> Outcome:
    watched = run.sample.watched
    assert watched is not None
    history = replace(
        history, events=tuple(watched.events), watched=tuple(watched.names), kept=len(history)
    )
    choice = best_round(history, watched.cells.label, watch.size)
    history = replace(history, kept=choice.kept)
    kept, votes = history.n_kept, [record.vote for record in run.rounds]
    last: Any = run.rounds[kept - 1].seen
    certificate = certify_closed_loop(
        history.columns,
        history.by_event(),
        run.sample.epsilon,
        history.events if len(history.watched) > len(history.events) else (),
        kept=kept,
        met=choice.met,
        useful=choice.useful,
        least_log_tilt=last.least_log_tilt,
        train_error=last.train_error,
        learning_rate=run.learning_rate,
        watched_on=watch.name,
        stop=run.reason.value,
    )
    return Outcome(run.engine.ensemble(run.learners[:kept], votes[:kept]), history, certificate)
