"""Try what is not kept yet, and write the pages. POSIX only: Linux and macOS, not Windows."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from fairproj.io.progress import time_bar
from safety import kept
from safety.trials import Block, replay, run_blocks

RESULTS = Path(__file__).parents[1] / "results"
FILES = {"models": ("safety.model_files", "fuzz.md"), "data": ("safety.data_files", "fuzz-data.md")}
RUNS = {"kills": ("safety.kills", "kill.md"), "faults": ("safety.faults", "faults.md")}
COMMAND = "python benchmarks/safety"


def main(given: list[str] | None = None) -> int:
    parser = _parser()
    arguments = parser.parse_args(given)
    if os.name != "posix":
        parser.error("this runs on POSIX systems only: it forks, and sends signals")
    failed = 0
    for name in arguments.parts or [*FILES, *RUNS]:
        if name in FILES:
            failed += _try_files(name, arguments)
        else:
            module, page = RUNS[name]
            failed += import_module(module).run(
                arguments.output / "safety" / f"{name}.jsonl", arguments.output / page, arguments
            )
    return int(failed > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("safety", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*FILES, *RUNS, []], help="all by default")
    parser.add_argument("--files", type=int, default=100_000, help="of each kind and seed")
    parser.add_argument("--times", type=int, default=200, help="kills of each command and seed")
    parser.add_argument("--seed", type=int, default=0, help="counts of all seeds add up")
    parser.add_argument("--block", type=int, default=2000, help="files that are kept together")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--limit", type=float, default=30.0, help="seconds a file may take")
    parser.add_argument(
        "--replay", metavar="SEED:INDEX", help="try one file of a part in full view"
    )
    parser.add_argument("--again", action="store_true", help="try blocks with failures again")
    parser.add_argument("--fresh", action="store_true", help="discard what is kept")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the folder for pages")
    return parser


def _try_files(name: str, arguments: argparse.Namespace) -> int:
    module, page = FILES[name]
    part = import_module(module)
    with tempfile.TemporaryDirectory(prefix="fairproj-safety-") as folder:
        part.prepare(Path(folder))
        if arguments.replay:
            return _replay(module, part, Path(folder), arguments.replay)
        path = arguments.output / "safety" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        if arguments.fresh:
            path.unlink(missing_ok=True)
        if arguments.again:
            kept.discard_failed(path)
        failed = _run(name, path, _missing(path, arguments), Path(folder), arguments)
    kept.write_page(path, part, f"{COMMAND} {name}", arguments.output / page)
    return failed


def _missing(path: Path, arguments: argparse.Namespace) -> list[Block]:
    """Blocks of the files of the seed that are not kept, whatever the size of those that are."""
    blocks, first = [], 0
    done = [block for block in kept.done_blocks(path) if block.seed == arguments.seed]
    for block in sorted([*done, Block(arguments.seed, arguments.files, 0)], key=lambda b: b.first):
        stop = min(block.first, arguments.files)
        for start in range(first, stop, arguments.block):
            blocks.append(Block(arguments.seed, start, min(arguments.block, stop - start)))
        first = max(first, block.stop)
    return blocks


def _run(
    name: str, path: Path, blocks: list[Block], folder: Path, arguments: argparse.Namespace
) -> int:
    failed = 0
    left = sum(block.files for block in blocks)
    options: dict[str, Any] = {"n_workers": arguments.jobs, "limit": arguments.limit}
    show = bool(blocks) and sys.stdout.isatty()
    with time_bar(name, arguments.files, arguments.files - left, show=show) as advance:
        for tally in run_blocks(FILES[name][0], folder, blocks, **options):
            kept.keep(path, tally)
            failed += len(tally.failures)
            advance(tally.block.files)
            for failure in tally.failures:
                print(f"{name}: {COMMAND} {name} --replay {tally.block.seed}:{failure}", flush=True)
    return failed


def _replay(module: str, part: Any, folder: Path, text: str) -> int:
    seed, index = map(int, text.split(":"))
    _, path, (end, message) = replay(module, folder, seed, index)
    copy = Path.cwd() / f"replay-{seed}-{index}{''.join(path.suffixes)}"
    copy.write_bytes(path.read_bytes())
    print(f"{copy}: {end}: {message}")
    return int(end not in part.MEANING)
