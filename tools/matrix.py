"""Run the tests with the oldest and with the newest packages that pyproject.toml allows.

    python tools/matrix.py FOLDER
    python tools/matrix.py FOLDER --only oldest --tests tests/test_metrics.py
    python tools/matrix.py FOLDER --python python3.13 --only newest

An environment is created in FOLDER for each row of the table and kept, so that a second run only
tests. "oldest" pins every requirement with a lower bound to that bound, "newest" to nothing. By
default the tests of estimators, metrics, searches, model files and commands run, with the packages
they need; ``--extra`` and ``--tests`` name others (``--extra test --tests tests`` is everything).
The table of outcomes is printed, and the exit code is 1 if a test fails.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
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


def table(rows: list[dict[str, object]]) -> str:
    """A Markdown table with a row for each environment."""
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([row[name] for name in head] for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the environments are kept")
    parser.add_argument("--only", choices=KINDS, help="one column of the matrix")
    parser.add_argument("--python", default=sys.executable, help="the interpreter to use")
    parser.add_argument("--extra", nargs="*", default=EXTRAS, help="extras of pyproject.toml")
    parser.add_argument("--tests", nargs="*", help="arguments of pytest")
    options = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*requirements(project, options.extra), *tools_of(project, TEST_TOOLS)]
    tests = options.tests or [f"tests/test_{name}.py" for name in SUBJECTS.split()]
    rows = []
    for kind in (options.only,) if options.only else KINDS:
        pins = sorted({requirement.pin(kind) for requirement in wanted})
        name = f"{kind}-{Path(options.python).name}"
        interpreter = build((options.folder / name).resolve(), options.python, pins)
        report = options.folder.resolve() / f"{name}.xml"
        outcome = run_tests(interpreter, tests, report, oldest=kind == "oldest")
        rows.append({"environment": kind, **versions(interpreter), **outcome})
    print(table(rows))
    sys.exit(any(row["failed"] for row in rows))


if __name__ == "__main__":
    main()
