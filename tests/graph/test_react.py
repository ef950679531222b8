"""The recipe ``react``: one model with tools in a loop, and nobody who helps it."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.graph.nodes.tool_loop import NOTHING_RAN, REPEATED
from tests.graph.shop import GOOD, Ran, Run, look, of_recipe, sql

CITIES = "SELECT DISTINCT city FROM customers ORDER BY city"
NOTHING = "SELECT city FROM customers WHERE city = 'ghent'"
TYPO = "SELECT town FROM customers"
MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90) SELECT i FROM n"


def answer(text: str | None = None) -> dict[str, Any]:
    return {"thought": "That is it.", "action": "answer", "sql": text, "command": None}


def steps(*taken: Any) -> dict[str, Any]:
    """A model that takes these steps."""
    return {"tool_user": list(taken)}


def observation(ran: Ran, turn: int) -> str:
    """The last result that the model saw at step ``turn``."""
    return ran.prompt("tool_user", turn).rsplit("<result>", 1)[1].split("</result>")[0].strip()


@pytest.fixture
def react(run: Run) -> Run:
    """Run the recipe with the number of votes that is its own; an answer counts at once."""
    return of_recipe(run, "react", {"seen": False}, votes=None)


async def test_the_query_of_an_answer_is_seen_before_it_counts(react: Run) -> None:
    ran = await react(steps(answer(CITIES), answer(GOOD), answer()), seen=True)
    assert observation(ran, 1) == "city\nGhent\nLyon\n(2 rows)"
    assert (ran.answer.sql, ran.calls()) == (GOOD, {"tool_user": 3})
    last = await react(steps(answer(GOOD)), seen=True, max_steps=1)
    assert last.answer.sql == GOOD


async def test_it_explores_runs_and_answers(react: Run) -> None:
    ran = await react(steps(look("grep -i city"), sql(CITIES), sql(GOOD), answer()))
    assert (ran.calls(), ran.answer.usage["queries"]) == ({"tool_user": 4}, 2)
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert sorted(ran.answer.rows) == [["Ghent", 1], ["Lyon", 3]]
    assert "city TEXT" in observation(ran, 1)
    assert observation(ran, 2) == "city\nGhent\nLyon\n(2 rows)"
    prompt = ran.prompt("tool_user", 3)
    places = [prompt.index(text) for text in ("What is there?", '<step action="look">', "Run it.", CITIES)]
    assert places == sorted(places), "thoughts, actions and observations stay in sight"
    assert prompt.endswith("17 steps are left.")


async def test_it_sees_the_schema_text_and_the_rules_that_the_others_see(react: Run, run: Run) -> None:
    writer = {"sql_writer": {"reasoning": "So.", "sql": GOOD}}
    single = (await run(writer, recipe="single")).prompt("sql_writer").split("<task>")[0]
    assert (await react(steps(answer(GOOD)))).prompt("tool_user").split("<task>")[0] == single
    assert "table orders" in single


async def test_the_guard_stands_before_every_query(react: Run) -> None:
    ran = await react(steps(sql("DELETE FROM orders"), answer("DROP TABLE orders"), answer(), answer()))
    assert "Error: " in observation(ran, 1)
    assert "Error: " in observation(ran, 2)
    assert (ran.answer.status, ran.answer.usage["queries"]) == ("no_answer", 0)


MENDED = "I would count the orders."


async def test_the_last_query_that_ran_is_the_answer(react: Run, subtests: pytest.Subtests) -> None:
    for taken, shown, calls, queries in (
        ([answer(GOOD)], GOOD, 1, 1),
        ([sql(GOOD), sql(CITIES), answer(GOOD)], GOOD, 3, 2),  # what ran is not paid twice
        ([sql(GOOD), answer(GOOD)], GOOD, 2, 1),
        ([sql(TYPO), sql(GOOD), answer()], GOOD, 3, 1),  # the lint catches the column
        ([sql(CITIES), answer(TYPO), answer(GOOD)], GOOD, 3, 2),  # an answer that fails is none yet
        ([sql(GOOD), sql(TYPO), answer()], GOOD, 3, 1),  # the last that ran stands
        ([sql(NOTHING), sql(GOOD), answer()], GOOD, 3, 2),
        ([sql(CITIES), sql(NOTHING), answer()], NOTHING, 3, 2),  # nothing can be the answer
        ([sql(GOOD)] * 9, GOOD, 3, 1),  # two repetitions in a row end the loop
        ([look("ls"), look("ls"), sql(CITIES), look("ls"), sql(GOOD), answer()], GOOD, 6, 2),
        ([MENDED, answer(GOOD)], GOOD, 2, 1),  # a malformed step is mended in place
        ([sql(GOOD), *[MENDED] * 3], GOOD, 4, 1),  # three of them end the candidate
    ):
        with subtests.test(taken=taken):
            ran = await react(steps(*taken))
            assert (ran.answer.status, ran.answer.sql) == ("answered", shown)
            assert (ran.calls()["tool_user"], ran.answer.usage["queries"]) == (calls, queries)
            assert len(ran.of("candidate_failed")) == (taken[-1] == MENDED)
            assert ran.answer.warnings == (["The result is empty."] if shown == NOTHING else [])


async def test_what_is_observed_of_an_action(react: Run, subtests: pytest.Subtests) -> None:
    for taken, seen in (
        ([sql(TYPO), answer(GOOD)], "Error: "),
        ([sql(NOTHING), answer(GOOD)], "city\n(0 rows)"),
        ([answer(), answer(GOOD)], NOTHING_RAN),
        ([sql(TYPO), answer(), answer(GOOD)], NOTHING_RAN),
        ([sql(CITIES), sql(f"{CITIES} ;"), answer(GOOD)], REPEATED),
        ([look("ls"), look("ls"), answer(GOOD)], REPEATED),
        ([answer(TYPO), answer(TYPO), answer(GOOD)], REPEATED),
        ([sql(MANY), answer()], "i\n1\n"),
    ):
        with subtests.test(taken=taken):
            ran = await react(steps(*taken))
            assert observation(ran, len(taken) - 1).startswith(seen)
            assert ran.answer.sql in (GOOD, MANY)
            if taken[0] == sql(MANY):
                assert observation(ran, 1).endswith("\n50\n(50 of 90 rows shown, the rest was cut)")


@pytest.mark.parametrize("most", [20, 1, 3, pytest.param(100, marks=pytest.mark.heavy)])
async def test_when_the_steps_run_out_the_last_result_stands(react: Run, most: int) -> None:
    limit = {} if most == 20 else {"max_steps": most}
    ran = await react({"tool_user": lambda prompt: sql(f"SELECT {prompt.turn} AS n")}, **limit)
    assert ran.calls() == {"tool_user": most}
    assert ran.answer.rows == [[most - 1]]
    assert ran.prompt("tool_user", most - 1).endswith("This is the last step: answer now.")


async def test_when_no_query_ran_there_is_no_answer_and_it_is_said(react: Run) -> None:
    insists = await react(steps(look("ls"), answer(), answer()))
    assert (insists.calls(), insists.answer.status) == ({"tool_user": 3}, "no_answer")
    assert "gave up" in insists.answer.warnings[0]
    looks = await react({"tool_user": lambda prompt: look(f"grep {prompt.turn}")}, max_steps=4)
    assert looks.answer.status == "no_answer"
    assert looks.answer.warnings == ["No candidate has a result: No query ran in 4 steps."]


async def test_a_schema_too_large_is_linked_first_unless_switched_off(react: Run) -> None:
    linker = {"thought": "", "command": None, "linked_schema": "customers(id:INTEGER, city:TEXT)"}
    said = {**steps(answer(GOOD)), "schema_linker": linker}
    for switches, tables in (({}, ["customers"]), ({"max_link_steps": 0}, ["customers", "orders"])):
        ran = await react(said, link_above=1, **switches)
        shown = [name for name in ("customers", "orders") if f"table {name}" in ran.prompt("tool_user")]
        assert (ran.calls().total(), shown) == (3 - len(tables), tables)
