"""From points to answers: hypervolumes, choices at targets, differences to a method, ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from arena.frontier import (
    Interval,
    Reference,
    choose,
    corrected_difference,
    hypervolume,
    mixed_hypervolume,
    paired_difference,
    pareto,
)
from arena.plan import Plan

OURS = "FairBoost"
PLAIN = "LightGBM"
LEAST_WIDTH = 0.1  # of the range of gaps
TOLERANCE = 0.02  # how much smaller than a peer's hypervolume ours may be
CELL = ["problem", "constraint"]
# Hypervolumes by steps with a bootstrap, by steps with a corrected interval, and of mixtures.
MEASURES = ("steps", "corrected", "mixed")
_KINDS = ("hypervolume", "mixed")


def references(tidy: pd.DataFrame, constants: dict[str, float]) -> dict[Any, Reference]:
    """For each problem and constraint, the worst gap and score that count.

    The gap is that of LightGBM without a constraint (of its points, if it has several learners, the
    mean), on average over the splits, and at least 0.1; the score is that of the better constant.
    """
    plain = tidy[tidy["method"] == PLAIN].groupby(CELL)["test_gap"].mean()
    return {
        cell: Reference(max(LEAST_WIDTH, plain.get(cell, 0.0)), constants[cell[0]])
        for cell in tidy.groupby(CELL, sort=False).groups
    }


def summarise(tidy: pd.DataFrame, plan: Plan, known: dict[Any, Reference]) -> pd.DataFrame:
    """One row for each problem, constraint, split and method, given `references`.

    Points are chosen on validation rows and read on test rows: those on the frontier give the
    hypervolume, and one is chosen for each target.
    """
    columns = {name: tidy[name].to_numpy(dtype=float) for name in _READ}
    key = [*CELL, "split", "method"]
    rows = []
    for place, at in tidy.groupby(key, sort=False).indices.items():
        points = {name: values[at] for name, values in columns.items()}
        read = _read(points, known[place[:2]], plan.targets)
        rows.append(dict(zip(key, place, strict=True)) | read)
    return pd.DataFrame(rows)


_READ = (
    "validation_gap",
    "validation_score",
    "test_gap",
    "test_score",
    "auc",
    "calibration_error",
)


def _read(points: dict[str, Any], reference: Reference, targets: Any) -> dict[str, float]:
    chosen_by = (points["validation_gap"], points["validation_score"])
    kept = pareto(*chosen_by)
    gap, score = points["test_gap"], points["test_score"]
    read = {
        "hypervolume": hypervolume(gap[kept], score[kept], reference),
        "mixed": mixed_hypervolume(gap[kept], score[kept], reference),
    }
    for target in targets:
        at = choose(*chosen_by, target)
        if at is not None:
            read |= {
                f"score@{target:g}": score[at],
                f"gap@{target:g}": gap[at],
                f"met@{target:g}": float(gap[at] <= target),
                f"auc@{target:g}": points["auc"][at],
                f"calibration@{target:g}": points["calibration_error"][at],
            }
    return read


def with_points(
    tidy: pd.DataFrame, summary: pd.DataFrame, plan: Plan, known: dict[Any, Reference], among: Any
) -> pd.DataFrame:
    """The summary in which ours has some of its points; other methods keep all of theirs."""
    ours = summarise(tidy[(tidy["method"] == OURS) & among].reset_index(drop=True), plan, known)
    return pd.concat([ours, summary[summary["method"] != OURS]], ignore_index=True)


def with_first_learner(
    tidy: pd.DataFrame, summary: pd.DataFrame, plan: Plan, known: dict[Any, Reference]
) -> pd.DataFrame:
    """The summary in which ours has the default trees alone."""
    return with_points(tidy, summary, plan, known, tidy["learner"] == plan.first_learner)


def like_peer(
    tidy: pd.DataFrame, summary: pd.DataFrame, plan: Plan, known: dict[Any, Reference], peer: str
) -> pd.DataFrame:
    """The summary in which ours has the learners and the targets of a peer."""
    targets = {setting["max_gap"] for setting in plan.method(peer).grid}
    grid = plan.method(OURS).grid
    points = [at for at, setting in enumerate(grid) if setting["max_gap"] in targets]
    learners = plan.learners_of(plan.method(peer))
    among = tidy["learner"].isin(learners) & tidy["point"].isin(points)
    return with_points(tidy, summary, plan, known, among)


@dataclass(frozen=True)
class Comparison:
    """Our hypervolume beside another method's, on one problem and constraint.

    Attributes
    ----------
    relative : Interval
        The difference as a share of the other's.
    mixed : Interval
        The same where predictions may be drawn from a mixture of points.
    margins : dict
        Our hypervolume less 98 % of the other's, by `MEASURES`; the claim is that it is not
        negative.
    """

    problem: str
    constraint: str
    method: str
    relative: Interval
    mixed: Interval
    margins: dict[str, Interval]
    n_splits: int

    def verdict(self, measure: str = "steps") -> str:
        """Whether ours is at least 98 % of the other's: shown, refuted, or neither."""
        margin = self.margins[measure]
        if margin.low >= 0:
            return "holds"
        return "fails" if margin.high < 0 else "open"


def compare(
    summary: pd.DataFrame, method: str, overlap: Callable[[str], float]
) -> list[Comparison]:
    """Ours beside another method, on every problem and constraint that both have.

    ``overlap`` gives that of `corrected_difference` for a problem.
    """
    wide = summary.pivot_table(
        index=[*CELL, "split"], columns="method", values=["hypervolume", "mixed"], sort=False
    )
    if OURS not in wide["hypervolume"] or method not in wide["hypervolume"]:
        return []
    both = wide.loc[:, [(kind, name) for kind in _KINDS for name in (OURS, method)]].dropna()
    comparisons = []
    for (problem, constraint), rows in both.groupby(level=[0, 1], sort=False):
        pairs = {kind: (rows[kind, OURS], rows[kind, method]) for kind in _KINDS}
        relative, mixed = (paired_difference(*pairs[kind], relative=True) for kind in _KINDS)
        (a, b), (c, d) = pairs.values()
        margins = {
            "steps": paired_difference(a, (1 - TOLERANCE) * b),
            "corrected": corrected_difference(a, (1 - TOLERANCE) * b, overlap(problem)),
            "mixed": paired_difference(c, (1 - TOLERANCE) * d),
        }
        comparisons.append(
            Comparison(problem, constraint, method, relative, mixed, margins, len(rows))
        )
    return comparisons


def compare_all(summary: pd.DataFrame, plan: Plan) -> dict[str, list[Comparison]]:
    """Ours beside every other method of a plan."""
    others = [each.name for each in plan.methods if each.name != OURS]
    return {name: compare(summary, name, plan.overlap) for name in others}


def difference_at(
    summary: pd.DataFrame, method: str, column: str, rows: Any = slice(None)
) -> Interval:
    """Another method less ours in one column, paired, over all problems and splits.

    Problems count alike: the bootstrap resamples splits of the mean over problems.
    """
    wide = summary.loc[rows].pivot_table(
        index=[*CELL, "split"], columns="method", values=column, observed=True
    )
    if method not in wide or OURS not in wide:
        return Interval(np.nan, np.nan, np.nan)
    both = wide[[method, OURS]].dropna().groupby(level="split").mean()
    return paired_difference(both[method], both[OURS])


def ranks(summary: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """Ranks by mean hypervolume, 1 the best, among those methods that ran everywhere."""
    means = summary[summary["method"].isin(methods)].pivot_table(
        index=CELL, columns="method", values="hypervolume", sort=False
    )
    return means.dropna(axis=1).rank(axis=1, ascending=False)


def frontier_distance(
    summary: pd.DataFrame, plan: Plan, true: dict[str, dict[str, Any]]
) -> pd.DataFrame:
    """How far below the true frontier of a population the chosen points are, in points.

    ``true`` has, for each problem and constraint, limits on the gap and the best accuracies. The
    distance is taken at the gap that the point has, and averaged over the targets.
    """
    rows = summary[summary["problem"].isin(list(true))].copy()
    far = []
    for row in rows.to_dict("records"):
        limits, best = (np.array(each) for each in true[row["problem"]][row["constraint"]])
        at = [(row.get(f"gap@{t:g}"), row.get(f"score@{t:g}")) for t in plan.targets]
        far.append(np.mean([np.interp(gap, limits, best) - score for gap, score in at]))
    return rows.assign(distance=100 * np.array(far))


def true_hypervolume(limits: Any, best: Any, reference: Reference) -> float:
    """The hypervolume of a known frontier."""
    inside = np.linspace(0, reference.gap, 201)
    above = np.maximum(np.interp(inside, limits, best) - reference.score, 0)
    return float(np.trapezoid(above, inside) / reference.gap)
