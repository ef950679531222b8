"""The lines of schema text for one layout at one level of detail (format: ``knowledge.schema_text``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from quorum.knowledge.catalog import Column, ForeignKey, Table
from quorum.knowledge.layouts import Layout
from quorum.knowledge.nested_text import Line, last_segment, parents_needed, spell
from quorum.knowledge.schema_grammar import (
    one_line,
    write_full_name,
    write_name,
    write_path,
    write_type,
    write_values,
)
from quorum.knowledge.schema_header import name_parts, written_facts, written_members

LINE_CHARS = 200
"""Names that share a type are wrapped at this many characters."""

_SHORT = 12  # a description up to this long is repeated rather than referred to


@dataclass(frozen=True)
class Detail:
    """How much is said beyond names and types.

    Attributes:
        samples: Sample values of a column.
        sample_chars: Characters of a sample value.
        description_chars: Characters of a description; None for all of it, 0 for none.
    """

    samples: int
    sample_chars: int
    description_chars: int | None


@dataclass
class Tally:
    """What was known and what was shown of it."""

    descriptions: int = 0
    omitted: int = 0
    cut: int = 0
    disputed: int = 0
    sampled: int = 0
    unsampled: int = 0

    def left_out(self) -> tuple[str, ...]:
        """What is missing, one part each; empty when nothing is."""
        parts = [
            (self.omitted, f"{self.omitted:,} of {self.descriptions:,} descriptions"),
            (self.cut, f"the ends (…) of {self.cut:,} descriptions"),
            (self.disputed, f"{self.disputed:,} descriptions in which tables of one group differ"),
            (self.unsampled, f"sample values of {self.unsampled:,} of {self.sampled:,} columns"),
        ]
        return tuple(text for count, text in parts if count)


@dataclass
class Writer:
    """Writes blocks in order; remembers what was used, for the legend and for ``--^``.

    With ``pack`` off every column and path has a line of its own, and no line refers to another.
    """

    detail: Detail
    pack: bool = True
    tally: Tally = field(default_factory=Tally)
    used: set[str] = field(default_factory=set)
    spelt: dict[int, tuple[str, list[Line]]] = field(default_factory=dict)
    members: dict[int, tuple[str, list[Table]]] = field(default_factory=dict)
    _last: dict[str, str] = field(default_factory=dict)

    def block(self, layout: Layout) -> list[str]:
        """The lines of one layout: header, columns, keys."""
        header, ordered = self._header(layout)
        lines = [header, *self._member_descriptions(ordered)]
        self.tally.disputed += layout.disputed
        if layout.base is not None:
            self.used |= {"like"}
            lines += self._wrapped("  - ", layout.removed)
            added = self._columns(layout.added, ordered[0])
            return lines + [line if line[2] == " " else f"  + {line[2:]}" for line in added]
        if not layout.columns:
            return [*lines, "  (columns unknown)"]
        lines += self._columns(layout.columns, ordered[0])
        return [*lines, *self._keys(ordered[0])]

    def _header(self, layout: Layout) -> tuple[str, list[Table]]:
        members, ordered = self._members(layout)
        one = len(ordered) == 1
        self.used |= set() if one else {"tables"}
        facts = written_facts(ordered)
        parts = [f"table {write_full_name(name_parts(ordered[0]))}" if one else f"tables {members}"]
        parts += [f"({'; '.join(facts)})"] if facts else []
        if layout.base is not None:
            parts.append(f"like {write_full_name(name_parts(self._members(layout.base)[1][0]))}")
        told = {table.description for table in ordered}
        said = self._shown(ordered[0].description) if len(told) == 1 else ""
        return " ".join(parts) + (f" -- {said}" if said else ""), ordered

    def _members(self, layout: Layout) -> tuple[str, list[Table]]:
        known = self.members.get(id(layout))
        if known is None:
            known = self.members[id(layout)] = written_members(layout.tables)
        return known

    def _member_descriptions(self, tables: Sequence[Table]) -> Iterator[str]:
        if len({table.description for table in tables}) > 1:
            for table in tables:
                said = self._shown(table.description)
                if said:
                    yield f"  -- {write_full_name(name_parts(table))}: {said}"

    def _shown(self, description: str) -> str:
        """A description at this level of detail; counts what is not shown of it."""
        whole = one_line(description)
        if not whole:
            return ""
        self.tally.descriptions += 1
        limit = self.detail.description_chars
        if limit == 0:
            self.tally.omitted += 1
            return ""
        self.used.add("--")
        shown = one_line(whole, limit)
        self.tally.cut += shown != whole
        return shown

    def _described(self, name: str, description: str) -> str:
        said = self._shown(description)
        if not said:
            return ""
        if self.pack and len(said) > _SHORT and self._last.get(name) == said:
            self.used.add("--^")
            return " --^"
        self._last[name] = said
        return f" -- {said}"

    def _columns(self, columns: Sequence[Column], table: Table) -> list[str]:
        run: list[str] = []
        tail = ""
        lines: list[str] = []
        for column in columns:
            kind, nested = self._spell(column)
            marks = self._marks(column, table)
            written = write_type(kind)
            plain = f" {written}{' NOT NULL' if not column.nullable else ''}"
            said = self._described(column.name, column.description)
            rest = f" {written}{marks}{self._samples(column)}{said}"
            if self.pack and rest == plain and not nested:
                if rest != tail:
                    lines += self._packed("  ", run, tail)
                    run, tail = [], rest
                run.append(write_name(column.name))
                continue
            lines += self._packed("  ", run, tail)
            run, tail = [], ""
            lines.append(f"  {write_name(column.name)}{rest}")
            lines += self._nested(nested)
        return lines + self._packed("  ", run, tail)

    def _spell(self, column: Column) -> tuple[str, list[Line]]:
        if not column.fields:
            return column.type, []
        known = self.spelt.get(id(column))
        if known is None:
            known = self.spelt[id(column)] = spell(column)
        return known

    def _marks(self, column: Column, table: Table) -> str:
        marks = ""
        if column.name in table.primary_key:
            self.used.add("PK")
            marks += " PK"
        if not column.nullable:
            marks += " NOT NULL"
        for key in _inline(table, column.name) if table.foreign_keys else ():
            self.used.add("->")
            marks += f" -> {_reference(key.ref_table)}.{write_name(key.ref_columns[0])}"
        return marks

    def _samples(self, column: Column) -> str:
        if not column.samples and not column.complete:
            self.used.add("no []")
            return ""
        self.tally.sampled += 1
        if not self.detail.samples:
            self.tally.unsampled += 1
            return ""
        shown = [one_line(v, self.detail.sample_chars) for v in column.samples[: self.detail.samples]]
        whole = shown == [one_line(v) for v in column.samples] and len({*shown}) == len(shown)
        complete = column.complete and whole
        self.used.add("[]" if not complete else "[all]" if shown else "[NULL]")
        return " " + write_values(dict.fromkeys(shown), complete)

    def _nested(self, nested: Sequence[Line]) -> list[str]:
        lines: list[str] = []
        run: list[str] = []
        tail = ""
        if nested:
            self.used.add("~" if nested[-1].path[0] == "~" else ".")
        shown = [self._nested_description(line) for line in nested]
        for line, said in parents_needed(nested, shown):
            prefix = line.path[0] if line.path[0] in "~." else ""
            path = write_path(line.path[len(prefix) :])
            rest = f" {write_type(line.type)}"
            if not self.pack or rest != tail or said or (run and prefix and not run[0].startswith(prefix)):
                lines += self._packed("    ", run, tail)
                run, tail = [], "" if said else rest
            if said:
                lines.append(f"    {prefix}{path}{rest}{said}")
            else:
                run.append((prefix if not run else "") + path)
        return lines + self._packed("    ", run, tail)

    def _nested_description(self, line: Line) -> str:
        if line.path[0] == "~":  # what was seen in values is part of the structure, and short
            return f" -- {line.description}" if line.description else ""
        return self._described(last_segment(line.path), line.description)

    def _packed(self, indent: str, names: Sequence[str], tail: str) -> list[str]:
        if len(names) > 1:
            self.used.add(",")
        lines: list[str] = []
        prefix = names[0][0] if names and names[0][0] in "~." else ""
        current = indent
        for name in names:
            if len(current) > len(indent) and len(current) + len(name) > LINE_CHARS:
                lines.append(current + tail)
                current = indent + prefix
            current += (", " if len(current) > len(indent) + len(prefix) else "") + name
        return [*lines, current + tail] if names else []

    def _wrapped(self, indent: str, names: Sequence[str]) -> list[str]:
        return self._packed(indent, [write_name(name) for name in names], "")

    def _keys(self, table: Table) -> Iterator[str]:
        named = [c.name for c in table.columns]
        if table.primary_key and list(table.primary_key) != [n for n in named if n in table.primary_key]:
            yield f"  primary key ({', '.join(map(write_name, table.primary_key))})"
        for key in table.foreign_keys:
            if key in _inline(table, key.columns[0] if key.columns else ""):
                continue
            theirs = f" ({', '.join(map(write_name, key.ref_columns))})" if key.ref_columns else ""
            mine = ", ".join(map(write_name, key.columns))
            yield f"  foreign key ({mine}) -> {_reference(key.ref_table)}{theirs}"


def _inline(table: Table, column: str) -> list[ForeignKey]:
    """The foreign key to write at the column itself: the only one it takes part in, one to one."""
    own = [key for key in table.foreign_keys if column in key.columns]
    fits = len(own) == 1 and len(own[0].columns) == 1 and len(own[0].ref_columns) == 1
    return own if fits and sum(c.name == column for c in table.columns) == 1 else []


def _reference(full_name: str) -> str:
    return write_full_name(full_name.split("."))
