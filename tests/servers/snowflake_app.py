"""A Snowflake of the tests' own: the part of its protocol that its connector uses, on loopback.

Run by ``snowflake_server`` in an environment of its own, because fakesnow wants another sqlglot than Quorum:
``python snowflake_app.py PORT``. ``/control/…`` is for the tests: what was asked, what goes wrong on purpose.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import secrets
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import jwt
import uvicorn
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from snowflake_sql import Answer, Engine, Query, encoded
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

PING = 0.5
"""Seconds after which a query that goes on is said to do so; Snowflake waits 45."""
INLINE, CHUNK = 1_000, 50_000
"""Rows in an answer itself, and in each of its chunks."""
LOGGED = ("LOGIN_NAME", "AUTHENTICATOR", "CLIENT_ENVIRONMENT", "SECONDARY_ROLES")


@dataclass
class Faults:
    """What goes wrong on purpose.

    Attributes:
        token_expired: Session tokens are to be renewed.
        master_expired: Nothing can be renewed: who asks has to log in anew.
        unavailable: How many of the next queries are answered by HTTP 503.
        files: The next answer asks the client for a file.
    """

    token_expired: bool = False
    master_expired: bool = False
    unavailable: int = 0
    files: str = ""


@dataclass
class Session:
    """A login."""

    database: str | None
    schema: str | None
    parameters: dict[str, Any]


@dataclass
class State:
    """Whatever the server knows.

    Attributes:
        secrets: What each user is known by: a password, a token, a public key.
        logins: What was said at each login, secrets left out.
        asked: Texts of all queries, with their parameters.
    """

    engine: Engine = field(default_factory=Engine)
    faults: Faults = field(default_factory=Faults)
    secrets: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    masters: dict[str, str] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    logins: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    telemetry: int = 0
    renewed: int = 0
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(80))


STATE = State()


def said(data: Any, code: str | None = None, message: str | None = None) -> JSONResponse:
    return JSONResponse({"data": data, "code": code, "message": message, "success": code is None})


async def body_of(request: Request) -> dict[str, Any]:
    raw = await request.body()
    if request.headers.get("content-encoding") == "gzip":
        raw = gzip.decompress(raw)
    return json.loads(raw) if raw else {}


def token_of(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix('Snowflake Token="').removesuffix('"')


def refusal(request: Request) -> JSONResponse | None:
    """Why a session is not accepted; None if it is."""
    if token_of(request) not in STATE.sessions:
        return said(None, "390104", "User must login again to access the service.")
    if STATE.faults.token_expired:
        return said(None, "390112", "Your session has expired. Please login again.")
    return None


# Logging in


async def login(request: Request) -> JSONResponse:
    data = (await body_of(request))["data"]
    asked = request.query_params
    STATE.logins.append(
        {name: data.get(name) for name in LOGGED}
        | {"parameters": data.get("SESSION_PARAMETERS") or {}, "asked": dict(asked)}
    )
    if not known(data):
        return said(None, "390100", "Incorrect username or password was specified.")
    parameters = data.get("SESSION_PARAMETERS") or {}
    database, schema = (name(asked.get(each)) for each in ("databaseName", "schemaName"))
    if parameters.get("CLIENT_VALIDATE_DEFAULT_PARAMETERS"):
        for place, what in (((database, None), "database"), ((database, schema), "schema")):
            if database and not STATE.engine.exists(*place):
                return said(None, "390201", f"The requested {what} does not exist or not authorized.")
    STATE.faults.token_expired = STATE.faults.master_expired = False  # who logs in has new tokens
    token = opened(Session(database, schema, parameters))
    told = {"CLIENT_TELEMETRY_ENABLED": parameters.get("CLIENT_TELEMETRY_ENABLED", True), "TIMEZONE": "UTC"}
    info = {"databaseName": database, "schemaName": schema, "warehouseName": asked.get("warehouse")}
    return said(
        {
            **tokens(token),
            "sessionId": len(STATE.logins),
            "serverVersion": "9.9.9",
            "parameters": [{"name": name, "value": value} for name, value in told.items()],
            "sessionInfo": info | {"roleName": asked.get("roleName") or STATE.engine.role},
        }
    )


async def browse(request: Request) -> JSONResponse:
    port = (await body_of(request))["data"]["BROWSER_MODE_REDIRECT_PORT"]
    return said({"ssoUrl": f"http://{request.headers['host']}/sso?port={port}", "proofKey": "proof"})


def name(written: str | None) -> str | None:
    """The name that an identifier means."""
    return written if not written else written[1:-1] if written.startswith('"') else written.upper()


def known(data: dict[str, Any]) -> bool:
    """Whether somebody is who he says he is."""
    way, user = str(data.get("AUTHENTICATOR") or "SNOWFLAKE"), str(data.get("LOGIN_NAME") or "").upper()
    if way == "SNOWFLAKE_JWT":
        key = load_pem_public_key(STATE.secrets[f"{user}:key"].encode())
        claims = jwt.decode(data["TOKEN"], key, algorithms=["RS256"])
        return str(claims["sub"]).upper().endswith(f".{user}")
    if way in ("OAUTH", "PROGRAMMATIC_ACCESS_TOKEN", "EXTERNALBROWSER"):
        return bool(data.get("TOKEN")) and data["TOKEN"] == STATE.secrets.get(way)
    return bool(data.get("PASSWORD")) and data["PASSWORD"] == STATE.secrets.get(user)


def opened(session: Session) -> str:
    token = secrets.token_urlsafe(16)
    STATE.sessions[token] = session
    STATE.masters[f"master-{token}"] = token
    return token


def tokens(token: str) -> dict[str, Any]:
    valid = {"validityInSeconds": 3600, "masterValidityInSeconds": 14400}
    return {"token": token, "masterToken": f"master-{token}", "sessionToken": token} | valid


async def renew(request: Request) -> JSONResponse:
    session = STATE.sessions.get(STATE.masters.get(token_of(request), ""))
    if STATE.faults.master_expired or session is None:
        return said(None, "390114", "Authentication token has expired. The user must authenticate again.")
    STATE.faults.token_expired = False
    STATE.renewed += 1
    return said(tokens(opened(Session(session.database, session.schema, session.parameters))))


async def heartbeat(request: Request) -> JSONResponse:
    return refusal(request) or said(None)


async def leave(request: Request) -> JSONResponse:
    STATE.sessions.pop(token_of(request), None)
    return said(None)


# Queries


async def ask(request: Request) -> Response:
    if refused := refusal(request):
        return refused
    if STATE.faults.unavailable:
        STATE.faults.unavailable -= 1
        return Response(status_code=503)
    session, body = STATE.sessions[token_of(request)], await body_of(request)
    id = request.query_params["requestId"]
    if id not in STATE.queries:  # else the client has not had its answer, and asks again
        query = Query(body["sqlText"], session.parameters | (body.get("parameters") or {}), id)
        STATE.asked.append({"sql": query.sql, "parameters": body.get("parameters") or {}})
        STATE.queries[id] = query
        STATE.threads.submit(STATE.engine.run, query, session.database or "", session.schema or "PUBLIC")
    return await outcome(STATE.queries[id], request.headers["host"])


async def ask_again(request: Request) -> Response:
    query = STATE.queries[request.path_params["id"]]
    return refusal(request) or await outcome(query, request.headers["host"])


async def outcome(query: Query, host: str) -> Response:
    deadline = time.monotonic() + PING
    while not query.done.is_set() and time.monotonic() < deadline:
        await asyncio.sleep(0.002)
    if not query.done.is_set():
        where = {"getResultUrl": f"/queries/{query.id}/result", "queryId": query.id}
        goes_on = "Query execution in progress. Please check query status later."
        return JSONResponse({"data": where, "code": "333334", "message": goes_on, "success": True})
    if query.error is not None:
        told = {"errorCode": query.error.code, "sqlState": query.error.state, "queryId": query.id}
        return said(told, query.error.code, query.error.message)
    assert query.answer is not None
    return said(await asyncio.to_thread(described, query, query.answer, host))


def described(query: Query, answer: Answer, host: str) -> dict[str, Any]:
    rows = answer.table.num_rows
    found: dict[str, Any] = {
        "rowtype": answer.rowtype,
        "total": rows,
        "returned": rows,
        "queryId": query.id,
        "statementTypeId": 4096,
        "parameters": [{"name": "TIMEZONE", "value": "UTC"}],
    }
    if STATE.faults.files:
        path, STATE.faults.files = STATE.faults.files, ""
        return found | {"command": "UPLOAD", "src_locations": [path], "stageInfo": {}, "rowset": []}
    if answer.as_json:
        columns = [column.to_pylist() for column in answer.table.columns]
        return found | {"queryResultFormat": "json", "rowset": list(zip(*columns, strict=True))}
    first = base64.b64encode(encoded(answer, 0, INLINE)).decode() if rows else ""
    found |= {"queryResultFormat": "arrow", "rowsetBase64": first}
    url, sizes = f"http://{host}/chunks/{query.id}", {"uncompressedSize": 1, "compressedSize": 1}
    chunks = [
        {"url": f"{url}/{start}", "rowCount": min(CHUNK, rows - start), **sizes}
        for start in range(INLINE, rows, CHUNK)
    ]
    return found | ({"chunks": chunks} if chunks else {})


async def chunk(request: Request) -> Response:
    answer = STATE.queries[request.path_params["id"]].answer
    assert answer is not None
    start = int(request.path_params["start"])
    return Response(await asyncio.to_thread(encoded, answer, start, CHUNK))


async def abort(request: Request) -> JSONResponse:
    if query := STATE.queries.get((await body_of(request))["requestId"]):  # else the query is not here yet
        STATE.threads.submit(query.stop, "user")
    return said(None)


async def telemetry(request: Request) -> JSONResponse:
    STATE.telemetry += 1
    return said(None)


# For the tests


async def control(request: Request) -> JSONResponse:
    body, what = await body_of(request), request.path_params["what"]
    engine = STATE.engine
    if what == "administer":
        return JSONResponse(await asyncio.to_thread(engine.administer, **body))
    if what == "faults":
        STATE.faults = Faults(**body)
    elif what == "engine":
        engine.denied = set(body.get("denied", []))
        engine.grants = body.get("grants", {})
        engine.role = body.get("role", "READER")
    elif what == "cluster":
        sql = "INSERT OR REPLACE INTO _fs_global.main.described VALUES (?, ?)"
        engine.fakesnow.duck_conn.execute(sql, [body["path"], body["key"]])
    elif what == "close":
        engine.fakesnow.duck_conn.execute("INSERT INTO _fs_global.main.closed VALUES (?)", [body["schema"]])
    elif what == "secrets":
        STATE.secrets |= body
    elif what == "end_sessions":
        STATE.sessions.clear()
    elif what == "stop":
        left = [query for query in list(STATE.queries.values()) if not query.done.is_set()]
        await asyncio.gather(*(asyncio.to_thread(query.stop, "user") for query in left))
    running = [query.sql for query in list(STATE.queries.values()) if not query.done.is_set()]
    told = {"running": running, "logins": STATE.logins, "asked": STATE.asked}
    counts = {"telemetry": STATE.telemetry, "renewed": STATE.renewed, "sessions": len(STATE.sessions)}
    return JSONResponse(told | counts)


app = Starlette(
    routes=[
        Route("/session/v1/login-request", login, methods=["POST"]),
        Route("/session/authenticator-request", browse, methods=["POST"]),
        Route("/session/token-request", renew, methods=["POST"]),
        Route("/session/heartbeat", heartbeat, methods=["POST"]),
        Route("/session", leave, methods=["POST"]),
        Route("/queries/v1/query-request", ask, methods=["POST"]),
        Route("/queries/v1/abort-request", abort, methods=["POST"]),
        Route("/queries/{id}/result", ask_again, methods=["GET"]),
        Route("/chunks/{id}/{start:int}", chunk, methods=["GET"]),
        Route("/telemetry/send", telemetry, methods=["POST"]),
        Route("/control/{what}", control, methods=["POST"]),
    ]
)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
