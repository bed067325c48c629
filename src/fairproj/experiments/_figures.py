"""The paper's three figures, drawn from the tidy file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairproj.boosting.record import History
from fairproj.experiments._tables import DATASETS, GAPS
from fairproj.io.figures import matplotlib
from fairproj.report.plots import plot_dynamics

# Methods differ in marker and line, not in colour alone. Colours: Okabe & Ito.
_STYLES: dict[str, dict[str, Any]] = {
    "FairProj": {"marker": "o", "linestyle": "-", "color": "#0072B2"},
    "AdaBoost": {"marker": "*", "linestyle": "", "color": "#000000", "markersize": 9},
    "Reweighing": {"marker": "s", "linestyle": "", "color": "#D55E00"},
    "EG, one stump": {"marker": "^", "linestyle": ":", "color": "#CC79A7"},
    "EG, boosted stumps": {"marker": "D", "linestyle": "", "color": "#009E73"},
}
_NAMED = (0.25, 0.1)  # epsilons written beside their points

_FORMATS: dict[str, dict[str, Any]] = {
    "png": {"dpi": 150, "metadata": {"Software": None}},
    "svg": {"metadata": {"Date": None}},
}


def pareto(results: pd.DataFrame, constraint: str) -> Any:
    """Accuracy against the gap on the test rows, a panel per dataset, a point per epsilon."""
    mpl = matplotlib()
    rows = results[results["constraint"].isin([constraint, ""])]
    with mpl.rc_context({"font.size": 9}):
        figure = mpl.figure.Figure(figsize=(4.6, 10), layout="constrained")
        axes = figure.subplots(3, 1)
        for ax, (dataset, title) in zip(axes, DATASETS.items(), strict=True):
            for method, style in _STYLES.items():
                chosen = rows[(rows["dataset"] == dataset) & (rows["method"] == method)]
                _curve(ax, chosen, constraint, style, method)
            ax.set(title=title, xlabel=f"{GAPS[constraint]}, test rows", ylabel="accuracy")
            ax.grid(alpha=0.3)
            ax.set_xlim(left=-0.03 * ax.get_xlim()[1])
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _curve(ax: Any, rows: pd.DataFrame, gap: str, style: dict[str, Any], method: str) -> None:
    grouped = rows.groupby("epsilon", dropna=False, sort=True)
    mean, std = (grouped[[gap, "accuracy"]].agg(kind) for kind in ("mean", "std"))
    ax.errorbar(
        mean[gap],
        mean["accuracy"],
        xerr=std[gap],
        yerr=std["accuracy"],
        label=method,
        elinewidth=0.6,
        **({"markersize": 5, "linewidth": 1.2} | style),
    )
    for bars in ax.containers[-1].lines[2]:
        bars.set_alpha(0.45)
    if method == "FairProj":
        _name_epsilons(ax, mean.rename(columns={gap: "gap"}), style["color"])


def _name_epsilons(ax: Any, points: pd.DataFrame, color: str) -> None:
    """Write some epsilons beside their points, in one note where points are close together."""
    near = np.ptp([ax.get_xlim(), ax.get_ylim()], axis=1) * (0.2, 0.06)
    places: list[tuple[Any, list[str]]] = []
    for epsilon, point in points[points.index.isin(_NAMED)].iterrows():
        here = point.to_numpy()
        same = next((names for place, names in places if (abs(place - here) <= near).all()), None)
        if same is None:
            places.append((here, same := []))
        same.append(f"{epsilon}")
    for place, names in places:
        ax.annotate(
            f"ε={', '.join(names)}",
            place,
            xytext=(6, -11),
            textcoords="offset points",
            fontsize="small",
            color=color,
        )


def dynamics(history: History) -> Any:
    """Figure 3: loss, edges, fairness cost and balance of one run."""
    mpl = matplotlib()
    with mpl.rc_context({"font.size": 8}):
        figure = mpl.figure.Figure(figsize=(6.4, 5.6), layout="constrained")
        plot_dynamics(history, ax=figure.subplots(2, 2))
    return figure


def save(folder: Path, name: str, figure: Any, endings: tuple[str, ...] = ("png", "svg")) -> None:
    """As PNG and SVG, without a date, so that a second run writes the same files."""
    with matplotlib().rc_context({"svg.hashsalt": "fairproj"}):
        for ending in endings:
            partial = folder / f"{name}.partial.{ending}"
            figure.savefig(partial, **_FORMATS[ending])
            os.replace(partial, folder / f"{name}.{ending}")
