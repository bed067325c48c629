"""``fairproj report``: the page, Markdown, JSON and the model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.base import clone

from fairproj._files import write
from fairproj.cli._audit import (
    Confidence,
    Files,
    LabelIf,
    MaxGap,
    Metric,
    Predictions,
    SensitiveIf,
    audited,
)
from fairproj.cli._common import (
    Force,
    Jobs,
    app,
    in_a_sentence,
    refuse_to_overwrite,
    say,
    typed_command,
)
from fairproj.cli._rows import Positive, Rows, question_of, read_rows, training_rows
from fairproj.report import (
    Source,
    frontier_content,
    frontier_of_choice,
    model_card,
    summary,
    write_report,
)
from fairproj.report._summary import WAYS
from fairproj.selection import fairness_frontier

EPSILONS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3]
FOLDS = 3


@app.command(
    help="Write a report: one page that opens offline, and the same as Markdown or JSON.\n\n"
    "fairproj report model.fairproj adult.csv -o report.html -o report.json --card card.md\n\n"
    "The kind of file follows from its name. For a model of fairproj train and the file it was "
    "trained from, the frontier of accuracy and gap is drawn too (--no-frontier leaves it out)."
)
@in_a_sentence
def report(
    files: Files,
    output: Annotated[
        list[Path], typer.Option("--output", "-o", help="A .html, .md or .json file to write.")
    ],
    card: Annotated[Path | None, typer.Option(help="A model card to write, in Markdown.")] = None,
    predictions: Predictions = None,
    label: LabelIf = None,
    sensitive: SensitiveIf = None,
    positive: Positive = None,
    metric: Metric = None,
    max_gap: MaxGap = None,
    confidence: Confidence = 0.95,
    frontier: Annotated[
        bool, typer.Option(help="Fit along epsilon, with three folds of the training rows.")
    ] = True,
    jobs: Jobs = -1,
    force: Force = False,
) -> None:
    refuse_to_overwrite([*output, card], force)
    for path in output:
        if path.suffix.lower() not in (".html", ".htm", ".md", ".json"):
            raise ValueError(f"{path} has a name of unknown kind; name a .html, .md or .json file")
    model, rows, predicted, found_metric = audited(
        files, predictions, label, sensitive, positive, metric
    )
    metadata = getattr(model, "metadata_", {})
    drawn = _frontier(model, files[-1], found_metric, jobs) if model and frontier else None
    content = summary(
        model,
        rows.X,
        rows.y,
        rows.groups,
        y_pred=predicted,
        metric=found_metric,
        max_gap=metadata.get("max_gap") if max_gap is None else max_gap,
        confidence=confidence,
        pos_label=rows.positive,
        frontier=drawn,
        source=_source(rows, metadata),
    )
    for path in output:
        write_report(content, path)
        say(f"Report: {path}")
    if card is not None:
        write(card, model_card(content))
        say(f"Model card: {card}")


def _source(rows: Rows, metadata: dict[str, Any]) -> Source:
    command = typed_command()
    if metadata.get("command"):
        command = f"{metadata['command']}\n{command}"
    return Source(rows.file.path.name, rows.which, rows.seen, rows.sha256, command)


def _frontier(model: Any, data: Path, metric: str, jobs: int) -> dict[str, Any] | None:
    """The candidates the model was chosen from, or fits along epsilon on its training rows."""
    metadata = model.metadata_
    if metadata.get("choice"):
        return frontier_of_choice(metadata["choice"])
    if not metadata.get("question") or model.estimator is not None:
        return None
    rows = training_rows(model, read_rows(data, question_of(model)))
    if rows is None:
        return None
    epsilons = sorted({*EPSILONS, float(model.epsilon)})
    frontiers = [
        fairness_frontier(
            clone(model).set_params(enforce=way, n_jobs=1, verbose=False),
            rows.X,
            rows.y,
            sensitive_features=rows.groups,
            epsilons=epsilons,
            cv=FOLDS,
            name=name,
            n_jobs=jobs,
            verbose=True,
        )
        for way, name in WAYS.items()
    ]
    return frontier_content(
        frontiers,
        metric,
        chosen=(WAYS[model.enforce], float(model.epsilon)),
        note=f"Means and standard errors of {FOLDS} folds of the training rows.",
    )
