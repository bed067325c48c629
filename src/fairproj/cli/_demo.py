"""``fairproj demo``: everything once, on data that come with the package."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from fairproj._files import whole
from fairproj.cli._common import Force, app, as_typed, in_a_sentence, refuse_to_overwrite, say
from fairproj.datasets import load_german


@app.command(
    help="Train on German Credit, audit, and write a report: into the folder fairproj-demo."
)
@in_a_sentence
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")] = Path(
        "fairproj-demo"
    ),
    force: Force = False,
) -> None:
    data, model, page = (output / name for name in ("german.csv", "model.fairproj", "report.html"))
    output.mkdir(parents=True, exist_ok=True)
    refuse_to_overwrite([data, model, page], force)
    german = load_german()
    with whole(data) as partial:
        german.frame.to_csv(partial, index=False)
    asked = ["--label", str(german.target.name), "--sensitive", "sex", "--epsilon", "0.1"]
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
