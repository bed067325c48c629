"""What a report says: numbers against other functions, verdicts, sentences, Markdown."""

import json
import re

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairproj import FairProjClassifier, fairness_report
from fairproj.datasets import load_german
from fairproj.report import (
    Source,
    frontier_content,
    frontier_of_choice,
    markdown,
    model_card,
    summary,
    write_report,
)
from fairproj.selection import FairProjClassifierCV, fairness_frontier

DATA = load_german()
X, Y, SEX = DATA.data, DATA.target, DATA.sensitive_features


@pytest.fixture(scope="module", params=["classifier", "distribution"])
def model(request):
    return FairProjClassifier(epsilon=0.2, enforce=request.param, n_estimators=10).fit(
        X, Y, sensitive_features=SEX
    )


def test_numbers_are_those_of_other_functions(model):
    content = summary(model, X, Y, SEX, max_gap=0.1)
    scores = {row["name"]: row["value"] for row in content["scores"]}
    predicted, probability = model.predict(X), model.predict_proba(X)[:, 1]
    assert scores["accuracy"] == pytest.approx(np.mean(predicted == Y))
    expected = sklearn_metrics.balanced_accuracy_score(Y, predicted)
    assert scores["balanced accuracy"] == pytest.approx(expected)
    assert scores["ROC AUC"] == pytest.approx(
        sklearn_metrics.roc_auc_score(Y == "good", probability)
    )
    assert scores["log loss"] == pytest.approx(sklearn_metrics.log_loss(Y == "good", probability))
    assert scores["accuracy of the majority label"] == pytest.approx(0.7)
    report = fairness_report(model, X, Y, SEX)
    assert [row["estimate"] for row in content["gaps"]] == report.gaps["estimate"].tolist()
    female = content["data"]["groups"][0]
    assert female["rows"] == (SEX == "female").sum()
    assert female["positives"] == ((SEX == "female") & (Y == "good")).sum()
    lines = content["dynamics"]["panels"][0]["lines"]
    assert lines[0]["values"] == pytest.approx(model.history_.columns["exp_loss"].tolist())
    json.dumps(content, allow_nan=False)


@pytest.mark.parametrize("pos_label", ["good", "bad"])
def test_the_positive_label_is_the_models(pos_label):
    model = FairProjClassifier(n_estimators=5, pos_label=pos_label).fit(
        X, Y, sensitive_features=SEX
    )
    content = summary(model, X, Y, SEX)
    assert content["data"]["positive_label"] == pos_label
    groups = {row["group"]: row["positives"] for row in content["data"]["groups"]}
    assert groups["male"] == ((SEX == "male") & (pos_label == Y)).sum()


def audited(gap, n, max_gap):
    """Predictions whose true positive rates are 1 and 1 - gap, n positives in each group."""
    y = np.tile([1, 0], 2 * n)
    groups = np.repeat(["a", "b"], 2 * n)
    hit = np.tile(np.arange(n) >= gap * n, 2)
    predicted = y.copy()
    predicted[(y == 1)] = np.where((groups[y == 1] == "a") | hit, 1, 0)
    return summary(None, None, y, groups, y_pred=predicted, max_gap=max_gap)


@pytest.mark.parametrize(
    ("gap", "n", "max_gap", "verdict", "words"),
    [
        (0.0, 2000, 0.05, "met", "is met"),
        (0.2, 2000, 0.05, "not met", "is not met"),
        (0.04, 50, 0.05, "undecided", "the measured gap is within it"),
        (0.06, 50, 0.05, "undecided", "the measured gap is above it"),
        (0.2, 2000, None, "no target", "No target was named"),
    ],
)
def test_verdicts(gap, n, max_gap, verdict, words):
    content = audited(gap, n, max_gap)
    assert content["verdict"] == verdict
    assert words in content["summary"][-1]
    found = next(row for row in content["gaps"] if row["gap"] == "equal_opportunity")
    assert found["estimate"] == pytest.approx(gap)
    assert f"{100 * gap:.1f} percentage points" in content["summary"][1]


def test_a_gap_that_cannot_be_known():
    y, groups = np.array([1, 0, 0, 0] * 20), np.array(["a", "a", "b", "b"] * 20)
    content = summary(None, None, y, groups, y_pred=y, max_gap=0.1)
    assert "cannot be measured between all groups" in content["summary"][1]
    assert "neither confirmed nor ruled out" in content["summary"][-1]
    assert content["verdict"] == "undecided"
    assert "unknown" in markdown(content)


def test_half_of_a_gap_is_no_gap():
    """Group b has no positives: equalized odds is not 0, but unknown."""
    y, groups = np.array([1, 0, 0, 0] * 20), np.array(["a", "a", "b", "b"] * 20)
    content = summary(None, None, y, groups, y_pred=y, metric="equalized_odds", max_gap=0.1)
    assert "cannot be measured between all groups" in content["summary"][1]
    assert "Without rows to measure it: b. With it the gap may be larger" in content["summary"][2]
    three = np.where(np.arange(80) % 4 == 1, "c", groups)
    content = summary(None, None, y, three, y_pred=y, metric="false_positive_rate")
    assert "no difference between the groups" in content["summary"][1]
    assert "Without rows to measure it: a. With it" in content["summary"][2]


def test_half_of_a_gap_can_be_too_much():
    """Group b has no negatives, but true positive rates differ by nearly all."""
    y = np.array([1, 0] * 100 + [1] * 200)
    groups = np.repeat(["a", "b"], 200)
    predicted = np.where(groups == "a", y, 0)
    content = summary(None, None, y, groups, y_pred=predicted, metric="equalized_odds", max_gap=0.1)
    assert content["verdict"] == "not met"
    assert "It is at least" in content["summary"][1]
    assert "is not met" in content["summary"][-1]


def test_rounding_makes_no_false_sentence():
    y, groups = np.tile([1, 0], 20_000), np.repeat(["a", "b"], 20_000)
    predicted = y.copy()
    missed = np.flatnonzero((y == 1) & (groups == "b"))[:504]
    predicted[missed] = 0
    content = summary(None, None, y, groups, y_pred=predicted, max_gap=0.0501, confidence=0.999)
    said = " ".join(content["summary"])
    assert "was 5.04 percentage points" in said
    assert "at most 5.01 percentage points" in said
    assert "99.9 % confidence" in said


def test_crossed_groups_are_told_apart_by_name():
    groups = np.array([["a", "b, c"], ["a, b", "c"]] * 60)
    y = np.tile([0, 1, 1, 0], 30)
    content = summary(None, None, y, groups, y_pred=y)
    names = [row["group"] for row in content["data"]["groups"]]
    assert len(set(names)) == 2
    assert [row["rows"] for row in content["data"]["groups"]] == [60, 60]


@pytest.mark.filterwarnings("ignore:no (useful )?round", "ignore:some groups have fewer")
@pytest.mark.parametrize("constraint", ["equal_opportunity", None])
def test_the_certificate_in_words_hides_no_shortfall(constraint):
    rng = np.random.default_rng(0)
    noise, groups = rng.normal(size=(300, 2)), rng.integers(2, size=300)
    labels = rng.random(300) < 0.1
    model = FairProjClassifier(constraint, 0.01, enforce="classifier", n_estimators=3)
    model.fit(noise, labels, sensitive_features=groups)
    said = summary(model, noise, labels, groups)["certificate"]["words"]
    if constraint is None:
        assert "nothing was compared" in said[0]
    else:
        assert not model.certificate_.met
        assert model.certificate_.shortfall in said[0]


@pytest.mark.parametrize(
    ("seen", "words"),
    [(True, "was trained on these rows"), (None, "not known here"), (False, "Intervals hold if")],
)
def test_the_first_caveat_is_whether_the_rows_were_seen(model, seen, words):
    content = summary(model, X, Y, SEX, source=Source(seen=seen))
    assert words in content["caveats"][0]


def test_any_classifier():
    numbers = X.select_dtypes("number")
    model = LogisticRegression(max_iter=5000).fit(numbers, Y)
    content = summary(model, numbers, Y, SEX)
    assert content["certificate"] is None
    assert ["Model", "LogisticRegression"] in content["asked"]


@pytest.mark.parametrize("pos_label", ["good", "bad"])
def test_models_inside_others(pos_label):
    """A chooser and a pipeline: the positive label, certificate and settings of what is inside."""
    template = FairProjClassifier(n_estimators=5, pos_label=pos_label)
    chooser = FairProjClassifierCV(0.9, estimator=template, epsilons=[0.1], cv=2)
    numbers = X.select_dtypes("number")
    piped = make_pipeline(StandardScaler(), template)
    for outer, table in (
        (chooser.fit(X, Y, sensitive_features=SEX), X),
        (piped.fit(numbers, Y, fairprojclassifier__sensitive_features=SEX), numbers),
    ):
        content = summary(outer, table, Y, SEX)
        assert content["data"]["positive_label"] == pos_label
        assert sum(g["positives"] for g in content["data"]["groups"]) == (pos_label == Y).sum()
        assert content["certificate"]["words"]
        assert content["dynamics"]["rounds"] > 0
        asked = dict(content["asked"])
        assert "FairProjClassifier" in asked["Model"]
        assert asked["Constraint in training"]
    assert dict(summary(chooser, X, Y, SEX)["asked"])["How epsilon was chosen"] == chooser.reason_


def test_a_frontier_is_of_the_gap_of_the_report(model):
    frontier = fairness_frontier(
        FairProjClassifier(n_estimators=5), X, Y, sensitive_features=SEX, epsilons=[0.1, 0.3], cv=2
    )
    with pytest.raises(ValueError, match="frontier is about equal_opportunity and the report"):
        summary(
            model, X, Y, SEX, metric="demographic_parity", frontier=frontier_content([frontier])
        )
    found = frontier_content([frontier], "demographic_parity")
    text = markdown(summary(model, X, Y, SEX, metric="demographic_parity", frontier=found))
    assert "| gap of the selection rates (demographic parity) | Not dominated |" in text
    assert "\n\n\n" not in text


def test_frontiers(tmp_path):
    frontier = fairness_frontier(
        FairProjClassifier(n_estimators=5),
        X,
        Y,
        sensitive_features=SEX,
        epsilons=[0.1, 0.3],
        cv=2,
        name="ours",
    )
    found = frontier_content([frontier], chosen=("ours", 0.3))
    assert [point["chosen"] for point in found["points"]] == [False, True]
    assert [point["best"] for point in found["points"]] == frontier.pareto().tolist()
    assert found["points"][0]["score"] == pytest.approx(frontier.frame["accuracy"][0])
    chooser = FairProjClassifierCV(
        0.9, estimator=FairProjClassifier(n_estimators=5), epsilons=[0.1, 0.3], cv=2
    ).fit(X, Y, sensitive_features=SEX)
    table = chooser.table_.astype(object).where(chooser.table_.notna(), None).to_dict("records")
    choice = {"table": table, "metric": "equal_opportunity", "scoring": "accuracy"}
    choice |= {"reason": chooser.reason_, **chooser.best_params_}
    found = frontier_of_choice(choice)
    assert sum(point["chosen"] for point in found["points"]) == 1
    for row in table:
        beaten = any(
            other["score"] >= row["score"]
            and other["gap"] <= row["gap"]
            and (other["score"], other["gap"]) != (row["score"], row["gap"])
            for other in table
            if other["enforce"] == row["enforce"]
        )
        point = next(
            p
            for p in found["points"]
            if p["value"] == row["epsilon"]
            and p["series"] == {"classifier": "closed loop"}.get(row["enforce"], "training weights")
        )
        assert point["best"] == (not beaten)


def test_markdown_and_card_hold_the_same_numbers(model):
    content = summary(model, X, Y, SEX, max_gap=0.1, source=Source("german.csv", command="run me"))
    for text in (markdown(content), model_card(content)):
        for row in content["gaps"]:
            assert f"{row['estimate']:.3f} ({row['low']:.3f} to {row['high']:.3f})" in text
        for sentence in content["summary"]:
            assert sentence in text
        widths = {
            line.count("|") - line.count("\\|")
            for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
            for line in block.splitlines()[:1]
        }
        assert min(widths) >= 3


def test_hostile_names_stay_text_in_markdown():
    names = ["<script>alert(1)</script>", "a|b\n# title [x](y)"]
    groups = np.repeat(names, 40)
    y = np.tile([0, 1], 40)
    text = markdown(summary(None, None, y, groups, y_pred=y))
    assert "<script>" not in text.replace("\\<script", "")
    assert "\n# title" not in text


def test_files_are_of_the_kind_that_their_name_tells(model, tmp_path):
    content = summary(model, X, Y, SEX)
    for name in ("a.html", "a.md", "a.json"):
        write_report(content, tmp_path / name)
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == content
    assert (tmp_path / "a.html").read_text("utf-8").startswith("<!")
    with pytest.raises(ValueError, match=r"name a \.html, \.md or \.json"):
        write_report(content, tmp_path / "a.pdf")
