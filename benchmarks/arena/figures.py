"""Pictures of the arena, drawn from kept results."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from arena.frontier import Reference, pareto
from arena.plan import Plan
from arena.summary import OURS, PLAIN, Comparison
from fairproj.experiments._figures import save
from fairproj.io.figures import matplotlib

# Methods differ in line and marker, not in colour alone. Colours: Okabe & Ito.
_STYLES: dict[str, dict[str, Any]] = {
    OURS: {"color": "#0072B2", "linewidth": 2.4},
    "FairBoost, exponential": {"color": "#56B4E9", "linestyle": "--"},
    "Exponentiated Gradient": {"color": "#009E73"},
    "Grid Search": {"color": "#E69F00", "linestyle": "--"},
    "FairGBM": {"color": "#D55E00"},
    "FairProj": {"color": "#CC79A7", "linestyle": ":"},
    "OxonFair, inferred groups": {"color": "#000000", "linestyle": ":"},
    PLAIN: {"color": "#000000", "linestyle": "--", "linewidth": 0.9},
    "LightGBM, one threshold": {"color": "#882255", "linestyle": "-.", "linewidth": 0.9},
    "Relaxed Threshold Optimizer": {"color": "#999999", "linestyle": "-."},
}
# Peers that aim at a gap, our other loss and a baseline; the tables have the others too.
PEERS = (
    "FairBoost, exponential",
    "Exponentiated Gradient",
    "Grid Search",
    "FairGBM",
    "OxonFair, inferred groups",
    "LightGBM, one threshold",
)
WIDEST = 0.4  # relative difference that is drawn
_WORDS = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy"}


def attained(points: pd.DataFrame, limits: Any, floor: float) -> Any:
    """The best test score within each limit on the test gap, on average over the splits.

    Points are those on the frontier of validation rows. Where none is within a limit, the score of
    a constant counts: the area between this curve and the constant is the hypervolume.
    """
    columns = ("validation_gap", "validation_score", "test_gap", "test_score")
    values = points[list(columns)].to_numpy(dtype=float)
    curves = []
    for at in points.groupby("split").indices.values():
        kept = pareto(values[at, 0], values[at, 1])
        gaps, scores = values[at][kept, 2:].T
        inside = np.where(gaps[None, :] <= limits[:, None], scores[None, :], floor)
        curves.append(np.maximum(inside.max(axis=1, initial=floor), floor))
    return np.mean(curves, axis=0)


def frontiers(
    tidy: pd.DataFrame, plan: Plan, constraint: str, references: dict[Any, Reference], note: Any
) -> Any:
    """One panel for each problem: the score attained within a limit on the gap."""
    mpl = matplotlib()
    problems = [each for each in plan.problems if (each.name, constraint) in references]
    columns = min(3, len(problems))
    rows = math.ceil(len(problems) / columns)
    with mpl.rc_context({"font.size": 8}):
        figure = mpl.figure.Figure(figsize=(3.3 * columns, 2.5 * rows + 0.6), layout="constrained")
        axes = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
        for ax, problem in zip(axes, problems, strict=False):
            reference = references[problem.name, constraint]
            here = (tidy["problem"] == problem.name) & (tidy["constraint"] == constraint)
            true = note["problems"][problem.name].get("frontiers", {}).get(constraint)
            _panel(ax, tidy[here], reference, true)
            ax.set_title(textwrap.fill(problem.title, 42), fontsize=8)
            ax.set_ylabel(_WORDS[problem.goal])
        for ax in axes[len(problems) :]:
            ax.set_visible(False)
        for ax in axes[max(0, len(problems) - columns) : len(problems)]:
            ax.set_xlabel("limit on the gap, test rows")
        _legend(figure, axes[: len(problems)])
    return figure


def _panel(ax: Any, rows: pd.DataFrame, reference: Reference, true: Any) -> None:
    limits = np.linspace(0, reference.gap, 201)
    for method, style in _STYLES.items():
        points = rows[rows["method"] == method]
        if len(points):
            ax.plot(limits, attained(points, limits, reference.score), label=method, **style)
    if true is not None:
        ax.plot(
            limits,
            np.interp(limits, *true),
            color="#F0E442",
            linewidth=2,
            label="the true frontier",
        )
    ax.axhline(reference.score, color="0.7", linewidth=0.8)
    ax.set_xlim(0, reference.gap)
    ax.grid(alpha=0.3)


def _legend(figure: Any, axes: Any) -> None:
    """One legend for all panels, with every line that some panel has."""
    known: dict[str, Any] = {}
    for ax in axes:
        known |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(
        list(known.values()), list(known), loc="outside lower center", ncols=4, frameon=False
    )


def differences(comparisons: list[Comparison], titles: dict[str, str]) -> Any:
    """Our hypervolume less that of `PEERS`, as a share of it: one row for each cell.

    By steps on the left, of mixtures on the right.
    """
    mpl = matplotlib()
    cells = list(dict.fromkeys((each.problem, each.constraint) for each in comparisons))
    place = {cell: len(cells) - at for at, cell in enumerate(cells)}
    with mpl.rc_context({"font.size": 8}):
        figure = mpl.figure.Figure(figsize=(9.6, 0.28 * len(cells) + 1.2), layout="constrained")
        axes = figure.subplots(1, 2, sharex=True, sharey=True)
        for ax, measure, title in (
            (axes[0], "relative", "by steps"),
            (axes[1], "mixed", "mixed"),
        ):
            _draw_differences(ax, comparisons, place, measure)
            ax.set_title(title)
        axes[0].set_yticks(
            [place[cell] for cell in cells],
            [f"{titles[problem]}: {constraint.replace('_', ' ')}" for problem, constraint in cells],
        )
        axes[0].set_ylim(0.3, len(cells) + 0.7)
        figure.supxlabel(
            "FairBoost's hypervolume less the other's, % of the other's; "
            f"what is beyond {100 * WIDEST:.0f} is drawn there",
            fontsize=8,
        )
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=3, frameon=False)
    return figure


def _draw_differences(
    ax: Any, comparisons: list[Comparison], place: dict[Any, int], measure: str
) -> None:
    methods = list(dict.fromkeys(each.method for each in comparisons))
    for at, method in enumerate(methods):
        shift = 0.6 * (at / max(1, len(methods) - 1) - 0.5)
        own = [each for each in comparisons if each.method == method]
        ys = [place[each.problem, each.constraint] - shift for each in own]
        values = 100 * np.clip([getattr(each, measure) for each in own], -WIDEST, WIDEST)
        spread = np.abs(values[:, 1:] - values[:, :1]).T
        ax.errorbar(
            values[:, 0],
            ys,
            xerr=np.nan_to_num(spread),
            fmt="osD^vP*X<>"[at % 10],
            markersize=3.5,
            linewidth=0.7,
            color=_STYLES[method]["color"],
            label=method,
        )
    ax.axvline(0, color="0.3", linewidth=0.8)
    ax.axvline(-2, color="0.3", linewidth=0.8, linestyle=":")
    ax.set_xlim(-105 * WIDEST, 105 * WIDEST)
    ax.grid(alpha=0.3, axis="x")


def seconds(times: pd.DataFrame, title: str) -> Any:
    """Seconds of every timed fit, and the median of each method, on a logarithmic scale."""
    mpl = matplotlib()
    medians = times.groupby("method")["fit_seconds"].median().sort_values(ascending=False)
    with mpl.rc_context({"font.size": 8}):
        figure = mpl.figure.Figure(figsize=(6.4, 0.26 * len(medians) + 0.9), layout="constrained")
        ax = figure.subplots()
        for at, (name, median) in enumerate(medians.items()):
            color = "#0072B2" if str(name).startswith(OURS) else "#666666"
            found = times[times["method"] == name]["fit_seconds"]
            ax.plot(found, np.full(len(found), at), "o", markersize=3, color=color, alpha=0.5)
            ax.plot(median, at, "|", markersize=11, markeredgewidth=2, color=color)
            ax.annotate(f"{median:.2g}", (found.max(), at), (6, -3), textcoords="offset points")
        ax.set_yticks(range(len(medians)), list(medians.index))
        ax.set_xscale("log")
        ax.set_xlabel("seconds of a fit; the bar is the median")
        ax.set_title(title)
        ax.margins(x=0.15)
        ax.grid(alpha=0.3, axis="x")
    return figure


def save_png(folder: Path, name: str, figure: Any) -> str:
    """Write a picture, and return its path from the page."""
    folder.mkdir(parents=True, exist_ok=True)
    save(folder, name, figure, endings=("png",))
    return f"{folder.name}/{name}.png"
