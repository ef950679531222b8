"""Reads schema text back into a catalog: the oracle of its losslessness."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeAlias, TypeVar

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table
from quorum.knowledge.schema.grammar import BARE_NAME, BARE_PATH, Cell, bare_type_end
from quorum.knowledge.schema.name_ranges import ITEM, day_of
from quorum.knowledge.schema.nested import rebuild
from quorum.knowledge.schema.writer import last_segment

MAX_EXPANSION = 1_000_000
"""Names that one item may stand for: text is data, and may be hostile."""

T = TypeVar("T")
Counts: TypeAlias = tuple[int | None, int | None]
"""Rows of a table, and how many of them differ where that is fewer."""
_FACT = re.compile(r"[0-9][0-9,]* tables|([0-9][0-9,]*) rows(?:, ([0-9][0-9,]*) distinct)?|rows (.*)")
_COUNT = re.compile(r"([0-9]+)(?: with ([0-9]+) distinct)?")
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
_QUOTED = {mark: re.compile(rf"{mark}((?:[^{mark}\\]|{mark}{mark}|\\.)*){mark}") for mark in '"`'}
_UNESCAPE = re.compile(r"\\u([0-9a-f]{4})|\\(.)")
_ODDITIES = re.compile(r'(?:"(?:[^"\\]|""|\\.)*"|(?! --[ ^]).)*')
_BARE_VALUE = re.compile(r"[^,\]]*")


class SchemaTextError(Exception):
    """A text that should be schema text cannot be read; the message names the line."""


def parse_schema(text: str) -> Catalog:
    """Read schema text back into a catalog: the inverse of ``quorum.knowledge.compress.render``.

    Every table, column name, type, nested path, key and row count comes back exactly.
    Tables come in the text's order; members of a group all get the columns, descriptions, samples and
    inferred paths that the text gives for the group. Descriptions and samples are as (cut as) the text
    has them.

    Raises:
        SchemaTextError: A line does not follow the format; the message quotes it.
    """
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), 1):
        try:
            reader.line(line)
        except (ValueError, SchemaTextError) as error:
            raise SchemaTextError(f"line {number} is no schema text: {error}") from error
    reader.end_block()
    return Catalog(reader.name, reader.dialect, tuple(reader.tables), tuple(reader.notes))


@dataclass
class _Column:
    """A column while its nested lines are read."""

    column: Column
    exact: list[Field] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)

    def finish(self) -> Column:
        if not (self.exact or self.fields):
            return self.column
        kind, declared = rebuild(self.column.name, self.column.type, self.exact)
        return replace(self.column, type=kind, fields=(*declared, *self.fields))


@dataclass
class _Block:
    """What the header of a block says, and its body as read so far."""

    names: list[tuple[str, ...]]
    kind: str = "table"
    counts: list[Counts] = field(default_factory=list)
    base: Table | None = None
    description: str = ""
    member_descriptions: dict[tuple[str, ...], str] = field(default_factory=dict)
    columns: list[_Column] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    primary: list[str] = field(default_factory=list)
    foreign: list[ForeignKey] = field(default_factory=list)
    member: tuple[str, ...] = ()
    rows: dict[tuple[str, ...], list[list[Cell]]] = field(default_factory=dict)
    samples: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = field(default_factory=dict)

    def filled(self, member: tuple[str, ...], columns: Sequence[Column]) -> list[Column]:
        """The columns with what lines below them tell of one table."""
        own = self.samples.get(member, {})
        columns = [replace(c, samples=own[c.name], complete=False) if c.name in own else c for c in columns]
        rows = self.rows.get(member, ())
        if any(len(row) != len(columns) for row in rows):
            raise SchemaTextError(f"a row of {'.'.join(member)} has more or fewer values than columns")
        cells = zip(*rows, strict=True) if rows else ((),) * len(columns)
        return [
            column.with_cells(values) if values and ... not in values else column
            for column, values in zip(columns, cells, strict=True)
        ]


class _Reader:
    def __init__(self) -> None:
        self.name, self.dialect = "", ""
        self.notes: list[str] = []
        self.tables: list[Table] = []
        self._known: dict[tuple[str, ...], Table] = {}
        self._open: _Block | None = None
        self._last: dict[str, str] = {}  # the last description of each name

    def line(self, line: str) -> None:
        if line.startswith("#"):
            self._comment(line)
        elif line.startswith(("table ", "tables ")):
            self.end_block()
            self._open = self._header(line)
        elif line.startswith("    "):
            self._nested(Scanner(line, 4))
        elif line.startswith("  "):
            self._body(Scanner(line, 2))
        elif line.strip():
            raise SchemaTextError(f"unexpected: {line[:80]}")

    def end_block(self) -> None:
        block, self._open = self._open, None
        if block is None:
            return
        columns = [column.finish() for column in block.columns]
        primary, foreign = tuple(block.primary), tuple(block.foreign)
        if block.base is not None:
            columns = _changed(block.base.columns, block.removed, columns)
            primary, foreign = block.base.primary_key, block.base.foreign_keys
        for i, parts in enumerate(block.names):
            database, schema, name = ("", "", *parts)[-3:]
            rows, distinct = block.counts[i] if i < len(block.counts) else (None, None)
            text = block.member_descriptions.get(parts, block.description)
            own = tuple(block.filled(parts, columns))
            keys = primary, foreign, distinct
            table = Table(name, own, schema, database, block.kind, text, rows, *keys)
            self.tables.append(table)
            self._known[parts] = table

    def _comment(self, line: str) -> None:
        if line.startswith("# note: "):
            self.notes.append(line[8:])
        elif line.startswith("# database ") and not self.name:
            scanner = Scanner(line, len("# database "))
            self.name = scanner.name()
            if scanner.take(" ("):
                self.dialect = scanner.name()

    def _header(self, line: str) -> _Block:
        scanner = Scanner(line)
        block = _Block([scanner.full_name()] if scanner.take("table ") else read_members(scanner))
        if scanner.take(" ("):
            block.kind, block.counts = read_facts(scanner, len(block.names))
        if scanner.take(" like "):
            base = scanner.full_name()
            if base not in self._known:
                raise SchemaTextError(f"{'.'.join(base)} is not described above the tables that are like it")
            block.base = self._known[base]
        if scanner.take(" -- "):
            block.description = scanner.rest
        elif scanner.rest:
            raise SchemaTextError(f"unexpected in a header: {scanner.rest[:60]}")
        return block

    def _block(self) -> _Block:
        if self._open is None:
            raise SchemaTextError("a column stands before the first table")
        return self._open

    def _body(self, scanner: Scanner) -> None:
        block = self._block()
        if scanner.rest == "(columns unknown)":
            return
        if scanner.take("- "):
            block.removed += scanner.names()
        elif scanner.take("-- "):
            parts = scanner.full_name()
            block.member_descriptions[parts] = scanner.rest.removeprefix(": ")
        elif scanner.take("= "):
            block.member = scanner.full_name()
            while scanner.take(": ") or scanner.take(", "):
                column = scanner.name()
                scanner.take(" ")
                block.samples.setdefault(block.member, {})[column] = scanner.values()[0]
        elif scanner.take("| "):
            block.rows.setdefault(block.member or block.names[0], []).append(scanner.row())
        elif scanner.take("primary key ("):
            block.primary = scanner.names()
        elif scanner.take("foreign key ("):
            block.foreign.append(_foreign_key(scanner))
        else:
            scanner.take("+ ")
            self._columns(block, scanner)

    def _columns(self, block: _Block, scanner: Scanner) -> None:
        names = scanner.names()
        scanner.take(" ")
        kind = scanner.type()
        if scanner.take(" PK"):
            block.primary += names
        nullable, nulls = not scanner.take(" NOT NULL"), scanner.take(" :NULLs")
        if scanner.take(" -> "):
            *table, column = scanner.full_name()
            block.foreign += [ForeignKey((name,), ".".join(table), (column,)) for name in names]
        columns = [Column(name, kind, nullable=nullable, nulls=nulls) for name in names]
        if scanner.rest.startswith(" ["):
            scanner.take(" ")
            samples, complete = scanner.values()
            columns[0] = replace(columns[0], samples=samples, complete=complete)
        if scanner.take(" ! "):
            scanner.oddities()
        columns[0] = replace(columns[0], description=self._description(scanner, names[0]))
        block.columns += map(_Column, columns)

    def _description(self, scanner: Scanner, name: str) -> str:
        if scanner.take(" -- "):
            self._last[name] = scanner.rest
        elif scanner.rest != " --^":
            if scanner.rest:
                raise SchemaTextError(f"unexpected behind a type: {scanner.rest[:60]}")
            return ""
        if name not in self._last:
            raise SchemaTextError(f"--^ refers to nothing above: {scanner.line[:60]}")
        return self._last[name]

    def _nested(self, scanner: Scanner) -> None:
        block = self._block()
        if not block.columns:
            raise SchemaTextError("a nested path stands before the first column")
        column = block.columns[-1]
        mark = next((mark for mark in "~." if scanner.take(mark)), "")
        paths = scanner.paths()
        scanner.take(" ")
        kind = scanner.type()
        if mark == "~":
            text = scanner.rest.removeprefix(" -- ")
        else:
            text = self._description(scanner, last_segment(mark + paths[0]))
        found = column.fields if mark else column.exact
        found += [Field(path, kind, text, inferred=mark == "~") for path in paths]


def _foreign_key(scanner: Scanner) -> ForeignKey:
    names = scanner.names()
    scanner.take(") -> ")
    table = scanner.full_name()
    theirs = scanner.names() if scanner.take(" (") else ()
    return ForeignKey(tuple(names), ".".join(table), tuple(theirs))


def _changed(base: Sequence[Column], removed: Sequence[str], added: Sequence[Column]) -> list[Column]:
    new = {column.name: column for column in added}
    return [new.pop(c.name, c) for c in base if c.name not in removed] + list(new.values())


class Scanner:
    """Reads the tokens of a line from left to right.

    Every method moves ``at``, the index of what comes next, and raises ``SchemaTextError`` where that is
    something else.
    """

    def __init__(self, line: str, at: int = 0) -> None:
        self.line, self.at = line, at

    @property
    def rest(self) -> str:
        """What has not been read."""
        return self.line[self.at :]

    def take(self, text: str) -> bool:
        """Pass over ``text`` if it comes next; whether it does."""
        found = self.line.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _token(self, bare: re.Pattern[str], what: str, marks: str = '"') -> str:
        mark = next((mark for mark in marks if self.line.startswith(mark, self.at)), "")
        found = (_QUOTED[mark] if mark else bare).match(self.line, self.at)
        if not found:
            raise SchemaTextError(f"{'a quoted name has no end' if mark else what}: {self.rest[:60]}")
        self.at = found.end()
        if not mark:
            return found[0]
        text = _UNESCAPE.sub(_unescape, found[1].replace(mark * 2, mark)).encode("utf-16-be", "surrogatepass")
        return text.decode("utf-16-be", "surrogatepass")  # joins pairs of surrogates

    def _separated(self, read: Callable[[], T], by: str = ", ") -> list[T]:
        found = [read()]
        while self.take(by):
            found.append(read())
        return found

    def name(self) -> str:
        """A name."""
        return self._token(BARE_NAME, "a name is expected", '"`')

    def names(self) -> list[str]:
        """Names joined by commas."""
        return self._separated(self.name)

    def full_name(self) -> tuple[str, ...]:
        """The parts of a dotted name."""
        return tuple(self._separated(self.name, "."))

    def paths(self) -> list[str]:
        """Nested paths joined by commas."""
        return self._separated(lambda: self._token(BARE_PATH, "a path is expected"))

    def type(self) -> str:
        """A type, up to the first mark behind it."""
        if self.line.startswith('"', self.at):
            return self.name()
        start, self.at = self.at, bare_type_end(self.line, self.at)
        return self.line[start : self.at]

    def oddities(self) -> str:
        """What is odd about a column, up to its description."""
        found = _ODDITIES.match(self.line, self.at)
        assert found is not None
        self.at = found.end()
        return found[0]

    def row(self) -> list[Cell]:
        """The values of a row."""
        return self._separated(self._cell)

    def _cell(self) -> Cell:
        marks: dict[str, Cell] = {"NULL": None, "*": ...}
        quoted = self.line.startswith('"', self.at)
        text = self._token(_BARE_VALUE, "")
        return text if quoted else marks.get(text, text)

    def values(self) -> tuple[tuple[str, ...], bool]:
        """The values in brackets, and whether the text says that there are no others."""
        if self.take("[NULL only]"):
            return (), True
        complete = self.take("[all: ")
        if not complete:
            self.take("[")
        values = self._separated(lambda: self._token(_BARE_VALUE, ""))
        if not self.take("]"):
            raise SchemaTextError(f"sample values have no end: {self.line[:60]}")
        return tuple(values), complete


def _unescape(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return _UNESCAPES.get(escape[2], escape[2])


def read_members(scanner: Scanner) -> list[tuple[str, ...]]:
    """The full names of the tables that ``tables `` is followed by."""
    scanner.take("tables ")
    names: list[tuple[str, ...]] = []
    qualifier = _qualifier(scanner)
    while True:
        names += [(*qualifier, name) for name in read_item(scanner)]
        if len(names) > MAX_EXPANSION:
            raise SchemaTextError("a group has too many members")
        if scanner.take("; "):
            qualifier = _qualifier(scanner)
        elif not scanner.take(", "):
            return names


def _qualifier(scanner: Scanner) -> tuple[str, ...]:
    start = scanner.at
    try:
        parts = scanner.full_name()
    except SchemaTextError:
        parts = ()
    if parts and scanner.take(": "):
        return parts
    scanner.at = start
    return ()


def read_facts(scanner: Scanner, tables: int) -> tuple[str, list[Counts]]:
    """The kind, and the counts of each table where they are told; the bracket is passed over."""
    kind, counts = "table", list[Counts]()
    if not scanner.rest.startswith("rows ") and not scanner.rest[:1].isdigit():
        kind = scanner.name()
        scanner.take("; ")
    text = scanner.rest.partition(")")[0]
    for fact in filter(None, text.split("; ")):
        found = _FACT.fullmatch(fact)
        if not found:
            raise SchemaTextError(f"unknown fact: {fact[:60]}")
        if found[1]:
            counts = [(_number(found[1]), _number(found[2]))]
        elif found[3]:
            each = found[3].endswith(" each")
            counts = [_counts(count) for count in found[3].removesuffix(" each").split(", ")]
            counts *= tables if each else 1
    scanner.take(text + ")")
    return kind, counts


def _counts(text: str) -> Counts:
    found = _COUNT.fullmatch(text)
    if not found and text != "?":
        raise SchemaTextError(f"no number of rows: {text[:60]}")
    return (_number(found[1]), _number(found[2])) if found else (None, None)


def _number(text: str | None) -> int | None:
    return int(text.replace(",", "")) if text else None


def read_item(scanner: Scanner) -> list[str]:
    """The names that the next item stands for.

    Raises:
        SchemaTextError: It is no item, or stands for more than a million names.
    """
    found = ITEM.match(scanner.line, scanner.at)
    if not found:
        return [scanner.name()]
    scanner.at = found.end()
    return [found[2] + value + found[4] for part in found[3].split(", ") for value in _expand(part)]


def _expand(part: str) -> list[str]:
    first, dots, last = part.partition("..")
    if not dots:
        return [first]
    one, other = day_of(first), day_of(last)
    if one and other:
        return [(one + timedelta(days=n)).strftime("%Y%m%d").zfill(8) for n in range((other - one).days + 1)]
    count = int(last) - int(first) + 1
    if not 0 < count <= MAX_EXPANSION or len(first) != len(last):
        raise SchemaTextError(f"a range of names that cannot be expanded: {part[:60]}")
    return [str(int(first) + n).zfill(len(first)) for n in range(count)]
