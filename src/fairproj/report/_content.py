"""The type of what a report holds, and what its texts and numbers must be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fairproj.io.text import escape

# Of a report or a part of it: plain lists, texts and numbers. `fairproj.report` has the fields.
Content = dict[str, Any]


def finite(value: Any) -> Any:
    """The same with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def printable(value: Any) -> Any:
    """The same with escape codes for characters that a terminal would obey or that mislead."""
    if isinstance(value, dict):
        return {printable(name): printable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [printable(one) for one in value]
    return escape(value) if isinstance(value, str) else value


def extreme_rows(rows: Sequence[Content], most: int) -> list[Content]:
    """The rows with the lowest and the highest estimates, in their order, if there are many."""
    if len(rows) <= most:
        return list(rows)
    known = [at for at, row in enumerate(rows) if row["estimate"] is not None]
    lowest = sorted(known, key=lambda at: rows[at]["estimate"])[: most // 2]
    highest = sorted(known, key=lambda at: -rows[at]["estimate"])[: most // 2]
    return [rows[at] for at in sorted({*lowest, *highest})]


def with_gaps_first(content: Content, few: int) -> Content:
    """A report that starts its lists of groups with those of the gaps, if it has many groups.

    The gap looked at comes first, then the others, then the remaining groups by size. A page shows
    the first groups of these lists. The tables of all groups and of all rates keep their order.
    """
    if len(content["data"]["groups"]) <= few:
        return content
    target = content["target"]["metric"]
    gaps = sorted(content["gaps"], key=lambda row: row["gap"] != target)
    sizes = sorted(content["data"]["groups"], key=lambda group: -group["rows"])
    names = [row[end] for row in gaps for end in ("highest", "lowest")]
    names += [group["group"] for group in sizes]
    place = {name: at for at, name in reversed([*enumerate(names)])}
    ordered = dict(content)
    for part in ("thresholds", "calibration", "distribution"):
        if content[part] is not None:
            groups = sorted(content[part]["groups"], key=lambda group: place[group["group"]])
            ordered[part] = {**content[part], "groups": groups}
    if content["importance"] is not None:
        ordered["importance"] = _importance_in_order(content["importance"], place)
    return ordered


def _importance_in_order(importance: Content, place: dict[str, int]) -> Content:
    sampled = importance["sampled"]
    order = sorted(range(len(sampled)), key=lambda at: place[sampled[at]["group"]])
    features = [
        {
            **feature,
            **{
                name: [feature[name][at] for at in order]
                for name in ("groups", "groups_se", "means", "means_se")
            },
        }
        for feature in importance["features"]
    ]
    return {**importance, "sampled": [sampled[at] for at in order], "features": features}
