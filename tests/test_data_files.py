"""Tables in files: every format, read at once or in chunks, and the errors for damaged files."""

import bz2
import errno
import gzip
import lzma
import os
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest

from commands import run
from fairproj import FairProjClassifier
from fairproj.io import atomic, tables
from fairproj.io.atomic import atomic_path, check_writable, write_text
from fairproj.io.prefetch import prefetch
from fairproj.io.table_types import column_kinds, column_types
from fairproj.io.table_writer import write_chunks
from fairproj.io.tables import DataFile, DataFileError, check_columns
from simulated import unfair

TABLE = pa.table(
    {
        "age": [30, 41, None],
        "pay": [1.5, 2.25, -1e300],
        "job": ["clerk", None, 'said "hi", then\nleft'],
        "ok": [True, False, True],
    }
)
CSV = b'age,pay,job,ok\n30,1.5,clerk,true\n41,2.25,,false\n,-1e300,"said ""hi"", then\nleft",true\n'


def in_file(tmp_path, name):
    path = tmp_path / name
    if ".parquet" in name or name.endswith(".pq"):
        pa.parquet.write_table(TABLE, path, row_group_size=2)
    elif name == "stream.arrow":
        with pa.ipc.new_stream(str(path), TABLE.schema) as writer:
            writer.write_table(TABLE, max_chunksize=2)
    elif path.suffix in (".feather", ".arrow"):
        pa.feather.write_feather(TABLE, str(path), chunksize=2)
    elif path.suffix == ".zst":
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write(CSV)
    else:
        packed = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
        content = CSV.replace(b",", b"\t") if ".tsv" in name else CSV
        content = content.replace(b'hi"",\t', b'hi"",') if ".tsv" in name else content
        path.write_bytes(packed.get(path.suffix, bytes)(content))
    return DataFile.from_path(path)


NAMES = ["t.csv", "t.csv.gz", "t.csv.bz2", "t.csv.xz", "t.csv.zst", "t.parquet", "t.pq"]
NAMES += ["t.feather", "t.arrow", "stream.arrow", "T.CSV"]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_read_at_once_and_in_chunks(tmp_path, name):
    file = in_file(tmp_path, name)
    table = file.read()
    assert table.to_pydict() == TABLE.to_pydict()
    assert column_kinds(table) == {
        "age": "whole number",
        "pay": "number",
        "job": "text",
        "ok": "boolean",
    }
    assert file.column_names() == TABLE.column_names
    types = {"age": pa.int64(), "job": pa.string()}
    for columns in (["job", "age"], TABLE.column_names[::-1]):
        chunks = list(file.chunks(columns, types))
        assert pa.concat_tables(chunks).to_pydict() == TABLE.select(columns).to_pydict()


def test_chunks_are_small_in_large_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "CHUNK_ROWS", 100)
    monkeypatch.setattr(tables, "_CSV_BLOCK", 1000)
    table = pa.table({"x": np.arange(1000.0)})
    for name in ("t.parquet", "t.feather", "t.csv"):
        path = tmp_path / name
        assert write_chunks(path, iter([table.slice(0, 600), table.slice(600)])) == 1000
        chunks = list(DataFile.from_path(path).chunks(["x"], {"x": pa.float64()}))
        assert max(chunk.num_rows for chunk in chunks) <= 600
        assert len(chunks) >= 4
        assert pa.concat_tables(chunks).column("x").to_pylist() == list(range(1000))


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.csv"])
def test_memory_is_bounded_in_large_files(tmp_path, monkeypatch, name):
    """Also in one row group, and if chunks are used more slowly than they are read."""
    monkeypatch.setattr(tables, "CHUNK_ROWS", 5000)
    monkeypatch.setattr(tables, "_PARQUET_BUFFER", 5000)
    monkeypatch.setattr(tables, "_CSV_BLOCK", 20_000)
    path, table = tmp_path / name, pa.table({f"x{i}": np.arange(2e5) + i for i in range(6)})
    if name == "t.parquet":
        pa.parquet.write_table(table, path, row_group_size=len(table), use_dictionary=False)
    elif name == "t.feather":
        pa.feather.write_feather(table, str(path), compression="lz4", chunksize=5000)
    else:
        pa.csv.write_csv(table, path)
    start, held, rows = pa.total_allocated_bytes(), [], 0
    for chunk in DataFile.from_path(path).chunks(table.column_names, {}):
        held.append(pa.total_allocated_bytes() - start)
        rows += chunk.num_rows
        time.sleep(0.001)
    assert rows == len(table)
    assert 0 < max(held) < table.nbytes / 3


def test_a_gzip_file_of_several_members(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"))
    table = DataFile.from_path(tmp_path / "a.csv.gz").read()
    assert table.to_pydict() == {"a": [1, 3], "b": [2, 4]}


def test_the_line_of_column_names_is_read_once(tmp_path, monkeypatch):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    opened, open_csv = [], DataFile._open_csv
    monkeypatch.setattr(DataFile, "_open_csv", lambda file: opened.append(file) or open_csv(file))
    file = DataFile.from_path(tmp_path / "a.csv.gz")
    for _ in range(3):
        assert file.column_names() == ["a", "b"]
        assert [table.num_rows for table in file.chunks(["b"], {})] == [1]
    assert len(opened) == 1 + 2 * 3  # a compressed file is first unpacked to see how large it is


@pytest.mark.parametrize(("delimiter", "name"), [(";", "a.csv"), ("\t", "a.tsv"), ("|", "a.txt")])
def test_delimiters_are_detected(tmp_path, delimiter, name):
    (tmp_path / name).write_text("﻿a,b\n1,2\n3,4\n".replace(",", delimiter), "utf-8")
    assert DataFile.from_path(tmp_path / name).read().to_pydict() == {"a": [1, 3], "b": [2, 4]}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\xef\xbb\xbf", "is empty"),
        ("a.csv", b"a,b\n", "no rows"),
        ("a.csv", b"a,b\n1,2\n3\n", "line 3 has 1 value and there are 2 column names"),
        ("a.csv", b"a,a\n1,2\n", "several columns called 'a'"),
        ("a.csv", b"a,\xff\n1,2\n", "not text in UTF-8"),
        ("a.csv.gz", b"no gzip", "cannot be read as a table"),
        ("a.csv.gz", gzip.compress(CSV, mtime=0)[:-12], "cannot be read as a table"),
        ("a.csv.xz", b"no xz", "cannot be read as a table"),
        ("a.csv.zst", b"no zst", "cannot be read as a table"),
        ("a.parquet", b"PAR1 no parquet", "cannot be read as a table"),
        ("a.feather", b"ARROW1 no", "cannot be read as a table"),
        ("a.xlsx", b"", "file of unknown kind"),
        ("a", b"", "file of unknown kind"),
        ("a.parquet.gz", b"", "file of unknown kind"),
    ],
)
def test_errors_for_damaged_files_are_one_sentence(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=words) as caught:
        DataFile.from_path(path).read()
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text_type", [pa.string(), pa.large_string()])
def test_texts_that_reach_beyond_their_column_are_refused(tmp_path, text_type):
    """pyarrow opens such a file, and whatever looks at the texts would crash."""
    path, texts = tmp_path / "a.feather", pa.array(["a", "bc", "def"] * 30, text_type)
    pa.feather.write_feather(pa.table({"a": texts}), str(path), compression="uncompressed")
    raw = path.read_bytes()
    at = raw.index(texts.buffers()[1].to_pybytes()[:64])  # where each text starts
    path.write_bytes(raw[: at + 43] + b"\x7f" + raw[at + 44 :])
    with pytest.raises(DataFileError, match="cannot be read as a table"):
        DataFile.from_path(path).read_frame()


# Parquet files that made pyarrow end the process, so that they are read in another one

READ = """
import sys
from fairproj.io.tables import DataFile
for path in sys.argv[1:]:
    file = DataFile.from_path(path)
    for read in (file.read, lambda: list(file.chunks(["age"], {})), file.read_frame):
        try:
            read()
            print("read")
        except ValueError as error:
            print(error)
"""


def read_in_a_process(*paths):
    """What three ways of reading each file end in, a line each."""
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3 * len(paths)
    return done.stdout.splitlines()


# In the schema: how often a value occurs (0 always, 2 at most once, 4 any number of times) and the
# name. The statistics of the column say something else.
CHANGES = {
    "never missing": (b"\x25\x02\x18\x03pay", b"\x25\x00\x18\x03pay"),
    "repeated": (b"\x25\x02\x18\x03pay", b"\x25\x04\x18\x03pay"),
    "no list": (b"\x35\x04\x18\x04list", b"\x35\x02\x18\x04list"),
    "no missing list": (b"\x35\x02\x18\x04tags", b"\x35\x00\x18\x04tags"),
}


def test_columns_that_contradict_their_schema_do_not_end_the_process(tmp_path):
    table = pa.table({"age": [30, 41], "pay": [1.5, None], "tags": [["a", "b"], []]})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    raw = (tmp_path / "a.parquet").read_bytes()
    paths = [tmp_path / f"{name}.parquet" for name in CHANGES]
    for path, (old, new) in zip(paths, CHANGES.values(), strict=True):
        assert raw.count(old) == 1
        path.write_bytes(raw.replace(old, new))
    lines = read_in_a_process(tmp_path / "a.parquet", *paths)
    assert lines[:3] == ["read"] * 3
    for number, line in enumerate(lines[3:]):  # pyarrow 18 has no such statistics
        assert line == "read" or line.startswith(f"{paths[number // 3]} cannot be read as a table")
    if int(pa.__version__.split(".")[0]) >= 20:
        assert "histogram size mismatch" in lines[3]
        assert "read" not in (lines[3], lines[6], lines[9], lines[12])


def test_encrypted_columns_do_not_end_the_process(tmp_path):
    """The others are read."""
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):
        def __init__(self, _):
            super().__init__()

        def wrap_key(self, key, _):
            return key

        def unwrap_key(self, key, _):
            return key

    properties = encryption.CryptoFactory(Keys).file_encryption_properties(
        encryption.KmsConnectionConfig(),
        encryption.EncryptionConfiguration(
            footer_key="f", column_keys={"k": ["pay"]}, plaintext_footer=True
        ),
    )
    table = pa.table({"age": [30, 41], "pay": [1.5, 2.5], "tags": [[1], []]})
    with pa.parquet.ParquetWriter(
        tmp_path / "a.parquet", table.schema, encryption_properties=properties
    ) as writer:
        writer.write_table(table)
    at_once, in_chunks, _ = read_in_a_process(tmp_path / "a.parquet")
    assert in_chunks == "read"
    assert "cannot be read as a table: Cannot decrypt" in at_once


def test_errors_for_missing_files_and_columns(tmp_path):
    with pytest.raises(DataFileError, match="does not exist"):
        DataFile.from_path(tmp_path / "a.csv").read()
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataFileError, match="is a folder"):
        DataFile.from_path(tmp_path / "folder.csv").read()
    for name in ("t.csv", "t.parquet", "t.feather"):
        with pytest.raises(DataFileError, match="has no column 'sex'; it has 'age'"):
            list(in_file(tmp_path, name).chunks(["sex"], {}))


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.csv"
    write_text(path, "old")

    def chunks():
        yield TABLE
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        write_chunks(path, chunks())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]
    with pytest.raises(DataFileError, match="no rows"):
        write_chunks(path, iter([]))
    with pytest.raises(DataFileError, match="compressed and tab-separated files are only read"):
        write_chunks(tmp_path / "a.csv.gz", iter([TABLE]))


WRITER = """
import sys, time
from fairproj.io.atomic import atomic_path
with atomic_path(sys.argv[1]) as partial:
    partial.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_temporary_files_are_removed_unless_a_process_writes_them(tmp_path):
    target, other = tmp_path / "a.txt", tmp_path / ".b.txt.0123456789abcdef.partial"
    other.write_text("half")
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, target], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "writing\n"
        write_text(target, "new")
        assert len(list(tmp_path.glob(".a.txt.*.partial"))) == 1  # another container's, perhaps
        writer.kill()
    write_text(target, "newer")
    assert sorted(os.listdir(tmp_path)) == [other.name, "a.txt"]
    with atomic_path(target) as partial:
        partial.write_text("newest")
    assert target.read_text() == "newest"


def test_a_signal_that_comes_when_the_temporary_file_exists_removes_it(tmp_path, monkeypatch):
    def end(*_):
        raise SystemExit(143)

    monkeypatch.setattr(atomic, "_lock", end)
    for write in (lambda: write_text(tmp_path / "a", "x"), lambda: check_writable(tmp_path / "a")):
        with pytest.raises(SystemExit):
            write()
        assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_locked_is_left_alone(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    leftover = tmp_path / ".a.txt.0123456789abcdef.partial"
    leftover.write_text("half")
    monkeypatch.setattr(atomic.fcntl, "flock", flock)
    write_text(tmp_path / "a.txt", "new")
    assert sorted(os.listdir(tmp_path)) == [leftover.name, "a.txt"]
    monkeypatch.undo()
    write_text(tmp_path / "a.txt", "newer")
    assert os.listdir(tmp_path) == ["a.txt"]


def write_while_another_does(target):
    with atomic_path(target) as partial:
        partial.write_text("ours")
        target.write_text("theirs")


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path, monkeypatch, has_links):
    def link(*_):
        raise OSError(errno.EPERM, "no links here")

    if not has_links:
        monkeypatch.setattr(atomic.os, "link", link)
    target = tmp_path / "m.txt"
    with atomic.new_files():
        atomic.keep_existing(target)
        with pytest.raises(FileExistsError, match=r"by another process meanwhile.*m-2\.txt"):
            write_while_another_does(target)
        assert target.read_text() == "theirs"
        assert (tmp_path / "m-2.txt").read_text() == "ours"
        target.unlink()
        for text in ("first", "second"):  # a file of one's own is replaced
            write_text(target, text)
        assert target.read_text() == "second"
    assert sorted(os.listdir(tmp_path)) == ["m-2.txt", "m.txt"]


def test_prefetch_keeps_order_and_errors():
    def numbers():
        yield from range(5)
        raise ValueError("six is missing")

    items = prefetch(numbers())
    assert [next(items) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="six is missing"):
        next(items)
    assert list(prefetch([])) == []


def test_a_parquet_file_written_by_pandas(tmp_path):
    frame = pd.DataFrame({"job": pd.Categorical(["a", "b", None]), "n": [1, 2, 3]})
    frame.to_parquet(tmp_path / "a.parquet")
    table = DataFile.from_path(tmp_path / "a.parquet").read()
    assert column_kinds(table)["job"] == "text"
    assert table.to_pandas()["job"].tolist()[:2] == ["a", "b"]


NULLS = ["NA", "null", "", "x"]


@pytest.mark.parametrize("at_once", [True, False])
def test_null_spellings_that_were_categories_in_training_stay_text(tmp_path, at_once):
    """In each column by itself; other columns and other spellings give missing values."""
    path = tmp_path / "a.csv"
    rows = [f"{text},{text},{text},{number}" for number, text in enumerate(NULLS)]
    path.write_text("\n".join(["known,other,kept,n", *rows, "N/A,NA,NA,NA"]), "utf-8")
    types = column_types(["known", "other", "n"], {0: NULLS, 1: ["x", ""]}, [False] * 3, {})
    file = DataFile.from_path(path)
    if at_once:
        table = file.read(types)
    else:
        chunks = file.chunks(["known", "other", "kept", "n"], types, ["kept"])
        table = pa.concat_tables(chunks)
    assert table.to_pydict() == {
        "known": [*NULLS, None],
        "other": [None, None, "", "x", None],
        "kept": [None, None, None, "x", None],
        "n": [0, 1, 2, 3, None],
    }


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (["True", "False", "maybe"], ["True", "False", None]),
        (["TRUE", "no"], ["TRUE", "false", None]),
        (["True", "true"], ["true", "false", None]),
    ],
)
def test_booleans_are_spelled_as_in_training(tmp_path, known, expected):
    pa.parquet.write_table(pa.table({"ok": [True, False, None]}), tmp_path / "a.parquet")
    types = column_types(["ok"], {0: known}, [False], {})
    table = DataFile.from_path(tmp_path / "a.parquet").read(types)
    assert table.column("ok").to_pylist() == expected


def dictionaries():
    """Two chunks with different dictionaries, of strings and of views as polars writes them."""
    for part in (["a", "b"], ["c", None]):
        coded = pa.array(part).dictionary_encode()
        views = pa.DictionaryArray.from_arrays(
            coded.indices, coded.dictionary.cast(pa.string_view())
        )
        yield pa.table({"coded": coded, "views": views})


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.feather"])
def test_dictionaries_are_written_as_values(tmp_path, name):
    path = tmp_path / name
    assert write_chunks(path, dictionaries()) == 4
    table = DataFile.from_path(path).read()
    values = ["a", "b", "c", None]
    assert table.to_pydict() == {"coded": values, "views": values}
    assert {str(field.type) for field in table.schema} == {"string"}


def test_views_and_run_end_encoding_are_read_as_plain_values(tmp_path):
    runs = pa.compute.run_end_encode(pa.array(["a", "a", "b"]))
    views = pa.array(["a", None, "b"], pa.string_view())
    raw = pa.array([b"a", None, b"b"], pa.binary_view())
    table = pa.table({"runs": runs, "views": views, "raw": raw})
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as writer:
        writer.write_table(table)
    plain = DataFile.from_path(tmp_path / "a.arrow").read()
    assert column_kinds(plain) == {"runs": "text", "views": "text", "raw": "binary"}
    assert plain.to_pydict() == {
        "runs": ["a", "a", "b"],
        "views": ["a", None, "b"],
        "raw": [b"a", None, b"b"],
    }


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("a.csv", [pa.MonthDayNano([1, 2, 3])], "column 'odd' of type month_day_nano_interval"),
        ("a.parquet", [pa.MonthDayNano([1, 2, 3])], "column 'odd' of type month_day_nano_interval"),
        ("a.csv", [[1]], "column 'odd' of type list<item: int64>"),
    ],
)
def test_columns_that_a_format_cannot_hold_are_named(tmp_path, name, values, words):
    path = tmp_path / name
    write_text(path, "old")
    with pytest.raises(DataFileError, match=words) as caught:
        write_chunks(path, iter([pa.table({"n": [1], "odd": values})]))
    assert "'n'" not in str(caught.value)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [name]


def test_error_for_a_chunk_of_another_type(tmp_path):
    with pytest.raises(DataFileError, match=r"a\.feather cannot be written: "):
        write_chunks(tmp_path / "a.feather", iter([pa.table({"a": [1]}), pa.table({"a": ["x"]})]))


def test_atomic_write_to_links_modes_and_pipes(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    write_text(target, "old")
    target.chmod(0o600)
    link.symlink_to("target.txt")
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with atomic_path(target) as partial:
        assert stat.S_IMODE(partial.stat().st_mode) == 0o600
        partial.write_text("private all the time")
    (tmp_path / "to-nothing.txt").symlink_to("made.txt")
    write_text(tmp_path / "to-nothing.txt", "made")
    assert (tmp_path / "made.txt").read_text() == "made"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"cannot be written: .* not a plain file"):
        write_text(tmp_path / "pipe", "new")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_errors_of_the_system_name_the_file_of_the_user(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no/a\.txt cannot be written: ") as caught:
        write_text(tmp_path / "no" / "a.txt", "new")
    assert "partial" not in str(caught.value)


def test_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(DataFileError, match="is not a plain file"):
        DataFile.from_path(tmp_path / "a.csv").read()


def test_similar_column_names_are_suggested(tmp_path):
    with pytest.raises(DataFileError, match="did you mean 'income'"):
        check_columns(tmp_path, ["age", "income"], ["INCOME"])
    with pytest.raises(DataFileError, match="did you mean 'Income'"):
        check_columns(tmp_path, ["age", "Income"], ["imcome"])


def test_prefetch_may_end_in_its_own_thread(monkeypatch):
    """As if an error keeps the frames, and the thread drops them last."""
    ignored, held = [], []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    let_go, gone = threading.Event(), threading.Event()

    def numbers():
        yield 0
        assert let_go.wait(10)
        held.clear()
        gone.set()
        yield 1

    held.append(prefetch(numbers()))
    assert next(held[0]) == 0
    let_go.set()
    assert gone.wait(10)
    assert not held
    assert [str(one.exc_value) for one in ignored] == []


def test_formulas_are_quoted_for_spreadsheets(tmp_path):
    texts = ["=1+1", "+1", "-x", "@sum", "\tx", "a=b", "", None, "-1.5", "-1,5e-3", "-1+2"]
    table = pa.table(
        {
            "=name": texts,
            "category": pa.array(texts).dictionary_encode(),
            "large": pa.array(texts, pa.large_string()),
            "large_category": pa.array(texts, pa.large_string()).dictionary_encode(),
            "view": pa.array(texts, pa.string_view()),
            "number": np.arange(-4.0, 7.0),
        }
    )
    write_chunks(tmp_path / "plain.csv", iter([table.drop_columns("view")]))
    write_chunks(tmp_path / "safe.csv", iter([table]), spreadsheet_safe=True)
    plain, safe = (
        pd.read_csv(tmp_path / name, keep_default_na=False) for name in ("plain.csv", "safe.csv")
    )
    assert plain["=name"].tolist()[:6] == texts[:6]
    expected = ["'=1+1", "+1", "'-x", "'@sum", "'\tx", "a=b", "", "", "-1.5", "-1,5e-3", "'-1+2"]
    for name in ("'=name", "category", "large", "large_category", "view"):
        assert safe[name].tolist() == expected, name
    assert safe["number"].tolist() == plain["number"].tolist()
    write_chunks(tmp_path / "a.parquet", iter([table]), spreadsheet_safe=True)
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet")["=name"].to_pylist() == texts


@pytest.mark.parametrize("length", [231, 255])
def test_names_of_any_length_are_written(tmp_path, length):
    target = tmp_path / ("é" * 50 + "x" * (length - 104) + ".csv")
    for text in ("old", "new"):
        with atomic_path(target) as partial:
            partial.write_text(text)
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == [target.name]


def test_errors_while_a_chunk_is_made_are_about_the_output(tmp_path):
    def chunks():
        yield pa.table({"a": ["x"]})
        raise pa.ArrowNotImplementedError("no kernel")

    with pytest.raises(DataFileError, match=r"o\.csv cannot be written: no kernel"):
        write_chunks(tmp_path / "o.csv", chunks())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_predict_quotes_formulas_of_files_that_pandas_writes(tmp_path, suffix):
    X, y, groups = unfair(300)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = tmp_path / "m.fairproj"
    FairProjClassifier(n_estimators=2).fit(frame, y, sensitive_features=groups).save(model)
    texts = ["=1+1", "-1.5", "a"] * 100
    rows = frame.assign(id=texts, kind=pd.Categorical(texts))
    data = tmp_path / f"rows{suffix}"
    (rows.to_parquet if suffix == ".parquet" else rows.to_feather)(data)
    keep = ["--keep", "id", "--keep", "kind"]
    output = tmp_path / "o.csv"
    run("predict", model, data, *keep, "--spreadsheet-safe", "-o", output)
    written = pd.read_csv(output)
    assert written["id"].tolist()[:3] == written["kind"].tolist()[:3] == ["'=1+1", "-1.5", "a"]
