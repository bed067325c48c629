"""Build the wheel and the sdist, and check both in environments of their own.

    python tools/check_release.py              # into dist/; needs build and twine
    python tools/check_release.py --quick      # the wheel without extras only

Without any extra, the README's example must print what the README says, with the oldest and with
the newest dependencies that pyproject.toml allows, and a feature of an extra must name that extra.
With each extra alone, its feature must work. From the unpacked sdist, some of the tests must pass.
What was found is written to benchmarks/results/release.md (not with --quick), failed checks are
printed, and the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from matrix import KINDS, requirements, run_tests, table, versions

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
BUILD = "the build"
PAGE = ROOT / "benchmarks" / "results" / "release.md"
LARGEST = 5_000_000  # bytes of the wheel
TESTS = [f"tests/test_{name}.py" for name in ("documentation", "house", "projection", "release")]

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
        "parquet",
        _DATA
        + """
from contextlib import suppress
from pathlib import Path
from fairproj import FairnessReport
path = Path("rows.parquet").absolute()
with suppress(ImportError):  # of pandas; what fairproj says is wanted
    X.assign(label=y, race=groups).to_parquet(path)
for place in (path, path.as_uri()):
    report = FairnessReport.from_batches(model, place, "label", sensitive_features="race")
    assert report.gaps.equals(
        FairnessReport.from_estimator(model, X, y, sensitive_features=groups).gaps
    )
""",
    ),
    Feature(
        "distributed",
        """
import numpy as np
from fairproj.distributed import DaskFairBoostClassifier
import dask.dataframe as dd
import pandas as pd
from dask.distributed import Client, LocalCluster
rng = np.random.default_rng(0)
rows = pd.DataFrame({"a": rng.normal(size=2000), "group": rng.choice(["x", "y"], 2000)})
rows["label"] = rows["a"] + (rows["group"] == "x") + rng.normal(size=2000) > 0
parts = dd.from_pandas(rows, npartitions=4)
with LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
    model = DaskFairBoostClassifier("demographic_parity", 0.1, n_estimators=10, random_state=0)
    model.fit(parts[["a"]], parts["label"], sensitive_features=parts["group"])
assert model.score(rows[["a"]], rows["label"]) > 0.6
""",
    ),
    Feature(
        "cli",
        """
import subprocess, sys
from fairproj.datasets import load_compas
load_compas().frame.to_csv("rows.csv", index=False)
for line in (
    "train rows.csv --label two_year_recid --sensitive race --max-gap 0.1 -o model.fairproj",
    "audit model.fairproj rows.csv --max-gap 0.1",
    "report model.fairproj rows.csv -o report.html",
):
    ended = subprocess.run(
        [sys.executable, "-m", "fairproj", *line.split()], capture_output=True, text=True
    )
    if ended.returncode not in (0, 3, 4):  # the gap is met, is not, or the rows are too few
        sys.exit(ended.stderr)
""",
    ),
    Feature(
        "reproduce",
        """
from fairproj.experiments import reproduce
assert "Table 1" in reproduce("run", quick=True, n_jobs=2).read_text("utf-8")
""",
    ),
)


class Check(NamedTuple):
    """What was looked at in an environment, and what the failed one said."""

    environment: str
    what: str
    passed: bool
    said: str = ""


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
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def files_of(archive: Path) -> dict[str, int]:
    """The files of a wheel, or of an sdist without its folder, and their sizes."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            return {each.filename: each.file_size for each in opened.infolist()}
    with tarfile.open(archive) as opened:
        return {each.name.partition("/")[2]: each.size for each in opened if each.isfile()}


def contents(archive: Path, depth: int) -> str:
    """How many files of which size an archive holds, by folder."""
    folders: dict[str, list[int]] = {}
    for name, size in files_of(archive).items():
        folder = "/".join(Path(name).parts[:-1][:depth])
        folders.setdefault(folder or "(no folder)", []).append(size)
    ordered = sorted(folders.items(), key=lambda each: -sum(each[1]))
    rows = [
        {"folder": folder, "files": len(sizes), "MB": f"{sum(sizes) / 1e6:.2f}"}
        for folder, sizes in ordered
    ]
    files = sum(map(len, folders.values()))
    return (
        f"`{archive.name}`: {archive.stat().st_size / 1e6:.2f} MB, {files} files; unpacked:\n\n"
        f"{table(rows)}\n"
    )


def check_archives(wheel: Path, sdist: Path) -> Iterator[Check]:
    twine = run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    yield Check(BUILD, "`twine check --strict`", not twine.returncode, twine.stdout)
    limit = f"the wheel has at most {LARGEST // 1_000_000} MB"
    yield Check(BUILD, limit, wheel.stat().st_size <= LARGEST)
    if (ROOT / ".git").exists():
        kept = set(run("git", "-C", ROOT, "ls-files").stdout.splitlines()) | {"PKG-INFO"}
        other = sorted(kept ^ files_of(sdist).keys())
        whole = "the sdist holds the files of the repository and no others"
        yield Check(BUILD, whole, not other, " ".join(other))


class Clean:
    """An environment with nothing but what is installed into it."""

    def __init__(self, folder: Path) -> None:
        must(sys.executable, "-m", "venv", folder)
        self.folder, self.python = folder, folder / "bin" / "python"
        if not self.python.exists():
            self.python = folder / "Scripts" / "python.exe"

    def install(self, *what: object) -> None:
        must(self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *what)

    def script(self, text: str) -> subprocess.CompletedProcess[str]:
        return run(self.python, "-c", text, folder=self.folder)


def check_readme(clean: Clean, environment: str) -> Check:
    doctest = ("-m", "doctest", "-o", "NORMALIZE_WHITESPACE", ROOT / "README.md")
    ended = run(clean.python, *doctest, folder=clean.folder)
    passed = not ended.returncode
    return Check(environment, "README's example", passed, ended.stdout + ended.stderr)


def check_missing(clean: Clean, environment: str) -> Iterator[Check]:
    """What is said where an extra is missing."""
    for extra, script, missed in FEATURES:
        ended = clean.script(script)
        said = (ended.stdout + ended.stderr).strip().splitlines()
        last, wanted = said[-1] if said else "", f"fairproj[{missed or extra}]"
        named = bool(ended.returncode) and wanted in last
        yield Check(environment, f"the feature of `{extra}` asks for `{wanted}`", named, last)


def check_extra(feature: Feature, wheel: Path, folder: Path) -> Check:
    clean = Clean(folder / feature.extra)
    clean.install(f"{wheel}[{feature.extra}]")
    ended = clean.script(feature.script)
    what = f"the feature of `{feature.extra}` works"
    return Check(f"the extra `{feature.extra}` alone", what, not ended.returncode, ended.stderr)


def check_sdist(sdist: Path, folder: Path) -> Check:
    """Some of the tests, run where the sdist was unpacked and installed."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    clean = Clean(folder / "sdist")
    clean.install(f"{unpacked}[test]")
    tests = ["-m", "not slow", *TESTS]
    found = run_tests(clean.python, tests, folder / "sdist.xml", oldest=False, folder=unpacked)
    names = ", ".join(f"`{name}`" for name in TESTS)
    what = f"tests that are not slow, of {names}: {found['passed']} passed"
    return Check("the sdist with `test`", what, found["passed"] > 0 == found["failed"], str(found))


def page(
    wheel: Path, sdist: Path, environments: list[dict[str, object]], checks: list[Check]
) -> str:
    rows = [
        {
            "environment": each.environment,
            "check": each.what,
            "outcome": "pass" if each.passed else "**fail**",
        }
        for each in checks
    ]
    failed = sum(not each.passed for each in checks)
    new = {each.environment for each in checks} - {BUILD}
    return f"""# Wheel and sdist

`make release` builds both and checks them in {len(new)} new environments.
{failed or "None"} of {len(checks)} checks failed, on {platform.system()}.

## Environments without extras

{table(environments)}

## Checks

{table(rows)}

## Contents

{contents(wheel, 2)}
{contents(sdist, 1)}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the wheel without extras only")
    options = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)  # nothing but what is installed
    needed = [
        *requirements(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"], ())
    ]
    wheel, sdist = build()
    checks, environments = [*check_archives(wheel, sdist)], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in KINDS:
            clean, where = Clean(folder / kind), f"no extra, {kind} dependencies"
            clean.install(wheel, *(each.pin(kind) for each in needed))
            found = versions(clean.python, [each.name for each in needed])
            environments.append({"environment": where, **found})
            checks.append(check_readme(clean, where))
        checks += check_missing(clean, where)
        if not options.quick:
            checks += [check_extra(each, wheel, folder) for each in FEATURES]
            checks.append(check_sdist(sdist, folder))
            PAGE.write_text(page(wheel, sdist, environments, checks), "utf-8")
    for each in checks:
        if not each.passed:
            print(f"FAIL  {each.environment}: {each.what}\n{each.said[-600:]}")
    passed = sum(each.passed for each in checks)
    print(f"{passed} of {len(checks)} checks passed; {wheel.name} and {sdist.name} are in dist/")
    return int(passed < len(checks))


if __name__ == "__main__":
    raise SystemExit(main())
