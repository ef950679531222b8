"""A PostgreSQL server of the tests' own, from Debian's binaries: unprivileged, on loopback, thrown away."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from tests.servers.process import DatabaseServer, missing, running

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


class PostgresServer(DatabaseServer):
    """A running server; ``ADMIN`` is its superuser."""

    users = ("postgres", "nobody")
    environment: ClassVar = {"LC_ALL": "C.UTF-8"}

    def __init__(self, binaries: Path, folder: Path) -> None:
        super().__init__(folder)
        self._binaries = binaries

    @property
    def admin_url(self) -> str:
        return f"postgresql://{ADMIN}@127.0.0.1:{self.port}"

    def initialise(self) -> None:
        secret = self.folder / "access"
        where = ("-D", str(self.folder / "data"), "-U", ADMIN, "--auth=trust", "--no-sync")
        self.run(str(self._binaries / "initdb"), *where, "--encoding=UTF8", "--locale=C.UTF-8")
        secret.write_text(
            f"host all {ADMIN} 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
            f"local all all trust\n"
        )
        secret.chmod(0o644)

    def start(self) -> None:
        options = OPTIONS | {"unix_socket_directories": self.folder, "hba_file": self.folder / "access"}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        where = ("-D", str(self.folder / "data"), "-p", str(self.port))
        self.launch(str(self._binaries / "postgres"), *where, *settings)

    def answers(self) -> bool:
        import psycopg

        with suppress(psycopg.OperationalError):
            return bool(self.execute("SELECT 1"))
        return False

    def kill(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it at once, as a crash does, and wait until it is gone."""
        super().kill(how)

    def stop(self) -> None:
        self.kill(signal.SIGINT)

    def execute(self, script: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run statements as the superuser; the rows of the last one."""
        import psycopg

        url = f"{self.admin_url}/{database}"
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(script)  # type: ignore[call-overload]
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def sessions(self, database: str, state: str = "%") -> list[int]:
        """Return the connections to a database; of state ``active`` those that work at a query."""
        sql = f"SELECT pid FROM pg_stat_activity WHERE datname = '{database}' AND state LIKE '{state}'"
        return [pid for (pid,) in self.execute(sql)]

    def disconnect(self, database: str) -> None:
        """End all connections to a database."""
        self.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{database}'"
        )


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A new server; skips, or fails where servers are required, if its programs are missing."""
    binaries = _binaries()
    if binaries is None:
        missing("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    with running(partial(PostgresServer, binaries)) as server:
        yield server


def _binaries() -> Path | None:
    """The newest server's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None
