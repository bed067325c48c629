"""Reads the ACS files of a user with folktables: ``python -m arena.acs FOLDER OUTPUT``.

It runs in an environment that has folktables. FOLDER holds person files as folktables keeps them,
YEAR/1-Year/psam_pCODE.csv; nothing is downloaded. OUTPUT becomes a CSV of the task ACSIncome, with
the description that `arena.data.user_problems` wants.
"""

from __future__ import annotations

import sys
from pathlib import Path

PATTERN = "*/1-Year/psam_p*.csv"
# Codes of occupation and place of birth stay numbers: as indicators they would be hundreds.
CATEGORIES = ("COW", "MAR", "RELP", "SEX", "RAC1P")
DESCRIPTION = """title = "ACSIncome, sex left out"
label = "income"
positive = 1
sensitive = ["SEX"]
"""


def main(folder: Path, output: Path) -> None:
    from folktables import ACSDataSource, ACSIncome
    from folktables.load_acs import _STATE_CODES

    files = sorted(folder.glob(PATTERN))
    year = files[-1].parents[1].name
    states = {code: state for state, code in _STATE_CODES.items()}
    wanted = [states[path.stem[-2:]] for path in files if path.parents[1].name == year]
    source = ACSDataSource(
        survey_year=year, horizon="1-Year", survey="person", root_dir=str(folder)
    )
    features, label, _ = ACSIncome.df_to_pandas(source.get_data(states=wanted, download=False))
    for name in CATEGORIES:
        features[name] = "c" + features[name].astype(int).astype(str)
    features.assign(income=label.to_numpy().ravel().astype(int)).to_csv(output, index=False)
    output.with_suffix(".toml").write_text(DESCRIPTION, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
