"""The size that the content of an Arrow file has in memory, from the file's own records.

pyarrow unpacks a whole record batch at once and does not tell its size before. Every compressed
buffer begins with its size, and the messages of the format tell where buffers are:
https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_MAGIC = b"ARROW1"
_CONTINUATION = 0xFFFFFFFF
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_NOT_COMPRESSED = -1


def content_bytes(path: Path) -> int:
    """The bytes of all buffers of a file or stream, unpacked; OSError if it is damaged.

    A value that takes no space, as a null may, counts as one byte.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise OSError("it is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return sum(_batch_bytes(data, *place) for place in _messages(data))
            except (struct.error, IndexError, OverflowError):
                raise OSError("its records do not fit together") from None


def _messages(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Where the metadata of each message start and where its body does."""
    if data[: len(_MAGIC)] != _MAGIC:
        yield from _stream_messages(data)
        return
    end = len(data) - len(_MAGIC) - 4
    start = end - _int(data, end, "i")
    footer = _Table.root(data, start)
    for field in (2, 3):  # dictionaries and record batches
        for at in footer.vector(field, 24):
            offset, length = _int(data, at, "q"), _int(data, at + 8, "i")
            yield _metadata(data, offset)[0], offset + length


def _stream_messages(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    at = 0
    while at + 4 <= len(data):
        start, length = _metadata(data, at)
        if not length:
            return
        yield start, start + length
        body = _Table.root(data, start).number(3, "q")
        if body < 0:
            raise IndexError
        at = start + length + body


def _metadata(data: mmap.mmap, at: int) -> tuple[int, int]:
    """Where the metadata of a message start, and their length; old files have no marker."""
    first = _int(data, at, "I")
    if first == _CONTINUATION:
        return at + 8, _int(data, at + 4, "I")
    return at + 4, first


def _batch_bytes(data: mmap.mmap, start: int, body: int) -> int:
    """The bytes of the buffers of one message, unpacked; 0 for a schema."""
    message = _Table.root(data, start)
    kind = message.number(1, "B")
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return 0
    batch = message.table(2)
    if kind == _DICTIONARY_BATCH:
        batch = batch.table(1)
    packed = batch.has(3)
    n_values = batch.number(0, "q") * len(batch.vector(1, 16))
    buffers = sum(_buffer_bytes(data, body, at, packed) for at in batch.vector(2, 16))
    return max(n_values, buffers)


def _buffer_bytes(data: mmap.mmap, body: int, at: int, packed: bool) -> int:
    offset, length = _int(data, at, "q"), _int(data, at + 8, "q")
    if packed and length > 0:
        size = _int(data, body + offset, "q")
        length = length if size == _NOT_COMPRESSED else size
    if length < 0:
        raise IndexError
    return length


class _Table:
    """A table of FlatBuffers, the format of Arrow's metadata."""

    def __init__(self, data: mmap.mmap, at: int) -> None:
        self._data, self._at = data, at
        self._fields = at - _int(data, at, "i")

    @classmethod
    def root(cls, data: mmap.mmap, start: int) -> _Table:
        return cls(data, start + _int(data, start, "I"))

    def has(self, field: int) -> bool:
        return self._place(field) is not None

    def number(self, field: int, kind: str) -> int:
        place = self._place(field)
        return 0 if place is None else _int(self._data, place, kind)

    def table(self, field: int) -> _Table:
        place = self._place(field)
        if place is None:
            raise IndexError
        return _Table(self._data, place + _int(self._data, place, "I"))

    def vector(self, field: int, size: int) -> range:
        """Where the entries of a vector are, each of ``size`` bytes."""
        place = self._place(field)
        if place is None:
            return range(0)
        start = place + _int(self._data, place, "I")
        length = _int(self._data, start, "I")
        if length * size > len(self._data):
            raise IndexError
        return range(start + 4, start + 4 + length * size, size)

    def _place(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry >= _int(self._data, self._fields, "H"):
            return None
        offset = _int(self._data, self._fields + entry, "H")
        return self._at + offset if offset else None


def _int(data: mmap.mmap, at: int, kind: str) -> int:
    if at < 0:
        raise IndexError
    found: tuple[Any, ...] = struct.unpack_from(f"<{kind}", data, at)
    return int(found[0])
