"""``fairproj export``: the model for other programs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from fairproj.cli._app import AsJson, Force, report_errors
from fairproj.cli._console import print_json, print_line
from fairproj.cli._files import ModelPath, Trust, check_outputs, open_model
from fairproj.inference.report import positive_label
from fairproj.io import exports


class Format(Enum):
    lightgbm = "lightgbm"
    xgboost = "xgboost"
    onnx = "onnx"


_WRITERS = {
    Format.lightgbm: exports.to_lightgbm,
    Format.xgboost: exports.to_xgboost,
    Format.onnx: exports.to_onnx,
}


@report_errors
def export(
    model: ModelPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    to: Annotated[
        Format | None,
        typer.Option(help="The format; by default that of the library which grew the trees."),
    ] = None,
    trust: Trust = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a model for other programs, as LightGBM text, XGBoost JSON or ONNX.

    fairproj export model.fairproj --to onnx -o model.onnx
    """
    check_outputs([output], force=force, inputs=[model])
    fitted = open_model(model, trust)
    to = to or _own_format(fitted)
    _WRITERS[to](fitted, output)
    if as_json:
        print_json({"written": str(output), "format": to.value})
    else:
        print_line(f"Written: {output}")
        print_line(_score_words(fitted, to))


def _score_words(model: Any, to: Format) -> str:
    """Which label the exported score is about, and the threshold to use."""
    positive, (first, second) = positive_label(model), model.classes_.tolist()
    cut = getattr(model, "threshold_", 0.5)
    if to is Format.onnx:
        return (
            f"The output 'probabilities' has the columns '{first}' and '{second}'; 'label' is "
            f"'{positive}' when the probability of '{positive}' exceeds {cut:.4g}."
        )
    score = f"The exported model predicts the probability of '{second}'"
    if positive == second:
        return f"{score}; use the threshold {cut:.4g}: above it, the label is '{positive}'."
    return f"{score}; use the threshold {1 - cut:.4g}: below it, the label is '{positive}'."


def _own_format(model: Any) -> Format:
    return Format.xgboost if model.engine == "xgboost" else Format.lightgbm
