"""Workers that hold some rows each, as threads of one process."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np


class ThreadReduction:
    """Combines the arrays of threads that wait for one another."""

    def __init__(self, barrier, parts, rank):
        self._barrier, self._parts, self._rank = barrier, parts, rank

    def sum(self, values):
        return self._combine(values, np.sum)

    def max(self, values):
        return self._combine(values, np.max)

    def _combine(self, values, how):
        self._parts[self._rank] = np.array(values)
        self._barrier.wait()
        combined = how(np.stack(self._parts), axis=0)
        self._barrier.wait()  # nobody writes before all have read
        return combined


def in_workers(work, shares):
    """``work(share, reduction)`` for every share at the same time, each in a thread."""
    barrier = threading.Barrier(len(shares), timeout=20)
    parts = [None] * len(shares)

    def worker(rank):
        try:
            return work(shares[rank], ThreadReduction(barrier, parts, rank))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(len(shares)) as pool:
        return list(pool.map(worker, range(len(shares))))
