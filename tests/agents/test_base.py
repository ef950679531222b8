"""``ask``: one task, one validated reply, at most two repairs."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from pydantic import BaseModel, field_validator

from quorum.agents.base import ask, ask_each
from quorum.agents.explorers import write_queries
from quorum.agents.linkers import Drafting, draft_chunks, link_files, link_tables
from quorum.agents.prompting import PromptContext
from quorum.agents.role import Role
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.errors import BudgetExceeded, MalformedReply, ModelUnavailable
from quorum.knowledge.schema.files import SchemaFiles
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.models import Model, make_model
from quorum.tools.models.scripted import Prompt, scripted
from tests.engines import Events

CONTEXT = PromptContext("sqlite", "orders(id:INTEGER)", database="shop", question="How many orders?")


class Plan(BaseModel):
    steps: list[str]
    expected_format: str

    @field_validator("steps")
    @classmethod
    def _some(cls, steps: list[str]) -> list[str]:
        if not steps:
            raise ValueError("the plan has no steps")
        return steps


ROLE = Role("planner", "Planner", "plans", Plan)
GOOD = {"steps": ["count"], "expected_format": "n"}
CUT = AIMessage('{"steps', response_metadata={"finish_reason": "length"})
REFUSED = AIMessage("", additional_kwargs={"refusal": "I must not."})


class Desk:
    """A scripted model that keeps what it was asked and what was recorded."""

    def __init__(self, *answers: Any, budget: Budget | None = None) -> None:
        self.prompts: list[Prompt] = []
        self.events, self.answers, ledger = Events(), answers, Ledger(budget or Budget())
        self.model: Model = make_model(scripted(self._answer), ledger=ledger, record=self.events)

    def _answer(self, prompt: Prompt) -> Any:
        self.prompts.append(prompt)
        return self.answers[len(self.prompts) - 1]

    async def plan(self) -> Plan:
        return await ask(self.model, ROLE, CONTEXT)


@pytest.mark.parametrize(
    ("bad", "said", "why"),
    [
        ("I would count.", "I would count.", "no JSON object"),
        ('{"steps": []}', '{"steps": []}', "steps: the plan has no steps; expected_format: missing"),
        ("", "(empty)", "empty"),
        ("x" * 9000, "x" * 4000 + "…", "no JSON object"),
        (CUT, CUT.content, "shorter"),
    ],
)
async def test_a_bad_reply_is_sent_back_with_what_is_wrong(bad: Any, said: str, why: str) -> None:
    desk = Desk(bad, GOOD)
    assert await desk.plan() == Plan(**GOOD)
    first, second = desk.prompts
    assert second.messages[:3] == (*first.messages, ("ai", said))
    assert second.messages[3][0] == "human"
    assert why in second.messages[3][1]
    assert [event["attempt"] for event in desk.events] == [1, 2]
    assert desk.model.ledger.total.model_calls == 2


@pytest.mark.parametrize(
    ("answers", "calls", "said", "hint"),
    [
        (["no", "still no", "never", GOOD], 3, r"Planner.* 3 tries.*no JSON object.*'never'", None),
        ([REFUSED, GOOD], 1, "refused the task of the Planner: I must not", None),  # and is not argued with
        ([CUT] * 3, 3, "no usable reply", "Raise max_output_tokens."),
    ],
)
async def test_at_last_it_is_a_malformed_reply(
    answers: list[Any], calls: int, said: str, hint: str | None
) -> None:
    desk = Desk(*answers)
    with pytest.raises(MalformedReply, match=said) as error:
        await desk.plan()
    assert len(desk.prompts) == calls
    assert hint in (None, error.value.hint)


async def test_repairs_count_against_the_budget() -> None:
    desk = Desk("no", GOOD, budget=Budget(max_calls=1))
    with pytest.raises(BudgetExceeded):
        await desk.plan()
    assert len(desk.prompts) == 1


async def test_calls_run_side_by_side_but_never_too_many() -> None:
    under_way, often = 0, list[int]()

    async def call(number: int) -> int:
        nonlocal under_way
        under_way += 1
        often.append(under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return number

    assert await ask_each([partial(call, n) for n in range(9)], at_once=3) == list(range(9))
    assert max(often) == 3


@pytest.mark.parametrize(("given", "own", "asked"), [(0.7, None, 0.7), (0.7, 0.0, 0.7), (None, 0.0, 0.0)])
async def test_a_role_s_own_temperature_counts_where_the_model_has_none(
    given: float | None, own: float | None, asked: float
) -> None:
    desk = Desk(GOOD)
    role = Role("planner", "Planner", "plans", Plan, temperature=own)
    await ask(desk.model.at(temperature=given), role, CONTEXT)
    assert desk.events[0]["temperature"] == asked


# Roles with a function of their own: the SchemaLinker's loop, tables and parts side by side, exploration.


FILES = SchemaFiles(Catalog("shop", "sqlite", (Table("orders", (Column("city", "TEXT"),)),)))


async def test_a_command_is_not_run_twice_and_the_last_turn_is_announced() -> None:
    prompts: list[Prompt] = []

    def reply(prompt: Prompt) -> dict[str, Any]:
        prompts.append(prompt)
        return {"linked_schema": "orders()"} if "This is your last turn" in prompt.text else {"command": "ls"}

    found = await link_files(make_model(scripted(reply)), CONTEXT, files=FILES, max_steps=4)
    assert found.linked_schema == "orders()"
    assert len(prompts) == 4
    assert "already" in prompts[2].text


async def test_a_malformed_draft_loses_one_part_only() -> None:
    said: dict[str, Any] = {"table a": "not JSON", "table b": {"sql": None}, "table c": {"sql": " SELECT 1 "}}
    model = make_model(scripted(lambda prompt: next(said[each] for each in said if each in prompt.text)))
    assert await draft_chunks(model, CONTEXT, chunks=list(said)) == Drafting(("SELECT 1",), (0,))


async def test_an_endpoint_that_fails_ends_the_linking_with_its_own_error() -> None:
    model = make_model(scripted(lambda _: ModelUnavailable("No endpoint answers.")))
    with pytest.raises(ModelUnavailable, match="No endpoint answers"):
        await link_tables(model, CONTEXT, tables={"a": "table a", "b": "table b"})


async def test_exploration_is_bounded_and_repeats_nothing() -> None:
    queries = [{"sql": f"SELECT {n // 2}"} for n in range(30)]
    written = await write_queries(make_model(scripted({"column_explorer": {"queries": queries}})), CONTEXT)
    assert [query.sql for query in written.queries] == [f"SELECT {n}" for n in range(10)]
