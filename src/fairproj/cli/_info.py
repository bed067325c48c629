"""``fairproj info``: what a model file holds."""

from __future__ import annotations

import math
from typing import Any

from fairproj.cli._common import AsJson, app, in_a_sentence, print_json, say, show_table
from fairproj.cli._model import ModelFile, Trust, open_model
from fairproj.cli._record import Record, record_of


@app.command(
    help="What a model file holds. Opening one never runs code from it.",
    short_help="What a model file holds.",
)
@in_a_sentence
def info(
    model: ModelFile,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    found = open_model(model, trust)
    content = _content(found)
    if as_json:
        print_json(content)
        return
    record = record_of(found)
    rows = [
        ["classes", ", ".join(content["classes"])],
        ["label", record.question.label if record else "not said"],
        ["sensitive", ", ".join(record.question.sensitive) if record else "not said"],
        ["groups", ", ".join(content["groups"])],
        ["features", f"{content['n_features']}: {', '.join(content['features'] or [])}"],
        ["constraint", content["parameters"]["constraints"]],
        ["epsilon", content["parameters"]["epsilon"]],
        ["enforce", content["parameters"]["enforce"]],
        ["trained on", record.data.get("name", "not said") if record else "not said"],
        ["chosen because", _reason(record)],
    ]
    show_table(str(model), ["", ""], rows)
    say()
    show_table(found.certificate_.title, ["", ""], found.certificate_.rows())


def _reason(record: Record | None) -> str:
    if record is None:
        return "not said"
    return str(record.choice["reason"]) if record.choice else "epsilon was given"


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _content(model: Any) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    parameters = model.get_params(deep=False)
    return {
        "classes": [str(label) for label in model.classes_.tolist()],
        "groups": [str(group) for group in model.group_values_],
        "n_features": int(model.n_features_in_),
        "features": None if names is None else names.tolist(),
        "parameters": {
            name: value if _is_plain(value) else str(value) for name, value in parameters.items()
        },
        "certificate": model.certificate_.to_dict(),
        "stop": model.history_.stop_reason.value,
        "metadata": model.metadata_,
    }
