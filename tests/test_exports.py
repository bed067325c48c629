"""Exports: the same leaves and labels in LightGBM, XGBoost, onnxruntime and under SHAP."""

import json
import sys
import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import commands
from conftest import make_sample
from fairproj import FairBoostClassifier, FairProjClassifier, load
from fairproj.datasets import load_adult, load_compas, load_german
from fairproj.engines.base import TIE
from fairproj.engines.lightgbm import text as native
from fairproj.engines.lightgbm.ensemble import TreeEnsemble
from fairproj.io import atomic, to_lightgbm, to_onnx, to_xgboost

LOADERS = {"german": load_german, "adult": load_adult, "compas": load_compas}


def run(raw, matrix):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(raw, providers=["CPUExecutionProvider"])
    return session.run(["label", "probabilities", "margin"], {"X": np.asarray(matrix, float)})


def fit(X, y, groups=None, *, kind=FairProjClassifier, **parameters):
    usual = {"n_estimators": 10}
    if kind is FairBoostClassifier:
        usual["validation_fraction"] = None
    return kind(**usual | parameters).fit(X, y, sensitive_features=groups)


def mixed(n_rows=600, n_categories=5, seed=0):
    rng = np.random.default_rng(seed)
    X, y, groups = make_sample(n_rows, seed=seed)
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "gaps"])
    table.loc[rng.random(n_rows) < 0.2, "gaps"] = np.nan
    codes = (abs(X[:, 3]) * 1000).astype(int) % n_categories
    table["kind"] = pd.Categorical([f"k{code:03}" for code in codes])
    y = np.where(rng.random(n_rows) < 0.4, np.where(np.sin(codes) > 0, 1, -1), y)
    return table, y, groups


@pytest.fixture(scope="module")
def model():
    return fit(*mixed(), max_depth=3)


# LightGBM


def test_the_native_text_is_a_booster_with_the_same_margin(model, tmp_path):
    path = tmp_path / "model.txt"
    text = to_lightgbm(model, path)
    assert path.read_text("utf-8") == text
    X = mixed(seed=3)[0]
    for booster in (lgb.Booster(model_str=text), lgb.Booster(model_file=path)):
        margin = booster.predict(model.to_matrix(X), raw_score=True)
        assert margin.tobytes() == model.decision_function(X).tobytes()


def test_an_older_export_stays_if_writing_fails(model, tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_text("old")
    monkeypatch.setattr(atomic.os, "replace", lambda *_: 1 / 0)
    for export in (to_lightgbm, to_onnx):
        with pytest.raises(ZeroDivisionError):
            export(model, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# XGBoost


def boosted_by_xgboost(**parameters):
    X, y, groups = mixed(1500)
    X.loc[::9, "kind"] = None
    usual = {"engine": "xgboost", "n_estimators": 15, "kind": FairBoostClassifier}
    return fit(X, y, groups, **usual | parameters)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_the_json_is_a_booster_with_the_same_probabilities(loss, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    model, path = boosted_by_xgboost(loss=loss), tmp_path / "model.json"
    text = to_xgboost(model, path)
    assert path.read_text("utf-8") == text
    assert json.loads(text)["learner"]["objective"]["name"] == "binary:logistic"
    X = mixed(seed=3)[0]
    matrix, expected = model.to_matrix(X), model.predict_proba(X)[:, 1]
    booster = xgboost.Booster(model_file=path)
    np.testing.assert_allclose(booster.predict(xgboost.DMatrix(matrix)), expected, atol=1e-6)
    classifier = xgboost.XGBClassifier()
    classifier.load_model(path)
    np.testing.assert_allclose(classifier.predict_proba(matrix)[:, 1], expected, atol=1e-6)
    assert ((classifier.predict(matrix) == 1) == (expected > 0.5)).all()


TREES_OF_XGBOOST = {
    "newton": {},
    "exponential": {"loss": "exponential", "selection_rate": 0.3},
    "categories": {"tree_step": "first_order"},
    "discrete": {"tree_step": "first_order", "votes": "discrete"},
    "projected": {"kind": FairProjClassifier, "max_depth": 4, "votes": "confidence"},
    "stumps": {"kind": FairProjClassifier},
}


@pytest.mark.parametrize("parameters", TREES_OF_XGBOOST.values(), ids=TREES_OF_XGBOOST)
def test_onnx_finds_the_leaves_that_xgboost_finds(parameters):
    """At the thresholds and next to them, with missing values and unknown categories."""
    model = boosted_by_xgboost(**parameters)
    trees = model._ensemble.trees
    rng, rows = np.random.default_rng(1), np.array(model.to_matrix(mixed(3000, seed=4)[0]))
    for column in range(3):
        cuts = [tree.threshold[~tree.is_leaf & (tree.feature == column)] for tree in trees]
        cuts = np.concatenate([*cuts, np.zeros(1)]).astype(float)
        steps = rng.choice([-np.inf, 0, np.inf], len(rows))
        near = np.nextafter(rng.choice(cuts, len(rows)), steps)
        rows[:, column] = np.where(steps == 0, rows[:, column], near)
    rows[:, 3] = rng.integers(0, 5, len(rows))
    rows[rng.random(rows.shape) < 0.15] = np.nan
    label, probabilities, margin = run(to_onnx(model), rows)
    expected = model._margin(rows)
    np.testing.assert_allclose(margin, expected, rtol=0, atol=1e-12)
    labels, chances = model.predict_matrix(rows)
    assert label.tolist() == labels.tolist()
    np.testing.assert_allclose(probabilities, chances, rtol=0, atol=1e-12)
    by_category = [node for tree in trees for node in tree.categories]
    assert by_category or parameters.get("kind") is FairProjClassifier


def test_onnx_of_a_constant_model_of_xgboost():
    X, y = np.zeros((200, 2)), np.arange(200) % 2
    with pytest.warns(UserWarning, match="majority class"):
        model = fit(X, y, np.arange(200) % 3, engine="xgboost")
    label, _, margin = run(to_onnx(model), X[:1])
    assert label.tolist() == model.predict(X[:1]).tolist()
    assert margin.tolist() == model.decision_function(X[:1]).tolist()


def test_an_export_is_for_the_trees_of_one_library(model):
    words = r"XGBoost's JSON is for trees of engine='xgboost', and this model has engine='lightgbm'"
    with pytest.raises(ValueError, match=words + "; export it to lightgbm or onnx"):
        to_xgboost(model)
    with pytest.raises(ValueError, match="export it to xgboost or onnx"):
        to_lightgbm(boosted_by_xgboost(n_estimators=2))


def test_exports_of_xgboosts_trees_do_not_need_xgboost(monkeypatch, tmp_path):
    boosted_by_xgboost(n_estimators=2).save(tmp_path / "m")
    monkeypatch.setitem(sys.modules, "xgboost", None)
    assert json.loads(to_xgboost(load(tmp_path / "m")))["version"]
    assert to_onnx(load(tmp_path / "m"))


def test_the_command_line_writes_the_format_of_the_trees(tmp_path):
    boosted_by_xgboost(n_estimators=2).save(tmp_path / "m")
    out = commands.run("export", tmp_path / "m", "-o", tmp_path / "m.json", "--json").output
    assert json.loads(out)["format"] == "xgboost"
    assert (tmp_path / "m.json").read_text("utf-8") == to_xgboost(load(tmp_path / "m"))
    refusal = commands.run(
        "export", tmp_path / "m", "-o", tmp_path / "m.txt", "--to", "lightgbm", code=1
    )
    assert "engine='xgboost'" in " ".join(refusal.output.split())


# ONNX


@pytest.mark.parametrize("kind", [FairProjClassifier, FairBoostClassifier])
@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.filterwarnings("ignore:no useful round", "ignore:the model says the same")
def test_onnx_has_the_same_labels_on_the_data_sets(name, kind):
    data = LOADERS[name]()
    model = fit(data.data, data.target, data.sensitive_features, kind=kind, n_estimators=20)
    label, probabilities, margin = run(to_onnx(model), model.to_matrix(data.data))
    assert (label == model.predict(data.data)).all()
    np.testing.assert_allclose(probabilities, model.predict_proba(data.data), atol=1e-12)
    np.testing.assert_allclose(margin, model.decision_function(data.data), atol=1e-12)


DECISIONS = {
    "default": {},
    "threshold": {"threshold": 0.3},
    "first class": {"threshold": 0.3, "pos_label": -1},
    "selection rate": {"selection_rate": 0.2},
    "error rate": {"max_false_positive_rate": 0.1},
    "exponential": {"loss": "exponential", "threshold": 0.7},
    "plain": {"constraints": None},
}


@pytest.mark.parametrize("parameters", DECISIONS.values(), ids=DECISIONS)
@pytest.mark.filterwarnings("ignore:no useful round", "ignore:the model says the same")
def test_onnx_decides_where_the_model_does(parameters):
    """The oracle is the probability that ONNX itself gives, at the threshold in its metadata."""
    onnx = pytest.importorskip("onnx")
    X, y, groups = mixed(1000)
    model = fit(X, y, groups, kind=FairBoostClassifier, n_estimators=20, **parameters)
    rows = mixed(1000, seed=3)[0]
    raw = to_onnx(model)
    label, probabilities, margin = run(raw, model.to_matrix(rows))
    assert label.tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(margin, model.decision_function(rows), rtol=0, atol=1e-12)
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=1e-12)
    told = {
        entry.key: json.loads(entry.value) for entry in onnx.load_from_string(raw).metadata_props
    }
    assert told["threshold"] == model.threshold_
    assert told["positive_label"] == parameters.get("pos_label", 1)
    positive = probabilities[:, int(told["positive_label"] == 1)]
    near = np.abs(positive - told["threshold"]) < 1e-12
    assert near.mean() < 0.05
    decided = np.where(
        positive > told["threshold"], told["positive_label"], -told["positive_label"]
    )
    assert (label == decided)[~near].all()
    if model.threshold_ != 0.5:
        assert ((probabilities[:, 1] > 0.5) != (label == 1)).any(), "the threshold must matter"


def test_onnx_settles_ties_at_the_cut():
    """A row whose margin is the cut is predicted as the first class."""
    X, y, groups = mixed(1000)
    model = fit(X, y, groups, kind=FairBoostClassifier, selection_rate=0.3, max_gap=1.0)
    margin = model.decision_function(X)
    cut = margin[margin > model._cut].min()
    for shift, expected in ((0.0, 0), (0.9 * TIE, 0), (-0.9 * TIE, 0), (-1.1 * TIE, 1)):
        model._cut = cut + shift
        label, _, _ = run(to_onnx(model), model.to_matrix(X))
        assert label.tolist() == model.predict(X).tolist()
        assert set(label[margin == cut]) == {model.classes_[expected]}


def biased():
    """A model with a bias, and its rows."""
    for seed in range(20):
        X, y, groups = make_sample(800, seed=seed)
        model = FairBoostClassifier(
            max_gap=0.1,
            n_estimators=1,
            learning_rate=1.0,
            max_leaf_nodes=4,
            validation_fraction=None,
            baseline=True,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, sensitive_features=groups)
        if model.history_.bias:
            return model, X
    raise AssertionError("no model has a bias")


def test_a_bias_is_in_every_export_and_the_price_in_the_metadata():
    onnx = pytest.importorskip("onnx")
    model, X = biased()
    booster = lgb.Booster(model_str=to_lightgbm(model))
    logit = np.log(booster.predict(X) / (1 - booster.predict(X)))
    tree = model.estimators_[0].decision_function(X) * model.estimator_weights_[0]
    expected = tree + model._ensemble.intercept
    np.testing.assert_allclose(booster.predict(X, raw_score=True), expected, atol=1e-12)
    np.testing.assert_allclose(logit, expected, atol=1e-9)
    raw = to_onnx(model)
    label, _, margin = run(raw, X)
    np.testing.assert_allclose(margin, expected, atol=1e-12)
    assert (label == model.predict(X)).all()
    told = {
        entry.key: json.loads(entry.value) for entry in onnx.load_from_string(raw).metadata_props
    }
    assert told["bias"] == model.certificate_.bias != 0
    assert told["price"] == model.price_.to_dict()


@pytest.mark.parametrize("kind", [FairProjClassifier, FairBoostClassifier])
def test_the_native_text_has_the_link_of_the_loss(kind):
    X, y, groups = make_sample(800)
    model = fit(X, y, groups, kind=kind)
    text = to_lightgbm(model)
    scale = 2 if kind is FairProjClassifier else 1
    assert f"\nobjective=binary sigmoid:{scale}\n" in text
    booster = lgb.Booster(model_str=text)
    probability = booster.predict(model.to_matrix(X))
    np.testing.assert_allclose(probability, model.predict_proba(X)[:, 1], rtol=0, atol=1e-12)
    if kind is FairBoostClassifier:
        margin = booster.predict(model.to_matrix(X), raw_score=True)
        np.testing.assert_allclose(probability, 1 / (1 + np.exp(-margin)), rtol=1e-12)


@pytest.mark.parametrize("n_categories", [2, 33, 64, 70, 200])
def test_onnx_puts_any_row_in_the_same_leaf(n_categories):
    """Rows at thresholds, missing values anywhere, codes unseen in training, many categories."""
    X, y, groups = mixed(2000, n_categories)
    model = fit(X, y, groups, max_depth=6, n_estimators=20, votes="confidence")
    rng = np.random.default_rng(1)
    rows = np.array(model.to_matrix(X))
    for column in range(3):  # exactly at, just above and just below each threshold
        steps = rng.choice([-np.inf, 0, np.inf], len(rows))
        rows[:, column] = np.where(
            steps == 0, rows[:, column], np.nextafter(_thresholds(model, column, rng, rows), steps)
        )
    rows[:, 3] = rng.integers(-3, n_categories + 50, len(rows))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    _, _, margin = run(to_onnx(model), rows)
    expected = model.booster_.predict(rows, raw_score=True)
    assert np.abs(expected).min() > TIE
    np.testing.assert_allclose(margin, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", [FairProjClassifier, FairBoostClassifier])
def test_missing_numbers_that_tell_the_label_are_kept_in_every_file(kind, tmp_path):
    """LightGBM separates missing values from all numbers by a threshold of infinity."""
    rng = np.random.default_rng(0)
    missing = rng.random(1000) < 0.4
    months = np.where(missing, np.nan, rng.integers(0, 5, 1000))
    X = pd.DataFrame({"months": months, "other": rng.random(1000)})
    y = np.where(rng.random(1000) < 0.2 + 0.6 * missing, 1, -1)
    model = fit(X, y, np.where(rng.random(1000) < 0.5, "a", "b"), kind=kind)
    assert "inf" in to_lightgbm(model, tmp_path / "m.txt")
    rows = X.assign(months=rng.permutation(months) * 1e6)
    margin = model.decision_function(rows)
    assert len(np.unique(margin)) > 2
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert (loaded.predict(rows) == model.predict(rows)).all()
    assert (loaded.predict_proba(rows) == model.predict_proba(rows)).all()
    for text in (to_lightgbm(loaded, tmp_path / "m2.txt"), (tmp_path / "m.txt").read_text()):
        booster = lgb.Booster(model_str=text)
        native_margin = booster.predict(loaded.to_matrix(rows), raw_score=True)
        np.testing.assert_allclose(native_margin, margin, rtol=0, atol=1e-12)
    label, _, onnx_margin = run(to_onnx(loaded), loaded.to_matrix(rows))
    assert label.tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(onnx_margin, margin, rtol=0, atol=1e-12)


def _thresholds(model, column, rng, rows):
    table = model.booster_.trees_to_dataframe()
    name = model.booster_.feature_name()[column]
    cuts = table.loc[table["split_feature"] == name, "threshold"].astype(float).to_numpy()
    return rng.choice(cuts, len(rows)) if len(cuts) else rows[:, column]


def with_leaves(model, leaves, link_scale=2.0):
    """The model with other leaf values, a list for each tree."""
    blocks = [
        native.fold(block, lambda _, values=values: np.array(values))
        for block, values in zip(model._ensemble.blocks, leaves, strict=True)
    ]
    text = native.assemble(model.booster_.model_to_string(), blocks, link_scale=link_scale)
    model._ensemble = TreeEnsemble(text, [1.0] * len(blocks), link_scale)
    return model


@pytest.mark.parametrize("labels", [["no", "yes"], [3, 7], [False, True]])
def test_onnx_settles_ties_as_the_model_does(labels):
    """Votes that cancel leave 5e-17, and every margin up to the tolerance is a tie."""
    X = np.arange(8.0).repeat(20)[:, None]
    y = np.array(labels)[np.tile([0, 1, 1, 1, 0, 0, 1, 0], 20)]
    model = fit(X, y, np.tile([0, 1], 80), n_estimators=3, max_leaf_nodes=6, votes="confidence")
    sizes = [len(native.numbers(block, "leaf_value")) for block in model._ensemble.blocks]
    assert sizes[0] == 6
    small = np.array([0.0, 1e-12, -1e-12, 0.9 * TIE, 1.1 * TIE, -1.1 * TIE])
    model = with_leaves(model, [0.1 + small, [0.2] * sizes[1], [-0.3] * sizes[2]])
    raw = model.booster_.predict(X, raw_score=True)
    assert ((raw > 0) & (np.abs(raw) <= TIE)).any()
    label, probabilities, margin = run(to_onnx(model), X)
    tied = np.abs(raw) <= TIE
    assert (margin[tied] == 0).all()
    assert (label[tied] == labels[0]).all()
    assert (label[~tied] == np.array(labels)[(raw[~tied] > 0).astype(int)]).all()
    assert {bool(sign) for sign in raw[~tied] > 0} == {False, True}
    assert (probabilities[tied] == 0.5).all()
    assert (label == model.predict(X)).all()
    np.testing.assert_allclose(margin, model.decision_function(X), rtol=0, atol=1e-15)


@pytest.mark.parametrize("link_scale", [1.0, 2.0])
def test_onnx_has_the_link_of_the_model(link_scale):
    X, y, groups = make_sample(200)
    model = fit(X, y, groups)
    leaves = [native.numbers(block, "leaf_value") for block in model._ensemble.blocks]
    model = with_leaves(model, leaves, link_scale)
    _, probabilities, margin = run(to_onnx(model), X)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-link_scale * margin)))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["no", "yes"], object),
        ([3, 7], np.int64),
        ([False, True], np.bool_),
        ([0.0, 1.0], np.float64),
    ],
)
def test_onnx_answers_with_the_labels(labels, kind):
    X, y, groups = make_sample(200)
    model = fit(X, np.array(labels)[(y > 0).astype(int)], groups)
    label, _, _ = run(to_onnx(model), X)
    assert label.dtype == kind
    assert (label == model.predict(X)).all()


def test_onnx_of_a_constant_model_and_of_one_row():
    X = np.zeros((200, 2))
    y = np.arange(200) % 2
    with pytest.warns(UserWarning, match="majority class"):
        model = fit(X, y, np.arange(200) % 3)
    label, _, margin = run(to_onnx(model), X[:1])
    assert label.tolist() == model.predict(X[:1]).tolist()
    assert margin.tolist() == model.decision_function(X[:1]).tolist()


def test_onnx_tells_columns_and_categories(model, tmp_path):
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "model.onnx"
    raw = to_onnx(model, path)
    assert path.read_bytes() == raw
    properties = {entry.key: json.loads(entry.value) for entry in onnx.load(path).metadata_props}
    assert properties["columns"] == ["a", "b", "gaps", "kind"]
    assert properties["categories"] == {"kind": [f"k{code:03}" for code in range(5)]}
    assert (properties["threshold"], properties["positive_label"]) == (0.5, 1)
    assert (properties["bias"], properties["price"]) == (0.0, None)


def test_a_loaded_model_has_the_same_exports(model, tmp_path):
    model.save(tmp_path / "m")
    assert to_onnx(load(tmp_path / "m")) == to_onnx(model)


# SHAP


@pytest.mark.filterwarnings("ignore:LightGBM binary classifier")
@pytest.mark.parametrize("kind", [FairProjClassifier, FairBoostClassifier])
def test_shap_explains_the_margin(kind, tmp_path):
    """Categories and missing values included; for the booster of a loaded model too."""
    model = fit(*mixed(), kind=kind, max_depth=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at import, about other libraries
        shap = pytest.importorskip("shap")
    model.save(tmp_path / "m")
    X = mixed(seed=4)[0]
    for one in (model, load(tmp_path / "m")):
        matrix = one.to_matrix(X)
        explainer = shap.TreeExplainer(one.booster_)
        parts = explainer.shap_values(matrix)
        assert parts.shape == matrix.shape
        total = parts.sum(axis=1) + explainer.expected_value
        np.testing.assert_allclose(total, one.decision_function(X), atol=1e-6)


# Refusals


@pytest.mark.parametrize("export", [to_lightgbm, to_onnx, to_xgboost])
def test_what_cannot_be_exported_is_refused(export):
    X, y, groups = make_sample(200)
    for kind in (FairProjClassifier, FairBoostClassifier):
        with pytest.raises(ValueError, match="not fitted"):
            export(kind())
    for other in (LogisticRegression(), lgb.LGBMClassifier()):
        with pytest.raises(TypeError, match=f"got {type(other).__name__}; for a search"):
            export(other)
    with pytest.raises(ValueError, match=r"built-in trees.*estimator=LogisticRegression"):
        export(fit(X, y, groups, estimator=LogisticRegression()))


def test_without_onnx_it_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'fairproj\[onnx\]'"):
        to_onnx(model)
