"""``fairproj audit``: rates and gaps of any model's predictions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fairproj import load
from fairproj._data_files import check_columns
from fairproj.cli._common import AsJson, app, in_a_sentence, print_json, typed_command
from fairproj.cli._rows import Positive, Question, Rows, question_of, read_rows, unseen_rows
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
Metric = Annotated[Gap | None, typer.Option(help="The gap that --max-gap is about.")]


@app.command(
    help="Rates by group and gaps between groups, with exact intervals, of any model.\n\n"
    "Of a model from fairproj train: fairproj audit model.fairproj adult.csv\n\n"
    "Of predictions from elsewhere: fairproj audit scored.csv --predictions predicted --label "
    "income --sensitive sex\n\n"
    "With --max-gap the exit code tells: 0 within it, 3 above it, 4 too few rows to tell. Of the "
    "file that a model was trained from, the rows held out from training are taken."
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
    as_json: AsJson = False,
) -> None:
    model, rows, predicted, found_metric = audited(
        files, predictions, label, sensitive, positive, metric
    )
    content = summary(
        model,
        rows.X,
        rows.y,
        rows.groups,
        y_pred=predicted,
        metric=found_metric,
        max_gap=max_gap,
        confidence=confidence,
        pos_label=rows.positive,
        source=Source(rows.file.path.name, rows.which, rows.seen, rows.sha256, typed_command()),
    )
    if as_json:
        print_json(content)
    else:
        show_audit(content)
        for caveat in content["caveats"][:1]:
            typer.echo(caveat)
    raise typer.Exit(exit_code(content))


def audited(
    files: list[Path],
    predictions: str | None,
    label: str | None,
    sensitive: list[str] | None,
    positive: str | None,
    metric: Gap | None,
) -> tuple[Any, Rows, Any, str]:
    """The model if any, the rows, the predictions if given, and the gap to look at."""
    if predictions is not None:
        if len(files) != 1 or label is None or not sensitive:
            raise ValueError(
                "with --predictions, give one data file, --label and --sensitive, and no model"
            )
        rows = read_rows(files[0], Question(label, sensitive, positive), [predictions])
        return None, rows, rows.X[predictions].to_numpy(), (metric or Gap.equal_opportunity).value
    if len(files) != 2:
        raise ValueError("give a model file and a data file, or a data file with --predictions")
    model = load(files[0])
    if label is None or not sensitive:
        asked = question_of(model)
        asked = Question(
            label or asked.label,
            sensitive or asked.sensitive,
            positive or asked.positive,
            asked.dropped,
            use_sensitive=True,
        )
    else:
        asked = Question(label, sensitive, positive, use_sensitive=True)
    rows = unseen_rows(model, read_rows(files[1], asked))
    known = getattr(model, "metadata_", {}).get("metric", Gap.equal_opportunity.value)
    return model, _with_features(model, rows), None, metric.value if metric else str(known)


def _with_features(model: Any, rows: Rows) -> Rows:
    """The columns that the model was trained on."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return rows
    check_columns(rows.file.path, list(rows.X.columns), list(names))
    return replace(rows, X=rows.X[list(names)])
