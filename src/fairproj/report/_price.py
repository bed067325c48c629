"""What a constraint cost: a model beside the same settings without a constraint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairproj.constraints import STATISTICS
from fairproj.data.cells import CellCounts
from fairproj.data.checks import plain_labels
from fairproj.data.sample import make_sample
from fairproj.estimators.price import Price, measure_price
from fairproj.inference.paired import paired_difference_interval
from fairproj.report._content import Content, finite
from fairproj.report._words import confidence_words, percent, points, target_gap

_NAMES = {
    "accuracy": "accuracy",
    "auc": "ROC AUC",
    "log_loss": "log loss",
    "calibration_error": "calibration error",
    "group_calibration_error": "calibration error, worst group",
}


@dataclass(frozen=True)
class Comparison:
    """A model and the same settings without a constraint, on the same rows.

    Attributes
    ----------
    price : Price
    plain : CellCounts
        Of the model without a constraint.
    only_model, only_plain : int
        Rows that only one of the two predicts correctly.
    """

    price: Price
    plain: CellCounts
    only_model: int
    only_plain: int


def measure_on_rows(model: Any, X: Any, y: Any, sensitive_features: Any) -> Price | None:
    """The price on rows that neither model was trained on; None where all have one label."""
    if len(np.unique(plain_labels(y))) < 2:
        return None
    sample = make_sample(X, y, sensitive_features, None, pos_label=model.pos_label)
    encoded = replace(sample, X=model.to_matrix(X, missing="score"), cache={})
    return replace(measure_price(model, model.baseline_, encoded), rows="held-out rows")


def comparison_content(compared: Comparison, content: Content) -> Content:
    """What the constraint cost on the rows of a report, with an interval for the accuracy."""
    measured = compared.price
    if content["data"]["seen"]:
        measured = replace(measured, rows="training rows")
    elif content["data"]["seen"] is None:
        measured = replace(measured, rows="given rows")
    statistic = STATISTICS[content["target"]["metric"]]
    gap = target_gap(content)["estimate"]
    price = price_content(measured, statistic.words, gap, statistic.value(compared.plain))
    if not content["data"]["seen"]:
        price["interval"] = _interval(compared, content["confidence"])
    return price


def _interval(compared: Comparison, confidence: float) -> Content:
    n_rows = compared.price.n_rows
    pair = compared.only_model, compared.only_plain
    low, high = paired_difference_interval(*pair, n_rows, confidence)
    interval = {
        "estimate": (pair[0] - pair[1]) / n_rows,
        "low": low,
        "high": high,
        "only_model": pair[0],
        "only_plain": pair[1],
        "rows": n_rows,
    }
    return {**interval, "sentence": _interval_words(interval, confidence)}


def _interval_words(interval: Content, confidence: float) -> str:
    low, high = (f"{100 * interval[end]:+.1f}" for end in ("low", "high"))
    told = "" if interval["low"] > 0 or interval["high"] < 0 else ", which includes no change"
    text = (
        "For new people, the constraint changes the accuracy by between "
        f"{low} and {high} percentage points with {confidence_words(confidence)} confidence{told}. "
        f"This exact interval rests on the {interval['only_model']:,} rows that only the model "
        f"labels correctly, and the {interval['only_plain']:,} that only the plain one does. The "
        "other differences have no interval."
    )
    return text.replace("-", "\N{MINUS SIGN}")


def price_content(
    price: Price, gap_name: str = "", gap: float | None = None, plain_gap: float | None = None
) -> Content:
    """A title, a table and a sentence; with the gap of both models on the same rows, if given."""
    scores = [
        {"name": words, **price.to_frame().loc[name].to_dict()} for name, words in _NAMES.items()
    ]
    gaps = ""
    if gap is not None and plain_gap is not None:
        difference = gap - plain_gap
        scores.append(
            {"name": gap_name, "model": gap, "plain": plain_gap, "difference": difference}
        )
        gaps = (
            f" The {gap_name} is {points(gap)} with the constraint and {points(plain_gap)} without."
        )
    seen = ", where both models look better than they are" if "training" in price.rows else ""
    content: Content = {
        "title": f"What fairness cost, on {price.n_rows:,} {price.rows}{seen}",
        "scores": scores,
        "points": price.accuracy_points,
        "sentence": _sentence(price) + gaps,
        "interval": None,
    }
    return finite(content)  # type: ignore[no-any-return]


def _sentence(price: Price) -> str:
    both = (
        f"the model labels {percent(price.model.accuracy)} correctly, and the same settings "
        f"without a constraint {percent(price.plain.accuracy)}"
    )
    auc = f" The ROC AUC is {price.model.auc:.3f} with it and {price.plain.auc:.3f} without."
    cost = price.accuracy_points
    size = points(abs(cost) / 100)
    if size == points(0.0):
        return f"The constraint cost no accuracy: {both}.{auc}"
    if cost < 0:
        return f"The constraint cost no accuracy, which is {size} higher with it: {both}.{auc}"
    return f"The constraint cost {size} of accuracy: {both}.{auc}"
