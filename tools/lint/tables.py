"""Finding the catalog's table behind a name in a query."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from quorum.tools.lint.names import Names, nearest

if TYPE_CHECKING:
    from sqlglot import exp

    from quorum.knowledge.catalog import Catalog, Table

_SYSTEM = re.compile(
    r"(^|\.)(information_schema|pg_catalog|performance_schema|account_usage|organization_usage|mysql|sys)(\.|$)"
    r"|^(sqlite_\w+|pragma_\w+|pg_\w+|duckdb_\w+|json_each|json_tree|dbstat|dual|temp\..*)$",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_DEFAULT_SCHEMAS = frozenset({"", "main", "public", "dbo"})
_DUAL = ("oracle", "exasol", "doris", "singlestore", "starrocks")
"""Engines that have a table of one row."""
_OTHER_DATABASES = frozenset({"snowflake", "bigquery", "duckdb", "mysql"})  # one query may reach several


@dataclass(frozen=True)
class Found:
    """What a name means.

    Attributes:
        tables: The catalog's tables: one, or the shards behind a BigQuery wildcard.
        unknown: True where the catalog cannot tell (system tables, other databases).
    """

    tables: tuple[Table, ...] = ()
    unknown: bool = False


class Tables:
    """The tables of a catalog by name, under the dialect's case rules; build once per catalog."""

    def __init__(self, catalog: Catalog, names: Names) -> None:
        self.catalog = catalog
        self.names = names
        self._by_key: dict[str, list[Table]] = {}
        for table in catalog.tables:
            self._by_key.setdefault(names.stored(table.name), []).append(table)

    def prepare(self) -> None:
        """Make all indexes now; of thousands of tables they take longer than a check may."""
        for index in ("_families", "_databases", "_schemas", "fields", "by_column"):
            getattr(self, index)

    def find(self, node: exp.Table) -> Found:
        """The catalog's table for a table of a query; neither tables nor unknown: there is none."""
        parts = node.parts
        path = ".".join(part.name for part in parts)
        if self.names.strict:
            return self._exactly(parts)
        if _SYSTEM.search(path):
            return Found(unknown=True)
        if self.names.dialect == "bigquery" and node.name.endswith("*"):
            return self._wildcard(node.name[:-1])
        found = [t for t in self._by_key.get(self.names.key(parts[-1]), ()) if self._fits(t, parts[:-1])]
        if len(found) > 1 and len({table.database for table in found}) == 1:
            default = [t for t in found if t.schema.casefold() in _DEFAULT_SCHEMAS]
            return Found((default[0],)) if len(default) == 1 else Found(unknown=True)
        if len(found) > 1:
            return Found(unknown=True)
        if found:
            return Found((found[0],))
        return Found(unknown=self._elsewhere(parts) or self._shard(node.name))

    def _exactly(self, parts: list[exp.Expr]) -> Found:
        """The table that bears the whole name; a bare one could mean another in the session's own schema."""
        if len(parts) == 1 and self.names.dialect in _DUAL and parts[0].name.casefold() == "dual":
            return Found(unknown=True)
        written = [self.names.key(part) for part in parts]
        for table in self._by_key.get(written[-1], ()):
            own = [self.names.stored(part) for part in (table.database, table.schema, table.name) if part]
            if own == written:
                return Found((table,))
        return Found()

    def _fits(self, table: Table, qualifiers: list[exp.Expr]) -> bool:
        own = [table.schema, table.database]
        if self._several and len(qualifiers) == 1:  # DuckDB takes one for a schema or a database
            return self.names.key(qualifiers[0]) in map(self.names.stored, own)
        for mine, written in zip(own, reversed(qualifiers), strict=False):
            if mine and self.names.stored(mine) != self.names.key(written):
                return False
        return True

    def _elsewhere(self, parts: list[exp.Expr]) -> bool:
        """True if the name points into a database that the catalog does not describe."""
        dialect = self.names.dialect
        if len(parts) == 1 or dialect not in _OTHER_DATABASES or self._several:
            return False
        outer = self.names.key(parts[0])
        if len(parts) == 3 and outer not in self._databases:
            return True
        if dialect == "bigquery":  # any dataset of the project may be meant
            return self.names.key(parts[-2]) not in self._schemas
        return len(parts) == 2 and dialect != "snowflake" and outer not in self._schemas | self._databases

    def _wildcard(self, prefix: str) -> Found:
        folded = prefix.casefold()
        shards = tuple(t for t in self.catalog.tables if t.name.casefold().startswith(folded))
        return Found(shards) if shards else Found(unknown=bool(prefix) and self._shard(prefix))

    def _shard(self, name: str) -> bool:
        """True for a dated table of a family of which the catalog holds other members."""
        return bool(_DIGITS.search(name)) and _DIGITS.sub("#", name.casefold()) in self._families

    @cached_property
    def _families(self) -> frozenset[str]:
        names = (t.name.casefold() for t in self.catalog.tables)
        return frozenset(_DIGITS.sub("#", name) for name in names if _DIGITS.search(name))

    @cached_property
    def _several(self) -> bool:
        """True if several databases are read as one (``quorum.tools.databases.many``)."""
        return self.names.dialect == "duckdb" and bool(self._databases)

    @cached_property
    def _databases(self) -> frozenset[str]:
        return frozenset(self.names.stored(t.database) for t in self.catalog.tables if t.database)

    @cached_property
    def _schemas(self) -> frozenset[str]:
        return frozenset(self.names.stored(t.schema) for t in self.catalog.tables if t.schema)

    def named(self, identifier: exp.Identifier) -> list[Table]:
        """The tables of that name, in whichever schema."""
        return self._by_key.get(self.names.key(identifier), [])

    @cached_property
    def fields(self) -> frozenset[str]:
        """Keys of all columns, and of all fields in them, whichever value has them."""
        columns = [column for _, column in self.catalog.columns()]
        paths = (part for column in columns for field in column.fields for part in field.path.split("."))
        return frozenset(map(self.names.stored, [*(column.name for column in columns), *paths]))

    @cached_property
    def by_column(self) -> dict[str, list[Table]]:
        """Tables by the folded name of each of their columns."""
        index: dict[str, list[Table]] = {}
        for table, column in self.catalog.columns():
            index.setdefault(column.name.casefold(), []).append(table)
        return index

    def like(self, node: exp.Table) -> list[str]:
        """Full names of the tables most like an unknown one: same name elsewhere, other case, misspelt."""
        folded = node.name.casefold()
        same = [t for t in self.catalog.tables if t.name.casefold() == folded]
        if not same:
            close = nearest(node.name, (t.name for t in self.catalog.tables))
            same = [t for name in close for t in self.catalog.tables if t.name == name]
        return [self.path(table) for table in same[:3]]

    def path(self, table: Table) -> str:
        """The table's full name as a query must write it."""
        parts = (table.database, table.schema, table.name)
        return ".".join(self.names.written(part) for part in parts if part)
