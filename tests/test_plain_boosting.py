"""Without constraints, FairBoostClassifier is LightGBM's classifier; its links are right."""

import lightgbm as lgb
import numpy as np
import pytest
from scipy.special import expit

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.datasets import load_compas, load_german
from simulated import unfair

N_ROUNDS = 25
GERMAN, COMPAS = load_german(), load_compas()
NUMBERS = COMPAS.data.select_dtypes("number")
BAD = (GERMAN.target == "bad").to_numpy()
# LightGBM keeps weights as 32-bit floats: only such numbers, of mean one, give the same trees.
WEIGHT = np.random.default_rng(0).permutation(np.tile([0.25, 0.5, 1.25, 2.0], 250))
QUARTER = np.r_[np.flatnonzero(BAD)[:200], np.flatnonzero(~BAD)[:600]]
YES = (COMPAS.target == "yes").to_numpy()
BALANCED = np.where(YES, 0.5 / YES.mean(), 0.5 / (1 - YES.mean()))
SIGNS = [-1] + [1] * (NUMBERS.shape[1] - 1)

# (X, y, settings of ours, settings of LightGBM's classifier, our weights, LightGBM's weights)
PROBLEMS = {
    "numbers": (NUMBERS, COMPAS.target, {}, {}, None, None),
    "categories": (GERMAN.data, GERMAN.target, {}, {}, None, None),
    "sizes": (
        GERMAN.data,
        GERMAN.target,
        {"max_leaf_nodes": 7, "max_depth": 3, "min_samples_leaf": 5, "max_bins": 20},
        {"num_leaves": 7, "max_depth": 3, "min_child_samples": 5, "max_bin": 20},
        None,
        None,
    ),
    "class weights": (
        NUMBERS,
        COMPAS.target,
        {"class_weight": "balanced"},
        {},
        None,
        BALANCED,
    ),
    "given class weights": (
        GERMAN.data.iloc[QUARTER],
        GERMAN.target.iloc[QUARTER],
        {"class_weight": {"bad": 5.0}},
        {},
        None,
        np.where(BAD, 2.5, 0.5)[QUARTER],
    ),
    "weights": (GERMAN.data, GERMAN.target, {}, {}, 3 * WEIGHT, WEIGHT),
    "sampled": (
        GERMAN.data,
        GERMAN.target,
        {"subsample": 0.7, "max_features": 0.5, "random_state": 7},
        {"subsample": 0.7, "subsample_freq": 1, "colsample_bytree": 0.5, "random_state": 7},
        None,
        None,
    ),
    "restricted": (
        NUMBERS,
        COMPAS.target,
        {"monotonic_cst": dict(zip(NUMBERS, SIGNS, strict=True)), "l2_regularization": 3.0},
        {"monotone_constraints": SIGNS, "reg_lambda": 3.0},
        None,
        None,
    ),
}


def trees(booster):
    """Splits and leaves, with the columns by number."""
    frame = booster.trees_to_dataframe()
    columns = {name: place for place, name in enumerate(booster.feature_name())}
    frame["column"] = frame["split_feature"].map(columns)
    return frame


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_model_is_that_of_lightgbms_classifier(name):
    X, y, ours, theirs, weight, their_weight = PROBLEMS[name]
    model = FairBoostClassifier(None, n_estimators=N_ROUNDS, **ours)
    model.fit(X, y, sample_weight=weight)
    other = lgb.LGBMClassifier(n_estimators=N_ROUNDS, n_jobs=1, verbose=-1, **theirs)
    other.fit(X, y, sample_weight=their_weight)
    raw = other.predict(X, raw_score=True)
    tolerance = 1e-6 if their_weight is BALANCED else 1e-9
    np.testing.assert_allclose(model.decision_function(X), raw, rtol=0, atol=tolerance)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=tolerance)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    mine, their = trees(model.booster_), trees(other.booster_)
    assert len(mine) == len(their) > 2 * N_ROUNDS
    for column in ("tree_index", "node_depth", "column", "threshold", "decision_type", "count"):
        assert mine[column].equals(their[column]), column
    leaves = mine["column"].isna()
    values = mine["value"][leaves], their["value"][leaves]
    np.testing.assert_allclose(*values, rtol=0, atol=tolerance)
    if name not in ("numbers", "categories"):  # the settings change something
        plain = FairBoostClassifier(None, n_estimators=1).fit(X, y)
        one = next(model.staged_decision_function(X))
        assert np.abs(plain.decision_function(X) - one).max() > 1e-3


def test_a_constraint_that_never_binds_changes_nothing():
    groups = GERMAN.sensitive_features
    model = FairBoostClassifier(max_gap=1.0, n_estimators=N_ROUNDS, validation_fraction=None)
    model.fit(GERMAN.data, GERMAN.target, sensitive_features=groups)
    plain = FairBoostClassifier(None, n_estimators=model.history_.n_kept)
    plain.fit(GERMAN.data, GERMAN.target)
    assert (model.history_.by_group("multipliers") == 0).all()
    np.testing.assert_allclose(
        model.decision_function(GERMAN.data), plain.decision_function(GERMAN.data), atol=1e-9
    )
    assert model.certificate_.met


def test_exponential_loss_is_adaboost():
    X, y, _ = unfair(400)
    settings = {"votes": "discrete", "max_leaf_nodes": 4, "n_estimators": 15}
    model = FairBoostClassifier(
        None, loss="exponential", learning_rate=1.0, min_samples_leaf=0, **settings
    ).fit(X, y)
    plain = FairProjClassifier(None, **settings).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), rtol=1e-8)
    np.testing.assert_allclose(
        model.history_.columns["log_loss"], plain.history_.columns["log_loss"], rtol=1e-8
    )
    with pytest.warns(UserWarning, match="plain boosting"):
        model.set_params(constraints="equal_opportunity").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), rtol=1e-8)


def test_classes_that_are_given_by_sensitive_features_only_do_not_matter():
    X, y, groups = unfair(300)
    one = FairBoostClassifier(None, n_estimators=5).fit(X, y)
    other = FairBoostClassifier(None, n_estimators=5).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-12)


SETTINGS = {
    "newton": {"n_estimators": 60},
    "first order": {"tree_step": "first_order", "learning_rate": 1.0, "n_estimators": 250},
    "exponential": {"loss": "exponential", "learning_rate": 1.0, "n_estimators": 250},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_probabilities_are_calibrated(name):
    """Known probabilities of eight kinds of rows; the link must be that of the loss."""
    rng = np.random.default_rng(0)
    kind = rng.integers(8, size=8000)
    probability = expit(np.linspace(-1.8, 1.2, 8))[kind]
    y = rng.random(8000) < probability
    model = FairBoostClassifier(None, max_leaf_nodes=8, **SETTINGS[name])
    estimate = model.fit(kind[:, None], y).predict_proba(kind[:, None])[:, 1]
    assert np.abs(estimate - probability).mean() < 0.03
    observed = np.array([y[kind == k].mean() for k in range(8)])
    shown = np.array([estimate[kind == k][0] for k in range(8)])
    np.testing.assert_allclose(shown, observed, atol=0.05)
    # The link of the other loss would be far off.
    scale = 2 if name == "exponential" else 1
    wrong = expit((3 - scale) * model.decision_function(kind[:, None]))
    assert np.abs(wrong - probability).mean() > 0.06


def test_a_run_without_a_tree_is_the_share_of_the_label():
    X, y = np.zeros((50, 2)), np.tile([0, 1, 1, 1, 1], 10)
    with pytest.warns(UserWarning, match="no learner beat chance.*min_samples_leaf"):
        model = FairBoostClassifier(None).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.8)
    assert (model.predict(X) == 1).all()
    assert len(model.estimators_) == 1
    assert model.certificate_.holds
