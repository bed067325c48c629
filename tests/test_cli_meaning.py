"""What the numbers of the commands refer to: target, frontier, groups, labels and rows."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from commands import run, run_json
from fairproj import FairBoostClassifier, FairProjClassifier, load

ASKED = ["--label", "y", "--sensitive", "sex", "--drop", "id", "--rounds", "6"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": np.arange(400),
            "x": rng.normal(size=400),
            "sex": rng.choice(["f", "m"], size=400),
            "race": rng.choice(["a", "b"], size=400),
        }
    )
    return frame.assign(y=np.where(frame["x"] + rng.normal(size=400) > 0, "yes", "no"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("meaning")
    data.to_csv(folder / "d.csv", index=False)
    run("train", folder / "d.csv", *ASKED, "--max-gap", 0.1, "-o", folder / "m.fairproj")
    return folder


@pytest.mark.parametrize(
    ("more", "same"),
    [
        ([], True),
        (["--positive", "yes", "--sensitive", "sex", "--label", "y"], True),
        (["--sensitive", "race"], False),
        (["--positive", "no"], False),
    ],
)
def test_target_and_frontier_are_for_the_groups_and_the_label_of_training(folder, more, same):
    model, data, out = folder / "m.fairproj", folder / "d.csv", folder / "r.json"
    assert run_json("audit", model, data, *more)["target"]["max_gap"] == (0.1 if same else None)
    run("report", model, data, *more, "-o", out, "--force")
    content = json.loads(out.read_text("utf-8"))
    assert content["frontier"] is None
    assert content["target"]["max_gap"] == (0.1 if same else None)
    asked = ("report", model, data, *more, "-o", out, "--force", "--jobs", 1, "--frontier")
    if same:
        run(*asked)
        assert json.loads(out.read_text("utf-8"))["frontier"]["points"]
    else:
        assert "the groups and the positive label of training" in run(*asked, code=1).stderr


def test_a_report_on_other_rows_needs_no_column_that_the_model_does_not(folder, data):
    data.drop(columns="id").to_csv(folder / "new.csv", index=False)
    data.rename(columns={"sex": "gender"}).to_csv(folder / "gender.csv", index=False)
    model = folder / "m.fairproj"
    run("report", model, folder / "new.csv", "-o", folder / "new.json")
    run("report", model, folder / "gender.csv", "--sensitive", "gender", "-o", folder / "g.json")
    asked = ("report", model, folder / "new.csv", "-o", folder / "f.json", "--frontier")
    assert "the file it was trained from" in run(*asked, code=1).stderr


@pytest.mark.filterwarnings("ignore:some groups have fewer")
def test_a_model_fitted_anew_has_no_record_of_its_old_rows(folder, data):
    model = load(folder / "m.fairproj")
    assert model.metadata_
    model.fit(data[["x"]], data["y"], sensitive_features=data["sex"])
    model.save(folder / "anew.fairproj")
    audited = run_json(
        "audit", folder / "anew.fairproj", folder / "d.csv", "--label", "y", "--sensitive", "sex"
    )
    assert audited["data"]["seen"] is None
    assert audited["data"]["rows"] == 400


@pytest.mark.parametrize(
    ("trained", "audited"),
    [
        ({"no": "0", "yes": "1"}, {"no": 0, "yes": 1}),
        ({"no": 0, "yes": 1}, {"no": "0", "yes": "1"}),
        ({"no": 0, "yes": 1}, {"no": False, "yes": True}),
    ],
)
def test_labels_mean_what_they_meant_in_training(folder, data, tmp_path, trained, audited):
    data.assign(y=data["y"].map(trained)).to_parquet(tmp_path / "a.parquet")
    data.assign(y=data["y"].map(audited)).to_parquet(tmp_path / "b.parquet")
    run("train", tmp_path / "a.parquet", *ASKED, "--test-size", 0, "-o", tmp_path / "m.fairproj")
    first, second = (
        run_json("audit", tmp_path / "m.fairproj", tmp_path / name)
        for name in ("a.parquet", "b.parquet")
    )
    assert first["gaps"] == second["gaps"]
    assert first["scores"] == second["scores"]


def test_labels_the_model_does_not_know(folder, data):
    data.assign(y=data["y"].map({"no": 0, "yes": 1})).to_csv(folder / "coded.csv", index=False)
    printed = run("audit", folder / "m.fairproj", folder / "coded.csv", code=1).stderr
    assert "has 0, 1" in printed or "has 1, 0" in printed
    assert "the model knows 'no', 'yes'" in printed
    printed = run(
        "audit", folder / "m.fairproj", folder / "d.csv", "--positive", "1", code=1
    ).stderr
    assert "--positive 1 is not among the model's labels" in printed


@pytest.mark.parametrize("command", ["frontier", "report"])
def test_an_interrupt_leaves_no_output(folder, command, monkeypatch):
    """An interrupt after the first fold: nothing is written, and the exit code is 130."""
    from fairproj.selection import frontier

    real, calls = frontier._fit_fold, []

    def fit_fold(*arguments):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(frontier, "_fit_fold", fit_fold)
    out = folder / f"stopped-{command}.{'csv' if command == 'frontier' else 'html'}"
    arguments = {
        "frontier": [folder / "d.csv", *ASKED],
        "report": [folder / "m.fairproj", folder / "d.csv", "--frontier"],
    }[command]
    result = run(command, *arguments, "-o", out, "--jobs", 1, code=130)
    assert result.stderr.strip().splitlines()[-1] == "Interrupted."
    warnings = [line for line in result.stderr.splitlines() if line.startswith("warning")]
    assert len(warnings) == len(set(warnings))
    assert not any("interrupted" in line for line in warnings)
    assert len(calls) == 2
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [("score", 10**400), ("value", 10**400), ("gap_se", 2.0), ("gap", -1.0)],
    ids=["score", "value", "gap_se", "gap"],
)
def test_numbers_out_of_range_are_no_record(folder, tmp_path, name, value):
    asked = [*ASKED, "--search", "--max-gap", 0.9]
    run("train", folder / "d.csv", *asked, "-o", tmp_path / "m.fairproj")
    model = load(tmp_path / "m.fairproj")
    model.metadata_["fairproj train"]["search"]["candidates"][0][name] = value
    model.save(tmp_path / "h.fairproj")
    result = run(
        "report", tmp_path / "h.fairproj", folder / "d.csv", "-o", tmp_path / "h.html", code=1
    )
    assert "does not record what it was trained for" in result.stderr


def test_errors_speak_of_options(folder):
    start = ["train", folder / "d.csv", *ASKED, "-o", folder / "x.fairproj"]
    printed = run(*start, "--search", "--max-gap", 0, code=6).stderr
    assert "--nearest" in printed
    assert "warning: none of" not in printed
    assert "if_none" not in printed
    assert printed.splitlines()[-1].startswith("no solution found:")
    assert (
        "--learning-rate 0 must be above 0 and at most 1"
        in run(*start, "--learning-rate", 0, code=1).stderr
    )
    assert not (folder / "x.fairproj").exists()


def test_only_groups_with_rows_are_shown(folder, data, tmp_path):
    many = pd.CategoricalDtype(["f", "m", "nobody"])
    data.assign(sex=data["sex"].astype(many)).to_parquet(tmp_path / "d.parquet")
    printed = run("train", tmp_path / "d.parquet", *ASKED, "-o", tmp_path / "m.fairproj").stdout
    assert "nobody" not in printed


def test_learners_of_ones_own_are_opened_with_trust(folder, data, tmp_path):
    model = FairProjClassifier(estimator=DecisionTreeClassifier(max_depth=2), n_estimators=3)
    model.fit(data[["x"]], data["y"], sensitive_features=data["sex"]).save(tmp_path / "t.fairproj")
    asked = ["audit", tmp_path / "t.fairproj", folder / "d.csv"]
    asked += ["--label", "y", "--sensitive", "sex"]
    printed = " ".join(run(*asked, code=1).stderr.split())
    assert "sklearn.tree._tree.Tree, which are not trusted" in printed
    assert "--trust" in printed
    trust = ["--trust", "sklearn.tree._tree.Tree"]
    audited = run_json(*asked, *trust)
    assert audited["scores"][0]["value"] == np.mean(model.predict(data[["x"]]) == data["y"])
    assert "3" in run("info", tmp_path / "t.fairproj", *trust).stdout
    run("report", *asked[1:], *trust, "-o", tmp_path / "r.md")
    out = tmp_path / "p.csv"
    run("predict", tmp_path / "t.fairproj", folder / "d.csv", *trust, "-o", out)
    assert pd.read_csv(out)["prediction"].tolist() == model.predict(data[["x"]]).tolist()


def test_crossed_columns_in_any_order_are_the_same_groups(folder, data, tmp_path):
    model = tmp_path / "m.fairproj"
    asked = [*ASKED, "--sensitive", "race", "--max-gap", 0.1]
    run("train", folder / "d.csv", *asked, "-o", model)
    turned = ["--sensitive", "race", "--sensitive", "sex"]
    assert run_json("audit", model, folder / "d.csv", *turned)["target"]["max_gap"] == 0.1


def test_predictions_are_read_as_the_labels(folder, data):
    coded = data.assign(y=data["y"].map({"no": 0, "yes": 1}), said=data["y"], score=data["x"])
    coded.to_csv(folder / "said.csv", index=False)
    data.assign(y=data["y"].map({"no": "0", "yes": "1"}), said=(data["x"] > 0) * 1).to_parquet(
        folder / "said.parquet"
    )
    asked = ["--label", "y", "--sensitive", "sex"]
    for column, start in (("said", "'no', 'yes'"), ("score", "")):
        printed = run("audit", folder / "said.csv", *asked, "--predictions", column, code=1).stderr
        assert f"the predictions '{column}'" in printed
        assert "for scores add --threshold" in printed
        assert start in printed or "'yes', 'no'" in printed
    audited = run_json("audit", folder / "said.parquet", *asked, "--predictions", "said")
    assert audited["scores"][0]["value"] == np.mean((data["x"] > 0) == (data["y"] == "yes"))


def test_a_link_to_itself_is_no_place_for_a_file(folder, tmp_path):
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    printed = run("predict", folder / "m.fairproj", folder / "d.csv", "-o", loop, code=1).stderr
    assert "cannot be written" in printed
    with pytest.raises(ValueError, match="is not the name of a file"):
        load(folder / "m.fairproj").save("/")


def test_scores_are_audited_at_a_threshold(tmp_path):
    """As the same scores turned into labels by pandas; a score at the threshold is negative."""
    rng = np.random.default_rng(0)
    n_rows = 30_000
    frame = pd.DataFrame(
        {
            "paid": rng.choice(["no", "yes"], n_rows),
            "sex": rng.choice(["f", "m"], n_rows),
            "score": np.append(rng.random(n_rows - 2), [0.3, 0.3]),
        }
    )
    frame["said"] = np.where(frame["score"] > 0.3, "yes", "no")
    asked = ("--label", "paid", "--sensitive", "sex", "--predictions")
    keys = ("rates", "gaps", "scores", "groups")
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"scored.{suffix}"
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
        expected = run_json("audit", path, *asked, "said")
        found = run_json("audit", path, *asked, "score", "--threshold", 0.3)
        assert {key: found.get(key) for key in keys} == {key: expected.get(key) for key in keys}
        assert "above 0.3" in found["title"]
    refused = run("audit", path, *asked, "said", "--threshold", 0.3, code=1).stderr
    assert refused.count("\n") == 1
    page = tmp_path / "r.md"
    run("report", path, *asked, "score", "--threshold", 0.3, "-o", page)
    assert "above 0.3" in page.read_text()


def words(text):
    return " ".join(text.split())


def test_predictions_no_better_than_chance_meet_no_target(tmp_path):
    random = np.random.default_rng(0)
    y = random.choice(["no", "yes"], 4000)
    score = np.where(y == "yes", 0.3, 0.6) + random.normal(0, 0.2, 4000)
    frame = pd.DataFrame({"y": y, "sex": random.choice(["f", "m"], 4000), "score": score})
    frame["coin"] = random.choice(["no", "yes"], 4000)
    frame.to_csv(tmp_path / "p.csv", index=False)
    asked = ("--label", "y", "--sensitive", "sex", "--max-gap", 0.2)
    coin = run("audit", tmp_path / "p.csv", *asked, "--predictions", "coin", code=5).stdout
    assert "On these rows the predictions tell the labels no better than chance" in words(coin)
    assert "says nothing about such a model" in words(coin)
    scores = ("--predictions", "score", "--threshold", 0.5)
    wrong = words(run("audit", tmp_path / "p.csv", *asked, *scores, code=5).stdout)
    assert "The predictions point the wrong way" in wrong
    assert "Check which label the predictions, or high scores, stand for" in wrong
    right = words(run("audit", tmp_path / "p.csv", *asked, *scores, "--positive", "no").stdout)
    assert "is met" in right


def test_a_gap_above_the_target_stays_so_whatever_the_predictions_tell(tmp_path):
    """A coin for one group, and yes for the other."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"y": random.choice(["no", "yes"], 4000)})
    frame["sex"] = random.choice(["f", "m"], 4000)
    coin = random.choice(["no", "yes"], 4000)
    frame["said"] = np.where(frame["sex"] == "m", "yes", coin)
    frame.to_csv(tmp_path / "p.csv", index=False)
    asked = ("--label", "y", "--sensitive", "sex", "--max-gap", 0.2, "--predictions", "said")
    assert "is not met" in words(run("audit", tmp_path / "p.csv", *asked, code=3).stdout)


@pytest.fixture(scope="module")
def from_python(tmp_path_factory):
    """A model trained and saved in Python, whose positive label comes first, and its test rows."""
    folder = tmp_path_factory.mktemp("python")
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"x": random.normal(size=3000), "sex": random.choice(["f", "m"], 3000)})
    frame["y"] = np.where(frame["x"] + random.normal(size=3000) > 0, "no", "yes")
    train, test = frame[:2000], frame[2000:]
    model = FairBoostClassifier(
        "equal_opportunity", 0.07, n_estimators=20, pos_label="no", baseline=True, random_state=0
    )
    model.fit(train[["x"]], train["y"], sensitive_features=train["sex"])
    model.save(folder / "m.fairproj")
    test.assign(other=random.choice(["a", "b"], 1000)).to_csv(folder / "d.csv", index=False)
    return folder


def test_a_model_from_python_is_judged_by_its_own_limit(from_python):
    asked = ("audit", from_python / "m.fairproj", from_python / "d.csv", "--label", "y")
    found = run_json(*asked, "--sensitive", "sex")
    assert found["target"] == {**found["target"], "metric": "equal_opportunity", "max_gap": 0.07}
    assert found["verdict"] != "no target"
    for other in (["--sensitive", "other"], ["--sensitive", "sex", "--positive", "yes"]):
        assert run_json(*asked, *other)["target"]["max_gap"] is None
    for metric in ("demographic_parity", "equalized_odds"):
        found = run_json(*asked, "--sensitive", "sex", "--metric", metric)
        assert (found["target"]["max_gap"], len(found["targets"])) == (None, 1)


def test_both_tables_of_a_report_have_the_same_scores(from_python):
    """Bins of the calibration error start at the other end for the other label."""
    asked = ("--label", "y", "--sensitive", "sex", "-o", from_python / "r.json")
    run("report", from_python / "m.fairproj", from_python / "d.csv", *asked)
    content = json.loads((from_python / "r.json").read_text("utf-8"))
    shown = {row["name"]: row["value"] for row in content["scores"]}
    price = {row["name"]: row["model"] for row in content["price"]["scores"]}
    assert price["calibration error"] == pytest.approx(shown["calibration error"])
    worst = "calibration error, worst group"
    assert price[worst] == pytest.approx(shown[worst])
    assert price["ROC AUC"] == pytest.approx(shown["ROC AUC"])
    assert price["log loss"] == pytest.approx(shown["log loss"])


def test_reports_say_where_training_missed_its_limit_and_what_chose_the_threshold(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": random.choice(["f", "m"], 3000), "x": random.normal(size=3000)})
    shift = np.where(frame["sex"] == "m", 1.5, -1.5)
    frame["y"] = np.where(frame["x"] + shift + random.normal(size=3000) > 0, "yes", "no")
    frame.to_csv(tmp_path / "d.csv", index=False)
    asked = ("--label", "y", "--sensitive", "sex", "--use-sensitive", "--rounds", 2)
    more = ("--constraint", "demographic_parity", "--max-gap", 0.01, "--selection-rate", 0.5)
    run("train", tmp_path / "d.csv", *asked, *more, "-o", tmp_path / "m", code=3)
    content = run_json("audit", tmp_path / "m", tmp_path / "d.csv")
    assert any("Training did not reach its limit: on the" in one for one in content["summary"])
    asked = dict(content["asked"])
    assert asked["Threshold chosen for"] == "a selection rate of 0.5"
    assert "selection rate 0.5" in words(run("info", tmp_path / "m").stdout)
