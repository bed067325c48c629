"""The estimators that train on a Dask cluster."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import dask
import numpy as np
from dask.distributed import Client, default_client
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from fairproj.data.checks import counted
from fairproj.data.user_warning import warn_user
from fairproj.distributed.checkpoint import (
    Checkpoint,
    CheckpointFile,
    check_facts,
    read_checkpoint,
)
from fairproj.distributed.cluster import Cluster, ClusterError
from fairproj.distributed.inputs import find_rows
from fairproj.distributed.lazy import map_rows
from fairproj.distributed.training import ClusterRun, read_table
from fairproj.distributed.worker import Trained, WatchedRows
from fairproj.estimators import FairBoostClassifier, FairProjClassifier
from fairproj.estimators.base import BoostedClassifier
from fairproj.io.progress import RoundProgress, bar_title

_OWN_PARAMETERS: dict[str, Any] = {
    "client": None,
    "checkpoint_path": None,
    "checkpoint_every": 10,
    "timeout": 300,
    "retries": 3,
}
_CONSTRAINTS: dict[str, Any] = {
    "client": "no_validation",
    "checkpoint_path": [str, os.PathLike, None],
    "checkpoint_every": [Interval(Integral, 1, None, closed="left")],
    "timeout": [Interval(Real, 1, None, closed="left")],
    "retries": [Interval(Integral, 0, None, closed="left")],
}
# They do not change the rounds of a run, or are compared otherwise.
_NO_FACTS = {"n_estimators", "n_jobs", "verbose", "random_state", "constraints"}

_PARAMETERS = """
    client : dask.distributed.Client, optional
        By default the client that was created last.
    checkpoint_path : str or path, optional
        A file on the driver, or a URL that fsspec can open, for checkpoints.
    checkpoint_every : int, default=10
        Rounds between two checkpoints.
    timeout : float, default=300
        Seconds after which a worker that does not answer counts as lost. It must be longer than
        a round takes on the slowest worker.
    retries : int, default=3
        How often training continues after workers were lost.
"""
Class = TypeVar("Class", bound="type[DaskClassifier]")


def on_cluster(cls: Class) -> Class:
    """Give a class the parameters of the local class that it extends, and those of a cluster."""
    local: Any = cls.__mro__[2]

    def __init__(self: Any, *args: Any, **parameters: Any) -> None:  # noqa: N807
        own = {name: parameters.pop(name, value) for name, value in _OWN_PARAMETERS.items()}
        local.__init__(self, *args, **{"engine": "xgboost", **parameters})
        for name, value in own.items():
            setattr(self, name, value)

    known = inspect.signature(local.__init__).parameters
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value)
        for name, value in _OWN_PARAMETERS.items()
    ]
    own.insert(0, known["engine"].replace(default="xgboost"))
    kept = [each for name, each in known.items() if name != "engine"]
    __init__.__signature__ = inspect.Signature([*kept, *own])  # type: ignore[attr-defined]
    cls.__init__ = __init__  # type: ignore[method-assign]
    cls._parameter_constraints = {**local._parameter_constraints, **_CONSTRAINTS}
    cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", _PARAMETERS.strip())
    return cls


class DaskClassifier(BoostedClassifier):
    """Base of the estimators that train on a cluster."""

    _local: ClassVar[type[BoostedClassifier]]

    client: Client | None
    checkpoint_path: str | os.PathLike[str] | None
    checkpoint_every: int
    timeout: float
    retries: int

    # Training

    def _train_on_cluster(
        self,
        training: tuple[Any, Any, Any, Any],
        watched: tuple[Any, Any, Any, Any] | None,
        resume_from: Any,
        **options: Any,
    ) -> None:
        """Train; ``options`` are further arguments of the model's ``_fit_prepared``."""
        self._forget()
        self._refuse_local_options()
        self._check_together()
        rows = find_rows(*training, sensitive_columns=self.sensitive_columns)
        rows_to_watch = None
        if watched is not None:
            rows_to_watch = find_rows(*watched, sensitive_columns=self.sensitive_columns)
        cluster = Cluster(self._find_client(), self.timeout)
        checkpoint = self._first_checkpoint(resume_from)
        file = self._checkpoint_file(resume_from, checkpoint)
        model = self._worker_model(checkpoint.seed, watched is not None)
        cluster.check_versions(cluster.workers())
        tables = read_table(cluster, model, rows, rows_to_watch)
        run = ClusterRun(
            cluster,
            model,
            tables,
            checkpoint,
            resume_from=resume_from,
            retries=self.retries,
            report_every=self.checkpoint_every,
            options=options,
        )
        self._take_over_fit(self._follow(run, file))

    def _follow(self, run: ClusterRun, file: CheckpointFile | None) -> Trained:
        """Wait for the rounds of a run, and keep checkpoints of them."""
        with closing(run.rounds()) as rounds, _last_checkpoint(run, file):
            title = bar_title(self.constraints)
            progress = RoundProgress(rounds, self.n_estimators, verbose=self.verbose, title=title)
            for _ in progress:
                if file is not None:
                    file.update(run.checkpoint)
        return progress.outcome

    def _checkpoint_file(self, resume_from: Any, checkpoint: Checkpoint) -> CheckpointFile | None:
        if self.checkpoint_path is None:
            return None
        file = CheckpointFile(self.checkpoint_path, self.checkpoint_every)
        file.check()
        file.resume(resume_from, len(checkpoint.rounds))
        if lost := file.n_replaced():
            warn_user(
                f"{file.path} holds {counted(lost, 'round')} of an earlier run, which this run "
                "replaces; to "
                "continue from them, interrupt it and pass resume_from"
            )
        return file

    def _take_over_fit(self, trained: Trained) -> None:
        self.__dict__.pop("feature_names_in_", None)  # new rows may have no names
        self.__dict__.update(trained.attributes)
        for message in trained.warnings:
            warn_user(message)

    def _first_checkpoint(self, resume_from: Any) -> Checkpoint:
        """The checkpoint to continue from, or one without rounds."""
        facts = self._parameter_facts()
        if resume_from is None:
            seed = self.random_state
            if not isinstance(seed, Integral):
                seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
            return Checkpoint(facts, int(seed), [])
        checkpoint = read_checkpoint(resume_from)
        if isinstance(self.random_state, Integral):
            facts = {**facts, "random_state": str(int(self.random_state))}
        then = {**checkpoint.facts, "random_state": str(checkpoint.seed)}
        check_facts(then, facts, resume_from)
        return checkpoint

    def _parameter_facts(self) -> dict[str, str]:
        parameters = self.to_local().get_params(deep=False)
        facts = {"class": self._local.__name__}
        return facts | {n: repr(_plain(v)) for n, v in parameters.items() if n not in _NO_FACTS}

    def _worker_model(self, seed: int, watched: bool) -> BoostedClassifier:
        kind = WatchedRows if watched else self._local
        parameters = {name: getattr(self, name) for name in self._local._get_param_names()}
        return kind(**{**parameters, "random_state": seed, "verbose": False})

    def _find_client(self) -> Client:
        client = self.client
        if client is None:
            try:
                client = default_client()
            except ValueError:
                raise ValueError(
                    "there is no Dask client; create one with dask.distributed.Client(address), "
                    "or pass it as client"
                ) from None
        if client.status != "running":
            raise ValueError(
                f"the Dask client is {client.status}, and fit needs one that is connected to its "
                "scheduler; create a new one with dask.distributed.Client(address)"
            )
        if client.asynchronous:
            raise ValueError(
                "the Dask client is asynchronous, and fit waits for the cluster; pass a client "
                "without asynchronous=True"
            )
        return client

    def _refuse_local_options(self) -> None:
        """Refuse what needs all rows in one place."""
        name = type(self).__name__
        if self.engine != "xgboost":
            raise ValueError(
                f"{name} trains with engine='xgboost', got engine={self.engine!r}; leave it out, "
                f"or use {self._local.__name__}"
            )
        if self.estimator is not None:
            raise ValueError(
                f"{name} trains XGBoost's trees, and estimator= would be ignored; leave it out, or "
                f"use {self._local.__name__}"
            )
        if hasattr(self.constraints, "shape"):
            raise ValueError(
                f"{name} takes constraints by name or as an object of fairproj.constraints, got an "
                "array, whose rows are not on the workers; name a constraint"
            )
        if getattr(self, "warm_start", False):
            raise ValueError(
                f"{name} does not use warm_start; write checkpoints with checkpoint_path, and go "
                "on with fit(..., resume_from=path)"
            )
        if getattr(self, "baseline", False):
            raise ValueError(
                f"{name} does not train a baseline, because its AUC needs all scores in one place; "
                "fit a second model with constraints=None, and compare both on test rows"
            )

    # Predicting

    def predict(self, X: Any) -> Any:
        """The class of each row; lazy for a Dask collection, see `predict_proba`.

        Parameters
        ----------
        X : array-like, data frame, Dask array or Dask data frame of shape (n_rows, n_features)

        Returns
        -------
        array, Dask array or Dask series of shape (n_rows,)
            Values of ``classes_``.
        """
        if not dask.is_dask_collection(X):
            return super().predict(X)
        return self._lazily(X, "predict", self.classes_.dtype)

    def decision_function(self, X: Any) -> Any:
        """The margin of each row; lazy for a Dask collection, see `predict_proba`.

        Parameters
        ----------
        X : array-like, data frame, Dask array or Dask data frame of shape (n_rows, n_features)

        Returns
        -------
        array, Dask array or Dask series of shape (n_rows,)
        """
        if not dask.is_dask_collection(X):
            return super().decision_function(X)
        return self._lazily(X, "decision_function", np.dtype(float))

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class.

        For a Dask array the result is a Dask array. For a Dask data frame it has the index of the
        frame: a series of `predict` and `decision_function`, here a data frame with a column for
        each class. Nothing is computed until the result is.

        Parameters
        ----------
        X : array-like, data frame, Dask array or Dask data frame of shape (n_rows, n_features)

        Returns
        -------
        array, Dask array or Dask data frame of shape (n_rows, 2)
            A column for each of ``classes_``.
        """
        if not dask.is_dask_collection(X):
            return super().predict_proba(X)
        return self._lazily(X, "predict_proba", np.dtype(float), self.classes_)

    def _lazily(
        self, X: Any, method: str, dtype: np.dtype[Any], columns: NDArray[Any] | None = None
    ) -> Any:
        check_is_fitted(self, "certificate_")
        return map_rows(self.to_local(), method, X, dtype, columns)

    # What the model holds

    def to_local(self) -> BoostedClassifier:
        """The same model as the class without Dask in its name, fitted if this one is."""
        names = self._local._get_param_names()
        local = self._local(**{name: getattr(self, name) for name in names})
        fitted = {n: v for n, v in vars(self).items() if n not in {*names, *_OWN_PARAMETERS}}
        local.__dict__.update(fitted)
        return local

    def save(self, path: str | os.PathLike[str], *, metadata: dict[str, Any] | None = None) -> None:
        """Write the model as `to_local` returns it; `fairproj.load` reads it without a cluster.

        Parameters
        ----------
        path : path
            An existing file is replaced, all at once.
        metadata : dict, optional
            Texts, numbers, lists and dicts to keep with the model, read back as ``metadata_``.
        """
        check_is_fitted(self, "certificate_")
        self.to_local().save(path, metadata=metadata)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Any:
        # A client cannot be copied; the copy uses the same.
        cloned = super(DaskClassifier, copy.copy(self)).__sklearn_clone__()
        cloned.client = self.client
        return cloned


def _plain(value: Any) -> Any:
    """A value of a parameter without the types of NumPy, to be compared as text."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


@contextmanager
def _last_checkpoint(run: ClusterRun, file: CheckpointFile | None) -> Iterator[None]:
    """Where a run ends early, keep the rounds that are done, and say where they are."""
    try:
        yield
    except (KeyboardInterrupt, ClusterError) as error:
        if file is None:
            raise
        for _ in run.received():
            pass
        file.update(run.checkpoint, now=True)
        ended = str(error) or "training was interrupted"
        raise type(error)(f"{ended}; {file.advice()}") from error.__cause__


@on_cluster
class DaskFairProjClassifier(DaskClassifier, FairProjClassifier):
    """`FairProjClassifier` that is trained on a Dask cluster, by XGBoost.

    The votes are those that ``FairProjClassifier(engine="xgboost")`` finds on the same rows.

    Parameters
    ----------
    constraints, epsilon, ... :
        The same as in `FairProjClassifier`, but ``estimator`` and ``warm_start`` are refused.
        ``n_jobs=None`` means as many threads as each worker has.
    {parameters}

    Examples
    --------
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> client = Client("tcp://scheduler:8786")  # doctest: +SKIP
    >>> model = DaskFairProjClassifier("equal_opportunity")  # doctest: +SKIP
    >>> model.fit("s3://bucket/rows/*.parquet", "y", sensitive_features="sex")  # doctest: +SKIP
    """

    _local = FairProjClassifier

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        resume_from: str | os.PathLike[str] | None = None,
    ) -> DaskFairProjClassifier:
        """Train on X, y and the rows' groups.

        Parameters
        ----------
        X : Dask data frame or array, path or list of paths
            Paths are those of Parquet files, folders or patterns; the workers read them, so all
            workers must reach them.
        y : Dask series or array, or str
            Divided like X; with paths, the name of a column.
        sensitive_features : Dask series, data frame or array, or str or list of str, optional
            The groups, in the same way; several columns are crossed.
        sample_weight : Dask series or array, or str, optional
        resume_from : str or path, optional
            A checkpoint of a run with the same parameters and rows, to continue from.

        Returns
        -------
        self
        """
        training = (X, y, sensitive_features, sample_weight)
        self._train_on_cluster(training, None, resume_from)
        return self


@on_cluster
class DaskFairBoostClassifier(DaskClassifier, FairBoostClassifier):
    """`FairBoostClassifier` that is trained on a Dask cluster, by XGBoost.

    The votes are those that ``FairBoostClassifier(engine="xgboost")`` finds on the same rows.

    Parameters
    ----------
    constraints, max_gap, ... :
        The same as in `FairBoostClassifier`, but ``estimator`` and ``baseline`` are refused.
        ``n_jobs=None`` means as many threads as each worker has.
    {parameters}

    Examples
    --------
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> client = Client("tcp://scheduler:8786")  # doctest: +SKIP
    >>> model = DaskFairBoostClassifier("equal_opportunity", max_gap=0.03)  # doctest: +SKIP
    >>> model.fit("s3://bucket/rows/*.parquet", "y", sensitive_features="sex")  # doctest: +SKIP
    """

    _local = FairBoostClassifier

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features_val: Any = None,
        sample_weight_val: Any = None,
        resume_from: str | os.PathLike[str] | None = None,
    ) -> DaskFairBoostClassifier:
        """Train on X, y and the rows' groups.

        Parameters
        ----------
        X : Dask data frame or array, path or list of paths
            Paths are those of Parquet files, folders or patterns; the workers read them, so all
            workers must reach them.
        y : Dask series or array, or str
            Divided like X; with paths, the name of a column.
        sensitive_features : Dask series, data frame or array, or str or list of str, optional
            The groups, in the same way; several columns are crossed.
        sample_weight : Dask series or array, or str, optional
        X_val, y_val, sensitive_features_val, sample_weight_val : optional
            Rows on which the gap is watched instead of the training rows, given in the same ways.
        resume_from : str or path, optional
            A checkpoint of a run with the same parameters and rows, to continue from.

        Returns
        -------
        self
        """
        training = (X, y, sensitive_features, sample_weight)
        watched = (X_val, y_val, sensitive_features_val, sample_weight_val)
        if any(part is not None for part in watched):
            given = sensitive_features is not None or self.sensitive_columns is not None
            self._hold_out(None, watched, None, given)  # type: ignore[arg-type]
        self._train_on_cluster(training, None if X_val is None else watched, resume_from)
        return self

    def _fit_baseline(self, source: Any) -> DaskFairBoostClassifier:
        """Train without a constraint, and keep the round of least loss, as a ``baseline_`` does."""
        self._train_on_cluster((source, None, None, None), None, None, choose_best=True)
        return self

    def _validation_sample(self, training: Any, validation: tuple[Any, ...]) -> Any:
        """The workers make it; what is given with X_val was checked before this is called."""
