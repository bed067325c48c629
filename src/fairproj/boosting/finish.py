"""The end of a run: which rounds the model keeps, its history and its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fairproj.boosting.bounds import GAP_TIE
from fairproj.boosting.certificate import Certificate, GapCertificate, certify, certify_gap
from fairproj.boosting.losses import Loss
from fairproj.boosting.monitor import Monitor, WatchedRates
from fairproj.boosting.record import History, Round, StopReason
from fairproj.data.cells import CellCounts
from fairproj.data.types import Array
from fairproj.engines.base import Engine, Ensemble

ROUNDING = 1e-9  # accuracies that differ by no more than this are equal


@dataclass(frozen=True)
class Run:
    """A run that has ended. ``learners`` are those of the last rounds."""

    engine: Engine
    loss: Loss
    learners: list[Any]
    rounds: list[Round]
    reason: StopReason
    learning_rate: float
    limits: Array


class Outcome(NamedTuple):
    ensemble: Ensemble
    history: History
    certificate: Certificate | GapCertificate


def finish_projection(run: Run, constraint_names: list[str]) -> Outcome:
    """Keep all rounds of a run of `FairProjClassifier`."""
    history = _history(run, tuple(constraint_names))
    certificate = certify(
        history.columns,
        history.by_constraint("balance"),
        run.limits,
        train_error=run.loss.train_error(),
        learning_rate=run.learning_rate,
        stop=run.reason.sentence,
    )
    return Outcome(_ensemble(run, len(run.learners)), history, certificate)


def finish_closed_loop(run: Run, watched: WatchedRates, monitor: Monitor) -> Outcome:
    """Keep the best rounds of a run of `FairBoostClassifier`."""
    history = replace(
        _history(run, ()),
        events=tuple(watched.events),
        watched=tuple(watched.names),
        kept=len(run.rounds),
        certified=run.loss.certified,
    )
    choice = Choice(len(history), True)
    if watched.comparable:
        counts = CellCounts.of_cells(watched.cells, monitor.size, monitor.size)
        accuracy = history.columns["accuracy"]
        choice = choose_round(history.by_event(), run.limits, accuracy, counts.constant_accuracy)
    history = replace(history, kept=choice.kept)
    last: Any = run.rounds[choice.kept - 1].observed
    certificate = certify_gap(
        history.columns,
        history.by_event(),
        run.limits,
        history.events if watched.comparable else (),
        kept=choice.kept,
        met=choice.met,
        useful=choice.useful,
        least_log_tilt=last.least_log_tilt,
        train_error=last.train_error,
        learning_rate=run.learning_rate,
        watched_on=monitor.name,
        certified=run.loss.certified,
        stop=run.reason.sentence,
    )
    return Outcome(_ensemble(run, choice.kept), history, certificate)


def _history(run: Run, names: tuple[str, ...]) -> History:
    limits = tuple(np.minimum(run.limits, np.finfo(float).max).tolist())
    return History(tuple(run.rounds), names, limits, run.learning_rate, run.reason)


def _ensemble(run: Run, kept: int) -> Ensemble:
    votes = [record.vote for record in run.rounds[len(run.rounds) - len(run.learners) :]]
    return run.engine.ensemble(run.learners[:kept], votes[:kept], run.loss.link_scale)


class Choice(NamedTuple):
    """The number of rounds to keep, whether their gaps are within max_gap, and whether useful."""

    kept: int
    met: bool
    useful: bool = True


def choose_round(gaps: Array, max_gap: Array, accuracy: Array, constant: float) -> Choice:
    """The most accurate of the rounds whose gaps are all within max_gap.

    A model that is no more accurate than the better constant prediction (``constant``) is not
    useful, although its gap is zero, and is not considered. If no useful round is within max_gap,
    the useful one of the later half that comes nearest, or of all if the later half has none. If no
    round at all is useful, the most accurate.

    Parameters
    ----------
    gaps : array of shape (n_rounds, n_events)
    max_gap : array of shape (n_events,)
    accuracy : array of shape (n_rounds,)
    constant : float
        The accuracy of the better of the two constant predictions.
    """
    excess = (gaps - max_gap).max(axis=1, initial=-np.inf)
    useful = accuracy > constant + ROUNDING
    within = useful & (excess <= GAP_TIE)
    if within.any():
        return Choice(_first_best(np.where(within, accuracy, -1.0)) + 1, True)
    if not useful.any():
        return Choice(_first_best(accuracy) + 1, False, False)
    later = useful & (np.arange(len(excess)) >= len(excess) // 2)
    candidates = later if later.any() else useful
    return Choice(_first_best(np.where(candidates, -excess, -np.inf)) + 1, False)


def _first_best(score: Array) -> int:
    """The first entry that is the largest up to rounding."""
    return int(np.argmax(score >= score.max() - ROUNDING))
