"""Certificates: what a run proves about its training loss, and what fairness cost it.

A certificate is about the training rows and the rows that were watched. It never says that a
classifier is fair.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairproj.boosting.bounds import GAP_TIE, log_bounds, log_tilted_bound
from fairproj.data.types import Array
from fairproj.engines.base import TIE

ROUNDING = 1e-12  # edges are sums over all rows: equality holds up to this
FEASIBLE = 1e-9
LARGEST = float(np.finfo(float).max)

CAVEAT = (
    "The certificate is about the loss on the training rows and about the training weights. It "
    "says nothing about how fair the predictions are, on these rows or on new ones: measure that."
)

GAP_CAVEAT = (
    "The certificate is about the rows that were watched and trained on. The tilt, by which the "
    "weights of groups are changed, and the number of rounds were chosen on them, so the gap on "
    "new rows may be larger: see FairnessReport."
)


class _Statement:
    """What certificates share: rows of a name and a sentence, as text and as HTML."""

    title = "Certificate of the training run"
    caveat = CAVEAT

    def rows(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        lines = [f"  {name:<{width}}  {text}" for name, text in self.rows()]
        return "\n".join([self.title, *lines, self.caveat])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in self.rows()
        )
        return (
            f"<table><caption>{self.title}</caption>"
            f"<tbody>{rows}</tbody></table><p>{html.escape(self.caveat)}</p>"
        )


@dataclass(frozen=True)
class Certificate(_Statement):
    """What is known of a fitted model's training loss, and what fairness cost it.

    Losses and bounds are means over the (weighted) training rows, so that the empty model has 1 and
    a bound of 1 says nothing.

    Attributes
    ----------
    n_rounds : int
    stop : str
        Why the run ended.
    loss, log_loss : float
        The exponential loss, exactly, and its logarithm.
    train_error : float
        Share of the training weight that is misclassified; at most `loss`.
    bound_theorem : float or None
        Theorem 5.4 of the paper, or None where its premise failed.
    bound_cost, bound_tv, bound_edge : float
        The bound without that premise, its tighter form with the total variation, and the one from
        the edges under q themselves.
    premise_rounds : int
        Rounds in which edge_w > fairness_cost.
    edge_transfer_rounds : int
        Rounds in which ``|edge_w - edge_q| <= TV <= fairness_cost``; a theorem, so all of them.
    balanced_rounds : int
        Rounds whose weights satisfied every constraint.
    projected_rounds : int
        Rounds in which the projection changed the weights.
    mean_edge_q, mean_edge_w, mean_fairness_cost, mean_tv : float
    """

    n_rounds: int
    stop: str
    loss: float
    log_loss: float
    train_error: float
    bound_theorem: float | None
    bound_cost: float
    bound_tv: float
    bound_edge: float
    premise_rounds: int
    edge_transfer_rounds: int
    balanced_rounds: int
    projected_rounds: int
    mean_edge_q: float
    mean_edge_w: float
    mean_fairness_cost: float
    mean_tv: float

    @property
    def holds(self) -> bool:
        """Whether every statement that is a theorem held in the numbers of this run."""
        tightest = min(1.0, *(b for b in self._bounds() if b is not None))
        return (
            self.edge_transfer_rounds == self.balanced_rounds == self.n_rounds
            and _at_most_loss(self.train_error, self.loss)
            and self.loss <= tightest + 1e-9
        )

    def _bounds(self) -> tuple[float | None, ...]:
        return self.bound_theorem, self.bound_cost, self.bound_tv, self.bound_edge

    def rows(self) -> list[tuple[str, str]]:
        """What the certificate states, as pairs of a name and a sentence."""
        n = self.n_rounds
        theorem = _bound(self.bound_theorem)
        if self.bound_theorem is None:
            theorem = (
                "does not apply: its premise, edge above fairness cost, "
                f"held in {self.premise_rounds} of {n} rounds"
            )
        return [
            ("Rounds", f"{n}; {self.stop}"),
            ("Exponential loss, exact", f"{self.loss:.4g} (1 before training)"),
            ("Training error", f"{self.train_error:.4f}"),
            ("Bound of Theorem 5.4", theorem),
            ("Bound without the premise", _bound(self.bound_cost)),
            ("The same with total variation", _bound(self.bound_tv)),
            ("Bound from the edges under q", _bound(self.bound_edge)),
            ("Edge transfer", f"held in {self.edge_transfer_rounds} of {n} rounds"),
            ("Constraints on the weights", f"met in {self.balanced_rounds} of {n} rounds"),
            ("Projection", f"changed the weights in {self.projected_rounds} of {n} rounds"),
            (
                "Averages",
                f"edge under w {self.mean_edge_w:.4f}, under q {self.mean_edge_q:.4f}, "
                f"fairness cost {self.mean_fairness_cost:.4f}, total variation {self.mean_tv:.4f}",
            ),
        ]


@dataclass(frozen=True)
class GapCertificate(_Statement):
    """The certificate of a `FairBoostClassifier`, whose tilt is part of the loss.

    Attributes
    ----------
    n_rounds, n_rounds_run : int
        Rounds that the model has, and rounds that were run.
    stop : str
        Why the run ended.
    loss, log_loss, train_error : float
        As in `Certificate`.
    tilted_loss : float
        The mean of b_i exp(-y_i f(x_i)), b the tilt of the last round kept; what was minimised.
    tilt_cost : float
        The sum of kappa: what all changes of the tilt added to its logarithm.
    bound_tilted : float or None
        exp(tilt_cost - 2 eta sum_t edge_w^2), a bound on `tilted_loss`; None for a loss without
        proved bounds.
    bound_loss : float or None
        The bound on `loss` that follows: `bound_tilted` times the largest 1/b_i.
    edge_transfer_rounds : int
        Rounds in which ``|edge_w - edge_q| <= TV <= fairness_cost``; a theorem, so all of them.
    event : str
        The rate whose gap lies highest above its limit (or least below); empty where none was
        watched.
    gap, max_gap, accuracy : float
        That gap of the predictions, its limit, and the accuracy; on the rows that were watched.
    met, useful : bool
        Whether every gap is within its limit, and whether the model is more accurate there than a
        constant one; ``met`` implies ``useful``.
    watched_on : str
        Which rows those were.
    mean_edge_q, mean_edge_w, mean_fairness_cost, mean_tv : float
        Fairness cost and total variation are those of w against the untilted q.
    """

    caveat = GAP_CAVEAT

    n_rounds: int
    n_rounds_run: int
    stop: str
    loss: float
    log_loss: float
    train_error: float
    tilted_loss: float
    tilt_cost: float
    bound_tilted: float | None
    bound_loss: float | None
    edge_transfer_rounds: int
    event: str
    gap: float
    max_gap: float
    accuracy: float
    met: bool
    useful: bool
    watched_on: str
    mean_edge_q: float
    mean_edge_w: float
    mean_fairness_cost: float
    mean_tv: float

    @property
    def holds(self) -> bool:
        """Whether every statement that is a theorem held in the numbers of this run."""
        return (
            self.edge_transfer_rounds == self.n_rounds
            and _at_most_loss(self.train_error, self.loss)
            and (self.bound_tilted is None or self.tilted_loss <= self.bound_tilted * (1 + 1e-9))
            and (self.bound_loss is None or self.loss <= self.bound_loss * (1 + 1e-9))
        )

    @property
    def within(self) -> bool:
        """Whether `gap` is within `max_gap`; `met` also asks for a useful model."""
        return self.gap <= self.max_gap + GAP_TIE

    @property
    def shortfall(self) -> str:
        """What the model misses, in a sentence; empty where it misses nothing."""
        if self.met:
            return ""
        advice = (
            "raise max_gap, or use more rounds or stronger learners (max_depth); a gap may be out "
            "of reach where the features do not tell the groups apart"
        )
        if not self.useful:
            return (
                "no round was more accurate than a constant prediction on the "
                f"{self.watched_on}; the best has an accuracy of {self.accuracy:.3f}; {advice}"
            )
        return (
            f"no useful round had a gap within max_gap={self.max_gap:g}; the model that comes "
            f"nearest has a gap of {self.gap:.3f} on the {self.watched_on}, "
            f"{self.gap - self.max_gap:.3f} too much, at an accuracy of {self.accuracy:.3f}; "
            f"{advice}"
        )

    def rows(self) -> list[tuple[str, str]]:
        """What the certificate states, as pairs of a name and a sentence."""
        n = self.n_rounds
        where = "within" if self.within else "above"
        gap = f"{self.gap:.4f} ({self.event}), {where} max_gap {self.max_gap:g}"
        if not self.event:
            gap = "nothing was compared"
        return [
            ("Rounds", f"{n} kept of {self.n_rounds_run} run; {self.stop}"),
            (
                f"Gap on the {self.watched_on}",
                f"{gap}; accuracy {self.accuracy:.4f}",
            ),
            ("Loss, exact", f"{self.loss:.4g} (1 before training)"),
            ("Training error", f"{self.train_error:.4f}"),
            ("Tilted loss, exact", f"{self.tilted_loss:.4g}"),
            ("Bound on the tilted loss", _bound(self.bound_tilted)),
            (
                "Cost of changing the tilt",
                f"{self.tilt_cost:+.4f} in the log loss, over all rounds",
            ),
            ("Bound on the loss", _bound(self.bound_loss)),
            ("Edge transfer", f"held in {self.edge_transfer_rounds} of {n} rounds"),
            (
                "Averages",
                f"edge under w {self.mean_edge_w:.4f}, under q {self.mean_edge_q:.4f}, "
                f"fairness cost {self.mean_fairness_cost:.4f}, total variation {self.mean_tv:.4f}",
            ),
        ]


def _at_most_loss(error: float, loss: float) -> bool:
    """Whether error <= loss; a tie on the correct side is a mistake with a loss of exp(-TIE)."""
    return error <= loss * (1 + 2 * TIE) + ROUNDING


def _bound(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" + (" (vacuous)" if value >= 1 - ROUNDING else "")


def certify(
    columns: Mapping[str, Array],
    balance: Array,
    epsilon: Array,
    *,
    train_error: float,
    learning_rate: float,
    stop: str,
) -> Certificate:
    """The certificate of a run, from the columns of its history.

    ``balance`` has a row for each round and a column for each constraint.
    """
    edge_q, edge_w = columns["edge_q"], columns["edge_w"]
    cost, tv = columns["fairness_cost"], columns["tv"]
    last = {
        name: float(np.exp(values[-1]))
        for name, values in log_bounds(edge_q, edge_w, cost, tv, learning_rate).items()
    }
    transfer = (np.abs(edge_w - edge_q) <= tv + ROUNDING) & (tv <= cost + ROUNDING)
    log_loss = float(columns["log_loss"][-1])
    return Certificate(
        n_rounds=len(edge_q),
        stop=stop,
        loss=float(np.exp(log_loss)),
        log_loss=log_loss,
        train_error=train_error,
        bound_theorem=None if np.isnan(last["theorem"]) else last["theorem"],
        bound_cost=last["cost"],
        bound_tv=last["tv"],
        bound_edge=last["edge"],
        premise_rounds=int((edge_w > cost).sum()),
        edge_transfer_rounds=int(transfer.sum()),
        balanced_rounds=int((np.abs(balance) <= epsilon + FEASIBLE).all(axis=1).sum()),
        projected_rounds=int((columns["kl"] > 0).sum()),
        mean_edge_q=float(edge_q.mean()),
        mean_edge_w=float(edge_w.mean()),
        mean_fairness_cost=float(cost.mean()),
        mean_tv=float(tv.mean()),
    )


def certify_gap(
    columns: Mapping[str, Array],
    gaps: Array,
    max_gap: Array,
    events: Sequence[str],
    *,
    kept: int,
    met: bool,
    useful: bool,
    least_log_tilt: float,
    train_error: float,
    learning_rate: float,
    watched_on: str,
    stop: str,
    certified: bool = True,
) -> GapCertificate:
    """The certificate of the first ``kept`` rounds, from the columns of their history.

    ``gaps`` has a row for each round and a column for each event.
    """
    first = {name: values[:kept] for name, values in columns.items()}
    edge_w, edge_q = first["edge_w"], first["edge_q"]
    cost, tv = first["fairness_cost"], first["tv"]
    log_bound = float(log_tilted_bound(edge_w, first["tilt_cost"], learning_rate)[-1])
    transfer = (np.abs(edge_w - edge_q) <= tv + ROUNDING) & (tv <= cost + ROUNDING)
    worst = int(np.argmax(gaps[kept - 1] - max_gap)) if len(max_gap) else 0
    log_loss = float(first["log_loss"][-1])
    return GapCertificate(
        n_rounds=kept,
        n_rounds_run=len(columns["edge_w"]),
        stop=stop,
        loss=float(np.exp(log_loss)),
        log_loss=log_loss,
        train_error=train_error,
        tilted_loss=float(np.exp(first["log_tilted_loss"][-1])),
        tilt_cost=float(first["tilt_cost"].sum()),
        bound_tilted=_exp(log_bound) if certified else None,
        bound_loss=_exp(log_bound - least_log_tilt) if certified else None,
        edge_transfer_rounds=int(transfer.sum()),
        event=events[worst] if len(events) else "",
        gap=float(gaps[kept - 1, worst]) if len(max_gap) else 0.0,
        max_gap=min(float(max_gap[worst]), LARGEST) if len(max_gap) else 0.0,
        accuracy=float(first["accuracy"][-1]),
        met=met,
        useful=useful,
        watched_on=watched_on,
        mean_edge_q=float(edge_q.mean()),
        mean_edge_w=float(edge_w.mean()),
        mean_fairness_cost=float(cost.mean()),
        mean_tv=float(tv.mean()),
    )


def _exp(log: float) -> float:
    """exp without overflow: a bound that large says nothing, and files hold finite numbers."""
    with np.errstate(over="ignore"):
        return float(min(np.exp(log), LARGEST))
