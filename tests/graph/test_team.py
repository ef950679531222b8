"""The recipe ``team``: the agents of the design's sentence, and a consensus of their branches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quorum.graph.builder import build_graph
from quorum.tools.experts import ExpertLedger
from quorum.tools.models.scripted import Prompt
from tests.graph.shop import (
    BROKEN,
    CITIES,
    GOOD,
    OTHER,
    THIRD,
    TOWNS,
    Ran,
    Run,
    corrected,
    explored,
    number,
    script,
    sql,
)

SENTENCE = {
    "Planner",
    "PlanCritique",
    "SQLCritique",
    "SchemaLinker",
    "Action",
    "SelfRefiner",
    "Validator",
    "ColumnExplorer",
    "Consensus",
}
"""The agents of the design's sentence."""


def team(*queries: str, then: str = GOOD, **roles: Any) -> Any:
    """A model whose candidates write these queries in turn, and ``then`` once they see findings."""
    explores = {"column_explorer": explored(CITIES), "exploration_corrector": corrected(TOWNS["sql"])}
    usual = script(**(explores | roles))

    def reply(prompt: Prompt) -> Any:
        if prompt.role != "action":
            return usual[prompt.role]
        return sql(
            then if "<exploration_result>" in prompt.text else queries[(number(prompt) - 1) % len(queries)]
        )

    return reply


def nodes(ran: Ran) -> set[str]:
    return {event["node"] for event in ran.events if event.get("node")}


async def test_every_agent_of_the_sentence_takes_part_where_there_is_work_for_it(run: Run) -> None:
    ran = await run(team(BROKEN, OTHER, THIRD), recipe="team", votes=3)
    assert nodes(ran) >= SENTENCE
    assert sorted(ran.answer.rows) == [["Ghent", 1], ["Lyon", 3]]
    assert ran.answer.vote is not None
    assert len(ran.answer.vote.clusters[0].candidates) >= 3, "the candidates that saw the findings agree"


def test_its_graph_has_a_node_for_each_of_them() -> None:
    drawn = {node.rpartition(":")[2] for node in build_graph("team").get_graph(xray=1).nodes}
    assert drawn >= SENTENCE


async def test_a_dispute_is_explored_once_and_action_sees_findings_and_differences(run: Run) -> None:
    ran = await run(team(GOOD, OTHER, GOOD, then=OTHER), recipe="team", votes=3)
    assert ran.calls()["column_explorer"] == 1
    assert ran.calls()["action"] == 6
    informed = ran.prompt("action", 5)
    assert CITIES["sql"] in informed
    assert "<differences>" in informed
    assert "<exploration_result>" not in ran.prompt("action", 0)
    assert [len(vote["clusters"]) for vote in ran.of("vote")] == [2, 2], "the first ones keep their votes"


async def test_agreement_needs_no_exploration_and_recap_has_none(run: Run) -> None:
    assert (await run(team(GOOD), recipe="team", votes=3)).calls()["column_explorer"] == 0
    assert (await run(team(GOOD, OTHER, THIRD), recipe="recap", votes=3)).calls()["column_explorer"] == 0


async def test_always_explores_before_the_first_candidate(run: Run) -> None:
    ran = await run(team(OTHER, then=GOOD), recipe="team", switches={"exploration": "always"})
    assert ran.calls()["column_explorer"] == 1
    assert ran.calls()["action"] == 1
    assert ran.answer.sql == GOOD


async def test_exploration_that_finds_nothing_leaves_the_vote_as_it_was(run: Run) -> None:
    ran = await run(team(GOOD, OTHER, column_explorer=explored(TOWNS)), recipe="team", votes=2)
    assert ran.calls()["action"] == 2
    assert ran.answer.status == "answered"


@pytest.mark.parametrize(("strategy", "rows"), [("majority", 2), ("wma", 1)])
async def test_majority_and_weighted_majority_give_different_winners(
    strategy: str, rows: int, run: Run, tmp_path: Path
) -> None:
    """Two experts that were often wrong agree; the third was always right."""
    ledger = ExpertLedger(tmp_path / "home" / "experts.json")
    for _ in range(12):
        ledger.update({"strong": True, "weak": False, "poor": False}, feedback="gold")
    said = {"strong": team(THIRD), "weak": team(GOOD), "poor": team(GOOD)}
    given = {"models": list(said), "votes": 3, "strategy": strategy, "switches": {"exploration": "never"}}
    ran = await run(said, recipe="team", **given)
    assert ran.answer.row_count == rows
    assert ran.answer.vote is not None
    assert ran.answer.vote.weights["weak"] < 0.4 < ran.answer.vote.weights["strong"] == 1


async def test_its_experts_learn_from_what_ran(run: Run, tmp_path: Path) -> None:
    fails = team(BROKEN, self_refiner={"explanation": "?", "sql": None})
    ran = await run({"good": team(GOOD), "bad": fails}, models=["good", "bad"], votes=2, recipe="team")
    assert ran.answer.vote is not None
    assert ran.answer.vote.strategy == "wma"
    learned = ExpertLedger(tmp_path / "home" / "experts.json").weights(["good", "bad"])
    assert learned["bad"] < learned["good"] == 1
