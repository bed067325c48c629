"""Seconds of the commands of the README on Adult.

python benchmarks/commands.py    # into benchmarks/results/commands.md; on an idle machine
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fairproj.datasets import load_adult
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions

RESULTS = Path(__file__).parent / "results" / "commands.md"
REPEAT = 3
DATA = "adult.csv --label income --sensitive sex --drop fnlwgt"
CASES = {  # the command, and the exit codes that are not failures
    f"fairproj check {DATA}": {0},
    f"fairproj train {DATA} --max-gap 0.05 -o model.fairproj": {0},
    "fairproj audit model.fairproj adult.csv --max-gap 0.05": {0, 3, 4},
    "fairproj report model.fairproj adult.csv -o report.html": {0},
    "fairproj predict model.fairproj adult.csv --missing score -o predictions.csv": {0},
    "fairproj predict model.fairproj adult.csv --missing score --reasons 3 -o reasons.csv": {0},
    f"fairproj alternatives {DATA} -o alternatives.html": {0, 3, 4},
}


def main() -> None:
    taken: dict[str, list[float]] = {command: [] for command in CASES}
    with tempfile.TemporaryDirectory() as folder:
        adult = load_adult().frame
        adult.to_csv(Path(folder) / "adult.csv", index=False)
        for _ in range(REPEAT):
            for command in CASES:
                taken[command].append(seconds(command, folder))
    lines = [["command", "seconds"]]
    lines += [[f"`{name}`", f"{statistics.median(found):.1f}"] for name, found in taken.items()]
    found = versions()
    text = (
        f"# Seconds of a command\n\n`python benchmarks/commands.py`: {len(adult):,} rows of Adult, "
        f"{os.cpu_count()} cores, by the clock, with the start of Python; median of {REPEAT} in "
        f"turns.\n\n{markdown(lines)}\nPython {found['python']}, scikit-learn "
        f"{found['scikit-learn']}, LightGBM {found['lightgbm']}.\n"
    )
    write_text(RESULTS, text)
    print(text)


def seconds(command: str, folder: str) -> float:
    """By the clock, in a process of its own."""
    arguments = [*command.split()[1:], *(["--force"] if " -o " in command else [])]
    start = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-m", "fairproj", *arguments], cwd=folder, capture_output=True, text=True
    )
    taken = time.perf_counter() - start
    if ended.returncode not in CASES[command]:
        raise RuntimeError(f"{command} ended with {ended.returncode}: {ended.stderr}")
    return taken


if __name__ == "__main__":
    main()
