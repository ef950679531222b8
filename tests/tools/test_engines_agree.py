"""Cards, references and the lint's traps are tried on SQLite, DuckDB, PostgreSQL and MariaDB.

Each right query runs as the guard lets it run, and gives the same rows as it is written from its tree.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from quorum.knowledge.syntax import sections
from quorum.tools.guard import Passed
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.sql import SyntaxProblem, parse_statements
from quorum.tools.sql.writing import written
from tests.knowledge import card_examples
from tests.servers.mariadb_server import MariadbServer
from tests.servers.postgres_server import PostgresServer
from tests.tools import lint_tables

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "mysql"]),
]
VARIES = re.compile(r"RAND|SAMPLE|NOW\(|CURDATE|CURRENT_TIME", re.IGNORECASE)
"""What gives other rows each time."""
SQL_MODE = "SET SESSION sql_mode = 'ONLY_FULL_GROUP_BY';\n"
"""As the connector has it."""

Run = Callable[[str], list[Any]]

CASES = Path(__file__).parent / "engine_cases"
"""Of PostgreSQL and MySQL: the tables that their references speak of, and what these claim of values.

The references of SQLite and DuckDB bring their tables along; test_syntax asks what they claim.
"""


def engine(dialect: str, script: str, request: pytest.FixtureRequest) -> Run:
    """A new database that the script has filled; what it returns runs one statement."""
    if dialect == "sqlite":
        lite = sqlite3.connect(":memory:")
        lite.executescript(script)
        return lambda sql: lite.execute(sql).fetchall()
    if dialect == "duckdb":
        duck = duckdb.connect()
        duck.execute(script or "SELECT 1")
        return lambda sql: duck.execute(sql).fetchall()
    if dialect == "postgres":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        database = postgres.new_database(script)
        return lambda sql: postgres.execute(sql, database)
    mariadb: MariadbServer = request.getfixturevalue("mariadb")
    name = mariadb.new_database(script)
    return lambda sql: list(mariadb.execute(SQL_MODE + sql, name))


def _values(row: Any) -> str:
    """A row as text; equal numbers of two types are the same (date_part is a double, EXTRACT a numeric)."""
    return repr([float(cell) if isinstance(cell, int | float | Decimal) else cell for cell in row])


def complaint(run: Run, dialect: str, sql: str) -> str:
    """Why a query does not run as it is sent, or gives other rows as it is written; empty if all is well."""
    verdict = verdict_on(sql, dialect)
    if not isinstance(verdict, Passed):
        return verdict.reason
    try:
        rows = run(verdict.sql)
        text = written(parse_statements(sql, dialect), dialect)
        again = run(text)
    except SyntaxProblem:
        return ""  # it cannot be written, and never is
    except Exception as error:  # noqa: BLE001 - whatever an engine says
        return f"{type(error).__name__}: {error}"
    same = sorted(map(_values, rows)) == sorted(map(_values, again))  # an engine may choose their order
    return "" if same or VARIES.search(sql) else f"other rows by {text}"


def complaints(run: Run, dialect: str, queries: Iterable[str]) -> str:
    """One for each query that has any."""
    every = ((sql, complaint(run, dialect, sql)) for sql in queries)
    return "\n".join(f"{sql}\n    {why}" for sql, why in every if why)


def test_engines_agree_with_the_lint(dialect: str, request: pytest.FixtureRequest) -> None:
    run = engine(dialect, lint_tables.script(dialect), request)
    cases = lint_tables.cases(dialect)
    assert complaints(run, dialect, (sql for kind, _, sql in cases if kind == "right")) == ""
    assert [sql for kind, _, sql in cases if kind == "wrong" and not complaint(run, dialect, sql)] == []


def test_every_example_of_a_card_runs_and_what_it_says_of_values_is_true(
    dialect: str, request: pytest.FixtureRequest
) -> None:
    run = engine(dialect, card_examples.SCRIPTS[dialect], request)
    assert complaints(run, dialect, card_examples.examples(dialect)) == ""
    claimed = card_examples.claims(dialect)
    assert claimed
    assert [(expression, str(run(f"SELECT {expression}")[0][0])) for expression, _ in claimed] == claimed


def test_what_a_card_says_of_odd_values_reads_them(dialect: str, request: pytest.FixtureRequest) -> None:
    other = card_examples.DATES.get(dialect, card_examples.DATES["other"])
    values = card_examples.READ | {"date forms": {"2024-12-31": "2024-12-31", other: "2024-12-31"}}
    script = "CREATE TABLE t (topic VARCHAR(20), s VARCHAR(40));\n" + "\n".join(
        f"INSERT INTO t VALUES ('{topic}', '{value}');" for topic, pairs in values.items() for value in pairs
    )
    run = engine(dialect, script, request)
    for topic, pairs in values.items():
        rows = run(f"SELECT s, {card_examples.read_by(dialect, topic)} FROM t WHERE topic = '{topic}'")
        plain = {s: str(read) if topic == "date forms" else read for s, read in rows}
        assert plain == pairs, topic


def test_every_example_of_a_reference_runs(dialect: str, request: pytest.FixtureRequest) -> None:
    server = dialect in ("postgres", "mysql")
    mode = SQL_MODE if dialect == "mysql" else ""
    script = mode + (CASES / f"{dialect}.sql").read_text("utf-8") if server else ""
    run = engine(dialect, script, request)
    found = [re.findall(r"```sql\n(.*?)```", section.text, re.DOTALL) for section in sections(dialect)]
    assert complaints(run, dialect, (sql for queries in found for sql in queries)) == ""
    for claim in (CASES / f"{dialect}_claims.txt").read_text("utf-8").splitlines() if server else ():
        expressions, _, values = claim.rpartition(" => ")
        assert " ".join(map(str, run(f"SELECT {expressions}")[0])) == values
