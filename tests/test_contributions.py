"""What each feature adds to a margin: sums, an oracle that enumerates subsets, and SHAP."""

import math
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from conftest import make_sample
from fairproj import FairBoostClassifier, FairProjClassifier, load

ENGINES = ["lightgbm", "xgboost"]
TOLERANCE = {"lightgbm": 1e-10, "xgboost": 1e-4}  # XGBoost adds up 32-bit floats


def mixed(n_rows=500, seed=0):
    """Numbers, numbers with missing values, and categories with missing values."""
    rng = np.random.default_rng(seed)
    X, y, groups = make_sample(n_rows, seed=seed)
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "gaps"])
    table.loc[rng.random(n_rows) < 0.2, "gaps"] = np.nan
    kinds = np.array(["k0", "k1", "k2", None], dtype=object)
    codes = (abs(X[:, 3]) * 1000).astype(int) % 4
    table["kind"] = pd.Categorical(kinds[codes])
    y = np.where(rng.random(n_rows) < 0.4, np.where(codes % 2, 1, -1), y)
    return table, y, groups


def fit(engine, kind=FairBoostClassifier, n_rows=500, **parameters):
    if engine == "xgboost":
        pytest.importorskip("xgboost")
    usual = {"n_estimators": 8, "max_leaf_nodes": 6, "engine": engine}
    if kind is FairBoostClassifier:
        usual |= {"validation_fraction": None, "constraints": None}
    X, y, groups = mixed(n_rows)
    return kind(**usual | parameters).fit(X, y, sensitive_features=groups)


MODELS = {
    "newton": {},
    "exponential": {"loss": "exponential"},
    "first order": {"tree_step": "first_order"},
    "discrete votes": {"tree_step": "first_order", "votes": "discrete"},
    "confidence votes": {"kind": FairProjClassifier, "votes": "confidence"},
    "the paper": {"kind": FairProjClassifier},
    "stumps": {"max_leaf_nodes": 2},
    "samples": {"subsample": 0.5, "max_features": 0.5, "random_state": 0},
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("parameters", MODELS.values(), ids=MODELS)
def test_contributions_add_up_to_the_margin(engine, parameters):
    model = fit(engine, **parameters)
    X = mixed(seed=1)[0]
    parts = model.contributions(X)
    assert parts.shape == (len(X), model.n_features_in_ + 1)
    assert parts.dtype == np.float64
    assert np.ptp(parts[:, -1]) == 0
    assert np.abs(parts[:, :-1]).max() > 0.01
    np.testing.assert_allclose(
        parts.sum(axis=1), model.decision_function(X), rtol=0, atol=TOLERANCE[engine]
    )


# The definition, with all subsets of features


def lightgbm_trees(model):
    return [tree["tree_structure"] for tree in model.booster_.dump_model()["tree_info"]]


def lightgbm_node(tree):
    """A leaf's value, or feature, test, the two sides and their shares of the rows."""
    if "left_child" not in tree:
        return tree["leaf_value"]
    sides = [tree["left_child"], tree["right_child"]]
    counts = [side.get("internal_count", side.get("leaf_count")) for side in sides]
    categories = tree["decision_type"] == "=="
    left_codes = {int(code) for code in str(tree["threshold"]).split("||")} if categories else {}

    def goes_left(value):
        if categories:
            return not math.isnan(value) and int(value) in left_codes
        if math.isnan(value):
            return tree["default_left"]
        return value <= tree["threshold"]

    return tree["split_feature"], goes_left, [lightgbm_node(side) for side in sides], counts


def xgboost_node(tree, values, at=0):
    if tree.left[at] < 0:
        return values[at]
    sides = [tree.left[at], tree.right[at]]

    def goes_left(value):
        if math.isnan(value):
            return tree.missing_left[at]
        if at in tree.categories:
            return int(value) not in tree.categories[at]
        return np.float32(value) < tree.threshold[at]

    nodes = [xgboost_node(tree, values, side) for side in sides]
    return tree.feature[at], goes_left, nodes, [tree.cover[side] for side in sides]


def expectation(node, row, known):
    """The mean of the leaves that a row may reach, of which only some features are known."""
    if not isinstance(node, tuple):
        return float(node)
    feature, goes_left, sides, weights = node
    if feature in known:
        return expectation(sides[0 if goes_left(row[feature]) else 1], row, known)
    return np.average([expectation(side, row, known) for side in sides], weights=weights)


def shapley(nodes, row):
    """Shapley values of f(S) = E[margin | features in S], and f of the empty set."""

    def value(known):
        return sum(expectation(node, row, known) for node in nodes)

    features = range(len(row))
    result = np.zeros(len(row) + 1)
    result[-1] = value(())
    for feature in features:
        others = [other for other in features if other != feature]
        for size in range(len(row)):
            weight = 1 / (len(row) * math.comb(len(row) - 1, size))
            for known in combinations(others, size):
                result[feature] += weight * (value((*known, feature)) - value(known))
    return result


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["newton", "exponential", "confidence votes"])
def test_they_are_the_shapley_values_of_the_trees(engine, name):
    model = fit(engine, **MODELS[name], max_leaf_nodes=5, n_estimators=4)
    X = mixed(seed=2)[0].iloc[:25]
    rows = np.asarray(model.to_matrix(X))
    assert np.isnan(rows).any()
    if engine == "lightgbm":
        nodes = [lightgbm_node(tree) for tree in lightgbm_trees(model)]
    else:
        ensemble = model._ensemble
        nodes = [
            xgboost_node(tree, values)
            for tree, values in zip(ensemble.trees, ensemble.leaf_values, strict=True)
        ]
    expected = np.array([shapley(nodes, row) for row in rows])
    np.testing.assert_allclose(
        model.contributions(X), expected, rtol=0, atol=max(1e-8, TOLERANCE[engine])
    )


@pytest.mark.filterwarnings("ignore:LightGBM binary classifier")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_they_agree_with_the_shap_package(engine, loss):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at import, about other libraries
        shap = pytest.importorskip("shap")
    X, y, _ = make_sample(400, n_features=4)
    usual = {"n_estimators": 8, "max_leaf_nodes": 6, "validation_fraction": None}
    if engine == "xgboost":
        pytest.importorskip("xgboost")
    model = FairBoostClassifier(None, engine=engine, loss=loss, **usual).fit(X, y)
    explainer = shap.TreeExplainer(model.booster_)
    # The scores of XGBoost's model are log-odds.
    scale = model._ensemble.link_scale if engine == "xgboost" else 1.0
    parts = model.contributions(X)
    np.testing.assert_allclose(parts[:, :-1], explainer.shap_values(X) / scale, atol=1e-5)
    np.testing.assert_allclose(parts[0, -1], explainer.expected_value / scale, atol=1e-5)


# What a model may hold


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bias_is_part_of_the_base_value(engine):
    model = fit(engine)
    X = mixed()[0]
    before, margin = model.contributions(X), model.decision_function(X)
    intercept = model._ensemble.intercept
    biased = fit(engine)
    shifted = rebuilt_with_intercept(biased, intercept + 0.75)
    np.testing.assert_allclose(shifted.decision_function(X), margin + 0.75, atol=1e-9)
    after = shifted.contributions(X)
    np.testing.assert_allclose(after[:, :-1], before[:, :-1], atol=TOLERANCE[engine])
    np.testing.assert_allclose(after[:, -1], before[:, -1] + 0.75, atol=TOLERANCE[engine])


def rebuilt_with_intercept(model, intercept):
    """The same trees with another intercept, put together as at the end of training."""
    ensemble = model._ensemble
    if ensemble.kind == "xgboost":
        ensemble.__dict__.pop("booster", None)
        ensemble.intercept = intercept
        return model
    from fairproj.engines.lightgbm import text as native
    from fairproj.engines.lightgbm.ensemble import TreeEnsemble

    blocks = ensemble.blocks
    blocks[0] = native.fold(blocks[0], lambda leaves: leaves + intercept - ensemble.intercept)
    text = native.assemble(model.booster_.model_to_string(), blocks, link_scale=ensemble.link_scale)
    model._ensemble = TreeEnsemble(text, ensemble.votes, ensemble.link_scale, intercept, "newton")
    return model


@pytest.mark.parametrize("engine", ENGINES)
def test_a_model_from_a_file_explains_the_same(engine, tmp_path):
    model, X = fit(engine), mixed(seed=3)[0]
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    np.testing.assert_allclose(loaded.contributions(X), model.contributions(X), atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_number_of_threads_changes_nothing(engine):
    model, X = fit(engine), mixed(seed=3)[0]
    one = model.set_params(n_jobs=1).contributions(X)
    assert (model.set_params(n_jobs=2).contributions(X) == one).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_encoded_rows_and_single_rows_explain_the_same(engine):
    model, X = fit(engine), mixed(seed=3)[0]
    expected = model.contributions(X)
    assert (model.contributions_matrix(model.to_matrix(X)) == expected).all()
    for row in range(0, len(X), 100):
        assert (model.contributions(X.iloc[[row]]) == expected[[row]]).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_constant_model_has_a_base_value_only(engine):
    if engine == "xgboost":
        pytest.importorskip("xgboost")
    X, y = np.zeros((40, 2)), np.repeat([0, 1], [10, 30])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FairBoostClassifier(None, engine=engine, validation_fraction=None).fit(X, y)
    parts = model.contributions(X)
    assert (parts[:, :-1] == 0).all()
    np.testing.assert_allclose(parts[:, -1], model.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(parts[:, -1], np.log(3), atol=1e-6)


def test_a_sparse_matrix_gives_the_same_as_a_dense_one():
    X, y, groups = make_sample(400, decimals=0)
    model = FairProjClassifier(max_depth=3, n_estimators=5).fit(X, y, sensitive_features=groups)
    parts = model.contributions(sparse.csr_matrix(X))
    assert isinstance(parts, np.ndarray)
    np.testing.assert_allclose(parts, model.contributions(X), atol=1e-12)


def test_sensitive_columns_have_no_contribution():
    X, y, groups = mixed()
    table = X.assign(sex=groups)
    model = FairProjClassifier(sensitive_columns="sex", n_estimators=5).fit(table, y)
    parts = model.contributions(table)
    assert parts.shape == (len(X), 5)
    assert (parts == model.contributions(X)).all()


def test_the_sign_is_towards_the_second_class_whatever_label_is_positive():
    X, y, groups = mixed()
    parts = [
        FairBoostClassifier(None, pos_label=label, n_estimators=4, validation_fraction=None)
        .fit(X, y, sensitive_features=groups)
        .contributions(X)
        for label in (-1, 1)
    ]
    np.testing.assert_allclose(parts[0], parts[1], atol=1e-12)


def test_without_trees_it_says_what_to_do():
    X, y, groups = make_sample(200)
    model = FairProjClassifier(estimator=DecisionTreeClassifier(max_depth=1), n_estimators=2)
    model.fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="has estimator=DecisionTreeClassifier; train without"):
        model.contributions(X)


def test_before_fit_it_says_so():
    with pytest.raises(NotFittedError):
        FairBoostClassifier().contributions(np.zeros((2, 2)))
    with pytest.raises(AttributeError, match="contributions_matrix exists after fit only"):
        FairBoostClassifier().contributions_matrix(np.zeros((2, 2)))
