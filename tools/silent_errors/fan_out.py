"""Joins that repeat rows which are then added up, averaged or counted."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from quorum.tools.databases.introspection import is_private
from quorum.tools.silent_errors.cores import ROW_IDS, Core, FromItem
from quorum.tools.silent_errors.cues import asks_how_many
from quorum.tools.silent_errors.doubts import (
    Doubt,
    Query,
    Rows,
    Trial,
    by,
    many,
    number,
    present,
    value,
)
from quorum.tools.sql.writing import write

EXAMPLES = 3
_TIMES = exp.alias_(exp.Count(this=exp.Star()), "times")
SUMMED = (exp.Sum, exp.Avg, exp.Count)


def trials(query: Query) -> Iterator[Trial]:
    """Yield one for each source whose columns are aggregated while other sources are joined."""
    for core in query.cores:
        if len(core.sources) < 2:
            continue
        by_source: dict[int, list[exp.AggFunc]] = {}
        for node in core.aggregates:
            place = _aggregated(query, core, node)
            if place is not None:
                by_source.setdefault(place, []).append(node)
        for place, nodes in by_source.items():
            if core.key(core.sources[place]) and not _is_finest(core, core.sources[place]):
                yield _trial(query, core, place, nodes)


def _is_finest(core: Core, source: FromItem) -> bool:
    """True if all others have one row at most for each of its rows, for they are joined by their keys."""
    safe, left = [source], [each for each in core.sources if each is not source]
    while left:
        reached = [
            each for each in left if each.table and each.table.primary_key and _is_looked_up(core, each, safe)
        ]
        if not reached:
            return False
        safe += reached
        left = [each for each in left if each not in reached]
    return True


def _is_looked_up(core: Core, source: FromItem, by: list[FromItem]) -> bool:
    theirs = [column for pair in core.links for column in pair if core.owner(column) in by]
    return all(core.linked(column, theirs) for column in core.key(source))


def _aggregated(query: Query, core: Core, node: exp.AggFunc) -> int | None:
    """Return the place of the one source whose rows an aggregate takes in; None if that is not known."""
    if not isinstance(node, SUMMED) or isinstance(node.this, exp.Distinct) or node.expressions:
        return None
    owners = core.owners(node.this) or []
    if isinstance(node, exp.Count) and not any(_is_asked(query, each) for each in owners):
        asked = [each for each in _counted(core, node) if _is_asked(query, each)]
        owners = sorted(asked, key=lambda each: len(_table(each)))[:1] or owners  # not singer_in_concert
    return core.sources.index(owners[0]) if len(owners) == 1 else None


def _counted(core: Core, node: exp.Count) -> list[FromItem]:
    """Return the sources that COUNT(*) or COUNT(key) may count; the question says which is meant."""
    if isinstance(node.this, exp.Star):
        return list(core.sources)
    mine = core.owner(node.this) if isinstance(node.this, exp.Column) else None
    sides = {
        id(each): [c for pair in core.links for c in pair if core.owner(c) is each] for each in core.sources
    }
    return [each for each in core.sources if each is not mine and core.linked(node.this, sides[id(each)])]


def _names_it(core: Core, group: exp.Expr, source: FromItem, node: exp.AggFunc) -> bool:
    """True if a group is one row of a source, or one value of what is counted."""
    ones = [node.this, *core.key(source)]
    return any(core.same(group, each) for each in ones) or core.linked(group, ones)


def _is_asked(query: Query, source: FromItem) -> bool:
    return asks_how_many(query.question, _table(source))


def _table(source: FromItem) -> str:
    return source.table.name if source.table else ""


def _trial(query: Query, core: Core, place: int, nodes: list[exp.AggFunc]) -> Trial:
    source = core.sources[place]
    key, groups = core.key(source), core.groups or []
    counts = all(isinstance(node, exp.Count) for node in nodes)
    rows_meant = not groups or any(_names_it(core, group, source, nodes[0]) for group in groups)

    def tell(found: Rows) -> str:
        *_, together, repeated = found[0]
        if counts and rows_meant and together == 1:  # COUNT(d.id) of each d: rows are meant
            return ""
        shown = key[0].name not in ROW_IDS.values() and not is_private(key[0].name)
        which = f" ({key[0].name} {value(found[0][0])})" if shown else ""
        times, cases = many(found[0][len(key)], "time", "times"), many(repeated, "row is", "rows are")
        if groups:
            cases = f"in {many(repeated, 'case', 'cases')} a group takes a row"
        taken = "more than once" if groups else "taken more than once"
        what = f"The joins repeat rows of {source.node.name} under {write(nodes[0], query.dialect)}"
        return f"{what}: {cases} {taken}, one{which} {times}."

    def mend() -> exp.Expr:
        tree, (select, *aggregates) = query.copy(core.select, *nodes)
        assert isinstance(select, exp.Select)
        take_once(Core(select, query.catalog), place, aggregates)
        return tree

    return Trial(Doubt.FAN_OUT, _evidence(core, key, groups, nodes[0]), tell, mend)


def _evidence(core: Core, key: list[exp.Column], groups: list[exp.Expr], node: exp.AggFunc) -> exp.Query:
    """Return a query for the rows that a group takes in most often."""
    together = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[each.copy() for each in groups])
    columns = [exp.alias_(each.copy(), f"key_{place}") for place, each in enumerate(key)]
    given = [] if isinstance(node.this, exp.Star) else [present(exp.Paren(this=node.this))]
    inner = core.rows([*columns, _TIMES, exp.alias_(together, "together")], where=given)
    inner.set("group", exp.Group(expressions=[each.copy() for each in [*groups, *key]]))
    inner.set("with_", None)
    names = [exp.column(each.alias) for each in columns]
    order = [by(exp.column("times"), core.dialect, down=True), *(by(each, core.dialect) for each in names)]
    counts = ("times", "MAX(together) OVER () AS together", "COUNT(*) OVER () AS repeated")
    rows = exp.select(*names, *counts).from_(inner.subquery("taken")).where("times > 1")
    return core.within(rows.order_by(*order).limit(EXAMPLES))


def take_once(core: Core, place: int, aggregates: list[exp.Expr]) -> None:
    """Let the aggregates take each row of a source once in each group, in place.

    Rows are numbered below the groups, for SQL has no sum of one column's values per other column's.
    """
    select, source = core.select, core.sources[place]
    keys = core.key(source)
    partition = [each.copy() for each in [*(core.groups or []), *keys]]
    order = exp.Order(expressions=[by(keys[0].copy(), core.dialect)])
    nth = exp.Window(this=exp.RowNumber(), partition_by=partition, order=order)
    for node in aggregates:
        taken = number(1) if isinstance(node.this, exp.Star) else node.this.copy()
        once = exp.Case().when(exp.EQ(this=exp.column("nth"), expression=number(1)), taken)
        node.set("this", once)
        node.set("big_int", None)
    shown: dict[str, exp.Expr] = {}
    others = [select.args[name] for name in ("group", "having", "order") if select.args.get(name)]
    for clause in [*select.expressions, *others]:
        for column in list(core.columns(clause)):
            if column.name == "nth" or core.owner(column) is None:
                continue
            name = shown.setdefault(column.sql(), exp.alias_(column.copy(), f"column_{len(shown)}")).alias
            bare: exp.Expr = exp.column(name)
            if clause is column and column.arg_key == "expressions" and column.parent is select:
                bare = exp.alias_(bare, column.name, quoted=column.this.args.get("quoted"))
            column.replace(bare)
    inner = core.rows([*shown.values(), exp.alias_(nth, "nth")])
    inner.set("with_", None)
    select.set("from_", exp.From(this=inner.subquery("numbered")))
    select.set("joins", None)
    select.set("where", None)
