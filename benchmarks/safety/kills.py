"""Kill every command that writes, at random moments: is an output ever half-written?"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
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
LEFT, HANGS = "partial file after SIGTERM or SIGHUP", "does not end"
CODE, WORKERS = "another exit code than 143 or 129", "processes left after SIGTERM or SIGHUP"
FINISHED = "finished first"
FAULTS = (HALF, LEFT, HANGS, CODE, WORKERS, "partial file after the next run")
# The design: kept counts of another one are not shown, and its kills are made anew.
SIGNALS = {"SIGKILL": 0.5, "SIGTERM": 0.25, "SIGHUP": 0.25}
USUAL_CODES = (0, 3, 4, 5)
_BATCH = 20  # kills that are kept together
_PATIENCE = 60.0  # seconds
_SOON = 0.2  # seconds in which a command may end by itself after a signal


def run(path: Path, page: Path, arguments: Any) -> int:
    """Kill what is not kept yet, and write the page; returns the number of faults."""
    preload()
    path.parent.mkdir(parents=True, exist_ok=True)
    if arguments.fresh:
        path.unlink(missing_ok=True)
    done = {json.dumps(line["case"]) for line in read_kept(path)}
    batches = [
        {"command": name, "signals": SIGNALS, "seed": arguments.seed, "first": first}
        for first in range(0, arguments.times, _BATCH)  # a run that is stopped has some of each
        for name in COMMANDS
        if first < _times(name, arguments)
    ]
    left = [batch for batch in batches if json.dumps(batch) not in done]
    show = bool(left) and sys.stdout.isatty()
    with time_bar("kills", len(batches), len(batches) - len(left), show=show) as advance:
        for batch in left:
            times = min(_BATCH, _times(batch["command"], arguments) - batch["first"])
            counts = kill_batch(batch["command"], random.Random(json.dumps(batch)), times)
            line = {"case": batch, "result": {"version": __version__, "counts": counts}}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            advance(1)
    return write_page(path, page)


def _times(name: str, arguments: Any) -> int:
    most = COMMANDS[name].most_kills
    return int(arguments.times if most is None else min(most, arguments.times))


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
            (drawn,) = rng.choices([*SIGNALS], [*SIGNALS.values()])
            _wait(fork, seconds, opened, rng)
            end = _end(fork, signal.Signals[drawn])
            counts.update(end)
            if drawn in end and drawn != "SIGKILL" and set(_partial(folder)) - partial:
                counts[LEFT] += 1
            counts[_found(folder, before)] += 1
        _usual(command, folder)
        counts["partial file after the next run"] += len(_partial(folder))
    return counts


def _usual(command: Command, folder: Path) -> tuple[float, list[float]]:
    """How long the command takes, and when it opens files."""
    fork = _started(command, folder)
    fork.wait(lambda: False, 10 * _PATIENCE)
    if fork.finish() not in USUAL_CODES:
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


def _end(fork: Fork, number: signal.Signals) -> list[str]:
    """Send the signal; what is to be counted."""
    if fork.code is not None:
        return [FINISHED]
    os.kill(fork.process, number)
    sent = time.monotonic()
    ended = ["killed", number.name]
    if fork.wait(lambda: False, _PATIENCE):
        os.kill(fork.process, signal.SIGKILL)
        fork.finish()
        ended.append(HANGS)
    elif fork.ended is not None and fork.ended < sent + _SOON and fork.code in USUAL_CODES:
        return [FINISHED]
    elif fork.code != (-number if number == signal.SIGKILL else 128 + number):
        ended.append(CODE)
    if number != signal.SIGKILL and not _gone(fork.process):
        ended.append(WORKERS)
    with suppress(ProcessLookupError):
        os.killpg(fork.process, signal.SIGKILL)
    return ended


def _gone(group: int) -> bool:
    """Whether all processes of a command that has ended are gone soon."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        listed = subprocess.run(
            ["ps", "-A", "-o", "pgid=", "-o", "stat="], check=True, capture_output=True, text=True
        )
        states = [line.split() for line in listed.stdout.splitlines()]
        if not any(int(of) == group and state[0] != "Z" for of, state in states):
            return True
        time.sleep(0.2)
    return False


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
    counts: dict[str, Counter[str]] = {name: Counter() for name in COMMANDS}
    for line in read_kept(path):
        if line["case"].get("signals") == SIGNALS:
            counts[line["case"]["command"]].update(line["result"]["counts"])
    head = ["command", "kills", *SIGNALS, FINISHED, OLD, NEW, HALF, "other faults"]
    shown = ("killed", *SIGNALS, FINISHED, OLD, NEW, HALF)
    rows = [
        [
            f"`{name}`",
            *(f"{ends[one]:,}" for one in shown),
            f"{sum(ends[fault] for fault in FAULTS if fault != HALF):,}",
        ]
        for name, ends in counts.items()
    ]
    total = sum(ends["killed"] for ends in counts.values())
    mix = ", ".join(f"{share:.0%} {name}".replace("%", " %") for name, share in SIGNALS.items())
    text = (
        f"# Killed at random moments\n\n`python benchmarks/safety kills` (POSIX only): {total:,} "
        "kills of commands over older files, on 300 rows, in forks of a process that has imported "
        "everything. Half of the kills come at any moment, half within 50 ms after an output was "
        f"opened; the signals are drawn: {mix}. After each, an output must be the old file or "
        "the new one, whole. Half a file would be a fault. Other faults would be: a command that "
        "does not end, an exit code other than 143 after SIGTERM and 129 after SIGHUP, a hidden "
        "`.partial` file or a worker process after either, and a `.partial` file that the next "
        "run for the same file does not remove. A command with several outputs counts as "
        "`old file` if one of them is old. `--jobs 2` starts worker processes.\n\n"
        + markdown([head, *rows])
    )
    found = [
        f"- `{name}`: {fault}, {ends[fault]:,} of {ends['killed']:,}\n"
        for name, ends in counts.items()
        for fault in FAULTS
        if ends[fault]
    ]
    write_text(page, text + ("\nFaults:\n\n" + "".join(found) if found else ""))
    return sum(ends[fault] for ends in counts.values() for fault in FAULTS)
