"""Which queries depend on the time or on chance."""

from __future__ import annotations

import pytest

from quorum.evals.scorers.gold_check import CHANCE, NOW, volatile


@pytest.mark.parametrize(
    ("cause", "sql"),
    [
        (NOW, "SELECT date('now', '-7 days')"),
        (NOW, "SELECT * FROM t WHERE d > DATE('NOW')"),
        (NOW, "SELECT strftime('%Y', 'now') - 5"),
        (NOW, "SELECT strftime('%Y')"),
        (NOW, "SELECT julianday()"),
        (NOW, "SELECT unixepoch('now')"),
        (NOW, "SELECT datetime('now')"),
        (NOW, "SELECT date()"),
        (NOW, "SELECT timediff(d, 'now') FROM t"),
        (NOW, "WITH a AS (SELECT CURRENT_TIMESTAMP AS n) SELECT n FROM a"),
        (NOW, "SELECT now() - interval '1 day'"),
        (NOW, "SELECT age(born) FROM t"),
        (NOW, "SELECT 'today'::date"),
        (NOW, "SELECT LOCALTIMESTAMP"),
        (NOW, "SELECT today()"),
        (NOW, "SELECT current_date"),
        (NOW, "SELECT CURDATE(), UNIX_TIMESTAMP()"),
        (NOW, "SELECT DATEADD(day, -1, CURRENT_DATE)"),
        (NOW, "SELECT SYSDATE()"),
        (NOW, "SELECT CURRENT_DATE('Europe/Berlin')"),
        (CHANCE, "SELECT random()"),
        (CHANCE, "SELECT * FROM t ORDER BY RANDOM() LIMIT 1"),
        (CHANCE, "SELECT gen_random_uuid()"),
        (CHANCE, "SELECT RAND()"),
        (CHANCE, "SELECT * FROM t SAMPLE (10)"),
        ("", "SELECT 1"),
        ("", "SELECT date(d, '-7 days'), strftime('%Y', d) FROM t"),
        ("", "SELECT 'now', x FROM t WHERE x = 'now' OR x IN ('today')"),
        ("", "SELECT CASE WHEN x THEN 'now' ELSE 'today' END FROM t"),
        ("", "SELECT date, time FROM t"),
        ("", "SELECT age(a, b), date '2020-01-01', current_user FROM t"),
        ("", "SELECT UNIX_TIMESTAMP(d) FROM t"),
    ],
)
def test_the_functions_in_a_query_say_what_it_depends_on(cause: str, sql: str) -> None:
    assert volatile(sql) == cause
