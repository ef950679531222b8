"""Catalogs cached on disk: no question waits until thousands of tables are read.

One compressed file for each ``Connector.identity``: another role, session or list of schemas has a file of
its own. It holds no secret, only its owner may read it, it is written whole or not at all; one that cannot
be used is ignored with a line in the log. The catalog of a database file is read again when that file has
changed (``Connector.stamp``), and tables under row policies each time: they are cached without their columns.

The same folder keeps, for each database, which warnings an answer has given already
(``CatalogCache.new_warnings``).
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import logging
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import quorum
from quorum.knowledge.atomic import replace_file
from quorum.knowledge.catalog import Catalog, from_json, to_json
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.base import Connector
from quorum.tools.databases.many.connector import ManyConnector
from quorum.tools.garbage import no_collections

if TYPE_CHECKING:
    from quorum.tools.rights import Rights

FORMAT = 7
FORGOTTEN_SECONDS = 30 * 86_400.0
"""Files that have not been written for so long are deleted."""
SUFFIXES = (".gz", ".lock", ".part", ".said")
LEVEL = 4
"""Of compression: higher ones take twice as long for a tenth less."""

DAMAGE = (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading a damaged file raises."""


@dataclass(frozen=True)
class CatalogCache:
    """A folder of catalogs.

    Attributes:
        age: Seconds for which a catalog is used before it is read again; with 0 it is read each time.
        rights: Rules of what may be seen; with them ``read_catalog`` caches nothing.
    """

    folder: Path
    age: float
    rights: Rights | None = None

    async def catalog(self, connector: Connector, *, samples: int = 3) -> Catalog:
        """Return the cached catalog of an open connector if it is young enough, else read it and cache it.

        Raises:
            DatabaseUnavailable: As ``Connector.catalog``.
        """
        if isinstance(connector, ManyConnector):
            reading = (self.catalog(each, samples=samples) for each in connector.members)
            return await connector.take(await asyncio.gather(*reading))
        identity = await connector.identity()
        if not identity:
            return await connector.catalog(samples=samples)
        path, head = await asyncio.to_thread(self.file, connector, identity, samples)
        found = await asyncio.to_thread(_load, path, head, self.age)
        if found and (whole := await _with_filtered(found, connector, samples)):
            return whole
        head["read"] = time.time()
        catalog = await connector.catalog(samples=samples)
        await asyncio.to_thread(_save, path, head, catalog)
        return catalog

    def file(
        self, connector: Connector, identity: tuple[str, ...], samples: int
    ) -> tuple[Path, dict[str, Any]]:
        """Return the file of a connector's identity, and what must stand in it."""
        key = _digest(FORMAT, quorum.__version__, connector.scheme, connector.dialect, samples, *identity)
        head = {"format": FORMAT, "key": key, "state": connector.stamp()}
        return self.folder / f"{connector.scheme}-{key[:16]}.json.gz", head

    def new_warnings(self, where: str, connector: Connector, sentences: Iterable[str]) -> list[str]:
        """Return the sentences that were not returned for the same database before.

        One whose file has changed, or that did not hold for a while, is returned again.

        Args:
            where: Where the database is (``quorum.tools.urls.locations``).
            sentences: All of ``Catalog.left_out``.
        """
        marks = {each: _digest(each, connector.stamp(each)) for each in sentences}
        path = self.folder / f"{_digest(where)[:16]}.said"
        try:
            said = set(path.read_text("ascii").split())
        except (OSError, ValueError):  # not there, or damaged
            said = set()
        if said != set(marks.values()):
            with suppress(OSError):  # then they are said once more
                _write(path, "\n".join(marks.values()).encode())
        return [each for each, mark in marks.items() if mark not in said]


def _load(path: Path, head: Mapping[str, Any], age: float) -> Catalog | None:
    """Return the catalog that a file holds; None if it is older than ``age``, or damaged."""
    try:
        with no_collections():  # there is none in it, and looking for some would take as long again
            found = json.loads(gzip.decompress(path.read_bytes()))
            if any(found[name] != head[name] for name in ("format", "key")):
                raise ValueError("it is another catalog's")
            if found["state"] != head["state"]:
                return None
            catalog = from_json(found["catalog"])
        return catalog if 0 <= time.time() - float(found["read"]) < age else None
    except FileNotFoundError:
        return None
    except DAMAGE as error:
        _warn(f"The cached catalog {path} cannot be used ({error}); the database is read anew.")
        return None


async def _with_filtered(found: Catalog, connector: Connector, samples: int) -> Catalog | None:
    """Return a cached catalog with its tables under row policies read now; None if all must be read."""
    if not found.filtered:
        return found
    try:
        again = await connector.reread(found.filtered, samples=samples)
    except DatabaseUnavailable:  # none of them is there any more
        return None
    tables = {table.full_name: table for table in again.tables}
    if not tables.keys() >= {*found.filtered} >= {*again.filtered}:  # one is gone, or a policy is new
        return None
    return replace(found, tables=tuple(tables.get(t.full_name, t) for t in found.tables))


def _save(path: Path, head: Mapping[str, Any], catalog: Catalog) -> None:
    """Write a catalog for its owner alone; where that fails, log it and go on.

    What is known of tables of which the role may see some rows only is left out. Files of long ago, and what
    killed processes have left, are deleted.
    """
    bare: dict[str, Any] = {"columns": (), "row_count": None, "distinct_rows": None}
    if catalog.filtered:
        tables = (replace(t, **bare) if t.full_name in catalog.filtered else t for t in catalog.tables)
        catalog = replace(catalog, tables=tuple(tables))
    try:
        content = json.dumps({**head, "catalog": to_json(catalog)}, separators=(",", ":")).encode()
        _write(path, gzip.compress(content, LEVEL, mtime=0))
        for other in path.parent.iterdir():
            with suppress(OSError):
                if other.suffix in SUFFIXES and other.stat().st_mtime < time.time() - FORGOTTEN_SECONDS:
                    other.unlink()
    except OSError as error:
        _warn(f"The catalog cannot be cached in {path.parent}: {error.strerror}.")


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, for its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(path, content, private=True, durable=True)


def _warn(text: str) -> None:
    logging.getLogger(__name__).warning(text)
