"""``quorum eval export``: the files, and what it says of what is not in them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from quorum.cli import cli
from tests.evals.test_export import evaluation, record


def quorum(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, ["eval", "export", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def done(workplace: Path) -> Path:
    ids = [f"q{number}" for number in range(30)]
    records = [record("q0", pa.table({"n": [1]})), record("q1", pa.table({"n": [2]}), status="stopped")]
    return evaluation(workplace / "eval", ids, records)


def test_what_was_written_and_what_was_left_out(done: Path, workplace: Path) -> None:
    result = quorum(done, "--format", "spider2-csv", "--out", "sub")
    assert result.exit_code == 0
    assert result.stdout == "sub: 2 of 30 questions written as spider2-csv.\n"
    assert sorted(path.name for path in (workplace / "sub").glob("*.csv")) == ["q0.csv", "q1.csv"]
    assert "Among them: 1 best effort" in result.stderr
    assert "Without an answer: 28 questions." in result.stderr
    assert "  q2: it has not been asked yet" in result.stderr
    assert "and 8 more; --verbose names them." in result.stderr
    told = quorum(done, "--format", "spider2-csv", "--out", "sub", "--verbose").stderr
    assert "  q29: " in told
    assert "more;" not in told


def test_bird_gets_one_file(done: Path, workplace: Path) -> None:
    result = quorum(done, "--format", "bird", "--out", "sub")
    assert result.exit_code == 0
    assert len(json.loads((workplace / "sub" / "predict_dev.json").read_text())) == 30
    assert "these are 30 entries" in result.stderr


def test_a_folder_with_something_else_is_left_alone(done: Path, workplace: Path) -> None:
    (workplace / "sub").mkdir()
    (workplace / "sub" / "mine.sql").write_text("SELECT 1")
    result = quorum(done, "--format", "spider2-sql", "--out", "sub")
    assert result.exit_code == 2
    assert "sub is not empty, and no export." in result.stderr
    result = quorum(done, "--format", "spider2-sql", "--out", "sub", "--force")
    assert result.exit_code == 2
    assert "sub holds files that no export left there: mine.sql." in result.stderr
    assert quorum(done, "--format", "spider2-csv", "--out", "sub", "--force").exit_code == 0
    assert sorted(path.name for path in (workplace / "sub").glob("q*")) == ["q0.csv", "q1.csv"]
    assert (workplace / "sub" / "mine.sql").read_text() == "SELECT 1"


def test_a_folder_without_an_evaluation_is_refused(workplace: Path) -> None:
    result = quorum(workplace, "--format", "bird", "--out", "sub")
    assert result.exit_code == 2
    assert "holds no evaluation" in result.stderr
    assert not (workplace / "sub").exists()
