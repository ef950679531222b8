"""Paths below columns: ``column.field.inner`` where columns have declared fields, and where they have none.

BigQuery and DuckDB have structures, whose fields are reached by dots, and lists of them, which are not.
Snowflake's documents are reached by a colon.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from quorum.tools.sql.writing import write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorum.knowledge.catalog import Column
    from quorum.tools.lint.names import Names
    from quorum.tools.lint.scope import Scope, Source

Path: TypeAlias = "tuple[str, ...]"
"""The steps below a column or an element: keys of fields, and ``[]`` into a list."""

LIST = "[]"


@dataclass(frozen=True)
class Fault:
    """Where a path breaks off.

    Attributes:
        at: The name that is not there.
        before: What stands before it, as written.
        inside: The fields that are there; none where ``before`` is a list, or no structure but a document.
        rest: ``at`` and what follows it, dotted.
    """

    at: exp.Expr
    before: str
    inside: tuple[str, ...]
    rest: str


def paths_of(column: Column, names: Names) -> list[Path]:
    """A column's declared paths; none where it has no fields or only some of them were seen."""
    if any(field.inferred or field.path == "..." for field in column.fields):
        return []
    return [_steps(field.path, names) for field in column.fields]


def _steps(path: str, names: Names) -> Path:
    parts = re.findall(r"\[\]|[^.\[\]]+", path)
    return tuple(part if part == LIST else names.stored(part) for part in parts)


def heads(paths: Iterable[Path]) -> list[str]:
    """The first steps of paths, each once."""
    return list(dict.fromkeys(path[0] for path in paths if path))


def below(paths: Iterable[Path], step: str) -> list[Path]:
    """What follows ``step`` in the paths that begin with it."""
    return [path[1:] for path in paths if path and path[0] == step]


def fault(node: exp.Expr, scope: Scope, names: Names) -> Fault | None:
    """Where the path of a column, or of what stands in brackets or behind a dot, breaks off."""
    steps = _written(node)
    if len(steps) < 2:
        return None
    place, paths = _base(steps, scope, names)
    if names.dialect == "snowflake":
        document = 0 < place < len(steps) and LIST not in [name for name, _ in steps[place:]]
        return _fault(steps, place, (), names.dialect) if document else None
    for number in range(place, len(steps)):
        name, at = steps[number]
        known = heads(paths)
        if not known or "*" in known:  # a leaf, or a map
            return None
        step = name if name == LIST else names.key(at)
        if (known == [LIST]) != (step == LIST):
            return _fault(steps, number, (), names.dialect) if known == [LIST] else None
        if step not in known:
            return _fault(steps, number, tuple(known), names.dialect)
        paths = below(paths, step)
    return None


def elements(node: exp.Expr, scope: Scope, names: Names) -> list[Path]:
    """The paths below an element of a list that is unnested; none where they are not known."""
    steps = _written(node)
    place, paths = _base(steps, scope, names) if steps else (0, [])
    for name, at in steps[place:]:
        paths = below(paths, name if name == LIST else names.key(at))
    return below(paths, LIST)


def _fault(steps: list[tuple[str, exp.Expr]], number: int, inside: tuple[str, ...], dialect: str) -> Fault:
    texts = [name if name == LIST else write(at, dialect) for name, at in steps]
    before, rest = ".".join(texts[:number]).replace(f".{LIST}", "[…]"), ".".join(texts[number:])
    return Fault(steps[number][1], before, inside, rest)


def _written(node: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """The steps of a path as names, with the nodes that name them; none where it is no path."""
    if isinstance(node, exp.Column):
        return [(part.name, part) for part in node.parts if isinstance(part, exp.Identifier)]
    before = _written(node.this) if isinstance(node, exp.Dot | exp.Bracket | exp.Paren) else []
    if not before or isinstance(node, exp.Paren):
        return before
    if isinstance(node, exp.Dot):
        name = node.expression
        return [*before, (name.name, name)] if isinstance(name, exp.Identifier) else []
    key = node.expressions[0] if len(node.expressions) == 1 else node
    return [] if isinstance(key, exp.Slice) or key.is_string else [*before, (LIST, key)]


def _base(steps: list[tuple[str, exp.Expr]], scope: Scope, names: Names) -> tuple[int, list[Path]]:
    """How many steps lead to a column, and the paths below it; 0 and none where that is not known."""
    keys = [names.key(at) for _, at in steps[:2] if isinstance(at, exp.Identifier)]
    for level in scope.chain():
        if len(keys) == 2 and (sources := level.named(keys[0])):
            known = [source for source in sources if source.columns and keys[1] in source.columns]
            return (2, _below_column(known, keys[1], names)) if known else (0, [])
        if keys and (holders := level.holding(keys[0])):
            return 1, _below_column(holders, keys[0], names)
        if not keys or level.open or level.sees_alias(keys[0]):
            break
    return 0, []


def _below_column(sources: Iterable[Source], key: str, names: Names) -> list[Path]:
    found: list[Path] = []
    for source in sources:
        found += below(source.elements, key)
        for table in source.tables:
            for column in table.columns:
                found += paths_of(column, names) if names.stored(column.name) == key else []
    return found
