"""Writing files so that a reader finds the old content or the new one, never a part of it."""

from __future__ import annotations

import glob
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where a file that a process has open cannot be removed
    fcntl = None  # type: ignore[assignment]

_MOST_NAME = 200  # bytes, of at most 255 that file systems allow
_new: ContextVar[set[Path] | None] = ContextVar("new", default=None)
_partial_files: set[Path] = set()  # of this process


@contextmanager
def new_files() -> Iterator[None]:
    """A context in which `atomic_path` does not replace the files given to `keep_existing`.

    What counts is whether a file exists when the new
    one is complete. If another process has created it meanwhile, the new content goes to a name
    that is free, and an error tells which.
    """
    token = _new.set(set())
    try:
        yield
    finally:
        _new.reset(token)


def keep_existing(path: str | os.PathLike[str]) -> None:
    """Add a file to those that the context of `new_files`, if there is one, does not replace."""
    files = _new.get()
    if files is not None:
        files.add(Path(os.path.realpath(path)))


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on leaving without an error, it replaces ``path``.

    The new file has the mode of the file it replaces. If ``path`` is a symbolic link, its target
    is replaced.
    """
    with _claimed(path) as (target, partial, mode):
        yield partial
        with _name_in_errors(path):
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            if mode is not None:
                partial.chmod(mode)
            name = _publish(partial, target)
        if name != target:
            raise FileExistsError(
                f"{os.fspath(path)} has been created by another process meanwhile; the result is "
                f"in {name}"
            )


def _publish(partial: Path, target: Path) -> Path:
    """Give the complete file its name, or another one if it must not replace an existing file."""
    new = _new.get() or set()
    if target not in new:
        os.replace(partial, target)
        return target
    name, number = target, 1
    while not _create(partial, name):
        number += 1
        name = target.with_stem(f"{target.stem}-{number}")
    new.discard(name)  # this process may replace it from now on
    return name


def _create(partial: Path, target: Path) -> bool:
    """Give the file a name that is free; False if it is taken."""
    try:
        os.link(partial, target)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        try:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        os.replace(partial, target)
    return True


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, complete or not at all."""
    with atomic_path(path) as partial, _name_in_errors(path):
        partial.write_text(text, "utf-8")


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the error that `atomic_path` would raise, before any work is done."""
    with _claimed(path):
        pass


@contextmanager
def _claimed(path: str | os.PathLike[str]) -> Iterator[tuple[Path, Path, int | None]]:
    """The file to write, an empty temporary file beside it, and the mode of the existing file.

    The temporary file is removed at the end. It is locked as long, where files can be locked, so
    that other processes know that it is in use.
    """
    target = Path(os.path.realpath(path))
    if not target.name or not os.fspath(path):
        raise ValueError(f"{os.fspath(path)!r} is not the name of a file")
    partial, lock = target, None
    try:  # a signal may end the process from the moment on at which the file exists
        with _name_in_errors(path):
            mode = _mode(Path(path))
            _remove_leftovers(target)
            while True:
                partial = target.with_name(f".{_short(target)}.{secrets.token_hex(8)}.partial")
                _partial_files.add(partial)
                partial.touch(0o666 if mode is None else 0o600, exist_ok=False)
                lock = _lock(partial)
                if partial.exists():  # nobody has removed it before it was locked
                    break
                _unlock(lock)
                lock = None
        yield target, partial, mode
    finally:
        if partial != target:
            partial.unlink(missing_ok=True)
            _partial_files.discard(partial)
        _unlock(lock)


def _short(target: Path) -> str:
    """The name of the file, or its checksum: with more around it, a name may be too long."""
    name = os.fsencode(target.name)
    if len(name) <= _MOST_NAME:
        return target.name
    return hashlib.sha256(name).hexdigest()


def remove_partial_files() -> None:
    """Remove what this process was writing: a signal may have interrupted the removal itself."""
    while _partial_files:
        with suppress(OSError):
            _partial_files.pop().unlink(missing_ok=True)


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _lock(partial: Path) -> int | None:
    """A descriptor that holds the lock of the file; None if it cannot be locked, or is already."""
    if fcntl is None:
        return None
    with suppress(OSError):
        descriptor = os.open(partial, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
        else:
            return descriptor
    return None


@contextmanager
def _name_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise errors of the system with the name that the user gave, not the temporary one."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(
            f"{os.fspath(path)} cannot be written: {reason}; name another file"
        ) from None


def _mode(path: Path) -> int | None:
    """The permissions of the existing file, if there is one; only plain files are replaced."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise OSError("it exists and is not a plain file")
    return stat.S_IMODE(mode) & 0o777


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of the same target that no process is writing any more."""
    for leftover in target.parent.glob(f".{glob.escape(_short(target))}.*.partial"):
        lock = _lock(leftover)
        if lock is None and fcntl is not None:
            continue
        with suppress(OSError):
            leftover.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)
