"""The checks of rows before training, and what to do about their findings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from fairproj.cli._record import Target
from fairproj.cli._rows import Rows
from fairproj.cli._split import find_cut
from fairproj.cli._task import Task
from fairproj.constraints import find_statistic
from fairproj.data.checks import check_groups, in_words
from fairproj.inspection import Finding, Inspection, inspect_rows
from fairproj.inspection.sizes import RateSizes, sizes_of
from fairproj.io.text import escape

_MOST_OF_A_KIND = 5  # that train warns of
_ADVICE = {
    "identifier": "leave it out with --drop {}",
    "leak": "leave it out with --drop {} if it is not known when predictions are made",
    "proxy": "leave it out with --drop {}, or keep it with a reason",
    "small_group": "give more rows, join groups, or allow a larger --max-gap",
}


def inspect_task(rows: Rows, task: Task, targets: Sequence[Target], test_size: float) -> Inspection:
    """Check the features, the label and the groups of a task."""
    others = [name for name in rows.X.columns if name not in task.sensitive]
    held_out = _held_out(rows, task, test_size)
    return inspect_rows(
        rows.X[others],
        rows.y,
        rows.groups,
        [(target.metric, target.max_gap) for target in targets if target.max_gap is not None],
        pos_label=rows.positive,
        test_size=test_size,
        held_out=held_out,
        sensitive=" and ".join(task.sensitive),
    )


def _held_out(rows: Rows, task: Task, test_size: float) -> Any:
    """Which rows a split by time holds out; None where they are random."""
    if task.time is None or not test_size:
        return None
    return find_cut(rows, task.time, test_size).mask(rows.frame[task.time])


def crossed_groups(
    rows: Rows, task: Task, inspection: Inspection, targets: Sequence[Target], test_size: float
) -> Iterator[Finding]:
    """Where crossing several columns makes groups too small: what each column alone would give."""
    small = [one for one in inspection.sizes if one.confirmable is None and one.needed]
    if len(task.sensitive) < 2 or not small:
        return
    sizes, positive = small[0], rows.y == rows.positive
    statistic = next(
        target.metric
        for target in targets
        if sizes.rate in [one.rate for one in find_statistic(target.metric).requirements]
    )
    held_out = _held_out(rows, task, test_size)
    alone = []
    for name in task.sensitive:
        groups = check_groups(rows.groups[[name]], len(rows.y))
        if len(groups.values) < 2:
            alone.append(f"{name} has one value only")
            continue
        one = next(
            one
            for one in sizes_of(
                positive, groups, statistic, sizes.max_gap, test_size, held_out=held_out
            )
            if one.rate.name == sizes.rate.name
        )
        alone.append(f"{name} alone makes {_smallest(one)}")
    words = (
        f"{in_words(task.sensitive, 'and')}, crossed, make {_smallest(sizes)}, for a gap of "
        f"{sizes.max_gap:g} in the {sizes.rate.words}; {', '.join(alone)}: name one column at a "
        "time, or join groups"
    )
    yield Finding("crossed_groups", None, float(len(sizes.held_out)), words)


def _smallest(sizes: RateSizes) -> str:
    needed = "" if sizes.needed is None else f" where {sizes.needed:,} are needed"
    return (
        f"{len(sizes.held_out)} groups (the smallest has {int(sizes.held_out.min()):,} held-out "
        f"rows{needed})"
    )


def sentence(finding: Finding) -> str:
    """A finding and what to do about it."""
    advice = _ADVICE.get(finding.kind)
    if advice is None:
        return finding.words
    return f"{finding.words}; {advice.format(shlex.quote(finding.column or ''))}"


def warn_of_findings(findings: Sequence[Finding]) -> None:
    """Print a sentence about each finding that calls for action, in train."""
    for text in _warnings(findings):
        typer.echo(f"warning: {escape(text)}", err=True)


def _warnings(findings: Sequence[Finding]) -> Iterator[str]:
    by_kind: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.is_warning:
            by_kind.setdefault(finding.kind, []).append(finding)
    for kind, found in by_kind.items():
        yield from map(sentence, found[:_MOST_OF_A_KIND])
        if len(found) > _MOST_OF_A_KIND:
            more = len(found) - _MOST_OF_A_KIND
            named = kind.replace("_", " ")
            yield f"{more} more findings of the same kind ({named}); fairproj check lists them"
