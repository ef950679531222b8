"""What a team has defined already, and how a catalog takes it in: descriptions, relationships, metrics.

Readers of files make ``Definitions`` (``quorum.knowledge.manifests``); ``with_definitions`` finds their
tables in a catalog. Names are compared without case, and a table may be qualified.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from quorum.knowledge.catalog import Catalog, ForeignKey, Metric, Table
from quorum.knowledge.described import joined, listed, with_texts

_PART = r'"[^"]+"|`[^`]+`|\[[^\]]+\]|[\w$-]+'
_DOTTED = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")
COLUMN = re.compile(r'\w+|"[^"]+"|`[^`]+`')
"""An expression that is a column's name and no more."""


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
    """What one file defines.

    Attributes:
        by: Whose kind of file it is, for people: ``dbt``, ``OSI``.
        notes: What the reader of a catalog should know of it.
    """

    file: str
    by: str
    tables: tuple[DefinedTable, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeclaredKey:
    """A relationship of a catalog's tables, by whom it is declared, and the table that has it (full name)."""

    by: str
    table: str
    key: ForeignKey


def table_names(written: str) -> tuple[str, ...]:
    """The names that a dotted name may stand for: itself, and without its first parts; none if it is none."""
    if not _DOTTED.fullmatch(written.strip()):
        return ()
    parts = re.sub(r'["`\[\]]', "", written.strip()).split(".")
    return tuple(".".join(parts[i:]) for i in range(len(parts)))


def column_name(written: str) -> str:
    """A column's name without its quotes."""
    return written.strip().strip('"`')


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
        catalog = describe(replace(catalog, notes=(*catalog.notes, *each.notes)), each.file, each.tables)
        keys = list(dict.fromkeys(_keys(catalog, each)))
        new = [key for key, partial in keys if not _known(catalog, key)]
        catalog = _with_keys(catalog, new)
        if new:
            told = listed(dict.fromkeys(f"{_side(k.table, k.key.columns)} -> {_ref(k)}" for k in new))
            note = f"Keys that {each.by} declares ({each.file}), not the database: {told}."
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
    for each, found in _placed(catalog, given):
        strange += [] if found else [each.names[0]]
        for table in found:
            told, others = with_texts(tables[table.full_name], each.columns)
            metrics = _metrics(told, each, catalog.dialect)
            description = joined(told.description, each.description)
            tables[table.full_name] = replace(told, description=description, metrics=metrics)
            strange += [f"{table.name}.{name}" for name in others]
    told_of = f"{file} describes what is not in the database: {listed(dict.fromkeys(strange))}."
    notes = (*catalog.notes, told_of) if strange else catalog.notes
    return replace(catalog, tables=tuple(tables.values()), notes=notes)


def contradiction(declared: DeclaredKey) -> str:
    """The note on a relationship that rows do not keep to."""
    mine, theirs = _side(declared.table, declared.key.columns), _ref(declared)
    refers, its = ("refers", "its") if len(declared.key.columns) == 1 else ("refer", "their")
    partner = f"some of {its} values have no partner there"
    return f"{declared.by} says that {mine} {refers} to {theirs}, but {partner}."


def _placed(
    catalog: Catalog, defined: list[DefinedTable]
) -> Iterator[tuple[DefinedTable, tuple[Table, ...]]]:
    """Each with its tables; what the file names in full is not taken for another of the same bare name."""
    places = []
    nearest: dict[str, int] = {}
    for each in defined:
        name, found = next(((n, hits) for n in each.names if (hits := catalog.find(n))), ("", ()))
        places.append((each, name.count("."), found))
        for table in found:
            nearest[table.full_name] = max(name.count("."), nearest.get(table.full_name, 0))
    for each, depth, found in places:
        yield each, tuple(table for table in found if nearest[table.full_name] == depth)


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
    for each in defined.relationships:
        mine, theirs = _one(catalog, each.names), _one(catalog, each.ref_names)
        if mine and theirs and len(each.columns) == len(each.ref_columns) > 0:
            columns = [column for name in each.columns if (column := mine.column(name))]
            partners = [column for name in each.ref_columns if (column := theirs.column(name))]
            if len(columns) == len(partners) == len(each.columns) and (mine, columns) != (theirs, partners):
                names = (tuple(column.name for column in side) for side in (columns, partners))
                key = ForeignKey(next(names), theirs.full_name, next(names))
                yield DeclaredKey(defined.by, mine.full_name, key), each.partial


def _one(catalog: Catalog, names: Iterable[str]) -> Table | None:
    """The table of the first name that any table has; None where several have it."""
    found = next(filter(None, map(catalog.find, names)), ())
    return found[0] if len(found) == 1 else None


def _known(catalog: Catalog, declared: DeclaredKey) -> bool:
    """Whether the catalog has a key of these columns to that table."""
    table = _one(catalog, [declared.table])
    return table is not None and any(
        sorted(map(str.casefold, key.columns)) == sorted(map(str.casefold, declared.key.columns))
        and _one(catalog, [key.ref_table]) is _one(catalog, [declared.key.ref_table])
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
