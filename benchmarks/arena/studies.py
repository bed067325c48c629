"""A table from the kept results of another plan: what the limits of a grid cost a peer."""

from __future__ import annotations

import json
from pathlib import Path

from arena.plan import HERE, read_plan
from arena.run import read_results
from arena.summary import CELL, references, summarise
from arena.tables import Lines, number, words


def iterations_table(results: Path) -> Lines:
    """Hypervolumes in points, by steps and mixed, and the seconds of a fit, for each method."""
    plan = read_plan(HERE / "plans" / "iterations.toml")
    note = json.loads((results / "iterations.json").read_text("utf-8"))
    tidy, _ = read_results(plan, results / "iterations.jsonl")
    constants = {name: known["constant"] for name, known in note["problems"].items()}
    summary = summarise(tidy, plan, references(tidy, constants))
    means = 100 * summary.groupby(["method", *CELL])[["hypervolume", "mixed"]].mean()
    seconds = tidy.groupby("method")["seconds"].mean()
    cells = list(dict.fromkeys(zip(summary["problem"], summary["constraint"], strict=True)))
    lines = [["method", *(f"{name}, {words(constraint)}" for name, constraint in cells)]]
    lines[0].append("seconds of a fit")
    for method in plan.methods:
        found = [means.loc[(method.name, *cell)] for cell in cells]
        shown = [f"{number(each['hypervolume'], 1)} ({number(each['mixed'], 1)})" for each in found]
        lines.append([method.name, *shown, number(seconds[method.name], 1)])
    return lines
