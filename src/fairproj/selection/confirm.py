"""ConfirmedClassifier: a model whose gap an exact test has confirmed on rows kept for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fairproj.constraints import Statistic, find_statistic
from fairproj.data.cells import CellCounts
from fairproj.data.checks import check_slack
from fairproj.data.types import Array
from fairproj.data.user_warning import warn_user
from fairproj.inference.power import largest_confirmable_gap, rows_to_confirm
from fairproj.inference.report import gap_upper_bound, innermost
from fairproj.selection.errors import NoSolutionFoundError
from fairproj.selection.fits import Fold, FoldFit, SearchData, Split, make_candidate, quiet
from fairproj.selection.splits import hold_out_rows

_POWER = 0.8
_RATES = (0.5, 0.8, 0.95)  # the rates of a model are not known before training; 0.5 is the hardest
_AGAIN = "a second run on the same rows no longer has this confidence"
_IF_UNKNOWN = 0.5  # the part of max_gap to aim at where it is not known what rows confirm


@dataclass(frozen=True)
class _Target:
    """A gap and its limit."""

    statistic: Statistic
    max_gap: float

    def sizes(self, counts: CellCounts) -> list[Array]:
        """The rows of each group, for each rate that is compared."""
        return [rate.counts(counts)[1] for rate in self.statistic.rates]


class ConfirmedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is kept only if an exact test confirms its gap on new rows.

    A part of the rows, the safety part, is kept from training. An estimator is fitted on the rest,
    and then the finished model is tested once on the safety part: an exact upper bound of each gap
    must be at most ``max_gap``. If it is not, there is no solution.

    The chance that a model is confirmed although a gap of it is above ``max_gap`` is at most ``1 -
    confidence``, whatever the data, the estimator and the number of rows, if rows are independent
    and identically distributed. With several gaps this needs no correction. All of them must pass
    (an intersection-union test), so that a model with a gap above its limit is confirmed only if
    the test of that gap is wrong, whatever the others say; and that has at most this chance.

    It holds for one fit. If you fit again with other parameters until a model is confirmed, you
    test several times, and the chance rises with each test.

    A gap of exactly ``max_gap`` is hardly ever confirmed. So the estimator is trained for less,
    where it has a parameter for it: the largest gap that the safety part confirms with a chance of
    80 %, from the sizes of its groups alone (half of ``max_gap`` for a ratio and for precisions,
    where this is not known). Where not even a gap of 0 would be confirmed, an error says so before
    training, with the number of rows that would be needed.

    A model that says the same to everyone has no gap. It is no solution either: the true positive
    rate of a model must exceed its false positive rate by two standard errors on the safety part.

    Parameters
    ----------
    estimator : classifier
        `FairBoostClassifier` or any other, also in a pipeline. A classifier whose ``fit`` takes no
        ``sensitive_features`` is fitted without them, and its gap is tested all the same. With
        ``random_state=None`` the estimators of this package are fitted with 0.
    max_gap : float or sequence of float, optional
        The limit, or one for each metric; by default the estimator's own ``max_gap``.
    metric : str or sequence of str, optional
        The gaps, by their names in `fairproj.constraints.STATISTICS`; by default those that the
        estimator's ``constraints`` names, or equal opportunity.
    confidence : float, default=0.95
        Of the test; above 0.5.
    safety_fraction : float, default=0.25
        The share of each group's rows to keep for the test; where rates are those of one label, of
        each group and label.
    param_name : str, optional
        The parameter of the estimator to train for a smaller gap with, such as
        ``"fairboostclassifier__max_gap"`` in a pipeline; by default ``max_gap`` where there is one.
        It takes one number, or a list with one for each constraint where the estimator has a list
        of constraints with the names of the metrics.
    if_none : {"raise", "warn"}, default="raise"
        When the test fails, or there are no groups to compare: `NoSolutionFoundError`, or a warning
        and a model that is not confirmed.
    random_state : int, RandomState or None, default=0
        Of the choice of the safety part.

    Attributes
    ----------
    estimator_ : estimator
        The finished model.
    confirmed_ : bool
        Whether all gaps were confirmed; False with one group, where there is nothing to test and,
        with ``if_none="warn"``, all rows are used for training.
    gap_bounds_ : dict of str to float
        For each metric a number that the gap is at most, with ``confidence``.
    aims_ : dict of str to float
        For each metric the gap that the model was trained for.
    n_safety_rows_ : int
    safety_rows_ : array of int
        The positions of the safety part.
    reason_ : str
        What was found, in a sentence.
    classes_, n_features_in_, feature_names_in_ : those of `estimator_`

    Examples
    --------
    >>> from fairproj import FairBoostClassifier
    >>> from fairproj.datasets import load_compas
    >>> from fairproj.selection import ConfirmedClassifier
    >>> data = load_compas()
    >>> model = ConfirmedClassifier(FairBoostClassifier(n_estimators=50), max_gap=0.15)
    >>> model = model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> model.confirmed_
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict", "get_params"])],
        "max_gap": "no_validation",
        "metric": [str, "array-like", None],
        "confidence": [Interval(Real, 0.5, 1, closed="neither")],
        "safety_fraction": [Interval(Real, 0, 1, closed="neither")],
        "param_name": [str, None],
        "if_none": [StrOptions({"raise", "warn"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        max_gap: Any = None,
        *,
        metric: Any = None,
        confidence: float = 0.95,
        safety_fraction: float = 0.25,
        param_name: str | None = None,
        if_none: Literal["raise", "warn"] = "raise",
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.max_gap = max_gap
        self.metric = metric
        self.confidence = confidence
        self.safety_fraction = safety_fraction
        self.param_name = param_name
        self.if_none = if_none
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> ConfirmedClassifier:
        """Train on a part of the rows, and test the model on the others.

        Parameters
        ----------
        X, y : as for the estimator
        sensitive_features : array-like, optional
            May be left out if the estimator names ``sensitive_columns`` of X.
        sample_weight : array-like, optional
            Weighs rows in training. The test counts each row once.

        Returns
        -------
        self
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a fit that fails must not leave an older model
        targets = self._targets()
        data = SearchData.of(self.estimator, "", X, y, sensitive_features, sample_weight)
        if len(data.sample.groups.values) < 2:
            self._fit_one_group(data, sensitive_features is not None)
            return self
        split = self._split(data, targets)
        aims = self._aims(targets, data.take(split[1]))
        with quiet():  # the test tells whether the gap is met, and the aim is not the user's
            fit = Fold(self.estimator, data, split).fit(**self._parameters(targets, aims))
        self._test(fit, data.take(split[1]), targets)
        self._keep(fit.model)
        self.aims_, self.safety_rows_ = aims, split[1]
        self.n_safety_rows_ = len(split[1])
        return self

    def _targets(self) -> list[_Target]:
        names, parameter = self.metric, "metric"
        if names is None:
            names, parameter = _constraints(self.estimator), "constraints"
        names = list(names) if _is_list(names) else [names]
        if not names or not all(isinstance(name, str) for name in names):
            raise ValueError(
                f"{parameter}={names!r} does not name the gaps to test; pass metric= with names of "
                "fairproj.constraints.STATISTICS"
            )
        statistics = [find_statistic(name, parameter) for name in names]
        limits = self.max_gap if self.max_gap is not None else _max_gap(self.estimator)
        limits = check_slack(limits, names, "max_gap", largest=1.0)
        return [
            _Target(statistic, float(limit))
            for statistic, limit in zip(statistics, limits, strict=True)
        ]

    def _fit_one_group(self, data: SearchData, given: bool) -> None:
        reason = "sensitive_features holds one group only" if given else "no groups were given"
        self.reason_ = f"{reason}, so there is no gap to confirm"
        self._fail(f"{self.reason_}; pass the groups as sensitive_features")
        with quiet():
            self._keep(data.fit(make_candidate(self.estimator, {})))
        self.confirmed_ = False
        self.gap_bounds_ = dict[str, float]()
        self.aims_ = dict[str, float]()
        self.safety_rows_, self.n_safety_rows_ = np.zeros(0, dtype=np.intp), 0

    def _split(self, data: SearchData, targets: list[_Target]) -> Split:
        by_label = all(target.statistic.by_label for target in targets)
        cells = data.sample.cells
        return hold_out_rows(cells, self.safety_fraction, by_label, self.random_state)

    def _aims(self, targets: list[_Target], safety: SearchData) -> dict[str, float]:
        """The gaps to train for; from the sizes of the safety part, never from predictions."""
        counts = _count(safety, np.zeros(len(safety.sample.y), dtype=bool))
        aims = {}
        for target in targets:
            aim = _aim(target, counts, self.confidence)
            if aim is None:
                self._fail(self._too_few_rows(target, counts, safety.sample.groups.names))
                aim = target.max_gap
            aims[target.statistic.name] = aim
        return aims

    def _too_few_rows(self, target: _Target, counts: CellCounts, groups: list[str]) -> str:
        rows = min(target.sizes(counts), key=np.min)
        smallest = int(np.argmin(rows))
        found = (
            f"with {rows[smallest]:,.0f} rows of group {groups[smallest]!r} to test "
            f"{target.statistic.title} on, not even a gap of 0 would be confirmed to be at most "
            f"{target.max_gap:g}"
        )
        if not target.max_gap:
            return f"{found}, nor with any number of rows; allow a larger max_gap"
        least, most = (
            rows_to_confirm(
                target.max_gap, rate, confidence=self.confidence, power=_POWER, n_groups=len(groups)
            )
            for rate in (_RATES[-1], _RATES[0])
        )
        return (
            f"{found}; that takes {least:,} rows of each group where its rate is "
            f"{_RATES[-1]:g} or {1 - _RATES[-1]:.2g}, and {most:,} where it is {_RATES[0]:g}: give "
            "more rows, or a larger max_gap"
        )

    def _parameters(self, targets: list[_Target], aims: Mapping[str, float]) -> dict[str, Any]:
        """What to train the estimator with."""
        known = clone(self.estimator).get_params()  # clone refuses what is no estimator
        name = self.param_name or "max_gap"
        if name not in known:
            if self.param_name is not None:
                raise ValueError(
                    f"{type(self.estimator).__name__} has no parameter {name!r}; name the one that "
                    "bounds its gap with param_name=, or leave it out"
                )
            return {}
        return {name: _aims_by_constraint(_constraints(self.estimator), aims)}

    def _test(self, fit: FoldFit, safety: SearchData, targets: list[_Target]) -> None:
        counts = _count(safety, fit.predicted)
        bounds = {
            target.statistic.name: gap_upper_bound(counts, target.statistic, self.confidence)
            for target in targets
        }
        self.gap_bounds_ = bounds
        missed = [one for one in targets if bounds[one.statistic.name] > one.max_gap]
        self.reason_ = self._reason(missed or targets, len(safety.sample.y))
        if missed:
            self._fail(
                f"{self.reason_}; {_AGAIN}: use new rows, and more of them, a larger "
                "max_gap or an estimator that keeps a smaller gap"
            )
        useful = fit.useful
        if not useful:
            self.reason_ = "the model tells the labels no better than chance, whatever its gap"
            self._fail(
                f"{self.reason_}; {_AGAIN}: use new rows, and a larger max_gap, or balance "
                "the labels' weights"
            )
        self.confirmed_ = not missed and useful

    def _reason(self, targets: list[_Target], n_rows: int) -> str:
        bounds = [self.gap_bounds_[target.statistic.name] for target in targets]
        confidence = f"with {100 * self.confidence:g} % confidence"
        rows = f"({n_rows:,} rows that training did not see)"
        pairs = list(zip(targets, bounds, strict=True))
        if all(bound <= target.max_gap for target, bound in pairs):
            said = [
                f"the {target.statistic.title} gap is at most {bound:.3f}, within "
                f"{target.max_gap:g}"
                for target, bound in pairs
            ]
            return f"{confidence} {', and '.join(said)} {rows}"
        said = [
            f"a limit of {target.max_gap:g} on the {target.statistic.title} gap could not be "
            f"confirmed: the test only shows, {confidence}, a gap of at most {bound:.3f}"
            for target, bound in pairs
        ]
        return f"{', and '.join(said)} {rows}"

    def _fail(self, reason: str) -> None:
        if self.if_none == "raise":
            raise NoSolutionFoundError(f"no solution found: {reason}")
        warn_user(f"the model is not confirmed: {reason}")

    def _keep(self, model: Any) -> None:
        self.estimator_ = model
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels by the finished model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self, "estimator_")
        labels: NDArray[Any] = self.estimator_.predict(X)
        return labels

    @available_if(lambda self: _has(self, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of both classes by the finished model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, 2)
        """
        check_is_fitted(self, "estimator_")
        probabilities: Array = self.estimator_.predict_proba(X)
        return probabilities

    @available_if(lambda self: _has(self, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Margins by the finished model; positive means ``classes_[1]``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self, "estimator_")
        margin: Array = self.estimator_.decision_function(X)
        return margin

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of the finished model, by its own ``score``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
        """
        check_is_fitted(self, "estimator_")
        more = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.estimator_.score(X, y, **more))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _has(model: Any, method: str) -> bool:
    return hasattr(getattr(model, "estimator_", model.estimator), method)


def _is_list(names: Any) -> bool:
    return isinstance(names, list | tuple | np.ndarray)


def _constraints(estimator: Any) -> Any:
    """The names of the gaps that an estimator constrains; equal opportunity where it names none."""
    found = _parameter(estimator, "constraints")
    return "equal_opportunity" if found is None else found


def _max_gap(estimator: Any) -> Any:
    found = _parameter(estimator, "max_gap")
    if found is None:
        raise ValueError(
            f"max_gap is missing, and {type(estimator).__name__} has none; pass the largest gap "
            "allowed as max_gap="
        )
    return found


def _parameter(estimator: Any, name: str) -> Any:
    """A parameter of an estimator or of the one inside it, also in a search that is not fitted."""
    inner = innermost(estimator)
    while not hasattr(inner, name) and hasattr(inner, "estimator"):
        inner = innermost(inner.estimator)
    return getattr(inner, name, None)


def _aims_by_constraint(constraints: Any, aims: Mapping[str, float]) -> float | list[float]:
    """One aim for each constraint of a list of those that are tested; else the smallest."""
    if _is_list(constraints) and all(isinstance(one, str) for one in constraints):
        names = [find_statistic(one).name for one in constraints]
        if len(names) > 1 and set(names) == set(aims):
            return [aims[name] for name in names]
    return min(aims.values())


def _aim(target: _Target, counts: CellCounts, confidence: float) -> float | None:
    """The gap to train for; None if the rows could confirm nothing."""
    if target.statistic.kind == "ratio" or not target.statistic.constrainable:
        return _IF_UNKNOWN * target.max_gap
    if not target.max_gap:
        return None
    aims = [_confirmable(rows, target.max_gap, confidence) for rows in target.sizes(counts)]
    known = [aim for aim in aims if aim is not None]
    return min(known) if len(known) == len(aims) else None


def _confirmable(rows: Array, max_gap: float, confidence: float) -> float | None:
    """The largest gap that these rows confirm; at the hardest rate at which there is one."""
    for rate in _RATES:
        gap = largest_confirmable_gap(rows, max_gap, rate, confidence=confidence, power=_POWER)
        if gap is not None:
            return gap
    return None


def _count(rows: SearchData, predicted: NDArray[np.bool_]) -> CellCounts:
    """Rows and positive predictions by group and label, each row once, whatever its weight."""
    sample, positive = rows.sample, bool(rows.sample.positive_class)
    return CellCounts.of_rows(
        (sample.y > 0) == positive, predicted == positive, sample.groups, weight=None
    )
