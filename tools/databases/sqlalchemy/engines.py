"""What is known of the engines that are asked through SQLAlchemy: SQL, packages, sessions."""

from __future__ import annotations

from dataclasses import dataclass

PROBE = "CREATE TABLE quorum_probe (x int)"
"""What a session that forbids to write must refuse, saying that it is read-only."""


@dataclass(frozen=True)
class Engine:
    """One engine, by the name that SQLAlchemy's dialect has.

    Attributes:
        dialect: sqlglot's name of its SQL.
        packages: What pip installs of SQLAlchemy's dialect, or of the usual driver where SQLAlchemy has that.
        opening: Statements for a new connection.
        beginning: Statements that begin a query's transaction.
        ending: Statements after a query has been rolled back.
        limit: The statement that has the server stop a query after whole ``{seconds}`` or ``{milliseconds}``;
            empty where none is known.
        proof: A write that must fail in a session; empty where nothing in the engine forbids to write.
        prefixed: Whether the engine has a connector of its own, so that SQLAlchemy must be asked for by name.
        bills: Whether reading is billed by the byte, so that the catalog reads no values.
    """

    dialect: str
    packages: str
    opening: tuple[str, ...] = ()
    beginning: tuple[str, ...] = ()
    ending: tuple[str, ...] = ()
    limit: str = ""
    proof: str = ""
    prefixed: bool = False
    bills: bool = False


_POSTGRES = Engine(
    "postgres",
    "'psycopg[binary]'",
    # else a backslash ends no text where the guard saw its end
    opening=("SET default_transaction_read_only = on", "SET standard_conforming_strings = on"),
    beginning=("SET TRANSACTION READ ONLY", "SET LOCAL lock_timeout = '5s'"),
    ending=("SELECT pg_advisory_unlock_all()",),
    limit="SET LOCAL statement_timeout = {milliseconds}",
    proof=PROBE,
    prefixed=True,
)
_TRINO_LIMIT = "SET SESSION query_max_run_time = '{milliseconds}ms'"

ENGINES = {
    "postgresql": _POSTGRES,
    "cockroachdb": Engine(
        "postgres",
        "sqlalchemy-cockroachdb 'psycopg[binary]'",
        opening=_POSTGRES.opening[:1],
        beginning=_POSTGRES.beginning[:1],
        limit="SET statement_timeout = {milliseconds}",
        proof=PROBE,
    ),
    "mssql": Engine("tsql", "pyodbc", opening=("SET LOCK_TIMEOUT 5000", "SET QUOTED_IDENTIFIER ON")),
    "oracle": Engine("oracle", "oracledb", beginning=("SET TRANSACTION READ ONLY",)),
    "trino": Engine("trino", "'trino[sqlalchemy]'", limit=_TRINO_LIMIT),
    "presto": Engine("presto", "'pyhive[presto]'", limit=_TRINO_LIMIT),
    "awsathena": Engine("athena", "'PyAthena[SQLAlchemy]'", bills=True),
    "clickhouse": Engine("clickhouse", "clickhouse-sqlalchemy"),
    "clickhousedb": Engine("clickhouse", "'clickhouse-connect[sqlalchemy]'"),
    "redshift": Engine(
        "redshift",
        "sqlalchemy-redshift redshift_connector",
        limit="SET statement_timeout TO {milliseconds}",
    ),
    "databricks": Engine("databricks", "databricks-sqlalchemy", limit="SET STATEMENT_TIMEOUT = {seconds}"),
    "hive": Engine("hive", "'pyhive[hive]'"),
    "exa": Engine("exasol", "sqlalchemy-exasol", limit="ALTER SESSION SET QUERY_TIMEOUT = {seconds}"),
    "teradatasql": Engine("teradata", "teradatasqlalchemy"),
    "starrocks": Engine("starrocks", "starrocks", limit="SET query_timeout = {seconds}"),
    "doris": Engine("doris", "pydoris", limit="SET query_timeout = {seconds}"),
    "singlestoredb": Engine("singlestore", "sqlalchemy-singlestoredb"),
}
"""By SQLAlchemy's name, which begins the URL. SQL of what is not here cannot be read, so it is not asked."""

BUILT_IN = ("postgresql", "mssql", "oracle")
"""Dialects that SQLAlchemy itself brings; others are packages."""

NAMES = {"exasol": "exa", "teradata": "teradatasql", "singlestore": "singlestoredb", "athena": "awsathena"}
"""Engines whose dialect SQLAlchemy has under another name."""

DRIVERS = {
    "psycopg": "'psycopg[binary]'",
    "psycopg2": "psycopg2-binary",
}
"""What pip installs of a module, where that has another name."""
