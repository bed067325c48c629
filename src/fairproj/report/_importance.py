"""Which features move the score, overall and in each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from fairproj.data.types import Array, Codes
from fairproj.report._content import Content
from fairproj.report._sample import GroupSample

MOST_APART = 3  # features in the sentence
MOST_EXPLAINED = 500  # rows; explaining one takes about as long as predicting a hundred


def can_explain(model: Any) -> bool:
    """Whether a model has contributions: those with built-in trees do."""
    return hasattr(getattr(model, "_ensemble", None), "contributions")


def importance_of_rows(
    model: Any, X: Any, codes: Codes, names: Sequence[str], sizes: Sequence[int]
) -> Content:
    """The importances from a sample of the rows of each group."""
    sample = GroupSample(len(names), MOST_EXPLAINED)
    sample.add(codes, np.arange(len(codes)))
    matrices = {
        code: model.to_matrix(_safe_indexing(X, rows)) for code, rows in sample.by_group().items()
    }
    return importance_content(model, matrices, names, sizes)


def importance_content(
    model: Any,
    matrices: Mapping[int, NDArray[Any]],
    names: Sequence[str],
    sizes: Sequence[int],
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
    """
    parts = {code: model.contributions_matrix(matrix)[:, :-1] for code, matrix in matrices.items()}
    absolute = np.array([np.abs(part).mean(axis=0) for part in parts.values()])
    signed = np.array([part.mean(axis=0) for part in parts.values()])
    weights = np.array([sizes[code] for code in parts], dtype=float)
    overall: Array = weights @ absolute / weights.sum()
    order = np.argsort(-overall, kind="stable")
    features = _feature_names(model, len(overall))
    groups = [names[code] for code in parts]
    return {
        "sentence": _apart(features, signed, groups, str(model.classes_[1])),
        "sampled": [
            {"group": names[code], "rows": len(part), "of": int(sizes[code])}
            for code, part in parts.items()
        ],
        "towards": str(model.classes_[1]),
        "features": [
            {
                "name": features[at],
                "overall": float(overall[at]),
                "groups": absolute[:, at].tolist(),
                "means": signed[:, at].tolist(),
            }
            for at in order.tolist()
        ],
    }


def _apart(features: Sequence[str], means: Array, groups: Sequence[str], towards: str) -> str:
    """Which features move the mean scores of two groups apart most."""
    spread = np.ptp(means, axis=0)
    order = [at for at in np.argsort(-spread, kind="stable").tolist()[:MOST_APART] if spread[at]]
    if not order:
        return "No feature moves the mean scores of the groups apart."
    most, least = means.argmax(axis=0).tolist(), means.argmin(axis=0).tolist()
    told = [
        f"{features[at]} (by {spread[at]:.2f}: most for {groups[most[at]]}, least for "
        f"{groups[least[at]]})"
        for at in order
    ]
    return f"Towards {towards}, these move the mean scores of groups apart most: {', '.join(told)}."


def _feature_names(model: Any, n_features: int) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    return [f"feature {at}" for at in range(n_features)] if names is None else list(map(str, names))
