"""What a run that goes on finds again of its model calls and queries."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from quorum.graph.trace import Trace, located
from quorum.tools.databases import connect
from quorum.tools.execute import Database, QueryCache, execute
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.models import Model, make_model
from quorum.tools.models.scripted import scripted
from quorum.tools.query import Limits, QueryError, QueryResult
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


@pytest.mark.parametrize(
    "sql", ["SELECT id, note FROM orders", "SELECT json_extract('{', '$.a') FROM orders", "SELECT 1 WHERE 0"]
)
async def test_a_query_is_found_by_its_text(begun: Trace, database: Database, sql: str) -> None:
    first = bound(database, begun)
    outcome = await execute(first, sql, agent="a")
    again = bound(database, resumed(begun))
    found = await execute(again, sql, agent="a")
    assert [each.ledger.total.queries for each in (first, again)] == [1, 0]
    if isinstance(outcome, QueryError):
        assert found == outcome
    else:
        assert isinstance(found, QueryResult)
        assert (found.table, found.seconds, found.file) == (outcome.table, outcome.seconds, outcome.file)


async def test_a_query_runs_again_whose_result_is_gone_or_whose_error_may_not_recur(
    begun: Trace, database: Database
) -> None:
    first, soon = bound(database, begun), Limits(seconds=0.05)
    slow = "SELECT count(*) FROM orders a, orders b" + ", orders" * 20
    outcome = await execute(first, "SELECT id FROM orders", agent="a")
    error = await execute(replace(first, limits=soon), slow, agent="a")
    assert isinstance(error, QueryError)
    assert isinstance(outcome, QueryResult)
    assert outcome.file is not None
    outcome.file.unlink()
    again = bound(database, resumed(begun))
    assert await execute(again, "SELECT id FROM orders", agent="a") != error
    await execute(replace(again, limits=soon), slow, agent="a")
    assert again.ledger.total.queries == 2
