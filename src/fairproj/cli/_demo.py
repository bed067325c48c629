"""``fairproj demo``: everything once, on data that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairproj._files import whole
from fairproj.cli._common import app, in_a_sentence, say
from fairproj.cli._report import report
from fairproj.cli._train import train
from fairproj.datasets import load_german


@app.command(
    help="Train on German Credit, audit, and write a report: into the folder fairproj-demo."
)
@in_a_sentence
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")] = Path(
        "fairproj-demo"
    ),
) -> None:
    output.mkdir(parents=True, exist_ok=True)
    data, model, page = (output / name for name in ("german.csv", "model.fairproj", "report.html"))
    german = load_german()
    with whole(data) as partial:
        german.frame.to_csv(partial, index=False)
    label = str(german.target.name)
    say(f"$ fairproj train {data} --label {label} --sensitive sex --epsilon 0.1 -o {model}")
    train(data, label, ["sex"], model, epsilon=0.1, force=True)
    say()
    say(f"$ fairproj report {model} {data} -o {page}")
    report([model, data], [page], force=True)
    say(f"Open {page} in a browser.")
