"""Commands on files that are read in parts: audits, held-out rows, training without memory."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss, roc_auc_score

from commands import run, run_json
from fairproj import FairBoostClassifier, FairProjClassifier, load
from fairproj.cli import _large, _tally
from fairproj.cli._tally import RowSample
from fairproj.data import held_out
from fairproj.data.held_out import HeldOutRule
from fairproj.io import tables
from fairproj.io.cell_codes import CellCoder
from fairproj.io.tables import DataFile, DataFileError, DataFiles
from fairproj.metrics import equal_opportunity_difference
from fairproj.report import summarize_estimator

ASKED = ["--label", "y", "--sensitive", "sex", "--rounds", "5"]
N_ROWS = 1500


def make_rows(n_rows=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n_rows).astype(np.float32),
            "n": rng.integers(40, size=n_rows),
            "job": rng.choice(["cook", "driver", "nurse"], size=n_rows),
            "sex": rng.choice(["f", "m"], size=n_rows, p=[0.4, 0.6]),
            "race": rng.choice(["a", "b", "c"], size=n_rows),
        }
    )
    score = frame["x"] + 0.03 * frame["n"] + 0.6 * (frame["sex"] == "m") + rng.normal(size=n_rows)
    return frame.assign(y=np.where(score > 1, "yes", "no"))


@pytest.fixture(scope="module")
def frame():
    return make_rows()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, frame):
    """The same rows in one file, and in three files of several formats."""
    folder = tmp_path_factory.mktemp("large")
    frame.to_parquet(folder / "all.parquet", row_group_size=400)
    frame.to_csv(folder / "all.csv", index=False)
    for suffix in ("parquet", "csv", "feather"):
        (folder / suffix).mkdir()
    for at, rows in enumerate(np.split(np.arange(N_ROWS), [200, 1100])):
        part = frame.iloc[rows].reset_index(drop=True)
        part.to_parquet(folder / "parquet" / f"part-{at}.parquet", row_group_size=300)
        part.to_csv(folder / "csv" / f"part-{at}.csv", index=False)
        part.to_feather(folder / "feather" / f"part-{at}.feather")
    (folder / "parquet" / "_SUCCESS").touch()
    return folder


@pytest.fixture(scope="module")
def model(folder, frame):
    """A model that was trained on other rows."""
    make_rows(seed=1).to_parquet(folder / "other.parquet")
    path = folder / "model.fairproj"
    run("train", folder / "other.parquet", *ASKED, "-o", path)
    return path


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(tables, "CHUNK_ROWS", 128)
    monkeypatch.setattr(tables, "_CSV_BLOCK", 4096)


def without_source(content):
    named = ("title", "subject", "reproduce")
    content = {name: value for name, value in content.items() if name not in named}
    content["data"] = {**content["data"], "name": ""}
    return content


@pytest.mark.parametrize("suffix", ["parquet", "csv", "feather"])
def test_an_audit_of_several_files_is_one_of_all_their_rows(folder, model, frame, suffix):
    fitted = load(model)
    expected = summarize_estimator(
        fitted,
        frame[list(fitted.feature_names_in_)],
        frame["y"],
        sensitive_features=frame[["sex", "race"]],
        pos_label="yes",
    )
    groups = ("--sensitive", "sex", "--sensitive", "race")
    audit = run_json("audit", model, folder / suffix, *groups)
    if suffix == "csv":  # however the files are named
        named = [folder / suffix / f"part-{at}.{suffix}" for at in range(3)]
        for data in ([folder / suffix / "part-*"], named):
            other = run_json("audit", model, *data, *groups)
            assert without_source(other) == without_source(audit)
    assert audit["data"]["name"] == f"{suffix} (3 files)"
    names = ("rates", "gaps", "thresholds", "distribution", "dynamics", "summary", "caveats")
    for name in (*names, "calibration"):
        assert audit[name] == json.loads(json.dumps(expected[name]))
    checked = [text for text in expected["not_looked_at"] if not text.startswith("Proxies")]
    assert audit["not_looked_at"] == checked  # the model file has what the checks found
    assert numbers_of(audit["scores"]) == pytest.approx(numbers_of(expected["scores"]))
    importances = [one["importance"]["features"] for one in (audit, expected)]
    assert numbers_of(importances[0]) == numbers_of(importances[1])
    assert audit["price"]["interval"] == expected["price"]["interval"]
    price = numbers_of(audit["price"]["scores"])
    assert price == pytest.approx(numbers_of(expected["price"]["scores"]), abs=1e-12)


def numbers_of(rows):
    return [value for row in rows for value in row.values() if not isinstance(value, str)]


def test_predictions_in_several_files(folder, tmp_path, frame):
    said = frame.assign(said=np.where(frame["x"] > 0, 1, 0), y=(frame["y"] == "yes") * 1)
    said.to_csv(tmp_path / "all.csv", index=False)
    (tmp_path / "parts").mkdir()
    said[:700].to_csv(tmp_path / "parts" / "a.csv", index=False)
    said[700:].assign(said=said["said"].astype(str)).to_parquet(tmp_path / "parts" / "b.parquet")
    asked = ("--predictions", "said", "--label", "y", "--sensitive", "sex")
    whole = run_json("audit", tmp_path / "all.csv", *asked)
    assert without_source(run_json("audit", tmp_path / "parts", *asked)) == without_source(whole)
    gap = equal_opportunity_difference(said["y"], said["said"], sensitive_features=said["sex"])
    assert whole["gaps"][1]["estimate"] == pytest.approx(gap)


def test_an_audit_of_predictions_reads_the_columns_that_it_needs(tmp_path, frame):
    """The pages of another column are damaged, which only reading them would tell."""
    path = tmp_path / "said.parquet"
    asked = ("--predictions", "said", "--label", "y", "--sensitive", "sex")
    frame.assign(said=np.where(frame["x"] > 0, "yes", "no")).to_parquet(path)
    whole = run_json("audit", path, *asked)
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    assert column.path_in_schema == "x"
    content = bytearray(path.read_bytes())
    begin = column.dictionary_page_offset or column.data_page_offset
    content[begin : begin + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(content)
    assert without_source(run_json("audit", path, *asked)) == without_source(whole)
    run("check", path, "--label", "y", "--sensitive", "sex", code=1)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["1", "2", "2.5"], ["1.0", "2.0", "2.5"]),
        (["1", "2", "x"], ["1", "2", "x"]),
        (["0", "1", "true"], ["False", "True"]),
    ],
)
def test_types_of_groups_come_from_all_rows_of_a_csv_file(model, tmp_path, frame, values, names):
    """The last value stands at the end alone, where the first chunks cannot tell of it."""
    group = np.resize(values[:2], N_ROWS).astype(object)
    group[-1] = values[2]
    frame.assign(group=group).to_csv(tmp_path / "g.csv", index=False)
    audited = run_json("audit", model, tmp_path / "g.csv", "--sensitive", "group")
    assert [row["group"] for row in audited["data"]["groups"]] == names


@pytest.mark.slow
def test_nothing_reads_a_whole_file(folder, model, tmp_path, monkeypatch):
    def fail(*arguments):
        raise AssertionError("a file was read at once")

    monkeypatch.setattr(DataFile, "read", fail)
    for data in ("all.csv", "parquet"):
        run("audit", model, folder / data)
        run("report", model, folder / data, "-o", tmp_path / f"{data}.md")
    path = tmp_path / "m.fairproj"
    run("train", folder / "parquet", *ASKED, "--out-of-core", "-o", path)
    run("audit", path, folder / "parquet")


def test_more_rows_than_are_sampled(folder, model, monkeypatch):
    exact = run_json("audit", model, folder / "all.parquet")
    monkeypatch.setattr(_tally, "MOST_SAMPLED", 1000)
    sampled = run_json("audit", model, folder / "all.parquet")
    for name in ("rates", "gaps", "verdict", "summary", "data", "thresholds", "distribution"):
        assert sampled[name] == exact[name]
    assert sampled["scores"][:3] == exact["scores"][:3]
    assert sampled["scores"][3] != exact["scores"][3]
    assert sampled["scores"][3]["value"] == pytest.approx(exact["scores"][3]["value"], abs=0.03)
    assert sampled["price"]["scores"][0] == exact["price"]["scores"][0]
    assert "sample of 1,000 of the 1,500 rows" in sampled["caveats"][-1]
    assert sampled["caveats"][:-1] == exact["caveats"]
    assert sampled["calibration"]["sampled_from"] == 1500
    assert sum(group["rows"] for group in sampled["calibration"]["groups"]) == 1000
    monkeypatch.setattr(_tally, "MOST_SAMPLED", 3)  # too few for every group and label
    assert run_json("audit", model, folder / "parquet")["thresholds"] == exact["thresholds"]


@pytest.mark.parametrize("most", [1, 10, 99, 100, 1000])
def test_a_sample_does_not_depend_on_the_chunks(most):
    values = np.arange(100)
    samples = []
    for cuts in ([], [50], range(1, 100), [3, 3, 90]):
        sample = RowSample(most)
        for part in np.split(values, list(cuts)):
            sample.add(part, -part)
        samples.append(sample.columns())
    first, second = samples[0]
    assert len(first) == min(most, 100)
    assert (np.diff(first) > 0).all()
    np.testing.assert_array_equal(first, -second)
    for other, _ in samples[1:]:
        np.testing.assert_array_equal(other, first)


def plain_held_out(cells, fraction, seed, window):
    """The rule in plain words: of each run of rows of a cell, those that draw the least."""
    chosen = set()
    for cell in np.unique(cells).tolist():
        rows = np.flatnonzero(cells == cell).tolist()
        total = max(0, min(max(1, round(fraction * len(rows))), len(rows) - 1))
        done = 0
        for number, start in enumerate(range(0, len(rows), window)):
            part = rows[start : start + window]
            drawn = np.random.Philox([seed, cell, number]).random_raw(len(part)).tolist()
            end = start + len(part)
            due = (total * end + len(rows) // 2) // len(rows)
            order = sorted(zip(drawn, part, strict=True))
            chosen |= {row for _, row in order[: due - done]}
            done = due
        assert done == total
    return np.isin(np.arange(len(cells)), list(chosen))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_held_out_rows_do_not_depend_on_the_parts(data):
    n_rows = data.draw(st.integers(1, 300))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    cells = rng.choice(4, size=n_rows, p=[0.6, 0.3, 0.09, 0.01])
    fraction, seed = data.draw(st.floats(0.01, 0.99)), data.draw(st.integers(0, 2**32 - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, n_rows), max_size=6)))
    rule = HeldOutRule(fraction, seed, tuple(np.bincount(cells, minlength=4).tolist()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "_WINDOW", 32)
        masks, before = [], np.zeros(4, dtype=int)
        for part in np.split(cells, cuts):
            masks.append(rule.mask(part, before))
            before += np.bincount(part, minlength=4)
    mask = np.concatenate(masks)
    np.testing.assert_array_equal(mask, plain_held_out(cells, fraction, seed, 32))
    sizes = np.bincount(cells, minlength=4)
    for cell in range(4):
        expected = max(0, min(max(1, round(fraction * sizes[cell])), sizes[cell] - 1))
        assert np.sum(mask[cells == cell]) == expected


def test_held_out_rows_are_spread_and_differ_by_seed():
    cells = np.zeros(100_000, dtype=int)
    masks = [HeldOutRule(0.25, seed, (100_000,)).mask(cells, [0]) for seed in (0, 1)]
    assert masks[0].sum() == 25_000
    for mask in masks:
        assert np.abs(mask.reshape(-1, 1000).mean(axis=1) - 0.25).max() < 0.08
        assert mask.reshape(-1, 10).mean(axis=0) == pytest.approx(0.25, abs=0.02)
    assert np.mean(masks[0] & masks[1]) == pytest.approx(1 / 16, abs=0.01)


def cells_of(frame, label="y", groups=("sex",)):
    codes = frame[list(groups)].apply(tuple, axis=1).astype(str)
    return 2 * np.unique(codes, return_inverse=True)[1] + (frame[label] == "yes")


@pytest.fixture(scope="module")
def trained(folder):
    path = folder / "ooc.fairproj"
    printed = run("train", folder / "parquet" / "*.parquet", *ASKED, "--out-of-core", "-o", path)
    return path, printed.stdout


def test_out_of_core_is_a_fit_on_the_rows_that_were_not_held_out(folder, frame, trained):
    path, printed = trained
    test = plain_held_out(np.asarray(cells_of(frame)), 0.25, 0, 4096)
    X, y = frame.drop(columns=["y", "sex"]), frame["y"]
    direct = FairBoostClassifier(
        max_gap=0.05, n_estimators=5, pos_label="yes", random_state=0, engine="xgboost"
    )
    direct.set_params(baseline=True)
    direct.fit(X[~test], y[~test], sensitive_features=frame["sex"][~test])
    fitted = load(path)
    np.testing.assert_allclose(fitted.decision_function(X), direct.decision_function(X), atol=1e-9)
    assert list(fitted.feature_names_in_) == list(X.columns)
    for scores, one in ((fitted.price_.model, direct), (fitted.price_.plain, direct.baseline_)):
        probability = one.predict_proba(X[test])[:, 1]
        assert scores.accuracy == pytest.approx(np.mean(one.predict(X[test]) == y[test]))
        assert scores.auc == pytest.approx(roc_auc_score(y[test] == "yes", probability))
        assert scores.log_loss == pytest.approx(log_loss(y[test] == "yes", probability))
    assert (fitted.price_.rows, fitted.price_.n_rows) == ("test rows", test.sum())
    printed = " ".join(printed.split())
    for words in (
        "1,500 rows",
        "text 2 job, race",
        "the 25 % of the rows held out",
        "What fairness",
    ):
        assert words in printed


def test_the_rows_held_out_of_several_files_are_found_again(folder, frame, trained, tmp_path):
    path, _ = trained
    test = plain_held_out(np.asarray(cells_of(frame)), 0.25, 0, 4096)
    audited = run_json("audit", path, folder / "parquet")
    assert audited["data"]["seen"] is False
    assert audited["data"]["rows"] == test.sum()
    fitted = load(path)
    correct = fitted.predict(frame[list(fitted.feature_names_in_)]) == frame["y"]
    assert audited["scores"][0]["value"] == pytest.approx(correct[test].mean())
    by_race = run_json("audit", path, folder / "parquet", "--sensitive", "race")
    assert by_race["scores"][0] == audited["scores"][0]
    rows = [group["rows"] for group in by_race["data"]["groups"]]
    assert rows == frame["race"][test].value_counts().sort_index().tolist()
    run("report", path, folder / "parquet", "-o", tmp_path / "r.html")
    failed = run(
        "report", path, folder / "parquet", "-o", tmp_path / "f.html", "--frontier", code=1
    )
    assert "--frontier fits models in memory" in failed.stderr


def test_other_files_are_not_known_to_be_unseen(folder, frame, trained, tmp_path):
    path, _ = trained
    part = folder / "parquet" / "part-1.parquet"
    assert run_json("audit", path, part)["data"]["seen"] is None
    shutil.copytree(folder / "parquet", tmp_path / "moved")
    assert run_json("audit", path, tmp_path / "moved")["data"]["seen"] is False
    frame[200:1100].assign(n=1).to_parquet(tmp_path / "moved" / part.name)
    changed = run_json("audit", path, tmp_path / "moved")
    assert changed["data"]["seen"] is None
    assert changed["data"]["rows"] == N_ROWS
    assert "not known here" in changed["caveats"][0]


def test_a_split_that_comes_out_otherwise_is_noticed(folder, trained, tmp_path, monkeypatch):
    path, _ = trained
    monkeypatch.setattr(held_out, "_WINDOW", 50)
    failed = run("audit", path, folder / "parquet", code=1).stderr
    assert "cannot be found again, because this version of fairproj splits differently" in failed


def test_all_rows_and_the_method_of_the_paper_out_of_core(folder, frame, tmp_path):
    path = tmp_path / "paper.fairproj"
    asked = [*ASKED, "--out-of-core", "--test-size", 0, "--method", "paper", "--use-sensitive"]
    printed = json.loads(run("train", folder / "all.parquet", *asked, "-o", path, "--json").stdout)
    assert printed["held_out"] is None
    direct = FairProjClassifier(
        epsilon=0.1, n_estimators=5, pos_label="yes", random_state=0, engine="xgboost"
    )
    X = frame.drop(columns="y")
    direct.fit(X, frame["y"], sensitive_features=frame["sex"])
    np.testing.assert_allclose(load(path).decision_function(X), direct.decision_function(X))
    audited = run_json("audit", path, folder / "all.parquet")
    assert audited["data"]["seen"] is True
    assert audited["verdict"] == "no target"


def test_exit_codes_of_training_out_of_core(folder, tmp_path, frame):
    path = tmp_path / "m.fairproj"
    asked = ["train", folder / "parquet", *ASKED, "--out-of-core", "-o", path, "--force"]
    missed = run(*asked, "--max-gap", 0, "--selection-rate", 0.3, code=3).stderr
    assert "the model misses the target" in missed
    rng = np.random.default_rng(0)
    noise = frame.assign(y=np.where(rng.random(N_ROWS) < 0.05, "yes", "no"))
    noise.to_parquet(tmp_path / "noise.parquet")
    asked[1] = tmp_path / "noise.parquet"
    failed = run(*asked, code=5).stderr
    assert "the model is not useful" in failed
    assert load(path).certificate_.useful is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "{d}/parquet"], "parquet would be several files, and training in memory"),
        (["train", "{d}/all.csv", "{d}/all.parquet"], "all.csv and more would be several files"),
        (["train", "{d}/csv", "--out-of-core"], "part-0.csv is not a Parquet file"),
        (["train", "{d}/none/*.parquet", "--out-of-core"], "none/.*parquet names no data file"),
        (["train", "{d}/parquet", "{d}/parquet", "--out-of-core"], "is named more than once"),
        (["train", "s3://rows/*.parquet", "--out-of-core"], "parquet is a URL; give local files"),
        (["train", "{d}/parquet", "--out-of-core", "--search"], "--search fits many models"),
        (["train", "{d}/parquet", "--out-of-core", "--drop", "z"], "part-0.parquet has no column"),
        (["train", "{d}/parquet", "--out-of-core", "--scheduler", "tcp://x"], "give one"),
        (["train", "{d}/all.csv", "--checkpoint", "c.json"], "are for a cluster; add --scheduler"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_mistakes_about_several_files(folder, tmp_path, arguments, words):
    arguments = [argument.format(d=folder) for argument in arguments]
    result = run(*arguments, *ASKED, "-o", tmp_path / "m.fairproj", code=1)
    assert result.stderr.count("\n") == 1
    assert pd.Series([result.stderr]).str.contains(words).all(), result.stderr


def test_files_that_do_not_fit_together(folder, frame, model, tmp_path):
    (tmp_path / "odd").mkdir()
    frame.to_parquet(tmp_path / "odd" / "a.parquet")
    frame.drop(columns="n").to_parquet(tmp_path / "odd" / "b.parquet")
    asked = [*ASKED, "--out-of-core", "-o", tmp_path / "m.fairproj"]
    assert "b.parquet has no column 'n'" in run("train", tmp_path / "odd", *asked, code=1).stderr
    assert "b.parquet has no column 'n'" in run("audit", model, tmp_path / "odd", code=1).stderr
    lonely = frame.assign(sex=np.where(frame.index == 7, "x", frame["sex"]))
    lonely.to_parquet(tmp_path / "odd" / "b.parquet")
    failed = run("train", tmp_path / "odd" / "b.parquet", *asked, code=1).stderr
    assert "group 'x' with label" in failed
    assert "has 1 row, and a split needs 2" in failed
    frame.assign(sex=frame.index.astype(str)).to_parquet(tmp_path / "odd" / "b.parquet")
    failed = run("audit", model, tmp_path / "odd" / "b.parquet", code=1).stderr
    assert "sensitive_features has 1500 groups, the most is 1000" in failed
    numbers = pd.concat([frame] * 10, ignore_index=True)
    numbers.assign(sex=numbers.index).to_parquet(tmp_path / "odd" / "b.parquet")
    failed = run("audit", model, tmp_path / "odd" / "b.parquet", code=1).stderr
    assert "column 'sex' of" in failed
    assert "too many different values for a label, a prediction or a group" in failed


def test_a_file_that_changes_while_it_is_read():
    table = pd.DataFrame({"sex": ["f", "m", "f"], "race": ["a", "b", "b"]})
    coder = CellCoder("y", [0, 1], table, "rows.csv")
    known = pa.table({"y": [1, 0, 1], "sex": ["f", "f", "m"], "race": ["b", "a", "b"]})
    assert coder.cells(known).tolist() == [3, 0, 5]
    for name, value in (("y", 2), ("sex", "x"), ("race", "a"), ("sex", None)):
        row = {"y": 1, "sex": "m", "race": "b", name: value}
        with pytest.raises(DataFileError, match=r"rows\.csv was changed while it was read"):
            coder.cells(pa.Table.from_pylist([row]))


def test_categories_that_training_did_not_know_in_any_chunk(folder, frame, model, tmp_path):
    strange = frame.assign(job="clerk")
    strange.to_parquet(tmp_path / "strange.parquet")
    warned = run("audit", model, tmp_path / "strange.parquet").stderr
    assert warned.count("\n") == 1
    assert "column 'job' has no value known from training: found 'clerk', known are" in warned
    strange.loc[N_ROWS - 1, "job"] = "cook"
    strange.to_parquet(tmp_path / "strange.parquet")
    assert run("audit", model, tmp_path / "strange.parquet").stderr == ""


def test_predict_on_several_files(folder, model, tmp_path):
    for data, name in (("all.parquet", "one.csv"), ("parquet", "several.csv")):
        run("predict", model, folder / data, "-o", tmp_path / name, "--keep", "race")
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "several.csv").read_text()


def test_which_files_a_path_names(tmp_path):
    for name in ("b.csv", "a.parquet", ".hidden.csv", "_SUCCESS", "notes.md", "c[1].csv"):
        (tmp_path / name).touch()
    names = [file.path.name for file in DataFiles.from_paths([tmp_path]).files]
    assert names == ["a.parquet", "b.csv", "c[1].csv"]
    single = DataFiles.from_paths([tmp_path / "c[1].csv"])  # a file whose name looks like a pattern
    assert [file.path.name for file in single.files] == ["c[1].csv"]
    assert single.sha256() == single.files[0].sha256()
    both = DataFiles.from_paths([tmp_path / "b.csv", tmp_path / "*.parquet"])
    assert [file.path.name for file in both.files] == ["b.csv", "a.parquet"]
    assert both.name == f"{tmp_path / 'b.csv'} and 1 more"


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("distributed")
    from dask.distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@pytest.mark.slow
def test_training_on_a_cluster(folder, frame, trained, cluster, tmp_path):
    path, checkpoint = tmp_path / "m.fairproj", tmp_path / "rounds.json"
    asked = ["train", folder / "parquet", *ASKED, "--scheduler", cluster.scheduler_address]
    result = run(*asked, "-o", path, "--json", "--checkpoint", checkpoint)
    on_cluster, local = load(path), load(trained[0])
    assert type(on_cluster) is FairBoostClassifier
    X = frame.drop(columns=["y", "sex"])
    np.testing.assert_allclose(
        on_cluster.decision_function(X), local.decision_function(X), atol=1e-9
    )
    plain = on_cluster.baseline_.decision_function(X)
    np.testing.assert_allclose(plain, local.baseline_.decision_function(X), atol=1e-9)
    pd.testing.assert_frame_equal(on_cluster.price_.to_frame(), local.price_.to_frame())
    held_out = json.loads(result.stdout)["held_out"]
    audited = run_json("audit", path, folder / "parquet")
    assert audited["gaps"] == held_out["gaps"]
    assert (
        on_cluster.metadata_["fairproj train"]["held_out"]
        == (local.metadata_["fairproj train"]["held_out"])
    )


@pytest.mark.parametrize("later", ["31.03.2026", "unknown"])
def test_dates_as_text_are_refused_out_of_core_as_in_memory(frame, later, tmp_path):
    """Defect: out of core, they were categories, and new dates counted as missing."""
    day = np.where(np.arange(N_ROWS) < 1000, "2026-01-01", later).astype(object)
    day[:300] = None
    rows = frame.assign(day=day, seen=pd.Timestamp("2026-01-01"))
    rows.to_parquet(tmp_path / "all.parquet")
    refused = ["seen"] if later == "unknown" else ["day", "seen"]
    asked = [*ASKED, "-o", tmp_path / "m.fairproj"]
    errors = [
        run("train", tmp_path / "all.parquet", *asked, *how, code=1).stderr
        for how in ([], ["--out-of-core"])
    ]
    assert errors[0] == errors[1]
    assert f"leave {'it' if len(refused) == 1 else 'them'} out with --drop" in errors[0]
    assert ("'day' (dates as text)" in errors[0]) == ("day" in refused)
    drop = [text for name in refused for text in ("--drop", name)]
    run("train", tmp_path / "all.parquet", *asked, "--out-of-core", *drop)


@pytest.mark.slow
def test_the_plain_model_keeps_the_round_of_least_loss_everywhere(folder, cluster, tmp_path):
    asked = ["train", folder / "parquet", *ASKED[:-1], 30, "--learning-rate", 0.5]
    kept = []
    for where in (["--out-of-core"], ["--scheduler", cluster.scheduler_address]):
        path = tmp_path / "m.fairproj"
        run(*asked, *where, "-o", path, "--force")
        plain = load(path).baseline_
        assert len(plain.history_) == 30
        kept.append(plain.history_.n_kept)
    assert kept[0] == kept[1] < 30


def test_a_cluster_that_does_not_answer(folder, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(_large, "_CONNECT_SECONDS", 0.2)
    asked = ["train", folder / "parquet", *ASKED, "-o", tmp_path / "m.fairproj"]
    failed = run(*asked, "--scheduler", "tcp://127.0.0.1:9", code=1).stderr
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in failed
    assert failed.count("\n") == 1


@pytest.mark.slow
def test_training_on_a_cluster_goes_on_from_a_checkpoint(folder, frame, cluster, tmp_path):
    checkpoint, first, second = (tmp_path / name for name in ("rounds.json", "a", "b"))
    asked = ["train", folder / "parquet", "--label", "y", "--sensitive", "sex", "--test-size", 0]
    asked += ["--rounds", 12, "--scheduler", cluster.scheduler_address, "--checkpoint", checkpoint]
    run(*asked, "-o", first)
    assert "rounds.json exists already" in run(*asked, "-o", second, code=1).stderr
    run(*asked, "-o", second, "--resume-from", checkpoint)
    X = frame.drop(columns=["y", "sex"])
    margins = [load(path).decision_function(X) for path in (first, second)]
    np.testing.assert_allclose(margins[0], margins[1], atol=1e-12)
    assert not hasattr(load(first), "baseline_")  # there are no rows to compare it on
