"""Connectors: one module per engine, one abstract base, one contract test for all."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from knowledge.errors import ConfigurationError, DatabaseUnavailable

if TYPE_CHECKING:
    from tools.databases.base import Connector

CONNECTORS = {
    "sqlite": "tools.databases.sqlite:SqliteConnector",
    "duckdb": "tools.databases.duckdb:DuckdbConnector",
}
"""URL scheme to ``module:Class``; a module is imported when its scheme is first asked for."""


def connect(url: str) -> Connector:
    """An unopened connector for a URL, or for a database file's path without a scheme.

    A URL is only parsed. Of a plain path the file's first bytes are read, to see whose it is: call
    this in a thread where the event loop must not wait for a disk.

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
    """The engine whose mark the file bears."""
    hint = f"Name a database file, or a URL of {', '.join(f'{name}://' for name in CONNECTORS)}."
    try:
        with Path(path).expanduser().open("rb") as file:
            header = file.read(16)
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DatabaseUnavailable(f"{path} cannot be read: {reason}.", hint=hint) from error
    if header.startswith(b"SQLite format 3"):
        return "sqlite"
    if header[8:12] == b"DUCK":
        return "duckdb"
    raise DatabaseUnavailable(f"{path} is neither a SQLite nor a DuckDB file.", hint=hint)
