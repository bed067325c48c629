"""Model files that are safe to open: JSON, with the trees as LightGBM's own text inside.

Apart because it trusts nothing that it reads. Nothing in a file is code: every value is checked for
its kind, size and range before a model is made of it, and what does not fit is refused in a
sentence. The format is described in docs/model-files.md.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import json
import math
import os
import re
import stat
import sys
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from fairproj._certificate import Certificate, ClosedLoopCertificate
from fairproj._classifier import FairProjClassifier
from fairproj._continuation import RunFacts
from fairproj._features import FeatureEncoder
from fairproj._files import write
from fairproj._rounds import History, Observation, Round, StopReason
from fairproj._versions import versions
from fairproj.engines import native
from fairproj.engines.estimators import EstimatorEnsemble
from fairproj.engines.native_check import NotAModelError, check
from fairproj.engines.trees import TreeEnsemble

__all__ = ["ModelFileError", "load", "save"]

FORMAT = "fairproj model"
VERSION = 1
MAX_BYTES = 1 << 30
_MOST_COLUMNS = 10_000_000
_DTYPES = {
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("bool", "float16", "float32", "float64", "str", "object"),
}
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_MOST_VALUES = 20_000_000  # JSON takes far more memory than file where values are tiny
_PLAIN_KINDS = "biufUO"  # of arrays: truth values, numbers, texts, and what is looked at singly
_SKOPS_NAME = re.compile(r"[\w-]+(\.\w+)*", flags=re.ASCII)
_TWISTER_WORDS = 624
_LISTS = ("epsilon", "categorical_features", "sensitive_columns")
_OURS = ["fairproj.engines.estimators.ConstantLearner"]

Record = TypeVar("Record")


_PARTS = (
    *("format", "format_version", "versions", "parameters", "classes", "groups", "features"),
    *("facts", "history", "certificate", "ensemble", "metadata"),
)


class ModelFileError(ValueError):
    """A file that is no model, with what was found in a sentence."""


# Writing


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
    content["sha256"] = _digest(content)
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


def _digest(content: dict[str, Any]) -> str:
    rest = {name: value for name, value in content.items() if name != "sha256"}
    # Not in ASCII: half a surrogate pair, which no file and no terminal takes, is found here.
    text = json.dumps(
        rest, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


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
    if dtype not in _DTYPES:
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
        columns, categories, had_missing = model._encoder.learnt
        found["encoder"] = {
            "columns": [_packed(name) for name in columns],
            "categories": [
                {"column": position, **_packed_array(values)}
                for position, values in categories.items()
            ],
            "had_missing": had_missing.tolist(),
        }
    return found


def _packed_ensemble(model: FairProjClassifier) -> dict[str, Any]:
    ensemble: Any = model._ensemble
    votes = [float(vote) for vote in ensemble.votes]
    if isinstance(ensemble, TreeEnsemble):
        text = native.without_footer(ensemble.booster.model_to_string())
        check(text, model.n_features_in_, votes)  # no file is written that would not open
        return {"kind": "lightgbm", "votes": votes, "text": text}
    skops = _skops()
    _, keys, position, has_gauss, gauss = model._stream.get_state()
    parts = {"estimator": model.estimator, "learners": ensemble.learners}
    return {
        "kind": "skops",
        "votes": votes,
        "stream": [np.asarray(keys).tolist(), int(position), int(has_gauss), float(gauss)],
        "data": base64.b64encode(skops.dumps(parts)).decode(),
    }


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError(
            "model files of estimator= models need skops; install it with "
            "pip install 'fairproj[files]'"
        ) from None
    return skops.io


# Reading


def load(
    path: str | os.PathLike[str], *, trusted: Sequence[str] = (), max_bytes: int = MAX_BYTES
) -> FairProjClassifier:
    """Read a model that `save` wrote. Opening a file never runs code from it.

    Parameters
    ----------
    path : path
    trusted : sequence of str, default=()
        For models with ``estimator=``: types beyond those that skops trusts, such as
        ``"mypackage.MyTree"``, that the file may make objects of.
    max_bytes : int, default=2**30
        The largest file to read.

    Returns
    -------
    FairProjClassifier
        With the ``metadata_`` that the file holds.

    Raises
    ------
    ModelFileError
        With a sentence that says what is wrong with the file.
    """
    place = Path(path)
    try:
        content = _content(place, max_bytes)
        return _model(_Part(content, ""), trusted)
    except MemoryError:
        said = "it asks for more memory than there is"
    except RecursionError:
        said = "it is nested too deeply"
    except _REFUSALS as error:
        said = str(error)
    raise ModelFileError(_sentence(f"{path} is no valid model file: {said}"))


# What checks and the libraries below raise about a file. Not OSError: that is about the disk.
_REFUSALS = (
    *(ValueError, TypeError, OverflowError, KeyError, IndexError, AttributeError),
    *(NotAModelError, lgb.basic.LightGBMError),
)


def _sentence(text: str) -> str:
    """One line that a terminal can show, whatever names the file holds."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= 600 else plain[:600] + " ..."


def _raw(path: Path, max_bytes: int) -> bytes:
    # Opened before it is looked at, so that what is read is what was looked at; without waiting,
    # because a pipe may have nobody at its other end.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise ModelFileError("it is not a file; give one that FairProjClassifier.save wrote")
        with open(handle, "rb", closefd=False) as file:
            raw = file.read(max_bytes + 1) if state.st_size <= max_bytes else None
    finally:
        os.close(handle)
    if raw is None or len(raw) > max_bytes:
        raise ModelFileError(
            f"it has {state.st_size:,} bytes, and at most {max_bytes:,} are read; raise max_bytes "
            "if it comes from someone you trust"
        )
    return raw


def _content(path: Path, max_bytes: int) -> dict[str, Any]:
    """The outermost dict, of a file that is whole and of a version that is known."""
    raw = _raw(path, max_bytes)
    if sum(map(raw.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        raise ModelFileError(f"it holds more than {_MOST_VALUES:,} values, as no model does")
    try:
        content = json.loads(
            raw.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_twins
        )
    except (ValueError, RecursionError) as error:
        hint = "it is empty" if not raw.strip() else str(error)[:80] or "nested too deeply"
        raise ModelFileError(
            f"it is something else, or was cut short, for it is not JSON ({hint}); save the model "
            "again"
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelFileError(
            "it holds something else; give a file that FairProjClassifier.save wrote"
        )
    version = content.get("format_version")
    if type(version) is not int or version != VERSION:
        raise ModelFileError(
            f"it has format version {_shown(version)}, and this fairproj reads version "
            f"{VERSION}; open it with the fairproj that wrote it"
        )
    try:
        whole = content.get("sha256") == _digest(content)
    except (ValueError, RecursionError):
        whole = False
    if not whole:
        raise ModelFileError(
            "it was changed or damaged after it was written, for its checksum does not match; "
            "save the model again"
        )
    return content


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not allowed")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in the same place")
    return found


class _Part:
    """A dict of the file that hands out checked values and knows where it stands."""

    def __init__(self, content: Any, where: str) -> None:
        if not isinstance(content, dict):
            raise ModelFileError(f"{where or 'the file'} must be a dict")
        self._content = content
        self._where = where

    def _name(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def only(self, *names: str) -> None:
        """Refuse what nothing would read."""
        unknown = set(self._content) - set(names)
        if unknown:
            raise ModelFileError(f"{self._name(min(unknown))} is unknown")

    def get(self, key: str) -> Any:
        if key not in self._content:
            raise ModelFileError(f"{self._name(key)} is missing")
        return self._content[key]

    def part(self, key: str) -> _Part:
        return _Part(self.get(key), self._name(key))

    def _of(self, key: str, kind: type, name: str) -> Any:
        value = self.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ModelFileError(f"{self._name(key)} must be {name}, found {_shown(value)}")
        return value

    def text(self, key: str) -> str:
        found: str = self._of(key, str, "a text")
        return found

    def integer(self, key: str, low: int, high: int) -> int:
        found: int = self._of(key, int, "a whole number")
        if not low <= found <= high:
            raise ModelFileError(
                f"{self._name(key)} is {_shown(found)}, and {low} to {high} are allowed"
            )
        return found

    def items(self, key: str, length: int | None = None) -> list[Any]:
        found: list[Any] = self._of(key, list, "a list")
        if length is not None and len(found) != length:
            raise ModelFileError(
                f"{self._name(key)} holds {len(found)} entries, and {length} are expected"
            )
        return found

    def texts(self, key: str) -> list[str]:
        return self._all(key, lambda value: isinstance(value, str), "texts")

    def floats(self, key: str, length: int | None = None) -> list[float]:
        return [float(v) for v in self._all(key, _is_number, "numbers", length)]

    def truths(self, key: str, length: int) -> list[bool]:
        return self._all(key, lambda value: isinstance(value, bool), "truth values", length)

    def _all(
        self, key: str, right: Callable[[Any], bool], name: str, length: int | None = None
    ) -> list[Any]:
        found = self.items(key, length)
        if not all(map(right, found)):
            raise ModelFileError(f"{self._name(key)} must hold {name} only")
        return found

    def parts(self, key: str) -> list[_Part]:
        name = self._name(key)
        return [_Part(entry, f"{name}[{at}]") for at, entry in enumerate(self.items(key))]

    def scalars(self, key: str) -> list[Any]:
        return [_scalar(value, self._name(key)) for value in self.items(key)]

    def array(self) -> NDArray[Any]:
        """What `_packed_array` made."""
        dtype = self.text("dtype")
        if dtype not in _DTYPES:
            raise ModelFileError(f"{self._name('dtype')} is unknown: {_shown(dtype)}")
        values = self.scalars("values")
        if dtype == "object":
            found: NDArray[Any] = np.empty(len(values), dtype=object)
            for at, value in enumerate(values):
                found[at] = value
            return found
        wanted = {"b": bool, "i": int, "u": int, "f": int | float, "U": str}[np.dtype(dtype).kind]
        if not all(
            isinstance(v, wanted) and (dtype == "bool" or not isinstance(v, bool)) for v in values
        ):
            raise ModelFileError(f"{self._name('values')} must all be of type {dtype}")
        with np.errstate(over="ignore"):
            found = np.array(values, dtype=dtype)
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ModelFileError(f"{self._name('values')} do not fit the type {dtype}")
        return found

    def record(self, kind: type[Record], *more: str) -> Record:
        """A dataclass, its fields checked for the types it declares."""
        fields = {field.name: str(field.type) for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
        self.only(*fields, *more)
        return kind(**{name: self._field(name, of) for name, of in fields.items()})

    def _field(self, name: str, of: str) -> Any:
        value = self.get(name)
        if of.endswith("| None") and value is None:
            return None
        if of.startswith("Observation"):
            return self.part(name).record(Observation)
        if of.startswith("tuple[float"):
            return tuple(_float(entry, self._name(name)) for entry in self.items(name))
        if of.startswith("tuple"):
            return tuple(self.scalars(name))
        if of.startswith("float"):
            return _float(value, self._name(name))
        return self._of(name, {"int": int, "bool": bool, "str": str}[of], f"of type {of}")


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    return text[:40]


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def _float(value: Any, where: str) -> float:
    """A float of a record; those that JSON has no number for are words."""
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if not _is_number(value):
        raise ModelFileError(f"{where} must be a number, found {_shown(value)}")
    return float(value)


def _scalar(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        if set(value) != {"tuple"} or not isinstance(value["tuple"], list):
            raise ModelFileError(f"{where} holds a dict that is no tuple")
        if any(isinstance(part, dict) for part in value["tuple"]):
            raise ModelFileError(f"{where} holds a tuple within a tuple")
        return tuple(_scalar(part, where) for part in value["tuple"])
    if isinstance(value, float) and not math.isfinite(value):
        raise ModelFileError(f"{where} holds a number that is not finite")
    if isinstance(value, list):
        raise ModelFileError(f"{where} holds a list, and single values are expected")
    return value


def _model(found: _Part, trusted: Sequence[str]) -> FairProjClassifier:
    found.only(*_PARTS, "sha256")
    model = FairProjClassifier(**_parameters(found.part("parameters")))
    model._validate_params()
    classes = found.part("classes")
    classes.only("dtype", "values")
    model.classes_ = classes.array()
    if len(model.classes_) != 2 or np.unique(model.classes_).tolist() != model.classes_.tolist():
        raise ModelFileError("classes must be two different labels in sort order")
    model.group_values_ = found.scalars("groups")
    if not model.group_values_:
        raise ModelFileError("groups must hold at least one group")
    history = _history(found.part("history"))
    _features(found.part("features"), model)
    _ensemble(found.part("ensemble"), model, history, trusted)
    model._facts = found.part("facts").record(RunFacts)
    model.history_ = history
    model.certificate_ = _certificate(found.part("certificate"), history)
    metadata = found.part("metadata")
    model.metadata_ = metadata._content
    library = found.part("versions")
    for name in library._content:
        library.text(name)
    return model


def _certificate(found: _Part, history: History) -> Certificate | ClosedLoopCertificate:
    kind: Any = ClosedLoopCertificate if history.closed_loop else Certificate
    if found.text("kind") != kind.__name__:
        raise ModelFileError("certificate.kind does not fit the history")
    certificate: Certificate | ClosedLoopCertificate = found.record(kind, "kind")
    if certificate.n_rounds != history.n_kept:
        raise ModelFileError("certificate.n_rounds does not fit the history")
    return certificate


def _parameters(found: _Part) -> dict[str, Any]:
    values: dict[str, Any] = FairProjClassifier().get_params(deep=False)
    del values["estimator"]
    found.only(*values)
    # One that is missing is younger than the file, and its default is what the file means.
    values |= {name: _parameter(name, found) for name in found._content}
    if not isinstance(values["constraints"], str | None):
        raise ModelFileError("parameters.constraints must be a text or null")
    if values["n_jobs"] == 0:
        raise ModelFileError("parameters.n_jobs must not be 0")
    return values


def _parameter(name: str, found: _Part) -> Any:
    value, where = found.get(name), f"parameters.{name}"
    read = _float if name == "epsilon" else _scalar
    if isinstance(value, list) and name in _LISTS:
        return [read(entry, where) for entry in value]
    return read(value, where)


def _history(found: _Part) -> History:
    found.only(*(field.name for field in dataclasses.fields(History)))
    names, events, watched = (
        tuple(found.texts(key)) for key in ("constraint_names", "events", "watched")
    )
    rounds = tuple(part.record(Round) for part in found.parts("rounds"))
    if not rounds:
        raise ModelFileError("history.rounds is empty")
    kept = found.get("kept")
    if kept is not None:
        kept = found.integer("kept", 1, len(rounds))
    reason = found.text("stop_reason")
    if reason not in StopReason.__members__:
        raise ModelFileError(f"history.stop_reason is unknown: {_shown(reason)}")
    epsilon = tuple(_float(value, "history.epsilon") for value in found.items("epsilon"))
    rate = _float(found.get("learning_rate"), "history.learning_rate")
    if not 0 < rate <= 1:
        raise ModelFileError(f"history.learning_rate is {_shown(rate)}, and 0 to 1 are allowed")
    history = History(rounds, names, epsilon, rate, StopReason[reason], events, watched, kept)
    for record in rounds:
        _check_round(record, history)
    _check_derived(history)
    return history


def _check_derived(history: History) -> None:
    """Losses and bounds come out as numbers, so that every page and table can show them."""
    try:
        with np.errstate(all="ignore"):
            history.to_json()
    except ValueError:
        raise ModelFileError(
            "history holds a number that makes a loss or a bound infinite"
        ) from None


def _check_round(record: Round, history: History) -> None:
    """Whether the numbers can be what they are called, and are as many as there are names."""
    shares = (record.error_q, record.error_w, record.tv)
    if not (math.isfinite(record.vote) and all(-1e-6 <= share <= 1 + 1e-6 for share in shares)):
        raise ModelFileError("history.rounds has a vote, an error or a distance out of range")
    if not record.kl >= 0:
        raise ModelFileError("history.rounds has a distance out of range")
    lengths = {len(record.multipliers), len(record.balance), len(record.balance_q)}
    if lengths != {len(history.constraint_names)}:
        raise ModelFileError("history.rounds do not fit the constraints")
    seen = record.seen
    if (seen is not None) != history.closed_loop:
        raise ModelFileError("history.rounds do not fit the way to enforce")
    if seen is not None and (
        {len(seen.rates), len(seen.tilt)} != {len(history.watched)}
        or len(seen.gaps) != len(history.events)
    ):
        raise ModelFileError("history.rounds do not fit the watched rates")


def _features(found: _Part, model: FairProjClassifier) -> None:
    found.only("n", "names", "sensitive_columns", "encoder")
    n = model.n_features_in_ = found.integer("n", 1, _MOST_COLUMNS)
    names = None
    if found.get("names") is not None:
        names = found.texts("names")
        if len(names) != n or len(set(names)) != n:
            raise ModelFileError(f"features.names must be {n} different names")
        model.feature_names_in_ = np.array(names, dtype=object)
    model._sensitive_columns = found.scalars("sensitive_columns")
    if found.get("encoder") is None:
        return
    encoder = found.part("encoder")
    encoder.only("columns", "categories", "had_missing")
    columns = encoder.scalars("columns")
    if len(columns) != n or names not in (None, columns):
        raise ModelFileError(f"features.encoder.columns must be the {n} columns of features.names")
    had_missing = np.array(encoder.truths("had_missing", n), dtype=bool)
    model._encoder = FeatureEncoder.from_learnt(columns, _categories(encoder, n), had_missing)


def _categories(encoder: _Part, n_columns: int) -> dict[int, NDArray[Any]]:
    found: dict[int, NDArray[Any]] = {}
    for part in encoder.parts("categories"):
        part.only("column", "dtype", "values")
        position = part.integer("column", 0, n_columns - 1)
        if position in found:
            raise ModelFileError(f"features.encoder.categories has column {position} twice")
        values = found[position] = part.array()
        kinds = {str if isinstance(value, str) else type(value) for value in values.tolist()}
        # A table of mixed kinds, or of tuples, is one that pandas would read in its own way.
        if len(set(values.tolist())) < len(values) or len(kinds) > 1 or kinds & {tuple, type(None)}:
            raise ModelFileError(
                "features.encoder.categories must be different values of one kind in each column"
            )
    return found


def _ensemble(
    found: _Part, model: FairProjClassifier, history: History, trusted: Sequence[str]
) -> None:
    votes = found.floats("votes", history.n_kept)
    if votes != [record.vote for record in history.rounds[: history.n_kept]]:
        raise ModelFileError("ensemble.votes are not those of history.rounds")
    if not math.isfinite(sum(map(abs, votes))):
        raise ModelFileError("ensemble.votes add up to no number")
    kind = found.text("kind")
    if kind == "lightgbm":
        found.only("kind", "votes", "text")
        _trees(found.text("text"), model, votes)
    elif kind == "skops":
        found.only("kind", "votes", "stream", "data")
        _learners(found, model, votes, trusted)
    else:
        raise ModelFileError(f"ensemble.kind is unknown: {_shown(kind)}")


def _trees(text: str, model: FairProjClassifier, votes: list[float]) -> None:
    if not hasattr(model, "_encoder"):
        raise ModelFileError("features.encoder is missing")
    check(text, model.n_features_in_, votes)
    categories = [c for _, c in sorted(model._encoder.categories.items())]
    model._ensemble = TreeEnsemble(native.with_footer(text, categories), votes)


def _learners(
    found: _Part, model: FairProjClassifier, votes: list[float], trusted: Sequence[str]
) -> None:
    if hasattr(model, "_encoder"):
        raise ModelFileError("features.encoder is for trees, and ensemble.kind is skops")
    model._stream = _stream(found)
    parts = _unpacked_skops(found.text("data"), trusted)
    learners = parts["learners"]
    if not isinstance(learners, list) or len(learners) != len(votes):
        raise ModelFileError(f"ensemble.data must hold {len(votes)} learners")
    if not all(hasattr(learner, "predict") for learner in learners):
        raise ModelFileError("ensemble.data holds a learner that cannot predict")
    model.estimator = parts["estimator"]
    model._validate_params()
    model._ensemble = EstimatorEnsemble(learners, votes, model.classes_, model.votes)


def _stream(found: _Part) -> np.random.RandomState:
    """The random numbers to go on with. NumPy would read memory at whatever position it is told."""
    keys, position, has_gauss, gauss = found.items("stream", 4)
    right = (
        isinstance(keys, list)
        and len(keys) == _TWISTER_WORDS
        and all(type(key) is int and 0 <= key < 1 << 32 for key in keys)
        and type(position) is int
        and 0 <= position <= _TWISTER_WORDS
        and has_gauss in (0, 1)
        and _is_number(gauss)
    )
    if not right:
        raise ModelFileError("ensemble.stream is no state of a random number generator")
    stream = np.random.RandomState()
    state = (np.array(keys, dtype=np.uint32), position, int(has_gauss), float(gauss))
    stream.set_state(("MT19937", *state))
    return stream


def _unpacked_skops(data: str, trusted: Sequence[str]) -> dict[str, Any]:
    skops = _skops()
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError as error:
        raise ModelFileError(f"ensemble.data is damaged ({error})") from None
    try:
        _check_archive(raw)
        unknown = set(skops.get_untrusted_types(data=raw)) - {*trusted, *_OURS}
        if unknown:
            raise ModelFileError(
                f"it would make objects of {', '.join(sorted(unknown))}, which are not trusted; if "
                "you know where the file comes from, name them with load(..., trusted=[...])"
            )
        found = skops.loads(raw, trusted=[*trusted, *_OURS])
    except (ModelFileError, MemoryError, RecursionError):
        raise
    except Exception as error:  # a reader of many formats fails in many ways
        said = f"{type(error).__name__}: {error}"[:200]
        raise ModelFileError(f"ensemble.data cannot be read by skops ({said})") from None
    if not isinstance(found, dict) or set(found) != {"estimator", "learners"}:
        raise ModelFileError("ensemble.data must hold an estimator and its learners")
    return found


def _check_archive(raw: bytes) -> None:
    """Plain names and nothing packed, as skops writes it: it unpacks to its own size at most."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        entries = archive.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ModelFileError("ensemble.data holds packed parts, and plain ones are expected")
    if sum(entry.file_size for entry in entries) > len(raw):
        raise ModelFileError("ensemble.data would unpack to more than it is")
    names = {entry.filename for entry in entries}
    if len(names) < len(entries) or not all(map(_SKOPS_NAME.fullmatch, names)):
        raise ModelFileError("ensemble.data holds a path or a name twice; plain names are expected")
