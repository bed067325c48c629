"""The sentences of a report. Apart so that they can be read, and judged, in one place."""

from __future__ import annotations

from typing import Any

from fairproj.boosting.certificate import Certificate, ClosedLoopCertificate

_GAPS = {
    "demographic_parity": "gap of the selection rates (demographic parity)",
    "equal_opportunity": "gap of the true positive rates (equal opportunity)",
    "false_positive_rate": "gap of the false positive rates",
    "equalized_odds": "larger gap of true and false positive rates (equalized odds)",
    "accuracy": "gap of the accuracies",
}
_RATES = {
    "selection_rate": "selection rate",
    "true_positive_rate": "true positive rate",
    "false_positive_rate": "false positive rate",
    "accuracy": "accuracy",
}


def gap_name(gap: str) -> str:
    return _GAPS[gap]


def rate_name(rate: str) -> str:
    return _RATES[rate]


def plain(name: Any) -> str:
    """A constraint's name as words."""
    return name.replace("_", " ") if isinstance(name, str) else str(name)


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def confidence_words(value: float) -> str:
    """Never rounded up to certainty."""
    return f"{100 * value:g} %"


def sentences(content: dict[str, Any]) -> list[str]:
    """The summary, for a reader who knows no statistics."""
    target = content["target"]
    gap = next(row for row in content["gaps"] if row["gap"] == target["metric"])
    scores = {row["name"]: row["value"] for row in content["scores"]}
    data = content["data"]
    accuracy = (
        f"Of {data['rows']:,} people{_which(data)}, the model labels "
        f"{percent(scores['accuracy'])} correctly; always saying the commoner label would be right "
        f"for {percent(scores['accuracy of the majority label'])}."
    )
    digits = _digits(target["max_gap"], gap["estimate"], gap["low"], gap["high"])
    found = [accuracy]
    if gap["estimate"] is None:
        found.append(f"The {target['name']} cannot be measured between all groups.")
        if gap["low"] > 0 and not data["seen"]:
            found[-1] += (
                f" It is at least {points(gap['low'], digits)} with "
                f"{confidence_words(content['confidence'])} confidence."
            )
    else:
        found.append(_measured(content, gap, digits))
    missing = unmeasured(content)
    if missing:
        found.append(
            f"Without rows to measure it: {', '.join(missing[:8])}{_more(missing)}. With "
            f"{'them' if len(missing) > 1 else 'it'} the gap may be larger, up to 100 points."
        )
    return [*found, _judged(content, gap, digits)]


def _measured(content: dict[str, Any], gap: dict[str, Any], digits: int) -> str:
    who = f"highest for {gap['highest']}, lowest for {gap['lowest']}"
    if gap["estimate"] == 0:
        who = "no difference between the groups"
    said = f"The {content['target']['name']} was {points(gap['estimate'], digits)}: {who}."
    if content["data"]["seen"]:
        return said
    return (
        f"{said} From a sample of this size, the true gap lies between "
        f"{points(gap['low'], digits)} and {points(gap['high'], digits)} with "
        f"{confidence_words(content['confidence'])} confidence."
    )


def _judged(content: dict[str, Any], gap: dict[str, Any], digits: int) -> str:
    limit = content["target"]["max_gap"]
    if content["data"]["seen"]:
        return (
            "The model was trained on these rows, so nothing follows for other people: audit it on "
            "rows it has not seen."
        )
    if limit is None:
        return "No target was named, so nothing is judged here."
    side = "the range reaches to both sides"
    if gap["estimate"] is not None:
        where = "within it" if gap["estimate"] <= limit else "above it"
        side = f"the measured gap is {where}, but {side}"
    closing = {
        "met": "is met: the whole range is within it.",
        "not met": "is not met: the whole range is above it.",
        "undecided": f"can be neither confirmed nor ruled out from these rows: {side}. More rows "
        f"would narrow it; the smallest group has {gap['n_smallest']:,} that count.",
    }[content["verdict"]]
    return f"The target, at most {points(limit, digits)}, {closing}"


def unmeasured(content: dict[str, Any]) -> list[str]:
    """Groups without rows for a rate that the target gap compares."""
    rates = {
        "demographic_parity": ["selection_rate"],
        "equal_opportunity": ["true_positive_rate"],
        "false_positive_rate": ["false_positive_rate"],
        "equalized_odds": ["true_positive_rate", "false_positive_rate"],
    }[content["target"]["metric"]]
    empty = [row["group"] for row in content["rates"] if row["rate"] in rates and row["n"] == 0]
    return list(dict.fromkeys(empty))


def _which(data: dict[str, Any]) -> str:
    return f" ({data['which']})" if data["which"] else ""


def _more(names: list[str], shown: int = 8) -> str:
    return f" and {len(names) - shown} more" if len(names) > shown else ""


def _digits(limit: float | None, *gaps: float | None) -> int:
    """Enough that what differs from the limit is not printed like it, nor a limit as zero."""
    if limit is None:
        return 1
    apart = [gap for gap in gaps if gap is not None and gap != limit]
    for digits in range(1, 6):
        shown = points(limit, digits)
        if all(points(gap, digits) != shown for gap in apart) and (
            limit == 0 or shown != points(0.0, digits)
        ):
            return digits
    return 6


def points(value: float, digits: int = 1) -> str:
    """A gap for a general reader."""
    return f"{100 * value:.{digits}f} percentage points"


def caveats(content: dict[str, Any], too_small: list[str], seen: bool | None) -> list[str]:
    """What a reader must keep in mind."""
    found = []
    if seen:
        found.append(
            "The model was trained on these rows. Rates and gaps are then better than they will be "
            "for other people, and the intervals do not hold. Use rows it has not seen."
        )
    elif seen is None:
        found.append(
            "Intervals hold only if the model has not seen these rows and they are an independent "
            "sample of the people it will be used for. That is not known here."
        )
    else:
        found.append(
            "Intervals hold if the rows are an independent sample of the people the model will be "
            "used for."
        )
    found.append(
        "Each interval holds with the stated confidence by itself. Looking at many of them, some "
        "will be wrong."
    )
    if too_small:
        found.append(
            "Too few rows to say much about (fewer than 30 for some rate): "
            f"{', '.join(too_small[:8])}{_more(too_small)}."
        )
    found += [
        "Labels are taken as the truth. If they were shaped by unequal treatment, equal error "
        "rates do not make up for that.",
        "A small gap in one rate says nothing about other rates, about groups that were not "
        "compared, or about single persons.",
    ]
    if content["frontier"] is not None:
        folds = any(point["gap_se"] is not None for point in content["frontier"]["points"])
        source = "are means over folds" if folds else "come from one held-out part of the rows"
        found.append(
            f"Points of the frontier {source}. Picking the best of many makes it look better than "
            "it is."
        )
    return found


def certificate(found: Certificate | ClosedLoopCertificate) -> list[str]:
    """The certificate in plain words."""
    parts = _closed_loop(found) if isinstance(found, ClosedLoopCertificate) else _weights(found)
    if not found.holds:
        parts.append(
            "In the numbers of this run a statement that is a theorem did not hold: do not rely on "
            "this certificate."
        )
    return parts


def _closed_loop(found: ClosedLoopCertificate) -> list[str]:
    rounds = f"Training kept {found.n_rounds} of {found.n_rounds_run} rounds."
    if not found.event:
        rounds += " No gap was steered: nothing was compared."
    else:
        side = "within" if found.gap <= found.epsilon else "above"
        digits = _digits(found.epsilon, found.gap)
        rounds += (
            f" On the {found.watched_on}, the gap that was steered is "
            f"{points(found.gap, digits)}, {side} epsilon, {points(found.epsilon, digits)}."
        )
    if found.shortfall:
        rounds += f" But {found.shortfall}."
    cost = (
        "What fairness cost: the weights that learners were trained on differ from those that "
        f"accuracy alone would choose by a distance of {found.mean_tv:.3f} on average, where 0 "
        "is none and 1 is all."
    )
    return [rounds, _proved(found.bound_loss, found), cost]


def _weights(found: Certificate) -> list[str]:
    rounds = (
        f"Training ran {found.n_rounds} rounds. In {found.balanced_rounds} of them the groups "
        "balanced in the training weights as asked. That is a condition on training, not on the "
        "predictions."
    )
    cost = (
        "What fairness cost: on the weights that accuracy alone would choose, a learner's edge "
        f"over guessing is at most {found.mean_fairness_cost:.3f} smaller than on the balanced "
        "ones it was trained on (on average); the two differ by a distance of "
        f"{found.mean_tv:.3f}, where 0 is none and 1 is all."
    )
    bound = min(found.bound_edge, found.bound_tv, found.bound_cost)
    return [rounds, _proved(bound, found), cost]


def _proved(bound: float, found: Certificate | ClosedLoopCertificate) -> str:
    said = (
        f"the training loss is {found.exp_loss:.3g} (1 before training), and the model errs on "
        f"{percent(found.train_error)} of the training rows."
    )
    if bound >= 1 - 1e-9:
        return f"The proved bound on the training loss says nothing here; {said}"
    return f"It is proved that the training loss is at most {bound:.3g}; in fact {said}"
