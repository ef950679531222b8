"""Writing a run folder: lines at once, whole files through a thread.

A line is written where it is recorded: that takes microseconds, far less than waking a thread, and does not
wait for the disk. Whole files take several calls, some of which may wait; one thread writes those of all
runs. A failing disk ends no run: what could not be written is left out whole, ``failure`` says why, and the
next write is tried.
"""

from __future__ import annotations

import asyncio
import atexit
import io
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from quorum.knowledge.atomic import lock, replace_file
from quorum.knowledge.errors import ConfigurationError

_FILES = ThreadPoolExecutor(1, thread_name_prefix="trace-files")


class Writer:
    """Writes the files of one run, and holds the run against other processes while it is open.

    ``append``, ``replace`` and ``aflush`` never wait for a disk; ``flush`` and ``close`` do. They may be
    called from any thread. After ``close`` they do nothing.

    Attributes:
        failure: Why something could not be written, in a sentence; empty while all is well.
    """

    def __init__(self, path: Path, name: str) -> None:
        """Open the lines at ``path`` for appending; ``name`` is the run's, for people.

        Raises:
            ConfigurationError: Another process is writing the run.
        """
        self.failure = ""
        self._gate = threading.Lock()  # lines come whole, and nothing gets in behind the end
        self._closed = False
        self._waiting: set[Future[None]] = set()
        self._file = _locked_for_appending(path, name)
        atexit.register(self.close)

    def append(self, line: str) -> None:
        """Add a line to the file of lines; it is with the operating system when this returns."""
        data = _bytes(line + "\n")
        with self._gate:
            if not self._closed:
                self._do(lambda: _append(self._file, data))

    def replace(self, path: Path, text: str, *, at_once: bool = False) -> None:
        """Write a file, all of it or nothing: soon, or before this returns."""
        data = _bytes(text)
        if at_once:
            self._do(lambda: replace_file(path, data))
        else:
            self._enqueue(lambda: replace_file(path, data))

    def flush(self) -> None:
        """Wait until everything so far is with the operating system, or noted in ``failure``."""
        wait(self._under_way())

    async def aflush(self) -> None:
        """``flush`` without blocking the event loop; mostly there is nothing to wait for."""
        for future in self._under_way():
            await asyncio.wrap_future(future)

    def close(self) -> None:
        """Write what is left and release the run; safe to call twice."""
        with self._gate:
            self._closed = True
        self.flush()
        self._file.close()
        atexit.unregister(self.close)

    async def aclose(self) -> None:
        """``close`` without blocking the event loop."""
        with self._gate:
            self._closed = True
        await self.aflush()
        self.close()

    def _under_way(self) -> list[Future[None]]:
        with self._gate:
            return list(self._waiting)

    def _enqueue(self, job: Callable[[], object]) -> None:
        """Have it done, unless closed."""
        with self._gate:
            if not self._closed:
                future = _FILES.submit(self._do, job)
                self._waiting.add(future)
                future.add_done_callback(self._waiting.discard)

    def _do(self, job: Callable[[], object]) -> None:
        try:
            job()
        except OSError as error:
            self.failure = self.failure or f"{error.strerror or error}."
        except Exception as error:  # noqa: BLE001 - a trace ends no run
            self.failure = self.failure or f"{type(error).__name__}: {error}."


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")  # a lone surrogate must not end a run


def _locked_for_appending(path: Path, name: str) -> io.FileIO:
    """Open the lines for appending, alone; cut off a line that a crash left unfinished."""
    file = io.FileIO(path, "a")
    if not lock(file):
        file.close()
        raise ConfigurationError(
            f"The run {name} is being written by another process.", hint="Wait for it, or stop it."
        )
    if file.tell():
        whole = path.read_bytes().rpartition(b"\n")
        file.truncate(len(whole[0] + whole[1]))
    return file


def _append(file: io.FileIO, data: bytes) -> None:
    """Append all or nothing: half a line would spoil the next one too."""
    written = file.write(data)
    if written == len(data):
        return
    end = file.tell() - written
    try:
        while data := data[written:]:
            written = file.write(data)
    except OSError:
        file.truncate(end)
        raise
