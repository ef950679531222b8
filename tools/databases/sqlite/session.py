"""A hardened SQLite connection; runs inside the child process.

Three locks, each of which stops most attacks alone: the file is opened ``mode=ro``, ``query_only`` is on, and
an authorizer, set last, lets nothing pass but reads. ``mode=ro`` alone would still allow ATTACH of a new
file, VACUUM INTO and PRAGMAs.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.worker import Fetched, check

BUSY_SECONDS = 1.0
"""Seconds to wait for a locked database."""
STEPS = 10_000
"""Virtual machine steps between two looks at the clock: a fraction of a millisecond."""
LONGEST_VALUE = 64 * 2**20
"""Lower bound of the largest value, in bytes, that a query may handle."""
SETTINGS = (
    "PRAGMA query_only = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA temp_store = MEMORY",  # no sort may spill to a file
    "PRAGMA mmap_size = 0",
)
INFORMATIVE = (
    "table_info",
    "table_xinfo",
    "foreign_key_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "table_list",
)
"""Pragmas that only describe the schema; queries reach them as ``pragma_table_info('orders')``."""
LISTS = ("database_list", "collation_list", "compile_options", "function_list", "module_list", "pragma_list")
"""Pragmas that describe the engine; they take no argument."""
FORBIDDEN_FUNCTIONS = {"load_extension", "fts3_tokenizer"}


class SqliteSession:
    """See ``quorum.tools.databases.worker.Session``."""

    def __init__(self, path: str, memory: int, files: Sequence[str] = ()) -> None:
        del memory, files  # SQLite has no limit per connection, the process has; it reads no other file
        check(path, "sqlite")
        self._deadline, self._path = 0.0, path
        self._open()

    def _open(self) -> None:
        try:
            self._connect()
        except sqlite3.Error as error:
            raise _explained(self._path, error) from error

    def _connect(self) -> None:
        with Path(self._path).open("rb") as file:
            wal = file.read(20)[18:] == bytes((2, 2))
        self._files = _Files.of(self._path, wal=wal)
        self._connection = sqlite3.connect(
            f"{Path(self._path).as_uri()}?mode=ro{self._files.option}",
            uri=True,
            isolation_level=None,
            timeout=BUSY_SECONDS,
        )
        self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # is it a database?
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        write = f"PRAGMA user_version = {version}"  # changes nothing even if it succeeds
        _must_fail(self._connection, write, "SQLITE_READONLY")
        for setting in SETTINGS:
            self._connection.execute(setting)
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        _touch_virtual_tables(self._connection)
        self._connection.set_progress_handler(self._overdue, STEPS)
        self._connection.set_authorizer(_authorise)
        _must_fail(self._connection, write, "SQLITE_AUTH")

    def warm_up(self) -> None:
        import quorum.tools.databases.sqlite.values  # noqa: F401 - loads pyarrow

    def run(self, sql: str, rows: int, size: int, seconds: float) -> Fetched:
        """Run one statement; see ``Session.run``. Text that is not UTF-8 comes with its bytes escaped."""
        self._deadline = time.monotonic() + seconds
        while True:
            if self._changed():  # a program has begun to write: from now on it is read with locks
                self._connection.close()
                self._open()
            try:
                fetched = self._run_with_bad_text(sql, rows, size)
            except sqlite3.Error:
                if self._overdue() or not self._changed():
                    raise
            else:
                if not self._changed():
                    return fetched

    def _changed(self) -> bool:
        """Return True if the file may have changed under a connection that takes no locks."""
        return self._files.still and _Files.of(self._path, wal=True) != self._files

    def _run_with_bad_text(self, sql: str, rows: int, size: int) -> Fetched:
        """Run a query; if a text is not UTF-8, run it again with its bytes escaped."""
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(size, LONGEST_VALUE))
        try:
            return self._run(sql, rows, size)
        except sqlite3.OperationalError as error:
            if not str(error).startswith("Could not decode to UTF-8"):
                raise
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
        try:
            return self._run(sql, rows, size)
        finally:
            self._connection.text_factory = str

    def _run(self, sql: str, rows: int, size: int) -> Fetched:
        from quorum.tools.databases.sqlite.values import SqliteCollector

        cursor = self._connection.cursor()
        try:
            cursor.execute(sql)
            if cursor.description is None:
                raise sqlite3.ProgrammingError("The text holds no query.")
            kept = SqliteCollector([item[0] for item in cursor.description], rows, size)
            while not kept.truncated and (batch := cursor.fetchmany(kept.next_batch)):
                kept.add(batch)
                if self._overdue():
                    raise TimeoutError("The time is up.")
            table, types = kept.finish()
            return Fetched(table, kept.truncated, types)
        finally:
            cursor.close()  # gives up the read lock

    def _overdue(self) -> bool:
        return time.monotonic() > self._deadline


@dataclass(frozen=True)
class _Files:
    """A database's files as a program may be changing them: inode, size and time of each, None without it.

    SQLite reads a file in WAL mode with a log and an index of it in the same folder. It makes them if they
    are missing, and a reader cannot remove them. So a file that no program has open is read as one that does
    not change, and read again if it did. If both exist, the index is used and not written.
    """

    main: tuple[int, int, int] | None
    log: tuple[int, int, int] | None
    index: bool
    wal: bool

    @classmethod
    def of(cls, path: str, *, wal: bool) -> _Files:
        main, log, index = (_seen(Path(path + suffix)) for suffix in ("", "-wal", "-shm"))
        return cls(main, log, index is not None, wal)

    @property
    def still(self) -> bool:
        """Return True if no program has it open, nor left anything in the log."""
        return self.wal and not (self.log and self.log[1])

    @property
    def option(self) -> str:
        """Return the URL option with which to open it."""
        return "&immutable=1" if self.still else "&readonly_shm=1" if self.wal and self.index else ""


def _seen(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _explained(path: str, error: sqlite3.Error) -> DatabaseUnavailable:
    """Explain why SQLite could not open a file that looks like one of its own."""
    code, reason = getattr(error, "sqlite_errorname", ""), str(error)
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        hint = "Another program is writing to it; try again when it is done."
        return DatabaseUnavailable(f"{path} is locked.", hint=hint)
    if code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
        return DatabaseUnavailable(
            f"{path} cannot be opened read-only: {reason}.",
            hint="A program may have left a journal or write-ahead log beside it that must be worked in, "
            "or its folder forbids the lock file that write-ahead logging needs. Open it once with a "
            "program that may write, or ask a copy made with sqlite3's .backup.",
        )
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        hint = "sqlite3's .recover may save its content."
        return DatabaseUnavailable(f"{path} is damaged: {reason}.", hint=hint)
    return DatabaseUnavailable(f"{path} cannot be opened: {reason}.")


def _touch_virtual_tables(connection: sqlite3.Connection) -> None:
    """Use virtual tables and table-valued functions once: setting them up looks like writing later."""
    pragmas = [*(f"pragma_{name}('')" for name in INFORMATIVE), *(f"pragma_{name}" for name in LISTS)]
    for function in ("json_each('[]')", "json_tree('[]')", *pragmas):
        connection.execute(f"SELECT * FROM {function}").fetchall()
    names = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'"
    for (name,) in connection.execute(names).fetchall():
        quoted = name.replace('"', '""')
        with suppress(sqlite3.DatabaseError):  # of an unknown module: a query on it will say so
            connection.execute(f'SELECT * FROM "{quoted}" LIMIT 0').fetchall()


def _must_fail(connection: sqlite3.Connection, write: str, refusal: str) -> None:
    """Raise PermissionError unless a write fails."""
    try:
        connection.execute(write)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorname != refusal:
            raise
    else:
        raise PermissionError("The session could write to the database; it must not.")


def _authorise(
    action: int, first: str | None, second: str | None, database: str | None, trigger: str | None
) -> int:
    """Allow reads only. What the texts mean depends on the action (sqlite.org/c3ref/c_alter_table.html)."""
    del database, trigger
    match action:
        case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_READ | sqlite3.SQLITE_RECURSIVE:
            allowed = True
        case sqlite3.SQLITE_FUNCTION:
            allowed = (second or "").lower() not in FORBIDDEN_FUNCTIONS
        case sqlite3.SQLITE_PRAGMA:  # full-text search asks for data_version itself
            allowed = (first or "").lower() in (*INFORMATIVE, *LISTS, "data_version")
        case sqlite3.SQLITE_UPDATE:  # what declaring a virtual table looks like; mode=ro forbids the real one
            allowed = first == "sqlite_master"
        case _:
            allowed = False
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
