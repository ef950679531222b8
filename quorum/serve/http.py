"""The HTTP API: one table of routes over the service, errors as JSON, and the page."""

from __future__ import annotations

import difflib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quorum.graph.answering import NeedsReply
from quorum.knowledge.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    ModelUnavailable,
    QuorumError,
    in_words,
)
from quorum.serve.bodies import Body, ErrorBody, Fault
from quorum.serve.keys import Caller
from quorum.serve.routes import WAYS, Call, Parameter, Way
from quorum.serve.service import Refused, Service

LARGEST_BODY = 2**20
PAGE = Path(__file__).parent / "page"
SAFE = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_SAFE = [(name.encode(), value.encode()) for name, value in SAFE.items()]
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def make_app(service: Service, *, hosts: frozenset[str] = LOOPBACK) -> ASGIApp:
    """Return the ASGI application.

    Args:
        hosts: Names by which the server may be called; empty for any.
    """
    routes = [Route(way.path, _endpoint(service, way), methods=[way.method]) for way in WAYS]
    PAGE.mkdir(exist_ok=True)
    page = StaticFiles(directory=PAGE, html=True)
    app = Starlette(
        routes=[*routes, Mount("/page", page), Route("/", lambda _: RedirectResponse("/page/"))],
        exception_handlers={HTTPException: _http_error, Exception: _our_error},
    )
    return Guarded(app, hosts)


def _endpoint(service: Service, way: Way) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        try:
            who = Caller()
            body = await _body(request, way.body) if way.method == "POST" else None
            call = Call(service, who, request, body, request.path_params | _parameters(request, way))
            made = await way.handler(call)
        except QuorumError as error:
            return failure(error, service)
        if isinstance(made, Response):
            return made
        return Response(made.model_dump_json(), way.status, media_type="application/json")

    return answered


def _parameters(request: Request, way: Way) -> dict[str, Any]:
    query, known = request.query_params, {each.name for each in way.parameters}
    for name in query:
        if name not in known:
            raise Refused(f"There is no parameter {name!r}.", 422, "unknown", hint=_nearest(name, known))
    return {each.name: _read(each, query.get(each.name)) for each in way.parameters}


def _read(parameter: Parameter, text: str | None) -> str | int:
    name, wrong = parameter.name, ""
    if text is None:
        return parameter.default
    if isinstance(parameter.default, int):
        if text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= parameter.most:
            return int(text)
        wrong = f"{name} must be a whole number from 0 to {parameter.most}."
    elif parameter.choices and text not in parameter.choices:
        wrong = f"{name} must be one of {', '.join(parameter.choices)}."
    elif len(text) > parameter.longest:
        wrong = f"{name} has {len(text):,} characters; {parameter.longest} is the most."
    if wrong:
        raise Refused(wrong, 422, "parameter")
    return text


async def _body(request: Request, kind: type[Body] | None) -> Body | None:
    content = await request.body()
    if kind is None and not content:
        return None
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused("The body must be JSON.", 415, "body", hint="Send content-type: application/json.")
    try:
        given = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Refused(f"The body is no JSON: {error}.", 400, "body") from None
    if kind is None:
        return None
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise Refused(*_wrong_fields(error, kind)) from None


def _wrong_fields(error: ValidationError, kind: type[Body]) -> tuple[str, int, str]:
    lines = []
    for problem in error.errors(include_url=False)[:5]:
        name = ".".join(map(str, problem["loc"]))
        if problem["type"] == "extra_forbidden":
            lines.append(f"There is no field {name[:80]!r}. {_nearest(name, kind.model_fields)}")
        else:
            lines.append(f"{name or 'the body'}: {in_words(problem)}.")
    return " ".join(lines), 422, "fields"


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, [*known], 1)
    return f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known) or 'none'}."


def failure(error: QuorumError, service: Service) -> JSONResponse:
    """Return an error as its response; places on the server are left out."""
    status, kind = 500, type(error).__name__
    if isinstance(error, Refused):
        status, kind = error.status, error.kind
    elif isinstance(error, NeedsReply):
        status, kind = 409, "waiting"
    elif isinstance(error, DatabaseUnavailable | ModelUnavailable):
        status = 503
    elif isinstance(error, ConfigurationError):
        status = 422
    fault = Fault(message=service.clean(Exception.__str__(error)), hint=service.clean(error.hint), kind=kind)
    about = {"retry-after": "5"} if status in (429, 503) else {}
    return JSONResponse(ErrorBody(error=fault).model_dump(), status, headers=about)


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    fault = Fault(message=f"{error.detail}.", kind="http", hint="GET /openapi.json lists what there is.")
    return JSONResponse(ErrorBody(error=fault).model_dump(), error.status_code, headers=error.headers)


async def _our_error(_: Request, error: Exception) -> Response:  # noqa: ARG001 - the log has it
    fault = Fault(message="The server has a fault; its log says more.", kind="fault")
    return JSONResponse(ErrorBody(error=fault).model_dump(), 500)


class Guarded:
    """Checks host, origin and size of each request, and gives each response its safe headers."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, size = dict(scope["headers"]), 0

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                more = [
                    (name.encode(), value.encode())
                    for name, value in SAFE.items()
                    if name.encode() not in there
                ]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        async def received() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > LARGEST_BODY:
                raise HTTPException(413, f"The body is larger than {LARGEST_BODY:,} bytes")
            return message

        host = headers.get(b"host", b"").decode("latin-1")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        origin, wrong = headers.get(b"origin", b"").decode("latin-1"), ""
        if self.hosts and name.strip("[]").lower() not in self.hosts:
            wrong = "The server does not go by this name"
        elif origin and origin.partition("://")[2] != host:
            wrong = "Pages of other origins may not ask"
        if wrong:
            await (await _http_error(Request(scope), HTTPException(403, wrong)))(scope, receive, sent)
            return
        await self.app(scope, received, sent)
