"""From a file to a model; every value is checked before a model is made of it."""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from fairproj.boosting.certificate import Certificate, ClosedLoopCertificate
from fairproj.estimators.fairproj import FairProjClassifier
from fairproj.boosting.resume import RunFacts
from fairproj.data.encoder import FeatureEncoder, Learnt
from fairproj.boosting.record import History, Round, StopReason
from fairproj.engines.lightgbm import text as native
from fairproj.engines.sklearn import EstimatorEnsemble
from fairproj.engines.lightgbm.validate import NotAModelError, check
from fairproj.engines.lightgbm.engine import TreeEnsemble
from fairproj.io.model_files.format import FORMAT, PARTS, VERSION, ModelFileError, digest, skops_io
from fairproj.io.model_files.parts import Part, is_number, shown, to_float, to_scalar

MAX_BYTES = 1 << 30
_MOST_COLUMNS = 10_000_000
_MOST_VALUES = 20_000_000  # JSON takes far more memory than file where values are tiny

_SKOPS_NAME = re.compile(r"[\w-]+(\.\w+)*", flags=re.ASCII)
_TWISTER_WORDS = 624
_LISTS = ("epsilon", "categorical_features", "sensitive_columns")
_OURS = ["fairproj.engines.sklearn.ConstantLearner"]


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
        return _model(Part(content, ""), trusted)
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
            f"it has format version {shown(version)}, and this fairproj reads version "
            f"{VERSION}; open it with the fairproj that wrote it"
        )
    try:
        whole = content.get("sha256") == digest(content)
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


def _model(found: Part, trusted: Sequence[str]) -> FairProjClassifier:
    found.only(*PARTS, "sha256")
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


def _certificate(found: Part, history: History) -> Certificate | ClosedLoopCertificate:
    kind: Any = ClosedLoopCertificate if history.closed_loop else Certificate
    if found.text("kind") != kind.__name__:
        raise ModelFileError("certificate.kind does not fit the history")
    certificate: Certificate | ClosedLoopCertificate = found.record(kind, "kind")
    if certificate.n_rounds != history.n_kept:
        raise ModelFileError("certificate.n_rounds does not fit the history")
    return certificate


def _parameters(found: Part) -> dict[str, Any]:
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


def _parameter(name: str, found: Part) -> Any:
    value, where = found.get(name), f"parameters.{name}"
    read = to_float if name == "epsilon" else to_scalar
    if isinstance(value, list) and name in _LISTS:
        return [read(entry, where) for entry in value]
    return read(value, where)


def _history(found: Part) -> History:
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
        raise ModelFileError(f"history.stop_reason is unknown: {shown(reason)}")
    epsilon = tuple(to_float(value, "history.epsilon") for value in found.items("epsilon"))
    rate = to_float(found.get("learning_rate"), "history.learning_rate")
    if not 0 < rate <= 1:
        raise ModelFileError(f"history.learning_rate is {shown(rate)}, and 0 to 1 are allowed")
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


def _features(found: Part, model: FairProjClassifier) -> None:
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
    encoder.only("columns", "categories", "truth_values", "had_missing")
    columns = encoder.scalars("columns")
    if len(columns) != n or names not in (None, columns):
        raise ModelFileError(f"features.encoder.columns must be the {n} columns of features.names")
    learnt = Learnt(
        columns,
        _categories(encoder, n),
        encoder.truths("truth_values", n),
        np.array(encoder.truths("had_missing", n), dtype=bool),
    )
    model._encoder = FeatureEncoder.from_learnt(learnt)


def _categories(encoder: Part, n_columns: int) -> dict[int, NDArray[Any]]:
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
    found: Part, model: FairProjClassifier, history: History, trusted: Sequence[str]
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
        raise ModelFileError(f"ensemble.kind is unknown: {shown(kind)}")


def _trees(text: str, model: FairProjClassifier, votes: list[float]) -> None:
    if not hasattr(model, "_encoder"):
        raise ModelFileError("features.encoder is missing")
    check(text, model.n_features_in_, votes)
    categories = [c for _, c in sorted(model._encoder.categories.items())]
    model._ensemble = TreeEnsemble(native.with_footer(text, categories), votes)


def _learners(
    found: Part, model: FairProjClassifier, votes: list[float], trusted: Sequence[str]
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


def _stream(found: Part) -> np.random.RandomState:
    """The random numbers to go on with. NumPy would read memory at whatever position it is told."""
    keys, position, has_gauss, gauss = found.items("stream", 4)
    right = (
        isinstance(keys, list)
        and len(keys) == _TWISTER_WORDS
        and all(type(key) is int and 0 <= key < 1 << 32 for key in keys)
        and type(position) is int
        and 0 <= position <= _TWISTER_WORDS
        and has_gauss in (0, 1)
        and is_number(gauss)
    )
    if not right:
        raise ModelFileError("ensemble.stream is no state of a random number generator")
    stream = np.random.RandomState()
    state = (np.array(keys, dtype=np.uint32), position, int(has_gauss), float(gauss))
    stream.set_state(("MT19937", *state))
    return stream


def _unpacked_skops(data: str, trusted: Sequence[str]) -> dict[str, Any]:
    skops = skops_io()
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
                "you know where the file comes from, name each with trusted= or --trust"
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
