"""Roles with a function of their own: the SchemaLinker's loop, tables and parts side by side, exploration."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.agents.explorers import write_queries
from quorum.agents.linkers import Drafting, draft_chunks, link_files, link_tables
from quorum.agents.prompting import PromptContext
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.errors import ModelUnavailable
from quorum.knowledge.schema.files import SchemaFiles
from quorum.tools.models import make_model
from quorum.tools.models.scripted import Prompt, scripted

CONTEXT = PromptContext("sqlite", "", database="shop", question="How many sales were there in Ghent?")
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
