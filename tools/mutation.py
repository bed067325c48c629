"""Mutation testing of the mathematics: change the code a little, and see whether a test fails.

    python tools/mutation.py
    python tools/mutation.py --only losses finish
    python tools/mutation.py --survivors
    python tools/mutation.py --page-only

mutmut makes the mutants and runs the tests. ``tools/mutation.toml`` names the modules, the tests of
each, and why the mutants that survive do so. What is done is kept in ``build/mutation``, so that a
run that was stopped goes on; ``--survivors`` runs those again that survived or ran out of time,
after tests were added, and ``--fresh`` everything. The outcome is written to
``benchmarks/results/mutation.md``.

mutmut changes neither decorated functions nor the constants of a module. Properties are therefore
given to it as ``name = property(name)`` after an undecorated function.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "mutation"
PAGE = ROOT / "benchmarks" / "results" / "mutation.md"
PLAN = tomllib.loads((ROOT / "tools" / "mutation.toml").read_text())
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = [{source!r}]
also_copy = ["benchmarks", "conftest.py"]
pytest_add_cli_args_test_selection = {tests!r}
pytest_add_cli_args = {options!r}
timeout_multiplier = 4.0
timeout_constant = 8.0
use_git_change_detection = false
"""
OPTIONS = ["-p", "no:cacheprovider", "-m", "not slow", "--hypothesis-profile=mutation"]
WRAPPERS = ("property", "cached_property")
KILLED, SURVIVED, TIMEOUT, UNTESTED, NOT_RUN = "killed", "survived", "timeout", "no test", "not run"
OUTCOMES = {None: NOT_RUN, 0: SURVIVED, 1: KILLED, 3: KILLED, 5: UNTESTED, 33: UNTESTED}
TIMEOUTS = (-24, 24, 36, 152, 255, -9)


@dataclass(frozen=True)
class Mutant:
    """A change of a function: the lines before and after it."""

    key: str
    function: str
    before: str
    after: str
    prose: bool


@dataclass(frozen=True)
class Module:
    """A module of the package, the tests that are to notice its mutants, and how many to take."""

    name: str
    tests: tuple[str, ...]
    sample: int

    @property
    def source(self) -> str:
        return f"src/fairproj/{self.name}.py"

    @property
    def short(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def folder(self) -> Path:
        return WORK / self.short

    @property
    def results(self) -> Path:
        return self.folder / "mutants" / f"{self.source}.meta"


# Mutants


def without_properties(code: str) -> str:
    """The same code with ``name = property(name)`` in place of the decorator."""
    lines = code.splitlines(keepends=True)
    found = [
        (node, node.decorator_list[0].id)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.FunctionDef)
        and len(node.decorator_list) == 1
        and isinstance(node.decorator_list[0], ast.Name)
        and node.decorator_list[0].id in WRAPPERS
    ]
    for node, wrapper in sorted(found, key=lambda one: -one[0].lineno):
        indent = " " * node.col_offset
        lines.insert(node.end_lineno, f"\n{indent}{node.name} = {wrapper}({node.name})\n")
        del lines[node.decorator_list[0].lineno - 1]
    return "".join(lines)


@cache
def mutants_of(module: Module) -> list[Mutant]:
    """All mutants that mutmut makes of a module, in its order; making them takes some seconds."""
    code, kept = without_properties((ROOT / module.source).read_text()), module.folder / "made.json"
    if kept.exists():
        found = json.loads(kept.read_text())
        if found["code"] == code and found["prose"] == PLAN["prose"]:
            return [Mutant(*one) for one in found["mutants"]]
    mutants = make_mutants(module, code)
    found = {"code": code, "prose": PLAN["prose"], "mutants": [*map(astuple, mutants)]}
    copy(json.dumps(found).encode(), kept)
    return mutants


def make_mutants(module: Module, code: str) -> list[Mutant]:
    made = mutate_file_contents(module.source, code)
    lines = made.code.splitlines(keepends=True)
    package = module.source.removeprefix("src/").removesuffix(".py").replace("/", ".")

    def function(name: str) -> str:
        span = made.line_span_by_function_name[name]
        return textwrap.dedent("".join(lines[span.start - 1 : span.end]))

    found = []
    for name in made.mutant_names:
        stem = name.rpartition("_")[0]
        old, new = function(f"{stem}_orig"), function(name)
        old, new = old.replace(f"{stem}_orig", "f", 1), new.replace(name, "f", 1)
        before, after = changed_lines(old, new)
        shown = plain_name(stem)
        found.append(Mutant(f"{package}.{name}", shown, before, after, is_prose(old, new, shown)))
    return found


def plain_name(mangled: str) -> str:
    """``Class.method`` or ``function`` of the name that mutmut gives it."""
    name = mangled.removesuffix("__mutmut")
    return ".".join(name.split("ǁ")[1:]) if "ǁ" in name else name.removeprefix("x_")


def changed_lines(old: str, new: str) -> tuple[str, str]:
    """The lines that differ, joined."""
    diff = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0))[3:]
    return tuple(
        " ".join(line[1:].strip() for line in diff if line.startswith(sign)) for sign in "-+"
    )


def is_prose(old: str, new: str, function: str) -> bool:
    """Whether only a text differs that has spaces, or that one of the named functions shows."""
    (old_rest, old_texts), (new_rest, new_texts) = without_texts(old), without_texts(new)
    if old_rest != new_rest:
        return False
    changed = [a for a, b in zip(old_texts, new_texts, strict=True) if a != b]
    return function in PLAN["prose"] or any(" " in text for text in changed)


@cache
def without_texts(code: str) -> tuple[str, list[str]]:
    """The tree of the code with all strings empty, and the strings."""
    tree, texts = ast.parse(code), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
            node.value = ""
    return ast.dump(tree), texts


def chosen(module: Module) -> list[Mutant]:
    """Those to run: without prose, and a sample of them if there are more than wanted."""
    mutants = [mutant for mutant in mutants_of(module) if not mutant.prose]
    places = list(range(len(mutants)))
    random.Random(PLAN["seed"]).shuffle(places)  # so that a larger sample has the smaller one
    return [mutants[at] for at in sorted(places[: module.sample])]


# Running them


def prepare(module: Module) -> None:
    """A copy of the code and the tests, with the settings of mutmut for this module."""
    for part in ("src", "tests", "benchmarks"):
        for path in (ROOT / part).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and "results" not in path.parts:
                copy(path.read_bytes(), module.folder / path.relative_to(ROOT))
    copy((ROOT / "conftest.py").read_bytes(), module.folder / "conftest.py")
    code = without_properties((ROOT / module.source).read_text())
    copy(code.encode(), module.folder / module.source)
    settings = SETTINGS.format(source=module.source, tests=[*module.tests], options=OPTIONS)
    project = (ROOT / "pyproject.toml").read_text() + settings
    copy(project.encode(), module.folder / "pyproject.toml")


def copy(content: bytes, target: Path) -> None:
    """Write a file, unless it has that content: mutmut goes by the time of the change."""
    if target.exists() and target.read_bytes() == content:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def outcomes(module: Module) -> dict[str, str]:
    """How each mutant ended that was run."""
    if not module.results.exists():
        return {}
    codes = json.loads(module.results.read_text())["exit_code_by_key"]
    return {
        key: TIMEOUT if code in TIMEOUTS else OUTCOMES.get(code, KILLED)
        for key, code in codes.items()
    }


def run(module: Module, *, survivors: bool, jobs: int) -> None:
    """Run the mutants that were not run, or also those that no test was seen to notice."""
    prepare(module)
    known = outcomes(module)
    again = {NOT_RUN, SURVIVED, UNTESTED, TIMEOUT} if survivors else {NOT_RUN}
    left = [one.key for one in chosen(module) if known.get(one.key, NOT_RUN) in again]
    print(f"{module.name}: {len(left)} mutants to run", flush=True)
    if not left:
        return
    mutmut = Path(sys.executable).with_name("mutmut")
    command = [mutmut, "run", "--max-children", str(jobs), *left]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    subprocess.run(command, cwd=module.folder, env=os.environ | threads, check=True)


# The page


def table(lines: list[list[str]]) -> str:
    head, *rest = lines
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *rest))


def page(modules: list[Module]) -> str:
    head = "module, made, prose, drawn, killed, timeout, survived, not run, killed of those run"
    lines, lists, seconds = [head.split(", ")], [], 0.0
    total: Counter[str] = Counter()
    for module in modules:
        made, known = mutants_of(module), outcomes(module)
        wanted = {one.key for one in chosen(module)}
        done = {key for key, outcome in known.items() if outcome != NOT_RUN}
        drawn = [one for one in made if one.key in wanted | done and not one.prose]
        count = Counter(known.get(one.key, NOT_RUN) for one in drawn)
        count |= {"made": len(made), "prose": sum(one.prose for one in made), "drawn": len(drawn)}
        total += count
        lines.append(row(f"`{module.name}`", count))
        lists.append(survivors_of(module, drawn, known))
        seconds += spent(module, drawn)
    lines.append(row("all", total))
    return PLAN["page"].format(
        seed=PLAN["seed"],
        sample=max(module.sample for module in modules),
        minutes=seconds / 60,
        table=table(lines),
        survivors="\n\n".join(filter(None, lists)),
    )


def row(name: str, count: Counter[str]) -> list[str]:
    lived = count[SURVIVED] + count[UNTESTED]
    ran = count[KILLED] + count[TIMEOUT] + lived
    numbers = [count["made"], count["prose"], count["drawn"], count[KILLED], count[TIMEOUT]]
    share = f"{100 * count[KILLED] / ran:.1f} %" if ran else "-"
    return [name, *map(str, [*numbers, lived, count[NOT_RUN]]), share]


def spent(module: Module, drawn: list[Mutant]) -> float:
    """Seconds that the mutants took."""
    if not module.results.exists():
        return 0.0
    seconds = json.loads(module.results.read_text())["durations_by_key"]
    return sum(seconds.get(one.key, 0.0) for one in drawn)


def survivors_of(module: Module, drawn: list[Mutant], known: dict[str, str]) -> str:
    """The mutants that survived, by the reason why."""
    reasons = {
        (function, change): one["why"]
        for one in PLAN["explained"]
        if one["module"] == module.short
        for function, *changes in one["changes"]
        for change in changes
    }
    by_reason: dict[str, list[str]] = {}
    for one in drawn:
        if known.get(one.key) in (SURVIVED, UNTESTED):
            why = reasons.get((one.function, one.after), "Not explained.")
            line = f"- `{one.function}`: `{one.before}` became `{one.after}`"
            by_reason.setdefault(why, []).append(line)
    if not by_reason:
        return ""
    parts = [f"{why}\n\n" + "\n".join(lines) for why, lines in by_reason.items()]
    return "\n\n".join([f"### {module.name}", *parts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="modules, by the last part of their name")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at once")
    parser.add_argument("--survivors", action="store_true", help="run them again")
    parser.add_argument("--fresh", action="store_true", help="forget what was done")
    parser.add_argument("--page-only", action="store_true", help="write the page, run nothing")
    options = parser.parse_args()
    modules = [
        Module(name, tuple(tests), PLAN["sample"]) for name, tests in PLAN["modules"].items()
    ]
    unknown = set(options.only or ()) - {module.short for module in modules}
    if unknown:
        known = ", ".join(module.short for module in modules)
        parser.error(f"no module {min(unknown)!r} in tools/mutation.toml; use some of {known}")
    for module in [] if options.page_only else modules:
        if options.only and module.short not in options.only:
            continue
        if options.fresh:
            shutil.rmtree(module.folder, ignore_errors=True)
        run(module, survivors=options.survivors, jobs=options.jobs)
        PAGE.write_text(page(modules))
    PAGE.write_text(page(modules))


if __name__ == "__main__":
    main()
