"""Writing files so that a reader finds the old content or the new one, never a part of it."""

from __future__ import annotations

import glob
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on leaving without an error, it replaces ``path``.

    The new file has the mode of the file it replaces. If ``path`` is a symbolic link, its target
    is replaced.
    """
    target, partial, mode = _start(path)
    try:
        yield partial
        with _name_in_errors(path):
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            if mode is not None:
                partial.chmod(mode)
            os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, complete or not at all."""
    with atomic_path(path) as partial, _name_in_errors(path):
        partial.write_text(text, "utf-8")


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the error that `atomic_path` would raise, before any work is done."""
    _start(path)[1].unlink()


def _start(path: str | os.PathLike[str]) -> tuple[Path, Path, int | None]:
    """The file to write, an empty temporary file beside it, and the mode of the existing file."""
    target = Path(os.path.realpath(path))
    if not target.name or not os.fspath(path):
        raise ValueError(f"{os.fspath(path)!r} is not the name of a file")
    partial = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    with _name_in_errors(path):
        mode = _mode(Path(path))
        _remove_leftovers(target)
        partial.touch(0o666 if mode is None else 0o600, exist_ok=False)
    return target, partial, mode


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
    """Remove temporary files of the same target whose process was killed."""
    for leftover in target.parent.glob(f".{glob.escape(target.name)}.*-*.partial"):
        process = leftover.name.removesuffix(".partial").rsplit(".", 1)[1].split("-")[0]
        if process.isdigit() and not _is_alive(int(process)):
            leftover.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True
