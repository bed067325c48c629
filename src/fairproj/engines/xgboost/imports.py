"""The XGBoost library, which is imported here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

T = TypeVar("T")


def xgboost() -> Any:
    """The module; without it, a sentence that says what to install."""
    try:
        import xgboost
    except ImportError:
        raise ImportError(
            "engine='xgboost' needs xgboost; install it with pip install 'fairproj[xgboost]'"
        ) from None
    return xgboost


def quietly(function: Callable[[], T]) -> T:
    """Call a function without XGBoost's messages, such as that a worker holds no rows."""
    with xgboost().config_context(verbosity=0):
        return function()


def locally(function: Callable[[], T], n_threads: int) -> T:
    """Call a function such that XGBoost exchanges nothing with other workers.

    XGBoost's communicator belongs to the thread that opened it. So does the limit of OpenMP's
    threads, which is that of ``OMP_NUM_THREADS`` in a new thread; Dask sets it to 1.
    """
    if not xgboost().collective.is_distributed():
        return quietly(function)

    def limited() -> T:
        with threadpool_limits(n_threads, user_api="openmp"):
            return quietly(function)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(limited).result()
