"""Reading ahead: the next item is made in a thread while the last one is worked on."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items in the same order; an error of theirs is raised where it is their turn."""
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
        # The last reference may go in the pool's own thread, which cannot wait for itself.
        pool.shutdown(wait=threading.current_thread() not in workers)
