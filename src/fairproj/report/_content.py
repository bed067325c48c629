"""The type of what a report holds, and its fields.

Everything that a report states is in one dict of plain lists, texts and numbers; None stands for
what is not known. Page, Markdown and model card are rendered from it.

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

import math
from typing import Any

from fairproj.io.text import escape

Content = dict[str, Any]  # of a report or a part of it: plain lists, texts and numbers


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
