"""Fits along epsilon: the frontier of score and gap, a model that meets a target, and splits."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import metrics as sklearn_metrics

from fairproj import metrics
from fairproj.selection.search import FairProjClassifierCV
from fairproj.selection.shared_fits import GAPS, bins_once, fit_one, folds_of
from fairproj.report.plots import new_axes
from fairproj.io.progress import time_bar
from fairproj.selection.splits import FairStratifiedKFold, fair_train_test_split, take
from fairproj.data.checks import split_sensitive_columns

__all__ = [
    "FairProjClassifierCV",
    "FairStratifiedKFold",
    "Frontier",
    "fair_train_test_split",
    "fairness_frontier",
]

SCORES = ("accuracy", "balanced_accuracy", "roc_auc", "log_loss")
_LOWER_IS_BETTER = ("log_loss",)


@dataclass(frozen=True)
class Frontier:
    """Scores and gaps along a parameter, from cross-validation.

    Attributes
    ----------
    fits : DataFrame
        One row for each fit: the parameter, ``fold``, the scores ``accuracy``,
        ``balanced_accuracy``, ``roc_auc`` and ``log_loss`` (NaN without ``predict_proba``), the
        gaps ``equal_opportunity``, ``demographic_parity``, ``false_positive_rate`` and
        ``equalized_odds``, ``within_epsilon`` (1 where a closed loop met epsilon on the rows it
        watched, 0 where not, NaN for other models), and ``seconds``.
    parameter : str
    name : str
        What to call the estimator.
    """

    fits: pd.DataFrame
    parameter: str
    name: str

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row for each value: means over the folds, and standard errors as ``..._se``."""
        grouped = self.fits.drop(columns="fold").groupby(self.parameter, dropna=False)
        errors: pd.DataFrame = grouped.sem().add_suffix("_se")
        return grouped.mean().join(errors).reset_index()

    def pareto(self, gap: str = "equal_opportunity", score: str = "accuracy") -> NDArray[np.bool_]:
        """A mask of the rows of `frame` that no other beats: gap and score as good, one better.

        Examples
        --------
        >>> import pandas as pd
        >>> from fairproj.selection import Frontier
        >>> fits = pd.DataFrame({"epsilon": [0.1, 0.2, 0.3], "fold": 0,
        ...                      "accuracy": [0.7, 0.6, 0.8], "equal_opportunity": [0.1, 0.2, 0.3]})
        >>> Frontier(fits, "epsilon", "model").pareto().tolist()
        [True, False, True]
        """
        self._known(gap, GAPS)
        self._known(score, SCORES)
        sign = -1.0 if score in _LOWER_IS_BETTER else 1.0
        gaps, scores = self.frame[gap].to_numpy(), sign * self.frame[score].to_numpy()
        known = ~np.isnan(gaps) & ~np.isnan(scores)
        if not known.any():
            raise ValueError(f"{self.name} has no {gap} gap or no {score}; look at others")
        as_good = (gaps[:, None] >= gaps) & (scores[:, None] <= scores)
        better = (gaps[:, None] > gaps) | (scores[:, None] < scores)
        return np.asarray(known & ~(as_good & better).any(axis=1))

    def plot(
        self,
        gap: str = "equal_opportunity",
        score: str = "accuracy",
        *,
        ax: Any = None,
        **style: Any,
    ) -> Any:
        """Points with standard errors, the frontier drawn, dominated points faint.

        Further keywords go to matplotlib (``color``, ``marker``, ``label``). Several frontiers can
        share axes: ``ax = one.plot(); other.plot(ax=ax, marker="s"); ax.legend()``.
        """
        best, frame = self.pareto(gap, score), self.frame
        known = frame[[gap, score]].notna().all(axis=1).to_numpy()
        ax = new_axes(figsize=(6, 4.2)) if ax is None else ax
        style = {"marker": "o", "label": self.name} | style
        errors = {"xerr": frame[f"{gap}_se"], "yerr": frame[f"{score}_se"]}
        for chosen, alpha in ((best, 1.0), (known & ~best, 0.3)):
            ax.errorbar(
                frame.loc[chosen, gap],
                frame.loc[chosen, score],
                **{name: values[chosen] for name, values in errors.items()},
                **(style | {"linestyle": "", "alpha": alpha, "elinewidth": 0.7}),
            )
            style = {
                **style,
                "label": "_nolegend_",
                "color": ax.containers[-1].lines[0].get_color(),
            }
        line = frame[best].sort_values(gap)
        ax.plot(line[gap], line[score], color=style["color"], linewidth=1.2)
        ax.set(xlabel=f"{gap.replace('_', ' ')} gap", ylabel=score.replace("_", " "))
        ax.grid(alpha=0.3)
        return ax

    def _known(self, name: str, known: Sequence[str]) -> None:
        if name not in known:
            raise ValueError(f"{name!r} is unknown; use one of {', '.join(known)}")

    def __repr__(self) -> str:
        return f"Frontier({self.name}, {len(self.frame)} values of {self.parameter})"

    def _repr_html_(self) -> str:
        return self.frame.to_html()


def fairness_frontier(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    epsilons: Any,
    cv: Any = 5,
    parameter: str = "epsilon",
    pos_label: Any = None,
    name: str | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Frontier:
    """Fit along epsilon with cross-validation: what accuracy costs which gap.

    Parameters
    ----------
    estimator : classifier
        Any whose ``fit`` takes ``sensitive_features`` and that has an epsilon-like parameter: ours,
        or those of `fairproj.baselines`.
    X, y, sensitive_features : as for ``FairProjClassifier.fit``
        The sensitive features may be left out if the estimator names ``sensitive_columns`` of X.
    epsilons : float or sequence of float
        The values to try.
    cv : int, splitter or list of splits, default=5
        Folds; a number means `FairStratifiedKFold`, the same for every estimator.
    parameter : str, default="epsilon"
        The parameter that takes these values.
    pos_label : label, optional
        The positive label of the gaps; by default the estimator's, or the larger in sort order.
    name : str, optional
        What to call the estimator in plots; by default its class.
    n_jobs : int, optional
        Jobs at a time. Results do not depend on it.
    verbose : bool, default=False
        Show progress (needs ``rich``).

    Returns
    -------
    Frontier

    Notes
    -----
    The built-in trees bin the data of a fold once for all epsilons. An interrupt returns the fits
    that are done so far, with a warning (with several jobs, those of the folds that are done). A
    gap is NaN where a group has no rows for it.
    """
    values = list(dict.fromkeys(np.asarray(epsilons).ravel().tolist()))
    if not values:
        raise ValueError("epsilons is empty; give at least one value to try")
    _check_estimator(estimator)
    if parameter not in estimator.get_params():
        raise ValueError(
            f"{type(estimator).__name__} has no parameter {parameter!r}; name the one that takes "
            "these values with parameter="
        )
    if isinstance(sensitive_features, dict):
        sensitive_features = pd.DataFrame(sensitive_features)
    groups = sensitive_features
    if groups is None and getattr(estimator, "sensitive_columns", None) is not None:
        groups = split_sensitive_columns(X, estimator.sensitive_columns)[1]
    folds = folds_of(cv, X, y, groups)
    if pos_label is None:
        pos_label = getattr(estimator, "pos_label", None)
    data = (X, y, sensitive_features, groups)
    shared = bins_once(estimator, [parameter])
    batches = [values] if shared else [[value] for value in values]
    jobs = [(fold, rows, batch) for fold, rows in enumerate(folds) for batch in batches]
    work = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    calls = (
        joblib.delayed(_fold)(estimator, data, split, fold, batch, parameter, pos_label)
        for fold, split, batch in jobs
    )
    total = len(values) * len(folds)
    rows: list[dict[str, Any]] = []
    with time_bar("frontier", total, 0, show=verbose) as advance:
        for found in _until_interrupted(work(calls)):
            rows += found
            advance(len(found))
    if len(rows) < total:
        if not rows:
            raise KeyboardInterrupt
        warnings.warn(
            f"interrupted: the frontier has {len(rows)} of {total} fits", UserWarning, stacklevel=2
        )
    fits = pd.DataFrame(rows).sort_values([parameter, "fold"], ignore_index=True)
    return Frontier(fits, parameter, name or type(estimator).__name__)


def _until_interrupted(work: Iterator[tuple[list[Any], bool]]) -> Iterator[list[Any]]:
    """What is done, up to an interrupt here or in the work."""
    try:
        for found, interrupted in work:
            yield found
            if interrupted:
                return
    except KeyboardInterrupt:
        return


def _check_estimator(estimator: Any) -> None:
    name = getattr(estimator, "__name__", type(estimator).__name__)
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"estimator must be a scikit-learn classifier, not {name} itself; pass an object, for "
            "example FairProjClassifier()"
        )
    parameters = inspect.signature(estimator.fit).parameters.values()
    if not any(p.name == "sensitive_features" or p.kind is p.VAR_KEYWORD for p in parameters):
        raise TypeError(
            f"{name}.fit takes no sensitive_features, so there is nothing to vary; wrap it in one "
            "of fairproj.baselines, or use FairProjClassifier(estimator=...)"
        )


def _fold(
    estimator: Any,
    data: tuple[Any, Any, Any, Any],
    split: tuple[Any, Any],
    fold: int,
    values: list[float],
    parameter: str,
    pos_label: Any,
) -> tuple[list[dict[str, Any]], bool]:
    """The fits of one fold, one row each, and whether an interrupt ended them."""
    (X, y, given, _), test = (tuple(take(part, rows) for part in data) for rows in split)
    engines: list[Any] | None = [] if bins_once(estimator, [parameter]) else None
    found: list[dict[str, Any]] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no (useful )?round")  # the table tells
        try:
            for value in values:
                start = time.perf_counter()
                model = fit_one(
                    estimator, X, y, {"sensitive_features": given}, {parameter: value}, engines
                )
                seconds = time.perf_counter() - start
                scores = _measure(model, test, pos_label)
                found.append({parameter: value, "fold": fold, **scores, "seconds": seconds})
        except KeyboardInterrupt:
            return found, True
    return found, False


def _measure(model: Any, test: Any, pos_label: Any) -> dict[str, float]:
    X, y, _, groups = test
    # What the predictions of some other methods need, and a seed where they draw lots.
    offered = {"sensitive_features": groups, "random_state": 0}
    taken = inspect.signature(model.predict).parameters
    predicted = model.predict(X, **{name: offered[name] for name in offered if name in taken})
    actual = np.asarray(y)
    found = {
        "accuracy": sklearn_metrics.accuracy_score(actual, predicted),
        "balanced_accuracy": sklearn_metrics.balanced_accuracy_score(actual, predicted),
        "roc_auc": np.nan,
        "log_loss": np.nan,
    }
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
        second = actual == getattr(model, "classes_", np.unique(actual))[1]
        found["roc_auc"] = sklearn_metrics.roc_auc_score(second, probabilities[:, 1])
        found["log_loss"] = sklearn_metrics.log_loss(second, probabilities[:, 1])
    certificate = getattr(model, "certificate_", None)
    found["within_epsilon"] = float(getattr(certificate, "met", np.nan))
    rates = metrics.group_rates(actual, predicted, sensitive_features=groups, pos_label=pos_label)
    gap_of = {name: np.ptp(rates[name].to_numpy()) for name in rates}
    found |= {
        "equal_opportunity": gap_of["true_positive_rate"],
        "demographic_parity": gap_of["selection_rate"],
        "false_positive_rate": gap_of["false_positive_rate"],
        "equalized_odds": max(gap_of["true_positive_rate"], gap_of["false_positive_rate"]),
    }
    return found
