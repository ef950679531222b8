"""A PostgreSQL server of the tests' own, from Debian's binaries: unprivileged, on loopback, thrown away.

``python -m tests.servers.postgres_server [SCRIPT]`` starts one, fills a database with a file of SQL,
prints its URL, and serves until it is interrupted.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.servers.process import free_port, missing, script, serve, unprivileged, user_of
from tests.waiting import wait_until

USERS = ("postgres", "nobody")
OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "32MB",
    "max_connections": "40",
    "autovacuum": "off",
    "logging_collector": "off",
}
ADMIN = "quorum_admin"
PASSWORD = "s3cret@/:#?%"
"""Of the role ``reader``, with every character that a URL has a use for."""


class PostgresServer:
    """A running server; ``ADMIN`` is its superuser."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.folder, self._binaries = folder, binaries
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.databases = 0

    @property
    def admin_url(self) -> str:
        return f"postgresql://{ADMIN}@127.0.0.1:{self.port}"

    def initialise(self) -> None:
        secret = self.folder / "access"
        command = ["initdb", "-D", str(self.folder / "data"), "-U", ADMIN, "--auth=trust", "--no-sync"]
        self._run([*command, "--encoding=UTF8", "--locale=C.UTF-8"])
        secret.write_text(
            f"host all {ADMIN} 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
            f"local all all trust\n"
        )
        secret.chmod(0o644)

    def start(self) -> None:
        options = OPTIONS | {"unix_socket_directories": self.folder, "hba_file": self.folder / "access"}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._binaries / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port)]
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*unprivileged(USERS), *command, *settings], stdout=log, stderr=log, start_new_session=True
            )
        self._wait()

    def kill(self) -> None:
        """End it at once, as a crash does, and wait until it is gone."""
        self._stop(signal.SIGQUIT)

    def stop(self) -> None:
        self._stop(signal.SIGINT)

    def execute(self, script: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run statements as the superuser; the rows of the last one."""
        import psycopg

        url = f"{self.admin_url}/{database}"
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(script)  # type: ignore[call-overload]
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def new_database(self, script: str = "") -> str:
        """The name of a new database that the script has filled."""
        self.databases += 1
        name = f"test{self.databases}"
        self.execute(f"CREATE DATABASE {name}")
        if script:
            self.execute(script, name)
        return name

    def sessions(self, database: str, state: str = "%") -> list[int]:
        """Return the connections to a database; of state ``active`` those that work at a query."""
        sql = f"SELECT pid FROM pg_stat_activity WHERE datname = '{database}' AND state LIKE '{state}'"
        return [pid for (pid,) in self.execute(sql)]

    def disconnect(self, database: str) -> None:
        """End all connections to a database."""
        self.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{database}'"
        )

    def _stop(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)

    def _run(self, command: Sequence[str]) -> None:
        program = str(self._binaries / command[0])
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        subprocess.run(
            [*unprivileged(USERS), program, *command[1:]],
            check=True,
            capture_output=True,
            env=environment,
            cwd=self.folder,
        )

    def _wait(self) -> None:
        import psycopg

        def answers() -> bool:
            with suppress(psycopg.OperationalError):
                return bool(self.execute("SELECT 1"))
            return False

        wait_until(answers)


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A new server; skips, or fails where servers are required, if its programs are missing."""
    binaries = _binaries()
    if binaries is None:
        missing("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    place = Path(tempfile.mkdtemp(prefix="quorum-postgres-"))
    folder = place / "server"
    folder.mkdir()
    if user := user_of(USERS):
        place.chmod(0o755)
        os.chown(folder, user.pw_uid, user.pw_gid)
    server = PostgresServer(folder, binaries)
    try:
        server.initialise()
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(place, ignore_errors=True)


def _binaries() -> Path | None:
    """The newest server's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


if __name__ == "__main__":
    serve(running_postgres(), lambda server: f"{server.admin_url}/{server.new_database(script())}")
