"""docs/recipes/scikit-learn.md, executed: what it says about gaps and accuracies."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

import oracles
from fairproj import load

PAGE = (Path(__file__).parents[1] / "docs" / "recipes" / "scikit-learn.md").read_text("utf-8")
HEADINGS = ["start", *re.findall(r"^## (.*)$", PAGE, re.M)]
SECTIONS = dict(zip(HEADINGS, re.split(r"^## ", PAGE, flags=re.M), strict=True))


def execute(section, names):
    for block in re.findall(r"```python\n(.*?)```", SECTIONS[section], flags=re.DOTALL):
        exec(compile(block, f"scikit-learn.md, {section}", "exec"), names)
    return names


@pytest.fixture(scope="module")
def start():
    return execute("start", {"__name__": "docs.ecosystem"})


@pytest.fixture
def page(start, monkeypatch, tmp_path):
    """Runs a section after those it builds on, and returns its names."""
    monkeypatch.chdir(tmp_path)

    def run(*sections):
        names = dict(start)
        for section in sections:
            execute(section, names)
        return names

    return run


def figures(names, predicted):
    """Accuracy and gap on the test rows, by the oracle."""
    labels, sex = signs(names["y_test"]), names["X_test"]["sex"].to_numpy()
    accuracy = np.mean(labels == signs(predicted))
    return accuracy, oracles.gap("equal_opportunity", labels, signs(predicted), sex)


def signs(labels):
    return np.where(np.asarray(labels), 1, -1)


def test_the_model(start):
    model = start["model"]
    assert start["own"] == pytest.approx(figures(start, model.predict(start["X_test"])))
    assert start["own"][0] > 0.82
    assert model.certificate_.met
    women = (start["X_test"]["sex"] == "Female") & start["y_test"]
    assert f"only {women.sum()}\nwomen" in SECTIONS["start"]
    assert start["own"][1] > 0.05  # as the page says; how far above depends on the last bits


def test_a_pipeline_with_a_column_transformer(page):
    names = page("Pipeline and ColumnTransformer")
    X_test, sex = names["X_test"], names["X_train"]["sex"]
    X, hidden = names["X_train"].drop(columns="sex"), X_test.drop(columns="sex")
    encode, last = names["pipeline"][0], names["pipeline"][-1]
    by_hand = clone(last).fit(encode.transform(X), names["y_train"], sensitive_features=sex)
    predicted = names["pipeline"].predict(hidden)
    np.testing.assert_array_equal(by_hand.predict(encode.transform(hidden)), predicted)
    assert names["in_a_pipeline"] == pytest.approx(figures(names, predicted))
    assert names["in_a_pipeline"][0] > 0.82
    assert last.certificate_.gap <= 0.05 + 1e-9

    passed = names["with_column"]
    assert set(passed[-1].feature_names_in_) == set(X.columns)
    np.testing.assert_array_equal(passed.predict(X_test), predicted)
    assert names["passed_through"] == names["in_a_pipeline"]
    with pytest.raises(ValueError, match="columns are missing"):
        passed.predict(hidden)


def test_a_grid_search_with_routing(page):
    names = page("GridSearchCV with metadata routing")
    search, X, y = names["search"], names["features"], names["y_train"]
    sex = names["sex"].to_numpy()
    gaps = []
    for train, test in StratifiedKFold(3).split(X, y):
        model = clone(search.estimator).set_params(**search.cv_results_["params"][0])
        model.fit(X.iloc[train], y.iloc[train], sensitive_features=sex[train])
        predicted = model.predict(X.iloc[test])
        gaps.append(
            oracles.gap("equal_opportunity", signs(y.iloc[test]), signs(predicted), sex[test])
        )
    assert search.cv_results_["mean_test_gap"][0] == pytest.approx(-np.mean(gaps))
    assert search.best_index_ == np.argmax(search.cv_results_["mean_test_accuracy"])
    assert names["searched"][0] > 0.82


def test_calibration(page):
    names = page("CalibratedClassifierCV")
    calibrated, X_test = names["calibrated"], names["X_test"]
    assert len(calibrated.calibrated_classifiers_) == 3
    probability = np.mean(
        [one.predict_proba(X_test)[:, 1] for one in calibrated.calibrated_classifiers_], axis=0
    )
    predicted = probability > 0.5
    assert names["after_calibration"] == pytest.approx(figures(names, predicted))
    assert names["after_calibration"][0] > 0.82
    before, after = names["brier"]
    assert after < before + 0.005


def test_calibration_of_a_frozen_model(page):
    names = page("CalibratedClassifierCV")
    fitted, frozen, X_test = names["fitted"], names["frozen"], names["X_test"]
    (calibrator,) = frozen.calibrated_classifiers_[0].calibrators
    margin = fitted.decision_function(X_test)
    expected = expit(-(calibrator.a_ * margin + calibrator.b_))
    np.testing.assert_allclose(frozen.predict_proba(X_test)[:, 1], expected)
    assert names["after_freezing"] == pytest.approx(figures(names, expected > 0.5))
    # The order of the scores is kept, as the page says.
    assert roc_auc_score(names["y_test"], expected) == pytest.approx(
        roc_auc_score(names["y_test"], margin)
    )


@pytest.mark.slow
def test_tuned_thresholds(page):
    names = page("GridSearchCV with metadata routing", "TunedThresholdClassifierCV")
    X_test, y_test = names["X_test"], names["y_test"]
    balance, within = names["by_balance"], names["within"]
    for tuned, rows, found in (
        (balance, X_test, names["at_balance"]),
        (within, X_test.drop(columns="sex"), names["at_threshold"]),
    ):
        positive = tuned.estimator_.predict_proba(rows)[:, 1] >= tuned.best_threshold_
        np.testing.assert_array_equal(tuned.predict(rows), positive)
        assert found == pytest.approx(figures(names, positive))
    own = names["model"].predict(X_test)
    assert balance.best_threshold_ < 0.5  # positives are rare
    assert balanced_accuracy_score(y_test, balance.predict(X_test)) > balanced_accuracy_score(
        y_test, own
    )
    assert 0.75 < within.best_score_ <= 1  # folds have gaps above 0.05 by chance
    assert names["at_threshold"][0] > 0.82


def test_permutation_importance(page):
    names = page("permutation_importance")
    model, X_test, y_test = names["model"], names["X_test"], names["y_test"]
    by_column = names["by_column"]
    assert by_column["sex"] == 0
    largest = max(by_column, key=by_column.get)
    shuffled = X_test.assign(**{largest: X_test[largest].sample(frac=1, random_state=1).to_numpy()})
    lost = model.score(X_test, y_test) - model.score(shuffled, y_test)
    assert by_column[largest] == pytest.approx(lost, abs=0.02)
    gained = dict(zip(X_test.columns, names["for_the_gap"].importances_mean, strict=True))
    assert len(gained) == X_test.shape[1]
    assert any(gained.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of MLflow and what it imports
def test_mlflow(monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    pytest.importorskip("mlflow")  # not among the packages of tools/matrix.py
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "docs.deploying"}
    deploying = (Path(__file__).parents[1] / "docs" / "guide" / "deploying.md").read_text("utf-8")
    for block in re.findall(r"```python\n(.*?)```", deploying, flags=re.DOTALL):
        exec(compile(block, "deploying.md", "exec"), names)
    model, X_test = names["model"], names["X_test"]
    expected = model.predict(X_test)
    loaded = names["loaded"]
    np.testing.assert_array_equal(loaded.predict(X_test), expected)
    np.testing.assert_array_equal(loaded.predict_proba(X_test), model.predict_proba(X_test))
    assert loaded.certificate_ == model.certificate_
    np.testing.assert_array_equal(names["served"].predict(names["as_text"]), expected)
    opened = load("model.fairproj")
    np.testing.assert_array_equal(opened.predict(X_test), expected)
