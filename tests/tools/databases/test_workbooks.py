"""Excel workbooks asked as a database: a sheet is a table, read by a child process."""

from __future__ import annotations

import zipfile
from datetime import date, datetime, time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from quorum.knowledge.errors import DatabaseUnavailable, install_hint
from quorum.tools.databases import connect
from quorum.tools.databases.duckdb import files as duckdb_files
from tests.tools.databases.contract import children
from tests.tools.databases.test_data_files import answer, catalog_of, fill


def workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    """A workbook; a row is a list of cells. A sheet whose name begins with ``Hidden`` is."""
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra `xlsx` is not installed")
    pytest.importorskip("python_calamine", reason="the extra `xlsx` is not installed")
    path.parent.mkdir(parents=True, exist_ok=True)
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        for name, lines in sheets.items():
            sheet = book.add_worksheet(name)
            if name.startswith("Hidden"):
                sheet.hide()
            for number, line in enumerate(lines):
                sheet.write_row(number, 0, line)
    return path


ORDERS = [["id", "city"], [1, "Bern"], [2, "Basel"]]


@pytest.mark.heavy
async def test_values_have_their_types(tmp_path: Path) -> None:
    days = [datetime(2024, 5, 1), datetime(2024, 5, 2)]
    sheet = [
        ["Sales of May"],
        [],
        ["id", "day", "zip", "price", "mixed", "blank", "Id"],
        [1, days[0], "0123", 1.5, 1, "", True],
        [2, days[1], "0456", 2, "x", "", False],
        ["", "", "", "", "", "", ""],
        [3, "", "0789", "=1+1", 2.5, "", ""],
    ]
    path = workbook(tmp_path / "sales.xlsx", May=sheet)
    catalog = await catalog_of(path)
    (found,) = catalog.tables
    assert (found.name, found.description, found.row_count) == ("sales", "sales.xlsx, sheet May", 3)
    assert [(column.name, column.type) for column in found.columns] == [
        *(("id", "BIGINT"), ("day", "DATE"), ("zip", "VARCHAR"), ("price", "DOUBLE"), ("mixed", "VARCHAR")),
        *(("blank", "VARCHAR"), ("Id_1", "BOOLEAN")),
    ]
    (said,) = catalog.left_out
    assert said == (
        "sales.xlsx, sheet May: its header is line 3, below 'Sales of May'. "
        "If not: --db 'sales.xlsx?skip=May:LINES'"
    )
    assert await answer(path, "SELECT day, price, mixed FROM sales") == [
        (date(2024, 5, 1), 1.5, "1"),
        (date(2024, 5, 2), 2.0, "x"),
        (None, 0.0, "2.5"),  # the value that was stored with the formula
    ]


async def test_times_and_moments(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="the extra `xlsx` is not installed")
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["t", "m", "d"])
        for column, (value, form) in enumerate(
            [(time(12, 30), "hh:mm"), (datetime(2024, 5, 1, 8), "yyyy-mm-dd hh:mm"), (1.5, "[h]:mm")]
        ):
            sheet.write(1, column, value, book.add_format({"num_format": form}))
    assert await answer(tmp_path / "a.xlsx", "FROM a") == [
        (time(12, 30), datetime(2024, 5, 1, 8), "36:00:00")
    ]


@pytest.mark.heavy
async def test_sheets_are_tables(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    many = workbook(folder / "shop 1.xlsx", Orders=ORDERS, Empty=[], Hidden=ORDERS)
    workbook(folder / "rates.xlsx", Sheet1=ORDERS)
    fill(folder, rates__csv="a\n1\n", **{"~$rates__xlsx": "lock"})
    catalog = await catalog_of(folder)
    names = {item.name for item in catalog.tables}
    assert names == {"shop_1_Orders", "shop_1_Hidden", "rates_csv", "rates_xlsx"}
    assert catalog.left_out == ("shop 1.xlsx: sheets without rows are left out: Empty.",)
    assert "shop 1.xlsx, sheet Hidden, is hidden in the workbook." in catalog.notes
    assert {item.name for item in (await catalog_of(many)).tables} == {"Orders", "Hidden"}
    assert await answer(folder, "SELECT city FROM shop_1_Orders WHERE id = 2") == [("Basel",)]


@pytest.mark.heavy
async def test_the_user_says_where_a_sheets_header_is(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", One=ORDERS, Two=ORDERS)
    catalog = await catalog_of(f"{path}?skip=One:no-header&skip=Two:1")
    assert {item.name: [column.name for column in item.columns] for item in catalog.tables} == {
        "One": ["column0", "column1"],
        "Two": ["1", "Bern"],
    }


def packed(path: Path, source: Path, cells: bytes) -> None:
    """A copy of a workbook with ``cells`` as further rows of its sheets."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content.replace(b"</sheetData>", cells + b"</sheetData>"))


def test_a_workbook_that_would_unpack_to_more_than_a_bound_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "good.xlsx", One=ORDERS)
    session = import_module("quorum.tools.databases.duckdb.workbook")
    monkeypatch.setattr(session, "UNPACKED", 1000)
    monkeypatch.setattr("python_calamine.CalamineWorkbook", None)
    with pytest.raises(DatabaseUnavailable, match="it unpacks to"):
        session.WorkbookSession(str(path), 2**31).run("", 10, 2**20, 1.0)


@pytest.mark.heavy
async def test_what_is_no_workbook_is_said_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    good = workbook(folder / "good.xlsx", One=ORDERS)
    packed(folder / "far.xlsx", good, b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')
    long = b'<row r="9"><c r="A9" t="inlineStr"><is><t>%s</t></is></c></row>' % (b"x" * 40_000)
    packed(folder / "long.xlsx", good, long)
    fill(folder, renamed__xlsx="a,b\n1,2\n", cut__xlsx=good.read_bytes()[:900], empty__xlsx="")
    catalog = await catalog_of(folder)
    assert {item.name for item in catalog.tables} == {"good"}
    said = {sentence.split()[0]: sentence for sentence in catalog.left_out}
    assert "too much time or memory" in said["far.xlsx"]
    assert "more than 32,767 characters" in said["long.xlsx"]
    assert "it is empty" in said["empty.xlsx"]
    assert all("it is no workbook" in said[name] for name in ("renamed.xlsx", "cut.xlsx"))
    assert all("\n" not in each and len(each) < 250 for each in catalog.left_out)
    with pytest.raises(DatabaseUnavailable, match="it is no workbook"):
        await connect(str(folder / "renamed.xlsx")).open()
    assert children() == []


async def test_without_the_extra_the_way_to_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, a__csv="n\n1\n", book__xlsx="PK")
    monkeypatch.setattr(duckdb_files, "is_installed", lambda name: False)
    (said,) = (await catalog_of(tmp_path)).left_out
    assert "book.xlsx is left out. Reading a workbook needs the package python-calamine." in said
    assert said.endswith(install_hint("xlsx"))
