"""Less discriminatory alternatives: models about as good as the plain one, with a smaller gap."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.parallel import Parallel

from fairproj.boosting.requirements import find_requirements
from fairproj.constraints import STATISTICS, Statistic, find_statistic
from fairproj.data.checks import check_aligned, check_lengths, listing, percent
from fairproj.data.columns import take_rows
from fairproj.data.sample import Sample, make_sample, match_groups
from fairproj.data.types import Array, Codes
from fairproj.estimators.fairboost import BASELINE_PARAMETERS, FairBoostClassifier
from fairproj.estimators.price import measure_on_rows
from fairproj.inference.figures import TOTALS, ModelFigures
from fairproj.inference.gap_change import find_widest_pair
from fairproj.inference.report import gap_interval, innermost
from fairproj.inference.score_change import ScoreParts, difference_to_confirm
from fairproj.io.progress import time_bar
from fairproj.metrics.gaps import checked_gap
from fairproj.selection.comparison import Alternatives, Plan, compare
from fairproj.selection.fits import (
    PREPARED_BY,
    TIE,
    FoldFit,
    SearchData,
    SeparateRows,
    ignore_outcomes,
    predict_held_out,
    score_held_out,
)
from fairproj.selection.frontier import undominated
from fairproj.selection.splits import make_cells, split_rows
from fairproj.selection.workers import delayed, run_calls

# Of the default grid: the targets as shares of the plain model's gap on the training rows.
TARGET_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.2, 0.05)
N_SEEDS = 2
POWER = 0.8  # the chance with which the test rows confirm the score of the chosen candidate


class NotUsefulError(ValueError):
    """The plain model is not useful, so there is nothing to compare with."""


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
    test_rows: Any = None,
    pos_label: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Alternatives:
    """Search for models about as good as the plain one whose gap between groups is smaller.

    The rows are split into training, selection and test rows, the same share of each group and
    label. The plain model and all candidates are fitted on the training rows alone. A candidate
    counts if its score on the selection rows is at most ``tolerance`` below that of the plain
    model. Of those whose score leaves room, so that the test rows confirm it with a chance of about
    80 %, the one with the smallest gap is chosen (of equal gaps, the one with the best score, then
    the first); where none leaves room, of all that count. The plain model and the chosen one are
    then measured once on the test rows. What the chosen one reached on the selection rows is not
    reported as an estimate: it was chosen for that.

    Parameters
    ----------
    estimator : classifier or None
        The plain model. A `FairBoostClassifier` is fitted without its constraint; it holds out rows
        and chooses its round as the first candidate does, like a ``baseline_``. Candidates have its
        other parameters; None means one with default parameters. Any other classifier with
        ``predict_proba`` is fitted as it is, on all training rows, and candidates are
        `FairBoostClassifier` with default parameters.
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
    test_rows : array of bool of shape (n_rows,), optional
        The test rows, such as the last ones by time; by default random ones, the same share of each
        group and label. ``test_size`` is then ignored.
    pos_label : label, optional
        The positive label; by default the estimator's (also of one inside a pipeline or a search),
        or the larger in sort order. The adverse impact ratio supposes that it is the outcome that
        people want.
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
    >>> from fairproj.datasets import load_compas
    >>> from fairproj.selection import find_alternatives
    >>> data = load_compas()
    >>> found = find_alternatives(
    ...     FairBoostClassifier(n_estimators=20), data.data, data.target,
    ...     sensitive_features=data.sensitive_features, tolerance=0.05,
    ...     param_grid={"constraints": ["demographic_parity"], "max_gap": [0.02, 0.05]})
    >>> len(found.table)
    3
    """
    plan = Plan(
        statistic=find_statistic(metric, "metric"),
        scoring=scoring,
        tolerance=tolerance,
        reference=reference,
        confidence=confidence,
        n_resamples=n_resamples,
        seed=random_state,
    )
    plan.check()
    check_lengths(X, y)
    check_aligned(X=X, y=y, sensitive_features=sensitive_features)
    pos_label = _pos_label(estimator) if pos_label is None else pos_label
    template, plain = _models(estimator, pos_label, random_state)
    rows = split_in_three(y, sensitive_features, selection_size, test_size, random_state, test_rows)
    parts = {
        name: tuple(take_rows(column, positions) for column in (X, y, _table(sensitive_features)))
        for name, positions in rows.items()
    }
    training, selection = parts["training"], parts["selection"]
    separate = _separate(template, training, selection, pos_label)
    own = separate if plain is template else _separate(plain, training, selection, pos_label)
    with warnings.catch_warnings():
        ignore_outcomes()
        plain_fit = _fit_plain(own, plain, _first_candidate(param_grid, plan.statistic, template))
        plan = plan.with_reference(plain_fit.counts, plain_fit.groups)
        candidates = _candidates(param_grid, plan.statistic, plain_fit, template)
        measured = [_measure_plain(plain_fit, own, plan)]
        beside = _score_parts(plain_fit, plan)
        measured += _measure_all(separate, candidates, plan, beside, n_jobs, verbose)
        ratio = len(rows["selection"]) / len(rows["test"])
        table = _judge(pd.DataFrame(measured), plan, ratio)
        chosen_fit = _fit_chosen(separate, table)
    fits = [plain_fit] if chosen_fit is None else [plain_fit, chosen_fit]
    widest = [find_widest_pair(plan.statistic, fit.counts) for fit in fits]
    models = [fit.model for fit in fits]
    if chosen_fit is not None:
        _set_beside(chosen_fit.model, plain_fit.model, parts["test"])
    test = _test_figures(models, parts["test"], separate.train.sample, plan)
    return compare(plan, table, models, test, widest, rows)


def _table(sensitive_features: Any) -> Any:
    return (
        pd.DataFrame(sensitive_features)
        if isinstance(sensitive_features, dict)
        else sensitive_features
    )


def split_in_three(
    y: Any,
    sensitive_features: Any,
    selection_size: float,
    test_size: float,
    random_state: int,
    test_rows: Any = None,
) -> dict[str, Codes]:
    """Positions of training, selection and test rows, the same share of each group and label.

    The test rows are those of `fair_train_test_split` with the same seed, unless ``test_rows`` says
    which they are.
    """
    cells = make_cells(y, sensitive_features)
    if test_rows is not None:
        test_rows = np.asarray(test_rows)
        if test_rows.dtype != bool or test_rows.shape != cells.index.shape:
            raise ValueError(
                f"test_rows must hold a boolean for each of the {len(cells.index):,} rows, got "
                f"values of type {test_rows.dtype} and shape {test_rows.shape}"
            )
        test_size = float(test_rows.mean())
        if not 0 < test_size < 1 - selection_size:
            raise ValueError(
                f"test_rows holds {percent(test_size, 0)} of the rows; it must hold some, and "
                f"leave rows to train on besides selection_size={selection_size:g}"
            )
    for name, size in (("selection_size", selection_size), ("test_size", test_size)):
        if not 0 < size < 1:
            raise ValueError(f"{name}={size!r} must lie between 0 and 1")
    if selection_size + test_size >= 1:
        raise ValueError(
            f"selection_size={selection_size:g} and test_size={test_size:g} leave no rows to train "
            "on; their sum must be below 1"
        )
    if len(cells.group_values) < 2:
        raise ValueError(
            f"sensitive_features holds one group only ({cells.group_names[0]}); a gap needs two"
        )
    if test_rows is None:
        rest, test = (np.sort(part) for part in split_rows(cells, test_size, random_state))
    else:
        rest, test = np.flatnonzero(~test_rows), np.flatnonzero(test_rows)
    inner = replace(cells, index=cells.index[rest])
    training, selection = split_rows(inner, selection_size / (1 - test_size), random_state)
    return {
        "training": rest[np.sort(training)],
        "selection": rest[np.sort(selection)],
        "test": test,
    }


def _pos_label(estimator: Any) -> Any:
    """The positive label that an estimator names, also inside a pipeline or an unfitted search.

    Plain model and candidates must be measured with the same one, so it is looked up once.
    """
    inner = innermost(estimator)
    while not hasattr(inner, "pos_label") and hasattr(inner, "estimator"):
        inner = innermost(inner.estimator)
    return getattr(inner, "pos_label", None)


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
    X, y, groups = training
    data = SearchData.of(estimator, "max_gap", X, y, groups, pos_label=pos_label)
    return SeparateRows(estimator, data, data.beside(estimator, *selection))


def _first_candidate(
    param_grid: Any, statistic: Statistic, template: FairBoostClassifier
) -> FairBoostClassifier:
    """The first candidate with a constraint, unfitted; of the default grid, but for its target."""
    if param_grid is None:
        grid = [{"constraints": statistic.name, "max_gap": 1.0}]
    else:
        grid = [*ParameterGrid(param_grid)] or [{}]
    models: list[FairBoostClassifier] = [clone(template).set_params(**each) for each in grid]
    return next((model for model in models if model.constraints is not None), models[0])


def _fit_plain(rows: SeparateRows, plain: Any, like: FairBoostClassifier) -> FoldFit:
    """The plain model; one of this library is the ``baseline_`` of the candidate it is like.

    So it holds out the same rows and chooses its round by the same rule. Fitted by itself without
    a constraint, it would keep all rounds.
    """
    if not isinstance(plain, FairBoostClassifier):
        return rows.fit()
    held_out = _held_out(like, rows)
    if like.constraints is None:
        return rows.fit(**BASELINE_PARAMETERS, validation_fraction=held_out)
    beside = {"constraints": like.constraints, "max_gap": 1.0, "baseline": True}
    fit = rows.fit(**beside, validation_fraction=held_out)
    return type(fit)(fit.model.baseline_, rows)


def _held_out(model: Any, rows: SeparateRows) -> float | None:
    """The share of the training rows that a model does not learn from; None if it has them all."""
    if not isinstance(model, FairBoostClassifier):
        return None
    assert rows.train.prepared is not None
    sample = rows.train.prepared.sample.with_weight()
    required = find_requirements(model.constraints, model.max_gap, sample.cells)
    return model._fraction(sample, required)


def default_grid(
    statistic: Statistic, gaps: Mapping[str, float], estimator: FairBoostClassifier
) -> list[dict[str, Any]]:
    """The candidates that `find_alternatives` tries by default, in the form of a ``param_grid``.

    Targets are 90, 80, 70, 60, 50, 40, 20 and 5 % of the plain model's gap on the training rows,
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
        The plain model, whose trees and seed the candidates start from.

    Returns
    -------
    list of dict
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


def _measure_plain(fit: FoldFit, rows: SeparateRows, plan: Plan) -> dict[str, Any]:
    """What is measured of the plain model, which must be useful for its gap to mean anything."""
    measured = {"params": {}, **_measure(fit, rows, plan, None)}
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
    plan: Plan,
    plain: ScoreParts,
    n_jobs: int | None,
    verbose: bool,
) -> list[dict[str, Any]]:
    """What is measured of each candidate, in their order."""
    found: dict[int, dict[str, Any]] = {}
    lean = rows.without_features()
    work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    calls = (delayed(_measure_batch)(lean, batch, plan, plain) for batch in _batches(candidates))
    with time_bar("candidates", len(candidates), 0, show=verbose) as advance:
        for measured in _until_interrupted(work, calls):
            found |= measured
            advance(len(measured))
    if len(found) < len(candidates):
        raise KeyboardInterrupt(
            f"{len(found)} of {len(candidates)} candidates were measured, and nothing was chosen."
        )
    return [found[number] for number in range(len(candidates))]


def _until_interrupted(work: Any, calls: Any) -> Iterator[dict[int, dict[str, Any]]]:
    """What batches have measured, up to an interrupt here or in one of them."""
    try:
        for measured, interrupted in run_calls(work, calls):
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
    rows: SeparateRows,
    batch: list[tuple[int, dict[str, Any]]],
    plan: Plan,
    plain: ScoreParts,
) -> tuple[dict[int, dict[str, Any]], bool]:
    """What is measured of some candidates, and whether an interrupt ended that."""
    found: dict[int, dict[str, Any]] = {}
    with warnings.catch_warnings():
        ignore_outcomes()
        try:
            for number, parameters in batch:
                fit = rows.fit(**parameters)
                found[number] = {"params": parameters, **_measure(fit, rows, plan, plain)}
        except KeyboardInterrupt:
            return found, True
    return found, False


def _score_parts(fit: FoldFit, plan: Plan) -> ScoreParts:
    """Of the score on the selection rows."""
    return ScoreParts.of(plan.scoring, *_said(fit))


def _said(fit: FoldFit) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Array]:
    """Which selection rows are and are predicted positive, and their probabilities of that."""
    probability = fit.probability()
    assert probability is not None  # the plain model was checked for it
    score = probability if fit.positive else 1 - probability
    actual, predicted = (mask == fit.positive for mask in (fit.actual, fit.predicted))
    return actual, predicted, score


def _measure(
    fit: FoldFit, rows: SeparateRows, plan: Plan, plain: ScoreParts | None
) -> dict[str, Any]:
    """Figures on the selection rows, beside the plain model if this is not the plain one."""
    actual, predicted, score = _said(fit)
    figures = plan.figures(actual, predicted, score, fit.groups)
    checked_gap(plan.statistic, figures.counts(), figures.groups)
    gap_low, gap_high = gap_interval(figures.counts(), plan.statistic, plan.confidence)
    totals = dict(zip(TOTALS, figures.totals().tolist(), strict=True))
    ratio, impact_group = _worst(figures.impact_ratios(), figures, lambda ratios: -ratios)
    difference, difference_group = _worst(figures.mean_differences(), figures, np.abs)
    return {
        "score": totals[plan.scoring],
        "score_error": 0.0 if plain is None else _score_parts(fit, plan).difference_error(plain),
        **totals,
        "gap_low": gap_low,
        "gap_high": gap_high,
        "adverse_impact_ratio": ratio,
        "impact_group": impact_group,
        "standardized_mean_difference": difference,
        "difference_group": difference_group,
        "useful": fit.useful,
        "held_out": _held_out(fit.model, rows) or 0.0,
    }


def _worst(values: Array, figures: ModelFigures, badness: Any) -> tuple[float, str]:
    """The worst value among the groups other than the reference, and its group."""
    others = [i for i in range(len(values)) if i != figures.reference]
    worst = max(others, key=lambda i: np.nan_to_num(badness(values[i]), nan=-np.inf))
    return float(values[worst]), figures.groups.names[worst]


def _judge(table: pd.DataFrame, plan: Plan, rows_ratio: float) -> pd.DataFrame:
    """The table with standing and ranks; the plain model is its first row.

    There are ``rows_ratio`` times as many selection rows as test rows.
    """
    score, gap = table["score"].to_numpy(), table["gap"].to_numpy()
    useful = table["useful"].to_numpy(dtype=bool)
    within = score >= score[0] - plan.tolerance - TIE
    eligible = within & useful
    eligible[0] = False
    spare = difference_to_confirm(
        table["score_error"].to_numpy(), rows_ratio, plan.confidence, POWER
    )
    with_room = score - spare >= score[0] - plan.tolerance - TIE
    ranks = rank_by_gap(gap, score, eligible, first=with_room & (gap < gap[0] - TIE))
    chosen = (ranks == 1) & (gap < gap[0] - TIE)
    return table.assign(
        within_tolerance=within,
        with_room=with_room,
        pareto=undominated(np.where(useful, gap, np.nan), score),
        rank=pd.array(np.where(ranks > 0, ranks, np.nan)).astype("Int64"),
        chosen=chosen,
    )


def rank_by_gap(
    gap: Array, score: Array, eligible: NDArray[np.bool_], first: NDArray[np.bool_]
) -> Codes:
    """1 for the eligible row with the smallest gap, and so on; 0 for rows that are not eligible.

    The rows of ``first`` come before the others. Of equal gaps the better score comes first, then
    the order. Values within 1e-9 are equal.
    """
    rows = np.flatnonzero(eligible)
    keys = (rows, -np.round(score[rows] / TIE), np.round(gap[rows] / TIE), ~first[rows])
    order = np.lexsort(keys)
    ranks = np.zeros(len(gap), dtype=np.intp)
    ranks[rows[order]] = np.arange(1, len(rows) + 1)
    return ranks


def _fit_chosen(rows: SeparateRows, table: pd.DataFrame) -> FoldFit | None:
    """The chosen candidate, fitted again with the same result."""
    chosen = table.loc[table["chosen"], "params"].tolist()
    return rows.fit(**chosen[0]) if chosen else None


def _set_beside(chosen: FairBoostClassifier, plain: Any, part: Sequence[Any]) -> None:
    """Make the plain model the chosen one's ``baseline_``, with its price on the test rows.

    Only a `FairBoostClassifier` can be that, and rows with one label tell no price.
    """
    if not isinstance(plain, FairBoostClassifier):
        return
    chosen.baseline_ = plain
    price = measure_on_rows(chosen, *part)
    if price is None:
        del chosen.baseline_
    else:
        chosen.price_ = price


def _test_figures(
    models: Sequence[Any], part: Sequence[Any], training: Sample, plan: Plan
) -> list[ModelFigures]:
    """The figures of the models on the test rows."""
    X, y, groups = part
    sample = match_groups(make_sample(X, y, groups, None), training)
    positive = sample.positive_label
    figures = []
    for model in models:
        score = score_held_out(model, X)[:, list(model.classes_).index(positive)]
        predicted = predict_held_out(model, X, groups) == positive
        figures.append(plan.figures(sample.labels == positive, predicted, score, sample.groups))
    return figures
