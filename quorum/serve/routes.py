"""The routes of the HTTP API, in one table over the service."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import Message, Send

from quorum.chart import MARKS
from quorum.event_text import step_of
from quorum.files import TABLES
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.serve import bodies
from quorum.serve.bodies import Ask, Body, Correct, Keep, QuestionBody, Reply, Rows, RunSql, TaughtBody
from quorum.serve.keys import Caller
from quorum.serve.question import Question, Refused
from quorum.serve.service import Service
from quorum.tools.query import QueryError

if TYPE_CHECKING:
    import pyarrow as pa

    from quorum.teaching import Taught

ALIVE_SECONDS = 15.0
"""After which a stream of events without one says that it is alive."""
STUCK_SECONDS = 60.0
"""After which a stream whose reader takes nothing is closed; it may go on by ``Last-Event-ID``."""
MOST_STREAMS = 500
TRACE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "sandbox allow-scripts"
)
"""The trace's page has style and script in it, so it is shown without this origin's rights."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a URL's query: one of ``choices``, a text, or a number up to ``most``."""

    name: str
    meaning: str
    default: str | int = ""
    most: int = 0
    choices: tuple[str, ...] = ()
    longest: int = 500


@dataclass(frozen=True)
class Call:
    """A request that has been checked; ``given`` are the parameters of its path and query."""

    service: Service
    who: Caller
    request: Request
    body: Any
    given: Mapping[str, Any]

    async def question(self) -> Question:
        """Return the question that the path names."""
        return await self.service.question(self.who, self.given["id"])


Handler: TypeAlias = Callable[[Call], Awaitable[BaseModel | Response]]


@dataclass(frozen=True)
class Way:
    """A route; OpenAPI's document is made of these. ``open`` ones need no key."""

    method: str
    path: str
    handler: Handler
    parameters: tuple[Parameter, ...]
    body: type[Body] | None
    reply: type[BaseModel] | None
    types: tuple[str, ...]
    status: int
    open: bool


WAYS: list[Way] = []

_DATABASE = Parameter("database", "its name; may be left out where there is only one", longest=40)
_WORDS = Parameter("words", "that are looked for", longest=1000)
_LIMIT = Parameter("limit", "at most", 20, 200)
_READING = Parameter("reading", "number of another reading, from 1", 0, 10)
_ONE = "/v1/questions/{id}"


def way(
    route: str,
    *parameters: Parameter,
    body: type[Body] | None = None,
    reply: type[BaseModel] | None = None,
    types: tuple[str, ...] = ("application/json",),
    status: int = 200,
    open: bool = False,
) -> Callable[[Handler], Handler]:
    """Add a handler to the table: its ``route`` is ``GET /health``, its docstring what it does."""

    def add(handler: Handler) -> Handler:
        method, _, path = route.partition(" ")
        WAYS.append(Way(method, path, handler, parameters, body, reply, types, status, open))
        return handler

    return add


@way("GET /health", reply=bodies.Health, open=True)
async def health(call: Call) -> BaseModel:
    """Say that the server is there."""
    return bodies.Health(status="ok", running=call.service.running)


@way("GET /metrics", types=("text/plain",))
async def metrics(call: Call) -> Response:
    """Return figures in Prometheus's text format."""
    text = call.service.monitor.text(call.service.running)
    return Response(text, media_type="text/plain; version=0.0.4")


@way("GET /v1/databases", reply=bodies.Databases)
async def databases(call: Call) -> BaseModel:
    """List the databases that can be asked."""
    found = []
    for name in call.service.databases(call.who):
        try:
            catalog = (await call.service.resources(call.who, name)).catalog
        except DatabaseUnavailable as error:  # the others can be asked
            fault = call.service.clean(Exception.__str__(error))
            found.append(bodies.DatabaseBody(name=name, error=fault))
            continue
        about: dict[str, Any] = {"dialect": catalog.dialect, "title": catalog.name}
        about["examples"] = call.service.examples(name)
        found.append(bodies.DatabaseBody(name=name, tables=len(catalog.tables), **about))
    return bodies.Databases(databases=found)


@way("POST /v1/questions", body=Ask, reply=QuestionBody, status=202)
async def ask(call: Call) -> BaseModel:
    """Begin a question."""
    asked: Ask = call.body
    about = {name: getattr(asked, name) for name in ("database", "session", "after")}
    about["run_id"] = asked.id
    made = await call.service.ask(call.who, asked.question, **about, **asked.options())
    return await question_body(made, call.service)


@way(f"GET {_ONE}", Parameter("wait", "seconds to wait for its end", 0, 60), reply=QuestionBody)
async def question(call: Call) -> BaseModel:
    """Show a question, how far it is, and its answer."""
    found = await call.question()
    try:
        async with asyncio.timeout(call.given["wait"]):
            while found.status == "running":
                await found.change()
    except TimeoutError:
        pass
    return await question_body(found, call.service)


@way(f"GET {_ONE}/events", types=("text/event-stream",))
async def events(call: Call) -> Response:
    """Stream its steps as server-sent events; Last-Event-ID goes on behind one."""
    found, monitor = await call.question(), call.service.monitor
    last = call.request.headers.get("last-event-id", "").strip()
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else 0
    if monitor.streams >= MOST_STREAMS:
        raise Refused("Too many streams are open.", 503, "busy", hint="Try again in a moment.")

    async def counted() -> AsyncIterator[bytes]:
        monitor.streams += 1
        try:
            async for text in stream(found, after, call.service.clean):
                yield text
        finally:
            monitor.streams -= 1

    return EventStream(counted(), media_type="text/event-stream")


@way(f"POST {_ONE}/reply", body=Reply, reply=QuestionBody, status=202)
async def reply(call: Call) -> BaseModel:
    """Reply to what it waits for."""
    return await question_body(
        await call.service.reply(call.who, call.given["id"], call.body.reply), call.service
    )


@way(f"POST {_ONE}/cancel", reply=QuestionBody)
async def cancel(call: Call) -> BaseModel:
    """Stop it."""
    return await question_body(await call.service.cancel(call.who, call.given["id"]), call.service)


@way(f"POST {_ONE}/resume", reply=QuestionBody, status=202)
async def resume(call: Call) -> BaseModel:
    """Go on with it, if an end of the server has interrupted it."""
    return await question_body(await call.service.resume(call.who, call.given["id"]), call.service)


@way(f"POST {_ONE}/keep", body=Keep, reply=TaughtBody)
async def keep(call: Call) -> BaseModel:
    """Keep its answer as verified."""
    return taught_body(await call.service.keep(call.who, call.given["id"], note=call.body.note))


@way(f"POST {_ONE}/correct", body=Correct, reply=TaughtBody)
async def correct(call: Call) -> BaseModel:
    """Keep the right query for it."""
    given: Correct = call.body
    return taught_body(await call.service.correct(call.who, call.given["id"], given.sql, note=given.note))


def _arrow(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    return sink.getvalue()


def _json(table: pa.Table) -> bytes:
    return bodies.rows_body(table).model_dump_json().encode()


FORMATS: dict[str, tuple[str, Callable[[pa.Table], bytes]]] = {
    "json": ("application/json", _json),
    "csv": ("text/csv", TABLES[".csv"]),
    "parquet": ("application/vnd.apache.parquet", TABLES[".parquet"]),
    "arrow": ("application/vnd.apache.arrow.file", _arrow),
}


@way(
    f"GET {_ONE}/rows",
    Parameter("format", "of the file", "json", choices=tuple(FORMATS)),
    _READING,
    Parameter("candidate", "id of a candidate", longest=20),
    types=tuple(kind for kind, _ in FORMATS.values()),
)
async def rows(call: Call) -> Response:
    """Return all rows of its answer."""
    id, form = call.given["id"], call.given["format"]
    table = await call.service.rows(call.who, id, call.given["reading"], call.given["candidate"])
    kind, write = FORMATS[form]
    about = {"content-disposition": f'attachment; filename="{id}.{form}"'}
    return Response(await asyncio.to_thread(write, table), media_type=kind, headers=about)


@way(
    f"GET {_ONE}/chart",
    Parameter("kind", "without it the rows' own", choices=("", *MARKS)),
    _READING,
    reply=bodies.ChartBody,
)
async def chart(call: Call) -> BaseModel:
    """Declare a chart of its rows as Vega-Lite, or say why they have none."""
    from quorum.chart import chart_of
    from quorum.evals.reports.vega import styled

    table = await call.service.rows(call.who, call.given["id"], call.given["reading"])
    found = await asyncio.to_thread(chart_of, table, call.given["kind"] or None)
    if isinstance(found, str):
        return bodies.ChartBody(note=found)
    return bodies.ChartBody(kind=found.mark, alt=found.alt, note=found.note, spec=styled(found.spec()))


@way(f"GET {_ONE}/trace", types=("text/html",))
async def trace(call: Call) -> Response:
    """Show every step as a page."""
    from quorum.page import page_of
    from quorum.report import report_of

    found = await call.question()
    if not found.folder.folder.is_dir():
        raise Refused("It failed before it began.", 404, "not_found")
    html = await asyncio.to_thread(lambda: page_of(report_of(found.folder)))
    html = re.sub(r' href="file://[^"]*"', "", call.service.clean(html))  # of the code
    return HTMLResponse(html, headers={"content-security-policy": TRACE_POLICY})


@way(
    "GET /v1/history",
    *(_WORDS, _DATABASE, _LIMIT),
    Parameter("before", "id of a question: only earlier ones", longest=81),
    reply=bodies.History,
)
async def history(call: Call) -> BaseModel:
    """List your questions, the latest first."""
    given = dict(call.given)
    found = await call.service.history(call.who, given.pop("words"), **given)
    return bodies.History(questions=[bodies.Run(**vars(run) | {"database": name}) for run, name in found])


@way("GET /v1/schema", _DATABASE, _WORDS, reply=bodies.Schema)
async def schema(call: Call) -> BaseModel:
    """Show tables and columns, and what is odd about their values."""
    return await call.service.schema(call.who, call.given["words"], database=call.given["database"])


@way("GET /v1/values", _DATABASE, _WORDS, _LIMIT, reply=bodies.Values)
async def values(call: Call) -> BaseModel:
    """Find values that words name, by column."""
    given = dict(call.given)
    found, unread = await call.service.search_values(call.who, given.pop("words"), **given)
    return bodies.Values(values=found, unread=unread)


@way("POST /v1/sql", body=RunSql, reply=Rows)
async def sql(call: Call) -> BaseModel:
    """Judge a query and run it, read-only."""
    given: RunSql = call.body
    outcome = await call.service.run_sql(call.who, given.sql, database=given.database, rows=given.rows)
    if isinstance(outcome, QueryError):
        raise Refused(outcome.describe(), 422, outcome.kind.value, hint=f"Said by: {outcome.by}.")
    about = {"truncated": str(outcome.truncated or ""), "seconds": round(outcome.seconds, 4)}
    return bodies.rows_body(outcome.table, sql=outcome.sql, **about)


@way("GET /v1/spent", reply=bodies.Spent)
async def spent(call: Call) -> BaseModel:
    """Say what you have used this month, and what is left."""
    return await call.service.spent(call.who)


async def question_body(found: Question, service: Service) -> QuestionBody:
    """Return a question for clients, with its answer if there is one; its errors name no place."""
    at, error = f"/v1/questions/{found.id}", found.error
    links = {"self": at} | {name: f"{at}/{name}" for name in ("events", "rows", "chart", "trace")}
    answered = found.status not in ("running", "waiting", "cancelled", "failed", "interrupted")
    return QuestionBody(
        id=found.id,
        question=found.text,
        database=found.database,
        session=found.session,
        status=found.status,
        waiting=bodies.waiting_body(found.waiting) if found.waiting else None,
        error=service.clean(Exception.__str__(error)) if error else "",
        hint=service.clean(error.hint) if error else "",
        answer=bodies.answer_body(await found.answer(), at, service.clean) if answered else None,
        links=links,
    )


def taught_body(taught: Taught) -> TaughtBody:
    """Return what was kept, for clients."""
    about = {name: getattr(taught.pair, name) for name in ("id", "question", "credit")}
    count = taught.result.row_count if taught.result else None
    dates = list(taught.dates)
    return TaughtBody(replaced=taught.replaced, warning=taught.warning, dates=dates, row_count=count, **about)


async def stream(found: Question, after: int, clean: Callable[[str], str]) -> AsyncIterator[bytes]:
    """Yield a question's steps as server-sent events, at last ``end`` with its status."""
    steps = aiter(found.events(after))
    waiting: asyncio.Task[Any] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(steps, None))
            done, _ = await asyncio.wait([waiting], timeout=ALIVE_SECONDS)
            if not done:
                yield b": alive\n\n"
                continue
            item, waiting = waiting.result(), None
            if item is None:
                break
            number, event = item
            step = step_of(event, width=300)
            about = {name: value for name, value in asdict(step).items() if name not in ("origin", "gist")}
            yield _sent({**about, "text": clean(step.gist), "live": step.live}, event["kind"], number)
    finally:
        if waiting:
            waiting.cancel()
    yield _sent({"status": found.status}, "end")


def _sent(data: Mapping[str, Any], kind: str, number: int | None = None) -> bytes:
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


class EventStream(StreamingResponse):
    """A stream that ends where its reader takes nothing any more."""

    async def stream_response(self, send: Send) -> None:
        async def sent(message: Message) -> None:
            async with asyncio.timeout(STUCK_SECONDS):
                await send(message)

        await super().stream_response(sent)
