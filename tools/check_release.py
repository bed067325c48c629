"""Build the wheel and the sdist, and check both in environments of their own.

    python tools/check_release.py              # into dist/; needs build and twine
    python tools/check_release.py --quick      # the wheel without extras only

Without any extra, the README's example must print what the README says, and a feature of an extra
must name that extra. With each extra alone, its feature must work. The table of outcomes is
printed, and the exit code is 1 if a check fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
LARGEST = 5_000_000  # bytes of the wheel

_DATA = """
import warnings
import numpy as np
from fairproj import FairBoostClassifier
from fairproj.datasets import load_compas
warnings.simplefilter("ignore")
data = load_compas()
X, y, groups = data.data, data.target, data.sensitive_features
model = FairBoostClassifier(n_estimators=5, random_state=0).fit(X, y, sensitive_features=groups)
"""


class Feature(NamedTuple):
    """What an extra is for: a script that needs it, and the extra that is missed first."""

    extra: str
    script: str
    missed: str = ""


FEATURES = (
    Feature(
        "baselines",
        _DATA
        + """
from lightgbm import LGBMClassifier
from fairproj.baselines import ExponentiatedGradient
peer = ExponentiatedGradient(LGBMClassifier(n_estimators=2, verbose=-1), "equal_opportunity", 0.1)
peer.fit(X.select_dtypes("number"), (y == y.max()).astype(int), sensitive_features=groups)
""",
    ),
    Feature(
        "plot",
        _DATA
        + """
import os
os.environ["MPLBACKEND"] = "Agg"
from fairproj import plot_dynamics
plot_dynamics(model)
""",
    ),
    Feature(
        "progress",
        _DATA
        + """
model.set_params(verbose=True).fit(X, y, sensitive_features=groups)
""",
    ),
    Feature(
        "report",
        _DATA
        + """
from fairproj.report import summarize_estimator, write_report
summary = summarize_estimator(model, X, y, sensitive_features=groups)
write_report(summary, "report.html")
""",
    ),
    Feature(
        "files",
        _DATA
        + """
import fairproj
model.save("model.fairproj")
assert (fairproj.load("model.fairproj").predict(X) == model.predict(X)).all()
""",
    ),
    Feature(
        "skops",
        _DATA
        + """
import fairproj
from sklearn.tree import DecisionTreeClassifier
tree = DecisionTreeClassifier(max_depth=1)
other = FairBoostClassifier(estimator=tree, tree_step="first_order", n_estimators=3, random_state=0)
other.fit(X.select_dtypes("number"), y, sensitive_features=groups).save("other.fairproj")
fairproj.load("other.fairproj", trusted=["sklearn.tree._tree.Tree"])
""",
        missed="files",
    ),
    Feature(
        "onnx",
        _DATA
        + """
from fairproj.io import to_onnx
to_onnx(model)
""",
    ),
    Feature(
        "xgboost",
        _DATA
        + """
FairBoostClassifier(engine="xgboost", n_estimators=3, random_state=0).fit(
    X, y, sensitive_features=groups
)
""",
    ),
    Feature(
        "distributed",
        _DATA
        + """
from fairproj.distributed import DaskFairBoostClassifier
DaskFairBoostClassifier
""",
    ),
    Feature(
        "cli",
        """
import runpy, sys
sys.argv = ["fairproj", "demo", "--help"]
runpy.run_module("fairproj", run_name="__main__")
""",
    ),
)


def run(*command: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )


def must(*command: object) -> None:
    ended = run(*command)
    if ended.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{ended.stdout}{ended.stderr}")


def build() -> tuple[Path, Path]:
    """The wheel and the sdist, new in dist/."""
    for old in DIST.glob("fairproj-*"):
        old.unlink()
    must(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    must(sys.executable, "-m", "twine", "check", "--strict", *DIST.glob("fairproj-*"))
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def contents(wheel: Path, sdist: Path) -> str:
    """How many files the archives hold, by top folder, and their sizes."""
    lines = []
    with zipfile.ZipFile(wheel) as archive:
        names = {info.filename: info.file_size for info in archive.infolist()}
    with tarfile.open(sdist) as archive:
        packed = {member.name: member.size for member in archive if member.isfile()}
    for path, files, depth in ((wheel, names, 2), (sdist, packed, 2)):
        lines.append(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {len(files)} files")
        folders: dict[str, list[int]] = {}
        for name, size in files.items():
            folders.setdefault("/".join(name.split("/")[:depth]), []).append(size)
        ordered = sorted(folders.items(), key=lambda each: -sum(each[1]))
        for folder, sizes in ordered[:12]:
            lines.append(f"  {sum(sizes) / 1e6:6.2f} MB  {len(sizes):4d} files  {folder}")
    return "\n".join(lines)


class Clean:
    """An environment with nothing but what is installed into it."""

    def __init__(self, folder: Path) -> None:
        must(sys.executable, "-m", "venv", folder)
        self.folder, self.python = folder, folder / "bin" / "python"
        if not self.python.exists():
            self.python = folder / "Scripts" / "python.exe"

    def install(self, what: object) -> None:
        must(self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", what)

    def script(self, text: str) -> subprocess.CompletedProcess[str]:
        return run(self.python, "-c", text, folder=self.folder)


def check_plain(clean: Clean) -> list[tuple[str, bool, str]]:
    """README's example, and what is said where an extra is missing."""
    readme = run(clean.python, "-m", "doctest", "-o", "NORMALIZE_WHITESPACE", ROOT / "README.md")
    outcomes = [("no extra: README's example", not readme.returncode, readme.stdout[-300:])]
    for extra, script, missed in FEATURES:
        ended = clean.script(script)
        said = (ended.stdout + ended.stderr).strip().splitlines()
        last = said[-1] if said else ""
        named = bool(ended.returncode) and f"fairproj[{missed or extra}]" in last
        outcomes.append((f"no extra: {extra} is named", named, last))
    return outcomes


def check_extra(feature: Feature, wheel: Path, folder: Path) -> tuple[str, bool, str]:
    clean = Clean(folder / feature.extra)
    clean.install(f"{wheel}[{feature.extra}]")
    ended = clean.script(feature.script)
    return f"extra {feature.extra}: works", not ended.returncode, ended.stderr[-300:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the wheel without extras only")
    options = parser.parse_args()
    wheel, sdist = build()
    print(contents(wheel, sdist))
    outcomes = [("the wheel is small", wheel.stat().st_size < LARGEST, "")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clean = Clean(folder / "plain")
        clean.install(wheel)
        outcomes += check_plain(clean)
        if not options.quick:
            outcomes += [check_extra(each, wheel, folder) for each in FEATURES]
            again = Clean(folder / "sdist")
            again.install(sdist)
            ended = again.script(_DATA)
            outcomes.append(("the sdist installs and trains", not ended.returncode, ended.stderr))
    for what, passed, said in outcomes:
        print(f"{'pass' if passed else 'FAIL'}  {what}" + ("" if passed else f": {said}"))
    return int(not all(passed for _, passed, _ in outcomes))


if __name__ == "__main__":
    raise SystemExit(main())
