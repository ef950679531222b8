"""Limits on what a query's own constants ask for: text, rows, combined series, endless recursion.

What real tables hold is not known here; the run's limits stop what they make too long.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from math import prod

from sqlglot import exp

from quorum.tools.guard.text import NotPure

MAX_TEXT = 10_000_000
"""Longest text, in characters, that one call may build."""
MAX_ROWS = 100_000_000
"""Most rows or elements that one call may generate."""
MAX_COMBINED = 1_000_000_000
"""Most rows that generated series may give when every row of one meets every row of the other."""

# the argument that says how long the text or list becomes, by lower-case name
_LENGTH_ARGUMENT = {
    **dict.fromkeys(("zeroblob", "randomblob", "randstr", "space"), 0),
    **dict.fromkeys(("repeat", "lpad", "rpad", "list_resize", "array_resize", "bitstring"), 1),
    "bar": 3,
    "repeat_row": -1,
}
_SERIES = frozenset({"range", "generate_series", "generate_array", "array_generate_range"})
_SERIES_NODES = (
    exp.GenerateSeries,
    exp.ExplodingGenerateSeries,
    exp.GenerateTimestampArray,
    exp.GenerateDateArray,
)
_WRAPPERS = (exp.Table, exp.TableFromRows, exp.Lateral, exp.Unnest, exp.Explode, exp.Paren)
_SEQUENCE = re.compile(r"seq_(\d+)_to_(\d+)(?:_step_(\d+))?", re.IGNORECASE)  # MariaDB's tables
_PRINTF = re.compile(r"%[-+ 0#,]*(\d+)?(?:\.(\d+))?")
_GIVEN_WIDTH = re.compile(r"%[^%a-zA-Z]*\*|\{[^}]*\{")
_FIELD = re.compile(r"\{([^{}]+)\}")
_DIGITS = re.compile(r"\d+")
_SECONDS = {"NANOSECOND": 1e-9, "MICROSECOND": 1e-6, "MILLISECOND": 1e-3, "SECOND": 1.0, "MINUTE": 60.0}
_SECONDS |= {"HOUR": 3600.0, "DAY": 86_400.0, "WEEK": 604_800.0}
_SECONDS |= {"MONTH": 2.4e6, "QUARTER": 7.2e6, "YEAR": 3.1e7}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": operator.truediv,
    "IntDiv": operator.floordiv,
    "Pow": operator.pow,
    "BitwiseLeftShift": lambda value, bits: value * 2**bits,
}
_RECURSES_UNSAID = frozenset({"sqlite", "snowflake", "oracle", "tsql"})
"""Engines that recurse without the word RECURSIVE."""


def check_size(node: exp.Func) -> None:
    """Refuse a call whose own constants make it huge."""
    anonymous = isinstance(node, exp.Anonymous)
    name = node.name.lower() if anonymous else ""
    arguments = _arguments(node) if isinstance(node, exp.Anonymous) else []
    if isinstance(node, exp.Repeat | exp.Space | exp.Pad | exp.Randstr):
        _check_text(node.sql_name(), _length(node))
    elif isinstance(node, exp.Generator):
        if node.args.get("timelimit") is not None:
            raise NotPure(
                "GENERATOR with a TIMELIMIT keeps the warehouse busy; give a ROWCOUNT.", "resources"
            )
        if node.args.get("rowcount") is None or constant(node.args["rowcount"]) is None:
            raise NotPure("GENERATOR needs a constant ROWCOUNT, or it may never end.", "resources")
    if (series := _series_arguments(node)) is not None:
        _check_rows(name or node.sql_name(), _series_rows(series))
    elif isinstance(node, exp.Format):
        _check_format([node.this, *node.expressions])
    elif name in ("printf", "format", "sformat"):
        _check_format(arguments)
    elif name == "array_fill" and len(arguments) > 1:
        literal = arguments[1].find(exp.Literal) if isinstance(arguments[1], exp.Cast) else None
        numbers = _DIGITS.findall(literal.name) if literal else []
        sizes = [constant(size) or 1 for size in arguments[1].expressions] + [float(n) for n in numbers]
        _check_rows(name, prod(sizes))
    elif (position := _LENGTH_ARGUMENT.get(name)) is not None and len(arguments) > max(position, 0):
        _check_text(name, constant(arguments[position]))


def _check_text(name: str, length: float | None) -> None:
    if length is not None and not length <= MAX_TEXT:  # nan as well
        raise NotPure(f"{name.upper()} would build a text of {length:,.0f} characters.", "resources")


def _check_rows(name: str, rows: float | None) -> None:
    if rows is not None and not rows <= MAX_ROWS:  # nan as well
        raise NotPure(f"{name.upper()} would generate {rows:,.0f} rows.", "resources")


def _length(node: exp.Expr) -> float | None:
    """Return the characters that nested REPEAT, SPACE and LPAD calls build, as far as constants tell."""
    if isinstance(node, exp.Repeat):
        times, inner = constant(node.args["times"]), node.this.find(exp.Repeat, exp.Space, exp.Pad)
        return None if times is None else times * max(1.0, (_length(inner) or 1.0) if inner else 1.0)
    argument = node.args.get("expression") if isinstance(node, exp.Pad) else node.this
    return None if argument is None else constant(argument)


def _check_format(arguments: list[exp.Expr]) -> None:
    """Check widths of printf and Python style: in the pattern, or in it ``*`` or ``{}`` and a constant."""
    pattern = arguments[0] if arguments else None
    text = pattern.name if pattern is not None and pattern.is_string else ""
    numbers = [number for pair in _PRINTF.findall(text) for number in pair if number]
    numbers += [number for field in _FIELD.findall(text) for number in _DIGITS.findall(field)]
    widths = [float(number) for number in numbers]
    if _GIVEN_WIDTH.search(text.replace("%%", "")):
        given = [constant(argument) for argument in arguments[1:] if not argument.is_string]
        if None in given:  # it may be the width
            raise NotPure("FORMAT takes a width from a value: write the width in the pattern.", "resources")
        widths += [width for width in given if width is not None]
    _check_text("format", max(widths, default=None))


def _arguments(node: exp.Anonymous) -> list[exp.Expr]:
    """Return the call's arguments: in ``x.f(y)`` x as well, unless it is a schema's name."""
    parent = node.parent
    method = isinstance(parent, exp.Dot) and parent.expression is node
    if parent is not None and method and not isinstance(parent.this, exp.Identifier | exp.Dot):
        return [parent.this, *node.expressions]
    return node.expressions


def _series_arguments(node: exp.Func) -> list[exp.Expr | None] | None:
    """Return start, end and step; None if the function makes no series."""
    if isinstance(node, exp.GenerateDateArray) and node.args.get("step") is None:
        return [node.args["start"], node.args["end"], exp.Interval(unit=exp.Var(this="DAY"))]
    if isinstance(node, _SERIES_NODES):
        return [node.args.get(key) for key in ("start", "end", "step")]
    if isinstance(node, exp.Generator):
        return [None, node.args.get("rowcount")]
    if isinstance(node, exp.Anonymous) and node.name.lower() in _SERIES:
        arguments = _arguments(node)
        return list(arguments) if len(arguments) > 1 else [None, *arguments]
    return None


def _series_rows(arguments: Sequence[exp.Expr | None]) -> float | None:
    """Return the rows from start to end by step, as far as numbers and points in time are constants."""
    in_time = any(isinstance(argument, exp.Interval) for argument in arguments[2:3])
    read = _seconds if in_time else constant
    start, end, step = ([read(a) if a is not None else None for a in arguments] + [None] * 3)[:3]
    if end is None or (in_time and start is None):
        return None
    return abs(end - (start or 0)) / (abs(step) if step else 1)


def _seconds(node: exp.Expr) -> float | None:
    """Return a point in time since 1970, or an interval's length; one of another unit counts as a minute."""
    if isinstance(node, exp.Interval):
        length = constant(node.this) if node.this is not None else None
        return (length or 1) * _SECONDS.get(node.text("unit").upper().removesuffix("S"), 60.0)
    literal = node.find(exp.Literal)
    text = literal.name if literal is not None else ""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return float("inf") if "infinity" in text else None


def constant(node: exp.Expr) -> float | None:
    """Return the value of an expression made of numbers alone; None for anything else."""
    if isinstance(node, exp.Literal):
        try:
            return float(node.name)
        except ValueError:
            return None
    if isinstance(node, exp.Paren | exp.Cast | exp.Subquery):
        return constant(node.this)
    if isinstance(node, exp.Select):
        return constant(node.expressions[0].unalias()) if len(node.expressions) == 1 else None
    if isinstance(node, exp.Greatest):
        return max(filter(None, map(constant, [node.this, *node.expressions])), default=None)
    if isinstance(node, exp.Abs):
        return abs(constant(node.this) or 0)
    if isinstance(node, exp.Kwarg | exp.EQ | exp.PropertyEQ):  # name => value, name = value, name := value
        return constant(node.expression)
    if isinstance(node, exp.Neg):
        value = constant(node.this)
        return None if value is None else -value
    calculate = _ARITHMETIC.get(type(node).__name__)
    if calculate is None:
        return None
    left, right = constant(node.args["this"]), constant(node.args["expression"])
    try:
        return None if left is None or right is None else float(calculate(left, right))
    except (OverflowError, ZeroDivisionError, TypeError):  # -1 ** 0.5 is complex
        return float("inf")


def makes_rows(node: exp.Expr) -> bool:
    """True for what has rows without a table: a series, VALUES, MariaDB's ``seq_1_to_9``."""
    if isinstance(node, exp.Func):
        return _series_arguments(node) is not None
    return isinstance(node, exp.Values) or node.name[:4].lower() == "seq_"


def check_series(tree: exp.Expr) -> None:
    """Refuse generated series that are combined without a condition that joins them."""
    series = _Series(tree)
    for query in tree.find_all(exp.Select):
        rows = series.of_select(query)
        if rows > MAX_COMBINED:
            raise NotPure(f"The series in one FROM would combine to {rows:,.0f} rows.", "resources")


class _Series:
    """Rows that queries make of series alone; whatever else they read counts as one row."""

    def __init__(self, tree: exp.Expr) -> None:
        self._ctes = {cte.alias.lower(): cte.this for cte in tree.find_all(exp.CTE)}
        self._known: dict[int, float] = {}

    def of_select(self, select: exp.Select) -> float:
        """Return the rows before grouping and LIMIT; a series in the SELECT list repeats every row."""
        sources = [select.args["from_"].this] if select.args.get("from_") else []
        sources += select.args.get("laterals") or ()
        lists = [_elements(item) or 1.0 for item in select.expressions]
        rows = prod(map(self._of_source, sources)) * self._of_joins(select)
        return rows * max(lists, default=1.0)

    def _of_query(self, query: exp.Expr) -> float:
        """Return the rows of a query, which may be met again, or from within itself."""
        if id(query) in self._known:
            return self._known[id(query)]
        rows = self._known[id(query)] = 1.0
        if isinstance(query, exp.SetOperation):
            rows = sum(map(self._of_query, branches(query)))
        elif isinstance(query, exp.Subquery):
            rows = self._of_source(query)
        elif isinstance(query, exp.Values):
            rows = float(len(query.expressions))
        elif isinstance(query, exp.Select):
            whole = not query.args.get("group") and any(e.find(exp.AggFunc) for e in query.expressions)
            limit = query.args.get("limit")
            most = constant(limit.args.get("expression") or limit) if limit else None
            rows = 1.0 if whole else min(self.of_select(query), float("inf") if most is None else most)
        self._known[id(query)] = rows
        return rows

    def _of_source(self, source: exp.Expr) -> float:
        inner = source.this
        if isinstance(source, exp.Subquery | exp.Lateral) and isinstance(inner, exp.Query | exp.Table):
            rows = self._of_source(inner) if isinstance(inner, exp.Table) else self._of_query(inner)
        elif isinstance(source, exp.Table) and isinstance(inner, exp.Identifier):
            cte = None if source.args.get("db") else self._ctes.get(source.name.lower())
            rows = _sequence(source.name) if cte is None else self._of_query(cte)
        elif isinstance(source, exp.Values):
            rows = len(source.expressions)
        else:
            rows = _elements(source) or 1.0
        return self._of_joins(source) * rows

    def _of_joins(self, node: exp.Expr) -> float:
        joins = node.args.get("joins") or ()
        return prod(self._of_source(join.this) for join in joins if _combines_all(join))


def branches(query: exp.Expr, *, brackets: bool = False) -> Iterator[exp.Expr]:
    """Yield the branches of a set operation; one that has a WITH of its own is not divided.

    Args:
        brackets: Divide those in brackets, and those with a WITH, as well.
    """
    todo = [query]
    while todo:  # a loop: generated unions may be thousands long
        node = todo.pop()
        if isinstance(node, exp.SetOperation) and (node is query or brackets or not node.args.get("with_")):
            todo += [node.right, node.left]
        elif brackets and isinstance(node, exp.Subquery):
            todo.append(node.this)
        else:
            yield node


def _combines_all(join: exp.Expr) -> bool:
    """True unless the join equates something of one side with something of the other."""
    if join.args.get("using") or join.text("method").upper() not in ("", "NATURAL"):
        return False  # NATURAL joins nothing by alias
    condition = join.args.get("on")
    tests = condition.flatten() if isinstance(condition, exp.And) else [condition]
    return not any(_equates(test.unnest()) for test in tests if test is not None)


def _equates(test: exp.Expr) -> bool:
    if not isinstance(test, exp.EQ | exp.NullSafeEQ):
        return False
    left, right = ({c.sql() for c in side.find_all(exp.Column)} for side in (test.left, test.right))
    return bool(left and right and left != right)


def _elements(source: exp.Expr) -> float | None:
    """Return the rows of a series of constants, or the elements of a list of them; None for anything else."""
    node = source.unalias()
    while isinstance(node, _WRAPPERS):
        node = node.expressions[0] if isinstance(node, exp.Unnest) and node.expressions else node.this
    arguments = _series_arguments(node) if isinstance(node, exp.Func) else None
    return None if arguments is None else _series_rows(arguments)


def _sequence(name: str) -> float:
    found = _SEQUENCE.fullmatch(name)
    if found is None:
        return 1.0
    return _series_rows([exp.Literal.number(part) if part else None for part in found.groups()]) or 1.0


def check_recursion(clauses: Iterable[exp.Expr], dialect: str) -> None:
    """Refuse a recursive WITH of which a step has no condition, no join to other data and no LIMIT.

    This finds the plain forms; a condition that never becomes false is left to the time limit.
    """
    for clause in clauses:
        if not (clause.args.get("recursive") or dialect in _RECURSES_UNSAID):
            continue
        for cte in clause.expressions:
            if _is_endless(cte, clause):
                what = f"The recursion of {cte.alias} has no end"
                raise NotPure(f"{what}: give its recursive part a WHERE or a LIMIT.", "recursion")


def check_hierarchy(clauses: Iterable[exp.Expr]) -> None:
    """Refuse a CONNECT BY that neither follows the data (PRIOR) nor has an upper bound."""
    for clause in clauses:
        condition = clause.args["connect"]
        if condition.find(exp.Prior) is None and not any(map(_is_bound, condition.find_all(exp.Predicate))):
            raise NotPure("CONNECT BY has no end: it needs PRIOR or an upper bound of LEVEL.", "recursion")


def _is_endless(cte: exp.Expr, clause: exp.Expr) -> bool:
    body = cte.this.unnest() if isinstance(cte.this, exp.Subquery) else cte.this
    if not isinstance(body, exp.SetOperation) or _is_limited(body):
        return False
    for step in branches(body, brackets=True):
        tables = (table for table in step.find_all(exp.Table) if not table.args.get("db"))
        if any(_is_named(table, cte.alias) for table in tables) and not _ends(step, cte.alias):
            return not _takes_first_rows(clause.parent)
    return False


def _is_named(node: exp.Expr, name: str) -> bool:
    return node.name.casefold() == name.casefold()


def _ends(step: exp.Expr, name: str) -> bool:
    """True if a recursive step has a LIMIT, meets other data, or has a condition on its own rows."""
    if _is_limited(step):
        return True
    source = step.args["from_"].this if step.args.get("from_") else None
    joins = step.args.get("joins") or ()
    conditions = [step.args.get(key) for key in ("where", "having", "qualify")]
    for join in joins:
        matched = join.args.get("using") or join.method == "NATURAL" or _unfolds(join.this)
        if matched and not _is_named(join.this, name):
            return True
        conditions.append(join.args.get("on"))
    if any(map(_unfolds, step.args.get("laterals") or ())):
        return True
    read = [each for each in (source, *(join.this for join in joins)) if each is not None]
    own = {each.alias_or_name.lower() for each in read if _is_named(each, name)}  # empty: read indirectly
    rising = _rising(step)
    for column in (c for test in conditions if test is not None for c in test.find_all(exp.Column)):
        if (not own or not column.table or column.table.lower() in own) and not _is_idle(column, rising):
            return True
    return isinstance(source, exp.Subquery) and _ends(source.this, name)


def _unfolds(node: exp.Expr) -> bool:
    """True for a table function or LATERAL over columns: it runs out when the data does."""
    kinds = (exp.Lateral, exp.Unnest, exp.TableFromRows)
    function = isinstance(node, kinds) or isinstance(node.this, exp.Func)
    return function and node.find(exp.Column) is not None


def _is_limited(query: exp.Expr) -> bool:
    """True for a LIMIT that ends something, as far as it is a constant."""
    limit = query.args.get("limit")
    if limit is None:
        return False
    rows = constant(limit.args.get("expression") or limit.args.get("count") or limit)
    return rows is None or 0 <= rows <= MAX_ROWS


def _rising(step: exp.Expr) -> dict[str, float]:
    """Return the columns that each step adds a constant to (``SELECT n + 1``), by lower-case name."""
    rising: dict[str, float] = {}
    for item in step.args.get("expressions") or ():
        value = item.unalias().unnest()
        if isinstance(value, exp.Add) and isinstance(value.this, exp.Column):
            by = constant(value.expression)
            if by is not None and by > 0:
                rising[value.this.name.lower()] = by
    return rising


def _is_idle(column: exp.Expr, rising: dict[str, float]) -> bool:
    """True if what the column is compared with never ends the recursion, or not in reasonable time.

    ``x <= x`` always holds, and so do ``n > 0``, ``n IS NOT NULL`` and ``n < n + 1`` where n grows;
    ``n < 1e12`` holds for too long.
    """
    test = column.find_ancestor(exp.Predicate)
    if test is None or not isinstance(test, exp.Binary):
        return isinstance(test, exp.In) and test.this in test.expressions
    left, right = test.left, test.right
    if left == right:
        return not isinstance(test, exp.NEQ | exp.LT | exp.GT)
    by = rising.get(column.name.lower())
    if by is None:
        return False
    if isinstance(test, exp.Is):
        return isinstance(test.parent, exp.Not)
    if isinstance(test, exp.GT | exp.GTE):
        left, right = right, left
    elif not isinstance(test, exp.LT | exp.LTE):
        return False
    if isinstance(left, exp.Column) and isinstance(right, exp.Add) and right.this == left:
        return True
    bound = constant(right if left.find(exp.Column) else left)
    return bound is not None and (left.find(exp.Column) is None or bound / by > MAX_ROWS)


def _is_bound(test: exp.Expr) -> bool:
    """True for an upper bound, such as ``LEVEL <= 10``."""
    if test.find(exp.Column) is None or not isinstance(test, exp.LT | exp.LTE | exp.EQ | exp.Between):
        return False
    bound = constant(test.args["high"] if isinstance(test, exp.Between) else test.args["expression"])
    return bound is None or bound <= MAX_ROWS


def _takes_first_rows(query: exp.Expr | None) -> bool:
    """True if the outer query only takes the first rows, so that the engine stops by itself."""
    if not isinstance(query, exp.Select) or not query.args.get("limit"):
        return False
    eager = any(query.args.get(key) for key in ("group", "order", "having", "distinct", "qualify", "joins"))
    return not eager and not any(e.find(exp.AggFunc, exp.Window) for e in query.expressions)
