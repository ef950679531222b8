"""How two answers differ, in words that a user understands.

From the queries' outlines (``quorum.tools.outline``): which columns, which conditions, what a row stands
for; from the results (``quorum.tools.differences``): which rows, which cells. Answers whose results are
equal do not disagree, however their SQL differs; the same rows in another order do where the question
asks for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from quorum.tools.cells import EXACT
from quorum.tools.compare import equal
from quorum.tools.differences import Differences, differences
from quorum.tools.outline import Outline, outline

if TYPE_CHECKING:
    import pyarrow as pa

MAX_SENTENCE = 240  # characters
MAX_PER_KIND = 4  # sentences on columns, on conditions, on rows
MAX_NAMED = 3  # things named in one sentence
MAX_VALUE = 60  # characters of a cell or a condition


@dataclass(frozen=True)
class Side:
    """One of the answers that disagree.

    Attributes:
        label: What users call it: A, B, C.
        sql: One query of those that gave it.
        table: Its result.
        ordered: The question asks for an order of the rows, so that another one is another answer.
    """

    label: str
    sql: str
    table: pa.Table = field(repr=False)
    ordered: bool = False

    def __str__(self) -> str:
        return f"answer {self.label}"


@dataclass(frozen=True)
class Disagreement:
    """How two answers differ: plain sentences on columns, on conditions and tables, and on rows."""

    labels: tuple[str, str]
    columns: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        return (*self.columns, *self.filters, *self.rows)

    def __bool__(self) -> bool:
        return bool(self.sentences)


def disagreement(a: Side, b: Side, dialect: str) -> Disagreement:
    """How two answers differ; the order of the arguments does not count. Empty if they are equal.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    first, second = sorted((a, b), key=lambda side: side.label)
    found = differences(first.table, second.table)
    labels = (first.label, second.label)
    ordered = first.ordered and second.ordered
    if found.relation == "equal" and (not ordered or equal(first.table, second.table, ordered=True)):
        return Disagreement(labels)
    outlines = outline(first.sql, dialect), outline(second.sql, dialect)
    told = _Telling((first, second), found, _both(outlines), ordered)
    if found.relation == "equal":
        return Disagreement(labels, rows=tuple(map(_sentence, told.order())))
    made = [tuple(islice(map(_sentence, part), MAX_PER_KIND)) for part in told.parts()]
    if not any(made):
        made[2] = (f"{_capital(str(first))} and {second} have different values.",)
    return Disagreement(labels, *made)


def disagreements(sides: Sequence[Side], dialect: str) -> list[str]:
    """How the first answer differs from each of the others, sentence by sentence."""
    told = [disagreement(sides[0], other, dialect).sentences for other in sides[1:]]
    return list(dict.fromkeys(sentence for sentences in told for sentence in sentences))


def describe(side: Side, dialect: str) -> str:
    """What an answer shows, in a sentence: "`city` and the number of rows, one row per `city`; 2 rows."

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    found, count = outline(side.sql, dialect), _rows(side.table.num_rows)
    if found is None:
        return _sentence(f"{_listed(map(_name, side.table.column_names))}; {count}")
    asked = sorted(found.filters | found.group_filters)
    parts = [_listed(map(_value, found.items))]
    parts += [_grain(found)] if found.grain else []
    parts += [f"where {_listed(map(_value, asked))}"] if asked else []
    return _sentence(f"{', '.join(parts)}; {count}")


def _both(outlines: tuple[Outline | None, Outline | None]) -> tuple[Outline, Outline] | None:
    one, other = outlines
    return (one, other) if one and other else None


@dataclass(frozen=True)
class _Telling:
    sides: tuple[Side, Side]
    found: Differences
    outlines: tuple[Outline, Outline] | None
    ordered: bool = False

    def parts(self) -> tuple[Iterator[str], Iterator[str], Iterator[str]]:
        return self.columns(), self.filters(), self.rows()

    def columns(self) -> Iterator[str]:
        found, more = self.found, {"contains": 0, "within": 1}.get(self.found.relation)
        if more is not None:
            extra = found.differing[more]
            count = "1 column" if len(extra) == 1 else f"{len(extra)} columns"
            yield f"{self.sides[more]} has {count} more: {_listed(map(_name, extra))}"
            return
        agreeing = found.agreeing and _listed(map(_name, found.agreeing))
        if agreeing and any(found.differing):
            yield f"they agree in {agreeing}"
        elif agreeing:
            yield "each column has the same values in both, but they stand in different rows"
        yield from self._own(self._shown(), "{} shows {}", "{} {}", "only {} shows {}")

    def _shown(self) -> tuple[list[str], list[str]]:
        """What only one side's query shows."""
        if not self.outlines:
            return [], []
        first, second = (list(dict.fromkeys(each.items)) for each in self.outlines)
        return [item for item in first if item not in second], [item for item in second if item not in first]

    def filters(self) -> Iterator[str]:
        if not self.outlines:
            return
        one, other = self.outlines
        asked = [each.filters | each.group_filters for each in self.outlines]
        own = [sorted(asked[0] - asked[1]), sorted(asked[1] - asked[0])]
        yield from self._own(own, "{} asks that {}", "{} that {}", "only {} asks that {}")
        tables = [sorted(one.tables - other.tables), sorted(other.tables - one.tables)]
        named = [[_name(table) for table in part] for part in tables]
        yield from self._own(named, "{} reads {}", "{} {}", "only {} reads {}")
        for table in sorted((one.kept ^ other.kept) & one.tables & other.tables):
            keeps = self._order(table in one.kept)
            yield f"{keeps[0]} keeps rows that have no match in {_name(table)}; {keeps[1]} leaves them out"
        if one.distinct != other.distinct:
            without = self._order(one.distinct)
            yield f"{without[0]} leaves out duplicate rows; {without[1]} keeps them"

    def rows(self) -> Iterator[str]:
        a, b = self.sides
        if self.outlines:
            one, other = self.outlines
            if one.grain != other.grain:
                yield f"{a} has {_grain(one)}; {b} {_grain(other)}"
            if one.limit != other.limit:
                yield f"{a} {_limit(one)}; {b} {_limit(other)}"
            if one.limit or other.limit or self.ordered:
                yield from self._sorted()
        if self.found.rows[0] != self.found.rows[1]:
            yield f"{a} has {_rows(self.found.rows[0])}, {b} {_rows(self.found.rows[1])}"
        key = f"{_name(self.found.key)} " if self.found.key else ""
        if not key and self.found.only == self.found.rows and self._shown() != ([], []):
            return  # other columns: that no row is the same says nothing new
        for side, count, some in zip(self.sides, self.found.only, self.found.only_examples, strict=True):
            if count:
                yield f"only {side} has {key}{_listed(map(_value, some), count)}"
        if example := self.found.example:
            says = f"{a} says {_value(example.first)}, {b} {_value(example.second)}"
            yield f"for {_value(example.row)}, {says}" if example.row else says

    def order(self) -> Iterator[str]:
        """What is to say where only the order of rows differs."""
        a, b = self.sides
        yield f"{a} and {b} have the same rows in another order"
        yield from self._sorted()

    def _sorted(self) -> Iterator[str]:
        if self.outlines and self.outlines[0].order != self.outlines[1].order:
            (a, b), (one, other) = self.sides, self.outlines
            yield f"{a} is sorted by {_sorting(one)}; {b} by {_sorting(other)}"

    def _own(self, own: Sequence[Sequence[str]], first: str, second: str, alone: str) -> Iterator[str]:
        """What only one side has, in one sentence."""
        said = [_listed(map(_value, part)) for part in own]
        a, b = self.sides
        if all(said):
            yield f"{first.format(a, said[0])}; {second.format(b, said[1])}"
        elif any(said):
            yield alone.format(*((a, said[0]) if said[0] else (b, said[1])))

    def _order(self, as_is: bool) -> tuple[Side, Side]:
        return self.sides if as_is else (self.sides[1], self.sides[0])


def _grain(each: Outline) -> str:
    if each.grain is None:
        return "single rows, not grouped"
    return f"one row per {_listed(sorted(each.grain))}" if each.grain else "one row over everything"


def _limit(each: Outline) -> str:
    if not each.limit:
        return "shows all"
    return f"stops after {each.limit} {'row' if each.limit == '1' else 'rows'}"


def _sorting(each: Outline) -> str:
    return _listed(each.order) or "nothing"


def _rows(count: int) -> str:
    return "no rows" if count == 0 else "1 row" if count == 1 else f"{count:,} rows"


def _name(name: str) -> str:
    return f"`{_value(name)}`"


def _value(value: Any) -> str:
    """A cell, a name or a condition on one line, shortened."""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        value = int(value)
    text = "NULL" if value is None else " ".join(str(value).split()) or "''"
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"


def _listed(things: Iterable[str], count: int | None = None) -> str:
    """``a, b and 3 more``; ``count`` is how many there are where ``things`` are examples."""
    told = list(things)
    total = len(told) if count is None else count
    shown = told[:MAX_NAMED]
    if total > len(shown):
        return f"{', '.join(shown)} and {total - len(shown):,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _sentence(said: str) -> str:
    text = said if len(said) < MAX_SENTENCE else f"{said[: MAX_SENTENCE - 2]}…"
    return f"{_capital(text)}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
