"""What a constraint cost: a model beside the same settings without a constraint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fairproj.data.checks import plain_labels
from fairproj.data.sample import make_sample
from fairproj.estimators.price import Price, measure_price
from fairproj.report._content import Content, finite
from fairproj.report._words import percent, points

_NAMES = {
    "accuracy": "accuracy",
    "auc": "ROC AUC",
    "log_loss": "log loss",
    "calibration_error": "calibration error",
    "group_calibration_error": "calibration error, worst group",
}


def measure_on_rows(model: Any, X: Any, y: Any, sensitive_features: Any) -> Price | None:
    """The price on rows that neither model was trained on; None where all have one label."""
    if len(np.unique(plain_labels(y))) < 2:
        return None
    sample = make_sample(X, y, sensitive_features, None, pos_label=model.pos_label)
    encoded = replace(sample, X=model.to_matrix(X), cache={})
    return replace(measure_price(model, model.baseline_, encoded), rows="held-out rows")


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
    }
    return finite(content)  # type: ignore[no-any-return]


def _sentence(price: Price) -> str:
    both = (
        f"the model labels {percent(price.model.accuracy)} correctly, and the same settings "
        f"without a constraint {percent(price.plain.accuracy)}"
    )
    cost = price.accuracy_points
    size = points(abs(cost) / 100)
    if size == points(0.0):
        return f"The constraint cost no accuracy: {both}."
    if cost < 0:
        return f"The constraint cost no accuracy, which is {size} higher with it: {both}."
    return f"The constraint cost {size} of accuracy: {both}."
