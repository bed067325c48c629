"""Kill every command that writes, at random moments: is an output ever half-written?"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fairproj import __version__
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from fairproj.io.progress import time_bar
from kept import read_kept
from safety.commands import COMMANDS, Command, is_whole, prepare, shorten_demo
from safety.forks import Fork, preload, start

OLD, NEW, HALF = "old file", "new file, whole", "half a file"
LEFT, HANGS = "partial file after SIGTERM", "does not end"
FINISHED = "finished first"
FAULTS = (HALF, LEFT, HANGS, "partial file after the next run")
_BATCH = 20  # kills that are kept together
_PATIENCE = 60.0  # seconds


def run(path: Path, page: Path, arguments: Any) -> int:
    """Kill what is not kept yet, and write the page; returns the number of faults."""
    preload()
    path.parent.mkdir(parents=True, exist_ok=True)
    if arguments.fresh:
        path.unlink(missing_ok=True)
    done = {json.dumps(line["case"]) for line in read_kept(path)}
    batches = [
        {"command": name, "seed": arguments.seed, "first": first}
        for name in COMMANDS
        for first in range(0, arguments.times, _BATCH)
    ]
    left = [batch for batch in batches if json.dumps(batch) not in done]
    show = bool(left) and sys.stdout.isatty()
    with time_bar("kills", len(batches), len(batches) - len(left), show=show) as advance:
        for batch in left:
            times = min(_BATCH, arguments.times - batch["first"])
            counts = kill_batch(batch["command"], random.Random(json.dumps(batch)), times)
            line = {"case": batch, "result": {"version": __version__, "counts": counts}}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            advance(1)
    return write_page(path, page)


def kill_batch(name: str, rng: random.Random, times: int) -> Counter[str]:
    """Run a command until it was killed so often; how its outputs were found."""
    counts: Counter[str] = Counter()
    command = COMMANDS[name]
    with tempfile.TemporaryDirectory(prefix="fairproj-kill-") as folder_name:
        folder = Path(folder_name)
        prepare(folder)
        seconds, opened = _usual(command, folder)
        while counts["killed"] < times:
            before = {name: _digest(folder / name) for name in command.outputs}
            partial = set(_partial(folder))  # of kills before; this one may come before they go
            fork = _started(command, folder)
            number = signal.SIGTERM if rng.random() < 0.5 else signal.SIGKILL
            _wait(fork, seconds, opened, rng)
            counts[_end(fork, number)] += 1
            if number == signal.SIGTERM and set(_partial(folder)) - partial:
                counts[LEFT] += 1
            counts[_found(folder, before)] += 1
        _usual(command, folder)
        counts["partial file after the next run"] += len(_partial(folder))
    return counts


def _usual(command: Command, folder: Path) -> tuple[float, list[float]]:
    """How long the command takes, and when it opens files."""
    fork = _started(command, folder)
    fork.wait(lambda: False, 10 * _PATIENCE)
    if fork.finish() not in (0, 3, 4, 5):
        raise RuntimeError(f"{command.arguments}: {fork.errors.read_text('utf-8')}")
    for name in command.outputs:
        if not is_whole(folder / name):
            raise RuntimeError(f"{command.arguments} has not written {name}")
    return time.monotonic() - fork.begun, fork.opened


def _started(command: Command, folder: Path) -> Fork:
    return start(command.arguments, folder, folder / "errors.log", shorten_demo)


def _wait(fork: Fork, seconds: float, opened: list[float], rng: random.Random) -> None:
    """Until any moment, or half the time until one soon after a file was opened."""
    if rng.random() < 0.5:
        fork.wait(lambda: False, rng.uniform(0, seconds))
        return
    number = rng.randrange(1, len(opened) + 1)
    if fork.wait(lambda: len(fork.opened) >= number, _PATIENCE):
        fork.wait(lambda: False, rng.choice([0.0, 1e-4, 1e-3, 1e-2, 5e-2]) * rng.random())


def _end(fork: Fork, number: signal.Signals) -> str:
    if fork.code is not None:
        return FINISHED
    os.kill(fork.process, number)
    if not fork.wait(lambda: False, _PATIENCE):
        return "killed"  # by the signal, or it finished before that arrived
    os.kill(fork.process, signal.SIGKILL)
    fork.finish()
    return HANGS


def _found(folder: Path, before: dict[str, str]) -> str:
    """What is there after a kill; of several outputs, the worst."""
    found = NEW
    for name, digest in before.items():
        if not is_whole(folder / name):
            return HALF
        if _digest(folder / name) == digest:
            found = OLD
    return found


def _partial(folder: Path) -> list[Path]:
    return list(folder.glob(".*.partial"))


def _digest(path: Path) -> str:
    """Of the content, and of when it was written: a new file may have the same content."""
    written = str(path.stat().st_mtime_ns).encode()
    return hashlib.sha256(path.read_bytes() + written).hexdigest()


def write_page(path: Path, page: Path) -> int:
    """The table of all kills that are kept; returns the number of faults."""
    counts: dict[str, Counter[str]] = {}
    for line in read_kept(path):
        counts.setdefault(line["case"]["command"], Counter()).update(line["result"]["counts"])
    head = ["command", "kills", FINISHED, OLD, NEW, HALF, "other faults"]
    rows = [
        [
            f"`{name}`",
            *(f"{n:,}" for n in (ends["killed"], ends[FINISHED], ends[OLD], ends[NEW], ends[HALF])),
            f"{sum(ends[fault] for fault in FAULTS if fault != HALF):,}",
        ]
        for name, ends in counts.items()
    ]
    text = (
        "# Killed at random moments\n\n`python benchmarks/safety kills`: each command over older "
        "files, on 300 rows, in forks of a process that has imported everything. Half of the kills "
        "come at any moment, half within 50 ms after an output was opened; half are SIGTERM, "
        "the others SIGKILL. After each, an output must be the old file or the new one, whole. "
        "Half a file would be a fault; so would be a command that does not end, a hidden "
        "`.partial` file after SIGTERM, or one that the next run for the same file does not "
        "remove. A command with several outputs counts as `old file` if one of them is old.\n\n"
        + markdown([head, *rows])
    )
    write_text(page, text)
    return sum(ends[fault] for ends in counts.values() for fault in FAULTS)
