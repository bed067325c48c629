"""``fairproj predict``: labels for the rows of a file of any size, in chunks."""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import typer

from fairproj.cli._app import AsJson, Force, check_jobs, report_errors
from fairproj.cli._columns import check_kinds
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
from fairproj.cli._reasons import Reasons
from fairproj.cli._train_options import check_share
from fairproj.cli._unseen import Missing, UnseenValues
from fairproj.data.checks import counted, listing
from fairproj.data.user_warning import warn_user
from fairproj.io.prefetch import prefetch
from fairproj.io.table_types import column_kinds, to_frame
from fairproj.io.table_writer import write_chunks
from fairproj.io.tables import DataFiles
from fairproj.report._training import not_frequencies


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
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Predict the positive label where its probability is above this number, instead "
            "of where the model decides. Rates and gaps differ there.",
            callback=check_share,
        ),
    ] = None,
    reasons: Annotated[
        int | None,
        typer.Option(
            help="Add the features that pushed each row most towards its prediction, at most N, "
            "and what each added to the log-odds of the positive label.",
            metavar="N",
        ),
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(
            help="For rows with a value that is missing where training had none missing, or with "
            "a category that training did not have: stop, score them all the same, or leave their "
            "predictions empty."
        ),
    ] = Missing.error,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            help="In a .csv file, put an apostrophe before texts and column names that a "
            "spreadsheet would take for formulas (=, +, -, @)."
        ),
    ] = False,
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

    The output has the columns named by --keep, 'prediction', and the probability of the positive
    label, in a column named by it, such as 'probability_repaid'. The input is read in chunks, and
    a run that is interrupted writes no output.
    """
    check_order(model, data)
    files = DataFiles.from_paths([data])
    check_outputs([output], force=force, inputs=[model, *(file.path for file in files.files)])
    opened = open_model(model, trust).set_params(n_jobs=jobs)
    prediction = _Prediction.of(
        opened, feature_names(opened, model), keep or [], threshold, reasons, missing
    )
    # The library can warn about single chunks only; all unknown values are counted below.
    warnings.filterwarnings("ignore", "column .* has no value known from training")
    start = time.perf_counter()
    with closing(prediction.chunks(files)) as chunks:
        rows = write_chunks(output, chunks, spreadsheet_safe=spreadsheet_safe)
    seconds = time.perf_counter() - start
    unseen = prediction.unseen
    if as_json:
        content = {"output": str(output), "rows": rows, "seconds": seconds, "missing": missing.name}
        content["probability"] = probability_column(opened)
        content["threshold"] = _own_threshold(opened) if threshold is None else threshold
        content["unseen"] = None if opened.encoding_ is None else unseen.to_dict()
        print_json(content)
        return
    print_line(f"{counted(rows, 'row')} in {seconds:.1f} s: {output}")
    if note := not_frequencies(opened):
        print_line(f"{note} This is about the column {probability_column(opened)!r}.")
    if unseen.n_affected:
        print_line(unseen.sentence(missing))


@dataclass(frozen=True)
class _Chunk:
    """Some rows: as read, as features, encoded, and with notes on some of them."""

    table: pa.Table
    frame: pd.DataFrame
    matrix: Any
    notes: Mapping[int, str]


@dataclass(frozen=True)
class _Prediction:
    """What to predict, and how."""

    model: Any
    features: list[str]
    keep: list[str]
    threshold: float | None  # None: where the model decides
    reasons: Reasons | None
    missing: Missing
    unseen: UnseenValues

    @classmethod
    def of(
        cls,
        model: Any,
        features: list[str],
        keep: list[str],
        threshold: float | None,
        n_reasons: int | None,
        missing: Missing,
    ) -> _Prediction:
        if model.encoding_ is None and missing is not Missing.error:
            raise ValueError(
                f"--missing {missing.name} is for the built-in trees, and this model has an "
                "estimator of your own, which reads the columns itself; leave it out"
            )
        if threshold is not None:
            threshold = _check_threshold(model, threshold)
        reasons = None
        if n_reasons is not None:
            reasons = Reasons(model, features, n_reasons, _positive(model))
        prediction = cls(model, features, keep, threshold, reasons, missing, UnseenValues(model))
        clash = sorted(set(prediction._own_columns) & set(keep))
        if clash:
            raise ValueError(
                f"--keep {listing(clash)} has the name of a column of the output; rename it first"
            )
        return prediction

    @property
    def _own_columns(self) -> list[str]:
        note = [] if self.missing is Missing.error else ["note"]
        reasons = [] if self.reasons is None else self.reasons.columns
        return ["prediction", probability_column(self.model), *reasons, *note]

    def chunks(self, data: DataFiles) -> Generator[pa.Table, None, None]:
        """The rows of the output; with ``--missing error``, an error after all rows are read."""
        refuse = self.missing is Missing.error
        # Reading and encoding run in a thread beside the trees, which do not hold the interpreter.
        for chunk in prefetch(self._encoded(data)):
            if not (refuse and self.unseen.n_affected):
                yield pa.table(self._copied(chunk) | self._noted(chunk, self._predicted(chunk)))
        if refuse and self.unseen.n_affected:
            raise ValueError(self.unseen.refusal())

    def _encoded(self, data: DataFiles) -> Iterator[_Chunk]:
        types = feature_types(self.model, self.features)
        columns = list(dict.fromkeys([*self.features, *self.keep]))
        for table in data.chunks(columns, types, text_columns=self.keep):
            if types:
                check_kinds(
                    data.name, column_kinds(table), self.features, "as they were in training"
                )
            frame = to_frame(table, self.features)
            matrix = self.model.to_matrix(frame, missing="score")
            yield _Chunk(table, frame, matrix, self.unseen.add(frame, matrix))

    def _copied(self, chunk: _Chunk) -> dict[str, Any]:
        return {name: chunk.table.column(name) for name in self.keep}

    def _predicted(self, chunk: _Chunk) -> dict[str, Any]:
        labels, probabilities = self.model.predict_matrix(chunk.matrix)
        classes, positive = self.model.classes_, _positive(self.model)
        probability = probabilities[:, positive]
        chosen = labels == classes[positive]
        if self.threshold is not None:
            chosen = probability > self.threshold
        labels = classes[np.where(chosen, positive, 1 - positive)]
        output = {
            "prediction": pa.array(labels, pa.array(classes).type),
            probability_column(self.model): pa.array(probability),
        }
        if self.reasons is not None:
            output |= self.reasons.explain(chunk.frame, chunk.matrix, chosen)
        return output

    def _noted(self, chunk: _Chunk, output: dict[str, Any]) -> dict[str, Any]:
        """The columns with notes, and without the predictions of rows to skip."""
        if self.missing is Missing.error:
            return output
        notes = pa.array([chunk.notes.get(row) for row in range(len(chunk.frame))], pa.string())
        if self.missing is Missing.skip:
            kept = pa.compute.is_null(notes)
            output = {
                name: pa.compute.if_else(kept, values, pa.scalar(None, values.type))
                for name, values in output.items()
            }
        return output | {"note": notes}


def _positive(model: Any) -> int:
    """The position of the positive label."""
    return 1 if model.pos_label is None else int(model.classes_.tolist().index(model.pos_label))


def probability_column(model: Any) -> str:
    """The name of the column with the probability of the positive label, which it names."""
    label = re.sub(r"[^\w.<>=+-]+", "_", str(model.classes_[_positive(model)]))
    return f"probability_{label}"


def _own_threshold(model: Any) -> float:
    """The probability of the positive label above which the model itself predicts it."""
    return float(getattr(model, "threshold_", 0.5))


def _check_threshold(model: Any, threshold: float) -> float | None:
    """The threshold, with a warning; None where it is the model's own."""
    own = _own_threshold(model)
    if math.isclose(threshold, own, rel_tol=0, abs_tol=1e-12):
        return None
    if model.history_.closed_loop and model.history_.events:
        warn_user(
            f"the gap between groups was limited at a threshold of {own:g}, and may be larger at "
            f"{threshold:g}; audit the new predictions, or train for this threshold"
        )
    elif model.history_.constraint_names:
        warn_user(
            f"the model was trained to decide at {own:g}; rates and gaps differ at {threshold:g}; "
            "audit the new predictions"
        )
    return threshold
