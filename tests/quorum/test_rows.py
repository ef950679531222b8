"""All kept rows of an answer, as CSV."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quorum.commands.ask import print_answer, write_csv
from quorum.graph.answer import Answer
from quorum.knowledge.errors import QuorumError
from quorum.tools.results.files import write_result


def written(answer: Answer) -> list[list[str]]:
    out = io.StringIO()
    write_csv(answer, out)
    return list(csv.reader(io.StringIO(out.getvalue())))


def answered(answer: dict[str, Any], folder: Path, table: pa.Table) -> Answer:
    path = write_result(table, folder)
    return Answer(**answer | {"columns": table.column_names, "result_file": str(path)})


def test_every_row_of_every_type_is_written(answer: dict[str, Any], tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": [1, None],
            "text": ['comma, "quote"\nline', ""],
            "money": [Decimal("1.50"), None],
            "nested": [[{"a": 1}], None],
            "flag": [True, False],
        }
    )
    rows = written(answered(answer, tmp_path, table))
    assert rows[0] == table.column_names
    assert rows[1][1] == 'comma, "quote"\nline'
    assert rows[1][3] == '[{"a": 1}]'
    assert rows[2] == ["", "", "", "", "false"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_values_are_exact_but_for_control_characters_on_a_terminal(
    answer: dict[str, Any], tmp_path: Path
) -> None:
    table = pa.table({"a\x1b[2J": ["\x1b]0;owned\x07\u202e", "two\nlines"]})
    made, terminal = answered(answer, tmp_path / "r.parquet", table), Terminal()
    assert written(made) == [["a\x1b[2J"], ["\x1b]0;owned\x07\u202e"], ["two\nlines"]]
    write_csv(made, terminal)
    assert not {"\x1b", "\x07", "\u202e"} & set(terminal.getvalue())
    assert "two\nlines" in terminal.getvalue()


@pytest.mark.parametrize(
    ("value", "formula"),
    [
        ("=1+1", True),
        ("@SUM(1)", True),
        ("+cmd|x", True),
        ("-2+3", True),
        ("-5.2", False),
        ("a=1", False),
        (-5, False),
    ],
)
def test_texts_that_a_spreadsheet_takes_for_formulas_are_exact_and_noticed(
    answer: dict[str, Any], tmp_path: Path, value: Any, formula: bool
) -> None:
    made, out = answered(answer, tmp_path / "r.parquet", pa.table({"a": [value]})), io.StringIO()
    assert write_csv(made, out) is formula
    assert out.getvalue() == f"a\n{value}\n"


def test_json_holds_no_character_that_a_terminal_obeys(
    answer: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    made = Answer(**answer | {"sql": "SELECT '\x1b\x9b\u202eé'"})
    print_answer(made, as_json=True)
    text = capsys.readouterr().out
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)
    assert Answer.model_validate_json(text) == made


def test_without_a_file_the_preview_is_all_there_is(answer: dict[str, Any]) -> None:
    assert len(written(Answer(**answer))) == 3


def test_without_columns_nothing_is_written(answer: dict[str, Any]) -> None:
    assert written(Answer(**answer | {"columns": [], "rows": []})) == []


@pytest.mark.parametrize("content", [None, b"no parquet"])
def test_a_lost_or_broken_file_is_a_clear_error(
    answer: dict[str, Any], tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "r.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(QuorumError, match=r"cannot be read|is damaged"):
        written(Answer(**answer | {"result_file": str(path)}))
