"""Every switch and limit of ``recap`` changes what it names."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from quorum.graph.recipes.recap import Recap
from quorum.graph.recipes.recipe import PaperRecipe
from tests.graph.shop import NOTHING, STOP, Run, script, sql

BAD = "SELECT town FROM customers"
LOOKS = [
    {"thought": "?", "action": "look", "sql": None, "command": f"grep -i {word} ."}
    for word in "abcdefghijklmno"
]
SEEKING: dict[str, Any] = {"thought": "?", "linked_schema": None}
WANTED = [SEEKING | {"command": f"grep -i {word} ."} for word in "abcdefghijklmno"]
CRITICAL = {"update_plan": True, "feedback": "Be brief."}
FAILING: dict[str, Any] = {
    "column_explorer": {
        "queries": [{"purpose": "?", "sql": f"SELECT q{number} FROM orders"} for number in range(5)]
    },
    "exploration_corrector": [
        {"fault": "?", "sql": f"SELECT r{number} FROM orders", "later": []} for number in range(9)
    ],
}
REPAIRS = [{"explanation": "?", "sql": f"SELECT town{number} FROM customers"} for number in range(9)]


def unless_confirmed(prompt: Any) -> dict[str, Any]:
    """A SelfRefiner that finds the empty result right where it may say so."""
    sql = None if "or null if the empty result" in prompt.text else f"{NOTHING} LIMIT {prompt.turn + 1}"
    return {"explanation": "?", "sql": sql}


CASES: dict[str, tuple[dict[str, Any], str, Any, int, Any, int]] = {
    # switch: what the model says, the role it is about, a value with its calls, another with its calls
    "own_plans": ({}, "planner", True, 2, False, 1),
    "plan_critique": ({}, "plan_critique", True, 1, False, 0),
    "syntax": ({}, "syntax_retriever", True, 1, False, 0),
    "sql_critique": ({}, "sql_critique", True, 1, False, 0),
    "validation": ({}, "validator", True, 1, False, 0),
    "link_on_error": ({"action": sql(BAD)}, "schema_linker", True, 1, False, 0),
    "replan": ({"action": sql(BAD)}, "planner", True, 2, False, 1),
    "max_plans": ({"plan_critique": CRITICAL}, "planner", 3, 3, 1, 1),
    "max_refinements": ({"action": [sql(BAD), STOP], "self_refiner": REPAIRS}, "self_refiner", 4, 4, 0, 0),
    "confirm_empty": (
        {"action": [sql(NOTHING), STOP], "self_refiner": unless_confirmed},
        "self_refiner",
        False,
        5,
        True,
        1,
    ),
    "max_actions": ({"action": LOOKS}, "action", 6, 6, 2, 2),
    "max_link_steps": ({"action": sql(BAD), "schema_linker": WANTED}, "schema_linker", 5, 5, 2, 2),
    "exploration": (FAILING, "column_explorer", "always", 1, "never", 0),
    "max_queries": (FAILING, "exploration_corrector", 2, 6, 1, 3),
    "max_corrections": (FAILING, "exploration_corrector", 2, 2, 1, 1),
}

BESIDE: dict[str, dict[str, Any]] = {
    "exploration": {"max_queries": 1},
    "max_queries": {"exploration": "always"},
    "max_corrections": {"exploration": "always", "max_queries": 1},
}
"""What is switched on beside a limit, so that it counts."""


@pytest.mark.parametrize("switch", CASES)
async def test_a_switch_changes_what_it_names(switch: str, run: Run) -> None:
    said, role, one, calls, other, other_calls = CASES[switch]
    for value, expected in ((one, calls), (other, other_calls)):
        switches = BESIDE.get(switch, {}) | {switch: value}
        votes = 2 if switch == "own_plans" else 1
        made: Counter[str] = (await run(script(**said), switches=switches, votes=votes)).calls()
        assert made[role] == expected


def test_no_switch_is_left_out() -> None:
    assert set(CASES) == set(Recap.switches()) - set(PaperRecipe.switches())
