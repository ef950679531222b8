"""Where a header is, by the first lines alone."""

from __future__ import annotations

from datetime import date

import pytest

from quorum.tools.databases.duckdb.headers import Header, find, split
from tests.tools.databases.cases import cases


@pytest.mark.parametrize(("what", "text", "place", "title"), cases("headers", 4))
def test_where_a_header_is(what: str, text: str, place: str, title: str) -> None:
    lines = split(text, whole=True)
    expected = Header(int(place.split()[-1]), named="none" not in place, title=title)
    assert find(lines.rows, lines.width) == expected, what


def test_blank_lines_have_no_header_and_a_text_that_is_cut_loses_its_last_line() -> None:
    assert find(split("\n\n,,\n", whole=True).rows, 3) is None
    assert find([], 0) is None
    assert split('id;name\n1;a\n2;"b', whole=False).rows == [["id", "name"], ["1", "a"]]


def test_cells_of_a_sheet() -> None:
    rows = [["Report", "", ""], ["", "", ""], ["id", "day", 2024.0], [1.0, date(2024, 5, 1), 2.5]]
    assert find(rows, 3) == Header(2, named=False, title="Report")
    assert find([*rows[:2], ["id", "day", "v"], rows[3]], 3) == Header(2, title="Report")


def test_what_is_said() -> None:
    assert Header(0).remark("a.csv", "…") == Header(2).remark("a.csv", "…") == ""
    assert Header(2, title="T").remark("a.csv", "x") == "a.csv: its header is line 3, below 'T'. If not: x"
    assert Header(0, named=False).remark("a.csv", "x").startswith("a.csv has no header: its columns are")
