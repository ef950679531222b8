"""Keys that find their partner in another table only after trimming, folding case or dropping zeros."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from quorum.knowledge.profile.amounts import Rows
from quorum.knowledge.profile.columns import unpadded
from quorum.knowledge.profile.model import ColumnProfile, KeyMatch, Kind

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Column, Table

LONGEST, FEWEST = 40, 5
"""Characters of a key; different values of one."""
UNIQUE = 0.9
"""Values by rows from which a column is a key: rows may be duplicates, or have been read twice."""
RELATED = 0.25
"""Share of the values that have a partner, of columns that refer to each other."""

Place: TypeAlias = tuple[str, str]
"""A table's full name, and a column's name."""


def key_values(texts: Sequence[Any], profile: ColumnProfile) -> Rows | None:
    """Return the rows by value of a column of codes, whole numbers or single words; None for any other."""
    if profile.kind in (Kind.DATE, Kind.FLAG) or (profile.kind is Kind.NUMBER and profile.forms):
        return None
    counted = Counter(text for text in texts if isinstance(text, str))
    words = profile.kind is Kind.TEXT and any(" " in text.strip() for text in counted)
    long = any(len(text) > LONGEST or "." in text for text in counted)
    return None if words or long or len(counted) < FEWEST else counted


def with_key_matches(tables: Sequence[Table], keys: Mapping[Place, Rows]) -> list[Table]:
    """Return the tables, in which columns know what their values need to match another table's key.

    A column refers to a key by a foreign key, by its name, or as ``customer_id`` to ``customers.id``.
    """
    named = defaultdict[str, dict[Place, None]](dict)
    for place, values in keys.items():
        unique = len(values) > UNIQUE * sum(values.values())
        for name in _names(*place) if unique else ():
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

    def with_matches(table: Table, column: Column) -> Column:
        matches = found.get((table.full_name, column.name))
        if matches is None or column.profile is None:
            return column
        return replace(column, profile=replace(column.profile, keys=tuple(matches)))

    return [replace(t, columns=tuple(with_matches(t, c) for c in t.columns)) for t in tables]


def _names(table: str, column: str) -> Iterator[str]:
    """Yield the names of columns that refer to a key: its own, and ``customer_id`` for ``customers.id``."""
    last = _folded(table.rpartition(".")[2])
    yield from {
        start + _folded(column) for start in ("", last, last.removesuffix("s"), last.removesuffix("es"))
    }


def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace(" ", "")


def _match(values: Rows, place: Place, keys: Rows) -> KeyMatch | None:
    """Return what the values need to match the keys; None if all that have a partner are spelt as it is."""
    if sum(rows for text, rows in values.items() if text not in keys) < 2:
        return None
    partners = {unpadded(key).casefold(): key for key in keys}
    alike = {text: partner for text in values if (partner := partners.get(unpadded(text).casefold()))}
    odd = {text: partner for text, partner in alike.items() if text not in keys}
    rows = sum(values[text] for text in odd)
    related = len(alike) >= RELATED * min(len(values), len(keys))
    if rows < 2 or not related or len(partners) < len(keys):
        return None
    steps = {
        "trim": any(text.strip() != text or key.strip() != key for text, key in odd.items()),
        "case": any(unpadded(text) != unpadded(key) for text, key in odd.items()),
        "zeros": any(text.strip().casefold() != key.strip().casefold() for text, key in odd.items()),
    }
    matched, total = sum(values[text] for text in alike), sum(values.values())
    after = tuple(step for step, needed in steps.items() if needed)
    return KeyMatch(*place, after, round(rows * total / matched), max(odd, key=values.__getitem__))
