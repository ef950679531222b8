"""An answer's rows in other hands: Arrow, pandas, and files of every format, complete and exact."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorum.files import CHARTS, ROWS, SHEET_COLUMNS, SHEET_ROWS, NoChart, check_file, write_file
from quorum.graph.answer import Answer
from quorum.knowledge.errors import ConfigurationError, QuorumError
from quorum.tools.results.files import write_result

BIG = 2**53 + 1
TABLE = pa.table(
    {
        "n": pa.array([BIG, None, 3], pa.int64()),
        "money": pa.array([Decimal("257624.10"), None, Decimal("0.05")], pa.decimal128(12, 2)),
        "ratio": [257624.10000000003, 0.1, None],
        "text": ["=1+1", 'comma, "quote"\nline', ""],
        "day": pa.array([dt.date(2024, 2, 29), None, dt.date(1815, 12, 10)]),
        "at": pa.array([dt.datetime(2024, 2, 29, 12, 30), None, dt.datetime(2024, 1, 1, 0, 0, 0, 1)]),
        "flag": [True, None, False],
        "nested": [[{"a": 1}], None, []],
    }
)
Answered = Callable[[pa.Table], Answer]


@pytest.fixture
def answered(answer: dict[str, Any], workplace: Path) -> Answered:
    """Makes an answer of a table, which shows the first row."""

    def make(table: pa.Table) -> Answer:
        kept = {"result_file": str(write_result(table, workplace)), "row_count": table.num_rows}
        return Answer(**answer | kept | {"columns": table.column_names, "rows": []})

    return make


def test_all_rows_come_with_their_exact_types(answered: Answered) -> None:
    assert answered(TABLE).to_arrow().equals(TABLE)
    many = pa.table({"n": range(12_000)})
    assert answered(many).to_arrow().num_rows == 12_000


def test_a_data_frame_keeps_whole_numbers_and_decimals_beside_nulls(answered: Answered) -> None:
    pd = pytest.importorskip("pandas", reason="the extra quorum-sql[evals] is not installed")
    frame = answered(TABLE).to_pandas()
    assert frame.shape == (3, 8)
    assert frame["n"][0] == BIG
    assert frame["n"][1] is pd.NA
    assert frame["money"].tolist() == [Decimal("257624.10"), pd.NA, Decimal("0.05")]
    assert frame["day"][2] == dt.date(1815, 12, 10)
    twice = pa.table([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    assert answered(twice).to_pandas().iloc[0].tolist() == [1, "x"]
    assert Answer(**answered(TABLE).model_dump() | {"result_file": "", "columns": []}).to_pandas().shape == (
        0,
        0,
    )


def test_pandas_is_named_where_it_is_missing(answered: Answered, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigurationError, match=r"needs the package pandas.*pip install 'pandas<"):
        answered(TABLE).to_pandas()


def test_a_result_that_is_gone_is_a_clear_error(answered: Answered) -> None:
    answer = answered(TABLE)
    Path(answer.result_file).unlink()
    with pytest.raises(QuorumError, match="cannot be read"):
        answer.to_arrow()


def test_csv_json_and_parquet_hold_every_digit(answered: Answered, workplace: Path) -> None:
    answer = answered(TABLE)
    for suffix in (".csv", ".json", ".parquet"):
        assert write_file(answer, workplace / f"new/rows{suffix}", ROWS) == "3 rows"
    assert pq.read_table(workplace / "new/rows.parquet").equals(TABLE)
    rows = list(csv.reader(io.StringIO((workplace / "new/rows.csv").read_text(encoding="utf-8"))))
    assert rows[0] == TABLE.column_names
    assert rows[1][:4] == [str(BIG), "257624.1", "257624.10000000003", "=1+1"]
    assert rows[2][3] == 'comma, "quote"\nline'
    found = json.loads((workplace / "new/rows.json").read_text(encoding="utf-8"))
    assert (found["status"], found["columns"]) == ("answered", TABLE.column_names)
    assert [row[0] for row in found["rows"]] == [BIG, None, 3]
    assert found["rows"][0][2] == 257624.10000000003
    assert [path.name for path in (workplace / "new").iterdir() if path.suffix == ".part"] == []


def sheet(path: Path, number: int) -> list[dict[str, tuple[str, str]]]:
    """The cells of a sheet, row by row: by column letter their type and text."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as book:
        shared = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
        texts = ["".join(part.text or "" for part in item.iter(f"{space}t")) for item in shared]
        root = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{number}.xml"))
    rows = []
    for row in root.iter(f"{space}row"):
        cells = {}
        for cell in row:
            kind, value = cell.get("t", "n"), cell.findtext(f"{space}v") or ""
            assert cell.find(f"{space}f") is None  # a formula
            letter = re.sub(r"\d", "", cell.get("r", ""))
            cells[letter] = (kind, texts[int(value)] if kind == "s" else value)
        rows.append(cells)
    return rows


def test_a_workbook_holds_values_never_formulas(answered: Answered, workplace: Path) -> None:
    pytest.importorskip("xlsxwriter", reason="the extra quorum-sql[xlsx] is not installed")
    write_file(answered(TABLE), workplace / "rows.xlsx", ROWS)
    head, first, second, third = sheet(workplace / "rows.xlsx", 1)
    assert [text for _, text in head.values()] == TABLE.column_names
    assert first["A"] == ("s", str(BIG))  # as a number it would lose a digit
    assert first["B"] == ("n", "257624.1")
    assert float(first["C"][1]) == 257624.1
    assert first["D"] == ("s", "=1+1")
    assert first["E"] == ("n", "45351")  # a date
    assert first["F"][1].startswith("45351.5208")
    assert first["G"] == ("b", "1")
    assert first["H"] == ("s", '[{"a": 1}]')
    assert set(second) == {"C", "D"}  # NULLs are empty
    assert third["E"] == ("s", "1815-12-10")  # before a workbook's time
    assert third["F"] == ("s", "2024-01-01 00:00:00.000001")
    about = {
        name: text for row in sheet(workplace / "rows.xlsx", 2) for name, text in [(row["A"][1], row["B"][1])]
    }
    assert about["Question"] == "What is the average rating?"
    assert about["Confidence"].startswith("may be right (67 %)")


def test_what_a_sheet_cannot_hold_is_said(
    answered: Answered, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xlsxwriter", reason="the extra quorum-sql[xlsx] is not installed")
    with pytest.raises(QuorumError, match=r"row 1 has 40,000 characters; a cell holds 32,767.*parquet"):
        write_file(answered(pa.table({"t": ["x" * 40_000]})), workplace / "rows.xlsx", ROWS)
    assert (SHEET_ROWS, SHEET_COLUMNS) == (2**20 - 1, 2**14)  # of the format
    monkeypatch.setattr("quorum.files.SHEET_COLUMNS", 16)  # a file of so many columns takes seconds
    wide = pa.table([pa.array([1])] * 17, names=["c"] * 17)
    with pytest.raises(QuorumError, match=r"A sheet cannot hold 1 row and 17 columns"):
        write_file(answered(wide), workplace / "rows.xlsx", ROWS)
    assert not list(workplace.glob("rows.xlsx*"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "rows.txt",
            r"rows\.txt ends in \.txt, which names no format\. Known: \.csv, \.json, \.parquet, \.xlsx\.",
        ),
        ("rows", "rows has no suffix"),
        ("folder.csv", "is a folder, not a file"),
        ("file/rows.csv", "is a file, not a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_beforehand(workplace: Path, name: str, said: str) -> None:
    (workplace / "folder.csv").mkdir()
    (workplace / "file").touch()
    with pytest.raises(ConfigurationError, match=said):
        check_file(Path(name), ROWS)


def test_suffixes_in_capitals_are_the_same(answered: Answered, workplace: Path) -> None:
    check_file(workplace / "ROWS.CSV", ROWS)
    assert write_file(answered(TABLE), workplace / "ROWS.CSV", ROWS) == "3 rows"


def test_a_missing_package_is_told_before_anything_is_asked(root: Path, workplace: Path) -> None:
    code = (
        "import sys; from importlib import util; real = util.find_spec\n"
        "util.find_spec = lambda name, *a: None if name in ('xlsxwriter', 'vl_convert') else real(name, *a)\n"
        "from quorum.cli import main; main()"
    )
    for flag, name, package in (("--out", "a.xlsx", "xlsxwriter"), ("--chart", "a.svg", "vl_convert")):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                code,
                "ask",
                "How many?",
                "--db",
                "no.db",
                "--model",
                "offline",
                flag,
                name,
            ],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(root), "PATH": ""},
            timeout=60,
            check=False,
        )
        assert done.returncode == 2
        assert f"needs the package {package}. Install it with" in done.stderr
    assert not (workplace / ".quorum").exists()


@pytest.mark.heavy
def test_a_chart_is_drawn_or_declared(answered: Answered, workplace: Path) -> None:
    pytest.importorskip("vl_convert", reason="the extra quorum-sql[plots] is not installed")
    answer = answered(pa.table({"city": [f"city {n}" for n in range(300)], "n": range(300)}))
    for suffix, start in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF"), (".json", b"{")):
        path = workplace / f"chart{suffix}"
        assert write_file(answer, path, CHARTS) == "the first 24 of 300 rows"
        assert path.read_bytes().startswith(start)


def test_rows_without_a_chart_say_why(answered: Answered, workplace: Path) -> None:
    with pytest.raises(NoChart, match="These rows have no chart: a chart needs two rows"):
        write_file(answered(pa.table({"n": [1]})), workplace / "chart.json", CHARTS)
