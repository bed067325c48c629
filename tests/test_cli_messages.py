"""Sentences that tell what to do: about cells, dates, labels, options and tests that fail."""

import numpy as np
import pandas as pd
import pytest

from commands import run, run_json
from fairproj.io.tables import DataFile, DataFileError


def make_loans(n_rows=600, seed=0):
    """Loans of two groups whose label follows the income."""
    random = np.random.default_rng(seed)
    income = random.normal(30000, 8000, n_rows).round(2)
    paid = np.where(income + random.normal(0, 6000, n_rows) > 28000, "yes", "no")
    return pd.DataFrame(
        {
            "income": income,
            "debts": random.integers(0, 9, n_rows),
            "gender": random.choice(["f", "m"], n_rows),
            "paid": paid,
        }
    )


def write(frame, path):
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model file, trained on `make_loans`."""
    folder = tmp_path_factory.mktemp("model")
    data, path = write(make_loans(), folder / "loans.csv"), folder / "m.fairproj"
    run(*("train", data, "--label", "paid", "--sensitive", "gender", "--max-gap", "0.5"),
        *("--rounds", "3", "-o", path))  # fmt: skip
    return path


TASK = ("--label", "paid", "--sensitive", "gender")


def with_cells(path, column, cells):
    frame = make_loans()
    frame[column] = frame[column].astype(object)
    for row, cell in cells.items():
        frame.loc[row - 1, column] = cell
    return write(frame, path)


def test_one_cell_that_is_not_a_number_is_named(tmp_path):
    data = with_cells(tmp_path / "d.csv", "income", {8: "n/k"})
    wanted = "599 of 600 values of 'income' are numbers, 'n/k' (row 8) is not; correct it or leave"
    output = run("train", data, *TASK, "-o", tmp_path / "m.fairproj", code=1).stderr
    assert wanted in output
    assert "identifiers" not in output
    findings = run_json("check", data, *TASK)["findings"]
    [found] = [one for one in findings if one["column"] == "income"]
    assert found["kind"] == "not_numbers"
    assert found["sentence"].startswith(wanted)


def test_several_cells_are_counted(tmp_path):
    cells = {8: "n/k", 9: "?", 20: "-", 30: "n/k"}
    data = with_cells(tmp_path / "d.csv", "income", cells)
    wanted = "596 of 600 values of 'income' are numbers, 4 are not: 'n/k' (row 8), '?' (row 9), "
    wanted += "'-' (row 20) and 1 more; correct them"
    assert wanted in run("train", data, *TASK, "-o", tmp_path / "m", code=1).stderr


def test_a_few_numbers_beside_text_are_categories(tmp_path):
    data = with_cells(tmp_path / "d.csv", "debts", {8: "9+"})
    assert not DataFile.from_path(data).read_spelled()[1].nearly


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("n/k", "which is not a number; correct it or leave it empty"),
        ("1.234,50", "which is not a number; write thousands without a separator"),
        ("1_000", "which is not a number; correct it"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_text_in_a_column_of_numbers_has_column_row_and_value(
    tmp_path, model, cell, wanted, ending
):
    data = with_cells(tmp_path / f"d.{ending}", "income", {8: cell})
    sentence = f"column 'income' holds '{cell}' in row 8, {wanted}"
    assert sentence in run("predict", model, data, "-o", tmp_path / "p.csv", code=1).stderr
    assert sentence in run("audit", model, data, code=1).stderr


def test_the_cell_at_fault_is_named_in_a_file_with_decimal_commas(tmp_path, model):
    frame = make_loans()
    frame["income"] = frame["income"].map(lambda value: f"{value:.2f}".replace(".", ","))
    frame.loc[7, "income"] = "n/k"
    frame.to_csv(data := tmp_path / "d.csv", index=False, sep=";")
    output = run("predict", model, data, "-o", tmp_path / "p.csv", code=1).stderr
    assert "column 'income' holds 'n/k' in row 8" in output


@pytest.mark.parametrize("command", ["check", "predict"])
def test_a_ragged_line_has_its_number(tmp_path, model, command):
    data = write(make_loans(), tmp_path / "d.csv")
    lines = data.read_text().splitlines()
    lines[10] += ",1"
    data.write_text("\n".join(lines))
    arguments = {"check": (data, *TASK), "predict": (model, data, "-o", tmp_path / "p.csv")}
    output = run(command, *arguments[command], code=1).stderr
    assert "d.csv: line 11 has 5 values and there are 4 column names; correct that" in output


def test_files_without_rows_say_what_to_give(tmp_path):
    (tmp_path / "d.csv").write_text("a,b\n")
    with pytest.raises(DataFileError, match="has column names but no rows; give a file with rows"):
        DataFile.from_path(tmp_path / "d.csv").read()
