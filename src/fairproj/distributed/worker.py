"""What runs on the workers."""

from __future__ import annotations

import pickle
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from dask.distributed import get_worker
from dask.sizeof import sizeof
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from fairproj.boosting.record import Round
from fairproj.boosting.replay import OtherRoundError, Progress, RunControl
from fairproj.data.blocks import Blocks
from fairproj.data.checks import Groups, counted
from fairproj.data.parts import Part, PartSummary, Reader, Table, describe, encode
from fairproj.data.sample import Sample
from fairproj.data.types import Array
from fairproj.data.user_warning import collect_warnings
from fairproj.distributed.checkpoint import DoneRound, read_trees
from fairproj.engines.xgboost.collective import CollectiveReduction
from fairproj.engines.xgboost.imports import xgboost
from fairproj.engines.xgboost.tree import Tree
from fairproj.estimators import FairBoostClassifier
from fairproj.estimators.base import BoostedClassifier, Prepared

TOPIC = "fairproj-rounds"
REPORT_EVERY = 0.5  # seconds


class RowsLostError(Exception):
    """The rows that a task needs are not where they were."""


class RunStoppedError(Exception):
    """The driver has cancelled the run, or has left."""


# Reading rows


@dataclass(frozen=True)
class SourceParts:
    """Some parts of a source, to be read on a worker."""

    source: Any
    numbers: tuple[int, ...]

    def __iter__(self) -> Iterator[Part]:
        yield from self.source.parts(self.numbers)


def make_part(**content: Any) -> Part:
    """A part of a Dask collection; workers that call this know its size, see below."""
    return Part(**content)


@sizeof.register(Part)  # type: ignore[untyped-decorator]
def _part_size(part: Part) -> int:
    """Dask decides by sizes where tasks run and what is written to disk."""
    return sum(map(sizeof, vars(part).values()))


def describe_parts(parts: Iterable[Part], reader: Reader) -> list[PartSummary]:
    return [describe(part, reader) for part in parts]


class Share:
    """The encoded rows of one worker.

    A task takes them out, so that they can be freed while Dask keeps the object.
    """

    def __init__(self, rows: Prepared, held_out: Sample | None) -> None:
        self._content: tuple[Prepared, Sample | None] | None = (rows, held_out)

    def take(self) -> tuple[Prepared, Sample | None]:
        if self._content is None:
            raise RowsLostError("the rows were used by an earlier attempt")
        content, self._content = self._content, None
        return content

    @property
    def counts(self) -> list[list[int]]:
        """The rows in each cell, of the training rows and of those held out."""
        rows, held_out = self._content or (None, None)
        samples = [rows.sample if rows else None, held_out]
        return [[] if each is None else each.cells.counts.tolist() for each in samples]

    def __sizeof__(self) -> int:
        rows, held_out = self._content or (None, None)
        samples = [rows.sample if rows else None, held_out]
        return sum(int(each.X.nbytes) for each in samples if each is not None)


@dataclass(frozen=True)
class Place:
    """Which parts of a table a worker gets: their numbers, and how many the table has."""

    numbers: tuple[int, ...]
    n_parts: int


def load(
    table: Table,
    place: Place,
    parts: Iterable[Part],
    watched_table: Table | None = None,
    watched_place: Place | None = None,
    watched_parts: Iterable[Part] = (),
) -> Share:
    """Read and encode the parts of one worker."""
    xgboost()  # import it now, and not while other workers wait for this one
    sample = _make_sample(table, place, parts)
    watched = None
    if watched_table is not None and watched_place is not None:
        with in_validation_rows():
            watched = _make_sample(watched_table, watched_place, watched_parts)
    rows = Prepared(
        sample, table.n_features, table.feature_names, table.sensitive_columns, table.with_groups
    )
    return Share(rows, watched)


@contextmanager
def in_validation_rows() -> Iterator[None]:
    """Say in errors about the data that they are in the rows to watch."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"in the validation rows: {error}") from None


def _make_sample(table: Table, place: Place, parts: Iterable[Part]) -> Sample:
    """Some parts of a table; memory for all of them is taken once."""
    lengths = tuple(table.lengths[number] for number in place.numbers)
    blocks = Blocks(place.numbers, lengths, place.n_parts)
    n_rows = sum(lengths)
    X = np.empty((n_rows, table.n_features), dtype=np.float32)
    y: Any = np.empty(n_rows, dtype=np.int8)
    codes = np.empty(n_rows, dtype=np.min_scalar_type(len(table.group_values)))
    weight = np.broadcast_to(1.0, n_rows)
    if table.largest_weight is not None:
        weight = np.empty(n_rows)
    for rows, part in zip(blocks.slices, parts, strict=True):
        encoded = encode(part, table)
        _check_length(part, len(encoded.y), rows.stop - rows.start)
        X[rows], y[rows], codes[rows] = encoded.matrix, encoded.y, encoded.codes
        if encoded.weight is not None:
            weight[rows] = encoded.weight
    groups = Groups(codes, table.group_values)
    return Sample(
        X, y, table.classes, weight, groups, table.positive_class, table.encoder, parts=blocks
    )


def _check_length(part: Part, n_rows: int, expected: int) -> None:
    if n_rows != expected:
        raise ValueError(
            f"{part.name} has {counted(n_rows, 'row')} with weight and had {expected} when it was "
            "read first; "
            "give the same rows each time"
        )


def count_rows(share: Share) -> list[list[int]]:
    return share.counts


# Training


class Tracker:
    """The place where the workers of a run find each other; it runs on one of them."""

    def __init__(self, n_workers: int, timeout: float) -> None:
        from xgboost.tracker import RabitTracker

        self._tracker = RabitTracker(
            n_workers=n_workers,
            host_ip=urlsplit(get_worker().address).hostname,
            sortby="task",
            timeout=int(np.ceil(timeout)),
        )
        self._tracker.start()

    def args(self) -> dict[str, Any]:
        args: dict[str, Any] = self._tracker.worker_args()
        return args

    def __del__(self) -> None:
        # It may wait for workers that left without saying so, and this may be the thread in which
        # the worker sends its heartbeats.
        with suppress(AttributeError, RuntimeError):  # it never started, or Python is ending
            threading.Thread(target=_free, args=(self._tracker,), daemon=True).start()


def _free(tracker: Any) -> None:
    with suppress(xgboost().core.XGBoostError):
        tracker.free()


def tracker_args(tracker: Tracker) -> dict[str, Any]:
    return tracker.args()


class WorkerReduction:
    """Sums over workers; after a failure every call fails alike, and nobody waits in vain."""

    def __init__(self) -> None:
        self._workers = CollectiveReduction()
        self._failure: BaseException | None = None

    def sum(self, values: Array) -> Array:
        return self._call(self._workers.sum, values)

    def max(self, values: Array) -> Array:
        return self._call(self._workers.max, values)

    def fail(self, error: BaseException) -> BaseException:
        self._failure = error
        return error

    def _call(self, combine: Any, values: Array) -> Array:
        if self._failure is not None:
            raise self._failure
        try:
            combined: Array = combine(values)
        except BaseException as error:
            raise self.fail(error) from None
        return combined


class WatchedRows(FairBoostClassifier):
    """With rows to watch that are encoded already."""

    def _validation_sample(self, training: Sample, validation: tuple[Any, ...]) -> Sample:
        sample: Sample = validation[0]
        return sample


@dataclass(frozen=True)
class Run:
    """What all workers of a run know.

    Attributes
    ----------
    name : str
        The driver recognises messages by it; each attempt has its own.
    args : dict
        Of XGBoost's communicator.
    timeout : float
        Seconds that a worker waits for the others.
    done : bytes
        The rounds that are done, as `pack` makes it.
    n_resumed : int
        How many of these come from a checkpoint that the user gave.
    report_every : int
        Most rounds between two reports to the driver.
    options : dict
        Further arguments of the model's ``_fit_prepared``.
    """

    name: str
    args: dict[str, Any]
    timeout: float
    done: bytes
    n_resumed: int
    report_every: int
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trained:
    """What the first worker returns.

    Attributes
    ----------
    attributes : dict
        The fitted attributes.
    warnings : list of str
        Warnings for the user.
    rounds : bytes
        All rounds, packed, because reports may arrive after the result.
    """

    attributes: dict[str, Any]
    warnings: list[str]
    rounds: bytes


def pack(rounds: Sequence[DoneRound]) -> bytes:
    return zlib.compress(pickle.dumps(list(rounds)), 1)


def unpack(packed: bytes) -> list[DoneRound]:
    rounds: list[DoneRound] = pickle.loads(zlib.decompress(packed))
    return rounds


def train(share: Share, model: BoostedClassifier, rank: int, run: Run) -> Trained | None:
    """Fit a model together with the other workers."""
    get_worker().log_event(TOPIC, {"run": run.name, "started": get_worker().address})
    if model.n_jobs is None:
        model.n_jobs = int(get_worker().state.nthreads)
    reduction = WorkerReduction()
    reporter = Reporter(run, reduction, reports=rank == 0)
    with (
        # Dask sets OMP_NUM_THREADS=1, and XGBoost would not use more threads than that.
        threadpool_limits(effective_n_jobs(model.n_jobs), user_api="openmp"),
        collect_warnings() as messages,
        _communicator(rank, run),
        _other_rounds_explained(run),
    ):
        _fit(model, share, reduction, reporter, run)
    if rank > 0:
        return None
    return Trained(_fitted_attributes(model), messages, pack(reporter.rounds))


@contextmanager
def _communicator(rank: int, run: Run) -> Iterator[None]:
    """Join the other workers, and leave them whether or not they are still there."""
    collective = xgboost().collective
    collective.init(
        dmlc_task_id=f"{rank:08d}",
        dmlc_timeout=int(np.ceil(run.timeout)),
        dmlc_retry=1,  # with more, leaving takes seconds where the tracker is lost
        **run.args,
    )
    try:
        yield
    finally:
        with suppress(xgboost().core.XGBoostError):
            collective.finalize()


@contextmanager
def _other_rounds_explained(run: Run) -> Iterator[None]:
    """Say why the rounds that are done come out otherwise when they are repeated."""
    try:
        yield
    except OtherRoundError as error:
        if error.number < run.n_resumed:
            raise ValueError(
                f"the checkpoint does not belong to these rows and parameters: {error}; train from "
                "the start, without resume_from"
            ) from None
        raise ValueError(
            "the rows are not the same as before, after a worker was lost and they were computed "
            f"again: {error}; read them from files, or give the random numbers in them a seed"
        ) from None


def _fit(
    model: BoostedClassifier,
    share: Share,
    reduction: WorkerReduction,
    reporter: Reporter,
    run: Run,
) -> None:
    rows, held_out = share.take()
    rows = replace(rows, sample=replace(rows.sample, reduction=reduction, cache={}))
    model._control = RunControl(_progress(unpack(run.done), rows, model), reporter)
    if held_out is None:
        content = [rows]
        del rows  # the model frees the features when it has binned them
        model._fit_prepared(content.pop(), **run.options)
        return
    held_out = replace(held_out, reduction=reduction, cache={})
    validation = (held_out, held_out.y, held_out.groups if rows.with_groups else None, None)
    model._fit_prepared(rows, validation, **run.options)


def _progress(done: list[DoneRound], rows: Prepared, model: BoostedClassifier) -> Progress | None:
    if not done:
        return None
    trees = read_trees(
        done, rows.n_features, n_categories(rows.sample.encoder), model._learner_votes()
    )
    return Progress(trees, [one.vote for one in done], [one.log_loss for one in done])


def n_categories(encoder: Any) -> dict[int, int]:
    return {column: len(values) for column, values in encoder.categories.items()}


def _fitted_attributes(model: BoostedClassifier) -> dict[str, Any]:
    left_out = {*model.get_params(deep=False), "_control"}
    return {name: value for name, value in vars(model).items() if name not in left_out}


class Reporter:
    """Called after each round: stops a cancelled run, and reports rounds to the driver."""

    def __init__(self, run: Run, reduction: WorkerReduction, *, reports: bool) -> None:
        self._run, self._reduction, self._reports = run, reduction, reports
        self._worker = get_worker()
        self._task = self._worker.get_current_task()
        self.rounds = unpack(run.done)
        self._n_done = self._n_sent = len(self.rounds)
        self._seen = 0
        self._sent = time.monotonic()

    def __call__(self, tree: Tree, record: Round) -> None:
        self._stop_if_cancelled()
        self._seen += 1
        if not self._reports:
            return
        if self._seen > self._n_done:  # otherwise the driver knows it
            self.rounds.append(DoneRound.of(tree, record.vote, record.log_loss))
        late = time.monotonic() - self._sent > REPORT_EVERY
        if late or len(self.rounds) - self._n_sent >= self._run.report_every:
            self._send()

    def _send(self) -> None:
        now = time.monotonic()
        message = {
            "run": self._run.name,
            "first": self._n_sent,
            "rounds": pack(self.rounds[self._n_sent :]),
            "seconds": now - self._sent,
        }
        self._worker.log_event(TOPIC, message)
        self._n_sent, self._sent = len(self.rounds), now

    def _stop_if_cancelled(self) -> None:
        """All workers stop after the same round; nobody is left waiting for another one."""
        task = self._worker.state.tasks.get(self._task)
        cancelled = task is None or task.state == "cancelled"
        if self._reduction.max(np.array([float(cancelled)]))[0]:
            raise self._reduction.fail(RunStoppedError("the driver has cancelled the run"))
