"""All checks of a table, read once, and what they found in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairproj.data.checks import (
    Groups,
    check_aligned,
    check_groups,
    check_labels,
    check_pos_label,
    counted,
    listing,
    percent,
)
from fairproj.inspection.columns import Column, read_columns
from fairproj.inspection.identifiers import identifiers_of
from fairproj.inspection.proxies import (
    JOINT_GROUPS,
    JOINT_PROXY_AUC,
    JOINT_ROWS,
    LEAK_AUC,
    LOOK_AUC,
    MAX_ROWS,
    PROXY_AUC,
    joint_strength,
    rank_columns,
)
from fairproj.inspection.sizes import POWER, RateSizes, sizes_of
from fairproj.inspection.strength import FEWEST_ROWS

NAMED = 3  # columns, where several together are a proxy
MISSING_DIFFERENCE = 0.1  # between shares of missing values of two groups
_NOTES = (
    "possible_proxy",
    "joint_strength",
    "rare_label",
    "missing_values",
    "decimal_commas",
    "not_checked",
)  # kinds of findings that call for no action
_EVENTS = {
    "all": "",
    "positive": " with the positive label",
    "negative": " with the negative label",
}


@dataclass(frozen=True)
class Finding:
    """Something that a check found.

    Attributes
    ----------
    kind : str
        proxy, joint_proxy (several columns together), possible_proxy, joint_strength (all features
        together), identifier, leak, small_group or missing_values; the command ``fairproj check``
        also has missing_groups, separators, not_numbers, decimal_commas, unusable, ranges,
        rare_label, crossed_groups and not_checked.
    column : str or None
        The column it is about; for a small group, the group.
    measure : float or None
        The AUC of a proxy or leak, the share of different values of an identifier, the rows of a
        small group, the largest difference between shares of missing values.
    words : str
        One sentence, without its full stop.
    """

    kind: str
    column: str | None
    measure: float | None
    words: str

    @property
    def is_warning(self) -> bool:
        """Whether something should be done about it."""
        return self.kind not in _NOTES


@dataclass(frozen=True)
class Inspection:
    """What the checks of a table found.

    Attributes
    ----------
    proxies, leaks, identifiers : DataFrame
        As `find_proxies`, `find_leaks` and `find_identifiers` return them.
    joint_auc : float
        How well all features together tell the group.
    missing : DataFrame
        The share of missing values of each group, with a row for each column that has any.
    sizes : list of RateSizes
        The rows of each group for the rates of the target.
    group_names : list of str
    sensitive : str
        What to call the groups in a sentence.
    """

    proxies: pd.DataFrame
    joint_auc: float
    leaks: pd.DataFrame
    identifiers: pd.DataFrame
    missing: pd.DataFrame
    sizes: list[RateSizes]
    group_names: list[str]
    sensitive: str

    @cached_property
    def findings(self) -> list[Finding]:
        """Everything that is worth a sentence, most urgent first."""
        return [
            *self._leaks(),
            *self._identifiers(),
            *self._proxies(),
            *self._small_groups(),
            *self._missing(),
        ]

    @property
    def joint_words(self) -> str:
        """How well all features together tell the group, and why a single column may tell more."""
        words = f"all features together tell {self.sensitive} with an AUC of {self.joint_auc:.3f}"
        many = len(self.group_names) > JOINT_GROUPS
        if many:
            words += f" (of the {JOINT_GROUPS} largest groups, the one told best)"
        if not self.joint_auc < self.proxies["auc"].max():
            return words
        groups = "of all groups the one told best, and " if many else ""
        return (
            f"{words}; one column alone has more because it is measured otherwise: {groups}by the "
            f"shares of the groups among similar values in up to {MAX_ROWS:,} rows, where all "
            f"features are judged by a small model of up to {JOINT_ROWS:,}, both cross-validated"
        )

    def _leaks(self) -> Iterator[Finding]:
        for row in self.leaks[self.leaks["nearly_determines"]].to_dict("records"):
            words = (
                f"column {row['column']!r} alone nearly determines the label (AUC "
                f"{row['auc']:.3f}); it may have been recorded after the label was known"
            )
            yield Finding("leak", str(row["column"]), float(row["auc"]), words)

    def _identifiers(self) -> Iterator[Finding]:
        for row in self.identifiers.to_dict("records"):
            words = (
                f"column {row['column']!r} has a different value in {percent(row['distinct'], 0)} "
                "of its rows, as identifiers do"
            )
            yield Finding("identifier", str(row["column"]), float(row["distinct"]), words)

    def _proxies(self) -> Iterator[Finding]:
        for row in self.proxies[self.proxies["auc"] >= LOOK_AUC].to_dict("records"):
            told = f" ({row['group']})" if len(self.group_names) > 2 else ""
            kind = "proxy" if row["nearly_determines"] else "possible_proxy"
            words = (
                f"column {row['column']!r} alone nearly determines {self.sensitive}{told} (AUC "
                f"{row['auc']:.3f}), so predictions may depend on the group through it"
            )
            if kind == "possible_proxy":
                words = (
                    f"look at column {row['column']!r}, which alone tells {self.sensitive}{told} "
                    f"with an AUC of {row['auc']:.3f}, above {LOOK_AUC:g} and below {PROXY_AUC:g}"
                )
            yield Finding(kind, str(row["column"]), float(row["auc"]), words)
        if self._only_together:
            top = listing(self.proxies["column"].head(NAMED).tolist())
            words = (
                f"several columns together nearly determine {self.sensitive} (AUC "
                f"{self.joint_auc:.3f}), though none does alone, so predictions may depend on the "
                f"group through them; look at {top} first"
            )
            yield Finding("joint_proxy", None, self.joint_auc, words)
        elif not np.isnan(self.joint_auc):
            yield Finding("joint_strength", None, self.joint_auc, self.joint_words)

    @property
    def _only_together(self) -> bool:
        """Whether features nearly determine the group, and no single one of them does."""
        return self.joint_auc >= JOINT_PROXY_AUC and not self.proxies["nearly_determines"].any()

    def _small_groups(self) -> Iterator[Finding]:
        for sizes in self.sizes:
            if sizes.confirmable is None and sizes.held_out.any() and sizes.needed:
                yield self._small_group(sizes, int(sizes.held_out.argmin()))

    def _small_group(self, sizes: RateSizes, group: int) -> Finding:
        name, rows = self.group_names[group], int(sizes.held_out[group])
        row = "row" if rows == 1 else "rows"
        limit = "no limit below 1"
        if sizes.smallest is not None:
            limit = f"a limit of {np.ceil(1000 * sizes.smallest) / 1000:g}"
        words = (
            f"group {name!r} has {rows:,} held-out {row}{_EVENTS[sizes.rate.event]}; if there were "
            f"no gap and the {sizes.rate.words} were near {sizes.assumed:.2g}, the held-out rows "
            f"would confirm {limit} with a chance of {percent(POWER, 0)}, and a limit of "
            f"{sizes.max_gap:g} with about {sizes.needed:,} in each group"
        )
        return Finding("small_group", name, float(rows), words)

    def _missing(self) -> Iterator[Finding]:
        for column, shares in self.missing.iterrows():
            difference = float(shares.max() - shares.min())
            if difference >= MISSING_DIFFERENCE:
                words = (
                    f"column {column!r} is missing in {percent(shares.max(), 0)} of the rows of "
                    f"group {shares.idxmax()!r} and in {percent(shares.min(), 0)} of "
                    f"{shares.idxmin()!r}"
                )
                yield Finding("missing_values", str(column), difference, words)


def inspect_rows(
    X: Any,
    y: Any,
    sensitive_features: Any,
    targets: Sequence[tuple[str, float]] = (("equal_opportunity", 0.05),),
    *,
    pos_label: Any = None,
    test_size: float = 0.25,
    held_out: Any = None,
    sensitive: str | None = None,
    random_state: int = 0,
) -> Inspection:
    """Run all checks on the rows that a model will be trained on.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame
        The features.
    y : array-like of shape (n_rows,)
    sensitive_features : array-like of shape (n_rows,) or (n_rows, n_columns)
    targets : sequence of (str, float)
        Names of statistics and the gaps to confirm.
    pos_label : label, optional
        The positive label; by default the larger in sort order.
    test_size : float, default=0.25
        The share of the rows that will be held out.
    held_out : array of bool of shape (n_rows,), optional
        Which rows these are, where it is known, as in a split by time; ``test_size`` is then
        ignored.
    sensitive : str, optional
        What to call the groups in a sentence; by default "the group".
    random_state : int, default=0

    Returns
    -------
    Inspection

    Examples
    --------
    >>> from fairproj.datasets import load_german
    >>> from fairproj.inspection import inspect_rows
    >>> data = load_german()
    >>> X = data.data.assign(customer_id=range(1000))
    >>> checked = inspect_rows(X, data.target, data.sensitive_features)
    >>> [(finding.kind, finding.column) for finding in checked.findings if finding.is_warning]
    [('identifier', 'customer_id'), ('proxy', 'marital_status'), ('small_group', 'female')]
    """
    check_aligned(X=X, y=y, sensitive_features=sensitive_features)
    signs, classes = check_labels(y)
    positive = (signs > 0) == bool(check_pos_label(pos_label, classes))
    groups = check_groups(sensitive_features, len(signs), beside="y")
    columns, rows = read_columns(X, MAX_ROWS, random_state)
    if len(signs) != np.shape(X)[0]:
        raise ValueError(
            f"X has {counted(np.shape(X)[0], 'row')} and y has {len(signs):,}; they must be equal"
        )
    codes = groups.codes[rows]
    labels = positive[rows].astype(np.intp)
    names = list(map(str, classes))
    sizes = [
        each
        for statistic, max_gap in dict.fromkeys(targets)
        for each in sizes_of(positive, groups, statistic, max_gap, test_size, held_out=held_out)
    ]
    return Inspection(
        rank_columns(columns, codes, groups.names, PROXY_AUC, random_state),
        joint_strength(columns, codes, random_state),
        rank_columns(columns, labels, names, LEAK_AUC, random_state).drop(
            columns=["group", "mean_auc"]
        ),
        identifiers_of(columns, X, rows),
        _missing_shares(columns, Groups(codes, groups.values)),
        sizes,
        groups.names,
        sensitive or "the group",
    )


def _missing_shares(columns: Sequence[Column], groups: Groups) -> pd.DataFrame:
    """The share of missing values of each group that has enough rows."""
    counts = np.bincount(groups.codes, minlength=len(groups.values))
    enough = counts >= FEWEST_ROWS
    shares = {}
    for column in columns:
        missing = np.isnan(column.numbers)
        if missing.any():
            by_group = np.bincount(groups.codes, missing, len(groups.values))
            shares[column.name] = by_group[enough] / counts[enough]
    names = [name for name, kept in zip(groups.names, enough, strict=True) if kept]
    return pd.DataFrame.from_dict(shares, orient="index", columns=names)
