"""A report of what is known of a classifier: as a page, as Markdown, as JSON, as a model card.

`summary` gathers everything into plain lists, texts and numbers; the rest only draws it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from fairproj.io.atomic import write
from fairproj.report._markdown import markdown, model_card
from fairproj.report._page import html
from fairproj.report._summary import (
    Content,
    Source,
    frontier_content,
    frontier_of_choice,
    summary,
)
from fairproj.report._words import certificate as certificate_words

__all__ = [
    "Source",
    "certificate_words",
    "frontier_content",
    "frontier_of_choice",
    "html",
    "markdown",
    "model_card",
    "summary",
    "write_report",
]

_DRAWN = {".html": html, ".htm": html, ".md": markdown}


def write_report(content: Content, path: str | os.PathLike[str]) -> None:
    """A report file of the kind that its name tells: .html, .md or .json."""
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        write(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
    elif suffix in _DRAWN:
        write(path, _DRAWN[suffix](content))
    else:
        raise ValueError(f"{path} has a name of unknown kind; name a .html, .md or .json file")
