"""Nested paths in schema text: which form a column's paths take, and how they are put together again.

The exact form spells each path from the column's name on, without marking what is repeated, and
leaves ``STRUCT<...>`` types to be rebuilt from the paths below. It is used where that rebuilds the
column exactly, which ``spell`` tries; all else is written relative to the column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from quorum.knowledge.catalog import Column, Field
from quorum.knowledge.naming import reserved
from quorum.knowledge.schema.grammar import BARE_NAME

_STRUCT = re.compile(r"(ARRAY<)?STRUCT<.*>", re.S)


@dataclass
class _PathNode:
    type: str = "STRUCT"
    description: str = ""
    children: dict[str, _PathNode] = field(default_factory=dict)


def spell(column: Column) -> tuple[str, list[Field]]:
    """The type to write for a column, and its paths as they are written.

    A path in the exact form begins with the column's name, a relative one with ``.`` (declared) or ``~``.
    """
    declared = tuple(f for f in column.fields if not f.inferred)
    if declared == column.fields and BARE_NAME.fullmatch(column.name):
        exact = [
            Field(f"{column.name}.{bare_path(f.path)}", _short_type(f.type), f.description) for f in declared
        ]
        short = _short_type(column.type)
        if rebuild(column.name, short, exact) == (column.type, declared):
            return short, exact
    ordered = [*declared, *(f for f in column.fields if f.inferred)]
    return column.type, [Field(("~" if f.inferred else ".") + f.path, f.type, f.description) for f in ordered]


def _short_type(text: str) -> str:
    """``STRUCT`` or ``ARRAY<STRUCT>`` for a structure, any other type as it is."""
    found = _STRUCT.fullmatch(text)
    if not found:
        return text
    return "ARRAY<STRUCT>" if found[1] else "STRUCT"


def bare_path(path: str) -> str:
    """A path without its ``[]`` marks: ``[].value.key`` is ``value.key``."""
    return path.replace("[]", "").strip(".")


def rebuild(column: str, kind: str, exact: Iterable[Field]) -> tuple[str, tuple[Field, ...]]:
    """The full type and the fields of a column from its type and paths in the exact form."""
    root = _PathNode(kind)
    for line in exact:
        node = root
        for segment in line.path[len(column) + 1 :].split("."):
            node = node.children.setdefault(segment, _PathNode())
        node.type, node.description = line.type, line.description
    return _full_type(root), tuple(_fields(root, _repeated(root)))


def _full_type(node: _PathNode) -> str:
    if not node.children:
        return node.type
    inside = ", ".join(f"{_field_name(name)} {_full_type(child)}" for name, child in node.children.items())
    return f"ARRAY<STRUCT<{inside}>>" if node.type == "ARRAY<STRUCT>" else f"STRUCT<{inside}>"


def _field_name(name: str) -> str:
    return f"`{name}`" if name.lower() in reserved("bigquery") else name


def _repeated(node: _PathNode) -> str:
    return "[]" if node.children and node.type.startswith("ARRAY<") else ""


def _fields(node: _PathNode, path: str) -> Iterator[Field]:
    for name, child in node.children.items():
        inner = f"{path}.{name}" if path else name
        yield Field(inner, _full_type(child), child.description)
        yield from _fields(child, inner + _repeated(child))
