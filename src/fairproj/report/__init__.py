"""Reports about a classifier: as a page, as Markdown, as JSON and as a model card.

`summarize_estimator` and `summarize_predictions` collect the content as plain lists, texts and
numbers; everything else renders it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from fairproj.io.atomic import write_text
from fairproj.report._alternatives import alternatives_content, alternatives_markdown
from fairproj.report._content import Content
from fairproj.report._frontier import METHODS, frontier_content, search_content
from fairproj.report._importance import MOST_EXPLAINED, can_explain, importance_content
from fairproj.report._markdown import markdown, model_card
from fairproj.report._page import html
from fairproj.report._price import Comparison, price_content
from fairproj.report._sample import GroupSample, RowSample
from fairproj.report._scores import ScoreCounts, ScoredRows
from fairproj.report._source import Source
from fairproj.report._summary import (
    Evidence,
    add_estimator,
    decision_threshold,
    sampled_words,
    summarize_counts,
    summarize_estimator,
    summarize_predictions,
)
from fairproj.report._words import (
    certificate_words,
    how_intervals_hold,
    interval_name,
    not_shown,
)

__all__ = [
    "METHODS",
    "MOST_EXPLAINED",
    "Comparison",
    "Evidence",
    "GroupSample",
    "RowSample",
    "ScoreCounts",
    "ScoredRows",
    "Source",
    "add_estimator",
    "alternatives_content",
    "can_explain",
    "certificate_words",
    "decision_threshold",
    "frontier_content",
    "how_intervals_hold",
    "html",
    "importance_content",
    "interval_name",
    "markdown",
    "model_card",
    "not_shown",
    "price_content",
    "sampled_words",
    "search_content",
    "summarize_counts",
    "summarize_estimator",
    "summarize_predictions",
    "write_report",
]

_MARKDOWN = {"fairproj report": markdown, "fairproj alternatives": alternatives_markdown}


def write_report(content: Content, path: str | os.PathLike[str]) -> None:
    """Write a report file of the kind that its name ends in: .html, .md or .json."""
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
    elif suffix in (".html", ".htm"):
        write_text(path, html(content))
    elif suffix == ".md":
        write_text(path, _MARKDOWN[content["format"]](content))
    else:
        raise ValueError(f"{path} has a name of unknown kind; name a .html, .md or .json file")
