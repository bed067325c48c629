"""Model files: equal to the last bit after a round trip, and hostile ones refused in a sentence."""

import base64
import copy
import gzip
import importlib.util
import io
import json
import os
import pickle
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from conftest import make_sample
from fairproj import FairProjClassifier, ModelFileError, _files, constraints, load, persistence
from fairproj.engines.sklearn import ConstantLearner

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data"


def fit(X, y, groups=None, **parameters):
    return FairProjClassifier(**{"n_estimators": 8} | parameters).fit(
        X, y, sensitive_features=groups
    )


def frame(n_rows=300, seed=0):
    """Numbers, numbers with gaps, categories of text and of integers, text, truth values."""
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


def same(model, other, X):
    """Everything that a user can see is equal, numbers to the last bit."""
    for ask in ("decision_function", "predict", "predict_proba"):
        one, two = getattr(model, ask)(X), getattr(other, ask)(X)
        assert one.dtype == two.dtype
        assert one.tobytes() == two.tobytes() if one.dtype != object else (one == two).all()
    assert repr(other) == repr(model)
    assert repr(other.history_) == repr(model.history_)
    pd.testing.assert_frame_equal(
        model.history_.to_frame(), other.history_.to_frame(), check_exact=True
    )
    assert other.history_.stop_reason is model.history_.stop_reason
    assert repr(other.certificate_) == repr(model.certificate_)
    assert other.group_values_ == model.group_values_
    assert other.classes_.dtype == model.classes_.dtype
    assert other.n_features_in_ == model.n_features_in_
    assert getattr(other, "feature_names_in_", 0) is 0 or (  # noqa: F632
        list(other.feature_names_in_) == list(model.feature_names_in_)
    )
    for stage, other_stage in zip(
        model.staged_decision_function(X), other.staged_decision_function(X), strict=True
    ):
        assert stage.tobytes() == other_stage.tobytes()


def there_and_back(model, X, tmp_path, **how):
    path = tmp_path / "model.fairproj"
    model.save(path)
    other = load(path, **how)
    same(model, other, X)
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
        {"enforce": "classifier", "constraints": "equalized_odds", "epsilon": 0.2},
        {"votes": "confidence", "max_depth": 3, "learning_rate": 0.5},
        {"max_depth": 12, "max_leaf_nodes": 60, "n_estimators": 3},
        {"constraints": None},
        {"constraints": "equalized_odds", "epsilon": [0.1, 5.0], "random_state": 3, "n_jobs": 2},
        {"constraints": "demographic_parity", "epsilon": np.inf, "tilt_step": 1.5},
        {"pos_label": -1, "max_bins": 16, "min_weight_fraction_leaf": 0.05},
    ],
)
def test_round_trip_of_numbers(tmp_path, parameters):
    X, y, groups = make_sample(400)
    there_and_back(fit(X, y, groups, **parameters), make_sample(200, seed=9)[0], tmp_path)


@pytest.mark.parametrize("enforce", ["distribution", "classifier"])
@pytest.mark.parametrize("depth", [None, 5])
@pytest.mark.filterwarnings("ignore:no useful round")
def test_round_trip_of_a_frame(tmp_path, enforce, depth):
    X, y = frame()
    model = fit(X, y, enforce=enforce, max_depth=depth, sensitive_columns="sex", epsilon=0.3)
    there_and_back(model, frame(seed=5)[0].drop(columns="sex"), tmp_path)


def test_round_trip_of_polars_and_sparse(tmp_path):
    X, y = frame()
    table = pl.DataFrame(
        {
            "a": X["a"].to_numpy(),
            "word": X["word"].astype(object).where(X["word"].notna(), None).tolist(),
            "sex": X["sex"].tolist(),
        }
    )
    there_and_back(fit(table, y, sensitive_columns="sex"), table, tmp_path)
    numbers = sparse.csr_matrix(np.where(X[["a", "b"]] > 0, X[["a", "b"]], 0.0))
    there_and_back(fit(numbers, y, X["sex"]), numbers, tmp_path)


@pytest.mark.parametrize("columns", ["sex", ["sex", "flag"], 7, [7, 6]])
def test_round_trip_with_sensitive_columns(tmp_path, columns):
    X, y = frame()
    other = there_and_back(fit(X, y, sensitive_columns=columns), X, tmp_path)
    assert np.isfinite(other.decision_function(X)).all()


def test_round_trip_of_crossed_groups(tmp_path):
    X, y = frame()
    model = fit(X[["a", "b"]], y, X[["sex", "flag"]])
    assert all(isinstance(group, tuple) for group in model.group_values_)
    there_and_back(model, X[["a", "b"]], tmp_path)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([3, 7]),
        np.array([0, 1], dtype=np.uint8),
        np.array([False, True]),
        np.array([0.0, 1.0]),
        np.array([-1, 1], dtype=np.float32),
        np.array(["né", 'a"b\n']),
    ],
    ids=repr,
)
def test_round_trip_of_labels(tmp_path, labels):
    X, y, groups = make_sample(300)
    model = fit(
        X,
        labels[(y > 0).astype(int)],
        groups,
        pos_label=labels[1].item() if labels.dtype != object else "yes",
    )
    other = there_and_back(model, X, tmp_path)
    assert type(other.predict(X)[0]) is type(model.predict(X)[0])
    assert other.pos_label == labels[1]


@pytest.mark.parametrize(
    "values",
    [[3, 5, 8], ["x", "y", "z"], [0.5, 1.5, 2.5], [True, False], ["", " ", "\t"]],
    ids=repr,
)
def test_round_trip_of_categories(tmp_path, values):
    X, y, groups = make_sample(300)
    table = pd.DataFrame({"a": X[:, 0]})
    table["c"] = pd.Categorical([values[int(v * 10) % len(values)] for v in abs(X[:, 1])])
    there_and_back(fit(table, y, groups), table, tmp_path)


def test_categories_in_an_array(tmp_path):
    X, y, groups = make_sample(300)
    X[:, 1] = np.round(X[:, 1])
    there_and_back(fit(X, y, groups, categorical_features=[1]), X, tmp_path)


def test_dates_as_categories_are_refused_when_saving(tmp_path):
    """They would come back as numbers that no date equals."""
    X, y, groups = make_sample(200)
    days = pd.to_datetime(np.where(X[:, 1] > 0, "2020-01-01", "2021-01-01"))
    for unit in ("ns", "s"):
        table = pd.DataFrame({"a": X[:, 0], "day": pd.Categorical(days.as_unit(unit))})
        with pytest.raises(ValueError, match=r"datetime64.* cannot be stored.*text or numbers"):
            fit(table, y, groups).save(tmp_path / "m")


def test_a_learner_without_mistakes(tmp_path):
    X, _, groups = make_sample(300)
    model = fit(X, X[:, 0] > 0, groups, constraints=None)
    assert model.history_.stop_reason.name == "PERFECT"
    there_and_back(model, X, tmp_path)


def test_a_parameter_younger_than_the_file_has_its_default(tmp_path):
    X, y, groups = make_sample(200)
    fit(X, y, groups, tilt_step=3.0).save(tmp_path / "m")
    content = json.loads((tmp_path / "m").read_text("utf-8"))
    path = changed(content, ["parameters", "tilt_step"], ..., tmp_path / "older")
    assert load(path).tilt_step == FairProjClassifier().tilt_step


def test_a_model_of_one_constant_tree(tmp_path):
    y, groups, X = np.arange(300) % 2, np.arange(300) % 3, np.zeros((300, 2))
    with pytest.warns(UserWarning, match="majority class"):
        model = fit(X, y, groups)
    there_and_back(model, X, tmp_path)


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
    there_and_back(fit(table, y, groups), table, tmp_path)


def test_metadata_is_kept_and_can_be_replaced(tmp_path):
    X, y, groups = make_sample(200)
    model, path = fit(X, y, groups), tmp_path / "m"
    metadata = {"owner": "café", "scores": [1, 2.5, None, True], "deep": {"a": {}}}
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
    own = constraints.named("demographic_parity")
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
    asked = {"sensitive_columns": "sex", "warm_start": True, "max_depth": 2}
    model = fit(X, y, **asked)
    other = there_and_back(model, X, tmp_path)
    for one in (model, other):
        one.set_params(n_estimators=15).fit(X, y)
    same(model, other, X)
    with pytest.raises(ValueError, match="warm_start goes on with the rows"):
        other.set_params(n_estimators=20).fit(X, -y)


def test_random_estimators_go_on_with_the_same_numbers(tmp_path):
    X, y, groups = make_sample(300)
    tree = DecisionTreeClassifier(max_depth=2, max_features=1)
    asked = {"estimator": tree, "warm_start": True, "random_state": 4}
    model = fit(X, y, groups, **asked)
    other = there_and_back(model, X, tmp_path, trusted=["sklearn.tree._tree.Tree"])
    for one in (model, other):
        one.set_params(n_estimators=12).fit(X, y, sensitive_features=groups)
    same(model, other, X)


def test_estimators_through_skops(tmp_path):
    X, y, groups = make_sample(300)
    there_and_back(fit(X, y, groups, estimator=LogisticRegression()), X, tmp_path)
    confident = fit(X, y, groups, estimator=LogisticRegression(C=0.1), votes="confidence")
    there_and_back(confident, X, tmp_path)
    fit(X, y, groups, estimator=DecisionTreeClassifier(max_depth=1)).save(tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"sklearn\.tree\._tree\.Tree.*trusted=") as refusal:
        load(tmp_path / "m")
    assert str(refusal.value).isprintable()


def test_constant_learners_are_trusted(tmp_path):
    y, groups, X = np.arange(300) % 2, np.arange(300) % 3, np.zeros((300, 2))
    with pytest.warns(UserWarning, match="majority class"):
        model = fit(X, y, groups, estimator=LogisticRegression())
    assert isinstance(model.estimators_[0], ConstantLearner)
    there_and_back(model, X, tmp_path)


def test_without_skops_it_says_what_to_install(tmp_path, monkeypatch):
    X, y, groups = make_sample(200)
    model = fit(X, y, groups, estimator=LogisticRegression())
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(ImportError, match=r"pip install 'fairproj\[files\]'"):
        model.save(tmp_path / "m")


# Saving


def test_save_refuses_what_it_cannot_keep(tmp_path):
    X, y, groups = make_sample(200)
    path = tmp_path / "m"
    with pytest.raises(ValueError, match="not fitted"):
        FairProjClassifier().save(path)
    with pytest.raises(TypeError, match="got LogisticRegression"):
        persistence.save(LogisticRegression(), path)
    model = fit(X, y, groups)
    for bad in ({"a": np.nan}, {"a": {1, 2}}, {"a": object()}, {"a": b"x"}, {(1, 2): 3}):
        with pytest.raises(ValueError, match="metadata must be a dict"):
            model.save(path, metadata=bad)
    dates = pd.to_datetime(np.where(groups == 1, "2020-01-01", "2021-01-01"))
    with pytest.raises(ValueError, match="cannot be stored in a model file"):
        fit(X, y, dates).save(path)
    assert not list(tmp_path.iterdir())


def test_metadata_must_come_back_as_it_was(tmp_path):
    X, y, groups = make_sample(200)
    for bad in ([1], "text", {1: "a"}, {"a": (1, 2)}, {"a": "\ud800"}):
        with pytest.raises(ValueError, match="metadata must"):
            fit(X, y, groups).save(tmp_path / "m", metadata=bad)


def test_an_older_file_stays_if_writing_fails(tmp_path, monkeypatch):
    X, y, groups = make_sample(200)
    model, path = fit(X, y, groups), tmp_path / "m"
    model.save(path)
    before = path.read_bytes()

    def write_half(self, text, encoding):
        self.write_bytes(text.encode(encoding)[:1000])
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(_files.Path, "write_text", write_half)
        with pytest.raises(OSError, match="no space"):
            model.save(path)
    with monkeypatch.context() as patch:
        patch.setattr(_files.os, "replace", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# The golden file


def test_the_golden_file_of_version_1_predicts_as_it_did():
    """tests/data/golden-v1.* must never be rewritten by a later version.

    It was saved by the first version of the format. If this fails, files of users fail too.
    """
    expected = json.loads((DATA / "golden-v1.json").read_text("utf-8"))
    rows = pd.DataFrame(expected["rows"]["data"], columns=expected["rows"]["columns"])
    for name in ("housing", "district"):
        rows[name] = rows[name].astype("category")
    model = load(DATA / "golden-v1.fairproj")
    assert model.predict(rows).tolist() == expected["labels"]
    margins = [value.hex() for value in model.decision_function(rows).tolist()]
    assert margins == expected["decision_function"]
    assert model.history_.closed_loop
    assert model.metadata_ == {"made by": "tools/make_golden.py"}


# Refusals


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The content of a good file, with categories and of the closed loop."""
    X, y = frame()
    path = tmp_path_factory.mktemp("good") / "m"
    fit(X, y, enforce="classifier", epsilon=0.3, max_depth=3, sensitive_columns="sex").save(path)
    return json.loads(path.read_text("utf-8"))


@pytest.fixture(scope="module")
def good_skops(tmp_path_factory):
    X, y, groups = make_sample(200)
    path = tmp_path_factory.mktemp("good") / "m"
    fit(X, y, groups, n_estimators=2, estimator=LogisticRegression()).save(path)
    return json.loads(path.read_text("utf-8"))


def refused(path, match=None, **how):
    with pytest.raises(ModelFileError, match=match) as refusal:
        load(path, **how)
    said = str(refusal.value)
    assert type(refusal.value) is ModelFileError
    assert said.isprintable()
    assert len(said) < 700
    assert str(path) in said
    return said


def write(content, path, *, sign=True):
    if sign:
        content["sha256"] = persistence.digest(content)
    path.write_text(json.dumps(content), "utf-8")
    return path


def changed(good, where, value, path):
    """The good content with one value replaced (or removed, by ...) and a right checksum."""
    content = copy.deepcopy(good)
    *way, last = where
    part = content
    for key in way:
        part = part[key]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return write(content, path)


@pytest.mark.parametrize(
    ("raw", "match"),
    [
        (b"", "it is empty"),
        (b"  \n", "it is empty"),
        (b"\x00\x01\xff\xfe", "not JSON"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "not JSON"),
        (gzip.compress(b"{}", mtime=0), "not JSON"),
        (pickle.dumps({"format": "fairproj model"}), "not JSON"),
        (b"PK\x03\x04" + bytes(60), "not JSON"),
        (b"[]", "holds something else"),
        (b"3", "holds something else"),
        (b"null", "holds something else"),
        (b'{"format": "other"}', "holds something else"),
        (b'{"format": "fairproj model"}', "format version NoneType"),
        (b'{"format": "fairproj model", "format_version": 2}', "version 2, .* reads version 1"),
        (b'{"format": "fairproj model", "format_version": true}', "format version True"),
        (b'{"format": "fairproj model", "format_version": 1.0}', "format version 1.0"),
        (b'{"format": "fairproj model", "format_version": "1"}', "format version '1'"),
        (b'{"format": "fairproj model", "format_version": 1}', "checksum"),
        (b'{"a": NaN}', "NaN is not allowed"),
        (b'{"a": -Infinity}', "-Infinity is not allowed"),
        (b'{"a": 1, "a": 2}', "stands twice"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "not JSON"),
        (b'{"format": "fairproj model", "format_version": ' + b"9" * 4000 + b"}", "version"),
    ],
    ids=lambda value: repr(value[:24]),
)
def test_other_files_are_refused(tmp_path, raw, match):
    path = tmp_path / "m"
    path.write_bytes(raw)
    refused(path, match)


def test_what_is_no_file_is_refused(tmp_path):
    refused(tmp_path, "it is not a file")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused(pipe, "it is not a file")
    refused(Path("/dev/zero"), "it is not a file")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def test_large_files_are_refused(tmp_path, good):
    path = write(copy.deepcopy(good), tmp_path / "m")
    size = path.stat().st_size
    refused(path, f"{size:,} bytes, and at most {size - 1:,} .*max_bytes", max_bytes=size - 1)
    assert load(path, max_bytes=size)
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(1 << 40)
    refused(huge, "at most 1,073,741,824")
    many = tmp_path / "many"
    many.write_bytes(b"[" + b"[]," * 10_000_001 + b"[]]")
    refused(many, "more than 20,000,000 values")


def test_cut_files_are_refused(tmp_path, good):
    path = tmp_path / "m"
    raw = json.dumps(good).encode()
    for end in np.linspace(0, len(raw) - 1, 60).astype(int):
        path.write_bytes(raw[:end])
        refused(path, "cut short")


def test_a_changed_value_shows_in_the_checksum(tmp_path, good):
    content = copy.deepcopy(good)
    content["metadata"]["note"] = "added"
    refused(write(content, tmp_path / "m", sign=False), "checksum does not match")


def test_every_part_is_needed(tmp_path, good, good_skops):
    """Without any of them, at every level, there is no model; nor with one more."""
    for whole in (good, good_skops):
        for name, part in whole.items():
            if name in ("sha256", "format", "format_version"):
                continue
            refused(changed(whole, [name], ..., tmp_path / "m"), f"{name} is missing")
            if isinstance(part, dict) and name not in ("versions", "metadata"):
                refused(changed(whole, [name, "n\new"], 1, tmp_path / "m"), "n ew|unknown")
                for key in part if name != "parameters" else ():
                    refused(changed(whole, [name, key], ..., tmp_path / "m"), key)
        for key in whole["history"]["rounds"][0]:
            refused(changed(whole, ["history", "rounds", 0, key], ..., tmp_path / "m"), key)


@pytest.mark.parametrize(
    "value",
    [None, True, -1, 10**400, 1.5, "a\nb", [], {}, {"tuple": [[1]]}],
    ids=repr,
)
def test_wrong_types_are_refused_everywhere(tmp_path, good, good_skops, value):
    """Or they are right there, and the model opens and predicts."""
    X = frame()[0].drop(columns="sex")
    said = []
    for whole, rows in ((good, X), (good_skops, np.zeros((3, 5)))):
        for where in _places(whole):
            path = changed(whole, where, value, tmp_path / "m")
            try:
                model = load(path)
            except ModelFileError as error:
                said.append(str(error))
                continue
            if where[0] != "features":  # with other features these rows may not fit
                assert np.isfinite(model.decision_function(rows)).all()
            model.history_.to_frame(), str(model.certificate_), repr(model)
    assert len(said) > 60
    assert all(map(str.isprintable, said))


def _places(content, way=()):
    """Each part once: of a list its first entry."""
    keys = list(content) if isinstance(content, dict) else range(min(1, len(content)))
    for key in keys:
        if way or key not in ("format", "format_version", "sha256"):
            yield [*way, key]
            if isinstance(content[key], dict | list):
                yield from _places(content[key], (*way, key))


@pytest.mark.parametrize(
    ("where", "value", "match"),
    [
        (["classes", "values"], [1, -1], "sort order"),
        (["classes"], {"dtype": "float16", "values": [0.0, 1e300]}, "do not fit"),
        (["classes"], {"dtype": "int8", "values": [0, 300]}, "int8|out of bounds"),
        (["classes"], {"dtype": "datetime64[ns]", "values": [0, 1]}, "dtype is unknown"),
        (["classes"], {"dtype": "object", "values": [[1], [2]]}, "list"),
        (["groups"], [], "at least one group"),
        (["groups"], [{"tuple": [{"tuple": [1]}]}], "tuple within a tuple"),
        (["parameters", "n_estimators"], 0, "n_estimators"),
        (["parameters", "n_jobs"], 0, "n_jobs"),
        (["parameters", "constraints"], {"tuple": [1]}, "constraints"),
        (["parameters", "epsilon"], ["x"], "epsilon must be a number"),
        (["parameters", "enforce"], "no\nthing", "enforce"),
        (["features", "n"], 0, "features.n is 0"),
        (["features", "n"], 10**9, "features.n is 1000000000"),
        (["features", "names"], ["a"] * 7, "7 different names"),
        (["features", "encoder", "columns"], list(range(7)), "columns of features.names"),
        (["features", "encoder", "had_missing"], [True], "holds 1 entries"),
        (["features", "encoder"], None, "encoder is missing"),
        (["features", "encoder", "categories", 0, "column"], 7, "0 to 6"),
        (["features", "encoder", "categories", 0, "column"], 4, "twice"),
        (["features", "encoder", "categories", 0, "values"], ["x", "x"], "different values"),
        (["features", "encoder", "categories", 0, "values"], ["x", 1], "one kind"),
        (["features", "encoder", "categories", 0, "values"], ["x", None], "one kind"),
        (["history", "rounds"], [], "rounds is empty"),
        (["history", "rounds", 0, "kl"], -1.0, "a distance out of range"),
        (["history", "rounds", 0, "tv"], "nan", "a distance out of range"),
        (["history", "rounds", 0, "vote"], "inf", "a vote, an error"),
        (["history", "rounds", 0, "error_q"], 2, "a vote, an error"),
        (["history", "rounds", 0, "seen"], None, "way to enforce"),
        (["history", "rounds", 0, "seen", "rates"], [], "watched rates"),
        (["history", "rounds", 0, "balance"], [0.0], "constraints"),
        (["history", "rounds", 0, "log_exp_loss"], 1e308, "a loss or a bound infinite"),
        (["history", "rounds", 0, "seen", "tilt_cost"], 1e308, "a loss or a bound infinite"),
        (["history", "epsilon"], ["nan"], "a loss or a bound infinite"),
        (["history", "learning_rate"], "nan", "learning_rate"),
        (["history", "kept"], 10**9, "1 to 8"),
        (["history", "kept"], None, "way to enforce"),
        (["history", "stop_reason"], "__class__", "stop_reason is unknown"),
        (["certificate", "kind"], "Certificate", "certificate.kind"),
        (["certificate", "n_rounds"], 10**9, "n_rounds"),
        (["ensemble", "kind"], "pickle", "kind is unknown"),
        (["ensemble", "votes"], [], "entries"),
        (["ensemble", "votes", 0], 7.5, "not those of history"),
        (["versions", "python"], 3, "versions.python"),
        (["metadata"], [], "metadata must be a dict"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, list) else None,
)
def test_values_that_do_not_fit_are_refused(tmp_path, good, where, value, match):
    refused(
        changed(good, where, value, tmp_path / "m"), re.escape(match) if "[" in match else match
    )


def test_a_billion_trees_are_refused(tmp_path, good):
    content = copy.deepcopy(good)
    text = content["ensemble"]["text"]
    content["ensemble"]["text"] = re.sub("tree_sizes=.*", "tree_sizes=1000000000", text)
    refused(write(content, tmp_path / "m"), "tree_sizes holds 1 numbers")
    content["history"]["kept"] = 10**9
    refused(write(content, tmp_path / "m"), "kept is 1000000000")


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
        (r"^leaf_value=\S+", "leaf_value=nan", "no number"),
        (r"^leaf_value=\S+", "leaf_value=1e999", "not finite"),
        (r"^leaf_value=\S+", "leaf_value=1e300", "says more than its vote"),
        (r"^leaf_count=\S+", "leaf_count=-1", "impossible count"),
        (r"^leaf_count=\S+", "leaf_count=2147483648", "impossible count"),
        (r"^threshold=\S+", "threshold=", "threshold holds"),
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
        persistence._read, "TreeEnsemble", lambda *_: pytest.fail("it was not checked")
    )
    text = good["ensemble"]["text"]
    text, n = re.subn(pattern, replacement, text, count=1, flags=re.MULTILINE)
    assert n == 1
    if not pattern.startswith("^tree_sizes"):
        text = _resized(text)
    refused(changed(good, ["ensemble", "text"], text, tmp_path / "m"), re.escape(match))


def test_wrong_tree_sizes_are_refused(tmp_path, good):
    text = re.sub(r"tree_sizes=\d", r"tree_sizes=9", good["ensemble"]["text"])
    refused(changed(good, ["ensemble", "text"], text, tmp_path / "m"), "tree_sizes does not tell")


def test_what_lightgbm_itself_refuses_is_a_sentence_too(tmp_path, good, monkeypatch):
    monkeypatch.setattr(persistence._read, "check", lambda *_: None)
    path = changed(good, ["ensemble", "text"], "tree\nnothing", tmp_path / "m")
    refused(path)


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
    return "".join(f"{name}={' '.join(map(str, found))}\n" for name, found in lines.items())


def test_very_deep_trees_are_refused(tmp_path):
    """LightGBM's stack would overflow where it explains the predictions of a chain."""
    X = np.zeros((4, 1))
    with pytest.warns(UserWarning, match="majority class"):
        fit(X, [0, 0, 1, 1], n_estimators=1, constraints=None).save(tmp_path / "m")
    content = json.loads((tmp_path / "m").read_text())
    header, _, _ = content["ensemble"]["text"].partition("Tree=0")
    vote = content["ensemble"]["votes"][0]
    for depth in (4096, 4097, 100_000):
        text = _resized(f"{header}Tree=0\n{_chain(depth, vote)}\n\nend of trees\n")
        path = changed(content, ["ensemble", "text"], text, tmp_path / "deep")
        if depth > 4096:
            refused(path, "deeper than 4,096 levels")
        else:
            model = load(path)
            np.testing.assert_array_equal(model.decision_function(X + 1e5), [vote] * 4)
            assert model.booster_.predict(X + 1e5, pred_contrib=True).shape == (4, 2)


def test_a_circle_beside_the_tree_is_refused(tmp_path, good):
    """Each node has one parent there, and two of them each other."""
    text = good["ensemble"]["text"]
    header, _, rest = text.partition("Tree=0")
    chain = _chain(4, good["ensemble"]["votes"][0])
    chain = chain.replace("right_child=1 2 3 -5", "right_child=-5 2 3 1")
    rest = rest[rest.index("Tree=1") :]
    text = _resized(f"{header}Tree=0\n{chain}\n\n{rest}")
    refused(changed(good, ["ensemble", "text"], text, tmp_path / "m"), "cannot be reached")


# skops parts


def _archive(content):
    raw = base64.b64decode(content["ensemble"]["data"])
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _with_archive(good_skops, parts, path, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in parts:
            archive.writestr(name, data)
    data = base64.b64encode(file.getvalue()).decode()
    return changed(good_skops, ["ensemble", "data"], data, path)


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a\\b", "..", "a/b", "C:x"])
def test_paths_in_an_archive_are_refused(tmp_path, good_skops, name):
    parts = [*_archive(good_skops).items(), (name, b"x")]
    refused(_with_archive(good_skops, parts, tmp_path / "m"), "ensemble.data")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_bombs_are_refused(tmp_path, good_skops):
    parts = _archive(good_skops)
    bomb = [*parts.items(), ("bomb.npy", bytes(50_000_000))]
    path = _with_archive(good_skops, bomb, tmp_path / "m", zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    refused(path, "packed parts")
    # the same bytes a hundred times: each entry of the directory points to the first
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", bytes(10_000))
        first = archive.infolist()[0]
        for number in range(100):
            twin = copy.copy(first)
            twin.filename = f"a{number}"
            archive.filelist.append(twin)
    data = base64.b64encode(file.getvalue()).decode()
    refused(changed(good_skops, ["ensemble", "data"], data, tmp_path / "m"), "more than it is")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice_in_an_archive_is_refused(tmp_path, good_skops):
    parts = list(_archive(good_skops).items())
    refused(_with_archive(good_skops, [*parts, parts[0]], tmp_path / "m"), "a name twice")


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
    refused(_with_archive(good_skops, parts.items(), tmp_path / "m"))
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("data", ["", "!", "AAAA", "é", "UEsDBA=="])
def test_an_archive_that_is_none_is_refused(tmp_path, good_skops, data):
    refused(changed(good_skops, ["ensemble", "data"], data, tmp_path / "m"), "ensemble.data")


def test_arrays_that_declare_a_huge_shape_are_refused(tmp_path, good_skops):
    parts = _archive(good_skops)
    name = next(name for name in parts if name.endswith(".npy"))
    file = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(file, header)
    parts[name] = file.getvalue()
    refused(_with_archive(good_skops, parts.items(), tmp_path / "m"))


def test_a_learner_that_cannot_predict_is_refused(tmp_path, good_skops):
    import skops.io

    for content, match in (
        ({"estimator": LogisticRegression(), "learners": [1, 2]}, "cannot predict"),
        ({"estimator": LogisticRegression(), "learners": [LogisticRegression()]}, "2 learners"),
        ({"estimator": 3, "learners": [LogisticRegression()] * 2}, "estimator"),
        ({"estimator": None}, "an estimator and its learners"),
        ([1], "an estimator and its learners"),
    ):
        data = base64.b64encode(skops.io.dumps(content)).decode()
        refused(changed(good_skops, ["ensemble", "data"], data, tmp_path / "m"), match)


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
        [None, 0, 0, 0.0],
    ],
    ids=lambda s: str([s[0] and s[0][0], *s[1:]]),
)
def test_impossible_states_of_a_generator_are_refused(tmp_path, good_skops, stream):
    """NumPy takes any position and then reads memory there."""
    path = changed(good_skops, ["ensemble", "stream"], stream, tmp_path / "m")
    refused(path, "no state of a random number generator")


# Mutants


def _fuzz():
    spec = importlib.util.spec_from_file_location("fuzz", ROOT / "benchmarks" / "fuzz.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_mutants_are_refused_or_answer(tmp_path):
    """A small part of benchmarks/fuzz.py, which runs them where a crash is seen as such."""
    fuzz = _fuzz()
    models = fuzz.good_models()
    for name, (model, _) in models.items():
        model.save(tmp_path / f"{name}.fairproj")
    good = fuzz.read_good(tmp_path)
    path = tmp_path / "mutant.fairproj"
    for index in range(500):
        name, kind, raw = fuzz.mutant(good, 12345, index)
        path.write_bytes(raw)
        end, said = fuzz.verdict(path, models[name][1])
        assert end in fuzz.MEANING, (index, name, kind, end, said)
