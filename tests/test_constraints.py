"""Constraint features, as the paper's appendix A writes them."""

import numpy as np
import pytest

from conftest import make_sample
from fairproj import FairProjClassifier, constraints
from fairproj.boosting.moments import make_moments
from fairproj.constraints import (
    RATES,
    STATISTICS,
    AllOf,
    FunctionConstraint,
    Rate,
    RateRatio,
    Requirement,
    Statistic,
    find_constraint,
    find_statistic,
    limits_of,
    register_statistic,
    statistic_names,
)
from fairproj.data.cells import CellCounts, Cells
from fairproj.data.checks import Groups

CONSTRAINED = statistic_names(constraints=True)
DIFFERENCES = [name for name in CONSTRAINED if find_statistic(name).kind == "difference"]
CELLS = Cells.of(
    np.array([-1.0, 1.0, -1.0, 1.0]),
    Groups(np.array([0, 0, 1, 1]), ["men", "women"]),
    np.array(["no", "yes"]),
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [  # rows: men/no, men/yes, women/no, women/yes
        ("demographic_parity", [[-1], [-1], [1], [1]]),
        ("equal_opportunity", [[0], [-1], [0], [1]]),
        ("true_positive_rate_parity", [[0], [-1], [0], [1]]),
        ("false_positive_rate_parity", [[-1], [0], [1], [0]]),
        ("equalized_odds", [[0, -1], [-1, 0], [0, 1], [1, 0]]),
        ("accuracy_parity", [[-1], [-1], [1], [1]]),
        ("accuracy", [[-1], [-1], [1], [1]]),
    ],
)
def test_two_groups(name, expected):
    features = find_statistic(name).constraint.features(CELLS)
    np.testing.assert_array_equal(features, expected)


# The registry


@pytest.fixture
def registry(monkeypatch):
    """Copies of both registries, which the test may change."""
    monkeypatch.setattr(constraints, "RATES", dict(RATES))
    monkeypatch.setattr(constraints, "STATISTICS", dict(STATISTICS))
    return constraints


RECALL = Rate("true_negative_rate", "negative", "correct")
SPECIFICITY = Statistic("specificity", (RECALL, RATES["accuracy"]), "gap", ("tnr",))


def test_a_registered_statistic_is_known_by_all_its_names(registry):
    register_statistic(SPECIFICITY)
    register_statistic(SPECIFICITY)  # the same again changes nothing
    assert find_statistic("specificity") is find_statistic("tnr") is SPECIFICITY
    assert registry.RATES == RATES | {"true_negative_rate": RECALL}
    assert list(registry.STATISTICS) == [*STATISTICS, "specificity"]


REFUSED = {
    "name of another": (
        Statistic("equalized_odds", (RECALL,), ""),
        "the name 'equalized_odds' is taken by the statistic 'equalized_odds', which is different",
    ),
    "same rates, other words": (
        Statistic("equalized_odds", STATISTICS["equalized_odds"].rates, "other words"),
        "the name 'equalized_odds' is taken",
    ),
    "alias of another": (
        Statistic("accuracy", (RECALL,), ""),
        "the name 'accuracy' is taken by the statistic 'accuracy_parity', which is different",
    ),
    "alias is the name of another": (
        Statistic("own", (RECALL,), "", ("fresh", "demographic_parity")),
        "the name 'demographic_parity' is taken by the statistic 'demographic_parity'",
    ),
    "alias is an alias of another": (
        Statistic("own", (RECALL,), "", ("fresh", "accuracy")),
        "the name 'accuracy' is taken by the statistic 'accuracy_parity'",
    ),
    "no rates": (Statistic("own", (), ""), "the statistic 'own' compares no rates"),
    "empty name": (Statistic("", (RECALL,), ""), "a name or alias of .* is empty"),
    "blank alias": (Statistic("own", (RECALL,), "", (" ",)), "a name or alias of .* is empty"),
    "rate named count": (
        Statistic("own", (RECALL, Rate("count")), ""),
        "a rate cannot be named 'count', since",
    ),
    "rate named rows": (
        Statistic("own", (RECALL, Rate("rows")), ""),
        "a rate cannot be named 'rows', since",
    ),
    "rate without a name": (
        Statistic("own", (RECALL, Rate("")), ""),
        "a rate cannot be named '', since",
    ),
    "rate of another meaning": (
        Statistic("own", (RECALL, Rate("accuracy")), ""),
        "the rate 'accuracy' is known with another meaning, .*outcome='correct'",
    ),
    "unknown kind": (
        Statistic("own", (RECALL,), "", kind="quotient"),
        "kind='quotient' is unknown; use 'difference' or 'ratio'",
    ),
    "two rates of one name": (
        Statistic("own", (RECALL, Rate("fresh"), Rate("fresh", "positive")), ""),
        "the rate 'fresh' is known with another meaning, .*event='all'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_statistic_leaves_the_registry_as_it_was(case, registry):
    statistic, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        register_statistic(statistic)
    assert list(registry.RATES.items()) == list(RATES.items())
    assert list(registry.STATISTICS.items()) == list(STATISTICS.items())


@pytest.mark.parametrize("label", [0, 1])
def test_equalized_odds_is_unknown_without_rows_of_either_label(label):
    size = np.full((2, 2), 10.0)
    counts = CellCounts(size, size / 2)
    assert STATISTICS["equalized_odds"].value(counts) == 0
    size[1, label] = 0
    counts = CellCounts(size, np.array([[1.0, 2.0], [5.0, 5.0]]) * (size > 0))
    assert np.isnan(STATISTICS["equalized_odds"].value(counts))


# The selection ratio


@pytest.mark.parametrize(
    ("selected", "shortfall"),
    [
        ([5, 5], 0.0),
        ([8, 10], 0.2),
        ([10, 4, 8], 0.6),
        ([0, 3], 1.0),
        ([0, 0], 1.0),  # 0/0 does not meet the rule
    ],
)
def test_the_selection_ratio_is_a_shortfall(selected, shortfall):
    predicted = np.column_stack([np.zeros(len(selected)), selected])
    counts = CellCounts(np.full(predicted.shape, 10.0), predicted)
    assert STATISTICS["selection_ratio"].value(counts) == pytest.approx(shortfall, abs=1e-15)
    counts.size[0] = counts.predicted[0] = 0  # a group without rows
    assert np.isnan(STATISTICS["selection_ratio"].value(counts))


def test_a_ratio_of_one_unknown_rate_is_unknown():
    rates = np.array([[0.0, 0.4, np.nan], [0.0, 0.5, 0.5]])
    np.testing.assert_allclose(Requirement(RATES["accuracy"], "ratio").gap(rates), [1, 0.2, np.nan])


@pytest.mark.parametrize(
    "ratio",
    ["selection_ratio", RateRatio("selection_rate"), ["equal_opportunity", "selection_ratio"]],
)
def test_training_weights_have_no_ratio(ratio):
    X, y, groups = make_sample(100)
    with pytest.raises(ValueError, match=r"cannot limit the selection rate ratio .*'demographic_"):
        FairProjClassifier(ratio).fit(X, y, sensitive_features=groups)


# Requirements and their limits

TPR, FPR = Requirement(RATES["true_positive_rate"]), Requirement(RATES["false_positive_rate"])
SELECTED = Requirement(RATES["selection_rate"])
RATIO = Requirement(RATES["selection_rate"], "ratio")


@pytest.mark.parametrize(
    ("constraint", "requirements"),
    [
        ("selection_ratio", (RATIO,)),
        (["false_positive_rate_parity", "equalized_odds"], (FPR, TPR)),
        (("selection_ratio", constraints.demographic_parity, "selection_ratio"), (RATIO, SELECTED)),
        (AllOf(["equalized_odds", constraints.selection_ratio]), (TPR, FPR, RATIO)),
    ],
)
def test_requirements_are_distinct_and_in_order(constraint, requirements):
    assert find_constraint(constraint).requirements() == requirements


@pytest.mark.parametrize(
    ("constraint", "max_gap", "limits"),
    [
        (None, 0.1, {}),
        ("equal_opportunity", 0.1, {TPR: 0.1}),
        ("equal_opportunity", [0.1], {TPR: 0.1}),
        ("equalized_odds", 0, {TPR: 0, FPR: 0}),
        ("equalized_odds", (0.1, 0.2), {TPR: 0.1, FPR: 0.2}),
        (AllOf(["equalized_odds", "equal_opportunity"]), [0.1, 0.2], {TPR: 0.1, FPR: 0.2}),
        (["equalized_odds", "selection_ratio"], np.float64(0.3), {TPR: 0.3, FPR: 0.3, RATIO: 0.3}),
        (["equalized_odds", "selection_ratio"], [0.1, 0.2], {TPR: 0.1, FPR: 0.1, RATIO: 0.2}),
        (["selection_ratio", "equalized_odds"], [0.2, [0.1, 1]], {RATIO: 0.2, TPR: 0.1, FPR: 1}),
        (["equal_opportunity", "equalized_odds"], np.array([0.1, 0.2]), {TPR: 0.1, FPR: 0.2}),
        (["equalized_odds", "equal_opportunity"], [0.2, 0.1], {TPR: 0.1, FPR: 0.2}),
        (["equalized_odds"], [[0.2, 0.1]], {TPR: 0.2, FPR: 0.1}),
    ],
)
def test_limits(constraint, max_gap, limits):
    assert list(limits_of(constraint, max_gap).items()) == list(limits.items())


BOTH = ["equal_opportunity", "equalized_odds"]


@pytest.mark.parametrize(
    ("constraint", "max_gap", "words"),
    [
        ("equal_opportunity", 5, "max_gap must be at most 1, got 5; 5 percentage points are 0.05"),
        ("equal_opportunity", [0.1, 0.2], "max_gap must be one number; got 2 numbers"),
        (
            "equalized_odds",
            [0.1] * 3,
            "one for each of 'true positive rate', 'false positive rate'",
        ),
        (BOTH, "0.1", "max_gap must be a number or a sequence of numbers, got '0.1'"),
        (BOTH, None, "max_gap must be a number or a sequence of numbers, got None"),
        (BOTH, [0.1] * 3, "max_gap has 3 entries and constraints has 2; give one number, or one"),
        (BOTH, [0.1, -0.1], r"max_gap\[1\] must be zero or more, got -0.1"),
        (BOTH, [[0.1, 0.2], 0.1], r"max_gap\[0\] must be one number; got 2 numbers"),
        (BOTH, [0.1, [0.1, np.nan]], r"max_gap\[1\] must be zero or more"),
        (
            ["parity", "equal_opportunity"],
            0.1,
            "constraints='parity' is unknown; use one of 'demogr",
        ),
        (
            ["equal_opportunity", 3],
            0.1,
            "constraints=3 is unknown; use one of .*, a Constraint object",
        ),
        (np.ones((3, 1)), 0.1, "FairBoostClassifier needs a constraint by name .* got ndarray"),
        ([0.0, 1.0], 0.1, "FairBoostClassifier needs a constraint by name .* got list"),
        (FunctionConstraint(lambda group, label: 1.0), 0.1, "FunctionConstraint names none"),
    ],
)
def test_limits_that_are_refused(constraint, max_gap, words):
    with pytest.raises(ValueError, match=words):
        limits_of(constraint, max_gap)


# Many groups, and constraint objects


@pytest.mark.parametrize("n_groups", [3, 5])
@pytest.mark.parametrize("name", DIFFERENCES)
def test_many_groups_bound_the_largest_difference(name, n_groups):
    X, y, groups = make_sample(2000, n_groups=n_groups)
    model = FairProjClassifier(name, 0.03, n_estimators=5).fit(X, y, sensitive_features=groups)
    n_pairs = n_groups * (n_groups - 1) // 2
    assert len(model.history_.constraint_names) == n_pairs * (2 if name == "equalized_odds" else 1)
    assert (np.abs(model.history_.by_constraint("balance")) <= 0.03 + 1e-9).all()


def test_an_object_is_as_good_as_its_name():
    X, y, groups = make_sample(300)
    one = FairProjClassifier("equalized_odds", 0.05).fit(X, y, sensitive_features=groups)
    two = FairProjClassifier(constraints.equalized_odds, 0.05).fit(X, y, sensitive_features=groups)
    own = FunctionConstraint(
        lambda group, label: [(label > 0) * (2 * group - 1), (label < 0) * (2 * group - 1)],
        ["true positives", "false positives"],
    )
    three = FairProjClassifier(own, 0.05).fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    np.testing.assert_array_equal(one.decision_function(X), three.decision_function(X))
    assert three.history_.constraint_names == ("true positives", "false positives")


def test_constraints_can_be_joined():
    both = AllOf((constraints.demographic_parity, constraints.equal_opportunity))
    X, y, groups = make_sample(300)
    model = FairProjClassifier(both, [0.02, 0.01]).fit(X, y, sensitive_features=groups)
    balance = np.abs(model.history_.by_constraint("balance"))
    assert (balance <= np.array([0.02, 0.01]) + 1e-9).all()
    listed = FairProjClassifier(["demographic_parity", both.parts[1]], [0.02, 0.01])
    listed.fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(listed.decision_function(X), model.decision_function(X))


def test_a_list_of_numbers_is_an_array_of_features():
    X, y, groups = make_sample(300)
    side = np.where(groups == 1, 1.0, -1.0)
    one = FairProjClassifier(side.tolist(), 0.01).fit(X, y, sensitive_features=groups)
    two = FairProjClassifier("demographic_parity", 0.01).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), rtol=1e-12)


def test_one_epsilon_each():
    X, y, groups = make_sample(300)
    model = FairProjClassifier("equalized_odds", [0.01, 0.2], n_estimators=10)
    model.fit(X, y, sensitive_features=groups)
    balance = np.abs(model.history_.by_constraint("balance"))
    assert (balance[:, 0] <= 0.01 + 1e-9).all()
    assert (balance[:, 1] > 0.01).any()


def test_demographic_parity_does_without_a_cell():
    X, y, groups = make_sample(300)
    groups = np.where((y > 0) & (groups == 1), 0, groups)  # nobody in group 1 is positive
    model = FairProjClassifier("demographic_parity", 0.1, n_estimators=5)
    model.fit(X, y, sensitive_features=groups)
    assert model.certificate_.balanced_rounds == len(model.history_)


@pytest.mark.filterwarnings("ignore:the constraint weighs groups of fewer than 10 rows")
def test_cells_without_rows_are_left_out():
    groups = Groups(np.array([0, 0, 1, 1]), ["a", "b"])
    cells = Cells.of(np.array([-1.0, 1.0, 1.0, 1.0]), groups, np.array([0, 1]))
    moments = make_moments("demographic_parity", cells)
    np.testing.assert_array_equal(moments.index, [0, 1, 2, 2])
    np.testing.assert_array_equal(moments.features, [[-1], [-1], [1]])
    np.testing.assert_array_equal(cells.counts, [1, 1, 0, 2])
