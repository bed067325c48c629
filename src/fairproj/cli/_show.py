"""An audit as tables on the terminal, and its exit code."""

from __future__ import annotations

from typing import Any

from fairproj.cli._console import print_line, show_table
from fairproj.data.checks import counted
from fairproj.inference import GapsBy
from fairproj.report._content import extreme_rows
from fairproj.report._words import interval_name

NOT_MET, UNDECIDED, NOT_USEFUL, NO_SOLUTION = 3, 4, 5, 6


_MOST_GROUPS = 40  # of which all rates are printed
_EXTREME = 10  # lowest and highest rates that are printed of more


def show_audit(content: dict[str, Any]) -> None:
    """Print rates, gaps and the summary."""
    data, interval = content["data"], interval_name(content)
    print_line(f"{counted(data['rows'], 'row')}. Positive label: {data['positive_label']}.")
    print_line()
    rates, n_groups = _extreme(content["rates"]), len(data["groups"])
    show_table(
        "Rates by group",
        ["rate", "group", "rows", "value", interval],
        [[row["name"], row["group"], f"{row['n']:,}", *_with_interval(row)] for row in rates],
    )
    if len(rates) < len(content["rates"]):
        print_line(
            f"Of {n_groups} groups, those with the {_EXTREME} lowest and the {_EXTREME} highest of "
            "each rate are shown; --json and fairproj report have all."
        )
        print_line()
    show_table(
        "Gaps between groups",
        ["gap", "value", interval, "highest", "lowest"],
        [
            [_gap_name(row), *_with_interval(row), row["highest"], row["lowest"]]
            for row in content["gaps"]
        ],
    )
    for sentence in content["summary"]:
        print_line(sentence)


def _extreme(rates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the lowest and the highest of each rate, in their order, if there are many."""
    by_rate: dict[str, list[dict[str, Any]]] = {}
    for row in rates:
        by_rate.setdefault(row["name"], []).append(row)
    if max(map(len, by_rate.values())) <= _MOST_GROUPS:
        return rates
    return [row for rows in by_rate.values() for row in extreme_rows(rows, 2 * _EXTREME)]


def _gap_name(row: dict[str, Any]) -> str:
    name = row["gap"].replace("_", " ")
    return f"1 - {name}" if row["kind"] == "ratio" else name


def show_price(price: dict[str, Any]) -> None:
    """Print what the constraint cost."""
    show_table(
        price["title"],
        ["", "with it", "without", "difference"],
        [
            [row["name"], *(_number(row[name]) for name in ("model", "plain")), _signed(row)]
            for row in price["scores"]
        ],
    )
    print_line(price["sentence"])
    print_line()


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:z.3f}"


def _signed(row: dict[str, Any]) -> str:
    if row["difference"] is None:
        return "unknown"
    text = f"{row['difference']:+.3f}"
    return text if text.strip("+-0.") else "0.000"


def _with_interval(row: dict[str, Any]) -> list[str]:
    return [_number(row["estimate"]), f"{row['low']:z.3f} to {row['high']:z.3f}"]


def exit_code(content: dict[str, Any], by: GapsBy | None = None) -> int:
    """That of the verdict about all rows, or of an alarm in a part of them."""
    if by is not None and by.alarms:
        return NOT_MET
    codes = {"not met": NOT_MET, "undecided": UNDECIDED, "not useful": NOT_USEFUL}
    return codes.get(content["verdict"], 0)
