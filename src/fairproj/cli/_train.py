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
from fairproj.cli._files import DataPath, check_outputs
from fairproj.cli._record import FileRecord, HeldOut, SearchRecord, Target, TrainingRecord
from fairproj.cli._rows import Rows, Task, read_rows, split_rows
from fairproj.cli._show import NOT_MET, NOT_USEFUL, show_audit, show_price
from fairproj.io.records import to_dict
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


class Loss(Enum):
    logistic = "logistic"
    exponential = "exponential"


class ClassWeight(Enum):
    balanced = "balanced"


class Margin(Enum):
    one_se = "one_se"


def check_share(share: float | None) -> float | None:
    if share is not None and not 0 < share < 1:
        raise typer.BadParameter(f"{share:g} must lie between 0 and 1")
    return share


def _share_option(help_text: str) -> Any:
    return typer.Option(
        help=help_text, callback=check_share, metavar="SHARE", rich_help_panel=_POINT
    )


def check_fraction(text: str) -> str:
    if text not in ("auto", "none"):
        try:
            check_share(float(text))
        except ValueError:
            raise typer.BadParameter(
                f"{text!r} is none of auto, none and a number such as 0.25"
            ) from None
    return text


@report_errors
def train(
    data: DataPath,
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

    The exit code is 3 if the model misses --max-gap on the rows that were watched in training, and
    5 if it is not useful: if its errors cost no less than those of the same prediction for
    everyone. The model file is written in both cases.
    """
    check_outputs([output], force=force, inputs=[data])
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
    _check_numbers(learning_rate, test_size)
    _check_together(method, max_gap, epsilon, search, rule, nearest)
    _check_fairboost(method, only_fairboost, votes)
    targets = _pair(constraint or ["equal_opportunity"], max_gap or [_MAX_GAP])
    _check_several(targets, method, search)
    task = Task(label, sensitive, positive, drop, use_sensitive)
    rows = read_rows(data, task)
    if not as_json:
        show_data(rows, task)
    training, test, held_out = _hold_out(rows, task, test_size, seed)
    parameters = {
        "max_depth": depth,
        "max_leaf_nodes": leaves,
        "learning_rate": learning_rate,
        "votes": votes,
        **only_fairboost,
    }
    estimator = _make_estimator(
        method,
        targets,
        _EPSILON if epsilon is None else epsilon,
        n_estimators=rounds,
        pos_label=rows.positive,
        random_state=seed,
        **{name: _plain(value) for name, value in parameters.items() if value is not None},
    )
    search_record = None
    if search:
        rule = rule or Rule.one_se
        model, searched = _search(estimator, training, targets[0], rule, nearest, jobs, not as_json)
        search_record = SearchRecord.from_search(searched)
    else:
        model = _fit(estimator.set_params(n_jobs=jobs, verbose=not as_json), training)
    if test is not None and hasattr(model, "baseline_"):
        model.price_ = measure_on_rows(model, test.X, test.y, test.groups) or model.price_
    if method is Method.paper and not search:
        targets = [Target(target.metric, None) for target in targets]
    file = FileRecord(data.name, rows.sha256, len(rows.y))
    record = TrainingRecord(
        task, file, rows.kinds, held_out, targets, search_record, command_line()
    )
    model.save(output, metadata=record.to_metadata())
    _show_result(model, test, record, output, data, as_json)
    code, reason = _outcome(model.certificate_, search_record)
    if reason:
        typer.echo(f"warning: {escape(reason)}", err=True)
    raise typer.Exit(code)


def _check_numbers(learning_rate: float | None, test_size: float) -> None:
    if learning_rate is not None and not 0 < learning_rate <= 1:
        raise ValueError(f"--learning-rate {learning_rate:g} must be above 0 and at most 1")
    if not 0 <= test_size < 1:
        raise ValueError(f"--test-size {test_size:g} must be 0 or more and below 1")


def _check_together(
    method: Method,
    max_gap: list[float] | None,
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
    if max_gap and method is Method.paper and not search:
        raise ValueError(
            "--method paper does not bound the gap of the predictions; add --search to find a "
            "model within --max-gap, or give --epsilon instead"
        )
    if (rule is not None or nearest) and not search:
        raise ValueError("--rule and --nearest are for a search; add --search")


def _check_fairboost(method: Method, given: dict[str, Any], votes: Votes | None) -> None:
    """Refuse options that the other method lacks, and those that contradict each other."""
    names = [_option(name) for name in given]
    if names and method is Method.paper:
        raise ValueError(f"{names[0]} is for --method fairboost; leave it out")
    points = [
        _option(name) for name in ("threshold", "selection_rate", *_ERROR_RATES) if name in given
    ]
    if len(points) > 1:
        raise ValueError(f"{points[0]} and {points[1]} both say where to decide; give one of them")
    if given.get("early_stopping") and given.get("validation_fraction") == "none":
        raise ValueError(
            "--early-stopping needs rows that are held out; leave out --validation-fraction none"
        )
    newton = method is Method.fairboost and given.get("loss") is not Loss.exponential
    if votes is not None and newton:
        raise ValueError(
            "--votes is for --method paper and --loss exponential; the trees of the logistic loss "
            "have values of their own"
        )


_ERROR_RATES = ("max_false_positive_rate", "max_false_negative_rate")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _pair(constraints: list[str], max_gaps: list[float]) -> list[Target]:
    """Each constraint with its largest gap; one gap is for all constraints."""
    if len(set(constraints)) < len(constraints):
        raise ValueError(f"--constraint {constraints[-1]} is given more than once; give it once")
    if len(max_gaps) not in (1, len(constraints)):
        raise ValueError(
            f"--max-gap is given {len(max_gaps)} times and --constraint names "
            f"{len(constraints)}; give --max-gap once, or once for each --constraint"
        )
    if len(max_gaps) == 1:
        max_gaps = max_gaps * len(constraints)
    return [Target(name, gap) for name, gap in zip(constraints, max_gaps, strict=True)]


def _check_several(targets: list[Target], method: Method, search: bool) -> None:
    if len(targets) > 1 and (search or method is Method.paper):
        raise ValueError(
            "several --constraint are for --method fairboost without --search; give one of them"
        )


def _plain(value: Any) -> Any:
    """The value of an option as the estimators take it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str) and value != "auto":
        return None if value == "none" else float(value)
    return value


def _hold_out(
    rows: Rows, task: Task, fraction: float, seed: int
) -> tuple[Rows, Rows | None, HeldOut | None]:
    """Training rows, and the held-out rows if there are any."""
    if not fraction:
        return rows, None, None
    training, test, digest = split_rows(rows, task, fraction, seed)
    return training, test, HeldOut(fraction, seed, digest)


def _make_estimator(
    method: Method, targets: list[Target], epsilon: float, **parameters: Any
) -> Any:
    names, gaps = [target.metric for target in targets], [target.max_gap for target in targets]
    if method is Method.paper:
        return FairProjClassifier(names[0], epsilon, **parameters)
    if len(targets) == 1:
        return FairBoostClassifier(names[0], gaps[0], baseline=True, **parameters)
    return FairBoostClassifier(names, gaps, baseline=True, **parameters)


def _fit(estimator: Any, rows: Rows) -> Any:
    with warnings.catch_warnings():  # `_outcome` says the same, with the names of the options
        warnings.filterwarnings("ignore", message="the model says the same|no useful round")
        return estimator.fit(rows.X, rows.y, sensitive_features=rows.groups)


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
    return _fit(clone(estimator).set_params(**search.best_params_, n_jobs=1), rows), search


def _outcome(certificate: Any, search: SearchRecord | None) -> tuple[int, str]:
    """The exit code, and what the model misses."""
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
            f"{certificate.max_gap:g}; allow a larger --max-gap, more --rounds or larger trees "
            "with --leaves"
        )
    return 0, ""


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
        metric=record.targets[0].metric,
        max_gap=record.targets[0].max_gap,
        other_targets=record.other_targets(record.targets[0].metric),
        source=Source(record.data.name, test.which, False),
    )
