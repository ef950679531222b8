"""Results on their way out: JSON-ready rows, CSV, files, blank results."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quorum.knowledge.errors import QuorumError
from quorum.tools.results.canonical import blank_reason, has_blank_column, is_blank
from quorum.tools.results.compare import fingerprint
from quorum.tools.results.files import read_result, write_result
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
    ("table", "reason"),
    [
        ({"a": pa.array([], pa.int64())}, "empty"),
        ({"a": [None, None], "b": [float("nan"), None]}, "all NULL"),
        ({"a": [0, 0], "b": [0.0, None]}, "all zero"),
        ({"a": [Decimal("0.00")]}, "all zero"),
        ({"a": ["0", "0.0"]}, "all zero"),
        ({"a": [False]}, ""),
        ({"a": [None], "b": pa.array([None], pa.bool_())}, "all NULL"),
        ({"a": [""], "b": ["  "]}, "all empty text"),
        ({"a": ["", None]}, "all empty text"),
        ({"a": [""], "b": [0]}, "all zero"),
        ({"a": ["", "x"]}, ""),
        ({"a": [0] * 5000 + [1]}, ""),
        ({"a": [0.004]}, ""),
        ({"a": [0], "b": ["x"]}, ""),
    ],
)
def test_blank_results(table: dict[str, Any], reason: str) -> None:
    assert blank_reason(pa.table(table)) == reason
    assert is_blank(pa.table(table)) == bool(reason)


@pytest.mark.parametrize(
    ("table", "blank"),
    [
        ({"a": [1, 2], "b": ["", None]}, True),
        ({"a": [1, 2], "b": [0, 0.0]}, True),
        ({"a": [1, 2], "b": pa.array([None, None], pa.bool_())}, True),
        ({"a": [1, 2], "b": [False, False]}, False),
        ({"a": [1, 0], "b": ["", "x"]}, False),
    ],
)
def test_a_column_may_be_blank(table: dict[str, Any], blank: bool) -> None:
    assert has_blank_column(pa.table(table)) is blank


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


def test_types_that_parquet_lacks_are_kept_as_text(tmp_path: Path) -> None:
    interval = pa.array([(1, 0, 0), None], pa.month_day_nano_interval())
    back = read_result(
        write_result(pa.table({"i": interval, "s": pa.array([{}, {}], pa.struct([]))}), tmp_path)
    )
    assert back.to_pydict() == {"i": ["1 month", None], "s": ["{}", "{}"]}


def test_a_damaged_or_missing_result_is_said_to_be_so(tmp_path: Path) -> None:
    path = write_result(pa.table({"a": [1]}), tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(QuorumError, match="damaged"):
        read_result(path)
    path.unlink()
    with pytest.raises(QuorumError, match="cannot be read"):
        read_result(path)
