"""FairProjClassifier: the method of the paper."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from fairproj.boosting.certificate import ROUNDING
from fairproj.boosting.finish import Outcome, Run, finish_projection
from fairproj.boosting.loop import boost
from fairproj.boosting.moments import Moments, constraint_rows, make_moments
from fairproj.boosting.projected import ProjectedWeights
from fairproj.boosting.projection import BlockProjector, Projection, Projector
from fairproj.boosting.record import Round, StopReason
from fairproj.boosting.resume import RunFacts, check_same_learner, check_same_run, nothing_to_add
from fairproj.boosting.weights import ExponentialWeights
from fairproj.data.checks import check_slack, percent
from fairproj.data.sample import Sample
from fairproj.data.types import Array
from fairproj.data.user_warning import warn_user
from fairproj.estimators.base import SHARED_CONSTRAINTS, BoostedClassifier, Prepared


class FairProjClassifier(BoostedClassifier):
    """Boosted classifier trained on weights that balance groups (FairProj, Asiaee & Aryan 2026).

    Each round projects the exponential weights q of AdaBoost on the distributions w that satisfy
    ``|<w, g_k>| <= epsilon``, fits the weak learner on w, and takes its vote from its error under
    q. The constraint binds the *training weights*: it is a surrogate for equal rates of the
    predictions, and no guarantee of them; `FairBoostClassifier` bounds the gap of the predictions.
    Each model carries a `certificate_` of its training loss and of what fairness cost it.

    Parameters
    ----------
    constraints : str, Constraint, array of shape (n_rows, n_constraints) or None
        What must balance: ``"demographic_parity"``, ``"equal_opportunity"`` (the same as
        ``"true_positive_rate_parity"``), ``"false_positive_rate_parity"``, ``"equalized_odds"``,
        ``"accuracy_parity"`` (of training weights the same as demographic parity); an object of
        `fairproj.constraints`; an array of features g; or None for plain AdaBoost.
    epsilon : float or sequence of float, default=0.1
        The largest difference between the masses of two groups under the training weights, one
        number or one for each constraint. At 1, the most that makes sense, the named constraints
        bind nothing.
    estimator : scikit-learn classifier, optional
        The weak learner; it must take ``sample_weight``. By default the built-in trees.
    engine : {"lightgbm", "xgboost"} or str, default="lightgbm"
        Who grows the built-in trees; `fairproj.engines.register_engine` adds others. XGBoost (extra
        ``xgboost``) also trains out of core and on a cluster.
    engine_params : dict, optional
        Further parameters of the engine, by its own names, such as ``{"device": "cuda"}`` for
        XGBoost on a GPU.
    n_estimators : int, default=100
        The most rounds.
    learning_rate : float, default=1.0
        Share of each vote that is used, at most 1.
    max_depth, max_leaf_nodes : int, optional
        Size of the built-in trees; stumps where both are None.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the weights w in a leaf of a built-in tree.
    votes : {"discrete", "confidence"}, default="discrete"
        Whether a learner predicts -1 or +1, as in the paper, or its confidence in between.
    max_bins : int, default=255
        Most bins of a column, for the built-in trees.
    categorical_features : "from_dtype" or sequence, default="from_dtype"
        Columns the built-in trees treat as categories, by name, position or mask (of X as given to
        fit). By default those of a data frame with a category, enum or string type.
    sensitive_columns : str, int or sequence of them, optional
        Columns of X that hold the sensitive features, by name or position. The learners do not see
        them, and X may lack them at predict. An alternative to ``fit(sensitive_features=...)``.
    pos_label : label, optional
        Which label the constraints call positive; by default the larger in sort order.
    warm_start : bool, default=False
        Continue from the last fit, on the same rows, up to ``n_estimators`` rounds in all.
    n_jobs : int, optional
        Threads of the built-in trees; None means 1, -1 all cores.
    random_state : int, RandomState or None
        Seeds the estimators. The built-in trees use no randomness.
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
    booster_ : lightgbm.Booster or xgboost.Booster
        The whole ensemble as one model of the engine (built-in trees only), whose prediction is the
        probability of ``classes_[1]``; see `to_matrix`. LightGBM's raw score is
        `decision_function`, XGBoost's the log-odds, in 32-bit floats.

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

    _facts: RunFacts
    _useful = True  # whether it errs less often than a constant; known in the run of `fit` only

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        "epsilon": "no_validation",
        "min_weight_fraction_leaf": [Interval(Real, 0, 0.5, closed="left")],
        "warm_start": ["boolean"],
    }
    _tree_parameters: ClassVar[dict[str, Any]] = {
        "max_depth": None,
        "max_leaf_nodes": None,
        "min_weight_fraction_leaf": 0.0,
        "engine_params": None,
    }

    def __init__(
        self,
        constraints: Any = "equal_opportunity",
        epsilon: Any = 0.1,
        *,
        estimator: Any = None,
        engine: str = "lightgbm",
        engine_params: dict[str, Any] | None = None,
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
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.constraints = constraints
        self.epsilon = epsilon
        self.estimator = estimator
        self.engine = engine
        self.engine_params = engine_params
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
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> FairProjClassifier:
        """Train on X, y and the rows' groups.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
            The built-in trees take missing values and categories as they are. With
            ``engine="xgboost"`` also the path of Parquet files (a file, a folder, a pattern or a
            list), or `fairproj.Batches`: rows that need not fit into memory.
        y : array-like of shape (n_rows,)
            Two classes of any kind. Where X is a path, this, the groups and the weights are names
            of columns; `Batches` have them with their rows.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            The groups; several columns are crossed. None means one group: plain AdaBoost.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts like two rows.

        Returns
        -------
        self
        """
        before = self._model_to_extend()
        if before is None:
            self._forget()
        else:
            check_same_learner(self._facts, self._learner_name)
        encoder = None if before is None else self._encoder
        return self._fit_prepared(  # nothing here keeps the prepared rows alive
            self._prepare(
                X,
                y,
                sensitive_features,
                sample_weight,
                encoder=encoder,
                reset=before is None,
            ),
            before,
        )

    def _fit_prepared(self, prepared: Prepared, before: Any = None) -> FairProjClassifier:
        """Fit on rows that are validated and encoded already."""
        sample = prepared.sample.with_weight()
        constraints = self.constraints
        if len(sample) < len(prepared.sample):
            constraints = constraint_rows(constraints, np.flatnonzero(prepared.sample.weight))
        self._warn_of_one_group(prepared, sample)
        moments = make_moments(constraints, sample.cells)
        # <w, g> is at most the largest |g|, which is 1 for the named constraints.
        largest = max(1.0, float(np.abs(moments.features).max(initial=0.0)))
        epsilon = check_slack(self.epsilon, moments.names, "epsilon", largest=largest)
        weights = ExponentialWeights(
            sample.y,
            sample.weight,
            moments.index,
            len(moments.features),
            margin=None if before is None else before.margin(sample.X),
            discrete=self.votes == "discrete",
            reduction=sample.reduction,
        )
        facts = RunFacts.of(
            sample,
            moments,
            epsilon,
            learner=self._learner_name,
            votes=self.votes,
            learning_rate=self.learning_rate,
        )
        if before is not None:
            recorded = self.history_[-1].log_loss
            check_same_run(self._facts, facts, recorded, weights.log_loss)
            if nothing_to_add(self.history_, self.n_estimators):
                return self
        self._facts = facts
        self._adopt(prepared, sample)
        engine = self._kind.bind(self._settings(), sample, before=before)
        constant_error = _constant_error(sample)
        del sample, prepared  # the engine has binned what it needs; a copy of X may be freed
        self._train(engine, weights, moments, epsilon, before)
        self._warn_of_outcome(constant_error, moments, epsilon)
        return self

    def _warn_of_outcome(self, constant_error: float, moments: Moments, epsilon: Array) -> None:
        error = self.certificate_.train_error
        self._useful = not moments.names or error < constant_error - ROUNDING
        if self.history_.stop_reason is StopReason.FALLBACK:
            warn_user(f"{StopReason.FALLBACK.sentence}; {self._advice(moments, epsilon)}")
        elif not self._useful:
            warn_user(
                f"the model is not useful: it errs on {percent(error)} of the training rows, and "
                f"the same prediction for everyone on {percent(constant_error)}; use stronger "
                "learners, for example max_depth=3, or FairBoostClassifier, which bounds the gap "
                "itself"
            )

    def _advice(self, moments: Moments, epsilon: Array) -> str:
        """What may help where no learner beats chance; epsilon only if it can be raised."""
        stronger = "use stronger learners, for example max_depth=3"
        if moments.names and epsilon.min() < 1:
            return f"raise epsilon (now {self.epsilon}) or {stronger}"
        return f"check that the features vary, or {stronger}"

    def _train(
        self,
        engine: Any,
        weights: ExponentialWeights,
        moments: Moments,
        epsilon: Array,
        before: Any,
    ) -> None:
        earlier = [] if before is None else list(self.history_)
        start = np.array(earlier[-1].multipliers) if earlier else None
        n_rounds = self.n_estimators - len(earlier)
        rounds = boost(
            self._control.engine(engine),
            ProjectedWeights(weights, self._projection_of(moments, epsilon), start),
            n_rounds=n_rounds,
            learning_rate=self.learning_rate,
            may_fall_back=not earlier,
        )

        def finish(learners: list[Any], records: list[Round], reason: StopReason) -> Outcome:
            scale = weights.link_scale
            run = Run(engine, scale, learners, records, reason, self.learning_rate, epsilon)
            return finish_projection(run, moments.names, weights.train_error())

        self._run(rounds, n_rounds, finish, earlier)

    def _projection_of(
        self, moments: Moments, epsilon: Array
    ) -> Callable[[Array, Array | None], Projection]:
        if moments.blocks is not None:
            return BlockProjector(moments.blocks.block, moments.blocks.event, epsilon)
        return self._projector(moments.features, epsilon)

    def _projector(
        self, features: Array, epsilon: Array
    ) -> Callable[[Array, Array | None], Projection]:
        """What chooses the training weights of each round."""
        return Projector(features, epsilon)

    def _model_to_extend(self) -> Any:
        return getattr(self, "_ensemble", None) if self.warm_start else None

    @property
    def _learner_name(self) -> str:
        return self.engine if self.estimator is None else type(self.estimator).__name__


def _constant_error(sample: Sample) -> float:
    """The share of the rows' weight that the better constant prediction gets wrong."""
    by_label: Array = np.asarray(np.bincount(sample.y > 0, sample.weight, 2), dtype=float)
    totals = sample.reduction.sum(by_label)
    return float(totals.min() / totals.sum())
