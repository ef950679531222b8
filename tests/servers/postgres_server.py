"""A PostgreSQL server of the tests' own, from Debian's binaries: unprivileged, on loopback, thrown away."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.servers.process import ADMIN, DatabaseServer, missing

if TYPE_CHECKING:
    import psycopg

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


class PostgresServer(DatabaseServer):
    """A running server."""

    scheme = "postgresql"
    users = ("postgres", "nobody")
    ends_by = signal.SIGQUIT

    def initialise(self) -> None:
        secret = self.folder / "access"
        command = [f"{_binaries()}/initdb", "-D", str(self.folder / "data"), "-U", ADMIN, "--auth=trust"]
        self.run([*command, "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"])
        lines = (f"host all {ADMIN} 127.0.0.1/32 trust", "host all all 127.0.0.1/32 scram-sha-256")
        secret.write_text("\n".join([*lines, "local all all trust", ""]))
        secret.chmod(0o644)

    def command(self) -> list[str]:
        options = OPTIONS | {"unix_socket_directories": self.folder, "hba_file": self.folder / "access"}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        data = str(self.folder / "data")
        return [f"{_binaries()}/postgres", "-D", data, "-p", str(self.port), *settings]

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        import psycopg

        return psycopg.connect(f"{self.admin_url}/{database}", autocommit=True)

    def execute(self, script: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with self.connect(database) as connection:
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

    def answers(self) -> bool:
        import psycopg

        with suppress(psycopg.OperationalError):
            return bool(self.execute("SELECT 1"))
        return False


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A new server; skips, or fails where servers are required, if its programs are missing."""
    if _binaries() is None:
        missing("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    with PostgresServer.running() as server:
        yield server


def _binaries() -> Path | None:
    """The newest server's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None
