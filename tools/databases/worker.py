"""The child process of an embedded engine: ``python -m quorum.tools.databases.worker``.

It opens one session, answers requests from its standard input one after the other, and dies with its parent.
It gets no secret, its memory and file writes are bounded, and the parent can kill it at any time.

A message is a head (two lengths), a JSON header and an optional binary payload, an Arrow IPC stream. A
request has a payload if it hands over rows. The child answers each request once.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases import engine_of

if TYPE_CHECKING:
    import pyarrow as pa

PR_SET_PDEATHSIG = 1  # prctl(2)
LARGEST_FILE = 16 * 2**20
"""Bytes. All that SQLite may have to write is the index of a user's write-ahead log."""
LONGEST_MESSAGE = 4_000
"""Characters of an error; engines quote values in them, whatever their length."""
HEADROOM = 256 * 2**20
"""Bytes for the result and its copy on the way out, on top of the engine's memory."""

DUCKDB_HEADERS = (4096, 8192)
"""Offsets of DuckDB's two database headers; the one with the greater iteration is valid."""
DUCKDB_BLOCKS = 12_288
"""Offset of its first block."""

HEAD = struct.Struct(">IQ")
"""Length of the header and of the payload, in bytes."""

Load: TypeAlias = tuple[Mapping[str, Any], bytes | memoryview]
"""A part that a session takes before a query (``Loading.load``): its description, and an Arrow IPC stream."""


@dataclass(frozen=True)
class Fetched:
    """Rows that a session, or a link to a server, fetched.

    Attributes:
        table: Plain Arrow types only; no extension type crosses the pipe.
        truncated: Empty, or the cap that cut the rows: ``rows`` or ``bytes``.
        types: The engine's own name of each column's type.
        scanned: Bytes that the engine says it read; None if it does not say.
        slot_seconds: As ``QueryResult.slot_seconds``.
    """

    table: pa.Table
    truncated: str
    types: tuple[str, ...]
    scanned: int | None = None
    slot_seconds: float | None = None


class Session(Protocol):
    """One hardened, read-only connection inside the child process.

    It is made from the database's absolute path, the engine's memory in bytes and the absolute paths of the
    other files that it may read, raising ``DatabaseUnavailable`` if that fails, and has proven when it is
    made that it cannot write.
    """

    def __init__(self, path: str, memory: int, files: Sequence[str] = ()) -> None: ...

    def warm_up(self) -> None:
        """Load in advance what the first query needs."""

    def run(self, sql: str, rows: int, size: int, seconds: float) -> Fetched:
        """Run one statement; keep at most ``rows`` rows and ``size`` bytes, stop after ``seconds``.

        It raises the driver's own errors, which the parent classifies.
        """


class Loading(Session, Protocol):
    """A session whose queries read parts that it has taken before."""

    def load(self, what: Mapping[str, Any], payload: bytes) -> None:
        """Take one part; ``payload`` is an Arrow IPC stream."""


def pack(header: dict[str, Any], payload: int = 0) -> bytes:
    """Return a message up to its payload, which has ``payload`` bytes."""
    text = json.dumps(header).encode()
    return HEAD.pack(len(text), payload) + text


def main() -> None:
    """Serve until the standard input ends."""
    replies = os.fdopen(os.dup(1), "wb")  # a pipe of our own: what an engine prints is dropped
    os.dup2(2, 1)
    requests: SimpleQueue[tuple[dict[str, Any], bytes]] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    opening, _ = requests.get()
    _die_with(opening["parent"])
    _limit_files()
    sys.meta_path.insert(0, _OnlyArrow())
    try:
        session = open_session(opening)
        _send(replies, {"opened": True})
        session.warm_up()
    except Exception as error:  # noqa: BLE001 - whatever the driver raises, the parent must hear it
        _send(replies, _failure(error))
        return
    _limit_memory(opening["memory"])
    _send(replies, {"ready": True})
    while True:
        _answer(session, *requests.get(), replies)


class _OnlyArrow:
    """Keeps pyarrow from importing NumPy (half of a child's start) and pandas (a third of a second)."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname in ("numpy", "pandas"):
            raise ModuleNotFoundError(fullname)


def _answer(session: Session, request: dict[str, Any], payload: bytes, replies: IO[bytes]) -> None:
    started = time.perf_counter()
    try:
        if "load" in request:
            cast("Loading", session).load(request["load"], payload)
            _send(replies, {"loaded": True})
            return
        fetched = session.run(request["sql"], request["rows"], request["bytes"], request["seconds"])
        from quorum.tools.databases.arrow import to_stream

        result = to_stream(fetched.table)
    except Exception as error:  # noqa: BLE001 - whatever the driver raises, the parent must hear it
        _send(replies, _failure(error))
        return
    seconds = time.perf_counter() - started
    _send(replies, {"seconds": seconds, "truncated": fetched.truncated, "types": fetched.types}, result)


def _failure(error: Exception) -> dict[str, Any]:
    """Return an error as ``EngineFailed`` takes it."""
    message = Exception.__str__(error)
    if len(message) > LONGEST_MESSAGE:  # the middle goes: DuckDB's messages are JSON
        message = f"{message[: LONGEST_MESSAGE // 2]} … {message[-LONGEST_MESSAGE // 2 :]}"
    return {
        "error": {
            "type": type(error).__name__,
            "message": message,
            "code": getattr(error, "sqlite_errorname", ""),
            "hint": getattr(error, "hint", ""),
        }
    }


def _send(replies: IO[bytes], header: dict[str, Any], payload: Any = b"") -> None:
    replies.write(pack(header, len(payload)))
    replies.write(payload)
    replies.flush()


def _listen(requests: SimpleQueue[tuple[dict[str, Any], bytes]]) -> None:
    """Read requests, in a thread of its own so that the parent's end is noticed during a query."""
    source = sys.stdin.buffer
    while head := source.read(HEAD.size):
        size, payload = HEAD.unpack(head)
        requests.put((json.loads(source.read(size)), source.read(payload)))
    os._exit(0)


def open_session(opening: dict[str, Any]) -> Session:
    """Open the session that ``quorum.tools.databases.process.OpenRequest`` describes, as a dict."""
    module, _, attribute = opening["session"].partition(":")
    made: type[Session] = getattr(import_module(module), attribute)
    return made(opening["path"], opening["memory"], opening["files"])


def _die_with(parent: int) -> None:
    """Have the kernel kill this process with its parent, even while the engine is busy."""
    if sys.platform != "linux":
        return  # elsewhere the end of the standard input does it
    import ctypes
    import signal

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call
        os._exit(0)


def _limit_files() -> None:
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))


def _limit_memory(memory: int) -> None:
    """Allow ``memory`` and some headroom on top of the address space that the libraries take."""
    if sys.platform != "linux":
        return  # macOS ignores RLIMIT_AS, Windows has none; the wall clock still holds
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - pathlib costs start time
        taken = int(file.read().split()[0]) * resource.getpagesize()
    limit = taken + memory + HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def check(path: str, engine: str) -> None:
    """Check that a file is one of the engine's, by its first bytes.

    This runs in child processes only. A process that closes a file loses all its POSIX locks on it, so
    looking into a SQLite file from the user's own process could break a transaction that the same process
    has open there (sqlite.org/howtocorrupt.html, 2.2).

    Raises:
        DatabaseUnavailable: It is missing, unreadable, empty, another engine's, or cut short.
    """
    header, size = _read(path)
    if not header:
        raise DatabaseUnavailable(f"{path} is empty: 0 bytes.", hint="Was it ever written?")
    found = engine_of(header)
    if not found:
        hint = "It may be encrypted, damaged, or something else."
        raise DatabaseUnavailable(f"{path} is not a {engine} database.", hint=hint)
    if found != engine:
        raise DatabaseUnavailable(f"{path} is a {found} file.", hint=f"Write {found}:/// before its path.")
    if engine == "duckdb" and size < _duckdb_size(header):  # SQLite looks by itself
        hint = "Copy it again from its source."
        raise DatabaseUnavailable(f"{path} is damaged: only {size} bytes of it are there.", hint=hint)


def _read(path: str) -> tuple[bytes, int]:
    """Return the first bytes and the size of a database's file."""
    folder = os.path.dirname(path)  # noqa: PTH120 - pathlib costs start time
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(DUCKDB_BLOCKS), os.fstat(file.fileno()).st_size
    except FileNotFoundError as error:
        there = os.path.isdir(folder)  # noqa: PTH112
        hint = "Is the path right?" if there else f"There is no folder {folder} either."
        raise DatabaseUnavailable(f"There is no file {path}.", hint=hint) from error
    except IsADirectoryError as error:
        raise DatabaseUnavailable(f"{path} is a folder.", hint="Name the database's file.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DatabaseUnavailable(f"{path} cannot be read: {reason}.") from error


def _duckdb_size(header: bytes) -> int:
    """Return the size by the newer database header: number of blocks times their size."""
    if len(header) < DUCKDB_BLOCKS:
        return DUCKDB_BLOCKS
    headers = [struct.unpack_from("<6Q", header, start) for start in DUCKDB_HEADERS]
    _, _, _, _, blocks, block_size = max(headers, key=lambda fields: fields[1])
    plausible = 2**14 <= block_size <= 2**18
    return DUCKDB_BLOCKS + (blocks * block_size if plausible else 0)


if __name__ == "__main__":
    sys.modules["quorum.tools.databases.worker"] = sys.modules[__name__]  # sessions import it by its name
    main()
