"""A schema as SQLAlchemy's Inspector tells it, in few calls for all tables, and each table's first rows.

What costs is left alone: views are not read, no column is scanned, and where reading is billed no value is.
Tables are counted only where a count that takes too long is stopped for sure.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Table
from quorum.tools.databases.arrow import texts
from quorum.tools.databases.introspection import (
    SAMPLE_ROWS,
    TEXT_CHARACTERS,
    UNCOUNTED,
    UNSAMPLED,
    Introspection,
    is_unread,
    nothing_to_read,
)
from quorum.tools.databases.server import sentence
from quorum.tools.databases.sqlalchemy.errors import refusal_of
from quorum.tools.query import QueryError

if TYPE_CHECKING:
    import sqlalchemy

    from quorum.tools.databases.sqlalchemy.connector import SqlalchemyConnector

Told: TypeAlias = dict[tuple[str | None, str], Any]
"""What the Inspector says of tables, by schema and name."""
INSPECT_SECONDS = 120.0
"""Time for all that the Inspector reads: by table, where a dialect knows no better."""
_ADDED = re.compile(r" (?:COLLATE|CHARACTER SET) .*", re.DOTALL)


@dataclass
class Reflected:
    """The answers of SQLAlchemy's Inspector.

    Attributes:
        tables: Without values, each as SQLAlchemy has it, and with its columns of bytes.
        left_out: What it could not tell of, with the reason.
        schemas: Those of the database; only where no table was found in those that the URL names.
    """

    tables: list[tuple[Table, sqlalchemy.FromClause, set[str]]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    schemas: list[str] = field(default_factory=list)


async def introspect(connector: SqlalchemyConnector, *, samples: int = 3) -> Catalog:
    """See ``Connector.catalog``."""
    found = await connector.read(lambda opened: reflect(opened, connector.target.schemas), INSPECT_SECONDS)
    known = dict.fromkeys(found.schemas, (True, 0))
    if known and (
        problem := nothing_to_read(connector.place, "the account", connector.target.schemas, known, {}, str)
    ):
        raise problem
    look = Introspection(connector, connector.run)
    look.left_out += found.left_out
    tables = []
    for table, source, unread in found.tables:
        if table.kind == "view":
            if await look.readable(table.kind, table.full_name, connector.written(no_rows(source))):
                tables.append(table)
        elif connector.bills:
            look.lack(UNSAMPLED, table)
            tables.append(table)
        else:
            tables.append(await _with_values(connector, look, table, source, unread, samples))
    return look.catalog(tables)


def reflect(connection: sqlalchemy.Connection, schemas: Sequence[str]) -> Reflected:
    """All tables and views of the schemas, or of the default one."""
    import sqlalchemy

    found = Reflected()
    for schema in schemas or (sqlalchemy.inspect(connection).default_schema_name,):
        _Reader(connection, schema, found).read()
    if schemas and not found.tables:
        with suppress(NotImplementedError):  # the dialect knows of none
            found.schemas += sqlalchemy.inspect(connection).get_schema_names()
    return found


class _Reader:
    """Reads one schema; a table that the Inspector cannot tell of is left out, with the reason."""

    def __init__(self, connection: sqlalchemy.Connection, schema: str | None, found: Reflected) -> None:
        import sqlalchemy

        self.connection, self.inspector = connection, sqlalchemy.inspect(connection)
        self.schema, self.found = schema, found
        self.views = {*self._listed("view"), *self._listed("materialized_view")}
        self.names = sorted({*self._listed("table"), *self.views})

    def read(self) -> None:
        """Add the schema's tables and views to what is found."""
        from sqlalchemy import LargeBinary, column, table

        told = [self._told(what) for what in ("columns", "pk_constraint", "foreign_keys", "table_comment")]
        for name in self.names:
            columns, primary, foreign, comment = (each.get((self.schema, name)) for each in told)
            if not columns:
                continue
            keys = (primary or {}).get("constrained_columns") or ()
            made = Table(
                name=self._written(name),
                columns=tuple(
                    Column(
                        self._written(each["name"]),
                        self._type_name(each),
                        description=each.get("comment") or "",
                        nullable=bool(each.get("nullable", True)) and each["name"] not in keys,
                    )
                    for each in columns
                ),
                schema=self._written(self.schema or ""),
                kind="view" if name in self.views else "table",
                description=(comment or {}).get("text") or "",
                primary_key=tuple(map(self._written, keys)),
                foreign_keys=tuple(map(self._foreign, foreign or ())),
            )
            source = table(name, *(column(each["name"]) for each in columns), schema=self.schema)
            unread = {
                each["name"]
                for each in columns
                if isinstance(each["type"], LargeBinary) or is_unread(self._type_name(each))
            }
            aliased = source.alias("t")  # Oracle's guard reads a.b.c as a call
            self.found.tables.append((made, aliased, unread))

    def _told(self, what: str) -> Told:
        """Ask of all tables and views at once, then one by one of those that are not told of."""
        from sqlalchemy.engine.reflection import ObjectKind
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError

        told: Told = {}
        for name in (None, *self.names):
            if (self.schema, name) in told:
                continue
            try:
                if name is None:
                    asked = getattr(self.inspector, f"get_multi_{what}")
                    told |= asked(schema=self.schema, kind=ObjectKind.ANY)
                else:
                    told[self.schema, name] = getattr(self.inspector, f"get_{what}")(name, self.schema)
            except NotImplementedError:
                if name is not None:
                    break
            except SQLAlchemyError as error:
                if isinstance(error, DBAPIError) and error.connection_invalidated:
                    raise
                self.connection.rollback()  # what failed may have ended the transaction
                if name is not None and what == "columns":
                    why = refusal_of(error.orig if isinstance(error, DBAPIError) else error).message
                    kind = "view" if name in self.views else "table"
                    full = ".".join(filter(None, (self.schema, name)))
                    self.found.left_out.append(
                        f"The {kind} {full} cannot be read and is left out: {sentence(why)}"
                    )
        return told

    def _written(self, name: str) -> str:
        """A name in the engine's true case: SQLAlchemy folds those of engines that fold to upper case."""
        dialect = self.inspector.dialect
        return str(dialect.denormalize_name(name)) if dialect.requires_name_normalize and name else name

    def _type_name(self, column: Mapping[str, Any]) -> str:
        """A column's type as the engine names it, as far as the dialect can write it."""
        from sqlalchemy.exc import SQLAlchemyError
        from sqlalchemy.types import NullType

        if isinstance(column["type"], NullType):
            return "unknown"
        try:
            return _ADDED.sub("", column["type"].compile(dialect=self.inspector.dialect))
        except (SQLAlchemyError, AttributeError, TypeError):
            return str(column["type"].__class__.__name__).lower()

    def _foreign(self, key: Mapping[str, Any]) -> ForeignKey:
        target = filter(None, (key.get("referred_schema") or self.schema, key["referred_table"]))
        columns = tuple(map(self._written, key["constrained_columns"]))
        referred = tuple(map(self._written, key["referred_columns"]))
        return ForeignKey(columns, ".".join(map(self._written, target)), referred)

    def _listed(self, kind: str) -> list[str]:
        try:
            return list(getattr(self.inspector, f"get_{kind}_names")(schema=self.schema))
        except NotImplementedError:
            return []


def no_rows(source: sqlalchemy.FromClause) -> sqlalchemy.Select[Any]:
    """Return a query of no rows, which fails if a view cannot be read."""
    import sqlalchemy

    return sqlalchemy.select(*source.c).where(sqlalchemy.literal_column("1 = 0"))


def how_many(source: sqlalchemy.FromClause) -> sqlalchemy.Select[Any]:
    """The number of rows."""
    import sqlalchemy

    return sqlalchemy.select(sqlalchemy.func.count().label("n")).select_from(source)


def first_rows(source: sqlalchemy.FromClause, unread: Container[str]) -> sqlalchemy.Select[Any]:
    """Some rows; of the columns ``unread``, whose values are bytes, whether there is any."""
    import sqlalchemy
    from sqlalchemy import case, literal_column, null

    bare = [
        case((c.is_(None), null()), else_=literal_column("0")) if c.name in unread else c for c in source.c
    ]
    return sqlalchemy.select(*bare).limit(SAMPLE_ROWS)


async def _with_values(
    connector: SqlalchemyConnector,
    look: Introspection,
    table: Table,
    source: sqlalchemy.FromClause,
    unread: set[str],
    samples: int,
) -> Table:
    """The table with what its first rows tell; only of one that they are all of is anything said of all."""
    if connector.stops:
        counted = await look.try_to(connector.written(how_many(source)))
        rows = None if isinstance(counted, QueryError) else int(counted.table[0][0].as_py())
        table = look.with_count(table, rows, None)
    else:
        look.lack(UNCOUNTED, table)
    answer = await look.try_to(connector.written(first_rows(source, unread)))
    if isinstance(answer, QueryError):
        look.lack(UNSAMPLED, table)
        return table
    whole = answer.row_count < SAMPLE_ROWS and not answer.truncated
    values = [
        column.to_pylist() if name in unread else list(texts(column.to_pylist(), TEXT_CHARACTERS))
        for name, column in zip(source.c.keys(), answer.table.columns, strict=True)
    ]
    return look.filled_once(table, values, samples, whole=whole)
