"""The look of the pictures in the gallery."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl

STYLE = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "font.size": 11,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "savefig.dpi": 110,
}


def reset(gallery_conf: dict[str, Any], name: str) -> None:
    """What sphinx-gallery calls before each example."""
    mpl.rcParams.update(STYLE)
