"""What the commands' numbers are about: which target, which frontier, which labels, how much."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from commands import run
from fairproj import FairProjClassifier, load

ASKED = ["--label", "y", "--sensitive", "sex", "--drop", "id", "--rounds", "6"]


def told(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


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
    run("train", folder / "d.csv", *ASKED, "--epsilon", 0.1, "-o", folder / "m.fairproj")
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
    assert told("audit", model, data, *more)["target"]["max_gap"] == (0.1 if same else None)
    run("report", model, data, *more, "-o", out, "--force", "--jobs", 1)
    found = json.loads(out.read_text("utf-8"))
    assert (found["frontier"] is not None) == same
    assert found["target"]["max_gap"] == (0.1 if same else None)


def test_a_report_on_other_rows_needs_no_column_that_the_model_does_not(folder, data):
    data.drop(columns="id").to_csv(folder / "new.csv", index=False)
    data.rename(columns={"sex": "gender"}).to_csv(folder / "gender.csv", index=False)
    model = folder / "m.fairproj"
    run("report", model, folder / "new.csv", "-o", folder / "new.json")
    run("report", model, folder / "gender.csv", "--sensitive", "gender", "-o", folder / "g.json")


def test_a_model_fitted_anew_has_no_record_of_its_old_rows(folder, data):
    model = load(folder / "m.fairproj")
    assert model.metadata_
    model.fit(data[["x"]], data["y"], sensitive_features=data["sex"])
    model.save(folder / "anew.fairproj")
    said = told(
        "audit", folder / "anew.fairproj", folder / "d.csv", "--label", "y", "--sensitive", "sex"
    )
    assert said["data"]["seen"] is None
    assert said["data"]["rows"] == 400


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
        told("audit", tmp_path / "m.fairproj", tmp_path / name)
        for name in ("a.parquet", "b.parquet")
    )
    assert first["gaps"] == second["gaps"]
    assert first["scores"] == second["scores"]


def test_labels_the_model_does_not_know(folder, data):
    data.assign(y=data["y"].map({"no": 0, "yes": 1})).to_csv(folder / "coded.csv", index=False)
    said = run("audit", folder / "m.fairproj", folder / "coded.csv", code=1).stderr
    assert "has 0, 1" in said or "has 1, 0" in said
    assert "the model knows 'no', 'yes'" in said
    said = run("audit", folder / "m.fairproj", folder / "d.csv", "--positive", "1", code=1).stderr
    assert "--positive 1 is not among the model's labels" in said


@pytest.mark.parametrize("command", ["frontier", "report"])
def test_stopped_means_stopped(folder, command, monkeypatch):
    """An interrupt after the first fold: nothing is written, and the exit code tells."""
    from fairproj import selection

    real, calls = selection._fold, []

    def fold(*arguments):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(selection, "_fold", fold)
    out = folder / f"stopped-{command}.{'csv' if command == 'frontier' else 'html'}"
    arguments = {
        "frontier": [folder / "d.csv", *ASKED],
        "report": [folder / "m.fairproj", folder / "d.csv"],
    }[command]
    said = run(command, *arguments, "-o", out, "--jobs", 1, code=130)
    assert said.stderr.strip().splitlines()[-1] == "Stopped."
    assert "warning" not in said.stderr
    assert len(calls) == 2
    assert not out.exists()


@pytest.mark.parametrize("name", ["score", "epsilon", "gap_se"])
def test_numbers_too_large_for_a_float_are_no_record(folder, data, tmp_path, name):
    run("train", folder / "d.csv", *ASKED, "--max-gap", 0.9, "-o", tmp_path / "m.fairproj")
    model = load(tmp_path / "m.fairproj")
    model.metadata_["fairproj train"]["choice"]["table"][0][name] = 10**400
    model.save(tmp_path / "h.fairproj")
    said = run(
        "report", tmp_path / "h.fairproj", folder / "d.csv", "-o", tmp_path / "h.html", code=1
    )
    assert "does not say what it was trained for" in said.stderr


def test_errors_speak_of_options(folder):
    start = ["train", folder / "d.csv", *ASKED, "-o", folder / "x.fairproj"]
    said = run(*start, "--max-gap", 0, code=1).stderr
    assert "--nearest" in said
    assert "warning: none of" not in said
    assert "if_none" not in said
    assert (
        "--learning-rate 0 must be above 0 and at most 1"
        in run(*start, "--learning-rate", 0, code=1).stderr
    )
    assert not (folder / "x.fairproj").exists()


def test_only_groups_with_rows_are_shown(folder, data, tmp_path):
    many = pd.CategoricalDtype(["f", "m", "nobody"])
    data.assign(sex=data["sex"].astype(many)).to_parquet(tmp_path / "d.parquet")
    said = run("train", tmp_path / "d.parquet", *ASKED, "-o", tmp_path / "m.fairproj").stdout
    assert "nobody" not in said


def test_learners_of_ones_own_are_opened_with_trust(folder, data, tmp_path):
    model = FairProjClassifier(estimator=DecisionTreeClassifier(max_depth=2), n_estimators=3)
    model.fit(data[["x"]], data["y"], sensitive_features=data["sex"]).save(tmp_path / "t.fairproj")
    asked = ["audit", tmp_path / "t.fairproj", folder / "d.csv"]
    asked += ["--label", "y", "--sensitive", "sex"]
    said = " ".join(run(*asked, code=1).stderr.split())
    assert "sklearn.tree._tree.Tree, which are not trusted" in said
    assert "--trust" in said
    trust = ["--trust", "sklearn.tree._tree.Tree"]
    found = told(*asked, *trust)
    assert found["scores"][0]["value"] == np.mean(model.predict(data[["x"]]) == data["y"])
    assert "3" in run("info", tmp_path / "t.fairproj", *trust).stdout
    run("report", *asked[1:], *trust, "-o", tmp_path / "r.md")
    out = tmp_path / "p.csv"
    run("predict", tmp_path / "t.fairproj", folder / "d.csv", *trust, "-o", out)
    assert pd.read_csv(out)["prediction"].tolist() == model.predict(data[["x"]]).tolist()


def test_crossed_columns_in_any_order_are_the_same_groups(folder, data, tmp_path):
    model = tmp_path / "m.fairproj"
    asked = [*ASKED, "--sensitive", "race", "--epsilon", 0.1]
    run("train", folder / "d.csv", *asked, "-o", model)
    turned = ["--sensitive", "race", "--sensitive", "sex"]
    assert told("audit", model, folder / "d.csv", *turned)["target"]["max_gap"] == 0.1


def test_predictions_are_read_as_the_labels(folder, data):
    coded = data.assign(y=data["y"].map({"no": 0, "yes": 1}), said=data["y"], score=data["x"])
    coded.to_csv(folder / "said.csv", index=False)
    data.assign(y=data["y"].map({"no": "0", "yes": "1"}), said=(data["x"] > 0) * 1).to_parquet(
        folder / "said.parquet"
    )
    asked = ["--label", "y", "--sensitive", "sex"]
    for column, start in (("said", "'no', 'yes'"), ("score", "")):
        said = run("audit", folder / "said.csv", *asked, "--predictions", column, code=1).stderr
        assert f"the predictions '{column}'" in said
        assert "turn scores into labels" in said
        assert start in said or "'yes', 'no'" in said
    found = told("audit", folder / "said.parquet", *asked, "--predictions", "said")
    assert found["scores"][0]["value"] == np.mean((data["x"] > 0) == (data["y"] == "yes"))


def test_a_link_to_itself_is_no_place_for_a_file(folder, tmp_path):
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    said = run("predict", folder / "m.fairproj", folder / "d.csv", "-o", loop, code=1).stderr
    assert "cannot be written" in said
    with pytest.raises(ValueError, match="is no name of a file"):
        load(folder / "m.fairproj").save("/")
