"""Training on Parquet files that are not read into memory: on this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet
from sklearn.base import clone

from fairproj import FairBoostClassifier
from fairproj.cli._choice import Choice, RuleChooser, make_rule
from fairproj.cli._console import row_bar
from fairproj.cli._record import HeldOut
from fairproj.cli._rows import Task, check_kinds, check_task, choose_features
from fairproj.cli._streams import Keys, check_names, find_keys
from fairproj.estimators.fairboost import BASELINE_PARAMETERS, HELD_OUT
from fairproj.io.cell_codes import CellCoder
from fairproj.io.parquet import ParquetSource
from fairproj.io.table_types import kind_of
from fairproj.io.tables import DataFiles, check_columns, translate_errors
from fairproj.io.training_rows import TrainingRows, part_cells

_CONNECT_SECONDS = 15


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
                    f"{file.path} is no Parquet file, and --out-of-core and --scheduler read only "
                    "these; convert it, or train in memory"
                )
        check_names(data, task, task.dropped or [])
        columns = data.column_names()
        for file in data.files[1:]:
            check_columns(file.path, file.column_names(), columns)
            check_columns(data.files[0].path, columns, file.column_names())
        check_task(task)
        keys = find_keys(data, task)
        positive = keys.check(task)
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
        rule = make_rule(fraction, seed, self.keys, self.task, self.coder)
        chooser, before = RuleChooser(rule, self.coder), []
        with row_bar("holding out rows", self.keys.n_rows, show=verbose) as advance:
            for part in self._source([]).parts():
                before.append(chooser.before)
                chooser.choose(part_cells(part, self.coder))
                advance(len(part.y))
        held_out = HeldOut(fraction, seed, chooser.finish(), streamed=True)
        choice = Choice(held_out.which, False, held_out, None, rule, self.coder, self.keys.types)
        return TrainingRows(source, self.coder, rule, np.array(before)), choice

    def _source(self, features: list[str]) -> ParquetSource:
        # Workers of a cluster may have another working directory.
        paths = [file.path.absolute() for file in self.data.files]
        return ParquetSource(paths, self.task.label, self.task.sensitive, features=features)


def _kinds(data: DataFiles, features: list[str]) -> dict[str, str]:
    """The kinds of the features, which must be usable in every file."""
    kinds: dict[str, str] = {}
    for file in data.files:
        with translate_errors(file.path):
            schema = parquet.read_schema(file.path)
        found = {name: kind_of(schema.field(name).type) for name in features}
        check_kinds(file.path, found, features, "or leave them out with --drop")
        kinds = {name: found[name] if kind == "empty" else kind for name, kind in kinds.items()}
        kinds = {**found, **kinds}
    return kinds


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
            model.baseline_ = _fit_there(plain, source, client=self.client)
        return model


@contextmanager
def connect(scheduler: str, checkpoint: str | None, resume_from: str | None) -> Iterator[OnCluster]:
    """The cluster whose scheduler has this address; its errors are one sentence."""
    from fairproj import distributed  # tells what to install, where Dask is missing

    client = _client(scheduler)
    try:
        yield OnCluster(client, checkpoint, resume_from)
    except distributed.ClusterError as error:
        raise ValueError(str(error)) from error
    finally:
        client.close()


def _client(scheduler: str) -> Any:
    from dask.distributed import Client

    try:
        return Client(scheduler, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {scheduler} ({type(error).__name__}); give the address "
            "that the scheduler prints, such as tcp://host:8786"
        ) from None


def _fit_there(estimator: Any, source: Any, resume_from: Any = None, **options: Any) -> Any:
    from fairproj import distributed

    parameters = estimator.get_params(deep=False)
    if "baseline" in parameters:
        parameters["baseline"] = False  # its scores need all rows in one place
    kind = getattr(distributed, f"Dask{type(estimator).__name__}")
    model = kind(**parameters, **options).fit(source, None, resume_from=resume_from)
    return model.to_local()


def _without_constraint(model: FairBoostClassifier) -> FairBoostClassifier:
    """The same settings without a constraint, with the same rows to watch."""
    plain: FairBoostClassifier = clone(model).set_params(**BASELINE_PARAMETERS)
    if plain.validation_fraction == "auto":
        certificate: Any = model.certificate_
        watched = certificate.watched_on == "held-out rows"
        plain.set_params(validation_fraction=HELD_OUT if watched else None)
    return plain
