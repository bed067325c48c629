"""``fairproj frontier``: what a smaller gap costs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from sklearn.base import clone

from fairproj import FairProjClassifier
from fairproj.io.atomic import whole, write
from fairproj.report.plots import matplotlib
from fairproj.cli import _rows
from fairproj.cli._common import (
    AsJson,
    Force,
    Jobs,
    app,
    in_a_sentence,
    print_json,
    refuse_to_overwrite,
    say,
    show_table,
)
from fairproj.cli._rows import Question, Rows, read_rows
from fairproj.cli._train import Gap
from fairproj.report import frontier_content
from fairproj.report._summary import WAYS
from fairproj.selection import Frontier, fairness_frontier


@app.command(
    help="Fit along epsilon with cross-validation: what a smaller gap costs in accuracy.\n\n"
    "fairproj frontier adult.csv --label income --sensitive sex -o frontier.png",
    short_help="What a smaller gap costs.",
)
@in_a_sentence
def frontier(
    data: Annotated[Path, typer.Argument(help="CSV, Parquet, Feather or Arrow.")],
    label: _rows.Label,
    sensitive: _rows.Sensitive,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .png or .svg picture, or a .csv of every fit."),
    ] = None,
    metric: Annotated[Gap, typer.Option(help="The gap.")] = Gap.equal_opportunity,
    epsilons: Annotated[
        str, typer.Option(help="Values to try, with commas between.")
    ] = "0.01,0.02,0.05,0.1,0.2,0.3",
    folds: Annotated[int, typer.Option(min=2)] = 5,
    positive: _rows.Positive = None,
    drop: _rows.Drop = None,
    use_sensitive: _rows.UseSensitive = False,
    rounds: Annotated[int, typer.Option(help="The most rounds of boosting.", min=1)] = 100,
    depth: Annotated[int | None, typer.Option(help="Depth of the trees.", min=1)] = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    refuse_to_overwrite([output], force, [data])
    if output is not None and output.suffix.lower() not in (".png", ".svg", ".csv"):
        raise ValueError(f"{output} has a name of unknown kind; name a .png, .svg or .csv file")
    rows = read_rows(data, Question(label, sensitive, positive, drop, use_sensitive))
    template = FairProjClassifier(
        metric.constraint, n_estimators=rounds, max_depth=depth, pos_label=rows.positive
    )
    found = both_ways(template, rows, _values(epsilons), folds, jobs, as_json)
    content = frontier_content(found, metric.value)
    if as_json:
        print_json(content)
    else:
        _show(content)
    if output is not None:
        _write(found, metric.value, output)
        if not as_json:
            say(f"Written: {output}")


def both_ways(
    template: FairProjClassifier,
    rows: Rows,
    epsilons: list[float],
    folds: int,
    jobs: int,
    quiet: bool,
) -> list[Frontier]:
    """The frontiers of both ways to enforce; an interrupt ends the command, with nothing half."""
    found = []
    for way, name in WAYS.items():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="interrupted")
            one = fairness_frontier(
                clone(template).set_params(enforce=way),
                rows.X,
                rows.y,
                sensitive_features=rows.groups,
                epsilons=epsilons,
                cv=folds,
                name=name,
                n_jobs=jobs,
                verbose=not quiet,
            )
        if len(one.fits) < len(set(epsilons)) * folds:
            raise KeyboardInterrupt
        found.append(one)
    return found


def _values(text: str) -> list[float]:
    try:
        return [float(value) for value in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--epsilons {text} must be numbers with commas between, such as 0.01,0.05,0.1"
        ) from None


def _show(content: dict[str, Any]) -> None:
    def with_error(point: dict[str, Any], name: str) -> str:
        error = point[f"{name}_se"]
        return f"{point[name]:.3f}" + ("" if error is None else f" ± {error:.3f}")

    show_table(
        f"Accuracy and {content['gap_name']}",
        ["what epsilon bounds", "epsilon", "accuracy", "gap", "best of its kind"],
        [
            [
                point["series"],
                f"{point['value']:g}",
                with_error(point, "score"),
                with_error(point, "gap"),
                "yes" if point["best"] else "",
            ]
            for point in content["points"]
        ],
    )


def _write(found: list[Frontier], metric: str, output: Path) -> None:
    if output.suffix.lower() == ".csv":
        fits = [one.fits.assign(enforce=way) for way, one in zip(WAYS, found, strict=True)]
        write(output, pd.concat(fits).to_csv(index=False))
        return
    figure = matplotlib().figure.Figure(figsize=(6.4, 4.4), layout="constrained")
    ax = figure.subplots()
    for one, marker in zip(found, "^o", strict=True):
        one.plot(metric, ax=ax, marker=marker)
    ax.legend()
    with whole(output) as partial:
        figure.savefig(partial, dpi=150, format=output.suffix[1:].lower())
