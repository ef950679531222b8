"""What a run that goes on finds again of its model calls and queries."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from quorum.graph.trace import Trace, located
from quorum.tools.databases import connect
from quorum.tools.execute import Database, QueryCache, execute
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.models import Model, make_model
from quorum.tools.models.scripted import scripted
from quorum.tools.query import Limits, QueryResult
from tests.graph.shop import make_shop

SECRET = "tok-12345"


class Form(BaseModel):
    word: str


def asking(trace: Trace, *replies: dict[str, str]) -> Model:
    """A scripted model that is bound to the trace."""
    model = make_model(scripted({"writer": list(replies)}))
    return model.at(ledger=Ledger(), record=trace.record, recall=trace.recorded_call)


async def said(model: Model, task: str = "t1", question: str = "Which?") -> str:
    with located(task=task):
        reply = await model.complete([{"role": "user", "content": question}], role="writer", output=Form)
    assert isinstance(reply.parsed, Form)
    return reply.parsed.word


@pytest.fixture
def begun(tmp_path: Path) -> Trace:
    return Trace.create(tmp_path, "r", redact=[SECRET])


def resumed(trace: Trace) -> Trace:
    trace.close()
    return Trace.resume(trace.folder.parent.parent, "r")


async def test_a_call_is_found_by_its_request_in_its_step_and_each_once(begun: Trace) -> None:
    long = "word " * 1000
    first = asking(begun, {"word": "a"}, {"word": long})
    assert [await said(first), await said(first)] == ["a", long]
    again = asking(resumed(begun), {"word": "new"}, {"word": "newer"}, {"word": "third"})
    assert await said(again, task="t2") == "new", "the same request in another step"
    assert await said(again, question="What?") == "newer"
    assert [await said(again) for _ in range(3)] == ["a", long, "third"]
    assert again.ledger.total.model_calls == 3, "what was found is charged already"


async def test_a_reply_that_held_a_secret_or_lost_its_text_is_asked_for_anew(begun: Trace) -> None:
    assert await said(asking(begun, {"word": SECRET})) == SECRET
    events = begun.folder / "events.jsonl"
    assert SECRET not in events.read_text()
    going_on = resumed(begun)
    assert await said(asking(going_on, {"word": "b"})) == "b"
    going_on.close()
    events.write_text(events.read_text().replace('"reply"', '"replied"'))
    assert await said(asking(resumed(going_on), {"word": "c"})) == "c"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """The shop; bound to no run yet."""
    async with connect(str(make_shop(tmp_path / "shop.db"))) as connector:
        catalog = await connector.catalog()
        yield Database(connector, catalog, Linter(catalog), Limits(), Ledger())


def bound(database: Database, trace: Trace) -> Database:
    return replace(
        database,
        ledger=Ledger(),
        cache=QueryCache(),
        record=trace.record,
        folder=trace.results,
        recall=trace.recorded_query,
    )


async def test_a_query_is_found_by_its_text_unless_its_result_is_gone_or_its_error_may_not_recur(
    begun: Trace, database: Database
) -> None:
    queries = [
        "SELECT id, note FROM orders",
        "SELECT 1 WHERE 0",
        "SELECT json_extract('{', '$.a') FROM orders",
    ]
    slow = "SELECT count(*) FROM orders a, orders b" + ", orders" * 20

    async def outcomes(trace: Trace) -> tuple[list[Any], int]:
        own = bound(database, trace)
        found = [await execute(own, sql, agent="a") for sql in queries]
        await execute(replace(own, limits=Limits(seconds=0.05)), slow, agent="a")
        return found, own.ledger.total.queries

    (rows, empty, error), ran = await outcomes(begun)
    again = resumed(begun)
    (rows_again, empty_again, error_again), ran_again = await outcomes(again)
    assert (ran, ran_again) == (4, 1), "a timeout may not recur"
    assert error_again == error
    for one, other in ((rows, rows_again), (empty, empty_again)):
        assert isinstance(other, QueryResult)
        assert (other.table, other.seconds, other.file) == (one.table, one.seconds, one.file)
    rows.file.unlink()
    (rows, _, _), ran = await outcomes(resumed(again))
    assert (rows.table, ran) == (rows_again.table, 2)
