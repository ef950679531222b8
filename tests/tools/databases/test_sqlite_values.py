"""SQLite's values to Arrow columns: nothing is lost, whatever the batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.tools.databases.sqlite.values import Collector

VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
)


def column(values: list[Any], cuts: int = 1) -> tuple[pa.Table, str]:
    """The values of a single column, fetched in batches of ``cuts`` rows."""
    collector = Collector(["v"], rows=10**6, size=2**30)
    for start in range(0, len(values), cuts):
        collector.add([(value,) for value in values[start : start + cuts]])
    table, types = collector.finish()
    assert collector.truncated == ""
    return table, types[0]


@given(st.lists(VALUES), st.integers(1, 5))
def test_batches_do_not_matter(values: list[Any], cuts: int) -> None:
    whole, name = column(values, len(values) + 1)
    table, cut_name = column(values, cuts)
    assert table.to_pydict() == whole.to_pydict()
    assert (table.schema, cut_name) == (whole.schema, name)


@given(st.lists(VALUES))
def test_nothing_is_lost(values: list[Any]) -> None:
    table, _ = column(values)
    found = table["v"].to_pylist()
    assert [value is None for value in found] == [value is None for value in values]
    if not pa.types.is_string(table["v"].type):
        assert found == values  # an integer equals the double that stands for it
        return
    for value, text in zip(values, found, strict=True):
        if isinstance(value, float):
            assert float(text) == value
        elif isinstance(value, bytes):
            assert bytes.fromhex(text[2:-1]) == value
        elif value is not None:
            assert text == str(value)


@pytest.mark.parametrize(
    ("values", "kind", "name"),
    [
        ([], pa.null(), "NULL"),
        ([None], pa.null(), "NULL"),
        ([1, None], pa.int64(), "INTEGER"),
        ([1, 2.5], pa.float64(), "INTEGER|REAL"),
        ([2**53 + 1, 2.5], pa.string(), "INTEGER|REAL"),
        (["a", None], pa.string(), "TEXT"),
        ([b"a"], pa.binary(), "BLOB"),
        ([1, "a"], pa.string(), "INTEGER|TEXT"),
        (["a", b"a"], pa.string(), "TEXT|BLOB"),
    ],
)
def test_types(values: list[Any], kind: pa.DataType, name: str) -> None:
    table, found = column(values)
    assert (table["v"].type, found) == (kind, name)


@given(st.lists(st.binary(max_size=50), min_size=1), st.integers(0, 200), st.integers(0, 20))
def test_caps_hold(values: list[bytes], size: int, rows: int) -> None:
    collector = Collector(["v"], rows, size)
    for value in values:
        if not collector.truncated:
            collector.add([(value,)])
    table, _ = collector.finish()
    assert table.num_rows <= rows
    assert table.nbytes <= size or table.num_rows == 0
    assert table["v"].to_pylist() == values[: table.num_rows]
    assert bool(collector.truncated) == (table.num_rows < len(values))
