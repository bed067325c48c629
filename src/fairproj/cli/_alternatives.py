"""``fairproj alternatives``: models about as good as the plain one, with a smaller gap."""

from __future__ import annotations

import hashlib
import shlex
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from fairproj import FairBoostClassifier
from fairproj.cli import _task
from fairproj.cli._app import (
    AsJson,
    Force,
    Jobs,
    command_line,
    report_errors,
    statistic_option,
)
from fairproj.cli._columns import check_groups_of_training
from fairproj.cli._console import print_json, print_line, show_table
from fairproj.cli._files import DataPath, check_outputs
from fairproj.cli._record import FileRecord, HeldOut, Target, TrainingRecord
from fairproj.cli._rows import Rows, read_rows
from fairproj.cli._show import NOT_MET, UNDECIDED
from fairproj.cli._split import check_sides_of_rows, find_cut, position_bytes
from fairproj.cli._task import Task, parse_sensitive
from fairproj.cli._train_options import (
    ClassWeightOption,
    Rounds,
    SelectionRate,
    Threshold,
    plain_value,
)
from fairproj.data.checks import check_groups, listing
from fairproj.data.time_split import TimeCut
from fairproj.io.tables import DataFile
from fairproj.report import Source, alternatives_content, write_report
from fairproj.selection import Alternatives, SearchOutcome, find_alternatives
from fairproj.selection.alternatives import NotUsefulError

_TEST_SIZE = 0.25
_MOST_CANDIDATES = 15  # on the terminal; the page has them all
_CODES = {
    SearchOutcome.FOUND: 0,
    SearchOutcome.UNCERTAIN: UNDECIDED,
    SearchOutcome.SCORE_UNCERTAIN: UNDECIDED,
}
_SEARCH = "Search"


class Scoring(Enum):
    roc_auc = "roc_auc"
    accuracy = "accuracy"


@report_errors
def alternatives(
    data: DataPath,
    label: _task.Label,
    sensitive: _task.Sensitive,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="A .html, .md or .json file that documents the search. May be repeated.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A file to write the chosen model to; fairproj audit and fairproj report find "
            "the test rows again."
        ),
    ] = None,
    positive: _task.Positive = None,
    drop: _task.Drop = None,
    use_sensitive: _task.UseSensitive = False,
    missing_groups: _task.MissingGroupsOption = _task.MissingGroups.error,
    time: _task.Time = None,
    seed: _task.Seed = 0,
    constraint: Annotated[
        str,
        statistic_option("The gap that is to be smaller.", _SEARCH, constraint=True),
    ] = "demographic_parity",
    scoring: Annotated[
        Scoring, typer.Option(help="The score that must be kept.", rich_help_panel=_SEARCH)
    ] = Scoring.roc_auc,
    tolerance: Annotated[
        float,
        typer.Option(
            help="How much lower than that of the plain model the score may be.",
            rich_help_panel=_SEARCH,
        ),
    ] = 0.01,
    reference: Annotated[
        str | None,
        typer.Option(
            help="The group that adverse impact ratios compare with; by default the one that the "
            "plain model selects most often.",
            metavar="GROUP",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    threshold: Threshold = None,
    selection_rate: SelectionRate = None,
    class_weight: ClassWeightOption = None,
    rounds: Rounds = 100,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Search for less discriminatory models that are about as good.

    fairproj alternatives adult.csv --label income --sensitive sex -o alternatives.html

    Half of the rows train a plain model, without a constraint, and the candidates. On a quarter,
    the candidate with the smallest gap is chosen among those whose score is at most --tolerance
    below that of the plain model, with room for the test rows to confirm it. On the last quarter,
    both are measured once; with --time it holds the last rows.

    The exit code is 0 if the chosen model has a smaller gap there and a score within the tolerance;
    3 if no candidate is less discriminatory, or the chosen one is not or costs more than the
    tolerance; 4 if the rows are too few to tell one or the other. The files are written in all
    cases; a model, if one was chosen.
    """
    outputs = output or []
    check_outputs([*outputs, model], force=force, inputs=[data])
    for path in outputs:
        if path.suffix.lower() not in (".html", ".htm", ".md", ".json"):
            raise ValueError(f"{path} has an unknown suffix; name a .html, .md or .json file")
    if threshold is not None and selection_rate is not None:
        raise ValueError(
            "--threshold and --selection-rate both say where to decide; give one of them"
        )
    if not 0 <= tolerance < 1:
        raise ValueError(f"--tolerance {tolerance:g} must be 0 or more and below 1")
    names, ranges = parse_sensitive(sensitive, DataFile.from_path(data).column_names())
    task = Task(label, names, positive, drop, use_sensitive, ranges, None, time, missing_groups)
    rows = read_rows(data, task)
    check_groups_of_training(data, task, rows.groups, rows.y == rows.positive)
    cut = None if time is None else find_cut(rows, time, _TEST_SIZE)
    if cut is not None:
        check_sides_of_rows(rows, cut)
    estimator = FairBoostClassifier(
        n_estimators=rounds,
        threshold=threshold,
        selection_rate=selection_rate,
        class_weight=plain_value(class_weight),
        pos_label=rows.positive,
        random_state=seed,
    )
    known = check_groups(rows.groups, len(rows.y)).names
    if reference is not None and reference not in known:
        raise ValueError(
            f"--reference {reference!r} is not a group; the groups are {listing(known)}"
        )
    found = _search(
        estimator,
        rows,
        test_rows=None if cut is None else cut.mask(rows.frame[cut.column]),
        metric=constraint,
        scoring=scoring.value,
        tolerance=tolerance,
        reference=reference,
        random_state=seed,
        n_jobs=jobs,
        verbose=not as_json,
    )
    content = alternatives_content(found, _source(rows, task, cut), str(rows.positive))
    for path in outputs:
        write_report(content, path)
    if model is not None and found.chosen is not None:
        _save(found, rows, task, seed, cut, model)
    if as_json:
        print_json(content)
    else:
        _show(content)
        _show_files(found, outputs, model, data)
    raise typer.Exit(_CODES.get(found.outcome, NOT_MET))


def _search(estimator: FairBoostClassifier, rows: Rows, **options: Any) -> Alternatives:
    try:
        return find_alternatives(
            estimator,
            rows.X,
            rows.y,
            sensitive_features=rows.groups,
            test_size=_TEST_SIZE,
            **options,
        )
    except NotUsefulError:
        raise ValueError(
            "the plain model does not beat chance where it decides, or says the same to nearly "
            "everyone, so its gap means nothing; with rare labels add --class-weight balanced or "
            "--selection-rate, else add columns that say more about the label"
        ) from None


def _source(rows: Rows, task: Task, cut: TimeCut | None) -> Source:
    more = {
        "Label": task.label,
        "Groups by": " and ".join(task.sensitive),
        "Features": ", ".join(rows.kinds),
    }
    which = "" if cut is None else cut.which
    return Source(rows.file.path.name, which, None, rows.sha256, command_line(), more)


def _save(
    found: Alternatives, rows: Rows, task: Task, seed: int, cut: TimeCut | None, path: Path
) -> None:
    """Write the chosen model; its test rows are the rows held out from training."""
    chosen: Any = found.chosen
    digest = hashlib.sha256(position_bytes(found.rows["test"])).hexdigest()
    record = TrainingRecord(
        task,
        FileRecord(rows.file.path.name, rows.sha256, len(rows.y)),
        rows.kinds,
        HeldOut(_TEST_SIZE, seed, digest, time=cut),
        _targets(found, chosen),
        None,
        command_line(),
        alternatives=" ".join(found.summary()[:2]),
        decimals=rows.decimals,
    )
    chosen.save(path, metadata=record.to_metadata())


def _targets(found: Alternatives, chosen: FairBoostClassifier) -> list[Target]:
    """The gap that the chosen model bounds; and the one of the search, where that is another."""
    bounded: Any = chosen.constraints
    limit: Any = chosen.max_gap
    others = [Target(found.metric, None)] if bounded != found.metric else []
    return [Target(bounded, limit), *others]


def _show(content: dict[str, Any]) -> None:
    plain, *candidates = content["candidates"]
    ranked = [row for row in candidates if row["rank"] is not None]
    show_table(
        f"Models within the tolerance on the {content['rows']['selection']:,} selection rows, in "
        f"the order of the choice; gaps with exact {100 * content['confidence']:g} % intervals",
        ["rank", "bounded", "limit", "leaves", "step", "AUC", "gap", "from", "to", "AIR"],
        [_candidate_row(row) for row in [plain, *ranked[:_MOST_CANDIDATES]]],
    )
    print_line(
        "Step is the learning rate, AIR the adverse impact ratio of the worst group. "
        f"{content['selected']}"
    )
    print_line()
    _show_others(candidates, ranked)
    _show_test(content)
    for sentence in content["summary"]:
        print_line(sentence)


_SHOWN = ("roc_auc", "gap", "gap_low", "gap_high", "adverse_impact_ratio")


def _candidate_row(row: dict[str, Any]) -> list[Any]:
    params = row["params"]
    settings = ("max_gap", "max_leaf_nodes", "learning_rate")
    return [
        "" if row["rank"] is None else row["rank"],
        row["series"],
        *(f"{params[name]:g}" if params else "" for name in settings),
        *(_number(row[name]) for name in _SHOWN),
    ]


def _show_others(candidates: list[dict[str, Any]], ranked: list[dict[str, Any]]) -> None:
    """Print how many candidates the table leaves out, and why."""
    reasons = {
        "within the tolerance with a larger gap": len(ranked[_MOST_CANDIDATES:]),
        "with too low a score": sum(one["useful"] for one in candidates) - len(ranked),
        "not useful": sum(not one["useful"] for one in candidates),
    }
    others = [f"{count} {reason}" for reason, count in reasons.items() if count]
    if others:
        n_others = len(candidates) - len(ranked[:_MOST_CANDIDATES])
        print_line(
            f"{n_others} more candidates, listed by --output and --json: {', '.join(others)}."
        )
        print_line()


def _show_test(content: dict[str, Any]) -> None:
    interval = f"{100 * content['confidence']:g} % interval"
    models = [name for name in ("plain", "chosen", "difference") if name in content["test"][0]]
    show_table(
        f"On the {content['rows']['test']:,} test rows",
        ["figure", "model", "value", interval],
        [
            [row["name"], model, *_with_interval(row[model])]
            for row in content["test"]
            for model in models
        ],
    )
    show_table(
        f"Groups on the test rows, compared with {content['reference']}",
        ["group", "model", "AIR", interval, "SMD", interval],
        [
            [row["group"], row["model"], *(cell for name in _BY_GROUP for cell in _of(row, name))]
            for row in content["groups"]
            if row["group"] != content["reference"]
        ],
    )
    print_line(
        "AIR is the adverse impact ratio, the selection rate of the group divided by that of "
        f"{content['reference']}; SMD is the standardized difference of their mean scores."
    )
    print_line()


_BY_GROUP = ("adverse_impact_ratio", "standardized_mean_difference")


def _of(row: dict[str, Any], name: str) -> list[str]:
    ends = {"estimate": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
    return _with_interval(ends)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:z.3f}"


def _with_interval(row: dict[str, Any]) -> list[str]:
    return [_number(row["estimate"]), f"{_number(row['low'])} to {_number(row['high'])}"]


def _show_files(found: Alternatives, outputs: list[Path], model: Path | None, data: Path) -> None:
    print_line()
    for path in outputs:
        print_line(f"Written: {path}")
    if model is None:
        return
    if found.chosen is None:
        print_line(f"No model was chosen, so {model} was not written.")
        return
    print_line(f"Model: {model}")
    if found.outcome not in _CODES:
        print_line("It is kept for the record: it is not an alternative within the tolerance.")
        return
    following = ["fairproj", "report", str(model), str(data), "-o", "report.html"]
    print_line(f"Next: {shlex.join(following)}")
