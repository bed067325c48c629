"""Baselines against the libraries and formulas they stand for, and scikit-learn's checks."""

import cvxpy
import numpy as np
import pandas as pd
import pytest
from fairlearn import reductions
from fairlearn.postprocessing import ThresholdOptimizer as FairlearnThresholds
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

from conftest import check_or_skip, make_sample
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
from fairproj.constraints import RATES, statistic_names
from fairproj.data.cells import Cells
from fairproj.data.checks import check_groups

# fairlearn's own use of pandas
pytestmark = pytest.mark.filterwarnings("ignore:Setting a")

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


# The methods of fairlearn


@pytest.mark.parametrize(
    ("constraints", "moment"),
    [
        ("demographic_parity", reductions.DemographicParity),
        ("equal_opportunity", reductions.TruePositiveRateParity),
        ("false_positive_rate_parity", reductions.FalsePositiveRateParity),
        ("equalized_odds", reductions.EqualizedOdds),
        ("accuracy_parity", reductions.ErrorRateParity),
    ],
)
def test_exponentiated_gradient_is_fairlearns(constraints, moment):
    stump = DecisionTreeClassifier(max_depth=2, random_state=0)
    mine = ExponentiatedGradient(stump, constraints, epsilon=0.02, max_iter=5)
    mine.fit(X, LABELS, sensitive_features=GROUPS)
    theirs = reductions.ExponentiatedGradient(
        stump, moment(difference_bound=0.02), eps=0.02, max_iter=5
    )
    theirs.fit(X, (Y > 0).astype(int), sensitive_features=GROUPS)
    expected = np.where(theirs.predict(X, random_state=0) > 0, "yes", "no")
    np.testing.assert_array_equal(mine.predict(X), expected)
    np.testing.assert_array_equal(mine.predict(X), mine.predict(X))
    assert mine.n_iter_ == theirs.last_iter_ + 1


@pytest.mark.parametrize(
    ("constraints", "fairlearns_name"),
    [
        ("demographic_parity", "demographic_parity"),
        ("equal_opportunity", "true_positive_rate_parity"),
        ("false_positive_rate_parity", "false_positive_rate_parity"),
        ("equalized_odds", "equalized_odds"),
    ],
)
def test_thresholds_are_fairlearns(constraints, fairlearns_name):
    inner = FairProjClassifier(None, n_estimators=20)
    mine = ThresholdOptimizer(inner, constraints).fit(X, LABELS, sensitive_features=GROUPS)
    predicted = mine.predict(X, sensitive_features=GROUPS)
    theirs = FairlearnThresholds(
        estimator=clone(inner), constraints=fairlearns_name, predict_method="auto"
    ).fit(X, (Y > 0).astype(int), sensitive_features=GROUPS)
    expected = theirs.predict(X, sensitive_features=GROUPS, random_state=0)
    np.testing.assert_array_equal(predicted == "yes", expected == 1)


def test_thresholds_close_the_gap():
    inner = FairProjClassifier(None, n_estimators=20)
    model = ThresholdOptimizer(inner).fit(X, LABELS, sensitive_features=GROUPS)
    plain = clone(inner).fit(X, LABELS).predict(X)
    before, after = (
        np.ptp([np.mean(predicted[(g == GROUPS) & (Y > 0)] == "yes") for g in range(3)])
        for predicted in (plain, model.predict(X, sensitive_features=GROUPS))
    )
    assert after < before


def test_groups_whose_names_are_alike_keep_their_own_thresholds():
    mixed = np.array([1, "1"], dtype=object)[(GROUPS == 2).astype(int)]
    model = ThresholdOptimizer(LogisticRegression()).fit(X, Y, sensitive_features=mixed)
    predicted = model.predict(X, sensitive_features=mixed)
    some = mixed == 1
    alone = model.predict(X[some], sensitive_features=mixed[some])
    assert np.mean(alone == predicted[some]) > 0.95  # apart from what is drawn at random


# Constraints by name

BY_NAME = [ExponentiatedGradient, ThresholdOptimizer, FAB]
REFUSED = {
    ExponentiatedGradient: {"selection_ratio"},
    ThresholdOptimizer: {"accuracy_parity", "accuracy", "selection_ratio"},
    FAB: {"demographic_parity", "equalized_odds", "selection_ratio"},
}


@pytest.mark.parametrize("kind", BY_NAME)
@pytest.mark.parametrize("name", [*statistic_names(), "parity"])
def test_a_name_is_accepted_or_refused_with_those_that_are_accepted(kind, name):
    model = kind(DecisionTreeClassifier(max_depth=1), name)
    if kind is ExponentiatedGradient:
        model.set_params(max_iter=1)
    accepted = statistic_names(constraints=True)
    accepted = [known for known in accepted if known not in REFUSED[kind]]
    if name in accepted:
        model.fit(X, Y, sensitive_features=TWO)
        return
    with pytest.raises(ValueError, match=f"{kind.__name__} does not support") as error:
        model.fit(X, Y, sensitive_features=TWO)
    assert f"constraints={name!r}" in str(error.value)
    assert str(error.value).endswith("use one of " + ", ".join(map(repr, accepted)))


def test_two_names_of_one_statistic_are_the_same():
    inner = DecisionTreeClassifier(max_depth=2, random_state=0)
    for kind, names, settings in (
        (
            ExponentiatedGradient,
            ("equal_opportunity", "true_positive_rate_parity"),
            {"max_iter": 3},
        ),
        (FAB, ("accuracy_parity", "accuracy"), {}),
    ):
        first, second = (
            kind(inner, name, **settings).fit(X, Y, sensitive_features=TWO).predict(X)
            for name in names
        )
        np.testing.assert_array_equal(first, second)


# Our versions

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


TWO_CELLS = Cells.of(Y, check_groups(TWO, len(Y)), np.array(["no", "yes"]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("rate", "labels"),
    [("true_positive_rate", [1]), ("false_positive_rate", [-1]), ("accuracy", [-1, 1])],
)
def test_fab_weights_add_the_gap_to_the_error(seed, rate, labels):
    """The error under the weights is the error plus the trade-off times the gap of the rates."""
    wrong = np.random.default_rng(seed).random(len(Y)) < np.where(TWO, 0.4, 0.2)
    weight = fab_weights(TWO_CELLS, wrong, RATES[rate], 0.03)
    chosen = np.isin(Y, labels)
    rates = [wrong[chosen & (group == TWO)].mean() for group in (0, 1)]
    assert weight[wrong].sum() / len(Y) == pytest.approx(
        wrong.mean() + 0.03 * abs(rates[1] - rates[0]), rel=1e-12
    )
    assert weight.min() >= 0


def test_fab_boosts_from_its_weights():
    model = FAB(AdaBoostClassifier(n_estimators=10), trade_off=0.04)
    model.fit(X, LABELS, sensitive_features=TWO)
    plain = AdaBoostClassifier(n_estimators=10).fit(X, LABELS)
    wrong = plain.predict(X) != LABELS
    weight = fab_weights(TWO_CELLS, wrong, RATES["true_positive_rate"], 0.04)
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
    with pytest.raises(ValueError, match="sensitive_features has 599 rows and X has 600"):
        clone(model).fit(X, Y, sensitive_features=GROUPS[1:])


def test_thresholds_of_unknown_groups():
    model = ThresholdOptimizer(LogisticRegression()).fit(X, Y, sensitive_features=TWO)
    with pytest.raises(ValueError, match="groups that training lacked: 5, 6;"):
        model.predict(X, sensitive_features=TWO + 5)
    with pytest.raises(ValueError, match=r"had 2 groups .* pass sensitive_features to predict"):
        model.predict(X)


def test_fab_names_the_group_without_rows_of_a_label():
    labels = np.where(TWO == 1, -1, Y)
    with pytest.raises(ValueError, match="group '1' has no rows for its true positive rate"):
        FAB(DecisionTreeClassifier(max_depth=1)).fit(X, labels, sensitive_features=TWO)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (AdaFair(n_estimators=0), "n_estimators must be 1 or more"),
        (FAB(LogisticRegression(), trade_off=0.9), "trade_off=0.9 would make weights negative"),
        (AdaptiveReweighting(LogisticRegression(), penalty=0), "penalty must be a positive"),
        (AdaptiveReweighting(LogisticRegression(), max_iter=0), "max_iter must be 1 or more"),
    ],
)
def test_settings_that_cannot_work(model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y, sensitive_features=TWO)


# As scikit-learn classifiers

STUMP = DecisionTreeClassifier(max_depth=1, random_state=0)
INNER = DecisionTreeClassifier(max_depth=2, random_state=0)
WITHOUT_GROUPS = [
    Reweighing(INNER),
    FAB(AdaBoostClassifier(n_estimators=3, random_state=0)),
    AdaFair(n_estimators=5),
    AdaptiveReweighting(INNER, max_iter=2),
    ExponentiatedGradient(INNER),
    ThresholdOptimizer(INNER),
]


@pytest.mark.parametrize("model", WITHOUT_GROUPS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("groups", [None, np.full(len(Y), "all")], ids=["none", "one"])
def test_with_one_group_it_is_the_plain_estimator(model, groups):
    words = "no sensitive_features were given" if groups is None else r"one group only \(all\)"
    with pytest.warns(UserWarning, match=f"{words}, so {type(model).__name__}") as caught:
        fitted = clone(model).fit(X, LABELS, sensitive_features=groups)
    assert [warning.filename for warning in caught] == [__file__]
    if isinstance(model, AdaFair):  # with no costs, every round weighs mistakes by confidence only
        np.testing.assert_array_equal(
            fitted.estimators_[0].predict(X), clone(STUMP).fit(X, Y).predict(X)
        )
        return
    plain = clone(model.estimator).fit(X, LABELS)
    np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))
    if hasattr(fitted, "predict_proba"):
        np.testing.assert_array_equal(fitted.predict_proba(X), plain.predict_proba(X))


@pytest.mark.filterwarnings("ignore:no sensitive_features were given")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@parametrize_with_checks(WITHOUT_GROUPS)
def test_scikit_learn_checks(estimator, check):
    check_or_skip(estimator, check)


def some_groups(X):
    """Two groups that hold both labels in all data of the checks."""
    return np.resize([0, 1, 1, 0], _num_samples(X))


class OfTwo:
    """Adds groups to the calls of scikit-learn's checks, which know none."""

    def fit(self, X, y):
        return super().fit(X, y, sensitive_features=some_groups(X))


class ReweighingOfTwo(OfTwo, Reweighing):
    pass


class FABOfTwo(OfTwo, FAB):
    pass


class AdaFairOfTwo(OfTwo, AdaFair):
    pass


class AdaptiveReweightingOfTwo(OfTwo, AdaptiveReweighting):
    pass


class ExponentiatedGradientOfTwo(OfTwo, ExponentiatedGradient):
    pass


class ThresholdOptimizerOfTwo(OfTwo, ThresholdOptimizer):
    def predict(self, X):
        return super().predict(X, sensitive_features=some_groups(X))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:sensitive_features holds one group only")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@parametrize_with_checks(
    [
        ReweighingOfTwo(INNER),
        FABOfTwo(INNER, trade_off=0.01),
        AdaFairOfTwo(n_estimators=5),
        AdaptiveReweightingOfTwo(INNER, max_iter=2),
        ExponentiatedGradientOfTwo(INNER, max_iter=1),
        ThresholdOptimizerOfTwo(INNER),
    ]
)
def test_scikit_learn_checks_with_two_groups(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", WITHOUT_GROUPS, ids=lambda model: type(model).__name__)
def test_without_an_estimator_there_is_a_default(model):
    fitted = type(model)()
    if isinstance(fitted, ExponentiatedGradient):
        fitted.set_params(max_iter=2)
    fitted.fit(X, LABELS, sensitive_features=TWO)
    groups = {"sensitive_features": TWO} if isinstance(fitted, ThresholdOptimizer) else {}
    assert np.mean(fitted.predict(X, **groups) == LABELS) > max(np.mean(Y > 0), np.mean(Y < 0))


@pytest.mark.parametrize(
    "kind", [Reweighing, FAB, AdaptiveReweighting, ExponentiatedGradient, ThresholdOptimizer]
)
def test_input_is_what_the_inner_estimator_takes(kind):
    """Missing values and sparse matrices go to FairProjClassifier, but not through fairlearn."""
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    ours, theirs = FairProjClassifier(None, n_estimators=3), AdaBoostClassifier(n_estimators=3)
    kind(ours).fit(holes, Y, sensitive_features=TWO)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        kind(theirs).fit(holes, Y, sensitive_features=TWO)
    if kind in (ExponentiatedGradient, ThresholdOptimizer):
        with pytest.raises(TypeError, match="Sparse data was passed"):
            kind(ours).fit(sparse.csr_array(X), Y, sensitive_features=TWO)
    else:
        model = kind(ours).fit(sparse.csr_array(X), Y, sensitive_features=TWO)
        np.testing.assert_array_equal(model.predict(sparse.csr_array(X)), model.predict(X))


def test_data_frames_reach_the_inner_estimator_whole():
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        f=pd.Categorical.from_codes((X[:, 0] > 0).astype(int), ["low", "high"])
    )
    inner = FairProjClassifier(None, n_estimators=3)
    model = Reweighing(inner).fit(frame, LABELS, sensitive_features=TWO)
    direct = clone(inner).fit(frame, LABELS, sample_weight=reweighing_weights(LABELS, TWO))
    np.testing.assert_array_equal(model.predict_proba(frame), direct.predict_proba(frame))
    assert model.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"f": "g"}))


def test_methods_are_those_of_the_inner_estimator():
    margins = Reweighing(LogisticRegression()).fit(X, Y, sensitive_features=TWO)
    assert ((margins.decision_function(X) > 0) == (margins.predict(X) > 0)).all()
    tree = Reweighing(DecisionTreeClassifier())
    assert hasattr(tree, "predict_proba")
    assert not hasattr(tree, "decision_function")
