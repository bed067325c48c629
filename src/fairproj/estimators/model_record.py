"""The record in a model file: its fields with their types, and the checks that types cannot state.

The checks run when a model is saved and when it is loaded, before any field is used. Each failure
is a ValueError that names the field. docs/guide/model-files.md describes the fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from fairproj.boosting.certificate import WATCHED_ROWS, Certificate, GapCertificate
from fairproj.boosting.record import Bias, History, Observation, Round
from fairproj.boosting.resume import RunFacts
from fairproj.estimators.price import Price, Scores

Scalar = bool | int | float | str | None
Value = Scalar | list[Scalar]  # a list stands for a tuple: a group of crossed columns
EstimatorName = Literal["FairProjClassifier", "FairBoostClassifier"]
LearnerVotes = Literal["discrete", "confidence", "newton"]
# fmt: off
DType = Literal[
    "bool", "str", "object", "float16", "float32", "float64",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]
# fmt: on

_MOST_COLUMNS = 10_000_000
_MOST_LOG_LOSS = 709.0  # the loss itself is finite
_MOST_MARGIN = 1e6  # of intercept, bias and cut
_ROUNDING = 1e-6
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "str": (str,),
    "float": (float,),
    "int": (int,),
    "uint": (int,),
    "object": (bool, int, float, str),
}


@dataclass(frozen=True)
class ArrayRecord:
    """The two labels, or the categories of a column in the order of their codes."""

    dtype: DType
    values: list[Scalar]


@dataclass(frozen=True)
class ColumnRecord:
    """How the values of one column of X are encoded."""

    name: Scalar
    categories: ArrayRecord | None
    is_boolean: bool
    had_missing: bool
    typical: float | None


@dataclass(frozen=True)
class MappingRecord:
    """A dict whose keys need not be texts, such as weights by label."""

    keys: list[Scalar]
    values: list[Scalar]


Parameter = Scalar | list[Value] | MappingRecord


@dataclass(frozen=True)
class EnsembleRecord:
    """The learners: their kind, votes and link, and what the engine rebuilds them from."""

    kind: str
    votes: list[float]
    learner_votes: LearnerVotes
    link_scale: float
    intercept: float
    payload: dict[str, Any]


@dataclass(frozen=True)
class FitRecord:
    """What a fit results in."""

    history: History
    certificate: dict[str, Any]
    cut: float
    ensemble: EnsembleRecord


@dataclass(frozen=True)
class ModelRecord:
    """Everything that a model file holds."""

    estimator: EstimatorName
    versions: dict[str, str]
    parameters: dict[str, Parameter]
    classes: ArrayRecord
    groups: list[Value]
    n_features: int
    feature_names: list[str] | None
    columns: list[ColumnRecord] | None
    sensitive_columns: list[Scalar]
    facts: RunFacts | None
    history: History
    certificate: dict[str, Any]
    cut: float
    ensemble: EnsembleRecord
    baseline: FitRecord | None
    price: Price | None
    metadata: dict[str, Any]

    @property
    def fit(self) -> FitRecord:
        return FitRecord(self.history, self.certificate, self.cut, self.ensemble)

    @property
    def closed_loop(self) -> bool:
        return self.estimator == "FairBoostClassifier"


def check_record(record: ModelRecord) -> None:
    """Raise ValueError unless every field is in its range and the fields agree."""
    _check_labels(record)
    _check_features(record)
    _check_parameters(record)
    _require((record.facts is None) == record.closed_loop, f"facts must be of a {record.estimator}")
    _check_fit(record.fit, record)
    _require(
        (record.baseline is None) == (record.price is None),
        "baseline and price must both be there or both be null",
    )
    if record.baseline is not None and record.price is not None:
        _require(record.closed_loop, f"baseline must be null for a {record.estimator}")
        _check_price(record.price)
        try:
            _check_fit(record.baseline, record)
            _require(not record.baseline.history.events, "history.events must be empty")
        except ValueError as error:
            raise ValueError(f"baseline.{error}") from None


def _check_fit(fit: FitRecord, record: ModelRecord) -> None:
    _check_history(fit.history)
    _check_rounds(fit.history)
    closed_loop = fit.history.closed_loop
    _require(closed_loop == record.closed_loop, f"history must be of a {record.estimator}")
    _check_ensemble(fit, record)
    observed = fit.history.rounds[fit.history.n_kept - 1].observed
    cut = 0.0 if observed is None else observed.cut
    _require(fit.cut == cut, f"cut is {fit.cut:g}, and the last round kept has {cut:g}")


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise ValueError(sentence)


def _distinct(values: Iterable[Any]) -> bool:
    keys = [tuple(value) if isinstance(value, list) else value for value in values]
    return len(set(keys)) == len(keys)


def _check_labels(record: ModelRecord) -> None:
    _check_array(record.classes, "classes")
    _require(len(record.classes.values) == 2, "classes must hold two labels")
    _require(len(record.groups) > 0, "groups must hold at least one group")
    _require(_distinct(record.groups), "groups must be different from each other")
    widths = {len(group) if isinstance(group, list) else 0 for group in record.groups}
    _require(len(widths) == 1, "groups must all be crossed from the same number of columns")


def _check_array(record: ArrayRecord, field: str) -> None:
    types = {type(value) for value in record.values}
    allowed = _PYTHON_TYPES[record.dtype.rstrip("0123456789")]
    _require(types <= set(allowed), f"{field}.values must be of type {record.dtype}")
    _require(len(types) <= 1, f"{field}.values must all be of one type")
    _require(_distinct(record.values), f"{field}.values must be different from each other")


def _check_features(record: ModelRecord) -> None:
    n, names = record.n_features, record.feature_names
    _require(1 <= n <= _MOST_COLUMNS, f"n_features is {n}; it must be 1 to {_MOST_COLUMNS:,}")
    if names is not None:
        _require(len(names) == n and _distinct(names), f"feature_names must be {n} different names")
    _require(_distinct(record.sensitive_columns), "sensitive_columns must be different columns")
    if record.columns is None:
        return
    columns = [column.name for column in record.columns]
    _require(len(columns) == n and _distinct(columns), f"columns must be {n} different columns")
    _require(names in (None, columns), "columns must have the names in feature_names")
    for column in record.columns:
        _check_column(column)


def _check_column(column: ColumnRecord) -> None:
    if column.categories is None:
        filled = column.had_missing or column.typical is not None
        _require(filled, "columns.typical must be a number where had_missing is false")
        return
    _check_array(column.categories, "columns.categories")
    # NumPy gives each text of an array the space of the longest.
    _require(column.categories.dtype != "str", "columns.categories.dtype must not be str")
    _require(column.typical is None, "columns.typical must be null where there are categories")


def _check_parameters(record: ModelRecord) -> None:
    for name, value in record.parameters.items():
        if isinstance(value, MappingRecord):
            _require(
                len(value.keys) == len(value.values) and _distinct(value.keys),
                f"parameters.{name} must have different keys, and a value for each",
            )


def _check_history(history: History) -> None:
    n_rounds = len(history.rounds)
    _require(n_rounds > 0, "history.rounds must hold at least one round")
    _require(
        history.kept is None or 1 <= history.kept <= n_rounds,
        f"history.kept is {history.kept}; it must be 1 to {n_rounds}",
    )
    _require(
        0 < history.learning_rate <= 1,
        f"history.learning_rate is {history.learning_rate:g}; it must be above 0 and at most 1",
    )
    _require(
        history.closed_loop or not (history.events or history.watched),
        "history.events and history.watched must be empty where history.kept is null",
    )
    limited = history.events if history.closed_loop else history.constraint_names
    _require(
        len(history.limits) == len(limited) and all(limit >= 0 for limit in history.limits),
        f"history.limits must have length {len(limited)} and no number below 0",
    )


def _check_rounds(history: History) -> None:
    for position, record in enumerate(history.rounds):
        try:
            _check_round(record, history)
        except ValueError as error:
            raise ValueError(f"history.rounds[{position}].{error}") from None


def _check_round(record: Round, history: History) -> None:
    for name in ("error_q", "error_w", "tv"):
        _check_share(getattr(record, name), name)
    if history.closed_loop:
        _require(record.kl is None, "kl must be null")
    else:
        _require(record.kl is not None and record.kl >= 0, "kl must be a number of at least 0")
    _check_log_loss(record.log_loss, "log_loss")
    for name in ("multipliers", "balance", "balance_q"):
        _check_length(getattr(record, name), len(history.constraint_names), name)
    _require(
        (record.observed is not None) == history.closed_loop,
        "observed must be there if and only if history.kept is",
    )
    if record.observed is not None:
        _check_observation(record.observed, history)


def _check_observation(observed: Observation, history: History) -> None:
    _check_reading(observed, history, "observed")
    if observed.bias is not None:
        _check_reading(observed.bias, history, "observed.bias")
        _check_margin(observed.bias.value, "observed.bias.value")
    _check_length(observed.multipliers, len(history.watched), "observed.multipliers")
    _check_share(observed.train_error, "observed.train_error")
    _check_margin(observed.cut, "observed.cut")
    for name in ("limit_multiplier", "flipped", "slope_mass", "zero_loss"):
        _check_not_negative(getattr(observed, name), f"observed.{name}")
    for name in ("log_cost_loss", "cost_change"):
        _check_log_loss(getattr(observed, name), f"observed.{name}")


def _check_reading(reading: Observation | Bias, history: History, name: str) -> None:
    _check_length(reading.rates, len(history.watched), f"{name}.rates")
    _check_length(reading.gaps, len(history.events), f"{name}.gaps")
    _check_share(reading.accuracy, f"{name}.accuracy")
    _check_not_negative(reading.loss, f"{name}.loss")
    for share in (*reading.rates, *reading.gaps):
        if share is not None:
            _check_share(share, f"{name} has a rate or a gap that")


def _check_price(price: Price) -> None:
    _check_rows(price.rows, (*WATCHED_ROWS, "test rows"), "price.rows")
    _require(price.n_rows >= 1, f"price.n_rows is {price.n_rows}; it must be at least 1")
    for name, scores in (("price.model", price.model), ("price.plain", price.plain)):
        _check_scores(scores, name)


def _check_rows(rows: str, known: tuple[str, ...], name: str) -> None:
    wanted = " or ".join(map(repr, known))
    _require(rows in known, f"{name} is {rows[:40]!r}; it must be {wanted}")


def check_statement(certificate: Certificate | GapCertificate, history: History) -> None:
    """Raise ValueError unless the words of a certificate are those of a run with this history."""
    stop = history.stop_reason.sentence
    _require(
        certificate.stop == stop,
        f"certificate.stop is {certificate.stop[:40]!r}; with this history it must be {stop!r}",
    )
    if isinstance(certificate, GapCertificate):
        _check_rows(certificate.watched_on, WATCHED_ROWS, "certificate.watched_on")
        _require(
            certificate.event in ("", *history.events),
            f"certificate.event is {certificate.event[:40]!r}, which is not in history.events",
        )


def _check_scores(scores: Scores, name: str) -> None:
    for share in ("accuracy", "auc", "calibration_error", "group_calibration_error"):
        _check_share(getattr(scores, share), f"{name}.{share}")
    _check_not_negative(scores.log_loss, f"{name}.log_loss")


def _check_not_negative(value: float, name: str) -> None:
    _require(value >= 0, f"{name} is {value:g}; it must be at least 0")


def _check_margin(value: float, name: str) -> None:
    _require(
        abs(value) <= _MOST_MARGIN, f"{name} is {value:g}; it must be within {_MOST_MARGIN:g} of 0"
    )


def _check_share(value: float, name: str) -> None:
    _require(
        -_ROUNDING <= value <= 1 + _ROUNDING, f"{name} is {value:g}; it must be between 0 and 1"
    )


def _check_log_loss(value: float, name: str) -> None:
    _require(value <= _MOST_LOG_LOSS, f"{name} is {value:g}; it must be at most {_MOST_LOG_LOSS:g}")


def _check_length(values: tuple[Any, ...], length: int, name: str) -> None:
    _require(len(values) == length, f"{name} has length {len(values)}; it must have {length}")


def _check_ensemble(fit: FitRecord, record: ModelRecord) -> None:
    ensemble, history = fit.ensemble, fit.history
    votes = [one.vote for one in history.rounds[: history.n_kept]]
    _require(ensemble.votes == votes, "ensemble.votes must be the votes in history.rounds")
    _require(math.isfinite(sum(map(abs, votes))), "ensemble.votes must add up to a finite number")
    _require(
        0 < ensemble.link_scale <= 100,
        f"ensemble.link_scale is {ensemble.link_scale:g}; it must be above 0 and at most 100",
    )
    _check_margin(ensemble.intercept, "ensemble.intercept")
    allowed = [record.parameters.get("votes"), *(["newton"] if record.closed_loop else [])]
    _require(
        ensemble.learner_votes in allowed,
        f"ensemble.learner_votes is {ensemble.learner_votes!r}; it must be parameters.votes"
        + " or 'newton'" * record.closed_loop,
    )
    _check_bias(history)
    _require(
        history.closed_loop or ensemble.intercept == 0,
        f"ensemble.intercept must be 0 for a {record.estimator}",
    )


def _check_bias(history: History) -> None:
    """The bias is one that the last round kept has found."""
    if history.bias == 0:
        return
    observed = history.rounds[history.n_kept - 1].observed
    bias = None if observed is None else observed.bias
    _require(
        bias is not None and bias.value == history.bias,
        f"history.bias is {history.bias:g}, which is not the bias of the last round kept",
    )
