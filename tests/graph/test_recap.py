"""The recipe ``recap``: the agents of its paper in turn, whom feedback and linked schemas reach, limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quorum.event_text import step_of
from quorum.graph.nodes.recap import REPEATED
from quorum.graph.options import RunOptions
from quorum.knowledge.syntax import sections
from quorum.tools.models.scripted import Prompt
from quorum.tools.query import ErrorKind
from tests.graph.shop import (
    CITIES,
    FINE,
    GOOD,
    NOTHING,
    OTHER,
    PLAN,
    REJECTED,
    STOP,
    TOWNS,
    Ran,
    Run,
    changed,
    corrected,
    explored,
    look,
    number,
    repaired,
    run_options,
    script,
    sql,
    unknown,
)

BY_NAME = "SELECT c.name, COUNT(*) FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.name"
BY_ID = "SELECT customer_id, COUNT(*) FROM orders GROUP BY customer_id"
TOWN, VILLAGE = "SELECT town FROM customers", "SELECT village FROM customers"
UNGROUPED = "SELECT city FROM customers GROUP BY"
FAULT = {"reasoning": "Per city, not per name.", "correct": False, "sql": GOOD}
RIGHT = {"reasoning": "Right.", "correct": True, "sql": None}


def linked(schema: str) -> dict[str, Any]:
    return {"thought": "Seen.", "command": None, "linked_schema": schema}


def gists(ran: Ran, kind: str) -> list[str]:
    """The lines of ``quorum trace show`` for the events of a kind."""
    return [step_of(event).gist for event in ran.of(kind)]


# Planning.


async def test_the_plan_is_critiqued_and_written_anew_three_times_at_most(run: Run) -> None:
    """No review is paid for of which nothing can follow: the fourth plan has none."""
    ran = await run(script(plan_critique={"update_plan": True, "feedback": "Count distinct orders."}))
    assert (ran.calls()["plan_critique"], ran.calls()["planner"]) == (3, 4)
    assert "Is every step there" in ran.prompt("plan_critique")
    assert "clear and coherent" in ran.prompt("plan_critique")
    assert "Count distinct orders." in ran.prompt("planner", 1)
    assert ran.answer.status == "answered"


@pytest.mark.parametrize("own", [True, False])
async def test_each_model_plans_by_itself_unless_one_plan_is_shared(own: bool, run: Run) -> None:
    """Each expert runs the whole pipeline, and has one vote."""
    models = {name: script(planner=PLAN | {"steps": [f"{name} plans."]}) for name in "ab"}
    ran = await run(models, models=["a", "b"], votes=None, switches={"own_plans": own})
    assert [candidate.model for candidate in ran.answer.candidates] == ["a", "b"]
    shown = [ran.prompt("action", turn) for turn in range(2)]
    planned = [sum(f"{name} plans." in prompt for prompt in shown) for name in "ab"]
    assert planned == ([1, 1] if own else [2, 0])
    assert ran.calls()["plan_critique"] == ran.calls()["syntax_retriever"] == (2 if own else 1)


async def test_a_schema_error_lets_the_planner_plan_anew_for_this_candidate(run: Run) -> None:
    new = {"steps": ["Take the city of each customer."], "expected_format": "city (text)"}
    said = script(planner=PLAN, validator=REJECTED) | {
        "planner/c1": new,
        "action/c1": [sql(TOWN), sql(BY_ID), STOP],
        "action/c2": [sql(GOOD), sql(BY_ID), STOP],
    }
    ran = await run(said, votes=2, switches={"own_plans": False})
    asked = ran.prompt("planner", candidate="c1")
    assert PLAN["steps"][0] in asked, "the plan that failed"
    assert "no column town" in asked
    assert new["steps"][0] in ran.prompt("self_refiner")
    later = [ran.prompt("action", -1, candidate) for candidate in ("c1", "c2")]
    assert [new["steps"][0] in prompt for prompt in later] == [True, False]
    assert ran.calls()["plan_critique"] == 2, "the first plan, and the one from what was linked"


async def test_a_plan_from_what_was_linked_is_criticised_and_written_anew(run: Run) -> None:
    reviews = [{"update_plan": wanted, "feedback": "By city."} for wanted in (False, True, True, True, True)]
    steps = [PLAN] + [PLAN | {"steps": [f"Plan {number}."]} for number in range(1, 6)]
    ran = await run(script(action=sql(TOWN), planner=steps, plan_critique=reviews))
    assert ran.calls()["planner"] == 1 + 4
    assert ran.calls()["plan_critique"] == 1 + 3, "up to three times (Table 1)"
    assert "By city." in ran.prompt("planner", 2)
    assert "Plan 4." in ran.prompt("self_refiner")


async def test_documents_and_syntax_reach_the_prompts(run: Run, tmp_path: Path) -> None:
    """The SyntaxRetriever asks in its own words: no topic is listed."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "terms.md").write_text("# Orders\n\nAn order counts once its total is above 6.\n")
    wanted = {"features": ["string_agg or group_concat: the names of a group in one text"]}
    ran = await run(script(syntax_retriever=wanted), documents=str(tmp_path / "docs"))
    assert "total is above 6" in ran.prompt("planner")
    assert "decide what a business term means" in ran.prompt("action")
    assert ["<syntax>" in ran.prompt(role) for role in ("action", "planner")] == [True, False]
    assert "group_concat" in ran.prompt("action").split("<syntax>")[1]
    listed, asked = sections("sqlite"), ran.prompt("syntax_retriever").split("<task>")[1]
    assert listed
    assert not [section.topic for section in listed if f"- {section.topic}\n" in asked]


# Linking.


async def test_a_schema_above_the_limit_is_linked_before_planning(run: Run) -> None:
    ran = await run(script(), link_above=10)
    assert ran.of("model_call")[0]["agent"] == "schema_linker"
    shown = ran.prompt("planner").split("\n<schema")[1].split("</schema>")[0]
    assert "table customers" in shown
    assert "total" not in shown, "only what was linked, in the notation of any schema"
    assert ran.answer.sql == GOOD


async def test_each_new_schema_error_is_linked_and_only_what_was_linked_is_shown(run: Run) -> None:
    found = [linked("customers(id:INTEGER, city:TEXT[Ghent])"), linked("orders(id:INTEGER, total:REAL)")]
    repairs = [repaired(VILLAGE), repaired(f"{VILLAGE} LIMIT 1"), repaired(f"{TOWN} LIMIT 1"), repaired(GOOD)]
    ran = await run(script(action=sql(TOWN), schema_linker=[*found, found[0]], self_refiner=repairs))
    assert ran.calls()["schema_linker"] == 3, "the same error twice in a row is linked once"
    assert "town" in ran.prompt("schema_linker")
    assert ran.answer.usage["queries"] == 1, "the lint must catch the column before the database is asked"
    assert ran.answer.sql == GOOD
    prompts = [*(ran.prompt("self_refiner", turn) for turn in range(4)), ran.prompt("planner", 2)]
    tables = [[name for name in ("customers", "orders") if f"table {name}" in prompt] for prompt in prompts]
    assert tables == [["customers"], ["orders"], ["orders"], ["customers"], ["orders"]]
    assert "city TEXT" in prompts[0]
    assert "name, city" not in prompts[0], "only what was linked"


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
    repairs = [repaired(VILLAGE), repaired(GOOD)]
    ran = await run(script(action=sql(TOWN), schema_linker=found, self_refiner=repairs))
    assert "table orders" not in ran.prompt("self_refiner", 0)
    assert "table orders" in ran.prompt("self_refiner", 1)
    assert "name, city TEXT" in ran.prompt("self_refiner", 1)
    assert ran.calls()["planner"] == 2, "nothing was learned that a plan could be made from"
    first = await run(script(schema_linker=nothing), link_above=10)
    assert "total" in first.prompt("planner")
    assert any("linking found nothing" in warning for warning in first.answer.warnings)


# Action and its repairs.


async def test_a_look_is_answered_from_the_schema_files_without_a_query(run: Run) -> None:
    ran = await run(script(action=[look(), sql(GOOD)]))
    assert "customers" in ran.prompt("action", 1).split("<result>")[1]
    assert ran.answer.usage["queries"] == 1


async def test_a_repeated_action_is_not_taken_while_there_are_steps(run: Run) -> None:
    ran = await run(script(action=look()))
    assert ran.calls()["action"] == 10
    assert REPEATED in ran.prompt("action", 2)
    assert ran.answer.status == "no_answer"


async def test_action_goes_on_once_the_repairs_of_its_query_are_used_up(run: Run) -> None:
    """Each of its queries has five: the loop ends at the step limit, not at the first that stays broken."""
    queries = [sql("SELECT no_1 FROM orders"), sql("SELECT no_2 FROM orders"), sql(GOOD)]
    ran = await run(script(action=queries, self_refiner=unknown))
    assert (ran.calls()["self_refiner"], ran.answer.sql) == (10, GOOD)
    assert "nothing_4" in ran.prompt("action", 1), "it sees what the SelfRefiner tried"
    gives_up = await run(script(action=[queries[0], STOP], self_refiner=unknown))
    assert (gives_up.answer.status, gives_up.answer.sql) == ("no_answer", "SELECT nothing_4 FROM customers")
    assert "nothing_4" in gives_up.answer.warnings[0]


async def test_the_validators_rejections_lead_back_to_action_until_its_steps_are_used_up(run: Run) -> None:
    tries = [sql(f"{GOOD} LIMIT {number}") for number in range(30, 20, -1)]
    ran = await run(script(action=tries, validator=REJECTED))
    assert ran.calls()["action"] == ran.calls()["validator"] == 10
    assert ran.answer.status == "answered"


async def test_terminate_accepts_the_last_result(run: Run) -> None:
    ran = await run(script(action=[sql(GOOD), STOP], validator=REJECTED))
    assert (ran.answer.sql, ran.calls()["validator"]) == (GOOD, 1)
    assert any("Validator" in warning for warning in ran.answer.warnings)


# Whom feedback reaches.


async def test_action_learns_that_its_query_was_replaced_and_why(run: Run) -> None:
    said = script(action=[sql(BY_NAME), sql(BY_ID)], sql_critique=[FAULT, RIGHT], validator=[REJECTED, FINE])
    ran = await run(said)
    wrote, ran_instead = ran.prompt("action", 1).split("<step ")[1:]
    assert wrote.startswith('action="sql">')
    assert not [text for text in (BY_NAME, "Not run.", "Per city, not per name.") if text not in wrote]
    assert ran_instead.startswith('action="sql" by="sql_critique">')
    assert not [text for text in (GOOD, "Count per city.") if text not in ran_instead]
    assert gists(ran, "sql_review")[0] == "corrects it: Per city, not per name."


async def test_the_refiner_learns_what_validator_and_critique_said(run: Run) -> None:
    said = script(action=[sql(BY_ID), sql(BY_NAME)], validator=[REJECTED, FINE])
    ran = await run(said | {"sql_critique": [RIGHT, FAULT | {"sql": TOWN}, RIGHT]})
    prompt = ran.prompt("self_refiner")
    rejected, replaced = prompt.split("<earlier_sql>")[1:]
    assert BY_ID in rejected
    assert "Its result was rejected: Count per city." in rejected
    assert BY_NAME in replaced
    assert "Per city, not per name." in replaced
    assert TOWN in prompt.split("<sql>")[1]


async def test_action_cannot_bring_back_a_rejected_query(run: Run) -> None:
    ran = await run(script(action=[sql(BY_NAME), sql(f"{BY_NAME};"), sql(GOOD)], validator=[REJECTED, FINE]))
    assert (ran.answer.sql, ran.answer.usage["queries"]) == (GOOD, 2)
    assert ran.calls()["validator"] == ran.calls()["sql_critique"] == 2
    assert REPEATED in ran.prompt("action", 2)
    assert gists(ran, "not_run") == [
        "It was tried before and is not run again: Its result was rejected: Count per city."
    ]


async def test_neither_critique_nor_refiner_can_bring_back_a_rejected_query(run: Run) -> None:
    wrong = FAULT | {"sql": BY_NAME, "reasoning": "By name."}
    said = script(action=[sql(BY_NAME), sql(BY_ID), sql(GOOD)], sql_critique=[RIGHT, wrong, RIGHT])
    ran = await run(said | {"validator": [REJECTED, REJECTED, FINE]})
    assert (ran.answer.sql, ran.answer.usage["queries"]) == (GOOD, 3)
    assert "By name." in ran.prompt("action", 2), "its reason is not lost"
    assert ran.prompt("action", 2).count("Its result was rejected: Count per city.") == 2
    assert len(ran.of("not_run")) == 1
    said = script(action=[sql(BY_NAME), sql(TOWN), STOP], self_refiner=repaired(BY_NAME), validator=REJECTED)
    ran = await run(said)
    assert (ran.answer.usage["queries"], ran.calls()["validator"], len(ran.of("not_run"))) == (1, 1, 1)


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


async def test_action_is_told_all_that_the_validator_says(run: Run) -> None:
    for verdict, told in (
        (REJECTED | {"columns_not_needed": ["orders"]}, ["Count per city.", "Columns not needed: orders."]),
        (FINE | {"valid_result": False, "reasoning": "It is no count."}, ["It is no count."]),
        (FINE | {"valid_result": False}, ["The result cannot be the answer."]),
        (FINE | {"result_empty": True}, ["The result is empty."]),
    ):
        ran = await run(script(action=[sql(BY_NAME), sql(GOOD)], validator=[verdict, FINE]))
        prompt = ran.prompt("action", 1)
        assert all(words in prompt.split("<step ")[-1] for words in told)
        assert PLAN["expected_format"] in prompt


async def test_an_error_goes_to_the_refiner_with_hints_and_the_repair_is_reviewed_once(run: Run) -> None:
    ran = await run(script(action=sql(UNGROUPED)))
    prompt = ran.prompt("self_refiner")
    assert f'<error kind="{ErrorKind.REFUSED}">' in prompt or f'<error kind="{ErrorKind.SYNTAX}">' in prompt
    assert "<hints>" in prompt
    assert (ran.answer.sql, ran.answer.candidates[0].repairs) == (GOOD, 1)
    before, after = (ran.prompt("sql_critique", turn) for turn in range(2))
    assert "before it runs" in before
    assert "<result>" not in before.split("<task>sql_critique")[1]
    assert GOOD in after
    assert "2 rows; columns: city, orders" in after
    assert (ran.calls()["sql_critique"], ran.calls()["validator"]) == (2, 1)
    fails = await run(script(action=sql(TOWN), self_refiner=[repaired(VILLAGE), repaired(GOOD)]))
    assert fails.calls()["sql_critique"] == 2, "Action's, and the one that ran"


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


# Cost, weights and limits.


EXPLORING: dict[str, Any] = {
    "action": [sql(TOWN), STOP],
    "column_explorer": explored(*({"purpose": "?", "sql": f"SELECT q{n} FROM orders"} for n in range(5))),
    "exploration_corrector": [corrected(f"SELECT r{number} FROM orders") for number in range(9)],
}
LOOKS = [look(f"grep -i {word} .") for word in "abcdefghijklmno"]
SEEKING = [{"thought": "?", "linked_schema": None, "command": f"grep -i {word} ."} for word in "abcdefgh"]
CRITICAL = {"update_plan": True, "feedback": "Be brief."}
UNREPAIRED: dict[str, Any] = {"exploration": True, "max_refinements": 0}


async def test_a_limit_is_kept(run: Run, subtests: pytest.Subtests) -> None:
    for said, switches, role, calls in (
        ({"plan_critique": CRITICAL}, {"max_plans": 3}, "planner", 3),
        ({"plan_critique": CRITICAL}, {"max_plans": 1}, "plan_critique", 0),
        ({"plan_critique": CRITICAL, "planner": [PLAN, *["lost"] * 9]}, {"max_plans": 3}, "plan_critique", 2),
        ({"action": LOOKS}, {"max_actions": 6}, "action", 6),
        ({"action": sql(TOWN), "schema_linker": SEEKING}, {"max_link_steps": 5}, "schema_linker", 5),
        (EXPLORING, {"max_refinements": 0}, "column_explorer", 0),
        (EXPLORING, UNREPAIRED | {"max_queries": 2}, "exploration_corrector", 6),
        (EXPLORING, UNREPAIRED | {"max_queries": 1, "max_corrections": 1}, "exploration_corrector", 1),
    ):
        with subtests.test(said=said):
            assert (await run(script(**said), switches=switches)).calls()[role] == calls


# The recipe ``team``: the agents of its sentence, and a consensus of branches that look into the data.


SENTENCE = {"Planner", "PlanCritique", "SQLCritique", "SchemaLinker", "Action", "SelfRefiner", "Validator"}
SENTENCE |= {"ColumnExplorer", "Consensus"}
"""The agents of the design's sentence."""


def team(*queries: str, then: str = GOOD, **roles: Any) -> Any:
    """A model whose candidates write these queries in turn, and ``then`` once they see findings."""
    explores = {"column_explorer": explored(CITIES), "exploration_corrector": corrected(TOWNS["sql"])}

    def act(prompt: Prompt) -> Any:
        informed = "<exploration_result>" in prompt.text
        return sql(then if informed else queries[(number(prompt) - 1) % len(queries)])

    return script(**(explores | {"action": act} | roles))


async def test_a_dispute_is_explored_once_and_action_sees_findings_and_differences(run: Run) -> None:
    ran = await run(team(GOOD, OTHER, GOOD, then=OTHER), recipe="team", votes=3)
    assert ran.calls()["column_explorer"] == 1
    assert ran.calls()["action"] == 6
    informed = ran.prompt("action", 5)
    assert CITIES["sql"] in informed
    assert "<differences>" in informed
    assert "<exploration_result>" not in ran.prompt("action", 0)
    assert [len(vote["clusters"]) for vote in ran.of("vote")] == [2, 2], "the first ones keep their votes"
    nothing = await run(team(GOOD, OTHER, column_explorer=explored(TOWNS)), recipe="team", votes=2)
    assert (nothing.calls()["action"], nothing.answer.status) == (2, "answered"), "the vote stays as it was"


async def test_a_single_answer_that_says_nothing_is_no_rival(run: Run) -> None:
    said = script(action=[sql(NOTHING), STOP], self_refiner=repaired(f"{NOTHING} OR city = 'None'"))
    ran = await run(said, recipe="team", votes=1)
    prompt = ran.prompt("column_explorer")
    assert "its result says nothing" in prompt
    assert "differently" not in prompt.split("<task>")[1]
    assert "<differences>" not in prompt


SUPPORT = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, full_name TEXT);
CREATE TABLE employees (id INTEGER PRIMARY KEY, full_name TEXT);
CREATE TABLE support_tickets (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id),
                      employee_id INTEGER REFERENCES employees(id), priority TEXT);
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bo');
INSERT INTO employees VALUES (1, 'Cy');
INSERT INTO support_tickets VALUES (1, 1, 1, 'low'), (2, 2, 1, 'low'), (3, 2, 1, 'low');
"""


async def test_the_offline_model_shows_every_agent_by_its_rules(tmp_path: Path) -> None:
    """It reads a name that two tables have in two ways, and a wrong column is linked and repaired."""
    url, home = changed(tmp_path / "support.db", SUPPORT), str(tmp_path / "home")
    options = RunOptions(database=url, home=home, models=["offline"], recipe="team", link_above=1)
    question = "How many support tickets are there by full_name and by ticket_priority?"
    ran = await run_options(options, question)
    assert {event.get("node") for event in ran.events} >= SENTENCE
    assert ran.answer.status == "answered"
    assert ran.of("vote")[0]["clusters"][1]["candidates"] == ["c2"], "another table's full_name"
    assert all(candidate.repairs == 1 for candidate in ran.answer.candidates)
    assert len(ran.answer.candidates) == 6, "three more once the data was looked at"
