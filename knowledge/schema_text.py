"""Schema text: how a catalog is written for a language model, and how it is read back.

``quorum.knowledge.compress.render`` writes this text, ``parse_schema`` is its inverse. An example::

    # database shop (sqlite): 4 tables, 11 columns
    # One column a line, "name TYPE"; "a, b TYPE": both have that type. PK: primary key.
    # (then one line for each further mark that the text uses)

    table customers (1,200 rows, 1,180 distinct) -- people who have bought
      id INTEGER
      first_name, last_name TEXT NOT NULL
      city TEXT :NULLs [Ghent, Lund]
      status TEXT [all: active, closed]
      fax TEXT [NULL only]

    table plans (2 rows)
      id INTEGER PK
      name, access_token TEXT
      | 1, basic, *
      | 2, NULL, *

    tables sales_{20240101..20240131} (31 tables; rows 10, 12, ...)
      id INTEGER PK
      customer_id INTEGER -> customers.id
      total "DECIMAL [x]" -- what was paid
      extra JSON
        ~items[].sku, note string
      metric: revenue = SUM(total) -- without returns

    table archive like sales_20240101
      - total
      + note TEXT

    # left out: 2 of 9 descriptions

The text is made of lines; blank lines separate blocks, lines that start with ``#`` are for the
reader (the first one names the database and its dialect, ``# note: ...`` are the catalog's notes,
``# left out: ...`` says what detail did not fit).

Names
    A name stands as a query in the database's dialect must spell it (``quorum.knowledge.naming``): bare, or
    in the dialect's quotes (``"`` or a backtick), a quote inside doubled, with ``\\n``, ``\\r``, ``\\t``,
    ``\\\\`` and ``\\uXXXX`` escapes. The case is the catalog's. A table's full name is its parts
    joined by dots: ``database.schema.name``.

Block header
    ``table NAME`` or ``tables MEMBERS``; then optionally, in this order, ``(FACTS)``,
    ``like BASE``, ``-- description``.
    MEMBERS is one or more lists ``QUALIFIER: item, item`` joined by ``; `` (without
    ``QUALIFIER: `` where the engine has no schemas). An item is a name or ``prefix{1..3, 7}suffix``
    (in quotes where the names need them), that stands for every value in the braces. Both ends of a range
    have the same number of digits (zeros kept); where both are eight digits and valid calendar dates, the
    range runs over days.
    FACTS are joined by ``; ``: the kind when it is not a table (``view``), the number of tables,
    ``12,345 rows``; or for several tables ``rows 5, 7, ?`` in the members' order
    (``rows 5 each`` when all agree). Of exact duplicates the header tells how many rows are left without
    them: ``12,345 rows, 9,876 distinct``, of one of several tables ``7 with 3 distinct``.
    All tables of one header have the same columns (a shared field group); their columns may stand
    in another order than in the text, and samples are those of one of them. ``like BASE``: the
    columns (and samples) of the table BASE, which has its
    own block, without those in ``- `` lines and with those in ``+ `` lines added at the end, or
    replacing the column of that name in its place.

Body lines, indented by two spaces
    ``name[, name...] TYPE [PK] [NOT NULL | :NULLs] [-> table.column] [[samples]] [-- description]``
    TYPE is the engine's own words; in double quotes when empty or when it could be misread.
    SAMPLES are separated by ``, ``; a value is in double quotes (same escapes as names) when it
    holds a comma, a bracket, a quote, or outer blanks. A value or description that was cut ends in ``…``.
    ``[all: SAMPLES]``: the column has no other values but NULL, in every table of the block and in
    those that are ``like`` it; a value that begins so is quoted. ``[NULL only]``: rows were read and
    none has a value. A list that was cut has no such mark. ``:NULLs``: some rows have no value, in one
    of the tables at least.
    ``--^`` instead of a description: the same as the last one given above for a column (or nested
    path) of that name.
    ``primary key (b, a)`` where the order is not the columns';
    ``foreign key (a, b) -> table (x, y)`` where it has several columns, or one column has several.
    ``-- NAME: description`` describes one member of a group.
    ``| a, NULL, *``: a row, one value for each column in their order; ``*`` where values are withheld. Such
    lines are all rows of a table, and the samples of its columns are not repeated beside them.
    ``metric: NAME [= EXPRESSION] [-- description]``: a figure that a team has defined, and its formula, in
    double quotes where it could be misread; without room for any description formulas are left out too.
    A block's metrics are those of all of its tables, and of those that are ``like`` them.
    ``= NAME: column [samples], ...``: what one member of a group holds and the columns' own samples do not
    show; ``= NAME``: the rows that follow are this member's.
    ``(columns unknown)`` stands for a table whose columns no source has.

Nested paths, indented by four spaces below their column, ``path[, path...] TYPE [-- description]``
    ``column.a.b``: a declared path, spelt from the column's name on; that a part is repeated is
    seen from the type of its parent (``ARRAY<...>``). A parent that is a plain STRUCT without
    description is not repeated on a line of its own.
    ``.path``: a declared path relative to the column, where the form above would not say it exactly.
    ``~path``: a path seen in sample values, relative to the column: ``[]`` is any element of an
    array, ``*`` any key of a map whose keys are data.
    ``STRUCT`` or ``ARRAY<STRUCT>`` as the type of a column or path in the first form stands for
    the structure of the paths below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Metric, Table
from quorum.knowledge.nested_text import rebuild
from quorum.knowledge.schema_grammar import Cell, Scanner, SchemaTextError
from quorum.knowledge.schema_headers import Counts, read_facts, read_members
from quorum.knowledge.schema_writer import last_segment

__all__ = ["SchemaTextError", "parse_schema"]


def parse_schema(text: str) -> Catalog:
    """Read schema text back into a catalog: the inverse of ``quorum.knowledge.compress.render``.

    Every table, column name, type, nested path, key, row count and name of a metric comes back exactly.
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
    metrics: list[Metric] = field(default_factory=list)
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
        primary, foreign, metrics = tuple(block.primary), tuple(block.foreign), tuple(block.metrics)
        if block.base is not None:
            columns = _changed(block.base.columns, block.removed, columns)
            primary, foreign = block.base.primary_key, block.base.foreign_keys
            metrics = block.base.metrics
        for i, parts in enumerate(block.names):
            database, schema, name = ("", "", *parts)[-3:]
            rows, distinct = block.counts[i] if i < len(block.counts) else (None, None)
            text = block.member_descriptions.get(parts, block.description)
            own = tuple(block.filled(parts, columns))
            keys = primary, foreign, distinct
            table = Table(name, own, schema, database, block.kind, text, rows, *keys, metrics)
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
        elif scanner.take("metric: "):
            block.metrics.append(_metric(scanner))
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


def _metric(scanner: Scanner) -> Metric:
    name = scanner.name()
    expression = scanner.expression() if scanner.take(" = ") else ""
    text = scanner.rest if scanner.take(" -- ") else ""
    if not text and scanner.rest:
        raise SchemaTextError(f"unexpected behind a metric: {scanner.rest[:60]}")
    return Metric(name, expression, text)


def _changed(base: Sequence[Column], removed: Sequence[str], added: Sequence[Column]) -> list[Column]:
    new = {column.name: column for column in added}
    return [new.pop(c.name, c) for c in base if c.name not in removed] + list(new.values())
