"""Counts of blocks of files, kept one JSON object a line, and the page made of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairproj import __version__
from fairproj.experiments._tables import markdown
from fairproj.io.atomic import write_text
from kept import read_kept
from safety.trials import Block, Tally


def done_blocks(path: Path) -> set[Block]:
    return {Block(**line["case"]) for line in read_kept(path)}


def discard_failed(path: Path) -> None:
    """Remove blocks with failures, so that they are tried again."""
    lines = [line for line in read_kept(path) if not line["result"]["failures"]]
    write_text(path, "".join(json.dumps(line) + "\n" for line in lines))


def keep(path: Path, tally: Tally) -> None:
    """Add the counts of a block."""
    result: dict[str, Any] = {"version": __version__, "seconds": round(tally.seconds, 1)}
    result |= {"counts": tally.counts, "failures": tally.failures}
    line = {"case": asdict(tally.block), "result": result}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def page(path: Path, part: Any, command: str) -> str:
    """The table of all blocks that are kept."""
    lines = read_kept(path)
    results = [line["result"] for line in lines]
    kinds: dict[str, Counter[str]] = {}
    for result in results:
        for kind, ends in result["counts"].items():
            kinds.setdefault(kind, Counter()).update(ends)
    whole = sum(kinds.values(), Counter())
    rows = [_row(kind, kinds[kind], part.MEANING) for kind in sorted(kinds)]
    table = [[part.COLUMN, "files", *part.MEANING.values(), "failures"], *rows]
    seeds = sorted({line["case"]["seed"] for line in lines})
    seconds = sum(result["seconds"] for result in results)
    of_version: Counter[str] = Counter()
    for result in results:
        files = sum(sum(ends.values()) for ends in result["counts"].values())
        of_version[result["version"]] += files
    versions = ", ".join(f"{n:,} with fairproj {one}" for one, n in sorted(of_version.items()))
    failures = [
        f"- {failure['kind']}: {failure['end']} (`{command} --replay "
        f"{line['case']['seed']}:{failure['index']}`)"
        for line in lines
        for failure in line["result"]["failures"]
    ]
    words = (
        f"`{command}`: {whole.total():,} files in {seconds:,.0f} s, "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}; {versions}. "
        f"{part.WORDS}"
    )
    table_text = markdown([*table, _row("all", whole, part.MEANING)])
    more = ["Failures:\n\n" + "\n".join(failures) + "\n"] if failures else []
    return "\n\n".join([f"# {part.TITLE}", words, table_text, *more])


def write_page(path: Path, part: Any, command: str, output: Path) -> None:
    write_text(output, page(path, part, command).rstrip() + "\n")


def _row(name: str, ends: Counter[str], good: Any) -> list[str]:
    shown = [ends[end] for end in good]
    return [name, *(f"{n:,}" for n in (ends.total(), *shown, ends.total() - sum(shown)))]
