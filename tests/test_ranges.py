"""Ranges of numbers as groups: cuts, names, order, and proposals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairproj.data.checks import check_groups
from fairproj.data.ranges import (
    check_cuts,
    cut_columns,
    cut_ranges,
    propose_cuts,
    range_names,
)

NUMBERS = st.floats(-1e9, 1e9, allow_nan=False) | st.integers(-100, 100).map(float)


@given(
    st.lists(NUMBERS | st.just(np.nan), max_size=40),
    st.lists(NUMBERS, min_size=1, max_size=6, unique=True).map(sorted),
)
def test_ranges_are_those_of_pandas(values, cuts):
    expected = pd.cut(
        pd.Series(values, dtype=float), [-np.inf, *cuts, np.inf], right=False, labels=False
    )
    found = cut_ranges(values, cuts)
    np.testing.assert_array_equal(found.codes, expected.fillna(-1))
    assert found.ordered
    assert list(found.categories) == range_names(cuts)


def test_infinite_values_are_in_the_outer_ranges():
    assert list(cut_ranges([-np.inf, np.inf], [0])) == ["under 0", "0 and over"]


def test_names_have_the_numbers_that_were_given():
    assert range_names([0.5]) == ["under 0.5", "0.5 and over"]
    assert range_names([-1, 0.1, 2e6]) == [
        "under -1",
        "-1 to under 0.1",
        "0.1 to under 2000000",
        "2000000 and over",
    ]


@pytest.mark.parametrize("cuts", [[], ["a"], [""], [1, 1], [2, 1], [np.nan], [0, np.inf], [None]])
def test_cuts_must_be_increasing_numbers(cuts):
    with pytest.raises(ValueError, match="must be increasing numbers separated by commas"):
        check_cuts(cuts)


def test_groups_of_ranges_are_in_their_order():
    """As texts "under 25" would come last; crossed with other columns too."""
    frame = pd.DataFrame({"age": [70, 30, 20, 30], "sex": ["m", "m", "f", "f"]})
    cut = cut_columns(frame, {"age": [25, 60]})
    assert frame["age"].tolist() == [70, 30, 20, 30]
    groups = check_groups(cut[["age"]], 4)
    assert groups.names == ["under 25", "25 to under 60", "60 and over"]
    assert groups.codes.tolist() == [2, 1, 0, 1]
    crossed = check_groups(cut, 4)
    assert crossed.names == [
        "under 25, f",
        "25 to under 60, f",
        "25 to under 60, m",
        "60 and over, m",
    ]


def test_a_range_without_rows_is_no_group():
    cut = cut_columns(pd.DataFrame({"age": [20, 70]}), {"age": [25, 60]})
    assert check_groups(cut, 2).names == ["under 25", "60 and over"]


def test_missing_values_have_no_range():
    cut = cut_columns(pd.DataFrame({"age": [20, None]}), {"age": [25]})
    with pytest.raises(ValueError, match="'age' has 1 missing value"):
        check_groups(cut, 2)


@given(st.integers(0, 10_000), st.sampled_from([60, 500, 5000]), st.floats(0.1, 0.9))
def test_proposed_ranges_have_rows_of_both_labels(seed, n_rows, share):
    rng = np.random.default_rng(seed)
    values = rng.choice([rng.normal(40, 12, n_rows).round(), rng.lognormal(10, 1, n_rows)])
    positive = rng.random(n_rows) < share
    cuts = propose_cuts(values, positive)
    table = pd.crosstab(cut_ranges(values, cuts or [0]), positive)
    if cuts:
        assert check_cuts(cuts) == cuts
        assert len(table) == len(cuts) + 1
        assert table.to_numpy().min() >= (30 if len(cuts) > 1 else 2)


def test_proposed_cuts_are_round_and_near_quantiles():
    rng = np.random.default_rng(0)
    ages = rng.normal(40, 12, 5000).round()
    cuts = propose_cuts(ages, rng.random(5000) < 0.3)
    assert cuts == [30, 40, 50]
    for cut, share in zip(cuts, (0.25, 0.5, 0.75), strict=True):
        assert np.mean(ages < cut) == pytest.approx(share, abs=0.08)


def test_counts_stand_for_rows():
    rng = np.random.default_rng(1)
    ages, positive = rng.integers(18, 90, 3000), rng.random(3000) < 0.4
    table = pd.DataFrame({"age": ages, "y": positive}).value_counts().reset_index()
    counted = propose_cuts(table["age"], table["y"], table["count"])
    assert counted == propose_cuts(ages, positive)


def test_no_proposal_where_a_label_is_too_rare():
    ages = np.arange(100)
    assert propose_cuts(ages, ages == 50) == []
    assert propose_cuts(np.ones(100), ages > 50) == []
