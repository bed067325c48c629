"""Bounds of differences: every outcome enumerated, scipy, simulation, and what the bound claims."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from fairproj.inference.differences import (
    COARSE,
    FINE,
    GAMMA,
    MOST_SUMMED,
    Pair,
    _at_least,
    _far_below,
    _leading,
    _ordered,
    _rank,
    _Test,
    _Tests,
    difference_bound,
    largest_difference_bound,
    largest_difference_low,
)

counts = st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@st.composite
def pairs(draw):
    return Pair(*draw(counts), *draw(counts))


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 1), (3, 9), (12, 5), (10, 10)])
@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.975])
def test_it_is_wrong_as_rarely_as_it_says(n_a, n_b, confidence):
    """The exact chance, summed over all outcomes, on a grid of true rates that its cells miss."""
    bound = np.array(
        [
            [difference_bound(Pair(i, n_a, j, n_b), confidence) for j in range(n_b + 1)]
            for i in range(n_a + 1)
        ]
    )
    rates = np.append(np.linspace(0, 1, 47), [0.001, 0.999])
    worst = 0.0
    for a, b in product(rates, rates):
        chance = np.outer(
            stats.binom.pmf(np.arange(n_a + 1), n_a, a), stats.binom.pmf(np.arange(n_b + 1), n_b, b)
        )
        worst = max(worst, chance[bound < a - b].sum())
    assert worst <= 1 - confidence
    if min(n_a, n_b) >= 5:
        assert worst > 0.7 * (1 - confidence), "a bound this cautious is not the one described"


@settings(max_examples=40)
@given(pairs(), st.sampled_from([0.8, 0.95]), st.floats(-0.9, 0.95))
@example(Pair(10, 10, 0, 1), 0.8, -0.5)
def test_p_value_against_plain_enumeration(pair, confidence, difference):
    """From above, and near: every outcome and 4,001 rates of b, by scipy's binomial."""
    hits_a, n_a, hits_b, n_b = pair
    i, j = np.arange(n_a + 1)[:, None], np.arange(n_b + 1)[None, :]
    z = stats.norm.ppf(confidence)
    region = _rank(Pair(i, n_a, j, n_b), z) <= _rank(pair, z) + 1e-12
    near = stats.binomtest(hits_b, n_b).proportion_ci(1 - GAMMA * (1 - confidence), "exact")
    near_a = stats.binomtest(hits_a, n_a).proportion_ci(1 - GAMMA * (1 - confidence), "exact")

    # Rates that differ by D, or by less where one of them is 0 or 1, within the interval of the
    # rate with more rows.
    if n_a > n_b:
        a = np.linspace(near_a.low, near_a.high, 4001)
        b = np.minimum(a - difference, 1)
    else:
        b = np.linspace(near.low, near.high, 4001)
        a = np.maximum(b + difference, 0)
    possible = (a <= 1) & (b >= 0)
    chance = np.einsum(
        "ki,ij,kj->k",
        stats.binom.pmf(i.ravel(), n_a, a[possible, None]),
        region.astype(float),
        stats.binom.pmf(j.ravel(), n_b, b[possible, None]),
    )
    expected = chance.max(initial=0.0) + GAMMA * (1 - confidence)
    got = _Test(pair, confidence, *FINE).p_value(difference)
    assert got >= expected - 1e-9
    finer = _Test(pair, confidence, 2000, 2000).p_value(difference)
    assert finer <= expected + 0.03
    assert _Test(pair, confidence, *COARSE).p_value(difference) >= finer - 1e-12


@given(pairs(), st.sampled_from([0.7, 0.95]))
def test_outcomes_are_ranked_as_the_proof_needs(pair, confidence):
    z = stats.norm.ppf(confidence)
    i, j = np.arange(pair.n_a + 1)[:, None], np.arange(pair.n_b + 1)[None, :]
    rank = _rank(Pair(i, pair.n_a, j, pair.n_b), z)
    assert (np.diff(rank, axis=0) > 0).all()
    assert (np.diff(rank, axis=1) < 0).all()
    assert (rank >= i / pair.n_a - j / pair.n_b).all()


@given(pairs(), st.sampled_from([0.8, 0.95]))
def test_yes_and_no_may_be_swapped(pair, confidence):
    """p_a - p_b = (1 - p_b) - (1 - p_a)."""
    swapped = Pair(pair.n_b - pair.hits_b, pair.n_b, pair.n_a - pair.hits_a, pair.n_a)
    if pair.n_a != pair.n_b:
        same = difference_bound(swapped, confidence)
        assert difference_bound(pair, confidence) == pytest.approx(same, abs=1e-5)


@given(pairs())
def test_more_confidence_and_more_hits_raise_it(pair):
    bound = difference_bound(pair, 0.9)
    assert -1 <= bound <= 1
    assert bound > pair.hits_a / pair.n_a - pair.hits_b / pair.n_b or bound == 1
    if pair.hits_a < pair.n_a:
        assert difference_bound(pair._replace(hits_a=pair.hits_a + 1), 0.9) >= bound - 2e-4


@pytest.mark.parametrize("n", [500, 40_000, 3_000_000, 7_000_000_000])
def test_for_many_rows_it_is_nearly_the_textbooks(n):
    pair = Pair(int(0.55 * n), n, int(0.5 * 2 * n), 2 * n)
    wide = np.sqrt(0.55 * 0.45 / n + 0.25 / (2 * n))
    for confidence in (0.9, 0.975):
        ratio = (difference_bound(pair, confidence) - 0.05) / (wide * stats.norm.ppf(confidence))
        assert 0.99 < ratio < 1.1


@pytest.mark.parametrize(("rate", "n"), [(1e-3, 10**5), (1e-3, 10**6), (1e-4, 10**8)])
def test_small_rates(rate, n):
    pair = Pair(int(rate * n), n, int(rate * n), n)
    ratio = difference_bound(pair, 0.975) / float(_rank(pair, stats.norm.ppf(0.975)))
    assert 0.99 < ratio < 1.1


@pytest.mark.parametrize(("hits", "beyond"), [(250, 0.043), (450, 0.026)])
def test_the_docs_figures(hits, beyond):
    assert difference_bound(Pair(hits, 500, hits, 500), 0.9) == pytest.approx(beyond, abs=0.0005)


def test_a_group_without_rows_may_have_any_rate():
    high = stats.binomtest(3, 10, alternative="less").proportion_ci(0.9, "exact").high
    low = stats.binomtest(3, 10, alternative="greater").proportion_ci(0.9, "exact").low
    assert difference_bound(Pair(3, 10, 0, 0), 0.9) == pytest.approx(high)
    assert difference_bound(Pair(0, 0, 3, 10), 0.9) == pytest.approx(1 - low)
    assert difference_bound(Pair(0, 0, 0, 0), 0.9) == 1.0
    found = largest_difference_bound(np.array([3, 0]), np.array([10, 0]), 0.9)
    assert found == pytest.approx(max(high, 1 - low))


@settings(max_examples=25)
@given(st.lists(counts, min_size=2, max_size=6), st.sampled_from([0.8, 0.975]))
def test_the_largest_is_that_of_all_pairs(groups, confidence):
    hits, rows = (np.array(column) for column in zip(*groups, strict=True))
    each = [
        difference_bound(Pair(*groups[a], *groups[b]), confidence)
        for a, b in product(range(len(groups)), repeat=2)
        if a != b
    ]
    found = largest_difference_bound(hits, rows, confidence)
    assert found == pytest.approx(max(0.0, *each), abs=2e-4)


def test_groups_that_are_alike_are_compared_once():
    rows, hits = np.full(60, 2000), np.full(60, 1000)
    one = difference_bound(Pair(1000, 2000, 1000, 2000), 0.975)
    assert len(_leading(_ordered(hits, rows)).n_a) == 1
    assert largest_difference_bound(hits, rows, 0.975) == one
    hits = hits + np.arange(60)
    one = difference_bound(Pair(1059, 2000, 1000, 2000), 0.975)
    assert largest_difference_bound(hits, rows, 0.975) == pytest.approx(one, abs=1e-5)


def test_the_lower_bound_is_the_best_of_a_few_pairs():
    hits, rows = np.array([4, 662, 11, 37, 1]), np.array([9, 1000, 15, 40, 4])
    pairs = permutations(zip(hits, rows, strict=True), 2)
    best = max(-difference_bound(Pair(*a, *b), 1 - 0.025 / 20) for a, b in pairs)
    assert best > 0.05
    assert largest_difference_low(hits, rows, 1 - 0.025 / 20) == pytest.approx(best, abs=1e-6)


def test_pairs_ranked_below_the_bound_are_not_passed_over():
    """Ranks only order the pairs: with few rows a bound may lie far above its rank."""
    hits, rows = np.array([40, 12, 33, 1, 1]), np.array([74, 12, 53, 1, 1])
    pairs = permutations(zip(hits, rows, strict=True), 2)
    best = max(difference_bound(Pair(*a, *b), 0.8) for a, b in pairs)
    assert largest_difference_bound(hits, rows, 0.8) == pytest.approx(best, abs=2e-4)


def test_hoeffdings_short_cut_leaves_nothing_out():
    rng = np.random.default_rng(0)
    rows = rng.integers(50, 400, size=25)
    hits = rng.binomial(rows, rng.uniform(0.1, 0.9, size=25))
    best = max(
        difference_bound(Pair(hits[a], rows[a], hits[b], rows[b]), 0.95)
        for a in np.argsort(-hits / rows)[:6]
        for b in np.argsort(hits / rows)[:6]
    )
    assert largest_difference_bound(hits, rows, 0.95) == pytest.approx(best, abs=1e-4)


@settings(max_examples=60)
@given(
    st.integers(1, 200_000),
    st.floats(0, 1),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
    st.integers(1, 300),
)
@example(MOST_SUMMED, 0.3, [0.3, 0.3004], 200)
@example(MOST_SUMMED + 1, 0.3, [0.3, 0.3004], 200)
@example(5, 1.0, [0.0, 1.0], 3)
def test_chances_of_counts_against_scipy(n, middle, rates, width):
    """Summed where counts are close to one another, and incomplete beta functions elsewhere."""
    counts = np.sort(np.clip(int(middle * n) + np.arange(-width, width, 7), 0, n + 1))
    counts = np.concatenate([[0], counts])
    rate = np.array(rates)
    found = _at_least(counts[None, None, :], np.full((1, 1, 1), n), rate[None, :, None])
    expected = stats.binom.sf(counts - 1, n, rate[:, None])
    np.testing.assert_allclose(found[0], expected, rtol=1e-7, atol=1e-12)


def test_chances_of_several_pairs_are_scipys():
    """P(X >= count), also for counts below 0 and above n."""
    n = np.array([1, 7, 40]).reshape(-1, 1, 1)
    count = np.array([-1, 0, 1, 2, 7, 41]).reshape(1, 1, -1).repeat(3, axis=0)
    rate = np.array([0.02, 0.5, 0.97]).reshape(1, -1, 1).repeat(3, axis=0)
    found = _at_least(count, n, rate)
    np.testing.assert_allclose(found, stats.binom.sf(count - 1, n, rate), atol=1e-12)


def test_a_group_without_rows_does_not_change_what_the_others_show():
    hits, rows = np.array([30.0, 5.0]), np.array([40.0, 40.0])
    known = largest_difference_low(hits, rows, 0.95)
    assert known > 0.3
    more = largest_difference_low(np.append(hits, 0.0), np.append(rows, 0.0), 0.95)
    assert more == known


@pytest.mark.parametrize("confidence", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("pair", [Pair(30, 60, 20, 60), Pair(9, 10, 2, 25), Pair(2, 40, 30, 35)])
def test_below_a_half_the_bound_lies_below_what_was_seen(pair, confidence):
    """The least difference that is refuted, found by halving."""
    test = _Test(pair, confidence, *FINE)
    low, expected = -1.0, 1.0
    while expected - low > 1e-5:
        middle = (low + expected) / 2
        low, expected = (low, middle) if test.refutes(middle) else (middle, expected)
    assert expected < pair.hits_a / pair.n_a - pair.hits_b / pair.n_b
    assert difference_bound(pair, confidence) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("pair", [Pair(30, 60, 20, 60), Pair(90, 300, 100, 400), Pair(1, 9, 3, 7)])
def test_a_bound_takes_few_evaluations(pair, monkeypatch):
    """It is sought between the difference seen and twice as far out as Newcombe's limit."""
    tried, p_value = [], _Test.p_value
    monkeypatch.setattr(
        _Test, "p_value", lambda self, at: tried.append(float(at)) or p_value(self, at)
    )
    difference_bound(pair, 0.95)
    seen = pair.hits_a / pair.n_a - pair.hits_b / pair.n_b
    assert min(tried) >= seen - 1e-12
    inside = [each for each in tried if each < 1]
    rank = float(_rank(pair, stats.norm.ppf(0.95)))
    assert len(tried) - len(inside) == 1, "1 itself is tried once"
    assert max(inside) <= 2 * rank - seen + 1e-12
    assert len(tried) <= 9


def test_the_rates_are_cut_into_as_many_cells_as_asked_for():
    pairs = Pair(*(np.array([each]) for each in (3, 10, 5, 20)))
    for cells in (8, 96):
        tests = _Tests(pairs, 0.95, cells, 24)
        assert tests._lower.shape == (1, cells)


def test_pairs_are_far_below_a_bound_by_hoeffding():
    """exp(-2 (bound - rank)^2 / (1 / n_a + 1 / n_b)) is 2e-9 at 0.2, and 0.08 at 0.1."""
    pair = Pair(*(np.array([each]) for each in (250, 500, 250, 500)))
    assert _far_below(0.4, np.array([0.2]), pair, 0.95)
    assert not _far_below(0.271, np.array([0.2]), pair, 0.95)  # 0.08
    assert not _far_below(0.2, np.array([0.4]), pair, 0.95)
