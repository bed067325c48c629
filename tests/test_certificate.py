"""Every statement of a certificate, recomputed from the model's own predictions by plain NumPy."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import oracles
from conftest import make_sample
from fairproj import FairBoostClassifier, FairProjClassifier, GapCertificate, History
from fairproj.boosting.bounds import log_bounds
from fairproj.constraints import find_statistic, statistic_names
from fairproj.io.records import from_json, to_json
from fairproj.report import certificate_words

CONSTRAINED = statistic_names(constraints=True)
DIFFERENCES = [name for name in CONSTRAINED if find_statistic(name).kind == "difference"]


def features_by_hand(name, y, groups):
    """g of every row, from the definition."""
    events = {
        "demographic_parity": [np.ones(len(y), bool)],
        "equal_opportunity": [y > 0],
        "true_positive_rate_parity": [y > 0],
        "false_negative_rate_parity": [y > 0],
        "false_positive_rate_parity": [y < 0],
        "equalized_odds": [y > 0, y < 0],
        "accuracy_parity": [np.ones(len(y), bool)],
        "accuracy": [np.ones(len(y), bool)],
    }[name]
    values = np.unique(groups)
    return np.column_stack(
        [
            event * ((groups == b) * 1.0 - (groups == a))
            for event in events
            for i, a in enumerate(values)
            for b in values[i + 1 :]
        ]
    )


def check_run(model, X, y, groups, sample_weight, g, epsilon):
    """Walk through the rounds with nothing but the learners' predictions."""
    rate = model.learning_rate
    margin = np.zeros(len(y))
    total = sample_weight.sum()
    loss = np.sum(sample_weight * np.exp(-y * margin)) / total
    sums = {"edge": 0.0, "tv": 0.0, "cost": 0.0}
    premises, seen = [], []
    staged = model.staged_decision_function(X)
    columns = model.history_.columns
    for t, (record, after) in enumerate(zip(model.history_, staged, strict=True)):
        q = oracles.exponential_weights(y, margin, sample_weight)
        lam = np.array(record.multipliers)
        w = q * np.exp(-g @ lam) if g.shape[1] else q
        w = w / w.sum()
        assert (np.abs(w @ g) <= epsilon + 1e-9).all()
        np.testing.assert_allclose(w @ g, record.balance, atol=1e-9)
        np.testing.assert_allclose(q @ g, record.balance_q, atol=1e-9)
        h = (after - margin) / record.vote
        assert (np.abs(h) <= 1 + 1e-6).all()
        edge_q, edge_w = q @ (y * h) / 2, w @ (y * h) / 2
        kl, tv = oracles.kl(w, q), np.abs(w - q).sum() / 2
        cost = np.sqrt(max(kl, 0) / 2)
        assert np.isclose(edge_q, record.edge_q, atol=1e-9)
        assert np.isclose(edge_w, record.edge_w, atol=1e-9)
        assert np.isclose(kl, record.kl, atol=1e-9)
        assert np.isclose(tv, record.tv, atol=1e-9)
        assert np.isclose(kl / 2, record.fairness_cost**2, atol=1e-9)
        assert abs(edge_w - edge_q) <= tv + 1e-10 <= cost + 2e-10  # edge transfer
        full_vote = 0.5 * np.log((1 + 2 * edge_q) / (1 - 2 * edge_q))
        assert np.isclose(record.vote, rate * full_vote, rtol=1e-6)
        new_loss = np.sum(sample_weight * np.exp(-y * after)) / total
        factor = q @ np.exp(-record.vote * y * h)
        assert np.isclose(new_loss, loss * factor, rtol=1e-9)  # recursion
        if model.votes == "discrete" and rate == 1:
            assert np.isclose(factor, np.sqrt(1 - 4 * edge_q**2), rtol=1e-9)
        else:
            assert factor <= np.exp(-2 * rate * edge_q**2) + 1e-12
        assert np.isclose(np.log(new_loss), record.log_loss, atol=1e-9)
        premises.append(edge_w > cost)
        seen.append([edge_q, edge_w, tv, kl / 2])
        sums["edge"] += edge_q**2
        sums["tv"] += max(0, edge_w - tv) ** 2
        sums["cost"] += max(0, edge_w - cost) ** 2
        for name, value in sums.items():
            bound = np.exp(-2 * rate * value)
            assert new_loss <= bound + 1e-9
            assert np.isclose(columns[f"bound_{name}"][t], bound, rtol=1e-6)
        theorem = columns["bound_theorem"][t]
        assert np.isclose(theorem, bound, rtol=1e-6) if all(premises) else np.isnan(theorem)
        margin, loss = after, new_loss
    certificate = model.certificate_
    assert certificate.holds
    assert certificate.n_rounds == len(model.history_)
    assert np.isclose(certificate.loss, loss, rtol=1e-9)
    wrong = np.where(margin > 0, 1, -1) != y
    assert np.isclose(certificate.train_error, sample_weight[wrong].sum() / total, atol=1e-12)
    assert (certificate.bound_theorem is None) == (not all(premises))
    assert certificate.premise_rounds == sum(premises)
    edge_q, edge_w, tv, _ = np.mean(seen, axis=0)
    assert np.isclose(certificate.mean_edge_q, edge_q, atol=1e-9)
    assert np.isclose(certificate.mean_edge_w, edge_w, atol=1e-9)
    assert np.isclose(certificate.mean_tv, tv, atol=1e-9)
    cost = np.sqrt(np.maximum(np.array(seen)[:, 3], 0)).mean()
    assert np.isclose(certificate.mean_fairness_cost, cost, atol=1e-6)


@pytest.mark.parametrize("votes", ["discrete", "confidence"])
@pytest.mark.parametrize("constraint", DIFFERENCES)
@pytest.mark.parametrize("n_groups", [2, 4])
def test_every_round_and_every_bound(votes, constraint, n_groups):
    X, y, groups = make_sample(900, n_groups=n_groups, seed=n_groups)
    model = FairProjClassifier(constraint, epsilon=0.05, n_estimators=25, votes=votes)
    model.fit(X, y, sensitive_features=groups)
    assert (model.history_.columns["kl"] > 0).any()
    g = features_by_hand(constraint, y, groups)
    check_run(model, X, y, groups, np.ones(len(y)), g, 0.05)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    constraint=st.sampled_from(DIFFERENCES),
    votes=st.sampled_from(["discrete", "confidence"]),
    epsilon=st.sampled_from([0.0, 0.03, 0.2, 0.6]),
    learning_rate=st.sampled_from([1.0, 0.3]),
    max_leaf_nodes=st.sampled_from([None, 6]),
)
def test_random_runs(seed, constraint, votes, epsilon, learning_rate, max_leaf_nodes):
    X, y, groups = make_sample(500, n_groups=2 + seed % 2, seed=seed)
    weight = np.random.default_rng(seed).uniform(0.2, 3, len(y))
    model = FairProjClassifier(
        constraint,
        epsilon,
        n_estimators=12,
        votes=votes,
        learning_rate=learning_rate,
        max_leaf_nodes=max_leaf_nodes,
    )
    model.fit(X, y, sensitive_features=groups, sample_weight=weight)
    g = features_by_hand(constraint, y, groups)
    check_run(model, X, y, groups, weight, g, epsilon)


@pytest.mark.parametrize("votes", ["discrete", "confidence"])
def test_a_scikit_learn_learner_has_the_same_certificate(votes):
    X, y, groups = make_sample(400)
    model = FairProjClassifier(
        "equalized_odds", 0.05, estimator=LogisticRegression(), n_estimators=6, votes=votes
    ).fit(X, y, sensitive_features=groups)
    g = features_by_hand("equalized_odds", y, groups)
    check_run(model, X, y, groups, np.ones(len(y)), g, 0.05)


def test_ties_at_margin_zero_count_as_the_model_predicts_them():
    X = np.array(
        [[1, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0], [1, 1, 1], [0, 1, 0], [1, 1, 0]], float
    )
    y, weight = np.array([0, 1, 1, 1, 0, 1, 1]), np.array([3, 2, 1, 2, 3, 3, 2])
    model = FairProjClassifier(None, n_estimators=2).fit(X, y, sample_weight=weight)
    assert (model.decision_function(X) == 0).any()
    error = np.average(model.predict(X) != y, weights=weight)
    assert np.isclose(model.certificate_.train_error, error)


@pytest.mark.parametrize("scale", [1e39, 1e200, 1e300])
@pytest.mark.parametrize("max_depth", [1, 4])
def test_features_of_any_size_have_a_certificate_that_holds(scale, max_depth):
    """The loss that it states is that of the model, counted anew from its margins."""
    X, y, groups = make_sample()
    model = FairProjClassifier(n_estimators=20, max_depth=max_depth)
    model.fit(X / 8 * scale, y, sensitive_features=groups)
    plain = FairProjClassifier(n_estimators=20, max_depth=max_depth)
    plain.fit(X / 8, y, sensitive_features=groups)
    margin = model.decision_function(X / 8 * scale)
    certificate = model.certificate_
    assert certificate.holds
    assert certificate.loss == pytest.approx(np.exp(-y * margin).mean(), abs=1e-9)
    assert certificate.loss == pytest.approx(plain.certificate_.loss, abs=0.01)
    assert certificate.loss < 0.95


def test_the_loss_is_exact_after_600_rounds():
    X, y, groups = make_sample(500)
    model = FairProjClassifier(epsilon=0.45, n_estimators=600).fit(X, y, sensitive_features=groups)
    assert len(model.history_) == 600
    loss = np.mean(np.exp(-y * model.decision_function(X)))
    assert np.isclose(model.certificate_.log_loss, np.log(loss), atol=1e-11)


def test_a_certificate_can_fail():
    """Negative control: the check is no tautology."""
    edge = np.full(3, 0.2)
    bounds = log_bounds(edge, edge, np.full(3, 0.05), np.full(3, 0.04))
    assert np.isclose(bounds["theorem"][-1], -2 * 3 * 0.15**2)
    assert np.isnan(log_bounds(edge, edge, np.array([0.1, 0.3, 0.1]), edge)["theorem"][1:]).all()
    X, y, groups = make_sample(300)
    model = FairProjClassifier(epsilon=0.05, n_estimators=5).fit(X, y, sensitive_features=groups)
    assert model.certificate_.holds
    assert not replace(model.certificate_, loss=1.5).holds
    assert not replace(model.certificate_, edge_transfer_rounds=4).holds
    assert not replace(model.certificate_, balanced_rounds=4).holds
    assert not replace(model.certificate_, train_error=0.99).holds


def test_what_it_says():
    X, y, groups = make_sample(900)
    loose = FairProjClassifier(None, n_estimators=5).fit(X, y).certificate_
    assert loose.premise_rounds == 5
    assert loose.bound_theorem == loose.bound_cost == loose.bound_edge
    tight = FairProjClassifier("demographic_parity", 0.0).fit(X, y, sensitive_features=groups)
    text = str(tight.certificate_)
    assert "does not apply" in text
    assert f"held in {tight.certificate_.premise_rounds} of {len(tight.history_)} rounds" in text
    assert "says nothing about" in text
    html = tight.certificate_._repr_html_()
    assert html.count("<tr>") == len(tight.certificate_.rows())
    assert json.loads(json.dumps(tight.certificate_.to_dict()))["n_rounds"] == len(tight.history_)


def test_a_vacuous_bound_is_called_vacuous():
    X, y, groups = make_sample(300)
    certificate = (
        FairProjClassifier(n_estimators=3).fit(X, y, sensitive_features=groups).certificate_
    )
    assert "(vacuous)" not in str(replace(certificate, bound_cost=0.9, bound_tv=0.9))
    assert "1 (vacuous)" in str(replace(certificate, bound_cost=1.0))


def test_history_as_table_and_json():
    X, y, groups = make_sample(300)
    model = FairProjClassifier("equalized_odds", [0.15, 0.2], n_estimators=7)
    history = model.fit(X, y, sensitive_features=groups).history_
    frame = history.to_frame()
    assert list(frame.index) == list(range(1, 8))
    assert frame["edge_q"].iloc[2] == history[2].edge_q
    assert frame["balance[1 - 0 | 1]"].iloc[0] == history[0].balance[0]
    assert frame.filter(like="multipliers").shape == (7, 2)
    assert from_json(to_json(history), History) == history
    assert history.limits == (0.15, 0.2)
    assert "7 rounds" in repr(history)


def test_a_gap_at_its_limit_is_within_it():
    """0.8 - 0.75 is 0.05000000000000004: model, certificate and its words must agree."""
    certificate = GapCertificate(
        **{
            **dict.fromkeys((f.name for f in fields(GapCertificate)), 1),
            "event": "true positive rate",
            "gap": 0.8 - 0.75,
            "max_gap": 0.05,
            "met": True,
            "stop": "",
            "watched_on": "training rows",
        }
    )
    assert certificate.gap > certificate.max_gap
    assert certificate.within
    assert "within max_gap 0.05" in str(certificate)
    assert "within the largest gap allowed" in " ".join(certificate_words(certificate))
    above = replace(certificate, gap=0.0501, within=False, met=False)
    assert "above max_gap 0.05" in str(above)
    assert "a gap of 0.050 on the training rows, 0.000 too much" in above.shortfall
    assert certificate.shortfall == ""


def test_a_gap_that_is_too_near_to_its_limit():
    """With margin="one_se" a gap below max_gap may be a miss; it is no negative excess."""
    X, y, groups = make_sample(600)
    certificate = (
        FairBoostClassifier(max_gap=0.6, n_estimators=3, validation_fraction=None)
        .fit(X, y, sensitive_features=groups)
        .certificate_
    )
    near = replace(certificate, gap=0.04, max_gap=0.05, within=False, met=False)
    assert (
        "a gap of 0.040 on the training rows, which is not a standard error below it"
        in near.shortfall
    )
    assert "0.0400 (true positive rate), not a standard error below max_gap 0.05" in str(near)


def test_what_no_model_reaches_is_called_vacuous():
    X, y, groups = make_sample(600)
    model = FairBoostClassifier(max_gap=0.6, n_estimators=3, validation_fraction=None).fit(
        X, y, sensitive_features=groups
    )
    certificate = replace(model.certificate_, bound_error=0.2, constant_error=0.4)
    assert "vacuous" not in str(certificate)
    text = str(replace(certificate, bound_error=0.4))
    assert "0.4000 (vacuous: a constant prediction has 0.4000)" in text
