"""``fairproj check``: proxies, identifiers, leaks, small groups and numbers that are misread."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from fairproj.cli import _task
from fairproj.cli._app import AsJson, report_errors, statistic_option
from fairproj.cli._columns import (
    MOST_CATEGORIES,
    check_groups_of_training,
    columns_to_cut,
    many_categories,
    unusable_advice,
)
from fairproj.cli._console import print_json, print_line, show_table
from fairproj.cli._files import DataPath
from fairproj.cli._findings import crossed_groups, inspect_task, sentence
from fairproj.cli._record import Target
from fairproj.cli._rows import Rows, choose_features, known_rows, make_rows
from fairproj.cli._split import check_sides_of_rows, find_cut
from fairproj.cli._task import Task, cut_option, parse_sensitive
from fairproj.cli._train_options import check_numbers, check_weights_and_time, pair_targets
from fairproj.cli._train_show import show_data
from fairproj.constraints import find_statistic
from fairproj.data.checks import check_groups, counted, percent
from fairproj.data.ranges import cut_columns, propose_cuts
from fairproj.inspection import Finding, Inspection
from fairproj.inspection.proxies import LOOK_AUC
from fairproj.inspection.sizes import POWER, RateSizes, is_sized
from fairproj.io.records import to_dict
from fairproj.io.table_types import USABLE, kind_words, with_date_texts
from fairproj.io.tables import DataFiles, check_columns

FOUND = 1  # exit code with --strict
_MAX_GAP = 0.05
_RARE = 0.1  # the share of a label that is rare
_SHOWN = 10  # rows of a table


@report_errors
def check(
    data: DataPath,
    label: _task.Label,
    sensitive: _task.Sensitive,
    positive: _task.Positive = None,
    drop: _task.Drop = None,
    use_sensitive: _task.UseSensitive = False,
    weights: _task.Weights = None,
    time: _task.Time = None,
    test_size: _task.TestSize = 0.25,
    constraint: Annotated[
        list[str] | None,
        statistic_option("The gap to confirm; by default equal_opportunity. May be repeated."),
    ] = None,
    max_gap: Annotated[
        list[float] | None,
        typer.Option(
            help=f"The largest gap allowed; by default {_MAX_GAP:g}. May be repeated, once for "
            "each --constraint in their order.",
            min=0,
            max=1,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 if there is a warning.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a data file before training.

    fairproj check adult.csv --label income --sensitive sex --max-gap 0.05

    A folder or a pattern such as 'rows/*.parquet' names all data files in it; their rows must fit
    in memory.

    Shows how the columns are read, which columns tell the group or the label by themselves, which
    look like identifiers, whether the rows that train would hold out suffice for --max-gap, and
    which values are missing more often in some groups.

    The exit code is 0 whatever is found; with --strict it is 1 if there is a warning.
    """
    check_numbers(None, test_size)
    check_weights_and_time(weights, time, None, test_size)
    targets = pair_targets(constraint or ["equal_opportunity"], max_gap or [_MAX_GAP])
    files = DataFiles.from_paths([data])
    names, ranges = parse_sensitive(sensitive, files.column_names())
    task = Task(label, names, positive, drop, use_sensitive, ranges, weights, time)
    checked = Checked.read(files, task, targets, test_size)
    if as_json:
        print_json(checked.to_dict())
    else:
        checked.show()
    if strict and any(finding.is_warning for finding in checked.findings):
        raise typer.Exit(FOUND)


@dataclass(frozen=True)
class Checked:
    """A file that was checked.

    Attributes
    ----------
    task : Task
        With ranges for sensitive columns of many numbers.
    rows : Rows
    inspection : Inspection
    findings : list of Finding
        Those of the file as text too.
    """

    task: Task
    rows: Rows
    inspection: Inspection
    findings: list[Finding]

    @classmethod
    def read(cls, files: DataFiles, task: Task, targets: list[Target], test_size: float) -> Checked:
        frame, kinds, spelled = files.read_spelled_frame()
        file = replace(files.files[0], path=Path(files.name))  # what to call them
        dropped = task.dropped or []
        unused = [*dropped, *task.keys, *task.others]
        kinds = with_date_texts(kinds, frame, [name for name in kinds if name not in unused])
        texts = list(_unread(kinds, spelled, unused))
        unread = [found.column for found in texts if found.is_warning and found.column]
        check_columns(file.path, list(frame.columns), task.sensitive)
        features = choose_features(list(frame.columns), task, file.path)
        if set(features) <= set(unread):
            said = "; ".join(sentence(found) for found in texts if found.column in features)
            raise ValueError(f"{file.path} has no column that can be used as a feature: {said}")
        frame, missing = _with_known_groups(frame, kinds, task)
        used = replace(task, dropped=[*dropped, *unread])
        rows = make_rows(file, frame, kinds, used, sha256=files.sha256())
        task, rows, ranges = _cut(task, rows)
        check_groups_of_training(file.path, task, rows.groups, rows.y == rows.positive)
        if task.time is not None:
            check_sides_of_rows(rows, find_cut(rows, task.time, test_size))
        inspection = inspect_task(rows, task, targets, test_size)
        findings = [
            *missing,
            *texts,
            *ranges,
            *_too_many_categories(rows, inspection),
            *inspection.findings,
            *crossed_groups(rows, task, inspection, targets, test_size),
            *_rare_label(rows),
            *_not_sized(targets),
        ]
        return cls(task, rows, inspection, findings)

    @property
    def _groups(self) -> list[tuple[str, int]]:
        groups = check_groups(self.rows.groups, len(self.rows.y))
        return list(zip(groups.names, np.bincount(groups.codes).tolist(), strict=True))

    @property
    def _positive_share(self) -> float:
        return float((self.rows.y == self.rows.positive).mean())

    def to_dict(self) -> dict[str, Any]:
        """Everything, for scripts."""
        checked = self.inspection
        return {
            "file": str(self.rows.file.path),
            "rows": len(self.rows.y),
            "label": self.task.label,
            "positive": str(self.rows.positive),
            "positive_share": self._positive_share,
            "sensitive": self.task.sensitive,
            "weights": self.task.weights,
            "time": self.task.time,
            "ranges": self.task.ranges,
            "groups": dict(self._groups),
            "columns": self.rows.kinds,
            "proxies": _records(checked.proxies),
            "joint_auc": None if np.isnan(checked.joint_auc) else checked.joint_auc,
            "leaks": _records(checked.leaks),
            "identifiers": _records(checked.identifiers),
            "sizes": [_size_record(sizes, checked.group_names) for sizes in checked.sizes],
            "missing": checked.missing.to_dict("index"),
            "findings": [
                {**to_dict(found), "warning": found.is_warning, "sentence": sentence(found)}
                for found in self.findings
            ],
        }

    def show(self) -> None:
        rows, task, checked = self.rows, self.task, self.inspection
        show_data(
            rows.file.path, task, rows.kinds, rows.positive, self._positive_share, self._groups
        )
        groups = " and ".join(task.sensitive)
        _show_ranking(f"How well a column alone tells {groups}", checked.proxies, LOOK_AUC)
        if not np.isnan(checked.joint_auc):
            words = checked.joint_words
            print_line(f"{words[0].upper()}{words[1:]}.")
            print_line()
        _show_ranking(f"How well a column alone tells {task.label}", checked.leaks)
        for sizes in checked.sizes:
            _show_sizes(sizes, checked.group_names)
        _show_missing(checked.missing)
        self._show_findings()

    def _show_findings(self) -> None:
        findings = [one for one in self.findings if one.kind != "joint_strength"]  # said above
        if not findings:
            print_line("No findings.")
        for finding in findings:
            kind = "warning" if finding.is_warning else "note"
            print_line(f"{kind}: {sentence(finding)}")


def _unread(kinds: dict[str, str], spelled: Any, unused: list[str]) -> Iterator[Finding]:
    """What is to say of columns as the file has them; ``unused`` columns are no features."""
    for name, problem in spelled.problems().items():
        if name not in unused:
            words = f"{problem.sentence}, or leave it out with --drop"
            yield Finding("separators", name, None, words)
    for name, nearly in spelled.nearly.items():
        if name not in unused:
            yield Finding("not_numbers", name, float(nearly.n_others), nearly.sentence())
    if note := spelled.note():
        yield Finding("decimal_commas", None, float(len(spelled.commas)), note)
    for name, kind in kinds.items():
        if kind not in USABLE and name not in unused:
            words = f"column {name!r} holds {kind_words(kind)}, which cannot be used as a feature"
            yield Finding("unusable", name, None, f"{words}; {unusable_advice(name, kind)}")


def _with_known_groups(
    frame: pd.DataFrame, kinds: Mapping[str, str], task: Task
) -> tuple[pd.DataFrame, list[Finding]]:
    """The rows whose group is known, and what is to say of the others."""
    missing = frame[task.sensitive].isna()
    known = ~missing.any(axis=1)
    if known.all() or not known.any():  # without any, training refuses the column
        return frame, []
    findings = [
        Finding(
            "missing_groups",
            str(name),
            float(count),
            f"column {name!r} has {counted(int(count), 'missing value')} in "
            f"{counted(len(frame), 'row')}, and these checks leave those rows out; train needs "
            "--missing-groups drop or --missing-groups own",
        )
        for name, count in missing.sum().items()
        if count
    ]
    return known_rows(frame, kinds, task.sensitive, known), findings


def _too_many_categories(rows: Rows, inspection: Inspection) -> Iterator[Finding]:
    """Text with more values than a tree can tell apart, but for identifiers."""
    identifiers = set(inspection.identifiers["column"])
    for name, kind in rows.kinds.items():
        if kind == "text" and name not in identifiers and (holds := many_categories(rows.X[name])):
            words = (
                f"column {name!r} holds {holds}, and trees can tell {MOST_CATEGORIES} apart; join "
                f"rare values, or leave it out with --drop {shlex.quote(name)}"
            )
            yield Finding("unusable", name, float(rows.X[name].nunique()), words)


def _rare_label(rows: Rows) -> Iterator[Finding]:
    """A note where nearly all rows have the same label."""
    share = float((rows.y == rows.positive).mean())
    if _RARE < share < 1 - _RARE:
        return
    other = next(label for label in rows.y if (label == rows.positive) == (share > 0.5))
    words = (
        f"{percent(max(share, 1 - share))} of the rows have the label {str(other)!r}, so that at a "
        "threshold of 0.5 a model may predict it for everyone; train with --selection-rate, the "
        "share of rows to predict positive, or --class-weight balanced"
    )
    yield Finding("rare_label", None, share, words)


def _not_sized(targets: list[Target]) -> Iterator[Finding]:
    """A note for each target whose rows cannot be counted before training."""
    for target in targets:
        statistic = find_statistic(target.metric)
        if not all(map(is_sized, statistic.requirements)):
            words = (
                f"not checked: whether the held-out rows can confirm --max-gap {target.max_gap:g} "
                f"for {statistic.name}; how many it takes depends on the model's predictions"
            )
            yield Finding("not_checked", None, None, words)


def _cut(task: Task, rows: Rows) -> tuple[Task, Rows, list[Finding]]:
    """Sensitive columns of many numbers are cut into the ranges that are proposed."""
    findings, ranges = [], dict(task.ranges)
    for name in columns_to_cut(task, rows.groups):
        values = rows.groups[name]
        if cuts := propose_cuts(values, rows.y == rows.positive):
            ranges[name] = cuts
            words = (
                f"the sensitive column {name!r} has {values.nunique():,} different numbers; name "
                f"ranges, for example --sensitive {cut_option(name, cuts)}, as these checks do"
            )
            findings.append(Finding("ranges", name, float(values.nunique()), words))
    task = replace(task, ranges=ranges)
    groups = cut_columns(rows.frame[task.sensitive], ranges)
    return task, replace(rows, groups=groups), findings


def _level(row: Mapping[Any, Any], look: float) -> str:
    if row["nearly_determines"]:
        return "nearly determines it"
    return "look at" if row["auc"] >= look else ""


def _show_ranking(title: str, table: pd.DataFrame, look: float = np.inf) -> None:
    if table["auc"].isna().all():
        return
    shown = [
        [row["column"], f"{row['auc']:z.3f}", _level(row, look)]
        for row in table.head(_SHOWN).to_dict("records")
    ]
    more = f" (the first {_SHOWN} of {len(table)})" if len(table) > _SHOWN else ""
    show_table(f"{title}{more}", ["column", "AUC, where 0.5 is chance", ""], shown)


def _show_sizes(sizes: RateSizes, names: list[str]) -> None:
    needed = "" if sizes.needed is None else f"{sizes.needed:,}"
    order = np.argsort(sizes.rows, kind="stable")[:_SHOWN]
    shown = [[names[at], f"{sizes.rows[at]:,}", f"{sizes.held_out[at]:,}", needed] for at in order]
    more = f" (the smallest {_SHOWN} of {len(names)} groups)" if len(names) > _SHOWN else ""
    title = f"Rows to confirm a gap of {sizes.max_gap:g} in the {sizes.rate.words}{more}"
    show_table(title, ["group", "rows", "held out", "needed in each group"], shown)
    if sizes.confirmable is not None:
        print_line(
            f"The held-out rows confirm it with a chance of {percent(POWER, 0)} or more if the "
            f"true gap is at most {np.floor(1000 * sizes.confirmable) / 1000:g}."
        )
        print_line()


def _show_missing(missing: pd.DataFrame) -> None:
    if not len(missing):
        return
    spread = missing.max(axis=1) - missing.min(axis=1)
    worst = spread.sort_values(ascending=False, kind="stable").index[:_SHOWN]
    shown = [
        [column, *_share(missing.loc[column], "idxmax"), *_share(missing.loc[column], "idxmin")]
        for column in worst
    ]
    more = f" (the first {_SHOWN} of {len(missing)} columns)" if len(missing) > _SHOWN else ""
    show_table(
        f"Missing values by group, the most and the fewest{more}",
        ["column", "most", "share", "fewest", "share"],
        shown,
    )


def _share(shares: pd.Series, which: str) -> list[str]:
    """The group of the largest or the smallest share, and the share."""
    group = getattr(shares, which)()
    return [str(group), percent(shares[group])]


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    plain = table.astype(object).where(table.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]


def _size_record(sizes: RateSizes, names: list[str]) -> dict[str, Any]:
    return {
        "rate": sizes.rate.name,
        "max_gap": sizes.max_gap,
        "rows": dict(zip(names, sizes.rows.tolist(), strict=True)),
        "held_out": dict(zip(names, sizes.held_out.tolist(), strict=True)),
        "needed": sizes.needed,
        "confirmable_gap": sizes.confirmable,
        "smallest_max_gap": sizes.smallest,
    }
