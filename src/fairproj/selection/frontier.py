"""The frontier of score and gap: fits along a parameter with cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import metrics as sklearn_metrics
from sklearn.utils.parallel import Parallel

from fairproj.constraints import STATISTICS, find_statistic
from fairproj.data.checks import counted
from fairproj.data.types import Array
from fairproj.data.user_warning import warn_user
from fairproj.inference.report import innermost
from fairproj.io.figures import new_axes, plain_label
from fairproj.io.progress import time_bar
from fairproj.selection.fits import (
    TIE,
    Fold,
    FoldFit,
    SearchData,
    Split,
    find_parameter,
    hashable,
    ignore_outcomes,
    list_values,
    make_splits,
)
from fairproj.selection.workers import delayed, run_calls

SCORES = ("accuracy", "balanced_accuracy", "roc_auc", "log_loss")
_LOWER_IS_BETTER = ("log_loss",)


@dataclass(frozen=True)
class Frontier:
    """Scores and gaps along a parameter, from cross-validation.

    Attributes
    ----------
    fits : DataFrame
        One row for each fit: the parameter (a tuple where it is a sequence), ``fold``, the scores
        ``accuracy``, ``balanced_accuracy``, ``roc_auc`` and ``log_loss`` (NaN without
        ``predict_proba``), every gap of `fairproj.constraints.STATISTICS`, ``met`` (1 where a
        `FairBoostClassifier` met its target on the rows it watched, 0 where not, NaN for other
        models), ``useful`` (1 where the model beats chance on the test rows and calls itself
        useful, else 0), and ``seconds``.
    parameter : str
    name : str
        What to call the estimator.
    """

    fits: pd.DataFrame
    parameter: str
    name: str

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row for each value: means over the folds, and standard errors as ``..._se``.

        The values are in the order of `fits`.
        """
        grouped = self.fits.drop(columns="fold").groupby(self.parameter, sort=False, dropna=False)
        errors: pd.DataFrame = grouped.sem().add_suffix("_se")
        return grouped.mean().join(errors).reset_index()

    def pareto(self, gap: str = "equal_opportunity", score: str = "accuracy") -> NDArray[np.bool_]:
        """A mask of the rows of `frame` that no other beats: gap and score as good, one better.

        Values within 1e-9 of each other are equal. Rows whose models are not useful do not count.

        Parameters
        ----------
        gap, score : str
            Columns of `frame`.

        Returns
        -------
        array of bool

        Examples
        --------
        >>> import pandas as pd
        >>> from fairproj.selection import Frontier
        >>> fits = pd.DataFrame({"epsilon": [0.1, 0.2, 0.3], "fold": 0,
        ...                      "accuracy": [0.7, 0.6, 0.8], "equal_opportunity": [0.1, 0.2, 0.3]})
        >>> Frontier(fits, "epsilon", "model").pareto().tolist()
        [True, False, True]
        """
        gap = find_statistic(gap, "gap").name
        if score not in SCORES:
            raise ValueError(f"score={score!r} is unknown; use one of {', '.join(SCORES)}")
        self._check_columns(gap, score)
        sign = -1.0 if score in _LOWER_IS_BETTER else 1.0
        gaps, scores = self.frame[gap].to_numpy(), sign * self.frame[score].to_numpy()
        known = ~np.isnan(gaps) & ~np.isnan(scores)
        if not known.any():
            raise ValueError(f"{self.name} has no {gap} gap or no {score}; look at others")
        return undominated(np.where(self.useful, gaps, np.nan), scores)

    @property
    def useful(self) -> NDArray[np.bool_]:
        """Which rows of `frame` have models that are useful in most folds.

        The others say the same to nearly everyone, or are no better than chance.
        """
        if "useful" not in self.fits:
            return np.ones(len(self.frame), dtype=bool)
        return (self.frame["useful"] > 0.5).to_numpy()

    def _check_columns(self, *names: str) -> None:
        for name in names:
            if name not in self.fits:
                raise ValueError(
                    f"the fits of {self.name} have no column {name!r}; make the frontier again "
                    "after registering the statistic, or choose another column"
                )

    def plot(
        self,
        gap: str = "equal_opportunity",
        score: str = "accuracy",
        *,
        ax: Any = None,
        **style: Any,
    ) -> Any:
        """Points with standard errors, the frontier drawn, dominated points faint.

        Several frontiers can share axes:
        ``ax = one.plot(); other.plot(ax=ax, marker="s"); ax.legend()``.

        Parameters
        ----------
        gap, score : str
            Columns of `frame`.
        ax : matplotlib axes, optional
        **style
            Further keywords of matplotlib, such as ``color``, ``marker`` and ``label``.

        Returns
        -------
        matplotlib axes
        """
        gap = find_statistic(gap, "gap").name
        best, frame = self.pareto(gap, score), self.frame
        known = frame[[gap, score]].notna().all(axis=1).to_numpy()
        ax = new_axes(figsize=(6, 4.2)) if ax is None else ax
        style = {"marker": "o", "label": plain_label(self.name)} | style
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

    def __repr__(self) -> str:
        return f"Frontier({self.name}, {counted(len(self.frame), 'value')} of {self.parameter})"

    def _repr_html_(self) -> str:
        return self.frame.to_html()


def undominated(gaps: Array, scores: Array) -> NDArray[np.bool_]:
    """Which points no other beats: gap and score as good, one of them better.

    Values within 1e-9 of each other are equal; a point with an unknown value is dominated.
    """
    known = ~np.isnan(gaps) & ~np.isnan(scores)
    gains = (gaps[:, None] - gaps, scores - scores[:, None])  # of the others over each
    as_good = (gains[0] >= -TIE) & (gains[1] >= -TIE)
    better = (gains[0] > TIE) | (gains[1] > TIE)
    return np.asarray(known & ~(as_good & better).any(axis=1))


def fairness_frontier(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    param_values: Any,
    param_name: str | None = None,
    cv: Any = 5,
    pos_label: Any = None,
    name: str | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Frontier:
    """Fit along a parameter with cross-validation: what a smaller gap costs in accuracy.

    Parameters
    ----------
    estimator : classifier
        `FairBoostClassifier`, `FairProjClassifier`, those of `fairproj.baselines` or any other,
        also in a pipeline. A classifier whose ``fit`` takes no ``sensitive_features`` is fitted
        without them, and its gaps are measured all the same. With ``random_state=None`` the
        estimators of this package are fitted with 0.
    X, y, sensitive_features : as for ``FairBoostClassifier.fit``
        The sensitive features may be left out if the estimator names ``sensitive_columns`` of X.
    param_values : float or sequence
        The values to try: numbers, or sequences with a number for each constraint.
    param_name : str, optional
        The parameter that takes these values; by default ``max_gap`` or ``epsilon``, whichever the
        estimator has.
    cv : int, splitter or list of splits, default=5
        Folds; a number means `FairStratifiedKFold`, the same for every estimator.
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
    The rows are encoded once, and those of a fold binned once for all values. An interrupt returns
    the fits that are done so far, with a warning (with several jobs, those of the folds that are
    done). A gap is NaN where a group has no rows for it.
    """
    parameter = find_parameter(estimator, param_name)
    values = list_values(param_values)
    data = SearchData.of(estimator, parameter, X, y, sensitive_features, pos_label=pos_label)
    if len(data.sample.groups.values) < 2:
        raise ValueError(
            "a gap needs two groups or more; pass sensitive_features, or an estimator with "
            "sensitive_columns"
        )
    splits = make_splits(cv, data)
    rows, total = [], len(values) * len(splits)
    with time_bar("frontier", total, 0, show=verbose) as advance:
        for measured in _fit_folds(estimator, data, splits, parameter, values, n_jobs):
            rows += measured
            advance(len(measured))
    if len(rows) < total:
        if not rows:
            raise KeyboardInterrupt
        warn_user(f"interrupted: the frontier has {len(rows)} of {total} fits")
    rows.sort(key=lambda row: (np.atleast_1d(row[parameter]).tolist(), row["fold"]))
    return Frontier(pd.DataFrame(rows), parameter, name or type(estimator).__name__)


def _fit_folds(
    estimator: Any,
    data: SearchData,
    splits: list[Split],
    parameter: str,
    values: list[Any],
    n_jobs: int | None,
) -> Iterator[list[dict[str, Any]]]:
    """The rows of the table as they are done, up to an interrupt here or in the work."""
    batches = [[value] for value in values] if data.prepared is None else [values]
    work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    calls = (
        delayed(_fit_fold)(estimator, data.without_features(), split, number, batch, parameter)
        for number, split in enumerate(splits)
        for batch in batches
    )
    try:
        for measured, interrupted in run_calls(work, calls):
            yield measured
            if interrupted:
                return
    except KeyboardInterrupt:
        return


def _fit_fold(
    estimator: Any,
    data: SearchData,
    split: Split,
    number: int,
    values: list[Any],
    parameter: str,
) -> tuple[list[dict[str, Any]], bool]:
    """The fits of one fold, one row each, and whether an interrupt ended them."""
    fold = Fold(estimator, data, split)
    rows: list[dict[str, Any]] = []
    with warnings.catch_warnings():
        ignore_outcomes()
        try:
            for value in values:
                start = time.perf_counter()
                fit = fold.fit(**{parameter: value})
                seconds = time.perf_counter() - start
                row = {parameter: hashable(value), "fold": number, **_measure(fit)}
                rows.append(row | {"seconds": seconds})
        except KeyboardInterrupt:
            return rows, True
    return rows, False


def _measure(fit: FoldFit) -> dict[str, float]:
    """Scores and gaps on the test rows."""
    scores = {
        "accuracy": sklearn_metrics.accuracy_score(fit.actual, fit.predicted),
        "balanced_accuracy": sklearn_metrics.balanced_accuracy_score(fit.actual, fit.predicted),
        "roc_auc": np.nan,
        "log_loss": np.nan,
    }
    probability = fit.probability()
    if probability is not None:
        scores["roc_auc"] = sklearn_metrics.roc_auc_score(fit.actual, probability)
        scores["log_loss"] = sklearn_metrics.log_loss(fit.actual, probability)
    gaps = {name: statistic.value(fit.counts) for name, statistic in STATISTICS.items()}
    met = float(getattr(getattr(innermost(fit.model), "certificate_", None), "met", np.nan))
    return {**scores, **gaps, "met": met, "useful": float(fit.useful)}
