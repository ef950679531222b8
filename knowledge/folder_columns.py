"""The columns of one table of a resource folder, from its DDL and its JSON file together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quorum.knowledge.catalog import Column, Field
from quorum.knowledge.ddl import DdlColumn, nested_fields
from quorum.knowledge.descriptions import trusted_descriptions
from quorum.knowledge.schema_grammar import one_line
from quorum.knowledge.variant import infer_fields

SAMPLES = 3
"""Distinct sample values kept of a column."""

SAMPLE_CHARS = 60
"""Characters kept of a sample value."""

_SEMI_STRUCTURED = frozenset({"VARIANT", "OBJECT", "ARRAY", "MAP", "JSON"})
_GEOJSON = frozenset({"type", "coordinates", "geometries"})
_SAME_TYPE = {"VARCHAR(16777216)": "TEXT", "VARCHAR": "TEXT", "BINARY(8388608)": "BINARY"}


@dataclass(frozen=True)
class Source:
    """What a folder tells about one table.

    Attributes:
        dialect: The database's dialect.
        ddl: The columns of its DDL, in order; empty where there is none.
        native: The DDL was written from the engine's own catalog, not converted.
        table: The content of its JSON file, None where there is none.
    """

    dialect: str
    ddl: tuple[DdlColumn, ...]
    native: bool
    table: dict[str, Any] | None


def build_columns(source: Source, notes: Counter[str]) -> tuple[Column, ...]:
    """The columns in the DDL's order; those that only the JSON knows come last.

    Counts into ``notes`` what was dropped or contradictory (``#`` stands for the count).
    """
    table = source.table or {}
    json_types = dict(zip(table.get("column_names", ()), table.get("column_types", ()), strict=False))
    declared = {column.name: column for column in source.ddl}
    order = [*declared, *(name for name in json_types if name not in declared)]
    rows = [row for row in table.get("sample_rows") or () if isinstance(row, dict)]
    values = {name: [row[name] for row in rows if row.get(name) is not None] for name in order}
    if source.dialect == "bigquery":
        nested, descriptions = _declared_fields(table)
    else:
        nested, descriptions = {}, _descriptions(source, order, json_types, values, notes)
    columns = []
    for name in order:
        known = declared.get(name)
        kind = _type(known.type if known else "", json_types.get(name, ""), notes)
        described = descriptions.get(name) or (known.description if known else "")
        fields = nested.get(name) or nested_fields(kind) or _inferred(kind, values[name])
        samples = () if fields else _samples(values[name])
        nullable = known.nullable if known else True
        columns.append(Column(name, kind, one_line(described), samples, fields, nullable))
    return tuple(columns)


def _type(ddl: str, told: str, notes: Counter[str]) -> str:
    """The more telling of two type names: the DDL's has lengths and precision."""
    ddl = _SAME_TYPE.get(ddl, ddl)
    if ddl and told and _family(ddl) != _family(told):
        notes[f"# columns are {ddl} in the DDL and {told} in the JSON file; the DDL's is given"] += 1
    kind = ddl or told
    if "<" in kind and " NOT NULL" in kind:
        notes["# nested columns have NOT NULL parts inside, which are not marked"] += 1
        kind = kind.replace(" NOT NULL", "")
    return kind


def _family(kind: str) -> str:
    base = kind.split("(")[0].split("<")[0].strip().upper()
    return _SAME_TYPE.get(base, base)


def _samples(values: Sequence[Any]) -> tuple[str, ...]:
    texts = (v if isinstance(v, str) else _text(v) for v in values)
    distinct = dict.fromkeys(one_line(text, SAMPLE_CHARS) for text in texts)
    return tuple(text for text in distinct if text)[:SAMPLES]


def _text(value: Any) -> str:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return repr(value) if plain else json.dumps(value, ensure_ascii=False)


def _inferred(kind: str, values: Sequence[Any]) -> tuple[Field, ...]:
    """Keys in the sample values of a semi-structured column, or of text that holds JSON objects."""
    nested = [value for value in values if _may_nest(value)]
    fields = infer_fields(nested) if nested else ()
    if kind.upper() in _SEMI_STRUCTURED or any(f.path[:2] != "[]" or "." in f.path for f in fields):
        return fields
    return ()


def _declared_fields(table: Mapping[str, Any]) -> tuple[dict[str, tuple[Field, ...]], dict[str, str]]:
    """BigQuery: nested paths by column, and the descriptions of the columns themselves.

    The source lists every path with its type and description in parallel; it spells a path
    without marking what is repeated, so the paths are rebuilt from the column's type.
    """
    names = table.get("nested_column_names", ())
    described = {n: d or "" for n, d in zip(names, table.get("description", ()), strict=False)}
    fields = {}
    for name, kind in zip(table.get("column_names", ()), table.get("column_types", ()), strict=False):
        nested = nested_fields(kind)
        if nested:
            fields[name] = tuple(
                replace(f, description=one_line(described.get(_spelt(name, f.path), ""))) for f in nested
            )
    return fields, described


def _spelt(column: str, path: str) -> str:
    return f"{column}.{path}".replace("[]", "").replace("..", ".")


def _descriptions(
    source: Source,
    order: Sequence[str],
    types: Mapping[str, str],
    values: Mapping[str, Sequence[Any]],
    notes: Counter[str],
) -> dict[str, str]:
    table = source.table or {}
    pairs = zip(table.get("column_names", ()), table.get("description", ()), strict=False)
    described = {name: text for name, text in pairs if text}
    if not described:
        return {}

    def spreads(name: str) -> bool:
        semi = types.get(name, "").upper() in _SEMI_STRUCTURED
        return semi or any(_holds_object(v) for v in values[name])

    native = source.native and (not source.ddl or [c.name for c in source.ddl] == list(types))
    kept = trusted_descriptions(order, described, spreads, native=native)
    dropped = len(described) - len(kept)
    if dropped:
        notes["# descriptions were dropped: the source puts them beside the wrong columns"] += dropped
    return kept


def _may_nest(value: Any) -> bool:
    if isinstance(value, str):
        return value[:1] in "[{ \n\t" and value.lstrip()[:1] in {"{", "["}
    return isinstance(value, dict | list)


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):  # a text that only looks like JSON
        return None


def _elements(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for inner in value:
            yield from _elements(inner)
    else:
        yield value


def _holds_object(value: Any) -> bool:
    """An object with fields of its own in the source; a GeoJSON shape is one plain value there."""
    if not _may_nest(value):
        return False
    inner = [part for part in _elements(_parsed(value)) if isinstance(part, dict)]
    return any(not (part.keys() <= _GEOJSON) for part in inner)
