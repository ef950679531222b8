"""The FROM clause: what each source is and which columns it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from quorum.tools.lint.fields import returned
from quorum.tools.lint.names import Names
from quorum.tools.lint.paths import Fault, elements, heads
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
        fault: Where a path below a column breaks off.
    """

    node: exp.Expr
    scope: Scope
    what: str  # table, qualifier, column, alias, ambiguous, field or path
    sources: tuple[Source, ...] = ()
    clause: str = ""
    fault: Fault | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Line and column of its last word; 0 where the parser did not note them."""
        meta = self.parts[-1].meta
        return meta.get("line", 0), meta.get("col", 0)

    @property
    def parts(self) -> list[exp.Expr]:
        """The names that it is written with; of a field and a path, the one that is not there."""
        node = self.node
        if self.fault:
            return [self.fault.at]
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
        read: The ids of the nodes of tables that were looked up.
        calls: Whether a bare name that is no column calls a function: then no source may have any column.
    """

    def __init__(self, tables: Tables, variables: Iterable[str] = ()) -> None:
        self.tables = tables
        self.names: Names = tables.names
        self.dialect = tables.names.dialect
        self.variables = frozenset(name.casefold() for name in variables)
        self.issues: list[Issue] = []
        self.firsts: dict[int, Columns] = {}
        self.found: list[Table] = []
        self.read: set[int] = set()
        self.calls = self.dialect == "oracle"

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
        node = node.this if isinstance(node, exp.Final) else node
        alias = node.args.get("alias")
        identifier = alias.this if isinstance(alias, exp.TableAlias) and alias.this else None
        before = len(self.found)
        table: Table | None = None
        columns: Columns = None
        if isinstance(node, exp.Unnest) and self.dialect == "bigquery":
            return pending + self._unnested(node, scope)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            identifier = identifier or node.this
            columns, table = self._table(node, scope)
            pending += [part for name in ("version", "sample", "when") if (part := node.args.get(name))]
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
        if columns is None and self.calls:
            columns = self._defined(node, alias)
        name = identifier.name if identifier is not None else ""
        key = self.names.key(identifier) if isinstance(identifier, exp.Identifier) else ""
        shards = tuple(self.found[before:]) if table and node.name.endswith("*") else ()
        scope.sources.append(Source(name, key, columns, table, shards))
        return pending + self._nested(node, scope)

    def _unnested(self, node: exp.Unnest, scope: Scope) -> list[exp.Expr]:
        """Add BigQuery's UNNEST: its alias is an element, whose fields are columns, too."""
        alias, offset = node.args.get("alias"), node.args.get("offset")
        named = [i for i in (alias.this, *alias.columns) if isinstance(i, exp.Identifier)] if alias else []
        name, key = (named[0].name, self.names.key(named[0])) if named else ("", "")
        paths = elements(node.expressions[0], scope, self.names) if len(node.expressions) == 1 else []
        columns: Columns = {head: head for head in heads(paths)} or None
        if columns and isinstance(offset, exp.Identifier):
            columns[self.names.key(offset)] = offset.name
        scope.sources.append(Source(name, key, columns, elements=tuple(paths)))
        return [*node.expressions, *self._nested(node, scope)]

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

    def _defined(self, node: exp.Expr, alias: exp.Expr | None) -> Columns:
        """The columns that a source gives itself: those of its alias and of JSON_TABLE."""
        named = [each.this for each in node.find_all(exp.JSONColumnDef)]
        named += (alias.args.get("columns") or []) if alias else []
        return {self.names.key(i): i.name for i in named if isinstance(i, exp.Identifier)}

    def _row_function(self, node: exp.Expr) -> Columns:
        if self.dialect == "snowflake" and isinstance(node, exp.TableFromRows | exp.Lateral):
            flatten = isinstance(node.this, exp.Explode | exp.Flatten)
            return {name: name for name in _FLATTENED.split()} if flatten else None
        if self.dialect == "mysql" and isinstance(node.this, exp.JSONTable):
            made = [part.this for part in node.this.find_all(exp.JSONColumnDef) if part.this]
            return {self.names.key(name): name.name for name in made}
        names = _ROW_FUNCTIONS.get(node.this.name.lower()) if isinstance(node.this, exp.Anonymous) else None
        return {name: name for name in names.split()} if names and self.dialect == "sqlite" else None

    def _table(self, node: exp.Table, scope: Scope) -> tuple[Columns, Table | None]:
        self.read.add(id(node))
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
