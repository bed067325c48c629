"""GapSearchCV: the best model whose gap is within a target."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context
from sklearn.metrics import get_scorer
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel
from sklearn.utils.validation import check_is_fitted, check_memory

from fairproj.boosting.record import StopReason
from fairproj.constraints import Statistic, find_statistic
from fairproj.data.checks import counted
from fairproj.data.types import Array
from fairproj.data.user_warning import warn_user
from fairproj.inference.report import gap_upper_bound, innermost
from fairproj.io.progress import time_bar
from fairproj.io.versions import versions
from fairproj.metrics.gaps import checked_gap
from fairproj.selection.errors import NoSolutionFoundError
from fairproj.selection.fits import (
    TIE,
    Fold,
    FoldFit,
    SearchData,
    Split,
    find_parameter,
    format_value,
    list_values,
    make_candidate,
    make_splits,
    quiet,
)
from fairproj.selection.splits import check_parts, hold_out_rows
from fairproj.selection.workers import delayed, run_calls

# Values to try by default: of a parameter named max_gap in multiples of the target, and of epsilon.
_TIMES_MAX_GAP = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
_EPSILONS = (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3)
_BOUNDS = {
    "one_se": "mean gap of the folds plus one standard error",
    "mean": "mean gap of the folds",
    "upper": "upper bound of the gap on held-out rows",
}


def _delegated(method: str) -> Any:
    """Make a method available where the estimator has it."""

    def has_method(search: Any) -> bool:
        return hasattr(getattr(search, "best_estimator_", search.estimator), method)

    return available_if(has_method)


class GapSearchCV(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Search over one parameter for the best model whose gap is at most ``max_gap``.

    ``selection_rule`` says which candidates meet the target, and what may be said of the model that
    is then kept:

    ``"one_se"``
        The mean gap of the folds plus one standard error is at most ``max_gap``. The best candidate
        is fitted again on all rows. Nothing is proved of that model; how often its true gap met the
        target in simulations is in the documentation. (A fold's gap is a largest less a smallest
        rate, so noise makes it larger rather than smaller.)
    ``"upper"``
        Candidates are fitted once, without a held-out part of the rows. An exact upper bound of the
        gap on that part must be at most ``max_gap``. Candidates are judged in the order of their
        gaps on the rows they were trained on, and none counts after the first that fails: an order
        that the held-out rows had no part in needs no correction for the number of candidates.
        The chance that a candidate counts as meeting ``max_gap`` although its true gap is above it
        is then at most ``1 - confidence``, whatever the data, if rows are independent and drawn
        alike. That is the chance of a search which keeps a wrong model, not the share of wrong
        models among those kept. The kept model is the one that was judged: it is not fitted again.
    ``"mean"``
        The mean gap of the folds; the true gap is then above the target more often still.

    A model that says the same to everyone has no gap, so a candidate must also be useful: its true
    positive rate exceeds its false positive rate by two standard errors on the rows it is judged
    on, and in most folds the certificate of a `FairBoostClassifier` calls it useful. Among the
    candidates that meet the target the best score wins, then the smallest gap, then the first.
    Scores, gaps and bounds that differ by less than 1e-9 are equal.

    Parameters
    ----------
    estimator : classifier
        `FairBoostClassifier`, `FairProjClassifier`, those of `fairproj.baselines` or any other,
        also in a pipeline. A classifier whose ``fit`` takes no ``sensitive_features`` is fitted
        without them, and its gap is judged all the same. With ``random_state=None`` the estimators
        of this package are fitted with 0, so that candidates hold out the same rows and a search
        can be repeated.
    max_gap : float, default=0.05
        The target.
    metric : str, optional
        The gap, by its name in `fairproj.constraints.STATISTICS`; by default the one that the
        estimator's ``constraints`` names, or equal opportunity.
    param_name : str, optional
        The parameter to vary, such as ``"fairboostclassifier__max_gap"`` in a pipeline; by default
        ``max_gap`` or ``epsilon``, whichever the estimator has.
    param_values : float or sequence, optional
        The values to try: numbers, or sequences with a number for each constraint. By default
        multiples of ``max_gap`` for a parameter of that name, and 0.01 to 0.3 for ``epsilon``.
    scoring : str or callable, default="accuracy"
        As in scikit-learn; more is better. A function is called with ``sample_weight`` if there are
        weights.
    selection_rule : {"one_se", "upper", "mean"}, default="one_se"
    refit : bool, default=True
        Whether to fit the best candidate again on all rows. Without it there is no
        `best_estimator_`, except for ``selection_rule="upper"``, which never fits again.
    cv : int, splitter or list of splits, default=5
        Folds of ``"one_se"`` and ``"mean"``; a number means `FairStratifiedKFold`.
    validation_fraction : float, default=0.3
        Of ``selection_rule="upper"``: the share of each group's rows to judge on.
    confidence : float, default=0.9
        Of ``selection_rule="upper"``.
    if_none : {"raise", "nearest"}, default="raise"
        When no candidate meets the target: an error that says how near one came, or the nearest
        with a warning.
    memory : str or joblib.Memory, optional
        A folder that keeps what is measured in each fold, so that a search that was interrupted can
        continue from there; for a ``scoring`` by name. With ``selection_rule="upper"`` it keeps the
        models as well. joblib writes them as pickles, so trust the folder as you trust your code.
    n_jobs : int, optional
        Fits at a time. Results do not depend on it.
    random_state : int, RandomState or None, default=0
        Of the choice of held-out rows.
    verbose : bool, default=False
        Show progress (needs ``rich``).

    Attributes
    ----------
    best_estimator_ : estimator
    best_params_ : dict
    best_index_ : int
        Its position in `cv_results_`.
    best_score_, best_gap_ : float
        Its score and gap: means of the folds, or those on the held-out rows.
    cv_results_ : dict of arrays
        As in `sklearn.model_selection.GridSearchCV`, one entry for each candidate in the order of
        ``param_values``: times, ``param_<name>``, ``params``, ``split<i>_test_score``,
        ``mean_test_score``, ``std_test_score``, ``rank_test_score``, the same for ``test_gap``
        (rank 1 is the smallest); also ``gap_bound``, which is compared with ``max_gap``,
        ``useful`` and ``meets_gap``. With ``selection_rule="upper"``, ``mean_train_gap`` is the
        order in which candidates were judged.
    met_ : bool
        Whether the kept model meets the target and is useful; False with one group, where nothing
        is compared.
    reason_ : str
        What was chosen and why, in a sentence.
    validation_rows_ : array of int or None
        Positions of the rows that ``selection_rule="upper"`` judged on.
    n_splits_ : int
    scorer_ : callable
    refit_time_ : float
        Seconds of the last fit, on all rows.
    classes_, n_features_in_, feature_names_in_ : those of `best_estimator_`

    Examples
    --------
    >>> from fairproj import FairBoostClassifier
    >>> from fairproj.datasets import load_german
    >>> from fairproj.selection import GapSearchCV
    >>> data = load_german()
    >>> search = GapSearchCV(FairBoostClassifier(), max_gap=0.15, cv=3)
    >>> search = search.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> search.met_
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict", "get_params"])],
        "max_gap": [Interval(Real, 0, 1, closed="both")],
        "metric": [str, None],
        "param_name": [str, None],
        "param_values": ["array-like", Real, None],
        "scoring": [str, callable],
        "selection_rule": [StrOptions(set(_BOUNDS))],
        "refit": ["boolean"],
        "cv": "no_validation",
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "if_none": [StrOptions({"raise", "nearest"})],
        "memory": [str, HasMethods("cache"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any,
        max_gap: float = 0.05,
        *,
        metric: str | None = None,
        param_name: str | None = None,
        param_values: Any = None,
        scoring: Any = "accuracy",
        selection_rule: Literal["one_se", "upper", "mean"] = "one_se",
        refit: bool = True,
        cv: Any = 5,
        validation_fraction: float = 0.3,
        confidence: float = 0.9,
        if_none: Literal["raise", "nearest"] = "raise",
        memory: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.max_gap = max_gap
        self.metric = metric
        self.param_name = param_name
        self.param_values = param_values
        self.scoring = scoring
        self.selection_rule = selection_rule
        self.refit = refit
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.confidence = confidence
        self.if_none = if_none
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> GapSearchCV:
        """Judge the candidates and keep the best.

        Parameters
        ----------
        X, y : as for the estimator
        sensitive_features : array-like, optional
            May be left out if the estimator names ``sensitive_columns`` of X.
        sample_weight : array-like, optional
            Weighs rows in fits, scores and gaps; not for ``selection_rule="upper"``.

        Returns
        -------
        self
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a fit that fails must not leave an older model
        parameter = find_parameter(self.estimator, self.param_name)
        values = self._values(parameter)
        scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        measure = _Measure(parameter, self.scoring, self._statistic(), self._confidence)
        data = self._data(parameter, X, y, sensitive_features, sample_weight)
        splits = self._splits(data, measure.statistic)
        measured = self._measured(measure, values, data, splits)
        results = self._results(parameter, values, measured)
        best, compared = _choose(results), len(data.sample.groups.values) > 1
        reason = self._reason(results, best) if compared else self._score_alone(results, best)
        if compared and not results["meets_gap"].any():
            self._warn_or_raise(reason, any_useful=bool(results["useful"].any()))
        useful = self._keep_model(data, results["params"][best], measured[0][best].get("model"))
        self.cv_results_, self.n_splits_, self.scorer_ = results, len(splits), scorer
        self.best_index_, self.best_params_ = best, results["params"][best]
        self.best_score_ = float(results["mean_test_score"][best])
        self.best_gap_ = float(results["mean_test_gap"][best])
        self.met_ = bool(compared and results["meets_gap"].any() and useful)
        self.reason_ = reason
        self.validation_rows_ = splits[0][1] if self.selection_rule == "upper" else None
        return self

    @property
    def _confidence(self) -> float | None:
        """Of an upper bound, where the rule asks for one."""
        return self.confidence if self.selection_rule == "upper" else None

    def _statistic(self) -> Statistic:
        if self.metric is not None:
            return find_statistic(self.metric, "metric")
        constraints = getattr(innermost(self.estimator), "constraints", None)
        if not isinstance(constraints, str | None):
            raise ValueError(
                "the estimator's constraints are not a name, so the gap to judge is unknown; pass "
                "metric="
            )
        return find_statistic(constraints or "equal_opportunity", "constraints")

    def _values(self, parameter: str) -> list[Any]:
        if self.param_values is not None:
            return list_values(self.param_values)
        name = parameter.rpartition("__")[2]
        if name == "max_gap":
            return list_values(np.minimum(self.max_gap * np.array(_TIMES_MAX_GAP), 1.0))
        if name == "epsilon":
            return list_values(_EPSILONS)
        raise ValueError(f"there are no default values of {parameter!r}; give param_values")

    def _data(
        self, parameter: str, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> SearchData:
        """The rows, after a check whether a choice can be made at all."""
        if sample_weight is not None and self.selection_rule == "upper":
            raise ValueError(
                "selection_rule='upper' takes no sample_weight: exact bounds count rows; use "
                "selection_rule='one_se'"
            )
        data = SearchData.of(self.estimator, parameter, X, y, sensitive_features, sample_weight)
        if len(data.sample.groups.values) < 2:
            given = sensitive_features is not None
            reason = "sensitive_features holds one group only" if given else "no groups were given"
            warn_user(
                f"{reason}, so every gap is 0 and the search is by score alone; pass the groups as "
                "sensitive_features"
            )
        return data

    def _splits(self, data: SearchData, statistic: Statistic) -> list[Split]:
        if self.selection_rule == "upper":
            splits = [self._hold_out(data, statistic)]
        else:
            splits = make_splits(self.cv, data)
        for train, test in splits:
            if len(np.intersect1d(train, test)):
                raise ValueError("cv tests rows that it trains on; give splits without overlap")
            parts = {"training part of a split": train, "test part of a split": test}
            check_parts(data.sample.cells, parts, by_label=statistic.by_label)
        tested = np.concatenate([test for _, test in splits])
        twice = len(np.unique(tested)) < len(tested)
        if self.selection_rule == "one_se" and (len(splits) < 2 or twice):
            raise ValueError(
                "selection_rule='one_se' needs two folds or more that test no row twice, or its "
                "standard error means nothing; give cv a number or another splitter"
            )
        return splits

    def _hold_out(self, data: SearchData, statistic: Statistic) -> Split:
        """Training rows and an independent sample of every group to judge on."""
        return hold_out_rows(
            data.sample.cells, self.validation_fraction, statistic.by_label, self.random_state
        )

    def _measured(
        self, measure: _Measure, values: list[Any], data: SearchData, splits: list[Split]
    ) -> list[list[dict[str, Any]]]:
        """What was measured, by fold, in the order of the values."""
        memory = check_memory(self.memory)
        key = None if memory.location is None else _cache_key(self.estimator, data, measure)
        if isinstance(self.scoring, str):
            data = data.without_features()
        work = Parallel(n_jobs=self.n_jobs, return_as="generator")
        calls = (
            delayed(_measure_fold)(self.estimator, data, split, values, measure, memory, key)
            for split in splits
        )
        folds = []
        total = len(values) * len(splits)
        with time_bar("candidates", total, 0, show=self.verbose) as advance:
            for fold in run_calls(work, calls):
                folds.append(fold)
                advance(len(fold))
        return folds

    def _results(
        self, parameter: str, values: list[Any], measured: list[list[dict[str, Any]]]
    ) -> dict[str, Any]:
        """`cv_results_`: what was measured, and which candidates meet the target."""
        table = {
            name: np.array([[fit[name] for fit in fold] for fold in measured])
            for name in measured[0][0]
            if name != "model"
        }
        bound = _bounds(self.selection_rule, table)
        meets = bound <= self.max_gap + TIE
        results = _summarize(parameter, values, table)
        if self.selection_rule == "upper":
            results["mean_train_gap"] = table["train_gap"][0]
            order = _judging_order(results)
            meets[order] = np.logical_and.accumulate(meets[order])
        useful = _useful(table)
        return results | {"gap_bound": bound, "useful": useful, "meets_gap": meets & useful}

    def _score_alone(self, results: dict[str, Any], best: int) -> str:
        return (
            f"{_candidate(results, best)}: the best score of "
            f"{counted(len(results['params']), 'candidate')} "
            f"({results['mean_test_score'][best]:.3f}); with one group no gap was compared"
        )

    def _reason(self, results: dict[str, Any], best: int) -> str:
        candidate = _candidate(results, best)
        bound, score = results["gap_bound"][best], results["mean_test_score"][best]
        measured = f"{_BOUNDS[self.selection_rule]} {bound:.3f}, score {score:.3f}"
        meets = results["meets_gap"]
        if meets.any():
            return (
                f"{candidate}: the best score of the {meets.sum()} of "
                f"{counted(len(meets), 'candidate')} "
                f"that meet max_gap={self.max_gap:g} ({measured}){_as_good(results, best)}"
            )
        if not results["useful"].any():
            return (
                f"none of the candidates ({len(meets)}) is useful, whatever its gap: each says the "
                "same to nearly everyone, or errs no less than a constant prediction; the best of "
                f"them was fitted with {candidate} (score {score:.3f})"
            )
        reason = (
            f"none of the candidates ({len(meets)}) meets the target, a gap of at most "
            f"{self.max_gap:g}; the one that comes nearest was fitted with {candidate} ({measured})"
        )
        if bound > self.max_gap + TIE:
            return reason + self._useless(results)
        first = results["gap_bound"][_judging_order(results)[0]]
        return (
            f"{reason}; its bound does not count, because candidates are judged in the order of "
            f"their training gaps and the first one failed (bound {first:.3f})"
        )

    def _useless(self, results: dict[str, Any]) -> str:
        """Which candidates are within the target and do not count."""
        within = results["gap_bound"] <= self.max_gap + TIE
        n_useless = int((within & ~results["useful"]).sum())
        if not n_useless:
            return ""
        return f"; {n_useless} within the target say the same to nearly everyone and do not count"

    def _warn_or_raise(self, reason: str, *, any_useful: bool) -> None:
        advice = "allow a larger max_gap, give more rows or other param_values"
        if not any_useful:
            advice = (
                "balance the labels' weights, ask for a selection rate, or add features that tell "
                "more about the label"
            )
        if self.if_none == "raise":
            nearest = "or take the nearest: if_none='nearest'"
            raise NoSolutionFoundError(f"no solution found: {reason}; {advice}, {nearest}")
        warn_user(f"{reason}; {advice}")

    def _keep_model(self, data: SearchData, params: dict[str, Any], judged: Any) -> bool:
        """Keep the model that was judged, or fit one again on all rows; whether it is useful."""
        if judged is None and not self.refit:
            return True
        if judged is None:
            start = time.perf_counter()
            with quiet():
                judged = data.fit(make_candidate(self.estimator, params))
            self.refit_time_ = time.perf_counter() - start
        self.best_estimator_ = judged
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(judged, name):
                setattr(self, name, getattr(judged, name))
        certificate = getattr(innermost(judged), "certificate_", None)
        useful = bool(getattr(certificate, "useful", True))
        if _fell_back(innermost(judged)):
            useful = False
            warn_user(f"fitted on all rows, {StopReason.FALLBACK.sentence}")
        elif not useful and (shortfall := getattr(certificate, "shortfall", "")):
            warn_user(f"fitted on all rows, {shortfall}")
        return useful

    def _best(self) -> Any:
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                "there is no best_estimator_ to predict with, because refit=False; fit an "
                "estimator with best_params_"
            )
        return self.best_estimator_

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels by the kept model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        labels: NDArray[Any] = self._best().predict(X)
        return labels

    @_delegated("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of both classes by the kept model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, 2)
        """
        probabilities: Array = self._best().predict_proba(X)
        return probabilities

    @_delegated("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Margins by the kept model; positive means ``classes_[1]``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        margin: Array = self._best().decision_function(X)
        return margin

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of the kept model, by ``scoring``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        best = self._best()
        more = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.scorer_(best, X, y, **more))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


@dataclass(frozen=True)
class _Measure:
    """What to measure of a candidate; with ``confidence``, also an upper bound."""

    parameter: str
    scoring: Any
    statistic: Statistic
    confidence: float | None

    def __call__(self, fold: Fold, value: Any) -> dict[str, Any]:
        start = time.perf_counter()
        fit = fold.fit(**{self.parameter: value})
        fitted = time.perf_counter()
        gap = checked_gap(self.statistic, fit.counts, fold.test.sample.groups)
        score = self._score(fit, value)
        measured = {"test_score": score, "test_gap": gap, "certified": fit.certified_useful}
        measured["informedness"], measured["variance"] = fit.informedness()
        if self.confidence is not None:
            upper = gap_upper_bound(fit.counts, self.statistic, self.confidence)
            measured["upper"] = max(upper, gap)
            measured["train_gap"] = self.statistic.value(fit.train_counts())
            measured["model"] = fit.model
        score_time = time.perf_counter() - fitted
        return {"fit_time": fitted - start, "score_time": score_time, **measured}

    def _score(self, fit: FoldFit, value: Any) -> float:
        score = fit.score(self.scoring)
        if np.isnan(score):
            raise ValueError(
                f"scoring={self.scoring!r} is not a number at "
                f"{self.parameter}={format_value(value)}; use another score"
            )
        return score


def _measure_fold(
    estimator: Any,
    data: SearchData,
    split: Split,
    values: list[Any],
    measure: _Measure,
    memory: joblib.Memory,
    key: str | None,
) -> list[dict[str, Any]]:
    """What is measured at each value; looked up in memory by key, split and value."""
    fold = Fold(estimator, data, split)
    cached = memory.cache(_compute, ignore=["compute"])
    with quiet():
        return [cached((key, split, value), partial(measure, fold, value)) for value in values]


def _compute(key: Any, compute: Callable[[], Any]) -> Any:
    return compute()


def _cache_key(estimator: Any, data: SearchData, measure: _Measure) -> str:
    """Everything that kept results depend on beside the split and the value."""
    if not isinstance(measure.scoring, str):
        raise ValueError(
            "memory= needs a scoring by name, such as 'accuracy': whether a function was changed "
            "since cannot be told"
        )
    rows = (data.X, data.y, data.sensitive_features, data.sample_weight)
    return str(joblib.hash((estimator, rows, measure, versions())))


def _bounds(rule: str, table: dict[str, Array]) -> Array:
    """What is compared with the target, for each candidate."""
    gap = table["test_gap"]
    bound: Array = table["upper"][0] if rule == "upper" else gap.mean(axis=0)
    if rule == "one_se":
        bound = bound + gap.std(axis=0, ddof=1) / np.sqrt(len(gap))
    return bound


def _fell_back(model: Any) -> bool:
    """Whether no learner of a built-in estimator beat chance, so that it is constant."""
    history = getattr(model, "history_", None)
    return getattr(history, "stop_reason", None) is StopReason.FALLBACK


def _useful(table: dict[str, Array]) -> NDArray[np.bool_]:
    """Which candidates beat chance on the test rows, and are useful by their certificates."""
    n_splits = len(table["informedness"])
    error = np.sqrt(table["variance"].sum(axis=0)) / n_splits
    beats_chance = table["informedness"].mean(axis=0) > 2 * error + TIE
    useful: NDArray[np.bool_] = beats_chance & (table["certified"].mean(axis=0) > 0.5)
    return useful


def _candidate(results: dict[str, Any], position: int) -> str:
    ((name, value),) = results["params"][position].items()
    return f"{name}={format_value(value)}"


def _as_good(results: dict[str, Any], best: int) -> str:
    """The loosest limit that meets the target too and scores within a standard error, in words.

    A stricter limit can have the best score by chance, so this is worth a look.
    """
    ((name, value),) = results["params"][best].items()
    limits = name.rsplit("__", 1)[-1] in ("max_gap", "epsilon") and isinstance(value, Real)
    if not limits or "split1_test_score" not in results:
        return ""
    n_splits = sum(re.fullmatch(r"split\d+_test_score", key) is not None for key in results)
    score = results["mean_test_score"]
    error = results["std_test_score"][best] / np.sqrt(n_splits - 1)
    within = results["meets_gap"] & (score >= score[best] - error - TIE)
    loosest = max(np.flatnonzero(within).tolist(), key=lambda at: results["params"][at][name])
    if results["params"][loosest][name] <= value:
        return ""
    return (
        f"; {_candidate(results, loosest)} meets it too, and its score ({score[loosest]:.3f}) is "
        "within a standard error of that"
    )


def _judging_order(results: dict[str, Any]) -> NDArray[np.intp]:
    """Candidates by their gaps on the training rows; ties keep their order."""
    return np.argsort(np.round(results["mean_train_gap"] / TIE), kind="stable")


def _summarize(parameter: str, values: list[Any], table: dict[str, Array]) -> dict[str, Any]:
    """Means, standard deviations and ranks over the folds, as scikit-learn's searches have them."""
    results: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        results |= _mean_and_std(name, table[name])
    results[f"param_{parameter}"] = np.ma.array(_as_column(values), mask=False)
    results["params"] = [{parameter: value} for value in values]
    for name, sign in (("test_score", -1), ("test_gap", 1)):
        results |= {f"split{i}_{name}": row for i, row in enumerate(table[name])}
        results |= _mean_and_std(name, table[name])
        ranks = rankdata(sign * np.round(results[f"mean_{name}"] / TIE), method="min")
        results[f"rank_{name}"] = ranks.astype(np.int32)
    return results


def _as_column(values: list[Any]) -> NDArray[Any]:
    """The values as an array of one dimension, also where they are sequences."""
    if all(isinstance(value, Real) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        column[position] = value
    return column


def _mean_and_std(name: str, values: Array) -> dict[str, Array]:
    return {f"mean_{name}": values.mean(axis=0), f"std_{name}": values.std(axis=0)}


def _choose(results: dict[str, Any]) -> int:
    """The candidate to keep: the best that meets the target, or the nearest that is useful."""
    score, bound = results["mean_test_score"], results["gap_bound"]
    meeting = np.flatnonzero(results["meets_gap"])
    if len(meeting):
        return _smallest(meeting, -score, results["mean_test_gap"])
    useful = np.flatnonzero(results["useful"])
    return _smallest(useful if len(useful) else np.arange(len(score)), bound, -score)


def _smallest(candidates: NDArray[np.intp], *keys: Array) -> int:
    """The candidate with the smallest key; the next keys and then the order decide ties."""
    for key in keys:
        values = key[candidates]
        candidates = candidates[values <= values.min() + TIE]
    return int(candidates[0])
