"""When a schema is linked: by what it takes whole, with documents, not by what a budget left of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.graph.shop import GOOD, Ran, Run, changed, script
from tests.graph.test_reforce import judged

LINKER = {"reforce": "table_linker", "quorum": "draft_linker", "react": "schema_linker"}
ANSWERS = {"thought": "", "action": "answer", "sql": GOOD, "command": None}
REPLIES = script(table_linker=judged, tool_user=ANSWERS)


@pytest.fixture
def described(shop: Path) -> Path:
    """The shop with tables that have nothing to do with the question, and many values."""
    for name in ("weather", "staff", "suppliers"):
        rows = (f"('{name} remark number {n}, at some length', '2026-01-{n}')" for n in range(10, 30))
        made = f"CREATE TABLE {name} (remark_{name} TEXT, day_{name} TEXT)"
        changed(shop, made, f"INSERT INTO {name} VALUES {', '.join(rows)}")
    return shop


async def asked(run: Run, recipe: str, above: int, **given: Any) -> Ran:
    """Ask once, with the size above which the recipe links."""
    where = {"switches": {"link_above": above}} if recipe == "reforce" else {"link_above": above}
    return await run(REPLIES, recipe=recipe, **where, **given)


@pytest.mark.parametrize("recipe", LINKER)
async def test_the_whole_schema_counts_and_documents_as_well(
    run: Run, described: Path, tmp_path: Path, recipe: str
) -> None:
    async def links(above: int, **given: Any) -> list[dict[str, int]]:
        """The sizes for which it is linked; none where it is not."""
        ran = await asked(run, recipe, above, **given)
        sizes = [{name: event[name] for name in ("schema", "documents")} for event in ran.of("long_context")]
        assert bool(ran.calls()[LINKER[recipe]]) is bool(sizes)
        return sizes

    (schema,) = (await asked(run, recipe, 10**6, schema_tokens=1)).of("schema")
    whole, shown = schema["whole"], schema["tokens"]
    assert schema["left_out"]
    assert await links(10**6, schema_tokens=1) == []
    assert await links(shown, schema_tokens=1) == [{"schema": whole, "documents": 0}], "what is left fits"
    assert await links(whole, schema_tokens=1) == []
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "terms.md").write_text("An order counts once its total is above 6.\n")
    documents = {"documents": str(tmp_path / "docs")}
    (size,) = await links(whole, **documents)
    assert size["documents"] > 0
    assert await links(whole + size["documents"], **documents) == []


async def test_a_schema_below_the_linking_limit_is_shown_whole_in_reforce(run: Run, described: Path) -> None:
    """The paper cuts nothing of a schema that it does not link (000, 3.2.1)."""
    whole = (await asked(run, "reforce", 10**6)).of("schema")[0]["whole"]
    ran = await asked(run, "reforce", whole, schema_tokens=1)
    assert ran.of("schema")[0]["left_out"], "the run's budget cuts it"
    (shown,) = ran.of("schema_shown")
    assert (shown["tokens"], shown["left_out"], ran.calls()["table_linker"]) == (whole, [], 0)
    assert "weather remark number 10" in ran.prompt("sql_writer")
    others = await asked(run, "quorum", whole, schema_tokens=1)
    assert "weather remark number 10" not in others.prompt("sql_writer")


async def test_what_was_linked_gets_the_whole_budget(run: Run, described: Path) -> None:
    """Values that the whole schema had no room for come back in the part that is shown."""
    budget = (await asked(run, "reforce", 10**6)).of("schema")[0]["tokens"] - 1
    ran = await asked(run, "reforce", budget, schema_tokens=budget)
    assert ran.of("schema")[0]["left_out"]
    prompt = ran.prompt("sql_writer")
    assert ["weather" in prompt, "Ghent" in prompt] == [False, True]
    assert ran.of("schema_shown")[0]["left_out"] == []
