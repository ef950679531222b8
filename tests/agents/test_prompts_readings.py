"""The whole prompt of the ReadingWriter, and what becomes of its replies."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from quorum.agents.base import PromptContext
from quorum.agents.reading_writer import SAMPLE_ROWS, Readings, write_readings
from quorum.agents.turns import MAX_READINGS
from quorum.tools.models import Model, make_model
from quorum.tools.models.scripted import Prompt, scripted

CONTEXT = PromptContext("sqlite", "orders(id:INTEGER, status:TEXT)", "[terms.md]\nA sale is paid.", "shop")
QUESTION = "How many sales did each city have?"
SQL = "SELECT city, COUNT(*) FROM orders GROUP BY city"
CITY = {"meaning": "How many sales were shipped to each city?", "sql": f"{SQL}, status "}


def model(reply: Any) -> tuple[Model, list[Prompt]]:
    prompts: list[Prompt] = []

    def answered(prompt: Prompt) -> Any:
        prompts.append(prompt)
        return reply

    return make_model(scripted(answered)), prompts


def text_of(prompts: list[Prompt]) -> str:
    return "\n".join(f"=== {kind}\n{said}" for kind, said in prompts[0].messages)


async def readings(reply: Any, **given: Any) -> tuple[Readings, list[Prompt]]:
    asked, prompts = model(reply)
    result: dict[str, Any] = {
        "columns": ["city", "COUNT(*)"],
        "row_count": 19,
        "rows": [["Ghent", n] for n in range(19)],
    }
    written = await write_readings(
        asked, CONTEXT, QUESTION, SQL, noted=["Sales may be paid orders."], **(result | given)
    )
    return written, prompts


async def test_the_reading_writers_prompt(snapshot: SnapshotAssertion) -> None:
    _, prompts = await readings(
        {"reasoning": "", "readings": []}, assumed=["A sale is an order."], expected_format="city, sales"
    )
    text = text_of(prompts)
    assert f"({SAMPLE_ROWS} of 19 rows shown)" in text
    assert text == snapshot


async def test_what_is_not_given_leaves_no_trace() -> None:
    _, prompts = await readings({"reasoning": "", "readings": []})
    assert "<decided>" not in text_of(prompts)
    assert "<expected_format>" not in text_of(prompts)


async def test_a_reading_has_its_query_and_how_likely_it_is() -> None:
    written, _ = await readings({"reasoning": "City.", "readings": [CITY, CITY | {"likely": "more"}]})
    assert [(each.sql, each.likely) for each in written.readings] == [
        (CITY["sql"].strip(), "less"),
        (CITY["sql"].strip(), "more"),
    ]


@pytest.mark.parametrize("said", [None, [CITY | {"sql": ""}, CITY | {"meaning": None}, "Paid?"]])
async def test_what_is_no_reading_costs_itself_alone(said: Any) -> None:
    assert (await readings({"reasoning": "", "readings": said}))[0].readings == []
    good = [*(said or []), CITY | {"likely": "As likely"}]
    (kept,) = (await readings({"reasoning": "", "readings": good}))[0].readings
    assert kept.likely == "less"


async def test_so_many_readings_and_no_more() -> None:
    written, _ = await readings({"reasoning": "", "readings": [CITY] * 5})
    assert len(written.readings) == MAX_READINGS
