"""``fairproj alternatives``, as a user runs it."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from commands import run, run_json
from fairproj import FairBoostClassifier, load
from fairproj.cli import _alternatives as command
from fairproj.cli import app
from fairproj.selection import SearchOutcome, fair_train_test_split
from fairproj.selection import alternatives as module
from simulated import unfair

TASK = ("--label", "repaid", "--sensitive", "sex")
QUICK = ("--rounds", 5, "--jobs", 1)


def write_loans(path, n_rows=1000):
    X, y, groups = unfair(n_rows)
    frame = pd.DataFrame(X, columns=["income", "zone", "noise"])
    frame["sex"] = np.where(groups, "male", "female")
    frame["repaid"] = np.where(y > 0, "yes", "no")
    frame.to_csv(path, index=False)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A folder with a file of loans, and all that the command writes about it."""
    folder = tmp_path_factory.mktemp("alternatives")
    data = folder / "loans.csv"
    write_loans(data)
    outputs = [part for kind in ("html", "md", "json") for part in ("-o", folder / f"a.{kind}")]
    model = ("--model", folder / "m.fairproj")
    result = run("alternatives", data, *TASK, *QUICK, "--tolerance", 0.2, *outputs, *model)
    return folder, result.stdout


@pytest.fixture
def few_targets(monkeypatch):
    """Fewer candidates of the same kinds."""
    monkeypatch.setattr(module, "TARGET_SHARES", (0.6, 0.2))


def test_the_last_rows_by_time_are_the_test_rows(tmp_path, few_targets):
    data = tmp_path / "loans.csv"
    write_loans(data)
    frame = pd.read_csv(data)
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(1000)[::-1] // 4, unit="D")
    frame.assign(applied_on=days.strftime("%d.%m.%Y")).to_csv(data, index=False)
    asked = ("alternatives", data, *TASK, *QUICK, "--tolerance", 0.2, "--time", "applied_on")
    cut = days[::-1][750].date()
    result = CliRunner().invoke(
        app, [*map(str, asked), "--model", f"{tmp_path}/m", "-o", f"{tmp_path}/a.md"]
    )
    assert result.exit_code in (0, 3, 4), result.output
    written = (tmp_path / "a.md").read_text()
    assert f"The 252 test rows are the rows from {cut} on, by applied" in written
    assert "applied_on" not in load(tmp_path / "m").feature_names_in_
    audited = run_json("audit", tmp_path / "m", data)
    assert audited["data"]["which"] == f"the rows from {cut} on, by applied_on"
    assert audited["data"]["rows"] == 252


def test_what_is_printed(searched):
    folder, printed = searched
    text = " ".join(printed.split())
    assert (
        "Models within the tolerance on the 250 selection rows, in the order of the choice" in text
    )
    assert "…" not in text  # 80 columns are enough for the table
    assert "On the 250 test rows figure model value 95 % interval" in text
    assert "A less discriminatory alternative was found" in text
    assert "Groups on the test rows, compared with male" in text
    assert re.search(r"\d+ more candidates, listed by --output and --json", text)
    assert f"Model: {folder / 'm.fairproj'}" in text.replace("- ", "-")


def test_the_files_say_the_same(searched):
    folder, printed = searched
    content = json.loads((folder / "a.json").read_text())
    page, markdown = ((folder / f"a.{kind}").read_text() for kind in ("html", "md"))
    assert content["outcome"] == "found"
    assert len(content["candidates"]) == 1 + 56
    for sentence in content["summary"]:
        assert sentence in " ".join(printed.split())
        assert sentence in markdown
        assert sentence in page
    for row in content["candidates"]:
        assert row["words"] in markdown
        assert row["words"] in page
    assert [row["rank"] for row in content["candidates"][1:3]] == [1, 2]
    assert content["reproduce"]["command"].startswith("fairproj")
    assert content["reproduce"]["sha256"] in markdown
    assert "This page is not legal advice" in markdown
    assert content["candidates"][1]["chosen"]


def test_audit_and_report_find_the_test_rows_again(searched):
    folder, _ = searched
    data, model = folder / "loans.csv", folder / "m.fairproj"
    content = json.loads((folder / "a.json").read_text())
    audited = run_json("audit", model, data)
    assert audited["data"]["which"] == "the 25 % of the rows held out from training"
    gap = next(row for row in audited["gaps"] if row["gap"] == "demographic_parity")
    (mine,) = [row["chosen"] for row in content["test"] if row["figure"] == "gap"]
    assert {end: gap[end] for end in mine} == mine
    frame = pd.read_csv(data)
    test = fair_train_test_split(frame, frame["repaid"], frame["sex"], random_state=0)[1]
    assert audited["data"]["rows"] == len(test)
    accuracy = (load(model).predict(test[["income", "zone", "noise"]]) == test["repaid"]).mean()
    (scored,) = [row["chosen"] for row in content["test"] if row["figure"] == "accuracy"]
    assert scored["estimate"] == pytest.approx(accuracy)
    run("report", model, data, "-o", folder / "r.html")
    assert "income" in run("info", model).stdout


def test_the_report_has_the_plain_model_of_the_search(searched):
    """The same figures as the page of the search, what that came to, and the target."""
    folder, _ = searched
    data, model = folder / "loans.csv", folder / "m.fairproj"
    content = json.loads((folder / "a.json").read_text())
    run("report", model, data, *(p for k in ("json", "md") for p in ("-o", folder / f"p.{k}")))
    shown = json.loads((folder / "p.json").read_text())
    scores = {row["name"]: row for row in shown["price"]["scores"]}
    gap = f"{content['gap_name']} (at most {shown['target']['max_gap']:g})"
    names = {"ROC AUC": "roc_auc", "accuracy": "accuracy", gap: "gap"}
    test = {row["figure"]: row for row in content["test"]}
    for name, figure in names.items():
        assert scores[name]["plain"] == pytest.approx(test[figure]["plain"]["estimate"])
        assert scores[name]["model"] == pytest.approx(test[figure]["chosen"]["estimate"])
    text = (folder / "p.md").read_text()
    assert "the plain model of the search" in text
    assert "same settings" not in text
    said = dict(shown["asked"])["Search, as the model file says"]
    assert said == " ".join(content["summary"][:2])
    chosen = content["candidates"][1]["params"]
    assert shown["target"]["metric"] == chosen["constraints"]
    assert shown["target"]["max_gap"] == chosen["max_gap"]
    assert shown["verdict"] != "no target"
    assert "No target" not in text
    printed = " ".join(run("info", model).stdout.split())
    assert content["summary"][0] in printed
    assert "the plain model of the search" in printed


def test_a_chosen_model_that_bounds_another_gap():
    found = SimpleNamespace(metric="equal_opportunity")
    chosen = FairBoostClassifier("demographic_parity", max_gap=0.1)
    bounded, searched_for = command._targets(found, chosen)
    assert (bounded.metric, bounded.max_gap) == ("demographic_parity", 0.1)
    assert (searched_for.metric, searched_for.max_gap) == ("equal_opportunity", None)


def test_ranked_candidates_have_intervals(searched):
    folder, printed = searched
    content = json.loads((folder / "a.json").read_text())
    page, markdown = ((folder / f"a.{kind}").read_text() for kind in ("html", "md"))
    for row in content["candidates"]:
        assert row["gap_low"] <= row["gap"] <= row["gap_high"]
        ends = f"{row['gap_low']:.3f} to {row['gap_high']:.3f}"
        assert f"{row['gap']:.3f} ({ends})" in markdown
        assert f"{row['gap']:.3f} ({ends})" in page
    first = content["candidates"][1]
    line = next(line for line in printed.splitlines() if line.startswith("1 "))
    numbers = [first[name] for name in ("roc_auc", "gap", "gap_low", "gap_high")]
    assert "  ".join(f"{number:.3f}" for number in numbers) in line
    for text in (" ".join(printed.split()), page, markdown):
        assert content["selected"] in text


def test_json_is_the_content(searched):
    folder, _ = searched
    again = run_json("alternatives", folder / "loans.csv", *TASK, *QUICK, "--tolerance", 0.2)
    written = json.loads((folder / "a.json").read_text())
    for part in ("candidates", "test", "groups", "summary"):
        assert again[part] == written[part]


@pytest.mark.usefixtures("few_targets")
def test_ranges_of_numbers_as_groups(tmp_path):
    """Numbers are cut as in training, and audit cuts them again."""
    X, y, groups = unfair(900)
    frame = pd.DataFrame(X, columns=["income", "zone", "noise"])
    frame["age"] = np.where(groups, 30, 50) + np.arange(900) % 9
    frame["repaid"] = (y > 0).astype(int)
    frame.to_csv(tmp_path / "d.csv", index=False)
    task = ("alternatives", tmp_path / "d.csv", "--label", "repaid", "--sensitive")
    assert "cut it into ranges" in run(*task, "age", *QUICK, code=1).stderr
    model = ("--model", tmp_path / "m.fairproj", "-o", tmp_path / "a.json", "--tolerance", 0.3)
    run(*task, "age:45", *QUICK, *model)
    content = json.loads((tmp_path / "a.json").read_text())
    audited = run_json("audit", tmp_path / "m.fairproj", tmp_path / "d.csv")
    names = {row["group"] for row in content["groups"]}
    assert names == {row["group"] for row in audited["data"]["groups"]}
    assert len(names) == 2


@pytest.mark.usefixtures("few_targets")
def test_none_found(tmp_path):
    """A perfect model, where every smaller gap costs accuracy; no model is written."""
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=800)
    x = (rng.normal(size=800) + group).round(1)
    frame = pd.DataFrame({"x": x, "sex": group, "repaid": (x > 0.5).astype(int)})
    frame.to_csv(tmp_path / "d.csv", index=False)
    files = ("-o", tmp_path / "a.html", "--model", tmp_path / "m.fairproj")
    options = ("--scoring", "accuracy", "--tolerance", 0, *files)
    result = run("alternatives", tmp_path / "d.csv", *TASK, *QUICK, *options, code=3)
    text = " ".join(result.stdout.split())
    assert "No less discriminatory alternative was found" in text
    assert "No model was chosen" in text
    assert not (tmp_path / "m.fairproj").exists()
    assert "No alternative found" in (tmp_path / "a.html").read_text()


@pytest.mark.usefixtures("few_targets")
def test_within_the_noise(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 2))
    frame = pd.DataFrame(x, columns=["x", "z"])
    frame["sex"] = rng.integers(2, size=1500)
    frame["repaid"] = (x[:, 0] + rng.normal(size=1500) > 0).astype(int)
    frame.to_csv(tmp_path / "d.csv", index=False)
    result = run("alternatives", tmp_path / "d.csv", *TASK, *QUICK, "--tolerance", 0.05, code=4)
    assert "within the noise" in " ".join(result.stdout.split())


@pytest.mark.usefixtures("few_targets")
def test_rare_labels_get_advice(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=1600)
    rare = x + 1.5 * rng.normal(size=1600) > 3.2
    frame = pd.DataFrame({"x": x, "sex": rng.integers(2, size=1600), "repaid": rare.astype(int)})
    frame.to_csv(tmp_path / "d.csv", index=False)
    arguments = ("alternatives", tmp_path / "d.csv", *TASK, *QUICK)
    stderr = run(*arguments, code=1).stderr
    assert "with rare labels add --class-weight balanced or --selection-rate" in stderr
    arguments = [str(one) for one in (*arguments, "--class-weight", "balanced", "--json")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code in (0, 3, 4)
    plain = json.loads(result.stdout)["candidates"][0]
    assert plain["useful"]
    assert plain["selection_rate"] > 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-o", "a.pdf"), "a.pdf has an unknown suffix; name a .html, .md or .json file"),
        (("-o", "loans.csv"), "loans.csv is an input already; name another file"),
        (("-o", "old.html"), "old.html exists already; add --force to replace it"),
        (("--tolerance", "-1"), "--tolerance -1 must be 0 or more and below 1"),
        (("--reference", "other"), "--reference 'other' is not a group; the groups are 'female'"),
        (("--threshold", 0.3, "--selection-rate", 0.3), "both say where to decide"),
        (("--positive", "maybe"), "--positive maybe is not among the values of 'repaid'"),
        (("--drop", "nothing"), "'nothing'"),
    ],
)
def test_bad_values(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    write_loans(tmp_path / "loans.csv", 400)
    (tmp_path / "old.html").write_text("kept")
    result = run("alternatives", "loans.csv", *TASK, *QUICK, *options, code=1)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert (tmp_path / "old.html").read_text() == "kept"


@pytest.mark.parametrize(
    "options",
    [
        ("--constraint", "parity"),
        ("--constraint", "predictive_parity"),
        ("--scoring", "f1"),
        ("--threshold", 2),
        ("--jobs", 0),
    ],
)
def test_wrong_usage(tmp_path, options):
    write_loans(tmp_path / "loans.csv", 200)
    assert "error: -" in run("alternatives", tmp_path / "loans.csv", *TASK, *options, code=2).stderr


def test_interrupted(tmp_path, monkeypatch):
    write_loans(tmp_path / "loans.csv", 600)
    original, calls = module.SeparateRows.fit, []

    def interrupted(self, **parameters):
        calls.append(parameters)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(self, **parameters)

    monkeypatch.setattr(module.SeparateRows, "fit", interrupted)
    output = ("-o", tmp_path / "a.html")
    result = run("alternatives", tmp_path / "loans.csv", *TASK, *QUICK, *output, code=130)
    assert result.stderr == (
        "Interrupted. 3 of 56 candidates were measured, and nothing was chosen.\n"
    )
    assert not (tmp_path / "a.html").exists()


@pytest.mark.usefixtures("few_targets")
def test_the_files_of_a_hostile_table(tmp_path):
    """Names from the data are text everywhere."""
    X, y, groups = unfair(600)
    name = "<script>alert(1)</script> | *x*"
    frame = pd.DataFrame(X, columns=[name, "b", "c"])
    frame["sex"] = np.where(groups, name, "ordinary")
    frame["repaid"] = np.where(y > 0, name, "no")
    frame.to_csv(tmp_path / "d.csv", index=False)
    outputs = ("-o", tmp_path / "a.html", "-o", tmp_path / "a.md")
    more = ("--positive", name, "--tolerance", 0.3)
    arguments = ("alternatives", tmp_path / "d.csv", *TASK, *QUICK, *outputs, *more)
    run(*arguments, code=0)
    assert "<script>alert" not in (tmp_path / "a.html").read_text()
    assert "<script>alert" not in (tmp_path / "a.md").read_text()


@pytest.mark.parametrize("outcome", list(SearchOutcome))
def test_the_exit_code_of_each_outcome(tmp_path, monkeypatch, outcome):
    """4 also where the gap is smaller and the score may be within the tolerance or not."""
    data = tmp_path / "loans.csv"
    write_loans(data, 400)
    original = command.find_alternatives

    def small(*arguments, **options):
        grid = {"constraints": ["demographic_parity"], "max_gap": [0.1]}
        found = original(*arguments, **options, param_grid=grid, n_resamples=100)
        return replace(found, outcome=outcome)

    monkeypatch.setattr(command, "find_alternatives", small)
    result = CliRunner().invoke(app, ["alternatives", str(data), *TASK, *map(str, QUICK)])
    codes = {"found": 0, "uncertain": 4, "score uncertain": 4}
    assert result.exit_code == codes.get(outcome.value, 3)


@pytest.mark.usefixtures("few_targets")
def test_a_number_that_one_test_row_misses(tmp_path):
    data, model = tmp_path / "loans.csv", tmp_path / "m.fairproj"
    write_loans(data, 400)
    frame = pd.read_csv(data)
    test = fair_train_test_split(
        np.arange(400), frame["repaid"], frame["sex"], test_size=0.25, random_state=0
    )[1]
    frame.loc[test[0], "income"] = np.nan
    frame.to_csv(data, index=False)
    options = [*TASK, *map(str, QUICK), "--tolerance", "0.2", "--model", str(model)]
    result = CliRunner().invoke(app, ["alternatives", str(data), *options])
    assert result.exit_code in (0, 3, 4), result.output
    assert model.exists()
