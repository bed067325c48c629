"""Precision and the false negative rate: what they are, how sure they are, where they may stand."""

import numpy as np
import pytest
from fairlearn import metrics as fairlearn
from scipy import stats
from sklearn.metrics import precision_score

from commands import run, run_json
from conftest import make_sample
from fairproj import FairBoostClassifier, FairnessReport, FairProjClassifier
from fairproj.constraints import (
    RATES,
    STATISTICS,
    AllOf,
    Rate,
    RateParity,
    RateRatio,
    find_statistic,
    statistic_names,
)
from fairproj.data.cells import CellCounts, Cells
from fairproj.data.checks import Groups
from fairproj.inference import GapsBy
from fairproj.report import model_card, summarize_predictions
from fairproj.report._markdown import markdown
from fairproj.report._page import html


def predictions(seed=0, n=600):
    rng = np.random.default_rng(seed)
    groups = np.array(["x", "y", "z"])[rng.integers(3, size=n)]
    y = (rng.random(n) < 0.4).astype(int)
    return y, np.where(rng.random(n) < 0.7, y, 1 - y), groups


def report_of(y, predicted, groups, **parameters):
    return FairnessReport.from_predictions(y, predicted, sensitive_features=groups, **parameters)


@pytest.mark.parametrize("seed", range(3))
def test_estimates_and_gaps_are_those_of_fairlearn_and_scikit_learn(seed):
    y, predicted, groups = predictions(seed)
    report = report_of(y, predicted, groups)
    frame = fairlearn.MetricFrame(
        metrics={
            "precision": precision_score,
            "false_negative_rate": fairlearn.false_negative_rate,
        },
        y_true=y,
        y_pred=predicted,
        sensitive_features=groups,
    )
    for name in frame.by_group:
        rates = report.rates[report.rates["rate"] == name].set_index("group")
        np.testing.assert_allclose(rates["estimate"], frame.by_group[name])
    gaps = report.gaps.set_index("gap")["estimate"]
    assert gaps["predictive_parity"] == pytest.approx(frame.difference()["precision"])
    assert gaps["equal_opportunity"] == pytest.approx(frame.difference()["false_negative_rate"])


def test_the_interval_of_a_precision_is_scipys_given_the_positive_predictions():
    y, predicted, groups = predictions()
    rates = report_of(y, predicted, groups, confidence=0.9).rates
    for row in rates[rates["rate"] == "precision"].itertuples():
        chosen = (groups == row.group) & (predicted == 1)
        assert (row.n, row.hits) == (chosen.sum(), y[chosen].sum())
        expected = stats.binomtest(row.hits, row.n).proportion_ci(0.9, method="exact")
        assert (row.low, row.high) == pytest.approx((expected.low, expected.high), abs=1e-10)


def test_the_false_negative_rate_mirrors_the_true_positive_rate():
    rates = report_of(*predictions()).rates.set_index(["rate", "group"])
    missed, found = rates.loc["false_negative_rate"], rates.loc["true_positive_rate"]
    assert (missed["n"] == found["n"]).all()
    assert (missed["hits"] == found["n"] - found["hits"]).all()
    for mine, other in (("estimate", "estimate"), ("low", "high"), ("high", "low")):
        np.testing.assert_allclose(missed[mine], 1 - found[other])


def test_the_interval_of_a_gap_of_precisions_covers():
    """Rows of two groups with precisions of 0.6 and 0.8; how many are selected is random."""
    rng = np.random.default_rng(2)
    repetitions, parts = 150, {}
    for at in range(repetitions):
        size = rng.binomial(60, 0.5, size=(2, 1)).astype(float)
        hits = rng.binomial(size.astype(int), [[0.6], [0.8]]).astype(float)
        predicted = np.hstack([size - hits, hits])
        parts[str(at)] = CellCounts(predicted + 20, predicted)
    gaps = GapsBy.from_counts(parts, ["a", "b"], statistic="predictive_parity").table
    covered = ((gaps["low"] <= 0.2) & (gaps["high"] >= 0.2)).sum()
    assert covered >= stats.binom.ppf(0.001, repetitions, 0.95)


def test_a_group_that_is_never_selected_has_no_precision():
    y, predicted, groups = predictions()
    predicted = np.where(groups == "z", 0, predicted)
    report = report_of(y, predicted, groups)
    row = report.rates.set_index(["rate", "group"]).loc[("precision", "z")]
    assert (row["n"], row["low"], row["high"]) == (0, 0, 1)
    assert np.isnan(row["estimate"])
    gap = report.gaps.set_index("gap").loc["predictive_parity"]
    assert gap["n_smallest"] == 0
    assert gap["high"] > 0.7
    content = summarize_predictions(
        y, predicted, sensitive_features=groups, metric="predictive_parity", max_gap=0.1
    )
    assert any("Without rows to measure it: z." in text for text in content["summary"])


def test_all_outputs_have_them():
    y, predicted, groups = predictions()
    content = summarize_predictions(y, predicted, sensitive_features=groups)
    assert {row["rate"] for row in content["rates"]} == set(RATES)
    assert any("precision is computed given the number" in text for text in content["caveats"])
    for text in (markdown(content), model_card(content)):
        assert "| accuracy | precision | false negative rate |" in text
        assert "gap of the precisions (predictive parity)" in text


# Constraints


@pytest.mark.parametrize(
    "constraints",
    [
        "predictive_parity",
        ["equal_opportunity", "predictive_parity"],
        lambda: RateParity("precision"),
        lambda: RateParity(RATES["precision"]),
        lambda: RateRatio("precision"),
        lambda: AllOf(["predictive_parity"]),
    ],
)
@pytest.mark.parametrize("classifier", [FairBoostClassifier, FairProjClassifier])
def test_a_constraint_on_the_precision_is_refused(classifier, constraints):
    X, y, groups = make_sample(100)
    words = (
        "the precision is taken over the rows predicted positive, so it can be reported, but not "
        "constrained; constrain one of 'demographic_parity', "
    )
    with pytest.raises(ValueError, match=words):
        classifier(constraints() if callable(constraints) else constraints).fit(
            X, y, sensitive_features=groups
        )


def test_a_name_that_is_unknown_is_answered_with_what_can_be_constrained():
    X, y, groups = make_sample(100)
    with pytest.raises(ValueError, match="constraints='parity' is unknown") as error:
        FairBoostClassifier("parity").fit(X, y, sensitive_features=groups)
    assert "predictive_parity" not in str(error.value)
    with pytest.raises(ValueError, match="statistic='parity' is unknown") as error:
        find_statistic("parity")
    assert "predictive_parity" in str(error.value)
    assert set(statistic_names()) - set(statistic_names(constraints=True)) == {"predictive_parity"}


def test_parity_of_false_negative_rates_is_equal_opportunity():
    assert find_statistic("false_negative_rate_parity") is STATISTICS["equal_opportunity"]
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(800, 3)), rng.integers(2, size=800)
    y = np.where(X[:, 0] + groups + rng.normal(size=800) > 0.5, 1, -1)
    fits = [
        FairBoostClassifier(constraint, 0.05, n_estimators=10, validation_fraction=None)
        .fit(X, y, sensitive_features=groups)
        .decision_function(X)
        for constraint in (RateParity("true_positive_rate"), RateParity("false_negative_rate"))
    ]
    # The rate is mirrored: the multipliers change their signs, and the costs stay what they are.
    np.testing.assert_allclose(fits[0], fits[1], atol=1e-6)


CELLS = Cells.of(
    np.array([-1.0, 1.0, -1.0, 1.0]), Groups(np.array([0, 0, 1, 1]), ["m", "w"]), np.array([0, 1])
)


def test_directions_and_events():
    missed = RATES["false_negative_rate"]
    np.testing.assert_array_equal(missed.inside(CELLS), [False, True, False, True])
    np.testing.assert_array_equal(missed.direction(CELLS)[[1, 3]], [-1, -1])
    with pytest.raises(ValueError, match="can be reported, but not constrained"):
        RATES["precision"].inside(CELLS)
    with pytest.raises(ValueError, match="'positive' is unknown in the rate 'x'; use one of 'corr"):
        Rate("x", "selected", "positive")
    assert not STATISTICS["predictive_parity"].by_label


def test_rates_that_determine_one_another_make_one_statement():
    statements = {name: rate.statement for name, rate in RATES.items()}
    assert statements["true_positive_rate"] == statements["false_negative_rate"]
    assert len(set(statements.values())) == 5
    assert Rate("tnr", "negative", "correct").statement == statements["false_positive_rate"]
    assert Rate("refused", "all", "negative").statement == statements["selection_rate"]


# Commands


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    import pandas as pd

    y, predicted, groups = predictions(n=900)
    path = tmp_path_factory.mktemp("rates") / "scored.csv"
    words = np.array(["no", "yes"])
    pd.DataFrame({"y": words[y], "said": words[predicted], "sex": groups}).to_csv(path, index=False)
    return path


ASKED = ("--predictions", "said", "--label", "y", "--sensitive", "sex")


def test_audit_shows_them_and_names_the_positive_label(scored):
    printed = run("audit", scored, *ASKED).stdout
    assert "900 rows. Positive label: yes." in printed
    assert "precision" in printed
    assert "false negative rate" in printed
    other = run("audit", scored, *ASKED, "--positive", "no").stdout
    assert "Positive label: no." in other
    content = run_json("audit", scored, *ASKED, "--metric", "predictive_parity")
    assert content["target"]["name"] == "gap of the precisions (predictive parity)"


@pytest.mark.parametrize("command", ["train", "frontier"])
def test_commands_refuse_to_constrain_it(scored, tmp_path, command):
    option = "--constraint" if command == "train" else "--metric"
    output = tmp_path / ("m.fairproj" if command == "train" else "f.csv")
    asked = ("--label", "y", "--sensitive", "sex", "-o", output)
    failed = run(command, scored, *asked, option, "predictive_parity", code=2).stderr
    said = " ".join(failed.replace("│", " ").split())
    assert "'predictive_parity' can be reported, but not constrained; use one of" in said


# Equal rates


def test_where_all_rates_are_equal_no_group_is_named():
    y, groups = np.tile([0, 1], 40), np.repeat(["a", "b"], 40)
    report = report_of(y, y, groups)
    gaps = report.gaps.set_index("gap")
    assert (gaps[["highest", "lowest"]] == "all equal").all(axis=None)
    assert "all equal" in str(report)
    content = summarize_predictions(y, y, sensitive_features=groups)
    assert "no difference between the groups" in " ".join(content["summary"])
    nobody = summarize_predictions(
        y, np.zeros(80, int), sensitive_features=groups, metric="selection_ratio"
    )
    assert "was 100.0 percentage points: no rate is above 0." in " ".join(nobody["summary"])
    (ratio,) = [row for row in nobody["gaps"] if row["gap"] == "selection_ratio"]
    assert (ratio["estimate"], ratio["highest"], ratio["lowest"]) == (1.0, *["nobody selected"] * 2)
    assert "<td>nobody selected</td>" in html(nobody).replace("<bdi>", "").replace("</bdi>", "")
    (rate,) = [row for row in nobody["gaps"] if row["gap"] == "demographic_parity"]
    assert (rate["estimate"], rate["highest"]) == (0.0, "all equal")


def test_audit_says_that_nobody_is_selected(tmp_path):
    path = tmp_path / "none.csv"
    path.write_text("y,said,sex\n" + "".join(f"{y},0,{sex}\n" for sex in "fm" for y in (0, 1) * 30))
    gaps = run("audit", path, *ASKED, "--positive", 1).stdout.split("Gaps between groups")[1]
    (line,) = [line for line in gaps.splitlines() if "selection ratio" in line and "1.000" in line]
    assert line.count("nobody selected") == 2


def test_audit_says_all_equal(tmp_path):
    path = tmp_path / "same.csv"
    rows = "".join(f"{y},{y},{sex}\n" for sex in "fm" for y in (0, 1) * 30)
    path.write_text("y,said,sex\n" + rows)
    gaps = run("audit", path, *ASKED).stdout.split("Gaps between groups")[1]
    assert gaps.count("all equal") == 2 * len(STATISTICS)
