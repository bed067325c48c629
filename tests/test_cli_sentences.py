"""Sentences that a reader of the output could take wrongly."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from commands import run
from fairproj import FairBoostClassifier, load
from fairproj.cli._show import NOT_USEFUL
from fairproj.cli._train_show import cost_warning, outcome
from fairproj.datasets import load_german
from fairproj.inspection import Inspection
from fairproj.report._words import certificate_words

# A constraint that costs much


def make_unequal(n_rows=1600, seed=1):
    """Rows whose label depends much on the group, so that closing the gap costs much."""
    random = np.random.default_rng(seed)
    first = random.random(n_rows) < 0.5
    x = random.normal(size=n_rows)
    label = x + 2.0 * first + random.normal(0, 0.5, n_rows) > 2.2
    noise = random.normal(0, 0.2, n_rows)
    return pd.DataFrame(
        {
            "x": x,
            "seen": first + noise,
            "group": np.where(first, "a", "b"),
            "y": np.where(label, "yes", "no"),
        }
    )


@pytest.mark.parametrize("options", [(), ("--class-weight", "balanced")])
def test_a_constraint_that_costs_much_is_warned_of(tmp_path, options):
    data = tmp_path / "d.csv"
    make_unequal().to_csv(data, index=False)
    task = ("--label", "y", "--sensitive", "group", "--constraint", "demographic_parity")
    task = (*task, "--rounds", 20, *options)
    costly = run("train", data, *task, "--max-gap", 0.02, "-o", tmp_path / "a.fairproj")
    assert "warning: the constraint costs much: on the 400 test rows the " in costly.stderr
    assert " percentage points less" in costly.stderr
    assert "; try a larger --max-gap, other groups with --sensitive or " in costly.stderr
    cheap = run("train", data, *task, "--max-gap", 0.5, "-o", tmp_path / "b.fairproj")
    assert "costs much" not in cheap.stderr


def result_of(scores, *, class_weight=None, verdict="met", useful=True, selection_rate=None):
    """What training gives, as the warning reads it."""
    model = SimpleNamespace(
        certificate_=None,
        _useful=useful,
        class_weight=class_weight,
        selection_rate=selection_rate,
        price_=SimpleNamespace(n_rows=400, rows="test rows"),
    )
    if not useful:
        model.certificate_ = SimpleNamespace(train_error=0.5)
    rows = [
        {"name": name, "model": own, "plain": plain, "difference": own - plain}
        for name, (own, plain) in scores.items()
    ]
    constant = [{"name": "accuracy of the majority label", "value": 0.8}]
    content = {"price": {"scores": rows}, "scores": constant, "verdict": verdict}
    record = SimpleNamespace(confirmation=None, search=None)
    return SimpleNamespace(model=model, record=record, content=content)


@pytest.mark.parametrize(
    ("scores", "options", "expected"),
    [
        ({"accuracy": (0.85, 0.94)}, {}, ""),
        (
            {"accuracy": (0.421, 0.69)},
            {"class_weight": "balanced", "verdict": "not met"},
            "the accuracy is 42.1 % with it and 69.0 % without, 26.9 percentage points less, and "
            "the target is not met there; try",
        ),
        (
            {"accuracy": (0.86, 0.9), "balanced accuracy": (0.7, 0.85)},
            {"class_weight": "balanced"},
            "the balanced accuracy is 70.0 % with it and 85.0 % without, 15.0 percentage points",
        ),
        (
            {"accuracy": (0.79, 0.83)},
            {},
            "and always predicting the more common label would be correct for 80.0 %; try",
        ),
        ({"accuracy": (0.79, 0.83)}, {"class_weight": "balanced"}, ""),
        ({"accuracy": (0.75, 0.79)}, {}, ""),  # the plain model is no better than that either
        ({"accuracy": (0.5, 0.83)}, {"useful": False}, ""),  # another warning says so
    ],
)
def test_what_counts_as_much(scores, options, expected):
    result = result_of(scores, **options)
    warning = cost_warning(result)
    assert expected in warning
    assert bool(warning) == bool(expected)
    if not options.get("useful", True):
        assert outcome(result.model, result.record)[0] == NOT_USEFUL


def test_an_option_that_is_in_use_is_not_advised():
    result = result_of({"accuracy": (0.5, 0.83)}, selection_rate=0.2)
    assert cost_warning(result).endswith("try a larger --max-gap or other groups with --sensitive")


# The tables of check


@pytest.fixture(scope="module")
def many_groups(tmp_path_factory):
    """What check prints of 12 groups, of which a column tells the smallest one."""
    random = np.random.default_rng(0)
    group = np.repeat([f"g{at:02}" for at in range(12)], [*range(100, 210, 10), 60])
    frame = pd.DataFrame({"noise": random.normal(size=len(group)), "group": group})
    frame["told"] = np.where(group == "g11", 2.0, 0.0) + random.normal(size=len(group))
    frame["y"] = random.choice(["no", "yes"], len(group))
    path = tmp_path_factory.mktemp("groups") / "d.csv"
    frame.to_csv(path, index=False)
    return " ".join(run("check", path, "--label", "y", "--sensitive", "group").stdout.split())


def test_check_says_which_groups_of_many_are_listed(many_groups):
    assert "in the true positive rate (the smallest 10 of 12 groups)" in many_groups


def test_check_says_why_one_column_tells_more_than_all_together(many_groups):
    assert "(of the 4 largest groups, the one told best); one column alone has more because" in (
        many_groups
    )


@pytest.mark.parametrize(
    ("n_groups", "best", "expected"),
    [
        (2, 0.6, "all features together tell sex with an AUC of 0.700"),
        (2, 0.8, "an AUC of 0.700; one column alone has more because it is measured otherwise: by"),
        (5, 0.6, "an AUC of 0.700 (of the 4 largest groups, the one told best)"),
        (5, 0.8, "told best); one column alone has more because it is measured otherwise: of all"),
    ],
)
def test_what_all_features_tell_in_words(n_groups, best, expected):
    names, proxies = [f"g{at}" for at in range(n_groups)], pd.DataFrame({"auc": [best, 0.5]})
    none = pd.DataFrame()
    words = Inspection(proxies, 0.7, none, none, none, [], names, "sex").joint_words
    assert expected in words
    assert ("has more" in words) == (best > 0.7)


# The limit of a search


SEARCHED = "The candidate that the search chose was trained for a gap of at most "
UNBOUNDED = "so no constraint was at work: this is the plain model"


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    path = tmp_path_factory.mktemp("german") / "german.csv"
    load_german().frame.to_csv(path, index=False)
    return path


def test_a_search_speaks_of_the_gap_that_was_asked_for(german, tmp_path):
    path = tmp_path / "m.fairproj"
    task = ("--label", "credit", "--sensitive", "sex", "--rounds", 20)
    trained = run("train", german, *task, "--search", "--max-gap", 0.1, "-o", path).stdout
    told = run("info", path).stdout
    run("report", path, german, "-o", tmp_path / "r.json")
    written = json.loads((tmp_path / "r.json").read_text())["certificate"]["words"][0]
    model = load(path)
    assert model.max_gap > 0.1
    assert model.certificate_.log_loss == model.baseline_.certificate_.log_loss
    for text in (trained, told, written):
        text = " ".join(text.split())
        assert "within the largest gap allowed, 10.0 percentage points" in text
        assert f"{SEARCHED}{100 * model.max_gap:.1f} percentage points." in text
        assert UNBOUNDED in text


def test_a_constraint_that_is_at_work_is_not_denied():
    data = load_german()
    estimator = FairBoostClassifier("demographic_parity", 0.01, n_estimators=20, random_state=0)
    model = estimator.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    words = certificate_words(model.certificate_, (), model, model.certificate_.gap / 2)[0]
    assert ", above the largest gap allowed, " in words
    assert f"{SEARCHED}1.0 percentage points." in words
    assert "no constraint was at work" not in words
    assert SEARCHED not in certificate_words(model.certificate_, (), model)[0]
