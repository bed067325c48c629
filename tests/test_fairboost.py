"""FairBoostClassifier: limits are kept where they bind, and what may not matter does not."""

import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.tree import DecisionTreeClassifier

import oracles
from fairproj import (
    FairBoostClassifier,
    FairnessReport,
    FairProjClassifier,
    History,
    StopReason,
)
from fairproj.boosting import signed_costs
from fairproj.constraints import STATISTICS, FunctionConstraint, RateParity
from fairproj.datasets import load_adult
from fairproj.io.records import from_json, to_json
from simulated import one_feature, rare_positives, unfair

X, Y, GROUPS = unfair(1000)
X2, Y2, GROUPS2 = unfair(600, seed=9)
EITHER_LABEL = pytest.mark.parametrize("pos", [-1, 1])


@contextmanager
def quiet():
    """Where a limit that is missed, or a small group, is no surprise."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no useful round")
        warnings.filterwarnings("ignore", message="the model says the same")
        warnings.filterwarnings("ignore", message="some groups have fewer")
        yield


def boost(constraints="equal_opportunity", max_gap=0.05, **settings):
    defaults = {"n_estimators": 30, "max_leaf_nodes": 8, "random_state": 0}
    return FairBoostClassifier(constraints, max_gap, **(defaults | settings))


def fit_watched(model):
    """Fit on the first rows and watch the second ones."""
    return model.fit(
        X, Y, sensitive_features=GROUPS, X_val=X2, y_val=Y2, sensitive_features_val=GROUPS2
    )


def gap_of(name, model, X, y, groups, pos=1, weight=None):
    """The gap with ``pos`` as positive label."""
    return oracles.gap(name, y * pos, model.predict(X) * pos, groups, weight)


def plain_gap(name, X, y, groups, pos=1, **settings):
    """The gap of the same model without a constraint."""
    model = boost(None, n_estimators=30, **settings).fit(X, y)
    return gap_of(name, model, X, y, groups, pos)


# Limits that bind


@EITHER_LABEL
@pytest.mark.parametrize("name", sorted(set(STATISTICS) - {"accuracy_parity", "predictive_parity"}))
@pytest.mark.parametrize("n_groups", [2, 4])
def test_the_gap_is_within_max_gap_on_the_watched_rows(name, n_groups, pos):
    X, y, groups = unfair(1000, n_groups, seed=3)
    max_gap = 0.2 if name == "selection_ratio" else 0.02 + 0.03 * n_groups
    model = boost(name, max_gap, validation_fraction=None, pos_label=pos, n_estimators=40)
    model.fit(X, y, sensitive_features=groups)
    certificate = model.certificate_
    gap = gap_of(name, model, X, y, groups, pos)
    assert gap <= max_gap < plain_gap(name, X, y, groups, pos)
    assert certificate.met
    assert certificate.holds
    assert certificate.shortfall == ""
    assert certificate.gap == pytest.approx(gap)
    assert certificate.accuracy == pytest.approx(model.score(X, y))
    assert certificate.watched_on == "training rows"


def test_accuracies_are_brought_together():
    """Labels follow another feature in each group; few rows are of group 1."""
    rng = np.random.default_rng(0)
    groups = (rng.random(1500) < 0.3).astype(int)
    features = rng.normal(size=(1500, 2))
    score = np.where(groups, 1.5 * features[:, 1], 2.5 * features[:, 0])
    y = np.where(score + 0.5 * rng.logistic(size=1500) > 0, 1, -1)
    settings = {"max_leaf_nodes": 3, "validation_fraction": None, "n_estimators": 60}
    plain = boost(None, **settings).fit(features, y)
    assert gap_of("accuracy_parity", plain, features, y, groups) > 0.2
    for name in ("accuracy_parity", "accuracy"):
        model = boost(name, 0.1, **settings).fit(features, y, sensitive_features=groups)
        assert gap_of("accuracy_parity", model, features, y, groups) <= 0.1
        assert model.certificate_.met


@EITHER_LABEL
@pytest.mark.parametrize("threshold", [0.3, 0.7])
def test_a_threshold(threshold, pos):
    model = boost("demographic_parity", threshold=threshold, pos_label=pos)
    fit_watched(model)
    assert model.certificate_.met
    assert model.threshold_ == model.certificate_.threshold == pytest.approx(threshold)
    probability = model.predict_proba(X2)[:, int(pos > 0)]
    np.testing.assert_array_equal(model.predict(X2) == pos, probability > threshold)
    gap = gap_of("demographic_parity", model, X2, Y2, GROUPS2, pos)
    assert gap == pytest.approx(model.certificate_.gap)
    assert gap <= 0.05 < plain_gap("demographic_parity", X2, Y2, GROUPS2, pos)


@EITHER_LABEL
def test_a_selection_rate(pos):
    model = boost("demographic_parity", selection_rate=0.2, pos_label=pos, n_estimators=60)
    fit_watched(model)
    assert model.certificate_.met
    assert model.certificate_.bias == 0
    assert np.mean(model.predict(X2) == pos) == pytest.approx(0.2, abs=0.01)
    assert gap_of("demographic_parity", model, X2, Y2, GROUPS2, pos) <= 0.05
    probability = model.predict_proba(X2)[:, int(pos > 0)]
    np.testing.assert_array_equal(model.predict(X2) == pos, probability > model.threshold_)


@EITHER_LABEL
@pytest.mark.parametrize("name", ["max_false_positive_rate", "max_false_negative_rate"])
def test_a_limit_on_an_error_rate(name, pos):
    model = boost("equal_opportunity", pos_label=pos, **{name: 0.08})
    fit_watched(model)
    of_label = (pos == Y2) == (name == "max_false_negative_rate")
    rate = np.mean(model.predict(X2)[of_label] != Y2[of_label])
    # As favourably as the limit allows: the next level of the probability would break it.
    side = 1 if name == "max_false_negative_rate" else -1
    level = side * model.predict_proba(X2)[of_label, int(pos > 0)]
    next_level = level[level > side * model.threshold_].min()
    assert rate <= 0.08 < np.mean(level <= next_level)
    assert model.certificate_.met
    assert gap_of("equal_opportunity", model, X2, Y2, GROUPS2, pos) <= 0.05
    assert model.history_.columns["limit_multiplier"].max() > 0


@EITHER_LABEL
def test_several_constraints_with_a_gap_each(pos):
    names, limits = ["equal_opportunity", "demographic_parity"], [0.05, 0.1]
    model = boost(names, limits, validation_fraction=None, pos_label=pos, n_estimators=60)
    model.fit(X, Y, sensitive_features=GROUPS)
    assert model.certificate_.met
    for name, limit in zip(names, limits, strict=True):
        assert gap_of(name, model, X, Y, GROUPS, pos) <= limit
        assert plain_gap(name, X, Y, GROUPS, pos) > limit
    assert model.history_.events == ("true positive rate", "selection rate")
    assert model.history_.limits == (0.05, 0.1)


def test_the_certificate_names_the_gap_that_is_furthest_out():
    model = boost("equalized_odds", [0.5, 0.02], n_estimators=10)
    with quiet():
        model.fit(X, Y, sensitive_features=GROUPS)
    assert model.certificate_.event == "false positive rate"
    assert model.certificate_.max_gap == 0.02


@EITHER_LABEL
def test_one_standard_error_to_spare(pos):
    max_gap = 0.15
    model = fit_watched(boost("demographic_parity", max_gap, margin="one_se", pos_label=pos))
    assert model.certificate_.met
    predicted = model.predict(X2) == pos
    rates = [predicted[g == GROUPS2].mean() for g in (0, 1)]
    sizes = [(g == GROUPS2).sum() for g in (0, 1)]
    error = np.sqrt(sum(p * (1 - p) / n for p, n in zip(rates, sizes, strict=True)))
    assert abs(rates[0] - rates[1]) <= max_gap - error + 1e-9
    assert error > 0.02


def test_a_gap_that_is_not_within_by_a_standard_error_is_missed_in_words():
    X, y, groups = one_feature(300, seed=1, shift=1.0)
    model = boost("demographic_parity", 0.03, margin="one_se", validation_fraction=None)
    with pytest.warns(UserWarning, match="gap|says the same") as caught:
        model.fit(X, y, sensitive_features=groups)
    assert not model.certificate_.met
    assert "-0." not in str(caught[0].message)


@EITHER_LABEL
def test_a_bias_where_no_round_is_within(pos):
    X, y, groups = one_feature(900)
    model = boost(
        "demographic_parity", validation_fraction=None, pos_label=pos, n_estimators=20
    ).fit(X, y, sensitive_features=groups)
    history, certificate = model.history_, model.certificate_
    useful_within = history.columns["within"].astype(bool) & history.columns["useful"].astype(bool)
    assert not useful_within.any()
    assert certificate.bias == history.bias != 0
    assert certificate.met
    gap = gap_of("demographic_parity", model, X, y, groups, pos)
    assert gap <= 0.05
    assert certificate.gap == pytest.approx(gap)
    assert certificate.accuracy == pytest.approx(model.score(X, y))
    margin = model.decision_function(X)
    loss = np.mean(np.log(1 + np.exp(-y * margin))) / np.log(2)
    assert certificate.watched_loss == pytest.approx(loss)
    # The bias is a part of the model, and the threshold stays.
    assert model.threshold_ == pytest.approx(0.5)
    odds = np.log((y > 0).mean() / (y < 0).mean())
    votes = model.estimator_weights_
    grown = sum(
        vote * one.decision_function(X) for vote, one in zip(votes, model.estimators_, strict=True)
    )
    np.testing.assert_allclose(margin, odds + certificate.bias + grown, atol=1e-9)
    np.testing.assert_allclose(list(model.staged_decision_function(X))[-1], margin)
    assert f"a bias of {certificate.bias:+.4f} was added" in str(certificate)


@EITHER_LABEL
def test_rare_positives(pos):
    X, y, groups = rare_positives()
    y = y * pos
    settings = {"pos_label": pos, "max_leaf_nodes": 3, "validation_fraction": None}
    model = boost("demographic_parity", **settings)
    with pytest.warns(UserWarning, match="the model says the same to nearly everyone.*balanced"):
        model.fit(X, y, sensitive_features=groups)
    certificate = model.certificate_
    assert certificate.within
    assert not certificate.useful
    assert not certificate.met
    assert certificate.accuracy == pytest.approx(0.95, abs=0.01)
    balanced = boost("demographic_parity", class_weight="balanced", **settings)
    balanced.fit(X, y, sensitive_features=groups)
    assert balanced.certificate_.met
    assert gap_of("demographic_parity", balanced, X, y, groups, pos) <= 0.05
    assert 0.15 < np.mean(balanced.predict(X) == pos) < 0.5
    chosen = boost("demographic_parity", selection_rate=0.1, **settings)
    chosen.fit(X, y, sensitive_features=groups)
    assert chosen.certificate_.met


def test_a_missed_limit_says_by_how_much():
    X, y, groups = one_feature(900, shift=1.2)
    names = ["equal_opportunity", "demographic_parity"]
    model = boost(names, 0.0, n_estimators=3, validation_fraction=None)
    with pytest.warns(UserWarning, match=r"no useful round.*gap of 0\.\d+ on the training rows"):
        model.fit(X, y, sensitive_features=groups)
    assert not model.certificate_.met
    assert model.certificate_.useful
    assert "above max_gap 0" in str(model.certificate_)


# Early stopping


def test_early_stopping():
    settings = {"n_estimators": 300, "n_iter_no_change": 4, "learning_rate": 0.3}
    model = boost("demographic_parity", 0.1, early_stopping=True, **settings)
    fit_watched(model)
    history, columns = model.history_, model.history_.columns
    assert history.stop_reason is StopReason.EARLY
    assert "stopped early" in str(model.certificate_)
    fit = (columns["within"] * columns["useful"]).astype(bool)
    first = int(np.argmax(fit))
    assert fit[first]
    assert len(history) >= first + 1 + 4
    best, since = np.inf, 0
    for t in range(first, len(history)):
        better = fit[t] and columns["watched_loss"][t] < best - 1e-12
        best = columns["watched_loss"][t] if better else best
        since = 0 if better else since + 1
        assert (since == 4) == (t == len(history) - 1)
    assert history.n_kept == len(history) - 4


def test_early_stopping_waits_for_a_useful_round_within_the_gap():
    X, y, groups = one_feature(900)
    model = boost(
        "demographic_parity", 0.01, early_stopping=True, n_iter_no_change=2, n_estimators=40
    )
    with quiet():
        model.fit(X, y, sensitive_features=groups)
    fit = model.history_.columns["within"] * model.history_.columns["useful"]
    assert not fit[:10].any()
    assert len(model.history_) > 10


def test_early_stopping_without_constraints():
    model = FairBoostClassifier(
        None, n_estimators=300, learning_rate=0.3, early_stopping=True, random_state=0
    ).fit(X, Y)
    assert model.history_.stop_reason is StopReason.EARLY
    losses = model.history_.columns["watched_loss"]
    assert model.history_.n_kept == np.argmin(losses) + 1 == len(losses) - 10
    assert model.certificate_.watched_on == "held-out rows"


# What does not matter

LEARNERS = {
    "newton": {},
    "exponential": {"loss": "exponential", "learning_rate": 0.5},
}
PLAIN = {"n_estimators": 8, "validation_fraction": None, "min_samples_leaf": 5}


@settings(max_examples=12)
@given(st.integers(0, 1000), st.sampled_from(sorted(LEARNERS)), st.booleans())
def test_names_and_order_of_groups_and_rows_do_not_matter(seed, learner, weighted):
    X, y, groups = unfair(250, n_groups=3, seed=seed)
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    model = boost("equalized_odds", 0.1, **PLAIN, **LEARNERS[learner])
    order = rng.permutation(len(y))
    with quiet():
        expected = model.fit(X, y, sensitive_features=groups, sample_weight=weight)
        expected = expected.decision_function(X)
        first = model.certificate_
        for names, rows, scale in (
            (np.array(["c", "a", "b"]), slice(None), 1.0),
            (np.arange(3), order, 1.0),
            (np.arange(3), slice(None), 8.0),
            (np.arange(3), slice(None), 0.3),
        ):
            model.fit(
                X[rows],
                y[rows],
                sensitive_features=names[groups][rows],
                sample_weight=scale * weight[rows],
            )
            np.testing.assert_allclose(model.decision_function(X), expected, rtol=0, atol=1e-9)
            assert model.certificate_.gap == pytest.approx(first.gap, abs=1e-9)
            assert model.certificate_.n_rounds == first.n_rounds


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_a_row_of_weight_two_counts_like_two_rows(seed):
    X, y, groups = unfair(200, seed=seed)
    times = np.random.default_rng(seed).integers(1, 4, len(y))
    model = boost(
        "demographic_parity",
        loss="exponential",
        n_estimators=8,
        min_samples_leaf=0,
        validation_fraction=None,
        learning_rate=0.5,
    )
    with quiet():
        model.fit(X, y, sensitive_features=groups, sample_weight=times)
        expected, history = model.decision_function(X), model.history_
        model.fit(X.repeat(times, axis=0), y.repeat(times), sensitive_features=groups.repeat(times))
    multipliers = [one.by_group("multipliers") for one in (history, model.history_)]
    np.testing.assert_allclose(*multipliers, atol=1e-9)
    # Whether a round is useful depends on the number of rows; margins are compared where it is not.
    if history.n_kept == model.history_.n_kept and history.bias == model.history_.bias:
        np.testing.assert_allclose(model.decision_function(X), expected, rtol=0, atol=1e-7)


def test_seeds():
    model = boost(validation_fraction=0.3).fit(X, Y, sensitive_features=GROUPS)
    again = clone(model).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    other = clone(model).set_params(random_state=1).fit(X, Y, sensitive_features=GROUPS)
    assert (other.decision_function(X) != model.decision_function(X)).any()
    sampled = boost(validation_fraction=None, subsample=0.5).fit(X, Y, sensitive_features=GROUPS)
    other = clone(sampled).set_params(random_state=1).fit(X, Y, sensitive_features=GROUPS)
    assert (other.decision_function(X) != sampled.decision_function(X)).any()


# Which rows are watched


@pytest.mark.parametrize(("extra", "watched"), [(0, "held-out rows"), (-1, "training rows")])
def test_auto_holds_out_where_a_quarter_leaves_10_rows(extra, watched):
    """40 rows of the smallest group in the event; those of the other label do not count."""
    n_small = 40 + extra
    rng = np.random.default_rng(0)
    groups = np.r_[np.zeros(600, int), np.ones(n_small, int), np.ones(500, int)]
    y = np.r_[np.ones(500), -np.ones(100), np.ones(n_small), -np.ones(500)]
    X = np.column_stack([y + rng.normal(size=len(y)), rng.normal(size=len(y))])

    def watched_on(constraints, max_gap=1.0, **settings):
        model = boost(constraints, max_gap, n_estimators=2, **settings)
        with quiet():
            return model.fit(X, y, sensitive_features=groups).certificate_.watched_on

    assert watched_on("equal_opportunity") == watched
    assert watched_on("demographic_parity") == "held-out rows"
    assert watched_on(None) == "training rows"
    assert watched_on("equal_opportunity", early_stopping=True) == "held-out rows"


@pytest.mark.parametrize(
    "learner",
    [
        {},
        {"tree_step": "first_order"},
        {"tree_step": "first_order", "estimator": DecisionTreeClassifier(max_depth=1)},
        {"loss": "exponential", "estimator": RandomForestClassifier(3, max_depth=2)},
    ],
)
def test_explicit_validation_rows_are_what_is_watched(learner):
    weight = np.random.default_rng(0).uniform(0.5, 2, len(Y2))
    size = {"max_leaf_nodes": 31} if "estimator" in learner else {}
    model = boost(n_estimators=12, **size, **learner)
    with quiet():
        model.fit(
            X,
            Y,
            sensitive_features=GROUPS,
            X_val=X2,
            y_val=Y2,
            sensitive_features_val=GROUPS2,
            sample_weight_val=weight,
        )
    certificate = model.certificate_
    assert certificate.watched_on == "held-out rows"
    gap = gap_of("equal_opportunity", model, X2, Y2, GROUPS2, weight=weight)
    assert certificate.gap == pytest.approx(gap)
    assert certificate.accuracy == pytest.approx(model.score(X2, Y2, sample_weight=weight))
    if not certificate.bias:
        assert certificate.train_error == pytest.approx(1 - model.score(X, Y))


def test_rows_held_out_do_not_teach():
    """Labels of watched rows choose multipliers and the round, never a split."""
    model = fit_watched(boost(max_gap=1.0, n_estimators=10))
    plain = boost(None, n_estimators=10).fit(X, Y)
    expected = list(plain.staged_decision_function(X))[model.history_.n_kept - 1]
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-9)


def test_sparse_and_frames_with_held_out_rows():
    dense = boost(n_estimators=10, validation_fraction=0.2)
    with quiet():
        expected = dense.fit(X, Y, sensitive_features=GROUPS).decision_function(X)
        same = clone(dense).fit(sparse.csr_matrix(X), Y, sensitive_features=GROUPS)
    np.testing.assert_allclose(same.decision_function(X), expected)
    frame = (
        pd.DataFrame(X)
        .add_prefix("x")
        .assign(kind=pd.Categorical(np.where(GROUPS, "b", "a")), sex=GROUPS)
    )
    model = boost(n_estimators=10, sensitive_columns="sex", validation_fraction=0.2)
    with quiet():
        model.fit(frame, Y)
    assert model.score(frame, Y) > 0.7
    model.set_params(validation_fraction=None).fit(frame, Y, X_val=frame, y_val=Y)
    assert model.certificate_.watched_on == "held-out rows"


def test_every_cell_of_two_rows_is_watched():
    groups = GROUPS.copy()
    few = np.concatenate([np.flatnonzero(label == Y)[:2] for label in (-1, 1)])
    groups[few] = 2
    model = boost("equalized_odds", n_estimators=5, validation_fraction=0.1)
    with quiet(), pytest.warns(UserWarning, match="fewer than 20 watched rows"):
        model.fit(X, Y, sensitive_features=groups)
    assert not np.isnan(model.history_.by_group("rates")).any()


# The price


def test_the_baseline_chooses_its_round_as_under_a_limit_that_bounds_nothing():
    """Here the round of least loss says the same to nearly everyone, and a later one is useful."""
    rows, labels, groups = rare_positives(800, seed=11, share=0.2)
    model = FairBoostClassifier(
        "demographic_parity", 1.0, n_estimators=30, max_leaf_nodes=8, learning_rate=0.3,
        baseline=True, random_state=0,
    )  # fmt: skip
    model.fit(rows, labels, sensitive_features=groups)
    observed = [each.observed for each in model.history_]
    least = int(np.argmin([each.loss for each in observed]))
    assert not observed[least].useful
    assert model.certificate_.useful
    plain, bounded = (each.decision_function(rows) for each in (model.baseline_, model))
    np.testing.assert_allclose(plain, bounded, atol=1e-9)


def test_the_baseline_fitted_again_is_its_clone():
    """Defect: it went on keeping the round of least loss, and its clone kept all rounds."""
    held_out = X[:300], Y[:300], GROUPS[:300]
    model = FairBoostClassifier(
        "demographic_parity", n_estimators=40, learning_rate=1.0, max_leaf_nodes=31,
        baseline=True, random_state=0,
    )  # fmt: skip
    names = ("X_val", "y_val", "sensitive_features_val")
    validation = dict(zip(names, held_out, strict=True))
    training = {"X": X[300:], "y": Y[300:], "sensitive_features": GROUPS[300:]}
    plain = model.fit(**training, **validation).baseline_
    assert plain.history_.n_kept < 40
    alone = clone(plain).fit(**training, **validation)
    assert plain.fit(**training, **validation).history_.n_kept == alone.history_.n_kept == 40
    np.testing.assert_array_equal(plain.decision_function(X), alone.decision_function(X))


def test_the_baseline_is_the_model_without_a_constraint():
    """Both are trained on the same rows."""
    model = boost("demographic_parity", validation_fraction=0.3, baseline=True, n_estimators=10)
    model.fit(X, Y, sensitive_features=GROUPS)
    plain = model.baseline_
    assert plain.constraints is None
    assert not plain.baseline
    alone = clone(plain).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(plain.decision_function(X), alone.decision_function(X))
    without = clone(model).set_params(baseline=False).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(model.decision_function(X), without.decision_function(X))
    assert not hasattr(without, "price_")
    assert model.price_.rows == "held-out rows"
    assert model.price_.n_rows == pytest.approx(300, abs=2)
    clone(model).fit(X, Y, sensitive_features=GROUPS)
    model.set_params(baseline=False).fit(X, Y, sensitive_features=GROUPS)
    assert not hasattr(model, "baseline_")


def test_the_price_is_measured_by_scikit_learns_metrics():
    weight = np.random.default_rng(0).uniform(0.5, 2, len(Y2))
    model = boost("demographic_parity", baseline=True, class_weight={1: 2.0})
    model.fit(
        X,
        Y,
        sensitive_features=GROUPS,
        X_val=X2,
        y_val=Y2,
        sensitive_features_val=GROUPS2,
        sample_weight_val=weight,
    )
    price = model.price_
    for fitted, scores in ((model, price.model), (model.baseline_, price.plain)):
        probability = fitted.predict_proba(X2)
        rest = {"sample_weight": weight}
        assert scores.accuracy == pytest.approx(accuracy_score(Y2, fitted.predict(X2), **rest))
        assert scores.auc == pytest.approx(roc_auc_score(Y2, probability[:, 1], **rest))
        assert scores.log_loss == pytest.approx(log_loss(Y2, probability, **rest))
    assert price.n_rows == len(Y2)
    lost = 100 * (price.plain.accuracy - price.model.accuracy)
    assert price.accuracy_points == pytest.approx(lost)
    assert lost > 1
    frame = price.to_frame()
    assert frame.loc["auc", "difference"] == pytest.approx(price.model.auc - price.plain.auc)
    assert "held-out rows" in str(price)


# The face


def test_two_columns_crossed_many_groups_and_any_estimator():
    rng = np.random.default_rng(4)
    crossed = pd.DataFrame({"sex": GROUPS, "race": rng.choice(["p", "q", "r"], len(Y))})
    model = boost(max_gap=0.2).fit(X, Y, sensitive_features=crossed)
    assert len(model.history_.watched) == 6
    assert model.certificate_.gap <= 0.2
    other = FairBoostClassifier(
        max_gap=0.1, loss="exponential", estimator=LogisticRegression(), n_estimators=10
    )
    with quiet():
        other.fit(X, Y, sensitive_features=GROUPS)
    assert other.certificate_.holds


def test_labels_of_any_kind():
    labels = np.where(Y > 0, "accept", "refuse")  # in sort order, "refuse" is the larger
    settings = {"validation_fraction": None}
    model = boost(pos_label="accept", **settings).fit(X, labels, sensitive_features=GROUPS)
    same = boost(pos_label=1, **settings).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(model.predict(X) == "accept", same.predict(X) == 1)
    np.testing.assert_allclose(model.decision_function(X), -same.decision_function(X), atol=1e-7)
    assert model.certificate_.gap == pytest.approx(same.certificate_.gap)


def test_the_model_has_the_kept_rounds_only():
    X, y, groups = one_feature(900)
    model = boost("demographic_parity", validation_fraction=None)
    model.fit(X, y, sensitive_features=groups)
    kept = model.history_.n_kept
    assert kept < len(model.history_) == 30
    assert len(model.estimators_) == len(model.estimator_weights_) == kept
    assert model.booster_.num_trees() == kept
    staged = list(model.staged_predict(X))
    assert len(staged) == kept
    np.testing.assert_array_equal(staged[-1], model.predict(X))


def test_history_as_table_and_json():
    history = boost(n_estimators=10).fit(X, Y, sensitive_features=GROUPS).history_
    frame = history.to_frame()
    columns = {"gap", "accuracy", "cost_change", "rates[0]", "multipliers[1]", "bound_cost_loss"}
    assert columns <= set(frame)
    assert from_json(to_json(history), History) == history


def test_an_interrupted_run_keeps_its_best_round(monkeypatch):
    calls = []
    original = signed_costs.SignedCosts.step

    def step(self):
        calls.append(self)
        if len(calls) == 25:
            raise KeyboardInterrupt
        return original(self)

    monkeypatch.setattr(signed_costs.SignedCosts, "step", step)
    model = boost(max_gap=0.1, validation_fraction=None)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, sensitive_features=GROUPS)
    assert len(model.history_) == 24
    assert model.history_.stop_reason is StopReason.INTERRUPTED
    assert model.certificate_.gap <= 0.1
    assert len(model.predict(X)) == len(X)


def validation_rows(X_val=X, y_val=Y, sensitive_features_val=GROUPS):
    rows = {"X_val": X_val, "y_val": y_val, "sensitive_features_val": sensitive_features_val}
    return {name: part for name, part in rows.items() if part is not None}


TREE = DecisionTreeClassifier(max_depth=1)
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
    ({"max_gap": [0.1, 0.2]}, {}, "max_gap must be one number"),
    ({"constraints": ["equal_opportunity"], "max_gap": [0.1, 0.2]}, {}, "max_gap has 2 entries"),
    ({"loss": "hinge"}, {}, "loss='hinge' is unknown"),
    (
        {"early_stopping": True, "validation_fraction": None},
        {},
        "early_stopping needs rows that are held out, and validation_fraction is None; set",
    ),
    (
        {"threshold": 0.3, "selection_rate": 0.2},
        {},
        "threshold and selection_rate both say where to decide; give one of them",
    ),
    (
        {"max_false_positive_rate": 0.3, "max_false_negative_rate": 0.2},
        {},
        "max_false_positive_rate and max_false_negative_rate both say where to decide",
    ),
    (
        {"estimator": TREE},
        {},
        "estimator=DecisionTreeClassifier .*Newton steps; set tree_step='first_order'",
    ),
    ({"votes": "discrete"}, {}, "votes='discrete' is for first-order steps"),
    ({"baseline": True, "constraints": None}, {}, "constraints is None already; leave one of them"),
    (
        {"class_weight": {1: 2.0, "x": 3.0}},
        {},
        "class_weight has 'x', and the labels are -1, 1; give",
    ),
    ({"class_weight": {1: 0.0}}, {}, "class_weight must hold positive numbers"),
    ({"class_weight": {1: np.inf}}, {}, "class_weight must hold positive numbers"),
    ({"threshold": 1.0}, {}, "'threshold' parameter"),
    ({"margin": "two_se"}, {}, "'margin' parameter"),
    ({"tree_step": "second"}, {}, "'tree_step' parameter"),
]


@pytest.mark.parametrize(("settings", "arguments", "words"), BAD)
def test_bad_input(settings, arguments, words):
    model = FairBoostClassifier(**({"n_estimators": 3} | settings))
    with pytest.raises(ValueError, match=words) as caught:
        model.fit(X, Y, sensitive_features=GROUPS, **arguments)
    assert len(str(caught.value)) < 500
    assert not hasattr(model, "certificate_")


def test_early_stopping_with_validation_rows_needs_no_fraction():
    model = fit_watched(boost(early_stopping=True, validation_fraction=None, n_estimators=3))
    assert model.certificate_.watched_on == "held-out rows"


def test_each_estimator_has_only_its_own_parameters():
    paper, ours = (set(kind().get_params()) for kind in (FairProjClassifier, FairBoostClassifier))
    assert paper - ours == {"epsilon", "warm_start", "min_weight_fraction_leaf"}
    assert not {"tilt_step", "tilt_decay"} & ours
    assert {"max_gap", "loss", "tree_step", "class_weight", "threshold", "margin"} <= ours - paper


def test_constraint_objects():
    by_name = boost(n_estimators=10).fit(X, Y, sensitive_features=GROUPS)
    for same in (RateParity("true_positive_rate"), ["equal_opportunity"]):
        other = boost(same, n_estimators=10).fit(X, Y, sensitive_features=GROUPS)
        np.testing.assert_array_equal(by_name.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("constraints", ["equal_opportunity", ["equal_opportunity"]])
def test_one_group_is_plain_boosting(constraints):
    with pytest.warns(UserWarning, match="plain boosting"):
        model = boost(constraints, n_estimators=5).fit(X, Y)
    plain = boost(None, n_estimators=5).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), rtol=1e-9)
    assert "nothing was compared" in str(model.certificate_)


def test_the_certificate_reads_well():
    model = boost(max_gap=0.2, n_estimators=10).fit(X, Y, sensitive_features=GROUPS)
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
    model = boost(max_gap=0.2, n_estimators=10, max_leaf_nodes=4)
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


def test_many_numbers_as_groups_should_be_cut_into_ranges():
    random = np.random.default_rng(0)
    X = random.normal(size=(900, 2))
    age = random.integers(20, 60, 900)
    model = FairBoostClassifier(n_estimators=3, max_gap=0.9)
    with pytest.warns(UserWarning, match=r"cut the numbers into ranges, as with fairproj\.data"):
        model.fit(X, X[:, 0] > 0, sensitive_features=age)
    with pytest.warns(UserWarning, match="consider merging groups"):
        model.fit(X, X[:, 0] > 0, sensitive_features=[f"age {each}" for each in age])
