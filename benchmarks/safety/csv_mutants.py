"""CSV files with faults of structure: quotes, separators, encodings, lines, names, numbers."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import lzma
import random
import zipfile
from collections.abc import Callable

import pyarrow as pa

from safety.data_tables import table

Lines = list[list[str]]
NUMBERS = [
    *("nan", "inf", "-inf", "Infinity", "1e999", "-1e999", "1e-400", "9" * 400, "0x10", "1_000"),
    *("1,5", "1.234,5", "1,234.5", "1 234", "1\u00a0234", "1'234", "$5", "5 %", "5%", "(5)", "+5"),
    *("-0", "007", ".5", "5.", "1e5", "1E+05", "1d5", "٣", "½", "²", "true", "TRUE", "Yes", "0b1"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "1e200", "1e308"),
    *("2020-01-01", "2020-13-45", "12:30", "2020-01-01T00:00:00Z", "31/12/1999", "1-2-3"),
]
TEXTS = [
    *("", " ", "NA", "N/A", "null", "NULL", "None", "-", "?", "#N/A", "nan", '"', '""', "'", ","),
    *(";", "\t", "|", "\n", "\r", "\r\n", "\0", "a\0b", "\x1b[2J", "\u202e", "\ufeff", "\u2028"),
    *("=cmd|' /C calc'!A0", "@x", "../../etc/passwd", "é", "\U0001f600", "x" * 3000, "a\\,b"),
    *("<script>", "{{7*7}}", "%s%n", "y", "sex", "yes", "no"),
]
LONG = ["x" * 70_000, "x" * 140_000, '"' * 1001, "\n" * 999, "9" * 70_000]


def odd(rng: random.Random) -> str:
    if rng.random() < 0.02:
        return rng.choice(LONG)
    return rng.choice(NUMBERS if rng.random() < 0.5 else TEXTS)


def change_cell(lines: Lines, rng: random.Random) -> None:
    row = rng.choice(lines)
    if row:
        row[rng.randrange(len(row))] = odd(rng)


def change_column(lines: Lines, rng: random.Random) -> None:
    """All cells of a column alike, or of a few odd values."""
    at, values = rng.randrange(7), [odd(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
    for row in lines[rng.choice([0, 1, 1, 1]) :]:
        if at < len(row) and rng.random() < 0.95:
            row[at] = rng.choice(values)


def change_names(lines: Lines, rng: random.Random) -> None:
    names = lines[0]
    if not names:
        return
    at = rng.randrange(len(names))
    names[at] = rng.choice([*names, "", " ", names[at].upper(), f" {names[at]} ", odd(rng)])


def ragged(lines: Lines, rng: random.Random) -> None:
    """A row that is shorter or longer than the others."""
    row = rng.choice(lines)
    if row and rng.random() < 0.5:
        del row[rng.randrange(len(row))]
    else:
        row.extend([odd(rng)] * rng.choice([1, 1, 3, 500]))


def change_rows(lines: Lines, rng: random.Random) -> None:
    """Rows twice, gone, elsewhere or empty."""
    kind = rng.randrange(6)
    if kind == 0:
        del lines[1:]
    elif kind == 1:
        del lines[rng.randrange(len(lines)) :]
        lines.append(["a"])
    elif kind == 2:
        lines.insert(rng.randrange(len(lines) + 1), [])
    elif kind == 3:
        lines.insert(0, rng.choice([[], ["# comment"], ["sep=;"], [""] * 7]))
    elif kind == 4:
        lines.insert(rng.randrange(len(lines) + 1), list(lines[0]))
    else:
        lines[:] = [lines[0], *rng.choices(lines[1:] or lines, k=rng.choice([1, 2, 3, 30]))]


def change_columns(lines: Lines, rng: random.Random) -> None:
    """A column gone, twice, or in another place."""
    at, kind = rng.randrange(7), rng.randrange(3)
    for row in lines:
        if at < len(row):
            if kind == 0:
                del row[at]
            elif kind == 1:
                row.append(row[at])
            else:
                row.insert(0, row.pop(at))


STRUCTURE: dict[str, Callable[[Lines, random.Random], None]] = {
    "cell": change_cell,
    "column": change_column,
    "names": change_names,
    "ragged": ragged,
    "rows": change_rows,
    "columns": change_columns,
}


def written(lines: Lines, rng: random.Random) -> bytes:
    """The text in one of many styles, most often a plain one."""
    style = rng.random
    delimiter = "," if style() < 0.8 else rng.choice([";", "\t", "|", " ", ":", ",,", "\x01"])
    newline = "\n" if style() < 0.8 else rng.choice(["\r\n", "\r", "\n\r", "\n\n", "\x0b", "\x85"])
    quote = _quoted if style() < 0.8 else rng.choice([_quoted_always, str, _with_backslash])
    text = newline.join(delimiter.join(quote(cell) for cell in row) for row in lines)
    text += rng.choice([newline, newline, "", newline * 3, "\x1a", '"'])
    encoding = "utf-8"
    if style() < 0.15:
        encoding = rng.choice(["utf-8-sig", "latin-1", "utf-16", "utf-32", "cp1252", "utf-7"])
    return text.encode(encoding, "replace")


def _quoted(cell: str) -> str:
    return _quoted_always(cell) if set(cell) & set('",;\t|\r\n') else cell


def _quoted_always(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def _with_backslash(cell: str) -> str:
    return '"' + cell.replace('"', '\\"') + '"'


def damaged(raw: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, put in, cut or repeated."""
    at = rng.randrange(len(raw) + 1)
    kind = rng.randrange(5)
    if kind == 0 and at < len(raw):
        return raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1 :]
    if kind == 1:
        piece = rng.choice(
            [b"\0", b"\xff", b"\xef\xbb\xbf", b'"', b"\r", b"\xc3", rng.randbytes(9)]
        )
        return raw[:at] + piece + raw[at:]
    if kind == 2:
        return raw[:at]
    if kind == 3:
        return raw[:at] + raw[at + rng.randrange(1, 60) :]
    return raw[:at] + raw[max(0, at - rng.randrange(1, 60)) :]


def _zipped(raw: bytes, rng: random.Random) -> bytes:
    file = io.BytesIO()
    names = [["a.csv"]] * 6 + [["a.csv", "b.csv"], ["a.txt"], ["x.exe"], [], ["d/", "d/a.csv"]]
    names += [["__MACOSX/a.csv", "a.csv"], ["../../a.csv"], ["a.csv", "a.csv"], ["é\0.csv"]]
    method = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(file, "w", method) as archive:
        for name in dict.fromkeys(rng.choice(names)):
            archive.writestr(name, b"" if name.endswith("/") else raw)
    return file.getvalue()


PACKED: dict[str, Callable[[bytes, random.Random], bytes]] = {
    ".csv": lambda raw, rng: raw,
    ".csv.gz": lambda raw, rng: gzip.compress(raw, 1, mtime=0),
    ".csv.bz2": lambda raw, rng: bz2.compress(raw, 1),
    ".csv.xz": lambda raw, rng: lzma.compress(raw, preset=0),
    ".csv.zst": lambda raw, rng: pa.Codec("zstd").compress(raw, asbytes=True),
    ".csv.zip": _zipped,
}
_SHARES = [72, 9, 3, 3, 4, 9]


@functools.cache
def _good_lines() -> Lines:
    frame = table()
    return [list(frame.columns), *frame.astype(str).to_numpy().tolist()]


def good_lines() -> Lines:
    return [list(row) for row in _good_lines()]


def csv_mutant(rng: random.Random) -> tuple[str, bytes]:
    """The suffix of a file and its content."""
    lines = good_lines()
    for _ in range(rng.choice([0, 1, 1, 1, 2, 5])):
        STRUCTURE[rng.choice(list(STRUCTURE))](lines, rng)
        if not lines:
            break
    raw = written(lines, rng)
    for _ in range(rng.choice([0, 0, 0, 1, 3])):
        raw = damaged(raw, rng)
    suffix = rng.choices(list(PACKED), _SHARES)[0]
    raw = PACKED[suffix](raw, rng)
    if suffix != ".csv" and rng.random() < 0.3:
        raw = damaged(raw, rng)
    return suffix, raw
