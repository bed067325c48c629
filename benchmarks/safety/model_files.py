"""One mutated model file: open it, look at it and ask it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from fairproj import ModelFileError, load
from safety.effects import EffectMonitor
from safety.model_mutants import mutant
from safety.models import good_models, read_models, write_models
from safety.trials import Outcome

REFUSED, ANSWERED, DECLINED = "refused", "answered", "declined"
MEANING = {
    REFUSED: "refused with one sentence",
    ANSWERED: "opened, and every answer well-formed",
    DECLINED: "opened, and the rows refused",
}


TITLE = "Mutated model files"
WORDS = (
    "A file is a mutant of a good one: bytes flipped, cut or put in; lines of LightGBM's text "
    "swapped; values of the JSON replaced by others of a wrong type or of an extreme size; a skops "
    "archive changed. Most get a fresh checksum, so that the deeper checks are reached. A failure "
    "is a crash, a hang, another exception than ModelFileError, a message of more than one line, "
    "an ill-formed answer, or an effect that the audit hook saw. Rows are refused where a file "
    "names other columns, or where a scikit-learn learner of a skops archive has arrays that do "
    "not fit together."
)
COLUMN = "damage"


def prepare(folder: Path) -> None:
    """What every worker needs, made once."""
    write_models(folder)


class Trial:
    """Tries files, in a process that may die."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        warnings.simplefilter("ignore")
        self._rows = {name: rows for name, (_, rows) in good_models().items()}
        self._good = read_models(folder)
        for name, rows in self._rows.items():  # whatever is imported late is imported now
            assert verdict(folder / f"{name}.fairproj", rows)[0] == ANSWERED, name
        self._path = scratch / "mutant.fairproj"
        self._monitor = EffectMonitor(scratch)

    def make(self, seed: int, index: int) -> tuple[str, Path]:
        """Write the file; its damage and its path."""
        self._name, kind, raw = mutant(self._good, seed, index)
        self._path.write_bytes(raw)
        return kind, self._path

    def run(self) -> Outcome:
        """Try the file that was made last."""
        with self._monitor.watch() as seen:
            end, message = verdict(self._path, self._rows[self._name])
        if seen:
            return "the file had an effect", "; ".join(seen)
        return end, message


def verdict(path: Path, rows: Any) -> tuple[str, str]:
    """How a file ended, in one of three good ways or with a failure's name, and the message."""
    try:
        model = load(path)
    except ModelFileError as error:
        message = str(error)
        good = message.isprintable() and len(message) < 1000
        return (REFUSED, message) if good else ("refused with a bad sentence", repr(message))
    except BaseException as error:
        return f"load raised {type(error).__name__}", str(error)
    try:
        look_at(model)
        return ask(model, rows)
    except BaseException as error:
        return f"model raised {type(error).__name__}", str(error)


def look_at(model: Any) -> None:
    """Everything that a page or a person would read off the model."""
    for shown in (model, model.history_, model.certificate_):
        str(shown), repr(shown), shown._repr_html_()
    model.history_.to_frame(), model.certificate_.to_dict(), model.certificate_.holds
    list(model.estimator_weights_), list(model.estimator_errors_)
    if model.estimator is None:
        assert model.feature_importances_.shape == (model.n_features_in_,)


def ask(model: Any, rows: Any) -> tuple[str, str]:
    try:
        margin = model.decision_function(rows)
    except ValueError as error:
        return DECLINED, str(error)
    except Exception as error:
        if model.estimator is None:
            raise
        return DECLINED, str(error)  # a learner of scikit-learn whose arrays do not fit together
    labels, probabilities = model.predict(rows), model.predict_proba(rows)
    right = margin.shape == labels.shape == (len(rows),) and probabilities.shape == (len(rows), 2)
    if not (right and margin.dtype == np.float64 and not np.isnan(margin).any()):
        return "margins are not well-formed", repr(margin)
    return ANSWERED, ""
