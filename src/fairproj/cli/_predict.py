"""``fairproj predict``: labels for the rows of a file of any size, in chunks."""

from __future__ import annotations

import time
import warnings
from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from fairproj import FairProjClassifier
from fairproj.io.prefetch import ahead
from fairproj.io.tables import DataFile, as_frame, write_chunks
from fairproj.data.checks import listing
from fairproj.cli._common import (
    AsJson,
    Force,
    app,
    in_a_sentence,
    not_zero,
    print_json,
    refuse_to_overwrite,
    say,
)
from fairproj.cli._model import ModelFile, Trust, open_model, refuse_swapped
from fairproj.cli._record import types_of

_MOST_TOLD = 8


@app.command(
    help="Predict the label of each row of a file, of any size: it is read in chunks.\n\n"
    "fairproj predict model.fairproj new.parquet -o predicted.parquet --keep id\n\n"
    "The output has the columns named by --keep, 'prediction', and 'probability' of the positive "
    "label. A file that is there is not replaced, and a run that is stopped leaves none.",
    short_help="Predict the rows of a file.",
)
@in_a_sentence
def predict(
    model: ModelFile,
    data: Annotated[Path, typer.Argument(help="CSV, Parquet, Feather or Arrow.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .csv, .parquet or .feather file to write.")
    ],
    keep: Annotated[
        list[str] | None, typer.Option(help="A column to copy into the output; may be repeated.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Threads; -1 is one for each core.", callback=not_zero)
    ] = -1,
    trust: Trust = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    refuse_to_overwrite([output], force, [model, data])
    refuse_swapped(model, data)
    source = DataFile.of(data)
    found = open_model(model, trust).set_params(n_jobs=jobs)
    # Said once and of all rows, at the end; the library can only speak of a chunk.
    warnings.filterwarnings("ignore", "column .* has no value known from training")
    unknown = Unknown()
    start = time.perf_counter()
    with closing(_predicted(found, source, keep or [], unknown)) as chunks:
        rows = write_chunks(output, chunks)
    seconds = time.perf_counter() - start
    if as_json:
        counts = None if found.estimator is not None else unknown.counts
        print_json({"output": str(output), "rows": rows, "seconds": seconds, "unknown": counts})
        return
    say(f"{rows:,} rows in {seconds:.1f} s: {output}")
    if unknown.counts:
        say(unknown.sentence(rows))


class Unknown:
    """How many values of each column were not known from training, and one of them."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._first: dict[str, Any] = {}

    def add(self, values: Mapping[str, pd.Series]) -> None:
        for name, some in values.items():
            if len(some):
                self.counts[name] = self.counts.get(name, 0) + len(some)
                self._first.setdefault(name, some.iloc[:1].tolist()[0])

    def sentence(self, rows: int) -> str:
        most = sorted(self.counts, key=self.counts.__getitem__, reverse=True)
        told = [
            f"{self.counts[name]:,} of {rows:,} values of {name!r} (such as {self._first[name]!r})"
            for name in most[:_MOST_TOLD]
        ]
        more = (
            f", and some of {len(most) - len(told)} columns more" if len(most) > len(told) else ""
        )
        return f"Not known from training, so taken as missing: {', '.join(told)}{more}."


def _predicted(
    model: FairProjClassifier, source: DataFile, keep: list[str], unknown: Unknown
) -> Generator[Any, None, None]:
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

    def encoded(chunk: Any) -> tuple[Any, Any]:
        frame = as_frame(chunk, features)
        matrix = model.to_matrix(frame)
        if model.estimator is None:
            unknown.add(model._encoder.unknown(frame, matrix))
        return chunk, matrix

    # Reading and encoding go on in a thread while the trees are asked, which needs no interpreter.
    read = map(encoded, source.chunks(wanted, types_of(model), as_is=keep))
    for chunk, matrix in ahead(read):
        margin = model._ensemble.margin(matrix)
        columns = {name: chunk.column(name) for name in keep}
        columns["prediction"] = model._labels(margin)
        columns["probability"] = model._probabilities(margin)[:, positive]
        yield type(chunk).from_pydict(columns)
