"""The short table of the README and the note below it, written there from kept results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from arena.plan import Method, Plan
from arena.summary import CELL, OURS, difference_at
from arena.tables import GROUPS, Lines, number, same_cells, signed
from arena.timing import ratios_with_same_trees, time_ratios
from fairproj.data.checks import counted
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text

BEGIN = "<!-- written by make arena-page -->\n"
END = "<!-- until here -->\n"
MIXTURE = "Exponentiated Gradient"  # compared with fewer iterations than its default
NAMES = {
    "FairBoost": "**FairBoost** (fairproj)",
    "LightGBM": "LightGBM, no constraint",
    "Exponentiated Gradient": "fairlearn, Exponentiated Gradient",
    "FairGBM": "FairGBM",
    "Threshold Optimizer": "fairlearn, Threshold Optimizer",
    "Prejudice Remover": "AIF360, Prejudice Remover",
}


def short_comparison(
    summary: pd.DataFrame, plan: Plan, times: pd.DataFrame, tidy: pd.DataFrame
) -> str:
    """The table and its note, as Markdown."""
    return f"{markdown(peer_table(summary, plan, times))}\n{note(summary, plan, times, tidy)}\n"


def peer_table(summary: pd.DataFrame, plan: Plan, times: pd.DataFrame) -> Lines:
    """What comes out of each method, whether it needs groups, and what it costs."""
    target = _target(plan)
    head = ["", "what comes out", "needs the group to predict", "accuracy ↑, minus FairBoost's"]
    head += [f"test gap ↓, target {target:g}", "time of a fit ↓, FairBoost's = 1"]
    lines = [_line(method, summary, target, times) for method in _shown(summary, plan)]
    return [head, *lines]


def _target(plan: Plan) -> float:
    return plan.targets[len(plan.targets) // 2]


def _shown(summary: pd.DataFrame, plan: Plan) -> list[Method]:
    present = [each for each in plan.methods if each.name in {*NAMES} & {*summary["method"]}]
    order = list(NAMES)
    return sorted(present, key=lambda method: order.index(method.name))


def _line(method: Method, summary: pd.DataFrame, target: float, times: pd.DataFrame) -> list[str]:
    gap = number(_mean_gaps(summary, method.name, target)[0])
    start = [NAMES[method.name], method.gives, GROUPS[method.groups]]
    if method.name == OURS:
        return [*start, "0", gap, "1"]
    points = difference_at(summary, method.name, f"score@{target:g}")
    ratios = time_ratios(times, method.name, OURS)
    return [*start, signed(100 * points.value), gap, f"{ratios.median():.2g}"]


def _mean_gaps(summary: pd.DataFrame, name: str, target: float) -> tuple[float, float]:
    """Mean test gap of a method, and FairBoost's on the same combinations."""
    gap = f"gap@{target:g}"
    means = same_cells(summary, name).groupby(["method", *CELL])[gap].mean()
    return means.loc[name].mean(), means.loc[OURS].mean()


def note(summary: pd.DataFrame, plan: Plan, times: pd.DataFrame, tidy: pd.DataFrame) -> str:
    """What the columns mean, and which lines rest on few combinations."""
    methods = [each.name for each in _shown(summary, plan)]
    runs = {name: _combinations(summary, name) for name in methods}
    few = [
        f"for {name} over {runs[name]}, where FairBoost's gap is "
        f"{number(_mean_gaps(summary, name, _target(plan))[1])}"
        for name in methods
        if runs[name] < runs[OURS]
    ]
    timed = {name: len(time_ratios(times, name, OURS)) for name in methods if name != OURS}
    most = max(timed.values())
    fewer = [f"{count} for {name}" for name, count in timed.items() if count < most]
    same_trees = ratios_with_same_trees(tidy, MIXTURE, OURS).median()
    return (
        "*↑ higher is better, ↓ lower is better. Accuracy is the difference in percentage points "
        "(balanced accuracy where labels are rare); more of it at a larger gap is no gain. Means "
        f"are over {counted(runs[OURS], 'combination')} of data set and constraint"
        f"{''.join(f'; {each}' for each in few)}. Times are of one fit with LightGBM's "
        f"default trees, medians of {', '.join([counted(most, 'combination'), *fewer])}; with the "
        f"trees of the comparison, and fewer iterations, {MIXTURE} takes {same_trees:.0f} times as "
        "long as FairBoost.*"
    )


def _combinations(summary: pd.DataFrame, name: str) -> int:
    return same_cells(summary, name).groupby(CELL).ngroups


def update(path: Path, content: str) -> None:
    """Put Markdown between the two marks of a file."""
    text = path.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{path} lacks the marks between which the table of the arena stands")
    write_text(path, f"{before}{BEGIN}\n{content}\n{END}{after}")
