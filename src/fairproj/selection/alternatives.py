"""Less discriminatory alternatives: models about as good as the plain one, with a smaller gap."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.parallel import Parallel

from fairproj.constraints import RATES, STATISTICS, Statistic, find_statistic
from fairproj.data.checks import listing
from fairproj.data.columns import take_rows
from fairproj.data.sample import Sample, make_sample, match_groups
from fairproj.data.types import Array, Codes
from fairproj.estimators.fairboost import BASELINE_PARAMETERS, FairBoostClassifier
from fairproj.inference.figures import TOTALS, ModelFigures, percentile_interval, resample
from fairproj.inference.intervals import check_confidence, exact_interval
from fairproj.inference.ratios import ratio_intervals
from fairproj.inference.report import FairnessReport, predict_labels
from fairproj.io.progress import time_bar
from fairproj.metrics import checked_gap, find_reference
from fairproj.selection.fits import (
    PREPARED_BY,
    TIE,
    FoldFit,
    SearchData,
    SeparateRows,
    format_value,
    ignore_outcomes,
)
from fairproj.selection.frontier import undominated
from fairproj.selection.splits import make_cells, split_rows
from fairproj.selection.workers import delayed

SCORES = {"roc_auc": "ROC AUC", "accuracy": "accuracy"}
PLAIN = "plain model"
# Of the default grid: the targets as shares of the plain model's gap on the training rows.
TARGET_SHARES = (0.9, 0.75, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05)
N_SEEDS = 2


class NotUsefulError(ValueError):
    """The plain model is not useful, so there is nothing to compare with."""


class SearchOutcome(Enum):
    """What a search for alternatives came to."""

    FOUND = "found"
    UNCERTAIN = "uncertain"
    COSTLY = "costly"
    NOT_CONFIRMED = "not confirmed"
    NONE = "none"

    @property
    def sentence(self) -> str:
        """What to show."""
        return _SENTENCES[self]


_SENTENCES = {
    SearchOutcome.FOUND: "A less discriminatory alternative was found: its gap on the test rows is "
    "smaller by more than chance explains.",
    SearchOutcome.UNCERTAIN: "Whether the chosen alternative is less discriminatory is uncertain: "
    "on the test rows, the difference between the gaps is within the noise.",
    SearchOutcome.COSTLY: "The chosen alternative is less discriminatory and costs more than the "
    "tolerance allows: on the test rows, its score is lower by more than that.",
    SearchOutcome.NOT_CONFIRMED: "The chosen alternative is not less discriminatory: its gap on "
    "the test rows is larger than that of the plain model.",
    SearchOutcome.NONE: "No less discriminatory alternative was found: no candidate within the "
    "tolerance has a smaller gap than the plain model on the selection rows.",
}


@dataclass(frozen=True)
class Alternatives:
    """A search for models that are about as good as the plain one and less discriminatory.

    Attributes
    ----------
    table : DataFrame
        What was measured on the selection rows, a row for each model: the plain model first, then
        the candidates in the order in which they were tried. Columns: ``params``; ``score`` (the
        one of ``scoring``), ``roc_auc``, ``accuracy``, ``ks``, ``selection_rate``; ``gap``;
        ``adverse_impact_ratio`` with ``impact_group`` (the group where it is smallest) and
        ``standardized_mean_difference`` with ``difference_group`` (the group where it is furthest
        from 0), both of the groups other than the reference; ``useful``, ``within_tolerance``,
        ``pareto`` (no other useful model has as good a score and gap, and one of them better),
        ``rank`` (of the useful candidates within the tolerance, by gap; missing for others) and
        ``chosen``.
    plain : classifier
        Fitted on the training rows.
    chosen : FairBoostClassifier or None
        The candidate of rank 1, fitted on the training rows; None if its gap is not smaller than
        that of the plain model. Its `baseline_` has the same settings without a constraint.
    outcome : SearchOutcome
    test : DataFrame
        The figures ``roc_auc``, ``accuracy``, ``ks``, ``selection_rate`` and ``gap`` on the test
        rows: ``plain``, ``chosen`` and their ``difference`` (chosen less plain), each with ``_low``
        and ``_high``.
    test_groups : DataFrame
        A row for each model and group: ``model``, ``group``, ``rows``, ``selection_rate``,
        ``adverse_impact_ratio`` and ``standardized_mean_difference``, each with ``_low`` and
        ``_high``.
    reports : dict of str to FairnessReport
        All rates and gaps of ``"plain"`` and, if there is one, ``"chosen"`` on the test rows.
    rows : dict of str to array
        Positions of the ``"training"``, ``"selection"`` and ``"test"`` rows.
    metric, scoring, reference : str
        The gap, the score, and the group that the others are compared with.
    tolerance, confidence : float
    n_resamples, random_state : int
        Of the bootstrap.

    Notes
    -----
    On the test rows, the intervals of rates, gaps and adverse impact ratios are exact, and so are
    those of the accuracy and the selection rate. Those of ROC AUC, KS and the standardized mean
    difference, and of all differences between the two models, are percentile intervals of a
    bootstrap that resamples the rows of each group, the same for both models; they are approximate.
    """

    table: pd.DataFrame
    plain: Any = field(repr=False)
    chosen: FairBoostClassifier | None = field(repr=False)
    outcome: SearchOutcome
    test: pd.DataFrame
    test_groups: pd.DataFrame
    reports: dict[str, FairnessReport] = field(repr=False)
    rows: dict[str, Codes] = field(repr=False)
    metric: str
    scoring: str
    reference: str
    tolerance: float
    confidence: float
    n_resamples: int
    random_state: int

    @property
    def ranked(self) -> pd.DataFrame:
        """The table with the plain model first, then by rank, then the others by gap."""
        candidates = self.table.iloc[1:].sort_values(["rank", "gap"], kind="stable")
        return pd.concat([self.table.iloc[:1], candidates])

    @property
    def least_score(self) -> float:
        """The score that a candidate needed on the selection rows."""
        return float(self.table["score"].iloc[0]) - self.tolerance

    def summary(self) -> list[str]:
        """What was found, in sentences."""
        return [self.outcome.sentence, _tried(self), *_on_test_rows(self)]

    def __str__(self) -> str:
        table = self.ranked.assign(model=[describe(row) for row in self.ranked["params"]])
        columns = ["model", "score", "gap", "adverse_impact_ratio", "within_tolerance"]
        return "\n".join([*self.summary(), table[columns].to_string(index=False)])


def find_alternatives(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    metric: str = "demographic_parity",
    scoring: Literal["roc_auc", "accuracy"] = "roc_auc",
    tolerance: float = 0.01,
    reference: Any = None,
    param_grid: Any = None,
    selection_size: float = 0.25,
    test_size: float = 0.25,
    pos_label: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Alternatives:
    """Search for models about as good as the plain one whose gap between groups is smaller.

    The rows are split into training, selection and test rows, the same share of each group and
    label. The plain model and all candidates are fitted on the training rows alone. Of the
    candidates whose score on the selection rows is at most ``tolerance`` below that of the plain
    model, the one with the smallest gap there is chosen (of equal gaps, the one with the best
    score, then the first). The plain model and the chosen one are then measured once on the test
    rows. What the chosen one reached on the selection rows is not reported as an estimate: it was
    chosen for that.

    Parameters
    ----------
    estimator : classifier or None
        The plain model. A `FairBoostClassifier` is fitted without its constraint, and candidates
        have its other parameters; None means one with default parameters. Any other classifier
        with ``predict_proba`` is fitted as it is, and candidates are `FairBoostClassifier` with
        default parameters.
    X, y : as for ``FairBoostClassifier.fit``
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
        The groups; several columns are crossed.
    metric : str, default="demographic_parity"
        The gap, by its name in `fairproj.constraints.STATISTICS` or an alias.
    scoring : {"roc_auc", "accuracy"}, default="roc_auc"
    tolerance : float, default=0.01
        How much lower the score of an alternative may be.
    reference : group, optional
        Of the adverse impact ratio and the standardized mean difference; by default the group that
        the plain model selects most often among the selection rows.
    param_grid : dict or list of dict, optional
        The candidates, as in `sklearn.model_selection.GridSearchCV`, by parameters of
        `FairBoostClassifier`. By default `default_grid`.
    selection_size, test_size : float, default=0.25
        Shares of all rows.
    pos_label : label, optional
        The positive label; by default the estimator's, or the larger in sort order. The adverse
        impact ratio supposes that it is the outcome that people want.
    confidence : float, default=0.95
        Of every interval by itself.
    n_resamples : int, default=1000
        Of the bootstrap.
    random_state : int, default=0
        Of the splits, of models without a seed of their own, and of the bootstrap.
    n_jobs : int, optional
        Fits at a time. Results do not depend on it.
    verbose : bool, default=False
        Show progress (needs ``rich``).

    Returns
    -------
    Alternatives

    Examples
    --------
    >>> from fairproj import FairBoostClassifier
    >>> from fairproj.datasets import load_german
    >>> from fairproj.selection import find_alternatives
    >>> data = load_german()
    >>> found = find_alternatives(
    ...     FairBoostClassifier(n_estimators=20), data.data, data.target,
    ...     sensitive_features=data.sensitive_features, tolerance=0.05,
    ...     param_grid={"constraints": ["demographic_parity"], "max_gap": [0.02, 0.05]})
    >>> len(found.table)
    3
    """
    plan = _Plan(
        statistic=find_statistic(metric, "metric"),
        scoring=scoring,
        tolerance=tolerance,
        reference=reference,
        confidence=confidence,
        n_resamples=n_resamples,
        seed=random_state,
    )
    plan.check()
    template, plain = _models(estimator, pos_label, random_state)
    rows = split_in_three(y, sensitive_features, selection_size, test_size, random_state)
    parts = {
        name: tuple(take_rows(column, positions) for column in (X, y, _table(sensitive_features)))
        for name, positions in rows.items()
    }
    training, selection = parts["training"], parts["selection"]
    separate = _separate(template, training, selection, pos_label)
    own = separate if plain is template else _separate(plain, training, selection, pos_label)
    with warnings.catch_warnings():
        ignore_outcomes()
        plain_fit = _fit_plain(own, plain)
        plan = plan.with_reference(plain_fit)
        candidates = _candidates(param_grid, plan.statistic, plain_fit, template)
        measured = [_measure_plain(plain_fit, plan)]
        measured += _measure_all(separate, candidates, plan, n_jobs, verbose)
        table = _judge(pd.DataFrame(measured), plan)
        chosen = _fit_chosen(separate, table)
    test = _test_figures([plain_fit.model, chosen], parts["test"], separate.train.sample, plan)
    return _result(plan, table, plain_fit.model, chosen, test, rows)


def _table(sensitive_features: Any) -> Any:
    return (
        pd.DataFrame(sensitive_features)
        if isinstance(sensitive_features, dict)
        else sensitive_features
    )


@dataclass(frozen=True)
class _Plan:
    """What to measure and how to judge it; the reference becomes a group's position."""

    statistic: Statistic
    scoring: str
    tolerance: float
    reference: Any
    confidence: float
    n_resamples: int
    seed: int

    def check(self) -> None:
        check_confidence(self.confidence)
        if self.scoring not in SCORES:
            raise ValueError(
                f"scoring={self.scoring!r} is unknown; use one of {listing([*SCORES])}"
            )
        if not isinstance(self.tolerance, Real) or not 0 <= self.tolerance < 1:
            raise ValueError(
                f"tolerance={self.tolerance!r} must be 0 or more and below 1; 0.01 is one point"
            )
        if self.n_resamples < 100:
            raise ValueError(f"n_resamples={self.n_resamples} must be 100 or more")

    def with_reference(self, fit: FoldFit) -> _Plan:
        """With the reference found among the groups: the one named, or the one selected most."""
        groups = fit.groups
        rates = RATES["selection_rate"].values(fit.counts)
        return replace(self, reference=find_reference(self.reference, groups, rates))

    def figures(
        self, actual: NDArray[np.bool_], predicted: NDArray[np.bool_], score: Array, groups: Any
    ) -> ModelFigures:
        return ModelFigures(actual, predicted, score, groups, self.statistic, self.reference)


def split_in_three(
    y: Any, sensitive_features: Any, selection_size: float, test_size: float, random_state: int
) -> dict[str, Codes]:
    """Positions of training, selection and test rows, the same share of each group and label.

    The test rows are those of `fair_train_test_split` with the same seed.
    """
    for name, size in (("selection_size", selection_size), ("test_size", test_size)):
        if not 0 < size < 1:
            raise ValueError(f"{name}={size!r} must lie between 0 and 1")
    if selection_size + test_size >= 1:
        raise ValueError(
            f"selection_size={selection_size:g} and test_size={test_size:g} leave no rows to train "
            "on; their sum must be below 1"
        )
    cells = make_cells(y, sensitive_features)
    if len(cells.group_values) < 2:
        raise ValueError(
            f"sensitive_features holds one group only ({cells.group_names[0]}); a gap needs two"
        )
    rest, test = (np.sort(part) for part in split_rows(cells, test_size, random_state))
    inner = replace(cells, index=cells.index[rest])
    training, selection = split_rows(inner, selection_size / (1 - test_size), random_state)
    return {
        "training": rest[np.sort(training)],
        "selection": rest[np.sort(selection)],
        "test": test,
    }


def _models(estimator: Any, pos_label: Any, seed: int) -> tuple[FairBoostClassifier, Any]:
    """The template of the candidates, and the plain model, both unfitted."""
    own = estimator is None or isinstance(estimator, FairBoostClassifier)
    template = FairBoostClassifier() if not own or estimator is None else clone(estimator)
    template.set_params(baseline=False, verbose=False)
    if template.random_state is None:
        template.set_params(random_state=seed)
    if pos_label is not None:
        template.set_params(pos_label=pos_label)
    if own:
        return template, template
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} has no predict_proba, and the figures of a lender need "
            "scores; wrap it in sklearn.calibration.CalibratedClassifierCV"
        )
    return template, clone(estimator)


def _separate(
    estimator: Any, training: Sequence[Any], selection: Sequence[Any], pos_label: Any
) -> SeparateRows:
    data = SearchData.of(estimator, "max_gap", *training, pos_label=pos_label)
    return SeparateRows(estimator, data, data.beside(estimator, *selection))


def _fit_plain(rows: SeparateRows, plain: Any) -> FoldFit:
    parameters = BASELINE_PARAMETERS if isinstance(plain, FairBoostClassifier) else {}
    return rows.fit(**parameters)


def default_grid(
    statistic: Statistic, gaps: Mapping[str, float], estimator: FairBoostClassifier
) -> list[dict[str, Any]]:
    """The candidates that `find_alternatives` tries by default, in the form of a ``param_grid``.

    Targets are 90, 75, 60, 45, 30, 20, 10 and 5 % of the plain model's gap on the training rows,
    to two digits. The gap that is looked at is bounded by each of them with three kinds of trees
    (the estimator's own, half as many leaves, twice the learning rate) and two seeds. Demographic
    parity and the selection ratio, which the adverse impact ratio is about, are bounded as well,
    with the estimator's own trees and seed.

    Parameters
    ----------
    statistic : Statistic
        The gap that is looked at.
    gaps : mapping of str to float
        The plain model's gaps on the training rows, by name.
    estimator : FairBoostClassifier
    """
    trees: list[dict[str, Any]] = [{}]
    if estimator.max_leaf_nodes is not None and estimator.max_leaf_nodes > 3:
        trees.append({"max_leaf_nodes": [estimator.max_leaf_nodes // 2]})
    if estimator.learning_rate <= 0.5:
        trees.append({"learning_rate": [2 * estimator.learning_rate]})
    seeds = [estimator.random_state]
    if isinstance(seeds[0], int):
        seeds = [seeds[0] + more for more in range(N_SEEDS)]
    grid = [
        {**_bounded(statistic.name, gaps), "random_state": [seed], **kind}
        for seed in seeds
        for kind in trees
    ]
    others = [name for name in ("demographic_parity", "selection_ratio") if name != statistic.name]
    return [*grid, *(_bounded(name, gaps) for name in others)]


def _bounded(name: str, gaps: Mapping[str, float]) -> dict[str, Any]:
    targets = [float(f"{share * gaps[name]:.2g}") for share in TARGET_SHARES]
    return {"constraints": [name], "max_gap": list(dict.fromkeys(targets))}


def _candidates(
    param_grid: Any, statistic: Statistic, plain: FoldFit, template: FairBoostClassifier
) -> list[dict[str, Any]]:
    """The parameters of each candidate, with those that identify one always given."""
    if param_grid is None:
        counts = plain.train_counts()
        gaps = {name: one.value(counts) for name, one in STATISTICS.items()}
        param_grid = default_grid(statistic, gaps, template)
    listed = list(ParameterGrid(param_grid))
    shared = {name for parameters in listed for name in parameters} & PREPARED_BY
    if shared:
        raise ValueError(
            f"param_grid varies {listing(sorted(shared))}, which all candidates share; set it on "
            "the estimator"
        )
    names = ("constraints", "max_gap", "max_leaf_nodes", "learning_rate", "random_state")
    usual = {name: getattr(template, name) for name in names}
    clone(template).set_params(**{name: None for one in listed for name in one})  # known names
    return [usual | parameters for parameters in listed]


def _measure_plain(fit: FoldFit, plan: _Plan) -> dict[str, Any]:
    """What is measured of the plain model, which must be useful for its gap to mean anything."""
    measured = {"params": {}, **_measure(fit, plan)}
    if not measured["useful"]:
        raise NotUsefulError(
            "the plain model does not beat chance where it decides, or says the same to nearly "
            "everyone, so its gap means nothing; with rare labels give a FairBoostClassifier with "
            "class_weight='balanced' or selection_rate=, else features that say more"
        )
    return measured


def _measure_all(
    rows: SeparateRows,
    candidates: list[dict[str, Any]],
    plan: _Plan,
    n_jobs: int | None,
    verbose: bool,
) -> list[dict[str, Any]]:
    """What is measured of each candidate, in their order."""
    found: dict[int, dict[str, Any]] = {}
    lean = rows.without_features()
    work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    calls = (delayed(_measure_batch)(lean, batch, plan) for batch in _batches(candidates))
    with time_bar("candidates", len(candidates), 0, show=verbose) as advance:
        for measured in _until_interrupted(work(calls)):
            found |= measured
            advance(len(measured))
    if len(found) < len(candidates):
        raise KeyboardInterrupt(
            f"{len(found)} of {len(candidates)} candidates were measured, and nothing was chosen."
        )
    return [found[number] for number in range(len(candidates))]


def _until_interrupted(results: Any) -> Iterator[dict[int, dict[str, Any]]]:
    """What batches have measured, up to an interrupt here or in one of them."""
    try:
        for measured, interrupted in results:
            yield measured
            if interrupted:
                return
    except KeyboardInterrupt:
        return


def _batches(candidates: list[dict[str, Any]]) -> list[list[tuple[int, dict[str, Any]]]]:
    """Candidates that differ in their targets only, and so can share what is binned."""

    def kind(numbered: tuple[int, dict[str, Any]]) -> str:
        return repr({name: value for name, value in numbered[1].items() if name != "max_gap"})

    return [list(batch) for _, batch in groupby(enumerate(candidates), kind)]


def _measure_batch(
    rows: SeparateRows, batch: list[tuple[int, dict[str, Any]]], plan: _Plan
) -> tuple[dict[int, dict[str, Any]], bool]:
    """What is measured of some candidates, and whether an interrupt ended that."""
    found: dict[int, dict[str, Any]] = {}
    with warnings.catch_warnings():
        ignore_outcomes()
        try:
            for number, parameters in batch:
                fit = rows.fit(**parameters)
                found[number] = {"params": parameters, **_measure(fit, plan)}
        except KeyboardInterrupt:
            return found, True
    return found, False


def _measure(fit: FoldFit, plan: _Plan) -> dict[str, Any]:
    """Figures on the selection rows."""
    probability = fit.probability()
    assert probability is not None  # the plain model was checked for it
    score = probability if fit.positive else 1 - probability
    masks = (mask == fit.positive for mask in (fit.actual, fit.predicted))
    figures = plan.figures(*masks, score, fit.groups)
    checked_gap(plan.statistic, figures.counts(), figures.groups)
    totals = dict(zip(TOTALS, figures.totals().tolist(), strict=True))
    ratio, impact_group = _worst(figures.impact_ratios(), figures, lambda ratios: -ratios)
    difference, difference_group = _worst(figures.mean_differences(), figures, np.abs)
    return {
        "score": totals[plan.scoring],
        **totals,
        "adverse_impact_ratio": ratio,
        "impact_group": impact_group,
        "standardized_mean_difference": difference,
        "difference_group": difference_group,
        "useful": fit.useful,
    }


def _worst(values: Array, figures: ModelFigures, badness: Any) -> tuple[float, str]:
    """The worst value among the groups other than the reference, and its group."""
    others = [i for i in range(len(values)) if i != figures.reference]
    worst = max(others, key=lambda i: np.nan_to_num(badness(values[i]), nan=-np.inf))
    return float(values[worst]), figures.groups.names[worst]


def _judge(table: pd.DataFrame, plan: _Plan) -> pd.DataFrame:
    """The table with standing and ranks; the plain model is its first row."""
    score, gap = table["score"].to_numpy(), table["gap"].to_numpy()
    useful = table["useful"].to_numpy(dtype=bool)
    within = score >= score[0] - plan.tolerance - TIE
    eligible = within & useful
    eligible[0] = False
    ranks = rank_by_gap(gap, score, eligible)
    chosen = (ranks == 1) & (gap < gap[0] - TIE)
    return table.assign(
        within_tolerance=within,
        pareto=undominated(np.where(useful, gap, np.nan), score),
        rank=pd.array(np.where(ranks > 0, ranks, np.nan)).astype("Int64"),
        chosen=chosen,
    )


def rank_by_gap(gap: Array, score: Array, eligible: NDArray[np.bool_]) -> Codes:
    """1 for the eligible row with the smallest gap, and so on; 0 for rows that are not eligible.

    Of equal gaps the better score comes first, then the order. Values within 1e-9 are equal.
    """
    rows = np.flatnonzero(eligible)
    order = np.lexsort((rows, -np.round(score[rows] / TIE), np.round(gap[rows] / TIE)))
    ranks = np.zeros(len(gap), dtype=np.intp)
    ranks[rows[order]] = np.arange(1, len(rows) + 1)
    return ranks


def _fit_chosen(rows: SeparateRows, table: pd.DataFrame) -> FairBoostClassifier | None:
    """The chosen candidate, fitted again with the same result, and its price beside it."""
    chosen = table.loc[table["chosen"], "params"].tolist()
    if not chosen:
        return None
    bounded = chosen[0]["constraints"] is not None
    model: FairBoostClassifier = rows.fit(**chosen[0], baseline=bounded).model
    return model


def _test_figures(
    models: Sequence[Any], part: Sequence[Any], training: Sample, plan: _Plan
) -> list[ModelFigures]:
    """The figures of the models on the test rows."""
    X, y, groups = part
    sample = match_groups(make_sample(X, y, groups, None), training)
    positive = sample.positive_label
    figures = []
    for model in models:
        if model is not None:
            score = model.predict_proba(X)[:, list(model.classes_).index(positive)]
            predicted = np.asarray(predict_labels(model, X, groups)) == positive
            actual = sample.labels == positive
            figures.append(plan.figures(actual, predicted, np.asarray(score), sample.groups))
    return figures


def _result(
    plan: _Plan,
    table: pd.DataFrame,
    plain: Any,
    chosen: FairBoostClassifier | None,
    figures: list[ModelFigures],
    rows: dict[str, Codes],
) -> Alternatives:
    names = figures[0].groups.names
    models = ["plain", "chosen"][: len(figures)]
    reports = {
        name: FairnessReport.from_counts(one.counts(), names, confidence=plan.confidence)
        for name, one in zip(models, figures, strict=True)
    }
    resamples = resample(figures, plan.n_resamples, plan.seed)
    lows, highs = percentile_interval(resamples.mean_differences, plan.confidence)
    test = _totals_table(figures, reports, resamples.totals, plan)
    groups = [
        _group_rows(name, one, (lows[i], highs[i]), plan.confidence)
        for i, (name, one) in enumerate(zip(models, figures, strict=True))
    ]
    return Alternatives(
        table=table,
        plain=plain,
        chosen=chosen,
        outcome=_outcome(test, plan),
        test=test,
        test_groups=pd.concat(groups, ignore_index=True),
        reports=reports,
        rows=rows,
        metric=plan.statistic.name,
        scoring=plan.scoring,
        reference=names[plan.reference],
        tolerance=plan.tolerance,
        confidence=plan.confidence,
        n_resamples=plan.n_resamples,
        random_state=plan.seed,
    )


def _totals_table(
    figures: list[ModelFigures],
    reports: dict[str, FairnessReport],
    resampled: Array,
    plan: _Plan,
) -> pd.DataFrame:
    """Figures of the models and their difference, with intervals."""
    table = pd.DataFrame(index=pd.Index(TOTALS, name="figure"))
    lows, highs = percentile_interval(resampled, plan.confidence)
    for i, (name, report) in enumerate(reports.items()):
        table[name] = figures[i].totals()
        table[f"{name}_low"], table[f"{name}_high"] = lows[i], highs[i]
        ends = [f"{name}_low", f"{name}_high"]
        gap = report.gaps.set_index("gap").loc[plan.statistic.name]
        table.loc["gap", ends] = gap["low"], gap["high"]
        correct = figures[i].actual == figures[i].predicted
        table.loc["accuracy", ends] = _share_interval(correct, plan.confidence)
        table.loc["selection_rate", ends] = _share_interval(figures[i].predicted, plan.confidence)
    if len(figures) == 2:
        change = np.diff(resampled, axis=1)[:, 0]
        table["difference"] = table["chosen"] - table["plain"]
        ends = percentile_interval(change, plan.confidence)
        table["difference_low"], table["difference_high"] = ends
    columns = [f"{name}{end}" for name in _COMPARED for end in ("", "_low", "_high")]
    return table.reindex(columns=columns)


_COMPARED = ("plain", "chosen", "difference")


def _share_interval(rows: NDArray[np.bool_], confidence: float) -> tuple[float, float]:
    low, high = exact_interval(rows.sum(), len(rows), confidence)
    return float(low), float(high)


def _group_rows(
    name: str, figures: ModelFigures, ends: tuple[Array, Array], confidence: float
) -> pd.DataFrame:
    """The figures of each group for one model."""
    rate = RATES["selection_rate"]
    counts = figures.counts()
    hits, rows = rate.counts(counts)
    rate_ends = exact_interval(hits, rows, confidence)
    ratio_ends = ratio_intervals(hits, rows, figures.reference, confidence)
    table = pd.DataFrame({"model": name, "group": figures.groups.names, "rows": rows.astype(int)})
    columns = {
        "selection_rate": (rate.values(counts), *rate_ends),
        "adverse_impact_ratio": (figures.impact_ratios(), *ratio_ends),
        "standardized_mean_difference": (figures.mean_differences(), *ends),
    }
    for column, (value, low, high) in columns.items():
        table[column], table[f"{column}_low"], table[f"{column}_high"] = value, low, high
    return table


def _outcome(test: pd.DataFrame, plan: _Plan) -> SearchOutcome:
    gap, score = test.loc["gap"], test.loc[plan.scoring]
    if np.isnan(gap["chosen"]):
        return SearchOutcome.NONE
    if gap["difference_low"] > 0:
        return SearchOutcome.NOT_CONFIRMED
    if not gap["difference_high"] < 0:
        return SearchOutcome.UNCERTAIN
    costly = score["difference_high"] < -plan.tolerance
    return SearchOutcome.COSTLY if costly else SearchOutcome.FOUND


# Sentences


def describe(params: Mapping[str, Any]) -> str:
    """A candidate in words; no parameters are the plain model."""
    if not params:
        return PLAIN
    words = {
        "max_leaf_nodes": "{} leaves",
        "learning_rate": "learning rate {:g}",
        "random_state": "seed {}",
    }
    parts = [_bound_words(params["constraints"], params["max_gap"])]
    for name, value in params.items():
        if name in words and value is not None:
            parts.append(words[name].format(value))
        elif name not in ("constraints", "max_gap", *words):
            parts.append(f"{name}={value!r}")
    return ", ".join(parts)


def _bound_words(constraints: Any, max_gap: Any) -> str:
    if constraints is None:
        return "no constraint"
    names = constraints if isinstance(constraints, list | tuple) else [constraints]
    shown = [one.replace("_", " ") if isinstance(one, str) else type(one).__name__ for one in names]
    return f"{' and '.join(shown)} within {format_value(max_gap)}"


def _tried(found: Alternatives) -> str:
    candidates = found.table.iloc[1:]
    ranked = candidates[candidates["rank"].notna()]
    smaller = int((ranked["gap"] < found.table["gap"].iloc[0] - TIE).sum())
    score = SCORES[found.scoring]
    text = (
        f"Of {len(candidates)} candidates, {len(ranked)} are useful and have {_a(score)} of at "
        f"least {found.least_score:.3f} on the {len(found.rows['selection']):,} selection rows "
        f"(that of the plain model, {found.table['score'].iloc[0]:.3f}, less the tolerance of "
        f"{found.tolerance:g}); {smaller} of these have a smaller "
        f"{find_statistic(found.metric).words} than the plain model."
    )
    if found.chosen is None:
        return text
    params = found.table.loc[found.table["chosen"], "params"].iloc[0]
    return f"{text} The one where it is smallest was chosen: {describe(params)}."


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiouR' else 'a'} {noun}"


def _on_test_rows(found: Alternatives) -> list[str]:
    gap, score = found.test.loc["gap"], found.test.loc[found.scoring]
    share = f"{100 * found.confidence:g} %"
    words = find_statistic(found.metric).words
    rows = f"On the {len(found.rows['test']):,} test rows, which had no part in training or choice,"
    plain = f"{gap['plain']:.3f} (exact {share} interval {_range(gap, 'plain')})"
    if found.chosen is None:
        return [f"{rows} the {words} of the plain model is {plain}."]
    return [
        f"{rows} the {words} is {gap['chosen']:.3f} (exact {share} interval "
        f"{_range(gap, 'chosen')}) with the chosen model and {plain} with the plain one. The "
        f"difference is {gap['difference']:+.3f} ({share} interval {_range(gap, 'difference')}).",
        f"The {SCORES[found.scoring]} is {score['chosen']:.3f} with the chosen model and "
        f"{score['plain']:.3f} with the plain one there; the difference is "
        f"{score['difference']:+.3f} ({share} interval {_range(score, 'difference')}), "
        f"{_side(score, found.tolerance)}.",
        _impact(found),
    ]


def _impact(found: Alternatives) -> str:
    """The worst adverse impact ratio of either model on the test rows."""
    others = found.test_groups[found.test_groups["group"] != found.reference]
    worst = {}
    for name, of_model in others.groupby("model"):
        known = of_model.dropna(subset=["adverse_impact_ratio"])
        if known.empty:
            return f"Nobody of the group {found.reference} is selected, so no ratio is known."
        worst[name] = known.loc[known["adverse_impact_ratio"].idxmin()]
    ratios = {name: row["adverse_impact_ratio"] for name, row in worst.items()}
    lower = " It is lower with the chosen model: look at the selection rates of both."
    return (
        f"The smallest adverse impact ratio to {found.reference} is {ratios['chosen']:.3f} "
        f"({_range(worst['chosen'], 'adverse_impact_ratio')}) for {worst['chosen']['group']} with "
        f"the chosen model and {ratios['plain']:.3f} "
        f"({_range(worst['plain'], 'adverse_impact_ratio')}) for {worst['plain']['group']} with "
        f"the plain one.{lower if ratios['chosen'] < ratios['plain'] else ''}"
    )


def _side(score: pd.Series, tolerance: float) -> str:
    """Where the difference between the scores lies."""
    allowed = f"the tolerance of {tolerance:g}"
    if score["difference_high"] < -tolerance:
        return f"more than {allowed} below"
    if score["difference_low"] < -tolerance:
        return f"which does not tell whether the loss is within {allowed}: the rows are too few"
    return f"within {allowed}"


def _range(row: pd.Series, name: str) -> str:
    return f"{row[f'{name}_low']:.3f} to {row[f'{name}_high']:.3f}"
