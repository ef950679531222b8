"""CSV as pandas reads and writes it: what the official comparisons see."""

from __future__ import annotations

import sys
from datetime import datetime

import pyarrow as pa
import pytest

from quorum.evals.tables import UnreadableCsv, cells, frame_of, pandas_csv
from quorum.knowledge.errors import ConfigurationError


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1, None, 3], ["1.0", '""', "3.0"]),
        ([True, None], ["True", '""']),
        ([datetime(2020, 1, 1), datetime(2020, 1, 2)], ["2020-01-01", "2020-01-02"]),
        ([datetime(2020, 1, 1), datetime(2020, 1, 2, 3)], ["2020-01-01 00:00:00", "2020-01-02 03:00:00"]),
        ([[1, 2], None], ["[1 2]", '""']),
        ([b"x", b"\xff"], ["b'x'", "b'\\xff'"]),
    ],
)
def test_a_result_is_written_as_the_gold_results_were(values: list[object], texts: list[str]) -> None:
    assert pandas_csv(pa.table({"a": pa.array(values)})).split("\n")[1:-1] == texts


def test_a_text_with_a_carriage_return_can_be_read_back() -> None:
    """pandas leaves the quotation marks out with Python 3.11, and cannot read what it wrote."""
    table = pa.table({"a": ["a\rb", "c\r\nd", "e"], "b": [1, 2, 3]})
    text = pandas_csv(table)
    assert text == 'a,b\r\n"a\rb",1\r\n"c\r\nd",2\r\ne,3\r\n'
    assert [column.tolist() for column in frame_of(text).columns] == [["a\rb", "c\r\nd", "e"], [1, 2, 3]]


def test_columns_of_one_name_and_results_without_rows() -> None:
    assert pandas_csv(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])) == "a,a\n1,2\n"
    assert pandas_csv(pa.table({"a": pa.array([], pa.int64()), "b": []})) == "a,b\n"
    assert frame_of("a,a,,a.1\n1,2,3,4\n").names == ("a", "a", "", "a.1")
    assert frame_of("a,a\nindex,1,2\n").names == ("a", "a")


def test_texts_that_stand_for_null_can_be_named() -> None:
    text = "a,b\nNA,1\nx,\n"
    assert [cells(column) for column in frame_of(text).columns] == [[None, "x"], [1.0, None]]
    assert [cells(column) for column in frame_of(text, nulls=[""]).columns] == [["NA", "x"], [1.0, None]]


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
