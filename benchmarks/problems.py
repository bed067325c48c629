"""Simulated problems on which a method that bounds gaps can fail.

Base rates differ strongly between groups, features are few and noisy and carry the shift of the
group, and the group itself may be hidden: four constraints x 2, 3 or 5 groups x five settings are
sixty problems of 4,000 rows for each seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONSTRAINTS = (
    "demographic_parity",
    "equal_opportunity",
    "false_positive_rate_parity",
    "equalized_odds",
)
N_GROUPS = (2, 3, 5)
# Whether the group is a feature, whether there is only one other feature, and how much base rates
# differ.
SETTINGS = (
    (True, False, 0.6),
    (False, False, 0.3),
    (False, False, 1.0),
    (False, True, 0.6),
    (True, True, 1.0),
)


@dataclass(frozen=True)
class Problem:
    name: str
    constraint: str
    X: NDArray[np.float64]
    y: NDArray[np.intp]
    groups: NDArray[np.intp]

    @property
    def constant_accuracy(self) -> float:
        """Of the better constant prediction."""
        return float(max(self.y.mean(), 1 - self.y.mean()))


def problem_cases(seeds: range) -> list[dict[str, Any]]:
    """What identifies each of the problems of some seeds."""
    return [
        {"seed": seed, "constraint": constraint, "n_groups": n_groups, "setting": setting}
        for seed in seeds
        for constraint in CONSTRAINTS
        for n_groups in N_GROUPS
        for setting in range(len(SETTINGS))
    ]


def make_problem(seed: int, constraint: str, n_groups: int, setting: int) -> Problem:
    group_is_feature, one_feature, shift = SETTINGS[setting]
    number = 1000 * seed + 100 * n_groups + int(10 * shift) + 7 * group_is_feature + 3 * one_feature
    X, y, groups = _rows(number, n_groups, group_is_feature, one_feature, shift)
    return Problem(f"{constraint}, {n_groups} groups, setting {setting}", constraint, X, y, groups)


def _rows(
    seed: int, n_groups: int, group_is_feature: bool, one_feature: bool, shift: float
) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    n_rows = 4000
    groups = rng.choice(n_groups, n_rows, p=rng.dirichlet(np.full(n_groups, 6.0)))
    ability = rng.normal(size=n_rows)
    offset = np.linspace(-shift, shift, n_groups)[groups]
    y = (ability + offset + 0.5 * rng.normal(size=n_rows) > 0).astype(np.intp)
    columns = [ability + 0.6 * offset * rng.uniform(0.5, 1) + 0.7 * rng.normal(size=n_rows)]
    columns += [rng.normal(size=n_rows) + 0.4 * offset for _ in range(0 if one_feature else 4)]
    if group_is_feature:
        columns.append(groups)
    return np.column_stack(columns), y, groups


def problems(seed: int) -> Iterator[Problem]:
    for case in problem_cases(range(seed, seed + 1)):
        yield make_problem(**case)


def mostly_positive(seed: int, n_rows: int = 20_000) -> tuple[Any, Any, Any]:
    """Two groups, 89 % positive labels, six features; base rates and features differ by group."""
    return _by_base_rate(seed, n_rows, 0.89)


def rarely_positive(seed: int, n_rows: int = 20_000) -> tuple[Any, Any, Any]:
    """The same with 5 % positive labels, which no features make likely."""
    return _by_base_rate(seed, n_rows, 0.05, noise=2.0)


def _by_base_rate(seed: int, n_rows: int, rate: float, noise: float = 1.0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    groups = (rng.random(n_rows) < 0.3).astype(np.intp)
    X = rng.normal(size=(n_rows, 6)) - 0.5 * groups[:, None] * np.array([1, 0.5, 0.5, 0, 0, 0])
    score = X @ np.array([1.0, 0.7, 0.4, 0.4, 0.2, 0.0]) + noise * rng.logistic(size=n_rows)
    y = (score > np.quantile(score, 1 - rate)).astype(np.intp)
    return X, y, groups
