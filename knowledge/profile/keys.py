"""Keys that find their partner in another table only after trimming, folding case or dropping zeros."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from quorum.knowledge.profile.columns import normalised, unpadded
from quorum.knowledge.profile.model import ColumnProfile, KeyMatch, Kind

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Table

LONGEST = 40
"""Characters of a key."""
FEWEST = 5
"""Different values of a key."""
RELATED = 0.25
"""Share of the values that have a partner, of columns that refer to each other."""

Place: TypeAlias = tuple[str, str]
"""A table's full name, and a column's name."""


@dataclass(frozen=True)
class KeyValues:
    """Values of a column that may be a key: rows by value.

    Attributes:
        unique: True if no two of the rows looked at have the same value.
    """

    counted: Mapping[str, int]
    unique: bool

    @classmethod
    def of(cls, texts: Sequence[str | None], profile: ColumnProfile, *, whole: bool) -> KeyValues | None:
        """Return the values of a column of codes or plain numbers; None for any other."""
        if profile.kind not in (Kind.CODE, Kind.NUMBER) or (profile.kind is Kind.NUMBER and profile.forms):
            return None
        counted = Counter(text for text in texts if text is not None)
        if len(counted) < FEWEST or any(len(text) > LONGEST or "." in text for text in counted):
            return None
        return cls(counted, len(counted) == counted.total() if whole else max(counted.values()) <= 2)


def with_key_matches(tables: Sequence[Table], keys: Mapping[Place, KeyValues]) -> list[Table]:
    """Return the tables; columns that refer to another one's key know what their values need to match."""
    partners = defaultdict[str, list[Place]](list)
    for table, column in keys:
        if keys[table, column].unique:
            for name in _names(table, column):
                partners[name].append((table, column))
    declared = {
        (table.full_name, key.columns[0]): (key.ref_table, key.ref_columns[0])
        for table in tables
        for key in table.foreign_keys
        if len(key.columns) == len(key.ref_columns) == 1
    }
    found = defaultdict[Place, list[KeyMatch]](list)
    for place, values in keys.items():
        others = partners[_folded(place[1])] + ([declared[place]] if place in declared else [])
        for other in dict.fromkeys(others):
            if other[0] != place[0] and other in keys and (match := _match(values, other, keys[other])):
                found[place].append(match)
    return [_with(table, found) for table in tables] if found else list(tables)


def _names(table: str, column: str) -> Iterator[str]:
    """Yield the names of columns that refer to a key: its own, and ``customer_id`` for ``customers.id``."""
    name, last = _folded(column), _folded(table.rpartition(".")[2])
    yield name
    for one in {last, last.removesuffix("s"), last.removesuffix("es")}:
        yield one + name


def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace(" ", "")


def _match(values: KeyValues, place: Place, keys: KeyValues) -> KeyMatch | None:
    """Return what the values need to match the keys; None if all that have a partner are spelt as it is."""
    partners = {normalised(key): key for key in keys.counted}
    alike = {
        text: partner for text in values.counted if (partner := partners.get(normalised(text))) is not None
    }
    odd = {text: partner for text, partner in alike.items() if text not in keys.counted}
    if not odd or len(partners) < len(keys.counted):
        return None
    rows = sum(values.counted[text] for text in odd)
    matched, total = sum(values.counted[text] for text in alike), sum(values.counted.values())
    if rows < 2 or len(alike) < RELATED * min(len(values.counted), len(keys.counted)):
        return None
    steps = {
        "trim": any(text.strip() != text or other.strip() != other for text, other in odd.items()),
        "case": any(unpadded(text) != unpadded(other) for text, other in odd.items()),
        "zeros": any(text.strip().casefold() != other.strip().casefold() for text, other in odd.items()),
    }
    after = tuple(step for step, needed in steps.items() if needed)
    example = max(odd, key=lambda text: values.counted[text])
    return KeyMatch(*place, after, round(rows * total / matched), example)


def _with(table: Table, found: Mapping[Place, Iterable[KeyMatch]]) -> Table:
    columns = tuple(
        replace(column, profile=replace(column.profile, keys=tuple(found[table.full_name, column.name])))
        if column.profile and (table.full_name, column.name) in found
        else column
        for column in table.columns
    )
    return replace(table, columns=columns)
