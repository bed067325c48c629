"""``fairproj predict`` with a threshold, reasons, and rows unlike any in training."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from commands import run, run_json
from fairproj import FairBoostClassifier, FairProjClassifier, load
from fairproj.cli import app
from fairproj.cli._reasons import _spell
from fairproj.io import tables

READ = {"csv": pd.read_csv, "parquet": pd.read_parquet, "feather": pd.read_feather}
FEATURES = ["AGE", "LIMIT", "late", "city", "job"]


def customers(n_rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": np.arange(n_rows) + 70_000,
            "AGE": rng.integers(21, 70, n_rows),
            "LIMIT": rng.lognormal(10, 1, n_rows).round(-2),
            "late": rng.random(n_rows) < 0.3,
            "city": rng.choice(["Bonn", "Kiel", "Trier"], n_rows),
            "job": rng.choice(["baker", "nurse", "smith", None], n_rows),
            "SEX": rng.choice(["f", "m"], n_rows),
        }
    )
    score = np.log(frame["LIMIT"]) - 10 - 1.5 * frame["late"] + 0.03 * (frame["AGE"] - 40)
    score += 0.5 * (frame["city"] == "Kiel") - 0.5 * frame["job"].isna() + 0.4 * (frame.SEX == "m")
    frame["repaid"] = np.where(score + rng.logistic(size=n_rows) > 0, "yes", "no")
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    frame = customers()
    frame.to_csv(folder / "credit.csv", index=False)
    asked = ("--label", "repaid", "--sensitive", "SEX", "--drop", "id", "--test-size", 0)
    run("train", folder / "credit.csv", *asked, "--rounds", 12, "-o", folder / "m.fairproj")
    return folder


@pytest.fixture
def model(folder):
    return folder / "m.fairproj"


def new_rows(n_rows=300):
    return customers(n_rows, seed=1).drop(columns="repaid")


def with_holes():
    """Rows 4, 104 and 204 lack AGE; rows 8 and 104 are from a city that training lacks."""
    frame = new_rows().astype({"AGE": float})
    frame.loc[[3, 103, 203], "AGE"] = np.nan
    frame.loc[[7, 103], "city"] = "Ulm"
    return frame


def write(frame, path):
    {"csv": frame.to_csv, "parquet": frame.to_parquet, "feather": frame.to_feather}[
        path.suffix[1:]
    ](path, **({"index": False} if path.suffix == ".csv" else {}))
    return path


def predict(model, frame, tmp_path, *options, suffix="csv", code=0):
    """The result of the command, and its output."""
    data = write(frame, tmp_path / f"new.{suffix}")
    out = tmp_path / f"out.{suffix}"
    result = run("predict", model, data, "-o", out, *options, code=code)
    return result, READ[suffix](out) if out.exists() else None


# Threshold


def test_a_threshold_decides_by_the_probability(model, tmp_path):
    result, said = predict(model, new_rows(), tmp_path, "--threshold", 0.3)
    probability = load(model).predict_proba(new_rows()[FEATURES])[:, 1]
    np.testing.assert_array_equal(said["prediction"], np.where(probability > 0.3, "yes", "no"))
    np.testing.assert_allclose(said["probability_yes"], probability)
    assert result.stderr.startswith(
        "warning: the gap between groups was limited at a threshold of 0.5, and may be larger at "
        "0.3;"
    )


def test_the_models_own_threshold_changes_nothing(folder, tmp_path):
    frame = customers()
    X, y = frame[FEATURES], frame["repaid"]
    trained = FairBoostClassifier(n_estimators=8, threshold=0.7, pos_label="no", random_state=0)
    trained.fit(X, y, sensitive_features=frame["SEX"])
    trained.save(tmp_path / "m.fairproj")
    result, said = predict(
        tmp_path / "m.fairproj", new_rows(), tmp_path, "--threshold", trained.threshold_
    )
    assert result.stderr == ""
    np.testing.assert_array_equal(said["prediction"], trained.predict(new_rows()[FEATURES]))
    result, said = predict(
        tmp_path / "m.fairproj", new_rows(), tmp_path, "--threshold", 0.5, "--force"
    )
    assert "limited at a threshold of 0.7, and may be larger at 0.5" in result.stderr
    probability = trained.predict_proba(new_rows()[FEATURES])[:, 0]
    np.testing.assert_array_equal(said["prediction"], np.where(probability > 0.5, "no", "yes"))
    told = run_json(
        *("predict", tmp_path / "m.fairproj", tmp_path / "new.csv", "--force"),
        *("-o", tmp_path / "out.csv"),
    )
    assert told["threshold"] == pytest.approx(0.7)


def test_a_plain_model_has_no_gap_to_warn_of(tmp_path):
    frame = customers()
    plain = FairBoostClassifier(None, n_estimators=3).fit(frame[FEATURES], frame["repaid"])
    plain.save(tmp_path / "m.fairproj")
    result, _ = predict(tmp_path / "m.fairproj", new_rows(), tmp_path, "--threshold", 0.2)
    assert result.stderr == ""


@pytest.mark.parametrize("threshold", ["0", "1", "-0.5", "1.5", "nan"])
def test_a_threshold_is_between_0_and_1(model, tmp_path, threshold):
    result, said = predict(model, new_rows(), tmp_path, f"--threshold={threshold}", code=2)
    assert "must lie between 0 and 1" in result.stderr
    assert said is None


# Reasons


@pytest.mark.parametrize("suffix", READ)
def test_reasons_are_the_features_that_pushed_towards_the_decision(
    model, tmp_path, suffix, monkeypatch
):
    monkeypatch.setattr(tables, "CHUNK_ROWS", 70)
    _, said = predict(model, new_rows(), tmp_path, "--reasons", 3, suffix=suffix)
    assert said.columns.tolist() == ["prediction", "probability_yes"] + [
        f"{name}_{rank}" for rank in (1, 2, 3) for name in ("reason", "effect")
    ]
    X = new_rows()[FEATURES]
    loaded = load(model)
    added = loaded.link_scale_ * loaded.contributions(X)[:, :-1]
    for row in range(0, len(X), 7):
        sign = 1 if said["prediction"][row] == "yes" else -1
        order = [
            j for j in np.argsort(-sign * added[row], kind="stable") if sign * added[row, j] > 0
        ]
        for rank in range(3):
            reason, effect = said[f"reason_{rank + 1}"][row], said[f"effect_{rank + 1}"][row]
            if rank >= len(order):
                assert pd.isna(reason)
                assert pd.isna(effect)
                continue
            name, value = FEATURES[order[rank]], X.iloc[row, order[rank]]
            shown = "missing" if pd.isna(value) else f"= {_spell(value)}"
            assert reason == f"{name} {shown}"
            assert effect == float(f"{added[row, order[rank]]:.4g}")


def test_all_reasons_add_up_to_the_log_odds(model, tmp_path):
    """With as many reasons as features, only those against the decision are left out."""
    _, said = predict(model, new_rows(), tmp_path, "--reasons", 5)
    loaded, X = load(model), new_rows()[FEATURES]
    parts = loaded.link_scale_ * loaded.contributions(X)
    towards = np.where(said["prediction"] == "yes", 1, -1)
    effects = said[[f"effect_{rank}" for rank in range(1, 6)]].to_numpy()
    np.testing.assert_allclose(
        np.nansum(effects, axis=1) * towards,
        np.maximum(parts[:, :-1] * towards[:, None], 0).sum(axis=1),
        rtol=5e-4,
        atol=1e-9,
    )
    shown = np.where(np.isnan(effects), 0, effects)
    assert (np.diff(shown * towards[:, None], axis=1) <= 1e-12).all()
    odds = np.log(said["probability_yes"] / (1 - said["probability_yes"]))
    np.testing.assert_allclose(parts.sum(axis=1), odds, atol=1e-6)


@pytest.mark.parametrize("engine", ["lightgbm", "xgboost"])
def test_effects_are_towards_the_positive_label(engine, tmp_path):
    if engine == "xgboost":
        pytest.importorskip("xgboost")
    frame = customers()
    for label in ("no", "yes"):
        trained = FairBoostClassifier(
            None, pos_label=label, n_estimators=5, loss="exponential", engine=engine
        )
        trained.fit(frame[FEATURES], frame["repaid"]).save(tmp_path / "m.fairproj")
        options = ("--reasons", 1, "--force", "--threshold", 0.45)
        _, said = predict(tmp_path / "m.fairproj", new_rows(), tmp_path, *options)
        effect = said["effect_1"].dropna()
        assert len(effect) > 100
        assert ((effect > 0) == (said["prediction"] == label)[effect.index]).all()


def test_a_constant_model_has_no_reasons(tmp_path):
    frame = customers()
    trained = FairBoostClassifier(None, n_estimators=1, min_samples_leaf=5000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained.fit(frame[["AGE"]], frame["repaid"])
    trained.save(tmp_path / "m.fairproj")
    _, said = predict(tmp_path / "m.fairproj", new_rows(), tmp_path, "--reasons", 1)
    assert said["reason_1"].isna().all()
    assert said["effect_1"].isna().all()


@pytest.mark.parametrize("number", [0, -1, 6])
def test_there_are_no_more_reasons_than_features(model, tmp_path, number):
    result, said = predict(model, new_rows(), tmp_path, f"--reasons={number}", code=1)
    assert f"--reasons {number} must be 1 to 5, the number of features of the model" in (
        result.stderr
    )
    assert said is None


def test_an_estimator_of_ones_own_gives_no_reasons(tmp_path):
    frame = customers()
    inner = DecisionTreeClassifier(max_depth=1)
    trained = FairProjClassifier(estimator=inner, n_estimators=2)
    trained.fit(frame[["AGE", "LIMIT"]], frame["repaid"], sensitive_features=frame["SEX"])
    path = tmp_path / "m.fairproj"
    trained.save(path)
    trust = ("--trust", "sklearn.tree._tree.Tree")
    result, _ = predict(path, new_rows(), tmp_path, *trust, "--reasons", 1, code=1)
    assert "contributions come from the built-in trees" in result.stderr
    result, _ = predict(path, new_rows(), tmp_path, *trust, "--missing", "skip", code=1)
    assert "--missing skip is for the built-in trees" in result.stderr


def test_values_are_spelt_as_in_a_csv_file():
    values = [25.0, -3.0, 0.1, 12_345_678_901.0, 1e22, True, "own", np.int64(7), np.float64(2)]
    shown = ["25", "-3", "0.1", "12345678901", "1e+22", "True", "own", "7", "2"]
    assert [_spell(value) for value in values] == shown


# Rows unlike any in training


def test_one_missing_value_is_one_sentence(model, tmp_path):
    """Four of 2,000 rows lack AGE."""
    frame = customers(seed=3).astype({"AGE": float})
    frame.loc[[16, 202, 1500, 1999], "AGE"] = np.nan
    result, said = predict(model, frame, tmp_path, code=1)
    assert said is None
    assert result.stderr.count("\n") == 1
    assert (
        "4 of 2,000 rows have values unlike any in training: AGE missing in 4 rows (rows 17, 203, "
        "1501, ...); nothing was written" in result.stderr
    )
    assert "--missing score" in result.stderr
    assert "--missing skip" in result.stderr


@pytest.mark.parametrize("suffix", READ)
def test_rows_are_counted_through_all_chunks(model, tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(tables, "CHUNK_ROWS", 70)
    monkeypatch.setattr(tables, "_CSV_BLOCK", 5_000)
    result, said = predict(model, with_holes(), tmp_path, suffix=suffix, code=1)
    assert said is None
    assert (
        "4 of 300 rows have values unlike any in training: AGE missing in 3 rows (rows 4, 104, "
        "204), city unknown in 2 rows (such as 'Ulm', rows 8, 104); nothing" in result.stderr
    )


@pytest.mark.parametrize("suffix", READ)
def test_skipped_rows_stay_in_the_output(model, tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(tables, "CHUNK_ROWS", 70)
    result, said = predict(
        *(model, with_holes(), tmp_path, "--missing", "skip", "--keep", "id", "--reasons", 1),
        suffix=suffix,
    )
    assert said["id"].astype(int).tolist() == new_rows()["id"].tolist()
    affected = [3, 7, 103, 203]
    left_out = said.loc[affected, ["prediction", "probability_yes", "reason_1", "effect_1"]]
    assert left_out.isna().all(axis=None)
    rest = said.drop(index=affected)
    expected = load(model).predict(new_rows()[FEATURES].drop(index=affected))
    np.testing.assert_array_equal(rest["prediction"], expected)
    assert rest["note"].isna().all()
    assert said.loc[affected, "note"].tolist() == [
        "AGE missing",
        "city unknown: 'Ulm'",
        "AGE missing; city unknown: 'Ulm'",
        "AGE missing",
    ]
    printed = " ".join(result.stdout.split())
    assert "4 of 300 rows have values unlike any in training" in printed
    assert "their predictions are empty, and the column 'note' names the values." in printed


@pytest.mark.parametrize("engine", ["lightgbm", "xgboost"])
def test_a_missing_number_is_scored_as_the_median(engine, tmp_path):
    if engine == "xgboost":
        pytest.importorskip("xgboost")
    frame = customers()
    trained = FairBoostClassifier(None, n_estimators=8, engine=engine)
    path = tmp_path / "m.fairproj"
    trained.fit(frame[FEATURES], frame["repaid"]).save(path)
    new = with_holes().astype({"late": object})
    new.loc[50, "late"] = None
    _, said = predict(path, new, tmp_path, "--missing", "score")
    median = np.sort(frame["AGE"])[999]
    filled = new[FEATURES].fillna({"AGE": median, "late": False}).astype({"late": bool})
    expected = trained.predict_proba(filled)[:, 1]
    np.testing.assert_allclose(said["probability_yes"], expected, rtol=1e-9)
    np.testing.assert_array_equal(said["prediction"], trained.predict(filled))
    assert said["note"].notna().sum() == 5
    assert said["note"][50] == "late missing"


def test_an_unknown_or_missing_category_is_scored_as_none_of_the_known(model, tmp_path):
    frame = new_rows()
    frame.loc[0, "city"] = "Ulm"
    frame.loc[1, "city"] = None
    _, said = predict(model, frame, tmp_path, "--missing", "score")
    loaded = load(model)
    np.testing.assert_allclose(
        said["probability_yes"], loaded.predict_proba(frame[FEATURES])[:, 1], rtol=1e-9
    )
    assert said["note"][:3].fillna("").tolist() == ["city unknown: 'Ulm'", "city missing", ""]


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (["default", "repaid"], "probability_repaid"),
        (["<=50K", ">50K"], "probability_>50K"),
        ([-1, 1], "probability_1"),
        (["a", "paid, in full\n"], "probability_paid_in_full_"),
    ],
)
def test_the_column_of_probabilities_names_the_label(tmp_path, labels, name):
    """Defect: 0.9 beside the prediction "default" read as a chance of default."""
    frame = customers(400)
    model = FairBoostClassifier(n_estimators=3, validation_fraction=None)
    y = np.where(frame["repaid"] == "yes", labels[1], labels[0])
    model.fit(frame[FEATURES], y, sensitive_features=frame["SEX"])
    model.save(tmp_path / "m")
    result, said = predict(tmp_path / "m", frame, tmp_path, "--json")
    assert said.columns.tolist() == ["prediction", name]
    assert json.loads(result.stdout)["probability"] == name
    np.testing.assert_allclose(said[name], model.predict_proba(frame[FEATURES])[:, 1])


def test_missing_values_as_in_training_need_no_policy(model, tmp_path):
    """Of 'job' training had rows without a value."""
    result, said = predict(model, new_rows(), tmp_path)
    assert new_rows()["job"].isna().any()
    assert said.columns.tolist() == ["prediction", "probability_yes"]
    assert result.stderr == ""
    assert "unlike" not in result.stdout


def test_json_lists_rows_and_columns(model, tmp_path):
    write(with_holes(), tmp_path / "new.csv")
    told = run_json(
        "predict", model, tmp_path / "new.csv", "-o", tmp_path / "o.csv", "--missing", "score"
    )
    assert told["missing"] == "score"
    assert told["unseen"] == {
        "rows": 4,
        "first_rows": [4, 8, 104, 204],
        "missing": {"AGE": 3},
        "unknown": {"city": 2},
    }


def test_a_column_of_unknown_values_is_reported_once(model, tmp_path):
    frame = new_rows().assign(city="Ulm")
    result, _ = predict(model, frame, tmp_path, "--missing", "score")
    told = result.stdout + result.stderr
    assert told.count("Ulm") == 1
    assert result.stderr == ""


@pytest.mark.parametrize("name", ["note", "reason_1", "effect_2", "prediction"])
def test_a_kept_column_must_not_have_the_name_of_another(model, tmp_path, name):
    frame = new_rows().assign(**{name: 1})
    options = ("--keep", name, "--reasons", 2, "--missing", "skip")
    result, _ = predict(model, frame, tmp_path, *options, code=1)
    assert f"--keep {name!r} has the name of a column of the output" in result.stderr


# The same in the library


def holes(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(3, 1, size=(401, 3))
    X[:, 1] = rng.random(401) < 0.7
    y = X[:, 0] + X[:, 1] + rng.normal(size=401) > 3.5
    new = X[:50].copy()
    new[:5, 0] = np.nan
    new[5:9, 1] = np.nan
    filled = new.copy()
    filled[:5, 0], filled[5:9, 1] = np.sort(X[:, 0])[200], 1.0
    if kind == "frame":
        names = ["a", "b", "c"]
        X, new, filled = (pd.DataFrame(table, columns=names) for table in (X, new, filled))
    if kind == "sparse":
        X, new, filled = map(sparse.csr_matrix, (X, new, filled))
    return X, y, new, filled


@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
def test_to_matrix_fills_in_medians(kind, tmp_path):
    X, y, new, filled = holes(kind)
    trained = FairBoostClassifier(None, n_estimators=5).fit(X, y)
    with pytest.raises(ValueError, match="which had none in training"):
        trained.predict(new)
    with pytest.raises(ValueError, match="which had none in training"):
        trained.to_matrix(new)
    trained.save(tmp_path / "m")
    for one in (trained, load(tmp_path / "m")):
        before = dense(new).copy()
        labels, probabilities = one.predict_matrix(one.to_matrix(new, missing="score"))
        np.testing.assert_array_equal(labels, trained.predict(filled))
        np.testing.assert_array_equal(probabilities, trained.predict_proba(filled))
        np.testing.assert_array_equal(dense(new), before)  # the user's rows are as they were


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def test_to_matrix_knows_two_policies():
    X, y, new, _ = holes("array")
    trained = FairBoostClassifier(None, n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="missing must be 'error' or 'score', got 'skip'"):
        trained.to_matrix(new, missing="skip")


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_groups_at_predict_are_refused_with_a_sentence(method):
    X, y, _, _ = holes("array")
    trained = FairBoostClassifier(None, n_estimators=2).fit(X, y)
    with pytest.raises(TypeError, match="takes X only and got 'sensitive_features'; the model"):
        getattr(trained, method)(X, sensitive_features=y)
    assert len(getattr(trained, method)(X=X)) == len(X)
    assert not hasattr(trained, f"set_{method}_request")


@pytest.mark.parametrize("command", ["audit", "report"])
def test_other_commands_warn_once_of_a_column_of_unknown_values(model, tmp_path, command):
    data = write(customers(400, seed=2).assign(city="Ulm"), tmp_path / "new.csv")
    options = {"audit": (), "report": ("-o", tmp_path / "r.html")}[command]
    told = CliRunner().invoke(app, [str(word) for word in (command, model, data, *options)])
    assert told.stderr.count("column 'city' has no value known from training") == 1
