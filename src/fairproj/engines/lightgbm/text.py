"""LightGBM's text format, as far as needed to fold votes into leaves.

A model is a header, one block for each tree and a footer. Folding replaces a tree's leaf values by
``vote * sign(value)`` or ``vote * value``, so that LightGBM itself computes the ensemble's margin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairproj.data.types import Array

_TREES = re.compile(r"^Tree=\d+\n", flags=re.MULTILINE)
_END = "end of trees"

_CONSTANT = """num_leaves=1
num_cat=0
split_feature=
split_gain=
threshold=
decision_type=
left_child=
right_child=
leaf_value={value!r}
leaf_weight=0
leaf_count={count}
internal_value=
internal_weight=
internal_count=
is_linear=0
shrinkage=1


"""


def blocks(text: str) -> list[str]:
    """The trees of a model, without their numbers."""
    return _TREES.split(text[: text.index(_END)])[1:]


def without_footer(text: str) -> str:
    """Header and trees, which is all that predictions depend on."""
    return text[: text.index(_END)] + _END + "\n"


def with_footer(text: str, categories: Sequence[Sequence[Any]]) -> str:
    """The way back; what LightGBM says of its training parameters is gone."""
    return f"{text}\npandas_categorical:{_as_json(categories)}\n"


def _as_json(categories: Sequence[Sequence[Any]]) -> str:
    return json.dumps([list(c) for c in categories] or None, default=str)


def constant_block(n_rows: int, value: float) -> str:
    """A tree of one leaf."""
    return _CONSTANT.format(count=n_rows, value=float(value))


def numbers(block: str, field: str) -> Array:
    """The numbers of one field of a tree, such as ``leaf_value``."""
    match = re.search(rf"^{field}=(.*)$", block, flags=re.MULTILINE)
    return np.array(match.group(1).split() if match else [], dtype=float)


def fold(block: str, change: Callable[[Array], Array]) -> str:
    """The tree with changed leaf values."""
    start = block.index("leaf_value=") + len("leaf_value=")
    end = block.index("\n", start)
    values = change(np.array(block[start:end].split(), dtype=float))
    return block[:start] + " ".join(map(repr, values.tolist())) + block[end:]


def objective_line(link_scale: float) -> str:
    """The header's line that makes LightGBM's probability 1 / (1 + exp(-link_scale f))."""
    return f"objective=binary sigmoid:{link_scale:g}"


def assemble(
    text: str,
    trees: Sequence[str],
    categories: Sequence[Sequence[Any]] = (),
    link_scale: float = 2.0,
) -> str:
    """A model like ``text`` that holds the given trees and predicts probabilities.

    Its raw score is the margin f; its probability is 1 / (1 + exp(-link_scale f)). Exponential loss
    estimates that with a scale of 2 (Friedman, Hastie & Tibshirani 2000). ``categories`` tells
    LightGBM which code a category of a pandas column has.
    """
    header = text[: text.index("tree_sizes=")]
    header = re.sub(r"^monotone_constraints=.*\n", "", header, flags=re.MULTILINE)  # of training
    footer = text[text.index(_END) :]
    if "\nobjective=" not in header:
        header += f"{objective_line(link_scale)}\n"
        footer = footer.replace("[objective: custom]", "[objective: binary]")
        footer = footer.replace("[sigmoid: 1]", f"[sigmoid: {link_scale:g}]")
    if categories:
        footer = re.sub(
            r"^pandas_categorical:.*$",
            lambda _: f"pandas_categorical:{_as_json(categories)}",
            footer,
            flags=re.MULTILINE,
        )
    numbered = [f"Tree={i}\n{tree}" for i, tree in enumerate(trees)]
    sizes = " ".join(str(len(tree.encode())) for tree in numbered)
    return f"{header}tree_sizes={sizes}\n\n{''.join(numbered)}{footer}"
