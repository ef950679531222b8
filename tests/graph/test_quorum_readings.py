"""``quorum`` begins with one writer, and writes and runs what else the question could mean."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from quorum import ask
from quorum.agents.role import MAX_SENTENCE
from quorum.graph.confidence import CHOSEN, LOW
from quorum.graph.nodes import clarifying
from quorum.settings import Settings
from quorum.tools.models.scripted import Prompt, scripted
from tests.graph.shop import (
    BROKEN,
    GOOD,
    OTHER,
    QUESTION,
    Asked,
    Run,
    of_recipe,
    repaired,
    script,
    taking_turns,
    written,
)

CHEAP = GOOD.replace("GROUP BY", "WHERE total < 10 GROUP BY")
NOTHING = GOOD.replace("GROUP BY", "WHERE total > 99 GROUP BY")
SAME = f"WITH counted AS ({GOOD}) SELECT * FROM counted"


NOTED, ALL = "It could also be something else.", "Counts every order."


def reading(sql: str, meaning: str = "Counts cheap orders.") -> dict[str, Any]:
    return {"meaning": meaning, "sql": sql}


def roles(
    *readings: Any, sql: str = GOOD, noted: bool = True, assumed: int = 0, **more: Any
) -> dict[str, Any]:
    """A writer who notes that there are other readings, and a colleague who writes these."""
    written = {"reasoning": "", "sql": sql, "summary": "All orders.", "readings": [NOTED] if noted else []}
    written["assumptions"] = [f"Number {n} is meant." for n in range(assumed)]
    return {
        "sql_writer": written,
        "reading_writer": {"reasoning": "", "answered": ALL if readings else "", "readings": list(readings)},
        **more,
    }


@pytest.fixture
def run(run: Run) -> Run:
    """``await run(script(…), switch=…)`` over the shop with ``quorum``, nobody asking for votes."""
    return of_recipe(run, "quorum", votes=None)


async def test_one_call_answers_a_question_that_has_one_reading(run: Run) -> None:
    ran = await run(script(**roles(noted=False)))
    assert ran.calls() == {"sql_writer": 1}
    answer, vote = ran.answer, ran.vote
    assert (answer.status, answer.sql, answer.readings) == ("answered", GOOD, [])
    assert (vote.stopping, vote.saved, vote.doubt, vote.notes) == ("first", 7, 0.0, [])
    assert (ran.of("first_answer")[0]["why"], answer.readings_tried) == ("", None)


async def test_a_reading_that_shows_something_else_stands_beside_the_answer(run: Run) -> None:
    ran = await run(script(**roles(reading(CHEAP))))
    assert ran.calls() == {"sql_writer": 1, "reading_writer": 1}
    (shown,), answer = ran.answer.readings, ran.answer
    assert (answer.sql, answer.readings_tried) == (GOOD, 1)
    assert (answer.reading, answer.summary) == (ALL, "All orders.")
    assert (shown.says, shown.sql) == ("Counts cheap orders.", CHEAP)
    assert (shown.columns, shown.row_count) == (["city", "orders"], 1)
    assert shown.result_file
    prompt = ran.prompt("reading_writer")
    assert f"<noted>\n- {NOTED}\n</noted>" in prompt
    assert f"<sql>\n{GOOD}\n</sql>\n<result>\n2 rows; columns: city, orders\n" in prompt
    sure = await run(script(**roles(noted=False)))
    assert answer.confidence <= sure.answer.confidence


async def test_a_writer_says_how_certain_it_is(run: Run) -> None:
    sure = roles(noted=False)
    for said, certainty in (
        (0.9, 0.9),
        ("0.4", 0.4),
        (0, 0.0),
        ("high", None),
        (True, None),
        (7, None),
        ([], None),
    ):
        sure["sql_writer"]["certainty"] = said
        answer = (await run(script(**sure))).answer
        assert (answer.vote.certainty, 0 < answer.confidence < 1) == (certainty, True)
        assert ("not sure" in answer.grounds) is (certainty is not None and certainty < 0.6)
    sure["sql_writer"] |= {"certainty": 0.97, "sql": BROKEN}
    repaired_one = (await run(script(**sure, self_refiner=repaired(GOOD)))).answer
    assert (repaired_one.sql, repaired_one.vote.certainty) == (GOOD, None), "it was of another query"


async def test_those_who_gave_the_answer_say_how_certain_it_is_in_the_mean(run: Run) -> None:
    said = [(GOOD, 0.9), (GOOD, 0.7), (OTHER, 0.1)]
    replies = [written(sql) | {"certainty": certainty} for sql, certainty in said]
    ran = await run(script(sql_writer=taking_turns(*replies)), votes=3)
    assert ran.vote.certainty == pytest.approx(0.8)


async def test_without_a_reply_of_use_and_at_a_limit_the_answer_stands_and_says_so(run: Run) -> None:
    ran = await run(script(**roles() | {"reading_writer": "no json"}))
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert "The ReadingWriter's reply could not be used." in ran.answer.warnings
    assert [each.says for each in ran.answer.readings] == [NOTED]
    ran = await run(script(**roles(reading(CHEAP))), max_calls=1)
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert any("max_calls" in warning for warning in ran.answer.warnings)


async def test_a_reading_that_shows_nothing_else_is_dropped_and_one_that_fails_is_told_in_words(
    run: Run, subtests: pytest.Subtests
) -> None:
    for readings, shown, outcomes in (
        ([], [], []),
        ([reading(SAME)], [], ["same"]),
        ([reading(NOTHING)], [], ["blank"]),
        ([reading(GOOD)], [], []),
        ([reading(CHEAP), reading(CHEAP, "Low.")], [("Counts cheap orders.", CHEAP)], None),
        ([reading(BROKEN, "Else?")], [("Else?", "")], None),
    ):
        with subtests.test(readings=readings):
            ran = await run(script(**roles(*readings, self_refiner=repaired(BROKEN))))
            assert [(each.says, each.sql) for each in ran.answer.readings] == shown
            assert ran.vote.doubt == len(shown)
            found = [each["outcome"] for event in ran.of("readings") for each in event["readings"]]
            assert outcomes in (None, found)


async def test_each_assumption_costs_trust(run: Run) -> None:
    given = [await run(script(**roles(noted=False, assumed=count))) for count in range(6)]
    trusted = [ran.answer.confidence for ran in given]
    assert trusted[0] > trusted[1] > trusted[2] > trusted[3] > trusted[4] == trusted[5]


async def test_an_answer_without_values_gives_way_to_a_reading_that_has_some(run: Run) -> None:
    said = script(**roles(reading(CHEAP), sql=NOTHING, self_refiner=repaired(None)))
    ran = await run(said, votes=1, validation="never")
    assert (ran.answer.sql, ran.answer.rows) == (CHEAP, [["Lyon", 2]])
    assert ran.answer.summary == ran.answer.reading == "Counts cheap orders."
    assert [each.says for each in ran.answer.readings] == [ALL]
    assert ran.vote.clusters[0].candidates == ["r1"]


async def test_a_query_that_failed_or_stays_blank_calls_for_more_candidates(run: Run) -> None:
    for sql, repair, why in (
        (BROKEN, GOOD, "its query failed, and was repaired"),
        (NOTHING, "SELECT COUNT(*) FROM orders WHERE total > 99", "its result is blank"),
    ):
        ran = await run(
            script(**roles(sql=sql, noted=False, self_refiner=repaired(repair))), validation="never"
        )
        assert ran.calls()["sql_writer"] >= 3
        assert ran.of("first_answer")[0]["why"] == why


async def test_a_blank_result_that_was_looked_into_stands_by_itself(run: Run) -> None:
    for query, rows in ((None, 0), (CHEAP, 1)):
        refined = repaired(query) | {"assumption": "Cheap ones are meant."}
        ran = await run(script(**roles(sql=NOTHING, noted=False, self_refiner=refined)))
        assert ran.calls() == {"sql_writer": 1, "self_refiner": 1}
        assert ran.answer.row_count == rows


async def test_who_asks_for_votes_gets_them_and_readings_are_a_switch(run: Run) -> None:
    given: list[Any] = [({"votes": 3}, 3, 1), ({"alone": False}, 3, 1), ({"readings": 0}, 1, 0), ({}, 1, 1)]
    for switches, writers, colleagues in given:
        calls = (await run(script(**roles(reading(CHEAP))), **switches)).calls()
        assert (calls["sql_writer"], calls["reading_writer"]) == (writers, colleagues)


async def test_asked_which_is_meant_the_user_may_choose_a_reading(shop: Path, tmp_path: Path) -> None:
    said = script(**roles(reading(CHEAP)))
    given: dict[str, Any] = {"recipe": "quorum", "votes": None, "clarify": "always"}
    asked = Asked(shop, tmp_path, {"m": said}, **given)
    answer = await asked.replying("B")
    (clarification,) = asked.questions
    shown = [(choice.label, choice.says) for choice in clarification.choices]
    assert shown == [("A", ALL), ("B", "Counts cheap orders.")], "sentences of one kind"
    assert (answer["sql"], answer["meant"], answer["confidence"]) == (CHEAP, "Counts cheap orders.", CHOSEN)
    assert (answer["readings"], answer["reading"]) == ([], answer["meant"])
    kept = await Asked(shop, tmp_path, {"m": said}, **given).replying("A")
    assert (kept["sql"], kept["reading"]) == (GOOD, ALL)


@pytest.mark.parametrize(
    ("clarify", "assumed", "questions"), [("on", 0, 0), ("on", 2, 1), ("always", 0, 1), ("off", 2, 0)]
)
async def test_only_always_asks_where_the_answer_is_not_in_doubt(
    clarify: str, assumed: int, questions: int, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clarifying, "ASK_BELOW", 0.87)
    said = {"m": script(**roles(reading(CHEAP), assumed=assumed))}
    asked = Asked(shop, tmp_path, said, recipe="quorum", votes=None, clarify=clarify)
    answer = await asked.replying(*[""] * questions)
    assert len(asked.questions) == questions
    assert [each["says"] for each in answer["readings"]] == ["Counts cheap orders."], "shown in any case"
    assert (answer["confidence"] < 0.87) is (assumed == 2)


TOP = (
    "SELECT c.city FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.city ORDER BY {} LIMIT 1"
)


async def test_the_reading_writer_is_told_of_ties_at_the_cut(run: Run) -> None:
    for query, told in (
        (TOP.format("COUNT(*) DESC"), ""),
        (TOP.format("MIN(1)"), "2 answers share place 1, and LIMIT 1 cuts between them"),
        (GOOD, ""),
    ):
        ran = await run(script(**roles(reading(CHEAP), sql=query)))
        result = ran.prompt("reading_writer").split("<result>\n")[-1].split("</result>")[0]
        assert (told in result) if told else ("share" not in result)


async def test_a_reading_that_was_chosen_is_a_convention_for_later_questions(
    shop: Path, tmp_path: Path
) -> None:
    where: dict[str, Any] = {"db": f"sqlite:///{shop}", "settings": Settings(home=tmp_path)}
    said = {"m": scripted(script(**roles(reading(CHEAP))))}
    answer = await ask(QUESTION, **where, chat_models=said, clarify="always", on_clarify=lambda _: "B")
    assert (answer.sql, answer.meant) == (CHEAP, "Counts cheap orders.")
    assert "this is meant: Counts cheap orders." in Path(answer.convention).read_text()
    seen: list[str] = []

    def write(prompt: Prompt) -> Any:
        seen.append(prompt.text)
        return {"reasoning": "", "sql": GOOD}

    await ask(f"{QUESTION} And why?", **where, chat_models={"m": scripted(script(sql_writer=write))})
    assert "this is meant: Counts cheap orders." in seen[0]


MISSPELT = "SELECT name FROM customers WHERE city IN ('lyon', 'Ghent')"
SPELT = MISSPELT.replace("lyon", "Lyon")


async def test_what_a_check_finds_in_the_data_is_weighed_and_told(run: Run) -> None:
    for revised, rows in ((SPELT, 3), (None, 1)):
        said = script(**roles(sql=MISSPELT, noted=False, reviser=repaired(revised)))
        ran = await run(said)
        assert ran.calls() == {"sql_writer": 1, "reviser": 1}
        (found,) = ran.of("suspicion")
        assert (found["suspicion"], "Lyon" in found["says"]) == ("absent_value", True)
        assert f"<found>\n{found['says']}" in ran.prompt("reviser")
        assert ran.answer.row_count == rows
        assert [found["says"] in doubt for doubt in ran.answer.doubts] == ([] if revised else [True])
        warned = ran.answer.grounds.startswith("ran; a check warns: ")
        assert (warned, ran.answer.confidence == LOW) == (not revised, not revised)
        off = await run(said, checks=False)
        assert (off.calls(), off.answer.doubts) == ({"sql_writer": 1}, [])


# What writers of any recipe say beside their query.


PAID = "Only the orders that were paid."
HOME = "The city of the shop."


def saying(*said: str | None, sql: tuple[str, ...]) -> Callable[[Prompt], Any]:
    """A writer whose candidates name these other readings in turn."""
    turns = zip(range(6), cycle(sql), cycle(said), strict=False)
    return taking_turns(*(written(query) | {"readings": [reading]} for _, query, reading in turns))


async def test_the_answer_shows_the_distinct_other_readings(run: Run) -> None:
    """What losers call another reading may be the answer and is not shown; without an answer all are."""
    right, fails = (GOOD,), (BROKEN,)
    for said, sql, shown in (
        ((None,), right, []),
        ((PAID, None, HOME), right, [PAID, HOME]),
        ((PAID, " only the  orders that were paid", ""), right, [PAID]),
        (("1", "2", "3", "4", "5"), right, ["1", "2", "3"]),
        (("x" * 999,), right, ["x" * (MAX_SENTENCE - 1) + "…"]),
        ((PAID, PAID, "By city."), (GOOD, GOOD, OTHER), [PAID]),
        ((PAID, HOME), fails, [PAID, HOME]),
    ):
        writes = script(sql_writer=saying(*said, sql=sql), self_refiner=repaired(BROKEN))
        ran = await run(writes, recipe="reforce", votes=6, switches={"exploration": "never"})
        assert (ran.answer.status, ran.answer.sql) == ("answered" if sql != fails else "no_answer", sql[0])
        assert [each.says for each in ran.answer.readings] == shown


async def test_who_is_not_asked_for_another_reading_saw_neither_one_nor_none(run: Run) -> None:
    answers = {"thought": "", "action": "answer", "sql": GOOD, "command": None}
    for recipe in ("recap", "react"):
        ran = await run(script(tool_user=answers), recipe=recipe, votes=1)
        assert ran.vote.doubt is None
    sure = await run(script(), recipe="single", votes=1)
    assert sure.vote.doubt == 0
