"""NULLs that take rows out of a result without a word."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from quorum.tools.silent_errors.cores import Core, own_nodes
from quorum.tools.silent_errors.evidence import many, null, number, present, value
from quorum.tools.silent_errors.query import Query
from quorum.tools.silent_errors.suspicion import Kind, Rows, Trial
from quorum.tools.writing import write


def trials(query: Query) -> Iterator[Trial]:
    """One for each place where NULLs may count otherwise than the question means."""
    for core in query.cores:
        for node in own_nodes(core.select):
            if isinstance(node, exp.Not) and isinstance(node.this, exp.In) and node.this.args.get("query"):
                yield from _not_in(query, node.this)
        for condition in core.conditions:
            column = _excludes(condition)
            if column is not None and _may_be_null(core, column):
                yield _comparison(query, core, condition, column)
        for node in core.aggregates:
            if isinstance(node, exp.Avg | exp.Count) and isinstance(node.this, exp.Column):
                if _may_be_null(core, node.this):
                    yield _aggregate(query, core, node)
            elif isinstance(node, exp.Sum) and isinstance(node.this, exp.Add | exp.Sub | exp.Mul):
                yield from _sum(query, core, node)
        yield from _least(query, core)


def _may_be_null(core: Core, column: exp.Column) -> bool:
    """Whether a table's column may hold NULLs of its own, not those of an outer join."""
    stored = core.stored(column)
    if stored is None or stored[0].optional:
        return False
    source, found = stored
    key = source.table is not None and found.name in source.table.primary_key
    full = found.complete and found.samples and not found.nulls
    return found.nullable and not key and not full


def _how_many(core: Core, column: exp.Column, instead: exp.Expr | None = None) -> exp.Select:
    """How many rows have no value, and of how many; with ``instead``, those that it leaves out."""
    total = exp.Count(this=exp.Star())
    missing = exp.Sum(this=exp.Case().when(null(column), number(1)).else_(number(0)))
    changed = {id(instead): None} if instead is not None else {}
    return core.rows([exp.alias_(missing, "missing"), exp.alias_(total, "total")], instead=changed)


def _trial(
    query: Query,
    evidence: exp.Query,
    say: Callable[[str, str], str],
    node: exp.Expr,
    edit: Callable[[exp.Expr], object],
) -> Trial:
    """``say`` makes a sentence of how many rows have no value and of how many there are."""

    def tell(found: Rows) -> str:
        missing, total = found[0]
        return say(value(missing), many(total, "row", "rows")) if missing else ""

    def mend() -> exp.Expr:
        tree, (place,) = query.copy(node)
        edit(place)
        return tree

    return Trial(Kind.NULLS, evidence, tell, mend)


def _not_in(query: Query, node: exp.In) -> Iterator[Trial]:
    inner = node.args["query"]
    inner = inner.this if isinstance(inner, exp.Subquery) else inner
    core = next((each for each in query.cores if each.select is inner), None)
    if core is None or len(inner.selects) != 1 or core.groups or core.aggregates or inner.args.get("limit"):
        return
    shown = inner.selects[0].unalias()

    def say(missing: str, total: str) -> str:
        without = f"have no {shown.name or 'value'} (NULL)"
        return f"{missing} of the {total} that NOT IN looks through {without}, so it lets nothing pass."

    def edit(place: exp.Expr) -> None:
        select = place.args["query"]
        select = select.this if isinstance(select, exp.Subquery) else select
        select.where(present(shown), copy=False)

    yield _trial(query, _how_many(core, shown), say, node, edit)


def _excludes(condition: exp.Expr) -> exp.Column | None:
    """The column of a condition that says what a value is not; None for another condition."""
    if isinstance(condition, exp.NEQ):
        column, other = condition.this, condition.expression
    elif isinstance(condition, exp.Not) and isinstance(
        condition.this.unnest(), exp.EQ | exp.Like | exp.ILike | exp.In
    ):
        inner = condition.this.unnest()
        column, other = inner.this, None if inner.args.get("query") else inner.args.get("expression")
    else:
        return None
    while isinstance(column, exp.Func) and isinstance(column.this, exp.Column):  # LOWER(x) <> 'a'
        column = column.this
    fixed = other is None or not list(other.find_all(exp.Column))
    return column if isinstance(column, exp.Column) and fixed else None


def _comparison(query: Query, core: Core, condition: exp.Expr, column: exp.Column) -> Trial:
    text = write(condition, query.dialect)

    def say(missing: str, total: str) -> str:
        return f"{missing} of {total} have no {column.name} (NULL), and `{text}` leaves them out too."

    def edit(place: exp.Expr) -> None:
        place.replace(exp.Paren(this=exp.Or(this=place.copy(), expression=null(column))))

    return _trial(query, _how_many(core, column, condition), say, condition, edit)


def _aggregate(query: Query, core: Core, node: exp.AggFunc) -> Trial:
    text, column = write(node, query.dialect), node.this
    counts = isinstance(node, exp.Count)

    def say(missing: str, total: str) -> str:
        apart = "" if counts else "; counted as zero they change it"
        return f"{text} leaves out {missing} of {total}, which have no {column.name} (NULL){apart}."

    def edit(place: exp.Expr) -> None:
        if counts:
            place.set("this", exp.Star())
        else:
            place.set("this", exp.func("COALESCE", column.copy(), number(0)))

    return _trial(query, _how_many(core, column), say, node, edit)


def _sum(query: Query, core: Core, node: exp.Sum) -> Iterator[Trial]:
    columns = list(core.columns(node.this))
    for column in columns if len(columns) > 1 else ():
        if _may_be_null(core, column):
            name, text = column.name, write(node, query.dialect)

            def say(missing: str, total: str, name: str = name, text: str = text) -> str:
                return f"{text} leaves out {missing} of {total} whole, which have no {name} (NULL)."

            def edit(place: exp.Expr) -> None:
                place.replace(exp.func("COALESCE", place.copy(), number(0)))

            yield _trial(query, _how_many(core, column), say, column, edit)


def _least(query: Query, core: Core) -> Iterator[Trial]:
    """NULLs that come first under a LIMIT."""
    select = core.select
    order, limit = select.args.get("order"), select.args.get("limit")
    key = order.expressions[0] if order is not None and limit is not None else None
    if key is None or not isinstance(key.this, exp.Column) or not key.args.get("nulls_first") or core.groups:
        return
    column = core.spelled(key.this)
    if isinstance(column, exp.Column) and _may_be_null(core, column):

        def say(missing: str, total: str) -> str:
            first = write(key, query.dialect)
            return f"{missing} of {total} have no {column.name} (NULL), and come first in ORDER BY {first}."

        def edit(place: exp.Expr) -> None:
            assert isinstance(place, exp.Select)
            place.where(present(column), copy=False)

        yield _trial(query, _how_many(core, column), say, select, edit)
