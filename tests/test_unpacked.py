"""Compressed files that hold far more than their size: refused before they fill the memory."""

import bz2
import gzip
import lzma
import re
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest

from commands import run
from fairproj.io import parquet_sizes, tables, unpacked
from fairproj.io.arrow_sizes import content_bytes
from fairproj.io.tables import DataFile, DataFileError
from fairproj.io.unpacked import Limit, free_memory, in_units

HEADER, ROWS = b"a,b,sex,y,predicted\n", b"1.0,2.0,f,yes,no\n" * 600_000  # 10 MB
BOMBS = ["a.csv.gz", "a.csv.bz2", "a.csv.xz", "a.csv.zst", "a.csv.zip"]
BOMBS += ["a.parquet", "texts.parquet", "long.parquet", "a.feather", "stream.arrow", "nulls.arrow"]

READ = """
import resource, sys
from pathlib import Path
from fairproj.io.tables import DataFile
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + (1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
for path in sys.argv[1:]:
    try:
        print(DataFile.from_path(path).read().num_rows)
    except ValueError as error:
        print(error)
"""


def zstd(content):
    return pa.Codec("zstd").compress(content, asbytes=True)


def write_text_bomb(path):
    """600 MB of rows in several files one after the other; 300 MB in a ZIP archive."""
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", HEADER + ROWS * 30)
        return
    packed, slow = pack[path.suffix], path.suffix in (".bz2", ".xz")
    rows, times = (ROWS[: len(ROWS) // 20], 1200) if slow else (ROWS, 60)
    path.write_bytes(packed(HEADER) + packed(rows) * times)


def write_arrow_bomb(path):
    if path.name == "nulls.arrow":
        batch, times = pa.record_batch({"a": pa.nulls(2_000_000_000)}), 1
    else:
        batch, times = pa.record_batch(dict.fromkeys("abc", np.zeros(5_000_000))), 12
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    write = pa.ipc.new_stream if path.name == "stream.arrow" else pa.ipc.new_file
    with write(str(path), batch.schema, options=options) as writer:
        for _ in range(times):
            writer.write_batch(batch)


def write_parquet_bomb(path):
    table = pa.table(dict.fromkeys("abc", np.zeros(5_000_000)))
    times = 12
    if path.name == "texts.parquet":  # one long text and many references to it
        codes = pa.array(np.zeros(40_000, dtype=np.int8))
        coded = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 100_000]))
        table, times = pa.table({"a": coded}).replace_schema_metadata(), 1
    if path.name == "long.parquet":  # one of 20 MB, and few references
        codes = np.zeros(5_000, dtype=np.int8)
        coded = pa.DictionaryArray.from_arrays(codes, ["x" * 20_000_000])
        table, times = pa.table({"a": coded}).replace_schema_metadata(), 1
    with pa.parquet.ParquetWriter(
        path, table.schema, compression="zstd", store_schema=False
    ) as writer:
        for _ in range(times):
            writer.write_table(table)


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    for name in BOMBS:
        path = folder / name
        if ".csv" in name:
            write_text_bomb(path)
        elif path.suffix == ".parquet":
            write_parquet_bomb(path)
        else:
            write_arrow_bomb(path)
        assert path.stat().st_size < 2_000_000
    return folder


@pytest.mark.slow
def test_bombs_are_refused_with_little_memory(bombs):
    paths = [bombs / name for name in BOMBS]
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(BOMBS), lines
    for path, line in zip(paths, lines, strict=True):
        assert line.startswith(f"{path} takes "), line
        assert "and its content more than 268 MB; if you trust it, " in line, line
        assert ("unpack it, or " in line) == (".csv" in path.name), line


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.zip", "a.parquet", "a.feather"])
def test_commands_that_read_in_chunks_refuse_them_too(bombs, name):
    asked = ["--predictions", "a", "--label", "b", "--sensitive", "c"]
    if ".csv" in name:
        asked = ["--predictions", "predicted", "--label", "y", "--sensitive", "sex"]
    error = run("audit", bombs / name, *asked, code=1).stderr
    assert "set FAIRPROJ_MAX_UNPACKED to what it may take, such as 20GB" in error


@pytest.mark.slow
def test_chunks_with_a_long_text_for_many_cells_are_refused(bombs):
    with pytest.raises(DataFileError, match="its content more than 268 MB"):
        list(DataFile.from_path(bombs / "long.parquet").chunks(["a"], {}))


def test_texts_with_large_dictionaries_are_read_alike(tmp_path):
    texts = [f"{at % 700:0300}" for at in range(5_000)] + [None, ""]
    table = pa.table({"a": texts, "b": pa.array(texts, pa.large_string()), "c": ["x"] * 5_002})
    table = table.append_column("list", pa.array([[text] for text in texts]))
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(table, path, row_group_size=3_000)
    metadata = pa.parquet.read_metadata(path)
    assert parquet_sizes.large_dictionaries(path, metadata, 1e6) == []
    assert parquet_sizes.large_dictionaries(path, metadata, 300_000) == ["b"]
    assert parquet_sizes.large_dictionaries(path, metadata, 3_000) == ["a", "b"]
    assert DataFile.from_path(path).read().equals(table)
    file = DataFile.from_path(path)
    assert pa.concat_tables(file.chunks(list("bac"), {})).equals(table.select(list("bac")))


def test_values_of_fixed_length_count_with_it(tmp_path):
    path = tmp_path / "a.parquet"
    values = pa.array([b"x" * 2_000], pa.binary(2_000)).take(pa.array(np.zeros(1_000, dtype=int)))
    pa.parquet.write_table(pa.table({"a": values}), path)
    assert path.stat().st_size < 20_000
    metadata = pa.parquet.read_metadata(path)
    assert parquet_sizes.content_bytes(path, metadata) == 2_000_000


def packed_rows(tmp_path, n_rows=20_000):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(HEADER + b"1.0,2.0,f,yes,no\n" * n_rows))
    return path


def test_a_small_content_may_take_any_number_of_times_the_file(tmp_path):
    path = packed_rows(tmp_path)
    assert path.stat().st_size * 100 < 340_020
    assert DataFile.from_path(path).read().num_rows == 20_000


def test_what_counts_is_the_ratio_then_the_memory(tmp_path, monkeypatch):
    path = packed_rows(tmp_path)
    monkeypatch.setattr(unpacked, "_ALWAYS", 1000)
    with pytest.raises(DataFileError, match=r"and its content more than 89\.3 KB; if you"):
        DataFile.from_path(path).read()
    monkeypatch.setattr(unpacked, "_MOST_TIMES", 1000)
    assert DataFile.from_path(path).read().num_rows == 20_000
    monkeypatch.setattr(unpacked, "free_memory", lambda: 300_000)
    with pytest.raises(DataFileError, match="than 300 KB, which is the memory that is free; give"):
        DataFile.from_path(path).read()
    chunks = DataFile.from_path(path).chunks(["a"], {})  # needs little memory
    assert sum(chunk.num_rows for chunk in chunks) == 20_000


def test_the_limit_can_be_set(tmp_path, monkeypatch):
    path = packed_rows(tmp_path)
    for text, most in [("0.3 MB", 3e5), ("20GB", 2e10), ("1e6", 1e6), ("12345", 12345)]:
        monkeypatch.setenv(unpacked.VARIABLE, text)
        assert Limit.of(path, at_once=True).most == most
    monkeypatch.setenv(unpacked.VARIABLE, "0.3MB")
    with pytest.raises(DataFileError, match="more than 300 KB; set FAIRPROJ_MAX_UNPACKED to more"):
        DataFile.from_path(path).read()
    monkeypatch.setenv(unpacked.VARIABLE, "much")
    with pytest.raises(DataFileError, match="is 'much', and a number of bytes is wanted"):
        DataFile.from_path(path).read()


def test_sizes_in_words():
    sizes = (12, 1_300_000, 268_435_456, 3e12)
    assert [in_units(n) for n in sizes] == ["12 bytes", "1.3 MB", "268 MB", "3 TB"]


def test_free_memory_counts_containers_and_ulimit(tmp_path, monkeypatch):
    free = free_memory()
    assert free is None or free > 1e6
    monkeypatch.setattr(unpacked, "_GROUPS", tmp_path)
    for name, text in [("max", "1000"), ("current", "800"), ("stat", "anon 5\ninactive_file 50\n")]:
        (tmp_path / f"memory.{name}").write_text(text)
    assert free_memory() == 250
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory() != 250


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("kind", ["file", "stream"])
def test_sizes_of_arrow_files_are_those_of_their_tables(tmp_path, compression, kind):
    """As pyarrow counts them, whatever is in the columns; buffers are padded."""
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "number": rng.normal(size=3000),
            "text": pa.array(rng.choice(["a", "bcd", None], 3000)),
            "code": pa.array(rng.choice(["x", "y"], 3000)).dictionary_encode(),
            "list": [[1, 2], [], [3]] * 1000,
        }
    )
    path = tmp_path / "a.arrow"
    write = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with write(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=1000)
    assert content_bytes(path) == pytest.approx(table.nbytes, rel=0.02)
    path.write_bytes(path.read_bytes()[:-9] + b"\xff" * 9)
    with pytest.raises(DataFileError, match="cannot be read as a table"):
        DataFile.from_path(path).read() if kind == "file" else _damaged(path)


def _damaged(path):
    """A stream whose first message is said to be longer than the file."""
    raw = path.read_bytes()
    path.write_bytes(raw[:4] + b"\xff\xff\xff\x7f" + raw[8:])
    DataFile.from_path(path).read()


LISTS = {
    "list": [[1, 2], [], None, [3]] * 75,
    "list of lists": [[["a"], []], []] * 150,
    "struct": [{"a": [1.5, None], "b": True}, None] * 150,
    "map": pa.array([[("a", 1)], [], None] * 100, pa.map_(pa.string(), pa.int32())),
}
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "DOUBLE": 8}


@pytest.mark.parametrize("lists", [[], ["list"], list(LISTS)], ids=["none", "one", "all"])
@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("data_page_version", ["1.0", "2.0"])
def test_sizes_of_parquet_files_are_those_that_pyarrow_says(
    tmp_path, lists, rows, data_page_version
):
    """Of undamaged files; pyarrow tells how many values each column of a row group holds."""
    path, rng = tmp_path / "a.parquet", np.random.default_rng(0)
    table = pa.table(
        {"number": rng.normal(size=300), "text": pa.array(rng.choice(["a", "bcd", None], 300))}
        | {name: LISTS[name] for name in lists}
    )
    with pa.parquet.ParquetWriter(
        path, table.schema, data_page_version=data_page_version
    ) as writer:
        for part in (table.slice(0, 0), table, table.slice(9, 5)):
            writer.write_table(part, row_group_size=rows)
    metadata = pa.parquet.read_metadata(path)
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    assert parquet_sizes.content_bytes(path, metadata) == sum(
        max(
            group.total_byte_size,
            sum(
                column.num_values * WIDTHS.get(column.physical_type, 4)
                for column in map(group.column, range(group.num_columns))
            ),
        )
        for group in groups
    )


def test_values_in_lists_count(tmp_path, monkeypatch):
    """Ten million zeros in a row take next to no space in a file."""
    path = tmp_path / "a.parquet"
    zeros = pa.ListArray.from_arrays([0, 10_000_000], pa.array(np.zeros(10_000_000)))
    pa.parquet.write_table(pa.table({"a": zeros}), path)
    monkeypatch.setenv("FAIRPROJ_MAX_UNPACKED", "50MB")
    monkeypatch.setattr(tables.parquet.ParquetFile, "iter_batches", None)  # nothing is read
    for read in (
        DataFile.from_path(path).read,
        lambda: next(DataFile.from_path(path).chunks(["a"], {})),
    ):
        with pytest.raises(DataFileError, match="its content more than 50 MB"):
            read()


def test_numbers_of_fields_beyond_16_bits_do_not_hide_values(tmp_path):
    """Other readers keep 16 bits: 65539 is field 3, the metadata of a column."""
    path = tmp_path / "a.parquet"
    zeros = pa.ListArray.from_arrays([0, 100_000], pa.array(np.zeros(100_000)))
    pa.parquet.write_table(pa.table({"a": zeros}), path)
    raw = path.read_bytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    data, footer = raw[:start], raw[start:-8]
    start_of_metadata = rb"(\x26[\x80-\xff]*[\x00-\x7f])\x1c\x15"  # after the offset of the column
    footer, found = re.subn(start_of_metadata, b"\\1\x0c\x86\x80\x08\x15", footer)
    assert found == 1
    path.write_bytes(data + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    metadata = pa.parquet.read_metadata(path)
    assert metadata.row_group(0).column(0).num_values == 100_000
    assert parquet_sizes.content_bytes(path, metadata) == 800_000


def test_chunks_whose_lists_hold_more_than_the_file_says(tmp_path, monkeypatch):
    """Defect: where a file is read in chunks, only what it says of itself was looked at."""
    path = tmp_path / "a.parquet"
    zeros = pa.ListArray.from_arrays([0, 1_000_000], pa.array(np.zeros(1_000_000)))
    pa.parquet.write_table(pa.table({"a": zeros}), path)
    monkeypatch.setenv("FAIRPROJ_MAX_UNPACKED", "5MB")
    monkeypatch.setattr(parquet_sizes, "_n_values", lambda _: 1)
    with pytest.raises(DataFileError, match="its content more than 5 MB"):
        next(DataFile.from_path(path).chunks(["a"], {}))


@pytest.mark.parametrize(("number", "size"), [(3, 800_000), (8, 0), (9, 0), (10, None)])
def test_values_are_unknown_only_where_they_are_encrypted(tmp_path, number, size):
    """Defect: a column of lists without metadata counted as encrypted, and so as empty."""
    path = tmp_path / "a.parquet"
    zeros = pa.ListArray.from_arrays([0, 100_000], pa.array(np.zeros(100_000)))
    pa.parquet.write_table(pa.table({"a": zeros}), path)
    metadata, raw = pa.parquet.read_metadata(path), path.read_bytes()
    footer = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    [start] = re.finditer(rb"(?<=\x26)[\x80-\xff]*[\x00-\x7f]\x1c\x15", raw[footer:])
    at = footer + start.end() - 2  # the header of field 3, which follows field 2
    header = (number - 2) << 4 | (8 if number == 9 else 12)  # 9 is bytes, the others a structure
    moved = bytes([header]) + (b"\x00\x2c" if number == 9 else b"")
    damaged = raw[:at] + moved + raw[at + 1 : -8]
    path.write_bytes(damaged + (len(damaged) - footer).to_bytes(4, "little") + b"PAR1")
    if size is None:
        with pytest.raises(OSError, match="its footer is damaged"):
            parquet_sizes.content_bytes(path, metadata)
        return
    packed = metadata.row_group(0).total_byte_size
    assert parquet_sizes.content_bytes(path, metadata) == max(size, packed)


def test_row_groups_that_only_one_reader_finds_are_damage(tmp_path):
    """Defect: those beyond the fewer ones were passed over."""
    sizes = {}
    for name, n_rows in (("few", 300), ("many", 10)):
        pa.parquet.write_table(pa.table(LISTS), tmp_path / name, row_group_size=n_rows)
        sizes[name] = pa.parquet.read_metadata(tmp_path / name)
    for name, other in (("few", "many"), ("many", "few")):
        with pytest.raises(OSError, match="its footer is damaged"):
            parquet_sizes.content_bytes(tmp_path / name, sizes[other])


def test_footers_with_any_damage_have_a_size_or_are_refused(tmp_path):
    path, rng = tmp_path / "a.parquet", np.random.default_rng(0)
    pa.parquet.write_table(pa.table(LISTS), path, row_group_size=100)
    metadata, raw = pa.parquet.read_metadata(path), path.read_bytes()
    refused = 0
    for _ in range(300):
        damaged = bytearray(raw)
        for at in rng.integers(len(raw) - 3000, len(raw), rng.integers(1, 4)):
            damaged[at] = rng.choice([0, 0xFF, 0x7F, rng.integers(256)])
        path.write_bytes(damaged)
        try:
            assert parquet_sizes.content_bytes(path, metadata) > 0
        except OSError:
            refused += 1
    assert 0 < refused < 300


def test_memory_that_runs_out_is_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(HEADER + b"1.0,2.0,f,yes,no\n")

    def read(*_):
        raise MemoryError

    monkeypatch.setattr(tables.DataFile, "column_names", read)
    asked = ["--predictions", "predicted", "--label", "y", "--sensitive", "sex"]
    assert run("audit", path, *asked, code=1).stderr.startswith("error: memory ran out; give")


# Long names and lines


def test_a_name_of_two_hundred_thousand_characters(tmp_path):
    name = "x" * 200_000
    (tmp_path / "a.csv").write_text(f"{name},b\n1,2\n")
    file = DataFile.from_path(tmp_path / "a.csv")
    assert file.column_names() == [name, "b"]
    assert file.read().column("b").to_pylist() == [2]


@pytest.mark.parametrize("n_columns", [12_000, 100_000])
def test_a_line_of_names_of_any_length_that_pyarrow_reads(tmp_path, n_columns):
    names = [f"column_number_{i:07d}" for i in range(n_columns)]  # 100,000 take over 2 MB
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join("1" * n_columns) + "\n")
    file = DataFile.from_path(tmp_path / "a.csv")
    assert file.column_names() == names
    [chunk] = file.chunks(names[-1:], {})
    assert chunk.column(0).to_pylist() == [1]


def test_lines_that_are_too_long_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n1," + "9" * 9_000_000 + "\n")
    with pytest.raises(DataFileError, match="line 3 has more than 4 million characters"):
        DataFile.from_path(tmp_path / "a.csv").read()
    (tmp_path / "b.csv").write_text("a," + "b" * 9_000_000 + "\n1,2\n")
    with pytest.raises(DataFileError, match=r"the line of column names of .* has more than 4 MB"):
        DataFile.from_path(tmp_path / "b.csv").read()
