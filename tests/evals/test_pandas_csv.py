"""Results as pandas writes them; what is expected here was written by pandas 3.1 with Python 3.11."""

from __future__ import annotations

import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.evals.scorers.spider2 import match, vectors
from quorum.evals.tables import UnreadableCsv, frame_of, pandas_csv
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.results.files import csv_lines

DAY = datetime(2020, 1, 1)


def column(*values: Any, kind: pa.DataType | None = None) -> list[str]:
    """The lines of a one-column table, without the header."""
    text = pandas_csv(pa.table({"a": pa.array(values, kind)}))
    return text.split("\n")[1:-1]


def test_whole_numbers_beside_null_are_floats() -> None:
    assert column(1, 3) == ["1", "3"]
    assert column(1, None, 3) == ["1.0", '""', "3.0"]
    assert column(2**53 + 1, None) == ["9007199254740992.0", '""']


def test_floats_are_the_shortest_and_nan_is_null() -> None:
    values = [1e16, 1e15, 1e-5, -0.0, 0.1 + 0.2, float("inf"), float("nan"), None]
    texts = ["1e+16", "1000000000000000.0", "1e-05", "-0.0", "0.30000000000000004", "inf", '""', '""']
    assert column(*values) == texts
    assert column(0.1, None, kind=pa.float32()) == ["0.1", '""']


def test_booleans_decimals_days_and_times() -> None:
    assert column(True, None, False) == ["True", '""', "False"]
    assert column(Decimal("1.50"), Decimal("0.00")) == ["1.50", "0.00"]
    assert column(Decimal(0), kind=pa.decimal128(38, 10)) == ["0E-10"]
    assert column(date(2020, 1, 1), None) == ["2020-01-01", '""']
    assert column(time(1, 2, 3), time(1, 2, 3, 4)) == ["01:02:03", "01:02:03.000004"]
    assert column(None, None, kind=pa.null()) == ['""', '""']


@pytest.mark.parametrize(
    ("second", "texts"),
    [
        (datetime(2020, 1, 2), ["2020-01-01", "2020-01-02"]),
        (datetime(2020, 1, 2, 3), ["2020-01-01 00:00:00", "2020-01-02 03:00:00"]),
        (datetime(2020, 1, 2, 3, 0, 0, 5000), ["2020-01-01 00:00:00.000", "2020-01-02 03:00:00.005"]),
        (datetime(2020, 1, 2, 3, 0, 0, 5), ["2020-01-01 00:00:00.000000", "2020-01-02 03:00:00.000005"]),
    ],
)
def test_moments_show_what_the_finest_of_them_needs(second: datetime, texts: list[str]) -> None:
    assert column(DAY, second) == texts
    assert column(DAY, None, second) == [texts[0], '""', texts[1]]
    zoned = pa.timestamp("us", "+02:00")
    first = texts[0][11:] or "00:00:00"
    assert column(DAY, second, kind=zoned)[0] == f"2020-01-01 02{first[2:]}+02:00"


def test_moments_beyond_pythons_calendar() -> None:
    assert column(10**18, -(10**17), kind=pa.timestamp("us")) == [
        "33658-09-27 01:46:40",
        "-1199-02-15 14:13:20",
    ]


def test_durations() -> None:
    assert column(timedelta(days=1), None, timedelta(days=-2)) == ["1 days", '""', "-2 days"]
    assert column(timedelta(hours=3, microseconds=5), -timedelta(hours=3)) == [
        "0 days 03:00:00.000005",
        "-1 days +21:00:00.000000",
    ]


def test_nested_values_and_bytes_are_texts_of_python_and_numpy() -> None:
    assert column([1, 2], None, []) == ["[1 2]", '""', "[]"]
    assert column(["x", "y"], [None]) == ["['x' 'y']", "[None]"]
    assert column({"x": 1, "y": "b"}) == ["\"{'x': 1, 'y': 'b'}\""]
    assert column({"x": [1, 2]}) == ["{'x': array([1, 2])}".join(['"', '"'])]
    assert column([{"x": 1}], kind=pa.list_(pa.struct([("x", pa.int64())]))) == ["[{'x': 1}]"]
    assert column([("k", 1)], kind=pa.map_(pa.string(), pa.int64())) == ["\"[('k', 1)]\""]
    assert column(b"x", b"\xff") == ["b'x'", "b'\\xff'"]


def test_fields_are_quoted_where_they_must_be() -> None:
    table = pa.table({"a,b": ["x", "a,b", 'q"q', " lead", "", None], 'q"': [1, 2, 3, 4, 5, 6]})
    assert pandas_csv(table) == '"a,b","q"""\nx,1\n"a,b",2\n"q""q",3\n lead,4\n,5\n,6\n'
    assert pandas_csv(pa.table({"a": ["l\nl"], "b": [1]})) == 'a,b\n"l\nl",1\n'


def test_a_text_with_a_carriage_return_can_be_read_back() -> None:
    """pandas leaves the quotation marks out with Python 3.11, and cannot read what it wrote."""
    table = pa.table({"a": ["a\rb", "c\r\nd", "e"], "b": [1, 2, 3]})
    text = pandas_csv(table)
    assert text == 'a,b\r\n"a\rb",1\r\n"c\r\nd",2\r\ne,3\r\n'
    assert [column.tolist() for column in frame_of(text).columns] == [["a\rb", "c\r\nd", "e"], [1, 2, 3]]


def test_columns_of_one_name_and_results_without_rows() -> None:
    assert pandas_csv(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])) == "a,a\n1,2\n"
    assert pandas_csv(pa.table({"a": pa.array([], pa.int64()), "b": []})) == "a,b\n"


def test_what_moments_need_is_found_piece_by_piece_and_null_in_the_whole_column() -> None:
    rows = 50_000  # of two columns, pandas formats as many at a time
    moments = [DAY] * rows + [DAY, DAY + timedelta(hours=1)]
    numbers = [1] * (rows + 1) + [None]
    lines = pandas_csv(pa.table({"a": moments, "b": numbers})).splitlines(keepends=True)
    assert lines[1] == lines[rows] == "2020-01-01,1.0\n"
    assert lines[rows + 1 :] == ["2020-01-01 00:00:00,1.0\n", "2020-01-01 01:00:00,\n"]


def test_without_pandas_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    for use in (lambda: frame_of("a\n1\n"), lambda: pandas_csv(pa.table({"a": [1]}))):
        with pytest.raises(ConfigurationError, match=r"pip install 'pandas"):
            use()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty, it lacks even a header"),
        ('a\n"1\n', "quotation mark is not closed"),
        ("a,b\n1,2\n3,4,5\n", "Expected 2 fields in line 3, saw 3"),
    ],
)
def test_what_is_no_csv_is_said(text: str, message: str) -> None:
    with pytest.raises(UnreadableCsv, match=message):
        frame_of(text)


def test_names_are_as_in_the_header() -> None:
    assert frame_of("a,a,,a.1\n1,2,3,4\n").names == ("a", "a", "", "a.1")
    assert frame_of("a,a\nindex,1,2\n").names == ("a", "a")


plain = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62)), min_size=1, max_size=6),
    st.lists(st.one_of(st.none(), st.floats(width=64)), min_size=1, max_size=6),
    st.lists(st.one_of(st.none(), st.booleans()), min_size=1, max_size=6),
    st.lists(st.one_of(st.none(), st.text("ab,\"\n 1'é", max_size=4)), min_size=1, max_size=6),
    st.lists(st.one_of(st.none(), st.dates()), min_size=1, max_size=6),
)


@given(st.lists(plain, min_size=1, max_size=3))
def test_the_comparison_reads_the_same_from_it_as_from_the_table(columns: list[list[Any]]) -> None:
    rows = min(map(len, columns))
    table = pa.Table.from_arrays([pa.array(values[:rows]) for values in columns], [*"abc"][: len(columns)])
    exported, direct = frame_of(pandas_csv(table)), frame_of("".join(csv_lines(table)))
    assert (exported.names, exported.rows) == (direct.names, direct.rows)
    pairs = zip(
        vectors(exported.columns, ignore_order=False),
        vectors(direct.columns, ignore_order=False),
        strict=True,
    )
    assert all(match(one, other) for one, other in pairs)
