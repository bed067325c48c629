"""The rows to train on, in parts: partitions of Dask collections, or parts of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import dask
from dask.distributed import Future

from fairproj.data.parts import PartSummary, Reader
from fairproj.distributed.cluster import Cluster
from fairproj.distributed.worker import SourceParts, describe_parts, make_part
from fairproj.io.sources import find_source

_TASKS_A_WORKER = 4  # that describe parts of files
_TASKS_WITHOUT_WORKERS = 64  # an adaptive cluster starts workers when it has tasks


class Rows(Protocol):
    """Rows in parts.

    Attributes
    ----------
    n_parts : int
    """

    n_parts: int

    def describe(self, cluster: Cluster, reader: Reader) -> list[PartSummary]:
        """A summary of each part."""

    def place(self, cluster: Cluster, lengths: Sequence[int]) -> dict[str, list[int]]:
        """The parts that each worker gets; ``lengths`` are their numbers of rows."""

    def parts(self, numbers: Sequence[int]) -> Iterable[Any]:
        """Some parts, as a task of Dask takes them."""

    def release(self) -> None:
        """Free what is in the memory of the cluster because of `describe` or `place`."""


class PartitionRows:
    """The partitions of Dask collections; a worker gets those that it holds already."""

    def __init__(self, collections: dict[str, Any]) -> None:
        partitions = {name: _partitions(each, name) for name, each in collections.items()}
        self.n_parts = len(partitions["X"])
        for name, found in partitions.items():
            if len(found) != self.n_parts:
                raise ValueError(
                    f"X has {self.n_parts} partitions and {name} has {len(found)}; both must be "
                    "divided alike: take them from one data frame, or use repartition or rechunk"
                )
        make = dask.delayed(make_part, pure=False)
        self._delayed = [
            make(
                name=f"partition {number}",
                **{key: found[number] for key, found in partitions.items()},
            )
            for number in range(self.n_parts)
        ]
        self._futures: list[Future] = []

    def describe(self, cluster: Cluster, reader: Reader) -> list[PartSummary]:
        self._compute(cluster)
        tasks = [cluster.submit(describe_parts, [part], reader) for part in self._futures]
        return [summary for (summary,) in cluster.gather(tasks)]

    def place(self, cluster: Cluster, lengths: Sequence[int]) -> dict[str, list[int]]:
        self._compute(cluster)
        cluster.finish(self._futures)
        holders = cluster.ask(lambda: cluster.client.who_has(self._futures))
        workers = cluster.workers()
        placed: dict[str, list[int]] = {}
        n_rows = dict.fromkeys(workers, 0)
        for number, future in enumerate(self._futures):
            if lengths[number]:
                found = [each for each in holders.get(future.key, ()) if each in n_rows]
                address = min(found or workers, key=lambda each: n_rows[each])
                n_rows[address] += lengths[number]
                placed.setdefault(address, []).append(number)
        return placed

    def _compute(self, cluster: Cluster) -> None:
        if not self._futures:
            self._futures = cluster.compute(self._delayed)

    def parts(self, numbers: Sequence[int]) -> list[Future]:
        return [self._futures[number] for number in numbers]

    def release(self) -> None:
        self._futures = []


def _partitions(collection: Any, name: str) -> list[Any]:
    if not dask.is_dask_collection(collection) or not hasattr(collection, "to_delayed"):
        raise ValueError(
            f"X is a Dask collection and {name} is a {type(collection).__name__}; pass {name} as "
            "one too, divided like X"
        )
    if getattr(collection, "ndim", 1) > 1 and hasattr(collection, "rechunk"):
        collection = collection.rechunk({1: -1})
    # Dask's optimisation may join partitions where few columns are needed, and X may keep its own.
    delayed = collection.to_delayed(optimize_graph=False)
    return list(delayed) if isinstance(delayed, list) else delayed.ravel().tolist()


class FileRows:
    """Parts of Parquet files, which the workers read; consecutive ones for each worker."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.n_parts = int(source.n_parts)

    def describe(self, cluster: Cluster, reader: Reader) -> list[PartSummary]:
        n_tasks = _TASKS_A_WORKER * len(cluster.workers()) or _TASKS_WITHOUT_WORKERS
        size = max(1, -(-self.n_parts // n_tasks))
        parts = [
            self.parts(range(start, min(start + size, self.n_parts)))
            for start in range(0, self.n_parts, size)
        ]
        tasks = [cluster.submit(describe_parts, some, reader) for some in parts]
        return [summary for summaries in cluster.gather(tasks) for summary in summaries]

    def place(self, cluster: Cluster, lengths: Sequence[int]) -> dict[str, list[int]]:
        workers = cluster.wait_for_workers(1)
        total, before = sum(lengths), 0
        placed: dict[str, list[int]] = {}
        for number, length in enumerate(lengths):
            if length:
                middle = (before + length / 2) / total
                placed.setdefault(workers[int(middle * len(workers))], []).append(number)
            before += length
        return placed

    def parts(self, numbers: Sequence[int]) -> SourceParts:
        return SourceParts(self._source, tuple(numbers))

    def release(self) -> None:
        pass


def find_rows(
    X: Any, y: Any, sensitive_features: Any, sample_weight: Any, sensitive_columns: Any = None
) -> Rows:
    """The rows that a user gives to ``fit``."""
    if dask.is_dask_collection(X):
        _check_collection(X)
        given = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        optional = {name: value for name, value in given.items() if value is not None}
        return PartitionRows({"X": X, "y": y, **optional})
    source = find_source(_absolute(X), y, sensitive_features, sample_weight, sensitive_columns)
    if source is None or source.n_parts is None:
        raise ValueError(
            f"X is a {type(X).__name__}, which is in the memory of this process; a cluster trains "
            "on Dask data frames and arrays (dask.dataframe.from_pandas makes one) and on paths of "
            "Parquet files, and for other rows there is the class without Dask in its name"
        )
    return FileRows(source)


def _absolute(X: Any) -> Any:
    """Local paths from the root of the file system: workers may have another working folder."""
    several = isinstance(X, list | tuple)
    paths = [*X] if several else [X]
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        return X
    found = [os.fspath(path) for path in paths]
    found = [path if "://" in path else os.path.abspath(path) for path in found]
    return found if several else found[0]


def _check_collection(X: Any) -> None:
    if not hasattr(X, "to_delayed") or getattr(X, "ndim", None) != 2:
        raise ValueError(
            f"X is a Dask {type(X).__name__}; it must be a Dask data frame, or an array of two "
            "dimensions"
        )
