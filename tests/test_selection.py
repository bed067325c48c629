"""Splits, the frontier, and the choice of a model that meets a target."""

import warnings
from itertools import product

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold, cross_validate
from sklearn.utils import get_tags

from fairproj import FairProjClassifier
from fairproj.inference.differences import Pair, difference_bound
from fairproj.inference import gap_upper_bound
from fairproj.baselines import ExponentiatedGradient, ThresholdOptimizer
from fairproj.datasets import load_german
from fairproj.metrics import equal_opportunity_difference
from fairproj.selection import (
    FairProjClassifierCV,
    FairStratifiedKFold,
    Frontier,
    fair_train_test_split,
    fairness_frontier,
)
from population import make_population


def sample(n, seed=0):
    """A group that fares worse under plain boosting, and a feature that tells the groups apart."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n)
    merit = rng.normal(size=n)
    X = np.column_stack([merit + 0.5 * rng.normal(size=n), groups]).round(1)
    y = np.where(merit + 1.0 * groups + 0.5 * rng.normal(size=n) > 0.6, 1, -1)
    return X, y, groups


# A gap out of reach of ten rounds is no surprise here.
pytestmark = pytest.mark.filterwarnings("ignore:no useful round")

X, Y, GROUPS = sample(1500)
QUICK = FairProjClassifier(n_estimators=10)

# Splits


@pytest.mark.parametrize("shuffle", [True, False])
def test_folds_have_the_same_share_of_every_cell(shuffle):
    cells = 2 * GROUPS + (Y > 0)
    whole = np.bincount(cells) / len(cells)
    seen = []
    for train, test in FairStratifiedKFold(4, shuffle=shuffle).split(X, Y, GROUPS):
        np.testing.assert_allclose(np.bincount(cells[test]) / len(test), whole, atol=2 / len(test))
        assert not set(train) & set(test)
        seen += test.tolist()
    assert sorted(seen) == list(range(len(Y)))


def test_splits_name_the_cell_that_is_too_small():
    groups = np.array(["a"] * 1498 + ["b"] * 2)
    words = r"group 'b' with label -?1 has 1 rows, and n_splits=5 needs 5"
    y = np.append(Y[:-2], [1, -1])
    with pytest.raises(ValueError, match=words):
        list(FairStratifiedKFold(5).split(X, y, groups))
    with pytest.raises(ValueError, match="a split needs 2"):
        fair_train_test_split(X, y, groups)
    with pytest.raises(ValueError, match="need the groups"):
        list(FairStratifiedKFold().split(X, y, None))


def test_train_and_test_parts():
    parts = fair_train_test_split(X, Y, GROUPS, np.arange(len(Y)), test_size=0.2, random_state=1)
    _, X2, y1, y2, g1, g2, _, i2 = parts
    assert len(X2) == len(y2) == len(g2) == 300
    np.testing.assert_array_equal(X[i2], X2)
    for label in (-1, 1):
        for group in (0, 1):
            share = np.mean((label == Y) & (group == GROUPS))
            assert np.mean((y1 == label) & (g1 == group)) == pytest.approx(share, abs=0.002)
    again = fair_train_test_split(X, Y, GROUPS, np.arange(len(Y)), test_size=0.2, random_state=1)
    np.testing.assert_array_equal(again[-1], i2)


# The frontier


@pytest.fixture(scope="module", params=["distribution", "classifier"])
def frontier(request):
    return fairness_frontier(
        clone(QUICK).set_params(enforce=request.param),
        X,
        Y,
        sensitive_features=GROUPS,
        epsilons=[0.3, 0.02, 0.1],
        cv=3,
    )


def test_every_number_is_that_of_a_plain_loop(frontier):
    closed_loop = frontier.fits["within_epsilon"].notna().all()
    quick = clone(QUICK).set_params(enforce="classifier" if closed_loop else "distribution")
    assert len(frontier.fits) == 9
    folds = list(FairStratifiedKFold(3).split(X, Y, GROUPS))
    for _, row in frontier.fits.iterrows():
        train, test = folds[int(row["fold"])]
        model = clone(quick).set_params(epsilon=row["epsilon"])
        model.fit(X[train], Y[train], sensitive_features=GROUPS[train])
        predicted = model.predict(X[test])
        assert row["accuracy"] == pytest.approx(accuracy_score(Y[test], predicted))
        gap = equal_opportunity_difference(Y[test], predicted, sensitive_features=GROUPS[test])
        assert row["equal_opportunity"] == pytest.approx(gap)
    means = frontier.fits.groupby("epsilon")["accuracy"]
    np.testing.assert_allclose(frontier.frame["accuracy"], means.mean())
    np.testing.assert_allclose(frontier.frame["accuracy_se"], means.std() / np.sqrt(3))


@pytest.mark.parametrize("parameter", ["max_depth", "max_bins", "n_estimators"])
def test_sharing_bins_never_changes_a_result(parameter):
    """What the binned data or the trees depend on is not shared."""
    found = fairness_frontier(
        QUICK, X, Y, sensitive_features=GROUPS, epsilons=[2, 5], parameter=parameter, cv=2
    )
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    for _, row in found.fits.iterrows():
        train, test = folds[int(row["fold"])]
        model = clone(QUICK).set_params(**{parameter: int(row[parameter])})
        model.fit(X[train], Y[train], sensitive_features=GROUPS[train])
        assert row["accuracy"] == pytest.approx(model.score(X[test], Y[test]))


def test_sensitive_columns_a_list_of_splits_and_one_epsilon():
    frame = pd.DataFrame(X, columns=["merit", "tells"]).assign(sex=GROUPS)
    model = FairProjClassifier(n_estimators=5, sensitive_columns="sex")
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    by_column = fairness_frontier(model, frame, Y, epsilons=0.1, cv=folds)
    plain = fairness_frontier(
        FairProjClassifier(n_estimators=5), X, Y, sensitive_features=GROUPS, epsilons=0.1, cv=folds
    )
    pd.testing.assert_frame_equal(
        by_column.fits.drop(columns="seconds"), plain.fits.drop(columns="seconds")
    )


def test_results_do_not_depend_on_the_number_of_jobs():
    frontier, other = (
        fairness_frontier(
            QUICK, X, Y, sensitive_features=GROUPS, epsilons=epsilons, cv=3, n_jobs=jobs
        )
        for epsilons, jobs in (([0.3, 0.02, 0.1], 1), ([0.1, 0.3, 0.02], 2))
    )
    pd.testing.assert_frame_equal(
        other.fits.drop(columns="seconds"), frontier.fits.drop(columns="seconds")
    )


@pytest.mark.parametrize("score", ["accuracy", "log_loss"])
def test_pareto_by_looking_at_every_pair(score):
    rng = np.random.default_rng(0)
    fits = pd.DataFrame(
        {
            "epsilon": np.arange(30.0),
            "fold": 0,
            score: rng.integers(6, size=30) / 6,
            "equal_opportunity": rng.integers(6, size=30) / 6,
        }
    )
    found = Frontier(fits, "epsilon", "model").pareto(score=score)
    sign = -1 if score == "log_loss" else 1
    points = list(zip(sign * fits[score], fits["equal_opportunity"], strict=True))
    for (value, gap), best in zip(points, found, strict=True):
        beaten = any(v >= value and g <= gap and (v > value or g < gap) for v, g in points)
        assert best == (not beaten)


@pytest.mark.parametrize(
    ("estimator", "parameter", "values"),
    [
        (ExponentiatedGradient(LogisticRegression()), "epsilon", [0.05, 0.2]),
        (ThresholdOptimizer(LogisticRegression()), "random_state", [0]),
        (FairProjClassifier(n_estimators=5, enforce="classifier"), "epsilon", [0.05, 0.2]),
        (FairProjClassifier(n_estimators=5, estimator=LogisticRegression()), "epsilon", [0.1]),
    ],
    ids=["EG", "thresholds", "closed loop", "estimator"],
)
@pytest.mark.filterwarnings("ignore:Setting a")
def test_any_estimator_with_such_a_parameter(estimator, parameter, values):
    found = fairness_frontier(
        estimator, X, Y, sensitive_features=GROUPS, epsilons=values, parameter=parameter, cv=2
    )
    assert len(found.fits) == 2 * len(values)
    assert found.frame["accuracy"].between(0.5, 1).all()


def test_frames_text_labels_and_a_plot():
    import matplotlib as mpl

    mpl.use("Agg")
    data = load_german()
    found = fairness_frontier(
        FairProjClassifier(n_estimators=5, pos_label="bad"),
        data.data,
        data.target,
        sensitive_features=data.sensitive_features,
        epsilons=[0.05, 0.3],
        cv=2,
        name="ours",
    )
    ax = found.plot("equalized_odds", "roc_auc")
    found.plot("equalized_odds", "roc_auc", ax=ax, marker="s", label="again")
    assert ax.get_xlabel() == "equalized odds gap"
    assert {text.get_text() for text in ax.legend().get_texts()} == {"ours", "again"}
    with pytest.raises(ValueError, match="'roc' is unknown"):
        found.plot(score="roc")


def interrupt_in(monkeypatch, number):
    """Ctrl-C in the so manieth fit."""
    calls = []
    original = FairProjClassifier.fit

    def fit(self, *arguments, **more):
        calls.append(self)
        if len(calls) == number:
            raise KeyboardInterrupt
        return original(self, *arguments, **more)

    monkeypatch.setattr(FairProjClassifier, "fit", fit)
    return calls


@pytest.mark.parametrize(("number", "done"), [(2, 1), (4, 3), (8, 7)])
def test_an_interrupt_keeps_every_fit_that_is_done(monkeypatch, number, done):
    interrupt_in(monkeypatch, number)
    arguments = {"sensitive_features": GROUPS, "epsilons": [0.1, 0.2], "cv": 4, "n_jobs": 1}
    with pytest.warns(UserWarning, match=f"the frontier has {done} of 8 fits"):
        found = fairness_frontier(QUICK, X, Y, **arguments)
    assert len(found.fits) == done


def test_an_interrupt_before_anything_is_done_goes_on_its_way(monkeypatch):
    interrupt_in(monkeypatch, 1)
    with pytest.raises(KeyboardInterrupt):
        fairness_frontier(QUICK, X, Y, sensitive_features=GROUPS, epsilons=[0.1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"epsilons": []}, "epsilons is empty"),
        ({"parameter": "eps"}, "has no parameter 'eps'"),
        ({"sensitive_features": None}, "need the groups"),
    ],
)
def test_frontier_of_nonsense(arguments, words):
    usual = {"sensitive_features": GROUPS, "epsilons": [0.1]}
    with pytest.raises(ValueError, match=words):
        fairness_frontier(QUICK, X, Y, **(usual | arguments))


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (FairProjClassifier, "not FairProjClassifier itself"),
        (LogisticRegression(), "LogisticRegression.fit takes no sensitive_features"),
    ],
)
def test_what_has_no_frontier(estimator, words):
    with pytest.raises(TypeError, match=words):
        fairness_frontier(estimator, X, Y, sensitive_features=GROUPS, epsilons=[0.1])


# The bound


@pytest.mark.parametrize(
    ("gap", "wanted"),
    [
        ("equal_opportunity", [1]),
        ("false_positive_rate", [0]),
        ("equalized_odds", [0, 1]),
        ("demographic_parity", None),
    ],
)
@pytest.mark.parametrize("pos_label", [0, 1])
def test_the_upper_bound_is_that_of_the_worst_pair(gap, wanted, pos_label):
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(2, size=300), rng.integers(2, size=300)
    groups = rng.choice(list("abc"), size=300)
    y[(groups == "a")] = np.where(rng.random((groups == "a").sum()) < 0.9, 1, 0)  # few negatives
    found = gap_upper_bound(y, predicted, groups, gap, 0.9, pos_label)
    expected = 0.0
    among = [None] if wanted is None else [pos_label if w else 1 - pos_label for w in wanted]
    for label, a, b in product(among, "abc", "abc"):
        rows = np.full(300, True) if label is None else y == label
        up, down = ((predicted == pos_label)[(groups == g) & rows] for g in (a, b))
        if a != b:
            pair = Pair(int(up.sum()), len(up), int(down.sum()), len(down))
            expected = max(expected, difference_bound(pair, 0.9))
    assert found == pytest.approx(expected, abs=1e-9)


def test_of_a_group_without_positives_nothing_is_known():
    y, predicted = np.tile([0, 1], 100), np.tile([0, 1], 100)
    groups = np.where(y == 0, "b", "a")
    assert gap_upper_bound(y, predicted, groups, "equal_opportunity", 0.9) == pytest.approx(1.0)


def test_the_upper_bound_is_wrong_as_seldom_as_stated():
    """A model whose true gap is just above the limit must seldom pass."""
    rng = np.random.default_rng(0)
    y, groups = np.ones(600, dtype=int), np.repeat(["a", "b"], 300)
    y[0] = 0
    chance = np.where(groups == "a", 0.6, 0.499)
    passed = sum(
        gap_upper_bound(y, rng.random(600) < chance, groups, "equal_opportunity", 0.8) <= 0.1
        for _ in range(300)
    )
    assert passed <= stats.binom.ppf(0.999, 300, 0.2)
    assert passed >= stats.binom.ppf(0.001, 300, 0.1)  # nor more cautious than it says


# The choice

RULES = ("one_se", "mean", "upper")


def chooser(max_gap, **settings):
    return FairProjClassifierCV(max_gap, **({"estimator": QUICK, "cv": 3} | settings))


@pytest.mark.parametrize("rule", ["one_se", "mean"])
def test_what_is_chosen_is_the_best_that_meets_and_is_fitted_on_all_rows(rule):
    model = chooser(0.15, rule=rule, epsilons=[0.05, 0.15, 0.3])
    model.fit(X, Y, sensitive_features=GROUPS)
    found = {
        way: fairness_frontier(
            clone(QUICK).set_params(enforce=way),
            X,
            Y,
            sensitive_features=GROUPS,
            epsilons=[0.05, 0.15, 0.3],
            cv=3,
        ).frame.set_index("epsilon")
        for way in ("classifier", "distribution")
    }
    best = None
    for way, epsilon in product(found, [0.05, 0.15, 0.3]):
        row = found[way].loc[epsilon]
        bound = row["equal_opportunity"]
        if rule == "one_se":
            bound += row["equal_opportunity_se"]
        of_table = model.table_.query("enforce == @way and epsilon == @epsilon").iloc[0]
        assert of_table["bound"] == pytest.approx(bound)
        assert of_table["meets"] == (bound <= 0.15)
        if bound <= 0.15 and (best is None or row["accuracy"] > best):
            best = row["accuracy"]
    assert model.best_score_ == pytest.approx(best)
    direct = clone(QUICK).set_params(**model.best_params_)
    direct.fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(model.decision_function(X), direct.decision_function(X))
    np.testing.assert_array_equal(model.predict_proba(X), direct.predict_proba(X))
    assert "the best score of the" in model.reason_
    assert model.held_out_ is None


def test_the_upper_bound_is_of_the_kept_model_on_rows_it_has_not_seen():
    model = chooser(0.3, rule="upper", epsilons=np.linspace(0.01, 0.5, 8))
    model.fit(X, Y, sensitive_features=GROUPS)
    held_out = np.isin(np.arange(len(Y)), model.held_out_)
    assert held_out.mean() == pytest.approx(0.3, abs=0.01)
    direct = clone(QUICK).set_params(**model.best_params_)
    direct.fit(X[~held_out], Y[~held_out], sensitive_features=GROUPS[~held_out])
    np.testing.assert_array_equal(model.decision_function(X), direct.decision_function(X))
    predicted = model.predict(X[held_out])
    bound = gap_upper_bound(
        Y[held_out], predicted, GROUPS[held_out], "equal_opportunity", model.confidence
    )
    kept = model.table_.query("epsilon == @model.best_params_['epsilon']")
    kept = kept[kept["enforce"] == model.best_params_["enforce"]].iloc[0]
    assert kept["bound"] == pytest.approx(bound)
    assert kept["score"] == accuracy_score(Y[held_out], predicted)


def test_bounds_are_looked_at_in_the_order_of_the_training_gaps():
    limit = 0.12
    model = chooser(limit, rule="upper", epsilons=np.linspace(0.01, 0.5, 8))
    model.fit(X, Y, sensitive_features=GROUPS)
    table = model.table_
    assert (np.diff(table["training_gap"]) >= 0).all()
    passed = (table["bound"] <= limit).to_numpy()
    np.testing.assert_array_equal(table["meets"], np.logical_and.accumulate(passed))
    assert (table["bound"] >= table["gap"]).all()
    assert 0 < table["meets"].sum() < len(table)


@pytest.mark.parametrize("rule", RULES)
def test_nothing_meets_the_target(rule):
    model = chooser(0.0, rule=rule, epsilons=[0.1, 0.2])
    with pytest.raises(ValueError, match=r"none of 4 candidates meets max_gap=0; the nearest is"):
        model.fit(X, Y, sensitive_features=GROUPS)
    assert not hasattr(model, "best_estimator_")
    model.set_params(if_none="nearest")
    with pytest.warns(UserWarning, match="none of 4 candidates meets"):
        model.fit(X, Y, sensitive_features=GROUPS)
    assert not model.met_
    nearest = model.table_["bound"].idxmin()
    assert model.best_params_["epsilon"] == model.table_["epsilon"][nearest]


def test_a_bound_that_does_not_count_says_why(monkeypatch):
    """The first in order fails, a later one would pass."""
    from fairproj import _cv

    bounds = iter([0.3, 0.1])
    monkeypatch.setattr(_cv, "gap_upper_bound", lambda *arguments: next(bounds))
    gaps = iter([0.0, 0.01, 0.0, 0.02])
    monkeypatch.setattr(_cv._Measure, "_gap", lambda *arguments: next(gaps))
    model = chooser(0.2, rule="upper", epsilons=[0.1, 0.2], enforce="classifier")
    with pytest.raises(ValueError, match=r"does not count because 0\.300"):
        model.fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("metric", ["demographic_parity", "false_positive_rate", "equalized_odds"])
def test_every_gap_is_what_is_enforced(metric, rule):
    model = chooser(0.9, metric=metric, rule=rule, epsilons=[0.1], cv=2)
    model.fit(X, Y, sensitive_features=GROUPS)
    assert model.score(X, Y) > 0.6
    name = model.best_estimator_.constraints
    assert name == ("false_positive_rate_parity" if metric == "false_positive_rate" else metric)


@pytest.mark.parametrize("rule", RULES)
def test_nested_in_cross_validation_and_search(rule):
    frame = pd.DataFrame(X, columns=["merit", "tells"]).assign(sex=GROUPS)
    inner = FairProjClassifier(n_estimators=5, sensitive_columns="sex")
    model = FairProjClassifierCV(0.6, estimator=inner, rule=rule, cv=2, epsilons=[0.05, 0.2])
    scores = cross_validate(model, frame, Y, cv=3, error_score="raise")["test_score"]
    assert (scores > 0.6).all()
    grid = {"max_gap": [0.5, 0.6], "estimator__max_depth": [1, 2]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(frame, Y)
    assert search.best_estimator_.met_
    assert list(search.best_estimator_.feature_names_in_) == ["merit", "tells"]
    with sklearn.config_context(enable_metadata_routing=True):
        routed = chooser(0.6, rule=rule, cv=2, epsilons=[0.1])
        routed.set_fit_request(sensitive_features=True)
        found = cross_validate(
            routed, X, Y, cv=2, params={"sensitive_features": GROUPS}, error_score="raise"
        )
    assert (found["test_score"] > 0.6).all()


@pytest.mark.parametrize("rule", RULES)
def test_results_of_the_choice_do_not_depend_on_jobs(rule):
    one, two = (
        chooser(0.5, rule=rule, cv=2, epsilons=[0.1, 0.3], n_jobs=jobs).fit(
            X, Y, sensitive_features=GROUPS
        )
        for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(one.table_, two.table_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


@pytest.mark.parametrize("rule", ["one_se", "upper"])
def test_an_interrupted_choice_goes_on_where_it_stopped(tmp_path, monkeypatch, rule):
    calls = interrupt_in(monkeypatch, 4)
    settings = {"rule": rule, "epsilons": [0.1, 0.2, 0.3], "n_jobs": 1}
    model = chooser(0.6, memory=joblib.Memory(tmp_path, verbose=0), **settings)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, sensitive_features=GROUPS)
    model.fit(X, Y, sensitive_features=GROUPS)
    fits = {"one_se": 3 * 6 + 1, "upper": 6}[rule]  # each candidate in each fold, and the last
    assert len(calls) == fits + 1  # and the one that was interrupted
    plain = chooser(0.6, **settings).fit(X, Y, sensitive_features=GROUPS)
    pd.testing.assert_frame_equal(model.table_, plain.table_)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    for changed in ({"metric": "equalized_odds"}, {"scoring": "balanced_accuracy"}):
        n_before = len(calls)
        clone(model).set_params(**changed).fit(X, Y, sensitive_features=GROUPS)
        assert len(calls) == n_before + fits  # nothing that was kept for something else is used


def test_weights_count_like_rows():
    weight = np.where(GROUPS == 1, 2, 1)
    folds = list(FairStratifiedKFold(2).split(X, Y, GROUPS))
    repeated = np.repeat(np.arange(len(Y)), weight)
    tests = [np.flatnonzero(np.isin(repeated, test)) for _, test in folds]
    weighted = chooser(0.5, cv=folds, epsilons=[0.1, 0.3])
    weighted.fit(X, Y, sensitive_features=GROUPS, sample_weight=weight)
    counted = chooser(0.5, cv=[tests, tests[::-1]], epsilons=[0.1, 0.3])
    counted.set_params(cv=[(tests[1], tests[0]), (tests[0], tests[1])])
    counted.fit(X[repeated], Y[repeated], sensitive_features=GROUPS[repeated])
    columns = ["epsilon", "enforce", "score", "gap"]
    pd.testing.assert_frame_equal(weighted.table_[columns], counted.table_[columns])


@pytest.mark.filterwarnings("ignore:some groups have fewer")
def test_text_labels_a_template_that_holds_out_and_a_bar(capsys):
    data = load_german()
    template = FairProjClassifier(
        n_estimators=5, pos_label="bad", validation_fraction=0.5, random_state=0, warm_start=True
    )
    model = chooser(0.5, estimator=template, verbose=True, epsilons=0.2)
    model.set_params(scoring=make_scorer(f1_score, pos_label="bad", zero_division=0.0))
    model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    assert set(model.predict(data.data)) <= set(data.target)
    assert "candidates" in capsys.readouterr().out
    with pytest.raises(ValueError, match="does not know which of the labels"):
        model.set_params(scoring="f1").fit(
            data.data, data.target, sensitive_features=data.sensitive_features
        )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"estimator": LogisticRegression()}, "must be a FairProjClassifier, got Logistic"),
        ({"estimator": FairProjClassifier}, "got the class FairProjClassifier rather than"),
        ({"enforce": ["weights"]}, "must name 'classifier', 'distribution' or both"),
        ({"enforce": []}, "must name 'classifier', 'distribution' or both"),
        ({"metric": "accuracy"}, "metric"),
        ({"rule": "best"}, "rule"),
        ({"epsilons": []}, "epsilons is empty"),
        ({"cv": RepeatedKFold(n_splits=2)}, "test no row twice"),
        ({"cv": list(KFold(3).split(X))[:1]}, "needs two folds"),
    ],
)
def test_choices_that_cannot_be_made(settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        chooser(0.3, **settings).fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"sensitive_features": None}, "a gap needs groups; pass fit"),
        ({"sensitive_features": np.zeros(len(Y))}, "holds one group only"),
        ({"sensitive_features": GROUPS[:5]}, "5"),
        ({"sensitive_features": GROUPS, "sample_weight": np.ones(len(Y))}, "no sample_weight"),
        ({"sensitive_features": np.arange(len(Y)) == 0}, "True' with label -?1 has 1 rows"),
    ],
)
def test_rows_that_cannot_be_chosen_on(rows, words):
    with pytest.raises(ValueError, match=words):
        chooser(0.3, rule="upper").fit(X, Y, **rows)


@pytest.mark.parametrize("metric", ["equal_opportunity", "demographic_parity"])
def test_a_group_that_would_not_be_judged_is_refused(metric):
    groups = np.where(np.arange(len(Y)) < 3, "few", "many")
    y = np.where(np.arange(len(Y)) < 3, np.array([1, -1, 1] * 500), Y)
    with pytest.raises(ValueError, match="few'"):
        chooser(0.3, metric=metric, rule="upper", held_out=0.1).fit(X, y, sensitive_features=groups)
    blocks = np.sort(GROUPS)
    with pytest.raises(ValueError, match=r"the training part of a split has no row of group"):
        chooser(0.3, metric=metric, cv=KFold(2)).fit(X, Y, sensitive_features=blocks)


def test_splits_that_test_what_they_train_on_are_refused():
    rows = np.arange(len(Y))
    overlapping = [(rows, rows[::2]), (rows, rows[1::2])]
    with pytest.raises(ValueError, match="without overlap"):
        chooser(0.3, cv=overlapping).fit(X, Y, sensitive_features=GROUPS)
    masks = [(rows % 2 == 0, rows % 2 == 1), (rows % 2 == 1, rows % 2 == 0)]
    chooser(0.9, cv=masks, epsilons=0.1).fit(X, Y, sensitive_features=GROUPS)


def test_a_fit_that_fails_leaves_no_older_model():
    model = chooser(0.9, epsilons=0.1, cv=2).fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match="none of 2 candidates"):
        model.set_params(max_gap=0).fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_scores_that_cannot_be_used():
    with pytest.raises(ValueError, match="is not a number at epsilon"):
        chooser(0.9, scoring=lambda *_: np.nan).fit(X, Y, sensitive_features=GROUPS)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        chooser(0.9, scoring=lambda model, X, y: 1.0).fit(
            X, Y, sensitive_features=GROUPS, sample_weight=np.ones(len(Y))
        )
    with pytest.raises(ValueError, match="memory= needs a scoring by name"):
        chooser(0.9, scoring=lambda *_: 1.0, memory="unused").fit(X, Y, sensitive_features=GROUPS)


def test_groups_of_every_kind():
    tables = {"g": GROUPS, "h": np.arange(len(Y)) % 2}
    models = [
        chooser(0.9, epsilons=0.2, cv=2).fit(X, Y, sensitive_features=groups)
        for groups in (tables, pd.DataFrame(tables, index=np.arange(len(Y))[::-1]))
    ]
    pd.testing.assert_frame_equal(models[0].table_, models[1].table_)
    assert get_tags(models[0]).input_tags.allow_nan
    with pytest.raises(ValueError, match="sample_weight"):
        models[0].fit(X, Y, sensitive_features=GROUPS, sample_weight=2.0)


# A population of which everything is known

POPULATION = make_population()
TARGET = 0.12


def test_the_known_frontier_agrees_with_a_large_sample_and_with_a_search():
    rng = np.random.default_rng(0)
    predicts = rng.integers(2, size=len(POPULATION.share))
    rows = dict(zip(map(tuple, POPULATION.X), predicts, strict=True))
    features, y, groups = POPULATION.sample(200_000, 0)
    predicted = np.array([rows[tuple(row)] for row in features])
    assert POPULATION.accuracy(predicts) == pytest.approx(np.mean(y == predicted), abs=0.005)
    gap = equal_opportunity_difference(y, predicted, sensitive_features=groups)
    assert POPULATION.gap(predicts) == pytest.approx(gap, abs=0.01)
    # Group thresholds on the chance of label 1 are optimal up to ties; search them all.
    best = 0.0
    for low, high in product(np.linspace(0, 1, 60), repeat=2):
        chosen = POPULATION.positive > np.where(POPULATION.groups == 0, low, high)
        if POPULATION.gap(chosen) <= TARGET:
            best = max(best, POPULATION.accuracy(chosen))
    assert best <= POPULATION.best_accuracy(TARGET) <= best + 0.01


def runs_above_the_target(rule, repetitions):
    """Of so many samples, in how many a model was chosen, and chosen above the target."""
    chosen = above = 0
    for seed in range(repetitions):
        rows = POPULATION.sample(6000, seed)
        model = FairProjClassifierCV(
            TARGET,
            estimator=FairProjClassifier(n_estimators=15),
            rule=rule,
            confidence=0.9,
            cv=3,
            enforce=["classifier"],
            epsilons=[0.02, 0.05, 0.08, 0.12, 0.16],
            if_none="nearest",
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows[0], rows[1], sensitive_features=rows[2])
        predicts = model.predict(POPULATION.X)
        gap = POPULATION.gap(predicts)
        assert POPULATION.accuracy(predicts) <= POPULATION.best_accuracy(gap) + 1e-9
        chosen += model.met_
        above += model.met_ and gap > TARGET
    return chosen, above


def test_the_chosen_models_true_gap_meets_the_target_as_often_as_stated():
    repetitions = 60
    allowed = stats.binom.ppf(0.95, repetitions, 0.1)
    chosen, above = runs_above_the_target("upper", repetitions)
    assert chosen >= repetitions / 2, "too few choices to say anything"
    assert above <= 0.1 * chosen
    _, above_control = runs_above_the_target("mean", repetitions)
    assert above_control > allowed, "the control should fail, or the test shows nothing"


def test_splits_inside_scikit_learn_with_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(QUICK).set_fit_request(sensitive_features=True)
        found = cross_validate(
            model,
            X,
            Y,
            cv=FairStratifiedKFold(3),
            params={"sensitive_features": GROUPS, "groups": GROUPS},
            error_score="raise",
        )
    assert len(found["test_score"]) == 3


def test_a_split_keeps_every_cell_on_both_sides():
    groups = np.where(np.arange(len(Y)) < 4, "few", "many")
    y = np.where(np.arange(len(Y)) < 4, np.array([1, -1] * 750), Y)
    with pytest.raises(ValueError, match="the test part has no row of group 'few'"):
        fair_train_test_split(X, y, groups, test_size=0.1, random_state=0)
    with pytest.raises(ValueError, match="test_size=2 does not split"):
        fair_train_test_split(X, Y, GROUPS, test_size=2)
    with pytest.raises(ValueError, match="n_splits must be a number of folds, 2 or more"):
        list(FairStratifiedKFold("5").split(X, Y, GROUPS))


def test_gaps_that_do_not_exist_are_not_frontiers():
    groups = np.where(Y > 0, GROUPS, 2)  # group 2 has negatives only
    found = fairness_frontier(
        clone(QUICK).set_params(constraints="demographic_parity"),
        X,
        Y,
        sensitive_features=groups,
        epsilons=[0.3, 0.3],
        cv=2,
    )
    assert len(found.fits) == 2  # the same epsilon twice is one
    assert found.frame["equal_opportunity"].isna().all()
    assert found.pareto("demographic_parity").all()
    with pytest.raises(ValueError, match="has no equal_opportunity gap"):
        found.pareto()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fairlearn's own, of pandas
@pytest.mark.parametrize("kind", ["ExponentiatedGradient", "ThresholdOptimizer", "GridSearch"])
def test_fairlearns_own_estimators_with_lots_drawn_alike(kind):
    from fairlearn import postprocessing, reductions

    constraint = reductions.TruePositiveRateParity()
    base = LogisticRegression()
    estimator, parameter = {
        "ExponentiatedGradient": (
            reductions.ExponentiatedGradient(base, constraint, max_iter=5),
            "eps",
        ),
        "GridSearch": (
            reductions.GridSearch(base, constraint, grid_size=5),
            "constraint_weight",
        ),
        "ThresholdOptimizer": (
            postprocessing.ThresholdOptimizer(
                estimator=base,
                constraints="true_positive_rate_parity",
                predict_method="predict_proba",
            ),
            "tol",
        ),
    }[kind]
    one, two = (
        fairness_frontier(
            estimator,
            X[:400],
            (Y[:400] == 1).astype(int),
            sensitive_features=GROUPS[:400],
            epsilons=[0.3, 0.6],
            cv=2,
            parameter=parameter,
            n_jobs=jobs,
        ).fits.drop(columns="seconds")
        for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(one, two)
    assert one["accuracy"].gt(0.4).all()
