"""The record of a run: its rounds, the reason it ended, and all of it as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from fairproj.boosting.bounds import cost_loss_bound, log_bounds
from fairproj.data.checks import counted
from fairproj.data.types import Array


class StopReason(Enum):
    """Why a run ended."""

    ALL_ROUNDS = "all_rounds"
    NO_EDGE = "no_edge"
    PERFECT = "perfect"
    FALLBACK = "fallback"
    EARLY = "early"
    INTERRUPTED = "interrupted"

    @property
    def sentence(self) -> str:
        """What to show."""
        return _SENTENCES[self]


_SENTENCES = {
    StopReason.ALL_ROUNDS: "all requested rounds were run",
    StopReason.NO_EDGE: "stopped because the next learner was no better than chance",
    StopReason.PERFECT: "stopped because a learner made no mistake",
    StopReason.FALLBACK: "no learner beat chance, so the model is the majority class",
    StopReason.EARLY: "stopped early, since further rounds did not lower the loss",
    StopReason.INTERRUPTED: "interrupted; the rounds done so far are kept",
}


@dataclass(frozen=True)
class Bias:
    """A constant that brings the gaps of a round within their limits when added to the margin.

    Attributes
    ----------
    value : float
    accuracy, loss, rates, gaps
        As in `Observation`, with the bias added.
    """

    value: float
    accuracy: float
    loss: float
    rates: tuple[float | None, ...]
    gaps: tuple[float, ...]


@dataclass(frozen=True)
class Observation:
    """What `FairBoostClassifier` observed after a round.

    Attributes
    ----------
    accuracy, loss : float
        Of the ensemble so far, on the watched rows. The loss has the labels as they are and class
        weights, and is 1 for a margin of zero.
    cut : float
        Class 1 is predicted where the margin exceeds it.
    rates : tuple of float or None
        The rate of each group and event; None where no row is watched.
    gaps : tuple of float
        For each event, the largest rate minus the smallest, or 1 minus their ratio.
    within, useful : bool
        Whether all gaps are within their limits, and whether errors cost less than those of both
        constant predictions, by a standard error.
    bias : Bias, optional
        What would bring the gaps within their limits, where no round so far was within.
    multipliers : tuple of float
        lam of each group and event in this round.
    limit_multiplier : float
        That of a global limit on an error rate.
    flipped : int
        How many (group, label) cells had a flipped label.
    constant, penalty : float
        C_lam, and sum lam rate on the training rows at cut 0.
    log_cost_loss : float
        log L_lam(f), what the round minimised, after it.
    cost_change : float
        kappa: by how much the change of the costs before this round raised log L_lam.
    zero_loss : float
        L_lam of a margin of zero: ``sum_c S_c abs(worth_c)``.
    slope_mass : float
        ``sum_i s_i |worth_c| u_i / phi(0)`` before this round.
    train_error : float
        Of the ensemble so far, on the training rows at cut 0, class weights included.
    """

    accuracy: float
    loss: float
    cut: float
    rates: tuple[float | None, ...]
    gaps: tuple[float, ...]
    within: bool
    useful: bool
    bias: Bias | None
    multipliers: tuple[float, ...]
    limit_multiplier: float
    flipped: int
    constant: float
    penalty: float
    log_cost_loss: float
    cost_change: float
    zero_loss: float
    slope_mass: float
    train_error: float


@dataclass(frozen=True)
class Round:
    """One round of the loop, in the notation of the paper.

    Attributes
    ----------
    error_q, error_w : float
        The learner's error under q and under w; of its sign, where it takes Newton steps.
    kl, tv : float
        KL(w || q) and the total variation between w and q. With signed costs, whose labels may
        flip, KL is None and the total variation is the signed one,
        ``1/2 sum |w_i y~_i - q_i y_i|``.
    vote : float
        What the learner adds to the margin, learning rate included.
    log_loss : float
        log of the mean loss after this round; 0 before training.
    multipliers, balance, balance_q : tuple of float
        For each constraint, the dual variable, <w, g_k> and <q, g_k>.
    observed : Observation, optional
        What `FairBoostClassifier` observed.
    """

    error_q: float
    error_w: float
    kl: float | None
    tv: float
    vote: float
    log_loss: float
    multipliers: tuple[float, ...]
    balance: tuple[float, ...]
    balance_q: tuple[float, ...]
    observed: Observation | None = None

    @property
    def edge_q(self) -> float:
        """By how much the error under q is below one half."""
        return 0.5 - self.error_q

    @property
    def edge_w(self) -> float:
        """By how much the error under w is below one half."""
        return 0.5 - self.error_w

    @property
    def fairness_cost(self) -> float | None:
        """delta = sqrt(KL(w || q) / 2)."""
        return None if self.kl is None else math.sqrt(self.kl / 2)


_SCALARS = (
    "error_q",
    "error_w",
    "edge_q",
    "edge_w",
    "kl",
    "tv",
    "fairness_cost",
    "vote",
    "log_loss",
)
_BY_CONSTRAINT = ("multipliers", "balance", "balance_q")
_OBSERVED = (
    "accuracy",
    "cut",
    "within",
    "useful",
    "train_error",
    "limit_multiplier",
    "flipped",
    "constant",
    "penalty",
    "log_cost_loss",
    "cost_change",
    "slope_mass",
)


@dataclass(frozen=True)
class History:
    """The rounds of a run.

    Attributes
    ----------
    rounds : tuple of Round
    constraint_names : tuple of str
        Of `FairProjClassifier`: the constraints on the training weights.
    limits : tuple of float
        The epsilon of each constraint or, for `FairBoostClassifier`, the largest gap of each event.
    learning_rate : float
    stop_reason : StopReason
    events, watched : tuple of str
        Of `FairBoostClassifier`: the rates that must be alike, and their names by group.
    kept : int, optional
        Of `FairBoostClassifier`: the model has the first so many of the rounds.
    bias : float
        Of `FairBoostClassifier`: what was added to the margin of the rounds kept.
    bound : {"multiplicative", "additive"} or None
        What is proved about the loss; without, columns of bounds are NaN.
    """

    rounds: tuple[Round, ...]
    constraint_names: tuple[str, ...]
    limits: tuple[float, ...]
    learning_rate: float
    stop_reason: StopReason
    events: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    kept: int | None = None
    bias: float = 0.0
    bound: Literal["multiplicative", "additive"] | None = "multiplicative"

    @property
    def n_kept(self) -> int:
        """Rounds that the model has."""
        return len(self) if self.kept is None else self.kept

    @property
    def closed_loop(self) -> bool:
        """Whether the gaps of the predictions were watched: `FairBoostClassifier`."""
        return self.kept is not None

    def __len__(self) -> int:
        return len(self.rounds)

    def __iter__(self) -> Iterator[Round]:
        return iter(self.rounds)

    def __getitem__(self, index: int) -> Round:
        return self.rounds[index]

    @cached_property
    def columns(self) -> dict[str, Array]:
        """The scalar columns as arrays, among them every bound after each round."""
        columns = {
            name: np.array([getattr(record, name) for record in self.rounds], dtype=float)
            for name in _SCALARS
        }
        columns["loss"] = np.exp(columns["log_loss"])
        if self.closed_loop:
            return columns | self._observed_columns()
        bounds = log_bounds(
            columns["edge_q"],
            columns["edge_w"],
            columns["fairness_cost"],
            columns["tv"],
            self.learning_rate,
        )
        return columns | {f"bound_{name}": np.exp(log) for name, log in bounds.items()}

    def _observed_columns(self) -> dict[str, Array]:
        columns = {name: self._observed(name, 1)[:, 0] for name in _OBSERVED}
        columns["watched_loss"] = self._observed("loss", 1)[:, 0]
        columns["gap"] = self.by_event().max(axis=1, initial=0.0)
        columns["cost_loss"] = np.exp(columns["log_cost_loss"])
        edges = np.array([record.edge_w for record in self.rounds])
        columns["bound_cost_loss"] = cost_loss_bound(
            self.bound,
            edges,
            columns["log_cost_loss"],
            columns["cost_change"],
            columns["slope_mass"],
            self.learning_rate,
        )
        return columns

    def by_event(self) -> Array:
        """Gaps of the predictions, of shape (n_rounds, n_events)."""
        return self._observed("gaps", len(self.events))

    def by_group(self, name: str) -> Array:
        """What `FairBoostClassifier` observed in each group, round by round.

        Parameters
        ----------
        name : {"rates", "multipliers"}

        Returns
        -------
        array of shape (n_rounds, n_watched)
        """
        return self._observed(name, len(self.watched))

    def _observed(self, name: str, width: int) -> Array:
        values = [getattr(record.observed, name, ()) for record in self.rounds]
        return np.array(values, dtype=float).reshape(len(self), width)

    def by_constraint(self, name: str) -> Array:
        """The values of each constraint, round by round.

        Parameters
        ----------
        name : {"multipliers", "balance", "balance_q"}

        Returns
        -------
        array of shape (n_rounds, n_constraints)
        """
        values = [getattr(record, name) for record in self.rounds]
        return np.array(values, dtype=float).reshape(len(self), len(self.constraint_names))

    def to_frame(self) -> pd.DataFrame:
        """One row a round; columns by constraint are called ``balance[name]`` and so on."""
        columns = dict(self.columns)
        for kind in _BY_CONSTRAINT:
            for name, values in zip(self.constraint_names, self.by_constraint(kind).T, strict=True):
                columns[f"{kind}[{name}]"] = values
        for name, values in zip(self.events, self.by_event().T, strict=True):
            columns[f"gap[{name}]"] = values
        for kind in ("rates", "multipliers"):
            for name, values in zip(self.watched, self.by_group(kind).T, strict=True):
                columns[f"{kind}[{name}]"] = values
        index = pd.RangeIndex(1, len(self) + 1, name="round")
        return pd.DataFrame(columns, index=index)

    def __repr__(self) -> str:
        return f"History({counted(len(self), 'round')}; {self.stop_reason.sentence})"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(max_rows=20)
