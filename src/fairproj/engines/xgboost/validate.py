"""Trees in a model file: their record, and whether a record is one.

XGBoost reads a model without checking it, and a damaged or hostile one can crash the process. Here
a record is checked entry by entry and becomes a `Tree`; what XGBoost reads is made of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.types import Array
from fairproj.engines.xgboost.tree import Tree, floats

MOST_TREES = 1_000_000
MOST_LEVELS = 4096  # XGBoost explains predictions by recursion, and a stack has an end
MOST_NODES = 1 << 24  # XGBoost returns the numbers of leaves as 32-bit floats
_LARGEST = floats(np.array([np.finfo(np.float32).max]))[0]
_FIELDS = ("left", "right", "feature", "threshold", "missing_left", "gain", "cover", "h")


def to_record(tree: Tree) -> dict[str, Any]:
    """Lists of numbers from which `from_record` makes the same tree."""
    return {
        "left": tree.left.tolist(),
        "right": tree.right.tolist(),
        "feature": tree.feature.tolist(),
        "threshold": floats(tree.threshold),
        "missing_left": tree.missing_left.tolist(),
        "gain": floats(tree.gain),
        "cover": floats(tree.cover),
        "h": tree.h.tolist(),
        "categories": [[node, list(tree.categories[node])] for node in sorted(tree.categories)],
    }


def from_record(
    record: Any,
    number: int,
    n_features: int,
    categories: Mapping[int, int],
    learner_votes: str = "newton",
) -> Tree:
    """The tree of a record; ValueError unless it is one.

    ``categories`` are the columns that hold category codes, and how many. No value of ``h`` may be
    beyond 1, unless ``learner_votes`` is "newton".
    """
    if not isinstance(record, dict) or set(record) != {*_FIELDS, "categories"}:
        raise ValueError(f"tree {number} must hold {', '.join(_FIELDS)} and categories")
    read = _Reader(record, number)
    left, right = read.integers("left", -1), read.integers("right", -1)
    _check_shape(left, right, number)
    tree = Tree(
        left=left,
        right=right,
        feature=read.integers("feature", 0, n_features - 1),
        threshold=read.floats("threshold"),
        missing_left=read.booleans("missing_left"),
        gain=read.floats("gain"),
        cover=read.floats("cover"),
        h=read.numbers("h"),
        categories=_read_categories(record["categories"], number),
    )
    _check_categories(tree, number, categories)
    _check_values(tree, number, learner_votes)
    return tree


class _Reader:
    """Reads lists that must all have an entry for each node."""

    def __init__(self, record: dict[str, Any], number: int) -> None:
        self._record, self._number = record, number
        left = record["left"]
        self._length = len(left) if isinstance(left, list) else 0
        if not 1 <= self._length <= MOST_NODES:
            raise ValueError(
                f"tree {number} has {self._length} nodes, and 1 to {MOST_NODES:,} are allowed"
            )

    def _entries(self, name: str, kinds: tuple[type, ...], what: str) -> list[Any]:
        entries = self._record[name]
        if not isinstance(entries, list) or len(entries) != self._length:
            raise ValueError(
                f"{name} of tree {self._number} must be a list with an entry for each of its "
                f"{self._length} nodes"
            )
        if not all(type(entry) in kinds for entry in entries):
            raise ValueError(f"{name} of tree {self._number} must hold {what}")
        return entries

    def integers(self, name: str, least: int, most: int | None = None) -> NDArray[np.int32]:
        most = self._length - 1 if most is None else most
        entries = self._entries(name, (int,), "integers")
        if not all(least <= entry <= most for entry in entries):
            raise ValueError(f"{name} of tree {self._number} must be from {least} to {most}")
        return np.array(entries, dtype=np.int32)

    def booleans(self, name: str) -> NDArray[np.bool_]:
        return np.array(self._entries(name, (bool,), "booleans"), dtype=bool)

    def numbers(self, name: str) -> Array:
        entries = self._entries(name, (int, float), "numbers")
        # Comparisons, because an integer may be larger than any float.
        if not all(-_LARGEST <= entry <= _LARGEST for entry in entries):
            raise ValueError(
                f"{name} of tree {self._number} holds a number that no 32-bit float holds"
            )
        return np.array(entries, dtype=np.float64)

    def floats(self, name: str) -> NDArray[np.float32]:
        return self.numbers(name).astype(np.float32)


def _check_shape(left: NDArray[np.int32], right: NDArray[np.int32], number: int) -> None:
    """Children come after their parents and have one each, so that all lead back to the root."""
    splits = np.flatnonzero(left >= 0)
    children = np.concatenate([left[splits], right[splits]])
    if ((left < 0) != (right < 0)).any():
        raise ValueError(f"tree {number} is not a tree: a node has one child")
    if (children <= np.tile(splits, 2)).any():
        raise ValueError(f"tree {number} is not a tree: a child comes before its parent")
    if (np.bincount(children, minlength=len(left)) != [0] + [1] * (len(left) - 1)).any():
        raise ValueError(f"tree {number} is not a tree: a node does not have one parent")
    if _depth(left, right) > MOST_LEVELS:
        raise ValueError(
            f"tree {number} is deeper than {MOST_LEVELS:,} levels; set max_depth below that"
        )


def _depth(left: NDArray[np.int32], right: NDArray[np.int32]) -> int:
    level, depth = np.zeros(1, dtype=np.intp), 0
    while len(level) and depth <= MOST_LEVELS:
        depth += 1
        level = np.concatenate([left[level], right[level]])
        level = level[level >= 0]
    return depth


def _read_categories(sets: Any, number: int) -> dict[int, list[int]]:
    if not isinstance(sets, list) or not all(_is_set_of_codes(entry) for entry in sets):
        raise ValueError(f"categories of tree {number} must be pairs of a node and a list of codes")
    nodes = [node for node, _ in sets]
    if nodes != sorted(set(nodes)):
        raise ValueError(f"categories of tree {number} must have each node once, in order")
    return dict(sets)


def _is_set_of_codes(entry: Any) -> bool:
    if not isinstance(entry, list) or len(entry) != 2 or type(entry[0]) is not int:
        return False
    codes = entry[1]
    return isinstance(codes, list) and all(type(code) is int for code in codes)


def _check_categories(tree: Tree, number: int, categories: Mapping[int, int]) -> None:
    """The splits of columns of categories, and no others, have codes, which the column has."""
    splits = np.flatnonzero(~tree.is_leaf).tolist()
    if sorted(tree.categories) != [s for s in splits if int(tree.feature[s]) in categories]:
        raise ValueError(
            f"tree {number} must split the columns of categories by codes, and the others not"
        )
    for node, codes in tree.categories.items():
        n_codes = categories[int(tree.feature[node])]
        if not codes or list(codes) != sorted(set(codes)) or not _within(codes, n_codes):
            raise ValueError(
                f"tree {number} has impossible codes at node {node}; they must increase from 0 "
                f"to at most {n_codes - 1}"
            )


def _within(codes: Sequence[int], n_codes: int) -> bool:
    return codes[0] >= 0 and codes[-1] < n_codes


def _check_values(tree: Tree, number: int, learner_votes: str) -> None:
    h = np.abs(tree.h[tree.is_leaf])
    if learner_votes == "confidence" and (h > 1).any():
        raise ValueError(f"tree {number} predicts beyond 1, which votes='confidence' excludes")
    if learner_votes == "discrete" and (h != 1).any():
        raise ValueError(f"tree {number} must predict -1 or 1, as votes='discrete' says")


def check_sums(
    trees: Sequence[Tree], votes: Sequence[float], link_scale: float, intercept: float
) -> None:
    """Refuse values that 32-bit floats cannot add up."""
    largest = [
        abs(vote) * float(np.abs(tree.h).max()) for tree, vote in zip(trees, votes, strict=True)
    ]
    if not link_scale * (abs(intercept) + sum(largest)) < _LARGEST:
        raise ValueError("the leaf values add up to more than a 32-bit float holds")
