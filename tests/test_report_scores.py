"""What a report says about probabilities, features, the plain model and what it leaves out."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import LogisticRegression

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.constraints import RATES, STATISTICS
from fairproj.data.cells import CellCounts
from fairproj.data.checks import check_groups
from fairproj.datasets import load_german
from fairproj.inference.paired import paired_difference_interval
from fairproj.metrics import calibration_error, gap_curve, group_rates
from fairproj.report import (
    Source,
    _charts,
    _importance,
    model_card,
    summarize_estimator,
    summarize_predictions,
)
from fairproj.report._markdown import markdown
from fairproj.report._page import html
from fairproj.report._sample import GroupSample
from fairproj.report._scores import (
    CUTS,
    ScoreCounts,
    ScoredRows,
    calibration_content,
    distribution_content,
    threshold_content,
)

TARGET = {"metric": "equal_opportunity", "name": "gap", "max_gap": None}


def make_rows(n_rows=2000, n_groups=3, seed=0):
    """Labels, groups, and probabilities that are rounded, so that many lie on a threshold."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n_groups + n_rows)
    probability = np.round(rng.beta(1.5, 2, size=len(groups)), 3)
    actual = rng.random(len(groups)) < probability
    return actual, groups, probability


def counted(actual, groups, probability):
    scores = ScoreCounts(groups.max() + 1)
    scores.add(groups, actual, probability)
    return scores


def decisions(actual, groups, said):
    return CellCounts.of_rows(actual, said, check_groups(groups, len(groups)))


# Paired intervals


def coverage(n_rows, only_first, only_second, confidence):
    """The chance that the interval holds the true difference, over all outcomes."""
    rest = 1 - only_first - only_second
    first, second = np.meshgrid(np.arange(n_rows + 1), np.arange(n_rows + 1), indexing="ij")
    inside = first + second <= n_rows
    outcomes = np.column_stack([first[inside], second[inside]])
    counts = np.column_stack([outcomes, n_rows - outcomes.sum(axis=1)])
    chances = stats.multinomial.pmf(counts, n_rows, [only_first, only_second, rest])
    true = only_first - only_second
    holds = [
        low - 1e-12 <= true <= high + 1e-12
        for low, high in (paired_difference_interval(a, b, n_rows, confidence) for a, b in outcomes)
    ]
    return chances[holds].sum()


@pytest.mark.parametrize("shares", [(0.1, 0.1), (0.3, 0.05), (0.02, 0.01), (0.5, 0.5), (0.0, 0.2)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_paired_interval_covers(shares, confidence):
    """Exactly, by summing over all outcomes of 25 rows."""
    assert coverage(25, *shares, confidence) >= confidence - 1e-9


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 5000))
@settings(max_examples=60, deadline=None)
def test_the_paired_interval_holds_its_estimate(only_first, only_second, agree):
    n_rows = only_first + only_second + agree + 1
    low, high = paired_difference_interval(only_first, only_second, n_rows)
    assert -1 <= low <= (only_first - only_second) / n_rows <= high <= 1
    assert paired_difference_interval(only_second, only_first, n_rows) == pytest.approx(
        (-high, -low)
    )
    # What McNemar's exact test does not reject, the interval holds.
    discordant = only_first + only_second
    p_value = stats.binomtest(only_first, discordant).pvalue if discordant else 1.0
    if p_value > 0.05:
        assert low <= 0 <= high


def test_paired_counts_must_fit():
    with pytest.raises(ValueError, match="add up to at most n_rows=5"):
        paired_difference_interval(3, 3, 5)
    assert paired_difference_interval(0, 0, 0) == (-1.0, 1.0)


# Thresholds


@pytest.mark.parametrize("metric", list(STATISTICS))
def test_the_curves_are_those_of_gap_curve(metric):
    actual, groups, probability = make_rows()
    content = threshold_content(
        counted(actual, groups, probability),
        decisions(actual, groups, probability > 0.5),
        list("abc"),
        {**TARGET, "metric": metric},
        None,
    )
    assert content["threshold"] == pytest.approx(CUTS.tolist())
    shown = np.arange(99, 900, 100)  # everyone and nobody is predicted positive at the ends
    expected = gap_curve(
        actual, probability, sensitive_features=groups, statistic=metric, thresholds=CUTS[shown]
    )
    for name in ("gap", "accuracy", "selection_rate"):
        found = np.array(content[name], dtype=float)[shown]
        np.testing.assert_allclose(found, expected[name], atol=1e-6)


def test_rates_at_a_threshold_are_those_of_the_decisions():
    actual, groups, probability = make_rows()
    names = list("abc")
    content = threshold_content(
        counted(actual, groups, probability),
        decisions(actual, groups, probability > 0.5),
        names,
        TARGET,
        None,
    )
    for index in (0, 249, 700, 998):
        said = probability > content["threshold"][index]
        expected = group_rates(actual, said, sensitive_features=groups, pos_label=True)
        rows = _charts.rates_at(content, index)
        for (name, rate), row in zip(RATES.items(), rows, strict=True):
            assert row["name"] == rate.words
            values = np.array(row["values"], dtype=float)
            np.testing.assert_allclose(values, expected[name], atol=1e-12)


def test_the_threshold_in_use_has_the_numbers_of_the_decisions():
    """Also where rounding puts a probability on the other side than the decision."""
    actual, groups, probability = make_rows()
    said = probability >= 0.5
    decided = decisions(actual, groups, said)
    for in_use, n_thresholds in ((0.5, 999), (0.50001, 1000), (0.0001, 1000), (0.9999, 1000)):
        content = threshold_content(
            counted(actual, groups, probability), decided, list("abc"), TARGET, in_use
        )
        assert len(content["threshold"]) == len(content["gap"]) == n_thresholds
        assert content["threshold"] == sorted(content["threshold"])
        at = content["threshold"].index(in_use)
        assert at == _charts.first_reading(content)
        assert at in _charts.readings(content)
        assert content["selection_rate"][at] == pytest.approx(said.mean(), abs=1e-6)
        assert [g["predicted"][1][at] for g in content["groups"]] == decided.predicted[
            :, 1
        ].tolist()


def test_a_group_without_positives_leaves_the_gap_of_the_others():
    actual, groups, probability = make_rows()
    actual = actual & (groups != 2)
    content = threshold_content(
        counted(actual, groups, probability),
        decisions(actual, groups, probability > 0.5),
        list("abc"),
        TARGET,
        None,
    )
    both = groups < 2
    expected = gap_curve(
        actual[both], probability[both], sensitive_features=groups[both], thresholds=[0.4]
    )
    assert content["gap"][399] == pytest.approx(expected["gap"][0], abs=1e-6)
    json.dumps(content, allow_nan=False)


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_counts_do_not_depend_on_chunks(data):
    actual, groups, probability = make_rows(200)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(groups)), max_size=4)))
    parts = ScoreCounts(3)
    for rows in np.split(np.arange(len(groups)), cuts):
        parts.add(groups[rows], actual[rows], probability[rows])
    np.testing.assert_array_equal(parts.counts, counted(actual, groups, probability).counts)


# Distributions and calibration


def test_distributions_are_histograms():
    actual, groups, probability = make_rows()
    probability[:2] = 0.0, 1.0
    content = distribution_content(counted(actual, groups, probability), list("abc"))
    for g, group in enumerate(content["groups"]):
        for name, label in (("negatives", False), ("positives", True)):
            mine = probability[(groups == g) & (actual == label)]
            # Bins that are closed on the right, as decisions are "above the threshold".
            expected = pd.cut(mine, content["edges"], include_lowest=True).value_counts().to_numpy()
            assert group[name] == expected.tolist()


def test_calibration_by_group():
    actual, groups, probability = make_rows()
    content = calibration_content(ScoredRows(actual, probability, groups), list("abc"), 0.9)
    errors = calibration_error(actual, probability, sensitive_features=groups, pos_label=True)
    found = [content["overall"]["error"], *(group["error"] for group in content["groups"])]
    assert found == pytest.approx(errors["ece"].tolist())
    for g, group in enumerate(content["groups"]):
        assert sum(one["rows"] for one in group["bins"]) == group["rows"] == (groups == g).sum()
        assert sum(one["positives"] for one in group["bins"]) == actual[groups == g].sum()
        assert len(group["bins"]) == 10
        for one in group["bins"]:
            interval = stats.binomtest(one["positives"], one["rows"]).proportion_ci(0.9)
            assert (one["low"], one["high"]) == pytest.approx((interval.low, interval.high))
            assert one["observed"] == one["positives"] / one["rows"]
        means = [one["probability"] for one in group["bins"]]
        assert means == sorted(means)


# Importances


def test_samples_of_groups_do_not_depend_on_chunks():
    codes = np.repeat([0, 1, 2], [5000, 300, 7])
    rows = np.arange(len(codes))
    samples = []
    for cuts in ([], [100, 4000, 5100]):
        sample = GroupSample(3, 600)
        for part in np.split(rows, cuts):
            sample.add(codes[part], part)
        samples.append(sample.by_group())
    assert [len(rows) for rows in samples[0].values()] == [200, 200, 7]
    for code in range(3):
        np.testing.assert_array_equal(samples[0][code], samples[1][code])
        assert (codes[samples[0][code]] == code).all()


DATA = load_german()
X, Y, SEX = DATA.data, DATA.target, DATA.sensitive_features


@pytest.fixture(scope="module")
def model():
    estimator = FairBoostClassifier(max_gap=0.05, n_estimators=15, baseline=True, random_state=0)
    return estimator.fit(X, Y, sensitive_features=SEX)


def report_on(model, **parameters):
    return summarize_estimator(model, X, Y, sensitive_features=SEX, **parameters)


def test_importances_are_means_of_contributions(model, monkeypatch):
    monkeypatch.setattr(_importance, "MOST_EXPLAINED", 10_000)  # all rows
    content = report_on(model)["importance"]
    parts = np.abs(model.contributions(X)[:, :-1])
    names = X.columns.tolist()
    for feature in content["features"]:
        at = names.index(feature["name"])
        assert feature["overall"] == pytest.approx(parts[:, at].mean())
        by_group = [parts[group == SEX, at].mean() for group in ("female", "male")]
        assert feature["groups"] == pytest.approx(by_group)
    assert [g["rows"] for g in content["sampled"]] == [310, 690]
    signed = pd.DataFrame(model.contributions(X)[:, :-1], columns=names).groupby(SEX.to_numpy())
    errors = signed.sem().T
    for feature in content["features"]:
        assert feature["means"] == pytest.approx(signed.mean()[feature["name"]].tolist())
        assert feature["means_se"] == pytest.approx(errors.loc[feature["name"]].tolist())
    apart = signed.mean().T.pipe(lambda means: means["female"] - means["male"])
    factor = stats.t.isf(0.05 / (2 * len(names)), 309)
    chosen = apart[apart.abs() > factor * np.hypot(errors["female"], errors["male"])]
    first = chosen.abs().idxmax()
    most = "female" if apart[first] > 0 else "male"
    assert f"{first} by {abs(apart[first]):.2g} (standard error" in content["sentence"]
    assert f"highest for {most}" in content["sentence"]
    assert content["sentence"].count("highest for") == min(3, len(chosen))
    assert f"Bonferroni-corrected for {len(names)} comparisons" in content["sentence"]
    sizes = [feature["overall"] for feature in content["features"]]
    assert sizes == sorted(sizes, reverse=True)


def test_differences_that_chance_explains_are_not_stated(model, monkeypatch):
    """Of groups that are drawn at random, no feature is said to move them apart."""
    monkeypatch.setattr(_importance, "MOST_EXPLAINED", 10_000)
    groups = np.random.default_rng(0).choice(["a", "b"], size=len(X))
    content = summarize_estimator(model, X, Y, sensitive_features=groups)["importance"]
    assert any(np.ptp(feature["means"]) > 0.01 for feature in content["features"])
    assert content["sentence"].startswith("No feature moves the mean scores of the groups apart")
    assert "more than chance explains" in content["sentence"]


def test_the_standard_error_of_one_row_is_not_known(model):
    groups = np.where(np.arange(len(X)) == 0, "alone", "others")
    content = summarize_estimator(model, X, Y, sensitive_features=groups)
    features = content["importance"]["features"]
    assert all(one["groups_se"][0] is None and one["means_se"][0] is None for one in features)
    assert content["importance"]["sentence"].startswith("No feature moves")
    assert html(content)
    assert markdown(content)


def test_importances_are_about_the_positive_label(model):
    """With another positive label, the means change their signs and the label its name."""
    labels = model.classes_.tolist()
    found = [
        summarize_estimator(model, X, Y, sensitive_features=SEX, pos_label=label)["importance"]
        for label in labels
    ]
    assert [one["towards"] for one in found] == [str(label) for label in labels]
    assert f"score for '{labels[0]}'" in found[0]["sentence"]
    for other, usual in zip(found[0]["features"], found[1]["features"], strict=True):
        assert other["name"] == usual["name"]
        assert other["groups"] == usual["groups"]
        assert other["means"] == pytest.approx([-mean for mean in usual["means"]])


def test_importances_come_from_a_sample(model, monkeypatch):
    monkeypatch.setattr(_importance, "MOST_EXPLAINED", 100)
    content = report_on(model)
    assert [g["rows"] for g in content["importance"]["sampled"]] == [50, 50]
    assert "over 100 rows" in html(content)
    assert report_on(model)["importance"] == content["importance"]


# The plain model


def test_the_price_has_an_interval_from_the_same_rows(model):
    content = report_on(model, source=Source(seen=False))
    interval = content["price"]["interval"]
    right, plain = model.predict(X) == Y, model.baseline_.predict(X) == Y
    assert interval["only_model"] == (right & ~plain).sum()
    assert interval["only_plain"] == (plain & ~right).sum()
    assert interval["estimate"] == pytest.approx(right.mean() - plain.mean())
    expected = paired_difference_interval(interval["only_model"], interval["only_plain"], len(Y))
    assert (interval["low"], interval["high"]) == expected
    assert "For new people" in interval["sentence"]
    assert interval["sentence"] in markdown(content)
    assert report_on(model, source=Source(seen=True))["price"]["interval"] is None


def test_a_constraint_that_changed_nothing_is_called_that():
    """Within a gap of 1, costs are never moved: the model is the plain one."""
    fitted = FairBoostClassifier(max_gap=1.0, n_estimators=15, baseline=True, random_state=0).fit(
        X, Y, sensitive_features=SEX
    )
    price = report_on(fitted, source=Source(seen=False))["price"]
    assert price["sentence"].startswith("The constraint changed nothing: with it and without it, ")
    assert "cost" not in price["sentence"]
    assert price["interval"] is None


# What is decided, and what was not looked at


def test_the_subject_of_a_report(model):
    content = report_on(model, source=Source("german.csv", "new rows", trained="2026-01-02"))
    assert content["title"] == "Fairness report: FairBoostClassifier"
    subject = dict(content["subject"])
    assert subject["Label"] == "credit"
    assert subject["A positive prediction says"] == "credit is good"
    assert subject["Sensitive columns"] == "sex"
    assert subject["Groups compared"] == "2, with their rows: female (310); male (690)"
    assert subject["Features"].startswith("20: checking_account, duration_months")
    assert subject["Sensitive columns among the features"] == "none"
    assert f"is above {model.threshold_:.4g}" in subject["Decided where"]
    assert subject["Rows"] == "1,000 rows of german.csv, new rows"
    assert subject["Trained"] == "2026-01-02"
    named = report_on(model, source=Source(model="credit.fairproj"))
    assert named["title"] == "Fairness report: credit.fairproj"
    assert dict(named["subject"])["Model"] == "credit.fairproj (FairBoostClassifier)"
    assert model_card(named).startswith("# Model card: credit.fairproj")


def test_a_sensitive_column_among_the_features_is_named():
    table = X.assign(sex=SEX)
    model = FairProjClassifier(n_estimators=3).fit(table, Y, sensitive_features=SEX)
    content = summarize_estimator(model, table, Y, sensitive_features=SEX)
    assert dict(content["subject"])["Sensitive columns among the features"] == "sex"


@pytest.mark.parametrize("positive", ["good", "bad"])
def test_the_threshold_is_that_of_the_positive_label(positive):
    model = FairProjClassifier(n_estimators=5).fit(X, Y, sensitive_features=SEX)
    boosted = FairBoostClassifier(n_estimators=5, threshold=0.6).fit(X, Y, sensitive_features=SEX)
    for fitted, expected in ((model, 0.5), (boosted, 0.6 if positive == "good" else 0.4)):
        content = report_on(fitted, pos_label=positive)
        assert content["threshold"] == pytest.approx(expected)
        at = _charts.first_reading(content["thresholds"])
        said = np.mean(fitted.predict(X) == positive)
        assert content["thresholds"]["selection_rate"][at] == pytest.approx(said, abs=1e-6)


def test_another_classifiers_threshold_is_found_where_it_is_a_half():
    numbers = X.select_dtypes("number")
    plain = LogisticRegression(max_iter=5000).fit(numbers, Y)
    content = summarize_estimator(plain, numbers, Y, sensitive_features=SEX)
    assert content["threshold"] == 0.5
    assert content["importance"] is None
    omitted = " ".join(content["not_looked_at"])
    for words in ("Which features decide", "Proxies", "price of the constraint", "--frontier"):
        assert words in omitted


def test_what_was_not_looked_at_is_what_the_report_lacks(model):
    whole = " ".join(report_on(model)["not_looked_at"])
    assert "Which features decide" not in whole
    assert "price of the constraint" not in whole
    assert "only the 2 groups by sex" in whole
    assert "Whether the model has seen these rows" in whole
    alone = summarize_predictions(Y, Y, sensitive_features=SEX, source=Source(seen=False))
    omitted = " ".join(alone["not_looked_at"])
    assert "only its predictions were given" in omitted
    assert "has seen these rows" not in omitted
    assert alone["title"] == "Fairness report: predictions in the given rows"


def test_findings_of_the_model_file(model):
    found = [
        {"kind": "identifier", "column": "id", "measure": 1.0, "words": "as identifiers do"},
        {"kind": "proxy", "column": "sex_copy", "measure": 0.99, "words": "determines sex"},
        {"kind": "joint_strength", "column": None, "measure": 0.81, "words": "tell sex"},
    ]
    content = report_on(model, source=Source(findings=found))
    assert [row["name"] for row in content["proxies"]["findings"]] == [
        "Proxy",
        "All features together",
        "Identifier",
    ]
    assert "1 feature nearly determines" in content["proxies"]["sentence"]
    for text in (html(content), markdown(content)):
        assert "sex_copy" in text.replace("\\_", "_")
        assert "0.99" in text
    several = {"kind": "joint_proxy", "column": None, "measure": 0.99, "words": "determine sex"}
    content = report_on(model, source=Source(findings=[several]))
    assert content["proxies"]["sentence"].startswith("Several features together nearly determine")
    leak = {"kind": "leak", "column": "a", "measure": 1.0, "words": "column 'a' tells the label"}
    content = report_on(model, source=Source(findings=[leak]))
    assert "Before you rely on this: column 'a' tells the label." in content["summary"]
    nothing = report_on(model, source=Source(findings=[]))
    assert nothing["proxies"]["findings"] == []
    assert "No single feature" in html(nothing)
    assert not any(sentence.startswith("Proxies") for sentence in nothing["not_looked_at"])


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((0.5, 0.45), "the whole interval"),
        ((0.5, 0.1), "is below it"),
        ((0.5, 0.4), "includes it"),
        ((0.5, 0.5), "All groups have the same selection rate"),
        ((0.0, 0.0), "Nobody is selected"),
    ],
)
def test_the_four_fifths_rule(shares, words):
    n = 4000
    said = np.concatenate([np.arange(n) < share * n for share in shares]).astype(int)
    groups = np.repeat(["a", "b"], n)
    y = np.tile([0, 1], n)
    content = summarize_predictions(y, said, sensitive_features=groups, pos_label=1)
    ratio = content["selection_ratio"]
    assert words in ratio["sentence"]
    if all(shares):
        assert ratio["estimate"] == pytest.approx(shares[1] / shares[0])
    assert ratio["low"] <= ratio["estimate"] <= ratio["high"]
    for text in (html(content), markdown(content), model_card(content)):
        assert re.sub(r"\W+", " ", ratio["sentence"]) in re.sub(r"\W+", " ", text)


def test_markdown_and_card_have_the_new_parts(model):
    content = report_on(model, source=Source("german.csv", claimed="fairproj train `x`"))
    for text in (markdown(content), model_card(content)):
        for heading in ("Other thresholds", "Calibration by group", "What the decisions rest on"):
            assert f"\n## {heading}\n" in text
        assert "(not verified)" in text
        for feature in content["importance"]["features"][:3]:
            shown = f"{feature['overall']:.3f} ± {feature['overall_se']:.3f}"
            assert f"| {shown} |" in text
        for sentence in content["not_looked_at"]:
            assert sentence in text


def test_no_word_is_used_unexplained(model):
    paper = FairProjClassifier(n_estimators=5).fit(X, Y, sensitive_features=SEX)
    for fitted in (model, paper):
        text = html(report_on(fitted)).lower()
        assert "closed loop" not in text
        assert "where 0 is none" not in text
