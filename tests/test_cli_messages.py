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


def test_help_shows_the_kind_of_one_value():
    for command in ("train", "check", "audit", "predict"):
        assert "list[" not in run(command, "--help").output


def test_an_interrupted_run_on_a_cluster_names_the_option(monkeypatch):
    from fairproj.cli import _large
    from fairproj.distributed import ClusterError

    class Client:
        def close(self):
            pass

    monkeypatch.setattr(_large, "_client", lambda scheduler: Client())
    kept = "the rounds up to 102 are in r 3.checkpoint: pass it as resume_from"
    with (
        pytest.raises(
            KeyboardInterrupt, match=r"^after round 102; continue with --resume-from 'r 3"
        ),
        _large.connect("tcp://x", None, None),
    ):
        raise KeyboardInterrupt(f"training was interrupted; {kept}")
    with (
        pytest.raises(
            ValueError, match=r"^lost; it ended after round 102; continue with --resume-fr"
        ),
        _large.connect("tcp://x", None, None),
    ):
        raise ClusterError(f"lost; {kept}")


def test_an_interrupt_is_one_sentence(capsys):
    import typer

    from fairproj.cli._app import report_errors

    @report_errors
    def command():
        raise KeyboardInterrupt("after round 102; continue with --resume-from r3.checkpoint")

    with pytest.raises(typer.Exit):
        command()
    said = "Interrupted after round 102; continue with --resume-from r3.checkpoint\n"
    assert capsys.readouterr().err == said


def test_the_second_progress_bar_has_its_own_name():
    from fairproj.io.progress import bar_title

    assert bar_title("equal_opportunity") == "boosting"
    assert bar_title(None) == "without constraint"


@pytest.mark.parametrize(
    ("frame", "options", "wanted"),
    [
        ({"paid": ["yes", "no", "maybe"]}, [], "keep the rows with two of them, write the same"),
        ({"paid": ["yes", "no", "Yes"]}, [], "'yes', 'Yes' differ only in case or spaces: write"),
        ({"paid": ["yes", "no", None]}, [], "200 missing values in 600 rows; drop those rows\n"),
        ({"paid": ["yes"]}, [], "has one value ('yes'), and two are needed; give rows with"),
        ({}, ["--positive", "ja"], "which are 'no', 'yes'; give one of these"),
        ({"w": [-1.0] + [1.0] * 599}, ["--weights", "w"], "has 1 negative weight in 600 rows"),
    ],
)
def test_errors_say_what_to_do(tmp_path, frame, options, wanted):
    columns = {name: np.resize(values, 600) for name, values in frame.items()}
    data = write(make_loans().assign(**columns), tmp_path / "d.csv")
    output = run("train", data, *TASK, *options, "-o", tmp_path / "m", code=1).stderr
    assert wanted in output


def test_a_test_that_fails_says_which_rows_it_used(tmp_path, monkeypatch):
    from fairproj.selection import confirm

    frame = make_loans(2000)
    frame["day"] = pd.date_range("2024-01-01", periods=len(frame)).astype(str)
    data = write(frame, tmp_path / "d.csv")
    monkeypatch.setattr(confirm, "gap_upper_bound", lambda *_: 0.31)
    options = ("--max-gap", "0.3", "--confidence", "0.95", "--time", "day", "--rounds", "3")
    output = run("train", data, *TASK, *options, "-o", tmp_path / "m", code=6).stderr
    assert "rows from before 2028-02-09, by day, that training did not see" in output
    assert "use new rows, and more of them, a larger --max-gap or --margin one_se" in output
    assert output.endswith("no model file is written\n")
    (tmp_path / "m").write_text("the earlier file")
    output = run("train", data, *TASK, *options, "-o", tmp_path / "m", "--force", code=6).stderr
    assert output.endswith("no model file is written, and the one that exists is unchanged\n")
    assert (tmp_path / "m").read_text() == "the earlier file"


def test_train_and_check_say_what_a_column_of_dates_is_for(tmp_path):
    data = write(make_loans().assign(day="2024-05-01", note="2024-05-02"), tmp_path / "d.csv")
    output = run("train", data, *TASK, "-o", tmp_path / "m", code=1).stderr
    assert "or hold out the last rows by time with --time day" in output
    findings = run_json("check", data, *TASK)["findings"]
    unusable = [one["sentence"] for one in findings if one["kind"] == "unusable"]
    assert len(unusable) == 2
    assert "name it with --time day to hold out the last rows by time" in unusable[0]


def test_check_reads_a_folder(tmp_path):
    frame = make_loans()
    write(frame, tmp_path / "all.csv")
    (tmp_path / "rows").mkdir()
    frame[:300].to_parquet(tmp_path / "rows" / "part-0.parquet")
    frame[300:].to_parquet(tmp_path / "rows" / "part-1.parquet")
    expected = run_json("check", tmp_path / "all.csv", *TASK)
    for path in (tmp_path / "rows", tmp_path / "rows" / "*.parquet"):
        assert run_json("check", path, *TASK) == {**expected, "file": str(path)}
    frame[:5].assign(debts="few").to_parquet(tmp_path / "rows" / "part-2.parquet")
    output = run("check", tmp_path / "rows", *TASK, code=1).stderr
    assert "part-2.parquet holds text, and whole numbers in the files before; write" in output


def test_missing_values_by_group_are_readable_at_80_columns(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    frame = make_loans()
    region = np.resize(["north-west", "south-west", "north-east", "south-east"], len(frame))
    frame["region"] = region
    frame.loc[(region == "north-west") & (frame["gender"] == "f"), "income"] = np.nan
    data = write(frame, tmp_path / "d.csv")
    output = run("check", data, *TASK, "--sensitive", "region").stdout
    [row] = [line.split() for line in output.splitlines() if "100.0 %" in line]
    assert row == ["income", "f,", "north-west", "100.0", "%", "f,", "north-east", "0.0", "%"]


def test_decimal_commas_are_a_note_in_every_command(tmp_path, model):
    frame = make_loans()
    frame["income"] = frame["income"].map(lambda value: f"{value:.2f}".replace(".", ","))
    frame.to_csv(data := tmp_path / "d.csv", index=False, sep=";")
    for output in (
        run("check", data, *TASK).stdout,
        run("predict", model, data, "-o", tmp_path / "p.csv").stderr,
    ):
        assert "decimal commas" in output
        notes = [line for line in output.splitlines() if line.startswith("note: ")]
        assert any("'income' has decimal" in " ".join(line.split()) for line in notes)


def test_info_shows_what_the_model_file_records(tmp_path):
    data = write(make_loans().assign(region=np.resize(["n", "s", "s"], 600)), tmp_path / "d.csv")
    options = ("--sensitive", "region", "--drop", "debts", "--max-gap", "0.5", "--rounds", "3")
    run("train", data, *TASK, *options, "--positive", "no", "-o", tmp_path / "m.fairproj")
    shown = " ".join(run("info", tmp_path / "m.fairproj").stdout.split())
    for words in (
        "command ",
        "positive label no",
        "groups f, n; f, s; m, n; m, s",
        "features 1: income",
        "dropped columns debts",
        "target a gap of at most 0.5 in equal_opportunity",
        "class weight none",
        "checksum of the data SHA-256 ",
        "time column none",
        "confirmed not tested",
    ):
        assert words in shown, words


def scored(path, days, n_rows=600):
    """Rows with predictions and a column of days."""
    frame = make_loans(n_rows)
    return write(frame.assign(predicted=frame["paid"], day=np.resize(days, n_rows)), path)


BY = (*TASK, "--predictions", "predicted", "--by")


def test_dates_with_points_go_by_month(tmp_path):
    data = scored(tmp_path / "d.csv", ["01.02.2025", "28.02.2025", "3.1.2025"])
    found = run_json("audit", data, *BY, "day")
    assert [row["value"] for row in found["by"]["values"]] == ["2025-01", "2025-02"]


def test_dates_of_another_form_are_refused(tmp_path):
    data = scored(tmp_path / "d.csv", ["01/02/2025", "02/28/2025"])
    output = run("audit", data, *BY, "day", code=1).stderr
    assert "column 'day' of --by holds '01/02/2025', a date in a form that is not read" in output
    assert "write dates as 2026-03-31 or 31.03.2026" in output


def test_texts_with_points_that_are_no_dates_are_values(tmp_path):
    data = scored(tmp_path / "d.csv", ["1.2.3", "1.10.3", "12-34-56"])
    found = run_json("audit", data, *BY, "day")
    assert {row["value"] for row in found["by"]["values"]} == {"1.2.3", "1.10.3", "12-34-56"}


def test_periods_are_proposed_for_dates_only(tmp_path):
    days = pd.date_range("2020-01-01", periods=600).astype(str)
    data = scored(tmp_path / "d.csv", days)
    assert "as in --by day:year" in run("audit", data, *BY, "day:day", code=1).stderr
    output = run("audit", data, *BY, "income", code=1).stderr
    assert "name a column with fewer values, such as a region or a date" in output
    assert ":year" not in output


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--threshold", "2"], "error: --threshold: 2 must lie between 0 and 1; see fairproj "),
        (["--max-gap", "3"], "error: --max-gap: 3 should be less than or equal to 1; see "),
        (["--nothing"], "error: No such option: --nothing"),
    ],
)
def test_wrong_usage_is_one_line(options, wanted):
    output = run("train", "d.csv", *TASK, "-o", "m", *options, code=2).stderr
    assert output.startswith(wanted)
    assert output.count("\n") == 1


def test_only_what_can_be_constrained_is_listed():
    output = run("train", "d.csv", *TASK, "-o", "m", "--constraint", "foo", code=2).stderr
    assert "'foo' is unknown; use one of demographic_parity" in output
    assert "predictive_parity" not in output


def test_a_model_file_that_does_not_exist():
    said = "nope.fairproj does not exist; give the path of a file that does"
    assert said in run("info", "nope.fairproj", code=1).stderr


@pytest.mark.parametrize("name", ["FOUND", "COSTLY", "NOT_CONFIRMED"])
def test_a_model_that_is_no_alternative_has_no_next_step(capsys, name):
    from pathlib import Path
    from types import SimpleNamespace

    from fairproj.cli._alternatives import _show_files
    from fairproj.selection import SearchOutcome

    found = SimpleNamespace(chosen=object(), outcome=SearchOutcome[name])
    _show_files(found, [], Path("m.fairproj"), Path("d.csv"))
    assert ("Next: fairproj report" in capsys.readouterr().out) == (name == "FOUND")


def test_of_many_groups_the_extreme_rates_are_printed(tmp_path):
    rng = np.random.default_rng(0)
    groups = np.repeat([f"g{at:02}" for at in range(60)], 30)
    frame = pd.DataFrame({"g": groups, "y": rng.integers(2, size=1800)})
    frame["said"] = (rng.random(1800) < np.repeat(np.linspace(0.05, 0.95, 60), 30)).astype(int)
    frame.to_csv(tmp_path / "s.csv", index=False)
    asked = ("audit", tmp_path / "s.csv", "--predictions", "said", "--label", "y")
    shown = run(*asked, "--sensitive", "g").stdout
    rates = {row["name"] for row in run_json(*asked, "--sensitive", "g")["rates"]}
    table = shown[shown.index("Rates by group") : shown.index("Of 60 groups, those with the 10")]
    assert len(table.strip().splitlines()) == 2 + 20 * len(rates)
    lowest, highest = frame.groupby("g")["said"].mean().sort_values().index[[0, -1]]
    assert lowest in table
    assert highest in table
    few = frame[frame["g"] < "g40"]
    few.to_csv(tmp_path / "s.csv", index=False)
    assert "lowest and the" not in run(*asked, "--sensitive", "g").stdout


@pytest.mark.parametrize("options", [(), ("--out-of-core",)])
def test_a_column_of_dates_that_is_no_group_is_one_of_three_choices(tmp_path, options):
    days = pd.date_range("2026-01-01", periods=60)
    frame = pd.DataFrame({"day": days, "x": np.arange(60.0), "y": [0, 1] * 30})
    frame.to_parquet(tmp_path / "s.parquet")
    asked = ("--label", "y", "--sensitive", "day", *options, "-o", tmp_path / "m.fairproj")
    error = run("train", tmp_path / "s.parquet", *asked, code=1).stderr
    assert "turn them into numbers or text, or give another column" in " ".join(error.split())


def test_crossed_columns_may_have_one_value(tmp_path):
    data = write(make_loans().assign(country="CH"), tmp_path / "d.csv")
    crossed = ("--label", "paid", "--sensitive", "gender", "--sensitive", "country")
    told = " ".join(run("check", data, *crossed).stdout.split())
    assert "gender and country, crossed, make 2 groups" in told
    assert "country has one value only" in told
    run("train", data, *crossed, "--rounds", "3", "--max-gap", "0.2", "-o", tmp_path / "m")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["25.410,4", "1.210,5"], "has numbers with separators of thousands, such as '25.410,4'"),
        (["2024-01-02", "2024-01-03"], "holds dates, which cannot be used as a feature"),
    ],
)
def test_check_says_why_no_feature_is_left(tmp_path, values, said):
    frame = make_loans()[["gender", "paid"]].assign(x=np.resize(values, 600))
    data = write(frame, tmp_path / "d.csv")
    error = run("check", data, "--label", "paid", "--sensitive", "gender", code=1).stderr
    assert "no column that can be used as a feature: column 'x'" in error
    assert said in error
    frame = frame.drop(columns="x")
    error = run("check", write(frame, data), "--label", "paid", "--sensitive", "gender", code=1)
    assert "has no column left to predict from; add columns of features" in error.stderr


def test_frontier_proposes_no_option_that_it_lacks(tmp_path):
    data = write(make_loans().assign(day="2024-05-01"), tmp_path / "d.csv")
    error = run("frontier", data, *TASK, "-o", tmp_path / "f.csv", code=1).stderr
    assert "leave it out with --drop day" in error
    assert "--time" not in error


def test_options_that_were_not_given_are_not_named(tmp_path):
    data = write(make_loans(), tmp_path / "d.csv")
    error = run("train", data, *TASK, "--rule", "mean", "-o", tmp_path / "m", code=1).stderr
    assert "--rule is for a search; add --search, or leave out --rule" in error
    paper = ("--method", "paper", "--constraint", "selection_ratio", "-o", tmp_path / "m")
    error = run("train", data, *TASK, *paper, code=1).stderr
    assert "--method paper balances training weights and cannot limit a ratio" in error
    error = run("alternatives", data, *TASK, "--reference", "x", code=1).stderr
    assert "--reference 'x' is not a group; the groups are 'f', 'm'" in error


def test_a_model_that_says_the_same_to_new_people_is_not_useful(tmp_path):
    """It is a little better than a constant on the rows it was trained on."""
    random = np.random.default_rng(1)
    rare = random.random(4000) < 0.05
    frame = pd.DataFrame(
        {
            "x": rare * 0.9 + random.normal(size=4000),
            "z": random.normal(size=4000),
            "g": random.choice(["a", "b"], 4000),
            "y": np.where(rare, "yes", "no"),
        }
    )
    data = write(frame, tmp_path / "d.csv")
    asked = ("--label", "y", "--sensitive", "g", "--method", "paper", "--depth", "4")
    output = run("train", data, *asked, "--rounds", "5", "-o", tmp_path / "m", code=5).stderr
    assert "the model is not useful: on the rows held out from training it says nearly" in output
    assert "leave out --method paper" in output


def test_frontiers_decide_where_asked(tmp_path):
    data = write(make_loans(), tmp_path / "d.csv")
    few = ("--rounds", "5", "--folds", "2", "--values", "0.1,0.3")
    for point in (("--selection-rate", "0.2"), ("--class-weight", "balanced")):
        found = run_json("frontier", data, *TASK, *few, *point)
        assert {one["series"] for one in found["points"]} == {"FairBoost"}
    plain = run_json("frontier", data, *TASK, *few)
    assert len({one["series"] for one in plain["points"]}) == 2
    share = run_json("frontier", data, *TASK, *few, "--selection-rate", "0.2")["points"]
    assert max(one["score"] for one in share) < min(one["score"] for one in plain["points"])
