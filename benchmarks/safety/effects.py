"""Effects that reading a file must not have."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class EffectMonitor:
    """Records effects that a file must not have; an audit hook cannot be removed."""

    ALWAYS = re.compile(
        r"os\.(system|exec|posix_spawn|spawn|fork|startfile|remove|rename|chmod|link|symlink)"
        r"|subprocess\.|socket\.|pty\.|ctypes\.dlopen|pickle\.|marshal\.loads|shutil\.|webbrowser"
    )

    def __init__(self, scratch: Path, usual: tuple[str, ...] = ()) -> None:
        self._seen: list[str] | None = None
        self._scratch, self._usual = str(scratch), usual
        sys.addaudithook(self._hook)

    @contextmanager
    def watch(self) -> Iterator[list[str]]:
        """Yield the list that effects are added to."""
        self._seen = seen = []
        try:
            yield seen
        finally:
            self._seen = None

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        seen = self._seen
        if seen is not None and event not in self._usual and self._is_bad(event, args):
            seen.append(f"{event} {args!r}"[:100] + f" in {_callers()}")

    def _is_bad(self, event: str, args: tuple[Any, ...]) -> bool:
        if event == "os.remove" and str(args[0]).startswith(self._scratch):
            return False
        if event == "open" and isinstance(args[0], int):  # opened before, by its name
            return False
        if event == "open":
            path, mode, flags = str(args[0]), args[1], args[2]
            writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) or "w" in str(mode)
            return writes and not path.startswith(self._scratch)
        if event == "exec":
            return not os.path.isfile(args[0].co_filename) and not _is_importing()
        if event == "compile":  # ast.literal_eval, which reads the header of an array
            return args[1] != "<unknown>" and not _is_importing()
        return event != "marshal.loads" and bool(self.ALWAYS.match(event))


def _is_importing() -> bool:
    """Whether a module is being imported; what it does comes from the installation."""
    frame = sys._getframe()
    while frame := frame.f_back:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap_external>":
            return True
    return False


def _callers() -> str:
    """The innermost files and lines, without those of the import system."""
    stack = [frame for frame in traceback.extract_stack() if "frozen" not in frame.filename]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in stack[-8:-3][::-1])
