"""Rows that an inner join drops, for they refer to nothing, or nothing refers to them."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from quorum.tools.databases.introspection import is_private
from quorum.tools.silent_errors.cores import Core, Source
from quorum.tools.silent_errors.cues import mentions, wants_all
from quorum.tools.silent_errors.evidence import many, null, number, scalar, value
from quorum.tools.silent_errors.query import Query
from quorum.tools.silent_errors.suspicion import Kind, Rows, Trial


def trials(query: Query) -> Iterator[Trial]:
    """One for each end of each inner join that may lose rows which the answer is about.

    Rows that refer to nothing count: orders without a customer. Those that nothing refers to, customers
    without an order, are left out by the house's convention unless the question says otherwise.
    """
    for core in query.cores:
        for join in core.joins:
            pair = _pair(core, join)
            if pair is None:
                continue
            for kept, lost in (pair, pair[::-1]):
                if _may_lose(query, core, kept, lost):
                    yield _trial(query, core, join, kept, lost)


def _pair(core: Core, join: exp.Join) -> tuple[exp.Column, exp.Column] | None:
    """The columns that an inner join equates, if it joins two sources alone."""
    if join.side or join.kind not in ("", "INNER") or not (join.args.get("on") or join.args.get("using")):
        return None
    joined = next(each for each in core.sources if each.join is join)
    before = core.sources[: core.sources.index(joined)]
    for pair in core.links:
        sources = [core.owner(column) for column in pair]
        if joined not in sources or not all(source is joined or source in before for source in sources):
            continue
        owners = core.owners(join.args["on"]) if join.args.get("on") else sources
        known = owners is not None and all(owner in sources for owner in owners)
        return pair if known else None
    return None


def _may_lose(query: Query, core: Core, kept: exp.Column, lost: exp.Column) -> bool:
    """Whether rows of ``kept``'s source are missed where ``lost``'s source has no partner for them."""
    mine, theirs = core.owner(kept), core.owner(lost)
    if mine is None or theirs is None or mine.optional or theirs.optional:
        return False
    subtracted = _is_subtracted(core)
    if subtracted and any(theirs in (core.owners(item) or [theirs]) for item in core.select.expressions):
        return False
    asks = mine.table and wants_all(query.question, mine.table.name) and not subtracted
    if _wants_none(core, theirs) or asks:
        return True
    used = _is_used(core, theirs)
    by_theirs = any(
        theirs in (core.owners(group) or [theirs]) or (used and core.same(group, kept))
        for group in core.groups or ()
    )  # the house's convention: of each customer those that have orders
    return (
        not by_theirs and theirs.table is not None and [each.sql() for each in core.key(mine)] != [kept.sql()]
    )


def _is_subtracted(core: Core) -> bool:
    """Whether a SELECT says what EXCEPT or NOT IN takes away."""
    node: exp.Expr = core.select
    while node.parent is not None:
        if isinstance(node.parent, exp.Except) and node.arg_key == "expression":
            return True
        if isinstance(node.parent, exp.In | exp.Exists) and isinstance(node.parent.parent, exp.Not):
            return True
        node = node.parent
    return False


def _wants_none(core: Core, source: Source) -> bool:
    """Whether a condition asks for rows without a partner, which an inner join never has."""
    empty = (
        each.this
        for each in core.conditions
        if isinstance(each, exp.Is) and isinstance(each.expression, exp.Null)
    )
    return any(isinstance(column, exp.Column) and core.owner(column) is source for column in empty)


def _is_used(core: Core, source: Source) -> bool:
    """Whether anything but its own join uses a source."""
    used = core.columns(core.select)
    outside = (column for column in used if column.find_ancestor(exp.Join) is not source.join)
    return core.select.is_star or any(core.owner(column) is source for column in outside)


def _is_needless(query: Query, core: Core, source: Source) -> bool:
    """Whether nothing but its join uses a table that the question does not mention."""
    named = (
        source.table is not None and bool(query.question) and not mentions(query.question, source.table.name)
    )
    return named and not _is_used(core, source)


def _is_unique(column: exp.Column, source: Source) -> exp.Expr:
    """1 where no two rows of a source have one value, else 0."""
    bare = exp.column(column.this.copy())
    different = exp.Count(this=exp.Distinct(expressions=[bare]))
    same = exp.EQ(this=exp.Count(this=bare.copy()), expression=different)
    return scalar(exp.Case().when(same, number(1)).else_(number(0)), source.node)


def _declared(mine: Source, kept: exp.Column, theirs: Source) -> bool:
    keys = mine.table.foreign_keys if mine.table and theirs.table else ()
    return any(
        [name.casefold() for name in key.columns] == [kept.name.casefold()]
        and theirs.table is not None
        and key.ref_table.rpartition(".")[2] == theirs.table.name
        for key in keys
    )


def _trial(query: Query, core: Core, join: exp.Join, kept: exp.Column, lost: exp.Column) -> Trial:
    mine, theirs = core.owner(kept), core.owner(lost)
    assert mine is not None
    assert theirs is not None
    own = [each for each in core.conditions if core.owners(each) == [mine] and not each.find(exp.Query)]
    on = join.args.get("on") or exp.EQ(this=lost, expression=kept)
    partner = exp.select(number(1)).from_(theirs.node.copy()).where(on.copy())
    alone = exp.Not(this=exp.Exists(this=partner))
    blank = exp.Sum(this=exp.Case().when(null(kept), number(1)).else_(number(0)))
    counts = {"lost": exp.Count(this=exp.Star()), "blank": blank, "example": exp.Max(this=kept.copy())}
    unique = [_is_unique(lost, theirs), _is_unique(kept, mine)]
    rows = exp.select(*(exp.alias_(each, name) for name, each in counts.items()), *unique)
    rows = rows.from_(mine.node.copy()).where(*(each.copy() for each in own), alone)
    asked = _wants_none(core, theirs) or bool(mine.table and wants_all(query.question, mine.table.name))
    refers = _declared(mine, kept, theirs) or _is_needless(query, core, theirs)

    def tell(found: Rows) -> str:
        missing, blanks, example, unique, mine_unique = found[0]
        if not missing or not (asked or (unique and (refers or not mine_unique))):
            return ""
        table, other = (each.node.name or each.node.alias for each in (mine, theirs))
        without = f", {value(blanks)} of them without any {kept.name}" if blanks else ""
        shown = example is not None and not is_private(kept.name)
        given = f", such as {kept.name} {value(example)}" if shown else ""
        rows = many(missing, "wanted row" if own else "row", "wanted rows" if own else "rows")
        have = "has" if missing == 1 else "have"
        return f"{rows} of {table} {have} no partner in {other}{without}{given}: the join leaves them out."

    def mend() -> exp.Expr:
        tree, (select, found, *stars) = query.copy(core.select, join, *_stars(core))
        assert isinstance(select, exp.Select)
        for star in stars if asked else ():  # who has no partner has none to count
            star.replace(exp.Count(this=lost.copy()))
        keep(Core(select, query.catalog), found, first=mine.join is not join)
        return tree

    return Trial(Kind.LOST_ROWS, core.within(rows), tell, mend)


def _stars(core: Core) -> list[exp.AggFunc]:
    return [
        node for node in core.aggregates if isinstance(node, exp.Count) and isinstance(node.this, exp.Star)
    ]


def keep(core: Core, join: exp.Expr, *, first: bool) -> None:
    """Let an inner join keep the rows of what stands before it, or its own, in place; and those after it."""
    join.set("kind", None)
    join.set("side", "LEFT" if first else "RIGHT")
    lost: list[Source] = [each for each in core.sources if each.join is join] if first else []
    started = False
    for each in core.joins:
        if each is join:
            started = True
            continue
        if started and not each.side:
            joined = next(source for source in core.sources if source.join is each)
            on = each.args.get("on")
            owners = core.owners(on) if on is not None else None
            if not first or (owners and any(owner in lost for owner in owners)):
                each.set("kind", None)
                each.set("side", "LEFT")
                lost.append(joined)
