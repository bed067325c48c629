"""``python -m fairproj`` and the ``fairproj`` command."""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> None:
    # Threads of OpenMP that wait for one another keep a core busy by default. Beside other
    # processes, those that have work then wait for those that have none, and training crawls.
    # Read when a library that uses OpenMP is loaded, which is not before a command runs.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Imports create some 300,000 objects that stay: collections in between find nothing and take
    # time.
    gc.set_threshold(400_000)
    _exit_on_signals()
    try:
        from fairproj.cli import app

        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pyarrow"):
            raise
        sys.exit(
            f"the command line needs {error.name}; install it with pip install 'fairproj[cli]'"
        )
    except BaseException as end:
        if not _received or (isinstance(end, SystemExit) and not end.code):
            raise
        # Whatever went wrong on the way out, as in a pool of workers that was about to start.
        _ignore_signals()
        if processes := sys.modules.get("multiprocessing"):
            for worker in processes.active_children():
                worker.terminate()
        sys.exit(128 + _received[0])
    finally:
        _stop_timer()
        if files := sys.modules.get("fairproj.io.atomic"):
            files.remove_partial_files()
        # Nor need the collection at the exit look at them: the system takes the memory back anyway.
        gc.freeze()


# Windows has no SIGHUP.
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_received: list[int] = []


def _exit_on_signals() -> None:
    """Leave as after an error where the system ends the process: files and workers are removed."""
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, _exit)


def _ignore_signals() -> None:
    """Let no other signal interrupt the clean-up."""
    _stop_timer()
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _exit(number: int, _: FrameType | None) -> NoReturn:
    _received.append(number)
    if _TIMER:
        signal.signal(signal.SIGALRM, _exit_again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS, _AGAIN_SECONDS)
    sys.exit(128 + number)


_TIMER = hasattr(signal, "setitimer")  # Windows has none
_AGAIN_SECONDS = 0.2


def _exit_again(_number: int, _: FrameType | None) -> None:
    """Leave if the first exception went no further, as from a callback that C code makes."""
    handled = sys.exc_info()[1]
    while handled is not None:
        if isinstance(handled, SystemExit):
            return  # it is on its way, and clean-up must not be interrupted
        handled = handled.__context__
    sys.exit(128 + _received[0])


def _stop_timer() -> None:
    if _TIMER:
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()
