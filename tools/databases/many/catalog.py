"""The catalogs of several databases as one: ``name.schema.table``, in DuckDB's names and types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Table
from quorum.tools.databases.base import Connector
from quorum.tools.databases.many.types import duckdb_type

MAIN = "main"
"""DuckDB's schema for tables of databases that have no schemas."""
_TAKEN = """
    main temp system memory information_schema pg_catalog performance_schema mysql sys account_usage
    organization_usage dual
"""
TAKEN = frozenset(_TAKEN.split())
"""Names that mean something to DuckDB, or to lint and guard."""


@dataclass(frozen=True)
class UnionTable:
    """A table of the combined catalog, with its connector and its original definition.

    Both definitions have the same columns in the same order. Names of the combined catalog differ even
    without case.
    """

    table: Table
    owner: Connector
    original: Table

    @property
    def path(self) -> tuple[str, str, str]:
        return self.table.database, self.table.schema, self.table.name


def united(members: Sequence[tuple[Connector, Catalog]]) -> tuple[Catalog, tuple[UnionTable, ...]]:
    """Return the catalog of all members, and its tables with their owners."""
    named = _named([catalog for _, catalog in members])
    tables: list[UnionTable] = []
    notes: list[str] = []
    left_out: list[str] = []
    filtered: list[str] = []
    for (owner, catalog), names in zip(members, named, strict=True):
        found = _tables(owner, catalog, names)
        full_names = {each.original.full_name: each.table.full_name for each in found}
        columns = {each.original.full_name: _renamed(each) for each in found}
        tables += [replace(each, table=_with_keys(each, full_names, columns)) for each in found]
        title = " and ".join(names.values())
        notes += [f"{title}: {note}" for note in catalog.notes]
        left_out += [f"{title}: {note}" for note in catalog.left_out]
        filtered += [full_names[name] for name in catalog.filtered if name in full_names]
    title = "+".join(name for names in named for name in names.values())
    shown = tuple(each.table for each in tables)
    return Catalog(title, "duckdb", shown, tuple(notes), tuple(left_out), tuple(filtered)), tuple(tables)


def _named(catalogs: Sequence[Catalog]) -> list[dict[str, str]]:
    """Return each catalog's combined names of its databases. No two are alike, none is a schema's."""
    meant = TAKEN | {name.casefold() for catalog in catalogs for name in _schemas(catalog).values()}
    taken = set(meant)
    found = []
    for catalog in catalogs:
        databases = list(dict.fromkeys(table.database for table in catalog.tables))
        names: dict[str, str] = {}
        for database in databases:
            plain = catalog.name if len(databases) == 1 else database
            base = re.sub(r"\W+", "_", plain).strip("_") or "db"
            base = f"db_{base}" if base[0].isdigit() else base
            base = f"{base}_db" if base.casefold() in meant else base
            names[database] = _unlike(base, taken)
            taken.add(names[database].casefold())
        found.append(names)
    return found


def _schemas(catalog: Catalog) -> dict[str, str]:
    """Return the schemas' combined names by their own; one that repeats the database's name is ``main``."""
    own = {table.schema for table in catalog.tables}
    if {schema.casefold() for schema in own} <= {"", catalog.name.casefold()}:
        return dict.fromkeys(own, MAIN)
    return {schema: schema or MAIN for schema in own}


def _unlike(name: str, taken: Iterable[str]) -> str:
    """Return the name, with a number if it is taken, whatever the case."""
    number, found = 2, name
    while found.casefold() in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _tables(owner: Connector, catalog: Catalog, names: Mapping[str, str]) -> list[UnionTable]:
    found: dict[tuple[str, str], set[str]] = {}
    schemas, tables = _schemas(catalog), []
    for table in catalog.tables:
        database, schema = names[table.database], schemas[table.schema]
        taken = found.setdefault((database, schema.casefold()), set())
        name = _unlike(table.name, taken)
        taken.add(name.casefold())
        columns = _columns(table, catalog.dialect)
        shown = replace(table, name=name, database=database, schema=schema, columns=columns)
        tables.append(UnionTable(shown, owner, table))
    return tables


def _columns(table: Table, dialect: str) -> tuple[Column, ...]:
    """Return a table's columns with DuckDB's types, and names that differ in more than case."""
    taken: set[str] = set()
    columns = []
    for column in table.columns:
        name = _unlike(column.name, taken)
        taken.add(name.casefold())
        kind = duckdb_type(column.type, dialect)
        flat = kind == "VARCHAR" and not all(field.inferred for field in column.fields)
        fields = tuple(
            field if field.inferred else replace(field, type=duckdb_type(field.type, dialect))
            for field in column.fields
        )
        kind = kind or _seen(column)
        columns.append(replace(column, name=name, type=kind, fields=() if flat else fields))
    return tuple(columns)


def _seen(column: Column) -> str:
    """Return the type that a column's samples have, if its declaration says nothing of them (SQLite)."""
    for kind, form in (("BIGINT", r"-?\d{1,18}"), ("DOUBLE", r"-?\d+(\.\d+)?([eE][+-]?\d+)?")):
        if column.samples and all(re.fullmatch(form, sample) for sample in column.samples):
            return kind
    return "VARCHAR" if column.samples else column.type


def _renamed(table: UnionTable) -> dict[str, str]:
    """Return the combined names of a table's columns, by the owner's."""
    pairs = zip(table.original.columns, table.table.columns, strict=True)
    return {original.name: column.name for original, column in pairs}


def _with_keys(
    table: UnionTable, full_names: Mapping[str, str], columns: Mapping[str, Mapping[str, str]]
) -> Table:
    """Return the table with its keys in combined names."""
    mine = columns[table.original.full_name]
    keys = [
        ForeignKey(
            tuple(mine[name] for name in key.columns),
            full_names[key.ref_table],
            tuple(columns[key.ref_table].get(name, name) for name in key.ref_columns),
        )
        for key in table.original.foreign_keys
        if key.ref_table in full_names and all(name in mine for name in key.columns)
    ]
    primary = tuple(mine[name] for name in table.original.primary_key if name in mine)

    def renamed(column: Column) -> Column:
        matches = tuple(
            replace(key, table=full_names[key.table], column=columns[key.table][key.column])
            for key in (column.profile.keys if column.profile else ())
        )
        return replace(column, profile=replace(column.profile, keys=matches)) if column.profile else column

    own = tuple(map(renamed, table.table.columns))
    return replace(table.table, columns=own, primary_key=primary, foreign_keys=tuple(keys))
