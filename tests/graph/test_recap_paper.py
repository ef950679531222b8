"""What ``recap`` takes from its paper: whom feedback and linked schemas reach, and the paper's arrows."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.event_text import step_of
from quorum.graph.builder import build_graph
from quorum.graph.nodes.recap import REPEATED
from quorum.graph.recipes import find_recipe
from tests.graph.shop import FINE, GOOD, PLAN, REJECTED, STOP, Ran, Run, repaired, script, sql

BY_NAME = "SELECT c.name, COUNT(*) FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.name"
BY_ID = "SELECT customer_id, COUNT(*) FROM orders GROUP BY customer_id"
TOWN, VILLAGE = "SELECT town FROM customers", "SELECT village FROM customers"
FAULT = {"reasoning": "Per city, not per name.", "correct": False, "sql": GOOD}
RIGHT = {"reasoning": "Right.", "correct": True, "sql": None}


def linked(schema: str) -> dict[str, Any]:
    return {"thought": "Seen.", "command": None, "linked_schema": schema}


def gists(ran: Ran, kind: str) -> list[str]:
    """The lines of ``quorum trace show`` for the events of a kind."""
    return [step_of(event).gist for event in ran.of(kind)]


async def test_each_new_schema_error_is_linked_and_only_what_was_linked_is_shown(run: Run) -> None:
    found = [linked("customers(id:INTEGER, city:TEXT[Ghent])"), linked("orders(id:INTEGER, total:REAL)")]
    repairs = [repaired(VILLAGE), repaired(f"{VILLAGE} LIMIT 1"), repaired(f"{TOWN} LIMIT 1"), repaired(GOOD)]
    ran = await run(script(action=sql(TOWN), schema_linker=[*found, found[0]], self_refiner=repairs))
    assert ran.calls()["schema_linker"] == 3, "the same error twice in a row is linked once"
    assert ran.answer.sql == GOOD
    first, second, third, fourth = (ran.prompt("self_refiner", turn) for turn in range(4))
    assert "table customers" in first
    assert "table customers" in fourth
    assert "city TEXT" in first
    assert "name, city" not in first, "only what was linked"
    assert "table orders" not in first
    for prompt in (second, third):
        assert "table orders" in prompt
        assert "table customers" not in prompt, "nothing of what an earlier query needed"
    assert "table orders" in ran.prompt("planner", 2)
    assert "table customers" not in ran.prompt("planner", 2)


async def test_what_was_linked_reaches_the_critique_and_action_too(run: Run) -> None:
    found = linked("customers(id, city); orders(customer_id)")
    said = script(action=[sql(TOWN), sql(BY_ID)], schema_linker=found, validator=[REJECTED, FINE])
    ran = await run(said)
    for prompt in (ran.prompt("sql_critique", 1), ran.prompt("action", 1)):
        assert "city TEXT" in prompt
        assert "name, city" not in prompt
        assert "name TEXT" not in prompt
    assert "name, city TEXT" in ran.prompt("sql_critique", 0)


@pytest.mark.parametrize("nothing", [[linked("towns(id)")], ["no json"] * 3])
async def test_linking_that_finds_nothing_shows_the_whole_schema_again(run: Run, nothing: Any) -> None:
    found = [linked("customers(city)"), *nothing]
    ran = await run(
        script(action=sql(TOWN), schema_linker=found, self_refiner=[repaired(VILLAGE), repaired(GOOD)])
    )
    assert "table orders" not in ran.prompt("self_refiner", 0)
    assert "table orders" in ran.prompt("self_refiner", 1)
    assert "name, city TEXT" in ran.prompt("self_refiner", 1)
    assert ran.calls()["planner"] == 2, "nothing was learned that a plan could be made from"


async def test_a_schema_error_lets_the_planner_plan_anew_for_this_candidate(run: Run) -> None:
    new = {"steps": ["Take the city of each customer."], "expected_format": "city (text)"}
    said = script(planner=PLAN, validator=REJECTED) | {
        "planner/c1": new,
        "action/c1": [sql(TOWN), sql(BY_ID), STOP],
        "action/c2": [sql(GOOD), sql(BY_ID), STOP],
    }
    ran = await run(said, votes=2, switches={"own_plans": False})
    again = [e for e in ran.of("model_call") if e["agent"] == "planner"][1]
    asked = again["messages"][-1]["content"]
    assert again["candidate"] == "c1"
    assert PLAN["steps"][0] in asked, "the plan that failed"
    assert "no column town" in asked
    assert new["steps"][0] in ran.prompt("self_refiner")
    later = {
        event["candidate"]: event["messages"][-1]["content"]
        for event in ran.of("model_call")
        if event["agent"] == "action"
    }
    assert new["steps"][0] in later["c1"]
    assert new["steps"][0] not in later["c2"]
    assert ran.calls()["plan_critique"] == 2, "the first plan, and the one from what was linked"


async def test_a_plan_from_what_was_linked_is_criticised_and_written_anew(run: Run) -> None:
    reviews = [{"update_plan": wanted, "feedback": "By city."} for wanted in (False, True, True, True, True)]
    steps = [PLAN] + [PLAN | {"steps": [f"Plan {number}."]} for number in range(1, 6)]
    ran = await run(script(action=sql(TOWN), planner=steps, plan_critique=reviews))
    assert ran.calls()["planner"] == 1 + 4
    assert ran.calls()["plan_critique"] == 1 + 3, "up to three times (Table 1)"
    assert "By city." in ran.prompt("planner", 2)
    assert "Plan 4." in ran.prompt("self_refiner")


@pytest.mark.parametrize("own", [True, False])
async def test_each_model_plans_by_itself_unless_one_plan_is_shared(own: bool, run: Run) -> None:
    """Each expert runs the whole pipeline, and has one vote."""
    models = {name: script(planner=PLAN | {"steps": [f"{name} plans."]}) for name in "ab"}
    ran = await run(models, models=["a", "b"], votes=None, switches={"own_plans": own})
    assert [candidate.model for candidate in ran.answer.candidates] == ["a", "b"]
    shown = [ran.prompt("action", turn) for turn in range(2)]
    assert [sum(f"{name} plans." in prompt for prompt in shown) for name in "ab"] == (
        [1, 1] if own else [2, 0]
    )
    assert ran.calls()["plan_critique"] == ran.calls()["syntax_retriever"] == (2 if own else 1)


async def test_action_learns_that_its_query_was_replaced_and_why(run: Run) -> None:
    ran = await run(
        script(action=[sql(BY_NAME), sql(BY_ID)], sql_critique=[FAULT, RIGHT], validator=[REJECTED, FINE])
    )
    prompt = ran.prompt("action", 1)
    wrote, ran_instead = prompt.split("<step ")[1:]
    assert wrote.startswith('action="sql">')
    assert BY_NAME in wrote
    assert "Not run." in wrote
    assert "Per city, not per name." in wrote
    assert ran_instead.startswith('action="sql" by="sql_critique">')
    assert GOOD in ran_instead
    assert "Count per city." in prompt.split("<step ")[-1]
    assert gists(ran, "sql_review")[0] == "corrects it: Per city, not per name."


async def test_the_refiner_learns_what_validator_and_critique_said(run: Run) -> None:
    said = script(action=[sql(BY_ID), sql(BY_NAME)], validator=[REJECTED, FINE])
    ran = await run(said | {"sql_critique": [RIGHT, FAULT | {"sql": TOWN}, RIGHT]})
    prompt = ran.prompt("self_refiner")
    tried = prompt.split("<earlier_sql>")[1:]
    assert BY_ID in tried[0]
    assert "Its result was rejected: Count per city." in tried[0]
    assert BY_NAME in tried[1]
    assert "Per city, not per name." in tried[1]
    assert TOWN in prompt.split("<sql>")[1]


async def test_action_cannot_bring_back_a_rejected_query(run: Run) -> None:
    ran = await run(script(action=[sql(BY_NAME), sql(f"{BY_NAME};"), sql(GOOD)], validator=[REJECTED, FINE]))
    assert ran.answer.sql == GOOD
    assert ran.answer.usage["queries"] == 2
    assert ran.calls()["validator"] == 2
    assert ran.calls()["sql_critique"] == 2
    assert REPEATED in ran.prompt("action", 2)
    assert gists(ran, "not_run") == [
        "It was tried before and is not run again: Its result was rejected: Count per city."
    ]


async def test_the_critique_cannot_bring_back_a_rejected_query(run: Run) -> None:
    wrong = FAULT | {"sql": BY_NAME, "reasoning": "By name."}
    said = script(action=[sql(BY_NAME), sql(BY_ID), sql(GOOD)], sql_critique=[RIGHT, wrong, RIGHT])
    ran = await run(said | {"validator": [REJECTED, REJECTED, FINE]})
    assert ran.answer.usage["queries"] == 3
    assert ran.answer.sql == GOOD
    assert "By name." in ran.prompt("action", 2), "its reason is not lost"
    assert ran.prompt("action", 2).count("Its result was rejected: Count per city.") == 2
    assert len(ran.of("not_run")) == 1


@pytest.mark.parametrize("back", ["self_refiner", "action"])
async def test_a_query_that_was_replaced_before_it_ran_can_be_brought_back(run: Run, back: str) -> None:
    """The critique was wrong: the database says so of its query, or the Validator."""
    wrong = FAULT | {"sql": TOWN if back == "self_refiner" else BY_NAME}
    said = script(action=sql(GOOD), sql_critique=[wrong, wrong, RIGHT], validator=[REJECTED, FINE])
    if back == "self_refiner":
        said |= {"self_refiner": repaired(GOOD), "validator": FINE}
    ran = await run(said)
    assert ran.answer.sql == GOOD
    assert ran.answer.candidates[0].approved
    assert [event["agent"] for event in ran.of("not_run")] == ["sql_critique"], "its query is not run again"


async def test_the_refiner_cannot_bring_back_a_rejected_query(run: Run) -> None:
    ran = await run(
        script(action=[sql(BY_NAME), sql(TOWN), STOP], self_refiner=repaired(BY_NAME), validator=REJECTED)
    )
    assert ran.answer.usage["queries"] == 1
    assert ran.calls()["validator"] == 1
    assert len(ran.of("not_run")) == 1
    assert any("Validator" in warning for warning in ran.answer.warnings)


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (REJECTED | {"columns_not_needed": ["orders"]}, ["Count per city.", "Columns not needed: orders."]),
        (FINE | {"valid_result": False, "reasoning": "It is no count."}, ["It is no count."]),
        (FINE | {"valid_result": False}, ["The result cannot be the answer."]),
        (FINE | {"result_empty": True}, ["The result is empty."]),
    ],
)
async def test_action_is_told_all_that_the_validator_says(
    verdict: dict[str, Any], told: list[str], run: Run
) -> None:
    ran = await run(script(action=[sql(BY_NAME), sql(GOOD)], validator=[verdict, FINE]))
    prompt = ran.prompt("action", 1)
    for words in told:
        assert words in prompt.split("<step ")[-1]
    assert PLAN["expected_format"] in prompt


async def test_a_refined_query_is_reviewed_once_with_its_result(run: Run) -> None:
    ran = await run(script(action=sql("SELECT city FROM customers GROUP BY")))
    before, after = (ran.prompt("sql_critique", turn) for turn in range(2))
    assert "before it runs" in before
    assert "<result>" not in before.split("<task>sql_critique")[1]
    assert GOOD in after
    assert "2 rows; columns: city, orders" in after
    assert ran.calls()["sql_critique"] == 2
    assert ran.calls()["validator"] == 1


async def test_a_refined_query_that_fails_again_is_not_reviewed(run: Run) -> None:
    ran = await run(script(action=sql(TOWN), self_refiner=[repaired(VILLAGE), repaired(GOOD)]))
    assert ran.calls()["sql_critique"] == 2, "Action's, and the one that ran"


async def test_a_correction_after_a_result_runs_and_is_validated(run: Run) -> None:
    said = script(action=[sql(TOWN), sql(BY_ID)], self_refiner=repaired(BY_NAME), validator=[REJECTED, FINE])
    ran = await run(said | {"sql_critique": [RIGHT, FAULT, RIGHT]})
    assert ran.calls()["sql_critique"] == 3, "the correction itself is not reviewed again"
    _, refined, corrected = ran.prompt("action", 1).split("<step ")[1:]
    assert refined.startswith('action="sql" by="self_refiner">')
    assert "3 rows" in refined
    assert "Per city, not per name." in refined
    assert corrected.startswith('action="sql" by="sql_critique">')
    assert [e["sql"] for e in ran.of("result")] == [BY_NAME, GOOD, BY_ID]


async def test_a_planner_whose_replies_are_lost_ends(run: Run) -> None:
    ran = await run(
        script(planner=[PLAN, *["no json"] * 9], plan_critique={"update_plan": True, "feedback": "Briefer."})
    )
    assert ran.calls()["plan_critique"] <= 3
    assert ran.answer.status == "answered"


PLANNING = {"Planner", "PlanCritique"}


@pytest.mark.parametrize(
    ("switches", "gone"),
    [
        ({"max_refinements": 0}, {"SelfRefiner", "SchemaLinker", *PLANNING}),
        ({"max_link_steps": 0}, {"SchemaLinker", *PLANNING}),
        ({"link_on_error": False}, {"SchemaLinker", *PLANNING}),
        ({"replan": False}, PLANNING),
        ({"plan_critique": False}, {"PlanCritique"}),
        ({"validation": False}, {"Validator"}),
        ({"sql_critique": False}, {"SQLCritique"}),
    ],
)
async def test_what_a_limit_takes_out_is_not_drawn(
    switches: dict[str, Any], gone: set[str], run: Run
) -> None:
    def nodes(**given: Any) -> set[str]:
        shared = {"own_plans": False} | given
        drawn = build_graph(find_recipe("recap", shared)).get_graph(xray=1).nodes
        return {name.partition(":")[2] for name in drawn if name.startswith("candidate:")}

    assert nodes() - nodes(**switches) == gone
    ran = await run(script(action=sql(TOWN)), switches=switches)
    assert ran.answer.status in ("answered", "no_answer")


@pytest.mark.parametrize("switches", [{"max_plans": 1}, {"plan_critique": False}])
def test_a_plan_that_cannot_be_written_anew_is_not_reviewed(switches: dict[str, Any]) -> None:
    drawn = build_graph(find_recipe("recap", switches)).get_graph(xray=1).nodes
    assert not any(name.endswith("PlanCritique") for name in drawn)
