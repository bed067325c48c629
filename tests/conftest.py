"""Shared samples. hypothesis runs without deadlines: machines are noisy."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # for population

settings.register_profile("fairproj", deadline=None, derandomize=True)
settings.load_profile("fairproj")


def make_sample(n_rows=400, n_groups=2, n_features=5, seed=0, decimals=None):
    """Features, labels in {-1, +1} and groups; groups differ in size and base rate."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(
        n_groups, n_rows, p=np.arange(n_groups, 0, -1) / (n_groups * (n_groups + 1) / 2)
    )
    X = rng.normal(size=(n_rows, n_features)) + 0.4 * groups[:, None]
    score = X[:, 0] - 0.7 * X[:, 1] + 0.5 * X[:, 2] * X[:, 3] - 0.8 * groups
    y = np.where(score + rng.logistic(size=n_rows) > 0.3, 1, -1)
    if decimals is not None:
        X = X.round(decimals)
    return X, y, groups


@pytest.fixture
def sample():
    return make_sample()
