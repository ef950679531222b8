"""Data files asked as a database: which tables they make, what is said, and that no other file opens."""

from __future__ import annotations

import gzip
import zipfile
from datetime import date, datetime, time
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable, install_hint
from quorum.knowledge.schema.render import render
from quorum.tools.databases import connect
from quorum.tools.databases.catalog_cache import CatalogCache
from quorum.tools.databases.duckdb import files as duckdb_files
from quorum.tools.databases.duckdb.headers import Header, find, footer, split
from quorum.tools.query import ErrorKind, Limits
from tests.engines import start_no_process
from tests.tools.case_files import cases
from tests.tools.databases.contract import children, error, rows, table

FOOTED = "id,city,amount\n1,Bern,2.5\n2,Basel,3\n3,Bern,4\n\nEnd of export,,\n"
PROCESS = ("test_what_is_no_workbook", "test_nothing_to_ask", "test_no_other_file", "test_what_was_made")
"""Beginnings of tests of the engine's process; others read files in this one."""


@pytest.fixture(autouse=True)
def _engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.node.name.startswith(PROCESS):
        start_no_process(monkeypatch)


def fill(folder: Path, **texts: str | bytes) -> Path:
    """A folder of files; ``_`` before the suffix stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in texts.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name.replace("__", ".")).write_bytes(data)
    return folder


async def catalog_of(path: Path | str) -> Catalog:
    async with connect(str(path)) as connector:
        return await connector.catalog()


async def answer(path: Path | str, sql: str) -> list[tuple[object, ...]]:
    async with connect(str(path)) as connector:
        return rows(await connector.run(sql, Limits()))


@pytest.mark.heavy
async def test_a_folder_of_every_kind_and_names_that_clash(tmp_path: Path) -> None:
    orders = "id,amount,day\n1,10.5,2024-01-31\n2,20,2024-02-01\n"
    folder = fill(tmp_path / "data", orders__csv=orders, people__jsonl='{"id": 1, "tags": ["x"]}\n')
    fill(folder, cities__tsv="id\tname\n1\tBern\n", deep__json='[{"a": {"b": 1}}]', README__md="# hello")
    fill(folder, orders__json='[{"id": 7}]', ORDERS__tsv="id\n8\n", **{"orders csv__csv": "id\n9\n"})
    (folder / "packed.csv.gz").write_bytes(gzip.compress(b"n\n1\n2\n"))
    pq.write_table(pa.table({"region": ["north", "south"]}), folder / "Sales 2024.parquet")
    pq.write_table(pa.table({"x": [1]}), folder / "2023.parquet")
    catalog = await catalog_of(folder)
    assert (catalog.name, catalog.dialect, catalog.left_out) == ("data", "duckdb", ())
    counts = {item.name: item.row_count for item in catalog.tables if "orders" not in item.name.lower()}
    assert counts == {"people": 1, "cities": 1, "deep": 1, "packed": 2, "Sales_2024": 2, "t_2023": 1}
    found = {item.description: item for item in catalog.tables}
    assert len({item.name.casefold() for item in catalog.tables}) == len(found) == 10
    assert found["orders.json"].name == "orders_json"
    assert found["orders.csv"].kind == "table"
    assert [column.type for column in found["orders.csv"].columns] == ["BIGINT", "DOUBLE", "DATE"]
    for shown, value in (("orders.csv", 1), ("orders.json", 7), ("ORDERS.tsv", 8), ("orders csv.csv", 9)):
        assert (await answer(folder, f'SELECT id FROM "{found[shown].name}"'))[0] == (value,)


@pytest.mark.heavy
async def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    folder = fill(tmp_path / "data", good__csv="a,b\n1,2\n", empty__csv="", broken__parquet="PAR1xx")
    fill(folder, broken__json='{"a": [1,', book__xlsx="PK", ragged__csv="a,b\n1,2\n3\n4,5,6\n" * 50)
    fill(folder / "inner", more__csv="a\n1\n")
    outside = fill(tmp_path / "outside", secret__csv="s\n42\n")
    (folder / "link.csv").symlink_to(outside / "secret.csv")
    (folder / "nowhere.csv").symlink_to(folder / "gone.csv")
    catalog = await catalog_of(folder)
    assert {item.name for item in catalog.tables} == {"good", "ragged"}
    for words in (
        *("empty.csv is left out: it is empty", "broken.json is left out: Malformed JSON", "nowhere.csv"),
        *("broken.parquet is left out: File 'broken.parquet' too small", "The folder inner is left out"),
        *("ragged.csv: its lines differ in number of fields (most have 2)", "book.xlsx is left out"),
        "link.csv is left out: it is a link out of the folder",
    ):
        assert any(words in sentence for sentence in catalog.left_out), words
    assert set(catalog.left_out) <= set(catalog.notes)
    assert all(len(sentence) < 250 and "\n" not in sentence for sentence in catalog.left_out)


NOTHING = {
    "book.xls": (b"PK\3\4", "workbook.*[.]xlsx"),
    "book.csv": (b"PK\3\4", "book.csv is left out: it is a ZIP archive"),
    "wide.csv": ("n,city\n1,Bern\n".encode("utf-16-le"), "wide.csv is left out: it holds NUL"),
    "quotes.csv": (
        b"T\na,b\n1,2\n1,2\n1,2,3\n",
        "is left out: .*--db '[^']*/quotes.csv[?]skip=LINES'",
    ),
    "folder/notes.md": (b"# hello", "holds no data file"),
    "many/shop.sqlite": (
        b"SQLite format 3\0",
        r"no data file(?s:.)*Name a database file itself.*shop\.sqlite",
    ),
    "lake/_delta_log/0.json": (b"{}", "Delta table"),
    "orders.parquet/part-0.parquet": (b"PAR1", "folder of parts, which is not read as one table"),
    "resource/DDL.csv": (b"a,b\n", "schema:///"),
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", NOTHING)
async def test_nothing_to_ask_is_said(tmp_path: Path, name: str) -> None:
    content, words = NOTHING[name]
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatabaseUnavailable, match=words):
        await connect(str(tmp_path / Path(name).parts[0])).open()
    assert children() == []


CITIES = "2 id BIGINT, city VARCHAR, amount DOUBLE"
FORMS = {
    "bom.csv": ("\ufeffReport\n\nid;city;amount\n1;Bern;2.5\n2;Basel;3\n".encode(), CITIES, 3),
    "crlf.csv": (b"T\r\n\r\nby Ann,,\r\nid,city,amount\r\n1,Bern,2.5\r\n2,Basel,3\r\n", CITIES, 4),
    "latin.csv": ("März;;\nid;city;amount\n1;Bern;2.5\n2;Basel;3\n".encode("latin-1"), CITIES, 2),
    "packed.csv.gz": (gzip.compress(b"T,,\nid,city,amount\n1,Bern,2.5\n2,Basel,3\n"), CITIES, 2),
    "padded.csv": (b"Report generated 2024-05-01,,\nid,city,amount\n1,Bern,2.5\n2,Basel,3\n", CITIES, 2),
    "quoted.csv": (b'"Report\nof May",,\nid,city,amount\n1,Bern,2.5\n2,"Ba\nsel",3\n', CITIES, 2),
    "title.csv": (b"Report generated 2024-05-01\nid,city,amount\n1,Bern,2.5\n2,Basel,3\n", CITIES, 2),
    "wide.csv": ("Report\n\nid\tcity\tamount\n1\tBern\t2.5\n2\tBasel\t3\n".encode("utf-16"), CITIES, 3),
    "blank.csv": (b"\n\nid,city\n1,Bern\n", "1 id BIGINT, city VARCHAR", ""),
    "cr.csv": (b"id,city\r1,a\r", "1 id BIGINT, city VARCHAR", ""),
    "none.csv": (b"id,city\n", "0 id VARCHAR, city VARCHAR", ""),
    "twice.csv": (b"id,name,name\n1,a,b\n", "1 id BIGINT, name VARCHAR, name_1 VARCHAR", ""),
    "year.csv": (b"region,2021,2022\nN,1,2\n", "1 region VARCHAR, 2021 BIGINT, 2022 BIGINT", ""),
    "bare.csv": (b"1,Bern\n2,Basel\n", "2 column0 BIGINT, column1 VARCHAR", "has no header"),
    "texts.csv": (b"Al,Ulm\nEva,Rom\nTom,Ulm\n", "3 column0 VARCHAR, column1 VARCHAR", "has no header"),
    "ends.csv": (b"id,v\r\n1,a\n2,b\r\n", "2 id BIGINT, v VARCHAR", "its lines differ"),
    "foot.csv": (b'id,v\n1,"a\nb"\nTotal\n', "2 id VARCHAR, v VARCHAR", "its lines differ"),
    "long.csv": (b"id,v\n2,3\n3,4,5\n", "2 id BIGINT, v BIGINT, column2 BIGINT", "its lines differ"),
}
"""Files with their number of rows, their columns, and the header's line below a title or what is told."""


async def test_text_files_of_many_forms_are_read_and_what_is_unusual_is_said(tmp_path: Path) -> None:
    for name, (content, _, _) in FORMS.items():
        (tmp_path / name).write_bytes(content)
    async with connect(str(tmp_path)) as connector:
        catalog = await connector.catalog()
        for name, (_, form, said) in FORMS.items():
            found = table(catalog, name.partition(".")[0])
            columns = ", ".join(f"{column.name} {column.type}" for column in found.columns)
            assert f"{found.row_count} {columns}" == form, name
            told = [sentence for sentence in catalog.left_out if sentence.startswith(name)]
            assert len(told) == bool(said), (name, told)
            words = f": its header is line {said}, below " if isinstance(said, int) else said
            assert words in "".join(told), (name, told)
            assert not isinstance(said, int) or told[0].endswith(f"--db '{tmp_path}?skip={name}:LINES'")
        assert rows(await connector.run("FROM foot", Limits())) == [("1", "a\nb"), ("Total", None)]
        assert rows(await connector.run("FROM long", Limits())) == [(2, 3, None), (3, 4, 5)]
        assert rows(await connector.run("FROM ends", Limits())) == [(1, "a"), (2, "b")]


@pytest.mark.heavy
async def test_the_user_says_where_the_header_is(tmp_path: Path) -> None:
    titled = "x,y\nid,v\n1,2\n"
    folder = fill(tmp_path / "data", a__csv=titled, b__csv=titled, c__csv="T\nn,m\n1,2\n")
    catalog = await catalog_of(f"{folder}?skip=a.csv:1&skip=b.csv:no-header")
    names = {item.name: [column.name for column in item.columns] for item in catalog.tables}
    assert names == {"a": ["id", "v"], "b": ["column0", "column1"], "c": ["n", "m"]}
    assert [said.partition(":")[0] for said in catalog.left_out] == ["c.csv"]
    assert await answer(f"{folder / 'a.csv'}?skip=1", "SELECT v FROM a") == [(2,)]
    fill(folder, **{"q?skip=1__csv": "n\n1\n"})  # a name, and no option
    assert await answer(folder / "q?skip=1.csv", "SELECT n FROM q_skip_1") == [(1,)]
    with pytest.raises(ConfigurationError, match=r"skip=a\.csv is no number"):
        connect(f"{folder}?skip=a.csv")


@pytest.mark.heavy
async def test_a_fault_is_said_once_until_its_file_changes(tmp_path: Path) -> None:
    folder = fill(tmp_path / "data", foot__csv=FOOTED, one__json="{", two__json="{")
    cache, first = CatalogCache(tmp_path / "home", 0.0), "one.json is left out"
    others = ["two.json is left out", "foot.csv"]

    async def said(name: str = "data") -> list[str]:
        async with connect(str(folder)) as connector:
            found = (await connector.catalog()).left_out
            return [each.partition(":")[0] for each in cache.new_warnings(name, connector, found)]

    assert sorted(await said()) == sorted([first, *others])
    assert await said() == []
    assert sorted(await said("another")) == sorted([first, *others])
    (folder / "one.json").write_text("{{")
    assert await said() == [first]
    (folder / "one.json").write_text("[]")
    assert await said() == []
    (folder / "one.json").write_text("{{")
    assert await said() == [first], "it was whole for a while"
    (next((tmp_path / "home").glob("*.said"))).write_bytes(b"\xff")
    assert isinstance(await said(), list)


@pytest.mark.heavy
async def test_types_hold_for_rows_far_beyond_a_sample(tmp_path: Path) -> None:
    lines = "".join(f"{n},{n % 5}\n" for n in range(60_000))
    fill(tmp_path, late__csv=f"id,grade\n{lines}60000,n/a\n")
    fill(tmp_path, quoted__csv=f'id,name\n{lines}60000,"a, b"\n')
    assert await answer(tmp_path, "SELECT grade FROM late WHERE id = 60000") == [("n/a",)]
    assert await answer(tmp_path, "SELECT name FROM quoted WHERE id = 60000") == [("a, b",)]


async def test_a_file_too_large_to_look_through_is_sampled_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(f'{{"n": {n}}}\n' for n in range(100))
    fill(tmp_path, many__jsonl=lines)
    monkeypatch.setattr("quorum.tools.databases.duckdb.files.WHOLE_JSON", 10)
    catalog = await catalog_of(tmp_path)
    assert any("types of many.jsonl are those of its first" in note for note in catalog.notes)
    assert catalog.left_out == ()


async def test_no_other_file_is_read_and_nothing_written(tmp_path: Path) -> None:
    """The session alone, without the guard above it."""
    data = fill(tmp_path / "data", orders__csv="id\n1\n", other__csv="o\n1\n")
    (data / "link.csv").symlink_to(data / "other.csv")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    async with connect(str(data / "orders.csv")) as connector:
        for (attack,) in (*cases("databases/cases/files_refused", 1), ("INSERT INTO orders VALUES (1)",)):
            failed = error(await connector.run(attack.replace("{data}", str(data)), Limits()))
            assert failed.kind in (ErrorKind.PERMISSION, ErrorKind.OTHER), (attack, failed)
        assert rows(await connector.run("SELECT * FROM orders", Limits())) == [(1,)]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


async def test_what_was_made_for_it_goes_with_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "data", a__csv="a\n1\n")
    place = tmp_path / "made"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    connector = connect(str(tmp_path / "data"))
    for _ in range(2):  # it may be opened again
        async with connector:
            assert len(list(place.iterdir())) == 1
        assert list(place.iterdir()) == []


@pytest.mark.parametrize(("what", "text", "place", "title"), cases("databases/cases/headers", 4))
def test_where_a_header_is(what: str, text: str, place: str, title: str) -> None:
    lines = split(text, whole=True)
    expected = Header(int(place.split()[-1]), named="none" not in place, title=title)
    assert find(lines.rows, lines.width) == expected, what


@pytest.mark.parametrize(("what", "text", "cut", "said"), cases("databases/cases/footers", 4))
def test_where_a_footer_is(what: str, text: str, cut: str, said: str) -> None:
    lines = split(text, whole=True)
    assert footer(lines.rows[1:], lines.width) == (int(cut), said), what


async def test_a_text_below_the_rows_is_left_out_and_said(tmp_path: Path) -> None:
    rows_of = "".join(f"{i},Zürich,1\n" for i in range(4, 4000))
    text = FOOTED.replace("\n\n", f"\n{rows_of}\n")
    fill(tmp_path, a__csv=text.encode("latin-1"), b__csv=f"Report,,\n{text}".encode("utf-16"))
    catalog = await catalog_of(tmp_path)
    a, b = catalog.tables
    assert (a.row_count, a.columns[0].type) == (3999, "BIGINT")
    assert b.row_count == 4000  # the end of UTF-16 is not looked at
    fact = "a.csv: the text below its rows, 'End of export', is left out."
    assert catalog.left_out[0] == f"{fact} If that is wrong: --db '{tmp_path}?skip=a.csv:LINES'"
    assert (fact in render(catalog).text, str(tmp_path) in render(catalog).text) == (True, False)
    kept = f"{tmp_path}?skip=a.csv:0"
    assert await answer(kept, "SELECT id FROM a WHERE city IS NULL") == [("End of export",)]


def test_blank_lines_have_no_header_and_a_text_that_is_cut_loses_its_last_line() -> None:
    assert find(split("\n\n,,\n", whole=True).rows, 3) is None
    assert find([], 0) is None
    assert split('id;name\n1;a\n2;"b', whole=False).rows == [["id", "name"], ["1", "a"]]


def workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    """A workbook; a cell is a value, or that and its form. A sheet whose name begins with ``Hidden`` is."""
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra `xlsx` is not installed")
    pytest.importorskip("python_calamine", reason="the extra `xlsx` is not installed")
    path.parent.mkdir(parents=True, exist_ok=True)
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        for name, lines in sheets.items():
            sheet = book.add_worksheet(name)
            if name.startswith("Hidden"):
                sheet.hide()
            for number, line in enumerate(lines):
                for column, cell in enumerate(line):
                    value, *forms = cell if isinstance(cell, tuple) else (cell,)
                    styles = (book.add_format({"num_format": form}) for form in forms)
                    sheet.write(number, column, value, *styles)
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
        f"If that is wrong: --db '{path}?skip=May:LINES'"
    )
    assert await answer(path, "SELECT day, price, mixed FROM sales") == [
        (date(2024, 5, 1), 1.5, "1"),
        (date(2024, 5, 2), 2.0, "x"),
        (None, 0.0, "2.5"),  # the value that was stored with the formula
    ]


async def test_times_and_moments(tmp_path: Path) -> None:
    moment = datetime(2024, 5, 1, 8)
    cells = [(time(12, 30), "hh:mm"), (moment, "yyyy-mm-dd hh:mm"), (1.5, "[h]:mm")]
    path = workbook(tmp_path / "a.xlsx", A=[["t", "m", "d"], cells])
    assert await answer(path, "FROM a") == [(time(12, 30), moment, "36:00:00")]


async def test_a_text_below_a_sheets_rows_is_left_out(tmp_path: Path) -> None:
    lines = [["id", "city", "n"], *([i, "Bern", 2] for i in (1, 2, 3)), [], ["Source: Ann", "", ""]]
    path = workbook(tmp_path / "a.xlsx", One=lines)
    assert await answer(path, "SELECT sum(id) FROM a") == [(6,)]
    assert "the text below its rows, 'Source: Ann'" in (await catalog_of(path)).left_out[0]
    assert len(await answer(f"{path}?skip=0", "FROM a")) == 4


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
    named = await catalog_of(f"{many}?skip=Orders:no-header&skip=Hidden:1")
    columns = {item.name: [column.name for column in item.columns] for item in named.tables}
    assert columns == {"Orders": ["column0", "column1"], "Hidden": ["1", "Bern"]}
    assert await answer(folder, "SELECT city FROM shop_1_Orders WHERE id = 2") == [("Basel",)]


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
