"""The HTTP application: keys, sizes, errors as JSON and safe headers around the routes, and the page."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import quorum.serve.completions  # noqa: F401 - adds its routes
from quorum.knowledge.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    MachineFailed,
    ModelUnavailable,
    QuorumError,
)
from quorum.serve.bodies import ErrorBody, Fault, wrong
from quorum.serve.keys import Caller
from quorum.serve.mcp import mcp_server
from quorum.serve.question import Refused
from quorum.serve.routes import ROUTES, ApiCall, ApiRoute, document
from quorum.serve.service import Service

LARGEST_BODY = 2**20
PAGE = Path(__file__).parent / "page"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SAFE = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_STATUS: dict[type[QuorumError], int] = {
    DatabaseUnavailable: 503,
    ModelUnavailable: 503,
    MachineFailed: 503,
    ConfigurationError: 422,
}
_HEADERS = {429: {"retry-after": "5"}, 503: {"retry-after": "5"}, 401: {"www-authenticate": "Bearer"}}


def make_app(service: Service, hosts: frozenset[str] = LOOPBACK) -> ASGIApp:
    """Return the ASGI application.

    Args:
        hosts: Names by which the server may be called; empty for any.
    """
    routes = [Route(route.path, _endpoint(service, route), methods=[route.method]) for route in ROUTES]
    assistants, page = Assistants(service), StaticFiles(directory=PAGE, html=True, check_dir=False)
    front = [
        Route("/openapi.json", lambda _: JSONResponse(document())),
        Route("/", lambda _: RedirectResponse("/page/")),
        Mount("/page", page),
        Route("/mcp", assistants),
    ]
    errors: Any = dict.fromkeys((HTTPException, QuorumError, Exception), partial(_failed, service))
    app = Starlette(
        routes=[*routes, *front], exception_handlers=errors, lifespan=lambda _: assistants.manager.run()
    )
    return Guarded(app, service, hosts)


class Assistants:
    """Lets callers at the MCP server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        server = mcp_server(service, lambda context: cast(Request, context.request).scope["caller"])
        self.manager = StreamableHTTPSessionManager(server)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["caller"] = _admitted(self.service, Request(scope))
        await self.manager.handle_request(scope, receive, send)


def _endpoint(service: Service, route: ApiRoute) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        who = Caller() if route.open else _admitted(service, request)
        given = await _given(request, route)
        made = await route.handler(ApiCall(service, who, request, request.path_params.get("id", "")), **given)
        if isinstance(made, Response):
            return made
        return Response(made.model_dump_json(), route.status, media_type="application/json")

    return answered


def _admitted(service: Service, request: Request) -> Caller:
    """Return who makes a request, which counts against the caller's rate."""
    keys = service.keys
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    who = Caller() if keys is None else keys.caller(key.strip()) if scheme.lower() == "bearer" else None
    if who is None:
        hint = "Send `Authorization: Bearer qk_…`; quorum serve --keys FILE --new-key NAME makes one."
        raise Refused("The key is missing or wrong.", 401, "key", hint=hint)
    service.admit(who)
    return who


async def _given(request: Request, route: ApiRoute) -> dict[str, Any]:
    """Return the arguments of a route's handler, of a POST from the body, else from the query."""
    given: Any = dict(request.query_params)
    if route.method == "POST" and given:
        raise Refused(f"{next(iter(given))}: is not known in the query.", 422, "fields", hint="Use the body.")
    if route.method == "POST" and (content := await request.body()):
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # a form of another page could send others
            raise Refused("The body must be JSON.", 415, "body", hint="Send content-type: application/json.")
        try:
            given = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise Refused(f"The body is no JSON: {error}.", 400, "body") from None
    try:
        made = route.takes.model_validate(given)
    except ValidationError as error:
        raise Refused(wrong(error, route.takes), 422, "fields") from None
    return {"body": made} if route.whole else dict(made)


async def _failed(service: Service, _: Request, error: Exception) -> Response:
    """Return an error as its response; places on the server are left out."""
    status, headers = 500, None
    fault = Fault(message="The server has a fault; its log says more.", kind="fault")
    if isinstance(error, HTTPException):
        status, headers = error.status_code, error.headers
        fault = Fault(message=f"{error.detail}.", kind="http", hint="GET /openapi.json lists what there is.")
    elif isinstance(error, QuorumError):
        status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
        kind = type(error).__name__
        if isinstance(error, Refused):
            status, kind = error.status, error.kind
        message = service.clean(Exception.__str__(error))
        fault = Fault(message=message, hint=service.clean(error.hint), kind=kind)
    content = ErrorBody(error=fault).model_dump()
    return JSONResponse(content, status, headers=headers or _HEADERS.get(status))


class Guarded:
    """Checks host, origin and size of each request, and gives each response its safe headers."""

    def __init__(self, app: ASGIApp, service: Service, hosts: frozenset[str]) -> None:
        self.app, self.service, self.hosts = app, service, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, size = Headers(scope=scope), 0

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.service.monitor.count("requests_total", status=message["status"])
                given = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    given.setdefault(name, value)
            await send(message)

        async def received() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > LARGEST_BODY:
                raise HTTPException(413, f"The body is larger than {LARGEST_BODY:,} bytes")
            return message

        host, origin, wrong = headers.get("host", ""), headers.get("origin", ""), ""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if self.hosts and name.strip("[]").lower() not in self.hosts:
            wrong = "The server does not go by this name"
        elif origin and origin.partition("://")[2] != host:
            wrong = "Pages of other origins may not ask"
        if wrong:
            refused = await _failed(self.service, Request(scope), HTTPException(403, wrong))
            await refused(scope, receive, sent)
            return
        await self.app(scope, received, sent)
