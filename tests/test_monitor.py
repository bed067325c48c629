"""What is read off the watched rows, against sorting, brute force and row-by-row sums."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracles
from fairproj.boosting.finish import Run, choose_round, probability_at
from fairproj.boosting.losses import ExponentialLoss, LogisticLoss
from fairproj.boosting.monitor import Monitor, better_than_constants, says_both
from fairproj.boosting.operating_point import Threshold, error_rate_limit, selection_rate
from fairproj.boosting.record import Bias, StopReason
from fairproj.boosting.requirements import find_requirements
from fairproj.boosting.rows import N_BINS, ScoredRows
from fairproj.data.checks import Groups
from fairproj.data.sample import Sample

CLASSES = np.array([-1, 1])


def scored(y, groups, weight, margin, pos=1, loss=None):
    groups = Groups(groups, list(range(groups.max() + 1)))
    sample = Sample(None, y, CLASSES, weight, groups, int(pos > 0))
    rows = ScoredRows(sample, loss or LogisticLoss())
    rows.add(margin, 1.0)
    return rows


def random_rows(seed, n_rows=60, *, weighted=True, distinct=None, informative=1.0, n_groups=2):
    """Rows with margins of any sign and size, some of them equal; every cell has rows."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n_rows) % n_groups
    y = np.where(rng.random(n_rows) < 0.4, 1.0, -1.0)
    y[: 2 * n_groups] = np.repeat([-1.0, 1.0], n_groups)
    margin = informative * y + rng.normal(size=n_rows) + 0.5 * groups
    if distinct is not None:
        margin = rng.normal(size=distinct)[rng.integers(distinct, size=n_rows)]
    weight = rng.uniform(0.2, 3, n_rows) if weighted else np.ones(n_rows)
    return y, groups, weight, margin


# Useful


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.floats(0, 1.0))
def test_better_than_constants_by_paired_differences(seed, weighted, informative):
    rng = np.random.default_rng(seed)
    y, groups, weight, margin = random_rows(seed, weighted=weighted, informative=informative)
    rows = scored(y, groups, weight, margin)
    by_label = rng.uniform(0.2, 3, 2)
    s, predicted = weight / weight.sum(), np.where(margin > 0, 1.0, -1.0)
    expected = oracles.useful(y, predicted, s, by_label[(y > 0) * 1])
    several = np.stack([rows.correct(), rows.correct(0.3)], axis=1)
    outcome = better_than_constants(several, rows.size, np.tile(by_label, 2), rows.effective_rows)
    assert rows.effective_rows == pytest.approx(1 / (s @ s))
    assert outcome[0] == expected
    predicted = np.where(margin > 0.3, 1.0, -1.0)
    assert outcome[1] == oracles.useful(y, predicted, s, by_label[(y > 0) * 1])


def test_models_of_both_kinds_are_among_the_examples():
    def share(informative):
        outcomes = []
        for seed in range(40):
            y, groups, weight, margin = random_rows(seed, informative=informative)
            rows = scored(y, groups, weight, margin)
            outcomes.append(
                better_than_constants(rows.correct(), rows.size, np.ones(4), rows.effective_rows)
            )
        return np.mean(outcomes)

    assert share(0.0) < 0.2 < 0.6 < share(1.0)


def test_constant_models_are_not_useful():
    y, groups, weight, _ = random_rows(0)
    for constant in (-1.0, 1.0):
        rows = scored(y, groups, weight, np.full(len(y), constant))
        costs = np.ones(4)
        assert not better_than_constants(rows.correct(), rows.size, costs, rows.effective_rows)


@pytest.mark.parametrize(
    ("n_predicted", "expected"), [(0, False), (39, False), (40, True), (41, True)]
)
@pytest.mark.parametrize("pos", [-1, 1])
def test_a_model_that_hardly_ever_says_one_label_is_not_useful(n_predicted, expected, pos):
    """400 of 1000 rows have the rarer label, and all rows that are predicted to have it."""
    y = np.where(np.arange(1000) < 400, 1.0, -1.0) * pos
    margin = np.where(np.arange(1000) < n_predicted, 1.0, -1.0) * pos
    rows = scored(y, np.arange(1000) % 2, np.ones(1000), margin)
    assert says_both(rows.correct(), rows.size) == expected
    required = find_requirements("demographic_parity", 0.5, rows.cells)

    def reading(point):
        return Monitor(rows, "rows", required, point, np.ones(4), unit=1.0).read(sweep=False)

    assert reading(Threshold(0.5, 1.0, rows.cells)).useful == expected
    # A share that was asked for is not held against a model.
    share = n_predicted / 1000 if pos > 0 else 1 - n_predicted / 1000
    if n_predicted == 39:
        assert reading(selection_rate(share, rows.cells)).useful


# Rates and gaps


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([-1, 1]))
def test_standard_errors_of_gaps(seed, pos):
    y, groups, weight, margin = random_rows(seed, n_groups=3)
    rows = scored(y, groups, weight, margin, pos)
    names = ["equalized_odds", "accuracy_parity", "selection_ratio"]
    required = find_requirements(names, 0.1, rows.cells)
    parts, s = oracles.shares(names, y, pos), weight / weight.sum()
    predicted = np.where(margin > 0, 1.0, -1.0)
    rates = oracles.share_rates(parts, predicted, groups, s)
    errors = required.standard_errors(required.reader(rows.size)(rows.correct()), rows)
    for e, (_, kind, inside, outcome) in enumerate(parts):
        variances = []
        for g in range(3):
            own = inside & (groups == g)
            share = s[own] / s[own].sum()
            rate = share @ outcome(predicted)[own]
            # Var of a weighted mean of independent outcomes of the same variance, for a rate with
            # one success and one failure more.
            n_effective = 1 / (share**2).sum()
            rate = (n_effective * rate + 1) / (n_effective + 2)
            variances.append(rate * (1 - rate) / n_effective)
        own_rates = rates[:, e]
        lowest = np.flatnonzero(own_rates <= own_rates.min() + 1e-12)  # groups may tie
        highest = np.flatnonzero(own_rates >= own_rates.max() - 1e-12)
        expected = [
            np.sqrt(variances[low] + variances[high])
            if kind == "difference"
            else np.sqrt(variances[low] + (own_rates[low] / own_rates[high]) ** 2 * variances[high])
            / own_rates[high]
            for low in lowest
            for high in highest
            if kind == "difference" or own_rates[high] > 0
        ]
        if expected:
            assert np.abs(np.array(expected) - errors[e]).min() < 1e-10


def test_the_standard_error_of_a_ratio_is_that_of_repeated_samples():
    rng = np.random.default_rng(0)
    n, rates = 400, (0.3, 0.5)
    draws = rng.binomial(n, rates, size=(20_000, 2)) / n
    spread = (1 - draws.min(axis=1) / draws.max(axis=1)).std()
    y = np.tile([-1.0, 1.0], n)
    groups = np.repeat([0, 1], n)
    margin = np.concatenate([np.arange(n) < n * rate for rate in rates]) - 0.5
    rows = scored(y, groups, np.ones(2 * n), margin)
    required = find_requirements("selection_ratio", 0.2, rows.cells)
    (error,) = required.standard_errors(required.reader(rows.size)(rows.correct()), rows)
    assert error == pytest.approx(spread, rel=0.03)


def test_rates_of_one_have_a_standard_error_too():
    """A rate of 1, which may come out as 1 + 2e-16, is not known exactly."""
    y, groups, weight, margin = random_rows(3)
    rows = scored(y, groups, weight, margin)
    required = find_requirements("demographic_parity", 0.1, rows.cells)
    rates = np.array([[np.nextafter(1, 2)], [np.nextafter(1, 2)]])
    (error,) = required.standard_errors(rates, rows)
    assert 0 < error < 0.1


# Cuts


def shares_above(margin, weight, inside):
    """Every distinct cut between margins, with the share of the inside weight above it."""
    levels = np.unique(margin[inside])
    cuts = np.r_[levels[0] - 1, (levels[1:] + levels[:-1]) / 2, levels[-1] + 1]
    total = weight[inside].sum()
    return np.array([weight[inside & (margin > cut)].sum() / total for cut in cuts])


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0.02, 0.98),
    side=st.sampled_from(["nearest", "at_most", "at_least"]),
    distinct=st.sampled_from([None, 1, 3]),
    label=st.sampled_from([None, -1, 1]),
    scale=st.sampled_from([0.1, 1.0, 30.0]),
)
def test_cuts_against_sorting(seed, share, side, distinct, label, scale):
    y, groups, weight, margin = random_rows(seed, distinct=distinct)
    margin = margin * scale
    # Cuts are found up to 2e-6 of f / (1 + |f|).
    squashed = np.unique(margin / (1 + np.abs(margin)))
    assume((np.diff(squashed) > 4e-6).all())
    rows = scored(y, groups, weight, margin)
    inside = np.ones(len(y), bool) if label is None else y == label
    by_cell = np.ones(4, bool) if label is None else np.tile([label < 0, label > 0], 2)
    cut = rows.find_cut(by_cell, share, side)
    above = weight[inside & (margin - cut > 1e-9)].sum() / weight[inside].sum()
    possible = shares_above(margin, weight, inside)
    if side == "at_most":
        assert above == pytest.approx(possible[possible <= share + 1e-9].max(), abs=1e-9)
    elif side == "at_least":
        assert above == pytest.approx(possible[possible >= share - 1e-9].min(), abs=1e-9)
    else:
        assert abs(above - share) == pytest.approx(np.abs(possible - share).min(), abs=1e-9)


@pytest.mark.parametrize("pos", [-1, 1])
def test_operating_points_decide_where_they_say(pos):
    y, groups, weight, margin = random_rows(1, n_rows=500)
    rows = scored(y, groups, weight, margin, pos)
    positive = y == pos

    def rate_of(point, inside, outcome):
        predicted = np.where(margin - point.cut(rows) > 1e-9, 1, -1)
        return weight[inside & (predicted == outcome)].sum() / weight[inside].sum()

    everyone, grain = np.ones(len(y), bool), 3 * weight.max() / weight.sum()
    selected = rate_of(selection_rate(0.2, rows.cells), everyone, pos)
    assert selected == pytest.approx(0.2, abs=grain)
    false_positive = rate_of(error_rate_limit(0.1, rows.cells, positive=False), ~positive, pos)
    assert 0.1 - 2 * grain <= false_positive <= 0.1 + 1e-9
    missed = rate_of(error_rate_limit(0.3, rows.cells, positive=True), positive, -pos)
    assert 0.3 - 2 * grain <= missed <= 0.3 + 1e-9


@pytest.mark.parametrize("pos", [-1, 1])
@pytest.mark.parametrize("loss", [LogisticLoss(), ExponentialLoss()])
def test_a_threshold_is_a_probability_of_the_positive_label(loss, pos):
    y, groups, weight, margin = random_rows(1)
    rows = scored(y, groups, weight, margin, pos, loss)
    cut = Threshold(0.7, loss.link_scale, rows.cells).cut(rows)
    probability = 1 / (1 + np.exp(-pos * loss.link_scale * margin))
    np.testing.assert_array_equal((margin - cut) * pos > 0, probability > 0.7)


# The bias


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(["equal_opportunity", "demographic_parity", "selection_ratio"]),
    pos=st.sampled_from([-1, 1]),
    threshold=st.sampled_from([0.5, 0.7]),
    max_gap=st.sampled_from([0.05, 0.15]),
)
def test_the_bias_is_nearly_the_best_of_all_cuts(seed, name, pos, threshold, max_gap):
    y, groups, weight, margin = random_rows(seed, n_rows=300)
    rows = scored(y, groups, weight, margin, pos)
    required = find_requirements(name, max_gap, rows.cells)
    point = Threshold(threshold, 1.0, rows.cells)
    monitor = Monitor(rows, "rows", required, point, np.ones(4), unit=np.log(2))
    reading = monitor.read(sweep=True)
    s, parts = weight / weight.sum(), oracles.shares(name, y, pos)
    cost = np.where(y == pos, 1 - threshold, threshold)

    def within_at(cut):
        predicted = np.where(margin > cut, 1.0, -1.0)
        rates = oracles.share_rates(parts, predicted, groups, s)
        return oracles.share_gaps(parts, rates)[0] <= max_gap + 1e-9

    def state(cut):
        predicted = np.where(margin > cut, 1.0, -1.0)
        rates = oracles.share_rates(parts, predicted, groups, s)
        within = oracles.share_gaps(parts, rates)[0] <= max_gap + 1e-9
        fit = (
            within and oracles.useful(y, predicted, s, cost) and oracles.says_both(y, predicted, s)
        )
        return fit, s @ (cost * (predicted != y)) / (s @ cost), rates, predicted

    cut = reading.cut
    assert monitor.read(sweep=False).bias is None
    assert reading.within == within_at(cut)
    if reading.within:
        assert reading.bias is None
        return
    levels = np.sort(margin)
    brute = [state(each) for each in (levels[1:] + levels[:-1]) / 2]
    best = min((error for fit, error, *_ in brute if fit), default=np.inf)
    bias = reading.bias
    if bias is None:
        # A cut that fits may lie between two edges of the bins; a fit over many cuts may not.
        assert sum(fit for fit, *_ in brute) <= 3
        return
    fit, error, rates, predicted = state(cut - bias.value)
    assert fit
    assert error >= best - 1e-9
    assert error <= best + 3 * s.max() * 2  # up to the rows of a bin
    assert bias.accuracy == pytest.approx(s @ (predicted == y))
    np.testing.assert_allclose(bias.rates, rates.ravel(), atol=1e-10)
    np.testing.assert_allclose(bias.gaps, oracles.share_gaps(parts, rates), atol=1e-10)
    shifted = np.log(1 + np.exp(-y * (margin + bias.value)))
    assert bias.loss == pytest.approx(s @ shifted / np.log(2))


def test_a_bias_is_found_in_most_examples():
    found = 0
    for seed in range(20):
        y, groups, weight, margin = random_rows(seed, n_rows=300)
        rows = scored(y, groups, weight, margin)
        required = find_requirements("demographic_parity", 0.1, rows.cells)
        point = Threshold(0.5, 1.0, rows.cells)
        monitor = Monitor(rows, "rows", required, point, np.ones(4), unit=np.log(2))
        found += monitor.read(sweep=True).bias is not None
    assert found > 5
    assert N_BINS >= 1000


@pytest.mark.parametrize("name", ["demographic_parity", "selection_ratio"])
def test_one_standard_error_to_spare(name):
    y, groups, weight, margin = random_rows(2, n_rows=400)
    rows = scored(y, groups, weight, margin)
    required = find_requirements(name, 0.3, rows.cells)
    point = Threshold(0.5, 1.0, rows.cells)
    loose, strict = (
        Monitor(rows, "rows", required, point, np.ones(4), unit=1.0, spare=spare).read(sweep=True)
        for spare in (False, True)
    )
    error = required.standard_errors(strict.rates, rows)
    np.testing.assert_allclose(loose.allowed, 0.3)
    np.testing.assert_allclose(strict.allowed, 0.3 - error)
    limit = float(strict.gaps[0]) + 0.5 * float(error[0])  # within, but not by a standard error
    between = replace(required, limits=np.array([limit]))
    answers = [
        Monitor(rows, "rows", between, point, np.ones(4), unit=1.0, spare=spare).read(sweep=False)
        for spare in (False, True)
    ]
    assert [answer.within for answer in answers] == [True, False]


# The round that is kept


def seen(loss, gaps, *, within, useful=True, bias=None):
    if bias is not None:
        bias = Bias(value=bias[0], accuracy=0.6, loss=bias[1], rates=(), gaps=(0.0,))
    return SimpleNamespace(loss=loss, gaps=(gaps,), within=within, useful=useful, bias=bias)


LIMIT = np.array([0.05])


def test_the_round_of_least_loss_within_the_limits():
    observed = [
        seen(0.3, 0.01, within=True, useful=False),
        seen(0.5, 0.2, within=False),
        seen(0.9, 0.04, within=True),
        seen(0.8, 0.05, within=True, bias=(1.0, 0.1)),
        seen(0.4, 0.06, within=False, bias=(2.0, 0.2)),
    ]
    assert choose_round(observed, LIMIT) == (4, 0.0)


def test_a_useful_round_of_the_first_half_where_the_later_half_has_none():
    useful = [False, True, False, False]
    gaps = [0.06, 0.2, 0.06, 0.07]
    observed = [
        seen(0.5, gap, within=False, useful=one) for gap, one in zip(gaps, useful, strict=True)
    ]
    assert choose_round(observed, LIMIT) == (2, 0.0)
    observed[3] = seen(0.5, 0.3, within=False)
    assert choose_round(observed, LIMIT) == (4, 0.0), "the later half has one"


def test_a_bias_only_where_no_round_is_within():
    observed = [
        seen(0.5, 0.2, within=False, bias=(-1.0, 0.7)),
        seen(0.4, 0.2, within=False, bias=(2.0, 0.6)),
        seen(0.3, 0.06, within=False),
        seen(0.2, 0.0, within=True, useful=False, bias=(3.0, 0.65)),
    ]
    assert choose_round(observed, LIMIT) == (2, 2.0)


def test_the_nearest_useful_round_of_the_later_half():
    observed = [
        seen(0.5, 0.1, within=False),
        seen(0.4, 0.4, within=False),
        seen(0.3, 0.3, within=False),
        seen(0.2, 0.2, within=False),
        seen(0.1, 0.0, within=True, useful=False),
    ]
    assert choose_round(observed, LIMIT) == (4, 0.0)
    assert choose_round(observed[:2] + observed[4:] * 2, LIMIT) == (1, 0.0)


def test_the_later_half_of_an_odd_number_of_rounds_has_the_middle_one():
    gaps = (0.4, 0.06, 0.1, 0.2, 0.3)
    assert choose_round([seen(0.5, gap, within=False) for gap in gaps], LIMIT) == (3, 0.0)


def test_the_round_of_least_loss_where_none_is_useful():
    losses = (0.5, 0.3, 0.4)
    observed = [seen(loss, 0.0, within=True, useful=False) for loss in losses]
    assert choose_round(observed, LIMIT) == (2, 0.0)


@pytest.mark.parametrize("useful", [True, False])
def test_of_equal_rounds_the_first_is_kept(useful):
    """Losses that differ in the last bit are equal."""
    losses = (0.5, np.nextafter(0.3, 1), 0.3)
    observed = [seen(loss, 0.01, within=True, useful=useful) for loss in losses]
    assert choose_round(observed, LIMIT).kept == 2
    observed[2].loss -= 1e-6
    assert choose_round(observed, LIMIT).kept == 3
    near = [seen(0.5, gap, within=False) for gap in (0.4, 0.4, 0.2, np.nextafter(0.2, 0))]
    assert choose_round(near, LIMIT).kept == 3


def test_each_gap_counts_against_its_own_limit():
    observed = [
        SimpleNamespace(loss=0.5, gaps=gaps, within=False, useful=True, bias=None)
        for gaps in ((0.5, 0.5), (0.06, 0.4), (0.2, 0.11))
    ]
    assert choose_round(observed, np.array([0.05, 0.1])).kept == 3
    assert choose_round(observed, np.array([0.05, 0.4])).kept == 2


@pytest.mark.parametrize("cut", [-1.5, 0.0, 0.4])
def test_the_probability_of_the_positive_label_at_a_cut(cut):
    """The margin is that of label 1, with log odds of link_scale times it."""
    for link_scale in (1.0, 2.0):
        odds = np.exp(link_scale * cut)
        assert probability_at(cut, link_scale, 1) == pytest.approx(odds / (1 + odds))
        assert probability_at(cut, link_scale, 0) == pytest.approx(1 / (1 + odds))


def test_the_history_of_a_run():
    """JSON has no infinity: a limit that is none is the largest number."""
    limits = np.array([0.1, np.inf])
    run = Run(None, 2.0, [], [], StopReason.EARLY, 0.5, limits)
    history = run.history(("first", "second"))
    assert history.limits == (0.1, np.finfo(float).max)
    assert history.constraint_names == ("first", "second")
    assert history.learning_rate == 0.5
    assert history.stop_reason is StopReason.EARLY
    assert len(history) == 0
