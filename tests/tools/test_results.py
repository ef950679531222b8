"""Results on their way out: JSON-ready rows, CSV, files, blank results, excerpts, overlap by columns."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.errors import QuorumError
from quorum.tools.query import QueryResult
from quorum.tools.results.canonical import blank_reason, has_blank_column, is_blank
from quorum.tools.results.compare import fingerprint
from quorum.tools.results.excerpt import excerpt, row_limit
from quorum.tools.results.files import read_result, write_result
from quorum.tools.results.overlap import overlap
from quorum.tools.results.values import plain_rows

UTC_NS = pa.timestamp("ns", "UTC")


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([2**63 - 1, None]), [2**63 - 1, None]),
        (pa.array([1.5, float("nan"), float("inf"), -float("inf")]), [1.5, None, "Infinity", "-Infinity"]),
        (pa.array([Decimal("1.50"), None]), [1.5, None]),
        (pa.array([Decimal("12345678901234567890")]), [12345678901234567890]),
        (pa.array([Decimal("1234567890123456.78")]), ["1234567890123456.78"]),
        (pa.array([dt.date(2024, 2, 29)]), ["2024-02-29"]),
        (pa.array([dt.datetime(2024, 2, 29, 1, 2, 3)]), ["2024-02-29 01:02:03"]),
        (pa.array([1_000_000_001], UTC_NS), ["1970-01-01 00:00:01+00:00"]),
        (pa.array([[1_000_000_001]], pa.list_(pa.timestamp("ns"))), [["1970-01-01 00:00:01"]]),
        (pa.array([dt.time(1, 2, 3)]), ["01:02:03"]),
        (pa.array([dt.timedelta(hours=1)]), ["3600 seconds"]),
        (pa.array([(1, 2, 500_000_000)], pa.month_day_nano_interval()), ["1 month 2 days 0.5 seconds"]),
        (pa.array(["é".encode(), b"\xff\x00"]), ["é", "0xff00"]),
        (pa.array([True, None]), [True, None]),
        (pa.array([{"a": [1.0, float("nan")]}]), [{"a": [1.0, None]}]),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), [{"k": 1}]),
        (pa.array(["x", "x"]).dictionary_encode(), ["x", "x"]),
        (pa.nulls(1), [None]),
    ],
)
def test_plain_rows_are_json_ready(array: pa.Array, expected: list[Any]) -> None:
    rows = plain_rows(pa.table([array], ["c"]))
    assert rows == [[value] for value in expected]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


@pytest.mark.parametrize(
    ("table", "reason", "column"),
    [
        ({"a": pa.array([], pa.int64())}, "empty", True),
        ({"a": [None, None], "b": [float("nan"), None]}, "all NULL", True),
        ({"a": [0, 0], "b": [0.0, None]}, "all zero", True),
        ({"a": [Decimal("0.00")]}, "all zero", True),
        ({"a": ["0", "0.0"]}, "all zero", True),
        ({"a": [False]}, "", False),
        ({"a": [None], "b": pa.array([None], pa.bool_())}, "all NULL", True),
        ({"a": ["", None], "b": ["  ", None]}, "all empty text", True),
        ({"a": [""], "b": [0]}, "all zero", True),
        ({"a": ["", "x"]}, "", False),
        ({"a": [0] * 5000 + [1]}, "", False),
        ({"a": [0.004]}, "", False),
        ({"a": [0], "b": ["x"]}, "", True),
        ({"a": [1], "b": pa.array([None], pa.bool_())}, "", True),
    ],
)
def test_blank_results_and_columns(table: dict[str, Any], reason: str, column: bool) -> None:
    assert blank_reason(pa.table(table)) == reason
    assert is_blank(pa.table(table)) == bool(reason)
    assert has_blank_column(pa.table(table)) is column


def test_a_result_is_kept_under_its_content(tmp_path: Path) -> None:
    table = pa.Table.from_arrays(
        [
            pa.array([1, None]),
            pa.array([Decimal("1.10"), None]),
            pa.array([{"x": [1, 2]}, None]),
            pa.array([dt.datetime(2024, 1, 1), None], UTC_NS),
        ],
        names=["a", "a", "b", "t"],
    )
    path = write_result(table, tmp_path / "results")
    assert write_result(table, tmp_path / "results") == path
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    back = read_result(path)
    assert back.equals(table)
    assert fingerprint(back) == fingerprint(table)


def test_a_damaged_or_missing_result_is_said_to_be_so(tmp_path: Path) -> None:
    path = write_result(pa.table({"a": [1]}), tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(QuorumError, match="damaged"):
        read_result(path)
    path.unlink()
    with pytest.raises(QuorumError, match="cannot be read"):
        read_result(path)


def result(values: list[str | None], truncated: str = "") -> QueryResult:
    return QueryResult(pa.table({"name": pa.array(values, pa.string())}), 0.0, truncated)


@pytest.mark.parametrize(
    ("values", "limit", "truncated", "shown"),
    [
        (["Ada", "Bo, jr"], None, "", 'name\nAda\n"Bo, jr"\n(2 rows)'),
        ([], None, "", "name\n(0 rows)"),
        (["x"] * 150, None, "", "(100 of 150 rows shown, the rest was cut)"),
        (["x" * 1_000] * 50, None, "", "(4 of 50 rows shown, the rest was cut)"),
        (["x"] * 20, None, "rows", "(20 rows shown; the result was cut at 20 rows, there are more)"),
        (["x"] * 20, 20, "", "(20 rows: its LIMIT; there may be more)"),
        (["x"], 1, "", "(1 row: its LIMIT; there may be more)"),
        (["x" * 6_000, "y"], None, "", "… (row cut)\n(1 of 2 rows shown, the rest was cut)"),
        (
            ["x"] * 150,
            150,
            "",
            "(100 of 150 rows shown, the rest was cut; 150 is its LIMIT, there may be more)",
        ),
    ],
)
def test_what_was_cut_is_said(
    values: list[str | None], limit: int | None, truncated: str, shown: str
) -> None:
    assert excerpt(result(values, truncated), limit=limit).endswith(shown)


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


Columns = dict[str, list[Any]]


def test_a_missing_column_costs_more_than_an_extra_one() -> None:
    narrow = pa.table({"a": [1, 2], "b": ["x", "y"]})
    wide = narrow.append_column("c", [[0.5, 1.5]])
    found = overlap(wide, narrow)
    assert (found.support, found.reversed.support) == pytest.approx((0.826, 0.510), abs=1e-3)
    assert (found.relation, found.same, found.columns) == ("contains", True, (3, 2))
    assert found.reversed.relation == "within"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"k": ["x", "y"], "v": [1, 2]}, {"k": ["x", "y"], "v": [2, 1]}, 1.0),  # rows paired otherwise
        ({"k": ["x", "y"], "v": [1, 2]}, {"k": ["x", "y"], "v": [1, 9]}, 1.5),
        ({"k": ["x", "y", "z"], "v": [1, 2, 3]}, {"k": ["x", "y"], "v": [1, 2]}, 4 / 3),  # the longer counts
        ({"v": [1.0, 2.0]}, {"v": [1.004, 2.5]}, 0.5),  # within the tolerance
        ({"v": [1, 1, 1]}, {"v": [1, 2, 3]}, 1 / 3),  # as often as both have it
        ({"v": ["a"], "n": [None]}, {"v": ["b"], "n": [None]}, 0.0),  # NULL agrees with nobody
        ({"v": pa.array([], pa.int64())}, {"v": [1]}, 0.0),
        (
            {"x": [1, 2, 2], "y": [2, 1, 1]},
            {"p": [1, 2, 1], "q": [1, 2, 2]},
            4 / 3,
        ),  # a share falls, and counts
        ({"x": [1, 2, 3], "y": [1, 2, 4]}, {"p": [1, 2, 3], "q": [1, 2, 5], "r": [7, 7, 7]}, 1 + 2 / 3),
    ],
)
def test_what_is_matched(a: Columns, b: Columns, expected: float) -> None:
    found = overlap(pa.table(a), pa.table(b))
    assert found.matched == pytest.approx(expected)
    assert overlap(pa.table(b), pa.table(a)) == found.reversed


CELL = st.sampled_from([None, 0, 1, 1.001, 2, 2.5, 2.503])


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 4))
    columns = draw(st.lists(st.lists(CELL, min_size=rows, max_size=rows), min_size=1, max_size=4))
    return pa.Table.from_arrays([pa.array(c, pa.float64()) for c in columns], names=["c"] * len(columns))


@given(tables(), tables(), st.randoms(use_true_random=False))
def test_support_is_bounded_and_does_not_depend_on_form(a: pa.Table, b: pa.Table, draw: Any) -> None:
    found = overlap(a, b)
    assert overlap(b, a) == found.reversed
    assert found.reversed.reversed == found
    assert 0 <= found.matched <= min(found.columns)
    assert 0 <= found.support <= 1
    assert (found.support == 1) == (found.relation == "equal")
    moved = a.take(pa.array(draw.sample(range(a.num_rows), a.num_rows), pa.int64()))
    moved = moved.select(draw.sample(range(a.num_columns), a.num_columns))
    assert overlap(moved, b) == found
