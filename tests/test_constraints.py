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
    Statistic,
    find_statistic,
    register_statistic,
    statistic_names,
)
from fairproj.data.cells import CellCounts, Cells
from fairproj.data.checks import Groups

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


# Many groups, and constraint objects


@pytest.mark.parametrize("n_groups", [3, 5])
@pytest.mark.parametrize("name", statistic_names())
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
