"""defog's databases on a PostgreSQL server, from Quorum's or defog-data's SQLite files.

    python -m tests.servers.defog_postgres FOLDER [URL] [--data sql-eval --ids FILE]

makes one database for each ``FOLDER/*.sqlite`` (or ``*.db``), in place of one of that name, with the types
that defog's own schema for PostgreSQL has: on the server of that URL, which names no database, else on one
that it starts and serves until it is interrupted. ``--ids`` writes which questions of a checkout of sql-eval
are on these databases. Then::

    quorum eval verify-gold defog --data sql-eval --ids FILE --db 'postgresql://user@host:5432/{database}'
"""

from __future__ import annotations

import argparse
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from quorum.evals.suites.defog import PLACE, load_on_server
from tests.servers.postgres_server import running_postgres
from tests.servers.process import serve

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
                named = [f"{_name(column[1])} {kind}" for column, kind in zip(columns, kinds, strict=True)]
                keys = [_name(column[1]) for column in columns if column[5]]
                if not keys and table in KEYS:
                    keys = [_name(KEYS[table])]
                named += [f"PRIMARY KEY ({', '.join(keys)})"] if keys else []
                place = f"{schema}.{_name(table)}"
                target.execute(f"CREATE TABLE {place} ({', '.join(named)})".encode())
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


def write_ids(data: Path, databases: Iterable[str], file: Path) -> int:
    """Write the ids of the questions on these databases, one a line; how many there are."""
    asked = load_on_server(data, f"postgresql://host/{PLACE}").questions
    ids = [question.id for question in asked if question.database in set(databases)]
    file.write_text("\n".join([*ids, ""]))
    return len(ids)


def _loaded(folder: Path, server: str, data: Path | None, file: Path | None) -> str:
    """Load the databases, and write the ids; how they are asked."""
    names = load(folder, server)
    lines = [f"{len(names)} databases: {', '.join(names)}"]
    if data and file:
        lines.append(f"{write_ids(data, names, file)} questions: {file}")
    return "\n".join([*lines, f"{server}/{PLACE}"])


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.servers.defog_postgres")
    options.add_argument("folder", type=Path)
    options.add_argument("url", nargs="?")
    options.add_argument("--data", type=Path)
    options.add_argument("--ids", type=Path)
    given = options.parse_args()
    if given.url:
        print(_loaded(given.folder, given.url, given.data, given.ids))
    else:
        serve(running_postgres(), lambda own: _loaded(given.folder, own.admin_url, given.data, given.ids))


if __name__ == "__main__":
    main()
