"""The columns of one table of a resource folder, from its DDL and its JSON file together.

Which description belongs to which column is not certain. Spider 2.0's Snowflake folders were
converted from BigQuery. Each table's JSON pairs the k-th top-level column (in DDL order) with the k-th
description of the BigQuery schema *flattened*, where every nested field has an entry of its own, and then
shuffles the pairs. So descriptions are right up to and including the first column that had nested fields,
and shifted behind it. Measured against the BigQuery originals of 16 schemas: 14,640 pairs before that
point, all right; 1,748 behind it, all wrong. Tables native to Snowflake have no such shift: their comments
belong to their columns.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quorum.knowledge.catalog import Column, Field
from quorum.knowledge.ddl import DdlColumn, nested_fields
from quorum.knowledge.schema.grammar import one_line
from quorum.knowledge.schema.inferred import infer_fields, parse_nested

SAMPLES = 3
"""Distinct sample values kept of a column."""

SAMPLE_CHARS = 60
"""Characters kept of a sample value."""

MIN_AGREEMENT = 0.7
"""Share of the name words that descriptions behind a semi-structured column must mention.

Measured: 0.73 to 1.0 where they line up, 0.03 to 0.33 where they are shifted."""

MIN_HEAD_AGREEMENT = 0.5
"""The same for the descriptions up to the first such column, where only another column order in
the source could shift them. Measured: 0.67 to 1.0 over 27 tables."""

_SEMI_STRUCTURED = frozenset({"VARIANT", "OBJECT", "ARRAY", "MAP", "JSON"})
_GEOJSON = frozenset({"type", "coordinates", "geometries"})
_SAME_TYPE = {"VARCHAR(16777216)": "TEXT", "VARCHAR": "TEXT", "BINARY(8388608)": "BINARY"}


@dataclass(frozen=True)
class DdlTable:
    """A row of ``DDL.csv``; ``native`` if the engine wrote the DDL from its own catalog, not a converter."""

    description: str = ""
    native: bool = True
    columns: tuple[DdlColumn, ...] = ()


def build_columns(
    dialect: str, ddl: DdlTable, table: Mapping[str, Any], notes: Counter[str]
) -> tuple[Column, ...]:
    """The columns in the DDL's order; those that only the JSON knows come last.

    Args:
        ddl: Without columns where there is none.
        table: The content of the JSON file, empty where there is none.
        notes: Counts what was dropped or contradictory (``#`` in a key is replaced by the count).
    """
    json_types = dict(zip(table.get("column_names", ()), table.get("column_types", ()), strict=False))
    declared = {column.name: column for column in ddl.columns}
    order = [*declared, *(name for name in json_types if name not in declared)]
    rows = [row for row in table.get("sample_rows") or () if isinstance(row, dict)]
    values = {name: [row[name] for row in rows if row.get(name) is not None] for name in order}
    if dialect == "bigquery":
        nested, descriptions = _declared_fields(table)
    else:
        native = ddl.native and (not declared or list(declared) == list(json_types))
        nested, descriptions = {}, _descriptions(table, json_types, values, notes, native=native)
    columns = []
    for name in order:
        known = declared.get(name, DdlColumn(name, ""))
        kind = _type(known.type, json_types.get(name, ""), notes)
        description = one_line(descriptions.get(name) or known.description)
        fields = nested.get(name) or nested_fields(kind) or _inferred(kind, values[name])
        samples = () if fields else _samples(values[name])
        columns.append(Column(name, kind, description, samples, fields, known.nullable))
    return tuple(columns)


def _type(ddl: str, other: str, notes: Counter[str]) -> str:
    """The more exact of two type names: the DDL's has lengths and precision."""
    ddl = _SAME_TYPE.get(ddl, ddl)
    if ddl and other and _family(ddl) != _family(other):
        notes[f"# columns are {ddl} in the DDL and {other} in the JSON file; the DDL's is given"] += 1
    kind = ddl or other
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
    fields = infer_fields(values)
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
                replace(f, description=one_line(described.get(_without_marks(name, f.path), "")))
                for f in nested
            )
    return fields, described


def _without_marks(column: str, path: str) -> str:
    return f"{column}.{path}".replace("[]", "").replace("..", ".")


def _descriptions(
    table: Mapping[str, Any],
    types: Mapping[str, str],
    values: Mapping[str, Sequence[Any]],
    notes: Counter[str],
    *,
    native: bool,
) -> dict[str, str]:
    pairs = zip(table.get("column_names", ()), table.get("description", ()), strict=False)
    described = {name: text for name, text in pairs if text}

    def spreads(name: str) -> bool:
        semi = types.get(name, "").upper() in _SEMI_STRUCTURED
        return semi or any(map(_holds_object, values[name]))

    kept = trusted_descriptions(list(values), described, spreads, native=native) if described else {}
    if dropped := len(described) - len(kept):
        notes["# descriptions were dropped: the source gives them to the wrong columns"] += dropped
    return kept


def _holds_object(value: Any) -> bool:
    """An object with fields of its own in the source; a GeoJSON shape is one plain value there."""
    parsed = parse_nested(value)
    return parsed is not None and any(
        isinstance(part, dict) and not part.keys() <= _GEOJSON for part in _elements(parsed)
    )


def _elements(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for inner in value:
            yield from _elements(inner)
    else:
        yield value


def trusted_descriptions(
    order: Sequence[str], described: Mapping[str, str], spreads: Callable[[str], bool], *, native: bool
) -> dict[str, str]:
    """The descriptions that can be trusted, by column.

    Args:
        order: The columns in the order of their DDL.
        described: Description by column, as the source pairs them.
        spreads: Whether a column is semi-structured, so may have had nested fields in the source.
        native: The table is described by its own engine, not converted from another: its
            descriptions are judged together; converted ones between any two columns that may
            shift what follows, and nothing is believed behind a doubtful stretch.
    """
    kept: dict[str, str] = {}
    stretches = _stretches(order, spreads, native)
    for number, stretch in enumerate(stretches):
        found = {name: described[name] for name in stretch if described.get(name)}
        if found and len(stretches) > 1 and not _convincing(found, behind=number > 0):
            break
        kept |= found
    return kept


def _stretches(order: Sequence[str], spreads: Callable[[str], bool], native: bool) -> list[list[str]]:
    """The columns cut behind each one that may shift what follows (natively, behind the first)."""
    stretches: list[list[str]] = [[]]
    for name in order:
        stretches[-1].append(name)
        if spreads(name) and not (native and len(stretches) > 1):
            stretches.append([])
    return stretches


def _convincing(described: Mapping[str, str], *, behind: bool) -> bool:
    if not behind:
        return _agreement(described) >= MIN_HEAD_AGREEMENT
    return len(described) > 1 and _agreement(described) >= MIN_AGREEMENT


def _agreement(described: Mapping[str, str]) -> float:
    """Mean share of a column name's words (three letters up) that its description mentions."""
    shares = []
    for name, description in described.items():
        parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
        words = {part.lower() for part in parts if len(part) > 2}
        mentioned = re.findall(r"[a-z0-9]+", description.lower())
        if words:
            hits = sum(any(t.startswith(w[:5]) for t in mentioned) for w in words)
            shares.append(hits / len(words))
    return sum(shares) / len(shares) if shares else 0.0
