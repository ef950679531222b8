"""Whole assembled prompts of ReFoRCE's roles, and what its agents make of replies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import ValidationError
from syrupy.assertion import SnapshotAssertion

from quorum.agents import (
    column_explorer,
    cte_refiner,
    draft_linker,
    exploration_corrector,
    format_writer,
    self_checker,
    table_linker,
)
from quorum.agents.base import PromptContext
from quorum.agents.exploration_corrector import Correction, FailedTry
from quorum.agents.turns import ExplorationQuery
from quorum.knowledge.errors import ModelUnavailable
from quorum.tools.models import Model, make_model
from quorum.tools.models.scripted import Prompt, scripted
from quorum.tools.query import ErrorKind

CONTEXT = PromptContext(dialect="sqlite", database="shop", schema="orders(id:INTEGER, city:TEXT)")
QUESTION = "How many sales were there in Ghent?"
FORMAT = "sales:integer; one row"
SQL = "WITH g AS (SELECT id FROM orders WHERE city = 'Ghent') SELECT COUNT(*) FROM g"
TABLE = "table orders\n  id INTEGER\n  city TEXT"
CITIES = ExplorationQuery(purpose="How are cities spelt?", sql="SELECT DISTINCT town FROM orders LIMIT 20")
GHENT = ExplorationQuery(purpose="Is there a Ghent?", sql="SELECT id FROM orders WHERE town LIKE '%ghent%'")


async def _explore(model: Model) -> object:
    return await column_explorer.write_queries(
        model,
        CONTEXT,
        QUESTION,
        syntax="## Strings\nLIKE ignores case.",
        rivals=[SQL, "SELECT COUNT(id) FROM orders"],
        differences=["Only answer A asks that city = 'Ghent'."],
    )


async def _explore_one(model: Model) -> object:
    return await column_explorer.write_queries(model, CONTEXT, QUESTION, rivals=[SQL])


async def _correct(model: Model) -> object:
    return await exploration_corrector.correct_query(
        model,
        CONTEXT,
        QUESTION,
        CITIES,
        "orders has no column town.",
        tried=[FailedTry("SELECT DISTINCT place FROM orders", "orders has no column place.")],
        waiting=[GHENT],
    )


async def _correct_the_last(model: Model) -> object:
    return await exploration_corrector.correct_query(
        model,
        CONTEXT,
        QUESTION,
        CITIES,
        "There is no function TOWN.",
        kind=ErrorKind.FUNCTION,
        syntax="## Strings\nLIKE ignores case.",
    )


async def _correct_an_empty_one(model: Model) -> object:
    return await exploration_corrector.correct_query(
        model,
        CONTEXT,
        QUESTION,
        GHENT,
        "The query ran and returned no row.",
        kind=ErrorKind.EMPTY_RESULT,
        waiting=[CITIES],
        syntax="## Strings\nLIKE ignores case.",
    )


async def _link_table(model: Model) -> object:
    return await table_linker.judge_table(model, "sqlite", QUESTION, TABLE, documents="[terms.md]\nA sale.")


async def _draft(model: Model) -> object:
    return await draft_linker.draft_chunk(model, "sqlite", QUESTION, TABLE)


async def _stage(model: Model) -> object:
    body = "SELECT id FROM orders WHERE city = 'Ghent'"
    return await cte_refiner.review_stage(
        model,
        CONTEXT,
        QUESTION,
        stage="g",
        before="WITH g AS (",
        body=body,
        after=") SELECT COUNT(*) FROM g",
        result="id\n1\n(1 row)",
        expected_format=FORMAT,
    )


async def _last_stage(model: Model) -> object:
    return await cte_refiner.review_stage(
        model,
        CONTEXT,
        QUESTION,
        stage="result",
        before="WITH g AS (SELECT id FROM orders WHERE city = 'Ghent')",
        body="SELECT COUNT(*) FROM g",
        error="There is no table g.",
        expected_format=FORMAT,
        last=True,
    )


async def _format(model: Model) -> object:
    return await format_writer.write_format(model, CONTEXT, QUESTION)


async def _again(model: Model) -> object:
    earlier = [self_checker.Try("SELECT 2", "2\n2\n(1 row)")]
    return await self_checker.answer_again(
        model, CONTEXT, QUESTION, SQL, "n\n1\n(1 row)", expected_format=FORMAT, earlier=earlier
    )


REPLIES: dict[str, dict[str, Any]] = {
    "column_explorer": {"queries": [CITIES.model_dump()]},
    "exploration_corrector": {"fault": "", "sql": "SELECT city FROM orders", "later": []},
    "table_linker": {"think": "", "answer": "Y", "columns": ["city"]},
    "draft_linker": {"missing": "", "sql": None},
    "cte_refiner": {"reasoning": "", "accept": True, "sql": None},
    "format_writer": {"header": "n:integer", "rows": "one row"},
    "self_checker": {"reasoning": "", "sql": SQL},
}


@pytest.mark.parametrize(
    "call",
    [
        *(_explore, _explore_one, _correct, _correct_the_last, _correct_an_empty_one),
        *(_link_table, _draft),
        *(_stage, _last_stage, _format, _again),
    ],
    ids=lambda call: call.__name__.strip("_"),
)
async def test_prompt(call: Callable[[Model], Awaitable[object]], snapshot: SnapshotAssertion) -> None:
    prompts: list[Prompt] = []

    def reply(prompt: Prompt) -> Any:
        prompts.append(prompt)
        return REPLIES[prompt.role]

    await call(make_model(scripted(reply)))
    assert "\n".join(f"=== {kind}\n{said}" for kind, said in prompts[0].messages) == snapshot


async def test_exploration_is_bounded_and_repeats_nothing() -> None:
    queries = [{"purpose": str(n), "sql": f"SELECT {n // 2}"} for n in range(30)]
    model = make_model(scripted({"column_explorer": {"queries": queries}}))
    written = await column_explorer.write_queries(model, CONTEXT, QUESTION)
    assert [query.sql for query in written] == [f"SELECT {n}" for n in range(10)]


def test_a_correction_mends_the_queries_that_wait_by_number() -> None:
    waiting = [CITIES, GHENT, CITIES]
    later = [{"number": number, "sql": sql} for number, sql in ((2, "SELECT 2"), (9, "SELECT 9"), (3, " "))]
    mended = Correction.model_validate({"sql": "SELECT 1", "later": later}).mended(waiting)
    assert mended == [CITIES, GHENT.model_copy(update={"sql": "SELECT 2"}), CITIES]


def test_a_correction_may_find_nothing_wrong_but_not_forget_its_query() -> None:
    assert Correction(fault="There is none.", sql=None).mended([GHENT]) == [GHENT]
    with pytest.raises(ValidationError, match="sql is empty"):
        Correction(fault="", sql=" ")


@pytest.mark.parametrize("kind", ErrorKind)
async def test_a_correction_sees_the_syntax_only_where_it_may_help(kind: ErrorKind) -> None:
    prompts: list[Prompt] = []

    def reply(prompt: Prompt) -> Any:
        prompts.append(prompt)
        return REPLIES[prompt.role]

    model = make_model(scripted(reply))
    await exploration_corrector.correct_query(
        model, CONTEXT, QUESTION, CITIES, "No.", kind=kind, syntax="## Strings"
    )
    helps = kind in (ErrorKind.SYNTAX, ErrorKind.GROUPING, ErrorKind.FUNCTION, ErrorKind.TYPE_MISMATCH)
    assert ("<syntax>" in prompts[0].text) is helps
    assert "Other queries wait" not in prompts[0].text


async def test_a_stage_is_shown_once_in_its_place() -> None:
    prompts: list[Prompt] = []

    def reply(prompt: Prompt) -> Any:
        prompts.append(prompt)
        return REPLIES[prompt.role]

    await _stage(make_model(scripted(reply)))
    text = prompts[0].text
    assert text.count("WHERE city = 'Ghent'") == 1
    assert FORMAT in text, "every stage is told what the end must look like"


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "sqlite", "duckdb", "postgres", "mysql"])
def test_hints_come_from_the_dialects_reference(dialect: str, nested: bool) -> None:
    hints = column_explorer.hints(dialect, nested=nested)
    assert "## Strings" in hints
    assert ("## JSON" in hints) == ("## Arrays" in hints) == nested


async def test_a_malformed_reply_loses_one_tables_judgement_only() -> None:
    def reply(prompt: Prompt) -> Any:
        if "table b" in prompt.text:
            return '{"think": "I forgot the rest'
        return {"think": "", "answer": "N" if "table c" in prompt.text else "Y", "columns": ["x"]}

    tables = {name: f"table {name}\n  x INTEGER" for name in "abcd"}
    linking = await table_linker.link_tables(make_model(scripted(reply)), "sqlite", QUESTION, tables)
    assert linking == table_linker.TableLinking({"a": ("x",), "d": ("x",)}, ("b",))


async def test_a_malformed_draft_loses_one_part_only() -> None:
    def reply(prompt: Prompt) -> Any:
        said: dict[str, Any] = {"table a": "not JSON", "table b": {"missing": "", "sql": None}}
        return next((said[key] for key in said if key in prompt.text), {"missing": "", "sql": " SELECT 1 "})

    model = make_model(scripted(reply))
    drafting = await draft_linker.draft_chunks(model, "sqlite", QUESTION, ["table a", "table b", "table c"])
    assert drafting == draft_linker.Drafting(("SELECT 1",), (0,))


async def test_an_endpoint_that_fails_ends_the_linking_with_its_own_error() -> None:
    model = make_model(scripted(lambda _: ModelUnavailable("No endpoint answers.")))
    with pytest.raises(ModelUnavailable, match="No endpoint answers"):
        await table_linker.link_tables(model, "sqlite", QUESTION, {"a": "table a", "b": "table b"})


async def test_calls_run_side_by_side_but_never_too_many() -> None:
    import asyncio

    from quorum.agents.base import ask_each

    under_way, most = 0, 0

    async def call(number: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return number

    assert await ask_each(range(9), call, at_once=3) == list(range(9))
    assert most == 3


def test_a_stage_that_is_refused_needs_its_new_sql() -> None:
    with pytest.raises(ValidationError, match="new sql"):
        cte_refiner.StageReview(reasoning="", accept=False, sql=" ")


def test_a_format_is_one_line_for_the_other_agents() -> None:
    assert format_writer.AnswerFormat(header=" n:integer ", rows="one row").text == "n:integer; one row"
    with pytest.raises(ValidationError, match="no column"):
        format_writer.AnswerFormat(header=" , ", rows="")
