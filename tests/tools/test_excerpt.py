"""Excerpts of results: short, whole rows, and never cut in silence."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.tools.query import QueryResult
from quorum.tools.results.excerpt import MAX_BYTES, MAX_ROWS, excerpt, row_limit


def result(values: list[str | None], truncated: str = "") -> QueryResult:
    return QueryResult(pa.table({"name": pa.array(values, pa.string())}), 0.0, truncated)


def test_a_small_result_is_shown_whole() -> None:
    assert excerpt(result(["Ada", "Bo, jr"])) == 'name\nAda\n"Bo, jr"\n(2 rows)'
    assert excerpt(result([])) == "name\n(0 rows)"


@pytest.mark.parametrize(
    ("values", "limit", "truncated", "tail"),
    [
        (["x"] * 150, None, "", "(100 of 150 rows shown, the rest was cut)"),
        (["x" * 1_000] * 50, None, "", "(4 of 50 rows shown, the rest was cut)"),
        (["x"] * 20, None, "rows", "(20 rows shown; the result was cut at 20 rows, there are more)"),
        (["x"] * 20, 20, "", "(20 rows: its LIMIT; there may be more)"),
        (["x"], 1, "", "(1 row: its LIMIT; there may be more)"),
        (
            ["x"] * 150,
            150,
            "",
            "(100 of 150 rows shown, the rest was cut; 150 is its LIMIT, there may be more)",
        ),
    ],
)
def test_what_was_cut_is_said(values: list[str | None], limit: int | None, truncated: str, tail: str) -> None:
    assert excerpt(result(values, truncated), limit=limit).splitlines()[-1] == tail


@pytest.mark.parametrize(
    ("sql", "dialect", "limit"),
    [
        ("SELECT a FROM t ORDER BY a LIMIT 20 OFFSET 5;", "sqlite", 20),
        ("WITH x AS (SELECT a FROM t LIMIT 3) SELECT a FROM x", "sqlite", None),
        ("SELECT a FROM t FETCH FIRST 5 ROWS ONLY", "postgres", 5),
        ("SELECT TOP 4 a FROM t", "snowflake", 4),
        ("SELEC a FROM", "sqlite", None),
    ],
)
def test_the_outermost_limit_counts(sql: str, dialect: str, limit: int | None) -> None:
    assert row_limit(sql, dialect) == limit


@given(st.lists(st.one_of(st.none(), st.text(max_size=300)), max_size=200))
def test_no_excerpt_is_long_and_all_say_how_many_rows_there_are(values: list[str | None]) -> None:
    text = excerpt(result(values))
    assert len(text.encode("utf-8", "surrogatepass")) < 2 * MAX_BYTES + 200
    tail = text.splitlines()[-1]
    assert f"{len(values)} row" in tail
    assert ("cut" in tail) == (not tail.startswith(f"({len(values)} row"))
    assert MAX_ROWS == 100
