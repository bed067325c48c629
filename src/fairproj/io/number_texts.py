"""Numbers in text columns of CSV files: decimal commas, and separators of thousands.

``20000,5`` is a number with a decimal comma. ``1,234`` may be one, or one thousand two hundred and
thirty-four; another value of the column, such as ``0,5``, or another column of the file may tell.
In a file with decimal commas, the same holds of ``1.234`` and ``0.5``, and so it does where the
column had decimal commas in training. Where a file does not tell, the one that a model was trained
from may have told.
Values such as ``1.234,50`` and ``1,234.50`` have separators of thousands, which are not read: the
user is asked to remove them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from fairproj.io.nearly_numbers import NearlyNumbers

_LOOKED_AT = 1000  # values that tell whether a column holds numbers at all
_SIGN, _EXPONENT = r"^\s*[+-]?", r"([eE][+-]?\d+)?\s*$"
_SPACES = r"[ '\x{2019}\x{00A0}\x{202F}]"
# What all values of a column must match.
_ALL = {
    "comma": _SIGN + r"(\d+(,\d+)?|,\d+)" + _EXPONENT,
    "grouped by commas": _SIGN + r"\d{1,3}((,\d{3})*(\.\d+)?|\.\d+)\s*$|" + _SIGN + r"\d+\s*$",
    "grouped by points": _SIGN + r"\d{1,3}(\.\d{3})*(,\d+)?\s*$|" + _SIGN + r"\d+(,\d+)?\s*$",
    "grouped by spaces": _SIGN + rf"([1-9]\d{{0,2}}({_SPACES}\d{{3}})+|\d+)([.,]\d+)?\s*$",
    "point": _SIGN + r"\d+(\.\d+)?\s*$",
    "point before three digits": _SIGN + r"([1-9]\d{0,2}\.\d{3}|\d+)\s*$",
    "both": _SIGN + r"\d*[.,]?\d+" + _EXPONENT,
}
_THOUSANDS = {"grouped by commas", "grouped by points", "grouped by spaces"}
_COULD_BE_THOUSANDS = r"^\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*$"
_GROUPED = rf"\d(,|\.|{_SPACES})\d{{3}}(\D|$)"  # some value of a column with thousands
_GENERAL = r"^[\s+\-\d.,'\x{2019}\x{00A0}\x{202F}eE]*\d[\s\d.,'\x{2019}\x{00A0}\x{202F}eE+\-]*$"


class Spelling(Enum):
    """How the numbers of a text column are written."""

    decimal_comma = "decimal commas"
    ambiguous = "commas that may separate decimals or thousands"
    ambiguous_points = "points that may separate decimals or thousands"
    unlike_training = "points that may separate thousands or, unlike in training, decimals"
    thousands = "separators of thousands"
    mixed = "both decimal points and decimal commas"


class Problem(NamedTuple):
    """Why a column cannot be used: what it holds, and a sentence that says what to do."""

    holds: str
    sentence: str


# More values may tell.
AMBIGUOUS = (Spelling.ambiguous, Spelling.ambiguous_points, Spelling.unlike_training)


@dataclass(frozen=True)
class Traits:
    """What is true of the values of a column so far.

    Attributes
    ----------
    matched : frozenset of str
        The patterns that all values match.
    comma, grouped : bool
        Whether any value has a comma, and what may be a separator of thousands.
    decided : bool
        Whether a value has a comma that cannot separate thousands.
    example : str or None
        A value that shows how numbers are written.
    """

    matched: frozenset[str] = frozenset(_ALL)
    comma: bool = False
    grouped: bool = False
    decided: bool = False
    example: str | None = None

    def add(self, values: Any) -> Traits:
        """With more values, of a pyarrow array of text."""
        values = values.unique()  # in the order of the rows; how often one occurs tells nothing
        matched = frozenset(name for name in self.matched if _all_match(values, _ALL[name]))
        commas = values.filter(pc.match_substring(values, ","))
        shown = commas
        if not len(commas):
            shown = values.filter(pc.match_substring_regex(values, _GROUPED))
        telling = commas.filter(pc.invert(pc.match_substring_regex(commas, _COULD_BE_THOUSANDS)))
        example = self.example
        if len(telling) and not self.decided:
            example = telling[0].as_py()
        elif example is None and len(shown):
            example = shown[0].as_py()
        return replace(
            self,
            matched=matched,
            comma=self.comma or len(commas) > 0,
            grouped=self.grouped or _any_match(values, _GROUPED),
            decided=self.decided or len(telling) > 0,
            example=example,
        )

    @property
    def is_whole(self) -> bool:
        """Whether all values are whole numbers without separators: later ones may have some."""
        return "point" in self.matched and "comma" in self.matched and not self.comma

    @property
    def spelling(self) -> Spelling | None:
        """How the numbers are written; None for a column of other text."""
        if "comma" in self.matched and self.comma:
            return Spelling.decimal_comma if self.decided else Spelling.ambiguous
        if "point" in self.matched:
            grouped = self.grouped and "point before three digits" in self.matched
            return Spelling.ambiguous_points if grouped else None
        if self.grouped and self.matched & _THOUSANDS:
            return Spelling.thousands
        return Spelling.mixed if "both" in self.matched and self.comma else None


_SETTLED: dict[tuple[Spelling | None, str | None], Spelling | None] = {
    (Spelling.ambiguous, ","): Spelling.decimal_comma,
    (Spelling.ambiguous_points, "."): None,
    (Spelling.ambiguous_points, ","): Spelling.unlike_training,
}


def _settle(spelling: Spelling | None, decimal: str | None) -> Spelling | None:
    """How numbers are written, where the sign before decimals in training may tell."""
    return _SETTLED.get((spelling, decimal), spelling)


def _all_match(values: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern), min_count=0).as_py())


def _any_match(values: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(values, pattern), min_count=0).as_py())


@dataclass(frozen=True)
class NumberTexts:
    """The text columns of a file that hold numbers, with how these are written and an example.

    Attributes
    ----------
    found : mapping of str to (Spelling, str)
    nearly : mapping of str to NearlyNumbers
        The columns in which nearly all values are numbers.
    points : sequence of str
        The columns of numbers that are not text: points separate their decimals.
    """

    found: Mapping[str, tuple[Spelling, str]]
    nearly: Mapping[str, NearlyNumbers] = field(default_factory=dict)
    points: Sequence[str] = ()

    @classmethod
    def of_traits(
        cls,
        traits: Mapping[str, Traits],
        decimals: Mapping[str, str] | None = None,
        *,
        has_commas: bool = False,
    ) -> NumberTexts:
        """Where a column of a file has decimal commas, those of others are read as such too.

        Where none has, points separate decimals, except in columns that had decimal commas in
        training. ``decimals`` are the signs before decimals in training, for columns that are
        ambiguous; ``has_commas`` says that a column that is not among these has decimal commas.
        """
        spelled = {}
        for name, each in traits.items():
            spelling = _settle(each.spelling, (decimals or {}).get(name))
            if spelling is not None:
                spelled[name] = (spelling, each.example or "")
        has_commas |= any(one is Spelling.decimal_comma for one, _ in spelled.values())
        if not has_commas:
            points = Spelling.ambiguous_points
            return cls({name: one for name, one in spelled.items() if one[0] is not points})
        return cls(
            {
                name: (Spelling.decimal_comma if one is Spelling.ambiguous else one, example)
                for name, (one, example) in spelled.items()
            }
        )

    @property
    def commas(self) -> list[str]:
        """The columns with decimal commas."""
        return self._spelled(Spelling.decimal_comma)

    @property
    def decimals(self) -> dict[str, str]:
        """The sign before the decimals of each column of numbers."""
        return dict.fromkeys(self.points, ".") | dict.fromkeys(self.commas, ",")

    def _spelled(self, spelling: Spelling) -> list[str]:
        return [name for name, (found, _) in self.found.items() if found is spelling]

    def problems(self) -> dict[str, Problem]:
        """What is wrong with each column that is not read as numbers."""
        return {
            name: Problem(
                reason := f"numbers with {spelling.value}, such as {example!r}",
                f"column {name!r} has {reason}; {_ADVICE[spelling]}",
            )
            for name, (spelling, example) in self.found.items()
            if spelling is not Spelling.decimal_comma
        }

    def note(self) -> str:
        """A sentence about the columns with decimal commas; empty if there are none."""
        if not self.commas:
            return ""
        names = ", ".join(map(repr, self.commas[:8]))
        more = f" and {len(self.commas) - 8} more" if len(self.commas) > 8 else ""
        column, has = ("column", "has") if len(self.commas) == 1 else ("columns", "have")
        example = self.found[self.commas[0]][1]
        return (
            f"{column} {names}{more} {has} decimal commas, such as {example!r}, and "
            f"{'is' if len(self.commas) == 1 else 'are'} read as numbers"
        )


_ADVICE = {
    Spelling.ambiguous: "write decimals with a point, and thousands without a separator",
    Spelling.ambiguous_points: "write the decimals of the other columns with a point too, and "
    "thousands without a separator",
    Spelling.unlike_training: "write decimals with a comma, and thousands without a separator",
    Spelling.thousands: "write thousands without a separator",
    Spelling.mixed: "write all decimals with a point",
}


def spelling_advice(text: str) -> str | None:
    """What to do about one number with a comma or separators; None for other text."""
    spelling = Traits().add(pa.array([text])).spelling
    if spelling is Spelling.decimal_comma:
        return "write decimals with a point"
    return None if spelling is None else _ADVICE[spelling]


def is_number(values: Any) -> Any:
    """Whether each text is a number, also with a comma or separators; null for null."""
    pattern = "|".join(f"(?:{_ALL[name]})" for name in ("both", *sorted(_THOUSANDS)))
    return pc.match_substring_regex(values, pattern)


def find_traits(
    columns: Iterable[tuple[str, Any]], with_commas: Collection[str] = ()
) -> dict[str, Traits]:
    """The traits of the text columns that may hold numbers with separators.

    Columns ``with_commas``, which had decimal commas in training, are kept without separators too.
    """
    found = {}
    for name, column in columns:
        values = column.drop_null() if pa.types.is_string(column.type) else column.slice(0, 0)
        looked_at = len(values) or name in with_commas
        if looked_at and _all_match(values.slice(0, _LOOKED_AT), _GENERAL):
            traits = Traits().add(_combined(values))
            if traits.spelling is not None or (traits.is_whole and name in with_commas):
                found[name] = traits
    return found


def _combined(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def read_commas(table: Any, names: Iterable[str]) -> Any:
    """A table in which text columns with decimal commas are numbers."""
    for name in names:
        at = table.schema.get_field_index(name)
        if at < 0 or not pa.types.is_string(table.schema.field(at).type):
            continue
        texts = pc.utf8_trim_whitespace(table.column(at))
        pointed = texts.filter(pc.match_substring(texts, "."))  # 1.234 may be a thousand
        if len(pointed):
            raise _not_a_number(name, f" {pointed[0].as_py()!r}")
        try:
            numbers = pc.cast(pc.replace_substring(texts, ",", "."), pa.float64())
        except pa.ArrowInvalid as error:
            value = re.search(r"'(.*)'", str(error))
            raise _not_a_number(name, f" {value[1]!r}" if value else "") from None
        table = table.set_column(at, name, numbers)
    return table


def _not_a_number(name: str, shown: str) -> ValueError:
    return ValueError(
        f"column {name!r} has decimal commas in its first rows and{shown} later, which is "
        "no number with a decimal comma; correct it or leave it empty"
    )
