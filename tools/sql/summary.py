"""Query summaries: what a query asks for, as texts by which two queries are compared.

All of a query counts, its common table expressions and subqueries as well. Expressions that mean the same
have the same text: names that the query itself gives are replaced by what they stand for, conditions are
simplified by sqlglot and split at their ANDs, and operands whose order does not matter are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.optimizer.simplify import simplify

from quorum.tools.sql import SyntaxProblem, dialect_name, parse_one_statement
from quorum.tools.sql.writing import write

MAX_DEPTH, MAX_STEPS = 8, 500
"""Levels of subqueries that a column is followed through, and columns that are followed in all."""


@dataclass(frozen=True)
class QuerySummary:
    """A query's parts as SQL text; names in lower case.

    Attributes:
        columns: What each column of the result shows; empty where unknown (``*`` of a table).
        order: What the result is sorted by.
        clauses: What the query does, by verb (``CLAUSES``), wherever in it that stands.
    """

    columns: tuple[str, ...]
    order: tuple[str, ...]
    clauses: dict[str, list[str]]


CLAUSES = (
    "requires",
    "reads",
    "keeps rows without a match in",
    "removes duplicates by",
    "groups by",
    "keeps",
)
"""Conditions that do not merely join; tables; tables of outer joins; DISTINCT, UNION; GROUP BY; LIMIT."""


def summarise(sql: str, dialect: str) -> QuerySummary | None:
    """Return the summary of a query; None if it cannot be read or is no SELECT.

    Columns of a set operation are those of its first SELECT.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    name = dialect_name(dialect)
    try:
        scopes = traverse_scope(parse_one_statement(sql, name))
        return _Summarizer(name).summary(scopes) if scopes else None
    except (SyntaxProblem, SqlglotError, RecursionError):
        return None


class _Summarizer:
    """Reads one query."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.steps = 0

    def summary(self, scopes: list[Scope]) -> QuerySummary:
        columns = list(self._columns(_first(scopes[-1])))
        clauses: dict[str, set[str]] = {verb: set() for verb in CLAUSES}
        for scope in scopes:
            for verb, text in self._clauses(scope):
                clauses[verb].add(text)
        return QuerySummary(
            () if None in columns else tuple(filter(None, columns)),
            tuple(self._order(scopes[-1])),
            {verb: sorted(texts) for verb, texts in clauses.items()},
        )

    def _columns(self, scope: Scope, depth: int = 0) -> Iterator[str | None]:
        """Yield each column of a SELECT, with ``*`` of a subquery spelled out; None for what is unknown."""
        for item in _selects(scope):
            if not item.is_star:
                yield self._text(item, scope)
                continue
            for name, (_, source) in scope.selected_sources.items():
                if getattr(item, "table", "") not in ("", name):
                    continue
                if isinstance(source, Scope) and depth < MAX_DEPTH:
                    yield from self._columns(_first(source), depth + 1)
                else:
                    yield None

    def _clauses(self, scope: Scope) -> Iterator[tuple[str, str]]:
        """Yield what one SELECT or set operation does, by verb."""
        args = scope.expression.args
        joins = args.get("joins") or ()
        conditions = [(join.args["on"], False) for join in joins if join.args.get("on")]
        found = [(args.get(name), name != "where") for name in ("where", "having", "qualify")]
        conditions += [(clause.this, own) for clause, own in found if clause]
        for condition, own in conditions:
            yield from (("requires", text) for text in self._required(condition, scope, own))
        for table in scope.sources.values():
            if isinstance(table, exp.Table):
                yield "reads", table.name.lower()
        for join in joins:
            if join.side and isinstance(scope.sources.get(join.alias_or_name), exp.Table):
                yield "keeps rows without a match in", join.this.name.lower()
        if args.get("distinct"):
            yield "removes duplicates by", "UNION" if scope.set_operation_scopes else "DISTINCT"
        if group := args.get("group"):
            keys = group.expressions or [item for item in _selects(scope) if not item.find(exp.AggFunc)]
            yield (
                "groups by",
                ", ".join(sorted(self._text(_by_place(k, scope), scope, own=True) for k in keys)),
            )
        if limit := args.get("limit"):
            order = ", ".join(self._order(scope))
            number = self._sql(limit.args.get("expression") or limit.args["count"])
            offset = f" {self._sql(args['offset'])}" if args.get("offset") else ""
            yield "keeps", f"{f'ORDER BY {order} ' if order else ''}LIMIT {number}{offset}"

    def _required(self, condition: exp.Expr, scope: Scope, own: bool) -> Iterator[str]:
        """Yield the parts of a condition that must all be true, except equalities that join."""
        whole = self._normal(condition, scope, own=own)
        for part in whole.flatten() if isinstance(whole, exp.And) else [whole]:
            joins = isinstance(part, exp.EQ) and {type(part.this), type(part.expression)} == {exp.Column}
            if not joins and not isinstance(part, exp.Boolean):
                yield self._sql(part)

    def _order(self, scope: Scope) -> Iterator[str]:
        order = scope.expression.args.get("order")
        for key in order.expressions if order else ():
            text = self._text(_by_place(key.this, scope), scope, own=True)
            yield f"{text} DESC" if key.args.get("desc") else text

    def _text(self, node: exp.Expr, scope: Scope, *, own: bool = False) -> str:
        return self._sql(self._normal(node, scope, own=own))

    def _sql(self, node: exp.Expr) -> str:
        return _written(node, self.dialect)

    def _normal(self, node: exp.Expr, scope: Scope, *, own: bool = False) -> exp.Expr:
        """Return a copy in the one form that all expressions of the same meaning have."""
        node = simplify(self._resolved(node, scope, own=own).transform(_same_form), dialect=self.dialect)
        for select in list(node.find_all(exp.Select)):  # its conditions are compared by themselves
            for clause in set(select.args) - {"expressions", "from_"}:
                select.set(clause, None)
        for part in node.find_all(exp.Column, exp.Table):
            for name in ("alias", "table", "db", "catalog"):
                part.set(name, None)
        for identifier in list(node.find_all(exp.Identifier)):
            identifier.replace(exp.to_identifier(identifier.name.lower()))
        for binary in reversed(list(node.find_all(exp.Add, exp.Mul))):
            one, other = binary.this, binary.expression
            if _written(one) > _written(other):
                binary.set("this", other)
                binary.set("expression", one)
        return node.this if isinstance(node, exp.Paren) else node

    def _resolved(self, node: exp.Expr, scope: Scope, *, own: bool = False, depth: int = 0) -> exp.Expr:
        """Return a copy in which names given by the query itself are replaced by what they mean.

        Args:
            own: True where the SELECT's own aliases can be meant, as in HAVING and ORDER BY.
        """

        def replaced(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column) or depth >= MAX_DEPTH or self.steps >= MAX_STEPS:
                return part
            found = _meaning(part, scope, own)
            if found is None:
                return part
            self.steps += 1
            whole = self._resolved(*found, depth=depth + 1)
            inside = isinstance(part.parent, exp.Binary | exp.Unary) and isinstance(
                whole, exp.Binary | exp.Not
            )
            return exp.Paren(this=whole) if inside else whole

        return node.unalias().copy().transform(replaced)


def _written(node: exp.Expr, dialect: str = "") -> str:
    return " ".join(write(node, dialect, upper=True).split())


def _first(scope: Scope) -> Scope:
    """Return the scope of the first SELECT of a set operation."""
    while scope.set_operation_scopes:
        scope = scope.set_operation_scopes[0]
    return scope


def _selects(scope: Scope) -> list[exp.Expr]:
    return list(scope.expression.selects) if isinstance(scope.expression, exp.Query) else []


def _meaning(column: exp.Column, scope: Scope, own: bool) -> tuple[exp.Expr, Scope] | None:
    """Return what a column's name means, and the scope in which that is written."""
    wanted = column.name.lower()
    for name, (_, source) in scope.selected_sources.items():
        if not isinstance(source, Scope) or column.table.lower() not in ("", name.lower()):
            continue
        inner = _first(source)
        for item in _selects(inner):
            if item.is_star and inner is not scope and (found := _meaning(exp.column(wanted), inner, False)):
                return found
            if not item.is_star and item.alias_or_name.lower() == wanted:
                return item, inner
    for item in _selects(scope) if own and not column.table else ():
        if item.alias.lower() == wanted:  # unless it is named after a column of its own: COUNT(x) AS x
            names = {used.name.lower() for used in item.this.find_all(exp.Column)}
            return None if wanted in names else (item, scope)
    return None


def _by_place(key: exp.Expr, scope: Scope) -> exp.Expr:
    """Return the column that ``GROUP BY 1`` or ``ORDER BY 1`` names by its place."""
    columns = _selects(scope)
    return columns[int(key.name) - 1] if key.is_int and 0 < int(key.name) <= len(columns) else key


def _same_form(node: exp.Expr) -> exp.Expr:
    """Return ``a = 1 OR a = 2`` as ``a IN (1, 2)``, values in order; ``COUNT(1)`` as ``COUNT(*)``."""
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Literal):
        return exp.Count(this=exp.Star())
    if isinstance(node, exp.Or):
        parts = [part.unnest() for part in node.flatten()]
        equal = all(isinstance(part, exp.EQ) and not part.expression.find(exp.Column) for part in parts)
        if equal and len({part.this for part in parts}) == 1:
            node = exp.In(this=parts[0].this, expressions=[part.expression for part in parts])
    if isinstance(node, exp.In) and node.expressions:
        node.set("expressions", sorted(node.expressions, key=_written))
    return node
