"""The sentences of a report. Apart so that they can be read, and judged, in one place."""

from __future__ import annotations

from typing import Any

from fairproj._certificate import Certificate, ClosedLoopCertificate

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


def sentences(content: dict[str, Any]) -> list[str]:
    """The summary, for a reader who knows no statistics."""
    target = content["target"]
    gap = next(row for row in content["gaps"] if row["gap"] == target["metric"])
    scores = {row["name"]: row["value"] for row in content["scores"]}
    data = content["data"]
    found = [
        f"Of {data['rows']:,} people{_which(data)}, the model labels "
        f"{percent(scores['accuracy'])} correctly; always saying the commoner label would be right "
        f"for {percent(scores['accuracy of the majority label'])}."
    ]
    if gap["estimate"] is None:
        return [*found, f"The {target['name']} cannot be known: a group has no rows to measure it."]
    found.append(
        f"The {target['name']} was {points(gap['estimate'])}: highest for {gap['highest']}, lowest "
        f"for {gap['lowest']}. From a sample of this size, the true gap lies between "
        f"{points(gap['low'])} and {points(gap['high'])} with {content['confidence']:.0%} "
        "confidence."
    )
    limit = target["max_gap"]
    closing = {
        "met": "is met: the whole range is within it.",
        "not met": "is not met: the whole range is above it.",
        "undecided": f"can be neither confirmed nor ruled out from these rows: the measured gap is "
        f"{_side(gap['estimate'], limit)}, but the range reaches to both sides. More rows would "
        "narrow it.",
    }
    if limit is None:
        return [*found, "No target was named, so nothing is judged here."]
    return [*found, f"The target, at most {points(limit)}, {closing[content['verdict']]}"]


def _which(data: dict[str, Any]) -> str:
    return f" ({data['which']})" if data["which"] else ""


def _side(gap: float, limit: float | None) -> str:
    return "within it" if limit is None or gap <= limit else "above it"


def points(value: float) -> str:
    """A gap for a general reader."""
    return f"{100 * value:.1f} percentage points"


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
            f"{', '.join(too_small[:8])}."
        )
    found += [
        "Labels are taken as the truth. If they were shaped by unequal treatment, equal error "
        "rates do not make up for that.",
        "A small gap in one rate says nothing about other rates, about groups that were not "
        "compared, or about single persons.",
    ]
    if content["frontier"] is not None:
        found.append(
            "Points of the frontier are means over folds. Picking the best of many makes it look "
            "better than it is."
        )
    return found


def certificate(found: Certificate | ClosedLoopCertificate) -> list[str]:
    """The certificate in plain words."""
    if isinstance(found, ClosedLoopCertificate):
        gap = (
            f"Training kept {found.n_rounds} of {found.n_rounds_run} rounds. On the "
            f"{found.watched_on}, the gap that was steered is {points(found.gap)}, "
            f"{'within' if found.gap <= found.epsilon else 'above'} the {points(found.epsilon)} "
            "asked for."
        )
        loss = (
            f"It is proved that the training loss is at most {found.bound_loss:.3g}; it is "
            f"{found.exp_loss:.3g}, and the model errs on {percent(found.train_error)} of the "
            "training rows."
        )
        cost = (
            "What fairness cost: the weights that learners were trained on differ from those that "
            f"accuracy alone would choose by a distance of {found.mean_tv:.3f} on average, where 0 "
            "is none and 1 is all."
        )
        return [gap, loss, cost]
    rounds = (
        f"Training ran {found.n_rounds} rounds. In {found.balanced_rounds} of them the groups "
        "balanced in the training weights as asked. That is a condition on training, not on the "
        "predictions."
    )
    bound = min(found.bound_edge, found.bound_tv, found.bound_cost)
    loss = (
        f"It is proved that the training loss is at most {bound:.3g}; it is {found.exp_loss:.3g}, "
        f"and the model errs on {percent(found.train_error)} of the training rows."
    )
    cost = (
        "What fairness cost: on the weights that accuracy alone would choose, a learner's edge "
        f"over guessing is at most {found.mean_fairness_cost:.3f} smaller than on the balanced "
        "ones it was trained on (on average); the two differ by a distance of "
        f"{found.mean_tv:.3f}, where 0 is none and 1 is all."
    )
    return [rounds, loss, cost]
