"""Calls in worker processes that know the statistics, engines and losses registered here."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import joblib
from sklearn.utils import parallel

from fairproj.boosting import losses
from fairproj.constraints import RATES, STATISTICS
from fairproj.engines import base as engines

_REGISTRIES: tuple[dict[str, Any], ...] = (
    RATES,
    STATISTICS,
    engines._REGISTRY,
    losses._REGISTRY,
)


@dataclass(frozen=True)
class Registered:
    """The entries of all registries in a process."""

    process: int
    entries: tuple[dict[str, Any], ...]


def run_calls(work: Any, calls: Iterable[Any]) -> Iterator[Any]:
    """The results of a ``Parallel`` that returns a generator, as they come.

    Whoever stops before the end, as after an interrupt, says so; joblib's warning about the calls
    that it cancels then is left out.
    """
    found: Any = None
    try:
        with _without_signals(work):  # which arrive when it ends, when `found` is there
            found = work(calls)
        for result in found:  # noqa: UP028 - `yield from` would close `found` too early
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*You could benefit from adjusting")
            if found is not None:
                found.close()


@contextmanager
def _without_signals(work: Any) -> Iterator[None]:
    """Start processes in which neither SIGINT nor SIGHUP arrives.

    A terminal sends both to the whole group, where workers would end with a traceback. The parent
    receives them afterwards and ends its workers.
    """
    if joblib.effective_n_jobs(work.n_jobs) == 1 or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    blocked = {signal.SIGINT, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        _start_trackers()
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_trackers() -> None:
    """Start the processes that watch over resources, which may unblock SIGINT on the way."""
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    with suppress(ImportError):
        from joblib.externals.loky.backend import resource_tracker as loky_tracker

        loky_tracker.ensure_running()


def capture_registered() -> Registered:
    return Registered(os.getpid(), tuple(dict(registry) for registry in _REGISTRIES))


def restore_registered(registered: Registered) -> None:
    """Make the registries what they were at the capture, if that was in another process.

    Workers are reused, so entries that are no longer registered are removed as well.
    """
    if registered.process == os.getpid():
        return
    for registry, entries in zip(_REGISTRIES, registered.entries, strict=True):
        registry.clear()
        registry.update(entries)


def delayed(function: Callable[..., Any]) -> Callable[..., Any]:
    """scikit-learn's ``delayed``, for a function that looks up what is registered here."""
    return partial(parallel.delayed(_call), capture_registered(), function)


def _call(registered: Registered, function: Callable[..., Any], *arguments: Any) -> Any:
    restore_registered(registered)
    return function(*arguments)
