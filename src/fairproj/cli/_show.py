"""An audit as tables on the terminal, and its exit code."""

from __future__ import annotations

from typing import Any

from fairproj.cli._console import print_line, show_table

NOT_MET, UNDECIDED = 3, 4


def show_audit(content: dict[str, Any]) -> None:
    """Print rates, gaps and the summary."""
    interval = f"{100 * content['confidence']:g} % interval"
    show_table(
        "Rates by group",
        ["rate", "group", "rows", "value", interval],
        [
            [row["name"], row["group"], f"{row['n']:,}", *_with_interval(row)]
            for row in content["rates"]
        ],
    )
    show_table(
        "Gaps between groups",
        ["gap", "value", interval, "highest", "lowest"],
        [
            [row["gap"].replace("_", " "), *_with_interval(row), row["highest"], row["lowest"]]
            for row in content["gaps"]
        ],
    )
    for sentence in content["summary"]:
        print_line(sentence)


def _with_interval(row: dict[str, Any]) -> list[str]:
    value = "unknown" if row["estimate"] is None else f"{row['estimate']:.3f}"
    return [value, f"{row['low']:.3f} to {row['high']:.3f}"]


def exit_code(content: dict[str, Any]) -> int:
    return {"not met": NOT_MET, "undecided": UNDECIDED}.get(content["verdict"], 0)
