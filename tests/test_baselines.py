"""Baselines against the libraries and formulas they stand for."""

import numpy as np
import pytest
from fairlearn.postprocessing import ThresholdOptimizer as FairlearnThresholds
from fairlearn.reductions import ExponentiatedGradient as FairlearnGradient
from fairlearn.reductions import TruePositiveRateParity
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from conftest import make_sample
from fairproj import FairProjClassifier
from fairproj.baselines import (
    ExponentiatedGradient,
    Reweighing,
    ThresholdOptimizer,
    reweighing_weights,
)
from fairproj.metrics import equal_opportunity_difference

X, Y, GROUPS = make_sample(600, n_groups=3)
LABELS = np.where(Y > 0, "yes", "no")


@pytest.mark.parametrize("weighted", [False, True])
def test_reweighing_is_expected_over_observed(weighted):
    """Kamiran & Calders, as AIF360 writes it: n_group n_label / (n n_group,label)."""
    own = np.random.default_rng(0).uniform(0.5, 2, len(Y)) if weighted else np.ones(len(Y))
    found = reweighing_weights(LABELS, GROUPS, own if weighted else None)
    expected = np.empty(len(Y))
    for group in np.unique(GROUPS):
        for label in np.unique(LABELS):
            cell = (group == GROUPS) & (label == LABELS)
            n_group, n_label = own[group == GROUPS].sum(), own[label == LABELS].sum()
            expected[cell] = n_group * n_label / (own.sum() * own[cell].sum())
    expected *= own
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_reweighing_of_a_cell_without_weight():
    own = np.where((GROUPS == 0) & (Y > 0), 0.0, 1.0)
    found = reweighing_weights(Y, GROUPS, own)
    assert np.isfinite(found).all()
    assert (found[own == 0] == 0).all()


def test_reweighing_makes_group_and_label_independent():
    weight = reweighing_weights(Y, GROUPS)
    rates = [np.average(Y[g == GROUPS] > 0, weights=weight[g == GROUPS]) for g in range(3)]
    np.testing.assert_allclose(rates, np.mean(Y > 0), rtol=1e-12)


@pytest.mark.parametrize("inner", [LogisticRegression(), FairProjClassifier(None, n_estimators=5)])
def test_reweighing_around_any_classifier(inner):
    model = Reweighing(inner).fit(X, LABELS, sensitive_features=GROUPS)
    weight = reweighing_weights(LABELS, GROUPS)
    direct = clone(inner).fit(X, LABELS, sample_weight=weight)
    np.testing.assert_array_equal(model.predict(X), direct.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), direct.predict_proba(X))
    assert not hasattr(inner, "classes_")


@pytest.mark.filterwarnings("ignore:Setting a")  # fairlearn with pandas 3
def test_exponentiated_gradient_is_fairlearns():
    stump = DecisionTreeClassifier(max_depth=2, random_state=0)
    mine = ExponentiatedGradient(stump, epsilon=0.02, max_iter=10)
    mine.fit(X, LABELS, sensitive_features=GROUPS)
    theirs = FairlearnGradient(
        stump, TruePositiveRateParity(difference_bound=0.02), eps=0.02, max_iter=10
    )
    theirs.fit(X, (Y > 0).astype(int), sensitive_features=GROUPS)
    expected = np.where(theirs.predict(X, random_state=0) > 0, "yes", "no")
    np.testing.assert_array_equal(mine.predict(X), expected)
    np.testing.assert_array_equal(mine.predict(X), mine.predict(X))


def test_thresholds_are_fairlearns_and_close_the_gap():
    inner = FairProjClassifier(None, n_estimators=20)
    mine = ThresholdOptimizer(inner).fit(X, LABELS, sensitive_features=GROUPS)
    predicted = mine.predict(X, sensitive_features=GROUPS)
    theirs = FairlearnThresholds(
        estimator=clone(inner), constraints="true_positive_rate_parity", predict_method="auto"
    ).fit(X, (Y > 0).astype(int), sensitive_features=GROUPS)
    expected = theirs.predict(X, sensitive_features=GROUPS, random_state=0)
    np.testing.assert_array_equal(predicted == "yes", expected == 1)
    plain = clone(inner).fit(X, LABELS).predict(X)
    before = equal_opportunity_difference(LABELS, plain, sensitive_features=GROUPS)
    after = equal_opportunity_difference(LABELS, predicted, sensitive_features=GROUPS)
    assert after < before


@pytest.mark.parametrize("kind", [ExponentiatedGradient, ThresholdOptimizer])
def test_unknown_constraint(kind):
    with pytest.raises(ValueError, match="constraints='parity' is unknown; use one of 'demog"):
        kind(LogisticRegression(), constraints="parity").fit(X, Y, sensitive_features=GROUPS)
