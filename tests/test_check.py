"""The checks of a file, by the command and before training."""

import re

import numpy as np
import pandas as pd
import pytest

from commands import run, run_json
from fairproj import load
from fairproj.cli._record import read_record
from fairproj.inspection import Finding, find_proxies
from test_inspection import planted

TASK = ("--label", "repaid", "--sensitive", "sex")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file with one column for each kind of finding."""
    folder = tmp_path_factory.mktemp("check")
    X, y, sex = planted(1500)
    rng = np.random.default_rng(7)
    frame = X.drop(columns="name").assign(
        sex=sex,
        repaid=y,
        age=rng.integers(20, 70, len(y)),
        closed=np.where(y == "yes", "in full", "late"),
        income=X["height"].mask((sex == "male") & (X["noise"] > 0)),
        balance=[f"{value:.2f}".replace(".", ",") for value in rng.lognormal(8, 1, len(y))],
        salary=[f"{value:,.2f}" for value in rng.lognormal(10, 1, len(y))],
        opened="2020-05-01",
    )
    frame.to_csv(folder / "bad.csv", sep=";", index=False)
    good = frame[["noise", "height", "age", "sex", "repaid"]]
    good.to_csv(folder / "good.csv", index=False)
    return folder


def test_every_finding_is_shown(folder):
    checked = run("check", folder / "bad.csv", *TASK)
    printed = " ".join(checked.stdout.split())
    assert printed.lower().count("all features together tell sex") == 1
    for words in (
        "1,500 rows. Label repaid: yes is positive",
        "How well a column alone tells sex",
        "All features together tell sex with an AUC of 0.9",
        "How well a column alone tells repaid",
        "Rows to confirm a gap of 0.05 in the true positive rate",
        "Missing values by group",
        "warning: column 'salary' has numbers with separators of thousands, such as '",
        "note: column 'balance' has decimal commas, such as '",
        "warning: column 'opened' holds dates, which cannot be used as a feature; name it with "
        "--time opened to hold out the last rows by time",
        "warning: column 'closed' alone nearly determines the label (AUC 1.000)",
        "leave it out with --drop closed",
        "column 'customer_id' has a different value in 100 % of its rows, as identifiers do; leave "
        "it out with --drop customer_id",
        "column 'title' alone nearly determines sex (AUC 0.9",
        "warning: group 'female' has",
        "note: column 'income' is missing in 46 % of the rows of group 'male' and in 0 % of "
        "'female'",
    ):
        assert words in printed, words
    assert checked.stderr == ""
    number = r"\d[\d,]*"
    assert re.search(rf"female {number} {number} 2,\d\d\d", printed), "rows, held out, needed"


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """Rows with four columns that no tree can use."""
    X, y, sex = planted(1200)
    rng = np.random.default_rng(3)
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(1200) // 2, unit="D")
    frame = X[["noise", "height"]].assign(
        sex=sex,
        repaid=y,
        applied_on=days.strftime("%d.%m.%Y"),
        name=[f"n{at}" for at in range(1200)],
        street=[f"s{at}" for at in rng.integers(0, 400, 1200)],
        salary=[f"{value:,.2f}" for value in rng.lognormal(10, 1, 1200)],
    )
    path = tmp_path_factory.mktemp("dated") / "rows.csv"
    frame.to_csv(path, index=False)
    return path


def test_possible_proxies_are_listed_without_a_warning(tmp_path):
    X, y, sex = planted(1200)
    rng = np.random.default_rng(0)
    told = np.where(rng.random(1200) < 0.85, sex, np.where(sex == "male", "female", "male"))
    frame = X[["noise", "height"]].assign(told=told, sex=sex, repaid=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    checked = run("check", tmp_path / "rows.csv", *TASK)
    printed = " ".join(checked.stdout.split())
    assert "note: look at column 'told', which alone tells sex with an AUC of 0.8" in printed
    assert "above 0.8 and below 0.9" in printed
    assert re.search(r"told 0\.8\d\d look at", printed)


@pytest.mark.parametrize("rare", ["yes", "no"])
def test_a_rare_label_is_said_before_training(tmp_path, rare):
    X, y, sex = planted(1500)
    other = "no" if rare == "yes" else "yes"
    keep = (y != rare) | (np.arange(1500) % 12 == 0)
    frame = X[["noise", "height"]].assign(sex=sex, repaid=y)[keep]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    share = (frame["repaid"] == other).mean()
    printed = " ".join(run("check", tmp_path / "rows.csv", *TASK).stdout.split())
    assert (
        f"note: {100 * share:.1f} % of the rows have the label '{other}', so that at a thresh"
        in printed
    )
    assert (
        "train with --selection-rate, the share of rows to predict positive, or --class" in printed
    )


def test_crossed_groups_that_are_too_small(tmp_path, folder):
    rng = np.random.default_rng(1)
    frame = pd.read_csv(folder / "good.csv").assign(region=rng.choice(list("abcde"), 1500))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    task = (tmp_path / "rows.csv", *TASK, "--sensitive", "region")
    findings = run_json("check", *task)["findings"]
    (found,) = [one for one in findings if one["kind"] == "crossed_groups"]
    assert "sex and region, crossed, make 10 groups (the smallest has " in found["sentence"]
    assert "sex alone makes 2 groups (the smallest has " in found["sentence"]
    assert "region alone makes 5 groups (the smallest has " in found["sentence"]
    kinds = [one["kind"] for one in run_json("check", tmp_path / "rows.csv", *TASK)["findings"]]
    assert "small_group" in kinds
    assert "crossed_groups" not in kinds


def test_dates_as_text_are_found(dated):
    """Defect: they were listed as text without a finding, and training failed."""
    found = {one["column"]: one for one in run_json("check", dated, *TASK)["findings"]}
    assert found["applied_on"]["sentence"] == (
        "column 'applied_on' holds dates as text, which cannot be used as a feature; name it with "
        "--time applied_on to hold out the last rows by time, turn it into numbers, or leave it "
        "out with --drop applied_on"
    )
    assert found["street"]["kind"] == "unusable"
    assert "trees can tell 255 apart" in found["street"]["sentence"]
    assert found["name"]["kind"] == "identifier"
    assert "applied_on" not in {
        one["column"] for one in run_json("check", dated, *TASK, "--time", "applied_on")["findings"]
    }


def test_train_names_all_columns_that_it_cannot_use(dated, tmp_path):
    """Defect: one run for each of them."""
    task = ("train", dated, *TASK, "--max-gap", "0.3", "-o", tmp_path / "m")
    error = run(*task, code=1).stderr
    assert "rows.csv has 4 columns that cannot be used as features" in error
    for words in (
        "'applied_on' (dates as text)",
        "'name' (text with 1,200 different values)",
        "'street' (text with ",
        "'salary' (numbers with separators of thousands, such as '",
        "--drop applied_on --drop name --drop street --drop salary",
        "hold out the last rows by time with --time applied_on",
    ):
        assert words in " ".join(error.split()), words
    assert "warning" not in error
    drop = ("--drop", "name", "--drop", "street", "--drop", "salary")
    trained = run(*task, *drop, "--time", "applied_on", "--rounds", "5")
    assert "the rows from 2024-0" in " ".join(trained.stdout.split())
    audited = run("audit", tmp_path / "m", dated)
    assert "the rows from 2024-0" in " ".join(audited.stdout.split())


def test_strict_exits_with_1_if_there_is_a_warning(folder):
    run("check", folder / "bad.csv", *TASK, "--strict", code=1)
    quiet = ("--constraint", "demographic_parity", "--max-gap", "0.3", "--strict")
    found = run("check", folder / "good.csv", *TASK, *quiet)
    assert "warning" not in found.stdout
    assert "The held-out rows confirm it with a chance of 80 % or more if" in " ".join(
        found.stdout.split()
    )


def test_everything_as_json(folder):
    found = run_json("check", folder / "bad.csv", *TASK, "--drop", "title")
    assert found["rows"] == 1500
    assert found["columns"]["balance"] == "number"
    assert set(found["groups"]) == {"female", "male"}
    columns = {row["column"] for row in found["proxies"]}
    assert "title" not in columns
    assert not {"salary", "opened"} & columns
    kinds = [(one["kind"], one["column"], one["warning"]) for one in found["findings"]]
    assert kinds == [
        ("separators", "salary", True),
        ("decimal_commas", None, False),
        ("unusable", "opened", True),
        ("leak", "closed", True),
        ("identifier", "customer_id", True),
        ("possible_proxy", "income", False),
        ("joint_strength", None, False),
        ("small_group", "female", True),
        ("missing_values", "income", False),
    ]
    (sizes,) = found["sizes"]
    assert sizes["held_out"] == {group: round(0.25 * rows) for group, rows in sizes["rows"].items()}
    assert sizes["confirmable_gap"] is None
    assert sizes["smallest_max_gap"] > 0.05
    assert found["missing"]["income"]["female"] == 0


def test_the_measures_are_those_of_the_library(folder):
    found = run_json("check", folder / "good.csv", *TASK)
    frame = pd.read_csv(folder / "good.csv")
    expected = find_proxies(frame[["noise", "height", "age"]], frame["sex"])
    assert [row["auc"] for row in found["proxies"]] == expected["auc"].tolist()


def test_ranges_are_proposed_for_a_column_of_many_numbers(folder):
    """Defect: 50 one-year groups, and then an error about one of them."""
    found = run_json("check", folder / "good.csv", "--label", "repaid", "--sensitive", "age")
    (cuts,) = found["ranges"].values()
    proposal = "age:" + ",".join(f"{cut:g}" for cut in cuts)
    assert found["findings"][0]["kind"] == "ranges"
    assert f"--sensitive {proposal}" in found["findings"][0]["words"]
    assert len(found["groups"]) == len(cuts) + 1
    named = run_json("check", folder / "good.csv", "--label", "repaid", "--sensitive", proposal)
    assert named["groups"] == found["groups"]
    assert "ranges" not in [one["kind"] for one in named["findings"]]


def test_training_warns_and_keeps_what_was_found(folder):
    """Defect: a 99 % copy of the sensitive column and customer_id became features silently."""
    model = folder / "m.fairproj"
    drop = [part for name in ("salary", "opened") for part in ("--drop", name)]
    path = folder / "bad.csv"
    trained = run("train", path, *TASK, *drop, "--rounds", 3, "-o", model, "--max-gap", "0.9")
    said = [line for line in trained.stderr.splitlines() if line.startswith("warning: ")]
    assert "note: " in trained.stderr
    kinds = ("the label (AUC", "as identifiers do", "determines sex", "held-out")
    for words in kinds:
        assert sum(words in line for line in said) == (words != "held-out"), words
    assert any("--drop customer_id" in line for line in said)
    findings = read_record(load(model)).findings
    assert [(one.kind, one.column) for one in findings if one.is_warning] == [
        ("leak", "closed"),
        ("identifier", "customer_id"),
        ("proxy", "title"),
    ]
    joint = next(one for one in findings if one.kind == "joint_strength")
    assert joint == Finding("joint_strength", None, joint.measure, joint.words)
    assert joint.measure > 0.9


def test_training_warns_of_a_target_that_the_held_out_rows_cannot_confirm(folder):
    model = folder / "small.fairproj"
    options = (*TASK, "--rounds", 3, "-o", model, "--leaves", 2)
    options += ("--constraint", "demographic_parity")
    trained = run("train", folder / "good.csv", *options, code=3)
    expected = (
        r"group 'female' has \d+ held-out rows; if there were no gap and the selection rate were "
        r"near 0\.\d+, the held-out rows would confirm a limit of 0\.\d+ with a chance of 80 %, "
        r"and a limit of 0\.05 with about [\d,]+ in each group; give more rows"
    )
    assert re.search(expected, trained.stderr)
    (small,) = [one for one in read_record(load(model)).findings if one.kind == "small_group"]
    assert small.column == "female"


def test_many_findings_of_a_kind_are_not_all_printed(folder):
    frame = pd.read_csv(folder / "good.csv")
    for number in range(8):
        frame[f"id_{number}"] = np.arange(len(frame)) + 1000 * number
    frame.to_csv(folder / "ids.csv", index=False)
    options = (*TASK, "--rounds", 2, "-o", folder / "ids.fairproj", "--max-gap", "0.9")
    trained = run("train", folder / "ids.csv", *options)
    assert trained.stderr.count("as identifiers do") == 5
    assert "3 more findings of the same kind (identifier); fairproj check" in trained.stderr
    kinds = [one.kind for one in read_record(load(folder / "ids.fairproj")).findings]
    assert kinds.count("identifier") == 8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--label", "repayed", "--sensitive", "sex"), "no column 'repayed'; did you mean"),
        (("--label", "repaid", "--sensitive", "opened"), "kinds that cannot be used: 'opened'"),
        ((*TASK, "--test-size", 2), "--test-size 2 must be 0 or more and below 1"),
        (("--label", "age", "--sensitive", "sex"), "has 50 different values"),
    ],
)
def test_bad_input_is_one_sentence(folder, options, words):
    failed = run("check", folder / "bad.csv", *options, code=1)
    assert words in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert failed.stdout == ""
