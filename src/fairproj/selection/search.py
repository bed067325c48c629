"""The best model whose gap meets a target.

Apart from the frontier because it decides, and says how sure one can be of the decision.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import train_test_split
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, check_memory

from fairproj import metrics
from fairproj.data.cells import Cells
from fairproj.estimators.fairproj import FairProjClassifier
from fairproj.selection.shared_fits import GAPS, bins_once, fit_one, folds_of
from fairproj.io.progress import time_bar
from fairproj.selection.splits import check_parts, take
from fairproj.data.checks import (
    Array,
    check_groups,
    check_labels,
    check_lengths,
    check_weights,
    split_sensitive_columns,
)
from fairproj.io.versions import versions
from fairproj.inference import gap_upper_bound

WAYS = ("classifier", "distribution")
_TIMES_MAX_GAP = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # epsilons of the closed loop
_OF_WEIGHTS = (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3)  # epsilons of the training weights
_BOUNDS = {
    "one_se": "mean gap of the folds plus one standard error",
    "mean": "mean gap of the folds",
    "upper": "upper bound of the gap on held-out rows",
}


class FairProjClassifierCV(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The model of best score among those whose gap is at most ``max_gap``.

    A candidate is an epsilon of one way to enforce it. ``rule`` says which candidates meet the
    target, and what may be said of the model that is then kept:

    ``"one_se"``
        The mean gap of the folds plus one standard error is at most ``max_gap``. The best candidate
        is fitted again on all rows. Nothing is proved of that model; how often its true gap met the
        target in simulations is in the documentation. (A fold's gap is a largest less a smallest
        rate, so noise makes it larger rather than smaller.)
    ``"upper"``
        Candidates are fitted once, without a held-out part of the rows. An exact upper bound of the
        gap on that part must be at most ``max_gap``. Candidates are looked at in the order of their
        gaps on the rows they were trained on, and none counts after the first that fails: an order
        that the held-out rows had no part in needs no correction for the number of candidates.
        The chance that a candidate counts as meeting ``max_gap`` and its true gap is above it is
        then at most ``1 - confidence``, whatever the data, if rows are independent and drawn
        alike. The kept model is the one that was judged: it is not fitted again.
    ``"mean"``
        The mean gap of the folds; the true gap is then above the target more often still.

    Among the candidates that meet the target the best score wins, then the smallest gap.

    Parameters
    ----------
    max_gap : float, default=0.03
        The target.
    metric : {"equal_opportunity", "demographic_parity", "false_positive_rate", "equalized_odds"}
        The gap. It is also what the candidates enforce.
    scoring : str or callable, default="accuracy"
        As in scikit-learn; more is better.
    estimator : FairProjClassifier, optional
        The template; its epsilon, constraints and enforce are set here.
    epsilons : float or sequence of float, optional
        To try for each way to enforce; by default multiples of ``max_gap`` for the classifier's own
        gap, and 0.01 to 0.3 for the training weights.
    enforce : str or sequence of str, default=("classifier", "distribution")
        The ways to try.
    rule : {"one_se", "upper", "mean"}, default="one_se"
    cv : int, splitter or list of splits, default=5
        Folds of ``"one_se"`` and ``"mean"``; a number means `FairStratifiedKFold`.
    held_out : float, default=0.3
        Of ``rule="upper"``: the share of each group's rows to judge on.
    confidence : float, default=0.9
        Of ``rule="upper"``.
    if_none : {"raise", "nearest"}, default="raise"
        When no candidate meets the target: an error that says how near one came, or the nearest
        with a warning.
    memory : str or joblib.Memory, optional
        A folder that keeps what is done, so that a fit that was interrupted can go on from there;
        for a ``scoring`` by name.
    n_jobs : int, optional
        Fits at a time. Results do not depend on it.
    random_state : int, RandomState or None, default=0
        Of the choice of held-out rows.
    verbose : bool, default=False
        Show progress (needs ``rich``).

    Attributes
    ----------
    best_estimator_ : FairProjClassifier
    best_params_ : dict
        Its ``epsilon`` and ``enforce``.
    best_score_ : float
        Its score, the mean of the folds or that on the held-out rows.
    met_ : bool
        Whether it meets the target.
    reason_ : str
        What was chosen and why, in a sentence.
    table_ : DataFrame
        Every candidate in the order they were judged: ``score`` and ``gap`` (with standard errors
        over the folds), ``bound``, which is held against ``max_gap``, and whether it ``meets``.
    held_out_ : array of int or None
        Positions of the rows that ``rule="upper"`` judged on.
    classes_, n_features_in_, feature_names_in_ : as for `FairProjClassifier`

    Examples
    --------
    >>> from fairproj.datasets import load_german
    >>> from fairproj.selection import FairProjClassifierCV
    >>> data = load_german()
    >>> model = FairProjClassifierCV(max_gap=0.15, cv=3)
    >>> model = model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> model.met_
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "max_gap": [Interval(Real, 0, 1, closed="both")],
        "metric": [StrOptions(set(GAPS))],
        "scoring": [str, callable],
        "estimator": "no_validation",
        "epsilons": ["array-like", Real, None],
        "enforce": ["array-like", StrOptions(set(WAYS))],
        "rule": [StrOptions(set(_BOUNDS))],
        "cv": "no_validation",
        "held_out": [Interval(Real, 0, 1, closed="neither")],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "if_none": [StrOptions({"raise", "nearest"})],
        "memory": [str, HasMethods("cache"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }

    def __init__(
        self,
        max_gap: float = 0.03,
        metric: str = "equal_opportunity",
        scoring: Any = "accuracy",
        *,
        estimator: Any = None,
        epsilons: Any = None,
        enforce: Any = WAYS,
        rule: Literal["one_se", "upper", "mean"] = "one_se",
        cv: Any = 5,
        held_out: float = 0.3,
        confidence: float = 0.9,
        if_none: Literal["raise", "nearest"] = "raise",
        memory: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.max_gap = max_gap
        self.metric = metric
        self.scoring = scoring
        self.estimator = estimator
        self.epsilons = epsilons
        self.enforce = enforce
        self.rule = rule
        self.cv = cv
        self.held_out = held_out
        self.confidence = confidence
        self.if_none = if_none
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> FairProjClassifierCV:
        """Judge the candidates and keep the best.

        Parameters
        ----------
        X, y : as for `FairProjClassifier`
        sensitive_features : array-like, optional
            May be left out if the template names ``sensitive_columns`` of X.
        sample_weight : array-like, optional
            Weighs rows in fits, scores and gaps; not for ``rule="upper"``.

        Returns
        -------
        self
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a fit that fails must not leave an older model
        templates = self._templates()
        data = self._data(X, y, sensitive_features, sample_weight, templates[0])
        splits = self._splits(data)
        settings = [self._epsilons(template.enforce) for template in templates]
        found = self._tried(templates, settings, data, splits)
        self.table_ = self._judged(templates, settings, found)
        best = self._choose()
        self.best_params_ = {name: self.table_[name].iloc[best] for name in ("epsilon", "enforce")}
        self.best_params_["epsilon"] = float(self.best_params_["epsilon"])
        self.best_score_ = float(self.table_["score"].iloc[best])
        way = [template.enforce for template in templates].index(self.best_params_["enforce"])
        if self.rule == "upper":
            number = settings[way].index(self.best_params_["epsilon"])
            self.best_estimator_ = found[0, way][number]["model"]
        else:
            winner = clone(templates[way]).set_params(epsilon=self.best_params_["epsilon"])
            self.best_estimator_ = winner.fit(X, y, **data.with_rows())
        self.held_out_ = splits[0][1] if self.rule == "upper" else None
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _templates(self) -> list[FairProjClassifier]:
        """One for each way to enforce."""
        template = FairProjClassifier() if self.estimator is None else self.estimator
        if not isinstance(template, FairProjClassifier):
            raise TypeError(
                f"estimator must be a FairProjClassifier, got {_called(template)}; for other "
                "methods look at fairness_frontier"
            )
        ways = [self.enforce] if isinstance(self.enforce, str) else list(map(str, self.enforce))
        if not ways or set(ways) - set(WAYS) or len(ways) > len(set(ways)):
            raise ValueError(
                f"enforce={self.enforce!r} must name 'classifier', 'distribution' or both"
            )
        constraint = "false_positive_rate_parity" if "false" in self.metric else self.metric
        found = []
        for way in ways:
            of_way = clone(template).set_params(
                constraints=constraint, enforce=way, warm_start=False, verbose=False
            )
            if way == "distribution":  # watches no rows
                of_way.set_params(validation_fraction=None)
            found.append(of_way)
        return found

    def _data(self, X: Any, y: Any, given: Any, sample_weight: Any, template: Any) -> _Data:
        """Everything with rows, after a look at whether a choice can be made at all."""
        if sample_weight is not None and self.rule == "upper":
            raise ValueError(
                "rule='upper' takes no sample_weight: exact bounds count rows; use rule='one_se'"
            )
        groups = given = pd.DataFrame(given) if isinstance(given, dict) else given
        if template.sensitive_columns is not None and given is None:
            groups = split_sensitive_columns(X, template.sensitive_columns)[1]
        if groups is None:
            raise ValueError(
                "a gap needs groups; pass fit(..., sensitive_features=...), or an estimator with "
                "sensitive_columns"
            )
        signs, classes = check_labels(y)
        check_lengths(X, signs)
        found = check_groups(groups, len(signs))
        if len(found.values) < 2:
            raise ValueError(
                f"sensitive_features holds one group only ({found.names[0]}); a gap needs two"
            )
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(signs))
        names = np.array(found.names, dtype=object)[found.codes]
        return _Data(X, y, given, names, sample_weight, Cells.of(signs, found, classes))

    def _epsilons(self, way: str) -> list[float]:
        values: Any = self.epsilons
        if values is None and way == "classifier":
            values = self.max_gap * np.array(_TIMES_MAX_GAP)
        elif values is None:
            values = _OF_WEIGHTS
        found = sorted({float(value) for value in np.ravel(values)})
        if not found:
            raise ValueError("epsilons is empty; give at least one value to try")
        return found

    def _splits(self, data: _Data) -> list[tuple[Any, Any]]:
        if self.rule == "upper":
            splits = [self._hold_out(data)]
        else:
            splits = folds_of(self.cv, data.X, data.y, data.groups)
        for train, test in splits:
            if len(np.intersect1d(train, test)):
                raise ValueError("cv tests rows that it trains on; give splits without overlap")
            parts = {"training part of a split": train, "test part of a split": test}
            check_parts(data.cells, parts, by_label=self._by_label)
        tested = np.concatenate([test for _, test in splits])
        twice = len(np.unique(tested)) < len(tested)
        if self.rule == "one_se" and (len(splits) < 2 or twice):
            raise ValueError(
                "rule='one_se' needs two folds or more that test no row twice, or its standard "
                "error means nothing; give cv a number or another splitter"
            )
        return splits

    @property
    def _by_label(self) -> bool:
        """Whether the gap is one of rates that are taken among rows of one label."""
        return self.metric != "demographic_parity"

    def _hold_out(self, data: _Data) -> tuple[Any, Any]:
        """Training rows and an independent sample of every group to judge on.

        Where the rates are those among rows of one label, the split may keep each label's share;
        not for selection rates: they depend on that share, which must then be left to chance.
        """
        index = data.cells.index
        try:
            parts = train_test_split(
                np.arange(len(index)),
                test_size=self.held_out,
                stratify=index if self._by_label else index // 2,
                random_state=self.random_state,
            )
        except ValueError:
            counts = data.cells.counts
            few = int(np.flatnonzero(counts == counts[counts > 0].min())[0])
            raise ValueError(
                f"{data.cells.name(few)} has {counts[few]} rows, too few to hold out "
                f"{100 * self.held_out:g} %; merge that group with another or drop it"
            ) from None
        return np.sort(parts[0]), np.sort(parts[1])

    def _tried(
        self,
        templates: list[FairProjClassifier],
        settings: list[list[float]],
        data: _Data,
        splits: list[tuple[Any, Any]],
    ) -> dict[tuple[int, int], list[dict[str, Any]]]:
        """What was measured, by fold and way, in the order of the epsilons."""
        measure = _Measure(
            self.scoring,
            self.metric,
            templates[0].pos_label,
            self.confidence if self.rule == "upper" else None,
        )
        memory = check_memory(self.memory)
        key = None
        if memory.location is not None:
            key = _key(data, measure)
        jobs = [(fold, way) for fold in range(len(splits)) for way in range(len(templates))]
        work = joblib.Parallel(n_jobs=self.n_jobs, return_as="generator")
        calls = (
            joblib.delayed(_try)(
                templates[way], data, splits[fold], settings[way], measure, memory, key
            )
            for fold, way in jobs
        )
        found = {}
        total = sum(len(settings[way]) for _, way in jobs)
        with time_bar("candidates", total, 0, show=self.verbose) as advance:
            for job, measured in zip(jobs, work(calls), strict=True):
                found[job] = measured
                advance(len(measured))
        return found

    def _judged(
        self, templates: list[FairProjClassifier], settings: list[list[float]], found: Any
    ) -> pd.DataFrame:
        """One row for each candidate; which of them meet the target."""
        rows = []
        n_folds = len(found) // len(templates)
        for way, epsilons in enumerate(settings):
            for number, epsilon in enumerate(epsilons):
                fits = [found[fold, way][number] for fold in range(n_folds)]
                row: dict[str, Any] = {"epsilon": epsilon, "enforce": templates[way].enforce}
                for name in ("score", "gap"):
                    values = pd.Series([fit[name] for fit in fits])
                    row |= {name: values.mean(), f"{name}_se": values.sem()}
                row["bound"] = {
                    "mean": row["gap"],
                    "one_se": row["gap"] + row["gap_se"],
                    "upper": fits[0].get("upper"),
                }[self.rule]
                rows.append({**row, "training_gap": np.mean([fit["training_gap"] for fit in fits])})
        table = pd.DataFrame(rows).sort_values("training_gap", kind="stable", ignore_index=True)
        table["meets"] = table["bound"] <= self.max_gap
        if self.rule == "upper":
            table["meets"] = table["meets"].cummin()
        return table

    def _choose(self) -> int:
        """The row of the table that is kept; sets what is said about it."""
        table = self.table_
        meeting = table[table["meets"]]
        self.met_ = len(meeting) > 0
        if self.met_:
            order = meeting.sort_values(["score", "gap"], ascending=[False, True], kind="stable")
        else:
            order = table.sort_values(["bound", "score"], ascending=[True, False], kind="stable")
        best = int(order.index[0])
        row = table.loc[best]
        name = f"epsilon={row['epsilon']:g}, enforce={row['enforce']!r}"
        measured = f"{_BOUNDS[self.rule]} {row['bound']:.3f}, score {row['score']:.3f}"
        if self.met_:
            self.reason_ = (
                f"{name}: the best score of the {len(meeting)} of {len(table)} candidates that "
                f"meet max_gap={self.max_gap:g} ({measured})"
            )
            return best
        self.reason_ = (
            f"none of {len(table)} candidates meets max_gap={self.max_gap:g}; the nearest is "
            f"{name} ({measured})"
        )
        if row["bound"] <= self.max_gap:
            self.reason_ += (
                f", which does not count because {table['bound'].iloc[0]:.3f}, the bound of the "
                "first in order, is above the target"
            )
        advice = "allow a larger max_gap, give more rows or other epsilons"
        if self.if_none == "raise":
            raise ValueError(f"{self.reason_}; {advice}, or take the nearest: if_none='nearest'")
        warnings.warn(f"{self.reason_}; {advice}", UserWarning, stacklevel=4)
        return best

    def _best(self) -> FairProjClassifier:
        check_is_fitted(self, "best_estimator_")
        best: FairProjClassifier = self.best_estimator_
        return best

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels by the kept model."""
        return self._best().predict(X)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of both classes by the kept model."""
        return self._best().predict_proba(X)

    def decision_function(self, X: Any) -> Array:
        """Margins by the kept model; positive means ``classes_[1]``."""
        return self._best().decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        template = FairProjClassifier() if self.estimator is None else self.estimator
        if isinstance(template, FairProjClassifier):
            tags.input_tags = get_tags(template).input_tags
        return tags


@dataclass(frozen=True)
class _Data:
    """What fit got; ``given`` are the sensitive features, ``groups`` also where X holds them."""

    X: Any
    y: Any
    given: Any
    groups: Any
    weight: Any
    cells: Cells

    def take(self, rows: Any) -> _Data:
        parts = (self.X, self.y, self.given, self.groups, self.weight)
        X, y, given, groups, weight = (take(part, rows) for part in parts)
        return _Data(X, y, given, groups, weight, self.cells)

    def with_rows(self) -> dict[str, Any]:
        """What fit takes beside X and y."""
        return {"sensitive_features": self.given, "sample_weight": self.weight}


@dataclass(frozen=True)
class _Measure:
    """What to measure of a model; with ``confidence``, also an upper bound, and keep the model."""

    scoring: Any
    metric: str
    pos_label: Any
    confidence: float | None

    def __call__(self, model: FairProjClassifier, train: _Data, test: _Data) -> dict[str, Any]:
        found = {
            "score": self._score(model, test),
            "gap": self._gap(test, model.predict(test.X)),
            "training_gap": self._gap(train, model.predict(train.X)),
        }
        if self.confidence is None:
            return found
        upper = gap_upper_bound(
            test.y,
            model.predict(test.X),
            test.groups,
            self.metric,
            self.confidence,
            self.pos_label,
        )
        return {**found, "upper": max(upper, found["gap"]), "model": model}

    def _score(self, model: FairProjClassifier, test: _Data) -> float:
        scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        more = {} if test.weight is None else {"sample_weight": test.weight}
        try:
            found = float(scorer(model, test.X, test.y, **more))
        except TypeError as error:
            if "sample_weight" not in str(error):
                raise
            raise ValueError(
                "the scoring function takes no sample_weight, and weights were given; use one of "
                "scikit-learn's scorers"
            ) from None
        except ValueError as error:
            if "pos_label" not in str(error):
                raise
            raise ValueError(
                f"scoring={self.scoring!r} does not know which of the labels "
                f"{model.classes_.tolist()} is positive; pass make_scorer(..., pos_label=...) of "
                "sklearn.metrics"
            ) from None
        if np.isnan(found):
            raise ValueError(
                f"scoring={self.scoring!r} is not a number at epsilon={model.epsilon:g}; use "
                "another score"
            )
        return found

    def _gap(self, rows: _Data, predicted: Any) -> float:
        function = getattr(metrics, f"{self.metric}_difference")
        return float(
            function(
                rows.y,
                predicted,
                sensitive_features=rows.groups,
                sample_weight=rows.weight,
                pos_label=self.pos_label,
            )
        )


def _key(data: _Data, measure: _Measure) -> str:
    """What kept results depend on beside the template, the split and epsilon."""
    if not isinstance(measure.scoring, str):
        raise ValueError(
            "memory= needs a scoring by name, such as 'accuracy': that a function was changed "
            "since cannot be told"
        )
    return str(joblib.hash((data, measure, versions())))


def _try(
    template: FairProjClassifier,
    data: _Data,
    split: tuple[Any, Any],
    epsilons: list[float],
    measure: _Measure,
    memory: joblib.Memory,
    key: str | None,
) -> list[dict[str, Any]]:
    """What is measured at each epsilon."""
    train, test = (data.take(rows) for rows in split)
    engines: list[Any] | None = [] if bins_once(template, ["epsilon"]) else None
    one = memory.cache(_one, ignore=["train", "test", "measure", "engines"])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no (useful )?round")  # the table tells
        return [
            one(template, epsilon, key, split, train, test, measure, engines)
            for epsilon in epsilons
        ]


def _one(
    template: FairProjClassifier,
    epsilon: float,
    key: str | None,
    split: tuple[Any, Any],
    train: _Data,
    test: _Data,
    measure: _Measure,
    engines: list[Any] | None,
) -> dict[str, Any]:
    model = fit_one(template, train.X, train.y, train.with_rows(), {"epsilon": epsilon}, engines)
    return measure(model, train, test)


def _called(estimator: Any) -> str:
    if isinstance(estimator, type):
        return f"the class {estimator.__name__} rather than an object of it"
    return type(estimator).__name__
