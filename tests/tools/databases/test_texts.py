"""The text of a query as each engine reads it: no quote, comment or escape hides a word from what is sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.tools.databases.texts import READS, Unreadable, calls, tokens, uncallable, unsendable
from quorum.tools.guard import Passed, check
from quorum.tools.query import ErrorKind
from tests.servers.process import DatabaseServer
from tests.tools.case_files import cases

PROBE = "nosuch"
"""A column that is not there: an engine that reads the word says so."""
PIECES = (
    *("'", "''", '"', "`", "\\", "/*", "*/", "--", "-- ", "#", "//", "\n", "\r", " ", "$", "$$", "$a$", "E'"),
    *("e", "U&'", "1", ", 1", "'a'", "/* ' */", "-- '\n", '# "\n', "/*/", "x'41'", "N'", "b", "||", "-"),
    *(f", {PROBE}", f" {PROBE} "),
)


def seen(sql: str, dialect: str) -> bool | None:
    """Return whether the tokeniser finds the probe outside of texts and comments; None if it does not say."""
    try:
        found = tokens(sql, dialect)
    except Unreadable:
        return None
    return any(PROBE in token.text for token in found if token.kind in ("word", "name"))


TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map(
    lambda pieces: "SELECT 1, " + "".join(pieces)
)


def asker(server: DatabaseServer) -> Callable[[str], bool | None]:
    """Return what asks an engine whether it reads the probe in a text; None if it does not say."""
    import psycopg
    import pymysql

    cursor = server.connect().cursor()

    def ask(sql: str) -> bool | None:
        try:
            cursor.execute(sql)
        except (psycopg.Error, pymysql.Error) as error:
            unknown = isinstance(error, psycopg.errors.UndefinedColumn) or 1054 in error.args
            return (unknown and PROBE in str(error)) or None
        return False

    return ask


@pytest.mark.heavy
@pytest.mark.parametrize(("dialect", "server"), [("postgres", "postgres"), ("mysql", "mariadb")])
def test_a_word_is_found_exactly_where_the_engine_reads_it(
    request: pytest.FixtureRequest, dialect: str, server: str
) -> None:
    ask, told = asker(request.getfixturevalue(server)), {True: 0, False: 0}

    @settings(max_examples=1500)
    @given(TEXTS)
    def compare(sql: str) -> None:
        engine, ours = ask(sql), seen(sql, dialect)
        if engine is not None and ours is not None:
            assert ours is engine, sql
            told[engine] += 1

    compare()
    assert min(told.values()) > 10, told


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("mysql", "SELECT a /* ' */ FROM t INTO OUTFILE '/x' -- '"),
        ("mysql", "SELECT a -- '\n INTO OUTFILE '/x'"),
        ("mysql", "SELECT a # '\n INTO OUTFILE '/x' # '"),
        ("mysql", "SELECT 1--1 INTO OUTFILE '/x'"),
        ("mysql", "SELECT 'a\\'' INTO OUTFILE '/x' -- '"),
        ("mysql", 'SELECT "\\"" INTO @a'),
        ("postgres", "SELECT '\\' INTO x --'"),
        ("postgres", "SELECT 1 /* /* */ ' */ INTO x --'"),
        ("postgres", "SELECT $a$ $$ ' $a$ INTO x --'"),
        ("postgres", "SELECT a$$ INTO x --$$"),
        ("snowflake", "SELECT 1 // '\n INTO x --'"),
        ("snowflake", "SELECT 'a\\'' INTO x --'"),
        ("bigquery", "SELECT '''a'b\\'''' INTO x --'"),
        ("bigquery", "SELECT r'\\'' INTO x --'"),
        ("bigquery", "SELECT 1 # '\n INTO x --'"),
        ("tsql", "SELECT [a'] INTO x --'"),
        ("tsql", "SELECT '\\' INTO x --'"),
        ("oracle", "SELECT q'[a'b]' INTO x --'"),
        ("oracle", "SELECT q'!a'b!' INTO x --'"),
    ],
)
def test_no_quote_hides_a_word(dialect: str, sql: str) -> None:
    found = unsendable(sql, dialect)
    assert (found.kind, "INTO" in found.message) == (ErrorKind.PERMISSION, True)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("mysql", "SELECT 1 /*!50000 , 2 */"),
        ("mysql", "SELECT 1 /*M!100000 , 2 */"),
        ("mysql", "SELECT /*+ SET_VAR(sql_mode = 'ANSI_QUOTES') */ 1"),
        ("mysql", "SELECT 1 /* /* */ INTO OUTFILE '/x' */"),
        ("mysql", "SELECT 1 -- a\rb"),
        ("postgres", "SELECT E'a'\n'\\' INTO x --'"),
        ("postgres", 'SELECT U&"\\0070g_sleep"(9)'),
        ("postgres", "SELECT $a$ 1"),
        ("postgres", "SELECT /* 1"),
        ("trino", "SELECT 'a\\' INTO x --'"),
        ("oracle", "SELECT nq'[a'b]' FROM dual"),
        ("snowflake", "SELECT 'a"),
    ],
)
def test_what_engines_could_read_in_two_ways_is_not_sent(dialect: str, sql: str) -> None:
    assert unsendable(sql, dialect) is not None


@pytest.mark.parametrize(
    ("dialect", "sql", "found"),
    [
        ("postgres", "SELECT count(*) OVER (ORDER BY a) FROM (VALUES (1, 2)) AS v(d, n)", [("", "count")]),
        ("postgres", "WITH t(a) AS NOT MATERIALIZED (SELECT 1), u(b) AS (VALUES (1)) SELECT x FROM t", []),
        ("postgres", "SELECT a::bit(2), CAST(b AS d(3)) FROM f(1) t(a)", [("", "f")]),
        ("postgres", "SELECT DISTINCT ON (a) f(b), a OPERATOR(pg_catalog.+) (1)", [("", "f")]),
        ("postgres", "SELECT (ARRAY[1])[1:f(2)], TREAT('x' AS g)", [("", "f"), ("", "treat")]),
        ("postgres", 'SELECT "F"(1), a.b(2), pg_catalog.c(3), a.pg_catalog.d(4), x . f (1)', [
            ("", "F"), ("a", "b"), ("pg_catalog", "c"), ("?", "d"), ("x", "f")
        ]),
        ("postgres", "SELECT a FROM f('x') AS (select_ int), g('x') AS (values int)", [("", "f"), ("", "g")]),
        ("mysql", "SELECT `sleep` (9), IF(a IN (1), 2, 3), 1sha1(2) FROM t USE INDEX (x)", [
            ("", "sleep"), ("", "if"), ("", "1sha1")
        ]),
    ],
)  # fmt: skip
def test_calls(dialect: str, sql: str, found: list[tuple[str, str]]) -> None:
    assert [each[:2] for each in calls(tokens(sql, dialect), dialect)] == found


def test_what_passes_the_guard_can_be_sent() -> None:
    """But for BigQuery's scripts, which no connector sends."""
    sent = 0
    for dialect, sql in cases("guard_cases/passed", 2):
        verdict = check(sql, dialect)
        if dialect in ("sqlite", "duckdb") or not isinstance(verdict, Passed) or "; " in verdict.sql:
            continue
        assert unsendable(verdict.sql, dialect, (*READS, "DESCRIBE", "DESC")) is None, sql
        assert dialect not in ("postgres", "mysql") or uncallable(verdict.sql, dialect) is None, sql
        sent += 1
    assert sent > 150
