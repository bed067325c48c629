"""``fairproj export``: the model for other programs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from fairproj.io import exports
from fairproj.cli._common import (
    AsJson,
    Force,
    app,
    in_a_sentence,
    print_json,
    refuse_to_overwrite,
    say,
)
from fairproj.cli._model import ModelFile, Trust, open_model


class Target(Enum):
    lightgbm = "lightgbm"
    onnx = "onnx"


@app.command(
    help="Write the model for other programs: LightGBM's own text, or ONNX.\n\n"
    "fairproj export model.fairproj --to onnx -o model.onnx",
    short_help="LightGBM's text, or ONNX.",
)
@in_a_sentence
def export(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    to: Annotated[Target, typer.Option(help="The format.")] = Target.lightgbm,
    trust: Trust = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    refuse_to_overwrite([output], force, [model])
    found = open_model(model, trust)
    if to is Target.onnx:
        exports.to_onnx(found, output)
    else:
        exports.to_lightgbm(found, output)
    if as_json:
        print_json({"written": str(output), "format": to.value})
    else:
        say(f"Written: {output}")
