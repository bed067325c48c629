"""Plots of training dynamics, fairness reports, gap curves, and gaps by month or region."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from fairproj.boosting.record import History
from fairproj.inference import FairnessReport, GapsBy
from fairproj.io.figures import new_axes, plain_label
from fairproj.report._dynamics import loss_lines

# A palette that readers with colour vision deficiency can distinguish (Okabe & Ito).
_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#666666"


def plot_dynamics(model: Any, *, ax: Any = None) -> Any:
    """Plot loss, edges, fairness cost and balance, round by round.

    For `FairBoostClassifier`: losses, edges, gaps of the predictions with their limits, and the
    multipliers of the signed costs (above zero for a group whose rate is too high); a vertical line
    marks the last round that the model has.

    Parameters
    ----------
    model : FairProjClassifier, FairBoostClassifier or History
        A fitted model, or its ``history_``.
    ax : sequence of four matplotlib axes, optional
        Where to draw; by default a new figure of two by two.

    Returns
    -------
    array of matplotlib axes of shape (4,)
    """
    history = _history(model)
    axes = np.asarray(new_axes(2, 2, figsize=(9, 6.5)) if ax is None else ax).reshape(-1)
    if len(axes) != 4:
        raise ValueError(f"ax must be four matplotlib axes, got {len(axes)}")
    rounds = np.arange(1, len(history) + 1)
    few = len(history) <= 25
    style = {"markersize": 4, "linewidth": 1.5}
    fairboost = (_signed_loss, _edges, _gap, _multipliers)
    fairproj = (_loss, _edges, _cost, _balance)
    for draw, panel in zip(fairboost if history.closed_loop else fairproj, axes, strict=True):
        draw(panel, rounds, history, style, few)
        panel.set_xlabel("round")
        panel.grid(alpha=0.3)
        panel.margins(x=0.02)
        if history.closed_loop:
            _mark_last_round(panel, history.n_kept)
        if few:
            panel.xaxis.get_major_locator().set_params(integer=True)
    return axes


def _history(model: Any) -> History:
    if isinstance(model, History):
        return model
    check_is_fitted(model)
    history: History = model.history_
    return history


def _mark_last_round(ax: Any, kept: int) -> None:
    ax.axvline(kept, color=_GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    note = {"rotation": 90, "fontsize": "x-small", "color": _GREY, "ha": "right"}
    place = {"xy": (kept, 0.03), "xycoords": ("data", "axes fraction")}
    ax.annotate("last round kept", **place, **note)


def plot_rates(report: FairnessReport, *, ax: Any = None) -> Any:
    """Plot the rates of each group with their intervals.

    Parameters
    ----------
    report : FairnessReport
    ax : sequence of matplotlib axes, optional
        Where to draw, one for each rate; by default a new figure with rows of three.

    Returns
    -------
    array of matplotlib axes
    """
    names = report.rates["rate"].unique()
    across = len(names) if ax is not None else 3
    if ax is None:
        n_rows, height = -(-len(names) // across), 0.9 + 0.25 * report.rates["group"].nunique()
        ax = new_axes(n_rows, across, figsize=(11, n_rows * height)).reshape(-1)
        for unused in ax[len(names) :]:
            unused.remove()
        ax = ax[: len(names)]
    axes = np.asarray(ax).reshape(-1)
    if len(axes) != len(names):
        raise ValueError(f"ax must be {len(names)} matplotlib axes, got {len(axes)}")
    for name, panel in zip(names, axes, strict=True):
        _intervals(panel, report.rates[report.rates["rate"] == name], "group")
        panel.set_title(name.replace("_", " "))
    for at, panel in enumerate(axes):
        if at % across:
            panel.set_yticklabels([])
    return axes


def plot_gaps(report: FairnessReport, *, max_gap: float | None = None, ax: Any = None) -> Any:
    """Plot gaps with their intervals, and the largest gap allowed, if any, as a line.

    Parameters
    ----------
    report : FairnessReport
    max_gap : float, optional
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = new_axes(figsize=(6.5, 2.8)) if ax is None else ax
    names = report.gaps["gap"].str.replace("_", " ")
    names = names.where(report.gaps["kind"] == "difference", "1 - " + names)
    _intervals(ax, report.gaps.assign(gap=names), "gap")
    if max_gap is not None:
        ax.axvline(max_gap, color=_ORANGE, linestyle="--")
        ax.set_title(f"dashed: largest gap allowed, {max_gap:g}", fontsize="small", loc="right")
    ax.set_xlim(left=0)
    ax.set_xlabel(f"gap, with {100 * report.confidence:g} % intervals")
    return ax


def plot_gap_curve(
    curve: pd.DataFrame,
    *,
    threshold: float | None = None,
    max_gap: float | None = None,
    ax: Any = None,
) -> Any:
    """Plot the gap by threshold, and in a second panel accuracy and selection rate.

    Parameters
    ----------
    curve : DataFrame
        From `fairproj.metrics.gap_curve`.
    threshold : float, optional
        The threshold in use, shown as a vertical line.
    max_gap : float, optional
        The largest gap allowed, shown as a horizontal line.
    ax : sequence of two matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    array of matplotlib axes of shape (2,)
    """
    axes = np.asarray(new_axes(2, 1, figsize=(6.5, 5.5)) if ax is None else ax).reshape(-1)
    if len(axes) != 2:
        raise ValueError(f"ax must be two matplotlib axes, got {len(axes)}")
    top, bottom = axes
    _steps(top, curve, "gap", color=_BLUE)
    if max_gap is not None:
        top.axhline(max_gap, color=_ORANGE, linestyle="--", label=f"max_gap {max_gap:g}")
    top.set(ylabel="gap between groups")
    _steps(bottom, curve, "accuracy", color=_GREEN)
    _steps(bottom, curve, "selection_rate", color=_ORANGE, linestyle="--")
    bottom.set(xlabel="threshold", ylabel="share of rows", ylim=(0, 1.02))
    bottom.sharex(top)
    for panel in axes:
        if threshold is not None:
            in_use = f"threshold in use, {threshold:.3g}" if panel is top else None
            panel.axvline(threshold, color=_GREY, linestyle=":", label=in_use)
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    top.set_ylim(bottom=0)
    return axes


def plot_gaps_by(gaps: GapsBy, *, ax: Any = None) -> Any:
    """Plot the gap of each part of the rows, such as months, with its interval and alarms.

    Thick lines are the intervals. With a largest gap allowed, thin lines are the bounds that are
    compared with it, which take into account how many parts there are.

    Parameters
    ----------
    gaps : GapsBy
        From `fairproj.inference.gaps_by`.
    ax : matplotlib axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib axes
    """
    ax = new_axes(figsize=gaps_by_size(gaps)) if ax is None else ax
    table = gaps.table.assign(place=np.arange(len(gaps.table)))
    judgements = table.get("judgement", pd.Series("", index=table.index))
    for name, style in _PARTS.items():
        part = table[~judgements.isin(_PARTS) if name == "gap" else judgements == name]
        if len(part):
            _draw_part(ax, part, name, **style)
    if gaps.max_gap is not None:
        limit = f"largest gap allowed, {gaps.max_gap:g}"
        ax.axhline(gaps.max_gap, color="black", linestyle="--", linewidth=1.2, label=limit)
    _name_parts(ax, gaps)
    return ax


# How the parts of the rows are drawn, by their judgement; "gap" is any other.
_PARTS: dict[str, dict[str, Any]] = {
    "gap": {"color": _BLUE, "marker": "o", "fillstyle": "full"},
    "too few rows": {"color": _GREY, "marker": "o", "fillstyle": "none"},
    "alarm": {"color": _ORANGE, "marker": "D", "fillstyle": "full"},
}
_MOST_TICKS = 60  # names of parts that can be read beside one another


def gaps_by_size(gaps: GapsBy) -> tuple[float, float]:
    """Width and height of a figure for `plot_gaps_by`, in inches."""
    return float(np.clip(2.5 + 0.3 * len(gaps.table), 6.5, 20)), 4.2


def _draw_part(ax: Any, part: pd.DataFrame, name: str, color: str, **marker: Any) -> None:
    place = part["place"]
    if "corrected_low" in part:
        ends = part["corrected_low"], part["corrected_high"]
        ax.vlines(place, *ends, color=color, linewidth=0.8)
    ax.vlines(place, part["low"], part["high"], color=color, linewidth=2.6, alpha=0.75)
    ax.plot(place, part["estimate"], color=color, linestyle="", markersize=6, label=name, **marker)


def _name_parts(ax: Any, gaps: GapsBy) -> None:
    """Labels of both axes, the legend, and a scale on which parts with few rows do not matter."""
    names = gaps.table["value"].tolist()
    step = -(-len(names) // _MOST_TICKS)
    labels = list(map(plain_label, names[::step]))
    crowded = len(names) > 8 or max(map(len, names)) > 12
    turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    ax.set_xticks(np.arange(0, len(names), step), labels, fontsize="small", **turned)
    ax.set_xlim(-0.7, len(names) - 0.3)
    judgements = gaps.table.get("judgement", pd.Series("", index=gaps.table.index))
    ends = [name for name in ("high", "corrected_high") if name in gaps.table]
    known = gaps.table.loc[judgements != "too few rows", ends].max(axis=1)
    highest = max([*known, gaps.max_gap or 0.0]) if len(known) else 1.0
    ax.set_ylim(0, min(1.05, 1.08 * highest) or 1.0)
    ax.set_ylabel(f"gap, {gaps.statistic.replace('_', ' ')}")
    ax.set_title(_part_title(gaps), fontsize="small", loc="left", pad=24)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, fontsize="small")
    ax.grid(alpha=0.3, axis="y")


def _part_title(gaps: GapsBy) -> str:
    how = "all together" if gaps.simultaneous else "each by itself"
    title = f"Thick: {100 * gaps.confidence:g} % intervals, {how}"
    if gaps.max_gap is None:
        return title
    return f"{title}. Thin: bounds that decide about alarms, corrected for {len(gaps.table)} values"


def _steps(ax: Any, curve: pd.DataFrame, column: str, **style: Any) -> None:
    """A column of the curve; from one threshold to the next it stays what it is."""
    name = column.replace("_", " ")
    ax.step(curve["threshold"], curve[column], where="post", label=name, linewidth=1.5, **style)


def _intervals(ax: Any, rows: pd.DataFrame, names: str) -> None:
    """A dot and a line for each row, the first on top."""
    places = np.arange(len(rows))[::-1]
    ax.hlines(places, rows["low"], rows["high"], color=_BLUE, linewidth=1.5)
    ax.plot(rows["estimate"], places, "o", color=_BLUE, markersize=5)
    ax.set_yticks(places, list(map(plain_label, rows[names])))
    ax.set_ylim(-0.7, len(rows) - 0.3)
    ax.grid(alpha=0.3, axis="x")


def _loss(ax: Any, rounds: Any, history: History, style: Any, few: bool) -> None:
    columns = history.columns
    ax.plot(rounds, columns["loss"], "o-" if few else "-", color=_BLUE, label="exact", **style)
    ax.plot(rounds, columns["bound_edge"], ":", color=_GREY, label="bound, edges under q", **style)
    ax.plot(rounds, columns["bound_tv"], "--", color=_GREEN, label="bound, TV", **style)
    ax.plot(rounds, columns["bound_cost"], "-.", color=_ORANGE, label="bound, KL", **style)
    ax.set(title="Exponential loss", ylabel="mean over the training rows")
    ax.legend(fontsize="small")


def _edges(ax: Any, rounds: Any, history: History, style: Any, few: bool) -> None:
    columns = history.columns
    ax.plot(rounds, columns["edge_w"], "o-" if few else "-", color=_BLUE, label="under w", **style)
    ax.plot(
        rounds, columns["edge_q"], "s-" if few else "-.", color=_ORANGE, label="under q", **style
    )
    if not history.closed_loop:
        lower = columns["edge_w"] - columns["fairness_cost"]
        ax.plot(rounds, lower, "--", color=_GREEN, label="under w, less fairness cost", **style)
    ax.axhline(0, color=_GREY, linewidth=0.8)
    ax.set(title="Edge of the learner", ylabel="edge")
    ax.legend(fontsize="small")


def _cost(ax: Any, rounds: Any, history: History, style: Any, few: bool) -> None:
    columns = history.columns
    ax.plot(
        rounds,
        columns["fairness_cost"],
        "o-" if few else "-",
        color=_BLUE,
        label="fairness cost, from KL",
        **style,
    )
    ax.plot(rounds, columns["tv"], "--", color=_ORANGE, label="total variation", **style)
    ax.set(title="Distance from q to w", ylabel="cost")
    ax.set_ylim(bottom=0)
    ax.legend(fontsize="small")


def _balance(ax: Any, rounds: Any, history: History, style: Any, few: bool) -> None:
    ax.set(
        title="Largest imbalance of the weights", ylabel=r"$\max_k\ |\langle \cdot, g_k\rangle|$"
    )
    if not history.constraint_names:
        ax.text(0.5, 0.5, "no constraint", ha="center", va="center", transform=ax.transAxes)
        return
    before = np.abs(history.by_constraint("balance_q")).max(axis=1)
    after = np.abs(history.by_constraint("balance")).max(axis=1)
    ax.plot(rounds, before, "s:" if few else ":", color=_ORANGE, label="q, before", **style)
    ax.plot(rounds, after, "o-" if few else "-", color=_BLUE, label="w, after", **style)
    if len(set(history.limits)) == 1 and history.limits[0] < 1:
        ax.axhline(history.limits[0], color=_GREEN, linestyle="--", label="epsilon")
    ax.set_ylim(bottom=0)
    ax.legend(fontsize="small")


_LINES = ("-", "--", "-.", ":")
_COLOURS = (_BLUE, _ORANGE, _GREEN, "#CC79A7", "#56B4E9", "#E69F00", "#000000")


def _signed_loss(ax: Any, rounds: Any, history: History, style: Any, few: bool) -> None:
    for position, (name, values) in enumerate(loss_lines(history).items()):
        ax.plot(rounds, values, label=name, **_line_style(position), **style)
    ax.set(title="Loss", ylabel="mean over the rows")
    ax.legend(fontsize="small")


def _gap(ax: Any, rounds: Any, history: History, style: Any, few: bool) -> None:
    for position, (name, gaps) in enumerate(zip(history.events, history.by_event().T, strict=True)):
        ax.plot(rounds, gaps, label=plain_label(name), **_line_style(position), **style)
    for limit in sorted(set(history.limits)):
        ax.axhline(limit, color=_GREEN, linestyle="--", label=f"max_gap {limit:g}")
    ax.set(title="Gap of the predictions", ylabel="between groups")
    ax.set_ylim(bottom=0)
    if history.events:
        ax.legend(fontsize="small", loc="upper right")


def _multipliers(ax: Any, rounds: Any, history: History, style: Any, few: bool) -> None:
    for position, (name, values) in enumerate(
        zip(history.watched, history.by_group("multipliers").T, strict=True)
    ):
        ax.plot(rounds, values, label=plain_label(name), **_line_style(position), **style)
    ax.axhline(0, color=_GREY, linewidth=0.8)
    ax.set(title="Multipliers of the costs", ylabel=r"$\lambda$")
    if 0 < len(history.watched) <= 8:
        ax.legend(fontsize="small")


def _line_style(position: int) -> dict[str, Any]:
    """A colour and a dash pattern, since some readers cannot rely on colour."""
    return {
        "color": _COLOURS[position % len(_COLOURS)],
        "linestyle": _LINES[position % len(_LINES)],
    }
