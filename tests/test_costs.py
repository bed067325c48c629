"""Signed costs and multipliers against their definitions, row by row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import oracles
from fairproj.boosting import losses
from fairproj.boosting.costs import CostModel
from fairproj.boosting.losses import ExponentialLoss, LogisticLoss
from fairproj.boosting.multipliers import AdaptiveSteps, Multipliers, StepRule, violations
from fairproj.boosting.requirements import find_requirements
from fairproj.boosting.rows import ScoredRows
from fairproj.constraints import STATISTICS
from fairproj.data.checks import Groups
from fairproj.data.sample import Sample

NAMES = sorted(name for name, statistic in STATISTICS.items() if statistic.constrainable)


@st.composite
def problems(draw):
    """Random rows and multipliers; every (group, label) cell has a row."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_groups = draw(st.integers(2, 5))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    pos = draw(st.sampled_from([-1, 1]))
    n_rows = 2 * n_groups + draw(st.integers(0, 30))
    cell = np.r_[np.arange(2 * n_groups), rng.integers(2 * n_groups, size=n_rows - 2 * n_groups)]
    y, groups = np.where(cell % 2, 1.0, -1.0), cell // 2
    weight = rng.uniform(0.1, 3, n_rows) if draw(st.booleans()) else np.ones(n_rows)
    class_weight = rng.uniform(0.2, 5, 2) if draw(st.booleans()) else np.ones(2)
    margin = rng.normal(size=n_rows).round(1)  # some are zero: class 0
    size = draw(st.sampled_from([0.0, 0.1, 2.0]))  # with 2, most cells flip
    return rng, names, pos, y, groups, weight, class_weight, margin, size


def library_rows(y, groups, weight, pos, margin, loss=None):
    values = list(range(groups.max() + 1))
    sample = Sample(None, y, np.array([-1, 1]), weight, Groups(groups, values), int(pos > 0))
    rows = ScoredRows(sample, loss or LogisticLoss())
    rows.add(margin, 1.0)
    return rows


@settings(max_examples=200)
@given(problems(), st.sampled_from([None, False, True]))
def test_the_lagrangian_is_a_constant_and_a_weighted_error(problem, limited_label):
    rng, names, pos, y, groups, weight, class_weight, margin, size = problem
    s = weight / weight.sum()
    cost = np.where(y > 0, class_weight[1], class_weight[0])
    cost = cost / (s @ cost)
    parts = oracles.shares(names, y, pos)
    lam = size * rng.normal(size=(groups.max() + 1, len(parts)))
    limited = None if limited_label is None else (y == pos) == limited_label
    nu = 0.0 if limited is None else size * rng.random()

    # err(f) + sum lam rate(f) + nu (the limited rate), from the predictions.
    predicted = np.where(margin > 0, 1.0, -1.0)
    rates = oracles.share_rates(parts, predicted, groups, s)
    lagrangian = s @ (cost * (predicted != y)) + (lam * rates).sum()
    if limited is not None:
        lagrangian += nu * (s[limited] @ (predicted != y)[limited]) / s[limited].sum()

    # The library's costs.
    rows = library_rows(y, groups, weight, pos, margin)
    required = find_requirements(names, 0.1, rows.cells)
    class_cost = np.tile(class_weight, groups.max() + 1)
    class_cost = class_cost / (rows.size @ class_cost)
    by_cell = None
    if limited is not None:
        by_cell = rows.cells.positive == limited_label
    model = CostModel(
        rows.cells, rows.size, [part.rate for part in required.parts], class_cost, by_cell
    )
    costs = model(lam, nu)
    worth = costs.worth[rows.cells.index]
    label = np.where(worth < 0, -y, y)
    weighted_error = s @ (np.abs(worth) * (predicted != label))
    assert costs.constant + weighted_error == pytest.approx(lagrangian, abs=1e-10)

    # zeta and C_lam by enumerating both predictions of each row.
    zeta, constant = oracles.signed_costs(parts, lam, nu, y, groups, s, cost, limited)
    np.testing.assert_allclose(worth * y, zeta, atol=1e-10)
    assert costs.constant == pytest.approx(constant, abs=1e-10)
    np.testing.assert_array_equal(costs.flipped[rows.cells.index], worth < 0)
    np.testing.assert_array_equal(costs.magnitude, np.abs(costs.worth))
    np.testing.assert_allclose(required.reader(rows.size)(rows.correct()), rates, atol=1e-12)
    np.testing.assert_allclose(required.gaps(rates), oracles.share_gaps(parts, rates), atol=1e-12)


def test_large_multipliers_flip_cells():
    """The examples above are of use only where labels flip."""
    y, groups = np.array([-1.0, 1.0, -1.0, 1.0]), np.array([0, 0, 1, 1])
    rows = library_rows(y, groups, np.ones(4), 1, np.zeros(4))
    required = find_requirements("equal_opportunity", 0.1, rows.cells)
    model = CostModel(rows.cells, rows.size, [required.parts[0].rate], np.ones(4))
    # Group 1's rate costs 0.3, and its positive row is a quarter of the weight.
    costs = model(np.array([[-0.3], [0.3]]))
    np.testing.assert_allclose(costs.worth, [1, 1 + 0.3 / 0.25, 1, 1 - 0.3 / 0.25])
    assert costs.flipped.tolist() == [False, False, False, True]
    assert costs.constant == pytest.approx(0.25 * (-0.3 / 0.25 + 1))
    assert model(np.zeros((2, 1))).constant == 0


# Losses


@pytest.mark.parametrize("loss", [ExponentialLoss(), LogisticLoss()])
@given(m=st.floats(-30, 30))
def test_slope_and_curvature_are_derivatives(loss, m):
    step = 1e-5
    below, at, above = (np.array([m + d]) for d in (-step, 0.0, step))
    slope = -(loss.value(above) - loss.value(below)) / (2 * step)
    np.testing.assert_allclose(loss.slope(at), slope, rtol=1e-5, atol=1e-9)
    bend = -(loss.slope(above) - loss.slope(below)) / (2 * step)
    np.testing.assert_allclose(loss.curvature(at, loss.slope(at)), bend, rtol=1e-5, atol=1e-9)
    assert loss.value(at)[0] >= (m <= 0) * loss.value(np.zeros(1))[0]


@pytest.mark.parametrize("loss", [ExponentialLoss(), LogisticLoss()])
def test_losses_are_finite_at_any_margin(loss):
    m = np.array([-1e6, -800.0, 800.0, 1e6])
    assert np.isfinite([loss.value(m), loss.slope(m), loss.curvature(m, loss.slope(m))]).all()


def test_the_link_is_that_of_the_best_margin():
    """E phi(y f) is least where the link gives the probability of y = +1."""
    f = np.linspace(-4, 4, 80_001)
    for loss in (ExponentialLoss(), LogisticLoss()):
        best = f[np.argmin(0.8 * loss.value(f) + 0.2 * loss.value(-f))]
        assert 1 / (1 + np.exp(-loss.link_scale * best)) == pytest.approx(0.8, abs=1e-4)


def test_losses_by_name(monkeypatch):
    monkeypatch.setattr(losses, "_REGISTRY", dict(losses._REGISTRY))
    own = LogisticLoss()
    losses.register_loss("own", own)
    assert losses.find_loss("own") is own
    assert isinstance(losses.find_loss("exponential"), ExponentialLoss)
    with pytest.raises(ValueError, match="loss='hinge' is unknown") as error:
        losses.find_loss("hinge")
    assert "'exponential', 'logistic', 'own'" in str(error.value)


# Multipliers

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


HALF = np.full((2, 1), 0.5)
RULE = StepRule(first=0.3, least=0.02, largest=5.0, growth=1.15, reduction=0.5, band=0.8, leak=0.1)


def test_steps_grow_shrink_and_stay_within_bounds():
    steps = AdaptiveSteps(RULE, 1 / 2)

    def step(violation):
        return float(steps(np.array(violation))) / violation

    assert step(0.5) == pytest.approx(0.15)  # 0.3 for two groups
    assert step(0.1) == pytest.approx(0.15 * 1.15)
    assert float(steps(np.array(0.0))) == 0.0  # keeps step and sign
    assert step(0.1) == pytest.approx(0.15 * 1.15**2)
    assert step(-0.1) == pytest.approx(0.15 * 1.15**2 / 2)
    assert [step(0.1 * (-1) ** t) for t in range(12)][-1] == pytest.approx(0.02 / 2)
    assert [step(0.1) for _ in range(60)][-1] == pytest.approx(5 / 2)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_groups=st.integers(2, 4),
    kinds=st.lists(st.sampled_from(["difference", "ratio"]), min_size=1, max_size=3),
    rule=st.sampled_from([RULE, StepRule()]),
)
def test_multipliers_against_a_loop_in_python(seed, n_groups, kinds, rule):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.001, 0.5, (n_groups, len(kinds)))
    multipliers, state = Multipliers(kinds, weight, rule), None
    allowed = rng.uniform(0, 0.6, len(kinds))
    difference = np.array([kind == "difference" for kind in kinds])
    rates, excess = rng.random((n_groups, len(kinds))), 0.3
    for _ in range(25):
        rates = np.clip(rates + 0.2 * rng.normal(size=rates.shape), 0, 1)
        excess = float(np.clip(excess + 0.2 * rng.normal(), -1, 1))
        multipliers.update(rates, allowed, excess)
        state = oracles.next_multipliers(state, rates, kinds, allowed, weight, rule, excess)
        np.testing.assert_allclose(multipliers.by_group, state["lam"], atol=1e-10)
        assert multipliers.limit == pytest.approx(state["nu"], abs=1e-10)
        assert multipliers.limit >= 0
        assert all(pair >= 0 for pair in state["pairs"].values())
        sums = multipliers.by_group[:, difference].sum(axis=0)
        np.testing.assert_allclose(sums, 0, atol=1e-12)


def test_a_limit_that_has_slack_loses_its_multiplier():
    multipliers = Multipliers([], np.zeros((2, 0)))
    history = []
    for excess in [0.5] * 3 + [-0.5] * 10:
        multipliers.update(np.zeros((2, 0)), np.zeros(0), excess)
        history.append(multipliers.limit)
    assert history[2] > history[1] > history[0] > 0
    assert history[-1] == 0


def test_multipliers_leak_while_the_gap_is_within_the_band():
    multipliers, allowed = Multipliers(["difference"], HALF, RULE), np.array([0.1])
    multipliers.update(np.array([[0.2], [0.6]]), allowed)
    np.testing.assert_allclose(multipliers.by_group[:, 0], [-0.15 * 0.16, 0.15 * 0.16])
    before = multipliers.by_group.copy()
    multipliers.update(np.array([[0.50], [0.57]]), allowed)  # 0.07 of 0.08
    np.testing.assert_allclose(multipliers.by_group, 0.9 * before)
    multipliers.update(np.array([[0.50], [0.59]]), allowed)  # 0.09 of 0.08
    assert multipliers.by_group[1, 0] > 0.9 * before[1, 0]


def test_a_ratio_that_is_met_moves_nothing_from_zero():
    multipliers = Multipliers(["ratio"], HALF, RULE)
    multipliers.update(np.array([[0.5], [0.43]]), np.array([0.2]))
    assert (multipliers.by_group == 0).all()
    multipliers.update(np.array([[0.5], [0.3]]), np.array([0.2]))
    assert multipliers.by_group[0, 0] > 0 > multipliers.by_group[1, 0]


@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_the_costs_of_a_small_group_do_not_jump(kind):
    """A multiplier is divided by the weight of its group before it becomes a cost."""
    weight = np.array([[0.49], [0.5], [0.01]])
    multipliers = Multipliers([kind], weight)
    multipliers.update(np.array([[0.5], [0.5], [0.2]]), np.array([0.05]))
    change = np.abs(multipliers.by_group / weight)
    assert 0 < change.max() < 1.5
    without = Multipliers([kind], weight, StepRule(by_weight=np.inf))
    without.update(np.array([[0.5], [0.5], [0.2]]), np.array([0.05]))
    assert np.abs(without.by_group / weight).max() > 3
