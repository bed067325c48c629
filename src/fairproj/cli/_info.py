"""``fairproj info``: what a model file holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fairproj.cli._app import AsJson, report_errors
from fairproj.cli._console import print_json, print_line, show_table
from fairproj.cli._files import ModelPath, Trust, open_model
from fairproj.cli._record import TrainingRecord, read_record
from fairproj.cli._show import show_price
from fairproj.report._frontier import METHODS
from fairproj.report._price import price_content
from fairproj.report._words import aim, certificate_terms, certificate_words, decision

_UNKNOWN = "not recorded"


@report_errors
def info(model: ModelPath, trust: Trust = None, as_json: AsJson = False) -> None:
    """Show what a model file holds. Opening one never runs code from it."""
    opened = open_model(model, trust)
    if as_json:
        print_json(_content(opened))
        return
    show_table(str(model), ["", ""], _rows(opened))
    record, certificate = read_record(opened), opened.certificate_
    show_table(certificate.title, ["", ""], certificate.rows())
    limits = (record.tested, opened, record.searched) if record else ((), opened)
    for sentence in (*certificate_words(certificate, *limits), certificate_terms(certificate)):
        print_line(sentence)
    print_line()
    if hasattr(opened, "price_"):
        searched = record is not None and record.alternatives is not None
        show_price(price_content(opened.price_, searched=searched, useful=certificate.useful))


def _rows(model: Any) -> list[list[Any]]:
    content, record = _content(model), read_record(model)
    parameters = content["parameters"]
    slack = "max_gap" if "max_gap" in parameters else "epsilon"
    search = (record and record.search_reason) or "none"
    task = None if record is None else record.task
    confirmed = None if record is None else record.confirmation
    return [
        ["method", METHODS[content["estimator"]]],
        ["command", record.command if record else _UNKNOWN],
        ["classes", ", ".join(content["classes"])],
        ["positive label", content["positive"]],
        ["label", task.label if task else _UNKNOWN],
        ["sensitive", ", ".join(task.sensitive) if task else _UNKNOWN],
        ["groups", "; ".join(content["groups"])],
        ["missing groups", task.missing_groups.value if task else _UNKNOWN],
        ["features", f"{content['n_features']}: {', '.join(content['features'] or [])}"],
        ["dropped columns", (", ".join(task.dropped or []) or "none") if task else _UNKNOWN],
        ["constraint", _list(model.constraints)],
        ["target", _target(record)],
        [slack, _bound(getattr(model, slack), record)],
        ["class weight", _list(parameters.get("class_weight") or "none")],
        *(
            [name.replace("_", " "), f"{parameters[name]:g}"]
            for name in ("selection_rate", "max_false_positive_rate", "max_false_negative_rate")
            if parameters.get(name) is not None
        ),
        *(["decision", sentence] for sentence in decision(model)),
        ["trained on", record.data.name if record else _UNKNOWN],
        ["checksum of the data", f"SHA-256 {record.data.sha256}" if record else _UNKNOWN],
        ["weights", (task.weights or "none") if task else _UNKNOWN],
        ["time column", (task.time or "none") if task else _UNKNOWN],
        ["held out", _held_out(record)],
        ["search", search if record else _UNKNOWN],
        ["confirmed", (confirmed.reason if confirmed else "not tested") if record else _UNKNOWN],
        *(["found before training", one.words] for one in (record.findings if record else [])),
    ]


def _target(record: TrainingRecord | None) -> str:
    """The limits that the user asked for."""
    if record is None:
        return _UNKNOWN
    limits = [
        f"a gap of at most {target.max_gap:g} in {target.metric}"
        for target in record.targets
        if target.max_gap is not None
    ]
    return ", and ".join(limits) or "none"


def _held_out(record: TrainingRecord | None) -> str:
    if record is None:
        return _UNKNOWN
    return "none" if record.held_out is None else record.held_out.which


def _group_name(group: Any) -> str:
    """The group as text; one of several sensitive columns is a tuple."""
    return ", ".join(map(str, group)) if isinstance(group, tuple) else str(group)


def _bound(value: Any, record: TrainingRecord | None) -> str:
    """What training bounded gaps by; the aim of one that was tested is not the user's limit."""
    if record is None or not record.tested:
        return _list(value)
    return aim(np.ravel(value).tolist(), record.tested)


def _list(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _content(model: Any) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    parameters = model.get_params(deep=False)
    return {
        "estimator": type(model).__name__,
        "classes": [str(label) for label in model.classes_.tolist()],
        "positive": str(model.classes_[1] if model.pos_label is None else model.pos_label),
        "groups": [_group_name(group) for group in model.group_values_],
        "n_features": int(model.n_features_in_),
        "features": None if names is None else names.tolist(),
        "parameters": {name: _to_json(value) for name, value in parameters.items()},
        "certificate": model.certificate_.to_dict(),
        "threshold": getattr(model, "threshold_", None),
        "price": model.price_.to_dict() if hasattr(model, "price_") else None,
        "stop": model.history_.stop_reason.value,
        "metadata": model.metadata_,
    }


def _to_json(value: Any) -> Any:
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if value is None or isinstance(value, str) or is_number else str(value)
