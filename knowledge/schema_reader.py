"""Schema text read back into a catalog, line by line (format: ``quorum.knowledge.schema_text``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table
from quorum.knowledge.name_ranges import MAX_EXPANSION, read_item
from quorum.knowledge.nested_text import Line, last_segment, rebuild
from quorum.knowledge.schema_grammar import (
    SchemaTextError,
    read_full_name,
    read_name,
    read_names,
    read_paths,
    read_type,
    read_values,
)

_TITLE = re.compile(r"# database ")
_KEY_LINE = re.compile(r"  (primary|foreign) key \(")
_FACT = re.compile(r"[0-9][0-9,]* tables|([0-9][0-9,]*) rows|rows (.*)")


@dataclass
class _Draft:
    """A column while its marks and nested lines are read."""

    name: str
    type: str
    description: str = ""
    samples: tuple[str, ...] = ()
    nullable: bool = True
    complete: bool = False
    exact: list[Line] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)

    def finish(self) -> Column:
        kind, declared = rebuild(self.name, self.type, self.exact) if self.exact else (self.type, ())
        fields = (*declared, *self.fields)
        return Column(self.name, kind, self.description, self.samples, fields, self.nullable, self.complete)


@dataclass
class _Block:
    """One block: what its header says and its body as read so far."""

    names: list[tuple[str, ...]]
    kind: str = "table"
    rows: list[int | None] = field(default_factory=list)
    base: tuple[str, ...] = ()
    description: str = ""
    told: dict[tuple[str, ...], str] = field(default_factory=dict)
    columns: list[_Draft] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    primary: tuple[str, ...] | None = None
    foreign: list[ForeignKey] = field(default_factory=list)


def read_schema(text: str) -> Catalog:
    """See ``quorum.knowledge.schema_text.parse_schema``."""
    return _Reader().read(text)


class _Reader:
    def __init__(self) -> None:
        self.name, self.dialect = "", ""
        self.notes: list[str] = []
        self.blocks: list[_Block] = []
        self.last: dict[str, str] = {}

    def read(self, text: str) -> Catalog:
        for number, line in enumerate(text.split("\n"), 1):
            try:
                self._line(line)
            except (IndexError, SchemaTextError) as error:
                raise SchemaTextError(f"line {number} is no schema text: {error}") from error
        finished: dict[tuple[str, ...], tuple[Column, ...]] = {}
        bases: dict[tuple[str, ...], _Block] = {}
        tables: list[Table] = []
        for block in self.blocks:
            made = tuple(_tables(block, finished, bases))
            finished |= dict.fromkeys(block.names, made[0].columns)
            bases |= dict.fromkeys(block.names, block)
            tables += made
        return Catalog(self.name, self.dialect, tuple(tables), tuple(self.notes))

    def _line(self, line: str) -> None:
        if line.startswith("#"):
            self._comment(line)
        elif line.startswith(("table ", "tables ")):
            self.blocks.append(_header(line))
        elif line.startswith("    "):
            self._nested(line)
        elif line.startswith("  "):
            self._body(line)
        elif line.strip():
            raise SchemaTextError(f"unexpected: {line[:80]}")

    def _comment(self, line: str) -> None:
        if line.startswith("# note: "):
            self.notes.append(line[8:])
        elif _TITLE.match(line) and not self.name:
            self.name, at = read_name(line, len("# database "))
            if line.startswith(" (", at):
                self.dialect, _ = read_name(line, at + 2)

    def _block(self) -> _Block:
        if not self.blocks:
            raise SchemaTextError("a column stands before the first table")
        return self.blocks[-1]

    def _body(self, line: str) -> None:
        block = self._block()
        if line == "  (columns unknown)":
            return
        if line.startswith("  - "):
            block.removed += read_names(line, 4)[0]
        elif line.startswith("  -- "):
            parts, at = read_full_name(line, 5)
            block.told[parts] = line[at + 2 :]
        elif _KEY_LINE.match(line):
            _key_line(block, line)
        else:
            self._column(block, line, 4 if line.startswith("  + ") else 2)

    def _column(self, block: _Block, line: str, at: int) -> None:
        names, at = read_names(line, at)
        kind, at = read_type(line, at + 1)
        drafts = [_Draft(name, kind) for name in names]
        if line.startswith(" PK", at):
            block.keys += names
            at += 3
        if line.startswith(" NOT NULL", at):
            at += 9
            for draft in drafts:
                draft.nullable = False
        if line.startswith(" -> ", at):
            parts, at = read_full_name(line, at + 4)
            table, column = ".".join(parts[:-1]), parts[-1]
            block.foreign += [ForeignKey((name,), table, (column,)) for name in names]
        if line.startswith(" [", at):
            drafts[0].samples, drafts[0].complete, at = read_values(line, at + 1)
        drafts[0].description = self._description(line, at, names[0])
        block.columns += drafts

    def _description(self, line: str, at: int, name: str) -> str:
        if line.startswith(" -- ", at):
            self.last[name] = line[at + 4 :]
        elif line[at:] != " --^":
            if at < len(line):
                raise SchemaTextError(f"unexpected behind a type: {line[at : at + 60]}")
            return ""
        if name not in self.last:
            raise SchemaTextError(f"--^ refers to nothing above: {line[:60]}")
        return self.last[name]

    def _nested(self, line: str) -> None:
        block = self._block()
        if not block.columns:
            raise SchemaTextError("a nested path stands before the first column")
        draft = block.columns[-1]
        mark = line[4] if line[4] in "~." else ""
        paths, at = read_paths(line, 4 + len(mark))
        kind, at = read_type(line, at + 1)
        if mark == "~":
            said = line[at + 4 :]
            draft.fields += [Field(path, kind, said, inferred=True) for path in paths]
            return
        said = self._description(line, at, last_segment(mark + paths[0]))
        if mark:
            draft.fields += [Field(path, kind, said) for path in paths]
        else:
            draft.exact += [Line(path, kind, said) for path in paths]


def _header(line: str) -> _Block:
    if line.startswith("table "):
        parts, at = read_full_name(line, 6)
        block = _Block([parts])
    else:
        names, at = _read_members(line, 7)
        block = _Block(names)
    if line.startswith(" (", at):
        at = _read_facts(block, line, at + 2)
    if line.startswith(" like ", at):
        base, at = read_full_name(line, at + 6)
        block.base = base
    if line.startswith(" -- ", at):
        block.description = line[at + 4 :]
    elif at < len(line):
        raise SchemaTextError(f"unexpected in a header: {line[at : at + 60]}")
    return block


def _read_members(line: str, at: int) -> tuple[list[tuple[str, ...]], int]:
    names: list[tuple[str, ...]] = []
    qualifier, at = _read_qualifier(line, at)
    while True:
        found, at = read_item(line, at)
        names += [(*qualifier, name) for name in found]
        if len(names) > MAX_EXPANSION:
            raise SchemaTextError("a group has too many members")
        if line.startswith("; ", at):
            qualifier, at = _read_qualifier(line, at + 2)
        elif line.startswith(", ", at):
            at += 2
        else:
            return names, at


def _read_qualifier(line: str, at: int) -> tuple[tuple[str, ...], int]:
    try:
        parts, behind = read_full_name(line, at)
    except SchemaTextError:
        return (), at
    return (parts, behind + 2) if line.startswith(": ", behind) else ((), at)


def _read_facts(block: _Block, line: str, at: int) -> int:
    if not line.startswith("rows ", at) and not line[at].isdigit():
        block.kind, at = read_name(line, at)
        at += 2 if line.startswith("; ", at) else 0
    end = line.index(")", at) if ")" in line[at:] else len(line)
    for fact in filter(None, line[at:end].split("; ")):
        found = _FACT.fullmatch(fact)
        if not found:
            raise SchemaTextError(f"unknown fact: {fact[:60]}")
        if found[1]:
            block.rows = [int(found[1].replace(",", ""))]
        elif found[2]:
            block.rows = _row_counts(found[2], len(block.names))
    return end + 1


def _row_counts(text: str, members: int) -> list[int | None]:
    if text.endswith(" each"):
        return [int(text.removesuffix(" each"))] * members
    return [None if count == "?" else int(count) for count in text.split(", ")]


def _key_line(block: _Block, line: str) -> None:
    at = line.index("(") + 1
    names, at = read_names(line, at)
    if line.startswith("  primary"):
        block.primary = tuple(names)
        return
    table, at = read_full_name(line, at + len(") -> "))
    theirs = tuple(read_names(line, at + 2)[0]) if line.startswith(" (", at) else ()
    block.foreign.append(ForeignKey(tuple(names), ".".join(table), theirs))


def _tables(
    block: _Block,
    finished: dict[tuple[str, ...], tuple[Column, ...]],
    bases: dict[tuple[str, ...], _Block],
) -> Iterator[Table]:
    own = [draft.finish() for draft in block.columns]
    kind, keyed = block.kind, block
    if block.base:
        if block.base not in finished:
            raise SchemaTextError(
                f"{'.'.join(block.base)} is not described above the tables that are like it"
            )
        own = _changed(finished[block.base], block.removed, own)
        keyed = bases[block.base]
    primary = keyed.primary if keyed.primary is not None else tuple(keyed.keys)
    for i, parts in enumerate(block.names):
        database, schema, name = ("", "", *parts)[-3:]
        rows = block.rows[i] if i < len(block.rows) else None
        told = block.told.get(parts, block.description)
        yield Table(name, tuple(own), schema, database, kind, told, rows, primary, tuple(keyed.foreign))


def _changed(base: tuple[Column, ...], removed: list[str], added: list[Column]) -> list[Column]:
    new = {column.name: column for column in added}
    kept = [new.pop(c.name, c) for c in base if c.name not in removed]
    return [replace(c) for c in kept] + list(new.values())
