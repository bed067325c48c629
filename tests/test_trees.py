"""The built-in trees: one native LightGBM model with the margin that the loop computed."""

import pickle
import re
from dataclasses import replace

import joblib
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit, logit
from sklearn.tree import DecisionTreeClassifier

from conftest import make_sample
from fairproj import FairProjClassifier
from fairproj.data import sample as samples
from fairproj.data.encoder import FeatureEncoder
from fairproj.datasets import load_adult, load_compas, load_german
from fairproj.engines import LearnerSettings, Saved, Targets, find_engine
from fairproj.engines.lightgbm import text as native
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


# Newton trees


def encoded_sample(table, y, encoder=None):
    """Rows as an estimator prepares them."""
    if encoder is None:
        encoder = FeatureEncoder("from_dtype" if isinstance(table, pd.DataFrame) else None, 255)
        table = encoder.fit_transform(table)
    else:
        table = encoder.transform(table)
    return replace(samples.make_sample(table, y, None, None), X=table, encoder=encoder)


def bind(sample, held_out=None, votes="newton", **settings):
    settings = LearnerSettings(votes, **{"max_leaf_nodes": 31, "min_samples_leaf": 20} | settings)
    return find_engine("lightgbm").bind(settings, sample, held_out)


def logistic_targets(y, f, max_step=np.inf):
    u = 1 / (1 + np.exp(y * f))
    return Targets(-u * y / len(y), u * (1 - u) / len(y), max_step)


def gradient_boosting(engine, y, n_rounds=50, rate=0.1):
    """Plain gradient boosting: the model and the margin that the loop added up."""
    intercept = logit(np.mean(y > 0))
    f, learners = np.full(len(y), intercept), []
    for _ in range(n_rounds):
        fitted = engine.fit(logistic_targets(y, f))
        f = f + rate * fitted.h
        learners.append(fitted.learner)
    return engine.ensemble(learners, [rate] * n_rounds, 1.0, intercept), f


def compas_numbers():
    data = load_compas()
    return data.data.select_dtypes("number"), data.target, {}, {}


def german_numbers():
    data = load_german()
    return data.data.select_dtypes("number").to_numpy(float), data.target, {}, {}


def adult_categories():
    data = load_adult()
    rows = data.data.iloc[:4000]
    words = rows.select_dtypes("category")
    rows = rows.assign(**{name: words[name].cat.remove_unused_categories() for name in words})
    return rows, data.target.iloc[:4000], {}, {}


def german_sampled():
    data = load_german()
    ours = {"subsample": 0.7, "max_features": 0.5, "random_state": 7}
    theirs = {"subsample": 0.7, "subsample_freq": 1, "colsample_bytree": 0.5, "random_state": 7}
    return data.data, data.target, ours, theirs


def compas_restricted():
    numbers, y, _, _ = compas_numbers()
    signs = [-1] + [1] * (numbers.shape[1] - 1)
    ours = {"monotonic_cst": signs, "l2_regularization": 3.0, "min_samples_leaf": 50}
    theirs = {"monotone_constraints": signs, "reg_lambda": 3.0, "min_child_samples": 50}
    return numbers, y, ours, theirs


PROBLEMS = [
    german_numbers,
    compas_numbers,
    adult_categories,
    german_sampled,
    compas_restricted,
]
STRUCTURE = ("split_feature", "threshold", "decision_type", "cat_threshold", "leaf_count")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_newton_trees_are_those_of_lightgbms_classifier(problem):
    table, labels, settings, parameters = problem()
    sample = encoded_sample(table, labels)
    model, f = gradient_boosting(bind(sample, **settings), sample.y)
    other = lgb.LGBMClassifier(n_estimators=50, n_jobs=1, verbose=-1, **parameters)
    other.fit(table, labels)
    raw = other.predict(table, raw_score=True)
    np.testing.assert_allclose(model.margin(sample.X), raw, rtol=0, atol=1e-10)
    np.testing.assert_allclose(f, raw, rtol=0, atol=1e-10)
    theirs = native.blocks(other.booster_.model_to_string())
    assert len(model.blocks) == len(theirs) == 50
    for mine, their in zip(model.blocks, theirs, strict=True):
        for name in STRUCTURE:
            np.testing.assert_array_equal(native.numbers(mine, name), native.numbers(their, name))
        values = [native.numbers(block, "leaf_value") for block in (mine, their)]
        np.testing.assert_allclose(*values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        model.booster.predict(sample.X), other.predict_proba(table)[:, 1], atol=1e-10
    )


def test_the_problems_have_what_they_are_for():
    """Splits by category, leaves that a restriction changes, and trees that sampling changes."""
    table, labels, _, _ = adult_categories()
    sample = encoded_sample(table, labels)
    model, _ = gradient_boosting(bind(sample), sample.y, n_rounds=10)
    assert sum(native.numbers(block, "num_cat").sum() for block in model.blocks) > 10
    for problem in (german_sampled, compas_restricted):
        table, labels, settings, _ = problem()
        sample = encoded_sample(table, labels)
        plain, _ = gradient_boosting(bind(sample), sample.y, n_rounds=1)
        for name in settings.keys() - {"random_state"}:
            some = {name: settings[name], "random_state": 7}
            changed, _ = gradient_boosting(bind(sample, **some), sample.y, n_rounds=1)
            assert (changed.margin(sample.X) != plain.margin(sample.X)).any(), name


def test_random_numbers_are_drawn_only_to_sample():
    sample = encoded_sample(X, Y)

    def margin(**settings):
        return gradient_boosting(bind(sample, **settings), Y, n_rounds=3)[0].margin(X)

    def state():
        return np.random.RandomState(5)

    untouched = state()
    plain = margin(random_state=untouched)
    assert untouched.randint(10**9) == state().randint(10**9)
    np.testing.assert_array_equal(margin(random_state=3), plain)
    sampled = margin(random_state=state(), subsample=0.5)
    assert (sampled != plain).any()
    np.testing.assert_array_equal(margin(random_state=state(), subsample=0.5), sampled)
    seed = state().randint(np.iinfo(np.int32).max)
    np.testing.assert_array_equal(margin(random_state=seed, subsample=0.5), sampled)
    assert (margin(random_state=seed + 1, subsample=0.5) != sampled).any()
    margin(random_state=None, max_features=0.5)


@pytest.mark.parametrize("votes", ["discrete", "confidence", "newton"])
def test_settings_of_any_tree(votes):
    """Each has an effect, and one that it is named for."""
    sample = encoded_sample(X, Y)

    def grown(**settings):
        engine = bind(sample, votes=votes, **{"min_samples_leaf": 1} | settings)
        fitted = engine.fit(logistic_targets(Y, np.zeros(len(Y))))
        return engine.ensemble([fitted.learner], [1.0], 1.0), fitted.h

    model, h = grown()
    smallest = [
        native.numbers(grown(min_samples_leaf=n)[0].blocks[0], "leaf_count").min() for n in (1, 60)
    ]
    assert smallest[0] < 30
    assert smallest[1] >= 60
    for sampled in ({"subsample": 0.3}, {"max_features": 0.3}):
        assert (grown(random_state=0, **sampled)[1] != h).any()
    if votes != "discrete":
        assert np.abs(grown(l2_regularization=50.0)[1]).max() < np.abs(h).max()
    line = np.tile(np.median(X, axis=0), (500, 1))
    line[:, 1] = np.linspace(X[:, 1].min(), X[:, 1].max(), 500)
    assert (np.diff(model.margin(line)) < 0).any()
    rising, _ = grown(monotonic_cst=[0, 1, 0, 0, 0])
    assert (np.diff(rising.margin(line)) >= 0).all()


def test_categories_have_no_order_to_be_monotonic_in():
    table = pd.DataFrame({"a": X[:, 0], "c": np.where(GROUPS, "x", "y")})
    with pytest.raises(
        ValueError, match="monotonic_cst restricts column 1, which holds categories"
    ):
        bind(encoded_sample(table, Y), monotonic_cst=np.array([1, -1]))
    bind(encoded_sample(table, Y), monotonic_cst=np.array([1, 0]))


# Rows held out


def mixed_rows(n_rows, seed):
    """Numbers, a column with missing values, and categories of which some are rare."""
    rng = np.random.default_rng(seed)
    rare = np.array(["a", "b", "c", "d", "e"])[
        rng.choice(5, n_rows, p=[0.5, 0.3, 0.19, 0.005, 0.005])
    ]
    table = pd.DataFrame({"n": rng.normal(size=n_rows), "k": rng.integers(0, 9, n_rows)})
    table["h"] = np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows))
    table["w"] = pd.Categorical(rare)
    score = (
        table["n"] + table["h"].isna() + (rare == "d") - (rare == "b") + rng.logistic(size=n_rows)
    )
    return table, np.where(score > 0.3, 1.0, -1.0)


def awkward_rows(n_rows):
    """A category not seen in training, missing ones, and numbers beyond those of training."""
    table, y = mixed_rows(n_rows, seed=1)
    table["w"] = table["w"].cat.add_categories("new")
    table.loc[::7, "w"] = "new"
    table.loc[::11, "w"] = None
    table.loc[::5, "n"] *= 10
    return table, y


@pytest.mark.parametrize("votes", ["discrete", "confidence", "newton"])
def test_held_out_rows_are_scored_and_change_no_tree(votes):
    table, y = mixed_rows(3000, seed=0)
    sample = encoded_sample(table, y)
    held_out = encoded_sample(*awkward_rows(500), sample.encoder)
    alone = bind(encoded_sample(table, y), votes=votes)
    engine = bind(sample, held_out, votes=votes)
    f, learners, predicted = np.zeros(len(y)), [], []
    for _ in range(12):
        targets = logistic_targets(y, f)
        fitted, same = engine.fit(targets), alone.fit(targets)
        assert same.held_out is None
        np.testing.assert_array_equal(fitted.h, same.h)
        learners.append(fitted.learner)
        predicted.append((fitted.h, fitted.held_out))
        f = f + 0.1 * fitted.h
    model = engine.ensemble(learners, [0.1] * 12, 1.0, 0.25)
    assert model.blocks == alone.ensemble(learners, [0.1] * 12, 1.0, 0.25).blocks
    for t, (h, held_out_h) in enumerate(predicted):
        np.testing.assert_allclose(model.learner(t).predict_h(sample.X), h, atol=1e-9)
        np.testing.assert_allclose(
            model.learner(t).predict_h(held_out.X), held_out_h, rtol=0, atol=1e-9
        )
        assert h.dtype == held_out_h.dtype == (np.int8 if votes == "discrete" else float)
    assert (np.abs(held_out_h) > 0).all()


@pytest.mark.parametrize("votes", ["confidence", "newton"])
def test_held_out_rows_of_a_sparse_matrix(votes):
    Z = sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    sample, held_out = encoded_sample(Z[:500], Y[:500]), encoded_sample(Z[500:], Y[500:])
    engine = bind(sample, held_out, votes=votes)
    fitted = engine.fit(logistic_targets(Y[:500], 0))
    stump = engine.ensemble([fitted.learner], [1.0], 1.0)
    assert len(np.unique(fitted.held_out)) > 1
    np.testing.assert_allclose(fitted.held_out, stump.margin(held_out.X), rtol=0, atol=1e-12)


def test_a_missing_value_in_the_held_out_rows_only():
    sample = encoded_sample(X[:500], Y[:500])
    Z = X[500:].copy()
    Z[::3] = np.nan
    held_out = replace(encoded_sample(X[500:], Y[500:]), X=Z)
    for votes in ("confidence", "newton"):
        engine = bind(sample, held_out, votes=votes)
        fitted = engine.fit(logistic_targets(Y[:500], 0))
        stump = engine.ensemble([fitted.learner], [1.0], 1.0)
        np.testing.assert_allclose(fitted.held_out, stump.margin(Z), rtol=0, atol=1e-12)


def test_fits_on_the_same_rows_share_what_is_binned():
    """In whatever order, each engine grows the trees that it grows on rows of its own."""
    table, y = mixed_rows(1000, seed=0)
    sample = encoded_sample(table, y)
    held_out = [encoded_sample(*mixed_rows(300, seed), sample.encoder) for seed in (1, 2)]
    kinds = [
        {"votes": "newton"},
        {"votes": "confidence"},
        {"votes": "newton", "min_samples_leaf": 200},
        {"votes": "newton", "max_leaf_nodes": 5, "subsample": 0.5, "random_state": 1},
        {"votes": "discrete", "min_samples_leaf": 200},
    ]
    for _ in range(2):
        for kind in kinds:
            for watched in (None, *held_out):
                fresh = None if watched is None else replace(watched, cache={})
                expected = bind(replace(sample, cache={}), fresh, **kind)
                engine = bind(sample, watched, **kind)
                mine, other = (one.fit(logistic_targets(y, 0)) for one in (engine, expected))
                np.testing.assert_array_equal(mine.h, other.h)
                np.testing.assert_array_equal(mine.held_out, other.held_out)
    assert len(sample.cache) == 3  # Newton trees with two sizes of leaves, and all others
    assert all(len(watched.cache) == 3 for watched in held_out)


@pytest.mark.parametrize("votes", ["confidence", "newton"])
def test_held_out_rows_are_binned_for_each_training_sample(votes):
    """Rows in the bins of others would fall on the wrong side of a split."""
    held_out = encoded_sample(X[:100], Y[:100])
    for shift in (0, 1, 0):
        sample = encoded_sample(X[100:] + shift, Y[100:])
        engine = bind(sample, held_out, votes=votes)
        fitted = engine.fit(logistic_targets(sample.y, 0))
        stump = engine.ensemble([fitted.learner], [1.0], 1.0)
        np.testing.assert_allclose(fitted.held_out, stump.margin(held_out.X), rtol=0, atol=1e-12)


def test_too_few_rows_for_a_leaf_give_constants():
    sample, held_out = encoded_sample(X[:30], Y[:30]), encoded_sample(X[30:40], Y[30:40])
    engine = bind(sample, held_out)
    fits = [engine.fit(logistic_targets(Y[:30], f)) for f in (np.zeros(30), np.ones(30))]
    assert all(fit.constant for fit in fits)
    assert len(fits[0].held_out) == 10
    model = engine.ensemble([fit.learner for fit in fits], [0.1, 0.1], 1.0, 0.2)
    np.testing.assert_allclose(model.margin(X), 0.2 + 0.1 * (fits[0].h[0] + fits[1].h[0]))
    assert fits[0].h[0] == pytest.approx(2 * Y[:30].mean())


# Constants, steps and intercepts


def too_light_to_split(ratio, n_rows, max_step=np.inf):
    """The Hessians, multiplied by the rows, add up to 1e-8; the gradients are ratio times that."""
    hessian = np.full(n_rows, 1e-8 / n_rows**2)
    return Targets(-ratio * hessian, hessian, max_step)


@pytest.mark.parametrize(
    ("votes", "l2", "value"),
    [("newton", 0.0, 2.0), ("newton", 3e-8, 0.5), ("confidence", 3e-8, 0.5), ("discrete", 0.0, 1)],
)
def test_a_round_without_a_split_is_a_constant_and_later_rounds_go_on(votes, l2, value):
    sample, held_out = encoded_sample(X, Y), encoded_sample(X[:50], Y[:50])
    engine = bind(sample, held_out, votes=votes, l2_regularization=l2)
    useful, light = logistic_targets(Y, np.zeros(len(Y))), too_light_to_split(2, len(Y))
    fits = [engine.fit(targets) for targets in (light, light, useful, light, useful, light)]
    assert [fit.constant for fit in fits] == [True, True, False, True, False, True]
    np.testing.assert_allclose(fits[0].h, value, rtol=1e-9)
    model = engine.ensemble([fit.learner for fit in fits], [0.5] * 6, 1.0, 0.3)
    for t, fit in enumerate(fits):
        assert (len(np.unique(fit.h)) == 1) == fit.constant
        np.testing.assert_allclose(model.learner(t).predict_h(X), fit.h, atol=1e-9)
        np.testing.assert_allclose(fit.held_out, fit.h[:50], atol=1e-9)
    np.testing.assert_allclose(
        model.margin(X), 0.3 + 0.5 * sum(fit.h.astype(float) for fit in fits)
    )


def test_a_newton_step_without_a_split_is_clipped():
    engine = bind(encoded_sample(X, Y))
    for ratio, expected in ((2, 1.5), (-2, -1.5), (0.5, 0.5)):
        fitted = engine.fit(too_light_to_split(ratio, len(Y), max_step=1.5))
        assert fitted.constant
        np.testing.assert_allclose(fitted.h, expected)
        model = engine.ensemble([fitted.learner], [0.1], 1.0)
        np.testing.assert_allclose(model.margin(X), 0.1 * expected)
    no_curvature = Targets(np.full(len(Y), -1 / len(Y)), np.zeros(len(Y)), 7.0)
    np.testing.assert_array_equal(engine.fit(no_curvature).h, 7.0)


def test_a_step_is_clipped_in_the_learner_and_in_the_model():
    sample, held_out = encoded_sample(X[:600], Y[:600]), encoded_sample(X[600:], Y[600:])
    engine, free = bind(sample, held_out), bind(sample, held_out)
    f = np.zeros(600)
    fits = []
    for max_step in (0.7, np.inf, 0.2):
        targets = logistic_targets(Y[:600], f, max_step)
        whole = free.fit(replace(targets, max_step=np.inf))
        fitted = engine.fit(targets)
        assert np.abs(whole.h).max() > 1.1
        np.testing.assert_allclose(fitted.h, np.clip(whole.h, -max_step, max_step), atol=1e-12)
        f = f + 0.5 * fitted.h
        fits.append(fitted)
    model = engine.ensemble([fit.learner for fit in fits], [0.5] * 3, 1.0)
    np.testing.assert_allclose(model.margin(sample.X), f, atol=1e-12)
    held_out_margin = 0.5 * sum(fit.held_out for fit in fits)
    np.testing.assert_allclose(model.margin(held_out.X), held_out_margin, atol=1e-12)


def boosted(votes, n_rounds=4, intercept=-1.3, table=X):
    sample = encoded_sample(table, Y)
    engine = bind(sample, votes=votes)
    f, fits = np.full(len(Y), intercept), []
    for _ in range(n_rounds):
        fits.append(engine.fit(logistic_targets(Y, f)))
        f = f + 0.3 * fits[-1].h
    learners = [fit.learner for fit in fits]
    return engine.ensemble(learners, [0.3] * n_rounds, 1.0, intercept), fits, sample


def saved_as(votes, model, **changes):
    facts = {
        "votes": model.votes,
        "learner_votes": votes,
        "link_scale": model.link_scale,
        "classes": np.array([-1, 1]),
        "n_features": X.shape[1],
        "categories": {},
        "intercept": model.intercept,
    }
    return Saved(**facts | changes)


@pytest.mark.parametrize("votes", ["discrete", "confidence", "newton"])
@pytest.mark.parametrize("table", [X, np.zeros_like(X)], ids=["trees", "constants"])
def test_the_intercept(votes, table):
    model, fits, sample = boosted(votes, table=table)
    assert all(fit.constant == (table is not X) for fit in fits)
    assert model.intercept == -1.3
    staged = list(model.staged_margin(sample.X))
    f = np.full(len(Y), -1.3)
    for t, fit in enumerate(fits):
        f = f + 0.3 * fit.h
        np.testing.assert_allclose(staged[t], f, atol=1e-12)
        np.testing.assert_allclose(model.learner(t).predict_h(sample.X), fit.h, atol=1e-12)
    np.testing.assert_allclose(model.margin(sample.X), f, atol=1e-12)
    booster = model.booster
    np.testing.assert_allclose(booster.predict(sample.X, raw_score=True), f, atol=1e-12)
    np.testing.assert_allclose(booster.predict(sample.X), expit(f), atol=1e-12)
    assert booster.num_trees() == len(fits)
    contributions = booster.predict(sample.X, pred_contrib=True)
    np.testing.assert_allclose(contributions.sum(axis=1), f, atol=1e-9)
    again = find_engine("lightgbm").from_payload(model.to_payload(), saved_as(votes, model))
    assert (again.intercept, again.votes) == (model.intercept, model.votes)
    np.testing.assert_array_equal(again.margin(sample.X), model.margin(sample.X))
    np.testing.assert_array_equal(
        again.learner(0).predict_h(sample.X), model.learner(0).predict_h(sample.X)
    )
    assert again.to_payload() == model.to_payload()


@pytest.mark.parametrize("votes", ["discrete", "confidence", "newton"])
def test_an_intercept_does_not_change_the_importances(votes):
    engine = bind(encoded_sample(X, Y), votes=votes)
    learners = [engine.fit(logistic_targets(Y, 0)).learner, engine.constant(0.5).learner]
    with_it, without = (engine.ensemble(learners, [0.5, 0.2], 1.0, i) for i in (5.0, 0.0))
    np.testing.assert_array_equal(with_it.feature_importances, without.feature_importances)
    assert np.isclose(with_it.feature_importances.sum(), 1)


def test_an_intercept_is_added_to_that_of_an_earlier_run():
    first, _, sample = boosted("newton")
    engine = find_engine("lightgbm").bind(LearnerSettings("newton"), sample, before=first)
    fitted = engine.fit(logistic_targets(Y, first.margin(X)))
    for intercept in (0.0, 0.5):
        model = engine.ensemble([fitted.learner], [0.3], 1.0, intercept)
        assert model.intercept == first.intercept + intercept
        expected = first.margin(X) + intercept + 0.3 * fitted.h
        np.testing.assert_allclose(model.margin(X), expected, atol=1e-12)
        for t in (0, 3):
            h = first.learner(t).predict_h(X)
            np.testing.assert_allclose(model.learner(t).predict_h(X), h, atol=1e-9)


def with_leaf(payload, number, value):
    """The payload with another first leaf value in a tree, and the sizes that go with it."""
    header, *trees = re.split(r"^(?=Tree=)", payload["text"], flags=re.MULTILINE)
    trees[-1], end = trees[-1].split("end of trees")
    trees[number] = re.sub(r"leaf_value=\S+", f"leaf_value={value}", trees[number])
    sizes = " ".join(str(len(tree)) for tree in trees)
    header = re.sub(r"tree_sizes=.*", f"tree_sizes={sizes}", header)
    return {"text": header + "".join(trees) + "end of trees" + end}


@pytest.mark.parametrize("votes", ["discrete", "confidence", "newton"])
def test_leaves_of_a_hostile_payload(votes):
    """With an intercept of -1.3 and votes of .3, leaves of the first tree are in [-1.6, -1]."""
    model, _, _ = boosted(votes)
    payload, saved = model.to_payload(), saved_as(votes, model)
    rebuild = find_engine("lightgbm").from_payload
    for number, value in ((0, "-1.6"), (0, "-1"), (2, "0.3"), (3, "-0.3")):
        changed = rebuild(with_leaf(payload, number, value), saved)
        assert native.numbers(changed.blocks[number], "leaf_value")[0] == float(value)
    beyond = [(0, "-1.6001"), (0, "-0.9999"), (0, "0"), (2, "0.30001"), (3, "-1e300")]
    for number, value in beyond:
        if votes == "newton":
            rebuild(with_leaf(payload, number, value), saved)
        else:
            with pytest.raises(ValueError, match=f"tree {number} has a leaf value beyond its vote"):
                rebuild(with_leaf(payload, number, value), saved)
    for value, words in (("nan", "not a number"), ("1e999", "not finite"), ("inf", "not a number")):
        with pytest.raises(ValueError, match=words):
            rebuild(with_leaf(payload, 1, value), saved)
    for intercept in (np.nan, np.inf):
        with pytest.raises(ValueError, match="intercept"):
            rebuild(payload, saved_as(votes, model, intercept=intercept))
