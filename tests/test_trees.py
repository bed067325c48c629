"""The built-in trees: one native LightGBM model with the margin that the loop computed."""

import pickle

import joblib
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.tree import DecisionTreeClassifier

from conftest import make_sample
from fairproj import FairProjClassifier
from fairproj.data import sample as samples
from fairproj.engines import LearnerSettings, Targets, find_engine
from fairproj.engines.lightgbm.engine import tree_parameters

X, Y, GROUPS = make_sample(800)


@pytest.mark.parametrize("votes", ["discrete", "confidence"])
@pytest.mark.parametrize("size", [{}, {"max_depth": 3}, {"max_leaf_nodes": 7}])
def test_the_booster_is_the_whole_model(votes, size, tmp_path):
    model = FairProjClassifier(epsilon=0.1, n_estimators=15, votes=votes, **size)
    model.fit(X, Y, sensitive_features=GROUPS)
    booster = model.booster_
    assert booster.num_trees() == len(model.history_)
    np.testing.assert_array_equal(booster.predict(X, raw_score=True), model.decision_function(X))
    np.testing.assert_allclose(booster.predict(X), model.predict_proba(X)[:, 1], atol=1e-12)
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1], expit(2 * model.decision_function(X)), atol=1e-12
    )
    booster.save_model(tmp_path / "model.txt")
    again = lgb.Booster(model_file=tmp_path / "model.txt")
    np.testing.assert_array_equal(again.predict(X, raw_score=True), model.decision_function(X))
    contributions = booster.predict(X, pred_contrib=True)
    np.testing.assert_allclose(contributions.sum(axis=1), model.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("votes", ["discrete", "confidence"])
def test_leaves_are_votes_times_the_learners_predictions(votes):
    model = FairProjClassifier(epsilon=0.1, n_estimators=8, votes=votes)
    model.fit(X, Y, sensitive_features=GROUPS)
    for t, record in enumerate(model.history_):
        leaves = np.array([model.booster_.get_leaf_output(t, leaf) for leaf in (0, 1)])
        if votes == "discrete":
            np.testing.assert_allclose(np.abs(leaves), record.vote, rtol=1e-12)
        else:
            assert (np.abs(leaves) <= record.vote + 1e-12).all()


def test_tree_sizes():
    def leaves(**size):
        model = FairProjClassifier(None, n_estimators=2, **size).fit(X, Y)
        return [tree["num_leaves"] for tree in model.booster_.dump_model()["tree_info"]]

    assert leaves() == [2, 2]
    assert leaves(max_depth=2) == [4, 4]
    assert leaves(max_leaf_nodes=6) == [6, 6]
    assert max(leaves(max_leaf_nodes=30, max_depth=2)) <= 4


@pytest.mark.parametrize("depth", [2, 3])
def test_deeper_trees_are_nearly_scikit_learns(depth):
    """Leaf-wise growth to the full depth makes the same greedy tree; ties and rounding aside."""
    Z, y, _ = make_sample(2000, decimals=1)
    mine = FairProjClassifier(None, n_estimators=1, max_depth=depth).fit(Z, y)
    other = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(Z, y)
    assert np.mean(mine.predict(Z) == other.predict(Z)) > 0.995


def test_no_more_leaves_than_rows_are_asked_for():
    settings = LearnerSettings(votes="discrete", max_depth=30)
    assert tree_parameters(settings, X[:50])["num_leaves"] == 50


def test_least_weight_of_a_leaf():
    model = FairProjClassifier(
        None, n_estimators=1, max_leaf_nodes=31, min_weight_fraction_leaf=0.1
    )
    model.fit(X, Y)
    leaves = model.booster_.predict(X, pred_leaf=True).ravel()
    assert np.unique(leaves, return_counts=True)[1].min() >= 0.1 * len(X) - 1


def test_threads_do_not_change_the_model():
    Z, y, groups = make_sample(30_000)
    one = FairProjClassifier(n_estimators=10, max_leaf_nodes=15, n_jobs=1)
    two = FairProjClassifier(n_estimators=10, max_leaf_nodes=15, n_jobs=2)
    one.fit(Z, y, sensitive_features=groups)
    two.fit(Z, y, sensitive_features=groups)
    np.testing.assert_array_equal(one.decision_function(Z), two.decision_function(Z))


def test_the_booster_knows_the_categories():
    rng = np.random.default_rng(0)
    city = rng.choice(["oslo", "bergen", "moss"], 400)
    frame = pd.DataFrame({"city": pd.Categorical(city), "n": rng.normal(size=400)})
    y = (rng.random(400) < 0.2 + 0.6 * (city == "oslo")).astype(int)
    model = FairProjClassifier(None, n_estimators=5).fit(frame, y)
    other = frame.assign(city=pd.Categorical(city, categories=["moss", "new", "oslo", "bergen"]))
    for some in (frame, other, other[other["city"] == "oslo"]):
        np.testing.assert_array_equal(
            model.booster_.predict(some, raw_score=True), model.decision_function(some)
        )
    words = frame.astype({"city": object})
    np.testing.assert_array_equal(
        model.booster_.predict(model.to_matrix(words), raw_score=True),
        model.decision_function(frame),
    )


def test_a_column_of_unknown_categories_draws_a_warning():
    frame = pd.DataFrame({"k": [1, 2, 3] * 100}).astype("category")
    model = FairProjClassifier(None, n_estimators=3).fit(frame, [0, 1, 0] * 100)
    with pytest.warns(UserWarning, match="column 'k' has no value known from training: found '1'"):
        model.predict(pd.DataFrame({"k": ["1", "2", "3"]}))


@pytest.mark.parametrize("roundtrip", [lambda m, p: pickle.loads(pickle.dumps(m)), None])
def test_pickle_and_joblib(roundtrip, tmp_path):
    model = FairProjClassifier(epsilon=0.1, n_estimators=10).fit(X, Y, sensitive_features=GROUPS)
    if roundtrip is None:
        joblib.dump(model, tmp_path / "model.joblib")
        again = joblib.load(tmp_path / "model.joblib")
    else:
        again = roundtrip(model, tmp_path)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate_ == model.certificate_
    assert again.history_ == model.history_
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)


def test_importances_are_scikit_learns_on_exact_stumps():
    Z, y, _ = make_sample(1000, decimals=1)
    mine = FairProjClassifier(None, n_estimators=20).fit(Z, y)
    tree = DecisionTreeClassifier(max_depth=1, random_state=0)
    other = FairProjClassifier(None, estimator=tree, n_estimators=20).fit(Z, y)
    np.testing.assert_allclose(mine.feature_importances_, other.feature_importances_, atol=1e-6)
    assert np.isclose(mine.feature_importances_.sum(), 1)


def test_a_learner_predicts_like_any_classifier():
    labels = np.where(Y > 0, "yes", "no")
    model = FairProjClassifier(epsilon=0.1, n_estimators=6).fit(
        X, labels, sensitive_features=GROUPS
    )
    margin = np.zeros(len(X))
    for learner, vote in zip(model.estimators_, model.estimator_weights_, strict=True):
        h = learner.decision_function(X)
        np.testing.assert_allclose(np.abs(h), 1, atol=1e-9)
        np.testing.assert_array_equal(learner.predict(X) == "yes", h > 0)
        margin += vote * h
    np.testing.assert_allclose(margin, model.decision_function(X), atol=1e-9)


def test_stages_end_at_the_model():
    model = FairProjClassifier(epsilon=0.1, n_estimators=9).fit(X, Y, sensitive_features=GROUPS)
    assert len(list(model.staged_predict(X))) == len(model.history_)
    np.testing.assert_array_equal(
        list(model.staged_decision_function(X))[-1], model.decision_function(X)
    )
    np.testing.assert_array_equal(list(model.staged_predict_proba(X))[-1], model.predict_proba(X))
    assert list(model.staged_score(X, Y))[-1] == model.score(X, Y)
    assert np.isclose(1 - list(model.staged_score(X, Y))[-1], model.certificate_.train_error)


def test_weights_over_hundreds_of_orders_of_magnitude_do_not_stop_the_engine():
    """LightGBM aborts where it thinks a leaf is empty; no weights may lead it there."""
    rng = np.random.default_rng(0)
    for trial in range(30):
        n = int(rng.integers(20, 400))
        Z = rng.normal(size=(n, 3)).round(rng.integers(0, 3))
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        settings = LearnerSettings(votes="confidence", max_leaf_nodes=int(rng.integers(2, 40)))
        engine = find_engine("lightgbm").bind(settings, samples.make_sample(Z, y, None, None))
        for _ in range(5):
            log_w = rng.normal(size=n) * 10 ** rng.uniform(0, 2.5)
            w = np.exp(log_w - log_w.max())
            w /= w.sum()
            h = engine.fit(Targets(gradient=-w * y, hessian=w)).h
            assert np.isfinite(h).all(), trial
            assert (np.abs(h) <= 1).all()


def test_no_feature_to_split_on_gives_a_constant():
    Z, y = np.ones((50, 2)), np.r_[np.ones(30), -np.ones(20)]
    model = FairProjClassifier(None).fit(Z, y)
    assert len(model.history_) == 1
    assert (model.predict(Z) == 1).all()
    assert np.isclose(model.history_[0].vote, 0.5 * np.log(0.6 / 0.4))
    np.testing.assert_allclose(model.predict_proba(Z)[:, 1], 0.6)
    assert model.booster_.num_trees() == 1
    assert model.feature_importances_.sum() == 0
    confident = FairProjClassifier(None, votes="confidence", n_estimators=3).fit(Z, y)
    assert (confident.predict(Z) == 1).all()
