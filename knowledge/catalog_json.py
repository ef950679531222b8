"""A catalog as JSON and back, quick for hundreds of thousands of columns.

Columns that are equal stand once: tables name theirs by number.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Metric, Table

_COLUMN, _TABLE, _CATALOG, _FIELD, _KEY, _METRIC = (
    tuple(field.name for field in fields(kind))
    for kind in (Column, Table, Catalog, Field, ForeignKey, Metric)
)


def to_json(catalog: Catalog) -> dict[str, Any]:
    """The catalog as what ``json`` can write."""
    numbers: dict[Column, int] = {}
    for _, column in catalog.columns():
        numbers.setdefault(column, len(numbers))
    return {
        "columns": [_row(column, _COLUMN) for column in numbers],
        "tables": [_row(table, _TABLE, numbers) for table in catalog.tables],
        **{name: getattr(catalog, name) for name in _CATALOG if name != "tables"},
    }


def from_json(found: dict[str, Any]) -> Catalog:
    """The catalog that ``to_json`` wrote.

    Raises:
        KeyError, TypeError, ValueError, IndexError: It is none.
    """
    columns = [_column(row) for row in found["columns"]]
    tables = tuple(_table(row, columns) for row in found["tables"])
    rest = {name: found[name] for name in _CATALOG if name != "tables"}
    rest |= {name: tuple(value) for name, value in rest.items() if isinstance(value, list)}
    return Catalog(tables=tables, **rest)


def _row(thing: Any, names: tuple[str, ...], numbers: dict[Column, int] | None = None) -> list[Any]:
    return [_plain(getattr(thing, name), numbers) for name in names]


def _plain(value: Any, numbers: dict[Column, int] | None) -> Any:
    if not isinstance(value, tuple) or not value or isinstance(value[0], str):
        return value
    if isinstance(value[0], Column) and numbers is not None:
        return [numbers[column] for column in value]
    names = {Field: _FIELD, ForeignKey: _KEY, Metric: _METRIC}.get(type(value[0]))
    return value if names is None else [_row(part, names) for part in value]


def _column(row: list[Any]) -> Column:
    name, kind, description, samples, nested, nullable, complete, nulls, cells = row
    fields = tuple([Field(*part) for part in nested])
    return Column(name, kind, description, tuple(samples), fields, nullable, complete, nulls, tuple(cells))


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
            "metrics": tuple(Metric(*part) for part in found["metrics"]),
        }
    )
