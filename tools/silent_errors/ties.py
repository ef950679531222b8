"""Rows that share the last place, of which LIMIT keeps some."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from quorum.tools.silent_errors.cores import Core
from quorum.tools.silent_errors.cues import keeps_ties
from quorum.tools.silent_errors.doubts import Doubt, Query, Rows, Trial, by, value

EXAMPLES = 3


def trials(query: Query) -> Iterator[Trial]:
    """Yield one for each LIMIT after an ORDER BY."""
    for core in query.cores if keeps_ties(query.question) else ():
        if places := _limited(core):
            yield _trial(query, core, places)


def _limited(core: Core) -> int:
    """Return how many rows an ordered SELECT keeps; 0 if it keeps all, or their order is not known."""
    select = core.select
    limit, order = select.args.get("limit"), select.args.get("order")
    odd = any(map(select.args.get, ("distinct", "offset"))) or any(each.is_star for each in select.selects)
    if order is None or not isinstance(limit, exp.Limit) or odd:
        return 0
    return int(limit.expression.name) if limit.expression.is_int else 0


def _ranked(core: Core) -> exp.Select:
    """Return the SELECT without its LIMIT, each row with its rank."""
    select = core.select.copy()
    keys = [key.copy() for key in core.select.args["order"].expressions]
    for key in keys:
        key.set("this", core.spelled(key.this, by_place=True))
    for clause in ("order", "limit", "with_"):
        select.set(clause, None)
    place = exp.Window(this=exp.Rank(), order=exp.Order(expressions=keys))
    shown = [exp.alias_(item.unalias(), f"column_{nth}") for nth, item in enumerate(select.expressions)]
    if group := select.args.get("group"):
        group.set("expressions", [each.copy() for each in core.groups or ()])
    if having := select.args.get("having"):
        having.set("this", core.spelled(having.this))
    select.set("expressions", [*shown, exp.alias_(place, "place")])
    return select


def _trial(query: Query, core: Core, places: int) -> Trial:
    ranked = _ranked(core)
    width = len(core.select.expressions)
    names = [exp.column(f"column_{nth}") for nth in range(width)]
    first = exp.select(*names, "place", "COUNT(*) OVER () AS together", "MAX(place) OVER () AS last")
    first = first.from_(ranked.subquery("ranked")).where(f"place <= {places}")
    same = exp.select(*names, "together", "last").distinct().from_(first.subquery("first"))
    rows = exp.select("*", "COUNT(*) OVER () AS sharing").from_(same.where("place = last").subquery("same"))
    order = [by(each.copy(), query.dialect) for each in names]
    evidence = core.within(rows.order_by(*order).limit(EXAMPLES))

    def tell(found: Rows) -> str:
        *_, together, last, sharing = found[0]
        if together <= places or sharing == 1:
            return ""
        each = [" ".join(map(value, row[:width])) for row in found]
        more = ", …" if sharing > len(each) else ""
        share = f"{value(sharing)} answers share place {value(last)}"
        return f"{share}, and LIMIT {places} cuts between them: {', '.join(each)}{more}."

    def mend() -> exp.Expr:
        tree, (select,) = query.copy(core.select)
        outputs = [item.alias_or_name or f"column_{nth}" for nth, item in enumerate(core.select.expressions)]
        shown = [
            exp.alias_(each.copy(), name, quoted=True) for each, name in zip(names, outputs, strict=True)
        ]
        made = exp.select(*shown).from_(ranked.copy().subquery("ranked")).where(f"place <= {places}")
        made = made.order_by(by(exp.column("place"), query.dialect))
        if with_ := select.args.get("with_"):
            made.set("with_", with_.copy())
        if select.parent is None:
            return made
        holder = select.parent.parent if isinstance(select.parent, exp.Subquery) else None
        if isinstance(holder, exp.EQ) and holder.expression is select.parent:
            made.set("order", None)
            holder.replace(exp.In(this=holder.this.copy(), query=exp.Subquery(this=made)))
        else:
            select.replace(made)
        return tree

    return Trial(Doubt.CUT_TIES, evidence, tell, mend)
