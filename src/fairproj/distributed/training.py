"""A run on a cluster, seen from the driver: rows are placed, workers train, faults are repaired."""

from __future__ import annotations

import queue
import secrets
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from dask.distributed import Client, Future
from distributed.client import ClosedClientError

from fairproj.boosting.moments import find_blocks
from fairproj.constraints import Constraint, find_constraint
from fairproj.data.cells import Cells
from fairproj.data.checks import counted
from fairproj.data.parts import Reader, Table, merge
from fairproj.data.sample import check_watched
from fairproj.distributed.checkpoint import (
    Checkpoint,
    CheckpointError,
    DoneRound,
    check_facts,
    describe_values,
    read_trees,
)
from fairproj.distributed.cluster import Cluster, ClusterError, FaultError
from fairproj.distributed.inputs import Rows
from fairproj.distributed.worker import (
    TOPIC,
    Place,
    Run,
    Tracker,
    Trained,
    count_rows,
    in_validation_rows,
    load,
    n_categories,
    pack,
    tracker_args,
    train,
    unpack,
)
from fairproj.estimators.base import BoostedClassifier

PATIENCE = 5.0  # seconds


@dataclass(frozen=True)
class PlacedTable:
    """Rows in parts, and what the parts agree on."""

    rows: Rows
    table: Table

    def place(self, cluster: Cluster) -> dict[str, list[int]]:
        return self.rows.place(cluster, self.table.lengths)

    def arguments(self, numbers: list[int]) -> tuple[Table, Place, Any]:
        """What a worker needs to load some parts."""
        place = Place(tuple(numbers), self.rows.n_parts)
        return self.table, place, self.rows.parts(numbers)


def read_table(
    cluster: Cluster, model: BoostedClassifier, rows: Rows, watched: Rows | None
) -> list[PlacedTable]:
    """Check all rows, those to watch too if there are any."""
    reader = Reader.of(model)
    table = merge(rows.describe(cluster, reader), reader)
    if watched is None:
        return [PlacedTable(rows, table)]
    with in_validation_rows():
        found = merge(watched.describe(cluster, reader), reader)
    check_watched(found.group_values, found.classes, table.group_values, table.classes)
    found = replace(table, lengths=found.lengths, largest_weight=found.largest_weight)
    return [PlacedTable(rows, table), PlacedTable(watched, found)]


def _move(places: dict[str, list[int]], workers: list[str]) -> dict[str, list[int]]:
    """The same parts on some workers only; those that hold their parts already keep them."""
    moved: dict[str, list[int]] = {}
    for position, (address, numbers) in enumerate(sorted(places.items())):
        target = address if address in workers else workers[position % len(workers)]
        moved[target] = sorted([*moved.get(target, []), *numbers])
    return moved


class ClusterRun:
    """The rounds of a model that is trained on a cluster.

    Parameters
    ----------
    cluster : Cluster
    model : BoostedClassifier
        With the parameters of the run; each worker fits a copy of it.
    tables : list of PlacedTable
        The training rows, and the rows to watch if these are given.
    checkpoint : Checkpoint
        Of rounds that are done already; its facts are those of the parameters.
    resume_from : path, optional
        Where this checkpoint was read from.
    retries : int
        How often to try again after a fault.
    report_every : int
        Most rounds between two reports of the workers.
    options : dict
        Further arguments of the model's ``_fit_prepared``.
    """

    def __init__(
        self,
        cluster: Cluster,
        model: BoostedClassifier,
        tables: list[PlacedTable],
        checkpoint: Checkpoint,
        *,
        resume_from: Any,
        retries: int,
        report_every: int,
        options: dict[str, Any],
    ) -> None:
        self._cluster, self._model, self._tables = cluster, model, tables
        self._options = options
        self._resume_from, self._retries, self._report_every = resume_from, retries, report_every
        self._n_resumed = len(checkpoint.rounds)
        self._messages = Messages(cluster.client)
        self._futures: list[Future] = []  # of an attempt
        self._n_workers = 1
        self.checkpoint = checkpoint

    def rounds(self) -> Generator[DoneRound, None, Trained]:
        """All rounds, those that are done already first."""
        yield from list(self.checkpoint.rounds)
        self._check_trees()
        with self._messages:
            for attempt in range(self._retries + 1):
                if attempt:
                    self._cluster.wait_for_workers(self._n_workers)
                try:
                    return (yield from self._attempt())
                except FaultError as fault:
                    last = fault.with_traceback(None)  # its frames hold futures
                yield from self.received()
        raise ClusterError(
            f"training failed {counted(self._retries + 1, 'time')}, the last time because {last}, "
            "after "
            f"{counted(len(self.checkpoint.rounds), 'round')}; look at the workers' logs, or raise "
            "timeout "
            f"({self._cluster.timeout:g} seconds) or retries ({self._retries})"
        ) from last

    def received(self) -> Iterator[DoneRound]:
        """The rounds that the workers have reported since the last call."""
        for first, rounds in self._messages:
            yield from self._append(first, rounds)

    def _append(self, first: int, rounds: list[DoneRound]) -> Iterator[DoneRound]:
        """Those of the rounds, which follow the first ``first``, that are new."""
        done = self.checkpoint.rounds
        for one in rounds[max(0, len(done) - first) :] if first <= len(done) else []:
            done.append(one)
            yield one

    def _check_trees(self) -> None:
        table = self._tables[0].table
        categories = n_categories(table.encoder)
        votes = self._model._learner_votes()
        try:
            read_trees(self.checkpoint.rounds, table.n_features, categories, votes)
        except ValueError as error:
            raise CheckpointError(
                f"{self._resume_from} is not a valid checkpoint: {error}"
            ) from None

    def _attempt(self) -> Generator[DoneRound, None, Trained]:
        try:
            shares = self._load()
            self._n_workers = len(shares)
            with self._cluster.reserve(list(shares)):
                return (yield from self._train(shares))
        finally:
            self._cluster.cancel(self._futures)
            self._futures = []

    def _train(self, shares: dict[str, Future]) -> Generator[DoneRound, None, Trained]:
        workers = list(shares)
        run = self._meet(workers)
        tasks = {
            address: self._on(address, train, shares[address], self._model, rank, run)
            for rank, address in enumerate(workers)
        }
        try:
            for _ in self._cluster.watch(tasks, self._patience, self._messages.started):
                yield from self.received()
            trained: Trained = self._cluster.result(tasks[workers[0]])
            yield from self._append(0, unpack(trained.rounds))
            return trained
        finally:  # workers stop after the round that they are in
            self._cluster.cancel(tasks.values())

    def _meet(self, workers: list[str]) -> Run:
        """Let one of the workers tell the others where they find each other."""
        first, timeout = workers[0], self._cluster.timeout
        tracker = self._on(first, Tracker, len(workers), timeout)
        args = self._cluster.results({first: self._on(first, tracker_args, tracker)})
        return Run(
            name=self._messages.start_attempt(),
            args=args[first],
            timeout=timeout,
            done=pack(self.checkpoint.rounds),
            n_resumed=self._n_resumed,
            report_every=self._report_every,
            options=self._options,
        )

    def _patience(self) -> float:
        """How long a worker may take to notice that another one is lost: some rounds."""
        slowest = self._messages.slowest or 4 * PATIENCE
        return min(self._cluster.timeout, max(PATIENCE, 3 * slowest))

    def _on(self, address: str, function: Any, *args: Any) -> Future:
        future = self._cluster.submit(function, *args, address=address)
        self._futures.append(future)
        return future

    def _load(self) -> dict[str, Future]:
        """The rows of each worker, encoded."""
        placed = [each.place(self._cluster) for each in self._tables]
        workers = sorted(placed[0])
        self._cluster.check_versions(workers)
        placed[1:] = [_move(places, workers) for places in placed[1:]]
        shares, counts = {}, {}
        for address in workers:
            arguments: list[Any] = []
            for each, places in zip(self._tables, placed, strict=True):
                arguments.extend(each.arguments(places.get(address, [])))
            shares[address] = self._on(address, load, *arguments)
            counts[address] = self._on(address, count_rows, shares[address])
        self._take_facts(list(self._cluster.results(counts).values()))
        for each in self._tables:
            each.rows.release()
        return shares

    def _take_facts(self, counts: list[list[list[int]]]) -> None:
        """Describe the rows, or check that they are those of the checkpoint."""
        table = self._tables[0].table
        names = ("rows of each group and label", "validation rows of each group and label")
        totals = [
            [sum(cell) for cell in zip(*filter(None, kind), strict=True)]
            for kind in zip(*counts, strict=True)
        ]
        facts = {
            "constraints": describe_constraints(self._model.constraints, table),
            "labels": describe_values(table.classes.tolist()),
            "groups": describe_values(table.group_values),
            "columns": describe_values(table.header.columns),
            **{name: describe_values(total) for name, total in zip(names, totals, strict=True)},
        }
        if self.checkpoint.rounds and self._resume_from is not None:
            check_facts(self.checkpoint.facts, facts, self._resume_from)
        self.checkpoint = replace(self.checkpoint, facts={**self.checkpoint.facts, **facts})


def describe_constraints(constraints: Any, table: Table) -> str:
    """What is constrained, in words that another process finds for the same constraint.

    The objects may be of any class, and their texts may hold addresses in memory.
    """
    constraint = find_constraint(constraints)
    if not isinstance(constraint, Constraint):
        return repr(constraint)
    cells = Cells(
        np.empty(0, dtype=np.intp),
        table.group_values,
        [str(value) for value in table.group_values],
        table.classes,
        table.positive_class,
    )
    facts: list[Any] = []
    with suppress(ValueError):  # an own one may name no rates
        facts.extend(constraint.requirements())
    with suppress(ValueError):  # a ratio has no features
        blocks = find_blocks(constraint, cells)
        if blocks is not None:
            return describe_values([*facts, *blocks.names, blocks.block.tolist()])
        facts.extend(constraint.names(cells))
        facts.extend(row.tolist() for row in constraint.features(cells))
    return describe_values(facts)


class Messages:
    """Reports of the workers about their rounds.

    All runs share a topic, because the scheduler keeps the last events of each topic forever.

    Attributes
    ----------
    started : set of str
        The workers that have started to train in this attempt.
    slowest : float or None
        The most seconds between two reports of this attempt.
    """

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _open: ClassVar[dict[str, Messages]] = {}  # by the name of the attempt
    _users: ClassVar[Counter[str]] = Counter()  # how many runs each client has

    def __init__(self, client: Client) -> None:
        self._client = client
        self._run, self._attempt = secrets.token_hex(8), 0
        self._reset()

    def _reset(self) -> None:
        self._queue: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.started: set[str] = set()
        self.slowest: float | None = None

    @property
    def _name(self) -> str:
        return f"{self._run}-{self._attempt}"

    def __enter__(self) -> Messages:
        with self._lock:
            self._users[self._client.id] += 1
        return self

    def start_attempt(self) -> str:
        """The name of a new attempt; what is reported under earlier names is dropped."""
        with self._lock:
            self._open.pop(self._name, None)
            self._attempt += 1
            self._reset()
            self._open[self._name] = self
            with suppress(ClosedClientError):
                # Once again, because a scheduler forgets the subscriptions of a lost connection.
                self._client.subscribe_topic(TOPIC, self._deliver)
            return self._name

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._open.pop(self._name, None)
            self._users[self._client.id] -= 1
            if not self._users[self._client.id]:
                del self._users[self._client.id]
                with suppress(ClosedClientError, ValueError):  # or it never subscribed
                    self._client.unsubscribe_topic(TOPIC)

    @classmethod
    def _deliver(cls, event: tuple[float, dict[str, Any]]) -> None:
        message = event[1]
        messages = cls._open.get(message["run"])
        if messages is None:
            return
        if "started" in message:
            messages.started.add(message["started"])
        else:
            messages._queue.put(message)

    def __iter__(self) -> Iterator[tuple[int, list[DoneRound]]]:
        while not self._queue.empty():
            message = self._queue.get()
            self.slowest = max(self.slowest or 0.0, message["seconds"])
            yield message["first"], unpack(message["rounds"])
