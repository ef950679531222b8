"""Runs on a database of which only the schema is here: SQL is written, linted and repaired, never run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quorum.tools.databases.schema import NOT_LIVE
from tests.graph.shop import Ran, Run, repaired, run_graph, script, sql, writing, written
from tests.schema_folders import write_schema

CITIES = "SELECT CITY, COUNT(*) FROM SHOP.PUBLIC.CUSTOMERS GROUP BY CITY"
PROBE = "SELECT CITY FROM SHOP.PUBLIC.CUSTOMERS LIMIT 5"
TYPO = "SELECT TOWN FROM SHOP.PUBLIC.CUSTOMERS"

VALID = writing(CITIES, tool_user=sql(CITIES) | {"action": "answer"})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    folder = write_schema(tmp_path / "SHOP" / "PUBLIC").parent
    return partial(run_graph, tmp_path / "home", f"schema://{folder}", votes=None)


def assert_unrun(ran: Ran, sql: str = CITIES) -> None:
    """The run has no answer, and shows SQL that only wants a database."""
    assert ran.answer.status == "no_answer"
    assert ran.answer.sql == sql
    assert (ran.answer.dialect, ran.answer.confidence) == ("snowflake", 0.0)
    assert ran.answer.usage["queries"] == 0
    assert f"No candidate has a result; the SQL shown could not be run: {NOT_LIVE}" in ran.answer.warnings


@pytest.mark.parametrize(
    "switches",
    [
        {"exploration": "always"},
        {"self_consistency": True},
        {"cte_refinement": True},
        {"model_vote": True},
    ],
)
async def test_no_option_of_reforce_asks_for_what_cannot_be_seen(switches: dict[str, Any], run: Run) -> None:
    ran = await run(VALID, recipe="reforce", votes=2, switches=switches)
    assert ran.calls() == {"sql_writer": 2}
    assert_unrun(ran)
    told = [*ran.answer.warnings, *(event["message"] for event in ran.of("exploration_ended"))]
    assert any("only the schema of the database is here" in said for said in told)


async def test_what_the_lint_finds_is_repaired_and_valid_sql_goes_before_other(run: Run) -> None:
    said = script(sql_writer=written(TYPO), self_refiner=repaired(CITIES))
    ran = await run(said, recipe="quorum", votes=1)
    assert ran.calls() == {"sql_writer": 1, "self_refiner": 1}
    assert_unrun(ran)
    said = {"sql_writer": written(TYPO), "sql_writer/c2": written(CITIES)}
    ran = await run(said, recipe="single", votes=3)
    kinds = [candidate.error_kind for candidate in ran.answer.candidates]
    assert kinds == ["column_not_found", "unavailable", "column_not_found"]
    assert_unrun(ran)


async def test_a_query_that_only_looks_does_not_end_the_loop(run: Run) -> None:
    steps = [sql(PROBE), {"thought": "So.", "action": "answer", "sql": CITIES, "command": None}]
    ran = await run({"tool_user": steps}, recipe="react")
    assert ran.calls() == {"tool_user": 2}
    assert f"Error: {NOT_LIVE}" in ran.prompt("tool_user", 1)
    assert_unrun(ran)
