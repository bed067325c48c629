"""The medians that stand in for numbers missing for the first time."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from fairproj import Batches, FairBoostClassifier
from fairproj.data import encoder as encoding
from fairproj.data.encoder import FeatureEncoder

VALUES = st.one_of(st.just(0.0), st.just(np.nan), st.floats(-3, 3).map(lambda x: round(x, 1)))


def medians(X, **options):
    encoder = FeatureEncoder("from_dtype", 255, **options)
    encoder.fit_transform(X)
    return encoder.encoding.typical


def expected(column):
    """The smallest value with at least half of the others at or below it."""
    present = column[~np.isnan(column)]
    return np.quantile(present, 0.5, method="inverted_cdf") if len(present) else np.nan


@given(hnp.arrays(float, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=VALUES))
def test_the_lower_median_of_the_values(X):
    wanted = [expected(column) for column in X.T]
    np.testing.assert_array_equal(medians(X), wanted)
    np.testing.assert_array_equal(medians(pd.DataFrame(X).add_prefix("c")), wanted)


@given(hnp.arrays(float, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=VALUES))
def test_zeros_of_a_sparse_matrix_count(X):
    present = np.where(np.isnan(X), 1.0, X)
    wanted = [expected(column) for column in present.T]
    np.testing.assert_array_equal(medians(sparse.csr_matrix(present)), wanted)


def test_columns_of_categories_have_none_and_booleans_the_more_frequent():
    frame = pd.DataFrame({"a": ["x", "y", "y"], "b": [True, False, True], "c": [1, 2, 9]})
    np.testing.assert_array_equal(medians(frame), [np.nan, 1.0, 2.0])


def test_many_rows_are_sampled(monkeypatch):
    X = np.random.default_rng(0).normal(size=(5001, 2))
    exact = np.median(X, axis=0)
    monkeypatch.setattr(encoding, "_MEDIAN_ROWS", 1000)
    found = medians(X)
    assert (found != exact).all()
    np.testing.assert_allclose(found, exact, atol=0.15)


@given(
    st.lists(
        hnp.arrays(float, st.tuples(st.integers(1, 12), st.just(2)), elements=VALUES),
        min_size=1,
        max_size=5,
    )
)
def test_the_median_of_medians_is_between_the_quartiles(parts):
    encoders = [FeatureEncoder("from_dtype", 255) for _ in parts]
    for one, part in zip(encoders, parts, strict=True):
        one.fit_transform(part)
    has_values = [~np.isnan(part).all(axis=0) for part in parts]
    merged = FeatureEncoder.merge(encoders, has_values, ["part"] * len(parts))
    for found, column in zip(merged.encoding.typical, np.concatenate(parts).T, strict=True):
        present = column[~np.isnan(column)]
        if not len(present):
            assert np.isnan(found)
            continue
        assert np.mean(present <= found) >= 0.25
        assert np.mean(present >= found) >= 0.25


def test_a_table_in_parts_keeps_medians():
    pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(5, 1, 900), "b": rng.integers(0, 9, 900).astype(float)})
    y = np.where(X["a"] + rng.normal(size=900) > 5, 1, 0)
    rows = [slice(start, start + 300) for start in range(0, 900, 300)]
    batches = Batches(lambda: ((X[part], y[part]) for part in rows))
    model = FairBoostClassifier(None, engine="xgboost", n_estimators=4).fit(batches)
    new = X.iloc[:20].copy()
    new.iloc[:5, 0] = np.nan
    median = model.encoding_.typical[0]
    assert abs(median - 5) < 0.2
    _, found = model.predict_matrix(model.to_matrix(new, missing="score"))
    np.testing.assert_allclose(found, model.predict_proba(new.fillna({"a": median})), atol=1e-6)
