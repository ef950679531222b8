"""Submissions: what is written, what is left out, and that they score as the answers did."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quorum.evals.folder import EvalWriter
from quorum.evals.reports.evaluations import open_evaluation
from quorum.evals.submissions import BIRD_FILE, BIRD_MARK, NO_ANSWER, export, find_predictions, read_bird
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.results.files import write_result
from tests.evals.evaluations import asked, manifest, record
from tests.evals.shop import small_suite

Answers = dict[str, tuple[pa.Table | None, dict[str, Any]]]
"""By question the result and the values of its record."""


def evaluation(folder: Path, ids: Iterable[str], answers: Answers, shard: str = "1/1") -> Path:
    """An evaluation's folder, results kept as runs keep them."""
    with EvalWriter(folder) as writer:
        writer.begin(manifest([asked(id) for id in ids], shard=shard))
        for id, (table, values) in answers.items():
            file = f"runs/{id}/results"
            name = "" if table is None else f"{file}/{write_result(table, folder / file).name}"
            writer.add(record(id, result=name, **values))
    return folder


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """Four questions: answered, a best effort, without SQL, not asked yet."""
    answers: Answers = {
        "q2": (pa.table({"n": [2.5, None]}), {"status": "no_answer", "sql": "SELECT 2"}),
        "q1": (pa.table({"n": [1]}), {}),
        "q3": (None, {"sql": "", "status": "failed", "error": "endpoint"}),
    }
    return evaluation(tmp_path / "eval", ["q1", "q2", "q3", "q4"], answers)


def test_each_format_holds_what_its_program_reads(done: Path, tmp_path: Path) -> None:
    found = open_evaluation(done)
    exported = export(found, "spider2-csv", tmp_path / "csv")
    assert exported.written == ("q1", "q2")
    assert exported.best_efforts == ("q2",)
    assert exported.left_out == {"q3": "it has no result (endpoint)", "q4": "it has not been asked yet"}
    files = {path.name: path.read_bytes() for path in (tmp_path / "csv").iterdir()}
    assert files == {"q1.csv": b"n\n1\n", "q2.csv": b'n\n2.5\n""\n'}, "as pandas writes them"

    exported = export(found, "spider2-sql", tmp_path / "sql")
    assert (exported.written, exported.left_out["q3"]) == (("q1", "q2"), "it has no SQL (endpoint)")
    read = find_predictions(tmp_path / "sql", ["q1", "q2", "q3", "q4"], sql=True)
    assert {id: each.sql for id, each in read.found.items()} == {"q1": "SELECT 1", "q2": "SELECT 2"}
    assert (read.unknown, read.unread) == ((), ())

    assert list(export(found, "bird", tmp_path / "bird").left_out) == ["q3", "q4"]
    entries = json.loads((tmp_path / "bird" / BIRD_FILE).read_text())
    queries = ["SELECT 1", "SELECT 2", NO_ANSWER, NO_ANSWER]
    assert entries == {str(place): f"{sql}{BIRD_MARK}shop" for place, sql in enumerate(queries)}
    questions = small_suite(tmp_path).questions
    back = read_bird(tmp_path / "bird" / BIRD_FILE, questions)
    assert [back.found[question.id].sql for question in questions] == queries[:3]

    for file in done.glob("runs/q1/results/*"):
        file.unlink()
    exported = export(found, "spider2-csv", tmp_path / "lost")
    assert exported.written == ("q2",)
    assert "cannot be read" in exported.left_out["q1"]


def test_a_result_that_limits_cut_is_left_out_and_its_query_is_not(tmp_path: Path) -> None:
    """Both programs judge whole results; they run a query themselves."""
    cut = {"truncated": True, "rows": 2, "sql": "SELECT 2"}
    made: Answers = {"q1": (pa.table({"n": [1]}), {}), "q2": (pa.table({"n": [1, 2]}), cut)}
    answers = open_evaluation(evaluation(tmp_path / "eval", made, made))
    exported = export(answers, "spider2-csv", tmp_path / "csv")
    assert exported.written == ("q1",)
    assert exported.left_out == {"q2": "the run's limits cut its result after 2 rows"}
    assert not (tmp_path / "csv" / "q2.csv").exists()
    assert export(answers, "spider2-sql", tmp_path / "sql").written == ("q1", "q2")
    assert export(answers, "bird", tmp_path / "bird").written == ("q1", "q2")


def test_a_shard_that_is_missing_is_said(tmp_path: Path) -> None:
    ids = [f"q{number}" for number in range(1, 8)]
    for number in (1, 3):
        own: Answers = dict.fromkeys(ids[number - 1 :: 3], (None, {}))
        evaluation(tmp_path / "shards" / f"s{4 - number}", own, own, f"{number}/3")
    with pytest.raises(ConfigurationError, match=r"not whole: shard 2 of 3 is missing\."):
        export(open_evaluation(tmp_path / "shards"), "bird", tmp_path / "bird")


def test_a_place_that_is_taken_is_none_for_a_submission(done: Path, tmp_path: Path) -> None:
    (tmp_path / "q9.csv").write_text("mine")
    with pytest.raises(ConfigurationError, match="is not empty: what is there could count as a part"):
        export(open_evaluation(done), "bird", tmp_path)
    assert not (tmp_path / BIRD_FILE).exists()
    with pytest.raises(ConfigurationError, match=r"Cannot write to .*q9\.csv"):
        export(open_evaluation(done), "bird", tmp_path / "q9.csv")
