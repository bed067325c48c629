"""Trials of numbered files in processes that may die; each ends in a word and a message.

A worker says which file it begins. If it dies or hangs, that file has failed, and another worker
goes on with the next.
"""

from __future__ import annotations

import importlib
import multiprocessing as mp
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

Outcome = tuple[str, str]  # how it ended, and the message


@dataclass(frozen=True)
class Block:
    """Files with numbers from ``first`` on, all made from one seed."""

    seed: int
    first: int
    files: int

    @property
    def stop(self) -> int:
        return self.first + self.files


@dataclass
class Tally:
    """How the files of a block ended."""

    block: Block
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, index: int, kind: str, outcome: Outcome, good: Any) -> None:
        end, message = outcome
        ends = self.counts.setdefault(kind, {})
        ends[end] = ends.get(end, 0) + 1
        if end not in good:
            found = {"index": index, "kind": kind, "end": end, "message": message[:300]}
            self.failures.append(found)


def run_blocks(
    part: str, folder: Path, blocks: list[Block], *, n_workers: int, limit: float
) -> Iterator[Tally]:
    """The tally of each block, as they are done; ``part`` is the module with the trial."""
    good = importlib.import_module(part).MEANING
    waiting = list(reversed(blocks))
    workers = [_Worker(part, folder, good) for _ in range(min(n_workers, len(blocks)))]
    try:
        for worker in workers:
            worker.start()
            worker.give(waiting.pop())
        while any(worker.tally is not None for worker in workers):
            wait([worker.wire for worker in workers if worker.tally is not None], timeout=0.5)
            for worker in workers:
                if worker.tally is not None and (tally := worker.look(limit)) is not None:
                    yield tally
                    if waiting:
                        worker.give(waiting.pop())
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that tries the files of a block, and another one after it has died."""

    def __init__(self, part: str, folder: Path, good: Any) -> None:
        self._part, self._folder, self._good = part, folder, good
        self.tally: Tally | None = None
        self.wire: Any = None

    def start(self) -> None:
        context = mp.get_context("spawn")
        self.wire, far = context.Pipe()
        arguments = (self._part, self._folder, far)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        far.close()

    def give(self, block: Block) -> None:
        self.tally, self._begun = Tally(block), time.monotonic()
        self._next, self._open = block.first, ""
        self._ask()

    def _ask(self) -> None:
        assert self.tally is not None
        self.wire.send((self.tally.block.seed, self._next, self.tally.block.stop))
        self._since = time.monotonic()

    def look(self, limit: float) -> Tally | None:
        """Take what the process has said; the tally, if the block is done."""
        assert self.tally is not None
        try:
            while self.wire.poll():
                self._take(*self.wire.recv())
        except (EOFError, ConnectionResetError):
            self._process.join(1)
        hangs = bool(self._open) and time.monotonic() - self._since > limit
        if hangs or not self._process.is_alive():
            self._replace(hangs, limit)
        if self._next < self.tally.block.stop:
            return None
        done, self.tally = self.tally, None
        done.seconds = time.monotonic() - self._begun
        return done

    def _take(self, kind: str, outcome: Outcome | None) -> None:
        self._since = time.monotonic()
        self._open = kind if outcome is None else ""
        if outcome is not None and self.tally is not None:
            self.tally.add(self._next, kind, outcome, self._good)
            self._next += 1

    def _replace(self, hangs: bool, limit: float) -> None:
        """Charge a death or a hang to the file that is open, and go on with the next."""
        assert self.tally is not None
        self._process.kill()
        self._process.join()
        if not self._open:
            raise RuntimeError(f"a worker ended with {self._process.exitcode} between files")
        end = f"hangs for {limit:g} s" if hangs else f"died ({self._process.exitcode})"
        self.tally.add(self._next, self._open, (end, ""), self._good)
        self._next, self._open = self._next + 1, ""
        self.start()
        if self._next < self.tally.block.stop:
            self._ask()

    def end(self) -> None:
        if self.wire is not None:
            self._process.kill()
            self._process.join()


def _serve(part: str, folder: Path, wire: Connection) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        os.environ["TMPDIR"] = tempfile.tempdir = name
        trial = importlib.import_module(part).Trial(folder, Path(name))
        while True:
            try:
                seed, first, stop = wire.recv()
            except EOFError:
                return
            for index in range(first, stop):
                kind, _ = trial.make(seed, index)
                wire.send((kind, None))
                wire.send((kind, trial.run()))


def replay(part: str, folder: Path, seed: int, index: int) -> tuple[str, Path, Outcome]:
    """Try one file in this process: its kind, where it is, and how it ended."""
    tempfile.tempdir = str(folder)
    trial = importlib.import_module(part).Trial(folder, folder)
    kind, path = trial.make(seed, index)
    print(f"{kind}: {path}", flush=True)
    return kind, path, trial.run()
