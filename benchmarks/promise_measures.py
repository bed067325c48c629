"""Populations whose rates are known, and how often statements of the library about draws fail."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin

from fairproj.constraints import RATES, STATISTICS
from fairproj.data.cells import CellCounts
from fairproj.data.checks import Groups
from fairproj.experiments._claims import paired
from fairproj.inference import (
    FairnessReport,
    gap_upper_bound,
    largest_confirmable_gap,
    rows_to_confirm,
    smallest_max_gap,
)
from fairproj.inference.by import GapsBy
from fairproj.inference.figures import ModelFigures, percentile_interval, resample
from fairproj.inference.gap_change import find_widest_pair, gap_change_interval
from fairproj.inference.paired import paired_difference_interval
from fairproj.inference.ratios import ratio_intervals
from fairproj.inference.report import upper_bound
from fairproj.inference.score_change import ScoreParts, difference_to_confirm
from fairproj.report import _importance
from fairproj.selection import ConfirmedClassifier, confirm
from fairproj.selection.alternatives import POWER
from kept import Case

BATCH = 50
CONFIDENCE = 0.95
TIE = 1e-12

# Reports: of three groups the rows, the share of the positive label, true and false positive rate.
ROWS = np.array([80, 120, 200])
LABEL, TRUE, FALSE = np.array([0.4, 0.5, 0.5]), np.array([0.6, 0.7, 0.8]), np.array([0.2, 0.2, 0.3])
GROUPS = ["a", "b", "c"]


def draw(random: np.random.Generator, true: Any = TRUE) -> CellCounts:
    """Numbers of rows, drawn; the labels of each group are drawn as well."""
    positive = random.binomial(ROWS, LABEL)
    size = np.stack([ROWS - positive, positive], axis=1)
    predicted = random.binomial(size, np.stack([FALSE, true], axis=1))
    return CellCounts(size.astype(float), predicted.astype(float))


def truth(true: Any = TRUE) -> CellCounts:
    """What the counts are in expectation."""
    size = np.stack([ROWS * (1 - LABEL), ROWS * LABEL], axis=1)
    return CellCounts(size, size * np.stack([FALSE, true], axis=1))


def misses(found: pd.DataFrame, true: list[float]) -> list[bool]:
    wrong = (found["low"] > np.array(true) + TIE) | (found["high"] < np.array(true) - TIE)
    return [bool(one) for one in wrong]


def measure_reports(case: Case, random: np.random.Generator) -> Case:
    """How often each statement of a report fails, and how often any of them does."""
    known = truth()
    rates = [float(one) for rate in RATES.values() for one in rate.values(known)]
    gaps = [float(statistic.value(known)) for statistic in STATISTICS.values()]
    together = case["what"].endswith("simultaneous")
    wrong = []
    for _ in range(BATCH):
        report = FairnessReport.from_counts(draw(random), GROUPS, simultaneous=together)
        wrong.append(misses(report.rates, rates) + misses(report.gaps, gaps))
    return {"each": np.sum(wrong, axis=0).tolist(), "any": int(np.any(wrong, axis=1).sum())}


BOUNDED = ("equal_opportunity", "equalized_odds", "selection_ratio")
FAR = np.array([0.3, 0.55, 0.8])  # true positive rates: one pair decides, the hardest case


def measure_bounds(case: Case, random: np.random.Generator) -> Case:
    """How often a gap is above its one-sided bound."""
    known = truth(FAR)
    true = [STATISTICS[name].value(known) for name in BOUNDED]
    wrong = np.zeros(len(BOUNDED), dtype=int)
    for _ in range(BATCH):
        counts = draw(random, FAR)
        bounds = [gap_upper_bound(counts, name, CONFIDENCE) for name in BOUNDED]
        wrong += np.array(bounds) < np.array(true) - TIE
    return {"each": wrong.tolist()}


def measure_ratios(case: Case, random: np.random.Generator) -> Case:
    """How often the interval of an adverse impact ratio fails, of each group but the reference."""
    rate, known = RATES["selection_rate"], truth()
    true = rate.values(known) / rate.values(known)[-1]
    wrong = np.zeros(len(ROWS) - 1, dtype=int)
    for _ in range(BATCH):
        low, high = ratio_intervals(*rate.counts(draw(random)), len(ROWS) - 1, CONFIDENCE)
        wrong += ((low > true + TIE) | (high < true - TIE))[:-1]
    return {"each": wrong.tolist()}


# Parts

MONTHS, LIMIT = 12, 0.1
MONTH_ROWS, MONTH_RATES = np.full((2, 2), 150), np.array([[0.2, 0.5], [0.2, 0.5 + LIMIT]])
_alarms: dict[tuple[int, ...], bool] = {}  # an alarm rests on the counts of its month alone


def measure_parts(case: Case, random: np.random.Generator) -> Case:
    """How often a year of months, each with a true gap at the limit, raises any alarm."""
    hits = random.binomial(MONTH_ROWS, MONTH_RATES, (BATCH, MONTHS, 2, 2))
    keys = [tuple(month[:, 1].tolist()) for year in hits for month in year]
    new = [key for key in dict.fromkeys(keys) if key not in _alarms]
    for at in range(0, len(new), MONTHS):
        some = (new[at : at + MONTHS] * MONTHS)[:MONTHS]  # as many as a year has: see by.py
        months = {str(place): _month(key) for place, key in enumerate(some)}
        found = GapsBy.from_counts(months, ["a", "b"], max_gap=LIMIT)
        _alarms.update(zip(some, found.table["judgement"] == "alarm", strict=True))
    alarms = np.array([_alarms[key] for key in keys]).reshape(BATCH, MONTHS)
    return {"any": int(alarms.any(axis=1).sum())}


def _month(key: tuple[int, ...]) -> CellCounts:
    """The counts of a month, of which the gap needs those of positive labels only."""
    predicted = np.stack([np.zeros(2), np.array(key, dtype=float)], axis=1)
    return CellCounts(MONTH_ROWS.astype(float), predicted)


# Power

PLANS = ({"max_gap": 0.1}, {"max_gap": 0.1, "rate": 0.8}, {"max_gap": 0.15, "gap": 0.05})
SMALLEST = ((300, 500), (300, 400, 600))  # rows of the groups, all with a rate of 0.5
LARGEST = ((900, 1200), 0.12)  # rows, and the limit to confirm


@lru_cache(maxsize=200_000)
def _bound(hits: tuple[int, ...], rows: tuple[int, ...]) -> float:
    return upper_bound("difference", np.array(hits), np.array(rows), CONFIDENCE)


def confirms(hits: NDArray[np.int_], rows: tuple[int, ...], max_gap: float) -> int:
    """How many of the draws confirm that the gap is at most ``max_gap``."""
    if len(set(rows)) == 1:
        hits = np.sort(hits, axis=1)  # groups of one size may change places
    return sum(_bound(tuple(one), rows) <= max_gap for one in hits.tolist())


def measure_power(case: Case, random: np.random.Generator) -> Case:
    """How often as many rows as `rows_to_confirm` says confirm the gap."""
    confirmed = []
    for plan in PLANS:
        rate, gap = plan.get("rate", 0.5), plan.get("gap", 0.0)
        rows = rows_to_confirm(**plan)
        hits = random.binomial(rows, [rate - gap / 2, rate + gap / 2], (BATCH, 2))
        confirmed.append(confirms(hits, (rows, rows), plan["max_gap"]))
    return {"each": confirmed}


@cache
def planned() -> list[tuple[tuple[int, ...], list[float], float]]:
    """Rows, true rates and limits of `smallest_max_gap` and `largest_confirmable_gap`."""
    plans = [(rows, [0.5] * len(rows), float(smallest_max_gap(rows) or 1)) for rows in SMALLEST]
    rows, max_gap = LARGEST
    gap = largest_confirmable_gap(rows, max_gap)
    assert gap is not None
    return [*plans, (rows, [0.5 + gap / 2, 0.5 - gap / 2], max_gap)]


def measure_plans(case: Case, random: np.random.Generator) -> Case:
    """How often given rows confirm what `smallest_max_gap` and `largest_confirmable_gap` say."""
    return {
        "each": [
            confirms(random.binomial(rows, rates, (BATCH, len(rows))), rows, max_gap)
            for rows, rates, max_gap in planned()
        ]
    }


# Comparisons of two models


def measure_pairs(case: Case, random: np.random.Generator) -> Case:
    """How often the interval of a difference of accuracies on the same rows fails."""
    shares, n_rows = (0.04, 0.07, 0.89), 400
    wrong = 0
    for first, second, _ in random.multinomial(n_rows, shares, BATCH):
        low, high = paired_difference_interval(int(first), int(second), n_rows)
        wrong += not low <= shares[0] - shares[1] <= high
    return {"any": wrong}


# By name: the gap, the rates of both models by group, and the rows of each group.
CHANGES = {
    "three groups, from 0.2 to 0.1": (([0.5, 0.4, 0.3], [0.45, 0.4, 0.35]), 300),
    "two groups, no change": (([0.3, 0.2], [0.25, 0.15]), 300),
    "eight groups, no gap": (([0.3] * 8, [0.1] * 8), 60),
}
SHARED = 0.7  # of the rows, both models decide by the same number


def measure_changes(case: Case, random: np.random.Generator) -> Case:
    """How often the change of the gap of selection rates lies outside each end of its interval."""
    rates, n_rows = CHANGES[case["problem"]]
    true = np.ptp(rates[1]) - np.ptp(rates[0])
    low_fails = high_fails = 0
    for _ in range(BATCH):
        other, models = _two_models(rates, n_rows, random), _two_models(rates, n_rows, random)
        widest = [find_widest_pair(model.statistic, model.counts()) for model in other]
        seed = int(random.integers(2**32))
        low, high = gap_change_interval(*models, tuple(widest), CONFIDENCE, 1000, seed)
        low_fails += int(low > true + TIE)
        high_fails += int(high < true - TIE)
    return {"each": [low_fails, high_fails], "any": low_fails + high_fails}


def _two_models(rates: Any, n_rows: int, random: np.random.Generator) -> list[ModelFigures]:
    """Predictions of two models for the same rows; labels and scores play no part."""
    codes = np.repeat(np.arange(len(rates[0])), n_rows)
    number, own = random.random((2, len(codes)))
    shared = random.random(len(codes)) < SHARED
    numbers = number, np.where(shared, number, own)
    nothing, groups = np.zeros(len(codes)), Groups(codes, [*range(len(rates[0]))])
    statistic = STATISTICS["demographic_parity"]
    return [
        ModelFigures(nothing > 0, n < np.array(of)[codes], nothing, groups, statistic, 0)
        for n, of in zip(numbers, rates, strict=True)
    ]


# Scores: normal, of rows of three groups, by two models.
SCORE_ROWS, RESAMPLES = np.array([250, 100, 150]), 1000  # 1000 by default
SCORE_LABEL = np.array([0.4, 0.5, 0.3])
LABEL_SHIFT, GROUP_SHIFT = (1.2, 1.0), (np.array([0.0, 0.6, 0.3]), np.array([0.0, 0.2, 0.1]))
CUT, RELATED = 0.7, 0.8  # predicted positive above; correlation of the two models' scores
SCORED = ("ROC AUC", "KS", "standardized mean difference")
COMPARED = ("ROC AUC", "accuracy", "KS", "selection rate")


@cache
def true_scores() -> tuple[Any, Any]:
    """Of both models the area, accuracy, KS and selection rate, and the differences of means."""
    groups = SCORE_ROWS / SCORE_ROWS.sum()
    totals, differences = [], []
    for label_shift, shift in zip(LABEL_SHIFT, GROUP_SHIFT, strict=True):
        positive, negative = groups * SCORE_LABEL, groups * (1 - SCORE_LABEL)
        apart = (label_shift + shift[:, None] - shift) / np.sqrt(2)
        auc = positive @ stats.norm.cdf(apart) @ negative / (positive.sum() * negative.sum())
        at = np.linspace(-4, 6, 20_001)[:, None]
        above = stats.norm.sf(at - label_shift - shift) @ positive / positive.sum()
        below = stats.norm.sf(at - shift) @ negative / negative.sum()
        selected = stats.norm.sf(CUT - label_shift - shift), stats.norm.sf(CUT - shift)
        accuracy = positive @ selected[0] + negative @ (1 - selected[1])
        share = positive @ selected[0] + negative @ selected[1]
        totals.append([auc, accuracy, np.abs(above - below).max(), share])
        mean = shift + label_shift * SCORE_LABEL
        spread = 1 + label_shift**2 * SCORE_LABEL * (1 - SCORE_LABEL)
        pooled = (SCORE_ROWS * spread + SCORE_ROWS[0] * spread[0]) / (SCORE_ROWS + SCORE_ROWS[0])
        differences.append((mean - mean[0]) / np.sqrt(pooled))
    return np.array(totals), np.array(differences)


def measure_scores(case: Case, random: np.random.Generator) -> Case:
    """How often bootstrap intervals of figures of scores and of their differences fail."""
    totals, differences = true_scores()
    alone, compared = np.zeros(len(SCORED), dtype=int), np.zeros(len(COMPARED), dtype=int)
    for _ in range(BATCH):
        seed = int(random.integers(2**32))
        found = resample(_scored(random), RESAMPLES, seed)
        own = percentile_interval(found.totals[:, 0, [0, 2]], CONFIDENCE)
        means = percentile_interval(found.mean_differences[:, 0, 1:2], CONFIDENCE)
        alone[:2] += _outside(own, totals[0, [0, 2]])
        alone[2:] += _outside(means, differences[0, 1:2])
        change = percentile_interval(np.diff(found.totals, axis=1)[:, 0, :4], CONFIDENCE)
        compared += _outside(change, totals[1] - totals[0])
    return {"each": alone.tolist(), "compared": compared.tolist()}


def _outside(interval: tuple[Any, Any], true: Any) -> NDArray[np.bool_]:
    return np.asarray((interval[0] > true) | (interval[1] < true))


def _scored(random: np.random.Generator) -> list[ModelFigures]:
    codes = np.repeat(np.arange(3), SCORE_ROWS)
    actual = random.random(len(codes)) < SCORE_LABEL[codes]
    noise = random.normal(size=len(codes))
    other = RELATED * noise + np.sqrt(1 - RELATED**2) * random.normal(size=len(codes))
    models = []
    for at, own in enumerate((noise, other)):
        score = LABEL_SHIFT[at] * actual + GROUP_SHIFT[at][codes] + own
        statistic = STATISTICS["demographic_parity"]
        groups = Groups(codes, GROUPS)
        models.append(ModelFigures(actual, score > CUT, score, groups, statistic, 0))
    return models


ROOM_ROWS, ROOM_TOLERANCE = 1000, 0.01


def measure_room(case: Case, random: np.random.Generator) -> Case:
    """How often other rows confirm the ROC AUC of a model that has only just enough room.

    Of models from much better to much worse than the plain one, those count that leave it.
    """
    confirmed = n_models = 0
    while n_models < BATCH:
        loss = random.uniform(-0.5, 0.5)
        change, error = _auc_change(random, loss)
        spare = float(difference_to_confirm(np.array(error), 1.0, CONFIDENCE, POWER))
        if not 0 <= change + ROOM_TOLERANCE - spare <= error / 4:
            continue
        later, its_error = _auc_change(random, loss)
        n_models += 1
        confirmed += later - stats.norm.ppf((1 + CONFIDENCE) / 2) * its_error >= -ROOM_TOLERANCE
    return {"each": [int(confirmed)]}


def _auc_change(random: np.random.Generator, loss: float) -> tuple[float, float]:
    """By how much the area of one model exceeds that of another on some rows, and its error."""
    actual = random.random(ROOM_ROWS) < 0.3
    noise = random.normal(size=ROOM_ROWS)
    own = RELATED * noise + np.sqrt(1 - RELATED**2) * random.normal(size=ROOM_ROWS)
    scores = (1.5 * actual + noise, (1.5 - loss) * actual + own)
    plain, other = (ScoreParts.of("roc_auc", actual, actual, score) for score in scores)
    return other.means[0].mean() - plain.means[0].mean(), other.difference_error(plain)


# Confirmation

CONFIRM_ROWS, CONFIRM_LIMIT = 1200, 0.3
CONFIRM_METRICS = ("equal_opportunity", "false_positive_rate_parity")


class Says(ClassifierMixin, BaseEstimator):
    """Predicts what the first column says, so that its gap is known."""

    def __init__(self, max_gap: float | None = None) -> None:
        self.max_gap = max_gap

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Says:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, 0].astype(int)


def measure_confirmed(case: Case, random: np.random.Generator) -> Case:
    """How often models are confirmed: with a gap at the limit (one and two metrics), and as aimed.

    The last number is the control: how often the gap estimated on the safety part of the first is
    within the limit.
    """
    confirm.largest_confirmable_gap = _confirmable  # rests on sizes alone, which are always alike
    counts = np.zeros(4, dtype=int)
    aim = _fitted(0.0, 1, np.random.default_rng(0)).aims_[CONFIRM_METRICS[0]]
    for _ in range(BATCH):
        one, two = (_fitted(CONFIRM_LIMIT, n, random) for n in (1, 2))
        aimed = _fitted(aim, 1, random)
        counts += [one.confirmed_, two.confirmed_, aimed.confirmed_, one.looks_fine_]
    return {"each": counts.tolist()}


@cache
def _confirmable_of(rows: tuple[float, ...], *given: Any, **named: Any) -> float | None:
    return largest_confirmable_gap(rows, *given, **named)


def _confirmable(rows: Any, *given: Any, **named: Any) -> float | None:
    return _confirmable_of(tuple(rows), *given, **named)


def _fitted(gap: float, n_metrics: int, random: np.random.Generator) -> Any:
    """A classifier with these true gaps of true and false positive rates, tested."""
    groups, y = np.resize([0, 0, 1, 1], CONFIRM_ROWS), np.resize([0, 1], CONFIRM_ROWS)
    middle = np.where(y == 1, 0.5, 0.2)  # so far apart that nearly every model is useful
    X = np.zeros((CONFIRM_ROWS, 2))
    X[:, 0] = random.random(CONFIRM_ROWS) < middle + gap * (groups - 0.5)
    model: Any = ConfirmedClassifier(
        Says(),
        CONFIRM_LIMIT,
        metric=list(CONFIRM_METRICS[:n_metrics]),
        confidence=CONFIDENCE,
        if_none="warn",
        random_state=int(random.integers(2**31)),
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the model is not confirmed")
        model.fit(X, y, sensitive_features=groups)
    rows = model.safety_rows_[y[model.safety_rows_] == 1]
    rates = [X[rows[groups[rows] == group], 0].mean() for group in (0, 1)]
    model.looks_fine_ = abs(rates[0] - rates[1]) <= CONFIRM_LIMIT
    return model


# Splits of one dataset

N_SPLITS, SPLIT_ROWS, TEST_SIZE, N_FEATURES = 10, 500, 0.2, 8
SPLIT_COLUMNS = ("accuracy", "gap")


def measure_splits(case: Case, random: np.random.Generator) -> Case:
    """How often the corrected interval of a difference over splits of one dataset fails."""
    true, wrong = true_split_difference(), np.zeros(2, dtype=int)
    for _ in range(BATCH):
        first, second = (
            pd.DataFrame(figures, columns=[*SPLIT_COLUMNS]).assign(seed=range(N_SPLITS))
            for figures in _two_learners(N_SPLITS, random)
        )
        for at, column in enumerate(SPLIT_COLUMNS):
            found = paired(first, second, column, TEST_SIZE)
            wrong[at] += not found.low <= true[at] <= found.high
    return {"each": wrong.tolist()}


@cache
def true_split_difference() -> NDArray[np.float64]:
    """The mean difference of both columns over datasets, each split once."""
    random = np.random.default_rng(0)
    found = [np.subtract(*_two_learners(1, random)) for _ in range(20_000)]
    return np.asarray(np.mean(found, axis=(0, 1)))


def _two_learners(n_splits: int, random: np.random.Generator) -> list[list[list[float]]]:
    """Test figures on splits of a new dataset: nearest mean on one feature, and on all."""
    y, group = random.random((2, SPLIT_ROWS)) < 0.5
    X = random.normal(size=(SPLIT_ROWS, N_FEATURES))
    X[:, 0] += y
    X[:, 1] += 0.4 * y * group
    n_test = round(TEST_SIZE * SPLIT_ROWS)
    figures: list[list[list[float]]] = [[], []]
    for _ in range(n_splits):
        order = random.permutation(SPLIT_ROWS)
        test, train = order[:n_test], order[n_test:]
        for found, n_features in zip(figures, (1, N_FEATURES), strict=True):
            found.append(_tested(X[:, :n_features], y, group, train, test))
    return figures


def _tested(X: Any, y: Any, group: Any, train: Any, test: Any) -> list[float]:
    means = [X[train][y[train] == label].mean(axis=0) for label in (False, True)]
    weight = means[1] - means[0]
    predicted = X[test] @ weight > (means[0] + means[1]) @ weight / 2
    positive = y[test]
    rates = [predicted[positive & (group[test] == one)].mean() for one in (False, True)]
    return [float((predicted == positive).mean()), float(abs(rates[1] - rates[0]))]


# Importances: contributions of a tree take few values, and some are rare and large.

APART_ROWS, APART_FEATURES = (60, 120, 500), 6
CONTRIBUTIONS = {
    "even": ([-0.5, -0.2, 0.0, 0.2, 0.5], [0.1, 0.2, 0.4, 0.2, 0.1]),
    "skewed": ([-0.4, -0.1, 0.0, 0.2, 1.5], [0.1, 0.4, 0.2, 0.2, 0.1]),
}


def measure_importances(case: Case, random: np.random.Generator) -> Case:
    """How often a report names a feature where no feature moves the groups apart."""
    steps, chances = CONTRIBUTIONS[case["problem"]]
    wrong = 0
    for _ in range(BATCH):
        parts = [random.choice(steps, (rows, APART_FEATURES), p=chances) for rows in APART_ROWS]
        wrong += bool(_importance._differences(_importance._Means.of(parts)))
    return {"any": wrong}


PROBLEMS: dict[str, tuple[str, ...]] = {
    "gap changes": tuple(CHANGES),
    "importances": tuple(CONTRIBUTIONS),
}
# A seed has the place of its measure in this list: append new ones.
MEASURES: dict[str, Callable[[Case, np.random.Generator], Case]] = {
    "report": measure_reports,
    "report, simultaneous": measure_reports,
    "parts": measure_parts,
    "power": measure_power,
    "pairs": measure_pairs,
    "bounds": measure_bounds,
    "impact ratios": measure_ratios,
    "plans": measure_plans,
    "gap changes": measure_changes,
    "scores": measure_scores,
    "confirmation": measure_confirmed,
    "room": measure_room,
    "splits": measure_splits,
    "importances": measure_importances,
}


def measure(case: Case) -> Case:
    more = [PROBLEMS[case["what"]].index(case["problem"])] if "problem" in case else []
    random = np.random.default_rng([case["batch"], [*MEASURES].index(case["what"]), *more])
    return MEASURES[case["what"]](case, random)
