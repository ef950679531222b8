"""Predictions in a folder, and in BIRD's one file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorum.evals.submissions import BIRD_MARK, Found, bird_file, find_predictions, read_bird
from quorum.knowledge.errors import ConfigurationError
from tests.evals.small_suite import small_suite


@pytest.fixture
def pred(tmp_path: Path) -> Path:
    folder = tmp_path / "pred"
    (folder / "q3.csv").mkdir(parents=True)  # a folder is no prediction
    for name in ("q1.csv", "q2.csv", "q9.csv", "notes.txt", ".hidden.csv"):
        (folder / name).write_text("n\n1\n")
    (folder / "q1.sql").write_text("\ufeffSELECT 1\n")
    (folder / "q8.sql").write_text("SELECT 8")
    return folder


def test_files_belong_to_questions_by_their_names(pred: Path) -> None:
    found = find_predictions(pred, ["q1", "q2", "q3"])
    assert found.found == {"q1": Found("", pred / "q1.csv"), "q2": Found("", pred / "q2.csv")}
    assert found.unknown == ("q9.csv",)
    assert found.unread == ("notes.txt", "q1.sql", "q8.sql")


def test_queries_count_where_both_are_there(pred: Path) -> None:
    found = find_predictions(pred, ["q1", "q2", "q3"], sql=True)
    assert found.found["q1"] == Found("SELECT 1", pred / "q1.csv")
    assert found.unknown == ("q8.sql", "q9.csv")
    assert found.remarks == ("1 questions have both a query and a result: the query counts.",)


def test_what_cannot_be_read_is_named(pred: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no folder .*nowhere"):
        find_predictions(tmp_path / "nowhere", [])
    (pred / "q1.sql").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match=r"q1\.sql cannot be read"):
        find_predictions(pred, ["q1"], sql=True)


def test_birds_entries_go_by_the_questions_place(tmp_path: Path) -> None:
    questions = small_suite(tmp_path).questions
    file = tmp_path / "predict_dev.json"
    entries = {
        "0": f"SELECT 1{BIRD_MARK}pets",
        "1": "SELECT 2",  # BIRD's program takes an entry without a database for a query
        "2": 0,  # and what is no text for none
        "3": f"SELECT 3{BIRD_MARK}pets",
        "x": "SELECT 4",
    }
    file.write_text(json.dumps(entries))
    found = read_bird(file, questions)
    assert found.found == {"q1": Found("SELECT 1"), "q2": Found("SELECT 2"), "q3": Found()}
    assert found.unknown == ("3", "x")
    assert found.remarks == ()
    file.write_text(json.dumps({"1": f"SELECT 1{BIRD_MARK}shops"}))
    assert "1 (shops, not pets)" in read_bird(file, questions).remarks[0]


def test_birds_file_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "pred"
    folder.mkdir()
    assert bird_file(folder) is None
    (folder / "predict_dev.json").write_text("{}")
    (folder / ".quorum-export").write_text("{}")
    assert bird_file(folder) == folder / "predict_dev.json" == bird_file(folder / "predict_dev.json")
    (folder / "other.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="several JSON files"):
        bird_file(folder)
    (folder / "0000.sql").write_text("SELECT 1")
    assert bird_file(folder) is None  # a folder of queries


@pytest.mark.parametrize("text", ["[]", "{", '"SELECT 1"'])
def test_a_file_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"p\.json is no JSON"):
        read_bird(tmp_path / "p.json", [])
