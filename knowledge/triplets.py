"""What a tree search learned of a database, in one SQLite file (SQLAgent, paper 001, section 3.2).

The file holds every expansion of the tree, tried once each, and the triplets of those that worked: a schema
fragment S, a query Q over it and its description U. One transaction an expansion, so a killed search loses
what it was doing and nothing else. Nobody has checked a triplet: a query that ran is an example, never a
verified answer (``quorum.knowledge.verified``). Indexes over triplets are made anew wherever they do not fit.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal, Self, TypeAlias, get_args

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.index import Embedder, TextIndex
from quorum.knowledge.lexical import terms

FORMAT = 1
FILE = "triplets.sqlite"

Outcome: TypeAlias = Literal[
    "worked", "failed", "empty", "trivial", "known", "pointless", "personal", "unusable"
]
"""What became of an expansion: a triplet; its query failed; gave no rows or no values; was trivial; asks what
a triplet asks already; asks what nobody would; holds personal data; its model's reply had no form."""

Place: TypeAlias = tuple[str, str]
"""A table's full name and one of its columns."""

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


@dataclass(frozen=True)
class Expansion:
    """A node of the tree: the query state of its parent with one action more.

    Attributes:
        id: From 1, in the order of trying; 0 is the empty state.
        action: One of the seven (``quorum.agents.explorer.Action``).
        columns: That it is about; of a join the two that are equal.
        detail: Function, comparison or direction, in the model's words.
        sql: The query that was tried; empty where there was none.
        message: Why there is no triplet.
    """

    id: int
    parent: int
    action: str
    columns: tuple[Place, ...]
    detail: str
    sql: str
    outcome: Outcome
    message: str = ""


@dataclass(frozen=True)
class Triplet:
    """A schema fragment S, a query Q and its description U.

    Attributes:
        id: Of the expansion that it comes from.
        shape: Equal for queries that differ in literals, white space and names of their own only.
        tables: Of S, each with a mark of its columns' names and types (``quorum.tools.linking.table_marks``).
        columns: Of S.
    """

    id: int
    sql: str
    shape: str
    description: str
    tables: dict[str, str] = field(hash=False)
    columns: tuple[Place, ...] = ()


def explored_folder(root: Path, catalog: Catalog, *, static: bool = False) -> Path:
    """Where a database's triplets lie below ``root``; those that were never executed apart."""
    name = re.sub(r"\W+", "-", catalog.name).strip("-")[:40] or "database"
    mark = hashlib.sha256(repr((catalog.name, catalog.dialect)).encode("utf-8", "surrogatepass")).hexdigest()
    return root / f"{name}-{mark[:8]}{'-static' if static else ''}"


class TripletStore:
    """The file, open for one writer.

    Attributes:
        expansions, triplets: In the order of their ids.
    """

    def __init__(self, connection: sqlite3.Connection, lock: IO[bytes] | None) -> None:
        self._connection, self._lock = connection, lock
        self.expansions = [_expansion(row) for row in _rows(connection, "expansions", _EXPANSION)]
        self.triplets = [_triplet(row) for row in _rows(connection, "triplets", _TRIPLET)]

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
            lock = (folder / "lock").open("ab")
        except OSError as error:
            raise ConfigurationError(f"Cannot write to {folder}: {error.strerror}.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise ConfigurationError(
                f"{catalog.name} is being explored by another process.", hint="Wait for it, or stop it."
            ) from None
        try:
            return cls(_connected(path, catalog), lock)
        except BaseException:
            lock.close()
            raise

    def add(self, expansion: Expansion, triplet: Triplet | None = None) -> None:
        """Keep an expansion, with its triplet if it worked, or neither.

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
                self._connection.execute(f"INSERT INTO triplets ({_TRIPLET}) VALUES (?,?,?,?,?,?)", own)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise ConfigurationError(f"What was explored cannot be kept: {error}.") from error
        self.expansions.append(expansion)
        if triplet:
            self.triplets.append(triplet)

    def forget(self, id: int) -> None:
        """Delete a triplet; its expansion stays, so that it is not tried again."""
        self._connection.execute("DELETE FROM triplets WHERE id = ?", [id])
        self.triplets = [triplet for triplet in self.triplets if triplet.id != id]

    def close(self) -> None:
        """Release the file; safe to call twice."""
        self._connection.close()
        if self._lock:
            self._lock.close()


@dataclass(eq=False)
class Explored:
    """What is known of a database from exploring it, for reading.

    Attributes:
        triplets: Those that may be shown.
        expansions: All that was tried, what failed as well.
        problems: Sentences on what could not be read, or fits no more.
        cache: Folder in which embedding indexes are kept; None keeps them in memory only.
    """

    triplets: tuple[Triplet, ...] = ()
    expansions: tuple[Expansion, ...] = ()
    problems: list[str] = field(default_factory=list)
    cache: Path | None = None

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a folder; one that does not exist is empty, and a damaged file is a problem to be told."""
        path = folder / FILE
        if not path.is_file():
            return cls()
        try:
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
            try:
                _check(connection, path)
                store = TripletStore(connection, None)
            finally:
                connection.close()
        except (sqlite3.Error, ConfigurationError, ValueError, TypeError) as error:
            return cls(problems=[f"What was explored cannot be read: {error}"])
        return cls(tuple(store.triplets), tuple(store.expansions), cache=folder / "index")

    def nearest(
        self, question: str, context: Iterable[str], k: int, *, embedder: Embedder | None = None
    ) -> list[Triplet]:
        """The triplets whose queries are nearest to a question and the schema that it is about, best first.

        Question and context are one text, compared with Q and U (the paper compares with Q alone, by a model
        that was trained on code). By shared words (BM25) without an embedder; what shares none is left out.

        Args:
            context: Names of the tables and columns in question; none to search by the question alone.

        Raises:
            ConfigurationError: The embedder's package or model is missing.
        """
        if not self.triplets:
            return []
        found = _nearest(self._joint, " ".join((question, *context)), k, embedder)
        return [self.triplets[i] for i in found]

    def trajectories(self, question: str, k: int, *, embedder: Embedder | None = None) -> list[Expansion]:
        """The expansions nearest to a question, failed ones among them (an ablation: paper 001, Table 15)."""
        found = _nearest(self._raw, question, k, embedder) if self.expansions else []
        return [self.expansions[i] for i in found]

    @cached_property
    def _joint(self) -> TextIndex:
        texts = [f"{triplet.description}\n{triplet.sql}" for triplet in self.triplets]
        return TextIndex(texts, self.cache / "triplets" if self.cache else None)

    @cached_property
    def _raw(self) -> TextIndex:
        texts = [f"{step.action} {step.detail}\n{step.sql}\n{step.message}" for step in self.expansions]
        return TextIndex(texts, self.cache / "trajectories" if self.cache else None)


def _nearest(index: TextIndex, query: str, k: int, embedder: Embedder | None) -> list[int]:
    if embedder is not None:
        return [number for number, _ in index.nearest(query, k, embedder)]
    scores = index.bm25.scores(terms(query))
    best = sorted(scores.nonzero()[0].tolist(), key=lambda i: (-scores[i], i))
    return best[:k]


def _connected(path: Path, catalog: Catalog) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        if not connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            told = {"format": FORMAT, "database": catalog.name, "dialect": catalog.dialect}
            connection.execute(
                "BEGIN"
            )  # all or nothing: a file that a killed process left empty is made anew
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(statement)
            connection.executemany("INSERT INTO manifest VALUES (?, ?)", told.items())
            connection.execute("COMMIT")
        _check(connection, path)
    except (sqlite3.Error, ConfigurationError) as error:
        connection.close()
        hint = f"Delete {path}, and exploring begins anew."
        raise ConfigurationError(f"What was explored cannot be used: {error}", hint=hint) from error
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the file is whole and of this version."""
    told = dict(connection.execute("SELECT name, value FROM manifest").fetchall())
    if told.get("format") != str(FORMAT):
        raise ConfigurationError(f"{path} is of another version of Quorum.")
    if connection.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise ConfigurationError(f"{path} is damaged.")


def _rows(connection: sqlite3.Connection, table: str, columns: str) -> Sequence[tuple[Any, ...]]:
    return connection.execute(f"SELECT {columns} FROM {table} ORDER BY id").fetchall()


def _places(text: str) -> tuple[Place, ...]:
    return tuple((str(table), str(column)) for table, column in json.loads(text))


def _expansion(row: Sequence[Any]) -> Expansion:
    id, parent, action, columns, detail, sql, outcome, message = row
    if outcome not in get_args(Outcome):
        raise ValueError(f"an expansion ended as {outcome!r}")
    return Expansion(id, parent, action, _places(columns), detail, sql, outcome, message)


def _triplet(row: Sequence[Any]) -> Triplet:
    id, sql, shape, description, tables, columns = row
    return Triplet(id, sql, shape, description, dict(json.loads(tables)), _places(columns))
