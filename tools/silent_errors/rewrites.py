"""A query over values that are written alike, without stand-ins, sums of other rows or repeats.

Where a column's values are odd, the query runs once more over a table in which they are not. Whatever makes
the result another one counts: a CAST, a comparison, a group, a join, a subquery. A query that minds all forms
returns the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice, pairwise
from typing import Any, NamedTuple

from sqlglot import exp

from quorum.knowledge.catalog import Column, Table
from quorum.knowledge.profile.columns import unpadded
from quorum.knowledge.profile.model import ColumnProfile, Kind
from quorum.tools.databases.introspection import is_private
from quorum.tools.silent_errors.alike import Alike, factor, typed, written_alike
from quorum.tools.silent_errors.doubts import Doubt, Look, Query, Rows, Trial, by, listed, many, number, value

VALUES, KEYS = 2_000, 20_000
"""Different values of a column that are read, the most frequent first; of a key or what refers to it."""
WRITTEN = 500
"""Values that are written otherwise, the most frequent first."""
NAMED = 3
_TEXT, _NUMBER = re.compile("(?i)char|text|clob|string"), re.compile("(?i)int|num|dec|real|float|double")
_ROWS = exp.alias_(exp.Count(this=exp.Star()), "rows_with")
_PATTERNS = (exp.Like, exp.ILike, exp.Glob, exp.SimilarTo, exp.RegexpLike, exp.RegexpFullMatch)
_SORTED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Min, exp.Max, exp.Ordered, exp.Cast)
_COMPUTED = {
    Kind.NUMBER: (*_SORTED, exp.Sum, exp.Avg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg),
    Kind.DATE: (*_SORTED, exp.TimeToStr, exp.Date, exp.Extract, exp.Year, exp.Month),
}
"""What takes a text for the number or the date in it."""
_PASSED = (exp.Select, exp.Alias, exp.Group, exp.Count, exp.Distinct, exp.Is)
_SAYS = {
    Doubt.MISREAD: "{rows} {held} in {place}, which says that there is none: the query takes it for a value.",
    Doubt.STAND_IN: "{rows} {held} in {place}, far from all others, and the query takes it for a value.",
    Doubt.TOTALS: "{rows} {held} in {place}, which adds up others, and the query takes it with those.",
    Doubt.KEYS: "{rows} {held} in {place}: these find no partner in {key}, which spells them otherwise.",
}


class _Place(NamedTuple):
    """A table's column in a query."""

    query: Query
    table: Table
    column: Column

    @property
    def name(self) -> str:
        return f"{self.table.name}.{self.column.name}"

    @property
    def profile(self) -> ColumnProfile:
        return self.column.profile or ColumnProfile(0)

    @property
    def is_text(self) -> bool:
        return _TEXT.search(self.column.type) is not None

    def values(self, texts: Iterable[str] = (), limit: int = VALUES) -> exp.Select:
        """Return a query for the column's values, or for some, and how many rows have each."""
        held, dialect = _held(self.column), self.query.dialect
        rows = exp.select(exp.alias_(held, "held"), _ROWS).from_(_table(self.table)).group_by(number(1))
        rows = rows.where(_among(self.column, texts)) if texts else rows
        return rows.order_by(by(number(2), dialect, down=True), by(number(1), dialect)).limit(limit)


def trials(query: Query) -> Iterator[Look | Trial]:
    """Yield one for each odd column that the query mentions, and for each table with odd rows."""
    for table in query.catalog.tables:
        if table.name.casefold() not in query.words:
            continue
        places = [_Place(query, table, each) for each in table.columns if each.profile]
        used = [each for each in places if each.column.name.casefold() in query.words]
        for place in places:
            if place.profile.totals and _is_added(query):
                yield from _odd(place, Doubt.TOTALS, place.profile.totals)
        for place in used:
            if not is_private(place.column.name):
                yield from _of_column(place)
        for one, unit in [*pairwise(places), *pairwise(places[::-1])]:
            if unit.profile.units and unit not in used and one in used and one.profile.kind is Kind.NUMBER:
                yield _units(one, unit)
        yield from _repeats(query, table)


def _of_column(place: _Place) -> Iterator[Look | Trial]:
    profile, query, name = place.profile, place.query, place.column.name.casefold()
    uses = [each for each in query.tree.find_all(exp.Column) if each.name.casefold() == name]
    computed = place.is_text and _is_computed(profile.kind, uses)
    yield from _odd(place, Doubt.STAND_IN, profile.sentinels)
    if not (computed and profile.kind is Kind.NUMBER):
        yield from _odd(place, Doubt.MISREAD, profile.no_value)
    joined = False
    for key in profile.keys:
        table = query.catalog.table(key.table)
        column = table.column(key.column) if table and table.name.casefold() in query.words else None
        if table and column:
            joined = True
            yield _keys(place, _Place(query, table, column))
    unsure = any(map(_seeks_form, uses)) or (not computed and _is_told(uses))
    several = not joined and (profile.forms or profile.variants or profile.keys)
    unsure = (
        unsure if profile.kind in _COMPUTED else bool(uses) and all(_is_shown(query, each) for each in uses)
    )
    if (computed or several) and not unsure:
        yield _forms(place, computed)


def _odd(place: _Place, kind: Doubt, counts: Iterable[tuple[str, int]]) -> Iterator[Trial]:
    """Yield one for values that stand for none, or for sums: as NULL, or without their rows."""
    folded = {each.casefold().strip() for each in place.query.named}
    every = [text for text, _ in counts]
    texts = [text for text in every if text.casefold().strip() not in folded]
    if not texts:
        return
    evidence, tell = place.values(texts), partial(_tell, kind, place)
    if kind is Doubt.TOTALS:
        other = exp.not_(_among(place.column, texts))
        left = exp.or_(exp.Is(this=_held(place.column), expression=exp.Null()), other)
        yield Trial(kind, evidence, tell, partial(_over, place, where=left))
    else:  # a query that names one of several is to take the others alike
        new = next((text for text in every if text in place.query.named), None)
        yield _written(place, kind, evidence, tell, dict.fromkeys(texts, new))


def _tell(kind: Doubt, place: _Place, found: Rows, key: str = "") -> str:
    rows = many(sum(row[1] for row in found), "row has", "rows have")
    return _SAYS[kind].format(rows=rows, held=_listed(found), place=place.name, key=key)


def _written(
    place: _Place, kind: Doubt, evidence: exp.Select, tell: Callable[[Rows], str], alike: Alike, to: str = ""
) -> Trial:
    """Return a trial of the query over a column in which some values are written otherwise."""
    kept: Alike = dict(islice(alike.items(), WRITTEN))
    to = to or "text" * (place.query.dialect == "sqlite" and place.is_text)
    same: Alike = {text: text for text in kept}
    mend = partial(_over, place, partial(_spelt, place.column, kept, to))
    own = partial(_over, place, partial(_spelt, place.column, same, to))
    as_it_is = None if to == "double" else own
    return Trial(kind, evidence, tell, mend, as_it_is, partial(_cell, kept), len(kept) < len(alike))


def _forms(place: _Place, computed: bool) -> Look:
    """Ask for the values, to write them as most are; the numbers and ISO dates in them, if ``computed``."""
    to = "double" * (computed and place.profile.kind is Kind.NUMBER)

    def follow(found: Rows) -> Trial | None:
        counted = {row[0]: row[1] for row in found if isinstance(row[0], str)}
        made = (
            typed(counted, place.profile)
            if computed
            else written_alike(counted, place.profile, place.query.named)
        )
        alike = {text: made[text] for text in counted if text in made}  # the most frequent first
        if to:  # of numbers the largest and the smallest in turn with these
            sizes = sorted(alike, key=lambda text: float(alike[text] or 0))
            alike = {
                text: alike[text] for turn in zip(alike, reversed(sizes), sizes, strict=True) for text in turn
            }

        def tell(found: Rows) -> str:
            texts = [row for row in found if isinstance(row[0], str)]
            odd = [row for row in texts if row[0] in alike]
            if computed:
                held = dict.fromkeys(value(row[0]) for row in [*texts[:1], *odd[:1]])
                what = f"{place.name} is text, such as {listed([*held])}"
                return f"{what}, and the query takes it for a {place.profile.kind}."
            usual = [row for row in texts if row[0] not in alike]
            like = next((row for row in usual if row[0] == alike[odd[0][0]]), usual[0])[0]
            rows = many(sum(row[1] for row in odd), "row", "rows")
            ways = f"{value(like)} and, in {rows}, {_listed(odd)}"
            return f"{place.name} is written in several ways, {ways}, and the query tells them apart."

        return _written(place, Doubt.MISREAD, place.values(), tell, alike, to) if alike or to else None

    return Look(place.values(), follow)


def _is_computed(kind: Kind, uses: Sequence[exp.Column]) -> bool:
    """True if a query takes a text for the number or the date in it, and does nothing else with it."""
    own = [each.parent for each in uses if not isinstance(each.parent, _PASSED)]
    names = {each.name.casefold() for each in uses}
    compared = [c for each in own if isinstance(each, exp.Predicate) for c in each.find_all(exp.Column)]
    text = any(isinstance(each, exp.Cast) and each.is_type(*exp.DataType.TEXT_TYPES) for each in own)
    as_texts = text or any(each.name.casefold() not in names for each in compared)
    return bool(own) and not as_texts and all(isinstance(each, _COMPUTED.get(kind, ())) for each in own)


def _is_shown(query: Query, use: exp.Column) -> bool:
    """True if a value of each row is shown, as it is or in other words."""
    node: exp.Expr = use
    while node.parent is not None and not isinstance(node, exp.AggFunc | exp.Window | exp.Query):
        node, below = node.parent, node
    every = not any(map(query.tree.args.get, ("group", "distinct")))
    return node is query.tree and every and below.arg_key == "expressions"


def _is_told(uses: Sequence[exp.Column]) -> bool:
    """True if other columns may tell how a value is read: ``CASE country WHEN … THEN … ELSE … END``."""
    for case in filter(None, (use.find_ancestor(exp.Case) or use.find_ancestor(exp.If) for use in uses)):
        asked = [each for each in (case.this, *(part.this for part in case.find_all(exp.If))) if each]
        others = {c.name for each in asked for c in each.find_all(exp.Column)} - {each.name for each in uses}
        if others and sum(each.find_ancestor(type(case)) is case for each in uses) > 1:
            return True
    return False


def _seeks_form(use: exp.Column) -> bool:
    """True where a form is looked for: ``LIKE 'USD%'``, ``TRY_CAST(x AS DOUBLE) IS NULL``, LENGTH."""
    node: exp.Expr = use
    if isinstance(use.find_ancestor(exp.If, exp.Query), exp.If):  # CASE reads each form by itself
        return False
    while (parent := node.parent) is not None and not isinstance(parent, exp.Query | exp.AggFunc):
        pattern = isinstance(parent, _PATTERNS) and not re.search(r"\d\d", parent.expression.name)
        null = isinstance(parent, exp.Is) and not isinstance(parent.parent, exp.Not) and node is not use
        if pattern or null or isinstance(parent, exp.Length):
            return True
        node = parent
    return False


def _keys(place: _Place, key: _Place) -> Look:
    """Ask for the keys and for what refers to them, to write these as the keys are."""
    values = place.values(limit=KEYS)

    def follow(found: Rows) -> Look | None:
        held = {str(row[0]) for row in found if row[0] is not None}
        partners = {unpadded(text).casefold(): text for text in held}

        def odd(rows: Rows) -> Rows:
            texts = ([str(row[0]), row[1]] for row in rows if row[0] is not None)
            return [row for row in texts if row[0] not in held and unpadded(row[0]).casefold() in partners]

        def trial(rows: Rows) -> Trial | None:
            alike: Alike = {text: partners[unpadded(text).casefold()] for text, _ in odd(rows)}
            whole = alike and len(rows) < KEYS > len(found)
            tell = lambda rows: _tell(Doubt.KEYS, place, odd(rows), key.name)  # noqa: E731
            return _written(place, Doubt.KEYS, values, tell, alike) if whole else None

        return Look(values, trial)

    return Look(key.values(limit=KEYS), follow)


def _units(place: _Place, unit: _Place) -> Look:
    """Ask for the units of a number that is used without them, to turn all into the usual one."""

    def follow(found: Rows) -> Trial | None:
        names = [str(row[0]) for row in found if row[0] is not None]
        scales = [(name, scale) for name in names if (scale := factor(name, names[0])) not in (None, 1.0)]

        def tell(found: Rows) -> str:
            each = listed([f"{value(row[0])} ({row[1]:,})" for row in found if row[0] is not None])
            return f"{place.name} is in {each}, as {unit.column.name} says, and is read by one scale."

        def scaled() -> exp.Expr:
            held, case = exp.cast(_held(place.column), "double"), exp.Case()
            for name, scale in scales:
                one = exp.EQ(this=_held(unit.column), expression=exp.Literal.string(name))
                case = case.when(one, exp.Mul(this=held.copy(), expression=exp.Literal.number(repr(scale))))
            return case.else_(held)

        return Trial(Doubt.UNITS, unit.values(), tell, partial(_over, place, scaled)) if scales else None

    return Look(unit.values(), follow)


def _is_added(query: Query) -> bool:
    """True if rows are put together, or the first are kept; not where a sum is taken off another."""
    added = query.tree.find(exp.AggFunc, exp.Limit, exp.Fetch, exp.Group)
    return bool(added) and not any(each.find(exp.AggFunc) for each in query.tree.find_all(exp.Sub))


def _repeats(query: Query, table: Table) -> Iterator[Trial]:
    """Yield one for a table with exact repeats of rows that a column would identify without them."""
    if table.distinct_rows is None or not _counts(query):
        return
    keys = [exp.Count(this=exp.Distinct(expressions=[_held(each)])) for each in table.columns]
    rows = exp.select(exp.Count(this=exp.Star()), *keys).from_(_table(table))

    def tell(found: Rows) -> str:
        every, *counts = found[0]
        if table.distinct_rows not in counts or every == table.distinct_rows:
            return ""
        key = table.columns[counts.index(table.distinct_rows)].name
        return f"Rows of {table.name} repeat exactly: {every:,} rows have {table.distinct_rows:,} {key}."

    place = _Place(query, table, table.columns[0])
    yield Trial(Doubt.REPEATS, rows, tell, partial(_over, place, distinct=True))


def _counts(query: Query) -> bool:
    """True if rows are added up or counted, and repeats are not what is sought.

    These are by ``COUNT(*)`` beside ``COUNT(DISTINCT id)``, and by ``HAVING COUNT(*) > 1``.
    """
    counted: list[exp.Expr] = list(query.tree.find_all(exp.Sum, exp.Avg, exp.Count))
    distinct = any(isinstance(each.this, exp.Distinct) for each in counted)
    sought = distinct and all(isinstance(each, exp.Count) for each in counted)
    sought = sought or any(each.find(exp.Count) for each in query.tree.find_all(exp.Having))
    return bool(counted) and not sought


def _listed(found: Rows) -> str:
    return listed([value(row[0]) for row in found[:NAMED]] + ["…"] * (len(found) > NAMED))


def _held(column: Column) -> exp.Column:
    return exp.column(column.name, quoted=True)


def _table(table: Table) -> exp.Table:
    parts = zip(("this", "db", "catalog"), (table.name, table.schema, table.database), strict=True)
    return exp.Table(**{name: exp.to_identifier(part, quoted=True) for name, part in parts if part})


def _literal(column: Column, text: str) -> exp.Expr:
    numeric = _NUMBER.search(column.type) and re.fullmatch(r"-?[\d.]+", text)
    return exp.Literal.number(text) if numeric else exp.Literal.string(text)


def _among(column: Column, texts: Iterable[str]) -> exp.Expr:
    return exp.In(this=_held(column), expressions=[_literal(column, text) for text in texts])


def _spelt(column: Column, alike: Alike, to: str) -> exp.Expr:
    """Return a column with some values written otherwise; ``to`` is the type of all."""
    literal = exp.Literal.number if to == "double" else partial(_literal, column)
    other = exp.cast(_held(column), to) if to == "double" else _held(column)
    case = exp.Case().when(exp.not_(_among(column, alike)), other)  # most rows are asked once
    for new, texts in groupby(sorted(alike, key=lambda text: alike[text] or ""), key=alike.__getitem__):
        made = exp.Null() if new is None else literal(new)
        case.when(_among(column, texts), made, copy=False)  # a copy each would be quadratic
    whole = case.else_(other.copy(), copy=False) if alike else other
    return exp.cast(whole, to) if to else whole


def _cell(alike: Mapping[str, str | None], cell: Any) -> str | None:
    """Return a cell of a result as the values behind it would be written."""
    found = alike.get(f"{cell:g}" if isinstance(cell, float) else str(cell), cell)
    try:
        return None if found is None else f"{float(found):.9g}"
    except (TypeError, ValueError):
        return str(found)


def _over(
    place: _Place,
    written: Callable[[], exp.Expr] | None = None,
    *,
    where: exp.Expr | None = None,
    distinct: bool = False,
) -> exp.Expr:
    """Return a copy of the query in which a table's column is written otherwise, wherever it is read.

    Args:
        where: Which rows of the table stay.
        distinct: Whether repeated rows are taken once.
    """
    tree, table, (query, _, column) = place.query.tree.copy(), place.table, place
    shown = [
        exp.alias_(written(), each.name, quoted=True) if written and each is column else _held(each)
        for each in table.columns
    ]
    rows = exp.select(*shown).from_(_table(table))
    rows = rows.where(where) if where else rows
    rows = rows.distinct() if distinct else rows
    ctes = {each.alias.casefold() for each in tree.find_all(exp.CTE)}
    for node in list(tree.find_all(exp.Table)):
        named = query.catalog.table(".".join(part.name for part in node.parts)) is table
        if named and (node.args.get("db") or node.name.casefold() not in ctes):
            alias = node.args["alias"].this if node.args.get("alias") else node.this
            made = exp.Subquery(this=rows.copy(), alias=exp.TableAlias(this=alias.copy()))
            made.set("joins", node.args.get("joins"))
            node.replace(made)
    return tree
