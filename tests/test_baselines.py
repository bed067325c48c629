"""Baselines against the libraries and formulas they stand for."""

import cvxpy
import numpy as np
import pytest
from fairlearn.postprocessing import ThresholdOptimizer as FairlearnThresholds
from fairlearn.reductions import ExponentiatedGradient as FairlearnGradient
from fairlearn.reductions import TruePositiveRateParity
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from conftest import make_sample
from fairproj import FairProjClassifier
from fairproj.baselines import (
    FAB,
    AdaFair,
    AdaptiveReweighting,
    ExponentiatedGradient,
    Reweighing,
    ThresholdOptimizer,
    reweighing_weights,
)
from fairproj.baselines._weights import adaptive_weights, fab_weights
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


TWO = (GROUPS == 2).astype(int)
OWN_VERSIONS = [
    AdaFair(n_estimators=10),
    FAB(FairProjClassifier(None, n_estimators=10)),
    AdaptiveReweighting(FairProjClassifier(None, n_estimators=10), max_iter=3),
]


@pytest.mark.parametrize("model", OWN_VERSIONS, ids=lambda model: type(model).__name__)
def test_own_versions_are_ordinary_classifiers(model):
    model = clone(model).fit(X, LABELS, sensitive_features=TWO)
    assert set(model.predict(X)) == {"yes", "no"}
    assert model.score(X, LABELS) > max(np.mean(Y > 0), np.mean(Y < 0))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("event", [(1,), (-1,), (-1, 1)])
def test_fab_weights_add_the_gap_to_the_error(seed, event):
    """The error under the weights is the error plus the trade-off times the gap of the rates."""
    wrong = np.random.default_rng(seed).random(len(Y)) < np.where(TWO, 0.4, 0.2)
    weight = fab_weights(Y, TWO, wrong, event, 0.03)
    chosen = np.isin(Y, event)
    rates = [wrong[chosen & (group == TWO)].mean() for group in (0, 1)]
    assert weight[wrong].sum() / len(Y) == pytest.approx(
        wrong.mean() + 0.03 * abs(rates[1] - rates[0]), rel=1e-12
    )
    assert weight.min() >= 0


def test_fab_boosts_from_its_weights():
    model = FAB(AdaBoostClassifier(n_estimators=10), trade_off=0.04)
    model.fit(X, LABELS, sensitive_features=TWO)
    plain = AdaBoostClassifier(n_estimators=10).fit(X, LABELS)
    weight = fab_weights(Y, TWO, plain.predict(X) != LABELS, (1,), 0.04)
    direct = AdaBoostClassifier(n_estimators=10).fit(X, LABELS, sample_weight=weight)
    np.testing.assert_array_equal(model.predict(X), direct.predict(X))
    assert (model.predict(X) != plain.predict(X)).any()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("penalty", [0.01, 0.3, 5.0])
def test_adaptive_weights_solve_their_quadratic_program(seed, penalty):
    loss = np.random.default_rng(seed).exponential(size=30)
    found = adaptive_weights(loss, penalty, 40.0)
    variable = cvxpy.Variable(30, nonneg=True)
    gain = variable @ loss - penalty * cvxpy.sum_squares(variable)
    cvxpy.Problem(cvxpy.Maximize(gain), [cvxpy.sum(variable) == 40]).solve(solver="CLARABEL")
    np.testing.assert_allclose(found, variable.value, atol=1e-5)
    assert found.sum() == pytest.approx(40)


def test_adaptive_reweighting_gives_every_cell_the_same_weight():
    class Spy(LogisticRegression):
        seen: list = []  # noqa: RUF012

        def fit(self, X, y, sample_weight=None):
            self.seen.append(sample_weight)
            return super().fit(X, y, sample_weight)

    model = AdaptiveReweighting(Spy(), max_iter=4).fit(X, Y, sensitive_features=GROUPS)
    cells = 2 * GROUPS + (Y > 0)
    assert model.n_iter_ == len(Spy.seen) == 4
    totals = np.bincount(cells, Spy.seen[-1])
    np.testing.assert_allclose(totals, np.bincount(cells).max())


def test_adafair_beside_a_plain_version():
    model = AdaFair(n_estimators=8, c=0.5).fit(X, Y, sensitive_features=TWO)
    weight = [1 / len(Y)] * len(Y)
    votes, scores, margin = [], [], [0.0] * len(Y)
    for t in range(8):
        stump = DecisionTreeClassifier(max_depth=1).fit(X, Y, sample_weight=weight)
        h, sure = stump.predict(X), stump.predict_proba(X).max(axis=1)
        error = sum(weight[i] for i in range(len(Y)) if h[i] != Y[i])
        if error >= 0.5:
            break
        votes.append(np.log((1 - error) / error))
        margin = [margin[i] + votes[-1] * h[i] for i in range(len(Y))]
        right = {
            (group, label): np.mean(
                [(margin[i] > 0) == (label > 0) for i in range(len(Y)) if (TWO[i], Y[i]) == cell]
            )
            for group in (0, 1)
            for label in (-1, 1)
            for cell in [(group, label)]
        }
        missed = [(margin[i] > 0) != (Y[i] > 0) for i in range(len(Y))]
        balanced = (np.mean(np.array(missed)[Y > 0]) + np.mean(np.array(missed)[Y < 0])) / 2
        gaps = sum(abs(right[0, label] - right[1, label]) for label in (-1, 1))
        scores.append(0.5 * balanced + 0.5 * np.mean(missed) + gaps if t else np.inf)
        for i in range(len(Y)):
            if h[i] != Y[i]:
                behind = right[1 - TWO[i], Y[i]] - right[TWO[i], Y[i]]
                cost = max(behind, 0) if t else 0
                weight[i] *= (1 + cost) * np.exp(votes[-1] * sure[i])
        weight = [value / sum(weight) for value in weight]
    keep = int(np.argmin(scores)) + 1
    assert model.n_rounds_ == keep
    np.testing.assert_allclose(model.estimator_weights_, votes[:keep], rtol=1e-9)


@pytest.mark.parametrize("model", OWN_VERSIONS[:2], ids=lambda model: type(model).__name__)
def test_two_groups_only(model):
    with pytest.raises(ValueError, match="two groups, found 3"):
        clone(model).fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize(
    "model",
    [ExponentiatedGradient(LogisticRegression()), ThresholdOptimizer(LogisticRegression())],
    ids=lambda model: type(model).__name__,
)
def test_fairlearns_methods_check_groups_as_ours_do(model):
    missing = np.where(np.arange(len(Y)) % 7 == 0, None, GROUPS.astype(object))
    with pytest.raises(ValueError, match="missing"):
        clone(model).fit(X, Y, sensitive_features=missing)
    with pytest.raises(ValueError, match="sensitive_features has 599 rows and y has 600"):
        clone(model).fit(X, Y, sensitive_features=GROUPS[1:])


def test_thresholds_of_unknown_groups():
    model = ThresholdOptimizer(LogisticRegression()).fit(X, Y, sensitive_features=TWO)
    with pytest.raises(ValueError, match="groups that training lacked"):
        model.predict(X, sensitive_features=TWO + 5)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (AdaFair(n_estimators=0), "n_estimators must be 1 or more"),
        (FAB(LogisticRegression(), "no_such"), "constraints='no_such' is unknown"),
        (FAB(LogisticRegression(), trade_off=0.9), "trade_off=0.9 would make weights negative"),
        (AdaptiveReweighting(LogisticRegression(), penalty=0), "penalty must be a positive"),
    ],
)
def test_settings_that_cannot_work(model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y, sensitive_features=TWO)
