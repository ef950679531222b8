"""The routes of the HTTP API, in one table over the service, and the OpenAPI document that is made of it."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

import pyarrow as pa
from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import Message, Send

from quorum import __version__
from quorum.chart import Mark
from quorum.files import TABLES
from quorum.graph.clarification import MAX_REPLY
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.serve import bodies
from quorum.serve.bodies import (
    RUN,
    Ask,
    Body,
    ChartBody,
    DatabaseName,
    ErrorBody,
    Note,
    QuestionBody,
    Rows,
    Sql,
    TaughtBody,
    Words,
)
from quorum.serve.keys import Caller
from quorum.serve.question import Question, Refused
from quorum.serve.service import Service
from quorum.tools.query import QueryError

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

ERRORS = {"4XX": "The request is wrong, or may not be made.", "503": "The server, or what it needs, is busy."}

Limit: TypeAlias = Annotated[int, Field(ge=0, le=200, description="at most")]
ReadingNumber: TypeAlias = Annotated[int, Field(ge=0, le=10, description="number of another reading, from 1")]


@dataclass(frozen=True)
class ApiCall:
    """A request whose arguments have been checked; ``id`` is the question's that the path names."""

    service: Service
    who: Caller
    request: Request
    id: str

    async def question(self) -> Question:
        """Return the question that the path names."""
        return await self.service.question(self.who, self.id)


Handler: TypeAlias = Callable[..., Awaitable[BaseModel | Response]]


@dataclass(frozen=True)
class ApiRoute:
    """A route; the OpenAPI document is made of these. ``open`` ones need no key.

    Attributes:
        takes: The parameters of its query, or of a POST the fields of its body.
        whole: True where the handler takes these as one ``body``.
        gives: The model of its reply; None where that is no JSON.
    """

    method: str
    path: str
    handler: Handler
    takes: type[Body]
    whole: bool
    gives: type[BaseModel] | None
    types: tuple[str, ...]
    status: int
    open: bool


ROUTES: list[ApiRoute] = []
_ONE = "/v1/questions/{id}"


def route(rule: str, *types: str, status: int = 200, open: bool = False) -> Callable[[Handler], Handler]:
    """Add a handler to the table: its ``rule`` is ``GET /health``, its docstring what it does.

    Its arguments are the request's. The model that it returns is the reply; else that is of ``types``.
    """

    def add(handler: Handler) -> Handler:
        (method, _, path), hints = rule.partition(" "), get_type_hints(handler)
        gives = None if hints["return"] is Response else hints["return"]
        about = handler, bodies.arguments(handler), "body" in hints, gives
        ROUTES.append(ApiRoute(method, path, *about, types or ("application/json",), status, open))
        return handler

    return add


@route("GET /health", open=True)
async def health(call: ApiCall) -> bodies.Health:
    """Say that the server is there."""
    wrong = await asyncio.to_thread(call.service.keys.look) if call.service.keys else ""
    keys = "The file of keys is wrong; those that were read before count." if wrong else ""
    return bodies.Health(status="ok", keys=keys, running=call.service.running)


@route("GET /metrics", "text/plain")
async def metrics(call: ApiCall) -> Response:
    """Return figures in Prometheus's text format."""
    text = call.service.monitor.text(call.service.running)
    return Response(text, media_type="text/plain; version=0.0.4")


@route("GET /v1/databases")
async def databases(call: ApiCall) -> bodies.Databases:
    """List the databases that can be asked."""
    found = []
    for name in call.service.databases(call.who):
        about: dict[str, Any] = {"examples": call.service.examples(name)}
        try:
            catalog = (await call.service.resources(call.who, name)).catalog
            about |= {"dialect": catalog.dialect, "tables": len(catalog.tables)}
        except DatabaseUnavailable as error:  # the others can be asked
            about["error"] = call.service.clean(Exception.__str__(error))
        found.append(bodies.DatabaseBody(name=name, **about))
    return bodies.Databases(databases=found, sql=call.who.sql)


@route("POST /v1/questions", status=202)
async def ask(call: ApiCall, body: Ask) -> QuestionBody:
    """Begin a question."""
    given = body.model_dump(exclude_none=True)
    text, id = given.pop("question"), given.pop("id")
    return await question_body(await call.service.ask(call.who, text, run_id=id, **given))


@route(f"GET {_ONE}")
async def question(
    call: ApiCall, wait: Annotated[int, Field(ge=0, le=60, description="seconds to wait for its end")] = 0
) -> QuestionBody:
    """Show a question, how far it is, and its answer."""
    found = await call.question()
    with suppress(TimeoutError):
        async with asyncio.timeout(wait):
            while found.status == "running":
                await found.change()
    return await question_body(found)


@route(f"GET {_ONE}/events", "text/event-stream")
async def events(call: ApiCall) -> Response:
    """Stream its steps as server-sent events; Last-Event-ID goes on behind one."""
    found, monitor = await call.question(), call.service.monitor
    last = call.request.headers.get("last-event-id", "").strip()
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else 0
    if monitor.streams >= MOST_STREAMS:
        raise Refused("Too many streams are open.", 503, "busy", hint="Try again in a moment.")

    async def counted() -> AsyncIterator[bytes]:
        monitor.streams += 1
        try:
            async for text in stream(found, after):
                yield text
        finally:
            monitor.streams -= 1

    return EventStream(counted(), media_type="text/event-stream")


@route(f"POST {_ONE}/reply", status=202)
async def reply(call: ApiCall, reply: Annotated[str, Field(max_length=4 * MAX_REPLY)]) -> QuestionBody:
    """Reply to what it waits for; ``waiting.how`` says what that may be."""
    return await question_body(await call.service.reply(call.who, call.id, reply))


@route(f"POST {_ONE}/cancel")
async def cancel(call: ApiCall) -> QuestionBody:
    """Stop it."""
    return await question_body(await call.service.cancel(call.who, call.id))


@route(f"POST {_ONE}/resume", status=202)
async def resume(call: ApiCall) -> QuestionBody:
    """Go on with it, if an end of the server has interrupted it."""
    return await question_body(await call.service.resume(call.who, call.id))


@route(f"POST {_ONE}/keep")
async def keep(call: ApiCall, note: Note = "") -> TaughtBody:
    """Keep its answer as verified."""
    return await call.service.keep(call.who, call.id, note=note)


@route(f"POST {_ONE}/correct")
async def correct(call: ApiCall, sql: Sql, note: Note = "") -> TaughtBody:
    """Keep the right query for it."""
    return await call.service.keep(call.who, call.id, sql, note=note)


def _arrow(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    return sink.getvalue()


FORMATS: dict[str, tuple[str, Callable[[pa.Table], bytes]]] = {
    "json": ("application/json", lambda table: bodies.rows_body(table).model_dump_json().encode()),
    "csv": ("text/csv", TABLES[".csv"]),
    "parquet": ("application/vnd.apache.parquet", TABLES[".parquet"]),
    "arrow": ("application/vnd.apache.arrow.file", _arrow),
}


@route(f"GET {_ONE}/rows", *(kind for kind, _ in FORMATS.values()))
async def rows(
    call: ApiCall,
    format: Literal["json", "csv", "parquet", "arrow"] = "json",
    reading: ReadingNumber = 0,
    candidate: Annotated[str, Field(max_length=20, description="id of a candidate")] = "",
) -> Response:
    """Return all rows of its answer."""
    table, (kind, write) = await call.service.rows(call.who, call.id, reading, candidate), FORMATS[format]
    about = {"content-disposition": f'attachment; filename="{call.id}.{format}"'}
    return Response(await asyncio.to_thread(write, table), media_type=kind, headers=about)


@route(f"GET {_ONE}/chart")
async def chart(call: ApiCall, kind: Literal["", Mark] = "", reading: ReadingNumber = 0) -> ChartBody:
    """Declare a chart of its rows as Vega-Lite, or say why they have none; without a kind the rows' own."""
    table = await call.service.rows(call.who, call.id, reading)
    return await asyncio.to_thread(bodies.chart_body, table, kind)


@route(f"GET {_ONE}/trace", "text/html")
async def trace(call: ApiCall) -> Response:
    """Show every step as a page."""
    from quorum.page import page_of
    from quorum.report import report_of

    found = await call.question()
    if not found.folder.folder.is_dir():
        raise Refused("It failed before it began.", 404, "not_found")
    html = await asyncio.to_thread(lambda: page_of(report_of(found.folder)))
    html = re.sub(r' href="file://[^"]*"', "", call.service.clean(html))  # of the code
    return HTMLResponse(html, headers={"content-security-policy": TRACE_POLICY})


@route("GET /v1/history")
async def history(
    call: ApiCall, words: Words = "", database: DatabaseName = "", limit: Limit = 20
) -> bodies.History:
    """List your questions, the latest first."""
    found = await call.service.history(call.who, words, database=database, limit=limit)
    return bodies.History(questions=found)


@route("GET /v1/schema")
async def schema(call: ApiCall, database: DatabaseName = "", words: Words = "") -> bodies.Schema:
    """Show tables and columns, and what is odd about their values."""
    return await call.service.schema(call.who, words, database=database)


@route("POST /v1/sql")
async def sql(
    call: ApiCall,
    sql: Sql,
    database: DatabaseName = "",
    rows: Annotated[int, Field(ge=1, le=10_000, description="rows at most")] = 100,
    chart: bool = False,
) -> Rows:
    """Judge a query and run it, read-only."""
    found = await call.service.run_sql(call.who, sql, database=database, rows=rows)
    if isinstance(found, QueryError):
        raise Refused(found.describe(), 422, found.kind.value, hint=f"Said by: {found.by}.")
    about: dict[str, Any] = {"truncated": str(found.truncated or ""), "seconds": round(found.seconds, 4)}
    about["chart"] = await asyncio.to_thread(bodies.chart_body, found.table) if chart else None
    return bodies.rows_body(found.table, sql=found.sql, **about)


@route("GET /v1/spent")
async def spent(call: ApiCall) -> bodies.Spent:
    """Say what you have used this month, and what is left."""
    return await call.service.spent(call.who)


async def question_body(found: Question) -> QuestionBody:
    """Return a question for clients, with its answer if there is one."""
    at, error = f"/v1/questions/{found.id}", found.error
    answered = found.status not in ("running", "waiting", "cancelled", "failed", "interrupted")
    fields: Any = {name: getattr(found, name) for name in ("id", "database", "session", "after", "status")}
    return QuestionBody(
        question=found.text,
        waiting=bodies.waiting_body(found.waiting, found.database) if found.waiting else None,
        error=found.clean(Exception.__str__(error)) if error else "",
        hint=found.clean(error.hint) if error else "",
        answer=bodies.answer_body(await found.answer(), at) if answered else None,
        links={"self": at} | {name: f"{at}/{name}" for name in ("events", "rows", "chart", "trace")},
        **fields,
    )


async def stream(found: Question, after: int) -> AsyncIterator[bytes]:
    """Yield a question's steps as server-sent events, at last ``end`` with its status."""
    async for number, step in found.steps(after, width=300, alive=ALIVE_SECONDS):
        if step is None:
            yield b": alive\n\n"
            continue
        about = {name: getattr(step, name) for name in ("t", "kind", "agent", "candidate", "tone", "live")}
        yield _sent({**about, "text": step.gist}, step.kind, number)
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


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document, version 3.1."""
    kinds: Any = [(route.takes, "validation") for route in ROUTES if route.method == "POST"]
    kinds += [(model, "serialization") for model in [ErrorBody, *(it.gives for it in ROUTES if it.gives)]]
    _, schemas = models_json_schema(kinds, ref_template="#/components/schemas/{model}")
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    keys = {"key": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Quorum", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas["$defs"], "securitySchemes": keys},
    }


def _operation(route: ApiRoute) -> dict[str, Any]:
    content = {kind: {"schema": _schema(route.gives)} if route.gives else {} for kind in route.types}
    fault = {"application/json": {"schema": _schema(ErrorBody)}}
    made: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.handler.__doc__,
        "responses": {
            str(route.status): {"description": "Done.", "content": content},
            **{code: {"description": text, "content": fault} for code, text in ERRORS.items()},
        },
        "parameters": [],
        "security": [] if route.open else [{}, {"key": []}],
    }
    if "{id}" in route.path:
        id = {"type": "string", "pattern": RUN}
        made["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": id}]
    takes = route.takes.model_json_schema()
    if route.method == "GET":
        found = takes["properties"].items()
        made["parameters"] += [{"name": name, "in": "query", "schema": schema} for name, schema in found]
    elif takes["properties"]:
        content = {"application/json": {"schema": _schema(route.takes)}}
        made["requestBody"] = {"required": "required" in takes, "content": content}
    return made


def _schema(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}
