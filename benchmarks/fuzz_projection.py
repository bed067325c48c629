"""Random projections by the thousand, judged by a linear program and by the duality gap.

    python benchmarks/fuzz_projection.py                    100,000 problems, in batches of 500
    python benchmarks/fuzz_projection.py --problems 2000 --seed 7 --output fuzz
    python benchmarks/fuzz_projection.py --show 0 4711      one problem, and what became of it

Problems have 2 to 50 groups, masses down to exp(-1400), slack from 0 on, empty cells, and features
of pairs of groups or of any kind. Whether one is feasible depends on which cells have mass, not on
how much, so a linear program (HiGHS) decides it on those cells. A feasible problem must be solved:
w is feasible, and its divergence is that of the dual. An infeasible one must be refused. Batches
that are done are kept, and a run that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linprog

from fairproj.boosting.dual import ProjectionError
from fairproj.boosting.projection import Projection, project
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from kept import Case, run_cases

RESULTS = Path(__file__).parent / "results" / "fuzz-projection"
BATCH = 500
FEASIBLE = 1e-9  # by how much a constraint may be missed
GAP = 1e-8  # between the divergence and the dual, relative to 1 + divergence
DECIDED = 1e-7  # constraints that no w meets by less than this are not said to be infeasible
SLACK = (0.0, 0.0, 1e-8, 1e-4, 0.01, 0.05, 0.2, 0.5)
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
SOLVED, REFUSED, UNDECIDED = "solved", "refused", "undecided"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """What `project` takes, and which kind of problem it is."""

    kind: str
    masses: str
    log_mass: Array
    features: Array
    epsilon: Array

    @property
    def present(self) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.log_mass))


# Problems


def make_problem(seed: int, index: int) -> Problem:
    """A problem; always the same for the same numbers."""
    rng = np.random.default_rng([seed, index])
    kind = str(rng.choice(list(KINDS), p=[0.3, 0.15, 0.15, 0.15, 0.15, 0.1]))
    features = KINDS[kind](rng)
    epsilon = make_slack(kind, features.shape[1], rng)
    name = str(rng.choice(list(MASSES)))
    log_mass = MASSES[name](len(features), rng)
    if rng.random() < 0.35:
        log_mass[rng.random(len(log_mass)) < rng.choice([0.05, 0.2, 0.6])] = -np.inf
    if not np.isfinite(log_mass).any():
        log_mass[rng.integers(len(log_mass))] = 0.0
    return Problem(kind, name, log_mass - np.logaddexp.reduce(log_mass), features, epsilon)


def make_slack(kind: str, n_constraints: int, rng: np.random.Generator) -> Array:
    if kind == "pairs, a slack each" or (kind not in ("pairs", "overlap") and rng.random() < 0.3):
        return rng.choice(SLACK, n_constraints)
    return np.full(n_constraints, rng.choice(SLACK))


def n_groups(rng: np.random.Generator, most: int = 50) -> int:
    """Few groups more often than many."""
    return round(2 * math.exp(rng.random() * math.log(most / 2)))


def pairs(groups: int, events: list[tuple[int, ...]]) -> Array:
    """All pairs of groups; cell 2 g + l is group g with label l."""
    columns = []
    for event in events:
        for a, b in combinations(range(groups), 2):
            column = np.zeros(2 * groups)
            for label in event:
                column[2 * b + label], column[2 * a + label] = 1.0, -1.0
            columns.append(column)
    return np.array(columns).T


def named(rng: np.random.Generator) -> Array:
    events: list[list[tuple[int, ...]]] = [[(0, 1)], [(1,)], [(0,)], [(1,), (0,)]]
    return pairs(n_groups(rng), events[rng.integers(4)])


def overlapping(rng: np.random.Generator) -> Array:
    """Demographic parity together with equal opportunity."""
    return pairs(n_groups(rng, 12), [(0, 1), (1,)])


def named_few(rng: np.random.Generator) -> Array:
    events: list[list[tuple[int, ...]]] = [[(0, 1)], [(1,)], [(1,), (0,)]]
    return pairs(n_groups(rng, 12), events[rng.integers(3)])


def signs(rng: np.random.Generator) -> Array:
    shape = 2 * n_groups(rng), rng.integers(1, 13)
    zeros = rng.choice([0.2, 0.5, 0.9])
    return rng.choice([-1.0, 0.0, 1.0], shape, p=[(1 - zeros) / 2, zeros, (1 - zeros) / 2])


def quarters(rng: np.random.Generator) -> Array:
    """Multiples of a quarter, some columns of one sign or twice the same."""
    values = rng.integers(-8, 9, (2 * n_groups(rng), rng.integers(1, 9))) / 4.0
    values[:, rng.random(values.shape[1]) < 0.1] **= 2
    if values.shape[1] > 1 and rng.random() < 0.3:
        values[:, 0] = values[:, -1] * rng.choice([1.0, -2.0])
    return np.asarray(values)


def numbers(rng: np.random.Generator) -> Array:
    shape = 2 * n_groups(rng), rng.integers(1, 13)
    return rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape[1])


KINDS = {
    "pairs": named,
    "pairs, a slack each": named_few,
    "overlap": overlapping,
    "signs": signs,
    "quarters": quarters,
    "numbers": numbers,
}


def ordinary(n: int, rng: np.random.Generator) -> Array:
    return np.log(rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 5.0]))) + 1e-300)


def wide(n: int, rng: np.random.Generator) -> Array:
    return rng.uniform(-1400, 0, n)


def few_rare(n: int, rng: np.random.Generator) -> Array:
    """Some cells are next to empty, the others ordinary."""
    rare = rng.random(n) < 0.3
    return np.where(rare, rng.uniform(-1400, -30, n), rng.normal(size=n))


def one_large(n: int, rng: np.random.Generator) -> Array:
    logs = rng.uniform(-1400, -600, n)
    logs[rng.integers(n)] = 0.0
    return logs


def steps(n: int, rng: np.random.Generator) -> Array:
    """A few sizes that differ by many orders of magnitude."""
    return rng.choice([0.0, -35.0, -350.0, -700.0, -1400.0], n)


MASSES = {
    "ordinary": ordinary,
    "wide": wide,
    "few rare": few_rare,
    "one large": one_large,
    "steps": steps,
}


# Judging them


def least_violation(problem: Problem) -> float:
    """min over w of max_k (|<w, g_k>| - epsilon_k) / |g_k|, at least 0: 0 if feasible."""
    features, epsilon = scaled(problem)
    n = len(features)
    if problem.kind == "pairs":
        rows, right = band_program(problem)
    else:
        rows = np.hstack([np.vstack([features.T, -features.T]), -np.ones((2 * len(epsilon), 1))])
        right = np.concatenate([epsilon, epsilon])
    cost = np.zeros(rows.shape[1])
    cost[-1] = 1.0
    sums = np.zeros((1, rows.shape[1]))
    sums[0, :n] = 1.0
    bounds = [(0, None)] * rows.shape[1]
    solution = linprog(cost, rows, right, sums, [1.0], bounds, method="highs", options=EXACT)
    assert solution.status == 0, solution.message
    return float(solution.fun)


def scaled(problem: Problem) -> tuple[Array, Array]:
    """Features of the cells that have mass, at most 1 in each column, and the slack likewise."""
    features = problem.features[problem.present]
    scale = np.abs(features).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    return features / scale, problem.epsilon / scale


def band_program(problem: Problem) -> tuple[Array, Array]:
    """t <= M_a <= t + epsilon for the groups of each event, in place of all pairs of them."""
    features, present = problem.features, np.flatnonzero(problem.present)
    blocks, inverse = np.unique(features, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    used = np.flatnonzero(blocks.any(axis=1))
    together = (np.abs(blocks) @ np.abs(blocks).T) > 0
    event = np.array([np.flatnonzero(together[b])[0] for b in used])
    _, event = np.unique(event, return_inverse=True)
    n_events = event.max() + 1
    member = (inverse[present] == used[:, None]).astype(float)
    level = (event[:, None] == np.arange(n_events)).astype(float)
    ones = -np.ones((len(used), 1))
    rows = np.vstack([np.hstack([member, -level, ones]), np.hstack([-member, level, ones])])
    right = np.concatenate([np.full(len(used), problem.epsilon[0]), np.zeros(len(used))])
    return rows, right


def largest_mass(problem: Problem, cells: NDArray[np.bool_]) -> float:
    """The most mass that a feasible w can have on some of the cells that have mass."""
    features, epsilon = scaled(problem)
    solution = linprog(
        -cells[problem.present].astype(float),
        np.vstack([features.T, -features.T]),
        np.concatenate([epsilon, epsilon]),
        np.ones((1, len(features))),
        [1.0],
        method="highs",
        options=EXACT,
    )
    assert solution.status == 0, solution.message
    return -float(solution.fun)


def fault_of(problem: Problem, w: Projection) -> str:
    """What is wrong with a solution; nothing, if it is the projection."""
    scale = np.maximum(np.abs(problem.features).max(axis=0, initial=0.0), 1.0)
    if not (np.isfinite(w.mass).all() and abs(w.mass.sum() - 1) <= FEASIBLE):
        return "not a distribution"
    if w.mass[~problem.present].any():
        return "mass where there was none"
    if (np.abs(w.mass @ problem.features) > problem.epsilon + FEASIBLE * scale).any():
        return "outside the constraints"
    inside = w.mass > 0
    divergence = float(w.mass[inside] @ (np.log(w.mass[inside]) - problem.log_mass[inside]))
    if not math.isclose(divergence, w.kl, rel_tol=GAP, abs_tol=GAP):
        return "the divergence is another"
    # Where the constraints leave a cell no mass, multipliers are those of the other cells.
    reached = problem.present & (w.log_factors > -np.inf)
    left = problem.present & ~reached
    if left.any() and largest_mass(problem, left) > DECIDED:
        return "a cell without mass that may have some"
    if not np.isfinite(w.multipliers).all():
        return "multipliers are not finite"
    logits = problem.log_mass[reached] - problem.features[reached] @ w.multipliers
    dual = -np.logaddexp.reduce(logits) - problem.epsilon @ np.abs(w.multipliers)
    if abs(divergence - dual) > GAP * (1 + abs(divergence)):
        return "a gap to the dual"
    return ""


def judge(problem: Problem) -> tuple[str, str]:
    """How a problem ended: in one of three good ways, or with a failure's name and details."""
    try:
        w = project(problem.log_mass, problem.features, problem.epsilon)
    except ProjectionError as error:
        violation = least_violation(problem)
        if violation <= FEASIBLE:
            return "raised though feasible", str(error)
        if "no distribution" not in str(error):
            return "refused for another reason", str(error)
        return (REFUSED, "") if violation > DECIDED else (UNDECIDED, "")
    except Exception as error:
        return f"raised {type(error).__name__}", str(error)
    fault = fault_of(problem, w)
    if not fault:
        return SOLVED, ""  # a feasible w is shown, so no program is needed
    violation = least_violation(problem)
    if violation > FEASIBLE:
        return ("silent though infeasible" if violation > DECIDED else UNDECIDED), fault
    return fault, ""


# The run


def measure(case: Case) -> Case:
    """How the problems of a batch ended, by kind, and the failures."""
    ends: Counter[str] = Counter()
    failures, empty = [], 0
    for index in range(case["first"], case["first"] + case["problems"]):
        problem = make_problem(case["seed"], index)
        empty += int(not problem.present.all())
        end, message = judge(problem)
        ends[f"{problem.kind}: {end}"] += 1
        if end not in (SOLVED, REFUSED, UNDECIDED):
            failures.append({"index": index, "end": end, "message": message})
    return {"ends": dict(ends), "failures": failures, "empty": empty}


def page(batches: pd.DataFrame, seed: int) -> str:
    ends: Counter[str] = Counter()
    for batch in batches["ends"]:
        ends.update(batch)
    failures = [one for batch in batches["failures"] for one in batch]
    lines = [["features", "problems", "solved", "refused", "undecided", "failures"]]
    totals: Counter[str] = Counter()
    for kind in [*KINDS, "all"]:
        mine = totals
        if kind != "all":
            mine = Counter(
                {
                    key.partition(": ")[2]: n
                    for key, n in ends.items()
                    if key.partition(": ")[0] == kind
                }
            )
            totals = totals + mine
        n = sum(mine.values())
        good = [mine[name] for name in (SOLVED, REFUSED, UNDECIDED)]
        lines.append([kind, *(f"{value:,}" for value in (n, *good, n - sum(good)))])
    shown = "".join(f"\n- problem {one['index']}: {one['end']}" for one in failures[:20])
    return (
        f"# Random projections\n\n`python benchmarks/fuzz_projection.py --seed {seed}`: "
        f"{sum(totals.values()):,} problems in {batches['seconds'].sum():,.0f} s on one core, "
        f"{int(batches['empty'].sum()):,} of them with empty cells. They have 2 to 50 groups, "
        "masses down to exp(-1400), slack from 0 on, and features of pairs of groups (one slack "
        "for all, or one each; two constraints that overlap) or of any kind (signs, multiples of "
        "a quarter, normal numbers). A problem is solved if w misses no constraint by more than "
        f"{FEASIBLE:g} (times the largest feature, where that is above 1) "
        f"and its divergence is that of the dual to {GAP:g}, relative to 1 + the "
        "divergence. One that was refused is infeasible: the least violation that a linear "
        f"program finds is above {DECIDED:g}. In between, it is undecided.\n\n"
        f"{markdown(lines)}{shown}\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="forget the batches that are done")
    parser.add_argument("--output", type=Path, default=RESULTS, help="without suffix")
    parser.add_argument("--show", type=int, nargs=2, metavar=("SEED", "INDEX"))
    arguments = parser.parse_args()
    if arguments.show:
        problem = make_problem(*arguments.show)
        print(problem, judge(problem))
        return 0
    firsts = range(0, arguments.problems, BATCH)
    cases = [{"seed": arguments.seed, "first": first, "problems": BATCH} for first in firsts]
    kept = arguments.output.with_suffix(".jsonl")
    batches = run_cases(cases, measure, kept, fresh=arguments.fresh, n_jobs=1)
    text = page(batches, arguments.seed)
    write_text(arguments.output.with_suffix(".md"), text)
    print(text)
    return int(any(len(batch) for batch in batches["failures"]))


if __name__ == "__main__":
    sys.exit(main())
