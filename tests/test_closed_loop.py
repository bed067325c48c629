"""enforce="classifier": tilt, accounting, the round kept, and where the gap is watched."""

import json
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

from conftest import make_sample
from fairproj import FairProjClassifier, History, fairness_report, plot_dynamics
from fairproj.boosting.choice import choose_round
from fairproj.boosting.policies import gaps, violations
from fairproj.constraints import FunctionConstraint, MassParity
from fairproj.datasets import load_adult
from fairproj.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    false_positive_rate_difference,
)

GAPS = {
    "equal_opportunity": equal_opportunity_difference,
    "demographic_parity": demographic_parity_difference,
    "false_positive_rate_parity": false_positive_rate_difference,
    "equalized_odds": equalized_odds_difference,
}


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
    """Where a gap above epsilon is no surprise."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no useful round")
        warnings.filterwarnings("ignore", message="some groups have fewer")
        yield


def loop(**settings):
    settings = {"n_estimators": 60, "epsilon": 0.05} | settings
    return FairProjClassifier(enforce="classifier", **settings)


# The tilt

rates = arrays(
    np.float64, st.tuples(st.integers(2, 5), st.integers(1, 2)), elements=st.floats(0, 1)
)


@given(rates, st.floats(0, 0.5))
def test_no_violation_no_change(rates, epsilon):
    epsilon = np.full(rates.shape[1], epsilon)
    found = violations(rates, epsilon)
    within = np.ptp(rates, axis=0) <= epsilon
    assert (np.abs(found[:, within]) <= 1e-15).all()
    assert (np.abs(found[:, np.ptp(rates, axis=0) > epsilon + 1e-9]).max(axis=0) > 0).all()


@given(rates, st.floats(0, 0.5))
def test_the_extremes_are_pushed_towards_each_other_as_far_as_they_are_out(rates, epsilon):
    found = violations(rates, np.full(rates.shape[1], epsilon))
    for e in range(rates.shape[1]):
        excess = max(0.0, np.ptp(rates[:, e]) - epsilon)
        assert found[:, e].max() == pytest.approx(excess / 2, abs=1e-12)
        assert found[:, e].min() == pytest.approx(-excess / 2, abs=1e-12)


@given(rates)
def test_gaps_are_ranges(rates):
    np.testing.assert_allclose(gaps(rates), np.ptp(rates, axis=0))


def test_unknown_rates_push_nobody():
    rates = np.array([[0.2, np.nan], [0.6, np.nan], [np.nan, np.nan]])
    np.testing.assert_allclose(gaps(rates), [0.4, 0.0])
    found = violations(rates, np.array([0.1, 0.1]))
    np.testing.assert_allclose(found, [[-0.15, 0], [0.15, 0], [0, 0]])


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
    """Where the gap never leaves epsilon, the run is AdaBoost's."""
    plain = FairProjClassifier(None, n_estimators=20).fit(X, Y)
    model = loop(n_estimators=20, epsilon=1.0).fit(X, Y, sensitive_features=GROUPS)
    assert (model.history_.by_group("tilt") == 0).all()
    np.testing.assert_allclose(
        model.history_.columns["vote"], plain.history_.columns["vote"], rtol=1e-12
    )


# The accounting, recomputed row by row


@pytest.mark.parametrize("constraint", GAPS)
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
        epsilon=0.02,
    )
    with quiet():
        model.fit(X, y, sensitive_features=groups, sample_weight=s)
    history = model.history_
    tilts = history.by_group("tilt").reshape(len(history), 3, -1)
    events = _events(constraint, y)
    log_tilted, margin, b_before = 0.0, np.zeros(len(y)), np.ones(len(y))
    bound, costs = 0.0, 0.0
    for t, record in enumerate(history):
        b = np.exp(-y * (tilts[t][groups] * events.T).sum(axis=1))
        loss = s * np.exp(-y * margin)
        kappa = np.log((loss * b).sum() / (loss * b_before).sum())
        assert record.seen.tilt_cost == pytest.approx(kappa, abs=1e-10)
        w, q = loss * b / (loss * b).sum(), loss / loss.sum()
        assert record.kl == pytest.approx((w * np.log(w / q)).sum(), abs=1e-10)
        assert record.tv == pytest.approx(np.abs(w - q).sum() / 2, abs=1e-10)
        if t >= history.n_kept:
            break
        h = model.estimators_[t].decision_function(X)
        error = (w * (1 - y * h)).sum() / 2
        assert record.error_w == pytest.approx(error, abs=1e-9)
        assert record.vote == pytest.approx(
            learning_rate * 0.5 * np.log((1 - error) / error), rel=1e-6
        )
        margin = margin + record.vote * h
        costs += kappa
        bound += kappa - 2 * learning_rate * (0.5 - error) ** 2
        log_tilted = np.log((s * b * np.exp(-y * margin)).sum() / s.sum())
        assert record.seen.log_tilted_loss == pytest.approx(log_tilted, abs=1e-9)
        assert log_tilted <= bound + 1e-9
        predicted = np.where(margin > 0, 1, -1)
        _same_rates(record.seen, predicted, events, groups, s)
        assert record.seen.train_error == pytest.approx((s * (predicted != y)).sum() / s.sum())
        b_before = b
    certificate = model.certificate_
    assert certificate.holds
    assert certificate.bound_tilted == pytest.approx(np.exp(bound))
    assert certificate.tilted_loss == pytest.approx(np.exp(log_tilted))
    assert certificate.bound_loss == pytest.approx(np.exp(bound) / b_before.min())
    assert certificate.tilt_cost == pytest.approx(costs)


def _events(constraint, y):
    positive, negative, every = y > 0, y < 0, np.ones(len(y), dtype=bool)
    return np.array(
        {
            "equal_opportunity": [positive],
            "false_positive_rate_parity": [negative],
            "equalized_odds": [positive, negative],
            "demographic_parity": [every],
        }[constraint]
    )


def _same_rates(seen, predicted, events, groups, s):
    expected = np.array(
        [
            [
                s[inside & (groups == group) & (predicted > 0)].sum()
                / s[inside & (groups == group)].sum()
                for inside in events
            ]
            for group in range(3)
        ]
    )
    np.testing.assert_allclose(np.reshape(seen.rates, expected.shape), expected, rtol=1e-12)
    np.testing.assert_allclose(seen.gaps, np.ptp(expected, axis=0), rtol=1e-9, atol=1e-12)


# The round that is kept


def test_the_most_accurate_round_within_epsilon():
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


def test_a_warning_says_that_no_round_is_of_use():
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(200, 1)), np.tile([1, 1, -1, 1], 50), np.arange(200) % 2
    model = loop(n_estimators=2, learning_rate=1e-6, epsilon=0.5)
    with pytest.warns(UserWarning, match="no round was more accurate than a constant"):
        model.fit(X, y, sensitive_features=groups)
    assert not model.certificate_.met
    assert not model.certificate_.useful


def test_every_event_must_be_within_its_epsilon():
    gaps = np.array([[0.01, 0.2], [0.04, 0.09], [0.02, 0.11]])
    accuracy = np.array([0.9, 0.7, 0.8])
    assert choose_round(gaps, np.array([0.05, 0.1]), accuracy, 0.5) == (2, True, True)


@pytest.mark.parametrize("constraint", GAPS)
@pytest.mark.parametrize("n_groups", [2, 4])
def test_the_gap_of_the_kept_model_is_within_epsilon(constraint, n_groups):
    X, y, groups = unfair(4000, n_groups, seed=3)
    epsilon = 0.05 * n_groups
    model = loop(constraints=constraint, max_depth=2, epsilon=epsilon, n_estimators=100)
    model.fit(X, y, sensitive_features=groups)
    plain = FairProjClassifier(None, max_depth=2, n_estimators=60).fit(X, y)
    gap = GAPS[constraint](y, model.predict(X), sensitive_features=groups)
    assert gap <= epsilon < GAPS[constraint](y, plain.predict(X), sensitive_features=groups)
    assert model.certificate_.gap == pytest.approx(gap)
    assert model.certificate_.accuracy == pytest.approx(model.score(X, y))
    assert model.certificate_.train_error == pytest.approx(1 - model.score(X, y))


def test_the_model_has_the_kept_rounds_only():
    model = loop().fit(X, Y, sensitive_features=GROUPS)
    kept = model.history_.n_kept
    assert kept < len(model.history_) == 60
    assert len(model.estimators_) == len(model.estimator_weights_) == kept
    assert model.booster_.num_trees() == kept
    staged = list(model.staged_predict(X))
    assert len(staged) == kept
    np.testing.assert_array_equal(staged[-1], model.predict(X))
    again = FairProjClassifier(
        enforce="classifier", epsilon=0.05, n_estimators=kept, tilt_step=2.0
    ).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_warning_says_by_how_much_epsilon_is_missed():
    X, y, groups = unfair(500)
    with pytest.warns(UserWarning, match=r"within epsilon=0; the nearest late one has 0\.\d+"):
        loop(epsilon=0.0, n_estimators=4, tilt_step=0.01).fit(X, y, sensitive_features=groups)


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
def test_an_explicit_eval_set_is_what_is_watched(estimator):
    X2, y2, groups2 = unfair(700, seed=9)
    s2 = np.random.default_rng(0).uniform(0.5, 2, len(y2))
    model = loop(n_estimators=20, estimator=estimator)
    with quiet():
        model.fit(X, Y, sensitive_features=GROUPS, eval_set=(X2, y2, groups2, s2))
    predicted = model.predict(X2)
    gap = equal_opportunity_difference(y2, predicted, sensitive_features=groups2, sample_weight=s2)
    assert model.certificate_.gap == pytest.approx(gap)
    assert model.certificate_.accuracy == pytest.approx(model.score(X2, y2, sample_weight=s2))
    assert model.certificate_.train_error == pytest.approx(1 - model.score(X, Y))


def test_rows_held_out_do_not_teach():
    """Labels of watched rows choose the tilt and the round, never a split: with no gap, nothing."""
    X2, y2, groups2 = unfair(700, seed=9)
    model = loop(n_estimators=10, epsilon=1.0)
    one = clone(model).fit(X, Y, sensitive_features=GROUPS, eval_set=(X2, y2, groups2))
    plain = FairProjClassifier(None, n_estimators=10).fit(X, Y)
    kept = one.history_.n_kept
    expected = list(plain.staged_decision_function(X))[kept - 1]
    np.testing.assert_allclose(one.decision_function(X), expected, rtol=1e-9)


def test_sparse_and_frames_with_held_out_rows():
    from scipy import sparse

    dense = loop(n_estimators=10, validation_fraction=0.2, random_state=0)
    expected = dense.fit(X, Y, sensitive_features=GROUPS).decision_function(X)
    found = clone(dense).fit(sparse.csr_matrix(X), Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(found.decision_function(X), expected)
    frame = (
        pd.DataFrame(X)
        .add_prefix("x")
        .assign(kind=pd.Categorical(np.where(GROUPS, "b", "a")), sex=GROUPS)
    )
    model = loop(n_estimators=10, sensitive_columns="sex", validation_fraction=0.2, random_state=0)
    model.fit(frame, Y)
    assert model.score(frame, Y) > 0.7
    model.set_params(validation_fraction=None).fit(frame, Y, eval_set=(frame, Y))
    assert model.certificate_.watched_on == "held-out rows"


# The face


def test_two_columns_crossed_many_groups_and_any_estimator():
    rng = np.random.default_rng(4)
    crossed = pd.DataFrame({"sex": GROUPS, "race": rng.choice(["p", "q", "r"], len(Y))})
    model = loop(epsilon=0.15, max_depth=2).fit(X, Y, sensitive_features=crossed)
    assert len(model.history_.watched) == 6
    assert model.certificate_.gap <= 0.15
    other = loop(estimator=LogisticRegression(), n_estimators=10, epsilon=0.1)
    with quiet():
        other.fit(X, Y, sensitive_features=GROUPS)
    assert other.certificate_.holds


def test_the_positive_label_may_be_the_smaller_one():
    labels = np.where(Y > 0, "accept", "refuse")  # in sort order, "refuse" is the larger
    model = loop(pos_label="accept").fit(X, labels, sensitive_features=GROUPS)
    gap = equal_opportunity_difference(
        labels, model.predict(X), sensitive_features=GROUPS, pos_label="accept"
    )
    assert model.certificate_.gap == pytest.approx(gap)
    assert gap <= 0.05


def test_own_epsilon_for_each_event():
    model = loop(constraints="equalized_odds", epsilon=[0.2, 0.05], max_depth=2)
    model.fit(X, Y, sensitive_features=GROUPS)
    found = model.history_.by_event()[model.history_.n_kept - 1]
    assert (found <= [0.2, 0.05]).all()


def test_history_as_table_and_json():
    history = loop(n_estimators=10).fit(X, Y, sensitive_features=GROUPS).history_
    frame = history.to_frame()
    for column in ("gap", "accuracy", "tilt_cost", "rates[0]", "tilt[1]", "bound_tilted"):
        assert column in frame
    again = History.from_json(history.to_json())
    assert again == history
    json.loads(history.to_json())


def test_interrupted_runs_keep_their_best_round(monkeypatch):
    from fairproj import _boost

    count = []
    original = _boost.vote

    def stop(error):
        count.append(error)
        if len(count) == 30:
            raise KeyboardInterrupt
        return original(error)

    monkeypatch.setattr(_boost, "vote", stop)
    model = loop()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, sensitive_features=GROUPS)
    assert len(model.history_) == 29
    assert model.certificate_.gap <= 0.05
    assert len(model.predict(X)) == len(X)


BAD = [
    ({"warm_start": True}, {}, "warm_start is for enforce='distribution'"),
    (
        {"enforce": "distribution", "validation_fraction": 0.2},
        {},
        "validation_fraction is for enforce",
    ),
    (
        {"enforce": "distribution"},
        {"eval_set": (X, Y, GROUPS)},
        "eval_set is for enforce='classifier'",
    ),
    ({"validation_fraction": 0.2}, {"eval_set": (X, Y, GROUPS)}, "both say which rows to watch"),
    ({}, {"eval_set": (X, Y[1:], GROUPS)}, "eval_set: .*rows"),
    ({}, {"eval_set": (X, Y, np.zeros(len(Y)))}, "none of group '1' for the positive rate"),
    ({}, {"eval_set": X}, "eval_set must be"),
    ({}, {"eval_set": (X, Y)}, "eval_set: no sensitive features"),
    ({}, {"eval_set": (X, Y, GROUPS + 5)}, "groups that the training rows lack"),
    ({}, {"eval_set": (X, Y + 1, GROUPS)}, "eval_set has the labels"),
    ({"constraints": np.ones(len(Y))}, {}, "needs a constraint by name or object"),
    ({"constraints": FunctionConstraint(lambda g, y: 1.0)}, {}, "names none"),
    ({"tilt_step": 0}, {}, "tilt_step"),
    ({"epsilon": [0.1, 0.2]}, {}, "epsilon must be one number"),
]


@pytest.mark.parametrize(("settings", "arguments", "words"), BAD)
def test_bad_input(settings, arguments, words):
    model = FairProjClassifier(**({"enforce": "classifier", "n_estimators": 3} | settings))
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y, sensitive_features=GROUPS, **arguments)


def test_constraint_objects_and_none():
    by_name = loop(n_estimators=10).fit(X, Y, sensitive_features=GROUPS)
    by_object = loop(n_estimators=10, constraints=MassParity("positive"))
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
        "Exponential loss",
        "Edge of the learner",
        "Gap of the predictions",
        "Tilt of the groups",
    ]
    lines = {line.get_label(): line for line in axes[2].get_lines()}
    first = model.history_.events[0]
    np.testing.assert_allclose(lines[first].get_ydata(), model.history_.by_event()[:, 0])


def test_the_certificate_reads_well():
    model = loop(n_estimators=10, epsilon=0.2).fit(X, Y, sensitive_features=GROUPS)
    text = str(model.certificate_)
    assert f"{model.history_.n_kept} kept of 10 run" in text
    assert "within epsilon 0.2" in text
    assert "fairness_report" in text
    assert "<table" in model.certificate_._repr_html_()
    assert model.certificate_.to_dict()["gap"] == model.certificate_.gap


def test_no_going_on_from_a_closed_loop():
    model = loop(n_estimators=10, epsilon=0.3).fit(X, Y, sensitive_features=GROUPS)
    model.set_params(warm_start=True, enforce="distribution", n_estimators=20)
    with pytest.raises(ValueError, match="enforce was classifier there and is distribution here"):
        model.fit(X, Y, sensitive_features=GROUPS)


def test_race_and_sex_on_adult():
    """Ten groups, some small: it runs, names the widest pair, and says who is too few."""
    data = load_adult()
    groups = pd.DataFrame({"sex": data.sensitive_features, "race": data.data["race"]})
    new = np.arange(len(groups)) % 4 == 0
    model = loop(epsilon=0.2, n_estimators=20, max_depth=2)
    with quiet(), pytest.warns(UserWarning, match="Female, Other, positive rate"):
        model.fit(data.data[~new], data.target[~new], sensitive_features=groups[~new])
    assert len(model.group_values_) == len(model.history_.watched) == 10
    report = fairness_report(model, data.data[new], data.target[new], groups[new])
    gap = report.gaps.set_index("gap").loc["equal_opportunity"]
    rates = report.rates[report.rates["rate"] == "true_positive_rate"].set_index("group")
    assert gap["estimate"] == pytest.approx(
        rates.loc[gap["highest"], "estimate"] - rates.loc[gap["lowest"], "estimate"]
    )
    assert gap["n_smallest"] == rates["n"].min() < 30
    assert any(name.startswith("Female, Other (") for name in report.too_small)


def test_one_group_is_plain_adaboost():
    with pytest.warns(UserWarning, match="plain AdaBoost"):
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
    model = loop(constraints="equalized_odds", epsilon=[0.5, 0.02], n_estimators=30)
    with quiet():
        model.fit(X, Y, sensitive_features=GROUPS)
    assert model.certificate_.event == "positive rate | -1"
    assert model.certificate_.epsilon == 0.02
