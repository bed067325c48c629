"""Calls in worker processes that know the statistics, engines and losses registered here."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
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


def start(work: Any, calls: Iterable[Any]) -> Any:
    """The results of ``Parallel``, in whose processes neither SIGINT nor SIGHUP arrives.

    A terminal sends both to the whole group, where workers would end with a traceback. The parent
    receives them as before and ends its workers.
    """
    if joblib.effective_n_jobs(work.n_jobs) == 1 or not hasattr(signal, "pthread_sigmask"):
        return work(calls)
    blocked = {signal.SIGINT, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        _start_trackers()
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        return work(calls)
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
