"""What both estimators share: reading input, predicting, staged output, saving."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, TypeVar, cast

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from fairproj.boosting.certificate import Certificate, GapCertificate
from fairproj.boosting.finish import Outcome
from fairproj.boosting.record import History, Round, StopReason
from fairproj.boosting.replay import RunControl
from fairproj.constraints import Constraint, find_constraint
from fairproj.data import columns
from fairproj.data.checks import check_aligned, listing
from fairproj.data.encoder import Encoding, FeatureEncoder
from fairproj.data.sample import Sample, make_sample
from fairproj.data.types import Array
from fairproj.data.user_warning import warn_user
from fairproj.engines import Ensemble, LearnerKind, LearnerSettings, find_engine
from fairproj.engines.base import ExplainableEnsemble, settle_ties
from fairproj.io.progress import RoundProgress, bar_title
from fairproj.io.sources import find_source

ENCODING_PARAMETERS: dict[str, Any] = {"max_bins": 255, "categorical_features": "from_dtype"}

SHARED_CONSTRAINTS: dict[str, Any] = {
    "constraints": "no_validation",
    "engine": [str],
    "estimator": [HasMethods(["fit", "predict"]), None],
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 1e-6, 1, closed="both")],  # below, every margin is a tie
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "max_leaf_nodes": [Interval(Integral, 2, 131072, closed="both"), None],
    "votes": [StrOptions({"discrete", "confidence"})],
    "engine_params": [dict, None],
    "max_bins": [Interval(Integral, 2, 65535, closed="both")],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "sensitive_columns": ["array-like", str, Integral, None],
    "pos_label": "no_validation",
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["boolean"],
}


Method = TypeVar("Method", bound=Callable[..., Any])


def takes_no_groups(method: Method) -> Method:
    """Explain the TypeError of a method of X alone that also gets groups.

    Its signature stays as it is: scikit-learn's metadata routing must not offer groups here.
    """

    @functools.wraps(method)
    def checked(self: Any, X: Any, **metadata: Any) -> Any:
        if metadata:
            raise TypeError(
                f"{method.__name__}() takes X only and got {listing(list(metadata))}; the model "
                "decides without knowing the groups, so leave it out: groups are for fit, and for "
                "measuring what was predicted"
            )
        return method(self, X)

    return cast("Method", checked)


@dataclass(frozen=True)
class Prepared:
    """Rows that are validated and encoded, for any number of fits on them or on parts of them.

    Attributes
    ----------
    sample : Sample
    n_features : int
    feature_names : array of str or None
    sensitive_columns : list
        The columns of X that hold the sensitive features.
    with_groups : bool
        Whether sensitive features were given.
    """

    sample: Sample
    n_features: int
    feature_names: NDArray[Any] | None
    sensitive_columns: list[Any]
    with_groups: bool

    def take(self, rows: Any) -> Prepared:
        return replace(self, sample=self.sample.take(np.asarray(rows)))


class BoostedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: a boosted ensemble with a history and a certificate."""

    classes_: NDArray[Any]
    group_values_: list[Any]
    history_: History
    certificate_: Certificate | GapCertificate
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    metadata_: dict[str, Any]
    _ensemble: Ensemble
    _encoder: FeatureEncoder | None
    _sensitive_columns: list[Any]
    _cut = 0.0  # class 1 is predicted where the margin exceeds it
    _control = RunControl()
    _tree_parameters: ClassVar[dict[str, Any]] = {}  # with their defaults

    # Parameters of every subclass.
    constraints: Any
    engine: str
    engine_params: dict[str, Any] | None
    estimator: Any
    n_estimators: int
    learning_rate: float
    votes: str
    categorical_features: Any
    max_bins: int
    sensitive_columns: Any
    pos_label: Any
    n_jobs: int | None
    random_state: Any
    verbose: bool

    # Preparing the input

    def _prepare(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        *,
        encoder: FeatureEncoder | None = None,
        fill: bool = False,
        reset: bool = True,
    ) -> Prepared:
        """Validate and encode everything that ``fit`` gets.

        ``encoder`` is that of an earlier fit, where its encoding must be used again; ``fill`` as in
        its ``transform``.
        """
        self._check_together()
        source = find_source(X, y, sensitive_features, sample_weight, self.sensitive_columns)
        if source is not None:
            from fairproj.estimators.sources import prepare_source

            return prepare_source(source, self, encoder)
        check_aligned(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        X, sensitive_features, taken, kept = self._split_columns(X, sensitive_features)
        X = self._check_features(X, reset=reset)
        sample = make_sample(X, y, sensitive_features, sample_weight, pos_label=self.pos_label)
        if self._kind.encodes:
            if encoder is None:
                encoder = FeatureEncoder(self.categorical_features, self.max_bins, kept, taken)
                X = encoder.fit_transform(X)
                encoder.refuse_dates()
            else:
                X = encoder.transform(X, fill=fill)
            if "missing" not in self._kind.accepts:
                encoder.refuse_missing(f"engine={self.engine!r}")
            sample = replace(sample, X=X, encoder=encoder, cache={})
        names = getattr(self, "feature_names_in_", None)
        given = sensitive_features is not None
        return Prepared(sample, self.n_features_in_, names, taken, given)

    def _check_together(self) -> None:
        """Refuse parameters that are valid one by one and not together."""
        if self.n_jobs == 0:
            raise ValueError("n_jobs must be a number of threads, -1 or None; got 0")
        kind = self._kind
        defaults = {**self._tree_parameters, **({} if kind.encodes else ENCODING_PARAMETERS)}
        ignored = [
            name
            for name, default in defaults.items()
            if name not in kind.parameters and not np.array_equal(getattr(self, name), default)
        ]
        if not ignored:
            return
        names = " and ".join(ignored)
        if self.estimator is None:
            raise ValueError(f"engine={kind.name!r} does not use {names}; leave them out")
        raise ValueError(
            f"estimator={type(self.estimator).__name__} takes the place of the built-in trees, "
            f"so {names} would be ignored; leave them out, or set them on the estimator"
        )

    @property
    def _kind(self) -> LearnerKind:
        if self.estimator is None:
            return find_engine(self.engine)
        if self.engine not in ("lightgbm", "sklearn"):
            raise ValueError(
                f"estimator= is fitted by engine='sklearn', and engine={self.engine!r} would "
                "ignore it; leave one of them out"
            )
        return find_engine("sklearn")

    def _split_columns(
        self, X: Any, sensitive_features: Any
    ) -> tuple[Any, Any, list[Any], list[int] | None]:
        """X without sensitive columns, the groups, those columns, and where the others stood."""
        return columns.split_columns(X, sensitive_features, self.sensitive_columns)

    def _check_features(self, X: Any, *, reset: bool) -> Any:
        """X with its names, number of columns and kind checked, as scikit-learn does."""
        if columns.is_frame(X):
            validate_data(self, X, skip_check_array=True, reset=reset)
            if not len(X):
                raise ValueError("X has 0 rows; at least one is required")
            return X
        columns.refuse_complex(X)
        if self._kind.encodes:
            return columns.check_numbers(self, X, accepts=self._kind.accepts, reset=reset)
        return validate_data(
            self,
            X,
            accept_sparse=["csr", "csc"],
            dtype=None,
            ensure_all_finite=not get_tags(self).input_tags.allow_nan,
            reset=reset,
        )

    def _learner_votes(self) -> str:
        """How the learners predict."""
        return self.votes

    def _settings(self) -> LearnerSettings:
        return LearnerSettings(
            votes=self._learner_votes(),
            estimator=self.estimator,
            **{name: getattr(self, name) for name in self._tree_parameters},
            max_bins=self.max_bins,
            n_threads=effective_n_jobs(self.n_jobs),
            random_state=self.random_state,
            feature_names=getattr(self, "feature_names_in_", None),
        )

    # Training

    def _adopt(self, prepared: Prepared, sample: Sample) -> None:
        """Take over what the rows say about input and labels."""
        self.n_features_in_ = prepared.n_features
        self.__dict__.pop("feature_names_in_", None)
        if prepared.feature_names is not None:
            self.feature_names_in_ = prepared.feature_names
        self._sensitive_columns = prepared.sensitive_columns
        self._encoder = sample.encoder
        self.classes_ = sample.classes
        self.group_values_ = sample.groups.values

    def _forget(self) -> None:
        """A fit that fails must not leave half of an older model."""
        fitted = ("_ensemble", "history_", "certificate_", "metadata_")
        for name in (*fitted, "_cut", "baseline_", "price_"):
            self.__dict__.pop(name, None)

    def _warn_of_one_group(self, prepared: Prepared, sample: Sample) -> None:
        if len(sample.groups.values) > 1:
            return
        if not isinstance(find_constraint(self.constraints), Constraint):
            return
        found = "no sensitive_features were given"
        if prepared.with_groups:
            found = f"sensitive_features holds one group only ({sample.groups.values[0]!s})"
        warn_user(
            f"{found}, so there is nothing to balance and this is plain boosting; pass the groups, "
            "or constraints=None if that is meant"
        )

    def _run(
        self,
        rounds: Generator[tuple[Any, Round], None, StopReason],
        n_rounds: int,
        finish: Callable[[list[Any], list[Round], StopReason], Outcome],
        earlier: Iterable[Round] = (),
    ) -> None:
        """Run the rounds and keep what comes out; an interrupt keeps the rounds that are done."""
        learners: list[Any] = []
        records: list[Round] = list(earlier)
        reason = StopReason.INTERRUPTED
        try:
            title = bar_title(self.constraints)
            progress = RoundProgress(rounds, n_rounds, verbose=self.verbose, title=title)
            for number, (learner, record) in enumerate(progress):
                learners.append(learner)
                records.append(record)
                self._control.record(number, learner, record)
            reason = progress.outcome
        finally:
            if records:
                outcome = finish(learners, records, reason)
                self._ensemble, self.history_, self.certificate_ = outcome

    # Predicting

    def _read(self, X: Any, *, fill: bool = False) -> Any:
        """X as the ensemble reads it."""
        columns.check_table(X)
        if self._sensitive_columns:
            X = columns.drop_sensitive_columns(X, self._sensitive_columns, self.n_features_in_)
        X = self._check_features(X, reset=False)
        return X if self._encoder is None else self._encoder.transform(X, fill=fill)

    def _margin(self, matrix: Any) -> Array:
        """The margin of rows that are encoded already."""
        return settle_ties(self._ensemble.margin(matrix, effective_n_jobs(self.n_jobs)))

    def _labels(self, margin: Array) -> NDArray[Any]:
        return self.classes_[(settle_ties(margin - self._cut) > 0).astype(np.intp)]

    def _probabilities(self, margin: Array) -> Array:
        scaled = self._ensemble.link_scale * margin
        return np.column_stack([expit(-scaled), expit(scaled)])

    def to_matrix(self, X: Any, *, missing: Literal["error", "score"] = "error") -> Any:
        """X as `booster_` reads it: categories as codes, in the order of training.

        Needed to use `booster_` by itself on anything but arrays of numbers and pandas frames with
        columns of category type, and to score rows that `predict` refuses for a missing number.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
        missing : {"error", "score"}, default="error"
            What to do about a number that is missing in a column that had none missing in training,
            so that the trees have no branch for it: refuse it, or put the median of the training
            rows in its place. `predict_matrix` then gives labels and probabilities.

        Returns
        -------
        array or sparse matrix of shape (n_rows, n_features)
        """
        self._fitted("to_matrix")
        if missing not in ("error", "score"):
            raise ValueError(f"missing must be 'error' or 'score', got {missing!r}")
        return self._read(X, fill=missing == "score")

    def predict_matrix(self, matrix: Any) -> tuple[NDArray[Any], Array]:
        """Labels and probabilities of rows that `to_matrix` has encoded, for work in batches.

        Parameters
        ----------
        matrix : array or sparse matrix
            From `to_matrix`.

        Returns
        -------
        labels : array of shape (n_rows,)
        probabilities : array of shape (n_rows, 2)
        """
        self._fitted("predict_matrix")
        margin = self._margin(matrix)
        return self._labels(margin), self._probabilities(margin)

    def unknown_values(self, X: Any, matrix: Any) -> dict[Any, Any]:
        """The values of each categorical column of a pandas X that training did not know.

        Such values count as missing.

        Parameters
        ----------
        X : data frame
        matrix : array or sparse matrix
            What `to_matrix` made of X.

        Returns
        -------
        dict
            Values by the name of their column.
        """
        self._fitted("unknown_values")
        return {} if self._encoder is None else self._encoder.unknown(X, matrix)

    @property
    def link_scale_(self) -> float:
        """The log-odds of ``classes_[1]`` are this times the margin: 1 or 2, by the loss."""
        return self._fitted("link_scale_").link_scale

    @property
    def encoding_(self) -> Encoding | None:
        """How columns of new rows are encoded; None with ``estimator=``."""
        self._fitted("encoding_")
        return None if self._encoder is None else self._encoder.encoding

    @takes_no_groups
    def decision_function(self, X: Any) -> Array:
        """The margin f(x): an intercept plus sum_t vote_t h_t(x).

        Above zero, the probability of ``classes_[1]`` is above one half. That is also where
        `predict` decides, unless a `FairBoostClassifier` decides at another ``threshold_``.

        A margin within 1e-9 of zero is a tie and returned as 0, so that the order of a sum decides
        no label.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self, "certificate_")
        return self._margin(self._read(X))

    @takes_no_groups
    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row. Takes no groups and uses no randomness.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
            Values of ``classes_``.
        """
        return self._labels(self.decision_function(X))

    @takes_no_groups
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, by the link of the loss.

        That of ``classes_[1]`` is 1 / (1 + exp(-f)) for logistic and 1 / (1 + exp(-2 f)) for
        exponential loss.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, 2)
            A column for each of ``classes_``.
        """
        return self._probabilities(self.decision_function(X))

    def contributions(self, X: Any) -> Array:
        """What each feature adds to the margin of each row: SHAP values of the trees.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        contributions : array of shape (n_rows, n_features + 1)
            In units of `decision_function`, and like it about ``classes_[1]``, the label that is
            last in sort order, even where ``pos_label`` is ``classes_[0]``: a value above 0 pushes
            the row towards ``classes_[1]``. Reports and ``fairproj predict --reasons`` are about
            the positive label, so with ``pos_label=classes_[0]`` their signs are the opposite
            ones. The last column is the base value, the average margin of the training rows, and
            the same in all rows. The columns of a row add up to its margin; with
            ``engine="xgboost"`` up to the rounding of 32-bit floats.

        Raises
        ------
        ValueError
            With ``estimator=``, whose learners need not be trees.

        See Also
        --------
        feature_importances_ : Importances of the features over all training rows.

        Notes
        -----
        The values are those of Lundberg et al. (2020), "From local explanations to global
        understanding with explainable AI for trees", with ``feature_perturbation =
        "tree_path_dependent"``, computed by LightGBM or XGBoost itself. The average at a node of a
        tree counts rows in LightGBM, and weighs them by their Hessians in XGBoost.

        They explain the model, and not why people differ. Of features that are correlated, the
        model may use one, and then only that one has a contribution.
        """
        check_is_fitted(self, "certificate_")
        return self.contributions_matrix(self._read(X))

    def contributions_matrix(self, matrix: Any) -> Array:
        """The `contributions` of rows that `to_matrix` has encoded, for work in batches.

        Parameters
        ----------
        matrix : array or sparse matrix
            From `to_matrix`.

        Returns
        -------
        array of shape (n_rows, n_features + 1)
        """
        ensemble = self._fitted("contributions_matrix")
        if not hasattr(ensemble, "contributions"):
            learner = f"engine={self.engine!r}"
            if self.estimator is not None:
                learner = f"estimator={type(self.estimator).__name__}"
            raise ValueError(
                f"contributions come from the built-in trees, and this model has {learner}; train "
                "without it, or explain decision_function with the shap package"
            )
        explainable = cast("ExplainableEnsemble", ensemble)
        return explainable.contributions(matrix, effective_n_jobs(self.n_jobs))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """The margin after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        iterator of array of shape (n_rows,)
        """
        check_is_fitted(self, "certificate_")
        for margin in self._ensemble.staged_margin(self._read(X), effective_n_jobs(self.n_jobs)):
            yield settle_ties(margin)

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """The predictions after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        iterator of array of shape (n_rows,)
        """
        for margin in self.staged_decision_function(X):
            yield self._labels(margin)

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """The probabilities after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)

        Returns
        -------
        iterator of array of shape (n_rows, 2)
        """
        for margin in self.staged_decision_function(X):
            yield self._probabilities(margin)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """The accuracy after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        iterator of float
        """
        for predicted in self.staged_predict(X):
            yield float(accuracy_score(y, predicted, sample_weight=sample_weight))

    # What the model holds

    @property
    def estimators_(self) -> list[Any]:
        ensemble = self._fitted("estimators_")
        learners = [ensemble.learner(t) for t in range(len(ensemble.votes))]
        return [
            WeakLearner(self, t, learner) if hasattr(learner, "predict_h") else learner
            for t, learner in enumerate(learners)
        ]

    @property
    def estimator_weights_(self) -> Array:
        self._fitted("estimator_weights_")
        return self.history_.columns["vote"][: self.history_.n_kept]

    @property
    def estimator_errors_(self) -> Array:
        self._fitted("estimator_errors_")
        return self.history_.columns["error_q"][: self.history_.n_kept]

    @property
    def feature_importances_(self) -> Array:
        return self._fitted("feature_importances_").feature_importances

    @property
    def booster_(self) -> Any:
        ensemble = self._fitted("booster_")
        if not hasattr(ensemble, "booster"):
            raise AttributeError("booster_ exists for the built-in trees only, not for estimator=")
        return ensemble.booster

    def _fitted(self, name: str) -> Ensemble:
        if not hasattr(self, "_ensemble"):
            raise AttributeError(f"{name} exists after fit only; call fit first")
        return self._ensemble

    def save(self, path: str | os.PathLike[str], *, metadata: dict[str, Any] | None = None) -> None:
        """Write the fitted model to a file that `fairproj.load` opens safely; no pickle is used.

        Parameters
        ----------
        path : path
            An existing file is replaced, all at once.
        metadata : dict, optional
            Texts, numbers, lists and dicts to keep with the model, read back as ``metadata_``.

        Notes
        -----
        Needs ``msgspec`` and, with ``estimator=``, ``skops``.
        """
        from fairproj.estimators.saving import save

        save(self, path, metadata=metadata)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        if self.estimator is None:
            accepts = self._kind.accepts
            tags.input_tags.allow_nan = "missing" in accepts
            tags.input_tags.categorical = True
            tags.input_tags.sparse = "sparse" in accepts
        else:
            inner = get_tags(self.estimator).input_tags
            tags.input_tags.allow_nan = inner.allow_nan
            tags.input_tags.sparse = inner.sparse
        return tags


class WeakLearner:
    """One of the built-in trees of a fitted model, as a classifier."""

    def __init__(self, model: BoostedClassifier, t: int, learner: Any) -> None:
        self._model, self._t, self._learner = model, t, learner
        self.classes_ = model.classes_

    def decision_function(self, X: Any) -> Array:
        """h(x): in [-1, 1], or any number with Newton steps."""
        h: Array = self._learner.predict_h(self._model._read(X))
        return h

    def predict(self, X: Any) -> NDArray[Any]:
        return self.classes_[(self.decision_function(X) > 0).astype(np.intp)]

    def __repr__(self) -> str:
        return f"WeakLearner({self._t} of {len(self._model._ensemble.votes)})"
