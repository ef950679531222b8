"""A column's profile: what its values look like, and what is odd about them, as immutable data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What nearly all values of a column are, however they are written."""

    NUMBER = "number"  # money, measures and percentages among them
    DATE = "date"  # months and timestamps among them
    FLAG = "flag"  # yes and no
    CODE = "code"  # letters and digits without blanks, as of keys
    TEXT = "text"


@dataclass(frozen=True)
class Form:
    """A way in which values of a column are written.

    Attributes:
        text: A digit as 9, letters of codes as A and a, a date's parts by their names: ``$9,999.99``,
            ``MM/DD/YYYY``.
        rows: Of those looked at.
        plain: True if a CAST of the engine reads it as a number, or as a date in ISO form.
        low, high: The least and the greatest number of this form.
    """

    text: str
    rows: int
    example: str
    plain: bool = False
    low: str = ""
    high: str = ""


@dataclass(frozen=True)
class Count:
    """A value, as its text, and how many of the rows looked at have it."""

    value: str
    rows: int


@dataclass(frozen=True)
class KeyMatch:
    """Rows whose key finds its partner in another table's column only after both are normalised.

    Attributes:
        table: Its full name.
        after: What makes them equal: ``trim``, ``case``, ``zeros`` (leading ones).
        rows: Of those looked at; ``example`` is the key of one.
    """

    table: str
    column: str
    after: tuple[str, ...]
    rows: int
    example: str


@dataclass(frozen=True)
class ColumnProfile:
    """What rows of a table tell about a column; what is empty is not odd.

    Attributes:
        rows: Rows that were looked at; all shares are of these.
        whole: True if these are all rows of the table.
        kind: What the values are, but those of ``no_value`` and ``totals``.
        forms: The most frequent first, where there are several, or one that is not plain.
        order_told_by: The column whose value tells day first from month first.
        variants: Spellings of one value that differ in case, blanks, accents or punctuation, the most frequent
            first; of a FLAG all words for yes, and all for no.
        variant_rows: Rows with another spelling than the most frequent one.
        no_value: Texts that stand for NULL, the empty one among them.
        sentinels: Numbers and dates that stand for something else: far from all others.
        totals: Values of rows that add up others.
        units: Units among the values, where the column names units and several measure the same.
        keys: Tables that the column refers to, with a trap.
        low, high: The least and the greatest number or ISO date without sentinels, where all are in one form.
        unique: True if no two rows have the same value, of a table that was read whole.
    """

    rows: int
    whole: bool = False
    kind: Kind = Kind.TEXT
    forms: tuple[Form, ...] = ()
    order_told_by: str = ""
    variants: tuple[tuple[str, ...], ...] = ()
    variant_rows: int = 0
    no_value: tuple[Count, ...] = ()
    sentinels: tuple[Count, ...] = ()
    totals: tuple[Count, ...] = ()
    units: tuple[Count, ...] = ()
    keys: tuple[KeyMatch, ...] = ()
    low: str = ""
    high: str = ""
    unique: bool = False

    @property
    def is_odd(self) -> bool:
        """True if a query has to mind how the values are written."""
        found = (self.forms, self.variants, self.no_value, self.sentinels, self.totals, self.units, self.keys)
        return any(found)


def profile_from(found: Mapping[str, Any]) -> ColumnProfile:
    """Return the profile that ``dataclasses.asdict`` made plain, also if JSON has been in between."""
    rest = dict(found)
    made: dict[str, Any] = {
        "kind": Kind(rest.pop("kind")),
        "forms": tuple(Form(**each) for each in rest.pop("forms")),
        "variants": tuple(map(tuple, rest.pop("variants"))),
        "keys": tuple(KeyMatch(**each | {"after": tuple(each["after"])}) for each in rest.pop("keys")),
    }
    for name in ("no_value", "sentinels", "totals", "units"):
        made[name] = tuple(Count(**each) for each in rest.pop(name))
    return ColumnProfile(**made, **rest)
