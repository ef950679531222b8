"""What the tests' own database servers share: a port, a user who is not root, what a missing one means."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import pytest

from tests.servers.chat_server import closed_port
from tests.waiting import wait_until

ADMIN = "quorum_admin"
PASSWORD = "s3cret@/:#?%"
"""Of a user ``reader`` of a server's, with every character that a URL has a use for."""
REQUIRED = os.environ.get("QUORUM_SERVERS") == "required"
"""Whether a missing server fails its tests; read here, because tests do not see such variables."""


def missing(message: str) -> NoReturn:
    """Skip, or fail where servers are required."""
    if REQUIRED:
        pytest.fail(message)
    pytest.skip(message)


Server = TypeVar("Server")


class DatabaseServer(ABC):
    """A server from Debian's binaries, unprivileged and on loopback; ``ADMIN`` may do everything."""

    scheme: ClassVar[str]
    users: ClassVar[Sequence[str]]
    """Who runs it where the tests are root's, which it refuses to be: the first that is here."""
    ends_by: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = closed_port()
        self.databases = 0

    @property
    def admin_url(self) -> str:
        return f"{self.scheme}://{ADMIN}@127.0.0.1:{self.port}"

    @abstractmethod
    def initialise(self) -> None:
        """Make its files."""

    @abstractmethod
    def command(self) -> list[str]:
        """The command that serves."""

    @abstractmethod
    def answers(self) -> bool: ...

    @abstractmethod
    def connect(self, database: str = "") -> Any:
        """The driver's connection of the administrator."""

    @abstractmethod
    def execute(self, script: str, database: str = "") -> Sequence[tuple[Any, ...]]:
        """Run statements as the administrator; the rows of the last one."""

    def start(self) -> None:
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._unprivileged(), *self.command()], stdout=log, stderr=log, start_new_session=True
            )
        wait_until(self.answers)

    def kill(self) -> None:
        """End it at once, as a crash does, and wait until it is gone."""
        if self._process is not None:
            self._process.send_signal(self.ends_by)
            self._process.wait(timeout=30)

    def new_database(self, script: str = "") -> str:
        """The name of a new database that the script has filled."""
        self.databases += 1
        name = f"test{self.databases}"
        self.execute(f"CREATE DATABASE {name}")
        if script:
            self.execute(script, name)
        return name

    def run(self, command: Sequence[str]) -> None:
        """Run a program as the server's user."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        whole = [*self._unprivileged(), *command]
        subprocess.run(whole, check=True, capture_output=True, env=environment, cwd=self.folder)

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Self]:
        """A new server in a folder of its own."""
        place = Path(tempfile.mkdtemp(prefix=f"quorum-{cls.scheme}-"))
        folder = place / "server"
        folder.mkdir()
        if user := cls._user():
            place.chmod(0o755)
            os.chown(folder, user.pw_uid, user.pw_gid)
        server = cls(folder)
        try:
            server.initialise()
            server.start()
            yield server
        finally:
            server.kill()
            shutil.rmtree(place, ignore_errors=True)

    @classmethod
    def _user(cls) -> pwd.struct_passwd | None:
        if os.geteuid() != 0:
            return None
        known = {user.pw_name: user for user in pwd.getpwall()}
        return next(known[name] for name in cls.users if name in known)

    def _unprivileged(self) -> list[str]:
        """Return the beginning of a command that the server's user runs."""
        user = self._user()
        if user is None:
            return []
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def serve(running: AbstractContextManager[Server], told: Callable[[Server], str]) -> None:
    """Start a server, print what is told of it on a line, and serve until somebody interrupts."""
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        with running as server:
            print(told(server), flush=True)
            signal.sigwait(ends)
    except pytest.skip.Exception as reason:
        raise SystemExit(str(reason)) from None
