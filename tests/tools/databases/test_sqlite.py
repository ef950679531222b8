"""SQLite by the contract, and what is its own."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from knowledge.errors import DatabaseUnavailable
from tests.tools.databases.contract import ConnectorContract, error, rows, table
from tools.databases.base import Connector
from tools.query import ErrorKind, Limits, QueryResult


class TestSqlite(ConnectorContract):
    scheme = "sqlite"
    odd_names = (*ConnectorContract.odd_names, "a?b.db")  # DuckDB itself cannot open this one

    @staticmethod
    def build(path: Path, script: str) -> None:
        connection = sqlite3.connect(path)
        connection.executescript(script)
        connection.close()
