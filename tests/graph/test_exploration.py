"""What exploration is told, what it may find, and what those who write after it are shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.graph.shop import (
    CITIES,
    GOOD,
    NOTHING,
    OTHER,
    STOP,
    TOWNS,
    Ran,
    Run,
    explored,
    repaired,
    script,
    sql,
    taking_turns,
)

NOWHERE = {"purpose": "Is there a Nowhere?", "sql": NOTHING}
RIGHT = {"fault": "Nothing: there is no Nowhere.", "sql": None}
TIED = taking_turns(GOOD, OTHER, found=GOOD)


@pytest.fixture
def tied(run: Run) -> Run:
    """Over the shop, where candidates of ``quorum`` disagree until an exploration is done."""

    async def asked(**roles: Any) -> Ran:
        return await run(script(sql_writer=TIED, **roles), recipe="quorum", votes=4)

    return asked


async def test_no_row_can_be_the_finding(tied: Run) -> None:
    ran = await tied(column_explorer=explored(NOWHERE, CITIES), exploration_corrector=RIGHT)
    assert ran.calls()["exploration_corrector"] == 1
    found = [(event["sql"], event["text"], event["corrected"]) for event in ran.of("finding")]
    assert found[0] == (NOTHING, "(0 rows)", False)
    assert found[1][0] == CITIES["sql"]
    assert not ran.of("exploration_given_up")
    later = ran.prompt("sql_writer", -1)
    assert f"<exploration_purpose>{NOWHERE['purpose']}</exploration_purpose>" in later
    assert f"{NOTHING}\n</exploration_sql>\n<exploration_result>\n(0 rows)\n" in later


async def test_an_error_is_no_finding_whatever_the_correction_says(tied: Run) -> None:
    ran = await tied(column_explorer=explored(TOWNS, CITIES), exploration_corrector=RIGHT)
    assert [event["sql"] for event in ran.of("finding")] == [CITIES["sql"]]
    assert "no query" in ran.of("exploration_given_up")[0]["message"]


async def test_later_writers_see_what_was_being_decided_and_why_each_query_was_run(tied: Run) -> None:
    """The explorer sees how the answers differ beside their SQL."""
    ran = await tied()
    (begun,), prompt = ran.of("exploration"), ran.prompt("column_explorer")
    for label, query in zip("AB", begun["rivals"], strict=True):
        assert f'<rival_sql answer="{label}">\n{query}\n</rival_sql>' in prompt
    assert any("`city`" in sentence for sentence in begun["differences"])
    early, late = ran.prompt("sql_writer", 0), ran.prompt("sql_writer", -1)
    assert "<differences>" not in early
    assert all(f"- {sentence}\n" in text for sentence in begun["differences"] for text in (prompt, late))
    assert f"<exploration_purpose>{CITIES['purpose']}</exploration_purpose>" in late


async def test_a_single_answer_that_says_nothing_is_no_rival(run: Run) -> None:
    said = script(action=[sql(NOTHING), STOP], self_refiner=repaired(f"{NOTHING} OR city = 'None'"))
    ran = await run(said, recipe="team", votes=1)
    prompt = ran.prompt("column_explorer")
    assert "its result says nothing" in prompt
    assert "differently" not in prompt.split("<task>")[1]
    assert "<differences>" not in prompt


async def test_a_finding_that_fills_its_limit_says_so(tied: Run) -> None:
    one = {"purpose": "Some city.", "sql": "SELECT city FROM customers LIMIT 1"}
    ran = await tied(column_explorer=explored(one))
    assert "(1 row: its LIMIT; there may be more)" in ran.prompt("sql_writer", -1)
