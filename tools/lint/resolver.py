"""Name resolution: every table and column of a query against the catalog.

Where anything on the way cannot be known (table functions, pivots, structs, system tables), the
resolver stays silent: a false alarm would cost a good query.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from quorum.tools.lint.fields import has_field, may_have, unnamed
from quorum.tools.lint.names import Names
from quorum.tools.lint.paths import fault
from quorum.tools.lint.scope import Columns, Scope, Source, is_pseudo
from quorum.tools.lint.sources import Issue, Sources
from quorum.tools.sql import STRICT_DIALECTS

_STRUCTS = frozenset({"bigquery", "duckdb", "snowflake", "postgres", *STRICT_DIALECTS} - {"oracle"})
"""Dialects where a.b may be a field of column a."""
_PATHS = frozenset({"bigquery", "duckdb", "snowflake"})  # what is below a column is declared, or has a colon
_OPAQUE = ("MatchRecognize", "Pivot")
_INNER = (exp.Dot, exp.Bracket)
_TERMS = (exp.Ordered, exp.Paren, exp.Tuple, exp.Rollup, exp.Cube, exp.GroupingSets)
"""What may stand round the alias of an output in PostgreSQL's ORDER BY and GROUP BY."""


class Resolver(Sources):
    """Resolves one query; make a new one for each."""

    def query(self, node: exp.Expr, parent: Scope | None, ctes: dict[str, Columns]) -> Columns:
        """Resolve a query and all queries in it; its output columns."""
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
            return star_columns(scope)
        scope.sources.append(Source("", "", {} if self.calls else None))
        self._visit(node.iter_expressions(), scope)
        return None

    def look_everywhere(self, tree: exp.Expr) -> None:
        """Look up the tables that stand where no query reads its sources."""
        for node in tree.find_all(exp.Table):
            if isinstance(node.this, exp.Identifier) and id(node) not in self.read:
                self.issues.append(Issue(node, Scope(self.dialect, {}), "table"))

    def _ctes(self, node: exp.Expr, parent: Scope | None, ctes: dict[str, Columns]) -> dict[str, Columns]:
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
                own[key] = self._renamed(self._first_columns(body, parent, own), aliases)
            ctes[key] = self._renamed(self.query(cte.this, parent, own), aliases)
            if clause.args.get("search") or clause.args.get("cycle"):
                ctes[key] = None  # which add columns
        return ctes

    def _first_columns(self, body: exp.Expr, parent: Scope | None, ctes: dict[str, Columns]) -> Columns:
        """The columns of the first branch of a set operation, whose issues are found later."""
        while isinstance(body, exp.SetOperation):
            body = body.left
        if id(body) not in self.firsts:
            silent = Resolver(self.tables, self.variables)
            silent.firsts = self.firsts
            self.firsts[id(body)] = silent.query(body, parent, ctes)
        return self.firsts[id(body)]

    def _set_operation(
        self, node: exp.SetOperation, parent: Scope | None, ctes: dict[str, Columns]
    ) -> Columns:
        branches: list[exp.Expr] = []
        todo: list[exp.Expr] = [node]
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
        pending: list[exp.Expr] = []  # ON conditions and arguments, which see all sources
        if node.args.get("from_"):
            pending += self._source(node.args["from_"].this, scope)
        for join in node.args.get("joins") or ():
            pending += self._join(join, scope)
        for lateral in node.args.get("laterals") or ():
            pending += self._source(lateral, scope)
        named = [e.args["alias"] for e in node.expressions if e.args.get("alias") and e.key == "alias"]
        scope.aliases = {self.names.key(alias): alias.name for alias in named}
        scope.outputs = frozenset(scope.aliases) | frozenset(
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
        return (
            None
            if node.args.get("kind") or node.args.get("pivots")
            else output_columns(self.names, node, scope)
        )

    def _visit(self, nodes: Iterable[exp.Expr], scope: Scope) -> None:
        """Resolve the columns below ``nodes``, and the queries in them with ``scope`` as the outer one."""
        todo: list[tuple[exp.Expr, frozenset[str]]] = [(node, frozenset()) for node in nodes]
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
                self._field(node, scope)
                if isinstance(node, _INNER) and not isinstance(node.parent, _INNER):
                    self._breaks_off(node, scope)
                if isinstance(node, exp.Comprehension | exp.Lambda):
                    names = [node.args.get("expression"), *node.expressions]
                    bound |= {i.name.casefold() for i in names if i is not None and hasattr(i, "name")}
                todo += [(child, bound) for child in node.iter_expressions()]

    def _column(self, node: exp.Column, scope: Scope) -> None:
        qualifier = node.args.get("table")
        if isinstance(node.this, exp.Star):
            if qualifier is not None and not node.args.get("db"):
                self._qualified(node, qualifier, None, scope)
        elif (
            not isinstance(node.this, exp.Identifier)
            or (is_pseudo(node, scope) and not (self.calls and qualifier is not None))
            or self._breaks_off(node, scope)
        ):
            return
        elif qualifier is None:
            self._unqualified(node, self.names.key(node.this), scope)
        elif node.args.get("db") is None or self.dialect == "postgres":  # there, a.b.f may be f(a.b)
            self._qualified(node, qualifier, self.names.key(node.this), scope)

    def _qualified(self, node: exp.Column, qualifier: exp.Identifier, key: str | None, scope: Scope) -> None:
        wanted = self.names.key(qualifier)
        for level in scope.chain():
            sources = level.named(wanted)
            if not sources:
                continue
            if key is None or any(source.columns is None for source in sources):
                return
            if any(source.open and may_have(source.columns, key) for source in sources):
                return
            pseudo = self.calls and is_pseudo(node, scope)
            if not pseudo and not any(key in (source.columns or {}) for source in sources):
                self.issues.append(Issue(node, scope, "column", tuple(sources)))
            return
        if self.dialect in _STRUCTS and any(
            level.open or level.holding(wanted) or level.sees_alias(wanted) for level in scope.chain()
        ):
            return
        if wanted in self.variables or any(s.key == "" and s.columns is None for s in scope.sources):
            return
        self.issues.append(Issue(node, scope, "qualifier"))

    def _breaks_off(self, node: exp.Expr, scope: Scope) -> bool:
        """Look where the path below a column breaks off; whether it does."""
        found = fault(node, scope, self.names) if self.dialect in _PATHS else None
        if found is not None:
            self.issues.append(Issue(node, scope, "path", fault=found))
        return found is not None

    def _field(self, node: exp.Expr, scope: Scope) -> None:
        """Look whether what stands behind PostgreSQL's ``(value).`` is a field."""
        if (
            self.dialect != "postgres"
            or not isinstance(node, exp.Dot)
            or isinstance(node.parent, exp.DataType)
        ):
            return
        if isinstance(node.expression, exp.Identifier) and not has_field(node, scope, self.tables):
            self.issues.append(Issue(node, scope, "field"))

    def _sees_alias(self, node: exp.Column) -> bool:
        """Whether an alias counts here: on PostgreSQL only as a whole term of ORDER BY or GROUP BY."""
        above = node.parent
        while isinstance(above, _TERMS):
            above = above.parent
        return self.dialect != "postgres" or isinstance(above, exp.Order | exp.Group)

    def _unqualified(self, node: exp.Column, key: str, scope: Scope) -> None:
        for level in scope.chain():
            holders = level.holding(key)
            if len(holders) > 1 and not level.finds(node, key):
                self.issues.append(Issue(node, scope, "ambiguous", tuple(holders)))
                return
            alias = level.sees_alias(key) and (level is not scope or self._sees_alias(node))
            if self.calls:
                alias = alias and level is scope
            if holders or alias or (not self.calls and (level.open or level.named(key))):
                return
        if key.casefold() in self.variables:
            return
        what = "alias" if key in scope.aliases else "column"
        self.issues.append(Issue(node, scope, what, clause=scope.clause))


def output_columns(names: Names, node: exp.Select, scope: Scope) -> Columns:
    """The columns of a SELECT, in order; None where an engine may name one in its own way."""
    outputs: dict[str, str] = {}
    for item in node.expressions:
        alias = item.args.get("alias")
        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if isinstance(star, exp.Star):
            columns = _expanded(names, item, star, scope)
            if columns is None:
                return None
            outputs |= columns
        elif isinstance(alias, exp.Identifier):
            outputs[names.key(alias)] = alias.name
        elif isinstance(item, exp.Column):
            outputs[names.key(item.this)] = item.name
        elif names.dialect == "postgres":
            outputs[unnamed(names, item)] = ""
        elif names.dialect != "oracle":  # there, what has no known name is not found by one
            return None  # engines name an expression in their own ways
    return outputs


def _expanded(names: Names, item: exp.Expr, star: exp.Star, scope: Scope) -> Columns:
    """The columns of ``*`` or ``t.*``, with EXCEPT and REPLACE applied; None if RENAME changes them."""
    if star.args.get("rename"):
        return None
    qualifier = item.args.get("table") if item is not star else None
    columns = star_columns(scope, names.key(qualifier) if qualifier is not None else None)
    if columns is None:
        return None
    left_out = {
        names.key(c.this if c.key == "column" else c)
        for c in star.args.get("except_") or ()
        if hasattr(c, "this")
    }
    return {key: name for key, name in columns.items() if key not in left_out}


def star_columns(scope: Scope, key: str | None = None) -> Columns:
    """What ``*`` stands for, or ``t.*`` if ``key`` is the source's; None if it cannot be known."""
    sources = scope.sources if key is None else scope.named(key)
    if not sources or any(source.columns is None for source in sources):
        return None
    return {k: name for source in sources for k, name in (source.columns or {}).items()}
