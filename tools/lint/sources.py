"""The FROM clause: what each source is and which columns it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from quorum.tools.lint.fields import returned
from quorum.tools.lint.names import Names
from quorum.tools.lint.scope import UNNAMED, Columns, Scope, Source
from quorum.tools.lint.tables import Tables

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Table

_ROW_FUNCTIONS = {  # table functions whose columns are known
    "json_each": "key value type atom id parent fullkey path json root",
    "json_tree": "key value type atom id parent fullkey path json root",
}
_FLATTENED = "SEQ KEY PATH INDEX VALUE THIS"


@dataclass(frozen=True)
class Issue:
    """A name that does not resolve.

    Attributes:
        node: The table or column.
        scope: Where it stands.
        sources: An ambiguous column's sources; the source that lacks a qualified column.
        clause: Of an alias: the clause that cannot see it.
    """

    node: exp.Expr
    scope: Scope
    what: str  # table, qualifier, column, alias or ambiguous
    sources: tuple[Source, ...] = ()
    clause: str = ""

    @property
    def place(self) -> tuple[int, int]:
        """Line and column of its last word; 0 where the parser did not note them."""
        meta = self.parts[-1].meta
        return meta.get("line", 0), meta.get("col", 0)

    @property
    def parts(self) -> list[exp.Expr]:
        """The names that it is written with; of a field, its own."""
        node = self.node
        return list(node.parts) if isinstance(node, exp.Column | exp.Table) else [node.expression]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for issues that get the same message."""
        return self.what, self.clause, id(self.scope), *(part.name for part in self.parts)


class Sources(ABC):
    """Reads FROM clauses; the part of the resolver that knows the catalog's tables.

    Attributes:
        issues: Names that do not resolve.
        firsts: Columns of the first branch of recursive queries, by the id of its node: each is resolved
            once for them, however deep such queries nest.
        found: The catalog's tables that are read.
    """

    def __init__(self, tables: Tables, variables: Iterable[str] = ()) -> None:
        self.tables = tables
        self.names: Names = tables.names
        self.dialect = tables.names.dialect
        self.variables = frozenset(name.casefold() for name in variables)
        self.issues: list[Issue] = []
        self.firsts: dict[int, Columns] = {}
        self.found: list[Table] = []

    @abstractmethod
    def query(self, node: exp.Expr, parent: Scope | None, ctes: dict[str, Columns]) -> Columns:
        """Resolve a query and all queries in it; its output columns."""

    def _join(self, join: exp.Join, scope: Scope) -> list[exp.Expr]:
        pending = self._source(join.this, scope)
        scope.natural = scope.natural or join.method == "NATURAL"
        for name in join.args.get("using") or ():
            identifier = name if isinstance(name, exp.Identifier) else name.this
            if isinstance(identifier, exp.Identifier):
                scope.merged.add(self.names.key(identifier))
        return pending + [part for part in [join.args.get("on"), join.args.get("match_condition")] if part]

    def _source(self, node: exp.Expr, scope: Scope) -> list[exp.Expr]:
        """Add a source of a FROM clause; what in it still has to be resolved."""
        pending: list[exp.Expr] = []
        alias = node.args.get("alias")
        identifier = alias.this if isinstance(alias, exp.TableAlias) and alias.this else None
        table: Table | None = None
        columns: Columns = None
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            identifier = identifier or node.this
            columns, table = self._table(node, scope)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            pending += self._source(node.this, scope)  # (a JOIN b)
            if identifier is None:
                return pending + self._nested(node, scope)
        elif isinstance(node, exp.Subquery):
            columns = self.query(node, scope.parent, scope.ctes)
        elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            columns = self.query(node.this, scope, scope.ctes)
        else:
            pending += list(node.iter_expressions())
            columns = returned(self.names, node) if self.dialect == "postgres" else self._row_function(node)
        if node.args.get("pivots") or node.args.get("match"):
            columns, table = None, None
        columns = self._aliased(node, alias, columns)
        name = identifier.name if identifier is not None else ""
        key = self.names.key(identifier) if isinstance(identifier, exp.Identifier) else ""
        scope.sources.append(Source(name, key, columns, table))
        return pending + self._nested(node, scope)

    def _nested(self, node: exp.Expr, scope: Scope) -> list[exp.Expr]:
        return [part for join in node.args.get("joins") or () for part in self._join(join, scope)]

    def _aliased(self, node: exp.Expr, alias: exp.Expr | None, columns: Columns) -> Columns:
        if columns is not None and len(columns) == 1 and next(iter(columns)).startswith(UNNAMED):
            return columns
        named = (
            [i for i in (alias.args.get("columns") or ()) if isinstance(i, exp.Identifier)] if alias else []
        )
        if isinstance(node, exp.Values) and named:
            return {self.names.key(i): i.name for i in named}
        if isinstance(node, exp.Lateral) and columns is None and self.dialect == "snowflake" and named:
            return {self.names.key(i): i.name for i in named}
        return columns if columns is None else self._renamed(columns, named)

    def _row_function(self, node: exp.Expr) -> Columns:
        if self.dialect == "snowflake" and isinstance(node, exp.TableFromRows | exp.Lateral):
            flatten = isinstance(node.this, exp.Explode | exp.Flatten)
            return {name: name for name in _FLATTENED.split()} if flatten else None
        names = _ROW_FUNCTIONS.get(node.this.name.lower()) if isinstance(node.this, exp.Anonymous) else None
        return {name: name for name in names.split()} if names and self.dialect == "sqlite" else None

    def _table(self, node: exp.Table, scope: Scope) -> tuple[Columns, Table | None]:
        if not node.args.get("db"):
            key = self.names.key(node.this)
            if key in scope.ctes:
                return scope.ctes[key], None
        found = self.tables.find(node)
        if not found.tables:
            if not found.unknown and not self._is_struct_path(node, scope):
                self.issues.append(Issue(node, scope, "table"))
            return None, None
        self.found += found.tables
        if not all(table.columns for table in found.tables):
            return None, None
        columns = {self.names.stored(c.name): c.name for table in found.tables for c in table.columns}
        return columns, found.tables[0]

    def _is_struct_path(self, node: exp.Table, scope: Scope) -> bool:
        """True for BigQuery's ``FROM t, t.items``, which unnests a column."""
        return self.dialect == "bigquery" and bool(scope.named(self.names.key(node.parts[0])))

    def _renamed(self, columns: Columns, aliases: list[exp.Identifier]) -> Columns:
        if not aliases:
            return columns
        named = {self.names.key(alias): alias.name for alias in aliases}
        rest = list((columns or {}).items())[len(aliases) :]
        return named | dict(rest)
