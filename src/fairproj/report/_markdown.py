"""The report as Markdown, and the model card."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from fairproj.data.checks import counted
from fairproj.report._content import Content
from fairproj.report._words import interval_name


def markdown(content: Content) -> str:
    """The whole report, tables and sentences."""
    parts = [
        f"# {_escape(content['title'])}",
        f"{content['created']}. Verdict: **{content['verdict']}**.",
        *_section("Summary", map(_escape, content["summary"])),
        *_section("What was asked", [_table(["", ""], content["asked"])]),
        *_section("Data and groups", _data(content["data"])),
        *_section("Rates by group", [_intervals(content), _rates(content)]),
        *_section("Gaps", [_gaps(content)]),
        *_section("Scores", [_scores(content)]),
    ]
    if content["price"]:
        parts += _section("What fairness cost", _price(content["price"]))
    if content["frontier"]:
        parts += _section("Frontier", _frontier(content["frontier"]))
    if content["certificate"]:
        parts += _section("Certificate", _certificate(content["certificate"]))
    parts += _section("Caveats", [_list(content["caveats"])])
    parts += _section("Reproduce", _reproduce(content["reproduce"]))
    return "\n\n".join(parts) + "\n"


def model_card(content: Content) -> str:
    """A card to go with the model; what only its owner knows is left to fill in."""
    ask = "*To be filled in by the owner of the model.*"
    parts = [
        f"# Model card: {_escape(content['data']['name'])}",
        *_section("Model", [_table(["", ""], content["asked"])]),
        *_section("Intended use", [ask]),
        *_section("Out of scope", [ask]),
        *_section(
            "Groups and metrics",
            [
                f"The {content['target']['name']} was looked at, and these groups were compared:",
                *_data(content["data"]),
            ],
        ),
        *_section(
            "Evaluation", [*map(_escape, content["summary"]), _scores(content), _gaps(content)]
        ),
        *_section("Rates by group", [_intervals(content), _rates(content)]),
    ]
    if content["price"]:
        parts += _section("What fairness cost", _price(content["price"]))
    if content["certificate"]:
        parts += _section("Training", map(_escape, content["certificate"]["words"]))
    parts += _section("Ethical considerations", [ask])
    parts += _section("Caveats", [_list(content["caveats"])])
    parts += _section("Reproduce", _reproduce(content["reproduce"]))
    return "\n\n".join(parts) + "\n"


def _section(title: str, parts: Iterable[str]) -> list[str]:
    return [f"## {title}", *parts]


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [list(head), ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_escape(cell) for cell in line)} |" for line in lines)


def _escape(cell: Any) -> str:
    """Text without anything that Markdown reads as markup."""
    text = " ".join(str(cell).split())
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", text)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _interval(row: Content) -> str:
    if row["estimate"] is None:
        return "unknown"
    return f"{row['estimate']:.3f} ({row['low']:.3f} to {row['high']:.3f})"


def _intervals(content: Content) -> str:
    return f"In parentheses, here and for gaps: {interval_name(content)}s."


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {_escape(item)}" for item in items)


def _data(data: Content) -> list[str]:
    which = f", {data['which']}" if data["which"] else ""
    rows = [
        [
            row["group"],
            f"{row['rows']:,}",
            _number(row["share"]),
            f"{row['positives']:,}",
            _number(row["positive_share"]),
        ]
        for row in data["groups"]
    ]
    head = ["Group", "Rows", "Share", "Positive", "Share positive"]
    rows_of = f"{counted(data['rows'], 'row')} of {_escape(data['name'])}{_escape(which)}"
    return [f"{rows_of}. Positive label: {_escape(data['positive_label'])}.", _table(head, rows)]


def _rates(content: Content) -> str:
    names = list(dict.fromkeys(row["name"] for row in content["rates"]))
    by_group: dict[str, dict[str, str]] = {}
    for row in content["rates"]:
        by_group.setdefault(row["group"], {})[row["name"]] = _interval(row)
    rows = [[group, *(cells.get(name, "") for name in names)] for group, cells in by_group.items()]
    return _table(["Group", *names], rows)


def _gaps(content: Content) -> str:
    rows = [
        [row["name"], _interval(row), row["highest"], row["lowest"], row["n_smallest"]]
        for row in content["gaps"]
    ]
    return _table(["Gap", "Value", "Highest", "Lowest", "Rows of the smallest"], rows)


def _scores(content: Content) -> str:
    return _table(
        ["Score", "Value"], [[row["name"], _number(row["value"])] for row in content["scores"]]
    )


def _price(price: Content) -> list[str]:
    rows = [
        [row["name"], *(_number(row[name]) for name in ("model", "plain", "difference"))]
        for row in price["scores"]
    ]
    table = _table(["Score", "With the constraint", "Without", "Difference"], rows)
    return [_escape(price["sentence"]), f"{_escape(price['title'])}:", table]


def _frontier(frontier: Content) -> list[str]:
    rows = [
        [
            point["series"],
            f"{point['parameter']} {point['value']:g}",
            _number(point["score"]),
            _number(point["gap"]),
            "yes" if point["best"] else "no",
            "yes" if point["chosen"] else "",
        ]
        for point in frontier["points"]
    ]
    head = ["Series", "Setting", frontier["score_name"], frontier["gap_name"]]
    table = _table([*head, "Not dominated", "This model"], rows)
    return [_escape(frontier["note"]), table] if frontier["note"] else [table]


def _certificate(certificate: Content) -> list[str]:
    words = [_escape(sentence) for sentence in certificate["words"]]
    return [*words, _table(["", ""], certificate["rows"]), _escape(certificate["caveat"])]


def _reproduce(reproduce: Content) -> list[str]:
    parts = []
    if reproduce["command"]:
        parts.append("```sh\n" + reproduce["command"].replace("```", "") + "\n```")
    if reproduce["sha256"]:
        parts.append(f"SHA-256 of the data: `{reproduce['sha256']}`")
    return [*parts, _table(["Package", "Version"], reproduce["versions"].items())]
