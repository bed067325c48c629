"""The features that moved a decision most, for the output of ``fairproj predict``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fairproj.data.types import Array
from fairproj.engines.base import TIE

_DIGITS = 4  # of an effect
_ENTRIES = 1 << 22  # contributions held at a time: rows times features


@dataclass(frozen=True)
class Reasons:
    """The features that pushed each row towards its prediction, the strongest first.

    Attributes
    ----------
    model : classifier
    features : list of str
    number : int
        The most reasons of a row. A row has fewer where fewer features pushed it towards its
        prediction: a feature that spoke against a decision is no reason for it.
    positive : int
        The position of the positive label in ``classes_``.
    """

    model: Any
    features: list[str]
    number: int
    positive: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= len(self.features):
            raise ValueError(
                f"--reasons {self.number} must be 1 to {len(self.features)}, the number of "
                "features of the model"
            )

    @property
    def columns(self) -> list[str]:
        ranks = range(1, self.number + 1)
        return [f"{name}_{rank}" for rank in ranks for name in ("reason", "effect")]

    def explain(self, frame: pd.DataFrame, matrix: Any, positive: Any) -> dict[str, pa.Array]:
        """The columns of the output; ``positive`` says which rows are predicted positive."""
        features, effects = self._strongest(matrix, np.where(positive, 1.0, -1.0))
        output = {}
        for rank in range(self.number):
            none = np.isnan(effects[:, rank])
            texts = _texts(frame, self.features, np.where(none, -1, features[:, rank]))
            output[f"reason_{rank + 1}"] = pa.array(texts, pa.string())
            rounded = _round(effects[:, rank])
            output[f"effect_{rank + 1}"] = pa.array(rounded, pa.float64(), mask=none)
        return output

    def _strongest(self, matrix: Any, direction: Array) -> tuple[Any, Array]:
        """The positions of features by rank, and their effects; NaN where there is no reason."""
        features = np.zeros((len(direction), self.number), dtype=np.intp)
        effects = np.full((len(direction), self.number), np.nan)
        step = max(1, _ENTRIES // len(self.features))
        for start in range(0, len(direction), step):
            rows = slice(start, start + step)
            added = self._log_odds(matrix[rows])
            towards = added * direction[rows, None]
            order = np.argsort(-towards, axis=1, kind="stable")[:, : self.number]
            strongest = np.take_along_axis(added, order, axis=1)
            features[rows] = order
            is_reason = np.take_along_axis(towards, order, axis=1) > TIE
            effects[rows] = np.where(is_reason, strongest, np.nan)
        return features, effects

    def _log_odds(self, matrix: Any) -> Array:
        """What each feature adds to the log-odds of the positive label."""
        scale = self.model.link_scale_ * (1.0 if self.positive == 1 else -1.0)
        added: Array = scale * self.model.contributions_matrix(matrix)[:, :-1]
        return added


def _round(effects: Array) -> Array:
    """Effects to four digits; NaN stays NaN."""
    scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(np.abs(effects))))
    rounded: Array = np.round(effects * scale) / scale
    return rounded


def _texts(frame: pd.DataFrame, names: Sequence[str], chosen: Any) -> list[str | None]:
    """Of each row the chosen feature with its value; None where none is chosen."""
    texts: list[str | None] = [None] * len(chosen)
    for position in np.unique(chosen[chosen >= 0]).tolist():
        rows, name = np.flatnonzero(chosen == position), names[position]
        values = frame[name].iloc[rows]
        for row, value, missing in zip(
            rows.tolist(), values.tolist(), values.isna().tolist(), strict=True
        ):
            texts[row] = f"{name} missing" if missing else f"{name} = {_spell(value)}"
    return texts


def _spell(value: Any) -> str:
    """A number without a fraction as a whole number: a CSV file does not say which it is."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
