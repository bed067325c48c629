"""Which features move the score, overall and in each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.utils import _safe_indexing

from fairproj.data.checks import counted
from fairproj.data.types import Array, Codes
from fairproj.report._content import Content, finite
from fairproj.report._sample import GroupSample

LEVEL = 0.05  # of the tests of differences between groups
ROUNDING = 1e-9  # of a difference between means
MOST_APART = 3  # features in the sentence
MOST_EXPLAINED = 500  # rows; explaining one takes about as long as predicting a hundred


def can_explain(model: Any) -> bool:
    """Whether a model has contributions: those with built-in trees do."""
    return hasattr(getattr(model, "_ensemble", None), "contributions")


def importance_of_rows(
    model: Any, X: Any, codes: Codes, names: Sequence[str], sizes: Sequence[int], positive: Any
) -> Content:
    """The importances from a sample of the rows of each group."""
    sample = GroupSample(len(names), MOST_EXPLAINED)
    sample.add(codes, np.arange(len(codes)))
    matrices = {
        code: model.to_matrix(_safe_indexing(X, rows)) for code, rows in sample.by_group().items()
    }
    return importance_content(model, matrices, names, sizes, positive)


def importance_content(
    model: Any,
    matrices: Mapping[int, NDArray[Any]],
    names: Sequence[str],
    sizes: Sequence[int],
    positive: Any,
) -> Content:
    """The mean absolute contribution of each feature to the score, the largest first.

    Parameters
    ----------
    model : classifier
        With ``contributions_matrix``.
    matrices : mapping of int to array
        Encoded rows of each group.
    names, sizes : sequence
        Of the groups; a group counts in the overall mean by its size.
    positive : label
        The label whose score is explained: contributions above 0 are towards it.
    """
    sign = 1.0 if positive == model.classes_[1] else -1.0
    parts = {
        code: sign * model.contributions_matrix(matrix)[:, :-1] for code, matrix in matrices.items()
    }
    absolute = _Means.of([np.abs(part) for part in parts.values()])
    signed = _Means.of(list(parts.values()))
    weights = np.array([sizes[code] for code in parts], dtype=float)
    weights /= weights.sum()
    overall: Array = weights @ absolute.mean
    overall_se: Array = np.sqrt(weights**2 @ absolute.se**2)
    order = np.argsort(-overall, kind="stable")
    features = _feature_names(model, len(overall))
    groups = [names[code] for code in parts]
    content = {
        "sentence": _apart(features, signed, groups, str(positive)),
        "sampled": [
            {"group": names[code], "rows": len(part), "of": int(sizes[code])}
            for code, part in parts.items()
        ],
        "towards": str(positive),
        "features": [
            {
                "name": features[at],
                "overall": float(overall[at]),
                "overall_se": float(overall_se[at]),
                "groups": absolute.mean[:, at].tolist(),
                "groups_se": absolute.se[:, at].tolist(),
                "means": signed.mean[:, at].tolist(),
                "means_se": signed.se[:, at].tolist(),
            }
            for at in order.tolist()
        ],
    }
    return finite(content)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Means:
    """Means by group and feature, their standard errors, and the rows of each group.

    The standard error of a single row is not known: NaN.
    """

    mean: Array
    se: Array
    rows: NDArray[np.int_]

    @classmethod
    def of(cls, parts: Sequence[Array]) -> _Means:
        rows = np.array([len(part) for part in parts])
        deviation = [
            part.std(axis=0, ddof=1) if len(part) > 1 else np.full(part.shape[1], np.nan)
            for part in parts
        ]
        mean = np.array([part.mean(axis=0) for part in parts])
        return cls(mean, np.array(deviation) / np.sqrt(rows)[:, None], rows)


@dataclass(frozen=True)
class _Difference:
    """By how much a feature moves the mean scores of two groups apart."""

    feature: int
    size: float
    se: float
    high: int
    low: int


def _differences(means: _Means) -> list[_Difference]:
    """Of each feature the largest difference that chance does not explain, largest first.

    A difference between two groups counts if it exceeds the standard error of the difference times
    a quantile of Student's t distribution: two-sided, at the level `LEVEL` divided by the number of
    comparisons (Bonferroni). The degrees of freedom are those of the smaller sample.
    """
    n_groups, n_features = means.mean.shape
    n_compared = n_features * (n_groups * (n_groups - 1) // 2)
    freedoms = np.unique(means.rows) - 1
    factors = special.stdtrit(np.maximum(freedoms, 1), 1 - LEVEL / (2 * max(n_compared, 1)))
    factors[freedoms < 1] = np.inf  # the standard error is not known
    found: dict[int, _Difference] = {}
    for a in range(n_groups - 1):
        fewer = np.minimum(means.rows[a], means.rows[a + 1 :])
        factor = factors[np.searchsorted(freedoms, fewer - 1)][:, None]
        difference = means.mean[a] - means.mean[a + 1 :]
        se = np.hypot(means.se[a], means.se[a + 1 :])
        with np.errstate(invalid="ignore"):  # 0 times infinity
            beyond = np.abs(difference) > factor * se + ROUNDING
        sizes = np.where(beyond, np.abs(difference), -np.inf)
        widest = sizes.argmax(axis=0)
        for at in np.flatnonzero(beyond.any(axis=0)).tolist():
            row = int(widest[at])
            size, b = float(sizes[row, at]), a + 1 + row
            if at not in found or size > found[at].size:
                high, low = (a, b) if difference[row, at] > 0 else (b, a)
                found[at] = _Difference(at, size, float(se[row, at]), high, low)
    return sorted(found.values(), key=lambda one: -one.size)


def _apart(features: Sequence[str], means: _Means, groups: Sequence[str], towards: str) -> str:
    """Which features move the mean scores of groups apart by more than chance explains."""
    n_groups, n_features = means.mean.shape
    n_compared = n_features * (n_groups * (n_groups - 1) // 2)
    if not n_compared:
        return "There is only one group, so no groups are compared here."
    compared = counted(n_compared, "comparison")
    test = f"two-sided tests at {100 * LEVEL:g} %, Bonferroni-corrected for {compared}"
    found = _differences(means)
    if not found:
        return (
            "No feature moves the mean scores of the groups apart by more than chance explains in "
            f"the rows sampled ({test})."
        )
    told = [
        f"{features[one.feature]} by {one.size:.2g} (standard error {one.se:.1g}; highest for "
        f"{groups[one.high]}, lowest for {groups[one.low]})"
        for one in found[:MOST_APART]
    ]
    return (
        f"In the score for '{towards}', these features move the mean scores of groups apart by "
        f"more than chance explains in the rows sampled: {', '.join(told)}. This rests on {test}."
    )


def _feature_names(model: Any, n_features: int) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    return [f"feature {at}" for at in range(n_features)] if names is None else list(map(str, names))
