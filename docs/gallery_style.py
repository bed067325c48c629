"""The look of the pictures in the gallery, and a check of them."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from sphinx_gallery.scrapers import matplotlib_scraper

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


def scrape(block: tuple[Any, ...], names: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the pictures of a block, in which no axes may be empty."""
    for number in plt.get_fignums():
        if not all(axes.has_data() for axes in plt.figure(number).axes):
            raise ValueError(f"{names['src_file']} leaves axes of a picture empty; plot data there")
    return matplotlib_scraper(block, names, gallery_conf)
