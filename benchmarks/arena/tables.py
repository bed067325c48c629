"""Tables of the page, each from the summary, as lines for Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from arena.frontier import Interval
from arena.plan import Method, Plan
from arena.summary import (
    CELL,
    MEASURES,
    OURS,
    PLAIN,
    Comparison,
    difference_at,
    ranks,
    true_hypervolume,
)

Lines = list[list[str]]
GROUPS = {"none": "no", "inferred": "inferred", "used": "**yes**"}


def words(constraint: str) -> str:
    return constraint.replace("_", " ")


def number(value: float, digits: int = 3) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def signed(value: float, digits: int = 1) -> str:
    """With a sign, and no sign where it rounds to zero."""
    if np.isnan(value):
        return "-"
    text = f"{value:+.{digits}f}"
    return text if text.strip("+-0.") else text[1:]


def interval(value: Interval, scale: float = 1.0, digits: int = 1) -> str:
    """An estimate with its interval in brackets."""
    if np.isnan(value.value):
        return "-"
    if np.isnan(value.low):
        return signed(scale * value.value, digits)
    low, high = (signed(scale * end, digits) for end in value[1:])
    return f"{signed(scale * value.value, digits)} [{low}, {high}]"


def rank_table(summary: pd.DataFrame, plan: Plan) -> Lines:
    """Mean ranks by hypervolume, over all cells and for each constraint, best first."""
    table = ranks(summary, [each.name for each in plan.methods])
    present = [each for each in plan.methods if each.name in table]
    by_constraint = table.groupby(level="constraint").mean()
    means = table.mean()
    constraints = list(dict.fromkeys(table.index.get_level_values("constraint")))
    first = (table == 1).sum()
    head = ["method", "groups at predict", "mean rank", *map(words, constraints)]
    lines = [[*head, f"first of {len(table)}"]]
    for method in sorted(present, key=lambda each: means[each.name]):
        name = method.name
        line = [_bold(name), GROUPS[method.groups], number(means[name], 1)]
        line += [number(by_constraint.loc[each, name], 1) for each in constraints]
        lines.append([*line, str(first[name])])
    return lines


def _bold(name: str) -> str:
    return f"**{name}**" if name == OURS else name


def against_table(compared: dict[str, list[Comparison]], plan: Plan) -> Lines:
    """FairBoost's hypervolume beside each method's: how often it is shown to be as large."""
    counted = "holds, open, fails"
    lines = [["method", "groups at predict", "combinations", counted, "median difference, %"]]
    lines[0] += [f"corrected: {counted}", f"mixed: {counted}", "mixed: median difference, %"]
    for method in plan.methods:
        found = compared.get(method.name)
        if not found:
            continue
        steps, corrected, mixed = (verdict_counts(found, measure) for measure in MEASURES)
        medians = [_median(each.relative for each in found), _median(each.mixed for each in found)]
        start = [method.name, GROUPS[method.groups], str(len(found))]
        lines.append([*start, steps, medians[0], corrected, mixed, medians[1]])
    return lines


def verdict_counts(comparisons: list[Comparison], measure: str) -> str:
    verdicts = [each.verdict(measure) for each in comparisons]
    return ", ".join(str(verdicts.count(each)) for each in ("holds", "open", "fails"))


def _median(intervals: Iterable[Interval]) -> str:
    """The median of estimates, in percent."""
    values = [100 * each.value for each in intervals if not np.isnan(each.value)]
    return signed(float(np.median(values))) if values else "-"


def target_table(summary: pd.DataFrame, plan: Plan) -> Lines:
    """Score at each target less FairBoost's, mean gaps of both, and the share of targets met."""
    targets = [f"{target:g}" for target in plan.targets]
    head = ["method", *(f"at {target}: points; gap, ours" for target in targets)]
    lines = [[*head, "targets met", "ours", "mean excess", "ours"]]
    for method in plan.methods:
        if method.name not in set(summary["method"]):
            continue
        own = same_cells(summary, method.name)
        both = [own[own["method"] == name] for name in (method.name, OURS)]
        line = [_bold(method.name)]
        for target in targets:
            gaps = ", ".join(number(rows[f"gap@{target}"].mean()) for rows in both)
            difference = difference_at(summary, method.name, f"score@{target}")
            points = "0" if method.name == OURS else interval(difference, 100, 2)
            line.append(f"{points}; {gaps}")
        line += [", ".join(_met(rows, targets)) for rows in both]
        line += [number(_excess(rows, targets), 3) for rows in both]
        lines.append(line)
    return lines


def same_cells(summary: pd.DataFrame, method: str) -> pd.DataFrame:
    """Rows of a method and ours, in the cells and splits that both have."""
    rows = summary[summary["method"].isin([method, OURS])]
    n_methods = rows.groupby([*CELL, "split"])["method"].transform("nunique")
    return rows if method == OURS else rows[n_methods == 2]


def _met(rows: pd.DataFrame, targets: list[str]) -> list[str]:
    """How often test gaps are within each target."""
    return [number(rows[f"met@{target}"].mean(), 2) for target in targets]


def _excess(rows: pd.DataFrame, targets: list[str]) -> float:
    """By how much the test gap is above the target, zero where it is not, on average."""
    above = [np.maximum(rows[f"gap@{target}"] - float(target), 0) for target in targets]
    return float(np.nanmean(above))


def price_table(summary: pd.DataFrame, plan: Plan) -> Lines:
    """What is lost without groups at predict: scores of methods that use them, less ours.

    Problems whose features include the groups have lines of their own: there all methods have them.
    """
    kept = summary["problem"].isin([each.name for each in plan.problems if each.keep_sensitive])
    constraints = list(dict.fromkeys(summary["constraint"]))
    targets = [f"{target:g}" for target in plan.targets]
    lines = [["method", "groups among the features", "constraint"]]
    lines[0] += [*(f"at {target}, points" for target in targets), "hypervolume, points"]
    for method in plan.methods:
        if method.groups == "none" or method.name not in set(summary["method"]):
            continue
        for among, constraint in product((False, True), constraints):
            rows = (summary["constraint"] == constraint) & (kept == among)
            if not (summary[rows]["method"] == method.name).any():
                continue
            columns = [*(f"score@{target}" for target in targets), "hypervolume"]
            found = [difference_at(summary, method.name, each, rows) for each in columns]
            line = [f"{method.name} ({method.groups})", "yes" if among else "no"]
            lines.append([*line, words(constraint), *(interval(each, 100, 2) for each in found)])
    return lines


def distance_table(far: pd.DataFrame, plan: Plan, true: Any, references: Any) -> Lines:
    """Distance below the true frontier, and the share of its hypervolume, for each population."""
    cells = list(dict.fromkeys(zip(far["problem"], far["constraint"], strict=True)))
    lines = [["method", *(f"{problem}, {words(constraint)}" for problem, constraint in cells)]]
    best = {cell: true_hypervolume(*true[cell[0]][cell[1]], references[cell]) for cell in cells}
    for method in plan.methods:
        own = far[far["method"] == method.name]
        if not len(own):
            continue
        line = [_bold(method.name)]
        for cell in cells:
            rows = own[(own["problem"] == cell[0]) & (own["constraint"] == cell[1])]
            share = rows["hypervolume"].mean() / best[cell]
            shown = f"{number(rows['distance'].mean(), 2)} ({100 * share:.0f} %)"
            line.append(shown if len(rows) else "-")
        lines.append(line)
    return lines


def ranking_table(summary: pd.DataFrame, plan: Plan, target: float) -> Lines:
    """Area under the ROC curve and calibration of the point chosen at a target, and LightGBM's."""
    auc, calibration = f"auc@{target:g}", f"calibration@{target:g}"
    plain = summary[summary["method"] == PLAIN].set_index([*CELL, "split"])
    lines = [
        ["method", "AUC", "minus LightGBM's", "calibration error", "LightGBM's", "combinations"]
    ]
    for method in plan.methods:
        own = summary[summary["method"] == method.name].set_index([*CELL, "split"])
        if not len(own) or not method.probabilities:
            continue
        less = (own[auc] - plain[auc].reindex(own.index)).mean()
        beside = plain[calibration].reindex(own.index).mean()
        cells = str(len(own.groupby(level=CELL)))
        shown = [number(own[auc].mean()), signed(less, 3), number(own[calibration].mean())]
        lines.append([_bold(method.name), *shown, number(beside), cells])
    return lines


def time_table(times: pd.DataFrame, plan: Plan) -> Lines:
    """Median seconds of a fit on each problem, speed of predictions, memory, lines of code."""
    problems = list(dict.fromkeys(times["problem"]))
    lines = [["method", *(f"fit on {problem}, s" for problem in problems)]]
    lines[0] += ["times LightGBM's", "rows predicted a second", "memory of a fit, MB", "lines"]
    plain = times[times["method"] == PLAIN].groupby("problem")["fit_seconds"].median()
    for method in plan.methods:
        own = times[times["method"] == method.name]
        if "fit_seconds" not in own or not own["fit_seconds"].notna().any():
            continue
        fits = own.groupby("problem")["fit_seconds"].median()
        ratio = (fits / plain).median()
        line = [_bold(method.name), *(number(fits.get(each, np.nan), 2) for each in problems)]
        line += [number(ratio, 1), f"{own['predict_rows_per_second'].median():,.0f}"]
        lines.append([*line, number(own["peak_megabytes"].median(), 0), str(method.lines)])
    return lines


def problem_table(plan: Plan, note: Any) -> Lines:
    """Rows, features, groups and base rates of each problem."""
    lines = [["problem", "training, validation, test rows", "features", "positive", "groups"]]
    lines[0] += ["score", "of a constant"]
    for problem in plan.problems:
        known = note["problems"].get(problem.name)
        if known is None:
            continue
        rows = ", ".join(f"{known['rows'][part]:,}" for part in ("train", "validation", "test"))
        groups = "; ".join(f"{size:,} ({share:.2f})" for size, share in known["groups"])
        name = f"{problem.title} (`{problem.name}`)"
        lines.append([name, rows, str(known["features"]), f"{known['positive']:.3f}", groups])
        lines[-1] += [words(problem.goal), number(known["constant"])]
    return lines


def method_table(plan: Plan, built: dict[str, Any]) -> Lines:
    """What each method is, its grid, and where it runs."""
    lines = [["method", "groups at predict", "constraints", "grid", "points", "environment", ""]]
    for method in plan.methods:
        constraints = ", ".join(map(words, method.constraints)) or "none of its own"
        grid = "; ".join(_grid(method)) or "-"
        lines.append([method.name, GROUPS[method.groups], constraints, grid])
        lines[-1].append(str(len(method.grid) * len(plan.learners_of(method))))
        lines[-1] += [_where(method, built), method.note]
    return lines


def _grid(method: Method) -> list[str]:
    names = dict.fromkeys(name for setting in method.grid for name in setting)
    values = {
        name: list(dict.fromkeys(f"{setting[name]}" for setting in method.grid)) for name in names
    }
    return [f"{name} {', '.join(shown)}" for name, shown in values.items()]


def _where(method: Method, built: dict[str, Any]) -> str:
    known = built.get(method.environment)
    if known is None:
        return "fairproj's"
    return "its own" if known["ok"] else "**not built**"


def detail_table(summary: pd.DataFrame, compared: dict[str, list[Comparison]], plan: Plan) -> Lines:
    """One problem and constraint: hypervolume, and score, gap and share met at each target."""
    cell = tuple(summary[CELL].iloc[0])
    targets = [f"{target:g}" for target in plan.targets]
    lines = [["method", "groups", "hypervolume", "FairBoost's less it, %"]]
    lines[0] += [f"at {target}: score / gap (met)" for target in targets]
    means = summary.groupby("method")["hypervolume"].mean().sort_values(ascending=False)
    for name in means.index:
        rows = summary[summary["method"] == name]
        every = compared.get(name, [])
        found = [each for each in every if (each.problem, each.constraint) == cell]
        relative = interval(found[0].relative, 100) if found else "-"
        line = [_bold(name), GROUPS[plan.method(name).groups], number(100 * means[name], 2)]
        line.append(relative + (f" {found[0].verdict()}" if found else ""))
        for target in targets:
            score, gap, met = (rows[f"{kind}@{target}"].mean() for kind in ("score", "gap", "met"))
            line.append(f"{number(score)} / {number(gap)} ({met:.0%})")
        lines.append(line)
    return lines
