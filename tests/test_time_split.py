"""Rows before and after a point in time."""

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairproj.data.time_split import TimeCut, Times

DAY = datetime.date(2024, 1, 1)


def cut(values, fraction=0.25):
    times = Times("t")
    times.add(pd.Series(values))
    return times.cut(fraction)


@pytest.mark.parametrize(
    ("values", "start"),
    [
        (pd.date_range(DAY, periods=100), "2024-03-16"),
        (pd.date_range(DAY, periods=100, freq="7h"), "2024-01-22T21:00:00"),
        (pd.date_range(DAY, periods=100, freq="7h", tz="Europe/Berlin"), "2024-01-22T20:00:00"),
        ([DAY + datetime.timedelta(days=days) for days in range(100)], "2024-03-16"),
        ([f"2024-{month:02d}" for month in range(1, 13)], "2024-10-01"),
        (pd.Categorical([f"2024-{month:02d}-05" for month in range(1, 13)]), "2024-10-05"),
        ([f"05.{month}.2024" for month in range(1, 13)], "2024-10-05"),
        ([f"1.1.2024 {hour}:30" for hour in range(12)], "2024-01-01T09:30:00"),
        (["01.01.2024", "2024-01-02", "03.01.2024", "2024-01-04"], "2024-01-04"),
        (range(2000, 2020), "2015"),
        ([str(year) for year in range(2000, 2020)], "2015"),
        ([0.1, 0.2, 0.3, 0.4], "0.4"),
    ],
)
def test_times_of_many_kinds(values, start):
    found = cut(values)
    assert found.start == start
    assert found.which == f"the rows from {start} on, by {found.column}"
    expected = np.arange(len(values)) >= 0.75 * len(values)
    np.testing.assert_array_equal(found.mask(pd.Series(values)), expected)
    as_text = pd.Series(values).astype(str)  # as a CSV file has them
    np.testing.assert_array_equal(found.mask(as_text), expected)


@given(
    st.lists(st.integers(0, 20), min_size=2, max_size=60).filter(lambda x: len(set(x)) > 1),
    st.floats(0.01, 0.99),
    st.integers(1, 5),
)
def test_the_share_is_the_nearest_that_ties_allow(values, fraction, n_parts):
    times = Times("t")
    for part in np.array_split(values, n_parts):
        times.add(pd.Series(part))
    found = times.cut(fraction)
    held_out = found.mask(pd.Series(values))
    assert 0 < held_out.sum() < len(values)
    shares = [np.mean(np.array(values) >= value) for value in set(values) - {min(values)}]
    assert abs(held_out.mean() - fraction) == pytest.approx(min(abs(s - fraction) for s in shares))
    assert max(np.array(values)[~held_out]) < min(np.array(values)[held_out])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["03/31/2024", "04/01/2024"], "'t' holds '03/31/2024', a date in a form that is not"),
        (["31.04.2024", "01.05.2024"], "'t' holds '31.04.2024', and the calendar has no such"),
        (["2024-01-01", "soon"], "'t' holds 'soon', which is not a date or time"),
        ([True, False], "which is not a date or time"),
        ([datetime.time(1), datetime.time(2)], "which is not a date or time"),
        ([5, 5, 5], "has the same time in all 3 rows"),
    ],
)
def test_what_is_no_time(values, message):
    with pytest.raises(ValueError, match=message):
        cut(values)


def test_numbers_and_dates_do_not_mix():
    times = Times("t")
    times.add(pd.Series(["2024-01-01"]))
    with pytest.raises(ValueError, match="which is not a date or time"):
        times.add(pd.Series([20240101]))


def test_a_damaged_cut_is_refused():
    with pytest.raises(ValueError, match="which is not a date or time"):
        TimeCut("t", "soon", False)


@pytest.mark.parametrize(
    "values", [[pd.Timestamp("2024-01-01"), pd.NaT], ["2024-01-01", None], [1.0, np.nan]]
)
def test_missing_times_are_refused(values):
    with pytest.raises(ValueError, match="lacks the time of 1 row; drop those rows"):
        Times("when").add(pd.Series(values))
