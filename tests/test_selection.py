"""Splits, the frontier, and the choice of a model that meets a target."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

from fairproj import FairProjClassifier
from fairproj.audit import gap_upper_bound
from fairproj.baselines import ExponentiatedGradient, ThresholdOptimizer
from fairproj.datasets import load_german
from fairproj.metrics import equal_opportunity_difference
from fairproj.selection import (
    FairStratifiedKFold,
    Frontier,
    fair_train_test_split,
    fairness_frontier,
)


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


def test_an_interrupt_keeps_what_is_done(monkeypatch):
    from fairproj import selection

    calls = []
    original = selection._fold

    def stop(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(selection, "_fold", stop)
    with pytest.warns(UserWarning, match="the frontier has 4 of 8 fits"):
        found = fairness_frontier(
            QUICK, X, Y, sensitive_features=GROUPS, epsilons=[0.1, 0.2], cv=4, n_jobs=1
        )
    assert len(found.fits) == 4


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


# The bound


def test_the_upper_bound_is_that_of_the_worst_pair():
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(2, size=300), rng.integers(2, size=300)
    groups = rng.choice(list("abc"), size=300)
    found = gap_upper_bound(y, predicted, groups, "equal_opportunity", 0.9)
    expected = 0.0
    level = np.sqrt(0.9)
    for a in "abc":
        for b in set("abc") - {a}:
            up, down = (predicted[(groups == g) & (y == 1)] for g in (a, b))
            high = stats.binomtest(int(up.sum()), len(up), alternative="less")
            low = stats.binomtest(int(down.sum()), len(down), alternative="greater")
            expected = max(
                expected,
                high.proportion_ci(level, "exact").high - low.proportion_ci(level, "exact").low,
            )
    assert found == pytest.approx(expected, abs=1e-9)
