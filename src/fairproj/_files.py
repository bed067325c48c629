"""Files that are there whole or not at all."""

from __future__ import annotations

import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Where to write: a file beside ``path`` that takes its place once all is written.

    Whatever happens before, an older file stays as it is.
    """
    target = Path(path)
    _clear_away(target)
    partial = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    try:
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


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
    with whole(path) as partial:
        partial.write_text(text, "utf-8")
