"""The two labels of a file, and which of them is positive."""

from __future__ import annotations

from typing import Any

from fairproj.cli._task import Task
from fairproj.data.checks import listing

_MOST_LABELS = 5  # different ones that may be one label too many


def positive_label(labels: list[Any], task: Task) -> Any:
    """The positive one of the labels of a file, which must be two."""
    if len(labels) != 2:
        raise ValueError(
            f"the label {task.label!r} has {_number_of_values(labels)} ({listing(labels)}), and "
            f"two are needed; {_label_advice(labels, task)}"
        )
    if task.positive is None:
        return max(labels)
    return find_label(task.positive, labels, f"the values of {task.label!r}")


def _number_of_values(labels: list[Any]) -> str:
    return "one value" if len(labels) == 1 else f"{len(labels):,} different values"


def _label_advice(labels: list[Any], task: Task) -> str:
    """What to do about a label that does not have two values; missing ones are refused before."""
    other = "name another column with --label"
    if len(labels) == 1:
        return f"give rows with another label, or {other}"
    if len(labels) > _MOST_LABELS:
        return other
    alike = _spelled_alike(labels)
    if alike:
        return f"{listing(alike)} differ only in case or spaces: write them alike, or {other}"
    return (
        "keep the rows with two of them, write the same value for those that mean the same, or "
        f"{other}"
    )


def _spelled_alike(labels: list[Any]) -> list[Any]:
    """The first labels that differ only in case or in spaces around them, if there are any."""
    spelled: dict[str, list[Any]] = {}
    for label in labels:
        spelled.setdefault(str(label).strip().casefold(), []).append(label)
    return next((alike for alike in spelled.values() if len(alike) > 1), [])


def find_label(text: str, labels: list[Any], source: str) -> Any:
    """The label that --positive names."""
    for label in labels:
        if is_spelling(text, label):
            return label
    raise ValueError(
        f"--positive {text} is not among {source}, which are {listing(labels)}; give one of these"
    )


def is_spelling(text: str, label: Any) -> bool:
    """Whether a text, of the command line or of another file, means this label."""
    if isinstance(label, bool):
        return text.lower() == str(label).lower()
    if isinstance(label, int | float):
        try:
            return float(text) == label
        except ValueError:
            return False
    return text == str(label)
