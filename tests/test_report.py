"""The content of a report: numbers against other functions, verdicts, sentences, Markdown."""

import json
import re

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairproj import FairBoostClassifier, FairnessReport, FairProjClassifier, plot_gap_curve
from fairproj.constraints import AllOf, FunctionConstraint, equalized_odds, statistic_names
from fairproj.datasets import load_german
from fairproj.metrics import gap_curve
from fairproj.report import (
    Source,
    frontier_content,
    model_card,
    search_content,
    summarize_estimator,
    summarize_predictions,
    write_report,
)
from fairproj.report._frontier import METHODS
from fairproj.report._markdown import markdown
from fairproj.selection import GapSearchCV, fairness_frontier

DATA = load_german()
X, Y, SEX = DATA.data, DATA.target, DATA.sensitive_features


@pytest.fixture(scope="module", params=METHODS)
def model(request):
    estimator = {
        "FairBoostClassifier": FairBoostClassifier(
            max_gap=0.2, n_estimators=20, learning_rate=0.3, random_state=0
        ),
        "FairProjClassifier": FairProjClassifier(epsilon=0.2, n_estimators=10),
    }[request.param]
    return estimator.fit(X, Y, sensitive_features=SEX)


def report_on(model, **parameters):
    return summarize_estimator(model, X, Y, sensitive_features=SEX, **parameters)


def audit(y, predicted, groups, **parameters):
    return summarize_predictions(y, predicted, sensitive_features=groups, **parameters)


def test_numbers_are_those_of_other_functions(model):
    content = report_on(model, max_gap=0.1)
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
    report = FairnessReport.from_estimator(model, X, Y, sensitive_features=SEX)
    assert [row["estimate"] for row in content["gaps"]] == report.gaps["estimate"].tolist()
    female = content["data"]["groups"][0]
    assert female["rows"] == (SEX == "female").sum()
    assert female["positives"] == ((SEX == "female") & (Y == "good")).sum()
    lines = content["dynamics"]["panels"][0]["lines"]
    assert lines[0]["values"] == pytest.approx(model.history_.columns["loss"].tolist())
    json.dumps(content, allow_nan=False)


@pytest.mark.parametrize("pos_label", ["good", "bad"])
def test_the_positive_label_is_the_models(pos_label):
    model = FairProjClassifier(n_estimators=5, pos_label=pos_label).fit(
        X, Y, sensitive_features=SEX
    )
    content = report_on(model)
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
    return audit(y, predicted, groups, max_gap=max_gap)


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
    row = next(row for row in content["gaps"] if row["gap"] == "equal_opportunity")
    assert row["estimate"] == pytest.approx(gap)
    assert f"{100 * gap:.1f} percentage points" in content["summary"][1]


def test_a_gap_that_cannot_be_known():
    y, groups = np.array([1, 0, 0, 0] * 20), np.array(["a", "a", "b", "b"] * 20)
    content = audit(y, y, groups, max_gap=0.1)
    assert "cannot be measured between all groups" in content["summary"][1]
    assert "neither confirmed nor ruled out" in content["summary"][-1]
    assert content["verdict"] == "undecided"
    assert "unknown" in markdown(content)


def test_half_of_a_gap_is_no_gap():
    """Group b has no positives: equalized odds is not 0, but unknown."""
    y, groups = np.array([1, 0, 0, 0] * 20), np.array(["a", "a", "b", "b"] * 20)
    content = audit(y, y, groups, metric="equalized_odds", max_gap=0.1)
    assert "cannot be measured between all groups" in content["summary"][1]
    assert "Without rows to measure it: b. With it the gap may be larger" in content["summary"][2]
    three = np.where(np.arange(80) % 4 == 1, "c", groups)
    content = audit(y, y, three, metric="false_positive_rate_parity")
    assert "no difference between the groups" in content["summary"][1]
    assert "Without rows to measure it: a. With it" in content["summary"][2]


def test_half_of_a_gap_can_be_too_much():
    """Group b has no negatives, but true positive rates differ by nearly all."""
    y = np.array([1, 0] * 100 + [1] * 200)
    groups = np.repeat(["a", "b"], 200)
    predicted = np.where(groups == "a", y, 0)
    content = audit(y, predicted, groups, metric="equalized_odds", max_gap=0.1)
    assert content["verdict"] == "not met"
    assert "It is at least" in content["summary"][1]
    assert "is not met" in content["summary"][-1]


def test_rounding_makes_no_false_sentence():
    y, groups = np.tile([1, 0], 20_000), np.repeat(["a", "b"], 20_000)
    predicted = y.copy()
    missed = np.flatnonzero((y == 1) & (groups == "b"))[:504]
    predicted[missed] = 0
    content = audit(y, predicted, groups, max_gap=0.0501, confidence=0.999)
    text = " ".join(content["summary"])
    assert "was 5.04 percentage points" in text
    assert "at most 5.01 percentage points" in text
    assert "99.9 % confidence" in text


def test_crossed_groups_have_distinct_names():
    groups = np.array([["a", "b, c"], ["a, b", "c"]] * 60)
    y = np.tile([0, 1, 1, 0], 30)
    content = audit(y, y, groups)
    names = [row["group"] for row in content["data"]["groups"]]
    assert len(set(names)) == 2
    assert [row["rows"] for row in content["data"]["groups"]] == [60, 60]


@pytest.mark.filterwarnings("ignore:the model says the same", "ignore:some groups have fewer")
@pytest.mark.parametrize("constraint", ["equal_opportunity", None])
def test_the_certificate_in_words_hides_no_shortfall(constraint):
    rng = np.random.default_rng(0)
    noise, groups = rng.normal(size=(300, 2)), rng.integers(2, size=300)
    labels = rng.random(300) < 0.1
    model = FairBoostClassifier(constraint, 0.01, n_estimators=3)
    model.fit(noise, labels, sensitive_features=groups)
    content = summarize_estimator(model, noise, labels, sensitive_features=groups)
    words = content["certificate"]["words"]
    if constraint is None:
        assert "nothing was compared" in words[0]
    else:
        assert not model.certificate_.met
        assert not model.certificate_.useful
        assert "The model is not useful" in words[0]
        assert words[0].split("The model is")[1] in " ".join(content["summary"])


@pytest.mark.parametrize(
    ("seen", "words"),
    [(True, "was trained on these rows"), (None, "not known here"), (False, "Intervals hold if")],
)
def test_the_first_caveat_is_whether_the_rows_were_seen(model, seen, words):
    content = report_on(model, source=Source(seen=seen))
    assert words in content["caveats"][0]


def test_any_classifier():
    numbers = X.select_dtypes("number")
    model = LogisticRegression(max_iter=5000).fit(numbers, Y)
    content = summarize_estimator(model, numbers, Y, sensitive_features=SEX)
    assert content["certificate"] is None
    assert content["dynamics"] is None
    assert ["Model", "LogisticRegression"] in content["asked"]


@pytest.mark.parametrize("pos_label", ["good", "bad"])
def test_models_inside_others(pos_label):
    """A search and a pipeline: the positive label, certificate and settings of what is inside."""
    template = FairProjClassifier(n_estimators=5, pos_label=pos_label)
    search = GapSearchCV(template, 0.9, param_values=[0.1], cv=2)
    numbers = X.select_dtypes("number")
    piped = make_pipeline(StandardScaler(), template)
    for outer, table in (
        (search.fit(X, Y, sensitive_features=SEX), X),
        (piped.fit(numbers, Y, fairprojclassifier__sensitive_features=SEX), numbers),
    ):
        content = summarize_estimator(outer, table, Y, sensitive_features=SEX)
        assert content["data"]["positive_label"] == pos_label
        assert sum(g["positives"] for g in content["data"]["groups"]) == (pos_label == Y).sum()
        assert content["certificate"]["words"]
        assert content["dynamics"]["rounds"] > 0
        asked = dict(content["asked"])
        assert "FairProjClassifier" in asked["Model"]
        assert asked["Constraint in training"]
    assert dict(report_on(search)["asked"])["How epsilon was chosen"] == search.reason_


def test_a_frontier_is_of_the_gap_of_the_report(model):
    frontier = fairness_frontier(
        FairProjClassifier(n_estimators=5),
        X,
        Y,
        sensitive_features=SEX,
        param_values=[0.1, 0.3],
        cv=2,
    )
    with pytest.raises(ValueError, match="frontier is about equal_opportunity and the report"):
        report_on(model, metric="demographic_parity", frontier=frontier_content([frontier]))
    selected = frontier_content([frontier], "demographic_parity")
    text = markdown(report_on(model, metric="demographic_parity", frontier=selected))
    assert (
        "| gap of the selection rates (demographic parity) | On the frontier of its series |"
        in text
    )
    assert "\n\n\n" not in text


def test_points_of_frontiers():
    frontier = fairness_frontier(
        FairProjClassifier(n_estimators=5),
        X,
        Y,
        sensitive_features=SEX,
        param_values=[0.1, 0.3],
        cv=2,
        name=METHODS["FairProjClassifier"],
    )
    chosen = ("FairProj, the paper", 0.3)
    content = frontier_content([frontier], "true_positive_rate_parity", chosen=chosen)
    assert content["gap"] == "equal_opportunity"
    points = content["points"]
    assert [point["chosen"] for point in points] == [False, True]
    assert [point["best"] for point in points] == frontier.pareto().tolist()
    assert [point["parameter"] for point in points] == ["epsilon"] * 2
    for name in ("accuracy", "accuracy_se"):
        shown = [point[name.replace("accuracy", "score")] for point in points]
        assert shown == pytest.approx(frontier.frame[name].tolist())


def recorded(search, method):
    """A search as the command line records it."""
    results = search.cv_results_
    n_folds = search.n_splits_
    candidates = [
        {
            "value": float(value),
            "score": float(results["mean_test_score"][i]),
            "score_se": float(results["std_test_score"][i]) / np.sqrt(n_folds - 1),
            "gap": float(results["mean_test_gap"][i]),
            "gap_se": float(results["std_test_gap"][i]) / np.sqrt(n_folds - 1),
            "bound": float(results["gap_bound"][i]),
            "meets": bool(results["meets_gap"][i]),
            "useful": bool(results["useful"][i]),
        }
        for i, value in enumerate(results["param_max_gap"])
    ]
    return {
        "param_name": "max_gap",
        "value": search.best_params_["max_gap"],
        "method": method,
        "metric": "equal_opportunity",
        "scoring": "accuracy",
        "rule": search.selection_rule,
        "max_gap": search.max_gap,
        "met": search.met_,
        "reason": search.reason_,
        "candidates": candidates,
    }


@pytest.mark.filterwarnings("ignore:some groups have fewer")
def test_candidates_of_a_search():
    estimator = FairBoostClassifier(n_estimators=20, learning_rate=0.3)
    search = GapSearchCV(estimator, 0.9, param_values=[0.02, 0.1, 0.3], cv=2)
    search.fit(X, Y, sensitive_features=SEX)
    record = recorded(search, "FairBoostClassifier")
    content = search_content(json.loads(json.dumps(record)))
    assert [point["value"] for point in content["points"] if point["chosen"]] == [record["value"]]
    assert {point["series"] for point in content["points"]} == {"FairBoost"}
    assert search.reason_ in content["note"]
    rows = record["candidates"]
    for row, point in zip(rows, content["points"], strict=True):
        assert (point["score"], point["gap"]) == (row["score"], row["gap"])
        beaten = any(
            (other["score"] >= row["score"] and other["gap"] < row["gap"])
            or (other["score"] > row["score"] and other["gap"] <= row["gap"])
            for other in rows
            if other["useful"]
        )
        assert point["best"] == (row["useful"] and not beaten)
    text = markdown(report_on(search, frontier=content))
    assert f"| FairBoost | max\\_gap {record['value']:g} |" in text


@pytest.mark.parametrize("name", statistic_names())
def test_every_gap_by_every_name(name):
    y, groups = np.tile([1, 0, 1, 1], 40), np.repeat(["a", "b"], 80)
    predicted = np.where(np.arange(160) % 5 == 0, 1 - y, y)
    content = audit(y, predicted, groups, metric=name, max_gap=0.5)
    row = next(row for row in content["gaps"] if row["gap"] == content["target"]["metric"])
    assert row["name"] == content["target"]["name"] == dict(content["asked"])["Gap looked at"]
    assert row["name"] in content["summary"][1]
    frontier = {"gap": row["gap"], "points": []}
    assert audit(y, predicted, groups, metric=name, frontier=frontier)["frontier"] == frontier


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ("true_positive_rate_parity", "equal opportunity"),
        (equalized_odds, "equalized odds"),
        (AllOf(["equal_opportunity", "false_positive_rate_parity"]), "equalized odds"),
        (FunctionConstraint(lambda group, label: float(group == "male")), "the user's own"),
        (None, "none"),
    ],
)
def test_the_constraint_in_words(constraints, words):
    model = FairProjClassifier(constraints, 1.0, n_estimators=2).fit(X, Y, sensitive_features=SEX)
    assert dict(report_on(model)["asked"])["Constraint in training"].startswith(words)


def test_each_method_has_its_own_words(model):
    """FairBoost bounds a gap, the paper the training weights; neither borrows the other's words."""
    content = report_on(model)
    asked = dict(content["asked"])
    parameter = "max_gap" if "max_gap" in model.get_params() else "epsilon"
    assert asked[f"Bound in training ({parameter})"] == "0.2"
    text = json.dumps([content["asked"], content["dynamics"], content["certificate"]["words"]])
    assert "closed loop" not in text
    other = {"max_gap": ["epsilon", "training weights"], "epsilon": ["max_gap", "signed cost"]}
    for word in other[parameter]:
        assert word not in text


def test_rows_of_one_class(model):
    """Scores that need both classes are left out, and the positive label is the model's."""
    good = Y == "good"
    content = summarize_estimator(model, X[good], Y[good], sensitive_features=SEX[good])
    assert content["data"]["positive_label"] == "good"
    assert [row["name"] for row in content["scores"]][-1] == "accuracy of the majority label"
    assert all(group["positive_share"] == 1 for group in content["data"]["groups"])
    groups = np.repeat(["a", "b"], 20)
    for label, shown in ((1, "1"), (0, "unknown")):
        content = audit(np.full(40, label), np.full(40, label), groups)
        assert content["data"]["positive_label"] == shown
        assert [g["positives"] for g in content["data"]["groups"]] == [20 * label] * 2


def test_markdown_and_card_hold_the_same_numbers(model):
    content = report_on(model, max_gap=0.1, source=Source("german.csv", command="run me"))
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
    text = markdown(audit(y, y, groups))
    assert "<script>" not in text.replace("\\<script", "")
    assert "\n# title" not in text


@pytest.mark.parametrize("name", ["r.html", "r.md", "r.json", "card.md"])
def test_control_characters_are_written_as_their_codes(tmp_path, name):
    groups = np.tile(["m\x1b[31m\x07", "f\u202e\x9b"], 50)
    labels = np.repeat(["no\x1b]0;x\x07", "yes"], 50)
    content = summarize_predictions(labels, labels, sensitive_features=groups, pos_label="yes")
    if name == "card.md":
        text = model_card(content)
    else:
        write_report(content, tmp_path / name)
        text = (tmp_path / name).read_text("utf-8")
    assert set(text) & {"\x1b", "\x07", "\x9b", "\u202e"} == set()
    assert "\\x1b" in text.replace("\\\\", "\\") or "\\u001b" in text


def test_the_kind_of_file_follows_from_its_name(model, tmp_path):
    content = report_on(model)
    for name in ("a.html", "a.md", "a.json"):
        write_report(content, tmp_path / name)
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == content
    assert (tmp_path / "a.html").read_text("utf-8").startswith("<!")
    with pytest.raises(ValueError, match=r"name a \.html, \.md or \.json"):
        write_report(content, tmp_path / "a.pdf")


def test_a_plot_of_the_gap_curve():
    import matplotlib.pyplot as plt

    y, groups, score = np.tile([0, 1, 1], 20), np.repeat(["a", "b"], 30), np.arange(60) % 7 / 7
    curve = gap_curve(y, score, sensitive_features=groups, statistic="selection_ratio")
    top, bottom = plot_gap_curve(curve, threshold=0.4, max_gap=0.2)
    for line, column in ((top.lines[0], "gap"), (bottom.lines[0], "accuracy")):
        np.testing.assert_array_equal(line.get_xdata(), curve["threshold"])
        np.testing.assert_array_equal(line.get_ydata(), curve[column])
    np.testing.assert_array_equal(bottom.lines[1].get_ydata(), curve["selection_rate"])
    named = [text.get_text() for text in top.get_legend().get_texts()]
    assert named == ["gap", "max_gap 0.2", "threshold in use, 0.4"]
    assert top.lines[1].get_ydata()[0] == 0.2
    assert bottom.lines[-1].get_xdata()[0] == 0.4
    again = plot_gap_curve(curve, ax=plt.subplots(1, 2)[1])
    assert [len(ax.lines) for ax in again] == [1, 2]
    with pytest.raises(ValueError, match="ax must be two matplotlib axes, got 1"):
        plot_gap_curve(curve, ax=again[0])
    plt.close("all")
