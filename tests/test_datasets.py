"""Bundled data, against numbers from the literature."""

import numpy as np
import pandas as pd

from fairproj.datasets import load_german


def test_german_credit():
    """1,000 rows, 700 good and 300 bad credits, 690 men and 310 women (Hofmann 1994)."""
    data = load_german()
    assert data.data.shape == (1000, 20)
    assert data.target.value_counts().to_dict() == {"good": 700, "bad": 300}
    assert data.sensitive_features.value_counts().to_dict() == {"male": 690, "female": 310}
    assert pd.crosstab(data.sensitive_features, data.target).loc["female", "bad"] == 109
    assert not data.frame.isna().any(axis=None)
    assert "sex" not in data.feature_names
    assert data.data["age"].between(19, 75).all()
    assert data.data["credit_amount"].max() == 18424
    assert data.categorical.sum() == 13
    assert "10.24432/C5NC77" in data.DESCR


def test_other_forms():
    X, y = load_german(return_X_y=True)
    assert isinstance(X, pd.DataFrame)
    plain = load_german(as_frame=False)
    assert plain.data.dtype == float
    assert plain.frame is None
    np.testing.assert_array_equal(plain.target, y)
    np.testing.assert_array_equal(plain.data[:, plain.feature_names.index("age")], X["age"])
