"""What a place in a query can see: the sources of its FROM, their columns, and the outer queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from sqlglot import exp

    from quorum.knowledge.catalog import Table
    from quorum.tools.lint.paths import Path

Columns: TypeAlias = "dict[str, str] | None"
"""Column keys with the names people see, in order; None where the columns cannot be known."""

UNNAMED = "\0"
"""Begins the key of an output that PostgreSQL names itself (``quorum.tools.lint.fields.unnamed``)."""

# clauses that see the aliases of their own SELECT list, by dialect (args of sqlglot's Select)
_EVERYWHERE = frozenset({"expressions", "where", "joins", "group", "having", "qualify", "order", "windows"})
_ALIASES_SEEN = {
    "snowflake": _EVERYWHERE,
    "duckdb": _EVERYWHERE,
    "sqlite": _EVERYWHERE - {"expressions", "windows"},
    "mysql": frozenset({"group", "having", "order"}),
    "bigquery": frozenset({"group", "having", "qualify", "order", "windows"}),
    "postgres": frozenset({"group", "order"}),
    "oracle": frozenset({"order"}),  # elsewhere a bare name that is no column calls a function
}
_SHARED_PSEUDO = frozenset({"level", "rownum", "connect_by_isleaf", "connect_by_iscycle", "connect_by_root"})
_PSEUDO = {
    "sqlite": frozenset({"rowid", "_rowid_", "oid", "rank"}),
    "duckdb": frozenset({"rowid", "filename", "file_row_number", "all"}),
    "postgres": frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "oid"}),
    "mysql": frozenset({"dual"}),
    "bigquery": frozenset({"_table_suffix", "_partitiontime", "_partitiondate", "_file_name"})
    | frozenset({"_change_type", "_change_timestamp"}),
    "snowflake": _SHARED_PSEUDO,
    "oracle": _SHARED_PSEUDO | {"rowid", "ora_rowscn", "user", "uid", "sysdate", "systimestamp"},
    "exasol": frozenset({"rownum", "rowid", "level", "user", "dummy"}),
    "tsql": frozenset({"$identity", "$rowguid", "$action", "$partition"}),
    "trino": frozenset({"$path", "$file_modified_time", "$file_size", "$partition", "$bucket"}),
    "athena": frozenset({"$path"}),
    "clickhouse": frozenset({"_part", "_partition_id", "_sample_factor", "_table"}),
    "databricks": frozenset({"_metadata", "user"}),
}


@dataclass(frozen=True)
class Source:
    """One thing in a FROM clause.

    Attributes:
        name, key: Its alias, or its own name.
        columns: None where they cannot be known; such a source may have any column.
        table: The catalog's table, if it is one; of a wildcard's shards the first.
        shards: All tables behind a BigQuery wildcard.
        elements: Paths into the elements of a list that is unnested, as far as they are declared.
    """

    name: str
    key: str
    columns: Columns
    table: Table | None = None
    shards: tuple[Table, ...] = ()
    elements: tuple[Path, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The catalog's tables that it stands for."""
        return self.shards or ((self.table,) if self.table else ())

    @property
    def names(self) -> list[str]:
        """The columns as people see them; empty where they cannot be known."""
        return [name for name in (self.columns or {}).values() if name]

    @cached_property
    def open(self) -> bool:
        """Whether it may have columns that are not known."""
        columns = self.columns
        return columns is None or (self.table is None and any(key.startswith(UNNAMED) for key in columns))


@dataclass
class Scope:
    """One SELECT and what it sees.

    Attributes:
        ctes: Keys of common table expressions in reach, with their columns.
        aliases: Keys of the SELECT list's own names, with the names that people see.
        outputs: The same and its unaliased columns.
        merged: Keys that USING or NATURAL made one.
        natural: A NATURAL JOIN is here: no column is called ambiguous.
        clause: The clause being read.
    """

    dialect: str
    ctes: dict[str, Columns]
    parent: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    outputs: frozenset[str] = frozenset()
    merged: set[str] = field(default_factory=set)
    natural: bool = False
    clause: str = ""

    def chain(self) -> Iterator[Scope]:
        """This scope and the outer ones, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    @property
    def open(self) -> bool:
        """True if some source may hold any column."""
        return any(source.open for source in self.sources)

    def named(self, key: str) -> list[Source]:
        return [source for source in self.sources if source.key == key]

    def holding(self, key: str) -> list[Source]:
        return [source for source in self.sources if source.columns is not None and key in source.columns]

    def sees_alias(self, key: str) -> bool:
        return key in self.aliases and self.clause in _ALIASES_SEEN.get(self.dialect, _EVERYWHERE)

    def finds(self, column: exp.Column, key: str) -> bool:
        """True if a column that several sources hold is not ambiguous here.

        It was merged by USING or NATURAL, or names an output of this SELECT in a clause where the
        engine prefers outputs (SQLite and DuckDB: only as a whole ORDER BY term).
        """
        if self.natural or key in self.merged:
            return True
        if self.dialect in ("sqlite", "duckdb"):
            names = frozenset(self.aliases) if self.dialect == "sqlite" else self.outputs
            return self.clause == "order" and key in names and type(column.parent).__name__ == "Ordered"
        return self.clause in ("group", "having", "qualify", "order") and key in self.outputs


def is_pseudo(column: exp.Column, scope: Scope) -> bool:
    """True for names that the engine provides beside the table's own columns."""
    name, dialect = column.name.casefold(), scope.dialect
    if name == "_table_suffix":  # where a wildcard is read
        return any(level.open or any(source.shards for source in level.sources) for level in scope.chain())
    return name in _PSEUDO.get(dialect, ()) or (dialect == "snowflake" and name.startswith("metadata$"))
