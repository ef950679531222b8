"""Near misses of an empty result: how many rows each part of its query lets through.

Counted are the rows of each CTE. In the first empty stage they are counted of its tables, after each join,
with each condition alone, and with all others. Where tables are listed and WHERE joins them, the joining
conditions are part of all counts: without them every row would meet every other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
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
    """Yield what the clauses of one SELECT let through, and of one that it selects from; nothing of a
    set operation."""
    if not isinstance(stage, exp.Select) or stage.args.get("from_") is None:
        return

    def text(part: exp.Expr) -> str:
        return _short(write(part, dialect))

    joins = list(stage.args.get("joins") or ())
    where, groups = (_conjuncts(stage.args.get(name)) for name in ("where", "having"))
    links = [each for each in where if _links(each)] if any(map(_is_listed, joins)) else []
    yield f"FROM {text(stage.args['from_'].this)}", _counted(_rows(stage, joins=0))
    if links:
        yield f"joined by {_short(' AND '.join(map(text, links)))}", _counted(_rows(stage, where=links))
    else:
        for number, join in enumerate(joins, 1):
            yield text(join), _counted(_rows(stage, joins=number))
    conditions = [each for each in where if each not in links]
    for condition in conditions[:MAX_CONDITIONS]:
        others = [other for other in conditions if other is not condition]
        yield f"only {text(condition)}", _counted(_rows(stage, where=[*links, condition]))
        if len(others) > 1:
            yield f"all conditions but {text(condition)}", _counted(_rows(stage, where=[*links, *others]))
    if groups:
        yield "groups before HAVING", _counted(_rows(stage, where=where, having=[]))
    for condition in groups[:MAX_CONDITIONS]:
        yield f"groups with only {text(condition)}", _counted(_rows(stage, where=where, having=[condition]))
    if later := " and ".join(name.upper() for name in ("qualify", "offset") if stage.args.get(name)):
        grouped = groups if groups or stage.args.get("group") else None
        yield f"before {later}", _counted(_rows(stage, where=where, having=grouped))
    inner = stage.args["from_"].this
    if isinstance(inner, exp.Subquery):
        for what, counter in _parts(inner.this, dialect):
            yield f"in {inner.alias or 'the subquery'}, {what}", counter


def _conjuncts(clause: exp.Expr | None) -> list[exp.Expr]:
    return conjuncts(clause.this) if clause is not None else []


def _is_listed(join: exp.Expr) -> bool:
    """True if a join has no condition of its own."""
    return not any(join.args.get(name) for name in ("on", "using", "method"))


def _links(condition: exp.Expr) -> bool:
    """True if a condition equates columns, so that it may join two tables."""
    sides = (condition.left, condition.right) if isinstance(condition, exp.EQ) else ()
    return bool(sides) and all(side.find(exp.Column) and not side.find(exp.Query) for side in sides)


def _rows(
    stage: exp.Select,
    *,
    joins: int | None = None,
    where: list[exp.Expr] | None = None,
    having: list[exp.Expr] | None = None,
) -> exp.Select:
    """Select the rows of a SELECT's tables, of its first ``joins`` only, under other conditions.

    With ``having`` these are its groups, with their columns, whose names HAVING may use.
    """
    kept = {"from_": stage.args["from_"].copy()}
    if found := list(stage.args.get("joins") or ())[:joins]:
        kept["joins"] = [join.copy() for join in found]
    shown = [each.copy() for each in stage.expressions] if having is not None else _named(stage, where or [])
    made = exp.Select(expressions=shown or [exp.Literal.number(1)], **kept)
    if where:
        made.set("where", exp.Where(this=exp.and_(*(each.copy() for each in where))))
    if having is not None:
        if group := stage.args.get("group"):
            made.set("group", group.copy())
        if having:
            made.set("having", exp.Having(this=exp.and_(*(each.copy() for each in having))))
    return made


def _named(stage: exp.Select, where: list[exp.Expr]) -> list[exp.Expr]:
    """Return the expressions of a SELECT whose names its conditions use, as some dialects allow."""
    used = {column.name for each in where for column in each.find_all(exp.Column) if not column.table}
    aliased = [each for each in stage.expressions if isinstance(each, exp.Alias) and each.alias in used]
    return [each.copy() for each in aliased if not each.find(exp.AggFunc)]


def _counted(rows: exp.Select) -> exp.Expr:
    return exp.Subquery(this=exp.select("COUNT(*)").from_(rows.subquery("part")))


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"
