"""Gaps against fairlearn's."""

from functools import partial

import fairlearn.metrics as fairlearn
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, balanced_accuracy_score, precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairproj import FairProjClassifier, metrics
from fairproj.constraints import RATES, STATISTICS, statistic_names


def frame_difference(metric):
    """The gap of a metric by fairlearn's MetricFrame."""

    def difference(y, predicted, *, sensitive_features, sample_weight):
        frame = fairlearn.MetricFrame(
            metrics=metric,
            y_true=y,
            y_pred=predicted,
            sensitive_features=sensitive_features,
            sample_params={"sample_weight": sample_weight},
        )
        return frame.difference()

    return difference


def ratio_shortfall(y, predicted, **parameters):
    return 1 - fairlearn.demographic_parity_ratio(y, predicted, **parameters)


PAIRS = {
    metrics.demographic_parity_difference: fairlearn.demographic_parity_difference,
    metrics.equal_opportunity_difference: fairlearn.equal_opportunity_difference,
    metrics.equalized_odds_difference: fairlearn.equalized_odds_difference,
    metrics.false_positive_rate_difference: frame_difference(fairlearn.false_positive_rate),
    metrics.accuracy_difference: frame_difference(accuracy_score),
    metrics.selection_ratio_shortfall: ratio_shortfall,
    metrics.predictive_parity_difference: frame_difference(precision_score),
}
BY_NAME = {
    "demographic_parity": metrics.demographic_parity_difference,
    "equal_opportunity": metrics.equal_opportunity_difference,
    "false_positive_rate_parity": metrics.false_positive_rate_difference,
    "equalized_odds": metrics.equalized_odds_difference,
    "accuracy_parity": metrics.accuracy_difference,
    "selection_ratio": metrics.selection_ratio_shortfall,
    "predictive_parity": metrics.predictive_parity_difference,
}
FAIRLEARN_RATES = {
    "selection_rate": fairlearn.selection_rate,
    "true_positive_rate": fairlearn.true_positive_rate,
    "false_positive_rate": fairlearn.false_positive_rate,
    "accuracy": accuracy_score,
    "precision": partial(precision_score, zero_division=np.nan),
    "false_negative_rate": fairlearn.false_negative_rate,
}
LABELS = {"numbers": [0, 1], "signs": [-1, 1], "text": ["no", "yes"], "booleans": [False, True]}


def random_predictions(seed, n_groups):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 200)
    groups = rng.integers(0, n_groups, 200)
    for g in range(n_groups):  # every cell has rows
        y[2 * g : 2 * g + 2], groups[2 * g : 2 * g + 2] = [0, 1], g
    return y, rng.integers(0, 2, 200), groups, rng.uniform(0.1, 2, 200)


@pytest.mark.parametrize("ours", PAIRS, ids=lambda f: f.__name__)
@given(seed=st.integers(0, 10**6), n_groups=st.integers(2, 5), weighted=st.booleans())
@settings(max_examples=10)
def test_fairlearn_agrees(ours, seed, n_groups, weighted):
    y, predicted, groups, weight = random_predictions(seed, n_groups)
    weight = weight if weighted else None
    mine = ours(y, predicted, sensitive_features=groups, sample_weight=weight)
    other = PAIRS[ours](y, predicted, sensitive_features=groups, sample_weight=weight)
    assert np.isclose(mine, other, atol=1e-12)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(("n_groups", "weighted"), [(2, False), (5, True)])
def test_rates_of_groups_are_fairlearns(n_groups, weighted, kind):
    """Also where some (group, label) cells have no rows: a rate over no rows is unknown."""
    y, predicted, groups, weight = random_predictions(7, n_groups)
    empty = (groups == 0) & (y == 1)
    labels = np.array(LABELS[kind])
    for rows in (np.ones(len(y), bool), ~empty):
        actual, guess, group, part = y[rows], predicted[rows], groups[rows], weight[rows]
        given = {"sample_weight": part} if weighted else {}
        rates = metrics.group_rates(
            labels[actual], labels[guess], sensitive_features=group, **given
        )
        frame = fairlearn.MetricFrame(
            metrics=FAIRLEARN_RATES,
            y_true=actual,
            y_pred=guess,
            sensitive_features=group,
            sample_params=dict.fromkeys(FAIRLEARN_RATES, given),
        ).by_group
        assert list(rates.index) == [str(g) for g in frame.index]
        expected = frame[list(RATES)].to_numpy(dtype=float, copy=True)
        if not empty[rows].any():
            for name in ("true_positive_rate", "false_negative_rate"):
                expected[0, list(RATES).index(name)] = np.nan
        np.testing.assert_allclose(rates[list(RATES)].to_numpy(), expected, atol=1e-12)
        assert rates["count"].tolist() == np.bincount(group).tolist()


@pytest.mark.parametrize("name", statistic_names())
def test_gaps_by_name_and_alias(name):
    y, predicted, groups, weight = random_predictions(3, 3)
    gap = metrics.gap_difference(
        y, predicted, sensitive_features=groups, statistic=name, sample_weight=weight
    )
    (canonical,) = [s.name for s in STATISTICS.values() if name in (s.name, *s.aliases)]
    other = PAIRS[BY_NAME[canonical]]
    expected = other(y, predicted, sensitive_features=groups, sample_weight=weight)
    assert gap == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("y", [np.zeros(6, int), np.ones(6, int)])
def test_one_class_only(y):
    """A fold may hold one class; selection rates and accuracies do not depend on the labels."""
    groups, predicted = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 1, 0, 0, 1])
    mine = metrics.demographic_parity_difference(y, predicted, sensitive_features=groups)
    other = fairlearn.demographic_parity_difference(y, predicted, sensitive_features=groups)
    assert np.isclose(mine, other)
    assert metrics.demographic_parity_difference(y, y, sensitive_features=groups) == 0
    rates = metrics.group_rates(y, y, sensitive_features=groups)
    assert (rates["selection_rate"] == y[0]).all()
    assert (rates["accuracy"] == 1).all()
    known, unknown = ["true", "false"] if y[0] else ["false", "true"]
    assert (rates[f"{known}_positive_rate"] == y[0]).all()
    assert rates[f"{unknown}_positive_rate"].isna().all()


@pytest.mark.parametrize("kind", LABELS)
def test_one_class_only_with_a_positive_label(kind):
    negative, positive = LABELS[kind]
    groups = np.array([0, 0, 1, 1])
    for label, rate in ((negative, 0.0), (positive, 1.0)):
        y = np.array([label] * 4)
        rates = metrics.group_rates(y, y, sensitive_features=groups, pos_label=positive)
        assert (rates["selection_rate"] == rate).all()


def test_rates_of_groups():
    y = np.array(["no", "yes", "yes", "no", "yes", "yes"])
    predicted = np.array(["yes", "yes", "no", "no", "yes", "yes"])
    groups = np.array(["a", "a", "a", "b", "b", "b"])
    rates = metrics.group_rates(y, predicted, sensitive_features=groups)
    assert list(rates.index) == ["a", "b"]
    assert list(rates["count"]) == [3, 3]
    assert list(rates.columns[1:]) == list(RATES)
    assert rates.loc["a"].tolist()[1:] == [2 / 3, 0.5, 1.0, 1 / 3, 0.5, 0.5]
    assert rates.loc["b"].tolist()[1:] == [2 / 3, 1.0, 0.0, 1.0, 1.0, 0.0]
    other = metrics.group_rates(y, predicted, sensitive_features=groups, pos_label="no")
    assert other.loc["b", "true_positive_rate"] == 1.0


def test_a_metric_fits_into_a_metric_frame():
    y, predicted, groups, _ = random_predictions(0, 2)
    frame = fairlearn.MetricFrame(
        metrics=lambda y, p, sensitive_features: metrics.demographic_parity_difference(
            y, p, sensitive_features=sensitive_features
        ),
        y_true=y,
        y_pred=predicted,
        sensitive_features=groups,
        sample_params={"sensitive_features": np.tile([0, 1], 100)},
    )
    assert frame.by_group.notna().all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0, 1], [0, 1, 1], [0, 1]), "y_pred has 3 rows and y_true 2; they must be equal"),
        (
            ([0, 1], [0.2, 0.7], [0, 1]),
            r"y_pred holds 0.2, which is not a label of y_true \(0, 1\); pass predicted labels",
        ),
        (([0, 1, 0], [0, 1, 0], [0, 0, 1]), "group '1' has no rows for its true positive rate"),
        (([0, 1, 2], [0, 1, 1], [0, 0, 1]), "y has 3 classes"),
        (([0, None, 1], [0, 1, 1], [0, 0, 1]), "y_true has 1 missing value in 3 rows"),
    ],
)
def test_bad_input(arguments, sentence):
    y, predicted, groups = arguments
    with pytest.raises(ValueError, match=sentence):
        metrics.equal_opportunity_difference(y, predicted, sensitive_features=groups)


def test_a_gap_scorer_knows_the_estimators_positive_label():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=400), "g": rng.integers(0, 2, 400)})
    y = (frame["x"] + frame["g"] + rng.normal(size=400) > 0.5).astype(int)
    model = FairProjClassifier(sensitive_columns="g", n_estimators=5, pos_label=0).fit(frame, y)
    by_label = {
        label: -metrics.equal_opportunity_difference(
            y, model.predict(frame), sensitive_features=frame["g"], pos_label=label
        )
        for label in (0, 1)
    }
    assert abs(by_label[0] - by_label[1]) > 0.01
    scorer = metrics.make_gap_scorer("equal_opportunity", "g")
    assert scorer(model, frame, y) == by_label[0]
    assert (
        metrics.make_gap_scorer("equal_opportunity", "g", pos_label=1)(model, frame, y)
        == (by_label[1])
    )


def test_a_routed_scorer_knows_the_positive_label_within_a_pipeline_and_a_search():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    y = np.where(X[:, 0] + groups + rng.normal(size=400) > 0.5, "yes", "no")
    model = FairProjClassifier(n_estimators=5, pos_label="no")
    scorer = clone(metrics.equal_opportunity_scorer)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), model.set_fit_request(sensitive_features=True))
        search = GridSearchCV(
            pipeline,
            {"fairprojclassifier__epsilon": [0.1]},
            scoring=scorer.set_score_request(sensitive_features=True),
            cv=[(np.arange(400), np.arange(400))],
        ).fit(X, y, sensitive_features=groups)
    gap = {
        label: metrics.equal_opportunity_difference(
            y, search.predict(X), sensitive_features=groups, pos_label=label
        )
        for label in ("no", "yes")
    }
    assert abs(gap["no"] - gap["yes"]) > 0.01
    assert search.best_score_ == -gap["no"]
    assert scorer(search, X, y, sensitive_features=groups) == -gap["no"]
    other = metrics.make_gap_scorer("equal_opportunity", pos_label="yes")
    assert other(search, X, y, sensitive_features=groups) == -gap["yes"]


def test_a_scorer_without_groups_says_what_to_do():
    X, y = [[0], [1]] * 20, [0, 1] * 20
    model = FairProjClassifier(n_estimators=2, sensitive_columns=[0])
    with pytest.raises(ValueError, match=r"no sensitive_features; name columns of X"):
        metrics.equal_opportunity_scorer(model, X, y)


def test_nobody_selected_does_not_meet_the_four_fifths_rule():
    y, groups = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    assert metrics.selection_ratio_shortfall(y, np.zeros(4, int), sensitive_features=groups) == 1


# Curves over thresholds


def slow_curve(y, score, groups, weight, statistic, thresholds):
    """One full pass over the rows for each threshold."""
    rows = []
    for threshold in thresholds:
        predicted = (score > threshold).astype(int)
        given = {"sensitive_features": groups, "sample_weight": weight}
        rates = metrics.group_rates(y, predicted, **given)
        gap = np.nan  # of precisions, where a group is not selected at all
        if rates.notna().all(axis=None) or statistic != "predictive_parity":
            gap = metrics.gap_difference(y, predicted, statistic=statistic, **given)
        rows.append(
            {
                "threshold": threshold,
                "gap": gap,
                "accuracy": accuracy_score(y, predicted, sample_weight=weight),
                "balanced_accuracy": balanced_accuracy_score(y, predicted, sample_weight=weight),
                "selection_rate": np.average(predicted, weights=weight),
            }
            | {
                f"{rate.name}[{group}]": rates.loc[group, rate.name]
                for rate in STATISTICS[statistic].rates
                for group in rates.index
            }
        )
    return pd.DataFrame(rows)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize(("weighted", "decimals"), [(True, 1), (False, 8)])  # many ties, or none
def test_gap_curves_are_those_of_a_slow_loop(statistic, weighted, decimals):
    y, _, groups, weight = (part[:30] for part in random_predictions(5, 3))
    weight = weight if weighted else None
    score = np.random.default_rng(0).normal(y + 0.3 * groups).round(decimals)
    asked = {"sensitive_features": groups, "sample_weight": weight, "statistic": statistic}
    curve = metrics.gap_curve(y, score, **asked)
    expected = slow_curve(y, score, groups, weight, statistic, np.unique(score))
    pd.testing.assert_frame_equal(curve, expected, rtol=1e-12, atol=1e-12)
    thresholds = [3.0, -np.inf, score[7], 0.0, 0.0]
    curve = metrics.gap_curve(y, score, thresholds=thresholds, **asked)
    expected = slow_curve(y, score, groups, weight, statistic, np.unique(thresholds))
    pd.testing.assert_frame_equal(curve, expected, rtol=1e-12, atol=1e-12)


def test_a_curve_has_at_most_200_thresholds_by_default():
    rng = np.random.default_rng(1)
    y, groups, score = (
        rng.integers(0, 2, 5000),
        rng.integers(0, 2, 5000),
        rng.exponential(size=5000),
    )
    curve = metrics.gap_curve(y, score, sensitive_features=groups)
    assert len(curve) == 200
    assert set(curve["threshold"]) <= set(score)
    np.testing.assert_allclose(np.diff(curve["selection_rate"]), -1 / 199, atol=3e-4)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"y_score": np.ones((4, 2))}, r"y_score has shape \(4, 2\); it must hold one number for"),
        ({"y_score": [0, 1, np.nan, 1]}, "y_score has 1 missing or infinite entries"),
        ({"thresholds": 0.5}, "thresholds must be a sequence of numbers, got 0.5"),
        ({"thresholds": []}, r"thresholds must be a sequence of numbers, got \[\]"),
        ({"sensitive_features": [0, 0, 1, 1]}, "group '0' has no rows for its true positive rate"),
        ({"statistic": "parity"}, "statistic='parity' is unknown"),
    ],
)
def test_curves_that_are_refused(arguments, sentence):
    usual = {"y_score": [0.1, 0.2, 0.3, 0.4], "sensitive_features": [0, 1, 0, 1]}
    with pytest.raises(ValueError, match=sentence):
        metrics.gap_curve([0, 0, 1, 1], **(usual | arguments))


# Calibration


@pytest.mark.parametrize("decimals", [2, 12])  # with ties, or without
@pytest.mark.parametrize("n_bins", [1, 5, 10])
def test_calibration_error_is_that_of_sklearns_curve(decimals, n_bins):
    rng = np.random.default_rng(2)
    prob = rng.beta(2, 3, 1000).round(decimals)
    y, groups = rng.random(1000) < prob**1.5, np.repeat(["a", "b"], [700, 300])
    errors = metrics.calibration_error(y, prob, sensitive_features=groups, n_bins=n_bins)
    assert list(errors.index) == ["overall", "a", "b"]
    for name, rows in {"overall": groups != "", "a": groups == "a", "b": groups == "b"}.items():
        observed, mean = calibration_curve(y[rows], prob[rows], n_bins=n_bins, strategy="quantile")
        edges = np.percentile(prob[rows], np.linspace(0, 100, n_bins + 1))
        counts = np.bincount(np.searchsorted(edges[1:-1], prob[rows]), minlength=n_bins)
        expected = np.average(np.abs(observed - mean), weights=counts[counts > 0])
        assert errors.loc[name, "ece"] == pytest.approx(expected, rel=1e-12)
        assert errors.loc[name, "mean_probability"] == pytest.approx(prob[rows].mean())
        assert errors.loc[name, "observed_rate"] == pytest.approx(y[rows].mean())
        assert errors.loc[name, "count"] == rows.sum()


def test_a_weight_counts_as_so_many_rows():
    rng = np.random.default_rng(3)
    prob, weight = rng.random(200), rng.integers(0, 4, 200)
    y = np.where(rng.random(200) < prob, "no", "yes")
    weighted = metrics.calibration_error(y, 1 - prob, sample_weight=weight)
    repeated = metrics.calibration_error(np.repeat(y, weight), np.repeat(1 - prob, weight))
    pd.testing.assert_frame_equal(weighted.drop(columns="count"), repeated.drop(columns="count"))
    other = metrics.calibration_error(y, prob, sample_weight=weight, pos_label="no")
    assert other.loc["overall", "observed_rate"] == pytest.approx(
        1 - weighted.loc["overall", "observed_rate"]
    )


def test_calibration_of_a_group_without_weight_is_unknown():
    errors = metrics.calibration_error(
        [0, 1, 0, 1],
        [0.5, 1.0, 0.0, 0.3],
        sensitive_features=["a", "a", "overall", "overall"],
        sample_weight=[1, 1, 0, 0],
        n_bins=2,
    )
    assert errors["ece"].iloc[:2].tolist() == [0.25, 0.25]
    assert errors.iloc[2].isna().tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"y_prob": [0.1, 1.2]}, "y_prob holds 1.2; probabilities must lie between 0 and 1"),
        ({"y_prob": [0.1]}, r"y_prob has shape \(1,\); it must hold one number for each of the 2"),
        ({"n_bins": 0}, "n_bins must be a whole number from 1 on, got 0"),
        ({"n_bins": 2.5}, "n_bins must be a whole number from 1 on, got 2.5"),
    ],
)
def test_calibration_that_is_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        metrics.calibration_error([0, 1], **({"y_prob": [0.1, 0.8]} | arguments))
