"""What probabilities tell: gap and rates by threshold, calibration and distribution by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.constraints import RATES, Rate, Statistic, find_statistic
from fairproj.data.cells import CellCounts
from fairproj.data.types import Array, Codes
from fairproj.inference import exact_interval
from fairproj.metrics.calibration import CalibrationBins
from fairproj.report._content import Content, finite

N_FINE = 1000
CUTS = np.arange(1, N_FINE) / N_FINE  # the thresholds
N_COARSE = 20  # bins of the distributions


@dataclass(frozen=True)
class ScoredRows:
    """Rows of both labels, and the probability of the positive one for each.

    Attributes
    ----------
    actual : array of bool
        Whether a row's label is positive.
    probability : array
    groups : array of int
        Each row's group, as its position in the report.
    sampled_from : int
        The number of all rows, where these are a sample of them; else 0.
    """

    actual: NDArray[np.bool_]
    probability: Array
    groups: Codes
    sampled_from: int = 0


class ScoreCounts:
    """The number of rows by group, label and probability, in bins of a thousandth.

    Bin k holds k / 1000 < p <= (k + 1) / 1000, and the first one 0 as well. So the rows above each
    threshold that is a multiple of a thousandth are known exactly, for any number of rows.
    """

    def __init__(self, n_groups: int) -> None:
        self.counts = np.zeros((n_groups, 2, N_FINE), dtype=np.int64)

    def add(self, codes: Codes, actual: NDArray[np.bool_], probability: Array) -> None:
        place = (2 * codes.astype(np.intp) + actual) * N_FINE + np.searchsorted(CUTS, probability)
        self.counts += np.bincount(place, minlength=self.counts.size).reshape(self.counts.shape)

    def take(self, groups: NDArray[np.intp]) -> ScoreCounts:
        """Those of some groups."""
        taken = ScoreCounts(len(groups))
        taken.counts = self.counts[groups]
        return taken

    def predicted(self) -> NDArray[np.int64]:
        """The rows above each threshold, of shape (n_groups, 2, n_thresholds)."""
        return np.cumsum(self.counts[:, :, ::-1], axis=2)[:, :, ::-1][:, :, 1:]


def threshold_content(
    scores: ScoreCounts,
    decided: CellCounts,
    names: Sequence[str],
    target: Content,
    in_use: float | None,
) -> Content:
    """Counts by group, and gap, accuracy and selection rate, for every threshold.

    Where a threshold is in use, its numbers are those of the model's decisions.
    """
    cuts, predicted = CUTS, scores.predicted()
    if in_use is not None:
        cuts, predicted = _with_decisions(cuts, predicted, decided, in_use)
    size = scores.counts.sum(axis=2)
    by_group = [_at_all(size[g], predicted[g]) for g in range(len(names))]
    everyone = _at_all(size.sum(axis=0), predicted.sum(axis=0))
    content = {
        "in_use": in_use,
        "threshold": np.round(cuts, 6).tolist(),
        "gap": _gaps(find_statistic(target["metric"]), by_group),
        "accuracy": _rounded(RATES["accuracy"].values(everyone)),
        "selection_rate": _rounded(RATES["selection_rate"].values(everyone)),
        "groups": [
            {"group": name, "size": size[g].tolist(), "predicted": predicted[g].tolist()}
            for g, name in enumerate(names)
        ],
        "rates": [{"name": rate.words, **_coefficients(rate)} for rate in RATES.values()],
    }
    return finite(content)  # type: ignore[no-any-return]


def _with_decisions(
    cuts: Array, predicted: NDArray[np.int64], decided: CellCounts, in_use: float
) -> tuple[Array, NDArray[np.int64]]:
    """Insert the threshold in use, or replace it where it is one of the others."""
    at = int(np.searchsorted(cuts, in_use))
    after = at + int(at < len(cuts) and bool(np.isclose(cuts[at], in_use, atol=1e-9, rtol=0)))
    column = decided.predicted.astype(np.int64)[:, :, None]
    joined = [predicted[:, :, :at], column, predicted[:, :, after:]]
    return np.concatenate([cuts[:at], [in_use], cuts[after:]]), np.concatenate(joined, axis=2)


def _at_all(size: NDArray[np.int64], predicted: NDArray[np.int64]) -> CellCounts:
    """The counts of one group, a row for each threshold."""
    n_cuts = predicted.shape[-1]
    return CellCounts(np.tile(size.astype(float), (n_cuts, 1)), predicted.T.astype(float))


def _gaps(statistic: Statistic, by_group: Sequence[CellCounts]) -> list[float]:
    """The gap between the groups that have rows for it; NaN where fewer than two have."""
    gaps = []
    for each in statistic.requirements:
        rates = np.array([each.rate.values(counts) for counts in by_group])
        known = ~np.isnan(rates).all(axis=1)
        gaps.append(each.gap(rates[known]) if known.sum() > 1 else np.full(rates.shape[1], np.nan))
    return _rounded(np.max(gaps, axis=0))


def _rounded(values: Array) -> list[float]:
    rounded: list[float] = np.round(values, 6).tolist()
    return rounded


def _coefficients(rate: Rate) -> Content:
    """A rate's counts as sums of a group's four: rows by label, and those predicted positive."""
    units = np.eye(4)
    hits, rows = rate.counts(CellCounts(units[:, :2], units[:, 2:]))
    return {"hits": hits.tolist(), "rows": rows.tolist()}


def distribution_content(scores: ScoreCounts, names: Sequence[str]) -> Content:
    """The rows of each group and label in bins of the probability."""
    coarse = scores.counts.reshape(len(names), 2, N_COARSE, -1).sum(axis=3)
    return {
        "edges": np.round(np.linspace(0, 1, N_COARSE + 1), 6).tolist(),
        "groups": [
            {"group": name, "negatives": counted[0].tolist(), "positives": counted[1].tolist()}
            for name, counted in zip(names, coarse, strict=True)
        ],
    }


def calibration_content(rows: ScoredRows, names: Sequence[str], confidence: float) -> Content:
    """The observed share of positives against the probability, overall and by group."""
    groups = [_calibration(rows, rows.groups == g, confidence) for g in range(len(names))]
    return {
        "note": "",
        "rows": len(rows.actual),
        "sampled_from": rows.sampled_from,
        "overall": _calibration(rows, np.ones(len(rows.actual), dtype=bool), confidence),
        "groups": [{"group": name, **group} for name, group in zip(names, groups, strict=True)],
    }


def _calibration(rows: ScoredRows, part: NDArray[np.bool_], confidence: float) -> Content:
    if not part.any():
        return {"rows": 0, "error": None, "bins": []}
    found = CalibrationBins.of_rows(rows.actual[part], rows.probability[part])
    positives, counted = np.rint(found.positives), np.rint(found.weight)
    low, high = exact_interval(positives, counted, confidence)
    columns: dict[str, Any] = {
        "probability": found.probability,
        "observed": positives / counted,
        "low": low,
        "high": high,
        "rows": counted.astype(int),
        "positives": positives.astype(int),
    }
    lists = (column.tolist() for column in columns.values())
    bins = [dict(zip(columns, one, strict=True)) for one in zip(*lists, strict=True)]
    return {"rows": int(part.sum()), "error": found.error, "bins": bins}
