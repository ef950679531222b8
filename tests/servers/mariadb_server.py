"""A MariaDB server of the tests' own, from Debian's binaries: unprivileged, on loopback, thrown away."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tests.servers.process import ADMIN, DatabaseServer, missing

if TYPE_CHECKING:
    import pymysql

OPTIONS = {
    "bind-address": "127.0.0.1",
    "innodb-buffer-pool-size": "32M",
    "innodb-flush-log-at-trx-commit": "0",
    "innodb-flush-method": "nosync",
    "character-set-server": "utf8mb4",
    "max-recursive-iterations": "4294967295",
    "max-connections": "60",
}
FLAGS = ("--skip-name-resolve", "--skip-log-bin")


class MariadbServer(DatabaseServer):
    """A running server."""

    scheme = "mysql"
    users = ("mysql", "nobody")

    def initialise(self) -> None:
        command = ["mariadb-install-db", "--no-defaults", f"--datadir={self.folder / 'data'}"]
        command += ["--skip-test-db", "--auth-root-authentication-method=normal", "--skip-name-resolve"]
        self.run(command)

    def command(self) -> list[str]:
        places = {
            "datadir": self.folder / "data",
            "socket": self.folder / "socket",
            "pid-file": self.folder / "pid",
            "port": self.port,
            "secure-file-priv": "",
            "tmpdir": self.folder,
        }
        settings = [f"--{name}={value}" for name, value in (OPTIONS | places).items()]
        program = shutil.which("mariadbd", path=_PATH) or "mariadbd"
        return [program, "--no-defaults", *settings, *FLAGS]

    def connect(self, database: str = "mysql") -> pymysql.Connection:
        import pymysql
        from pymysql.constants import CLIENT

        user = {"user": ADMIN, "host": "127.0.0.1", "port": self.port, "database": database}
        how = {"autocommit": True, "charset": "utf8mb4", "client_flag": CLIENT.MULTI_STATEMENTS}
        return pymysql.connect(**user, **how)

    def execute(self, script: str, database: str = "mysql") -> tuple[tuple[Any, ...], ...]:
        with closing(self.connect(database)) as connection, connection.cursor() as cursor:
            cursor.execute(script)
            rows = cursor.fetchall()
            while cursor.nextset():
                rows = cursor.fetchall()
            return tuple(rows)

    def sessions(self, database: str, state: str = "%") -> list[int]:
        """Return the connections to a database; of state ``active`` those that work at a query."""
        command = "Query" if state == "active" else "%"
        sql = "SELECT id FROM information_schema.processlist WHERE db = '{}' AND command LIKE '{}'"
        return [number for (number,) in self.execute(sql.format(database, command))]

    def disconnect(self, database: str) -> None:
        """End all connections to a database."""
        for number in self.sessions(database):
            self.execute(f"KILL {number}")

    def make_administrator(self) -> None:
        with closing(self._root()) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE USER {ADMIN}@'127.0.0.1'")
            cursor.execute(f"GRANT ALL ON *.* TO {ADMIN}@'127.0.0.1' WITH GRANT OPTION")

    def answers(self) -> bool:
        import pymysql

        with suppress(pymysql.OperationalError):
            self._root().close()
            return True
        return False

    def _root(self) -> pymysql.Connection:
        """The one account that a new server has, on its socket."""
        import pymysql

        return pymysql.connect(unix_socket=str(self.folder / "socket"), user="root")


_PATH = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"


@contextmanager
def running_mariadb() -> Iterator[MariadbServer]:
    """A new server; skips, or fails where servers are required, if its programs are missing."""
    if not (shutil.which("mariadbd", path=_PATH) and shutil.which("mariadb-install-db")):
        missing("no MariaDB server is installed (Debian: apt-get install mariadb-server)")
    with MariadbServer.running() as server:
        server.make_administrator()
        yield server
