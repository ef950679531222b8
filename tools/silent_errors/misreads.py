"""Expressions that read one form of a column's values and not another, or tell spellings of one value apart.

The database is asked for the column's values with what the expression makes of each. A query that reads every
form alike passes, however it does so: rows are compared with each other, not with a query of our own.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from sqlglot import exp

from quorum.knowledge.profile.columns import plain_text, unpadded
from quorum.knowledge.profile.forms import UNITS, amounts, read_date, skeletons
from quorum.knowledge.profile.model import ColumnProfile, Kind
from quorum.tools.silent_errors import doubts
from quorum.tools.silent_errors.cores import Core
from quorum.tools.silent_errors.doubts import Query, Rows, Trial, by, listed, many, number, value
from quorum.tools.sql.writing import write

VALUES = 2_000
"""Different values of a column that are compared, the most frequent first."""
NAMED = 3
SURE = 3
"""Different values of a form that are read alike for that to be no chance."""
MOSTLY = 0.9
"""Share of the rows of a form that must be read alike for the form to be read."""
_CLAUSES = (exp.Query, exp.Where, exp.Having, exp.Group, exp.Order, exp.Ordered, exp.Join, exp.Alias)
_ENDS = (*_CLAUSES, exp.AggFunc, exp.Window, exp.Filter, exp.Distinct, exp.Qualify, exp.Limit)
_PATTERNS = (exp.Like, exp.ILike, exp.Glob, exp.SimilarTo, exp.RegexpLike, exp.RegexpFullMatch)
_TRUTHS = (exp.Predicate, exp.Connector, exp.Not)


class _Read(NamedTuple):
    """A value of a column, what an expression makes of it, and in how many rows.

    Attributes:
        form: Its form, if it is a number or a date.
        means: The number, or the days that it may be.
    """

    held: str
    read: Any
    rows: int
    form: str = ""
    means: Any = None


Forms: TypeAlias = list[tuple[list[_Read], float | None]]
"""Numbers by their form, with what each is multiplied by."""


def trials(query: Query) -> Iterator[Trial]:
    """Yield one for each expression over a column whose values are not all written alike."""
    for core in query.cores:
        asked = set[str]()
        for column in core.columns(core.select):
            origin = core.origin(column)
            profile = origin and origin.profile
            if not profile or not (profile.forms or profile.variants or profile.no_value or profile.keys):
                continue
            node = _expression(core, column, profile.kind)
            if node is column and _is_read_later(query, core, column):
                continue
            if node is not None and (text := write(node, query.dialect)) not in asked:
                asked.add(text)
                yield _trial(query, core, column, node, profile)


def _is_read_later(query: Query, core: Core, column: exp.Column) -> bool:
    """True if another SELECT makes something of a column's name, as of a column of this one."""
    return any(
        each.name == column.name
        and isinstance(each.parent, exp.Func)
        and not isinstance(each.parent, exp.AggFunc)
        and each.find_ancestor(exp.Select) is not core.select
        for each in query.tree.find_all(exp.Column)
    )


def _expression(core: Core, column: exp.Column, kind: Kind) -> exp.Expr | None:
    """Return the largest expression over the column alone that says how it is read; None if there is none.

    Of a number or a date it is the value that is compared. A column that is used in two parts of one
    condition or item may be read with the help of others: ``CASE country WHEN … THEN …``.
    """
    value_top = _climbed(core, column, through=False)
    top = _climbed(core, column, through=True)
    node = value_top if kind in (Kind.NUMBER, Kind.DATE) and value_top is not column else top
    used, within = (
        sum(core.same(each, column) for each in core.columns(part)) for part in (_container(core, node), node)
    )
    seeks = isinstance(node.parent, exp.Is) and not isinstance(node.parent.parent, exp.Not)
    unsure = used != within or seeks or _picks_form(node, kind) or node.find(exp.Collate)
    return None if unsure else node


def _picks_form(node: exp.Expr, kind: Kind) -> bool:
    """True for a pattern of numbers, or one without a number: ``LIKE '$%'`` chooses a form."""
    texts = " ".join(each.name for each in node.find_all(exp.Literal))
    numbers = kind is Kind.NUMBER or (kind is Kind.DATE and not re.search(r"\d\d", texts))
    return numbers and bool(node.find(*_PATTERNS))


def _climbed(core: Core, column: exp.Column, *, through: bool) -> exp.Expr:
    """Return the largest expression over a column alone; ``through`` comparisons, too, or up to them."""
    node: exp.Expr = column
    while (parent := node.parent) is not None and not isinstance(parent, _ENDS):
        chooses = isinstance(parent.find_ancestor(exp.If, exp.Query), exp.If)  # how a value is read
        if isinstance(parent, _TRUTHS) and not (through or chooses):
            break
        outer = parent.parent
        whole = outer if isinstance(parent, exp.If) and isinstance(outer, exp.Case) else parent
        if whole.find(exp.Query, exp.AggFunc, exp.Window) or not all(
            core.same(each, column) for each in core.columns(whole)
        ):
            break
        node = whole
    return node


def _container(core: Core, node: exp.Expr) -> exp.Expr:
    """Return the aggregate, the part of a condition or the item in which an expression is used."""
    while (parent := node.parent) is not None and not isinstance(parent, _CLAUSES):
        if any(node is each for each in core.conditions):
            break
        node = parent
        if isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Filter | exp.Window):
            break
        if isinstance(node, exp.Filter):
            break
    return node


def _is_truth(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), _TRUTHS)


def _trial(query: Query, core: Core, column: exp.Column, node: exp.Expr, profile: ColumnProfile) -> Trial:
    read = _as_number(core, node) or node
    own = [
        each
        for each in core.conditions
        if any(node is below for below in each.walk()) or any(each is below for below in node.walk())
    ]
    shown = [exp.alias_(column, "held"), exp.alias_(exp.paren(read), "read_as")]
    shown.append(exp.alias_(exp.Count(this=exp.Star()), "rows_with"))
    rows = core.rows(shown, without=own)
    rows = rows.group_by(number(1), number(2)).limit(VALUES)
    rows = rows.order_by(by(number(3), query.dialect, down=True), by(number(1), query.dialect))
    text = write(node, query.dialect)

    use = _Use.of(core, node)

    def tell(found: Rows) -> str:
        reads = [_Read(*each) for each in found if isinstance(each[0], str)]
        nulls = any(each[0] is None and each[1] for each in found) or isinstance(node.unnest(), exp.Case)
        return judge(reads, profile, text, use, nulls=nulls)

    def as_numbers() -> exp.Expr:
        tree, (copy,) = query.copy(node)
        copy.replace(exp.cast(copy.copy(), "double"))
        return tree

    plain = all(form.plain for form in profile.forms)
    sorted_numbers = use.bare and use.sorts and profile.kind is Kind.NUMBER and plain
    return Trial(doubts.Kind.MISREAD, rows, tell, as_numbers if sorted_numbers else None)


def _as_number(core: Core, node: exp.Expr) -> exp.Expr | None:
    """Return what SQLite makes of a text that is added up: the number that it begins with."""
    added = isinstance(node.parent, exp.Sum | exp.Avg) and not _is_truth(node)
    return exp.cast(node.copy(), "real") if added and core.dialect == "sqlite" else None


@dataclass(frozen=True)
class _Use:
    """The use of an expression.

    Attributes:
        truth: It is a condition, or CASE.
        divides: Rows are grouped by it, or its different values are counted.
        counts: Rows that have it are counted, or divided by.
        sorts: Rows are sorted by it, or its least or greatest is taken.
        bare: It is the column itself, and is not added up.
        rounds: It makes whole numbers.
        casts: It is the column itself, or makes another type of it.
        named: The literals of the query.
    """

    truth: bool = False
    divides: bool = False
    counts: bool = False
    sorts: bool = False
    bare: bool = False
    rounds: bool = False
    casts: bool = False
    named: frozenset[str] = frozenset()

    @classmethod
    def of(cls, core: Core, node: exp.Expr) -> _Use:
        parent = node.parent
        shown = isinstance(parent, exp.Select | exp.Alias)
        divided = bool(core.select.args.get("distinct")) or node in (core.groups or ())
        partition = isinstance(parent, exp.Window) and node.arg_key == "partition_by"
        labels = isinstance(node.unnest(), exp.Case | exp.If) or _is_truth(node)
        return cls(
            truth=labels,
            divides=isinstance(parent, exp.Group | exp.Distinct) or partition or (shown and divided),
            counts=isinstance(parent, exp.Count | exp.Avg | exp.Min | exp.Max | exp.Distinct),
            sorts=isinstance(parent, exp.Min | exp.Max | exp.Ordered),
            bare=isinstance(node, exp.Column) and not isinstance(parent, exp.Sum | exp.Avg),
            casts=isinstance(node, exp.Column) or bool(node.find(exp.Cast)),
            named=frozenset(each.name for each in node.root().find_all(exp.Literal)),
            rounds=bool(node.find(exp.Round, exp.Floor, exp.Ceil))
            or any(cast.to.this in exp.DataType.INTEGER_TYPES for cast in node.find_all(exp.Cast)),
        )


def judge(reads: list[_Read], profile: ColumnProfile, text: str, use: _Use, *, nulls: bool = False) -> str:
    """Return a sentence on the values that an expression reads otherwise than others; empty without any.

    Args:
        text: The expression.
        nulls: True if the expression is true where the column is NULL.
    """
    stand_ins = {t.casefold().strip() for t, _ in profile.no_value}
    texts = [each for each in reads if each.held.casefold().strip() in stand_ins]
    real = [each for each in reads if each.held.casefold().strip() not in stand_ins]
    if profile.kind not in (Kind.NUMBER, Kind.DATE):
        found = _spellings(real, profile, text, use)
    elif use.truth:
        found = _ranges(_with_forms(real, profile), text)
    else:
        judged = _numbers if profile.kind is Kind.NUMBER else _dates
        found = judged(_with_forms(real, profile), text, use)
    return found or _stand_ins(texts, real, text, use, nulls)


def _with_forms(reads: list[_Read], profile: ColumnProfile) -> list[_Read]:
    """Return the numbers, or the dates, with their forms; ``13/02/2024`` has an order of its own."""
    if profile.kind is Kind.DATE:
        orders = frozenset(form.text[:2] for form in profile.forms)
        dated = ((each, *read_date(each.held, orders)) for each in reads)
        return [each._replace(form=form, means=meant) for each, form, meant in dated if meant]
    rows = Counter({each.held: each.rows for each in reads})
    found = amounts(skeletons(rows), rows)
    numbers = ((each, found[each.held]) for each in reads if each.held in found)
    return [each._replace(form=amount.shape, means=amount.size) for each, amount in numbers]


def _by(key: Callable[[_Read], Hashable], reads: Iterable[_Read]) -> list[list[_Read]]:
    """Return groups of values with one key, that with most rows first."""
    groups = defaultdict[Hashable, list[_Read]](list)
    for each in reads:
        groups[key(each)].append(each)
    return sorted(groups.values(), key=_rows, reverse=True)


def _rows(reads: Iterable[_Read]) -> int:
    return sum(each.rows for each in reads)


def _named(reads: Iterable[_Read]) -> str:
    most = sorted(reads, key=lambda each: -each.rows)
    return listed([value(each.held) for each in most[:NAMED]] + ["…"] * (len(most) > NAMED))


def _misread(text: str, wrong: list[list[_Read]], reads: list[_Read]) -> str:
    each = max(max(wrong, key=_rows), key=lambda each: each.rows)
    rows, of = sum(map(_rows, wrong)), many(_rows(reads), "row", "rows")
    return f"`{text}` misreads {rows:,} of {of}: {value(each.held)} gives {value(each.read)}."


def _stand_ins(texts: list[_Read], real: list[_Read], text: str, use: _Use, nulls: bool) -> str:
    """Return a sentence on texts such as ``n/a`` that count as values."""
    some = any(each.read for each in real)
    if use.truth and nulls and not some:
        left = [each for each in texts if not each.read]
        return (
            f"`{text}` leaves out {_named(left)} ({_rows(left):,} rows), which say no more." if left else ""
        )
    taken = [each for each in texts if each.read not in (None, False, "0")]
    wrong = some and not nulls if use.truth else use.counts or (use.divides and len(taken) > 1)
    if not taken or not wrong:
        return ""
    return f"`{text}` takes {_named(taken)} for values, which say that there is none ({_rows(taken):,} rows)."


def _numbers(reads: list[_Read], text: str, use: _Use) -> str:
    """Return a sentence on forms of numbers that are lost or misread, or of which the units are mixed."""
    reads = [each._replace(read=_number(each.read)) for each in reads if each.means]
    if use.bare:
        example = value(reads[0].held) if reads else ""
        return f"`{text}` is text and sorts as text, such as {example}." if reads and use.sorts else ""
    forms = [(each, _ratio(each, use)) for each in _by(lambda each: each.form, reads)]
    sure = any(ratio and len({each.means for each in form}) >= SURE for form, ratio in forms)
    if not sure and (not use.casts or any(each.read for each in reads)):
        return ""  # something else is made of the number than a number
    lost = [form for form, ratio in forms if not ratio] or _shifted(forms)
    return _misread(text, lost, reads) if lost else _mixed(forms, text)


def _number(read: Any) -> float | None:
    try:
        return None if read is None or isinstance(read, bool) else float(read)
    except (TypeError, ValueError):
        return None


def _ratio(form: list[_Read], use: _Use) -> float | None:
    """Return what the numbers of one form are multiplied by; None if they are not read alike."""
    ratios = Counter[float]()
    for each in form:
        whole = use.rounds and each.read is not None and abs(each.read - each.means) <= 1
        ratios[1.0 if whole else float(f"{(each.read or 0.0) / each.means:.5g}")] += each.rows
    usual, often = ratios.most_common(1)[0]
    return usual if usual and often >= MOSTLY * ratios.total() else None


def _shifted(forms: Forms) -> list[list[_Read]]:
    """Return the forms of amounts read 10, 100 or 1,000 times too large or small, for a point was lost."""
    amount = [(form, ratio or 0) for form, ratio in forms if _unit(form[0]) not in (*UNITS, "%")]
    tens = {float(f"{10.0**n:g}") for n in (-3, -2, -1, 1, 2, 3)}
    usual = 1.0 if any(ratio == 1.0 for _, ratio in amount) else max((r for _, r in amount[:1]), default=1.0)
    return [form for form, ratio in amount if float(f"{ratio / usual:.4g}") in tens]


def _mixed(forms: Forms, text: str) -> str:
    """Return a sentence on units, or percentages beside fractions, that are read by one scale."""
    alike = defaultdict[float | None, dict[str, str]](dict)
    for form, ratio in forms:
        unit = _unit(form[0])
        small = max(abs(each.means) for each in form) <= 1
        if unit in UNITS or unit == "%" or (not unit and small):
            alike[ratio].setdefault(unit, form[0].held)
    for units in alike.values():
        measures = Counter(UNITS[unit] for unit in units if unit in UNITS)
        if {"%", ""} <= {*units} or max(measures.values(), default=0) > 1:
            return f"`{text}` reads {listed([value(each) for each in units.values()])} by one scale."
    return ""


def _unit(each: _Read) -> str:
    """Return the unit or ``%`` after a number, in small letters."""
    return each.held.strip().lstrip("+-0123456789.,'’ \u00a0\u202f()").rstrip(".").casefold()


_PIECES: tuple[Callable[[str], Hashable], ...] = (
    lambda day: day,
    lambda day: day[:7],
    lambda day: day[:4],
    lambda day: str(int(day[5:7])),
    lambda day: str(int(day[8:10] or 0)),
    lambda day: str((int(day[5:7]) + 2) // 3),
    lambda day: day[:7] + "-01",
    lambda day: day[:4] + "-01-01",
    lambda day: day.replace("-", ""),
    lambda day: day[:7].replace("-", ""),
)
"""What queries make of a day: itself, its month, its year …"""


def _dates(reads: list[_Read], text: str, use: _Use) -> str:
    """Return a sentence on forms of dates that are lost or misread."""
    forms = _by(lambda each: each.form, reads)
    if use.bare:
        mixed = use.sorts and len(forms) > 1
        example = value(forms[-1][0].held) if mixed else ""
        return f"`{text}` is text in several forms and sorts as text: {example}." if mixed else ""

    def right(form: list[_Read], piece: Callable[[str], Hashable]) -> list[_Read]:
        return [each for each in form if _day(each.read) in {piece(day) for day in each.means}]

    best = max(_PIECES, key=lambda piece: _rows(right(reads, piece)))
    known = any(
        len(right(form, best)) >= SURE and _rows(right(form, best)) >= MOSTLY * _rows(form) for form in forms
    )
    lost = [
        form
        for form in forms
        if (known and _rows(right(form, best)) < 0.5 * _rows(form))
        or _rows(each for each in form if each.read is None) > 0.5 * _rows(form)
    ]
    return _misread(text, lost, reads) if lost else ""


def _day(read: Any) -> str | None:
    """Return what was made of a date in the spelling of ``_PIECES``."""
    if read is None:
        return None
    if isinstance(read, float | int):
        return f"{read:g}" if abs(read) < 10**5 else str(int(read))
    text = str(read).strip()
    if len(text) > 10 and text[4:5] == text[7:8] == "-":
        return text[:10]
    return str(int(text)) if text.isdigit() and len(text) <= 2 else text


def _ranges(reads: list[_Read], text: str) -> str:
    """Return a sentence on values that a condition leaves out though it takes others around them.

    Its range is that of the form of which it takes most rows, if it takes all between two ends.
    """
    points = [
        each._replace(means=min(each.means) if isinstance(each.means, frozenset) else each.means)
        for each in reads
        if not isinstance(each.means, frozenset) or len(each.means) == 1
    ]
    taken = _by(lambda each: each.form, (each for each in points if each.read))
    if not taken:
        return ""
    form = taken[0][0].form
    low, high = (end(each.means for each in taken[0]) for end in (min, max))
    left = [each for each in points if not each.read and low <= each.means <= high]
    if not left or any(each.form == form for each in left):
        return ""
    rows = many(_rows(left), "row", "rows")
    return f"`{text}` reads one form of several: it leaves out {rows} such as {value(left[0].held)}."


def _spellings(reads: list[_Read], profile: ColumnProfile, text: str, use: _Use) -> str:
    """Return a sentence on a value of which one spelling is treated otherwise than another."""
    if not (use.truth or use.divides):
        return ""
    sides = {word.strip().casefold(): nth for nth, words in enumerate(profile.variants) for word in words}

    def meant(each: _Read) -> Hashable:
        folded = each.held.strip().casefold()
        if profile.kind is Kind.FLAG:
            return sides.get(folded, each.held)
        return unpadded(folded) if profile.kind is Kind.CODE else plain_text(each.held)

    def made(each: _Read) -> Hashable:
        return bool(each.read) if isinstance(each.read, bool | int | None) else str(each.read)

    split = [parts for group in _by(meant, reads) if len(parts := _by(made, group)) > 1]
    if use.truth:  # not where the query names another spelling elsewhere
        split = [
            parts
            for parts in split
            if any(use.named.isdisjoint(each.held for each in part) for part in parts)
        ]
    if not split:
        return ""
    first, rest = split[0][0], [each for part in split[0][1:] for each in part]
    verb, apart = ("treats", "otherwise than") if use.truth else ("divides", "from")
    also = ", and others so" if len(split) > 1 else ""
    rows = many(_rows(first), "row", "rows")
    return f"`{text}` {verb} {_named(first)} ({rows}) {apart} {_named(rest)} ({_rows(rest):,}){also}."
