"""How often the intervals of gaps fail: enumerated for two groups, simulated for more.

    python benchmarks/interval_coverage.py            # into benchmarks/results/coverage.md
    python benchmarks/interval_coverage.py --fresh

Two groups: the interval of every pair of counts is computed, and the chance that one of its ends
fails is the sum of the chances of the pairs for which it does, for every pair of rates on a grid.
Three and eight groups: counts are drawn.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from fairproj.experiments._tables import markdown
from fairproj.inference.intervals import exact_interval
from fairproj.inference.report import lower_bound, upper_bound
from fairproj.io.atomic import write_text
from kept import Case, run_cases

RESULTS = Path(__file__).parent / "results"
ERROR = 0.025  # of each end, for an interval at 95 %
SIZES = ((5, 5), (5, 60), (10, 10), (10, 60), (20, 20), (20, 40), (40, 40), (60, 60))
RATES = np.linspace(0, 1, 51)
REPLICATES, BATCH = 20_000, 500
ROWS = 40
DRAWN = {  # the rates of the groups, by name
    "3 groups, alike": (0.3,) * 3,
    "3 groups, one apart": (0.3, 0.3, 0.5),
    "8 groups, alike": (0.3,) * 8,
    "8 groups, one apart": (0.3,) * 7 + (0.5,),
}


def gap_ends(hits: Any, rows: Any) -> tuple[float, float]:
    """Both ends of the interval of the largest difference, as a `FairnessReport` has them."""
    hits, rows = np.asarray(hits, dtype=float), np.asarray(rows, dtype=float)
    return (
        lower_bound("difference", hits, rows, ERROR),
        upper_bound("difference", hits, rows, 1 - ERROR),
    )


def measure_enumeration(case: Case) -> Case:
    """The largest chance of failure of each end, over the rates of the grid."""
    sizes = case["sizes"]
    counts = [np.arange(n + 1) for n in sizes]
    low, high = np.empty([n + 1 for n in sizes]), np.empty([n + 1 for n in sizes])
    for at in np.ndindex(low.shape):
        low[at], high[at] = gap_ends(at, sizes)
    chances = [stats.binom.pmf(k[:, None], n, RATES) for k, n in zip(counts, sizes, strict=True)]
    worst = {"upper": 0.0, "lower": 0.0, "either": 0.0}
    for a, rate in enumerate(RATES):
        for b, other in enumerate(RATES):
            gap = abs(rate - other)
            chance = np.outer(chances[0][:, a], chances[1][:, b])
            fails = {"upper": high < gap - 1e-12, "lower": low > gap + 1e-12}
            fails["either"] = fails["upper"] | fails["lower"]
            for end, where in fails.items():
                worst[end] = max(worst[end], float(chance[where].sum()))
    return worst


def measure_one_rate(case: Case) -> Case:
    """The largest chance that the interval of one rate misses it, over a fine grid of rates."""
    n, rates = case["rows"], np.linspace(0, 1, 2001)
    low, high = exact_interval(np.arange(n + 1.0), np.full(n + 1, float(n)), 0.95)
    chance = stats.binom.pmf(np.arange(n + 1)[:, None], n, rates)
    outside = (rates < low[:, None] - 1e-12) | (rates > high[:, None] + 1e-12)
    return {"either": float((chance * outside).sum(axis=0).max())}


def measure_draws(case: Case) -> Case:
    """How many of a batch of intervals fail at each end."""
    rates = np.array(DRAWN[case["problem"]])
    gap = float(np.ptp(rates))
    random = np.random.default_rng([case["batch"], len(rates), round(1000 * gap)])
    drawn = random.binomial(ROWS, rates, (BATCH, len(rates)))
    drawn.sort(axis=1)  # groups have as many rows: their order does not matter
    distinct, which = np.unique(drawn, axis=0, return_inverse=True)
    ends = np.array([gap_ends(hits, [ROWS] * len(rates)) for hits in distinct])[which]
    upper, lower = ends[:, 1] < gap - 1e-12, ends[:, 0] > gap + 1e-12
    return {
        "upper": int(upper.sum()),
        "lower": int(lower.sum()),
        "either": int((upper | lower).sum()),
    }


def enumerated(one: pd.DataFrame, two: pd.DataFrame) -> str:
    lines = [["rows", "upper end", "lower end", "either"]]
    for row in one.to_dict("records"):
        lines.append([f"one rate, {row['rows']}", "", "", f"{row['either']:.4f}"])
    for row in two.to_dict("records"):
        name = " and ".join(map(str, row["sizes"]))
        lines.append([f"gap, {name}", *(f"{row[end]:.4f}" for end in ("upper", "lower", "either"))])
    return markdown(lines)


def drawn(rows: pd.DataFrame) -> str:
    lines = [["groups", "gap", "upper end", "lower end", "either", "standard error of that"]]
    for name, some in rows.groupby("problem", sort=False):
        n = BATCH * len(some)
        shares = [some[end].sum() / n for end in ("upper", "lower", "either")]
        error = np.sqrt(max(shares[2], 1 / n) * (1 - shares[2]) / n)
        gap = f"{np.ptp(DRAWN[str(name)]):.2f}"
        lines.append([str(name), gap, *(f"{share:.4f}" for share in shares), f"{error:.4f}"])
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="discard kept runs")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    options = parser.parse_args()
    runs, how = RESULTS / "coverage", {"fresh": options.fresh, "n_jobs": options.jobs}
    one = run_cases(
        [{"rows": n} for n in (5, 10, 20, 40, 60)], measure_one_rate, runs / "one.jsonl", **how
    )
    two = run_cases(
        [{"sizes": list(sizes)} for sizes in SIZES],
        measure_enumeration,
        runs / "two.jsonl",
        expected=lambda case: float(np.prod(case["sizes"])),
        **how,
    )
    more = run_cases(
        [{"problem": p, "batch": k} for k in range(REPLICATES // BATCH) for p in DRAWN],
        measure_draws,
        runs / "more.jsonl",
        expected=lambda case: float(len(DRAWN[case["problem"]])),
        **how,
    )
    text = (
        "# How often intervals fail\n\n`python benchmarks/interval_coverage.py`. Intervals at "
        f"95 %: each end may fail with a chance of {ERROR}, and one of them with 0.05.\n\n"
        "**Enumerated.** All outcomes, the largest chance of failure over the rates "
        f"(a grid of {len(RATES)} by {len(RATES)} for two groups):\n\n{enumerated(one, two)}\n"
        f"**Drawn.** {REPLICATES:,} draws each, {ROWS} rows in each group; shares of intervals "
        f"that fail:\n\n{drawn(more)}"
    )
    print(text)
    write_text(RESULTS / "coverage.md", text)


if __name__ == "__main__":
    main()
