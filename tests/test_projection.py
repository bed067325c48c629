"""The projection against other solvers, and its properties as statements of mathematics."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import oracles
from fairproj import project
from fairproj.boosting.dual import ProjectionError, independent, solve_dual, tilted_mass
from fairproj.boosting.projection import Projector, _divergence, tilt
from fuzz_projection import pairs

EVENTS = {"all": [(0, 1)], "positive": [(1,)], "odds": [(1,), (0,)]}


@st.composite
def problems(draw, most_groups=5):
    """Masses, features of pairs of groups, slack."""
    n_groups = draw(st.integers(2, most_groups))
    features = pairs(n_groups, EVENTS[draw(st.sampled_from(sorted(EVENTS)))])
    raw = draw(arrays(float, 2 * n_groups, elements=st.floats(0.001, 1)))
    epsilon = draw(st.sampled_from([0.0, 0.001, 0.02, 0.1, 0.3]))
    return raw / raw.sum(), features, np.full(features.shape[1], epsilon)


@given(problems())
def test_the_projection_is_a_feasible_distribution(problem):
    mass, features, epsilon = problem
    w = project(np.log(mass), features, epsilon)
    assert np.isclose(w.mass.sum(), 1, atol=1e-12)
    assert (np.abs(w.mass @ features) <= epsilon + 1e-9).all()
    np.testing.assert_allclose(w.balance, w.mass @ features, atol=1e-14)
    np.testing.assert_allclose(w.balance_q, mass @ features, atol=1e-14)
    np.testing.assert_allclose(w.mass, mass * w.factors, rtol=1e-9)


@given(problems())
def test_kl_and_tv_are_what_their_names_say(problem):
    mass, features, epsilon = problem
    w = project(np.log(mass), features, epsilon)
    divergence = oracles.kl(w.mass, mass)
    assert np.isclose(w.kl, divergence, atol=1e-12)
    assert np.isclose(w.tv, np.abs(w.mass - mass).sum() / 2, atol=1e-12)
    assert np.isclose(w.fairness_cost**2, divergence / 2, atol=1e-12)
    assert w.tv <= w.fairness_cost + 1e-12  # Pinsker


@given(problems())
def test_strong_duality(problem):
    """KL = -log Z - sum eps |lam| (Lemma 4.1), and complementary slackness."""
    mass, features, epsilon = problem
    w = project(np.log(mass), features, epsilon)
    log_z = np.log(np.sum(mass * np.exp(-features @ w.multipliers)))
    assert np.isclose(w.kl, -log_z - epsilon @ np.abs(w.multipliers), atol=1e-9)
    tight = w.multipliers != 0
    expected = epsilon * np.sign(w.multipliers)
    np.testing.assert_allclose(w.balance[tight], expected[tight], atol=1e-9)


@given(problems())
def test_inside_the_set_nothing_changes(problem):
    mass, features, _ = problem
    epsilon = np.abs(mass @ features) + 1e-12
    w = project(np.log(mass), features, epsilon)
    assert w.kl == w.tv == 0
    assert not w.multipliers.any()
    np.testing.assert_array_equal(w.mass, np.exp(np.log(mass)))


@given(problems())
def test_projecting_twice_is_projecting_once(problem):
    mass, features, epsilon = problem
    once = project(np.log(mass), features, epsilon)
    twice = project(np.log(once.mass), features, epsilon)
    np.testing.assert_allclose(twice.mass, once.mass, atol=1e-9)


@given(problems(), st.randoms(use_true_random=False))
def test_pythagorean_inequality(problem, random):
    """KL(p || q) >= KL(p || w) + KL(w || q) for every feasible p."""
    mass, features, epsilon = problem
    w = project(np.log(mass), features, epsilon).mass
    other = np.random.default_rng(random.getrandbits(32)).dirichlet(np.ones(len(mass)))
    p = project(np.log(other), features, epsilon).mass
    assert oracles.kl(p, mass) >= oracles.kl(p, w) + oracles.kl(w, mass) - 1e-8


@given(problems(most_groups=2))
def test_swapping_the_groups_flips_the_multipliers(problem):
    mass, features, epsilon = problem
    swap = [2, 3, 0, 1]
    one = project(np.log(mass), features, epsilon)
    other = project(np.log(mass[swap]), features, epsilon)
    np.testing.assert_allclose(other.multipliers, -one.multipliers, atol=1e-9)
    np.testing.assert_allclose(other.mass, one.mass[swap], atol=1e-9)


@given(problems(), st.randoms(use_true_random=False))
def test_order_and_splits_of_cells_do_not_matter(problem, random):
    """A cell is as good as any rows it is made of, in any order."""
    mass, features, epsilon = problem
    rng = np.random.default_rng(random.getrandbits(32))
    whole = project(np.log(mass), features, epsilon)
    rows = np.repeat(np.arange(len(mass)), rng.integers(1, 5, len(mass)))
    rows = rng.permutation(rows)
    share = rng.uniform(0.1, 1, len(rows))
    share /= np.bincount(rows, share, len(mass))[rows]
    split = project(np.log(mass[rows] * share), features[rows], epsilon)
    np.testing.assert_allclose(
        np.bincount(rows, split.mass, len(mass)), whole.mass, atol=1e-9, rtol=1e-7
    )
    np.testing.assert_allclose(split.log_factors, whole.log_factors[rows], atol=1e-6)
    assert np.isclose(split.kl, whole.kl, atol=1e-9)


@given(problems())
def test_the_starting_point_does_not_matter(problem):
    mass, features, epsilon = problem
    cold = project(np.log(mass), features, epsilon)
    warm = project(np.log(mass), features, epsilon, start=np.linspace(-2, 3, len(epsilon)))
    np.testing.assert_allclose(warm.mass, cold.mass, atol=1e-9)


@settings(max_examples=50)
@given(problems(most_groups=4))
def test_closed_form_newton_the_papers_solvers_and_a_conic_solver_agree(problem):
    mass, features, epsilon = problem
    mine = project(np.log(mass), features, epsilon)
    if (np.abs(mass @ features) > epsilon).any() and epsilon.all():
        newton = solve_dual(np.log(mass), features, epsilon, np.zeros(len(epsilon)))
        tilted = mass * np.exp(-features @ newton.multipliers)
        np.testing.assert_allclose(tilted / tilted.sum(), mine.mass, atol=1e-9)
    split, _ = oracles.project_by_splitting(mass, features, epsilon)
    np.testing.assert_allclose(split, mine.mass, atol=2e-4)
    smooth, _ = oracles.project_by_smoothing(mass, features, epsilon)
    np.testing.assert_allclose(smooth, mine.mass, atol=2e-3)
    status, value, conic = oracles.project_by_cvxpy(mass, features, epsilon)
    assume(status == "optimal")
    np.testing.assert_allclose(conic, mine.mass, atol=1e-5)
    assert abs(value - mine.kl) < 1e-8
    assert mine.kl <= value + 1e-9  # feasible and not worse: optimal


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.1])
def test_kl_is_exact_to_1e_9_against_the_conic_solver(epsilon):
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(20):
        features = pairs(4, EVENTS["odds"])
        mass = rng.dirichlet(np.full(8, 5.0))
        mine = project(np.log(mass), features, np.full(12, epsilon))
        status, value, _ = oracles.project_by_cvxpy(mass, features, np.full(12, epsilon))
        if status == "optimal":
            compared += 1
            assert abs(mine.kl - value) < 1e-9
    assert compared >= 15


@pytest.mark.parametrize("n_groups", [2, 3, 6])
@pytest.mark.parametrize("event", sorted(EVENTS))
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.05])
@pytest.mark.parametrize("smallest", [1e-300, np.exp(-1400)])
def test_vanishing_masses(n_groups, event, epsilon, smallest):
    log_mass = np.zeros(2 * n_groups)
    log_mass[1::2] = -1400.0 if smallest == 0 else np.log(smallest)
    log_mass[1] = 0.0
    log_mass -= np.logaddexp.reduce(log_mass)
    features = pairs(n_groups, EVENTS[event])
    slack = np.full(features.shape[1], epsilon)
    w = project(log_mass, features, slack)
    assert np.isfinite(w.mass).all()
    assert np.isclose(w.mass.sum(), 1)
    assert (np.abs(w.balance) <= slack + 1e-9).all()
    log_z = np.logaddexp.reduce(log_mass - features @ w.multipliers)
    assert np.isclose(w.kl, -log_z - slack @ np.abs(w.multipliers), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_masses_over_hundreds_of_orders_of_magnitude(seed):
    """Whatever the masses, the uniform distribution is feasible: a solution exists."""
    rng = np.random.default_rng(seed)
    n_groups = int(rng.integers(2, 6))
    features = pairs(n_groups, EVENTS["odds"])
    log_mass = rng.uniform(-1500, 0, 2 * n_groups)
    log_mass -= np.logaddexp.reduce(log_mass)
    epsilon = np.full(features.shape[1], rng.choice([0.0, 1e-8, 1e-4, 0.05]))
    w = project(log_mass, features, epsilon)
    assert (np.abs(w.balance) <= epsilon + 1e-9).all()
    log_z = np.logaddexp.reduce(log_mass - features @ w.multipliers)
    assert np.isclose(w.kl, -log_z - epsilon @ np.abs(w.multipliers), rtol=1e-8, atol=1e-9)


def test_a_feature_of_rounding_noise_is_none():
    mass = np.array([0.1, 0.4, 0.3, 0.2])
    features = np.column_stack([pairs(2, EVENTS["all"]), np.full(4, 1e-16)])
    w = project(np.log(mass), features, np.zeros(2))
    assert np.abs(w.balance).max() < 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.05])
def test_two_hundred_cells_and_a_hundred_constraints(epsilon):
    rng = np.random.default_rng(0)
    mass, feasible = rng.dirichlet(np.ones(200), size=2)
    features = rng.choice([-1.0, 0.0, 1.0], size=(200, 100))
    features -= feasible @ features
    w = project(np.log(mass), features, np.full(100, epsilon))
    assert (np.abs(w.balance) <= epsilon + 1e-9).all()
    log_z = np.log(np.sum(mass * np.exp(-features @ w.multipliers)))
    assert np.isclose(w.kl, -log_z - epsilon * np.abs(w.multipliers).sum(), atol=1e-9)


def test_one_slack_for_each_constraint_and_features_of_any_scale():
    mass = np.array([0.1, 0.4, 0.3, 0.2])
    features = pairs(2, EVENTS["odds"])
    epsilon = np.array([0.02, 0.15])
    w = project(np.log(mass), features, epsilon)
    assert (np.abs(w.balance) <= epsilon + 1e-9).all()
    scale = np.array([1000.0, 0.001])
    scaled = project(np.log(mass), features * scale, epsilon * scale)
    np.testing.assert_allclose(scaled.mass, w.mass, atol=1e-9)


def test_a_constraint_without_limit_is_no_constraint():
    features = pairs(3, EVENTS["odds"])
    mass = np.random.default_rng(3).dirichlet(np.ones(len(features)))
    some = np.arange(features.shape[1]) % 2 == 0
    got = project(np.log(mass), features, np.where(some, 0.01, np.inf))
    wanted = project(np.log(mass), features[:, some], np.full(some.sum(), 0.01))
    assert wanted.kl > 0.01
    np.testing.assert_allclose(got.mass, wanted.mass, atol=1e-9)
    assert (got.multipliers[~some] == 0).all()


def test_the_closed_form_solves_the_papers_quadratic():
    """(1-eps) P x^2 - eps N x - (1+eps) M = 0 with x = exp(-lam)."""
    plus, minus, none, epsilon = 0.6, 0.1, 0.3, 0.2
    features = np.array([[1.0], [-1.0], [0.0]])
    w = project(np.log([plus, minus, none]), features, np.array([epsilon]))
    x = np.exp(-w.multipliers[0])
    assert abs((1 - epsilon) * plus * x**2 - epsilon * none * x - (1 + epsilon) * minus) < 1e-12
    assert w.n_steps == 0


@pytest.mark.parametrize("seed", range(20))
def test_two_odds_that_are_violated_a_little(seed):
    """The multipliers are tight at Z itself, also where Z is just below 1."""
    rng = np.random.default_rng(seed)
    mass = rng.multinomial(1024, rng.dirichlet(np.full(4, 4.0)) * 0.9 + 0.025) / 1024
    features = pairs(2, EVENTS["odds"])
    epsilon = np.abs(mass @ features) * [0.7, 1.3] + [1e-3, 0]
    w = project(np.log(mass), features, epsilon)
    assert w.multipliers[0] != 0
    assert abs(w.balance[0]) == pytest.approx(epsilon[0], abs=1e-12)
    newton = solve_dual(np.log(mass), features, epsilon, np.zeros(2)).multipliers
    np.testing.assert_allclose(w.multipliers, newton, atol=1e-9)


@pytest.mark.parametrize(
    "features",
    [
        np.array([[1.0], [0.5], [0.3], [0.2]]),  # all on one side
        np.array([[1.0, 0.0], [1.0, -1.0], [1.0, 1.0], [1.0, -1.0]]),
    ],
)
def test_an_infeasible_set_is_said_to_be_infeasible(features):
    with pytest.raises(ProjectionError, match="no distribution"):
        project(np.log(np.full(4, 0.25)), features, np.full(features.shape[1], 0.1))


def test_a_projector_can_be_used_again():
    features = pairs(3, EVENTS["odds"])
    projector = Projector(features, np.full(6, 0.02))
    rng = np.random.default_rng(0)
    for _ in range(5):
        mass = rng.dirichlet(np.ones(6))
        fresh = project(np.log(mass), features, np.full(6, 0.02))
        np.testing.assert_array_equal(projector(np.log(mass)).mass, fresh.mass)


@given(problems())
def test_a_tilt_is_the_distribution_with_these_factors(problem):
    mass, features, epsilon = problem
    w = project(np.log(mass), features, epsilon)
    again = tilt(np.log(mass), -features @ w.multipliers + 3.0)
    np.testing.assert_allclose(again.mass, w.mass, atol=1e-9)
    np.testing.assert_allclose(again.factors, again.mass / mass, rtol=1e-9)
    assert again.kl == pytest.approx(oracles.kl(again.mass, mass), abs=1e-12)
    assert again.tv == pytest.approx(np.abs(again.mass - mass).sum() / 2, abs=1e-12)
    assert len(again.multipliers) == len(again.balance) == len(again.balance_q) == 0


@pytest.mark.parametrize(
    ("features", "epsilon", "closed", "disjoint"),
    [
        (pairs(2, EVENTS["all"]), 0.05, True, True),
        (pairs(2, EVENTS["odds"]), 0.05, True, True),
        (pairs(5, EVENTS["odds"]), 0.05, True, False),
        (np.array([[1.0], [-1.0], [-1.0], [0.0]]), 0.0, True, True),
        (pairs(3, EVENTS["odds"])[:, :5], 0.05, False, False),  # a pair is missing
        (0.5 * pairs(2, EVENTS["all"]), 0.05, False, False),
        (pairs(2, [(0, 1), (1,)]), 0.05, False, False),  # they overlap
    ],
)
def test_a_closed_form_where_there_is_one(features, epsilon, closed, disjoint):
    projector = Projector(features, np.full(features.shape[1], epsilon))
    assert (projector._disjoint is not None) == disjoint
    mass = np.arange(1.0, len(features) + 1)
    w = project(np.log(mass / mass.sum()), features, np.full(features.shape[1], epsilon))
    assert w.kl > 0
    assert (w.n_steps == 0) == closed
    expected = oracles.project_by_splitting(
        mass / mass.sum(), features, np.full(features.shape[1], epsilon)
    )[0]
    np.testing.assert_allclose(w.mass, expected, atol=2e-4)


def test_a_start_near_the_solution_saves_steps():
    rng = np.random.default_rng(0)
    features, epsilon = rng.uniform(-1, 1, (12, 4)), np.full(4, 0.01)
    log_mass = np.log(rng.dirichlet(np.ones(12)))
    cold = project(log_mass, features, epsilon)
    warm = project(log_mass, features, epsilon, start=cold.multipliers)
    assert cold.n_steps > 3
    assert warm.n_steps <= 1
    np.testing.assert_allclose(warm.mass, cold.mass, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_newton_takes_few_steps(seed):
    """Ordinary masses and features: steps shorten by squares near the solution."""
    rng = np.random.default_rng(seed)
    n_cells, n_constraints = int(rng.integers(6, 30)), int(rng.integers(2, 6))
    mass, feasible = rng.dirichlet(np.ones(n_cells), size=2)
    features = rng.uniform(-1, 1, (n_cells, n_constraints))
    features -= feasible @ features
    features /= np.abs(features).max(axis=0)
    epsilon = np.full(n_constraints, [0.0, 0.01, 0.1][seed % 3])
    lam, reached, n_steps = solve_dual(np.log(mass), features, epsilon, np.zeros(n_constraints))
    assert reached.all()
    assert n_steps <= 8
    w = mass * np.exp(-features @ lam)
    w /= w.sum()
    balance = w @ features
    assert (np.abs(balance) <= epsilon + 1e-11).all()
    tight = lam != 0
    np.testing.assert_allclose(balance[tight], (epsilon * np.sign(lam))[tight], atol=1e-11)


def test_tilted_masses_and_their_logarithm():
    log_mass, features = np.log([0.5, 0.3, 0.2]), np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]])
    lam = np.array([0.7, -0.2])
    raw = np.array([0.5 * np.exp(-0.7), 0.3 * np.exp(0.4), 0.2 * np.exp(0.9)])
    log_z, w = tilted_mass(log_mass, features, lam)
    assert log_z == pytest.approx(np.log(raw.sum()))
    np.testing.assert_allclose(w, raw / raw.sum())


def test_equalities_that_follow_from_others_are_left_out():
    columns = np.random.default_rng(0).uniform(-1, 1, (8, 3))
    features = np.column_stack([columns, columns[:, 0] - columns[:, 1]])
    assert independent(features, np.zeros(4)).sum() == 3
    assert independent(features, np.zeros(4))[2]
    assert independent(features, np.full(4, 0.1)).all()  # a slack each: none is an equality
    assert independent(features, np.array([0.0, 0.1, 0.0, 0.0])).all()
    twice = independent(features[:, [0, 0]], np.zeros(2))
    assert twice.sum() == 1


def test_equalities_in_excess_change_nothing():
    rng = np.random.default_rng(1)
    mass, feasible = rng.dirichlet(np.ones(9), size=2)
    features = rng.uniform(-1, 1, (9, 2))
    features -= feasible @ features
    both = np.column_stack([features, features.sum(axis=1)])
    once = project(np.log(mass), features, np.zeros(2))
    again = project(np.log(mass), both, np.zeros(3))
    np.testing.assert_allclose(again.mass, once.mass, atol=1e-9)
    assert (again.multipliers == 0).any()


def test_a_feature_of_one_sign_leaves_its_cells_empty():
    """Without slack, nothing can balance the first cell."""
    w = project(np.log([0.5, 0.3, 0.2]), np.array([[-1.0], [0.0], [0.0]]), np.zeros(1))
    np.testing.assert_allclose(w.mass, [0.0, 0.6, 0.4], atol=1e-9)
    assert w.kl == pytest.approx(np.log(2))


def test_features_of_rounding_noise_are_none():
    """Their multipliers are zero, wherever the search would have started."""
    features = 1e-13 * np.array([[1.0], [-0.3], [0.5], [-1.0]])
    found = Projector(features, np.zeros(1))(np.log([0.4, 0.3, 0.2, 0.1]), start=np.array([5.0]))
    assert found.multipliers.tolist() == [0.0]
    assert found.balance.tolist() == [0.0]
    np.testing.assert_allclose(found.mass, [0.4, 0.3, 0.2, 0.1], rtol=1e-15)


def test_a_divergence_that_rounding_makes_negative_is_zero():
    assert _divergence(np.array([0.5, 0.5]), np.array([1e-17, -3e-17])) == 0.0
    assert _divergence(np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.1, -np.inf])) == (
        pytest.approx(0.15)
    )
