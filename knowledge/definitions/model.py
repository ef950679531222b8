"""Add what a team has defined to a catalog: descriptions, relationships, metrics.

Readers of files (``quorum.knowledge.documents.files``) make ``Definitions``; ``with_definitions`` finds
their tables in a catalog. Names are compared without case, and a table may be qualified.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from quorum.knowledge.catalog import Catalog, ForeignKey, Metric, Table
from quorum.knowledge.definitions.descriptions import joined, listed, with_texts
from quorum.knowledge.schema.grammar import one_line

_PART = r'"[^"]+"|`[^`]+`|\[[^\]]+\]|[\w$-]+'
_DOTTED = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")
_COLUMN = re.compile(r'\w+|"[^"]+"|`[^`]+`')


@dataclass(frozen=True)
class DefinedMetric:
    """A metric; its expressions by the dialect that the file names, empty where it names none."""

    name: str
    expressions: Mapping[str, str]
    description: str = ""


@dataclass(frozen=True)
class DefinedTable:
    """A table as a file defines it.

    Attributes:
        names: Those that it may have in the database, best first.
        description: On one line, as all texts here.
        columns: Texts by the column's name in lower case.
        metrics: Those computed from it.
    """

    names: tuple[str, ...]
    description: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[DefinedMetric, ...] = ()


@dataclass(frozen=True)
class Relationship:
    """Columns of a table that refer to another's; ``partial`` where not all of its rows need to."""

    names: tuple[str, ...]
    columns: tuple[str, ...]
    ref_names: tuple[str, ...]
    ref_columns: tuple[str, ...]
    partial: bool = False


@dataclass(frozen=True)
class Definitions:
    """Tables and relationships that one file defines.

    Attributes:
        by: Whose kind of file it is, for people: ``dbt``, ``OSI``.
        notes: What of it could not be read, or is of a form that is not known; for people.
        context: What it says of all of its tables, for the reader of a catalog.
    """

    file: str
    by: str
    tables: tuple[DefinedTable, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    notes: tuple[str, ...] = ()
    context: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeclaredKey:
    """A relationship of a catalog's tables, by whom it is declared, and the table that has it (full name)."""

    by: str
    table: str
    key: ForeignKey


def endings(parts: Iterable[str]) -> tuple[str, ...]:
    """Return ``a.b.c``, ``b.c`` and ``c`` for the parts of a name; () if its last part is empty."""
    *outer, last = parts
    given = [part for part in outer if part] + [last]
    return tuple(".".join(given[i:]) for i in range(len(given))) if last else ()


def table_names(written: str) -> tuple[str, ...]:
    """Return the names that ``a.b.c`` can mean: ``a.b.c``, ``b.c``, ``c``; () if it is not a dotted name."""
    if not _DOTTED.fullmatch(written.strip()):
        return ()
    return endings(re.sub(r'["`\[\]]', "", written.strip()).split("."))


def column_name(written: str) -> str:
    """A column's name without its quotes."""
    return written.strip().strip('"`')


def column_in(expression: str) -> str:
    """The column's name if an expression is one and no more, else an empty text."""
    return column_name(expression) if _COLUMN.fullmatch(expression) else ""


@dataclass
class Described:
    """Descriptions of a table and, by name in lower case, of its columns, while they are read."""

    table: str
    columns: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, expression: str, said: str) -> None:
        """Add a text on a field to its column; a field that is computed is described with the table."""
        if column := column_in(expression):
            self.add_to_column(column, said)
        elif expression:
            meaning = f" ({said})" if said else ""
            self.table = joined(self.table, f"{name}{meaning} is {expression}")

    def add_to_column(self, column: str, said: str) -> None:
        """Add a text to a column's description."""
        if said:
            self.columns[column.casefold()] = joined(self.columns.get(column.casefold(), ""), said)


def with_definitions(
    catalog: Catalog, defined: Iterable[Definitions]
) -> tuple[Catalog, tuple[DeclaredKey, ...]]:
    """The catalog with what files define, and the relationships that hold between its tables as they say.

    A description that the catalog has comes first; a key and a metric that it has already stay as they are.
    The catalog's notes tell which keys are declared by a file alone, and what a file describes that is not
    in the database.
    """
    declared: dict[DeclaredKey, None] = {}
    for each in defined:
        catalog = replace(catalog, notes=(*catalog.notes, *each.context))
        catalog = describe(catalog, each.file, each.tables)
        keys = list(dict.fromkeys(_keys(catalog, each)))
        new = [key for key, partial in keys if not _known(catalog, key)]
        catalog = _with_keys(catalog, new)
        if new:
            names = listed(dict.fromkeys(f"{_side(k.table, k.key.columns)} -> {_ref(k)}" for k in new))
            note = f"Keys that {each.by} declares ({each.file}), not the database: {names}."
            catalog = replace(catalog, notes=(*catalog.notes, note))
        declared |= dict.fromkeys(key for key, partial in keys if not partial)
    return catalog, tuple(declared)


def describe(catalog: Catalog, file: str, defined: Iterable[DefinedTable]) -> Catalog:
    """The catalog with the descriptions and metrics of tables that a file defines; its own come first.

    A note names what is not in the database.
    """
    given, strange = list(defined), list[str]()
    if not given:
        return catalog
    tables = {table.full_name: table for table in catalog.tables}
    for each, found in zip(given, _found(catalog, [each.names for each in given]), strict=True):
        strange += [] if found else [each.names[0]]
        for table in found:
            known, others = with_texts(tables[table.full_name], each.columns)
            metrics = _metrics(known, each, catalog.dialect)
            description = joined(known.description, each.description)
            tables[table.full_name] = replace(known, description=description, metrics=metrics)
            strange += [f"{table.name}.{name}" for name in others]
    note = f"{file} describes what is not in the database: {listed(dict.fromkeys(strange))}."
    notes = (*catalog.notes, note) if strange else catalog.notes
    return replace(catalog, tables=tuple(tables.values()), notes=notes)


def contradiction(declared: DeclaredKey) -> str:
    """The note on a relationship that rows do not keep to."""
    mine, theirs = _side(declared.table, declared.key.columns), _ref(declared)
    refers, its = ("refers", "its") if len(declared.key.columns) == 1 else ("refer", "their")
    partner = f"some of {its} values have no partner there"
    return f"{declared.by} says that {mine} {refers} to {theirs}, but {partner}."


def _found(catalog: Catalog, names: Iterable[tuple[str, ...]]) -> list[tuple[Table, ...]]:
    """The tables of each list of names, by the first that any has.

    What one of them names in full is not taken for another of the same bare name.
    """
    places = []
    nearest: dict[str, int] = {}
    for each in names:
        name, found = next(((n, hits) for n in each if (hits := catalog.find(n))), ("", ()))
        places.append((name.count("."), found))
        for table in found:
            nearest[table.full_name] = max(name.count("."), nearest.get(table.full_name, 0))
    return [tuple(t for t in found if nearest[t.full_name] == depth) for depth, found in places]


def _metrics(table: Table, defined: DefinedTable, dialect: str) -> tuple[Metric, ...]:
    """The table's metrics and those that are new; of one name the first counts."""
    metrics = {metric.name.casefold(): metric for metric in table.metrics}
    for each in defined.metrics:
        metric = Metric(each.name, _expression(each.expressions, dialect), each.description)
        metrics.setdefault(each.name.casefold(), metric)
    return tuple(metrics.values())


def _expression(expressions: Mapping[str, str], dialect: str) -> str:
    """The expression in the dialect, else in standard SQL, else in whatever language it is given, named."""
    own = dialect.upper()
    for language in (own, "ANSI_SQL", ""):
        if expressions.get(language):
            return expressions[language]
    return next((f"{text} /* {language} */" for language, text in expressions.items() if text), "")


def _keys(catalog: Catalog, defined: Definitions) -> Iterator[tuple[DeclaredKey, bool]]:
    """The relationships of which the catalog has both sides, in its spelling, and which are partial."""
    given = defined.relationships
    names = [each.names for each in given] + [each.ref_names for each in given]
    found = _found(catalog, [*names, *(table.names for table in defined.tables)])
    for each, here, there in zip(given, found, found[len(given) :], strict=False):
        if len(here) == len(there) == 1 and (key := _key(each, here[0], there[0])):
            yield DeclaredKey(defined.by, here[0].full_name, key), each.partial


def _key(relationship: Relationship, mine: Table, theirs: Table) -> ForeignKey | None:
    """The key between two tables; None where one lacks a column, or a column would refer to itself."""
    columns = tuple(c.name for name in relationship.columns if (c := mine.column(name)))
    partners = tuple(c.name for name in relationship.ref_columns if (c := theirs.column(name)))
    whole = len(columns) == len(relationship.columns) == len(relationship.ref_columns) == len(partners) > 0
    itself = mine is theirs and columns == partners
    return ForeignKey(columns, theirs.full_name, partners) if whole and not itself else None


def _known(catalog: Catalog, declared: DeclaredKey) -> bool:
    """True if the catalog has a key of these columns to that table."""
    table, target = catalog.table(declared.table), catalog.table(declared.key.ref_table)
    return table is not None and any(
        sorted(map(str.casefold, key.columns)) == sorted(map(str.casefold, declared.key.columns))
        and catalog.table(key.ref_table) is target
        for key in table.foreign_keys
    )


def _with_keys(catalog: Catalog, new: Iterable[DeclaredKey]) -> Catalog:
    added: dict[str, tuple[ForeignKey, ...]] = {}
    for each in new:
        added[each.table] = tuple(dict.fromkeys((*added.get(each.table, ()), each.key)))
    tables = (
        replace(table, foreign_keys=(*table.foreign_keys, *added.get(table.full_name, ())))
        for table in catalog.tables
    )
    return replace(catalog, tables=tuple(tables))


def _side(table: str, columns: Iterable[str]) -> str:
    return " and ".join(f"{table}.{column}" for column in columns)


def _ref(declared: DeclaredKey) -> str:
    return _side(declared.key.ref_table, declared.key.ref_columns)


def mapping(value: Any) -> dict[str, Any]:
    """The mapping itself."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """The mappings in a list, or among the values of a mapping."""
    found = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in found if isinstance(item, dict)]


def named(content: Any, name: str) -> list[dict[str, Any]]:
    """The things that have a name in a list (or a mapping) of a mapping."""
    return [item for item in mappings(mapping(content).get(name)) if text(item.get("name"))]


def text(value: Any) -> str:
    """A text or a number on one line. Nothing else: written out, a few nested lists could fill the memory."""
    return one_line(str(value)) if isinstance(value, str | int | float) else ""


def texts(value: Any) -> list[str]:
    """The texts in a list, without empty ones."""
    return list(filter(None, map(text, value))) if isinstance(value, list) else []
