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

from fairproj.cli._app import AsJson, Force, check_jobs, report_errors
from fairproj.cli._console import print_json, print_line
from fairproj.cli._files import (
    DataPath,
    ModelPath,
    Trust,
    check_order,
    check_outputs,
    feature_names,
    feature_types,
    open_model,
)
from fairproj.cli._rows import check_kinds
from fairproj.data.checks import listing
from fairproj.io.prefetch import prefetch
from fairproj.io.table_types import column_kinds, to_frame
from fairproj.io.table_writer import write_chunks
from fairproj.io.tables import DataFiles

_MOST_COLUMNS = 8  # in the sentence about unknown values


@report_errors
def predict(
    model: ModelPath,
    data: DataPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .csv, .parquet or .feather file to write.")
    ],
    keep: Annotated[
        list[str] | None, typer.Option(help="A column to copy into the output. May be repeated.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Number of threads; -1 for all cores.", callback=check_jobs)
    ] = -1,
    trust: Trust = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Predict the label of each row of a file of any size.

    fairproj predict model.fairproj new.parquet -o predicted.parquet --keep id

    A folder or a pattern such as 'new/*.parquet' names all data files in it.

    The output has the columns named by --keep, 'prediction', and 'probability' of the positive
    label. The input is read in chunks, and a run that is interrupted writes no output.
    """
    check_order(model, data)
    files = DataFiles.from_paths([data])
    check_outputs([output], force=force, inputs=[model, *(file.path for file in files.files)])
    opened = open_model(model, trust).set_params(n_jobs=jobs)
    features = feature_names(opened, model)
    # The library can warn about single chunks only; all unknown values are counted below.
    warnings.filterwarnings("ignore", "column .* has no value known from training")
    unknown = UnknownValues()
    start = time.perf_counter()
    with closing(_predict_chunks(opened, features, files, keep or [], unknown)) as chunks:
        rows = write_chunks(output, chunks)
    seconds = time.perf_counter() - start
    if as_json:
        counts = None if opened.encoding_ is None else unknown.counts
        print_json({"output": str(output), "rows": rows, "seconds": seconds, "unknown": counts})
        return
    print_line(f"{rows:,} rows in {seconds:.1f} s: {output}")
    if unknown.counts:
        print_line(unknown.sentence(rows))


class UnknownValues:
    """The number of values in each column that training did not have, with an example."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._examples: dict[str, Any] = {}

    def add(self, unknown: Mapping[str, pd.Series]) -> None:
        for name, values in unknown.items():
            if len(values):
                self.counts[name] = self.counts.get(name, 0) + len(values)
                self._examples.setdefault(name, values.iloc[:1].tolist()[0])

    def sentence(self, rows: int) -> str:
        names = sorted(self.counts, key=self.counts.__getitem__, reverse=True)
        parts = [
            f"{self.counts[name]:,} of {rows:,} values of {name!r} (such as "
            f"{self._examples[name]!r})"
            for name in names[:_MOST_COLUMNS]
        ]
        if len(names) > _MOST_COLUMNS:
            parts.append(f"and values of {len(names) - _MOST_COLUMNS} more columns")
        return f"Unknown from training and treated as missing: {', '.join(parts)}."


def _predict_chunks(
    model: Any, features: list[str], data: DataFiles, keep: list[str], unknown: UnknownValues
) -> Generator[Any, None, None]:
    clash = sorted({"prediction", "probability"} & set(keep))
    if clash:
        raise ValueError(
            f"--keep {listing(clash)} has the name of a column of the output; rename it first"
        )
    positive = 1 if model.pos_label is None else model.classes_.tolist().index(model.pos_label)
    types = feature_types(model, features)

    def encode(chunk: Any) -> tuple[Any, Any]:
        if types:
            check_kinds(data.name, column_kinds(chunk), features, "as they were in training")
        frame = to_frame(chunk, features)
        matrix = model.to_matrix(frame)
        unknown.add(model.unknown_values(frame, matrix))
        return chunk, matrix

    # Reading and encoding run in a thread beside the trees, which do not hold the interpreter.
    columns = list(dict.fromkeys([*features, *keep]))
    chunks = data.chunks(columns, types, text_columns=keep)
    for chunk, matrix in prefetch(map(encode, chunks)):
        labels, probabilities = model.predict_matrix(matrix)
        output = {name: chunk.column(name) for name in keep}
        output |= {"prediction": labels, "probability": probabilities[:, positive]}
        yield type(chunk).from_pydict(output)
