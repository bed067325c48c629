"""Benchmarks that no other test runs: they still run, on few rows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
