"""How often statements of the library fail; for intervals of gaps see interval_coverage.py.

    python benchmarks/promises.py            # into benchmarks/results/promises.md
    python benchmarks/promises.py --fresh

Counts are drawn from populations whose rates are known, and every statement is compared with them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairproj.constraints import RATES, STATISTICS
from fairproj.data.cells import CellCounts
from fairproj.experiments._tables import markdown
from fairproj.inference import FairnessReport, rows_to_confirm
from fairproj.inference.by import GapsBy
from fairproj.inference.paired import paired_difference_interval
from fairproj.inference.report import upper_bound
from fairproj.io.atomic import write_text
from kept import Case, run_cases

RESULTS = Path(__file__).parent / "results"
BATCH = 50
BATCHES = {"report": 40, "report, simultaneous": 40, "parts": 8, "power": 40, "pairs": 400}
# Of three groups: rows, share of the positive label, true and false positive rate.
ROWS = np.array([80, 120, 200])
LABEL, TRUE, FALSE = np.array([0.4, 0.5, 0.5]), np.array([0.6, 0.7, 0.8]), np.array([0.2, 0.2, 0.3])
GROUPS = ["a", "b", "c"]
MONTHS, LIMIT = 12, 0.1
PLANS = ({"max_gap": 0.1}, {"max_gap": 0.1, "rate": 0.8}, {"max_gap": 0.15, "gap": 0.05})


def draw(random: np.random.Generator) -> CellCounts:
    """Numbers of rows, drawn; the labels of each group are drawn as well."""
    positive = random.binomial(ROWS, LABEL)
    size = np.stack([ROWS - positive, positive], axis=1)
    predicted = random.binomial(size, np.stack([FALSE, TRUE], axis=1))
    return CellCounts(size.astype(float), predicted.astype(float))


def truth() -> CellCounts:
    """What the counts are in expectation."""
    size = np.stack([ROWS * (1 - LABEL), ROWS * LABEL], axis=1)
    return CellCounts(size, size * np.stack([FALSE, TRUE], axis=1))


def misses(found: pd.DataFrame, true: list[float]) -> list[bool]:
    wrong = (found["low"] > np.array(true) + 1e-12) | (found["high"] < np.array(true) - 1e-12)
    return [bool(one) for one in wrong]


def measure_reports(case: Case, random: np.random.Generator) -> Case:
    """How often each statement of a report fails, and how often any of them does."""
    known = truth()
    rates = [float(one) for rate in RATES.values() for one in rate.values(known)]
    gaps = [float(statistic.value(known)) for statistic in STATISTICS.values()]
    together = case["what"].endswith("simultaneous")
    wrong = []
    for _ in range(BATCH):
        report = FairnessReport.from_counts(draw(random), GROUPS, simultaneous=together)
        wrong.append(misses(report.rates, rates) + misses(report.gaps, gaps))
    return {"each": np.sum(wrong, axis=0).tolist(), "any": int(np.any(wrong, axis=1).sum())}


def measure_parts(case: Case, random: np.random.Generator) -> Case:
    """How often a year of months, each with a true gap at the limit, raises any alarm."""
    size, rates = np.full((2, 2), 150), np.array([[0.2, 0.5], [0.2, 0.5 + LIMIT]])
    alarms = 0
    for _ in range(BATCH):
        months = {
            str(month): CellCounts(size.astype(float), random.binomial(size, rates).astype(float))
            for month in range(MONTHS)
        }
        alarms += bool(GapsBy.from_counts(months, ["a", "b"], max_gap=LIMIT).alarms)
    return {"any": alarms}


def measure_power(case: Case, random: np.random.Generator) -> Case:
    """How often as many rows as `rows_to_confirm` says confirm the gap."""
    confirmed = []
    for plan in PLANS:
        rate, gap = plan.get("rate", 0.5), plan.get("gap", 0.0)
        rows = rows_to_confirm(**plan)
        hits = random.binomial(rows, [rate - gap / 2, rate + gap / 2], (BATCH, 2))
        bounds = [upper_bound("difference", one, np.full(2, rows), 0.95) for one in hits]
        confirmed.append(int(np.sum(np.array(bounds) <= plan["max_gap"])))
    return {"each": confirmed}


def measure_pairs(case: Case, random: np.random.Generator) -> Case:
    """How often the interval of a difference of accuracies on the same rows fails."""
    shares, n_rows = (0.04, 0.07, 0.89), 400
    wrong = 0
    for first, second, _ in random.multinomial(n_rows, shares, BATCH):
        low, high = paired_difference_interval(int(first), int(second), n_rows)
        wrong += not low <= shares[0] - shares[1] <= high
    return {"any": wrong}


MEASURES: dict[str, Any] = {
    "report": measure_reports,
    "report, simultaneous": measure_reports,
    "parts": measure_parts,
    "power": measure_power,
    "pairs": measure_pairs,
}


def measure(case: Case) -> Case:
    random = np.random.default_rng([case["batch"], list(MEASURES).index(case["what"])])
    result: Case = MEASURES[case["what"]](case, random)
    return result


def share(failed: float, n: int) -> str:
    p = failed / n
    return f"{p:.4f} ± {np.sqrt(max(p, 1 / n) * (1 - p) / n):.4f}"


def page(rows: pd.DataFrame) -> str:
    of = dict(iter(rows.groupby("what", sort=False)))
    n = {name: BATCH * len(some) for name, some in of.items()}
    alone = np.sum(of["report"]["each"].tolist(), axis=0)
    together = "report, simultaneous"
    power = np.sum(of["power"]["each"].tolist(), axis=0)
    lines = [["statement", "allowed", "measured", "draws"]]
    lines += [
        [
            f"a statement of a report, the one of {len(alone)} that failed most often",
            "0.05",
            share(alone.max(), n["report"]),
            f"{n['report']:,}",
        ],
        ["any statement of that report", "-", share(of["report"]["any"].sum(), n["report"]), ""],
        [
            "any statement of a simultaneous report",
            "0.05",
            share(of[together]["any"].sum(), n[together]),
            f"{n[together]:,}",
        ],
        [
            f"any alarm in {MONTHS} months, each with its gap at the limit",
            "0.05",
            share(of["parts"]["any"].sum(), n["parts"]),
            f"{n['parts']:,}",
        ],
        [
            "the interval of a difference of accuracies on the same rows",
            "0.05",
            share(of["pairs"]["any"].sum(), n["pairs"]),
            f"{n['pairs']:,}",
        ],
    ]
    for plan, confirmed in zip(PLANS, power, strict=True):
        words = ", ".join(f"{name} {value:g}" for name, value in plan.items())
        rows_needed = rows_to_confirm(**plan)
        lines.append(
            [
                f"`rows_to_confirm` ({words}: {rows_needed:,} rows) does not confirm",
                "0.20",
                share(n["power"] - confirmed, n["power"]),
                f"{n['power']:,}",
            ]
        )
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="discard kept runs")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    options = parser.parse_args()
    rows = run_cases(
        [{"what": what, "batch": k} for what, n in BATCHES.items() for k in range(n)],
        measure,
        RESULTS / "promises" / "runs.jsonl",
        fresh=options.fresh,
        n_jobs=options.jobs,
        expected=lambda case: 0.02 if case["what"] == "pairs" else 1.0,
    )
    sizes = ", ".join(map(str, ROWS))
    text = (
        "# How often statements fail\n\n`python benchmarks/promises.py`: shares of draws, with "
        f"standard errors. Reports are of three groups with {sizes} rows.\n\n{page(rows)}"
    )
    print(text)
    write_text(RESULTS / "promises.md", text)


if __name__ == "__main__":
    main()
