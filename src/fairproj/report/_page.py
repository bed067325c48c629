"""The report as one HTML file; jinja2 is imported only when a page is rendered."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from fairproj.report import _charts
from fairproj.report._content import (
    Content,
    extreme_rows,
    finite,
    printable,
    with_gaps_first,
)
from fairproj.report._words import not_shown

_TEMPLATES = {"fairproj report": "page.html", "fairproj alternatives": "alternatives.html"}
_VERDICTS = {
    "met": "Target met",
    "not met": "Target not met",
    "undecided": "Undecided",
    "not useful": "Model not useful",
    "no target": "No target",
}


def html(content: Content) -> str:
    """A page that needs no other file."""
    content = printable(finite(content))
    if content["format"] == "fairproj report":
        content = with_gaps_first(content, _charts.MOST_PLOTS)
    template = _environment().get_template(_TEMPLATES[content["format"]])
    page: str = template.render(content=content).lstrip()
    return page.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be saved


def _environment() -> Any:
    try:
        import jinja2
    except ImportError:
        raise ImportError(
            "the report page needs jinja2; install it with pip install 'fairproj[report]'"
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_with_fixed_spaces,
    )
    # jinja2's own filter then leaves nothing in the text that could end a script element.
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters |= _filters()
    environment.globals |= {"charts": _charts, "verdicts": _VERDICTS, "by_rate": _by_rate}
    environment.globals |= {"not_shown": not_shown, "extreme_rows": extreme_rows}
    environment.globals |= {"css": _text("page.css"), "js": _text("page.js")}
    return environment


def _with_fixed_spaces(value: Any) -> Any:
    """A text in which no line can break between a number and its sign.

    What is markup already, such as the output of a macro or the data for scripts, stays as it is.
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", value)


def _text(name: str) -> str:
    return files("fairproj.report").joinpath(name).read_text("utf-8")


def _filters() -> dict[str, Callable[..., str]]:
    return {
        "number": _number,
        "cut": _cut,
        "signed": _signed,
        "short": "{:g}".format,
        "error": _error,
        "with_se": _with_se,
        "with_interval": _with_interval,
    }


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:z.3f}"


def _cut(value: float) -> str:
    """A threshold; one between two thousandths with more digits."""
    text = f"{value:.5f}".rstrip("0")
    return text if len(text) > 5 else f"{value:z.3f}"


def _signed(value: float | None) -> str:
    """With a sign, unless it is printed as zero."""
    if value is None:
        return "unknown"
    text = f"{value:+.3f}".replace("-", "\N{MINUS SIGN}")
    return text if text.strip("+\N{MINUS SIGN}0.") else "0.000"


def _with_se(point: Content, name: str) -> str:
    return _number(point[name]) + _error(point[f"{name}_se"])


def _error(value: float | None) -> str:
    """A standard error after a value; nothing where it is not known."""
    return "" if value is None else f" ± {value:z.3f}"


def _with_interval(row: Content, name: str = "") -> str:
    """A value and its interval, which ``name`` may begin the names of."""
    keys = (f"{name}_low", f"{name}_high") if name else ("low", "high")
    value = row[name or "estimate"]
    if value is None:
        return "unknown"
    low, high = ("unlimited" if row[end] is None else _number(row[end]) for end in keys)
    return f"{_number(value)} ({low} to {high})".replace("-", "\N{MINUS SIGN}")


def _by_rate(rates: list[Content]) -> dict[str, list[Content]]:
    """The rows of each rate, by its name."""
    by_rate: dict[str, list[Content]] = {}
    for row in rates:
        by_rate.setdefault(row["name"], []).append(row)
    return by_rate
