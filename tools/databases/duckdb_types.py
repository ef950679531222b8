"""Nested DuckDB types as field paths."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from quorum.knowledge.catalog import Field

_LIST = re.compile(r"(?P<item>.*)\[\d*\]", re.DOTALL)
_PLAIN_NAME = re.compile(r"\w+")
_PIECE = re.compile(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|.", re.DOTALL)


def fields_of(kind: str) -> tuple[Field, ...]:
    """The leaves inside a column's type, e.g. ``STRUCT(a INTEGER, b VARCHAR[])`` has ``a``, ``b[]``.

    ``[]`` follows a list, ``*`` stands for a map's keys. A flat type, and a list of one, has none.
    """
    if not _nested(kind):
        return ()
    return tuple(_leaves(kind, ""))


def _nested(kind: str) -> bool:
    found = _LIST.fullmatch(kind)
    return _nested(found["item"]) if found else kind.startswith(("STRUCT(", "MAP(", "UNION("))


def _leaves(kind: str, path: str) -> Iterator[Field]:
    if found := _LIST.fullmatch(kind):
        yield from _leaves(found["item"], f"{path}[]")
    elif kind.startswith("MAP("):
        _, value = _split(kind[len("MAP(") : -1])
        yield from _leaves(value, _join(path, "*"))
    elif kind.startswith(("STRUCT(", "UNION(")):
        for part in _split(kind[kind.index("(") + 1 : -1]):
            name, inner = _member(part)
            yield from _leaves(inner, _join(path, name))
    else:
        yield Field(path, kind)


def _split(text: str) -> list[str]:
    """Cut at the commas that stand outside of parentheses and quotes."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(text):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts]


def _member(part: str) -> tuple[str, str]:
    """Name and type of a struct's member."""
    name = _PIECE.match(part)
    if name and part.startswith('"'):
        return name[0][1:-1].replace('""', '"'), part[name.end() :].strip()
    plain, _, kind = part.partition(" ")
    return plain, kind.strip()


def _join(path: str, name: str) -> str:
    if name != "*" and not _PLAIN_NAME.fullmatch(name):
        return f"{path}[{json.dumps(name, ensure_ascii=False)}]"
    return f"{path}.{name}" if path else name
