"""Rows whose group is not known: in check, training, audits and reports."""

import numpy as np
import pandas as pd
import pytest

from commands import run, run_json
from fairproj import load
from fairproj.cli._record import read_record
from fairproj.io import tables

TASK = ("--label", "y", "--drop", "day", "--max-gap", "0.3", "--rounds", "5")
N_ROWS = 1500


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(tables, "CHUNK_ROWS", 128)
    monkeypatch.setattr(tables, "_CSV_BLOCK", 4096)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=N_ROWS).round(4),
            "sex": rng.choice(["f", "m"], N_ROWS),
            "region": rng.integers(1, 4, N_ROWS),
            "age": rng.integers(20, 70, N_ROWS),
            "day": pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(N_ROWS), unit="h"),
        }
    )
    score = frame["x"] + 0.3 * (frame["sex"] == "m") + rng.normal(size=N_ROWS) / 2
    frame["y"] = np.where(score > 0.2, "yes", "no")
    for name in ("sex", "region", "age"):
        frame[name] = frame[name].mask(rng.random(N_ROWS) < 0.1)
    return frame


@pytest.fixture(scope="module", params=["csv", "parquet"])
def path(tmp_path_factory, frame, request):
    path = tmp_path_factory.mktemp("missing") / f"rows.{request.param}"
    whole = frame.astype({"region": "Int64", "age": "Int64"})
    whole.to_csv(path, index=False) if path.suffix == ".csv" else whole.to_parquet(path)
    return path


def test_check_leaves_these_rows_out_with_a_finding(path, frame):
    """Defect: one missing group ended the command, and nothing else was said."""
    missing = int(frame["sex"].isna().sum())
    task = ("check", path, "--label", "y", "--sensitive", "sex", "--drop", "day")
    checked = run_json(*task)
    assert checked["rows"] == N_ROWS - missing
    assert checked["groups"] == frame["sex"].value_counts().sort_index().to_dict()
    found = checked["findings"][0]
    assert (found["kind"], found["column"], found["measure"]) == ("missing_groups", "sex", missing)
    assert found["warning"]
    words = f"has {missing} missing values in 1,500 rows, and these checks leave those rows out"
    assert words in found["sentence"]
    run(*task, "--strict", code=1)


@pytest.mark.parametrize("command", ["train", "alternatives", "frontier"])
def test_the_error_names_the_option(path, command, tmp_path):
    output = ("-o", tmp_path / "m") if command == "train" else ()
    asked = (command, path, "--label", "y", "--drop", "day", "--sensitive", "sex", *output)
    error = " ".join(run(*asked, code=1).stderr.split())
    assert "add --missing-groups drop or --missing-groups own" in error


@pytest.mark.parametrize(
    ("sensitive", "how", "time"),
    [
        ("sex", "drop", ()),
        ("region", "own", ()),
        ("region", "drop", ("--time", "day")),
        ("age:30,50", "own", ()),
    ],
)
def test_audits_find_the_same_rows_and_groups(path, frame, tmp_path, sensitive, how, time):
    name = sensitive.partition(":")[0]
    asked = (*TASK, "--sensitive", sensitive, "--missing-groups", how, *time)
    trained = run_json("train", path, *asked, "-o", tmp_path / "m")
    groups = {rate["group"] for rate in trained["held_out"]["rates"]}
    assert ("missing" in groups) == (how == "own")
    assert len(groups) == frame[name].nunique() + (how == "own") or name == "age"
    audited = run_json("audit", tmp_path / "m", path)
    assert audited["rates"] == trained["held_out"]["rates"]
    assert audited["gaps"] == trained["held_out"]["gaps"]
    assert read_record(load(tmp_path / "m")).task.missing_groups.value == how
    # Other groups, of the same held-out rows.
    other = "age:40" if name != "age" else "sex"
    crossed = run_json("audit", tmp_path / "m", path, "--sensitive", other)
    assert crossed["data"]["seen"] is False
    info = " ".join(run("info", tmp_path / "m").stdout.split())
    assert f"missing groups {how}" in info


def test_rows_that_are_left_out_are_counted(path, frame, tmp_path):
    missing = int(frame[["sex", "region"]].isna().any(axis=1).sum())
    asked = (*TASK, "--sensitive", "sex", "--sensitive", "region", "--missing-groups", "drop")
    trained = run("train", path, *asked, "-o", tmp_path / "m")
    words = f"note: {missing} of 1,500 rows of {path} without a value of 'sex' or 'region' are"
    assert words in " ".join(trained.stderr.split())
    record = read_record(load(tmp_path / "m"))
    assert record.data.rows == N_ROWS - missing
    audited = run("audit", tmp_path / "m", path)
    assert words in " ".join(audited.stderr.split())
    left_out = "Training left out rows without a value of sex or region."
    assert left_out in " ".join(audited.stdout.split())
    run("report", tmp_path / "m", path, "-o", tmp_path / "r.md", "--frontier")
    assert left_out in (tmp_path / "r.md").read_text()


def test_ages_with_missing_values_are_not_groups(path, tmp_path):
    asked = ("train", path, *TASK, "--sensitive", "age", "--missing-groups", "own")
    error = run(*asked, "-o", tmp_path / "m", code=1).stderr
    assert "different numbers, and each would be a group" in " ".join(error.split())


def test_a_category_that_is_called_missing(frame, tmp_path):
    sex = frame["sex"].where(frame.index % 7 > 0, "missing").astype("category")
    frame.assign(sex=sex).to_parquet(tmp_path / "rows.parquet")
    asked = ("train", tmp_path / "rows.parquet", *TASK, "--sensitive", "sex")
    run(*asked, "--missing-groups", "own", "-o", tmp_path / "m")


def test_check_names_groups_of_whole_numbers_as_training_does(frame, tmp_path):
    numbers = frame["sex"].map({"f": 31, "m": 32}).astype("Int64")
    frame.assign(sex=numbers).to_csv(tmp_path / "rows.csv", index=False)
    asked = ("check", tmp_path / "rows.csv", "--label", "y", "--sensitive", "sex")
    text = run(*asked, "--drop", "day").stdout
    assert "31" in text
    assert "31.0" not in text


def test_no_rows_are_left(tmp_path, frame):
    frame.assign(sex=None).to_csv(tmp_path / "rows.csv", index=False)
    asked = ("train", tmp_path / "rows.csv", *TASK, "--sensitive", "sex", "-o", tmp_path / "m")
    error = run(*asked, "--missing-groups", "drop", code=1).stderr
    assert "none is left; fill in the groups" in " ".join(error.split())


def test_large_data_is_refused(tmp_path, frame):
    frame.to_parquet(tmp_path / "rows.parquet")
    asked = ("train", tmp_path / "rows.parquet", *TASK, "--sensitive", "sex", "-o", tmp_path / "m")
    error = run(*asked, "--missing-groups", "own", "--out-of-core", code=1).stderr
    assert "--missing-groups is for training in memory" in error
