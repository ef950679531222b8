"""Suites of questions on SQLite files, made small: Spider 1.0, BIRD, defog's and AMBROSIA, as published."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from quorum.evals.questions import read_ids
from quorum.evals.running.databases import DatabasePool
from quorum.evals.scorers.base import Prediction
from quorum.evals.scoring import verify_gold
from quorum.evals.suites import load_suite, part_of
from quorum.evals.suites.defog import PLACE as SERVER_PLACE
from quorum.evals.suites.defog import load_on_server
from quorum.graph.options import RunOptions
from quorum.knowledge.errors import ConfigurationError
from tests.evals.shop import write_shop
from tests.servers.defog_postgres import load, write_ids
from tests.servers.postgres_server import PostgresServer


class Layout(NamedTuple):
    """A suite's file of questions, the place of its databases, an entry, its keys of database and id."""

    file: str
    place: str
    entry: dict[str, Any]
    database: str
    id: str = ""


SPIDER = {"db_id": "shop", "question": "How many users?", "query": "SELECT count(*) FROM users"}
BIRD = {
    "question_id": 7,
    "db_id": "shop",
    "question": "How many British users?",
    "evidence": "British refers to country = 'UK'",
    "SQL": "SELECT COUNT(*) FROM users WHERE country = 'UK'",
    "difficulty": "simple",
}
DEFOG = {
    "db_name": "shop",
    "db_type": "sqlite",
    "query_category": "ratio",
    "query": "SELECT {id,name} FROM users WHERE id < 3;",
    "question": "Which users?",
    "instructions": "",
}
AMBROSIA = {
    "id": "a",
    "database": "shop",
    "question": "Which users?",
    "kind": "scope",
    "ambiguous": True,
    "gold": ["SELECT name FROM users", "SELECT id FROM users"],
}
LAYOUTS = {
    "spider1": Layout("dev.json", "database/{0}/{0}.sqlite", SPIDER, "db_id"),
    "bird": Layout("dev.json", "dev_databases/{0}/{0}.sqlite", BIRD, "db_id", "question_id"),
    "defog": Layout("questions.jsonl", "databases/{0}.sqlite", DEFOG, "db_name"),
    "ambrosia": Layout("questions.jsonl", "databases/{0}.sqlite", AMBROSIA, "database", "id"),
}
PLACE = "data/scope/Banking & Co/scope_all_users/scope_all_users.sqlite"
ROW = {
    "question": "Which users?",
    "ambig_type": "scope",
    "is_ambiguous": "True",
    "split": "test",
    "ambig_question": "Which users?",
    "db_dump": "CREATE TABLE …;\n\nINSERT …",
    "db_file": PLACE,
    "gold_queries": "SELECT name\r\nFROM users\n\nSELECT id FROM users",
}
"""A row of AMBROSIA's download."""


def write(path: Path, *entries: dict[str, Any]) -> None:
    """A file of questions, of the kind that its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [*entries[0]])
            writer.writeheader()
            writer.writerows(entries)
    else:
        lines = "\n".join(map(json.dumps, entries))
        path.write_text(lines if path.suffix == ".jsonl" else json.dumps(entries), encoding="utf-8")


def laid(folder: Path, name: str, *changes: dict[str, Any]) -> Path:
    """A suite's folder with its database ``shop``; one entry for each of the changes."""
    layout = LAYOUTS[name]
    write(folder / layout.file, *(layout.entry | each for each in changes))
    write_shop(folder / layout.place.format("shop"))
    return folder


@pytest.mark.parametrize("name", LAYOUTS)
async def test_from_the_folder_to_the_verdict(tmp_path: Path, name: str) -> None:
    """Through guard, lint and the connector; what has no database is left out, others keep their numbers."""
    layout = LAYOUTS[name]
    suite = load_suite(name, laid(tmp_path, name, {layout.database: "gone", layout.id: "x"}, {}))
    assert [question.id for question in suite.questions] == [str(layout.entry.get(layout.id, "0001"))]
    assert suite.missing[0].startswith("Left out for want of gone.sqlite: 1 question. Get them from https://")
    assert part_of(suite, ids=[suite.questions[0].id]).missing == suite.missing  # these are all there are
    found = await verify_gold(suite, suite.questions)
    assert [check.state for check in found.values()] == ["ok"]
    verdict = await suite.scorer.score(suite.questions[0], Prediction("SELECT 1"), None)
    assert verdict.gold == "not_live"


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        *((name, {"question": None}, "Entry [12] of .* has no question") for name in LAYOUTS),
        ("bird", {"SQL": " "}, "has no SQL"),
        ("bird", {"question_id": 7}, "two questions 7"),
        ("bird", {"db_id": None}, "has no db_id"),
        ("defog", {"query": " "}, "has no query"),
        ("defog", {"query_category": ""}, "has no query_category"),
        ("ambrosia", {"gold": None}, "Entry 2 of .* has no gold"),
        ("ambrosia", {"kind": ""}, "has no kind"),
    ],
)
def test_damaged_questions_are_named(tmp_path: Path, name: str, damage: dict[str, Any], message: str) -> None:
    laid(tmp_path, name, {}, {LAYOUTS[name].id: "b"} | damage)
    with pytest.raises(ConfigurationError, match=message):
        load_suite(name, tmp_path)


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    for name, message in (
        ("spider1", r"There is no .*dev\.json"),
        ("bird", r"has none of dev\.json"),
        ("defog", r"has neither questions.jsonl nor data/questions_gen_sqlite"),
        ("ambrosia", r"neither questions.jsonl nor ambrosia.csv"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            load_suite(name, tmp_path)
    laid(tmp_path, "bird", {"db_id": "moon"})
    with pytest.raises(ConfigurationError, match=r"none of the databases of dev\.json.*/moon/moon"):
        load_suite("bird", tmp_path)
    write(tmp_path / "mini_dev_sqlite.json")
    with pytest.raises(ConfigurationError, match="several sets of questions"):
        load_suite("bird", tmp_path)
    write(tmp_path / "a" / "ambrosia.csv", ROW | {"split": "few_shot_examples"})
    with pytest.raises(ConfigurationError, match="no question in"):
        load_suite("ambrosia", tmp_path / "a")
    for name, file in (("ambrosia", "a/ambrosia.csv"), ("defog", "data/questions_gen_sqlite.csv")):
        write(tmp_path / file, ROW if name == "ambrosia" else DEFOG)
        with (tmp_path / file).open("a") as text:
            text.write('shop,sqlite,ratio,"SELECT')
        with pytest.raises(ConfigurationError, match=r"\.csv cannot be read"):
            load_suite(name, tmp_path / "a" if name == "ambrosia" else tmp_path)


# Spider 1.0 and BIRD


def test_spiders_test_split_has_its_own_file_and_databases(tmp_path: Path) -> None:
    write(tmp_path / "test.json", SPIDER | {"db_id": "park"}, SPIDER)
    write_shop(tmp_path / "test_database" / "park" / "park.sqlite")
    suite = load_suite("spider1-test", tmp_path)
    (one,) = suite.questions
    assert (suite.name, one.id, one.gold_sql) == ("spider1-test", "0000", (SPIDER["query"],))
    assert one.url.endswith("/test_database/park/park.sqlite")
    assert suite.missing == (
        "Left out for want of shop.sqlite: 1 question. Get them from https://yale-lily.github.io/spider.",
    )


@pytest.mark.parametrize("file", ["dev.json", "mini_dev_sqlite.json", "mini_dev_sqlite.jsonl", "train.json"])
@pytest.mark.parametrize("inner", ["", "MINIDEV"])
def test_bird_in_each_of_its_layouts(tmp_path: Path, file: str, inner: str) -> None:
    databases = tmp_path / inner / ("train_databases" if file == "train.json" else "dev_databases")
    write(tmp_path / inner / file, BIRD, BIRD | {"question_id": 9, "evidence": ""})
    write_shop(databases / "shop" / "shop.sqlite")
    (tmp_path / "__MACOSX").mkdir()
    suite = load_suite("bird", tmp_path)
    assert (suite.name, suite.missing, [q.id for q in suite.questions]) == ("bird", (), ["7", "9"])
    first, second = suite.questions
    assert (first.database, first.dialect, first.difficulty, first.live) == ("shop", "sqlite", "simple", True)
    assert (first.knowledge, second.knowledge) == ({"evidence": BIRD["evidence"]}, {})
    assert first.gold_sql == (BIRD["SQL"],)
    assert first.url.endswith("/shop/shop.sqlite")


def test_birds_first_release_has_no_ids_and_writes_false_for_no_evidence(tmp_path: Path) -> None:
    laid(tmp_path, "bird", {})
    early = {key: BIRD[key] for key in ("db_id", "question", "SQL")} | {"evidence": "False"}
    write(tmp_path / "dev.json", early, early)
    found = [(q.id, q.knowledge, q.difficulty) for q in load_suite("bird", tmp_path).questions]
    assert found == [("0", {}, ""), ("1", {}, "")]


# defog


def test_a_question_of_defog_with_all_that_it_has(tmp_path: Path) -> None:
    laid(tmp_path, "defog", {}, {"instructions": "Round to 2 digits. ", "query_category": "order_by"})
    first, second = load_suite("defog", tmp_path).questions
    assert (first.id, first.database, first.dialect) == ("0000", "shop", "sqlite")
    assert first.url == f"sqlite:///{tmp_path}/databases/shop.sqlite"
    assert first.gold_sql[2] == "SELECT id, name FROM users WHERE id < 3"
    assert (first.difficulty, dict(first.knowledge)) == ("ratio", {})
    assert dict(second.knowledge) == {"instructions": "Round to 2 digits."}
    assert second.extra == {"category": "order_by", "query": DEFOG["query"]}


@pytest.mark.parametrize("database", ["sqlite_dbs/shop.db", "defog-data/sqlite_dbs/shop.db"])
@pytest.mark.parametrize("inner", ["data", "", "sql-eval/data"])
def test_a_checkout_of_sql_eval(tmp_path: Path, database: str, inner: str) -> None:
    data = tmp_path / inner
    write(data / "instruct_basic_sqlite.csv", DEFOG | {"question": "Third,\nin two lines?"})
    write(data / "questions_gen_sqlite.csv", *(DEFOG | {"question": each} for each in ("First?", "Second?")))
    write(data / "questions_gen_postgres.csv", DEFOG | {"question": "Not this one"})
    write_shop(tmp_path / database)
    suite = load_suite("defog", tmp_path)
    asked = [("0000", "First?"), ("0001", "Second?"), ("0002", "Third,\nin two lines?")]
    assert [(q.id, q.question) for q in suite.questions] == asked
    assert suite.missing == (
        "Without instruct_advanced_sqlite.csv: get it from https://github.com/defog-ai/sql-eval.",
    )


GOLD = {
    "shop": "SELECT DATE_TRUNC('month', day), SUM(amount) FILTER (WHERE mfa_enabled) FROM sales GROUP BY 1",
    "elsewhere": "SELECT 1",
    "wallet": "SELECT name FROM sales WHERE name ILIKE 'ANN%' AND day + INTERVAL '1 day' > '2024-01-01'",
}


async def test_defogs_gold_for_postgres_reproduces_on_the_loaded_databases(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    entries = (DEFOG | {"db_name": name, "query": sql} for name, sql in GOLD.items())
    write(tmp_path / "data" / "questions_gen_postgres.csv", *entries)
    for name in ("shop", "wallet"):
        with closing(sqlite3.connect(tmp_path / f"{name}.sqlite")) as database, database:
            columns = "name TEXT, day DATE, amount REAL(10, 2), mfa_enabled INTEGER"
            database.execute(f"CREATE TABLE sales ({columns})")
            database.execute("INSERT INTO sales VALUES ('Anna', '2024-01-31', 1.5, 1), (NULL, NULL, 2, 0)")
    names = load(tmp_path, postgres.admin_url)
    assert write_ids(tmp_path, names, tmp_path / "ids.txt") == 2
    suite = load_on_server(tmp_path, f"{postgres.admin_url}/{SERVER_PLACE}")
    chosen = suite.chosen(ids=read_ids(tmp_path / "ids.txt"))
    assert [(question.id, question.database) for question in chosen] == [("0000", "shop"), ("0002", "wallet")]
    found = await verify_gold(suite, chosen)
    assert [(check.state, check.rows) for check in found.values()] == [("ok", 2), ("ok", 1)]


# AMBROSIA


def test_a_question_of_ambrosia_with_its_readings_and_groups(tmp_path: Path) -> None:
    laid(tmp_path, "ambrosia", {}, {"id": "b", "gold": ["SELECT 1"], "ambiguous": False, "kind": "vague"})
    suite = load_suite("ambrosia", tmp_path)
    first, second = suite.questions
    assert first.gold_sql == ("SELECT name FROM users", "SELECT id FROM users")
    assert first.difficulty == "ambiguous scope"
    assert first.groups == {"ambiguity": "ambiguous", "kind": "scope"}
    assert second.groups == {"ambiguity": "plain", "kind": "vague"}
    assert (first.database, first.shown_as, suite.missing) == ("shop", "", ())


@pytest.mark.parametrize("inner", ["", "data"])
@pytest.mark.parametrize("name", ["ambrosia.csv", "ambrosia_resplit.csv"])
async def test_the_download_of_ambrosia(tmp_path: Path, inner: str, name: str) -> None:
    """Agents do not see a database's name that tells what is ambiguous."""
    other = {"question": "Show all.", "ambig_type": "attachment", "is_ambiguous": "False"}
    rows = (ROW | {"split": "few_shot_examples"}, ROW, ROW | other | {"gold_queries": "WITH t AS …"})
    write(tmp_path / inner / name, *rows)
    file = write_shop(tmp_path / inner / PLACE.removeprefix("data/"))
    first, second = load_suite("ambrosia", tmp_path).questions
    assert (first.id, second.id) == ("0001", "0002")
    assert first.gold_sql == ("SELECT name\r\nFROM users", "SELECT id FROM users")
    assert second.gold_sql == ("WITH t AS …",)
    assert second.question == "Show all. Show them in one table."
    assert second.groups == {"ambiguity": "plain", "kind": "attachment"}
    assert first.url.endswith(file.name)
    databases = DatabasePool(RunOptions())
    shown = (await databases.of(first)).resources_for(first)
    await databases.aclose()
    assert first.shown_as == shown.catalog.name == "banking_co_01"
    assert "scope" not in shown.schema.text


def test_a_sample_of_groups_is_the_same_each_time_and_grows(tmp_path: Path) -> None:
    """Of twenty questions, every other one plain."""
    changes = ({"id": f"q{n:02}", "ambiguous": n % 2 == 0, "gold": ["SELECT 1"]} for n in range(20))
    grouped = load_suite("ambrosia", laid(tmp_path, "ambrosia", *changes))
    small = grouped.chosen(sample={"ambiguous": 3, "plain": 2})
    assert Counter(question.groups["ambiguity"] for question in small) == {"ambiguous": 3, "plain": 2}
    assert small == grouped.chosen(sample={"plain": 2, "ambiguous": 3})
    larger = grouped.chosen(sample={"ambiguous": 6, "plain": 2})
    assert {question.id for question in small} < {question.id for question in larger}
    assert [question.id for question in larger] == sorted(question.id for question in larger)
    assert len(grouped.chosen(sample={"": 7})) == 7
    assert len(grouped.chosen(sample={"plain scope": 99})) == 10
    halves = [grouped.chosen(sample={"ambiguous": 8}, shard=(n, 2)) for n in (1, 2)]
    assert len({question.id for half in halves for question in half}) == 8
    with pytest.raises(ConfigurationError, match=r"no question in a group 'hard'") as error:
        grouped.chosen(sample={"hard": 1})
    assert "ambiguous, ambiguous scope, plain, plain scope, scope" in str(error.value.hint)


async def test_quorums_part_of_ambrosia(shared: Path) -> None:
    """Gold of a question of each difficulty."""
    suite = load_suite("ambrosia", shared / "data" / "ambrosia")
    readings = Counter((q.groups["ambiguity"], q.groups["kind"], len(q.gold_sql)) for q in suite.questions)
    assert readings == {
        ("ambiguous", "scope", 2): 43,
        ("ambiguous", "attachment", 2): 26,
        ("ambiguous", "vague", 3): 22,
        ("plain", "scope", 1): 86,
        ("plain", "attachment", 1): 52,
        ("plain", "vague", 1): 69,
    }
    assert suite.missing == ()
    chosen = list({question.difficulty: question for question in suite.questions}.values())
    found = await verify_gold(suite, chosen)
    assert [(check.state, check.reason) for check in found.values()] == [("ok", "")] * 6
