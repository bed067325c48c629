"""``fairproj audit``: rates and gaps of any model's predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from fairproj.data.checks import listing
from fairproj.cli._common import AsJson, app, in_a_sentence, print_json, say, typed_command
from fairproj.cli._model import Trust, open_model, refuse_swapped
from fairproj.cli._record import Record, record_of, types_of
from fairproj.cli._rows import (
    Positive,
    Question,
    Rows,
    find_label,
    means,
    read_rows,
    refuse_missing,
)
from fairproj.cli._show import exit_code, show_audit
from fairproj.cli._train import Gap
from fairproj.report import Source, summary

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="[MODEL] DATA", help="A model file and data, or data alone with --predictions."
    ),
]
LabelIf = Annotated[str | None, typer.Option("--label", help="The column with the true label.")]
SensitiveIf = Annotated[
    list[str] | None, typer.Option("--sensitive", help="A column that tells the groups apart.")
]
Predictions = Annotated[
    str | None, typer.Option(help="The column that holds the predictions of any model.")
]
MaxGap = Annotated[float | None, typer.Option(help="The largest gap allowed.", min=0, max=1)]
Confidence = Annotated[float, typer.Option(help="Of every interval.")]
Metric = Annotated[
    Gap | None,
    typer.Option(
        help="The gap that --max-gap is about; by default the one the model was trained for."
    ),
]


@app.command(
    help="Rates by group and gaps between groups, with exact intervals, of any model.\n\n"
    "Of a model from fairproj train: fairproj audit model.fairproj adult.csv\n\n"
    "Of predictions from elsewhere: fairproj audit scored.csv --predictions predicted --label "
    "income --sensitive sex\n\n"
    "With --max-gap the exit code tells: 0 within it, 3 above it, 4 too few rows to tell. Of the "
    "file that a model was trained from, the rows held out from training are taken.",
    short_help="Rates and gaps of any model.",
)
@in_a_sentence
def audit(
    files: Files,
    predictions: Predictions = None,
    label: LabelIf = None,
    sensitive: SensitiveIf = None,
    positive: Positive = None,
    metric: Metric = None,
    max_gap: MaxGap = None,
    confidence: Confidence = 0.95,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    found = audited(files, predictions, label, sensitive, positive, metric, trust)
    rows = found.rows
    content = summary(
        found.model,
        rows.X,
        rows.y,
        rows.groups,
        y_pred=found.predicted,
        metric=found.metric,
        max_gap=found.target if max_gap is None else max_gap,
        confidence=confidence,
        pos_label=rows.positive,
        source=Source(rows.file.path.name, rows.which, rows.seen, rows.sha256, typed_command()),
    )
    if as_json:
        print_json(content)
    else:
        show_audit(content)
        say(content["caveats"][0])
    raise typer.Exit(0 if max_gap is None else exit_code(content))


@dataclass(frozen=True)
class Audited:
    """The model if any, the rows, the predictions if given, the gap to look at and its target.

    ``as_trained``: whether that gap, groups and label are those the model was trained for. Only
    then do its target and its frontier mean anything here.
    """

    model: Any
    rows: Rows
    predicted: Any
    metric: str
    target: float | None
    record: Record | None
    as_trained: bool = False


def audited(
    files: list[Path],
    predictions: str | None,
    label: str | None,
    sensitive: list[str] | None,
    positive: str | None,
    metric: Gap | None,
    trust: list[str] | None,
) -> Audited:
    asked_metric = None if metric is None else metric.value
    if predictions is None:
        return _of_model(files, label, sensitive, positive, asked_metric, trust)
    if len(files) != 1 or label is None or not sensitive:
        raise ValueError(
            "with --predictions, give one data file, --label and --sensitive, and no model"
        )
    if predictions in (label, *sensitive):
        raise ValueError(f"{predictions!r} cannot be both the predictions and something else")
    rows = read_rows(files[0], Question(label, sensitive, positive), [predictions])
    refuse_missing(files[0], rows.frame, [predictions])
    predicted = _as_known(
        rows.X[predictions].to_numpy(),
        pd.unique(rows.y).tolist(),
        f"the predictions {predictions!r} of {files[0]} have",
        f"the label {label!r} has",
        "name them alike, and turn scores into labels first",
    )
    known = asked_metric or Gap.equal_opportunity.value
    return Audited(None, rows, predicted, known, None, None)


def _of_model(
    files: list[Path],
    label: str | None,
    sensitive: list[str] | None,
    positive: str | None,
    metric: str | None,
    trust: list[str] | None,
) -> Audited:
    if len(files) != 2:
        raise ValueError("give a model file and a data file, or a data file with --predictions")
    refuse_swapped(files[0], files[1])
    model = open_model(files[0], trust)
    record = record_of(model)
    if record is None and (label is None or not sensitive):
        raise ValueError(
            f"{files[0]} does not say what it was trained for, as files of fairproj train do; name "
            "--label and --sensitive"
        )
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            f"{files[0]} was trained on an array without column names, so columns of a file cannot "
            "be told; use fairproj.load and fairness_report"
        )
    asked = Question(
        label or (record.question.label if record else ""),
        sensitive or (record.question.sensitive if record else []),
    )
    rows = read_rows(files[1], asked, [str(name) for name in names], types_of(model))
    known = model.classes_.tolist()
    usual = known[-1] if model.pos_label is None else model.pos_label
    rows = replace(
        rows,
        y=_as_known(
            rows.y,
            known,
            f"the label {asked.label!r} of {files[1]} has",
            "the model knows",
            "name them alike",
        ),
        positive=usual if positive is None else find_label(positive, known, "the model's labels"),
    )
    metric = metric or (record.metric if record else Gap.equal_opportunity.value)
    if record is None:
        return Audited(model, rows, None, metric, None, None)
    as_trained = record.is_about(metric, asked) and rows.positive == usual
    target = record.max_gap if as_trained else None
    return Audited(model, record.unseen(rows), None, metric, target, record, as_trained)


def _as_known(y: Any, known: list[Any], said: str, beside: str, advice: str) -> Any:
    """The labels as they are known: a file may hold 1 where '1' is meant, or the reverse."""
    found = pd.unique(y).tolist()
    meant = {
        one: [label for label in known if one == label or means(str(one), label)] for one in found
    }
    if not all(meant.values()):
        raise ValueError(f"{said} {listing(found, 4)}, and {beside} {listing(known)}; {advice}")
    return np.array([meant[one][0] for one in y], dtype=np.asarray(known).dtype)
