"""Damaged data files by the thousand, given to the commands in processes that may die.

    python benchmarks/fuzz_csv.py                 12,000 files, some ten minutes
    python benchmarks/fuzz_csv.py --files 500 --seed 7

Each file is a mutant of a good table: as CSV, compressed CSV, Parquet or Feather. It is trained on,
predicted or audited. The command must succeed or end with one sentence and exit code 1.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from fairproj import FairProjClassifier
from fairproj.cli import app
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fuzz import EffectMonitor, Job, Worker, all_done

RESULTS = Path(__file__).parent / "results" / "fuzz-data.md"
COMMANDS = ("train", "train paper", "predict", "audit", "audit model", "report")
DONE, SENTENCE = "done", "one sentence, exit code 1"
PIECES = [
    *(b'"', b'""', b"'", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xfe\xff"),
    *(b"\xef\xbb\xbf", b"nan", b"inf", b"-inf", b"1e999", b"9" * 400, b"NA", b"null", b"true"),
    *(b"2020-01-01", b"0x10", b"1_000", b"1,5", b"=cmd|' /C calc'!A0", b"../../etc/passwd"),
    *("é".encode("latin-1"), "\u202e".encode(), "\U0001f600".encode(), b"x" * 70_000, b"-0", b""),
]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, size=120),
            "pay": rng.normal(size=120).round(3),
            "job": rng.choice(["clerk", "cook, chef", 'the "boss"', ""], size=120),
            "ok": rng.integers(2, size=120).astype(bool),
            "sex": rng.choice(["f", "m"], size=120),
        }
    )
    frame["y"] = np.where(frame["pay"] + (frame["sex"] == "f") > 0.5, "yes", "no")
    return frame.assign(predicted=np.where(frame["pay"] > 0.4, "yes", "no"))


def good_files() -> dict[str, bytes]:
    frame = table()
    parquet, feather = io.BytesIO(), io.BytesIO()
    frame.to_parquet(parquet)
    frame.to_feather(feather)
    return {
        "csv": frame.to_csv(index=False).encode(),
        "parquet": parquet.getvalue(),
        "feather": feather.getvalue(),
    }


def mutant(good: dict[str, bytes], seed: int, index: int) -> tuple[str, str, bytes, str]:
    """The suffix of the file, the damage, its bytes, and the command; always the same."""
    rng = random.Random(f"{seed}-{index}")
    suffix = rng.choices(["csv", "csv.gz", "parquet", "feather"], [80, 8, 6, 6])[0]
    raw = good[suffix.removesuffix(".gz")]
    kind = rng.choice(list(DAMAGE))
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        raw = DAMAGE[kind](raw, rng)
    if suffix == "csv.gz":
        raw = gzip.compress(raw, 1)
        if rng.random() < 0.3:
            raw = flipped(raw, rng)
    return suffix, kind, raw, rng.choice(COMMANDS)


def flipped(raw: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(raw) or 1)
    return raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1 :]


def put_in(raw: bytes, rng: random.Random) -> bytes:
    at = rng.choice([0, rng.randrange(len(raw) + 1), len(raw)])
    return raw[:at] + rng.choice(PIECES) + raw[at:]


def cut(raw: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(raw) + 1)
    return raw[:at] if rng.random() < 0.5 else raw[:at] + raw[at + rng.randrange(1, 40) :]


def cell(raw: bytes, rng: random.Random) -> bytes:
    """Another value in one cell."""
    lines = raw.split(b"\n")
    at = rng.randrange(len(lines))
    cells = lines[at].split(b",")
    cells[rng.randrange(len(cells))] = rng.choice(PIECES)
    lines[at] = b",".join(cells)
    return b"\n".join(lines)


def line(raw: bytes, rng: random.Random) -> bytes:
    """A line twice, gone or elsewhere."""
    lines = raw.split(b"\n")
    taken = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.choice([0, 1, 2])):
        lines.insert(rng.randrange(len(lines) + 1), taken)
    return b"\n".join(lines)


def column(raw: bytes, rng: random.Random) -> bytes:
    """All cells of a column alike."""
    lines = [row.split(b",") for row in raw.split(b"\n")]
    at, value = rng.randrange(7), rng.choice(PIECES)
    for cells in lines[rng.choice([0, 1]) :]:
        if at < len(cells):
            cells[at] = value
    return b"\n".join(b",".join(cells) for cells in lines)


DAMAGE = {
    "byte": flipped,
    "piece put in": put_in,
    "cut": cut,
    "cell": cell,
    "line": line,
    "column": column,
}


def work(job: Job, wire: Connection) -> None:
    warnings.simplefilter("ignore")
    good = good_files()
    model, out = job.scratch / "model.fairproj", job.scratch / f"out-{os.getpid()}"
    monitor = EffectMonitor(job.scratch)
    for index in range(job.first, job.stop, job.step):
        suffix, kind, raw, command = mutant(good, job.seed, index)
        path = job.scratch / f"data-{os.getpid()}.{suffix}"
        path.write_bytes(raw)
        wire.send((index, None))
        end, message = verdict(command, path, model, out, monitor)
        wire.send((index, (suffix, kind, end, message)))


def verdict(
    command: str, path: Path, model: Path, out: Path, monitor: EffectMonitor
) -> tuple[str, str]:
    task = ["--label", "y", "--sensitive", "sex"]
    train = ["train", path, *task, "--rounds", 2, "--jobs", 1, "-o", f"{out}.fairproj"]
    line = {
        "train": train,
        "train paper": [*train, "--method", "paper"],
        "predict": ["predict", model, path, "--jobs", 1, "-o", f"{out}.csv"],
        "audit": ["audit", path, "--predictions", "predicted", *task],
        "audit model": ["audit", model, path, *task],
        "report": ["report", model, path, *task, "-o", f"{out}.html"],
    }[command]
    force = [] if "audit" in command else ["--force"]
    monitor.on = True
    result = CliRunner().invoke(app, [str(part) for part in [*line, *force]])
    monitor.on = False
    # Typer compiles its own annotations at every call; outputs get the mode of the file they
    # replace and are put in place by a rename.
    usual = ("compile", "exec", "os.chmod", "os.rename", "os.remove")
    bad = [seen for seen in monitor.seen if not seen.startswith(usual)]
    monitor.seen.clear()
    if bad:
        return "the file had an effect", "; ".join(bad)
    if result.exception and not isinstance(result.exception, SystemExit):
        return f"exception {type(result.exception).__name__}", str(result.exception)
    if result.exit_code in (0, 3, 5):  # 3 and 5: the model misses its target or is not useful
        return DONE, ""
    errors = [row for row in result.stderr.splitlines() if not row.startswith("warning: ")]
    if result.exit_code == 1 and len(errors) == 1 and errors[0].startswith("error: "):
        return SENTENCE, errors[0]
    return f"exit code {result.exit_code}", result.output


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--limit", type=float, default=10.0, help="seconds a file may take")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    good = good_files()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairproj-fuzz-") as name:
        scratch = Path(name)
        frame = table()
        model = FairProjClassifier(n_estimators=3)
        model.fit(frame[["age", "pay", "job", "ok"]], frame["y"], sensitive_features=frame["sex"])
        model.save(scratch / "model.fairproj")
        jobs = [
            Job(scratch, arguments.seed, n, arguments.files, arguments.workers)
            for n in range(arguments.workers)
        ]
        outcomes = all_done(
            [Worker(job, work) for job in jobs],
            arguments.limit,
            lambda index: mutant(good, arguments.seed, index)[:2],
        )
    failures = {i: end for i, end in outcomes.items() if end[2] not in (DONE, SENTENCE)}
    for index, (suffix, kind, end, message) in sorted(failures.items()):
        arguments.keep.mkdir(parents=True, exist_ok=True)
        path = arguments.keep / f"{arguments.seed}-{index}.{suffix}"
        path.write_bytes(mutant(good, arguments.seed, index)[2])
        print(f"{path}: {mutant(good, arguments.seed, index)[3]}, {kind}: {end}: {message[:300]}")
    lines = [["file", "files", DONE, SENTENCE, "failures"]]
    for suffix in ("csv", "csv.gz", "parquet", "feather"):
        ends = Counter(end for kind, _, end, _ in outcomes.values() if kind == suffix)
        good_ends = [ends.pop(DONE, 0), ends.pop(SENTENCE, 0)]
        total = sum(good_ends) + ends.total()
        lines.append([suffix, *(f"{n:,}" for n in (total, *good_ends, ends.total()))])
    text = (
        f"# Damaged data files\n\n`python benchmarks/fuzz_csv.py --files {len(outcomes)} --seed "
        f"{arguments.seed}`, {time.monotonic() - begin:.0f} s: `train`, `predict`, `audit` and "
        "`report` on mutated tables. A failure is a crash, a hang, another exit code, more than "
        "one line of error, or an effect beside the output.\n\n" + markdown(lines)
    )
    write_text(arguments.output, text)
    print(text)
    return int(bool(failures) or len(outcomes) != arguments.files)


if __name__ == "__main__":
    sys.exit(main())
