"""The guard's answers: what runs, what is said, how it fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.guard import Passed, Rejected, check
from quorum.tools.guard.process import Process
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.guard.vocabulary import function_names, words
from quorum.tools.query import ErrorKind
from quorum.tools.sql import DIALECTS


def passed(sql: str, dialect: str = "sqlite") -> Passed:
    verdict = verdict_on(sql, dialect)
    assert isinstance(verdict, Passed), verdict
    return verdict


def refused(sql: str, dialect: str = "sqlite") -> Rejected:
    verdict = verdict_on(sql, dialect)
    assert isinstance(verdict, Rejected), verdict
    return verdict


def test_what_runs_has_the_authors_words_and_lines_but_no_comments() -> None:
    sql = "-- top\nSELECT substr(name, 1, 2), -- first\n  count(*) /* all\nof them */ FROM t;\n"
    words = "SELECT substr(name, 1, 2),\n  count(*)\n FROM t".splitlines()
    lines = passed(sql).sql.splitlines()
    assert [line.strip() for line in lines] == [line.strip() for line in words]
    assert passed("SELECT a /* b */ FROM t").sql.index("FROM") == "SELECT a /* b */ FROM t".index("FROM")


@pytest.mark.parametrize(
    ("dialect", "sql", "runs"),
    [
        ("sqlite", r"SELECT 'a\' AS x", r"SELECT 'a\' AS x"),
        ("bigquery", r"SELECT r'\d'", r"SELECT '\\d'"),
        ("postgres", "SELECT $$it's$$", "SELECT 'it''s'"),
        ("mysql", r"SELECT 'it\'s'", "SELECT 'it''s'"),
        ("mysql", "SELECT /*+ SET_VAR(max_execution_time = 0) */ a FROM t", "SELECT a FROM t"),  # a hint
        ("mysql", "SELECT SQL_NO_CACHE a AS x FROM t", "SELECT SQL_NO_CACHE a AS x FROM t"),
        ("mysql", "SELECT a FROM t USE INDEX (i)", "SELECT a FROM t USE INDEX (i)"),  # by way of the tree
        ("sqlite", "explain query plan -- why\n select 1", "EXPLAIN query plan select 1"),
        ("sqlite", "pragma table_info ( 'my table' ) ;", "PRAGMA table_info('my table')"),
    ],
)
def test_what_runs_is_what_was_judged(dialect: str, sql: str, runs: str) -> None:
    assert passed(sql, dialect).sql == runs


def test_explanations_and_inspections_say_what_they_are() -> None:
    assert passed("EXPLAIN (ANALYZE, FORMAT json) SELECT 1", "postgres").kind == "explain"
    assert refused("EXPLAIN SELECT load_extension('x')").rule == "function"
    assert passed("PRAGMA table_info(t)").tree is None
    assert passed("SHOW TABLES", "duckdb").kind == passed("DESCRIBE SELECT 1", "duckdb").kind == "inspection"


def test_a_bigquery_script_keeps_its_statements() -> None:
    sql = "DECLARE x INT64 DEFAULT 1;\nCREATE TEMP FUNCTION f(a INT64) AS (a + 1);\nSELECT f(x);"
    verdict = passed(sql, "bigquery")
    assert verdict.sql == sql.rstrip(";")
    assert len(verdict.script) == 2
    assert refused("SELECT f(1)", "bigquery").rule == "function"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_stacked_statements_are_refused_everywhere(dialect: str) -> None:
    refused("SELECT 1; DROP TABLE t", dialect)
    refused("SELECT 1; SELECT 2", dialect)


def test_a_refusal_becomes_a_query_error() -> None:
    assert refused("DROP TABLE t").error().kind is ErrorKind.REFUSED
    error = refused("SELECT a FROM t\nWHERE (b").error()
    assert (error.kind, error.line, error.by) == (ErrorKind.SYNTAX, 2, "guard")
    assert "\x1b" not in error.message


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("space", ["\u200b", "\u00ad"])
def test_no_invisible_character_joins_words(dialect: str, space: str) -> None:
    words = ["SELECT 1 AS a", "UNION", "SELECT", "name", "FROM", "pg_settings"]  # DuckDB runs all of it
    assert refused(space.join(words), dialect).rule == "characters"
    assert f"U+{ord(space):04X}" in refused(f"SELECT a{space}", dialect).reason
    passed(f"SELECT 'a{space}b'", dialect)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 300 + "1" + ")" * 300,
        "SELECT * FROM " + "(SELECT * FROM " * 6000 + "t" + ")" * 6000,
        "SELECT " + "NOT " * 20_000 + "1",
        "SELECT " + "CASE WHEN a THEN " * 4000 + "1" + " END" * 4000,
        "SELECT " + ".".join(["a"] * 20_000),
        "SELECT 1 -- " + "x" * 200_000,
    ],
)
def test_monsters_are_refused_and_nothing_breaks(sql: str) -> None:
    verdict = check(sql, "duckdb")
    if isinstance(verdict, Rejected):
        assert verdict.rule in ("nesting", "too_long", "syntax")
    else:
        assert len(sql) < 1000


def test_an_unknown_dialect_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match=r"cobol.*bigquery, duckdb.*oracle"):
        check("SELECT 1", "cobol")
    passed("SELECT 1", "PostgreSQL")


@pytest.mark.parametrize("name", ["nodes", "typed"])
def test_the_lists_name_classes_that_exist(name: str) -> None:
    from sqlglot import exp

    assert [word for word in words(name) if not hasattr(exp, word)] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_list_holds_a_function_with_side_effects(dialect: str) -> None:
    known_evil = {
        *("load_extension", "writefile", "readfile", "edit", "fts3_tokenizer", "getenv", "read_csv", "query"),
        *("nextval", "setval", "currval", "set_config", "pg_sleep", "pg_read_file", "lo_import", "dblink"),
        *("query_to_xml", "table_to_xml", "database_to_xml", "pg_notify", "pg_terminate_backend", "ts_stat"),
        *("sleep", "benchmark", "load_file", "get_lock", "release_lock", "external_query"),
        *("get_presigned_url", "ai_complete", "infer_schema", "glob_files", "sniff_csv", "which_secret"),
        *("duckdb_secrets", "sleep_ms", "write_log", "json_execute_serialized_sql", "checkpoint", "crosstab"),
    }
    assert function_names(dialect) & known_evil == set()


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here")
def test_a_process_that_only_judges_does_not_grow() -> None:
    judge, sizes = Process(), []
    for number in range(2400):  # all generations of garbage are collected every 1,100
        sums = ", ".join(f"a.c{i} + {number}" for i in range(10))
        judge.ask(f"SELECT {sums} FROM t AS a JOIN u AS b ON a.id = b.id", "sqlite")
        sizes.append(int(Path(f"/proc/{judge._child.pid}/statm").read_text().split()[1]))
    judge.close()
    assert sizes[-1] < 1.02 * sizes[1200]
