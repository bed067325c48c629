"""Run the tests with the oldest and with the newest packages that pyproject.toml allows.

    python tools/matrix.py FOLDER
    python tools/matrix.py FOLDER --only oldest --tests tests/test_metrics.py
    python tools/matrix.py FOLDER --python python3.13 --only newest

By default with each of python3.11 to python3.14 on the PATH that starts; of the others, a sentence
says why they are left out. An environment is created in FOLDER for each row and kept, so that a
second run only tests. "oldest" pins every requirement with a lower bound to that bound, or to the
oldest version above it that has a wheel for this Python; "newest" pins nothing. By default the
tests of estimators, metrics, searches, model files and commands run, with the packages they need;
``--extra`` and ``--tests`` name others (``--extra test --tests tests`` is everything). Each row is
kept until its environment runs again; the table of all is printed and written to
benchmarks/results/matrix.md. The exit code is 1 if a test fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
KINDS = ("oldest", "newest")
EXTRAS = ("cli", "skops", "onnx", "baselines")
TEST_TOOLS = ("cvxpy", "hypothesis", "polars", "pytest", "pytest-xdist")
SUBJECTS = (
    "bad_input boost certificate cli cli_defects cli_meaning constraints ecosystem fairboost "
    "inference"
    " inputs metrics model_files scikit_learn selection startup surroundings"
)
OBSOLETE = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")
SHOWN = [
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "lightgbm",
    "narwhals",
    "joblib",
    "pyarrow",
    "typer",
]
REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(\[(?P<extras>[\w,-]+)\])?(>=(?P<bound>[\d.]+))?(?P<rest>.*)"
)


@dataclass(frozen=True)
class Requirement:
    """A package, its extras, and the oldest version that is allowed."""

    name: str
    extras: tuple[str, ...] = ()
    bound: str | None = None

    @classmethod
    def parse(cls, text: str) -> Requirement:
        match = REQUIREMENT.fullmatch(text.strip())
        if match is None or match["rest"]:
            raise ValueError(f"{text!r} in pyproject.toml is not of the form name[extras]>=version")
        extras = tuple(match["extras"].split(",")) if match["extras"] else ()
        return cls(match["name"], extras, match["bound"])

    def pin(self, kind: str) -> str:
        """How pip is asked for it."""
        name = f"{self.name}[{','.join(self.extras)}]" if self.extras else self.name
        if self.bound is None:
            return name
        return f"{name}{'==' if kind == 'oldest' else '>='}{self.bound}"


def requirements(project: dict, extras: Iterable[str]) -> Iterator[Requirement]:
    """The requirements of the project and of some of its extras, each once."""
    seen: set[Requirement] = set()
    optional = project["optional-dependencies"]
    unknown = set(extras) - set(optional)
    if unknown:
        raise ValueError(
            f"pyproject.toml has no extra {sorted(unknown)[0]!r}; it has {[*optional]}"
        )
    waiting = [*project["dependencies"], *(text for extra in extras for text in optional[extra])]
    while waiting:
        requirement = Requirement.parse(waiting.pop(0))
        if requirement.name == project["name"]:
            waiting += [text for extra in requirement.extras for text in optional[extra]]
        elif requirement not in seen:
            seen.add(requirement)
            yield requirement


def tools_of(project: dict, names: Iterable[str]) -> list[Requirement]:
    """Some of the packages that only the tests need."""
    known = [Requirement.parse(text) for text in project["optional-dependencies"]["test"]]
    return [requirement for requirement in known if requirement.name in names]


def version_of(python: str) -> str | None:
    """The version of an interpreter, such as 3.13; None if it does not start, as some shims."""
    code = "import sys; print('{}.{}'.format(*sys.version_info))"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def find_pythons(path: str) -> tuple[dict[str, str], list[str]]:
    """The first interpreter of each version on a PATH that starts, and why there is no other."""
    found, skipped = {}, []
    for version in PYTHONS:
        name = f"python{version}"
        places = [shutil.which(name, path=folder) for folder in path.split(os.pathsep) if folder]
        there = [place for place in places if place]
        starting = [place for place in there if version_of(place) == version]
        if starting:
            found[version] = starting[0]
        elif there:
            skipped.append(f"{name} is left out: {there[0]} does not start")
        else:
            skipped.append(f"{name} is left out: it is not on the PATH")
    return found, skipped


def named_pythons(names: list[str]) -> dict[str, str]:
    """Interpreters by version."""
    found = {}
    for name in names:
        version = version_of(name)
        if version is None:
            raise SystemExit(f"{name} does not start; name another interpreter with --python")
        found[version] = name
    return found


def with_wheels(python: str, wanted: list[Requirement]) -> list[Requirement]:
    """The requirements with bounds raised to the oldest versions that have wheels for a Python."""
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    dry = [
        *pip,
        "install",
        "-q",
        "--dry-run",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--ignore-installed",
    ]

    def has_wheel(requirement: Requirement) -> bool:
        return (
            subprocess.run([*dry, requirement.pin("oldest")], capture_output=True).returncode == 0
        )

    def raised(requirement: Requirement) -> Requirement:
        if requirement.bound is None or has_wheel(requirement):
            return requirement
        listed = subprocess.check_output([*pip, "index", "versions", requirement.name], text=True)
        known = re.search(r"Available versions: (.*)", listed)[1].split(", ")
        newer = [one for one in reversed(known) if number(one) > number(requirement.bound)]
        options = (replace(requirement, bound=one) for one in newer)
        return next(filter(has_wheel, options), requirement)

    return [raised(requirement) for requirement in wanted]


def number(version: str) -> tuple[int, ...]:
    """A released version as numbers that compare; pip lists no others."""
    return tuple(map(int, re.findall(r"\d+", version)))


def build(folder: Path, python: str, pins: list[str]) -> Path:
    """The interpreter of an environment with these packages, created unless it is there."""
    interpreter, done = folder / "bin" / "python", folder / "pins.json"
    if done.exists() and json.loads(done.read_text()) == pins:
        return interpreter
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    pip = [interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *pins], check=True)
    subprocess.run([*pip, "--no-deps", "-e", ROOT], check=True)
    done.write_text(json.dumps(pins))
    return interpreter


def versions(interpreter: Path, packages: Iterable[str] = SHOWN) -> dict[str, str]:
    """The versions of Python and of some packages in an environment."""
    code = (
        "import json, sys\nfrom importlib.metadata import version\n"
        f"found = {{name: version(name) for name in {list(packages)}}}\n"
        "print(json.dumps({'python': sys.version.split()[0]} | found))"
    )
    return json.loads(subprocess.check_output([interpreter, "-c", code]))


def run_tests(
    interpreter: Path, tests: list[str], report: Path, *, oldest: bool, folder: Path = ROOT
) -> dict[str, int]:
    """How many tests passed, were skipped and failed; they are run from a folder."""
    command = [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    # Old packages use what is deprecated in the newest packages that they depend on.
    for category in OBSOLETE if oldest else ():
        command += ["-W", f"ignore::{category}"]
    code = subprocess.run([*command, *tests], cwd=folder).returncode
    if code not in (0, 1):
        raise SystemExit(f"pytest could not run in {interpreter} (exit code {code})")
    suite = ElementTree.parse(report).getroot().find("testsuite")
    total, skipped, failures, errors = (
        int(suite.get(name)) for name in ("tests", "skipped", "failures", "errors")
    )
    failed = failures + errors
    return {"passed": total - skipped - failed, "skipped": skipped, "failed": failed}


def keep(row: dict[str, object], path: Path) -> list[dict[str, object]]:
    """All kept rows, with this one in place of an older one of its environment."""
    rows = json.loads(path.read_text("utf-8")) if path.exists() else []
    rows = [one for one in rows if one["environment"] != row["environment"]]
    rows = sorted([*rows, row], key=lambda one: str(one["environment"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(["[\n", ",\n".join(map(json.dumps, rows)), "\n]\n"]), "utf-8")
    return rows


def page(rows: list[dict[str, object]]) -> str:
    tried = {".".join(str(row["python"]).split(".")[:2]) for row in rows}
    missing = [version for version in PYTHONS if version not in tried]
    parts = [
        "# Oldest and newest packages",
        "`python tools/matrix.py FOLDER`: the tests with the oldest and with the newest packages "
        "that `pyproject.toml` allows and that have wheels for the Python, of the last run in each "
        "environment. The standard tests are "
        "those of estimators, metrics, searches, model files and commands.",
        table(rows),
    ]
    if missing:
        parts.append(f"There are no rows of Python {', '.join(missing)}.")
    return "\n\n".join(parts) + "\n"


def table(rows: list[dict[str, object]]) -> str:
    """A Markdown table with a row for each environment."""
    head = list(rows[-1])
    lines = [head, ["---"] * len(head), *([row[name] for name in head] for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the environments are kept")
    parser.add_argument("--only", choices=KINDS, help="one kind of environment")
    parser.add_argument("--python", nargs="+", help="interpreters; by default those on the PATH")
    parser.add_argument("--extra", nargs="*", default=EXTRAS, help="extras of pyproject.toml")
    parser.add_argument("--tests", nargs="*", help="arguments of pytest")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the folder for the page")
    options = parser.parse_args()
    if options.python:
        pythons = named_pythons(options.python)
    else:
        pythons, skipped = find_pythons(os.environ.get("PATH", ""))
        for sentence in skipped:
            print(sentence, flush=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*requirements(project, options.extra), *tools_of(project, TEST_TOOLS)]
    tests = options.tests or [f"tests/test_{name}.py" for name in SUBJECTS.split()]
    rows, failed = [], False
    for version, python in pythons.items():
        for kind in (options.only,) if options.only else KINDS:
            bounded = with_wheels(python, wanted) if kind == "oldest" else wanted
            pins = sorted({requirement.pin(kind) for requirement in bounded})
            name = f"{kind}-python{version}"
            interpreter = build((options.folder / name).resolve(), python, pins)
            report = options.folder.resolve() / f"{name}.xml"
            outcome = run_tests(interpreter, tests, report, oldest=kind == "oldest")
            failed |= outcome["failed"] > 0
            selection = " ".join(options.tests) if options.tests else "standard"
            row = {"environment": name, **versions(interpreter), "tests": selection, **outcome}
            rows = keep(row, options.output / "matrix" / "rows.json")
            (options.output / "matrix.md").write_text(page(rows), "utf-8")
    if not rows:
        raise SystemExit("no interpreter starts; name one with --python")
    print(table(rows))
    sys.exit(failed)


if __name__ == "__main__":
    main()
