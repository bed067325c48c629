"""A margin that is zero up to rounding is a tie: model, certificate and monitor predict the same.

The votes 0.3, 0.1 and 0.2 cancel as 0.3 - 0.1 - 0.2, which is -2.8e-17 in floating point.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from conftest import make_sample
from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.boosting import projected, signed_costs
from fairproj.boosting.losses import LogisticLoss
from fairproj.boosting.rows import ScoredRows
from fairproj.boosting.weights import ExponentialWeights
from fairproj.data.checks import Groups
from fairproj.data.sample import Sample
from fairproj.engines.base import TIE, settle_ties

LABELS = np.array(["no", "yes"])
LEARNERS = [None, DecisionTreeClassifier(max_leaf_nodes=4, random_state=0)]


def rows(yes_of_100):
    """Rows with ``kind`` -1 or 1 are easy; of those with kind 0, ``side`` says a little.

    ``yes_of_100`` has the positive rows for side -1 and side 1.
    """
    kind, side, y = [], [], []
    for easy in (-1, 1):
        kind += [easy] * 100
        side += [0] * 100
        y += [easy] * 100
    for value, n_yes in zip((-1, 1), yes_of_100, strict=True):
        kind += [0] * 100
        side += [value] * 100
        y += [1] * n_yes + [-1] * (100 - n_yes)
    X, y = np.column_stack([kind, side]).astype(float), np.array(y)
    return X, y, np.arange(len(y)) % 2, np.random.default_rng(0).uniform(0.9, 1.1, len(y))


TRAINING, HELD_OUT = rows((45, 55)), rows((20, 30))


@pytest.fixture
def cancelling_votes(monkeypatch):
    """Votes of three rounds; the leaves of a side vote +, -, - and -, +, +, as they overshoot."""
    votes = iter([0.3, 0.1, 0.2])
    for module in (projected, signed_costs):
        monkeypatch.setattr(module, "vote", lambda error: next(votes))


def adaboost(**settings):
    return FairBoostClassifier(
        max_gap=1.0,
        loss="exponential",
        votes="discrete",
        learning_rate=1.0,
        n_estimators=3,
        **settings,
    )


def check_ties(model, X):
    tied = X[:, 0] == 0
    exact = model._ensemble.margin(model._read(X))
    np.testing.assert_allclose(exact[tied], 0, atol=1e-15)
    noise = np.sign(exact[tied])
    assert set(noise) == {-1, 1}  # rounding would predict both classes
    margin = model.decision_function(X)
    assert (margin[tied] == 0).all()
    np.testing.assert_allclose(np.abs(margin[~tied]), 0.6)
    assert (model.predict(X)[tied] == model.classes_[0]).all()
    assert (model.predict_proba(X)[tied] == 0.5).all()
    *_, staged = model.staged_predict(X)
    np.testing.assert_array_equal(staged, model.predict(X))


def weighted_error(model, data):
    X, y, _, weight = data
    return np.average(model.predict(X) != LABELS[(y > 0) * 1], weights=weight)


@pytest.mark.parametrize("learner", LEARNERS, ids=["trees", "estimator"])
@pytest.mark.usefixtures("cancelling_votes")
def test_the_paper(learner):
    X, y, _, weight = TRAINING
    leaves = {} if learner else {"max_leaf_nodes": 4}
    model = FairProjClassifier(None, estimator=learner, n_estimators=3, **leaves)
    model.fit(X, LABELS[(y > 0) * 1], sample_weight=weight)
    check_ties(model, X)
    assert model.certificate_.train_error == pytest.approx(weighted_error(model, TRAINING))
    assert 0.2 < model.certificate_.train_error < 0.3


@pytest.mark.parametrize("learner", LEARNERS, ids=["trees", "estimator"])
@pytest.mark.usefixtures("cancelling_votes")
def test_rows_held_out(learner):
    """Of the rows held out, more are negative, so that the last round is the best."""
    (X, y, groups, weight), (X_val, y_val, groups_val, weight_val) = TRAINING, HELD_OUT
    leaves = {} if learner else {"max_leaf_nodes": 4, "min_samples_leaf": 0}
    model = adaboost(estimator=learner, **leaves)
    model.fit(
        X,
        LABELS[(y > 0) * 1],
        sensitive_features=groups,
        sample_weight=weight,
        X_val=X_val,
        y_val=LABELS[(y_val > 0) * 1],
        sensitive_features_val=groups_val,
        sample_weight_val=weight_val,
    )
    assert model.history_.n_kept == 3
    check_ties(model, X)
    certificate = model.certificate_
    assert certificate.train_error == pytest.approx(weighted_error(model, TRAINING))
    assert certificate.accuracy == pytest.approx(1 - weighted_error(model, HELD_OUT))
    assert certificate.accuracy - (1 - certificate.train_error) > 0.1


@pytest.mark.usefixtures("cancelling_votes")
def test_the_training_rows():
    X, y, groups, weight = TRAINING
    model = adaboost(max_leaf_nodes=4, min_samples_leaf=0, validation_fraction=None)
    model.fit(X, LABELS[(y > 0) * 1], sensitive_features=groups, sample_weight=weight)
    easy, positive = X[:, 0] != 0, y > 0
    error = np.average(~easy & positive, weights=weight)
    last = model.history_[2].observed
    assert last.train_error == pytest.approx(error)
    assert last.accuracy == pytest.approx(1 - error)
    expected = [
        np.average(easy[inside], weights=weight[inside])
        for inside in (positive & (groups == g) for g in (0, 1))
    ]
    np.testing.assert_allclose(last.rates, expected)


MARGINS = np.array([1.0, 2e-9, 5e-10, 3e-17, 0.0, -3e-17, -5e-10, -2e-9, -1.0])


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("discrete", [True, False])
def test_everyone_draws_the_line_at_the_same_margin(label, discrete):
    n = len(MARGINS)
    y, weight = np.full(n, label), np.arange(1.0, n + 1)
    positive = MARGINS > 1.5e-9
    correct = weight @ (positive == (label > 0))
    margin = settle_ties(MARGINS)
    np.testing.assert_array_equal(margin > 0, positive)
    np.testing.assert_array_equal(margin == 0, np.abs(MARGINS) <= 1e-9)
    index = np.zeros(n, dtype=np.intp)
    weights = ExponentialWeights(y, weight, index, 1, MARGINS.copy(), discrete=discrete)
    assert weights.train_error() == pytest.approx(1 - correct / weight.sum())
    sample = Sample(None, y, np.array([-1, 1]), weight, Groups(index, ["all"]), 1)
    for cut in (0.0, 0.7):
        scored = ScoredRows(sample, LogisticLoss())
        scored.add(MARGINS + cut, 1.0)
        by_cell = scored.correct(cut)
        assert by_cell[int(label > 0)] == pytest.approx(correct / weight.sum())


def test_a_leaf_whose_classes_balance_predicts_the_first():
    """The weights are whole numbers that a 32-bit float cannot hold; their sums are exact."""
    rng = np.random.default_rng(0)
    X = np.repeat([0, 1], [41, 60])[:, None]
    y = LABELS[[1] + [0] * 40 + [1] * 60]
    for weight in rng.integers(2**30, 2**31, (8, 40)):
        weight = np.concatenate([[weight.sum()], weight, np.full(60, 2**30)]).astype(float)
        model = FairProjClassifier(None, n_estimators=1).fit(X, y, sample_weight=weight)
        assert model.predict([[0], [1]]).tolist() == ["no", "yes"]
        assert (model.decision_function([[0], [1]]) != 0).all()
        weight[0] *= 1 + 1e-6  # more than rounding
        model.fit(X, y, sample_weight=weight)
        assert model.predict([[0], [1]]).tolist() == ["yes", "yes"]


@pytest.mark.parametrize(("more", "expected"), [(1e-12, -1), (-1e-12, -1), (1e-8, 1), (-1e-8, -1)])
def test_labels_of_equal_mass_have_the_negative_majority(more, expected):
    y, weight = np.array([1.0, -1.0]), np.array([1 + more, 1.0])
    weights = ExponentialWeights(y, weight, np.array([1, 0]), 2)
    assert weights.majority() == expected


def test_a_tie_does_not_falsify_a_certificate():
    """A tie on the correct side is a mistake, although its loss is a little below one."""
    y = np.ones(4)
    margin = np.array([50.0, 50.0, 9e-10, 9e-10])
    weights = ExponentialWeights(y, np.ones(4), np.zeros(4, dtype=np.intp), 1, margin)
    assert weights.train_error() == 0.5 > np.exp(weights.log_loss) + 1e-10
    X, y, _ = make_sample(300)
    certificates = [
        FairProjClassifier(None, n_estimators=2).fit(X, y).certificate_,
        FairBoostClassifier(None, n_estimators=2).fit(X, y).certificate_,
    ]
    for certificate in certificates:
        error = weights.train_error() * certificate.loss / np.exp(weights.log_loss)
        assert replace(certificate, train_error=error).holds
        assert not replace(certificate, train_error=error * (1 + 10 * TIE)).holds
