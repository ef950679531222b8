"""``quorum eval verify-gold``: states with counts, every gold that is not ok by name, the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorum.cli import cli
from tests.evals.small_suite import write_spider1


def quorum(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, ["eval", "verify-gold", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def data(workplace: Path) -> Path:
    return write_spider1(workplace / "spider1")


def break_gold(data: Path) -> None:
    entries = json.loads((data / "dev.json").read_text())
    entries[1]["query"] = "SELECT nope FROM pet"
    (data / "dev.json").write_text(json.dumps(entries))


def test_whole_gold_ends_with_0(data: Path) -> None:
    result = quorum("spider1", "--data", data, "--limit", "1")
    assert result.exit_code == 0
    assert "spider1: the gold of 1 question\n" in result.stdout
    assert [line.split()[:2] for line in result.stdout.splitlines() if line.startswith(" ok")] == [
        ["ok", "1"]
    ]


def test_gold_that_fails_is_named_and_ends_with_1(data: Path, workplace: Path) -> None:
    break_gold(data)
    result = quorum("spider1", "--data", data, "--out", workplace / "new" / "gold.json")
    assert result.exit_code == 1
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("fails")]
    assert line.split()[:2] == ["fails", "0001"]
    assert "nope" in line
    written = json.loads((workplace / "new" / "gold.json").read_text())
    assert written["0000"] == {"state": "ok", "reason": "", "rows": 1}
    assert written["0001"]["state"] == "fails"


def test_json_is_the_checks_and_nothing_else(data: Path, workplace: Path) -> None:
    break_gold(data)
    result = quorum("spider1", "--data", data, "--json")
    assert result.exit_code == 1
    assert {id: check["state"] for id, check in json.loads(result.stdout).items()} == {
        "0000": "ok",
        "0001": "fails",
    }
    (workplace / "ids").write_text("0000\n")
    result = quorum("spider1", "--data", data, "--ids", "ids", "--json")
    assert (result.exit_code, list(json.loads(result.stdout))) == (0, ["0000"])


def test_questions_that_could_not_be_checked_are_told(data: Path) -> None:
    entries = json.loads((data / "dev.json").read_text())
    entries.append({"db_id": "shops", "question": "?", "query": "SELECT 1"})
    (data / "dev.json").write_text(json.dumps(entries))
    result = quorum("spider1", "--data", data, "--json")
    assert len(json.loads(result.stdout)) == 2
    assert "shops" in result.stderr


@pytest.mark.heavy
def test_own_questions_may_be_about_the_sample_database(workplace: Path) -> None:
    (workplace / "mine.jsonl").write_text(
        json.dumps({"question": "?", "sql": "SELECT 1", "db": "sample"}) + "\n"
    )
    result = quorum("mine.jsonl", "--json")
    assert json.loads(result.stdout) == {"0000": {"state": "ok", "reason": "", "rows": 1}}


def test_what_is_wrong_is_said(data: Path, workplace: Path) -> None:
    assert "--data is missing" in quorum("spider1").stderr
    assert quorum("spider1").exit_code == 2
    (workplace / "file").write_text("")
    result = quorum("spider1", "--data", data, "--out", "file/gold.json")
    assert result.exit_code == 2
    assert "file is a file, not a folder. Name another file to write." in result.stderr
