"""Where a header is, by the first lines alone."""

from __future__ import annotations

from datetime import date

import pytest

from quorum.tools.databases.duckdb.headers import Header, find, split

FOUND = {
    "plain": ("id,name\n1,a\n", Header(0)),
    "rows are missing": ("id,name\n", Header(0)),
    "a title and no row": ("Title,,\nid,name,x\n", Header(1, title="Title")),
    "several titles": ("T\nby me\nfor you\nid,a,b\n1,2,3\n", Header(3, title="T")),
    "a title of two cells": ("T,2024-05-01,\nid,city,v\n1,Bern,5\n", Header(1, title="T 2024-05-01")),
    "a merged title": ("T,T,T\nid,a,b\n1,2,3\n", Header(1, title="T T T")),
    "texts below a title": ("T,,\nname,city,x\nAnn,Bern,r\nEva,Rom,b\n", Header(1, title="T")),
    "an unnamed index": (",city,x\na,Bern,r\nb,Rom,b\n", Header(0)),
    "one name of two": (",amount\n0,5\n1,7\n", Header(0)),
    "columns without names at the end": ("id,name,,\n1,a,,\n2,b,,\n", Header(0)),
    "years": ("region,2021,2022\nN,1,2\nS,3,4\n", Header(0)),
    "months": ("region,2021-01,2021-02\nN,1,2\nS,3,4\n", Header(0)),
    "a header that comes again": ("id,name\n1,a\nid,name\n2,b\n", Header(0)),
    "a value like its column's name": ("id,status\n1,status\n2,open\n", Header(0)),
    "numbers as data": ("1,Bern,2.5\n2,Rom,3\n", Header(0, named=False)),
    "a number like a year as data": ("Bern,2000\nRom,15000\nOslo,17000\n", Header(0, named=False)),
    "years as data": ("N,2021\nS,2022\nW,2023\n", Header(0, named=False)),
    "texts that come again": ("Ann,Bern\nEva,Rom\nTom,Bern\n", Header(0, named=False)),
    "data below a title": ("T,,\n1,Bern,2\n2,Rom,3\n", Header(1, named=False, title="T")),
    "one column": ("n\n1\n2\n", Header(0)),
    "one column with commas": ("note\nhello, you\nhi\nwell, yes\nno\nnot yet\n", Header(0)),
    "German numbers": ("Umsatz;;\nid;preis;x\n1;2,50;a\n2;3,50;b\n", Header(1, title="Umsatz")),
    "a line break in quotation marks": ('"T\nof May",\nid,v\n1,2\n2,3\n', Header(1, title="T of May")),
}


@pytest.mark.parametrize("what", FOUND)
def test_where_a_header_is(what: str) -> None:
    text, header = FOUND[what]
    lines = split(text, whole=True)
    assert find(lines.rows, lines.width) == header


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
