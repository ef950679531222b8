"""The routes of the HTTP API, as one table over the service."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import Message, Send

from quorum.chart import MARKS
from quorum.event_text import step_of
from quorum.serve import bodies
from quorum.serve.bodies import Ask, Body, Correct, Keep, QuestionBody, Reply, Rows, RunSql, TaughtBody
from quorum.serve.keys import Caller
from quorum.serve.service import Question, Refused, Service
from quorum.text import shown_rows
from quorum.tools.query import QueryError

if TYPE_CHECKING:
    import pyarrow as pa

    from quorum.teaching import Taught

ALIVE_SECONDS = 15.0
"""After which a stream of events without one says that it is alive."""
STUCK_SECONDS = 60.0
"""After which a stream whose reader takes nothing is closed; it may go on by ``Last-Event-ID``."""
TRACE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "sandbox allow-scripts"
)
"""The trace's page has style and script in it, so it is shown without this origin's rights."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a URL's query: a text of ``longest`` characters, or a number up to ``most``."""

    name: str
    meaning: str
    default: str | int = ""
    most: int = 0
    choices: tuple[str, ...] = ()
    longest: int = 500


@dataclass(frozen=True)
class Call:
    """A request that has been checked.

    Attributes:
        given: Parameters of path and query by name.
    """

    service: Service
    who: Caller
    request: Request
    body: Any
    given: Mapping[str, Any]


Handler: TypeAlias = Callable[[Call], Awaitable[BaseModel | Response]]


@dataclass(frozen=True)
class Way:
    """A route of the API; OpenAPI's document is made of these."""

    method: str
    path: str
    handler: Handler
    meaning: str
    body: type[Body] | None = None
    reply: type[BaseModel] | None = None
    parameters: Sequence[Parameter] = ()
    types: Sequence[str] = ("application/json",)
    status: int = 200
    open: bool = False


async def ask(call: Call) -> BaseModel:
    asked: Ask = call.body
    made = await call.service.ask(
        call.who,
        asked.question,
        database=asked.database,
        session=asked.session,
        after=asked.after,
        run_id=asked.id,
        **asked.options(),
    )
    return await question_body(made)


async def question(call: Call) -> BaseModel:
    found = await call.service.question(call.who, call.given["id"])
    if (seconds := call.given["wait"]) and found.status == "running":
        try:
            async with asyncio.timeout(seconds):
                while found.status == "running":
                    await found.change()
        except TimeoutError:
            pass
    return await question_body(found)


async def reply(call: Call) -> BaseModel:
    return await question_body(await call.service.reply(call.who, call.given["id"], call.body.reply))


async def cancel(call: Call) -> BaseModel:
    return await question_body(await call.service.cancel(call.who, call.given["id"]))


async def resume(call: Call) -> BaseModel:
    return await question_body(await call.service.resume(call.who, call.given["id"]))


async def events(call: Call) -> Response:
    found = await call.service.question(call.who, call.given["id"])
    last = call.request.headers.get("last-event-id", "").strip()
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else 0
    return EventStream(stream(found, after), media_type="text/event-stream")


async def rows(call: Call) -> Response:
    table = await call.service.rows(
        call.who, call.given["id"], call.given["reading"], call.given["candidate"]
    )
    form = call.given["format"]
    kind, write = FORMATS[form]
    about = {"content-disposition": f'attachment; filename="{call.given["id"]}.{form}"'}
    return Response(await asyncio.to_thread(write, table), media_type=kind, headers=about)


async def chart(call: Call) -> BaseModel:
    from quorum.chart import chart_of
    from quorum.evals.reports.vega import styled

    table = await call.service.rows(call.who, call.given["id"], call.given["reading"])
    found = await asyncio.to_thread(chart_of, table, call.given["kind"] or None)
    if isinstance(found, str):
        return bodies.ChartBody(note=found)
    return bodies.ChartBody(kind=found.mark, alt=found.alt, note=found.note, spec=styled(found.spec()))


async def trace(call: Call) -> Response:
    from quorum.page import page_of
    from quorum.report import report_of

    found = await call.service.question(call.who, call.given["id"])
    html = await asyncio.to_thread(lambda: page_of(report_of(found.folder)))
    return HTMLResponse(html, headers={"content-security-policy": TRACE_POLICY})


async def keep(call: Call) -> BaseModel:
    return taught_body(await call.service.keep(call.who, call.given["id"], note=call.body.note))


async def correct(call: Call) -> BaseModel:
    given: Correct = call.body
    return taught_body(await call.service.correct(call.who, call.given["id"], given.sql, note=given.note))


async def databases(call: Call) -> BaseModel:
    found = []
    for name in call.service.databases(call.who):
        catalog = (await call.service.resources(call.who, name)).catalog
        about = {
            "name": name,
            "dialect": catalog.dialect,
            "tables": len(catalog.tables),
            "title": catalog.name,
            "examples": call.service.examples(name),
        }
        found.append(bodies.DatabaseBody(**about))
    return bodies.Databases(databases=found)


async def history(call: Call) -> BaseModel:
    given = dict(call.given)
    found = await call.service.history(call.who, given.pop("words"), **given)
    about = ("id", "question", "status", "started", "session", "demonstration")
    return bodies.History(
        questions=[
            bodies.Run(database=name, **{each: getattr(run, each) for each in about}) for run, name in found
        ]
    )


async def schema(call: Call) -> BaseModel:
    return await call.service.schema(call.who, call.given["words"], database=call.given["database"])


async def values(call: Call) -> BaseModel:
    found, unread = await call.service.search_values(
        call.who, call.given["words"], database=call.given["database"], limit=call.given["limit"]
    )
    return bodies.Values(values=found, unread=unread)


async def sql(call: Call) -> BaseModel:
    given: RunSql = call.body
    outcome = await call.service.run_sql(call.who, given.sql, database=given.database, rows=given.rows)
    if isinstance(outcome, QueryError):
        raise Refused(outcome.describe(), 422, outcome.kind.value, hint=f"Said by: {outcome.by}.")
    from quorum.tools.results.values import plain_rows

    plain, types = plain_rows(outcome.table), [str(each.type) for each in outcome.table.schema]
    return Rows(
        columns=outcome.columns,
        types=types,
        rows=plain,
        shown=[list(row) for row in shown_rows(outcome.columns, plain, types, 300)],
        row_count=outcome.row_count,
        truncated=str(outcome.truncated or ""),
        seconds=round(outcome.seconds, 4),
        sql=outcome.sql,
    )


async def health(call: Call) -> BaseModel:
    return bodies.Health(status="ok", running=call.service.running)


async def question_body(found: Question) -> QuestionBody:
    """Return a question for clients, with its answer if there is one."""
    at = f"/v1/questions/{found.id}"
    made, error = None, found.error
    if found.status not in ("running", "waiting", "cancelled", "failed", "interrupted"):
        made = bodies.answer_body(await found.answer(), at)
    return QuestionBody(
        id=found.id,
        question=found.text,
        database=found.database,
        session=found.session,
        status=found.status,
        waiting=bodies.waiting_body(found.waiting) if found.waiting else None,
        error=Exception.__str__(error) if error else "",
        hint=error.hint if error else "",
        answer=made,
        links=bodies.Links(self=at, events=f"{at}/events", rows=f"{at}/rows", trace=f"{at}/trace"),
    )


def taught_body(taught: Taught) -> TaughtBody:
    """Return what was kept, for clients."""
    return TaughtBody(
        id=taught.pair.id,
        question=taught.pair.question,
        credit=taught.pair.credit,
        replaced=taught.replaced,
        warning=taught.warning,
        dates=list(taught.dates),
        row_count=taught.result.row_count if taught.result else None,
    )


async def stream(found: Question, after: int) -> AsyncIterator[bytes]:
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
            yield _sent({**about, "text": step.gist, "live": step.live}, event["kind"], number)
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


def _csv(table: pa.Table) -> bytes:
    from quorum.tools.results.files import csv_lines

    return "".join(csv_lines(table)).encode()


def _parquet(table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _arrow(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    return sink.getvalue()


def _json(table: pa.Table) -> bytes:
    from quorum.tools.results.values import plain_rows

    columns, types, plain = table.column_names, [str(each.type) for each in table.schema], plain_rows(table)
    about = {
        "columns": columns,
        "types": types,
        "rows": plain,
        "shown": shown_rows(columns, plain, types, 300),
    }
    return json.dumps(about, ensure_ascii=False).encode()


FORMATS: dict[str, tuple[str, Callable[[pa.Table], bytes]]] = {
    "json": ("application/json", _json),
    "csv": ("text/csv", _csv),
    "parquet": ("application/vnd.apache.parquet", _parquet),
    "arrow": ("application/vnd.apache.arrow.file", _arrow),
}


_DATABASE = Parameter("database", "its name; may be left out where there is only one", longest=40)
_READING = Parameter("reading", "number of another reading, from 1", 0, 10)
_WORDS = Parameter("words", "that are looked for", longest=1000)
_LIMIT = Parameter("limit", "at most", 20, 200)
_ONE = "/v1/questions/{id}"

WAYS: tuple[Way, ...] = (
    Way("GET", "/health", health, "Say that the server is there.", reply=bodies.Health, open=True),
    Way("GET", "/v1/databases", databases, "List the databases that can be asked.", reply=bodies.Databases),
    Way("POST", "/v1/questions", ask, "Begin a question.", body=Ask, reply=QuestionBody, status=202),
    Way(
        "GET",
        _ONE,
        question,
        "Show a question, how far it is, and its answer.",
        reply=QuestionBody,
        parameters=[Parameter("wait", "seconds to wait for its end", 0, 60)],
    ),
    Way(
        "GET",
        f"{_ONE}/events",
        events,
        "Stream its steps as server-sent events; Last-Event-ID goes on behind one.",
        types=["text/event-stream"],
    ),
    Way(
        "POST",
        f"{_ONE}/reply",
        reply,
        "Reply to what it waits for.",
        body=Reply,
        reply=QuestionBody,
        status=202,
    ),
    Way("POST", f"{_ONE}/cancel", cancel, "Stop it.", reply=QuestionBody),
    Way("POST", f"{_ONE}/resume", resume, "Go on with one that was interrupted.", reply=QuestionBody),
    Way("POST", f"{_ONE}/keep", keep, "Keep its answer as verified.", body=Keep, reply=TaughtBody),
    Way("POST", f"{_ONE}/correct", correct, "Keep the right query for it.", body=Correct, reply=TaughtBody),
    Way(
        "GET",
        f"{_ONE}/rows",
        rows,
        "Return all rows of its answer.",
        parameters=[
            Parameter("format", "of the file", "json", choices=tuple(FORMATS)),
            _READING,
            Parameter("candidate", "id of a candidate", longest=20),
        ],
        types=[kind for kind, _ in FORMATS.values()],
    ),
    Way(
        "GET",
        f"{_ONE}/chart",
        chart,
        "Declare a chart of its rows as Vega-Lite, or say why they have none.",
        reply=bodies.ChartBody,
        parameters=[Parameter("kind", "without it the rows' own", choices=("", *MARKS)), _READING],
    ),
    Way("GET", f"{_ONE}/trace", trace, "Show every step as a page.", types=["text/html"]),
    Way(
        "GET",
        "/v1/history",
        history,
        "List your questions, the latest first.",
        reply=bodies.History,
        parameters=[
            _WORDS,
            _DATABASE,
            Parameter("before", "id of a question: only earlier ones", longest=81),
            _LIMIT,
        ],
    ),
    Way(
        "GET",
        "/v1/schema",
        schema,
        "Show tables and columns, and what is odd about their values.",
        reply=bodies.Schema,
        parameters=[_DATABASE, _WORDS],
    ),
    Way(
        "GET",
        "/v1/values",
        values,
        "Find values that words name, by column.",
        reply=bodies.Values,
        parameters=[_DATABASE, _WORDS, _LIMIT],
    ),
    Way("POST", "/v1/sql", sql, "Judge a query and run it, read-only.", body=RunSql, reply=Rows),
)
