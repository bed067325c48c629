"""The checks of rows before training, and what to do about their findings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import typer

from fairproj.cli._record import Target
from fairproj.cli._rows import Rows, Task, find_cut
from fairproj.inspection import Finding, Inspection, inspect_rows
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
    held_out = None
    if task.time is not None and test_size:
        held_out = find_cut(rows, task.time, test_size).mask(rows.frame[task.time])
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
