"""Nested paths in schema text: which form a column's paths take, and how they are put together again.

The exact form spells each path from the column's name on, without marking what is repeated, and
leaves ``STRUCT<...>`` types to be rebuilt from the paths below. It is used where that rebuilds
the column exactly; ``spell`` proves it first. All else takes the relative forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from quorum.knowledge.catalog import Column, Field
from quorum.knowledge.ddl import nested_fields
from quorum.knowledge.schema_grammar import BARE_NAME

_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
    ALL AND ANY ARRAY AS ASC ASSERT_ROWS_MODIFIED AT BETWEEN BY CASE CAST COLLATE CONTAINS CREATE CROSS
    CUBE CURRENT DEFAULT DEFINE DESC DISTINCT ELSE END ENUM ESCAPE EXCEPT EXCLUDE EXISTS EXTRACT FALSE
    FETCH FOLLOWING FOR FROM FULL GROUP GROUPING GROUPS HASH HAVING IF IGNORE IN INNER INTERSECT
    INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT LOOKUP MERGE NATURAL NEW NO NOT NULL NULLS OF ON OR
    ORDER OUTER OVER PARTITION PRECEDING PROTO QUALIFY RANGE RECURSIVE RESPECT RIGHT ROLLUP ROWS SELECT
    SET SOME STRUCT TABLESAMPLE THEN TO TREAT TRUE UNBOUNDED UNION UNNEST USING WHEN WHERE WINDOW WITH
    WITHIN
        """,
    )
)
"""BigQuery's reserved words: it prints field names that are one of them in backticks."""

_STRUCT = re.compile(r"(ARRAY<)?STRUCT<.*>", re.S)


@dataclass(frozen=True)
class Line:
    """One path as written: its text, its (short) type, its description."""

    path: str
    type: str
    description: str = ""
    implied: bool = False


@dataclass
class _Node:
    type: str = "STRUCT"
    description: str = ""
    children: dict[str, _Node] = field(default_factory=dict)


def short_type(text: str) -> str:
    """``STRUCT`` or ``ARRAY<STRUCT>`` for a structure, any other type as it is."""
    found = _STRUCT.fullmatch(text)
    if not found:
        return text
    return "ARRAY<STRUCT>" if found[1] else "STRUCT"


def spell(column: Column) -> tuple[str, list[Line]]:
    """The type to write for a column and the lines of its paths."""
    declared = [f for f in column.fields if not f.inferred]
    inferred = [Line("~" + f.path, f.type, f.description) for f in column.fields if f.inferred]
    if not declared:
        return column.type, inferred
    told = [(f.path, f.type) for f in declared]
    exact = not inferred and BARE_NAME.fullmatch(column.name) is not None
    if exact and told == [(f.path, f.type) for f in nested_fields(column.type)]:
        lines = [
            Line(f"{column.name}.{bare_path(f.path)}", kind, f.description, kind == "STRUCT")
            for f, kind in ((f, short_type(f.type)) for f in declared)
        ]
        if rebuild(column.name, short_type(column.type), lines) == (column.type, tuple(declared)):
            return short_type(column.type), lines
    return column.type, [*(Line("." + f.path, f.type, f.description) for f in declared), *inferred]


def bare_path(path: str) -> str:
    """A path without its ``[]`` marks: ``[].value.key`` is ``value.key``."""
    return path.replace("[]", "").strip(".")


def rebuild(column: str, kind: str, lines: Iterable[Line]) -> tuple[str, tuple[Field, ...]]:
    """The full type and the fields of a column from lines in the exact form."""
    root = _Node(kind)
    for line in lines:
        node = root
        for segment in line.path[len(column) + 1 :].split("."):
            node = node.children.setdefault(segment, _Node())
        node.type, node.description = line.type, line.description
    if not root.children:
        return kind, ()
    repeated = "[]" if root.type.startswith("ARRAY<") else ""
    return _full_type(root), tuple(_fields(root, repeated))


def _full_type(node: _Node) -> str:
    if not node.children:
        return node.type
    inside = ", ".join(f"{_field_name(name)} {_full_type(child)}" for name, child in node.children.items())
    return f"ARRAY<STRUCT<{inside}>>" if node.type == "ARRAY<STRUCT>" else f"STRUCT<{inside}>"


def _field_name(name: str) -> str:
    return f"`{name}`" if name.upper() in _RESERVED else name


def _fields(node: _Node, path: str) -> Iterator[Field]:
    for name, child in node.children.items():
        inner = f"{path}.{name}" if path else name
        yield Field(inner, _full_type(child), child.description)
        repeated = "[]" if child.type.startswith("ARRAY<") and child.children else ""
        yield from _fields(child, inner + repeated)


def last_segment(path: str) -> str:
    """The name that a path ends in."""
    return path.rsplit(".", 1)[-1]


def parents_needed(lines: Sequence[Line], shown: Sequence[str]) -> Iterator[tuple[Line, str]]:
    """Lines with the descriptions that are shown, without parents that their children imply."""
    with_children = {line.path.rpartition(".")[0] for line in lines}
    for line, description in zip(lines, shown, strict=True):
        if line.implied and not description and line.path in with_children:
            continue
        yield line, description
