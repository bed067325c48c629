"""Tables and samples: validation, encoding, cells, and sums over rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["CellCounts", "cut_ranges", "propose_cuts", "range_names"]

# Imported on first use: the command line starts with a module of this package, without NumPy.
if TYPE_CHECKING:
    from fairproj.data.cells import CellCounts
    from fairproj.data.ranges import cut_ranges, propose_cuts, range_names
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = "cells" if name == "CellCounts" else "ranges"
        return getattr(import_module(f"{__name__}.{module}"), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
