"""Recorded candidates: what the loader finds, and what it makes of the results."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from quorum.evals.recorded.candidates import load_candidates
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.results.compare import fingerprint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    question = tmp_path / "runs" / "model-x" / "q1"
    question.mkdir(parents=True)
    (tmp_path / "runs" / "model-x" / "q2").mkdir()
    for name, text in {
        "0.sql": "SELECT 1 AS n\n",
        "0.csv": "n\n1\n",
        "2.sql": "SELECT broken",
        "10.csv": "n,code,when,ok\n1.0,NA,2020-01-01,True\n,x,,\n",
        "final.sql": "SELECT 1",
        "final.csv": "m\n1.0\n",
        "3.csv": "",
        "03.csv": "n\n1\n",
        "log.txt": "noise",
    }.items():
        (question / name).write_text(text, encoding="utf-8")
    return tmp_path / "runs"


def test_numbers_need_not_be_contiguous(folder: Path) -> None:
    question = load_candidates(folder).models["model-x"]["q1"]
    assert [candidate.number for candidate in question.candidates] == [0, 2, 3, 10]
    assert [candidate.sql for candidate in question.candidates] == ["SELECT 1 AS n", "SELECT broken", "", ""]
    assert question.final is not None
    assert (question.final.number, question.final.sql) == (None, "SELECT 1")


def test_a_failed_candidate_has_no_table(folder: Path) -> None:
    zero, two, three, _ = load_candidates(folder).models["model-x"]["q1"].candidates
    assert zero.table is not None
    assert two.table is None  # no file
    assert three.table is None  # an empty one
    assert zero.table is zero.table  # read once


def test_cells_keep_what_the_file_says(folder: Path) -> None:
    *_, candidate = load_candidates(folder).models["model-x"]["q1"].candidates
    assert candidate.table is not None
    assert candidate.table.to_pylist() == [
        {"n": 1.0, "code": "NA", "when": "2020-01-01", "ok": True},
        {"n": None, "code": "x", "when": None, "ok": None},
    ]
    assert [str(kind) for kind in candidate.table.schema.types] == ["double", "string", "string", "bool"]


def test_results_that_say_the_same_have_one_fingerprint(folder: Path) -> None:
    question = load_candidates(folder).models["model-x"]["q1"]
    assert question.final is not None
    assert fingerprint(question.candidates[0].table) == fingerprint(question.final.table)
    assert fingerprint(question.candidates[0].table) == fingerprint(pa.table({"n": [1]}))


def test_a_question_may_hold_no_candidate(folder: Path) -> None:
    question = load_candidates(folder).models["model-x"]["q2"]
    assert (question.candidates, question.final) == ((), None)
    assert [one.question for one in load_candidates(folder)] == ["q1", "q2"]


def test_folders_of_another_shape_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no folder"):
        load_candidates(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match=r"Give its parent, .*runs\."):
        load_candidates(folder / "model-x")
    with pytest.raises(ConfigurationError, match="holds no recorded candidates"):
        load_candidates(folder / "model-x" / "q2")


@pytest.mark.heavy
def test_the_shared_recordings(shared: Path) -> None:
    recorded = load_candidates(shared / "data" / "candidates")
    assert {model: len(questions) for model, questions in recorded.models.items()} == {"gpt-4o": 66, "o3": 67}
    assert len({question.question for question in recorded}) == 67
    assert sum(len(question.candidates) for question in recorded) == 964
    finals = [question for question in recorded if question.final is not None]
    assert len(finals) == 132
    for question in finals:  # the pipeline chose one of its candidates
        assert question.final is not None
        chosen = fingerprint(question.final.table)
        assert chosen in {
            fingerprint(candidate.table) for candidate in question.candidates if candidate.table
        }
