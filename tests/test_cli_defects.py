"""Defects that users met, each tried again by its own command.

The files are simulated and of the kind on which the defects were found: a bank's loans of which few
default, and a bar exam that nearly everyone passes.
"""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

import oracles
from commands import run, run_json
from fairproj import FairBoostClassifier, FairProjClassifier, GapSearchCV, constraints, load
from fairproj.cli import _app
from fairproj.data.checks import counted
from simulated import credit_frame, law_frame

CREDIT = ["--label", "default", "--sensitive", "SEX", "--drop", "customer_id"]
LAW = ["--label", "passed", "--sensitive", "race"]


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    """A file with 5 % defaults, and the model that plain defaults train on it."""
    folder = tmp_path_factory.mktemp("rare")
    credit_frame().to_csv(folder / "rare.csv", index=False)
    trained = run(
        "train", folder / "rare.csv", *CREDIT, "--rounds", 30, "-o", folder / "m.fairproj", code=5
    )
    return folder, trained


@pytest.fixture(scope="module")
def law(tmp_path_factory):
    folder = tmp_path_factory.mktemp("law")
    law_frame().to_csv(folder / "law.csv", index=False)
    return folder


# 1. A constant model is never certified.


def test_train_says_that_a_constant_is_not_useful_and_what_helps(rare):
    folder, trained = rare
    frame = pd.read_csv(folder / "rare.csv")
    predicted = load(folder / "m.fairproj").predict(frame[["LIMIT_BAL", "PAY_0", "PAY_2", "AGE"]])
    assert predicted.mean() < 0.005  # next to nobody, where 5 % default
    assert "the model is not useful" in trained.stderr
    assert "--class-weight balanced or --selection-rate" in trained.stderr
    assert "is met" not in trained.stdout


def test_searches_and_frontiers_do_not_count_constants(rare, tmp_path):
    data = rare[0] / "rare.csv"
    output = tmp_path / "s.fairproj"
    searched = run(
        "train", data, *CREDIT, "--rounds", 5, "--search", "--max-gap", 0.5, "-o", output, code=6
    )
    said = "no solution found: none of the candidates (7) is useful, whatever its gap"
    assert searched.stderr.splitlines()[-1].startswith(said)
    assert "; add --class-weight balanced, add --selection-rate, or add features" in searched.stderr
    assert not output.exists()
    shown = run(
        "frontier",
        data,
        *CREDIT,
        "--rounds",
        3,
        "--folds",
        2,
        "--values",
        "0.1",
        "-o",
        tmp_path / "f.png",
    ).stdout
    assert "not useful" in shown
    assert "yes" not in shown
    assert "they are on no frontier" in " ".join(shown.split())


def test_audit_and_report_say_so_too(rare):
    folder, _ = rare
    asked = (folder / "m.fairproj", folder / "rare.csv")
    audited = run("audit", *asked, "--max-gap", 0.05, code=5)
    assert "is met" not in audited.stdout
    assert "not useful" in audited.stdout
    run("report", *asked, "-o", folder / "r.json", "-o", folder / "r.html", "--force")
    assert json.loads((folder / "r.json").read_text("utf-8"))["verdict"] == "not useful"
    assert "Model not useful" in (folder / "r.html").read_text("utf-8")


@pytest.mark.parametrize("options", [["--class-weight", "balanced"], ["--selection-rate", 0.15]])
def test_what_train_advises_for_rare_labels_helps(rare, options):
    folder, _ = rare
    path = folder / "helped.fairproj"
    asked = [*CREDIT, "--rounds", 30, "--max-gap", 0.15, *options, "--force", "-o", path]
    trained = run_json("train", folder / "rare.csv", *asked)
    assert trained["certificate"]["met"]
    scores = {row["name"]: row["value"] for row in trained["held_out"]["scores"]}
    assert scores["ROC AUC"] > 0.7
    assert scores["balanced accuracy"] > 0.6


@pytest.mark.parametrize(("constant", "n_others"), [(0, 0), (1, 0), (0, 1), (0, 5), (1, 5)])
def test_predictions_that_are_nearly_all_the_same_are_not_useful(rare, constant, n_others):
    folder, _ = rare
    frame = credit_frame()[["default", "SEX"]].assign(guess=constant)
    frame.loc[: n_others - 1, "guess"] = 1 - constant
    frame.to_csv(folder / "constant.csv", index=False)
    asked = [folder / "constant.csv", *CREDIT[:4], "--predictions", "guess"]
    audited = run("audit", *asked, "--max-gap", 0.05, code=5)
    assert "Every row, or nearly every row, gets the same prediction" in audited.stdout
    assert "is met" not in audited.stdout
    run("report", *asked, "--max-gap", 0.05, "-o", folder / "c.json", "--force")
    assert json.loads((folder / "c.json").read_text("utf-8"))["verdict"] == "not useful"
    frame.assign(guess=frame["default"]).to_csv(folder / "right.csv", index=False)
    run("audit", folder / "right.csv", *asked[1:], "--max-gap", 0.5)


def test_a_constant_of_the_paper_is_not_useful(rare):
    """One round of the paper's method on a file whose features say nothing."""
    folder, _ = rare
    frame = credit_frame().assign(LIMIT_BAL=1.0, PAY_0=0, PAY_2=0, AGE=40)
    frame.to_csv(folder / "nothing.csv", index=False)
    asked = [folder / "nothing.csv", *CREDIT, "--method", "paper", "--rounds", 5]
    path = folder / "paper.fairproj"
    trained = run("train", *asked, "-o", path, code=5)
    (warning,) = [line for line in trained.stderr.splitlines() if "not useful" in line]
    assert "raise --epsilon" in warning
    assert "max_depth" not in trained.stderr
    run("audit", path, folder / "nothing.csv", "--max-gap", 0.05, code=5)


# 2. Rounds are not thrown away: the ranking stays near the plain model's.


def test_the_ranking_is_near_that_of_the_plain_model(tmp_path):
    frame = credit_frame(10_000, share=0.22, seed=3, noise=0.5, difference=0)
    frame.to_csv(tmp_path / "credit.csv", index=False)
    path = tmp_path / "m.fairproj"
    run("train", tmp_path / "credit.csv", *CREDIT, "--test-size", 0, "-o", path)
    model = load(path)
    new = credit_frame(6000, share=0.22, seed=4, noise=0.5, difference=0)
    columns = ["LIMIT_BAL", "PAY_0", "PAY_2", "AGE"]
    plain = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=100)
    plain.fit(frame[columns], frame["default"])
    own, others = (
        roc_auc_score(new["default"], one.predict_proba(new[columns])[:, 1])
        for one in (model, plain)
    )
    assert own > others - 0.02
    assert model.certificate_.n_rounds > 5
    assert len(np.unique(model.predict_proba(new[columns]).round(9))) > 200


# 3. The threshold is said, and the gap shown at others.


def test_the_threshold_is_said_and_others_are_shown(law):
    path, asked = law / "t.fairproj", [law / "law.csv", *LAW, "--rounds", 30, "--max-gap", 0.1]
    trained = run("train", *asked, "--class-weight", "balanced", "-o", path)
    words = " ".join(trained.stdout.split())
    assert re.search(r"predicts 'yes' when the probability of 'yes' exceeds 0\.\d+", words)
    assert "at this threshold only" in words
    run("report", path, law / "law.csv", "-o", law / "t.json", "--force")
    curve = json.loads((law / "t.json").read_text("utf-8"))["thresholds"]
    gaps = json.dumps(curve)
    assert curve is not None
    assert len(re.findall(r"0\.\d+", gaps)) > 20


# 4. The library warns where its default is of no use.


def test_the_method_of_the_paper_warns_of_a_useless_model():
    """Stumps on weights that balance the groups err more often than a constant."""
    frame = law_frame()
    X, y = frame[["lsat", "ugpa", "decile"]], frame["passed"]
    model = FairProjClassifier("demographic_parity", 0.0, n_estimators=1)
    with pytest.warns(UserWarning, match=r"the model is not useful: it errs on 1\d\.\d % of the"):
        model.fit(X, y, sensitive_features=frame["race"])
    assert np.mean(model.predict(X) != y) >= np.mean(y == "no")


def test_the_default_of_the_library_bounds_the_gap_or_warns():
    frame, new = law_frame(), law_frame(seed=1)
    X, y, columns = frame[["lsat", "ugpa", "decile"]], frame["passed"], ["lsat", "ugpa", "decile"]
    plain = FairBoostClassifier(None, n_estimators=50, class_weight="balanced").fit(X, y)
    model = FairBoostClassifier(n_estimators=50, class_weight="balanced", random_state=0)
    model.fit(X, y, sensitive_features=frame["race"])

    def gap(one):
        signs = [
            np.where(labels == "yes", 1, -1)
            for labels in (new["passed"], one.predict(new[columns]))
        ]
        return oracles.gap("equal_opportunity", *signs, new["race"].to_numpy())

    assert model.certificate_.met
    assert gap(model) < 0.9 * gap(plain)


# 8. The warning for a missed target names what can help.


def test_a_missed_target_names_cures(law):
    asked = [law / "law.csv", *LAW, "--rounds", 3, "--max-gap", 0, "--class-weight", "balanced"]
    path = law / "missed.fairproj"
    missed = run("train", *asked, "--selection-rate", 0.8, "--force", "-o", path, code=3).stderr
    assert "allow a larger --max-gap, or try more --rounds or larger trees with --leaves" in missed
    stumps = ["--loss", "exponential", "--votes", "discrete", "--leaves", 2]
    missed = run("train", *asked, *stumps, "--force", "-o", path, code=3).stderr
    for cure in ("--leaves", "--loss logistic", "--votes confidence", "--selection-rate"):
        assert cure in missed


# 14. Names and words.


def test_the_command_takes_the_names_of_the_library(law):
    """Each name and alias, and nothing else."""
    page = " ".join(run("train", "--help").stdout.split())
    for name in constraints.statistic_names(constraints=True):
        assert name in page
        FairBoostClassifier(name)
        assert constraints.find_statistic(name)
    for name in ("false_positive_rate_parity", "true_positive_rate_parity", "accuracy_parity"):
        asked = [law / "law.csv", *LAW, "--rounds", 2, "--max-gap", 1, "--constraint", name]
        options = ["--class-weight", "balanced", "--force", "-o", law / "n.fairproj"]
        run("train", *asked, *options)
        assert constraints.find_statistic(load(law / "n.fairproj").constraints)
    failed = run("train", law / "law.csv", *LAW, "--constraint", "parity", "-o", law / "x", code=2)
    assert "'parity' is unknown; use one of demographic_parity" in " ".join(failed.stderr.split())


@pytest.mark.parametrize(
    "options",
    [
        ["--max-gap", "5"],
        ["--max-gap", "wide"],
        ["--rounds", "0"],
        ["--jobs", "two"],
        ["--loss", "l2"],
        ["--epsilon", "5", "--method", "paper"],
    ],
)
def test_values_that_are_refused_are_named(law, options):
    """Releases of typer word it differently; none speaks of the library that checks the value."""
    failed = run("train", law / "law.csv", *LAW, *options, "-o", law / "x", code=2).stderr
    words = " ".join(failed.split())
    assert re.search(rf"error: {options[0]}: '?{options[1]}", words)
    assert "Value error" not in words
    assert "Input" not in words


def test_an_option_with_one_value_names_it(law):
    options = ("--class-weight", "even", "-o", law / "x")
    failed = run("train", law / "law.csv", *LAW, *options, code=2).stderr
    assert "--class-weight: 'even' must be 'balanced'; see fairproj train --help" in failed
    failed = run("train", law / "law.csv", *LAW, "--method", "x", "-o", law / "x", code=2).stderr
    assert "--method: 'x' is not one of 'fairboost', 'paper'" in failed


def test_the_wording_of_pydantic_is_replaced():
    said = "Input should be a valid number, unable to parse string as a number"
    assert _app._plain_words(said, ["wide"]) == "wide should be a valid number"
    said = "Input should be less than or equal to 1"
    assert _app._plain_words(said, "5") == "5 should be less than or equal to 1"
    assert _app._plain_words("Value error, 'l2' is not one of 'a'.", "l2") == (
        "'l2' is not one of 'a'."
    )
    assert _app._plain_words("it is given twice", "5") == "it is given twice"


@pytest.mark.parametrize(("count", "words"), [(0, "0 rows"), (1, "1 row"), (1234, "1,234 rows")])
def test_counts_agree_with_their_nouns(count, words):
    assert counted(count, "row") == words
    assert counted(count, "entry", "entries").endswith("entry" if count == 1 else "entries")


def test_one_row_is_not_called_rows(tmp_path):
    frame = credit_frame(200, share=0.3)
    frame.loc[frame.index[-1], ["SEX", "default"]] = ["diverse", 1]
    frame.to_csv(tmp_path / "one.csv", index=False)
    failed = run("train", tmp_path / "one.csv", *CREDIT, "-o", tmp_path / "m", code=1).stderr
    assert re.search(r"\b1 rows", failed) is None
    assert "1 row" in failed
    frame.loc[0, "SEX"] = None
    frame.to_csv(tmp_path / "missing.csv", index=False)
    failed = run("train", tmp_path / "missing.csv", *CREDIT, "-o", tmp_path / "m", code=1).stderr
    assert "has 1 missing value in 200 rows" in failed


@pytest.mark.parametrize("epsilon", [5, [0.1, 5], float("inf")])
def test_an_epsilon_that_bounds_nothing_is_refused(epsilon):
    frame = law_frame(300)
    model = FairProjClassifier("equalized_odds", epsilon)
    with pytest.raises(ValueError, match=r"epsilon must be at most 1, got .*points are 0\.05"):
        model.fit(frame[["lsat"]], frame["passed"], sensitive_features=frame["race"])


def test_an_epsilon_on_the_scale_of_ones_own_features():
    frame = law_frame(300)
    features = 10.0 * (frame["race"] == "white").to_numpy()
    FairProjClassifier(features, 9.0, n_estimators=2, max_depth=2).fit(
        frame[["lsat"]], frame["passed"]
    )
    with pytest.raises(ValueError, match="epsilon must be at most 10, got 11"):
        FairProjClassifier(features, 11.0).fit(frame[["lsat"]], frame["passed"])


NOTHING = np.zeros((200, 1))
HALVES = np.tile([0, 1], 100)
SIDES = np.repeat([0, 1], 100)


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (FairProjClassifier(), "raise epsilon"),
        (FairProjClassifier(epsilon=1.0), "check that the features vary"),
        (FairProjClassifier(None), "check that the features vary"),
    ],
)
def test_raising_epsilon_is_advised_where_it_can_be_raised(model, advice):
    with pytest.warns(UserWarning, match=f"no learner beat chance, .*; {advice}") as caught:
        model.fit(NOTHING, HALVES, sensitive_features=SIDES)
    assert len(caught) == 1


def test_a_search_does_not_advise_what_it_sets_itself(recwarn):
    model = FairProjClassifier(n_estimators=3)
    search = GapSearchCV(model, 0.2, param_values=[0.01, 0.1], cv=2, if_none="nearest")
    search.fit(NOTHING, HALVES, sensitive_features=SIDES)
    said = [str(warning.message) for warning in recwarn]
    assert not any("raise epsilon" in text for text in said)
    assert any("fitted on all rows, no learner beat chance" in text for text in said)
    assert not search.met_
