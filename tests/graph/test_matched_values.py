"""Values that a question names stand in the prompts of the recipes that show them."""

from __future__ import annotations

import pytest

from tests.graph.shop import Run, script

NAMED = "How many orders came from ghent and lyons?"


@pytest.mark.parametrize(
    ("recipe", "given", "shown"),
    [
        ("quorum", {}, True),
        ("team", {}, True),
        ("single", {}, False),
        ("reforce", {}, False),
        ("single", {"matched_values": 5}, True),
        ("quorum", {"matched_values": 0}, False),
    ],
)
async def test_recipes_of_papers_show_none_unless_asked(
    recipe: str, given: dict[str, int], shown: bool, run: Run
) -> None:
    ran = await run(script(), question=NAMED, recipe=recipe, **given)
    (writer,) = {"action", "sql_writer"} & ran.calls().keys()
    prompt = ran.prompt(writer)
    assert ("customers.city: 'Ghent', 'Lyon'" in prompt) == shown
    assert bool(ran.of("values")) == shown


async def test_at_most_so_many_and_nothing_where_nothing_fits(run: Run) -> None:
    one = await run(script(), question=NAMED, recipe="single", matched_values=1)
    assert len(one.of("values")[0]["values"]) == 1
    none = await run(script(), question="How many orders are there?", recipe="quorum")
    assert none.of("values") == []
    assert "[values of the database]" not in none.prompt("sql_writer")
