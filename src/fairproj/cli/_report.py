"""``fairproj report``: the page, Markdown, JSON and the model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.base import clone

from fairproj.io.atomic import write
from fairproj.cli._audit import (
    Audited,
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
    AsJson,
    Force,
    Jobs,
    app,
    in_a_sentence,
    print_json,
    refuse_to_overwrite,
    say,
    typed_command,
)
from fairproj.cli._frontier import both_ways
from fairproj.cli._model import Trust
from fairproj.cli._record import types_of
from fairproj.cli._rows import Positive, read_rows
from fairproj.report import (
    Source,
    frontier_content,
    frontier_of_choice,
    model_card,
    summary,
    write_report,
)
from fairproj.report._summary import WAYS

EPSILONS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3]
FOLDS = 3


@app.command(
    help="Write a report: one page that opens offline, and the same as Markdown or JSON.\n\n"
    "fairproj report model.fairproj adult.csv -o report.html -o report.json --card card.md\n\n"
    "The kind of file follows from its name. For a model of fairproj train and the file it was "
    "trained from, the frontier of accuracy and gap is drawn too (--no-frontier leaves it out).",
    short_help="A page, Markdown, JSON, a model card.",
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
    trust: Trust = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    refuse_to_overwrite([*output, card], force, files)
    for path in output:
        if path.suffix.lower() not in (".html", ".htm", ".md", ".json"):
            raise ValueError(f"{path} has a name of unknown kind; name a .html, .md or .json file")
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
        frontier=_frontier(found, files[-1], jobs, as_json) if frontier else None,
        source=_source(found),
    )
    for path in output:
        write_report(content, path)
    if card is not None:
        write(card, model_card(content))
    if as_json:
        written = [str(path) for path in [*output, card] if path is not None]
        print_json({"written": written, "verdict": content["verdict"]})
        return
    for path in output:
        say(f"Report: {path}")
    if card is not None:
        say(f"Model card: {card}")


def _source(found: Audited) -> Source:
    rows, command = found.rows, typed_command()
    more = {}
    if found.record is not None:
        command = f"{found.record.command}\n{command}"
        if found.record.choice:
            more["How epsilon was chosen"] = str(found.record.choice.get("reason", ""))
    return Source(rows.file.path.name, rows.which, rows.seen, rows.sha256, command, more)


def _frontier(found: Audited, data: Path, jobs: int, quiet: bool) -> dict[str, Any] | None:
    """The candidates the model was chosen from, or fits along epsilon on its training rows."""
    record, model, metric = found.record, found.model, found.metric
    if record is None or not found.as_trained or model.estimator is not None:
        return None
    if record.choice:
        return frontier_of_choice(record.choice)
    if not record.is_file(found.rows):
        return None
    rows = record.trained_on(read_rows(data, record.question, types=types_of(model)))
    epsilons = sorted({*EPSILONS, float(model.epsilon)})
    template = clone(model).set_params(n_jobs=1, verbose=False)
    return frontier_content(
        both_ways(template, rows, epsilons, FOLDS, jobs, quiet),
        metric,
        chosen=(WAYS[model.enforce], float(model.epsilon)),
        note=f"Means and standard errors of {FOLDS} folds of the training rows.",
    )
