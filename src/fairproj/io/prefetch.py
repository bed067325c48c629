"""Making the next item of an iterable in a thread while the current one is in use."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")


def prefetch(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the same items in the same order; an error is raised where its item would come."""
    source: Iterator[Any] = iter(items)
    end: Any = object()
    workers: list[threading.Thread] = []
    pool = ThreadPoolExecutor(1, initializer=lambda: workers.append(threading.current_thread()))
    try:
        upcoming = pool.submit(next, source, end)
        while (item := upcoming.result()) is not end:
            upcoming = pool.submit(next, source, end)
            yield item
    finally:
        # This may run in the pool's own thread, which cannot wait for itself, if that thread drops
        # the last reference to this generator.
        pool.shutdown(wait=threading.current_thread() not in workers)
