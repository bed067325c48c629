"""``fairproj audit --by``: tables, alarms, exit codes and pictures, of predictions and models."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from commands import run, run_json
from fairproj.cli import _by, _streams
from fairproj.inference import gaps_by
from fairproj.io import tables
from fairproj.io.figures import matplotlib, plain_label
from fairproj.io.text import escape

ASKED = ("--predictions", "said", "--label", "y", "--sensitive", "sex")


def make_frame(n=6000, seed=0):
    """Half a year; in June women who should be accepted are refused more often."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(181, size=n), unit="D")
    frame = pd.DataFrame(
        {
            "date": days,
            "region": np.array(["2", "10", "7"])[rng.integers(3, size=n)],
            "sex": np.array(["f", "m"])[rng.integers(2, size=n)],
            "y": rng.integers(2, size=n),
        }
    )
    worse = (frame["date"].dt.month == 6) & (frame["sex"] == "f") & (frame["y"] == 1)
    frame["said"] = (rng.random(n) < 0.15 + 0.7 * frame["y"] - 0.45 * worse).astype(int)
    frame["x"] = 3 * frame["said"] + rng.normal(size=n) / 10
    return frame


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, frame):
    folder = tmp_path_factory.mktemp("by")
    frame.to_csv(folder / "s.csv", index=False)
    frame.to_parquet(folder / "s.parquet", index=False)
    return folder


def expected(frame, by, period=None, **parameters):
    return gaps_by(
        frame["y"],
        frame["said"],
        sensitive_features=frame["sex"],
        by=by,
        period=period,
        **parameters,
    )


def values_of(content):
    return pd.DataFrame(content["by"]["values"])


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
@pytest.mark.parametrize("period", [None, "quarter", "year"])
def test_the_table_is_that_of_the_library(folder, frame, name, period):
    by = "date" if period is None else f"date:{period}"
    content = run_json("audit", folder / name, *ASKED, "--by", by)
    found = expected(frame, frame["date"], period).table
    pd.testing.assert_frame_equal(values_of(content), found, check_dtype=False)
    assert content["by"]["column"] == "date"
    assert content["by"]["alarms"] == []


def test_regions_in_natural_order(folder, frame):
    content = run_json("audit", folder / "s.csv", *ASKED, "--by", "region")
    assert values_of(content)["value"].tolist() == ["2", "7", "10"]
    assert values_of(content)["rows"].sum() == len(frame)


def test_an_alarm_is_exit_code_3_and_explained(folder, frame):
    printed = run("audit", folder / "s.csv", *ASKED, "--by", "date", "--max-gap", 0.2, code=3)
    said = " ".join(printed.stdout.split())
    assert "Equal opportunity by date, with 95 % intervals" in said
    assert "Alarm, the gap is above 0.2: 2026-06." in said
    assert "6 values were looked at, so each is judged at 99.149 % confidence" in said
    assert "the chance of any false alarm is at most 5 %" in said
    assert "The target, at most 20.0 percentage points, is met" in said  # all rows together
    run("audit", folder / "s.csv", *ASKED, "--max-gap", 0.2, code=0)
    run("audit", folder / "s.csv", *ASKED, "--by", "region", "--max-gap", 0.3, code=0)


def test_the_whole_intervals_of_the_table_hold_together_if_asked(folder):
    printed = run("audit", folder / "s.csv", *ASKED, "--by", "date", "--simultaneous").stdout
    said = " ".join(printed.split())
    assert "Equal opportunity by date, with simultaneous 95 % intervals" in said
    assert "All intervals hold with 95 % confidence together." in said


def test_many_chunks_and_several_files(folder, frame, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "CHUNK_ROWS", 500)
    frame[:2000].to_parquet(tmp_path / "1.parquet", index=False)
    frame[2000:].to_parquet(tmp_path / "2.parquet", index=False)
    content = run_json("audit", tmp_path, *ASKED, "--by", "date")
    found = expected(frame, frame["date"]).table
    pd.testing.assert_frame_equal(values_of(content), found, check_dtype=False)


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_of_a_model(folder, frame, name, tmp_path):
    """The rows held out from training, by month, and by a column that is a feature."""
    model, asked = tmp_path / "m.fairproj", ("--label", "y", "--sensitive", "sex", "--rounds", 5)
    drop = ("--drop", "date", "--drop", "said")
    run("train", folder / name, *asked, *drop, "--max-gap", 0.9, "-o", model)
    content = run_json("audit", model, folder / name, "--by", "date")
    found = values_of(content)
    assert found["value"].tolist() == [f"2026-0{month}" for month in range(1, 7)]
    assert found["rows"].sum() == content["data"]["rows"] == 1500
    regions = values_of(run_json("audit", model, folder / name, "--by", "region"))
    assert regions["value"].tolist() == ["2", "7", "10"]
    assert regions["rows"].sum() == 1500


def test_rows_that_a_model_was_trained_on_are_not_judged(folder, tmp_path):
    model, asked = tmp_path / "m.fairproj", ("--label", "y", "--sensitive", "sex", "--rounds", 3)
    drop = ("--drop", "date", "--drop", "said", "--test-size", 0)
    run("train", folder / "s.csv", *asked, *drop, "--max-gap", 0.9, "-o", model)
    content = run_json("audit", model, folder / "s.csv", "--by", "date")
    assert "judgement" not in content["by"]["values"][0]


def test_timestamps_dates_and_missing_values(tmp_path, frame):
    some = frame[:600].reset_index(drop=True)
    some["when"] = some["date"].dt.date.where(some.index > 4, None)
    some["stamp"] = some["date"].dt.tz_localize("Europe/Berlin")
    some.to_parquet(tmp_path / "d.parquet", index=False)
    found = values_of(run_json("audit", tmp_path / "d.parquet", *ASKED, "--by", "when"))
    assert found["value"].tolist()[-1] == "missing"
    assert found["rows"].iloc[-1] == 5
    stamps = values_of(run_json("audit", tmp_path / "d.parquet", *ASKED, "--by", "stamp"))
    assert stamps["value"].tolist() == [f"2026-0{month}" for month in range(1, 7)]
    encoded = pa.table({"day": pa.array(some["date"].dt.strftime("%Y-%m-%d")).dictionary_encode()})
    for name in ("sex", "y", "said"):
        encoded = encoded.append_column(name, pa.array(some[name]))
    parquet.write_table(encoded, tmp_path / "e.parquet")
    days = values_of(run_json("audit", tmp_path / "e.parquet", *ASKED, "--by", "day"))
    assert days["rows"].tolist() == stamps["rows"].tolist()


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_picture(folder, tmp_path, suffix):
    path = tmp_path / f"gaps.{suffix}"
    asked = ("--by", "date", "--max-gap", 0.2, "--plot", path)
    printed = run("audit", folder / "s.csv", *ASKED, *asked, code=3).stdout
    assert f"Written: {path}" in printed.replace("\n", "")
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(begins)
    assert "exists already" in run("audit", folder / "s.csv", *ASKED, *asked, code=1).stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--by", "dat"], "has no column 'dat'; did you mean 'date'?"),
        (["--by", "date:week"], "--by date:week ends in 'week'; after the colon use one of 'day'"),
        (["--by", "region:month"], "--by region:month needs dates such as 2026-03-31, and the"),
        (["--by", "sex"], "--by sex names a column that is the label, sensitive or the prediction"),
        (["--by", "said"], "--by said names a column that is the label, sensitive or the"),
        (["--by", "x"], "column 'x' has more than 400 different values, the most that --by"),
        (["--plot", "g.png"], "--plot draws the gaps of --by; add --by COLUMN"),
        (["--by", "date", "--plot", "g.doc"], "g.doc has an unknown suffix; name a .svg, .png or"),
    ],
)
def test_one_sentence_for_what_is_wrong(folder, options, words):
    failed = run("audit", folder / "s.csv", *ASKED, *options, code=1).stderr
    assert words in failed
    assert failed.count("\n") == 1


def test_dates_and_other_values_in_one_column(tmp_path, frame, monkeypatch):
    monkeypatch.setattr(tables, "CHUNK_ROWS", 100)
    some = frame[:400].assign(date=lambda rows: rows["date"].astype(str))
    some.loc[350, "date"] = "soon"
    some.to_parquet(tmp_path / "mixed.parquet", index=False)
    failed = run("audit", tmp_path / "mixed.parquet", *ASKED, "--by", "date", code=1).stderr
    assert "--by date names a column that holds dates, and also 'soon'" in failed


def test_a_column_whose_name_ends_like_a_period(tmp_path, frame):
    frame[:300].rename(columns={"region": "at:month"}).to_csv(tmp_path / "n.csv", index=False)
    found = run_json("audit", tmp_path / "n.csv", *ASKED, "--by", "at:month")
    assert found["by"]["column"] == "at:month"


def test_values_of_the_column_do_not_count_as_groups(folder, monkeypatch):
    """The limit on combinations of labels and groups is one for each value."""
    monkeypatch.setattr(_streams, "MOST_VALUES", 10)
    run_json("audit", folder / "s.csv", *ASKED, "--by", "date:month")
    monkeypatch.setattr(_by, "MOST_VALUES", 5)
    failed = run("audit", folder / "s.csv", *ASKED, "--by", "date", code=1).stderr
    assert "more than 5 different values" in failed


@pytest.mark.parametrize("name", ["[/bold]x", "\x1b\u200b\U000e0041", ":smile:", "$a_$"])
def test_names_of_columns_are_text_in_tables_and_plots(tmp_path, frame, name):
    frame = frame.rename(columns={"region": name})
    frame[name] = frame[name].replace("7", "$x^$")
    frame.to_parquet(tmp_path / "s.parquet")
    asked = (*ASKED, "--by", name, "--plot", tmp_path / "p.svg")
    shown = run("audit", tmp_path / "s.parquet", *asked).stdout
    assert shown.count(escape(name)) >= 2  # the title and the head
    assert not set(shown) & set("\x1b\u200b\U000e0041")


def test_labels_of_plots_are_no_mathematics():
    ax = matplotlib().figure.Figure().subplots()
    for text in ("$a_$", "a$b", r"\$x$", r"$\frac{1}{2}$"):
        ax.set_xlabel(plain_label(text))
        label = ax.xaxis.label
        assert label._preprocess_math(label.get_text()) == (text, False)


@pytest.mark.parametrize("unsafe", "\x07\xad\u200b\u200d\u202e\u2060\ufeff\U000e0041")
def test_characters_that_mislead_are_shown_as_codes(unsafe):
    assert escape(f"a{unsafe}b") == f"a{ascii(unsafe)[1:-1]}b"
