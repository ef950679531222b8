"""A database of which only the schema is available, as a folder of schema files; nothing runs SQL."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Self

from quorum.knowledge.catalog import Catalog, Column
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.knowledge.folder import load_folder
from quorum.tools.databases.base import Connector
from quorum.tools.databases.introspection import is_private, listed
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult
from quorum.tools.urls import path_of

NOT_LIVE = "Only the schema of this database is here: there is no live database to run the query on."


class SchemaConnector(Connector):
    """``schema:///absolute/path/to/DATABASE``, a folder that ``quorum.knowledge.folder.load_folder`` reads.

    Guard, lint and linking work as on a live database; a query that passes them fails with ``unavailable``.
    Samples come from the rows in the folder, at most three per column; whether they are complete, and the
    number of rows, is unknown.
    """

    scheme = "schema"
    live = False

    def __init__(self, folder: Path) -> None:
        """``folder``: absolute."""
        self.folder = folder
        self.dialect = ""
        self._catalog: Catalog | None = None

    @classmethod
    def from_url(cls, url: str) -> Self:
        return cls(folder_of(url))

    async def open(self) -> None:
        """Read the folder, which takes seconds where tens of thousands of columns are described."""
        await self.close()
        self._catalog = await asyncio.to_thread(_load, self.folder)
        self.dialect = self._catalog.dialect

    async def close(self) -> None:
        self._catalog = None

    async def catalog(self, *, samples: int = 3) -> Catalog:
        return await asyncio.to_thread(_sampled, self._opened(), samples)

    async def run(self, sql: str, limits: Limits) -> QueryResult | QueryError:  # noqa: ARG002
        """Always an ``unavailable`` error, which no agent tries to repair."""
        self._opened()
        return QueryError(ErrorKind.UNAVAILABLE, NOT_LIVE)

    def _opened(self) -> Catalog:
        if self._catalog is None:
            raise DatabaseUnavailable(f"The schema in {self.folder} is not open.", hint="Open it first.")
        return self._catalog


def folder_of(url: str) -> Path:
    """The folder that ``schema:///absolute/path`` names, percent-decoded. A fourth slash changes nothing.

    Raises:
        ConfigurationError: No folder is named, or the URL has a host or options.
    """
    example = "Write schema:///absolute/path/to/DATABASE."
    path = path_of(url, "schema", "folder", example).lstrip("/")
    if not path:
        raise ConfigurationError(f"{url} names no folder.", hint=example)
    return Path("/", path)


def _load(folder: Path) -> Catalog:
    try:
        catalog = load_folder(folder)
    except ConfigurationError as error:
        raise DatabaseUnavailable(str(error.args[0]), hint=error.hint) from error
    except OSError as error:
        raise DatabaseUnavailable(f"The schema files in {folder} cannot be read: {error}.") from error
    if not catalog.tables:
        raise DatabaseUnavailable(f"{folder} describes no table.", hint="Is the path right?")
    return catalog


def _sampled(catalog: Catalog, samples: int) -> Catalog:
    """The catalog with ``samples`` values a column at most, and none of private columns."""
    private = set(filter(is_private, {column.name for _, column in catalog.columns() if column.samples}))
    withheld = [f"{t.full_name}.{c.name}" for t, c in catalog.columns() if c.samples and c.name in private]

    def shown(column: Column) -> Column:
        kept = column.samples[: 0 if column.name in private else samples]
        return column if kept == column.samples else replace(column, samples=kept)

    tables = tuple(replace(table, columns=tuple(map(shown, table.columns))) for table in catalog.tables)
    note = f"No sample values are shown, for privacy, of: {listed(withheld)}."
    return replace(catalog, tables=tables, notes=catalog.notes + (note,) * bool(samples and withheld))
