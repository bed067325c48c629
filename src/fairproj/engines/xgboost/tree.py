"""One tree as plain arrays, to and from XGBoost's own form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.types import Array

# A finite number that no value of a column reaches; XGBoost reads 32-bit floats.
ABOVE_ALL = np.finfo(np.float32).max
_NO_PARENT = 2147483647


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree whose node 0 is the root; children have higher numbers than their parents.

    Attributes
    ----------
    left, right : array of int
        The children of each node; -1 at a leaf.
    feature : array of int
        The column that a node splits.
    threshold : array of float32
        A row goes left where its value, as a 32-bit float, is below it.
    missing_left : array of bool
        Whether a missing value goes left.
    gain, cover : array of float32
        What a split gained, and the Hessians of a node's rows.
    h : array of float
        What a leaf predicts.
    categories : mapping of int to sequence of int
        For a node that splits a column of categories, the codes that go right.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    missing_left: NDArray[np.bool_]
    gain: NDArray[np.float32]
    cover: NDArray[np.float32]
    h: Array
    categories: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.left)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        return self.left < 0

    @property
    def constant(self) -> bool:
        """Whether it predicts the same for every row."""
        return len(self) == 1


def constant_tree(h: float, cover: float = 1.0) -> Tree:
    """A tree of one leaf."""
    no_child, none = np.full(1, -1, dtype=np.int32), np.zeros(1, dtype=np.float32)
    return Tree(
        left=no_child,
        right=no_child,
        feature=np.zeros(1, dtype=np.int32),
        threshold=none,
        missing_left=np.zeros(1, dtype=bool),
        gain=none,
        cover=np.full(1, cover, dtype=np.float32),
        h=np.full(1, float(h)),
    )


def from_native(native: Mapping[str, Any], last_cut: NDArray[np.float32]) -> Tree:
    """The tree that XGBoost has grown, its leaf values as ``h``.

    ``last_cut`` is the upper end of the bins of each column. In training, a value beyond it is in
    the last bin. A split there is between all values and the missing ones, and must stay so for
    any value.
    """
    left = np.array(native["left_children"], dtype=np.int32)
    feature = np.array(native["split_indices"], dtype=np.int32)
    threshold = np.array(native["split_conditions"], dtype=np.float32)
    is_leaf = left < 0
    categories = _categories(native)
    by_number = ~is_leaf
    by_number[list(categories)] = False
    at_the_end = by_number & (threshold >= last_cut[feature])
    return Tree(
        left=left,
        right=np.array(native["right_children"], dtype=np.int32),
        feature=np.where(is_leaf, 0, feature).astype(np.int32),
        threshold=np.where(by_number, np.where(at_the_end, ABOVE_ALL, threshold), 0).astype(
            np.float32
        ),
        missing_left=np.array(native["default_left"], dtype=bool) & ~is_leaf,
        gain=np.array(native["loss_changes"], dtype=np.float32),
        cover=np.array(native["sum_hessian"], dtype=np.float32),
        h=np.where(is_leaf, threshold, 0).astype(np.float64),
        categories=categories,
    )


def _categories(native: Mapping[str, Any]) -> dict[int, list[int]]:
    codes = native["categories"]
    return {
        node: sorted(codes[begin : begin + size])
        for node, begin, size in zip(
            native["categories_nodes"],
            native["categories_segments"],
            native["categories_sizes"],
            strict=True,
        )
    }


def to_native(tree: Tree, leaf_values: Array, number: int, n_features: int) -> dict[str, Any]:
    """The tree as XGBoost's JSON has it, with other leaf values (those of splits are not read)."""
    values = np.where(tree.is_leaf, leaf_values, tree.threshold).astype(np.float32)
    nodes = sorted(tree.categories)
    sizes = [len(tree.categories[node]) for node in nodes]
    by_category = np.zeros(len(tree), dtype=int)
    by_category[nodes] = 1
    return {
        "base_weights": floats(np.where(tree.is_leaf, values, 0)),
        "categories": [code for node in nodes for code in tree.categories[node]],
        "categories_nodes": nodes,
        "categories_segments": np.cumsum([0, *sizes])[:-1].tolist(),
        "categories_sizes": sizes,
        "default_left": tree.missing_left.astype(int).tolist(),
        "id": number,
        "left_children": tree.left.tolist(),
        "loss_changes": floats(tree.gain),
        "parents": _parents(tree),
        "right_children": tree.right.tolist(),
        "split_conditions": floats(values),
        "split_indices": tree.feature.tolist(),
        "split_type": by_category.tolist(),
        "sum_hessian": floats(tree.cover),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(len(tree)),
            "size_leaf_vector": "1",
        },
    }


def _parents(tree: Tree) -> list[int]:
    parents = np.full(len(tree), _NO_PARENT)
    splits = np.flatnonzero(~tree.is_leaf)
    for side in (tree.left, tree.right):
        parents[side[splits]] = splits
    return [int(parent) for parent in parents]


def floats(values: NDArray[np.float32]) -> list[float]:
    """32-bit floats with as few digits as tell them apart."""
    return [float(str(value)) for value in np.asarray(values, dtype=np.float32)]


def native_model(
    trees: Sequence[Tree],
    leaf_values: Sequence[Array],
    n_features: int,
    categorical: Sequence[int] = (),
    objective: str = "binary:logistic",
) -> dict[str, Any]:
    """A whole model as XGBoost's JSON has it; its raw score is the sum of the leaf values."""
    types = ["c" if column in categorical else "q" for column in range(n_features)]
    return {
        "learner": {
            "attributes": {},
            "feature_names": [],
            "feature_types": types if len(categorical) else [],
            "gradient_booster": {
                "model": {
                    "gbtree_model_param": {
                        "num_parallel_tree": "1",
                        "num_trees": str(len(trees)),
                    },
                    "iteration_indptr": list(range(len(trees) + 1)),
                    "tree_info": [0] * len(trees),
                    "trees": [
                        to_native(tree, values, number, n_features)
                        for number, (tree, values) in enumerate(
                            zip(trees, leaf_values, strict=True)
                        )
                    ],
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": "5E-1" if objective == "binary:logistic" else "0E0",
                "boost_from_average": "0",
                "num_class": "0",
                "num_feature": str(n_features),
                "num_target": "1",
            },
            "objective": {"name": objective, "reg_loss_param": {"scale_pos_weight": "1"}},
        },
        "version": [3, 0, 0],
    }
