"""Spider 2.0's folders as suites: what is placed where, and what is said of what is not there."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.running.runner import run_evaluation
from quorum.evals.suites import load_suite, part_of
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.databases import connect
from tests.evals.running import evaluation
from tests.evals.shop import write_shop
from tests.graph.shop import script, written
from tests.schema_folders import write_schema

USERS = "SELECT COUNT(*) AS users FROM users"

LITE: tuple[dict[str, Any], ...] = (
    {"instance_id": "bq001", "db": "ga4", "external_knowledge": "events.md"},
    {"instance_id": "ga002", "db": "ga4", "external_knowledge": None},
    {"instance_id": "sf003", "db": "PATENTS", "external_knowledge": None},
    {"instance_id": "local004", "db": "pet-shop", "external_knowledge": None},
)


def write_lines(path: Path, items: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")


def write_gold(
    folder: Path, edition: str, results: Mapping[str, str], sql: Mapping[str, str], **toks: str
) -> None:
    """``evaluation_suite/gold`` below ``folder``; ``results`` by file name, ``sql`` by question."""
    gold, files = folder / "evaluation_suite" / "gold", {f"sql/{id}.sql": text for id, text in sql.items()}
    for name, text in {**files, **{f"exec_result/{name}": text for name, text in results.items()}}.items():
        (gold / name).parent.mkdir(parents=True, exist_ok=True)
        (gold / name).write_text(text, encoding="utf-8")
    ids = sorted({name.removesuffix(".csv").removesuffix("_a") for name in results})
    usual: dict[str, Any] = {"condition_cols": [], "ignore_order": True}
    lines = [usual | {"instance_id": id} | ({"toks": toks[id]} if id in toks else {}) for id in ids]
    write_lines(gold / f"spider2{edition}_eval.jsonl", lines)


def write_snow(folder: Path) -> Path:
    """Snow with one question, in its own form."""
    asked = {"instance_id": "sf_bq1", "instruction": "How many?", "db_id": "SHOP", "external_knowledge": None}
    write_lines(folder / "spider2-snow.jsonl", [asked])
    write_schema(folder / "resource" / "databases" / "SHOP" / "PUBLIC")
    sql = {"sf_bq1": "SELECT COUNT(*) FROM SHOP.PUBLIC.ORDERS"}
    write_gold(folder, "snow", {"sf_bq1_a.csv": "n\n3\n"}, sql)
    return folder


@pytest.fixture
def lite(tmp_path: Path) -> Path:
    """Lite with a question for each engine, two for BigQuery; nothing is missing."""
    folder = tmp_path / "spider2-lite"
    write_lines(folder / "spider2-lite.jsonl", [{"question": f"{x['db']}?", **x} for x in LITE])
    databases = folder / "resource" / "databases"
    write_schema(databases / "bigquery" / "ga4" / "project.data", {"events": {"day": "STRING"}})
    write_schema(databases / "snowflake" / "PATENTS" / "PATENTS")
    write_shop(databases / "spider2-localdb" / "pet-shop.sqlite")
    (folder / "resource" / "documents").mkdir()
    (folder / "resource" / "documents" / "events.md").write_text("Events are days.", encoding="utf-8")
    golds = {"bq001.csv": "a\n1\n", "ga002_a.csv": "a\n1\n", "sf003.csv": "a\n1\n", "local004.csv": "n\n3\n"}
    sql = {"bq001": "SELECT 1", "ga002": "SELECT 1", "sf003": "SELECT 1", "local004": USERS}
    write_gold(folder, "lite", golds, sql, bq001="200")
    return folder


def by_id(suite: Suite) -> dict[str, EvalQuestion]:
    return {question.id: question for question in suite.questions}


def said(suite: Suite, start: str) -> str:
    """The one remark that begins so; empty if there is none."""
    found = [text for text in suite.missing if text.startswith(start)]
    assert len(found) <= 1
    return found[0] if found else ""


async def test_each_question_is_placed_by_the_engine_that_its_id_tells(lite: Path) -> None:
    write_shop(lite / "resource" / "databases" / "PATENTS.sqlite")  # of the name of Snowflake's
    suite = load_suite("spider2-lite", lite)
    questions = by_id(suite)
    assert {id: (question.dialect, question.live) for id, question in questions.items()} == {
        "bq001": ("bigquery", False),
        "ga002": ("bigquery", False),
        "sf003": ("snowflake", False),
        "local004": ("sqlite", True),
    }
    for question in questions.values():
        async with connect(question.url) as connector:
            assert connector.dialect == question.dialect
            assert (await connector.catalog()).tables
    assert questions["bq001"].question == "ga4?"
    assert [question.knowledge for question in suite.questions[:2]] == [{"events.md": "Events are days."}, {}]
    remark = said(suite, "Schemas only")
    assert "3 questions (2 on bigquery, 1 on snowflake)" in remark
    assert "linking and lint validity are all that is scored" in remark
    local = load_suite("spider2-local", lite)
    (one,) = local.questions
    assert (one.id, one.live, one.database, one.gold_sql) == ("local004", True, "pet-shop", (USERS,))
    assert local.missing == ()


@pytest.mark.parametrize("suite", ["spider2-lite", "spider2-local"])
def test_published_gold_tables_lie_beside_the_edition(lite: Path, suite: str) -> None:
    assert by_id(load_suite(suite, lite))["local004"].gold_tables == ()
    file = lite.parent / "methods" / "gold-tables" / "spider2-lite-gold-tables.jsonl"
    write_lines(file, [{"instance_id": "local004", "gold_tables": ["pet", "pet"]}])
    assert by_id(load_suite(suite, lite))["local004"].gold_tables == ("pet",)
    write_lines(file, [{"instance_id": "local004", "gold_tables": "pet"}])
    with pytest.raises(ConfigurationError, match="names no tables"):
        load_suite(suite, lite)


@pytest.mark.parametrize(
    "place",
    [
        "resource/databases/Pet-Shop.sqlite",
        "resource/databases/spider2-localdb/PET_SHOP.sqlite",
        "resource/databases/sqlite/pet-shop.sqlite",
        "resource/spider2-localdb/pet shop.sqlite",
    ],
)
def test_files_and_schemas_may_lie_beside_and_be_spelt_otherwise(place: str, lite: Path) -> None:
    databases = lite / "resource" / "databases"
    shutil.rmtree(databases / "spider2-localdb")
    file = write_shop(lite / place)
    (question,) = load_suite("spider2-local", lite).questions
    (databases / "bigquery" / "ga4").rename(databases / "bigquery" / "GA4")
    assert by_id(load_suite("spider2-lite", lite))["bq001"].url.endswith("/bigquery/GA4")
    assert question.url.endswith(file.name.replace(" ", "%20"))


def test_what_is_nowhere_is_left_out_and_named(lite: Path) -> None:
    databases = lite / "resource" / "databases"
    shutil.rmtree(databases / "spider2-localdb")
    write_schema(databases / "sqlite" / "PET_SHOP", {"pet": {"name": "TEXT"}})
    suite = load_suite("spider2-lite", lite)
    question = by_id(suite)["local004"]
    assert (question.dialect, question.live) == ("sqlite", False), "it is asked over its schema"
    assert "not there (pet-shop)" in suite.missing[0]
    with pytest.raises(ConfigurationError, match=r"pet-shop.*spider2-localdb"):
        load_suite("spider2-local", lite)
    shutil.rmtree(databases / "snowflake")
    shutil.rmtree(databases / "sqlite")
    items = [*LITE, {"instance_id": "x1", "db": "ga4"}]
    write_lines(lite / "spider2-lite.jsonl", [{"question": "?", **item} for item in items])
    suite = load_suite("spider2-lite", lite)
    assert list(by_id(suite)) == ["bq001", "ga002"]
    remarks = [text for text in suite.missing if text.startswith("Left out")]
    for name in ("snowflake schema of PATENTS", "sqlite schema of pet-shop", ": x1."):
        assert any(name in text for text in remarks), name


def test_nothing_placed_is_an_error_that_says_where_databases_are_had(lite: Path) -> None:
    shutil.rmtree(lite / "resource")
    for name in ("spider2-lite", "spider2-local"):
        with pytest.raises(ConfigurationError, match="no database of") as raised:
            load_suite(name, lite)
        assert "https://github.com/xlang-ai/Spider2" in raised.value.hint
    write_lines(lite / "spider2-lite.jsonl", [{"question": "?", **LITE[0]}])
    with pytest.raises(ConfigurationError, match="no question of spider2-local"):
        load_suite("spider2-local", lite)
    with pytest.raises(ConfigurationError, match=r"spider2-snow\.jsonl"):
        load_suite("spider2-snow", lite)


def test_difficulty_is_the_length_of_the_gold_sql(lite: Path) -> None:
    for tokens, difficulty in ((1, "easy"), (79, "easy"), (80, "medium"), (159, "medium"), (160, "hard")):
        golds = {"bq001.csv": "a\n1\n", "sf003.csv": "a\n1\n"}
        write_gold(lite, "lite", golds, {"sf003": "  x\n" * tokens}, bq001=str(tokens))
        questions = by_id(load_suite("spider2-lite", lite))
        assert questions["sf003"].difficulty == difficulty, "counted"
        assert questions["bq001"].difficulty == difficulty, "stated, whatever the SQL that is published"


def test_gold_sql_may_be_several_queries_or_none(lite: Path, tmp_path: Path) -> None:
    for letter in "ab":
        file = lite / "evaluation_suite" / "gold" / "sql" / f"sf003_{letter}.sql"
        file.write_text(f"SELECT '{letter}'\n")
    gold = by_id(load_suite("spider2-lite", lite))["sf003"].gold_sql
    assert gold == ("SELECT 1", "SELECT 'a'", "SELECT 'b'")
    shutil.rmtree(write_snow(tmp_path) / "evaluation_suite" / "gold" / "sql")
    suite = load_suite("spider2-snow", tmp_path)
    assert (suite.questions[0].difficulty, suite.questions[0].gold_sql) == ("", ())
    assert "1 question" in said(suite, "No gold SQL")


@pytest.mark.parametrize("name", ["lost.md", "../spider2-lite.jsonl"])
def test_missing_documents_and_gold_are_named(name: str, lite: Path) -> None:
    lost = [{"question": "?", **item} for item in (LITE[0] | {"external_knowledge": name}, LITE[1])]
    write_lines(lite / "spider2-lite.jsonl", lost)
    gold = lite / "evaluation_suite" / "gold"
    (gold / "exec_result" / "ga002_a.csv").unlink()
    suite = load_suite("spider2-lite", lite)
    assert suite.questions[0].knowledge == {}
    assert Path(name).name in said(suite, "No external knowledge")
    assert "1 question (ga002)" in said(suite, "No gold result")
    shutil.rmtree(gold)
    assert "evaluation_suite/gold" in said(load_suite("spider2-lite", lite), "Nothing can be scored")


def test_a_damaged_question_is_named(lite: Path) -> None:
    for change, message in (
        ({"instance_id": None}, "no instance_id"),
        ({"instance_id": "ga002"}, "recurs"),
        ({"instance_id": "../bq001"}, "is none"),
        ({"db": ""}, "no db"),
        ({"question": None}, "no question"),
    ):
        items = [{"question": "?", **item} for item in (*LITE[1:], LITE[0] | change)]
        write_lines(lite / "spider2-lite.jsonl", items)
        with pytest.raises(ConfigurationError, match=rf"Entry 4 of .*{message}"):
            load_suite("spider2-lite", lite)


async def test_a_run_over_schemas_scores_linking_and_validity(tmp_path: Path) -> None:
    suite = load_suite("spider2-snow", write_snow(tmp_path / "snow"))
    wrote = written("SELECT COUNT(*) FROM SHOP.PUBLIC.ORDERS JOIN SHOP.PUBLIC.CUSTOMERS USING (ID)")
    asked = evaluation(tmp_path / "out", {"m": script(sql_writer=wrote)}, suite.questions)
    record = (await run_evaluation(replace(asked, suite=suite)))["sf_bq1"]
    assert (record.status, record.error, record.executes) == ("no_answer", "unavailable", None)
    assert (record.valid, record.match, record.gold) == (True, None, "not_live")
    assert (record.metrics, record.finished) == ({"ex": None}, True), "asking again would not help"
    assert [row.match for row in record.candidates] == [None]
    assert (record.linking.table_recall, record.linking.table_precision) == (1.0, 0.5)
    manifest = json.loads((tmp_path / "out" / "eval.json").read_text(encoding="utf-8"))
    assert manifest["missing"][0].startswith("Schemas only")


def test_of_a_part_only_that_is_said_which_it_lacks(lite: Path) -> None:
    (lite / "resource" / "documents" / "events.md").unlink()
    asked = [json.loads(line) for line in (lite / "spider2-lite.jsonl").read_text().splitlines()]
    nowhere = asked[0] | {"instance_id": "bq999", "db": "nowhere"}
    write_lines(lite / "spider2-lite.jsonl", [*asked, nowhere])
    whole, lacks = load_suite("spider2-lite", lite), ("Left out", "Schemas only", "No external knowledge")
    assert all(said(whole, start) for start in lacks)
    assert part_of(whole, limit=len(whole.questions)) == whole
    local = part_of(whole, ids=["local004"])
    assert not any(said(local, start) for start in lacks)
    some = part_of(whole, ids=["bq001"])
    assert said(some, "Schemas only").startswith("Schemas only: 1 question (1 on bigquery)")
    assert "events.md" in said(some, "No external knowledge")
    assert some.questions == whole.questions


def test_the_published_folders(shared: Path) -> None:
    for name, count, with_sql, documents, difficulties in (
        ("spider2-local", 23, 3, 2, {"easy": 1, "medium": 13, "hard": 9}),
        ("spider2-lite", 74, 50, 18, {"easy": 24, "medium": 27, "hard": 23}),
        ("spider2-snow", 281, 67, 62, {"easy": 15, "medium": 24, "hard": 28, "": 214}),
    ):
        suite = load_suite(name, shared / "data" / name)
        assert len(suite.questions) == count
        assert sum(bool(question.gold_sql) for question in suite.questions) == with_sql
        assert sum(bool(question.knowledge) for question in suite.questions) == documents
        assert Counter(question.difficulty for question in suite.questions) == difficulties
        assert {question.live for question in suite.questions} == {name == "spider2-local"}
        assert not any(text.startswith(("Left out", "No external")) for text in suite.missing)
