"""Splits, the frontier, and the search for a model that meets a target."""

import pickle
import re
import warnings
from itertools import product
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
from conftest import check_or_skip
from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj import constraints as constraints_module
from fairproj.baselines import ExponentiatedGradient, Reweighing, ThresholdOptimizer
from fairproj.boosting import losses
from fairproj.constraints import Rate, Statistic, register_statistic
from fairproj.data import sample as sample_module
from fairproj.data.columns import take_rows
from fairproj.data.encoder import FeatureEncoder
from fairproj.datasets import load_german
from fairproj.engines import base as engines
from fairproj.engines import register_engine
from fairproj.engines.base import LearnerSettings, Targets
from fairproj.engines.lightgbm import LightGBMTrees, engine
from fairproj.estimators.base import BoostedClassifier
from fairproj.inference import gap_upper_bound
from fairproj.inference.differences import Pair, difference_bound
from fairproj.metrics import equal_opportunity_difference
from fairproj.metrics.gaps import cell_counts
from fairproj.selection import (
    FairStratifiedKFold,
    Frontier,
    GapSearchCV,
    NoSolutionFoundError,
    fair_train_test_split,
    fairness_frontier,
    splits,
)
from fairproj.selection import search as search_module
from fairproj.selection.fits import Fold, SearchData
from population import make_population


def sample(n, seed=0):
    """A group that fares worse under plain boosting, and a feature that tells the groups apart."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n)
    merit = rng.normal(size=n)
    X = np.column_stack([merit + 0.5 * rng.normal(size=n), groups]).round(1)
    y = np.where(merit + 1.0 * groups + 0.5 * rng.normal(size=n) > 0.6, 1, -1)
    return X, y, groups


# A gap out of reach of ten rounds is no surprise here.
pytestmark = [
    pytest.mark.filterwarnings("ignore:no useful round"),
    pytest.mark.filterwarnings("ignore:the model says the same"),
]

X, Y, GROUPS = sample(1500)
PAPER = FairProjClassifier(n_estimators=10)
BOOST = FairBoostClassifier(
    n_estimators=10, max_leaf_nodes=8, validation_fraction=None, random_state=0
)
BOTH = pytest.mark.parametrize("estimator", [PAPER, BOOST], ids=["paper", "boost"])


def parameter_of(estimator):
    return "epsilon" if isinstance(estimator, FairProjClassifier) else "max_gap"


# Splits


@pytest.mark.parametrize("shuffle", [True, False])
def test_folds_have_the_same_share_of_every_cell(shuffle):
    cells = 2 * GROUPS + (Y > 0)
    whole = np.bincount(cells) / len(cells)
    tested = []
    for train, test in FairStratifiedKFold(4, shuffle=shuffle).split(X, Y, GROUPS):
        np.testing.assert_allclose(np.bincount(cells[test]) / len(test), whole, atol=2 / len(test))
        assert not set(train) & set(test)
        tested += test.tolist()
    assert sorted(tested) == list(range(len(Y)))


def test_splits_name_the_cell_that_is_too_small():
    groups = np.array(["a"] * 1498 + ["b"] * 2)
    words = r"group 'b' with label -?1 has 1 row, and n_splits=5 needs 5"
    y = np.append(Y[:-2], [1, -1])
    with pytest.raises(ValueError, match=words):
        list(FairStratifiedKFold(5).split(X, y, groups))
    with pytest.raises(ValueError, match="a split needs 2"):
        fair_train_test_split(X, y, groups)
    with pytest.raises(ValueError, match="need the groups"):
        list(FairStratifiedKFold().split(X, y, None))


def test_train_and_test_parts():
    parts = fair_train_test_split(X, Y, GROUPS, np.arange(len(Y)), test_size=0.2, random_state=1)
    _, X2, y1, y2, g1, g2, _, i2 = parts
    assert len(X2) == len(y2) == len(g2) == 300
    np.testing.assert_array_equal(X[i2], X2)
    for label in (-1, 1):
        for group in (0, 1):
            share = np.mean((label == Y) & (group == GROUPS))
            assert np.mean((y1 == label) & (g1 == group)) == pytest.approx(share, abs=0.002)
    again = fair_train_test_split(X, Y, GROUPS, np.arange(len(Y)), test_size=0.2, random_state=1)
    np.testing.assert_array_equal(again[-1], i2)


def test_a_split_keeps_every_cell_on_both_sides():
    groups = np.where(np.arange(len(Y)) < 4, "few", "many")
    y = np.where(np.arange(len(Y)) < 4, np.array([1, -1] * 750), Y)
    with pytest.raises(ValueError, match="the test part has no row of group 'few'"):
        fair_train_test_split(X, y, groups, test_size=0.1, random_state=0)
    with pytest.raises(ValueError, match="test_size=2 does not split"):
        fair_train_test_split(X, Y, GROUPS, test_size=2)
    with pytest.raises(ValueError, match="n_splits must be a number of folds, 2 or more"):
        list(FairStratifiedKFold("5").split(X, Y, GROUPS))


def test_splits_inside_scikit_learn_with_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(PAPER).set_fit_request(sensitive_features=True)
        scores = cross_validate(
            model,
            X,
            Y,
            cv=FairStratifiedKFold(3),
            params={"sensitive_features": GROUPS, "groups": GROUPS},
            error_score="raise",
        )
    assert len(scores["test_score"]) == 3


# Prepared rows

WEIGHT = np.random.default_rng(1).integers(4, size=len(Y)) / 3.0  # some of them zero
WEIGHT[0] = 2.3  # the largest, in one part of a split only


def mixed_frame():
    """Categories, one of them in two rows only, numbers, and missing values of both."""
    rng, n = np.random.default_rng(2), len(Y)
    frame = pd.DataFrame(X.copy(), columns=["merit", "tells"])
    frame["place"] = pd.Categorical(rng.choice(["north", "south", "west"], size=n))
    frame.loc[[0, 1], "place"] = np.nan
    frame["place"] = frame["place"].cat.add_categories("rare")
    frame.loc[[2, 3], "place"] = "rare"
    frame["job"] = np.where(rng.random(n) < 0.1, None, rng.choice(["clerk", "cook"], size=n))
    frame.loc[rng.random(n) < 0.1, "merit"] = np.nan
    return frame


def with_sex():
    return mixed_frame().assign(sex=np.where(GROUPS, "f", "m"))


INPUTS = {
    "array": (X, {}, {"sensitive_features": GROUPS}),
    "frame": (mixed_frame(), {}, {"sensitive_features": GROUPS}),
    "columns": (with_sex(), {"sensitive_columns": "sex"}, {}),
    "positive": (mixed_frame(), {"pos_label": -1}, {"sensitive_features": GROUPS}),
    "weights": (mixed_frame(), {}, {"sensitive_features": GROUPS, "sample_weight": WEIGHT}),
    "sparse": (sparse.csr_array(X), {"max_depth": 2}, {"sensitive_features": GROUPS}),
    "held out": (
        X,
        {"validation_fraction": 0.2, "random_state": 0},
        {"sensitive_features": GROUPS},
    ),
    "share": (X, {"selection_rate": 0.2}, {"sensitive_features": GROUPS}),
    "threshold": (
        mixed_frame(),
        {"threshold": 0.6, "learning_rate": 0.5},
        {"sensitive_features": GROUPS},
    ),
    "estimator": (
        pd.DataFrame(X, columns=["merit", "tells"]),
        {"estimator": DecisionTreeClassifier(max_depth=1, random_state=0)},
        {"sensitive_features": GROUPS, "sample_weight": WEIGHT},
    ),
}


@pytest.mark.filterwarnings("ignore:some groups have fewer")
@pytest.mark.parametrize(
    ("estimator", "kind"),
    [(BOOST, kind) for kind in INPUTS]
    + [(PAPER, kind) for kind in INPUTS if kind not in ("held out", "share", "threshold")],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_prepared_rows_give_what_raw_rows_give(estimator, kind):
    """Each fold fitted from raw data, with the estimator's own fit and predict."""
    features, settings, given = INPUTS[kind]
    if kind == "estimator" and estimator is BOOST:
        settings = settings | {"tree_step": "first_order", "max_leaf_nodes": 31}
    estimator, name = clone(estimator).set_params(**settings), parameter_of(estimator)
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    search = GapSearchCV(estimator, 1.0, param_values=[0.05, 0.3], cv=folds)
    search.fit(features, Y, **given)
    data = SearchData.of(estimator, name, features, Y, **given)
    assert data.prepared is not None
    sign = -1 if kind == "positive" else 1
    for number, (train, test) in enumerate(folds):
        fold = Fold(estimator, data, (train, test))
        for at, value in enumerate([0.05, 0.3]):
            raw = clone(estimator).set_params(**{name: value})
            raw.fit(take_rows(features, train), Y[train], **{n: v[train] for n, v in given.items()})
            rows = take_rows(features, test)
            fit = fold.fit(**{name: value})
            margin = fit.model.decision_function(rows)
            np.testing.assert_array_equal(margin, raw.decision_function(rows))
            predicted = raw.predict(rows)
            np.testing.assert_array_equal(fit.predicted, predicted == 1)
            np.testing.assert_array_equal(fit.probability(), raw.predict_proba(rows)[:, 1])
            weight = given["sample_weight"][test] if "sample_weight" in given else None
            score = accuracy_score(Y[test], predicted, sample_weight=weight)
            gap = oracles.gap(
                "equal_opportunity", sign * Y[test], sign * predicted, GROUPS[test], weight
            )
            assert search.cv_results_[f"split{number}_test_score"][at] == pytest.approx(score)
            assert search.cv_results_[f"split{number}_test_gap"][at] == pytest.approx(gap)
    whole = clone(estimator).set_params(**search.best_params_).fit(features, Y, **given)
    np.testing.assert_array_equal(
        search.decision_function(features), whole.decision_function(features)
    )


def count_calls(monkeypatch, owners, name):
    """The calls of a function, by whichever module's name it is called."""
    calls = []
    original = getattr(owners[0], name)

    def counted(*arguments, **more):
        calls.append(arguments)
        return original(*arguments, **more)

    for owner in owners:
        assert getattr(owner, name) is original
        monkeypatch.setattr(owner, name, counted)
    return calls


@BOTH
@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc"])
def test_rows_are_checked_and_encoded_once_and_binned_once_a_fold(monkeypatch, estimator, scoring):
    checks = count_calls(monkeypatch, [sample_module, splits], "check_labels")
    groups = count_calls(monkeypatch, [sample_module, splits], "check_groups")
    encodings = count_calls(monkeypatch, [FeatureEncoder], "fit_transform")
    more = count_calls(monkeypatch, [FeatureEncoder], "transform")
    binnings = count_calls(monkeypatch, [engine], "bin_rows")
    fits = count_calls(monkeypatch, [type(estimator)], "_fit_prepared")
    margins = count_calls(monkeypatch, [BoostedClassifier], "_margin")
    search = GapSearchCV(estimator, 1.0, param_values=[0.05, 0.1, 0.3], cv=4, scoring=scoring)
    search.fit(mixed_frame(), Y, sensitive_features=GROUPS, sample_weight=WEIGHT)
    assert len(fits) == 4 * 3 + 1
    assert [len(checks), len(groups), len(encodings), len(more)] == [1, 1, 1, 0]
    assert len(binnings) == 4 + 1
    assert len(margins) == 4 * 3  # the test rows of each candidate, once


@pytest.mark.filterwarnings("ignore:some groups have fewer")
@pytest.mark.parametrize(
    ("random_state", "expected"),
    [(0, 4 + 1), (np.int64(0), 4 + 1), (np.random.RandomState(0), 4 * 3 + 1), (None, 4 + 1)],
    ids=["int", "numpy", "RandomState", "None"],
)
def test_splits_with_the_same_seed_are_binned_once_a_fold(monkeypatch, random_state, expected):
    binnings = count_calls(monkeypatch, [engine], "bin_rows")
    estimator = clone(BOOST).set_params(validation_fraction=0.2, random_state=random_state)
    search = GapSearchCV(estimator, 1.0, param_values=[0.05, 0.1, 0.3], cv=4)
    search.fit(X, Y, sensitive_features=GROUPS, sample_weight=WEIGHT)
    assert len(binnings) == expected


@pytest.mark.parametrize(
    ("name", "values"), [("validation_fraction", [0.3, 0.5]), ("random_state", [0, 1])]
)
def test_other_splits_are_not_those_of_the_fit_before(name, values):
    estimator = FairBoostClassifier(
        n_estimators=10, max_depth=3, validation_fraction=0.3, random_state=0
    )
    data = SearchData.of(estimator, name, X, Y, sensitive_features=GROUPS)
    train, test = next(FairStratifiedKFold(2).split(X, Y, GROUPS))
    fold = Fold(estimator, data, (train, test))
    margins = []
    for value in [*values, values[0]]:
        raw = clone(estimator).set_params(**{name: value})
        raw.fit(X[train], Y[train], sensitive_features=GROUPS[train])
        margins.append(fold.fit(**{name: value}).model.decision_function(X))
        np.testing.assert_array_equal(margins[-1], raw.decision_function(X))
    assert (margins[0] != margins[1]).any(), "the split must matter"


def test_binned_rows_belong_to_the_held_out_rows_they_were_binned_with():
    """Held-out rows of the same number, in an order in which none must be taken for another."""
    training = sample_module.make_sample(X[:500], Y[:500], GROUPS[:500], None)
    rows = [np.arange(500, 800), np.arange(800, 1100)]
    held_out = [sample_module.make_sample(X[r], Y[r], GROUPS[r], None) for r in rows]
    targets = Targets(-Y[:500] / 500, np.full(500, 1 / 500))
    predicted = []
    for watched in (None, held_out[0], held_out[1], held_out[0], None):
        trees = LightGBMTrees().bind(LearnerSettings("discrete"), training, watched)
        fit = trees.fit(targets)
        stump = trees.ensemble([fit.learner], [1.0], 2.0)
        np.testing.assert_array_equal(fit.h, stump.margin(X[:500]))
        assert (fit.held_out is None) == (watched is None)
        if watched is not None:
            np.testing.assert_array_equal(fit.held_out, stump.margin(watched.X))
            predicted.append(fit.held_out)
    assert (predicted[0] != predicted[1]).any(), "the rows must matter"


@pytest.mark.parametrize("name", ["max_bins", "sensitive_columns", "pos_label"])
def test_rows_are_prepared_anew_where_the_parameter_decides_how(name):
    features, y = np.column_stack([GROUPS, GROUPS[::-1], X]), (Y > 0).astype(int)
    estimator = FairBoostClassifier(n_estimators=3, validation_fraction=None, sensitive_columns=0)
    found = fairness_frontier(
        estimator,
        features,
        y,
        param_name=name,
        param_values=[0, 1] if name != "max_bins" else [2],
        cv=2,
    )
    for _, row in found.fits.iterrows():
        train, test = list(FairStratifiedKFold(2).split(X, y, GROUPS))[int(row["fold"])]
        raw = clone(estimator).set_params(**{name: int(row[name])}).fit(features[train], y[train])
        assert row["accuracy"] == pytest.approx(raw.score(features[test], y[test]))


def test_a_value_missing_in_a_test_part_only_is_replaced_by_the_median():
    """`predict` refuses it, but which rows a search holds out is not the user's choice."""
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    features = X.copy()
    features[folds[0][1][0], 0] = np.nan
    raw = clone(BOOST).fit(
        features[folds[0][0]], Y[folds[0][0]], sensitive_features=GROUPS[folds[0][0]]
    )
    with pytest.raises(ValueError, match="missing values in column 0, which had none"):
        raw.predict(features[folds[0][1]])
    search = GapSearchCV(BOOST, 0.9, cv=folds, param_values=[BOOST.max_gap])
    search.fit(features, Y, sensitive_features=GROUPS)
    matrix = raw.to_matrix(features[folds[0][1]], missing="score")
    accuracy = np.mean(raw.predict_matrix(matrix)[0] == Y[folds[0][1]])
    one_row = 1 / len(folds[0][1])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(accuracy, abs=1.01 * one_row)


def test_parts_of_a_split_without_weight_are_refused():
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    weight = np.zeros(len(Y))
    weight[folds[0][0]] = 1.0
    with pytest.raises(ValueError, match="rows of sample_weight zero only"):
        GapSearchCV(BOOST, 0.9, cv=folds).fit(X, Y, sensitive_features=GROUPS, sample_weight=weight)


# The frontier


@pytest.fixture(scope="module", params=[PAPER, BOOST], ids=["paper", "boost"])
def frontier(request):
    return request.param, fairness_frontier(
        request.param, X, Y, sensitive_features=GROUPS, param_values=[0.3, 0.02, 0.1], cv=3
    )


def test_every_number_is_that_of_a_plain_loop(frontier):
    estimator, found = frontier
    name = parameter_of(estimator)
    assert found.parameter == name
    assert found.fits["met"].notna().all() == (estimator is BOOST)
    assert len(found.fits) == 9
    folds = list(FairStratifiedKFold(3).split(X, Y, GROUPS))
    for _, row in found.fits.iterrows():
        train, test = folds[int(row["fold"])]
        model = clone(estimator).set_params(**{name: row[name]})
        model.fit(X[train], Y[train], sensitive_features=GROUPS[train])
        predicted, probability = model.predict(X[test]), model.predict_proba(X[test])[:, 1]
        scores = {
            "accuracy": accuracy_score(Y[test], predicted),
            "balanced_accuracy": get_scorer("balanced_accuracy")(model, X[test], Y[test]),
            "roc_auc": sklearn.metrics.roc_auc_score(Y[test], probability),
            "log_loss": sklearn.metrics.log_loss(Y[test], probability),
        }
        gaps = {
            gap: oracles.gap(gap, Y[test], predicted, GROUPS[test])
            for gap in ("demographic_parity", "equal_opportunity", "equalized_odds")
        }
        for column, value in {**scores, **gaps}.items():
            assert row[column] == pytest.approx(value)
        if estimator is BOOST:
            assert row["met"] == model.certificate_.met
    means = found.fits.groupby(name)["accuracy"]
    np.testing.assert_allclose(found.frame["accuracy"], means.mean())
    np.testing.assert_allclose(found.frame["accuracy_se"], means.std() / np.sqrt(3))


@pytest.mark.parametrize("parameter", ["max_depth", "max_bins", "n_estimators"])
def test_sharing_bins_never_changes_a_result(parameter):
    """What the binned data or the trees depend on is not shared."""
    found = fairness_frontier(
        PAPER, X, Y, sensitive_features=GROUPS, param_values=[2, 5], param_name=parameter, cv=2
    )
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    for _, row in found.fits.iterrows():
        train, test = folds[int(row["fold"])]
        model = clone(PAPER).set_params(**{parameter: int(row[parameter])})
        model.fit(X[train], Y[train], sensitive_features=GROUPS[train])
        assert row["accuracy"] == pytest.approx(model.score(X[test], Y[test]))


def test_sensitive_columns_a_list_of_splits_and_one_value():
    frame = pd.DataFrame(X, columns=["merit", "tells"]).assign(sex=GROUPS)
    model = FairProjClassifier(n_estimators=5, sensitive_columns="sex")
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    by_column = fairness_frontier(model, frame, Y, param_values=0.1, cv=folds)
    plain = fairness_frontier(
        clone(model).set_params(sensitive_columns=None),
        X,
        Y,
        sensitive_features=GROUPS,
        param_values=0.1,
        cv=folds,
    )
    pd.testing.assert_frame_equal(
        by_column.fits.drop(columns="seconds"), plain.fits.drop(columns="seconds")
    )


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_jobs():
    one, two = (
        fairness_frontier(
            PAPER, X, Y, sensitive_features=GROUPS, param_values=values, cv=3, n_jobs=jobs
        ).fits.drop(columns="seconds")
        for values, jobs in (([0.3, 0.02, 0.1], 1), ([0.1, 0.3, 0.02], 2))
    )
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.parametrize("weight", [None, np.full(len(Y), 3.0)])
def test_equal_weights_stay_one_number_in_folds_and_in_other_processes(weight):
    data = SearchData.of(PAPER, "epsilon", X, Y, GROUPS, weight)
    fold = data.take(np.arange(0, len(Y), 2))
    for part in (data, fold, pickle.loads(pickle.dumps(fold))):
        for sample in (part.sample, part.prepared.sample):
            assert sample.has_one_weight
            assert sample.weight.shape == sample.y.shape
            assert sample.weight[-1] == (1.0 if weight is None else 1.5)


def test_other_weights_are_the_same_in_other_processes():
    weight = np.linspace(0.5, 1.5, len(Y))
    sample = SearchData.of(PAPER, "epsilon", X, Y, GROUPS, weight).sample
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(sample)).weight, sample.weight)


# What the user registered


@pytest.fixture
def registered():
    """A statistic, an engine and a loss of the user, until the end of the test."""
    registries = (
        constraints_module.RATES,
        constraints_module.STATISTICS,
        engines._REGISTRY,
        losses._REGISTRY,
    )
    before = [dict(registry) for registry in registries]

    class OwnTrees(LightGBMTrees):
        name = "own_trees"

    rate = Rate("own_rate", "negative", "correct")
    register_statistic(Statistic("own_parity", (rate,), "gap of the true negative rates"))
    register_engine(OwnTrees())
    losses.register_loss("own_loss", losses.ExponentialLoss())
    yield
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)


OWN = {"constraints": "own_parity", "engine": "own_trees", "loss": "own_loss"}
USUAL = {
    "constraints": "false_positive_rate_parity",  # one less the own rate: the same gap
    "engine": "lightgbm",
    "loss": "exponential",
}


@pytest.mark.slow
@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("rule", ["one_se", "upper"])
def test_searches_in_workers_know_what_is_registered(name, rule):
    own, usual = (
        GapSearchCV(
            clone(BOOST).set_params(**{name: value}),
            1.0,
            selection_rule=rule,
            param_values=[0.05, 0.3],
            cv=2,
            n_jobs=2,
        ).fit(X, Y, sensitive_features=GROUPS)
        for value in (OWN[name], USUAL[name])
    )
    for measured in ("mean_test_score", "mean_test_gap", "gap_bound"):
        np.testing.assert_allclose(own.cv_results_[measured], usual.cv_results_[measured])
    np.testing.assert_allclose(own.decision_function(X), usual.decision_function(X))


@pytest.mark.slow
def test_rates_registered_alone_are_known_in_workers(registered):
    """A constraint may name a rate only where it is used."""

    class Named(FairBoostClassifier):
        def _fit_prepared(self, *arguments):
            self.constraints = constraints_module.RateParity("own_rate")
            return super()._fit_prepared(*arguments)

    given = {"sensitive_features": GROUPS, "param_values": [0.05, 0.3], "cv": 2, "n_jobs": 2}
    named = fairness_frontier(Named(**BOOST.get_params()), X, Y, **given)
    usual = fairness_frontier(clone(BOOST).set_params(constraints="own_parity"), X, Y, **given)
    pd.testing.assert_frame_equal(
        named.fits.drop(columns="seconds"), usual.fits.drop(columns="seconds")
    )


@pytest.mark.slow
def test_frontiers_in_workers_have_what_is_registered_at_the_time(registered):
    given = {"sensitive_features": GROUPS, "param_values": [0.05, 0.3], "cv": 2, "n_jobs": 2}
    frontier = fairness_frontier(BOOST, X, Y, **given)
    np.testing.assert_allclose(
        frontier.fits["own_parity"], frontier.fits["false_positive_rate_parity"]
    )
    assert frontier.pareto("own_parity").any()
    del constraints_module.STATISTICS["own_parity"]
    later = fairness_frontier(BOOST, X, Y, **given)  # by the same workers
    assert "own_parity" not in later.fits
    rate = constraints_module.RATES["own_rate"]
    register_statistic(Statistic("own_parity", (rate,), "gap of the true negative rates"))
    for show in (later.pareto, later.plot):
        with pytest.raises(ValueError, match=r"FairBoostClassifier have no column 'own_parity'; m"):
            show("own_parity")


def test_a_column_that_a_frontier_lacks_is_named():
    fits = pd.DataFrame({"epsilon": [0.1], "fold": 0, "accuracy": 0.7, "equal_opportunity": 0.1})
    with pytest.raises(ValueError, match="the fits of model have no column 'log_loss'"):
        Frontier(fits, "epsilon", "model").pareto(score="log_loss")


def test_models_that_are_not_useful_are_on_no_frontier():
    """A constant has no gap, and no point of a useful model beats it in both."""
    constant = DummyClassifier(strategy="constant", constant=1)
    given = {"sensitive_features": GROUPS, "cv": 2}
    values = {"param_name": "constant", "param_values": [-1, 1]}
    constants = fairness_frontier(constant, X, Y, **values, **given)
    assert not constants.useful.any()
    assert not constants.pareto().any()
    assert not constants.plot().lines[-1].get_xdata().size
    boosted = fairness_frontier(BOOST, X, Y, param_values=[0.5], **given)
    assert boosted.useful.all()
    assert boosted.pareto().all()


@pytest.mark.parametrize("score", ["accuracy", "log_loss"])
def test_pareto_by_looking_at_every_pair(score):
    rng = np.random.default_rng(0)
    fits = pd.DataFrame(
        {
            "epsilon": np.arange(30.0),
            "fold": 0,
            score: rng.integers(6, size=30) / 6,
            "equal_opportunity": rng.integers(6, size=30) / 6,
        }
    )
    best = Frontier(fits, "epsilon", "model").pareto(score=score)
    sign = -1 if score == "log_loss" else 1
    points = list(zip(sign * fits[score], fits["equal_opportunity"], strict=True))
    for (value, gap), chosen in zip(points, best, strict=True):
        beaten = any(v >= value and g <= gap and (v > value or g < gap) for v, g in points)
        assert chosen == (not beaten)
    noise = 1e-15 * rng.normal(size=(30, 2))  # as other orders of the same sums would give
    noisy = fits.assign(
        **{score: fits[score] + noise[:, 0]},
        equal_opportunity=fits["equal_opportunity"] + noise[:, 1],
    )
    np.testing.assert_array_equal(Frontier(noisy, "epsilon", "model").pareto(score=score), best)


@pytest.mark.parametrize(
    ("estimator", "parameter", "values"),
    [
        pytest.param(
            ExponentiatedGradient(LogisticRegression(), max_iter=5),
            "epsilon",
            [0.05, 0.2],
            marks=pytest.mark.slow,
        ),
        (ThresholdOptimizer(LogisticRegression()), "random_state", [0]),
        (LogisticRegression(), "C", [0.1, 1.0]),
        (make_pipeline(StandardScaler(), BOOST), "fairboostclassifier__max_gap", [0.05, 0.2]),
        (FairProjClassifier(n_estimators=5, estimator=LogisticRegression()), "epsilon", [0.1]),
    ],
    ids=["EG", "thresholds", "plain", "pipeline", "estimator"],
)
@pytest.mark.filterwarnings("ignore:Setting a")
def test_any_estimator_with_such_a_parameter(estimator, parameter, values):
    found = fairness_frontier(
        estimator,
        X[:500],
        Y[:500],
        sensitive_features=GROUPS[:500],
        param_values=values,
        param_name=parameter,
        cv=2,
    )
    assert found.fits[parameter].tolist() == np.repeat(values, 2).tolist()
    assert found.frame["accuracy"].between(0.6, 1).all()
    has_probability = not isinstance(estimator, ExponentiatedGradient | ThresholdOptimizer)
    assert found.fits["roc_auc"].notna().all() == has_probability


def test_whether_a_model_in_a_pipeline_met_its_gap():
    given = {"sensitive_features": GROUPS, "cv": 2, "param_values": [0.0, 0.5]}
    estimator = clone(BOOST).set_params(constraints="equalized_odds")
    steps = make_pipeline("passthrough", estimator)
    inside = fairness_frontier(steps, X, Y, param_name="fairboostclassifier__max_gap", **given)
    alone = fairness_frontier(estimator, X, Y, **given)
    assert inside.fits["met"].tolist() == alone.fits["met"].tolist()
    assert set(inside.fits["met"]) == {0.0, 1.0}


def test_frames_text_labels_and_a_plot():
    import matplotlib as mpl

    mpl.use("Agg")
    data = load_german()
    found = fairness_frontier(
        FairProjClassifier(n_estimators=5, pos_label="bad"),
        data.data,
        data.target,
        sensitive_features=data.sensitive_features,
        param_values=[0.05, 0.3],
        cv=2,
        name="ours",
    )
    ax = found.plot("equalized_odds", "roc_auc")
    found.plot("equalized_odds", "roc_auc", ax=ax, marker="s", label="again")
    assert ax.get_xlabel() == "equalized odds gap"
    assert {text.get_text() for text in ax.legend().get_texts()} == {"ours", "again"}
    with pytest.raises(ValueError, match="'roc' is unknown"):
        found.plot(score="roc")


def test_the_positive_label_of_a_frontier():
    """That of the gaps; the estimator's own constraint keeps its label."""
    given = {"sensitive_features": GROUPS, "param_values": [0.1], "cv": 2}
    found = fairness_frontier(BOOST, X, Y, pos_label=-1, **given)
    usual = fairness_frontier(BOOST, X, Y, **given)
    for gap, other in (
        ("equal_opportunity", "false_positive_rate_parity"),
        ("false_positive_rate_parity", "equal_opportunity"),
    ):
        np.testing.assert_allclose(found.fits[gap], usual.fits[other])


def interrupt_in(monkeypatch, number):
    """Ctrl-C in the so manieth fit."""
    calls = []
    original = FairProjClassifier._fit_prepared

    def fit(self, *arguments, **more):
        calls.append(self)
        if len(calls) == number:
            raise KeyboardInterrupt
        return original(self, *arguments, **more)

    monkeypatch.setattr(FairProjClassifier, "_fit_prepared", fit)
    return calls


@pytest.mark.parametrize(("number", "done"), [(2, 1), (4, 3), (8, 7)])
def test_an_interrupt_keeps_every_fit_that_is_done(monkeypatch, number, done):
    interrupt_in(monkeypatch, number)
    arguments = {"sensitive_features": GROUPS, "param_values": [0.1, 0.2], "cv": 4, "n_jobs": 1}
    with pytest.warns(UserWarning, match=f"the frontier has {done} of 8 fits"):
        found = fairness_frontier(PAPER, X, Y, **arguments)
    assert len(found.fits) == done


def test_an_interrupt_before_anything_is_done_is_not_caught(monkeypatch):
    interrupt_in(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        fairness_frontier(PAPER, X, Y, sensitive_features=GROUPS, param_values=[0.1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"param_values": []}, "param_values is empty"),
        ({"param_values": None}, "holds None, which is neither a number nor a sequence"),
        ({"param_values": "0.1"}, r"holds '0\.1', which is neither a number nor"),
        ({"param_name": "eps"}, "has no parameter 'eps'; name the one to vary"),
        ({"sensitive_features": None}, "a gap needs two groups or more; pass sensitive_features"),
        ({"cv": "five"}, "cv='five' must be a number of folds"),
        ({"cv": []}, "cv holds no split"),
    ],
)
def test_frontier_of_nonsense(arguments, words):
    usual = {"sensitive_features": GROUPS, "param_values": [0.1]}
    with pytest.raises(ValueError, match=words):
        fairness_frontier(PAPER, X, Y, **(usual | arguments))


def test_what_has_no_frontier():
    usual = {"sensitive_features": GROUPS, "param_values": [0.1]}
    with pytest.raises(TypeError, match="instance of scikit-learn estimator instead of a class"):
        fairness_frontier(FairProjClassifier, X, Y, **usual)
    with pytest.raises(ValueError, match="LogisticRegression has no parameter 'max_gap' or 'eps"):
        fairness_frontier(LogisticRegression(), X, Y, **usual)


def test_gaps_that_do_not_exist_are_not_frontiers():
    groups = np.where(Y > 0, GROUPS, 2)  # group 2 has negatives only
    found = fairness_frontier(
        clone(PAPER).set_params(constraints="demographic_parity"),
        X,
        Y,
        sensitive_features=groups,
        param_values=[0.3, 0.3],
        cv=2,
    )
    assert len(found.fits) == 2  # the same value twice is one
    assert found.frame["equal_opportunity"].isna().all()
    assert found.pareto("demographic_parity").all()
    with pytest.raises(ValueError, match="has no equal_opportunity gap"):
        found.pareto()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fairlearn's own, of pandas
@pytest.mark.parametrize("kind", ["ExponentiatedGradient", "ThresholdOptimizer", "GridSearch"])
def test_fairlearns_own_estimators_draw_the_same_with_any_number_of_jobs(kind):
    estimator, parameter = fairlearn_estimator(kind)
    one, two = (
        fairness_frontier(
            estimator,
            X[:400],
            (Y[:400] == 1).astype(int),
            sensitive_features=GROUPS[:400],
            param_values=[0.3, 0.6],
            cv=2,
            param_name=parameter,
            n_jobs=jobs,
        ).fits.drop(columns="seconds")
        for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(one, two)
    assert one["accuracy"].gt(0.6).all()


def fairlearn_estimator(kind):
    """One of fairlearn's own classifiers, and a parameter to vary."""
    from fairlearn import postprocessing, reductions

    constraint, base = reductions.TruePositiveRateParity(), LogisticRegression()
    if kind == "ExponentiatedGradient":
        return reductions.ExponentiatedGradient(base, constraint, max_iter=3), "eps"
    if kind == "GridSearch":
        return reductions.GridSearch(base, constraint, grid_size=5), "constraint_weight"
    thresholds = postprocessing.ThresholdOptimizer(
        estimator=base, constraints="true_positive_rate_parity", predict_method="predict_proba"
    )
    return thresholds, "tol"


# The bound


@pytest.mark.parametrize(
    ("gap", "wanted"),
    [
        ("equal_opportunity", [1]),
        ("false_positive_rate_parity", [0]),
        ("equalized_odds", [0, 1]),
        ("demographic_parity", None),
    ],
)
@pytest.mark.parametrize("pos_label", [0, 1])
def test_the_upper_bound_is_that_of_the_worst_pair(gap, wanted, pos_label):
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(2, size=300), rng.integers(2, size=300)
    groups = rng.choice(list("abc"), size=300)
    y[(groups == "a")] = np.where(rng.random((groups == "a").sum()) < 0.9, 1, 0)  # few negatives
    counts, _ = cell_counts(y, predicted, groups, pos_label=pos_label)
    expected = 0.0
    among = [None] if wanted is None else [pos_label if w else 1 - pos_label for w in wanted]
    for label, a, b in product(among, "abc", "abc"):
        rows = np.full(300, True) if label is None else y == label
        up, down = ((predicted == pos_label)[(groups == g) & rows] for g in (a, b))
        if a != b:
            pair = Pair(int(up.sum()), len(up), int(down.sum()), len(down))
            expected = max(expected, difference_bound(pair, 0.9))
    assert gap_upper_bound(counts, gap, 0.9) == pytest.approx(expected, abs=1e-9)


def test_of_a_group_without_positives_nothing_is_known():
    y, predicted = np.tile([0, 1], 100), np.tile([0, 1], 100)
    counts, _ = cell_counts(y, predicted, np.where(y == 0, "b", "a"))
    assert gap_upper_bound(counts, "equal_opportunity", 0.9) == pytest.approx(1.0)


def test_the_upper_bound_is_wrong_as_seldom_as_stated():
    """A model whose true gap is just above the limit must seldom pass."""
    rng = np.random.default_rng(0)
    y, groups = np.ones(600, dtype=int), np.repeat(["a", "b"], 300)
    y[0] = 0
    chance = np.where(groups == "a", 0.6, 0.499)
    passed = sum(
        gap_upper_bound(
            cell_counts(y, (rng.random(600) < chance).astype(int), groups)[0],
            "equal_opportunity",
            0.8,
        )
        <= 0.1
        for _ in range(150)
    )
    assert passed <= stats.binom.ppf(0.999, 150, 0.2)
    assert passed >= stats.binom.ppf(0.001, 150, 0.1)  # nor more cautious than it says


# The search

RULES = ("one_se", "mean", "upper")


def gap_search(max_gap, **settings):
    return GapSearchCV(max_gap=max_gap, **({"estimator": BOOST, "cv": 3} | settings))


def without_times(results):
    return {name: values for name, values in results.items() if "_time" not in name}


def assert_same_results(one, two):
    """`cv_results_` but for the times."""
    one, two = without_times(one.cv_results_), without_times(two.cv_results_)
    assert list(one) == list(two)
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name])


@pytest.mark.parametrize(
    ("estimator", "values"),
    [
        (clone(PAPER).set_params(max_depth=2), [0.0, 0.05, 0.3]),
        (clone(BOOST).set_params(max_depth=3), [0.05, 0.15, 0.5]),
    ],
    ids=["paper", "boost"],
)
@pytest.mark.parametrize("rule", ["one_se", "mean"])
def test_what_is_chosen_is_the_best_that_meets_and_is_fitted_on_all_rows(estimator, values, rule):
    name = parameter_of(estimator)
    frame = fairness_frontier(
        estimator, X, Y, sensitive_features=GROUPS, param_values=values, cv=3
    ).frame.set_index(name)
    bounds = frame["equal_opportunity"]
    if rule == "one_se":
        bounds = bounds + frame["equal_opportunity_se"]
    target = (bounds.min() + bounds.max()) / 2
    best = frame["accuracy"][bounds <= target].idxmax()
    assert best != frame["accuracy"].idxmax(), "the target must matter"
    search = gap_search(target, estimator=estimator, selection_rule=rule, param_values=values)
    search.fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(search.cv_results_["gap_bound"], bounds)
    np.testing.assert_array_equal(search.cv_results_["meets_gap"], bounds <= target)
    assert search.best_params_ == {name: best}
    assert search.best_index_ == values.index(best)
    assert search.best_score_ == pytest.approx(frame["accuracy"][best])
    assert search.best_gap_ == pytest.approx(frame["equal_opportunity"][best])
    direct = clone(estimator).set_params(**search.best_params_)
    direct.fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(search.decision_function(X), direct.decision_function(X))
    np.testing.assert_array_equal(search.predict_proba(X), direct.predict_proba(X))
    assert search.reason_.startswith(f"{name}={best:g}: the best score of the")
    assert search.met_
    assert search.validation_rows_ is None


def test_results_are_those_of_scikit_learns_search():
    frame = pd.DataFrame(X, columns=["merit", "tells"]).assign(sex=GROUPS)
    estimator = clone(BOOST).set_params(sensitive_columns="sex")
    folds = list(FairStratifiedKFold(3).split(X, Y, GROUPS))
    values = [0.3, 0.05, 0.1]
    ours = gap_search(1.0, estimator=estimator, cv=folds, param_values=values, scoring="roc_auc")
    theirs = GridSearchCV(estimator, {"max_gap": values}, cv=folds, scoring="roc_auc")
    ours.fit(frame, Y)
    theirs.fit(frame, Y)
    assert set(theirs.cv_results_) < set(ours.cv_results_)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for name, expected in without_times(theirs.cv_results_).items():
        if name != "params":
            np.testing.assert_allclose(ours.cv_results_[name], expected)
    assert ours.cv_results_["param_max_gap"].tolist() == values
    attributes = {name for name in vars(theirs) if name.endswith("_")}
    assert attributes - set(vars(ours)) == {"multimetric_"}
    assert ours.best_params_ == theirs.best_params_
    assert ours.n_splits_ == theirs.n_splits_
    assert ours.score(frame, Y) == pytest.approx(theirs.score(frame, Y))
    assert ours.score(frame, Y) != pytest.approx(accuracy_score(Y, ours.predict(frame)), abs=1e-3)
    assert ours.n_features_in_ == 2
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    weight = np.where(GROUPS == 1, 3.0, 1.0)
    expected = get_scorer("roc_auc")(ours.best_estimator_, frame, Y, sample_weight=weight)
    assert ours.score(frame, Y, sample_weight=weight) == pytest.approx(expected)


def test_without_refit_there_is_no_model():
    usual = gap_search(0.5, param_values=[0.05, 0.3]).fit(X, Y, sensitive_features=GROUPS)
    search = clone(usual).set_params(refit=False).fit(X, Y, sensitive_features=GROUPS)
    assert_same_results(search, usual)
    assert search.best_params_ == usual.best_params_
    for name in ("best_estimator_", "n_features_in_", "classes_", "refit_time_"):
        assert hasattr(usual, name)
        assert not hasattr(search, name)
    for ask in (search.predict, search.predict_proba, search.decision_function):
        with pytest.raises(AttributeError, match="because refit=False; fit an estimator with"):
            ask(X)
    with pytest.raises(NotFittedError):
        clone(search).predict(X)


def test_methods_are_those_of_the_estimator():
    search = GapSearchCV(LinearSVC(), param_name="C", param_values=[0.1, 1.0], max_gap=1.0, cv=2)
    for _ in ("before", "after"):
        assert hasattr(search, "decision_function")
        assert not hasattr(search, "predict_proba")
        search.fit(X, Y, sensitive_features=GROUPS)


@BOTH
def test_the_estimator_and_what_was_passed_stay_as_they_were(estimator):
    template = clone(estimator)
    frame, weight = mixed_frame(), WEIGHT.copy()
    given = (frame, Y, GROUPS, weight, template)
    before = [joblib.hash(part) for part in given]
    search = gap_search(0.9, estimator=template, param_values=[0.1, 0.3], cv=2)
    parameters = search.get_params()
    search.fit(frame, Y, sensitive_features=GROUPS, sample_weight=weight)
    assert [joblib.hash(part) for part in given] == before
    assert search.get_params() == parameters
    assert search.estimator is template
    assert not hasattr(template, "classes_")


def test_parameters_of_the_inner_estimator_and_pickles():
    search = gap_search(0.5, estimator=clone(BOOST), param_values=[0.05, 0.3])
    search.set_params(estimator__max_depth=2, max_gap=0.6)
    assert search.get_params()["estimator__max_depth"] == search.estimator.max_depth == 2
    assert clone(search).get_params()["estimator__max_depth"] == 2
    search.fit(X, Y, sensitive_features=GROUPS)
    assert search.best_estimator_.max_depth == 2
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.decision_function(X), search.decision_function(X))
    assert again.reason_ == search.reason_
    assert again.score(X, Y) == search.score(X, Y)
    assert_same_results(again, search)


def test_the_upper_bound_is_of_the_kept_model_on_rows_it_has_not_seen():
    values = np.linspace(0.01, 0.5, 8)
    search = gap_search(0.3, selection_rule="upper", param_values=values, refit=False)
    search.fit(X, Y, sensitive_features=GROUPS)
    held_out = np.isin(np.arange(len(Y)), search.validation_rows_)
    assert held_out.mean() == pytest.approx(0.3, abs=0.01)
    direct = clone(BOOST).set_params(**search.best_params_)
    direct.fit(X[~held_out], Y[~held_out], sensitive_features=GROUPS[~held_out])
    np.testing.assert_array_equal(search.decision_function(X), direct.decision_function(X))
    predicted = search.predict(X[held_out])
    counts, _ = cell_counts(Y[held_out], predicted, GROUPS[held_out])
    bound = gap_upper_bound(counts, "equal_opportunity", search.confidence)
    kept = {name: values[search.best_index_] for name, values in search.cv_results_.items()}
    assert kept["gap_bound"] == pytest.approx(bound)
    assert kept["mean_test_score"] == accuracy_score(Y[held_out], predicted)
    train = oracles.gap(
        "equal_opportunity", Y[~held_out], search.predict(X[~held_out]), GROUPS[~held_out]
    )
    assert kept["mean_train_gap"] == pytest.approx(train)


@pytest.mark.parametrize(("metric", "fixed"), [("equal_opportunity", True), ("accuracy", False)])
def test_held_out_rows_leave_the_share_of_labels_to_chance_where_rates_depend_on_it(metric, fixed):
    shares = set()
    for seed in range(4):
        search = gap_search(1.0, metric=metric, selection_rule="upper", param_values=0.1)
        search.set_params(random_state=seed).fit(X, Y, sensitive_features=GROUPS)
        held_out = np.isin(np.arange(len(Y)), search.validation_rows_)
        assert held_out[GROUPS == 1].mean() == pytest.approx(0.3, abs=0.002)
        shares.add(round(np.mean(Y[held_out & (GROUPS == 1)] > 0), 2))
    assert (len(shares) == 1) == fixed


def test_a_looser_limit_that_scores_as_well_is_named():
    """Neither limit narrows a gap here, so both candidates are one model."""
    for values, named in (([0.8, 0.9], True), ([0.9, 0.8], False)):
        search = gap_search(1.0, estimator=FairBoostClassifier(n_estimators=5), cv=3)
        search.set_params(param_values=values).fit(X, Y, sensitive_features=GROUPS)
        assert ("; max_gap=0.9 meets it too, and its score" in search.reason_) == named


def test_bounds_are_judged_in_the_order_of_the_training_gaps():
    values = np.random.default_rng(0).permutation(np.linspace(0.01, 0.5, 8))
    search = gap_search(1.0, selection_rule="upper", param_values=values)
    search.fit(X, Y, sensitive_features=GROUPS)
    table = pd.DataFrame(search.cv_results_).sort_values("mean_train_gap", kind="stable")
    limit = table["gap_bound"].iloc[:3].max()
    search.set_params(max_gap=limit).fit(X, Y, sensitive_features=GROUPS)
    table = pd.DataFrame(search.cv_results_).sort_values("mean_train_gap", kind="stable")
    passed = (table["gap_bound"] <= limit).to_numpy()
    np.testing.assert_array_equal(table["meets_gap"], np.logical_and.accumulate(passed))
    assert (table["gap_bound"] >= table["mean_test_gap"]).all()
    assert 0 < table["meets_gap"].sum() < len(table)


@pytest.mark.parametrize("rule", RULES)
def test_nothing_meets_the_target(rule):
    search = gap_search(0.0, selection_rule=rule, param_values=[0.1, 0.2])
    words = r"no solution found: none of the candidates \(2\) meets the target, a gap of at most 0;"
    with pytest.raises(NoSolutionFoundError, match=words):
        search.fit(X, Y, sensitive_features=GROUPS)
    assert not [name for name in vars(search) if name.endswith("_")]
    search.set_params(if_none="nearest")
    with pytest.warns(UserWarning, match=r"none of the candidates \(2\) meets") as caught:
        search.fit(X, Y, sensitive_features=GROUPS)
    assert caught[0].filename == __file__
    assert not search.met_
    assert search.best_index_ == search.cv_results_["gap_bound"].argmin()


def test_a_bound_that_does_not_count_says_why(monkeypatch):
    """The first in order fails, a later one would pass."""
    bounds = iter([0.3, 0.1])
    monkeypatch.setattr(search_module, "gap_upper_bound", lambda *arguments: next(bounds))
    search = gap_search(0.2, selection_rule="upper", param_values=[0.02, 0.15])
    words = r"fitted with max_gap=0\.15 .* does not count, .* failed \(bound 0\.300\)"
    with pytest.raises(ValueError, match=words):
        search.fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("rule", RULES)
def test_a_model_that_says_the_same_to_everyone_meets_nothing(rule):
    """It has no gap, and a score that may be high."""
    constant = DummyClassifier(strategy="constant", constant=1)
    given = {"param_name": "constant", "param_values": [-1, 1], "selection_rule": rule}
    search = gap_search(0.3, estimator=constant, confidence=0.5, **given)
    words = r"none of the candidates \(2\) is useful, .* nearly everyone, .* balance the labels' w"
    with pytest.raises(NoSolutionFoundError, match=words):
        search.fit(X, Y, sensitive_features=GROUPS)
    with pytest.warns(UserWarning, match=words):
        search.set_params(if_none="nearest").fit(X, Y, sensitive_features=GROUPS)
    assert not search.met_
    assert not search.cv_results_["useful"].any()
    np.testing.assert_array_equal(search.cv_results_["mean_test_gap"], 0.0)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["rows", "weights"])
def test_informedness_and_its_variance(weight):
    """Against repeated draws of the predictions, by a model that predicts as it is told."""

    class Told(DummyClassifier):
        def predict(self, X):
            return X[:, 0]

    actual, rng = Y > 0, np.random.default_rng(0)
    chance = np.where(actual, 0.6, 0.3)
    measured = []
    for _ in range(300):
        drawn = np.where(rng.random(len(Y)) < chance, 1, -1)[:, None]
        data = SearchData.of(Told(), "constant", drawn, Y, GROUPS, weight)
        fold = Fold(Told(), data, (np.arange(len(Y)), np.arange(len(Y))))
        measured.append(fold.fit().informedness())
    values, variances = np.array(measured).T
    assert values.mean() == pytest.approx(0.3, abs=4 * values.std() / np.sqrt(300))
    assert variances.mean() == pytest.approx(values.var(), rel=0.3)


def test_candidates_must_beat_chance_by_two_standard_errors():
    table = {
        "informedness": np.array([[0.2, 0.2, 0.2, 0.0], [0.2, 0.2, 0.2, 0.0]]),
        "variance": np.array([[0.019, 0.021, 0.0, 0.0], [0.019, 0.021, 0.0, 0.0]]),
        "certified": np.array([[True, True, False, True], [True, True, True, True]]),
    }
    assert search_module._useful(table).tolist() == [True, False, False, False]


def test_useful_candidates_come_before_useless_ones():
    results = {
        "params": [{"max_gap": 0.0}, {"max_gap": 1.0}],
        "mean_test_score": np.array([0.9, 0.7]),
        "mean_test_gap": np.array([0.0, 0.2]),
        "gap_bound": np.array([0.0, 0.2]),
        "useful": np.array([False, True]),
        "meets_gap": np.array([False, False]),
    }
    assert search_module._choose(results) == 1
    reason = gap_search(0.01)._reason(results, 1)
    assert reason.endswith("; 1 within the target say the same to nearly everyone and do not count")


@pytest.mark.parametrize("rule", RULES)
def test_a_boosted_model_without_use_meets_nothing(rule):
    """Labels that no feature explains, most of them negative."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(Y)) < 0.2, 1, -1)
    noise = rng.normal(size=(len(Y), 2))
    search = gap_search(0.9, selection_rule=rule, param_values=[0.1, 0.5], if_none="nearest", cv=2)
    with pytest.warns(UserWarning, match="nearly everyone"):
        search.fit(noise, y, sensitive_features=GROUPS)
    assert not search.met_
    assert (search.cv_results_["gap_bound"] <= 0.9).all()


def test_a_search_without_a_seed_can_be_repeated():
    """Although each candidate holds out rows and draws others."""
    estimator = clone(BOOST).set_params(
        random_state=None, validation_fraction=0.3, subsample=0.6, max_features=0.5
    )
    given = {"param_values": [0.05, 0.3], "cv": 2}
    searches = [
        gap_search(1.0, estimator=one, **given).fit(X, Y, sensitive_features=GROUPS)
        for one in (estimator, estimator, clone(estimator).set_params(random_state=0))
    ]
    for other in searches[1:]:
        assert_same_results(searches[0], other)
        np.testing.assert_array_equal(searches[0].decision_function(X), other.decision_function(X))
    assert estimator.random_state is None
    frontiers = [
        fairness_frontier(estimator, X, Y, sensitive_features=GROUPS, **given) for _ in range(2)
    ]
    assert (
        frontiers[0].fits.drop(columns="seconds").equals(frontiers[1].fits.drop(columns="seconds"))
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "metric",
    [
        "demographic_parity",
        "false_positive_rate_parity",
        "equalized_odds",
        "true_positive_rate_parity",
        "accuracy",
    ],
)
def test_the_gap_is_that_of_the_constraint_or_of_the_metric(metric, rule):
    settings = {"selection_rule": rule, "param_values": [0.1], "cv": 2}
    estimator = clone(BOOST).set_params(constraints=metric)
    search = gap_search(0.9, estimator=estimator, **settings)
    search.fit(X, Y, sensitive_features=GROUPS)
    other = gap_search(0.9, metric=metric, **settings).fit(X, Y, sensitive_features=GROUPS)
    name = {"true_positive_rate_parity": "equal_opportunity", "accuracy": "accuracy_parity"}
    for one in (search, other):  # the gap of the models, whatever they were trained for
        parts = make_parts(one)
        gaps = [
            oracles.gap(name.get(metric, metric), Y[test], model.predict(X[test]), GROUPS[test])
            for model, test in parts
        ]
        assert one.best_gap_ == pytest.approx(np.mean(gaps))
    assert search.best_estimator_.constraints == metric
    assert other.best_estimator_.constraints == "equal_opportunity"


def make_parts(search):
    """The models of the best candidate, fitted anew, and their test rows."""
    if search.validation_rows_ is not None:
        train = np.setdiff1d(np.arange(len(Y)), search.validation_rows_)
        folds = [(train, search.validation_rows_)]
    else:
        folds = FairStratifiedKFold(search.cv).split(X, Y, GROUPS)
    template = clone(search.estimator).set_params(**search.best_params_)
    return [
        (clone(template).fit(X[train], Y[train], sensitive_features=GROUPS[train]), test)
        for train, test in folds
    ]


def test_constraints_without_a_name_need_a_metric():
    from fairproj.constraints import equal_opportunity

    estimator = clone(BOOST).set_params(constraints=equal_opportunity)
    search = gap_search(0.9, estimator=estimator, param_values=[0.1], cv=2)
    with pytest.raises(ValueError, match=r"constraints are not a name, .*; pass metric="):
        search.fit(X, Y, sensitive_features=GROUPS)
    search.set_params(metric="equal_opportunity").fit(X, Y, sensitive_features=GROUPS)
    named = gap_search(0.9, param_values=[0.1], cv=2).fit(X, Y, sensitive_features=GROUPS)
    assert_same_results(search, named)
    plain = clone(PAPER).set_params(constraints=None)
    search.set_params(estimator=plain, metric=None).fit(X, Y, sensitive_features=GROUPS)
    expected = gap_search(0.9, estimator=plain, metric="equal_opportunity", param_values=0.1, cv=2)
    assert_same_results(search, expected.fit(X, Y, sensitive_features=GROUPS))


# Ties


def test_last_bits_decide_nothing():
    settings = {
        "estimator": clone(BOOST).set_params(max_depth=3),
        "param_values": [0.5, 0.15, 0.05],
    }
    usual = gap_search(1.0, **settings).fit(X, Y, sensitive_features=GROUPS)
    bound = usual.cv_results_["gap_bound"]
    target = float(np.nextafter(bound.min(), 0))  # another order of the same sum
    search = gap_search(target, **settings).fit(X, Y, sensitive_features=GROUPS)
    assert search.met_
    assert search.best_index_ == bound.argmin()
    # Scores that are equal but for their last bits, in favour of the largest gap.
    nearly = gap_search(
        1.0, scoring=lambda model, X, y: 0.7 + 1e-15 * model.max_gap, **settings
    ).fit(X, Y, sensitive_features=GROUPS)
    assert nearly.best_index_ == usual.cv_results_["mean_test_gap"].argmin() > 0
    assert nearly.cv_results_["rank_test_score"].tolist() == [1, 1, 1]
    clearly = nearly.set_params(scoring=lambda model, X, y: 0.7 + 1e-6 * model.max_gap)
    assert clearly.fit(X, Y, sensitive_features=GROUPS).best_params_ == {"max_gap": 0.5}


def test_candidates_that_are_alike_keep_their_order():
    """With one group nothing is enforced, so all values give the same model."""
    for values in ([0.3, 0.1], [0.1, 0.3]):
        search = gap_search(0.0, param_values=values)
        with pytest.warns(UserWarning, match="one group only, so every gap is 0"):
            search.fit(X, Y, sensitive_features=np.zeros(len(Y)))
        assert search.best_params_ == {"max_gap": values[0]}


# Inside scikit-learn, and around other estimators


@pytest.mark.filterwarnings("ignore:no groups were given")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@parametrize_with_checks(
    [
        GapSearchCV(
            FairBoostClassifier(n_estimators=3, min_samples_leaf=1),
            cv=2,
            param_values=[0.1, 1.0],
            if_none="nearest",
        ),
        GapSearchCV(LogisticRegression(), 1.0, cv=2, param_name="C", param_values=[0.1, 1.0]),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check_or_skip(estimator, check)


@pytest.mark.parametrize("rule", RULES)
def test_nested_in_cross_validation_and_search(rule):
    frame = pd.DataFrame(X, columns=["merit", "tells"]).assign(sex=GROUPS)
    inner = clone(BOOST).set_params(n_estimators=5, sensitive_columns="sex")
    search = GapSearchCV(inner, 0.6, selection_rule=rule, cv=2, param_values=[0.05, 0.2])
    scores = cross_validate(search, frame, Y, cv=3, error_score="raise")["test_score"]
    assert (scores > 0.6).all()
    grid = {"max_gap": [0.5, 0.6], "estimator__max_depth": [1, 2]}
    outer = GridSearchCV(search, grid, cv=2, error_score="raise").fit(frame, Y)
    assert outer.best_estimator_.met_
    assert list(outer.best_estimator_.feature_names_in_) == ["merit", "tells"]
    with sklearn.config_context(enable_metadata_routing=True):
        routed = gap_search(0.6, selection_rule=rule, cv=2, param_values=[0.1])
        routed.set_fit_request(sensitive_features=True)
        scores = cross_validate(
            routed, X, Y, cv=2, params={"sensitive_features": GROUPS}, error_score="raise"
        )
    assert (scores["test_score"] > 0.6).all()


def make_steps():
    return make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["place"]),
            remainder="passthrough",
        ),
        clone(BOOST).set_params(n_estimators=5),
    )


PLACES = mixed_frame()[["place", "tells"]]
STEP = "fairboostclassifier"


@pytest.mark.slow
@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_pipelines_with_and_without_metadata_routing(routing, rule):
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    values = [0.05, 0.4]
    with sklearn.config_context(enable_metadata_routing=routing):
        steps = make_steps()
        if routing:
            steps[-1].set_fit_request(sensitive_features=True)
        search = GapSearchCV(
            steps, 1.0, param_name=f"{STEP}__max_gap", param_values=values, cv=folds, n_jobs=2
        ).set_params(selection_rule=rule)
        search.fit(PLACES, Y, sensitive_features=GROUPS)
    if rule == "upper":
        train = np.setdiff1d(np.arange(len(Y)), search.validation_rows_)
        folds = [(train, search.validation_rows_)]
    for number, (train, test) in enumerate(folds):
        for at, value in enumerate(values):
            direct = make_steps().set_params(**{f"{STEP}__max_gap": value})
            given = {f"{STEP}__sensitive_features": GROUPS[train]}
            direct.fit(PLACES.iloc[train], Y[train], **given)
            score = direct.score(PLACES.iloc[test], Y[test])
            assert search.cv_results_[f"split{number}_test_score"][at] == pytest.approx(score)
    assert search.best_estimator_[-1].group_values_ == [0, 1]
    assert search.n_features_in_ == 2


def test_pipelines_that_do_not_route_what_is_needed_are_refused():
    search = GapSearchCV(make_steps(), 1.0, param_name=f"{STEP}__max_gap", cv=2)
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(UnsetMetadataPassedError, match="sensitive_features"),
    ):
        search.fit(PLACES, Y, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match="Pipeline has no parameter 'max_gap' or 'epsilon'; name"):
        search.set_params(param_name=None).fit(PLACES, Y, sensitive_features=GROUPS)


class Recorder(LogisticRegression):
    """Keeps the weights it was fitted with."""

    def fit(self, X, y, sample_weight=None):
        self.weights_ = sample_weight
        return super().fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("routing", [False, True])
def test_plain_classifiers_are_fitted_without_groups_and_judged(routing):
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    with sklearn.config_context(enable_metadata_routing=routing):
        steps = make_pipeline(StandardScaler(), Recorder())
        if routing:
            steps[0].set_fit_request(sample_weight=False)
            steps[1].set_fit_request(sample_weight=True)
        search = GapSearchCV(
            steps, 1.0, param_name="recorder__C", param_values=[0.01, 1.0], cv=folds
        ).fit(X, Y, sensitive_features=GROUPS, sample_weight=WEIGHT)
    np.testing.assert_array_equal(search.best_estimator_[-1].weights_, WEIGHT)
    for number, (train, test) in enumerate(folds):
        direct = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
        direct.fit(X[train], Y[train], logisticregression__sample_weight=WEIGHT[train])
        predicted = direct.predict(X[test])
        gap = oracles.gap("equal_opportunity", Y[test], predicted, GROUPS[test], WEIGHT[test])
        assert search.cv_results_[f"split{number}_test_gap"][0] == pytest.approx(gap)
        score = accuracy_score(Y[test], predicted, sample_weight=WEIGHT[test])
        assert search.cv_results_[f"split{number}_test_score"][0] == pytest.approx(score)


@pytest.mark.parametrize(
    ("estimator", "name", "values"),
    [
        (Reweighing(LogisticRegression()), "estimator__C", [0.01, 1.0]),
        (Reweighing(FairProjClassifier(None)), "estimator__n_estimators", [3, 5]),
        pytest.param(
            ExponentiatedGradient(LogisticRegression(), max_iter=3),
            None,
            [0.05, 0.2],
            marks=pytest.mark.slow,
        ),
        (ThresholdOptimizer(LogisticRegression()), "estimator__C", [0.01, 1.0]),
    ],
    ids=["reweighing", "reweighing ours", "EG", "thresholds"],
)
@pytest.mark.filterwarnings("ignore:Setting a")
def test_baselines(estimator, name, values):
    features = X[:500]
    labels, groups = np.where(Y[:500] > 0, "yes", "no"), np.where(GROUPS[:500], "f", "m")
    folds = list(FairStratifiedKFold(2).split(features, labels, groups))
    search = GapSearchCV(estimator, 1.0, param_name=name, param_values=values, cv=folds)
    search.fit(features, labels, sensitive_features=groups)
    needs_groups = isinstance(estimator, ThresholdOptimizer)
    for number, (train, test) in enumerate(folds):
        direct = clone(estimator).set_params(**search.cv_results_["params"][1])
        direct.fit(features[train], labels[train], sensitive_features=groups[train])
        more = {"sensitive_features": groups[test]} if needs_groups else {}
        predicted = direct.predict(features[test], **more)
        score = accuracy_score(labels[test], predicted)
        assert search.cv_results_[f"split{number}_test_score"][1] == pytest.approx(score)
        gap = equal_opportunity_difference(labels[test], predicted, sensitive_features=groups[test])
        assert search.cv_results_[f"split{number}_test_gap"][1] == pytest.approx(gap)
    assert set(search.best_estimator_.classes_) == {"yes", "no"}
    with pytest.raises(ValueError, match=r"fit takes no sample_weight, so the weights would be ig"):
        GapSearchCV(ThresholdOptimizer(), 1.0, param_name="random_state", param_values=[0]).fit(
            features, labels, sensitive_features=groups, sample_weight=np.ones(500)
        )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fairlearn's own, of pandas
@pytest.mark.parametrize("kind", ["ExponentiatedGradient", "ThresholdOptimizer", "GridSearch"])
@pytest.mark.parametrize("rule", ["one_se", "upper"])
def test_fairlearns_own_estimators_are_judged(kind, rule):
    estimator, name = fairlearn_estimator(kind)
    y = (Y[:400] == 1).astype(int)
    search = GapSearchCV(
        estimator, 1.0, param_name=name, param_values=[0.3, 0.6], cv=2, selection_rule=rule
    ).set_params(metric="equal_opportunity")
    search.fit(X[:400], y, sensitive_features=GROUPS[:400])
    assert type(search.best_estimator_) is type(estimator)
    assert search.best_score_ > 0.6
    if rule == "upper":
        rows = search.validation_rows_
        predicted = search.best_estimator_.predict(
            X[rows],
            **({"sensitive_features": GROUPS[rows]} if kind == "ThresholdOptimizer" else {}),
            **({"random_state": 0} if kind != "GridSearch" else {}),
        )
        gap = oracles.gap("equal_opportunity", 2 * y[rows] - 1, 2 * predicted - 1, GROUPS[rows])
        assert search.best_gap_ == pytest.approx(gap)


def test_a_model_that_can_go_on_after_the_search():
    search = gap_search(
        0.9, estimator=clone(PAPER).set_params(warm_start=True), param_values=[0.1, 0.3]
    ).fit(X, Y, sensitive_features=GROUPS)
    longer = search.best_estimator_.set_params(n_estimators=15)
    longer.fit(X, Y, sensitive_features=GROUPS)
    direct = clone(PAPER).set_params(n_estimators=15, **search.best_params_)
    direct.fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(longer.decision_function(X), direct.decision_function(X), rtol=1e-9)


# Jobs, memory, weights, labels


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_results_of_the_search_do_not_depend_on_jobs(rule):
    one, two = (
        gap_search(0.5, selection_rule=rule, cv=2, param_values=[0.1, 0.3], n_jobs=jobs).fit(
            X, Y, sensitive_features=GROUPS
        )
        for jobs in (1, 2)
    )
    assert_same_results(one, two)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


@pytest.mark.parametrize("rule", ["one_se", "upper"])
def test_an_interrupted_search_goes_on_where_it_stopped(tmp_path, monkeypatch, rule):
    calls = interrupt_in(monkeypatch, 3)
    settings = {"estimator": PAPER, "selection_rule": rule, "param_values": [0.1, 0.2, 0.3]}
    search = gap_search(0.6, memory=joblib.Memory(tmp_path, verbose=0), n_jobs=1, **settings)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y, sensitive_features=GROUPS)
    search.fit(X, Y, sensitive_features=GROUPS)
    fits = {"one_se": 3 * 3 + 1, "upper": 3}[rule]  # each candidate in each fold, and the last
    assert len(calls) == fits + 1  # and the one that was interrupted
    plain = gap_search(0.6, **settings).fit(X, Y, sensitive_features=GROUPS)
    assert_same_results(search, plain)
    np.testing.assert_array_equal(search.decision_function(X), plain.decision_function(X))
    n_before = len(calls)
    search.set_params(max_gap=0.7).fit(X, Y, sensitive_features=GROUPS)  # judged anew, not fitted
    assert len(calls) == n_before + (rule == "one_se")
    np.testing.assert_array_equal(search.decision_function(X), plain.decision_function(X))
    for changed in (
        {"metric": "equalized_odds"},
        {"scoring": "balanced_accuracy"},
        {"estimator__max_depth": 2},
    ):
        n_before = len(calls)
        clone(search).set_params(**changed).fit(X, Y, sensitive_features=GROUPS)
        assert len(calls) == n_before + fits  # nothing that was kept for something else is used
    n_before = len(calls)
    clone(search).fit(X, Y, sensitive_features=1 - GROUPS)
    assert len(calls) == n_before + fits


def test_weights_count_like_rows():
    weight = np.where(GROUPS == 1, 2, 1)
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    repeated = np.repeat(np.arange(len(Y)), weight)
    tests = [np.flatnonzero(np.isin(repeated, test)) for _, test in folds]
    by_weight = {"tree_step": "first_order", "min_samples_leaf": 0, "validation_fraction": None}
    weighted = gap_search(0.5, cv=folds, param_values=[0.1, 0.3], scoring="balanced_accuracy")
    weighted.set_params(estimator=clone(BOOST).set_params(**by_weight))  # no leaf counts rows
    weighted.fit(X, Y, sensitive_features=GROUPS, sample_weight=weight)
    counted = clone(weighted).set_params(cv=[(tests[1], tests[0]), (tests[0], tests[1])])
    counted.fit(X[repeated], Y[repeated], sensitive_features=GROUPS[repeated])
    for name in ("mean_test_score", "mean_test_gap", "gap_bound", "split1_test_gap"):
        np.testing.assert_allclose(weighted.cv_results_[name], counted.cv_results_[name])


@pytest.mark.filterwarnings("ignore:some groups have fewer")
def test_text_labels_an_estimator_that_holds_out_and_a_bar(capsys):
    data = load_german()
    estimator = FairBoostClassifier(
        pos_label="bad", class_weight="balanced", validation_fraction=0.5, random_state=0
    )
    scorer = make_scorer(f1_score, pos_label="bad", zero_division=0.0)
    search = gap_search(0.5, estimator=estimator, verbose=True, param_values=0.2, scoring=scorer)
    search.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    assert search.score(data.data, data.target) == pytest.approx(
        f1_score(data.target, search.predict(data.data), pos_label="bad")
    )
    assert "candidates" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"does not know which of the labels \['bad', 'good'\]"):
        search.set_params(scoring="f1").fit(
            data.data, data.target, sensitive_features=data.sensitive_features
        )


def test_groups_of_every_kind():
    tables = {"g": GROUPS, "h": np.arange(len(Y)) % 2}
    searches = [
        gap_search(0.9, param_values=0.2, cv=2).fit(X, Y, sensitive_features=groups)
        for groups in (tables, pd.DataFrame(tables, index=np.arange(len(Y))[::-1]))
    ]
    assert searches[0].best_estimator_.group_values_ == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert_same_results(*searches)
    assert get_tags(searches[0]).input_tags.allow_nan
    assert not get_tags(gap_search(0.9, estimator=LogisticRegression())).input_tags.allow_nan
    with pytest.raises(ValueError, match="sample_weight"):
        searches[0].fit(X, Y, sensitive_features=GROUPS, sample_weight=2.0)


# What is refused


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"estimator": LogisticRegression()}, "LogisticRegression has no parameter 'max_gap' or"),
        ({"estimator": FairBoostClassifier}, "instance of scikit-learn estimator instead of a cla"),
        ({"estimator": "model"}, "'estimator' parameter of GapSearchCV must be"),
        ({"param_name": "eps"}, "FairBoostClassifier has no parameter 'eps'"),
        ({"param_name": "max_depth"}, "no default values of 'max_depth'; give param_values"),
        ({"param_values": []}, "param_values is empty"),
        ({"param_values": ["a", "b"]}, "holds 'a', which is neither a number nor a sequence of"),
        ({"param_values": [0.1, None]}, "param_values holds None, which is neither"),
        ({"param_values": [0.1, np.nan]}, "param_values holds nan, which is neither"),
        ({"param_values": [[0.1, "b"]]}, r"holds \[0\.1, 'b'\], which is neither"),
        ({"param_values": [[]]}, r"param_values holds \[\], which is neither"),
        ({"param_values": [[[0.1], [0.2]]]}, "which is neither"),
        ({"param_values": [[0.1, 0.2]]}, "max_gap must be one number; got 2 numbers"),
        ({"metric": "equality"}, "metric='equality' is unknown; use one of"),
        ({"selection_rule": "best"}, "selection_rule"),
        ({"scoring": "correctness"}, "'correctness' is not a valid scoring value"),
        ({"cv": RepeatedKFold(n_splits=2)}, "test no row twice"),
        ({"cv": list(KFold(3).split(X))[:1]}, "needs two folds"),
    ],
)
def test_searches_that_cannot_be_made(settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        gap_search(0.3, **settings).fit(X, Y, sensitive_features=GROUPS)


ODDS = clone(BOOST).set_params(constraints="equalized_odds", max_depth=3)
PAIRS = [[0.02, 0.5], [0.5, 0.02]]  # a small gap of one rate each


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("as_given", [list, np.array, pd.Series], ids=["list", "array", "series"])
def test_candidates_with_a_number_for_each_rate(rule, as_given):
    values = as_given([*PAIRS, PAIRS[0]])
    search = gap_search(1.0, estimator=ODDS, selection_rule=rule, cv=2, param_values=values)
    search.fit(X, Y, sensitive_features=GROUPS)
    assert search.cv_results_["params"] == [{"max_gap": pair} for pair in PAIRS]
    assert search.cv_results_["param_max_gap"].tolist() == PAIRS
    assert search.cv_results_["param_max_gap"].shape == (2,)
    shown = {0: "[0.02, 0.5]", 1: "[0.5, 0.02]"}[search.best_index_]
    assert search.reason_.startswith(f"max_gap={shown}: the best score of the 2 of 2 candidates")
    direct = clone(ODDS).set_params(max_gap=PAIRS[search.best_index_])
    rows = np.setdiff1d(np.arange(len(Y)), [] if rule != "upper" else search.validation_rows_)
    direct.fit(X[rows], Y[rows], sensitive_features=GROUPS[rows])
    np.testing.assert_array_equal(search.decision_function(X), direct.decision_function(X))


def test_a_frontier_of_numbers_and_pairs():
    values = [(0.5, 0.02), 0.3, [0.02, 0.5], np.array([0.5, 0.02])]
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    frontier = fairness_frontier(
        ODDS, X, Y, sensitive_features=GROUPS, param_values=values, cv=folds
    )
    assert frontier.frame["max_gap"].tolist() == [(0.02, 0.5), 0.3, (0.5, 0.02)]
    assert frontier.fits["fold"].tolist() == [0, 1] * 3
    assert frontier.pareto("equalized_odds").any()
    for _, row in frontier.fits.iterrows():
        train, test = folds[row["fold"]]
        raw = clone(ODDS).set_params(max_gap=row["max_gap"])
        raw.fit(X[train], Y[train], sensitive_features=GROUPS[train])
        assert row["accuracy"] == pytest.approx(raw.score(X[test], Y[test]))
    scores = frontier.frame["accuracy"]
    assert scores.nunique() == 3, "the values must matter"


def test_text_of_candidates_in_errors():
    with pytest.raises(ValueError, match=r"is not a number at max_gap=\[0\.02, 0\.5\]; use"):
        gap_search(0.8, estimator=ODDS, param_values=PAIRS, scoring=lambda *_: np.nan).fit(
            X, Y, sensitive_features=GROUPS
        )
    with pytest.raises(ValueError, match=r"was fitted with max_gap=\[0\.\d+, 0\.\d+\] \("):
        gap_search(0.0, estimator=ODDS, param_values=PAIRS).fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"sensitive_features": GROUPS[:5]}, "sensitive_features has 5 rows and X has 1,500"),
        ({"sensitive_features": GROUPS, "sample_weight": np.ones(len(Y))}, "no sample_weight"),
        ({"sensitive_features": np.arange(len(Y)) == 0}, "True' with label -?1 has 1 row"),
    ],
)
def test_rows_that_cannot_be_judged_on(rows, words):
    with pytest.raises(ValueError, match=words):
        gap_search(0.3, selection_rule="upper").fit(X, Y, **rows)


@pytest.mark.parametrize("groups", [None, np.zeros(len(Y))], ids=["none", "one"])
@pytest.mark.parametrize("rule", RULES)
def test_without_groups_the_search_is_by_score_alone(groups, rule):
    search = gap_search(
        0.0, selection_rule=rule, param_name="max_depth", param_values=[1, 3], confidence=0.9
    )
    with pytest.warns(UserWarning, match="so every gap is 0 and the search is by score alone"):
        search.fit(X, Y, sensitive_features=groups)
    assert not search.met_
    assert search.reason_.endswith("with one group no gap was compared")
    np.testing.assert_array_equal(search.cv_results_["gap_bound"], 0.0)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.predict(X).shape == Y.shape


@pytest.mark.parametrize("metric", ["equal_opportunity", "demographic_parity"])
def test_a_group_that_would_not_be_judged_is_refused(metric):
    groups = np.where(np.arange(len(Y)) < 3, "few", "many")
    y = np.where(np.arange(len(Y)) < 3, np.array([1, -1, 1] * 500), Y)
    with pytest.raises(ValueError, match="few'"):
        gap_search(0.3, metric=metric, selection_rule="upper", validation_fraction=0.1).fit(
            X, y, sensitive_features=groups
        )
    blocks = np.sort(GROUPS)
    with pytest.raises(ValueError, match=r"the training part of a split has no row of group"):
        gap_search(0.3, metric=metric, cv=KFold(2)).fit(X, Y, sensitive_features=blocks)


def test_a_group_without_weight_in_a_test_part_is_refused():
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    weight = np.ones(len(Y))
    weight[folds[0][1][GROUPS[folds[0][1]] == 1]] = 0.0
    with pytest.raises(ValueError, match="group '1' has no rows for its true positive rate"):
        gap_search(0.3, cv=folds).fit(X, Y, sensitive_features=GROUPS, sample_weight=weight)


def test_splits_that_test_what_they_train_on_are_refused():
    rows = np.arange(len(Y))
    overlapping = [(rows, rows[::2]), (rows, rows[1::2])]
    with pytest.raises(ValueError, match="without overlap"):
        gap_search(0.3, cv=overlapping).fit(X, Y, sensitive_features=GROUPS)
    masks = [(rows % 2 == 0, rows % 2 == 1), (rows % 2 == 1, rows % 2 == 0)]
    by_mask = gap_search(0.9, cv=masks, param_values=0.1).fit(X, Y, sensitive_features=GROUPS)
    positions = [tuple(map(np.flatnonzero, split)) for split in masks]
    by_position = gap_search(0.9, cv=positions, param_values=0.1)
    assert_same_results(by_mask, by_position.fit(X, Y, sensitive_features=GROUPS))


def test_a_fit_that_fails_leaves_no_older_model(monkeypatch):
    search = gap_search(0.9, param_values=0.1, cv=2).fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match=r"none of the candidates \(1\)"):
        search.set_params(max_gap=0).fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(NotFittedError):
        search.predict(X)
    search.set_params(max_gap=0.9, estimator=PAPER)
    interrupt_in(monkeypatch, 3)  # the last fit, on all rows
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(NotFittedError):
        search.predict(X)


def test_scores_that_cannot_be_used():
    with pytest.raises(ValueError, match=r"is not a number at max_gap=0\.1"):
        gap_search(0.8, scoring=lambda *_: np.nan).fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        gap_search(0.9, scoring=lambda model, X, y: 1.0).fit(
            X, Y, sensitive_features=GROUPS, sample_weight=np.ones(len(Y))
        )
    with pytest.raises(ValueError, match="memory= needs a scoring by name"):
        gap_search(0.9, scoring=lambda *_: 1.0, memory="unused").fit(
            X, Y, sensitive_features=GROUPS
        )


def test_constraints_by_row_cannot_be_cut_into_folds():
    rows = np.ones((len(Y), 1)) * (Y[:, None] > 0) * (2 * GROUPS[:, None] - 1)
    search = gap_search(0.9, estimator=clone(PAPER).set_params(constraints=rows), metric="accuracy")
    with pytest.raises(ValueError, match="1500"):
        search.fit(X, Y, sensitive_features=GROUPS)


# The guides


@pytest.mark.slow
@pytest.mark.parametrize("page", ["guide/frontier.md", "recipes/cross-validation.md"])
def test_the_code_of_the_guides_runs(page, capsys):
    import matplotlib as mpl

    mpl.use("Agg")
    text = (Path(__file__).parents[1] / "docs" / page).read_text("utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, page, "exec"), names)
    assert hasattr(names["search"], "best_estimator_")
    assert ("the best score of the" in capsys.readouterr().out) == (page == "guide/frontier.md")


# A population of which everything is known

POPULATION = make_population()
TARGET = 0.12


def test_the_known_frontier_agrees_with_a_large_sample_and_with_a_search():
    rng = np.random.default_rng(0)
    predicts = rng.integers(2, size=len(POPULATION.share))
    rows = dict(zip(map(tuple, POPULATION.X), predicts, strict=True))
    features, y, groups = POPULATION.sample(200_000, 0)
    predicted = np.array([rows[tuple(row)] for row in features])
    assert POPULATION.accuracy(predicts) == pytest.approx(np.mean(y == predicted), abs=0.005)
    gap = equal_opportunity_difference(y, predicted, sensitive_features=groups)
    assert POPULATION.gap(predicts) == pytest.approx(gap, abs=0.01)
    # Group thresholds on the chance of label 1 are optimal up to ties; search them all.
    best = 0.0
    for low, high in product(np.linspace(0, 1, 60), repeat=2):
        chosen = POPULATION.positive > np.where(POPULATION.groups == 0, low, high)
        if POPULATION.gap(chosen) <= TARGET:
            best = max(best, POPULATION.accuracy(chosen))
    assert best <= POPULATION.best_accuracy(TARGET) <= best + 0.01


def runs_above_the_target(rule, repetitions):
    """Of so many samples, in how many a model was chosen, and chosen above the target."""
    chosen = above = 0
    for seed in range(repetitions):
        features, y, groups = POPULATION.sample(6000, seed)
        search = GapSearchCV(
            FairBoostClassifier(
                n_estimators=10, max_leaf_nodes=8, learning_rate=0.5, random_state=seed
            ),
            TARGET,
            selection_rule=rule,
            confidence=0.9,
            cv=3,
            param_values=[0.02, 0.05, 0.08, 0.12, 0.16],
            if_none="nearest",
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search.fit(features, y, sensitive_features=groups)
        predicts = search.predict(POPULATION.X)
        gap = POPULATION.gap(predicts)
        assert POPULATION.accuracy(predicts) <= POPULATION.best_accuracy(gap) + 1e-9
        chosen += search.met_
        above += search.met_ and gap > TARGET
    return chosen, above


@pytest.mark.slow
def test_the_chosen_models_true_gap_meets_the_target_as_often_as_stated():
    repetitions = 30
    allowed = stats.binom.ppf(0.95, repetitions, 0.1)
    chosen, above = runs_above_the_target("upper", repetitions)
    assert chosen >= repetitions / 2, "too few choices to say anything"
    assert above <= stats.binom.ppf(0.95, chosen, 0.1)
    _, above_control = runs_above_the_target("mean", repetitions)
    assert above_control > allowed, "the control should fail, or the test shows nothing"
