"""What it takes to start the command line: processor time, and modules that are imported.

python benchmarks/startup.py    # into benchmarks/results/startup.md
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions

RESULTS = Path(__file__).parent / "results" / "startup.md"
REPEAT = 3
CASES = {
    "`python -c pass`": ["-c", "pass"],
    "`fairproj --version`": ["-m", "fairproj", "--version"],
    "`fairproj --help`": ["-m", "fairproj", "--help"],
    "`fairproj train --help`": ["-m", "fairproj", "train", "--help"],
    "`import fairproj`": ["-c", "import fairproj"],
    "`from fairproj import *`": ["-c", "from fairproj import *"],
    "NumPy, pandas, scikit-learn and LightGBM": ["-c", "import numpy, pandas, sklearn, lightgbm"],
}


def seconds(arguments: list[str]) -> float:
    """Of the processor, which other processes disturb less than the clock."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def n_modules(arguments: list[str]) -> int:
    """The modules that are imported, as ``-X importtime`` lists them."""
    command = [sys.executable, "-X", "importtime", *arguments]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return sum(line.startswith("import time:") for line in listed.splitlines()) - 1


def main() -> None:
    for arguments in CASES.values():
        seconds(arguments)  # files are in the cache of the system from here on
    taken: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(REPEAT):
        for name, arguments in CASES.items():
            taken[name].append(seconds(arguments))
    lines = [["", "seconds of a processor", "modules imported"]]
    lines += [[name, f"{min(taken[name]):.2f}", str(n_modules(CASES[name]))] for name in CASES]
    found = versions()
    text = (
        f"# Start\n\n`python benchmarks/startup.py`: best of {REPEAT} in turns, with all extras "
        "installed. A name of the package is imported when it is first used, and a command when it "
        f"runs.\n\n{markdown(lines)}\nPython {found['python']}, scikit-learn "
        f"{found['scikit-learn']}, pandas {found['pandas']}, LightGBM {found['lightgbm']}, typer "
        f"{found['typer']}.\n"
    )
    write_text(RESULTS, text)
    print(text)


if __name__ == "__main__":
    main()
