"""Saving and loading of fitted models: from a model to its record and back.

Nothing in a model file is code. Types, sizes and ranges are checked before a model is made of the
record, and a file that does not fit is refused with a sentence.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from lightgbm.basic import LightGBMError
from numpy.typing import NDArray

from fairproj.boosting.certificate import Certificate, GapCertificate
from fairproj.data.checks import counted
from fairproj.data.encoder import Encoding, FeatureEncoder
from fairproj.data.user_warning import warn_user
from fairproj.engines import Saved, find_engine
from fairproj.estimators.base import BoostedClassifier
from fairproj.estimators.fairboost import BASELINE_PARAMETERS, FairBoostClassifier
from fairproj.estimators.fairproj import FairProjClassifier
from fairproj.estimators.model_record import (
    ArrayRecord,
    ColumnRecord,
    EnsembleRecord,
    FitRecord,
    MappingRecord,
    ModelRecord,
    Parameter,
    Scalar,
    Value,
    check_record,
    check_statement,
)
from fairproj.io.atomic import write_text
from fairproj.io.model_file import MAX_BYTES, ModelFileError, encode_model_file, read_model_file
from fairproj.io.records import RecordError, from_dict, to_dict
from fairproj.io.versions import versions

_ESTIMATORS: dict[str, type[BoostedClassifier]] = {
    "FairProjClassifier": FairProjClassifier,
    "FairBoostClassifier": FairBoostClassifier,
}
_CERTIFICATES: dict[str, type[Certificate | GapCertificate]] = {
    "FairProjClassifier": Certificate,
    "FairBoostClassifier": GapCertificate,
}
_LIMITS = ("epsilon", "max_gap")
_LISTS = (*_LIMITS, "categorical_features", "constraints", "monotonic_cst", "sensitive_columns")
_MAPPINGS = ("class_weight", "engine_params", "monotonic_cst")
_MOST_LEVELS = 100  # of nested metadata
_MOST_CHARACTERS = 600


def save(
    model: BoostedClassifier,
    path: str | os.PathLike[str],
    *,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Write a fitted model to a file that `load` reads back with equal predictions."""
    if not hasattr(model, "certificate_"):
        raise ValueError("the model is not fitted; call fit first")
    if type(model) not in _ESTIMATORS.values():
        raise ValueError(
            f"model files hold a {' or a '.join(_ESTIMATORS)}, got {type(model).__name__}; save "
            "one of those"
        )
    if metadata is None:
        metadata = getattr(model, "metadata_", {})
    record = _dump_model(model, _check_metadata(metadata))
    try:
        check_record(record)
        _check_certificates(record)
        text = encode_model_file(record)
    except ValueError as error:
        raise ValueError(f"a model file cannot hold this model: {error}") from None
    write_text(path, text)


def load(
    path: str | os.PathLike[str], *, trusted: Sequence[str] = (), max_bytes: int = MAX_BYTES
) -> BoostedClassifier:
    """Read a model that ``model.save`` wrote. Opening a file never runs code from it.

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
    FairProjClassifier or FairBoostClassifier
        With the ``metadata_`` that the file holds.

    Raises
    ------
    ModelFileError
        With a sentence that says what is wrong with the file.
    """
    try:
        record = read_model_file(path, ModelRecord, max_bytes)
        check_record(record)
        return _load_model(record, trusted)
    except MemoryError:
        reason = "it asks for more memory than there is"
    except RecursionError:
        reason = "it is nested too deeply"
    except (ValueError, OverflowError, LightGBMError) as error:
        reason = str(error)
    raise ModelFileError(_one_line(f"{path} is not a valid model file: {reason}"))


def _one_line(text: str) -> str:
    """A line that a terminal can show, whatever names the file holds."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= _MOST_CHARACTERS else plain[:_MOST_CHARACTERS] + " ..."


def _check_metadata(metadata: Any) -> dict[str, Any]:
    """The metadata, if they come back from a file as they are."""
    try:
        if isinstance(metadata, dict) and to_dict(metadata) == metadata:
            _check_depth(metadata)
            return metadata
        reason = "as given they would be read back as something else"
    except RecordError as error:
        reason = str(error)
    raise ValueError(
        "metadata must be a dict with texts as keys that holds texts, finite numbers, booleans, "
        f"lists and dicts ({reason})"
    )


def _check_depth(metadata: dict[str, Any]) -> None:
    """Whoever shows metadata does so by recursion, and a stack has an end."""
    level: list[Any] = [metadata]
    for _ in range(_MOST_LEVELS):
        inner = [part.values() if isinstance(part, dict) else part for part in level]
        level = [part for parts in inner for part in parts if isinstance(part, dict | list)]
    if level:
        raise ValueError(f"metadata must not be nested deeper than {_MOST_LEVELS} levels")


# From a model to a record


def _dump_model(model: BoostedClassifier, metadata: dict[str, Any]) -> ModelRecord:
    names = getattr(model, "feature_names_in_", None)
    fit, plain = _dump_fit(model), getattr(model, "baseline_", None)
    return ModelRecord(
        estimator=type(model).__name__,  # type: ignore[arg-type]
        versions=versions(),
        parameters=_dump_parameters(model),
        classes=_dump_array(model.classes_),
        groups=[_dump_value(value) for value in model.group_values_],
        n_features=int(model.n_features_in_),
        feature_names=None if names is None else [str(name) for name in names],
        columns=None if model._encoder is None else _dump_columns(model._encoder.encoding),
        sensitive_columns=[_dump_scalar(name) for name in model._sensitive_columns],
        facts=getattr(model, "_facts", None),
        history=fit.history,
        certificate=fit.certificate,
        cut=fit.cut,
        ensemble=fit.ensemble,
        baseline=None if plain is None else _dump_fit(plain),
        price=getattr(model, "price_", None),
        metadata=metadata,
    )


def _dump_fit(model: BoostedClassifier) -> FitRecord:
    ensemble = model._ensemble
    votes: Any = model._learner_votes()
    return FitRecord(
        history=model.history_,
        certificate=asdict(model.certificate_),
        cut=float(model._cut),
        ensemble=EnsembleRecord(
            kind=ensemble.kind,
            votes=[float(vote) for vote in ensemble.votes],
            learner_votes=votes,
            link_scale=float(ensemble.link_scale),
            intercept=float(ensemble.intercept),
            payload=ensemble.to_payload(),
        ),
    )


def _dump_scalar(value: Any) -> Scalar:
    """A label, a group or a column name."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError(
        f"{value!r} of type {type(value).__name__} cannot be stored in a model file; use text, "
        "finite numbers or booleans for labels, groups, categories and column names"
    )


def _dump_value(value: Any) -> Value:
    if isinstance(value, tuple):
        return [_dump_scalar(part) for part in value]
    return _dump_scalar(value)


def _dump_array(values: NDArray[Any]) -> ArrayRecord:
    if values.dtype.kind not in "biufUO":  # dates, which would come back as plain numbers
        raise ValueError(
            f"values of type {values.dtype} cannot be stored in a model file; turn labels and "
            "categories into text or numbers"
        )
    dtype: Any = "str" if values.dtype.kind == "U" else str(values.dtype)
    return ArrayRecord(dtype, [_dump_scalar(value) for value in values.tolist()])


def _dump_columns(encoding: Encoding) -> list[ColumnRecord]:
    categories = {at: _dump_array(values) for at, values in encoding.categories.items()}
    return [
        ColumnRecord(
            name=_dump_scalar(name),
            categories=categories.get(at),
            is_boolean=bool(encoding.booleans[at]),
            had_missing=bool(encoding.had_missing[at]),
            typical=None if np.isnan(encoding.typical[at]) else float(encoding.typical[at]),
        )
        for at, name in enumerate(encoding.columns)
    ]


def _dump_parameters(model: BoostedClassifier) -> dict[str, Parameter]:
    parameters = model.get_params(deep=False)
    del parameters["estimator"]  # the ensemble keeps it
    if not _are_names(parameters["constraints"]):
        parameters["constraints"] = None
        warn_user(
            "the constraint is an object or an array, which a model file does not hold: the loaded "
            "model predicts alike and keeps its record, but has constraints=None"
        )
    if isinstance(parameters["random_state"], np.random.RandomState):
        parameters["random_state"] = None
    return {name: _dump_parameter(name, value) for name, value in parameters.items()}


def _are_names(constraints: Any) -> bool:
    if isinstance(constraints, list | tuple):
        return all(isinstance(name, str) for name in constraints)
    return isinstance(constraints, str | None)


def _dump_parameter(name: str, value: Any) -> Any:
    """A scalar, a mapping, or a list of parameters."""
    if isinstance(value, Mapping):
        keys, values = list(value), list(value.values())
        return MappingRecord([_dump_scalar(key) for key in keys], [_dump_scalar(v) for v in values])
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_dump_parameter(name, entry) for entry in value]
    if name in _LIMITS and isinstance(value, float) and value == math.inf:
        return "inf"  # JSON has no infinity
    return _dump_scalar(value)


# From a record to a model


def _load_model(record: ModelRecord, trusted: Sequence[str]) -> BoostedClassifier:
    model = _load_fit(record, trusted)
    _check_depth(record.metadata)
    model.metadata_ = record.metadata
    if isinstance(model, FairProjClassifier) and record.facts is not None:
        model._facts = record.facts
    if isinstance(model, FairBoostClassifier) and record.baseline and record.price:
        plain: Any = _load_fit(_baseline_record(record, record.baseline), trusted)
        model.baseline_, model.price_ = plain, record.price
    return model


def _load_fit(record: ModelRecord, trusted: Sequence[str]) -> BoostedClassifier:
    model = _ESTIMATORS[record.estimator](**_load_parameters(record))
    model._validate_params()
    model.classes_ = _load_labels(record.classes)
    model.group_values_ = [
        tuple(group) if isinstance(group, list) else group for group in record.groups
    ]
    model.n_features_in_ = record.n_features
    if record.feature_names is not None:
        model.feature_names_in_ = np.array(record.feature_names, dtype=object)
    model._sensitive_columns = record.sensitive_columns
    model._encoder = None if record.columns is None else _load_encoder(record.columns)
    model.history_ = record.history
    model.certificate_ = _load_certificate(record)
    model._cut = record.cut
    _load_ensemble(record, model, trusted)
    return model


def _baseline_record(record: ModelRecord, plain: FitRecord) -> ModelRecord:
    """The record of the same model without a constraint."""
    return replace(
        record,
        parameters={**record.parameters, **BASELINE_PARAMETERS},
        history=plain.history,
        certificate=plain.certificate,
        cut=plain.cut,
        ensemble=plain.ensemble,
    )


def _load_parameters(record: ModelRecord) -> dict[str, Any]:
    known = _ESTIMATORS[record.estimator]().get_params(deep=False)
    del known["estimator"]
    if odd := sorted(set(record.parameters) ^ set(known)):
        raise ValueError(f"parameters.{odd[0][:40]} is missing or unknown")
    if not _are_names(record.parameters["constraints"]):
        raise ValueError("parameters.constraints must be a text, a list of texts or null")
    if record.parameters["n_jobs"] == 0:
        raise ValueError("parameters.n_jobs must not be 0")
    return {name: _load_parameter(name, value) for name, value in record.parameters.items()}


def _load_parameter(name: str, value: Parameter) -> Any:
    if isinstance(value, MappingRecord):
        if name not in _MAPPINGS:
            raise ValueError(f"parameters.{name} must not be a mapping")
        return dict(zip(value.keys, value.values, strict=True))
    if isinstance(value, list) and name not in _LISTS:
        raise ValueError(f"parameters.{name} must not be a list")
    return _load_limit(value) if name in _LIMITS else value


def _load_limit(value: Any) -> Any:
    if isinstance(value, list):
        return [_load_limit(entry) for entry in value]
    if value == "inf":
        return math.inf
    if type(value) not in (int, float) or value < 0:
        raise ValueError(
            "parameters.epsilon and parameters.max_gap must be numbers of at least 0, or 'inf'"
        )
    return value


def _load_labels(record: ArrayRecord) -> NDArray[Any]:
    labels = _load_array(record, "classes")
    first, second = labels.tolist()
    if not first < second:
        raise ValueError("classes must be two different labels in sort order")
    return labels


def _load_array(record: ArrayRecord, field: str) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        array: NDArray[Any] = np.array(record.values, dtype=record.dtype)
    if array.tolist() != record.values:
        raise ValueError(f"{field}.values do not fit the type {record.dtype}")
    return array


def _load_encoder(columns: list[ColumnRecord]) -> FeatureEncoder:
    encoding = Encoding(
        [column.name for column in columns],
        {
            position: _load_array(column.categories, "columns.categories")
            for position, column in enumerate(columns)
            if column.categories is not None
        },
        [column.is_boolean for column in columns],
        np.array([column.had_missing for column in columns], dtype=bool),
        np.array([column.typical for column in columns], dtype=float),
    )
    return FeatureEncoder.from_encoding(encoding)


def _load_ensemble(record: ModelRecord, model: BoostedClassifier, trusted: Sequence[str]) -> None:
    kind = find_engine(record.ensemble.kind)
    if kind.encodes != (model._encoder is not None):
        raise ValueError(f"columns do not fit an ensemble of kind {kind.name!r}")
    saved = Saved(
        votes=record.ensemble.votes,
        learner_votes=record.ensemble.learner_votes,
        link_scale=record.ensemble.link_scale,
        classes=model.classes_,
        n_features=model.n_features_in_,
        categories={} if model._encoder is None else model._encoder.categories,
        trusted=trusted,
        intercept=record.ensemble.intercept,
    )
    model._ensemble = kind.from_payload(record.ensemble.payload, saved)
    model.estimator = getattr(model._ensemble, "estimator", None)
    model._validate_params()
    if model._kind is not kind:
        raise ValueError(
            f"parameters.engine is {model.engine!r}, and ensemble.kind is {kind.name!r}; they must "
            "be equal"
        )


def _load_certificate(record: ModelRecord) -> Certificate | GapCertificate:
    try:
        certificate = from_dict(record.certificate, _CERTIFICATES[record.estimator])
    except RecordError as error:
        raise ValueError(f"certificate does not fit a {record.estimator}: {error}") from None
    if certificate.n_rounds != record.history.n_kept:
        raise ValueError(
            f"certificate.n_rounds is {certificate.n_rounds}, and the model has "
            f"{counted(record.history.n_kept, 'round')}; they must be equal"
        )
    if isinstance(certificate, GapCertificate) and certificate.bias != record.history.bias:
        raise ValueError(
            f"certificate.bias is {certificate.bias:g}, and history.bias {record.history.bias:g}; "
            "they must be equal"
        )
    check_statement(certificate, record.history)
    return certificate


def _check_certificates(record: ModelRecord) -> None:
    _load_certificate(record)
    if record.baseline is not None:
        _load_certificate(_baseline_record(record, record.baseline))
