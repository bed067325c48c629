"""What ``fairproj train`` prints, and its exit code."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from fairproj.boosting.certificate import GapCertificate
from fairproj.cli._console import print_json, print_line, show_table
from fairproj.cli._record import TrainingRecord
from fairproj.cli._show import NOT_MET, NOT_USEFUL, show_audit, show_price
from fairproj.cli._task import Task
from fairproj.constraints import named
from fairproj.data.checks import counted, percent
from fairproj.io.records import to_dict
from fairproj.report._price import price_content
from fairproj.report._words import points, side, training_words, watched

_MOST_GROUPS = 20  # in the table of groups
_COSTLY = 0.1  # of accuracy or balanced accuracy; a constraint that costs more is warned of


def outcome(
    model: Any, record: TrainingRecord, content: dict[str, Any] | None = None
) -> tuple[int, str]:
    """The exit code, and what the model misses, with the options that can help.

    ``content`` is what an audit of the rows held out from training says, if there are any.
    """
    certificate = model.certificate_
    if not getattr(model, "_useful", True):
        raised = "" if record.search else "raise --epsilon, "
        return NOT_USEFUL, (
            "the model is not useful: on the training rows it errs no less often "
            f"({percent(certificate.train_error)}) than the same prediction for everyone; {raised}"
            "use larger trees with --depth, or leave out --method paper"
        )
    compared = isinstance(certificate, GapCertificate) and certificate.event
    if compared and not certificate.useful:
        return NOT_USEFUL, (
            f"the model is not useful: on the {watched(certificate)} its errors cost no less than "
            "those of the same prediction for everyone (accuracy "
            f"{certificate.accuracy:z.3f}), whatever its gap; with rare labels add --class-weight "
            "balanced or --selection-rate, else allow a larger --max-gap or add features that say "
            "more about the label"
        )
    if content is not None and content["constant"]:
        cures = "with rare labels add --class-weight balanced or --selection-rate, else allow a "
        cures += "larger --max-gap"
        if not isinstance(certificate, GapCertificate):
            cures = "leave out --method paper, and with rare labels add --class-weight balanced"
        return NOT_USEFUL, (
            "the model is not useful: on the rows held out from training it says nearly the same "
            f"to everyone; {cures}"
        )
    if record.confirmation is not None:
        return 0, ""  # whatever the gap on the rows that were watched
    if record.search is not None:
        return (0 if record.search.met else NOT_MET), ""  # the search has printed its reason
    if compared and not certificate.within:
        return NOT_MET, (
            f"the model misses the target: on the {watched(certificate)} its gap in "
            f"{named(certificate.event)} is {certificate.gap:z.3f}, {side(certificate)} "
            f"{certificate.max_gap:g}; allow a larger --max-gap, or try {_cures(model)}"
        )
    return 0, ""


def cost_warning(result: Any) -> str:
    """What the constraint cost and what to try, if it cost much; else empty.

    Much is more than 10 percentage points of accuracy or balanced accuracy. Without class weights,
    it is also an accuracy below that of the more common label for everyone, where the plain model
    is not below it.
    """
    model, content = result.model, result.content
    if not hasattr(model, "price_") or outcome(model, result.record)[0] == NOT_USEFUL:
        return ""
    price = content["price"] if content else price_content(model.price_)
    lost = _lost(model, price, content)
    if not lost:
        return ""
    if content and content["verdict"] == "not met":
        lost += ", and the target is not met there"
    cures = ["a larger --max-gap", "other groups with --sensitive"]
    if not getattr(model, "selection_rate", None):
        cures.append("another point to decide at with --selection-rate")
    rows = f"{model.price_.n_rows:,} {model.price_.rows}"
    return (
        f"the constraint costs much: on the {rows} {lost}; try "
        f"{', '.join(cures[:-1])} or {cures[-1]}"
    )


def _lost(model: Any, price: dict[str, Any], content: dict[str, Any] | None) -> str:
    """The score that is much lower with the constraint, in words; empty if none is."""
    scores = {row["name"]: row for row in price["scores"]}
    judged = [scores[name] for name in ("accuracy", "balanced accuracy") if name in scores]
    worst = min(judged, key=lambda row: row["difference"])
    told = (
        f"the {worst['name']} is {percent(worst['model'])} with it and {percent(worst['plain'])} "
        f"without, {points(-worst['difference'])} less"
    )
    if worst["difference"] < -_COSTLY:
        return told
    if content is None or getattr(model, "class_weight", None) is not None:
        return ""
    constant = next(
        row["value"] for row in content["scores"] if row["name"] == "accuracy of the majority label"
    )
    if not scores["accuracy"]["model"] < constant <= scores["accuracy"]["plain"]:
        return ""
    return (
        f"{told}, and always predicting the more common label would be correct for "
        f"{percent(constant)}"
    )


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
        f"({percent(positive_share)}). Groups by {' and '.join(task.sensitive)}."
    )
    if task.positive is None:
        print_line(
            f"'{positive}' is positive because it is last in sort order; pass --positive for the "
            "favourable outcome if that is another label."
        )
    show_table("Features, as read", ["kind", "columns", ""], table)
    shown = [(group, f"{size:,}") for group, size in groups[:_MOST_GROUPS]]
    title = "Groups" if len(groups) <= _MOST_GROUPS else f"The first of {len(groups)} groups"
    show_table(title, ["group", "rows"], shown)


def show_result(result: Any, output: Path, data: list[Path], as_json: bool) -> None:
    model, record, content = result.model, result.record, result.content
    if as_json:
        keys = ("verdict", "scores", "rates", "gaps")
        print_json(
            {
                "model": str(output),
                "search": to_dict(record.search),
                "confirmation": to_dict(record.confirmation),
                "rounds": model.certificate_.n_rounds,
                "certificate": model.certificate_.to_dict(),
                "price": model.price_.to_dict() if hasattr(model, "price_") else None,
                "held_out": content and {key: content[key] for key in keys},
            }
        )
        return
    useful = outcome(model, record)[0] != NOT_USEFUL
    if record.search is not None:
        print_line(f"Chosen by {record.search.scoring}: {record.search.reason}.")
    for sentence in training_words(model.certificate_, record.tested, model, record.searched):
        print_line(sentence)
    if content:
        print_line()
        show_audit(content)
        for note in record.notes:
            print_line(note)
    if record.confirmation is not None:
        print_line(f"Confirmed on other rows than those above: {record.confirmation.reason}.")
    print_line()
    if useful and hasattr(model, "price_"):
        show_price(content["price"] if content else price_content(model.price_))
    if result.note:
        print_line(result.note)
        print_line()
    print_line(f"Model: {output}")
    info = shlex.join(["fairproj", "info", str(output)])
    print_line(f"Its settings and certificate: {info}")
    if useful:  # a warning says what to do about one that is not
        report = ["fairproj", "report", str(output), *map(str, data), "-o", "report.html"]
        print_line(f"Next: {shlex.join(report)}")
