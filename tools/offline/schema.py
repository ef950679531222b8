"""The catalog as the rules see it: sharded tables made one, joins over foreign keys, what words may name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.tools.offline.lexicon import AGGREGATES, STOP, stems

Place = tuple[Table, Column]
Join = tuple[Table, Column, Table, Column]


class Hit(NamedTuple):
    """What words may stand for: a table or one of its columns, and the share of its name that they are."""

    score: float
    table: Table
    column: Column | None


class Mention(NamedTuple):
    """Words, and what they may stand for, best first: names (``N``), or a value (``V``) that columns hold."""

    text: str
    letter: str = ""
    hits: tuple[Hit, ...] = ()


class Schema:
    """Tables; those that share their columns and differ only in the digits of their name are one."""

    def __init__(self, catalog: Catalog) -> None:
        self.dialect = catalog.dialect
        self.members: dict[str, list[Table]] = {}  # the tables behind each table, by its full name
        self.tables = list(self._fold(catalog))
        self.joins = list(self._declared())
        self.names: dict[str, list[Hit]] = defaultdict(list)  # by stems
        self.samples: dict[str, list[Hit]] = defaultdict(list)  # by a column's value in lower case
        for table, column in ((t, c) for t in self.tables for c in (None, *t.columns)):
            parts = stems(column.name if column else table.name)
            for start, end in combinations(range(len(parts) + 1), 2):
                score = min(1.0, (end - start) / max(1, len(parts) - parts.count("total")))
                self.names[" ".join(parts[start:end])].append(Hit(score, table, column))
            for sample in column.samples if column and kind(column) == "C" else ():
                self.samples[sample.casefold()].append(Hit(1.0, table, column))

    def _fold(self, catalog: Catalog) -> Iterator[Table]:
        groups: dict[tuple[str, ...], list[Table]] = defaultdict(list)
        for table in filter(lambda table: table.columns, catalog.tables):
            name = re.sub(r"[\d_]*\d[\d_]*", "_", table.name).strip("_") or table.name
            groups[table.database, table.schema, name, *(c.name for c in table.columns)].append(table)
        for (_, _, name, *_), members in groups.items():
            table = replace(members[0], name=name) if len(members) > 1 else members[0]
            self.members[table.full_name] = members
            yield table

    def _declared(self) -> Iterator[Join]:
        """The equality of each foreign key, in both directions."""
        by_name = {name.casefold(): t for t in self.tables for name in (t.name, t.full_name)}
        for table, key in ((t, key) for t in self.tables for key in t.foreign_keys):
            other = by_name.get(key.ref_table.casefold())  # None in a part of a database
            mine, theirs = table.column(key.columns[0]), other and other.column(key.ref_columns[0])
            if mine and other and theirs:
                yield from ((table, mine, other, theirs), (other, theirs, table, mine))

    def paths(self, start: Table) -> dict[str, list[Join]]:
        """The shortest chain of joins from ``start`` to every table that it reaches, by full name."""
        paths: dict[str, list[Join]] = {}
        queue: list[tuple[Table, list[Join]]] = [(start, [])]
        for table, path in queue:
            if table.full_name not in paths:
                paths[table.full_name] = path
                queue += [(join[2], [*path, join]) for join in self.joins if join[0] is table]
        return paths

    def named(self, words: list[str]) -> list[Hit]:
        """What the words may name, best first; a table before a column that fits as well."""
        hits = self.names.get(" ".join(stem for word in words for stem in stems(word)), ())
        return sorted((h for h in hits if h.score > 0.3), key=lambda h: (-h.score, h.column is not None))

    def mentions(self, words: list[str]) -> Iterator[Mention]:
        """The words in order; those that together name something make one mention."""
        start = 0
        while start < len(words):
            for end in range(min(start + 4, len(words)), start, -1):
                if mention := self._look(words[start:end], words[start - 1] if start else "."):
                    break
            yield mention or Mention(words[start])
            start = end

    def _look(self, window: list[str], before: str) -> Mention | None:
        text = " ".join(window).removeprefix("'")
        holders = tuple(self.samples.get(text.casefold(), ()))
        if window[-1].lower() in STOP or window[0][0] == "'" or not all(word[0].isalnum() for word in window):
            return Mention(text, "V", holders) if window == [f"'{text}"] else None
        names = self.named(window) if before in AGGREGATES or window[0].lower() not in AGGREGATES else []
        proper = before not in ".?;" and all(word[0].isupper() for word in window)
        if holders and (proper or not names or names[0].score < 0.9):
            return Mention(text, "V", holders)
        if names or (len(window) == 1 and "_" in text):
            return Mention(text, "N", tuple(names))
        return Mention(text, "V") if proper and not any(self.named([word]) for word in window) else None

    def key(self, table: Table) -> Column | None:
        return table.column(table.primary_key[0]) if len(table.primary_key) == 1 else None

    def label(self, table: Table) -> Place:
        """The column by which people know a row: a name, a title, one called like the table; else the key."""
        texts = [column for column in table.columns if kind(column) == "C"]
        named = [c for c in texts if "nam" in stems(c.name) or stems(c.name) == stems(table.name)]
        named.sort(key=lambda column: len({*stems(column.name)} - {*stems(table.name)}))
        return table, [*named, self.key(table) or table.columns[0]][0]


def kind(column: Column) -> str:
    """``Y`` for years, ``D`` for dates and times, ``M`` for other numbers (measures), ``C`` for the rest."""
    numbers = column.samples and all(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) for text in column.samples)
    numeric = bool(numbers or re.search("(?i)int|real|float|double|dec|num|serial", column.type))
    dated = re.search("(?i)date|time|[ _](at|on)$|day$", f"{column.type} {'' if numeric else column.name}")
    return "Y" if "year" in stems(column.name) else "D" if dated else "M" if numeric else "C"
