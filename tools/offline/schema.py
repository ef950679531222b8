"""The tables, columns and values in a prompt's schema text, as far as the offline model needs them."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from datetime import date, timedelta

_NAME = r'(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|[\w$-]+)'
_FULL = rf"{_NAME}(?:\.{_NAME})*"
_ITEM = re.compile(rf'(?:({_FULL}): )?(["`]?[\w$-]*\{{[^}}]*\}}[\w$-]*["`]?|{_FULL})(?:[,;] )?')
_COLUMN = re.compile(
    rf"  (?:\+ )?({_NAME}(?:, {_NAME})*) ([^\[\"]*?)( PK)?(?: NOT NULL| :NULLs)?"
    rf"(?: -> ({_FULL}))?(?: \[(?:all: )?(.*?)\])?(?: (?:!|--).*)?"
)


@dataclass
class ShownColumn:
    """A column; its name, and the column that it refers to (``to``), are as SQL must spell them."""

    name: str
    kind: str
    key: bool
    to: str
    samples: list[str]

    @property
    def number(self) -> bool:
        """Return True if it holds numbers that measure something: no keys, by their names."""
        numeric = re.search("(?i)int|real|float|double|dec|num", self.kind)
        return bool(numeric) and not (self.key or self.to or re.search("(?i)(^|_)(id|year)$", self.name))

    @property
    def dated(self) -> bool:
        """Return True if it holds days or moments, by its samples or its type."""
        days = [re.match(r"\d{4}-\d\d-\d\d", sample) for sample in self.samples]
        return all(days) if days else bool(re.search("(?i)date|time", self.kind))


@dataclass
class ShownTable:
    """A table, or several that differ in a number of their name (``members``), as SQL must spell them."""

    name: str
    members: list[str]
    columns: list[ShownColumn] = field(default_factory=list)

    @property
    def source(self) -> str:
        """Return the table as FROM names it."""
        if len(self.members) == 1:
            return self.name if self.members[0] == self.name else f"{self.members[0]} AS {self.name}"
        union = " UNION ALL ".join(f"SELECT * FROM {member}" for member in self.members)
        return f"({union}) AS {self.name}"


def read_tables(text: str) -> list[ShownTable]:
    """Return the tables of schema text (``quorum.knowledge.schema.writer``), without nested paths."""
    tables: list[ShownTable] = []
    block: list[ShownTable] = []
    for line in text.split("\n"):
        if found := re.match(rf"tables? (.*?)(?: \([^)]*\))?(?: like ({_FULL}))?(?: -- .*)?$", line):
            block = _members(found[1])
            like = (each.columns for each in tables if found[2] in each.members)
            for table, columns in zip(block, list(like) * len(block), strict=False):
                table.columns = list(columns)
            tables += block
        elif line.startswith("  | ") and block:
            cells = next(csv.reader([line[4:]], skipinitialspace=True))
            for column, cell in zip(block[0].columns, cells, strict=False):
                column.samples.append(cell)
        elif found := _COLUMN.fullmatch(line):
            samples = next(csv.reader([found[5] or ""], skipinitialspace=True), [])
            for name in re.findall(_NAME, found[1]):
                for table in block:
                    table.columns.append(ShownColumn(name, found[2], bool(found[3]), found[4] or "", samples))
    return [table for table in tables if table.columns]


def _members(text: str) -> list[ShownTable]:
    """Return the tables of a header; ``sales_{1..3}`` is one of three members."""
    tables, qualifier = [], ""
    for before, item in _ITEM.findall(text):
        qualifier = f"{before}." if before else qualifier
        start, brace, rest = item.partition("{")
        numbers, _, end = rest.partition("}")
        values = [value for part in numbers.split(", ") for value in _expanded(part)] if brace else [""]
        last = re.findall(_NAME, start)[-1] if not brace else f"{start.rstrip('_')}{end.lstrip('_')}"
        tables.append(ShownTable(last, [f"{qualifier}{start}{value}{end}" for value in values]))
    return tables


def _expanded(part: str) -> list[str]:
    """Expand a range: ``01..03`` is 01, 02 and 03; eight digits are days."""
    first, _, last = part.partition("..")
    if not last:
        return [first]
    if len(first) == 8:
        day = date.fromisoformat(first)
        return [f"{day + timedelta(n):%Y%m%d}" for n in range((date.fromisoformat(last) - day).days + 1)]
    return [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
