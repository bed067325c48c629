"""What must be known about problems to read results, kept so that the page needs no data."""

from __future__ import annotations

from typing import Any

import numpy as np

from arena import scores, worker
from arena.data import Folders, make_files, population_of
from arena.plan import Plan, Problem
from arena.run import test_weight

LIMITS = np.round(np.concatenate([np.arange(0, 0.1, 0.005), np.arange(0.1, 0.61, 0.02)]), 3)


def describe(problem: Problem, plan: Plan, folders: Folders) -> dict[str, Any]:
    """Rows and features, sizes and base rates of the groups, the score of a constant.

    For a population also its frontiers: limits on the gap, and the best accuracy at each.
    """
    files = make_files(problem, plan.splits[0], plan, folders)
    parts = worker.load_parts(str(files.arrays), str(files.rows))
    train = parts["train"]
    members = [train.y[train.groups == group] for group in np.unique(train.groups)]
    known = {
        "rows": {part: len(rows.y) for part, rows in parts.items()},
        "features": train.X.shape[1],
        "positive": round(float(train.y.mean()), 4),
        "groups": [[len(y), round(float(y.mean()), 4)] for y in members],
        "constant": scores.constant_score(parts["test"], problem.goal, test_weight(files)),
    }
    frontiers = true_frontiers(problem)
    return known | ({"frontiers": frontiers} if frontiers else {})


def true_frontiers(problem: Problem) -> dict[str, list[list[float]]]:
    """The best accuracy of any classifier of the features at limits on the gap, if known."""
    population = population_of(problem)
    if population is None:
        return {}
    blind = not problem.keep_sensitive
    return {
        constraint: [
            LIMITS.tolist(),
            [population.best_accuracy(limit, constraint, blind=blind) for limit in LIMITS],
        ]
        for constraint in problem.constraints
    }
