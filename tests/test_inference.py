"""Statements about held-out rows: against scipy and fairlearn, and by simulation."""

import json
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fairlearn_metrics
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conftest import make_sample
from fairproj import FairnessReport, FairProjClassifier
from fairproj.baselines import ThresholdOptimizer
from fairproj.constraints import STATISTICS
from fairproj.data.cells import CellCounts
from fairproj.inference import exact_interval, gap_upper_bound
from fairproj.inference.differences import Pair, difference_bound, difference_range
from fairproj.inference.intervals import largest_over_pairs, upper_limit
from fairproj.inference.ratios import shortfall_bound, shortfall_low
from fairproj.metrics.gaps import cell_counts


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(("hits", "n"), [(0, 1), (0, 7), (3, 7), (7, 7), (130, 1000), (255, 300)])
def test_intervals_are_scipys(hits, n, confidence):
    low, high = exact_interval(hits, n, confidence)
    expected = stats.binomtest(hits, n).proportion_ci(confidence, method="exact")
    assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), abs=1e-10)
    byte = upper_limit(np.array([hits], dtype=np.uint8), n, (1 + confidence) / 2)  # no overflow
    assert byte == pytest.approx(expected.high, abs=1e-10)


def test_no_rows_no_knowledge():
    assert tuple(map(float, exact_interval(0, 0))) == (0.0, 1.0)


@pytest.mark.parametrize("confidence", [0, 1, 1 - 1e-9, 1 - 1e-16, -1, 95, 1.5, float("nan")])
def test_confidence_must_lie_between_0_and_1(confidence):
    y, groups = np.tile([0, 1], 50), np.repeat(["a", "b"], 50)
    counts, _ = cell_counts(y, y, groups)
    for call in (
        lambda: exact_interval(1, 3, confidence),
        lambda: gap_upper_bound(counts, "accuracy", confidence),
        lambda: report_of(y, y, groups, confidence=confidence),
    ):
        with pytest.raises(ValueError, match="confidence must lie between 0 and 1") as error:
            call()
        nearness = "by more than a billionth" in str(error.value)
        assert nearness == (0 < confidence < 1)


def test_a_confidence_just_below_the_largest_is_possible():
    low, high = exact_interval(3, 10, 1 - 1e-8)
    expected = stats.binomtest(3, 10).proportion_ci(1 - 1e-8, method="exact")
    assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), rel=1e-6)


def test_a_group_is_not_compared_with_itself():
    assert largest_over_pairs(np.array([[9.0, 1.0], [2.0, 9.0]])) == 2.0
    low, high = np.array([0.0, 0.5]), np.array([1.0, 0.5])  # nothing is known of the first group
    assert difference_range(low, high) == (0.0, 0.5)


def test_hits_must_lie_between_0_and_n():
    with pytest.raises(ValueError, match="hits must lie between 0 and n"):
        exact_interval(5, 3)


def report_of(y, predicted, groups, **parameters):
    return FairnessReport.from_predictions(y, predicted, sensitive_features=groups, **parameters)


def sample(seed, n=400, n_groups=3):
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    y = (rng.random(n) < 0.3 + 0.1 * groups).astype(int)
    predicted = np.where(rng.random(n) < 0.7, y, 1 - y)
    return y, predicted, np.array(["x", "y", "z"])[groups]


@pytest.mark.parametrize("seed", range(3))
def test_estimates_are_fairlearns(seed):
    y, predicted, groups = sample(seed)
    gaps = report_of(y, predicted, groups).gaps.set_index("gap")
    for name in ("demographic_parity", "equal_opportunity", "equalized_odds"):
        function = getattr(fairlearn_metrics, f"{name}_difference")
        expected = function(y, predicted, sensitive_features=groups)
        assert gaps.loc[name, "estimate"] == pytest.approx(expected)
    frame = fairlearn_metrics.MetricFrame(
        metrics=fairlearn_metrics.selection_rate,
        y_true=y,
        y_pred=predicted,
        sensitive_features=groups,
    )
    assert gaps.loc["demographic_parity", "highest"] == frame.by_group.idxmax()
    assert gaps.loc["demographic_parity", "lowest"] == frame.by_group.idxmin()


# True rates of the simulation: what the model predicts positive, by group and label. False positive
# rates are equal: looking for the widest pair of three finds a gap nonetheless.
TRUE = np.array([[0.2, 0.93], [0.2, 0.97], [0.2, 0.60]])
SIZES = [(60, 10), (60, 40), (60, 9)]


def simulate(rng):
    y, predicted, groups = [], [], []
    for group, sizes in enumerate(SIZES):
        for label, n in enumerate(sizes):
            y += [label] * n
            predicted += (rng.random(n) < TRUE[group, label]).astype(int).tolist()
            groups += ["abc"[group]] * n
    return np.array(y), np.array(predicted), np.array(groups)


def wald_lower(y, predicted, groups, label):
    """Where the textbook interval of the extremes' difference begins: the negative control."""
    parts = [predicted[(groups == g) & (y == label)] for g in "abc"]
    rates = np.array([part.mean() for part in parts])
    top, bottom = rates.argmax(), rates.argmin()
    variance = sum(rates[i] * (1 - rates[i]) / len(parts[i]) for i in (top, bottom))
    return rates[top] - rates[bottom] - 1.96 * np.sqrt(variance)


@pytest.mark.slow
def test_coverage_by_simulation_with_a_negative_control():
    rng = np.random.default_rng(0)
    true = {
        "equal_opportunity": np.ptp(TRUE[:, 1]),
        "false_positive_rate_parity": np.ptp(TRUE[:, 0]),
        "equalized_odds": max(np.ptp(TRUE[:, 0]), np.ptp(TRUE[:, 1])),
    }
    repetitions = 150
    covered, control = dict.fromkeys(true, 0), 0
    for _ in range(repetitions):
        y, predicted, groups = simulate(rng)
        gaps = report_of(y, predicted, groups).gaps.set_index("gap")
        for name, gap in true.items():
            covered[name] += gaps.loc[name, "low"] <= gap <= gaps.loc[name, "high"]
        control += wald_lower(y, predicted, groups, 0) <= true["false_positive_rate_parity"]
    assert all(count >= 0.95 * repetitions for count in covered.values()), covered
    assert control < 0.93 * repetitions, "the control should fail, or the test shows nothing"


def test_bounds_of_gaps_are_those_of_pairs():
    """Half of the error above; below, the other half for six pairs, or twelve with both labels."""
    y, predicted, groups = simulate(np.random.default_rng(3))
    gaps = report_of(y, predicted, groups, confidence=0.9)
    gaps = gaps.gaps.set_index("gap")
    pairs = {
        label: [
            Pair(a.sum(), len(a), b.sum(), len(b))
            for a, b in permutations([predicted[(groups == g) & (y == label)] for g in "abc"], 2)
        ]
        for label in (0, 1)
    }
    for name, labels in (("equal_opportunity", [1]), ("equalized_odds", [0, 1])):
        compared = [pair for label in labels for pair in pairs[label]]
        high = max(difference_bound(pair, 0.95) for pair in compared)
        low = max(-difference_bound(pair, 1 - 0.05 / len(compared)) for pair in compared)
        assert low > 0
        found = gaps.loc[name, "low"], gaps.loc[name, "high"]
        assert found == pytest.approx((low, high), abs=1e-6)


def test_the_bounds_of_a_ratio_cover_with_a_negative_control():
    """Three groups of different size; the textbook's interval of log(p_a / p_b) is the control."""
    rng = np.random.default_rng(0)
    rates, sizes = np.array([0.08, 0.1, 0.1]), np.array([60, 40, 80])
    true, repetitions = 1 - 0.8, 2000
    above, below, control = 0, 0, 0
    for _ in range(repetitions):
        hits = rng.binomial(sizes, rates).astype(float)
        above += shortfall_bound(hits, sizes, 0.9) >= true
        below += shortfall_low(hits, sizes, 0.9) <= true
        low, high = np.argmin(hits / sizes), np.argmax(hits / sizes)
        seen = np.maximum(hits, 0.5)
        error = np.sqrt(sum(1 / seen[i] - 1 / sizes[i] for i in (low, high)))
        ratio = seen[low] / sizes[low] * sizes[high] / seen[high]
        control += 1 - ratio * np.exp(1.2816 * error) <= true
    assert above >= 0.9 * repetitions
    assert below >= 0.9 * repetitions
    assert control < 0.88 * repetitions, "the control should fail, or the test shows nothing"


def test_the_bounds_of_a_ratio_are_those_of_its_rates():
    """Above, two limits share the error; below, the intervals of all groups do."""
    hits, sizes = np.array([30.0, 60.0, 85.0]), np.array([100.0, 120.0, 110.0])
    limits = [stats.binomtest(int(x), int(n)) for x, n in zip(hits, sizes, strict=True)]
    one, two = 2 * np.sqrt(0.95) - 1, 0.95 ** (1 / 3)  # as two-sided confidences
    upper = 1 - limits[0].proportion_ci(one).low / limits[2].proportion_ci(one).high
    lower = 1 - limits[0].proportion_ci(two).high / limits[2].proportion_ci(two).low
    assert shortfall_bound(hits, sizes, 0.95) == pytest.approx(upper, rel=1e-9)
    assert shortfall_low(hits, sizes, 0.95) == pytest.approx(lower, rel=1e-9)
    assert 0 < lower < 1 - 0.3 / (85 / 110) < upper < 1
    assert shortfall_bound(np.append(hits, 0), np.append(sizes, 0), 0.95) == 1
    assert shortfall_low(np.zeros(2), np.array([50.0, 60.0]), 0.95) == 0


def test_the_selection_ratio_is_printed_as_a_ratio():
    y, groups = np.tile([0, 1], 400), np.repeat(["a", "b"], 400)
    predicted = np.repeat([1, 0, 1, 0], [320, 80, 240, 160])
    report = report_of(y, predicted, groups)
    row = report.gaps.set_index("gap").loc["selection_ratio"]
    assert (row["kind"], row["highest"], row["lowest"]) == ("ratio", "a", "b")
    assert row["estimate"] == pytest.approx(0.25)
    counts, _ = cell_counts(y, predicted, groups)
    assert row["high"] == pytest.approx(gap_upper_bound(counts, "selection_ratio", 0.975))
    assert f"ratio 0.750 [{1 - row['high']:.3f}, {1 - row['low']:.3f}]" in str(report)
    assert 0.5 < 1 - row["high"] < 0.75 < 1 - row["low"] < 1
    nobody = report_of(y, np.zeros(800, int), groups).gaps.set_index("gap").loc["selection_ratio"]
    assert (nobody["estimate"], nobody["low"], nobody["high"]) == (1, 0, 1)


def test_the_models_own_positive_label():
    X, y, groups = make_sample(300, n_groups=2)
    labels = np.where(y > 0, "accept", "refuse")
    model = FairProjClassifier(n_estimators=5, pos_label="accept")
    model.fit(X, labels, sensitive_features=groups)
    found = FairnessReport.from_estimator(model, X, labels, sensitive_features=groups).rates
    same = report_of(labels, model.predict(X), groups, pos_label="accept")
    pd.testing.assert_frame_equal(found, same.rates)
    inside = make_pipeline(StandardScaler(), clone(model))
    inside.fit(X, labels, fairprojclassifier__sensitive_features=groups)
    again = FairnessReport.from_estimator(inside, X, labels, sensitive_features=groups)
    accepted = again.rates.set_index(["group", "rate"])["n"].xs("true_positive_rate", level="rate")
    assert accepted.sum() == (labels == "accept").sum()


def test_rows_of_one_class_are_positive_or_not_as_the_model_has_it():
    X, y, groups = make_sample(300)
    labels = np.where(y > 0, "yes", "no")
    model = FairProjClassifier(n_estimators=5).fit(X, labels, sensitive_features=groups)
    yes = model.predict(X) == "yes"
    for rows, rate in ((yes & (labels == "yes"), 1.0), (~yes & (labels == "no"), 0.0)):
        report = FairnessReport.from_estimator(
            model, X[rows], labels[rows], sensitive_features=groups[rows]
        )
        selected = report.rates[report.rates["rate"] == "selection_rate"]
        assert (selected["estimate"] == rate).all()


@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_upper_bound_of_a_gap_is_that_of_the_report(statistic):
    """The report's upper end has half of the error."""
    y, predicted, groups = simulate(np.random.default_rng(5))
    counts, _ = cell_counts(y, predicted, groups)
    gaps = report_of(y, predicted, groups, confidence=0.9).gaps.set_index("gap")
    expected = gaps.loc[statistic, "high"]
    for name in (statistic, *STATISTICS[statistic].aliases, STATISTICS[statistic]):
        assert gap_upper_bound(counts, name, 0.95) == pytest.approx(expected, abs=1e-6)


def test_each_rates_interval_covers():
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(60):
        y, predicted, groups = simulate(rng)
        rates = report_of(y, predicted, groups, confidence=0.8).rates
        row = rates[(rates["group"] == "c") & (rates["rate"] == "true_positive_rate")].iloc[0]
        inside.append(row["low"] <= TRUE[2, 1] <= row["high"])
    assert np.mean(inside) >= 0.8


def test_a_gap_between_groups_without_rows_is_unknown_not_zero():
    y = np.array([0, 0, 1, 1, 0, 0])
    groups = np.array(["a", "a", "a", "a", "b", "b"])  # b has no positives
    report = report_of(y, np.array([0, 1, 1, 1, 0, 0]), groups)
    gaps = report.gaps.set_index("gap")
    assert gaps.loc["equal_opportunity", "high"] == pytest.approx(1.0)
    assert gaps.loc["equal_opportunity", "n_smallest"] == 0
    assert np.isnan(gaps.loc["equal_opportunity", "estimate"])
    assert np.isnan(gaps.loc["equalized_odds", "estimate"])  # half of it is not known
    assert "unknown" in str(report)
    assert any(name.startswith("b (0)") for name in report.too_small)


def test_of_a_model_with_text_tables_and_json():
    X, y, groups = make_sample(400, n_groups=2)
    model = FairProjClassifier(n_estimators=5).fit(X, y, sensitive_features=groups)
    report = FairnessReport.from_estimator(model, X, y, sensitive_features=groups)
    same = report_of(y, model.predict(X), groups)
    pd.testing.assert_frame_equal(report.rates, same.rates)
    text = str(report)
    assert "95 % confidence" in text
    assert "equalized_odds" in text
    assert "<table" in report._repr_html_()
    again = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert [row["gap"] for row in again["gaps"]] == list(STATISTICS)


def test_groups_from_the_models_own_columns():
    X, y, groups = make_sample(300, n_groups=2)
    frame = pd.DataFrame(X).add_prefix("x").assign(sex=np.where(groups, "f", "m"))
    model = FairProjClassifier(n_estimators=5, sensitive_columns="sex").fit(frame, y)
    report = FairnessReport.from_estimator(model, frame, y)
    assert sorted(report.rates["group"].unique()) == ["f", "m"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sensitive_features": list("aaaa")}, "one group only"),
        ({"confidence": 95}, "confidence must lie between 0 and 1, got 95"),
        ({"y_pred": [0, 1]}, "y_pred has 2 rows and y_true 4"),
        ({"y_pred": list("nyyn")}, "y_pred holds 'n', which is not a label"),
        ({"sensitive_features": ["a"]}, "sensitive_features has 1 row and y_true has 4"),
    ],
)
def test_bad_input(arguments, words):
    usual = {"sensitive_features": list("aabb"), "y_pred": [0, 1, 1, 0]}
    with pytest.raises(ValueError, match=words):
        FairnessReport.from_predictions([0, 1, 0, 1], **(usual | arguments))


def test_groups_are_missing():
    X, y, groups = make_sample(100)
    model = FairProjClassifier(n_estimators=2).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="sensitive_features is missing, and the model names no"):
        FairnessReport.from_estimator(model, X, y)


@pytest.mark.parametrize("weight", [0.5, 1.0000001])
def test_weighted_rows_are_refused(weight):
    y, predicted, groups = sample(0)
    weights = np.where(np.arange(len(y)) == 7, weight, 1.0)
    counts, names = cell_counts(y, predicted, groups, sample_weight=weights)[0], ["x", "y", "z"]
    words = r"the counts hold \d+\.\d*[1-9], which is not a whole number; exact intervals"
    with pytest.raises(ValueError, match=words):
        FairnessReport.from_counts(counts, names)
    with pytest.raises(ValueError, match=words):
        gap_upper_bound(counts, "equal_opportunity", 0.95)


def test_predictions_that_are_not_whole_are_refused():
    size = np.full((2, 2), 20.0)
    counts = CellCounts(size, size / 2 + [[0, 0], [0, 0.25]])
    with pytest.raises(ValueError, match=r"the counts hold 10\.25, which is not a whole number"):
        gap_upper_bound(counts, "equal_opportunity", 0.95)


class Search(ClassifierMixin, BaseEstimator):
    """A fitted search; its ``predict`` takes X only."""

    def __init__(self, best_estimator_):
        self.best_estimator_ = best_estimator_
        self.classes_ = best_estimator_.classes_

    def predict(self, X):
        return self.best_estimator_.predict(X)


def test_a_classifier_that_needs_the_groups_to_predict():
    X, y, groups = make_sample(600, n_groups=3)
    groups = np.array(["a", "b", "c"])[groups]
    model = ThresholdOptimizer().fit(X, y, sensitive_features=groups)
    expected = report_of(y, model.predict(X, sensitive_features=groups), groups).rates
    pipeline = make_pipeline(StandardScaler(), ThresholdOptimizer())
    pipeline.fit(X, y, thresholdoptimizer__sensitive_features=groups)
    scaled = pipeline[:-1].transform(X)
    within = report_of(y, pipeline[-1].predict(scaled, sensitive_features=groups), groups).rates
    for fitted, rates in ((model, expected), (pipeline, within), (Search(pipeline), within)):
        report = FairnessReport.from_estimator(fitted, X, y, sensitive_features=groups)
        pd.testing.assert_frame_equal(report.rates, rates)


def test_a_randomised_classifier_gives_the_same_report_again():
    class Randomised(ClassifierMixin, BaseEstimator):
        classes_ = np.array([-1, 1])

        def predict(self, X, random_state=None):
            return np.random.default_rng(random_state).choice(self.classes_, len(X))

    X, y, groups = make_sample(200)
    one, again = (
        FairnessReport.from_estimator(Randomised(), X, y, sensitive_features=groups).rates
        for _ in range(2)
    )
    pd.testing.assert_frame_equal(one, again)


def test_the_price_of_validity():
    """Two groups of 1,000 and rates of a half: 1.05 times the textbook's bound, as the docs say."""
    y = np.ones(2001, dtype=int)
    y[-1] = 0
    groups = np.append(np.repeat(["a", "b"], 1000), "a")
    predicted = np.append(np.tile([0, 1], 1000), 0)
    gaps = report_of(y, predicted, groups).gaps.set_index("gap")
    textbook = 1.96 * np.sqrt(2 * 0.25 / 1000)
    assert gaps.loc["equal_opportunity", "high"] / textbook == pytest.approx(1.05, abs=0.01)
    textbook = 1 - np.exp(-1.96 * np.sqrt(2 * (1 / 500 - 1 / 1000)))  # of the logarithm
    assert gaps.loc["selection_ratio", "high"] / textbook == pytest.approx(1.6, abs=0.05)
