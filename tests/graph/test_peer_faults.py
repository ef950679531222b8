"""What ReFoRCE's published code does wrong, each as a test that this one does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.graph.ballots import Cluster
from quorum.graph.nodes.tie_breaking import drawn
from quorum.knowledge.errors import ModelUnavailable
from quorum.tools.models.scripted import Prompt
from tests.graph.shop import (
    CITIES,
    GOOD,
    NAMES,
    OTHER,
    TOWNS,
    Run,
    changed,
    corrected,
    explored,
    of_recipe,
    script,
    taking_turns,
)

DOWN = ModelUnavailable("The endpoint is unreachable.")
TIED = taking_turns(GOOD, OTHER, found=GOOD)
MENDED = {
    "column_explorer": explored(TOWNS, NAMES, CITIES),
    "exploration_corrector": corrected(
        "SELECT DISTINCT city FROM customers", q1="SELECT city, name FROM customers LIMIT 20"
    ),
}
"""Three exploration queries, two with the same fault; one correction mends both."""


@pytest.fixture
def run(run: Run) -> Run:
    """Over the shop, with two candidates of the recipe ``reforce``; each of the second round explores."""
    return of_recipe(run, "reforce", votes=2)


async def test_one_correction_is_one_call_and_mends_the_similar_queries(run: Run) -> None:
    ran = await run(script(sql_writer=TIED, **MENDED))
    assert ran.calls() == {"sql_writer": 4, "column_explorer": 2, "exploration_corrector": 2}
    shown = ran.prompt("exploration_corrector")
    assert NAMES["sql"] in shown, "the queries that wait are shown with the one that failed"
    asked = [event["sql"] for event in ran.of("query") if event["agent"] == "column_explorer"]
    assert NAMES["sql"] not in asked, "the similar query never runs with the fault"
    assert len(asked) == 2 * 4
    prompt = ran.prompt("sql_writer", 2)
    for sql in ("SELECT DISTINCT city FROM customers\n", "SELECT city, name FROM customers LIMIT 20\n"):
        assert sql in prompt, "what was corrected is kept"
    assert sorted(event["corrected"] for event in ran.of("finding")) == [False] * 4 + [True] * 2


async def test_a_correction_that_does_not_work_mends_nothing(run: Run) -> None:
    """Only a correction that worked rewrites the queries that follow."""
    said = {**MENDED, "exploration_corrector": corrected("SELECT village FROM customers", q1="SELECT 1 AS x")}
    ran = await run(script(sql_writer=TIED, **said), max_corrections=1)
    asked = [event["sql"] for event in ran.of("query") if event["agent"] == "column_explorer"]
    assert NAMES["sql"] in asked


@pytest.mark.parametrize("role", ["column_explorer", "exploration_corrector"])
async def test_exploration_ends_when_no_model_answers(run: Run, role: str) -> None:
    ran = await run(script(sql_writer=TIED, **{**MENDED, role: DOWN}))
    assert ran.calls()[role] <= 1
    assert ran.answer.status == "answered"
    assert "Column exploration ended early: The endpoint is unreachable. (c3, c4)" in ran.answer.warnings


async def test_one_malformed_reply_loses_one_table_only(run: Run, shop: Path) -> None:
    changed(shop, "CREATE TABLE weather (day TEXT, degrees REAL)")

    def link(prompt: Prompt) -> Any:
        if "table orders" in prompt.text:
            return '{"think": "cut off'
        return {"think": "", "answer": "Y" if "table customers" in prompt.text else "N", "columns": []}

    ran = await run(script(table_linker=link), link_above=0)
    prompt = ran.prompt("sql_writer")
    assert "table orders" in prompt, "the table whose judgement was lost stays"
    assert "table customers" in prompt
    assert "weather" not in prompt
    assert any("reply on orders could not be used" in said for said in ran.answer.warnings)
    assert ran.answer.sql == GOOD


@given(st.permutations(["a", "b", "c", "light"]), st.integers(0, 2**32), st.sampled_from(["tied", "all"]))
def test_a_draw_knows_no_order(order: list[str], seed: int, among: Any) -> None:
    made = {name: Cluster(name, name, (f"{name}1", f"{name}2"), ("m",), 2) for name in "abc"}
    made["light"] = Cluster("light", "light", ("light1",), ("m",), 1)
    winner, chosen = drawn([made[name] for name in order], seed, among)
    again, _ = drawn([made[name] for name in sorted(order)], seed, among)
    assert (winner, chosen.key) == (again, winner[:-1])
    assert among == "all" or chosen.key != "light"
