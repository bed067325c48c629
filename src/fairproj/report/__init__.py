"""Reports about a classifier: as a page, as Markdown, as JSON and as a model card.

`summarize_estimator` and `summarize_predictions` collect what a report states in one dict of plain
lists, texts and numbers, where None stands for what is not known. Page, Markdown and model card
are rendered from it. Its fields:

``title``, ``created``
    The model's name, and the date of the report.
``subject``
    What decides what about whom: pairs of a name and a text.
``features``
    ``count``, ``names``, ``left_out`` and ``sensitive`` (sensitive columns among the features).
``target``, ``verdict``, ``summary``
    The gap looked at (``metric``, ``name``, ``max_gap``); one of ``met``, ``not met``,
    ``undecided``, ``not useful`` and ``no target``; and sentences.
``targets``
    The same of all gaps that are judged; the first is ``target``.
``constant``, ``chance``
    Whether nearly all rows get the same prediction; and, where predictions do not tell the labels
    apart, ``true_positive_rate``, ``false_positive_rate`` and ``reversed``.
``price``
    The comparison with the unconstrained model: ``title``, ``about`` (what it is), ``sentence``,
    ``scores`` (``name``, ``model``, ``plain``, ``difference``), ``points``, and ``interval``
    (``estimate``, ``low``, ``high`` of the difference of the accuracies, ``only_model``,
    ``only_plain``, ``rows``).
``data``, ``scores``, ``rates``, ``gaps``, ``confidence``
    Groups with their rows; single numbers; and the tables of `FairnessReport`.
``selection_ratio``
    The smallest selection rate divided by the largest: ``estimate``, ``low``, ``high``,
    ``highest``, ``lowest``, ``wanted`` (0.8, the four-fifths rule) and a ``sentence``.
``threshold``
    The probability above which the model decides for the positive label.
``thresholds``
    ``in_use``; ``threshold``, ``gap``, ``accuracy`` and ``selection_rate``, one number each for
    every threshold; ``groups`` with their ``size`` and the rows ``predicted`` positive at every
    threshold, by label (negative first); and ``rates``, whose ``hits`` and ``rows`` are the
    coefficients of the four counts of a group.
``calibration``
    A ``note``, which is empty unless errors were weighted by label. For all rows
    (``overall``) and for ``groups``: ``error`` and ``bins`` of equal numbers of rows,
    with ``probability``, ``observed``, ``low``, ``high``, ``rows``, ``positives``.
``distribution``
    ``edges`` of bins of the probability, and the rows of each of the ``groups`` in them, by label.
``importance``
    ``features`` with the mean absolute contribution to the score, ``overall`` and by group
    (``groups``), and its mean with its sign (``means``), above 0 ``towards`` the positive label;
    the standard errors of each (``overall_se``, ``groups_se``, ``means_se``); ``sampled`` rows of
    each group; and a ``sentence`` about the features that move groups apart by more than chance
    explains.
``proxies``
    What the checks before training found: a ``sentence``, and ``findings`` with ``kind``,
    ``name``, ``column``, ``measure`` (``shown`` as text) and ``words``.
``frontier``, ``dynamics``, ``certificate``, ``asked``
    Other settings; the run by round; what is proved of it; and what was asked of it.
``not_looked_at``, ``caveats``
    Sentences.
``reproduce``
    ``command``, ``claimed`` (the command that the model file says it was made by, not checked),
    ``sha256`` and ``versions``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from fairproj.io.atomic import write_text
from fairproj.report._alternatives import alternatives_content, alternatives_markdown
from fairproj.report._content import Content
from fairproj.report._frontier import frontier_content, search_content
from fairproj.report._markdown import markdown, model_card
from fairproj.report._page import html
from fairproj.report._source import Source
from fairproj.report._summary import summarize_estimator, summarize_predictions

__all__ = [
    "Source",
    "alternatives_content",
    "frontier_content",
    "model_card",
    "search_content",
    "summarize_estimator",
    "summarize_predictions",
    "write_report",
]

_MARKDOWN = {"fairproj report": markdown, "fairproj alternatives": alternatives_markdown}


def write_report(content: Content, path: str | os.PathLike[str]) -> None:
    """Write a report file of the kind that its name ends in: .html, .md or .json.

    Parameters
    ----------
    content : dict
        From `summarize_estimator`, `summarize_predictions` or `alternatives_content`.
    path : str or path-like
        A page (.html or .htm, which needs the extra ``report``), Markdown (.md) or JSON (.json).
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
    elif suffix in (".html", ".htm"):
        write_text(path, html(content))
    elif suffix == ".md":
        write_text(path, _MARKDOWN[content["format"]](content))
    else:
        raise ValueError(f"{path} has a name of unknown kind; name a .html, .md or .json file")
