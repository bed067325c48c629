"""What commands warn of, judge and refuse: each test runs the command of one defect."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import run, run_json
from fairproj import load

ASKED = ["--label", "y", "--sensitive", "sex"]


def make_rows(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n_rows),
            "sex": rng.choice(["f", "m"], n_rows),
            "AGE": rng.integers(20, 77, n_rows),
            "weight": rng.integers(1, 4, n_rows),
            "year": np.arange(n_rows) * 10 // n_rows + 2010,
        }
    )
    score = frame["x"] + 0.5 * (frame["sex"] == "m") + 0.5 * rng.normal(size=n_rows)
    return frame.assign(y=np.where(score > 0, "yes", "no"))


def words(text):
    """Text without its line breaks."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review")
    make_rows(1600).to_csv(folder / "rows.csv", index=False)
    return folder


DROPPED = ["--drop", "weight", "--drop", "year"]


@pytest.fixture(scope="module")
def model(folder):
    """Trained for two gaps, of which accuracies are easy and selection rates hard to equalize."""
    path = folder / "m.fairproj"
    asked = [*ASKED, *DROPPED, "--rounds", 4, "-o", path]
    gaps = ["--constraint", "accuracy", "--max-gap", 1, "--constraint", "demographic_parity"]
    run("train", folder / "rows.csv", *asked, *gaps, "--max-gap", 0.9)
    return path


def test_a_threshold_for_the_method_of_the_paper_speaks_of_no_bound(folder, model):
    path = folder / "paper.fairproj"
    asked = [*ASKED, *DROPPED, "--rounds", 3, "--method", "paper", "-o", path]
    run("train", folder / "rows.csv", *asked)
    predict = ["predict", folder / "rows.csv", "--threshold", 0.4, "--force"]
    predict += ["-o", folder / "said.csv"]
    said = words(run(predict[0], path, *predict[1:]).stderr)
    assert "bounded" not in said
    assert (
        "the model was trained to decide at 0.5; rates and gaps differ at 0.4; audit the new "
        "predictions" in said
    )
    said = words(run(predict[0], model, *predict[1:]).stderr)
    assert "was limited at a threshold of 0.5, and may be larger at 0.4" in said


def test_an_audit_with_a_limit_judges_the_other_gaps_of_training_too(folder, tmp_path):
    """Selection rates are far apart on the new rows, and --max-gap is about accuracies."""
    path = tmp_path / "m.fairproj"
    asked = [*ASKED, *DROPPED, "--use-sensitive", "--rounds", 4, "-o", path]
    gaps = ["--constraint", "accuracy", "--max-gap", 1, "--constraint", "demographic_parity"]
    run("train", folder / "rows.csv", *asked, *gaps, "--max-gap", 0.25)
    new = make_rows(1600, seed=1)
    new["x"] += np.where(new["sex"] == "m", 3.0, -3.0)
    new.to_csv(tmp_path / "new.csv", index=False)
    audit = ["audit", path, tmp_path / "new.csv"]
    said = run(*audit, "--metric", "accuracy", "--max-gap", 0.99, code=3).stdout
    assert "The target, at most 25.0 percentage points, is not met" in words(said)
    content = json.loads(
        run(*audit, "--metric", "accuracy", "--max-gap", 0.99, "--json", code=3).stdout
    )
    assert content["verdict"] == "not met"
    assert content["target"]["max_gap"] == 0.99
    run(*audit, "--metric", "demographic_parity", "--max-gap", 1)
    run(*audit)  # without --max-gap nothing is judged by the exit code


def test_check_describes_the_task_that_train_gets(folder):
    """Weights and times are no features, and the sensitive column is one if asked."""
    asked = [*ASKED, "--weights", "weight", "--time", "year", "--use-sensitive"]
    found = run_json("check", folder / "rows.csv", *asked)
    assert list(found["columns"]) == ["x", "sex", "AGE"]
    assert (found["weights"], found["time"]) == ("weight", "year")
    failed = run("check", folder / "rows.csv", *ASKED, "--weights", "sex", code=1).stderr
    assert "--weights sex is the label or sensitive" in failed
    failed = run("check", folder / "rows.csv", *asked, "--test-size", 0, code=1).stderr
    assert "--time holds out the last rows" in words(failed)


def test_a_split_by_time_is_checked_with_the_rows_that_it_holds_out(tmp_path):
    """Of the last two of ten years, few rows are of women."""
    frame = make_rows(2000)
    last = frame["year"] >= 2018
    women = np.flatnonzero(last & (frame["sex"] == "f"))[7:]
    frame = frame.drop(index=women).reset_index(drop=True)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    held_out = frame[frame["year"] >= 2018]
    asked = [tmp_path / "rows.csv", *ASKED, "--time", "year", "--drop", "weight"]
    asked += ["--test-size", len(held_out) / len(frame), "--max-gap", 0.05]
    (sizes,) = run_json("check", *asked)["sizes"]
    wanted = held_out[held_out["y"] == "yes"]["sex"].value_counts().to_dict()
    assert sizes["held_out"] == wanted
    warned = words(run("train", *asked, "--rounds", 2, "-o", tmp_path / "m.fairproj").stderr)
    assert f"group 'f' has {wanted['f']} held-out" in warned


def test_check_says_what_it_does_not_check(folder):
    asked = ["--constraint", "selection_ratio", "--max-gap", 0.2]
    said = words(run("check", folder / "rows.csv", *ASKED, *DROPPED, *asked).stdout)
    assert (
        "note: not checked: whether the held-out rows can confirm --max-gap 0.2 for "
        "selection_ratio" in said
    )
    assert "not checked" not in run("check", folder / "rows.csv", *ASKED, *DROPPED).stdout


@pytest.fixture(scope="module")
def confirmed(folder):
    """A model that a test has confirmed, and what training printed."""
    path = folder / "confirmed.fairproj"
    asked = [*ASKED, *DROPPED, "--rounds", 4, "--max-gap", 0.5, "--confidence", 0.9, "-o", path]
    return path, run("train", folder / "rows.csv", *asked)


def test_the_aim_of_training_is_not_called_the_limit(folder, confirmed):
    path, printed = confirmed
    max_gap = load(path).max_gap
    assert max_gap < 0.5
    aim = (
        f"Training aimed at {100 * max_gap:.1f} percentage points so that the test of 50.0 "
        "percentage points would likely succeed."
    )
    assert aim in words(printed.stdout)
    assert "largest gap allowed" not in printed.stdout
    report = folder / "confirmed.json"
    run("report", path, folder / "rows.csv", "-o", report)
    content = json.loads(report.read_text("utf-8"))
    assert aim in " ".join(content["certificate"]["words"])
    assert dict(content["asked"])["Bound in training (max_gap)"] == (
        f"{max_gap:g}, so that the test of 0.5 would likely succeed"
    )
    (said,) = [one for one in content["summary"] if "a test after training confirmed" in one]
    assert "with 90 % confidence the equal opportunity gap is at most" in said
    told = words(run("info", path).stdout)
    assert f"{max_gap:g}, so that the test of 0.5 would likely succeed" in told


def test_a_confirmation_says_nothing_of_other_groups(folder, confirmed):
    asked = ("audit", confirmed[0], folder / "rows.csv", "--sensitive", "AGE:40")
    assert "a test after training confirmed" not in run(*asked).stdout
    assert "a test after training confirmed" in words(run(*asked[:3]).stdout)


def test_a_test_that_fails_speaks_of_options(folder, tmp_path):
    asked = ["train", folder / "rows.csv", *ASKED, *DROPPED, "--rounds", 2, "--confidence", 0.95]
    asked += ["--max-gap", 0.01, "-o", tmp_path / "m.fairproj"]
    failed = run(*asked, "--json", code=6)
    content = json.loads(failed.stdout)
    assert content["model"] is None
    assert content["reason"].endswith("give more rows, or a larger --max-gap")
    assert "max_gap" not in failed.stderr
    assert "at best a gap" not in words(failed.stderr), "a warning about rows of another test"
    assert not (tmp_path / "m.fairproj").exists()


@pytest.mark.parametrize("command", ["audit", "report"])
@pytest.mark.parametrize("by_model", [True, False])
def test_many_numbers_are_no_groups_of_an_audit(folder, model, tmp_path, command, by_model):
    asked = [model, folder / "rows.csv"]
    if not by_model:
        frame = make_rows(1600)
        frame.assign(said=frame["y"]).to_csv(tmp_path / "said.csv", index=False)
        asked = [tmp_path / "said.csv", "--predictions", "said", "--label", "y"]
    more = ["-o", tmp_path / "r.json"] if command == "report" else []
    failed = words(run(command, *asked, "--sensitive", "AGE", *more, code=1).stderr)
    assert "has 57 different numbers, and each would be a group; cut it into ranges" in failed
    proposed = failed.split("for example --sensitive ")[1].split()[0].rstrip(".")
    run(command, *asked, "--sensitive", proposed, *more)


def test_a_confidence_of_one_half_is_refused_by_its_option(folder, tmp_path):
    asked = ["train", folder / "rows.csv", *ASKED, "--confidence", 0.5, "-o", tmp_path / "m"]
    assert "--confidence 0.5 must be above 0.5 and below 1" in run(*asked, code=1).stderr
