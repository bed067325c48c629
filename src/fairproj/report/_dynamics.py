"""Lines of the charts of a report: by round of a training run, and by threshold."""

from __future__ import annotations

import numpy as np

from fairproj.boosting.record import History
from fairproj.data.types import Array
from fairproj.report._content import Content, finite
from fairproj.report._words import SIGNED_COSTS

_MOST_LINES = 6  # of a chart

_NOTES = {
    "FairBoost": (
        "{signed_costs} The multipliers say how much each group pays; they follow the gap from "
        "round to round. q are the weights of the rows that minimising the loss alone would "
        "choose; w are those with signed costs, on which the trees were grown."
    ),
    "FairProj": (
        "q are the weights of the rows that AdaBoost would choose; w are the weights nearest to q "
        "that balance the groups to within epsilon. The learners were trained on w."
    ),
}


def dynamics(history: History) -> Content:
    """What `plot_dynamics` shows: panels, each with lines by round and perhaps a level."""
    panels = _fairboost_panels if history.closed_loop else _fairproj_panels
    return {
        "rounds": len(history),
        "kept": history.n_kept,
        "note": _NOTES["FairBoost" if history.closed_loop else "FairProj"].format(
            signed_costs=SIGNED_COSTS
        ),
        "panels": panels(history),
    }


def _fairboost_panels(history: History) -> list[Content]:
    panels = [_panel("Loss", "mean over the rows", loss_lines(history)), _edges(history)]
    if not history.events:
        return panels
    gaps = dict(zip(history.events, history.by_event().T, strict=True))
    levels = [{"name": "max_gap", "value": limit} for limit in sorted(set(history.limits))]
    return [
        *panels,
        {**_panel("Gap of the predictions", "between groups", gaps), "levels": levels},
        _panel("Multipliers of the costs", "above 0: the rate is too high", _multipliers(history)),
    ]


def loss_lines(history: History) -> dict[str, Array]:
    """The losses of a run of `FairBoostClassifier`, and what is proved of them."""
    columns = history.columns
    lines = {"training rows": columns["loss"]}
    if not np.allclose(columns["watched_loss"], columns["loss"]):
        lines["watched rows"] = columns["watched_loss"]
    if np.any(columns["cost_loss"] != columns["loss"]) and history.events:
        lines["with signed costs"] = columns["cost_loss"]
    if history.bound is not None:
        lines["bound, with signed costs"] = columns["bound_cost_loss"]
    return lines


def _multipliers(history: History) -> dict[str, Array]:
    """Those of each group and rate; of many, the largest."""
    values = history.by_group("multipliers").T
    largest = np.sort(np.argsort(-np.abs(values).max(axis=1, initial=0.0))[:_MOST_LINES])
    return {history.watched[at]: values[at] for at in largest}


def _fairproj_panels(history: History) -> list[Content]:
    columns = history.columns
    loss = {
        "loss": columns["loss"],
        "bound from the edges under q": columns["bound_edge"],
        "bound from the fairness cost": columns["bound_cost"],
    }
    distance = {
        "fairness cost, from KL": columns["fairness_cost"],
        "total variation": columns["tv"],
    }
    return [
        _panel("Exponential loss", "mean over the training rows", loss),
        _edges(history),
        _panel("Distance from q to w", "cost", distance),
    ]


def _edges(history: History) -> Content:
    edges = {"under w": history.columns["edge_w"], "under q": history.columns["edge_q"]}
    return _panel("Edge of the learner", "edge", edges)


def _panel(title: str, axis: str, lines: dict[str, Array]) -> Content:
    return {
        "title": title,
        "axis": axis,
        "levels": [],
        "lines": [
            {"name": name, "values": finite(values.tolist())} for name, values in lines.items()
        ],
    }
