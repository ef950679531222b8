"""Lineage: which columns of a result are made of masked ones.

A value has its origins: columns of tables, and what a query makes up itself (a list of VALUES, the rows of a
recursion or of a function). What has a masked origin is masked; COUNT, EXISTS and IS NULL have none. What a
condition compares with a masked value is masked as well: else letters joined with ``substr(email, 1, 1)``
would spell the addresses. Where origins cannot be known, they are all those of the query's sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from quorum.tools.guard.limits import branches
from quorum.tools.lint.resolver import PSEUDO

if TYPE_CHECKING:
    from quorum.tools.lint.tables import Tables

Masks: TypeAlias = bool | tuple[bool, ...]
"""For each column of a result, True if it is masked; or for all of them, where False says that none of the
query's tables has a masked column."""

Origins: TypeAlias = frozenset[tuple[object, ...]]

NONE: Origins = frozenset()
_ROUNDS = 20
_FREE = (exp.Count, exp.CountIf, exp.ApproxDistinct)
_MIXING = (exp.Predicate, exp.Connector, exp.Func)
_CHOOSING = (exp.Case, exp.If, exp.Coalesce, exp.Concat, exp.ConcatWs, exp.AggFunc, exp.Cast)
_UNSEEN = ("Star", "Columns", "PositionalColumn", "Parameter", "Placeholder")
"""Expressions that stand for columns without their names."""
_SETS = ("unnest", "explode", "flatten", "generate_", "range", "sequence", "series", "split", "_elements")
"""Parts of the names of functions that return rows: how many there are may tell the argument."""


@dataclass(frozen=True)
class Rows:
    """The rows of a source: its columns by key with their origins, in order; None where they cannot be known.

    ``all`` holds the origins of every column, of hidden ones such as ``rowid`` too.
    """

    columns: tuple[tuple[str, Origins], ...] | None
    all: Origins
    key: str = ""
    base: bool = False

    @classmethod
    def of(cls, columns: list[tuple[str, Origins]] | None, more: Origins = NONE) -> Rows:
        known = [origins for _, origins in columns or ()]
        return cls(None if columns is None else tuple(columns), more.union(*known))

    def column(self, key: str) -> Origins | None:
        found = [origins for name, origins in self.columns or () if name == key]
        return NONE.union(*found) if found else None


@dataclass
class _Scope:
    outer: _Scope | None
    ctes: Mapping[str, Rows]
    sources: list[Rows] = field(default_factory=list)
    aliases: dict[str, exp.Expr] = field(default_factory=dict)
    merged: bool = False

    def chain(self) -> Iterator[_Scope]:
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    @property
    def all(self) -> Origins:
        return NONE.union(*(source.all for source in self.sources))


class Lineage:
    """Traces one query; make a new one for each.

    Args:
        masked: The full names of tables, each with the name of a masked column.
    """

    def __init__(self, tables: Tables, masked: frozenset[tuple[str, str]]) -> None:
        self.tables, self.names = tables, tables.names
        self.whole = {table for table, _ in masked}
        self.masked: set[tuple[object, ...]] = set(masked)
        self.counted = False
        """A masked value decides how many rows there are, so that COUNT would tell it."""

    def masks(self, tree: exp.Expr) -> Masks:
        """Return which columns of a query's result are masked."""
        read = (table for node in tree.find_all(exp.Table) for table in self.tables.find(node) or ())
        if not any(table.full_name in self.whole for table in read):
            return False
        try:
            for _ in range(_ROUNDS):
                before = len(self.masked)
                rows = self._query(tree, None, {})
                if len(self.masked) == before:
                    break
            else:
                return True
        except RecursionError:
            return True
        if self.counted or rows.columns is None:
            return True
        return tuple(self._is_masked(origins) for _, origins in rows.columns)

    def _is_masked(self, origins: Origins) -> bool:
        return not self.masked.isdisjoint(origins)

    def _mix(self, origins: Origins) -> None:
        """Mask all that was compared with each other, if some of it is masked."""
        if self._is_masked(origins):
            self.masked |= origins

    def _query(self, node: exp.Expr, outer: _Scope | None, ctes: Mapping[str, Rows]) -> Rows:
        ctes = self._ctes(node, outer, ctes)
        if isinstance(node, exp.Subquery):
            rows = self._query(node.this, outer, ctes)
            plain = not any(node.args.get(name) for name in ("pivots", "joins", "laterals"))
            return rows if plain else Rows(None, rows.all | self._everything(node, _Scope(outer, ctes)))
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, outer, ctes)
        if isinstance(node, exp.Select):
            return self._select(node, _Scope(outer, ctes))
        return Rows(None, self._everything(node, _Scope(outer, ctes)))

    def _everything(self, node: exp.Expr, scope: _Scope) -> Origins:
        """Return the origins of all sources below a node that is not understood."""
        for table in node.find_all(exp.Table):
            self._source(table, scope)
        return scope.all

    def _ctes(self, node: exp.Expr, outer: _Scope | None, ctes: Mapping[str, Rows]) -> Mapping[str, Rows]:
        clause = node.args.get("with_")
        if clause is None:
            return ctes
        later = {self.names.key(cte.args["alias"].this) for cte in clause.expressions}
        for cte in clause.expressions:
            alias, body = cte.args["alias"], cte.this.unnest()
            key = self.names.key(alias.this)
            later.discard(key)
            if later.intersection(self.names.key(each.this) for each in cte.find_all(exp.Table)):
                tables = [self._table(each) for each in clause.find_all(exp.Table)]  # SQLite looks ahead
                known = NONE.union(*(rows.all for rows in (*ctes.values(), *tables) if rows))
                ctes = {**ctes, **dict.fromkeys(later, Rows(None, known))}
            inside = (self.names.key(each.this) for each in body.find_all(exp.Table))
            if isinstance(body, exp.SetOperation) and key in inside:  # it may read itself
                table = self._table(exp.Table(this=alias.this.copy()))
                own = frozenset({("rows", id(cte))}) | (table.all if table else NONE)
                rows = Rows(None, own | self._query(body, outer, {**ctes, key: Rows(None, own)}).all)
                self.counted |= self._is_masked(rows.all)  # it may end by a masked value
            else:
                rows = self._renamed(self._query(cte.this, outer, ctes), alias)
            added = clause.args.get("search") or clause.args.get("cycle")
            ctes = {**ctes, key: Rows(None, rows.all) if added else rows}
        return ctes

    def _set_operation(self, node: exp.SetOperation, outer: _Scope | None, ctes: Mapping[str, Rows]) -> Rows:
        found = [self._query(branch, outer, ctes) for branch in branches(node)]
        scope = _Scope(outer, ctes, [Rows(None, NONE.union(*(rows.all for rows in found)))])
        self._clauses(node, scope, ("order", "limit", "offset"))
        first = found[0].columns
        sizes = {rows.columns is not None and len(rows.columns) for rows in found}
        if first is None or len(sizes) > 1 or node.args.get("by_name") or node.args.get("on"):
            return Rows(None, scope.all | {("rows", id(node))})
        known = [rows.columns for rows in found if rows.columns is not None]
        columns = [
            (first[place][0], NONE.union({("rows", id(node), place)}, *(origins for _, origins in same)))
            for place, same in enumerate(zip(*known, strict=True))
        ]
        return Rows.of(columns)

    def _select(self, node: exp.Select, scope: _Scope) -> Rows:
        if from_ := node.args.get("from_"):
            self._source(from_.this, scope)
        self._joins(node, scope)
        for lateral in node.args.get("laterals") or ():
            self._source(lateral, scope)
        named = (item for item in node.expressions if isinstance(item, exp.Alias))
        scope.aliases = {
            self.names.key(item.args["alias"]): item.this
            for item in named
            if isinstance(item.args["alias"], exp.Identifier)
        }
        self._clauses(node, scope, tuple(node.args))
        columns: list[tuple[str, Origins]] | None = []
        rest = NONE
        for item in node.expressions:
            more = self._output(item, scope)
            rest |= self._origins(item, scope) | scope.all if more is None else NONE
            columns = None if more is None or columns is None else columns + more
            rest = rest.union(*(origins for _, origins in more or ()))
        if node.args.get("kind") or node.args.get("pivots") or not node.expressions:
            return Rows(None, rest | scope.all)
        return Rows.of(columns, rest)

    def _output(self, item: exp.Expr, scope: _Scope) -> list[tuple[str, Origins]] | None:
        """Return the columns that an item of a SELECT makes; None where they cannot be known."""
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            named = item.args.get("table") if isinstance(item, exp.Column) else None
            sources = scope.sources
            if named is not None:
                sources = [each for each in sources if each.key == self.names.key(named)]
            changed = any(star.args.values()) or (isinstance(item, exp.Column) and item.args.get("db"))
            if changed or scope.merged or not sources or any(each.columns is None for each in sources):
                return None
            return [column for each in sources for column in each.columns or ()]
        if isinstance(item, exp.Aliases) or any(
            type(node).__name__ in _UNSEEN and not isinstance(node.parent, exp.Count) for node in item.walk()
        ):
            return None
        alias = item.args.get("alias") if isinstance(item, exp.Alias) else None
        name = alias if alias is not None else item.this if isinstance(item, exp.Column) else None
        key = self.names.key(name) if isinstance(name, exp.Identifier) else ""
        return [(key, self._origins(item, scope))]

    def _clauses(self, node: exp.Expr, scope: _Scope, names: tuple[str, ...]) -> None:
        """Mix what conditions, orders and groups compare; a limit by a masked value tells it by a COUNT."""
        for name in names:
            if name not in ("with_", "from_", "joins", "laterals", "expressions", "hint", "kind"):
                origins = self._compared(node.args.get(name), scope)
                self.counted |= name in ("limit", "offset", "sample") and self._is_masked(origins)

    def _compared(self, clause: Any, scope: _Scope) -> Origins:
        """Mix what each part of a clause compares; return the origins of all parts."""
        found = NONE
        for node in clause if isinstance(clause, list) else [clause]:
            for part in _parts(node) if isinstance(node, exp.Expr) else ():
                origins = self._origins(part, scope)
                self._mix(origins)
                found |= origins
        return found

    def _joins(self, node: exp.Expr, scope: _Scope) -> None:
        for join in node.args.get("joins") or ():
            self._source(join.this, scope)
            for name in ("on", "match_condition", "using"):
                self._compared(join.args.get(name), scope)
            using = join.args.get("using") or ()
            natural = join.args.get("method") == "NATURAL"
            named = all(isinstance(each, exp.Identifier) for each in using)
            self._mix(NONE if named and not natural else scope.all)
            scope.merged |= natural or bool(using)

    def _source(self, node: exp.Expr, scope: _Scope) -> None:
        """Add a source of a FROM clause."""
        node = node.this if isinstance(node, exp.Final) else node
        alias = node.args.get("alias")
        named = alias.this if isinstance(alias, exp.TableAlias) else alias
        inner = node.this if isinstance(node, exp.Lateral) else node
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            named = named or node.this
            own = self.names.key(node.this)
            cte = None if node.args.get("db") else scope.ctes.get(own)
            rows = cte or self._table(node) or self._function(node, scope)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            inner_scope = _Scope(scope, scope.ctes)
            self._source(node.this, inner_scope)
            self._joins(node, inner_scope)
            rows = Rows(None, inner_scope.all)
        elif isinstance(inner, exp.Subquery | exp.Select | exp.SetOperation):
            rows = self._query(inner, scope, scope.ctes)
        else:
            rows = self._function(node, scope)
        if pivots := [*(node.args.get("pivots") or ()), *filter(None, [node.args.get("match")])]:
            outer = _Scope(scope, scope.ctes, [rows])
            rows = Rows(None, rows.all.union(*(self._origins(each, outer) for each in pivots)))
        key = self.names.key(named) if isinstance(named, exp.Identifier) else ""
        scope.sources.append(replace(self._renamed(rows, alias), key=key))
        self._joins(node, scope)

    def _table(self, node: exp.Table) -> Rows | None:
        found = self.tables.find(node) or ()
        if not found:
            return None
        columns: list[tuple[str, Origins]] = [
            (self.names.stored(column.name), frozenset({(table.full_name, column.name)}))
            for table in found
            for column in table.columns
        ]
        rows = Rows.of(columns)
        return replace(rows, columns=rows.columns if len(found) == 1 and columns else None, base=True)

    def _function(self, node: exp.Expr, scope: _Scope) -> Rows:
        """Return the rows of a function, of VALUES, of an unnested list, of whatever else is in FROM."""
        called = node.this if isinstance(node, exp.Table | exp.Lateral | exp.TableFromRows) else node
        parts = [each for each in called.iter_expressions() if not isinstance(each, exp.TableAlias)]
        origins = NONE.union({("rows", id(node))}, *(self._origins(each, scope) for each in parts))
        if isinstance(called, exp.Identifier):  # BigQuery's FROM t, t.items
            origins = origins.union(*(level.all for level in scope.chain()))
        plain = all(isinstance(each, exp.Column | exp.Identifier | exp.Literal) for each in parts)
        self.counted |= self._is_masked(origins) and not plain
        alias = node.args.get("alias")
        named = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        return Rows.of([(self.names.key(each), origins) for each in named] if named else None, origins)

    def _renamed(self, rows: Rows, alias: exp.Expr | None) -> Rows:
        """Return rows whose columns are called as an alias says."""
        written = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if rows.columns is None or not written:
            return rows
        names = [self.names.key(each) for each in written]
        kept = [(name, origins) for name, (_, origins) in zip(names, rows.columns, strict=False)]
        return replace(rows, columns=(*kept, *rows.columns[len(names) :]))

    def _origins(self, node: exp.Expr, scope: _Scope) -> Origins:
        if isinstance(node, exp.Column):
            return self._column(node, scope)
        if isinstance(node, exp.Identifier):
            return self._lookup(self.names.key(node), scope)
        if isinstance(node, exp.Query) and not isinstance(node, exp.Table):
            return self._query(node, scope, scope.ctes).all
        if isinstance(node, exp.Table):
            inner = _Scope(scope, scope.ctes)
            self._source(node, inner)
            return inner.all
        if type(node).__name__ in _UNSEEN:
            return NONE if isinstance(node.parent, exp.Count) else scope.all
        if isinstance(node, exp.DataType | exp.TableAlias):
            return NONE
        if isinstance(node, exp.Alias):
            return self._origins(node.this, scope)
        if isinstance(node, exp.Window | exp.Filter):
            value, *others = filter(None, node.args.values())
            for other in others:
                self._compared(other, scope)
            return self._origins(value, scope)
        parts = [self._origins(each, scope) for each in node.iter_expressions()]
        origins = NONE.union(*parts)
        tests = isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)
        if isinstance(node, (*_FREE, exp.Exists)) or tests:
            self._mix(origins if isinstance(node, _FREE) or tests else NONE)
            return NONE
        if isinstance(node, _MIXING) and not isinstance(node, _CHOOSING) and sum(map(bool, parts)) > 1:
            self._mix(origins)
        if isinstance(node, exp.Func | exp.UDTF):  # it may make up values, and rows
            origins |= {("rows", id(node))}
        if isinstance(node, exp.Func | exp.UDTF) and self._is_masked(origins):
            called = (node.name if isinstance(node, exp.Anonymous) else type(node).__name__).lower()
            plain = all(isinstance(each, exp.Column | exp.Literal) for each in node.iter_expressions())
            self.counted |= not plain and any(part in called for part in _SETS)
        return origins

    def _column(self, node: exp.Column, scope: _Scope) -> Origins:
        if isinstance(node.this, exp.Star):
            named = node.args.get("table")
            return scope.all if named is None else self._lookup(self.names.key(named), scope)
        keys = [self.names.key(part) for part in node.parts if isinstance(part, exp.Identifier)]
        if len(keys) < len(node.parts):  # Snowflake's t.$1
            return scope.all
        if len(keys) == 1:
            return self._lookup(keys[0], scope)
        found, known = NONE, False
        for place, key in enumerate(keys[:-1]):
            level = next((each for each in scope.chain() if any(s.key == key for s in each.sources)), None)
            for source in level.sources if level else ():
                if source.key == key:
                    own = source.column(keys[place + 1])
                    found, known = found | (source.all if own is None else own), True
        return found | self._lookup(keys[0], scope, rows=not known)

    def _lookup(self, key: str, scope: _Scope, *, rows: bool = True) -> Origins:
        """Return the origins of all that a bare name may mean: a column, an alias, a source's whole row."""
        found = NONE
        for level in scope.chain():
            held = False
            for source in level.sources:
                own = source.column(key)
                held |= own is not None
                hidden = source.columns is None or (source.base and key in PSEUDO)
                found |= own if own is not None else source.all if hidden else NONE
                found |= source.all if rows and source.key == key else NONE
            if expression := level.aliases.pop(key, None):
                found |= self._origins(expression, level)
                level.aliases[key] = expression
            if held:
                break
        return found


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions that must all hold, and the terms of an order or of groups, each by itself."""
    if isinstance(node, exp.Where | exp.Having | exp.Qualify | exp.Paren | exp.Limit | exp.Offset):
        node = node.this if node.this is not None else node.expression
        yield from _parts(node) if node is not None else ()
    elif isinstance(node, exp.And):
        for each in node.flatten():
            yield from _parts(each) if not isinstance(each, exp.And) else [each]
    elif isinstance(node, exp.Order | exp.Group | exp.Distinct | exp.Tuple):
        for child in node.iter_expressions():
            yield from _parts(child)
    else:
        yield node
