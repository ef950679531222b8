"""Expressions that read one form of a column's values and not another, or tell spellings of one value apart.

The database is asked for the column's values with what the expression makes of each. A query that reads every
form alike passes, however it does so: rows are compared with each other, not with a query of our own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlglot import exp

from quorum.knowledge.profile.columns import plain_text, unpadded
from quorum.knowledge.profile.forms import UNITS
from quorum.knowledge.profile.model import ColumnProfile, Kind
from quorum.knowledge.profile.values import amounts, days
from quorum.tools.silent_errors import doubts
from quorum.tools.silent_errors.cores import Core
from quorum.tools.silent_errors.doubts import Query, Rows, Trial, by, listed, many, number, value
from quorum.tools.sql.writing import write

VALUES = 2_000
"""Different values of a column that are compared, the most frequent first."""
NAMED = 3
MOSTLY = 0.9
"""Share of the rows of a form that must be read alike for the form to be read."""
_CLAUSES = (exp.Query, exp.Where, exp.Having, exp.Group, exp.Order, exp.Ordered, exp.Join, exp.Alias)
_ENDS = (*_CLAUSES, exp.AggFunc, exp.Window, exp.Filter, exp.Distinct, exp.Qualify, exp.Limit)
_TRUTHS = (exp.Predicate, exp.Connector, exp.Not)

Shapes: TypeAlias = Mapping[str, list[tuple[str, float, float | None, int]]]
"""Values by their form, each with its number, what is made of it, and in how many rows."""

Reads: TypeAlias = list[tuple[str, Any, int]]
"""Values of a column, what an expression makes of each, and in how many rows."""


def trials(query: Query) -> Iterator[Trial]:
    """Yield one for each expression over a column whose values are not all written alike."""
    for core in query.cores:
        asked = set[str]()
        for column in core.columns(core.select):
            origin = core.origin(column)
            profile = origin and origin.profile
            if not profile or not (profile.forms or profile.variants or profile.no_value):
                continue
            node = _expression(core, column, profile.kind)
            if node is not None and (text := write(node, query.dialect)) not in asked:
                asked.add(text)
                yield _trial(query, core, column, node, profile)


def _expression(core: Core, column: exp.Column, kind: Kind) -> exp.Expr | None:
    """Return the largest expression over the column alone that says how it is read; None if there is none.

    Of a number or a date it is the value that is compared, unless the comparison has a part for each form.
    """
    value_top = _climbed(core, column, through=False)
    top = _climbed(core, column, through=True)
    alone = len(list(core.columns(top))) == len(list(core.columns(value_top)))
    node = value_top if kind in (Kind.NUMBER, Kind.DATE) and alone and value_top is not column else top
    used, within = (
        sum(core.same(each, column) for each in core.columns(part)) for part in (_container(node), node)
    )
    return node if used == within else None


def _climbed(core: Core, column: exp.Column, *, through: bool) -> exp.Expr:
    """Return the largest expression over a column alone; ``through`` comparisons, too, or up to them."""
    node: exp.Expr = column
    while (parent := node.parent) is not None and not isinstance(parent, _ENDS):
        if not through and isinstance(parent, _TRUTHS) and not _inside_case(parent):
            break
        whole = (
            parent.parent if isinstance(parent, exp.If) and isinstance(parent.parent, exp.Case) else parent
        )
        if whole.find(exp.Query, exp.AggFunc, exp.Window) or not all(
            core.same(each, column) for each in core.columns(whole)
        ):
            break
        node = whole
    return node


def _inside_case(node: exp.Expr) -> bool:
    """True for a condition of CASE or IF, which chooses how a value is read."""
    while (parent := node.parent) is not None and not isinstance(parent, _ENDS):
        if isinstance(parent, exp.If) and node.arg_key == "this":
            return True
        node = parent
    return False


def _container(node: exp.Expr) -> exp.Expr:
    """Return the aggregate, the part of a condition or the item in which an expression is used."""
    while (parent := node.parent) is not None and not isinstance(parent, _CLAUSES):
        if isinstance(parent, exp.And) and _is_conjunct(parent):
            break
        node = parent
        if isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Filter | exp.Window):
            break
        if isinstance(node, exp.Filter):
            break
    return node


def _is_conjunct(node: exp.Expr) -> bool:
    while isinstance(node.parent, exp.And | exp.Paren):
        node = node.parent
    return isinstance(node.parent, exp.Where | exp.Having | exp.Join | exp.Filter | exp.Qualify)


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
    rows = rows.order_by(by(number(3), query.dialect, down=True))
    text = write(node, query.dialect)

    use = _Use.of(node)

    def tell(found: Rows) -> str:
        reads: Reads = [(each[0], each[1], each[2]) for each in found if isinstance(each[0], str)]
        nulls = any(each[0] is None and each[1] for each in found)
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
    """How an expression is used.

    Attributes:
        truth: It is a condition, or CASE.
        divides: Rows are grouped by it, or its different values are counted.
        counts: Rows that have it are counted, or divided by.
        sorts: Rows are sorted by it, or its least or greatest is taken.
        bare: It is the column itself, and is not added up.
    """

    truth: bool = False
    divides: bool = False
    counts: bool = False
    sorts: bool = False
    bare: bool = False

    @classmethod
    def of(cls, node: exp.Expr) -> _Use:
        parent = node.parent
        divides = isinstance(parent, exp.Group | exp.Distinct) or (
            isinstance(parent, exp.Window) and node.arg_key == "partition_by"
        )
        if isinstance(parent, exp.Select | exp.Alias):
            select = node.find_ancestor(exp.Select)
            group = select.args.get("group") if select else None
            item = parent if isinstance(parent, exp.Alias) else node
            divides = bool(select and select.args.get("distinct")) or (
                group is not None and any(_names(each, item, select) for each in group.expressions)
            )
        labels = isinstance(node.unnest(), exp.Case | exp.If) or _is_truth(node)
        return cls(
            truth=labels,
            divides=divides,
            counts=isinstance(parent, exp.Count | exp.Avg | exp.Min | exp.Max | exp.Distinct),
            sorts=isinstance(parent, exp.Min | exp.Max | exp.Ordered),
            bare=isinstance(node, exp.Column) and not isinstance(parent, exp.Sum | exp.Avg),
        )


def _names(group: exp.Expr, item: exp.Expr, select: exp.Select | None) -> bool:
    """True if a group is a SELECT's item, by its text, alias or place."""
    if group.is_int and select is not None:
        return (
            0 < int(group.name) <= len(select.expressions) and select.expressions[int(group.name) - 1] is item
        )
    alias = isinstance(item, exp.Alias) and isinstance(group, exp.Column) and group.name == item.alias
    return alias or group == item.unalias()


def judge(reads: Reads, profile: ColumnProfile, text: str, use: _Use, *, nulls: bool = False) -> str:
    """Return a sentence on the values that an expression reads otherwise than others; empty without any.

    Args:
        reads: The column's values, what the expression makes of each, and in how many rows.
        text: The expression.
        nulls: True if the expression is true where the column is NULL.
    """
    stand_ins = {t.casefold().strip() for t, _ in profile.no_value}
    real = [each for each in reads if each[0].casefold().strip() not in stand_ins]
    if profile.kind is Kind.NUMBER and not use.truth:
        found = _numbers(real, text, use)
    elif profile.kind is Kind.DATE and not use.truth:
        found = _dates(real, profile, text, use)
    elif profile.kind in (Kind.NUMBER, Kind.DATE):
        found = _ranges(real, profile, text)
    else:
        found = _spellings(real, profile, text, use)
    return found or _stand_ins(reads, real, stand_ins, text, use, nulls)


def _stand_ins(reads: Reads, real: Reads, stand_ins: set[str], text: str, use: _Use, nulls: bool) -> str:
    """Return a sentence on texts such as ``n/a`` that count as values."""
    texts = [each for each in reads if each[0].casefold().strip() in stand_ins]
    if use.truth and nulls and not any(read for _, read, _ in real):
        left = [each for each in texts if not each[1]]
        return (
            f"`{text}` leaves out {_named(left)} ({_rows(left):,} rows), which say no more." if left else ""
        )
    taken = [each for each in texts if each[1] not in (None, False, "0")]
    if use.truth:
        taken = [each for each in taken if each[1]]
        wrong = not nulls and any(read for _, read, _ in real)
    else:
        wrong = use.counts or (use.divides and len(taken) > 1)
    if not taken or not wrong:
        return ""
    return f"`{text}` takes {_named(taken)} for values, which say that there is none ({_rows(taken):,} rows)."


def _named(reads: Iterable[tuple[str, Any, int]]) -> str:
    most = sorted(reads, key=lambda each: -each[2])
    more = ["…"] if len(most) > NAMED else []
    return listed([value(text) for text, _, _ in most[:NAMED]] + more)


def _numbers(reads: Reads, text: str, use: _Use) -> str:
    """Return a sentence on forms of numbers that are lost or misread, or of which the units are mixed."""
    shapes, sizes = _amounts(reads)
    by_shape = defaultdict[str, list[tuple[str, float, float | None, int]]](list)
    for held, read, n in reads:
        if sizes.get(held):
            by_shape[shapes[held]].append((held, sizes[held], _number(read), n))
    if use.bare:
        odd = [held for each in by_shape.values() for held, *_ in each]
        return f"`{text}` is text and sorts as text, such as {value(odd[0])}." if odd and use.sorts else ""
    ratios = {shape: _ratio(each) for shape, each in by_shape.items()}
    rows = {shape: sum(n for *_, n in each) for shape, each in by_shape.items()}
    if not any(ratios.values()) and not all(
        read in (None, 0.0) for each in by_shape.values() for _, _, read, _ in each
    ):
        return ""  # something else is made of the number than a number
    lost = [shape for shape, ratio in ratios.items() if not ratio] or _shifted(by_shape, ratios, rows)
    if lost:
        held, _, read, _ = max((each for each in by_shape[lost[0]]), key=lambda each: each[3])
        as_what = "NULL" if read is None else f"{read:,g}"
        wrong = sum(rows[shape] for shape in lost)
        total = sum(rows.values())
        return f"`{text}` misreads {wrong:,} of {many(total, 'row', 'rows')}: {value(held)} gives {as_what}."
    return _mixed(by_shape, ratios, text)


def _shifted(by_shape: Shapes, ratios: Mapping[str, float | None], rows: Mapping[str, int]) -> list[str]:
    """Return the forms of amounts that are read 10, 100 or 1,000 times too large or small: a point was lost."""
    units = {shape: _unit(each[0][0]) for shape, each in by_shape.items()}
    amount = [shape for shape, unit in units.items() if unit not in UNITS and unit != "%"]
    usual = ratios[max(amount, key=rows.__getitem__)] if amount else None
    tens = {float(f"{10.0**n:g}") for n in (-3, -2, -1, 1, 2, 3)}
    return [each for each in amount if usual and float(f"{(ratios[each] or 0) / usual:.4g}") in tens]


def _number(read: Any) -> float | None:
    try:
        return None if read is None or isinstance(read, bool) else float(read)
    except (TypeError, ValueError):
        return None


def _ratio(each: list[tuple[str, float, float | None, int]]) -> float | None:
    """Return what the numbers of one form are multiplied by; None if they are not read alike."""
    ratios = Counter[float]()
    for _, size, read, n in each:
        ratios[0.0 if read is None else float(f"{read / size:.5g}")] += n
    usual, often = ratios.most_common(1)[0]
    return usual if usual and often >= MOSTLY * ratios.total() else None


def _mixed(
    by_shape: Shapes,
    ratios: Mapping[str, float | None],
    text: str,
) -> str:
    """Return a sentence on units, or percentages beside fractions, that are read by one scale."""
    alike = defaultdict[float | None, dict[str, str]](dict)
    for shape, each in by_shape.items():
        unit = _unit(each[0][0])
        small = max(abs(size) for _, size, _, _ in each) <= 1
        if unit in UNITS or unit == "%" or (not unit and small):
            alike[ratios[shape]].setdefault(unit, each[0][0])
    for units in alike.values():
        percent = "%" in units and "" in units
        measures = Counter(UNITS[unit] for unit in units if unit in UNITS)
        if percent or max(measures.values(), default=0) > 1:
            return f"`{text}` reads {listed([value(each) for each in units.values()])} by one scale."
    return ""


def _unit(held: str) -> str:
    """Return the unit or ``%`` after a number, in small letters."""
    return held.strip().lstrip("+-0123456789.,'’ \u00a0\u202f()").rstrip(".").casefold()


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


def _dates(reads: Reads, profile: ColumnProfile, text: str, use: _Use) -> str:
    """Return a sentence on forms of dates that are lost or misread."""
    by_form = defaultdict[str, list[tuple[str, frozenset[str], str | None, int]]](list)
    for held, read, n in reads:
        form, meant = days(held, profile)
        if meant:
            by_form[form].append((held, meant, _day(read), n))
    total = sum(n for each in by_form.values() for *_, n in each)
    if use.bare:
        if (use.sorts or use.divides) and len(by_form) > 1 and use.sorts:
            rarest = min(by_form, key=lambda form: sum(n for *_, n in by_form[form]))
            return f"`{text}` is text in several forms and sorts as text: {value(by_form[rarest][0][0])}."
        return ""

    def right(form: str, piece: Callable[[str], Hashable]) -> int:
        return sum(n for _, meant, read, n in by_form[form] if read in {piece(day) for day in meant})

    best = max(_PIECES, key=lambda piece: sum(right(form, piece) for form in by_form))
    known = sum(right(form, best) for form in by_form) >= 0.3 * total
    wrong = []
    for form, each in by_form.items():
        rows = sum(n for *_, n in each)
        lost = sum(n for _, _, read, n in each if read is None)
        if (known and right(form, best) < 0.5 * rows) or lost > 0.5 * rows:
            wrong.append((rows, form, each))
    if not wrong:
        return ""
    held, _, read, _ = max(max(wrong)[2], key=lambda one: one[3])
    rows = sum(rows for rows, _, _ in wrong)
    gives = "NULL" if read is None else value(read)
    return f"`{text}` misreads {rows:,} of {many(total, 'row', 'rows')}: {value(held)} gives {gives}."


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


def _ranges(reads: Reads, profile: ColumnProfile, text: str) -> str:
    """Return a sentence on values of which a condition takes those in one form and not in another.

    The condition's range is that of the form of which it takes most rows, if it takes all between two ends.
    """
    points = list(_points(reads, profile))
    taken = Counter[str]()
    for point in points:
        taken[point.form] += point.rows * point.taken
    usual = max(taken, key=taken.__getitem__, default="")
    of_usual = [point for point in points if point.form == usual]
    inside = [point.size for point in of_usual if point.taken]
    if not inside:
        return ""
    low, high = min(inside), max(inside)
    outside = [point.size for point in of_usual if not point.taken]
    if any(low <= size <= high for size in outside):
        return ""
    below = max((size for size in outside if size < low), default=None)
    above = min((size for size in outside if size > high), default=None)
    left = [each for each in points if not each.taken and low <= each.size <= high]
    more = [
        each
        for each in points
        if each.taken
        and ((below is not None and each.size <= below) or (above is not None and each.size >= above))
    ]
    says = [
        f"{verb} {many(sum(each.rows for each in odd), 'row', 'rows')} such as {value(odd[0].held)}"
        for verb, odd in (("leaves out", left), ("takes", more))
        if odd
    ]
    return f"`{text}` reads one form of several: it {' and '.join(says)}." if says else ""


@dataclass(frozen=True)
class _Point:
    """A value with its form, its number or day, and whether a condition takes it."""

    held: str
    form: str
    size: Any
    taken: bool
    rows: int


def _points(reads: Reads, profile: ColumnProfile) -> Iterator[_Point]:
    if profile.kind is Kind.DATE:
        for held, read, n in reads:
            form, meant = days(held, profile)
            if len(meant) == 1:
                yield _Point(held, form, min(meant), bool(read), n)
        return
    shapes, sizes = _amounts(reads)
    for held, read, n in reads:
        if held in sizes:
            yield _Point(held, shapes[held], sizes[held], bool(read), n)


def _amounts(reads: Reads) -> tuple[dict[str, str], dict[str, float]]:
    counted = Counter[str]()
    for held, _, n in reads:
        counted[held] += n
    return amounts(counted)


def _spellings(reads: Reads, profile: ColumnProfile, text: str, use: _Use) -> str:
    """Return a sentence on a value of which one spelling is treated otherwise than another."""
    if not (use.truth or use.divides):
        return ""
    sides = {word.strip().casefold(): nth for nth, words in enumerate(profile.variants) for word in words}
    meant: Callable[[str], Hashable] = plain_text
    if profile.kind is Kind.FLAG:
        meant = lambda held: sides.get(held.strip().casefold(), held)  # noqa: E731
    elif profile.kind is Kind.CODE:
        meant = lambda held: unpadded(held).casefold()  # noqa: E731
    alike = defaultdict[Hashable, Reads](list)
    for each in reads:
        alike[meant(each[0])].append(each)
    split = list[list[Reads]]()
    for group in alike.values():
        of_read = defaultdict[Any, Reads](list)
        for one in group:
            of_read[bool(one[1]) if isinstance(one[1], bool | int | None) else one[1]].append(one)
        if len(of_read) > 1:
            split.append([*of_read.values()])
    if not split:
        return ""
    most = max(split, key=lambda each: sum(map(_rows, each)))
    first, *others = sorted(most, key=_rows, reverse=True)
    rest = [one for each in others for one in each]
    rows = _rows(first), _rows(rest)
    verb = "treats" if use.truth else "divides"
    also = f", and so {len(split) - 1} more" if len(split) > 1 else ""
    apart = "otherwise than" if use.truth else "from"
    return (
        f"`{text}` {verb} {_named(first)} ({many(rows[0], 'row', 'rows')}) {apart} {_named(rest)} "
        f"({rows[1]:,}){also}."
    )


def _rows(reads: Reads) -> int:
    return sum(n for *_, n in reads)
