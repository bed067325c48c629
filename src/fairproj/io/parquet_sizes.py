"""The size that the content of a Parquet file has in memory, from the file's own footer.

pyarrow's metadata of a row group are asked for, those of a single column in it are not: if they
are damaged, pyarrow raises a C++ exception that ends the process. How many values a column of
lists holds stands there only, so it is read from the footer:
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

import mmap
import os
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Bytes of a value, by the physical types of Parquet; texts count with the bytes that are stored.
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_TEXT_WIDTH = 4

# Kinds of values in Thrift.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(
    1, 14
)
_FIXED = {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8, _UUID: 16}  # bytes
# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_ROW_GROUPS, _COLUMNS, _METADATA, _NUM_VALUES = (4, _LIST), (1, _LIST), (3, _STRUCT), (5, _I64)
_DATA_PAGE, _DICTIONARY_PAGE = (9, _I64), (11, _I64)
# Fields of PageHeader, and the kind of a page.
_KIND, _PAGE_SIZE, _IS_DICTIONARY = (1, _I32), (2, _I32), 2
_ENCRYPTED = ((8, _STRUCT), (9, _BINARY))  # how a column is encrypted, and its metadata if it is
# What is read of them, by the numbers and kinds of fields.
_Wanted = Mapping[tuple[int, int], Any]
_COLUMN: _Wanted = {field: {} for field in (_NUM_VALUES, _DATA_PAGE, _DICTIONARY_PAGE)}
_CHUNK: _Wanted = {_METADATA: _COLUMN, **{field: {} for field in _ENCRYPTED}}
_WANTED: _Wanted = {_ROW_GROUPS: {_COLUMNS: _CHUNK}}
_DAMAGED = "its footer is damaged"


def content_bytes(path: Path, metadata: Any) -> int:
    """The bytes of all values of a file, unpacked; OSError if its footer is damaged.

    They are those that the row groups are said to have, or those of the numbers if these are more.
    """
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    schema = metadata.schema
    flat, lists = 0, {}
    for at in range(metadata.num_columns):
        column = schema.column(at)
        width = _WIDTHS.get(column.physical_type) or max(column.length or 0, _TEXT_WIDTH)
        if column.max_repetition_level:
            lists[at] = width
        else:
            flat += width
    listed = _bytes_in_lists(path, lists) if lists else [0] * len(groups)
    if len(listed) != len(groups):  # pyarrow and the reader here find different ones
        raise OSError(_DAMAGED)
    return sum(
        max(0, group.total_byte_size, group.num_rows * flat + more)
        for group, more in zip(groups, listed, strict=True)
    )


def large_dictionaries(path: Path, metadata: Any, most: float) -> list[str]:
    """The columns of text whose dictionaries are the largest, so that the others have ``most``.

    One value of a dictionary can stand for every row. Dictionaries count with the bytes that the
    pages themselves say, which a reader has to unpack.
    """
    schema = metadata.schema
    columns = [schema.column(at) for at in range(metadata.num_columns)]
    texts = [
        at
        for at, one in enumerate(columns)
        if one.physical_type == "BYTE_ARRAY" and one.path == one.name  # it is in no list or struct
    ]
    if not texts or not metadata.num_row_groups:
        return []
    try:
        groups = [group[_COLUMNS] for group in _Reader(_footer(path)).struct(_WANTED)[_ROW_GROUPS]]
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            sizes = {
                at: max(_dictionary_bytes(data, group[at]) for group in groups) for at in texts
            }
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        raise OSError(_DAMAGED) from None
    total, large = 0, []
    for at, size in sorted(sizes.items(), key=lambda item: item[1]):
        total += size
        if total > most:
            large.append(columns[at].path)
    return large


def _dictionary_bytes(data: mmap.mmap, chunk: Any) -> int:
    """The size of the dictionary of a column in a row group, unpacked; 0 without one."""
    if _METADATA not in chunk:
        return 0  # it is encrypted
    column = chunk[_METADATA]
    start, dictionary = int(column[_DATA_PAGE]), int(column.get(_DICTIONARY_PAGE, 0))
    start = dictionary if 0 < dictionary < start else start
    header = _Reader(data, start).struct({_KIND: {}, _PAGE_SIZE: {}})
    return max(0, int(header[_PAGE_SIZE])) if header[_KIND] == _IS_DICTIONARY else 0


def _bytes_in_lists(path: Path, widths: Mapping[int, int]) -> list[int]:
    """The bytes that some columns have in each row group, by the bytes of one value."""
    try:
        footer = _Reader(_footer(path)).struct(_WANTED)
        return [
            sum(_n_values(group[_COLUMNS][at]) * width for at, width in widths.items())
            for group in footer[_ROW_GROUPS]
        ]
    except (IndexError, KeyError, TypeError, RecursionError):
        raise OSError(_DAMAGED) from None


def _n_values(chunk: Any) -> int:
    """The values of a column in a row group; 0 if they are encrypted, and cannot be read."""
    if _METADATA not in chunk and any(field in chunk for field in _ENCRYPTED):
        return 0
    return max(0, int(chunk[_METADATA][_NUM_VALUES]))


def _footer(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, os.SEEK_END)
        return file.read(length)


class _Reader:
    """Structures in the compact encoding of Thrift.

    A structure is a mapping from the number and the kind of a field to its value. Only the fields
    that are wanted are kept: a small file may hold very many others.
    """

    def __init__(self, data: bytes | mmap.mmap, at: int = 0) -> None:
        self._data, self._at = data, at

    def struct(self, wanted: _Wanted) -> dict[tuple[int, int], Any]:
        found, field = {}, 0
        while kind := (header := self._byte()) & 15:
            field = field + (header >> 4) if header >> 4 else self._whole_number()
            field = (field + 0x8000) % 0x10000 - 0x8000  # other readers keep 16 bits of it
            if kind in (_TRUE, _FALSE):  # the kind is the value
                continue
            value = self._value(kind, wanted.get((field, kind), {}))
            if (field, kind) in wanted:
                found[field, kind] = value
        return found

    def _value(self, kind: int, wanted: _Wanted) -> Any:
        if kind in (_I16, _I32, _I64):
            return self._whole_number()
        if kind == _STRUCT:
            return self.struct(wanted)
        if kind in (_LIST, _SET):
            return self._list(wanted)
        if kind == _MAP:
            return self._skip_map()
        size = self._varint() if kind == _BINARY else _FIXED[kind]
        self._at += size
        return None

    def _list(self, wanted: _Wanted) -> list[Any] | None:
        """The structures in a list, None if it has other values or nothing in it is wanted."""
        header = self._byte()
        kind = header & 15
        size = header >> 4 if header >> 4 < 15 else self._varint()
        values = (self._value(kind, wanted) for _ in range(size))
        if kind == _STRUCT and wanted:
            return list(values)
        deque(values, maxlen=0)
        return None

    def _skip_map(self) -> None:
        if size := self._varint():
            kinds = self._byte()
            for _ in range(size):
                self._value(kinds >> 4, {})
                self._value(kinds & 15, {})

    def _whole_number(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) > 127:
            number |= (byte & 127) << shift
            shift += 7
        return number | byte << shift

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]
