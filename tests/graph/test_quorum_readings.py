"""``quorum`` begins with one writer, and writes and runs what else the question could mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quorum import ask
from quorum.agents.turns import Reading
from quorum.graph.nodes.clarifying import CHOSEN
from quorum.graph.nodes.readings import merged
from quorum.graph.recipes.quorum import Quorum
from quorum.settings import Settings
from quorum.tools.models.scripted import Prompt, scripted
from tests.graph.reforce_script import BROKEN, replies
from tests.graph.shop import GOOD, QUESTION, Ran, Run
from tests.graph.test_clarify import Asked

CHEAP = GOOD.replace("GROUP BY", "WHERE total < 10 GROUP BY")
NOTHING = GOOD.replace("GROUP BY", "WHERE total > 99 GROUP BY")
SAME = f"WITH counted AS ({GOOD}) SELECT * FROM counted"


def reading(meaning: str, *, likely: bool = False) -> dict[str, Any]:
    return {"meaning": meaning, "changes": "Other rows.", "likely": likely}


def writer(*readings: Any, sql: str = GOOD, other: dict[str, str] | None = None) -> Callable[[Prompt], Any]:
    """A writer who names these readings, and writes ``other[meaning]`` where one is asked for."""
    queries = other or {}

    def write(prompt: Prompt) -> Any:
        asked = prompt.text.rpartition("<reading>")[2] if "</reading>" in prompt.text else ""
        for meaning, query in queries.items():
            if asked and meaning in asked:
                return {"reasoning": "", "sql": query, "summary": f"Shows {meaning}"}
        return {"reasoning": "", "sql": sql, "summary": "All orders.", "readings": list(readings)}

    return write


@pytest.fixture
def run(run: Run) -> Run:
    """``await run(replies(…), switch=…)`` over the shop with ``quorum``, nobody asking for votes."""

    async def asked(said: Any, **given: Any) -> Ran:
        switches = {name: given.pop(name) for name in Quorum.switches() if name in given}
        return await run(said, recipe="quorum", switches=switches, **{"votes": None, **given})

    return asked


async def test_one_call_answers_a_question_that_has_one_reading(run: Run) -> None:
    ran = await run(replies(sql_writer=writer()))
    assert ran.calls() == {"sql_writer": 1}
    answer = ran.answer
    assert (answer.status, answer.sql, answer.readings) == ("answered", GOOD, [])
    assert answer.vote is not None
    assert (answer.vote.stopping, answer.vote.saved, answer.vote.doubt) == ("first", 7, 0.0)
    assert answer.vote.notes == []
    assert ran.of("first_answer")[0]["why"] == ""


async def test_a_reading_that_shows_something_else_stands_beside_the_answer(run: Run) -> None:
    meant = "How many cheap orders did each city place?"
    ran = await run(replies(sql_writer=writer(reading(meant), other={meant: CHEAP})))
    assert ran.calls() == {"sql_writer": 2}
    (shown,) = ran.answer.readings
    assert (ran.answer.sql, shown.says, shown.sql) == (GOOD, meant, CHEAP)
    assert (shown.columns, shown.row_count) == (["city", "orders"], 1)
    assert shown.result_file
    prompt = ran.prompt("sql_writer", 1)
    assert meant in prompt
    assert f"<answered>\n{GOOD}\n</answered>" in prompt
    sure = await run(replies(sql_writer=writer()))
    assert ran.answer.confidence < sure.answer.confidence


@pytest.mark.parametrize("query", [SAME, NOTHING])
async def test_a_reading_that_shows_the_same_or_nothing_is_dropped(run: Run, query: str) -> None:
    ran = await run(replies(sql_writer=writer(reading("Else?"), other={"Else?": query})))
    assert ran.answer.readings == []
    assert ran.answer.vote is not None
    assert ran.answer.vote.doubt == 0.0
    outcome = "same" if query == SAME else "blank"
    assert [each["outcome"] for each in ran.of("readings")[0]["readings"]] == [outcome]


async def test_two_readings_that_show_the_same_are_shown_once(run: Run) -> None:
    said = writer(reading("Cheap?"), reading("Low?"), other={"Cheap?": CHEAP, "Low?": CHEAP})
    ran = await run(replies(sql_writer=said))
    assert [each.says for each in ran.answer.readings] == ["Cheap?"]


async def test_a_reading_whose_query_fails_is_told_in_words(run: Run) -> None:
    failed = {"explanation": "", "sql": BROKEN}
    said = replies(sql_writer=writer(reading("Else?"), other={"Else?": BROKEN}), self_refiner=failed)
    ran = await run(said)
    assert [(each.says, each.sql) for each in ran.answer.readings] == [("Else?", "")]
    assert ran.answer.vote is not None
    assert ran.answer.vote.doubt == 1.0


async def test_an_answer_without_values_gives_way_to_a_reading_that_has_some(run: Run) -> None:
    confirmed = {"explanation": "Nothing.", "sql": None}
    said = replies(
        sql_writer=writer(reading("Cheap?"), sql=NOTHING, other={"Cheap?": CHEAP}), self_refiner=confirmed
    )
    ran = await run(said, votes=1, validation="never")
    assert (ran.answer.sql, ran.answer.rows) == (CHEAP, [["Lyon", 2]])
    assert [each.says for each in ran.answer.readings] == ["As first read: All orders."]
    assert ran.answer.vote is not None
    assert ran.answer.vote.clusters[0].candidates == ["r1"]


def first(prompt: Prompt) -> Any:
    return {"reason": "It stands first.", "choice": "A"}


def cheap(prompt: Prompt) -> Any:
    before = prompt.text[: prompt.text.index(f"\n{CHEAP}\n</answer>")]
    return {"reason": "As asked.", "choice": before[before.rindex('label="') + 7]}


@pytest.mark.parametrize(("judge", "sql"), [(first, GOOD), (cheap, CHEAP)])
async def test_the_judge_decides_between_likely_readings_and_must_agree_with_itself(
    run: Run, judge: Callable[[Prompt], Any], sql: str
) -> None:
    said = replies(sql_writer=writer(reading("Cheap?", likely=True), other={"Cheap?": CHEAP}), judge=judge)
    ran = await run(said, judge_readings=True)
    assert ran.calls() == {"sql_writer": 2, "judge": 2}
    assert ran.answer.sql == sql
    assert [each.sql for each in ran.answer.readings] == [GOOD if sql == CHEAP else CHEAP]
    assert "takes it so: Cheap?" in ran.prompt("judge")
    off = await run(said)
    assert off.calls() == {"sql_writer": 2}


async def test_a_query_that_had_to_be_repaired_calls_for_more_candidates(run: Run) -> None:
    ran = await run(replies(sql_writer=writer(sql=BROKEN)))
    assert ran.calls()["sql_writer"] == 3
    assert ran.of("first_answer")[0]["why"] == "its query had to be repaired"


@pytest.mark.parametrize(
    ("given", "calls"), [({"votes": 3}, 3), ({"alone": False}, 3), ({"readings": 0}, 1), ({}, 2)]
)
async def test_who_asks_for_votes_gets_them_and_readings_are_a_switch(
    run: Run, given: dict[str, Any], calls: int
) -> None:
    said = writer(reading("Cheap?"), other={"Cheap?": CHEAP})
    ran = await run(replies(sql_writer=said), **given)
    wanted = calls + (0 if given.get("readings") == 0 or calls == 2 else 1)
    assert ran.calls()["sql_writer"] == wanted


async def test_a_limit_that_is_reached_on_the_way_leaves_the_answer_and_says_so(run: Run) -> None:
    said = writer(reading("Cheap?"), other={"Cheap?": CHEAP})
    ran = await run(replies(sql_writer=said), max_calls=1)
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert any("max_calls" in warning for warning in ran.answer.warnings)


def test_readings_that_say_the_same_are_one() -> None:
    said = [
        Reading(meaning="Only the orders that were paid."),
        Reading(meaning="only orders that were paid", likely=True),
        Reading(meaning="Orders of the last year."),
    ]
    assert [(each.meaning, each.likely) for each in merged(said)] == [
        ("Only the orders that were paid.", True),
        ("Orders of the last year.", False),
    ]


async def test_asked_which_is_meant_the_user_may_choose_a_reading(shop: Path, tmp_path: Path) -> None:
    said = replies(sql_writer=writer(reading("Cheap?"), other={"Cheap?": CHEAP}))
    asked = Asked(f"sqlite:///{shop}", tmp_path, {"m": said}, recipe="quorum", votes=None)
    answer = await asked("B")
    (clarification,) = asked.questions
    assert [choice.label for choice in clarification.choices] == ["A", "B"]
    assert clarification.choices[1].says == "Cheap?"
    assert (answer["sql"], answer["meant"], answer["confidence"]) == (CHEAP, "Cheap?", CHOSEN)
    assert answer["readings"] == []
    kept = Asked(f"sqlite:///{shop}", tmp_path, {"m": said}, recipe="quorum", votes=None)
    assert (await kept("A"))["sql"] == GOOD


async def test_a_reading_that_was_chosen_is_a_convention_for_later_questions(
    shop: Path, tmp_path: Path
) -> None:
    where: dict[str, Any] = {"db": f"sqlite:///{shop}", "settings": Settings(home=tmp_path)}
    said = {"m": scripted(replies(sql_writer=writer(reading("Cheap?"), other={"Cheap?": CHEAP})))}
    answer = await ask(QUESTION, **where, chat_models=said, on_clarify=lambda _: "B")
    assert (answer.sql, answer.meant) == (CHEAP, "Cheap?")
    assert "this is meant: Cheap?" in Path(answer.convention).read_text()
    seen: list[str] = []

    def write(prompt: Prompt) -> Any:
        seen.append(prompt.text)
        return {"reasoning": "", "sql": GOOD}

    await ask(f"{QUESTION} And why?", **where, chat_models={"m": scripted(replies(sql_writer=write))})
    assert "this is meant: Cheap?" in seen[0]


MISSPELT = "SELECT name FROM customers WHERE city IN ('lyon', 'Ghent')"
SPELT = MISSPELT.replace("lyon", "Lyon")


@pytest.mark.parametrize(("revised", "rows"), [(SPELT, 3), (None, 1)])
async def test_what_a_check_finds_in_the_data_is_weighed_and_told(
    run: Run, revised: str | None, rows: int
) -> None:
    said = replies(sql_writer=writer(sql=MISSPELT), reviser={"explanation": "So.", "sql": revised})
    ran = await run(said)
    assert ran.calls() == {"sql_writer": 1, "reviser": 1}
    (found,) = ran.of("suspicion")
    assert (found["suspicion"], "Lyon" in found["says"]) == ("absent_value", True)
    assert f"<found>\n{found['says']}" in ran.prompt("reviser")
    assert ran.answer.row_count == rows
    assert [found["says"] in doubt for doubt in ran.answer.doubts] == ([] if revised else [True])
    off = await run(said, checks=False)
    assert (off.calls(), off.answer.doubts) == ({"sql_writer": 1}, [])
