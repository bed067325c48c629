"""``fairproj audit``: rates and gaps of any model's predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from fairproj.cli._app import AsJson, command_line, report_errors, statistic_option
from fairproj.cli._console import print_json, print_line
from fairproj.cli._files import Trust, check_order, feature_names, feature_types, open_model
from fairproj.cli._record import TrainingRecord, read_record
from fairproj.cli._rows import (
    DATA_GROUP,
    Positive,
    Rows,
    Task,
    check_kinds,
    check_no_missing,
    find_label,
    is_spelling,
    read_rows,
)
from fairproj.cli._show import exit_code, show_audit
from fairproj.data.checks import listing
from fairproj.report import Source, summarize_estimator, summarize_predictions

_DEFAULT_METRIC = "equal_opportunity"

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="[MODEL] DATA",
        help="A model file and a data file, or a data file alone with --predictions.",
    ),
]
OptionalLabel = Annotated[
    str | None,
    typer.Option(
        "--label",
        help="The column with the true label; by default that of training.",
        rich_help_panel=DATA_GROUP,
    ),
]
OptionalSensitive = Annotated[
    list[str] | None,
    typer.Option(
        "--sensitive",
        help="A column that defines the groups; by default those of training. May be repeated.",
        rich_help_panel=DATA_GROUP,
    ),
]
Predictions = Annotated[
    str | None,
    typer.Option(help="The column with the predictions of any model.", rich_help_panel=DATA_GROUP),
]
MaxGap = Annotated[float | None, typer.Option(help="The largest gap allowed.", min=0, max=1)]
Confidence = Annotated[float, typer.Option(help="Confidence of each interval.")]
Metric = Annotated[
    str | None,
    statistic_option(
        "The gap to compare with --max-gap; by default that of training, or equal_opportunity."
    ),
]


@report_errors
def audit(
    files: Files,
    predictions: Predictions = None,
    label: OptionalLabel = None,
    sensitive: OptionalSensitive = None,
    positive: Positive = None,
    metric: Metric = None,
    max_gap: MaxGap = None,
    confidence: Confidence = 0.95,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Measure rates by group and gaps between groups.

    Each comes with an exact confidence interval.

    A model of fairproj train: fairproj audit model.fairproj adult.csv

    The predictions of any other model: fairproj audit scored.csv --predictions predicted --label
    income --sensitive sex

    With --max-gap, the exit code is 0 if the gap is within it, 3 if it is above, and 4 if there are
    too few rows to tell. In the file that a model was trained from, only the rows held out from
    training are used.
    """
    audited = read_audited(files, predictions, label, sensitive, positive, metric, trust)
    content = audited.summarize(max_gap, confidence, audited.source(command_line()))
    if as_json:
        print_json(content)
    else:
        show_audit(content)
        print_line(content["caveats"][0])
    raise typer.Exit(0 if max_gap is None else exit_code(content))


@dataclass(frozen=True)
class Audited:
    """Predictions to audit: a model and rows, or rows and a column of predictions.

    Attributes
    ----------
    model : classifier or None
    all_rows, rows : Rows
        All rows of the file, and those to audit.
    predicted : array or None
        The predictions, where there is no model.
    metric : str
    record : TrainingRecord or None
    as_trained : bool
        Whether the gap, the groups and the label are those the model was trained for. Only then
        do its target and its search apply.
    """

    model: Any
    all_rows: Rows
    rows: Rows
    predicted: Any
    metric: str
    record: TrainingRecord | None = None
    as_trained: bool = False

    @property
    def target(self) -> float | None:
        if self.record is None or not self.as_trained:
            return None
        return self.record.max_gap(self.metric)

    @property
    def other_targets(self) -> dict[str, float]:
        """Those of a model that was trained for several gaps."""
        if self.record is None or not self.as_trained:
            return {}
        return self.record.other_targets(self.metric)

    def source(self, command: str, more: dict[str, str] | None = None) -> Source:
        rows = self.rows
        return Source(rows.file.path.name, rows.which, rows.seen, rows.sha256, command, more or {})

    def summarize(
        self,
        max_gap: float | None,
        confidence: float,
        source: Source,
        frontier: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The content of a report; by default against the target of training."""
        rows = self.rows
        options: dict[str, Any] = {
            "sensitive_features": rows.groups,
            "metric": self.metric,
            "max_gap": self.target if max_gap is None else max_gap,
            "other_targets": self.other_targets if max_gap is None else {},
            "confidence": confidence,
            "pos_label": rows.positive,
            "frontier": frontier,
            "source": source,
        }
        if self.model is None:
            return summarize_predictions(rows.y, self.predicted, **options)
        return summarize_estimator(self.model, rows.X, rows.y, **options)


def read_audited(
    files: list[Path],
    predictions: str | None,
    label: str | None,
    sensitive: list[str] | None,
    positive: str | None,
    metric: str | None,
    trust: list[str] | None,
) -> Audited:
    """Read what the options of audit and report name."""
    if predictions is None:
        return _read_model(files, label, sensitive, positive, metric, trust)
    if len(files) != 1 or label is None or not sensitive:
        raise ValueError(
            "with --predictions, give one data file, --label and --sensitive, and no model"
        )
    return _read_predictions(files[0], predictions, Task(label, sensitive, positive), metric)


def _read_predictions(path: Path, column: str, task: Task, metric: str | None) -> Audited:
    if column in (task.label, *task.sensitive):
        raise ValueError(f"{column!r} cannot be both the predictions and something else")
    rows = read_rows(path, task, [column])
    check_no_missing(path, rows.frame, [column])
    check_kinds(path, rows.kinds, [column], "or give another column")
    predicted = _translate_labels(
        rows.X[column].to_numpy(),
        pd.unique(rows.y).tolist(),
        f"the predictions {column!r} of {path} have",
        f"the label {task.label!r} has",
        "give both the same values, and turn scores into labels first",
    )
    return Audited(None, rows, rows, predicted, metric or _DEFAULT_METRIC)


def _read_model(
    files: list[Path],
    label: str | None,
    sensitive: list[str] | None,
    positive: str | None,
    metric: str | None,
    trust: list[str] | None,
) -> Audited:
    if len(files) != 2:
        raise ValueError("give a model file and a data file, or a data file with --predictions")
    check_order(*files)
    model = open_model(files[0], trust)
    record = read_record(model)
    if record is not None:
        label, sensitive = label or record.task.label, sensitive or record.task.sensitive
        metric = metric or record.targets[0].metric
    if label is None or not sensitive:
        raise ValueError(
            f"{files[0]} does not record what it was trained for, as files of fairproj train do; "
            "add --label and --sensitive"
        )
    task = Task(label, sensitive)
    rows = _read_model_rows(model, files[0], files[1], task, positive)
    metric = metric or _DEFAULT_METRIC
    if record is None:
        return Audited(model, rows, rows, None, metric)
    as_trained = record.matches(metric, task) and rows.positive == _model_positive(model)
    return Audited(model, rows, record.unseen(rows), None, metric, record, as_trained)


def _read_model_rows(
    model: Any, model_path: Path, data_path: Path, task: Task, positive: str | None
) -> Rows:
    """All rows of a file, with the columns and the labels of the model."""
    features = feature_names(model, model_path)
    types = feature_types(model, features)
    rows = read_rows(data_path, task, features, types)
    if types:
        check_kinds(data_path, rows.kinds, features, "as they were in training")
    labels = model.classes_.tolist()
    y = _translate_labels(
        rows.y,
        labels,
        f"the label {task.label!r} of {data_path} has",
        "the model knows",
        "give both the same values",
    )
    if positive is None:
        return replace(rows, y=y, positive=_model_positive(model))
    return replace(rows, y=y, positive=find_label(positive, labels, "the model's labels"))


def _model_positive(model: Any) -> Any:
    return model.classes_.tolist()[-1] if model.pos_label is None else model.pos_label


def _translate_labels(y: Any, known: list[Any], given: str, wanted: str, advice: str) -> Any:
    """Labels as the known ones spell them: one file may hold 1 where another holds '1'."""
    values = pd.unique(y).tolist()
    known_by_value = {
        value: next((one for one in known if value == one or is_spelling(str(value), one)), None)
        for value in values
    }
    if None in known_by_value.values():
        raise ValueError(f"{given} {listing(values, 4)}, and {wanted} {listing(known)}; {advice}")
    return np.array([known_by_value[value] for value in y], dtype=np.asarray(known).dtype)
