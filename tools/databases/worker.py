"""The child process of an embedded engine: ``python -m quorum.tools.databases.worker``.

It opens one session, answers requests from its standard input one after the other, and dies with its parent.
It gets no secret, its memory and file writes are bounded, and the parent can kill it at any time.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from importlib import import_module
from queue import SimpleQueue
from typing import IO, Any, cast

from quorum.tools.databases.session import HEAD, Fetched, Loading, Session, pack

PR_SET_PDEATHSIG = 1  # prctl(2)
LARGEST_FILE = 16 * 2**20
"""Bytes. All that SQLite may have to write is the index of a user's write-ahead log."""
LONGEST_MESSAGE = 4_000
"""Characters of an error; engines quote values in them, whatever their length."""
HEADROOM = 256 * 2**20
"""Bytes for the result and its copy on the way out, on top of the engine's memory."""


def main() -> None:
    """Serve until the standard input ends."""
    replies = _private_stdout()
    requests: SimpleQueue[tuple[dict[str, Any], bytes]] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    opening, _ = requests.get()
    _die_with(opening["parent"])
    _limit_files()
    sys.meta_path.insert(0, _NoPandas())
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


class _NoPandas:
    """Keeps pyarrow from importing pandas with its first array, which takes a third of a second."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def _answer(session: Session, request: dict[str, Any], payload: bytes, replies: IO[bytes]) -> None:
    started = time.perf_counter()
    try:
        if "load" in request:
            cast("Loading", session).load(request["load"], payload)
            _send(replies, {"loaded": True})
            return
        fetched = session.run(request["sql"], request["rows"], request["bytes"], request["seconds"])
        result = _stream(fetched)
    except Exception as error:  # noqa: BLE001 - whatever the driver raises, the parent must hear it
        _send(replies, _failure(error))
        return
    header = {
        "seconds": time.perf_counter() - started,
        "truncated": fetched.truncated,
        "types": fetched.types,
    }
    _send(replies, header, result)


def _stream(fetched: Fetched) -> Any:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, fetched.table.schema) as writer:
        writer.write_table(fetched.table)
    return sink.getvalue()


def _failure(error: Exception) -> dict[str, Any]:
    """An error as ``EngineFailed`` carries it."""
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
    """Read requests; a thread of its own, so that the parent's end is noticed during a query."""
    import json

    source = sys.stdin.buffer
    while head := source.read(HEAD.size):
        size, payload = HEAD.unpack(head)
        requests.put((json.loads(source.read(size)), source.read(payload)))
    os._exit(0)


def _private_stdout() -> IO[bytes]:
    """Keep the pipe for replies; what an engine prints is dropped."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return replies


def open_session(opening: dict[str, Any]) -> Session:
    """The session that ``quorum.tools.databases.process.Opening`` describes, as a dict."""
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


if __name__ == "__main__":
    main()
