"""The solver of the dual: each part by itself, and what happens where a part gives up."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog

import oracles
from fairproj.boosting import dual
from fairproj.boosting.dual import ProjectionError, reachable, solve_dual, tilted_mass


def features_of(rng, n_cells, n_constraints):
    """Features that some distribution balances, at most 1 in absolute value."""
    features = rng.uniform(-1, 1, (n_cells, n_constraints))
    features -= rng.dirichlet(np.ones(n_cells)) @ features
    return features / np.abs(features).max(axis=0)


def largest_masses(features, epsilon):
    """The largest mass of each cell under a distribution that satisfies the constraints."""
    n_cells = len(features)
    rows, limits = np.vstack([features.T, -features.T]), np.concatenate([epsilon, epsilon])
    found = []
    for cell in range(n_cells):
        solution = linprog(-np.eye(n_cells)[cell], rows, limits, np.ones((1, n_cells)), [1.0])
        found.append(-solution.fun if solution.status == 0 else 0.0)
    return np.array(found)


@pytest.mark.parametrize("seed", range(20))
def test_reachable_cells_can_have_mass(seed):
    """A linear program for each cell; some of the features leave cells without mass."""
    rng = np.random.default_rng(seed)
    n_cells, n_constraints = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    features = rng.choice([-1.0, -0.5, 0.0, 1.0], (n_cells, n_constraints))
    features[:, 0] = np.abs(features[:, 0])
    epsilon = rng.choice([0.0, 0.0, 0.2], n_constraints)
    expected = largest_masses(features, epsilon) > 1e-9
    np.testing.assert_array_equal(reachable(features, epsilon), expected)


def test_a_constraint_that_has_room_left_keeps_no_cell_empty():
    """No distribution has a balance above 0.1, so a slack of 0.2 asks nothing."""
    assert reachable(np.array([[0.0], [0.1]]), np.array([0.2])).all()


def test_where_the_linear_program_fails_every_cell_is_tried(monkeypatch):
    class Failed:
        status = 4

    monkeypatch.setattr(dual, "linprog", lambda *_, **__: Failed)
    found = reachable(np.array([[1.0], [0.0]]), np.zeros(1))
    assert found.dtype == bool
    assert found.all()


@pytest.fixture(params=[0, 1, 2, 3])
def problem(request):
    """Log masses, features and slack; with three constraints, one follows from the others."""
    rng = np.random.default_rng(request.param)
    features = features_of(rng, 10, 3)
    epsilon = np.full(3, [0.0, 0.02][request.param % 2])
    if request.param == 0:
        features[:, 2] = (features[:, 0] - features[:, 1]) / 2
    return np.log(rng.dirichlet(np.ones(10))), features, epsilon


def check(solution, log_mass, features, epsilon):
    """The tilted masses are those of the projection."""
    at = solution.reached
    mass = np.zeros(len(log_mass))
    mass[at] = tilted_mass(log_mass[at], features[at], solution.multipliers)[1]
    q = np.exp(log_mass)
    *_, expected = oracles.project_by_cvxpy(q, features, epsilon)
    np.testing.assert_allclose(mass, expected, atol=1e-5)
    assert (np.abs(mass @ features) <= epsilon + 1e-9).all()


def gives_up(monkeypatch, strides):
    """The solver gives up for these strides; returns those for which it was asked."""
    original, asked = dual._in_stages, []

    def in_stages(log_mass, features, epsilon, start, stride, max_steps):
        asked.append((stride, max_steps))
        if (stride, max_steps) in strides:
            raise dual._NotConvergedError
        return original(log_mass, features, epsilon, start, stride, max_steps)

    monkeypatch.setattr(dual, "_in_stages", in_stages)
    return asked


FIRST, AGAIN, THIRD = (2.0, dual._FEW_STEPS), (2.0, dual._MAX_STEPS), (1.2, dual._MAX_STEPS)


@pytest.mark.parametrize("strides", [[FIRST], [FIRST, AGAIN]])
def test_the_next_attempt_finds_the_same(problem, monkeypatch, strides):
    asked = gives_up(monkeypatch, strides)
    log_mass, features, epsilon = problem
    solution = solve_dual(log_mass, features, epsilon, np.zeros(3))
    assert asked == [FIRST, AGAIN, THIRD][: len(strides) + 1]
    assert solution.reached.all()
    assert solution.n_steps > 0
    check(solution, *problem)


def test_a_start_is_tried_without_stages_first(problem, monkeypatch):
    asked = gives_up(monkeypatch, [(np.inf, dual._FEW_STEPS), (np.inf, dual._MAX_STEPS)])
    log_mass, features, epsilon = problem
    solution = solve_dual(log_mass, features, epsilon, np.full(3, 0.5))
    assert [stride for stride, _ in asked] == [np.inf, np.inf, 2.0]
    check(solution, *problem)


def test_nothing_converges(problem, monkeypatch):
    gives_up(monkeypatch, [FIRST, AGAIN, THIRD, (1.03, dual._MAX_STEPS)])
    log_mass, features, epsilon = problem
    with pytest.raises(ProjectionError, match="did not converge on masses between exp"):
        solve_dual(log_mass, features, epsilon, np.zeros(3))


def test_cells_that_no_solution_has_are_left_out(monkeypatch):
    """The first two cells must be empty; their multiplier would be infinite."""
    gives_up(monkeypatch, [FIRST])
    features = np.array([[1.0, 0.3], [0.5, -1.0], [0.0, 1.0], [0.0, -0.5], [0.0, -0.2]])
    log_mass = np.log([0.3, 0.2, 0.2, 0.2, 0.1])
    solution = solve_dual(log_mass, features, np.zeros(2), np.zeros(2))
    np.testing.assert_array_equal(solution.reached, [False, False, True, True, True])
    check(solution, log_mass, features, np.zeros(2))


def test_empty_cells_are_not_reached():
    features = np.array([[1.0], [-1.0], [0.5], [-0.5]])
    log_mass = np.array([np.log(0.7), np.log(0.2), -np.inf, np.log(0.1)])
    solution = solve_dual(log_mass, features, np.zeros(1), np.zeros(1))
    np.testing.assert_array_equal(solution.reached, [True, True, False, True])


@pytest.mark.parametrize("span", [20, 100, 700])
@pytest.mark.parametrize("seed", range(4))
def test_masses_far_apart_take_few_steps(seed, span):
    """In stages, each of which starts near its solution."""
    rng = np.random.default_rng(seed)
    features, epsilon = features_of(rng, 12, 3), np.full(3, 0.01)
    log_mass = -span * rng.uniform(0, 1, 12)
    solution = solve_dual(log_mass, features, epsilon, np.zeros(3))
    assert solution.n_steps <= {20: 15, 100: 40, 700: 70}[span]
    mass = tilted_mass(log_mass, features, solution.multipliers)[1]
    balance, lam = mass @ features, solution.multipliers
    assert (np.abs(balance) <= epsilon + 1e-9).all()
    np.testing.assert_allclose(balance[lam != 0], (epsilon * np.sign(lam))[lam != 0], atol=1e-9)


def points(seed):
    """The point of a solution, points near it, the features and the slack."""
    rng = np.random.default_rng(seed)
    features, epsilon = features_of(rng, 12, 4), np.array([0.0, 0.0, 0.05, 0.05])
    log_mass = np.log(rng.dirichlet(np.ones(12)))

    def at(lam):
        log_z, mass = tilted_mass(log_mass, features, lam)
        return dual._Point(lam, float(log_z + epsilon @ np.abs(lam)), mass, mass @ features)

    lam = solve_dual(log_mass, features, epsilon, np.zeros(4)).multipliers
    near = lam + np.where(lam != 0, 1e-3 * rng.choice([-1, 1], 4), 0.0)
    return at, lam, near, features, epsilon


@pytest.mark.parametrize("seed", range(8))
def test_a_correction_squares_the_distance(seed):
    at, lam, near, features, epsilon = points(seed)
    change = dual._correction(at(near), features, epsilon)
    assert np.abs(near + change - lam).max() < 0.02 * np.abs(near - lam).max()
    assert not change[lam == 0].any()


@pytest.mark.parametrize("seed", range(8))
def test_a_step_squares_the_distance_and_keeps_zeros_exact(seed):
    at, lam, near, features, epsilon = points(seed)
    near = np.where(lam == 0, 1e-3 / 3, near)
    step = dual._step(at(near), features, epsilon, 4.0, dual._residual(at(near), epsilon))
    assert np.abs(step.end - lam).max() < 0.02 * np.abs(near - lam).max()
    np.testing.assert_array_equal(step.end == 0, lam == 0)
    np.testing.assert_allclose(step.end, near + step.change, atol=1e-12)
    assert not step.limited


@pytest.mark.parametrize("seed", range(8))
def test_a_step_is_not_longer_than_the_radius(seed):
    """The change of the log weights is bounded, in the same direction."""
    at, _, _, features, epsilon = points(seed)
    start, radius = at(np.zeros(4)), 0.1
    residual = dual._residual(start, epsilon)
    step = dual._step(start, features, epsilon, radius, residual)
    assert step.limited
    assert np.abs(features @ step.change).max() <= radius * (1 + 1e-9)
    np.testing.assert_allclose(step.end, step.change)
    assert start.balance @ step.change - epsilon @ np.abs(step.end) > 0  # the model falls


def test_multipliers_do_not_cross_zero_in_one_step():
    """Far from zero, a step ends where a tenth of the multiplier is left."""
    lam, direction = np.array([5.0, -5.0, 5.0, 0.5]), np.array([-10.0, -1.0, 1.0, -9.0])
    near = np.abs(lam) <= 1
    assert dual._crossing(lam, near, direction) == pytest.approx(2 / 0.9)
    assert dual._crossing(lam, near, np.zeros(4)) == 0


def test_the_residual_is_how_far_the_conditions_are_from_holding():
    def residual(lam, balance):
        point = dual._Point(np.array(lam), 0.0, np.ones(1), np.array(balance))
        return dual._residual(point, np.array([0.1, 0.1]))

    assert residual([0.0, 0.0], [0.1, -0.05]) == 0
    assert residual([0.0, 0.0], [0.1, -0.13]) == pytest.approx(0.03)
    assert residual([2.0, -1.0], [0.1, -0.1]) == pytest.approx(0)
    assert residual([2.0, -1.0], [0.04, -0.1]) == pytest.approx(0.06)
    assert residual([2.0, -1.0], [-0.1, -0.1]) == pytest.approx(0.2)


def newton_problem(seed, span=20.0):
    """Log masses, features, slack, and the solution."""
    rng = np.random.default_rng(seed)
    features, epsilon = features_of(rng, 12, 3), np.full(3, 0.01)
    log_mass = -span * rng.uniform(0, 1, 12)
    return log_mass, features, epsilon, solve_dual(log_mass, features, epsilon, np.zeros(3))


def residual_at(lam, log_mass, features, epsilon):
    _, mass = tilted_mass(log_mass, features, lam)
    return dual._residual(dual._Point(lam, 0.0, mass, mass @ features), epsilon)


@pytest.mark.parametrize("seed", range(4))
def test_a_start_that_is_nearly_the_solution_is_still_improved(seed):
    """The wider tolerance is for steps that rounding has stopped, not for a start."""
    log_mass, features, epsilon, solution = newton_problem(seed)
    lam = solution.multipliers
    start = np.where(lam != 0, lam + 1e-10, 0.0)
    assert dual.TOLERANCE < residual_at(start, log_mass, features, epsilon) < dual.ROUNDING
    found, n_steps = dual._newton(log_mass, features, epsilon, start, 50)
    assert n_steps >= 1
    assert residual_at(found, log_mass, features, epsilon) <= dual.TOLERANCE


@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_near_the_solution_corrections_are_enough(seed, share, monkeypatch):
    """Also those that leave less than half of the residual, as 0.6 of a correction does."""
    log_mass, features, epsilon, solution = newton_problem(seed)
    lam, correction = solution.multipliers, dual._correction
    monkeypatch.setattr(dual, "_correction", lambda *point: share * correction(*point))
    monkeypatch.setattr(dual, "_step", lambda *_: pytest.fail("a step was taken"))
    start = np.where(lam != 0, lam + 1e-5, 0.0)
    found, n_steps = dual._newton(log_mass, features, epsilon, start, 50)
    assert 1 <= n_steps <= (4 if share == 1 else 35)
    np.testing.assert_allclose(found, lam, atol=1e-9)


@pytest.mark.parametrize("span", [20.0, 60.0])
def test_the_radius_is_doubled_only_after_a_step_that_it_has_made_shorter(span, monkeypatch):
    log_mass, features, epsilon, _ = newton_problem(1, span)
    taken, step = [], dual._step

    def watched(point, features, epsilon, radius, residual):
        found = step(point, features, epsilon, radius, residual)
        taken.append((radius, found.limited))
        return found

    monkeypatch.setattr(dual, "_step", watched)
    dual._newton(log_mass, features, epsilon, np.zeros(3), 200)
    assert {limited for _, limited in taken} == {True, False}
    for (radius, limited), (following, _) in pairwise(taken):
        assert following == dual._FIRST_RADIUS or (limited and following == 2 * radius)


def test_where_rounding_stops_the_fall_the_wider_tolerance_ends_the_run(monkeypatch):
    """Masses that are known to 11 digits cannot meet the conditions to 12."""
    exact = dual.tilted_mass

    def rounded(*arguments):
        log_z, mass = exact(*arguments)
        return log_z, np.round(mass, 11)

    log_mass, features, epsilon, _ = newton_problem(1)
    monkeypatch.setattr(dual, "tilted_mass", rounded)
    found, _ = dual._newton(log_mass, features, epsilon, np.zeros(3), 50)
    assert dual.TOLERANCE < residual_at(found, log_mass, features, epsilon) < dual.ROUNDING


@pytest.mark.parametrize("seed", range(4))
def test_steps_alone_find_the_solution_too(seed, monkeypatch):
    """Falls of F that are smaller than its rounding are no reason to shorten a step."""
    log_mass, features, epsilon, solution = newton_problem(seed, 700.0)
    monkeypatch.setattr(dual, "_correction", lambda point, *_: np.zeros(len(point.lam)))
    lam, _ = dual._in_stages(log_mass, features, epsilon, np.zeros(3), 2.0, 50)
    np.testing.assert_allclose(lam, solution.multipliers, rtol=1e-9)


def test_zeros_stay_exact_from_wherever_they_are_reached():
    at, lam, _, features, epsilon = points(1)
    assert (lam == 0).any()
    for small in np.linspace(1e-4, 1e-3, 50):
        near = at(np.where(lam == 0, small, lam + 1e-3 * np.sign(lam)))
        step = dual._step(near, features, epsilon, 4.0, dual._residual(near, epsilon))
        np.testing.assert_array_equal(step.end == 0, lam == 0)
