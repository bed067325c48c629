"""What a search for alternatives found: its table, the test rows, and sentences about both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairproj.constraints import RATES, Statistic, find_statistic
from fairproj.data.cells import CellCounts
from fairproj.data.checks import Groups, listing
from fairproj.data.types import Array, Codes
from fairproj.estimators.fairboost import FairBoostClassifier
from fairproj.inference.figures import TOTALS, ModelFigures, percentile_interval, resample
from fairproj.inference.gap_change import WidestPair, gap_change_interval
from fairproj.inference.intervals import check_confidence, exact_interval
from fairproj.inference.ratios import ratio_intervals
from fairproj.inference.report import FairnessReport
from fairproj.metrics.lending import find_reference
from fairproj.selection.fits import TIE, format_value

SCORES = {"roc_auc": "ROC AUC", "accuracy": "accuracy"}
PLAIN = "plain model"
_COMPARED = ("plain", "chosen", "difference")


class SearchOutcome(Enum):
    """What a search for alternatives came to."""

    FOUND = "found"
    UNCERTAIN = "uncertain"
    SCORE_UNCERTAIN = "score uncertain"
    COSTLY = "costly"
    NOT_CONFIRMED = "not confirmed"
    NONE = "none"

    @property
    def sentence(self) -> str:
        """What to show."""
        return _SENTENCES[self]


_SENTENCES = {
    SearchOutcome.FOUND: "A less discriminatory alternative was found: its gap on the test rows is "
    "smaller by more than chance explains, and its score is within the tolerance.",
    SearchOutcome.UNCERTAIN: "Whether the chosen alternative is less discriminatory is uncertain: "
    "on the test rows, the difference between the gaps is within the noise.",
    SearchOutcome.SCORE_UNCERTAIN: "The chosen alternative is less discriminatory, and whether its "
    "score is within the tolerance is uncertain: the test rows are too few to tell.",
    SearchOutcome.COSTLY: "The chosen alternative is less discriminatory and costs more than the "
    "tolerance allows: on the test rows, its score is lower by more than that.",
    SearchOutcome.NOT_CONFIRMED: "The chosen alternative is not less discriminatory: its gap on "
    "the test rows is larger than that of the plain model.",
    SearchOutcome.NONE: "No less discriminatory alternative was found: no candidate within the "
    "tolerance has a smaller gap than the plain model on the selection rows.",
}


@dataclass(frozen=True)
class Alternatives:
    """A search for models that are about as good as the plain one and less discriminatory.

    Attributes
    ----------
    table : DataFrame
        What was measured on the selection rows, a row for each model: the plain model first, then
        the candidates in the order in which they were tried. Columns: ``params``; ``score`` (the
        one of ``scoring``), ``score_error`` (the standard error of its difference from the plain
        model's), ``roc_auc``, ``accuracy``, ``ks``, ``selection_rate``; ``gap`` with its
        exact interval ``gap_low``, ``gap_high``; ``adverse_impact_ratio`` with ``impact_group``
        (the group where it is smallest) and ``standardized_mean_difference`` with
        ``difference_group`` (the group where it is furthest from 0), both of the groups other than
        the reference; ``held_out`` (the share of the training rows that the model did not learn
        from); ``useful``, ``within_tolerance``, ``with_room`` (within the tolerance by so much that
        the test rows confirm it with a chance of about 80 %), ``pareto`` (no other useful model has
        as good a score and gap, and one of them better), ``rank`` (of the useful candidates within
        the tolerance: first those with room and a smaller gap than the plain model, then by gap;
        missing for others) and ``chosen``.
    plain : classifier
        Fitted on the training rows.
    chosen : FairBoostClassifier or None
        The candidate of rank 1, fitted on the training rows; None if its gap is not smaller than
        that of the plain model. Where the plain model is a `FairBoostClassifier`, it is the chosen
        one's ``baseline_``, and ``price_`` compares them on the test rows.
    outcome : SearchOutcome
    test : DataFrame
        The figures ``roc_auc``, ``accuracy``, ``ks``, ``selection_rate`` and ``gap`` on the test
        rows: ``plain``, ``chosen`` and their ``difference`` (chosen less plain), each with ``_low``
        and ``_high``.
    test_groups : DataFrame
        A row for each model and group: ``model``, ``group``, ``rows``, ``selection_rate``,
        ``adverse_impact_ratio`` and ``standardized_mean_difference``, each with ``_low`` and
        ``_high``.
    reports : dict of str to FairnessReport
        All rates and gaps of ``"plain"`` and, if there is one, ``"chosen"`` on the test rows.
    rows : dict of str to array
        Positions of the ``"training"``, ``"selection"`` and ``"test"`` rows.
    metric, scoring, reference : str
        The gap, the score, and the group that the others are compared with.
    tolerance, confidence : float
    n_resamples, random_state : int
        Of the bootstrap.

    Notes
    -----
    On the test rows, the intervals of rates, gaps and adverse impact ratios are exact, and so are
    those of the accuracy and the selection rate. Those of ROC AUC, KS and the standardized mean
    difference, and of differences between the two models, are percentile intervals of a bootstrap
    that resamples the rows of each group, the same for both models; they are approximate. The KS of
    a sample is too large on average, and its interval repeats that.

    The largest of several noisy differences between groups is larger than the true gap, more so for
    a model with noisier rates, and a bootstrap of the gap repeats that. The interval of the
    difference between the gaps is therefore made of single pairs of groups. Its upper end compares
    the pair that attains the gap of the plain model on the selection rows with each pair of the
    chosen model, and is the largest of the ends of these differences; the lower end does so with
    the models exchanged. It comes from a Bayesian bootstrap and is approximate too. With many small
    groups it is wide. No gap is below 0, so its lower end is at least the upper end of the plain
    model's gap with a minus sign, and its upper end at most that of the chosen model's gap.

    The intervals in ``table`` are exact for one model by itself and do not allow for the choice
    among many: those of the chosen model flatter it.
    """

    table: pd.DataFrame
    plain: Any = field(repr=False)
    chosen: FairBoostClassifier | None = field(repr=False)
    outcome: SearchOutcome
    test: pd.DataFrame
    test_groups: pd.DataFrame
    reports: dict[str, FairnessReport] = field(repr=False)
    rows: dict[str, Codes] = field(repr=False)
    metric: str
    scoring: str
    reference: str
    tolerance: float
    confidence: float
    n_resamples: int
    random_state: int

    @property
    def ranked(self) -> pd.DataFrame:
        """The table with the plain model first, then by rank, then the others by gap."""
        candidates = self.table.iloc[1:].sort_values(["rank", "gap"], kind="stable")
        return pd.concat([self.table.iloc[:1], candidates])

    @property
    def least_score(self) -> float:
        """The score that a candidate needed on the selection rows."""
        return float(self.table["score"].iloc[0]) - self.tolerance

    def summary(self) -> list[str]:
        """What was found, in sentences."""
        return [self.outcome.sentence, _tried(self), *_on_test_rows(self)]

    def __str__(self) -> str:
        table = self.ranked.assign(model=[describe(row) for row in self.ranked["params"]])
        columns = ["model", "score", "gap", "adverse_impact_ratio", "within_tolerance"]
        return "\n".join([*self.summary(), table[columns].to_string(index=False)])


@dataclass(frozen=True)
class Plan:
    """What to measure and how to judge it; the reference becomes a group's position."""

    statistic: Statistic
    scoring: str
    tolerance: float
    reference: Any
    confidence: float
    n_resamples: int
    seed: int

    def check(self) -> None:
        check_confidence(self.confidence)
        if self.scoring not in SCORES:
            raise ValueError(
                f"scoring={self.scoring!r} is unknown; use one of {listing([*SCORES])}"
            )
        if not isinstance(self.tolerance, Real) or not 0 <= self.tolerance < 1:
            raise ValueError(
                f"tolerance={self.tolerance!r} must be 0 or more and below 1; 0.01 is one point"
            )
        if self.n_resamples < 100:
            raise ValueError(f"n_resamples={self.n_resamples} must be 100 or more")

    def with_reference(self, counts: CellCounts, groups: Groups) -> Plan:
        """With the reference found among the groups: the one named, or the one selected most."""
        rates = RATES["selection_rate"].values(counts)
        return replace(self, reference=find_reference(self.reference, groups, rates))

    def figures(
        self, actual: NDArray[np.bool_], predicted: NDArray[np.bool_], score: Array, groups: Any
    ) -> ModelFigures:
        return ModelFigures(actual, predicted, score, groups, self.statistic, self.reference)


def compare(
    plan: Plan,
    table: pd.DataFrame,
    fitted: list[Any],
    figures: list[ModelFigures],
    widest: list[WidestPair],
    rows: dict[str, Codes],
) -> Alternatives:
    """Judge models by their figures on the test rows.

    ``fitted`` is the plain model and, if there is one, the chosen one, ``figures`` are theirs, and
    ``widest`` is where each has its gap on the selection rows.
    """
    names = figures[0].groups.names
    models = ["plain", "chosen"][: len(figures)]
    reports = {
        name: FairnessReport.from_counts(one.counts(), names, confidence=plan.confidence)
        for name, one in zip(models, figures, strict=True)
    }
    resamples = resample(figures, plan.n_resamples, plan.seed)
    lows, highs = percentile_interval(resamples.mean_differences, plan.confidence)
    test = _totals_table(figures, reports, resamples.totals, plan)
    if len(figures) == 2:
        _add_differences(test, figures, widest, resamples.totals, plan)
    groups = [
        _group_rows(name, one, (lows[i], highs[i]), plan.confidence)
        for i, (name, one) in enumerate(zip(models, figures, strict=True))
    ]
    return Alternatives(
        table=table,
        plain=fitted[0],
        chosen=None if len(fitted) == 1 else fitted[1],
        outcome=SearchOutcome.NONE if len(fitted) == 1 else _outcome(test, plan),
        test=test,
        test_groups=pd.concat(groups, ignore_index=True),
        reports=reports,
        rows=rows,
        metric=plan.statistic.name,
        scoring=plan.scoring,
        reference=names[plan.reference],
        tolerance=plan.tolerance,
        confidence=plan.confidence,
        n_resamples=plan.n_resamples,
        random_state=plan.seed,
    )


def _totals_table(
    figures: list[ModelFigures],
    reports: dict[str, FairnessReport],
    resampled: Array,
    plan: Plan,
) -> pd.DataFrame:
    """Figures of the models with intervals, and room for their difference."""
    table = pd.DataFrame(index=pd.Index(TOTALS, name="figure"))
    lows, highs = percentile_interval(resampled, plan.confidence)
    for i, (name, report) in enumerate(reports.items()):
        table[name] = figures[i].totals()
        table[f"{name}_low"], table[f"{name}_high"] = lows[i], highs[i]
        ends = [f"{name}_low", f"{name}_high"]
        gap: Any = report.gaps.set_index("gap").loc[plan.statistic.name]
        correct = figures[i].actual == figures[i].predicted
        exact = {
            "gap": [gap["low"], gap["high"]],
            "accuracy": _share_interval(correct, plan.confidence),
            "selection_rate": _share_interval(figures[i].predicted, plan.confidence),
        }
        for figure, interval in exact.items():
            table.loc[figure, ends] = interval
    columns = [f"{name}{end}" for name in _COMPARED for end in ("", "_low", "_high")]
    return table.reindex(columns=columns)


def _add_differences(
    table: pd.DataFrame,
    figures: list[ModelFigures],
    widest: list[WidestPair],
    resampled: Array,
    plan: Plan,
) -> None:
    table["difference"] = table["chosen"] - table["plain"]
    low, high = percentile_interval(np.diff(resampled, axis=1)[:, 0], plan.confidence)
    table["difference_low"], table["difference_high"] = low, high
    plain, chosen = figures
    pairs = widest[0], widest[1]
    interval = gap_change_interval(
        plain, chosen, pairs, plan.confidence, plan.n_resamples, plan.seed
    )
    table.loc["gap", ["difference_low", "difference_high"]] = interval


def _share_interval(rows: NDArray[np.bool_], confidence: float) -> list[float]:
    return [float(end) for end in exact_interval(rows.sum(), len(rows), confidence)]


def _group_rows(
    name: str, figures: ModelFigures, ends: tuple[Array, Array], confidence: float
) -> pd.DataFrame:
    """The figures of each group for one model."""
    rate = RATES["selection_rate"]
    counts = figures.counts()
    hits, rows = rate.counts(counts)
    rate_ends = exact_interval(hits, rows, confidence)
    ratio_ends = ratio_intervals(hits, rows, figures.reference, confidence)
    table = pd.DataFrame({"model": name, "group": figures.groups.names, "rows": rows.astype(int)})
    columns = {
        "selection_rate": (rate.values(counts), *rate_ends),
        "adverse_impact_ratio": (figures.impact_ratios(), *ratio_ends),
        "standardized_mean_difference": (figures.mean_differences(), *ends),
    }
    for column, (value, low, high) in columns.items():
        table[column], table[f"{column}_low"], table[f"{column}_high"] = value, low, high
    return table


def _outcome(test: pd.DataFrame, plan: Plan) -> SearchOutcome:
    gap: Any = test.loc["gap"]
    score: Any = test.loc[plan.scoring]
    if gap["difference_low"] > 0:
        return SearchOutcome.NOT_CONFIRMED
    if not gap["difference_high"] < 0:
        return SearchOutcome.UNCERTAIN
    if score["difference_high"] < -plan.tolerance:
        return SearchOutcome.COSTLY
    within = score["difference_low"] >= -plan.tolerance
    return SearchOutcome.FOUND if within else SearchOutcome.SCORE_UNCERTAIN


# Sentences


def describe(params: Mapping[str, Any]) -> str:
    """A candidate in words; no parameters are the plain model."""
    if not params:
        return PLAIN
    words = {
        "max_leaf_nodes": "{} leaves",
        "learning_rate": "learning rate {:g}",
        "random_state": "seed {}",
    }
    parts = [_bound_words(params["constraints"], params["max_gap"])]
    for name, value in params.items():
        if name in words and value is not None:
            parts.append(words[name].format(value))
        elif name not in ("constraints", "max_gap", *words):
            parts.append(f"{name}={value!r}")
    return ", ".join(parts)


def _bound_words(constraints: Any, max_gap: Any) -> str:
    if constraints is None:
        return "no constraint"
    names = constraints if isinstance(constraints, list | tuple) else [constraints]
    shown = [one.replace("_", " ") if isinstance(one, str) else type(one).__name__ for one in names]
    return f"{' and '.join(shown)} within {format_value(max_gap)}"


def _tried(found: Alternatives) -> str:
    candidates = found.table.iloc[1:]
    ranked = candidates[candidates["rank"].notna()]
    smaller = int((ranked["gap"] < found.table["gap"].iloc[0] - TIE).sum())
    score = SCORES[found.scoring]
    text = (
        f"Of {len(candidates)} candidates, {len(ranked)} are useful and have {_a(score)} of at "
        f"least {found.least_score:.3f} on the {len(found.rows['selection']):,} selection rows "
        f"(that of the plain model, {found.table['score'].iloc[0]:.3f}, less the tolerance of "
        f"{found.tolerance:g}); {smaller} of these {'has' if smaller == 1 else 'have'} a smaller "
        f"{find_statistic(found.metric).words} than the plain model."
    )
    if found.chosen is None:
        return text
    chosen: Any = found.table[found.table["chosen"]].iloc[0]
    better = candidates["with_room"] & (candidates["gap"] < found.table["gap"].iloc[0] - TIE)
    n_better = int((better & candidates["useful"]).sum())
    words = "none of these leaves room for the test rows to confirm its score, so of all"
    if chosen["with_room"]:
        leave = "leaves" if n_better == 1 else "leave"
        words = (
            f"{n_better} of these {leave} room for the test rows to confirm the score, and of them"
        )
    return (
        f"{text[:-1]}; {words} the one with the smallest gap was chosen: "
        f"{describe(chosen['params'])}."
    )


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiouR' else 'a'} {noun}"


def _on_test_rows(found: Alternatives) -> list[str]:
    gap: Any = found.test.loc["gap"]
    score: Any = found.test.loc[found.scoring]
    share = f"{100 * found.confidence:g} %"
    words = find_statistic(found.metric).words
    rows = f"On the {len(found.rows['test']):,} test rows, which had no part in training or choice,"
    plain = f"{gap['plain']:.3f} (exact {share} interval {_range(gap, 'plain')})"
    if found.chosen is None:
        return [f"{rows} the {words} of the plain model is {plain}."]
    return [
        f"{rows} the {words} is {gap['chosen']:.3f} (exact {share} interval "
        f"{_range(gap, 'chosen')}) with the chosen model and {plain} with the plain one. The "
        f"difference is {gap['difference']:+.3f} ({share} interval {_range(gap, 'difference')}).",
        f"The {SCORES[found.scoring]} is {score['chosen']:.3f} with the chosen model and "
        f"{score['plain']:.3f} with the plain one there; the difference is "
        f"{score['difference']:+.3f} ({share} interval {_range(score, 'difference')}), "
        f"{_side(score, found.tolerance)}.",
        _impact(found),
        *_other_gaps(found),
    ]


def _other_gaps(found: Alternatives) -> list[str]:
    """Which other gaps are larger with the chosen model on the test rows."""
    plain, chosen = (found.reports[name].gaps.set_index("gap") for name in ("plain", "chosen"))
    larger = [
        f"{find_statistic(name).words} ({chosen.loc[name, 'estimate']:.3f}; plain "
        f"{plain.loc[name, 'estimate']:.3f})"
        for name in plain.index
        if name != found.metric and chosen.loc[name, "estimate"] > plain.loc[name, "estimate"] + TIE
    ]
    if not larger:
        return []
    return [f"Other gaps are larger with the chosen model on these rows: {'; '.join(larger)}."]


def _impact(found: Alternatives) -> str:
    """The worst adverse impact ratio of either model on the test rows."""
    groups = found.test_groups[found.test_groups["group"] != found.reference]
    known = groups.dropna(subset=["adverse_impact_ratio"])
    if known["model"].nunique() < 2:
        return f"Nobody of the group {found.reference} is selected by one of the models."
    ordered = known.sort_values("adverse_impact_ratio", kind="stable")
    plain, chosen = (
        ordered[ordered["model"] == name].iloc[0].to_dict() for name in ("plain", "chosen")
    )
    name = "adverse_impact_ratio"
    return (
        f"The smallest adverse impact ratio to {found.reference} is {chosen[name]:.3f} "
        f"({_range(chosen, name)}) for {chosen['group']} with the chosen model and "
        f"{plain[name]:.3f} ({_range(plain, name)}) for {plain['group']} with the plain one."
        f"{_read_ratios(found.reference, chosen[name], plain[name])}"
    )


def _read_ratios(reference: str, chosen: float, plain: float) -> str:
    """How to read the smallest ratios to the reference, where they need it."""
    above = {"the chosen model": chosen > 1, "the plain one": plain > 1}
    told = ""
    if any(above.values()):
        models = " and ".join(model for model, is_above in above.items() if is_above)
        told = (
            f" A smallest ratio above 1 means that {reference} is selected least on the test rows "
            f"with {models}; to compare with the group selected most, name that as the reference."
        )
    if chosen < min(plain, 1):
        told += " The ratio is lower with the chosen model: look at the selection rates of both."
    return told


def _side(score: Mapping[str, float], tolerance: float) -> str:
    """Where the difference between the scores lies."""
    allowed = f"the tolerance of {tolerance:g}"
    if score["difference_high"] < -tolerance:
        return f"more than {allowed} below"
    if score["difference_low"] < -tolerance:
        return f"which does not tell whether the loss is within {allowed}: the rows are too few"
    return f"not more than {allowed} below"


def _range(row: Any, name: str) -> str:
    return f"{row[f'{name}_low']:z.3f} to {row[f'{name}_high']:z.3f}"
