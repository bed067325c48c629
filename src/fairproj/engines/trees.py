"""The built-in trees: LightGBM grows them, one native update a round on data binned once.

For labels +-1 and weights w, the split of least weighted Gini impurity is LightGBM's split for
gradient -w y and hessian w without regularisation: the gain of a side is (sum w y)^2 / sum w, and a
leaf's value is sum w y / sum w, in [-1, 1]. Its sign is the discrete vote. The finished ensemble is
one LightGBM model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fairproj._rows import RowPasses
from fairproj._validation import Array
from fairproj.engines import native

Matrix = Any  # dense array or scipy CSR matrix of numbers, NaN allowed
Votes = Literal["discrete", "confidence"]

ROWS_PER_THREAD = 10_000  # with fewer, threads wait for each other longer than they work
_NO_SIGN = 1e-10  # a leaf value this close to zero is rounding; a tie goes to class -1
SAMPLED_ROWS = 200_000  # LightGBM's default for finding bins
_MANY_BINS = 1 << 20
_MOST_LEAVES = 1 << 17  # LightGBM's own limit


@dataclass(frozen=True)
class TreeLearner:
    """A tree of the booster in training by its number there, or a constant (None)."""

    tree: int | None
    constant: float = 0.0


class TreeEngine:
    """Grows trees on weights that change every round.

    Parameters
    ----------
    matrix : array or CSR matrix of shape (n_rows, n_features)
    y : array of -1 and +1
    categories : mapping of int to list
        Columns that hold category codes, and the categories these stand for.
    max_depth, max_leaf_nodes : int or None
        Stumps where both are None.
    min_weight_fraction_leaf : float
        Least share of w in a leaf.
    votes : {"discrete", "confidence"}
        Whether a leaf says the sign of its value or the value itself.
    max_bins : int
    n_threads : int
    before : TreeEnsemble, optional
        A model to go on from.
    held_out : array or CSR matrix, optional
        Rows without weight, of which each learner is asked all the same.
    """

    def __init__(
        self,
        matrix: Matrix,
        y: Array,
        *,
        categories: Mapping[int, Sequence[Any]] | None = None,
        feature_names: Sequence[str] | None = None,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_weight_fraction_leaf: float = 0.0,
        votes: Votes = "discrete",
        max_bins: int = 255,
        n_threads: int = 1,
        before: TreeEnsemble | None = None,
        held_out: Matrix | None = None,
    ) -> None:
        self._y = y
        self._votes = votes
        self._before = before
        self._categories = [list(c) for _, c in sorted((categories or {}).items())]
        n_rows = len(y)
        self._params = {
            **_size(max_depth, max_leaf_nodes, n_rows),
            **_EXACT,
            "min_sum_hessian_in_leaf": max(1e-6, min_weight_fraction_leaf * n_rows),
            "max_bin": max_bins,
            "num_threads": max(1, min(n_threads, n_rows // ROWS_PER_THREAD)),
        }
        self._dataset = _binned(
            matrix, self._params, sorted(categories or {}), feature_names, held_out
        )
        self._passes = RowPasses(n_rows)
        n_asked = n_rows + (0 if held_out is None else held_out.shape[0])
        self._passes_of_all = RowPasses(n_asked)
        self._minus_y = (-y).astype(np.float32)
        # Rows held out, and a last row that may stand there for LightGBM's sake, weigh nothing.
        self._gradient, self._hessian = np.zeros((2, self._dataset.num_data()), dtype=np.float32)
        self._h_of_all = say(np.zeros(n_asked), votes)
        self._h = self._h_of_all[:n_rows]
        self.held_out_h = self._h_of_all[n_rows:]
        self.reset()

    def reset(self) -> None:
        """Start a new run on the data binned already."""
        data = self._dataset
        n_features = data.num_feature()
        self._splits = any(data.feature_num_bin(column) > 1 for column in range(n_features))
        if not self._splits:  # LightGBM refuses such data; any other will do to hold constants
            data = lgb.Dataset(np.arange(2.0 * n_features).reshape(2, -1), params=self._params)
        self._booster = lgb.Booster(self._params, data)
        self._score = np.zeros(len(self._h_of_all))

    def fit(self, w: Array) -> tuple[TreeLearner, NDArray[Any]]:
        if not self._splits:
            return self.constant(float(w @ self._y))

        # Weights of mean one: LightGBM's own thresholds are made for that scale.
        def part(rows: slice, _: Array) -> None:
            np.multiply(w[rows], len(w), out=self._hessian[rows], casting="same_kind")
            np.multiply(self._hessian[rows], self._minus_y[rows], out=self._gradient[rows])

        self._passes(part)
        if self._booster.update(fobj=lambda score, data: (self._gradient, self._hessian)):
            return self.constant(float(w @ self._y))
        self._booster.eval_train(self._read_score)
        return TreeLearner(self._booster.num_trees() - 1), self._h

    def _read_score(self, score: Array, data: lgb.Dataset) -> tuple[str, float, bool]:
        """The training score is the sum of the trees' values so far; the newest is what it grew by.

        This is LightGBM's public way to the score in double precision; the metric is not used.
        """

        def part(rows: slice, scratch: Array) -> None:
            value = np.subtract(score[rows], self._score[rows], out=scratch)
            self._score[rows] = score[rows]
            self._h_of_all[rows] = say(value, self._votes)

        self._passes_of_all(part)
        return "unused", 0.0, False

    def constant(self, h: float) -> tuple[TreeLearner, NDArray[Any]]:
        self._h_of_all[:] = say(np.array([h]), self._votes)[0]
        return TreeLearner(None, h), self._h

    def ensemble(self, learners: Sequence[TreeLearner], votes: Sequence[float]) -> TreeEnsemble:
        text = self._booster.model_to_string()
        grown = native.blocks(text)
        trees = list(self._before.blocks) if self._before else []
        for learner, vote in zip(learners, votes, strict=True):
            if learner.tree is None:
                block = native.constant_block(len(self._y))
                block = native.fold(block, lambda value, h=learner.constant: value + h)  # type: ignore[misc]
            else:
                block = grown[learner.tree]
            trees.append(
                native.fold(block, lambda value, vote=vote: vote * say(value, self._votes))  # type: ignore[misc]
            )
        earlier = [] if self._before is None else self._before.votes
        return TreeEnsemble(native.assemble(text, trees, self._categories), [*earlier, *votes])


class TreeEnsemble:
    """One LightGBM model whose raw score is the margin."""

    def __init__(self, text: str, votes: Sequence[float]) -> None:
        self.booster = lgb.Booster(model_str=text)
        self.votes = list(votes)
        self.n_threads = 1

    def __len__(self) -> int:
        return len(self.votes)

    @property
    def blocks(self) -> list[str]:
        return native.blocks(self.booster.model_to_string())

    def _threads(self, X: Matrix) -> int:
        return max(1, min(self.n_threads, int(X.shape[0]) // ROWS_PER_THREAD))

    def margin(self, X: Matrix) -> Array:
        raw = self.booster.predict(X, raw_score=True, num_threads=self._threads(X))
        return np.asarray(raw, dtype=np.float64)

    def tree_margin(self, X: Matrix, t: int) -> Array:
        """What tree t adds to the margin."""
        raw = self.booster.predict(
            X, raw_score=True, start_iteration=t, num_iteration=1, num_threads=self._threads(X)
        )
        return np.asarray(raw, dtype=float)

    def staged_margin(self, X: Matrix) -> Iterator[Array]:
        leaves = np.asarray(self.booster.predict(X, pred_leaf=True, num_threads=self._threads(X)))
        leaves = leaves.reshape(leaves.shape[0], -1)
        margin = np.zeros(len(leaves))
        for t, block in enumerate(self.blocks):
            margin = margin + native.numbers(block, "leaf_value")[leaves[:, t].astype(np.intp)]
            yield margin

    @cached_property
    def feature_importances(self) -> Array:
        """Each tree's gains, normalised, averaged with the votes as weights."""
        total = np.zeros(self.booster.num_feature())
        for block, vote in zip(self.blocks, self.votes, strict=True):
            gain = native.numbers(block, "split_gain")
            if gain.sum() > 0:
                features = native.numbers(block, "split_feature").astype(np.intp)
                total += vote * np.bincount(features, gain / gain.sum(), len(total))
        return total / total.sum() if total.sum() > 0 else total


def say(value: Array, votes: Votes) -> NDArray[Any]:
    """h from a leaf's value: its sign, as a small integer, or itself."""
    if votes == "confidence":
        # A pure leaf may come out as 1 - 1e-15; a learner without mistakes must be seen as such.
        return np.clip(value * (1 + 1e-12), -1.0, 1.0)
    return 2 * (value > _NO_SIGN).view(np.int8) - 1


_EXACT: dict[str, Any] = {
    "objective": "none",
    "metric": "None",
    "boosting": "gbdt",
    "learning_rate": 1.0,
    "lambda_l1": 0.0,
    "lambda_l2": 0.0,
    "min_gain_to_split": 0.0,
    "boost_from_average": False,
    "feature_pre_filter": False,
    "min_data_in_bin": 1,
    # Row counts are guessed from hessians, so only a bound on the weight means what it says.
    "min_data_in_leaf": 0,
    # One category against the rest, without smoothing: the split of its one-hot column.
    "max_cat_to_onehot": 1 << 30,
    "cat_l2": 0.0,
    "cat_smooth": 0.0,
    "min_data_per_group": 1,
    "histogram_pool_size": 1024.0,  # MB; deep trees on many rows would take many times that
    "deterministic": True,
    "force_row_wise": True,
    "seed": 0,
    "verbosity": -1,
}


def _size(max_depth: int | None, max_leaf_nodes: int | None, n_rows: int) -> dict[str, int]:
    if max_depth is None and max_leaf_nodes is None:
        max_depth = 1
    depth = -1 if max_depth is None else max_depth
    leaves = max_leaf_nodes or 2 ** min(depth, 17)
    return {"max_depth": depth, "num_leaves": max(2, min(leaves, n_rows, _MOST_LEAVES))}


def _binned(
    matrix: Matrix,
    params: dict[str, Any],
    categorical: list[int],
    feature_names: Sequence[str] | None,
    held_out: Matrix | None = None,
) -> lgb.Dataset:
    """The data in bins, such that a dense column with at most ``max_bin`` values has one for each.

    Three habits of LightGBM are in the way. It splits its budget of bins between negative and
    positive values by their counts, and so may merge values of a column with far fewer values than
    bins: columns that look like few values in a sample get a budget without end, and a second
    binning takes it back from those that turn out to have many. It drops the rarest category of a
    column without missing values if that is rarer than 1 %: a last row without any category, and
    without weight, keeps it. It looks at 200,000 rows only: at all, where something rare matters.
    """
    max_bin = params["max_bin"]
    n_rows = matrix.shape[0] + bool(categorical) + (0 if held_out is None else held_out.shape[0])
    if n_rows > SAMPLED_ROWS and (categorical or _has_missing(matrix)):
        params = params | {"bin_construct_sample_cnt": n_rows}
    parts = [matrix] if held_out is None else [matrix, held_out]
    if categorical:
        last = np.array(matrix[:1])
        last[:, categorical] = np.nan
        parts.append(last)
    data: Any = parts if len(parts) > 1 else matrix
    if sparse.issparse(matrix) and len(parts) > 1:
        data = sparse.vstack(parts, format="csr")
    few = _few_values(matrix, max_bin)
    while True:
        if few:
            budget = [_MANY_BINS if column in few else max_bin for column in range(matrix.shape[1])]
            params = params | {"max_bin_by_feature": budget}
        dataset = lgb.Dataset(
            data,
            params=params,
            categorical_feature=categorical,
            feature_name=_plain_names(feature_names, matrix.shape[1]),
        ).construct()
        many = {column for column in few if dataset.feature_num_bin(column) > max_bin + 2}
        if not many:
            return dataset
        few = few - many
        params.pop("max_bin_by_feature")


def _few_values(matrix: Matrix, max_bin: int) -> set[int]:
    """Columns that have at most ``max_bin`` values in a sample of the rows."""
    if sparse.issparse(matrix):
        return set()
    sample = np.sort(matrix[:: max(1, len(matrix) // (16 * max_bin))], axis=0)
    changes = (sample[1:] != sample[:-1]) & ~np.isnan(sample[1:])
    return set(np.flatnonzero(changes.sum(axis=0) < max_bin).tolist())


def _has_missing(matrix: Matrix) -> bool:
    if sparse.issparse(matrix):
        return bool(np.isnan(matrix.data).any())
    return bool(np.isnan(matrix.min(axis=0)).any())


def _plain_names(names: Sequence[str] | None, n_columns: int) -> Any:
    """Names that LightGBM's text format can hold, or its own."""
    if names is None:
        return "auto"
    plain = [re.sub(r"[^\w.-]", "_", str(name)) for name in names]
    return plain if len(set(plain)) == n_columns and all(plain) else "auto"
