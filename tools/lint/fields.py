"""What is below a column: declared fields, elements of lists, PostgreSQL's ``(value).field``.

BigQuery and DuckDB have structures, whose fields are reached by dots, and lists of them, which are not.
Snowflake's documents are reached by a colon. On PostgreSQL ``(value).f`` and ``source.f`` call the function
``f`` if there is no such field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp
from sqlglot.errors import SqlglotError

from quorum.tools.guard.vocabulary import function_names, words
from quorum.tools.sql.writing import write

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Column, Table
    from quorum.tools.lint.resolver import Scope, Source
    from quorum.tools.lint.tables import Names, Tables

Columns: TypeAlias = "dict[str, str] | None"
"""Column keys with the names people see, in order; None where the columns cannot be known."""

Path: TypeAlias = "tuple[str, ...]"
"""The steps below a column or an element: keys of fields, and ``[]`` into a list."""

LIST = "[]"

UNNAMED = "\0"
"""Begins the key of an output that PostgreSQL names itself (``unnamed``)."""


@dataclass(frozen=True)
class Fault:
    """A path that breaks off.

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
    """Return a column's declared paths; none where it has no fields or only some of them were seen."""
    if any(field.inferred or field.path == "..." for field in column.fields):
        return []
    steps = (re.findall(r"\[\]|[^.\[\]]+", field.path) for field in column.fields)
    return [tuple(part if part == LIST else names.stored(part) for part in parts) for parts in steps]


def heads(paths: Iterable[Path]) -> list[str]:
    """Return the first steps of paths, each once."""
    return list(dict.fromkeys(path[0] for path in paths if path))


def below(paths: Iterable[Path], step: str) -> list[Path]:
    """Return what follows ``step`` in the paths that begin with it."""
    return [path[1:] for path in paths if path and path[0] == step]


def fault(node: exp.Expr, scope: Scope, names: Names) -> Fault | None:
    """Return the place at which the path below a column breaks off; None if it does not."""
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
    """Return the paths below an element of a list that is unnested; none where they are not known."""
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
    """Return the steps of a path as names, with the nodes that name them; none where it is no path."""
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
    """Return how many steps lead to a column, and the paths below it; 0 and [] where that is not known."""
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


def is_harmless(key: str) -> bool:
    """True if the engine gives a field this name, or a function of the name is known to be harmless."""
    return key in words("postgres_fields") or key in function_names("postgres")


def unnamed(names: Names, item: exp.Expr) -> str:
    """Return the key of an output that the engine names itself, with the names that it may give."""
    found = (names.key(node) for node in item.find_all(exp.Identifier))
    return UNNAMED.join(["", str(id(item)), *dict.fromkeys(found)])


def returned(names: Names, node: exp.Expr) -> Columns:
    """Return the columns of a table function or VALUES; None where they are not known (XMLTABLE)."""
    call = node.this if isinstance(node, exp.Table | exp.Lateral) else node
    known = isinstance(call, exp.Func | exp.Unnest | exp.Values) or node.args.get("rows_from")
    if not known or isinstance(call, exp.XMLTable | exp.JSONTable):
        return None
    alias = node.args.get("alias")
    written = [*alias.find_all(exp.Identifier)] if alias else []
    offset = node.args.get("offset")
    written += [offset] if isinstance(offset, exp.Identifier) else []
    rows = call.expressions if isinstance(call, exp.Values) else []
    places = [f"column{number + 1}" for number in range(len(rows[0].expressions) if rows else 0)]
    called = [call.name.lower()] if isinstance(call, exp.Anonymous) else []
    found = [*(names.key(name) for name in written), *places, *called]
    return {UNNAMED.join(["", str(id(node)), *found]): ""}


def may_have(columns: Columns, key: str) -> bool:
    """True if a source may have the column: one that the engine has named may be called so."""
    named = (name for name in columns or () if name.startswith(UNNAMED))
    return is_harmless(key) or any(key in name.split(UNNAMED) for name in named)


def has_field(node: exp.Dot, scope: Scope, tables: Tables) -> bool:
    """True if the value before the dot has the field, or may have it as far as is known."""
    key = tables.names.key(node.expression)
    if is_harmless(key):
        return True
    value = node.this.unnest()
    while isinstance(value, exp.Bracket):
        value = value.this.unnest()
    if isinstance(value, exp.Column) and isinstance(value.this, exp.Identifier):
        known = _of_column(value, key, scope, tables)
    elif isinstance(value, exp.Cast):
        known = _of_type(value.to, key, tables)
    else:
        known = None
    return key in tables.fields if known is None else known


def _of_column(value: exp.Column, key: str, scope: Scope, tables: Tables) -> bool | None:
    """True if a column's value or a source's row has the field; None if its type is not known."""
    name, qualifier = tables.names.key(value.this), value.args.get("table")
    for level in scope.chain():
        sources = level.named(tables.names.key(qualifier)) if qualifier is not None else level.sources
        owners = [source.table for source in sources if source.columns and name in source.columns]
        if owners:
            return _in_column(owners, name, key, tables)
        rows = level.named(name) if qualifier is None else []
        if rows:
            return _in_rows(rows, key)
    return None


def _in_column(owners: Iterable[Table | None], name: str, key: str, tables: Tables) -> bool | None:
    stored = tables.names.stored
    columns = [c for table in owners if table for c in table.columns if stored(c.name) == name]
    if not columns:
        return None
    paths = [field.path for column in columns for field in column.fields]
    if paths:
        return any(key in map(stored, path.split(".")) for path in paths)
    return None if all(_is_plain(column.type) for column in columns) else True  # a type of the user's


def _in_rows(rows: list[Source], key: str) -> bool | None:
    if any(source.columns is None for source in rows):
        return None
    return any(key in (source.columns or {}) or may_have(source.columns, key) for source in rows)


def _of_type(kind: exp.Expr, key: str, tables: Tables) -> bool | None:
    """True if the type that a cast names has the field: only a user's type has any."""
    if not isinstance(kind, exp.DataType) or kind.this != exp.DType.USERDEFINED:
        return False
    name = kind.args["kind"]
    last = name.expression if isinstance(name, exp.Dot) else name
    rows = tables.named(last) if isinstance(last, exp.Identifier) else []
    return any(key == tables.names.stored(c.name) for table in rows for c in table.columns) if rows else None


def _is_plain(kind: str) -> bool:
    """True if a column's type is one of the engine's own, which have no fields."""
    try:
        return bool(exp.DataType.build(kind, dialect="postgres", udt=True).this != exp.DType.USERDEFINED)
    except SqlglotError:
        return False
