"""What the boosting loop asks of an engine, and the registry of engines.

An engine fits one learner on given gradients; it knows nothing of fairness. A `LearnerKind` is the
entry point of an engine: it binds one to the training rows and rebuilds a saved ensemble.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fairproj.data.sample import Sample
from fairproj.data.types import Array

Learner = Any  # whatever the engine wants to get back in `Engine.ensemble`

TREE_PARAMETERS = (  # settings that every engine of trees understands
    "max_depth",
    "max_leaf_nodes",
    "min_weight_fraction_leaf",
    "min_samples_leaf",
    "l2_regularization",
    "subsample",
    "max_features",
    "monotonic_cst",
    "engine_params",
)
TIE = 1e-9  # a margin this close to zero is a tie: rounding must not decide a label


def settle_ties(margin: Array) -> Array:
    """The margin with ties at exactly zero; a tie is predicted as ``classes_[0]``."""
    return np.where(np.abs(margin) <= TIE, 0.0, margin)


@dataclass(frozen=True)
class Targets:
    """Gradients and Hessians of the loss at each training row, for costs that sum to one.

    With row weights w of a distribution and labels y, the exponential loss has gradient -w y and
    Hessian w. A learner that takes weights and labels reads ``abs(gradient)`` and
    ``sign(-gradient)``. The arrays are valid until the loss changes.

    Attributes
    ----------
    gradient, hessian : array of shape (n_rows,)
    max_step : float
        The largest absolute value that a leaf may have, where ``votes="newton"`` leaves it open.
    """

    gradient: Array
    hessian: Array
    max_step: float = math.inf


@dataclass(frozen=True)
class Fitted:
    """A learner and its predictions h.

    h is in [-1, 1], as integers where learners predict -1 or +1; with ``votes="newton"`` it is any
    real number.

    Attributes
    ----------
    learner : object
    h : array of shape (n_rows,)
        On the training rows.
    held_out : array, optional
        On the rows held out, where there are some.
    constant : bool
        Whether the learner is known to predict the same for every row, as a tree without a split.
    """

    learner: Learner
    h: NDArray[Any]
    held_out: NDArray[Any] | None = None
    constant: bool = False


class Ensemble(Protocol):
    """A finished model with margin f(x) = intercept + sum_t vote_t h_t(x).

    Attributes
    ----------
    kind : str
        The name of its `LearnerKind`.
    votes : list of float
    link_scale : float
        The probability of ``classes_[1]`` is 1 / (1 + exp(-link_scale f)).
    intercept : float
    """

    kind: str
    votes: list[float]
    link_scale: float
    intercept: float

    @property
    def feature_importances(self) -> Array:
        """A number for each feature, zero or more."""

    def margin(self, X: Any, n_threads: int = 1) -> Array:
        """The margin f(x) of each row, after all learners.

        Parameters
        ----------
        X : array or sparse matrix
            As `LearnerKind.encodes` says.
        n_threads : int, default=1

        Returns
        -------
        array of shape (n_rows,)
        """

    def staged_margin(self, X: Any, n_threads: int = 1) -> Iterator[Array]:
        """The margin after 1, 2, ... learners, always with the intercept.

        Parameters
        ----------
        X : array or sparse matrix
        n_threads : int, default=1

        Returns
        -------
        iterator of array of shape (n_rows,)
        """

    def learner(self, t: int) -> Any:
        """Learner t, with ``predict_h(X)`` (no intercept), or the fitted estimator itself.

        Parameters
        ----------
        t : int

        Returns
        -------
        object
        """

    def to_payload(self) -> dict[str, Any]:
        """Texts, numbers, lists and dicts from which `LearnerKind.from_payload` rebuilds it."""


class ExplainableEnsemble(Ensemble, Protocol):
    """One that can tell what each column adds to a margin."""

    def contributions(self, X: Any, n_threads: int = 1) -> Array:
        """What each column adds to the margin of each row, and a base value as last column."""


class Engine(Protocol):
    """What the boosting loop calls in every round; `LearnerKind.bind` makes one for a run.

    It holds the training rows, and the rows held out if there are any. See the recipe "Add an
    engine".
    """

    def fit(self, targets: Targets) -> Fitted:
        """Fit one learner.

        Parameters
        ----------
        targets : Targets
            Gradients and Hessians of the loss at each training row.

        Returns
        -------
        Fitted
            The learner and its predictions.
        """

    def constant(self, h: float) -> Fitted:
        """The learner that predicts ``h`` for every row.

        Parameters
        ----------
        h : float

        Returns
        -------
        Fitted
        """

    def ensemble(
        self,
        learners: Sequence[Learner],
        votes: Sequence[float],
        link_scale: float,
        intercept: float = 0.0,
    ) -> Ensemble:
        """The model intercept + sum_t vote_t h_t, added to that of an earlier run, if any.

        Parameters
        ----------
        learners : sequence of object
            The ``learner`` of each round that is kept.
        votes : sequence of float
        link_scale, intercept : float
            As in `Ensemble`.

        Returns
        -------
        Ensemble
        """


class ResumableEngine(Engine, Protocol):
    """One whose learners exist without it, so that an interrupted run can go on."""

    def evaluate(self, learners: Sequence[Learner]) -> Iterator[Fitted]:
        """Learners of earlier rounds, with their predictions on these rows, in order."""


@dataclass(frozen=True)
class LearnerSettings:
    """The parameters of an estimator that concern its learners.

    Attributes
    ----------
    votes : {"discrete", "confidence", "newton"}
        What a learner predicts: -1 or +1, a confidence in [-1, 1], or the Newton step of its
        leaves, which is any real number.
    estimator : object, optional
    max_depth, max_leaf_nodes : int, optional
    min_weight_fraction_leaf : float
        Of discrete and confidence trees.
    min_samples_leaf : int
    l2_regularization : float
    subsample, max_features : float
        The share of the rows, and of the columns, that each tree is grown on.
    monotonic_cst : array of shape (n_features,), optional
        -1 where the margin must not increase with a column, 1 where it must not decrease, else 0.
    max_bins, n_threads : int
    engine_params : mapping of str to object, optional
        Further parameters of the engine, by its own names; see `with_engine_params`.
    random_state : int, RandomState or None
    feature_names : sequence of str, optional
    """

    votes: str
    estimator: Any = None
    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_weight_fraction_leaf: float = 0.0
    min_samples_leaf: int = 0
    l2_regularization: float = 0.0
    subsample: float = 1.0
    max_features: float = 1.0
    monotonic_cst: Any = None
    max_bins: int = 255
    n_threads: int = 1
    engine_params: Mapping[str, Any] | None = None
    random_state: Any = None
    feature_names: Sequence[str] | None = None


def with_engine_params(
    params: dict[str, Any], given: Mapping[str, Any] | None, engine: str
) -> dict[str, Any]:
    """The engine's parameters, and those that the user adds to them."""
    taken = sorted(set(params) & set(given or {}))
    if taken:
        raise ValueError(
            f"engine_params has {taken[0]!r}, which engine={engine!r} gets from the parameters of "
            "the estimator; set it there, or leave it out"
        )
    return {**params, **(given or {})}


@dataclass(frozen=True)
class Saved:
    """What a saved ensemble is rebuilt from, beside its payload."""

    votes: list[float]
    learner_votes: str
    link_scale: float
    classes: NDArray[Any]
    n_features: int
    categories: Mapping[int, Sequence[Any]]
    trusted: Sequence[str] = ()
    intercept: float = 0.0


class LearnerKind(Protocol):
    """An engine in the registry.

    Attributes
    ----------
    name : str
    encodes : bool
        Whether X reaches it as a matrix of numbers, categories as codes and NaN for missing values;
        otherwise X stays as the user gave it.
    parameters : collection of str
        The parameters of the estimators that it reads; others that a user sets are refused.
    accepts : collection of {"missing", "sparse", "batches"}
        What an encoded X may hold or be; batches are a `fairproj.data.batches.BatchMatrix`.
    """

    name: str
    encodes: bool
    parameters: Collection[str]
    accepts: Collection[str]

    def bind(
        self,
        settings: LearnerSettings,
        sample: Sample,
        held_out: Sample | None = None,
        before: Any = None,
    ) -> Engine:
        """An engine for these rows; ``before`` is an ensemble of the same kind to continue from.

        Parameters
        ----------
        settings : LearnerSettings
        sample : Sample
            The training rows, with ``X``.
        held_out : Sample, optional
            Rows whose predictions `Fitted.held_out` holds.
        before : Ensemble, optional

        Returns
        -------
        Engine
        """

    def from_payload(self, payload: dict[str, Any], saved: Saved) -> Ensemble:
        """Rebuild a saved ensemble; raise ValueError for what is not one.

        Parameters
        ----------
        payload : dict
            From `Ensemble.to_payload`, but read from a file that may hold anything.
        saved : Saved

        Returns
        -------
        Ensemble
        """


_REGISTRY: dict[str, LearnerKind] = {}


def register_engine(kind: LearnerKind) -> None:
    """Make a kind of learner available as ``engine=`` of the estimators, by its name.

    Parameters
    ----------
    kind : LearnerKind
        It replaces one of the same name.
    """
    _REGISTRY[kind.name] = kind


def find_engine(name: str) -> LearnerKind:
    """The kind of learner of that name.

    Parameters
    ----------
    name : str
        ``"lightgbm"``, ``"xgboost"``, ``"sklearn"``, or a name given to `register_engine`.

    Returns
    -------
    LearnerKind
    """
    if name not in _REGISTRY:
        known = ", ".join(map(repr, sorted(_REGISTRY)))
        raise ValueError(
            f"engine={name!r} is unknown; use one of {known}, or add one with register_engine"
        )
    return _REGISTRY[name]
