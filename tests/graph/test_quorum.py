"""The recipe ``quorum``: few calls where candidates agree, more only where they do not, every switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quorum.agents.role import MAX_ASSUMPTIONS, MAX_SENTENCE
from quorum.graph.nodes.prepare import LONG_QUESTION
from quorum.knowledge.errors import ModelUnavailable
from quorum.tools.models.scripted import Prompt
from quorum.tools.results.overlap import overlap
from tests.graph.shop import (
    BROKEN,
    CITIES,
    FINE,
    GOOD,
    NOTHING,
    OTHER,
    PLAN,
    QUESTION,
    THIRD,
    TOWNS,
    Ran,
    Run,
    explored,
    of_recipe,
    repaired,
    script,
    taking_turns,
    written,
)

LONG = QUESTION + " Leave no city out, " + "and then " * LONG_QUESTION + "stop."
REVISED = GOOD + " ORDER BY orders DESC LIMIT 1"
REJECTED = FINE | {"valid_result": False, "suggest_fix": "Only the city with the most orders."}
GONE = ModelUnavailable("It is down.")
ALWAYS = {"validation": "always"}


def prefers(sql: str) -> Callable[[Prompt], Any]:
    """A Judge who chooses the answer that is this query."""

    def judge(prompt: Prompt) -> Any:
        before = prompt.text[: prompt.text.index(f"\n{sql}\n</answer>")]
        return {"reason": "As asked.", "choice": before[before.rindex('label="') + 7]}

    return judge


def revised(sql: str | None) -> dict[str, Any]:
    """The Reviser's reply."""
    return {"explanation": "It should be limited.", "sql": sql, "summary": "The revised rows."}


@pytest.fixture
def run(run: Run) -> Run:
    """``await run(script(…), switch=…)`` over the shop with the recipe ``quorum``."""
    return of_recipe(run, "quorum", {"checks": False}, votes=8)


def writing_prompts(ran: Ran) -> dict[str, str]:
    """Each candidate's prompt to the SqlWriter."""
    return {each.id: ran.prompt("sql_writer", candidate=each.id) for each in ran.answer.candidates}


async def test_three_that_agree_are_all_it_costs(run: Run) -> None:
    ran = await run(script())
    assert ran.calls() == {"sql_writer": 3}
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert (ran.vote.strategy, ran.vote.stopping, ran.vote.saved) == ("mbr", "beta:0.9", 5)
    assert ran.answer.usage["queries"] == 1  # the same query runs once


# Writing and plans.


async def test_the_first_candidates_are_written_in_different_ways(run: Run) -> None:
    prompts = writing_prompts(await run(script(), plan="always"))
    assert len(set(prompts.values())) == 3
    assert ["write it directly" in text for text in prompts.values()] == [True, False, False]
    long = writing_prompts(await run(script(), question=LONG))
    assert not any("write it directly" in text for text in long.values())


async def test_a_plan_is_written_where_the_question_needs_one(run: Run) -> None:
    for plan, *plans in (("auto", 0, 1), ("always", 1, 1), ("never", 0, 0)):
        ran = [await run(script(), plan=plan, question=question) for question in (QUESTION, LONG)]
        assert [each.calls()["planner"] for each in ran] == plans


async def test_documents_call_for_a_plan_and_reach_the_validator(run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "orders.md").write_text("# Orders\nA city's orders are those of its customers.\n")
    ran = await run(script(), documents=str(tmp_path / "docs"), **ALWAYS)
    assert ran.calls()["planner"] == 1
    assert "those of its customers" in ran.prompt("validator")
    named = await run(script(), question="How many orders came from Lyon?")
    assert "'Lyon'" in named.prompt("sql_writer")  # the value that it names is shown, and is no document
    assert named.calls()["planner"] == 0


@pytest.mark.parametrize(("votes", "led"), [(1, "c1"), (2, "c2"), (3, "c3"), (8, "c3")])
async def test_a_plan_leads_one_candidate_and_nobody_else_sees_it(run: Run, votes: int, led: str) -> None:
    said = script(
        planner={**PLAN, "assumptions": ["Cities without orders are left out."]},
        sql_writer=taking_turns(GOOD, OTHER, GOOD),
        validator=REJECTED,
        reviser=revised(REVISED),
    )
    ran = await run(said, plan="always", votes=votes, exploration=False, **ALWAYS)
    plan = (*PLAN["steps"], PLAN["expected_format"], "Assume: Cities without orders are left out.")
    calls = [event for event in ran.of("model_call") if event["agent"] != "planner"]
    for event in calls:
        led_by_it = event["agent"] == "sql_writer" and event["candidate"] == led
        assert all((step in event["messages"][-1]["content"]) is led_by_it for step in plan), event["agent"]
    assert {"validator", "reviser"} <= {event["agent"] for event in calls}


async def test_the_shortest_of_those_that_agree_is_shown_with_the_planned_names(run: Run) -> None:
    long = f"WITH counted AS ({GOOD}) SELECT city, orders FROM counted"
    renamed = GOOD.replace("AS orders", "AS n")  # n is in the word join, but no column of the plan
    ran = await run(script(sql_writer=taking_turns(long, GOOD, renamed)), plan="never")
    assert ran.answer.sql in (GOOD, renamed)
    for queries in ((long, GOOD, renamed), (renamed, long, GOOD)):
        planned = await run(script(sql_writer=taking_turns(*queries)), plan="always")
        assert planned.answer.sql == GOOD


async def test_a_large_schema_is_linked(run: Run) -> None:
    assert (await run(script(), link_above=10)).calls()["draft_linker"] > 0
    assert "draft_linker" not in (await run(script(), linking=False, link_above=10)).calls()
    ran = await run(script(draft_linker=written("SELECT 1") | {"missing": ""}), link_above=10)
    assert [(event["agent"], event["tables"]) for event in ran.of("linking")] == [("draft_linker", [])]


# What is said beside the query.


async def test_the_answer_says_what_it_shows_and_what_it_rests_on(run: Run) -> None:
    said = {"summary": "The orders of each city.", "assumptions": ["Cities without orders are left out."]}
    other = {"summary": "Something else.", "assumptions": ["Names are cities."], "readings": ["Per name."]}
    writes = script(sql_writer=written(GOOD) | said) | {"sql_writer/c2": written(OTHER) | other}
    ran = await run(writes, votes=3, validation="never", exploration=False)
    assert {name: getattr(ran.answer, name) for name in said} == said
    (second,) = (each for each in ran.answer.candidates if each.id == "c2")
    assert (second.assumptions, second.readings) == (other["assumptions"], ["Per name."])
    assert ran.vote.doubt == pytest.approx(1 / 3)


async def test_assumptions_are_few_and_short_and_the_answer_says_each_once(run: Run) -> None:
    many = ["Paid ones.", " paid  ones", "", "x" * 9_000, *(f"Number {place}." for place in range(500))]
    writes = taking_turns(*(written(query) | {"assumptions": many} for query in (OTHER, GOOD)))
    ran = await run(script(sql_writer=writes), votes=4, validation="never")
    said = ran.answer.candidates[0].assumptions
    assert (said[:2], len(said), len(said[2])) == (["Paid ones.", "paid ones"], MAX_ASSUMPTIONS, MAX_SENTENCE)
    assert ran.answer.assumptions == [said[0], *said[2:]]
    assert "Number 2." in "\n".join(ran.answer.disagreement)
    assert "Number 3." not in "\n".join([*ran.answer.disagreement, ran.prompt("sql_writer", 3)])


# Repairs of one candidate.

NONE = "SELECT city FROM customers WHERE id > 1 AND id < 2"


async def test_an_empty_result_may_be_read_in_another_way(run: Run) -> None:
    for other, shown in (
        ((GOOD, "Ids 1 and 2 are included."), (GOOD, ["Ids are numbers.", "Ids 1 and 2 are included."])),
        ((f"{NONE} AND id < 3", "Ids below 3 are meant."), (NONE, ["Ids are numbers."])),
    ):
        refined = repaired(other[0]) | {"assumption": other[1]}
        said = script(sql_writer=written(NONE) | {"assumptions": ["Ids are numbers."]}, self_refiner=refined)
        ran = await run(said, votes=1)
        assert (ran.answer.sql, ran.answer.assumptions) == shown
    said = script(sql_writer=written(BROKEN), self_refiner=[repaired(None), repaired(GOOD)])
    ran = await run(said, votes=1)
    assert (ran.answer.sql, ran.calls()["self_refiner"]) == (GOOD, 2), "an error cannot be confirmed"


# Answers that disagree.


async def test_strong_answers_that_disagree_are_explored_once(run: Run) -> None:
    ran = await run(script(sql_writer=taking_turns(GOOD, OTHER, THIRD, found=GOOD)))
    assert ran.calls()["column_explorer"] == 1
    assert all(sql in ran.prompt("column_explorer") for sql in (GOOD, OTHER))
    informed = {name: CITIES["sql"] in text for name, text in writing_prompts(ran).items()}
    assert informed == {name: int(name[1:]) > 3 for name in informed}
    assert ran.answer.sql == GOOD
    assert len(ran.answer.candidates) < 8  # those who know what was found settle it


async def test_exploration_can_be_left_out_and_limited(run: Run) -> None:
    wrong = [{"purpose": f"What is {i}?", "sql": f"SELECT town{i} FROM customers"} for i in range(3)]
    said = script(sql_writer=taking_turns(GOOD, OTHER, THIRD), column_explorer=explored(*wrong))
    for left_out in ({"exploration": False}, {"max_queries": 0}):
        ran = await run(said, **left_out)
        assert ("column_explorer" in ran.calls(), len(ran.answer.candidates)) == (False, 8)
    ran = await run(said, max_queries=2, max_corrections=0)
    assert len(ran.of("exploration")[0]["queries"]) == 2
    assert "exploration_corrector" not in ran.calls()


async def test_candidates_that_fail_dispute_nothing(run: Run) -> None:
    said = script(self_refiner=repaired(BROKEN))
    ran = await run(said | {f"sql_writer/c{number}": written(BROKEN) for number in (1, 2)})
    assert (ran.answer.sql, ran.calls()["column_explorer"]) == (GOOD, 0)
    assert ran.calls()["sql_writer"] > 3


async def test_a_judge_decides_the_tie_that_is_left(run: Run) -> None:
    tie = script(sql_writer=taking_turns(GOOD, OTHER), judge=prefers(OTHER))
    ran = await run(tie)
    assert (ran.calls()["judge"], ran.answer.sql, ran.vote.tie) == (1, OTHER, False)
    assert any("a model compared them" in note for note in ran.vote.notes)
    assert ran.answer.confidence < 0.9
    (verdict,), prompt = ran.of("judgement"), ran.prompt("judge")
    assert verdict["answers"][verdict["choice"]] == [c.id for c in ran.answer.candidates if c.sql == OTHER]
    assert not any(each.id in prompt for each in ran.answer.candidates), "who wrote what says nothing"
    rejected = await run(tie | {"validator": REJECTED, "reviser": revised(OTHER + " LIMIT 1")})
    assert OTHER in rejected.prompt("reviser")
    assert rejected.answer.sql == OTHER, "the Judge's choice outlives the validation"
    without = await run(tie, judge=False)
    assert ("judge" in without.calls(), without.vote.tie) == (False, True)
    assert without.answer.confidence <= 0.4
    withheld = await run(tie, judge=False, abstain_below=0.5)
    assert (withheld.answer.status, withheld.answer.sql) == ("no_answer", without.answer.sql)
    assert any("Withheld" in warning for warning in withheld.answer.warnings)
    assert (await run(script(), abstain_below=0.5)).answer.status == "answered"


async def test_draws_differ_from_question_to_question(run: Run) -> None:
    said = script(sql_writer=taking_turns(GOOD, OTHER, THIRD))
    given: dict[str, Any] = {"strategy": "random", "stopping": "never", "votes": 3}
    drawn = [await run(said, question=f"{QUESTION} ({place})", **given) for place in range(6)]
    assert len({ran.vote.winner for ran in drawn}) > 1


# Validation and revision.


async def test_the_winner_is_validated_where_it_is_in_doubt(run: Run) -> None:
    for validation, agreed, disputed in (("doubt", 0, 1), ("always", 1, 1), ("never", 0, 0)):
        assert (await run(script(), validation=validation)).calls()["validator"] == agreed
        doubtful = script(sql_writer=taking_turns(GOOD, OTHER, GOOD, GOOD))
        failing = script(sql_writer=taking_turns(GOOD, GOOD, BROKEN), self_refiner=repaired(BROKEN))
        for said, votes in ((doubtful, 8), (failing, 8), (script(), 2)):
            assert (await run(said, votes=votes, validation=validation)).calls()["validator"] == disputed


async def test_a_rejected_winner_is_revised_and_judged_once(run: Run) -> None:
    said = script(validator=REJECTED, reviser=revised(REVISED))
    ran = await run(said | {"judge": prefers(REVISED)}, **ALWAYS)
    assert ran.calls() == {"sql_writer": 3, "validator": 1, "reviser": 1, "judge": 1}
    assert (ran.answer.sql, ran.answer.summary) == (REVISED, "The revised rows.")
    assert "Only the city with the most orders." in ran.prompt("reviser")
    assert any("revision" in note for note in ran.vote.notes)
    kept, agreed = await run(said | {"judge": prefers(GOOD)}, **ALWAYS), await run(script())
    assert kept.answer.sql == GOOD
    assert "The Validator did not accept this result." in kept.answer.warnings
    assert max(kept.answer.confidence, ran.answer.confidence) < agreed.answer.confidence


async def test_the_validator_sees_the_tables_that_the_query_uses(run: Run) -> None:
    prompt = (await run(script(sql_writer=written(THIRD)), **ALWAYS)).prompt("validator")
    assert "table orders" in prompt
    assert "table customers" not in prompt
    assert "as the question asks" not in prompt  # nobody wrote a format


@pytest.mark.parametrize("reply", [None, GOOD + " ORDER BY c.city", BROKEN, "no json", GONE])
async def test_a_revision_that_brings_nothing_leaves_the_winner(run: Run, reply: Any) -> None:
    """It finds nothing wrong, shows the same, fails, or there is none."""
    lost = reply is GONE or reply == "no json"
    said = script(validator=REJECTED, reviser=reply if lost else revised(reply))
    ran = await run(said, max_refinements=0, **ALWAYS)
    assert "judge" not in ran.calls()
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert len(ran.answer.candidates) == (3 if lost or reply is None else 4)


async def test_a_revision_with_values_stands_where_only_empty_results_had_voted(run: Run) -> None:
    said = script(
        sql_writer=written(NOTHING),
        self_refiner=repaired(f"{NOTHING} AND 1 = 1"),
        validator=REJECTED | {"result_empty": True},
        reviser=repaired(GOOD),
        column_explorer=explored(),
    )
    ran = await run(said, votes=3)
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert any("its revision has some" in note for note in ran.vote.notes)


# Exploration: what it is told, what it may find, and what those who write after it are shown.


NOWHERE = {"purpose": "Is there a Nowhere?", "sql": NOTHING}
RIGHT = {"fault": "Nothing: there is no Nowhere.", "sql": None}


async def tied(run: Run, **roles: Any) -> Ran:
    """Candidates disagree until an exploration is done."""
    return await run(script(sql_writer=taking_turns(GOOD, OTHER, found=GOOD), **roles), votes=4)


async def test_no_row_can_be_the_finding_and_an_error_cannot(run: Run) -> None:
    one = {"purpose": "Some city.", "sql": "SELECT city FROM customers LIMIT 1"}
    said = {"column_explorer": explored(NOWHERE, TOWNS, CITIES, one), "exploration_corrector": RIGHT}
    ran = await tied(run, **said)
    assert ran.calls()["exploration_corrector"] == 2
    found = [(event["sql"], event["corrected"]) for event in ran.of("finding")]
    assert found == [(NOTHING, False), (CITIES["sql"], False), (one["sql"], False)]
    assert ["no query" in event["message"] for event in ran.of("exploration_given_up")] == [True]
    later = ran.prompt("sql_writer", -1)
    assert f"<exploration_purpose>{NOWHERE['purpose']}</exploration_purpose>" in later
    assert f"{NOTHING}\n</exploration_sql>\n<exploration_result>\n(0 rows)\n" in later
    assert "(1 row: its LIMIT; there may be more)" in later


async def test_later_writers_see_what_was_being_decided_and_why_each_query_was_run(run: Run) -> None:
    """The explorer sees how the answers differ beside their SQL."""
    ran = await tied(run)
    (begun,), prompt = ran.of("exploration"), ran.prompt("column_explorer")
    for label, query in zip("AB", begun["rivals"], strict=True):
        assert f'<rival_sql answer="{label}">\n{query}\n</rival_sql>' in prompt
    assert any("`city`" in sentence for sentence in begun["differences"])
    early, late = ran.prompt("sql_writer", 0), ran.prompt("sql_writer", -1)
    assert "<differences>" not in early
    assert all(f"- {sentence}\n" in text for sentence in begun["differences"] for text in (prompt, late))
    assert f"<exploration_purpose>{CITIES['purpose']}</exploration_purpose>" in late


# A question that asks for an order: most writers say so, and what that does to a vote.


ORDERED = "How many orders did each city place, most first?"
DESC, ASC = f"{GOOD} ORDER BY orders DESC", f"{GOOD} ORDER BY orders ASC"


def writer(queries: Sequence[str], ordered: Sequence[bool]) -> Any:
    """A writer whose candidates take turns, in the query and in whether an order is asked for."""
    pairs = zip(queries, cycle(ordered), strict=False)
    return taking_turns(*(written(query) | {"ordered": each} for query, each in pairs))


async def vote_on(run: Run, *queries: str, ordered: Sequence[bool] = (True,), **given: Any) -> Ran:
    said = script(sql_writer=writer(queries, ordered), validator=FINE)
    question = ORDERED if any(ordered) else QUESTION
    return await run(said, question=question, votes=len(queries), **given)


@pytest.mark.parametrize("strategy", ["mbr", "wma", "majority"])
@pytest.mark.parametrize("queries", [(ASC, DESC, DESC), (DESC, ASC, ASC)])
async def test_the_order_that_most_have_is_shown_where_one_is_asked_for(
    run: Run, strategy: str, queries: tuple[str, ...]
) -> None:
    ran = await vote_on(run, *queries, strategy=strategy)
    first, second = ran.vote.clusters
    assert (sorted(first.candidates), second.candidates) == (["c2", "c3"], ["c1"])
    assert first.weight > second.weight
    assert ran.answer.sql == queries[1]
    assert ran.answer.rows[0] == (["Lyon", 3] if queries[1] == DESC else ["Ghent", 1])
    sorts = ["COUNT(*) DESC" if query == DESC else "COUNT(*)" for query in queries]
    assert ran.answer.disagreement[1:] == [
        "Answer A and answer B have the same rows in another order.",
        f"Answer A is sorted by `{sorts[1]}`; answer B by `{sorts[0]}`.",
    ]


async def test_unless_most_writers_say_so_the_order_does_not_count(run: Run) -> None:
    for ordered in ((False,), (True, False, False)):
        ran = await vote_on(run, ASC, DESC, DESC, ordered=ordered)
        assert [sorted(cluster.candidates) for cluster in ran.vote.clusters] == [["c1", "c2", "c3"]]
        assert ran.answer.disagreement == []


async def test_inside_a_candidate_another_order_does_not_confirm_a_result(run: Run) -> None:
    calls = []
    for ordered in (True, False):
        said = script(sql_writer=writer([ASC], [ordered]), self_checker=written(DESC))
        ran = await run(said, recipe="reforce", votes=1, switches={"self_consistency": True})
        calls.append(ran.calls()["self_checker"])
    assert calls[0] > calls[1] == 1


def test_another_order_costs_support_and_only_where_it_counts() -> None:
    up = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    down = up.take([2, 1, 0])
    assert overlap(up, down).support == 1
    turned = overlap(up, down, ordered=True)
    assert turned.support == pytest.approx((2 / 3) ** 2)
    assert not turned.same
    assert turned.reversed == overlap(down, up, ordered=True)
    wider = down.append_column("c", pa.array([7.0, 8, 9]))
    assert overlap(up, wider, ordered=True).support < overlap(up, wider).support
    assert overlap(up, up, ordered=True).support == 1
