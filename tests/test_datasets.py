"""Bundled data, against numbers from the literature (not read back from the files)."""

import hashlib
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from fairproj import FairProjClassifier
from fairproj.datasets import load_adult, load_compas, load_german

LOADERS = [load_adult, load_german, load_compas]


def test_adult():
    """adult.names: 48,842 rows, 45,222 without missing values, 23.93 % above 50K."""
    data = load_adult()
    assert data.data.shape == (48842, 13)
    assert data.target.value_counts().to_dict() == {"<=50K": 37155, ">50K": 11687}
    assert data.sensitive_features.value_counts().to_dict() == {"Male": 32650, "Female": 16192}
    rates = (data.target == ">50K").groupby(data.sensitive_features).mean()
    assert rates.round(4).to_dict() == {"Female": 0.1093, "Male": 0.3038}
    assert len(data.frame.dropna()) == 45222
    assert set(data.frame.columns[data.frame.isna().any()]) == {
        "workclass",
        "occupation",
        "native_country",
    }
    assert data.frame["race"].nunique() == 5
    assert "10.24432/C5XW20" in data.DESCR


def test_german_credit():
    """1,000 rows, 700 good and 300 bad credits, 690 men and 310 women (Hofmann 1994)."""
    data = load_german()
    assert data.data.shape == (1000, 20)
    assert data.target.value_counts().to_dict() == {"good": 700, "bad": 300}
    assert data.sensitive_features.value_counts().to_dict() == {"male": 690, "female": 310}
    assert pd.crosstab(data.sensitive_features, data.target).loc["female", "bad"] == 109
    assert not data.frame.isna().any(axis=None)
    assert data.data["age"].between(19, 75).all()
    assert data.data["credit_amount"].max() == 18424
    assert data.categorical.sum() == 13
    assert "10.24432/C5NC77" in data.DESCR


def test_compas():
    """ProPublica: 6,172 rows after the filter; 3,175 African-American, 2,103 Caucasian."""
    data = load_compas()
    assert data.data.shape == (5278, 8)
    assert data.sensitive_features.value_counts().to_dict() == {
        "African-American": 3175,
        "Caucasian": 2103,
    }
    rates = (data.target == "yes").groupby(data.sensitive_features).mean()
    assert rates.round(3).to_dict() == {"African-American": 0.523, "Caucasian": 0.391}
    assert not data.frame.isna().any(axis=None)
    assert not {"name", "first", "last", "dob", "id"} & set(data.frame.columns)
    assert "decile_score" not in data.feature_names
    assert data.frame["decile_score"].between(1, 10).all()


@pytest.mark.parametrize("load", LOADERS)
def test_every_form(load):
    data = load()
    X, y = load(return_X_y=True)
    pd.testing.assert_frame_equal(X, data.data)
    plain = load(as_frame=False)
    assert plain.data.dtype == float
    assert plain.frame is None
    np.testing.assert_array_equal(plain.target, y)
    np.testing.assert_array_equal(plain.data[:, data.feature_names.index("age")], X["age"])
    np.testing.assert_array_equal(np.isnan(plain.data), X.isna())
    assert data.sensitive_features.name not in data.feature_names
    assert data.target_names == sorted(set(y))


@pytest.mark.parametrize("load", LOADERS)
def test_codes_and_frames_train_the_same_model(load):
    data, plain = load(), load(as_frame=False)
    one = FairProjClassifier(epsilon=0.2, n_estimators=5)
    one.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    two = FairProjClassifier(epsilon=0.2, n_estimators=5, categorical_features=plain.categorical)
    two.fit(plain.data, plain.target, sensitive_features=plain.sensitive_features)
    np.testing.assert_allclose(
        one.decision_function(data.data), two.decision_function(plain.data), atol=1e-9
    )


@pytest.mark.parametrize(
    ("name", "checksum"),
    [
        ("adult", "6d766312fa98010f9346d6d6df42f1b9d1b7330646a34dcc12ef9bd690cc0341"),
        ("german", "8e2e5dfc6140110fafda95f65fd5aa1f71706f0cc9f7baa4ba04dbfcfc95179f"),
        ("compas", "bcd94eaf0185882a27fe7d989eb8991d8c15780f1876095c578434a56d1fc1f8"),
    ],
)
def test_checksums(name, checksum):
    """As printed by tools/build_datasets.py."""
    content = (files("fairproj.datasets") / "data" / f"{name}.csv.gz").read_bytes()
    assert hashlib.sha256(content).hexdigest() == checksum
