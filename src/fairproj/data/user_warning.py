"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_PACKAGE = Path(__file__).parents[1].name
_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


class UserNote(UserWarning):
    """Something to know that calls for no action; the commands print it as a note."""


def warn_user(message: str, category: type[UserWarning] = UserWarning) -> None:
    """Issue a `UserWarning` at the first frame outside fairproj and scikit-learn.

    scikit-learn wraps ``fit``, so a fixed stack level cannot be right for every caller.
    """
    collected = _collected.get()
    if collected is not None:
        collected.append(message)
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_internal(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the messages of this thread, which has no user, so that they can be issued later."""
    messages: list[str] = []
    token = _collected.set(messages)
    try:
        yield messages
    finally:
        _collected.reset(token)


def _is_internal(module: str) -> bool:
    return module.partition(".")[0] in (_PACKAGE, "sklearn", "joblib", "contextlib")
