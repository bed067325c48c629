"""The type of what a report holds."""

from __future__ import annotations

import math
from typing import Any

Content = dict[str, Any]  # of a report or a part of it: plain lists, texts and numbers


def finite(value: Any) -> Any:
    """The same with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
