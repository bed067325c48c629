"""The short table of the README, written there from kept results."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from arena.plan import Method, Plan
from arena.summary import CELL, OURS, difference_at
from arena.tables import GROUPS, Lines, number, same_cells, signed
from arena.timing import time_ratios
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text

BEGIN = "<!-- written by make arena-page -->\n"
END = "<!-- until here -->\n"
NAMES = {
    "FairBoost": "**FairBoost**",
    "LightGBM": "LightGBM, no constraint",
    "LightGBM, one threshold": "LightGBM, its threshold moved",
    "Exponentiated Gradient": "fairlearn, Exponentiated Gradient",
    "Grid Search": "fairlearn, Grid Search",
    "FairGBM": "FairGBM",
    "OxonFair, inferred groups": "OxonFair, inferred groups",
    "Prejudice Remover": "AIF360, Prejudice Remover",
    "Threshold Optimizer": "fairlearn, Threshold Optimizer",
    "Relaxed Threshold Optimizer": "error-parity",
    "OxonFair": "OxonFair",
}


def peer_table(summary: pd.DataFrame, plan: Plan, times: pd.DataFrame) -> Lines:
    """What comes out of each method, whether it needs groups, and what it costs."""
    target = plan.targets[len(plan.targets) // 2]
    head = ["", "result", "groups at predict", "score within a gap (mixed), % of FairBoost's"]
    head += [f"target {target:g}: points beside FairBoost's", "test gap (FairBoost's)"]
    head += ["times FairBoost's fit"]
    present = [each for each in plan.methods if each.name in {*NAMES} & {*summary["method"]}]
    order = list(NAMES)
    present.sort(key=lambda method: order.index(method.name))
    return [head, *(_line(method, summary, target, times) for method in present)]


def _line(method: Method, summary: pd.DataFrame, target: float, times: pd.DataFrame) -> list[str]:
    rows = same_cells(summary, method.name)
    gap = f"gap@{target:g}"
    means = rows.groupby(["method", *CELL])[["hypervolume", "mixed", gap]].mean()
    own, ours = means.loc[method.name], means.loc[OURS]
    gaps = [number(each[gap].mean()) for each in (own, ours)]
    start = [NAMES[method.name], method.gives, GROUPS[method.groups]]
    if method.name == OURS:
        return [*start, "100 (100)", "0", gaps[0], "1"]
    share, mixed = (100 * (own[kind] / ours[kind]).median() for kind in ("hypervolume", "mixed"))
    points = difference_at(summary, method.name, f"score@{target:g}")
    ratios = time_ratios(times, method.name, OURS)
    longer = f"{ratios.median():.2g}" if len(ratios) else "-"
    beside = f"{gaps[0]} ({gaps[1]})"
    return [*start, f"{share:.0f} ({mixed:.0f})", signed(100 * points.value), beside, longer]


def update(path: Path, lines: Lines) -> None:
    """Put the table between the two marks of a file."""
    text = path.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{path} lacks the marks between which the table of the arena stands")
    write_text(path, f"{before}{BEGIN}\n{markdown(lines)}\n{END}{after}")
