"""A command in a fork of a process that has imported everything, so that it begins at once.

The fork tells when it opens a file that it will put in the place of another one.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from fairproj import __main__ as entry
from fairproj.cli._app import load_command

# What commands import when they need it.
LATE = (
    *("lightgbm", "xgboost", "pydantic", "msgspec.json", "matplotlib.pyplot", "jinja2", "narwhals"),
    *("narwhals._pandas_like.dataframe", "pyarrow.pandas_compat", "fairproj.io.exports"),
    *("matplotlib.backends.backend_svg", "matplotlib.backends.backend_agg"),
)
ENDING = (signal.SIGTERM, signal.SIGHUP)  # signals that a command heeds
_OPENED, _ENDED = b".", b"e"
NAMES = ("train", "predict", "report", "audit", "frontier", "alternatives", "export", "demo")


def preload() -> None:
    """Import what commands import."""
    os.environ["LOKY_MAX_CPU_COUNT"] = "1"  # worker processes would import everything again
    for name in NAMES:
        load_command(name)
    for name in LATE:
        import_module(name)


@dataclass
class Fork:
    """A command that is running.

    Attributes
    ----------
    errors : Path
        What it prints as errors.
    opened : list of float
        When it has opened files, in seconds from its start.
    ended : float or None
        When the command had ended, after which the process heeds no signal but SIGKILL, on the
        clock of `time.monotonic`.
    """

    process: int
    wire: int
    errors: Path
    begun: float = field(default_factory=time.monotonic)
    opened: list[float] = field(default_factory=list)
    ended: float | None = None
    code: int | None = None

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Wait for a condition, which is looked at when a file is opened; False if it ended."""
        end = time.monotonic() + seconds
        while not until():
            left = end - time.monotonic()
            if left <= 0:
                return True
            if select.select([self.wire], [], [], left)[0]:
                said = os.read(self.wire, 1)
                if not said:
                    self.finish()
                    return False
                if said == _OPENED:
                    self.opened.append(time.monotonic() - self.begun)
                else:
                    (self.ended,) = struct.unpack("d", os.read(self.wire, 8))
        return True

    def finish(self) -> int:
        """Wait for its end; the exit code, or minus the signal."""
        if self.code is None:
            _, status = os.waitpid(self.process, 0)
            self.code = os.waitstatus_to_exitcode(status)
            os.close(self.wire)
        return self.code


def start(
    arguments: list[str], folder: Path, errors: Path, before: Callable[[], Any] = lambda: None
) -> Fork:
    """Run a command in a folder; ``before`` is called in the fork."""
    far, near = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until the command can heed them
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        os.close(near)
        return Fork(process, far, errors)
    code, ended = 1, 0.0
    try:
        os.close(far)
        os.setsid()
        os.chdir(folder)
        _redirect(errors)
        before()
        _heed_signals()
        sys.addaudithook(lambda event, args: _tell(near, event, args))
        sys.argv = ["fairproj", *arguments]
        try:
            entry.main()
        finally:
            ended = time.monotonic()
            for number in ENDING:  # blocked in this thread, others would still take them
                signal.signal(number, signal.SIG_IGN)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        os.write(near, _ENDED + struct.pack("d", ended))
        sys.stderr.flush()
        os._exit(code)


def _heed_signals() -> None:
    """Let signals wait until the command has its handlers, also where nohup runs this process."""
    installed = entry._exit_on_signals

    def install() -> None:
        installed()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)

    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    entry._exit_on_signals = install


def _redirect(errors: Path) -> None:
    for number, path in ((1, os.devnull), (2, str(errors))):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")


def _tell(wire: int, event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and str(args[0]).endswith(".partial"):
        os.write(wire, _OPENED)
