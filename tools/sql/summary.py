"""Query summaries: what a query asks for, as texts by which two queries are compared.

All of a query counts, its common table expressions and subqueries as well. Conditions are simplified by
sqlglot and split at their ANDs, and operands whose order does not matter are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.simplify import simplify

from quorum.tools.sql import SyntaxProblem, dialect_name, parse_one_statement
from quorum.tools.sql.writing import write


@dataclass(frozen=True)
class QuerySummary:
    """A query's parts as SQL text; names in lower case.

    Attributes:
        columns: What each column of the result shows; empty where unknown (``*``).
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
    """Return the summary of a query; None if it cannot be read or is no query.

    Columns of a set operation are those of its first SELECT.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    name = dialect_name(dialect)
    try:
        tree = parse_one_statement(sql, name)
        return _summary(tree, name) if isinstance(tree, exp.Query) else None
    except (SyntaxProblem, SqlglotError, RecursionError):
        return None


def _summary(tree: exp.Query, dialect: str) -> QuerySummary:
    clauses: dict[str, set[str]] = {verb: set() for verb in CLAUSES}
    for query in tree.find_all(exp.Select, exp.SetOperation):
        for verb, text in _clauses(query, dialect):
            clauses[verb].add(text)
    clauses["reads"] -= {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    known = not any(item.is_star for item in tree.selects)
    columns = tuple(_text(item, dialect) for item in tree.selects if known)
    in_order = {verb: sorted(texts) for verb, texts in clauses.items()}
    return QuerySummary(columns, tuple(_order(tree, dialect)), in_order)


def _clauses(query: exp.Query, dialect: str) -> Iterator[tuple[str, str]]:
    """Yield what one SELECT or set operation does, by verb."""
    args, joins = query.args, query.args.get("joins") or ()
    own = [_meant(args[name].this, query) for name in ("having", "qualify") if args.get(name)]
    where = [args["where"].this] if args.get("where") else []
    for condition in [*(join.args["on"] for join in joins if join.args.get("on")), *where, *own]:
        whole = _normal(condition, dialect)
        for part in whole.flatten() if isinstance(whole, exp.And) else [whole]:
            merely_joins = isinstance(part, exp.EQ) and {type(part.this), type(part.expression)} == {
                exp.Column
            }
            if not merely_joins and not isinstance(part, exp.Boolean):
                yield "requires", _written(part, dialect)
    sources = [each.this for each in [args.get("from_"), *joins] if each]
    yield from (("reads", source.name.lower()) for source in sources if isinstance(source, exp.Table))
    for join in joins:
        if join.side and isinstance(join.this, exp.Table):
            yield "keeps rows without a match in", join.this.name.lower()
    if args.get("distinct"):
        yield "removes duplicates by", "UNION" if isinstance(query, exp.SetOperation) else "DISTINCT"
    if group := args.get("group"):
        keys = group.expressions or [item for item in query.selects if not item.find(exp.AggFunc)]
        yield "groups by", ", ".join(sorted(_text(_meant(key, query), dialect) for key in keys))
    if limit := args.get("limit"):
        order = ", ".join(_order(query, dialect))
        number = _written(limit.args.get("expression") or limit.args["count"], dialect)
        offset = f" {_written(args['offset'], dialect)}" if args.get("offset") else ""
        yield "keeps", f"{f'ORDER BY {order} ' if order else ''}LIMIT {number}{offset}"


def _order(query: exp.Query, dialect: str) -> Iterator[str]:
    order = query.args.get("order")
    for key in order.expressions if order else ():
        text = _text(_meant(key.this, query), dialect)
        yield f"{text} DESC" if key.args.get("desc") else text


def _text(node: exp.Expr, dialect: str) -> str:
    return _written(_normal(node.unalias(), dialect), dialect)


def _meant(node: exp.Expr, query: exp.Query) -> exp.Expr:
    """Return a copy in which the SELECT's own aliases, and a column's place, are what they stand for."""
    items = query.selects
    if node.is_int and 0 < int(node.name) <= len(items):
        return items[int(node.name) - 1]
    named = {item.alias.lower(): item.unalias() for item in items if item.alias}

    def replaced(part: exp.Expr) -> exp.Expr:
        meant = named.get(part.name.lower()) if isinstance(part, exp.Column) and not part.table else None
        return part if meant is None else meant.copy()

    return node.copy().transform(replaced)


def _normal(node: exp.Expr, dialect: str) -> exp.Expr:
    """Return a copy in the one form that all expressions of the same meaning have."""
    node = simplify(node.copy().transform(_same_form), dialect=dialect)
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


def _written(node: exp.Expr, dialect: str = "") -> str:
    return " ".join(write(node, dialect, upper=True).split())
