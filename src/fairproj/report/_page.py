"""The report as one HTML file. Apart so that jinja2 is imported only where a page is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from fairproj.report import _charts

_VERDICTS = {
    "met": "Target met",
    "not met": "Target not met",
    "undecided": "Undecided",
    "no target": "No target",
}


def html(content: dict[str, Any]) -> str:
    """A page that needs no other file, from what `fairproj.report._summary` found."""
    content = _finite(content)
    page: str = _environment().from_string(_text("page.html")).render(content=content).lstrip()
    return page.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be saved


def _environment() -> Any:
    try:
        import jinja2
    except ImportError:
        raise ImportError(
            "the report page needs jinja2; install it with pip install 'fairproj[report]'"
        ) from None
    found = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # jinja2's own filter then leaves nothing in the text that could end a script element.
    found.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    found.filters |= _filters()
    found.globals |= {"charts": _charts, "verdicts": _VERDICTS, "by_rate": _by_rate}
    found.globals |= {"css": _text("page.css"), "js": _text("page.js")}
    return found


def _text(name: str) -> str:
    return files("fairproj.report").joinpath(name).read_text("utf-8")


def _filters() -> dict[str, Callable[..., str]]:
    return {"number": _number, "short": "{:g}".format, "with_se": _with_se}


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _with_se(point: dict[str, Any], name: str) -> str:
    error = point[f"{name}_se"]
    return _number(point[name]) + ("" if error is None else f" ± {error:.3f}")


def _by_rate(rates: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each rate, by its name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rates:
        found.setdefault(row["name"], []).append(row)
    return found


def _finite(value: Any) -> Any:
    """The same with None for numbers that are none, as JSON asks."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
