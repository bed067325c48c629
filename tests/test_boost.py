"""The loop: how a run ends, goes on, and stays finite."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from conftest import make_sample
from fairproj import FairProjClassifier, StopReason
from fairproj.boosting.loop import boost
from fairproj.boosting.losses import ERROR_FLOOR, vote
from fairproj.boosting.projected import ProjectedWeights
from fairproj.boosting.projection import Projector
from fairproj.boosting.weights import ExponentialWeights
from fairproj.data.sample import make_sample as validated
from fairproj.engines import LearnerSettings, find_engine

X, Y, GROUPS = make_sample(400)
LEARNERS = [None, DecisionTreeClassifier(max_depth=1, random_state=0)]


@pytest.mark.parametrize("learner", LEARNERS)
def test_all_rounds(learner):
    model = FairProjClassifier(None, estimator=learner, n_estimators=4).fit(X, Y)
    assert len(model.history_) == 4
    assert model.history_.stop_reason is StopReason.ALL_ROUNDS


@pytest.mark.parametrize("learner", LEARNERS)
def test_no_edge_ends_the_run_without_the_last_learner(learner):
    model = FairProjClassifier("demographic_parity", 0.0, estimator=learner, n_estimators=500)
    model.fit(X, Y, sensitive_features=GROUPS)
    assert model.history_.stop_reason is StopReason.NO_EDGE
    assert len(model.history_) < 500
    assert (model.estimator_errors_ < 0.5 - 1e-9).all()
    assert (model.estimator_weights_ > 0).all()


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("votes", ["discrete", "confidence"])
def test_a_perfect_learner_is_kept_and_ends_the_run(learner, votes):
    y = np.where(X[:, 0] > 0, 1, -1)
    model = FairProjClassifier(None, estimator=learner, votes=votes).fit(X, y)
    assert model.history_.stop_reason is StopReason.PERFECT
    assert len(model.history_) == 1
    assert np.isclose(model.history_[0].vote, vote(0.0))
    assert np.isfinite(model.history_[0].vote)
    assert model.score(X, y) == 1
    assert model.certificate_.train_error == 0
    assert model.certificate_.holds


class ContraryStump(ClassifierMixin, BaseEstimator):
    """Right on women, wrong on men: good under balanced weights, worse than chance under q."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        truth, woman = X[:, 0], X[:, 1] > 0
        return np.where(woman, truth, -truth).astype(int)


def contrary_data():
    y = np.tile([1, 1, 1, -1], 50)
    woman = np.arange(200) % 5 == 0
    return np.column_stack([y, woman]).astype(float), y, woman.astype(int)


def test_no_round_possible_gives_the_majority_class_and_a_warning():
    Z, y, groups = contrary_data()
    model = FairProjClassifier("demographic_parity", 0.0, estimator=ContraryStump())
    with pytest.warns(UserWarning, match="the model is the majority class; raise epsilon"):
        model.fit(Z, y, sensitive_features=groups)
    assert model.history_.stop_reason is StopReason.FALLBACK
    assert (model.predict(Z) == 1).all()
    np.testing.assert_allclose(model.predict_proba(Z)[:, 1], 0.75)
    assert len(model.history_) == 1
    assert model.certificate_.holds
    assert "majority class" in str(model.certificate_)


@pytest.mark.parametrize("votes", ["discrete", "confidence"])
def test_nothing_to_learn_and_balanced_labels(votes):
    Z, y = np.zeros((40, 1)), np.tile([-1, 1], 20)
    with pytest.warns(UserWarning, match="majority class"):
        model = FairProjClassifier(None, votes=votes).fit(Z, y)
    np.testing.assert_allclose(model.predict_proba(Z), 0.5)
    assert abs(model.history_[0].vote) < 1e-12


def test_votes():
    assert vote(0.5) == 0
    assert np.isclose(vote(0.2), 0.5 * np.log(4))
    assert vote(0.0) == vote(ERROR_FLOOR) < 20
    assert vote(0.0) == pytest.approx(18.42, abs=0.005), "as the comment on ERROR_FLOOR says"


@pytest.mark.parametrize("discrete", [True, False])
@pytest.mark.parametrize("scale", [1.0, 700.0])
def test_weights_at_margins_of_700(discrete, scale):
    """q, its cell masses and the loss, against extended precision arithmetic on logarithms."""
    rng = np.random.default_rng(0)
    n = 200
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    s = rng.uniform(0.1, 3, n)
    index = rng.integers(0, 4, n)
    margin = scale * np.where(index < 2, rng.uniform(0.9, 1, n), rng.uniform(-1, 1, n))
    weights = ExponentialWeights(y, s, index, 4, margin, discrete=discrete)
    for _ in range(60):
        logits = np.log(s) - y * margin
        total = np.logaddexp.reduce(logits)
        masses = [np.logaddexp.reduce(logits[index == c]) - total for c in range(4)]
        np.testing.assert_allclose(weights.log_mass, masses, atol=1e-10 * scale)
        assert np.isclose(weights.log_loss, total - np.log(s.sum()), atol=1e-10 * scale)
        w = weights.targets(np.full(4, 0.25)).hessian.copy()
        for c in range(4):
            inside = index == c
            share = np.exp(logits[inside] - total - masses[c])
            np.testing.assert_allclose(w[inside], 0.25 * share, rtol=1e-8, atol=1e-300)
        h = np.where(rng.random(n) < 0.5, 1.0, -1.0) * (1 if discrete else rng.random(n))
        step_vote = float(rng.choice([0.1, 0.7, 18.4]))
        errors = weights.errors(h)
        for c in range(4):
            inside = index == c
            share = np.exp(logits[inside] - total - masses[c])
            assert np.isclose(errors[c], share @ (1 - y[inside] * h[inside]) / 2, atol=1e-9)
        weights.add(step_vote)
        margin = margin + step_vote * h


@pytest.mark.parametrize("discrete", [True, False])
def test_many_mild_rounds_to_margins_of_1500_and_back(discrete):
    """One product over all rounds would under- or overflow; exact again when the margins return."""
    rng = np.random.default_rng(1)
    n, n_cells, step = 60, 5, 0.95
    index = rng.permutation(np.arange(n) % n_cells)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    s = rng.uniform(0.1, 3, n)
    h = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    h[index == 0] = y[index == 0]  # all right: the cell's mass vanishes
    h[index == 1] = -y[index == 1]  # all wrong: it grows
    if not discrete:
        h *= rng.uniform(0.9, 1, n)
    weights = ExponentialWeights(y, s, index, n_cells, discrete=discrete)
    mass, margin = rng.dirichlet(np.ones(n_cells)), np.zeros(n)
    largest = []
    for sign in np.repeat([1, -1], 1700):
        targets = weights.targets(mass)
        if len(largest) % 10 == 0:
            logits = np.log(s) - y * margin
            totals = np.array([np.logaddexp.reduce(logits[index == c]) for c in range(n_cells)])
            log_sum = np.logaddexp.reduce(totals)
            np.testing.assert_allclose(weights.log_mass, totals - log_sum, rtol=1e-12, atol=1e-10)
            assert weights.log_loss == pytest.approx(
                log_sum - np.log(s.sum()), rel=1e-12, abs=1e-10
            )
            w = mass[index] * np.exp(logits - totals[index])
            np.testing.assert_allclose(targets.hessian, w, rtol=1e-9, atol=1e-300)
            np.testing.assert_allclose(targets.gradient, -w * y, rtol=1e-9, atol=1e-300)
        weights.errors(sign * h)
        weights.add(step)
        margin += step * sign * h
        largest.append(np.abs(margin).max())
    assert max(largest) > 1500
    assert largest[-1] < 1e-9


def test_a_model_at_margins_of_700_goes_on():
    """A warm start from a perfect fit on most rows: weights span hundreds of orders."""
    index = (2 * GROUPS + (Y > 0)).astype(np.intp)
    margin = 700.0 * Y
    margin[:5] *= -1
    features = np.array([[0.0], [-1.0], [0.0], [1.0]])
    weights = ExponentialWeights(Y * 1.0, np.ones(len(Y)), index, 4, margin)
    settings = LearnerSettings("discrete", max_leaf_nodes=8)
    engine = find_engine("lightgbm").bind(settings, validated(X, Y, GROUPS, None))
    objective = ProjectedWeights(weights, Projector(features, np.array([0.1])))
    run = boost(engine, objective, n_rounds=20)
    records = [record for _, record in run]
    assert records
    for record in records:
        assert np.isfinite([record.error_q, record.kl, record.vote, record.log_loss]).all()
        assert abs(record.balance[0]) <= 0.1 + 1e-9


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("votes", ["discrete", "confidence"])
def test_a_warm_start_is_one_long_run(learner, votes):
    settings = {"epsilon": 0.2, "votes": votes, "estimator": learner, "random_state": 5}
    whole = FairProjClassifier(n_estimators=30, **settings).fit(X, Y, sensitive_features=GROUPS)
    parts = FairProjClassifier(n_estimators=10, warm_start=True, **settings)
    for n_estimators in (10, 17, 30):
        parts.set_params(n_estimators=n_estimators).fit(X, Y, sensitive_features=GROUPS)
        assert len(parts.history_) == n_estimators
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-7)
    np.testing.assert_allclose(
        parts.history_.columns["log_loss"], whole.history_.columns["log_loss"], atol=1e-9
    )
    assert parts.certificate_.holds
    assert len(parts.estimators_) == 30
    with pytest.warns(UserWarning, match="warm_start adds no round: n_estimators is 30 already"):
        parts.fit(X, Y, sensitive_features=GROUPS)


def test_a_warm_start_after_a_stop_tries_again():
    settings = {"constraints": "demographic_parity", "epsilon": 0.0, "n_estimators": 500}
    model = FairProjClassifier(**settings, warm_start=True).fit(X, Y, sensitive_features=GROUPS)
    rounds = len(model.history_)
    assert model.history_.stop_reason is StopReason.NO_EDGE
    model.fit(X, Y, sensitive_features=GROUPS)
    assert len(model.history_) == rounds
    model.set_params(max_leaf_nodes=6).fit(X, Y, sensitive_features=GROUPS)
    assert len(model.history_) > rounds
    assert model.certificate_.holds


def test_a_warm_start_after_the_end_adds_nothing():
    y = np.where(X[:, 0] > 0, 1, -1)
    model = FairProjClassifier(None, warm_start=True, n_estimators=3).fit(X, y)
    with pytest.warns(
        UserWarning, match="adds no round: stopped because a learner made no mistake"
    ):
        model.set_params(n_estimators=9).fit(X, y)


@pytest.mark.parametrize(
    "change",
    [
        {"votes": "confidence"},
        {"learning_rate": 0.5},
        {"epsilon": 0.01},
        {"pos_label": -1},
        {"estimator": DecisionTreeClassifier(max_depth=1)},
        {"constraints": "demographic_parity"},
        {"constraints": np.column_stack([GROUPS, 1 - GROUPS])},
    ],
)
def test_a_warm_start_refuses_what_would_falsify_the_record(change):
    model = FairProjClassifier(epsilon=0.2, n_estimators=5, warm_start=True)
    model.fit(X, Y, sensitive_features=GROUPS)
    before = model.certificate_
    with pytest.raises(ValueError, match="warm_start"):
        model.set_params(n_estimators=9, **change).fit(X, Y, sensitive_features=GROUPS)
    assert model.certificate_ == before


@pytest.mark.parametrize("from_the_start", [True, False])
def test_a_warm_start_refuses_rows_that_changed_groups(from_the_start):
    model = FairProjClassifier(epsilon=0.2, n_estimators=5, warm_start=from_the_start)
    model.fit(X, Y, sensitive_features=GROUPS)
    model.set_params(warm_start=True)
    with pytest.raises(ValueError, match="the rows' groups, labels or constraint features changed"):
        model.set_params(n_estimators=9).fit(X, Y, sensitive_features=1 - GROUPS)


def test_a_refused_warm_start_leaves_the_model_as_it_was():
    both = pd.DataFrame(X).assign(s=GROUPS).rename(columns=str)
    model = FairProjClassifier(sensitive_columns="s", n_estimators=5, warm_start=True)
    margin = model.fit(both, Y).decision_function(both)
    with pytest.raises(ValueError, match="warm_start"):
        model.set_params(sensitive_columns=None, n_estimators=8).fit(
            both.drop(columns="s"), Y, sensitive_features=GROUPS + 5
        )
    np.testing.assert_array_equal(model.decision_function(both), margin)


def test_a_warm_start_goes_on_with_the_same_stream_of_random_numbers():
    tree = DecisionTreeClassifier(max_depth=1, max_features=1)

    def model(n_estimators, **settings):
        stream = np.random.RandomState(3)
        return FairProjClassifier(
            None, estimator=tree, n_estimators=n_estimators, random_state=stream, **settings
        )

    whole = model(12).fit(X, Y)
    parts = model(5, warm_start=True).fit(X, Y)
    parts.set_params(n_estimators=12).fit(X, Y)
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-9)


def test_a_failed_fit_leaves_no_model_behind():
    model = FairProjClassifier(n_estimators=3).fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match="epsilon"):
        model.set_params(epsilon=-1).fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(NotFittedError):
        model.predict(X)


class Interrupting(DecisionTreeClassifier):
    """Presses Ctrl-C in the fourth round."""

    calls = 0

    def fit(self, X, y, sample_weight=None):
        type(self).calls += 1
        if type(self).calls == 4:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)


def test_an_interrupt_keeps_what_is_done_and_the_run_goes_on():
    stump = DecisionTreeClassifier(max_depth=1)
    model = FairProjClassifier(
        None, estimator=Interrupting(max_depth=1), n_estimators=8, warm_start=True, random_state=2
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert len(model.history_) == 3
    assert model.history_.stop_reason is StopReason.INTERRUPTED
    assert len(model.predict(X)) == len(X)
    model.fit(X, Y)
    whole = FairProjClassifier(None, estimator=stump, n_estimators=8, random_state=2).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-9)


def test_fitting_anew_forgets():
    model = FairProjClassifier(epsilon=0.1, n_estimators=10).fit(X, Y, sensitive_features=GROUPS)
    first = model.decision_function(X)
    model.fit(X[:, :2], Y, sensitive_features=GROUPS)
    assert model.n_features_in_ == 2
    model.fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(model.decision_function(X), first)


def test_progress(capsys):
    FairProjClassifier(n_estimators=3, verbose=True).fit(X, Y, sensitive_features=GROUPS)
    assert "boosting" in capsys.readouterr().out
    FairProjClassifier(None, n_estimators=3, verbose=True).fit(X, Y)
    assert "without constraint" in capsys.readouterr().out
