"""From a fitted model to a file. What cannot be stored is refused here, not when it is read."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.estimators.fairproj import FairProjClassifier
from fairproj.io.atomic import write
from fairproj.boosting.record import History
from fairproj.io.versions import versions
from fairproj.engines.lightgbm import text as native
from fairproj.engines.lightgbm.validate import check
from fairproj.engines.lightgbm.engine import TreeEnsemble
from fairproj.io.model_files.format import DTYPES, FORMAT, VERSION, digest, skops_io

_PLAIN_KINDS = "biufUO"  # of arrays: truth values, numbers, texts, and what is looked at singly


def save(
    model: FairProjClassifier,
    path: str | os.PathLike[str],
    *,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Write a fitted model to a file that `load` reads back, predictions equal to the last bit.

    Parameters
    ----------
    model : FairProjClassifier
        Fitted. With ``estimator=``, `skops <https://skops.readthedocs.io>`_ stores the learners.
    path : path
        An existing file is replaced, all at once.
    metadata : dict, optional
        Texts, numbers, lists and dicts to keep with the model, read back as ``metadata_``.
    """
    if not isinstance(model, FairProjClassifier):
        raise TypeError(
            f"save is for a FairProjClassifier, got {type(model).__name__}; for a search or a "
            "pipeline save its best_estimator_ or last step"
        )
    if not hasattr(model, "certificate_"):
        raise ValueError("the model is not fitted; call fit first")
    content = {
        "format": FORMAT,
        "format_version": VERSION,
        "versions": versions(),
        "parameters": _packed_parameters(model),
        "classes": _packed_array(model.classes_),
        "groups": [_packed(value) for value in model.group_values_],
        "features": _packed_features(model),
        "facts": _packed_record(model._facts),
        "history": _packed_history(model.history_),
        "certificate": {
            "kind": type(model.certificate_).__name__,
            **_packed_record(model.certificate_),
        },
        "ensemble": _packed_ensemble(model),
        "metadata": _checked_metadata(
            getattr(model, "metadata_", {}) if metadata is None else metadata
        ),
    }
    content["sha256"] = digest(content)
    write(path, json.dumps(content, allow_nan=False) + "\n")


def _checked_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(metadata, allow_nan=False, ensure_ascii=False)
        text.encode()
        if isinstance(metadata, dict) and json.loads(text) == metadata:
            return metadata
        said = "it would come back as something else"
    except (TypeError, ValueError, RecursionError) as error:
        said = str(error)
    raise ValueError(
        "metadata must be a dict with texts as keys that holds texts, finite numbers, lists and "
        f"dicts ({said})"
    )


def _packed(value: Any) -> Any:
    """A label, a group or a column name: text, number, truth value, or a tuple of these."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple):
        return {"tuple": [_packed(part) for part in value]}
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError(
        f"{value!r} of type {type(value).__name__} cannot be stored in a model file; use text, "
        "numbers or truth values for labels, groups and column names"
    )


def _packed_array(values: NDArray[Any]) -> dict[str, Any]:
    if values.dtype.kind not in _PLAIN_KINDS:  # as objects, dates may turn into plain numbers
        raise ValueError(
            f"values of type {values.dtype} cannot be stored in a model file; turn labels and "
            "categories into text or numbers"
        )
    dtype = "str" if values.dtype.kind == "U" else str(values.dtype)
    if dtype not in DTYPES:
        values, dtype = values.astype(object), "object"
    return {"dtype": dtype, "values": [_packed(value) for value in values.tolist()]}


def _packed_record(record: Any) -> dict[str, Any]:
    return {
        field.name: _packed_field(getattr(record, field.name))
        for field in dataclasses.fields(record)
    }


def _packed_field(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return _packed_record(value)
    if isinstance(value, tuple):
        return [_packed_field(part) if isinstance(part, float) else _packed(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    return _packed(value)


def _packed_history(history: History) -> dict[str, Any]:
    return {
        "rounds": [_packed_record(record) for record in history.rounds],
        "constraint_names": list(history.constraint_names),
        "epsilon": [_packed_field(float(value)) for value in history.epsilon],
        "learning_rate": float(history.learning_rate),
        "stop_reason": history.stop_reason.name,
        "events": list(history.events),
        "watched": list(history.watched),
        "kept": history.kept,
    }


def _packed_parameters(model: FairProjClassifier) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    del parameters["estimator"]
    if not isinstance(parameters["constraints"], str | None):
        parameters["constraints"] = None
        warnings.warn(
            "the constraint is an object or an array, which a model file does not hold: the loaded "
            "model predicts alike and keeps its record, but has constraints=None",
            UserWarning,
            stacklevel=4,
        )
    if isinstance(parameters["random_state"], np.random.RandomState):
        parameters["random_state"] = None
    return {name: _packed_parameter(value) for name, value in parameters.items()}


def _packed_parameter(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return _packed_field(tuple(np.asarray(value, dtype=object).ravel().tolist()))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return _packed(value)


def _packed_features(model: FairProjClassifier) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    found: dict[str, Any] = {
        "n": int(model.n_features_in_),
        "names": None if names is None else [str(name) for name in names],
        "sensitive_columns": [_packed(name) for name in model._sensitive_columns],
        "encoder": None,
    }
    if isinstance(model._ensemble, TreeEnsemble):
        learnt = model._encoder.learnt
        found["encoder"] = {
            "columns": [_packed(name) for name in learnt.columns],
            "categories": [
                {"column": position, **_packed_array(values)}
                for position, values in learnt.categories.items()
            ],
            "truth_values": learnt.truth_values,
            "had_missing": learnt.had_missing.tolist(),
        }
    return found


def _packed_ensemble(model: FairProjClassifier) -> dict[str, Any]:
    ensemble: Any = model._ensemble
    votes = [float(vote) for vote in ensemble.votes]
    if isinstance(ensemble, TreeEnsemble):
        text = native.without_footer(ensemble.booster.model_to_string())
        check(text, model.n_features_in_, votes)  # no file is written that would not open
        return {"kind": "lightgbm", "votes": votes, "text": text}
    skops = skops_io()
    _, keys, position, has_gauss, gauss = model._stream.get_state()
    parts = {"estimator": model.estimator, "learners": ensemble.learners}
    return {
        "kind": "skops",
        "votes": votes,
        "stream": [np.asarray(keys).tolist(), int(position), int(has_gauss), float(gauss)],
        "data": base64.b64encode(skops.dumps(parts)).decode(),
    }
