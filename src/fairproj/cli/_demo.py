"""``fairproj demo``: train and report on data that come with the package."""

from __future__ import annotations

import io
import json
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from fairproj.cli._app import AsJson, Force, app, report_errors, use_arguments
from fairproj.cli._console import print_json, print_line
from fairproj.cli._files import check_outputs
from fairproj.datasets import load_adult
from fairproj.io.atomic import atomic_path


@report_errors
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")] = Path(
        "fairproj-demo"
    ),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on the Adult data, audit it and write a report.

    Everything is written to the folder fairproj-demo, or the one that --output names.
    """
    data, model, page = (output / name for name in ("adult.csv", "model.fairproj", "report.html"))
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"the folder {output} cannot be created: {error.strerror}; name another"
        ) from None
    check_outputs([data, model, page], force=force)
    with atomic_path(data) as partial:
        load_adult().frame.to_csv(partial, index=False)
    options = ["--label", "income", "--sensitive", "sex", "--drop", "fnlwgt", "--max-gap", "0.05"]
    commands = [
        ["train", str(data), *options, "-o", str(model)],
        ["report", str(model), str(data), "--frontier", "-o", str(page)],
    ]
    if force:
        commands = [[*command, "--force"] for command in commands]
    if as_json:
        print_json({command[0]: json.loads(_capture([*command, "--json"])) for command in commands})
        return
    for command in commands:
        print_line(f"$ {shlex.join(['fairproj', *command])}")
        _run(command)
        print_line()
    print_line(f"Open {page} in a browser.")


def _run(arguments: list[str]) -> None:
    with use_arguments(arguments):
        code = get_command(app).main(arguments, standalone_mode=False)
    if code:
        raise typer.Exit(code)


def _capture(arguments: list[str]) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        _run(arguments)
    return printed.getvalue()
