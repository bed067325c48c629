"""Tasks on the workers of a Dask cluster, watched so that a lost worker is noticed.

A worker that is killed leaves the cluster, and Dask tells. A worker that is frozen stays in it and
is only silent: it sends no more heartbeats.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from dask.distributed import CancelledError, Client, Future, wait
from dask.distributed import TimeoutError as DaskTimeoutError
from distributed.client import FutureCancelledError
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from fairproj.data.checks import listing
from fairproj.distributed.worker import RowsLostError
from fairproj.engines.xgboost.imports import xgboost

TICK = 0.1  # seconds between looks at the tasks
LISTEN = 1.0  # seconds between looks at the workers
RESTART = 10.0  # seconds; a nanny waits for four before it kills a worker

_FAULTS = (KilledWorker, CommClosedError, CancelledError, DaskTimeoutError, RowsLostError)


class ClusterError(RuntimeError):
    """Training ended because of the cluster; the message says why and how to go on."""


class FaultError(Exception):
    """A worker was lost, or workers could not reach each other; trying again may help."""


class Cluster:
    """The workers of a client.

    Parameters
    ----------
    client : Client
    timeout : float
        Seconds of silence after which a worker counts as lost.

    Attributes
    ----------
    grace : float
        Seconds that a restarted worker is waited for.
    """

    grace: ClassVar[float] = 10.0

    def __init__(self, client: Client, timeout: float) -> None:
        self.client = client
        self.timeout = timeout
        self._heard: dict[str, tuple[float, float]] = {}  # the last heartbeat, and since when
        self._nannies: dict[str, Any] = {}
        self._listened = -LISTEN

    # Workers

    def workers(self) -> list[str]:
        """The addresses of all workers that are not silent."""
        if time.monotonic() - self._listened >= LISTEN:
            self._listen()
        silent = set(self._silent())
        return [address for address in sorted(self._heard) if address not in silent]

    def _listen(self) -> None:
        """Note which workers there are, and when each was heard of.

        Only changes of the heartbeats are used, because clocks of machines differ.
        """
        found = self._ask_scheduler()
        now = self._listened = time.monotonic()
        before, self._heard = self._heard, {}
        for address, worker in found.items():
            beat = worker["last_seen"]
            last, since = before.get(address, (None, now))
            self._heard[address] = (beat, since if beat == last else now)
            self._nannies[address] = worker.get("nanny")

    def _ask_scheduler(self) -> dict[str, dict[str, Any]]:
        ask = self.client.scheduler.identity
        try:
            answer = self.client.sync(ask, n_workers=-1, callback_timeout=self.timeout)
        except (OSError, RuntimeError, DaskTimeoutError) as error:
            raise ClusterError(
                f"the scheduler of the Dask cluster does not answer ({type(error).__name__}); "
                "start it again, and connect a new client"
            ) from error
        workers: dict[str, dict[str, Any]] = answer["workers"]
        return workers

    def _silent(self) -> list[str]:
        oldest = self._listened - self.timeout
        return [address for address, (_, since) in self._heard.items() if since <= oldest]

    def _gone(self, addresses: Collection[str]) -> set[str]:
        """Which of some workers have left or are silent."""
        return set(addresses) - set(self.workers())

    def wait_for_workers(self, wanted: int) -> list[str]:
        """The workers, as soon as there are as many as wanted or a while has passed.

        Where there is none at all, one is waited for until the timeout.
        """
        start = time.monotonic()
        while True:
            workers = self.workers()
            waited = time.monotonic() - start
            if len(workers) >= wanted or (workers and waited > min(self.grace, self.timeout)):
                return workers
            if waited > self.timeout:
                raise ClusterError(
                    f"the cluster has had no worker that answers for {self.timeout:g} seconds; "
                    "start workers, or raise timeout"
                )
            time.sleep(TICK)

    def expel(self, addresses: Iterable[str]) -> None:
        """Restart workers that do not answer, or take them out of the cluster."""
        present = [address for address in addresses if address in self._heard]
        restarted = [address for address in present if self._nannies.get(address)]
        if restarted:
            limit = max(RESTART, min(self.timeout, 3 * RESTART))
            with suppress(OSError, ValueError, DaskTimeoutError):  # they are taken out below
                self.client.restart_workers(restarted, timeout=limit, raise_for_error=False)
        self._listen()
        if left := [address for address in present if address in self._heard]:
            # A nanny goes on trying; it would end with a worker that is told to close.
            told = [address for address in left if not self._nannies.get(address)]
            self.client.run_on_scheduler(_remove_workers, left, told)
            self._listen()

    # Tasks

    def submit(self, address: str, function: Any, *args: Any, **kwargs: Any) -> Future:
        """Run a function on one worker and on no other."""
        return self.client.submit(
            function,
            *args,
            **kwargs,
            workers=[address],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )

    def results(self, tasks: Mapping[str, Future]) -> dict[str, Any]:
        """The results of tasks, each on the worker with that address."""
        for _ in self.watch(tasks):
            pass
        return {address: self.result(task) for address, task in tasks.items()}

    def result(self, task: Future) -> Any:
        """What a finished task returned; its worker may be lost before that is fetched."""
        try:
            return task.result(timeout=self.timeout)
        except (DaskTimeoutError, CancelledError) as error:
            raise FaultError("the worker that held a result was lost") from error

    def watch(
        self, tasks: Mapping[str, Future], patience: Callable[[], float] | None = None
    ) -> Iterator[None]:
        """Wait until all tasks have ended, each on the worker with that address.

        Yields every now and then. Raises the error of a task, or `FaultError` if a worker is lost.

        Parameters
        ----------
        tasks : mapping of str to Future
        patience : callable, optional
            For tasks that wait for each other: the seconds that the others get to end after one
            has failed. XGBoost may let them wait forever, so those that do not end are restarted.
        """
        while True:
            statuses = {task.status for task in tasks.values()}
            if statuses == {"finished"}:
                return
            if statuses - {"finished", "pending"} or self._gone(tasks):
                stuck = set() if patience is None else self._wait_for_end(tasks, patience())
                raise self._failure(tasks, stuck)
            yield
            _pause(tasks.values())

    def _wait_for_end(self, tasks: Mapping[str, Future], seconds: float) -> set[str]:
        """Wait until tasks have ended; which workers are there and have not ended theirs."""
        end = time.monotonic() + seconds
        while pending := _pending(tasks, self._gone(tasks)):
            if time.monotonic() > end:
                break
            _pause(pending.values())
        return set(pending)

    def _failure(self, tasks: Mapping[str, Future], stuck: set[str]) -> BaseException:
        """Why tasks have failed; takes lost and stuck workers out of the cluster."""
        errors = [_error(task) for task in tasks.values() if task.status != "pending"]
        found = [error for error in errors if error is not None]
        self.client.cancel(list(tasks.values()))
        lost = self._gone(tasks)
        self.expel(lost | stuck)
        for error in found:
            if not is_fault(error):
                return error
        reason = "workers lost their connection to each other"
        if lost:
            reason = f"{listing(sorted(lost), 3)} {'was' if len(lost) == 1 else 'were'} lost"
        fault = FaultError(reason)
        fault.__cause__ = next(iter(found), None)
        return fault

    def gather(self, futures: list[Future]) -> list[Any]:
        """The results of tasks that may run on any worker; Dask repeats those of lost workers."""
        self.finish(futures)
        return [self._fetch(future) for future in futures]

    def _fetch(self, future: Future) -> Any:
        while True:
            try:
                return future.result(timeout=LISTEN)
            except DaskTimeoutError:  # the worker that holds it may be silent
                self.finish([future])
                if silent := self._silent():
                    self.expel(silent)

    def finish(self, futures: list[Future]) -> None:
        """Wait until such tasks are finished."""
        while True:
            statuses = {future.status for future in futures}
            if statuses <= {"finished"}:
                return
            if statuses - {"finished", "pending"}:
                raise self._reported(futures)
            self.wait_for_workers(1)
            if silent := self._silent():
                self.expel(silent)
            _pause(futures)

    def _reported(self, futures: list[Future]) -> BaseException:
        """The error of a failed task, as the user gets it."""
        errors = [error for future in futures if (error := _error(future)) is not None]
        self.client.cancel(futures)
        for error in errors:
            if not is_fault(error):
                return error
        if isinstance(errors[0], KilledWorker):
            reason = f"reading the rows ended several workers, the last one {errors[0].last_worker}"
            advice = "use more or larger workers, or smaller partitions"
        else:
            reason = "rows of a worker that was lost cannot be computed again"
            advice = "load the data anew, and call fit again"
        cluster_error = ClusterError(f"{reason}; {advice}")
        cluster_error.__cause__ = errors[0]
        return cluster_error


def is_fault(error: BaseException) -> bool:
    """Whether an error is one of the cluster, not of the data or the parameters."""
    if isinstance(error, xgboost().core.XGBoostError):
        return "collective" in str(error)  # where XGBoost's communicator is
    return isinstance(error, _FAULTS)


def _error(task: Future) -> BaseException | None:
    if task.status == "finished":
        return None
    error: BaseException = FutureCancelledError(task.key, f"it is {task.status}")
    if task.status == "error":
        error = task.exception()
    return error


def _pending(tasks: Mapping[str, Future], gone: set[str]) -> dict[str, Future]:
    return {a: task for a, task in tasks.items() if task.status == "pending" and a not in gone}


def _pause(futures: Iterable[Future]) -> None:
    """Wait for one of the pending tasks, but not for long."""
    pending = [future for future in futures if future.status == "pending"]
    with suppress(DaskTimeoutError, CancelledError):
        wait(pending, timeout=TICK, return_when="FIRST_COMPLETED")


async def _remove_workers(
    addresses: list[str], told: list[str], dask_scheduler: Any = None
) -> None:
    for address in addresses:
        close = address in told
        await dask_scheduler.remove_worker(address, stimulus_id="fairproj", close=close)
