"""FairProjClassifier: the scikit-learn face of the loop. There is no mathematics in it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from fairproj import _validation as door
from fairproj._boost import boost
from fairproj._certificate import Certificate, ClosedLoopCertificate
from fairproj._continuation import RunFacts, check_same_learner, check_same_run, nothing_to_add
from fairproj._features import FeatureEncoder
from fairproj._losses import ExponentialWeights
from fairproj._outcome import Run, outcome
from fairproj._progress import Drain
from fairproj._rounds import History, Round, StopReason
from fairproj._sample import Sample, gather, matched, split_off
from fairproj._tilt import Chooser, ClosedLoop, ProjectedWeights
from fairproj._watch import Watch, watch_of
from fairproj.engines import Engine, Ensemble
from fairproj.engines.estimators import EstimatorEngine, EstimatorEnsemble
from fairproj.engines.trees import TreeEngine, TreeEnsemble

Array = NDArray[np.float64]


class FairProjClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Boosted classifier trained on weights that balance groups (FairProj, Asiaee & Aryan 2026).

    Each round projects the exponential weights q of AdaBoost on the distributions w that satisfy
    ``|<w, g_k>| <= epsilon``, fits the weak learner on w, and takes its vote from its error under
    q. The constraint binds the *training weights*: it is a surrogate for equal rates of the
    predictions, and no guarantee of them. With ``enforce="classifier"`` the weights are tilted
    until the *predictions'* rates are within epsilon of each other. Each model carries a
    `certificate_` of its training loss and of what fairness cost it.

    Parameters
    ----------
    constraints : str, Constraint, array of shape (n_rows, n_constraints) or None
        What must balance: ``"demographic_parity"``, ``"equal_opportunity"`` (the same as
        ``"true_positive_rate_parity"``), ``"false_positive_rate_parity"``, ``"equalized_odds"``; an
        object of `fairproj.constraints`; an array of features g; or None for plain AdaBoost.
    epsilon : float or sequence of float, default=0.1
        Slack: the largest difference between two groups, one number or one for each constraint. Of
        the weights' masses, or of the predictions' rates; see ``enforce``. From 1 on the named
        constraints bind nothing.
    enforce : {"distribution", "classifier"}, default="distribution"
        What epsilon bounds: the imbalance of the training weights, as in the paper, or the gap of
        the classifier's own predictions on the watched rows (the closed loop); a warning says so
        where that gap is out of reach.
    estimator : scikit-learn classifier, optional
        The weak learner; it must take ``sample_weight``. By default the built-in trees (LightGBM).
    n_estimators : int, default=100
        The most rounds.
    learning_rate : float, default=1.0
        Part of each vote that is used, at most 1.
    max_depth, max_leaf_nodes : int, optional
        Size of the built-in trees; stumps where both are None.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the weights w in a leaf of a built-in tree.
    votes : {"discrete", "confidence"}, default="discrete"
        Whether a learner says -1 or +1, as in the paper, or its confidence in between.
    max_bins : int, default=255
        Most bins of a column, for the built-in trees.
    categorical_features : "from_dtype" or sequence, default="from_dtype"
        Columns the built-in trees treat as categories, by name, position or mask (of X as given to
        fit). By default those of a data frame with a category, enum or string type.
    sensitive_columns : str, int or sequence of them, optional
        Columns of X that hold the sensitive features, by name or position. They are kept from the
        learners, and X may lack them at predict. An alternative to ``fit(sensitive_features=...)``.
    pos_label : label, optional
        Which label the constraints call positive; by default the larger in sort order.
    tilt_step, tilt_decay : float, default=2.0, 0.5
        Of the closed loop: after round t the tilt moves by ``tilt_step / t**tilt_decay`` times the
        part of a group's rate that is out of bounds.
    validation_fraction : float, optional
        Share of each group and label on which the closed loop watches the gap, held out from
        training. By default it watches the training rows, or those of ``fit(eval_set=...)``.
    warm_start : bool, default=False
        Go on from the last fit, on the same rows, up to ``n_estimators`` rounds in all.
    n_jobs : int, optional
        Threads of the built-in trees; None means 1, -1 all cores.
    random_state : int, RandomState or None
        Seeds the estimators and the choice of rows held out by ``validation_fraction``. The
        built-in trees use no randomness.
    verbose : bool, default=False
        Show a progress bar (needs ``rich``).

    Attributes
    ----------
    classes_ : array of shape (2,)
    n_features_in_ : int
        Number of features the learners see, sensitive columns not counted.
    feature_names_in_ : array of str
        Their names, where X had names.
    group_values_ : list
        The groups found in the sensitive features (tuples where columns were crossed).
    history_ : History
        One record a round.
    certificate_ : Certificate
        What the run proves about its training loss.
    estimators_ : list
        The weak learners: fitted estimators, or views of the trees.
    estimator_weights_ : array of shape (n_rounds,)
        Their votes (half of what scikit-learn's AdaBoostClassifier reports).
    estimator_errors_ : array of shape (n_rounds,)
        Their errors under q.
    feature_importances_ : array with one entry a feature
    booster_ : lightgbm.Booster
        The whole ensemble as one LightGBM model (built-in trees only). Its raw score is
        `decision_function`, its prediction the probability of ``classes_[1]``; see `to_matrix`.

    Notes
    -----
    Rows of weight zero are left out. A sensitive feature must not have missing values. If the first
    learner is no better than chance, the model is the majority class and a warning says so.

    Examples
    --------
    >>> from fairproj import FairProjClassifier
    >>> from fairproj.datasets import load_german
    >>> data = load_german()
    >>> model = FairProjClassifier("equal_opportunity", epsilon=0.1)
    >>> model = model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> model.predict(data.data).shape
    (1000,)
    """

    classes_: NDArray[Any]
    group_values_: list[Any]
    history_: History
    certificate_: Certificate | ClosedLoopCertificate
    n_features_in_: int
    _ensemble: Ensemble
    _encoder: FeatureEncoder
    _facts: RunFacts
    _sensitive_columns: list[Any]
    _stream: np.random.RandomState
    metadata_: dict[str, Any]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "constraints": "no_validation",
        "epsilon": "no_validation",
        "enforce": [StrOptions({"distribution", "classifier"})],
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "max_leaf_nodes": [Interval(Integral, 2, 131072, closed="both"), None],
        "min_weight_fraction_leaf": [Interval(Real, 0, 0.5, closed="left")],
        "votes": [StrOptions({"discrete", "confidence"})],
        "max_bins": [Interval(Integral, 2, 65535, closed="both")],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "sensitive_columns": ["array-like", str, Integral, None],
        "pos_label": "no_validation",
        "tilt_step": [Interval(Real, 0, 100, closed="right")],
        "tilt_decay": [Interval(Real, 0, 1, closed="both")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }

    def __init__(
        self,
        constraints: Any = "equal_opportunity",
        epsilon: Any = 0.1,
        *,
        enforce: Literal["distribution", "classifier"] = "distribution",
        estimator: Any = None,
        n_estimators: int = 100,
        learning_rate: float = 1.0,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_weight_fraction_leaf: float = 0.0,
        votes: Literal["discrete", "confidence"] = "discrete",
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        sensitive_columns: Any = None,
        pos_label: Any = None,
        tilt_step: float = 2.0,
        tilt_decay: float = 0.5,
        validation_fraction: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.constraints = constraints
        self.epsilon = epsilon
        self.enforce = enforce
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.votes = votes
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.sensitive_columns = sensitive_columns
        self.pos_label = pos_label
        self.tilt_step = tilt_step
        self.tilt_decay = tilt_decay
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
    ) -> FairProjClassifier:
        """Train on X, y and the rows' groups.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
            The built-in trees take missing values and categories as they are.
        y : array-like of shape (n_rows,)
            Two classes of any kind.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            The groups; several columns are crossed. None means one group: plain AdaBoost.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts like two rows.
        eval_set : tuple (X, y, sensitive_features) or (X, y, sensitive_features, sample_weight)
            Rows on which ``enforce="classifier"`` watches the gaps, instead of the training rows.
            With ``sensitive_columns``, (X, y).

        Returns
        -------
        self
        """
        self._check_together()
        self.__dict__.pop("metadata_", None)  # told of an older fit
        before = self._model_to_extend()
        if before is None:  # a fit that fails must not leave half of an older model
            for name in ("_ensemble", "history_", "certificate_"):
                self.__dict__.pop(name, None)
        else:
            check_same_learner(self._facts, self.estimator)
        sample, columns = self._enter(X, y, sensitive_features, sample_weight, reset=before is None)
        sample, held_out = self._hold_out(sample, eval_set)
        weights = ExponentialWeights(
            sample.y,
            sample.weight,
            sample.moments.index,
            len(sample.moments.features),
            margin=None if before is None else before.margin(sample.X),
            discrete=self.votes == "discrete",
        )
        facts = RunFacts.of(self, sample)
        if before is not None:
            recorded = self.history_[-1].log_exp_loss
            check_same_run(self._facts, facts, recorded, weights.log_loss)
            if nothing_to_add(self.history_, self.n_estimators):
                return self
        self._facts = facts
        self._sensitive_columns = columns
        self.classes_ = sample.classes
        self.group_values_ = sample.groups.values
        engine = self._engine(sample, before, held_out)
        # The engine has binned what it needs: a matrix made here must not outlive that.
        held_out = None if held_out is None else replace(held_out, X=None)
        self._train(engine, weights, replace(sample, X=None), before, held_out)
        if self.history_.stop_reason is StopReason.FALLBACK:
            advice = "use stronger learners, for example max_depth=3"
            if self.enforce == "distribution":
                advice = f"raise epsilon (now {self.epsilon}) or {advice}"
            warnings.warn(f"{StopReason.FALLBACK.value}; {advice}", UserWarning, stacklevel=3)
            return self
        if shortfall := getattr(self.certificate_, "shortfall", ""):
            warnings.warn(shortfall, UserWarning, stacklevel=3)
        return self

    def _check_together(self) -> None:
        """What no parameter shows alone."""
        self._check_loop()
        if self.n_jobs == 0:
            raise ValueError("n_jobs must be a number of threads, -1 or None; got 0")
        if self.estimator is None:
            return
        defaults = {"max_depth": None, "max_leaf_nodes": None, "min_weight_fraction_leaf": 0.0}
        given = [name for name, value in defaults.items() if getattr(self, name) != value]
        if given:
            raise ValueError(
                f"{' and '.join(given)} are for the built-in trees and would be ignored with "
                f"estimator={type(self.estimator).__name__}; set them on the estimator"
            )

    def _check_loop(self) -> None:
        if self.enforce == "classifier" and self.warm_start:
            raise ValueError(
                "warm_start is for enforce='distribution': the closed loop keeps its best round, "
                "and there is nothing to go on from; fit anew with more n_estimators"
            )
        if self.enforce == "distribution" and self.validation_fraction is not None:
            raise ValueError(
                "validation_fraction is for enforce='classifier' and would be ignored with "
                "enforce='distribution'; leave it out"
            )

    def _hold_out(self, sample: Sample, eval_set: Any) -> tuple[Sample, Sample | None]:
        """The training rows, and the rows to watch if these are others."""
        if eval_set is not None:
            if self.enforce == "distribution":
                raise ValueError(
                    "eval_set is for enforce='classifier' and would be ignored with "
                    "enforce='distribution'; leave it out"
                )
            if self.validation_fraction is not None:
                raise ValueError(
                    "eval_set and validation_fraction both say which rows to watch; leave one of "
                    "them out"
                )
            return sample, self._evaluation(sample, eval_set)
        if self.validation_fraction is None:
            return sample, None
        return split_off(sample, self.validation_fraction, self.random_state)

    def _evaluation(self, sample: Sample, eval_set: Any) -> Sample:
        """The explicit rows to watch, through the same door."""
        if not isinstance(eval_set, tuple | list) or len(eval_set) not in (2, 3, 4):
            raise ValueError(
                "eval_set must be (X, y, sensitive_features) or (X, y, sensitive_features, "
                f"sample_weight), got {type(eval_set).__name__}"
                + (f" of length {len(eval_set)}" if isinstance(eval_set, tuple | list) else "")
            )
        X, y, *rest = eval_set
        groups, weight = [*rest, None, None][:2]
        try:
            X, groups, _, _ = self._split(X, groups)
            if groups is None:
                raise ValueError("no sensitive features; pass (X, y, sensitive_features)")
            found = gather(
                self._checked(X, reset=False),
                y,
                groups,
                weight,
                constraints=None,
                epsilon=0.0,
                pos_label=self.pos_label,
                closed_loop=True,
            )
        except ValueError as error:
            raise ValueError(f"eval_set: {error}") from None
        found = matched(found, sample)
        if self.estimator is not None:
            return found
        return replace(found, X=self._encoder.transform(found.X))

    def _enter(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Sample, list[Any]]:
        """Everything through the door, and the sensitive columns of X.

        X becomes the trees' matrix, or stays as it is for ``estimator=``.
        """
        X, sensitive_features, columns, kept = self._split(X, sensitive_features)
        if reset and self.estimator is None:
            self._encoder = FeatureEncoder(self.categorical_features, self.max_bins, kept, columns)
        X = self._checked(X, reset=reset)
        sample = gather(
            X,
            y,
            sensitive_features,
            sample_weight,
            constraints=self.constraints,
            epsilon=self.epsilon,
            pos_label=self.pos_label,
            closed_loop=self.enforce == "classifier",
        )
        if self.estimator is not None:
            return sample, columns
        encode = self._encoder.fit_transform if reset else self._encoder.transform
        return replace(sample, X=encode(sample.X)), columns

    def _split(
        self, X: Any, sensitive_features: Any
    ) -> tuple[Any, Any, list[Any], list[int] | None]:
        """X without sensitive columns, the groups, those columns, and where the others stood."""
        door.check_table(X)
        if self.sensitive_columns is None:
            return X, sensitive_features, [], None
        if sensitive_features is not None:
            raise ValueError(
                "groups are given twice, by sensitive_columns and by sensitive_features; "
                "use one of them"
            )
        return door.split_sensitive_columns(X, self.sensitive_columns)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """X with its names, number of columns and kind checked, as scikit-learn does."""
        if door.is_frame(X):
            validate_data(self, X, skip_check_array=True, reset=reset)
            if not len(X):
                raise ValueError("X has 0 rows; at least one is required")
            return X
        door.refuse_complex(X)
        if self.estimator is None:
            with door.text_explained():
                return validate_data(
                    self,
                    X,
                    accept_sparse="csr",
                    dtype=[np.float64, np.float32],
                    ensure_all_finite="allow-nan",
                    reset=reset,
                )
        return validate_data(
            self,
            X,
            accept_sparse=["csr", "csc"],
            dtype=None,
            ensure_all_finite=not get_tags(self.estimator).input_tags.allow_nan,
            reset=reset,
        )

    def _engine(self, sample: Sample, before: Any, held_out: Sample | None) -> Engine:
        rows = None if held_out is None else held_out.X
        if self.estimator is not None:
            return EstimatorEngine(
                self.estimator,
                sample.X,
                sample.labels,
                sample.classes,
                sample.weight,
                votes=self.votes,
                random_state=self._random_stream(before),
                before=before,
                held_out=rows,
            )
        kept: list[TreeEngine] | None = self.__dict__.pop("_engines", None)
        if kept:  # data binned already, by a fit on the same rows
            kept[0].reset()
            return kept[0]
        engine = TreeEngine(
            sample.X,
            sample.y,
            feature_names=getattr(self, "feature_names_in_", None),
            categories=self._encoder.categories,
            max_depth=self.max_depth,
            max_leaf_nodes=self.max_leaf_nodes,
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            votes=self.votes,
            max_bins=self.max_bins,
            n_threads=effective_n_jobs(self.n_jobs),
            before=before,
            held_out=rows,
        )
        if kept is not None:
            kept.append(engine)
        return engine

    def _random_stream(self, before: Any) -> np.random.RandomState:
        """Random numbers that go on where those of an earlier run ended."""
        if before is None:
            self._stream = check_random_state(self.random_state)
        return self._stream

    def _chooser(self, sample: Sample, rounds: list[Round], watch: Watch | None) -> Chooser:
        """Who chooses w; after ``rounds`` already done, going on from the last."""
        if sample.watched is not None and watch is not None:
            return ClosedLoop(
                sample.watched, sample.epsilon, watch, step=self.tilt_step, decay=self.tilt_decay
            )
        start = np.array(rounds[-1].multipliers) if rounds else None
        return ProjectedWeights(sample.moments.features, sample.epsilon, start)

    def _train(
        self,
        engine: Engine,
        weights: ExponentialWeights,
        sample: Sample,
        before: Any,
        held_out: Sample | None,
    ) -> None:
        """Drain the loop. An interrupt keeps the rounds done, then goes on its way."""
        rounds = [] if before is None else list(self.history_)
        n_rounds = self.n_estimators - len(rounds)
        watch = watch_of(sample, held_out, engine, weights)
        run = boost(
            engine,
            weights,
            self._chooser(sample, rounds, watch),
            sample.moments.features,
            n_rounds=n_rounds,
            learning_rate=self.learning_rate,
            may_fall_back=not rounds,
        )
        learners: list[Any] = []
        reason = StopReason.INTERRUPTED
        try:
            steps = Drain(run, n_rounds, verbose=self.verbose)
            for learner, record in steps:
                learners.append(learner)
                rounds.append(record)
            reason = steps.outcome
        finally:
            if rounds:
                done = Run(
                    engine, weights, sample, watch, learners, rounds, reason, self.learning_rate
                )
                self._ensemble, self.history_, self.certificate_ = outcome(done)

    def _model_to_extend(self) -> Any:
        return getattr(self, "_ensemble", None) if self.warm_start else None

    def _margin(self, X: Any) -> Array:
        check_is_fitted(self, "certificate_")
        return self._ensemble.margin(self._matrix(X))

    def _matrix(self, X: Any) -> Any:
        door.check_table(X)
        if self._sensitive_columns:
            X = door.drop_sensitive_columns(X, self._sensitive_columns, self.n_features_in_)
        X = self._checked(X, reset=False)
        if isinstance(self._ensemble, TreeEnsemble):
            self._ensemble.n_threads = effective_n_jobs(self.n_jobs)
            return self._encoder.transform(X)
        return X

    def to_matrix(self, X: Any) -> Any:
        """X as `booster_` reads it: categories as codes, in the order of training.

        Only needed to use `booster_` by itself on anything but arrays of numbers and pandas frames
        with columns of category type.
        """
        self._fitted("to_matrix")
        return self._matrix(X)

    def save(self, path: str | os.PathLike[str], *, metadata: dict[str, Any] | None = None) -> None:
        """Write the fitted model to a file that `fairproj.load` opens safely; no pickle is used.

        See `fairproj.persistence.save`.
        """
        from fairproj.persistence import save

        save(self, path, metadata=metadata)

    def decision_function(self, X: Any) -> Array:
        """The margin f(x) = sum_t vote_t h_t(x); above zero speaks for ``classes_[1]``."""
        return self._margin(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row. Takes no groups and uses no randomness."""
        return self._labels(self._margin(X))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, 1 / (1 + exp(-2 f)) for ``classes_[1]``."""
        return self._probabilities(self._margin(X))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """The margin after 1, 2, ... rounds."""
        check_is_fitted(self, "certificate_")
        yield from self._ensemble.staged_margin(self._matrix(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """The predictions after 1, 2, ... rounds."""
        for margin in self.staged_decision_function(X):
            yield self._labels(margin)

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """The probabilities after 1, 2, ... rounds."""
        for margin in self.staged_decision_function(X):
            yield self._probabilities(margin)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """The accuracy after 1, 2, ... rounds."""
        for predicted in self.staged_predict(X):
            yield float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _labels(self, margin: Array) -> NDArray[Any]:
        return self.classes_[(margin > 0).astype(np.intp)]

    def _probabilities(self, margin: Array) -> Array:
        positive = expit(2 * margin)
        return np.column_stack([expit(-2 * margin), positive])

    @property
    def estimators_(self) -> list[Any]:
        ensemble = self._fitted("estimators_")
        if isinstance(ensemble, EstimatorEnsemble):
            return list(ensemble.learners)
        return [BoostedTree(self, t) for t in range(len(ensemble))]

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
        if not isinstance(ensemble, TreeEnsemble):
            raise AttributeError("booster_ exists for the built-in trees only, not for estimator=")
        return ensemble.booster

    def _fitted(self, name: str) -> Ensemble:
        if not hasattr(self, "_ensemble"):
            raise AttributeError(f"{name} exists after fit only; call fit first")
        return self._ensemble

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        if self.estimator is None:
            tags.input_tags.allow_nan = True
            tags.input_tags.categorical = True
            tags.input_tags.sparse = True
        else:
            inner = get_tags(self.estimator).input_tags
            tags.input_tags.allow_nan = inner.allow_nan
            tags.input_tags.sparse = inner.sparse
        return tags


class BoostedTree:
    """One of the built-in trees of a fitted model, as a weak learner."""

    def __init__(self, model: FairProjClassifier, t: int) -> None:
        self._model = model
        self._t = t
        self.classes_ = model.classes_

    def decision_function(self, X: Any) -> Array:
        """h(x) in [-1, 1]."""
        vote = self._model.history_[self._t].vote
        ensemble: Any = self._model._ensemble
        margin: Array = ensemble.tree_margin(self._model._matrix(X), self._t)
        return margin / (vote or 1.0)

    def predict(self, X: Any) -> NDArray[Any]:
        return self._model._labels(self.decision_function(X))

    def __repr__(self) -> str:
        return f"BoostedTree({self._t} of {len(self._model.history_)})"
