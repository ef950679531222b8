"""Numbers and days that are stored as text, and compared or sorted as such."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sqlglot import exp

from quorum.knowledge.catalog import Column
from quorum.tools.databases.introspection import is_private
from quorum.tools.silent_errors.cores import Core, own_nodes
from quorum.tools.silent_errors.evidence import by, many, number, present, value
from quorum.tools.silent_errors.query import Query
from quorum.tools.silent_errors.suspicion import Kind, Look, Rows, Trial
from quorum.tools.writing import write

VALUES = 200
"""Distinct values that are looked at."""
LEAST_SHARE = 0.8
"""Share of them that must be numbers, where the others may be ``n/a`` and the like."""
_NUMERIC = re.compile(r"(?i)int|real|float|double|dec|num|bool")
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_DAYS = {
    "%m/%d/%Y": re.compile(r"(0\d|1[0-2])([/-])([0-2]\d|3[01])\2\d{4}"),
    "%d/%m/%Y": re.compile(r"([0-2]\d|3[01])([/.-])(0\d|1[0-2])\2\d{4}"),
}
"""Days that do not sort as text; the first form is taken where both fit."""
_SIDES = ("this", "expression", "low", "high")
_COMPARED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)


def trials(query: Query) -> Iterator[Look]:
    """One for each column that is sorted, or asked for its greatest value, and for each comparison."""
    for core in query.cores:
        sites: dict[str, list[exp.Column]] = {}
        for node in own_nodes(core.select):
            for column in _ordered(core, node):
                stored = core.stored(column)
                if stored and _may_be_text(stored[1], query.dialect):
                    compares = f" {id(node)}" if isinstance(node, _COMPARED) else ""
                    sites.setdefault(f"{id(stored[0])} {stored[1].name}{compares}", []).append(column)
        for columns in sites.values():
            yield _look(query, core, columns)


def _ordered(core: Core, node: exp.Expr) -> Iterable[exp.Column]:
    """The columns by whose order a node of the tree goes."""
    if isinstance(node, exp.Max | exp.Min | exp.Ordered) and isinstance(node.this, exp.Column):
        spelled = core.spelled(node.this)
        return [node.this] if isinstance(spelled, exp.Column) and spelled.name == node.this.name else []
    if isinstance(node, _COMPARED):
        sides = [side for name in _SIDES if (side := node.args.get(name)) is not None]
        columns = [side for side in sides if isinstance(side, exp.Column)]
        fixed = all(side in columns or not side.find(exp.Column) or _is_figure(side) for side in sides)
        return columns if len(columns) == 1 and fixed else []
    return []


def _is_figure(side: exp.Expr) -> bool:
    """Whether a side is one number that a subquery works out."""
    select = side.this if isinstance(side, exp.Subquery) else None
    if not isinstance(select, exp.Select) or len(select.selects) != 1 or select.args.get("group"):
        return False
    return isinstance(select.selects[0].unalias(), exp.Avg | exp.Sum | exp.Count)


def _may_be_text(column: Column, dialect: str) -> bool:
    """Whether a column may hold numbers or days as text, as far as its type and samples tell."""
    if _NUMERIC.search(column.type) or (dialect != "sqlite" and re.search(r"(?i)date|time", column.type)):
        return False
    if is_private(column.name):
        return False
    like = [text for text in column.samples if text.strip()]
    return not like or any(_NUMBER.fullmatch(text) or _day_form([text]) for text in like)


def _day_form(texts: list[str]) -> str:
    return next((form for form, pattern in _DAYS.items() if all(map(pattern.fullmatch, texts))), "")


def _look(query: Query, core: Core, columns: list[exp.Column]) -> Look:
    stored = core.stored(columns[0])
    assert stored is not None
    source, column = stored
    name = source.column(column.name, query.dialect)
    rows = exp.select(name).distinct().from_(source.node.copy()).where(present(name)).limit(VALUES)

    node = columns[0].parent
    make = _comparison if isinstance(node, _COMPARED) else _order

    def follow(found: Rows) -> Trial | None:
        texts = [row[0].strip() for row in found if isinstance(row[0], str) and row[0].strip()]
        numbers = sum(_NUMBER.fullmatch(text) is not None for text in texts)
        if not texts:
            return None
        if numbers >= LEAST_SHARE * len(texts):
            return make(query, core, columns, "")
        form = _day_form(texts)
        return make(query, core, columns, form) if form else None

    return Look(rows, follow)


def meaning(column: exp.Expr, form: str, dialect: str) -> exp.Expr:
    """What a text means: a number, or with ``form`` a day as ``YYYY-MM-DD``."""
    if form:
        places = (7, 1, 4) if form.startswith("%m") else (7, 4, 1)
        parts = [
            exp.func("SUBSTR", column.copy(), number(at), number(4 if at == 7 else 2), dialect=dialect)
            for at in places
        ]
        dash = exp.Literal.string("-")
        joined = [parts[0], dash, parts[1], dash.copy(), parts[2]]
        return exp.Paren(this=exp.Concat(expressions=joined, safe=False, coalesce=False))
    real = exp.DataType.build("double")
    if dialect == "sqlite":
        plain = exp.Not(
            this=exp.Glob(this=exp.Trim(this=column.copy()), expression=exp.Literal.string("*[^0-9.eE+-]*"))
        )
        return exp.Case().when(plain, exp.Cast(this=column.copy(), to=real))
    if dialect in ("duckdb", "snowflake", "bigquery"):
        return exp.TryCast(this=column.copy(), to=real, safe=True, requires_string=True)
    if dialect == "mysql":  # MariaDB has no REGEXP_LIKE; a text that is no number counts as 0
        figure = exp.Add(this=column.copy(), expression=exp.Literal.number("0.0"))
        zero = exp.Like(this=exp.Trim(this=column.copy()), expression=exp.Literal.string("0%"))
        some = exp.NEQ(this=exp.Paren(this=figure), expression=number(0))
        return exp.Case().when(exp.or_(some, zero, copy=False), figure.copy())
    pattern = exp.RegexpLike(
        this=column.copy(),
        expression=exp.Literal.string("^ *[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)? *$"),
    )
    return exp.Case().when(pattern, exp.Cast(this=column.copy(), to=real))


def _order(query: Query, core: Core, columns: list[exp.Column], form: str) -> Trial:
    """The evidence is a pair of neighbours in the order of texts that stand the other way round."""
    column, name = columns[0], columns[0].name
    texts = core.rows([exp.alias_(column, "held")], where=[present(column)])
    texts.set("with_", None)
    texts = texts.distinct()
    order = exp.Order(expressions=[by(exp.column("held"), query.dialect)])
    after = exp.Window(this=exp.Lead(this=exp.column("held")), order=order)
    pairs = exp.select("held", exp.alias_(after, "later")).from_(texts.subquery("texts"))
    ours, theirs = (meaning(exp.column(each), form, query.dialect) for each in ("held", "later"))
    rows = exp.select("held", "later").from_(pairs.subquery("pairs"))
    rows = rows.where(exp.GT(this=ours, expression=theirs), copy=False)
    evidence = core.within(rows.order_by(by(exp.column("held"), query.dialect)).limit(1))
    what = "days" if form else "numbers"

    def tell(found: Rows) -> str:
        held, after = found[0]
        pair = f"{value(held)} comes before {value(after)}"
        return f"The {what} in {name} are text, and go by their letters: {pair}."

    def mend() -> exp.Expr:
        tree, places = query.copy(*columns)
        for place in places:
            place.replace(meaning(place, form, query.dialect))
        return tree

    return Trial(Kind.TEXT_VALUES, evidence, tell, mend, ordered=core.select.args.get("order") is not None)


def _comparison(query: Query, core: Core, columns: list[exp.Column], form: str) -> Trial:
    """The evidence is how many rows a comparison takes that it would not take by what the texts mean."""
    (column,) = columns
    node = column.parent
    assert node is not None
    meant = _by_meaning(node.copy(), form, query.dialect)
    flags = [exp.Case().when(each.copy(), number(1)).else_(number(0)) for each in (node, meant)]
    known = present(meaning(column, form, query.dialect))
    example = exp.Max(this=exp.Case().when(known, column.copy()))
    held = {"differing": exp.Count(this=exp.Star()), "example": example}
    condition = next((each for each in core.parts if each is node), None)
    rows = core.rows(
        [exp.alias_(each, name) for name, each in held.items()],
        where=[exp.NEQ(this=flags[0], expression=flags[1])],
        instead={id(condition): None} if condition is not None else {},
    )
    what = "day" if form else "number"

    def tell(found: Rows) -> str:
        differing, example = found[0]
        goes = f"`{write(node, query.dialect)}` goes by the letters of a text that is a {what}"
        such = f", such as {value(example)}" if example is not None else ""
        return f"{goes}: {many(differing, 'row is', 'rows are')} taken otherwise{such}." if differing else ""

    def mend() -> exp.Expr:
        tree, (place,) = query.copy(node)
        _by_meaning(place, form, query.dialect)
        return tree

    return Trial(Kind.TEXT_VALUES, rows, tell, mend)


def _by_meaning(node: exp.Expr, form: str, dialect: str) -> exp.Expr:
    """The comparison by what the text means, in place; a number in quotes is one."""
    for name in _SIDES:
        side = node.args.get(name)
        if isinstance(side, exp.Column):
            node.set(name, meaning(side, form, dialect))
        elif isinstance(side, exp.Literal) and side.is_string and not form and _NUMBER.fullmatch(side.name):
            node.set(name, exp.Literal.number(side.name.strip()))
    return node
