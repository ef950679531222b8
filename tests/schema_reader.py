"""Reads schema text back into a catalog: the oracle of its losslessness.

A line that does not follow the format of ``quorum.knowledge.schema.writer`` fails an assertion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias, TypeVar

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table
from quorum.knowledge.schema.grammar import BARE_NAME, BARE_PATH, Cell, bare_type_end
from quorum.knowledge.schema.name_ranges import ITEM, day_of
from quorum.knowledge.schema.nested import rebuild
from quorum.knowledge.schema.writer import last_segment

T = TypeVar("T")
Name: TypeAlias = tuple[str, ...]
"""The parts of a table's full name."""

_FACT = re.compile(r"[0-9,]+ tables|([0-9,]+) rows(?:, ([0-9,]+) distinct)?|rows (.*?)( each)?")
_COUNT = re.compile(r"([0-9]+)(?: with ([0-9]+) distinct)?|\?")
_QUOTED = re.compile(r'(["`])((?:(?!\1)[^\\]|\1\1|\\.)*)\1')
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|(.))")
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_ODDITIES = re.compile(r'(?:"(?:[^"\\]|""|\\.)*"|(?! --[ ^]).)*')
_BARE_VALUE = re.compile(r"[^,\]]*")


def parse_schema(text: str) -> Catalog:
    """Read schema text back into a catalog: the inverse of ``quorum.knowledge.schema.render.render``.

    Every table, column name, type, nested path, key and row count comes back exactly. Tables come in the
    text's order; members of a group all get the columns, descriptions, samples and inferred paths that the
    text gives for the group. Descriptions and samples are as (cut as) the text has them.
    """
    title, *lines = text.split("\n")
    scanner = Scanner(title)
    assert scanner.take("# database ")
    name, _, dialect = scanner.name(), scanner.take(" ("), scanner.name()
    notes = tuple(line.removeprefix("# note: ") for line in lines if line.startswith("# note: "))
    tables: dict[Name, Table] = {}
    said: dict[str, str] = {}
    block = None
    for line in (line for line in [*lines, "table "] if line and line[0] != "#"):
        if line.startswith("table"):
            tables |= block.tables() if block else {}
            block = _Block(Scanner(line), tables, said) if line != "table " else None
        else:
            assert block, f"before the first table: {line}"
            block.line(line)
    return Catalog(name, dialect, tuple(tables.values()), notes)


class _Block:
    """What the header of a block says, and its body as read so far.

    Args:
        known: The tables of earlier blocks.
        said: The last description of each name, which ``--^`` repeats.
    """

    def __init__(self, scanner: Scanner, known: dict[Name, Table], said: dict[str, str]) -> None:
        self.names = [scanner.full_name()] if scanner.take("table ") else scanner.members()
        kind, counts = scanner.facts(len(self.names)) if scanner.take(" (") else ("table", [])
        self.kind, self.counts = kind, counts or [(None, None)] * len(self.names)
        self.base = known[scanner.full_name()] if scanner.take(" like ") else None
        text = scanner.rest if scanner.take(" -- ") else ""
        assert text == scanner.rest, f"unexpected in a header: {scanner.rest}"
        self.descriptions = dict.fromkeys(self.names, text)
        self.columns: list[Column] = []
        self.nested: list[tuple[list[Field], list[Field]]] = []  # of each column: exact paths, relative ones
        self.removed: list[str] = []
        self.primary: list[str] = []
        self.foreign: list[ForeignKey] = []
        self.member = self.names[0]
        self.rows: dict[Name, list[list[Cell]]] = {}
        self.samples: dict[Name, dict[str, tuple[str, ...]]] = {}
        self._said = said

    def tables(self) -> dict[Name, Table]:
        """The block's tables by their full names."""
        columns = [self._finished(*each) for each in zip(self.columns, self.nested, strict=True)]
        primary, foreign = tuple(self.primary), tuple(self.foreign)
        if self.base:
            primary, foreign = self.base.primary_key, self.base.foreign_keys
            new = {column.name: column for column in columns}
            kept = [column for column in self.base.columns if column.name not in self.removed]
            columns = [new.pop(column.name, column) for column in kept] + list(new.values())
        return {
            name: Table(
                name[-1],
                tuple(self._filled(name, columns)),
                *("", "", *name)[-2:-4:-1],
                self.kind,
                self.descriptions[name],
                rows,
                primary,
                foreign,
                distinct,
            )
            for name, (rows, distinct) in zip(self.names, self.counts, strict=True)
        }

    def _finished(self, column: Column, nested: tuple[list[Field], list[Field]]) -> Column:
        exact, relative = nested
        kind, declared = rebuild(column.name, column.type, exact) if exact else (column.type, ())
        return replace(column, type=kind, fields=(*declared, *relative))

    def _filled(self, name: Name, columns: list[Column]) -> Iterator[Column]:
        """The columns with what lines below them tell of one table."""
        rows, own = self.rows.get(name, []), self.samples.get(name, {})
        for column, *cells in zip(columns, *rows, strict=True):
            if column.name in own:
                yield replace(column, samples=own[column.name], complete=False)
            else:
                yield column.with_cells(cells) if cells and ... not in cells else column

    def line(self, line: str) -> None:
        scanner = Scanner(line)
        if scanner.take("    "):
            self._nested_line(scanner)
            return
        assert scanner.take("  "), f"unexpected: {line}"
        if scanner.take("- "):
            self.removed += scanner.names()
        elif scanner.take("-- "):
            name = scanner.full_name()
            self.descriptions[name] = scanner.rest.removeprefix(": ")
        elif scanner.take("= "):
            self.member = scanner.full_name()
            while scanner.take(": ") or scanner.take(", "):
                column, _, (values, _) = scanner.name(), scanner.take(" "), scanner.values()
                self.samples.setdefault(self.member, {})[column] = values
        elif scanner.take("| "):
            self.rows.setdefault(self.member, []).append(scanner.row())
        elif scanner.take("primary key ("):
            self.primary = scanner.names()
        elif scanner.take("foreign key ("):
            names, _, table = scanner.names(), scanner.take(") -> "), scanner.full_name()
            theirs = scanner.names() if scanner.take(" (") else ()
            self.foreign.append(ForeignKey(tuple(names), ".".join(table), tuple(theirs)))
        elif scanner.rest != "(columns unknown)":
            scanner.take("+ ")
            self._columns(scanner)

    def _columns(self, scanner: Scanner) -> None:
        names, _, kind = scanner.names(), scanner.take(" "), scanner.type()
        self.primary += names if scanner.take(" PK") else []
        nullable, nulls = not scanner.take(" NOT NULL"), scanner.take(" :NULLs")
        if scanner.take(" -> "):
            *table, column = scanner.full_name()
            self.foreign += [ForeignKey((name,), ".".join(table), (column,)) for name in names]
        samples, complete = (
            scanner.values() if scanner.rest.startswith(" [") and scanner.take(" ") else ((), False)
        )
        if scanner.take(" ! "):
            scanner.match(_ODDITIES)
        first = Column(names[0], kind, self._description(scanner, names[0]), samples, (), nullable, complete)
        self.columns += [
            replace(first, nulls=nulls),
            *(Column(n, kind, nullable=nullable, nulls=nulls) for n in names[1:]),
        ]
        self.nested += [([], []) for _ in names]

    def _nested_line(self, scanner: Scanner) -> None:
        mark = next((mark for mark in "~." if scanner.take(mark)), "")
        paths, _, kind = scanner.paths(), scanner.take(" "), scanner.type()
        if mark == "~":
            text = scanner.rest.removeprefix(" -- ")
        else:
            text = self._description(scanner, last_segment(mark + paths[0]))
        found = self.nested[-1][1 if mark else 0]
        found += [Field(path, kind, text, inferred=mark == "~") for path in paths]

    def _description(self, scanner: Scanner, name: str) -> str:
        if scanner.take(" -- "):
            self._said[name] = scanner.rest
        elif scanner.rest != " --^":
            assert not scanner.rest, f"unexpected behind a type: {scanner.rest}"
            return ""
        return self._said[name]


class Scanner:
    """Reads the tokens of a line from left to right; ``at`` is the index of what comes next."""

    def __init__(self, line: str) -> None:
        self.line, self.at = line, 0

    @property
    def rest(self) -> str:
        """What has not been read."""
        return self.line[self.at :]

    def take(self, text: str) -> bool:
        """Pass over ``text`` if it comes next; whether it does."""
        found = self.line.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Pass over what matches."""
        found = pattern.match(self.line, self.at)
        assert found, f"{pattern.pattern} is expected: {self.rest}"
        self.at = found.end()
        return found

    def _token(self, bare: re.Pattern[str], marks: str = '"') -> str:
        if self.rest[:1] not in set(marks):
            return self.match(bare)[0]
        found = self.match(_QUOTED)
        text = _ESCAPE.sub(_unescape, found[2].replace(found[1] * 2, found[1]))
        return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")  # joins pairs

    def _separated(self, read: Callable[[], T], by: str = ", ") -> list[T]:
        found = [read()]
        while self.take(by):
            found.append(read())
        return found

    def name(self) -> str:
        return self._token(BARE_NAME, '"`')

    def names(self) -> list[str]:
        return self._separated(self.name)

    def full_name(self) -> Name:
        return tuple(self._separated(self.name, "."))

    def paths(self) -> list[str]:
        return self._separated(lambda: self._token(BARE_PATH))

    def type(self) -> str:
        """A type, up to the first mark behind it."""
        if self.line.startswith('"', self.at):
            return self.name()
        start, self.at = self.at, bare_type_end(self.line, self.at)
        return self.line[start : self.at]

    def row(self) -> list[Cell]:
        return self._separated(self._cell)

    def _cell(self) -> Cell:
        marks: dict[str, Cell] = {"NULL": None, "*": ...}
        quoted = self.line.startswith('"', self.at)
        text = self._token(_BARE_VALUE)
        return text if quoted else marks.get(text, text)

    def values(self) -> tuple[tuple[str, ...], bool]:
        """The values in brackets, and whether the text says that there are no others."""
        if self.take("[NULL only]"):
            return (), True
        complete = self.take("[all: ")
        assert complete or self.take("[")
        values = self._separated(lambda: self._token(_BARE_VALUE))
        assert self.take("]"), f"sample values have no end: {self.line}"
        return tuple(values), complete

    def members(self) -> list[Name]:
        """The full names of the tables that ``tables `` is followed by."""
        assert self.take("tables ")
        return [name for names in self._separated(self._of_one_schema, "; ") for name in names]

    def _of_one_schema(self) -> list[Name]:
        start, qualifier = self.at, self.full_name()
        if not self.take(": "):
            self.at, qualifier = start, ()
        return [(*qualifier, name) for names in self._separated(self.item) for name in names]

    def item(self) -> list[str]:
        """The names that an item stands for."""
        if not (found := ITEM.match(self.line, self.at)):
            return [self.name()]
        self.at = found.end()
        return [found[2] + value + found[4] for part in found[3].split(", ") for value in _expanded(part)]

    def facts(self, tables: int) -> tuple[str, list[tuple[int | None, int | None]]]:
        """The kind, and rows and different rows of each table where they are told; passes the bracket."""
        kind, counts = "table", []
        if not self.rest.startswith("rows ") and not self.rest[:1].isdigit():
            kind = self.name()
            self.take("; ")
        text = self.rest.partition(")")[0]
        for fact in filter(None, text.split("; ")):
            found = _FACT.fullmatch(fact)
            assert found, f"unknown fact: {fact}"
            if found[1]:
                counts = [(_number(found[1]), _number(found[2]))]
            elif found[3]:
                pairs = [_COUNT.fullmatch(count) for count in found[3].split(", ")]
                counts = [(_number(pair[1]), _number(pair[2])) for pair in pairs if pair]
                counts *= tables if found[4] else 1
        assert self.take(text + ")")
        return kind, counts


def _unescape(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _UNESCAPES.get(escape[2], escape[2])


def _number(text: str | None) -> int | None:
    return int(text.replace(",", "")) if text else None


def _expanded(part: str) -> list[str]:
    first, _, last = part.partition("..")
    last = last or first
    if (one := day_of(first)) and (other := day_of(last)):
        return [(one + timedelta(days=n)).strftime("%Y%m%d").zfill(8) for n in range((other - one).days + 1)]
    return [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
