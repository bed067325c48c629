"""The outer layer of a model file: format, version and checksum around a record.

A file is one JSON object in three lines, and the record is the whole second line. The checksum is
that of this line's bytes, so damage is found before anything in the record is read.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path
from typing import Any, TypeVar

from fairproj.io.records import from_json, to_json

FORMAT = "fairproj model"
VERSION = 2
MAX_BYTES = 1 << 30
MOST_VALUES = 20_000_000  # in memory, small JSON values take many times their bytes in the file

_VERSION_FIELD = re.compile(
    rb'\s*\{\s*"format":\s*"%b",\s*"format_version":\s*(\d{1,9})\b' % FORMAT.encode()
)
_FIRST_LINE = '{{"format":"{}","format_version":{},"sha256":"{}","model":'
_LAST_LINE = "}"

Record = TypeVar("Record")


class ModelFileError(ValueError):
    """A file that does not hold a model; the message is a sentence with the reason."""


def encode_model_file(record: Any) -> str:
    """The text of a file that holds the record."""
    body = to_json(record)
    _check_number_of_values(body.encode())
    from_json(body, type(record))  # refuse now what would be refused when the file is read
    return f"{_first_line(body.encode())}\n{body}\n{_LAST_LINE}\n"


def read_model_file(
    path: str | os.PathLike[str], kind: type[Record], max_bytes: int = MAX_BYTES
) -> Record:
    """The record in a file, after its format, version and checksum were checked."""
    raw = _read_bytes(Path(path), max_bytes)
    _check_version(raw)
    _check_number_of_values(raw)
    first, _, rest = raw.partition(b"\n")
    body, _, last = rest.partition(b"\n")
    if first != _first_line(body).encode() or last != f"{_LAST_LINE}\n".encode():
        raise ModelFileError(
            "it was cut short, changed or damaged after it was written: its checksum does not "
            "match; save the model again"
        )
    return from_json(body, kind)


def _first_line(body: bytes) -> str:
    return _FIRST_LINE.format(FORMAT, VERSION, hashlib.sha256(body).hexdigest())


def _check_version(raw: bytes) -> None:
    match = _VERSION_FIELD.match(raw)
    if match is None:
        reason = "holds something else or was cut short" if raw.strip() else "is empty"
        raise ModelFileError(f"it {reason}; give a file that model.save wrote")
    if int(match[1]) != VERSION:
        raise ModelFileError(
            f"it has format version {int(match[1])}, and this fairproj reads version {VERSION}; "
            "train the model again, or open it with the fairproj that wrote it"
        )


def _check_number_of_values(raw: bytes) -> None:
    """Bound the memory that the decoded values take; every value follows one of these bytes."""
    if sum(map(raw.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ModelFileError(f"it has more than {MOST_VALUES:,} values, the most that are read")


def _read_bytes(path: Path, max_bytes: int) -> bytes:
    # Open first and look at the open file, so that what is read is what was checked; do not wait,
    # because a pipe may have nobody at its other end.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise ModelFileError("it is not a regular file; give one that model.save wrote")
        if state.st_size > max_bytes:
            raise ModelFileError(
                f"it has {state.st_size:,} bytes, and at most {max_bytes:,} are read; raise "
                "max_bytes if you trust where it comes from"
            )
        with open(handle, "rb", closefd=False) as file:
            return file.read(state.st_size)
    finally:
        os.close(handle)
