"""The recipe ``react``: one model with tools in a loop, and nobody who helps it."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.graph.nodes.tool_loop import NOTHING_RAN, REPEATED, after_query, after_step
from quorum.graph.state import CandidateState, Failure
from tests.graph.shop import GOOD, Ran, Run, of_recipe, sql

CITIES = "SELECT DISTINCT city FROM customers ORDER BY city"
BY_NAME = "SELECT c.name, COUNT(*) FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.name"
NOTHING = "SELECT city FROM customers WHERE city = 'ghent'"
TYPO = "SELECT town FROM customers"


def look(command: str) -> dict[str, Any]:
    return {"thought": "What is there?", "action": "look", "sql": None, "command": command}


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
    assert ran.answer.sql == GOOD
    assert ran.calls() == {"tool_user": 3}
    last = await react(steps(answer(GOOD)), seen=True, max_steps=1)
    assert last.answer.sql == GOOD


async def test_it_explores_runs_and_answers(react: Run) -> None:
    ran = await react(steps(look("grep -i city"), sql(CITIES), sql(GOOD), answer()))
    assert ran.calls() == {"tool_user": 4}
    assert ran.answer.usage["queries"] == 2
    assert ran.answer.status == "answered"
    assert ran.answer.sql == GOOD
    assert sorted(ran.answer.rows) == [["Ghent", 1], ["Lyon", 3]]
    assert "city TEXT" in observation(ran, 1)
    assert observation(ran, 2) == "city\nGhent\nLyon\n(2 rows)"
    assert len(ran.answer.candidates) == 1


async def test_thoughts_actions_and_observations_stay_in_sight(react: Run) -> None:
    ran = await react(steps(look("ls"), sql(CITIES), answer(GOOD)))
    prompt = ran.prompt("tool_user", 2)
    places = [prompt.index(text) for text in ("What is there?", '<step action="look">', "Run it.", CITIES)]
    assert places == sorted(places)
    assert prompt.endswith("18 steps are left.")


async def test_it_sees_the_schema_text_and_the_rules_that_the_others_see(react: Run, run: Run) -> None:
    writer = {"sql_writer": {"reasoning": "So.", "sql": GOOD}}
    single = (await run(writer, recipe="single")).prompt("sql_writer").split("<task>")[0]
    assert (await react(steps(answer(GOOD)))).prompt("tool_user").split("<task>")[0] == single
    assert "table orders" in single


async def test_an_answer_may_be_the_first_and_only_step(react: Run) -> None:
    ran = await react(steps(answer(GOOD)))
    assert (ran.answer.usage["model_calls"], ran.answer.usage["queries"]) == (1, 1)
    assert ran.answer.sql == GOOD


async def test_an_answer_names_any_query_and_one_that_ran_is_not_paid_twice(react: Run) -> None:
    ran = await react(steps(sql(GOOD), sql(CITIES), answer(GOOD)))
    assert ran.answer.sql == GOOD
    assert ran.answer.row_count == 2
    assert ran.answer.usage["queries"] == 2


async def test_an_answer_that_names_the_last_query_does_not_run_it_again(react: Run) -> None:
    ran = await react(steps(sql(GOOD), answer(GOOD)))
    assert len(ran.of("query")) == len(ran.of("result")) == 1
    assert ran.answer.sql == GOOD


async def test_an_error_is_an_observation_that_the_model_repairs_itself(react: Run) -> None:
    ran = await react(steps(sql(TYPO), sql(GOOD), answer()))
    assert observation(ran, 1).startswith("Error: ")
    assert "town" in observation(ran, 1)
    assert ran.calls() == {"tool_user": 3}
    assert ran.answer.sql == GOOD
    assert ran.answer.usage["queries"] == 1, "the lint must catch the column before the database is asked"


async def test_the_guard_stands_before_every_query(react: Run) -> None:
    ran = await react(steps(sql("DELETE FROM orders"), answer("DROP TABLE orders"), answer(), answer()))
    assert "Error: " in observation(ran, 1)
    assert "Error: " in observation(ran, 2)
    assert ran.answer.status == "no_answer"
    assert ran.answer.usage["queries"] == 0


async def test_an_answer_that_fails_is_no_answer_yet(react: Run) -> None:
    ran = await react(steps(sql(CITIES), answer(TYPO), answer(GOOD)))
    assert observation(ran, 2).startswith("Error: ")
    assert ran.answer.sql == GOOD


async def test_an_empty_result_is_an_observation(react: Run) -> None:
    ran = await react(steps(sql(NOTHING), sql(GOOD), answer()))
    assert observation(ran, 1) == "city\n(0 rows)"
    assert ran.answer.sql == GOOD


async def test_an_empty_result_can_be_the_answer(react: Run) -> None:
    ran = await react(steps(sql(CITIES), sql(NOTHING), answer()))
    assert (ran.answer.status, ran.answer.sql, ran.answer.row_count) == ("answered", NOTHING, 0)


async def test_after_a_failed_query_the_last_that_ran_stands(react: Run) -> None:
    ran = await react(steps(sql(GOOD), sql(TYPO), answer()))
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert ran.answer.warnings == []


async def test_an_answer_before_any_query_ran_is_refused(react: Run) -> None:
    ran = await react(steps(answer(), answer(GOOD)))
    assert observation(ran, 1) == NOTHING_RAN
    assert ran.answer.sql == GOOD
    failed = await react(steps(sql(TYPO), answer(), sql(GOOD), answer()))
    assert observation(failed, 2) == NOTHING_RAN
    assert failed.answer.sql == GOOD


async def test_who_insists_gives_up(react: Run) -> None:
    ran = await react(steps(look("ls"), answer(), answer()))
    assert ran.calls() == {"tool_user": 3}
    assert ran.answer.status == "no_answer"
    assert "gave up" in ran.answer.warnings[0]


async def test_the_observation_shows_fifty_narrow_rows_and_says_what_was_cut(react: Run) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90) SELECT i FROM n"
    ran = await react(steps(sql(many), answer()))
    lines = observation(ran, 1).splitlines()
    assert lines[:2] == ["i", "1"]
    assert lines[-2:] == ["50", "(50 of 90 rows shown, the rest was cut)"]
    assert ran.answer.row_count == 90


@pytest.mark.parametrize("again", [sql(f"{CITIES} ;"), look("ls"), answer(TYPO)])
async def test_a_repeated_action_is_not_taken(react: Run, again: dict[str, Any]) -> None:
    first = {**again, "sql": CITIES} if again["action"] == "sql" else again
    ran = await react(steps(first, again, answer(GOOD)))
    assert observation(ran, 2) == REPEATED
    assert len(ran.of("query")) == (1 if again["action"] == "look" else 2)
    assert ran.answer.sql == GOOD


async def test_two_repetitions_in_a_row_end_the_loop_with_the_last_result(react: Run) -> None:
    ran = await react({"tool_user": sql(GOOD)})
    assert ran.calls() == {"tool_user": 3}
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)


async def test_repetitions_that_are_not_in_a_row_do_not_end_the_loop(react: Run) -> None:
    ran = await react(steps(look("ls"), look("ls"), sql(CITIES), look("ls"), sql(GOOD), answer()))
    assert ran.calls() == {"tool_user": 6}
    assert ran.answer.sql == GOOD


async def test_a_malformed_step_is_mended_in_place(react: Run) -> None:
    ran = await react(steps("I would count the orders.", answer(GOOD)))
    assert ran.calls() == {"tool_user": 2}
    assert ran.answer.sql == GOOD


async def test_a_model_that_stays_malformed_ends_with_the_last_result(react: Run) -> None:
    ran = await react(steps(sql(GOOD), *["what?"] * 3))
    assert ran.calls() == {"tool_user": 4}
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert len(ran.of("candidate_failed")) == 1


def restless(kind: str) -> Any:
    """A model that never answers and never repeats itself."""

    def reply(prompt: Any) -> dict[str, Any]:
        return sql(f"SELECT {prompt.turn} AS n") if kind == "sql" else look(f"grep {prompt.turn}")

    return reply


@pytest.mark.parametrize(("switches", "most"), [({}, 20), ({"max_steps": 1}, 1), ({"max_steps": 3}, 3)])
async def test_when_the_steps_run_out_the_last_result_stands(
    react: Run, switches: dict[str, int], most: int
) -> None:
    ran = await react(restless("sql"), switches=switches)
    assert ran.calls() == {"tool_user": most}
    assert ran.answer.rows == [[most - 1]]
    assert ran.prompt("tool_user", most - 1).endswith("This is the last step: answer now.")


async def test_when_the_steps_run_out_without_a_query_it_is_said(react: Run) -> None:
    ran = await react(restless("look"), switches={"max_steps": 4})
    assert ran.answer.status == "no_answer"
    assert ran.answer.warnings == ["No candidate has a result: No query ran in 4 steps."]


@pytest.mark.heavy
async def test_the_highest_limit_can_be_reached(react: Run) -> None:
    ran = await react(restless("sql"), switches={"max_steps": 100})
    assert ran.answer.rows == [[99]]


async def test_a_candidate_that_had_no_call_left_says_what_stopped_it(react: Run) -> None:
    ran = await react(steps(answer(GOOD)), votes=2, max_calls=1)
    assert ran.answer.stopped_by == "max_calls"
    assert sum("stopped by max_calls" in candidate.error for candidate in ran.answer.candidates) == 1


async def test_more_votes_are_held_and_counted(react: Run) -> None:
    said = {**steps(sql(CITIES), answer(GOOD)), "tool_user/c2": [sql(BY_NAME), answer()]}
    ran = await react(said, votes=3)
    assert ran.calls() == {"tool_user": 6}
    assert ran.answer.sql == GOOD
    assert [cluster.candidates for cluster in ran.vote.clusters] == [["c1", "c3"], ["c2"]]
    temperatures = [event["temperature"] for event in ran.of("candidate")]
    assert temperatures == [1.0, 1.0, 1.0], "as all of its models (000, 4.1)"


async def test_a_schema_too_large_is_linked_first_unless_switched_off(react: Run) -> None:
    linker = {"thought": "", "command": None, "linked_schema": "customers(id:INTEGER, city:TEXT)"}
    said = {**steps(answer(GOOD)), "schema_linker": linker}
    linked = await react(said, link_above=1)
    assert linked.calls() == {"schema_linker": 1, "tool_user": 1}
    assert "table customers" in linked.prompt("tool_user")
    assert "table orders" not in linked.prompt("tool_user")
    whole = await react(said, link_above=1, max_link_steps=0)
    assert whole.calls() == {"tool_user": 1}
    assert "table orders" in whole.prompt("tool_user")
    assert whole.answer.warnings == []


@pytest.mark.parametrize(
    ("state", "on_step", "on_query"),
    [
        ({"next": "again", "actions": 1}, "take_step", "take_step"),
        ({"next": "again", "actions": 2}, "finish", "finish"),
        ({"next": "sql", "actions": 2}, "run_query", "finish"),
        ({"next": "sql", "actions": 1, "error": Failure("timeout", "")}, "run_query", "take_step"),
        ({"next": "sql", "actions": 1, "error": Failure("unavailable", "")}, "run_query", "finish"),
        ({"next": "answer", "actions": 1}, "run_query", "finish"),
        ({"next": "answer", "actions": 1, "error": Failure("syntax", "")}, "run_query", "take_step"),
        ({"next": "sql", "actions": 1, "stopped_by": "max_calls"}, "finish", "finish"),
        ({"next": "again", "actions": 1, "error": Failure("malformed_reply", "")}, "finish", "finish"),
    ],
)
def test_the_ways_of_the_loop(state: dict[str, Any], on_step: str, on_query: str) -> None:
    here = CandidateState(**state)
    assert after_step(here, max_steps=2) == on_step
    assert after_query(here, max_steps=2) == on_query
