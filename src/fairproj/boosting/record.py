"""The record of a run: its rounds, the reason it ended, and all of it as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
import pandas as pd

from fairproj.boosting.bounds import log_bounds, log_tilted_bound
from fairproj.data.types import Array


class StopReason(Enum):
    """Why a run ended."""

    ALL_ROUNDS = "all_rounds"
    NO_EDGE = "no_edge"
    PERFECT = "perfect"
    FALLBACK = "fallback"
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
    StopReason.INTERRUPTED: "interrupted; the rounds done so far are kept",
}


@dataclass(frozen=True)
class Observation:
    """What the closed loop observed after a round.

    Attributes
    ----------
    tilt_cost : float
        kappa: by how much the last change of the tilt, before this round, raised the log loss.
    log_tilted_loss : float
        log of the mean of b_i exp(-y_i f(x_i)) after this round, b its tilt.
    accuracy : float
        Of the ensemble so far, on the watched rows.
    rates : tuple of float or None
        The rate of each group and event; None where no row is watched.
    tilt : tuple of float
        mu of each group and event.
    gaps : tuple of float
        For each event, the largest rate less the smallest.
    least_log_tilt : float
        The least log b of a row.
    train_error : float
        Of the ensemble so far, on the training rows.
    """

    tilt_cost: float
    log_tilted_loss: float
    accuracy: float
    rates: tuple[float | None, ...]
    tilt: tuple[float, ...]
    gaps: tuple[float, ...]
    least_log_tilt: float
    train_error: float


@dataclass(frozen=True)
class Round:
    """One round of the loop, in the notation of the paper.

    Attributes
    ----------
    error_q, error_w : float
        The learner's error under q and under w.
    kl, tv : float
        KL(w || q) and the total variation between w and q.
    vote : float
        What the learner adds to the margin, learning rate included.
    log_loss : float
        log of the mean loss after this round; 0 before training.
    multipliers, balance, balance_q : tuple of float
        For each constraint, the dual variable, <w, g_k> and <q, g_k>.
    observed : Observation, optional
        What the closed loop observed.
    """

    error_q: float
    error_w: float
    kl: float
    tv: float
    vote: float
    log_loss: float
    multipliers: tuple[float, ...]
    balance: tuple[float, ...]
    balance_q: tuple[float, ...]
    observed: Observation | None = None

    @property
    def edge_q(self) -> float:
        return 0.5 - self.error_q

    @property
    def edge_w(self) -> float:
        return 0.5 - self.error_w

    @property
    def fairness_cost(self) -> float:
        """delta = sqrt(KL(w || q) / 2)."""
        return math.sqrt(self.kl / 2)


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
_OBSERVED = ("accuracy", "train_error", "tilt_cost", "log_tilted_loss")


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
    certified : bool
        Whether the loss has proved bounds; without, columns of bounds are NaN.
    """

    rounds: tuple[Round, ...]
    constraint_names: tuple[str, ...]
    limits: tuple[float, ...]
    learning_rate: float
    stop_reason: StopReason
    events: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    kept: int | None = None
    certified: bool = True

    @property
    def n_kept(self) -> int:
        """Rounds that the model has."""
        return len(self) if self.kept is None else self.kept

    @property
    def closed_loop(self) -> bool:
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
        columns["gap"] = self.by_event().max(axis=1, initial=0.0)
        columns["tilted_loss"] = np.exp(columns["log_tilted_loss"])
        edges = np.array([record.edge_w for record in self.rounds])
        with np.errstate(over="ignore"):
            log_bound = log_tilted_bound(edges, columns["tilt_cost"], self.learning_rate)
            bound = np.minimum(np.exp(log_bound), np.finfo(float).max)  # JSON has no infinity
        bound = bound if self.certified else np.full(len(self), np.nan)
        return columns | {"bound_tilted": bound}

    def by_event(self) -> Array:
        """Gaps of the predictions, of shape (n_rounds, n_events)."""
        return self._observed("gaps", len(self.events))

    def by_group(self, name: str) -> Array:
        """``rates`` or ``tilt`` of the closed loop, of shape (n_rounds, n_watched)."""
        return self._observed(name, len(self.watched))

    def _observed(self, name: str, width: int) -> Array:
        values = [getattr(record.observed, name, ()) for record in self.rounds]
        return np.array(values, dtype=float).reshape(len(self), width)

    def by_constraint(self, name: str) -> Array:
        """``multipliers``, ``balance`` or ``balance_q``, of shape (n_rounds, n_constraints)."""
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
        for kind in ("rates", "tilt"):
            for name, values in zip(self.watched, self.by_group(kind).T, strict=True):
                columns[f"{kind}[{name}]"] = values
        index = pd.RangeIndex(1, len(self) + 1, name="round")
        return pd.DataFrame(columns, index=index)

    def __repr__(self) -> str:
        return f"History({len(self)} rounds; {self.stop_reason.sentence})"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(max_rows=20)
