"""What a constraint cost: a model beside its plain model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairproj.constraints import STATISTICS
from fairproj.data.cells import CellCounts
from fairproj.data.checks import percent
from fairproj.estimators.price import REMARKS, Price
from fairproj.inference.paired import paired_difference_interval
from fairproj.report._content import Content, finite
from fairproj.report._words import confidence_words, points, target_gap

_NAMES = {
    "accuracy": "accuracy",
    "auc": "ROC AUC",
    "log_loss": "log loss",
    "calibration_error": "calibration error",
    "group_calibration_error": "calibration error, worst group",
}
# By whether the plain model is that of a search for alternatives.
_PLAIN = {False: "the same settings without a constraint", True: "the plain model of the search"}
_ABOUT = {
    False: "The plain model has the same settings and was trained on the same rows, without a "
    "constraint.",
    True: "The plain model is the one that the search for alternatives compared with. It has no "
    "constraint; its other settings may differ from those of the model.",
}

_NOT_USEFUL = "The model is not useful, so these numbers do not tell what a constraint costs."


@dataclass(frozen=True)
class Comparison:
    """A model and its plain model, which has no constraint, on the same rows.

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


def balanced_accuracy(counts: CellCounts) -> float:
    """The mean over the labels of the share predicted correctly."""
    size, correct = counts.size.sum(axis=0), counts.correct.sum(axis=0)
    present = size > 0  # as scikit-learn, which leaves out a class without rows
    return float(np.mean(correct[present] / size[present]))


def comparison_content(
    compared: Comparison,
    content: Content,
    *,
    searched: bool,
    weighted: bool = False,
    useful: bool = True,
) -> Content:
    """What the constraint cost on the rows of a report, with an interval for the accuracy.

    Where errors were ``weighted`` by label, the balanced accuracy stands beside the accuracy. Of a
    model that is not ``useful`` the numbers are shown and not judged.
    """
    measured = compared.price
    if content["data"]["seen"]:
        measured = replace(measured, rows="training rows")
    elif content["data"]["seen"] is None:
        measured = replace(measured, rows="given rows")
    gaps = [_gap_row(target, compared.plain, content) for target in content["targets"]]
    price = price_content(measured, gaps, searched=searched, useful=useful)
    if weighted:
        name = "balanced accuracy"
        model = next(row["value"] for row in content["scores"] if row["name"] == name)
        plain = balanced_accuracy(compared.plain)
        row = {"name": name, "model": model, "plain": plain, "difference": model - plain}
        price["scores"].insert(1, row)
    same = measured.model == measured.plain
    if useful and not content["data"]["seen"] and not same:
        price["interval"] = _interval(compared, content["confidence"])
    return price


def _gap_row(target: Content, plain: CellCounts, content: Content) -> Content:
    """A gap of both models on the same rows, with its limit, if there is one."""
    limit, gap = target["max_gap"], target_gap({**content, "target": target})["estimate"]
    plain_gap = STATISTICS[target["metric"]].value(plain)
    known = gap is not None and math.isfinite(plain_gap)
    return {
        "name": target["name"] + ("" if limit is None else f" (at most {limit:g})"),
        "gap": target["name"],
        "model": gap,
        "plain": plain_gap,
        "difference": gap - plain_gap if known else None,
    }


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
    text = (
        f"For new people, the constraint {_change(interval['low'], interval['high'])} with "
        f"{confidence_words(confidence)} confidence. This exact interval rests on the "
        f"{interval['only_model']:,} rows that only the model labels correctly, and the "
        f"{interval['only_plain']:,} that only the unconstrained one does. The other differences "
        "have no interval."
    )
    return text.replace("-", "\N{MINUS SIGN}")


def _change(low: float, high: float) -> str:
    """What an interval says about the accuracy, in percentage points."""
    least, most = (f"{100 * size:.1f}" for size in sorted((abs(low), abs(high))))
    if high < 0:
        return f"lowers the accuracy by {least} to {most} percentage points"
    if low > 0:
        return f"raises the accuracy by {least} to {most} percentage points"
    return (
        f"changes the accuracy by {100 * low:+.1f} to {100 * high:+.1f} percentage points, which "
        "includes no change,"
    )


def price_content(
    price: Price,
    gaps: Sequence[Content] = (),
    *,
    searched: bool = False,
    useful: bool = True,
) -> Content:
    """A title, a table and sentences; with gaps of both models on the same rows, if given.

    With ``searched`` the plain model is that of a search for alternatives, and need not have the
    model's settings. Of a model that is not ``useful``, no sentence says what the constraint cost.
    """
    scores = [
        {"name": words, **price.to_frame().loc[name].to_dict()} for name, words in _NAMES.items()
    ]
    told = ""
    for row in gaps:
        if row["difference"] is not None:
            scores.append({name: row[name] for name in ("name", "model", "plain", "difference")})
            told += (
                f" The {row['gap']} is {points(row['model'])} with the constraint and "
                f"{points(row['plain'])} without."
            )
    content: Content = {
        "title": f"What fairness cost, on {price.n_rows:,} {price.rows}{REMARKS[price.rows]}",
        "scores": scores,
        "points": price.accuracy_points,
        "about": _ABOUT[searched],
        "sentence": _sentence(price, _PLAIN[searched]) + told if useful else _NOT_USEFUL,
        "interval": None,
    }
    return finite(content)  # type: ignore[no-any-return]


def _sentence(price: Price, plain: str) -> str:
    both = (
        f"the model labels {percent(price.model.accuracy)} correctly, and {plain} "
        f"{percent(price.plain.accuracy)}"
    )
    auc = f" The ROC AUC is {price.model.auc:z.3f} with it and {price.plain.auc:z.3f} without."
    cost = price.accuracy_points
    size = points(abs(cost) / 100)
    if price.model == price.plain:
        return (
            "The constraint changed nothing: with it and without it, the model labels "
            f"{percent(price.model.accuracy)} correctly, and its ROC AUC is {price.model.auc:z.3f}."
        )
    if size == points(0.0):
        return f"The constraint cost no accuracy: {both}.{auc}"
    if cost < 0:
        return f"The constraint cost no accuracy, which is {size} higher with it: {both}.{auc}"
    return f"The constraint cost {size} of accuracy: {both}.{auc}"
