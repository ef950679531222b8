"""Name resolution: every table and column of a query against the catalog.

Where anything on the way cannot be known (table functions, pivots, structs, system tables), the
resolver stays silent: a false alarm would cost a good query.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tools.lint.names import Names
from tools.lint.scope import Columns, Scope, Source, is_pseudo
from tools.lint.tables import Tables

if TYPE_CHECKING:
    from sqlglot import exp

    from knowledge.catalog import Column, Table

_ROW_FUNCTIONS = {  # table functions whose columns are known
    "json_each": "key value type atom id parent fullkey path json root",
    "json_tree": "key value type atom id parent fullkey path json root",
}
_FLATTENED = "SEQ KEY PATH INDEX VALUE THIS"
_STRUCTS = frozenset({"bigquery", "duckdb", "snowflake", "postgres"})  # a.b may be a field of column a
_OPAQUE = ("MatchRecognize", "Pivot")


@dataclass(frozen=True)
class Issue:
    """A name that does not resolve.

    Attributes:
        node: The table or column.
        scope: Where it stands.
        sources: An ambiguous column's sources; the source that lacks a qualified column.
    """

    node: exp.Expression
    scope: Scope
    what: str  # table, qualifier, column, alias or ambiguous
    sources: tuple[Source, ...] = ()


@dataclass
class Resolution:
    """What the names of a query mean, as far as the catalog tells."""

    issues: list[Issue] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    columns: list[tuple[Table, Column]] = field(default_factory=list)


class Resolver:
    """Resolves one query; make a new one for each."""

    def __init__(self, tables: Tables, variables: Iterable[str] = ()) -> None:
        self.tables = tables
        self.names: Names = tables.names
        self.dialect = tables.names.dialect
        self.variables = frozenset(name.casefold() for name in variables)
        self.result = Resolution()

    def query(self, node: exp.Expression, parent: Scope | None, ctes: dict[str, Columns]) -> Columns:
        """Resolve a query and all queries in it; its output columns."""
        from sqlglot import exp

        ctes = self._ctes(node, parent, ctes)
        if isinstance(node, exp.Subquery):
            columns = self.query(node.this, parent, ctes)
            return None if node.args.get("pivots") else columns
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, parent, ctes)
        if isinstance(node, exp.Select):
            return self._select(node, parent, ctes)
        scope = Scope(self.dialect, ctes, parent)
        if isinstance(node, exp.Table):
            self._source(node, scope)
            return self._star(scope)
        scope.sources.append(Source("", "", None))
        self._visit(node.iter_expressions(), scope)
        return None

    def _ctes(self, node: exp.Expression, parent: Scope | None, ctes: dict[str, Columns]) -> dict[str, Columns]:
        from sqlglot import exp

        clause = node.args.get("with_")
        if not clause:
            return ctes
        ctes = dict(ctes)
        for cte in clause.expressions:
            key = self.names.key(cte.args["alias"].this)
            aliases = [i for i in cte.args["alias"].columns if isinstance(i, exp.Identifier)]
            body = cte.this.unnest() if isinstance(cte.this, exp.Subquery) else cte.this
            own = dict(ctes)
            if isinstance(body, exp.SetOperation):  # it may read itself: its first branch names the columns
                own[key] = None
                first = Resolver(self.tables, self.variables).query(self._first(body), parent, own)
                own[key] = self._renamed(first, aliases)
            ctes[key] = self._renamed(self.query(cte.this, parent, own), aliases)
        return ctes

    @staticmethod
    def _first(body: exp.Expression) -> exp.Expression:
        from sqlglot import exp

        while isinstance(body, exp.SetOperation):
            body = body.left
        return body

    def _renamed(self, columns: Columns, aliases: list[exp.Identifier]) -> Columns:
        if not aliases:
            return columns
        named = {self.names.key(alias): alias.name for alias in aliases}
        rest = list((columns or {}).items())[len(aliases) :]
        return named | dict(rest)

    def _set_operation(self, node: exp.SetOperation, parent: Scope | None, ctes: dict[str, Columns]) -> Columns:
        from sqlglot import exp

        branches: list[exp.Expression] = []
        todo: list[exp.Expression] = [node]
        while todo:  # a loop: generated unions may be thousands long
            item = todo.pop()
            if isinstance(item, exp.SetOperation) and (item is node or not item.args.get("with_")):
                todo += [item.right, item.left]
            else:
                branches.append(item)
        outputs = [self.query(branch, parent, ctes) for branch in branches]
        known = None if None in outputs else {k: v for columns in outputs for k, v in (columns or {}).items()}
        scope = Scope(self.dialect, ctes, parent, [Source("", "", known)], clause="order")
        self._visit([order for order in [node.args.get("order")] if order], scope)
        return outputs[0]

    def _select(self, node: exp.Select, parent: Scope | None, ctes: dict[str, Columns]) -> Columns:
        scope = Scope(self.dialect, ctes, parent)
        pending: list[exp.Expression] = []  # ON conditions and arguments, which see all sources
        if node.args.get("from_"):
            pending += self._source(node.args["from_"].this, scope)
        for join in node.args.get("joins") or ():
            pending += self._join(join, scope)
        for lateral in node.args.get("laterals") or ():
            pending += self._source(lateral, scope)
        scope.aliases = frozenset(
            self.names.key(e.args["alias"]) for e in node.expressions if e.args.get("alias") and e.key == "alias"
        )
        scope.outputs = scope.aliases | frozenset(
            self.names.key(e.this) for e in node.expressions if e.key == "column" and not e.is_star
        )
        scope.clause = "joins"
        self._visit(pending, scope)
        for clause, value in node.args.items():
            if clause in ("with_", "from_", "joins", "laterals", "hint", "match", "pivots"):
                continue
            scope.clause = clause
            items = value if isinstance(value, list) else [value]
            self._visit([item for item in items if hasattr(item, "iter_expressions")], scope)
        return None if node.args.get("kind") or node.args.get("pivots") else self._outputs(node, scope)

    def _join(self, join: exp.Join, scope: Scope) -> list[exp.Expression]:
        from sqlglot import exp

        pending = self._source(join.this, scope)
        scope.natural = scope.natural or join.method == "NATURAL"
        for name in join.args.get("using") or ():
            identifier = name if isinstance(name, exp.Identifier) else name.this
            if isinstance(identifier, exp.Identifier):
                scope.merged.add(self.names.key(identifier))
        return pending + [part for part in [join.args.get("on"), join.args.get("match_condition")] if part]

    def _source(self, node: exp.Expression, scope: Scope) -> list[exp.Expression]:
        """Add a source of a FROM clause; what in it still has to be resolved."""
        from sqlglot import exp

        pending: list[exp.Expression] = []
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
            columns = self._row_function(node)
        if node.args.get("pivots") or node.args.get("match"):
            columns, table = None, None
        columns = self._aliased(node, alias, columns)
        name = identifier.name if identifier is not None else ""
        key = self.names.key(identifier) if isinstance(identifier, exp.Identifier) else ""
        scope.sources.append(Source(name, key, columns, table))
        return pending + self._nested(node, scope)

    def _nested(self, node: exp.Expression, scope: Scope) -> list[exp.Expression]:
        return [part for join in node.args.get("joins") or () for part in self._join(join, scope)]

    def _aliased(self, node: exp.Expression, alias: exp.Expression | None, columns: Columns) -> Columns:
        from sqlglot import exp

        named = [i for i in (alias.args.get("columns") or ()) if isinstance(i, exp.Identifier)] if alias else []
        if isinstance(node, exp.Values) and named:
            return {self.names.key(i): i.name for i in named}
        if isinstance(node, exp.Lateral) and columns is None and self.dialect == "snowflake" and named:
            return {self.names.key(i): i.name for i in named}
        return columns if columns is None else self._renamed(columns, named)

    def _row_function(self, node: exp.Expression) -> Columns:
        from sqlglot import exp

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
                self.result.issues.append(Issue(node, scope, "table"))
            return None, None
        self.result.tables += found.tables
        if not all(table.columns for table in found.tables):
            return None, None
        columns = {self.names.stored(c.name): c.name for table in found.tables for c in table.columns}
        return columns, found.tables[0]

    def _is_struct_path(self, node: exp.Table, scope: Scope) -> bool:
        """True for BigQuery's ``FROM t, t.items``, which unnests a column."""
        return self.dialect == "bigquery" and bool(scope.named(self.names.key(node.parts[0])))

    def _outputs(self, node: exp.Select, scope: Scope) -> Columns:
        from sqlglot import exp

        outputs: dict[str, str] = {}
        for item in node.expressions:
            alias = item.args.get("alias")
            star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
            if isinstance(star, exp.Star):
                columns = self._expanded(item, star, scope)
                if columns is None:
                    return None
                outputs |= columns
            elif isinstance(alias, exp.Identifier):
                outputs[self.names.key(alias)] = alias.name
            elif isinstance(item, exp.Column):
                outputs[self.names.key(item.this)] = item.name
            else:
                return None  # engines name an expression in their own ways
        return outputs

    def _expanded(self, item: exp.Expression, star: exp.Star, scope: Scope) -> Columns:
        """The columns of ``*`` or ``t.*``, with EXCEPT and REPLACE applied; None if RENAME changes them."""
        if star.args.get("rename"):
            return None
        qualifier = item.args.get("table") if item is not star else None
        columns = self._star(scope, self.names.key(qualifier) if qualifier is not None else None)
        if columns is None:
            return None
        left_out = {
            self.names.key(c.this if c.key == "column" else c) for c in star.args.get("except_") or () if hasattr(c, "this")
        }
        return {key: name for key, name in columns.items() if key not in left_out}

    @staticmethod
    def _star(scope: Scope, key: str | None = None) -> Columns:
        sources = scope.sources if key is None else scope.named(key)
        if not sources or any(source.columns is None for source in sources):
            return None
        return {k: name for source in sources for k, name in (source.columns or {}).items()}

    def _visit(self, nodes: Iterable[exp.Expression], scope: Scope) -> None:
        """Resolve the columns below ``nodes``, and the queries in them with ``scope`` as the outer one."""
        from sqlglot import exp

        todo: list[tuple[exp.Expression, frozenset[str]]] = [(node, frozenset()) for node in nodes]
        while todo:
            node, bound = todo.pop()
            if isinstance(node, exp.Query) and not isinstance(node, exp.Table):
                self.query(node, scope, scope.ctes)
            elif isinstance(node, exp.Column):
                if node.name.casefold() not in bound:
                    self._column(node, scope)
                stars = [node.this] if isinstance(node.this, exp.Star) else []
                todo += [(child, bound) for child in stars]
            elif type(node).__name__ not in _OPAQUE:
                if isinstance(node, exp.Comprehension | exp.Lambda):
                    names = [node.args.get("expression"), *node.expressions]
                    bound |= {i.name.casefold() for i in names if i is not None and hasattr(i, "name")}
                todo += [(child, bound) for child in node.iter_expressions()]

    def _column(self, node: exp.Column, scope: Scope) -> None:
        from sqlglot import exp

        qualifier = node.args.get("table")
        if isinstance(node.this, exp.Star):
            if qualifier is not None and not node.args.get("db"):
                self._qualified(node, qualifier, None, scope)
        elif not isinstance(node.this, exp.Identifier) or is_pseudo(node, self.dialect):
            return
        elif qualifier is None:
            self._unqualified(node, self.names.key(node.this), scope)
        elif node.args.get("db") is None:
            self._qualified(node, qualifier, self.names.key(node.this), scope)

    def _qualified(self, node: exp.Column, qualifier: exp.Identifier, key: str | None, scope: Scope) -> None:
        wanted = self.names.key(qualifier)
        for level in scope.chain():
            sources = level.named(wanted)
            if not sources:
                continue
            if key is None or any(source.columns is None for source in sources):
                return
            holders = [s for s in sources if key in (s.columns or {})]
            if holders:
                self._record(holders[0], key)
            else:
                self.result.issues.append(Issue(node, scope, "column", tuple(sources)))
            return
        if self.dialect in _STRUCTS and any(level.open or level.holding(wanted) or level.sees_alias(wanted)
                                            for level in scope.chain()):
            return
        if wanted in self.variables or any(s.key == "" and s.columns is None for s in scope.sources):
            return
        self.result.issues.append(Issue(node, scope, "qualifier"))

    def _unqualified(self, node: exp.Column, key: str, scope: Scope) -> None:
        for level in scope.chain():
            holders = level.holding(key)
            if len(holders) > 1 and not level.settles(node, key):
                self.result.issues.append(Issue(node, scope, "ambiguous", tuple(holders)))
                return
            if holders:
                self._record(holders[0], key)
                return
            if level.open or level.sees_alias(key) or level.named(key):
                return
        if key.casefold() in self.variables:
            return
        what = "alias" if key in scope.aliases else "column"
        self.result.issues.append(Issue(node, scope, what))

    def _record(self, source: Source, key: str) -> None:
        if source.table is None:
            return
        column = next((c for c in source.table.columns if self.names.stored(c.name) == key), None)
        if column is not None:
            self.result.columns.append((source.table, column))
