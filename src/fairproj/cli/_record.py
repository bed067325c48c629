"""What `fairproj train` notes in a model file, and what the other commands make of it.

Apart because a model file may come from anywhere: of its metadata only what has the expected form
is used.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from fairproj._data_files import column_types
from fairproj.cli._rows import Question, Rows, split_rows

KEY = "fairproj train"
_FORM: dict[str, Any] = {
    "question": dict,
    "data": dict,
    "kinds": dict,
    "held_out": dict | None,
    "metric": str,
    "max_gap": float | int | None,
    "choice": dict | None,
    "command": str,
}
_QUESTION: dict[str, Any] = {
    "label": str,
    "sensitive": list,
    "positive": str | None,
    "dropped": list | None,
    "use_sensitive": bool,
}


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

    def target(self, metric: str) -> float | None:
        """The largest gap allowed, if it was set for this gap."""
        return self.max_gap if metric == self.metric else None

    def unseen(self, rows: Rows) -> Rows:
        """Of the file the model was trained from, the rows that were held out; else all rows."""
        if self.data.get("sha256") != rows.sha256:
            return rows
        if self.held_out is None:
            return replace(rows, which="the rows it was trained on", seen=True)
        return self._split(rows, self.held_out)[1]

    def trained_on(self, rows: Rows) -> Rows | None:
        """Of the file the model was trained from, the rows it was trained on; else None."""
        if self.data.get("sha256") != rows.sha256:
            return None
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
    if not _has_form(found, _FORM) or not _has_form(found["question"], _QUESTION):
        return None
    return Record(**{**found, "question": Question(**found["question"])})


def _has_form(found: Any, form: dict[str, Any]) -> bool:
    return (
        isinstance(found, dict)
        and set(found) == set(form)
        and all(isinstance(found[name], kind) for name, kind in form.items())
    )


def types_of(model: Any) -> dict[str, Any]:
    """How to read the columns of new rows, such that they mean what they meant in training."""
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    if model.estimator is not None or not names:
        return {}
    encoder = model._encoder
    return column_types(names, encoder.categories, encoder.learnt.truth_values)
