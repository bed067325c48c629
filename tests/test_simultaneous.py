"""Intervals that hold together: by simulation, with a negative control, and in all outputs."""

import json

import numpy as np
import pytest
from scipy import stats

from commands import run, run_json
from fairproj import FairnessReport
from fairproj.constraints import RATES, STATISTICS
from fairproj.data.cells import CellCounts
from fairproj.inference import exact_interval
from fairproj.inference.differences import (
    difference_range,
    largest_difference_bound,
    largest_difference_low,
)
from fairproj.inference.ratios import shortfall_range
from fairproj.inference.simultaneous import Errors, sidak

REQUIREMENTS = {each for one in STATISTICS.values() for each in one.requirements}


class Population:
    """Rows of K groups: a share of positive labels, and true and false positive rates, in each."""

    def __init__(self, n_groups, rows, seed=0):
        rng = np.random.default_rng(seed)
        self.names = [f"g{at}" for at in range(n_groups)]
        self.rows = np.full(n_groups, rows)
        self.share = rng.uniform(0.3, 0.6, n_groups)
        self.rates = np.column_stack(
            [rng.uniform(0.1, 0.4, n_groups), rng.uniform(0.6, 0.9, n_groups)]
        )

    def draw(self, rng):
        positives = rng.binomial(self.rows, self.share)
        size = np.column_stack([self.rows - positives, positives])
        return CellCounts(size.astype(float), rng.binomial(size, self.rates).astype(float))

    def truth(self):
        """All rates and gaps, from the probabilities of the four outcomes."""
        size = np.column_stack([1 - self.share, self.share])
        counts = CellCounts(size, size * self.rates)
        rates = {name: rate.values(counts) for name, rate in RATES.items()}
        return rates, {name: one.value(counts) for name, one in STATISTICS.items()}

    def rates_hold(self, low, high):
        rates, _ = self.truth()
        true = np.concatenate([rates[name] for name in RATES])
        return bool(((low <= true) & (true <= high)).all())

    def holds(self, report):
        """Whether all intervals of a report hold the truth."""
        _, gaps = self.truth()
        true = report.gaps["gap"].map(gaps)
        low, high = report.gaps["low"] - 1e-12, report.gaps["high"] + 1e-12
        right = ((low <= true) & (true <= high)).all()
        return bool(right) and self.rates_hold(report.rates["low"], report.rates["high"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_groups", "rows", "repetitions"),
    [(2, 25, 100), (2, 200, 50), (3, 25, 50), (3, 150, 25), (8, 40, 25)],
)
def test_joint_coverage(n_groups, rows, repetitions):
    """Failures are at most what 5 % may bring."""
    population, rng = Population(n_groups, rows), np.random.default_rng(1)
    failed = 0
    for _ in range(repetitions):
        counts = population.draw(rng)
        report = FairnessReport.from_counts(counts, population.names, simultaneous=True)
        failed += not population.holds(report)
    assert failed <= stats.binom.ppf(0.999, repetitions, 0.05)


@pytest.mark.parametrize("n_groups", [2, 3, 8])
@pytest.mark.parametrize("rows", [25, 200])
def test_intervals_that_hold_by_themselves_do_not_hold_together(n_groups, rows):
    """The negative control: already those of the rates fail too often."""
    population, rng = Population(n_groups, rows), np.random.default_rng(1)
    repetitions, failed = 500, {False: 0, True: 0}
    joint = Errors.joint(0.95, RATES.values(), REQUIREMENTS, n_groups)
    for _ in range(repetitions):
        counts = population.draw(rng)
        hits, of = np.hstack([rate.counts(counts) for rate in RATES.values()])
        for simultaneous, error in ((False, 0.05), (True, joint.rate)):
            failed[simultaneous] += not population.rates_hold(*exact_interval(hits, of, 1 - error))
    limit = stats.binom.ppf(0.999, repetitions, 0.05)
    assert failed[True] <= limit < failed[False]


@pytest.mark.parametrize(("n_groups", "n_statements"), [(2, 15), (3, 20), (8, 45)])
def test_errors_add_up(n_groups, n_statements):
    """Five rates in each group and five differences; the rest follows from these."""
    errors = Errors.joint(0.95, RATES.values(), REQUIREMENTS, n_groups)
    assert errors.gap == pytest.approx(0.05 / n_statements)
    of_one_rate = 1 - (1 - errors.rate) ** n_groups
    assert 5 * of_one_rate + 5 * errors.gap == pytest.approx(0.05)
    assert errors.gap < errors.rate  # Sidak gives a little more than Bonferroni


def test_intervals_are_those_of_the_levels():
    population = Population(3, 80)
    counts = population.draw(np.random.default_rng(4))
    report = FairnessReport.from_counts(counts, population.names, simultaneous=True)
    errors = Errors.joint(0.95, RATES.values(), REQUIREMENTS, 3)
    gaps = report.gaps.set_index("gap")
    for name, rate in RATES.items():
        rows = report.rates[report.rates["rate"] == name]
        low, high = exact_interval(*rate.counts(counts), 1 - errors.rate)
        np.testing.assert_allclose(rows[["low", "high"]], np.column_stack([low, high]))
    parts = ("equal_opportunity", "false_positive_rate_parity")
    for name in parts:
        hits, rows = STATISTICS[name].rates[0].counts(counts)
        high = largest_difference_bound(hits, rows, 1 - errors.gap / 2)
        low = largest_difference_low(hits, rows, 1 - errors.gap / 2 / 6)
        assert gaps.loc[name, "high"] <= high
        assert gaps.loc[name, "low"] >= low
    for end in ("low", "high"):
        assert gaps.loc["equalized_odds", end] == max(gaps.loc[name, end] for name in parts)
    selected = exact_interval(*RATES["selection_rate"].counts(counts), 1 - errors.rate)
    assert tuple(gaps.loc["selection_ratio", ["low", "high"]]) == shortfall_range(*selected)


@pytest.mark.parametrize("n_groups", [2, 4])
def test_they_hold_the_intervals_that_hold_alone(n_groups):
    population = Population(n_groups, 100)
    counts = population.draw(np.random.default_rng(5))
    wide, narrow = (
        FairnessReport.from_counts(counts, population.names, simultaneous=simultaneous)
        for simultaneous in (True, False)
    )
    for table in ("rates", "gaps"):
        together, alone = getattr(wide, table), getattr(narrow, table)
        assert (together["low"] <= alone["low"]).all()
        assert (together["high"] >= alone["high"]).all()
        assert (together["estimate"] == alone["estimate"]).all()


def test_ranges_are_those_of_a_grid():
    """The extremes of the gap over all rates within limits, found by trying corners."""
    low, high = np.array([0.1, 0.3, 0.2]), np.array([0.4, 0.5, 0.9])
    corners = np.stack(
        np.meshgrid(*(np.linspace(a, b, 41) for a, b in zip(low, high, strict=True)))
    ).reshape(3, -1)
    spread = corners.max(axis=0) - corners.min(axis=0)
    shortfall = 1 - corners.min(axis=0) / corners.max(axis=0)
    assert difference_range(low, high) == pytest.approx((spread.min(), spread.max()), abs=1e-9)
    assert shortfall_range(low, high) == pytest.approx((shortfall.min(), shortfall.max()), abs=1e-9)
    apart = np.array([0.1, 0.6, 0.7]), np.array([0.2, 0.65, 0.9])
    assert difference_range(*apart) == pytest.approx((0.5, 0.8))


@pytest.mark.parametrize("n", [1, 2, 12, 400])
def test_sidak(n):
    assert (1 - sidak(0.05, n)) ** n == pytest.approx(0.95)
    assert sidak(0.05, n) >= 0.05 / n - 1e-15


def test_a_confidence_that_leaves_no_error():
    population = Population(8, 50)
    counts = population.draw(np.random.default_rng(0))
    words = r"leaves each of 45 statements an error of 2e-10, and at least 1e-08 is needed"
    with pytest.raises(ValueError, match=words):
        FairnessReport.from_counts(counts, population.names, confidence=1 - 1e-8, simultaneous=True)


# Which of the two it is, in every output

HOW = {False: "each by itself", True: "all together"}


def rows(n=400):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    return y, np.where(rng.random(n) < 0.8, y, 1 - y), np.array(["f", "m"])[rng.integers(2, size=n)]


@pytest.mark.parametrize("simultaneous", [False, True])
def test_the_report_says_which_it_is(simultaneous):
    y, predicted, groups = rows()
    report = FairnessReport.from_predictions(
        y, predicted, sensitive_features=groups, simultaneous=simultaneous
    )
    assert report.simultaneous is simultaneous
    assert report.to_dict()["simultaneous"] is simultaneous
    for text in (str(report), report._repr_html_()):
        assert HOW[simultaneous] in text
        assert HOW[not simultaneous] not in text


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    import pandas as pd

    y, predicted, groups = rows()
    path = tmp_path_factory.mktemp("together") / "scored.csv"
    pd.DataFrame({"y": y, "said": predicted, "sex": groups}).to_csv(path, index=False)
    return path


ASKED = ("--predictions", "said", "--label", "y", "--sensitive", "sex")
CAVEAT = {
    False: "Each interval holds with the stated confidence by itself.",
    True: "All intervals of rates and gaps hold together with the stated confidence",
}


@pytest.mark.parametrize("simultaneous", [False, True])
def test_audit_says_which_it_is(scored, simultaneous):
    more = ("--simultaneous",) if simultaneous else ()
    printed = " ".join(run("audit", scored, *ASKED, *more).stdout.split())
    assert CAVEAT[simultaneous] in printed
    assert CAVEAT[not simultaneous] not in printed
    assert ("simultaneous 95 % interval" in printed) is simultaneous
    content = run_json("audit", scored, *ASKED, *more)
    assert content["simultaneous"] is simultaneous
    assert any(text.startswith(CAVEAT[simultaneous]) for text in content["caveats"])


@pytest.mark.parametrize("simultaneous", [False, True])
def test_report_files_say_which_it_is(scored, tmp_path, simultaneous):
    names = ["r.html", "r.md", "r.json", "card.md"]
    page, text, data, card = (tmp_path / name for name in names)
    outputs = ("-o", page, "-o", text, "-o", data, "--card", card)
    run("report", scored, *ASKED, *outputs, *(("--simultaneous",) if simultaneous else ()))
    for path in (page, text, card):
        written = path.read_text("utf-8").replace("\N{NO-BREAK SPACE}", " ")
        assert CAVEAT[simultaneous] in written
        assert CAVEAT[not simultaneous] not in written
        assert ("simultaneous 95 %" in written) is simultaneous
    assert json.loads(data.read_text("utf-8"))["simultaneous"] is simultaneous


def test_the_verdict_follows_the_wider_intervals(scored):
    """A limit between the two upper ends is met by itself, and undecided together."""
    ends = {}
    for more in ((), ("--simultaneous",)):
        content = run_json("audit", scored, *ASKED, *more)
        (row,) = [row for row in content["gaps"] if row["gap"] == "equal_opportunity"]
        ends[more] = row["high"]
    alone, together = ends[()], ends[("--simultaneous",)]
    assert alone < together
    limit = ("--max-gap", (alone + together) / 2)
    run("audit", scored, *ASKED, *limit, code=0)
    run("audit", scored, *ASKED, *limit, "--simultaneous", code=4)
