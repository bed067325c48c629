"""What `fairproj train` notes in a model file, and what the other commands make of it.

Apart because a model file may come from anywhere: of its metadata only what has the expected form
is used.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from fairproj.io.tables import column_types
from fairproj.selection.shared_fits import GAPS
from fairproj.cli._rows import Question, Rows, split_rows
from fairproj.report._summary import WAYS

KEY = "fairproj train"
_LARGEST = 1e300
_CANDIDATE = ("score", "score_se", "gap", "gap_se", "epsilon")


@dataclass(frozen=True)
class Record:
    """The data a model was trained from, what was asked, and what was held out.

    ``max_gap`` is the gap that was aimed at in the classifier's own predictions, if one was.
    """

    question: Question
    data: dict[str, Any]
    kinds: dict[str, str]
    held_out: dict[str, Any] | None
    metric: str
    max_gap: float | None
    choice: dict[str, Any] | None
    command: str

    def to_metadata(self) -> dict[str, Any]:
        return {KEY: asdict(self)}

    def is_about(self, metric: str, asked: Question) -> bool:
        """Whether training was for this gap, between these groups, of this label."""
        ours = self.question
        same_groups = set(asked.sensitive) == set(ours.sensitive)  # crossed in any order
        return same_groups and (metric, asked.label) == (self.metric, ours.label)

    def is_file(self, rows: Rows) -> bool:
        """Whether these rows are from the file the model was trained from."""
        return bool(self.data.get("sha256") == rows.sha256)

    def unseen(self, rows: Rows) -> Rows:
        """Of the file the model was trained from, the rows that were held out; else all rows."""
        if not self.is_file(rows):
            return rows
        if self.held_out is None:
            return replace(rows, which="the rows it was trained on", seen=True)
        return self._split(rows, self.held_out)[1]

    def trained_on(self, rows: Rows) -> Rows:
        """Of all rows of the file the model was trained from, those it was trained on."""
        return rows if self.held_out is None else self._split(rows, self.held_out)[0]

    def _split(self, rows: Rows, held_out: dict[str, Any]) -> tuple[Rows, Rows]:
        fraction, seed = float(held_out["fraction"]), int(held_out["seed"])
        train, test, digest = split_rows(rows, self.question, fraction, seed)
        if digest != held_out["sha256"]:
            raise ValueError(
                "the rows held out from training cannot be told any more: this version of "
                "scikit-learn splits otherwise; audit on a file of rows the model has not seen"
            )
        return train, test


def record_of(model: Any) -> Record | None:
    """What is noted in the model's metadata; None where it is not, or not in the expected form."""
    found: Any = getattr(model, "metadata_", {}).get(KEY)
    if not _is_dict(found, Record) or not _is_dict(found["question"], Question):
        return None
    record = Record(**{**found, "question": Question(**found["question"])})
    return record if _is_right(record) else None


def _is_dict(found: Any, kind: Any) -> bool:
    return isinstance(found, dict) and set(found) == {field.name for field in fields(kind)}


def _is_right(record: Record) -> bool:
    asked, data, choice = record.question, record.data, record.choice
    return (
        isinstance(asked.label, str)
        and _are_texts(asked.sensitive)
        and len(asked.sensitive) > 0
        and (asked.positive is None or isinstance(asked.positive, str))
        and (asked.dropped is None or _are_texts(asked.dropped))
        and isinstance(asked.use_sensitive, bool)
        and isinstance(data, dict)
        and isinstance(data.get("name"), str)
        and isinstance(record.kinds, dict)
        and record.metric in GAPS
        and (record.max_gap is None or _is_number(record.max_gap, 0, 1))
        and isinstance(record.command, str)
        and (record.held_out is None or _is_held_out(record.held_out))
        and (choice is None or _is_choice(choice))
    )


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(text, str) for text in found)


def _is_number(found: Any, low: float, high: float) -> bool:
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return is_number and max(low, -_LARGEST) <= found <= min(high, _LARGEST)


def _is_held_out(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and set(found) == {"fraction", "seed", "sha256"}
        and _is_number(found["fraction"], 1e-9, 1 - 1e-9)
        and isinstance(found["seed"], int)
        and _is_number(found["seed"], 0, 2**32 - 1)
        and isinstance(found["sha256"], str)
    )


def _is_choice(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and found.get("enforce") in WAYS
        and found.get("metric") in GAPS
        and _is_number(found.get("epsilon"), 0, np.inf)
        and all(isinstance(found.get(name), str) for name in ("scoring", "reason", "rule"))
        and isinstance(found.get("table"), list)
        and all(map(_is_candidate, found["table"]))
    )


def _is_candidate(row: Any) -> bool:
    """A line of a chooser's table; standard errors may be missing."""
    return (
        isinstance(row, dict)
        and row.get("enforce") in WAYS
        and all(
            _is_number(row.get(name), -np.inf, np.inf)
            or (name.endswith("_se") and row.get(name) is None)
            for name in _CANDIDATE
        )
    )


def types_of(model: Any) -> dict[str, Any]:
    """How to read the columns of new rows, such that they mean what they meant in training."""
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    if model.estimator is not None or not names:
        return {}
    encoder = model._encoder
    return column_types(names, encoder.categories, encoder.learnt.truth_values)
