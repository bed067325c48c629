"""Memory and time of ``fairproj audit --predictions`` on a CSV file of many rows and columns.

python benchmarks/audit.py    # into benchmarks/results/audit.md
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions

RESULTS = Path(__file__).parent / "results" / "audit.md"
CHUNK = 100_000
N_OTHERS = 16  # columns that an audit does not need, beside label, prediction, group and date
LIMIT_MB = 600
ASKED = ["--predictions", "predicted", "--label", "label", "--sensitive", "sex", "--json"]


class Run(NamedTuple):
    """A command that has ended, its peak memory and what it printed."""

    seconds: float
    megabytes: float
    content: dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    n_rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scored.csv"
        write_rows(path, n_rows)
        size = path.stat().st_size
        runs = {
            "`audit`": run(path),
            "`audit --by date` (24 months)": run(path, "--by", "date"),
        }
    for one in runs.values():
        assert one.content["data"]["rows"] == n_rows
    lines = [["command", "peak memory", "seconds"]]
    lines += [[name, f"{one.megabytes:.0f} MB", f"{one.seconds:.0f}"] for name, one in runs.items()]
    largest = max(one.megabytes for one in runs.values())
    side = "below" if largest < LIMIT_MB else "ABOVE"
    text = (
        f"# Audit of a large file\n\n`python benchmarks/audit.py`: `fairproj audit --predictions` "
        f"of a CSV file of {n_rows:,} rows and {N_OTHERS + 4} columns ({size / 1e6:,.0f} MB). It "
        "keeps the label, the predictions, the groups and the column of `--by`, in chunks, and "
        "counts them. Peak memory is that of the process; it is "
        f"{side} the limit of {LIMIT_MB} MB.\n\n{markdown(lines)}\n"
        f"Python {versions()['python']}, pyarrow {pa.__version__}.\n"
    )
    write_text(RESULTS, text)
    print(text)


def write_rows(path: Path, n_rows: int) -> None:
    """Write random rows in chunks."""
    rng = np.random.default_rng(0)
    names = np.array(["female", "male"]), np.array(["no", "yes"])
    months = np.array([f"{year}-{month:02d}" for year in (2024, 2025) for month in range(1, 13)])
    writer = None
    with path.open("wb") as file:
        for start in range(0, n_rows, CHUNK):
            n = min(CHUNK, n_rows - start)
            label = rng.integers(2, size=n)
            predicted = np.where(rng.random(n) < 0.8, label, 1 - label)
            days = np.char.add(months[rng.integers(24, size=n)], "-15")
            columns: dict[str, Any] = {f"x{at}": rng.random(n).round(6) for at in range(N_OTHERS)}
            columns |= {"sex": names[0][rng.integers(2, size=n)], "label": names[1][label]}
            columns |= {"predicted": names[1][predicted], "date": days}
            table = pa.table({name: pa.array(values) for name, values in columns.items()})
            writer = writer or csv.CSVWriter(file, table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()


def run(path: Path, *options: str) -> Run:
    """Run the command and take the peak memory of its process from the system."""
    line = [sys.executable, "-m", "fairproj", "audit", str(path), *ASKED, *options]
    start = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(line, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        if process.returncode:
            raise SystemExit(f"{' '.join(line)} ended with {process.returncode}")
        output.seek(0)
        content = json.loads(output.read())
    kilobytes = usage.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Run(seconds, kilobytes * 1024 / 1e6, content)


if __name__ == "__main__":
    main()
