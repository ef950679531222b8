"""Which queries depend on the time or on chance."""

from __future__ import annotations

import pytest

from quorum.evals.scorers.gold_check import CHANCE, NOW, volatile


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("sqlite", "SELECT date('now', '-7 days')"),
        ("sqlite", "SELECT * FROM t WHERE d > DATE('NOW')"),
        ("sqlite", "SELECT strftime('%Y', 'now') - 5"),
        ("sqlite", "SELECT strftime('%Y')"),
        ("sqlite", "SELECT julianday()"),
        ("sqlite", "SELECT unixepoch('now')"),
        ("sqlite", "SELECT datetime('now')"),
        ("sqlite", "SELECT date()"),
        ("sqlite", "SELECT timediff(d, 'now') FROM t"),
        ("sqlite", "WITH a AS (SELECT CURRENT_TIMESTAMP AS n) SELECT n FROM a"),
        ("postgres", "SELECT now() - interval '1 day'"),
        ("postgres", "SELECT age(born) FROM t"),
        ("postgres", "SELECT 'today'::date"),
        ("postgres", "SELECT LOCALTIMESTAMP"),
        ("duckdb", "SELECT today()"),
        ("duckdb", "SELECT current_date"),
        ("mysql", "SELECT CURDATE(), UNIX_TIMESTAMP()"),
        ("snowflake", "SELECT DATEADD(day, -1, CURRENT_DATE)"),
        ("snowflake", "SELECT SYSDATE()"),
        ("bigquery", "SELECT CURRENT_DATE('Europe/Berlin')"),
    ],
)
def test_queries_that_ask_for_the_time(dialect: str, sql: str) -> None:
    assert volatile(sql, dialect) == NOW


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("sqlite", "SELECT random()"),
        ("sqlite", "SELECT * FROM t ORDER BY RANDOM() LIMIT 1"),
        ("postgres", "SELECT gen_random_uuid()"),
        ("bigquery", "SELECT RAND()"),
        ("snowflake", "SELECT * FROM t SAMPLE (10)"),
    ],
)
def test_queries_that_draw(dialect: str, sql: str) -> None:
    assert volatile(sql, dialect) == CHANCE


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("sqlite", "SELECT 1"),
        ("sqlite", "SELECT date(d, '-7 days'), strftime('%Y', d) FROM t"),
        ("sqlite", "SELECT 'now', x FROM t WHERE x = 'now' OR x IN ('today')"),
        ("sqlite", "SELECT CASE WHEN x THEN 'now' ELSE 'today' END FROM t"),
        ("sqlite", "SELECT date, time FROM t"),
        ("postgres", "SELECT age(a, b), date '2020-01-01', current_user FROM t"),
        ("mysql", "SELECT UNIX_TIMESTAMP(d) FROM t"),
        ("sqlite", "this is no SQL ("),
    ],
)
def test_queries_that_depend_on_the_data_alone(dialect: str, sql: str) -> None:
    assert volatile(sql, dialect) == ""
