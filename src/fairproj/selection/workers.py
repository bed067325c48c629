"""Calls in worker processes that know the statistics, engines and losses registered here."""

from __future__ import annotations

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
_THIS_PROCESS = object()  # its copy in another process is another object


@dataclass(frozen=True)
class Registered:
    """The entries of all registries in a process."""

    process: object
    entries: tuple[dict[str, Any], ...]


def capture_registered() -> Registered:
    return Registered(_THIS_PROCESS, tuple(dict(registry) for registry in _REGISTRIES))


def restore_registered(registered: Registered) -> None:
    """Make the registries what they were at the capture, if that was in another process.

    Workers are reused, so entries that are no longer registered are removed as well.
    """
    if registered.process is _THIS_PROCESS:
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
