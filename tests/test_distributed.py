"""Training on a Dask cluster gives what one machine gives, also where workers are lost."""

import importlib
import inspect
import os
import pickle
import re
import runpy
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

pytest.importorskip("distributed", reason="distributed is not installed")
pytest.importorskip("xgboost", reason="xgboost is not installed")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")

from dask.distributed import Client, LocalCluster, MultiLock  # noqa: E402
from dask.sizeof import sizeof  # noqa: E402
from distributed.comm import CommClosedError  # noqa: E402
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402
from threadpoolctl import threadpool_info  # noqa: E402

import fairproj  # noqa: E402
from fairproj import FairBoostClassifier, FairProjClassifier  # noqa: E402
from fairproj.boosting.replay import OtherRoundError  # noqa: E402
from fairproj.constraints import FunctionConstraint  # noqa: E402
from fairproj.distributed import (  # noqa: E402
    CheckpointError,
    ClusterError,
    DaskFairBoostClassifier,
    DaskFairProjClassifier,
)
from fairproj.distributed.checkpoint import (  # noqa: E402
    Checkpoint,
    CheckpointFile,
    DoneRound,
    read_checkpoint,
    write_checkpoint,
)
from fairproj.distributed.cluster import Cluster, FaultError, is_fault  # noqa: E402
from fairproj.distributed.training import Messages, PlacedTable  # noqa: E402
from fairproj.distributed.worker import (  # noqa: E402
    Run,
    RunStoppedError,
    _other_rounds_explained,
    make_part,
    pack,
)
from fairproj.engines.xgboost.imports import locally  # noqa: E402
from fairproj.engines.xgboost.tree import constant_tree  # noqa: E402

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    # Dask's own: processes of workers that were killed, and files of their logs.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ON_CLUSTER = {
    FairProjClassifier: DaskFairProjClassifier,
    FairBoostClassifier: DaskFairBoostClassifier,
}


@contextmanager
def start_cluster(n_workers, **options):
    options = {"threads_per_worker": 1, "dashboard_address": ":0", **options}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module", params=[pytest.param(3, marks=pytest.mark.slow)])
def client(request):
    """Three processes; whatever uses them is slow."""
    with start_cluster(request.param, processes=True) as client:
        yield client


@pytest.fixture(params=[1, 2])
def small_cluster(request):
    """One or two workers in this process."""
    with start_cluster(request.param, processes=False) as client:
        yield client


def make_table(n_rows=2000, seed=0):
    """Rows in the order of their groups, with categories, missing values and weights."""
    rng = np.random.default_rng(seed)
    group = np.sort(rng.choice(["a", "b", "c"], n_rows, p=[0.5, 0.3, 0.2]))
    table = pd.DataFrame(
        {
            "income": rng.normal(size=n_rows) + (group == "a"),
            "debt": rng.normal(size=n_rows),
            "city": rng.choice(["Bonn", "Lima", "Oslo"], n_rows),
            "age": rng.integers(0, 20, n_rows).astype(float),
        }
    )
    table.loc[rng.random(n_rows) < 0.1, "debt"] = np.nan
    score = table["income"] + (table["city"] == "Lima") - 0.05 * table["age"]
    table["label"] = np.where(score + rng.logistic(size=n_rows) > 0.3, "yes", "no")
    table["group"] = group
    table["weight"] = rng.uniform(0, 2, n_rows)
    table.loc[[3, 400], "weight"] = 0.0
    return table


TABLE = make_table()
FEATURES = ["income", "debt", "city", "age"]
CUTS = [0, 5, 700, 700, 900, 1800, 2000]  # uneven, one part is empty


def in_parts(table, cuts=CUTS):
    """A Dask data frame with the given partitions."""
    frames = [table.iloc[start:stop] for start, stop in pairwise(cuts)]
    return dd.from_delayed([dask.delayed(frame) for frame in frames], meta=table.iloc[:0])


def fit_local(cls, table=TABLE, **params):
    model = cls(engine="xgboost", **params)
    return model.fit(
        table[FEATURES],
        table["label"],
        sensitive_features=table["group"],
        sample_weight=table["weight"],
    )


def fit_on_cluster(cls, table=None, resume_from=None, **params):
    table = in_parts(TABLE) if table is None else table
    return ON_CLUSTER[cls](**params).fit(
        table[FEATURES],
        table["label"],
        sensitive_features=table["group"],
        sample_weight=table["weight"],
        resume_from=resume_from,
    )


def check_alike(found, expected):
    """Equal, up to the rounding of the numbers in it."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            check_alike(found[name], value)
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            check_alike(*pair)
    elif isinstance(expected, float | np.ndarray):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    else:
        assert found == expected


def check_equal(model, expected):
    """The same rounds, the same choice among them, the same predictions."""
    check_alike(model.history_.columns, expected.history_.columns)
    check_alike(model.certificate_.to_dict(), expected.certificate_.to_dict())
    assert len(model.estimator_weights_) == len(expected.estimator_weights_)
    assert model.history_.stop_reason is expected.history_.stop_reason
    assert model.group_values_ == expected.group_values_
    assert type(model.certificate_) is type(expected.certificate_)
    X = TABLE[FEATURES]
    margin = expected.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), margin, rtol=1e-9, atol=1e-9)
    assert (model.predict(X) == expected.predict(X)).all()


FAIRPROJ = {"n_estimators": 15}
FAIRBOOST = {"n_estimators": 15, "max_gap": 0.2, "random_state": 0}
SETTINGS = {
    "projection": (FairProjClassifier, FAIRPROJ),
    "projection, confidence": (
        FairProjClassifier,
        {**FAIRPROJ, "constraints": "demographic_parity", "votes": "confidence", "max_depth": 3},
    ),
    "logistic": (FairBoostClassifier, FAIRBOOST),
    "exponential, drawn rows": (
        FairBoostClassifier,
        {**FAIRBOOST, "loss": "exponential", "subsample": 0.6, "max_features": 0.6},
    ),
    "training rows watched": (
        FairBoostClassifier,
        {
            **FAIRBOOST,
            "constraints": "demographic_parity",
            "tree_step": "first_order",
            "validation_fraction": None,
            "selection_rate": 0.4,
            "max_bins": 16,
        },
    ),
}


@pytest.fixture
def placed(monkeypatch):
    """The parts that each worker got, one entry for each table that is placed."""
    places, place = [], PlacedTable.place

    def recorded(self, cluster):
        places.append(place(self, cluster))
        return places[-1]

    monkeypatch.setattr(PlacedTable, "place", recorded)
    return places


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The table in Parquet files, by relative paths; the workers have another working folder."""
    monkeypatch.setattr("fairproj.io.parquet.CHUNK_ROWS", 300)
    for number, (start, stop) in enumerate([(0, 900), (900, 1000), (1000, 2000)]):
        path = tmp_path / f"rows-{number}.parquet"
        TABLE[start:stop].to_parquet(path, row_group_size=300, index=False)
    monkeypatch.chdir(tmp_path)
    return "*.parquet"


@pytest.mark.parametrize("name", SETTINGS)
def test_three_workers_train_as_one_machine_does(client, files, placed, name):
    cls, params = SETTINGS[name]
    columns = {"sensitive_features": "group", "sample_weight": "weight"}
    model = ON_CLUSTER[cls](**params).fit(files, "label", **columns)
    check_equal(model, fit_local(cls, **params))
    starts = [0, 300, 600, 900, 1000, 1300, 1600, 1900, 2000]
    of_part = [set(TABLE["group"][begin:end]) for begin, end in pairwise(starts)]
    groups = [set().union(*(of_part[k] for k in numbers)) for numbers in placed[0].values()]
    assert len(groups) == 3
    assert sum("c" in each for each in groups) == 1  # a group that lives on one worker


@pytest.mark.parametrize("name", ["projection", "logistic", "exponential, drawn rows"])
def test_one_or_two_workers_train_as_one_machine_does(small_cluster, name):
    cls, params = SETTINGS[name]
    check_equal(fit_on_cluster(cls, **params), fit_local(cls, **params))


def test_sensitive_columns_and_arrays(client):
    numbers = TABLE[["income", "debt", "age"]].assign(group=TABLE["group"] == "a").astype(float)
    labels = TABLE["label"].to_numpy() == "yes"
    params = {"n_estimators": 10, "sensitive_columns": [3]}
    expected = FairProjClassifier(engine="xgboost", **params).fit(numbers.to_numpy(), labels)
    X = da.from_array(numbers.to_numpy(), chunks=((100, 1500, 400), (2, 2)))
    model = DaskFairProjClassifier(**params).fit(X, da.from_array(labels, chunks=(X.chunks[0],)))
    np.testing.assert_allclose(model.estimator_weights_, expected.estimator_weights_, rtol=1e-9)
    assert model.n_features_in_ == 3
    np.testing.assert_allclose(
        model.decision_function(X).compute(),
        expected.decision_function(numbers.to_numpy()),
        rtol=1e-9,
        atol=1e-9,
    )


def test_rows_to_watch_are_spread_over_workers_too(client):
    watched = make_table(700, seed=1)
    params = {**FAIRBOOST, "early_stopping": True}

    def fit(model, table, others):
        return model.fit(
            table[FEATURES],
            table["label"],
            sensitive_features=table[["group"]],
            X_val=others[FEATURES],
            y_val=others["label"],
            sensitive_features_val=others[["group"]],
            sample_weight_val=others["weight"],
        )

    model = fit(
        DaskFairBoostClassifier(**params), in_parts(TABLE), in_parts(watched, [0, 10, 10, 700])
    )
    check_equal(model, fit(FairBoostClassifier(engine="xgboost", **params), TABLE, watched))
    odd = watched.assign(group=watched["group"].replace("b", "z"))
    with pytest.raises(ValueError, match=r"^the validation rows have groups that .* lack: 'z'"):
        fit(DaskFairBoostClassifier(**params), in_parts(TABLE), in_parts(odd, [0, 700]))
    with pytest.raises(ValueError, match=r"^X_val is given without y_val"):
        DaskFairBoostClassifier().fit(in_parts(TABLE), None, X_val=in_parts(TABLE))


def test_a_warning_of_the_workers_is_issued_once(client):
    table = in_parts(TABLE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DaskFairProjClassifier(n_estimators=2).fit(table[["income"]], table["label"])
    ours = [each for each in caught if "nothing to balance" in str(each.message)]
    assert len(ours) == 1
    assert ours[0].filename == __file__


def test_a_second_fit_forgets_the_names_of_columns(client):
    table = in_parts(TABLE)
    model = DaskFairProjClassifier(None, n_estimators=2).fit(
        table[["income", "age"]], table["label"]
    )
    assert list(model.feature_names_in_) == ["income", "age"]
    numbers = TABLE[["income", "age"]].to_numpy()
    model.fit(da.from_array(numbers, chunks=600), da.from_array(TABLE["age"] > 9, chunks=600))
    assert not hasattr(model, "feature_names_in_")
    assert len(model.predict(numbers)) == 2000


def test_a_client_need_not_be_the_default_one(client, monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr("distributed.client.default_client", none)
    model = fit_on_cluster(FairProjClassifier, client=client, n_estimators=2)
    assert len(model.history_) == 2


@pytest.mark.slow
def test_an_adaptive_cluster_starts_workers_for_a_fit(tmp_path):
    TABLE.to_parquet(tmp_path / "rows.parquet", index=False)
    with start_cluster(0, processes=False) as client:
        client.cluster.adapt(minimum=0, maximum=1, interval="100ms")
        model = DaskFairProjClassifier(n_estimators=2, timeout=30).fit(
            tmp_path / "rows.parquet", "label", sensitive_features="group"
        )
    assert len(model.history_) == 2


def test_binning_beside_other_workers_uses_the_threads_that_it_is_given(monkeypatch):
    monkeypatch.setattr("xgboost.collective.is_distributed", lambda: True)

    def limits():
        found = threadpool_info()
        return [each["num_threads"] for each in found if "xgboost" in each["filepath"]] or [
            each["num_threads"] for each in found if each["user_api"] == "openmp"
        ]

    assert set(locally(limits, n_threads=3)) == {3}
    assert set(locally(limits, n_threads=1)) == {1}


def test_dask_knows_the_size_of_a_part():
    X = np.zeros((1000, 100))
    assert sizeof(make_part(X=X, y=X[:, 0], name="part 0")) > X.nbytes


# Predicting, saving, copying


@pytest.fixture(scope="module")
def fitted(client):
    return fit_on_cluster(FairProjClassifier, n_estimators=5)


def test_predictions_of_a_dask_frame_are_lazy_and_keep_its_index(fitted):
    X = TABLE[FEATURES].set_axis(np.arange(2000) + 7)
    parts = in_parts(X)
    local = fitted.to_local()
    labels, margins = fitted.predict(parts), fitted.decision_function(parts)
    probabilities = fitted.predict_proba(parts)
    assert all(map(dask.is_dask_collection, (labels, margins, probabilities)))
    pd.testing.assert_series_equal(labels.compute(), pd.Series(local.predict(X), index=X.index))
    expected = pd.Series(local.decision_function(X), index=X.index)
    pd.testing.assert_series_equal(margins.compute(), expected)
    expected = pd.DataFrame(local.predict_proba(X), index=X.index, columns=["no", "yes"])
    pd.testing.assert_frame_equal(probabilities.compute(), expected)
    assert list(probabilities.columns) == ["no", "yes"]
    assert (margins.dtype, labels.dtype) == (float, local.predict(X[:1]).dtype)


def test_predictions_of_a_dask_array_are_arrays(client):
    numbers, labels = TABLE[["income", "age"]].to_numpy(), (TABLE["label"] == "yes").to_numpy()
    X, y = (da.from_array(each, chunks=600) for each in (numbers, labels.astype(int)))
    model = DaskFairProjClassifier(None, n_estimators=3).fit(X, y)
    local = model.to_local()
    for method, shape in (("predict", (2000,)), ("predict_proba", (2000, 2))):
        lazy = getattr(model, method)(X.rechunk((600, 1)))
        assert lazy.shape == shape
        assert lazy.chunks[0] == X.chunks[0]
        expected = getattr(local, method)(numbers)
        assert lazy.dtype == expected.dtype
        np.testing.assert_array_equal(lazy.compute(), expected)


def test_a_saved_model_is_one_of_the_local_class(fitted, tmp_path):
    fitted.save(tmp_path / "model", metadata={"rows": 2000})
    loaded = fairproj.load(tmp_path / "model")
    assert type(loaded) is FairProjClassifier
    assert loaded.metadata_ == {"rows": 2000}
    X = TABLE[FEATURES]
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    assert type(fitted.to_local()) is FairProjClassifier
    with pytest.raises(ValueError, match="is not fitted"):
        DaskFairProjClassifier().save(tmp_path / "other")


def test_a_pickle_holds_no_client(client):
    model = fit_on_cluster(FairProjClassifier, client=client, n_estimators=3)
    assert model.client is client
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    X = TABLE[FEATURES]
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("local", ON_CLUSTER)
def test_parameters_are_those_of_the_local_class_and_of_a_cluster(local, client):
    cls = ON_CLUSTER[local]
    own = {"client", "checkpoint_path", "checkpoint_every", "timeout", "retries"}
    assert set(cls().get_params()) == {*local().get_params(), *own}
    assert set(inspect.signature(cls).parameters) == set(cls().get_params())
    assert {**local(engine="xgboost").get_params(), "x": 0}.items() >= {
        name: value for name, value in cls().get_params().items() if name not in own
    }.items()
    model = cls("demographic_parity", 0.2, client=client, n_estimators=7, timeout=5)
    copied = clone(model.set_params(retries=1))
    assert copied is not model
    assert copied.get_params() == model.get_params()
    assert copied.client is client
    shown = repr(cls(timeout=5, n_estimators=7))
    assert shown == f"{cls.__name__}(n_estimators=7, timeout=5)"
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_trees'"):
        cls(n_trees=3)


# Refusals


@pytest.mark.parametrize(
    ("cls", "params", "message"),
    [
        (DaskFairProjClassifier, {"engine": "lightgbm"}, r"trains with engine='xgboost'"),
        (DaskFairProjClassifier, {"estimator": FairProjClassifier()}, r"estimator= would be ign"),
        (DaskFairProjClassifier, {"warm_start": True}, r"resume_from=path"),
        (DaskFairProjClassifier, {"constraints": np.ones((2000, 1))}, r"got an array"),
        (DaskFairBoostClassifier, {"baseline": True}, r"constraints=None"),
        (DaskFairBoostClassifier, {"timeout": 0}, r"The 'timeout' parameter"),
        (DaskFairBoostClassifier, {"threshold": 0.3, "selection_rate": 0.2}, r"give one of them"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused(client, cls, params, message):
    table = in_parts(TABLE)
    with pytest.raises(ValueError, match=message):
        cls(**params).fit(table[FEATURES], table["label"])


def test_rows_in_memory_or_divided_otherwise_are_refused(client):
    table, model = in_parts(TABLE), DaskFairProjClassifier(n_estimators=2)
    with pytest.raises(ValueError, match=r"X is a DataFrame, which is in the memory"):
        model.fit(TABLE[FEATURES], TABLE["label"])
    with pytest.raises(ValueError, match=r"y is a Series; pass y as one too"):
        model.fit(table[FEATURES], TABLE["label"])
    with pytest.raises(ValueError, match=r"X has 6 partitions and y has 2"):
        model.fit(table[FEATURES], in_parts(TABLE, [0, 700, 2000])["label"])
    others = in_parts(TABLE, [0, 6, 700, 700, 900, 1800, 2000])
    with pytest.raises(ValueError, match=r"^partition [01]: X has \d+ rows and y has \d+"):
        model.fit(table[FEATURES], others["label"])
    with pytest.raises(ValueError, match=r"two dimensions"):
        model.fit(table["income"], table["label"])


def test_errors_in_the_data_name_the_partition(client):
    labels = TABLE["label"].mask(TABLE.index == 750, "maybe")
    table = in_parts(TABLE.assign(label=labels))
    with pytest.raises(ValueError, match=r"y has 3 classes"):
        DaskFairProjClassifier().fit(table[FEATURES], table["label"])
    table = in_parts(TABLE.assign(group=TABLE["group"].mask(TABLE.index == 750)))
    with pytest.raises(ValueError, match=r"^partition 3: .*missing value"):
        DaskFairProjClassifier().fit(
            table[FEATURES], table["label"], sensitive_features=table["group"]
        )
    table = in_parts(TABLE)
    with pytest.raises(ValueError, match=r"subsample=0\.0001 leaves no row"):
        DaskFairBoostClassifier(subsample=1e-4).fit(table[FEATURES], table["label"])


def test_without_dask_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("fairproj.distributed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"needs distributed; .*'fairproj\[distributed\]'"):
        importlib.import_module("fairproj.distributed")


def test_without_a_client_there_is_a_sentence(monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr("fairproj.distributed.estimators.default_client", none)
    table = in_parts(TABLE)
    with pytest.raises(ValueError, match=r"there is no Dask client; create one with"):
        DaskFairProjClassifier().fit(table[FEATURES], table["label"])


def test_a_closed_client_is_refused(client):
    closed = Client(client.scheduler.address, set_as_default=False)
    closed.close()
    with pytest.raises(ValueError, match=r"the Dask client is closed.*create a new one"):
        fit_on_cluster(FairProjClassifier, client=closed)


def test_workers_with_other_versions_are_named(client, monkeypatch):
    monkeypatch.setattr("fairproj.distributed.cluster._installed", lambda package: "0.0.1")
    message = r"fairproj is 0\.0\.1 on the driver and .* on the worker tcp://.*; install the same"
    with pytest.raises(ClusterError, match=message):
        fit_on_cluster(FairProjClassifier, n_estimators=2)


# Checkpoints


def test_a_run_goes_on_from_a_checkpoint(client, tmp_path):
    path = tmp_path / "run.checkpoint"
    cls, params = SETTINGS["exponential, drawn rows"]
    kept = {"checkpoint_path": path, "checkpoint_every": 4}
    short = fit_on_cluster(cls, **{**params, **kept, "n_estimators": 10})
    rounds = read_checkpoint(path).rounds
    assert len(rounds) == 8
    np.testing.assert_array_equal(
        [each.vote for each in rounds], short.history_.columns["vote"][:8]
    )
    model = fit_on_cluster(cls, **{**params, **kept}, resume_from=path)
    check_equal(model, fit_local(cls, **params))
    assert len(read_checkpoint(path).rounds) == 12
    assert sorted(os.listdir(tmp_path)) == ["run.checkpoint"]


def test_a_checkpoint_keeps_the_seed(client, tmp_path):
    path = tmp_path / "run"
    params = {**FAIRBOOST, "random_state": None, "subsample": 0.5, "n_estimators": 6}
    model = fit_on_cluster(FairBoostClassifier, **params, checkpoint_path=path, checkpoint_every=3)
    resumed = fit_on_cluster(FairBoostClassifier, **params, resume_from=path)
    check_equal(resumed, model)
    seed = read_checkpoint(path).seed
    check_equal(model, fit_local(FairBoostClassifier, **{**params, "random_state": seed}))
    with pytest.raises(CheckpointError, match=rf"random_state was {seed} there and is 1 here"):
        fit_on_cluster(FairBoostClassifier, **{**params, "random_state": 1}, resume_from=path)


def test_a_checkpoint_of_another_run_is_refused(client, tmp_path):
    path = tmp_path / "run"
    kept = {"checkpoint_path": path, "checkpoint_every": 2}
    fit_on_cluster(FairProjClassifier, n_estimators=3, **kept)
    with pytest.raises(CheckpointError, match=r"another run: max_depth was None there and is 2"):
        fit_on_cluster(FairProjClassifier, n_estimators=3, max_depth=2, resume_from=path)
    with pytest.raises(CheckpointError, match=r"class was FairProjClassifier there"):
        fit_on_cluster(FairBoostClassifier, n_estimators=3, resume_from=path)
    fewer = in_parts(TABLE[:1990], [0, 1990])
    with pytest.raises(CheckpointError, match=r"another run: rows of each group and label was"):
        fit_on_cluster(FairProjClassifier, fewer, n_estimators=3, resume_from=path)
    other = in_parts(TABLE.assign(income=-TABLE["income"], age=1.0))
    with pytest.raises(ValueError, match=r"does not belong to these rows.*in round 1"):
        fit_on_cluster(FairProjClassifier, other, n_estimators=3, resume_from=path)


def test_equal_parameters_of_another_process_are_recognised(client, tmp_path):
    path = tmp_path / "run"

    def params(factor, epsilon):
        own = FunctionConstraint(lambda group, label: factor * (group == "a") * (label == "yes"))
        return {"constraints": own, "epsilon": epsilon, "n_estimators": 4}

    kept = {"checkpoint_path": path, "checkpoint_every": 2}
    model = fit_on_cluster(FairProjClassifier, **params(1, np.float64(0.7)), **kept)
    resumed = fit_on_cluster(FairProjClassifier, **params(1, 0.7), resume_from=path)
    check_equal(resumed, model)
    with pytest.raises(CheckpointError, match=r"another run: constraints was 'constraint 0', "):
        fit_on_cluster(FairProjClassifier, **params(2, 0.7), resume_from=path)
    with pytest.warns(UserWarning, match=r"run holds \d rounds of an earlier run, which this run"):
        fit_on_cluster(FairProjClassifier, **params(2, 0.7), **kept)


EXAMPLE = Checkpoint({"a": "1"}, 5, [DoneRound.of(constant_tree(0.5), 0.25, -0.125)])


@pytest.mark.parametrize("place", ["{folder}/run", "file://{folder}/run", "memory://folder/run"])
def test_checkpoints_are_read_back_from_any_file_system(tmp_path, place):
    path = place.format(folder=tmp_path)
    file = CheckpointFile(path, every=1)
    file.check()
    file.update(EXAMPLE)
    assert read_checkpoint(path) == EXAMPLE
    longer = Checkpoint(EXAMPLE.facts, 5, EXAMPLE.rounds * 2)
    file.update(longer)
    assert read_checkpoint(path) == longer


def test_a_file_system_that_fails_for_a_moment_is_tried_again(monkeypatch):
    file, calls = CheckpointFile("memory://again/run", every=1), []
    write = MemoryFileSystem.pipe_file

    def fail_sometimes(self, *args, **options):
        calls.append(args)
        if len(calls) < n_failures:
            raise RuntimeError("the service is busy")  # no OSError, as with libraries of clouds
        write(self, *args, **options)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", fail_sometimes)
    monkeypatch.setattr("fairproj.distributed.checkpoint._PAUSES", (0.0, 0.0))
    n_failures = 3
    file.update(EXAMPLE)
    assert read_checkpoint(file.path) == EXAMPLE
    n_failures = 100
    with pytest.raises(OSError, match=r"round 2: RuntimeError: the service is busy; the last che"):
        file.update(Checkpoint(EXAMPLE.facts, 5, EXAMPLE.rounds * 2))
    assert read_checkpoint(file.path) == EXAMPLE
    with pytest.raises(CheckpointError, match=r"cannot be used: RuntimeError: the service is bu"):
        file.check()
    monkeypatch.undo()
    file.check()
    assert MemoryFileSystem().ls("/again", detail=False) == ["/again/run"]


def test_damaged_checkpoints_are_refused(tmp_path):
    path = tmp_path / "run"
    write_checkpoint(str(path), EXAMPLE)
    good = path.read_bytes()
    for position in range(0, len(good), 7):
        path.write_bytes(good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :])
        with pytest.raises(CheckpointError, match=r"checkpoint"):
            read_checkpoint(path)
        path.write_bytes(good[:position])
        with pytest.raises(CheckpointError, match=r"checkpoint"):
            read_checkpoint(path)
    with pytest.raises(CheckpointError, match=r"none cannot be read: No such file"):
        read_checkpoint(tmp_path / "none")


def test_trees_of_a_checkpoint_must_fit_the_table(client, tmp_path):
    path = tmp_path / "run"
    params = {"n_estimators": 3, "checkpoint_every": 2}
    fit_on_cluster(FairProjClassifier, **params, checkpoint_path=path)
    found = read_checkpoint(path)
    found.rounds[0].tree["feature"] = [99] * len(found.rounds[0].tree["feature"])
    write_checkpoint(str(path), found)
    with pytest.raises(CheckpointError, match=r"is not a valid checkpoint: feature of tree 0"):
        fit_on_cluster(FairProjClassifier, **params, resume_from=path)


def test_a_path_that_cannot_be_written_is_refused_before_training(client, tmp_path):
    with pytest.raises(CheckpointError, match=r"checkpoint_path=.*cannot be used"):
        fit_on_cluster(FairProjClassifier, checkpoint_path=tmp_path / "none" / "run")
    with pytest.raises(CheckpointError, match=r"checkpoint_path='odd://run' cannot be used"):
        fit_on_cluster(FairProjClassifier, checkpoint_path="odd://run")


@pytest.fixture
def small_disk(tmp_path):
    """A folder with little space."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(tmp_path)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_a_full_disk_ends_training_and_leaves_the_last_checkpoint(client, small_disk):
    path = small_disk / "run"
    params = {"max_depth": 5, "votes": "confidence", "n_estimators": 60}
    with pytest.raises(OSError, match=r"No space left on device; the last checkpoint is intact"):
        fit_on_cluster(FairProjClassifier, **params, checkpoint_path=path, checkpoint_every=1)
    n_rounds = len(read_checkpoint(path).rounds)
    assert n_rounds >= 1
    assert os.listdir(small_disk) == ["run"]
    resumed = fit_on_cluster(FairProjClassifier, **params, resume_from=path)
    check_equal(resumed, fit_local(FairProjClassifier, **params))


# Faults

LONG = {"n_estimators": 120, "max_gap": 0.2, "random_state": 0, "max_leaf_nodes": 4}


@pytest.fixture(scope="module")
def undisturbed():
    """What a run of these rounds gives on one machine."""
    return fit_local(FairBoostClassifier, **LONG)


@pytest.fixture
def at_round(monkeypatch):
    """Call a function when the driver hears of a round."""

    def schedule(number, action):
        update, waiting = CheckpointFile.update, [action]

        def watched(self, checkpoint, **options):
            update(self, checkpoint, **options)
            if len(checkpoint.rounds) >= number and waiting:
                waiting.pop()()

        monkeypatch.setattr(CheckpointFile, "update", watched)
        return waiting

    return schedule


@pytest.fixture(autouse=True)
def short_grace(monkeypatch):
    """Do not wait long for workers that are restarted."""
    monkeypatch.setattr(Cluster, "grace", 3.0)


def restore(client):
    """Bring back workers that were killed; Dask gives up those that start too slowly."""
    for _ in range(3):
        with suppress(TimeoutError):
            client.wait_for_workers(3, timeout=20)
            return
        client.cluster.scale(3)
    raise AssertionError("the cluster has lost its workers")


def signal_worker(client, places, position, number):
    """Send a signal to a worker of a run; the first holds the meeting point of all workers."""
    address = sorted(places)[position]
    os.kill(client.run(os.getpid, workers=[address])[address], number)


def test_a_killed_worker_changes_nothing(client, tmp_path, at_round, placed, undisturbed):
    restore(client)
    kept = {"checkpoint_path": tmp_path / "run", "checkpoint_every": 5}
    waiting = at_round(20, lambda: signal_worker(client, placed[-1], 0, signal.SIGKILL))
    model = fit_on_cluster(FairBoostClassifier, **LONG, **kept)
    assert not waiting
    check_equal(model, undisturbed)


def test_a_frozen_worker_is_replaced(client, tmp_path, at_round, placed, undisturbed):
    restore(client)
    kept = {"checkpoint_path": tmp_path / "run", "checkpoint_every": 5}
    waiting = at_round(20, lambda: signal_worker(client, placed[-1], -1, signal.SIGSTOP))
    model = fit_on_cluster(FairBoostClassifier, **LONG, **kept, timeout=8, retries=8)
    assert not waiting
    check_equal(model, undisturbed)


def test_workers_killed_before_training_are_replaced(client, placed, tmp_path, monkeypatch):
    restore(client)
    marker, arguments, killed = tmp_path / "read", PlacedTable.arguments, []

    def read(frame):
        if not marker.exists():  # the worker that reads the first part dies
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return frame

    def killing(self, numbers):
        if not killed:  # the worker that is to load the first rows dies
            killed.append(signal_worker(client, placed[-1], 0, signal.SIGKILL))
        return arguments(self, numbers)

    monkeypatch.setattr(PlacedTable, "arguments", killing)
    frames = [dask.delayed(read)(TABLE.iloc[start:stop]) for start, stop in pairwise(CUTS)]
    table = dd.from_delayed(frames, meta=TABLE.iloc[:0])
    model = fit_on_cluster(FairProjClassifier, table, n_estimators=3)
    assert marker.exists()
    assert killed
    check_equal(model, fit_local(FairProjClassifier, n_estimators=3))


def test_without_retries_a_lost_worker_ends_training(
    client, tmp_path, at_round, placed, undisturbed
):
    restore(client)
    path = tmp_path / "run"
    waiting = at_round(20, lambda: signal_worker(client, placed[-1], -1, signal.SIGKILL))
    with pytest.raises(ClusterError, match=r"training failed 1 time,.*pass it as resume_from"):
        fit_on_cluster(
            FairBoostClassifier, **LONG, checkpoint_path=path, checkpoint_every=5, retries=0
        )
    assert not waiting
    resumed = fit_on_cluster(FairBoostClassifier, **LONG, resume_from=path)
    check_equal(resumed, undisturbed)


def test_an_interrupt_stops_the_workers_and_keeps_the_rounds(
    client, tmp_path, at_round, undisturbed
):
    restore(client)
    path = tmp_path / "run"

    def interrupt():
        raise KeyboardInterrupt

    at_round(20, interrupt)
    endless = {**LONG, "n_estimators": 100_000}
    with pytest.raises(KeyboardInterrupt, match=r"the rounds up to \d+ are in .*run"):
        fit_on_cluster(FairBoostClassifier, **endless, checkpoint_path=path, checkpoint_every=5)
    assert len(read_checkpoint(path).rounds) >= 20
    resumed = fit_on_cluster(FairBoostClassifier, **LONG, resume_from=path)  # workers are free
    check_equal(resumed, undisturbed)


def test_rows_that_cannot_be_computed_again_are_named(client, at_round, tmp_path):
    restore(client)
    frames = [TABLE[start : start + 500] for start in range(0, 2000, 500)]
    scattered = client.scatter(frames)
    table = dd.from_delayed(scattered, meta=TABLE[:0])
    kept = {"checkpoint_path": tmp_path / "run", "checkpoint_every": 5}
    holder = client.who_has(scattered)[scattered[0].key][0]
    pid = client.run(os.getpid, workers=[holder])[holder]
    at_round(20, lambda: os.kill(pid, signal.SIGKILL))
    with pytest.raises(ClusterError, match=r"rows of a worker that was lost cannot be computed"):
        fit_on_cluster(FairBoostClassifier, table, **LONG, **kept)


@pytest.mark.slow
def test_a_dead_scheduler_ends_training_and_keeps_the_rounds(tmp_path, at_round):
    path, address = tmp_path / "run", tmp_path / "scheduler.json"

    def start(kind, *options):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
        log = (tmp_path / kind).open("w")
        return subprocess.Popen([*command, "--scheduler-file", address], stdout=log, stderr=log)

    scheduler = start("scheduler", "--port", "0", "--no-dashboard")
    worker = start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")
    limits = {"distributed.comm.timeouts.connect": "3s"}  # thirty, if the user does not say
    try:
        while not address.exists():
            time.sleep(0.1)
        with dask.config.set(limits), Client(scheduler_file=address) as client:
            client.wait_for_workers(1, timeout=60)
            waiting = at_round(20, scheduler.kill)
            message = r"scheduler of the Dask cluster does not answer.*rounds up to \d+ are in"
            with pytest.raises(ClusterError, match=message):
                fit_on_cluster(
                    FairBoostClassifier,
                    **{**LONG, "n_estimators": 100_000},
                    client=client,
                    checkpoint_path=path,
                    checkpoint_every=7,
                )
            assert not waiting
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert len(read_checkpoint(path).rounds) >= 20


def workers_of(client):
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def test_two_fits_at_a_time_take_turns(client):
    restore(client)
    with ThreadPoolExecutor(2) as threads:
        fits = [
            threads.submit(fit_on_cluster, FairProjClassifier, n_estimators=5, max_depth=depth)
            for depth in (1, 2)
        ]
    for depth, fit in enumerate(fits, 1):
        expected = fit_local(FairProjClassifier, n_estimators=5, max_depth=depth)
        check_equal(fit.result(), expected)


def test_workers_that_are_kept_by_another_training_are_named(client):
    restore(client)
    workers = workers_of(client)
    with (
        MultiLock(workers[:1], client),  # as xgboost.dask does
        pytest.raises(ClusterError, match=r"are kept by another training.* for 3 seconds; end"),
        Cluster(client, timeout=3).reserve(workers),
    ):
        pass
    with Client(client.scheduler.address, set_as_default=False) as other:
        left = Cluster(other, timeout=30).reserve(workers)
        left.__enter__()  # the driver ends without giving them back
    with Cluster(client, timeout=30).reserve(workers):
        pass


def test_other_tasks_of_a_worker_are_left_alone(client):
    restore(client)
    first, second, _ = workers_of(client)
    before = client.run(os.getpid)

    def fail():
        raise CommClosedError

    cluster = Cluster(client, timeout=60)
    other = client.submit(time.sleep, 5, workers=[second], pure=False)
    tasks = {
        first: cluster.submit(fail, address=first),
        second: cluster.submit(int, address=second),
    }
    with pytest.raises(FaultError, match=rf"^'{second}' had other tasks to run"):
        for _ in cluster.watch(tasks, lambda: 1.0, started={first}):
            pass
    other.result(timeout=60)
    assert client.run(os.getpid) == before  # nobody was restarted


def test_workers_without_memory_are_named(client):
    restore(client)

    def set_limit(fraction, dask_worker):
        dask_worker.memory_manager.memory_pause_fraction = fraction

    client.run(set_limit, 1e-6)
    try:
        message = r"the worker tcp://.* has paused for 5 seconds with .*B of .*B memory in use; use"
        with pytest.raises(ClusterError, match=message):
            fit_on_cluster(FairProjClassifier, n_estimators=2, timeout=5)
    finally:
        client.run(set_limit, 0.8)


def test_only_errors_of_the_cluster_are_faults():
    assert is_fault(RunStoppedError("the driver has left"))
    assert not is_fault(TimeoutError("the disk did not answer"))  # raised while rows are read


def test_reports_of_an_earlier_attempt_are_dropped():
    class Listener:
        id = "listener"

        def subscribe_topic(self, topic, handler):
            self.handler = handler

        def unsubscribe_topic(self, topic):
            self.handler = None

    def report(name, first):
        rounds = pack(EXAMPLE.rounds)
        return 0.0, {"run": name, "first": first, "rounds": rounds, "seconds": 1.0}

    listener = Listener()
    with Messages(listener) as messages:
        first = messages.start_attempt()
        listener.handler(report(first, 0))
        listener.handler((0.0, {"run": first, "started": "tcp://a"}))
        assert list(messages) == [(0, EXAMPLE.rounds)]
        assert messages.started == {"tcp://a"}
        second = messages.start_attempt()
        listener.handler(report(first, 1))
        listener.handler(report(second, 2))
        assert list(messages) == [(2, EXAMPLE.rounds)]
        assert not messages.started
    assert listener.handler is None


@pytest.mark.parametrize(
    ("number", "message"),
    [(4, r"^the checkpoint does not belong .*: in round 5"), (5, r"^the rows are not the same as")],
)
def test_rounds_that_come_out_otherwise_are_explained(number, message):
    run = Run("name", {}, 1.0, pack([]), n_resumed=5, report_every=1)
    with pytest.raises(ValueError, match=message), _other_rounds_explained(run):
        raise OtherRoundError(f"in round {number + 1} the vote was 1", number)


def test_the_example_runs_as_it_stands(client, tmp_path, capsys):
    client.wait_for_workers(3, timeout=30)
    path = Path(__file__).parents[1] / "examples" / "cluster.py"
    runpy.run_path(str(path))["main"](client, tmp_path)
    lines = capsys.readouterr().out.splitlines()
    on_cluster, alone = (float(re.search(r"-?\d+\.\d+", line)[0]) for line in lines[1:3])
    assert on_cluster == pytest.approx(alone, abs=1e-9)
    assert (tmp_path / "adult.fairproj").exists()
