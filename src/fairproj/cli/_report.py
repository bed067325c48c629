"""``fairproj report``: a page, Markdown, JSON and a model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.base import clone

from fairproj import FairBoostClassifier
from fairproj.cli._app import AsJson, Force, Jobs, command_line, report_errors
from fairproj.cli._audit import (
    Audited,
    Confidence,
    Files,
    MaxGap,
    Metric,
    OptionalLabel,
    OptionalSensitive,
    Predictions,
    Said,
    ScoreThreshold,
    Simultaneous,
    read_all_rows,
    read_audited,
)
from fairproj.cli._console import print_json, print_line
from fairproj.cli._files import Trust, check_outputs
from fairproj.cli._frontier import fit_frontiers, methods_for
from fairproj.cli._rows import Rows
from fairproj.cli._task import Positive
from fairproj.data.user_warning import warn_user
from fairproj.io.atomic import write_text
from fairproj.io.records import to_dict
from fairproj.report import Source, frontier_content, model_card, search_content, write_report
from fairproj.report._frontier import METHODS
from fairproj.selection.splits import check_sizes, make_cells

_VALUES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
_FOLDS = 3
# What the other method of a frontier takes over; learning rates and sizes of trees mean less there.
_SHARED = ("constraints", "n_estimators", "max_bins", "pos_label", "random_state")


@report_errors
def report(
    files: Files,
    output: Annotated[
        list[Path],
        typer.Option(
            "--output", "-o", help="A .html, .md or .json file to write. May be repeated."
        ),
    ],
    card: Annotated[
        Path | None, typer.Option(help="A Markdown file to write a model card to.")
    ] = None,
    predictions: Predictions = None,
    threshold: ScoreThreshold = None,
    label: OptionalLabel = None,
    sensitive: OptionalSensitive = None,
    positive: Positive = None,
    metric: Metric = None,
    max_gap: MaxGap = None,
    confidence: Confidence = 0.95,
    simultaneous: Simultaneous = False,
    frontier: Annotated[
        bool,
        typer.Option(
            "--frontier",
            help="Add the frontier of accuracy and gap: fit both methods along a range of targets, "
            f"with {_FOLDS} folds of the training rows. Needs the file the model was trained from.",
        ),
    ] = False,
    trust: Trust = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a report as HTML, Markdown or JSON.

    fairproj report model.fairproj adult.csv -o report.html -o report.json --card card.md

    The suffix of a file decides its kind; an HTML page opens offline. Nothing is trained unless
    --frontier is given. For a model of fairproj train --search, the report shows the candidates of
    the search.
    """
    check_outputs([*output, card], force=force, inputs=files)
    for path in output:
        if path.suffix.lower() not in (".html", ".htm", ".md", ".json"):
            raise ValueError(f"{path} has an unknown suffix; name a .html, .md or .json file")
    said = Said(predictions, threshold)
    audited = read_audited(files, said, label, sensitive, positive, metric, trust)
    points = _search_points(audited)
    if frontier:
        points = _fit_frontier(audited, jobs, verbose=not as_json) or points
    content = audited.summarize(
        max_gap,
        confidence,
        _source(audited),
        points,
        simultaneous=simultaneous,
        verbose=not as_json,
    )
    for path in output:
        write_report(content, path)
    if card is not None:
        write_text(card, model_card(content))
    _show_written(output, card, content["verdict"], as_json)


def _show_written(output: list[Path], card: Path | None, verdict: str, as_json: bool) -> None:
    if as_json:
        written = [str(path) for path in [*output, card] if path is not None]
        print_json({"written": written, "verdict": verdict})
        return
    for path in output:
        print_line(f"Report: {path}")
    if card is not None:
        print_line(f"Model card: {card}")


def _source(audited: Audited) -> Source:
    record = audited.record
    more = {}
    if record is not None and record.search_reason is not None:
        more["Search, as the model file says"] = record.search_reason
    if record is not None and record.confirmation is not None and audited.as_trained:
        more["Confirmation, as the model file says"] = record.confirmation.reason
    return audited.source(command_line(), more)


def _search_points(audited: Audited) -> dict[str, Any] | None:
    """The candidates of the search that found the model, if they are about the same gap."""
    if audited.record is None or audited.record.search is None or not audited.as_trained:
        return None
    return search_content(to_dict(audited.record.search))


def _fit_frontier(audited: Audited, jobs: int, *, verbose: bool) -> dict[str, Any] | None:
    """Fits of both methods on the rows that the model was trained on.

    None, with a warning, where these cannot be divided into folds or had weights in training.
    """
    record = audited.record
    if record is None or not audited.as_trained or not record.is_data(audited.sha256):
        raise ValueError(
            "--frontier needs a model of fairproj train with the file it was trained from, and the "
            "gap, the groups and the positive label of training; leave it out"
        )
    assert audited.model is not None
    model = audited.model.model
    if len(audited.data.files) > 1 or (record.held_out is not None and record.held_out.streamed):
        raise ValueError(
            "--frontier fits models in memory, and this model was trained without reading its data "
            "into memory; leave it out"
        )
    parameter = "max_gap" if isinstance(model, FairBoostClassifier) else "epsilon"
    value = getattr(model, parameter)
    if model.estimator is not None or not isinstance(value, int | float):
        raise ValueError(
            f"--frontier needs built-in trees and one number as {parameter}, as fairproj train "
            "makes models; leave it out"
        )
    rows = record.trained_on(read_all_rows(audited))
    if problem := _no_frontier(rows):
        warn_user(f"the frontier is left out: {problem}")
        return None
    frontiers = fit_frontiers(
        _methods(model, audited.metric),
        rows,
        sorted({*_VALUES, float(value)}),
        _FOLDS,
        jobs,
        verbose=verbose,
    )
    return frontier_content(
        frontiers,
        audited.metric,
        chosen=(METHODS[type(model).__name__], float(value)),
        note=f"Means and standard errors of {_FOLDS} folds of the training rows.",
    )


def _no_frontier(rows: Rows) -> str:
    """Why there can be no frontier of these rows; empty if there can."""
    if rows.weight is not None:
        return "training weighed the rows, and a frontier does not"
    try:
        check_sizes(make_cells(rows.y, rows.groups), _FOLDS, f"the frontier with {_FOLDS} folds")
    except ValueError as error:
        return str(error)
    return ""


def _methods(model: Any, metric: str) -> list[Any]:
    """The model's estimator and that of the other method, with its own trees and steps."""
    same = clone(model).set_params(n_jobs=1, verbose=False)
    shared = {name: getattr(model, name) for name in _SHARED}
    if isinstance(model, FairBoostClassifier):
        same.set_params(baseline=False)
    return [
        same if isinstance(model, method) else method(**shared) for method in methods_for(metric)
    ]
