"""Values in a filter that no row has, or that occur in other spellings too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from rapidfuzz import fuzz, process
from sqlglot import exp

from quorum.tools.databases.introspection import is_private
from quorum.tools.silent_errors.cores import Core, Source, own_nodes
from quorum.tools.silent_errors.doubts import Kind, Look, Query, Rows, Trial, by, listed, many, number, value
from quorum.tools.sql.writing import write

MOST = 6
"""Literals of one query that are looked for."""
VALUES = 2_000
"""Distinct values among which the nearest are looked for, the most frequent first."""
NEAR = 70.0
"""Least likeness, of 100, of a value that may be meant."""
NAMED = 3
_MOMENT = re.compile(r"\d{4}-\d{2}(-\d{2})?|\d{1,2}:\d{2}")
_COMPARED = (exp.EQ, exp.In, exp.NEQ)


def trials(query: Query) -> Iterator[Look]:
    """Yield one for each text that a table's column is compared with."""
    yield from islice(_looks(query), MOST)


def _looks(query: Query) -> Iterator[Look]:
    for core in query.cores:
        for node in own_nodes(core.select):
            if not isinstance(node, _COMPARED) or node.args.get("query"):
                continue
            columns = list(core.columns(node.this))
            stored = core.stored(columns[0]) if len(columns) == 1 else None
            if stored is None or node.this.find(exp.AggFunc, exp.Query):
                continue
            source, column = stored
            texts = node.expressions if isinstance(node, exp.In) else [node.expression]
            for literal in texts:
                plain = (
                    isinstance(literal, exp.Literal) and literal.is_string and not _MOMENT.match(literal.name)
                )
                known = column.complete and {s.casefold().strip() for s in column.samples}
                sure = known and literal.name in column.samples and len(known) == len(column.samples)
                if plain and not (sure and isinstance(node.this, exp.Column)):
                    yield _look(query, core, source, node, literal)


def _bare(node: exp.Expr) -> exp.Expr:
    """Return the compared expression as a query over the table alone has it."""
    copy: exp.Expr = node.this.copy()
    for column in [copy] if isinstance(copy, exp.Column) else list(copy.find_all(exp.Column)):
        column.set("table", None)
    return copy


def _folded(node: exp.Expr) -> exp.Expr:
    return exp.Lower(this=exp.Trim(this=node.copy()))


def _look(query: Query, core: Core, source: Source, node: exp.Expr, literal: exp.Expr) -> Look:
    """Ask how often a value occurs, and how often in another case or with blanks."""
    held = _bare(node)
    table = source.node.copy()
    table.set("alias", None)
    there = exp.Sum(
        this=exp.Case().when(exp.EQ(this=held.copy(), expression=literal.copy()), number(1)).else_(number(0))
    )
    alike = exp.EQ(this=_folded(held), expression=_folded(literal))
    rows = (
        exp.select(exp.alias_(there, "same"), exp.alias_(exp.Count(this=exp.Star()), "alike"))
        .from_(table)
        .where(alike)
    )

    def follow(found: Rows) -> Look | Trial | None:
        same, alike_ = found[0]
        if same and same == alike_:
            return None
        return _values(query, core, source, node, literal, bool(same))

    return Look(rows, follow)


def _values(
    query: Query, core: Core, source: Source, node: exp.Expr, literal: exp.Expr, occurs: bool
) -> Look:
    held = _bare(node)
    table = source.node.copy()
    table.set("alias", None)
    order = by(exp.Count(this=exp.Star()), query.dialect, down=True)
    rows = (
        exp.select(exp.alias_(held, "held")).from_(table).group_by(held.copy()).order_by(order).limit(VALUES)
    )

    def follow(found: Rows) -> Trial | None:
        texts = [row[0] for row in found if isinstance(row[0], str)]
        folded = literal.name.casefold().strip()
        same = [text for text in texts if text.casefold().strip() == folded and text != literal.name]
        scored = process.extract(
            folded, {t: t.casefold() for t in texts}, scorer=fuzz.ratio, limit=NAMED, score_cutoff=NEAR
        )
        near = same or [text for _, _, text in scored]
        column = next(iter(core.columns(node.this)))
        if is_private(column.name) or (occurs and not same):
            return None
        return _trial(query, core, source, node, literal, near[:NAMED], occurs)

    return Look(rows, follow)


def _trial(
    query: Query, core: Core, source: Source, node: exp.Expr, literal: exp.Expr, near: list[str], occurs: bool
) -> Trial | None:
    held = _bare(node)
    negative = isinstance(node, exp.NEQ) or isinstance(node.parent, exp.Not)
    several = isinstance(node, exp.In) and len(node.expressions) > 1
    if not near and (negative or several or node not in core.conditions):
        return None
    table = source.node.copy()
    table.set("alias", None)
    texts = [exp.Literal.string(text) for text in near]
    among = exp.In(this=held.copy(), expressions=[literal.copy(), *texts])
    every = exp.Subquery(
        this=exp.select(exp.Count(this=exp.Distinct(expressions=[held.copy()]))).from_(table.copy())
    )
    often = exp.alias_(exp.Count(this=exp.Star()), "rows_with")
    rows = exp.select(exp.alias_(held, "held"), often, every).from_(table).where(among).group_by(held.copy())
    if not near:
        rows = exp.select(exp.alias_(every, "different"))
    what = write(held, query.dialect)

    def tell(found: Rows) -> str:
        counts = {row[0]: row[1] for row in found} if near else {}
        held_so = [f"{value(text)} ({many(counts[text], 'row', 'rows')})" for text in near if text in counts]
        if occurs and literal.name in counts:
            rows_so = many(counts[literal.name], "row", "rows")
            is_so = f"{what} is {value(literal.name)} in {rows_so} of {source.node.name}"
            return f"{is_so}, and also {listed(held_so)}."
        if literal.name in counts:
            return ""
        nearest = (
            f"nearest: {listed(held_so)}"
            if held_so
            else f"among {many(found[0][-1], 'value', 'different values')} none is like it"
        )
        return f"No row of {source.node.name} has {value(literal.name)} in {what}; {nearest}."

    def mend() -> exp.Expr:
        tree, (place, text) = query.copy(node, literal)
        if not near:
            place.replace(exp.true())
        elif occurs and not isinstance(place, exp.In):
            place.set("this", _folded(place.this))
            place.set("expression", _folded(place.expression))
        elif occurs:
            place.append("expressions", exp.Literal.string(near[0]))
        else:
            text.replace(exp.Literal.string(near[0]))
        return tree

    return Trial(Kind.ABSENT_VALUE, rows, tell, mend)
