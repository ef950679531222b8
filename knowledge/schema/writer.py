"""Schema text: layouts as blocks, at a level of detail.

``quorum.knowledge.schema.render`` writes a catalog so for a language model. Nothing is lost: the tests read
the text back (``tests/schema_reader.py``). An example::

    # database shop (sqlite): 4 tables, 11 columns
    # Notation: :NULLs: some rows have no value; [..]: samples; ...
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

    table archive like sales_20240101
      - total
      + note TEXT

    # left out: 2 of 9 descriptions

The text is made of lines; blank lines separate blocks, lines that start with ``#`` are for the
reader (the first one names the database and its dialect, ``# note: ...`` are the catalog's notes,
``# left out: ...`` says what detail did not fit).

Names
    A name is spelt as a query in the database's dialect must (``quorum.knowledge.naming``): bare, or
    in the dialect's quotes (``"`` or a backtick), a quote inside doubled, with ``\\n``, ``\\r``, ``\\t``,
    ``\\\\`` and ``\\uXXXX`` escapes. The case is the catalog's. A table's full name is its parts
    joined by dots: ``database.schema.name``.

Block header
    ``table NAME`` or ``tables MEMBERS``; then optionally, in this order, ``(FACTS)``,
    ``like BASE``, ``-- description``.
    MEMBERS is one or more lists ``QUALIFIER: item, item`` joined by ``; `` (without
    ``QUALIFIER: `` where the engine has no schemas). An item is a name or ``prefix{1..3, 7}suffix``
    (in quotes where the names need them), that means every value in the braces. Both ends of a range
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
    ``name[, name...] TYPE [PK] [NOT NULL | :NULLs] [-> table.column] [[samples]] [! oddities]
    [-- description]``
    TYPE is the engine's own words; in double quotes when empty or when it could be misread.
    SAMPLES are separated by ``, ``; a value is in double quotes (same escapes as names) when it
    holds a comma, a bracket, a quote, or outer blanks. A value or description that was cut ends in ``…``.
    ``[all: SAMPLES]``: the column has no other values but NULL, in every table of the block and in
    those that are ``like`` it; a value that begins so is quoted. ``[NULL only]``: rows were read and
    none has a value. A list that was cut has no such mark. ``:NULLs``: some rows have no value, in one
    of the tables at least.
    ``! ODDITIES`` before the description: about the values (``quorum.knowledge.schema.oddities``).
    ``--^`` instead of a description: the same as the last one given above for a column (or nested
    path) of that name.
    ``primary key (b, a)`` where the order is not the columns';
    ``foreign key (a, b) -> table (x, y)`` where it has several columns, or one column has several.
    ``-- NAME: description`` describes one member of a group.
    ``| a, NULL, *``: a row, one value for each column in their order; ``*`` where values are withheld. Such
    lines are all rows of a table, and the samples of its columns are not repeated.
    ``= NAME: column [samples], ...``: what one member of a group holds and the columns' own samples do not
    show; ``= NAME``: the rows that follow are this member's.
    ``(columns unknown)``: no source has the table's columns.

Nested paths, indented by four spaces below their column, ``path[, path...] TYPE [-- description]``
    ``column.a.b``: a declared path, spelt from the column's name on; that a part is repeated is
    seen from the type of its parent (``ARRAY<...>``). A parent that is a plain STRUCT without
    description is not repeated on a line of its own.
    ``.path``: a declared path relative to the column, where the form above would not say it exactly.
    ``~path``: a path seen in sample values, relative to the column: ``[]`` is any element of an
    array, ``*`` any key of a map whose keys are data.
    ``STRUCT`` or ``ARRAY<STRUCT>`` as the type of a column or path in the first form means
    the structure of the paths below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

from quorum.knowledge.catalog import Column, Field, ForeignKey, Table
from quorum.knowledge.naming import write_full_name, write_name, write_names
from quorum.knowledge.schema.blocks import Contents, facts, full_name, members
from quorum.knowledge.schema.grammar import one_line, write_path, write_type, write_values
from quorum.knowledge.schema.layouts import Layout
from quorum.knowledge.schema.nested import spell
from quorum.knowledge.schema.oddities import oddities, topics

LINE_CHARS = 200
"""Names that share a type are wrapped at this many characters."""

_SHORT = 12  # a description up to this long is repeated rather than referred to


@dataclass(frozen=True)
class DetailLevel:
    """The level of detail beyond names and types.

    Attributes:
        samples: Sample values of a column.
        sample_chars: Characters of a sample value.
        description_chars: Characters of a description; None for all of it, 0 for none.
        contents: Whether small tables show their rows, the tables of a group each their samples, and
            columns that they hold NULLs.
    """

    samples: int
    sample_chars: int
    description_chars: int | None
    contents: bool = False


@dataclass(frozen=True)
class _Row:
    """A column or path with its type and marks; rows that may share a line have equal ``shared``."""

    name: str
    rest: str
    shared: object
    below: Sequence[str] = ()


class Writer:
    """Writes layouts, at one level of detail after another.

    Names are spelt as SQL of the dialect must. With ``pack`` off every column and path has a line of its
    own, and no line refers to another.

    Attributes:
        used: The marks that the last text uses, for its legend.
    """

    def __init__(self, layouts: Sequence[Layout], dialect: str, *, pack: bool = True) -> None:
        self.layouts, self.dialect, self.pack = layouts, dialect, pack
        self._members = cache(lambda layout: members(layout, dialect))
        self._spell = cache(spell)
        self._related = {id(la) for layout in layouts if layout.base for la in (layout, layout.base)}
        self._start(DetailLevel(0, 0, 0))

    def _start(self, detail: DetailLevel) -> None:
        self.detail = detail
        self.used: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._last: dict[str, str] = {}  # the last description of each name
        self._in_rows: set[str] = set()  # columns of the block whose values its rows show

    def write(self, detail: DetailLevel) -> list[str]:
        """One block for each layout."""
        self._start(detail)
        return ["\n".join(self._block(layout)) for layout in self.layouts]

    def left_out(self) -> tuple[str, ...]:
        """Return what the last text leaves out, one sentence part each; () if nothing."""
        count = self._counts
        parts = {
            "omitted": f"{count['omitted']:,} of {count['descriptions']:,} descriptions",
            "cut": f"the ends (…) of {count['cut']:,} descriptions",
            "disputed": f"{count['disputed']:,} descriptions in which tables of one group differ",
            "unsampled": f"sample values of {count['unsampled']:,} of {count['sampled']:,} columns",
            "rows": f"the rows of {count['rows']:,} small table{'s' * (count['rows'] != 1)}",
        }
        return tuple(text for what, text in parts.items() if count[what])

    def _block(self, layout: Layout) -> Iterator[str]:
        """Header, columns, keys, contents."""
        _, tables, numbered = self._members(layout)
        self._counts["disputed"] += layout.disputed
        yield self._header(layout)
        if len({table.description for table in tables}) > 1:
            for table in tables:
                if text := self._cut(table.description):
                    yield f"  -- {self._full_name(table)}: {text}"
        contents = self._contents(layout)
        self._in_rows = contents.shown if contents else set()
        if layout.base is not None:
            yield from self._packed("  - ", [self._name(name) for name in layout.removed], "")
            for line in self._columns(layout.added, tables[0]):
                yield line if line[2] == " " else f"  + {line[2:]}"
        elif layout.columns:
            yield from self._columns(layout.columns, tables[0])
            yield from self._keys(tables[0])
        else:
            yield "  (columns unknown)"
        for mark, line in contents.lines(tables, self.dialect, numbered) if contents else ():
            self.used.add(mark)
            yield line

    def _contents(self, layout: Layout) -> Contents | None:
        """Return the lines below the columns; None where blocks share them by ``like``."""
        if self.detail.contents and id(layout) not in self._related:
            return Contents(layout, self.detail.sample_chars)
        if not self.detail.contents:
            self._counts["rows"] += sum(any(c.cells for c in table.columns) for table in layout.tables)
        return None

    def _name(self, name: str) -> str:
        return write_name(name, self.dialect)

    def _names(self, names: Iterable[str]) -> str:
        return write_names(names, self.dialect)

    def _full_name(self, table: Table) -> str:
        return full_name(table, self.dialect)

    def _header(self, layout: Layout) -> str:
        items, tables, folded = self._members(layout)
        first = tables[0]
        if len(tables) == 1:
            parts = [f"table {self._full_name(first)}"]
        else:
            self.used |= {"tables", "{}"} if folded else {"tables"}
            parts = [f"tables {items}"]
        if known := facts(tables):
            parts.append(f"({'; '.join(known)})")
        if layout.base is not None:
            self.used.add("like")
            parts.append(f"like {self._full_name(self._members(layout.base)[1][0])}")
        same = len({table.description for table in tables}) == 1
        if same and (text := self._cut(first.description)):
            parts.append(f"-- {text}")
        return " ".join(parts)

    def _cut(self, description: str) -> str:
        """A description at this level of detail; counts what is not shown of it."""
        whole = one_line(description)
        if not whole:
            return ""
        self._counts["descriptions"] += 1
        limit = self.detail.description_chars
        if limit == 0:
            self._counts["omitted"] += 1
            return ""
        shown = one_line(whole, limit)
        self._counts["cut"] += shown != whole
        return shown

    def _described(self, name: str, description: str) -> str:
        text = self._cut(description)
        if not text:
            return ""
        if self.pack and len(text) > _SHORT and self._last.get(name) == text:
            self.used.add("--^")
            return " --^"
        self._last[name] = text
        return f" -- {text}"

    def _columns(self, columns: Sequence[Column], table: Table) -> Iterator[str]:
        return self._lines("  ", (self._column(column, table) for column in columns))

    def _column(self, column: Column, table: Table) -> _Row:
        kind, nested = self._spell(column) if column.fields else (column.type, [])
        plain = f" {write_type(kind)}{self._filled(column)}"
        rest = f" {write_type(kind)}{self._marks(column, table)}"
        description = self._described(column.name, column.description)
        rest += self._samples(column) + self._odd(column, table) + description
        alone = not self.pack or rest != plain or bool(nested)
        below = list(self._lines("    ", self._nested(nested))) if nested else ()
        return _Row(self._name(column.name), rest, None if alone else rest, below)

    def _marks(self, column: Column, table: Table) -> str:
        marks = ""
        if column.name in table.primary_key:
            marks += " PK"
        marks += self._filled(column)
        for key in _inline(table, column.name):
            self.used.add("->")
            marks += f" -> {self._reference(key)}.{self._name(key.ref_columns[0])}"
        return marks

    def _filled(self, column: Column) -> str:
        """Return the mark for columns that must have a value, or of which some rows have none."""
        if column.nulls and self.detail.contents and column.name not in self._in_rows:
            self.used.add(":NULLs")
            return f"{'' if column.nullable else ' NOT NULL'} :NULLs"
        return "" if column.nullable else " NOT NULL"

    def _keys(self, table: Table) -> Iterator[str]:
        """The keys that do not stand at a column."""
        in_order = [c.name for c in table.columns if c.name in table.primary_key]
        if table.primary_key and list(table.primary_key) != in_order:
            yield f"  primary key ({self._names(table.primary_key)})"
        for key in table.foreign_keys:
            if key in _inline(table, key.columns[0] if key.columns else ""):
                continue
            theirs = f" ({self._names(key.ref_columns)})" if key.ref_columns else ""
            yield f"  foreign key ({self._names(key.columns)}) -> {self._reference(key)}{theirs}"

    def _reference(self, key: ForeignKey) -> str:
        return write_full_name(key.ref_table.split("."), self.dialect)

    def _samples(self, column: Column) -> str:
        if column.name in self._in_rows:
            return ""
        if not column.samples and not column.complete:
            self.used.add("no []")
            return ""
        self._counts["sampled"] += 1
        if not self.detail.samples:
            self._counts["unsampled"] += 1
            return ""
        shown = [one_line(v, self.detail.sample_chars) for v in column.samples[: self.detail.samples]]
        whole = shown == [one_line(v) for v in column.samples] and len({*shown}) == len(shown)
        complete = column.complete and whole
        self.used.add("[]" if not complete else "[all]" if shown else "[NULL]")
        return " " + write_values(dict.fromkeys(shown), complete)

    def _odd(self, column: Column, table: Table) -> str:
        shown = self.detail.contents and column.name not in self._in_rows
        text = oddities(column, self.dialect, keyless=not table.primary_key, ends=shown)
        text = text if self.detail.description_chars != 0 else ""
        if text and column.profile:
            self.used |= {"!", *topics(column.profile)}
        if shown and not table.primary_key and (known := column.profile) and known.key_like:
            self.used |= {"unique"} if known.unique is None else set()
        return f" ! {text}" if text else ""

    def _nested(self, nested: Sequence[Field]) -> Iterator[_Row]:
        self.used.add("~" if nested[-1].path[0] == "~" else ".")
        parents = {line.path.rpartition(".")[0] for line in nested}
        for line in nested:
            prefix = line.path[0] if line.path[0] in "~." else ""
            if prefix == "~":  # what was seen in values is part of the structure, and short
                description = f" -- {line.description}" if line.description else ""
            else:
                description = self._described(last_segment(line.path), line.description)
                if not (prefix or description) and line.type == "STRUCT" and line.path in parents:
                    continue  # its children imply it
            rest = f" {write_type(line.type)}{description}"
            shared = None if description or not self.pack else (prefix, rest)
            yield _Row(prefix + write_path(line.path[len(prefix) :]), rest, shared)

    def _lines(self, indent: str, rows: Iterable[_Row]) -> Iterator[str]:
        """A line for each row, or for neighbours that may share one."""
        for shared, group in groupby(rows, key=lambda row: row.shared):
            together = list(group)
            if shared is not None:
                yield from self._packed(indent, [row.name for row in together], together[0].rest)
                continue
            for row in together:
                yield f"{indent}{row.name}{row.rest}"
                yield from row.below

    def _packed(self, indent: str, names: Sequence[str], rest: str) -> Iterator[str]:
        """Names that share what follows them, wrapped; a prefix (``.`` or ``~``) is written once a line."""
        prefix = names[0][0] if names and names[0][0] in "~." else ""
        current = indent + prefix
        for name in names:
            bare = name[len(prefix) :]
            if len(current) > len(indent) + len(prefix):
                if len(current) + len(bare) > LINE_CHARS:
                    yield current + rest
                    current = indent + prefix
                else:
                    current += ", "
            current += bare
        if names:
            yield current + rest


def last_segment(path: str) -> str:
    """The name that a path ends in."""
    return path.rsplit(".", 1)[-1]


def _inline(table: Table, column: str) -> list[ForeignKey]:
    """The foreign key to write at the column itself: the only one it takes part in, one to one."""
    own = [key for key in table.foreign_keys if column in key.columns]
    fits = len(own) == 1 and len(own[0].columns) == 1 and len(own[0].ref_columns) == 1
    return own if fits and sum(c.name == column for c in table.columns) == 1 else []
