"""An answer's rows in other hands: Arrow, pandas, standard output and files, complete and exact."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorum.commands.ask import print_answer, write_csv
from quorum.files import ROWS, NoChart, check_file, write_chart, write_rows
from quorum.graph.answer import Answer
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.results.files import write_result

BIG = 2**53 + 1
TABLE = pa.table(
    {
        "n": pa.array([BIG, None, 3], pa.int64()),
        "money": pa.array([Decimal("257624.10"), None, Decimal("0.05")], pa.decimal128(12, 2)),
        "ratio": [257624.10000000003, 0.1, None],
        "text": ["=1+1", 'comma, "quote"\nline', ""],
        "day": pa.array([dt.date(2024, 2, 29), None, dt.date(1815, 12, 10)]),
        "flag": [True, None, False],
        "nested": [[{"a": 1}], None, []],
    }
)
Answered = Callable[[pa.Table], Answer]


@pytest.fixture
def answered(answer: dict[str, Any], workplace: Path) -> Answered:
    """Makes an answer of a table, which shows no row."""

    def make(table: pa.Table) -> Answer:
        kept = {"result_file": str(write_result(table, workplace)), "row_count": table.num_rows}
        return Answer(**answer | kept | {"columns": table.column_names, "rows": []})

    return make


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_data_frame_keeps_whole_numbers_and_decimals_beside_nulls(
    answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    pd = pytest.importorskip("pandas", reason="the extra quorum-sql[evals] is not installed")
    frame = answered(TABLE).to_pandas()
    assert frame["n"].tolist() == [BIG, pd.NA, 3]
    assert frame["money"].tolist() == [Decimal("257624.10"), pd.NA, Decimal("0.05")]
    twice = pa.table([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    assert answered(twice).to_pandas().iloc[0].tolist() == [1, "x"]
    empty = Answer(**answered(TABLE).model_dump() | {"result_file": "", "columns": []})
    assert empty.to_pandas().shape == (0, 0)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigurationError, match=r"needs the package pandas.*pip install 'pandas<"):
        answered(TABLE).to_pandas()


def test_all_rows_are_exact_in_arrow_csv_json_and_parquet(answered: Answered, workplace: Path) -> None:
    answer, out = answered(TABLE), io.StringIO()
    assert answer.to_arrow().equals(TABLE)
    assert answered(pa.table({"n": range(12_000)})).to_arrow().num_rows == 12_000
    for suffix in (".CSV", ".json", ".parquet"):
        check_file(path := workplace / f"new/rows{suffix}", ROWS)
        assert write_rows(answer, path) == "3 rows"
    assert pq.read_table(workplace / "new/rows.parquet").equals(TABLE)
    text = (workplace / "new/rows.CSV").read_text(encoding="utf-8")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == TABLE.column_names
    assert rows[1] == [str(BIG), "257624.1", "257624.10000000003", "=1+1", "2024-02-29", "true", '[{"a": 1}]']
    assert rows[2] == ["", "", "0.1", 'comma, "quote"\nline', "", "", ""]
    assert '3,0.05,,"",1815-12-10' in text, "NULL and empty text differ"
    write_csv(answer, out)
    assert out.getvalue() == text
    found = json.loads((workplace / "new/rows.json").read_text(encoding="utf-8"))
    assert (found["status"], found["columns"]) == ("answered", TABLE.column_names)
    assert [row[0] for row in found["rows"]] == [BIG, None, 3]
    assert found["rows"][0][2] == 257624.10000000003
    assert not list((workplace / "new").glob("*.part"))


def test_values_are_exact_but_for_control_characters_on_a_terminal(
    answered: Answered, capsys: pytest.CaptureFixture[str]
) -> None:
    obeyed = {"\x1b", "\x07", "\x9b", "\u202e"}
    made = answered(pa.table({"a\x1b[2J": ["\x1b]0;owned\x07\u202e", "two\nlines"]}))
    out, terminal = io.StringIO(), Terminal()
    write_csv(made, out)
    assert out.getvalue() == 'a\x1b[2J\n\x1b]0;owned\x07\u202e\n"two\nlines"\n'
    write_csv(made, terminal)
    assert not obeyed & set(terminal.getvalue())
    assert "two\nlines" in terminal.getvalue()
    made.sql = "SELECT '\x1b\x9b\u202eé'"
    print_answer(made, as_json=True)
    text = capsys.readouterr().out
    assert not obeyed & set(text)
    assert Answer.model_validate_json(text) == made


@pytest.mark.heavy
def test_a_chart_is_drawn_or_declared(answered: Answered, workplace: Path) -> None:
    pytest.importorskip("vl_convert", reason="the extra quorum-sql[plots] is not installed")
    answer = answered(pa.table({"city": [f"city {n}" for n in range(300)], "n": range(300)}))
    for suffix, start in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF"), (".json", b"{")):
        path = workplace / f"chart{suffix}"
        assert write_chart(answer, path) == "the first 24 of 300 rows"
        assert path.read_bytes().startswith(start)
    with pytest.raises(NoChart, match="These rows have no chart: a chart needs two rows"):
        write_chart(answered(pa.table({"n": [1]})), workplace / "chart.json")
