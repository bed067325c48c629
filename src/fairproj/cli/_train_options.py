"""Values of the options of ``fairproj train``, and which of them go together."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from fairproj.cli._record import Target
from fairproj.constraints import find_statistic
from fairproj.io.tables import is_pattern

FIT, POINT = "Training", "Where models decide"  # groups of options in the help
_ERROR_RATES = ("max_false_positive_rate", "max_false_negative_rate")


class Method(Enum):
    fairboost = "fairboost"
    paper = "paper"


class Rule(Enum):
    one_se = "one_se"
    upper = "upper"
    mean = "mean"


class Scoring(Enum):
    """Scores of scikit-learn that lie between 0 and 1 and know any two labels."""

    accuracy = "accuracy"
    balanced_accuracy = "balanced_accuracy"
    roc_auc = "roc_auc"


class Votes(Enum):
    discrete = "discrete"
    confidence = "confidence"


class Loss(Enum):
    logistic = "logistic"
    exponential = "exponential"


class ClassWeight(Enum):
    balanced = "balanced"


def check_share(share: float | None) -> float | None:
    if share is not None and not 0 < share < 1:
        raise typer.BadParameter(f"{share:g} must lie between 0 and 1")
    return share


def share_option(text: str, group: str) -> Any:
    return typer.Option(help=text, callback=check_share, metavar="SHARE", rich_help_panel=group)


Threshold = Annotated[
    float | None,
    share_option(
        "Predict the positive label where its probability exceeds this; by default 0.5.", POINT
    ),
]
SelectionRate = Annotated[
    float | None, share_option("The share of the rows to predict positive.", POINT)
]
ClassWeightOption = Annotated[
    ClassWeight | None,
    typer.Option(
        help="balanced: errors on rare labels cost more, in inverse proportion to their frequency.",
        rich_help_panel=FIT,
    ),
]
Rounds = Annotated[
    int, typer.Option(help="Maximum number of boosting rounds.", min=1, rich_help_panel=FIT)
]


class Margin(Enum):
    one_se = "one_se"


def check_fraction(text: str) -> str:
    if text not in ("auto", "none"):
        try:
            check_share(float(text))
        except ValueError:
            raise typer.BadParameter(
                f"{text!r} is none of auto, none and a number such as 0.25"
            ) from None
    return text


def check_numbers(learning_rate: float | None, test_size: float) -> None:
    if learning_rate is not None and not 0 < learning_rate <= 1:
        raise ValueError(f"--learning-rate {learning_rate:g} must be above 0 and at most 1")
    if not 0 <= test_size < 1:
        raise ValueError(f"--test-size {test_size:g} must be 0 or more and below 1")


def check_together(
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
    for name, given in (("--rule", rule is not None), ("--nearest", nearest)):
        if given and not search:
            raise ValueError(f"{name} is for a search; add --search, or leave out {name}")


def check_fairboost(method: Method, given: dict[str, Any], votes: Votes | None) -> None:
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


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def pair_targets(constraints: list[str], max_gaps: list[float]) -> list[Target]:
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


def check_several(targets: list[Target], method: Method, search: bool) -> None:
    if len(targets) > 1 and (search or method is Method.paper):
        raise ValueError(
            "several --constraint are for --method fairboost without --search; give one of them"
        )
    if method is Method.paper and find_statistic(targets[0].metric).kind == "ratio":
        raise ValueError(
            "--method paper balances training weights and cannot limit a ratio; use --constraint "
            "demographic_parity, or leave out --method paper"
        )


def check_scoring(scoring: Scoring | None, search: bool) -> None:
    if scoring is not None and not search:
        raise ValueError("--scoring is for a search; add --search")


def check_confidence_option(
    confidence: float | None, method: Method, search: bool, large: bool
) -> None:
    """Refuse a test that cannot be made, or that another option makes already."""
    if confidence is None:
        return
    if not 0.5 < confidence < 1:
        raise ValueError(f"--confidence {confidence:g} must be above 0.5 and below 1")
    if method is Method.paper:
        raise ValueError(
            "--confidence tests the gap against --max-gap, which is for --method fairboost; leave "
            "one of them out"
        )
    if search:
        raise ValueError(
            "--confidence tests one finished model; leave out --search, or use --search --rule "
            "upper, which has a test of its own"
        )
    if large:
        raise ValueError(
            "--confidence keeps rows for its test in memory; leave it out with --out-of-core and "
            "--scheduler, and audit the model with --max-gap"
        )


def check_weights_and_time(
    weights: str | None, time: str | None, rule: Rule | None, test_size: float
) -> None:
    if weights is not None and rule is Rule.upper:
        raise ValueError(
            "--rule upper counts rows and takes no --weights; use --rule one_se, or leave them out"
        )
    if time is not None and not test_size:
        raise ValueError(
            "--time holds out the last rows, and --test-size 0 holds out none; leave out one"
        )


def plain_value(value: Any) -> Any:
    """The value of an option as the estimators take it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str) and value != "auto":
        return None if value == "none" else float(value)
    return value


def check_large(
    data: list[Path],
    out_of_core: bool,
    scheduler: str | None,
    checkpoint: str | None,
    search: bool,
) -> None:
    """Refuse options that do not go with rows that are not read into memory, or only with them."""
    if out_of_core and scheduler is not None:
        raise ValueError("--out-of-core is for one machine and --scheduler for a cluster; give one")
    if scheduler is None and checkpoint is not None:
        raise ValueError("--checkpoint and --resume-from are for a cluster; add --scheduler")
    if out_of_core or scheduler is not None:
        if search:
            raise ValueError(
                "--search fits many models in memory; leave it out with --out-of-core and "
                "--scheduler"
            )
    elif len(data) > 1 or is_pattern(data[0]):
        raise ValueError(
            f"{data[0]}{' and more' if len(data) > 1 else ''} would be several files, and training "
            "in memory reads one; add --out-of-core, which reads Parquet files in parts"
        )


def new_file(checkpoint: str | None, resume_from: str | None) -> Path | None:
    """The file of a checkpoint, unless training continues from it; a URL is written elsewhere."""
    if checkpoint is None or checkpoint == resume_from or "://" in checkpoint:
        return None
    return Path(checkpoint)
