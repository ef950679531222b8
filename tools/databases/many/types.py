"""DuckDB's types for columns of other engines, and the comparisons in which both agree."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, TypeAlias

Comparable: TypeAlias = Literal["", "number", "whole", "text", "date", "timestamp", "instant"]
"""Kinds of conditions that may be handed down; ``whole``: compared with whole numbers only,
``text``: only looked up, ``instant``: a moment with its zone; empty: none."""

_COMPARABLE: dict[str, tuple[tuple[str, Comparable], ...]] = {
    "postgres": (
        (r"smallint|integer|bigint|numeric(\(.*\))?|double precision", "number"),
        (r"text|character( varying)?(\(\d+\))?", "text"),
        (r"date", "date"),
        (r"timestamp(\(\d\))? without time zone", "timestamp"),
        (r"timestamp(\(\d\))? with time zone", "instant"),
    ),
    "mysql": (
        (r"((tiny|small|medium|big)?int|integer|decimal)(\([\d,]+\))?( unsigned)?( zerofill)?", "number"),
        (r"(var)?char\(\d+\)|(tiny|medium|long)?text|enum\(.*\)", "text"),
        (r"date", "date"),
        (r"datetime(\(\d\))?", "timestamp"),
    ),
    "bigquery": (
        (r"INT64|NUMERIC(\(.*\))?", "whole"),  # a number with a fraction is a FLOAT64 there
        (r"STRING(\(\d+\))?", "text"),
        (r"DATE", "date"),
        (r"DATETIME", "timestamp"),
        (r"TIMESTAMP", "instant"),
    ),
    "snowflake": (
        (r"(NUMBER|DECIMAL|NUMERIC|INT|INTEGER|BIGINT)(\(.*\))?", "number"),
        (r"(TEXT|VARCHAR|STRING)(\(\d+\))?", "text"),
        (r"DATE", "date"),
    ),
    "sqlite": (
        (r".*int.*", "number"),
        (r".*(char|clob|text).*", "text"),
        (r".*(real|floa|doub|dec|num).*", "number"),
        (r".*(date|time).*", "date"),
    ),
    "duckdb": (
        (r"U?(TINY|SMALL|BIG)INT|U?INTEGER|DECIMAL\(.*\)|DOUBLE", "number"),
        (r"VARCHAR", "text"),
        (r"DATE", "date"),
        (r"TIMESTAMP", "timestamp"),
        (r"TIMESTAMP WITH TIME ZONE", "instant"),
    ),
}
"""By the engine's own name of a type. What is left out differs somewhere: FLOAT arrives as it is written,
MySQL converts a YEAR, and prints a DOUBLE in its own way."""

_SPELT = {
    "mysql": (
        (r"tinyint.*", "BIGINT"),
        (r"(small|medium|big)?int.*|year.*", "BIGINT"),
        (r"bit.*", "UBIGINT"),
        (r"float.*|double.*|real.*", "DOUBLE"),
        (r"json", "JSON"),
        (r"(enum|set|time)\b.*", "VARCHAR"),
        (r"timestamp.*", "TIMESTAMP"),
        (r"(tiny|medium|long)?blob|(var)?binary.*|geometry|point", "BLOB"),
    ),
    "postgres": ((r"jsonb?", "JSON"), (r"oid", "BIGINT")),
    "bigquery": ((r"(BIG)?NUMERIC", "DECIMAL(38, 9)"),),
    "snowflake": (
        (r"VARIANT|OBJECT|ARRAY", "JSON"),
        (r"(NUMBER|DECIMAL|NUMERIC)(\(\d+(,\s*0)?\))?", "BIGINT"),
    ),
}
"""Types that sqlglot writes otherwise than they arrive."""
_SAME = {
    *("ARRAY", "BIGINT", "BOOLEAN", "DATE", "DECIMAL", "DOUBLE", "INT", "INTERVAL", "JSON", "LIST", "MAP"),
    *("SMALLINT", "STRUCT", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TINYINT", "UBIGINT", "UINT", "USMALLINT"),
    *("UTINYINT", "VARCHAR"),
}
"""sqlglot's names of types that DuckDB has under the same name; any other arrives as text."""
_KNOWN = {
    "BINARY": "VARBINARY", "BLOB": "VARBINARY", "FLOAT": "DOUBLE", "MEDIUMINT": "INT", "TEXT": "VARCHAR",
    "TIMESTAMPLTZ": "TIMESTAMPTZ", "TIMESTAMPNTZ": "TIMESTAMP", "DATETIME": "TIMESTAMP",
    "VARBINARY": "VARBINARY",
}  # fmt: skip
_LONG = {"INT": "INTEGER", "TEXT": "VARCHAR", "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}


@lru_cache(4096)
def comparable(kind: str, dialect: str) -> Comparable:
    """Return the kind of conditions on a column of this type that may be handed down."""
    for pattern, found in _COMPARABLE.get(dialect, ()):
        if re.fullmatch(pattern, kind.strip(), re.IGNORECASE):
            return found
    return ""


@lru_cache(4096)
def duckdb_type(kind: str, dialect: str) -> str:
    """Return DuckDB's type for a column of an engine's type; empty if it depends on the values (SQLite)."""
    if dialect == "duckdb":
        return kind
    if dialect == "sqlite":
        return _by_affinity(kind.upper())
    for pattern, found in _SPELT.get(dialect, ()):
        if re.fullmatch(pattern, kind.strip(), re.IGNORECASE):
            return found
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        known = exp.DataType.build(kind, dialect=dialect)
    except SqlglotError:  # a type of the user's
        return "VARCHAR"
    for node in list(known.find_all(exp.DataType)):
        name = str(node.this.value)
        found = _KNOWN.get(name, name if name in _SAME else "VARCHAR")
        if found != "DECIMAL" and (found == "VARCHAR" or not node.args.get("nested")):
            node.set("expressions", None)
        node.set("this", exp.DType[found])
    written = known.sql("duckdb")
    for short, long in _LONG.items():  # as DuckDB itself writes them
        written = re.sub(rf"\b{short}\b", long, written)
    return written


def _by_affinity(kind: str) -> str:
    """Return the type by SQLite's rules (sqlite.org/datatype3.html, 3.1); a date may be text or number."""
    if "INT" in kind:
        return "BIGINT"
    if any(word in kind for word in ("CHAR", "CLOB", "TEXT")):
        return "VARCHAR"
    if any(word in kind for word in ("REAL", "FLOA", "DOUB", "DEC")):
        return "DOUBLE"
    return "BLOB" if "BLOB" in kind else ""
