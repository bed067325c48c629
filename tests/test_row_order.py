"""The order of the rows does not matter, whatever columns they have."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.engines.lightgbm.binning import SAMPLED_ROWS

WATCH = {"validation_fraction": None}  # rows that are held out are drawn at random
MODELS = {
    "FairProj": lambda **size: FairProjClassifier("equal_opportunity", 0.05, **size),
    "FairBoost": lambda votes, **size: FairBoostClassifier(
        "equal_opportunity", 0.2, **WATCH, **size
    ),
    "FairBoost, first order": lambda **size: FairBoostClassifier(
        "demographic_parity", 0.2, tree_step="first_order", **WATCH, **size
    ),
    "FairBoost, exponential": lambda **size: FairBoostClassifier(
        "equalized_odds", 0.2, loss="exponential", learning_rate=0.5, **WATCH, **size
    ),
}


def mixed_table(n_rows, rng):
    """A category, a number with a value for each row, and one with missing values."""
    number = rng.normal(size=n_rows)
    holes = np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows))
    return pd.DataFrame({"word": rng.choice(list("abcdef"), n_rows), "number": number, "h": holes})


def labels(table, groups, rng):
    score = table["number"] + (table["word"] == "a") + table["h"].isna() - 0.5 * groups
    return (score + rng.logistic(size=len(table)) > 0.2).to_numpy().astype(int)


def swapped(n_rows, row):
    order = np.arange(n_rows)
    order[[0, row]] = row, 0
    return order


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:no useful round", "ignore:the model says the same")
@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(400, 800),
    depth=st.integers(1, 4),
    votes=st.sampled_from(["discrete", "confidence"]),
    name=st.sampled_from(sorted(MODELS)),
    weighted=st.booleans(),
)
def test_no_model_depends_on_the_order_of_the_rows(seed, n_rows, depth, votes, name, weighted):
    rng = np.random.default_rng(seed)
    X, groups = mixed_table(n_rows, rng), rng.integers(0, 2, n_rows)
    y, weight = labels(X, groups, rng), rng.uniform(0.5, 2.0, n_rows)
    new = mixed_table(100, rng)

    def margin(order):
        model = MODELS[name](max_depth=depth, votes=votes, n_estimators=8)
        model.fit(
            X.iloc[order],
            y[order],
            sensitive_features=groups[order],
            sample_weight=weight[order] if weighted else None,
        )
        return model.decision_function(new)

    expected = margin(np.arange(n_rows))
    for order in (rng.permutation(n_rows), swapped(n_rows, int(rng.integers(1, n_rows)))):
        permuted = margin(order)
        np.testing.assert_allclose(permuted, expected, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(permuted > 0, expected > 0)


@pytest.mark.parametrize("row", [17, 1999])
def test_which_row_comes_first_does_not_matter(row):
    """With a categorical column, LightGBM is given a row more than there are."""
    rng = np.random.default_rng(0)
    X = mixed_table(2000, rng)
    X.loc[[17, 1999], "number"] = [1e6, -1e6]
    groups = rng.integers(0, 2, len(X))
    y, order = labels(X, groups, rng), swapped(len(X), row)
    one, other = (
        FairProjClassifier(n_estimators=4, max_depth=4)
        .fit(X.iloc[rows], y[rows], sensitive_features=groups[rows])
        .decision_function(X)
        for rows in (np.arange(len(X)), order)
    )
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_values", [255, 256, 257])
def test_a_column_of_about_as_many_values_as_bins(n_values):
    """Whether every value gets a bin of its own must not depend on which rows come first.

    Some values are rare: a sample of the rows finds fewer than 256 values in one order and more in
    another.
    """
    rng = np.random.default_rng(0)
    n_rows, max_bins = 20_000, 255
    values = rng.normal(size=n_values)
    common = rng.choice(values[:-4], n_rows - 4)
    label_of = dict(zip(values, rng.integers(0, 2, n_values), strict=True))
    x = np.r_[common, values[-4:]]
    y = np.array([label_of[value] for value in x])

    def margin(order):
        model = FairProjClassifier(None, n_estimators=1, max_leaf_nodes=300, max_bins=max_bins)
        return model.fit(x[order][:, None], y[order]).decision_function(values[:, None])

    rare_last = np.arange(n_rows)
    rare_apart = np.insert(rare_last[:-4], [0, 119, 238, 357], rare_last[-4:])  # each 120th row
    expected = margin(rare_last)
    for order in (rare_apart, np.roll(rare_last, 4), rng.permutation(n_rows)):
        np.testing.assert_allclose(margin(order), expected, rtol=0, atol=1e-9)
    own_bin = (expected > 0) == np.array([label_of[value] for value in values])
    assert own_bin.all() == (n_values <= max_bins)


def test_a_rare_category_among_many_rows_is_split_on():
    """LightGBM looks at 200,000 rows for categories, and would not know these."""
    n_rows, n_rare = SAMPLED_ROWS + 40_000, 100
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, n_rows)
    rare = rng.choice(n_rows, n_rare, replace=False)
    codes[rare] = 5 + np.arange(n_rare)
    y = codes % 2
    model = FairProjClassifier(
        None, n_estimators=1, max_leaf_nodes=n_rare + 5, categorical_features=[0]
    )
    model.fit(codes[:, None], y)
    np.testing.assert_array_equal(model.predict(codes[:, None]), y)


def test_a_missing_value_among_many_rows_is_split_on():
    """LightGBM looks at 200,000 rows for missing values, and would read these as zero."""
    n_rows, n_columns = SAMPLED_ROWS + 100_000, 8
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (n_rows, n_columns)).astype(float)
    rows = rng.choice(n_rows, n_columns, replace=False)
    X[rows, np.arange(n_columns)] = np.nan
    y = np.isnan(X).any(axis=1).astype(int)
    model = FairProjClassifier(None, n_estimators=1, max_leaf_nodes=n_columns + 1).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
