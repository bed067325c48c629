"""``fairproj predict``: labels for the rows of a file of any size, in chunks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from fairproj import FairProjClassifier, load
from fairproj._ahead import ahead
from fairproj._data_files import DataFile, as_frame, write_chunks
from fairproj._validation import listing
from fairproj.cli._common import (
    AsJson,
    Force,
    app,
    in_a_sentence,
    print_json,
    refuse_to_overwrite,
    say,
)
from fairproj.cli._record import types_of


@app.command(
    help="Predict the label of each row of a file, of any size: it is read in chunks.\n\n"
    "fairproj predict model.fairproj new.parquet -o predicted.parquet --keep id\n\n"
    "The output has the columns named by --keep, 'prediction', and 'probability' of the positive "
    "label. A file that is there is not replaced, and a run that is stopped leaves none.",
    short_help="Predict the rows of a file.",
)
@in_a_sentence
def predict(
    model: Annotated[Path, typer.Argument(help="A file of fairproj train or model.save().")],
    data: Annotated[Path, typer.Argument(help="CSV, Parquet, Feather or Arrow.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .csv, .parquet or .feather file to write.")
    ],
    keep: Annotated[
        list[str] | None, typer.Option(help="A column to copy into the output; may be repeated.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 is one for each core.")] = -1,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    refuse_to_overwrite([output], force, [model, data])
    source = DataFile.of(data)
    found = load(model).set_params(n_jobs=jobs)
    start = time.perf_counter()
    rows = write_chunks(output, _predicted(found, source, keep or []))
    seconds = time.perf_counter() - start
    if as_json:
        print_json({"output": str(output), "rows": rows, "seconds": seconds})
    else:
        say(f"{rows:,} rows in {seconds:.1f} s: {output}")


def _predicted(model: FairProjClassifier, source: DataFile, keep: list[str]) -> Iterator[Any]:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            "the model was trained on an array without column names, so columns of a file cannot "
            "be told; use fairproj.load and predict on an array"
        )
    clash = sorted({"prediction", "probability"} & set(keep))
    if clash:
        raise ValueError(f"--keep {listing(clash)} would hide a column of the output")
    features = [str(name) for name in names]
    wanted = list(dict.fromkeys([*features, *keep]))
    positive = 1 if model.pos_label is None else model.classes_.tolist().index(model.pos_label)
    # Reading and encoding go on in a thread while the trees are asked, which needs no interpreter.
    read = (
        (chunk, model.to_matrix(as_frame(chunk, features)))
        for chunk in source.chunks(wanted, types_of(model), as_is=keep)
    )
    for chunk, matrix in ahead(read):
        margin = model._ensemble.margin(matrix)
        columns = {name: chunk.column(name) for name in keep}
        columns["prediction"] = model._labels(margin)
        columns["probability"] = model._probabilities(margin)[:, positive]
        yield type(chunk).from_pydict(columns)
