"""Calls in worker processes that know the statistics, engines and losses registered here."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

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
