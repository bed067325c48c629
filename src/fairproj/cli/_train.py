"""``fairproj train``."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.base import clone

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.boosting.certificate import GapCertificate
from fairproj.cli import _rows
from fairproj.cli._app import (
    AsJson,
    Force,
    Jobs,
    command_line,
    report_errors,
    statistic_option,
)
from fairproj.cli._console import escape, print_json, print_line, show_table
from fairproj.cli._files import DataPaths, check_outputs
from fairproj.cli._large import LargeData, OnCluster, connect
from fairproj.cli._model_rows import ModelRows, summarize_tally
from fairproj.cli._record import FileRecord, HeldOut, SearchRecord, Target, TrainingRecord
from fairproj.cli._rows import Rows, Task, read_rows, split_rows
from fairproj.cli._show import NOT_MET, NOT_USEFUL, show_audit, show_price
from fairproj.cli._streams import checksum
from fairproj.cli._train_options import (
    ClassWeight,
    Loss,
    Margin,
    Method,
    Rule,
    Votes,
    check_fairboost,
    check_fraction,
    check_large,
    check_numbers,
    check_several,
    check_share,
    check_together,
    new_file,
    pair_targets,
    plain_value,
)
from fairproj.data.checks import counted
from fairproj.io.records import to_dict
from fairproj.io.tables import DataFiles
from fairproj.report import (
    Source,
    certificate_words,
    measure_on_rows,
    price_content,
    summarize_estimator,
)
from fairproj.report._words import side, watched
from fairproj.selection import GapSearchCV

_MAX_GAP = 0.05
_EPSILON = 0.1
_MOST_GROUPS = 20  # in the table of groups
_GOAL, _POINT, _FIT, _SEARCH = "Target", "Where the model decides", "Training", "Search"
_LARGE = "Large data"


def _share_option(help_text: str) -> Any:
    return typer.Option(
        help=help_text, callback=check_share, metavar="SHARE", rich_help_panel=_POINT
    )


@report_errors
def train(
    data: DataPaths,
    label: _rows.Label,
    sensitive: _rows.Sensitive,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    positive: _rows.Positive = None,
    drop: _rows.Drop = None,
    use_sensitive: _rows.UseSensitive = False,
    test_size: _rows.TestSize = 0.25,
    seed: _rows.Seed = 0,
    constraint: Annotated[
        list[str] | None,
        statistic_option(
            "The rates that must be alike across groups; by default equal_opportunity. May be "
            "repeated.",
            _GOAL,
            constraint=True,
        ),
    ] = None,
    max_gap: Annotated[
        list[float] | None,
        typer.Option(
            help=f"The largest gap allowed; by default {_MAX_GAP:g}. May be repeated, once for "
            "each --constraint in their order.",
            min=0,
            max=1,
            rich_help_panel=_GOAL,
        ),
    ] = None,
    margin: Annotated[
        Margin | None,
        typer.Option(
            help="one_se: keep the gap within --max-gap by one standard error, since it is often "
            "larger on new rows.",
            rich_help_panel=_GOAL,
        ),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(
            help="fairboost bounds the gap of the predictions by --max-gap; paper bounds the "
            "imbalance of the training weights by --epsilon.",
            rich_help_panel=_GOAL,
        ),
    ] = Method.fairboost,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="With --method paper: the largest imbalance of the training weights; by default "
            f"{_EPSILON:g}.",
            min=0,
            max=1,
            rich_help_panel=_GOAL,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        _share_option(
            "Predict the positive label where its probability exceeds this; by default 0.5. The "
            "gap is bounded there and nowhere else."
        ),
    ] = None,
    selection_rate: Annotated[
        float | None, _share_option("The share of the rows to predict positive.")
    ] = None,
    max_false_positive_rate: Annotated[
        float | None,
        _share_option("Predict positive as often as this limit, over all groups, allows."),
    ] = None,
    max_false_negative_rate: Annotated[
        float | None,
        _share_option("Predict negative as often as this limit, over all groups, allows."),
    ] = None,
    loss: Annotated[
        Loss | None,
        typer.Option(
            help="What is minimised; by default logistic. exponential has a proved bound.",
            rich_help_panel=_FIT,
        ),
    ] = None,
    class_weight: Annotated[
        ClassWeight | None,
        typer.Option(
            help="balanced: errors on rare labels cost more, in inverse proportion to their "
            "frequency.",
            rich_help_panel=_FIT,
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option(help="Maximum number of boosting rounds.", min=1, rich_help_panel=_FIT)
    ] = 100,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Share of each step that is taken, above 0 and at most 1; by default 0.1, or 1 "
            "with --method paper.",
            rich_help_panel=_FIT,
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            help="Depth of the trees; by default any, or 1 with --method paper.",
            min=1,
            rich_help_panel=_FIT,
        ),
    ] = None,
    leaves: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of leaves of a tree; by default 31, or any with --method paper.",
            min=2,
            rich_help_panel=_FIT,
        ),
    ] = None,
    votes: Annotated[
        Votes | None,
        typer.Option(
            help="With --method paper or --loss exponential: whether a tree votes with its label "
            "or with its confidence.",
            rich_help_panel=_FIT,
        ),
    ] = None,
    validation_fraction: Annotated[
        str | None,
        typer.Option(
            help="Share of the training rows to hold out for watching the gap: auto (the default; "
            "a quarter unless a group has too few rows), none (watch the training rows), or a "
            "number.",
            callback=lambda text: None if text is None else check_fraction(text),
            metavar="auto|none|SHARE",
            rich_help_panel=_FIT,
        ),
    ] = None,
    early_stopping: Annotated[
        bool,
        typer.Option(
            "--early-stopping",
            help="Stop when the loss on the rows held out for watching no longer falls.",
            rich_help_panel=_FIT,
        ),
    ] = False,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Try several values of the method's parameter and keep the most accurate model "
            "whose gap on rows it was not trained on is within --max-gap.",
            rich_help_panel=_SEARCH,
        ),
    ] = False,
    rule: Annotated[
        Rule | None,
        typer.Option(
            help="With --search: what must be within --max-gap. one_se: the mean gap of the folds "
            "plus one standard error (the default); upper: an exact upper bound on held-out rows, "
            "with 90 % confidence; mean: the mean gap of the folds.",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    nearest: Annotated[
        bool,
        typer.Option(
            "--nearest",
            help="With --search: if no model is within --max-gap, keep the nearest and exit with "
            "code 3.",
            rich_help_panel=_SEARCH,
        ),
    ] = False,
    out_of_core: Annotated[
        bool,
        typer.Option(
            "--out-of-core",
            help="Train on Parquet files that may be larger than memory, with XGBoost's trees.",
            rich_help_panel=_LARGE,
        ),
    ] = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Train on the Dask cluster whose scheduler has this address, such as "
            "tcp://host:8786, with XGBoost's trees. Its workers read the Parquet files.",
            metavar="ADDRESS",
            rich_help_panel=_LARGE,
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="With --scheduler: a file or URL to keep the finished rounds in.",
            metavar="FILE",
            rich_help_panel=_LARGE,
        ),
    ] = None,
    resume_from: Annotated[
        str | None,
        typer.Option(
            help="With --scheduler: a checkpoint of the same command to go on from.",
            metavar="FILE",
            rich_help_panel=_LARGE,
        ),
    ] = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Train a model and write it to a file.

    fairproj train adult.csv --label income --sensitive sex --max-gap 0.05 -o model.fairproj

    Part of the rows is held out from training and audited at the end; fairproj audit and fairproj
    report find these rows again. The same settings are trained without a constraint too, so that
    the price of the constraint is known. The gap on new rows may be larger than in training;
    --search judges models on rows they were not trained on.

    Data larger than memory: fairproj train 'data/*.parquet' --out-of-core --label income
    --sensitive sex -o model.fairproj

    The exit code is 3 if the model misses --max-gap on the rows that were watched in training, and
    5 if it is not useful: if its errors cost no less than those of the same prediction for
    everyone. The model file is written in both cases.
    """
    large = out_of_core or scheduler is not None
    check_large(data, out_of_core, scheduler, checkpoint or resume_from, search)
    inputs = [file.path for file in DataFiles.from_paths(data).files] if large else data
    check_outputs([output, new_file(checkpoint, resume_from)], force=force, inputs=inputs)
    only_fairboost = {
        "loss": loss,
        "class_weight": class_weight,
        "threshold": threshold,
        "selection_rate": selection_rate,
        "max_false_positive_rate": max_false_positive_rate,
        "max_false_negative_rate": max_false_negative_rate,
        "margin": margin,
        "validation_fraction": validation_fraction,
        "early_stopping": early_stopping or None,
    }
    only_fairboost = {name: value for name, value in only_fairboost.items() if value is not None}
    check_numbers(learning_rate, test_size)
    check_together(method, max_gap, epsilon, search, rule, nearest)
    check_fairboost(method, only_fairboost, votes)
    targets = pair_targets(constraint or ["equal_opportunity"], max_gap or [_MAX_GAP])
    check_several(targets, method, search)
    task = Task(label, sensitive, positive, drop, use_sensitive)
    parameters = {
        "max_depth": depth,
        "max_leaf_nodes": leaves,
        "learning_rate": learning_rate,
        "votes": votes,
        **only_fairboost,
    }
    make_estimator = partial(
        _make_estimator,
        method,
        targets,
        _EPSILON if epsilon is None else epsilon,
        n_estimators=rounds,
        random_state=seed,
        **{name: plain_value(value) for name, value in parameters.items() if value is not None},
    )
    wanted = targets
    if method is Method.paper and not search:
        wanted = [Target(target.metric, None) for target in targets]
    split = Split(task, test_size, seed)
    if large:
        cluster: Any = nullcontext()
        if scheduler is not None:
            cluster = connect(scheduler, checkpoint, resume_from)
        with cluster as on_cluster:
            options = (on_cluster, wanted, jobs, not as_json)
            result = _train_large(data, split, make_estimator, *options)
    else:
        searched = (rule or Rule.one_se, nearest) if search else None
        result = _train_in_memory(
            data[0], split, make_estimator, searched, wanted, jobs, not as_json
        )
    result.model.save(output, metadata=result.record.to_metadata())
    _show_result(result, output, data, as_json)
    code, reason = _outcome(result.model, result.record.search)
    if reason:
        typer.echo(f"warning: {escape(reason)}", err=True)
    raise typer.Exit(code)


@dataclass(frozen=True)
class Split:
    """A task, and which of the rows are held out from training."""

    task: Task
    fraction: float
    seed: int


@dataclass(frozen=True)
class Result:
    """A model, its record, and the audit of the rows held out from training, if there are any."""

    model: Any
    record: TrainingRecord
    content: dict[str, Any] | None
    note: str = ""


def _train_in_memory(
    data: Path,
    split: Split,
    make_estimator: Callable[..., Any],
    search: tuple[Rule, bool] | None,
    targets: list[Target],
    jobs: int,
    verbose: bool,
) -> Result:
    rows = read_rows(data, split.task)
    if verbose:
        sizes = rows.groups.astype(object).value_counts(sort=False)  # those that have rows
        names = [", ".join(map(str, key)) for key in sizes.index]
        groups = list(zip(names, sizes.tolist(), strict=True))
        share = float((rows.y == rows.positive).mean())
        show_data(data, split.task, rows.kinds, rows.positive, share, groups)
    training, test, held_out = _hold_out(rows, split)
    estimator = make_estimator(pos_label=rows.positive)
    search_record = None
    if search is not None:
        model, searched = _search(estimator, training, targets[0], *search, jobs, verbose)
        search_record = SearchRecord.from_search(searched)
    else:
        model = _fit(
            estimator.set_params(n_jobs=jobs, verbose=verbose),
            training.X,
            training.y,
            sensitive_features=training.groups,
        )
    if test is not None and hasattr(model, "baseline_"):
        model.price_ = measure_on_rows(model, test.X, test.y, test.groups) or model.price_
    file = FileRecord(data.name, rows.sha256, len(rows.y))
    record = TrainingRecord(
        split.task, file, rows.kinds, held_out, targets, search_record, command_line()
    )
    return Result(model, record, None if test is None else _audit_held_out(model, test, record))


def _train_large(
    paths: list[Path],
    split: Split,
    make_estimator: Callable[..., Any],
    cluster: OnCluster | None,
    targets: list[Target],
    jobs: int,
    verbose: bool,
) -> Result:
    """Train on rows that are not read into memory."""
    large = LargeData.open(paths, split.task)
    if verbose:
        show_data(
            large.data.name,
            split.task,
            large.kinds,
            large.positive,
            large.positive_share,
            large.groups,
        )
    file = FileRecord(large.data.short_name, checksum(large.data), large.keys.n_rows)
    source, choice = large.split(split.fraction, split.seed, verbose=verbose)
    estimator = make_estimator(pos_label=large.positive, engine="xgboost", verbose=verbose)
    with _explained():
        if cluster is None:
            model = estimator.set_params(n_jobs=jobs).fit(source)
        else:
            model = cluster.fit(estimator, source, compare=choice is not None)
    held_out = None if choice is None else choice.held_out
    record = TrainingRecord(split.task, file, large.kinds, held_out, targets, None, command_line())
    if choice is None:
        return Result(model, record, None)
    rows = ModelRows.open(model, list(large.kinds), large.data, split.task)
    tally = rows.count(choice, verbose=verbose)
    price = tally.price(model.classes_.tolist().index(large.positive))
    if price is not None:
        model.price_ = price
    source_of_rows = Source(file.name, choice.which, False)
    content = summarize_tally(
        tally, model, large.positive, {**_target_options(record), "source": source_of_rows}
    )
    return Result(model, record, content, tally.note)


def _hold_out(rows: Rows, split: Split) -> tuple[Rows, Rows | None, HeldOut | None]:
    """Training rows, and the held-out rows if there are any."""
    if not split.fraction:
        return rows, None, None
    training, test, digest = split_rows(rows, split.task, split.fraction, split.seed)
    return training, test, HeldOut(split.fraction, split.seed, digest)


def _make_estimator(
    method: Method, targets: list[Target], epsilon: float, **parameters: Any
) -> Any:
    names, gaps = [target.metric for target in targets], [target.max_gap for target in targets]
    if method is Method.paper:
        return FairProjClassifier(names[0], epsilon, **parameters)
    if len(targets) == 1:
        return FairBoostClassifier(names[0], gaps[0], baseline=True, **parameters)
    return FairBoostClassifier(names, gaps, baseline=True, **parameters)


@contextmanager
def _explained() -> Iterator[None]:
    """Leave out warnings of what `_outcome` says with the names of the options."""
    with warnings.catch_warnings():
        said = "the model (says the same|is not useful)|no useful round|no learner beat chance"
        warnings.filterwarnings("ignore", message=said)
        yield


def _fit(estimator: Any, *rows: Any, **groups: Any) -> Any:
    with _explained():
        return estimator.fit(*rows, **groups)


def _search(
    estimator: Any,
    rows: Rows,
    target: Target,
    rule: Rule,
    nearest: bool,
    jobs: int,
    verbose: bool,
) -> tuple[Any, GapSearchCV]:
    """The best model, and the search that found it."""
    candidate = clone(estimator).set_params(n_jobs=1)
    if rule is not Rule.upper and isinstance(candidate, FairBoostClassifier):
        candidate.set_params(baseline=False)  # the best one is fitted again below
    search = GapSearchCV(
        candidate,
        target.max_gap or 0.0,
        metric=target.metric,
        selection_rule=rule.value,
        refit=False,  # not before it is clear that the best model is kept
        if_none="nearest",
        n_jobs=jobs,
        random_state=estimator.random_state,
        verbose=verbose,
    )
    with warnings.catch_warnings():
        if not nearest:  # the error below says it, with the names of the options
            warnings.filterwarnings("ignore", message="none of")
        search.fit(rows.X, rows.y, sensitive_features=rows.groups)
    if not search.met_ and not nearest:
        raise ValueError(
            f"{search.reason_}; allow a larger --max-gap, give more rows, or keep the nearest "
            "model with --nearest"
        )
    if rule is Rule.upper:  # the bound holds for the model that was judged
        return search.best_estimator_, search
    best = clone(estimator).set_params(**search.best_params_, n_jobs=1)
    return _fit(best, rows.X, rows.y, sensitive_features=rows.groups), search


def _outcome(model: Any, search: SearchRecord | None) -> tuple[int, str]:
    """The exit code, and what the model misses, with the options that can help."""
    certificate = model.certificate_
    if not getattr(model, "_useful", True):
        raised = "" if search else "raise --epsilon, "
        return NOT_USEFUL, (
            "the model is not useful: on the training rows it errs no less often "
            f"({certificate.train_error:.1%}) than the same prediction for everyone; {raised}use "
            "larger trees with --depth, or leave out --method paper"
        )
    compared = isinstance(certificate, GapCertificate) and certificate.event
    if compared and not certificate.useful:
        return NOT_USEFUL, (
            f"the model is not useful: on the {watched(certificate)} its errors cost no less than "
            "those of the same prediction for everyone (accuracy "
            f"{certificate.accuracy:.3f}), whatever its gap; with rare labels add --class-weight "
            "balanced or --selection-rate, else allow a larger --max-gap or add features that say "
            "more about the label"
        )
    if search is not None:
        return (0 if search.met else NOT_MET), ""  # the search has printed its reason
    if compared and not certificate.within:
        return NOT_MET, (
            f"the model misses the target: on the {watched(certificate)} its gap in "
            f"{certificate.event} is {certificate.gap:.3f}, {side(certificate)} "
            f"{certificate.max_gap:g}; allow a larger --max-gap, or try {_cures(model)}"
        )
    return 0, ""


def _cures(model: Any) -> str:
    """Options that change how the gap can be narrowed, and that the model does not have yet."""
    cures = ["more --rounds", "larger trees with --leaves"]
    if model.loss == "exponential":
        cures.append("--loss logistic")
        if model.votes == "discrete":
            cures.append("--votes confidence")
    if not getattr(model, "selection_rate", None):
        cures.append("another point to decide at with --selection-rate")
    return ", ".join(cures[:-1]) + f" or {cures[-1]}"


def show_data(
    name: object,
    task: Task,
    kinds: dict[str, str],
    positive: Any,
    positive_share: float,
    groups: list[tuple[str, int]],
) -> None:
    """Print how the data was read."""
    by_kind: dict[str, list[str]] = {}
    for column, kind in kinds.items():
        by_kind.setdefault(kind, []).append(column)
    table = [[kind, len(names), ", ".join(names)] for kind, names in by_kind.items()]
    n_rows = sum(size for _, size in groups)
    print_line(
        f"{name}: {counted(n_rows, 'row')}. Label {task.label}: {positive} is positive "
        f"({positive_share:.1%}). Groups by {' and '.join(task.sensitive)}."
    )
    show_table("Features, as read", ["kind", "columns", ""], table)
    shown = [(group, f"{size:,}") for group, size in groups[:_MOST_GROUPS]]
    title = "Groups" if len(groups) <= _MOST_GROUPS else f"The first of {len(groups)} groups"
    show_table(title, ["group", "rows"], shown)


def _show_result(result: Result, output: Path, data: list[Path], as_json: bool) -> None:
    model, record, content = result.model, result.record, result.content
    if as_json:
        keys = ("verdict", "scores", "rates", "gaps")
        print_json(
            {
                "model": str(output),
                "search": to_dict(record.search),
                "rounds": model.certificate_.n_rounds,
                "certificate": model.certificate_.to_dict(),
                "price": model.price_.to_dict() if hasattr(model, "price_") else None,
                "held_out": content and {key: content[key] for key in keys},
            }
        )
        return
    if record.search is not None:
        print_line(f"Chosen: {record.search.reason}.")
    if content:
        show_audit(content)
        print_line()
    if hasattr(model, "price_"):
        show_price(content["price"] if content else price_content(model.price_))
    if result.note:
        print_line(result.note)
        print_line()
    print_line("Certificate of the training run (for its numbers: fairproj info)")
    for sentence in certificate_words(model.certificate_):
        print_line(sentence)
    print_line()
    print_line(f"Model: {output}")
    next_command = ["fairproj", "report", str(output), *map(str, data), "-o", "report.html"]
    print_line(f"Next: {shlex.join(next_command)}")


def _audit_held_out(model: Any, test: Rows, record: TrainingRecord) -> dict[str, Any]:
    return summarize_estimator(
        model,
        test.X,
        test.y,
        sensitive_features=test.groups,
        source=Source(record.data.name, test.which, False),
        **_target_options(record),
    )


def _target_options(record: TrainingRecord) -> dict[str, Any]:
    """How the rows held out from training are judged."""
    target = record.targets[0]
    return {
        "metric": target.metric,
        "max_gap": target.max_gap,
        "other_targets": record.other_targets(target.metric),
        "confidence": 0.95,
        "frontier": None,
    }
