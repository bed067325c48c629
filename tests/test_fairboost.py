"""FairBoostClassifier: tilt, accounting, the round kept, and where the gap is watched."""

import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import oracles
from conftest import make_sample
from fairproj import (
    FairBoostClassifier,
    FairnessReport,
    FairProjClassifier,
    History,
    plot_dynamics,
)
from fairproj.boosting import losses
from fairproj.boosting.finish import choose_round
from fairproj.boosting.policies import gaps, violations
from fairproj.constraints import STATISTICS, FunctionConstraint, RateParity
from fairproj.datasets import load_adult
from fairproj.io.records import from_json, to_json


def unfair(n=3000, n_groups=2, seed=0):
    """Groups whose rates differ under plain boosting, and features that tell the groups apart."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=n)
    merit = rng.normal(size=n)
    X = np.column_stack(
        [merit + 0.5 * rng.normal(size=n), groups + 0.2 * rng.normal(size=n), rng.normal(size=n)]
    ).round(1)
    y = np.where(merit + 1.2 * groups / (n_groups - 1) + 0.5 * rng.normal(size=n) > 0.6, 1, -1)
    return X, y, groups


X, Y, GROUPS = unfair()


@contextmanager
def quiet():
    """Where a gap above max_gap is no surprise."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no useful round")
        warnings.filterwarnings("ignore", message="some groups have fewer")
        yield


def loop(**settings):
    return FairBoostClassifier(**({"n_estimators": 60, "max_gap": 0.05} | settings))


# The tilt

rates = arrays(
    np.float64, st.tuples(st.integers(2, 5), st.integers(1, 2)), elements=st.floats(0, 1)
)


@given(rates, st.floats(0, 0.5))
def test_no_violation_no_change(rates, max_gap):
    max_gap = np.full(rates.shape[1], max_gap)
    beyond = np.abs(violations(rates, max_gap))
    gap = np.ptp(rates, axis=0)
    assert (beyond[:, gap <= max_gap] <= 1e-15).all()
    assert (beyond[:, gap > max_gap + 1e-9].max(axis=0) > 0).all()


@given(rates, st.floats(0, 0.5))
def test_the_extremes_are_pushed_towards_each_other_as_far_as_they_are_out(rates, max_gap):
    beyond = violations(rates, np.full(rates.shape[1], max_gap))
    for e in range(rates.shape[1]):
        excess = max(0.0, np.ptp(rates[:, e]) - max_gap)
        assert beyond[:, e].max() == pytest.approx(excess / 2, abs=1e-12)
        assert beyond[:, e].min() == pytest.approx(-excess / 2, abs=1e-12)


@given(rates)
def test_gaps_are_ranges(rates):
    np.testing.assert_allclose(gaps(rates), np.ptp(rates, axis=0))


def test_unknown_rates_push_nobody():
    rates = np.array([[0.2, np.nan], [0.6, np.nan], [np.nan, np.nan]])
    np.testing.assert_allclose(gaps(rates), [0.4, 0.0])
    beyond = violations(rates, np.array([0.1, 0.1]))
    np.testing.assert_allclose(beyond, [[-0.15, 0], [0.15, 0], [0, 0]])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_swapping_groups_mirrors_the_tilt(seed):
    X, y, groups = unfair(300, seed=seed)
    with quiet():
        one = loop(n_estimators=8).fit(X, y, sensitive_features=groups)
        other = loop(n_estimators=8).fit(X, y, sensitive_features=1 - groups)
    tilt, mirrored = (model.history_.by_group("tilt") for model in (one, other))
    np.testing.assert_allclose(tilt, mirrored[:, ::-1], atol=1e-12)
    np.testing.assert_allclose(tilt.sum(axis=1), 0, atol=1e-12)  # two groups: equal and opposite
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.0])
def test_the_tilt_follows_the_rates(decay):
    model = loop(n_estimators=10, tilt_step=1.5, tilt_decay=decay)
    with quiet():
        history = model.fit(X, Y, sensitive_features=GROUPS).history_
    mu = np.zeros(2)
    for t, (rates, tilt) in enumerate(
        zip(history.by_group("rates"), history.by_group("tilt"), strict=True), start=1
    ):
        np.testing.assert_allclose(tilt, mu, atol=1e-12)
        gap = rates[1] - rates[0]
        out = np.sign(gap) * max(abs(gap) - 0.05, 0) / 2
        mu = mu + 1.5 / t**decay * np.array([-out, out])


def test_no_gap_no_tilt_and_adaboost():
    """Where the gap never leaves max_gap, the run is AdaBoost's."""
    plain = FairProjClassifier(None, n_estimators=20).fit(X, Y)
    model = loop(n_estimators=20, max_gap=1.0).fit(X, Y, sensitive_features=GROUPS)
    assert (model.history_.by_group("tilt") == 0).all()
    np.testing.assert_allclose(
        model.history_.columns["vote"], plain.history_.columns["vote"], rtol=1e-12
    )


# The accounting, recomputed row by row


@pytest.mark.parametrize("constraint", sorted(STATISTICS))
@pytest.mark.parametrize("votes", ["discrete", "confidence"])
@pytest.mark.parametrize("learning_rate", [1.0, 0.4])
def test_accounting_by_plain_numpy(constraint, votes, learning_rate):
    X, y, groups = unfair(500, n_groups=3, seed=1)
    s = np.random.default_rng(2).uniform(0.5, 2, len(y))
    model = loop(
        constraints=constraint,
        n_estimators=12,
        votes=votes,
        learning_rate=learning_rate,
        tilt_step=3.0,
        max_gap=0.02,
    )
    with quiet():
        model.fit(X, y, sensitive_features=groups, sample_weight=s)
    history = model.history_
    tilts = history.by_group("tilt").reshape(len(history), 3, -1)
    reach = _reach(constraint, y)
    log_tilted, margin, b_before = 0.0, np.zeros(len(y)), np.ones(len(y))
    bound, costs, averaged = 0.0, 0.0, []
    for t, record in enumerate(history):
        b = np.exp(-(tilts[t][groups] * reach).sum(axis=1))
        loss = s * np.exp(-y * margin)
        kappa = np.log((loss * b).sum() / (loss * b_before).sum())
        assert record.observed.tilt_cost == pytest.approx(kappa, abs=1e-10)
        w, q = loss * b / (loss * b).sum(), loss / loss.sum()
        assert np.isclose(record.fairness_cost**2, oracles.kl(w, q) / 2, atol=1e-10)
        assert record.kl == pytest.approx((w * np.log(w / q)).sum(), abs=1e-10)
        assert record.tv == pytest.approx(np.abs(w - q).sum() / 2, abs=1e-10)
        if t >= history.n_kept:
            break
        h = model.estimators_[t].decision_function(X)
        error = (w * (1 - y * h)).sum() / 2
        assert record.error_w == pytest.approx(error, abs=1e-9)
        edge_q = (q * y * h).sum() / 2
        assert record.error_q == pytest.approx(0.5 - edge_q, abs=1e-9)
        averaged.append([edge_q, 0.5 - error, np.abs(w - q).sum() / 2])
        assert record.vote == pytest.approx(
            learning_rate * 0.5 * np.log((1 - error) / error), rel=1e-6
        )
        margin = margin + record.vote * h
        log_loss = np.log((s * np.exp(-y * margin)).sum() / s.sum())
        assert record.log_loss == pytest.approx(log_loss, abs=1e-9)
        costs += kappa
        bound += kappa - 2 * learning_rate * (0.5 - error) ** 2
        log_tilted = np.log((s * b * np.exp(-y * margin)).sum() / s.sum())
        assert record.observed.log_tilted_loss == pytest.approx(log_tilted, abs=1e-9)
        assert log_tilted <= bound + 1e-9
        predicted = np.where(margin > 0, 1, -1)
        rates = oracles.compared_rates(constraint, y, predicted, groups, s)
        np.testing.assert_allclose(record.observed.rates, rates.ravel(), rtol=1e-12)
        np.testing.assert_allclose(record.observed.gaps, np.ptp(rates, axis=0), atol=1e-12)
        error = (s * (predicted != y)).sum() / s.sum()
        assert record.observed.train_error == pytest.approx(error)
        assert record.observed.accuracy == pytest.approx(1 - error)
        b_before = b
    certificate = model.certificate_
    assert certificate.holds
    assert certificate.bound_tilted == pytest.approx(np.exp(bound))
    assert certificate.tilted_loss == pytest.approx(np.exp(log_tilted))
    assert certificate.bound_loss == pytest.approx(np.exp(bound) / b_before.min())
    assert certificate.tilt_cost == pytest.approx(costs)
    assert certificate.loss == pytest.approx(np.exp(log_loss))
    means = certificate.mean_edge_q, certificate.mean_edge_w, certificate.mean_tv
    np.testing.assert_allclose(means, np.mean(averaged, axis=0), atol=1e-9)


def _reach(constraint, y):
    """How a correct prediction moves each rate: up, down or not at all, of shape (n, n_rates)."""
    positive, negative = y > 0, -1.0 * (y < 0)
    columns = {
        "equal_opportunity": [positive],
        "false_positive_rate_parity": [negative],
        "equalized_odds": [positive, negative],
        "demographic_parity": [y],
        "accuracy_parity": [np.ones(len(y))],
    }[constraint]
    return np.column_stack(columns)


# The round that is kept


def test_the_most_accurate_round_within_max_gap():
    gaps = np.array([[0.0], [0.2], [0.04], [0.05], [0.06]])
    accuracy = np.array([0.6, 0.9, 0.7, 0.8, 0.85])
    assert choose_round(gaps, np.array([0.05]), accuracy, 0.6) == (4, True, True)


def test_a_constant_model_does_not_win_by_having_no_gap():
    gaps = np.array([[0.0], [0.3], [0.2], [0.25]])
    accuracy = np.array([0.6, 0.9, 0.7, 0.8])
    assert choose_round(gaps, np.array([0.05]), accuracy, 0.6) == (3, False, True)


def test_of_rounds_that_miss_the_later_half_counts():
    gaps = np.array([[0.1], [0.3], [0.2], [0.25]])
    accuracy = np.array([0.7, 0.9, 0.7, 0.8])
    assert choose_round(gaps, np.array([0.05]), accuracy, 0.6) == (3, False, True)


def test_a_useful_round_is_kept_before_a_useless_one():
    gaps = np.array([[0.3], [0.2], [0.0], [0.0]])
    accuracy = np.array([0.7, 0.8, 0.6, 0.6 + 1e-15])
    assert choose_round(gaps, np.array([0.05]), accuracy, 0.6) == (2, False, True)
    assert choose_round(gaps, np.array([0.05]), accuracy, 0.9) == (2, False, False)


@pytest.mark.parametrize(
    ("gaps", "max_gap", "constant"),
    [
        ([0.01, 0.02, 0.01], 0.05, 0.6),  # all within max_gap
        ([0.01, 0.02, 0.01], 0.05, 0.9),  # none useful
    ],
)
def test_of_equally_accurate_rounds_the_first_is_kept(gaps, max_gap, constant):
    """Accuracies that differ in the last bit are equal."""
    gaps, limit = np.array(gaps)[:, None], np.array([max_gap])
    accuracy = np.array([0.7, 0.8, np.nextafter(0.8, 1)])
    assert accuracy[2] > accuracy[1]
    assert choose_round(gaps, limit, accuracy, constant).kept == 2
    accuracy[2] += 1e-6
    assert choose_round(gaps, limit, accuracy, constant).kept == 3


def test_of_equally_near_rounds_the_first_is_kept():
    accuracy = np.full(4, 0.8)
    gaps = np.array([[0.3], [0.3], [0.2], [np.nextafter(0.2, 0)]])
    assert choose_round(gaps, np.array([0.05]), accuracy, 0.6) == (3, False, True)
    gaps[3] -= 1e-6
    assert choose_round(gaps, np.array([0.05]), accuracy, 0.6) == (4, False, True)


def test_a_warning_says_that_no_round_is_of_use():
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(200, 1)), np.tile([1, 1, -1, 1], 50), np.arange(200) % 2
    model = loop(n_estimators=2, learning_rate=1e-6, max_gap=0.5)
    with pytest.warns(UserWarning, match="no round was more accurate than a constant"):
        model.fit(X, y, sensitive_features=groups)
    assert not model.certificate_.met
    assert not model.certificate_.useful


def test_every_event_must_be_within_its_max_gap():
    gaps = np.array([[0.01, 0.2], [0.04, 0.09], [0.02, 0.11]])
    accuracy = np.array([0.9, 0.7, 0.8])
    assert choose_round(gaps, np.array([0.05, 0.1]), accuracy, 0.5) == (2, True, True)


RATES_OF_PREDICTED = sorted(set(STATISTICS) - {"accuracy_parity"})


@pytest.mark.parametrize("constraint", RATES_OF_PREDICTED)
@pytest.mark.parametrize("n_groups", [2, 4])
def test_the_gap_of_the_kept_model_is_within_max_gap(constraint, n_groups):
    X, y, groups = unfair(4000, n_groups, seed=3)
    max_gap = 0.05 * n_groups
    model = loop(constraints=constraint, max_depth=2, max_gap=max_gap, n_estimators=100)
    model.fit(X, y, sensitive_features=groups)
    plain = FairProjClassifier(None, max_depth=2, n_estimators=60).fit(X, y)
    gap = oracles.gap(constraint, y, model.predict(X), groups)
    assert gap <= max_gap < oracles.gap(constraint, y, plain.predict(X), groups)
    assert model.certificate_.gap == pytest.approx(gap)
    assert model.certificate_.accuracy == pytest.approx(model.score(X, y))
    assert model.certificate_.train_error == pytest.approx(1 - model.score(X, y))


def accurate_for_one_group(n=4000, seed=0):
    """Labels follow another feature in each group; few rows are of group 1."""
    rng = np.random.default_rng(seed)
    groups = (rng.random(n) < 0.3).astype(int)
    features = rng.normal(size=(n, 2))
    score = np.where(groups, 1.5 * features[:, 1], 2.5 * features[:, 0])
    y = np.where(score + 0.5 * rng.logistic(size=n) > 0, 1, -1)
    return np.column_stack([features, groups + 0.3 * rng.normal(size=n)]).round(1), y, groups


@pytest.mark.parametrize("name", ["accuracy_parity", "accuracy"])
def test_accuracies_are_brought_together(name):
    X, y, groups = accurate_for_one_group()
    X_new, y_new, groups_new = accurate_for_one_group(seed=1)
    plain = FairProjClassifier(None, n_estimators=60).fit(X, y)
    assert oracles.gap("accuracy_parity", y, plain.predict(X), groups) > 0.3
    model = loop(constraints=name, n_estimators=100).fit(X, y, sensitive_features=groups)
    gap = oracles.gap("accuracy_parity", y, model.predict(X), groups)
    assert gap <= 0.05
    assert model.certificate_.gap == pytest.approx(gap)
    assert model.certificate_.met
    assert oracles.gap("accuracy_parity", y_new, model.predict(X_new), groups_new) < 0.1
    assert model.score(X_new, y_new) > 0.7


def test_the_paper_balances_groups_for_accuracy_parity():
    """Under its training weights the groups count the same, so that of few rows counts more."""
    X, y, groups = accurate_for_one_group()
    plain = FairProjClassifier(None, n_estimators=60).fit(X, y)
    model = FairProjClassifier("accuracy_parity", 0.02, n_estimators=60)
    model.fit(X, y, sensitive_features=groups)
    assert model.certificate_.projected_rounds == len(model.history_)
    assert model.certificate_.holds
    gap, before = (
        oracles.gap("accuracy_parity", y, one.predict(X), groups) for one in (model, plain)
    )
    assert gap < before - 0.02


def test_the_model_has_the_kept_rounds_only():
    model = loop().fit(X, Y, sensitive_features=GROUPS)
    kept = model.history_.n_kept
    assert kept < len(model.history_) == 60
    assert len(model.estimators_) == len(model.estimator_weights_) == kept
    assert model.booster_.num_trees() == kept
    staged = list(model.staged_predict(X))
    assert len(staged) == kept
    np.testing.assert_array_equal(staged[-1], model.predict(X))
    again = loop(n_estimators=kept, tilt_step=2.0).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_warning_says_by_how_much_max_gap_is_missed():
    X, y, groups = unfair(500)
    with pytest.warns(
        UserWarning, match=r"within max_gap=0; the model that comes nearest has a gap of 0\.\d+"
    ):
        loop(max_gap=0.0, n_estimators=4, tilt_step=0.01).fit(X, y, sensitive_features=groups)


# Where it is watched


def test_watching_rows_held_out():
    model = loop(validation_fraction=0.3, random_state=0).fit(X, Y, sensitive_features=GROUPS)
    assert model.certificate_.watched_on == "held-out rows"
    assert model.certificate_.holds
    again = clone(model).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    other = clone(model).set_params(random_state=1).fit(X, Y, sensitive_features=GROUPS)
    assert (other.decision_function(X) != model.decision_function(X)).any()


@pytest.mark.parametrize(
    "estimator",
    [None, DecisionTreeClassifier(max_depth=1), RandomForestClassifier(3, max_depth=2)],
)
def test_explicit_validation_rows_are_what_is_watched(estimator):
    X2, y2, groups2 = unfair(700, seed=9)
    s2 = np.random.default_rng(0).uniform(0.5, 2, len(y2))
    model = loop(n_estimators=20, estimator=estimator)
    with quiet():
        model.fit(
            X,
            Y,
            sensitive_features=GROUPS,
            X_val=X2,
            y_val=y2,
            sensitive_features_val=groups2,
            sample_weight_val=s2,
        )
    gap = oracles.gap("equal_opportunity", y2, model.predict(X2), groups2, s2)
    assert model.certificate_.gap == pytest.approx(gap)
    assert model.certificate_.accuracy == pytest.approx(model.score(X2, y2, sample_weight=s2))
    assert model.certificate_.train_error == pytest.approx(1 - model.score(X, Y))


def test_rows_held_out_do_not_teach():
    """Labels of watched rows choose the tilt and the round, never a split: with no gap, nothing."""
    X2, y2, groups2 = unfair(700, seed=9)
    model = loop(n_estimators=10, max_gap=1.0)
    one = clone(model).fit(
        X, Y, sensitive_features=GROUPS, X_val=X2, y_val=y2, sensitive_features_val=groups2
    )
    plain = FairProjClassifier(None, n_estimators=10).fit(X, Y)
    kept = one.history_.n_kept
    expected = list(plain.staged_decision_function(X))[kept - 1]
    np.testing.assert_allclose(one.decision_function(X), expected, rtol=1e-9)


def test_sparse_and_frames_with_held_out_rows():
    from scipy import sparse

    dense = loop(n_estimators=10, validation_fraction=0.2, random_state=0)
    expected = dense.fit(X, Y, sensitive_features=GROUPS).decision_function(X)
    same = clone(dense).fit(sparse.csr_matrix(X), Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(same.decision_function(X), expected)
    frame = (
        pd.DataFrame(X)
        .add_prefix("x")
        .assign(kind=pd.Categorical(np.where(GROUPS, "b", "a")), sex=GROUPS)
    )
    model = loop(n_estimators=10, sensitive_columns="sex", validation_fraction=0.2, random_state=0)
    model.fit(frame, Y)
    assert model.score(frame, Y) > 0.7
    model.set_params(validation_fraction=None).fit(frame, Y, X_val=frame, y_val=Y)
    assert model.certificate_.watched_on == "held-out rows"


# The face


def test_two_columns_crossed_many_groups_and_any_estimator():
    rng = np.random.default_rng(4)
    crossed = pd.DataFrame({"sex": GROUPS, "race": rng.choice(["p", "q", "r"], len(Y))})
    model = loop(max_gap=0.15, max_depth=2).fit(X, Y, sensitive_features=crossed)
    assert len(model.history_.watched) == 6
    assert model.certificate_.gap <= 0.15
    other = loop(estimator=LogisticRegression(), n_estimators=10, max_gap=0.1)
    with quiet():
        other.fit(X, Y, sensitive_features=GROUPS)
    assert other.certificate_.holds


def test_the_positive_label_may_be_the_smaller_one():
    labels = np.where(Y > 0, "accept", "refuse")  # in sort order, "refuse" is the larger
    model = loop(pos_label="accept").fit(X, labels, sensitive_features=GROUPS)
    predicted = np.where(model.predict(X) == "accept", 1, -1)
    gap = oracles.gap("equal_opportunity", Y, predicted, GROUPS)
    assert model.certificate_.gap == pytest.approx(gap)
    assert gap <= 0.05


def test_own_max_gap_for_each_event():
    model = loop(constraints="equalized_odds", max_gap=[0.2, 0.05], max_depth=2)
    model.fit(X, Y, sensitive_features=GROUPS)
    kept = model.history_.by_event()[model.history_.n_kept - 1]
    assert (kept <= [0.2, 0.05]).all()


def test_history_as_table_and_json():
    history = loop(n_estimators=10).fit(X, Y, sensitive_features=GROUPS).history_
    frame = history.to_frame()
    for column in ("gap", "accuracy", "tilt_cost", "rates[0]", "tilt[1]", "bound_tilted"):
        assert column in frame
    assert from_json(to_json(history), History) == history


def test_interrupted_runs_keep_their_best_round(monkeypatch):
    count = []
    original = losses.vote

    def stop(error):
        count.append(error)
        if len(count) == 30:
            raise KeyboardInterrupt
        return original(error)

    monkeypatch.setattr(losses, "vote", stop)
    model = loop()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, sensitive_features=GROUPS)
    assert len(model.history_) == 29
    assert model.certificate_.gap <= 0.05
    assert len(model.predict(X)) == len(X)


def validation_rows(X_val=X, y_val=Y, sensitive_features_val=GROUPS):
    rows = {"X_val": X_val, "y_val": y_val, "sensitive_features_val": sensitive_features_val}
    return {name: part for name, part in rows.items() if part is not None}


BAD = [
    ({"validation_fraction": 0.2}, validation_rows(), "both say which rows to watch"),
    ({}, validation_rows(y_val=Y[1:]), "in the validation rows: .*rows"),
    (
        {},
        validation_rows(sensitive_features_val=np.zeros(len(Y))),
        "none of group '1' for the true positive rate",
    ),
    ({}, validation_rows(X_val=None), "go with X_val, which is missing"),
    ({}, validation_rows(y_val=None), "X_val is given without y_val"),
    (
        {},
        validation_rows(sensitive_features_val=None),
        "X_val is given without sensitive_features_val",
    ),
    ({}, validation_rows(sensitive_features_val=GROUPS + 5), "groups that the training rows lack"),
    ({}, validation_rows(y_val=Y + 1), "the validation rows have the labels"),
    ({"constraints": np.ones(len(Y))}, {}, "needs a constraint by name or object"),
    ({"constraints": FunctionConstraint(lambda g, y: 1.0)}, {}, "names none"),
    ({"tilt_step": 0}, {}, "tilt_step"),
    ({"max_gap": [0.1, 0.2]}, {}, "max_gap must be one number"),
    ({"loss": "hinge"}, {}, "loss='hinge' is unknown"),
]


@pytest.mark.parametrize(("settings", "arguments", "words"), BAD)
def test_bad_input(settings, arguments, words):
    model = FairBoostClassifier(**({"n_estimators": 3} | settings))
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y, sensitive_features=GROUPS, **arguments)


def test_each_estimator_has_only_its_own_parameters():
    paper, closed_loop = (
        set(kind().get_params()) for kind in (FairProjClassifier, FairBoostClassifier)
    )
    assert paper - closed_loop == {"epsilon", "warm_start"}
    own = {"max_gap", "loss", "tilt_step", "tilt_decay", "validation_fraction"}
    assert closed_loop - paper == own


def test_constraint_objects_and_none():
    by_name = loop(n_estimators=10).fit(X, Y, sensitive_features=GROUPS)
    by_object = loop(n_estimators=10, constraints=RateParity("true_positive_rate"))
    by_object.fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(by_name.predict(X), by_object.predict(X))
    none = loop(n_estimators=10, constraints=None).fit(X, Y, sensitive_features=GROUPS)
    plain = FairProjClassifier(None, n_estimators=10).fit(X, Y)
    np.testing.assert_allclose(none.decision_function(X), plain.decision_function(X), rtol=1e-9)


def test_small_sample_of_the_conftest_runs():
    X, y, groups = make_sample(200, n_groups=3)
    with quiet():
        model = loop(n_estimators=10).fit(X, y, sensitive_features=groups)
    assert model.certificate_.holds


@pytest.mark.parametrize("constraint", ["equal_opportunity", "equalized_odds"])
def test_the_plot_shows_gap_and_tilt(constraint):
    import matplotlib as mpl

    mpl.use("Agg")
    with quiet():
        model = loop(n_estimators=10, constraints=constraint).fit(X, Y, sensitive_features=GROUPS)
    axes = plot_dynamics(model)
    titles = [ax.get_title() for ax in axes]
    assert titles == [
        "Training loss",
        "Edge of the learner",
        "Gap of the predictions",
        "Tilt of the groups",
    ]
    lines = {line.get_label(): line for line in axes[2].get_lines()}
    first = model.history_.events[0]
    np.testing.assert_allclose(lines[first].get_ydata(), model.history_.by_event()[:, 0])


def test_the_certificate_reads_well():
    model = loop(n_estimators=10, max_gap=0.2).fit(X, Y, sensitive_features=GROUPS)
    text = str(model.certificate_)
    assert f"{model.history_.n_kept} kept of 10 run" in text
    assert "within max_gap 0.2" in text
    assert "FairnessReport" in text
    assert "<table" in model.certificate_._repr_html_()
    assert model.certificate_.to_dict()["gap"] == model.certificate_.gap


def test_race_and_sex_on_adult():
    """Ten groups, some small: it runs, names the widest pair, and says who is too few."""
    data = load_adult()
    groups = pd.DataFrame({"sex": data.sensitive_features, "race": data.data["race"]})
    new = np.arange(len(groups)) % 4 == 0
    model = loop(max_gap=0.2, n_estimators=20, max_depth=2)
    with quiet(), pytest.warns(UserWarning, match="Female, Other, true positive rate"):
        model.fit(data.data[~new], data.target[~new], sensitive_features=groups[~new])
    assert len(model.group_values_) == len(model.history_.watched) == 10
    report = FairnessReport.from_estimator(
        model, data.data[new], data.target[new], sensitive_features=groups[new]
    )
    gap = report.gaps.set_index("gap").loc["equal_opportunity"]
    rates = report.rates[report.rates["rate"] == "true_positive_rate"].set_index("group")
    assert gap["estimate"] == pytest.approx(
        rates.loc[gap["highest"], "estimate"] - rates.loc[gap["lowest"], "estimate"]
    )
    assert gap["n_smallest"] == rates["n"].min() < 30
    assert any(name.startswith("Female, Other (") for name in report.too_small)


def test_one_group_is_plain_adaboost():
    with pytest.warns(UserWarning, match="plain boosting"):
        model = loop(n_estimators=15).fit(X, Y)
    plain = FairProjClassifier(None, n_estimators=15).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), rtol=1e-9)
    assert "nothing was compared" in str(model.certificate_)
    none = loop(n_estimators=5, constraints=None).fit(X, Y, sensitive_features=GROUPS)
    assert "nothing was compared" in str(none.certificate_)


def test_every_cell_of_two_rows_is_watched():
    groups = GROUPS.copy()
    few = np.concatenate([np.flatnonzero(label == Y)[:2] for label in (-1, 1)])
    groups[few] = 2
    model = loop(
        n_estimators=5, validation_fraction=0.1, random_state=0, constraints="equalized_odds"
    )
    with quiet(), pytest.warns(UserWarning, match="fewer than 30 watched rows"):
        model.fit(X, Y, sensitive_features=groups)
    assert not np.isnan(model.history_.by_group("rates")).any()


def test_the_certificate_names_the_gap_that_is_furthest_out():
    model = loop(constraints="equalized_odds", max_gap=[0.5, 0.02], n_estimators=30)
    with quiet():
        model.fit(X, Y, sensitive_features=GROUPS)
    assert model.certificate_.event == "false positive rate"
    assert model.certificate_.max_gap == 0.02
