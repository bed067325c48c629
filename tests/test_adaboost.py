"""Without a constraint the loop is AdaBoost: scikit-learn's, stump by stump."""

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

import oracles
from conftest import make_sample
from fairproj import FairProjClassifier
from fairproj.engines import LearnerSettings
from fairproj.engines.lightgbm.binning import bin_rows
from fairproj.engines.lightgbm.engine import tree_parameters


@pytest.mark.parametrize("unconstrained", [{"constraints": None}, {"epsilon": 1.0}])
@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learns_adaboost_round_by_round(unconstrained, weighted):
    X, y, groups = make_sample(600, seed=1)
    weight = np.random.default_rng(0).uniform(0.1, 2, len(y)) if weighted else None
    tree = DecisionTreeClassifier(max_depth=1)
    theirs = AdaBoostClassifier(tree, n_estimators=40, random_state=3)
    theirs.fit(X, y, sample_weight=weight)
    ours = FairProjClassifier(estimator=tree, n_estimators=40, random_state=3, **unconstrained)
    ours.fit(X, y, sensitive_features=groups, sample_weight=weight)
    assert len(ours.estimators_) == len(theirs.estimators_) == 40
    for mine, other in zip(ours.estimators_, theirs.estimators_, strict=True):
        np.testing.assert_array_equal(mine.tree_.feature, other.tree_.feature)
        np.testing.assert_array_equal(mine.tree_.threshold, other.tree_.threshold)
    np.testing.assert_allclose(ours.estimator_weights_, theirs.estimator_weights_ / 2, rtol=1e-9)
    np.testing.assert_allclose(ours.estimator_errors_, theirs.estimator_errors_, rtol=1e-9)
    new = make_sample(500, seed=2)[0]
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    for mine, other in zip(ours.staged_predict(new), theirs.staged_predict(new), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("seed", range(3))
def test_the_built_in_stumps_are_scikit_learns_on_the_bins_they_see(seed):
    """At most 255 values a column: LightGBM's stumps are exact, so the losses agree."""
    X, y, groups = make_sample(3000, seed=seed, decimals=1)
    X[:, 0] = np.where(X[:, 0] < -1, X[:, 0] * 100, X[:, 0])  # few, far values on one side of zero
    X[:, 1] -= 50
    assert max(len(np.unique(column)) for column in X.T) <= 255
    fast = FairProjClassifier(None, n_estimators=30).fit(X, y, sensitive_features=groups)
    slow = FairProjClassifier(
        None, estimator=DecisionTreeClassifier(max_depth=1), n_estimators=30, random_state=0
    ).fit(X, y, sensitive_features=groups)
    mine, other = fast.history_.columns, slow.history_.columns
    np.testing.assert_allclose(mine["log_loss"], other["log_loss"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(mine["vote"], other["vote"], atol=1e-9)


@pytest.mark.parametrize("n_values", [2, 100, 255])
@pytest.mark.parametrize("side", ["positive", "negative", "both", "skewed"])
def test_a_column_with_at_most_255_values_is_binned_exactly(n_values, side):
    rng = np.random.default_rng(n_values)
    values = np.arange(1, n_values + 1) * 0.37
    if side == "negative":
        values = -values
    if side in ("both", "skewed"):
        values = values - values[n_values // 2]
    p = np.ones(n_values)
    if side == "skewed":
        p[: n_values // 2] = 0.001
    column = np.r_[values, rng.choice(values, 5000, p=p / p.sum())]
    y = np.where(rng.random(len(column)) < 0.2 + 0.6 * (column > np.median(values)), 1, -1)
    X = np.column_stack([column, rng.normal(size=len(column)).round(1)])
    model = FairProjClassifier(None, n_estimators=3).fit(X, y)
    margin, weight = np.zeros(len(y)), np.ones(len(y))
    for record in model.history_:
        q = oracles.exponential_weights(y, margin, weight)
        h, _ = oracles.exact_stump(X, y, q)
        assert np.isclose(q @ (h != y), record.error_q, atol=1e-9)
        margin += record.vote * h


@pytest.mark.parametrize("heavy", [0.5, 0.87, 0.99])
@pytest.mark.parametrize("sign", [1, -1])
def test_rare_values_of_a_skewed_column_have_bins_of_their_own(heavy, sign):
    rng = np.random.default_rng(1)
    values = sign * np.arange(1.0, 256.0)
    p = np.full(255, (1 - heavy) / 254)
    p[100] = heavy
    column = np.r_[values, rng.choice(values, 20_000, p=p)]
    y = np.where(rng.random(len(column)) < 0.3 + 0.4 * (np.abs(column) % 64 > 40), 1, -1)
    fast = FairProjClassifier(None, n_estimators=8).fit(column[:, None], y)
    stump = DecisionTreeClassifier(max_depth=1, random_state=0)
    slow = FairProjClassifier(None, estimator=stump, n_estimators=8).fit(column[:, None], y)
    mine, other = fast.history_.columns["log_loss"], slow.history_.columns["log_loss"]
    np.testing.assert_allclose(mine, other, atol=1e-9)


def test_a_column_of_zeros_and_many_other_values_keeps_to_its_bins():
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((20_000, 1)) < 0.99, 0.0, rng.normal(size=(20_000, 1)))
    params = tree_parameters(LearnerSettings("discrete", max_bins=63), matrix)
    dataset = bin_rows(matrix, params, [], None)
    assert 32 < dataset.feature_num_bin(0) <= 65


def test_confidence_votes_are_leaf_means():
    X, y, _ = make_sample(500, decimals=1)
    model = FairProjClassifier(None, n_estimators=1, votes="confidence", max_depth=2).fit(X, y)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    expected = 2 * tree.predict_proba(X)[:, 1] - 1
    np.testing.assert_allclose(model.estimators_[0].decision_function(X), expected, atol=1e-6)
