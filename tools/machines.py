"""Fit the same models on other instruction sets, threads and versions, and compare them.

    python tools/machines.py
    python tools/machines.py --environments FOLDER   # also those of tools/matrix.py

With the same versions of all packages, margins must agree to 1e-10 and labels must be the same.
With other versions, accuracy and gaps on the test rows must agree to 0.002.
Writes benchmarks/results/machines.md; the exit code is 1 if a limit is exceeded.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "benchmarks" / "results" / "machines.md"
MARGIN_LIMIT, SCORE_LIMIT = 1e-10, 0.002
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "lightgbm")
BLAS = ("Nehalem", "Haswell")  # older than what this machine may have
GROUPS, ROWS_PER_GROUP = 40, 150

Fits = dict[str, np.ndarray]


@dataclass(frozen=True)
class Setting:
    """Where the models are fitted."""

    name: str
    interpreter: str = sys.executable
    environ: dict[str, str] = field(default_factory=dict)
    n_jobs: int = 1


# In the process that fits


def fit_all(n_jobs: int) -> Fits:
    """Margins, labels, accuracy and gap of each model on test rows."""
    return {
        f"{name}: {part}": values
        for name, model, rows, statistic in models(n_jobs)
        for part, values in fit(model, rows, statistic).items()
    }


def models(n_jobs: int) -> Iterator[tuple[str, Any, tuple[Any, Any, Any], str]]:
    """A model, its rows, and the gap to measure."""
    from fairproj import FairBoostClassifier, FairProjClassifier
    from fairproj.datasets import load_adult, load_compas, load_german

    shared: Any = {"n_estimators": 50, "random_state": 0, "n_jobs": n_jobs}
    boost: Any = {**shared, "max_gap": 0.05}
    adult, compas, german = (
        (data.data, data.target, data.sensitive_features)
        for data in (load_adult(), load_compas(), load_german())
    )
    parity, opportunity, odds = "demographic_parity", "equal_opportunity", "equalized_odds"
    yield "Adult, FairBoost", FairBoostClassifier(opportunity, **boost), adult, opportunity
    exponential = FairBoostClassifier(parity, loss="exponential", **boost)
    yield "Adult, FairBoost, exponential loss", exponential, adult, parity
    paper = FairProjClassifier(odds, 0.05, max_depth=2, **shared)
    yield "Adult, FairProj", paper, adult, odds
    small = FairBoostClassifier(odds, max_leaf_nodes=7, **boost)
    yield "COMPAS, FairBoost", small, compas, odds
    share = FairBoostClassifier(parity, selection_rate=0.4, **boost)
    yield "COMPAS, FairBoost, 40 % selected", share, compas, parity
    sampled = FairBoostClassifier(parity, subsample=0.8, max_features=0.5, **boost)
    yield "German credit, FairBoost, sampled", sampled, german, parity
    stumps = FairProjClassifier(parity, 0.02, **shared)
    yield "German credit, FairProj", stumps, german, parity
    many = simulated()
    yield f"{GROUPS} groups, FairBoost", FairBoostClassifier(parity, **boost), many, parity
    yield f"{GROUPS} groups, FairProj", FairProjClassifier(parity, 0.01, **shared), many, parity


def simulated() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(GROUPS), ROWS_PER_GROUP))
    X = rng.normal(size=(len(group), 6))
    shift = rng.normal(scale=0.5, size=GROUPS)
    return X, (X[:, 0] + shift[group] + rng.normal(size=len(group)) > 0).astype(int), group


def fit(model: Any, rows: tuple[Any, Any, Any], statistic: str) -> Fits:
    from fairproj.metrics import gap_difference

    X, y, groups = (getattr(part, "iloc", part) for part in rows)
    order = np.random.default_rng(1).permutation(len(rows[1]))
    train, test = np.split(order, [int(0.7 * len(order))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[train], y[train], sensitive_features=groups[train])
    labels = model.predict(X[test])
    truth, tested = np.asarray(y[test]), groups[test]
    return {
        "margins": model.decision_function(X[test]),
        "labels": np.asarray(labels == model.classes_[1]),
        "accuracy": np.asarray(np.mean(labels == truth)),
        "gap": np.asarray(
            gap_difference(truth, labels, sensitive_features=tested, statistic=statistic)
        ),
    }


# In the process that compares


def machines() -> list[Setting]:
    """Other instruction sets and numbers of threads of this machine."""
    plain = Setting("as it is")
    sets = [
        Setting(f"NumPy without {features}", environ={"NPY_DISABLE_CPU_FEATURES": features})
        for features in fewer_features()
    ]
    kernels = [
        Setting(f"OpenBLAS for {name}", environ={"OPENBLAS_CORETYPE": name}) for name in BLAS
    ]
    return [plain, *sets, *kernels, Setting("two threads", n_jobs=2)]


def fewer_features() -> list[str]:
    """The newest instruction sets that NumPy uses here, then the newest two, and so on."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    used = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    return [" ".join(used[start:]) for start in reversed(range(len(used)))]


def environments(folder: Path) -> list[Setting]:
    """The environments that tools/matrix.py created in a folder."""
    found = sorted(folder.glob("*/bin/python")) + sorted(folder.glob("*/Scripts/python.exe"))
    return [Setting(path.parents[1].name, str(path.absolute())) for path in found]


def fit_elsewhere(setting: Setting) -> Fits:
    """Fit all models in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "fits.npz"
        command = [setting.interpreter, __file__, "--fit", out, "--n-jobs", str(setting.n_jobs)]
        threads = {"OMP_NUM_THREADS": str(setting.n_jobs)}
        environ = {**os.environ, **threads, "PYTHONPATH": str(ROOT / "src"), **setting.environ}
        subprocess.run(command, check=True, env=environ)
        with np.load(out) as kept:
            return dict(kept)


def largest(one: Fits, other: Fits, part: str) -> float:
    """The largest difference of margins, accuracies or gaps."""
    names = [name for name in one if name.endswith(part)]
    return float(np.max([np.abs(one[name] - other[name]).max() for name in names]))  # NaN counts


def different_labels(one: Fits, other: Fits) -> int:
    names = [name for name in one if name.endswith("labels")]
    return sum(int((one[name] != other[name]).sum()) for name in names)


def versions(interpreter: str) -> str:
    code = (
        "import sys\nfrom importlib.metadata import version\n"
        f"print(sys.version.split()[0], *[version(name) for name in {PACKAGES}])"
    )
    return subprocess.check_output([interpreter, "-c", code], text=True).strip()


def compare(settings: list[Setting], others: list[Setting]) -> tuple[str, bool]:
    """The page, and whether all limits hold."""
    first, *rest = settings
    known = fit_elsewhere(first)
    n_labels = sum(len(known[name]) for name in known if name.endswith("labels"))
    head = ["setting", "largest difference of a margin", f"different labels of {n_labels:,}"]
    rows, holds = [], True
    for setting in rest:
        fits = fit_elsewhere(setting)
        margin, labels = largest(known, fits, "margins"), different_labels(known, fits)
        holds &= margin <= MARGIN_LIMIT and labels == 0
        rows.append([setting.name, f"{margin:.1e}", str(labels)])
    n_models = sum(name.endswith("labels") for name in known)
    parts = [
        "# Other machines",
        f"`python tools/machines.py`: {n_models} models, fitted on 70 % of the rows of Adult, "
        f"COMPAS, German credit and {GROUPS} simulated groups, and read on the others. "
        f"Here: {words(versions(first.interpreter))}.",
        "Other instruction sets and threads with the same versions, beside this machine as it is. "
        f"Wanted: at most {MARGIN_LIMIT:g}, and no label.",
        table(head, rows),
    ]
    if others:
        compared, within = compare_versions(known, others)
        holds &= within
        parts += [
            "Environments of `python tools/matrix.py`: the largest differences of accuracy and gap "
            f"on the test rows. Wanted: at most {SCORE_LIMIT:g}.",
            compared,
        ]
    there = {versions(each.interpreter).split()[0] for each in [first, *others]}
    parts += absent(there)
    return "\n\n".join(parts) + "\n", holds


def compare_versions(known: Fits, others: list[Setting]) -> tuple[str, bool]:
    """The table of other versions, and whether the limit holds."""
    head = ["environment", "python", *PACKAGES, "accuracy", "gap", "different labels"]
    rows, holds = [], True
    for setting in others:
        fits = fit_elsewhere(setting)
        differ = [largest(known, fits, part) for part in ("accuracy", "gap")]
        holds &= all(each <= SCORE_LIMIT for each in differ)
        numbers = [*(f"{each:.4f}" for each in differ), str(different_labels(known, fits))]
        rows.append([setting.name, *versions(setting.interpreter).split(), *numbers])
    return table(head, rows), holds


def absent(there: set[str]) -> list[str]:
    """Which versions of Python the machine did not have, in a sentence if there are any."""
    tried = {".".join(version.split(".")[:2]) for version in there}
    missing = [version for version in PYTHONS if version not in tried]
    return [f"Not on this machine: Python {', '.join(missing)}."] if missing else []


def words(numbers: str) -> str:
    named = zip(("Python", *PACKAGES), numbers.split(), strict=True)
    return ", ".join(f"{name} {number}" for name, number in named)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *[":-:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--environments", type=Path, help="the folder of tools/matrix.py")
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--n-jobs", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        np.savez(options.fit, **fit_all(options.n_jobs))
        return
    others = environments(options.environments) if options.environments else []
    page, holds = compare(machines(), others)
    options.output.write_text(page, "utf-8")
    print(page)
    sys.exit(not holds)


if __name__ == "__main__":
    main()
