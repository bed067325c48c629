"""Checks of the data: scikit-learn as oracle, planted columns, and columns that mean nothing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.metrics import roc_auc_score

from fairproj.datasets import load_adult
from fairproj.inference import rows_to_confirm, smallest_max_gap
from fairproj.inspection import (
    confirmable_gaps,
    find_identifiers,
    find_leaks,
    find_proxies,
    inspect_rows,
    joint_auc,
)
from fairproj.inspection.columns import read_columns
from fairproj.inspection.strength import (
    N_FOLDS,
    binned_auc,
    class_aucs,
    cross_fitted_scores,
    deal_folds,
)


def planted(n=2000, seed=0):
    """Sex, a copy of it that is wrong in 1 % of the rows, noise, and a name for each row."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["female", "male"], n)
    wrong = rng.random(n) < 0.01
    copy = np.where(wrong, np.where(sex == "male", "female", "male"), sex)
    X = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "title": np.where(copy == "male", "Mr", "Ms"),
            "height": np.where(sex == "male", 174.0, 166.0) + 7 * rng.normal(size=n),
            "name": [f"name {i}" for i in rng.permutation(n)],
            "town": rng.integers(300, size=n).astype(str),
            "customer_id": rng.permutation(n) + 10_000,
        }
    )
    y = np.where(X["height"] + 10 * rng.normal(size=n) > 172, "yes", "no")
    return X, y, sex


def by_column(table):
    return table.set_index("column")


def test_a_planted_copy_is_found_and_noise_is_not():
    X, _, sex = planted()
    proxies = find_proxies(X, sex)
    assert proxies["column"].iloc[0] == "title"
    assert proxies["column"][proxies["nearly_determines"]].tolist() == ["title"]
    auc = by_column(proxies)["auc"]
    assert auc["title"] == pytest.approx(0.99, abs=0.008)
    assert auc["height"] == pytest.approx(stats.norm.cdf(8 / (7 * np.sqrt(2))), abs=0.04)
    for name in ("noise", "name", "town", "customer_id"):
        assert auc[name] == pytest.approx(0.5, abs=0.06), name


@pytest.mark.parametrize("n_groups", [2, 4])
def test_the_auc_is_scikit_learn_s_on_the_same_scores(n_groups):
    """Rows and scores one by one, fold by fold."""
    rng = np.random.default_rng(3)
    groups = rng.integers(n_groups, size=700)
    bins = (groups + rng.integers(12, size=700)) % 14
    folds = deal_folds(groups, 0)
    wanted = np.arange(n_groups)
    found = class_aucs(bins, 14, groups, wanted, folds)
    for group in wanted:
        aucs = []
        for fold in range(N_FOLDS):
            train, test = folds != fold, folds == fold
            prior = np.mean(groups[train] == group)
            score = {
                b: (np.sum(groups[train & (bins == b)] == group) + prior)
                / (np.sum(train & (bins == b)) + 1)
                for b in range(14)
            }
            aucs.append(roc_auc_score(groups[test] == group, [score[b] for b in bins[test]]))
        assert found[group] == pytest.approx(np.mean(aucs), abs=1e-12)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=40))
def test_the_binned_auc_against_scikit_learn(rows):
    scores, labels = (np.array(part) for part in zip(*rows, strict=True))
    if labels.all() or not labels.any():
        return
    positive = np.bincount(scores[labels], minlength=5)
    negative = np.bincount(scores[~labels], minlength=5)
    values = np.array([0.3, 0.1, 0.1, 0.7, 0.2])  # not in order, with a tie
    expected = roc_auc_score(labels, values[scores])
    assert binned_auc(values, positive, negative) == pytest.approx(expected)


def test_bins_without_rows_in_other_folds_score_the_prior():
    scores = cross_fitted_scores(np.array([3, 0, 0]), np.array([4, 2, 0]))
    assert scores[2] == pytest.approx(3 / 6)


def test_columns_that_mean_nothing_are_never_flagged():
    """Negative control: 25 tables of 12 columns of all kinds, small groups among them."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([60, 200, 1000]))
        X = pd.DataFrame(
            {
                **{f"number {i}": rng.normal(size=n) for i in range(4)},
                **{f"count {i}": rng.poisson(2, size=n) for i in range(4)},
                **{f"text {i}": rng.integers(n // 2, size=n).astype(str) for i in range(4)},
            }
        )
        groups = rng.choice(5, n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
        proxies = find_proxies(X, groups)
        assert not proxies["nearly_determines"].any(), seed
        labels = rng.integers(2, size=n)
        leaks = find_leaks(X, labels)
        assert not leaks["nearly_determines"].any(), seed
        assert leaks["auc"].mean() == pytest.approx(0.5, abs=0.1)
        assert not len(find_identifiers(X)), seed


def test_of_several_groups_the_one_that_is_told_best_counts():
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b", "c", "d"], 2000)
    X = pd.DataFrame({"speaks": np.where(groups == "c", "x", "y"), "noise": rng.normal(size=2000)})
    strongest = find_proxies(X, groups).iloc[0]
    assert (strongest["column"], strongest["group"]) == ("speaks", "c")
    assert strongest["auc"] == 1.0
    assert strongest["nearly_determines"]
    assert strongest["mean_auc"] < 0.8


def test_groups_too_small_to_say_anything():
    X = pd.DataFrame({"copy": ["a"] * 10 + ["b"] * 10})
    proxies = find_proxies(X, X["copy"])
    assert proxies["auc"].isna().all()
    assert not proxies["nearly_determines"].any()
    assert np.isnan(joint_auc(X, X["copy"]))


def test_all_features_together_tell_what_none_tells_alone():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 3000))
    groups = np.where((first > 0) ^ (second > 0), "a", "b")
    X = pd.DataFrame({"first": first, "second": second})
    assert find_proxies(X, groups)["auc"].max() < 0.6
    assert joint_auc(X, groups) > 0.95
    assert joint_auc(X, rng.permutation(groups)) == pytest.approx(0.5, abs=0.05)


def test_every_kind_of_table_gives_the_same():
    X, y, sex = planted(600)
    X = X.assign(
        missing=X["noise"].mask(X["noise"] > 1),
        unknown=X["title"].mask(X["noise"] > 1),
        flag=X["noise"] > 0,
    )
    expected = by_column(find_proxies(X, sex))["auc"]
    for other in (X.astype({"title": "category"}), pl.from_pandas(X), X.astype(object)):
        found = by_column(find_proxies(other, pd.Series(sex)))["auc"]
        pd.testing.assert_series_equal(found[expected.index], expected)
        assert find_identifiers(other)["column"].tolist() == ["name", "customer_id"]
    numbers = X[["noise", "height", "missing", "customer_id"]]
    for array in (numbers.to_numpy(), sparse.csr_array(numbers.to_numpy())):
        found = by_column(find_proxies(array, sex))["auc"]
        np.testing.assert_allclose(found[[0, 1, 2, 3]], expected[numbers.columns])
        assert find_identifiers(array)["column"].tolist() == [3]
    assert find_leaks(pl.from_pandas(X), y).equals(find_leaks(X, y))


def test_missing_values_may_be_the_proxy():
    X, _, sex = planted(600)
    X = pd.DataFrame({"maiden_name": np.where(sex == "female", "given", None)})
    assert find_proxies(X, sex)["auc"].tolist() == [1.0]
    dates = pd.DataFrame({"date": pd.Series(pd.Timestamp("2020-01-01"), range(600))})
    dates.loc[sex == "male", "date"] = pd.NaT
    assert find_proxies(dates, sex)["auc"].tolist() == [1.0]


def test_strange_columns():
    """Of any type, and in any case without a warning."""
    rng = np.random.default_rng(0)
    groups, y = rng.choice(["a", "b"], 300), rng.integers(2, size=300)
    X = pd.DataFrame(
        {
            "missing": np.full(300, np.nan),
            "infinite": np.where(rng.random(300) < 0.1, np.inf, rng.normal(size=300)),
            "none": [None] * 300,
            "mixed": [1, "x", None] * 100,
            "lists": [[1]] * 300,
            "constant": 1,
            "date": pd.date_range("2020", periods=300),
            "delta": pd.to_timedelta(np.arange(300), "s"),
            "large": np.arange(300) * 1e17,
            "boolean": pd.array([True, None, False] * 100, dtype="boolean"),
        }
    )
    checked = inspect_rows(X, y, groups)
    assert checked.proxies["auc"].between(0.35, 0.65).all()
    assert inspect_rows(X[[]], y, groups).proxies.empty
    rare = np.array(["a"] * 298 + ["b", "c"])
    (small,) = [one for one in inspect_rows(X, y, rare).findings if one.kind == "small_group"]
    assert "would confirm no limit below 1 with a chance of 80 %" in small.words


@pytest.mark.parametrize(
    ("values", "is_one"),
    [
        (np.arange(500), True),
        (np.arange(500) * 7 + 3, True),
        (np.arange(500.0), True),  # whole numbers, as missing values make of them
        (np.random.default_rng(0).integers(10**9, 10**10, 500), True),  # account numbers
        ([f"C-{i}" for i in range(500)], True),
        (np.random.default_rng(0).normal(size=500), False),  # a measurement
        (np.random.default_rng(0).integers(0, 40_000, 500), False),  # an amount of money
        (np.random.default_rng(0).lognormal(9, 1, 500).round(), False),
        (np.arange(500) // 2, False),
        (np.full(500, 7), False),
        (np.full(500, np.nan), False),
        (pd.date_range("2020", periods=500), False),
        (np.random.default_rng(0).integers(500, size=500).astype(str), False),
    ],
)
def test_identifiers_and_measurements(values, is_one):
    found = find_identifiers(pd.DataFrame({"column": values}))
    assert (found["column"].tolist() == ["column"]) is is_one


def test_identifiers_with_a_few_customers_twice():
    values = np.arange(500)
    values[:8] = values[8:16]
    found = find_identifiers(pd.DataFrame({"customer": values}))
    assert found["distinct"].tolist() == [pytest.approx(0.984)]


def test_values_that_occur_twice_are_no_identifiers_though_a_sample_has_them_once():
    values = np.random.default_rng(0).permutation(np.repeat(np.arange(20_000), 2)).astype(str)
    table = pd.DataFrame({"pair": values})
    assert not len(find_identifiers(table, max_rows=1000))
    single = pd.DataFrame({"single": np.arange(40_000).astype(str)})
    assert len(find_identifiers(single, max_rows=1000))


def test_leaks():
    X, y, _ = planted()
    rng = np.random.default_rng(1)
    X["decision_code"] = np.where(y == "yes", rng.integers(0, 5, 2000), rng.integers(5, 9, 2000))
    leaks = find_leaks(X, y)
    assert leaks["column"][leaks["nearly_determines"]].tolist() == ["decision_code"]
    assert leaks["auc"].iloc[0] == 1.0


def test_rows_that_are_sampled_give_nearly_the_same():
    data = load_adult()
    everything = by_column(find_proxies(data.data, data.sensitive_features))["auc"]
    some = by_column(find_proxies(data.data, data.sensitive_features, max_rows=8000))["auc"]
    np.testing.assert_allclose(some[everything.index], everything, atol=0.03)
    again = by_column(find_proxies(data.data, data.sensitive_features, max_rows=8000))["auc"]
    assert some.equals(again)


def test_sizes_against_the_rows_and_the_power():
    y = np.repeat(["no", "yes"], [3000, 1000])
    groups = np.tile(["a", "a", "a", "b"], 1000)
    sizes = confirmable_gaps(y, groups, "equalized_odds", 0.1, test_size=0.5)
    assert sizes["rate"].tolist() == ["true_positive_rate"] * 2 + ["false_positive_rate"] * 2
    assert sizes["rows"].tolist() == [750, 250, 2250, 750]
    assert sizes["held_out"].tolist() == [375, 125, 1125, 375]
    assert sizes["needed"].tolist() == [rows_to_confirm(0.1, confidence=0.975)] * 4
    smallest = smallest_max_gap([375, 125], confidence=0.975)
    assert sizes["smallest_max_gap"].iloc[0] == smallest > 0.1
    assert sizes["confirmable_gap"].isna().tolist() == [True, True, False, False]
    flipped = confirmable_gaps(y, groups, "equal_opportunity", 0.1, pos_label="no")
    assert flipped["rows"].tolist() == [2250, 750]
    with pytest.raises(ValueError, match="no difference of rates"):
        confirmable_gaps(y, groups, "selection_ratio")


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 600), min_size=2, max_size=5),
    st.floats(0.03, 0.6),
    st.sampled_from(["equal_opportunity", "demographic_parity"]),
)
@settings(max_examples=40, deadline=None)
def test_what_is_needed_agrees_with_what_is_confirmed(rows, max_gap, statistic):
    """More than the smallest group where the rows are too few, no more than the largest else."""
    groups = np.repeat(np.arange(len(rows) + 1), [2, *rows])[2:]
    y = np.arange(len(groups)) % 3 == 0
    if len(np.unique(groups)) < 2 or not 0 < y.sum() < len(y):
        return
    sizes = confirmable_gaps(y, groups, statistic, max_gap, test_size=1.0)
    if sizes["confirmable_gap"].isna().any():
        assert sizes["needed"].iloc[0] > sizes["held_out"].min()
        assert not (sizes["smallest_max_gap"] <= max_gap).any()
    else:
        assert sizes["needed"].iloc[0] <= sizes["held_out"].max()


def test_four_groups_need_more_rows_than_two():
    """The pairs of all groups are confirmed together, and the rows needed count them too."""
    assert rows_to_confirm(0.1, n_groups=4) > rows_to_confirm(0.1)
    needed = rows_to_confirm(0.08, 0.1, confidence=0.975, n_groups=4)
    assert smallest_max_gap([needed] * 4, 0.1, confidence=0.975) == pytest.approx(0.08, abs=0.002)
    with pytest.raises(ValueError, match="n_groups must be at least 2"):
        rows_to_confirm(0.1, n_groups=1)


def test_columns_that_determine_the_group_only_together():
    """The indicators of the other values of a column whose one indicator is the group."""
    rng = np.random.default_rng(0)
    race = rng.choice(5, 3000, p=[0.5, 0.2, 0.1, 0.1, 0.1])
    X = pd.DataFrame({f"race_{value}": (race == value).astype(int) for value in range(1, 5)})
    X["noise"] = rng.normal(size=3000)
    y = rng.integers(2, size=3000)
    checked = inspect_rows(X, y, race == 0, [], sensitive="race_0")
    (finding,) = checked.findings
    assert finding.kind == "joint_proxy"
    assert finding.is_warning
    assert finding.measure > 0.99
    assert "several columns together nearly determine race_0 (AUC 1.000)" in finding.words
    assert "look at 'race_1'" in finding.words
    alone = inspect_rows(X[["noise"]], y, race == 0, [], sensitive="race_0")
    assert not [one for one in alone.findings if one.is_warning]


def test_all_checks_at_once():
    X, y, sex = planted()
    X["income"] = np.where((sex == "male") & (X["noise"] > 0), np.nan, 1.0)
    checked = inspect_rows(X, y, sex, [("equal_opportunity", 0.05)], sensitive="sex")
    found = [(finding.kind, finding.column) for finding in checked.findings]
    assert found == [
        ("identifier", "name"),
        ("identifier", "customer_id"),
        ("proxy", "title"),
        ("joint_strength", None),
        ("small_group", "female"),
        ("missing_values", "income"),
    ]
    words = [finding.words for finding in checked.findings]
    assert words[2].startswith("column 'title' alone nearly determines sex (AUC 0.9")
    assert (
        "held-out rows with the positive label; if there were no gap and the true positive rate "
        "were near 0.5, the held-out rows would confirm a limit of 0." in words[4]
    )
    assert words[5] == (
        "column 'income' is missing in 50 % of the rows of group 'male' and in 0 % of 'female'"
    )
    pd.testing.assert_frame_equal(checked.proxies, find_proxies(X, sex))
    pd.testing.assert_frame_equal(checked.leaks, find_leaks(X, y))
    assert checked.joint_auc == joint_auc(X, sex)


def test_text_of_any_type_has_the_same_codes():
    values = ["b", None, "a", "b", "", "a"]
    types = {"object": object, "string": "string", "category": pd.CategoricalDtype(["b", "a", ""])}
    X = pd.DataFrame({name: pd.Series(values, dtype=dtype) for name, dtype in types.items()})
    for column in read_columns(X, 100, 0)[0]:
        assert column.is_text
        np.testing.assert_array_equal(column.numbers, [0, np.nan, 1, 0, 2, 1])
    empty = pd.DataFrame({"string": pd.Series([None, None], dtype="string")})
    assert read_columns(empty, 100, 0)[0][0].is_text


def test_a_million_rows_are_sampled():
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=1_000_000)
    X = pd.DataFrame({"copy": sex, "noise": rng.normal(size=1_000_000)})
    columns, rows = read_columns(X, 100_000, 0)
    assert len(rows) == len(columns[0].numbers) == 100_000
    assert find_proxies(X, sex)["nearly_determines"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (None, "X must be an array, a sparse matrix or a data frame"),
        (np.zeros(5), "X must be a table of rows and columns"),
        (np.zeros((5, 2)), "sensitive_features has 3 rows and X has 5"),
    ],
)
def test_bad_tables(X, message):
    with pytest.raises(ValueError, match=message):
        find_proxies(X, [0, 1, 1])


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="X has 5 rows and y has 2"):
        find_leaks(np.zeros((5, 2)), [0, 1])
