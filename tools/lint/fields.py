"""PostgreSQL's ``(value).f`` and ``source.f``, which call the function ``f`` if there is no such field.

Fields of structures and lists elsewhere call nothing: there the engine tells which are not there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp
from sqlglot.errors import SqlglotError

from quorum.tools.guard.vocabulary import function_names, words

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Table
    from quorum.tools.lint.resolver import FromItem, Scope
    from quorum.tools.lint.tables import CaseRules, Tables

Columns: TypeAlias = "dict[str, str] | None"
"""Column keys with the names people see, in order; None where the columns cannot be known."""

UNNAMED = "\0"
"""Begins the key of an output that PostgreSQL names itself (``unnamed``)."""


def is_harmless(key: str) -> bool:
    """True if the engine gives a field this name, or a function of the name is known to be harmless."""
    return key in words("postgres_fields") or key in function_names("postgres")


def unnamed(names: CaseRules, item: exp.Expr) -> str:
    """Return the key of an output that the engine names itself, with the names that it may give."""
    found = (names.key(node) for node in item.find_all(exp.Identifier))
    return UNNAMED.join(["", str(id(item)), *dict.fromkeys(found)])


def returned(names: CaseRules, node: exp.Expr) -> Columns:
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


def _in_rows(rows: list[FromItem], key: str) -> bool | None:
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
