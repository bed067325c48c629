"""Certificates: what a run proves about its training loss, and what fairness cost it.

A certificate is about the training rows and the rows that were watched. It never says that a
classifier is fair.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairproj.boosting.bounds import GAP_TIE, log_bounds
from fairproj.boosting.record import History
from fairproj.constraints import named
from fairproj.data.checks import counted
from fairproj.data.types import Array
from fairproj.engines.base import TIE

WATCHED_ROWS = ("training rows", "held-out rows")
ROUNDING = 1e-12  # edges are sums over all rows: equality holds up to this
FEASIBLE = 1e-9

CAVEAT = (
    "The certificate is about the loss on the training rows and about the training weights. It "
    "says nothing about how fair the predictions are, on these rows or on new ones: measure that."
)

GAP_CAVEAT = (
    "The certificate is about the rows that were watched and trained on. The costs of the rows and "
    "the number of rounds were chosen on them, so the gap on new rows may be larger: see "
    "FairnessReport. The gap holds where the model decides, at the threshold above; another "
    "threshold has another gap: see gap_curve."
)


class _Statement:
    """What certificates share: rows of a name and a sentence, as text and as HTML."""

    title = "Certificate of the training run"
    caveat = CAVEAT

    def rows(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON."""
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
        n, rounds = self.n_rounds, counted(self.n_rounds, "round")
        theorem = _bound(self.bound_theorem)
        if self.bound_theorem is None:
            theorem = (
                "does not apply: its premise, edge above fairness cost, "
                f"held in {self.premise_rounds} of {rounds}"
            )
        return [
            ("Rounds", f"{n}; {self.stop}"),
            ("Exponential loss, exact", f"{self.loss:.4g} (1 before training)"),
            ("Training error", f"{self.train_error:.4f}"),
            ("Bound of Theorem 5.4", theorem),
            ("Bound without the premise", _bound(self.bound_cost)),
            ("The same with total variation", _bound(self.bound_tv)),
            ("Bound from the edges under q", _bound(self.bound_edge)),
            ("Edge transfer", f"held in {self.edge_transfer_rounds} of {rounds}"),
            (
                "Constraints on the weights",
                f"met in {self.balanced_rounds} of {rounds}",
            ),
            (
                "Projection",
                f"changed the weights in {self.projected_rounds} of {rounds}",
            ),
            (
                "Averages",
                f"edge under w {self.mean_edge_w:.4f}, under q {self.mean_edge_q:.4f}, "
                f"fairness cost {self.mean_fairness_cost:.4f}, total variation {self.mean_tv:.4f}",
            ),
        ]


@dataclass(frozen=True)
class GapCertificate(_Statement):
    """The certificate of a `FairBoostClassifier`, whose rows carry signed costs.

    Attributes
    ----------
    n_rounds, n_rounds_run : int
        Rounds that the model has, and rounds that were run.
    stop : str
        Why the run ended.
    event : str
        The rate whose gap lies highest above its limit (or least below); empty where none was
        watched.
    gap, max_gap, accuracy, watched_loss : float
        That gap of the predictions, its limit, the accuracy and the loss; on the watched rows,
        where the model decides.
    within, useful, met : bool
        Whether every gap is within its limit (by a standard error with ``margin="one_se"``);
        whether errors cost less there than those of both constant predictions, by a standard error,
        and the rarer prediction is made for at least a tenth as many rows as have the rarer label;
        and both of these.
    threshold : float
        The probability of the positive label above which it is predicted.
    bias : float
        What was added to the margin to bring the gaps within their limits; 0 for nothing.
    watched_on : str
        Which rows were watched: "training rows" or "held-out rows".
    loss, log_loss, train_error : float
        Of the rounds kept, on the training rows at a margin of zero and without the bias: the loss
        (1 for a margin of zero) and the error, class weights included.
    cost_loss, bound_cost_loss : float, float or None
        L_lam, the loss with the signed costs of the last round kept, and a bound on it; None where
        nothing is proved, as for Newton steps.
    zero_loss : float
        L_lam of a margin of zero, with the same costs; a bound of so much says nothing.
    cost_change : float
        The sum of kappa: what all changes of the costs added to log L_lam.
    constant, penalty, bound_error : float
        C_lam, sum lam rate, and ``constant + cost_loss - penalty``, which is at least
        `train_error` by the Lagrangian identity.
    constant_error : float
        The error of the better constant prediction on the training rows.
    flipped : int
        The (group, label) cells whose label was flipped in the last round kept.
    largest_multiplier : float
    edge_transfer_rounds : int
        Rounds in which ``|edge_w - edge_q| <= TV``, the signed total variation; a theorem, so all.
    mean_edge_q, mean_edge_w, mean_tv : float
    """

    caveat = GAP_CAVEAT

    n_rounds: int
    n_rounds_run: int
    stop: str
    event: str
    gap: float
    max_gap: float
    accuracy: float
    watched_loss: float
    within: bool
    useful: bool
    met: bool
    threshold: float
    bias: float
    watched_on: str
    loss: float
    log_loss: float
    train_error: float
    cost_loss: float
    bound_cost_loss: float | None
    zero_loss: float
    cost_change: float
    constant: float
    penalty: float
    bound_error: float
    constant_error: float
    flipped: int
    largest_multiplier: float
    edge_transfer_rounds: int
    mean_edge_q: float
    mean_edge_w: float
    mean_tv: float

    @property
    def holds(self) -> bool:
        """Whether every statement that is a theorem held in the numbers of this run."""
        bound = self.bound_cost_loss
        return (
            self.edge_transfer_rounds == self.n_rounds
            and _at_most_loss(self.train_error, self.loss)
            and _at_most_loss(self.train_error, self.bound_error)
            and (bound is None or self.cost_loss <= bound + 1e-9 * max(1.0, bound))
        )

    @property
    def shortfall(self) -> str:
        """What the model misses, in a sentence; empty where it misses nothing."""
        if self.met or not self.event:
            return ""
        if not self.useful:
            return (
                "the model says the same to nearly everyone, or its errors cost no less than those "
                "of a constant prediction by a standard error, so it is not useful whatever its "
                f"gap (accuracy {self.accuracy:.3f} on the {self.watched_on}); with rare labels "
                "use class_weight='balanced' or selection_rate=, else raise max_gap or add "
                "features that tell more about the label"
            )
        excess = "which is not a standard error below it"
        if self._exceeded:
            excess = f"{self.gap - self.max_gap:.3f} too much"
        return (
            f"no useful round had a gap within max_gap={self.max_gap:g}; "
            f"the model that comes nearest has a gap of {self.gap:.3f} on the {self.watched_on}, "
            f"{excess}, at an accuracy of {self.accuracy:.3f}; raise max_gap, or use more rounds "
            "or larger trees (max_leaf_nodes)"
        )

    @property
    def _exceeded(self) -> bool:
        """Whether a gap is above its limit, not only too near to it."""
        return self.gap > self.max_gap + GAP_TIE

    @property
    def _watched(self) -> str:
        if self.watched_on == "training rows":
            return "these are the training rows"
        return "these were held out from the training rows"

    def rows(self) -> list[tuple[str, str]]:
        """What the certificate states, as pairs of a name and a sentence."""
        n, rounds = self.n_rounds, counted(self.n_rounds, "round")
        where = "above" if self._exceeded else "not a standard error below"
        where = "within" if self.within else where
        gap = f"{self.gap:.4f} ({named(self.event)}), {where} max_gap {self.max_gap:g}"
        if not self.event:
            gap = "nothing was compared"
        return [
            ("Rounds", f"{n} kept of {self.n_rounds_run} run; {self.stop}"),
            ("Gap on the watched rows", f"{gap}; accuracy {self.accuracy:.4f}; {self._watched}"),
            ("Useful", _usefulness(self.useful)),
            (
                "Decision",
                f"positive where the probability exceeds {self.threshold:.4g}"
                + (f"; a bias of {self.bias:+.4f} was added to the margin" if self.bias else ""),
            ),
            ("Training loss, exact", f"{self.loss:.4g} (1 for a margin of zero)"),
            ("Training error", f"{self.train_error:.4f} at a margin of zero"),
            (
                "Bound on the training error",
                f"{self.bound_error:.4f}"
                + (
                    f" (vacuous: a constant prediction has {self.constant_error:.4f})"
                    if self.bound_error >= self.constant_error - ROUNDING
                    else ""
                ),
            ),
            (
                "Loss with signed costs, exact",
                f"{self.cost_loss:.4g} ({self.zero_loss:.4g} for a margin of zero)",
            ),
            ("Bound on it", _bound(self.bound_cost_loss, self.zero_loss)),
            (
                "Changes of the costs",
                f"{self.cost_change:+.4f} of the logarithm of that loss, in all rounds",
            ),
            (
                "Costs in the last round",
                f"largest multiplier {self.largest_multiplier:.4f}; flipped labels in "
                f"{self.flipped} (group, label) cells",
            ),
            ("Edge transfer", f"held in {self.edge_transfer_rounds} of {rounds}"),
            (
                "Averages",
                f"edge under w {self.mean_edge_w:.4f}, under q {self.mean_edge_q:.4f}, "
                f"signed total variation {self.mean_tv:.4f}",
            ),
        ]


def _usefulness(useful: bool) -> str:
    if useful:
        return "yes: errors cost less than those of both constant predictions"
    return "no: it says the same to nearly everyone, or is no better than a constant prediction"


def _at_most_loss(error: float, loss: float) -> bool:
    """Whether error <= loss; a tie on the correct side is a mistake with a loss of exp(-TIE)."""
    return error <= loss * (1 + 2 * TIE) + ROUNDING


def _bound(value: float | None, vacuous: float = 1.0) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" + (" (vacuous)" if value >= vacuous - ROUNDING else "")


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
    history: History,
    *,
    threshold: float,
    watched_on: str,
    constant_error: float,
    compared: bool,
) -> GapCertificate:
    """The certificate of the rounds that a history keeps, with its bias."""
    kept = history.n_kept
    first = {name: values[:kept] for name, values in history.columns.items()}
    edge_w, edge_q, tv = first["edge_w"], first["edge_q"], first["tv"]
    last: Any = history[kept - 1].observed
    # A bias is kept only where it brings a useful model within the limits.
    state = last.bias if history.bias else last
    within, useful = (True, True) if history.bias else (last.within, last.useful)
    excess = np.array(state.gaps) - np.array(history.limits)
    worst = int(np.argmax(excess)) if compared else None
    bound = float(first["bound_cost_loss"][-1])
    constant, penalty = float(last.constant), float(last.penalty)
    cost_loss = float(first["cost_loss"][-1])
    return GapCertificate(
        n_rounds=kept,
        n_rounds_run=len(history),
        stop=history.stop_reason.sentence,
        event="" if worst is None else history.events[worst],
        gap=0.0 if worst is None else float(state.gaps[worst]),
        max_gap=0.0 if worst is None else float(history.limits[worst]),
        accuracy=float(state.accuracy),
        watched_loss=float(state.loss),
        within=bool(within),
        useful=bool(useful),
        met=bool(compared and within and useful),
        threshold=threshold,
        bias=history.bias,
        watched_on=watched_on,
        loss=float(first["loss"][-1]),
        log_loss=float(first["log_loss"][-1]),
        train_error=float(first["train_error"][-1]),
        cost_loss=cost_loss,
        bound_cost_loss=None if np.isnan(bound) else bound,
        zero_loss=float(last.zero_loss),
        cost_change=float(first["cost_change"].sum()),
        constant=constant,
        penalty=penalty,
        bound_error=constant + cost_loss - penalty,
        constant_error=constant_error,
        flipped=int(last.flipped),
        largest_multiplier=float(max(map(abs, last.multipliers), default=0.0)),
        edge_transfer_rounds=int((np.abs(edge_w - edge_q) <= tv + ROUNDING).sum()),
        mean_edge_q=float(edge_q.mean()),
        mean_edge_w=float(edge_w.mean()),
        mean_tv=float(tv.mean()),
    )
