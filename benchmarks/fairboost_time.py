"""Time of a fit, beside LightGBM and Exponentiated Gradient; take it on an idle machine."""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from fairboost_common import EG_BOUND, LOADERS, RUNS, TARGET, WORDS, load, quiet, trees
from fairproj import FairBoostClassifier
from fairproj.baselines import ExponentiatedGradient
from fairproj.boosting.monitor import Monitor
from fairproj.experiments._tables import markdown
from kept import Case, run_cases
from problems import mostly_positive

SIZES = ((2_000, 10), (16_000, 10), (16_000, 40), (50_000, 20), (200_000, 10), (200_000, 40))


def time_part(fresh: bool) -> str:
    with threadpool_limits(1):  # threads of OpenBLAS that wait count as CPU time
        parts = [against_lightgbm(), whole_fits(), against_reductions(fresh), sweep_share()]
    return "\n\n".join(["## Time", *parts])


def against_lightgbm(repeats: int = 5) -> str:
    """Ratios of fits on binned data; both take turns on one thread."""
    lines = [["rows", "trees", "LightGBM, s", "FairBoost, s", "ratio", "plain FairBoost, ratio"]]
    for name, leaves in (("Adult", 31), ("Adult", 8), ("Adult", 2), ("simulated", 31)):
        if name == "simulated":
            X, y, groups = mostly_positive(0, 500_000)
        else:
            X, _, y, _, groups, _ = load(name, 0)
        model = FairBoostClassifier(max_leaf_nodes=leaves, validation_fraction=None)
        prepared = model._prepare(X, y, groups)
        plain = FairBoostClassifier(None, max_leaf_nodes=leaves)
        runs = {
            "lightgbm": partial(lightgbm_seconds, prepared, leaves),
            "fairboost": partial(fairboost_seconds, model, prepared),
            "plain": partial(fairboost_seconds, plain, prepared),
        }
        for run in runs.values():
            run()  # bins the rows, and warms up
        seconds = pd.DataFrame([{key: run() for key, run in runs.items()} for _ in range(repeats)])
        lines.append(
            [
                f"{name}, {len(prepared.sample):,}",
                f"{leaves} leaves",
                f"{seconds['lightgbm'].median():.2f}",
                f"{seconds['fairboost'].median():.2f}",
                f"{(seconds['fairboost'] / seconds['lightgbm']).median():.2f}",
                f"{(seconds['plain'] / seconds['lightgbm']).median():.2f}",
            ]
        )
    return (
        "100 rounds on rows that are encoded and binned, one thread, training rows watched, equal "
        f"opportunity {TARGET:g}; medians of CPU time over {repeats} paired runs. LightGBM trains "
        "its own binary objective with the same parameters.\n\n" + markdown(lines)
    )


def whole_fits(repeats: int = 5) -> str:
    """Ratios of fits with default settings from arrays, by rows and columns, on one thread."""
    lines = [["rows", "columns", "LGBMClassifier, s", "FairBoostClassifier, s", "ratio"]]
    for n_rows, n_columns in SIZES:
        X, y, groups = wide(n_rows, n_columns)
        plain = lgb.LGBMClassifier(n_jobs=1, verbosity=-1)
        fair = FairBoostClassifier(max_gap=TARGET, n_jobs=1, random_state=0)
        pairs = [
            (cpu_seconds(plain, X, y), cpu_seconds(fair, X, y, sensitive_features=groups))
            for _ in range(repeats + 1)
        ]
        seconds = pd.DataFrame(pairs[1:], columns=["plain", "fair"])  # the first warms up
        medians, ratios = seconds.median(), seconds["fair"] / seconds["plain"]
        lines.append(
            [
                f"{n_rows:,}",
                str(n_columns),
                *(f"{medians[name]:.2f}" for name in ("plain", "fair")),
                f"{ratios.median():.2f}",
            ]
        )
    return (
        "Whole fits of simulated numbers with the default settings of both (FairBoost holds out a "
        f"quarter of the rows), one thread, equal opportunity {TARGET:g}; medians of CPU time over "
        f"{repeats} paired runs.\n\n" + markdown(lines)
    )


def wide(n_rows: int, n_columns: int) -> tuple[Any, Any, Any]:
    """Numbers of which three matter, and a group that shifts the rate of positive labels."""
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(n_rows, n_columns)), rng.integers(0, 2, n_rows)
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * group
    return X, (score + rng.normal(size=n_rows) > 0).astype(int), group


def cpu_seconds(model: Any, X: Any, y: Any, **fit: Any) -> float:
    start = time.process_time()
    quiet(model, X, y, **fit)
    return time.process_time() - start


def lightgbm_seconds(prepared: Any, leaves: int) -> float:
    """`lightgbm.train` on binned rows."""
    sample = prepared.sample
    key = ("plain lightgbm", leaves)
    if key not in sample.cache:
        categories = sorted(sample.encoder.categories)
        sample.cache[key] = lgb.Dataset(
            sample.X, (sample.y > 0).astype(int), categorical_feature=categories
        ).construct()
    parameters = {"objective": "binary", "num_leaves": leaves, "num_threads": 1, "verbosity": -1}
    start = time.process_time()
    lgb.train(parameters, sample.cache[key], 100)
    return time.process_time() - start


def fairboost_seconds(model: FairBoostClassifier, prepared: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model._fit_prepared(prepared)
        return time.process_time() - start


def measure_reduction(case: Case) -> Case:
    X, _, y, _, known, _ = load(case["data"], 0, max_rows=16_000)
    base = trees(31, 100)
    seconds = {}
    models = {
        "ours": FairBoostClassifier(case["constraint"], TARGET, validation_fraction=None),
        "eg": ExponentiatedGradient(base, case["constraint"], EG_BOUND),
    }
    for name, model in models.items():
        start = time.perf_counter()
        quiet(model, X, y, sensitive_features=known)
        seconds[name] = time.perf_counter() - start
    calls = int(models["eg"].mitigator_.n_oracle_calls_)
    return {**seconds, "calls": calls, "rows": len(X)}


def against_reductions(fresh: bool) -> str:
    cases = [{"data": data, "constraint": constraint} for data in LOADERS for constraint in WORDS]
    path = RUNS / "time.jsonl"
    frame = run_cases(cases, measure_reduction, path, fresh=fresh, n_jobs=1)
    lines = [["data", "rows", "constraint", "FairBoost, s", "EG, s", "oracle calls", "times"]]
    times = frame["eg"] / frame["ours"]
    for row, ratio in zip(frame.itertuples(), times, strict=True):
        lines.append(
            [
                row.data,
                f"{row.rows:,}",
                WORDS[row.constraint],
                f"{row.ours:.2f}",
                f"{row.eg:.1f}",
                str(row.calls),
                f"{ratio:.0f}",
            ]
        )
    return (
        "Whole fits from data frames, training rows watched, at most 16,000 rows; Exponentiated "
        f"Gradient around LightGBM with the same trees, bound {EG_BOUND:g}. Median "
        f"{times.median():.0f} times.\n\n" + markdown(lines)
    )


def sweep_share() -> str:
    """The time of the bias sweep where every round needs it: a target of zero."""
    X, _, y, _, groups, _ = load("Adult", 0)
    model = FairBoostClassifier("demographic_parity", 0.0, validation_fraction=None)
    prepared = model._prepare(X, y, groups)
    fairboost_seconds(model, prepared)
    spent, original = [], Monitor._sweep

    def timed(self: Monitor, cut: float) -> Any:
        start = time.process_time()
        result = original(self, cut)
        spent.append(time.process_time() - start)
        return result

    Monitor._sweep = timed  # type: ignore[method-assign]
    try:
        total = fairboost_seconds(model, prepared)
    finally:
        Monitor._sweep = original  # type: ignore[method-assign]
    return (
        f"The sweep over all cuts of the margin, on Adult with a target of zero, which no round "
        f"reaches: {len(spent)} sweeps, {sum(spent) / total:.1%} of the fit."
    )
