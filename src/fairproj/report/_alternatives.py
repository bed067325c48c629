"""The content of a page that documents a search for less discriminatory alternatives."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fairproj.constraints import STATISTICS, find_statistic
from fairproj.inference import FairnessReport
from fairproj.report._content import Content, finite, printable
from fairproj.report._markdown import _escape, _list, _reproduce, _section, _table
from fairproj.report._source import Source
from fairproj.report._training import error_weights
from fairproj.selection import Alternatives
from fairproj.selection.comparison import PLAIN, SCORES, describe

FOUR_FIFTHS = 0.8
FIGURES = {
    "roc_auc": "ROC AUC",
    "ks": "Kolmogorov-Smirnov distance",
    "accuracy": "accuracy",
    "selection_rate": "share predicted positive",
}
_MEASURED = (
    *(
        "score",
        "score_error",
        "roc_auc",
        "ks",
        "accuracy",
        "selection_rate",
        "gap",
        "gap_low",
        "gap_high",
    ),
    *("adverse_impact_ratio", "impact_group", "standardized_mean_difference", "difference_group"),
    "held_out",
)
_SELECTED = (
    "Models are ranked and chosen by these figures, so the figures and intervals of the first ones "
    "flatter them; those of the test rows do not."
)
_JUDGED = ("useful", "within_tolerance", "with_room", "pareto", "chosen")


def alternatives_content(found: Alternatives, source: Source, positive: str) -> Content:
    """The content of the page about a search, as plain lists, texts and numbers.

    Parameters
    ----------
    found : Alternatives
    source : Source
        Where the rows come from; ``which`` says which are the test rows, if they are not random,
        and ``more`` are further rows for the table of what was asked.
    positive : str
        The positive label, as text.

    Returns
    -------
    dict
        What `write_report` takes.
    """
    statistic = find_statistic(found.metric)
    content: Content = {
        "format": "fairproj alternatives",
        "format_version": 1,
        "title": f"Less discriminatory alternatives: {source.data}",
        "created": datetime.date.today().isoformat(),
        "outcome": found.outcome.value,
        "summary": found.summary(),
        "data": source.data,
        "positive_label": positive,
        "errors_weighted": error_weights(found.plain),
        "metric": found.metric,
        "gap_name": statistic.words,
        "scoring": found.scoring,
        "score_name": SCORES[found.scoring],
        "tolerance": found.tolerance,
        "least_score": found.least_score,
        "reference": found.reference,
        "confidence": found.confidence,
        "n_resamples": found.n_resamples,
        "seed": found.random_state,
        "rows": {name: len(rows) for name, rows in found.rows.items()},
        "test_rows": source.which,
        "selected": _SELECTED,
        "candidates": [_candidate(number, row) for number, row in found.ranked.iterrows()],
        "test": _test(found),
        "groups": _records(found.test_groups),
        "gaps": _gaps(found.reports),
        "reproduce": source.reproduce(),
    }
    content["asked"] = _asked(content, source)
    content["protocol"] = protocol(content)
    content["limits"] = limits(content)
    content["frontier"] = _points(content)
    return finite(content)  # type: ignore[no-any-return]


def _candidate(number: Any, row: pd.Series) -> Content:
    """A row of the table of all models; the plain model is number 0."""
    params = {name: _plain(value) for name, value in row["params"].items()}
    return {
        "number": int(number),
        "words": describe(row["params"]),
        "series": _series(row["params"]),
        "params": params,
        **{name: row[name] for name in _MEASURED},
        **{name: bool(row[name]) for name in _JUDGED},
        "rank": None if pd.isna(row["rank"]) else int(row["rank"]),
    }


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | float | None) else repr(value)


def _series(params: Mapping[str, Any]) -> str:
    """What to call models that were bounded alike, in the legend of the picture."""
    return describe(params).partition(" within ")[0].partition(",")[0] if params else PLAIN


def _records(frame: pd.DataFrame) -> list[Content]:
    known = frame.astype(object).where(frame.notna(), None)
    return known.to_dict("records")  # type: ignore[return-value]


def _test(found: Alternatives) -> list[Content]:
    """Figures on the test rows; without a chosen model, those of the plain one alone."""
    names = {**FIGURES, "gap": find_statistic(found.metric).words}
    models = ("plain",) if found.chosen is None else ("plain", "chosen", "difference")
    return [
        {
            "figure": figure,
            "name": name,
            **{one: _ends(found.test.loc[figure], one) for one in models},
        }
        for figure, name in names.items()
    ]


def _ends(row: Any, name: str) -> Content:
    return {"estimate": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}


def _gaps(reports: Mapping[str, FairnessReport]) -> list[Content]:
    """All gaps on the test rows, one row for each gap and a column for each model."""
    by_model: dict[str, Any] = {
        name: report.gaps.set_index("gap") for name, report in reports.items()
    }
    return [
        {
            "gap": gap,
            "name": statistic.words,
            **{
                model: {end: float(gaps.loc[gap, end]) for end in ("estimate", "low", "high")}
                for model, gaps in by_model.items()
            },
        }
        for gap, statistic in STATISTICS.items()
    ]


def _asked(content: Content, source: Source) -> list[list[str]]:
    rows = content["rows"]
    return [
        ["Data", source.data],
        *([name, value] for name, value in source.more.items()),
        ["Positive label", content["positive_label"]],
        *([["Errors weighted", weighted]] if (weighted := content["errors_weighted"]) else []),
        ["Gap that is to be small", content["gap_name"]],
        ["Score that is to be kept", content["score_name"]],
        ["Tolerance", f"at most {content['tolerance']:g} below the plain model"],
        ["Reference group", content["reference"]],
        [
            "Rows",
            f"{rows['training']:,} for training, {rows['selection']:,} for selection, "
            f"{rows['test']:,} for the test",
        ],
        ["Candidates", f"{len(content['candidates']) - 1}"],
        ["Seed", f"{content['seed']}"],
    ]


def _how_split(content: Content) -> str:
    rows = content["rows"]
    split = f"rows were split at random (seed {content['seed']}) into"
    share = "with the same share of each group and label in"
    parts = f"{rows['training']:,} training rows"
    if content["test_rows"]:
        return (
            f"The {rows['test']:,} test rows are {content['test_rows']}. The other "
            f"{rows['training'] + rows['selection']:,} {split} {parts} and "
            f"{rows['selection']:,} selection rows, {share} both."
        )
    return (
        f"The {sum(rows.values()):,} {split} {parts}, "
        f"{rows['selection']:,} selection rows and {rows['test']:,} test rows, {share} all parts."
    )


def protocol(content: Content) -> list[str]:
    """How the search was done, in plain words."""
    score = content["score_name"]
    n_candidates = len(content["candidates"]) - 1
    return [
        _how_split(content),
        f"The plain model, which has no fairness constraint, and {n_candidates} candidates were "
        "trained on the training rows alone. Each candidate is a model of boosted trees with a "
        "limit on a gap between the groups; the table of everything that was tried lists them.",
        _learnt_from(content["candidates"]),
        "Every model was measured on the selection rows. A candidate counts if it is useful (its "
        "predictions beat chance and are not the same for nearly everyone) and if its "
        f"{score} is at most {content['tolerance']:g} below that of the plain model. Some of those "
        "that count leave room: their score is better than it must be by so much that the test "
        "rows confirm it with a chance of about 80 %. Of these the one with the smallest gap was "
        "chosen, or of all that count where none of these has a smaller gap than the plain model; "
        "of equal gaps, the one with the better score.",
        "The chosen model and the plain model were then measured on the test rows, once. The best "
        "of many candidates looks better than it is on the rows that it was chosen by. The test "
        "rows had no part in the choice, so the figures from them do not have this fault.",
        "The intervals of gaps on the selection rows are exact for one model by itself and do not "
        f"allow for the choice among many. {_SELECTED}",
        f"On the test rows, {100 * content['confidence']:g} % intervals of rates, gaps, adverse "
        "impact ratios and accuracies are exact for any number of rows. Those of ROC AUC, the "
        "Kolmogorov-Smirnov distance and the standardized mean difference, and of differences "
        f"between the two models, come from {content['n_resamples']:,} resamples of the test rows "
        f"within each group (paired bootstrap, seed {content['seed']}) and are approximate. Each "
        "interval holds by itself.",
        "With several groups, the gap in a sample is on average larger than the true one, so the "
        "two gaps are not compared directly. The pair of groups with the largest gap of the plain "
        "model was found on the selection rows. The gap of the chosen model counts as smaller only "
        "if, on the test rows, every pair of groups differs less with the chosen model than this "
        "pair does with the plain one, each by more than chance explains. The interval of the "
        "difference between the gaps is made in the same way. Since no gap is below 0, it says at "
        "most that the gap falls by the upper end of that of the plain model, or rises by the "
        "upper end of that of the chosen one.",
        "A less discriminatory alternative counts as found only if, besides, the whole interval of "
        "the difference between the scores is within the tolerance.",
    ]


def _learnt_from(rows: list[Content]) -> str:
    """Whether the plain model, which comes first, and the candidates learnt from as many rows."""
    plain, *others = (row["held_out"] for row in rows)
    shares = sorted(set(others))
    if set(shares) <= {plain}:
        if not plain:
            return "Every model learnt from all training rows."
        return (
            f"Every model, the plain one too, set {100 * plain:g} % of the training rows aside, on "
            "which candidates watched their gaps, and learnt from the others: models with the same "
            "seed from the same rows."
        )
    aside = " or ".join(f"{100 * share:g} %" for share in shares)
    own = f"from all but {100 * plain:g} % of the" if plain else "from all"
    return (
        f"The plain model learnt {own} training rows. Candidates set {aside} of these aside, on "
        "which they watched their gaps. So they did not all learn from as many rows as it did."
    )


def limits(content: Content) -> list[str]:
    """What the search does not tell."""
    return [
        "This page is not legal advice. Whether a model must be replaced, and which loss of "
        f"{content['score_name']} is acceptable, are legal and business decisions.",
        "The search covers boosted trees on the columns that were given, with the settings listed. "
        "Other features, other kinds of models, other labels and other cut-offs were not tried. "
        "That no alternative is found does not show that there is none.",
        "The adverse impact ratio compares how often groups are selected, at the cut-off in use. "
        f"It supposes that {content['positive_label']} is the outcome that people want. It does "
        "not say whether the people selected are the right ones, how errors are spread over the "
        "groups, or what holds at another cut-off. A ratio above 0.8 (four fifths) does not show "
        "that a model is fair, and one below does not show that it is unlawful.",
        "The standardized mean difference is that of the predicted probabilities, divided by the "
        "pooled standard deviation of the two groups compared. Compare it only with figures that "
        "were computed alike.",
        "Labels are taken as the truth. If they were shaped by unequal treatment, no figure here "
        "makes up for that.",
        "Intervals hold if the rows are an independent sample of the people the model will be used "
        "for. Groups that were not compared, and single persons, are not looked at.",
    ]


def _points(content: Content) -> Content:
    """The picture: score and gap of every model on the selection rows."""
    points = [
        {
            **{name: row[name] for name in ("series", "words", "score", "gap", "chosen")},
            "plain": row["number"] == 0,
            "counts": row["rank"] is not None or row["number"] == 0,
            "best": row["pareto"],
            "score_se": None,
            "gap_se": None,
        }
        for row in content["candidates"]
    ]
    return {
        "gap_name": content["gap_name"],
        "score_name": content["score_name"],
        "least_score": content["least_score"],
        "points": points,
    }


def alternatives_markdown(content: Content) -> str:
    """The page as Markdown."""
    content = printable(content)
    share = f"{100 * content['confidence']:g} %"
    parts = [
        f"# {_escape(content['title'])}",
        f"{content['created']}.",
        *_section("Summary", map(_escape, content["summary"])),
        *_section("What was asked", [_table(["", ""], content["asked"])]),
        *_section(f"Test rows, with {share} intervals", [_test_table(content)]),
        *_section(
            "Adverse impact ratio and standardized mean difference by group, test rows",
            [_group_table(content)],
        ),
        *_section("All gaps, test rows", [_gap_table(content)]),
        *_section(
            f"Everything that was tried, selection rows, with exact {share} intervals of the gap",
            [content["selected"], _candidate_table(content)],
        ),
        *_section("How the search was done", [_list(content["protocol"])]),
        *_section("Limits", [_list(content["limits"])]),
        *_section("Reproduce", _reproduce(content["reproduce"])),
    ]
    return "\n\n".join(parts) + "\n"


_MODELS = {"plain": "Plain model", "chosen": "Chosen model", "difference": "Difference"}


def _models_of(rows: list[Content]) -> dict[str, str]:
    return {name: words for name, words in _MODELS.items() if name in rows[0]}


def _test_table(content: Content) -> str:
    models = _models_of(content["test"])
    rows = [[row["name"], *(_interval(row[one]) for one in models)] for row in content["test"]]
    return _table(["Figure", *models.values()], rows)


def _gap_table(content: Content) -> str:
    models = _models_of(content["gaps"])
    rows = [[row["name"], *(_interval(row[one]) for one in models)] for row in content["gaps"]]
    return _table(["Gap", *models.values()], rows)


def _group_table(content: Content) -> str:
    rows = [
        [
            _MODELS[row["model"]],
            row["group"],
            f"{row['rows']:,}",
            *(_interval(_ends_of(row, name)) for name in _BY_GROUP),
        ]
        for row in content["groups"]
    ]
    return _table(["Model", "Group", "Rows", *_BY_GROUP.values()], rows)


_BY_GROUP = {
    "selection_rate": "Selection rate",
    "adverse_impact_ratio": "AIR",
    "standardized_mean_difference": "SMD",
}


def _ends_of(row: Content, name: str) -> Content:
    return {"estimate": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}


def _candidate_table(content: Content) -> str:
    columns = {
        "roc_auc": "ROC AUC",
        "ks": "KS distance",
        "accuracy": "Accuracy",
        "gap": "Gap",
        "adverse_impact_ratio": "AIR, worst group",
        "standardized_mean_difference": "SMD, worst group",
    }
    rows = [
        [
            "" if row["rank"] is None else row["rank"],
            row["words"],
            *(
                _interval(_ends_of(row, name)) if name == "gap" else _number(row[name])
                for name in columns
            ),
            "yes" if row["pareto"] else "no",
            standing(row),
        ]
        for row in content["candidates"]
    ]
    return _table(["Rank", "Model", *columns.values(), "Pareto optimal", "Standing"], rows)


def standing(row: Content) -> str:
    """What became of a model, in a few words."""
    if row["number"] == 0:
        return PLAIN
    if row["chosen"]:
        return "chosen"
    if not row["useful"]:
        return "not useful"
    if not row["within_tolerance"]:
        return "score too low"
    return "within tolerance" if row["with_room"] else "within tolerance, without room"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:z.3f}"


def _interval(row: Content) -> str:
    if row["estimate"] is None:
        return "unknown"
    low, high = ("unlimited" if end is None else f"{end:z.3f}" for end in (row["low"], row["high"]))
    return f"{row['estimate']:z.3f} ({low} to {high})"
