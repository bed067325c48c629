"""``fairproj train``."""

from __future__ import annotations

import shlex
import warnings
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from fairproj import FairProjClassifier
from fairproj.cli import _rows
from fairproj.cli._common import (
    AsJson,
    Force,
    Jobs,
    app,
    in_a_sentence,
    print_json,
    refuse_to_overwrite,
    say,
    show_table,
    typed_command,
)
from fairproj.cli._record import Record
from fairproj.cli._rows import Question, Rows, read_rows, split_rows
from fairproj.cli._show import show_audit
from fairproj.report import Source, certificate_words, summary
from fairproj.selection import FairProjClassifierCV

_MOST_SHOWN = 20


class Enforce(Enum):
    classifier = "classifier"
    distribution = "distribution"


class Gap(Enum):
    equal_opportunity = "equal_opportunity"
    demographic_parity = "demographic_parity"
    false_positive_rate = "false_positive_rate"
    equalized_odds = "equalized_odds"

    @property
    def constraint(self) -> str:
        """What the classifier calls it."""
        return "false_positive_rate_parity" if self is Gap.false_positive_rate else self.value


class Rule(Enum):
    one_se = "one_se"
    upper = "upper"
    mean = "mean"


class Votes(Enum):
    discrete = "discrete"
    confidence = "confidence"


@app.command(
    help="Train a model and write it to a file.\n\n"
    "A part of the rows is held out and audited at the end; fairproj audit and report find it "
    "again by themselves.\n\n"
    "fairproj train adult.csv --label income --sensitive sex -o model.fairproj\n\n"
    "With --epsilon the gap is bounded on the training rows. With --max-gap, several epsilons are "
    "tried and the most accurate model is kept whose gap is within it: "
    "fairproj train adult.csv --label income --sensitive sex --max-gap 0.05 -o model.fairproj",
    short_help="Train a model.",
)
@in_a_sentence
def train(
    data: Annotated[Path, typer.Argument(help="CSV, Parquet, Feather or Arrow.")],
    label: _rows.Label,
    sensitive: _rows.Sensitive,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    constraint: Annotated[
        Gap, typer.Option(help="Which rates must be alike across groups.")
    ] = Gap.equal_opportunity,
    epsilon: Annotated[
        float | None,
        typer.Option(help="The largest gap allowed in training; by default 0.05.", min=0, max=1),
    ] = None,
    enforce: Annotated[
        Enforce | None,
        typer.Option(
            help="What epsilon bounds: the classifier's own gap (the default), or the imbalance "
            "of the training weights (the paper's surrogate)."
        ),
    ] = None,
    max_gap: Annotated[
        float | None,
        typer.Option(help="Choose epsilon and enforce such that this is met.", min=0, max=1),
    ] = None,
    rule: Annotated[
        Rule | None,
        typer.Option(
            help="Of --max-gap: mean gap of the folds plus a standard error, an exact upper "
            "bound on rows held out from training (wrong at most once in ten), or the mean alone; "
            "by default one_se."
        ),
    ] = None,
    nearest: Annotated[
        bool,
        typer.Option("--nearest", help="If no model meets --max-gap, keep the nearest; exit 3."),
    ] = False,
    positive: _rows.Positive = None,
    drop: _rows.Drop = None,
    use_sensitive: _rows.UseSensitive = False,
    rounds: Annotated[int, typer.Option(help="The most rounds of boosting.", min=1)] = 100,
    depth: Annotated[
        int | None, typer.Option(help="Depth of the trees; 1 if nothing is said.", min=1)
    ] = None,
    leaves: Annotated[int | None, typer.Option(help="Most leaves of a tree.", min=2)] = None,
    learning_rate: Annotated[
        float, typer.Option(help="Part of each vote that is used, up to 1.")
    ] = 1.0,
    votes: Annotated[
        Votes, typer.Option(help="Whether trees say yes or no, or how sure they are.")
    ] = Votes.discrete,
    test_size: _rows.TestSize = 0.25,
    seed: _rows.Seed = 0,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    refuse_to_overwrite([output], force, [data])
    _check_numbers(learning_rate, test_size)
    if max_gap is not None and epsilon is not None:
        raise ValueError("--max-gap chooses epsilon: give one of --max-gap and --epsilon")
    if max_gap is None and (rule is not None or nearest):
        raise ValueError("--rule and --nearest say how --max-gap is met: give --max-gap too")
    asked = Question(label, sensitive, positive, drop, use_sensitive)
    rows = read_rows(data, asked)
    if not as_json:
        show_data(rows, asked)
    training, test, digest = rows, None, ""
    if test_size:
        training, test, digest = split_rows(rows, asked, test_size, seed)
    template = FairProjClassifier(
        constraint.constraint,
        0.05 if epsilon is None else epsilon,
        enforce=(enforce or Enforce.classifier).value,
        n_estimators=rounds,
        max_depth=depth,
        max_leaf_nodes=leaves,
        learning_rate=learning_rate,
        votes=votes.value,
        pos_label=rows.positive,
        n_jobs=jobs,
        random_state=seed,
    )
    choice = None
    if max_gap is None:
        template.set_params(verbose=not as_json)
        model = template.fit(training.X, training.y, sensitive_features=training.groups)
    else:
        quiet = as_json
        chooser = _chooser(template, max_gap, constraint, rule or Rule.one_se, jobs, quiet)
        if enforce is not None:
            chooser.set_params(enforce=enforce.value)
        chooser.set_params(random_state=seed)
        _choose(chooser, training, nearest)
        model, choice = chooser.best_estimator_, _told(chooser)
    aimed_at = max_gap
    if max_gap is None and template.enforce == Enforce.classifier.value:
        aimed_at = template.epsilon
    record = Record(
        asked,
        {"name": data.name, "sha256": rows.sha256, "rows": len(rows.y)},
        rows.kinds,
        {"fraction": test_size, "seed": seed, "sha256": digest} if test_size else None,
        constraint.value,
        aimed_at,
        choice,
        typed_command(),
    )
    model.save(output, metadata=record.to_metadata())
    _tell(model, test, record, output, data, as_json)
    if choice and not choice["met"]:
        raise typer.Exit(3)


def _check_numbers(learning_rate: float, test_size: float) -> None:
    if not 0 < learning_rate <= 1:
        raise ValueError(f"--learning-rate {learning_rate:g} must be above 0 and at most 1")
    if not 0 <= test_size < 1:
        raise ValueError(f"--test-size {test_size:g} must lie between 0 and 1")


def show_data(rows: Rows, asked: Question) -> None:
    """What was read, and what it was taken for."""
    kinds: dict[str, list[str]] = {}
    for name, kind in rows.kinds.items():
        kinds.setdefault(kind, []).append(name)
    table = [[kind, len(names), ", ".join(names)] for kind, names in kinds.items()]
    share = (rows.y == rows.positive).mean()
    say(
        f"{rows.file.path}: {len(rows.y):,} rows. Label {asked.label}: {rows.positive} is positive "
        f"({share:.1%}). Groups by {' and '.join(asked.sensitive)}."
    )
    show_table("Features, as read", ["kind", "columns", ""], table)
    sizes = rows.groups.astype(object).value_counts(sort=False)  # only those with rows
    names = [", ".join(map(str, key)) for key in sizes.index]
    shown = list(zip(names, map("{:,}".format, sizes), strict=True))[:_MOST_SHOWN]
    title = "Groups" if len(sizes) <= _MOST_SHOWN else f"The first of {len(sizes)} groups"
    show_table(title, ["group", "rows"], shown)


def _chooser(
    template: FairProjClassifier,
    max_gap: float,
    constraint: Gap,
    rule: Rule,
    jobs: int,
    quiet: bool,
) -> FairProjClassifierCV:
    return FairProjClassifierCV(
        max_gap,
        constraint.value,
        estimator=template.set_params(n_jobs=1),
        rule=rule.value,
        if_none="nearest",
        n_jobs=jobs,
        verbose=not quiet,
    )


def _choose(chooser: FairProjClassifierCV, rows: Rows, nearest: bool) -> None:
    with warnings.catch_warnings():
        if not nearest:  # said as an error below, in the words of the command
            warnings.filterwarnings("ignore", message="none of")
        chooser.fit(rows.X, rows.y, sensitive_features=rows.groups)
    if not chooser.met_ and not nearest:
        raise ValueError(
            f"{chooser.reason_}; allow a larger --max-gap, give more rows, or keep the nearest "
            "with --nearest"
        )


def _told(chooser: FairProjClassifierCV) -> dict[str, Any]:
    """The choice as plain values."""
    table = chooser.table_.astype(object).where(chooser.table_.notna(), None)
    return {
        **chooser.best_params_,
        "metric": chooser.metric,
        "scoring": chooser.scoring,
        "rule": chooser.rule,
        "max_gap": chooser.max_gap,
        "met": chooser.met_,
        "reason": chooser.reason_,
        "table": table.to_dict("records"),
    }


def _tell(
    model: FairProjClassifier,
    test: Rows | None,
    record: Record,
    output: Path,
    data: Path,
    as_json: bool,
) -> None:
    content = None
    if test is not None:
        content = summary(
            model,
            test.X,
            test.y,
            test.groups,
            metric=record.metric,
            max_gap=record.max_gap,
            source=Source(data.name, test.which, False),
        )
    if as_json:
        print_json(
            {
                "model": str(output),
                "choice": record.choice,
                "rounds": model.certificate_.n_rounds,
                "certificate": model.certificate_.to_dict(),
                "held_out": content
                and {key: content[key] for key in ("verdict", "scores", "rates", "gaps")},
            }
        )
        return
    if record.choice:
        say(f"Chosen: {record.choice['reason']}.")
    if content:
        show_audit(content)
        say()
    say("Certificate of the training run (fairproj info has its numbers)")
    for sentence in certificate_words(model.certificate_):
        say(sentence)
    say()
    say(f"Model: {output}")
    next_one = ["fairproj", "report", str(output), str(data), "-o", "report.html"]
    say(f"Next: {shlex.join(next_one)}")
