"""Kill -9 at random moments: is an output ever half-written?

python benchmarks/kill.py [--times 50]    # into benchmarks/results/kill.md

Each command writes over an older file; after the kill there must be that file, or the new one,
whole.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from fairproj import load
from fairproj.datasets import load_adult
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.versions import versions

RESULTS = Path(__file__).parent / "results" / "kill.md"
ROWS = 48_842


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    lines = [["command", "kills", "finished first", "old file", "new file, whole", "half a file"]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, model = folder / "adult.parquet", folder / "model.fairproj"
        load_adult().frame.to_parquet(data, row_group_size=5000)
        ask = ["--label", "income", "--sensitive", "sex", "--rounds", "60"]
        run(["train", data, *ask, "-o", model], check=True)
        for command in (
            ["train", data, *ask, "-o", folder / "out.fairproj"],
            ["predict", model, data, "-o", folder / "out.parquet"],
            ["report", model, data, "-o", folder / "out.html"],
        ):
            counts = killed(command, arguments.times, rng)
            print(command[0], dict(counts), flush=True)
            lines.append(
                [
                    command[0],
                    *(f"{counts[kind]}" for kind in ("killed", "finished", "old", "new", "half")),
                ]
            )
    text = (
        "# Killed at random moments\n\n`python benchmarks/kill.py`, each command "
        f"until {arguments.times} runs were killed, each over an older file (fairproj "
        f"{versions()['fairproj']}). Half a file would be a fault; what a killed run leaves beside "
        "it (a hidden `.partial` file) is removed by the next run for the same file.\n\n"
        + markdown(lines)
    )
    write_text(arguments.output, text)
    print(text)


def killed(command: list[object], times: int, rng: random.Random) -> Counter[str]:
    out = Path(str(command[-1]))
    start = time.perf_counter()
    run(command, check=True)
    whole = time.perf_counter() - start
    counts: Counter[str] = Counter()
    while counts["killed"] < times:
        before, start = digest(out), time.perf_counter()
        process = run([*command, "--force"])
        # Half of the kills near the end, where the file is written.
        low = 0.0 if rng.random() < 0.5 else 0.8 * whole
        try:
            process.wait(rng.uniform(low, whole))
            counts["finished"] += 1
            whole = time.perf_counter() - start
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            counts["killed"] += 1
        counts["half" if not is_whole(out) else "old" if digest(out) == before else "new"] += 1
    return counts


def run(command: list[object], *, check: bool = False) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "fairproj", *map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if check and process.wait():
        raise SystemExit(f"{command} failed")
    return process


def digest(path: Path) -> str:
    """Of the content, and of when it was written: a new file may have the same content."""
    return hashlib.sha256(path.read_bytes() + str(path.stat().st_mtime_ns).encode()).hexdigest()


def is_whole(path: Path) -> bool:
    try:
        if path.suffix == ".parquet":
            return int(pq.read_table(path).num_rows) == ROWS
        if path.suffix == ".html":
            return path.read_text("utf-8").rstrip().endswith("</html>")
        return load(path).certificate_.n_rounds > 0
    except Exception as error:
        print(error)
        return False


if __name__ == "__main__":
    main()
