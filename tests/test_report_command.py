"""``fairproj report`` as an auditor runs it."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from commands import run, run_json, run_main, run_new
from fairproj import FairBoostClassifier, FairProjClassifier, load
from fairproj.cli import _choice
from fairproj.constraints import RATES
from fairproj.metrics import gap_difference


def make_credit(n_rows=1600):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "customer": np.arange(n_rows),
            "income": rng.gamma(3, 10, size=n_rows).round(1),
            "debt": rng.gamma(2, 8, size=n_rows).round(1),
            "job": rng.choice(["office", "works", "none"], size=n_rows),
            "sex": rng.choice(["female", "male"], size=n_rows, p=[0.4, 0.6]),
        }
    )
    score = 0.05 * frame["income"] - 0.08 * frame["debt"] + 0.5 * (frame["sex"] == "male")
    repaid = score + rng.normal(size=n_rows) > 0
    return frame.assign(repaid=np.where(repaid, "yes", "no"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("credit")
    make_credit().to_csv(folder / "credit.csv", index=False)
    asked = ["--label", "repaid", "--sensitive", "sex", "--drop", "customer"]
    asked += ["--max-gap", "0.02", "--rounds", "15"]
    run("train", folder / "credit.csv", *asked, "-o", folder / "credit.fairproj")
    return folder


@pytest.fixture(scope="module")
def report(folder):
    """The content, the page, the Markdown text and the card of one report, which trains nothing."""
    with pytest.MonkeyPatch.context() as patch:
        for estimator in (FairBoostClassifier, FairProjClassifier):
            patch.setattr(estimator, "fit", lambda *_, **__: pytest.fail("a model was trained"))
        outputs = [folder / f"report.{suffix}" for suffix in ("json", "html", "md")]
        options = [part for path in outputs for part in ("-o", path)]
        options += ["--card", folder / "card.md"]
        run("report", folder / "credit.fairproj", folder / "credit.csv", *options)
    texts = [path.read_text("utf-8") for path in (*outputs, folder / "card.md")]
    return json.loads(texts[0]), *texts[1:]


def test_the_report_begins_with_what_is_decided(report):
    content, page, text, card = report
    assert content["title"] == "Fairness report: credit.fairproj"
    subject = dict(content["subject"])
    assert subject["Model"] == "credit.fairproj (FairBoostClassifier)"
    assert subject["A positive prediction says"] == "repaid is yes"
    assert subject["Sensitive columns"] == "sex"
    assert subject["Features"] == "3: income, debt, job"
    assert subject["Columns left out"] == "customer"
    assert subject["Sensitive columns among the features"] == "none"
    assert subject["Rows"].endswith("of credit.csv, the 25 % of the rows held out from training")
    today = datetime.date.today()
    dates = {(today - datetime.timedelta(days)).isoformat() for days in (0, 1)}
    assert subject["Trained"] in dates
    assert (
        page.index("What is decided")
        < page.index(">Verdict<")
        < page.index("Compared with the unconstrained")
    )
    assert text.startswith("# Fairness report: credit.fairproj")
    assert card.startswith("# Model card: credit.fairproj")
    names = [line.split(" | ")[0] for line in card.split("## Intended use")[0].splitlines()]
    assert names.count("| Model") == 1


def test_the_report_holds_what_an_auditor_reads(folder, report):
    content, *_ = report
    rows = pd.read_csv(folder / "credit.csv")
    model = load(folder / "credit.fairproj")
    assert {row["rate"] for row in content["rates"]} == set(RATES)
    assert {"precision", "false_negative_rate"} <= set(RATES)
    price = {row["name"]: row for row in content["price"]["scores"]}
    assert {"accuracy", "ROC AUC"} <= set(price)
    assert any(name.startswith(content["target"]["name"]) for name in price)
    interval = content["price"]["interval"]
    assert interval["low"] <= price["accuracy"]["difference"] <= interval["high"]
    assert content["selection_ratio"]["wanted"] == 0.8
    assert content["threshold"] == pytest.approx(model.threshold_)
    curve = content["thresholds"]
    at = curve["threshold"].index(round(model.threshold_, 6))
    gap = next(row for row in content["gaps"] if row["gap"] == content["target"]["metric"])
    assert curve["gap"][at] == pytest.approx(gap["estimate"], abs=1e-6)
    assert {group["group"] for group in content["calibration"]["groups"]} == {"female", "male"}
    features = [feature["name"] for feature in content["importance"]["features"]]
    assert sorted(features) == ["debt", "income", "job"]
    sizes = [sum(g["positives"]) + sum(g["negatives"]) for g in content["distribution"]["groups"]]
    assert sum(sizes) == content["data"]["rows"] == len(rows) // 4
    assert content["not_looked_at"]


def test_numbers_at_another_threshold_are_those_of_other_decisions(folder, tmp_path):
    """On rows that training has not seen, so that all of them count."""
    new = make_credit().sample(700, replace=True, random_state=1).reset_index(drop=True)
    new.to_csv(tmp_path / "new.csv", index=False)
    path = tmp_path / "r.json"
    run("report", folder / "credit.fairproj", tmp_path / "new.csv", "-o", path)
    content = json.loads(path.read_text("utf-8"))
    model = load(folder / "credit.fairproj")
    probability = model.predict_proba(new[["income", "debt", "job"]])[:, 1]
    curve = content["thresholds"]
    for threshold in (0.3, 0.55, 0.8):
        at = curve["threshold"].index(threshold)
        said = np.where(probability > threshold, "yes", "no")
        expected = gap_difference(new["repaid"], said, sensitive_features=new["sex"])
        assert curve["gap"][at] == pytest.approx(expected, abs=1e-6)
        assert curve["accuracy"][at] == pytest.approx(np.mean(said == new["repaid"]), abs=1e-6)
    assert "Whether the model has seen these rows" in " ".join(content["not_looked_at"])


def test_what_the_model_file_claims_is_called_a_claim(folder, report):
    content, page, text, card = report
    recorded = load(folder / "credit.fairproj").metadata_["fairproj train"]["command"]
    assert content["reproduce"]["claimed"] == recorded
    assert "\n" not in content["reproduce"]["command"]  # this report alone
    for written in (page, text, card):
        assert "as its file says (not verified)" in written


def test_a_proxy_that_training_found_is_in_the_report(tmp_path):
    """A copy of the sensitive column, right in 99 % of the rows, among the features."""
    frame = make_credit()
    other = {"female": "male", "male": "female"}
    kept = np.random.default_rng(0).random(len(frame)) < 0.99
    frame = frame.assign(title=np.where(kept, frame["sex"], frame["sex"].map(other)))
    frame.to_csv(tmp_path / "credit.csv", index=False)
    asked = ["--label", "repaid", "--sensitive", "sex", "--drop", "customer", "--rounds", "5"]
    run("train", tmp_path / "credit.csv", *asked, "--max-gap", "0.3", "-o", tmp_path / "m.fairproj")
    outputs = ["-o", tmp_path / "r.json", "-o", tmp_path / "r.html"]
    run("report", tmp_path / "m.fairproj", tmp_path / "credit.csv", *outputs)
    content = json.loads((tmp_path / "r.json").read_text("utf-8"))
    first = content["proxies"]["findings"][0]
    assert (first["name"], first["column"]) == ("Proxy", "title")
    assert first["measure"] > 0.95
    assert content["proxies"]["sentence"].endswith(": title.")
    assert "Proxies and other findings" in (tmp_path / "r.html").read_text("utf-8")
    assert not any(sentence.startswith("Proxies") for sentence in content["not_looked_at"])


def test_a_report_about_predictions_is_named_after_them(tmp_path):
    frame = make_credit(400)
    frame.assign(said=frame["repaid"]).to_csv(tmp_path / "scored.csv", index=False)
    options = ["--predictions", "said", "--label", "repaid", "--sensitive", "sex"]
    run("report", tmp_path / "scored.csv", *options, "-o", tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert content["title"] == "Fairness report: column said of scored.csv"
    assert "only its predictions were given" in " ".join(content["not_looked_at"])
    for name in ("thresholds", "calibration", "distribution", "importance", "price"):
        assert content[name] is None


def test_an_estimator_of_the_users_own_has_no_importances(tmp_path):
    from sklearn.tree import DecisionTreeClassifier

    frame = make_credit()
    numbers = frame[["income", "debt"]]
    model = FairProjClassifier(estimator=DecisionTreeClassifier(max_depth=2), n_estimators=5)
    model.fit(numbers, frame["repaid"], sensitive_features=frame["sex"])
    model.save(tmp_path / "m.fairproj")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    files = (tmp_path / "m.fairproj", tmp_path / "rows.csv")
    options = ["--label", "repaid", "--sensitive", "sex", "-o", tmp_path / "r.json"]
    run("report", *files, *options, "--trust", "sklearn.tree._tree.Tree")
    content = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert content["importance"] is None
    assert "Which features decide" in " ".join(content["not_looked_at"])
    assert content["threshold"] == 0.5
    assert content["thresholds"] is not None


UNUSED = {"matplotlib", "xgboost", "dask", "polars", "skops", "fairlearn", "onnx", "cvxpy"}
UNUSED |= {"sklearn.ensemble", "sklearn.tree", "sklearn.linear_model", "sklearn.calibration"}
UNUSED |= {
    "fairproj.baselines",
    "fairproj.datasets",
    "fairproj.distributed",
    "fairproj.experiments",
}


@pytest.mark.parametrize("name", ["report", "audit"])
def test_nothing_is_imported_that_a_report_does_not_use(folder, tmp_path, name):
    """Imports are much of the time that a report takes."""
    files = [folder / "credit.fairproj", folder / "credit.csv"]
    output = ["-o", tmp_path / "report.html"] if name == "report" else []
    printed, modules = run_new(run_main(name, *files, *output))
    printed = "".join(printed.split("\n"))  # long paths take several lines
    assert "rates by group" in printed.lower() or "report.html" in printed
    assert {"lightgbm", "pyarrow.csv", "fairproj.report"} <= modules
    assert not modules & UNUSED


def test_labels_and_groups_of_training_are_read_once(folder, monkeypatch):
    """The rows held out are found from those that are read to be checked."""
    files = [folder / "credit.fairproj", folder / "credit.csv"]
    monkeypatch.setattr(_choice, "find_keys", lambda *_: pytest.fail("they were read again"))
    same = run_json("audit", *files)
    assert same["data"]["which"].startswith("the 25 %")
    monkeypatch.undo()
    other = run_json("audit", *files, "--sensitive", "job")
    assert other["data"]["rows"] == same["data"]["rows"]
    assert other["data"]["which"] == same["data"]["which"]


def test_features_are_explained_where_they_are_shown(folder, monkeypatch):
    files = [folder / "credit.fairproj", folder / "credit.csv"]
    assert run_json("audit", *files)["importance"]["features"]
    explain = "contributions_matrix"
    monkeypatch.setattr(FairBoostClassifier, explain, lambda *_: pytest.fail("not shown"))
    run("audit", *files)
