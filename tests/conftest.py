"""Shared samples. hypothesis runs without deadlines: machines are noisy."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings
from sklearn.utils.estimator_checks import _enforce_estimator_tags_y

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # for population

settings.register_profile("fairproj", deadline=None, derandomize=True)
settings.register_profile("fast", settings.get_profile("fairproj"), max_examples=25)
settings.register_profile(  # tools/mutation.py asks only whether a test fails
    "mutation", settings.get_profile("fast"), phases=[Phase.explicit, Phase.generate]
)
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


def check_or_skip(estimator, check):
    """Run one of scikit-learn's checks, unless it is one that no classifier of two classes passes.

    In scikit-learn 1.6 the label of the first row decides how labels are joined to two, and the
    checks of weights compare the same rows in two orders.
    """
    if "sample_weight_equivalence" in str(check):
        labels = [np.array([2, 1]), np.array([1, 2])]
        first, second = (_enforce_estimator_tags_y(estimator, y).tolist() for y in labels)
        if first != second[::-1]:
            pytest.skip("scikit-learn gives the rows that it compares different labels")
    check(estimator)
