"""Cards, references and the lint's traps are tried on SQLite, DuckDB, PostgreSQL and MariaDB.

Each right query runs as the guard lets it run, and gives the same rows as it is written from its tree.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable
from decimal import Decimal
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

ENGINES = ("sqlite", "duckdb", "postgres", "mysql")
VARIES = re.compile(r"RAND|SAMPLE|NOW\(|CURDATE|CURRENT_TIME", re.IGNORECASE)
"""What gives other rows each time."""
SQL_MODE = "SET SESSION sql_mode = 'ONLY_FULL_GROUP_BY';\n"
"""As the connector has it."""

Run = Callable[[str], list[Any]]

# The tables that the references of PostgreSQL and MySQL speak of; the others bring theirs along.
BOTH = """
    CREATE TABLE t (id int, grp varchar(9), name varchar(9), kind varchar(9), v int, a int, b int);
    CREATE TABLE a (id int); CREATE TABLE b (id int, v int); CREATE TABLE c (id int);
    CREATE TABLE films (title varchar(40)); CREATE TABLE teams (won int, played int);
    CREATE TABLE items (id int, tags varchar(40));
    CREATE TABLE places (name varchar(9), lat float, lon float);
    CREATE TABLE sales_2024_01 (v int); CREATE TABLE sales_2024_02 (v int);
    INSERT INTO t VALUES (1, 'x', 'one', 'a', 10, 1, 2), (2, 'x', 'two', 'b', 20, 1, 1);
    INSERT INTO items VALUES (1, 'red,green'); INSERT INTO films VALUES ('Brazil (1985)');
    INSERT INTO teams VALUES (1, 3); INSERT INTO places VALUES ('Wien', 48.2, 16.4);
"""
REFERRED = {
    "sqlite": "",
    "duckdb": "",
    "postgres": f"""{BOTH}
        CREATE TABLE orders (id int, status text, day date, ts timestamp, doc jsonb);
        CREATE TABLE customers (id int, name text, email text);
        CREATE SCHEMA shop; CREATE TABLE shop."Orders" ("orderTotal" int, status text);
        INSERT INTO orders VALUES (1, 'paid', '2024-01-02', '2024-01-02', '{{"items": [{{"qty": 2}}]}}');
        INSERT INTO customers VALUES (1, 'Ann', 'ann@example.org');
    """,
    "mysql": f"""{SQL_MODE}{BOTH}
        CREATE TABLE orders (id int, status varchar(9), code varchar(9), ordered_at datetime, doc json);
        CREATE TABLE customers (id int, first_name varchar(9), last_name varchar(9), email varchar(40));
        CREATE OR REPLACE DATABASE shop; CREATE TABLE shop.orders (`order total` int, status varchar(9));
        INSERT INTO orders VALUES (1, 'paid', '7', NOW(), '{{"items": [{{"sku": "A"}}]}}');
        INSERT INTO customers VALUES (1, 'Ann', NULL, 'ann@example.org');
    """,
}

CLAIMS = {
    "postgres": """
        7 / 2, 7 % 2, round(2.5), round(-2.5), concat('a', NULL), 'a' || NULL => 3 1 3 -3 a None
        date '2024-03-01' - date '2024-02-01', strpos('b', 'z'), cardinality('{}'::int[]) => 29 0 0
        extract(dow FROM date '2024-01-07'), extract(isodow FROM date '2024-01-01') => 0 1
        '{"a": null}'::jsonb -> 'a' IS NULL, '{"a": null}'::jsonb ->> 'a' IS NULL => False True
        v FROM (VALUES (1), (NULL)) AS t(v) ORDER BY v DESC => None
        substring('ab-12' from '([0-9]+)'), 'x' ~ 'X', 'x' ~* 'X', (ARRAY[5, 6])[1] => 12 False True 5
    """,
    "mysql": """
        7 DIV 2, 7 / 2, 1 / 0, CONCAT('a', NULL), CONCAT_WS('-', 'a', NULL), 1 || 0 => 3 3.5000 None None a 1
        '12abc' = 12, 'a' = 'A', 'a' = BINARY 'A', 'a' LIKE 'A', LOCATE('z', 'b') => 1 1 0 1 0
        DATEDIFF('2024-03-01', '2024-02-01'), TIMESTAMPDIFF(MONTH, '2024-01-31', '2024-02-29') => 29 0
        DAYOFWEEK('2024-01-07'), WEEKDAY('2024-01-01'), DATE_FORMAT('2024-01-02 03:04', '%i %m') => 1 0 04 01
        JSON_VALUE('{"a": null}', '$.a'), JSON_EXTRACT('{"a": null}', '$.a') IS NULL => None 0
        v FROM (SELECT 1 AS v UNION ALL SELECT NULL) AS t ORDER BY v => None
        REGEXP_SUBSTR('ab-12', '[0-9]+'), 'X' REGEXP 'x', FIND_IN_SET('x', 'a,x'), NULL <=> NULL => 12 1 2 1
        SUBSTRING_INDEX('a,b,c', ',', 2), CHAR_LENGTH('é'), LENGTH('é') => a,b 1 2
    """,
}
"""What the references of PostgreSQL and MySQL claim of values; test_syntax asks the other two."""


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


@pytest.mark.heavy
@pytest.mark.parametrize("dialect", ENGINES)
def test_engines_agree_with_the_lint(dialect: str, request: pytest.FixtureRequest) -> None:
    run = engine(dialect, lint_tables.SCRIPTS[dialect], request)
    cases = lint_tables.cases(dialect)
    assert complaints(run, dialect, (sql for kind, _, sql in cases if kind == "right")) == ""
    assert [sql for kind, _, sql in cases if kind == "wrong" and not complaint(run, dialect, sql)] == []


@pytest.mark.heavy
@pytest.mark.parametrize("dialect", ENGINES)
def test_every_example_of_a_card_runs_and_what_it_says_of_values_is_true(
    dialect: str, request: pytest.FixtureRequest
) -> None:
    run = engine(dialect, card_examples.SCRIPTS[dialect], request)
    assert complaints(run, dialect, card_examples.examples(dialect)) == ""
    claimed = card_examples.claims(dialect)
    assert claimed
    assert [(expression, str(run(f"SELECT {expression}")[0][0])) for expression, _ in claimed] == claimed


@pytest.mark.heavy
@pytest.mark.parametrize("dialect", ENGINES)
def test_every_example_of_a_reference_runs(dialect: str, request: pytest.FixtureRequest) -> None:
    run = engine(dialect, REFERRED[dialect], request)
    found = [re.findall(r"```sql\n(.*?)```", section.text, re.DOTALL) for section in sections(dialect)]
    assert complaints(run, dialect, (sql for queries in found for sql in queries)) == ""
    for claim in filter(str.strip, CLAIMS.get(dialect, "").splitlines()):
        expressions, _, values = claim.strip().rpartition(" => ")
        assert " ".join(map(str, run(f"SELECT {expressions}")[0])) == values
