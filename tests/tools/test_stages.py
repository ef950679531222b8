"""Stages of a query: cut by tokens, each of them runnable."""

from __future__ import annotations

import sqlite3

import pytest

from quorum.tools.sql import SyntaxProblem
from quorum.tools.sql.stages import replace_stage, split_stages

QUERY = """-- how many
WITH RECURSIVE n(x) AS MATERIALIZED (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3 -- not )
), "odd ones" AS (SELECT ')' AS mark, x FROM n WHERE x % 2 = 1)
SELECT COUNT(*), MAX(mark) FROM "odd ones" WHERE x IN (SELECT x FROM n);"""


def rows(sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(":memory:")
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_every_stage_runs_over_those_before_it() -> None:
    stages = split_stages(QUERY, "sqlite")
    assert [stage.name for stage in stages] == ["n", '"odd ones"', "result"]
    assert [stage.last for stage in stages] == [False, False, True]
    assert [rows(stage.sql) for stage in stages] == [[(1,), (2,), (3,)], [(")", 1), (")", 3)], [(2, ")")]]
    assert stages[1].body == "SELECT ')' AS mark, x FROM n WHERE x % 2 = 1"


def test_a_stage_gets_a_new_body_and_the_rest_stays_to_the_letter() -> None:
    mended = replace_stage(QUERY, "sqlite", 1, "SELECT '!' AS mark, x FROM n -- all;\n;")
    assert rows(mended) == [(3, "!")]
    assert split_stages(mended, "sqlite")[0] == split_stages(QUERY, "sqlite")[0]
    assert rows(replace_stage(QUERY, "sqlite", 2, "SELECT SUM(x) FROM n")) == [(6,)]
    with pytest.raises(IndexError):
        replace_stage(QUERY, "sqlite", 3, "SELECT 1")


def test_a_fault_in_one_stage_does_not_hide_the_others() -> None:
    stages = split_stages("WITH a AS (SELECT 1 AS x), b AS (SELEC FROM a) SELECT * FROM b", "duckdb")
    assert [stage.name for stage in stages] == ["a", "b", "result"]
    assert rows(stages[0].sql) == [(1,)]


@pytest.mark.parametrize("sql", ["WITH a AS (SELECT 1", "WITH a", "WITH a AS", "SELECT 'open"])
def test_what_cannot_be_cut_says_so(sql: str) -> None:
    with pytest.raises(SyntaxProblem):
        split_stages(sql, "sqlite")
