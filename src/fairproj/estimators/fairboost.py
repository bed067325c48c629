"""FairBoostClassifier: gradient boosting whose gap between groups is bounded by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_monotonic_cst

from fairproj.boosting.finish import Outcome, Run, finish_signed_costs, probability_at
from fairproj.boosting.loop import boost
from fairproj.boosting.losses import Loss, find_loss
from fairproj.boosting.monitor import Monitor
from fairproj.boosting.multipliers import Multipliers
from fairproj.boosting.operating_point import (
    OperatingPoint,
    Threshold,
    error_rate_limit,
    selection_rate,
)
from fairproj.boosting.record import Round, StopReason
from fairproj.boosting.requirements import (
    Requirements,
    check_watched_rows,
    fewest_rows,
    find_requirements,
    warn_of_few_rows,
)
from fairproj.boosting.rows import ScoredRows
from fairproj.boosting.signed_costs import SignedCosts
from fairproj.data.cells import Cells
from fairproj.data.checks import check_aligned, listing
from fairproj.data.sample import Sample, make_sample, match_groups, split_sample
from fairproj.data.types import Array
from fairproj.data.user_warning import warn_user
from fairproj.engines import LearnerSettings
from fairproj.estimators.base import SHARED_CONSTRAINTS, BoostedClassifier, Prepared
from fairproj.estimators.price import Price, measure_price

HELD_OUT = 0.25
# Watching held-out rows was better down to about ten rows of the smallest group in an event; with
# fewer, one row moves its rate by more than most gaps (benchmarks/watched.py).
FEWEST_HELD_OUT = 10
# Of `baseline_`, where they differ from the model's. One gap, since several would need as many
# constraints.
BASELINE_PARAMETERS: dict[str, Any] = {"constraints": None, "max_gap": 1.0, "baseline": False}
_SHARES = ("selection_rate", "max_false_positive_rate", "max_false_negative_rate")
_POINTS = ("threshold", *_SHARES)
LARGEST_RATIO = 1e12  # of class weights


class FairBoostClassifier(BoostedClassifier):
    """Gradient boosting whose gap between groups is at most ``max_gap`` on the watched rows.

    Each round measures the rates of the ensemble's predictions by group, and the costs of the rows
    follow: a group that is predicted positive too often pays for it, up to the point where labels
    of a (group, label) cell flip. Of all rounds within ``max_gap`` the one of least loss is kept.
    Where no round is, a constant is added to the margin (a bias); where that does not help either,
    or the model says the same to nearly everyone, a warning says so. A `FairnessReport` on held-out
    rows tells what holds for new rows.

    Parameters
    ----------
    constraints : str, Constraint, list of them or None
        The rates that must be alike: ``"demographic_parity"``, ``"equal_opportunity"`` (the same as
        ``"true_positive_rate_parity"``), ``"false_positive_rate_parity"``, ``"equalized_odds"``,
        ``"accuracy_parity"``, ``"selection_ratio"`` (the four-fifths rule is ``max_gap=0.2``); an
        object of `fairproj.constraints`; several of these; or None for plain boosting.
    max_gap : float or sequence of float, default=0.05
        The largest difference between two groups' rates of predictions, or 1 minus their smallest
        ratio. One number; or one for each constraint of a list; or one for each rate of a
        constraint (equalized odds has two).
    loss : str, default="logistic"
        What is minimised: ``"logistic"``, ``"exponential"``, or a loss added with
        `fairproj.boosting.register_loss`.
    tree_step : {"newton", "first_order"}, default="newton"
        With Newton steps trees are the engine's own, and with ``constraints=None`` and the default
        threshold the model is that of `lightgbm.LGBMClassifier` or `xgboost.XGBClassifier`.
        First-order steps come with a proved bound on the loss. The exponential loss takes
        first-order steps always.
    estimator : scikit-learn classifier, optional
        The weak learner, for first-order steps; it must take ``sample_weight``. By default the
        built-in trees.
    engine : {"lightgbm", "xgboost"} or str, default="lightgbm"
        Who grows the built-in trees; `fairproj.engines.register_engine` adds others. XGBoost (extra
        ``xgboost``) also trains out of core and on a cluster.
    engine_params : dict, optional
        Further parameters of the engine, by its own names, such as ``{"device": "cuda"}`` for
        XGBoost on a GPU.
    n_estimators : int, default=100
        The most rounds.
    learning_rate : float, default=0.1
        Share of each step that is taken, at most 1.
    max_depth, max_leaf_nodes : int, optional, default=None, 31
        Size of the built-in trees.
    min_samples_leaf : int, default=20
        Fewest rows in a leaf, as the engine estimates them from Hessians; 0 for no bound.
    l2_regularization : float, default=0.0
    subsample, max_features : float, default=1.0
        Share of the rows and of the features that each tree sees, drawn at random.
    monotonic_cst : array-like of int or dict, optional
        1, 0 or -1 for each feature, or by name: whether predictions may only rise with it, may do
        both, or may only fall.
    votes : {"confidence", "discrete"}, default="confidence"
        In first-order steps: whether a learner predicts its confidence between -1 and +1, or one of
        these two.
    max_bins : int, default=255
        Most bins of a column, for the built-in trees.
    categorical_features : "from_dtype" or sequence, default="from_dtype"
        Columns the built-in trees treat as categories, by name, position or mask (of X as given to
        fit). By default those of a data frame with a category, enum or string type.
    class_weight : dict, "balanced" or None
        What an error costs, by label; ``"balanced"`` weighs labels inversely to their frequency.
        Rates are not affected.
    threshold : float, optional
        The probability of the positive label above which it is predicted, and at which gaps are
        watched; 0.5 by default. A bias, where one is needed, moves the probabilities.
    selection_rate : float, optional
        The share of the rows to predict positive, instead of a threshold.
    max_false_positive_rate, max_false_negative_rate : float, optional
        A limit on the error rate over all groups, instead of a threshold: as many positive (or
        negative) predictions are made as it allows.
    validation_fraction : "auto", float or None, default="auto"
        Share of each group and label that is held out from training, and on which gaps are watched.
        None watches the training rows. "auto" holds out a quarter if at least 10 rows of the
        smallest group of each rate are among them, and watches the training rows otherwise. Rows
        given as ``fit(X_val=...)`` are watched instead.
    margin : {"one_se"} or None
        "one_se" asks for gaps within ``max_gap`` by one standard error, for those who must not
        exceed it on new rows.
    early_stopping : bool, default=False
        Stop when ``n_iter_no_change`` rounds did not lower the loss on the rows held out, counted
        from the first useful round within ``max_gap``.
    n_iter_no_change : int, default=10
    baseline : bool, default=False
        Whether to train the same settings without a constraint too, and to measure what the
        constraint cost; see ``price_``. Of both models the useful round of least loss on the
        watched rows is kept.
    sensitive_columns : str, int or sequence of them, optional
        Columns of X that hold the sensitive features, by name or position. The learners do not see
        them, and X may lack them at predict. An alternative to ``fit(sensitive_features=...)``.
    pos_label : label, optional
        Which label the constraints call positive; by default the larger in sort order.
    n_jobs : int, optional
        Threads of the built-in trees; None means 1, -1 all cores.
    random_state : int, RandomState or None
        Seeds the choice of rows held out, ``subsample``, ``max_features`` and estimators.
    verbose : bool, default=False
        Show a progress bar (needs ``rich``).

    Attributes
    ----------
    classes_ : array of shape (2,)
    threshold_ : float
        The probability of the positive label above which `predict` says it. The gap was bounded
        there and nowhere else; see `fairproj.metrics.gap_curve`.
    n_features_in_ : int
        Number of features the learners see, sensitive columns not counted.
    feature_names_in_ : array of str
        Their names, where X had names.
    group_values_ : list
        The groups found in the sensitive features (tuples where columns were crossed).
    history_ : History
        One record a round.
    certificate_ : GapCertificate
        Whether the gap was met on the watched rows, and what the run proves about its loss.
    baseline_ : FairBoostClassifier
        The model without a constraint, with ``baseline=True``.
    price_ : Price
        What the constraint cost, with ``baseline=True``: accuracy, AUC, log loss and calibration of
        both models.
    estimators_ : list
        The weak learners: fitted estimators, or views of the trees.
    estimator_weights_ : array of shape (n_rounds,)
        Their votes.
    estimator_errors_ : array of shape (n_rounds,)
        Their errors under q.
    feature_importances_ : array with one entry a feature
    booster_ : lightgbm.Booster or xgboost.Booster
        The whole ensemble as one model of the engine (built-in trees only), whose prediction is the
        probability of ``classes_[1]``; see `to_matrix`. LightGBM's raw score is
        `decision_function`, XGBoost's the log-odds, in 32-bit floats.

    Notes
    -----
    Rows of weight zero are left out. A sensitive feature must not have missing values. If no tree
    can be grown, the model is the majority class and a warning says so.

    Examples
    --------
    >>> from fairproj import FairBoostClassifier
    >>> from fairproj.datasets import load_compas
    >>> data = load_compas()
    >>> model = FairBoostClassifier("equal_opportunity", max_gap=0.05, random_state=0)
    >>> model = model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> model.certificate_.met
    True
    """

    baseline_: FairBoostClassifier
    price_: Price

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        "max_gap": "no_validation",
        "loss": [str],
        "tree_step": [StrOptions({"newton", "first_order"})],
        "min_samples_leaf": [Interval(Integral, 0, None, closed="left")],
        "l2_regularization": [Interval(Real, 0, None, closed="left")],
        "subsample": [Interval(Real, 0, 1, closed="right")],
        "max_features": [Interval(Real, 0, 1, closed="right")],
        "monotonic_cst": ["array-like", dict, None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **{name: [Interval(Real, 0, 1, closed="neither"), None] for name in _POINTS},
        "validation_fraction": [
            Interval(Real, 0, 1, closed="neither"),
            StrOptions({"auto"}),
            None,
        ],
        "margin": [StrOptions({"one_se"}), None],
        "early_stopping": ["boolean"],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "baseline": ["boolean"],
    }
    _tree_parameters: ClassVar[dict[str, Any]] = {
        "max_depth": None,
        "max_leaf_nodes": 31,
        "min_samples_leaf": 20,
        "l2_regularization": 0.0,
        "subsample": 1.0,
        "max_features": 1.0,
        "monotonic_cst": None,
        "engine_params": None,
    }

    def __init__(
        self,
        constraints: Any = "equal_opportunity",
        max_gap: Any = 0.05,
        *,
        loss: str = "logistic",
        tree_step: Literal["newton", "first_order"] = "newton",
        estimator: Any = None,
        engine: str = "lightgbm",
        engine_params: dict[str, Any] | None = None,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = 31,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        subsample: float = 1.0,
        max_features: float = 1.0,
        monotonic_cst: Any = None,
        votes: Literal["confidence", "discrete"] = "confidence",
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        class_weight: Any = None,
        threshold: float | None = None,
        selection_rate: float | None = None,
        max_false_positive_rate: float | None = None,
        max_false_negative_rate: float | None = None,
        validation_fraction: float | Literal["auto"] | None = "auto",
        margin: Literal["one_se"] | None = None,
        early_stopping: bool = False,
        n_iter_no_change: int = 10,
        baseline: bool = False,
        sensitive_columns: Any = None,
        pos_label: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.constraints = constraints
        self.max_gap = max_gap
        self.loss = loss
        self.tree_step = tree_step
        self.estimator = estimator
        self.engine = engine
        self.engine_params = engine_params
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.subsample = subsample
        self.max_features = max_features
        self.monotonic_cst = monotonic_cst
        self.votes = votes
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.threshold = threshold
        self.selection_rate = selection_rate
        self.max_false_positive_rate = max_false_positive_rate
        self.max_false_negative_rate = max_false_negative_rate
        self.validation_fraction = validation_fraction
        self.margin = margin
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.baseline = baseline
        self.sensitive_columns = sensitive_columns
        self.pos_label = pos_label
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features_val: Any = None,
        sample_weight_val: Any = None,
    ) -> FairBoostClassifier:
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
            The groups; several columns are crossed. None means one group: plain boosting.
        sample_weight : array-like of shape (n_rows,), optional
            Only ratios of weights matter.
        X_val, y_val, sensitive_features_val, sample_weight_val : optional
            Rows on which the gap is watched instead of the training rows. With
            ``sensitive_columns``, X_val holds the groups.

        Returns
        -------
        self
        """
        self._forget()
        return self._fit_prepared(  # nothing here keeps the prepared rows alive
            self._prepare(X, y, sensitive_features, sample_weight),
            (X_val, y_val, sensitive_features_val, sample_weight_val),
        )

    def _check_together(self) -> None:
        super()._check_together()
        given = [name for name in _POINTS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(
                f"{given[0]} and {given[1]} both say where to decide; give one of them"
            )
        if self._uses_newton() and self.estimator is not None:
            raise ValueError(
                f"estimator={type(self.estimator).__name__} learns from weights and labels and "
                "cannot take Newton steps; set tree_step='first_order'"
            )
        if self._uses_newton() and self.votes != "confidence":
            raise ValueError(
                f"votes={self.votes!r} is for first-order steps, and Newton steps have values of "
                "their own; set tree_step='first_order' or leave votes out"
            )
        if self.baseline and self.constraints is None:
            raise ValueError(
                "baseline=True compares with the same settings without a constraint, and "
                "constraints is None already; leave one of them out"
            )

    def _uses_newton(self) -> bool:  # no property: dir() would ask for the loss
        return self.tree_step == "newton" and find_loss(self.loss).newton

    def _learner_votes(self) -> str:
        return "newton" if self._uses_newton() else self.votes

    def _settings(self) -> LearnerSettings:
        settings = super()._settings()
        if self.monotonic_cst is None:
            return settings
        return replace(settings, monotonic_cst=_check_monotonic_cst(self, self.monotonic_cst))

    def _fit_prepared(
        self,
        prepared: Prepared,
        validation: tuple[Any, ...] = (None,) * 4,
        *,
        choose_best: bool = False,
    ) -> FairBoostClassifier:
        """Fit on rows that are validated and encoded already; ``choose_best`` as in `_train`."""
        sample = prepared.sample.with_weight()
        self._warn_of_one_group(prepared, sample)
        self._adopt(prepared, sample)
        required = find_requirements(self.constraints, self.max_gap, sample.cells)
        sample, held_out = self._hold_out(sample, validation, required, prepared.with_groups)
        del prepared
        if self.baseline:
            self._train_both(sample, held_out)
        else:
            parts = [sample, held_out]
            del sample, held_out  # the engine bins what it needs; a copy of X may be freed
            self._train(parts.pop(0), parts.pop(0), self._settings(), choose_best=choose_best)
        self._warn_of_outcome()
        return self

    def _train_both(self, sample: Sample, held_out: Sample | None) -> None:
        """With and without the constraint: same rows, seed and choice of the round by its loss."""
        settings = self._settings()
        if not isinstance(settings.random_state, Integral):
            seed = check_random_state(settings.random_state).randint(np.iinfo(np.int32).max)
            settings = replace(settings, random_state=int(seed))
        self._train(sample, held_out, settings)
        plain = self._without_constraint()
        plain._take_over(self)
        plain._train(sample, held_out, settings, choose_best=True)
        self.baseline_ = plain
        self.price_ = measure_price(self, plain, sample if held_out is None else held_out)

    def _without_constraint(self) -> FairBoostClassifier:
        """The same settings without a constraint, not fitted."""
        plain: FairBoostClassifier = clone(self).set_params(**BASELINE_PARAMETERS)
        return plain

    def _take_over(self, other: FairBoostClassifier) -> None:
        """What another model learnt about input and labels."""
        names = ("n_features_in_", "feature_names_in_", "classes_", "group_values_")
        for name in (*names, "_sensitive_columns", "_encoder"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))

    def _train(
        self, sample: Any, held_out: Any, settings: LearnerSettings, *, choose_best: bool = False
    ) -> None:
        """Run all rounds; ``choose_best`` keeps that of least loss also without a constraint."""
        n_rows = sample.n_rows
        if settings.subsample * n_rows < 1:
            raise ValueError(
                f"subsample={self.subsample:g} leaves no row of {n_rows} for a tree; raise it"
            )
        objective = self._objective(sample, held_out)
        engine = self._kind.bind(settings, sample, held_out)
        del sample, held_out
        rounds = boost(
            self._control.engine(engine),
            objective,
            n_rounds=self.n_estimators,
            learning_rate=self.learning_rate,
        )

        def finish(learners: list[Any], records: list[Round], reason: StopReason) -> Outcome:
            limits = objective.monitor.requirements.limits
            scale, rate = objective.loss.link_scale, self.learning_rate
            run = Run(engine, scale, learners, records, reason, rate, limits)
            outcome = finish_signed_costs(
                run, objective, choose_best=choose_best or self.early_stopping
            )
            observed: Any = outcome.history[outcome.history.n_kept - 1].observed
            self._cut = float(observed.cut)
            return outcome

        self._run(rounds, self.n_estimators, finish)

    def _objective(self, sample: Sample, held_out: Sample | None) -> SignedCosts:
        required = find_requirements(self.constraints, self.max_gap, sample.cells)
        if held_out is not None:
            check_watched_rows(required, held_out.cells)
        warn_of_few_rows(required, (sample if held_out is None else held_out).cells)
        loss = find_loss(self.loss)
        rows = ScoredRows(sample, loss, keep_slopes=True)
        class_cost = self._class_cost(rows.size, sample)
        monitor = Monitor(
            rows if held_out is None else ScoredRows(held_out, loss),
            "training rows" if held_out is None else "held-out rows",
            required,
            self._operating_point(sample.cells, loss),
            class_cost,
            unit=float(loss.value(np.zeros(1))[0]),
            spare=self.margin == "one_se",
        )
        return SignedCosts(
            rows,
            monitor,
            loss,
            class_cost,
            newton=self._uses_newton(),
            discrete=self.votes == "discrete",
            multipliers=self._multipliers(required, rows.size),
            patience=self.n_iter_no_change if self.early_stopping else None,
        )

    def _multipliers(self, required: Requirements, size: Array) -> Multipliers:
        """What moves the costs after each round."""
        return Multipliers(required.kinds, required.weights(size))

    def _class_cost(self, size: Array, sample: Sample) -> Array:
        """What an error costs in each cell, with mean one."""
        costs = np.ones(2)
        if isinstance(self.class_weight, Mapping):
            costs = self._given_costs(sample)
        elif self.class_weight == "balanced":
            costs = 1 / size.reshape(-1, 2).sum(axis=0)
        by_cell = np.tile(costs, len(size) // 2)
        return by_cell / float(size @ by_cell)

    def _given_costs(self, sample: Sample) -> Array:
        unknown = [label for label in self.class_weight if label not in list(sample.classes)]
        if unknown:
            raise ValueError(
                f"class_weight has {listing(unknown)}, and the labels are "
                f"{listing(sample.classes)}; give a weight for these"
            )
        given: list[Any] = [self.class_weight.get(label, 1.0) for label in sample.classes]
        numbers = all(isinstance(value, Real) for value in given)
        valid = numbers and all(0 < value < np.inf for value in given)
        if not valid or max(given) > LARGEST_RATIO * min(given):
            raise ValueError(
                "class_weight must hold positive numbers whose ratio is at most "
                f"{LARGEST_RATIO:g}, got {self.class_weight!r}"
            )
        return np.array(given, dtype=float)

    def _operating_point(self, cells: Cells, loss: Loss) -> OperatingPoint:
        if self.selection_rate is not None:
            return selection_rate(self.selection_rate, cells)
        if self.max_false_positive_rate is not None:
            return error_rate_limit(self.max_false_positive_rate, cells, positive=False)
        if self.max_false_negative_rate is not None:
            return error_rate_limit(self.max_false_negative_rate, cells, positive=True)
        threshold = 0.5 if self.threshold is None else self.threshold
        return Threshold(threshold, loss.link_scale, cells)

    # Rows to watch

    def _hold_out(
        self,
        sample: Sample,
        validation: tuple[Any, ...],
        required: Requirements,
        with_groups: bool,
    ) -> tuple[Sample, Sample | None]:
        """The training rows, and the rows to watch if these are others."""
        X_val, y_val, groups, _ = validation
        if X_val is None and any(part is not None for part in validation):
            raise ValueError(
                "y_val, sensitive_features_val and sample_weight_val go with X_val, which is "
                "missing; pass X_val too"
            )
        if X_val is None:
            fraction = self._fraction(sample, required)
            return (sample, None) if fraction is None else self._split(sample, fraction)
        if isinstance(self.validation_fraction, Real):
            raise ValueError(
                "X_val and validation_fraction both say which rows to watch; leave one of them out"
            )
        needs_groups = with_groups and self.sensitive_columns is None
        if y_val is None or (groups is None and needs_groups):
            missing = "y_val" if y_val is None else "sensitive_features_val"
            raise ValueError(f"X_val is given without {missing}; pass it too")
        if groups is not None and not with_groups:
            raise ValueError(
                "sensitive_features_val is given without sensitive_features; pass both or none"
            )
        return sample, self._validation_sample(sample, validation)

    def _fraction(self, sample: Sample, required: Requirements) -> float | None:
        """The share of the rows to hold out, by the rule that the class describes."""
        if self.validation_fraction != "auto":
            if self.validation_fraction is None and self.early_stopping:
                raise ValueError(
                    "early_stopping needs rows that are held out, and validation_fraction is None; "
                    "set validation_fraction='auto', or pass X_val"
                )
            return self.validation_fraction
        if self.early_stopping:
            return HELD_OUT
        counts = [fewest_rows(required, sample.cells)] if required.comparable else []
        if any(getattr(self, name) is not None for name in _SHARES):
            counts.append(int(sample.cells.counts.reshape(-1, 2).sum(axis=0).min()))
        enough = bool(counts) and HELD_OUT * min(counts) >= FEWEST_HELD_OUT
        return HELD_OUT if enough else None

    def _split(self, sample: Sample, fraction: float) -> tuple[Sample, Sample]:
        """Training rows and rows held out.

        Fits on the same rows with the same number as seed share the split, and so what is binned.
        Only the last split is kept.
        """
        if not isinstance(self.random_state, Integral):
            return split_sample(sample, fraction, self.random_state)
        key = fraction, int(self.random_state)
        if sample.cache.get("split", (None,))[0] != key:
            sample.cache["split"] = key, split_sample(sample, fraction, self.random_state)
        parts: tuple[Sample, Sample] = sample.cache["split"][1]
        return parts

    def _validation_sample(self, training: Sample, validation: tuple[Any, ...]) -> Sample:
        X, y, groups, weight = validation
        try:
            check_aligned(X=X, y=y, sensitive_features=groups, sample_weight=weight)
            X, groups, _, _ = self._split_columns(X, groups)
            X = self._check_features(X, reset=False)
            sample = make_sample(X, y, groups, weight, pos_label=self.pos_label).with_weight()
            if training.encoder is not None:
                sample = replace(sample, X=training.encoder.transform(sample.X), cache={})
        except ValueError as error:
            raise ValueError(f"in the validation rows: {error}") from None
        return match_groups(sample, training)

    def _warn_of_outcome(self) -> None:
        if self.history_.stop_reason is StopReason.FALLBACK:
            warn_user(
                f"{StopReason.FALLBACK.sentence}; check that the features vary and that class "
                "weights are not extreme, or use smaller leaves (min_samples_leaf)"
            )
        elif shortfall := getattr(self.certificate_, "shortfall", ""):
            warn_user(shortfall)

    @property
    def threshold_(self) -> float:
        ensemble = self._fitted("threshold_")
        positive_class = 1 if self.pos_label is None else int(self.pos_label == self.classes_[1])
        return probability_at(self._cut, ensemble.link_scale, positive_class)
