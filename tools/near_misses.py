"""How far an empty result was from having rows: what each part of its query lets through.

Counted are the rows of each CTE and, in the first stage that is empty, those of its tables, after each join,
with each condition alone and with all the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from quorum.tools.execute import Database, execute
from quorum.tools.query import QueryError
from quorum.tools.sql import SyntaxProblem, parse_one_statement

if TYPE_CHECKING:
    from sqlglot import exp

SECONDS = 10.0
"""Limit of each of the two queries at most."""

MAX_CONDITIONS = 8
AGENT = "self_refiner"

Count = tuple[str, "exp.Expr"]
"""What is counted, in words, and the scalar subquery that counts it."""


async def near_misses(database: Database, sql: str, candidate: str = "") -> list[str]:
    """One line for each part of ``sql``, with the rows it lets through; empty where that cannot be told.

    Raises:
        BudgetExceeded, DatabaseUnavailable: As ``quorum.tools.execute.execute``.
    """
    dialect = database.connector.dialect
    try:
        tree = parse_one_statement(sql, dialect)
    except SyntaxProblem:
        return []
    limited = replace(database, limits=database.limits.within(SECONDS))
    with_ = tree.args.get("with_")
    ctes = list(with_.expressions) if with_ else []
    sizes = await _run(limited, tree, [_size(cte.alias) for cte in ctes], candidate)
    empty = next((place for place, (_, rows) in enumerate(sizes) if rows == 0), None)
    stage = ctes[empty].this if empty is not None else tree
    conditions = await _run(limited, tree, list(_parts(stage)), candidate)
    return [f"{what}: {rows:,} {'row' if rows == 1 else 'rows'}" for what, rows in [*sizes, *conditions]]


async def _run(
    database: Database, tree: exp.Expr, counts: list[Count], candidate: str
) -> list[tuple[str, int]]:
    """The counts, all by one query over the CTEs of ``tree``; nothing if it fails."""
    from sqlglot import exp

    if not counts:
        return []
    query = exp.select(*(exp.alias_(counter, f"part_{place}") for place, (_, counter) in enumerate(counts)))
    if with_ := tree.args.get("with_"):
        query.set("with_", with_.copy())
    outcome = await execute(database, query.sql(database.connector.dialect), agent=AGENT, candidate=candidate)
    if isinstance(outcome, QueryError) or outcome.row_count != 1:
        return []
    (row,) = outcome.table.to_pylist()
    return [(what, int(rows or 0)) for (what, _), rows in zip(counts, row.values(), strict=True)]


def _size(name: str) -> Count:
    from sqlglot import exp

    return f"CTE {name}", _counted(exp.select("*").from_(exp.to_identifier(name, quoted=True)))


def _parts(stage: exp.Expr) -> Iterator[Count]:
    """What the clauses of one SELECT let through; nothing of a set operation."""
    from sqlglot import exp

    if not isinstance(stage, exp.Select) or stage.args.get("from_") is None:
        return
    source = stage.args["from_"]
    joins = list(stage.args.get("joins") or ())
    for number in range(len(joins) + 1):
        part = joins[number - 1].sql() if number else f"FROM {source.this.sql()}"
        yield _short(part), _counted(_rows(stage, joins=number))
    conditions = _conjuncts(stage.args.get("where"))
    for condition in conditions:
        text = _short(condition.sql())
        others = [other for other in conditions if other is not condition]
        yield f"only {text}", _counted(_rows(stage, where=[condition]))
        if len(others) > 1:
            yield f"all conditions but {text}", _counted(_rows(stage, where=others))
    groups = _conjuncts(stage.args.get("having"))
    if groups:
        yield "groups before HAVING", _counted(_rows(stage, where=conditions, having=[]))
    for condition in groups:
        alone = _rows(stage, where=conditions, having=[condition])
        yield f"groups with only {_short(condition.sql())}", _counted(alone)


def _conjuncts(clause: exp.Expr | None) -> list[exp.Expr]:
    from sqlglot import exp

    if clause is None:
        return []
    whole = clause.this
    return list(whole.flatten() if isinstance(whole, exp.And) else [whole])[:MAX_CONDITIONS]


def _rows(
    stage: exp.Select,
    *,
    joins: int | None = None,
    where: list[exp.Expr] | None = None,
    having: list[exp.Expr] | None = None,
) -> exp.Select:
    """The rows of a SELECT's tables, of its first ``joins`` only, under other conditions; with ``having`` its
    groups, with their columns, whose names HAVING may use."""
    from sqlglot import exp

    kept = {"from_": stage.args["from_"].copy()}
    if found := list(stage.args.get("joins") or ())[:joins]:
        kept["joins"] = [join.copy() for join in found]
    shown = [exp.Literal.number(1)] if having is None else [each.copy() for each in stage.expressions]
    made = exp.Select(expressions=shown, **kept)
    if where:
        made.set("where", exp.Where(this=exp.and_(*(each.copy() for each in where))))
    if having is not None:
        if group := stage.args.get("group"):
            made.set("group", group.copy())
        if having:
            made.set("having", exp.Having(this=exp.and_(*(each.copy() for each in having))))
    return made


def _counted(rows: exp.Select) -> exp.Expr:
    from sqlglot import exp

    made = exp.select(exp.Count(this=exp.Star())).from_(rows.subquery("part"))
    return exp.Subquery(this=made)


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"
