"""Triplets on disk: one SQLite file for each database (``quorum.knowledge.triplets``).

One transaction an expansion, so a killed search loses what it was doing and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Self, get_args

from quorum.knowledge.atomic import lock
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.triplets import Expansion, Explored, Outcome, Place, Triplet

FORMAT = 1
DAMAGE = (sqlite3.Error, ValueError, TypeError)
FILE = "triplets.sqlite"

_TABLES = """
CREATE TABLE manifest (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE expansions (
    id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, action TEXT NOT NULL, columns TEXT NOT NULL,
    detail TEXT NOT NULL, sql TEXT NOT NULL, outcome TEXT NOT NULL, message TEXT NOT NULL);
CREATE TABLE triplets (
    id INTEGER PRIMARY KEY REFERENCES expansions, sql TEXT NOT NULL, shape TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL, tables TEXT NOT NULL, columns TEXT NOT NULL);
"""
_EXPANSION = "id, parent, action, columns, detail, sql, outcome, message"
_TRIPLET = "id, sql, shape, description, tables, columns"


class TripletStore:
    """The file, open for one writer.

    Attributes:
        expansions, triplets: In the order of their ids.
    """

    def __init__(self, connection: sqlite3.Connection, lock: IO[bytes] | None) -> None:
        self._connection, self._lock = connection, lock
        self.expansions = [_expansion(row) for row in _rows(connection, "expansions", _EXPANSION)]
        self.triplets = [
            Triplet(id, sql, shape, description, dict(json.loads(tables)), _places(columns))
            for id, sql, shape, description, tables, columns in _rows(connection, "triplets", _TRIPLET)
        ]

    @classmethod
    def open(cls, folder: Path, catalog: Catalog) -> Self:
        """Open the file for writing, and make it where it is missing.

        Raises:
            ConfigurationError: Another process writes it, it is damaged or of another version, or cannot be
                written.
        """
        path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock_file = (folder / "lock").open("ab")
        except OSError as error:
            raise ConfigurationError(f"Cannot write to {folder}: {error.strerror}.") from error
        if not lock(lock_file):
            lock_file.close()
            raise ConfigurationError(
                f"{catalog.name} is being explored by another process.", hint="Wait for it, or stop it."
            )
        connection: sqlite3.Connection | None = None
        try:
            connection = _connected(path, catalog)
            return cls(connection, lock_file)
        except BaseException as error:
            if connection:
                connection.close()
            lock_file.close()
            if isinstance(error, DAMAGE):
                raise _unusable(path, error) from error
            raise

    def add(self, expansion: Expansion, triplet: Triplet | None = None) -> None:
        """Store an expansion, with its triplet if it worked, or neither.

        The triplet takes the place of one of the same shape.

        Raises:
            ConfigurationError: The file cannot be written to.
        """
        values = [expansion.id, expansion.parent, expansion.action, json.dumps(expansion.columns)]
        values += [expansion.detail, expansion.sql, expansion.outcome, expansion.message]
        try:
            self._connection.execute("BEGIN")
            self._connection.execute(
                f"INSERT INTO expansions ({_EXPANSION}) VALUES (?,?,?,?,?,?,?,?)", values
            )
            if triplet:
                own = [triplet.id, triplet.sql, triplet.shape, triplet.description]
                own += [json.dumps(triplet.tables), json.dumps(triplet.columns)]
                self._connection.execute(
                    f"INSERT OR REPLACE INTO triplets ({_TRIPLET}) VALUES (?,?,?,?,?,?)", own
                )
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise ConfigurationError(f"What was explored cannot be kept: {error}.") from error
        self.expansions.append(expansion)
        if triplet:
            self.triplets = [each for each in self.triplets if each.shape != triplet.shape] + [triplet]

    def forget(self, id: int) -> None:
        """Delete a triplet; its expansion stays, so that it is not tried again."""
        self._connection.execute("DELETE FROM triplets WHERE id = ?", [id])
        self.triplets = [triplet for triplet in self.triplets if triplet.id != id]

    def close(self) -> None:
        """Release the file; safe to call twice."""
        self._connection.close()
        if self._lock:
            self._lock.close()


def load_explored(folder: Path) -> Explored:
    """Read a folder; a missing one is empty, and a damaged file is reported as a problem."""
    path = folder / FILE
    if not path.is_file():
        return Explored()
    try:
        store = _read(path, "ro")
    except DAMAGE as error:
        return Explored(problems=[f"What was explored cannot be read: {error}"])
    return Explored(tuple(store.triplets), tuple(store.expansions))


def _read(path: Path, mode: str) -> TripletStore:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True)
    try:
        _check(connection, path)
        return TripletStore(connection, None)
    except sqlite3.OperationalError:
        if mode == "rw":
            raise
        return _read(path, "rw")  # a killed write is rolled back by whoever may write
    finally:
        connection.close()


def _connected(path: Path, catalog: Catalog) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        if not connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            about = {"format": FORMAT, "database": catalog.name, "dialect": catalog.dialect}
            connection.execute(
                "BEGIN"
            )  # all or nothing: a file that a killed process left empty is made again
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(statement)
            connection.executemany("INSERT INTO manifest VALUES (?, ?)", about.items())
            connection.execute("COMMIT")
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _unusable(path: Path, error: BaseException) -> ConfigurationError:
    hint = f"Delete {path}, and exploring begins again."
    return ConfigurationError(f"What was explored cannot be used: {error}", hint=hint)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise a ``ValueError`` unless the file is whole and of this version."""
    about = dict(connection.execute("SELECT name, value FROM manifest").fetchall())
    if about.get("format") != str(FORMAT):
        raise ValueError(f"{path} is of another version of Quorum.")
    if connection.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise ValueError(f"{path} is damaged.")


def _rows(connection: sqlite3.Connection, table: str, columns: str) -> Sequence[tuple[Any, ...]]:
    return connection.execute(f"SELECT {columns} FROM {table} ORDER BY id").fetchall()


def _places(text: str) -> tuple[Place, ...]:
    return tuple((str(table), str(column)) for table, column in json.loads(text))


def _expansion(row: Sequence[Any]) -> Expansion:
    id, parent, action, columns, detail, sql, outcome, message = row
    if outcome not in get_args(Outcome):
        raise ValueError(f"an expansion ended as {outcome!r}")
    return Expansion(id, parent, action, _places(columns), detail, sql, outcome, message)
