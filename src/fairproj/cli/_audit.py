"""``fairproj audit``: rates and gaps of any model's predictions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fairproj.cli._app import AsJson, command_line, report_errors, statistic_option
from fairproj.cli._choice import Choice, unseen_rows
from fairproj.cli._console import print_json, print_line
from fairproj.cli._files import Trust, check_order, feature_names, names_data, open_model
from fairproj.cli._model_rows import (
    ModelRows,
    model_positive,
    summarize_tally,
    translate_labels,
)
from fairproj.cli._record import TrainingRecord, read_record
from fairproj.cli._rows import (
    DATA_GROUP,
    Positive,
    Rows,
    Task,
    check_kinds,
    check_no_missing,
    read_rows,
)
from fairproj.cli._show import exit_code, show_audit
from fairproj.cli._streams import check_names, checksum, find_keys
from fairproj.cli._tally import Tally
from fairproj.io.tables import DataFiles
from fairproj.report import Source

_DEFAULT_METRIC = "equal_opportunity"

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="[MODEL] DATA",
        help="A model file and data files, or data files alone with --predictions. A folder or a "
        "pattern such as 'data/*.parquet' names all data files in it.",
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
    source = audited.source(command_line())
    content = audited.summarize(max_gap, confidence, source, verbose=not as_json)
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
    model : ModelRows or None
        The model and how it reads the rows.
    data : DataFiles
    sha256 : str
        Of the data.
    positive : object
        The positive label.
    choice : Choice
        Which of the rows are audited.
    counted : Tally or None
        The counts of the predictions, where there is no model.
    metric : str
    record : TrainingRecord or None
    as_trained : bool
        Whether the gap, the groups and the label are those the model was trained for. Only then
        do its target and its search apply.
    """

    model: ModelRows | None
    data: DataFiles
    sha256: str
    positive: Any
    metric: str
    choice: Choice = field(default_factory=Choice)
    counted: Tally | None = None
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
        choice = self.choice
        return Source(
            self.data.short_name, choice.which, choice.seen, self.sha256, command, more or {}
        )

    def summarize(
        self,
        max_gap: float | None,
        confidence: float,
        source: Source,
        frontier: dict[str, Any] | None = None,
        *,
        verbose: bool = False,
    ) -> dict[str, Any]:
        """The content of a report; by default against the target of training."""
        options: dict[str, Any] = {
            "metric": self.metric,
            "max_gap": self.target if max_gap is None else max_gap,
            "other_targets": self.other_targets if max_gap is None else {},
            "confidence": confidence,
            "frontier": frontier,
            "source": source,
        }
        tally = self.counted
        if self.model is not None:
            tally = self.model.count(self.choice, verbose=verbose)
        assert tally is not None
        return summarize_tally(tally, self.model and self.model.model, self.positive, options)


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
    if not files or not all(map(names_data, files)) or label is None or not sensitive:
        raise ValueError(
            "with --predictions, give data files, --label and --sensitive, and no model"
        )
    data = DataFiles.from_paths(files)
    return _read_predictions(data, predictions, Task(label, sensitive, positive), metric)


def _read_predictions(data: DataFiles, column: str, task: Task, metric: str | None) -> Audited:
    if column in (task.label, *task.sensitive):
        raise ValueError(f"{column!r} cannot be both the predictions and something else")
    check_names(data, task, [column])
    keys = find_keys(data, task, more=[column])
    positive = keys.check(task)
    check_no_missing(data.name, {column: keys.missing(column)}, keys.n_rows)
    check_kinds(data.name, keys.kinds, [column], "or give another column")
    meaning = translate_labels(
        keys.values(column),
        keys.values(task.label),
        f"the predictions {column!r} of {data.name} have",
        f"the label {task.label!r} has",
        "give both the same values, and turn scores into labels first",
    )
    table = keys.table([task.label, column])
    groups = keys.coder(task).groups
    tally = Tally(groups)
    tally.count(
        groups.codes,
        table[task.label] == positive,
        table[column].map(meaning) == positive,
        list(keys.rows.values()),
    )
    metric = metric or _DEFAULT_METRIC
    return Audited(None, data, checksum(data), positive, metric, counted=tally)


def _read_model(
    files: list[Path],
    label: str | None,
    sensitive: list[str] | None,
    positive: str | None,
    metric: str | None,
    trust: list[str] | None,
) -> Audited:
    if len(files) < 2:
        raise ValueError("give a model file and a data file, or a data file with --predictions")
    check_order(files[0], files[1])
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
    data = DataFiles.from_paths(files[1:])
    rows = ModelRows.open(model, feature_names(model, files[0]), data, task, positive)
    sha256 = checksum(data)
    audited = Audited(rows, data, sha256, rows.positive, metric or _DEFAULT_METRIC)
    if record is None:
        return audited
    return replace(
        audited,
        choice=unseen_rows(data, sha256, record, rows.types),
        record=record,
        as_trained=record.matches(audited.metric, task) and rows.positive == model_positive(model),
    )


def read_all_rows(audited: Audited) -> Rows:
    """All rows of the one file that a model was trained from, in memory, to train on them again."""
    assert audited.model is not None
    model = audited.model
    rows = read_rows(
        audited.data.files[0].path, model.task, model.features, model.feature_types, audited.sha256
    )
    return replace(
        rows, y=np.array([model.meaning[value] for value in rows.y]), positive=audited.positive
    )
