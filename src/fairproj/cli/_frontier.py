"""``fairproj frontier``: what a smaller gap costs in accuracy."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from fairproj import FairBoostClassifier, FairProjClassifier
from fairproj.cli import _task
from fairproj.cli._app import AsJson, Force, Jobs, report_errors, statistic_option
from fairproj.cli._columns import check_groups_of_training
from fairproj.cli._console import print_json, print_line, show_table
from fairproj.cli._files import DataPath, check_outputs
from fairproj.cli._rows import Rows, read_rows
from fairproj.cli._task import Task, parse_sensitive
from fairproj.cli._train_options import (
    FIT,
    ClassWeightOption,
    Rounds,
    SelectionRate,
    Threshold,
    plain_value,
)
from fairproj.constraints import find_statistic
from fairproj.io.atomic import atomic_path, write_text
from fairproj.io.figures import matplotlib
from fairproj.io.tables import DataFile
from fairproj.report import frontier_content
from fairproj.report._frontier import METHODS
from fairproj.selection import Frontier, fairness_frontier


@report_errors
def frontier(
    data: DataPath,
    label: _task.Label,
    sensitive: _task.Sensitive,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .png or .svg figure, or a .csv of all fits."),
    ] = None,
    metric: Annotated[
        str, statistic_option("The gap to constrain and to measure.", constraint=True)
    ] = "equal_opportunity",
    values: Annotated[
        str,
        typer.Option(
            help="Values to try, separated by commas: of max_gap for FairBoost, of epsilon for the "
            "paper."
        ),
    ] = "0.01,0.02,0.05,0.1,0.2,0.3",
    folds: Annotated[int, typer.Option(help="Number of folds.", min=2)] = 5,
    positive: _task.Positive = None,
    drop: _task.Drop = None,
    use_sensitive: _task.UseSensitive = False,
    missing_groups: _task.MissingGroupsOption = _task.MissingGroups.error,
    threshold: Threshold = None,
    selection_rate: SelectionRate = None,
    class_weight: ClassWeightOption = None,
    rounds: Rounds = 100,
    depth: Annotated[
        int | None,
        typer.Option(
            help="Depth of the trees; by default any, or 1 for the paper.",
            min=1,
            rich_help_panel=FIT,
        ),
    ] = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Show what a smaller gap costs in accuracy.

    fairproj frontier adult.csv --label income --sensitive sex -o frontier.png

    Both methods are fitted along a range of targets, with cross-validation; for the selection
    ratio, which the paper's cannot bound, and with --threshold, --selection-rate and
    --class-weight, which it does not have, FairBoost alone.
    """
    check_outputs([output], force=force, inputs=[data])
    if output is not None and output.suffix.lower() not in (".png", ".svg", ".csv"):
        raise ValueError(f"{output} has an unknown suffix; name a .png, .svg or .csv file")
    numbers = _parse_values(values)
    names, ranges = parse_sensitive(sensitive, DataFile.from_path(data).column_names())
    task = Task(label, names, positive, drop, use_sensitive, ranges, missing_groups=missing_groups)
    rows = read_rows(data, task, timed=False)
    check_groups_of_training(data, task, rows.groups, rows.y == rows.positive)
    point: dict[str, Any] = {
        "threshold": threshold,
        "selection_rate": selection_rate,
        "class_weight": plain_value(class_weight),
    }
    point = {name: value for name, value in point.items() if value is not None}
    estimators = [
        estimator(metric, n_estimators=rounds, max_depth=depth, pos_label=rows.positive, **point)
        for estimator in ([FairBoostClassifier] if point else methods_for(metric))
    ]
    frontiers = fit_frontiers(estimators, rows, numbers, folds, jobs, verbose=not as_json)
    content = frontier_content(frontiers, metric)
    if as_json:
        print_json(content)
    else:
        _show(content)
    if output is not None:
        _write(frontiers, metric, output)
        if not as_json:
            print_line(f"Written: {output}")


def methods_for(metric: str) -> list[Any]:
    """The classifiers that can bound this gap."""
    if find_statistic(metric).kind == "ratio":
        return [FairBoostClassifier]
    return [FairBoostClassifier, FairProjClassifier]


def fit_frontiers(
    estimators: Sequence[Any],
    rows: Rows,
    values: list[float],
    folds: int,
    jobs: int,
    *,
    verbose: bool,
) -> list[Frontier]:
    """The frontier of each estimator; an interrupt ends the command without any of them."""
    frontiers = []
    for estimator in estimators:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="interrupted")
            frontier = fairness_frontier(
                estimator,
                rows.X,
                rows.y,
                sensitive_features=rows.groups,
                param_values=values,
                cv=folds,
                name=METHODS[type(estimator).__name__],
                n_jobs=jobs,
                verbose=verbose,
            )
        if len(frontier.fits) < len(set(values)) * folds:
            raise KeyboardInterrupt
        frontiers.append(frontier)
    return frontiers


def _parse_values(text: str) -> list[float]:
    try:
        return [float(value) for value in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--values {text} must be numbers separated by commas, such as 0.01,0.05,0.1"
        ) from None


def _show(content: dict[str, Any]) -> None:
    show_table(
        f"Accuracy and {content['gap_name']}",
        ["method", "parameter", "value", "accuracy", "gap", "on its frontier"],
        [
            [
                point["series"],
                point["parameter"],
                f"{point['value']:g}",
                _with_error(point, "score"),
                _with_error(point, "gap"),
                "yes" if point["best"] else "" if point["useful"] else "not useful",
            ]
            for point in content["points"]
        ],
    )
    if not all(point["useful"] for point in content["points"]):
        print_line(
            "Models that are not useful say the same to nearly everyone, or are no better than "
            "chance; they are on no frontier. With rare labels add --class-weight balanced or "
            "--selection-rate."
        )


def _with_error(point: dict[str, Any], name: str) -> str:
    value, error = point[name], point[f"{name}_se"]
    if value is None:
        return "unknown"
    return f"{value:z.3f}" + ("" if error is None else f" ± {error:z.3f}")


def _write(frontiers: list[Frontier], metric: str, output: Path) -> None:
    if output.suffix.lower() == ".csv":
        tables = [
            one.fits.rename(columns={one.parameter: "value"}).assign(
                method=one.name, parameter=one.parameter
            )
            for one in frontiers
        ]
        write_text(output, pd.concat(tables).to_csv(index=False))
        return
    figure = matplotlib().figure.Figure(figsize=(6.4, 4.4), layout="constrained")
    ax = figure.subplots()
    for one, marker in zip(frontiers, "^o", strict=False):
        one.plot(metric, ax=ax, marker=marker)
    figure.legend(loc="outside lower center", ncols=2)
    with atomic_path(output) as partial:
        figure.savefig(partial, dpi=150, format=output.suffix[1:].lower())
