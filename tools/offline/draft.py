"""A query being written: what it needs so far, and how that is put into SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from knowledge.catalog import Column, Table
from tools.offline.lexicon import word_set
from tools.offline.schema import Schema, is_numeric

UNITS = {"year": ("%Y", 4), "month": ("%Y-%m", 7), "day": ("%Y-%m-%d", 10)}
"""Spans of time to group by: strftime's form, and the characters of an ISO date that tell it."""

_BARE = {"snowflake": r"[A-Z_][A-Z0-9_$]*", "postgres": r"[a-z_][a-z0-9_$]*"}
_RESERVED = word_set(
    """all and any as asc between by case check column constraint create cross current default desc distinct
    do else end except exists false fetch for foreign from full grant group having in index inner intersect
    into is join key left like limit natural not null offset on or order outer primary range rank references
    right row rows select set table then to true union unique using values view when where window with"""
)


def quote(name: str, dialect: str) -> str:
    """An identifier as it must stand in SQL: bare where that is safe."""
    if re.fullmatch(_BARE.get(dialect, r"[A-Za-z_]\w*"), name, re.ASCII) and name.lower() not in _RESERVED:
        return name
    mark = "`" if dialect in ("mysql", "bigquery") else '"'
    return f"{mark}{name.replace(mark, mark * 2)}{mark}"


def full_name(table: Table, dialect: str) -> str:
    return ".".join(quote(part, dialect) for part in (table.database, table.schema, table.name) if part)


def literal(value: str, column: Column) -> str:
    """A value as SQL: a number only for a numeric column."""
    number = re.fullmatch(r"-?\d+(\.\d+)?", value) and is_numeric(column)
    return value if number else "'" + value.replace("'", "''") + "'"


def alias(expression: str) -> str:
    """A name for a computed column: ``avg_price`` for ``AVG(products.price)``, ``month`` for a month."""
    unit = next((unit for unit, (form, _) in UNITS.items() if f"'{form}'" in expression), "")
    words = re.findall(r"[a-z]\w*", re.sub(r"\w+\.|\"[^\"]*\"\.", "", expression).lower())
    return unit or "_".join(words) or "value"


@dataclass
class Draft:
    """The parts of one SELECT about ``main``.

    Conditions and expressions are SQL text whose columns were written by ``ref``, so that FROM
    knows which tables to join. What is shown carries its place in the question, to keep its order.
    """

    schema: Schema
    main: Table
    hints: frozenset[str] = frozenset()
    shown: list[tuple[int, Table, Column]] = field(default_factory=list)
    computed: list[tuple[int, str]] = field(default_factory=list)  # grouped and shown, such as a month
    aggregates: list[tuple[int, str]] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    having: list[str] = field(default_factory=list)
    order: list[tuple[str, str]] = field(default_factory=list)  # expression and ASC or DESC
    limit: int | None = None
    distinct: bool = False
    everything: bool = False
    outer: bool = False  # keep rows of the main table that join nothing
    counted: Table | None = None
    tables: list[Table] = field(default_factory=list)
    shards: dict[str, tuple[Table, ...]] = field(default_factory=dict)
    columns: dict[str, dict[str, None]] = field(default_factory=dict)

    def ref(self, table: Table, column: Column) -> str:
        """``table.column`` in SQL; the table joins the FROM clause."""
        if table not in self.tables:
            self.tables.append(table)
        self.columns.setdefault(table.full_name, {})[column.name] = None
        return self._name(table, column)

    def _name(self, table: Table, column: Column) -> str:
        return f"{quote(table.name, self.schema.dialect)}.{quote(column.name, self.schema.dialect)}"

    def count(self, table: Table) -> None:
        """Make the rows of ``table`` those that COUNT(*) counts."""
        self.counted = self.counted or table
        if table not in self.tables:
            self.tables.append(table)

    def reaches(self, table: Table) -> bool:
        return self.schema.connected(self.main, table)

    def sql(self) -> str:
        """The query, one clause a line."""
        lone_count = [text for _, text in self.aggregates] == ["COUNT(*)"] and not self.shown
        if lone_count and self.having and (key := self.schema.key(self.main)):
            self.aggregates, self.shown = [], [(0, self.main, key)]
            body = self.sql().replace("\n", "\n  ")
            return f"SELECT COUNT(*)\nFROM (\n  {body}\n) AS counted"
        if self.aggregates and self.limit == 1 and self.order and not self.shown and not self.computed:
            self._pin_extreme()
        columns = [(place, self.ref(table, column)) for place, table, column in self.shown]
        columns += [(place, f"{text} AS {alias(text)}") for place, text in self.computed + self.aggregates]
        select = ", ".join(dict.fromkeys(text for _, text in sorted(columns)))
        grouping = self._grouping()
        if self.everything and not self.aggregates:
            select = f"{quote(self.main.name, self.schema.dialect)}.*"
        distinct = "DISTINCT " if self.distinct and not self.aggregates and not grouping else ""
        lines = [f"SELECT {distinct}{select}", *self._from()]
        lines += [f"WHERE {' AND '.join(dict.fromkeys(self.where))}"] if self.where else []
        lines += [f"GROUP BY {', '.join(grouping)}"] if grouping else []
        lines += [f"HAVING {' AND '.join(self.having)}"] if self.having else []
        lines += [f"ORDER BY {', '.join(' '.join(pair) for pair in self.order)}"] if self.order else []
        return "\n".join(lines + ([f"LIMIT {self.limit}"] if self.limit else []))

    def compare_with_extreme(self, table: Table, column: Column, operator: str, function: str) -> None:
        """Add ``column operator (SELECT function(column) FROM table)``."""
        ref, name = self.ref(table, column), quote(column.name, self.schema.dialect)
        self.where.append(f"{ref} {operator} (SELECT {function}({name}) FROM {self._source(table)})")

    def _pin_extreme(self) -> None:
        """``orders of the oldest customer``: an aggregate over the rows that hold the extreme."""
        expression, direction = self.order[0]
        places = ((t, c) for t in self.tables for c in t.columns if self._name(t, c) == expression)
        if place := next(places, None):
            self.compare_with_extreme(*place, "=", "MAX" if direction == "DESC" else "MIN")
            self.order, self.limit = self.order[1:], None

    def _grouping(self) -> list[str]:
        """Everything shown that is no aggregate, and the keys of the tables that it describes."""
        counts = self.having or any(expression.startswith("COUNT(") for expression, _ in self.order)
        if not (self.aggregates or counts) or not (self.shown or self.computed):
            return []
        described = {t.full_name: t for _, t, _ in self.shown if self.counted and t is not self.counted}
        keys = [self.ref(table, key) for table in described.values() if (key := self.schema.key(table))]
        columns = [self.ref(table, column) for _, table, column in self.shown]
        return list(dict.fromkeys([*keys, *columns, *(text for _, text in self.computed)]))

    def _from(self) -> list[str]:
        """FROM and the joins along the shortest paths of keys."""
        if self.main not in self.tables:
            self.tables.append(self.main)
        start = self.main if self.outer else self.tables[0]
        joined, joins = [start], []
        for table in self.tables:
            paths = [p for t in joined if (p := self.schema.path(t, table, self.hints)) is not None]
            for join in min(paths, key=len, default=[]):
                if join.right not in joined:
                    joined.append(join.right)
                    left, right = (
                        self.ref(join.left, join.left_column),
                        self.ref(join.right, join.right_column),
                    )
                    joins.append((join.right, f"{left} = {right}"))
        kind = "LEFT JOIN" if self.outer else "JOIN"
        return [f"FROM {self._source(start)}", *(f"{kind} {self._source(t)} ON {on}" for t, on in joins)]

    def members(self, table: Table) -> tuple[Table, ...]:
        """The shards to read for a table that stands for a family of them; else nothing."""
        return self.shards.get(table.full_name) or self.schema.families.get(table.full_name, ())

    def _source(self, table: Table) -> str:
        """The table as it stands after FROM; a family of shards is the union of its members."""
        dialect = self.schema.dialect
        path, alias = full_name(table, dialect), quote(table.name, dialect)
        members = self.members(table)
        if not members:
            return path if path == alias else f"{path} AS {alias}"
        names = self.columns.get(table.full_name) or [table.columns[0].name]
        columns = ", ".join(quote(name, dialect) for name in names)
        union = "\n  UNION ALL ".join(f"SELECT {columns} FROM {full_name(m, dialect)}" for m in members)
        return f"(\n  {union}\n) AS {alias}"
