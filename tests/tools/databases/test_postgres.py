"""PostgreSQL: the contract, on a server of the tests' own, and what is its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from tests.servers.postgres_server import PostgresServer
from tests.tools.databases.contract import ConnectorContract

pytest.importorskip("psycopg", reason="the extra quorum-sql[postgres] is not installed")

BROKEN = "CREATE VIEW broken AS SELECT 1 / 0 AS x;"
STATE = """
    SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM pg_class),
        (SELECT count(*) FROM pg_attribute),
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_prepared_xacts)
"""


def translated(script: str) -> str:
    """A script of the contract in PostgreSQL's own words."""
    script = re.sub(r"\bDOUBLE\b", "DOUBLE PRECISION", script)
    script = re.sub(r"CAST\('(\w)' AS BLOB\)", r"'\1'::bytea", script)
    script = re.sub(r"\bBLOB\b", "bytea", script)
    return re.sub(r"(?s)CREATE TABLE gone.*DROP TABLE gone;", BROKEN, script)


class TestPostgres(ConnectorContract):
    scheme = "postgresql"
    long_text = "repeat('x', 100000)"
    whole_double = "{}"

    @property
    def dialect(self) -> str:
        return "postgres"

    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresServer) -> None:
        self.server = postgres
        self.names: dict[Path, str] = {}

    def build(self, path: Path, script: str) -> None:
        self.names[path] = self.server.new_database(translated(script))

    def connect(self, path: Path) -> Connector:
        return connect(f"{self.server.admin_url}/{self.names[path]}")

    def at_work(self, connector: Connector) -> int:
        return len(connector._busy)  # type: ignore[attr-defined]

    def state(self, path: Path) -> object:
        return self.server.execute(STATE, self.names[path])
