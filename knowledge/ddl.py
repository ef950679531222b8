"""Columns from a CREATE TABLE statement, as Snowflake and BigQuery print their own tables.

This reads what ``GET_DDL`` and ``INFORMATION_SCHEMA.TABLES.ddl`` write, fast enough for thousands
of tables; it is no SQL parser. Names come back in their true case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from quorum.knowledge.catalog import Field

_STRING = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\""
_TOKEN = re.compile(rf"{_STRING}|`[^`]*`|[()<>,]|[^()<>,'\"`]+", re.S)
_NAME = re.compile(r'\s*("(?:[^"]|"")*"|`[^`]*`|[^\s(]+)\s+(.*)', re.S)
_OPTIONS = re.compile(rf"\s+OPTIONS\s*\((?:{_STRING}|[^()'\"]|\([^()]*\))*\)", re.S)
_DESCRIPTION = re.compile(rf"\s+OPTIONS\s*\(\s*description\s*=\s*({_STRING})", re.S)
_END_OF_TYPE = re.compile(
    r"\s+(?:NOT\s+NULL|DEFAULT|COMMENT|OPTIONS|COLLATE|AUTOINCREMENT|IDENTITY|PRIMARY\s+KEY|UNIQUE|WITH)\b"
)
_CONSTRAINT = re.compile(r"\s*(?:constraint\s|primary\s+key|foreign\s+key|unique\s*\()", re.I)


@dataclass(frozen=True)
class DdlColumn:
    """A column as its DDL declares it; ``description`` is empty where the DDL has none."""

    name: str
    type: str
    nullable: bool = True
    description: str = ""


def parse_columns(ddl: str) -> tuple[DdlColumn, ...]:
    """The columns of one CREATE TABLE statement, in order; empty where it lists none.

    Unquoted names of ``create or replace TABLE`` (how Snowflake prints its own DDL) are folded to
    upper case; elsewhere names are taken as they stand.
    """
    upper = re.match(r"\s*create or replace ", ddl) is not None
    columns = split_top(ddl.partition("(")[2])
    return tuple(column for part in columns if (column := _column(part, upper)))


def split_top(text: str, tokens: re.Pattern[str] = _TOKEN) -> Iterator[str]:
    """Yield the parts between commas outside of brackets and quotes, up to the bracket that ends them."""
    depth, begin, end = 0, 0, len(text)
    for token in tokens.finditer(text):
        mark = token[0]
        if mark in {"(", "<"}:
            depth += 1
        elif mark in {")", ">"}:
            depth -= 1
            if depth < 0:
                end = token.start()
                break
        elif mark == "," and depth == 0:
            yield text[begin : token.start()].strip()
            begin = token.end()
    if last := text[begin:end].strip():
        yield last


@lru_cache(1 << 16)  # the tables of a family repeat their columns
def _column(part: str, upper: bool) -> DdlColumn | None:
    found = _NAME.match(part)
    if not found or _CONSTRAINT.match(part):
        return None
    name, rest = found[1], found[2]
    if name[0] in '"`':
        name = name[1:-1].replace('""', '"')
    elif upper:
        name = name.upper()
    behind = rest[len(_type_text(rest)) :]
    described = _DESCRIPTION.match(behind.replace(" NOT NULL", "", 1))
    type_text = _type_text(_OPTIONS.sub("", rest) if "OPTIONS" in rest else rest)
    nullable = "NOT NULL" not in _OPTIONS.sub("", behind)
    return DdlColumn(name, " ".join(type_text.split()), nullable, _unquote(described[1]) if described else "")


def _type_text(text: str) -> str:
    depth = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(mark, 0)
        if depth == 0 and (end := _END_OF_TYPE.search(mark)):
            return text[: token.start() + end.start()]
    return text


def _unquote(literal: str) -> str:
    inner = literal[1:-1]
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t", "r": "\r"}.get(m[1], m[1]), inner)


def nested_fields(type_text: str) -> tuple[Field, ...]:
    """The declared paths inside a ``STRUCT<...>`` or ``ARRAY<...>`` type, parents before children.

    ``[]`` follows a repeated part: ``ARRAY<STRUCT<key STRING>>`` gives ``[].key``.
    """
    return tuple(_nested(type_text.strip(), ""))


def _nested(text: str, path: str) -> Iterator[Field]:
    if text.startswith("ARRAY<") and text.endswith(">"):
        yield from _nested(text[6:-1].strip(), path + "[]")
    elif text.startswith("STRUCT<") and text.endswith(">"):
        for part in split_top(text[7:-1]):
            found = _NAME.match(part)
            if not found:
                continue
            name = found[1].strip("`")
            inner = f"{path}.{name}" if path else name
            kind = re.sub(r"\s+NOT\s+NULL$", "", found[2].strip())
            yield Field(inner, kind)
            yield from _nested(kind, inner)
