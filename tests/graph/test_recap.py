"""The recipe ``recap`` end to end over a real database, with scripted replies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quorum.graph.nodes.recap import REPEATED
from quorum.knowledge.syntax import sections
from quorum.tools.query import ErrorKind
from tests.graph.shop import GOOD, REJECTED, STOP, Run, repaired, script, sql

BY_NAME = "SELECT c.name, COUNT(*) FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.name"


async def test_the_plan_is_critiqued_and_written_anew_three_times_at_most(run: Run) -> None:
    """No review is paid for of which nothing can follow: the fourth plan has none."""
    ran = await run(script(plan_critique={"update_plan": True, "feedback": "Count distinct orders."}))
    assert ran.calls()["plan_critique"] == 3
    assert ran.calls()["planner"] == 4
    assert "Is every step there" in ran.prompt("plan_critique")
    assert "clear and coherent" in ran.prompt("plan_critique")
    assert "Count distinct orders." in ran.prompt("planner", 1)
    assert ran.answer.status == "answered"


async def test_an_execution_error_goes_to_the_refiner_with_its_kind_and_hints(run: Run) -> None:
    ran = await run(script(action=sql("SELECT city FROM customers GROUP BY")))
    prompt = ran.prompt("self_refiner")
    assert f'<error kind="{ErrorKind.REFUSED}">' in prompt or f'<error kind="{ErrorKind.SYNTAX}">' in prompt
    assert "<hints>" in prompt
    assert ran.answer.sql == GOOD
    assert ran.answer.candidates[0].repairs == 1


async def test_a_schema_error_calls_the_linker_before_the_refiner(run: Run) -> None:
    ran = await run(script(action=sql("SELECT town, COUNT(*) FROM customers GROUP BY town")))
    assert ran.calls()["schema_linker"] == 1
    assert "town" in ran.prompt("schema_linker")
    assert ran.answer.usage["queries"] == 1, "the lint must catch the column before the database is asked"


def _unknown(prompt: Any) -> dict[str, Any]:
    return repaired(f"SELECT nothing_{prompt.turn} FROM customers")


async def test_refinement_ends_at_its_limit_and_shows_the_best_effort(run: Run) -> None:
    ran = await run(script(action=[sql("SELECT nowhere FROM customers"), STOP], self_refiner=_unknown))
    assert ran.calls()["self_refiner"] == 5
    assert ran.answer.status == "no_answer"
    assert ran.answer.sql == "SELECT nothing_4 FROM customers"
    assert "nothing_4" in ran.answer.warnings[0]


async def test_action_goes_on_once_the_repairs_of_its_query_are_used_up(run: Run) -> None:
    """Each of its queries has five: the loop ends at the step limit, not at the first that stays broken."""
    queries = [sql("SELECT no_1 FROM orders"), sql("SELECT no_2 FROM orders"), sql(GOOD)]
    ran = await run(script(action=queries, self_refiner=_unknown))
    assert ran.calls()["self_refiner"] == 10
    assert ran.answer.sql == GOOD
    assert "nothing_4" in ran.prompt("action", 1), "it sees what the SelfRefiner tried"


async def test_the_validators_rejections_lead_back_to_action_until_its_steps_are_used_up(run: Run) -> None:
    tries = [sql(f"{GOOD} LIMIT {number}") for number in range(30, 20, -1)]
    ran = await run(script(action=tries, validator=REJECTED))
    assert ran.calls()["action"] == ran.calls()["validator"] == 10
    assert ran.answer.status == "answered"


async def test_a_result_that_stays_rejected_is_shown_with_a_warning(run: Run) -> None:
    ran = await run(script(action=[sql(BY_NAME), sql(GOOD), STOP], validator=REJECTED))
    assert ran.answer.status == "answered"
    assert any("Validator" in warning for warning in ran.answer.warnings)


async def test_a_look_is_answered_from_the_schema_files_without_a_query(run: Run) -> None:
    look = {"thought": "What is there?", "action": "look", "sql": None, "command": "ls"}
    ran = await run(script(action=[look, sql(GOOD)]))
    assert "customers" in ran.prompt("action", 1).split("<result>")[1]
    assert ran.answer.usage["queries"] == 1


async def test_a_repeated_action_is_not_taken_while_there_are_steps(run: Run) -> None:
    look = {"thought": "Again.", "action": "look", "sql": None, "command": "ls"}
    ran = await run(script(action=look))
    assert ran.calls()["action"] == 10
    assert REPEATED in ran.prompt("action", 2)
    assert ran.answer.status == "no_answer"


async def test_terminate_accepts_the_last_result(run: Run) -> None:
    ran = await run(script(action=[sql(GOOD), STOP], validator=REJECTED))
    assert ran.answer.sql == GOOD
    assert ran.calls()["validator"] == 1


async def test_all_roles_with_a_schema_share_their_prefix_to_the_byte(run: Run) -> None:
    ran = await run(script(), votes=3)
    with_schema = ("planner", "plan_critique", "action", "sql_critique")
    systems = {e["messages"][0]["content"] for e in ran.of("model_call") if e["agent"] in with_schema}
    assert len(systems) == 1


async def test_state_stays_small(run: Run) -> None:
    ran = await run(script(action=sql("SELECT hex(zeroblob(90000)) AS big FROM customers")))
    big = next(event for event in ran.events if event["kind"] == "result")
    assert len(str(big["preview"])) < 2_000


async def test_an_expert_whose_sql_never_runs_loses_weight_for_later_runs(run: Run) -> None:
    bad = {**script(), "action": sql("SELECT nowhere FROM customers"), "self_refiner": [GOOD]}
    said = {"a": script(), "b": bad}
    first = await run(said, models=["a", "b"], votes=2, switches={"max_refinements": 0})
    second = await run(said, models=["a", "b"], votes=2, switches={"max_refinements": 0})
    assert first.vote.weights == {"a": 1.0, "b": 1.0}
    assert second.vote.weights["a"] == 1.0
    assert second.vote.weights["b"] < 1.0


async def test_a_schema_above_the_limit_is_linked_before_planning(run: Run) -> None:
    ran = await run(script(), link_above=10)
    assert ran.of("model_call")[0]["agent"] == "schema_linker"
    shown = ran.prompt("planner").split("\n<schema")[1].split("</schema>")[0]
    assert "table customers" in shown
    assert "total" not in shown, "only what was linked, in the notation of any schema"
    assert ran.answer.sql == GOOD


@pytest.mark.parametrize("words", ["none", "I found no table that fits.", ""])
async def test_words_that_name_no_table_are_no_schema(words: str, run: Run) -> None:
    linker = {"thought": "?", "command": None, "linked_schema": words} if words else "no json at all"
    ran = await run(script(schema_linker=linker), link_above=10)
    assert "total" in ran.prompt("planner")
    assert any("linking found nothing" in warning for warning in ran.answer.warnings)


async def test_documents_and_syntax_reach_the_prompts(run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "terms.md").write_text("# Orders\n\nAn order counts once its total is above 6.\n")
    asked = script(syntax_retriever={"features": ["NULL ordering"]})
    ran = await run(asked, documents=str(tmp_path / "docs"))
    assert "total is above 6" in ran.prompt("planner")
    assert "decide what a business term means" in ran.prompt("action")
    assert "<syntax>" in ran.prompt("action")
    assert "<syntax>" not in ran.prompt("planner")


async def test_the_syntax_retriever_asks_in_its_own_words(run: Run) -> None:
    wanted = script(
        syntax_retriever={"features": ["string_agg or group_concat: the names of a group in one text"]}
    )
    ran = await run(wanted)
    listed = [section.topic for section in sections("sqlite")]
    assert listed
    asked = ran.prompt("syntax_retriever").split("<task>")[1]
    assert not [topic for topic in listed if f"- {topic}\n" in asked]
    assert "group_concat" in ran.prompt("action").split("<syntax>")[1]
