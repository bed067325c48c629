"""Checkpoints: the rounds of a run that are done, in a file that is replaced all at once.

A file is text in two lines: a header with a checksum, and the checkpoint as JSON. Nothing in it is
code, and everything in it is checked before it is used.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from fairproj.data.checks import counted, listing
from fairproj.engines.xgboost.tree import Tree
from fairproj.engines.xgboost.validate import from_record, to_record
from fairproj.io.atomic import atomic_path, check_writable
from fairproj.io.records import from_json, to_json

_HEADER = "fairproj checkpoint 1 sha256:{}"
MAX_BYTES = 1 << 30
_SHOWN = 80  # characters of a value in a message
_PAUSES = (0.5, 2.0, 5.0)  # seconds before a file system that failed is tried again


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message is a sentence with the reason."""


@dataclass(frozen=True)
class DoneRound:
    """A round that is done: its tree as a record, its vote and the log loss after it."""

    tree: dict[str, Any]
    vote: float
    log_loss: float

    @classmethod
    def of(cls, tree: Tree, vote: float, log_loss: float) -> DoneRound:
        return cls(to_record(tree), float(vote), float(log_loss))


@dataclass(frozen=True)
class Checkpoint:
    """The rounds of a run that are done.

    Attributes
    ----------
    facts : dict of str to str
        Parameters and a description of the rows, to recognise the run by.
    seed : int
        The run's ``random_state``.
    rounds : list of DoneRound
    """

    facts: dict[str, str]
    seed: int
    rounds: list[DoneRound]


def read_trees(
    rounds: Sequence[DoneRound], n_features: int, categories: Mapping[int, int], votes: str
) -> list[Tree]:
    """The trees of the rounds; ValueError unless each fits the table."""
    return [
        from_record(done.tree, number, n_features, categories, votes)
        for number, done in enumerate(rounds)
    ]


def check_facts(then: Mapping[str, str], now: Mapping[str, str], path: Any) -> None:
    """Refuse a checkpoint of another run, and name what differs."""
    for name, value in now.items():
        before = then.get(name, "none")
        if before != value:
            raise CheckpointError(
                f"{os.fspath(path)} is the checkpoint of another run: {name} was {_short(before)} "
                f"there and is {_short(value)} here; resume with the parameters and rows of that "
                "run, or train from the start"
            )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def describe_values(values: Sequence[Any], most: int = 200) -> str:
    """Values as text to compare, with a checksum where they are many."""
    text = listing(values, len(values))
    if len(values) <= most:
        return text
    return f"{listing(values, 3)} (sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]})"


class CheckpointFile:
    """Where the checkpoints of a run are written.

    Parameters
    ----------
    path : str or path
        A local path, or a URL that fsspec can open.
    every : int
        Rounds between two checkpoints.
    """

    def __init__(self, path: str | os.PathLike[str], every: int) -> None:
        self.path = os.fspath(path)
        self._every = every
        self._n_rounds = 0

    def check(self) -> None:
        """Raise the error that writing would raise, before any work is done."""
        try:
            if _is_local(self.path):
                check_writable(_local_path(self.path))
            else:
                _probe(self.path)
        except OSError as error:
            raise CheckpointError(
                f"checkpoint_path={self.path!r} cannot be used: {_reason(error)}"
            ) from error

    def resume(self, path: Any, n_rounds: int) -> None:
        """Count from the checkpoint that the run continues, if it is in the same file."""
        if path is not None and os.fspath(path) == self.path:
            self._n_rounds = n_rounds

    def n_replaced(self) -> int:
        """The rounds of another run that the first checkpoint will replace."""
        if self._n_rounds:
            return 0
        with suppress(CheckpointError):  # there is none
            return len(read_checkpoint(self.path).rounds)
        return 0

    def update(self, checkpoint: Checkpoint, *, now: bool = False) -> None:
        """Write a checkpoint if there are enough new rounds, or any new one and ``now``."""
        new = len(checkpoint.rounds) - self._n_rounds
        if new < (1 if now else self._every):
            return
        try:
            write_checkpoint(self.path, checkpoint)
        except OSError as error:
            raise OSError(
                error.errno,
                f"the checkpoint {self.path} cannot be written after round "
                f"{len(checkpoint.rounds)}: {_reason(error)}; {self._last()}",
            ) from error
        self._n_rounds = len(checkpoint.rounds)

    def _last(self) -> str:
        if not self._n_rounds:
            return "no checkpoint was written before; make room, or name another checkpoint_path"
        return (
            f"the last checkpoint is intact and holds {counted(self._n_rounds, 'round')}: make "
            "room, and go "
            "on with fit(..., resume_from=...)"
        )

    def advice(self) -> str:
        """How to continue after the run has ended early."""
        if not self._n_rounds:
            return "no checkpoint was written"
        return f"the rounds up to {self._n_rounds} are in {self.path}: pass it as resume_from"


def write_checkpoint(path: str, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; a reader finds the old one or the new one, never a part of it."""
    body = to_json(checkpoint)
    text = f"{_HEADER.format(_checksum(body.encode()))}\n{body}\n"
    if _is_local(path):
        with atomic_path(_local_path(path)) as partial:
            partial.write_text(text, "utf-8")
        return
    for pause in _PAUSES:  # a network may fail for a moment
        with suppress(OSError):
            _write_remote(path, text.encode())
            return
        time.sleep(pause)
    _write_remote(path, text.encode())


def _write_remote(path: str, content: bytes) -> None:
    files, target = _file_system(path)
    temporary = f"{target}.partial"
    with _system_errors():
        try:
            files.pipe_file(temporary, content)
            files.mv(temporary, target)
        except BaseException:
            with suppress(Exception):
                files.rm(temporary)
            raise


def _probe(path: str) -> None:
    """Write and remove a small file beside a checkpoint on another file system."""
    files, target = _file_system(path)
    with _system_errors():
        files.pipe_file(f"{target}.partial", b"fairproj")
        files.rm(f"{target}.partial")


@contextmanager
def _system_errors() -> Iterator[None]:
    """File systems of fsspec raise errors of many classes, such as those of a cloud's library."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint in a file; `CheckpointError` unless it holds one."""
    try:
        raw = _read_bytes(os.fspath(path))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"the checkpoint {os.fspath(path)} cannot be read: {_reason(error)}"
        ) from error
    header, _, rest = raw.partition(b"\n")
    body, end, left = rest.partition(b"\n")
    if not header.startswith(b"fairproj checkpoint "):
        raise CheckpointError(f"{os.fspath(path)} is not a checkpoint of fairproj")
    if header != _HEADER.format(_checksum(body)).encode() or not end or left:
        raise CheckpointError(
            f"the checkpoint {os.fspath(path)} was cut short, changed or damaged: its checksum "
            "does not match; train from the start"
        )
    try:
        return from_json(body, Checkpoint)
    except ValueError as error:
        raise CheckpointError(f"{os.fspath(path)} is not a valid checkpoint: {error}") from None


def _checksum(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _read_bytes(path: str) -> bytes:
    if _is_local(path):
        local = _local_path(path)
        if os.path.getsize(local) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        with open(local, "rb") as file:
            return file.read()
    files, target = _file_system(path)
    with _system_errors():
        if (files.size(target) or 0) > MAX_BYTES:
            raise OSError(f"it has more than {MAX_BYTES:,} bytes")
        content: bytes = files.cat_file(target)
    return content


def _is_local(path: str) -> bool:
    return "://" not in path or path.startswith("file://")


def _local_path(path: str) -> str:
    return path.removeprefix("file://")


def _file_system(path: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path on it."""
    from fsspec.core import url_to_fs

    try:
        files, target = url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise OSError(f"{error}") from error
    return files, target


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)
