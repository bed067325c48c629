"""``fairproj audit``: rates and gaps of any model's predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from fairproj.cli._app import AsJson, Force, command_line, report_errors, statistic_option
from fairproj.cli._by import ByColumn, CountsBy, by_content, show_by
from fairproj.cli._choice import Choice, unseen_rows
from fairproj.cli._columns import check_kinds, check_no_missing
from fairproj.cli._console import print_json, print_line
from fairproj.cli._files import (
    Trust,
    check_order,
    check_outputs,
    feature_names,
    names_data,
    open_model,
)
from fairproj.cli._model_rows import (
    ModelRows,
    model_positive,
    summarize_tally,
    translate_labels,
)
from fairproj.cli._record import Target, TrainingRecord, other_targets, read_record
from fairproj.cli._rows import Rows, read_rows
from fairproj.cli._show import exit_code, show_audit
from fairproj.cli._streams import check_names, checksum, find_keys
from fairproj.cli._tally import Tally
from fairproj.cli._task import DATA_GROUP, Positive, Task, parse_sensitive
from fairproj.constraints import find_statistic
from fairproj.data.ranges import range_names
from fairproj.inference import GapsBy
from fairproj.io.atomic import atomic_path
from fairproj.io.figures import matplotlib, plain_label
from fairproj.io.records import to_dict
from fairproj.io.table_types import NUMBERS
from fairproj.io.tables import DataFiles
from fairproj.report import Source
from fairproj.report._training import group_names
from fairproj.report._words import how_intervals_hold, not_shown
from fairproj.report.plots import gaps_by_size, plot_gaps_by

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
        help="A column that defines the groups; by default those of training. May be repeated. "
        "Numbers are cut into ranges with --sensitive AGE:25,40,60.",
        rich_help_panel=DATA_GROUP,
    ),
]
Predictions = Annotated[
    str | None,
    typer.Option(
        help="The column with the predictions of any model, or with its scores and --threshold.",
        rich_help_panel=DATA_GROUP,
    ),
]
ScoreThreshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        help="With --predictions: the column holds scores, and one above this number predicts the "
        "positive label.",
        rich_help_panel=DATA_GROUP,
    ),
]
MaxGap = Annotated[
    float | None,
    typer.Option(
        help="The largest gap allowed; by default that of training. Other gaps that the model was "
        "trained for keep their limits.",
        min=0,
        max=1,
    ),
]
Confidence = Annotated[
    float, typer.Option(help="Confidence of each interval, or of all with --simultaneous.")
]
Simultaneous = Annotated[
    bool,
    typer.Option(
        "--simultaneous",
        help="Make all intervals hold together with that confidence; each is then wider.",
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN[:PERIOD]",
        help="Also show the gap for every value of a column, such as a region or a date. Dates go "
        "by month; add :day, :month, :quarter or :year for another period.",
    ),
]
Plot = Annotated[
    Path | None, typer.Option(help="A .svg, .png or .pdf file to draw the gaps of --by in.")
]
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
    threshold: ScoreThreshold = None,
    label: OptionalLabel = None,
    sensitive: OptionalSensitive = None,
    positive: Positive = None,
    metric: Metric = None,
    max_gap: MaxGap = None,
    confidence: Confidence = 0.95,
    simultaneous: Simultaneous = False,
    by: By = None,
    plot: Plot = None,
    trust: Trust = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Measure rates by group and gaps between groups.

    Each comes with an exact confidence interval.

    A model of fairproj train: fairproj audit model.fairproj adult.csv

    The predictions of any other model: fairproj audit scored.csv --predictions predicted --label
    income --sensitive sex; its scores: add --threshold 0.5

    With --max-gap, the exit code is 0 if the gap is within it, 3 if it is above, 4 if there are too
    few rows to tell, and 5 if the model is not useful; without it, always 0. A model that was
    trained for several gaps is judged by all of them: --max-gap is the limit of --metric, and the
    others keep theirs. The worst verdict decides.

    In the file that a model was trained from, only the rows held out from training are used.

    Month by month: fairproj audit model.fairproj new.csv --by date --max-gap 0.05 --plot gaps.png

    A month raises an alarm, and the exit code is 3, if its gap is above --max-gap at a confidence
    that takes into account how many months there are.
    """
    _check_plot(plot, by, files, force=force)
    said = Said(predictions, threshold)
    audited = read_audited(files, said, label, sensitive, positive, metric, trust, by)
    source = audited.source(command_line())
    content = audited.summarize(
        max_gap,
        confidence,
        source,
        simultaneous=simultaneous,
        explain=as_json,  # the tables on the terminal do not show it
        verbose=not as_json,
    )
    gaps = audited.gaps_by(content)
    if gaps is not None and plot is not None:
        _draw(gaps, audited, plot)
    _show(content, gaps, audited, as_json=as_json)
    if plot is not None and not as_json:
        print_line(f"Written: {plot}")
    raise typer.Exit(0 if max_gap is None else exit_code(content, gaps))


def _check_plot(plot: Path | None, by: str | None, inputs: list[Path], *, force: bool) -> None:
    if plot is None:
        return
    if by is None:
        raise ValueError("--plot draws the gaps of --by; add --by COLUMN")
    if plot.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise ValueError(f"{plot} has an unknown suffix; name a .svg, .png or .pdf file")
    check_outputs([plot], force=force, inputs=inputs)


def _show(content: dict[str, Any], gaps: GapsBy | None, audited: Audited, *, as_json: bool) -> None:
    column = audited.by
    if as_json:
        by = {} if gaps is None or column is None else {"by": by_content(gaps, column)}
        print_json({**content, **by})
        return
    show_audit(content)
    print_line(content["caveats"][0])
    if not content["data"]["seen"]:
        print_line(how_intervals_hold(content))
    for note in [] if audited.record is None else audited.record.notes:
        print_line(note)
    if gaps is not None and column is not None:
        print_line()
        show_by(gaps, column)
        if others := not_shown(content["targets"]):
            print_line(others)


def _draw(gaps: GapsBy, audited: Audited, path: Path) -> None:
    size = gaps_by_size(gaps)
    figure = matplotlib().figure.Figure(figsize=size, layout="constrained")
    ax = plot_gaps_by(gaps, ax=figure.subplots())
    assert audited.by is not None
    ax.set_xlabel(plain_label(audited.by.name))
    with atomic_path(path) as partial:
        figure.savefig(partial, format=path.suffix[1:].lower(), dpi=150)


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
    name : str
        What to call the model or the predictions.
    task : Task
        The label and the sensitive columns.
    choice : Choice
        Which of the rows are audited.
    counted : Tally or None
        The counts of the predictions, where there is no model.
    metric : str
    record : TrainingRecord or None
    counted_by : CountsBy or None
        The counts of the predictions by the values of a column.
    as_trained : bool
        Whether the gap, the groups and the label are those the model was trained for. Only then
        do its target and its search apply.
    """

    model: ModelRows | None
    data: DataFiles
    sha256: str
    positive: Any
    metric: str
    name: str
    task: Task
    choice: Choice = field(default_factory=Choice)
    counted: Tally | None = None
    record: TrainingRecord | None = None
    as_trained: bool = False
    targets: Sequence[Target] = ()
    counted_by: CountsBy | None = None

    @property
    def by(self) -> ByColumn | None:
        """The column whose values divide the rows."""
        return None if self.counted_by is None else self.counted_by.column

    @property
    def target(self) -> float | None:
        """The largest gap that training allowed, if it was for these groups and this label."""
        return next((one.max_gap for one in self.targets if one.metric == self.metric), None)

    @property
    def other_targets(self) -> dict[str, float]:
        """Those of a model that was trained for several gaps."""
        return other_targets(self.targets, self.metric)

    def source(self, command: str, more: dict[str, str] | None = None) -> Source:
        """Where the rows and the model come from."""
        choice, record = self.choice, self.record
        source = Source(
            self.data.short_name, choice.which, choice.seen, self.sha256, command, more or {}
        )
        source = replace(
            source, model=self.name, label=self.task.label, sensitive=list(self.task.sensitive)
        )
        if record is None:
            return source
        return replace(
            source,
            left_out=list(record.task.dropped or []),
            trained=record.date,
            claimed=record.command,
            findings=[to_dict(one) for one in record.findings] or None,
            tested=record.tested,
            search_gap=record.searched,
            weights=record.task.weights or "",
            confirmed=record.confirmation.reason if record.confirmation and self.as_trained else "",
            searched=record.alternatives is not None,
        )

    def summarize(
        self,
        max_gap: float | None,
        confidence: float,
        source: Source,
        frontier: dict[str, Any] | None = None,
        *,
        simultaneous: bool = False,
        explain: bool = True,
        verbose: bool = False,
    ) -> dict[str, Any]:
        """The content of a report; by default against the target of training.

        ``max_gap`` replaces the target of the metric alone; those of other gaps stay. ``explain``
        says whether to tell which features decide.
        """
        options: dict[str, Any] = {
            "metric": self.metric,
            "max_gap": self.target if max_gap is None else max_gap,
            "other_targets": self.other_targets,
            "confidence": confidence,
            "simultaneous": simultaneous,
            "frontier": frontier,
            "source": source,
        }
        tally = self.counted
        if self.model is not None:
            tally = self.model.count(
                self.choice, by=self.counted_by, explain=explain, verbose=verbose
            )
        assert tally is not None
        model = self.model and self.model.model
        content = summarize_tally(tally, model, self.positive, options)
        content["caveats"] += [] if self.record is None else self.record.notes
        return content

    def gaps_by(self, content: dict[str, Any]) -> GapsBy | None:
        """The gap for each value of the column, once the rows were counted by `summarize`."""
        return None if self.counted_by is None else self.counted_by.gaps(content)


class Said(NamedTuple):
    """The column with the predictions of another model; with a threshold, with its scores."""

    column: str | None
    threshold: float | None


def read_audited(
    files: list[Path],
    said: Said,
    label: str | None,
    sensitive: list[str] | None,
    positive: str | None,
    metric: str | None,
    trust: list[str] | None,
    by: str | None = None,
) -> Audited:
    """Read what the options of audit and report name."""
    if said.column is None:
        if said.threshold is not None:
            raise ValueError(
                "--threshold belongs to --predictions; a model is audited where it decides"
            )
        return _read_model(files, label, sensitive, positive, metric, trust, by)
    if not files or not all(map(names_data, files)) or label is None or not sensitive:
        raise ValueError(
            "with --predictions, give data files, --label and --sensitive, and no model"
        )
    data = DataFiles.from_paths(files)
    names, ranges = parse_sensitive(sensitive, data.column_names())
    task = Task(label, names, positive, ranges=ranges)
    return _read_predictions(data, said.column, said.threshold, task, metric, by)


def _read_predictions(
    data: DataFiles,
    column: str,
    threshold: float | None,
    task: Task,
    metric: str | None,
    by: str | None,
) -> Audited:
    if column in (task.label, *task.sensitive):
        raise ValueError(f"{column!r} cannot be both the predictions and something else")
    check_names(data, task, [column])
    by_column = None if by is None else ByColumn.parse(by, data, task, [column])
    cut = [] if threshold is None else [float(np.nextafter(threshold, np.inf))]
    counted = replace(task, ranges=task.ranges | {column: cut}) if cut else task
    keys = find_keys(data, counted, more=[column], by=by_column)
    positive = keys.check(task)
    keys.check_ranges_named(task, positive)
    check_no_missing(data.name, {column: keys.missing(column)}, keys.n_rows)
    check_kinds(data.name, keys.kinds, [column], "or give another column")
    labels = keys.values(task.label)
    if cut and keys.kinds[column] not in NUMBERS:
        raise ValueError(
            f"column {column!r} of {data.name} holds {keys.kinds[column]}; --threshold needs "
            "scores, which are numbers: name another column, or leave --threshold out"
        )
    if cut:
        below, above = range_names(cut)
        meaning = {above: positive, below: next(one for one in labels if one != positive)}
    else:
        meaning = translate_labels(
            keys.values(column),
            labels,
            f"the predictions {column!r} of {data.name} have",
            f"the label {task.label!r} has",
            "give both the same values, or for scores add --threshold",
        )
    table = keys.table([task.label, column])
    groups = keys.coder(task).groups
    tally = Tally(groups)
    actual, predicted = table[task.label] == positive, table[column].map(meaning) == positive
    rows = list(keys.rows.values())
    tally.count(groups.codes, actual, predicted, rows)
    counted_by = None
    if by_column is not None:
        counted_by = CountsBy(by_column, groups)
        values = keys.values(by_column.name)
        places = np.array([values.index(row[-1]) for row in keys.rows])
        counted_by.add(values, places, groups.codes, actual, predicted, rows)
    return Audited(
        None,
        data,
        checksum(data),
        positive,
        metric or _DEFAULT_METRIC,
        f"column {column} of {data.short_name}" + (f", above {threshold:g}" if cut else ""),
        task,
        counted=tally,
        counted_by=counted_by,
    )


def _read_model(
    files: list[Path],
    label: str | None,
    sensitive: list[str] | None,
    positive: str | None,
    metric: str | None,
    trust: list[str] | None,
    by: str | None,
) -> Audited:
    if len(files) < 2:
        raise ValueError("give a model file and a data file, or a data file with --predictions")
    check_order(files[0], files[1])
    model = open_model(files[0], trust)
    record = read_record(model)
    known = None if record is None else record.task
    if record is not None:
        label, metric = label or record.task.label, metric or record.targets[0].metric
    if label is None or not (sensitive or known):
        raise ValueError(
            f"{files[0]} does not record what it was trained for, as files of fairproj train do; "
            "add --label and --sensitive"
        )
    data = DataFiles.from_paths(files[1:])
    names, ranges = _find_groups(sensitive, known, data)
    task = Task(label, names, ranges=ranges)
    if known is not None:
        task = replace(task, missing_groups=known.missing_groups)
    features, new_groups = feature_names(model, files[0]), bool(sensitive)
    rows = ModelRows.open(model, features, data, task, positive, new_groups=new_groups)
    sha256 = checksum(data)
    name = files[0].name
    limits = _limits(model)  # of a model from Python; a record has set the metric already
    if metric is None and limits:
        metric = limits[0].metric
    audited = Audited(rows, data, sha256, rows.positive, metric or _DEFAULT_METRIC, name, task)
    if by is not None:
        column = ByColumn.parse(by, data, task, [])
        counted_by = CountsBy(column, rows.coder.groups)
        audited = replace(audited, counted_by=counted_by)
    same_label = rows.positive == model_positive(model)
    if record is None:
        same_groups = {*group_names(model)} >= {*rows.coder.groups.names}
        looked_at = any(limit.metric == audited.metric for limit in limits)
        applies = same_label and same_groups and looked_at
        return replace(audited, targets=limits if applies else ())
    as_trained = same_label and record.matches(audited.metric, task)
    return replace(
        audited,
        choice=unseen_rows(rows.keys, sha256, record, rows.types),
        record=record,
        as_trained=as_trained,
        targets=record.targets if as_trained else (),
    )


def _limits(model: Any) -> list[Target]:
    """What a model from Python was asked to limit; none for gaps without a name of their own."""
    if not hasattr(model, "max_gap") or model.constraints is None:
        return []
    several = isinstance(model.constraints, list | tuple)
    names = list(model.constraints) if several else [model.constraints]
    if not all(isinstance(name, str) for name in names):
        return []
    gaps = np.broadcast_to(np.asarray(model.max_gap, dtype=float), (len(names),)).tolist()
    return [Target(find_statistic(name).name, gap) for name, gap in zip(names, gaps, strict=True)]


def _find_groups(
    sensitive: list[str] | None, known: Task | None, data: DataFiles
) -> tuple[list[str], dict[str, list[float]]]:
    """The sensitive columns and their cuts; those of training where none are given."""
    ranges = {} if known is None else known.ranges
    if not sensitive:
        assert known is not None
        return known.sensitive, ranges
    names, given = parse_sensitive(sensitive, data.column_names())
    return names, {name: cuts for name, cuts in (ranges | given).items() if name in names}


def read_all_rows(audited: Audited) -> Rows:
    """All rows of the one file that a model was trained from, in memory, to train on them again."""
    assert audited.model is not None
    assert audited.record is not None
    model, known = audited.model, audited.record.task
    task = replace(model.task, weights=known.weights, time=known.time)
    rows = read_rows(
        audited.data.files[0].path, task, model.features, model.feature_types, audited.sha256
    )
    return replace(
        rows, y=np.array([model.meaning[value] for value in rows.y]), positive=audited.positive
    )
