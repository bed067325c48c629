"""Rows that are read in parts, from Parquet files or batches, train the model of rows in memory."""

import gc
import shutil
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairproj import Batches, FairBoostClassifier, FairnessReport, FairProjClassifier
from fairproj.engines.xgboost.engine import XGBoostEngine
from fairproj.io import parquet
from fairproj.io.sources import find_source
from fairproj.io.tables import DataFile, DataFileError, DataFiles

pytestmark = pytest.mark.filterwarnings("ignore:the gap of the watched rows")


def make_rows(n_rows=1500, seed=0):
    """Rows with categories, missing values and weights, some of them zero."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n_rows, p=[0.4, 0.6])
    region = rng.choice(["north", "south"], n_rows)
    rows = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows),
            "income": rng.normal(size=n_rows) + 0.4 * (sex == "m"),
            "debt": np.where(rng.random(n_rows) < 0.2, np.nan, rng.exponential(size=n_rows)),
            "job": rng.choice(["clerk", "smith", "none", "cook"], n_rows, p=[0.5, 0.3, 0.19, 0.01]),
            "owner": rng.random(n_rows) < 0.5,
        }
    )
    rows.loc[rng.random(n_rows) < 0.1, "job"] = None
    score = rows["income"] + 0.02 * rows["age"] - rows["debt"].fillna(1) + (rows["job"] == "cook")
    rows["paid"] = np.where(score + rng.logistic(size=n_rows) > 0.3, "yes", "no")
    rows["sex"], rows["region"] = sex, region
    rows["weight"] = rng.choice([0.0, 1.0, 2.5], n_rows, p=[0.1, 0.6, 0.3])
    return rows


FEATURES = ["age", "income", "debt", "job", "owner"]
ROLES = {"sensitive_features": ["sex", "region"], "sample_weight": "weight"}


def write(rows, folder, n_files=3, row_group_size=100):
    """Files part.0.parquet to part.10.parquet and so on, in which rows stay in order."""
    for number, some in enumerate(np.array_split(np.arange(len(rows)), n_files)):
        part = rows.iloc[some].reset_index(drop=True)
        part.to_parquet(folder / f"part.{number}.parquet", row_group_size=row_group_size)
    return folder


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of at most 130 rows, so that few rows are many parts."""
    monkeypatch.setattr(parquet, "CHUNK_ROWS", 130)


@pytest.fixture
def spill(tmp_path, monkeypatch):
    """The folder that temporary files go to."""
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def fit_in_memory(model, rows):
    return model.fit(
        rows[FEATURES],
        rows["paid"],
        sensitive_features=rows[["sex", "region"]],
        sample_weight=rows["weight"],
    )


def all_votes(model):
    return model.history_.columns["vote"]


MODELS = {
    "FairProj": FairProjClassifier(engine="xgboost", n_estimators=8, max_depth=2, epsilon=0.02),
    "FairProj, confidence": FairProjClassifier(
        engine="xgboost", n_estimators=8, max_depth=3, votes="confidence"
    ),
    "FairBoost": FairBoostClassifier(
        engine="xgboost", n_estimators=8, max_gap=0.1, validation_fraction=0.3, random_state=0
    ),
    "FairBoost, exponential": FairBoostClassifier(
        engine="xgboost", n_estimators=8, max_gap=0.1, loss="exponential", validation_fraction=None
    ),
    "FairBoost, subsample": FairBoostClassifier(
        engine="xgboost", n_estimators=8, max_gap=0.1, subsample=0.6, random_state=3, baseline=True
    ),
}


def assert_same_model(model, expected, rows):
    """Every number of every round, and the margin."""
    for column, values in expected.history_.columns.items():
        if np.asarray(values).dtype.kind in "fi" and column != "seconds":
            found = model.history_.columns[column]
            np.testing.assert_allclose(found, values, rtol=0, atol=1e-9, err_msg=column)
    margin = expected.decision_function(rows[FEATURES])
    np.testing.assert_allclose(model.decision_function(rows[FEATURES]), margin, rtol=0, atol=1e-9)
    assert model.history_.stop_reason == expected.history_.stop_reason
    assert model.group_values_ == expected.group_values_
    assert str(model.certificate_) == str(expected.certificate_)


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_that_of_rows_in_memory(name, tmp_path, small_parts, spill):
    rows = make_rows()
    expected = fit_in_memory(clone(MODELS[name]), rows)
    folder = write(rows, tmp_path)
    model = clone(MODELS[name]).fit(str(folder), "paid", **ROLES)
    assert find_source(folder, "paid").n_parts == 15
    assert len(expected.history_) == 8
    assert_same_model(model, expected, rows)
    assert model.feature_names_in_.tolist() == FEATURES
    assert model.classes_.tolist() == ["no", "yes"]
    gc.collect()
    assert list(spill.iterdir()) == []


def as_batches(rows, n_batches=7, weight=True):
    def make():
        for some in np.array_split(np.arange(len(rows)), n_batches):
            part = rows.iloc[some]
            groups = part[["sex", "region"]]
            yield (part[FEATURES], part["paid"], groups, part["weight"])[: 4 if weight else 3]

    return make


def test_batches_without_weights_and_rows_to_watch_in_memory():
    rows, watched = make_rows(), make_rows(500, seed=1)
    validation = {
        "X_val": watched[FEATURES],
        "y_val": watched["paid"],
        "sensitive_features_val": watched[["sex", "region"]],
    }
    model = FairBoostClassifier(engine="xgboost", n_estimators=5, max_gap=0.1)
    expected = clone(model).fit(
        rows[FEATURES], rows["paid"], sensitive_features=rows[["sex", "region"]], **validation
    )
    model.fit(Batches(as_batches(rows, weight=False)), **validation)
    assert_same_model(model, expected, rows)


def test_arrays_with_sensitive_columns_from_a_list():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)).round(2)
    X[:, 2] = rng.integers(0, 3, 600)
    y = X[:, 0] + 0.5 * X[:, 2] + rng.normal(size=600) > 0
    model = FairProjClassifier(engine="xgboost", n_estimators=5, sensitive_columns=2)
    expected = clone(model).fit(X, y)
    cuts = [slice(0, 250), slice(250, 250), slice(250, 600)]
    model.fit(Batches([(X[rows], y[rows]) for rows in cuts]))
    np.testing.assert_allclose(all_votes(model), all_votes(expected), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    np.testing.assert_array_equal(model.predict(np.delete(X, 2, 1)), expected.predict(X))


def test_a_run_goes_on_with_warm_start(tmp_path, small_parts):
    rows = make_rows()
    folder = write(rows, tmp_path)
    expected = fit_in_memory(FairProjClassifier(engine="xgboost", n_estimators=8), rows)
    model = FairProjClassifier(engine="xgboost", n_estimators=5, warm_start=True)
    model.fit(folder, "paid", **ROLES).set_params(n_estimators=8).fit(folder, "paid", **ROLES)
    np.testing.assert_allclose(all_votes(model), all_votes(expected), rtol=0, atol=1e-9)
    rows["job"] = rows["job"].replace("smith", "baker")
    with pytest.raises(ValueError, match="other categories than in the first fit"):
        model.fit(write(rows, tmp_path), "paid", **ROLES)


class Watched:
    """Batches that count how often they are read, and how many are alive at a time."""

    def __init__(self, n_batches=12, n_rows=100):
        self.n_batches, self.n_rows = n_batches, n_rows
        self.passes = self.most_alive = 0
        self.fails_in_pass = None
        self.alive = weakref.WeakSet()

    def __call__(self):
        self.passes += 1
        for number in range(self.n_batches):
            if self.passes == self.fails_in_pass and number == self.n_batches // 2:
                raise OSError("the disk is gone")
            rng = np.random.default_rng(number)
            batch = rng.normal(size=(self.n_rows, 3)).view(Tracked)
            self.alive.add(batch)
            self.most_alive = max(self.most_alive, len(self.alive))
            y = (batch[:, 0] + rng.logistic(size=self.n_rows) > 0).view(np.ndarray)
            yield batch, y, rng.choice(["a", "b"], self.n_rows)
            del batch


class Tracked(np.ndarray):
    """An array that can be watched."""

    __hash__ = object.__hash__


@pytest.mark.parametrize(
    ("model", "passes"),
    [
        (FairProjClassifier(engine="xgboost", n_estimators=3), 4),
        (FairBoostClassifier(engine="xgboost", n_estimators=3, validation_fraction=0.25), 6),
    ],
)
def test_how_often_batches_are_read_and_how_many_are_kept(model, passes):
    batches = Watched()
    model.fit(Batches(batches))
    assert batches.passes == passes
    assert 1 <= batches.most_alive <= 3


def test_batches_in_another_order_each_time_are_refused():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(400, 3)), rng.choice(["a", "b"], 400)
    y = X[:, 0] + rng.logistic(size=400) > 0

    def shuffled():
        rows = rng.permutation(400)
        yield X[rows], y[rows], group[rows]

    with pytest.raises(ValueError, match="batch 0 has other labels, or the same in another order"):
        FairProjClassifier(engine="xgboost", n_estimators=3).fit(Batches(shuffled))


@pytest.mark.parametrize("failing_pass", [1, 2, 3, 4])
def test_nothing_stays_on_disk_after_an_error(failing_pass, spill):
    batches = Watched()
    batches.fails_in_pass = failing_pass
    with pytest.raises(OSError, match="the disk is gone"):
        FairProjClassifier(engine="xgboost", n_estimators=3).fit(Batches(batches))
    gc.collect()
    assert list(spill.iterdir()) == []


def test_nothing_stays_on_disk_after_an_interrupt(spill, monkeypatch):
    def interrupted(*_):
        assert list(spill.iterdir())  # the rows are there while it runs
        raise KeyboardInterrupt

    monkeypatch.setattr(XGBoostEngine, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        FairProjClassifier(engine="xgboost").fit(Batches(Watched()))
    gc.collect()
    assert list(spill.iterdir()) == []


# Reading Parquet files


@pytest.mark.parametrize("row_group_size", [7, 60, 130, 131, 300, 1000])
def test_parts_are_the_rows_of_the_files_in_order(row_group_size, tmp_path, small_parts):
    rows = make_rows(1000)
    write(rows, tmp_path, n_files=2, row_group_size=row_group_size)
    source = find_source(tmp_path, "paid", "sex", "weight")
    parts = list(source.parts())
    lengths = [len(part.X) for part in parts]
    assert source.n_parts == len(parts)
    assert source.n_rows == sum(lengths) == 1000
    assert max(lengths) <= 130
    together = pd.concat([part.X.astype({"job": object}) for part in parts], ignore_index=True)
    expected = rows[["age", "income", "debt", "job", "owner", "region"]]
    pd.testing.assert_frame_equal(
        together.astype({"region": "str"}), expected.astype({"job": object})
    )
    assert np.concatenate([part.y for part in parts]).tolist() == rows["paid"].tolist()
    last = len(parts) - 1
    pd.testing.assert_frame_equal(source.read(last).X, parts[last].X)
    some = dict(source.features([last, 1]))
    assert list(some) == sorted({1, last})
    pd.testing.assert_frame_equal(some[1].X, parts[1].X)


def names(*paths):
    return [Path(file.path).name for file in parquet.find_files(list(paths))]


def test_which_files_a_path_names(tmp_path):
    for name in ("part.10.parquet", "part.2.parquet", "_old.parquet", ".x.parquet", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.pq").touch()
    assert names(tmp_path) == ["a.pq", "part.2.parquet", "part.10.parquet"]
    assert names(f"{tmp_path}/part.*.parquet") == ["part.2.parquet", "part.10.parquet"]
    assert names(tmp_path / "part.10.parquet", tmp_path / "more") == ["part.10.parquet", "a.pq"]


def test_notes_beside_data_files_are_not_read(tmp_path):
    for name in ("b.parquet", "a.parquet", "notes.txt"):
        (tmp_path / name).touch()
    assert [file.path.name for file in DataFiles.from_paths([tmp_path]).files] == [
        "a.parquet",
        "b.parquet",
    ]
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).unlink()
    assert [file.path.name for file in DataFiles.from_paths([tmp_path]).files] == ["notes.txt"]


def test_urls_are_read_through_fsspec(small_parts):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    rows = make_rows(400)
    for number, some in enumerate((slice(0, 150), slice(150, 400))):
        with memory.open(f"/rows/{number}.parquet", "wb") as file:
            rows[some].to_parquet(file)
    for url in ("memory://rows", "memory://rows/*.parquet"):
        source = find_source(url, "paid")
        assert (source.n_parts, source.n_rows) == (4, 400)
        assert np.concatenate([part.y for part in source.parts()]).tolist() == list(rows["paid"])
    with pytest.raises(DataFileError, match="no Parquet file is found at memory://nothing"):
        find_source("memory://nothing/*.parquet", "paid")


def test_the_index_of_a_pandas_frame_is_no_feature(tmp_path):
    rows = make_rows(100)
    indexed = rows.set_index(pd.Index(np.arange(100) * 2, name="id"))
    indexed.to_parquet(tmp_path / "named.parquet")
    assert find_source(tmp_path / "named.parquet", "paid").features_ == [
        name for name in rows if name != "paid"
    ]
    rows[::2].to_parquet(tmp_path / "unnamed.parquet")
    assert "__index_level_0__" not in find_source(tmp_path / "unnamed.parquet", "paid").features_


def test_groups_and_labels_may_be_the_index_of_a_pandas_frame(tmp_path):
    rows = make_rows(400)
    rows.to_parquet(tmp_path / "plain.parquet")
    rows.set_index(["sex", "paid"]).to_parquet(tmp_path / "indexed.parquet")
    models = [
        FairProjClassifier(engine="xgboost", n_estimators=3).fit(
            tmp_path / f"{name}.parquet", "paid", sensitive_features="sex"
        )
        for name in ("plain", "indexed")
    ]
    np.testing.assert_allclose(*(model.estimator_weights_ for model in models), rtol=1e-12)


def test_a_damaged_page_is_noticed(tmp_path):
    path = tmp_path / "a.parquet"
    rows = pd.DataFrame({"x": np.arange(1000.0), "y": np.arange(1000) % 2})
    rows.to_parquet(path, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[content.index(np.float64(500.0).tobytes()) + 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"(?i)crc|checksum"):
        list(find_source(path, "y").parts())
    for read in (
        DataFile.from_path(path).read,
        lambda: list(DataFile(path, "parquet").chunks(["x"], {})),
    ):
        with pytest.raises(DataFileError, match=r"(?i)crc|checksum"):
            read()


def bad_files(folder):
    rows = make_rows(50)
    rows.to_parquet(folder / "a.parquet")
    rows.drop(columns="age").to_parquet(folder / "b.parquet")
    rows.assign(extra=1).to_parquet(folder / "c.parquet")
    rows[["paid"]].to_parquet(folder / "label.parquet")
    (folder / "damaged.parquet").write_bytes((folder / "a.parquet").read_bytes()[:-50])
    (folder / "rows.csv").write_text("a,b\n1,2\n")
    (folder / "empty").mkdir()
    (folder / "hive" / "sex=f").mkdir(parents=True)
    rows.to_parquet(folder / "hive" / "sex=f" / "a.parquet")


BAD_PATHS = {
    "does not exist; give a Parquet file": ("nothing.parquet", "paid"),
    "no Parquet file is found at": ("empty", "paid"),
    r"rows.csv is not a Parquet file .* convert it": ("rows.csv", "paid"),
    "did you mean 'paid'": ("a.parquet", "payd"),
    "b.parquet has no column 'age'": (["a.parquet", "b.parquet"], "paid"),
    "c.parquet has columns that .*a.parquet lacks: 'extra'": (["a.parquet", "c.parquet"], "paid"),
    "damaged.parquet cannot be read as a table": ("damaged.parquet", "paid"),
    "in the names of folders": ("hive", "paid"),
    "label.parquet has no column left": ("label.parquet", "paid"),
    r"a.parquet'\), so y must name the column with the labels, got NoneType": ("a.parquet", None),
    "so y must name the column with the labels, got list": ("a.parquet", [0, 1]),
}


@pytest.mark.parametrize("sentence", BAD_PATHS)
def test_paths_that_cannot_be_used(sentence, tmp_path):
    bad_files(tmp_path)
    path, y = BAD_PATHS[sentence]
    several = path if isinstance(path, list) else [path]
    with pytest.raises(ValueError, match=sentence):
        FairProjClassifier(engine="xgboost").fit([tmp_path / name for name in several], y)


def one_shot():
    yield np.eye(4), [0, 1, 0, 1]


FOUR = (np.eye(4), [0, 1, 0, 1])
BAD_CALLS = {
    "Batches got a generator, which can be read only once": lambda: Batches(one_shot()),
    "Batches needs a function .* got int": lambda: Batches(3),
    "X is a generator, which can be read only once; pass fairproj.Batches": lambda: fit(one_shot()),
    "must return an iterator, .* returned int": lambda: fit(Batches(lambda: 3)),
    r"batch 0 is a ndarray; it must be \(X, y\)": lambda: fit(Batches([np.eye(3)])),
    "batch 1 is a tuple of length 1": lambda: fit(Batches([FOUR, (np.eye(4),)])),
    "batch 1: X has 4 rows and y has 2": lambda: fit(Batches([FOUR, (np.eye(4), [0, 1])])),
    "X has 0 rows": lambda: fit(Batches([])),
    "Batches has labels, groups and weights with its rows, and y is given": lambda: fit(
        Batches([FOUR]), [0, 1]
    ),
    "engine='lightgbm' does not train on rows that are read in parts": lambda: (
        FairProjClassifier().fit(Batches([FOUR]))
    ),
    "got Batches; pass the features": lambda: fit(*FOUR).predict(Batches([FOUR])),
    "from_batches reads Parquet files or .* X is a ndarray": lambda: FairnessReport.from_batches(
        fit(*FOUR), np.eye(4)
    ),
}


def fit(X, y=None):
    return FairProjClassifier(engine="xgboost", constraints=None).fit(X, y)


@pytest.mark.parametrize("sentence", BAD_CALLS)
def test_batches_that_cannot_be_used(sentence):
    with pytest.raises(ValueError, match=sentence):
        BAD_CALLS[sentence]()


def test_roles_of_columns(tmp_path):
    make_rows(50).to_parquet(tmp_path / "a.parquet")
    model = FairProjClassifier(engine="xgboost")
    with pytest.raises(ValueError, match="sensitive_features must name the columns with the gro"):
        model.fit(tmp_path, "paid", sensitive_features=np.arange(50))
    with pytest.raises(ValueError, match="sample_weight must name the column with the weights"):
        model.fit(tmp_path, "paid", sample_weight=np.ones(50))
    with pytest.raises(ValueError, match="column 'sex' is named for more than one of"):
        model.fit(tmp_path, "paid", sensitive_features="sex", sample_weight="sex")
    with pytest.raises(ValueError, match="groups are given twice"):
        model.set_params(sensitive_columns="sex").fit(tmp_path, "paid", sensitive_features="sex")


def test_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "fairproj.io.parquet")
    with pytest.raises(ImportError, match=r"needs pyarrow; .* 'fairproj\[parquet\]'"):
        find_source("rows.parquet", "y")


def test_a_bar_while_parts_are_read(tmp_path, small_parts, capsys):
    folder = write(make_rows(), tmp_path)
    FairProjClassifier(engine="xgboost", n_estimators=1, verbose=True).fit(folder, "paid", **ROLES)
    assert "reading" in capsys.readouterr().out


# Reports


@pytest.mark.parametrize("sensitive_columns", [None, ["sex", "region"]])
def test_a_report_on_any_number_of_rows(sensitive_columns, tmp_path, small_parts):
    rows, fresh = make_rows(), make_rows(700, seed=2)
    model = FairBoostClassifier(n_estimators=10, max_gap=0.1, sensitive_columns=sensitive_columns)
    groups = ["sex", "region"] if sensitive_columns is None else None
    X = [*FEATURES, *(sensitive_columns or [])]

    def sensitive(frame):
        return None if groups is None else frame[groups]

    model.fit(rows[X], rows["paid"], sensitive_features=sensitive(rows))
    expected = FairnessReport.from_estimator(
        model, fresh[X], fresh["paid"], sensitive_features=sensitive(fresh), confidence=0.9
    )
    folder = write(fresh, tmp_path)
    from_files = FairnessReport.from_batches(
        model, folder, "paid", sensitive_features=groups, confidence=0.9
    )
    cuts = [slice(0, 300), slice(300, 300), slice(300, 700)]
    batches = [(fresh[X][r], fresh["paid"][r], sensitive(fresh[r])) for r in cuts]
    from_batches = FairnessReport.from_batches(model, Batches(batches), confidence=0.9)
    for report in (from_files, from_batches):
        pd.testing.assert_frame_equal(report.rates, expected.rates)
        pd.testing.assert_frame_equal(report.gaps, expected.gaps)


def test_a_report_on_any_classifier_whose_parts_lack_a_label():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(400, 2)), np.repeat([1, 2], 200)
    y = np.sort(rng.integers(0, 2, 400))
    model = LogisticRegression().fit(X, y)
    expected = FairnessReport.from_estimator(model, X, y, sensitive_features=group, pos_label=0)
    parts = [(X[r], y[r], group[r]) for r in (slice(0, 100), slice(100, 400))]
    report = FairnessReport.from_batches(model, Batches(parts), pos_label=0)
    pd.testing.assert_frame_equal(report.rates, expected.rates)


def test_a_report_refuses_what_one_in_memory_refuses():
    model = fit(np.eye(4), [0, 1, 0, 1])
    many = [
        (np.zeros((300, 4)), np.arange(300) % 2, np.arange(300) + k) for k in range(0, 1200, 300)
    ]
    with pytest.raises(ValueError, match="groups, the most is 1000"):
        FairnessReport.from_batches(model, Batches(many))
    with pytest.raises(ValueError, match="X has 0 rows"):
        FairnessReport.from_batches(model, Batches([]))
    with pytest.raises(ValueError, match="sensitive_features is missing"):
        FairnessReport.from_batches(model, Batches([FOUR]))
    missing = (np.eye(4), [0, 1, 0, None], list("aabb"))
    with pytest.raises(ValueError, match="1 of 4 labels are missing"):
        FairnessReport.from_batches(model, Batches([missing]))


@pytest.mark.parametrize("reading", range(1, 7))
def test_an_interrupt_while_rows_are_read_is_not_taken_for_their_end(reading):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    group = rng.integers(2, size=len(X))
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    readings = []

    def read():
        readings.append(None)
        for rows in np.array_split(np.arange(len(X)), 3):
            if len(readings) == reading and rows[0] > 0:
                raise KeyboardInterrupt
            yield X[rows], y[rows], group[rows]

    model = FairBoostClassifier(engine="xgboost", n_estimators=3, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Batches(read))


def test_a_disk_that_is_too_small_is_named_before_pages_are_written(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    X = np.random.default_rng(0).normal(size=(300, 3))
    batches = Batches([(X, X[:, 0] > 0)])
    with pytest.raises(OSError, match=r"need about .* MB on disk.*set TMPDIR"):
        FairProjClassifier(None, engine="xgboost", n_estimators=2).fit(batches)
    assert not list(tmp_path.iterdir())


_LIMITED = """
import resource
import numpy as np
from fairproj import Batches, FairProjClassifier

X = np.random.default_rng(0).normal(size=(300, 3))
batches = Batches([(X, X[:, 1] > 0)])
for missing in (0, 1):
    X[:missing, 0] = np.nan
    for limit in (600, 10_000, 20_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            FairProjClassifier(None, engine="xgboost", n_estimators=2).fit(batches)
            print("fitted")
        except OSError as error:
            print(error.strerror)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of a process")
def test_a_file_that_cannot_grow_is_named_before_pages_are_written():
    """XGBoost would end the process; the pages take between 10,000 and 20,000 bytes."""
    command = [sys.executable, "-c", _LIMITED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line == "fitted" for line in lines] == 2 * [False, False, True]
    assert all("refuses: File too large; raise the limit" in line for line in lines[:2])


def test_dates_as_text_are_no_categories_unless_declared(tmp_path):
    """Reading a file makes categories of its text, which declares nothing."""
    rows = make_rows(400)
    rows["job"] = np.where(rows["age"] > 40, "2026-03-31", "2026-06-30")
    rows.to_parquet(tmp_path / "texts.parquet")
    declared = rows.astype({"job": "category"})
    declared.to_parquet(tmp_path / "declared.parquet")
    model = FairProjClassifier(engine="xgboost", n_estimators=2)

    def in_batches(rows):
        return Batches([(rows[FEATURES], rows["paid"], rows[["sex", "region"]])])

    def fit(X):
        roles = () if isinstance(X, Batches) else ("paid",)
        columns = {} if isinstance(X, Batches) else ROLES
        return clone(model).fit(X, *roles, **columns)

    for X in (tmp_path / "texts.parquet", in_batches(rows)):
        with pytest.raises(ValueError, match="'job' holds dates as text"):
            fit(X)
    for X in (tmp_path / "declared.parquet", in_batches(declared)):
        assert fit(X).encoding_.categories[3].tolist() == ["2026-03-31", "2026-06-30"]
