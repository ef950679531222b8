"""The recipe ``team``: the agents of the design's sentence, and a consensus of their branches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quorum.graph.options import RunOptions
from quorum.tools.models.scripted import Prompt
from tests.graph.shop import (
    CITIES,
    GOOD,
    NOTHING,
    OTHER,
    STOP,
    TOWNS,
    Ran,
    Run,
    changed,
    corrected,
    explored,
    number,
    repaired,
    run_options,
    script,
    sql,
)

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


def nodes(ran: Ran) -> set[str]:
    return {event["node"] for event in ran.events if event.get("node")}


async def test_a_dispute_is_explored_once_and_action_sees_findings_and_differences(run: Run) -> None:
    ran = await run(team(GOOD, OTHER, GOOD, then=OTHER), recipe="team", votes=3)
    assert ran.calls()["column_explorer"] == 1
    assert ran.calls()["action"] == 6
    informed = ran.prompt("action", 5)
    assert CITIES["sql"] in informed
    assert "<differences>" in informed
    assert "<exploration_result>" not in ran.prompt("action", 0)
    assert [len(vote["clusters"]) for vote in ran.of("vote")] == [2, 2], "the first ones keep their votes"


async def test_exploration_that_finds_nothing_leaves_the_vote_as_it_was(run: Run) -> None:
    ran = await run(team(GOOD, OTHER, column_explorer=explored(TOWNS)), recipe="team", votes=2)
    assert ran.calls()["action"] == 2
    assert ran.answer.status == "answered"


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
    assert nodes(ran) >= SENTENCE
    assert ran.answer.status == "answered"
    assert ran.of("vote")[0]["clusters"][1]["candidates"] == ["c2"], "another table's full_name"
    assert all(candidate.repairs == 1 for candidate in ran.answer.candidates)
    assert len(ran.answer.candidates) == 6, "three more once the data was looked at"
