"""What decides what about whom: the first section of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairproj.data.checks import counted
from fairproj.inference.report import innermost
from fairproj.report._content import Content
from fairproj.report._source import Source
from fairproj.report._training import error_weights

_MOST_FEATURES = 40  # in the table; the content has them all
_MOST_GROUPS = 12


def subject(content: Content, source: Source, estimator: Any = None) -> list[list[str]]:
    """Pairs of a name and a text."""
    data = content["data"]
    return [
        ["Model", _model(source, estimator)],
        ["Label", source.label or "not named"],
        ["A positive prediction says", _positive(source.label, data["positive_label"])],
        ["Decided where", _threshold(content)],
        ["Sensitive columns", ", ".join(source.sensitive) or "not named"],
        ["Groups compared", _groups(data["groups"])],
        *_features(content["features"], source),
        *_weights(source, estimator),
        ["Rows", _rows(data)],
        ["Trained", source.trained or "date not recorded"],
        ["Report written", content["created"]],
    ]


def model_name(source: Source, estimator: Any = None) -> str:
    """What a report is about, as its title."""
    if source.model:
        return source.model
    return f"predictions in {source.data}" if estimator is None else kind_of(estimator)


def kind_of(estimator: Any) -> str:
    """The class of a classifier, and of the one inside it."""
    inner, name = innermost(estimator), type(estimator).__name__
    return name if inner is estimator else f"{name} around {type(inner).__name__}"


def _model(source: Source, estimator: Any) -> str:
    if estimator is None:
        return "not given: the predictions alone were audited"
    kind = kind_of(estimator)
    return f"{source.model} ({kind})" if source.model else kind


def _positive(label: str, value: str) -> str:
    return f"{label} is {value}" if label else value


def _threshold(content: Content) -> str:
    in_use = content["threshold"]
    if in_use is None:
        return "not known: the report was given decisions, not how they are made"
    return f"the probability of {content['data']['positive_label']} is above {in_use:.4g}"


def _groups(groups: Sequence[Content]) -> str:
    shown = [f"{row['group']} ({row['rows']:,})" for row in groups[:_MOST_GROUPS]]
    more = len(groups) - len(shown)
    counted = f"{len(groups)}, with their rows: "
    return counted + "; ".join(shown) + (f" and {more} more" if more else "")


def _rows(data: Content) -> str:
    which = f", {data['which']}" if data["which"] else ""
    return f"{counted(data['rows'], 'row')} of {data['name']}{which}"


def _weights(source: Source, estimator: Any) -> list[list[str]]:
    """How training weighted errors and rows, where it did."""
    errors = "" if estimator is None else error_weights(innermost(estimator))
    rows = [["Errors weighted", errors]] if errors else []
    if source.weights:
        rows.append(["Rows weighted", f"in training, by the column {source.weights}"])
    return rows


def _features(features: Content | None, source: Source) -> list[list[str]]:
    if features is None:
        return [["Features", "not known"]]
    names = features["names"]
    shown = ", ".join(names[:_MOST_FEATURES])
    more = f" and {len(names) - _MOST_FEATURES} more" if len(names) > _MOST_FEATURES else ""
    rows = [
        ["Features", f"{features['count']}: {shown}{more}" if names else f"{features['count']}"]
    ]
    if source.left_out:
        rows.append(["Columns left out", ", ".join(source.left_out)])
    if names and source.sensitive:
        used = ", ".join(features["sensitive"])
        rows.append(["Sensitive columns among the features", used or "none"])
    return rows


def features_of(estimator: Any, source: Source) -> Content | None:
    """The columns that a classifier reads, as far as it knows them."""
    count = getattr(estimator, "n_features_in_", None)
    if count is None:
        return None
    names = [str(name) for name in np.ravel(getattr(estimator, "feature_names_in_", []))]
    return {
        "count": int(count),
        "names": names,
        "left_out": list(source.left_out),
        "sensitive": [name for name in source.sensitive if name in names],
    }
