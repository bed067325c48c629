"""What training limited, and which rows it learned from the opposite label."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairproj.constraints import Requirement, Statistic, find_statistic, limits_of
from fairproj.data.checks import Groups
from fairproj.inference.report import positive_label

_MOST_CELLS = 40  # that are named in a sentence


def limited_gaps(model: Any) -> list[Requirement]:
    """The gaps of the predictions that a fitted `FairBoostClassifier` was trained to limit."""
    if not model.history_.closed_loop or not model.certificate_.event:
        return []
    try:
        return list(limits_of(model.constraints, model.max_gap))
    except ValueError:  # a statistic of the user's own, registered in another session
        return []


def is_limited(statistic: Statistic, model: Any) -> bool:
    """Whether training limited every gap that a statistic takes the largest of."""
    limited = {(each.rate.statement, each.kind) for each in limited_gaps(model)}
    return all((each.rate.statement, each.kind) in limited for each in statistic.requirements)


def limit_words(model: Any, metric: str | None) -> str:
    """At which threshold the gap was limited, after the sentence about the threshold.

    ``metric`` is the gap that a report looks at, which need not be the one of training.
    """
    if metric is None or is_limited(find_statistic(metric), model):
        several = metric is None and len(limited_gaps(model)) > 1
        gaps = "the gaps were" if several else "the gap was"
        return f"; {gaps} limited at this threshold only."
    names = " and ".join(each.words for each in limited_gaps(model))
    trained = f"training limited the gap in {names}" if names else "training limited another gap"
    return f"; {trained}, and not the {find_statistic(metric).words}."


def opposite_labels(model: Any) -> str:
    """Which (group, label) cells training learned with the opposite label; empty if none.

    A cell can do so only where a multiplier makes its correct predictions cost. Where more cells
    are like that than have the opposite label, all of them are named; where very many are, none.
    """
    certificate = model.certificate_
    if not getattr(certificate, "flipped", 0):
        return ""
    cells = _penalized_cells(model)
    unknown = len(cells) < certificate.flipped
    if unknown or len(cells) > _MOST_CELLS:  # too many to name
        which = f"{certificate.flipped} of the combinations of group and label"
    elif len(cells) == certificate.flipped:
        which = f"{' and '.join(cells)} (group/label)"
    else:
        which = (
            f"{certificate.flipped} of these {len(cells)} combinations of group and label: "
            f"{'; '.join(cells)}"
        )
    return (
        f"To close the gap, training learned from the opposite label for {which}. "
        "This is how the last round kept was trained; the labels in the data and in this report "
        "are the true ones."
    )


def group_names(model: Any) -> list[str]:
    """The groups of training, as reports name them."""
    return Groups(np.zeros(0, dtype=np.intp), list(model.group_values_)).names


def _penalized_cells(model: Any) -> list[str]:
    """Cells whose correct predictions cost something because of a multiplier."""
    requirements, history = limited_gaps(model), model.history_
    groups = group_names(model)
    multipliers = np.array(history[history.n_kept - 1].observed.multipliers)
    if not requirements or len(multipliers) != len(groups) * len(requirements):
        return []
    by_group = multipliers.reshape(len(groups), len(requirements))
    positive = positive_label(model)
    (negative,) = [label for label in model.classes_.tolist() if label != positive]
    return [
        f"{group}/{label}"
        for group, own in zip(groups, by_group.tolist(), strict=True)
        for label, is_positive in ((positive, True), (negative, False))
        if any(
            multiplier * _raised_by_correct(each, is_positive) > 0
            for multiplier, each in zip(own, requirements, strict=True)
        )
    ]


def _raised_by_correct(requirement: Requirement, is_positive: bool) -> int:
    """1 if correct predictions of a label raise the rate, -1 if they lower it, else 0."""
    rate = requirement.rate
    if rate.event not in ("all", "positive" if is_positive else "negative"):
        return 0
    if rate.outcome == "correct":
        return 1
    return 1 if (rate.outcome == "positive") == is_positive else -1


def error_weights(model: Any) -> str:
    """How training weighted errors by label, in words; empty if it did not."""
    weights = getattr(model, "class_weight", None)
    if weights is None:
        return ""
    if isinstance(weights, str):
        return f"{weights}, so that both labels weigh the same in total"
    each = ", ".join(f"'{label}' {float(weight):g}" for label, weight in weights.items())
    return f"by label: {each}"


def not_frequencies(model: Any) -> str:
    """Why probabilities are no frequencies of the label, where errors were weighted by label."""
    if not error_weights(model):
        return ""
    return (
        "Training weighted errors by label, so the probabilities of this model are not frequencies "
        "of the label."
    )
