"""Connectors: one module per engine, one abstract base, one contract test for all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases.duckdb.sources import KINDS, reader_of
from quorum.tools.urls import ALMOST_URL, mask_url

if TYPE_CHECKING:
    from quorum.tools.databases.base import Connector

CONNECTORS = {
    "sqlite": "quorum.tools.databases.sqlite.connector:SqliteConnector",
    "duckdb": "quorum.tools.databases.duckdb.connector:DuckdbConnector",
    "files": "quorum.tools.databases.duckdb.files:FilesConnector",
    "schema": "quorum.tools.databases.schema:SchemaConnector",
    "postgresql": "quorum.tools.databases.postgres.connector:PostgresConnector",
    "bigquery": "quorum.tools.databases.bigquery.connector:BigqueryConnector",
    "snowflake": "quorum.tools.databases.snowflake.connector:SnowflakeConnector",
    "mysql": "quorum.tools.databases.mysql.connector:MysqlConnector",
    "mariadb": "quorum.tools.databases.mysql.connector:MysqlConnector",
    "postgres": "quorum.tools.databases.postgres.connector:PostgresConnector",
}
"""URL scheme to ``module:Class``; a module is imported when its scheme is first asked for."""
LAST_RESORT = "quorum.tools.databases.sqlalchemy.connector:SqlalchemyConnector"
"""For the URLs of SQLAlchemy's dialects that have no connector here, and ``sqlalchemy+postgresql``."""

WORKBOOKS = (".xls", ".xlsb", ".ods")
"""Those that are not read; ``.xlsx`` is a data file."""
READ_HEADER = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read(16))"


def engine_of(header: bytes) -> str:
    """Return ``sqlite`` or ``duckdb`` by a file's first bytes, else an empty text."""
    if header.startswith(b"SQLite format 3\x00"):
        return "sqlite"
    return "duckdb" if header[8:12] == b"DUCK" else ""


def connect(url: str) -> Connector:
    """An unopened connector for a URL, or for the path of a database, a data file or a folder of these.

    A URL is only parsed. A plain path's first bytes are read to see whose it is, which takes some
    20 ms: call this in a thread where an event loop must not wait.

    Raises:
        ConfigurationError: The scheme is unknown or the URL malformed.
        DatabaseUnavailable: A plain path names no database file.
    """
    url = _with_scheme(url)
    return _class_of(url).from_url(url)


def connect_all(urls: Sequence[str]) -> Connector:
    """An unopened connector for all of several URLs: they can be read in one query.

    Those that an engine joins itself are one database of it; others are joined by DuckDB, out of bounded
    parts (``quorum.tools.databases.many.connector``).

    Raises:
        ConfigurationError, DatabaseUnavailable: As ``connect``; or one is a schema alone.
    """
    groups: list[tuple[list[str], Connector]] = []
    for url in map(_with_scheme, dict.fromkeys(urls)):
        connector = _class_of(url)
        for i, (known, member) in enumerate(groups):
            if type(member) is connector and (both := connector.joined([*known, url])):
                groups[i] = [*known, url], both
                break
        else:
            groups.append(([url], connector.from_url(url)))
    if len(groups) == 1:
        return groups[0][1]
    if not all(member.live for _, member in groups):
        hint = "Give each database as one that can be asked, or the schema alone."
        raise ConfigurationError("A schema without data cannot be joined with other databases.", hint=hint)
    from quorum.tools.databases.many.connector import ManyConnector

    return ManyConnector([member for _, member in groups])


def _with_scheme(url: str) -> str:
    if "://" in url:
        return url
    if found := ALMOST_URL.match(url):
        hint = f"Write {found[1]}://…"
        raise ConfigurationError(f"{mask_url(url)} is no URL: after the colon come two slashes.", hint=hint)
    path, option, lines = url.rpartition("?skip=")
    if option and not Path(url).exists():
        return f"{_engine_of(path)}:///{quote(path)}{option}{lines}"
    return f"{_engine_of(url)}:///{quote(url)}"


def _class_of(url: str) -> type[Connector]:
    scheme = url.partition("://")[0]
    known = CONNECTORS.get(scheme)
    if known is None and (plugged_in := _plugged_in(scheme)):
        return plugged_in
    if known is None and _has_sqlalchemy(scheme):
        known = LAST_RESORT
    if known is None:
        listed = ", ".join(f"{name}://" for name in CONNECTORS)
        hint = f"Known are {listed}, and what SQLAlchemy has, such as mssql+pyodbc:// or trino://."
        raise ConfigurationError(f"There is no connector for {scheme}://.", hint=hint)
    module, _, name = known.partition(":")
    connector: type[Connector] = getattr(import_module(module), name)
    return connector


def _plugged_in(scheme: str) -> type[Connector] | None:
    """Return the connector that another package has for a scheme.

    Raises:
        ConfigurationError: It cannot be imported, is no connector, or has a dialect that the guard lacks.
    """
    from quorum.tools import plugins
    from quorum.tools.databases.base import Connector
    from quorum.tools.sql import DIALECTS, KNOWN_DIALECTS, STRICT_DIALECTS

    found = plugins.load(plugins.CONNECTORS, scheme)
    if found is None:
        return None
    if not (isinstance(found, type) and issubclass(found, Connector)):
        raise ConfigurationError(f"The plug-in for {scheme}:// is no Connector.")
    dialect = getattr(found, "dialect", "")  # empty where it depends on the database
    if dialect and dialect not in KNOWN_DIALECTS:
        hint = f"Known dialects: {', '.join(DIALECTS + STRICT_DIALECTS)}."
        raise ConfigurationError(f"The guard knows no dialect {dialect!r}, that of {scheme}://.", hint=hint)
    return found


def _has_sqlalchemy(scheme: str) -> bool:
    """Return True if a scheme is known to be one of SQLAlchemy's."""
    from quorum.tools.databases.sqlalchemy.engines import ENGINES, NAMES

    name, driver, _ = scheme.partition("+")
    return bool(driver) or name in ENGINES or name in NAMES


def _engine_of(path: str) -> str:
    """The engine whose mark the file bears; ``files`` for data files."""
    hint = f"Name a database file, a data file ({KINDS}) or a folder of these, or a URL"
    hint = f"{hint} of {', '.join(f'{name}://' for name in CONNECTORS)}."
    try:
        file = Path(path).expanduser()
        if path and file.is_dir():
            return "files"
        found = file.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # a path too long, no such home, a NUL
        raise DatabaseUnavailable(f"{mask_url(path)} cannot be read: {error}.", hint=hint) from error
    if not found:
        raise DatabaseUnavailable(f"There is no file {mask_url(path)}.", hint=hint)
    import subprocess  # the processes of databases import this module, and need none of it

    # not in this process: closing the file here could break locks, see tools.databases.worker
    command = [sys.executable, "-I", "-S", "-c", READ_HEADER, str(file)]
    engine = engine_of(subprocess.run(command, capture_output=True, check=False).stdout)
    if not engine and reader_of(file.name):
        return "files"
    if not engine and file.suffix.lower() in WORKBOOKS:
        hint = "Save it as .xlsx, and name that file or its folder."
        raise DatabaseUnavailable(f"{path} is a workbook of a kind that is not read.", hint=hint)
    if not engine:
        raise DatabaseUnavailable(f"{path} is neither a SQLite nor a DuckDB file.", hint=hint)
    return engine
