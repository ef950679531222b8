"""Catalogs of databases on servers, kept on disk: no question waits until thousands of tables are read.

One compressed file for each ``Connector.identity``: what another role, session or list of schemas sees has a
file of its own. It holds no secret, only its owner may read it, it appears whole or not at all, and one that
cannot be used is done without: a log line says so. Tables under row policies are not kept.

Beside them stands, for each database, which warnings an answer has given already (``Keeping.unsaid``).
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import logging
import os
import time
import zlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import quorum
from quorum.knowledge.atomic import lock, replace_file
from quorum.knowledge.catalog import Catalog, from_json, to_json
from quorum.tools.databases.base import Connector, Snapshot
from quorum.tools.databases.many.connector import ManyConnector
from quorum.tools.garbage import own_garbage

FORMAT = 1
WHOLE_SECONDS = 7 * 86_400.0
"""A catalog is renewed by what changed for so long; then everything is read anew."""
FORGOTTEN_SECONDS = 30 * 86_400.0
"""Files that nobody has renewed for so long are deleted."""
WAIT_SECONDS = 120.0
"""For another process that is reading the same catalog."""
SUFFIXES = (".gz", ".lock", ".part", ".said")
LEVEL = 4
"""Of compression: higher ones take twice as long for a tenth less."""

DAMAGE = (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading a damaged file raises."""


@dataclass(frozen=True)
class Keeping:
    """Where catalogs are kept, and how long one is used before it is renewed.

    Attributes:
        age: Seconds; with 0 everything is read anew each time.
    """

    folder: Path
    age: float

    async def catalog(self, connector: Connector, *, samples: int = 3) -> Catalog:
        """The kept catalog of an open connector where it is young enough; else a new one, which is kept.

        Raises:
            DatabaseUnavailable: As ``Connector.catalog``.
        """
        if isinstance(connector, ManyConnector):
            reading = (self.catalog(each, samples=samples) for each in connector.members)
            return await connector.take(await asyncio.gather(*reading))
        identity = await connector.identity()
        if not identity:
            return await connector.catalog(samples=samples)
        file = CatalogFile.of(self.folder, connector, identity, samples)
        if (kept := await asyncio.to_thread(file.load)) and kept.is_young(self.age):
            return kept.snapshot.catalog
        async with file.locked():
            if (kept := await asyncio.to_thread(file.load)) and kept.is_young(self.age):
                return kept.snapshot.catalog  # another process has read it meanwhile
            before = kept if kept and kept.is_renewable(self.age) else None
            read = time.time()
            snapshot = await connector.snapshot(before.snapshot if before else None, samples=samples)
            await asyncio.to_thread(file.save, Kept(snapshot, read, before.whole if before else read))
            return snapshot.catalog

    def unsaid(self, where: str, connector: Connector, sentences: Iterable[str]) -> list[str]:
        """The sentences that this function has not returned for the same database before.

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


@dataclass(frozen=True)
class Kept:
    """What a file holds.

    Attributes:
        read, whole: When it was read, and when all of it was, in seconds since 1970.
    """

    snapshot: Snapshot
    read: float
    whole: float

    def is_young(self, age: float) -> bool:
        """Whether it can be used as it is; not where it depends on who asks which rows there are."""
        return 0 <= time.time() - self.read < age and not self.snapshot.catalog.filtered

    def is_renewable(self, age: float) -> bool:
        """Whether what has not changed may be taken from it."""
        return age > 0 and 0 <= time.time() - self.whole < WHOLE_SECONDS


@dataclass(frozen=True)
class CatalogFile:
    """The file of one identity."""

    path: Path
    key: str

    @classmethod
    def of(cls, folder: Path, connector: Connector, identity: tuple[str, ...], samples: int) -> CatalogFile:
        """That of a connector's identity."""
        known = (FORMAT, quorum.__version__, connector.scheme, connector.dialect, samples, *identity)
        key = _digest(*known)
        return cls(folder / f"{connector.scheme}-{key[:16]}.json.gz", key)

    def load(self) -> Kept | None:
        """What the file holds; None where it cannot be used."""
        try:
            with own_garbage():  # there is none in it, and looking for some would take as long again
                return self._loaded()
        except FileNotFoundError:
            return None
        except DAMAGE as error:
            _say(f"The kept catalog {self.path} cannot be used ({error}); the database is read anew.")
            return None

    def _loaded(self) -> Kept:
        found = json.loads(gzip.decompress(self.path.read_bytes()))
        if found["format"] != FORMAT or found["key"] != self.key:
            raise ValueError("it is another catalog's")
        lacks = {name: tuple(tables) for name, tables in found["lacks"].items()}
        snapshot = Snapshot(from_json(found["catalog"]), dict(found["marks"]), lacks)
        return Kept(snapshot, float(found["read"]), float(found["whole"]))

    def save(self, kept: Kept) -> None:
        """Write the file, for its owner alone; where that fails, say so and go on."""
        snapshot = kept.snapshot
        found = {
            "format": FORMAT,
            "key": self.key,
            "read": kept.read,
            "whole": kept.whole,
            "marks": dict(snapshot.marks),
            "lacks": dict(snapshot.lacks),
            "catalog": to_json(_storable(snapshot.catalog)),
        }
        try:
            _write(
                self.path, gzip.compress(json.dumps(found, separators=(",", ":")).encode(), LEVEL, mtime=0)
            )
            self._forget_others()
        except OSError as error:
            _say(f"The catalog cannot be kept in {self.path.parent}: {error.strerror}.")

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Have other processes wait; where they cannot, or wait too long, they read the database as well."""
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield
            return
        try:
            await _lock(lock)
            yield
        finally:
            os.close(lock)

    def _forget_others(self) -> None:
        """Delete what nobody has used for long, and what killed processes have left."""
        for path in self.path.parent.iterdir():
            with suppress(OSError):
                if path.suffix in SUFFIXES and path.stat().st_mtime < time.time() - FORGOTTEN_SECONDS:
                    path.unlink()


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, for its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(path, content, private=True, durable=True)


async def _lock(file: int) -> None:
    """Wait for a file's lock, ``WAIT_SECONDS`` at most."""
    end = time.monotonic() + WAIT_SECONDS
    while not lock(file) and time.monotonic() < end:  # noqa: ASYNC110 - another process unlocks it
        await asyncio.sleep(0.05)


def _storable(catalog: Catalog) -> Catalog:
    """The catalog without tables of which the role may see some rows only: they are read anew each time."""
    kept = tuple(table for table in catalog.tables if table.full_name not in catalog.filtered)
    return replace(catalog, tables=kept) if catalog.filtered else catalog


def _say(text: str) -> None:
    logging.getLogger(__name__).warning(text)
