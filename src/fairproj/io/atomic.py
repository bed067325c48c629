"""Files that are there whole or not at all."""

from __future__ import annotations

import glob
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Where to write: a file beside ``path`` that takes its place once all is written.

    Whatever happens before, an older file stays as it is; the new one gets its mode. Of a link, the
    file that it leads to is written.
    """
    target, partial, mode = _begun(path)
    try:
        yield partial
        with _named(path):
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            if mode is not None:
                partial.chmod(mode)
            os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse what `whole` would refuse, before any work is done."""
    _begun(path)[1].unlink()


def _begun(path: str | os.PathLike[str]) -> tuple[Path, Path, int | None]:
    """The file to write, an empty one beside it, and the mode of the file that is there."""
    target = Path(os.path.realpath(path))
    if not target.name or not os.fspath(path):
        raise ValueError(f"{os.fspath(path)!r} is no name of a file")
    partial = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    with _named(path):
        mode = _mode(Path(path))
        _clear_away(target)
        partial.touch(0o666 if mode is None else 0o600, exist_ok=False)
    return target, partial, mode


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the system tell the file that the user named."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise type(error)(
            f"{os.fspath(path)} cannot be written: {why}; name another file"
        ) from None


def _mode(path: Path) -> int | None:
    """Who may read and write the file that is there, if one is; only plain files are replaced."""
    try:
        found = path.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise OSError("it is there and not a plain file")
    return stat.S_IMODE(found) & 0o777


def _clear_away(target: Path) -> None:
    """What runs for the same file left behind when they were killed."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*-*.partial"):
        process = left.name.removesuffix(".partial").rsplit(".", 1)[1].split("-")[0]
        if process.isdigit() and not _is_alive(int(process)):
            left.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        return True
    return True


def write(path: str | os.PathLike[str], text: str) -> None:
    """A text file, whole or not at all."""
    with whole(path) as partial, _named(path):
        partial.write_text(text, "utf-8")
