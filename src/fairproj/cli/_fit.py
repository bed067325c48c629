"""Training runs of ``fairproj train``: in memory or not, with a search or a test."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from fairproj import FairBoostClassifier
from fairproj.cli._app import command_line
from fairproj.cli._columns import check_groups_of_training
from fairproj.cli._findings import crossed_groups, inspect_task, warn_of_findings
from fairproj.cli._large import LargeData, OnCluster
from fairproj.cli._model_rows import ModelRows, summarize_tally
from fairproj.cli._record import (
    Confirmation,
    FileRecord,
    HeldOut,
    SearchRecord,
    Target,
    TrainingRecord,
    other_targets,
)
from fairproj.cli._rows import Rows, read_rows
from fairproj.cli._split import check_sides_of_rows, find_cut, split_by_time, split_rows
from fairproj.cli._streams import checksum
from fairproj.cli._task import Task
from fairproj.cli._train_options import Rule
from fairproj.cli._train_show import show_data
from fairproj.data.checks import check_groups
from fairproj.estimators.price import measure_on_rows
from fairproj.report import Source, summarize_estimator
from fairproj.selection import ConfirmedClassifier, GapSearchCV, NoSolutionFoundError


@dataclass(frozen=True)
class SearchOptions:
    """How to search."""

    rule: Rule
    nearest: bool
    scoring: str


@dataclass(frozen=True)
class Plan:
    """What to train, on which of the rows.

    Attributes
    ----------
    task : Task
    fraction, seed : float and int
        The share of the rows to hold out, and the seed of every choice of rows.
    make_estimator : callable
        Makes the estimator, with further parameters.
    targets : list of Target
    search : SearchOptions, optional
    confidence : float, optional
        Of an exact test of the finished model.
    jobs : int
    verbose : bool
    """

    task: Task
    fraction: float
    seed: int
    make_estimator: Callable[..., Any]
    targets: list[Target]
    search: SearchOptions | None = None
    confidence: float | None = None
    jobs: int = 1
    verbose: bool = True


@dataclass(frozen=True)
class Result:
    """A model, its record, and the audit of the rows held out from training, if there are any."""

    model: Any
    record: TrainingRecord
    content: dict[str, Any] | None
    note: str = ""


@dataclass(frozen=True)
class _Fitted:
    """A model, and how it was found."""

    model: Any
    search: SearchRecord | None = None
    confirmation: Confirmation | None = None


def train_in_memory(data: Path, plan: Plan) -> Result:
    rows = read_rows(data, plan.task)
    check_groups_of_training(data, plan.task, rows.groups, rows.y == rows.positive)
    if plan.verbose:
        groups = check_groups(rows.groups, len(rows.y))
        sizes = np.bincount(groups.codes).tolist()
        share = float((rows.y == rows.positive).mean())
        named = list(zip(groups.names, sizes, strict=True))
        show_data(data, plan.task, rows.kinds, rows.positive, share, named)
    inspection = inspect_task(rows, plan.task, plan.targets, plan.fraction)
    crossed = crossed_groups(rows, plan.task, inspection, plan.targets, plan.fraction)
    findings = [*inspection.findings, *crossed]
    if plan.confidence is not None:  # then other rows confirm the gap, and the test counts them
        kinds = ("small_group", "crossed_groups")
        findings = [found for found in findings if found.kind not in kinds]
    warn_of_findings(findings)
    training, test, held_out = _hold_out(rows, plan)
    with _tested_rows_named(held_out):
        fitted = _fit_rows(plan.make_estimator(pos_label=rows.positive), training, plan)
    model = fitted.model
    if test is not None and hasattr(model, "baseline_"):
        model.price_ = measure_on_rows(model, test.X, test.y, test.groups) or model.price_
    confirmation = fitted.confirmation
    if confirmation is not None:
        reason = _name_tested_rows(confirmation.reason, held_out)
        confirmation = replace(confirmation, reason=reason)
    record = TrainingRecord(
        plan.task,
        FileRecord(data.name, rows.sha256, len(rows.y)),
        rows.kinds,
        held_out,
        plan.targets,
        fitted.search,
        command_line(),
        confirmation,
        findings,
        decimals=rows.decimals,
    )
    return Result(model, record, None if test is None else _audit_held_out(model, test, record))


def train_large(
    paths: list[Path], plan: Plan, cluster: AbstractContextManager[OnCluster] | None
) -> Result:
    """Train on rows that are not read into memory, perhaps on a cluster."""
    with cluster or nullcontext() as on_cluster:
        return _train_large(paths, plan, on_cluster)


def _train_large(paths: list[Path], plan: Plan, cluster: OnCluster | None) -> Result:
    task, verbose = plan.task, plan.verbose
    large = LargeData.open(paths, task)
    if verbose:
        show_data(
            large.data.name, task, large.kinds, large.positive, large.positive_share, large.groups
        )
    file = FileRecord(large.data.short_name, checksum(large.data), large.keys.n_rows)
    source, choice = large.split(plan.fraction, plan.seed, verbose=verbose)
    estimator = plan.make_estimator(pos_label=large.positive, engine="xgboost", verbose=verbose)
    with _explained():
        if cluster is None:
            model = estimator.set_params(n_jobs=plan.jobs).fit(source)
        else:
            model = cluster.fit(estimator, source, compare=choice is not None)
    held_out = None if choice is None else choice.held_out
    record = TrainingRecord(task, file, large.kinds, held_out, plan.targets, None, command_line())
    if choice is None:
        return Result(model, record, None)
    rows = ModelRows.open(model, list(large.kinds), large.data, task)
    tally = rows.count(choice, verbose=verbose)
    price = tally.price()
    if price is not None:
        model.price_ = price
    source_of_rows = Source(file.name, choice.which, False)
    content = summarize_tally(
        tally, model, large.positive, {**_target_options(record), "source": source_of_rows}
    )
    return Result(model, record, content, tally.note)


def _hold_out(rows: Rows, plan: Plan) -> tuple[Rows, Rows | None, HeldOut | None]:
    """Training rows, and the held-out rows if there are any."""
    fraction, column = plan.fraction, plan.task.time
    if not fraction:
        return rows, None, None
    if column is None:
        training, test, digest = split_rows(rows, fraction, plan.seed)
        return training, test, HeldOut(fraction, plan.seed, digest)
    cut = find_cut(rows, column, fraction)
    training, test, digest = split_by_time(rows, cut)
    check_sides_of_rows(rows, cut)
    return training, test, HeldOut(fraction, plan.seed, digest, time=cut)


def _fit_rows(estimator: Any, rows: Rows, plan: Plan) -> _Fitted:
    """Fit once, search, or fit and test."""
    if plan.search is not None:
        return _search(estimator, rows, plan, plan.search)
    estimator.set_params(n_jobs=plan.jobs, verbose=plan.verbose)
    if plan.confidence is not None:
        return _confirm(estimator, rows, plan, plan.confidence)
    return _Fitted(_fit(estimator, rows))


@contextmanager
def _explained() -> Iterator[None]:
    """Leave out warnings of what `outcome` says with the names of the options."""
    with warnings.catch_warnings():
        said = "the model (says the same|is not useful)|no useful round|no learner beat chance"
        warnings.filterwarnings("ignore", message=said)
        yield


def _fit(estimator: Any, rows: Rows) -> Any:
    with _explained():
        return estimator.fit(
            rows.X, rows.y, sensitive_features=rows.groups, sample_weight=rows.weight
        )


def _confirm(estimator: Any, rows: Rows, plan: Plan, confidence: float) -> _Fitted:
    """A model that one exact test has confirmed, or `NoSolutionFoundError`."""
    confirmed = ConfirmedClassifier(
        estimator,
        [target.max_gap for target in plan.targets],
        metric=[target.metric for target in plan.targets],
        confidence=confidence,
        random_state=plan.seed,
    )
    _fit(confirmed, rows)
    record = Confirmation(
        confidence, confirmed.n_safety_rows_, confirmed.gap_bounds_, confirmed.reason_
    )
    return _Fitted(confirmed.estimator_, confirmation=record)


@contextmanager
def _tested_rows_named(held_out: HeldOut | None) -> Iterator[None]:
    """Say in `NoSolutionFoundError` which rows the test used."""
    try:
        yield
    except NoSolutionFoundError as error:
        raise NoSolutionFoundError(_name_tested_rows(str(error), held_out)) from None


def _name_tested_rows(reason: str, held_out: HeldOut | None) -> str:
    """With a split by time, the test uses training rows, which are all from before the cut."""
    if held_out is None or held_out.time is None:
        return reason
    cut = held_out.time
    unseen = "rows that training did not see"
    before = f"rows from before {cut.start}, by {cut.column}, that training did not see"
    return reason.replace(unseen, before)


def _search(estimator: Any, rows: Rows, plan: Plan, options: SearchOptions) -> _Fitted:
    """The best model, and the search that found it."""
    target, rule = plan.targets[0], options.rule
    candidate = clone(estimator).set_params(n_jobs=1)
    if rule is not Rule.upper and isinstance(candidate, FairBoostClassifier):
        candidate.set_params(baseline=False)  # the best one is fitted again below
    search = GapSearchCV(
        candidate,
        target.max_gap or 0.0,
        metric=target.metric,
        scoring=options.scoring,
        selection_rule=rule.value,
        refit=False,  # not before it is clear that the best model is kept
        if_none="nearest" if options.nearest else "raise",
        n_jobs=plan.jobs,
        random_state=estimator.random_state,
        verbose=plan.verbose,
    )
    search.fit(rows.X, rows.y, sensitive_features=rows.groups, sample_weight=rows.weight)
    record = SearchRecord.from_search(search)
    if rule is Rule.upper:  # the bound holds for the model that was judged
        return _Fitted(search.best_estimator_, record)
    best = clone(estimator).set_params(**search.best_params_, n_jobs=1)
    return _Fitted(_fit(best, rows), record)


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
        "other_targets": other_targets(record.targets, target.metric),
        "confidence": 0.95,
        "frontier": None,
    }
