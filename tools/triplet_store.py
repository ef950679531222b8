"""Triplets on disk: one SQLite file for each database (``quorum.knowledge.triplets``).

One transaction an expansion, so a killed search loses what it was doing and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any, Self, get_args

from quorum.knowledge.atomic import lock
from quorum.knowledge.catalog import Catalog, ColumnRef
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.triplets import Expansion, ExpansionOutcome, Explored, Triplet

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
"""Columns in the order of the fields of ``Expansion`` and ``Triplet``."""


class TripletStore:
    """The file, open for one writer.

    Attributes:
        expansions, triplets: In the order of their ids.

    Raises:
        ValueError, TypeError: The file is damaged or of another version.
    """

    def __init__(self, connection: sqlite3.Connection, lock: IO[bytes] | None = None) -> None:
        self._connection, self._lock = connection, lock
        if dict(connection.execute("SELECT * FROM manifest").fetchall()).get("format") != str(FORMAT):
            raise ValueError("it is of another version of Quorum.")
        if connection.execute("PRAGMA quick_check").fetchone()[0] != "ok":
            raise ValueError("it is damaged.")
        self.expansions = [
            _expansion(*row) for row in connection.execute("SELECT * FROM expansions ORDER BY id")
        ]
        self.triplets = [_triplet(*row) for row in connection.execute("SELECT * FROM triplets ORDER BY id")]

    @classmethod
    def open(cls, folder: Path, catalog: Catalog) -> Self:
        """Open the file for writing, and make it where it is missing.

        Raises:
            ConfigurationError: Another process writes it, it is damaged or of another version, or cannot be
                written.
        """
        with ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                lock_file = opened.enter_context((folder / "lock").open("ab"))
            except OSError as error:
                raise ConfigurationError(f"Cannot write to {folder}: {error.strerror}.") from error
            if not lock(lock_file):
                text = f"{catalog.name} is being explored by another process."
                raise ConfigurationError(text, hint="Wait for it, or stop it.")
            path = folder / FILE
            try:
                made = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
                connection = opened.enter_context(closing(made))
                if not connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
                    about = {"format": FORMAT, "database": catalog.name, "dialect": catalog.dialect}
                    connection.executescript(f"BEGIN; {_TABLES}")  # all or nothing, should the process end
                    connection.executemany("INSERT INTO manifest VALUES (?, ?)", about.items())
                    connection.execute("COMMIT")
                store = cls(connection, lock_file)
            except DAMAGE as error:
                hint = f"Delete {path}, and exploring begins again."
                raise ConfigurationError(f"What was explored cannot be used: {error}", hint=hint) from error
            opened.pop_all()
            return store

    def add(self, expansion: Expansion, triplet: Triplet | None = None) -> None:
        """Store an expansion, with its triplet if it worked, or neither.

        The triplet takes the place of one of the same shape.

        Raises:
            ConfigurationError: The file cannot be written to.
        """
        try:
            with self._connection as connection:  # commits, or rolls back
                connection.execute("BEGIN")
                connection.execute("INSERT INTO expansions VALUES (?,?,?,?,?,?,?,?)", _row(expansion))
                if triplet:
                    connection.execute("INSERT OR REPLACE INTO triplets VALUES (?,?,?,?,?,?)", _row(triplet))
        except sqlite3.Error as error:
            raise ConfigurationError(f"What was explored cannot be kept: {error}.") from error
        self.expansions.append(expansion)
        if triplet:
            self.triplets = [each for each in self.triplets if each.shape != triplet.shape] + [triplet]

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
        try:
            store = _read(path, "ro")
        except sqlite3.OperationalError:  # a killed write is rolled back by whoever may write
            store = _read(path, "rw")
    except DAMAGE as error:
        return Explored(problems=[f"What was explored cannot be read ({path}): {error}"])
    return Explored(tuple(store.triplets), tuple(store.expansions))


def _read(path: Path, mode: str) -> TripletStore:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True)) as connection:
        return TripletStore(connection)


def _row(stored: Expansion | Triplet) -> list[Any]:
    """Return the fields as the file has them: tables and columns as JSON."""
    return [each if isinstance(each, int | str) else json.dumps(each) for each in vars(stored).values()]


def _places(text: str) -> tuple[ColumnRef, ...]:
    return tuple((str(table), str(column)) for table, column in json.loads(text))


def _expansion(id: int, parent: int, action: str, columns: str, detail: str, *more: Any) -> Expansion:
    sql, outcome, message = more
    if outcome not in get_args(ExpansionOutcome):
        raise ValueError(f"an expansion ended as {outcome!r}")
    return Expansion(id, parent, action, _places(columns), detail, sql, outcome, message)


def _triplet(id: int, sql: str, shape: str, description: str, tables: str, columns: str) -> Triplet:
    return Triplet(id, sql, shape, description, dict(json.loads(tables)), _places(columns))
