"""Where FairBoost loses: found in the results, not chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from arena.frontier import paired_difference
from arena.plan import Plan
from arena.summary import CELL, MEASURES, OURS, PLAIN, TOLERANCE, Comparison
from arena.tables import Lines, interval, number, verdict_counts, words
from arena.timing import ratios_with_same_trees, time_ratios
from fairproj.data.checks import counted
from fairproj.experiments._tables import markdown

CLEAR = 0.005  # points of score, as a share, from which a difference at a target is listed
LIMITS = {"LightGBM": 1.3, "FairGBM": 1.0}  # how many times their fit ours may take
LEVEL = 0.05  # what counts as level
PEERS = ("Exponentiated Gradient", "Grid Search", "FairGBM", "OxonFair, inferred groups")
HEAD = ["problem", "constraint", "method", "FairBoost's relative to the other's, %", "mixed, %"]
HEAD += ["fails by"]
FEW_POINTS = "Exponentiated Gradient"  # has fewer points than others, because of its time
FASTER = 30.0  # how many times faster than Exponentiated Gradient a fit must be


def without_groups(plan: Plan) -> list[str]:
    """The methods that need no groups at predict, those that infer them included."""
    return [each.name for each in plan.methods if each.groups != "used" and each.name != OURS]


def without_groups_only(compared: dict[str, list[Comparison]], plan: Plan) -> list[Comparison]:
    """The comparisons that the claim is about."""
    return [each for method in without_groups(plan) for each in compared.get(method, [])]


def first_words(
    comparisons: list[Comparison],
    with_defaults: list[Comparison],
    alike: list[Comparison],
    titles: dict[str, str],
) -> str:
    """What the page begins with: where the claim about hypervolumes fails, and what is open."""
    n_cells = len({(each.problem, each.constraint) for each in comparisons})
    claim = (
        f"Our aim: the hypervolume of FairBoost is at least {100 * (1 - TOLERANCE):.0f} % of that "
        f"of every method that needs no groups at predict, on each of the {n_cells} combinations "
        "of problem and constraint."
    )
    if with_defaults:
        claim += (
            " Like the others it has trees of two sizes; what its default alone gives is in the "
            "table of counts and [below](#where-we-lose)."
        )
    failing = [each for each in comparisons if _fails(each)]
    said = "It fails here:" if failing else "It is refuted nowhere."
    places = f"{markdown(listed(failing, titles))}\n" if failing else ""
    counts = markdown(verdict_table(comparisons, with_defaults, alike))
    return (
        f"{claim} **{said}**\n\n{places}In how many comparisons the aim is shown to hold, is open, "
        f"or is shown to fail:\n\n{counts}"
    )


def verdict_table(
    comparisons: list[Comparison], with_defaults: list[Comparison], alike: list[Comparison]
) -> Lines:
    """How many comparisons end in each way, by what is compared and how."""
    peers, default = (
        [each for each in found if each.method in PEERS] for found in (comparisons, with_defaults)
    )
    names = f"peers that aim at a gap: {', '.join(PEERS[:-1])} and {PEERS[-1]}"
    counted = [
        (names, peers),
        ("the same, FairBoost with its default trees alone", default),
        ("every method without groups at predict, our others included", comparisons),
        ("the same, FairBoost with its default trees alone", with_defaults),
        (f"{FEW_POINTS}, FairBoost with the same two targets and 7 leaves", alike),
    ]
    head = [
        "FairBoost beside",
        "comparisons",
        *(f"{each}: holds, open, fails" for each in MEASURES),
    ]
    lines = [head]
    for name, found in counted:
        if found:
            ends = [verdict_counts(found, measure) for measure in MEASURES]
            lines.append([name, str(len(found)), *ends])
    return lines


def below_table(comparisons: list[Comparison], titles: dict[str, str]) -> Lines:
    """Comparisons that are open, with a mean that is more than 2 % below."""
    return listed(_below(comparisons), titles)


def _below(comparisons: list[Comparison]) -> list[Comparison]:
    return [
        each
        for each in comparisons
        if each.verdict() == "open" and each.relative.value < -TOLERANCE and not _fails(each)
    ]


def _fails(comparison: Comparison) -> list[str]:
    """The measures by which a comparison fails."""
    return [measure for measure in MEASURES if comparison.verdict(measure) == "fails"]


def listed(comparisons: list[Comparison], titles: dict[str, str]) -> Lines:
    """One line for each comparison, the largest loss first."""
    lines = [HEAD]
    for each in sorted(comparisons, key=lambda each: each.relative.value):
        place = [titles[each.problem], words(each.constraint), each.method]
        shown = [interval(each.relative, 100), interval(each.mixed, 100)]
        lines.append([*place, *shown, ", ".join(_fails(each)) or "none"])
    return lines


def target_losses(summary: pd.DataFrame, plan: Plan, titles: dict[str, str]) -> Lines:
    """Targets at which another method without groups is clearly ahead, with a gap no larger.

    Listed where the interval of the score's difference is above half a point, and its mean test
    gap is not above ours. The last three columns are of the first of the targets.
    """
    lines = [["problem", "constraint", "method", "targets", "ahead, points", "its gap", "our gap"]]
    columns = [f"{kind}@{target:g}" for kind in ("score", "gap") for target in plan.targets]
    for (problem, constraint), rows in summary.groupby(CELL, sort=False):
        cell = {name: own.set_index("split")[columns] for name, own in rows.groupby("method")}
        for method in (each for each in without_groups(plan) if each in cell and OURS in cell):
            found = {target: _ahead(cell[method], cell[OURS], target) for target in plan.targets}
            where = [target for target, shown in found.items() if shown]
            if where:
                targets = ", ".join(f"{target:g}" for target in where)
                place = [titles[problem], words(constraint), method, targets]
                lines.append([*place, *found[where[0]]])
    return lines


def _ahead(own: pd.DataFrame, ours: pd.DataFrame, target: float) -> list[str]:
    """By how much a method is ahead, its gap and ours; nothing if it is not clearly ahead."""
    both = own.index.intersection(ours.index)
    score, gap = f"score@{target:g}", f"gap@{target:g}"
    gaps = own.loc[both, gap].mean(), ours.loc[both, gap].mean()
    if not gaps[0] <= gaps[1]:
        return []
    ahead = paired_difference(own.loc[both, score], ours.loc[both, score])
    return [interval(ahead, 100), *map(number, gaps)] if ahead.low > CLEAR else []


def time_claims(times: pd.DataFrame, tidy: pd.DataFrame) -> list[str]:
    """A sentence for each claim about time: what was measured, and whether it holds."""
    said = []
    for method, limit in LIMITS.items():
        ratios = time_ratios(times, OURS, method)
        if len(ratios):
            median = float(ratios.median())
            enough = limit + LEVEL * (limit == 1)
            verdict = "holds" if median <= enough else "**fails**"
            said.append(
                f"A fit takes {median:.2f} times as long as {method}'s, timed one at a time "
                f"({_range(ratios, 2)}); the aim is at most {limit:g}: {verdict}"
                f"{_in_how_many(ratios <= enough)}."
            )
    gradient = FEW_POINTS
    clocked = time_ratios(times, gradient, OURS)
    all_fits = ratios_with_same_trees(tidy, gradient, OURS)
    if len(clocked):
        median = float(clocked.median())
        verdict = "holds" if median >= FASTER else "**fails**"
        said.append(
            f"Exponentiated Gradient takes {median:.0f} times as long as FairBoost, timed one at a "
            f"time ({_range(clocked, 0)}); the aim is at least {FASTER:.0f}: {verdict}"
            f"{_in_how_many(clocked >= FASTER)}."
        )
    if len(all_fits):
        said.append(
            f"Over all fits of the comparison, two at a time, with the same trees, {gradient} "
            f"takes {all_fits.median():.0f} times as long as FairBoost ({_range(all_fits, 0)})."
        )
    return said


def _in_how_many(holds: pd.Series) -> str:
    return f" (in {int(holds.sum())} of {len(holds)} it holds)"


def _range(ratios: pd.Series, digits: int) -> str:
    """How many places a median is of, and from where to where they range."""
    ends = f"{ratios.min():.{digits}f} to {ratios.max():.{digits}f}"
    return f"median of {counted(len(ratios), 'combination')}, {ends}"


def other_losses(summary: pd.DataFrame, plan: Plan) -> list[str]:
    """Other respects in which another method is ahead of ours."""
    said = []
    ours = summary[summary["method"] == OURS].set_index([*CELL, "split"])
    plain = summary[summary["method"] == PLAIN].set_index([*CELL, "split"])
    target = plan.targets[len(plan.targets) // 2]
    for column, title in ((f"auc@{target:g}", "AUC"), (f"calibration@{target:g}", "calibration")):
        own, other = ours[column].mean(), plain[column].reindex(ours.index).mean()
        worse = own < other if title == "AUC" else own > other
        if worse:
            what = "AUC" if title == "AUC" else "calibration error"
            said.append(
                f"At a target of {target:g} the {what} is {own:.3f} on average, and that of "
                f"LightGBM without a constraint {other:.3f}: the constraint moves probabilities."
            )
    said += _more_often_met(summary, plan)
    return said


def _more_often_met(summary: pd.DataFrame, plan: Plan) -> list[str]:
    """Methods that meet more of their targets on test rows than ours on the same cells."""
    columns = [f"met@{target:g}" for target in plan.targets]
    wide: Any = {
        name: rows.set_index([*CELL, "split"])[columns].mean(axis=1)
        for name, rows in summary.groupby("method")
    }
    said = []
    for method in without_groups(plan):
        if method in wide and OURS in wide:
            both = pd.concat([wide[method], wide[OURS]], axis=1).dropna().to_numpy()
            if len(both) and both[:, 0].mean() > both[:, 1].mean():
                shares = [f"{100 * share:.0f} %" for share in np.mean(both, axis=0)]
                said.append(
                    f"{method} meets {shares[0]} of its targets on test rows, FairBoost "
                    f"{shares[1]} on the same problems."
                )
    return said
