"""Benchmarks that no other test runs: they still run, on few rows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import promise_measures
from fairproj.report import _importance

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.slow
def test_the_cost_of_a_search_is_measured():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, BENCHMARKS / "search.py", "--rows", "1500", "--repeats", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    assert ["training loops", "77", "77"] in rows
    assert ["encodings in fits", "2", "77"] in rows


# Statements with a probability, and a control that must fail


def limit(n, share=0.05):
    return stats.binom.ppf(0.999, n, share)


@pytest.mark.slow
def test_splits_of_one_dataset_need_the_correction(monkeypatch):
    """With the variance of independent samples, intervals over splits fail too often."""
    corrected, plain = np.zeros(2), np.zeros(2)
    paired = promise_measures.paired
    case = {"what": "splits"}
    for batch in range(4):
        case["batch"] = batch
        corrected += promise_measures.measure(case)["each"]
        with monkeypatch.context() as patch:
            patch.setattr(
                promise_measures, "paired", lambda a, b, column, _: paired(a, b, column, 0)
            )
            plain += promise_measures.measure(case)["each"]
    n = 4 * promise_measures.BATCH
    assert (corrected <= limit(n)).all()
    assert plain[0] > limit(n), "the control should fail, or the test shows nothing"


def test_features_that_move_nothing_are_seldom_named(monkeypatch):
    case = {"what": "importances", "problem": "even"}

    def named():
        return sum(promise_measures.measure({**case, "batch": batch})["any"] for batch in range(20))

    n = 20 * promise_measures.BATCH
    assert named() <= limit(n)
    comparisons = promise_measures.APART_FEATURES * 3
    monkeypatch.setattr(_importance, "LEVEL", 0.05 * comparisons)  # without Bonferroni
    assert named() > limit(n), "the control should fail, or the test shows nothing"


def test_the_true_figures_of_scores_are_those_of_many_rows(monkeypatch):
    """The truth that bootstrap intervals are compared with."""
    totals, differences = promise_measures.true_scores()
    monkeypatch.setattr(promise_measures, "SCORE_ROWS", 400 * promise_measures.SCORE_ROWS)
    models = promise_measures._scored(np.random.default_rng(0))
    for at, model in enumerate(models):
        assert model.totals()[:4] == pytest.approx(totals[at], abs=0.005)
        assert model.mean_differences() == pytest.approx(differences[at], abs=0.02)


@pytest.mark.parametrize("what", [*promise_measures.MEASURES])
def test_every_statement_is_drawn_from_a_seed(what, monkeypatch):
    monkeypatch.setattr(promise_measures, "BATCH", 2)
    monkeypatch.setattr(promise_measures, "RESAMPLES", 20)
    monkeypatch.setattr(promise_measures, "true_split_difference", lambda: np.zeros(2))
    case = {"what": what, "batch": 0}
    if what in promise_measures.PROBLEMS:
        case["problem"] = promise_measures.PROBLEMS[what][0]
    found = promise_measures.measure(case)
    assert found == promise_measures.measure(case)
    assert all(0 <= count <= 2 for column in found.values() for count in np.ravel(column))


def test_the_tests_that_the_page_names_exist():
    page = (BENCHMARKS / "results" / "promises.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")][2:]
    named = [re.findall(r"`(tests/\w+\.py)`: `(\w+)`", row) for row in rows]
    assert len(rows) >= 18
    for found in named:
        ((file, test),) = found
        assert f"def {test}(" in (BENCHMARKS.parent / file).read_text("utf-8")
