"""defog's databases on a PostgreSQL server, from Quorum's or defog-data's SQLite files.

    python -m tests.servers.defog_postgres FOLDER postgresql://user@host:5432

makes one database for each ``FOLDER/*.sqlite`` (or ``*.db``), in place of one of that name, with the types
that defog's own schema for PostgreSQL has. Then, in a checkout of sql-eval::

    quorum eval verify-gold defog --data sql-eval --db 'postgresql://user@host:5432/{database}'
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

BOOLEANS = frozenset({"sbTickerIsActive", "is_in_inventory", "mfa_enabled", "marketing_opt_in"})
"""Columns that defog's translation to SQLite has made numbers of."""
SCHEMAS = {"ewallet": "consumer_div"}
"""Where defog's tables are not in ``public``."""
KEYS = {"sbCustomer": "sbCustId", "sbTicker": "sbTickerId", "sbTransaction": "sbTxId", "users": "uid"}
"""Primary keys that the translation has dropped; by them PostgreSQL knows what a group determines."""


def load(folder: Path, server: str) -> list[str]:
    """Make the databases; their names.

    Args:
        server: A URL without a database, of a role that may make databases.
    """
    import psycopg

    files = sorted([*folder.glob("*.sqlite"), *folder.glob("*.db")])
    for file in files:
        with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
            admin.execute(f'DROP DATABASE IF EXISTS "{file.stem}"'.encode())
            admin.execute(f'CREATE DATABASE "{file.stem}"'.encode())
        with (
            closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as source,
            psycopg.connect(f"{server}/{file.stem}") as target,
        ):
            schema = SCHEMAS.get(file.stem, "public")
            target.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
            for (table,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                columns = source.execute(f'PRAGMA table_info("{table}")').fetchall()
                kinds = [_type(name, kind) for _, name, kind, *_ in columns]
                named = ", ".join(
                    f"{_name(column[1])} {kind}" for column, kind in zip(columns, kinds, strict=True)
                )
                keys = [column[1] for column in columns if column[5]] or [
                    KEYS[name] for name in (table,) if name in KEYS
                ]
                named += f", PRIMARY KEY ({', '.join(map(_name, keys))})" if keys else ""
                place = f"{schema}.{_name(table)}"
                target.execute(f"CREATE TABLE {place} ({named})".encode())
                with target.cursor().copy(f"COPY {place} FROM STDIN".encode()) as copy:
                    for row in source.execute(f'SELECT * FROM "{table}"'):
                        copy.write_row(_values(row, kinds))
            target.execute("ANALYZE")
    return [file.stem for file in files]


def _name(name: str) -> str:
    """As PostgreSQL folds it, because defog's queries do not quote names."""
    return f'"{name.lower()}"'


def _type(name: str, declared: str) -> str:
    if name in BOOLEANS:
        return "boolean"
    base, _, size = re.sub(r"\s", "", declared.upper()).partition("(")
    known = {"INTEGER": "bigint", "REAL": "double precision", "DATE": "date", "TIMESTAMP": "timestamp"}
    return f"numeric({size}" if base == "REAL" and size else known.get(base, "text")


def _values(row: Iterable[object], kinds: list[str]) -> list[object]:
    return [
        bool(value) if kind == "boolean" and value is not None else value
        for value, kind in zip(row, kinds, strict=True)
    ]


if __name__ == "__main__":
    print("\n".join(load(Path(sys.argv[1]), sys.argv[2])))
