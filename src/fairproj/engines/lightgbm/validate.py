"""Whether a text is a LightGBM model of the kind that this library writes.

LightGBM reads a model without checking it, and a damaged or hostile one can crash the process. What
passes here has the expected lines in the expected order, arrays of the expected lengths, and trees
in which each node is reached once from the root.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairproj.data.checks import counted
from fairproj.data.types import Array
from fairproj.engines.lightgbm.text import objective_line

MOST_TREES = 1_000_000
MOST_LEVELS = 4096  # LightGBM explains predictions by recursion, and a stack has an end
_MOST_LEAVES = 1 << 17  # LightGBM's own limit
_MOST_WORDS = 1 << 24  # sets of categories are bits in words
_NUMBERS = re.compile(r"[0-9eE+. -]*")
_THRESHOLDS = re.compile(r"(?:[0-9eE+. -]|\binf\b)*")
_INTEGERS = re.compile(r"[0-9 -]*")
_NAME = re.compile(r"[\w.-]+")
_INFO = re.compile(r"none|\[[0-9a-z.+-]+:[0-9a-z.+-]+\]|-?[0-9]+(:-?[0-9]+)*")
_MOST_ROWS = 1 << 31  # counts are 32-bit integers there
_CATEGORICAL, _MISSING_BITS = 1, 12
_MISSING_GOES_RIGHT = 8  # the decision_type of a split of numbers in which NaN goes right
_OF_SPLITS = {
    "split_feature": True,
    "split_gain": False,
    "threshold": False,
    "decision_type": True,
    "left_child": True,
    "right_child": True,
}
_OF_LEAVES = {"leaf_value": False, "leaf_weight": False, "leaf_count": True}
_OF_NODES = {"internal_value": False, "internal_weight": False, "internal_count": True}


class NotAModelError(ValueError):
    """A text that is not a LightGBM model of the expected kind; the message says where."""


def check(
    text: str,
    n_features: int,
    votes: Sequence[float],
    link_scale: float,
    intercept: float = 0.0,
    learner_votes: str = "confidence",
) -> None:
    """Raise `NotAModelError` unless the text holds one tree for each vote, on ``n_features``.

    Leaf values of the first tree contain the intercept. No leaf value may be beyond the vote of its
    tree, unless ``learner_votes`` is "newton".
    """
    if not np.isfinite(intercept):
        raise NotAModelError(f"the intercept is {intercept}, and a finite number is expected")
    n_trees = len(votes)
    lines = iter(text.split("\n"))
    _header(lines, n_features, n_trees, link_scale)
    sizes = _integers(_field(next(lines, ""), "tree_sizes"), n_trees, "tree_sizes")
    _expect(next(lines, None), "")
    n_bytes = []
    largest = 0.0
    for number, vote in enumerate(votes):
        block = _Block(lines)
        leaf_values = _tree(block, number, n_features)
        largest += float(np.abs(leaf_values).max())
        if learner_votes != "newton":
            _within_vote(leaf_values, number, vote, 0.0 if number else intercept)
        n_bytes.append(block.size)
    if not np.isfinite(largest):
        raise NotAModelError("the leaf values add up to more than a finite number")
    if n_bytes != sizes.tolist():
        raise NotAModelError("tree_sizes does not hold the sizes of the trees")
    _expect(next(lines, None), "end of trees")
    if list(lines) != [""]:
        raise NotAModelError("there is text after the trees")


def _header(lines: Iterator[str], n_features: int, n_trees: int, link_scale: float) -> None:
    if not 1 <= n_trees <= MOST_TREES:
        raise NotAModelError(f"{n_trees} trees are declared, and 1 to {MOST_TREES:,} are allowed")
    for line in (
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={n_features - 1}",
        objective_line(link_scale),
    ):
        _expect(next(lines, None), line)
    names = _field(next(lines, ""), "feature_names").split(" ")
    infos = _field(next(lines, ""), "feature_infos").split(" ")
    # LightGBM ends a line at a carriage return and the text at a null, wherever they stand.
    if (
        len(names) != n_features
        or len(set(names)) != n_features
        or not all(map(_is_plain_name, names))
    ):
        raise NotAModelError(f"feature_names must hold {n_features} different plain names")
    if len(infos) != n_features or not all(map(_INFO.fullmatch, infos)):
        raise NotAModelError(f"feature_infos must describe {counted(n_features, 'feature')}")


def _tree(block: _Block, number: int, n_features: int) -> Array:
    """Check one tree and return its leaf values."""
    _expect(block.value("Tree"), str(number))
    n_leaves, n_cat = (int(block.integers(name, 1)[0]) for name in ("num_leaves", "num_cat"))
    if not 1 <= n_leaves <= _MOST_LEAVES or not 0 <= n_cat < n_leaves:
        raise NotAModelError(
            f"tree {number} declares {n_leaves} leaves and {n_cat} splits by category"
        )
    lengths = ((_OF_SPLITS, n_leaves - 1), (_OF_LEAVES, n_leaves), (_OF_NODES, n_leaves - 1))
    values = {
        name: block.numbers(name, length, whole)
        for fields, length in lengths
        for name, whole in fields.items()
    }
    if n_cat:
        _categories(block, number, n_cat)
    _expect(block.value("is_linear"), "0")
    _expect(block.value("shrinkage"), "1")
    _expect(block.line(), "")
    _expect(block.line(), "")
    _splits(values, number, n_features, n_cat)
    _every_node_once(values["left_child"], values["right_child"], number)
    leaf_values: Array = values["leaf_value"]
    return leaf_values


def _within_vote(leaf_values: Array, number: int, vote: float, intercept: float) -> None:
    rounding = 4 * np.finfo(float).eps * (abs(intercept) + abs(vote)) if intercept else 0.0
    if np.abs(leaf_values - intercept).max() > abs(vote) + rounding:
        raise NotAModelError(f"tree {number} has a leaf value beyond its vote of {vote:g}")


class _Block:
    """Reads the lines of a tree and counts their bytes."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.size = 0

    def line(self) -> str | None:
        line = next(self._lines, None)
        self.size += len((line or "").encode()) + 1
        return line

    def value(self, name: str) -> str:
        return _field(self.line() or "", name)

    def integers(self, name: str, length: int) -> NDArray[np.int64]:
        return _integers(self.value(name), length, name)

    def numbers(self, name: str, length: int, whole: bool) -> Any:
        value = self.value(name)
        if length == 1 and name == "leaf_weight" and not value:
            return np.zeros(0)  # LightGBM writes no weight for a tree of one leaf
        if name == "threshold":
            return _parsed(value, length, name, _THRESHOLDS, float)
        return (_integers if whole else _floats)(value, length, name)


def _categories(block: _Block, number: int, n_cat: int) -> None:
    boundaries = block.integers("cat_boundaries", n_cat + 1)
    n_words = int(boundaries[-1])
    if boundaries[0] != 0 or (np.diff(boundaries) < 1).any() or n_words > _MOST_WORDS:
        raise NotAModelError(f"tree {number} has impossible cat_boundaries")
    words = block.integers("cat_threshold", n_words)
    if ((words < 0) | (words >= 1 << 32)).any():
        raise NotAModelError(f"tree {number} has an impossible cat_threshold")


def _splits(values: dict[str, Any], number: int, n_features: int, n_cat: int) -> None:
    feature, kind, threshold = (
        values[name] for name in ("split_feature", "decision_type", "threshold")
    )
    if ((feature < 0) | (feature >= n_features)).any():
        raise NotAModelError(f"tree {number} splits a feature that the model does not have")
    counts = np.concatenate([values["leaf_count"], values["internal_count"]])
    if ((counts < 0) | (counts >= _MOST_ROWS)).any():
        raise NotAModelError(f"tree {number} has an impossible count of rows")
    kind = kind.astype(np.int64)
    if ((kind < 0) | (kind > 15) | (kind & _MISSING_BITS == _MISSING_BITS)).any():
        raise NotAModelError(f"tree {number} has an unknown decision_type")
    # LightGBM separates missing values from all numbers by a threshold of infinity.
    is_missing = (kind == _MISSING_GOES_RIGHT) & (threshold == np.inf)
    if not (np.isfinite(threshold) | is_missing).all():
        raise NotAModelError(f"tree {number} has a threshold that is not finite")
    by_category = threshold[kind & _CATEGORICAL == _CATEGORICAL]
    if sorted(by_category.tolist()) != list(range(n_cat)):
        raise NotAModelError(
            f"tree {number} does not use each of its {n_cat} sets of categories once"
        )


def _every_node_once(left: Any, right: Any, number: int) -> None:
    """From the root, every split and every leaf is reached once: no cycle, nothing out of range."""
    n_splits = len(left)
    if not n_splits:
        return
    children = np.concatenate([left, right])
    if (children >= n_splits).any() or (children < ~n_splits).any():
        raise NotAModelError(f"tree {number} is not a tree: a child is out of range")
    place = np.where(children >= 0, children, n_splits + ~children)  # splits, then leaves
    if (np.bincount(place, minlength=2 * n_splits + 1) != [0] + [1] * (2 * n_splits)).any():
        raise NotAModelError(f"tree {number} is not a tree: a node does not have one parent")
    if _reached(left, right, number) < n_splits:  # the others form a circle
        raise NotAModelError(f"tree {number} is not a tree: nodes cannot be reached")


def _reached(left: Any, right: Any, number: int) -> int:
    """How many splits the root leads to; the loop ends because each has at most one parent."""
    level, n_reached, depth = np.zeros(1, dtype=np.int64), 0, 0
    while len(level):
        depth += 1
        if depth > MOST_LEVELS:
            raise NotAModelError(
                f"tree {number} is deeper than {MOST_LEVELS:,} levels; set max_depth below that"
            )
        n_reached += len(level)
        level = np.concatenate([left[level], right[level]])
        level = level[level >= 0]
    return n_reached


def _is_plain_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _field(line: str, name: str) -> str:
    key, equals, value = line.partition("=")
    if key != name or not equals:
        raise NotAModelError(f"a line {name}=... is expected, found {line[:40]!r}")
    return value


def _expect(line: str | None, wanted: str) -> None:
    if line != wanted:
        shown = "the end" if line is None else repr(line[:40])
        raise NotAModelError(f"{wanted!r} is expected, found {shown}")


def _floats(text: str, length: int, name: str) -> Array:
    numbers: Array = _parsed(text, length, name, _NUMBERS, float)
    if not np.isfinite(numbers).all():
        raise NotAModelError(f"{name} holds a number that is not finite")
    return numbers


def _integers(text: str, length: int, name: str) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = _parsed(text, length, name, _INTEGERS, np.int64)
    return numbers


def _parsed(text: str, length: int, name: str, grammar: re.Pattern[str], kind: type) -> Any:
    words = text.split(" ") if text else []
    if len(words) != length:
        raise NotAModelError(f"{name} holds {len(words)} numbers, and {length} are expected")
    try:
        if not grammar.fullmatch(text):
            raise ValueError
        return np.array(words, dtype=kind)
    except (ValueError, OverflowError):
        raise NotAModelError(f"{name} holds something that is not a number") from None
