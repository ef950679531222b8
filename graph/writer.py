"""Writing a run folder: one thread behind a queue, so that nobody who records waits for a disk.

A disk that fails ends no run: what could not be written is left out whole, ``failure`` says why, and
the next job is tried again.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from knowledge.errors import ConfigurationError


class Writer:
    """Writes the files of one run, and holds the run against other processes while it is open.

    ``append``, ``replace`` and ``aflush`` never block an event loop; ``flush`` and ``close`` wait for
    the disk. After ``close`` nothing is written, and nobody waits.

    Attributes:
        failure: Why something could not be written, in a sentence; empty while all is well.
    """

    def __init__(self, path: Path, name: str) -> None:
        """Open the lines at ``path`` for appending; ``name`` is the run's, for people.

        Raises:
            ConfigurationError: Another process is writing the run.
        """
        self.failure = ""
        self._queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._gate = threading.Lock()  # nothing gets in behind the end, where nobody would do it
        self._closed = False
        self._file = _locked_for_appending(path, name)
        self._thread = threading.Thread(target=self._work, name=f"trace-{name}", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def append(self, line: str) -> None:
        """Add a line to the file of lines; it reaches the operating system on its own."""
        data = _bytes(line + "\n")
        self._enqueue(lambda: _append(self._file, data))

    def replace(self, path: Path, text: str) -> None:
        """Write a file, all of it or nothing."""
        data = _bytes(text)
        self._enqueue(lambda: _replace(path, data))

    def flush(self) -> None:
        """Wait until everything so far is with the operating system, or noted in ``failure``."""
        done = threading.Event()
        if self._enqueue(done.set):
            done.wait()

    async def aflush(self) -> None:
        """``flush`` without blocking the event loop; often called, so it takes no thread."""
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
                loop.call_soon_threadsafe(done.set)

        if self._enqueue(tell):
            await done.wait()

    def close(self) -> None:
        """Write what is left and release the run; safe to call twice."""
        with self._gate:
            if not self._closed:
                self._queue.put(None)
            self._closed = True
        self._thread.join()
        self._file.close()
        atexit.unregister(self.close)

    def _enqueue(self, job: Callable[[], object]) -> bool:
        """Have it done; False once closed."""
        with self._gate:
            if not self._closed:
                self._queue.put(job)
            return not self._closed

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            try:
                job()
            except OSError as error:
                self.failure = self.failure or f"{error.strerror or error}."
            except Exception as error:  # noqa: BLE001 - a thread that dies leaves every flush waiting for ever
                self.failure = self.failure or f"{type(error).__name__}: {error}."


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")  # a lone surrogate must not end a run


def _locked_for_appending(path: Path, name: str) -> io.FileIO:
    """Open the lines for appending, alone; cut off a line that a crash left unfinished."""
    file = io.FileIO(path, "a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ConfigurationError(
            f"The run {name} is being written by another process.", hint="Wait for it, or stop it."
        ) from None
    whole = path.read_bytes().rpartition(b"\n")
    file.truncate(len(whole[0] + whole[1]))
    return file


def _append(file: io.FileIO, data: bytes) -> None:
    """Append all or nothing: half a line would spoil the next one too."""
    end = file.seek(0, os.SEEK_END)
    try:
        while data:
            data = data[file.write(data) :]
    except OSError:
        file.truncate(end)
        raise


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)  # what is left of it would fill a full disk further
        raise
