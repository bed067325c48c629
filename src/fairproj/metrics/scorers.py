"""Scorers for scikit-learn's searches and inspection: minus a gap, so that larger is better."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from fairproj.constraints import find_statistic
from fairproj.data.columns import split_sensitive_columns
from fairproj.metrics.gaps import gap_difference


class GapScorer(BaseEstimator):  # type: ignore[misc]
    """Minus the gap of an estimator's predictions; `make_gap_scorer` makes one.

    Parameters
    ----------
    metric : str or callable
    sensitive_columns : str, int or sequence of them, optional
    pos_label : label, optional
    """

    # What is routed to a scorer is what its method score takes.
    __metadata_request__score: ClassVar[dict[str, Any]] = {"estimator": UNUSED}

    def __init__(
        self,
        metric: Any = "equal_opportunity",
        sensitive_columns: Any = None,
        pos_label: Any = None,
    ) -> None:
        self.metric = metric
        self.sensitive_columns = sensitive_columns
        self.pos_label = pos_label

    def __call__(self, estimator: Any, X: Any, y: Any, **metadata: Any) -> float:
        return self.score(estimator, X, y, **metadata)

    def score(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> float:
        groups = sensitive_features
        if self.sensitive_columns is not None:
            _, groups, *_ = split_sensitive_columns(X, self.sensitive_columns)
        if groups is None:
            raise ValueError(
                "the scorer got no sensitive_features; name columns of X with "
                "make_gap_scorer(metric, sensitive_columns), or enable metadata routing, call "
                "set_score_request(sensitive_features=True) and pass them to fit"
            )
        how = {
            "sensitive_features": groups,
            "sample_weight": sample_weight,
            "pos_label": find_pos_label(estimator) if self.pos_label is None else self.pos_label,
        }
        predicted = estimator.predict(X)
        if callable(self.metric):
            return -float(self.metric(y, predicted, **how))
        return -gap_difference(y, predicted, statistic=self.metric, **how)


def find_pos_label(estimator: Any) -> Any:
    """The ``pos_label`` of an estimator, or of the one within a pipeline or a search."""
    while estimator is not None:
        if getattr(estimator, "pos_label", None) is not None:
            return estimator.pos_label
        steps = getattr(estimator, "steps", None)
        estimator = steps[-1][1] if steps else getattr(estimator, "estimator", None)
    return None


def make_gap_scorer(
    metric: Any, sensitive_columns: Any = None, *, pos_label: Any = None
) -> GapScorer:
    """A scorer of a gap between groups.

    The groups are columns of X, or come by metadata routing, with
    ``set_score_request(sensitive_features=True)``.

    Parameters
    ----------
    metric : str or callable
        The name of a statistic, or one of the differences of this module.
    sensitive_columns : str, int or sequence of them, optional
        Columns of X that hold the sensitive features, as in `FairProjClassifier`.
    pos_label : label, optional
        The positive label; by default the estimator's ``pos_label``, also where the estimator is in
        a pipeline, or the larger in sort order.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, minus the gap: larger is better.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from fairproj import FairProjClassifier
    >>> from fairproj.metrics import make_gap_scorer
    >>> search = GridSearchCV(
    ...     FairProjClassifier(sensitive_columns="sex"),
    ...     {"epsilon": [0.05, 0.1, 0.2]},
    ...     scoring=make_gap_scorer("equal_opportunity", "sex"),
    ... )
    """
    if isinstance(metric, str):
        metric = find_statistic(metric, "metric").name
    return GapScorer(metric, sensitive_columns, pos_label)


_DOC = """Scores predictions by minus {gap}, so that larger is better.

This is minus `{function}`. The groups come by metadata routing: call
``{statistic}_scorer.set_score_request(sensitive_features=True)`` and pass ``sensitive_features`` to
``fit`` of the search. For groups in columns of X use `make_gap_scorer`.
"""


def _scorer(statistic: str, function: str, gap: str) -> GapScorer:
    """A scorer with its own docstring, for `help` and the API reference."""
    scorer = make_gap_scorer(statistic)
    scorer.__doc__ = _DOC.format(statistic=statistic, function=function, gap=gap)
    return scorer


demographic_parity_scorer = _scorer(
    "demographic_parity", "demographic_parity_difference", "the gap of the selection rates"
)
equal_opportunity_scorer = _scorer(
    "equal_opportunity", "equal_opportunity_difference", "the gap of the true positive rates"
)
false_positive_rate_parity_scorer = _scorer(
    "false_positive_rate_parity",
    "false_positive_rate_difference",
    "the gap of the false positive rates",
)
equalized_odds_scorer = _scorer(
    "equalized_odds",
    "equalized_odds_difference",
    "the larger gap of the true and the false positive rates",
)
accuracy_parity_scorer = _scorer(
    "accuracy_parity", "accuracy_difference", "the gap of the accuracies"
)
selection_ratio_scorer = _scorer(
    "selection_ratio", "selection_ratio_shortfall", "the shortfall of the selection ratio from 1"
)
