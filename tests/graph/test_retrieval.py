"""What is found before anything is written: questions that people verified, and values that are named."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES
from quorum.graph.resources import open_resources
from quorum.knowledge.catalog import Catalog, Table
from quorum.knowledge.verified import KnowledgeBase, VerifiedPair
from quorum.tools.sql.linking import table_marks
from tests.graph.shop import GOOD, QUESTION, Run, changed, run_graph, script

PAIR = VerifiedPair(QUESTION, GOOD, "shop", "sqlite", ("customers", "orders"), "jane", "2026-11-22")
LIKE = "How many orders did each city place in May?"


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    return KnowledgeBase(tmp_path / "kb")


@pytest.mark.parametrize("recipe", list(RECIPES))
async def test_a_verified_question_is_answered_by_its_query_without_a_call(
    recipe: str, run: Run, kb: KnowledgeBase
) -> None:
    kb.keep(PAIR)
    ran = await run({}, question=QUESTION.lower().rstrip("?"), recipe=recipe, kb=kb.folder)
    assert (ran.answer.status, ran.answer.sql, ran.answer.row_count) == ("answered", GOOD, 2)
    assert ran.answer.usage["model_calls"] == 0
    assert ran.vote.settled == "verified"
    assert "verified by jane on 2026-11-22" in " ".join(ran.vote.notes)


@pytest.mark.parametrize(
    ("sql", "why"),
    [("SELECT town FROM customers", "town"), ("DELETE FROM orders", "only pure reads"), ("SELEC 1", "")],
)
async def test_a_query_that_no_longer_runs_is_said_and_models_are_asked(
    sql: str, why: str, run: Run, kb: KnowledgeBase
) -> None:
    kb.keep(replace(PAIR, sql=sql))
    ran = await run(script(), kb=kb.folder)
    assert ran.answer.sql == GOOD
    assert ran.answer.usage["model_calls"] > 0
    (warning,) = (text for text in ran.answer.warnings if "fails now" in text)
    assert why in warning
    assert ran.answer.verified == [], "no model sees it either"
    assert sql not in ran.prompt("action")


async def test_a_query_is_not_run_where_its_tables_have_other_columns(shop: Path, tmp_path: Path) -> None:
    kb, url = KnowledgeBase(tmp_path / "kb"), f"sqlite:///{shop}"
    marks = table_marks(GOOD, Catalog("shop", "sqlite", (Table("orders", ()), Table("customers", ()))))
    kb.keep(replace(PAIR, tables=tuple(marks), marks=tuple(marks.values())))
    ran = await run_graph(tmp_path / "home", url, script(), kb=kb.folder)
    assert "was not run: the columns of customers, orders have changed since" in " ".join(ran.answer.warnings)
    own = ran.answer.tables
    kb.keep(replace(PAIR, tables=tuple(own), marks=tuple(own.values())))
    again = await run_graph(tmp_path / "home", url, {}, kb=kb.folder)
    assert again.answer.usage["model_calls"] == 0


@pytest.mark.parametrize("recipe", list(RECIPES))
async def test_a_question_like_it_sees_the_example_and_its_note(
    recipe: str, run: Run, kb: KnowledgeBase
) -> None:
    kb.keep(replace(PAIR, note="Orders without a customer count nowhere.", instead_of="SELECT 7"))
    said = script(tool_user={"thought": "So.", "action": "sql", "sql": GOOD})
    ran = await run(said, question=LIKE, recipe=recipe, kb=kb.folder)
    assert ran.answer.verified == [f"{QUESTION} (verified by jane on 2026-11-22)"]
    assert ran.answer.sources == [], "an example is no document"
    (writer,) = {"action", "sql_writer", "tool_user", "gen_agent"} & ran.calls().keys()
    system = ran.prompt(writer)
    shown = system[system.index("<documents>") : system.index("</documents>")]
    assert GOOD in shown
    assert shown.index("SELECT 7") < shown.index("Right:")
    assert "Orders without a customer count nowhere." in shown


async def test_pairs_that_do_not_fit_are_not_shown(run: Run, kb: KnowledgeBase) -> None:
    """Of another database, dialect or schema, too long, or damaged, which is said."""
    june = "How many orders did each city place in June?"
    kb.keep(replace(PAIR, database="archive"))
    kb.keep(replace(PAIR, dialect="duckdb"))
    kb.keep(replace(PAIR, question=june, sql="SELECT town FROM orders"))
    kb.keep(replace(PAIR, question="How many orders did each city place?!", note="word " * 2000 + "."))
    (kb.folder / "questions" / "odd.md").write_text("odd", "utf-8")
    ran = await run(script(), question=LIKE, kb=kb.folder)
    assert ran.answer.verified == []
    assert "town" not in ran.prompt("action")
    assert ran.prompt("action").count("word") < 1500
    assert any("Knowledge base: questions/odd.md was left out" in text for text in ran.answer.warnings)


async def test_a_fixed_date_is_a_warning_and_nothing_is_withheld(run: Run, kb: KnowledgeBase) -> None:
    """The database's own pair comes before a general one."""
    kb.keep(VerifiedPair(QUESTION, "SELECT 1 AS general", date="2027-01-01"))
    kb.keep(replace(PAIR, sql="SELECT city FROM customers WHERE name <> '2024-05'"))
    ran = await run({}, kb=kb.folder, abstain_below=1.0)
    assert ran.answer.status == "answered"
    assert "fixed dates (2024-05)" in " ".join(ran.answer.warnings)


@pytest.mark.heavy
async def test_a_slow_query_leaves_time_to_ask(run: Run, kb: KnowledgeBase) -> None:
    tables = ", ".join(f"orders o{number}" for number in range(30))
    kb.keep(replace(PAIR, sql=f"SELECT count(*) FROM {tables}"))  # 4 ** 30 rows
    ran = await run(script(), kb=kb.folder, deadline=3.0)
    assert ran.answer.sql == GOOD
    (warning,) = (text for text in ran.answer.warnings if "fails now (questions/" in text)
    assert "did not finish within 1." in warning
    assert ran.of("recall") == []


# Values that a question names stand in the prompts of the recipes that show them.


NAMED = "How many orders came from ghent and lyons?"


async def test_recipes_of_papers_show_none_unless_asked(run: Run, subtests: pytest.Subtests) -> None:
    for recipe, given, shown in (
        ("quorum", {}, True),
        ("team", {}, True),
        ("single", {}, False),
        ("reforce", {}, False),
        ("single", {"matched_values": 5}, True),
        ("quorum", {"matched_values": 0}, False),
    ):
        with subtests.test(recipe=recipe):
            ran = await run(script(), question=NAMED, recipe=recipe, **given)
            (writer,) = {"action", "sql_writer"} & ran.calls().keys()
            prompt = ran.prompt(writer)
            assert ("customers.city: 'Ghent', 'Lyon'" in prompt) == shown
            assert bool(ran.of("values")) == shown


async def test_at_most_so_many_and_nothing_where_nothing_fits(run: Run) -> None:
    one = await run(script(), question=NAMED, recipe="single", matched_values=1)
    assert one.of("values")[0]["values"] == ["customers.city: Ghent"]
    none = await run(script(), question="How many orders are there?", recipe="quorum")
    assert none.of("values") == []
    assert "[values of the database]" not in none.prompt("sql_writer")


async def test_names_and_values_are_spelt_as_sql_needs_them(tmp_path: Path) -> None:
    table = 'CREATE TABLE "a.b" ("full name" TEXT, password TEXT)'
    url = changed(tmp_path / "odd.db", table, """INSERT INTO "a.b" VALUES (' O''Brien  Ltd ', 'brien')""")
    ran = await run_graph(tmp_path / "home", url, script(), question="Who is O'Brien?", recipe="quorum")
    prompt = ran.prompt("sql_writer")
    assert """"a.b"."full name": ' O''Brien  Ltd '""" in prompt
    assert "'brien'" not in prompt


async def test_a_part_of_the_catalog_shows_its_own_values_only(shop: Path, tmp_path: Path) -> None:
    options = RunOptions(database=f"sqlite:///{shop}", home=tmp_path, models=["offline"])
    resources = await open_resources(options)
    try:
        cut_short = resources.read_values()
        cut_short.cancel()
        await asyncio.gather(cut_short, return_exceptions=True)
        whole, missing = await resources.matches("Ada and Lyon", 1)  # they are read again
        orders = tuple(table for table in resources.catalog.tables if table.name == "orders")
        part = resources.showing(replace(resources.catalog, tables=orders))
        assert (len(whole), missing) == (1, [])
        assert await part.matches("Ada and Lyon", 1) == ({}, [])
    finally:
        await resources.aclose()
