"""The catalog: an immutable, hashable description of a database.

database -> schema -> table -> column -> nested field. Connectors (``tools/databases``) and the
resource-folder loader (``knowledge/folder.py``) build it; everything above only reads it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

from quorum.knowledge.profile.model import ColumnProfile, profile_from

ColumnRef: TypeAlias = tuple[str, str]
"""A table's full name, and a column's."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Field:
    """A nested path inside a column.

    Attributes:
        path: Dotted path below the column, without the column's own name; ``[]`` follows a
            repeated part, e.g. ``value.int_value`` or ``[].key``.
        type: The engine's type name, or the JSON type seen in samples (``string``, ``number``,
            ``boolean``, ``object``, ``array``).
        description: Empty where unknown.
        inferred: True when the path was seen in sample values rather than declared.
    """

    path: str
    type: str
    description: str = ""
    inferred: bool = False


@dataclass(frozen=True)
class Column:
    """A column: its name in the catalog's true case and the engine's own type name.

    ``samples`` holds a few distinct values as text, most telling first; None where NULL. ``complete`` says
    that they are all its values but NULL, each of them whole: without samples, that rows were read and had
    only NULL. False where unknown. ``nulls`` says that some rows have no value, while others have one.

    ``cells`` holds the column's values in all rows of a small table, in the rows' order (see ``with_cells``);
    empty where the table is not known whole, or the values are withheld.

    ``profile`` tells how the values of the rows that were read are written; None where none were.
    """

    name: str
    type: str
    description: str = ""
    samples: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    nullable: bool = True
    complete: bool = False
    nulls: bool = False
    cells: tuple[str | None, ...] = ()
    profile: ColumnProfile | None = None

    def with_cells(self, cells: Iterable[str | None], samples: int = 3) -> Column:
        """The column with its values in all rows of its table, and with the samples that follow from them.

        Blank values are none. Where values are repeated all of them are samples, else at most ``samples``. A
        value that was cut ends in ``…``.
        """
        cells = tuple(cells)
        filled = {cell for cell in cells if cell is not None}
        counted = Counter(cell for cell in cells if cell and cell.strip())
        few = len(counted) <= max(samples, counted.total() // 2)
        shown = tuple(value for value, _ in counted.most_common(None if few else samples))
        whole = bool(cells) and filled <= {*shown, ""} and not any(value.endswith("…") for value in shown)
        shown += ("",) if whole and "" in filled else ()
        nulls = bool(shown) and None in cells
        return replace(self, samples=shown, complete=whole, nulls=nulls, cells=cells)


@dataclass(frozen=True)
class ForeignKey:
    """Columns of this table that refer to ``ref_columns`` of ``ref_table`` (a full name)."""

    columns: tuple[str, ...]
    ref_table: str
    ref_columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table or view. ``database`` and ``schema`` are empty where the engine has none.

    ``distinct_rows`` is known where the table holds exact duplicates: how many of its rows differ.
    """

    name: str
    columns: tuple[Column, ...]
    schema: str = ""
    database: str = ""
    kind: str = "table"
    description: str = ""
    row_count: int | None = None
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    distinct_rows: int | None = None

    @property
    def full_name(self) -> str:
        """``database.schema.table``, without the parts that are empty; never quoted."""
        return ".".join(part for part in (self.database, self.schema, self.name) if part)

    def column(self, name: str) -> Column | None:
        """The column of that name: exact case first, then ignoring case."""
        for column in self.columns:
            if column.name == name:
                return column
        folded = name.casefold()
        return next((c for c in self.columns if c.name.casefold() == folded), None)


@dataclass(frozen=True)
class Withheld:
    """Tables and columns that rules withhold of a database (``quorum.tools.rights``).

    Attributes:
        tables: Names of hidden tables in lower case, but those that a table of the catalog has, too.
        columns: Masked columns: the full name of each one's table, and its own.
        key: Of the pseudonyms that stand for their values.
    """

    tables: frozenset[str] = frozenset()
    columns: frozenset[tuple[str, str]] = frozenset()
    key: bytes = field(default=b"", repr=False)

    def named(self, text: str) -> list[str]:
        """Return the hidden tables that a text names."""
        folded = text.casefold()
        words = {*_WORD.findall(folded)}
        return [name for name in self.tables if name in words or (not name.isalnum() and _has(folded, name))]


def _has(text: str, name: str) -> bool:
    return name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


ADVICE = " If that is wrong: "
"""In a note: what follows is what the user can do, such as another URL. Models are not shown it."""


@dataclass(frozen=True)
class Catalog:
    """All tables of one database as one user sees them.

    Attributes:
        name: The database's name, for people.
        dialect: sqlglot's name of the SQL dialect (``sqlite``, ``duckdb``, ``snowflake``, ...).
        tables: In the engine's order.
        notes: What the reader of the catalog should know: what was skipped, cut or repaired
            while it was built (a missing file, descriptions that did not line up, ...).
        left_out: Those of the notes that name a table, a view or a file of the user's that is not
            in the catalog, or is read in part: warnings of ``doctor`` and of the first answer.
        filtered: Full names of tables of which the database may show this user some rows only.
        withheld: What rules withhold; None where there is no rule. It is never written to a file.
    """

    name: str
    dialect: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    filtered: tuple[str, ...] = ()
    withheld: Withheld | None = None

    @property
    def facts(self) -> list[str]:
        """The notes without ``ADVICE``."""
        return [note.partition(ADVICE)[0] for note in self.notes]

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hex) over the whole content; equal catalogs have equal hashes."""
        content = asdict(replace(self, withheld=None))
        del content["withheld"]
        if not self.filtered:  # as hashes were before there was such a thing
            del content["filtered"]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def _by_name(self) -> dict[str, tuple[Table, ...]]:
        found: dict[str, tuple[Table, ...]] = {}
        for table in self.tables:
            parts = table.full_name.casefold().split(".")
            names = {table.name.casefold(), table.full_name.casefold()}
            names |= {".".join(parts[i:]) for i in range(len(parts))}
            for name in names:
                found[name] = (*found.get(name, ()), table)
        return found

    def find(self, name: str) -> tuple[Table, ...]:
        """Tables that ``name`` (bare or partly qualified, unquoted, any case) may mean."""
        return self._by_name.get(name.casefold(), ())

    def table(self, name: str) -> Table | None:
        """The one table that ``name`` means, exact case winning; None if none or several."""
        found = self.find(name)
        exact = [t for t in found if name in (t.name, t.full_name)]
        candidates = exact or list(found)
        return candidates[0] if len(candidates) == 1 else None

    def columns(self) -> Iterator[tuple[Table, Column]]:
        """Every (table, column) pair, in order."""
        for table in self.tables:
            for column in table.columns:
                yield table, column


_COLUMN, _TABLE, _CATALOG, _FIELD, _KEY = (
    tuple(each.name for each in fields(kind)) for kind in (Column, Table, Catalog, Field, ForeignKey)
)
_REST = [name for name in _CATALOG if name not in ("tables", "withheld")]


def to_json(catalog: Catalog) -> dict[str, Any]:
    """The catalog as what ``json`` can write."""
    numbers: dict[Column, int] = {}
    for _, column in catalog.columns():
        numbers.setdefault(column, len(numbers))
    return {
        "columns": [_row(column, _COLUMN) for column in numbers],
        "tables": [_row(table, _TABLE, numbers) for table in catalog.tables],
        **{name: getattr(catalog, name) for name in _REST},
    }


def from_json(found: dict[str, Any]) -> Catalog:
    """The catalog that ``to_json`` wrote.

    Raises:
        KeyError, TypeError, ValueError, IndexError: It is none.
    """
    columns = [_column(row) for row in found["columns"]]
    tables = tuple(_table(row, columns) for row in found["tables"])
    rest = {name: found[name] for name in _REST}
    rest |= {name: tuple(value) for name, value in rest.items() if isinstance(value, list)}
    return Catalog(tables=tables, **rest)


def _row(thing: Any, names: tuple[str, ...], numbers: dict[Column, int] | None = None) -> list[Any]:
    return [_plain(getattr(thing, name), numbers) for name in names]


def _plain(value: Any, numbers: dict[Column, int] | None) -> Any:
    if isinstance(value, ColumnProfile):
        return asdict(value)
    if not isinstance(value, tuple) or not value or isinstance(value[0], str):
        return value
    if isinstance(value[0], Column) and numbers is not None:
        return [numbers[column] for column in value]
    names = {Field: _FIELD, ForeignKey: _KEY}.get(type(value[0]))
    return value if names is None else [_row(part, names) for part in value]


def _column(row: list[Any]) -> Column:
    name, kind, description, samples, nested, nullable, complete, nulls, cells, profile = row
    fields = tuple([Field(*part) for part in nested])
    about = profile_from(profile) if profile else None
    return Column(
        name, kind, description, tuple(samples), fields, nullable, complete, nulls, tuple(cells), about
    )


def _table(row: list[Any], columns: list[Column]) -> Table:
    found = dict(zip(_TABLE, row, strict=True))
    return Table(
        **found
        | {
            "columns": tuple(columns[number] for number in found["columns"]),
            "primary_key": tuple(found["primary_key"]),
            "foreign_keys": tuple(
                ForeignKey(tuple(own), table, tuple(other)) for own, table, other in found["foreign_keys"]
            ),
        }
    )
