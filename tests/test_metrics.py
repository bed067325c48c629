"""Gaps against fairlearn's."""

import fairlearn.metrics as fairlearn
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairproj import metrics

PAIRS = {
    metrics.demographic_parity_difference: fairlearn.demographic_parity_difference,
    metrics.equal_opportunity_difference: fairlearn.equal_opportunity_difference,
    metrics.equalized_odds_difference: fairlearn.equalized_odds_difference,
    metrics.false_positive_rate_difference: lambda y, p, *, sensitive_features, sample_weight: (
        fairlearn.MetricFrame(
            metrics=fairlearn.false_positive_rate,
            y_true=y,
            y_pred=p,
            sensitive_features=sensitive_features,
            sample_params={"sample_weight": sample_weight},
        ).difference()
    ),
}


def random_predictions(seed, n_groups):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 200)
    groups = rng.integers(0, n_groups, 200)
    for g in range(n_groups):  # every cell has rows
        y[2 * g : 2 * g + 2], groups[2 * g : 2 * g + 2] = [0, 1], g
    return y, rng.integers(0, 2, 200), groups, rng.uniform(0.1, 2, 200)


@pytest.mark.parametrize("ours", PAIRS, ids=lambda f: f.__name__)
@given(seed=st.integers(0, 10**6), n_groups=st.integers(2, 5), weighted=st.booleans())
def test_fairlearn_agrees(ours, seed, n_groups, weighted):
    y, predicted, groups, weight = random_predictions(seed, n_groups)
    weight = weight if weighted else None
    mine = ours(y, predicted, sensitive_features=groups, sample_weight=weight)
    other = PAIRS[ours](y, predicted, sensitive_features=groups, sample_weight=weight)
    assert np.isclose(mine, other, atol=1e-12)


@pytest.mark.parametrize("y", [np.zeros(6, int), np.ones(6, int)])
def test_one_class_only(y):
    """A fold may hold one class; demographic parity does not care."""
    groups, predicted = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 1, 0, 0, 1])
    mine = metrics.demographic_parity_difference(y, predicted, sensitive_features=groups)
    other = fairlearn.demographic_parity_difference(y, predicted, sensitive_features=groups)
    assert np.isclose(mine, other)
    assert metrics.demographic_parity_difference(y, y, sensitive_features=groups) == 0
    rates = metrics.group_rates(y, y, sensitive_features=groups)["selection_rate"]
    assert (rates == y[0]).all()


def test_rates_of_groups():
    y = np.array(["no", "yes", "yes", "no", "yes", "yes"])
    predicted = np.array(["yes", "yes", "no", "no", "yes", "yes"])
    groups = np.array(["a", "a", "a", "b", "b", "b"])
    rates = metrics.group_rates(y, predicted, sensitive_features=groups)
    assert list(rates.index) == ["a", "b"]
    assert list(rates["count"]) == [3, 3]
    assert rates.loc["a"].tolist()[1:] == [1 / 3, 2 / 3, 0.5, 1.0]
    assert rates.loc["b"].tolist()[1:] == [1.0, 2 / 3, 1.0, 0.0]
    other = metrics.group_rates(y, predicted, sensitive_features=groups, pos_label="no")
    assert other.loc["b", "true_positive_rate"] == 1.0


def test_a_metric_fits_into_a_metric_frame():
    y, predicted, groups, _ = random_predictions(0, 2)
    frame = fairlearn.MetricFrame(
        metrics=lambda y, p, sensitive_features: metrics.demographic_parity_difference(
            y, p, sensitive_features=sensitive_features
        ),
        y_true=y,
        y_pred=predicted,
        sensitive_features=groups,
        sample_params={"sensitive_features": np.tile([0, 1], 100)},
    )
    assert frame.by_group.notna().all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0, 1], [0, 1, 1], [0, 1]), "y_pred has 3 rows and y_true 2; they must be equal"),
        (
            ([0, 1], [0.2, 0.7], [0, 1]),
            r"y_pred holds 0.2, which is not a label of y_true \(0, 1\); pass predicted labels",
        ),
        (([0, 1, 0], [0, 1, 0], [0, 0, 1]), "group '1' has no rows for its true positive rate"),
    ],
)
def test_bad_input(arguments, sentence):
    y, predicted, groups = arguments
    with pytest.raises(ValueError, match=sentence):
        metrics.equal_opportunity_difference(y, predicted, sensitive_features=groups)
