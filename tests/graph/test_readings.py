"""What else the question could mean: said by those who write, shown on the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quorum.agents.role import MAX_SENTENCE
from quorum.tools.models.scripted import Prompt
from tests.graph.shop import GOOD, OTHER, Run, number, script, written

PAID = "Only the orders that were paid."
HOME = "The city of the shop."


def reading(*said: str | None, sql: tuple[str, ...] = (GOOD,)) -> Callable[[Prompt], Any]:
    """A writer whose candidates name these other readings in turn."""

    def write(prompt: Prompt) -> Any:
        place = number(prompt) - 1
        return written(sql[place % len(sql)]) | {"readings": [said[place % len(said)]]}

    return write


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ((None,), []),
        ((PAID, None, HOME), [PAID, HOME]),
        ((PAID, " only the  orders that were paid", ""), [PAID]),
        (("1", "2", "3", "4", "5"), ["1", "2", "3"]),
        (("x" * 999,), ["x" * (MAX_SENTENCE - 1) + "…"]),
    ],
)
async def test_the_answer_shows_the_distinct_other_readings(
    run: Run, said: tuple[str | None, ...], shown: list[str]
) -> None:
    ran = await run(script(sql_writer=reading(*said)), recipe="reforce", votes=5)
    assert [each.says for each in ran.answer.readings] == shown


async def test_what_the_losers_call_another_reading_may_be_the_answer_and_is_not_shown(run: Run) -> None:
    writer = reading(PAID, PAID, "By city.", sql=(GOOD, GOOD, OTHER))
    ran = await run(script(sql_writer=writer), recipe="reforce", votes=3)
    assert ran.answer.sql == GOOD
    assert [each.says for each in ran.answer.readings] == [PAID]


async def test_without_an_answer_all_are_shown(run: Run) -> None:
    writer = reading(PAID, HOME, sql=("SELECT town FROM orders",))
    said = script(sql_writer=writer, self_refiner={"explanation": "", "sql": "SELECT town FROM orders"})
    ran = await run(said, recipe="reforce", votes=2, switches={"exploration": "never"})
    assert ran.answer.status == "no_answer"
    assert [each.says for each in ran.answer.readings] == [PAID, HOME]


async def test_who_is_not_asked_for_another_reading_saw_neither_one_nor_none(run: Run) -> None:
    answers = {"thought": "", "action": "answer", "sql": GOOD, "command": None}
    for recipe in ("recap", "react"):
        ran = await run(script(tool_user=answers), recipe=recipe, votes=1)
        assert ran.vote.doubt is None
    sure = await run(script(), recipe="single", votes=1)
    assert sure.vote.doubt == 0
