"""The most accurate model whose gap meets a target: chosen by cross-validation, then fitted on all.

Apart from the frontier because it makes a statement: how sure one can be of the gap.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.metrics import get_scorer
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from fairproj import metrics
from fairproj._classifier import FairProjClassifier
from fairproj._path import GAPS, path, take
from fairproj._splits import FairStratifiedKFold
from fairproj._validation import Array, split_sensitive_columns
from fairproj.audit import gap_upper_bound

_CLASSIFIER_STEPS = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # times max_gap
_DISTRIBUTION_EPSILONS = (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3)


class FairProjClassifierCV(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The best score among models whose gap is at most ``max_gap``, with a stated confidence.

    Every candidate, an epsilon of one way to enforce, predicts each row by a model that was not
    trained on it. ``rule`` says when a candidate's gap meets the target:

    ``"upper"``
        An exact upper bound of the gap of these predictions is at most ``max_gap``. Candidates of
        each way are looked at from the smallest epsilon up, until the first that fails: such a
        fixed order needs no correction for their number. The ways share ``1 - confidence``. So,
        whatever the data, the chance that the chosen candidate's cross-validated gap is above the
        target is at most ``1 - confidence``. The model that is then fitted on all rows is another
        one than those of the folds, if a similar one.
    ``"one_se"``
        The mean gap of the folds plus one standard error; no confidence is stated.
    ``"mean"``
        The mean gap of the folds; the chosen model's gap will be above the target about as often
        as not.

    Among the candidates that meet it, the best mean score wins. The winner is fitted on all rows.

    Parameters
    ----------
    max_gap : float, default=0.03
    metric : {"equal_opportunity", "demographic_parity", "false_positive_rate", "equalized_odds"}
        The gap. It is also the constraint that is enforced.
    scoring : str or callable, default="accuracy"
        As in scikit-learn; more is better.
    estimator : FairProjClassifier, optional
        The template; its epsilon, constraints and enforce are set here.
    epsilons : sequence of float, optional
        To try for each way to enforce; by default around ``max_gap`` for the classifier's own gap,
        and 0.01 to 0.3 for training weights.
    enforce : sequence of str, default=("classifier", "distribution")
        The ways to try.
    cv : int or splitter, default=5
        A number means `FairStratifiedKFold`.
    rule : {"upper", "one_se", "mean"}, default="upper"
    confidence : float, default=0.9
        Of ``rule="upper"``.
    if_none : {"raise", "nearest"}, default="raise"
        When no candidate meets the target: an error that says how near one came, or the nearest
        with a warning.
    n_jobs : int, optional
        Folds at a time. Results do not depend on it.

    Attributes
    ----------
    best_estimator_ : FairProjClassifier
        Fitted on all rows.
    best_params_ : dict
        Its ``epsilon`` and ``enforce``.
    met_ : bool
        Whether it meets the target.
    reason_ : str
        What was chosen and why, in a sentence.
    table_ : DataFrame
        Every candidate: score and gap with standard errors, ``upper`` bound, whether it ``meets``.

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
        "epsilons": ["array-like", None],
        "enforce": ["array-like"],
        "cv": "no_validation",
        "rule": [StrOptions({"upper", "one_se", "mean"})],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "if_none": [StrOptions({"raise", "nearest"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        max_gap: float = 0.03,
        metric: str = "equal_opportunity",
        scoring: Any = "accuracy",
        *,
        estimator: Any = None,
        epsilons: Any = None,
        enforce: Sequence[str] = ("classifier", "distribution"),
        cv: Any = 5,
        rule: Literal["upper", "one_se", "mean"] = "upper",
        confidence: float = 0.9,
        if_none: Literal["raise", "nearest"] = "raise",
        n_jobs: int | None = None,
    ) -> None:
        self.max_gap = max_gap
        self.metric = metric
        self.scoring = scoring
        self.estimator = estimator
        self.epsilons = epsilons
        self.enforce = enforce
        self.cv = cv
        self.rule = rule
        self.confidence = confidence
        self.if_none = if_none
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None) -> FairProjClassifierCV:
        """Choose by cross-validation, then fit the winner on all rows.

        Parameters
        ----------
        X, y : as for `FairProjClassifier`
        sensitive_features : array-like, optional
            May be left out if the template names ``sensitive_columns`` of X.
        """
        template = self._template()
        groups = sensitive_features
        if template.sensitive_columns is not None:
            groups = split_sensitive_columns(X, template.sensitive_columns)[1]
        splitter = FairStratifiedKFold(int(self.cv)) if isinstance(self.cv, int) else self.cv
        folds = list(splitter.split(X, y, groups))
        data = (X, y, sensitive_features)
        candidates = self._candidates()
        work = joblib.Parallel(n_jobs=self.n_jobs)
        parts = work(
            joblib.delayed(_one_fold)(template, data, split, values, self.scoring)
            for split in folds
            for values in candidates.values()
        )
        self.table_ = self._judge(candidates, parts, folds, y, groups)
        self._choose()
        self.best_estimator_ = clone(template).set_params(**self.best_params_)
        self.best_estimator_.fit(X, y, sensitive_features=sensitive_features)
        self.classes_ = self.best_estimator_.classes_
        self.n_features_in_ = self.best_estimator_.n_features_in_
        return self

    def _template(self) -> FairProjClassifier:
        template = FairProjClassifier() if self.estimator is None else clone(self.estimator)
        if not isinstance(template, FairProjClassifier):
            raise TypeError(
                f"estimator must be a FairProjClassifier, got {type(template).__name__}; for other "
                "methods use fairness_frontier"
            )
        unknown = [way for way in self.enforce if way not in ("classifier", "distribution")]
        if unknown or not len(self.enforce):
            raise ValueError(
                f"enforce={self.enforce!r} must name 'classifier', 'distribution' or both"
            )
        constraint = "false_positive_rate_parity" if "false" in self.metric else self.metric
        template.set_params(constraints=constraint)
        return template

    def _candidates(self) -> dict[str, list[dict[str, Any]]]:
        """Settings to try, by way to enforce, from the smallest epsilon up."""
        found = {}
        for way in self.enforce:
            values: Any = self.epsilons
            if values is None and way == "classifier":
                values = self.max_gap * np.array(_CLASSIFIER_STEPS)
            elif values is None:
                values = _DISTRIBUTION_EPSILONS
            epsilons = sorted({float(value) for value in values})
            found[way] = [{"epsilon": epsilon, "enforce": way} for epsilon in epsilons]
        return found

    def _judge(
        self, candidates: Any, parts: list[Any], folds: list[Any], y: Any, groups: Any
    ) -> pd.DataFrame:
        """One row for each candidate; which of them meet the target."""
        actual, rows = np.asarray(y), []
        tests = [test for _, test in folds]
        order = np.concatenate(tests)
        level = 1 - (1 - self.confidence) / len(candidates)
        pos_label = getattr(self._template(), "pos_label", None)
        for position, settings in enumerate(candidates.values()):
            of_way = parts[position :: len(candidates)]
            alive = True
            for number, setting in enumerate(settings):
                scores = np.array([fold[number][0] for fold in of_way])
                predicted = [fold[number][1] for fold in of_way]
                gaps = self._gaps(actual, predicted, tests, groups, pos_label)
                pooled, shown = np.concatenate(predicted), take(groups, order)
                upper = gap_upper_bound(actual[order], pooled, shown, self.metric, level, pos_label)
                row = {
                    **setting,
                    "score": scores.mean(),
                    "score_se": scores.std(ddof=1) / np.sqrt(len(scores)),
                    "gap": gaps.mean(),
                    "gap_se": gaps.std(ddof=1) / np.sqrt(len(gaps)),
                    "upper": upper,
                }
                judged = {
                    "upper": upper,
                    "one_se": row["gap"] + row["gap_se"],
                    "mean": row["gap"],
                }[self.rule]
                alive = alive and judged <= self.max_gap
                meets = alive if self.rule == "upper" else judged <= self.max_gap
                rows.append({**row, "judged_by": judged, "meets": bool(meets)})
        return pd.DataFrame(rows)

    def _gaps(
        self, actual: Any, predicted: list[Any], tests: list[Any], groups: Any, pos_label: Any
    ) -> Array:
        function = getattr(metrics, f"{self.metric}_difference")
        return np.array(
            [
                function(
                    actual[test], found, sensitive_features=take(groups, test), pos_label=pos_label
                )
                for found, test in zip(predicted, tests, strict=True)
            ]
        )

    def _choose(self) -> None:
        table, words = self.table_, _RULES[self.rule]
        meeting = table[table["meets"]]
        self.met_ = len(meeting) > 0
        if self.met_:
            best = meeting.sort_values(["score", "gap"], ascending=[False, True]).iloc[0]
        else:
            best = table.sort_values(["judged_by", "score"], ascending=[True, False]).iloc[0]
        name = f"epsilon={best['epsilon']:g}, enforce={best['enforce']!r}"
        measured = f"{words} {best['judged_by']:.3f}, score {best['score']:.3f}"
        if self.met_:
            self.reason_ = (
                f"{name}: the best score of the {len(meeting)} of {len(table)} candidates that "
                f"meet max_gap={self.max_gap:g} ({measured})"
            )
        else:
            self.reason_ = (
                f"none of {len(table)} candidates meets max_gap={self.max_gap:g}; the nearest is "
                f"{name} ({measured})"
            )
            advice = "raise max_gap, give more rows or smaller epsilons, or rule='one_se'"
            if self.if_none == "raise":
                raise ValueError(f"{self.reason_}; {advice}, or take it with if_none='nearest'")
            warnings.warn(f"{self.reason_}; {advice}", UserWarning, stacklevel=4)
        self.best_params_ = {"epsilon": float(best["epsilon"]), "enforce": str(best["enforce"])}

    def predict(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict(X))

    def predict_proba(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.predict_proba(X))

    def decision_function(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(self.best_estimator_.decision_function(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


_RULES = {"upper": "upper bound of the gap", "one_se": "gap plus one standard error", "mean": "gap"}


def _one_fold(
    template: FairProjClassifier,
    data: tuple[Any, Any, Any],
    split: tuple[Any, Any],
    settings: list[dict[str, Any]],
    scoring: Any,
) -> list[tuple[float, NDArray[Any]]]:
    """For each setting, the score and the predictions on the fold's test rows."""
    train, test = (tuple(take(part, rows) for part in data) for rows in split)
    score = get_scorer(scoring) if isinstance(scoring, str) else scoring
    found = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no useful round")
        for model, _ in path(template, train, settings):
            found.append((float(score(model, test[0], test[1])), model.predict(test[0])))
    return found
