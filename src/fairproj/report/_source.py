"""Where the rows and the model of a report come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairproj.io.versions import versions


@dataclass(frozen=True)
class Source:
    """Where the rows and the model of a report come from, as far as is known.

    Attributes
    ----------
    data : str
        What to call the rows.
    which : str
        Which of them these are, such as "rows held out from training".
    seen : bool or None
        Whether the model was trained on them; None where that is not known.
    sha256 : str
        Of the file.
    command : str
        What to type for the same report.
    more : dict of str to str
        Further rows for the table of what was asked.
    model : str
        What to call the model, such as the name of its file; by default its class.
    label : str
        The column with the label.
    sensitive : list of str
        The columns that define the groups.
    left_out : list of str
        Columns that training was told not to use.
    trained : str
        The date of training.
    claimed : str
        The command that the model file says it was made by, not verified.
    findings : list of dict, optional
        What the checks before training found, with ``kind``, ``column``, ``measure`` and
        ``words``; None where nothing is known of checks.
    tested : list of float
        The limits of an exact test of the finished model, for which training aimed at less.
    confirmed : str
        What the test found, if it was about the gap and the groups of the report.
    weights : str
        The column that training weighted rows by, if there was one.
    search_gap : float, optional
        The largest gap allowed in the `GapSearchCV` that chose the model, if one did.
    searched : bool
        Whether a search for alternatives chose the model, and its plain model is that search's.
    """

    data: str = "the given rows"
    which: str = ""
    seen: bool | None = None
    sha256: str = ""
    command: str = ""
    more: dict[str, str] = field(default_factory=dict)
    model: str = ""
    label: str = ""
    sensitive: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    trained: str = ""
    claimed: str = ""
    findings: list[dict[str, Any]] | None = None
    tested: list[float] = field(default_factory=list)
    confirmed: str = ""
    weights: str = ""
    search_gap: float | None = None
    searched: bool = False

    def reproduce(self) -> dict[str, Any]:
        """What is needed to make the report again."""
        return {
            "command": self.command,
            "claimed": self.claimed,
            "sha256": self.sha256,
            "versions": {n: v for n, v in versions().items() if v != "not installed"},
        }
