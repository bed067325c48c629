"""Rows needed to confirm a gap: every outcome enumerated, simulation, the textbook's formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fairproj.inference import largest_confirmable_gap, rows_to_confirm, smallest_max_gap
from fairproj.inference.differences import (
    FINE,
    Pair,
    _leading,
    _ordered,
    _Test,
    largest_difference_bound,
)
from fairproj.inference.power import _chance, _Factors, _Target

N_DRAWS = 100


def enumerated_power(sizes, rates, max_gap, confidence):
    """The chance that the bound is at most max_gap, with the bound of every outcome."""
    n_a, n_b = sizes
    confirmed = np.array(
        [
            [
                largest_difference_bound(np.array([i, j]), np.array(sizes), confidence) <= max_gap
                for j in range(n_b + 1)
            ]
            for i in range(n_a + 1)
        ]
    )
    chances = np.outer(
        stats.binom.pmf(np.arange(n_a + 1), n_a, rates[0]),
        stats.binom.pmf(np.arange(n_b + 1), n_b, rates[1]),
    )
    return chances[confirmed].sum()


def simulated_power(sizes, rates, max_gap, confidence):
    """The same with hits drawn at random; the bound is at most what its test refutes."""
    hits = np.random.default_rng(0).binomial(sizes, rates, size=(N_DRAWS, len(sizes)))
    return np.mean(
        [
            all(
                _Test(Pair(*pair), confidence, *FINE).refutes(max_gap)
                for pair in zip(*_leading(_ordered(each, np.array(sizes))), strict=True)
            )
            for each in hits
        ]
    )


def computed_power(sizes, rates, max_gap, confidence):
    target = _Target(max_gap, confidence)
    return _chance(sizes, rates, target, _Factors.solve(sizes, rates, target))


@pytest.mark.parametrize(
    ("sizes", "rates", "max_gap"),
    [
        ((14, 14), (0.5, 0.5), 0.5),
        ((10, 25), (0.3, 0.5), 0.5),
        ((25, 10), (0.3, 0.5), 0.5),
        ((20, 20), (0.05, 0.0), 0.3),
        ((12, 15), (0.8, 0.4), 0.8),
        ((8, 12), (0.5, 0.5), 0.7),
    ],
)
def test_the_power_against_every_outcome(sizes, rates, max_gap):
    """Groups so small that one count more or less moves the power by several points."""
    expected = enumerated_power(sizes, rates, max_gap, 0.9)
    assert 0.05 < expected < 0.995, "nothing to compare"
    assert computed_power(sizes, rates, max_gap, 0.9) == pytest.approx(expected, abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "rates", "max_gap", "confidence"),
    [
        ((600, 600), (0.5, 0.45), 0.12, 0.95),
        ((400, 3000), (0.2, 0.25), 0.1, 0.975),
        ((900, 700), (0.03, 0.02), 0.03, 0.95),
    ],
)
def test_the_power_against_simulation(sizes, rates, max_gap, confidence):
    expected = simulated_power(sizes, rates, max_gap, confidence)
    assert 0.1 < expected < 0.95, "nothing to compare"
    noise = np.sqrt(expected * (1 - expected) / N_DRAWS)
    assert computed_power(sizes, rates, max_gap, confidence) == pytest.approx(
        expected, abs=4 * noise
    )


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "gap"), [(0.5, 0.0), (0.1, 0.04), (0.0, 0.0)])
def test_that_many_rows_confirm_the_gap_and_fewer_do_not(rate, gap):
    n = rows_to_confirm(0.12, rate, gap=gap)
    rates = (max(rate + gap / 2, gap), max(rate + gap / 2, gap) - gap)
    assert simulated_power((n, n), rates, 0.12, 0.95) > 0.8 - 4 * np.sqrt(0.16 / N_DRAWS)
    fewer = (int(0.6 * n), int(0.6 * n))
    assert simulated_power(fewer, rates, 0.12, 0.95) < 0.7


@pytest.mark.parametrize(("max_gap", "gap"), [(0.05, 0.0), (0.05, 0.02), (0.02, 0.0)])
@pytest.mark.parametrize("rate", [0.5, 0.2])
def test_the_number_of_rows_is_near_the_textbook_s(max_gap, gap, rate):
    """A little above it, because the bound is exact: n = z^2 variance / difference^2."""
    power = 0.8 if gap else 0.9  # without a gap both groups may seem to be ahead
    variance = sum(p * (1 - p) for p in (rate + gap / 2, rate - gap / 2))
    z = stats.norm.ppf(0.95) + stats.norm.ppf(power)
    textbook = z**2 * variance / (max_gap - gap) ** 2
    assert textbook < rows_to_confirm(max_gap, rate, gap=gap) < 1.15 * textbook


def test_more_is_needed_for_more():
    rows = rows_to_confirm(0.08)
    assert rows_to_confirm(0.08, confidence=0.99) > rows
    assert rows_to_confirm(0.08, power=0.95) > rows
    assert rows_to_confirm(0.08, gap=0.02) > rows
    assert rows_to_confirm(0.08, 0.2) < rows
    assert rows_to_confirm(0.06) > rows
    assert rows_to_confirm(1.0) == 1


def test_rows_and_gaps_are_inverse():
    n = rows_to_confirm(0.1, 0.3, gap=0.03)
    assert largest_confirmable_gap([n, n], 0.1, 0.3) == pytest.approx(0.03, abs=0.002)
    n = rows_to_confirm(0.1, 0.3)
    assert largest_confirmable_gap([int(0.95 * n)] * 2, 0.1, 0.3) is None


@pytest.mark.parametrize("sizes", [[300, 900], [500, 600, 700]])
def test_the_smallest_max_gap_is_where_a_gap_of_0_is_just_confirmed(sizes):
    smallest = smallest_max_gap(sizes, 0.3)
    assert 0 <= largest_confirmable_gap(sizes, smallest + 0.003, 0.3) < 0.02
    assert largest_confirmable_gap(sizes, smallest - 0.003, 0.3) is None


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(300, 500), (400, 400)])
def test_the_smallest_max_gap_is_confirmed_as_planned(sizes):
    """And a limit that is a fifth smaller is not: the control."""
    smallest = smallest_max_gap(sizes)
    noise = np.sqrt(0.16 / N_DRAWS)
    assert simulated_power(sizes, (0.5, 0.5), smallest, 0.95) > 0.79 - 4 * noise
    assert simulated_power(sizes, (0.5, 0.5), 0.8 * smallest, 0.95) < 0.7


def test_a_large_gap_is_confirmed_by_few_rows():
    assert rows_to_confirm(0.9) < 10
    assert largest_confirmable_gap([80, 120], 0.9) > 0.7
    assert largest_confirmable_gap([8, 12], 0.9) > 0.2


def test_the_smallest_max_gap_of_few_rows():
    n = rows_to_confirm(0.2)
    assert smallest_max_gap([n, n]) == pytest.approx(0.2, abs=0.005)
    assert smallest_max_gap([0, 50]) is None
    assert smallest_max_gap([1, 1]) is None


@pytest.mark.slow
def test_several_groups_against_simulation():
    """The sum over pairs is at most what it says, and not much less."""
    sizes = np.array([900, 1100, 1300])
    gap = largest_confirmable_gap(sizes, 0.1, 0.4)
    rates = np.array([0.4 + gap / 2, 0.4 - gap / 2, 0.4])
    assert 0.72 < simulated_power(sizes, rates, 0.1, 0.95) < 0.92
    assert largest_confirmable_gap(sizes[:2], 0.1, 0.4) > gap
    assert largest_confirmable_gap(sizes[::-1], 0.1, 0.4) == gap, "in any order"


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 3000), min_size=2, max_size=4), st.floats(0.05, 0.95))
def test_more_rows_confirm_no_smaller_gap(sizes, rate):
    gap = largest_confirmable_gap(sizes, 0.1, rate)
    more = largest_confirmable_gap([2 * size for size in sizes], 0.1, rate)
    if gap is not None:
        assert 0 <= gap < 0.1
        assert more >= gap - 0.003  # counts are discrete
    if 0 in sizes:
        assert gap is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_gap": 0.05, "gap": 0.05}, "gap must be at least 0 and below max_gap=0.05"),
        ({"max_gap": 0.0}, "gap must be at least 0 and below max_gap=0"),
        ({"max_gap": 5}, "max_gap must lie between 0 and 1, got 5"),
        ({"max_gap": 0.1, "rate": -1}, "rate must lie between 0 and 1"),
        ({"max_gap": 0.1, "power": 1}, "power must lie between 0 and 1"),
        ({"max_gap": 0.1, "confidence": 0.5}, "confidence must be above 0.5"),
        ({"max_gap": 0.1, "confidence": 95}, "confidence must lie between 0 and 1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        rows_to_confirm(**arguments)


@pytest.mark.parametrize("rows", [[5], [[1, 2], [3, 4]], [-1, 3]])
def test_rows_of_two_groups_are_needed(rows):
    with pytest.raises(ValueError, match="rows of each of two or more groups"):
        largest_confirmable_gap(rows, 0.1)
