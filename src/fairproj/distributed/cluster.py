"""Tasks on the workers of a Dask cluster, watched so that a lost worker is noticed.

A worker that is killed leaves the cluster, and Dask tells. A worker that is frozen stays in it and
is only silent: it sends no more heartbeats. A worker whose memory is full sends heartbeats and
starts no task: it has paused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, TypeVar

from dask.distributed import CancelledError, Client, Future
from dask.distributed import TimeoutError as DaskTimeoutError
from dask.utils import format_bytes
from distributed.client import ClosedClientError, FutureCancelledError
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from fairproj.data.checks import listing
from fairproj.distributed.scheduler import are_holders_alive, lock_name, remove_workers
from fairproj.distributed.worker import RowsLostError, RunStoppedError
from fairproj.engines.xgboost.imports import xgboost

TICK = 0.05  # seconds between looks at the tasks
LISTEN = 1.0  # seconds between looks at the workers
RESTART = 10.0  # seconds; a nanny waits for four before it kills a worker
BUSY = 20.0  # percent of a processor; a worker that waits for another one uses less
PACKAGES = ("fairproj", "xgboost")  # of one version on the driver and on the workers

_FAULTS = (KilledWorker, CommClosedError, CancelledError, RowsLostError, RunStoppedError)
_FAILED = {"error", "cancelled"}  # statuses of tasks
_CONNECTION_LOST = "scheduler-connection-lost"  # Dask's reason for cancelling all tasks

T = TypeVar("T")


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
        self._known: dict[str, dict[str, Any]] = {}  # what the scheduler says of each worker
        self._heard: dict[str, tuple[float, float]] = {}  # the last heartbeat, and since when
        self._paused: dict[str, float] = {}  # workers that start no tasks, and since when
        self._active = self._listened = -LISTEN  # when a worker was last seen to run a task
        self._checked: set[str] = set()  # workers that have the versions of the driver

    # The scheduler

    def ask(self, question: Callable[[], T]) -> T:
        """The scheduler's answer; where there is none, a sentence."""
        try:
            return question()
        except (Exception, CancelledError) as error:
            raise self._no_scheduler(error) from error

    def _no_scheduler(self, error: BaseException) -> ClusterError:
        return ClusterError(
            f"the scheduler of the Dask cluster does not answer ({type(error).__name__}); start it "
            "again, and connect a new client"
        )

    def _listen(self) -> None:
        """Note which workers there are, when each was heard of, and which have paused.

        Only changes of the heartbeats are used, because clocks of machines differ.
        """
        client = self.client
        answer = self.ask(  # the scheduler of a closed client is None
            lambda: client.sync(
                client.scheduler.identity, n_workers=-1, callback_timeout=self.timeout
            )
        )
        now = self._listened = time.monotonic()
        before, self._heard = self._heard, {}
        paused, self._paused = self._paused, {}
        self._known = answer["workers"]
        for address, worker in self._known.items():
            beat = worker["last_seen"]
            last, since = before.get(address, (None, now))
            self._heard[address] = (beat, since if beat == last else now)
            if _is_running_tasks(worker):
                self._active = now
            elif worker["status"] == "paused":
                self._paused[address] = paused.get(address, now)

    # Workers

    def workers(self) -> list[str]:
        """The addresses of all workers that are not silent."""
        if time.monotonic() - self._listened >= LISTEN:
            self._listen()
        silent = set(self._silent())
        return [address for address in sorted(self._heard) if address not in silent]

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
        request = None
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
            if not workers and request is None:
                request = self.submit(int)  # an adaptive cluster starts workers for tasks only
            time.sleep(TICK)

    def expel(self, addresses: Iterable[str]) -> None:
        """Restart workers that do not answer, or take them out of the cluster."""
        present = [address for address in addresses if address in self._heard]
        restarted = [address for address in present if self._nanny(address)]
        if restarted:
            limit = max(RESTART, min(self.timeout, 3 * RESTART))
            with suppress(OSError, ValueError, DaskTimeoutError):  # they are taken out below
                self.client.restart_workers(restarted, timeout=limit, raise_for_error=False)
        self._listen()
        if left := [address for address in present if address in self._heard]:
            # A nanny goes on trying; it would end with a worker that is told to close.
            told = [address for address in left if not self._nanny(address)]
            self._run_on_scheduler(remove_workers(), left, told)
            self._listen()

    def _nanny(self, address: str) -> Any:
        return self._known[address].get("nanny")

    def _run_on_scheduler(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.ask(
            lambda: self.client.run_on_scheduler(function, *args, callback_timeout=self.timeout)
        )

    def check_versions(self, addresses: Iterable[str]) -> None:
        """Refuse workers with other versions of what trains."""
        new = [address for address in addresses if address not in self._checked]
        for package in PACKAGES:
            # A function of the standard library: the worker may lack the package.
            tasks = {address: self.submit(version, package, address=address) for address in new}
            self._wait_for_end(tasks, self.timeout)
            for address, task in tasks.items():
                _check_version(package, address, task)
        self._checked.update(new)

    @contextmanager
    def reserve(self, addresses: Collection[str]) -> Iterator[None]:
        """Keep other trainings off some workers.

        Two runs that each have one of two workers would wait for each other. The locks are those
        of ``xgboost.dask``, which takes them for the same reason.
        """
        name = lock_name(self.client)
        try:
            self._acquire(name, addresses)
        except KeyboardInterrupt:  # the scheduler may have given the lock
            self._release(name)
            raise
        try:
            yield
        finally:
            self._release(name)

    def _acquire(self, name: str, addresses: Collection[str]) -> None:
        start = time.monotonic()
        while not self._try_acquire(name, list(addresses)):
            if lost := self._gone(addresses):
                raise FaultError(_were_lost(lost))
            if self._are_holders_alive(addresses):
                start = time.monotonic()  # they end some time
            if time.monotonic() - start > self.timeout:
                raise ClusterError(
                    f"{listing(sorted(addresses), 3)} are kept by another training, of which "
                    f"nothing was heard for {self.timeout:g} seconds; end it, or restart these "
                    "workers"
                )

    def _try_acquire(self, name: str, addresses: list[str]) -> bool:
        client = self.client
        return self.ask(
            lambda: bool(
                client.sync(
                    client.scheduler.multi_lock_acquire,
                    locks=addresses,
                    id=name,
                    timeout=LISTEN,
                    num_locks=len(addresses),
                    callback_timeout=self.timeout + LISTEN,
                )
            )
        )

    def _are_holders_alive(self, addresses: Collection[str]) -> bool:
        with suppress(ClusterError):  # a scheduler may refuse to run functions
            return bool(self._run_on_scheduler(are_holders_alive(), list(addresses)))
        return False

    def _release(self, name: str) -> None:
        client = self.client
        with suppress(Exception, CancelledError):  # the scheduler may be gone
            release = client.scheduler.multi_lock_release
            client.sync(release, id=name, callback_timeout=self.timeout)

    # Tasks

    def submit(self, function: Any, *args: Any, address: str | None = None) -> Future:
        """Run a function on one worker and on no other, or on any."""
        where = {} if address is None else {"workers": [address], "allow_other_workers": False}
        try:
            return self.client.submit(function, *args, pure=False, retries=0, **where)
        except ClosedClientError as error:
            raise self._no_scheduler(error) from error

    def compute(self, delayed: list[Any]) -> list[Future]:
        """Start delayed computations."""
        try:
            futures: list[Future] = self.client.compute(delayed)
        except ClosedClientError as error:
            raise self._no_scheduler(error) from error
        return futures

    def cancel(self, futures: Iterable[Future]) -> None:
        """Cancel tasks and free their results; never fails."""
        with suppress(Exception, CancelledError):  # the client may be closed
            self.client.cancel(list(futures))

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
        self,
        tasks: Mapping[str, Future],
        patience: Callable[[], float] | None = None,
        started: Collection[str] = (),
    ) -> Iterator[None]:
        """Wait until all tasks have ended, each on the worker with that address.

        Yields every now and then. Raises the error of a task, or `FaultError` if a worker is lost.

        Parameters
        ----------
        tasks : mapping of str to Future
        patience : callable, optional
            For tasks that wait for each other: the seconds that the others get to end after one
            has failed, unless they compute. XGBoost may let them wait forever, so those that do
            not end are restarted.
        started : collection of str, optional
            The workers that have started their tasks so far; others have nothing to end.
        """
        while True:
            statuses = {task.status for task in tasks.values()}
            if statuses == {"finished"}:
                return
            if statuses - {"finished", "pending"} or self._gone(tasks):
                stuck = set()
                if patience is not None:
                    stuck = self._wait_for_end(tasks, patience(), started) & set(started)
                raise self._failure(tasks, stuck, self._queued(tasks, patience, started))
            self._check_paused(_pending(tasks, set()))
            yield
            time.sleep(TICK)

    def _wait_for_end(
        self,
        tasks: Mapping[str, Future],
        seconds: float,
        started: Collection[str] | None = None,
    ) -> set[str]:
        """Wait until tasks have ended; which workers are there and have not ended theirs.

        Workers that compute get until the timeout, those that only wait the seconds given.
        """
        start = time.monotonic()
        while pending := set(_pending(tasks, self._gone(tasks))):
            waits = pending if started is None else pending & set(started)
            busy = any(self._known[address]["metrics"].get("cpu", 0) > BUSY for address in waits)
            limit = max(seconds, self.timeout) if busy else seconds
            if not waits or time.monotonic() - start > limit:
                break
            time.sleep(TICK)
        return pending

    def _queued(
        self, tasks: Mapping[str, Future], patience: Any, started: Collection[str]
    ) -> set[str]:
        """Workers that never started a task for which the others waited."""
        if patience is None:
            return set()
        return set(_pending(tasks, self._gone(tasks))) - set(started)

    def _failure(
        self, tasks: Mapping[str, Future], stuck: set[str], queued: set[str]
    ) -> BaseException:
        """Why tasks have failed; takes lost and stuck workers out of the cluster."""
        found = [_error(task) for task in tasks.values() if task.status in _FAILED]
        self.cancel(tasks.values())
        lost = self._gone(tasks)
        self.expel(lost | stuck)
        for error in found:
            if not is_fault(error):
                return error
        reason = "workers lost their connection to each other"
        if lost:
            reason = _were_lost(lost)
        elif any(map(_is_connection_lost, found)):
            reason = "the driver lost its connection to the scheduler"
        elif queued:
            reason = f"{listing(sorted(queued), 3)} had other tasks to run"
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
            except (DaskTimeoutError, CancelledError):  # the worker that holds it may be silent
                self.finish([future])
                if silent := self._silent():
                    self.expel(silent)

    def finish(self, futures: list[Future]) -> None:
        """Wait until such tasks are finished."""
        while True:
            statuses = {future.status for future in futures}
            if statuses <= {"finished"}:
                return
            if statuses & _FAILED:  # Dask computes results again that are lost
                raise self._reported(futures)
            self.wait_for_workers(1)
            if silent := self._silent():
                self.expel(silent)
            self._check_progress(futures)
            time.sleep(TICK)

    def _check_progress(self, futures: list[Future]) -> None:
        """Refuse to wait for workers that have paused."""
        paused = self._long_paused()
        if not paused:
            return
        waiting = {future.key for future in futures if future.status == "pending"}
        assigned = self.ask(lambda: self.client.processing(paused))
        held = [address for address in paused if not waiting.isdisjoint(assigned.get(address, ()))]
        # What the tasks wait for may be assigned to such a worker too.
        if self._active <= self._listened - self.timeout:
            held = held or paused
        self._check_paused(held)

    def _check_paused(self, addresses: Iterable[str]) -> None:
        for address in sorted(set(addresses) & set(self._long_paused())):
            worker = self._known[address]
            used, limit = worker["metrics"].get("memory", 0), worker["memory_limit"] or 0
            raise ClusterError(
                f"the worker {address} has paused for {self.timeout:g} seconds with "
                f"{format_bytes(used)} of {format_bytes(limit)} memory in use; use more or larger "
                "workers, or smaller partitions"
            )

    def _long_paused(self) -> list[str]:
        oldest = self._listened - self.timeout
        return [address for address, since in self._paused.items() if since <= oldest]

    def _reported(self, futures: list[Future]) -> BaseException:
        """The error of a failed task, as the user gets it."""
        self._listen()  # without a scheduler all tasks are cancelled, and nothing else is wrong
        errors = [_error(future) for future in futures if future.status in _FAILED]
        self.cancel(futures)
        for error in errors:
            if not is_fault(error):
                return error
        if any(map(_is_connection_lost, errors)):
            reason = "the connection to the scheduler was lost while rows were read"
            advice = "call fit again"
        elif isinstance(errors[0], KilledWorker):
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


def _is_connection_lost(error: BaseException) -> bool:
    return getattr(error, "reason", None) == _CONNECTION_LOST


def _is_running_tasks(worker: Mapping[str, Any]) -> bool:
    counts = worker["metrics"].get("task_counts", {})
    return any(counts.get(state) for state in ("executing", "long-running"))


def _were_lost(addresses: Collection[str]) -> str:
    return f"{listing(sorted(addresses), 3)} {'was' if len(addresses) == 1 else 'were'} lost"


def _check_version(package: str, address: str, task: Future) -> None:
    """Compare a version on a worker, unless the worker was lost before it told."""
    if task.status not in ("finished", "error"):
        return
    here = _installed(package)
    with suppress(DaskTimeoutError, CancelledError):
        there = "not installed" if task.status == "error" else task.result(timeout=LISTEN)
        if there != here:
            raise ClusterError(
                f"{package} is {here} on the driver and {there} on the worker {address}; install "
                "the same version everywhere"
            )


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _error(task: Future) -> BaseException:
    """Why a task has failed."""
    error: BaseException = FutureCancelledError(task.key, f"it is {task.status}")
    if task.status == "error":
        error = task.exception()
    else:
        try:
            task.result(timeout=LISTEN)
        except CancelledError as reason:
            error = reason
        except (DaskTimeoutError, RuntimeError):
            pass  # the client is closed
    return error


def _pending(tasks: Mapping[str, Future], gone: set[str]) -> dict[str, Future]:
    return {a: task for a, task in tasks.items() if task.status == "pending" and a not in gone}
