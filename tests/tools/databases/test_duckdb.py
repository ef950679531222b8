"""DuckDB by the contract, and what is its own."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tests.tools.databases.contract import ConnectorContract


class TestDuckdb(ConnectorContract):
    scheme = "duckdb"

    @staticmethod
    def build(path: Path, script: str) -> None:
        with duckdb.connect(str(path)) as connection:
            connection.execute(script)
