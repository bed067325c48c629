"""What is known of a run: a record for each round, the reason it ended, and the whole as a table.

Apart from the loop so that reports, plots and certificates need no model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairproj._certificate import log_bounds, log_tilted_bound
from fairproj._projection import Array


class StopReason(Enum):
    """Why a run ended; the value is the sentence to show."""

    ALL_ROUNDS = "all rounds asked for were run"
    NO_EDGE = "stopped because the next learner was no better than chance"
    PERFECT = "stopped because a learner made no mistake"
    FALLBACK = "no learner beat chance, so the model is the majority class"
    INTERRUPTED = "interrupted; the rounds done so far are kept"


@dataclass(frozen=True)
class Observation:
    """What the closed loop saw after a round.

    Attributes
    ----------
    tilt_cost : float
        kappa: by how much the last change of the tilt, before this round, raised the log loss.
    log_tilted_loss : float
        log of the mean of b_i exp(-y_i f(x_i)) after this round, b its tilt.
    accuracy : float
        Of the ensemble so far, on the watched rows.
    rates, tilt : tuple of float
        The rate of positive predictions and mu of each group and event.
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
    rates: tuple[float, ...]
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
    log_exp_loss : float
        log of the mean exponential loss after this round.
    multipliers, balance, balance_q : tuple of float
        For each constraint, the dual variable, <w, g_k> and <q, g_k>.
    seen : Observation, optional
        What the closed loop saw.
    """

    error_q: float
    error_w: float
    kl: float
    tv: float
    vote: float
    log_exp_loss: float
    multipliers: tuple[float, ...]
    balance: tuple[float, ...]
    balance_q: tuple[float, ...]
    seen: Observation | None = None

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
    "log_exp_loss",
)
_BY_CONSTRAINT = ("multipliers", "balance", "balance_q")
_SEEN = ("accuracy", "train_error", "tilt_cost", "log_tilted_loss")


@dataclass(frozen=True)
class History:
    """The rounds of a run, with the constraints' names and slacks.

    In the closed loop (``enforce="classifier"``) there are no constraints on the weights; `events`
    are the rates that must be alike, `watched` their names by group, and ``epsilon`` is theirs.
    The model then has the first `n_kept` of the rounds.
    """

    rounds: tuple[Round, ...]
    constraint_names: tuple[str, ...]
    epsilon: tuple[float, ...]
    learning_rate: float
    stop_reason: StopReason
    events: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    kept: int | None = None

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
        """The scalar columns as arrays, each bound after each round among them."""
        columns = {
            name: np.array([getattr(record, name) for record in self.rounds], dtype=float)
            for name in _SCALARS
        }
        columns["exp_loss"] = np.exp(columns["log_exp_loss"])
        if self.closed_loop:
            return columns | self._seen_columns()
        bounds = log_bounds(
            columns["edge_q"],
            columns["edge_w"],
            columns["fairness_cost"],
            columns["tv"],
            self.learning_rate,
        )
        return columns | {f"bound_{name}": np.exp(log) for name, log in bounds.items()}

    def _seen_columns(self) -> dict[str, Array]:
        columns = {name: self._seen(name, 1)[:, 0] for name in _SEEN}
        columns["gap"] = self.by_event().max(axis=1, initial=0.0)
        columns["tilted_loss"] = np.exp(columns["log_tilted_loss"])
        edges = np.array([record.edge_w for record in self.rounds])
        log_bound = log_tilted_bound(edges, columns["tilt_cost"], self.learning_rate)
        return columns | {"bound_tilted": np.exp(log_bound)}

    def by_event(self) -> Array:
        """Gaps of the predictions, of shape (n_rounds, n_events)."""
        return self._seen("gaps", len(self.events))

    def by_group(self, name: str) -> Array:
        """``rates`` or ``tilt`` of the closed loop, of shape (n_rounds, n_watched)."""
        return self._seen(name, len(self.watched))

    def _seen(self, name: str, width: int) -> Array:
        values = [getattr(record.seen, name, ()) for record in self.rounds]
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

    def to_json(self) -> str:
        """Everything in the record as JSON text, what is derived too; `from_json` reads it back."""
        derived = {
            name: [_or_none(value) for value in values.tolist()]
            for name, values in self.columns.items()
        }
        rounds = [
            {name: values[t] for name, values in derived.items()} | vars(record)
            for t, record in enumerate(self.rounds)
        ]
        for record in rounds:
            seen = record.pop("seen")
            if seen is not None:
                record["seen"] = {name: _or_none(value) for name, value in vars(seen).items()}
        content = {
            "constraint_names": list(self.constraint_names),
            "epsilon": [min(slack, np.finfo(float).max) for slack in self.epsilon],
            "learning_rate": self.learning_rate,
            "stop_reason": self.stop_reason.name,
            "events": list(self.events),
            "watched": list(self.watched),
            "kept": self.kept,
            "rounds": rounds,
        }
        return json.dumps(content, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> History:
        content = json.loads(text)
        rounds = []
        for record in content["rounds"]:
            fields: dict[str, Any] = {
                name: tuple(value) if name in _BY_CONSTRAINT else value
                for name, value in record.items()
                if name in Round.__dataclass_fields__
            }
            if "seen" in record:
                fields["seen"] = Observation(**{n: _or_nan(v) for n, v in record["seen"].items()})
            rounds.append(Round(**fields))
        return cls(
            tuple(rounds),
            tuple(content["constraint_names"]),
            tuple(content["epsilon"]),
            content["learning_rate"],
            StopReason[content["stop_reason"]],
            tuple(content.get("events", ())),
            tuple(content.get("watched", ())),
            content.get("kept"),
        )

    def __repr__(self) -> str:
        return f"History({len(self)} rounds; {self.stop_reason.value})"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(max_rows=20)


def _or_none(value: Any) -> Any:
    """NaN as JSON has it."""
    if isinstance(value, tuple):
        return [_or_none(entry) for entry in value]
    return None if np.isnan(value) else value


def _or_nan(value: Any) -> Any:
    """The way back."""
    if isinstance(value, list):
        return tuple(_or_nan(entry) for entry in value)
    return float("nan") if value is None else value
