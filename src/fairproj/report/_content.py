"""The type of what a report holds, and what its texts and numbers must be."""

from __future__ import annotations

import math
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
