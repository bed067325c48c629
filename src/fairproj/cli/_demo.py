"""``fairproj demo``: everything once, on data that come with the package."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from fairproj._files import whole
from fairproj.cli._common import Force, app, as_typed, in_a_sentence, refuse_to_overwrite, say
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
    for line in (
        ["train", str(data), *asked, "-o", str(model)],
        ["report", str(model), str(data), "-o", str(page)],
    ):
        again = [*line, "--force"] if force else line
        say(f"$ {shlex.join(['fairproj', *again])}")
        with as_typed(again):
            code = get_command(app).main(again, standalone_mode=False)
        if code:
            raise typer.Exit(code)
        say()
    say(f"Open {page} in a browser.")
