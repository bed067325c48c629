"""Points of score and gap, from frontiers or from the candidates of a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from fairproj.constraints import Statistic, find_statistic
from fairproj.report._content import Content, finite
from fairproj.selection import Frontier
from fairproj.selection.frontier import undominated

METHODS = {"FairBoostClassifier": "FairBoost", "FairProjClassifier": "FairProj, the paper"}


def frontier_content(
    frontiers: Sequence[Frontier],
    gap: str = "equal_opportunity",
    score: str = "accuracy",
    *,
    chosen: tuple[str, float] | None = None,
    note: str = "",
) -> Content:
    """The points of some frontiers, for a report.

    Parameters
    ----------
    frontiers : sequence of Frontier
    gap, score : str
        A gap of `fairproj.constraints.STATISTICS`, and a score of the frontiers.
    chosen : tuple of str and float, optional
        The name of the frontier and the value of the parameter that are in use.
    note : str
        How the points were measured.

    Returns
    -------
    dict
        What `summarize_estimator` and `summarize_predictions` take as ``frontier``.
    """
    statistic = find_statistic(gap, "gap")
    points = [
        point
        for frontier in frontiers
        for point in _frontier_points(frontier, statistic.name, score, chosen)
    ]
    return _content(statistic, score, note, points)


def _frontier_points(
    frontier: Frontier, gap: str, score: str, chosen: tuple[str, float] | None
) -> Iterator[Content]:
    if not pd.api.types.is_numeric_dtype(frontier.frame[frontier.parameter]):
        raise ValueError(
            f"a report draws frontiers along numbers, and the values of {frontier.parameter!r} in "
            f"{frontier.name!r} are not; leave that frontier out"
        )
    best = frontier.pareto(gap, score)
    rows = zip(frontier.frame.to_dict("records"), best, frontier.useful, strict=True)
    for row, is_best, useful in rows:
        value = float(row[frontier.parameter])
        point = {
            "series": frontier.name,
            "parameter": frontier.parameter,
            "value": value,
            "score": row[score],
            "score_se": row[f"{score}_se"],
            "gap": row[gap],
            "gap_se": row[f"{gap}_se"],
            "best": bool(is_best),
            "useful": bool(useful),
            "chosen": chosen is not None and _same(chosen, (frontier.name, value)),
        }
        yield finite(point)


def _same(one: tuple[str, float], other: tuple[str, float]) -> bool:
    return one[0] == other[0] and bool(np.isclose(one[1], other[1]))


def search_content(search: Content) -> Content:
    """The candidates of a search within a gap, for a report.

    Parameters
    ----------
    search : dict
        As ``fairproj train --search`` records it: ``method`` (the name of the estimator's class),
        ``param_name``, ``value`` (the one that was kept), ``metric``, ``scoring``, ``reason``, and
        ``candidates``, each with ``value``, ``score``, ``score_se``, ``gap``, ``gap_se`` and
        ``useful``.

    Returns
    -------
    dict
        What `summarize_estimator` and `summarize_predictions` take as ``frontier``.
    """
    statistic = find_statistic(search["metric"], "metric")
    candidates = search["candidates"]
    gaps, scores = (
        np.array([row[name] if row["useful"] else np.nan for row in candidates], dtype=float)
        for name in ("gap", "score")
    )
    best = undominated(gaps, scores)
    points = [
        {
            "series": METHODS.get(search["method"], search["method"]),
            "parameter": search["param_name"],
            **{
                name: row[name]
                for name in ("value", "score", "score_se", "gap", "gap_se", "useful")
            },
            "best": bool(is_best),
            "chosen": bool(np.isclose(row["value"], search["value"])),
        }
        for row, is_best in zip(candidates, best, strict=True)
    ]
    return _content(
        statistic, search["scoring"], f"Chosen among these: {search['reason']}.", points
    )


def _content(statistic: Statistic, score: str, note: str, points: list[Content]) -> Content:
    return {
        "gap": statistic.name,
        "gap_name": statistic.words,
        "score_name": score.replace("_", " "),
        "note": note,
        "points": points,
    }
