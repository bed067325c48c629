"""XGBoost's trees: the same models as LightGBM's, on one worker, on several and from batches."""

import copy
import gc
import json
import pickle
import random
import re
import sys
import tempfile
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from scipy import sparse
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from xgboost.tracker import RabitTracker

from conftest import check_or_skip, make_sample
from fairproj import FairBoostClassifier, FairProjClassifier, load
from fairproj.data import sample as samples
from fairproj.data.blocks import Blocks
from fairproj.data.checks import Groups
from fairproj.data.encoder import FeatureEncoder
from fairproj.data.reduction import LocalReduction
from fairproj.engines import LearnerSettings, Saved, Targets, find_engine
from fairproj.engines.xgboost import matrices
from fairproj.engines.xgboost.collective import CollectiveReduction
from fairproj.engines.xgboost.engine import XGBoostEngine
from fairproj.engines.xgboost.subsample import RowDraws
from fairproj.engines.xgboost.validate import MOST_LEVELS, from_record, to_record

X, Y, GROUPS = make_sample(2000, n_groups=3, decimals=1)
FEW = {"min_samples_leaf": 0, "max_leaf_nodes": 4, "validation_fraction": None}
FIRST_ORDER = FEW | {"tree_step": "first_order"}


def fit(model, data=X, y=Y, groups=GROUPS, **given):
    return model.fit(data, y, sensitive_features=groups, **given)


def votes(model):
    return model.history_.columns["vote"]


def mixed(n_rows=1500, seed=0, *, every_kind=False):
    """Numbers, numbers with gaps, and categories with gaps, unless there is ``every_kind``."""
    rng = np.random.default_rng(seed)
    numbers, y, groups = make_sample(n_rows, seed=seed, decimals=1)
    table = pd.DataFrame(numbers[:, :3], columns=["a", "b", "gaps"])
    table.loc[rng.random(n_rows) < 0.2, "gaps"] = np.nan
    codes = rng.integers(0, 8, n_rows)
    table["kind"] = pd.Categorical([f"k{code}" for code in codes])
    if not every_kind:
        table.loc[rng.random(n_rows) < 0.1, "kind"] = None
    y = np.where(rng.random(n_rows) < 0.4, np.where(np.isin(codes, [1, 4, 6]), 1, -1), y)
    return table, y, groups


# Against other libraries


def test_stumps_are_those_of_scikit_learns_adaboost():
    theirs = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=20)
    theirs.fit(X, Y)
    ours = fit(FairProjClassifier(None, engine="xgboost", n_estimators=20))
    assert len(ours.history_) == 20
    np.testing.assert_allclose(votes(ours), theirs.estimator_weights_ / 2, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


SAME_AS_LIGHTGBM = {
    "stumps": (FairProjClassifier, {"epsilon": 0.1}),
    "trees": (FairProjClassifier, {"max_depth": 3, "epsilon": 0.05}),
    "leaves": (FairProjClassifier, {"max_leaf_nodes": 5, "constraints": "demographic_parity"}),
    "weights": (FairProjClassifier, {"max_depth": 3, "min_weight_fraction_leaf": 0.1}),
    "logistic": (FairBoostClassifier, FIRST_ORDER | {"votes": "discrete"}),
    "exponential": (
        FairBoostClassifier,
        FIRST_ORDER | {"votes": "discrete", "loss": "exponential", "learning_rate": 0.5},
    ),
    "held out": (
        FairBoostClassifier,
        FIRST_ORDER | {"votes": "discrete", "validation_fraction": 0.3, "random_state": 0},
    ),
    "monotonic": (
        FairBoostClassifier,
        FIRST_ORDER | {"votes": "discrete", "monotonic_cst": [1, -1, 0, 0], "max_leaf_nodes": 2},
    ),
}


@pytest.mark.parametrize("data", ["numbers", "categories"])
@pytest.mark.parametrize(("kind", "given"), SAME_AS_LIGHTGBM.values(), ids=SAME_AS_LIGHTGBM)
@pytest.mark.filterwarnings("ignore:no useful round", "ignore:the model says the same")
def test_the_votes_are_those_of_lightgbm_on_the_same_bins(kind, given, data):
    """Every value has a bin of its own; learners predict -1 or +1, so rounding does not show.

    No category is missing: LightGBM puts a missing one with those that a split does not name,
    XGBoost on the better side.
    """
    rows = mixed(every_kind=True) if data == "categories" else (X[:, :4], Y, GROUPS)
    weight = np.random.default_rng(1).integers(1, 4, len(rows[1]))
    one, two = (
        fit(kind(**{"n_estimators": 15} | given, engine=engine), *rows, sample_weight=weight)
        for engine in ("lightgbm", "xgboost")
    )
    assert len(one.history_) > 3
    np.testing.assert_allclose(votes(two), votes(one), atol=1e-9)
    np.testing.assert_array_equal(two.predict(rows[0]), one.predict(rows[0]))
    assert two.certificate_.holds


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_confidence_votes_are_those_of_lightgbm_in_single_precision(loss):
    one, two = (
        fit(FairBoostClassifier(engine=engine, loss=loss, n_estimators=15, **FIRST_ORDER))
        for engine in ("lightgbm", "xgboost")
    )
    np.testing.assert_allclose(votes(two), votes(one), rtol=1e-6)
    np.testing.assert_allclose(two.predict_proba(X), one.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("l2", [0.0, 2.0])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"max_leaf_nodes": 15}, {"max_leaves": 15, "grow_policy": "lossguide", "max_depth": 0}),
        ({"max_leaf_nodes": None, "max_depth": 4}, {"max_depth": 4}),
    ],
)
def test_newton_trees_are_those_of_xgbclassifier(ours, theirs, l2):
    data, y, _ = mixed(3000)
    model = FairBoostClassifier(
        None,
        engine="xgboost",
        n_estimators=40,
        min_samples_leaf=0,
        l2_regularization=l2,
        validation_fraction=None,
        **ours,
    ).fit(data, y)
    matrix = model.to_matrix(data)
    classifier = xgb.XGBClassifier(
        n_estimators=40,
        learning_rate=0.1,
        min_child_weight=1e-3,
        reg_lambda=l2,
        max_bin=255,
        tree_method="hist",
        n_jobs=1,
        base_score=(y > 0).mean(),
        feature_types=["q", "q", "q", "c"],
        enable_categorical=True,
        **theirs,
    ).fit(matrix, y > 0)
    np.testing.assert_allclose(
        model.predict_proba(data), classifier.predict_proba(matrix), atol=1e-5
    )


@pytest.mark.filterwarnings("ignore:no (sensitive_features|groups) were given")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:no learner beat chance")  # few rows, none in a leaf
@parametrize_with_checks(
    [
        FairProjClassifier(n_estimators=5, engine="xgboost"),
        FairBoostClassifier(n_estimators=5, engine="xgboost"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check_or_skip(estimator, check)


# The model


BOOSTS = {
    "newton": {},
    "confidence": {"tree_step": "first_order"},
    "discrete": {"tree_step": "first_order", "votes": "discrete"},
    "exponential": {"loss": "exponential"},
    "baseline": {"baseline": True},
}


@pytest.fixture(scope="module")
def boosted():
    usual = {"engine": "xgboost", "n_estimators": 12, "max_gap": 0.2, "random_state": 0}
    return {
        name: fit(FairBoostClassifier(**usual, **given), *mixed()) for name, given in BOOSTS.items()
    }


@pytest.mark.parametrize("name", BOOSTS)
def test_the_booster_is_the_model_in_single_precision(boosted, name, tmp_path):
    model, data = boosted[name], mixed(seed=3)[0]
    matrix, probability = model.to_matrix(data), model.predict_proba(data)[:, 1]
    booster = model.booster_
    assert booster.num_boosted_rounds() == len(model._ensemble.votes)
    np.testing.assert_allclose(booster.predict(xgb.DMatrix(matrix)), probability, atol=1e-6)
    parts = booster.predict(xgb.DMatrix(matrix), pred_contribs=True)
    scaled = model._ensemble.link_scale * model.decision_function(data)
    np.testing.assert_allclose(parts.sum(axis=1), scaled, atol=1e-5)
    path = tmp_path / "model.json"
    booster.save_model(path)
    classifier = xgb.XGBClassifier()
    classifier.load_model(path)
    np.testing.assert_allclose(classifier.predict_proba(matrix)[:, 1], probability, atol=1e-6)


@pytest.mark.parametrize("name", BOOSTS)
def test_saved_and_pickled_models_are_equal_to_the_last_bit(boosted, name, tmp_path):
    model, data = boosted[name], mixed(seed=3)[0]
    assert model.decision_function(data).std() > 0  # makes the booster, which is not pickled
    model.save(tmp_path / "one")
    loaded = load(tmp_path / "one")
    loaded.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    for other in (loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.decision_function(data).tobytes() == model.decision_function(data).tobytes()
        assert other.feature_importances_.tobytes() == model.feature_importances_.tobytes()
        assert other.history_ == model.history_
    assert len(pickle.dumps(model._ensemble)) < 2000 + 3000 * len(model._ensemble.trees)


@pytest.mark.parametrize("name", BOOSTS)
def test_stages_and_learners_add_up(boosted, name):
    model, data = boosted[name], mixed(seed=3)[0]
    ensemble, matrix = model._ensemble, model.to_matrix(data)
    stages = list(ensemble.staged_margin(matrix))
    np.testing.assert_array_equal(stages[-1], ensemble.margin(matrix))
    each = [learner.decision_function(data) for learner in model.estimators_]
    total = ensemble.intercept + np.cumsum(np.array(ensemble.votes)[:, None] * each, axis=0)
    np.testing.assert_allclose(stages, total, atol=1e-12)
    assert ensemble.margin(matrix[:0]).shape == (0,)
    assert ensemble.margin(matrix, n_threads=2).tobytes() == stages[-1].tobytes()


def test_a_warm_start_goes_on():
    usual = {"engine": "xgboost", "epsilon": 0.3, "max_depth": 2}
    at_once = fit(FairProjClassifier(n_estimators=6, **usual))
    model = fit(FairProjClassifier(n_estimators=3, warm_start=True, **usual))
    fit(model.set_params(n_estimators=6))
    assert len(at_once.history_) == 6
    np.testing.assert_allclose(votes(model), votes(at_once), atol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), at_once.decision_function(X), atol=1e-9)


def test_a_model_of_one_constant_tree(tmp_path):
    flat, y, groups = np.zeros((300, 2)), np.arange(300) % 2, np.arange(300) % 3
    for model in (FairProjClassifier(), FairBoostClassifier(validation_fraction=None)):
        model.set_params(engine="xgboost")
        with pytest.warns(UserWarning, match="majority class"):
            fit(model, flat, y, groups)
        model.save(tmp_path / "m")
        margin = model.decision_function(flat)
        assert len(np.unique(margin)) == 1
        assert load(tmp_path / "m").decision_function(flat).tobytes() == margin.tobytes()
        predicted = model.booster_.predict(xgb.DMatrix(flat))
        np.testing.assert_allclose(predicted, model.predict_proba(flat)[:, 1], atol=1e-6)


def test_threads_do_not_matter(monkeypatch):
    monkeypatch.setattr("fairproj.engines.trees.ROWS_PER_THREAD", 100)
    data, y, groups = make_sample(2000, seed=4)
    one, two = (
        fit(
            FairBoostClassifier(engine="xgboost", n_estimators=2, random_state=0, n_jobs=n),
            data,
            y,
            groups,
        )
        for n in (1, 2)
    )
    np.testing.assert_allclose(two.decision_function(data), one.decision_function(data), atol=1e-9)


# The engine


def bind(settings, data=X, held_out=None, encoder=None, **facts):
    sample = replace(samples.make_sample(data, Y[: len(data)], None, None), encoder=encoder)
    other = (
        None if held_out is None else samples.make_sample(held_out, Y[: len(held_out)], None, None)
    )
    return find_engine("xgboost").bind(settings, replace(sample, **facts), other)


def targets(seed):
    weight = np.random.default_rng(seed).uniform(0.5, 2, len(Y))
    weight /= weight.sum()
    return Targets(-weight * Y, weight)


@pytest.mark.parametrize("kind", ["discrete", "confidence", "newton"])
@pytest.mark.parametrize("sampled", [{}, {"subsample": 0.6, "max_features": 0.5}])
def test_a_run_is_repeated_from_its_learners(kind, sampled):
    """h of a learner is the same when it is grown, evaluated and in the ensemble."""
    data = X.copy()
    data[::7, 1] = np.nan
    held_out = data[:400] + 0.05
    settings = LearnerSettings(kind, max_leaf_nodes=6, random_state=3, **sampled)
    engine = bind(settings, data, held_out)
    fits = [engine.fit(targets(seed)) for seed in range(4)]
    again = bind(settings, data, held_out)
    learners = [pickle.loads(pickle.dumps(fitted.learner)) for fitted in fits[:3]]
    for fitted, repeated in zip(fits[:3], again.evaluate(learners), strict=True):
        assert repeated.h.dtype == fitted.h.dtype
        np.testing.assert_array_equal(repeated.h, fitted.h)
        np.testing.assert_array_equal(repeated.held_out, fitted.held_out)
    # Random numbers go on as if the rounds had been run.
    np.testing.assert_array_equal(again.fit(targets(3)).h, fits[3].h)
    [constant] = again.evaluate([engine.constant(-1.0).learner])
    assert constant.constant
    assert (constant.h == -1).all()
    assert constant.held_out.tolist() == [-1] * 400
    model = engine.ensemble([fitted.learner for fitted in fits], [0.4, 0.3, 0.2, 0.1], 1.0, 0.7)
    margin = 0.7 + 0.4 * fits[0].h + 0.3 * fits[1].h + 0.2 * fits[2].h + 0.1 * fits[3].h
    np.testing.assert_allclose(model.margin(data), margin, rtol=0, atol=1e-15)


def test_leaves_hold_enough_rows_and_weight():
    n_rows = len(Y)
    for settings, least in (
        (LearnerSettings("confidence", max_leaf_nodes=30, min_samples_leaf=50), 50),
        (LearnerSettings("newton", max_leaf_nodes=30, min_samples_leaf=50), 50),
        (LearnerSettings("discrete", max_depth=6, min_weight_fraction_leaf=0.1), 0.1 * n_rows),
    ):
        weight = np.full(n_rows, 1 / n_rows)
        engine = bind(settings)
        fitted = engine.fit(Targets(-weight * Y, weight))
        model = engine.ensemble([fitted.learner], [1.0], 1.0)
        sizes = np.unique(model._leaves(X, 1), return_counts=True)[1]
        assert least <= sizes.min() < 4 * least
        np.testing.assert_allclose(
            sorted(fitted.learner.cover[fitted.learner.is_leaf]), sorted(sizes), rtol=1e-5
        )


def test_a_step_without_a_split_is_the_mean_and_clipped():
    flat = np.zeros((100, 2))
    for step, expected in ((np.inf, 0.5 / 2.5), (0.1, 0.1)):
        engine = bind(LearnerSettings("newton", l2_regularization=150.0), flat)
        fitted = engine.fit(Targets(np.full(100, -0.005), np.full(100, 0.01), step))
        assert fitted.constant
        np.testing.assert_allclose(fitted.h, expected)


def test_values_beyond_the_bins_are_not_missing(monkeypatch):
    """The reference lacks the largest values; XGBoost would put them with the missing ones."""
    monkeypatch.setattr(matrices, "REFERENCE_ROWS", 50)
    rng = np.random.default_rng(0)
    data = np.column_stack([np.exp(4 * rng.normal(size=2000)), rng.normal(size=2000)])
    missing = rng.random(2000) < 0.3
    data[missing, 0] = np.nan
    y = np.where(missing ^ (rng.random(2000) < 0.1), 1, -1)
    model = FairProjClassifier(None, engine="xgboost", n_estimators=1).fit(data, y)
    np.testing.assert_array_equal(model.predict(data), np.where(missing, 1, -1))
    assert model.estimator_errors_[0] == pytest.approx((y != np.where(missing, 1, -1)).mean())
    assert model.predict([[3e38, 0.0]]) == -1


def test_a_category_that_the_reference_lacks(monkeypatch):
    monkeypatch.setattr(matrices, "REFERENCE_ROWS", 5)
    word = np.random.default_rng(0).choice(list("abcdefgh"), 3000, p=[0.12] * 6 + [0.14] * 2)
    word[20:][np.isin(word[20:], ["g", "h"])] = "a"
    y = np.where(word == "h", 1, -1)
    assert (y > 0).sum() > 1
    table = pd.DataFrame({"word": pd.Categorical(word)})
    model = FairProjClassifier(None, engine="xgboost", n_estimators=3).fit(table, y)
    assert (model.predict(table) == y).all()


def test_a_category_not_seen_in_training_is_none_of_those_that_a_split_names():
    table, y, _ = mixed()
    table = table[["kind"]].dropna().astype(str)
    y = np.where(table["kind"] == "k3", 1, -1)
    model = FairProjClassifier(None, engine="xgboost", n_estimators=1).fit(table, y)
    with pytest.warns(UserWarning, match="all count as missing"):
        assert model.predict(pd.DataFrame({"kind": ["new"]})) == [-1]


def test_encoded_rows_are_freed_before_the_first_round(monkeypatch):
    made, alive = [], []

    def watched_encode(self, table, encode=FeatureEncoder.fit_transform):
        matrix = encode(self, table)
        made.append(weakref.ref(matrix))
        return matrix

    def watched_fit(self, round_targets, grow=XGBoostEngine.fit):
        gc.collect()
        alive.append(made[0]() is not None)
        return grow(self, round_targets)

    monkeypatch.setattr(FeatureEncoder, "fit_transform", watched_encode)
    monkeypatch.setattr(XGBoostEngine, "fit", watched_fit)
    for model in (FairProjClassifier(), FairBoostClassifier(None)):
        made.clear()
        fit(model.set_params(engine="xgboost", n_estimators=2), *mixed())
    assert alive == [False] * 4


# Subsampling


def drawn(seed, round_number, blocks, starts, share=0.3):
    ones = np.ones(sum(blocks.lengths))
    RowDraws(share, seed, blocks, starts).drop(round_number, ones)
    return ones


def test_rows_are_drawn_by_their_place_in_the_table():
    n_rows, cuts = 100_003, [0, 1, 6, 40_000, 40_000, 70_002, 100_003]
    whole = drawn(5, 2, Blocks.whole(n_rows), [0])
    assert whole.mean() == pytest.approx(0.3, abs=0.01)
    for owned in ([0, 2, 5], [1, 3, 4], [3]):
        blocks = Blocks(tuple(owned), tuple(cuts[p + 1] - cuts[p] for p in owned), len(cuts) - 1)
        parts = [whole[cuts[p] : cuts[p + 1]] for p in owned]
        here = drawn(5, 2, blocks, [cuts[p] for p in owned])
        np.testing.assert_array_equal(here, np.concatenate(parts))
    for other in (drawn(5, 3, Blocks.whole(n_rows), [0]), drawn(6, 2, Blocks.whole(n_rows), [0])):
        assert (other == whole).mean() == pytest.approx(0.3**2 + 0.7**2, abs=0.01)


def test_random_numbers_come_from_the_seed():
    def margin(seed):
        model = FairBoostClassifier(
            None,
            engine="xgboost",
            subsample=0.5,
            max_features=0.5,
            n_estimators=5,
            validation_fraction=None,
            random_state=seed,
        )
        return fit(model).decision_function(X)

    one_column = FairBoostClassifier(None, engine="xgboost", max_features=0.2, n_estimators=20)
    trees = fit(one_column.set_params(random_state=0))._ensemble.trees
    used = [set(tree.feature[~tree.is_leaf].tolist()) for tree in trees]
    assert max(map(len, used)) == 1
    assert len(set.union(*used)) == X.shape[1]
    np.testing.assert_array_equal(margin(1), margin(1))
    assert np.abs(margin(1) - margin(2)).max() > 0.01
    assert np.abs(margin(np.random.RandomState(1)) - margin(2)).max() > 0.01


# Several workers


def in_workers(work, n_workers):
    """``work(rank)`` in threads, each of which has a communicator of its own."""
    tracker = RabitTracker(n_workers, host_ip="127.0.0.1", sortby="task", timeout=60)
    tracker.start()

    def run(rank):
        with xgb.collective.CommunicatorContext(
            **tracker.worker_args(), dmlc_timeout=60, DMLC_TASK_ID=f"w{rank}"
        ):
            return work(rank)

    with ThreadPoolExecutor(n_workers) as pool:
        results = list(pool.map(run, range(n_workers)))
    tracker.wait_for()
    return results


def share(prepared, cuts, owned):
    """Some parts of the rows, as a worker has them."""
    whole = prepared.sample
    rows = np.concatenate([np.arange(0), *(np.arange(cuts[p], cuts[p + 1]) for p in owned)])
    rows = rows.astype(np.intp)
    lengths = tuple(cuts[p + 1] - cuts[p] for p in owned)
    sample = replace(
        whole,
        X=whole.X[rows],
        y=whole.y[rows],
        weight=whole.weight[rows],
        groups=Groups(whole.groups.codes[rows], whole.groups.values),
        reduction=CollectiveReduction(),
        parts=Blocks(tuple(owned), lengths, len(cuts) - 1),
        cache={},
    )
    return replace(prepared, sample=sample)


def rows_for_workers():
    """Continuous and binned columns, categories, gaps, weights; the third group stands last."""
    rng = np.random.default_rng(5)
    table, y, _ = mixed(1501)
    table["continuous"] = rng.normal(size=len(y)) + 0.5 * y
    groups = np.where(np.arange(len(y)) >= 1300, "z", rng.choice(["x", "y"], len(y)))
    return table, y, groups, rng.integers(1, 4, len(y))


CUTS = [0, 1, 130, 700, 700, 900, 1300, 1501]
WORKERS = {
    "one": [[0, 1, 2, 3, 4, 5, 6]],
    "two": [[0, 2, 4], [1, 3, 5, 6]],
    "three": [[1, 6], [3], [0, 2, 4, 5]],  # the second has an empty part only
    "none": [[], [0, 1, 2, 3, 4, 5, 6]],
}
ON_WORKERS = {
    "projection": lambda: FairProjClassifier(epsilon=0.05, max_depth=2, votes="confidence"),
    "stumps": lambda: FairProjClassifier("demographic_parity", epsilon=0.02),
    "newton": lambda: FairBoostClassifier(
        random_state=0, subsample=0.7, max_features=0.6, validation_fraction=0.3
    ),
    "exponential": lambda: FairBoostClassifier(
        random_state=0, loss="exponential", tree_step="first_order", validation_fraction=None
    ),
}


@pytest.mark.parametrize("workers", WORKERS.values(), ids=WORKERS)
@pytest.mark.parametrize("make", ON_WORKERS.values(), ids=ON_WORKERS)
@pytest.mark.filterwarnings("ignore:no useful round", "ignore:the model says the same")
def test_workers_compute_what_one_process_computes(make, workers, monkeypatch):
    monkeypatch.setattr(matrices, "REFERENCE_ROWS", 1000)
    monkeypatch.setattr(matrices, "_GATHERED_ENTRIES", 2000)
    table, y, groups, weight = rows_for_workers()

    def estimator():
        return make().set_params(engine="xgboost", n_estimators=8)

    alone = fit(estimator(), table, y, groups, sample_weight=weight)
    prepared = estimator()._prepare(table, y, groups, weight)

    def work(rank):
        part = share(prepared, CUTS, workers[rank])
        model = estimator()
        model.n_features_in_ = prepared.n_features
        return model._fit_prepared(part)

    for model in in_workers(work, len(workers)):
        np.testing.assert_allclose(votes(model), votes(alone), rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            model.decision_function(table), alone.decision_function(table), rtol=0, atol=1e-9
        )
        assert model.certificate_.holds == alone.certificate_.holds


class LargestSeed(LocalReduction):
    """As if another worker had drawn a larger seed."""

    def max(self, values):
        return np.full_like(values, 77.0)


def test_workers_without_a_seed_agree_on_one():
    settings = LearnerSettings("newton", max_leaf_nodes=4, subsample=0.5, max_features=0.4)
    drawn_here = bind(settings, reduction=LargestSeed()).fit(targets(0))
    given = bind(replace(settings, random_state=77)).fit(targets(0))
    np.testing.assert_array_equal(drawn_here.h, given.h)


def test_the_reduction_combines_and_keeps_its_arguments():
    def work(rank):
        values = np.array([[1.0, 2.0], [3.0, -rank]]) + rank
        reduction = CollectiveReduction()
        before = values.copy()
        results = reduction.sum(values), reduction.max(values), reduction.sum(values[:, ::-1])
        np.testing.assert_array_equal(values, before)
        return results

    for total, largest, turned in in_workers(work, 3):
        np.testing.assert_array_equal(total, [[6.0, 9.0], [12.0, 0.0]])
        np.testing.assert_array_equal(largest, [[3.0, 4.0], [5.0, 0.0]])
        np.testing.assert_array_equal(turned, total[:, ::-1])


def test_the_reference_is_some_of_the_rows(monkeypatch):
    monkeypatch.setattr(matrices, "REFERENCE_ROWS", 300)
    reference = matrices._reference_rows(samples.make_sample(X, Y, None, None))
    assert reference.shape == (300, X.shape[1])
    assert {tuple(row) for row in reference} <= {tuple(row) for row in X.astype(np.float32)}
    monkeypatch.setattr(matrices, "_REFERENCE_ENTRIES", 100 * X.shape[1])
    assert len(matrices._reference_rows(samples.make_sample(X, Y, None, None))) == 100


# Batches


class Batches:
    """A matrix that is read in batches."""

    def __init__(self, matrix, size=300):
        self._matrix, self._size = matrix.astype(np.float32), size
        self.shape = matrix.shape
        self.fails = False

    def __len__(self):
        return len(self._matrix)

    def batches(self):
        for begin in range(0, len(self), self._size):
            if self.fails and begin:
                raise OSError("the disk is gone")
            yield self._matrix[begin : begin + self._size]

    def rows(self, rows):
        return self._matrix[rows]


@pytest.mark.parametrize(
    "make",
    [
        lambda: FairProjClassifier(epsilon=0.05, max_depth=3),
        lambda: FairBoostClassifier(validation_fraction=None, subsample=0.6, random_state=0),
    ],
)
@pytest.mark.parametrize("page_entries", [1000, 2000, 1 << 20])
def test_batches_give_the_same_trees_and_leave_no_files(make, page_entries, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(matrices, "_PAGE_ENTRIES", page_entries)
    data, y, groups = mixed()
    model, alone = (make().set_params(engine="xgboost", n_estimators=6) for _ in range(2))
    fit(alone, data, y, groups)
    prepared = model._prepare(data, y, groups)
    batches = Batches(prepared.sample.X)
    files = []

    def watched_fit(self, round_targets, grow=XGBoostEngine.fit):
        files.append(len(list(tmp_path.glob("fairproj-*/*"))))
        return grow(self, round_targets)

    monkeypatch.setattr(XGBoostEngine, "fit", watched_fit)
    model._fit_prepared(replace(prepared, sample=replace(prepared.sample, X=batches, cache={})))
    gc.collect()
    assert min(files) > 0
    assert not list(tmp_path.iterdir())
    np.testing.assert_allclose(votes(model), votes(alone), rtol=0, atol=1e-9)
    matrix = model.to_matrix(data)
    np.testing.assert_array_equal(
        model._ensemble.margin(Batches(matrix)), alone._ensemble.margin(matrix)
    )


def test_no_files_stay_when_a_batch_cannot_be_read(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = FairProjClassifier(None, engine="xgboost")
    prepared = model._prepare(X, Y, None)
    batches = Batches(prepared.sample.X)
    batches.fails = True
    with pytest.raises(OSError, match="the disk is gone"):
        model._fit_prepared(replace(prepared, sample=replace(prepared.sample, X=batches)))
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_worker_without_batches():
    bins = matrices.find_bins(samples.make_sample(X, Y, None, None), {}, 255, 1)
    assert matrices.bin_rows(Batches(X[:0]), bins).num_row() == 0


# Refusals


def test_sparse_matrices_are_refused():
    model = FairProjClassifier(engine="xgboost")
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        fit(model, sparse.csr_matrix(X))


@pytest.mark.parametrize("value", [1e39, -1e300])
def test_numbers_that_no_32_bit_float_holds_are_refused(value):
    data = X.copy()
    data[3, 1] = value
    words = r"X holds a number beyond 3\.4e38.*; rescale the column, or use engine='lightgbm'"
    with pytest.raises(ValueError, match=words):
        fit(FairProjClassifier(engine="xgboost"), data)
    model = fit(FairProjClassifier(engine="xgboost", n_estimators=2))
    with pytest.raises(ValueError, match=words):
        model.predict(data)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_depth": 3}, "engine_params has 'max_depth', which engine='xgboost' gets"),
        ({"learning_rate": 0.1}, "engine_params has 'learning_rate'"),
        ({"min_child_weight": 3}, "engine_params has 'min_child_weight'"),
        ({"objective": "binary:hinge"}, "engine_params has 'objective'"),
        ({"no_such": 3}, r"names that XGBoost does not know: .*no_such"),
        ({"max_delta_step": "a"}, r"engine_params=\{'max_delta_step': 'a'\} is refused by XGBoost"),
        ({"device": "abacus"}, "is refused by XGBoost"),
    ],
)
def test_parameters_of_xgboost_that_are_refused(given, words):
    with pytest.raises(ValueError, match=words) as refusal:
        fit(FairBoostClassifier(engine="xgboost", engine_params=given))
    assert "\n" not in str(refusal.value)


def test_parameters_of_xgboost_that_are_used():
    usual = {"engine": "xgboost", "n_estimators": 5, **FEW}
    plain = fit(FairBoostClassifier(None, **usual))
    pruned = fit(FairBoostClassifier(None, engine_params={"gamma": 50.0}, **usual))
    gains = [tree.gain[~tree.is_leaf].min() for tree in plain._ensemble.trees]
    assert min(gains) < 50
    assert all((tree.gain[~tree.is_leaf] > 50).all() for tree in pruned._ensemble.trees)
    apart = {"interaction_constraints": "[[0], [1], [2], [3], [4]]"}
    model = fit(FairBoostClassifier(None, engine_params=apart, **usual))
    for trees, most in ((model._ensemble.trees, 1), (plain._ensemble.trees, 2)):
        assert max(len(set(tree.feature[~tree.is_leaf].tolist())) for tree in trees) == most


def test_categories_have_no_order_to_be_monotonic_in():
    with pytest.raises(
        ValueError, match="monotonic_cst restricts column 3, which holds categories"
    ):
        fit(FairBoostClassifier(engine="xgboost", monotonic_cst={"kind": 1}), *mixed())


def test_without_xgboost_it_says_what_to_install(monkeypatch, boosted, tmp_path):
    boosted["newton"].save(tmp_path / "m")
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(ImportError, match=r"engine='xgboost' needs .* 'fairproj\[xgboost\]'"):
        fit(FairProjClassifier(engine="xgboost"))
    loaded = load(tmp_path / "m")
    with pytest.raises(ImportError, match="pip install"):
        loaded.predict(mixed()[0])


# Hostile records


SAVED_FACTS = {
    "learner_votes": "newton",
    "link_scale": 1.0,
    "classes": np.array([-1, 1]),
    "n_features": 4,
    "categories": {3: list("abcdefgh")},
}


@pytest.fixture
def payload(boosted):
    return copy.deepcopy(boosted["newton"]._ensemble.to_payload())


def rebuild(payload, **facts):
    n_trees = len(payload["trees"]) if isinstance(payload.get("trees"), list) else 1
    saved = Saved(votes=[0.1] * n_trees, **SAVED_FACTS | facts)
    return find_engine("xgboost").from_payload(payload, saved)


def test_a_record_is_the_tree(boosted):
    for tree in boosted["newton"]._ensemble.trees:
        record = json.loads(json.dumps(to_record(tree)))
        again = from_record(record, 0, 4, {3: 8})
        for name in ("left", "right", "feature", "threshold", "missing_left", "gain", "cover", "h"):
            assert getattr(again, name).dtype == getattr(tree, name).dtype
            assert getattr(again, name).tobytes() == getattr(tree, name).tobytes()
        assert again.categories == tree.categories


def first_split(tree, *, by_category):
    nodes = [node for node, _ in tree["categories"]]
    splits = [node for node, left in enumerate(tree["left"]) if left >= 0]
    return next(node for node in splits if (node in nodes) == by_category)


HOSTILE = [
    (lambda t: t.pop("gain"), "must hold left, right"),
    (lambda t: t.update(more=1), "must hold left, right"),
    (lambda t: t.update(left=[]), "has 0 nodes"),
    (lambda t: t.update(left="abc"), "has 0 nodes"),
    (lambda t: t["h"].append(0.0), "h of tree 0 must be a list with an entry for each"),
    (lambda t: t.update(gain=None), "gain of tree 0 must be a list"),
    (lambda t: t["left"].__setitem__(0, 0), "a child comes before its parent"),
    (lambda t: t["left"].__setitem__(0, t["right"][0]), "a node does not have one parent"),
    (lambda t: t["left"].__setitem__(0, -1), "a node has one child"),
    (lambda t: t["left"].__setitem__(0, -2), "left of tree 0 must be from -1 to"),
    (lambda t: t["left"].__setitem__(0, len(t["left"])), "left of tree 0 must be from -1 to"),
    (lambda t: t["left"].__setitem__(0, 10**30), "left of tree 0 must be from -1 to"),
    (lambda t: t["left"].__setitem__(0, 1.0), "left of tree 0 must hold integers"),
    (lambda t: t["left"].__setitem__(0, True), "left of tree 0 must hold integers"),
    (lambda t: t["feature"].__setitem__(0, 4), "feature of tree 0 must be from 0 to 3"),
    (lambda t: t["feature"].__setitem__(0, -1), "feature of tree 0 must be from 0 to 3"),
    (lambda t: t["threshold"].__setitem__(0, 1e39), "a number that no 32-bit float holds"),
    (lambda t: t["threshold"].__setitem__(0, 10**400), "a number that no 32-bit float holds"),
    (lambda t: t["threshold"].__setitem__(0, float("nan")), "a number that no 32-bit float holds"),
    (lambda t: t["threshold"].__setitem__(0, "1"), "threshold of tree 0 must hold numbers"),
    (lambda t: t["h"].__setitem__(-1, float("inf")), "a number that no 32-bit float holds"),
    (lambda t: t["h"].__setitem__(-1, 3e38), None),
    (lambda t: t["missing_left"].__setitem__(0, 1), "missing_left of tree 0 must hold booleans"),
    (lambda t: t.update(categories=[]), "must split the columns of categories by codes"),
    (lambda t: t.update(categories=[[0]]), "pairs of a node and a list of codes"),
    (lambda t: t.update(categories=3), "pairs of a node and a list of codes"),
    (lambda t: t["categories"].append(t["categories"][0]), "each node once, in order"),
    (lambda t: t["categories"].append([10**30, [1]]), "must split the columns of categories"),
    (lambda t: t["categories"][0].__setitem__(1, []), "impossible codes at node"),
    (lambda t: t["categories"][0].__setitem__(1, [8]), "impossible codes at node"),
    (lambda t: t["categories"][0].__setitem__(1, [-1]), "impossible codes at node"),
    (lambda t: t["categories"][0].__setitem__(1, [2, 1]), "impossible codes at node"),
    (lambda t: t["categories"][0].__setitem__(1, [1, 1]), "impossible codes at node"),
    (lambda t: t["categories"][0].__setitem__(1, [1.0]), "pairs of a node and a list of codes"),
    (
        lambda t: t["feature"].__setitem__(first_split(t, by_category=False), 3),
        "must split the columns of categories by codes",
    ),
    (
        lambda t: t["feature"].__setitem__(first_split(t, by_category=True), 0),
        "must split the columns of categories by codes",
    ),
]


@pytest.mark.parametrize(("damage", "words"), HOSTILE)
def test_what_is_no_tree_is_refused(payload, damage, words):
    trees = payload["trees"]
    trees[0] = next(tree for tree in trees if tree["categories"])
    damage(trees[0])
    if words is None:
        assert np.isfinite(rebuild(payload).margin(np.zeros((1, 4)))).all()
        return
    with pytest.raises(ValueError, match=re.escape(words)):
        rebuild(payload)


def test_what_holds_no_trees_is_refused(payload):
    for bad in ({}, {"trees": None}, {"trees": {}}, {**payload, "more": 1}):
        with pytest.raises(ValueError, match="must hold a list of trees and nothing else"):
            rebuild(bad)
    for bad in ([3], [None], [[]]):
        with pytest.raises(ValueError, match="tree 0 must hold left"):
            rebuild({"trees": bad})
    with pytest.raises(ValueError, match="0 trees saved for 0 votes"):
        rebuild({"trees": []})


def test_predictions_are_bounded_by_the_kind_of_votes(payload):
    with pytest.raises(ValueError, match="must predict -1 or 1"):
        rebuild(payload, learner_votes="discrete")
    with pytest.raises(ValueError, match=r"tree \d+ predicts beyond 1"):
        rebuild(payload, learner_votes="confidence")
    for tree in payload["trees"]:
        tree["h"][-1] = 3.4e38
    with pytest.raises(ValueError, match="add up to more than a 32-bit float holds"):
        rebuild(payload, link_scale=100.0)


def chain(n_splits):
    """A tree whose every split has a leaf to the left."""
    n_nodes = 2 * n_splits + 1
    left = [node + 1 if node % 2 == 0 and node < n_nodes - 1 else -1 for node in range(n_nodes)]
    right = [node + 1 if node >= 0 else -1 for node in left]
    numbers = [float(node % 7) for node in range(n_nodes)]
    return {
        "left": left,
        "right": right,
        "feature": [0] * n_nodes,
        "threshold": numbers,
        "missing_left": [False] * n_nodes,
        "gain": numbers,
        "cover": [1.0] * n_nodes,
        "h": numbers,
        "categories": [],
    }


def test_trees_have_at_most_so_many_levels():
    with pytest.raises(ValueError, match=r"deeper than 4,096 levels; set max_depth below that"):
        rebuild({"trees": [chain(MOST_LEVELS)]})
    model = rebuild({"trees": [chain(MOST_LEVELS - 1)]})
    rows = np.zeros((3, 4))
    assert np.isfinite(model.margin(rows)).all()
    assert np.isfinite(model.booster.predict(xgb.DMatrix(rows), pred_contribs=True)).all()


def test_mutants_are_refused_or_answer(payload):
    """A crash would end the tests; benchmarks/safety does the same with whole files."""
    rng, rows = random.Random(0), mixed(30, seed=8)[0]
    rows = np.column_stack([rows[["a", "b", "gaps"]], rows["kind"].cat.codes])
    values = [-1, 0, 1, 2, 7, 10**9, 1e38, -0.5, True, None, "1", [], [[0, [1]]]]
    ends = {"refused": 0, "answered": 0}
    payload["trees"] = payload["trees"][:2]
    for _ in range(120):
        mutant = copy.deepcopy(payload)
        tree = rng.choice(mutant["trees"])
        entries = tree[rng.choice(sorted(tree))]
        if entries:
            entries[rng.randrange(len(entries))] = rng.choice(values)
        try:
            model = rebuild(mutant)
        except ValueError:
            ends["refused"] += 1
            continue
        assert np.isfinite(model.margin(rows)).all()
        with suppress(xgb.core.XGBoostError):  # it may refuse, and must not crash
            model.booster.predict(xgb.DMatrix(rows, nthread=1), pred_contribs=True)
        ends["answered"] += 1
    assert min(ends.values()) > 15


def test_the_package_imports_xgboost_in_one_file():
    folder = Path(matrices.__file__).parent
    importing = [
        p.name for p in folder.glob("*.py") if re.search(r"^\s*import xgboost", p.read_text(), re.M)
    ]
    assert importing == ["imports.py"]
