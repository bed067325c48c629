"""``fairproj reproduce``: the paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairproj.cli._common import AsJson, Jobs, app, in_a_sentence, print_json


@app.command(
    help="Run the paper's experiments: its tables and figures, ours beside the paper's.\n\n"
    "Finished fits are kept as they come. Stopped with Ctrl-C, the command goes on from there when "
    "it is started again; started once more when all is done, it only draws.",
    short_help="The paper's experiments.",
)
@in_a_sentence
def reproduce(
    quick: Annotated[
        bool, typer.Option("--quick", help="Two splits and few epsilons: a minute or two.")
    ] = False,
    readings: Annotated[
        bool,
        typer.Option("--readings", help="Vary what the paper leaves open, instead of its tables."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder of results, tables and figures; the page is written beside it, with .md "
            "added. By default named after what is run, in the current folder."
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard results that are there and run everything.")
    ] = False,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
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
        typer.echo(f"Stopped. What is done is in {folder}; the same command goes on.", err=True)
        raise typer.Exit(130) from None
    except OSError as error:
        raise ValueError(f"{folder} cannot be written: {error}; choose another --output") from None
    if as_json:
        print_json({"page": str(page), "folder": str(folder)})
        return
    typer.echo(f"Page: {page}")
    typer.echo(f"Results, tables and figures: {folder}")
