"""Schema linking by parsing: the tables and columns that a query uses, and a catalog of only those.

SSEV links the schema with the union of what all experts' first queries use (paper 004, section 3.1.1). It
proposes regular expressions; here the lint's resolver reads the tree, so that aliases, CTEs, stars and
unqualified columns count as what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from quorum.tools.lint.names import Names
from quorum.tools.lint.resolver import Resolver
from quorum.tools.lint.strings import maybe_text
from quorum.tools.lint.tables import Tables
from quorum.tools.sql import SyntaxProblem, dialect_name, parse_statements

if TYPE_CHECKING:
    from sqlglot import exp

    from quorum.knowledge.catalog import Catalog, ForeignKey, Table
    from quorum.tools.lint.scope import Columns, Scope, Source

_UNKNOWN = ("table", "qualifier", "column")  # the lint's other issues name something known


@dataclass(frozen=True)
class Linked:
    """What queries use of a catalog, in the catalog's order and spelling.

    Attributes:
        tables: Full names.
        columns: (full name of the table, column).
        unknown: Names in the queries that the catalog does not have, as written.
    """

    tables: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        """``table(column, column); table(column)``, as the SchemaLinker writes it."""
        columns: dict[str, list[str]] = {name: [] for name in self.tables}
        for table, column in self.columns:
            columns[table].append(column)
        return "; ".join(f"{table}({', '.join(names)})" for table, names in columns.items())


def used(sql: str, catalog: Catalog) -> Linked:
    """The tables and columns of ``catalog`` that ``sql`` uses, in all its clauses and subqueries.

    A star, a whole row or a pivot uses all columns of its tables; ``USING`` and ``NATURAL`` use theirs on
    both sides; a nested path uses its column; a wildcard uses all shards, and a column in each that has
    it. The dialect's case rules decide between names that differ in case only; a name that no table or
    column has by those rules, but one has without regard to case, is taken for that.

    Raises:
        SyntaxProblem: The SQL cannot be read.
        ConfigurationError: The catalog's dialect is unknown.
    """
    dialect = dialect_name(catalog.dialect)
    trees = parse_statements(sql, dialect)
    strict = _read(trees, Tables(catalog, Names(dialect)))
    if not strict.unknown:
        return strict
    loose = _read(trees, Tables(catalog, Names(dialect, exact=False)))
    return replace(union(catalog, (strict, loose)), unknown=loose.unknown)


def union(catalog: Catalog, linked: Iterable[Linked]) -> Linked:
    """What several queries use together, in the catalog's order."""
    parts = tuple(linked)
    tables = {name for part in parts for name in part.tables}
    columns = {column for part in parts for column in part.columns}
    unknown = dict.fromkeys(name for part in parts for name in part.unknown)
    return Linked(
        tuple(table.full_name for table in catalog.tables if table.full_name in tables),
        tuple((t.full_name, c.name) for t, c in catalog.columns() if (t.full_name, c.name) in columns),
        tuple(unknown),
    )


def prune(catalog: Catalog, *linked: Linked, bare: Literal["whole", "key"] = "whole") -> Catalog:
    """``catalog`` with only the tables and columns that are linked, and the keys between them.

    Primary keys stay, and both sides of every foreign key that joins two tables that stay; a foreign key
    to a table that goes stays where its columns do, to tell what they refer to. A note says of what
    the catalog is a part; notes on what is gone go as well. The catalog itself where nothing is linked
    at all: a schema without tables can answer nothing.

    Args:
        bare: What stays of a table of which no column is linked: all of it, or its key alone (its first
            column if it has none), which is enough for ``COUNT(*)``.
    """
    both = union(catalog, linked)
    kept = {table.full_name: table for table in catalog.tables if table.full_name in both.tables}
    wanted = set(both.columns)
    known = {name for name, _ in wanted}
    wanted |= {key for table in kept.values() for key in _keys(catalog, table, kept)}
    for name, table in kept.items():
        if name not in known:
            few = () if bare == "whole" else table.primary_key or [c.name for c in table.columns[:1]]
            wanted |= set(_named(table, few or [c.name for c in table.columns]))
    tables = tuple(_pruned(catalog, table, wanted, kept) for table in kept.values())
    return _as_part(catalog, tables) if tables else catalog


def _pruned(catalog: Catalog, table: Table, wanted: set[tuple[str, str]], kept: Mapping[str, Table]) -> Table:
    columns = tuple(c for c in table.columns if (table.full_name, c.name) in wanted)
    left = {c.name.casefold() for c in columns}
    keys = tuple(
        key
        for key in table.foreign_keys
        if _target(catalog, key, kept) or {name.casefold() for name in key.columns} <= left
    )
    return replace(table, columns=columns, foreign_keys=keys)


def _as_part(catalog: Catalog, tables: tuple[Table, ...]) -> Catalog:
    """The catalog with these tables, and notes that fit them."""
    part = replace(catalog, tables=tables)
    names = [{t.full_name for t in each.tables} for each in (catalog, part)]
    columns = [{f"{t.full_name}.{c.name}" for t, c in each.columns()} for each in (catalog, part)]
    if names[0] == names[1] and columns[0] == columns[1]:
        return part
    gone = (names[0] - names[1]) | (columns[0] - columns[1])
    notes = [left for note in catalog.notes if (left := _without(note, gone))]
    many = " and ".join(
        f"{len(after):,} of {len(before):,} {what}"
        for what, (before, after) in (("tables", names), ("columns", columns))
    )
    return replace(part, notes=(*notes, f"This is a part of a larger database: {many}."))


def _without(note: str, gone: set[str]) -> str:
    """A note without those of its listed names that are gone; empty if nothing is left to be said."""
    said = {word.rstrip(".") for word in re.split(r"[\s,:;]+", note)}
    if not said & gone:
        return note
    head, colon, listed = note.partition(": ")
    left = [name for name in re.sub(r"( and \d+ more)?\.$", "", listed).split(", ") if name not in gone]
    return f"{head}: {', '.join(left)}." if colon and listed and left else ""


def _keys(catalog: Catalog, table: Table, kept: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    """The columns of a table's primary key and, on both sides, of its foreign keys to kept tables."""
    yield from _named(table, table.primary_key)
    for key in table.foreign_keys:
        if target := _target(catalog, key, kept):
            yield from _named(table, key.columns)
            yield from _named(target, key.ref_columns or target.primary_key)


def _target(catalog: Catalog, key: ForeignKey, kept: Mapping[str, Table]) -> Table | None:
    found = catalog.table(key.ref_table)
    return kept.get(found.full_name) if found else None


def _named(table: Table, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        if column := table.column(name):
            yield table.full_name, column.name


def _read(trees: Iterable[exp.Expr], tables: Tables) -> Linked:
    usage = _Usage(tables)
    try:
        for tree in trees:
            usage.query(tree, None, {})
    except RecursionError:
        raise SyntaxProblem("It nests too deeply.") from None
    return usage.linked()


class _Usage(Resolver):
    """Collects every column that a query may mean, where the lint only asks whether there is one."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self.kept: set[tuple[str, str]] = set()
        self._shards: dict[str, tuple[Table, ...]] = {}  # by the first one's full name

    def linked(self) -> Linked:
        found = Linked(tuple(t.full_name for t in self.result.tables), tuple(self.kept), self._unknown())
        return union(self.tables.catalog, (found,))

    def _unknown(self) -> tuple[str, ...]:
        from sqlglot import exp

        nodes = [issue.node for issue in self.result.issues if issue.what in _UNKNOWN]
        nodes = [node for node in nodes if not (self.dialect == "sqlite" and maybe_text(node))]
        names = [node.parts for node in nodes if isinstance(node, exp.Column | exp.Table)]
        return tuple(dict.fromkeys(".".join(part.name for part in parts) for parts in names))

    def _table(self, node: exp.Table, scope: Scope) -> tuple[Columns, Table | None]:
        before = len(self.result.tables)
        columns, table = super()._table(node, scope)
        found = tuple(self.result.tables[before:])
        if len(found) > 1:
            self._shards[found[0].full_name] = found
        if node.args.get("pivots") or node.args.get("match"):  # what they read cannot be told
            self._keep(found)
        return columns, table

    def _join(self, join: exp.Join, scope: Scope) -> list[exp.Expr]:
        before, merged = len(scope.sources), set(scope.merged)
        pending = super()._join(join, scope)
        left, right = scope.sources[:before], scope.sources[before:]
        keys = scope.merged - merged
        if join.method == "NATURAL":
            keys |= {key for source in left for key in source.columns or ()}
            keys &= {key for source in right for key in source.columns or ()}
        for key in keys:
            self._keep_column(scope.sources, key)
        return pending

    def _visit(self, nodes: Iterable[exp.Expr], scope: Scope) -> None:
        from sqlglot import exp

        nodes = list(nodes)
        if any(isinstance(node, exp.Star) for node in nodes):  # in a SELECT list; not COUNT(*)
            self._keep_all(scope.sources)
        super()._visit(nodes, scope)

    def _column(self, node: exp.Column, scope: Scope) -> None:
        from sqlglot import exp

        super()._column(node, scope)
        path = [self.names.key(part) for part in node.parts]
        if not isinstance(node.this, exp.Star):
            self._path(path, scope)
        elif not isinstance(node.parent, exp.Count) and len(path) > 1:
            self._keep_all(next((found for s in scope.chain() if (found := s.named(path[-2]))), []))

    def _path(self, path: list[str], scope: Scope) -> None:
        """Keep what ``column``, ``source.column``, ``schema.source.column`` or a path below one names."""
        for level in scope.chain():
            if len(path) > 1 and (sources := level.named(path[0])):
                return self._keep_column(sources, path[1])
            if holders := level.holding(path[0]):
                return self._keep_column(holders, path[0])
            if len(path) > 2 and (sources := level.named(path[-2])):
                return self._keep_column(sources, path[-1])
            if len(path) == 1 and not level.sees_alias(path[0]) and (sources := level.named(path[0])):
                return self._keep_all(sources)  # a whole row
        return None

    def _keep_column(self, sources: Iterable[Source], key: str) -> None:
        for table in self._behind(sources):
            self.kept |= {
                (table.full_name, c.name) for c in table.columns if self.names.stored(c.name) == key
            }

    def _keep_all(self, sources: Iterable[Source]) -> None:
        self._keep(self._behind(sources))

    def _keep(self, tables: Iterable[Table]) -> None:
        self.kept |= {(table.full_name, c.name) for table in tables for c in table.columns}

    def _behind(self, sources: Iterable[Source]) -> list[Table]:
        tables = [source.table for source in sources if source.table is not None]
        return [member for table in tables for member in self._shards.get(table.full_name, (table,))]
