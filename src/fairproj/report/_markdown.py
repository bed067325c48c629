"""The report as Markdown, and the model card."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fairproj.data.checks import counted
from fairproj.report import _charts
from fairproj.report._content import Content, printable
from fairproj.report._words import interval_name, not_shown


def markdown(content: Content) -> str:
    """The whole report, tables and sentences, in the order of the page."""
    content = printable(content)
    parts = [
        f"# {_escape(content['title'])}",
        f"{content['created']}. Verdict: **{content['verdict']}**.",
        *_section("What is decided, and about whom", [_table(["", ""], content["subject"])]),
        *_section("Verdict", map(_escape, content["summary"])),
        *_measured(content),
        *_optional("Other settings", content["frontier"], _frontier),
        *_section("Not covered", [_list(content["not_looked_at"])]),
        *_section("Caveats", [_list(content["caveats"])]),
        *_section("What was asked", [_table(["", ""], content["asked"])]),
        *_optional("Certificate of the training run", content["certificate"], _certificate),
        *_section("Reproduce", _reproduce(content["reproduce"])),
    ]
    return "\n\n".join(parts) + "\n"


def _measured(content: Content) -> list[str]:
    """What was measured on the rows, which a report and a model card share."""
    return [
        *_optional("Compared with the unconstrained model", content["price"], _price),
        *_section("Data and groups", [*_data(content["data"]), _scores(content)]),
        *_section("Rates by group", [_intervals(content), _rates(content)]),
        *_section(
            "Gaps between groups",
            [_escape(content["selection_ratio"]["sentence"]), _gaps(content)],
        ),
        *_optional(
            "Other thresholds",
            content["thresholds"],
            lambda part: [
                *filter(None, [_escape(not_shown(content["targets"]))]),
                *_thresholds(part),
            ],
        ),
        *_optional("Calibration by group", content["calibration"], _calibration),
        *_optional("Probabilities by group", content["distribution"], _distribution),
        *_optional("What the decisions rest on", content["importance"], _importance),
        *_optional("Proxies and other findings", content["proxies"], _proxies),
    ]


def model_card(content: Content) -> str:
    """A card to go with the model; what only its owner knows is left to fill in.

    Parameters
    ----------
    content : dict
        From `summarize_estimator` or `summarize_predictions`.

    Returns
    -------
    str
        Markdown.
    """
    content = printable(content)
    ask = "*To be filled in by the owner of the model.*"
    name = content["title"].removeprefix("Fairness report: ")
    names = " and the ".join(one["name"] for one in content["targets"])
    looked_at = f"The {names} {'was' if len(content['targets']) == 1 else 'were'} looked at."
    known = {row[0] for row in content["subject"]}
    asked = [row for row in content["asked"] if row[0] not in known]
    parts = [
        f"# Model card: {_escape(name)}",
        *_section("Model", [_table(["", ""], [*content["subject"], *asked])]),
        *_section("Intended use", [ask]),
        *_section("Out of scope", [ask]),
        *_section("Evaluation", [_escape(looked_at), *map(_escape, content["summary"])]),
        *_measured(content),
    ]
    if content["certificate"]:
        parts += _section("Training", map(_escape, content["certificate"]["words"]))
    parts += [
        *_section("Ethical considerations", [ask]),
        *_section("Not covered", [_list(content["not_looked_at"])]),
        *_section("Caveats", [_list(content["caveats"])]),
        *_section("Reproduce", _reproduce(content["reproduce"])),
    ]
    return "\n\n".join(parts) + "\n"


def _optional(
    title: str, part: Content | None, render: Callable[[Content], list[str]]
) -> list[str]:
    """A section of a part that a report may lack."""
    return [] if part is None else _section(title, render(part))


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
    return "unknown" if value is None else f"{value:z.3f}"


def _interval(row: Content) -> str:
    if row["estimate"] is None:
        return "unknown"
    return f"{row['estimate']:z.3f} ({row['low']:z.3f} to {row['high']:z.3f})"


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
    interval = price["interval"]
    more = [] if interval is None else [_escape(interval["sentence"])]
    text = f"{price['about']} {price['sentence']}"
    return [_escape(text), *more, f"{_escape(price['title'])}:", table]


def _thresholds(thresholds: Content) -> list[str]:
    rows = [
        [
            f"{thresholds['threshold'][i]:.4g}",
            *(_number(thresholds[name][i]) for name in ("gap", "accuracy", "selection_rate")),
            "in use" if thresholds["threshold"][i] == _in_use(thresholds) else "",
        ]
        for i in _charts.readings(thresholds)
    ]
    return [_table(["Threshold", "Gap", "Accuracy", "Selection rate", ""], rows)]


def _in_use(thresholds: Content) -> float | None:
    """The threshold in use as it stands among the others."""
    if thresholds["in_use"] is None:
        return None
    place: float = thresholds["threshold"][_charts.first_reading(thresholds)]
    return place


def _calibration(calibration: Content) -> list[str]:
    groups = [{"group": "all groups", **calibration["overall"]}, *calibration["groups"]]
    errors = [[one["group"], f"{one['rows']:,}", _number(one["error"])] for one in groups]
    bins = [
        [
            group["group"],
            _number(one["probability"]),
            _interval({**one, "estimate": one["observed"]}),
            f"{one['rows']:,}",
        ]
        for group in calibration["groups"]
        for one in group["bins"]
    ]
    return [
        *([_escape(calibration["note"])] if calibration["note"] else []),
        _table(["Group", "Rows", "Calibration error"], errors),
        _table(["Group", "Mean probability", "Observed share of positives", "Rows"], bins),
    ]


def _distribution(distribution: Content) -> list[str]:
    edges = distribution["edges"]
    names = [group["group"] for group in distribution["groups"]]
    rows = [
        [
            f"{edges[i]:g} to {edges[i + 1]:g}",
            *(f"{g['positives'][i]:,} + {g['negatives'][i]:,}" for g in distribution["groups"]),
        ]
        for i in range(len(edges) - 1)
    ]
    note = "Rows of each group by probability, those with the positive label first."
    return [note, _table(["Probability", *names], rows)]


def _importance(importance: Content) -> list[str]:
    sampled = sum(group["rows"] for group in importance["sampled"])
    note = (
        "By how much each feature moves the score up or down on average (mean absolute SHAP "
        f"value), over {sampled:,} rows drawn at random with a fixed seed, ± one standard error."
    )
    head = ["Feature", "All", *(group["group"] for group in importance["sampled"])]
    rows = [
        [
            one["name"],
            _with_error(one["overall"], one["overall_se"]),
            *map(_with_error, one["groups"], one["groups_se"]),
        ]
        for one in importance["features"]
    ]
    return [note, _escape(importance["sentence"]), _table(head, rows)]


def _with_error(value: float, error: float | None) -> str:
    return _number(value) + ("" if error is None else f" ± {error:z.3f}")


def _proxies(proxies: Content) -> list[str]:
    rows = [
        [
            row["name"],
            "" if row["column"] is None else row["column"],
            row["shown"],
            row["words"],
        ]
        for row in proxies["findings"]
    ]
    table = [_table(["Finding", "Column or group", "Measure", "In words"], rows)] if rows else []
    return [_escape(proxies["sentence"]), *table]


def _frontier(frontier: Content) -> list[str]:
    rows = [
        [
            point["series"],
            f"{point['parameter']} {point['value']:g}",
            _number(point["score"]),
            _number(point["gap"]),
            "yes" if point["best"] else "no" if point["useful"] else "not useful",
            "yes" if point["chosen"] else "",
        ]
        for point in frontier["points"]
    ]
    head = ["Series", "Setting", frontier["score_name"], frontier["gap_name"]]
    table = _table([*head, "On the frontier of its series", "This model"], rows)
    return [_escape(frontier["note"]), table] if frontier["note"] else [table]


def _certificate(certificate: Content) -> list[str]:
    words = [_escape(sentence) for sentence in certificate["words"]]
    after = [_escape(certificate[name]) for name in ("terms", "caveat")]
    return [*words, _table(["", ""], certificate["rows"]), *after]


def _reproduce(reproduce: Content) -> list[str]:
    parts = []
    if reproduce["command"]:
        parts.append("```sh\n" + reproduce["command"].replace("```", "") + "\n```")
    if reproduce["claimed"]:
        claimed = reproduce["claimed"].replace("```", "")
        parts.append(f"The model, as its file says (not verified):\n\n```sh\n{claimed}\n```")
    if reproduce["sha256"]:
        parts.append(f"SHA-256 of the data: `{reproduce['sha256']}`")
    return [*parts, _table(["Package", "Version"], reproduce["versions"].items())]
