"""``quorum eval score``: JSON and nothing else, tables for people, what is named on standard error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorum.cli import cli
from quorum.evals.submissions import BIRD_MARK
from tests.evals.recordings import write_gold
from tests.evals.small_suite import write_database, write_spider1


def quorum(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, ["eval", "score", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def gold(workplace: Path) -> Path:
    return write_gold(workplace / "gold", q1=1, q2=2, q3=3)


@pytest.fixture
def pred(workplace: Path) -> Path:
    folder = workplace / "pred"
    folder.mkdir()
    for name, number in {"q1.csv": 1, "q2.csv": 9, "q7.csv": 1}.items():
        (folder / name).write_text(f"n\n{number}\n")
    (folder / "q3.sql").write_text("SELECT 3")
    return folder


@pytest.mark.parametrize("suite", ["spider2", "spider2-snow"])
def test_json_is_the_scores_by_id_and_nothing_else(suite: str, pred: Path, gold: Path) -> None:
    result = quorum(suite, "--pred", pred, "--gold", gold, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"q1": 1, "q2": 0, "q3": 0}
    assert "the gold knows no such question: q7.csv (1)." in result.stderr
    assert "Not read: q3.sql (1)." in result.stderr


def test_the_table_has_the_mean_with_its_standard_error(pred: Path, gold: Path) -> None:
    result = quorum("spider2", "--pred", pred, "--gold", gold)
    assert "spider2: 2 of 3 questions answered" in result.stdout
    assert "33.3 ± 33.3 %" in result.stdout
    assert "q1.csv" not in result.stdout
    told = quorum("spider2", "--pred", pred, "--gold", gold, "--verbose").stdout
    assert "right  q1  q1.csv" in told
    assert "wrong  q2  q2.csv: no column matches column 0 (n)" in told
    assert "wrong  q3  there is no prediction" in told


def test_some_questions_only(pred: Path, gold: Path, workplace: Path) -> None:
    (workplace / "ids").write_text("# two\nq3\n\nq1\n")
    result = quorum("spider2", "--pred", pred, "--gold", gold, "--ids", "ids", "--json")
    assert list(json.loads(result.stdout).items()) == [("q3", 0), ("q1", 1)]
    assert "1 prediction of questions that were not asked for." in result.stderr
    (workplace / "ids").write_text("q8\n")
    result = quorum("spider2", "--pred", pred, "--gold", gold, "--ids", "ids", "--json")
    assert result.exit_code == 2
    assert "no question 'q8'" in json.loads(result.stdout)["error"]["message"]


def test_an_empty_folder_scores_0_and_says_so(gold: Path, workplace: Path) -> None:
    (workplace / "none").mkdir()
    result = quorum("spider2", "--pred", "none", "--gold", gold, "--json")
    assert json.loads(result.stdout) == {"q1": 0, "q2": 0, "q3": 0}
    assert "none holds no prediction for any question" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["spider2", "--pred", "pred"], "--gold is missing"),
        (["spider2", "--pred", "nowhere", "--gold", "gold"], "no folder nowhere"),
        (["spider2", "--pred", "pred", "--gold", "pred"], "no Spider 2.0 gold folder"),
        (["spider2-lite", "--pred", "pred", "--gold", "gold"], "gold of Spider 2.0-Snow, not of -Lite"),
        (["spider3", "--pred", "pred", "--gold", "gold"], "no suite 'spider3'"),
        (["spider2", "--pred", "pred/q1.csv", "--gold", "gold"], "pred/q1.csv is a file, not a folder. Name"),
        (["spider2", "--pred", "pred", "--gold", "no"], "no folder no. Name the benchmark's folder"),
        (
            ["spider1", "--pred", "pred", "--gold", "no"],
            "no folder no. Name the benchmark's folder with --gold.",
        ),
        (["bird", "--pred", "pred", "--gold", "pred/q1.csv"], "q1.csv is a file, not a folder. Name the"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], said: str, pred: Path, gold: Path) -> None:
    result = quorum(*arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_a_suite_runs_queries_and_reads_results(workplace: Path, pred: Path) -> None:
    data = write_spider1(workplace / "spider1")
    (pred / "0000.sql").write_text("SELECT COUNT(*) FROM pet")
    (pred / "0001.csv").write_text("name\nAda\n")
    result = quorum("spider1", "--pred", pred, "--gold", data, "--json")
    assert json.loads(result.stdout) == {"0000": 1, "0001": 0}
    told = quorum("spider1", "--pred", pred, "--gold", data, "--verbose").stdout
    assert "spider1: 2 of 2 questions answered" in told
    assert "right  0000" in told


def test_birds_own_file_goes_by_the_places_of_questions(workplace: Path) -> None:
    data = workplace / "bird"
    write_database(data / "dev_databases" / "pets" / "pets.sqlite")
    entries = [
        {"question_id": id, "db_id": "pets", "question": "?", "evidence": "", "SQL": f"SELECT {id}"}
        for id in (7, 5, 9)
    ]
    (data / "dev.json").write_text(json.dumps(entries))
    predicted = {"0": f"SELECT 7{BIRD_MARK}pets", "1": f"SELECT 7{BIRD_MARK}shops", "2": 0, "3": "SELECT 1"}
    (workplace / "pred").mkdir()
    (workplace / "pred" / "predict_dev.json").write_text(json.dumps(predicted))
    result = quorum("bird", "--pred", "pred", "--gold", data, "--json")
    assert json.loads(result.stdout) == {"7": 1, "5": 0, "9": 0}
    assert "no such question: 3 (1)." in result.stderr
    assert "1 (shops, not pets)" in result.stderr
    entries.append({"question_id": 1, "db_id": "shops", "question": "?", "SQL": "SELECT 1"})
    (data / "dev.json").write_text(json.dumps(entries))
    result = quorum("bird", "--pred", "pred", "--gold", data)
    assert result.exit_code == 2
    assert "goes by the questions' places" in result.stderr


def test_a_result_that_cannot_be_read_is_no_answer(workplace: Path, pred: Path, gold: Path) -> None:
    (pred / "q1.csv").write_bytes(b"n\n\xff\n")
    (pred / "q2.csv").write_bytes(b"")
    result = quorum("spider2", "--pred", pred, "--gold", gold)
    assert "spider2: 0 of 3 questions answered" in result.stdout
    assert "Results that cannot be read score 0: q1, q2 (2)." in result.stderr
    data = write_spider1(workplace / "spider1")
    (pred / "0001.csv").write_bytes(b"")
    result = quorum("spider1", "--pred", pred, "--gold", data)
    assert "spider1: 0 of 2 questions answered" in result.stdout
    assert "Results that cannot be read score 0: 0001 (1)." in result.stderr


def test_names_of_files_are_shown_without_their_control_characters(gold: Path, workplace: Path) -> None:
    (workplace / "p").mkdir()
    (workplace / "p" / "\x1b[31mred.csv").write_text("n\n1\n")
    result = quorum("spider2", "--pred", "p", "--gold", gold)
    assert "\x1b" not in result.stderr
    assert "red.csv (1)" in result.stderr


def test_own_questions_are_named_by_their_file(workplace: Path, pred: Path) -> None:
    url = f"sqlite:///{write_database(workplace / 'pets.sqlite')}"
    (workplace / "mine.jsonl").write_text(json.dumps({"id": "q1", "question": "?", "sql": "SELECT 1"}) + "\n")
    result = quorum("mine.jsonl", "--db", url, "--pred", pred, "--json")
    assert json.loads(result.stdout) == {"q1": 1}
    for wrong, said in [
        (["mine.jsonl", "--db", url, "--gold", "gold"], "Own questions need none"),
        (["spider1", "--db", url, "--gold", "gold"], "A benchmark brings its databases"),
    ]:
        result = quorum(*wrong, "--pred", pred)
        assert (result.exit_code, said in result.stderr) == (2, True)
