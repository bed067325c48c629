"""Every statement of a certificate, recomputed from the model's own predictions by plain NumPy."""

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import oracles
from conftest import make_sample
from fairproj import FairBoostClassifier, FairProjClassifier, GapCertificate, History
from fairproj.boosting.bounds import cost_loss_bound, log_bounds
from fairproj.boosting.certificate import certify, certify_gap
from fairproj.boosting.record import Bias, Observation, Round, StopReason
from fairproj.constraints import find_statistic, statistic_names
from fairproj.engines.base import TIE
from fairproj.io.records import from_json, to_json
from fairproj.report._words import certificate_words

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
    assert model.certificate_.stop == history.stop_reason.sentence


def limit_certificate(**state):
    """A certificate of a gap at its limit."""
    return GapCertificate(
        **{
            **dict.fromkeys((f.name for f in fields(GapCertificate)), 1),
            "event": "true positive rate",
            "gap": 0.8 - 0.75,
            "max_gap": 0.05,
            "met": True,
            "stop": "",
            "watched_on": "training rows",
            **state,
        }
    )


def test_a_gap_at_its_limit_is_within_it():
    """0.8 - 0.75 is 0.05000000000000004: model, certificate and its words must agree."""
    certificate = limit_certificate()
    assert certificate.gap > certificate.max_gap
    assert certificate.within
    assert "within max_gap 0.05" in str(certificate)
    assert "within the largest gap allowed" in " ".join(certificate_words(certificate))
    above = replace(certificate, gap=0.0501, within=False, met=False)
    assert "above max_gap 0.05" in str(above)
    assert "a gap of 0.050 on the training rows, 0.000 too much" in above.shortfall
    assert certificate.shortfall == ""


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({}, "the loss was smallest among the rounds with a gap within the limit"),
        ({"bias": 0.5}, "a bias brings the gap within the limit at the smallest loss"),
        (
            {"met": False, "within": False, "gap": 0.2},
            "after which the gap came nearest to the limit",
        ),
        ({"met": False, "useful": False}, "after which the loss on the training rows was smallest"),
        ({"event": None}, "after which the loss on the training rows was smallest"),
    ],
)
def test_words_say_why_rounds_were_left_out(state, why):
    kept = {"n_rounds": 10, "n_rounds_run": 100, "bias": 0}
    (first, *_) = certificate_words(limit_certificate(**kept | state))
    assert first.startswith("Training kept the first 10 of 100 rounds")
    assert why in first
    assert why not in certificate_words(limit_certificate(**state))[0], "all rounds were kept"


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


# Certificates of made-up rounds

NUMBERS = {
    "edge_q": [0.3, 0.2, 0.1, 0.1, 0.1],
    "edge_w": [0.25, 0.2, 0.15, 0.2, 0.1],
    "tv": [0.05, 0.1, 0.04, 0.1 - 5e-13, 0.0],  # that of round 2 is above its cost
    "fairness_cost": [0.1, 0.09, 0.05, 0.1 - 1e-12, 0.1],  # that of round 5 is its edge
    "kl": [0.0, 0.5, 0.0, 2.0, 0.1],
    "log_loss": [-0.1, -0.2, -0.3, -0.35, -0.4],
}
BALANCE = [[0.05 + 5e-10, 0.0], [-0.05 - 5e-10, 0.1], [0.2, 0.0], [0.0, 0.5], [0.05 + 2e-9, 0.0]]


def certificate_of(n_rounds):
    return certify(
        {name: np.array(values[:n_rounds]) for name, values in NUMBERS.items()},
        np.array(BALANCE[:n_rounds]),
        np.array([0.05, 0.1]),
        train_error=0.25,
        learning_rate=0.5,
        stop="the end",
    )


def test_a_certificate_counts_rounds_and_takes_means():
    found = certificate_of(5)
    assert (found.n_rounds, found.stop, found.train_error) == (5, "the end", 0.25)
    assert found.log_loss == -0.4
    assert found.loss == pytest.approx(math.exp(-0.4))
    assert found.premise_rounds == 4
    assert found.edge_transfer_rounds == 3  # 1 and 4, which are so but for rounding, and 5
    assert found.balanced_rounds == 2
    assert found.projected_rounds == 3
    assert found.mean_edge_q == pytest.approx(0.16)
    assert found.mean_edge_w == pytest.approx(0.18)
    assert found.mean_tv == pytest.approx(0.058)
    assert found.mean_fairness_cost == pytest.approx(0.088)


def test_the_bounds_of_a_certificate_are_those_of_its_last_round():
    found = certificate_of(5)
    rounds = list(zip(*(NUMBERS[name] for name in ("edge_w", "tv", "fairness_cost")), strict=True))
    assert found.bound_edge == pytest.approx(math.exp(-sum(e * e for e in NUMBERS["edge_q"])))
    assert found.bound_tv == pytest.approx(math.exp(-sum((e - tv) ** 2 for e, tv, _ in rounds)))
    cost = math.exp(-sum((e - cost) ** 2 for e, _, cost in rounds))
    assert found.bound_cost == pytest.approx(cost)
    assert found.bound_theorem is None  # edge and cost of the fifth are equal
    assert certificate_of(4).bound_theorem == pytest.approx(cost)


def test_an_edge_below_its_cost_adds_nothing_to_the_bound():
    edge = np.array([0.1, 0.3])
    bounds = log_bounds(edge, edge, np.array([0.2, 0.1]), np.array([0.15, 0.05]))
    np.testing.assert_allclose(bounds["cost"], [0, -2 * 0.2**2])
    np.testing.assert_allclose(bounds["tv"], [0, -2 * 0.25**2])
    np.testing.assert_allclose(bounds["edge"], [-2 * 0.1**2, -2 * (0.1**2 + 0.3**2)])
    assert np.isnan(bounds["theorem"]).all()


def test_bounds_with_signed_costs_by_hand():
    edge, change, mass = np.array([0.3, 0.5]), np.array([0.0, 0.2]), np.array([1.0, 0.8])
    logs = np.log([0.9, 0.7])
    numbers = (edge, logs, change, mass)
    assert np.isnan(cost_loss_bound(None, *numbers)).tolist() == [True, True]
    first = math.exp(-2 * 0.3**2)
    np.testing.assert_allclose(
        cost_loss_bound("multiplicative", *numbers), [first, first * math.exp(0.2 - 2 * 0.5**2)]
    )
    first = 1 - 0.5 * (1 - math.sqrt(1 - 4 * 0.3**2))
    second = first + 0.9 * (math.exp(0.2) - 1) - 0.5 * 0.8
    np.testing.assert_allclose(cost_loss_bound("additive", *numbers, 0.5), [first, second])
    # JSON has no infinity, and an edge of a half but for rounding has a square root.
    largest = cost_loss_bound("multiplicative", edge, logs, np.array([800.0, 0.0]), mass)
    assert (largest == np.finfo(float).max).all()
    beyond = cost_loss_bound("additive", edge + 1e-15, logs, change, mass)
    assert np.isfinite(beyond).all()


def test_a_certificate_holds_up_to_ties_and_rounding():
    fine = replace(
        certificate_of(4),
        edge_transfer_rounds=4,
        balanced_rounds=4,
        loss=0.5,
        bound_theorem=0.6,
        bound_cost=0.6,
        bound_tv=0.6,
        bound_edge=0.6,
    )
    assert fine.holds
    for name in ("bound_theorem", "bound_cost", "bound_tv", "bound_edge"):
        assert replace(fine, **{name: 0.5 - 5e-10}).holds
        assert not replace(fine, **{name: 0.5 - 2e-9}).holds
    beyond = dict.fromkeys(("bound_cost", "bound_tv", "bound_edge"), 2.0)
    assert replace(fine, bound_theorem=None, loss=1 + 5e-10, **beyond).holds
    assert not replace(fine, bound_theorem=None, loss=1 + 2e-9, **beyond).holds
    assert replace(fine, train_error=0.5 * (1 + 1.9 * TIE)).holds
    assert not replace(fine, train_error=0.5 * (1 + 2.1 * TIE)).holds
    assert replace(fine, loss=0.0, train_error=5e-13).holds
    assert not replace(fine, loss=0.0, train_error=2e-12).holds
    for name in ("edge_transfer_rounds", "balanced_rounds", "n_rounds"):
        assert not replace(fine, **{name: 3}).holds


def test_the_words_of_a_certificate():
    certificate = replace(certificate_of(5), bound_tv=1.0, stop="a < b")
    assert certificate.rows() == [
        ("Rounds", "5; a < b"),
        ("Exponential loss, exact", "0.6703 (1 before training)"),
        ("Training error", "0.2500"),
        (
            "Bound of Theorem 5.4",
            "does not apply: its premise, edge above fairness cost, held in 4 of 5 rounds",
        ),
        ("Bound without the premise", "0.9469"),
        ("The same with total variation", "1 (vacuous)"),
        ("Bound from the edges under q", "0.8521"),
        ("Edge transfer", "held in 3 of 5 rounds"),
        ("Constraints on the weights", "met in 2 of 5 rounds"),
        ("Projection", "changed the weights in 3 of 5 rounds"),
        (
            "Averages",
            "edge under w 0.1800, under q 0.1600, fairness cost 0.0880, total variation 0.0580",
        ),
    ]
    assert dict(certificate_of(4).rows())["Bound of Theorem 5.4"] == "0.9469"
    title, first, *_, last, caveat = str(certificate).split("\n")
    assert (title, caveat) == (certificate.title, certificate.caveat)
    assert first == "  Rounds                         5; a < b"
    assert last.startswith("  Averages                       edge under w")
    html = certificate._repr_html_()
    assert html.startswith(f"<table><caption>{certificate.title}</caption><tbody><tr><th")
    assert "Rounds</th><td style='text-align:left'>5; a &lt; b</td></tr><tr>" in html
    assert html.endswith(f"</td></tr></tbody></table><p>{certificate.caveat}</p>")


def observation(**changes):
    numbers = {
        "accuracy": 0.7,
        "loss": 0.6,
        "cut": 0.1,
        "rates": (0.5, 0.4, 0.3, 0.1),
        "gaps": (0.1, 0.2),
        "within": False,
        "useful": True,
        "bias": None,
        "multipliers": (0.1, -0.4, 0.2, 0.3),
        "limit_multiplier": 0.0,
        "flipped": 2,
        "constant": 0.02,
        "penalty": 0.05,
        "log_cost_loss": -0.2,
        "cost_change": 0.02,
        "zero_loss": 1.1,
        "slope_mass": 0.9,
        "train_error": 0.3,
    }
    return Observation(**(numbers | changes))


def watched_history(bias=0.0, bound="multiplicative", kept=2):
    """Three rounds, by default two of them kept."""
    with_bias = Bias(value=0.4, accuracy=0.65, loss=0.7, rates=(), gaps=(0.04, 0.1))
    rounds = [
        Round(0.2, 0.3, None, 0.1, 0.5, -0.1, (), (), (), observation(cost_change=0.0)),
        Round(0.3, 0.4, None, 0.1 - 5e-13, 0.5, -0.2, (), (), (), observation(bias=with_bias)),
        Round(0.1, 0.4, None, 0.1, 0.5, -0.9, (), (), (), observation(flipped=7, accuracy=0.9)),
    ]
    return History(
        tuple(rounds),
        (),
        (0.05, 0.3),
        0.5,
        StopReason.EARLY,
        ("true positive rate", "selection rate"),
        ("a", "b", "c", "d"),
        kept=kept,
        bias=bias,
        bound=bound,
    )


def gap_certificate(compared=True, **settings):
    return certify_gap(
        watched_history(**settings),
        threshold=0.45,
        watched_on="held-out rows",
        constant_error=0.4,
        compared=compared,
    )


def test_a_gap_certificate_is_that_of_the_rounds_kept():
    found = gap_certificate()
    assert (found.n_rounds, found.n_rounds_run) == (2, 3)
    assert found.stop == StopReason.EARLY.sentence
    # 0.1 is 0.05 above its limit, 0.2 is 0.1 below its own.
    assert (found.event, found.gap, found.max_gap) == ("true positive rate", 0.1, 0.05)
    assert (found.accuracy, found.watched_loss) == (0.7, 0.6)
    assert (found.within, found.useful, found.met) == (False, True, False)
    assert (found.threshold, found.bias, found.watched_on) == (0.45, 0.0, "held-out rows")
    assert found.log_loss == -0.2
    assert found.loss == pytest.approx(math.exp(-0.2))
    assert (found.train_error, found.zero_loss, found.constant_error) == (0.3, 1.1, 0.4)
    assert found.cost_loss == pytest.approx(math.exp(-0.2))
    assert found.cost_change == pytest.approx(0.02)
    assert found.bound_cost_loss == pytest.approx(math.exp(0.02 - 0.2**2 - 0.1**2))
    assert (found.constant, found.penalty) == (0.02, 0.05)
    assert found.bound_error == pytest.approx(0.02 + math.exp(-0.2) - 0.05)
    assert (found.flipped, found.largest_multiplier) == (2, 0.4)
    assert found.edge_transfer_rounds == 2
    assert found.mean_edge_q == pytest.approx(0.25)
    assert found.mean_edge_w == pytest.approx(0.15)
    assert found.mean_tv == pytest.approx(0.1)
    assert gap_certificate(bound=None).bound_cost_loss is None


def test_a_gap_certificate_has_the_losses_of_the_last_round():
    found, columns = gap_certificate(kept=3), watched_history(kept=3).columns
    assert found.loss == pytest.approx(math.exp(-0.9))
    assert found.bound_cost_loss == columns["bound_cost_loss"][2] != columns["bound_cost_loss"][1]


def test_a_gap_certificate_with_a_bias_is_of_the_margin_with_it():
    found = gap_certificate(bias=0.4)
    assert (found.bias, found.accuracy, found.watched_loss) == (0.4, 0.65, 0.7)
    assert (found.event, found.gap, found.max_gap) == ("true positive rate", 0.04, 0.05)
    assert (found.within, found.useful, found.met) == (True, True, True)
    assert found.train_error == 0.3  # without the bias


def test_a_gap_certificate_where_nothing_is_compared():
    found = gap_certificate(compared=False, bias=0.4)
    assert (found.event, found.gap, found.max_gap, found.met) == ("", 0.0, 0.0, False)
    assert found.shortfall == ""


def test_the_words_of_a_gap_certificate():
    certificate = gap_certificate()
    assert certificate.rows() == [
        ("Rounds", f"2 kept of 3 run; {StopReason.EARLY.sentence}"),
        (
            "Gap on the watched rows",
            "0.1000 (true positive rate), above max_gap 0.05; accuracy 0.7000; these were held out "
            "from the training rows",
        ),
        ("Useful", "yes: errors cost less than those of both constant predictions"),
        ("Decision", "positive where the probability exceeds 0.45"),
        ("Training loss, exact", "0.8187 (1 for a margin of zero)"),
        ("Training error", "0.3000 at a margin of zero"),
        (
            "Bound on the training error",
            "0.7887 (vacuous: a constant prediction has 0.4000)",
        ),
        ("Loss with signed costs, exact", "0.8187 (1.1 for a margin of zero)"),
        ("Bound on it", "0.9704"),
        ("Changes of the costs", "+0.0200 of the logarithm of that loss, in all rounds"),
        (
            "Costs in the last round",
            "largest multiplier 0.4000; flipped labels in 2 (group, label) cells",
        ),
        ("Edge transfer", "held in 2 of 2 rounds"),
        (
            "Averages",
            "edge under w 0.1500, under q 0.2500, signed total variation 0.1000",
        ),
    ]
    other = dict(replace(certificate, bias=-0.4, useful=False, bound_cost_loss=1.1).rows())
    assert other["Decision"].endswith("0.45; a bias of -0.4000 was added to the margin")
    assert other["Useful"].startswith("no: ")
    assert other["Bound on it"] == "1.1 (vacuous)"
    assert dict(replace(certificate, bound_cost_loss=1.05).rows())["Bound on it"] == "1.05"
    assert dict(replace(certificate, bound_cost_loss=None).rows())["Bound on it"] == "none"
    within = replace(certificate, within=True, met=True, event="")
    assert dict(within.rows())["Gap on the watched rows"].startswith("nothing was compared; ")
    near = dict(replace(certificate, gap=0.05 + 5e-10).rows())["Gap on the watched rows"]
    assert "not a standard error below max_gap" in near
    trained = dict(replace(certificate, watched_on="training rows").rows())
    assert trained["Gap on the watched rows"].endswith("; these are the training rows")


def test_what_a_gap_certificate_says_is_missing():
    missed = gap_certificate()
    assert missed.shortfall.startswith("no useful round had a gap within max_gap=0.05; ")
    assert "a gap of 0.100 on the held-out rows, 0.050 too much" in missed.shortfall
    assert replace(missed, useful=False).shortfall.startswith("the model says the same to nearly")
    assert replace(missed, met=True).shortfall == ""
    assert replace(missed, event="").shortfall == ""


def test_a_gap_certificate_holds_up_to_rounding():
    fine = replace(gap_certificate(), loss=0.5, bound_error=0.4, cost_loss=3.0, bound_cost_loss=3.0)
    assert fine.holds
    assert replace(fine, cost_loss=3.0 + 2e-9).holds
    assert not replace(fine, cost_loss=3.0 + 4e-9).holds
    assert replace(fine, cost_loss=0.5 + 5e-10, bound_cost_loss=0.5).holds
    assert not replace(fine, cost_loss=0.5 + 2e-9, bound_cost_loss=0.5).holds
    assert replace(fine, bound_cost_loss=None).holds
    for broken in ({"loss": 0.2}, {"bound_error": 0.2}, {"edge_transfer_rounds": 1}):
        assert not replace(fine, **broken).holds
        assert not replace(fine, bound_cost_loss=None, **broken).holds
