"""``fairproj info``: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fairproj import load
from fairproj.cli._common import AsJson, app, in_a_sentence, print_json, say, show_table


@app.command(help="What a model file holds. Opening one never runs code from it.")
@in_a_sentence
def info(
    model: Annotated[Path, typer.Argument(help="A file of fairproj train or model.save().")],
    as_json: AsJson = False,
) -> None:
    found = load(model)
    content = _content(found)
    if as_json:
        print_json(content)
        return
    metadata = content["metadata"]
    question = metadata.get("question") or {}
    rows = [
        ["classes", ", ".join(content["classes"])],
        ["label", question.get("label", "not said")],
        ["sensitive", ", ".join(question.get("sensitive", [])) or "not said"],
        ["groups", ", ".join(content["groups"])],
        ["features", f"{content['n_features']}: {', '.join(content['features'] or [])}"],
        ["constraint", content["parameters"]["constraints"]],
        ["epsilon", content["parameters"]["epsilon"]],
        ["enforce", content["parameters"]["enforce"]],
        ["trained on", (metadata.get("data") or {}).get("name", "not said")],
        ["chosen because", (metadata.get("choice") or {}).get("reason", "it was not chosen")],
    ]
    show_table(str(model), ["", ""], rows)
    say()
    show_table(found.certificate_.title, ["", ""], found.certificate_.rows())


def _content(model: Any) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    parameters = model.get_params(deep=False)
    return {
        "classes": [str(label) for label in model.classes_.tolist()],
        "groups": [str(group) for group in model.group_values_],
        "n_features": int(model.n_features_in_),
        "features": None if names is None else names.tolist(),
        "parameters": {
            name: value if isinstance(value, str | int | float | None) else str(value)
            for name, value in parameters.items()
        },
        "certificate": model.certificate_.to_dict(),
        "stop": model.history_.stop_reason.value,
        "metadata": model.metadata_,
    }
