"""Values in a filter that no row has, or that occur in other spellings too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from rapidfuzz import fuzz, process
from sqlglot import exp

from quorum.knowledge.catalog import Column
from quorum.tools.databases.introspection import is_private
from quorum.tools.silent_errors.cores import Core, own_nodes
from quorum.tools.silent_errors.doubts import Doubt, Look, Query, Rows, Trial, by, listed, many, number, value
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
            if stored is None or is_private(stored[1].name) or node.this.find(exp.AggFunc, exp.Query):
                continue
            source, column = stored
            for literal in node.expressions if isinstance(node, exp.In) else [node.expression]:
                text = isinstance(literal, exp.Literal) and literal.is_string
                known = column.complete and {s.casefold().strip() for s in column.samples}
                sure = known and literal.name in column.samples and len(known) == len(column.samples)
                bare = isinstance(node.this, exp.Column)
                if text and not _MOMENT.match(literal.name) and not (sure and bare):
                    yield _Compared(query, core, source.node, column, node, literal).look()


def _folded(node: exp.Expr) -> exp.Expr:
    return exp.Lower(this=exp.Trim(this=node.copy()))


@dataclass(frozen=True)
class _Compared:
    """A text that a column is compared with.

    Attributes:
        source, column: The table in the FROM clause, and the catalog's column.
        node: The comparison.
        literal: The text in it.
    """

    query: Query
    core: Core
    source: exp.Expr
    column: Column
    node: exp.Expr
    literal: exp.Expr

    @property
    def table(self) -> exp.Expr:
        table = self.source.copy()
        table.set("alias", None)
        return table

    @property
    def held(self) -> exp.Expr:
        """The expression that is compared, as a query over the table alone has it."""
        copy: exp.Expr = self.node.this.copy()
        for column in [copy] if isinstance(copy, exp.Column) else list(copy.find_all(exp.Column)):
            column.set("table", None)
        return copy

    def look(self) -> Look:
        """Ask how often the value occurs, and how often in another case or with blanks."""
        same = exp.EQ(this=self.held, expression=self.literal.copy())
        there = exp.Sum(this=exp.Case().when(same, number(1)).else_(number(0)))
        shown = (exp.alias_(there, "same"), exp.alias_(exp.Count(this=exp.Star()), "alike"))
        alike = exp.EQ(this=_folded(self.held), expression=_folded(self.literal))

        def follow(found: Rows) -> Look | None:
            same, alike = found[0]
            told = self.column.profile and self.column.profile.variants  # by rewrites
            return None if same and (same == alike or told) else self._values(occurs=bool(same))

        return Look(exp.select(*shown).from_(self.table).where(alike), follow)

    def _values(self, *, occurs: bool) -> Look:
        """Ask for the column's values, to find those like the text."""
        order = by(exp.Count(this=exp.Star()), self.query.dialect, down=True)
        rows = exp.select(exp.alias_(self.held, "held")).from_(self.table).group_by(self.held)

        def follow(found: Rows) -> Trial | None:
            texts = [row[0] for row in found if isinstance(row[0], str)]
            folded = self.literal.name.casefold().strip()
            same = [t for t in texts if t.casefold().strip() == folded and t != self.literal.name]
            scored = process.extract(
                folded, {t: t.casefold() for t in texts}, scorer=fuzz.ratio, limit=NAMED, score_cutoff=NEAR
            )
            near = same or [text for _, _, text in scored]
            return None if occurs and not same else self._trial(near[:NAMED], occurs)

        return Look(rows.order_by(order).limit(VALUES), follow)

    def _trial(self, near: list[str], occurs: bool) -> Trial | None:
        node, name = self.node, self.literal.name
        negative = isinstance(node, exp.NEQ) or isinstance(node.parent, exp.Not)
        several = isinstance(node, exp.In) and len(node.expressions) > 1
        if not near and (negative or several or node not in self.core.conditions):
            return None
        different = exp.select(exp.Count(this=exp.Distinct(expressions=[self.held]))).from_(self.table)
        every = exp.Subquery(this=different)
        rows = exp.select(exp.alias_(every, "different"))
        if near:
            often = exp.alias_(exp.Count(this=exp.Star()), "rows_with")
            texts = [self.literal.copy(), *map(exp.Literal.string, near)]
            rows = exp.select(exp.alias_(self.held, "held"), often, every).from_(self.table)
            rows = rows.where(exp.In(this=self.held, expressions=texts)).group_by(self.held)
        what = write(self.held, self.query.dialect)

        def tell(found: Rows) -> str:
            counts = {row[0]: row[1] for row in found} if near else {}
            spelled = listed([f"{value(t)} ({many(counts[t], 'row', 'rows')})" for t in near if t in counts])
            if occurs and name in counts:
                rows_so = many(counts[name], "row", "rows")
                return f"{what} is {value(name)} in {rows_so} of {self.source.name}, and also {spelled}."
            if name in counts:
                return ""
            among = f"among {many(found[0][-1], 'value', 'different values')} none is like it"
            nearest = f"nearest: {spelled}" if spelled else among
            return f"No row of {self.source.name} has {value(name)} in {what}; {nearest}."

        def mend() -> exp.Expr:
            tree, (place, text) = self.query.copy(node, self.literal)
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

        return Trial(Doubt.ABSENT_VALUE, rows, tell, mend)
