"""Lines by round of a training run, for the charts of a report."""

from __future__ import annotations

from fairproj.boosting.record import History
from fairproj.data.types import Array
from fairproj.report._content import Content, finite

_NOTES = {
    "FairBoost": (
        "q are the weights of the rows that minimising the loss alone would choose; w are the "
        "weights that the learners were trained on. They are tilted: raised for rows whose correct "
        "prediction narrows the gap, lowered for rows whose correct prediction widens it. The "
        "tilted loss is the loss with that tilt."
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
        "note": _NOTES["FairBoost" if history.closed_loop else "FairProj"],
        "panels": panels(history),
    }


def _fairboost_panels(history: History) -> list[Content]:
    columns = history.columns
    loss = {"loss": columns["loss"], "tilted loss": columns["tilted_loss"]}
    if history.certified:
        loss["bound on the tilted loss"] = columns["bound_tilted"]
    gaps = dict(zip(history.events, history.by_event().T, strict=True))
    return [
        _panel("Training loss", "mean over the training rows", loss),
        _edges(history),
        {
            **_panel("Gap of the predictions", "largest less smallest rate", gaps),
            "level": float(min(history.limits)) if history.limits else None,
            "level_name": "max_gap",
        },
    ]


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
        "lines": [
            {"name": name, "values": finite(values.tolist())} for name, values in lines.items()
        ],
    }
