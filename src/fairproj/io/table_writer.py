"""Writing tables to a file chunk by chunk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from pyarrow import ipc, parquet

from fairproj.io.atomic import atomic_path
from fairproj.io.table_types import expand, is_text
from fairproj.io.tables import FILE_ERRORS, DataFile, DataFileError, one_line

# pyarrow.dataset.write_dataset writes folders; these write one file.
_WRITERS = {
    "csv": arrow_csv.CSVWriter,
    "parquet": parquet.ParquetWriter,
    "arrow": ipc.new_file,
}


# What spreadsheets take for the start of a formula, and plain numbers, which do no harm.
_FORMULA = r"^[=+\-@\t\r\n]"
_NUMBER = r"^[+-]?([0-9][0-9.,]*|[.,][0-9]+)([eE][+-]?[0-9]+)?\z"


def write_chunks(path: Path, chunks: Iterable[pa.Table], *, spreadsheet_safe: bool = False) -> int:
    """Write tables one after the other to a file, and return the number of rows.

    The suffix chooses the format. The file appears when it is complete. With ``spreadsheet_safe``,
    texts and column names of a CSV file that a spreadsheet would take for formulas start with an
    apostrophe; plain numbers, such as -1.5, stay as they are.
    """
    kind = _writable_kind(path)
    convert = _quote_formulas if spreadsheet_safe and kind == "csv" else _plain_columns
    source = iter(chunks)
    rows = 0
    writer = None
    with atomic_path(path) as partial:
        try:
            while True:
                with _translate_errors(path, kind):
                    table = next(source, None)
                    if table is None:
                        break
                    chunk = convert(table)
                with _translate_errors(path, kind, chunk):
                    writer = writer or _WRITERS[kind](str(partial), chunk.schema)
                    writer.write_table(chunk)
                rows += chunk.num_rows
            if writer is None:
                raise DataFileError(
                    f"there are no rows to write to {path}; give an input with rows"
                )
            with _translate_errors(path, kind):
                writer.close()
        except BaseException:
            if writer is not None:
                with suppress(*FILE_ERRORS):  # the file is removed; the first error matters
                    writer.close()
            raise
    return rows


def _writable_kind(path: Path) -> str:
    target = DataFile.from_path(path)
    if target.compression or path.suffix.lower() == ".tsv":
        raise DataFileError(
            f"{path} cannot be written: compressed and tab-separated files are only read; name a "
            ".csv, .parquet or .feather file"
        )
    return target.kind


def _plain_columns(table: pa.Table) -> pa.Table:
    """Replace codes by values: chunks may have different dictionaries, and a file has one."""
    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            parts = table.column(position).chunks
            values = [expand(part.dictionary).take(part.indices) for part in parts]
            column = pa.chunked_array(values, None if values else field.type.value_type)
            table = table.set_column(position, field.name, column)
    return table


def _quote_formulas(table: pa.Table) -> pa.Table:
    """Put an apostrophe before texts and column names that a spreadsheet takes for formulas."""
    table = _plain_columns(table)
    names = [f"'{name}" if re.match(_FORMULA, name) else name for name in table.column_names]
    for position, name in enumerate(names):
        column = expand(table.column(position))
        if is_text(column.type):
            apostrophe, nothing = pa.scalar("'", column.type), pa.scalar("", column.type)
            quoted = pc.binary_join_element_wise(apostrophe, column, nothing)
            formula = pc.and_not(
                pc.match_substring_regex(column, _FORMULA),
                pc.match_substring_regex(column, _NUMBER),
            )
            column = pc.if_else(formula, quoted, column)
        table = table.set_column(position, name, column)
    return table


@contextmanager
def _translate_errors(path: Path, kind: str, chunk: pa.Table | None = None) -> Iterator[None]:
    """Raise errors of pyarrow as `DataFileError`, with the columns that the format cannot hold."""
    try:
        yield
    except FILE_ERRORS as error:
        refused = [] if chunk is None else _refused_columns(chunk, kind)
        problem = f"cannot be written: {one_line(error)}"
        if refused:
            columns = ", ".join(f"{field.name!r} of type {field.type}" for field in refused)
            problem = f"cannot hold column {columns}; leave it out, or name a .feather file"
        raise DataFileError(f"{path} {problem}") from None


def _refused_columns(chunk: pa.Table, kind: str) -> list[Any]:
    """The columns that cannot be written by themselves either."""
    refused = []
    for field in chunk.schema:
        part = chunk.select([field.name]).slice(0, 1)
        try:
            with _WRITERS[kind](pa.BufferOutputStream(), part.schema) as writer:
                writer.write_table(part)
        except pa.ArrowException:
            refused.append(field)
    return refused
