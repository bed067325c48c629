"""How often statements of the library fail; for intervals of gaps see interval_coverage.py.

    python benchmarks/promises.py            # into benchmarks/results/promises.md
    python benchmarks/promises.py --fresh

Counts are drawn from populations whose rates are known, and every statement is compared with them.
The page has every statement of the library that has a probability; what other commands measured is
read from the runs that they keep.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from fairproj.experiments._tables import markdown
from fairproj.inference import rows_to_confirm
from fairproj.io.atomic import write_text
from kept import Case, read_kept, run_cases
from promise_measures import (
    BATCH,
    BOUNDED,
    COMPARED,
    MONTHS,
    PLANS,
    PROBLEMS,
    RATES,
    ROWS,
    SCORED,
    SMALLEST,
    SPLIT_COLUMNS,
    STATISTICS,
    measure,
)
from selection import SETTINGS, runs

RESULTS = Path(__file__).parent / "results"
QUICK = ("pairs", "impact ratios", "importances")
BATCHES = {
    "report": 40,
    "report, simultaneous": 40,
    "pairs": 400,
    "impact ratios": 400,
    "importances": 200,
    "bounds": 40,
    "confirmation": 40,
    "room": 40,
    "splits": 40,
    "gap changes": 40,
    "power": 100,
    "plans": 100,
    "parts": 40,
    "scores": 12,
}


def cases() -> list[Case]:
    return [
        {"what": what, "batch": k} | ({"problem": problem} if problem else {})
        for what, n in BATCHES.items()
        for k in range(n)
        for problem in PROBLEMS.get(what, (None,))
    ]


def share(failed: float, n: int) -> str:
    p = failed / n
    return f"{p:.4f} ± {np.sqrt(max(p, 1 / n) * (1 - p) / n):.4f}"


class Measured:
    """The shares of draws in which statements failed."""

    def __init__(self, rows: pd.DataFrame) -> None:
        problem = rows["problem"].fillna("") if "problem" in rows else ""
        self._of = dict(iter(rows.assign(problem=problem).groupby(["what", "problem"])))

    @property
    def keys(self) -> list[tuple[str, str]]:
        """What was measured, each with its problem or an empty text."""
        return [*self._of]

    def draws(self, what: str, problem: str = "") -> int:
        return BATCH * len(self._of[what, problem])

    def counts(self, what: str, problem: str = "", column: str = "each") -> list[int]:
        found = np.sum(self._of[what, problem][column].tolist(), axis=0)
        return [int(one) for one in np.atleast_1d(found)]

    def failed(self, what: str, at: int = 0, column: str = "each", problem: str = "") -> str:
        return share(self.counts(what, problem, column)[at], self.draws(what, problem))

    def worst(self, what: str) -> str:
        return share(max(self.counts(what)), self.draws(what))

    def unconfirmed(self, what: str, at: int) -> str:
        n = self.draws(what)
        return share(n - self.counts(what)[at], n)


HEAD = ["statement, and where it is made", "assumes", "test", "how often it failed"]


def table(rows: pd.DataFrame) -> str:
    """Every statement: what it says, what it assumes, its test, and how often it failed."""
    return markdown(
        [HEAD, *_intervals(Measured(rows)), *_decisions(Measured(rows)), *_models(Measured(rows))]
    )


def _test(file: str, *names: str) -> str:
    return f"`{file}`: " + ", ".join(f"`{name}`" for name in names)


def _intervals(found: Measured) -> list[list[str]]:
    """Statements about the rates and gaps of one model."""
    n_rates, reports = len(RATES) * len(ROWS), found.draws("report")
    ratio = n_rates + [*STATISTICS].index("selection_ratio")
    each = [one["result"]["either"] for one in read_kept(RESULTS / "coverage" / "two.jsonl")]
    bounds = "; ".join(
        f"{name.replace('_', ' ')} {found.failed('bounds', at)}" for at, name in enumerate(BOUNDED)
    )
    return [
        [
            "The rate of a group lies in its interval, also that of a bin of the calibration "
            "table (95 %, each by itself): `FairnessReport`, `audit`, `report`, `alternatives`",
            "A, B",
            _test("tests/test_inference.py", "test_each_rates_interval_covers"),
            f"the rate of {n_rates} that failed most often: "
            f"{share(max(found.counts('report')[:n_rates]), reports)}",
        ],
        [
            "The gap, a largest difference, lies in its interval; each end fails with at most "
            "2.5 % (95 %, each by itself): `FairnessReport`, `audit`, `report`, `alternatives`",
            "A, B",
            _test("tests/test_inference.py", "test_coverage_by_simulation_with_a_negative_control"),
            f"the gap of {len(STATISTICS) - 1} that failed most often: "
            f"{share(max(found.counts('report')[n_rates:ratio]), reports)}; enumerated for two "
            f"groups, at most {max(each):.4f} (`interval_coverage.py`)",
        ],
        [
            "The selection ratio (four fifths) lies in its interval (95 %, by itself): as above",
            "A, B",
            _test(
                "tests/test_inference.py",
                "test_the_bounds_of_a_ratio_cover_with_a_negative_control",
            ),
            share(found.counts("report")[ratio], reports),
        ],
        [
            "The adverse impact ratio of a group lies in its interval (95 %, each by itself): "
            "`alternatives`",
            "A, B",
            _test("tests/test_lender_figures.py", "test_intervals_of_ratios_cover"),
            f"the group of two that failed most often: {found.worst('impact ratios')}",
        ],
        [
            "All rates and gaps lie in their intervals (95 %, all together): `simultaneous=True`, "
            "`--simultaneous`",
            "A, B",
            _test("tests/test_simultaneous.py", "test_joint_coverage"),
            f"{found.failed('report, simultaneous', column='any')}; without it "
            f"{found.failed('report', column='any')}",
        ],
        [
            "The gap is at most its bound (the confidence asked for, here 95 %): "
            "`gap_upper_bound`, `gap_bounds_`",
            "A, B",
            _test("tests/test_difference.py", "test_it_is_wrong_as_rarely_as_it_says"),
            bounds,
        ],
    ]


def _decisions(found: Measured) -> list[list[str]]:
    """Statements that a limit is met, or that rows suffice to tell."""
    one, two = (found.failed("confirmation", at) for at in (0, 1))
    control = found.failed("confirmation", 3)
    limits = [(runs(setting), setting.max_gap) for setting in SETTINGS]
    chosen = [frame[(frame["rule"] == "upper")] for frame, _ in limits]
    wrong = sum(
        int((frame["chosen"] & (frame["gap"] > limit)).sum())
        for frame, (_, limit) in zip(chosen, limits, strict=True)
    )
    plans = [
        f"{', '.join(f'{name} {value:g}' for name, value in plan.items())} "
        f"({rows_to_confirm(**plan):,} rows): {found.unconfirmed('power', at)}"
        for at, plan in enumerate(PLANS)
    ]
    smallest = [
        f"{' and '.join(map(str, rows))} rows: {found.unconfirmed('plans', at)}"
        for at, rows in enumerate(SMALLEST)
    ]
    return [
        [
            "The gap is at most `max_gap` (a wrong confirmation has a chance of at most "
            "1 - confidence, here 5 %): `ConfirmedClassifier`, `train --confidence`",
            "A, C",
            _test("tests/test_confirm.py", "test_a_gap_above_the_limit_is_hardly_ever_confirmed"),
            f"with a true gap at the limit {one}, with two of them {two}; the control, an estimate "
            f"within the limit, {control}",
        ],
        [
            "A model that has the gap that was aimed at is confirmed (80 %): "
            "`ConfirmedClassifier.aims_`, `train --confidence`",
            "A, F",
            _test(
                "tests/test_confirm.py",
                "test_the_gap_that_training_aims_at_is_confirmed_as_often_as_promised",
            ),
            f"{found.unconfirmed('confirmation', 2)} not confirmed, of 0.20",
        ],
        [
            "The search does not choose a model whose gap is above `max_gap` (1 - confidence, "
            'here 10 %, of all searches): `GapSearchCV(selection_rule="upper")`',
            "A, C",
            _test("tests/test_selection.py", "test_the_upper_bound_is_wrong_as_seldom_as_stated"),
            f"{wrong} of {sum(map(len, chosen))} searches (`selection.py`)",
        ],
        [
            "The test rows confirm the score of the chosen model, if it was chosen among those "
            "with room (80 %, a plan): `alternatives`",
            "A, F, G",
            _test("tests/test_score_change.py", "test_how_often_other_rows_confirm_a_difference"),
            f"{found.unconfirmed('room', 0)} not confirmed, of 0.20, with only just enough room",
        ],
        [
            "If the gap is within `max_gap` in every part of the rows, no part raises an alarm "
            "(95 %): `gaps_by`, `audit --by`",
            "A, D",
            _test(
                "tests/test_gaps_by.py",
                "test_no_false_alarm_in_95_of_100_years_with_a_negative_control",
            ),
            f"any alarm in {MONTHS} months at the limit: {found.failed('parts', column='any')}",
        ],
        [
            "So many rows confirm a gap (80 %, a plan): `rows_to_confirm`, `check`, errors of "
            "`ConfirmedClassifier`",
            "A, F",
            _test("tests/test_power.py", "test_that_many_rows_confirm_the_gap_and_fewer_do_not"),
            f"not confirmed, of 0.20: {'; '.join(plans)}",
        ],
        [
            "These rows confirm a limit if there is no gap (80 %, a plan): `smallest_max_gap`, "
            "warnings of `check` and `train` about small groups",
            "A, F",
            _test("tests/test_power.py", "test_the_smallest_max_gap_is_confirmed_as_planned"),
            f"not confirmed, of 0.20: {'; '.join(smallest)}",
        ],
        [
            "These rows confirm a limit if the gap is at most this (80 %, a plan): "
            "`largest_confirmable_gap`, `check`",
            "A, F",
            _test("tests/test_power.py", "test_several_groups_against_simulation"),
            f"not confirmed, of 0.20: {found.unconfirmed('plans', len(SMALLEST))}",
        ],
    ]


def _models(found: Measured) -> list[list[str]]:
    """Statements that compare two models or groups' scores."""
    scores = "; ".join(f"{name} {found.failed('scores', at)}" for at, name in enumerate(SCORED))
    compared = "; ".join(
        f"{name} {found.failed('scores', at, 'compared')}" for at, name in enumerate(COMPARED)
    )
    changes = "; ".join(
        f"{problem} {found.failed('gap changes', 0, 'any', problem)}"
        for problem in PROBLEMS["gap changes"]
    )
    splits = "; ".join(
        f"{name} {found.failed('splits', at)}" for at, name in enumerate(SPLIT_COLUMNS)
    )
    apart = "; ".join(
        f"{problem} contributions {found.failed('importances', 0, 'any', problem)}"
        for problem in PROBLEMS["importances"]
    )
    return [
        [
            "The difference of two accuracies on the same rows lies in its interval (95 %): "
            "`report` (what the limit costs)",
            "A",
            _test("tests/test_report_scores.py", "test_the_paired_interval_covers"),
            found.failed("pairs", column="any"),
        ],
        [
            "The ROC AUC, the KS and the standardized mean difference of a group's scores lie in "
            "their intervals (95 %, nearly; a bootstrap): `alternatives`",
            "A, G",
            _test("tests/test_lender_figures.py", "test_intervals_of_mean_differences_cover"),
            f"{scores}. The KS of a sample is too large on average, and the bootstrap repeats "
            "that: read it as a description",
        ],
        [
            "The difference between two models in a figure other than the gap lies in its "
            "interval (95 %, nearly; a bootstrap): `alternatives`",
            "A, G",
            _test("tests/test_lender_figures.py", "test_paired_intervals_against_normal_theory"),
            compared,
        ],
        [
            "The change of a gap between two models lies in its interval (95 %, nearly; a Bayesian "
            "bootstrap): `alternatives`",
            "A, E, G",
            _test("tests/test_alternatives.py", "test_models_without_a_gap_are_rarely_told_apart"),
            changes,
        ],
        [
            "The mean difference between two methods over splits of one dataset lies in its "
            "interval (95 %, nearly; a corrected t test): pages of `reproduce`",
            "H",
            _test("tests/test_benchmarks.py", "test_splits_of_one_dataset_need_the_correction"),
            splits,
        ],
        [
            "A feature is not said to move groups apart where none does (5 % for all features, "
            "nearly; t tests): `report` (importances)",
            "A, G",
            _test("tests/test_benchmarks.py", "test_features_that_move_nothing_are_seldom_named"),
            f"{apart} (skewed: one in ten is far from the others; groups of 60 to 500 rows)",
        ],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="discard kept runs")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    options = parser.parse_args()
    rows = run_cases(
        cases(),
        measure,
        RESULTS / "promises" / "runs.jsonl",
        fresh=options.fresh,
        n_jobs=options.jobs,
        expected=lambda case: 0.02 if case["what"] in QUICK else 1.0,
    )
    found = Measured(rows)
    draws = [found.draws(*key) for key in found.keys]
    text = (
        "# How often statements fail\n\nShares of draws in which a statement was wrong, with "
        "standard errors, by `python benchmarks/promises.py` unless another command is named; "
        f"between {min(draws):,} and {max(draws):,} draws each. Reports are of three groups with "
        f"{', '.join(map(str, ROWS))} rows. A plan for a chance of 80 % is computed from an "
        "interpolation of the exact bound and from one assumed rate, so it is met within about a "
        f"point, not exactly.\n\n{table(rows)}"
    )
    print(text)
    write_text(RESULTS / "promises.md", text)


if __name__ == "__main__":
    main()
