"""The end of a run: which rounds the model keeps, its history and its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairproj.boosting.certificate import Certificate, GapCertificate, certify, certify_gap
from fairproj.boosting.record import History, Round, StopReason
from fairproj.boosting.signed_costs import SignedCosts
from fairproj.data.types import Array
from fairproj.engines.base import Engine, Ensemble

ROUNDING = 1e-9  # losses that differ by no more than this are equal


@dataclass(frozen=True)
class Run:
    """A run that has ended. ``learners`` are those of the last rounds."""

    engine: Engine
    link_scale: float
    learners: list[Any]
    rounds: list[Round]
    reason: StopReason
    learning_rate: float
    limits: Array

    def history(self, names: tuple[str, ...] = ()) -> History:
        limits = tuple(np.minimum(self.limits, np.finfo(float).max).tolist())
        return History(tuple(self.rounds), names, limits, self.learning_rate, self.reason)

    def ensemble(self, kept: int, intercept: float = 0.0) -> Ensemble:
        votes = [record.vote for record in self.rounds[len(self.rounds) - len(self.learners) :]]
        return self.engine.ensemble(self.learners[:kept], votes[:kept], self.link_scale, intercept)


class Outcome(NamedTuple):
    ensemble: Ensemble
    history: History
    certificate: Certificate | GapCertificate


def finish_projection(run: Run, constraint_names: list[str], train_error: float) -> Outcome:
    """Keep all rounds of a run of `FairProjClassifier`."""
    history = run.history(tuple(constraint_names))
    certificate = certify(
        history.columns,
        history.by_constraint("balance"),
        run.limits,
        train_error=train_error,
        learning_rate=run.learning_rate,
        stop=run.reason.sentence,
    )
    return Outcome(run.ensemble(len(run.learners)), history, certificate)


def finish_signed_costs(run: Run, objective: SignedCosts, *, choose_best: bool) -> Outcome:
    """Keep the best rounds of a run of `FairBoostClassifier`, with a bias if needed.

    Where nothing is compared, all rounds are kept; with ``choose_best`` those that would be kept
    under a limit that every round is within.
    """
    required = objective.monitor.requirements
    observed: list[Any] = [record.observed for record in run.rounds]
    choice = Choice(len(observed))
    if required.comparable:
        choice = choose_round(observed, required.limits)
    elif choose_best:
        choice = _least_loss(observed)
    history = replace(
        run.history(),
        events=tuple(required.events),
        watched=tuple(required.names),
        kept=choice.kept,
        bias=choice.bias,
        bound=None if objective.newton else objective.loss.bound,
    )
    cut = observed[choice.kept - 1].cut
    certificate = certify_gap(
        history,
        threshold=probability_at(cut, run.link_scale, required.cells.positive_class),
        watched_on=objective.monitor.name,
        constant_error=objective.constant_error,
        compared=required.comparable,
    )
    return Outcome(
        run.ensemble(choice.kept, objective.intercept + choice.bias), history, certificate
    )


def probability_at(cut: float, link_scale: float, positive_class: int) -> float:
    """The probability of the positive label of a margin at the cut."""
    sign = 1.0 if positive_class == 1 else -1.0
    return float(1 / (1 + np.exp(-sign * link_scale * cut)))


class Choice(NamedTuple):
    """The number of rounds to keep, and the bias to add to the margin."""

    kept: int
    bias: float = 0.0


def choose_round(observed: list[Any], limits: Array) -> Choice:
    """Which rounds to keep, and which bias.

    Of the useful rounds with every gap within its limit, the one of least loss on the watched rows.
    If there is none, of those that a bias brings there, the one of least loss with its bias. If
    there is none either, the useful round of the later half that comes nearest, or of all if the
    later half has none. If no round is useful, the one of least loss.
    """
    useful = np.array([one.useful for one in observed])
    within = useful & np.array([one.within for one in observed])
    if within.any():
        return _least_loss(observed, within)
    biased = np.array([np.inf if one.bias is None else one.bias.loss for one in observed])
    if np.isfinite(biased).any():
        best = _first_best(-biased)
        return Choice(best + 1, observed[best].bias.value)
    if not useful.any():
        return _least_loss(observed)
    excess = np.array([(np.array(one.gaps) - limits).max() for one in observed])
    later = useful & (np.arange(len(excess)) >= len(excess) // 2)
    candidates = later if later.any() else useful
    return Choice(_first_best(np.where(candidates, -excess, -np.inf)) + 1)


def _least_loss(observed: list[Any], among: NDArray[np.bool_] | None = None) -> Choice:
    """The round of least loss among these; by default among the useful ones, if there are any."""
    if among is None:
        among = np.array([one.useful for one in observed])
        among = among | ~among.any()
    losses = np.array([one.loss for one in observed])
    return Choice(_first_best(np.where(among, -losses, -np.inf)) + 1)


def _first_best(score: Array) -> int:
    """The first entry that is the largest up to rounding."""
    return int(np.argmax(score >= score.max() - ROUNDING))
