"""The search for less discriminatory alternatives."""

import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from fairproj import FairBoostClassifier, FairnessReport, FairProjClassifier, metrics
from fairproj.constraints import STATISTICS
from fairproj.data.checks import Groups
from fairproj.inference.figures import TOTALS, ModelFigures, resample
from fairproj.inference.gap_change import find_widest_pair, gap_change_interval
from fairproj.inference.report import gap_interval
from fairproj.report import Source, alternatives_content
from fairproj.selection import (
    ConfirmedClassifier,
    GapSearchCV,
    SearchOutcome,
    comparison,
    fair_train_test_split,
    fairness_frontier,
    find_alternatives,
)
from fairproj.selection import alternatives as module
from fairproj.selection.alternatives import default_grid, rank_by_gap, split_in_three
from fairproj.selection.comparison import Plan, describe
from simulated import unfair

SMALL = {"n_estimators": 6, "max_leaf_nodes": 4}
GRID = {"constraints": ["demographic_parity"], "max_gap": [0.3, 0.1, 0.02]}


def search(X, y, groups, estimator=None, **options):
    given_options = {"param_grid": GRID, "n_resamples": 100, "tolerance": 0.05, **options}
    if estimator is None:
        estimator = FairBoostClassifier(**SMALL)
    return find_alternatives(estimator, X, y, sensitive_features=groups, **given_options)


def frame(n_rows=1200, seed=0):
    """Rows with a number of their own, a category and text as groups and labels."""
    X, y, groups = unfair(n_rows, seed=seed)
    table = pd.DataFrame(X, columns=["merit", "zone", "noise"])
    table["branch"] = pd.Categorical(np.array(["north", "south"])[np.arange(n_rows) % 2])
    table["row"] = np.arange(n_rows, dtype=float)
    return table, np.where(y > 0, "yes", "no"), np.where(groups, "men", "women")


@pytest.fixture(scope="module")
def found():
    return search(*frame())


# The protocol


def test_the_three_parts(found):
    _, y, groups = frame()
    rows = found.rows
    assert [len(rows[name]) for name in ("training", "selection", "test")] == [600, 300, 300]
    assert (np.sort(np.concatenate(list(rows.values()))) == np.arange(1200)).all()
    shares = pd.crosstab(pd.Series(groups), pd.Series(y), normalize=True)
    for part in rows.values():
        part_shares = pd.crosstab(pd.Series(groups[part]), pd.Series(y[part]), normalize=True)
        assert np.abs(part_shares - shares).to_numpy().max() < 0.01
    held_out = fair_train_test_split(np.arange(1200), y, groups, test_size=0.25, random_state=0)[1]
    assert (np.sort(held_out) == rows["test"]).all()


def test_candidates_are_fitted_on_training_rows_alone(monkeypatch):
    """Every row has a number as a feature, and each fit tells which ones it was given."""
    X, y, groups = frame()
    seen, fits = set(), []
    original = FairBoostClassifier._fit_prepared

    def spy(self, prepared, *more):
        column = list(prepared.feature_names).index("row")
        seen.update(prepared.sample.X[:, column].astype(int).tolist())
        fits.append(self.constraints)
        return original(self, prepared, *more)

    monkeypatch.setattr(FairBoostClassifier, "_fit_prepared", spy)
    found = search(X, y, groups)
    assert found.chosen is not None
    assert fits == ["demographic_parity"] * 5  # plain, three candidates, the chosen one again
    assert seen == set(found.rows["training"].tolist())


class Watched(LogisticRegression):
    """Records the numbers of the rows that it is given."""

    log = []  # noqa: RUF012

    def fit(self, X, y):
        self.log.append(("fit", X["row"].astype(int).tolist()))
        return super().fit(self._read(X), y)

    def _read(self, X):
        return X[["merit", "zone", "noise"]].to_numpy()

    def predict(self, X):
        self.log.append(("predict", X["row"].astype(int).tolist()))
        return super().predict(self._read(X))

    def predict_proba(self, X):
        self.log.append(("predict", X["row"].astype(int).tolist()))
        return super().predict_proba(self._read(X))


def test_an_own_plain_model_sees_the_test_rows_last(monkeypatch):
    """And a candidate is measured between its selection and its test rows."""
    Watched.log.clear()
    original = module._measure_batch

    def spy(*arguments):
        Watched.log.append(("candidates", []))
        return original(*arguments)

    monkeypatch.setattr(module, "_measure_batch", spy)
    found = search(*frame(), Watched(), tolerance=0.3)
    rows = {name: part.tolist() for name, part in found.rows.items()}
    steps = [
        (what, next((n for n, part in rows.items() if part == given), ""))
        for what, given in Watched.log
    ]
    assert steps[0] == ("fit", "training")
    between = steps.index(("candidates", ""))
    assert {part for _, part in steps[1:between]} == {"selection"}
    assert set(steps[between + 1 :]) == {("predict", "test")}
    assert isinstance(found.plain, Watched)
    assert isinstance(found.chosen, FairBoostClassifier)


@pytest.mark.parametrize("part", ["selection", "test"])
def test_other_rows_change_no_model(found, part):
    X, y, groups = frame()
    changed = X.copy()
    rows = found.rows[part]
    noise = np.random.default_rng(5).normal(size=(len(rows), 3))
    changed.loc[rows, ["merit", "zone", "noise"]] += noise
    other = search(changed, y, groups)
    assert (found.plain.predict_proba(X) == other.plain.predict_proba(X)).all()
    if part == "test":
        pd.testing.assert_frame_equal(found.table, other.table)
        assert (found.chosen.predict_proba(X) == other.chosen.predict_proba(X)).all()
        assert not found.test.equals(other.test)


def test_test_rows_that_are_given():
    _, y, groups = frame()
    last = np.arange(len(y)) >= 0.7 * len(y)
    rows = split_in_three(y, groups, 0.25, 0.9, 0, last)
    assert rows["test"].tolist() == np.flatnonzero(last).tolist()
    assert sorted([*rows["training"], *rows["selection"]]) == np.flatnonzero(~last).tolist()
    assert len(rows["selection"]) == pytest.approx(0.25 * len(y), abs=4)
    for wrong in (last[1:], last.astype(int)):
        with pytest.raises(ValueError, match="test_rows must hold a boolean for each of the"):
            split_in_three(y, groups, 0.25, 0.25, 0, wrong)
    for few in (np.zeros(len(y), dtype=bool), np.arange(len(y)) >= 0.1 * len(y)):
        with pytest.raises(ValueError, match=r"test_rows holds (0|90) % of the rows; it must"):
            split_in_three(y, groups, 0.25, 0.25, 0, few)


def test_categories_of_other_rows_are_unknown():
    X, y, groups = frame()
    rows = split_in_three(y, groups, 0.25, 0.25, 0)
    X["branch"] = X["branch"].astype(str)
    X.loc[rows["selection"][:40], "branch"] = "east"
    X.loc[rows["test"][:40], "branch"] = "west"
    found = search(X.assign(branch=X["branch"].astype("category")), y, groups)
    for model in (found.plain, found.chosen):
        known = model.encoding_.categories[list(X.columns).index("branch")]
        assert known.tolist() == ["north", "south"]


def test_the_chosen_model_is_the_one_that_was_measured(found):
    X, y, groups = frame()
    rows = found.rows["selection"]
    for model, row in ((found.plain, 0), (found.chosen, int(np.argmax(found.table["chosen"])))):
        measured = found.table.iloc[row]
        predicted, score = model.predict(X.iloc[rows]), model.predict_proba(X.iloc[rows])[:, 1]
        assert measured["roc_auc"] == pytest.approx(roc_auc_score(y[rows], score))
        assert measured["score"] == measured["roc_auc"]
        assert measured["accuracy"] == pytest.approx(accuracy_score(y[rows], predicted))
        assert measured["ks"] == pytest.approx(metrics.ks_statistic(y[rows], score))
        named = {"sensitive_features": groups[rows]}
        gap = metrics.demographic_parity_difference(y[rows], predicted, **named)
        assert measured["gap"] == pytest.approx(gap)
        ratios = metrics.adverse_impact_ratio(predicted, reference="men", pos_label="yes", **named)
        assert measured["adverse_impact_ratio"] == pytest.approx(ratios["women"])
        differences = metrics.standardized_mean_difference(score, reference="men", **named)
        assert measured["standardized_mean_difference"] == pytest.approx(differences["women"])
        assert (measured["impact_group"], measured["difference_group"]) == ("women", "women")


def test_the_plain_model_is_beside_the_chosen_one(found):
    """Its price is that on the test rows."""
    X, y, _ = frame()
    rows = found.rows["test"]
    chosen, price = found.chosen, found.chosen.price_
    assert chosen.baseline_ is found.plain
    assert (price.rows, price.n_rows) == ("test rows", len(rows))
    for scores, model, name in (
        (price.model, chosen, "chosen"),
        (price.plain, found.plain, "plain"),
    ):
        assert scores.accuracy == pytest.approx(np.mean(model.predict(X.iloc[rows]) == y[rows]))
        assert scores.auc == pytest.approx(found.test.loc["roc_auc", name])


def margins_of_a_loose_bound(estimator, n_rows=1200, **options):
    """Margins of the plain model and of its trees under a limit that every model keeps."""
    X, y, groups = frame(n_rows)
    bound = {"constraints": "demographic_parity", "max_gap": 1.0, **options}
    grid = {name: [value] for name, value in bound.items()}
    found = search(X, y, groups, estimator, param_grid=grid)
    rows = found.rows["training"]
    loose = clone(estimator).set_params(random_state=found.plain.random_state, **bound)
    loose.fit(X.iloc[rows], y[rows], sensitive_features=groups[rows])
    return found, found.plain.decision_function(X), loose.decision_function(X)


@pytest.mark.parametrize(
    "estimator",
    [
        FairBoostClassifier(**SMALL),
        FairBoostClassifier(**SMALL, random_state=3, selection_rate=0.3),
        FairBoostClassifier(**SMALL, early_stopping=True),
    ],
    ids=["threshold", "selection rate", "early stopping"],
)
def test_the_plain_model_learns_from_as_many_rows_as_candidates(estimator):
    """A candidate whose limit says nothing is the plain model."""
    found, plain, loose = margins_of_a_loose_bound(estimator)
    assert np.abs(plain - loose).max() < 1e-9
    assert found.table["held_out"].tolist() == [0.25, 0.25]
    for name in ("roc_auc", "gap", "ks"):
        assert found.table[name].iloc[1] == pytest.approx(found.table[name].iloc[0], abs=1e-9)


def test_a_limit_that_bounds_nothing_is_no_alternative():
    """Of the many rounds an early one is best; both models must be free to keep it."""
    X, y, groups = frame()
    estimator = FairBoostClassifier(n_estimators=100, random_state=0)
    grid = {"constraints": ["demographic_parity"], "max_gap": [0.9]}
    found = search(X, y, groups, estimator, param_grid=grid, tolerance=0.9)
    assert found.outcome is SearchOutcome.NONE
    assert found.table["gap"].iloc[1] == pytest.approx(found.table["gap"].iloc[0], abs=1e-9)
    assert found.plain.booster_.num_trees() == found.plain.history_.n_kept < 50
    rows = found.rows["training"]
    trees = FairBoostClassifier(None, n_estimators=100, validation_fraction=0.25, random_state=0)
    trees.fit(X.iloc[rows], y[rows], sensitive_features=groups[rows])
    *_, last = itertools.islice(trees.staged_decision_function(X), found.plain.history_.n_kept)
    assert np.abs(found.plain.decision_function(X) - last).max() < 1e-9, "trees of no constraint"


def test_a_candidate_without_a_constraint_does_not_change_the_plain_model():
    X, y, groups = frame()
    estimator = FairBoostClassifier(n_estimators=40, random_state=0)
    alone, first = (
        search(X, y, groups, estimator, param_grid={"constraints": which, "max_gap": [0.9]})
        for which in (["demographic_parity"], [None, "demographic_parity"])
    )
    assert first.plain.history_.n_kept == alone.plain.history_.n_kept < 40
    assert first.table["gap"].iloc[0] == pytest.approx(alone.table["gap"].iloc[0], abs=1e-9)


def test_too_few_rows_to_hold_any_out():
    """A quarter of the smaller group in training has fewer than ten rows."""
    found, plain, loose = margins_of_a_loose_bound(FairBoostClassifier(**SMALL), n_rows=140)
    assert found.table["held_out"].tolist() == [0, 0]
    assert np.abs(plain - loose).max() < 1e-9


def test_a_share_that_the_grid_names():
    estimator = FairBoostClassifier(**SMALL)
    found, plain, loose = margins_of_a_loose_bound(estimator, validation_fraction=0.4)
    assert found.table["held_out"].tolist() == [0.4, 0.4]
    assert np.abs(plain - loose).max() < 1e-9


def test_which_rows_models_learn_from_is_told(found):
    def told(found):
        return " ".join(alternatives_content(found, Source("d"), "yes")["protocol"])

    assert "Every model, the plain one too, set 25 % of the training rows aside" in told(found)
    own = search(*frame(), Watched(), tolerance=0.3)
    assert own.table["held_out"].tolist() == [0, 0.25, 0.25, 0.25]
    assert not hasattr(own.chosen, "baseline_")
    assert "The plain model learnt from all training rows. Candidates set 25 %" in told(own)
    none = search(*frame(), FairBoostClassifier(**SMALL, validation_fraction=None))
    assert "Every model learnt from all training rows." in told(none)


def test_every_gap_has_an_exact_interval(found):
    X, y, groups = frame()
    rows = found.rows["selection"]
    assert (found.table["gap_low"] <= found.table["gap"]).all()
    assert (found.table["gap"] <= found.table["gap_high"]).all()
    chosen = int(np.argmax(found.table["chosen"]))
    for model, row in ((found.plain, 0), (found.chosen, chosen)):
        report = FairnessReport.from_predictions(
            y[rows], model.predict(X.iloc[rows]), sensitive_features=groups[rows], pos_label="yes"
        )
        gap = report.gaps.set_index("gap").loc["demographic_parity"]
        ends = found.table.iloc[row][["gap_low", "gap_high"]].tolist()
        assert ends == pytest.approx([gap["low"], gap["high"]])


def test_what_is_read_on_the_test_rows(found):
    X, y, groups = frame()
    rows = found.rows["test"]
    for name, model in (("plain", found.plain), ("chosen", found.chosen)):
        predicted = model.predict(X.iloc[rows])
        report = FairnessReport.from_predictions(
            y[rows], predicted, sensitive_features=groups[rows], pos_label="yes"
        )
        pd.testing.assert_frame_equal(found.reports[name].gaps, report.gaps)
        gap = report.gaps.set_index("gap").loc["demographic_parity"]
        mine = found.test.loc["gap", [name, f"{name}_low", f"{name}_high"]].tolist()
        assert mine == [gap["estimate"], gap["low"], gap["high"]]
        area = roc_auc_score(y[rows], model.predict_proba(X.iloc[rows])[:, 1])
        assert found.test.loc["roc_auc", name] == pytest.approx(area)
        of_model = found.test_groups[found.test_groups["model"] == name].set_index("group")
        ratios = metrics.adverse_impact_ratio(
            predicted, sensitive_features=groups[rows], reference="men", pos_label="yes"
        )
        assert of_model["adverse_impact_ratio"].to_dict() == pytest.approx(ratios.to_dict())
        low, high = (of_model[f"adverse_impact_ratio_{end}"] for end in ("low", "high"))
        assert low["women"] < ratios["women"] < high["women"]
    change = found.test.eval("chosen - plain - difference")
    assert change.abs().max() < 1e-12
    assert (found.test["difference_low"] <= found.test["difference_high"]).all()


# Ranking


@given(
    points=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans(), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_ranks_against_brute_force(points):
    gap, score, eligible, first = (np.array(column) for column in zip(*points, strict=True))
    ranks = rank_by_gap(gap / 8, score / 8, eligible.astype(bool), first.astype(bool))

    def place(i):
        return not first[i], gap[i], -score[i], i

    order = sorted(np.flatnonzero(eligible).tolist(), key=place)
    expected = [order.index(i) + 1 if eligible[i] else 0 for i in range(len(points))]
    assert ranks.tolist() == expected


def test_last_bits_decide_nothing():
    gap, score = np.array([0.3, 0.1 + 0.2, 0.3]), np.array([0.5, 0.6 + 1e-13, 0.6])
    assert rank_by_gap(gap, score, *np.ones((2, 3), dtype=bool)).tolist() == [3, 1, 2]


@pytest.mark.parametrize("tolerance", [0.0, 0.03, 0.2])
def test_the_table_against_brute_force(tolerance):
    grid = {"constraints": ["demographic_parity"], "max_gap": [0.4, 0.2, 0.1, 0.05, 0.0]}
    found = search(*frame(), tolerance=tolerance, param_grid=grid)
    rows = found.table.to_dict("records")
    plain, candidates = rows[0], rows[1:]
    assert plain["params"] == {}
    assert [one["params"]["max_gap"] for one in candidates] == grid["max_gap"]
    counted = []
    for number, one in enumerate(candidates):
        assert one["within_tolerance"] == (one["score"] >= plain["score"] - tolerance)
        spare = one["score"] - (plain["score"] - tolerance)
        ratio = len(found.rows["selection"]) / len(found.rows["test"])
        later = one["score_error"] * np.sqrt(ratio)
        both = np.hypot(one["score_error"], later)
        assert one["with_room"] == (spare >= 1.959964 * later + 0.841621 * both)
        if one["within_tolerance"] and one["useful"]:
            counted.append(number)

    def place(i):
        one = candidates[i]
        first = one["with_room"] and one["gap"] < plain["gap"]
        return not first, one["gap"], -one["score"], i

    best = sorted(counted, key=place)
    ranks = found.table["rank"].tolist()[1:]
    assert [ranks[i] for i in best] == list(range(1, len(best) + 1))
    assert sum(pd.notna(rank) for rank in ranks) == len(best)
    chosen = [i for i, one in enumerate(candidates) if one["chosen"]]
    smaller = best and candidates[best[0]]["gap"] < plain["gap"]
    assert chosen == (best[:1] if smaller else [])
    for one in rows:
        beaten = any(
            other["useful"]
            and other["gap"] <= one["gap"]
            and other["score"] >= one["score"]
            and (other["gap"], -other["score"]) != (one["gap"], -one["score"])
            for other in rows
        )
        assert one["pareto"] == (one["useful"] and not beaten)
    ranked = found.ranked
    assert ranked.index[0] == 0
    assert ranked["rank"].iloc[1 : 1 + len(best)].tolist() == list(range(1, len(best) + 1))


def test_of_equal_candidates_the_first_is_chosen():
    twice = [{**GRID, "max_gap": [0.1]}, {**GRID, "max_gap": [0.1]}]
    found = search(*frame(), param_grid=twice)
    assert found.table["rank"].tolist()[1:] == [1, 2]
    assert found.table["chosen"].tolist() == [False, True, False]


# What is found


def two_features(n_rows=4000, seed=0):
    """Two features that tell as much about the label; one of them has the group as its noise."""
    rng = np.random.default_rng(seed)
    groups, merit = rng.integers(2, size=n_rows), rng.normal(size=n_rows)
    y = (merit + rng.normal(size=n_rows) > 0).astype(int)
    with_group = merit + 0.6 * (2 * groups - 1)
    without = merit + 0.6 * rng.normal(size=n_rows)
    return np.column_stack([with_group, without]), y, groups


def test_a_model_that_is_as_good_and_fairer_is_found():
    estimator = FairBoostClassifier(n_estimators=30, max_leaf_nodes=6)
    found = search(*two_features(), estimator, tolerance=0.05, n_resamples=300)
    assert found.outcome is SearchOutcome.FOUND
    assert found.test.loc["roc_auc", "difference_low"] >= -0.05
    gap, area = found.test.loc["gap"], found.test.loc["roc_auc"]
    assert gap["chosen"] < 0.6 * gap["plain"]
    assert area["chosen"] > area["plain"] - 0.03
    importances = [model.feature_importances_ for model in (found.plain, found.chosen)]
    shares = [importance[0] / importance.sum() for importance in importances]
    assert shares[1] < shares[0]  # less of the feature that tells the group
    assert "A less discriminatory alternative was found" in str(found)


def test_none_exists_and_this_is_said():
    """A model without an error has the gap of the labels, and a smaller one needs errors."""
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=1500)
    x = (rng.normal(size=1500) + groups).round(1)
    y = (x > 0.5).astype(int)
    found = search(x[:, None], y, groups, scoring="accuracy", tolerance=0.0)
    assert found.table["score"].iloc[0] == 1
    assert found.outcome is SearchOutcome.NONE
    assert found.chosen is None
    assert not found.table["chosen"].any()
    assert list(found.reports) == ["plain"]
    assert found.test["chosen"].isna().all()
    assert found.summary()[0].startswith("No less discriminatory alternative was found")
    assert "0 of these have a smaller" in found.summary()[1]


def test_a_difference_within_the_noise_is_called_so():
    """The groups are drawn at random, so no model is more or less discriminatory."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = (X[:, 0] + rng.normal(size=3000) > 0).astype(int)
    found = search(X, y, rng.integers(2, size=3000), param_grid={**GRID, "random_state": range(4)})
    assert found.outcome is SearchOutcome.UNCERTAIN
    gap = found.test.loc["gap"]
    assert gap["difference_low"] <= 0 <= gap["difference_high"]
    assert "within the noise" in found.summary()[0]


def outcome(gap, score, tolerance=0.01):
    columns = ["chosen", "difference_low", "difference_high"]
    test = pd.DataFrame([[0.5, *gap], [0.5, *score]], ["gap", "roc_auc"], columns)
    plan = Plan(STATISTICS["demographic_parity"], "roc_auc", tolerance, 0, 0.95, 100, 0)
    return comparison._outcome(test, plan)


def test_outcomes():
    assert outcome((-0.2, -0.1), (-0.01, 0.0)) is SearchOutcome.FOUND
    assert outcome((-0.2, -0.1), (-0.02, 0.0)) is SearchOutcome.SCORE_UNCERTAIN
    assert outcome((-0.2, -0.1), (np.nan, np.nan)) is SearchOutcome.SCORE_UNCERTAIN
    assert outcome((np.nan, np.nan), (0.0, 0.0)) is SearchOutcome.UNCERTAIN
    assert outcome((-0.2, -0.1), (-0.03, -0.02)) is SearchOutcome.COSTLY
    assert outcome((-0.2, 0.0), (0.0, 0.0)) is SearchOutcome.UNCERTAIN
    assert outcome((0.1, 0.2), (0.0, 0.0)) is SearchOutcome.NOT_CONFIRMED
    assert all(one.sentence.endswith(".") for one in SearchOutcome)


def test_a_score_beyond_the_tolerance_is_said():
    score = pd.Series({"difference_low": -0.03, "difference_high": -0.02})
    assert comparison._side(score, 0.01) == "more than the tolerance of 0.01 below"
    assert comparison._side(score, 0.025).startswith("which does not tell whether")
    assert comparison._side(score, 0.03) == "not more than the tolerance of 0.03 below"


# The difference between two gaps


def drawn(metric, rates, n_rows, rng):
    """Two models whose predictions are drawn by group, with the same scores; labels are coins."""
    sizes = np.broadcast_to(n_rows, len(rates[0]))
    codes = np.repeat(np.arange(len(sizes)), sizes)
    groups, score = Groups(codes, list(range(len(sizes)))), rng.random(len(codes))
    actual = rng.random(len(codes)) < 0.5
    return [
        ModelFigures(
            actual,
            rng.random(len(codes)) < np.array(of_model)[codes],
            score,
            groups,
            STATISTICS[metric],
            0,
        )
        for of_model in rates
    ]


def drawn_pairs(metric, rates, n_rows, rng):
    models = drawn(metric, rates, n_rows, rng)
    return tuple(find_widest_pair(STATISTICS[metric], model.counts()) for model in models)


@pytest.mark.slow
def test_models_without_a_gap_are_rarely_told_apart():
    """The plain model selects more, so its rates are noisier and its gap in a sample is larger.

    The control resamples the gaps themselves.
    """
    rng, n_runs = np.random.default_rng(0), 40
    naive = 0
    rates = [0.5] * 12, [0.05] * 12
    plan = Plan(STATISTICS["demographic_parity"], "roc_auc", 0.01, 0, 0.95, 100, 0)
    outcomes = []
    for _ in range(n_runs):
        widest = drawn_pairs("demographic_parity", rates, 100, rng)
        figures = drawn("demographic_parity", rates, 100, rng)
        totals = dict(zip(("plain", "chosen"), (one.totals() for one in figures), strict=True))
        table = pd.DataFrame(totals, index=TOTALS)
        resampled = resample(figures, 100, 0).totals
        comparison._add_differences(table, figures, [*widest], resampled, plan)
        outcomes.append(comparison._outcome(table, plan))
        change = np.diff(resampled[:, :, TOTALS.index("gap")], axis=1)
        naive += not np.quantile(change, 0.025) <= 0 <= np.quantile(change, 0.975)
    wrong = sum(outcome is not SearchOutcome.UNCERTAIN for outcome in outcomes)
    assert wrong <= stats.binom.ppf(0.999, n_runs, 0.05)
    assert naive > stats.binom.ppf(0.999, n_runs, 0.05), "the control should fail"


@pytest.mark.parametrize(
    ("metric", "rates", "n_rows"),
    [
        ("demographic_parity", ([0.3] * 8, [0.1] * 8), 60),
        ("demographic_parity", ([0.3, 0.2], [0.15, 0.05]), 300),
        ("demographic_parity", ([0.4, 0.3, 0.2], [0.25, 0.15, 0.05]), 200),
        ("demographic_parity", ([0.08, 0.0, 0.05], [0.05, 0.05, 0.13]), [1000, 1000, 10]),
        ("selection_ratio", ([0.3, 0.2], [0.15, 0.1]), 300),
        ("equalized_odds", ([0.4, 0.2, 0.3], [0.25, 0.05, 0.15]), 300),
        ("accuracy_parity", ([0.3] * 4, [0.1] * 4), 100),
    ],
)
def test_the_interval_contains_a_difference_of_zero(metric, rates, n_rows):
    rng, n_runs = np.random.default_rng(1), 200
    misses = np.zeros(2)
    for run in range(n_runs):
        widest = drawn_pairs(metric, rates, n_rows, rng)
        models = drawn(metric, rates, n_rows, rng)
        low, high = gap_change_interval(*models, widest, 0.95, 200, run)
        misses += [low > 0, high < 0]
    assert misses.max() <= stats.binom.ppf(0.999, n_runs, 0.025)


def test_a_smaller_gap_of_two_groups_is_found():
    """As narrow as the normal interval of the one pair that there is."""
    rng, n_runs = np.random.default_rng(2), 20
    rates = [0.25, 0.08], [0.2, 0.13]
    for run in range(n_runs):
        widest = drawn_pairs("demographic_parity", rates, 3000, rng)
        models = drawn("demographic_parity", rates, 3000, rng)
        low, high = gap_change_interval(*models, widest, 0.95, 2000, run)
        shares = np.array(
            [[model.predicted[model.groups.codes == g] for g in (0, 1)] for model in models]
        )
        changes = shares[1].astype(float) - shares[0]
        change = changes[0].mean() - changes[1].mean()
        error = np.sqrt(changes.var(axis=1).sum() / 3000)
        assert (low, high) == pytest.approx(
            (change - 1.96 * error, change + 1.96 * error), abs=0.3 * error
        )
        assert high < 0


def test_a_smaller_gap_of_eight_groups_is_found():
    rng, n_runs = np.random.default_rng(3), 20
    rates = [0.3] * 4 + [0.1] * 4, [0.2] * 8
    highs = [
        gap_change_interval(
            *drawn("demographic_parity", rates, 500, rng),
            drawn_pairs("demographic_parity", rates, 500, rng),
            0.95,
            300,
            run,
        )[1]
        for run in range(n_runs)
    ]
    assert np.mean(np.array(highs) < 0) > 0.8


@pytest.mark.parametrize("metric", [*STATISTICS])
def test_the_interval_contains_what_was_found(metric):
    rng = np.random.default_rng(4)
    for n_groups in (2, 3, 6):
        rates = rng.random((2, n_groups))
        widest = drawn_pairs(metric, rates, 20, rng)
        models = drawn(metric, rates, 20, rng)
        low, high = gap_change_interval(*models, widest, 0.95, 200, 0)
        gaps = [STATISTICS[metric].value(model.counts()) for model in models]
        assert np.isnan(gaps).any() or low <= gaps[1] - gaps[0] <= high
        assert np.isnan([low, high]).all() == np.isnan(gaps).any()


@pytest.mark.parametrize("metric", ["demographic_parity", "selection_ratio", "equalized_odds"])
@pytest.mark.parametrize("turned", [(0,), (1,), (0, 1)])
def test_no_gap_falls_by_more_than_it_is(metric, turned):
    """Also where the pairs found on other rows differ the other way round on these."""
    rng = np.random.default_rng(5)
    models = drawn(metric, ([0.3, 0.2], [0.27, 0.23]), 300, rng)
    widest = [find_widest_pair(STATISTICS[metric], model.counts()) for model in models]
    for each in turned:
        pair = widest[each]
        widest[each] = pair._replace(highest=pair.lowest, lowest=pair.highest)
    low, high = gap_change_interval(*models, tuple(widest), 0.95, 500, 0)
    ends = [gap_interval(model.counts(), STATISTICS[metric], 0.95)[1] for model in models]
    assert -ends[0] <= low <= high <= ends[1]
    assert low < 0 < high


@pytest.mark.parametrize("metric", ["demographic_parity", "selection_ratio", "equalized_odds"])
def test_the_widest_pair_against_brute_force(metric):
    rng = np.random.default_rng(5)
    (model, _) = drawn(metric, rng.uniform(0.1, 0.9, (2, 5)), 50, rng)
    statistic, counts = STATISTICS[metric], model.counts()
    gaps = {}
    for number, rate in enumerate(statistic.rates):
        values = rate.values(counts)
        for a in range(5):
            for b in range(5):
                ratio = statistic.kind == "ratio"
                gaps[number, a, b] = 1 - values[b] / values[a] if ratio else values[a] - values[b]
    assert tuple(find_widest_pair(statistic, counts)) == max(gaps, key=gaps.get)
    assert max(gaps.values()) == pytest.approx(statistic.value(counts))


# Missing values


def with_one_missing(row, n_rows=1200):
    """Rows of which one misses a number that no other row misses."""
    X, y, groups = unfair(n_rows)
    X = X.copy()
    X[row, 1] = np.nan
    return X, y, groups


@pytest.mark.parametrize("part", ["training", "selection", "test"])
@pytest.mark.parametrize("kind", ["built-in", "pipeline"])
def test_a_missing_value_in_any_part(part, kind):
    _, y, groups = unfair(1200)
    place = split_in_three(y, groups, 0.25, 0.25, 0)[part][0]
    X, y, groups = with_one_missing(place)
    own = FairBoostClassifier(**SMALL)
    inner = FairProjClassifier(n_estimators=6, constraints=None)
    plain = own if kind == "built-in" else make_pipeline(FunctionTransformer(), inner)
    found = search(X, y, groups, plain, tolerance=0.3)
    assert found.chosen is not None
    rows = found.rows["test"]
    predicted, _ = found.chosen.predict_matrix(found.chosen.to_matrix(X[rows], missing="score"))
    assert found.test.loc["selection_rate", "chosen"] == pytest.approx(np.mean(predicted == 1))


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_missing_value_in_the_safety_rows(wrapped):
    X, y, groups = unfair(1200)
    boosted = FairBoostClassifier(**SMALL, constraints="demographic_parity")
    options = {"metric": "demographic_parity", "max_gap": 0.9}
    model = ConfirmedClassifier(
        make_pipeline(FunctionTransformer(), boosted) if wrapped else boosted, **options
    )
    place = model.fit(X, y, sensitive_features=groups).safety_rows_[0]
    X, y, groups = with_one_missing(place)
    model.fit(X, y, sensitive_features=groups)
    assert place in model.safety_rows_
    assert model.confirmed_


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc"])
def test_a_missing_value_in_one_fold(scoring):
    X, y, groups = with_one_missing(7)
    estimator = FairBoostClassifier(**SMALL, constraints="demographic_parity")
    for model in (estimator, make_pipeline(FunctionTransformer(), estimator)):
        name = "max_gap" if model is estimator else "fairboostclassifier__max_gap"
        search = GapSearchCV(
            model,
            max_gap=0.9,
            param_values=[0.1, 0.3],
            metric="demographic_parity",
            param_name=name,
            scoring=scoring,
            cv=3,
        )
        search.fit(X, y, sensitive_features=groups)
        assert search.best_params_[name] in (0.1, 0.3)
    frontier = fairness_frontier(
        estimator, X, y, sensitive_features=groups, param_values=[0.1, 0.3], cv=3
    )
    assert frontier.fits["accuracy"].notna().sum() == 6


# The grid, and other options


def test_the_default_grid():
    gaps = {"demographic_parity": 0.2, "selection_ratio": 0.5, "equal_opportunity": 0.1}
    grid = default_grid(STATISTICS["equal_opportunity"], gaps, FairBoostClassifier(random_state=3))
    first = grid[0]
    assert first["max_gap"] == [0.09, 0.08, 0.07, 0.06, 0.05, 0.04, 0.02, 0.005]
    assert [one["constraints"][0] for one in grid] == [
        *["equal_opportunity"] * 6,
        "demographic_parity",
        "selection_ratio",
    ]
    assert [one.get("random_state") for one in grid[:6]] == [[3]] * 3 + [[4]] * 3
    assert grid[1]["max_leaf_nodes"] == [15]
    assert grid[2]["learning_rate"] == [0.2]
    assert grid[-1]["max_gap"][0] == 0.45


@pytest.mark.slow
def test_the_default_grid_is_tried():
    found = search(*frame(), FairBoostClassifier(**SMALL), param_grid=None)
    assert len(found.table) == 1 + 8 * 6 + 8
    names = found.table["params"].iloc[1:].map(lambda params: params["constraints"])
    assert names.value_counts().to_dict() == {"demographic_parity": 48, "selection_ratio": 8}


def test_jobs_do_not_matter(found):
    other = search(*frame(), n_jobs=2)
    pd.testing.assert_frame_equal(found.table, other.table)
    pd.testing.assert_frame_equal(found.test, other.test)


def test_the_reference_and_the_positive_label():
    X, y, groups = frame()
    found = search(X, y, groups, reference="women", pos_label="no")
    assert found.reference == "women"
    assert found.plain.pos_label == "no"
    rows = found.rows["test"]
    ratios = metrics.adverse_impact_ratio(
        found.plain.predict(X.iloc[rows]),
        sensitive_features=groups[rows],
        reference="women",
        pos_label="no",
    )
    mine = found.test_groups.query("model == 'plain'").set_index("group")
    assert mine["adverse_impact_ratio"].to_dict() == pytest.approx(ratios.to_dict())
    assert search(X, y, groups).reference == "men"  # selected most often


@pytest.mark.parametrize("kind", ["bare", "pipeline", "search"])
def test_the_positive_label_of_an_own_model_holds_for_candidates_too(kind):
    """However deep inside the model it is named."""
    X, y, groups = frame()
    kept = np.flatnonzero((y == "no") | (np.arange(len(y)) % 2 == 0))
    X, y, groups = X.iloc[kept], y[kept], groups[kept]
    inner = FairProjClassifier(n_estimators=6, constraints=None, pos_label="no")
    estimator = {
        "bare": inner,
        "pipeline": make_pipeline("passthrough", inner),
        "search": GridSearchCV(inner, {"n_estimators": [6]}, cv=2),
    }[kind]
    found = search(X, y, groups, estimator, tolerance=0.3)
    assert found.chosen.pos_label == "no"
    chosen = int(np.argmax(found.table["chosen"]))
    for part, measured in (
        ("selection", found.table["selection_rate"].iloc[[0, chosen]]),
        ("test", found.test.loc["selection_rate", ["plain", "chosen"]]),
    ):
        rows = X.iloc[found.rows[part]]
        shares = [np.mean(model.predict(rows) == "no") for model in (found.plain, found.chosen)]
        assert measured.tolist() == pytest.approx(shares)
        assert abs(shares[0] - 0.5) > 0.05  # so that the other label would be noticed


def test_several_groups_and_columns():
    X, y, groups = unfair(2000, n_groups=3)
    crossed = {"sex": np.where(groups == 1, "w", "m"), "old": groups > 1}
    found = search(X, y, crossed, metric="equal_opportunity", scoring="accuracy")
    assert found.metric == "equal_opportunity"
    assert len(found.test_groups) == 3 * len(found.reports)
    assert (found.table["score"] == found.table["accuracy"]).all()


LOWER = "The ratio is lower with the chosen model: look at the selection rates of both."
LEAST = "A smallest ratio above 1 means that men is selected least on the test rows with {}; to"


@pytest.mark.parametrize(
    ("chosen", "plain", "expected"),
    [
        (0.7, 0.6, []),
        (0.6, 0.7, [LOWER]),
        (1.004, 1.02, [LEAST.format("the chosen model and the plain one")]),
        (1.02, 0.9, [LEAST.format("the chosen model")]),
        (0.9, 1.02, [LEAST.format("the plain one"), LOWER]),
        (1.0, 1.0, []),
    ],
)
def test_how_ratios_are_to_be_read(chosen, plain, expected):
    ratios = {"chosen": chosen, "plain": plain}
    name = "adverse_impact_ratio"
    rows = [
        {"model": model, "group": group, name: ratio, f"{name}_low": 0.5, f"{name}_high": 1.5}
        for model, least in ratios.items()
        for group, ratio in (("men", 1.0), ("women", least), ("others", least + 0.1))
    ]
    sentence = comparison._impact(SimpleNamespace(test_groups=pd.DataFrame(rows), reference="men"))
    assert f"is {chosen:.3f} (0.500 to 1.500) for women with the chosen model" in sentence
    assert [text for text in (LOWER, "is selected least") if text in sentence] == [
        text for text in (LOWER, "is selected least") if text in " ".join(expected)
    ]
    assert all(text in sentence for text in expected)


def test_words():
    assert describe({}) == "plain model"
    params = {"constraints": "equal_opportunity", "max_gap": 0.05, "max_leaf_nodes": None}
    assert describe({**params, "learning_rate": 0.1, "random_state": 3}) == (
        "equal opportunity within 0.05, learning rate 0.1, seed 3"
    )
    several = {"constraints": ["accuracy_parity", "selection_ratio"], "max_gap": [0.1, 0.2]}
    assert describe({**several, "subsample": 0.5}) == (
        "accuracy parity and selection ratio within [0.1, 0.2], subsample=0.5"
    )
    assert describe({"constraints": None, "max_gap": 1.0}) == "no constraint"


def test_an_interrupt_says_what_was_done(monkeypatch):
    original = module.SeparateRows.fit

    def interrupted(self, **parameters):
        if parameters["max_gap"] == 0.02:
            raise KeyboardInterrupt
        return original(self, **parameters)

    monkeypatch.setattr(module.SeparateRows, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt, match="2 of 3 candidates were measured"):
        search(*frame())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scoring": "f1"}, "scoring='f1' is unknown; use one of 'roc_auc', 'accuracy'"),
        ({"tolerance": -0.1}, "tolerance=-0.1 must be 0 or more and below 1"),
        ({"metric": "parity"}, "metric='parity' is unknown"),
        ({"reference": "nobody"}, "reference='nobody' is not a group; the groups are 'men'"),
        ({"test_size": 0.0}, "test_size=0.0 must lie between 0 and 1"),
        ({"test_size": 0.5, "selection_size": 0.5}, "leave no rows to train on"),
        ({"confidence": 1.0}, "confidence must lie between 0 and 1"),
        ({"n_resamples": 10}, "n_resamples=10 must be 100 or more"),
        ({"param_grid": {"max_bins": [10]}}, "param_grid varies 'max_bins', which all candidates"),
        ({"param_grid": {"depth": [1]}}, "Invalid parameter 'depth'"),
        ({"pos_label": "maybe"}, "pos_label='maybe' is not one of the labels"),
        ({"estimator": LinearSVC()}, "LinearSVC has no predict_proba"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        search(*frame(400), **options)


def test_rows_that_do_not_match_are_refused():
    X, y, groups = frame(300)
    with pytest.raises(ValueError, match="X has 200 rows and y has 300"):
        search(X[:200], y, groups)
    with pytest.raises(ValueError, match="sensitive_features has 200 rows and y has 300"):
        search(X, y, groups[:200])
    shuffled = pd.Series(groups).sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match="indexes of X and sensitive_features have labels in"):
        search(X, y, shuffled)


def test_one_group_is_refused():
    X, y, _ = frame(300)
    with pytest.raises(ValueError, match=r"holds one group only \(all\); a gap needs two"):
        search(X, y, np.full(300, "all"))


def test_a_plain_model_that_says_the_same_to_everyone_is_refused():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(2000, 2)), rng.integers(2, size=2000)
    y = (rng.random(2000) < 0.05).astype(int)
    with pytest.raises(ValueError, match="the plain model does not beat chance"):
        search(X, y, groups)


def test_the_guide(capsys):
    """Its code runs, with an own pipeline as the plain model."""
    text = (Path(__file__).parents[1] / "docs" / "guide" / "alternatives.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names = {}
    exec(compile(block, "alternatives.md", "exec"), names)
    found = names["found"]
    assert len(found.table) == 7
    assert isinstance(found.plain, Pipeline)
    assert found.outcome.sentence in capsys.readouterr().out


def test_the_guide_names_the_default_grid_and_the_outcomes():
    text = (Path(__file__).parents[1] / "docs" / "guide" / "alternatives.md").read_text("utf-8")
    shares = [f"{100 * share:g}" for share in module.TARGET_SHARES]
    assert f"{', '.join(shares[:-1])} and {shares[-1]} %" in " ".join(text.split())
    assert all(f"| {outcome.value} |" in text for outcome in SearchOutcome)
