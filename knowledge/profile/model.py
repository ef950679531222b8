"""A column's profile: how its values are written and what is odd about them, as immutable data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

Counts: TypeAlias = tuple[tuple[str, int], ...]
"""Values, and how many of the rows that were read have each."""


class Kind(StrEnum):
    """A meaning that nearly all values of a column share, however they are written."""

    NUMBER = "number"  # money, measures and percentages among them
    DATE = "date"  # months and timestamps among them
    FLAG = "flag"  # yes and no
    CODE = "code"  # letters and digits, as of keys
    TEXT = "text"


@dataclass(frozen=True)
class ValueForm:
    """A way in which values of a column are written.

    Attributes:
        text: ``$9,999.99``, ``MM/DD/YYYY``; dates of which the order is unknown are ``AA/BB/YYYY``.
        rows: Rows with a value in this form, of those that were read.
        plain: True if a CAST reads it as a number, or as a date in ISO form.
    """

    text: str
    rows: int
    example: str
    plain: bool = False


@dataclass(frozen=True)
class KeyMatch:
    """Rows whose key has a partner in another table's key only after both are normalised.

    Attributes:
        table: Its full name.
        after: The steps that make them equal: ``trim``, ``case``, ``zeros`` (leading ones).
        rows: Of the rows that were read; ``example`` is the key of one.
    """

    table: str
    column: str
    after: tuple[str, ...]
    rows: int
    example: str


@dataclass(frozen=True)
class ColumnProfile:
    """Facts about a column's values in the rows that were read. An empty field says that nothing is odd.

    Attributes:
        rows: How many were read; ``whole`` if these are all rows of the table.
        kind: Of all values but those of ``no_value`` and ``totals``.
        forms: The most frequent first, where there are several, or one that no CAST reads.
        variants: Spellings of one value, the most frequent first; of a FLAG the words for yes, and for no.
        variant_rows: Rows that have not the most frequent spelling.
        padded: Texts with outer blanks, of which no other spelling occurs.
        no_value: Texts that stand for NULL, the empty one among them.
        sentinels: Numbers and dates that stand for something else: far from all others.
        totals: Values of rows that add up other rows.
        units: The column's values, where it names units and several measure the same.
        keys: Keys of other tables that the values match only in part as they are.
        low, high: The least and the greatest number or ISO date but ``sentinels``, where all have one form.
        exact: True if ``low`` and ``high`` are those of all rows.
        unique: True if no two rows of the table have the same value; None if only those read are known.
    """

    rows: int
    whole: bool = False
    kind: Kind = Kind.TEXT
    forms: tuple[ValueForm, ...] = ()
    variants: tuple[tuple[str, ...], ...] = ()
    variant_rows: int = 0
    padded: Counts = ()
    no_value: Counts = ()
    sentinels: Counts = ()
    totals: Counts = ()
    units: Counts = ()
    keys: tuple[KeyMatch, ...] = ()
    low: str = ""
    high: str = ""
    exact: bool = False
    unique: bool | None = False

    @property
    def odd(self) -> bool:
        """True if a query has to mind how the values are written."""
        counts = self.padded, self.no_value, self.sentinels, self.totals, self.units
        return any((self.forms, self.variants, self.keys, *counts))

    @property
    def key_like(self) -> bool:
        """True if the values are codes or whole numbers, as keys are."""
        return self.kind in (Kind.CODE, Kind.NUMBER) and "." not in self.low


def profile_from(plain: Mapping[str, Any]) -> ColumnProfile:
    """Return the profile that ``dataclasses.asdict`` made plain, also if JSON made lists of its tuples."""
    lists = {name: tuple(map(tuple, each)) for name, each in plain.items() if isinstance(each, list | tuple)}
    made: dict[str, Any] = {**plain, **lists, "kind": Kind(plain["kind"])}
    made["forms"] = tuple(ValueForm(**form) for form in plain["forms"])
    made["keys"] = tuple(KeyMatch(**key | {"after": tuple(key["after"])}) for key in plain["keys"])
    return ColumnProfile(**made)
