"""ReFoRCE's second round: who explores, and who votes."""

from __future__ import annotations

import pytest

from tests.graph.shop import (
    BROKEN,
    CITIES,
    GOOD,
    NOTHING,
    OTHER,
    THIRD,
    TOWNS,
    Ran,
    Run,
    corrected,
    explored,
    in_turn,
    number,
    of_recipe,
    repaired,
    script,
    taking_turns,
    written,
)

NAMED = {"purpose": "Who is there?", "sql": "SELECT DISTINCT name FROM customers LIMIT 20"}
FOURTH = "SELECT COUNT(*) AS customers FROM customers"


@pytest.fixture
def run(run: Run) -> Run:
    return of_recipe(run, "reforce")


def voters(ran: Ran) -> list[list[str]]:
    """The candidates of each vote, by cluster."""
    return [[*map(",".join, (cluster["candidates"] for cluster in v["clusters"]))] for v in ran.of("vote")]


TWO_ROUNDS = script(sql_writer=in_turn(GOOD, GOOD, OTHER, OTHER, THIRD, THIRD, GOOD, FOURTH))
"""A, A, B, B; then C, C, A, D."""


async def test_the_second_round_votes_alone(run: Run) -> None:
    ran = await run(TWO_ROUNDS, votes=4)
    assert ran.answer.sql == THIRD, "with both rounds it would be the first query"
    assert [cluster.weight for cluster in ran.vote.clusters] == [2, 1, 1]
    assert [each.id for each in ran.answer.candidates] == [f"c{n}" for n in range(1, 9)]
    assert [each.superseded for each in ran.answer.candidates] == [True] * 4 + [False] * 4
    assert {name for cluster in voters(ran)[1] for name in cluster.split(",")} == {"c5", "c6", "c7", "c8"}


async def test_a_second_round_of_one_mind_is_trusted_less_than_a_first(run: Run) -> None:
    agreed = await run(script(sql_writer=in_turn(GOOD, GOOD)), votes=2)
    second = await run(script(sql_writer=in_turn(OTHER, THIRD, GOOD, GOOD)), votes=2)
    assert len(voters(second)) == 2
    assert second.answer.sql == agreed.answer.sql
    assert second.answer.confidence < agreed.answer.confidence


async def test_switch_merge_rounds(run: Run) -> None:
    ran = await run(TWO_ROUNDS, votes=4, merge_rounds=True)
    assert ran.answer.sql == GOOD
    assert [cluster.weight for cluster in ran.vote.clusters] == [3, 2, 2, 1]
    assert not any(each.superseded for each in ran.answer.candidates)


@pytest.mark.parametrize("second", [BROKEN, NOTHING, "SELECT NULL AS city"])
@pytest.mark.parametrize("explorations", ["each", "shared"])
async def test_a_second_round_without_results_leaves_the_first_to_a_draw(
    run: Run, second: str, explorations: str
) -> None:
    said = script(sql_writer=in_turn(GOOD, OTHER, second, second), self_refiner=repaired(BROKEN))
    ran = await run(said, votes=2, explorations=explorations)
    assert len(ran.of("draw")) == 1
    assert ran.answer.sql in (GOOD, OTHER)
    assert (
        "No candidate of the second round has a result with values; the first round voted again."
        in ran.answer.warnings
    )
    blank = set() if second == BROKEN else {"c3", "c4"}
    assert {each.id for each in ran.answer.candidates if each.superseded} == blank


async def test_that_the_data_has_no_answer_is_a_result_of_the_second_round(run: Run) -> None:
    lacking = {"reasoning": "", "sql": None, "missing": "There is no profit."}
    said = script(
        sql_writer=lambda prompt: (
            written((GOOD, OTHER)[number(prompt) - 1]) if number(prompt) < 3 else lacking
        )
    )
    ran = await run(said, votes=2)
    assert ran.answer.status == "unanswerable"


async def test_each_candidate_explores_for_itself(run: Run) -> None:
    """With its own sampling, and its own findings before it."""
    said = script(
        sql_writer=taking_turns(GOOD, OTHER, found=GOOD),
        column_explorer=lambda prompt: explored(CITIES if number(prompt) == 3 else NAMED),
    )
    ran = await run(said, votes=2)
    assert ran.calls() == {"sql_writer": 4, "column_explorer": 2}
    asked = [event for event in ran.of("model_call") if event["agent"] == "column_explorer"]
    assert {event["candidate"] for event in asked} == {"c3", "c4"}
    assert len({event["seed"] for event in asked}) == 2
    assert {event["temperature"] for event in asked} == {1.0}
    wrote = {event["candidate"]: event for event in ran.of("model_call") if event["agent"] == "sql_writer"}
    for candidate, own, others in (("c3", CITIES, NAMED), ("c4", NAMED, CITIES)):
        prompt = "\n".join(message["content"] for message in wrote[candidate]["messages"])
        assert own["sql"] in prompt
        assert others["sql"] not in prompt
    assert sorted(event["candidate"] for event in ran.of("finding")) == ["c3", "c4"]
    assert ran.answer.usage["by_agent"]["column_explorer"]["queries"] == 2


@pytest.mark.parametrize("explorations", ["each", "shared"])
async def test_switch_aim(run: Run, explorations: str) -> None:
    """The paper's exploration starts from question and schema alone (000, Figure 4)."""
    said = script(sql_writer=taking_turns(GOOD, OTHER, found=GOOD))
    for aim in (False, True):
        ran = await run(said, votes=2, explorations=explorations, aim=aim)
        asked, wrote = ran.prompt("column_explorer"), ran.prompt("sql_writer", -1)
        assert [text in asked for text in (GOOD, OTHER, "<differences>")] == [aim] * 3
        assert ("<differences>" in wrote) == aim


async def test_what_two_candidates_explore_alike_runs_once(run: Run) -> None:
    ran = await run(script(sql_writer=taking_turns(GOOD, OTHER, found=GOOD)), votes=2)
    assert sorted(event["candidate"] for event in ran.of("finding")) == ["c3", "c4"]
    assert ran.answer.usage["by_agent"]["column_explorer"]["queries"] == 1


async def test_switch_explorations(run: Run) -> None:
    said = script(sql_writer=taking_turns(GOOD, OTHER, found=GOOD))
    ran = await run(said, votes=4, explorations="shared")
    assert ran.calls() == {"sql_writer": 8, "column_explorer": 1}
    assert [len(event["clusters"]) for event in ran.of("vote")] == [2, 1]
    assert ran.answer.sql == GOOD
    for turn in range(4, 8):
        assert CITIES["sql"] in ran.prompt("sql_writer", turn)


async def test_a_shared_exploration_that_finds_nothing_asks_no_further_candidates(run: Run) -> None:
    said = script(sql_writer=taking_turns(GOOD, OTHER), column_explorer=explored())
    ran = await run(said, votes=2, explorations="shared")
    assert ran.calls() == {"sql_writer": 2, "column_explorer": 1}
    assert "Column exploration found nothing." in ran.answer.warnings


async def test_a_candidate_whose_exploration_fails_writes_all_the_same(run: Run) -> None:
    said = script(
        sql_writer=taking_turns(GOOD, OTHER, found=GOOD),
        column_explorer=lambda prompt: "no JSON" if number(prompt) == 3 else explored(CITIES),
    )
    ran = await run(said, votes=2)
    assert [event["candidate"] for event in ran.of("exploration_ended")] == ["c3"]
    assert sorted(event["candidate"] for event in ran.of("writing")) == ["c1", "c2", "c3", "c4"]
    assert {event["candidate"]: event["informed"] for event in ran.of("candidate")[2:]} == {
        "c3": False,
        "c4": True,
    }


async def test_what_a_limit_kept_from_exploring_has_not_found_nothing(run: Run) -> None:
    ran = await run(script(sql_writer=taking_turns(GOOD, OTHER)), votes=2, max_calls=2)
    assert ran.answer.status == "stopped"
    assert not any("exploration" in warning for warning in ran.answer.warnings)


@pytest.mark.parametrize("explorations", ["each", "shared"])
async def test_what_corrections_make_the_same_query_is_shown_once(run: Run, explorations: str) -> None:
    said = script(
        sql_writer=taking_turns(GOOD, OTHER, found=GOOD),
        column_explorer=explored(CITIES, TOWNS),
        exploration_corrector=corrected(CITIES["sql"]),
    )
    ran = await run(said, votes=2, explorations=explorations)
    assert ran.prompt("sql_writer", 2).count(CITIES["sql"]) == 1


@pytest.mark.parametrize("role", ["self_refiner", "self_checker"])
async def test_who_writes_after_the_first_query_sees_the_findings_too(run: Run, role: str) -> None:
    """The findings are in the model's session while it refines (003, 3.2.4)."""
    wrong = {"self_refiner": BROKEN, "self_checker": OTHER}[role]
    said = script(sql_writer=written(wrong), self_checker={"reasoning": "", "sql": OTHER})
    ran = await run(said, votes=1, exploration="always", self_consistency=role == "self_checker")
    assert CITIES["sql"] in ran.prompt(role)
    assert "<exploration_result>" in ran.prompt(role)
