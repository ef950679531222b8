"""Retrieval against gold SQL: recall, schemas under a budget, groups, databases that cannot be opened."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.running.retrieval import COLUMNS_AT, TABLES_AT, Measuring, Retrieval
from quorum.knowledge.search.index import Embedder
from quorum.tools.models.embeddings import CachedEmbedder
from tests.evals.small_suite import SumScorer
from tests.knowledge.test_column_index import Letters
from tests.schema_folders import write_schema

SALES = {f"SALES_2024010{day}": {"DAY": "DATE", "AMOUNT": "FLOAT"} for day in range(1, 7)}
TABLES = SALES | {
    "CUSTOMERS": {"CUSTOMER_ID": "NUMBER", "CITY": "TEXT"},
    "ORDERS": {"ORDER_ID": "NUMBER", "CUSTOMER_ID": "NUMBER", "TOTAL": "FLOAT"},
    "WAREHOUSES": {"SHELF": "TEXT", "PIECES": "NUMBER"},
}
JOIN = "SELECT CITY, TOTAL FROM ORDERS JOIN CUSTOMERS USING (CUSTOMER_ID)"


@pytest.fixture
def url(tmp_path: Path) -> str:
    folder = tmp_path / "SHOP" / "PUBLIC"
    write_schema(folder, TABLES)
    return f"schema://{folder.parent}"


def question(id: str, text: str, url: str, *gold: str, **more: Any) -> EvalQuestion:
    return EvalQuestion(id, text, "SHOP", url, "snowflake", gold, **more)


def measured(questions: list[EvalQuestion], *asked: EvalQuestion, **options: Any) -> Retrieval:
    suite = Suite("shop", Path(), tuple(questions), SumScorer())
    return asyncio.run(Measuring(suite, asked or questions, **options).run())


def test_recall_is_of_the_gold_that_is_found_best(url: str) -> None:
    questions = [
        question("q1", "total of each order by city", url, "SELECT PIECES FROM WAREHOUSES", JOIN),
        question("q2", "pieces on each shelf", url, "SELECT PIECES FROM WAREHOUSES WHERE SHELF = 'A'"),
        question("q3", "nothing known", url),
        question("q4", "gold that cannot be read", url, "SELECT ((("),
    ]
    found = measured(questions)
    assert (found.suite, found.questions, found.databases) == ("shop", 2, 1)
    ways = found.ways["lexical"]
    assert [at.k for at in ways.tables] == list(TABLES_AT)
    assert [at.k for at in ways.columns] == list(COLUMNS_AT)
    assert (ways.tables[0].recall, ways.tables[0].all) == (0.75, 0.5), (
        "one of the join's two tables, and q2's"
    )
    assert (ways.tables[1].recall, ways.tables[1].all) == (1.0, 1.0)
    assert (ways.within, ways.missed, found.large, ways.within_large) == (1.0, (), 0, None)
    assert 0 < ways.p50_ms <= ways.p99_ms
    assert json.loads(json.dumps(found.as_json()))["ways"]["lexical"]["within"] == 1.0


def test_a_group_counts_where_any_of_its_tables_is_gold(url: str) -> None:
    asked = question("q1", "amount of all sales", url, "SELECT AMOUNT FROM SALES_20240104")
    found = measured([asked])
    assert (found.texts, found.ungrouped) == (2 + 2 + 3 + 2, 12 + 2 + 3 + 2)
    assert found.ways["lexical"].tables[0].all == 1.0
    apart = measured([asked], groups=False)
    assert apart.texts == found.ungrouped
    assert apart.ways["lexical"].tables[0].all == 0.0, "the fourth of six that are alike"


def test_tables_are_shown_while_the_budget_lasts(url: str) -> None:
    asked = question("q1", "total of each order by city", url, JOIN)
    for budget, within in ((10, 0.0), (150, 1.0)):
        found = measured([asked], budget=budget)
        figures = found.ways["lexical"]
        assert found.reachable == within
        assert (found.large, figures.within, figures.within_large) == (1, within, within)
        assert figures.missed == (() if within else ("q1",))


def test_a_questions_own_documents_are_part_of_the_query(url: str) -> None:
    asked = question("q1", "how many?", url, JOIN, knowledge={"a.md": "the total of orders by city"})
    assert measured([asked]).ways["lexical"].tables[1].all == 1.0


def test_databases_are_opened_once_and_those_that_cannot_be_are_named(url: str, tmp_path: Path) -> None:
    gone = EvalQuestion("q0", "?", "GONE", f"schema://{tmp_path}/none", "snowflake", ("SELECT 1 FROM T",))
    other = write_schema(tmp_path / "OTHER" / "PUBLIC", {"T": {"A": "TEXT"}})
    asked = [gone, question("q1", "city", url, JOIN), question("q2", "city", url, JOIN)]
    idle = EvalQuestion("q3", "?", "OTHER", f"schema://{other.parent}", "snowflake")
    found = measured([*asked, idle])
    assert (found.questions, found.databases) == (2, 1)
    assert list(found.unopened) == ["GONE"]
    whole = measured([*asked, idle], whole_suite=True)
    assert (whole.databases, whole.texts) == (2, found.texts + 1)
    assert measured([gone]).ways == {}


def test_meaning_and_both_stand_beside_words(url: str, tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="the extra quorum-sql[embeddings] is not installed")
    told: list[tuple[str, int, int]] = []
    inner: Embedder = Letters()
    found = measured(
        [question("q1", "pieces on a shelf", url, "SELECT PIECES FROM WAREHOUSES")],
        embedder=CachedEmbedder(inner, tmp_path / "e.sqlite", batch=4),
        on_progress=lambda *numbers: told.append(numbers),
    )
    assert list(found.ways) == ["lexical", "dense", "hybrid"]
    assert all(figures.columns[-1].all == 1.0 for figures in found.ways.values())
    assert told == [("SHOP", done, 9) for done in (0, 4, 8, 9)]
    assert found.ways["hybrid"].build_seconds == 0.0
