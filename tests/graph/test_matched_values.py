"""Values that a question names stand in the prompts of the recipes that show them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from quorum.graph.options import RunOptions
from quorum.graph.resources import open_resources
from tests.graph.shop import Run, changed, run_graph, script

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
    assert one.of("values")[0]["values"] == ["customers.city: Ghent"]
    none = await run(script(), question="How many orders are there?", recipe="quorum")
    assert none.of("values") == []
    assert "[values of the database]" not in none.prompt("sql_writer")


async def test_names_and_values_are_spelt_as_sql_needs_them(tmp_path: Path) -> None:
    table = 'CREATE TABLE "a.b" ("full name" TEXT, password TEXT)'
    url = changed(tmp_path / "odd.db", table, """INSERT INTO "a.b" VALUES (' O''Brien  Ltd ', 'brien')""")
    ran = await run_graph(tmp_path / "home", url, script(), question="Who is O'Brien?", recipe="quorum")
    prompt = ran.prompt("sql_writer")
    assert """"a.b"."full name": ' O''Brien  Ltd '""" in prompt
    assert "'brien'" not in prompt


async def test_a_part_of_the_catalog_shows_its_own_values_only(shop: Path, tmp_path: Path) -> None:
    options = RunOptions(database=f"sqlite:///{shop}", home=tmp_path, models=["offline"])
    resources = await open_resources(options)
    try:
        cut_short = resources.read_values()
        cut_short.cancel()
        await asyncio.gather(cut_short, return_exceptions=True)
        whole, missing = await resources.matches("Ada and Lyon", 1)  # they are read again
        orders = tuple(table for table in resources.catalog.tables if table.name == "orders")
        part = resources.showing(replace(resources.catalog, tables=orders))
        assert (len(whole), missing) == (1, [])
        assert await part.matches("Ada and Lyon", 1) == ({}, [])
    finally:
        await resources.aclose()
