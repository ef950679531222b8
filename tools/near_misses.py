"""Near misses of an empty result: how many rows each part of its query lets through.

Counted are the rows of each CTE. In the first empty stage they are counted of its tables, after each join,
with each condition alone, and with all others. A stage that lists its tables (FROM a, b) is not taken apart:
without the conditions that join them every row would meet every other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from quorum.tools.execute import Database, execute
from quorum.tools.query import QueryError
from quorum.tools.silent_errors.cores import conjuncts
from quorum.tools.sql import SyntaxProblem, parse_one_statement
from quorum.tools.sql.writing import write, written

SECONDS = 10.0
"""Limit of each of the two queries."""

MAX_CONDITIONS = 8
MAX_CHARACTERS = 8_000
"""Of a query whose parts are counted: the counts repeat it up to twenty times."""

AGENT = "self_refiner"

Count = tuple[str, exp.Expr]
"""What is counted, in words, and the scalar subquery that counts it."""


async def near_misses(database: Database, sql: str, candidate: str = "") -> list[str]:
    """Return one line for each part of ``sql``, with the rows it lets through; [] if they cannot be counted.

    Raises:
        BudgetExceeded, DatabaseUnavailable: As ``quorum.tools.execute.execute``.
    """
    dialect = database.connector.dialect
    if len(sql) > MAX_CHARACTERS:
        return []
    try:
        tree = await asyncio.to_thread(parse_one_statement, sql, dialect)
        await asyncio.to_thread(written, [tree], dialect)  # so its parts can be, too
    except SyntaxProblem:
        return []
    limited = replace(database, limits=database.limits.within(SECONDS))
    with_ = tree.args.get("with_")
    ctes = list(with_.expressions) if with_ else []
    sizes = await _run(limited, tree, list(map(_size, ctes)), candidate)
    empty = next((place for place, (_, rows) in enumerate(sizes) if rows == 0), None)
    stage, where = (tree, "") if empty is None else (ctes[empty].this, f"in CTE {ctes[empty].alias}, ")
    parts = await asyncio.to_thread(
        lambda: [(f"{where}{what}", part) for what, part in _parts(stage, dialect)]
    )
    rows = await _run(limited, tree, parts, candidate)
    return [f"{what}: {found:,} {'row' if found == 1 else 'rows'}" for what, found in [*sizes, *rows]]


async def _run(
    database: Database, tree: exp.Expr, counts: list[Count], candidate: str
) -> list[tuple[str, Any]]:
    """Return the counts, all by one query over the CTEs of ``tree``; nothing if it fails."""
    if not counts:
        return []
    query = exp.select(*(exp.alias_(counter, f"part_{place}") for place, (_, counter) in enumerate(counts)))
    if with_ := tree.args.get("with_"):
        query.set("with_", with_.copy())
    sql = await asyncio.to_thread(write, query, database.connector.dialect)
    outcome = await execute(database, sql, agent=AGENT, candidate=candidate)
    if isinstance(outcome, QueryError) or outcome.row_count != 1:
        return []
    (row,) = outcome.table.to_pylist()
    return [(what, found) for (what, _), found in zip(counts, row.values(), strict=True)]


def _size(cte: exp.Expr) -> Count:
    name = cte.args["alias"].this.copy()  # quoted where it is there: cases of letters may matter
    return f"CTE {cte.alias}", _counted(exp.select("*").from_(exp.Table(this=name)))


def _parts(stage: exp.Expr, dialect: str) -> Iterator[Count]:
    """Yield what the clauses of one SELECT let through; nothing of a set operation."""
    if not isinstance(stage, exp.Select) or stage.args.get("from_") is None:
        return
    joins = list(stage.args.get("joins") or ())
    if not all(any(join.args.get(name) for name in ("on", "using", "method")) for join in joins):
        return

    def text(part: exp.Expr) -> str:
        written = write(part, dialect)
        return written if len(written) <= 120 else f"{written[:119]}…"

    yield f"FROM {text(stage.args['from_'].this)}", _counted(_rows(stage, joins=0))
    for number, join in enumerate(joins, 1):
        yield text(join), _counted(_rows(stage, joins=number))
    where, groups = (_conjuncts(stage.args.get(name)) for name in ("where", "having"))
    for condition in where[:MAX_CONDITIONS]:
        others = [other for other in where if other is not condition]
        yield f"only {text(condition)}", _counted(_rows(stage, where=[condition]))
        if len(others) > 1:
            yield f"all conditions but {text(condition)}", _counted(_rows(stage, where=others))
    if groups:
        yield "groups before HAVING", _counted(_rows(stage, where=where, having=[]))
    for condition in groups[:MAX_CONDITIONS]:
        yield f"groups with only {text(condition)}", _counted(_rows(stage, where=where, having=[condition]))


def _conjuncts(clause: exp.Expr | None) -> list[exp.Expr]:
    return conjuncts(clause.this) if clause is not None else []


def _rows(
    stage: exp.Select,
    *,
    joins: int | None = None,
    where: Sequence[exp.Expr] = (),
    having: Sequence[exp.Expr] | None = None,
) -> exp.Select:
    """Select the rows of a SELECT's tables, of its first ``joins`` only, under other conditions.

    With ``having`` these are its groups, with their columns, whose names HAVING may use.
    """
    made = exp.Select(expressions=[exp.Literal.number(1)], from_=stage.args["from_"].copy())
    if found := list(stage.args.get("joins") or ())[:joins]:
        made.set("joins", [join.copy() for join in found])
    if where:
        made.set("where", exp.Where(this=exp.and_(*(each.copy() for each in where))))
    if having is not None:
        made.set("expressions", [each.copy() for each in stage.expressions])
        if group := stage.args.get("group"):
            made.set("group", group.copy())
        if having:
            made.set("having", exp.Having(this=exp.and_(*(each.copy() for each in having))))
    return made


def _counted(rows: exp.Select) -> exp.Expr:
    return exp.Subquery(this=exp.select("COUNT(*)").from_(rows.subquery("part")))
