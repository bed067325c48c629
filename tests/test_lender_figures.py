"""KS, adverse impact ratio, standardized mean difference and their intervals."""

import fairlearn.metrics as fairlearn
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import accuracy_score, roc_auc_score

from fairproj.constraints import STATISTICS
from fairproj.data.checks import Groups
from fairproj.data.ranking import RankedScores
from fairproj.inference.figures import ModelFigures, percentile_interval, resample
from fairproj.inference.ratios import ratio_intervals
from fairproj.metrics import (
    adverse_impact_ratio,
    gap_difference,
    ks_statistic,
    standardized_mean_difference,
)


def scored_rows(seed, n_rows=60, n_scores=9):
    """Labels, scores with ties, groups and whole weights."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_rows) % 2)
    score = rng.integers(n_scores, size=n_rows) / n_scores + 0.1 * y
    return y, score, rng.permutation(np.arange(n_rows) % 3), rng.integers(1, 4, n_rows)


@given(seed=st.integers(0, 10**6), n_scores=st.sampled_from([2, 9, 1000]))
def test_ks_is_scipys(seed, n_scores):
    y, score, _, _ = scored_rows(seed, n_scores=n_scores)
    expected = stats.ks_2samp(score[y == 1], score[y == 0]).statistic
    assert ks_statistic(y, score) == pytest.approx(expected, abs=1e-12)
    assert ks_statistic(1 - y, -score) == pytest.approx(expected, abs=1e-12)


@given(seed=st.integers(0, 10**6))
def test_a_weight_counts_like_so_many_rows(seed):
    y, score, groups, weight = scored_rows(seed)
    again = np.repeat(np.arange(len(y)), weight)
    given_weights = {"sample_weight": 7 * weight}
    assert ks_statistic(y, score, **given_weights) == pytest.approx(
        ks_statistic(y[again], score[again])
    )
    for metric, values in ((adverse_impact_ratio, y), (standardized_mean_difference, score)):
        weighted = metric(values, sensitive_features=groups, **given_weights)
        repeated = metric(values[again], sensitive_features=groups[again])
        pd.testing.assert_series_equal(weighted, repeated)


@given(seed=st.integers(0, 10**6), weighted=st.booleans())
def test_the_area_is_scikit_learns(seed, weighted):
    y, score, _, weight = scored_rows(seed)
    weight = weight.astype(float) if weighted else np.ones(len(y))
    area, distance = RankedScores.of(y == 1, score).auc_and_ks(weight)
    assert area == pytest.approx(roc_auc_score(y, score, sample_weight=weight), abs=1e-12)
    assert distance == pytest.approx(ks_statistic(y, score, sample_weight=weight), abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ks_statistic([1, 1], [0.1, 0.2]), "y must hold two classes, found one"),
        (lambda: ks_statistic([0, 1], [0.1, 0.2, 0.3]), "y_score has shape"),
        (lambda: ks_statistic([0, 1], [0.1, np.nan]), "1 missing or infinite"),
        (
            lambda: ks_statistic([0, 0, 1], [0.1, 0.2, 0.3], sample_weight=[1, 1, 0]),
            "every row with label 1 has sample_weight zero",
        ),
        (
            lambda: adverse_impact_ratio([0, 1], sensitive_features=["a", "b"], reference="c"),
            r"reference='c' is not a group; the groups are 'a', 'b'",
        ),
        (
            lambda: standardized_mean_difference([[0.1], [0.2]], sensitive_features=["a", "b"]),
            "y_score has shape",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_shuffled_rows_are_refused():
    score = pd.Series([0.1, 0.2, 0.3, 0.4])
    other = pd.Series([0, 1, 0, 1], index=[3, 2, 1, 0])
    for call in (
        lambda: ks_statistic(other, score),
        lambda: adverse_impact_ratio(other, sensitive_features=score),
        lambda: standardized_mean_difference(score, sensitive_features=other),
    ):
        with pytest.raises(ValueError, match="have labels in common in different rows"):
            call()


@given(seed=st.integers(0, 10**6), weighted=st.booleans())
def test_the_smallest_ratio_is_fairlearns(seed, weighted):
    y, _, groups, weight = scored_rows(seed)
    weight = weight if weighted else None
    ratios = adverse_impact_ratio(y, sensitive_features=groups, sample_weight=weight)
    expected = fairlearn.demographic_parity_ratio(
        y, y, sensitive_features=groups, sample_weight=weight
    )
    assert ratios.min() == pytest.approx(expected, abs=1e-12)
    assert ratios.max() == 1


def test_ratios_to_a_named_group_by_hand():
    predicted = ["no", "yes", "yes", "yes", "no", "no", "no", "yes"]
    groups = [(False, 1)] * 4 + [(True, 1)] * 4
    frame = pd.DataFrame(groups, columns=["sex", "age"])
    for reference in ((True, 1), "True, 1"):  # a value, or the name that the result has
        ratios = adverse_impact_ratio(predicted, sensitive_features=frame, reference=reference)
        assert ratios.to_dict() == {"False, 1": 3.0, "True, 1": 1.0}
    swapped = adverse_impact_ratio(predicted, sensitive_features=frame, pos_label="no")
    assert swapped.to_dict() == {"False, 1": pytest.approx(1 / 3), "True, 1": 1.0}


def test_nobody_selected_has_no_ratio():
    ratios = adverse_impact_ratio([0, 0, 0, 0], sensitive_features=list("aabb"))
    assert ratios.isna().all()
    ratios = adverse_impact_ratio([0, 0, 0, 1], sensitive_features=list("aabb"), reference="a")
    assert ratios.isna().all()


@given(seed=st.integers(0, 10**6))
def test_mean_differences_by_hand(seed):
    _, score, groups, _ = scored_rows(seed)
    found = standardized_mean_difference(score, sensitive_features=groups, reference=1)
    one = score[groups == 1]
    for group in (0, 2):
        other = score[groups == group]
        pooled = (len(one) * one.var() + len(other) * other.var()) / (len(one) + len(other))
        expected = (other.mean() - one.mean()) / np.sqrt(pooled)
        assert found[str(group)] == pytest.approx(expected)
    assert found["1"] == 0
    by_default = standardized_mean_difference(score, sensitive_features=groups)
    assert (by_default <= 0).all()
    assert (by_default == 0).any()


def test_scores_without_spread():
    found = standardized_mean_difference([1.0, 1, 2, 2], sensitive_features=list("aabb"))
    assert found.to_dict() == {"a": -np.inf, "b": 0}
    found = standardized_mean_difference([1.0, 1, 1, 1], sensitive_features=list("aabb"))
    assert found.to_dict() == {"a": 0, "b": 0}


def test_a_group_without_weight_is_unknown():
    predicted, groups, weight = [1, 0, 1, 0], list("aabb"), [1, 1, 0, 0]
    more = {"sensitive_features": groups, "sample_weight": weight}
    assert np.isnan(adverse_impact_ratio(predicted, **more)["b"])
    assert np.isnan(standardized_mean_difference(predicted, **more)["b"])


@pytest.mark.parametrize(("n", "m"), [(6, 9), (15, 4)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_of_ratios_cover(n, m, confidence):
    """The exact chance that an interval misses, by summing over all outcomes."""
    outcomes = [(i, j) for i in range(n + 1) for j in range(m + 1)]
    ends = []
    for i, j in outcomes:
        low, high = ratio_intervals(np.array([i, j], float), np.array([n, m], float), 1, confidence)
        assert (low[1], high[1]) == (1, 1)
        ends.append((low[0], high[0]))
    low, high = np.array(ends).T
    for p, q in [(0.1, 0.2), (0.5, 0.5), (0.9, 0.3), (0.99, 0.97), (0.02, 0.6)]:
        chance = [stats.binom.pmf(i, n, p) * stats.binom.pmf(j, m, q) for i, j in outcomes]
        missed = (low > p / q) | (high < p / q)
        assert np.dot(chance, missed) <= 1 - confidence


def two_models(n_rows=4000, seed=0):
    """Figures of two models on the same rows: the second is more accurate and has a smaller gap."""
    rng = np.random.default_rng(seed)
    y = rng.random(n_rows) < 0.4
    codes = (rng.random(n_rows) < 0.3).astype(np.intp)
    groups = Groups(codes, ["a", "b"])
    noise = rng.normal(size=n_rows)
    models = []
    for shift, spread in ((0.8, 1.0), (0.3, 0.8)):
        score = y + shift * codes + spread * (noise + rng.normal(size=n_rows)) / 2
        statistic = STATISTICS["demographic_parity"]
        models.append(ModelFigures(y, score > 0.6, score, groups, statistic, 0))
    return models


def test_figures_are_those_of_the_metrics():
    model = two_models(500)[0]
    groups = np.array(["a", "b"])[model.groups.codes]
    weight = np.random.default_rng(1).integers(1, 5, 500).astype(float)
    for one in (None, weight):
        auc, accuracy, ks, selected, gap = model.totals(one)
        more = {"sample_weight": one}
        assert auc == pytest.approx(roc_auc_score(model.actual, model.score, **more))
        assert accuracy == pytest.approx(accuracy_score(model.actual, model.predicted, **more))
        assert ks == pytest.approx(ks_statistic(model.actual, model.score, **more))
        assert selected == pytest.approx(np.average(model.predicted, weights=one))
        named = {"sensitive_features": groups, **more}
        assert gap == pytest.approx(
            gap_difference(model.actual, model.predicted, statistic="demographic_parity", **named)
        )
        ratios = adverse_impact_ratio(model.predicted, reference="a", **named)
        assert model.impact_ratios(one) == pytest.approx(ratios.to_numpy())
        differences = standardized_mean_difference(model.score, reference="a", **named)
        assert model.mean_differences(one) == pytest.approx(differences.to_numpy())


def test_paired_intervals_against_normal_theory():
    """Of differences that are means: the delta method gives their standard errors."""
    plain, fairer = two_models()
    resamples = resample([plain, fairer], 2000, seed=0)
    low, high = percentile_interval(np.diff(resamples.totals, axis=1)[:, 0], 0.95)
    change = fairer.predicted.astype(float) - plain.predicted
    parts = [change[plain.groups.codes == group] for group in (0, 1)]
    moved = parts[1].mean() - parts[0].mean()  # both gaps are those of b less a
    error = np.sqrt(sum(part.var() / len(part) for part in parts))
    assert low[4] == pytest.approx(moved - 1.96 * error, abs=0.15 * error)
    assert high[4] == pytest.approx(moved + 1.96 * error, abs=0.15 * error)
    right = (fairer.predicted == fairer.actual) * 1.0 - (plain.predicted == plain.actual)
    error = right.std() / np.sqrt(len(right))
    assert low[1] == pytest.approx(right.mean() - 1.96 * error, abs=0.15 * error)
    assert high[1] == pytest.approx(right.mean() + 1.96 * error, abs=0.15 * error)
    # Unpaired, the interval would be wider: the models' errors on a row are related.
    unpaired = np.sqrt(sum((m.predicted == m.actual).var() for m in (plain, fairer)) / len(right))
    assert high[1] - low[1] < 2 * 1.96 * unpaired


@pytest.mark.slow
def test_intervals_of_mean_differences_cover():
    """Means that differ by half a deviation, of a small group and a reference of 60 rows.

    The control takes the mean of the reference for known.
    """
    rng, n_runs, true = np.random.default_rng(0), 200, 0.5
    codes = np.repeat([0, 1], [60, 80])
    groups = Groups(codes, ["a", "b"])
    actual, missed, control = np.ones(140, dtype=bool), 0, 0
    for run in range(n_runs):
        score = rng.normal(size=140) + true * codes
        model = ModelFigures(actual, score > 0, score, groups, STATISTICS["demographic_parity"], 0)
        drawn = resample([model], 400, run).mean_differences[:, 0]
        low, high = percentile_interval(drawn, 0.95)
        missed += not low[1] <= true <= high[1]
        reach = 1.96 / np.sqrt(80)
        control += abs(model.mean_differences()[1] - true) > reach
    assert missed <= stats.binom.ppf(0.999, n_runs, 0.07)  # nearly 5 %
    assert control > stats.binom.ppf(0.999, n_runs, 0.07), "the control should fail"


def test_paired_interval_of_the_area_is_scipys():
    """With one group, resamples are those of the ordinary bootstrap."""
    plain, fairer = two_models(400)
    groups = Groups(np.zeros(400, dtype=np.intp), ["all"])
    models = [
        ModelFigures(m.actual, m.predicted, m.score, groups, m.statistic, 0)
        for m in (plain, fairer)
    ]
    low, high = percentile_interval(np.diff(resample(models, 3000, 1).totals, axis=1)[:, 0], 0.9)

    def difference(rows):
        y = plain.actual[rows]
        areas = [RankedScores.of(y, m.score[rows]).auc_and_ks(np.ones(400))[0] for m in models]
        return areas[1] - areas[0]

    expected = stats.bootstrap(
        (np.arange(400),),
        difference,
        vectorized=False,
        n_resamples=3000,
        confidence_level=0.9,
        method="percentile",
        rng=np.random.default_rng(2),
    )
    width = expected.confidence_interval.high - expected.confidence_interval.low
    assert low[0] == pytest.approx(expected.confidence_interval.low, abs=0.1 * width)
    assert high[0] == pytest.approx(expected.confidence_interval.high, abs=0.1 * width)


def test_resamples_without_a_figure_are_left_out():
    values = np.array([[np.nan, 1.0, np.nan], [2.0, 3.0, np.nan], [4.0, 5.0, np.nan]])
    low, high = percentile_interval(values, 0.5)
    assert (low[:2] == [2.5, 2.0]).all()
    assert (high[:2] == [3.5, 4.0]).all()
    assert np.isnan([low[2], high[2]]).all()


def test_groups_keep_their_sizes_in_a_resample():
    plain, _ = two_models(300)
    predicted = np.ones(300, dtype=bool)
    everyone = ModelFigures(
        plain.groups.codes == 0, predicted, plain.score, plain.groups, plain.statistic, 0
    )
    totals = resample([everyone], 50, 0).totals
    assert np.ptp(totals[:, 0, 1]) == 0  # the accuracy is the share of the first group
