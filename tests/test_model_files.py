"""Model files: equal to the last bit after a round trip, and hostile ones refused in a sentence."""

import base64
import copy
import gzip
import hashlib
import io
import json
import os
import pickle
import re
import stat
import sys
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from commands import run
from conftest import make_sample
from fairproj import FairBoostClassifier, FairProjClassifier, ModelFileError, constraints, load
from fairproj.boosting import losses
from fairproj.engines.lightgbm import ensemble as lightgbm_ensemble
from fairproj.engines.sklearn import ConstantLearner
from fairproj.io import atomic, model_file
from fairproj.report._words import certificate_words

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data"
FIRST_LINE = '{{"format":"fairproj model","format_version":2,"sha256":"{}","model":'


def fit(X, y, groups=None, **parameters):
    return FairProjClassifier(**{"n_estimators": 8} | parameters).fit(
        X, y, sensitive_features=groups
    )


def fit_loop(X, y, groups=None, **parameters):
    usual = {"n_estimators": 8, "max_gap": 0.3, "validation_fraction": None}
    return FairBoostClassifier(**usual | parameters).fit(X, y, sensitive_features=groups)


def frame(n_rows=300, seed=0):
    """Numbers, numbers with gaps, categories of text and of integers, text, booleans."""
    rng = np.random.default_rng(seed)
    X, y, groups = make_sample(n_rows, seed=seed)
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "gaps"])
    table.loc[rng.random(n_rows) < 0.2, "gaps"] = np.nan
    table["kind"] = pd.Categorical(rng.choice(["x", "y", "z é", 'q"\n'], n_rows))
    table["number"] = pd.Categorical(np.where(X[:, 3] > 0, 5, rng.choice([3, 8], n_rows)))
    table["word"] = rng.choice(["one", "two", None], n_rows)
    table["flag"] = X[:, 4] > 0
    table["sex"] = np.where(groups == 1, "f", "m")
    return table, y


def assert_same(model, other, X):
    """Everything that a user can see is equal, numbers to the last bit."""
    assert type(other) is type(model)
    for method in ("decision_function", "predict", "predict_proba"):
        one, two = getattr(model, method)(X), getattr(other, method)(X)
        assert one.dtype == two.dtype
        assert one.tobytes() == two.tobytes() if one.dtype != object else (one == two).all()
    assert_same_parameters(model, other)
    assert other.history_ == model.history_
    pd.testing.assert_frame_equal(
        model.history_.to_frame(), other.history_.to_frame(), check_exact=True
    )
    assert other.certificate_ == model.certificate_
    assert repr(other.certificate_) == repr(model.certificate_)
    assert other.group_values_ == model.group_values_
    assert other.classes_.dtype == model.classes_.dtype
    assert other.n_features_in_ == model.n_features_in_
    assert hasattr(other, "feature_names_in_") == hasattr(model, "feature_names_in_")
    if hasattr(model, "feature_names_in_"):
        assert list(other.feature_names_in_) == list(model.feature_names_in_)
    assert hasattr(other, "threshold_") == hasattr(model, "threshold_")
    assert getattr(other, "threshold_", None) == getattr(model, "threshold_", None)
    assert getattr(other, "price_", None) == getattr(model, "price_", None)
    assert hasattr(other, "baseline_") == hasattr(model, "baseline_")
    if hasattr(model, "baseline_"):
        assert_same(model.baseline_, other.baseline_, X)
    for stage, other_stage in zip(
        model.staged_decision_function(X), other.staged_decision_function(X), strict=True
    ):
        assert stage.tobytes() == other_stage.tobytes()


def assert_same_parameters(model, other):
    """Sequences come back as lists."""
    one, two = (m.get_params(deep=False) for m in (model, other))
    assert repr(one.pop("estimator")) == repr(two.pop("estimator"))
    assert list(one) == list(two)
    for name, value in one.items():
        if isinstance(value, tuple | np.ndarray):
            value = list(value)
        assert two[name] == value
        assert isinstance(two[name], dict) == isinstance(value, dict)


def round_trip(model, X, tmp_path, **how):
    path = tmp_path / "model.fairproj"
    model.save(path)
    other = load(path, **how)
    assert_same(model, other, X)
    if model.estimator is None:
        assert model.feature_importances_.tobytes() == other.feature_importances_.tobytes()
        again = tmp_path / "again.fairproj"
        other.save(again)
        assert again.read_bytes() == path.read_bytes()
    assert not list(tmp_path.glob(".*"))
    return other


# Round trips


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"votes": "confidence", "max_depth": 3, "learning_rate": 0.5},
        {"max_depth": 12, "max_leaf_nodes": 60, "n_estimators": 3},
        {"constraints": None},
        {"constraints": "equalized_odds", "epsilon": [0.1, 0.5], "random_state": 3, "n_jobs": 2},
        {"constraints": "equalized_odds", "epsilon": [0.1, 1.0]},
        {"constraints": "demographic_parity", "epsilon": 1.0},
        {"constraints": "accuracy_parity", "epsilon": 0},
        {"pos_label": -1, "max_bins": 16, "min_weight_fraction_leaf": 0.05},
    ],
)
def test_round_trip_of_numbers(tmp_path, parameters):
    X, y, groups = make_sample(400)
    round_trip(fit(X, y, groups, **parameters), make_sample(200, seed=9)[0], tmp_path)


FIRST_ORDER = {"tree_step": "first_order"}
TREE = DecisionTreeClassifier(max_depth=2)
SEVERAL = {
    "constraints": ["equalized_odds", "demographic_parity"],
    "max_gap": [[0.2, 0.3], 0.4],
}
BOOSTS = {
    "default": {"n_estimators": 100, "max_gap": 0.05, "validation_fraction": "auto"},
    "small": {},
    "exponential": {"loss": "exponential", "learning_rate": 0.5},
    "discrete": FIRST_ORDER | {"votes": "discrete", "max_depth": 3},
    "selection rate": {"selection_rate": 0.3},
    "threshold": {"threshold": 0.8, "pos_label": -1},
    "error rate": {"max_false_positive_rate": 0.1, "n_estimators": 20},
    "first class": {"pos_label": -1, "max_gap": 0.1},
    "trees": {
        "min_samples_leaf": 5,
        "l2_regularization": 1.0,
        "subsample": 0.7,
        "max_features": 0.8,
        "monotonic_cst": np.array([1, -1, 0, 0, 0]),
        "random_state": 1,
    },
    "balanced": {"class_weight": "balanced", "margin": "one_se"},
    "class weight": {"class_weight": {1: 2, -1: 0.5}},
    "list": SEVERAL,
    "one in a list": {"constraints": ("accuracy_parity",)},
    "ratio": {"constraints": "selection_ratio", "max_gap": 0.2},
    "plain": {
        "constraints": None,
        "early_stopping": True,
        "validation_fraction": "auto",
        "random_state": np.int64(0),
    },
    "held out": {"validation_fraction": 0.3, "random_state": 0},
    "baseline": {"baseline": True, "validation_fraction": 0.3, "random_state": 0},
    "baseline in training": {"baseline": True, "n_estimators": 20, "selection_rate": 0.3},
    "baseline of trees": FIRST_ORDER | {"baseline": True, "estimator": TREE, "random_state": 2},
    "logistic": FIRST_ORDER | {"estimator": LogisticRegression(), "random_state": 1},
}


@pytest.mark.parametrize("parameters", BOOSTS.values(), ids=BOOSTS)
@pytest.mark.filterwarnings("ignore:no useful round", "ignore:the model says the same")
@pytest.mark.filterwarnings("ignore:some groups have fewer")
def test_round_trip_of_fairboost(tmp_path, parameters):
    X, y, groups = make_sample(800)
    model, rows = fit_loop(X, y, groups, **parameters), make_sample(200, seed=9)[0]
    other = round_trip(model, rows, tmp_path, trusted=["sklearn.tree._tree.Tree"])
    assert other.history_.closed_loop
    assert all(record.kl is None for record in other.history_)


def biased(X, y, groups):
    """One stump of a feature that tells the groups apart: only a bias brings the gap within."""
    return fit_loop(X, y, groups, n_estimators=1, max_gap=0.1, max_leaf_nodes=4, learning_rate=1.0)


def test_a_bias_is_kept(tmp_path):
    for seed in range(20):
        X, y, groups = make_sample(800, seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = biased(X, y, groups)
        if model.history_.bias:
            break
    assert model.certificate_.met
    assert model.certificate_.bias == model.history_.bias != 0
    other = round_trip(model, X, tmp_path)
    assert other._ensemble.intercept == model._ensemble.intercept
    record = json.loads((tmp_path / "model.fairproj").read_text("utf-8"))["model"]
    for where, value, match in (
        (["history", "bias"], 0.25, r"history\.bias is 0\.25, which is not the bias of"),
        (["certificate", "bias"], 0.25, r"certificate\.bias is 0\.25"),
        ([*ROUND, "observed", "bias", "value"], 0.25, "which is not the bias of"),
        ([*ROUND, "observed", "bias"], None, "which is not the bias of"),
        ([*ROUND, "observed", "bias", "rates"], [], r"observed\.bias\.rates has length 0"),
        ([*ROUND, "observed", "bias", "accuracy"], 2.0, r"observed\.bias\.accuracy is 2"),
        ([*ROUND, "observed", "bias", "loss"], -1.0, r"observed\.bias\.loss is -1"),
        ([*ROUND, "observed", "bias", "gaps", 0], 2.0, r"observed\.bias has a rate or a gap that"),
    ):
        refuse(change(record, where, value, tmp_path / "m"), match)


@pytest.mark.parametrize("field", ["events", "watched"])
def test_nothing_was_watched_where_training_weights_were_balanced(tmp_path, field):
    X, y, groups = make_sample(200)
    fit(X, y, groups, n_estimators=3).save(tmp_path / "good")
    record = json.loads((tmp_path / "good").read_text("utf-8"))["model"]
    damaged = change(record, ["history", field], ["women"], tmp_path / "m")
    refuse(damaged, r"history\.events and history\.watched must be empty")


def test_weights_and_directions_by_name(tmp_path):
    X, y = frame()
    labels = np.where(y > 0, "yes", "no")
    model = fit_loop(
        X,
        labels,
        sensitive_columns="sex",
        pos_label="no",
        class_weight={"yes": np.float64(3.0), "no": 1},
        monotonic_cst={"a": 1, "b": -1},
    )
    other = round_trip(model, frame(seed=5)[0].drop(columns="sex"), tmp_path)
    assert other.class_weight == {"yes": 3.0, "no": 1}
    assert other.monotonic_cst == {"a": 1, "b": -1}
    other.fit(X, labels)
    assert_same(model, other, X)


def test_a_baseline_can_be_saved_by_itself(tmp_path):
    X, y, groups = make_sample(800)
    model = fit_loop(X, y, groups, baseline=True)
    model.save(tmp_path / "m", metadata={"a": 1})
    plain = round_trip(load(tmp_path / "m").baseline_, X, tmp_path)
    assert not hasattr(plain, "baseline_")
    assert (plain.constraints, plain.baseline) == (None, False)
    direct = fit_loop(X, y, groups, constraints=None)
    assert direct.decision_function(X).tobytes() == plain.decision_function(X).tobytes()


def test_an_own_loss_is_not_needed_to_predict(tmp_path, monkeypatch):
    X, y, groups = make_sample(400)
    losses.register_loss("own", losses.LogisticLoss())
    try:
        model = fit_loop(X, y, groups, loss="own")
        model.save(tmp_path / "m")
    finally:
        del losses._REGISTRY["own"]
    other = load(tmp_path / "m")
    assert other.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


@pytest.mark.parametrize("fit_one", [fit, fit_loop])
@pytest.mark.parametrize("depth", [None, 5])
@pytest.mark.filterwarnings("ignore:no useful round")
def test_round_trip_of_a_frame(tmp_path, fit_one, depth):
    X, y = frame()
    model = fit_one(X, y, max_depth=depth, sensitive_columns="sex")
    other = round_trip(model, frame(seed=5)[0].drop(columns="sex"), tmp_path)
    assert other.encoding_.booleans == model.encoding_.booleans
    assert other.encoding_.had_missing.tolist() == model.encoding_.had_missing.tolist()


def test_round_trip_of_polars_and_sparse(tmp_path):
    X, y = frame()
    table = pl.DataFrame(
        {
            "a": X["a"].to_numpy(),
            "word": X["word"].astype(object).where(X["word"].notna(), None).tolist(),
            "sex": X["sex"].tolist(),
        }
    )
    round_trip(fit(table, y, sensitive_columns="sex"), table, tmp_path)
    numbers = sparse.csr_matrix(np.where(X[["a", "b"]] > 0, X[["a", "b"]], 0.0))
    round_trip(fit(numbers, y, X["sex"]), numbers, tmp_path)


@pytest.mark.parametrize("columns", ["sex", ["sex", "flag"], 7, [7, 6]])
def test_round_trip_with_sensitive_columns(tmp_path, columns):
    X, y = frame()
    other = round_trip(fit(X, y, sensitive_columns=columns), X, tmp_path)
    assert np.isfinite(other.decision_function(X)).all()


def test_round_trip_of_crossed_groups(tmp_path):
    X, y = frame()
    model = fit(X[["a", "b"]], y, X[["sex", "flag"]])
    assert all(isinstance(group, tuple) for group in model.group_values_)
    round_trip(model, X[["a", "b"]], tmp_path)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([3, 7]),
        np.array([0, 1], dtype=np.uint8),
        np.array([0, 2**63 + 1], dtype=np.uint64),
        np.array([False, True]),
        np.array([0.0, 1.0]),
        np.array([-1, 1], dtype=np.float32),
        np.array([0, 7], dtype=np.float16),
        np.array(['a"b\n', "né"]),
    ],
    ids=repr,
)
def test_round_trip_of_labels(tmp_path, labels):
    X, y, groups = make_sample(300)
    positive = labels[1].item() if labels.dtype != object else "yes"
    model = fit(X, labels[(y > 0).astype(int)], groups, pos_label=positive)
    other = round_trip(model, X, tmp_path)
    assert type(other.predict(X)[0]) is type(model.predict(X)[0])
    assert other.pos_label == labels[1]


@pytest.mark.parametrize(
    "values",
    [[3, 5, 8], ["x", "y", "z"], [0.5, 1.5, 2.5], [True, False], ["", " ", "\t"], ["only"]],
    ids=repr,
)
def test_round_trip_of_categories(tmp_path, values):
    X, y, groups = make_sample(300)
    table = pd.DataFrame({"a": X[:, 0]})
    table["c"] = pd.Categorical([values[int(v * 10) % len(values)] for v in abs(X[:, 1])])
    round_trip(fit(table, y, groups), table, tmp_path)


def test_categories_in_an_array(tmp_path):
    X, y, groups = make_sample(300)
    X[:, 1] = np.round(X[:, 1])
    round_trip(fit(X, y, groups, categorical_features=[1]), X, tmp_path)


def test_a_learner_without_mistakes(tmp_path):
    X, _, groups = make_sample(300)
    model = fit(X, X[:, 0] > 0, groups, constraints=None)
    assert model.history_.stop_reason.name == "PERFECT"
    round_trip(model, X, tmp_path)


@pytest.mark.parametrize("fit_one", [fit, fit_loop])
def test_a_model_of_one_constant_tree(tmp_path, fit_one):
    y, groups, X = np.arange(300) % 2, np.arange(300) % 3, np.zeros((300, 2))
    with pytest.warns(UserWarning, match="majority class"):
        model = fit_one(X, y, groups)
    round_trip(model, X, tmp_path)


@pytest.mark.parametrize(
    "names",
    [
        ["a b", "c=d", "e,f", 'g"h', "i\nj"],
        ["alter_ß", "größe", "名前", "é", "🙂"],
        ["Tree=0", "end of trees", "\r", "\0", "[0:1]"],
    ],
)
def test_column_names_of_all_kinds(tmp_path, names):
    X, y, groups = make_sample(300)
    table = pd.DataFrame(X, columns=names)
    round_trip(fit(table, y, groups), table, tmp_path)


def test_columns_named_by_numbers(tmp_path):
    X, y, groups = make_sample(300)
    table = pd.DataFrame(X, columns=[10, 20, 30, 40, 50])
    round_trip(fit(table, y, groups), table, tmp_path)


def test_metadata_is_kept_and_can_be_replaced(tmp_path):
    X, y, groups = make_sample(200)
    model, path = fit(X, y, groups), tmp_path / "m"
    metadata = {"owner": "café", "scores": [1, 2.5, None, True], "deep": {"a": {}}, "n": 10**30}
    model.save(path, metadata=metadata)
    other = load(path)
    assert other.metadata_ == metadata
    other.save(path)
    assert load(path).metadata_ == metadata
    other.save(path, metadata={})
    assert load(path).metadata_ == {}


@pytest.mark.parametrize("constraint", ["object", "array"])
def test_a_constraint_of_ones_own_is_left_out_with_a_warning(tmp_path, constraint):
    X, y, groups = make_sample(300)
    own = constraints.find_constraint("demographic_parity")
    if constraint == "array":
        own = np.where(groups == 1, 1.0, -1.0)[:, None]
    model = fit(X, y, groups, constraints=own)
    with pytest.warns(UserWarning, match="constraints=None"):
        model.save(tmp_path / "m")
    other = load(tmp_path / "m")
    assert other.constraints is None
    assert other.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert other._facts == model._facts


def test_warm_start_goes_on_as_if_there_had_been_no_file(tmp_path):
    X, y = frame()
    model = fit(X, y, sensitive_columns="sex", warm_start=True, max_depth=2)
    other = round_trip(model, X, tmp_path)
    for one in (model, other):
        one.set_params(n_estimators=15).fit(X, y)
    assert_same(model, other, X)
    with pytest.raises(ValueError, match="warm_start continues with the rows"):
        other.set_params(n_estimators=20).fit(X, -y)


def test_random_estimators_go_on_with_the_same_numbers(tmp_path):
    X, y, groups = make_sample(300)
    tree = DecisionTreeClassifier(max_depth=2, max_features=1)
    model = fit(X, y, groups, estimator=tree, warm_start=True, random_state=4)
    other = round_trip(model, X, tmp_path, trusted=["sklearn.tree._tree.Tree"])
    for one in (model, other):
        one.set_params(n_estimators=12).fit(X, y, sensitive_features=groups)
    assert_same(model, other, X)


def test_estimators_through_skops(tmp_path):
    X, y, groups = make_sample(300)
    round_trip(fit(X, y, groups, estimator=LogisticRegression()), X, tmp_path)
    confident = fit(X, y, groups, estimator=LogisticRegression(C=0.1), votes="confidence")
    round_trip(confident, X, tmp_path)
    fit(X, y, groups, estimator=DecisionTreeClassifier(max_depth=1)).save(tmp_path / "m")
    message = refuse(tmp_path / "m", r"sklearn\.tree\._tree\.Tree.*trusted=")
    assert "skops cannot read" not in message


def test_learners_that_hold_sparse_matrices(tmp_path):
    """skops compresses those, and they are larger in memory than in the file."""
    X, y, groups = make_sample(200)
    X = sparse.csr_matrix(np.where(abs(X) > 1, X.round(1), 0.0))
    model = fit(X, y, groups, n_estimators=2, estimator=SVC(kernel="linear"))
    assert sparse.issparse(model.estimators_[0].support_vectors_)
    round_trip(model, X, tmp_path, trusted=["scipy.sparse._csr.csr_matrix"])


def test_constant_learners_are_trusted(tmp_path):
    y, groups, X = np.arange(300) % 2, np.arange(300) % 3, np.zeros((300, 2))
    with pytest.warns(UserWarning, match="majority class"):
        model = fit(X, y, groups, estimator=LogisticRegression())
    assert isinstance(model.estimators_[0], ConstantLearner)
    round_trip(model, X, tmp_path)


def test_without_skops_it_says_what_to_install(tmp_path, monkeypatch, good_skops):
    X, y, groups = make_sample(200)
    model = fit(X, y, groups, estimator=LogisticRegression())
    path = write(good_skops, tmp_path / "m")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setitem(sys.modules, "skops", None)
    for act in (lambda: model.save(tmp_path / "n"), lambda: load(path)):
        with pytest.raises(ImportError, match=r"pip install 'fairproj\[skops\]'"):
            act()


def test_without_msgspec_it_says_what_to_install(tmp_path, monkeypatch, good):
    X, y, groups = make_sample(200)
    model, path = fit(X, y, groups), write(good, tmp_path / "m")
    monkeypatch.setitem(sys.modules, "msgspec", None)
    for act in (lambda: model.save(tmp_path / "n"), lambda: load(path)):
        with pytest.raises(ImportError, match=r"pip install 'fairproj\[files\]'"):
            act()
    result = run("info", path, code=1)
    assert result.stderr.count("\n") == 1
    assert "pip install 'fairproj[files]'" in result.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["m"]


# Saving


def test_save_refuses_what_it_cannot_keep(tmp_path):
    X, y, groups = make_sample(200)
    path = tmp_path / "m"
    with pytest.raises(ValueError, match="not fitted"):
        FairProjClassifier().save(path)
    dates = pd.to_datetime(np.where(groups == 1, "2020-01-01", "2021-01-01"))
    with pytest.raises(ValueError, match="cannot be stored in a model file"):
        fit(X, y, dates).save(path)
    model = fit(X, y, groups)
    model.classes_ = np.array([0, 1.5], dtype=object)
    with pytest.raises(ValueError, match=r"cannot hold this model: classes\.values"):
        model.save(path)
    model = fit(X, y, groups)
    model._ensemble.votes[0] = float("nan")
    with pytest.raises(ValueError, match=r"cannot hold this model: ensemble\.votes"):
        model.save(path)
    assert not list(tmp_path.iterdir())


def test_a_subclass_is_refused_when_saving(tmp_path):
    class Mine(FairProjClassifier):
        pass

    X, y, groups = make_sample(200)
    model = Mine(n_estimators=2).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="got Mine"):
        model.save(tmp_path / "m")


def test_dates_as_categories_are_refused_when_saving(tmp_path):
    """They would come back as numbers that no date equals."""
    X, y, groups = make_sample(200)
    days = pd.to_datetime(np.where(X[:, 1] > 0, "2020-01-01", "2021-01-01"))
    for unit in ("ns", "s"):
        table = pd.DataFrame({"a": X[:, 0], "day": pd.Categorical(days.as_unit(unit))})
        with pytest.raises(ValueError, match=r"datetime64.* cannot be stored.*text or numbers"):
            fit(table, y, groups).save(tmp_path / "m")


@pytest.mark.parametrize(
    "metadata",
    [
        *([1], "text", {1: "a"}, {(1, 2): 3}, {"a": (1, 2)}, {"a": "\ud800"}, {"a": np.nan}),
        *({"a": {1, 2}}, {"a": object()}, {"a": b"x"}, {"a": np.inf}, {"a": np.zeros(2)}),
    ],
    ids=lambda metadata: re.sub(r" at 0x\w+", "", repr(metadata)),
)
def test_metadata_must_come_back_as_they_were(tmp_path, metadata):
    X, y, groups = make_sample(200)
    with pytest.raises(ValueError, match="metadata must"):
        fit(X, y, groups).save(tmp_path / "m", metadata=metadata)
    assert not list(tmp_path.iterdir())


def test_metadata_of_great_depth_are_refused(tmp_path, good):
    deep = "deeper than 100 levels"
    X, y, groups = make_sample(200)
    model = fit(X, y, groups)
    for depth in (100, 101, 300):
        metadata = {}
        for _ in range(depth - 1):
            metadata = {"a": metadata}
        path = change(good, ["metadata"], metadata, tmp_path / "m")
        if depth <= 100:
            model.save(tmp_path / "n", metadata=metadata)
            assert load(path).metadata_ == metadata
        else:
            refuse(path, deep)
            with pytest.raises(ValueError, match=deep):
                model.save(tmp_path / "n", metadata=metadata)


def test_an_older_file_stays_if_writing_fails(tmp_path, monkeypatch):
    X, y, groups = make_sample(200)
    model, path = fit(X, y, groups), tmp_path / "m"
    model.save(path)
    before = path.read_bytes()

    def write_half(self, text, encoding):
        self.write_bytes(text.encode(encoding)[:1000])
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(atomic.Path, "write_text", write_half)
        with pytest.raises(OSError, match="no space"):
            model.save(path)
    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "replace", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_links_and_modes_stay(tmp_path):
    X, y, groups = make_sample(200)
    model = fit(X, y, groups)
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("target")
    model.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert load(link).decision_function(X).tobytes() == model.decision_function(X).tobytes()


# The format


def test_the_checksum_is_that_of_the_second_line(tmp_path):
    """What docs/guide/model-files.md promises to other readers of the format."""
    X, y, groups = make_sample(200)
    path = tmp_path / "m"
    fit(X, y, groups).save(path, metadata={"a": "line\nbreak"})
    raw = path.read_bytes()
    content = json.loads(raw)
    assert list(content) == ["format", "format_version", "sha256", "model"]
    assert (content["format"], content["format_version"]) == ("fairproj model", 2)
    assert raw.count(b"\n") == 3
    line = raw.split(b"\n")[1]
    assert content["sha256"] == hashlib.sha256(line).hexdigest()
    assert content["model"] == json.loads(line)


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "guide" / "model-files.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 2
    exec(compile("\n".join(blocks), "model-files.md", "exec"), {})


def _margins(model, rows):
    return [value.hex() for value in model.decision_function(rows).tolist()]


@pytest.mark.parametrize("name", ["fairproj", "fairboost", "first-order"])
def test_the_golden_file_predicts_as_it_did(name):
    """tools/make_golden.py wrote it; once version 2 is frozen it must never be written again."""
    expected = json.loads((DATA / f"golden-v2-{name}.json").read_text("utf-8"))
    rows = pd.DataFrame(expected["rows"]["data"], columns=expected["rows"]["columns"])
    for column in ("housing", "district"):
        rows[column] = rows[column].astype("category")
    model = load(DATA / f"golden-v2-{name}.fairproj")
    assert model.predict(rows).tolist() == expected["labels"]
    assert _margins(model, rows) == expected["decision_function"]
    baseline = getattr(model, "baseline_", None)
    assert (baseline and _margins(baseline, rows)) == expected["baseline"]
    assert getattr(model, "threshold_", 0.5) == expected["threshold"]
    assert model.certificate_.n_rounds == expected["n_rounds"]
    assert model.history_.closed_loop == (name != "fairproj")
    assert model.metadata_ == {"made by": "tools/make_golden.py"}


def test_files_of_version_1_are_refused():
    message = refuse(DATA / "golden-v1.fairproj", "version 1, .* reads version 2")
    assert "train the model again" in message


# Refusals


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The record of a good file, with categories and a baseline."""
    X, y = frame()
    path = tmp_path_factory.mktemp("good") / "m"
    fit_loop(X, y, max_depth=3, sensitive_columns="sex", baseline=True).save(path)
    return json.loads(path.read_text("utf-8"))["model"]


@pytest.fixture(scope="module")
def good_skops(tmp_path_factory):
    X, y, groups = make_sample(200)
    path = tmp_path_factory.mktemp("good") / "m"
    fit(X, y, groups, n_estimators=2, estimator=LogisticRegression()).save(path)
    return json.loads(path.read_text("utf-8"))["model"]


def refuse(path, match=None, **how):
    with pytest.raises(ModelFileError, match=match) as refusal:
        load(path, **how)
    message = str(refusal.value)
    assert type(refusal.value) is ModelFileError
    assert message.isprintable()
    assert len(message) < 700
    assert str(path) in message
    return message


def write(record, path):
    """A file with a right checksum that holds this record, which may be bytes."""
    raw = record if isinstance(record, bytes) else msgspec.json.encode(record)
    first = FIRST_LINE.format(hashlib.sha256(raw).hexdigest())
    path.write_bytes(first.encode() + b"\n" + raw + b"\n}\n")
    return path


def change(good, where, value, path):
    """The good record with one value replaced (or removed, by ...) and a right checksum."""
    record = copy.deepcopy(good)
    *way, last = where
    part = record
    for key in way:
        part = part[key]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return write(record, path)


@pytest.mark.parametrize(
    ("raw", "match"),
    [
        (b"", "it is empty"),
        (b"  \n", "it is empty"),
        (b"\x00\x01\xff\xfe", "something else"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "something else"),
        (gzip.compress(b"{}", mtime=0), "something else"),
        (pickle.dumps({"format": "fairproj model"}), "something else"),
        (b"PK\x03\x04" + bytes(60), "something else"),
        (b"[]", "something else"),
        (b"null", "something else"),
        (b'{"format": "other"}', "something else"),
        (b'{"format": "fairproj model"}', "something else"),
        (b'{"format":"fairproj model","format_version":1}', "version 1, .* reads version 2"),
        (b'{"format":"fairproj model","format_version":3}', "version 3, .* reads version 2"),
        (b'{"format": "fairproj model", "format_version": 2}', "checksum"),
        (b'{"format": "fairproj model", "format_version": true}', "something else"),
        (b'{"format": "fairproj model", "format_version": "2"}', "something else"),
        (b'{"format": "fairproj model", "format_version": ' + b"9" * 4000 + b"}", "something"),
        (b"[" * 100_000, "something else"),
        (FIRST_LINE.format("0" * 64).encode() + b"\n" + b"[" * 100_000 + b"\n}\n", "checksum"),
    ],
    ids=lambda value: repr(value[:24]),
)
def test_other_files_are_refused(tmp_path, raw, match):
    path = tmp_path / "m"
    path.write_bytes(raw)
    refuse(path, match)


def test_what_is_not_a_regular_file_is_refused(tmp_path):
    refuse(tmp_path, "not a regular file")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refuse(pipe, "not a regular file")
    refuse(Path("/dev/zero"), "not a regular file")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def test_large_files_are_refused(tmp_path, good, monkeypatch):
    path = write(good, tmp_path / "m")
    size = path.stat().st_size
    refuse(path, f"{size:,} bytes, and at most {size - 1:,} .*max_bytes", max_bytes=size - 1)
    assert load(path, max_bytes=size)
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(1 << 40)
    refuse(huge, "at most 1,073,741,824")
    n_values = sum(path.read_bytes().count(mark) for mark in (b",", b"[", b"{"))
    monkeypatch.setattr(model_file, "MOST_VALUES", n_values)
    model = load(path)
    monkeypatch.setattr(model_file, "MOST_VALUES", n_values - 5)
    refuse(path, f"more than {n_values - 5:,} values")
    with pytest.raises(ValueError, match=r"more than .* values"):
        model.save(tmp_path / "n")


def test_cut_files_are_refused(tmp_path, good):
    path = tmp_path / "m"
    raw = write(good, path).read_bytes()
    for end in [*range(200), *np.linspace(200, len(raw) - 1, 60).astype(int)]:
        path.write_bytes(raw[:end])
        refuse(path, "cut short" if end else "empty")


def test_any_changed_byte_shows_in_the_checksum(tmp_path, good):
    path = tmp_path / "m"
    raw = write(good, path).read_bytes()
    for at in [*range(60, 160), *np.linspace(160, len(raw) - 1, 60).astype(int)]:
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        refuse(path, "checksum does not match")
    path.write_bytes(raw + b"\n")
    refuse(path, "checksum does not match")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"n_features":7', b'"n_features": 7'),
        (b'"n_features":7', b'"n_features":7,"n_features":7'),
        (b'"n_features":7', b'"n_features":8,"n_features":7'),
        (b'"n_features":7', b'"n_features":7.0'),
        (b'"n_features":7', b'"n_features":NaN'),
        (b'"n_features":7', b'"n_features":' + b"9" * 100_000),
        (b'"link_scale":1.0', b'"link_scale":1'),
        (b'"link_scale":1.0', b'"link_scale":10e-1'),
        (b'"link_scale":1.0', b'"link_scale":1e999'),
        (b'"link_scale":1.0', b'"link_scale":null'),
        (b'"name":"a"', b'"name":"\\u0061"'),
        (b'"name":"a"', b'"name":"\xff"'),
        (b'"name":"a"', b'"name":"\\ud800"'),
        (b'"metadata":{}', b'"metadata":{"a":1,"a":2}'),
        (b'"metadata":{}', b'"metadata":' + b"[" * 100_000),
        (b'"metadata":{}', b'"metadata":' + b'{"a":' * 100_000),
        (b'"metadata":{}', b'"metadata":{"a":1e-400}'),
    ],
    ids=lambda value: repr(value[-20:]),
)
def test_json_that_is_written_otherwise_is_refused(tmp_path, good, old, new):
    raw = msgspec.json.encode(good)
    assert old in raw
    refuse(write(raw.replace(old, new, 1), tmp_path / "m"))


def test_every_part_is_needed(tmp_path, good, good_skops):
    """Without any of them, at every level, the file is refused, and so with one more."""
    for whole in (good, good_skops):
        for where in _places(whole):
            if where[0] in ("versions", "metadata") and len(where) > 1:
                continue
            *way, last = where
            if isinstance(last, str):
                refuse(change(whole, where, ..., tmp_path / "m"))
                refuse(change(whole, [*way, "n\new"], 1, tmp_path / "m"))


@pytest.mark.parametrize(
    "value",
    [
        -1,
        *(
            pytest.param(value, marks=pytest.mark.slow)
            for value in (None, True, 10**400, 1.5, "a\nb", [], {}, [[1]], {"tuple": [1]})
        ),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_wrong_types_are_refused_everywhere(tmp_path, good, good_skops, value):
    """Or they are right there, and the model opens and predicts."""
    X = frame()[0].drop(columns="sex")
    messages = []
    for whole, rows in ((good, X), (good_skops, np.zeros((3, 5)))):
        for where in _places(whole):
            path = change(whole, where, value, tmp_path / "m")
            try:
                model = load(path)
            except ModelFileError as error:
                messages.append(str(error))
                continue
            if where[0] not in ("feature_names", "columns", "sensitive_columns"):
                assert np.isfinite(model.decision_function(rows)).all()
            model.history_.to_frame(), str(model.certificate_), repr(model)
    assert len(messages) > 60
    assert all(map(str.isprintable, messages))


def _places(content, way=()):
    """Each part once: of a list its first entry."""
    keys = list(content) if isinstance(content, dict) else range(min(1, len(content)))
    for key in keys:
        yield [*way, key]
        if isinstance(content[key], dict | list):
            yield from _places(content[key], (*way, key))


ROUND = ["history", "rounds", 0]


@pytest.mark.parametrize(
    ("where", "value", "match"),
    [
        (["estimator"], "Pipeline", "Invalid enum value 'Pipeline'"),
        (["estimator"], "FairProjClassifier", "facts must be of a FairProjClassifier"),
        (["classes", "values"], [1, -1], "sort order"),
        (["classes", "values"], [1, 1], "different"),
        (["classes", "values"], [-1, 0, 1], "two labels"),
        (["classes"], {"dtype": "object", "values": ["a", 1]}, "one type"),
        (["classes"], {"dtype": "object", "values": [None, 1]}, "type object"),
        (["classes"], {"dtype": "int64", "values": ["a", "b"]}, "type int64"),
        (["classes"], {"dtype": "float16", "values": [0.0, 1e300]}, "do not fit"),
        (["classes"], {"dtype": "int8", "values": [0, 300]}, "int8"),
        (["classes"], {"dtype": "int64", "values": [0, 10**30]}, "int"),
        (["classes"], {"dtype": "str", "values": ["a", "b\0"]}, "do not fit"),
        (["classes"], {"dtype": "datetime64[ns]", "values": [0, 1]}, "Invalid enum value"),
        (["classes"], {"dtype": "object", "values": [[1], [2]]}, r"classes\.values"),
        (["groups"], [], "at least one group"),
        (["groups"], ["f", "f"], "different"),
        (["groups"], [["f", 1], "m"], "same number of columns"),
        (["groups"], [[["f"]]], r"groups"),
        (["parameters", "n_estimators"], 0, "n_estimators"),
        (["parameters", "n_jobs"], 0, "n_jobs"),
        (["parameters", "constraints"], 3, "constraints"),
        (["parameters", "constraints"], ["a", 3], "constraints"),
        (["parameters", "constraints"], [["a"]], "constraints"),
        (["parameters", "max_depth"], [3], r"parameters\.max_depth must not be a list"),
        (["parameters", "class_weight"], {"keys": ["a", "a"], "values": [1, 2]}, "different keys"),
        (["parameters", "class_weight"], {"keys": ["a"], "values": [1, 2]}, "a value for each"),
        (["parameters", "class_weight"], {"keys": [["a"]], "values": [1]}, "parameters"),
        (["parameters", "votes"], {"keys": ["a"], "values": [1]}, "must not be a mapping"),
        (["parameters", "tree_step"], "second_order", "tree_step"),
        (["parameters", "threshold"], 1.5, "threshold"),
        (["parameters", "engine"], "nothing", "engine='nothing' is unknown"),
        (["parameters", "engine"], "sklearn", "parameters.engine is 'sklearn'"),
        (["parameters", "loss"], None, "loss"),
        (["parameters", "max_gap"], ["x"], "max_gap must be numbers"),
        (["parameters", "max_gap"], [0.1, [0.1, "x"]], "max_gap must be numbers"),
        (["parameters", "max_gap"], -1.0, "max_gap must be numbers"),
        (["parameters", "max_gap"], True, "max_gap must be numbers"),
        (["parameters", "votes"], "no\nthing", "votes"),
        (["n_features"], 0, "n_features is 0"),
        (["n_features"], 10**9, "n_features is 1000000000"),
        (["n_features"], 8, "8 different names"),
        (["feature_names"], ["a"] * 7, "7 different names"),
        (["feature_names"], list("abcdefg"), "names in feature_names"),
        (["sensitive_columns"], ["sex", "sex"], "different columns"),
        (["columns"], None, "columns do not fit"),
        (["columns"], [], "7 different columns"),
        (["columns", 0, "name"], "b", "7 different columns"),
        (["columns", 0, "had_missing"], 1, "had_missing"),
        (["columns", 3, "categories", "values"], ["x", "x"], "different"),
        (["columns", 3, "categories", "values"], ["x", 1], "one type"),
        (["columns", 3, "categories", "values"], ["x", None], "type object"),
        (["columns", 3, "categories", "dtype"], "str", "must not be str"),
        (["history", "rounds"], [], "at least one round"),
        ([*ROUND, "kl"], 0.5, r"rounds\[0\].kl must be null"),
        ([*ROUND, "tv"], 1.5, "tv is 1.5; it must be between 0 and 1"),
        ([*ROUND, "error_q"], 2.0, "error_q is 2"),
        ([*ROUND, "error_w"], -0.5, "error_w is -0.5"),
        ([*ROUND, "vote"], 7.5, "votes in history.rounds"),
        ([*ROUND, "observed"], None, "observed must be there"),
        ([*ROUND, "observed", "rates"], [], r"rates has length 0; it must have \d"),
        ([*ROUND, "observed", "rates", 0], 1e300, "a rate or a gap that is 1e"),
        ([*ROUND, "observed", "gaps"], [0.1] * 9, "gaps has length 9"),
        ([*ROUND, "observed", "multipliers"], [], "multipliers has length 0"),
        ([*ROUND, "observed", "within"], 1, "within"),
        ([*ROUND, "observed", "loss"], -0.5, r"observed\.loss is -0\.5; it must be at least 0"),
        ([*ROUND, "observed", "cut"], 1e300, r"observed\.cut is 1e\+300; it must be within"),
        ([*ROUND, "observed", "flipped"], -1, r"observed\.flipped is -1"),
        ([*ROUND, "observed", "limit_multiplier"], -1.0, r"observed\.limit_multiplier is -1"),
        ([*ROUND, "observed", "slope_mass"], -1.0, r"observed\.slope_mass is -1"),
        ([*ROUND, "observed", "zero_loss"], -1.0, r"observed\.zero_loss is -1"),
        ([*ROUND, "observed", "cost_change"], 1e308, r"observed\.cost_change is 1e"),
        ([*ROUND, "observed", "accuracy"], -1.0, "accuracy is -1"),
        ([*ROUND, "observed", "train_error"], 2.0, "train_error is 2"),
        ([*ROUND, "observed", "log_cost_loss"], 1e308, "log_cost_loss is 1e"),
        ([*ROUND, "balance"], [0.0], "balance has length 1; it must have 0"),
        ([*ROUND, "log_loss"], 1e308, "log_loss is 1e"),
        (["history", "limits"], [], "limits must have length 1"),
        (["history", "limits"], [-1.0], "limits must have length 1"),
        (["history", "limits"], [None], r"limits\[0\]|limits\[\.\.\.\]"),
        (["history", "learning_rate"], 2.0, "learning_rate is 2"),
        (["history", "learning_rate"], 0.0, "learning_rate is 0"),
        (["history", "kept"], 10**9, "kept is 1000000000; it must be 1 to 8"),
        (["history", "kept"], 0, "kept is 0"),
        (["history", "kept"], None, "must be empty where history.kept is null"),
        (["history", "bias"], 0.5, r"history\.bias is 0\.5, which is not the bias of the last"),
        (["history", "bound"], "proved", "Invalid enum value 'proved'"),
        (["cut"], 0.25, r"cut is 0\.25, and the last round kept has 0"),
        (["history", "stop_reason"], "__class__", "Invalid enum value '__class__'"),
        (["facts"], {}, "facts"),
        (["certificate", "n_rounds"], 10**9, "n_rounds is 1000000000"),
        (["certificate", "gap"], None, "certificate does not fit a FairBoostClassifier"),
        (["certificate", "stop"], "certified by X", r"certificate\.stop is 'certified by X'"),
        (["certificate", "event"], "true rate by X", "which is not in history.events"),
        (["certificate", "watched_on"], "10,000,000 rows of X", "'training rows' or 'held-out"),
        (["baseline", "certificate", "stop"], "good", r"certificate\.stop is 'good'"),
        (["price", "rows"], "rows certified by X", r"price\.rows is 'rows certified by X'"),
        (["ensemble", "kind"], "pickle", "engine='pickle' is unknown"),
        (["ensemble", "kind"], "sklearn", "columns do not fit"),
        (["ensemble", "votes"], [], "votes in history.rounds"),
        (["ensemble", "votes", 0], 7.5, "votes in history.rounds"),
        (["ensemble", "link_scale"], 0.0, "link_scale is 0"),
        (["ensemble", "link_scale"], 2.0, "objective=binary sigmoid:2"),
        (["ensemble", "learner_votes"], "discrete", "learner_votes is 'discrete'; it must be"),
        (["ensemble", "learner_votes"], "loud", "Invalid enum value 'loud'"),
        (["ensemble", "intercept"], 1e300, r"intercept is 1e\+300"),
        (["ensemble", "intercept"], None, "intercept"),
        (["price"], None, "baseline and price must both"),
        (["baseline"], None, "baseline and price must both"),
        (["price", "n_rows"], 0, r"price\.n_rows is 0"),
        (["price", "model", "accuracy"], 1.5, r"price\.model\.accuracy is 1\.5"),
        (["price", "plain", "auc"], -1.0, r"price\.plain\.auc is -1"),
        (["price", "plain", "log_loss"], -1.0, r"price\.plain\.log_loss is -1"),
        (["baseline", *ROUND, "tv"], 1.5, r"baseline\.history\.rounds\[0\]\.tv is 1\.5"),
        (["baseline", "cut"], 1.0, r"baseline\.cut is 1"),
        (["baseline", "certificate", "n_rounds"], 99, "certificate.n_rounds is 99"),
        (["baseline", "ensemble", "votes"], [], r"baseline\.ensemble\.votes"),
        (["ensemble", "payload"], {}, "text of a LightGBM model"),
        (["ensemble", "payload", "text"], 3, "text of a LightGBM model"),
        (["versions", "python"], 3, "versions"),
        (["metadata"], [], "metadata"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, list) else None,
)
def test_values_that_do_not_fit_are_refused(tmp_path, good, where, value, match):
    refuse(change(good, where, value, tmp_path / "m"), match)


def test_events_that_no_rate_has_are_quoted(tmp_path, good):
    """As those of a constraint of one's own, which may say anything."""
    words = 'rate", certified by X'
    record = copy.deepcopy(good)
    record["history"]["events"] = [words]
    record["certificate"]["event"] = words
    certificate = load(write(record, tmp_path / "m")).certificate_
    sentences = [text for _, text in certificate.rows()] + certificate_words(certificate)
    shown = [text for text in sentences if "certified" in text]
    assert len(shown) == 2
    assert all('"rate\', certified by X"' in text for text in shown)


def test_facts_are_those_of_the_estimator(tmp_path, good, good_skops):
    path = change(good, ["facts"], good_skops["facts"], tmp_path / "m")
    refuse(path, "facts must be of a FairBoostClassifier")
    path = change(good_skops, ["facts"], None, tmp_path / "m")
    refuse(path, "facts must be of a FairProjClassifier")


def test_votes_that_add_up_to_infinity_are_refused(tmp_path, good):
    record = copy.deepcopy(good)
    for position in range(record["history"]["kept"]):
        record["ensemble"]["votes"][position] = 1e308
        record["history"]["rounds"][position]["vote"] = 1e308
    refuse(write(record, tmp_path / "m"), "add up to a finite number")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (["classes"], {"dtype": "str", "values": ["x" * 100_000, *map(str, range(100_000))]}),
        (
            ["columns", 3, "categories"],
            {"dtype": "str", "values": ["x" * 100_000, *map(str, range(100_000))]},
        ),
        (["n_features"], 9_999_999),
        (["history", "kept"], 2**62),
        (["metadata"], {"a": [{}] * 100_000}),
    ],
)
def test_a_small_file_takes_little_memory(tmp_path, good, where, value):
    """NumPy, for one, gives every text of an array the space of the longest: 40 GB here."""
    path = change(good, where, value, tmp_path / "m")
    assert path.stat().st_size < 1_500_000
    tracemalloc.start()
    try:
        if where == ["metadata"]:
            load(path)
        else:
            refuse(path)
        assert tracemalloc.get_traced_memory()[1] < 64_000_000
    finally:
        tracemalloc.stop()


# LightGBM's text


TEXT = ["ensemble", "payload", "text"]


def test_a_billion_trees_are_refused(tmp_path, good):
    text = re.sub("tree_sizes=.*", "tree_sizes=1000000000", good["ensemble"]["payload"]["text"])
    refuse(change(good, TEXT, text, tmp_path / "m"), "tree_sizes holds 1 numbers")


def _resized(text):
    trees = re.split(r"^(?=Tree=)", text.partition("end of trees")[0], flags=re.MULTILINE)[1:]
    sizes = " ".join(str(len(tree.encode())) for tree in trees)
    return re.sub(r"^tree_sizes=.*$", f"tree_sizes={sizes}", text, count=1, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("pattern", "replacement", "match"),
    [
        (r"^left_child=\S+", "left_child=0", "is not a tree"),
        (r"^left_child=\S+", "left_child=99", "is not a tree"),
        (r"^right_child=\S+", "right_child=-99", "is not a tree"),
        (r"^right_child=\S+", "right_child=4294967296", "is not a tree"),
        (r"^split_feature=\S+", "split_feature=7", "feature that the model does not have"),
        (r"^split_feature=\S+", "split_feature=-1", "feature that the model does not have"),
        (r"^decision_type=\S+", "decision_type=16", "unknown decision_type"),
        (r"^decision_type=\S+", "decision_type=12", "unknown decision_type"),
        (r"^decision_type=\S+", "decision_type=-1", "unknown decision_type"),
        (r"^num_leaves=\S+", "num_leaves=1000000000", "declares 1000000000 leaves"),
        (r"^num_leaves=\S+", "num_leaves=0", "declares 0 leaves"),
        (r"^num_cat=\S+", "num_cat=-1", "splits by category"),
        (r"^cat_boundaries=0", "cat_boundaries=5", "impossible cat_boundaries"),
        (r"^(cat_boundaries=.*) \d+$", r"\1 1000000000", "impossible cat_boundaries"),
        (r"^cat_threshold=\S+", "cat_threshold=4294967296", "impossible cat_threshold"),
        (r"^cat_threshold=\S+", "cat_threshold=-1", "impossible cat_threshold"),
        (r"^leaf_value=\S+", "leaf_value=nan", "not a number"),
        (r"^leaf_value=\S+", "leaf_value=1e999", "not finite"),
        (r"^leaf_count=\S+", "leaf_count=-1", "impossible count"),
        (r"^leaf_count=\S+", "leaf_count=2147483648", "impossible count"),
        (r"^threshold=\S+", "threshold=", "threshold holds"),
        (r"^threshold=\S+", "threshold=nan", "not a number"),
        (r"^threshold=\S+", "threshold=infinity", "not a number"),
        (r"^threshold=\S+", "threshold=-inf", "threshold that is not finite"),
        (r"^threshold=\S+(.*\ndecision_type=)\S+", r"threshold=inf\g<1>2", "not finite"),
        (r"^threshold=\S+(.*\ndecision_type=)\S+", r"threshold=inf\g<1>10", "not finite"),
        (r"^is_linear=0", "is_linear=1", "'0' is expected"),
        (r"^shrinkage=1", "shrinkage=2", "'1' is expected"),
        (r"^num_class=1", "num_class=1000000000", "num_class=1"),
        (r"^max_feature_idx=\d+", "max_feature_idx=2147483647", "max_feature_idx=6"),
        (r"^objective=.*", "objective=custom", "objective=binary"),
        (r"^feature_names=a", "feature_names=a\rnum_class=9", "plain names"),
        (r"^feature_names=a", "feature_names=a\0", "plain names"),
        (r"^feature_names=a b", "feature_names=b b", "plain names"),
        (r"^feature_infos=\S+", "feature_infos=[0:1]\0", "feature_infos"),
        (r"^Tree=0", "Tree=1", "'0' is expected"),
        (r"^end of trees", "end of trees\nTree=99", "text after the trees"),
        (r"^end of trees\n", "", "'end of trees' is expected"),
        (r"^tree_sizes=.*", "tree_sizes=x", "tree_sizes"),
    ],
)
def test_lightgbm_never_sees_a_text_that_is_no_model(
    tmp_path, good, monkeypatch, pattern, replacement, match
):
    monkeypatch.setattr(
        lightgbm_ensemble, "TreeEnsemble", lambda *_: pytest.fail("the text was not checked")
    )
    text = good["ensemble"]["payload"]["text"]
    text, n = re.subn(pattern, replacement, text, count=1, flags=re.MULTILINE)
    assert n == 1
    if not pattern.startswith("^tree_sizes"):
        text = _resized(text)
    refuse(change(good, TEXT, text, tmp_path / "m"), re.escape(match))


def _with_first_leaves(text, values):
    """The text with other first leaves of the first trees."""
    for number, value in enumerate(values):
        pattern = rf"^(Tree={number}\n(?:.*\n)*?leaf_value=)\S+"
        text, n = re.subn(pattern, rf"\g<1>{value}", text, count=1, flags=re.MULTILINE)
        assert n == 1
    return _resized(text)


def test_leaf_values_are_bounded(tmp_path, good):
    """By their votes; Newton steps only by a finite sum."""
    X, y, groups = make_sample(400)
    for steps, values, match in (
        ("first_order", ["1e300"], "tree 0 has a leaf value beyond its vote"),
        ("first_order", ["0", "-1.5"], "tree 1 has a leaf value beyond its vote"),
        ("newton", ["1.7e308", "1.7e308"], "add up to more than a finite number"),
        ("newton", ["1.7e308", "-1.7e308"], "add up to more than a finite number"),
    ):
        fit_loop(X, y, groups, max_gap=1.0, tree_step=steps).save(tmp_path / "m")
        record = json.loads((tmp_path / "m").read_text("utf-8"))["model"]
        text = _with_first_leaves(record["ensemble"]["payload"]["text"], values)
        refuse(change(record, TEXT, text, tmp_path / "m"), match)
    text = _with_first_leaves(good["ensemble"]["payload"]["text"], ["50.0"])
    margin = load(change(good, TEXT, text, tmp_path / "m")).decision_function(frame()[0])
    assert margin.max() > 40


def test_wrong_tree_sizes_are_refused(tmp_path, good):
    text = re.sub(r"tree_sizes=\d", r"tree_sizes=9", good["ensemble"]["payload"]["text"])
    refuse(change(good, TEXT, text, tmp_path / "m"), "tree_sizes does not hold")


def test_what_lightgbm_itself_refuses_is_a_sentence_too(tmp_path, good, monkeypatch):
    monkeypatch.setattr(lightgbm_ensemble, "check", lambda *_: None)
    refuse(change(good, TEXT, "tree\nnothing", tmp_path / "m"))


def _chain(n, vote):
    """A tree whose every split has a leaf to the left, as deep as it has splits."""
    lines = {
        "num_leaves": [n + 1],
        "num_cat": [0],
        "split_feature": [0] * n,
        "split_gain": [1] * n,
        "threshold": range(n),
        "decision_type": [2] * n,
        "left_child": [~at for at in range(n)],
        "right_child": [*range(1, n), ~n],
        "leaf_value": [vote] * (n + 1),
        "leaf_weight": [1] * (n + 1),
        "leaf_count": [1] * (n + 1),
        "internal_value": [0] * n,
        "internal_weight": [0] * n,
        "internal_count": [1] * n,
        "is_linear": [0],
        "shrinkage": [1],
    }
    return "".join(f"{name}={' '.join(map(str, values))}\n" for name, values in lines.items())


def test_very_deep_trees_are_refused(tmp_path):
    """LightGBM's stack would overflow where it explains the predictions of a chain."""
    X = np.zeros((4, 1))
    with pytest.warns(UserWarning, match="majority class"):
        fit(X, [0, 0, 1, 1], n_estimators=1, constraints=None).save(tmp_path / "m")
    record = json.loads((tmp_path / "m").read_text())["model"]
    header, _, _ = record["ensemble"]["payload"]["text"].partition("Tree=0")
    vote = record["ensemble"]["votes"][0]
    for depth in (4096, 4097, 100_000):
        text = _resized(f"{header}Tree=0\n{_chain(depth, vote)}\n\nend of trees\n")
        path = change(record, TEXT, text, tmp_path / "deep")
        if depth > 4096:
            refuse(path, "deeper than 4,096 levels")
        else:
            model = load(path)
            np.testing.assert_array_equal(model.decision_function(X + 1e5), [vote] * 4)
            assert model.booster_.predict(X + 1e5, pred_contrib=True).shape == (4, 2)


def test_a_circle_beside_the_tree_is_refused(tmp_path, good):
    """Each node has one parent there, and two of them each other."""
    text = good["ensemble"]["payload"]["text"]
    header, _, rest = text.partition("Tree=0")
    chain = _chain(4, good["ensemble"]["votes"][0])
    chain = chain.replace("right_child=1 2 3 -5", "right_child=-5 2 3 1")
    rest = rest[rest.index("Tree=1") :]
    text = _resized(f"{header}Tree=0\n{chain}\n\n{rest}")
    refuse(change(good, TEXT, text, tmp_path / "m"), "cannot be reached")


# skops archives


SKOPS = ["ensemble", "payload", "skops"]


def _archive(record):
    raw = base64.b64decode(record["ensemble"]["payload"]["skops"])
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _with_archive(good_skops, parts, path, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in parts:
            archive.writestr(name, data)
    data = base64.b64encode(file.getvalue()).decode()
    return change(good_skops, SKOPS, data, path)


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a\\b", "..", "a/b", "C:x"])
def test_paths_in_an_archive_are_refused(tmp_path, good_skops, name):
    parts = [*_archive(good_skops).items(), (name, b"x")]
    refuse(_with_archive(good_skops, parts, tmp_path / "m"), "a path or a name twice")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_compressed_archives_are_refused(tmp_path, good_skops):
    bomb = [*_archive(good_skops).items(), ("bomb.npy", bytes(50_000_000))]
    path = _with_archive(good_skops, bomb, tmp_path / "m", zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    refuse(path, "are compressed")


def test_entries_that_share_their_bytes_are_refused(tmp_path, good_skops):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", bytes(10_000))
        first = archive.infolist()[0]
        for number in range(100):  # each entry of the directory points to the first
            twin = copy.copy(first)
            twin.filename = f"a{number}"
            archive.filelist.append(twin)
    data = base64.b64encode(file.getvalue()).decode()
    refuse(change(good_skops, SKOPS, data, tmp_path / "m"), "much more memory than their size")


def test_a_compressed_matrix_within_an_archive_is_refused(tmp_path, good_skops):
    """skops reads sparse matrices from archives of their own, whatever their names."""
    parts = _archive(good_skops)
    inner = io.BytesIO()
    np.savez_compressed(inner, data=np.zeros(5_000_000))
    assert len(inner.getvalue()) < 100_000
    schema = json.loads(parts["schema.json"])
    schema["content"]["estimator"]["content"]["content"]["C"] = {
        "__class__": "csr_matrix",
        "__module__": "scipy.sparse._csr",
        "__loader__": "SparseMatrixNode",
        "type": "scipy",
        "file": "bomb",
    }
    parts |= {"schema.json": json.dumps(schema).encode(), "bomb": inner.getvalue()}
    path = _with_archive(good_skops, parts.items(), tmp_path / "m")
    refuse(path, "much more memory than their size", trusted=["scipy.sparse._csr.csr_matrix"])


def test_an_entry_that_is_named_many_times_is_refused(tmp_path, good_skops):
    parts = _archive(good_skops)
    file = io.BytesIO()
    np.save(file, np.zeros(10_000))
    schema = json.loads(parts["schema.json"])
    node = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode"}
    node |= {"type": "numpy", "file": "zeros.npy"}
    copies = schema["content"]["learners"] | {"content": [node] * 1_000}
    schema["content"]["estimator"]["content"]["content"]["C"] = copies
    parts |= {"schema.json": json.dumps(schema).encode(), "zeros.npy": file.getvalue()}
    path = _with_archive(good_skops, parts.items(), tmp_path / "m")
    assert path.stat().st_size < 500_000
    refuse(path, "much more memory than their size")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice_in_an_archive_is_refused(tmp_path, good_skops):
    parts = list(_archive(good_skops).items())
    refuse(_with_archive(good_skops, [*parts, parts[0]], tmp_path / "m"), "a name twice")


@pytest.mark.parametrize(
    ("module", "name", "loader"),
    [
        ("os", "system", "FunctionNode"),
        ("functools", "partial", "PartialNode"),
        ("builtins", "eval", "TypeNode"),
        ("subprocess", "Popen", "ObjectNode"),
        ("antigravity", "nothing", "ObjectNode"),
        ("operator", "methodcaller", "OperatorFuncNode"),
    ],
)
def test_unknown_types_are_not_made(tmp_path, good_skops, module, name, loader):
    parts = _archive(good_skops)
    schema = json.loads(parts["schema.json"])
    learner = schema["content"]["learners"]["content"][0]
    learner |= {"__module__": module, "__class__": name, "__loader__": loader}
    parts["schema.json"] = json.dumps(schema).encode()
    refuse(_with_archive(good_skops, parts.items(), tmp_path / "m"))
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("data", ["", "!", "AAAA", "é", "UEsDBA==", 3, None, ["AAAA"]])
def test_what_is_not_an_archive_is_refused(tmp_path, good_skops, data):
    refuse(change(good_skops, SKOPS, data, tmp_path / "m"), "the payload's")


def test_arrays_that_declare_a_huge_shape_are_refused(tmp_path, good_skops):
    parts = _archive(good_skops)
    name = next(name for name in parts if name.endswith(".npy"))
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(file, header)
    parts[name] = file.getvalue()
    refuse(_with_archive(good_skops, parts.items(), tmp_path / "m"))


def test_a_learner_that_cannot_predict_is_refused(tmp_path, good_skops):
    import skops.io

    for content, match in (
        ({"estimator": LogisticRegression(), "learners": [1, 2]}, "cannot predict"),
        ({"estimator": LogisticRegression(), "learners": [LogisticRegression()]}, "2 learners"),
        ({"estimator": 3, "learners": [LogisticRegression()] * 2}, "estimator"),
        ({"estimator": None, "learners": [LogisticRegression()] * 2}, "ensemble.kind"),
        ({"estimator": None}, "an estimator and its learners"),
        ([1], "an estimator and its learners"),
    ):
        data = base64.b64encode(skops.io.dumps(content)).decode()
        refuse(change(good_skops, SKOPS, data, tmp_path / "m"), match)


@pytest.mark.parametrize(
    "stream",
    [
        [[0] * 624, 10**6, 0, 0.0],
        [[0] * 624, -1, 0, 0.0],
        [[0] * 623, 0, 0, 0.0],
        [[-1] * 624, 0, 0, 0.0],
        [[1 << 32] * 624, 0, 0, 0.0],
        [["0"] * 624, 0, 0, 0.0],
        [[0] * 624, 0, 2, 0.0],
        [[0] * 624, 0, 0, "nan"],
        [[0] * 624, 0.5, 0, 0.0],
        [[0] * 624, 0, 0, 10**400],
        [[True] * 624, 0, 0, 0.0],
        [None, 0, 0, 0.0],
        [[0] * 624, 0, 0],
    ],
    ids=lambda stream: str([stream[0] and stream[0][0], *stream[1:]])[:40],
)
def test_impossible_states_of_a_generator_are_refused(tmp_path, good_skops, stream):
    """NumPy takes any position and then reads memory there."""
    path = change(good_skops, ["ensemble", "payload", "stream"], stream, tmp_path / "m")
    refuse(path, "state of a random number generator")


def test_a_model_with_an_unknown_loss_can_be_shown_and_asked(tmp_path, monkeypatch):
    """As one whose own loss is not registered here: predictions do not need it."""
    monkeypatch.setattr(losses, "_REGISTRY", dict(losses._REGISTRY))
    losses.register_loss("of_its_own", losses.LogisticLoss())
    X, y, groups = make_sample(2000)
    model = FairBoostClassifier(n_estimators=3, loss="of_its_own")
    model.fit(X, y, sensitive_features=groups).save(tmp_path / "m.fairproj")
    expected = model.predict(X)
    monkeypatch.undo()
    loaded = load(tmp_path / "m.fairproj")
    assert "of_its_own" in loaded._repr_html_()
    assert "predict" in dir(loaded)
    np.testing.assert_array_equal(loaded.predict(X), expected)
