"""What a report says about training: all its gaps, opposite labels, class weights."""

import json
import re
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from commands import run
from fairproj import FairBoostClassifier
from fairproj.constraints import find_statistic
from fairproj.datasets import load_german
from fairproj.report import Source, _charts, model_card, summarize_estimator
from fairproj.report._markdown import markdown
from fairproj.report._page import html
from fairproj.report._price import _change
from fairproj.report._training import error_weights, is_limited, not_frequencies, opposite_labels
from fairproj.report._words import certificate_terms, certificate_words, decision, not_shown

DATA = load_german()
X, Y, SEX = DATA.data, DATA.target, DATA.sensitive_features
BOTH = ["demographic_parity", "equal_opportunity"]


@pytest.fixture(scope="module")
def model():
    estimator = FairBoostClassifier(
        BOTH,
        [0.08, 0.05],
        n_estimators=12,
        baseline=True,
        class_weight="balanced",
        pos_label=sorted(set(Y))[0],
        random_state=0,
    )
    return estimator.fit(X, Y, sensitive_features=SEX)


@pytest.fixture(scope="module")
def content(model):
    return summarize_estimator(
        model,
        X,
        Y,
        sensitive_features=SEX,
        metric=BOTH[0],
        max_gap=0.08,
        other_targets={BOTH[1]: 0.05},
        source=Source(seen=False, weights="w"),
    )


def words(text):
    return re.sub(r"\W+", " ", text)


def test_every_constrained_gap_is_in_the_comparison(content):
    names = [row["name"] for row in content["price"]["scores"]]
    for target, limit in zip(content["targets"], ("0.08", "0.05"), strict=True):
        assert f"{target['name']} (at most {limit})" in names
        assert f"The {target['name']} is " in content["price"]["sentence"]
    asked = dict(content["asked"])
    assert asked["Largest gaps allowed"] == "; ".join(
        f"{one['name']} {one['max_gap']:g}" for one in content["targets"]
    )


def test_where_one_gap_is_shown_the_others_are_named(content):
    sentence = not_shown(content["targets"])
    first, second = content["targets"]
    assert sentence == (
        f"The gap shown here is the {first['name']}; the {second['name']} is not shown."
    )
    for text in (html(content), markdown(content), model_card(content)):
        assert words(sentence) in words(text)
    assert f"The largest {second['name']} allowed is 0.05." in html(content)
    assert not not_shown(content["targets"][:1])


def test_the_certificate_names_all_gaps(model):
    first = certificate_words(model.certificate_, (), model)[0]
    assert all(f"{event}" in first for event in model.history_.events)
    assert "of at most" in first
    assert "of at most" not in certificate_words(model.certificate_)[0]


def test_a_gap_is_said_to_be_limited_only_if_it_was(model):
    assert decision(model, "equal_opportunity")[0].endswith("limited at this threshold only.")
    other = decision(model, "equalized_odds")[0]
    assert "limited at this threshold" not in other
    assert "training limited the gap in selection rate and true positive rate, and not" in other
    assert decision(model)[0].endswith("; the gaps were limited at this threshold only.")
    odds = FairBoostClassifier("equalized_odds", 0.9, n_estimators=20, random_state=0)
    odds.fit(X, Y, sensitive_features=SEX)
    assert is_limited(find_statistic("equal_opportunity"), odds)


class _History(list):
    closed_loop, n_kept = True, 1


def with_multipliers(model, flipped, multipliers):
    """The model as its report reads it, had training ended with these multipliers."""
    last = SimpleNamespace(observed=SimpleNamespace(multipliers=multipliers))
    return SimpleNamespace(
        certificate_=replace(model.certificate_, flipped=flipped, event="selection rate"),
        history_=_History([last]),
        constraints=model.constraints,
        max_gap=model.max_gap,
        pos_label=model.pos_label,
        classes_=model.classes_,
        group_values_=model.group_values_,
    )


@pytest.mark.parametrize(
    ("flipped", "multipliers", "expected"),
    [
        (0, (0.0, 0.0, 0.0, 0.0), ""),
        (1, (0.0, -1.0, 0.0, 1.0), "male/{positive} (group/label)"),
        (2, (1.0, 0.0, -1.0, 0.0), "female/{positive} and male/{negative} (group/label)"),
        (
            1,
            (1.0, 0.0, -1.0, 0.0),
            "1 of these 2 combinations of group and label: female/{positive}; male/{negative}",
        ),
        (3, (1.0, 0.0, -1.0, 0.0), "3 of the combinations of group and label"),
    ],
)
def test_opposite_labels_are_named(model, flipped, multipliers, expected):
    """A rate that is too high makes correct predictions cost where they raise it."""
    like = with_multipliers(model, flipped, multipliers)
    labels = model.classes_.tolist()
    sentence = opposite_labels(like)
    if not expected:
        assert sentence == ""
        return
    expected = expected.format(positive=labels[0], negative=labels[1])
    assert f"learned from the opposite label for {expected}." in sentence


def test_very_many_opposite_labels_are_counted(model):
    like = with_multipliers(model, 60, (1.0, 0.0) * 60)
    like.group_values_ = [f"group {number}" for number in range(60)]
    sentence = opposite_labels(like)
    assert "for 60 of the combinations of group and label." in sentence
    assert "group 0" not in sentence


def test_opposite_labels_are_in_the_caveats():
    model = FairBoostClassifier(
        "demographic_parity", 0.0, n_estimators=60, class_weight="balanced", random_state=0
    )
    noise = np.random.default_rng(0).random(len(Y)) < 0.1
    groups = np.where((sorted(set(Y))[0] == Y) ^ noise, "first", "second")  # nearly the label
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such a gap cannot be closed by a useful model
        model.fit(X, Y, sensitive_features=groups)
    assert model.certificate_.flipped, "nothing to name"
    sentence = opposite_labels(model)
    content = summarize_estimator(model, X, Y, sensitive_features=groups)
    assert sentence in content["caveats"]
    assert sentence in certificate_words(model.certificate_, (), model)


def test_class_weights_are_shown(model, content):
    weighted = "balanced, so that both labels weigh the same in total"
    subject = dict(content["subject"])
    assert subject["Errors weighted"] == error_weights(model) == weighted
    assert subject["Rows weighted"] == "in training, by the column w"
    assert "balanced accuracy" in [row["name"] for row in content["price"]["scores"]]
    assert "The balanced accuracy, " in content["summary"][1]
    note = not_frequencies(model)
    assert content["calibration"]["note"] == note
    assert any("whereas training weighted errors" in text for text in content["not_looked_at"])
    for text in (html(content), markdown(content), model_card(content)):
        assert note in text
        assert "Errors weighted" in text


def test_class_weights_by_label():
    model = FairBoostClassifier(class_weight={"bad": 5, "good": 1})
    assert error_weights(model) == "by label: 'bad' 5, 'good' 1"
    assert error_weights(FairBoostClassifier()) == not_frequencies(FairBoostClassifier()) == ""


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((-0.087, -0.046), "lowers the accuracy by 4.6 to 8.7 percentage points"),
        ((0.01, 0.02), "raises the accuracy by 1.0 to 2.0 percentage points"),
        ((-0.01, 0.02), "changes the accuracy by -1.0 to +2.0 percentage points, which includes"),
    ],
)
def test_the_change_of_the_accuracy_in_words(ends, expected):
    assert _change(*ends).startswith(expected)


def test_scales_that_start_alike_are_not_said_to_differ():
    axes = [_charts.axis([0, 1]), _charts.axis([0, 1])]
    assert not _charts.start_apart(axes)
    assert _charts.start_apart([*axes, _charts.axis([0.5, 1.5])])


def test_commands_name_the_label_and_the_weights(tmp_path, model):
    data, path = tmp_path / "german.csv", tmp_path / "model.fairproj"
    X.assign(risk=Y, sex=SEX).to_csv(data, index=False)
    task = ("--label", "risk", "--sensitive", "sex", "--rounds", 5, "--class-weight", "balanced")
    targets = ("--constraint", BOTH[0], "--max-gap", 0.5, "--constraint", BOTH[1], "--max-gap", 0.5)
    first, last = model.classes_.tolist()
    printed = " ".join(run("train", data, *task, *targets, "-o", path).stdout.split())
    assert f"'{last}' is positive because it is last in sort order; pass --positive" in printed
    asked = (*task, *targets, "--positive", first, "-o", path, "--force")
    printed = " ".join(run("train", data, *asked).stdout.split())
    assert "in sort order" not in printed
    assert re.search(r"class weight +balanced", run("info", path).stdout)
    predicted = run("predict", path, data, "-o", tmp_path / "p.csv").stdout
    assert "not frequencies of the label" in " ".join(predicted.split())
    again = run("predict", path, data, "-o", tmp_path / "p.csv", "--force", "--json").stdout
    assert json.loads(again)["rows"] == len(X)
    exported = " ".join(run("export", path, "-o", tmp_path / "m.txt").stdout.split())
    assert f"predicts the probability of '{last}'; use the threshold 0.5: below it" in exported
    by = " ".join(run("audit", path, data, "--by", "housing", "--simultaneous").stdout.split())
    assert "The gap shown here is the" in by
    assert "judgement" in by
    assert "not corrected for the number of values, so either may be wider." in by


@pytest.mark.parametrize("weight", [None, "balanced"])
def test_errors_are_called_weighted_where_they_are(weight):
    data = load_german()
    model = FairBoostClassifier(n_estimators=3, class_weight=weight, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that three rounds are of no use
        model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    said = " ".join(certificate_words(model.certificate_, (), model))
    assert ("errors weighted by label" in said) == (weight is not None)
    terms = certificate_terms(model.certificate_)
    for term in ("margin", "edge", "total variation", "vacuous", "Multipliers", " q ", " w "):
        assert term in terms
