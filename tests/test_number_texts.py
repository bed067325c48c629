"""Decimal commas and separators of thousands in CSV files; ZIP archives; long headers."""

import os
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import run, run_json
from fairproj import load
from fairproj.data.user_warning import UserNote
from fairproj.io import tables
from fairproj.io.number_texts import NumberTexts, Spelling, find_traits
from fairproj.io.table_types import KnownNumber
from fairproj.io.tables import DataFile, DataFileError

NUMBER = {"a": pa.float64(), "b": pa.float64()}


def in_file(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_text(text, "utf-8")
    return DataFile.from_path(tmp_path / name)


@pytest.mark.parametrize(
    ("texts", "spelling"),
    [
        (["20000,5", "3"], Spelling.decimal_comma),
        (["1,234", "0,5"], Spelling.decimal_comma),
        (["1,234", "12345,678"], Spelling.decimal_comma),  # four digits before it
        (["0,123"], Spelling.decimal_comma),  # no thousands begin with 0
        (["-1,5", "+2,5", ",5", "1,5e3"], Spelling.decimal_comma),
        (["1,234", "12"], Spelling.ambiguous),
        (["1,234,567", "1,5"], None),
        (["1,234,567"], Spelling.thousands),
        (["1,234.50", "2.5"], Spelling.thousands),
        (["1.234,50", "0,99"], Spelling.thousands),
        (["1.234.567"], Spelling.thousands),
        (["1 234,5", "7"], Spelling.thousands),
        (["1'234", "7"], Spelling.thousands),
        (["1.234", "12.500"], None),  # decimals, unless another column has commas
        (["1.5", "1,5"], Spelling.mixed),
        (["1,5", "n/k"], None),
        (["01.02.2020"], None),
        (["030 123 456"], None),  # a telephone number
        (["52.5", "1.25"], None),
        (["", " "], None),
        (["1,5 kg"], None),
    ],
)
def test_how_numbers_are_written(texts, spelling):
    for order in (texts, texts[::-1]):
        traits = find_traits([("a", pa.array(order))])
        found = NumberTexts.of_traits(traits).found
        assert found.get("a", (None, ""))[0] is spelling


@settings(max_examples=60)
@given(st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=20))
def test_numbers_survive_decimal_commas(tmp_path_factory, numbers):
    numbers = [*numbers, 0.5]
    text = "a;b\n" + "".join(f"{number!r};x\n".replace(".", ",") for number in numbers)
    table = in_file(tmp_path_factory.mktemp("commas"), text).read()
    assert table.column("a").to_pylist() == numbers


def test_a_file_tells_what_a_column_does_not(tmp_path):
    file = in_file(tmp_path, "a;b\n1,234;0,5\n2,345;7\n")
    assert file.read().to_pydict() == {"a": [1.234, 2.345], "b": [0.5, 7.0]}


def test_missing_values_and_points_beside_commas(tmp_path):
    file = in_file(tmp_path, 'a;b;c\n"1,5";2.25;x\nNA;3.5;y\n;;NA\n')
    expected = {"a": [1.5, None, None], "b": [2.25, 3.5, None], "c": ["x", "y", None]}
    assert file.read().to_pydict() == expected


def test_thousands_with_points_in_a_file_with_decimal_commas(tmp_path):
    """Without the check, 12.500 would be read as twelve and a half."""
    _, spelled = in_file(tmp_path, "a;b\n1,5;1.234\n2,5;12.500\n").read_spelled()
    assert list(spelled.problems()) == ["b"]
    _, spelled = in_file(tmp_path, "a;b\n1;1.234\n2;12.500\n").read_spelled()
    assert not spelled.problems(), "no decimal comma, so the points are decimal points"


@pytest.mark.parametrize("telling", ["0.692", "1.5", "1.2345", "1234.567", "-0.001"])
def test_points_that_cannot_separate_thousands_beside_decimal_commas(tmp_path, telling):
    """Defect: 0.692 among shares was refused where another column had decimal commas."""
    text = f"a;b\n1,5;7\n1,5;12.500\n2,5;{telling}\n"
    file = in_file(tmp_path, text)
    assert file.read().column("b").to_pylist() == [7, 12.5, float(telling)]
    with pytest.warns(UserWarning, match="column 'a' has decimal commas"):
        chunks = list(file.chunks(["a", "b"], NUMBER))
    assert chunks[0].column("b").to_pylist() == [7, 12.5, float(telling)]


def test_a_later_row_tells_that_points_are_decimal(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_HEAD", 200)
    text = "a;b\n" + "0,5;1.234\n" * 100 + "0,5;0.5\n"
    with pytest.warns(UserWarning, match="decimal commas"):
        chunks = list(in_file(tmp_path, text).chunks(["a", "b"], NUMBER))
    assert pa.concat_tables(chunks).column("b").to_pylist() == [1.234] * 100 + [0.5]


def test_the_value_that_is_ambiguous_is_named(tmp_path):
    file = in_file(tmp_path, "a;b\n1,5;-7\n1,5;12.500\n")
    ambiguous = pytest.raises(DataFileError, match=r"points that may .*, such as '12\.500'")
    with pytest.warns(UserNote, match="'a' has decimal commas"), ambiguous:
        file.read_frame()


def test_commas_are_read_in_chunks_too(tmp_path):
    file = in_file(tmp_path, "a;b\n20000,5;1,234\n;12\n")
    with pytest.warns(UserWarning, match="columns 'a', 'b' have decimal commas, such as '20000,5'"):
        chunks = list(file.chunks(["b", "a"], NUMBER))
    assert chunks[0].to_pydict() == {"b": [1.234, 12.0], "a": [20000.5, None]}


def test_chunks_look_at_all_rows_if_the_first_do_not_tell(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_HEAD", 200)
    text = "a;b\n" + "1,234;1\n" * 100 + "1,5;2\n"
    with pytest.warns(UserWarning, match="such as '1,5'"):
        chunks = list(in_file(tmp_path, text).chunks(["a"], NUMBER))
    assert pa.concat_tables(chunks).column("a").to_pylist() == [1.234] * 100 + [1.5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a;b\n1,234;1\n", "'a' has numbers with commas that may separate decimals or thousands"),
        ("a;b\n1.234,50;1\n", "numbers with separators of thousands, such as '1.234,50'"),
        ("a;b\n1.5;1\n1,5;2\n", "numbers with both decimal points and decimal commas"),
    ],
)
def test_numbers_that_cannot_be_read(tmp_path, text, words):
    file = in_file(tmp_path, text)
    with pytest.raises(DataFileError, match=words):
        file.read_frame()
    with pytest.raises(DataFileError, match=words):
        list(file.chunks(["a"], NUMBER))
    assert file.read_frame(unused=["a"])[1]["a"] == "text"


def test_other_text_after_commas(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_HEAD", 100)
    file = in_file(tmp_path, "a;b\n" + "1,5;1\n" * 100 + "1.2.3;2\n")
    with (
        pytest.warns(UserWarning, match="decimal commas"),
        pytest.raises(ValueError, match=r"decimal commas in its first rows and '1\.2\.3' later"),
    ):
        list(file.chunks(["a"], NUMBER))


@pytest.fixture
def credit(tmp_path):
    """A semicolon CSV as spreadsheets in many countries write it."""
    rng = np.random.default_rng(0)
    n = 600
    income = rng.lognormal(10, 0.5, n).round(1) + 0.5
    frame = pd.DataFrame(
        {
            "income": [f"{value:.1f}".replace(".", ",") for value in income],
            "rooms": rng.integers(1, 6, n),
            "savings": (income + 500 * rng.normal(size=n)).astype(int),
            "sex": rng.choice(["f", "m"], n),
            "repaid": np.where(income + 3000 * rng.normal(size=n) > 22_000, "yes", "no"),
        }
    )
    frame.to_csv(tmp_path / "credit.csv", sep=";", index=False)
    return tmp_path


def test_the_commands_read_decimal_commas(credit):
    """Defect: 20000,5 silently became a category."""
    path, model = credit / "credit.csv", credit / "m.fairproj"
    trained = run(
        *("train", path, "--label", "repaid", "--sensitive", "sex", "--rounds", 5, "-o", model)
    )
    said = "column 'income' has decimal commas, such as '"
    assert said in trained.stderr
    assert load(model).encoding_.categories == {}
    audited = run("audit", model, path)
    assert said in audited.stderr
    run("predict", model, path, "-o", credit / "p.csv", "--keep", "income")
    predicted = pd.read_csv(credit / "p.csv")
    frame = pd.read_csv(path, sep=";", decimal=",")
    expected = load(model).predict_proba(frame[["income", "rooms", "savings"]])[:, 1]
    np.testing.assert_allclose(predicted["probability_yes"], expected)
    points = credit / "points.csv"
    frame.to_csv(points, index=False)
    everyone = run_json("audit", model, points)  # a file that it was not trained from
    rows = frame.assign(
        income=[f"{value:.1f}".replace(".", ",") for value in frame["income"]], more="x"
    )
    rows.to_csv(credit / "others.csv", sep=";", index=False)
    assert everyone["gaps"] == run_json("audit", model, credit / "others.csv")["gaps"]


@pytest.fixture
def decided(credit):
    """A model whose file told how numbers are written: 'rate' with points, the others with commas.

    Without the column 'note', nothing tells it of 'debt' and 'age'.
    """
    frame = pd.read_csv(credit / "credit.csv", sep=";")
    rng = np.random.default_rng(1)
    frame["debt"] = [f"{a},{b}" for a, b in rng.integers(111, 999, (len(frame), 2))]
    frame["age"] = [f"{a},125" for a in rng.integers(18, 80, len(frame))]
    frame["rate"] = [f"{a}.125" for a in rng.integers(0, 9, len(frame))]
    frame["note"], frame["code"] = "0,5", "1,234"
    task = ("--label", "repaid", "--sensitive", "sex", "--sensitive", "age:40", "--rounds", 5)
    frame.to_csv(credit / "decided.csv", sep=";", index=False)
    drop = ("--drop", "income", "--drop", "note")
    run("train", credit / "decided.csv", *task, *drop, "--max-gap", 0.3, "-o", credit / "m")
    return credit


def test_what_training_knew_tells_where_a_file_does_not(decided):
    """Defect: a file, even that of training, was refused where its features alone do not tell."""
    audited = run("audit", decided / "m", decided / "decided.csv")
    assert "columns 'debt', 'age', 'code' have decimal commas, such as '" in audited.stderr
    one = pd.read_csv(decided / "decided.csv", sep=";")[:1].drop(columns="note")
    one = one.assign(debt="123,456", rate="8.125", rooms="2")
    one.to_csv(decided / "one.csv", sep=";", index=False)
    run("predict", decided / "m", decided / "one.csv", "-o", decided / "p.csv")
    X = one[["rooms", "savings", "debt", "rate", "code"]].replace(",", ".", regex=True)
    expected = load(decided / "m").predict_proba(X.astype(float))[:, 1]
    np.testing.assert_allclose(pd.read_csv(decided / "p.csv")["probability_yes"], expected)


@pytest.mark.slow
def test_rows_that_are_trained_on_again_are_read_as_in_training(decided):
    report = ("report", decided / "m", decided / "decided.csv", "-o", decided / "r.html")
    run(*report, "--frontier")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"rate": "1,234"}, None),  # another column has decimal commas
        ({"debt": "abc"}, "column 'debt' holds 'abc' in row 1, which is not a number; correct it"),
        ({"rooms": "1.234"}, "'rooms' has numbers with points that may separate decimals or thou"),
        ({"debt": "1.234,5"}, "column 'debt' has numbers with separators of thousands, such as"),
        ({"debt": "1", "code": "1", "rate": "1,234"}, "'rate' has numbers with commas that may se"),
        ({"debt": "1.234", "code": "1"}, "'debt' has numbers with points that may separate thou"),
        (
            {"debt": "1.234"},
            "'debt' has numbers with points that may separate thousands or, unlike",
        ),
        ({"debt": "3.08", "code": "0.5"}, None),
    ],
)
def test_cells_that_do_not_fit_what_training_knew(decided, cells, words):
    one = pd.read_csv(decided / "decided.csv", sep=";")[:1].drop(columns="note")
    one.assign(**cells).to_csv(decided / "one.csv", sep=";", index=False)
    command = ("predict", decided / "m", decided / "one.csv", "-o", decided / "p.csv")
    said = run(*command, code=0 if words is None else 1).stderr
    assert words is None or f"one.csv: {'' if words[0] == 'c' else 'column '}{words}" in said
    assert said.count("error") == (words is not None)


@pytest.mark.parametrize("first", ["", "12", "1.234"])
def test_points_where_training_had_commas(tmp_path, monkeypatch, first):
    """Defect: 1.234 was read as a decimal without a word, a factor of 1000 if it was thousands."""
    monkeypatch.setattr(tables, "_HEAD", 200)
    types = {"a": KnownNumber(decimal=",")}
    begin = f"a;b\n{first};x\n" + f"{first};x\n" * 100
    chunks = list(in_file(tmp_path, begin + "0.5;x\n").chunks(["a"], types))
    assert chunks[0].column("a").to_pylist()[-1] == 0.5
    file = in_file(tmp_path, begin + "1.234;x\n")
    refused = r"such as '1\.234'; write decimals with a comma, and thousands without a separator$"
    for read in (lambda: list(file.chunks(["a"], types)), lambda: file.read(types)):
        with pytest.raises(DataFileError, match=refused):
            read()


def test_points_after_decimal_commas_in_one_column(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_HEAD", 100)
    file = in_file(tmp_path, "a;b\n" + "1,5;1\n" * 100 + "1.234;2\n")
    with (
        pytest.warns(UserWarning, match="decimal commas"),
        pytest.raises(ValueError, match=r"decimal commas in its first rows and '1\.234' later"),
    ):
        list(file.chunks(["a"], NUMBER))


def test_training_that_did_not_see_texts_tells_nothing(decided):
    frame = pd.read_csv(decided / "decided.csv", sep=";", decimal=",")
    frame.drop(columns=["income", "note", "age"]).to_parquet(decided / "d.parquet")
    task = ("--label", "repaid", "--sensitive", "sex", "--rounds", 2, "--max-gap", 0.3)
    run("train", decided / "d.parquet", *task, "-o", decided / "p")
    failed = run("audit", decided / "p", decided / "decided.csv", code=1).stderr
    assert "commas that may separate decimals or thousands, such as '" in failed


def test_the_commands_refuse_thousands(credit):
    path = credit / "credit.csv"
    grouped = pd.read_csv(path, sep=";", decimal=",")["income"].map(lambda one: f"{one:,.1f}")
    frame = pd.read_csv(path, sep=";").assign(income=grouped)
    frame.to_csv(path, sep=";", index=False)
    options = ("--label", "repaid", "--sensitive", "sex", "--rounds", 2, "-o", credit / "m")
    failed = run("train", path, *options, code=1)
    assert "column 'income' has numbers with separators of thousands, such as '" in failed.stderr
    assert failed.stderr.count("\n") == 1
    run("train", path, *options, "--drop", "income")


def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "."), text)
    return DataFile.from_path(path)


def test_a_zip_archive_of_one_table(tmp_path, credit):
    file = zipped(tmp_path / "t.csv.zip", t__csv="a,b\n1,x\n2,y\n")
    assert file.read().to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    assert [chunk.num_rows for chunk in file.chunks(["a"], NUMBER)] == [2]
    with zipfile.ZipFile(file.path, "a") as archive:
        archive.writestr("__MACOSX/._t.csv", "of macOS")
    assert file.column_names() == ["a", "b"]
    plain, packed = credit / "credit.csv", credit / "credit.csv.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(plain, "credit.csv")
    options = ("--label", "repaid", "--sensitive", "sex", "--rounds", 3)
    models = [credit / "plain.fairproj", credit / "packed.fairproj"]
    for path, model in zip((plain, packed), models, strict=True):
        run("train", path, *options, "-o", model)
    rows = pd.read_csv(plain, sep=";", decimal=",")[["income", "rooms", "savings"]]
    np.testing.assert_array_equal(*(load(model).predict_proba(rows) for model in models))
    run("audit", models[1], packed)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"a__csv": "a\n1\n", "b__csv": "a\n1\n"}, "holds 'a.csv', 'b.csv', and an archive with"),
        ({"a__exe": "a"}, "holds 'a.exe', and an archive with one .csv file is wanted"),
        ({}, "holds no file, and an archive"),
    ],
)
def test_other_archives(tmp_path, members, words):
    with pytest.raises(DataFileError, match=words):
        zipped(tmp_path / "t.csv.zip", **members).read()


def test_damaged_archives(tmp_path):
    path = tmp_path / "t.csv.zip"
    path.write_bytes(b"no archive")
    with pytest.raises(DataFileError, match="cannot be read as a table: File is not a zip file"):
        DataFile.from_path(path).read()
    file = zipped(path, t__csv="a,b\n" + "1,2\n" * 5000)
    content = bytearray(path.read_bytes())
    content[60:90] = os.urandom(30)
    path.write_bytes(content)
    with pytest.raises(DataFileError, match="cannot be read as a table"):
        file.read()
    locked = bytearray(zipped(path, t__csv="a,b\n1,2\n").path.read_bytes())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.find(header) + flags] |= 1
    path.write_bytes(locked)
    with pytest.raises(DataFileError, match="has a password"):
        file.read()


def test_a_header_longer_than_the_limit_of_the_csv_module(tmp_path):
    names = [f"a_column_with_a_long_name_{i}" for i in range(6000)]
    file = in_file(tmp_path, ",".join(names) + "\n" + ",".join(["1"] * 6000) + "\n")
    assert file.column_names() == names
    assert file.read().num_columns == 6000


def test_points_are_ambiguous_beside_decimal_commas():
    columns = [("a", pa.array(["1.234", "12.500"])), ("b", pa.array(["0,5", "1,25"]))]
    found = NumberTexts.of_traits(find_traits(columns)).found
    assert found["a"][0] is Spelling.ambiguous_points
    assert found["b"][0] is Spelling.decimal_comma
