"""The recipe ``quorum``: few calls where candidates agree, more only where they do not, every switch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quorum.agents.role import MAX_ASSUMPTIONS, MAX_SENTENCE
from quorum.graph.nodes.prepare import LONG_QUESTION
from quorum.knowledge.errors import ModelUnavailable
from quorum.tools.models.scripted import Prompt
from tests.graph.shop import (
    BROKEN,
    CITIES,
    FINE,
    GOOD,
    OTHER,
    PLAN,
    QUESTION,
    THIRD,
    Ran,
    Run,
    explored,
    number,
    of_recipe,
    repaired,
    script,
    taking_turns,
    written,
)

LONG = QUESTION + " Leave no city out, " + "and then " * LONG_QUESTION + "stop."
REVISED = GOOD + " ORDER BY orders DESC LIMIT 1"
REJECTED = FINE | {"valid_result": False, "suggest_fix": "Only the city with the most orders."}


def replies(**roles: Any) -> Callable[[Prompt], Any]:
    """``script`` with a Planner and a Validator who accepts."""
    return script(**{"planner": PLAN, "validator": FINE, **roles})


def prefers(sql: str) -> Callable[[Prompt], Any]:
    """A Judge who chooses the answer that is this query."""

    def judge(prompt: Prompt) -> Any:
        before = prompt.text[: prompt.text.index(f"\n{sql}\n</answer>")]
        return {"reason": "As asked.", "choice": before[before.rindex('label="') + 7]}

    return judge


def by_turns(*said: Any) -> Callable[[Prompt], Any]:
    """A writer whose candidates take turns with these replies."""
    return lambda prompt: said[(number(prompt) - 1) % len(said)]


@pytest.fixture
def run(run: Run) -> Run:
    """``await run(replies(…), switch=…)`` over the shop with the recipe ``quorum``."""
    return of_recipe(run, "quorum", {"checks": False}, votes=8)


def writing_prompts(ran: Ran) -> dict[str, str]:
    """Each candidate's first prompt to the SqlWriter: what follows the shared prefix."""
    calls = [e for e in ran.of("model_call") if e["agent"] == "sql_writer"]
    return {event["candidate"]: event["messages"][-1]["content"] for event in calls}


async def test_three_that_agree_are_all_it_costs(run: Run) -> None:
    ran = await run(replies())
    assert ran.calls() == {"sql_writer": 3}
    assert ran.answer.status == "answered"
    assert ran.answer.sql == GOOD
    vote = ran.vote
    assert (vote.strategy, vote.stopping, vote.saved) == ("mbr", "beta:0.9", 5)
    assert ran.answer.usage["queries"] == 1  # the same query runs once


async def test_the_first_candidates_are_written_in_different_ways(run: Run) -> None:
    prompts = writing_prompts(await run(replies(), plan="always"))
    assert len(set(prompts.values())) == 3
    direct = "Write it directly"
    assert [name for name, text in prompts.items() if direct in text] == ["c1"]
    assert all(direct not in text for text in writing_prompts(await run(replies(), question=LONG)).values())


@pytest.mark.parametrize(
    ("plan", "question", "plans"),
    [("auto", QUESTION, 0), ("auto", LONG, 1), ("always", QUESTION, 1), ("never", LONG, 0)],
)
async def test_a_plan_is_written_where_the_question_needs_one(
    run: Run, plan: str, question: str, plans: int
) -> None:
    ran = await run(replies(), plan=plan, question=question)
    assert ran.calls()["planner"] == plans
    shown = [name for name, prompt in writing_prompts(ran).items() if PLAN["expected_format"] in prompt]
    assert shown == ["c3"] * plans  # the others read the question for themselves


@pytest.mark.parametrize(("votes", "led"), [(1, "c1"), (2, "c2"), (3, "c3"), (8, "c3")])
async def test_a_plan_leads_one_candidate_and_nobody_else_sees_it(run: Run, votes: int, led: str) -> None:
    said = replies(
        planner={**PLAN, "assumptions": ["Cities without orders are left out."]},
        sql_writer=taking_turns(GOOD, OTHER, GOOD),
        validator=REJECTED,
        reviser=revised(REVISED),
    )
    ran = await run(said, plan="always", votes=votes, validation="always", exploration=False)
    plan = (*PLAN["steps"], PLAN["expected_format"], "Assume: Cities without orders are left out.")
    calls = [event for event in ran.of("model_call") if event["agent"] != "planner"]
    for event in calls:
        led_by_it = event["agent"] == "sql_writer" and event["candidate"] == led
        assert all((step in event["messages"][-1]["content"]) is led_by_it for step in plan), event["agent"]
    assert {"validator", "reviser"} <= {event["agent"] for event in calls}


async def test_the_shortest_of_those_that_agree_is_shown_with_the_planned_names(run: Run) -> None:
    long = f"WITH counted AS ({GOOD}) SELECT city, orders FROM counted"
    renamed = GOOD.replace("AS orders", "AS n")
    ran = await run(replies(sql_writer=taking_turns(long, GOOD, renamed)), plan="never")
    assert ran.answer.sql in (GOOD, renamed)
    for queries in ((long, GOOD, renamed), (renamed, long, GOOD)):
        planned = await run(replies(sql_writer=taking_turns(*queries)), plan="always")
        assert planned.answer.sql == GOOD


async def test_the_answer_says_what_it_shows_and_what_it_rests_on(run: Run) -> None:
    said = {"summary": "The orders of each city.", "assumptions": ["Cities without orders are left out."]}
    other = {"summary": "Something else.", "assumptions": ["Names are cities."], "readings": ["Per name."]}

    def write(prompt: Prompt) -> Any:
        return written(OTHER) | other if prompt.candidate == "c2" else written(GOOD) | said

    ran = await run(replies(sql_writer=write), votes=3, validation="never", exploration=False)
    assert ran.answer.summary == said["summary"]
    assert ran.answer.assumptions == said["assumptions"]
    by_id = {candidate.id: candidate for candidate in ran.answer.candidates}
    assert (by_id["c2"].assumptions, by_id["c2"].readings) == (other["assumptions"], ["Per name."])
    assert ran.vote.doubt == pytest.approx(1 / 3)


async def test_an_empty_result_may_be_confirmed(run: Run) -> None:
    none = "SELECT city FROM customers WHERE city = 'Nowhere' AND id > 1"
    confirmed = repaired(None)
    ran = await run(replies(sql_writer=written(none), self_refiner=confirmed), votes=1)
    assert (ran.calls()["self_refiner"], ran.answer.status, ran.answer.sql) == (1, "answered", none)


async def test_an_empty_result_may_be_read_in_another_way(run: Run) -> None:
    none = "SELECT city FROM customers WHERE id > 1 AND id < 2"
    other = {"explanation": "No id lies between.", "sql": GOOD, "assumption": "Ids 1 and 2 are included."}
    ran = await run(replies(sql_writer=written(none), self_refiner=other), votes=1)
    assert (ran.answer.sql, ran.answer.assumptions) == (GOOD, ["Ids 1 and 2 are included."])


async def test_that_a_query_failed_cannot_be_confirmed(run: Run) -> None:
    def repair(prompt: Prompt) -> Any:
        return {"explanation": "", "sql": GOOD if prompt.turn else None}

    ran = await run(replies(sql_writer=written(BROKEN), self_refiner=repair), votes=1)
    assert (ran.answer.status, ran.answer.sql, ran.calls()["self_refiner"]) == ("answered", GOOD, 2)


async def test_a_reading_without_rows_either_is_not_what_the_answer_rests_on(run: Run) -> None:
    none = "SELECT city FROM customers WHERE id > 1 AND id < 2"
    other = {"explanation": "", "sql": f"{none} AND id < 3", "assumption": "Ids below 3 are meant."}
    said = written(none) | {"assumptions": ["Ids are numbers."]}
    ran = await run(replies(sql_writer=said, self_refiner=other), votes=1)
    assert (ran.answer.sql, ran.answer.assumptions) == (none, ["Ids are numbers."])


async def test_assumptions_are_few_and_short_and_the_answer_says_each_once(run: Run) -> None:
    many = ["Paid ones.", " paid  ones", "", "x" * 9_000, *(f"Number {place}." for place in range(500))]
    writer = by_turns(*(written(sql) | {"assumptions": many} for sql in (GOOD, OTHER)))
    ran = await run(replies(sql_writer=writer), votes=4, validation="never")
    said = ran.answer.candidates[0].assumptions
    assert (said[:2], len(said), len(said[2])) == (["Paid ones.", "paid ones"], MAX_ASSUMPTIONS, MAX_SENTENCE)
    assert ran.answer.assumptions == [said[0], *said[2:]]
    assert "Number 2." in "\n".join(ran.answer.disagreement)
    assert "Number 3." not in "\n".join([*ran.answer.disagreement, ran.prompt("sql_writer", 3)])


async def test_a_planned_name_is_a_word_of_the_plan(run: Run) -> None:
    long = GOOD.replace("c.city,", "c.city AS city,")
    short = GOOD.replace("AS orders", "AS n")  # n is in the word join, but no column of the plan
    ran = await run(replies(sql_writer=taking_turns(short, long, short)), plan="always")
    assert ran.answer.sql == long


async def test_the_validator_reads_the_documents_that_the_writer_had(run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "orders.md").write_text("# Orders\nA city's orders are those of its customers.\n")
    ran = await run(replies(), documents=str(tmp_path / "docs"), validation="always")
    assert "those of its customers" in ran.prompt("validator")


async def test_documents_call_for_a_plan(run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "orders.md").write_text("# Orders\nA city's orders are those of its customers.\n")
    assert (await run(replies(), documents=str(tmp_path / "docs"))).calls()["planner"] == 1
    ran = await run(replies(), question="How many orders came from Lyon?")
    assert "'Lyon'" in ran.prompt("sql_writer")  # the value that it names is shown, and is no document
    assert ran.calls()["planner"] == 0


async def test_strong_answers_that_disagree_are_explored_once(run: Run) -> None:
    ran = await run(replies(sql_writer=taking_turns(GOOD, OTHER, THIRD, found=GOOD)))
    assert ran.calls()["column_explorer"] == 1
    prompt = ran.prompt("column_explorer")
    assert OTHER in prompt
    assert GOOD in prompt
    prompts = writing_prompts(ran)
    informed = [name for name, text in prompts.items() if CITIES["sql"] in text]
    assert informed == [name for name in prompts if int(name[1:]) > 3]
    assert ran.answer.sql == GOOD
    assert len(ran.answer.candidates) < 8  # those who know what was found settle it


async def test_exploration_can_be_left_out(run: Run) -> None:
    ran = await run(replies(sql_writer=taking_turns(GOOD, OTHER, THIRD)), exploration=False)
    assert "column_explorer" not in ran.calls()
    assert len(ran.answer.candidates) == 8


async def test_max_queries_and_max_corrections_limit_exploration(run: Run) -> None:
    wrong = [{"purpose": f"What is {i}?", "sql": f"SELECT town{i} FROM customers"} for i in range(3)]
    said = replies(sql_writer=taking_turns(GOOD, OTHER, THIRD), column_explorer=explored(*wrong))
    ran = await run(said, max_queries=2, max_corrections=0)
    assert len(ran.of("exploration")[0]["queries"]) == 2
    assert "exploration_corrector" not in ran.calls()
    assert (await run(said, max_queries=2, max_corrections=1)).calls()["exploration_corrector"] > 0


async def test_a_judge_decides_the_tie_that_is_left(run: Run) -> None:
    tie = {"sql_writer": taking_turns(GOOD, OTHER), "judge": prefers(OTHER)}
    ran = await run(replies(**tie))
    assert ran.calls()["judge"] == 1
    assert ran.answer.sql == OTHER
    assert ran.answer.confidence < 0.9
    (verdict,), prompt = ran.of("judgement"), ran.prompt("judge")
    assert verdict["answers"][verdict["choice"]] == [c.id for c in ran.answer.candidates if c.sql == OTHER]
    assert not any(each.id in prompt for each in ran.answer.candidates), "who wrote what says nothing"
    without = await run(replies(**tie), judge=False)
    assert "judge" not in without.calls()
    assert without.vote.tie
    assert without.answer.confidence <= 0.4


@pytest.mark.parametrize(
    "reply",
    [{"reason": "Both fit.", "choice": "cannot tell"}, "no json", ModelUnavailable("It is down.")],
    ids=["cannot tell", "malformed", "unavailable"],
)
async def test_a_judge_without_a_verdict_leaves_the_tie(reply: Any, run: Run) -> None:
    ran = await run(replies(sql_writer=taking_turns(GOOD, OTHER), judge=reply))
    assert ran.answer.status == "answered"
    assert ran.answer.vote is not None
    assert ran.answer.vote.tie
    assert len(ran.of("judgement")) == 1


def revised(sql: str | None) -> dict[str, Any]:
    """The Reviser's reply."""
    return {"explanation": "It should be limited.", "sql": sql, "summary": "The revised rows."}


async def test_a_rejected_winner_is_revised_and_judged_once(run: Run) -> None:
    said = {"validator": REJECTED, "reviser": revised(REVISED)}
    ran = await run(replies(**said, judge=prefers(REVISED)), validation="always")
    assert ran.calls() == {"sql_writer": 3, "validator": 1, "reviser": 1, "judge": 1}
    assert (ran.answer.sql, ran.answer.summary) == (REVISED, "The revised rows.")
    assert "Only the city with the most orders." in ran.prompt("reviser")
    assert any("revision" in note for note in ran.vote.notes)
    kept = await run(replies(**said, judge=prefers(GOOD)), validation="always")
    assert kept.answer.sql == GOOD
    assert "The Validator did not accept this result." in kept.answer.warnings
    assert kept.answer.confidence < (await run(replies())).answer.confidence


async def test_the_validator_sees_the_tables_that_the_query_uses(run: Run) -> None:
    prompt = (await run(replies(sql_writer=written(THIRD)), validation="always")).prompt("validator")
    assert "table orders" in prompt
    assert "table customers" not in prompt
    assert "as the question asks" not in prompt  # nobody wrote a format


async def test_a_query_that_stands_costs_no_more(run: Run) -> None:
    ran = await run(replies(validator=REJECTED, reviser=revised(None)), validation="always")
    assert ran.calls() == {"sql_writer": 3, "validator": 1, "reviser": 1}
    assert ran.answer.sql == GOOD
    assert len(ran.answer.candidates) == 3


@pytest.mark.parametrize("failure", ["no json", ModelUnavailable("Gone.")])
async def test_a_reviser_that_fails_leaves_the_winner(run: Run, failure: Any) -> None:
    ran = await run(replies(validator=REJECTED, reviser=failure), validation="always")
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)


async def test_a_revision_that_says_the_same_or_fails_changes_nothing(run: Run) -> None:
    for revision in (GOOD + " ORDER BY c.city", BROKEN):
        said = {"validator": REJECTED, "reviser": revised(revision)}
        ran = await run(replies(**said), max_refinements=0, validation="always")
        assert "judge" not in ran.calls()
        assert ran.answer.sql == GOOD


@pytest.mark.parametrize(
    ("validation", "agreed", "disputed"), [("doubt", 0, 1), ("always", 1, 1), ("never", 0, 0)]
)
async def test_the_winner_is_validated_where_it_is_in_doubt(
    run: Run, validation: str, agreed: int, disputed: int
) -> None:
    assert (await run(replies(), validation=validation)).calls()["validator"] == agreed
    doubtful = replies(sql_writer=taking_turns(GOOD, OTHER, GOOD, GOOD))
    assert (await run(doubtful, validation=validation)).calls()["validator"] == disputed
    failing = replies(sql_writer=taking_turns(GOOD, GOOD, BROKEN), self_refiner=repaired(BROKEN))
    assert (await run(failing, validation=validation)).calls()["validator"] == disputed
    assert (await run(replies(), votes=2, validation=validation)).calls()["validator"] == disputed


@pytest.mark.parametrize("failure", ["no json", ModelUnavailable("Gone.")])
async def test_a_validator_that_fails_costs_its_verdict_only(run: Run, failure: Any) -> None:
    ran = await run(replies(validator=failure), validation="always")
    assert ran.answer.status == "answered"
    assert ran.answer.candidates[0].approved is None


async def test_a_large_schema_is_linked(run: Run) -> None:
    assert (await run(replies(), link_above=10)).calls()["draft_linker"] > 0
    assert "draft_linker" not in (await run(replies(), linking=False, link_above=10)).calls()
    ran = await run(replies(draft_linker=written("SELECT 1") | {"missing": ""}), link_above=10)
    assert [(event["agent"], event["tables"]) for event in ran.of("linking")] == [("draft_linker", [])]


async def test_the_candidates_share_their_prefix(run: Run) -> None:
    ran = await run(replies(sql_writer=taking_turns(GOOD, OTHER)))
    calls = [e for e in ran.of("model_call") if e["agent"] in ("sql_writer", "column_explorer", "judge")]
    assert len({event["messages"][0]["content"] for event in calls}) == 1


async def test_an_answer_that_is_not_sure_enough_is_withheld_and_shown(run: Run) -> None:
    said = replies(sql_writer=taking_turns(GOOD, OTHER))
    shown = await run(said, judge=False)
    ran = await run(said, judge=False, abstain_below=0.5)
    assert (shown.answer.status, ran.answer.status) == ("answered", "no_answer")
    assert ran.answer.sql == shown.answer.sql
    assert any("Withheld" in warning for warning in ran.answer.warnings)
    assert (await run(replies(), abstain_below=0.5)).answer.status == "answered"


async def test_the_judges_choice_outlives_the_validation(run: Run) -> None:
    tie = {"sql_writer": taking_turns(GOOD, OTHER), "judge": prefers(OTHER)}
    ran = await run(replies(**tie))
    vote = ran.vote
    assert not vote.tie
    assert any("a model compared them" in note for note in vote.notes)
    assert ran.calls()["judge"] == 1
    assert ran.answer.sql == OTHER
    rejected = await run(replies(**tie, validator=REJECTED, reviser=revised(OTHER + " LIMIT 1")))
    assert OTHER in rejected.prompt("reviser")
    assert rejected.answer.sql == OTHER


async def test_the_confidence_is_that_of_the_answer_that_was_chosen(run: Run) -> None:
    said = {"validator": REJECTED, "reviser": revised(REVISED)}
    chosen = await run(replies(**said, judge=prefers(REVISED)), validation="always")
    agreed = await run(replies())
    assert chosen.answer.sql == REVISED
    assert chosen.answer.confidence < agreed.answer.confidence  # one candidate of four wrote it


@pytest.mark.heavy
async def test_an_exploration_that_found_nothing_confirms_nothing(run: Run) -> None:
    said = {"sql_writer": taking_turns(GOOD, OTHER, GOOD, GOOD)}
    without = await run(replies(**said), exploration=False)
    failed = await run(replies(**said, column_explorer="no json"))
    found = await run(replies(**said))
    assert failed.answer.confidence == without.answer.confidence < found.answer.confidence
    none = await run(replies(**said), max_queries=0)
    assert "column_explorer" not in none.calls()


async def test_draws_differ_from_question_to_question(run: Run) -> None:
    said = replies(sql_writer=taking_turns(GOOD, OTHER, THIRD))
    drawn = set()
    for place in range(6):
        ran = await run(said, strategy="random", stopping="never", votes=3, question=f"{QUESTION} ({place})")
        drawn.add(ran.vote.winner)
    assert len(drawn) > 1


async def test_a_revision_with_values_stands_where_only_empty_results_had_voted(run: Run) -> None:
    empty = "SELECT city FROM customers WHERE city = 'Nowhere'"
    rejected = FINE | {"valid_result": False, "result_empty": True, "suggest_fix": "Take a real city."}
    said = script(
        sql_writer={"reasoning": "So.", "sql": empty},
        self_refiner={"explanation": "Sure.", "sql": f"{empty} AND 1 = 1"},
        validator=rejected,
        reviser=repaired(GOOD),
        column_explorer={"queries": []},
    )
    ran = await run(said, votes=3)
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert any("its revision has some" in note for note in ran.vote.notes)
