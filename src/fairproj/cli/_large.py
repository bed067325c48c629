"""Training on Parquet files that are not read into memory: on this machine, or on a cluster."""

from __future__ import annotations

import re
import shlex
from collections import ChainMap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from fairproj import FairBoostClassifier
from fairproj.cli._choice import Choice, RuleChooser, TimeChooser, make_rule
from fairproj.cli._columns import (
    check_no_missing,
    check_some_weight,
    check_usable,
    check_weights,
    unusable_kind,
)
from fairproj.cli._console import row_bar
from fairproj.cli._record import HeldOut
from fairproj.cli._rows import choose_features
from fairproj.cli._split import check_sides
from fairproj.cli._streams import Keys, check_names, find_keys
from fairproj.cli._task import Task
from fairproj.data.dates import are_dates
from fairproj.data.parts import Part
from fairproj.data.time_split import Times
from fairproj.estimators.fairboost import HELD_OUT
from fairproj.io.cell_codes import CellCoder
from fairproj.io.parquet import ParquetSource
from fairproj.io.table_types import DATE_TEXT, NUMBERS, column_kinds, kind_of
from fairproj.io.tables import DataFile, DataFiles, check_columns, translate_errors
from fairproj.io.training_rows import (
    HeldOutByCell,
    HeldOutByTime,
    TrainingRows,
    part_cells,
)

_CONNECT_SECONDS = 15
# What fairproj.distributed says of a checkpoint, in words for Python.
_KEPT = r"the rounds up to (\d+) are in (.*): pass it as resume_from"


@dataclass(frozen=True)
class LargeData:
    """Parquet files, their label and groups, and their features.

    Attributes
    ----------
    data : DataFiles
    task : Task
    keys : Keys
    coder : CellCoder
    kinds : dict of str to str
        What the features hold, in words.
    positive : object
    """

    data: DataFiles
    task: Task
    keys: Keys
    coder: CellCoder
    kinds: dict[str, str]
    positive: Any

    @classmethod
    def open(cls, paths: Sequence[Path], task: Task) -> LargeData:
        """Read the label and the groups of all rows, and check all columns."""
        data = DataFiles.from_paths(paths)
        for file in data.files:
            if file.kind != "parquet":
                raise ValueError(
                    f"{file.path} is not a Parquet file, and --out-of-core and --scheduler read "
                    "only these; convert it, or train in memory"
                )
        check_names(data, task, [*(task.dropped or []), *task.others])
        columns = data.column_names()
        for file in data.files[1:]:
            check_columns(file.path, file.column_names(), columns)
            check_columns(data.files[0].path, columns, file.column_names())
        keys = find_keys(data, task)
        positive = keys.check(task)
        keys.check_groups_of_training(task, positive)
        _check_weights(data, task)
        features = choose_features(columns, task, data.name)
        return cls(data, task, keys, keys.coder(task), _kinds(data, features), positive)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The groups, with the number of their rows."""
        sizes = self.keys.cell_sizes(self.task, self.coder).reshape(-1, len(self.coder.labels))
        return list(zip(self.coder.groups.names, sizes.sum(axis=1).tolist(), strict=True))

    @property
    def positive_share(self) -> float:
        sizes = self.keys.cell_sizes(self.task, self.coder).reshape(-1, len(self.coder.labels))
        return float(sizes[:, self.coder.labels.index(self.positive)].sum() / sizes.sum())

    def split(
        self, fraction: float, seed: int, *, verbose: bool = False
    ) -> tuple[Any, Choice | None]:
        """A source of the training rows, and the rows held out from it if there are any."""
        source = self._source(list(self.kinds))
        if not fraction:
            return source, None
        if self.task.time is not None:
            return self._split_by_time(source, self.task.time, fraction, seed)
        rule = make_rule(fraction, seed, self.keys, self.task, self.coder)
        chooser, before = RuleChooser(rule, self.coder), []
        with row_bar("holding out rows", self.keys.n_rows, show=verbose) as advance:
            for part in self._source([]).parts():
                before.append(chooser.before)
                chooser.choose(part_cells(part, self.coder))
                advance(len(part.y))
        held_out = HeldOut(fraction, seed, chooser.finish(), streamed=True)
        choice = Choice(held_out.which, False, held_out, None, rule, self.coder, self.keys.types)
        return TrainingRows(source, HeldOutByCell(self.coder, rule, np.array(before))), choice

    def _split_by_time(
        self, source: ParquetSource, column: str, fraction: float, seed: int
    ) -> tuple[Any, Choice]:
        """The same by time; takes 8 bytes a row for a moment."""
        points, times = ParquetSource(self._paths, features=[column]), Times(column)
        for part in points.parts():
            _check_no_missing_times(part, column)
            times.add(part.X[column])
        cut = times.cut(fraction)
        chooser = TimeChooser(cut)
        counts = np.zeros((2, self.coder.n_cells), dtype=np.intp)
        for part, part_times in zip(self._source([]).parts(), points.parts(), strict=True):
            held_out = chooser.choose(part_times.X[column])
            place = self.coder.n_cells * held_out + part_cells(part, self.coder)
            counts += np.bincount(place, minlength=counts.size).reshape(counts.shape)
        labels = [str(label) for label in self.coder.labels]
        shape = (2, len(self.coder.groups.values), len(labels))
        check_sides(cut, counts.reshape(shape), self.coder.groups.names, labels)
        found = HeldOut(fraction, seed, chooser.finish(), streamed=True, time=cut)
        choice = Choice(found.which, False, found)
        return TrainingRows(source, HeldOutByTime(points, cut)), choice

    @property
    def _paths(self) -> list[Path]:
        # Workers of a cluster may have another working directory.
        return [file.path.absolute() for file in self.data.files]

    def _source(self, features: list[str]) -> ParquetSource:
        task = self.task
        weights = task.weights if features else None
        return ParquetSource(
            self._paths, task.label, task.sensitive, weights, features, ranges=task.ranges
        )


def _check_no_missing_times(part: Part, column: str) -> None:
    missing = int(part.X[column].isna().sum())
    check_no_missing(part.name, {column: missing}, len(part.X))


def _check_weights(data: DataFiles, task: Task) -> None:
    """Refuse weights that are no numbers, missing or negative, in a pass over their column."""
    name = task.weights
    if name is None:
        return
    largest = 0.0
    for file in data.files:
        for chunk in file.chunks([name], {}):
            column, kind = chunk.column(name), column_kinds(chunk)[name]
            check_no_missing(file.path, {name: column.null_count}, chunk.num_rows)
            weights: Any = column.to_pandas().to_numpy(dtype=float) if kind in NUMBERS else None
            check_weights(file.path, name, kind, weights)
            largest = max(largest, float(weights.max(initial=0.0)))
    check_some_weight(data.name, name, largest)


def _kinds(data: DataFiles, features: list[str]) -> dict[str, str]:
    """The kinds of the features, which must be usable in every file."""
    kinds_of_files = [_kinds_in(file, features) for file in data.files]
    texts = [n for n in features if {kinds[n] for kinds in kinds_of_files} <= {"text", "empty"}]
    dates = dict.fromkeys(_find_dates(data, texts), DATE_TEXT)
    for file, found in zip(data.files, kinds_of_files, strict=True):
        kinds = found | dates
        check_usable(file.path, kinds, {name: unusable_kind(kinds[name]) for name in kinds})
    with_values = [{n: k for n, k in kinds.items() if k != "empty"} for kinds in kinds_of_files]
    return dict.fromkeys(features, "empty") | dict(ChainMap(*with_values))


def _kinds_in(file: DataFile, names: list[str]) -> dict[str, str]:
    with translate_errors(file.path):
        schema = parquet.read_schema(file.path)
    return {name: kind_of(schema.field(name).type) for name in names}


def _find_dates(data: DataFiles, texts: list[str]) -> list[str]:
    """The columns among these all of whose values are dates; others are given up where one is not.

    So most columns are read in the first rows only.
    """
    dates = dict.fromkeys(texts, False)  # whether there were any values yet
    for file in data.files:
        for chunk in file.chunks(list(dates), {}) if dates else ():
            for name in list(dates):
                values = chunk.column(name).drop_null().unique().to_pandas()
                if are_dates(values):
                    dates[name] = True
                elif len(values):
                    del dates[name]
            if not dates:
                break
    return [name for name, is_date in dates.items() if is_date]


@dataclass(frozen=True)
class OnCluster:
    """A Dask cluster to train on, and where to keep and find checkpoints."""

    client: Any
    checkpoint: str | None = None
    resume_from: str | None = None

    def fit(self, estimator: Any, source: Any, *, compare: bool) -> Any:
        """A model of this machine that was trained on the cluster.

        With ``compare``, `FairBoostClassifier` has the same settings without a constraint as its
        ``baseline_``.
        """
        model = _fit_there(
            estimator,
            source,
            client=self.client,
            checkpoint_path=self.checkpoint,
            resume_from=self.resume_from,
        )
        if compare and isinstance(model, FairBoostClassifier):
            plain = _without_constraint(model)
            model.baseline_ = _fit_there(plain, source, choose_best=True, client=self.client)
        return model


@contextmanager
def connect(scheduler: str, checkpoint: str | None, resume_from: str | None) -> Iterator[OnCluster]:
    """The cluster whose scheduler has this address; its errors are one sentence."""
    from fairproj import distributed  # tells what to install, where Dask is missing

    client = _client(scheduler)
    try:
        yield OnCluster(client, checkpoint, resume_from)
    except KeyboardInterrupt as interrupt:
        kept = re.search(_KEPT, str(interrupt))
        words = str(interrupt) if kept is None else f"after round {_go_on(kept)}"
        raise KeyboardInterrupt(words) from None
    except distributed.ClusterError as error:
        words = re.sub(_KEPT, lambda kept: f"it ended after round {_go_on(kept)}", str(error))
        raise ValueError(words) from error
    finally:
        client.close()


def _go_on(kept: re.Match[str]) -> str:
    """The last round of a checkpoint, and the option to continue from it."""
    return f"{kept[1]}; continue with --resume-from {shlex.quote(kept[2])}"


def _client(scheduler: str) -> Any:
    from dask.distributed import Client

    try:
        return Client(scheduler, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {scheduler} ({type(error).__name__}); give the address "
            "that the scheduler prints, such as tcp://host:8786"
        ) from None


def _fit_there(
    estimator: Any,
    source: Any,
    resume_from: Any = None,
    *,
    choose_best: bool = False,
    **options: Any,
) -> Any:
    """The fitted estimator; with ``choose_best``, as `FairBoostClassifier` fits a ``baseline_``."""
    from fairproj import distributed

    parameters = estimator.get_params(deep=False)
    if "baseline" in parameters:
        parameters["baseline"] = False  # its scores need all rows in one place
    kind = getattr(distributed, f"Dask{type(estimator).__name__}")
    model = kind(**parameters, **options)
    if choose_best:
        return model._fit_baseline(source).to_local()
    return model.fit(source, None, resume_from=resume_from).to_local()


def _without_constraint(model: FairBoostClassifier) -> FairBoostClassifier:
    """The same settings without a constraint, with the same rows to watch."""
    plain = model._without_constraint()
    if plain.validation_fraction == "auto":
        certificate: Any = model.certificate_
        watched = certificate.watched_on == "held-out rows"
        plain.set_params(validation_fraction=HELD_OUT if watched else None)
    return plain
