"""``fairproj reproduce``: the paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairproj.cli._app import INTERRUPTED, AsJson, Jobs, report_errors
from fairproj.cli._console import print_json


@report_errors
def reproduce(
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Run two splits and few epsilons, which takes 1-2 minutes."),
    ] = False,
    readings: Annotated[
        bool,
        typer.Option(
            "--readings", help="Vary what the paper leaves open, instead of repeating its tables."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder for results, tables and figures; the page is written beside it, with .md "
            "added. By default named after what is run, in the current folder."
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard existing results and run everything again.")
    ] = False,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments.

    The results are compared with the paper's. Finished fits are saved at once: after Ctrl-C, the
    same command continues where it stopped. When everything is done, it only draws tables and
    figures.
    """
    from fairproj.experiments import reproduce as run

    plan = "readings" if readings else "paper"
    name = ("readings" if readings else "reproduction") + ("-quick" if quick else "")
    folder = output or Path(name)
    if not folder.name:
        raise typer.BadParameter(
            "it must name a folder, such as reproduction", param_hint="--output"
        )
    try:
        page = run(folder, plan=plan, quick=quick, fresh=fresh, n_jobs=jobs, verbose=not as_json)
    except KeyboardInterrupt:
        typer.echo(
            f"Interrupted. Finished fits are in {folder}; run the same command to continue.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        raise ValueError(f"{folder} cannot be written: {error}; choose another --output") from None
    if as_json:
        print_json({"page": str(page), "folder": str(folder)})
        return
    typer.echo(f"Page: {page}")
    typer.echo(f"Results, tables and figures: {folder}")
