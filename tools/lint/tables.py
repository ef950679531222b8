"""Names: how a dialect compares them, which are close to each other, and the catalog's table behind one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from quorum.knowledge.naming import write_name
from quorum.tools.sql import STRICT_DIALECTS

if TYPE_CHECKING:
    from sqlglot import exp

    from quorum.knowledge.catalog import Catalog, Table

_EXACT: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(("snowflake", "oracle", "exasol"), str.upper),
    "postgres": str.lower,
}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_A-Za-z]+")
_CLOSE = 60.0  # of 100
_LONGEST = 200
"""Characters of a name that are compared; engines allow 63 to 300."""
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


class CaseRules:
    """Case rules of a dialect.

    Snowflake, Oracle and Exasol fold an unquoted name to upper case, PostgreSQL to lower case, and compare
    exactly; the others ignore case. ``key`` maps equal names to equal strings.

    Attributes:
        strict: Whether a name that the catalog lacks is one too many, for no session forbids what it may do.

    Args:
        exact: False to ignore case in these two as well, to find what a faulty query means.
    """

    def __init__(self, dialect: str, exact: bool = True) -> None:
        self.dialect = dialect
        self.strict = dialect in STRICT_DIALECTS
        self._fold = _EXACT.get(dialect) if exact else None

    def key(self, identifier: exp.Expr) -> str:
        """Return the key of a name as written in a query."""
        if self._fold is None:
            return identifier.name.casefold()
        return identifier.name if identifier.args.get("quoted") else self._fold(identifier.name)

    def stored(self, name: str) -> str:
        """Return the key of a name in the catalog's true case."""
        return name.casefold() if self._fold is None else name

    def written(self, name: str) -> str:
        """Return ``name`` as a query must write it, and as schema text has it."""
        return write_name(name, self.dialect)


def nearest(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Return the names most like ``name``, best first: by spelling and by words in any order."""
    scored = ((_likeness(name[:_LONGEST], other), other) for other in dict.fromkeys(known))
    close = sorted((-score, other) for score, other in scored if score >= _CLOSE)
    return [other for _, other in close[:limit]]


def _likeness(one: str, other: str) -> float:
    """Return the likeness of two names, 0 to 100."""
    from rapidfuzz import fuzz

    left, right = (" ".join(_WORD.findall(name)).casefold() for name in (one, other))
    bare = left.replace(" ", ""), right.replace(" ", "")
    if not all(bare):
        return 0.0
    contained = min(map(len, bare)) >= 3 and (bare[0] in bare[1] or bare[1] in bare[0])
    return max(fuzz.ratio(*bare), fuzz.token_sort_ratio(left, right), 65.0 * contained)


class Tables:
    """The tables of a catalog by name, under the dialect's case rules; build once per catalog.

    Attributes:
        closed: Rules withhold something: a table that is not in the catalog may not be read.
    """

    def __init__(self, catalog: Catalog, names: CaseRules) -> None:
        self.catalog = catalog
        self.names = names
        self.closed = catalog.withheld is not None
        self._by_key: dict[str, list[Table]] = {}
        for table in catalog.tables:
            self._by_key.setdefault(names.stored(table.name), []).append(table)

    def prepare(self) -> None:
        """Make all indexes now; of thousands of tables they take longer than a check may."""
        for index in ("_families", "_databases", "_schemas", "fields", "by_column"):
            getattr(self, index)

    def find(self, node: exp.Table) -> tuple[Table, ...] | None:
        """Return the catalog's table that a query's table names, or the shards behind a BigQuery wildcard.

        Nothing if there is none; None where the catalog cannot tell (system tables, other databases).
        """
        parts = node.parts
        if self.names.strict:
            return self._exactly(parts)
        if _SYSTEM.search(".".join(part.name for part in parts)):
            return None
        if self.names.dialect == "bigquery" and node.name.endswith("*"):
            return () if self.closed else self._wildcard(node.name[:-1])  # a hidden table may be among them
        found = [t for t in self._by_key.get(self.names.key(parts[-1]), ()) if self._fits(t, parts[:-1])]
        if len(found) > 1 and len({table.database for table in found}) == 1:
            found = [t for t in found if t.schema.casefold() in _DEFAULT_SCHEMAS] or found
        if len(found) > 1 or (not found and (self._elsewhere(parts) or self._shard(node.name))):
            return None
        return tuple(found)

    def _exactly(self, parts: list[exp.Expr]) -> tuple[Table, ...] | None:
        """Return the table of the whole name; a bare one could mean another in the session's own schema."""
        if len(parts) == 1 and self.names.dialect in _DUAL and parts[0].name.casefold() == "dual":
            return None
        written = [self.names.key(part) for part in parts]
        for table in self._by_key.get(written[-1], ()):
            own = [self.names.stored(part) for part in (table.database, table.schema, table.name) if part]
            if own == written:
                return (table,)
        return ()

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

    def _wildcard(self, prefix: str) -> tuple[Table, ...] | None:
        folded = prefix.casefold()
        shards = tuple(t for t in self.catalog.tables if t.name.casefold().startswith(folded))
        return shards or (None if prefix and self._shard(prefix) else ())

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
        """Return the tables of that name, in whichever schema."""
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
        """Return the full names of the tables most like an unknown one: elsewhere, in other case."""
        folded = node.name.casefold()
        same = [t for t in self.catalog.tables if t.name.casefold() == folded]
        if not same:
            close = nearest(node.name, (t.name for t in self.catalog.tables))
            same = [t for name in close for t in self.catalog.tables if t.name == name]
        return [self.path(table) for table in same[:3]]

    def path(self, table: Table) -> str:
        """Return the table's full name as a query must write it."""
        parts = (table.database, table.schema, table.name)
        return ".".join(self.names.written(part) for part in parts if part)
