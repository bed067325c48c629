"""Functions that run on the scheduler.

Each is made inside another function: Dask then sends its code, and the scheduler need not have
fairproj.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any


def lock_name(client: Any) -> str:
    """A name under which a client holds locks; the scheduler can tell whether it has left."""
    return f"fairproj/{client.id}/{secrets.token_hex(8)}"


def are_holders_alive() -> Callable[..., bool]:
    def are_holders_alive(addresses: list[str], dask_scheduler: Any = None) -> bool:
        """Whether all who hold locks of workers are drivers of fairproj that are alive.

        Frees the locks of those that have left: no driver that is killed does that itself.
        """
        import time

        locks, clients = dask_scheduler.extensions["multi_locks"], dask_scheduler.clients
        holders = {user for address in addresses for user in locks.locks.get(address, [])[:1]}
        alive = True
        for holder in holders:
            client = holder.split("/")[1] if holder.startswith("fairproj/") else None
            if client is not None and client not in clients:
                locks.release(id=holder)
            elif client is None or time.time() - clients[client].last_seen > 60:
                alive = False
        return alive

    return are_holders_alive


def remove_workers() -> Callable[..., Awaitable[None]]:
    async def remove_workers(
        addresses: list[str], told: list[str], dask_scheduler: Any = None
    ) -> None:
        """Take workers out of the cluster, and tell some of them to close."""
        for address in addresses:
            close = address in told
            await dask_scheduler.remove_worker(address, stimulus_id="fairproj", close=close)

    return remove_workers
