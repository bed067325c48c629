"""Positions in the charts of the page, mostly in percent of the plot, so that charts can resize."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

ROW, HIGH_ROW = 38, 46  # pixels: two lines of a group's name, three of a gap's
MOST_ROWS = 20  # of a chart; the table has them all
MOST_PLOTS = 6  # of groups that have a chart each
MOST_COLUMNS = 8  # of groups that have a column each
MOST_FEATURES = 12  # of a chart
MOST_MARKS = 6  # of groups in the chart of the features
BAR_ROW = 30
MOST_ROUNDS = 1000  # of a line; more cannot be distinguished
DASHES = ("none", "8 3", "2 3", "10 3 2 3", "5 5")
MARKERS = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",  # circle
    "M-4.6-4.6h9.2v9.2h-9.2z",  # square
    "M0-6.2L5.8 4.6h-11.6z",  # triangle
    "M0-6.6L6 0L0 6.6L-6 0z",  # diamond
    "M0 6.2L5.8-4.6h-11.6z",  # triangle, point down
    "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",  # plus
)


@dataclass(frozen=True)
class Axis:
    """A range of values and the ones to name."""

    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int

    def at(self, value: float) -> float:
        """In percent of the axis; what lies beyond is drawn at its end."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 3)

    def marks(self) -> list[tuple[float, str]]:
        kind = "f" if self.digits <= 6 else "e"
        digits = self.digits if kind == "f" else 1
        return [(self.at(tick), f"{tick:.{digits}{kind}}") for tick in self.ticks]


def axis(values: Iterable[float], count: int = 4, *, tight: bool = False) -> Axis:
    """One that holds the values and ends at round numbers; if tight, at the values."""
    known = sorted(values) or [0.0, 1.0]
    low, high = known[0], known[-1]
    if high - low <= 1e-9 * max(1.0, abs(high)):  # a single value has no scale of its own
        low, high = (low, low + 1) if tight else (low - 0.5 * abs(low), low + 0.5 * abs(low or 1))
    step = _round_step((high - low) / count, whole=tight)
    outward = -1e-9 if tight else 1e-9
    first = math.ceil(low / step + outward) if tight else math.floor(low / step + outward)
    last = math.floor(high / step - outward) if tight else math.ceil(high / step - outward)
    ticks = tuple(step * i for i in range(first, last + 1))
    ends = (low, high) if tight else (ticks[0], ticks[-1])
    return Axis(*ends, ticks, max(0, -math.floor(math.log10(step) + 1e-9)))


def _round_step(step: float, *, whole: bool) -> float:
    """The next of 1, 2, 5, 10, and so on."""
    power = 10.0 ** math.floor(math.log10(step))
    rounded = next(power * m for m in (1, 2, 5, 10) if power * m >= step * (1 - 1e-9))
    return max(rounded, 1.0) if whole else rounded


def rate_axes(rates: Iterable[Sequence[dict[str, Any]]]) -> list[Axis]:
    """One for each rate, all of the same length, so that intervals can be compared by eye."""
    ends = [_known(row[end] for row in rows for end in ("low", "high")) or [0, 1] for rows in rates]
    step = _round_step(max(0.05, *(max(one) - min(one) for one in ends)) / 4, whole=False)
    firsts = [math.floor(min(one) / step + 1e-9) for one in ends]
    lasts = [math.ceil(max(one) / step - 1e-9) for one in ends]
    count = max(1, *(last - first for first, last in zip(firsts, lasts, strict=True)))
    firsts = [max(0, min(first, round(1 / step) - count)) for first in firsts]
    return [axis([first * step, (first + count) * step], count) for first in firsts]


def start_apart(axes: Sequence[Axis]) -> bool:
    """Whether the axes start at different values."""
    return len({one.low for one in axes}) > 1


def gap_axis(gaps: Sequence[dict[str, Any]], limit: float | None) -> Axis:
    ends = [row[end] for row in gaps for end in ("estimate", "high")]
    return axis([0.0, *_known([*ends, limit])], 5)


def intervals(rows: Sequence[dict[str, Any]], scale: Axis, height: int) -> list[dict[str, Any]]:
    """A dot and a line for each row; None for what is not known."""
    return [
        {
            "y": height * i + height / 2,
            **{name: _place(scale, row[name]) for name in ("estimate", "low", "high")},
        }
        for i, row in enumerate(rows)
    ]


def frontier(content: dict[str, Any], limit: float | None) -> dict[str, Any]:
    """The points, the lines that join the best of each series, and both axes."""
    series = list(dict.fromkeys(point["series"] for point in content["points"]))
    points = [
        {**point, "index": i, "style": series.index(point["series"])}
        for i, point in enumerate(content["points"])
        if point["gap"] is not None and point["score"] is not None
    ]
    x = axis([0.0, *_known([limit]), *_reach(points, "gap", lowest=0.0)], 5)
    y = axis(_reach(points, "score"), 5)
    marks = [_mark(point, points, x, y) for point in points]
    return {
        "series": series,
        "x": x,
        "y": y,
        "limit": _place(x, limit),
        "lines": [part for i in range(len(series)) for part in _best_line(marks, i)],
        # Painted last, so on top: the best, then the chosen.
        "marks": sorted(marks, key=lambda mark: (mark["chosen"], mark["best"])),
    }


def _reach(points: Sequence[dict[str, Any]], name: str, lowest: float = -math.inf) -> list[float]:
    """Both ends of all error bars."""
    ends = [
        point[name] + sign * (point[f"{name}_se"] or 0.0) for point in points for sign in (-1, 1)
    ]
    return [max(end, lowest) for end in ends]


def _mark(
    point: dict[str, Any], points: Sequence[dict[str, Any]], x: Axis, y: Axis
) -> dict[str, Any]:
    gap, score = point["gap"], point["score"]
    gap_se, score_se = point["gap_se"] or 0.0, point["score_se"] or 0.0
    return {
        **point,
        "x": x.at(gap),
        "y": _from_top(y, score),
        "bars": [
            *(x.at(gap + sign * gap_se) for sign in (-1, 1)),
            *(_from_top(y, score + sign * score_se) for sign in (-1, 1)),
        ],
        "same": [
            other
            for other in points
            if other is not point and other["gap"] == gap and other["score"] == score
        ],
    }


def _best_line(marks: Sequence[dict[str, Any]], style: int) -> list[dict[str, Any]]:
    best = [mark for mark in marks if mark["best"] and mark["style"] == style]
    best.sort(key=lambda mark: (mark["x"], mark["y"]))
    return [{"style": style, "from": one, "to": other} for one, other in pairwise(best)]


def panel(content: dict[str, Any], rounds: int, kept: int) -> dict[str, Any]:
    """One chart of the training, its lines as paths in a square of 100 by 100."""
    x = axis([1, max(rounds, 1)], 4, tight=True)
    return _lines(content, x, range(1, rounds + 1), kept if kept < rounds else None)


def threshold_panels(content: dict[str, Any], target: dict[str, Any]) -> list[dict[str, Any]]:
    """Charts by threshold: the gap, and accuracy and selection rate."""
    limit = target["max_gap"]
    levels = [] if limit is None else [{"name": "largest gap allowed,", "value": limit}]
    shares = [("accuracy", "accuracy"), ("selection rate", "selection_rate")]
    panels = [
        _panel("Gap by threshold", target["name"], [("gap", content["gap"])], levels),
        _panel(
            "Accuracy and selection rate by threshold",
            "share of the rows",
            [(name, content[key]) for name, key in shares],
        ),
    ]
    x = axis([0.0, 1.0], 5)
    return [_lines(panel, x, content["threshold"], content["in_use"]) for panel in panels]


def _panel(
    title: str, label: str, lines: Sequence[tuple[str, Any]], levels: Sequence[Any] = ()
) -> dict[str, Any]:
    named = [{"name": name, "values": values} for name, values in lines]
    return {"title": title, "axis": label, "levels": list(levels), "lines": named}


def first_reading(content: dict[str, Any]) -> int:
    """The threshold to begin with: the one in use, or a half."""
    start = 0.5 if content["in_use"] is None else content["in_use"]
    places = content["threshold"]
    return min(range(len(places)), key=lambda i: abs(places[i] - start))


def readings(content: dict[str, Any]) -> list[int]:
    """The thresholds of the table: every twentieth part of 1, and the one in use."""
    places = content["threshold"]
    wanted = [i for i, place in enumerate(places) if abs(20 * place - round(20 * place)) < 1e-9]
    in_use = [] if content["in_use"] is None else [first_reading(content)]
    return sorted({*wanted, *in_use})


def rates_at(content: dict[str, Any], index: int) -> list[dict[str, Any]]:
    """The rates of each group at a threshold, and their largest difference."""
    counts = [[*g["size"], *(label[index] for label in g["predicted"])] for g in content["groups"]]
    rows = []
    for rate in content["rates"]:
        values = [_share(rate, counted) for counted in counts]
        known = _known(values)
        difference = max(known) - min(known) if len(known) > 1 else None
        rows.append({"name": rate["name"], "values": values, "difference": difference})
    return rows


def _share(rate: dict[str, Any], counts: Sequence[float]) -> float | None:
    hits, rows = (
        sum(c * n for c, n in zip(rate[part], counts, strict=True)) for part in ("hits", "rows")
    )
    return hits / rows if rows else None


def calibration(group: dict[str, Any]) -> list[dict[str, Any]]:
    """Dots and lines of the bins of a group, in percent."""
    unit = Axis(0.0, 1.0, (), 1)
    return [
        {
            **one,
            "x": unit.at(one["probability"]),
            "y": _from_top(unit, one["observed"]),
            "ends": [_from_top(unit, one[end]) for end in ("low", "high")],
        }
        for one in group["bins"]
    ]


UNIT = axis([0.0, 1.0], 5)


def distribution(content: dict[str, Any]) -> dict[str, Any]:
    """Bars of each group: of the rows with a label, the share in each bin; both side by side."""
    shares = [[_shares(group[name]) for name in _BY_LABEL] for group in content["groups"]]
    y = axis([0.0, *(share for group in shares for label in group for share in label)], 4)
    width = 50 / (len(content["edges"]) - 1)
    bars = [
        [
            {"style": style, "x": (2 * i + style) * width, "width": width, "height": y.at(share)}
            for style, label in enumerate(group)
            for i, share in enumerate(label)
            if share
        ]
        for group in shares
    ]
    return {"y": y, "bars": bars}


_BY_LABEL = ("negatives", "positives")


def _shares(rows: Sequence[int]) -> list[float]:
    total = sum(rows)
    return [n / total if total else 0.0 for n in rows]


def importance(features: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Bars of the overall means, and marks of those of the first groups."""
    largest = [max([f["overall"], *f["groups"][:MOST_MARKS]]) for f in features]
    x = axis([0.0, *largest], 4)
    rows = [
        {
            "y": BAR_ROW * i + BAR_ROW / 2,
            "bar": x.at(feature["overall"]),
            "marks": [x.at(value) for value in feature["groups"][:MOST_MARKS]],
        }
        for i, feature in enumerate(features)
    ]
    return {"x": x, "rows": rows, "height": BAR_ROW * len(rows)}


def _lines(
    content: dict[str, Any], x: Axis, places: Sequence[float], mark: float | None
) -> dict[str, Any]:
    """Lines over these places, levels across, and a place to mark."""
    levels = [level["value"] for level in content["levels"]]
    values = _known([*levels, *(value for line in content["lines"] for value in line["values"])])
    if values and 0 <= min(values) < 0.4 * max(values):
        values.append(0.0)
    y = axis(values, 4)
    return {
        **content,
        "x": x,
        "y": y,
        "levels": [{**level, "at": _from_top(y, level["value"])} for level in content["levels"]],
        "mark_at": _place(x, mark),
        "paths": [_path(line["values"], places, x, y) for line in content["lines"]],
    }


def _path(values: Sequence[float | None], places: Sequence[float], x: Axis, y: Axis) -> str:
    """Broken where a value is not known; a lone value is a dot."""
    parts, joined = [], False
    for i in range(0, len(values), math.ceil(len(values) / MOST_ROUNDS) or 1):
        value = values[i]
        if value is not None:
            place = f"{x.at(places[i]):g} {_from_top(y, value):g}"
            parts.append(f"L{place}" if joined else f"M{place}h0")
        joined = value is not None
    return "".join(parts)


def _from_top(y: Axis, value: float) -> float:
    return round(100 - y.at(value), 3)


def _place(scale: Axis, value: float | None) -> float | None:
    return None if value is None else scale.at(value)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def alternatives(content: dict[str, Any]) -> dict[str, Any]:
    """The models of a search by score and gap, and the score that a candidate needed."""
    series = list(dict.fromkeys(point["series"] for point in content["points"]))
    points = [
        {**point, "index": i, "style": series.index(point["series"])}
        for i, point in enumerate(content["points"])
        if point["gap"] is not None and point["score"] is not None
    ]
    x = axis([0.0, *(point["gap"] for point in points)], 5)
    y = axis([content["least_score"], *(point["score"] for point in points)], 5)
    marks = [_mark(point, points, x, y) for point in points]
    return {
        "series": series,
        "x": x,
        "y": y,
        "least": _from_top(y, content["least_score"]),
        # Painted last, so on top: those that count, then the plain and the chosen one.
        "marks": sorted(marks, key=lambda mark: (mark["chosen"], mark["plain"], mark["counts"])),
    }


def ratio_axis(rows: Sequence[dict[str, Any]]) -> Axis:
    """For ratios to a reference, from 0; what lies far beyond 2 is drawn at the end."""
    ends = _known(row[f"adverse_impact_ratio{end}"] for row in rows for end in ("", "_high"))
    return axis([0.0, 1.0, *(min(end, 2.0) for end in ends)], 5)
