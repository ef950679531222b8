"""What the tests' own database servers share: a port, a user who is not root, what a missing one means."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, NoReturn, TypeVar

import pytest

from tests.waiting import wait_until

REQUIRED = os.environ.get("QUORUM_SERVERS") == "required"
"""Whether a missing server fails its tests; read here, because tests do not see such variables."""


def missing(message: str) -> NoReturn:
    """Skip, or fail where servers are required."""
    if REQUIRED:
        pytest.fail(message)
    pytest.skip(message)


def user_of(names: Sequence[str]) -> pwd.struct_passwd | None:
    """Who runs a server where the tests are root's, which it refuses to be: the first that is here."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name: user for user in pwd.getpwall()}
    return next(known[name] for name in names if name in known)


def unprivileged(names: Sequence[str]) -> list[str]:
    """How a command begins that one of these users runs."""
    user = user_of(names)
    if user is None:
        return []
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class DatabaseServer:
    """A database server in a folder of its own, with an administrator who may do everything."""

    users: ClassVar[tuple[str, ...]]  # who runs it where the tests are root's
    environment: ClassVar[dict[str, str]] = {}

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.databases = folder, free_port(), 0
        self._process: subprocess.Popen[bytes] | None = None

    def initialise(self) -> None:
        """Make the server's data."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        raise NotImplementedError

    def answers(self) -> bool:
        """True once it can be asked."""
        raise NotImplementedError

    def execute(self, script: str, database: str) -> Any:
        """Run statements as the administrator; the rows of the last one."""
        raise NotImplementedError

    def new_database(self, script: str = "") -> str:
        """The name of a new database that the script has filled."""
        self.databases += 1
        name = f"test{self.databases}"
        self.execute(f"CREATE DATABASE {name}")  # type: ignore[call-arg]
        if script:
            self.execute(script, name)
        return name

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it, and wait until it is gone."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)

    def run(self, *command: str) -> None:
        """Run one of the server's programs to its end."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **self.environment}
        whole = [*unprivileged(self.users), *command]
        subprocess.run(whole, check=True, capture_output=True, env=environment, cwd=self.folder)

    def launch(self, *command: str) -> None:
        """Start the server's program, and wait until it answers."""
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            whole = [*unprivileged(self.users), *command]
            self._process = subprocess.Popen(whole, stdout=log, stderr=log, start_new_session=True)
        wait_until(self.answers)


Server = TypeVar("Server")
Database = TypeVar("Database", bound=DatabaseServer)


@contextmanager
def running(make: Callable[[Path], Database]) -> Iterator[Database]:
    """A new server, thrown away at the end."""
    place = Path(tempfile.mkdtemp(prefix="quorum-server-"))
    folder = place / "server"
    folder.mkdir()
    server = make(folder)
    if user := user_of(server.users):
        place.chmod(0o755)
        os.chown(folder, user.pw_uid, user.pw_gid)
    try:
        server.initialise()
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(place, ignore_errors=True)


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
