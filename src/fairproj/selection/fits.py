"""Fits of one estimator with different parameters on parts of the same rows.

For the built-in estimators the rows are validated and encoded once for all fits, and those of a
fold are binned once. Any other classifier is fitted and used in the usual way.

Which rows are held out is not the user's choice. So where a held-out row misses a number in a
column that misses none in the training rows, the built-in estimators put the median in its place.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from fairproj.data.cells import CellCounts
from fairproj.data.checks import Groups, check_aligned, check_pos_label
from fairproj.data.columns import split_sensitive_columns, take_rows
from fairproj.data.sample import (
    Sample,
    compact_weights,
    make_sample,
    match_groups,
    scale_weights,
)
from fairproj.data.types import Array, Codes
from fairproj.estimators.base import BoostedClassifier, Prepared
from fairproj.inference.report import innermost, kept_model, predict_labels
from fairproj.selection.splits import FairStratifiedKFold

SEED = 0
TIE = 1e-9  # scores, gaps and bounds that differ by less are equal: last bits decide nothing
Split = tuple[Codes, Codes]

# Parameters that the encoded rows depend on.
PREPARED_BY = frozenset(
    {"categorical_features", "engine", "estimator", "max_bins", "pos_label", "sensitive_columns"}
)


def find_parameter(estimator: Any, name: str | None) -> str:
    """The parameter to vary: the one that is named, or max_gap, or epsilon."""
    known = clone(estimator).get_params()  # clone refuses what is no estimator
    candidates = ("max_gap", "epsilon") if name is None else (name,)
    for candidate in candidates:
        if candidate in known:
            return candidate
    raise ValueError(
        f"{type(estimator).__name__} has no parameter {' or '.join(map(repr, candidates))}; name "
        "the one to vary with param_name="
    )


def list_values(values: Any) -> list[Any]:
    """The values to try, each once, in their order: numbers or sequences of numbers."""
    values = _without_arrays(values)
    if isinstance(values, str) or not isinstance(values, Iterable):
        values = [values]
    listed: dict[Any, Any] = {}
    for value in map(_without_arrays, values):
        if not _is_value(value):
            raise ValueError(
                f"param_values holds {value!r}, which is neither a number nor a sequence of "
                "numbers; give numbers, or for each candidate one number for each constraint"
            )
        listed.setdefault(hashable(value), value)
    if not listed:
        raise ValueError("param_values is empty; give at least one value to try")
    return list(listed.values())


def _without_arrays(values: Any) -> Any:
    """Numbers and lists in place of NumPy's scalars, arrays and pandas' series."""
    return values.tolist() if hasattr(values, "tolist") else values


def _is_value(value: Any) -> bool:
    if isinstance(value, Sequence):
        return len(value) > 0 and all(map(_is_number, value))
    return _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not np.isnan(float(value))


def hashable(value: Any) -> Any:
    """A value to try as a key: a number, or a tuple in place of another sequence."""
    return value if isinstance(value, Real) else tuple(value)


def format_value(value: Any) -> str:
    """A value to try as text, such as 0.1 or [0.1, 0.2]."""
    if isinstance(value, Real):
        return f"{float(value):g}"
    return f"[{', '.join(map(format_value, value))}]"


def make_candidate(estimator: Any, parameters: Mapping[str, Any]) -> Any:
    """An unfitted copy with these parameters.

    A built-in estimator without a seed gets one, so that all candidates hold out the same rows.
    """
    model = clone(estimator).set_params(**parameters)
    inner = innermost(model)
    if isinstance(inner, BoostedClassifier) and inner.random_state is None:
        inner.set_params(random_state=SEED)
    return model


def ignore_outcomes() -> None:
    """Ignore the warnings of a fit that misses its gap or is constant, which the results show.

    They advise values of a parameter that the search sets itself.
    """
    for message in (
        "no (useful )?round",
        "the model says the same to nearly everyone",
        "the model is not useful",
        "no learner beat chance",
    ):
        warnings.filterwarnings("ignore", message=message)


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings about what the results show, or what a meta-estimator itself warns of."""
    with warnings.catch_warnings():
        ignore_outcomes()
        warnings.filterwarnings("ignore", message="no sensitive_features were given")
        warnings.filterwarnings("ignore", message="sensitive_features holds one group only")
        yield


@dataclass(frozen=True)
class SearchData:
    """Rows to fit and to measure on.

    Attributes
    ----------
    X, y, sensitive_features, sample_weight
        As the user passed them.
    sample : Sample
        The validated labels, groups and weights, without features.
    prepared : Prepared, optional
        The encoded rows, for the built-in estimators.
    """

    X: Any
    y: Any
    sensitive_features: Any
    sample_weight: Array | None
    sample: Sample
    prepared: Prepared | None

    @classmethod
    def of(
        cls,
        estimator: Any,
        parameter: str,
        X: Any,
        y: Any,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
    ) -> SearchData:
        """Validate the rows, and encode them where fits along ``parameter`` can share that."""
        if isinstance(sensitive_features, dict):
            sensitive_features = pd.DataFrame(sensitive_features)
        if pos_label is None:
            pos_label = getattr(innermost(estimator), "pos_label", None)
        check_aligned(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        prepared = None
        if isinstance(estimator, BoostedClassifier) and parameter not in PREPARED_BY:
            template = clone(estimator)
            template._validate_params()
            prepared = template._prepare(X, y, sensitive_features, sample_weight)
            sample = prepared.sample
        else:
            groups = _groups_in(estimator, X) if sensitive_features is None else sensitive_features
            sample = make_sample(X, y, groups, sample_weight)
        positive = check_pos_label(pos_label, sample.classes)
        sample = replace(sample.without_features(), encoder=None, positive_class=positive)
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight, dtype=float)
        return cls(X, y, sensitive_features, sample_weight, sample, prepared)

    def without_features(self) -> SearchData:
        """The same without the user's X where it is encoded, for less to copy."""
        return self if self.prepared is None else replace(self, X=None)

    def take(self, rows: Codes) -> SearchData:
        """Some of the rows."""
        columns = (self.X, self.y, self.sensitive_features, self.sample_weight)
        X, y, sensitive_features, weight = (take_rows(column, rows) for column in columns)
        if weight is not None and not weight.any():
            raise ValueError(
                "a part of a split has rows of sample_weight zero only; give more rows weight, or "
                "split otherwise"
            )
        sample = self.sample.take(rows, keep_groups=True)
        prepared = None if self.prepared is None else self.prepared.take(rows)
        if prepared is not None:  # scaled as in a fit on these rows alone
            own = compact_weights(scale_weights(prepared.sample.weight))
            prepared = replace(prepared, sample=replace(prepared.sample, weight=own))
        return SearchData(X, y, sensitive_features, weight, sample, prepared)

    def beside(self, estimator: Any, X: Any, y: Any, sensitive_features: Any) -> SearchData:
        """Other rows, encoded and with groups as these are, to measure fits on these."""
        if isinstance(sensitive_features, dict):
            sensitive_features = pd.DataFrame(sensitive_features)
        if self.prepared is None:
            sample, prepared = make_sample(X, y, sensitive_features, None), None
        else:
            template = clone(estimator)
            prepared = template._prepare(
                X, y, sensitive_features, encoder=self.prepared.sample.encoder, fill=True
            )
            sample = match_groups(prepared.sample, self.prepared.sample)
            prepared = replace(prepared, sample=sample)
        sample = match_groups(replace(sample.without_features(), encoder=None), self.sample)
        return SearchData(X, y, sensitive_features, None, sample, prepared)

    def with_weight(self) -> SearchData:
        """Encoded rows without those of weight zero, so that fits share what is binned."""
        if self.prepared is None:
            return self
        return replace(
            self, prepared=replace(self.prepared, sample=self.prepared.sample.with_weight())
        )

    def fit(self, model: Any) -> Any:
        """Fit the model on these rows."""
        if self.prepared is None:
            offered = {
                "sensitive_features": self.sensitive_features,
                "sample_weight": self.sample_weight,
            }
            return model.fit(self.X, self.y, **fit_arguments(model, offered))
        model._validate_params()
        model._check_together()
        return model._fit_prepared(self.prepared)

    def count(self, predicted: NDArray[np.bool_]) -> CellCounts:
        """Rows and positive predictions by group and label, where True means ``classes[1]``."""
        sample, positive = self.sample, bool(self.sample.positive_class)
        return CellCounts.of_rows(
            (sample.y > 0) == positive, predicted == positive, sample.groups, sample.weight
        )


def _groups_in(estimator: Any, X: Any) -> Any:
    """The sensitive columns that an estimator names, or None."""
    columns = getattr(innermost(estimator), "sensitive_columns", None)
    return None if columns is None else split_sensitive_columns(X, columns)[1]


def fit_arguments(model: Any, offered: Mapping[str, Any]) -> dict[str, Any]:
    """What ``model.fit`` takes of the sensitive features and weights, by its own names.

    A model that takes no sensitive features is fitted without them; the groups are only measured.
    """
    arguments = {}
    for name, value in offered.items():
        if value is None:
            continue
        accepted = _fit_parameter(model, name)
        if accepted is not None:
            arguments[accepted] = value
        elif name == "sample_weight":
            raise ValueError(
                f"{type(model).__name__}.fit takes no sample_weight, so the weights would be "
                "ignored; leave them out, or use another estimator"
            )
    return arguments


def _fit_parameter(model: Any, name: str) -> str | None:
    """What ``fit`` calls a parameter; None if it has no such parameter.

    A pipeline passes it to its last step, by metadata routing where that is enabled.
    """
    if isinstance(model, Pipeline):
        step, last = model.steps[-1]
        inner = _fit_parameter(last, name)
        if get_config()["enable_metadata_routing"]:
            consumed = get_routing_for_object(model).consumes("fit", [name])
            return name if inner is not None or consumed else None
        return None if inner is None else f"{step}__{inner}"
    parameters = inspect.signature(model.fit).parameters.values()
    known = any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)
    return name if known else None


class Fold:
    """The training and test rows of a split, and fits on the former."""

    def __init__(self, estimator: Any, data: SearchData, split: Split) -> None:
        self._estimator, self._data, self._split = estimator, data, split

    @cached_property
    def train(self) -> SearchData:
        return self._training_rows()

    @cached_property
    def test(self) -> SearchData:
        return self._test_rows()

    def _training_rows(self) -> SearchData:
        return self._data.take(self._split[0]).with_weight()

    def _test_rows(self) -> SearchData:
        test = self._data.take(self._split[1])
        if test.prepared is None or self.train.prepared is None:
            return test
        encoder, sample = self.train.prepared.sample.encoder, test.prepared.sample
        if encoder is not None:
            sample = replace(sample, X=encoder.fill_missing(sample.X), cache={})
        return replace(test, prepared=replace(test.prepared, sample=sample))

    def fit(self, **parameters: Any) -> FoldFit:
        """Fit a model with these parameters on the training rows."""
        model = self.train.fit(make_candidate(self._estimator, parameters))
        kind = PlainFit if self.train.prepared is None else PreparedFit
        return kind(model, self)


class SeparateRows(Fold):
    """Training and test rows that were never in one table: neither knows of the other."""

    def __init__(self, estimator: Any, train: SearchData, test: SearchData) -> None:
        self._estimator, self._parts = estimator, (train, test)

    def _training_rows(self) -> SearchData:
        return self._parts[0]

    def _test_rows(self) -> SearchData:
        return self._parts[1]

    def without_features(self) -> SeparateRows:
        """The same without what is not needed for fits, for less to copy to workers."""
        train, test = (part.without_features() for part in self._parts)
        if train.prepared is not None:  # what is binned belongs to this process
            sample = replace(train.prepared.sample, cache={})
            train = replace(train, prepared=replace(train.prepared, sample=sample))
        return SeparateRows(self._estimator, train, test)


class FoldFit:
    """A model that was fitted on the training rows of a fold, and what is measured of it.

    The test rows are predicted once.
    """

    def __init__(self, model: Any, fold: Fold) -> None:
        self.model, self._fold = model, fold

    def _predict(self, rows: SearchData) -> NDArray[np.bool_]:
        """Which rows are predicted as ``classes_[1]``."""
        raise NotImplementedError

    def probability(self) -> Array | None:
        """The probability of ``classes_[1]`` on the test rows; None for a model that has none."""
        raise NotImplementedError

    def _scored(self) -> tuple[Any, Any]:
        """The model and X for a scorer that is given by name."""
        raise NotImplementedError

    @cached_property
    def predicted(self) -> NDArray[np.bool_]:
        return self._predict(self._fold.test)

    @property
    def certified_useful(self) -> bool:
        """What the certificate of a `FairBoostClassifier` says; True for other models."""
        return bool(getattr(getattr(innermost(self.model), "certificate_", None), "useful", True))

    def informedness(self) -> tuple[float, float]:
        """True positive rate less false positive rate on the test rows, and its variance.

        It is zero for a model that says the same to everyone or draws lots.
        """
        weight = self._fold.test.sample.weight
        (hit, hit_variance), (miss, miss_variance) = (
            _rate(self.predicted[rows], weight[rows]) for rows in (self.actual, ~self.actual)
        )
        return hit - miss, hit_variance + miss_variance

    @property
    def useful(self) -> bool:
        """Whether the model beats chance on the test rows by two standard errors.

        A `FairBoostClassifier` must also call itself useful.
        """
        value, variance = self.informedness()
        return bool(self.certified_useful and value > 2 * np.sqrt(variance) + TIE)

    @property
    def actual(self) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = self._fold.test.sample.y > 0
        return mask

    @property
    def groups(self) -> Groups:
        """Of the test rows."""
        return self._fold.test.sample.groups

    @property
    def positive(self) -> bool:
        """Whether ``classes_[1]`` is the positive label."""
        return bool(self._fold.test.sample.positive_class)

    @cached_property
    def counts(self) -> CellCounts:
        return self._fold.test.count(self.predicted)

    def train_counts(self) -> CellCounts:
        return self._fold.train.count(self._predict(self._fold.train))

    def score(self, scoring: Any) -> float:
        """The score on the test rows."""
        if scoring == "accuracy":
            return self.counts.accuracy
        test = self._fold.test
        if isinstance(scoring, str):
            scorer, (model, X) = get_scorer(scoring), self._scored()
        else:  # it may look at X or at the model itself
            scorer, model, X = scoring, self.model, test.X
        more = {} if test.sample_weight is None else {"sample_weight": test.sample_weight}
        try:
            return float(scorer(model, X, test.y, **more))
        except (TypeError, ValueError) as error:
            _explain(error, scoring, test.sample.classes)
            raise


def _explain(error: Exception, scoring: Any, classes: NDArray[Any]) -> None:
    """Raise a clearer error for what commonly goes wrong in a scorer."""
    if isinstance(error, TypeError) and "sample_weight" in str(error):
        raise ValueError(
            "the scoring function takes no sample_weight, and weights were given; use one of "
            "scikit-learn's scorers"
        ) from error
    if isinstance(error, ValueError) and "pos_label" in str(error):
        raise ValueError(
            f"scoring={scoring!r} does not know which of the labels {classes.tolist()} is "
            "positive; pass make_scorer(..., pos_label=...) of sklearn.metrics"
        ) from error


def _rate(predicted: NDArray[np.bool_], weight: Array) -> tuple[float, float]:
    """The share of rows that are predicted, and its variance; zero without rows."""
    total = float(weight.sum())
    if total == 0:
        return 0.0, 0.0
    rate = float(weight[predicted].sum()) / total
    return rate, rate * (1 - rate) * float((weight**2).sum()) / total**2


class PreparedFit(FoldFit):
    """A built-in estimator, fitted on encoded rows."""

    def _margin_of(self, rows: SearchData) -> Array:
        assert rows.prepared is not None
        margin: Array = self.model._margin(rows.prepared.sample.X)
        return margin

    @cached_property
    def _margin(self) -> Array:
        return self._margin_of(self._fold.test)

    def _predict(self, rows: SearchData) -> NDArray[np.bool_]:
        margin = self._margin if rows is self._fold.test else self._margin_of(rows)
        mask: NDArray[np.bool_] = self.model._labels(margin) == self.model.classes_[1]
        return mask

    def probability(self) -> Array:
        probability: Array = self.model._probabilities(self._margin)[:, 1]
        return probability

    def _scored(self) -> tuple[Any, Any]:
        return _OfMargins(self.model), self._margin


class _OfMargins(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted model whose X are margins, for scorers that only predict."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.classes_ = model.classes_

    def decision_function(self, X: Array) -> Array:
        return X

    def predict(self, X: Array) -> NDArray[Any]:
        labels: NDArray[Any] = self.model._labels(X)
        return labels

    def predict_proba(self, X: Array) -> Array:
        probabilities: Array = self.model._probabilities(X)
        return probabilities

    def __sklearn_is_fitted__(self) -> bool:
        return True


class PlainFit(FoldFit):
    """Any other classifier."""

    def _predict(self, rows: SearchData) -> NDArray[np.bool_]:
        labels = predict_held_out(self.model, rows.X, rows.sensitive_features)
        mask: NDArray[np.bool_] = labels == rows.sample.classes[1]
        return mask

    def probability(self) -> Array | None:
        if not hasattr(self.model, "predict_proba"):
            return None
        return score_held_out(self.model, self._fold.test.X)[:, 1]

    def _scored(self) -> tuple[Any, Any]:
        X = self._fold.test.X
        encoded = _encode_held_out(self.model, X)
        if encoded is None:
            return self.model, X
        return _OfMargins(encoded[0]), encoded[0]._margin(encoded[1])


def predict_held_out(model: Any, X: Any, sensitive_features: Any) -> NDArray[Any]:
    """The labels of held-out rows, with medians for missing numbers that training had none of."""
    encoded = _encode_held_out(model, X)
    if encoded is None:
        return np.asarray(predict_labels(model, X, sensitive_features))
    return encoded[0].predict_matrix(encoded[1])[0]


def score_held_out(model: Any, X: Any) -> Array:
    """The probabilities of held-out rows, with medians as in `predict_held_out`."""
    encoded = _encode_held_out(model, X)
    if encoded is None:
        return np.asarray(model.predict_proba(X))
    return encoded[0].predict_matrix(encoded[1])[1]


def _encode_held_out(model: Any, X: Any) -> tuple[BoostedClassifier, Any] | None:
    """The built-in estimator inside searches and pipelines, and X as it reads it.

    None for other models.
    """
    inner = innermost(model)
    if not isinstance(inner, BoostedClassifier):
        return None
    while model is not inner:
        if isinstance(model, Pipeline):
            for _, step in model.steps[:-1]:
                X = X if step in (None, "passthrough") else step.transform(X)
            model = model.steps[-1][1]
        else:
            model = kept_model(model)
    return inner, inner.to_matrix(X, missing="score")


def make_splits(cv: Any, data: SearchData) -> list[Split]:
    """Training and test rows of each fold; a number means `FairStratifiedKFold`."""
    if cv is None or isinstance(cv, Integral):
        cv = FairStratifiedKFold(5 if cv is None else int(cv))
    if type(cv) is FairStratifiedKFold:  # its split would check labels and groups again
        return list(cv.split_cells(data.sample.cells))
    if isinstance(cv, str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        raise ValueError(f"cv={cv!r} must be a number of folds, a splitter or a list of splits")
    groups = np.array(data.sample.groups.names, dtype=object)[data.sample.groups.codes]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The groups parameter is ignored")
        splits = list(cv.split(data.X, data.y, groups) if hasattr(cv, "split") else cv)
    if not splits:
        raise ValueError("cv holds no split; give at least one pair of training and test rows")
    return [(_positions(train), _positions(test)) for train, test in splits]


def _positions(rows: Any) -> Codes:
    """Rows by position, also where they came as a mask."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype.kind == "b" else rows
