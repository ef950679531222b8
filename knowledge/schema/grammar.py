"""The tokens of schema text (``quorum.knowledge.schema.writer``): names, types, values and descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from types import EllipsisType
from typing import TypeAlias

BARE_NAME = re.compile(r"\w[\w$]*(?:-[\w$]+)*")
BARE_PATH = re.compile(r"(?:\[\]|\*|\w)(?:[\w$*]|\[\]|[.-](?=[\w$*\[]))*")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL_VALUE = re.compile(
    r'[,\[\]"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|^\s|\s$|^$|^all: |^NULL(?: only)?$'
)
_AFTER_TYPE = re.compile(r"\[|(?:PK|NOT NULL|:NULLs|->|!|--)(?:[ ^]|$)|$")
_CACHED = 1 << 16  # the same few names, types and texts come back at every level of detail

Cell: TypeAlias = str | EllipsisType | None
"""A value in a row: None for NULL, ``...`` where it is withheld."""


def quote(text: str, mark: str = '"') -> str:
    """The text in quotes: a quote doubled, control characters and surrogates escaped."""
    return mark + "".join(map(_escape, text)).replace(mark, mark * 2) + mark


def _escape(char: str) -> str:
    if char in _ESCAPES or char.isprintable():
        return _ESCAPES.get(char, char)
    return re.sub("....", r"\\u\g<0>", char.encode("utf-16-be", "surrogatepass").hex())


@lru_cache(_CACHED)
def write_path(path: str) -> str:
    """A nested path, bare where it can be."""
    return path if BARE_PATH.fullmatch(path) else quote(path)


@lru_cache(_CACHED)
def write_type(text: str) -> str:
    """A type in the engine's words; quoted when empty or when it could be misread."""
    plain = text.isprintable() and text == text.strip() and text[:1] not in {"", '"'}
    balanced = text.count("(") == text.count(")") and text.count("<") == text.count(">")
    if plain and balanced and bare_type_end(text + " PK", 0) == len(text):
        return text
    return quote(text)


def bare_type_end(line: str, at: int) -> int:
    depth = 0
    for i in range(at, len(line)):
        char = line[i]
        if char in "(<":
            depth += 1
        elif char in ")>":
            depth -= 1
        elif char == " " and depth == 0 and _AFTER_TYPE.match(line, i + 1):
            return i
    return len(line)


@lru_cache(_CACHED)
def write_value(value: str) -> str:
    """A sample value, quoted where it could be misread."""
    return quote(value) if _SPECIAL_VALUE.search(value) else value


def write_values(values: Iterable[str], complete: bool = False) -> str:
    """``[a, b]``; when there are no others, ``[all: a, b]`` or ``[NULL only]``."""
    written = ", ".join(map(write_value, values))
    if complete:
        return f"[all: {written}]" if written else "[NULL only]"
    return f"[{written}]"


def write_row(cells: Iterable[Cell]) -> str:
    """``a, NULL, *``: the values of a row."""
    return ", ".join(map(_write_cell, cells))


def _write_cell(cell: Cell) -> str:
    if not isinstance(cell, str):
        return "NULL" if cell is None else "*"
    return quote(cell) if cell in ("NULL", "*") else write_value(cell)


@lru_cache(_CACHED)
def one_line(text: str, limit: int | None = None) -> str:
    """The text with every run of blanks as one blank; cut to ``limit`` characters with ``…``."""
    joined = " ".join(text.split())
    if limit is None or len(joined) <= limit:
        return joined
    return joined[: max(limit - 1, 0)].rstrip() + "…"
