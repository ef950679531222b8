"""Spider's and BIRD's folders as they are published, made small."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.questions import Suite
from quorum.evals.scorers.base import Prediction
from quorum.evals.scoring import verify_gold
from quorum.evals.suites import load_suite
from quorum.knowledge.errors import ConfigurationError

BIRD: list[dict[str, Any]] = [
    {
        "question_id": 7,
        "db_id": "zoo",
        "question": "How many cats are there?",
        "evidence": "cats refers to kind = 'cat'",
        "SQL": "SELECT COUNT(*) FROM pet WHERE kind = 'cat'",
        "difficulty": "simple",
    },
    {
        "question_id": 9,
        "db_id": "zoo",
        "question": "Who is oldest?",
        "evidence": "",
        "SQL": "SELECT name FROM pet ORDER BY age DESC LIMIT 1",
        "difficulty": "challenging",
    },
]
SPIDER = [
    {"db_id": "zoo", "question": "How many pets are there?", "query": "SELECT count(*) FROM pet"},
    {"db_id": "zoo", "question": "Which kinds are there?", "query": "SELECT DISTINCT kind FROM pet"},
]


def database(folder: Path, name: str = "zoo") -> None:
    """One database in its own folder, with the descriptions that BIRD puts beside it."""
    (folder / name / "database_description").mkdir(parents=True)
    (folder / name / "database_description" / "pet.csv").write_text("original_column_name\nname\n")
    with sqlite3.connect(folder / name / f"{name}.sqlite") as connection:
        connection.executescript(
            "CREATE TABLE pet (name TEXT, kind TEXT, age INTEGER);"
            "INSERT INTO pet VALUES ('Rex', 'dog', 3), ('Tom', 'cat', 5), ('Kit', 'cat', 1);"
        )


def bird(folder: Path, items: list[dict[str, Any]] = BIRD, file: str = "dev.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(map(json.dumps, items)) if file.endswith("l") else json.dumps(items)
    (folder / file).write_text(lines, encoding="utf-8")
    database(folder / ("train_databases" if file.startswith("train") else "dev_databases"))
    return folder


def spider(folder: Path) -> Path:
    (folder / "dev.json").write_text(json.dumps(SPIDER), encoding="utf-8")
    database(folder / "database")
    return folder


def test_spiders_test_split_has_its_own_file_and_databases(tmp_path: Path) -> None:
    (tmp_path / "test.json").write_text(json.dumps([SPIDER[1] | {"db_id": "park"}, SPIDER[0]]))
    database(tmp_path / "test_database", "park")
    suite = load_suite("spider1-test", tmp_path)
    assert (suite.name, [q.id for q in suite.questions]) == ("spider1-test", ["0000"])
    (one,) = suite.questions
    assert one.gold_sql == (SPIDER[1]["query"],)
    assert one.url.endswith("/test_database/park/park.sqlite")
    assert suite.missing == (
        "Left out for want of zoo.sqlite: 1 question. Get them from https://yale-lily.github.io/spider.",
    )
    with pytest.raises(ConfigurationError, match=r"There is no .*dev\.json"):
        load_suite("spider1", tmp_path)


@pytest.mark.parametrize("file", ["dev.json", "mini_dev_sqlite.json", "mini_dev_sqlite.jsonl", "train.json"])
@pytest.mark.parametrize("inner", ["", "MINIDEV"])
def test_bird_in_each_of_its_layouts(tmp_path: Path, file: str, inner: str) -> None:
    bird(tmp_path / inner, file=file)
    (tmp_path / "__MACOSX").mkdir()
    suite = load_suite("bird", tmp_path)
    assert (suite.name, suite.missing, [q.id for q in suite.questions]) == ("bird", (), ["7", "9"])
    first, second = suite.questions
    assert (first.database, first.dialect, first.difficulty) == ("zoo", "sqlite", "simple")
    assert first.knowledge == {"evidence": "cats refers to kind = 'cat'"}
    assert second.knowledge == {}
    assert first.gold_sql == (BIRD[0]["SQL"],)
    assert first.url.endswith("/zoo/zoo.sqlite")
    assert first.live


def test_birds_first_release_has_no_ids_and_writes_false_for_no_evidence(tmp_path: Path) -> None:
    keys = ("db_id", "question", "SQL")
    bird(tmp_path, [{key: item[key] for key in keys} | {"evidence": "False"} for item in BIRD])
    found = [(q.id, q.knowledge, q.difficulty) for q in load_suite("bird", tmp_path).questions]
    assert found == [("0", {}, ""), ("1", {}, "")]


def test_bird_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"has none of dev\.json"):
        load_suite("bird", tmp_path)
    bird(tmp_path / "a", [BIRD[0], BIRD[0]])
    with pytest.raises(ConfigurationError, match="two questions 7"):
        load_suite("bird", tmp_path / "a")
    (tmp_path / "a" / "mini_dev_sqlite.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="several sets of questions"):
        load_suite("bird", tmp_path / "a")
    bird(tmp_path / "b", [BIRD[0] | {"SQL": " "}])
    with pytest.raises(ConfigurationError, match=r"Entry 0 of .* has no SQL"):
        load_suite("bird", tmp_path / "b")
    bird(tmp_path / "c", [BIRD[0] | {"db_id": "moon"}])
    with pytest.raises(ConfigurationError, match=r"none of the databases of dev\.json.*/moon/moon"):
        load_suite("bird", tmp_path / "c")


@pytest.mark.parametrize("name", ["bird", "spider1"])
async def test_gold_of_a_suite_matches_itself(tmp_path: Path, name: str) -> None:
    """From the folder to the verdict, through guard, lint and the connector."""
    suite: Suite = load_suite(name, (bird if name == "bird" else spider)(tmp_path))
    found = await verify_gold(suite, suite.questions)
    assert [check.state for check in found.values()] == ["ok", "ok"]
    verdict = await suite.scorer.score(suite.questions[0], Prediction("SELECT 1"), None)
    assert verdict.gold == "not_live"
