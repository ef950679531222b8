"""Rows that a query takes in though they say something else: sums of other rows, stand-ins for no value,
repeated rows, other units, keys that do not match as they are spelt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from sqlglot import exp

from quorum.knowledge.catalog import Column, Table
from quorum.knowledge.profile.columns import unpadded
from quorum.knowledge.profile.model import Kind as Values
from quorum.tools.silent_errors.cores import Core, Source
from quorum.tools.silent_errors.doubts import (
    Kind,
    Look,
    Query,
    Rows,
    Trial,
    listed,
    many,
    number,
    value,
)

KEYS = 20_000
"""Different keys that are compared; of more nothing is said."""
NAMED = 3
_ROWS = exp.alias_(exp.Count(this=exp.Star()), "rows_with")


def trials(query: Query) -> Iterator[Look | Trial]:
    """Yield one for each kind of odd rows that a SELECT may take in."""
    for core in query.cores:
        for source in core.sources:
            if source.table is not None:
                yield from _stand_ins(query, core, source, source.table)
                yield from _totals(query, core, source, source.table)
                yield from _repeats(query, core, source, source.table)
                yield from _units(query, core, source, source.table)
        yield from _keys(core)


def _used(core: Core, source: Source, name: str) -> list[exp.Column]:
    wanted = source.column(name, core.dialect)
    return [each for each in core.columns(core.select) if core.same(each, wanted)]


def _is_computed(column: exp.Column) -> bool:
    """True unless a column is only shown, or rows are grouped by it."""
    return not isinstance(column.parent, exp.Select | exp.Alias | exp.Group | exp.Tuple)


def _texts(column: Column, texts: Iterable[str]) -> list[exp.Expr]:
    """Return literals of a column's type."""
    numeric = any(word in column.type.lower() for word in ("int", "num", "dec", "real", "float", "double"))
    return [exp.Literal.number(each) if numeric else exp.Literal.string(each) for each in texts]


def _is_added(core: Core) -> bool:
    """True if a SELECT puts rows together, or keeps the first of them."""
    clauses = ("group", "limit", "fetch")
    return bool(core.aggregates) or any(core.select.args.get(each) for each in clauses)


def _without(query: Query, core: Core, condition: exp.Expr) -> Callable[[], exp.Expr]:
    def mend() -> exp.Expr:
        tree, (select,) = query.copy(core.select)
        assert isinstance(select, exp.Select)
        select.where(condition.copy(), copy=False)
        return tree

    return mend


def _left(column: exp.Expr, literals: Iterable[exp.Expr]) -> exp.Expr:
    """Return the condition that a column has none of the values; NULL stays."""
    other = exp.Not(this=exp.In(this=column.copy(), expressions=[each.copy() for each in literals]))
    return exp.paren(exp.or_(exp.Is(this=column.copy(), expression=exp.Null()), other, copy=False))


def _stand_ins(query: Query, core: Core, source: Source, table: Table) -> Iterator[Trial]:
    """Yield one for numbers and days such as -1 and 9999-12-31 that are averaged, added up or compared."""
    for column in table.columns:
        if column.profile is None or not column.profile.sentinels:
            continue
        texts = [text for text, _ in column.profile.sentinels]
        named = {each.name for each in query.tree.find_all(exp.Literal)} & {
            text.lstrip("-") for text in texts
        }
        if named or not any(_is_computed(each) for each in _used(core, source, column.name)):
            continue
        name, literals = source.column(column.name, core.dialect), _texts(column, texts)
        rows = core.rows(
            [exp.alias_(name, "held"), _ROWS], where=[exp.In(this=name.copy(), expressions=literals)]
        )

        def tell(found: Rows, column: Column = column) -> str:
            held = listed([value(each[0]) for each in found[:NAMED]])
            taken = many(sum(each[1] for each in found), "row has", "rows have")
            return f"{taken} {held} as {column.name}, far from all others."

        yield Trial(
            Kind.STAND_IN, rows.group_by(number(1)), tell, _without(query, core, _left(name, literals))
        )


def _totals(query: Query, core: Core, source: Source, table: Table) -> Iterator[Trial]:
    """Yield one for rows that add up the others, where rows are put together."""
    for column in table.columns if _is_added(core) else ():
        if column.profile is None or not column.profile.totals:
            continue
        name = source.column(column.name, core.dialect)
        literals = [exp.Literal.string(text) for text, _ in column.profile.totals]
        total = exp.Case().when(exp.In(this=name.copy(), expressions=literals), number(1)).else_(number(0))
        others = exp.Sub(this=exp.Count(this=exp.Star()), expression=exp.Sum(this=total.copy()))
        shown = [exp.alias_(exp.Sum(this=total), "totals"), exp.alias_(others, "others")]
        example = value(column.profile.totals[0][0])

        def tell(found: Rows, column: Column = column, example: str = example) -> str:
            totals, others = map(int, found[0]) if None not in found[0] else (0, 0)
            are = many(totals, "row adds up others", "rows add up others")
            says = f"{are} ({column.name} {example}), and the query takes them with those ({others:,})."
            return says if totals and others else ""

        yield Trial(Kind.TOTALS, core.rows(shown), tell, _without(query, core, _left(name, literals)))


def _repeats(query: Query, core: Core, source: Source, table: Table) -> Iterator[Trial]:
    """Yield one for a table with exact repeats of rows that a column would identify without them."""
    counted = [node for node in core.aggregates if not isinstance(node.this, exp.Distinct)]
    counted = [node for node in counted if isinstance(node, exp.Sum | exp.Avg | exp.Count)]
    if table.distinct_rows is None or not counted or core.select.args.get("distinct") or _seeks_repeats(core):
        return
    plain = source.node.copy()
    plain.set("alias", None)
    keys = [
        exp.Count(this=exp.Distinct(expressions=[exp.column(c.name, quoted=True)])) for c in table.columns
    ]
    rows = exp.select(exp.Count(this=exp.Star()), *keys).from_(plain)
    different = exp.select("*").distinct().from_(plain.copy())

    def tell(found: Rows) -> str:
        every, *counts = found[0]
        if table.distinct_rows not in counts or every == table.distinct_rows:
            return ""
        key = table.columns[counts.index(table.distinct_rows)].name
        return f"Rows of {table.name} repeat exactly: {every:,} rows have {table.distinct_rows:,} {key}."

    def mend() -> exp.Expr:
        tree, (node,) = query.copy(source.node)
        node.replace(exp.Subquery(this=different.copy(), alias=exp.TableAlias(this=source.name.copy())))
        return tree

    yield Trial(Kind.REPEATS, rows, tell, mend)


def _seeks_repeats(core: Core) -> bool:
    """True for ``COUNT(*)`` beside ``COUNT(DISTINCT id)``, and for ``HAVING COUNT(*) > 1``."""
    having = core.select.args.get("having")
    counts = all(isinstance(node, exp.Count) for node in core.aggregates)
    distinct = any(isinstance(node.this, exp.Distinct) for node in core.aggregates)
    return (counts and distinct) or bool(having and having.find(exp.Count))


def _units(query: Query, core: Core, source: Source, table: Table) -> Iterator[Trial]:
    """Yield one for a number that is used without the unit that stands in the column beside it."""
    mentioned = {each.name.casefold() for each in query.tree.find_all(exp.Column)}
    for one, other in pairwise(table.columns):
        for column, unit in ((one, other), (other, one)):
            if unit.profile is None or not unit.profile.units or unit.name.casefold() in mentioned:
                continue
            kind = column.profile.kind if column.profile else None
            used = _used(core, source, column.name)
            if kind is not Values.NUMBER or all(isinstance(each.parent, exp.Count) for each in used):
                continue
            name = source.column(unit.name, core.dialect)
            own = [c for c in core.conditions if any(one is node for one in used for node in c.walk())]
            rows = (
                core.rows([exp.alias_(name, "unit"), _ROWS], without=own)
                .group_by(number(1))
                .order_by(number(1))
            )

            def tell(found: Rows, column: Column = column, unit: Column = unit) -> str:
                units = [f"{value(each[0])} ({each[1]:,})" for each in found if each[0] is not None]
                if len(units) < 2:
                    return ""
                return f"{column.name} is in {listed(units)}, as {unit.name} says, and is read by one scale."

            yield Trial(Kind.UNITS, rows, tell, None)


def _keys(core: Core) -> Iterator[Look]:
    """Yield one for each join of keys of which some match only in another spelling."""
    for pair in core.links:
        for column, other in (pair, pair[::-1]):
            stored, partner = core.stored(column), core.stored(other)
            profile = stored[1].profile if stored else None
            if stored is None or partner is None or partner[0].table is None or profile is None:
                continue
            place = (partner[0].table.full_name, partner[1].name)
            if any((key.table, key.column) == place for key in profile.keys):
                yield _key_look(core, stored, partner)


def _key_look(core: Core, held: tuple[Source, Column], key: tuple[Source, Column]) -> Look:
    """Ask for both columns' values, to find those that have a partner in another spelling only."""

    def values(source: Source, column: Column, where: Iterable[exp.Expr]) -> exp.Select:
        rows = exp.select(exp.alias_(source.column(column.name, core.dialect), "held"), _ROWS)
        return rows.from_(source.node.copy()).where(*where).group_by(number(1)).limit(KEYS)

    own = [each.copy() for each in core.conditions if core.owners(each) == [held[0]]]
    rows = values(*held, [each for each in own if not each.find(exp.Query)])

    def follow(found: Rows) -> Trial | None:
        keys = {str(row[0]) for row in found if row[0] is not None}
        alike = {unpadded(text).casefold() for text in keys}

        def tell(found: Rows) -> str:
            spelt = [(str(row[0]), row[1]) for row in found if row[0] is not None]
            odd = [(t, n) for t, n in spelt if t not in keys and unpadded(t).casefold() in alike]
            lost = many(sum(n for _, n in odd), "row", "rows")
            joined = " with ".join(f"{source.node.name}.{column.name}" for source, column in (held, key))
            names = listed([value(text) for text, _ in odd[:NAMED]])
            says = f"The join of {joined} finds no partner for {lost}: the key is spelt otherwise"
            return f"{says}, as in {names}." if odd else ""

        return Trial(Kind.KEYS, rows, tell, None) if len(found) < KEYS else None

    return Look(values(*key, ()), follow)
