"""``fairproj train``."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.cli import _task
from fairproj.cli._app import AsJson, Force, Jobs, report_errors, statistic_option
from fairproj.cli._console import print_json
from fairproj.cli._files import DataPaths, check_outputs
from fairproj.cli._fit import Plan, Result, SearchOptions, train_in_memory, train_large
from fairproj.cli._large import connect
from fairproj.cli._record import Target
from fairproj.cli._show import NO_SOLUTION
from fairproj.cli._task import Task, parse_sensitive
from fairproj.cli._train_options import (
    FIT,
    ClassWeightOption,
    Loss,
    Margin,
    Method,
    Rounds,
    Rule,
    Scoring,
    Votes,
    check_confidence_option,
    check_fairboost,
    check_fraction,
    check_large,
    check_numbers,
    check_scoring,
    check_several,
    check_together,
    check_weights_and_time,
    new_file,
    pair_targets,
    plain_value,
    share_option,
)
from fairproj.cli._train_show import cost_warning, outcome, show_result
from fairproj.io.tables import DataFiles
from fairproj.io.text import escape
from fairproj.selection import NoSolutionFoundError

_MAX_GAP = 0.05
_EPSILON = 0.1
_GOAL, _POINT, _SEARCH = "Target", "Where the model decides", "Search"
_LARGE = "Large data"


@report_errors
def train(
    data: DataPaths,
    label: _task.Label,
    sensitive: _task.Sensitive,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    positive: _task.Positive = None,
    drop: _task.Drop = None,
    use_sensitive: _task.UseSensitive = False,
    missing_groups: _task.MissingGroupsOption = _task.MissingGroups.error,
    weights: _task.Weights = None,
    time: _task.Time = None,
    test_size: _task.TestSize = 0.25,
    seed: _task.Seed = 0,
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
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Keep a quarter of the training rows for one exact test of the finished model, "
            "such as 0.95: either the gap on new rows is at most --max-gap with this confidence, "
            "or there is no model and the exit code is 6.",
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
        share_option(
            "Predict the positive label where its probability exceeds this; by default 0.5. The "
            "gap is bounded there and nowhere else.",
            _POINT,
        ),
    ] = None,
    selection_rate: Annotated[
        float | None, share_option("The share of the rows to predict positive.", _POINT)
    ] = None,
    max_false_positive_rate: Annotated[
        float | None,
        share_option("Predict positive as often as this limit, over all groups, allows.", _POINT),
    ] = None,
    max_false_negative_rate: Annotated[
        float | None,
        share_option("Predict negative as often as this limit, over all groups, allows.", _POINT),
    ] = None,
    loss: Annotated[
        Loss | None,
        typer.Option(
            help="What is minimised; by default logistic. exponential has a proved bound.",
            rich_help_panel=FIT,
        ),
    ] = None,
    class_weight: ClassWeightOption = None,
    rounds: Rounds = 100,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Share of each step that is taken, above 0 and at most 1; by default 0.1, or 1 "
            "with --method paper.",
            rich_help_panel=FIT,
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            help="Depth of the trees; by default any, or 1 with --method paper.",
            min=1,
            rich_help_panel=FIT,
        ),
    ] = None,
    leaves: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of leaves of a tree; by default 31, or any with --method paper.",
            min=2,
            rich_help_panel=FIT,
        ),
    ] = None,
    votes: Annotated[
        Votes | None,
        typer.Option(
            help="With --method paper or --loss exponential: whether a tree votes with its label "
            "or with its confidence.",
            rich_help_panel=FIT,
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
            rich_help_panel=FIT,
        ),
    ] = None,
    early_stopping: Annotated[
        bool,
        typer.Option(
            "--early-stopping",
            help="Stop when the loss on the rows held out for watching no longer falls.",
            rich_help_panel=FIT,
        ),
    ] = False,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Try several values of the method's parameter and keep the model of best "
            "--scoring whose gap on rows it was not trained on is within --max-gap.",
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
    scoring: Annotated[
        Scoring | None,
        typer.Option(
            help="With --search: what is highest for the model that is kept; by default accuracy.",
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
            help="With --scheduler: a checkpoint of the same command to continue from.",
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
    everyone. The model file is written in both cases. It is 6 if the test of --confidence fails;
    then there is no solution, and no model file is written.
    """
    large = out_of_core or scheduler is not None
    check_large(data, out_of_core, scheduler, checkpoint or resume_from, search)
    files = DataFiles.from_paths(data)
    inputs = [file.path for file in files.files]
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
    check_scoring(scoring, search)
    check_confidence_option(confidence, method, search, large)
    check_weights_and_time(weights, time, rule, test_size)
    if large and missing_groups is not _task.MissingGroups.error:
        raise ValueError(
            "--missing-groups is for training in memory; leave it out with --out-of-core and "
            "--scheduler, and drop those rows or fill them with a value of their own"
        )
    names, ranges = parse_sensitive(sensitive, files.column_names())
    task = Task(label, names, positive, drop, use_sensitive, ranges, weights, time, missing_groups)
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
    if method is Method.paper and not search:
        targets = [Target(target.metric, None) for target in targets]
    plan = Plan(
        task,
        test_size,
        seed,
        make_estimator,
        targets,
        SearchOptions(rule or Rule.one_se, nearest, (scoring or Scoring.accuracy).value)
        if search
        else None,
        confidence,
        jobs,
        not as_json,
    )
    try:
        result = _run(data, plan, large, scheduler, (checkpoint, resume_from))
    except NoSolutionFoundError as error:
        reason = _with_options(str(error))
        if as_json:
            print_json({"model": None, "reason": reason})
        kept = ", and the one that exists is unchanged" if output.exists() else ""
        typer.echo(f"{escape(reason)}; no model file is written{kept}", err=True)
        raise typer.Exit(NO_SOLUTION) from None
    result.model.save(output, metadata=result.record.to_metadata())
    show_result(result, output, data, as_json)
    code, reason = outcome(result.model, result.record, result.content)
    for warning in filter(None, (reason, cost_warning(result))):
        typer.echo(f"warning: {escape(warning)}", err=True)
    raise typer.Exit(code)


def _with_options(reason: str) -> str:
    """A sentence of the library with the names of the options of the command."""
    reason = re.sub(r"\bmax_gap\b(?!=)", "--max-gap", reason)
    reason = reason.replace(" or other param_values", "")
    reason = reason.replace("or take the nearest: if_none='nearest'", "or keep it with --nearest")
    reason = reason.replace("ask for a selection rate", "add --selection-rate")
    reason = reason.replace("an estimator that keeps a smaller gap", "--margin one_se")
    return reason.replace("balance the labels' weights", "add --class-weight balanced")


def _run(
    data: list[Path],
    plan: Plan,
    large: bool,
    scheduler: str | None,
    checkpoints: tuple[str | None, str | None],
) -> Result:
    if not large:
        return train_in_memory(data[0], plan)
    cluster = None if scheduler is None else connect(scheduler, *checkpoints)
    return train_large(data, plan, cluster)


def _make_estimator(
    method: Method, targets: list[Target], epsilon: float, **parameters: Any
) -> Any:
    names, gaps = [target.metric for target in targets], [target.max_gap for target in targets]
    if method is Method.paper:
        return FairProjClassifier(names[0], epsilon, **parameters)
    if len(targets) == 1:
        return FairBoostClassifier(names[0], gaps[0], baseline=True, **parameters)
    return FairBoostClassifier(names, gaps, baseline=True, **parameters)
