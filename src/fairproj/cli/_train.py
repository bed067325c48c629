"""``fairproj train``."""

from __future__ import annotations

import shlex
import warnings
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.base import clone

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.cli import _rows
from fairproj.cli._app import (
    AsJson,
    Force,
    Jobs,
    command_line,
    report_errors,
    statistic_option,
)
from fairproj.cli._console import print_json, print_line, show_table
from fairproj.cli._files import DataPath, check_outputs
from fairproj.cli._record import FileRecord, HeldOut, SearchRecord, TrainingRecord
from fairproj.cli._rows import Rows, Task, read_rows, split_rows
from fairproj.cli._show import NOT_MET, show_audit
from fairproj.io.records import to_dict
from fairproj.report import Source, certificate_words, summarize_estimator
from fairproj.selection import GapSearchCV

_MAX_GAP = 0.05
_EPSILON = 0.1
_MOST_GROUPS = 20  # in the table of groups


class Method(Enum):
    fairboost = "fairboost"
    paper = "paper"


class Rule(Enum):
    one_se = "one_se"
    upper = "upper"
    mean = "mean"


class Votes(Enum):
    discrete = "discrete"
    confidence = "confidence"


@report_errors
def train(
    data: DataPath,
    label: _rows.Label,
    sensitive: _rows.Sensitive,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    method: Annotated[
        Method,
        typer.Option(
            help="fairboost bounds the gap of the predictions by --max-gap; paper bounds the "
            "imbalance of the training weights by --epsilon."
        ),
    ] = Method.fairboost,
    constraint: Annotated[
        str, statistic_option("The rates that must be alike across groups.")
    ] = "equal_opportunity",
    max_gap: Annotated[
        float | None,
        typer.Option(help=f"The largest gap allowed; by default {_MAX_GAP:g}.", min=0, max=1),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="With --method paper: the largest imbalance of the training weights; by default "
            f"{_EPSILON:g}.",
            min=0,
            max=1,
        ),
    ] = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Try several values of the method's parameter and keep the most accurate model "
            "whose gap on rows it was not trained on is within --max-gap.",
        ),
    ] = False,
    rule: Annotated[
        Rule | None,
        typer.Option(
            help="With --search: what must be within --max-gap. one_se: the mean gap of the folds "
            "plus one standard error (the default); upper: an exact upper bound on held-out rows, "
            "with 90 % confidence; mean: the mean gap of the folds."
        ),
    ] = None,
    nearest: Annotated[
        bool,
        typer.Option(
            "--nearest",
            help="With --search: if no model is within --max-gap, keep the nearest and exit with "
            "code 3.",
        ),
    ] = False,
    positive: _rows.Positive = None,
    drop: _rows.Drop = None,
    use_sensitive: _rows.UseSensitive = False,
    rounds: Annotated[int, typer.Option(help="Maximum number of boosting rounds.", min=1)] = 100,
    depth: Annotated[
        int | None, typer.Option(help="Depth of the trees; by default 1.", min=1)
    ] = None,
    leaves: Annotated[
        int | None, typer.Option(help="Maximum number of leaves of a tree.", min=2)
    ] = None,
    learning_rate: Annotated[
        float, typer.Option(help="Factor on the vote of each tree, above 0 and at most 1.")
    ] = 1.0,
    votes: Annotated[
        Votes,
        typer.Option(help="Whether a tree votes with its label or with its confidence."),
    ] = Votes.discrete,
    test_size: _rows.TestSize = 0.25,
    seed: _rows.Seed = 0,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Train a model and write it to a file.

    fairproj train adult.csv --label income --sensitive sex --max-gap 0.05 -o model.fairproj

    Part of the rows is held out from training and audited at the end; fairproj audit and fairproj
    report find these rows again. Training aims at --max-gap on the training rows, and the gap on
    new rows may be larger; --search judges models on rows they were not trained on.
    """
    check_outputs([output], force=force, inputs=[data])
    _check_numbers(learning_rate, test_size)
    _check_together(method, max_gap, epsilon, search, rule, nearest)
    target = _MAX_GAP if max_gap is None else max_gap
    task = Task(label, sensitive, positive, drop, use_sensitive)
    rows = read_rows(data, task)
    if not as_json:
        show_data(rows, task)
    training, test, held_out = _hold_out(rows, task, test_size, seed)
    estimator = _make_estimator(
        method,
        target,
        _EPSILON if epsilon is None else epsilon,
        constraints=constraint,
        n_estimators=rounds,
        max_depth=depth,
        max_leaf_nodes=leaves,
        learning_rate=learning_rate,
        votes=votes.value,
        pos_label=rows.positive,
        random_state=seed,
    )
    search_record = None
    if search:
        model, searched = _search(
            estimator, training, target, rule or Rule.one_se, nearest, jobs, verbose=not as_json
        )
        search_record = SearchRecord.from_search(searched)
    else:
        estimator.set_params(n_jobs=jobs, verbose=not as_json)
        model = estimator.fit(training.X, training.y, sensitive_features=training.groups)
    record = TrainingRecord(
        task,
        FileRecord(data.name, rows.sha256, len(rows.y)),
        rows.kinds,
        held_out,
        constraint,
        target if search or method is Method.fairboost else None,
        search_record,
        command_line(),
    )
    model.save(output, metadata=record.to_metadata())
    _show_result(model, test, record, output, data, as_json)
    if search_record is not None and not search_record.met:
        raise typer.Exit(NOT_MET)


def _check_numbers(learning_rate: float, test_size: float) -> None:
    if not 0 < learning_rate <= 1:
        raise ValueError(f"--learning-rate {learning_rate:g} must be above 0 and at most 1")
    if not 0 <= test_size < 1:
        raise ValueError(f"--test-size {test_size:g} must be 0 or more and below 1")


def _check_together(
    method: Method,
    max_gap: float | None,
    epsilon: float | None,
    search: bool,
    rule: Rule | None,
    nearest: bool,
) -> None:
    """Refuse options that would be ignored."""
    if epsilon is not None and method is not Method.paper:
        raise ValueError("--epsilon is for --method paper; give --max-gap, or add --method paper")
    if epsilon is not None and search:
        raise ValueError("--search chooses epsilon itself; leave out --epsilon or --search")
    if max_gap is not None and method is Method.paper and not search:
        raise ValueError(
            "--method paper does not bound the gap of the predictions; add --search to find a "
            "model within --max-gap, or give --epsilon instead"
        )
    if (rule is not None or nearest) and not search:
        raise ValueError("--rule and --nearest are for a search; add --search")


def _hold_out(
    rows: Rows, task: Task, fraction: float, seed: int
) -> tuple[Rows, Rows | None, HeldOut | None]:
    """Training rows, and the held-out rows if there are any."""
    if not fraction:
        return rows, None, None
    training, test, digest = split_rows(rows, task, fraction, seed)
    return training, test, HeldOut(fraction, seed, digest)


def _make_estimator(method: Method, max_gap: float, epsilon: float, **parameters: Any) -> Any:
    if method is Method.fairboost:
        return FairBoostClassifier(max_gap=max_gap, **parameters)
    return FairProjClassifier(epsilon=epsilon, **parameters)


def _search(
    estimator: Any,
    rows: Rows,
    max_gap: float,
    rule: Rule,
    nearest: bool,
    jobs: int,
    *,
    verbose: bool,
) -> tuple[Any, GapSearchCV]:
    """The best model, and the search that found it."""
    search = GapSearchCV(
        estimator.set_params(n_jobs=1),
        max_gap,
        metric=estimator.constraints,
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
    best = clone(estimator).set_params(**search.best_params_)
    return best.fit(rows.X, rows.y, sensitive_features=rows.groups), search


def show_data(rows: Rows, task: Task) -> None:
    """Print how the file was read."""
    by_kind: dict[str, list[str]] = {}
    for name, kind in rows.kinds.items():
        by_kind.setdefault(kind, []).append(name)
    table = [[kind, len(names), ", ".join(names)] for kind, names in by_kind.items()]
    share = (rows.y == rows.positive).mean()
    print_line(
        f"{rows.file.path}: {len(rows.y):,} rows. Label {task.label}: {rows.positive} is positive "
        f"({share:.1%}). Groups by {' and '.join(task.sensitive)}."
    )
    show_table("Features, as read", ["kind", "columns", ""], table)
    sizes = rows.groups.astype(object).value_counts(sort=False)  # without groups that have no rows
    names = [", ".join(map(str, key)) for key in sizes.index]
    shown = list(zip(names, map("{:,}".format, sizes), strict=True))[:_MOST_GROUPS]
    title = "Groups" if len(sizes) <= _MOST_GROUPS else f"The first of {len(sizes)} groups"
    show_table(title, ["group", "rows"], shown)


def _show_result(
    model: Any,
    test: Rows | None,
    record: TrainingRecord,
    output: Path,
    data: Path,
    as_json: bool,
) -> None:
    content = None if test is None else _audit_held_out(model, test, record)
    if as_json:
        keys = ("verdict", "scores", "rates", "gaps")
        print_json(
            {
                "model": str(output),
                "search": to_dict(record.search),
                "rounds": model.certificate_.n_rounds,
                "certificate": model.certificate_.to_dict(),
                "held_out": content and {key: content[key] for key in keys},
            }
        )
        return
    if record.search is not None:
        print_line(f"Chosen: {record.search.reason}.")
    if content:
        show_audit(content)
        print_line()
    print_line("Certificate of the training run (for its numbers: fairproj info)")
    for sentence in certificate_words(model.certificate_):
        print_line(sentence)
    print_line()
    print_line(f"Model: {output}")
    next_command = ["fairproj", "report", str(output), str(data), "-o", "report.html"]
    print_line(f"Next: {shlex.join(next_command)}")


def _audit_held_out(model: Any, test: Rows, record: TrainingRecord) -> dict[str, Any]:
    return summarize_estimator(
        model,
        test.X,
        test.y,
        sensitive_features=test.groups,
        metric=record.metric,
        max_gap=record.max_gap,
        source=Source(record.data.name, test.which, False),
    )
