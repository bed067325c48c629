"""The commands, each run as a user would, on small files."""

import dataclasses
import json
import os
import re
import signal
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from scipy.stats import sem
from sklearn.metrics import log_loss, roc_auc_score

from commands import run, run_json
from fairproj import FairBoostClassifier, FairnessReport, FairProjClassifier, GapSearchCV, load
from fairproj.cli import _fit
from fairproj.cli._record import read_record
from fairproj.cli._train_show import outcome
from fairproj.constraints import STATISTICS, find_statistic
from fairproj.datasets import load_adult, load_german
from fairproj.io import tables
from fairproj.metrics import equal_opportunity_difference
from fairproj.report import summarize_predictions
from fairproj.report._words import certificate_words
from fairproj.selection import fair_train_test_split

TRAIN = ["--label", "credit", "--sensitive", "sex", "--rounds", "8"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    german = load_german()
    frame = german.frame.assign(person=np.arange(1000))
    assert german.target.name == "credit"
    frame.to_csv(folder / "german.csv", index=False)
    frame.to_parquet(folder / "german.parquet", row_group_size=300)
    frame.to_feather(folder / "german.feather")
    return folder


@pytest.fixture(scope="module")
def model(folder):
    path = folder / "model.fairproj"
    run("train", folder / "german.csv", *TRAIN, "--drop", "person", "-o", path)
    return path


def test_train_is_a_fit_on_the_rows_that_were_not_held_out(folder, model):
    german = load_german()
    trained = load(model)
    X, y = german.data.drop(columns="sex", errors="ignore"), german.target
    X1, _, y1, _, g1, _ = fair_train_test_split(
        X, y, german.sensitive_features, test_size=0.25, random_state=0
    )
    order = np.argsort(X1.index)
    direct = FairBoostClassifier(max_gap=0.05, n_estimators=8, pos_label="good", random_state=0)
    direct.fit(X1.iloc[order], y1.iloc[order], sensitive_features=g1.iloc[order])
    assert list(trained.feature_names_in_) == list(X.columns)
    np.testing.assert_array_equal(trained.decision_function(X), direct.decision_function(X))


def test_train_prints_what_it_read_and_what_came_out(folder):
    path = folder / "printed.fairproj"
    result = run("train", folder / "german.csv", *TRAIN, "-o", path, "--use-sensitive")
    printed = " ".join(result.stdout.split())
    for words in ("1,000 rows", "good is positive (70.0 %)", "whole number", "Rates by group"):
        assert words in printed
    assert "sex" in list(load(path).feature_names_in_)


def test_train_ends_with_the_verdict_the_cost_and_the_next_step(folder):
    path = folder / "ordered.fairproj"
    printed = run("train", folder / "german.csv", *TRAIN, "-o", path).stdout
    parts = ("Features, as read", "Training kept", "Rates by group", "The target, at most")
    parts += ("What fairness cost", f"fairproj info {path}", "Next: fairproj report")
    assert sorted(parts, key=" ".join(printed.split()).index) == list(parts)
    last = " ".join(printed.partition("Next: ")[2].split())
    assert last.replace(" ", "").endswith("-oreport.html")
    terms = ("training loss", "signed costs", "proved")
    assert not [term for term in terms if term in printed]
    shown = " ".join(run("info", path).stdout.split())
    for sentence in certificate_words(load(path).certificate_, (), load(path)):
        assert " ".join(sentence.split()) in shown
    printed = json.loads(
        run("train", folder / "german.parquet", *TRAIN, "-o", path, "--force", "--json").stdout
    )
    assert printed["rounds"] == load(path).certificate_.n_rounds
    assert {gap["gap"] for gap in printed["held_out"]["gaps"]} > {"equal_opportunity"}


def test_the_rows_held_out_from_training_are_audited(folder, model):
    audited = run_json("audit", model, folder / "german.csv")
    german = load_german()
    test = fair_train_test_split(
        np.arange(1000), german.target, german.sensitive_features, test_size=0.25, random_state=0
    )[1]
    assert audited["data"]["rows"] == len(test) == 250
    assert "held out" in audited["data"]["which"]
    report = FairnessReport.from_estimator(
        load(model),
        german.data.iloc[test],
        german.target.iloc[test],
        sensitive_features=german.sensitive_features.iloc[test],
    )
    assert audited["gaps"][0]["estimate"] == pytest.approx(report.gaps["estimate"][0])
    # The same rows in another file are not known to be unseen.
    other = run_json("audit", model, folder / "german.parquet")
    assert other["data"]["rows"] == 1000
    assert "not known here" in other["caveats"][0]


def test_training_rows_are_called_so(folder):
    path = folder / "all.fairproj"
    run("train", folder / "german.csv", *TRAIN, "--test-size", "0", "-o", path)
    audited = run_json("audit", path, folder / "german.csv")
    assert "was trained on these rows" in audited["caveats"][0]


@pytest.mark.parametrize(("max_gap", "code"), [(0.95, 0), (0.0, 3), (0.05, 4)])
def test_exit_codes_give_the_verdict_on_any_models_predictions(folder, max_gap, code):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": np.repeat(["f", "m"], 500), "y": rng.integers(2, size=1000)})
    frame["said"] = np.where(frame["sex"] == "f", frame["y"], 1 - frame["y"])
    if code == 4:
        frame["said"] = frame["y"].where(rng.random(1000) < 0.9, 0)
    if code == 0:
        frame["said"] = frame["y"]
    frame.to_csv(folder / "scored.csv", index=False)
    result = run(
        "audit",
        folder / "scored.csv",
        *("--predictions", "said", "--label", "y", "--sensitive", "sex", "--max-gap", max_gap),
        code=code,
    )
    assert "true positive rate" in result.stdout


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("source", ["csv", "parquet", "feather"])
def test_predict_gives_what_the_library_gives(folder, model, source, suffix, monkeypatch):
    monkeypatch.setattr(tables, "CHUNK_ROWS", 170)
    monkeypatch.setattr(tables, "_CSV_BLOCK", 20_000)
    out = folder / f"from-{source}.{suffix}"
    data = folder / f"german.{source}"
    printed = run("predict", model, data, "-o", out, "--keep", "person", "--json").stdout
    assert json.loads(printed)["rows"] == 1000
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "feather": pd.read_feather}[suffix]
    predicted = read(out)
    expected = load(model)
    X = load_german().data
    assert list(predicted.columns) == ["person", "prediction", "probability_good"]
    np.testing.assert_array_equal(predicted["person"].astype(int), np.arange(1000))
    np.testing.assert_array_equal(predicted["prediction"], expected.predict(X))
    np.testing.assert_allclose(
        predicted["probability_good"], expected.predict_proba(X)[:, 1], rtol=1e-12
    )


def test_predict_reads_booleans_missing_values_and_unknown_categories(folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "ok": rng.integers(2, size=400).astype(bool),
            "n": np.where(rng.random(400) < 0.2, np.nan, rng.integers(5, size=400)),
            "job": rng.choice(["a", "b"], size=400),
            "sex": rng.choice(["f", "m"], size=400),
        }
    )
    frame["y"] = np.where(frame["ok"] ^ (rng.random(400) < 0.2), "yes", "no")
    frame.to_csv(folder / "small.csv", index=False)
    path = folder / "small.fairproj"
    arguments = ("--label", "y", "--sensitive", "sex", "--rounds", 5, "--positive", "no")
    run("train", folder / "small.csv", *arguments, "-o", path)
    new = frame.assign(job=np.where(np.arange(400) < 3, "new", frame["job"])).drop(columns="sex")
    new.to_csv(folder / "new.csv", index=False)
    run("predict", path, folder / "new.csv", "-o", folder / "said.csv", "--missing", "score")
    predicted = pd.read_csv(folder / "said.csv")
    loaded = load(path)
    np.testing.assert_array_equal(predicted["prediction"], loaded.predict(new[["ok", "n", "job"]]))
    np.testing.assert_allclose(
        predicted["probability_no"], loaded.predict_proba(new[["ok", "n", "job"]])[:, 0]
    )


def test_the_method_of_the_paper(folder):
    path = folder / "paper.fairproj"
    run("train", folder / "german.csv", *TRAIN, "--method", "paper", "-o", path)
    trained = load(path)
    german = load_german()
    X1, _, y1, _, g1, _ = fair_train_test_split(
        german.data.assign(person=np.arange(1000)),
        german.target,
        german.sensitive_features,
        test_size=0.25,
        random_state=0,
    )
    direct = FairProjClassifier(epsilon=0.1, n_estimators=8, pos_label="good")
    direct.fit(X1.sort_index(), y1.sort_index(), sensitive_features=g1.sort_index())
    X = german.data.assign(person=np.arange(1000))
    np.testing.assert_array_equal(trained.decision_function(X), direct.decision_function(X))
    assert trained.metadata_["fairproj train"]["targets"][0]["max_gap"] is None
    assert "paper" in run("info", path).stdout
    again = ("--epsilon", 0.3, "--force", "-o", path)
    run("train", folder / "german.csv", *TRAIN, "--method", "paper", *again)
    assert load(path).epsilon == 0.3


@pytest.mark.parametrize(
    "name", [*(one.name for one in STATISTICS.values() if one.constrainable), "accuracy"]
)
def test_every_statistic_is_accepted_by_every_command(folder, other, name):
    canonical = find_statistic(name).name
    path = folder / "named.fairproj"
    asked = ("--label", "y", "--sensitive", "sex", "--rounds", 3, "--drop", "id", "--force")
    run("train", folder / "s.csv", *asked, "--constraint", name, "-o", path)
    assert load(path).metadata_["fairproj train"]["targets"] == [
        {"metric": canonical, "max_gap": 0.05}
    ]
    audited = run_json("audit", path, folder / "s.csv")
    assert audited["target"] == {
        "metric": canonical,
        "name": STATISTICS[canonical].words,
        "max_gap": 0.05,
    }
    audited = run_json("audit", other, folder / "s.csv", "--metric", name)
    assert audited["target"]["metric"] == canonical
    asked = ("--label", "y", "--sensitive", "sex", "--rounds", 2, "--values", 0.1, "--folds", 2)
    points = run("frontier", folder / "s.csv", *asked, "--metric", name, "--json", "--jobs", 1)
    assert json.loads(points.stdout)["gap"] == canonical
    page = folder / "named.json"
    run("report", other, folder / "s.csv", "--metric", name, "-o", page, "--force")
    assert json.loads(page.read_text("utf-8"))["target"]["metric"] == canonical


def test_unknown_statistics_are_refused_with_the_names(folder):
    asked = ("train", folder / "german.csv", *TRAIN, "-o", folder / "no")
    failed = " ".join(run(*asked, "--constraint", "fairness", code=2).stderr.split())
    assert "'fairness' is unknown" in failed
    assert "equalized_odds" in failed


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fairboost", "paper"])
def test_search_for_the_most_accurate_model_within_a_gap(folder, method):
    path = folder / f"search-{method}.fairproj"
    options = ("--method", method, "--search", "--max-gap", 0.2)
    printed = run("train", folder / "german.csv", *TRAIN, *options, "-o", path).stdout
    assert "the best score of the" in " ".join(printed.split())
    trained = load(path)
    record = trained.metadata_["fairproj train"]["search"]

    german = load_german()
    X, _, y, _, groups, _ = fair_train_test_split(
        german.data.assign(person=np.arange(1000)),
        german.target,
        german.sensitive_features,
        test_size=0.25,
        random_state=0,
    )
    classifier = {"fairboost": FairBoostClassifier, "paper": FairProjClassifier}[method]
    search = GapSearchCV(
        classifier(n_estimators=8, pos_label="good", random_state=0), 0.2, random_state=0
    )
    search.fit(X.sort_index(), y.sort_index(), sensitive_features=groups.sort_index())
    assert record["met"]
    assert record["method"] == classifier.__name__
    assert {record["param_name"]: record["value"]} == search.best_params_
    np.testing.assert_array_equal(
        trained.decision_function(X), search.best_estimator_.decision_function(X)
    )
    candidates = pd.DataFrame(record["candidates"])
    assert len(candidates) > 5
    for name in ("score", "gap"):
        splits = np.array([search.cv_results_[f"split{i}_test_{name}"] for i in range(5)])
        np.testing.assert_allclose(candidates[name], splits.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(candidates[f"{name}_se"], sem(splits, ddof=1), rtol=1e-9)
    np.testing.assert_array_equal(candidates["bound"], search.cv_results_["gap_bound"])
    np.testing.assert_array_equal(candidates["meets"], candidates["bound"] <= 0.2)


def test_a_search_that_finds_no_model(folder):
    out = folder / "impossible.fairproj"
    again = [folder / "german.csv", *TRAIN, "--search", "--max-gap", 0, "-o", out]
    failed = run("train", *again, code=6)
    wanted = (
        r"(warning: .*\n)*no solution found: none of the candidates \(\d+\) .*; allow a larger "
        r"--max-gap, give more rows, or keep it with --nearest; no model file is written\n"
    )
    assert re.fullmatch(wanted, failed.stderr)
    assert not out.exists()
    run("train", *again, "--nearest", code=3)
    assert not load(out).metadata_["fairproj train"]["search"]["met"]


def test_search_by_an_upper_bound(folder):
    path = folder / "upper.fairproj"
    options = ("--search", "--max-gap", 0.9, "--method", "paper", "--rule", "upper")
    run("train", folder / "german.csv", *TRAIN, *options, "-o", path)
    search = load(path).metadata_["fairproj train"]["search"]
    assert search["rule"] == "upper"
    assert {row["gap_se"] for row in search["candidates"]} == {None}
    assert all(row["bound"] >= row["gap"] for row in search["candidates"])
    run("report", path, folder / "german.csv", "-o", folder / "upper.md")
    text = (folder / "upper.md").read_text("utf-8")
    assert "Chosen among these" in text
    assert "means over folds" not in text


def test_a_report_trains_nothing_and_shows_the_candidates_of_a_search(folder, monkeypatch):
    path, page = folder / "candidates.fairproj", folder / "candidates.json"
    run("train", folder / "german.csv", *TRAIN, "--search", "--max-gap", 0.5, "-o", path)

    def fail(*arguments, **options):
        raise AssertionError("a model was trained")

    for classifier in (FairBoostClassifier, FairProjClassifier):
        monkeypatch.setattr(classifier, "fit", fail)
        monkeypatch.setattr(classifier, "_fit_prepared", fail)
    run("report", path, folder / "german.csv", "-o", page)
    points = json.loads(page.read_text("utf-8"))["frontier"]["points"]
    candidates = load(path).metadata_["fairproj train"]["search"]["candidates"]
    for name in ("value", "score", "score_se", "gap", "gap_se"):
        assert [point[name] for point in points] == [row[name] for row in candidates]
    with pytest.raises(AssertionError, match="a model was trained"):
        run("report", path, folder / "german.csv", "-o", page, "--force", "--frontier", "--jobs", 1)


def test_a_report_reads_and_hashes_its_data_once(folder, model, monkeypatch):
    calls = []

    def count(name, function):
        def counted(*arguments):
            calls.append(name)
            return function(*arguments)

        monkeypatch.setattr(tables.DataFile, name, counted)

    count("read_spelled", tables.DataFile.read_spelled)
    count("sha256", tables.DataFile.sha256)
    run("report", model, folder / "german.csv", "-o", folder / "once.md", "--frontier")
    assert sorted(calls) == ["read_spelled", "sha256"]


def test_report_writes_every_kind(folder, model):
    outputs = [folder / f"report.{suffix}" for suffix in ("html", "md", "json")]
    card = folder / "card.md"
    options = [part for path in outputs for part in ("-o", path)]
    run("report", model, folder / "german.csv", *options, "--card", card, "--frontier")
    content = json.loads(outputs[2].read_text("utf-8"))
    points = content["frontier"]["points"]
    assert {point["parameter"] for point in points} == {"max_gap", "epsilon"}
    assert len(points) == 12
    chosen = [point for point in points if point["chosen"]]
    assert [(point["parameter"], point["value"]) for point in chosen] == [("max_gap", 0.05)]
    assert len(outputs[0].read_bytes()) < 6_000_000
    for path in (*outputs[:2], card):
        text = path.read_text("utf-8")
        assert content["summary"][0].split(",")[0] in text
    assert "To be filled in" in card.read_text("utf-8")


def test_report_of_predictions_from_elsewhere(folder):
    frame = load_german().frame.assign(said="good")
    frame.to_csv(folder / "said-good.csv", index=False)
    page = folder / "elsewhere.md"
    arguments = ("--predictions", "said", "--label", "credit", "--sensitive", "sex")
    run("report", folder / "said-good.csv", *arguments, "-o", page)
    assert "the predictions alone were audited" in page.read_text("utf-8")


def test_frontier_info_and_export(folder, model):
    arguments = [folder / "german.csv", *TRAIN, "--values", "0.05,0.3", "--folds", 2]
    content = run_json("frontier", *arguments)
    assert [(p["parameter"], p["value"]) for p in content["points"]] == [
        *(("max_gap", 0.05), ("max_gap", 0.3)),
        *(("epsilon", 0.05), ("epsilon", 0.3)),
    ]
    for name in ("frontier.png", "frontier.svg", "frontier.csv"):
        printed = run("frontier", *arguments, "-o", folder / name).stdout
        assert "FairBoost" in printed
        assert (folder / name).stat().st_size > 500
    fits = pd.read_csv(folder / "frontier.csv")
    assert len(fits) == 8
    assert sorted(set(fits["value"])) == [0.05, 0.3]
    means = fits.groupby(["parameter", "value"])["equal_opportunity"].mean()
    for point in content["points"]:
        assert means[point["parameter"], point["value"]] == pytest.approx(point["gap"])
    held = run_json("info", model)
    assert held["estimator"] == "FairBoostClassifier"
    assert held["metadata"]["fairproj train"]["task"]["label"] == "credit"
    assert "sensitive" in run("info", model).stdout
    run("export", model, "-o", folder / "model.txt")
    assert (folder / "model.txt").read_text().startswith("tree\n")
    run("export", model, "--to", "onnx", "-o", folder / "model.onnx")
    assert (folder / "model.onnx").stat().st_size > 500


@pytest.mark.slow
def test_demo(tmp_path, monkeypatch):
    from fairproj.cli import _demo

    adult = load_adult()
    adult.frame = adult.frame.iloc[::30]
    monkeypatch.setattr(_demo, "load_adult", lambda: adult)
    printed = run("demo", "-o", tmp_path / "demo").stdout
    assert "report.html" in printed
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000
    assert "adult.csv exists already" in run("demo", "-o", tmp_path / "demo", code=1).stderr
    printed = run_json("demo", "-o", tmp_path / "demo", "--force")
    assert printed["report"]["written"] == [str(tmp_path / "demo" / "report.html")]
    assert printed["train"]["rounds"] > 1
    page = (tmp_path / "demo" / "report.html").read_text("utf-8")
    assert "fairproj train" in page
    assert "fairproj report" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "{d}/none.csv", *TRAIN, "-o", "{d}/x"], "none.csv does not exist"),
        (["train", "{d}/german.csv", *TRAIN, "-o", "{d}/model.fairproj"], "add --force"),
        (["train", "{d}/german.csv", *TRAIN, "-o", "{d}/no/x"], "the folder .*no does not exist"),
        (["train", "{d}/german.csv", *TRAIN, "-o", "{d}"], "is a folder; name a file"),
        (["train", "{d}/german.csv", *TRAIN[2:], "--label", "x", "-o", "{d}/x"], "no column 'x'"),
        (
            ["train", "{d}/german.csv", *TRAIN[2:], "--label", "age", "-o", "{d}/x"],
            "has 53 different values",
        ),
        (["train", "{d}/german.csv", *TRAIN, "--positive", "x", "-o", "{d}/x"], "is not among"),
        (
            ["train", "{d}/german.csv", *TRAIN, "--test-size", "2", "-o", "{d}/x"],
            "0 or more and below 1",
        ),
        (
            ["predict", "{d}/german.csv", "{d}/german.csv", "-o", "{d}/x.csv"],
            "is not a valid model file",
        ),
        (["predict", "{d}/model.fairproj", "{d}/german.csv", "-o", "{d}/x.xls"], "unknown kind"),
        (["audit", "{d}/german.csv"], "give a model file and a data file"),
        (["audit", "{d}/german.csv", "--predictions", "x"], "with --predictions, give"),
        (["report", "{d}/model.fairproj", "{d}/german.csv", "-o", "{d}/x.pdf"], "name a .html"),
        (["frontier", "{d}/german.csv", *TRAIN, "--values", "a"], "numbers separated by commas"),
        (["info", "{d}/none.fairproj"], "none.fairproj does not exist"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_mistakes_end_in_one_sentence(folder, model, arguments, words):
    result = run(*(argument.format(d=folder) for argument in arguments), code=1)
    assert re.search(words, result.stderr), result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.output


def test_missing_labels_are_counted(folder):
    load_german().frame.assign(sex=lambda f: f["sex"].where(f.index > 4)).to_csv(
        folder / "missing.csv", index=False
    )
    result = run("train", folder / "missing.csv", *TRAIN, "-o", folder / "x", code=1)
    assert "has 5 missing values in 1,000 rows" in result.stderr


def test_help_teaches():
    for command in ("train", "predict", "audit", "report", "frontier", "demo", "info", "export"):
        assert "fairproj" in run(command, "--help").stdout
    assert run("--help").stdout.index("demo") < run("--help").stdout.index("train")


def small(folder, n=600, **columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": [f"{number:05d}" for number in range(n)],
            "x": rng.normal(size=n),
            "z": rng.choice(["10", "20", "30", "X"], size=n),
            "sex": rng.choice(["f", "m"], size=n),
            "race": rng.choice(["a", "b", "c"], size=n),
        }
    )
    frame["y"] = np.where(frame["x"] + (frame["z"] == "30") > 0.3, "yes", "no")
    return frame.assign(**columns)


@pytest.fixture(scope="module")
def other(folder):
    """A model whose positive label is the first one, of a file with an id."""
    small(folder).to_csv(folder / "s.csv", index=False)
    path = folder / "s.fairproj"
    asked = ("--label", "y", "--sensitive", "sex", "--drop", "id", "--positive", "no")
    run("train", folder / "s.csv", *asked, "--rounds", 8, "-o", path)
    return path


def test_other_groups_of_the_same_held_out_rows(folder, other):
    by_sex, by_race, repeated = (
        run_json("audit", other, folder / "s.csv", *more)
        for more in ([], ["--sensitive", "race"], ["--label", "y", "--sensitive", "sex"])
    )
    assert by_sex["data"]["rows"] == by_race["data"]["rows"] == 150
    assert [group["group"] for group in by_race["data"]["groups"]] == ["a", "b", "c"]
    assert by_sex["scores"][:-1] == by_race["scores"][:-1]  # the last one is of the worst group
    assert repeated["data"] == by_sex["data"]
    assert by_sex["data"]["positive_label"] == "no"


def test_rows_are_read_as_they_were_in_training(folder, other):
    """Text that looks like numbers in a new file, columns gone that the model never used."""
    frame = small(folder)
    frame = frame[frame["z"] != "X"].drop(columns="id")
    frame.to_csv(folder / "n.csv", index=False)
    frame.assign(z=frame["z"].astype(int)).to_parquet(folder / "n.parquet")
    model = load(other)
    expected = np.mean(model.predict(frame[list(model.feature_names_in_)]) == frame["y"])
    for name in ("n.csv", "n.parquet"):
        audited = run_json("audit", other, folder / name)
        assert audited["scores"][0]["value"] == pytest.approx(expected)
        run("predict", other, folder / name, "-o", folder / "n-out.csv", "--force")
        predicted = pd.read_csv(folder / "n-out.csv")["prediction"]
        assert np.mean(predicted == frame["y"].to_numpy()) == pytest.approx(expected)


def test_what_is_kept_is_kept_as_it_stands(folder, other):
    frame = small(folder)
    frame.loc[599, "id"] = "A0001"
    frame.to_csv(folder / "ids.csv", index=False)
    out = folder / "ids-out.csv"
    run("predict", other, folder / "ids.csv", "-o", out, "--keep", "id")
    assert pd.read_csv(out, dtype=str)["id"].tolist() == frame["id"].tolist()


def test_a_target_is_used_for_the_gap_it_was_set_for(folder, other):
    def target(*more):
        return run_json("audit", other, folder / "s.csv", *more)["target"]

    assert target()["max_gap"] == 0.05
    assert target("--metric", "demographic_parity")["max_gap"] is None
    assert target("--metric", "demographic_parity", "--max-gap", 1)["max_gap"] == 1
    weights = folder / "weights.fairproj"
    asked = ("--label", "y", "--sensitive", "sex", "--rounds", 5, "--drop", "id")
    asked += ("--method", "paper")
    run("train", folder / "s.csv", *asked, "-o", weights)
    audited = run_json("audit", weights, folder / "s.csv")
    assert audited["verdict"] == "no target"
    page = folder / "other-gap.json"
    run("report", other, folder / "s.csv", "-o", page, "--metric", "demographic_parity")
    assert json.loads(page.read_text("utf-8"))["frontier"] is None


def test_training_rows_meet_no_target(folder, other):
    path = folder / "seen.fairproj"
    asked = ("--label", "y", "--sensitive", "sex", "--rounds", 5, "--drop", "id")
    asked += ("--test-size", 0)
    run("train", folder / "s.csv", *asked, "-o", path)
    printed = run("audit", path, folder / "s.csv", "--max-gap", 0.9, code=4).stdout
    assert "nothing follows for other people" in " ".join(printed.split())
    assert "confidence" not in printed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("targets", [{"metric": "bogus", "max_gap": 0.1}]),
        ("targets", [{"metric": "accuracy", "max_gap": 0.1}]),
        ("targets", [{"metric": "equal_opportunity", "max_gap": True}]),
        ("targets", []),
        ("held_out", {}),
        ("held_out", {"fraction": 2, "seed": 0, "sha256": ""}),
        ("search", {"a": 1}),
        ("task", {"label": 1}),
        ("task", {"label": "y", "sensitive": []}),
        ("data", {"name": "s.csv", "sha256": "", "rows": "600"}),
        ("data", "adult"),
    ],
)
def test_a_record_that_was_changed_is_no_record(folder, other, name, value):
    model = load(other)
    record = {**model.metadata_["fairproj train"], name: value}
    path = folder / "changed.fairproj"
    model.save(path, metadata={"fairproj train": record})
    assert "add --label and --sensitive" in run("audit", path, folder / "s.csv", code=1).stderr
    run("info", path)


def test_booleans_with_gaps_and_an_empty_first_line(folder):
    frame = small(folder).drop(columns="id")
    truth = np.where(np.arange(600) % 7 == 0, "", np.where(frame["x"] > 0, "true", "false"))
    text = frame.assign(ok=truth).to_csv(index=False)
    data = folder / "truth.csv"
    data.write_text("\n" + text, "utf-8")
    path = folder / "truth.fairproj"
    asked = ("--label", "y", "--sensitive", "sex", "--rounds", 5)
    run("train", data, *asked, "-o", path)
    run("audit", path, data)
    run("predict", path, data, "-o", folder / "truth-out.csv")
    run("report", path, data, "-o", folder / "truth.md")


def test_groups_keep_their_names_where_the_model_sees_them(folder):
    frame = small(folder).drop(columns="id")
    frame["sex"] = np.where(frame["sex"] == "f", 1, 2)
    frame.to_csv(folder / "numbers.csv", index=False)
    path = folder / "numbers.fairproj"
    asked = ("--label", "y", "--sensitive", "sex", "--rounds", 5, "--use-sensitive")
    run("train", folder / "numbers.csv", *asked, "-o", path)
    audited = run_json("audit", path, folder / "numbers.csv")
    assert [group["group"] for group in audited["data"]["groups"]] == ["1", "2"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--epsilon", "0.9"], "--epsilon is for --method paper"),
        (["--method", "paper", "--max-gap", "0.2"], "add --search"),
        (["--method", "paper", "--search", "--epsilon", "0.2"], "--search chooses epsilon"),
        (["--rule", "upper"], "add --search"),
        (["--nearest"], "add --search"),
        (["--method", "paper", "--threshold", 0.4], "--threshold is for --method fairboost"),
        (["--threshold", 0.4, "--selection-rate", 0.4], "--selection-rate both say where"),
        (["--votes", "discrete"], "--votes is for --method paper"),
        (["--early-stopping", "--validation-fraction", "none"], "leave out --validation-fraction"),
        (["--max-gap", 0.1, "--max-gap", 0.2], "--max-gap is given 2 times"),
        (["--constraint", "accuracy", "--constraint", "accuracy_parity"], "more than once"),
        (["--constraint", "accuracy", "--constraint", "equalized_odds", "--search"], "several"),
    ],
)
def test_options_that_contradict_each_other(folder, options, words):
    data = folder / "german.csv"
    assert words in run("train", data, *TRAIN, *options, "-o", folder / "no", code=1).stderr


def test_a_demo_that_is_interrupted(tmp_path, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(_fit, "read_rows", stop)
    result = run("demo", "-o", tmp_path / "demo", code=130)
    assert "Open" not in result.stdout


@pytest.mark.parametrize(
    "metadata",
    [
        {"fairproj train": "by hand"},
        {"fairproj train": {"task": []}},
        {"data": "adult 2024", "kinds": [1], "choice": "by hand"},
    ],
)
def test_metadata_of_another_form_is_left_alone(folder, other, metadata):
    path = folder / "foreign.fairproj"
    load(other).save(path, metadata=metadata)
    run("info", path)
    assert "add --label and --sensitive" in run("audit", path, folder / "s.csv", code=1).stderr
    asked = ("--label", "y", "--sensitive", "sex")
    run("audit", path, folder / "s.csv", *asked)
    run("predict", path, folder / "s.csv", "-o", folder / "foreign.csv", "--force")
    run("report", path, folder / "s.csv", *asked, "-o", folder / "foreign.html", "--force")


def test_inputs_are_never_outputs(folder, other):
    data = folder / "precious.csv"
    small(folder).to_csv(data, index=False)
    before = data.read_bytes()
    asked = ("--label", "y", "--sensitive", "sex", "--rounds", 2, "--force")
    (folder / "link.csv").symlink_to(data)
    for arguments in (
        ["train", data, *asked, "-o", data],
        ["train", data, *asked, "-o", folder / "x" / ".." / "precious.csv"],
        ["predict", other, folder / "link.csv", "-o", data, "--force"],
        ["report", other, data, "-o", folder / "same.md", "--card", folder / "same.md"],
    ):
        assert "already; name another file" in run(*arguments, code=1).stderr
    assert data.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["audit", "{d}/s.csv", "--predictions", "y"], "cannot be both the predictions"),
        (["audit", "{d}/holes.csv", "--predictions", "said"], "has 3 missing values in 600 rows"),
        (["audit", "{d}/s.csv", "--predictions", "x", "--sensitive", "sex"], "twice"),
    ],
)
def test_predictions_that_cannot_be_audited(folder, other, arguments, words):
    said = np.where(np.arange(600) < 3, None, "yes")
    small(folder, said=said).to_csv(folder / "holes.csv", index=False)
    asked = ["--label", "y", "--sensitive", "sex"]
    result = run(*(part.format(d=folder) for part in arguments), *asked, code=1)
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_two_columns_of_one_name_are_refused_by_predict(folder, other):
    frame = small(folder).drop(columns=["id", "sex", "race"])
    twice = pd.concat([frame, frame[["x"]]], axis=1)
    twice.to_csv(folder / "twice.csv", index=False)
    result = run("predict", other, folder / "twice.csv", "-o", folder / "t.csv", code=1)
    assert "several columns called 'x'" in result.stderr


@pytest.mark.parametrize("column", ["x", "z", "y", "sex", "said"])
def test_columns_of_lists_are_refused_by_name(folder, other, column):
    frame = small(folder).assign(said="yes").drop(columns="id")
    frame[column] = [[1]] * 600
    data = folder / f"lists-{column}.parquet"
    frame.to_parquet(data)
    asked = ("--label", "y", "--sensitive", "sex")
    commands = [
        ("train", data, *asked, "-o", folder / "lists.fairproj"),
        ("audit", other, data),
        ("predict", other, data, "-o", folder / "lists.csv"),
        ("audit", data, *asked, "--predictions", "said"),
    ]
    unaffected = {"y": [2], "sex": [2], "said": [1, 2], "x": [3], "z": [3]}[column]
    for position, command in enumerate(commands):
        if position not in unaffected:
            failed = run(*command, code=1).stderr
            assert f"'{column}' (" in failed
            assert "list<element: int64>)" in failed
            assert failed.count("\n") == 1


def test_defects_are_not_reported_as_errors_of_the_user(folder, other, monkeypatch):
    from fairproj.cli import _info

    def fail(*arguments):
        raise TypeError("a defect")

    monkeypatch.setattr(_info, "read_record", fail)
    with pytest.raises(TypeError, match="a defect"):
        run("info", other)


@pytest.mark.parametrize(("label", "positive"), [(True, "true"), (2.0, "2"), (7, "7.0")])
def test_positive_labels_of_every_kind(folder, label, positive):
    frame = small(folder)
    values = {True: [False, True], 2.0: [1.0, 2.0], 7: [3, 7]}[label]
    frame["y"] = np.where(frame["y"] == "yes", values[1], values[0])
    frame.drop(columns="id").to_parquet(folder / "kinds.parquet")
    path = folder / "kinds.fairproj"
    asked = ("--label", "y", "--sensitive", "sex", "--rounds", 3, "--positive", positive)
    run("train", folder / "kinds.parquet", *asked, "-o", path, "--force")
    assert load(path).pos_label == label


def kill_while_writing(arguments):
    """The exit code of a run that is killed while it waits to publish its file."""
    code = (
        "import sys, time, pathlib; import fairproj.io.atomic as files; "
        "publish = files._publish; "
        "slow = lambda: (print('writing', flush=True), time.sleep(60)); "
        "files._publish = lambda *a: (slow(), publish(*a))[1]; "
        f"sys.argv = {['fairproj', *map(str, arguments)]!r}; "
        "from fairproj.__main__ import main; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    ) as process:
        for line in process.stdout:
            if line.startswith("writing"):
                os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["train", "predict", "report"])
def test_a_run_killed_while_it_writes_leaves_no_half_file(folder, model, command):
    """The worst moment here; benchmarks/safety kills at random ones."""
    out = folder / {"train": "k.fairproj", "predict": "k.parquet", "report": "k.html"}[command]
    arguments = {
        "train": ["train", folder / "german.csv", *TRAIN],
        "predict": ["predict", model, folder / "german.csv"],
        "report": ["report", model, folder / "german.csv"],
    }[command]
    arguments += ["-o", out, "--force"]
    assert kill_while_writing(arguments) == -signal.SIGKILL
    assert not out.exists()
    run(*arguments)
    before = out.read_bytes()
    assert kill_while_writing(arguments) == -signal.SIGKILL
    assert out.read_bytes() == before
    if command == "train":
        load(out)
    elif command == "predict":
        assert pq.read_table(out).num_rows == 1000
    else:
        assert before.rstrip().endswith(b"</html>")


def test_categories_spelt_like_missing_values_are_read_as_in_training(folder):
    """Learnt from pandas or Parquet, where NA is a text like any other."""
    rng = np.random.default_rng(0)
    frame = small(folder).drop(columns=["id", "race"])
    frame["z"] = rng.choice(["NA", "null", "N/A", "x"], size=600)
    frame["y"] = np.where((frame["z"] == "NA") ^ (rng.random(600) < 0.1), "yes", "no")
    frame.to_parquet(folder / "na.parquet")
    frame.to_csv(folder / "na.csv", index=False)
    path, out = folder / "na.fairproj", folder / "na-out.csv"
    asked = ("--label", "y", "--sensitive", "sex", "--rounds", 8)
    run("train", folder / "na.parquet", *asked, "-o", path)
    expected = load(path).predict(frame[["x", "z"]])
    for name in ("na.parquet", "na.csv"):
        printed = run("predict", path, folder / name, "-o", out, "--force", "--json").stdout
        assert json.loads(printed)["unseen"]["unknown"] == {}
        np.testing.assert_array_equal(pd.read_csv(out)["prediction"], expected)
    audited = run_json("audit", path, folder / "na.csv")
    assert audited["scores"][0]["value"] == pytest.approx(np.mean(expected == frame["y"]))


def test_predict_counts_what_training_did_not_know(folder, other, monkeypatch):
    monkeypatch.setattr(tables, "CHUNK_ROWS", 100)
    frame = small(folder)
    frame["z"] = np.where(np.arange(600) < 250, "new", frame["z"])
    frame.loc[590:, "z"] = None
    frame.loc[5, "race"] = "d"
    frame.to_parquet(folder / "unknown.parquet")
    out = folder / "unknown-out.csv"
    asked = ("predict", other, folder / "unknown.parquet", "-o", out, "--missing", "score")
    result = run(*asked)
    printed = " ".join(result.stdout.split())
    assert "z unknown in 250 rows (such as 'new', rows 1, 2, 3, ...)" in printed
    assert "race unknown in 1 row (such as 'd', row 6)" in printed
    assert result.stderr == ""  # two chunks have no value of z that is known
    told = json.loads(run(*asked, "--force", "--json").stdout)["unseen"]
    assert told["unknown"] == {"z": 250, "race": 1}
    assert told["missing"] == {"z": 10}
    small(folder).to_parquet(folder / "known.parquet")
    known = run("predict", other, folder / "known.parquet", "-o", out, "--force").stdout
    assert "unlike" not in known


def test_booleans_of_parquet_are_spelt_as_in_a_csv_file(folder):
    frame = small(folder).drop(columns=["id", "race"])
    frame["z"] = np.where(frame["x"] > 0, "True", "False")
    frame.loc[:9, "z"] = "maybe"
    frame["y"] = np.where((frame["z"] == "True") ^ (frame.index % 7 == 0), "yes", "no")
    frame["x"] = 0.0
    frame.to_csv(folder / "spelt.csv", index=False)
    path, out = folder / "spelt.fairproj", folder / "spelt-out.csv"
    asked = ("--label", "y", "--sensitive", "sex", "--rounds", 5)
    run("train", folder / "spelt.csv", *asked, "-o", path)
    new = frame.iloc[10:]
    new.assign(z=new["z"] == "True").to_parquet(folder / "spelt.parquet")
    run("predict", path, folder / "spelt.parquet", "-o", out)
    probability = pd.read_csv(out)["probability_yes"]
    np.testing.assert_allclose(probability, load(path).predict_proba(new[["x", "z"]])[:, 1])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_columns_of_polars_and_of_several_dictionaries_are_kept(folder, other, suffix):
    pl = pytest.importorskip("polars")
    frame = small(folder)
    table = pl.from_pandas(frame)
    table.with_columns(pl.col("race").cast(pl.Categorical)).write_ipc(folder / "pl.arrow")
    parts = [
        pa.Table.from_pandas(frame[rows].assign(kind=pd.Categorical([f"k{start}"] * 300)))
        for start, rows in ((0, slice(0, 300)), (300, slice(300, 600)))
    ]
    with pq.ParquetWriter(folder / "two.parquet", parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part)
    for data, keep, values in (
        ("pl.arrow", ["id", "race"], frame[["id", "race"]].to_numpy().tolist()),
        ("two.parquet", ["kind"], [["k0"]] * 300 + [["k300"]] * 300),
    ):
        out = folder / f"kept.{suffix}"
        options = [part for name in keep for part in ("--keep", name)]
        run("predict", other, folder / data, "-o", out, "--force", *options)
        read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "feather": pd.read_feather}[suffix]
        kept = read(out, dtype=str) if suffix == "csv" else read(out)
        assert kept[keep].to_numpy().tolist() == values


def test_a_kept_column_that_cannot_be_written(folder, other):
    table = pa.Table.from_pandas(small(folder))
    spans = pa.array([pa.MonthDayNano([1, 2, 3])] * 600)
    table = table.append_column("span", spans)
    with pa.ipc.new_file(folder / "span.arrow", table.schema) as writer:
        writer.write_table(table)
    out = folder / "span.csv"
    failed = run("predict", other, folder / "span.arrow", "-o", out, "--keep", "span", code=1)
    assert re.fullmatch(r"error: .*span\.csv cannot hold column 'span' .*\n", failed.stderr)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["predict", "{d}/s.fairproj", "{d}/s.csv", "-o", "/proc/x.csv"], "/proc/x.csv cannot be"),
        (["export", "{d}/s.fairproj", "-o", "/proc/x.txt"], "/proc/x.txt cannot be written"),
        (["train", "{d}/s.csv", *TRAIN, "-o", "/proc/x"], "/proc/x cannot be written"),
        (["demo", "-o", "{d}/s.csv"], "the folder .*s.csv cannot be created: File exists"),
        (["export", "{d}/s.fairproj", "-o", "{d}/pipe.csv", "--force"], "not a plain file"),
        (["predict", "{d}/s.fairproj", "{d}/pipe.csv", "-o", "{d}/y.csv"], "not a plain file"),
        (["predict", "{d}/s.csv", "{d}/s.fairproj", "-o", "{d}/y.csv"], "give the model first"),
        (["train", "{d}/s.csv", *TRAIN[2:], "--label", "Y", "-o", "{d}/y"], "did you mean 'y'"),
        (
            ["train", "{d}/dates.csv", "--label", "y", "--sensitive", "sex", "-o", "{d}/y"],
            "'born' .dates., 'seen' .dates with times., 'at' .times of day.; turn them .* --drop",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_places_and_columns_that_cannot_be_used(folder, other, arguments, words):
    if not (folder / "pipe.csv").exists():
        os.mkfifo(folder / "pipe.csv")
    dates = {"born": "1990-01-02", "seen": "2020-01-02 10:00:00", "at": "10:00:00"}
    small(folder, **dates).to_csv(folder / "dates.csv", index=False)
    result = run(*(argument.format(d=folder) for argument in arguments), code=1)
    assert re.search(words, result.stderr), result.stderr
    assert result.stderr.count("\n") == 1
    assert "partial" not in result.stderr
    assert stat.S_ISFIFO((folder / "pipe.csv").stat().st_mode)


def test_numbers_out_of_range_are_refused_by_name(folder, other):
    asked = ("predict", other, folder / "s.csv", "-o", folder / "y.csv", "--jobs", 0)
    assert "it must be 1 or more" in run(*asked, code=2).stderr
    asked = ("train", folder / "s.csv", "--label", "y", "--sensitive", "sex", "-o", folder / "y")
    assert "4294967295" in run(*asked, "--seed", 2**32, code=2).stderr
    with pytest.raises(ValueError, match="cannot be used to seed"):
        fair_train_test_split([1] * 8, [0, 1] * 4, [0] * 4 + [1] * 4, random_state="x")


def test_a_replaced_file_keeps_its_mode_and_its_link(folder, other):
    target, link = folder / "secret.csv", folder / "to-secret.csv"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    run("predict", other, folder / "s.csv", "-o", link, "--force")
    assert link.is_symlink()
    assert len(pd.read_csv(target)) == 600
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_file_cannot_command_the_terminal(folder, other):
    model = load(other)
    record = model.metadata_["fairproj train"]
    hostile = "\x1b[31mX\x07\x9b\u202e"
    task = {**record["task"], "label": hostile}
    path = folder / "hostile.fairproj"
    model.save(path, metadata={"fairproj train": {**record, "task": task}})
    failed = run("audit", path, folder / "s.csv", code=1).stderr
    info = run("info", path).stdout
    named = small(folder, **{hostile: ["\x1b]0;title\x07a", "b"] * 300}).drop(columns="id")
    named.to_csv(folder / "hostile.csv", index=False)
    asked = ("--label", "y", "--sensitive", hostile, "--rounds", 3, "--force")
    shown = run("train", folder / "hostile.csv", *asked, "-o", path).stdout
    for text in (failed, info, shown):
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
        assert r"\x1b[31mX" in text


@pytest.mark.parametrize("date", ["2026-01-31", "checked by X", "20260131", "2026-02-30"])
def test_the_date_of_training_is_a_date(folder, other, date):
    model = load(other)
    record = {**model.metadata_["fairproj train"], "date": date}
    path = folder / "dated.fairproj"
    model.save(path, metadata={"fairproj train": record})
    read = read_record(load(path))
    assert read is None if date != "2026-01-31" else read.date == date


def test_what_the_constraint_cost_is_printed_and_kept(folder, model):
    """Both models measured again with scikit-learn, on the rows that neither was trained on."""
    german = load_german()
    X, y, groups = german.data, german.target, german.sensitive_features
    X1, X2, y1, y2, g1, g2 = fair_train_test_split(X, y, groups, test_size=0.25, random_state=0)
    trained = load(model)
    plain = FairBoostClassifier(
        None, n_estimators=8, pos_label="good", validation_fraction=0.25, random_state=0
    )
    plain.fit(X1.sort_index(), y1.sort_index(), sensitive_features=g1.sort_index())
    price = trained.price_
    assert (price.rows, price.n_rows) == ("test rows", 250)
    for scores, fitted in ((price.model, trained), (price.plain, plain)):
        probability = fitted.predict_proba(X2)[:, 1]
        assert scores.accuracy == pytest.approx(np.mean(fitted.predict(X2) == y2))
        assert scores.auc == pytest.approx(roc_auc_score(y2 == "good", probability))
        assert scores.log_loss == pytest.approx(log_loss(y2 == "good", probability))
    np.testing.assert_array_equal(trained.baseline_.predict(X2), plain.predict(X2))
    assert run_json("info", model)["price"] == price.to_dict()

    page = folder / "price.json"
    run("report", model, folder / "german.csv", "-o", page, "-o", folder / "price.md")
    shown = json.loads(page.read_text("utf-8"))["price"]
    rows = {row["name"]: row for row in shown["scores"]}
    gap = rows["gap of the true positive rates (equal opportunity) (at most 0.05)"]
    for name, fitted in (("model", trained), ("plain", plain)):
        expected = equal_opportunity_difference(
            y2, fitted.predict(X2), sensitive_features=g2, pos_label="good"
        )
        assert gap[name] == pytest.approx(expected)
    assert rows["accuracy"]["model"] == price.model.accuracy
    assert shown["points"] == pytest.approx(100 * (price.plain.accuracy - price.model.accuracy))
    printed = " ".join(run("info", model).stdout.split())
    for text in (printed, (folder / "price.md").read_text("utf-8")):
        assert re.search("the same settings without a constraint|changed nothing: with it", text)
        assert "What fairness cost, on 250 test rows" in text


@pytest.fixture(scope="module")
def rare(folder):
    """Labels of which one in twenty is positive, and hardly to be predicted."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=1600)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 1600), "x": x, "z": rng.normal(size=1600)})
    frame["y"] = (rng.random(1600) < 1 / (1 + np.exp(3 - 0.6 * x))).astype(int)
    frame.to_csv(folder / "rare.csv", index=False)
    return ("train", folder / "rare.csv", "--label", "y", "--sensitive", "sex", "--leaves", 4)


def test_a_model_that_is_not_useful_has_an_exit_code_of_its_own(folder, rare):
    path = folder / "useless.fairproj"
    result = run(*rare, "--rounds", 10, "-o", path, code=5)
    (reason,) = [line for line in result.stderr.splitlines() if "useful" in line]
    assert reason.startswith("warning: the model is not useful: on the training rows its errors")
    assert "--class-weight balanced" in reason
    assert not load(path).certificate_.useful
    sentence = "The model is not useful, whatever its gap"
    assert sentence in " ".join(run("audit", path, folder / "rare.csv").stdout.split())
    run("audit", path, folder / "rare.csv", "--max-gap", 0.9, code=5)  # within it, and useless
    shown = " ".join(run("info", path).stdout.split())
    assert sentence in shown
    assert "these numbers do not tell what a constraint costs" in shown
    assert "cost no accuracy" not in result.stdout + shown
    assert "What fairness cost" not in result.stdout
    assert "Next:" not in result.stdout
    page = folder / "useless.md"
    run("report", path, folder / "rare.csv", "-o", page)
    assert "these numbers do not tell what a constraint costs" in page.read_text("utf-8")
    assert "For new people, the constraint" not in page.read_text("utf-8")
    useful = ("--class-weight", "balanced", "--force")
    result = run(*rare, "--rounds", 10, *useful, "-o", path)
    assert "useful" not in result.stderr
    assert load(path).certificate_.met


def test_a_missed_gap_has_the_exit_code_of_a_missed_gap(folder, rare):
    path = folder / "missed.fairproj"
    options = ("--rounds", 5, "--class-weight", "balanced", "--max-gap", 0)
    options += ("--selection-rate", 0.3, "--validation-fraction", 0.5)
    result = run(*rare, *options, "-o", path, code=3)
    (reason,) = [line for line in result.stderr.splitlines() if "misses" in line]
    model = load(path)
    certificate = model.certificate_
    assert certificate.useful
    assert not certificate.within
    assert f"its gap in true positive rate is {certificate.gap:.3f}, above 0" in reason
    near = dataclasses.replace(certificate, gap=0.03, max_gap=0.04)  # with --margin one_se
    model.certificate_ = near
    code, reason = outcome(model, read_record(model))
    assert code == 3
    assert "is 0.030, less than a standard error below 0.04" in reason
    assert "less than a standard error below the largest gap allowed" in certificate_words(near)[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--label", "y"], "error: --label: it is given more than once"),
        (["--seed", 1, "--seed", 2], "error: --seed: it is given more than once"),
        (["-o", "x"], "error: --output / -o: it is given more than once"),
        (["--threshold", 1.5], "1.5 must lie between 0 and 1"),
        (["--validation-fraction", "half"], "'half' is none of auto, none and a number"),
    ],
)
def test_options_that_are_given_twice_or_out_of_range(folder, rare, options, words):
    failed = run(*rare, *options, "-o", folder / "no", code=2).stderr
    assert words in " ".join(failed.split())


def test_several_constraints_with_a_gap_each(folder, other):
    path = folder / "several.fairproj"
    asked = ("train", folder / "s.csv", "--label", "y", "--sensitive", "sex", "--rounds", 5)
    asked += ("--drop", "id", "-o", path, "--force")
    asked += ("--constraint", "demographic_parity", "--constraint", "accuracy")
    run(*asked, "--max-gap", 0.2, "--max-gap", 0.3)
    trained = load(path)
    assert trained.constraints == ["demographic_parity", "accuracy_parity"]
    assert trained.max_gap == [0.2, 0.3]
    audited = run_json("audit", path, folder / "s.csv")
    assert audited["target"]["metric"] == "demographic_parity"
    summary = " ".join(audited["summary"])
    for words in ("at most 20.0 percentage points", "at most 30.0 percentage points"):
        assert words in summary
    (gap,) = [row for row in audited["gaps"] if row["gap"] == "accuracy_parity"]
    assert f"{100 * gap['estimate']:.1f} percentage points" in summary
    alone = run_json("audit", path, folder / "s.csv", "--metric", "accuracy")
    assert alone["target"]["max_gap"] == 0.3
    run(*asked, "--max-gap", 0.4)
    assert load(path).max_gap == [0.4, 0.4]


def test_a_model_of_several_constraints_has_the_worst_verdict(folder):
    """Two gaps, one of them surely above its target."""
    sex = np.repeat(["f", "m"], 500)
    y = np.tile([0, 1], 500)
    said = np.where((sex == "f") & (np.arange(1000) % 4 == 0), 1, y)  # half of the women's zeros
    both = {"false_positive_rate_parity": 0.1}
    content = summarize_predictions(
        y, said, sensitive_features=sex, max_gap=0.1, other_targets=both
    )
    alone = summarize_predictions(y, said, sensitive_features=sex, max_gap=0.1)
    assert (alone["verdict"], content["verdict"]) == ("met", "not met")
    assert content["summary"][-1].endswith("is not met: the whole interval is above it.")


def test_options_of_training_reach_the_estimator(folder, other):
    path = folder / "options.fairproj"
    asked = ("train", folder / "s.csv", "--label", "y", "--sensitive", "sex", "--rounds", 3)
    asked += ("--drop", "id", "--max-gap", 1, "-o", path, "--force")
    given = {
        "loss": "exponential",
        "votes": "discrete",
        "class_weight": "balanced",
        "margin": "one_se",
        "threshold": 0.3,
        "learning_rate": 0.5,
        "validation_fraction": "none",
    }
    run(*asked, *(part for name, value in given.items() for part in (option(name), value)))
    expected = {**given, "validation_fraction": None, "baseline": True}
    assert expected.items() <= load(path).get_params().items()
    for command in (("info", path), ("audit", path, folder / "s.csv")):
        printed = " ".join(run(*command).stdout.split())
        assert "The model predicts 'yes' when the probability of 'yes' exceeds 0.3; " in printed
        assert "the gap was limited at this threshold only" in printed
    given = {"selection_rate": 0.3, "validation_fraction": 0.4}
    options = [part for name, value in given.items() for part in (option(name), value)]
    run(*asked, *options, "--early-stopping")
    assert {**given, "early_stopping": True}.items() <= load(path).get_params().items()
    for name in ("max_false_positive_rate", "max_false_negative_rate"):
        run(*asked, option(name), 0.2)
        assert load(path).get_params()[name] == 0.2


def option(name):
    return f"--{name.replace('_', '-')}"


def test_help_lists_options_in_groups():
    printed = run("train", "--help").stdout
    groups = ["Data:", "Target:", "Where the model decides:", "Training:", "Search:"]
    places = [printed.index(f"\n{group}\n") for group in groups]
    assert places == sorted(places)
    assert places[2] < printed.index("--selection-rate SHARE") < places[3]
