"""``fairproj demo``: everything once, on data that come with the package."""

from __future__ import annotations

import io
import json
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from fairproj.io.atomic import whole
from fairproj.cli._common import (
    AsJson,
    Force,
    app,
    as_typed,
    in_a_sentence,
    print_json,
    refuse_to_overwrite,
    say,
)
from fairproj.datasets import load_adult


@app.command(
    help="Train on Adult, audit, and write a report: into the folder fairproj-demo.",
    short_help="Everything once, on Adult.",
)
@in_a_sentence
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")] = Path(
        "fairproj-demo"
    ),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    data, model, page = (output / name for name in ("adult.csv", "model.fairproj", "report.html"))
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"{output} cannot be made a folder: {error.strerror}; name another"
        ) from None
    refuse_to_overwrite([data, model, page], force)
    adult = load_adult()
    with whole(data) as partial:
        adult.frame.to_csv(partial, index=False)
    asked = ["--label", "income", "--sensitive", "sex", "--drop", "fnlwgt", "--epsilon", "0.05"]
    told = {}
    for line in (
        ["train", str(data), *asked, "-o", str(model)],
        ["report", str(model), str(data), "-o", str(page)],
    ):
        again = [*line, "--force"] if force else line
        if as_json:
            told[line[0]] = json.loads(_printed([*again, "--json"]))
            continue
        say(f"$ {shlex.join(['fairproj', *again])}")
        _run(again)
        say()
    if as_json:
        print_json(told)
    else:
        say(f"Open {page} in a browser.")


def _run(line: list[str]) -> None:
    with as_typed(line):
        code = get_command(app).main(line, standalone_mode=False)
    if code:
        raise typer.Exit(code)


def _printed(line: list[str]) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        _run(line)
    return printed.getvalue()
