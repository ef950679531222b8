"""Keys that find their partner in another table only after trimming, folding case or dropping zeros."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from quorum.knowledge.profile.columns import unpadded
from quorum.knowledge.profile.model import ColumnProfile, KeyMatch, Kind

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Table

LONGEST, FEWEST = 40, 5
"""Characters of a key; different values of one."""
RELATED = 0.25
"""Share of the values that have a partner, of columns that refer to each other."""

Place: TypeAlias = tuple[str, str]
"""A table's full name, and a column's name."""


@dataclass(frozen=True)
class KeyValues:
    """Values of a column that may be a key, with their rows; ``unique`` if hardly any comes twice."""

    counted: Mapping[str, int]
    unique: bool

    @classmethod
    def of(cls, texts: Sequence[Any], profile: ColumnProfile) -> KeyValues | None:
        """Return the values of a column of codes, whole numbers or single words; None for any other."""
        if profile.kind in (Kind.DATE, Kind.FLAG) or (profile.kind is Kind.NUMBER and profile.forms):
            return None
        counted = Counter(text for text in texts if isinstance(text, str))
        if profile.kind is Kind.TEXT and any(" " in text.strip() for text in counted):
            return None
        if len(counted) < FEWEST or any(len(text) > LONGEST or "." in text for text in counted):
            return None
        # windows of a sample may overlap
        return cls(
            counted, max(counted.values()) == 1 if profile.whole else len(counted) > 0.9 * counted.total()
        )


def with_key_matches(tables: Sequence[Table], keys: Mapping[Place, KeyValues]) -> list[Table]:
    """Return the tables, in which columns know what their values need to match another table's key.

    A column refers to a key by a foreign key, by its name, or as ``customer_id`` to ``customers.id``.
    """
    named = defaultdict[str, dict[Place, None]](dict)
    for place, values in keys.items():
        for name in _names(*place) if values.unique else ():
            named[name][place] = None
    declared = {
        (table.full_name, key.columns[0]): {(key.ref_table, key.ref_columns[0]): None}
        for table in tables
        for key in table.foreign_keys
        if len(key.columns) == len(key.ref_columns) == 1
    }
    found = defaultdict[Place, list[KeyMatch]](list)
    for place, values in keys.items():
        for other in named[_folded(place[1])] | declared.get(place, {}):
            if other[0] != place[0] and other in keys and (match := _match(values, other, keys[other])):
                found[place].append(match)

    def filled(table: Table) -> Table:
        matches = {column.name: tuple(found[table.full_name, column.name]) for column in table.columns}
        columns = (
            replace(c, profile=replace(c.profile, keys=matches[c.name]))
            if c.profile and matches[c.name]
            else c
            for c in table.columns
        )
        return replace(table, columns=tuple(columns))

    return [filled(table) for table in tables] if found else list(tables)


def _names(table: str, column: str) -> Iterator[str]:
    """Yield the names of columns that refer to a key: its own, and ``customer_id`` for ``customers.id``."""
    last = _folded(table.rpartition(".")[2])
    yield from {
        start + _folded(column) for start in ("", last, last.removesuffix("s"), last.removesuffix("es"))
    }


def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace(" ", "")


def _match(values: KeyValues, place: Place, keys: KeyValues) -> KeyMatch | None:
    """Return what the values need to match the keys; None if all that have a partner are spelt as it is."""
    partners = {unpadded(key).casefold(): key for key in keys.counted}
    alike = {text: partner for text in values.counted if (partner := partners.get(unpadded(text).casefold()))}
    odd = {text: partner for text, partner in alike.items() if text not in keys.counted}
    rows = sum(values.counted[text] for text in odd)
    related = len(alike) >= RELATED * min(len(values.counted), len(keys.counted))
    if rows < 2 or not related or len(partners) < len(keys.counted):
        return None
    steps = {
        "trim": any(text.strip() != text or key.strip() != key for text, key in odd.items()),
        "case": any(unpadded(text) != unpadded(key) for text, key in odd.items()),
        "zeros": any(text.strip().casefold() != key.strip().casefold() for text, key in odd.items()),
    }
    matched, total = sum(values.counted[text] for text in alike), sum(values.counted.values())
    after = tuple(step for step, needed in steps.items() if needed)
    return KeyMatch(*place, after, round(rows * total / matched), max(odd, key=values.counted.__getitem__))
