"""What a report has not looked at, from what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairproj.inference.report import innermost
from fairproj.report._content import Content
from fairproj.report._source import Source
from fairproj.report._training import error_weights


def not_looked_at(content: Content, source: Source, estimator: Any = None) -> list[str]:
    """Sentences, the most important first."""
    return [
        *_of_groups(content, source),
        *_of_model(content, estimator),
        *_of_rows(content),
        "Single persons: whether similar people are treated alike was not looked at.",
        "Causes: the report says that groups differ, and not why they do.",
        _of_costs(estimator),
    ]


def _of_costs(estimator: Any) -> str:
    weighted = "" if estimator is None else error_weights(innermost(estimator))
    if not weighted:
        return "What errors cost: a false positive and a false negative count the same here."
    return (
        "What errors cost: the accuracy counts a false positive and a false negative the same, "
        f"whereas training weighted errors ({weighted})."
    )


def _of_groups(content: Content, source: Source) -> Iterator[str]:
    n_groups = len(content["data"]["groups"])
    by = f" by {' and '.join(source.sensitive)}" if source.sensitive else ""
    yield f"Other groups: only the {n_groups} groups{by} were compared, and no parts of them."


def _of_model(content: Content, estimator: Any) -> Iterator[str]:
    if estimator is None:
        yield (
            "The model: its features, probabilities, calibration and other thresholds are not "
            "known, since only its predictions were given."
        )
        return
    if content["thresholds"] is None:
        yield (
            "Probabilities: the model gives none, or the rows hold one label only, so calibration "
            "and other thresholds are left out."
        )
    else:
        yield "Other thresholds have no intervals: the numbers there are those of these rows."
    if content["importance"] is None:
        yield "Which features decide: only models with built-in trees tell."
    if content["proxies"] is None:
        yield (
            "Proxies: whether features stand in for the sensitive columns was not looked at; "
            "fairproj check does."
        )
    if content["price"] is None:
        yield "The price of the constraint: there is no model without it to compare with."
    if content["frontier"] is None:
        yield "Other settings: which gap they would give, at which accuracy (--frontier)."


def _of_rows(content: Content) -> Iterator[str]:
    if content["data"]["seen"] is None:
        yield "Whether the model has seen these rows in training: nothing records it."
    elif content["data"]["seen"]:
        yield "New rows: the model was trained on these."
    yield "Change over time: all rows were taken together."
