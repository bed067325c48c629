"""FairBoostClassifier: boosting whose gap between groups is bounded by name."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from fairproj.boosting.finish import Outcome, Run, finish_closed_loop
from fairproj.boosting.loop import boost
from fairproj.boosting.losses import find_loss
from fairproj.boosting.moments import make_moments
from fairproj.boosting.monitor import make_monitor, watched_rates
from fairproj.boosting.policies import ClosedLoop
from fairproj.boosting.record import Round, StopReason
from fairproj.data.checks import check_slack
from fairproj.data.sample import Sample, make_sample, match_groups, split_sample
from fairproj.data.user_warning import warn_user
from fairproj.estimators.base import SHARED_CONSTRAINTS, BoostedClassifier, Prepared


class FairBoostClassifier(BoostedClassifier):
    """Boosted classifier whose gap between groups is at most ``max_gap`` on the watched rows.

    Each round measures the rates of the ensemble's predictions by group and tilts the weights of
    the next round against the gap (a closed loop). Of all rounds within ``max_gap`` the most
    accurate is kept; a warning says so where there is no useful one. A `FairnessReport` on
    held-out rows tells what holds for new rows.

    Parameters
    ----------
    constraints : str, Constraint or None
        The rates that must be alike: ``"demographic_parity"``, ``"equal_opportunity"`` (the same as
        ``"true_positive_rate_parity"``), ``"false_positive_rate_parity"``, ``"equalized_odds"``,
        ``"accuracy_parity"``; an object of `fairproj.constraints`; or None for plain boosting.
    max_gap : float or sequence of float, default=0.05
        The largest difference between two groups' rates of predictions, one number or one for each
        rate (equalized odds has two).
    loss : str, default="exponential"
        What is minimised; see `fairproj.boosting.losses.register_loss`.
    estimator : scikit-learn classifier, optional
        The weak learner; it must take ``sample_weight``. By default the built-in trees.
    engine : str, default="lightgbm"
        Who grows the built-in trees; see `fairproj.engines.register_engine`.
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
    tilt_step, tilt_decay : float, default=2.0, 0.5
        After round t the tilt moves by ``tilt_step / t**tilt_decay`` times the part of a group's
        rate that is out of bounds.
    validation_fraction : float, optional
        Share of each group and label that is held out from training, and on which the gap is
        watched. By default the training rows are watched, or those of ``fit(X_val=...)``.
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
    certificate_ : GapCertificate
        Whether the gap was met on the watched rows, and what the run proves about its loss.
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
    >>> from fairproj import FairBoostClassifier
    >>> from fairproj.datasets import load_german
    >>> data = load_german()
    >>> model = FairBoostClassifier("equal_opportunity", max_gap=0.05)
    >>> model = model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> model.certificate_.met
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SHARED_CONSTRAINTS,
        "max_gap": "no_validation",
        "loss": [str],
        "tilt_step": [Interval(Real, 0, 100, closed="right")],
        "tilt_decay": [Interval(Real, 0, 1, closed="both")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
    }

    def __init__(
        self,
        constraints: Any = "equal_opportunity",
        max_gap: Any = 0.05,
        *,
        loss: str = "exponential",
        estimator: Any = None,
        engine: str = "lightgbm",
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
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.constraints = constraints
        self.max_gap = max_gap
        self.loss = loss
        self.estimator = estimator
        self.engine = engine
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
        X_val: Any = None,
        y_val: Any = None,
        sensitive_features_val: Any = None,
        sample_weight_val: Any = None,
    ) -> FairBoostClassifier:
        """Train on X, y and the rows' groups.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_features)
            The built-in trees take missing values and categories as they are.
        y : array-like of shape (n_rows,)
            Two classes of any kind.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns), optional
            The groups; several columns are crossed. None means one group: plain boosting.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts like two rows.
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

    def _fit_prepared(
        self, prepared: Prepared, validation: tuple[Any, ...] = (None,) * 4
    ) -> FairBoostClassifier:
        """Fit on rows that are validated and encoded already."""
        make_loss = find_loss(self.loss)
        sample = prepared.sample.with_weight()
        self._warn_of_one_group(prepared, sample)
        watched_rates(self.constraints, sample.cells)  # refuses empty cells before any split
        self._adopt(prepared, sample)
        sample, held_out = self._hold_out(sample, validation)
        watched = watched_rates(self.constraints, sample.cells)
        max_gap = check_slack(self.max_gap, watched.events, "max_gap", largest=1.0)
        cells = make_moments(None, sample.cells)  # those that have rows
        loss = make_loss(
            sample.y,
            sample.weight,
            cells.index,
            len(cells.features),
            discrete=self.votes == "discrete",
            reduction=sample.reduction,
        )
        monitor = make_monitor(watched, sample, held_out)
        engine = self._kind.bind(self._settings(), sample, held_out)
        del sample, held_out, prepared  # the engine has binned what it needs
        policy = ClosedLoop(watched, max_gap, monitor, step=self.tilt_step, decay=self.tilt_decay)
        rounds = boost(
            engine, loss, policy, n_rounds=self.n_estimators, learning_rate=self.learning_rate
        )

        def finish(learners: list[Any], records: list[Round], reason: StopReason) -> Outcome:
            run = Run(engine, loss, learners, records, reason, self.learning_rate, max_gap)
            return finish_closed_loop(run, watched, monitor)

        self._run(rounds, self.n_estimators, finish)
        self._warn_of_outcome()
        return self

    def _hold_out(
        self, sample: Sample, validation: tuple[Any, ...]
    ) -> tuple[Sample, Sample | None]:
        """The training rows, and the rows to watch if these are others."""
        X_val, y_val, groups, _ = validation
        if X_val is None and any(part is not None for part in validation):
            raise ValueError(
                "y_val, sensitive_features_val and sample_weight_val go with X_val, which is "
                "missing; pass X_val too"
            )
        if X_val is None:
            if self.validation_fraction is None:
                return sample, None
            return self._split(sample, self.validation_fraction)
        if self.validation_fraction is not None:
            raise ValueError(
                "X_val and validation_fraction both say which rows to watch; leave one of them out"
            )
        if y_val is None or (groups is None and self.sensitive_columns is None):
            missing = "y_val" if y_val is None else "sensitive_features_val"
            raise ValueError(f"X_val is given without {missing}; pass it too")
        return sample, self._validation_sample(sample, validation)

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
                f"{StopReason.FALLBACK.sentence}; use stronger learners, for example max_depth=3"
            )
        elif shortfall := getattr(self.certificate_, "shortfall", ""):
            warn_user(shortfall)
