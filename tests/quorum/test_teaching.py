"""``quorum keep``, ``correct`` and ``kb``: what people teach, and what it changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import quorum
from quorum.graph.answer import Answer
from quorum.knowledge.errors import ConfigurationError, QuorumError
from quorum.knowledge.verified import KnowledgeBase
from quorum.settings import Settings
from quorum.tools.experts import ExpertLedger
from quorum.tools.models.scripted import ScriptedChatModel
from tests.graph.shop import GOOD, QUESTION, changed, script
from tests.quorum.conftest import quorum as called

RIGHT = GOOD.replace("COUNT(*)", "COUNT(o.total)")
OTHER = "SELECT city, 7 AS orders FROM customers GROUP BY city"
DATED = "SELECT COUNT(*) AS orders FROM orders WHERE note IS NULL OR note > '2024-01-31'"


def answered(shop: str, written: Mapping[str, str], **given: Any) -> Answer:
    """The answer of the models that write so."""
    models = {
        name: ScriptedChatModel(script=script(sql_writer={"reasoning": "So.", "sql": sql}), source=name)
        for name, sql in written.items()
    }
    return quorum.ask_sync(QUESTION, db=shop, recipe="single", votes=len(models), chat_models=models, **given)


def home() -> Path:
    return Settings().home


def test_a_kept_answer_is_given_again_without_a_model(shop: str) -> None:
    first = answered(shop, {"m": GOOD})
    said = called("keep", "last", "--note", "Every order counts.", "--by", "jane")
    assert "Kept, verified by jane on " in said.stdout
    again = answered(shop, {"m": OTHER})
    assert (again.sql, again.rows, again.usage["model_calls"]) == (GOOD, first.rows, 0)
    shown = called("ask", QUESTION, "--db", shop, "--model", "offline", "-q").stdout
    assert "This very question was verified by jane" in shown
    assert "a person verified the query" in shown
    assert "Demonstration" not in shown


def test_what_the_data_shows_against_an_answer_is_said_when_it_is_kept(shop: str) -> None:
    file = home() / "runs" / answered(shop, {"m": GOOD}).run_id / "answer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"doubts": ["Four rows are TOTALs."]}))
    assert "Warning: The data shows against it: Four rows are TOTALs." in called("keep", "last").stderr


def test_keeping_teaches_the_experts_once(shop: str) -> None:
    answered(shop, {"good": GOOD, "also": RIGHT, "odd": OTHER})
    for _ in range(2):
        taught = quorum.keep("last", by="jane")
    assert taught.right == taught.wrong == ()
    book = ExpertLedger(home() / "experts.json").read()
    assert {name: expert.mistakes for name, expert in book.experts.items()} == {
        "good": 0,
        "also": 0,
        "odd": 1,
    }
    assert book.feedback["user"] == 1


def test_a_correction_has_run_and_shows_what_was_wrong(shop: str, workplace: Path) -> None:
    answered(shop, {"one": OTHER, "two": OTHER, "three": GOOD})
    changed(workplace / "shop.db", "DELETE FROM orders WHERE id = 4")  # who is right gives the same now
    for sql, why in (("DROP TABLE orders", "only pure reads"), ("SELECT town FROM customers", "town")):
        with pytest.raises(QuorumError, match=why):
            quorum.correct_sync("last", sql)
    assert KnowledgeBase.load(home() / "kb").empty
    taught = quorum.correct_sync("last", RIGHT, note="Count orders, not cities.", by="jane")
    assert (taught.right, sorted(taught.wrong)) == (("three",), ["one", "two"])
    (pair,) = KnowledgeBase.load(home() / "kb").pairs
    kept = (pair.sql, pair.instead_of, pair.note, pair.by, pair.tables)
    assert kept == (RIGHT, OTHER, "Count orders, not cities.", "jane", ("customers", "orders"))
    again = quorum.correct_sync("last", OTHER, settings=Settings(kb=workplace / "team"))
    assert again.right == again.wrong == (), "a run teaches once"
    assert again.file.is_relative_to(workplace / "team")


def test_what_takes_the_place_of_a_verified_query_says_so(shop: str) -> None:
    answered(shop, {"m": GOOD})
    first = quorum.keep("last", note="Every order counts.", by="jane")
    assert first.pair.marks
    again = quorum.correct_sync("last", RIGHT)
    assert (again.replaced, again.pair.note) == (first.pair.credit, ""), "the note was of another query"
    assert "takes the place of another query" in called("correct", "last", "--sql", GOOD).stdout
    assert called("kb", "show", first.file.name).exit_code == 0


def test_a_query_from_which_a_secret_was_removed_is_not_kept(
    shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "orders")
    answered(shop, {"m": GOOD})
    with pytest.raises(ConfigurationError, match="secret was removed"):
        quorum.keep("last")


def test_an_evaluation_uses_what_is_kept_only_if_it_is_told_to(shop: str, workplace: Path) -> None:
    answered(shop, {"m": GOOD})
    quorum.keep("last")
    (workplace / "quorum.toml").write_text('kb = ".quorum/kb"\n', "utf-8")
    questions = workplace / "own.jsonl"
    questions.write_text(json.dumps({"id": "1", "question": QUESTION, "sql": GOOD}), "utf-8")
    usual = ["eval", "run", str(questions), "--db", shop, "--model", "offline", "-q", "--json"]
    plain = json.loads(called(*usual).stdout)
    told = json.loads(called(*usual, "--kb", ".quorum/kb", "--out", "told").stdout)
    assert plain["model_calls"] > 0 == told["model_calls"]


def test_what_has_no_result_cannot_be_kept_and_a_query_with_fixed_dates_says_so(shop: str) -> None:
    answered(shop, {"m": "SELECT nope FROM orders"})
    with pytest.raises(ConfigurationError, match="quorum correct RUN --sql"):
        quorum.keep("last")
    said = called("correct", "last", "--sql", "-", given=DATED)
    assert (said.exit_code, "The query holds fixed dates (2024-01-31): asked" in said.stdout) == (0, True)


def test_a_correction_may_name_the_database_of_its_run_and_no_other(shop: str) -> None:
    answered(shop, {"m": OTHER})
    assert called("correct", "last", "--db", shop, "--sql", GOOD).exit_code == 0
    other = called("correct", "last", "--db", "sqlite:///other.db", "--sql", GOOD)
    assert other.exit_code == 2
    assert "it keeps its own database (--db)" in other.stderr


def test_the_knowledge_base_is_shown_searched_checked_and_pruned(shop: str, workplace: Path) -> None:
    answered(shop, {"m": GOOD})
    called("keep", "last", "--by", "jane")
    (pair,) = json.loads(called("kb", "show", "--json").stdout)
    assert pair["question"] == QUESTION
    assert called("kb", "show", pair["id"]).stdout.startswith("---\nquestion: How many orders")
    assert pair["id"] in called("kb", "search", "orders of a city").stdout
    assert called("kb", "search", "the tallest player").stdout == ""
    held = called("kb", "verify", "--db", shop)
    assert (held.exit_code, "1 of 1 query held." in held.stderr) == (0, True)
    changed(workplace / "shop.db", "ALTER TABLE customers ADD COLUMN country TEXT")
    held = called("kb", "verify", "--db", shop)
    assert (held.exit_code, "The columns of customers have changed since." in held.stdout) == (1, True)
    changed(
        workplace / "shop.db", "DROP TABLE orders; DROP TABLE customers; CREATE TABLE orders (id INTEGER)"
    )
    failed = called("kb", "verify", "--db", shop)
    assert failed.exit_code == 1
    assert "There is no table customers" in failed.stdout
    assert json.loads(called("kb", "verify", "--db", shop, "--json").stdout)[0]["error"]
    assert "Deleted: " in called("kb", "forget", pair["id"]).stdout
    assert called("kb", "show", pair["id"]).exit_code == 2


def test_pairs_go_out_and_come_in_where_they_run(shop: str, workplace: Path) -> None:
    lines = [
        {"question": "How many orders?", "sql": "SELECT COUNT(*) FROM orders"},
        {"question": "Drop them", "sql": "DROP TABLE orders"},
        {"question": "Others", "sql": "SELECT 1", "database": "archive"},
        {"question": "x" * 70_000, "sql": "SELECT 1"},
        {"question": "How many customers?", "sql": "SELECT COUNT(*)\r\nFROM customers"},
    ]
    file = workplace / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    found = called("kb", "import", str(file), "--db", shop, "--by", "team")
    assert found.exit_code == 1
    assert found.stdout == "Kept 2 pairs; 1 pair of other databases passed over.\n"
    assert "cannot be kept as a file" in found.stderr
    assert "Not kept: Drop them" in found.stderr
    (workplace / "all.jsonl").write_text(called("kb", "export").stdout)
    assert called("kb", "import", "all.jsonl", "--db", shop, "--kb", "other").exit_code == 0
    pair = next(each for each in KnowledgeBase.load(workplace / "other").pairs if "orders" in each.question)
    assert (pair.question, pair.database, pair.tables) == ("How many orders?", "shop", ("orders",))
    assert pair.by == "team", "who stood for it goes with it"
    assert "2 pairs known already" in called("kb", "import", "all.jsonl", "--db", shop).stdout
    file.write_text(json.dumps(lines[0] | {"sql": "SELECT 5"}), "utf-8")
    assert "Another query is kept for it" in called("kb", "import", str(file), "--db", shop).stderr
    assert "No database is given" in called("kb", "import", "all.jsonl").stderr
