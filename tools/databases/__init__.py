"""Connectors: one module per engine, one abstract base, one contract test for all."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases.data_files import KINDS, reader_of
from quorum.tools.databases.files import engine_of

if TYPE_CHECKING:
    from quorum.tools.databases.base import Connector

CONNECTORS = {
    "sqlite": "quorum.tools.databases.sqlite:SqliteConnector",
    "duckdb": "quorum.tools.databases.duckdb:DuckdbConnector",
    "files": "quorum.tools.databases.duckdb_files:FilesConnector",
    "schema": "quorum.tools.databases.schema:SchemaConnector",
    "postgresql": "quorum.tools.databases.postgres:PostgresConnector",
    "bigquery": "quorum.tools.databases.bigquery:BigqueryConnector",
    "mysql": "quorum.tools.databases.mysql:MysqlConnector",
    "mariadb": "quorum.tools.databases.mysql:MysqlConnector",
    "postgres": "quorum.tools.databases.postgres:PostgresConnector",
}
"""URL scheme to ``module:Class``; a module is imported when its scheme is first asked for."""

WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods")
READ_HEADER = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read(16))"


def connect(url: str) -> Connector:
    """An unopened connector for a URL, or for the path of a database, a data file or a folder of these.

    A URL is only parsed. A plain path's first bytes are read to see whose it is, which takes some
    20 ms: call this in a thread where an event loop must not wait.

    Raises:
        ConfigurationError: The scheme is unknown or the URL malformed.
        DatabaseUnavailable: A plain path names no database file.
    """
    scheme, separator, _ = url.partition("://")
    if not separator:
        scheme = _engine_of(url)
        url = f"{scheme}:///{quote(url)}"
    if scheme not in CONNECTORS:
        known = ", ".join(f"{name}://" for name in CONNECTORS)
        raise ConfigurationError(f"There is no connector for {scheme}://.", hint=f"Known are {known}.")
    module, _, name = CONNECTORS[scheme].partition(":")
    connector: type[Connector] = getattr(import_module(module), name)
    return connector.from_url(url)


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
        raise DatabaseUnavailable(f"{path} cannot be read: {error}.", hint=hint) from error
    if not found:
        raise DatabaseUnavailable(f"There is no file {path}.", hint=hint)
    # not in this process: closing the file here could break locks, see tools.databases.files
    command = [sys.executable, "-I", "-S", "-c", READ_HEADER, str(file)]
    engine = engine_of(subprocess.run(command, capture_output=True, check=False).stdout)
    if not engine and reader_of(file.name):
        return "files"
    if not engine and file.suffix.lower() in WORKBOOKS:
        hint = "Save its sheets as CSV, and name that file or their folder."
        raise DatabaseUnavailable(f"{path} is a workbook, which is not read.", hint=hint)
    if not engine:
        raise DatabaseUnavailable(f"{path} is neither a SQLite nor a DuckDB file.", hint=hint)
    return engine
