"""Gaps by month or region: counts, periods, false alarms by simulation, and the picture."""

import datetime
import json

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from fairproj import FairnessReport, plot_gaps_by
from fairproj.data.cells import CellCounts
from fairproj.data.periods import period_names, split_by
from fairproj.inference import GapsBy, gaps_by
from fairproj.inference.simultaneous import sidak

mpl.use("Agg")


def sample(n=900, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    predicted = np.where(rng.random(n) < 0.75, y, 1 - y)
    groups = np.array(["f", "m"])[rng.integers(2, size=n)]
    days = np.datetime64("2026-01-01") + rng.integers(90, size=n)
    return y, predicted, groups, days


@pytest.mark.parametrize(
    "statistic", ["equal_opportunity", "equalized_odds", "selection_ratio", "predictive_parity"]
)
def test_each_part_is_what_a_report_about_it_says(statistic):
    y, predicted, groups, days = sample()
    found = gaps_by(
        y, predicted, sensitive_features=groups, by=days, statistic=statistic, confidence=0.9
    )
    assert found.table["value"].tolist() == ["2026-01", "2026-02", "2026-03"]
    for row in found.table.itertuples():
        part = pd.Series(days).dt.strftime("%Y-%m").to_numpy() == row.value
        report = FairnessReport.from_predictions(
            y[part], predicted[part], sensitive_features=groups[part], confidence=0.9
        )
        expected = report.gaps.set_index("gap").loc[statistic]
        assert row.rows == part.sum()
        for name in ("estimate", "low", "high", "highest", "lowest", "n_smallest"):
            assert getattr(row, name) == expected[name]


def test_simultaneous_intervals_are_those_of_a_smaller_error():
    y, predicted, groups, days = sample()
    asked = {"sensitive_features": groups, "by": days}
    together = gaps_by(y, predicted, simultaneous=True, **asked)
    alone = gaps_by(y, predicted, confidence=1 - sidak(0.05, 3), **asked)
    ends = ["estimate", "low", "high"]
    np.testing.assert_allclose(together.table[ends], alone.table[ends], atol=1e-9)
    assert together.sentences() == ["All intervals hold with 95 % confidence together."]
    assert "by itself" in alone.sentences()[-1]


# Alarms


def counts(hits, rows):
    """Only rows with a positive label: hits and rows of both groups."""
    hits, rows = np.array(hits, dtype=float), np.array(rows, dtype=float)
    zero = np.zeros(2)
    return CellCounts(np.column_stack([zero, rows]), np.column_stack([zero, hits]))


def judged(parts, max_gap, **parameters):
    names = [f"m{at}" for at in range(len(parts))]
    return GapsBy.from_counts(
        dict(zip(names, parts, strict=True)), ["a", "b"], max_gap=max_gap, **parameters
    )


@pytest.mark.slow
def test_no_false_alarm_in_95_of_100_years_with_a_negative_control():
    """Twelve months whose true gap is max_gap; each by itself raises alarms too often."""
    rng = np.random.default_rng(3)
    rows, rates, repetitions, months = np.array([40, 40]), np.array([0.5, 0.9]), 2000, 12
    max_gap = rates[1] - rates[0]
    hits = rng.binomial(rows, rates, size=(repetitions, months, 2))
    different, place = np.unique(hits.reshape(-1, 2), axis=0, return_inverse=True)
    place = place.reshape(repetitions, months)
    # An alarm depends on the counts of its month and on the number of months only.
    alarm, by_itself = {}, {}
    for start in range(0, len(different), months):
        chosen = np.arange(start, start + months) % len(different)
        found = judged([counts(different[at], rows) for at in chosen], max_gap)
        alarm |= dict(zip(chosen, found.table["judgement"] == "alarm", strict=True))
        by_itself |= dict(zip(chosen, found.table["low"] > max_gap, strict=True))
    any_alarm, control = (
        np.array([known[at] for at in range(len(different))])[place].any(axis=1)
        for known in (alarm, by_itself)
    )
    limit = stats.binom.ppf(0.999, repetitions, 0.05)
    assert any_alarm.sum() <= limit
    assert control.sum() > limit, "the control should fail, or the test shows nothing"


def test_judgements():
    parts = [
        counts([90, 20], [100, 100]),  # a gap of 0.7
        counts([500, 500], [1000, 1000]),  # none
        counts([30, 20], [50, 50]),  # cannot tell
        counts([3, 0], [3, 3]),  # whatever was predicted
    ]
    found = judged(parts, 0.2)
    expected = ["alarm", "within", "undecided", "too few rows"]
    assert found.table["judgement"].tolist() == expected
    assert found.alarms == ["m0"]
    sentences = " ".join(found.sentences())
    assert "Alarm, the gap is above 0.2: m0." in sentences
    assert "nor rule it out: m2." in sentences
    assert "Too few rows to decide, whatever was predicted: m3." in sentences
    assert "4 values were looked at, so each is judged at 98.726 % confidence" in sentences
    assert "the chance of any false alarm is at most 5 %" in sentences
    assert found.corrected_confidence**4 == pytest.approx(0.95)
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["judgement"] for row in again["values"]] == expected
    assert "m3" in str(found)


def test_a_group_without_rows_is_named_and_never_simply_within():
    def three(part, hits=0, rows=0):
        third = counts([0, hits], [0, rows])
        return CellCounts(
            np.vstack([part.size, third.size[1:]]), np.vstack([part.predicted, third.predicted[1:]])
        )

    quiet, wide = counts([500, 500], [1000, 1000]), counts([90, 20], [100, 100])
    parts = {"m0": three(quiet), "m1": three(quiet, 480, 1000), "m2": three(wide)}
    found = GapsBy.from_counts(parts, ["a", "b", "c"], max_gap=0.2)
    assert found.table["judgement"].tolist() == ["within where compared", "within", "alarm"]
    assert found.table["not_compared"].tolist() == [["c"], [], ["c"]]
    expected = "Not compared, because the group has no rows there: c in m0, m2."
    assert expected in found.sentences()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["summary"]
    plain = GapsBy.from_counts(parts, ["a", "b", "c"])
    assert expected in plain.sentences()


def test_the_same_month_alarms_alone_but_not_among_many():
    month, quiet = counts([67, 40], [100, 100]), counts([9, 9], [20, 20])
    assert judged([month], 0.1).alarms == ["m0"]
    assert judged([month] + 39 * [quiet], 0.1).alarms == []


def test_bounds_that_judge_are_one_sided():
    """At the corrected confidence; an interval at twice that error has the same ends."""
    parts = [counts([70, 40], [100, 100]), counts([50, 45], [100, 100])]
    found = judged(parts, 0.1).table
    error = sidak(0.05, 2)
    same = judged(parts, None, confidence=1 - 2 * error).table
    np.testing.assert_allclose(found["corrected_low"], same["low"], atol=1e-9)
    np.testing.assert_allclose(found["corrected_high"], same["high"], atol=1e-9)


def test_a_group_without_rows_in_a_part_is_not_compared_there():
    y, predicted, groups, _ = sample()
    region = np.where(groups == "f", "north", "south")
    region[:100] = "east"
    found = gaps_by(y, predicted, sensitive_features=groups, by=region, max_gap=0.5)
    table = found.table.set_index("value")
    assert table.loc[["north", "south"], "judgement"].tolist() == 2 * ["too few rows"]
    assert table.loc["north", ["low", "high"]].tolist() == [0, 1]
    assert np.isnan(table.loc["north", "estimate"])
    assert table.loc["east", "rows"] == 100
    assert found.to_dict()["values"][1]["estimate"] is None


# Values and periods


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ("day", ["2023-12-31", "2024-02-29"]),
        ("month", ["2023-12", "2024-02"]),
        ("quarter", ["2023-Q4", "2024-Q1"]),
        ("year", ["2023", "2024"]),
    ],
)
def test_periods(period, expected):
    days = ["2023-12-31", "2024-02-29"]
    kinds = [
        days,
        [f"{day}T23:59:59+02:00" for day in days],
        [f"{day} 23:59" for day in days],
        [datetime.date.fromisoformat(day) for day in days],
        list(pd.to_datetime(days)),
        list(pd.to_datetime(days).tz_localize("Asia/Tokyo")),
    ]
    for values in kinds:
        assert period_names(values, period) == expected


@pytest.mark.parametrize("value", ["2024-13-01", "2024-02-30", "2024-1-1", "32.02.2024", "x", 2024])
def test_what_is_no_date(value):
    assert period_names([value], "month") == [None]


BY = ["2026-02-01", "2026-01-31", "2026-02-28", "2026-01-01"]


@pytest.mark.parametrize(
    "by",
    [
        BY,
        np.array(BY, dtype="datetime64[s]"),
        pd.Series(BY, index=[5, 6, 7, 8]),
        pd.to_datetime(pd.Series(BY)),
        pd.Series(pd.Categorical(BY)),
        pl.Series(BY).str.to_date(),
        pl.Series(BY).str.to_datetime(),
        pd.DataFrame({"date": BY}),
    ],
    ids=lambda by: type(by).__name__,
)
def test_dates_of_all_kinds_go_by_month(by):
    codes, names = split_by(by, 4)
    assert names == ["2026-01", "2026-02"]
    assert codes.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("by", "names", "codes"),
    [
        ([10, 9, 10], ["9", "10"], [1, 0, 1]),
        ([10.0, np.nan, 9.0], ["9", "10", "missing"], [1, 2, 0]),
        (["b", None, "a"], ["a", "b", "missing"], [1, 2, 0]),
        (["b", 1, "a"], ["1", "a", "b"], [2, 0, 1]),
        ([True, False, True], ["False", "True"], [1, 0, 1]),
        (["2026-01-01", "x", "2026-01-02"], ["2026-01-01", "2026-01-02", "x"], [0, 2, 1]),
    ],
)
def test_other_values_stay_what_they_are(by, names, codes):
    found, order = split_by(by, 3)
    assert order == names
    assert found.tolist() == codes


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"by": np.arange(900)}, "by has 900 different values, the most is 400; join some"),
        ({"by": np.zeros((900, 2))}, r"one column with a value for each of the 900 rows, got a"),
        ({"by": np.zeros(5)}, r"got a table of shape \(5, 1\)"),
        ({"by": np.repeat("x", 900), "period": "month"}, "by holds 'x', which is not a date such"),
        ({"period": "week"}, "period='week' is unknown; use one of 'day', 'month', 'quarter'"),
        ({"max_gap": 5}, "max_gap must lie between 0 and 1, got 5"),
        ({"confidence": 95}, "confidence must lie between 0 and 1, got 95"),
        ({"statistic": "parity"}, "statistic='parity' is unknown"),
    ],
)
def test_bad_input(arguments, words):
    y, predicted, groups, days = sample()
    with pytest.raises(ValueError, match=words):
        gaps_by(y, predicted, **({"sensitive_features": groups, "by": days} | arguments))


# The picture


def test_the_picture_has_intervals_limit_and_alarms():
    import matplotlib.pyplot as plt

    found = judged(
        [counts([90, 20], [100, 100]), counts([5, 5], [9, 9]), counts([3, 0], [3, 3])], 0.2
    )
    ax = plot_gaps_by(found)
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["alarm"].get_xdata().tolist() == [0]
    assert lines["too few rows"].get_xdata().tolist() == [2]
    assert lines["largest gap allowed, 0.2"].get_ydata()[0] == 0.2
    ends = [segment[:, 1].tolist() for part in ax.collections for segment in part.get_segments()]
    for row in found.table.itertuples():
        assert [row.low, row.high] in ends
        assert [row.corrected_low, row.corrected_high] in ends
    assert [text.get_text() for text in ax.get_xticklabels()] == ["m0", "m1", "m2"]
    _, own = plt.subplots()
    plain = judged([counts([90, 20], [100, 100])], None, simultaneous=True)
    assert plot_gaps_by(plain, ax=own) is own
    assert "all together" in own.get_title(loc="left")
    plt.close("all")


def test_many_names_are_thinned_out():
    import matplotlib.pyplot as plt

    ax = plot_gaps_by(judged(365 * [counts([3, 3], [9, 9])], None))
    assert len(ax.get_xticks()) <= 60
    plt.close("all")
