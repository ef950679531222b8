"""A BigQuery of the tests' own: the part of its REST API (v2) that Google's client uses, on loopback.

Figures of bytes are made up (``bigquery_sql``); jobs, pages, dry runs, limits, cancelling and errors behave
as documented. ``faults`` makes it misbehave.
"""

from __future__ import annotations

import base64
import gzip
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import duckdb

from tests.servers.bigquery_sql import PROJECT, ApiError, Engine, complaint, field_of

LOCATION = "US"
VISITS = """
CREATE TABLE visits (day DATE, page VARCHAR, seconds BIGINT);
INSERT INTO visits SELECT DATE '2024-01-01' + CAST(i % 30 AS INTEGER), 'p' || i % 3, i
    FROM range(100000) AS r(i);
"""
"""A table of 2.4 MB."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Faults:
    """Faults that a test switches on.

    Attributes:
        expired: Credentials are not accepted any more.
        drop_inserts: How many answers to the next inserted jobs are lost after the job has begun.
        lying_dry_run: Dry runs say that nothing is read.
    """

    expired: bool = False
    drop_inserts: int = 0
    lying_dry_run: bool = False


class Job:
    """A query that runs in a thread of its own."""

    def __init__(self, engine: Engine, id: str, configuration: dict[str, Any]) -> None:
        self.engine, self.id, self.configuration = engine, id, configuration
        self.query = configuration["query"]
        self.fields: list[dict[str, Any]] = []
        self.rows: list[tuple[Any, ...]] = []
        self.error: ApiError | None = None
        self.done = threading.Event()
        self.cancelled = ""
        default = (self.query.get("defaultDataset") or {}).get("datasetId", "")
        self.plan = engine.plan(self.query["query"], default)
        self.cursor = engine.connection.cursor()

    @property
    def billed(self) -> int:
        """Bytes billed, in whole MiB."""
        return -(-self.plan.size // 2**20) * 2**20

    def run(self) -> None:
        limit = int(self.configuration.get("jobTimeoutMs") or 0) / 1000
        timer = threading.Timer(limit, self.stop, ("Job timed out",)) if limit else None
        if timer:
            timer.start()
        try:
            self._run()
        except ApiError as error:
            self.error = error
        except duckdb.InterruptException:
            self.error = ApiError(400, "stopped", f"Job execution was cancelled: {self.cancelled}")
        except duckdb.Error as error:
            self.error = complaint(str(error))
        finally:
            if timer:
                timer.cancel()
            self.done.set()

    def _run(self) -> None:
        if not self.plan.sql:
            raise ApiError(403, "accessDenied", f"This server runs no {self.plan.kind}")
        limit = int(self.query.get("maximumBytesBilled") or 0)
        if limit and self.billed > limit:
            message = f"Query exceeded limit for bytes billed: {limit}. {self.billed} or higher required."
            raise ApiError(400, "bytesBilledLimitExceeded", message)
        self.cursor.execute(self.plan.sql)
        self.fields = [field_of(name, kind) for name, kind, *_ in self.cursor.description]
        names = [each["name"].casefold() for each in self.fields]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            message = "Duplicate column names in the result are not supported. Found duplicate(s): "
            raise ApiError(400, "invalidQuery", message + ", ".join(twice))
        self.rows = self.cursor.fetchall()

    def stop(self, why: str) -> None:
        """End it; DuckDB forgets an interrupt that comes before it has begun."""
        self.cancelled = why
        while not self.done.wait(0.02):
            self.cursor.interrupt()

    def resource(self, *, lying: bool = False) -> dict[str, Any]:
        size = 0 if lying else self.plan.size
        status: dict[str, Any] = {"state": "DONE" if self.done.is_set() else "RUNNING"}
        if self.error:
            proto = {"reason": self.error.reason, "message": self.error.message}
            status |= {"errorResult": proto, "errors": [proto]}
        tables = [{"projectId": PROJECT, "datasetId": d, "tableId": t} for d, t in self.plan.tables]
        query = {
            "totalBytesProcessed": str(size),
            "totalBytesBilled": str(0 if lying else self.billed),
            "totalSlotMs": "1500",
            "statementType": self.plan.kind,
            "schema": {"fields": self.fields},
            "referencedTables": tables,
        }
        return {
            "kind": "bigquery#job",
            "id": f"{PROJECT}:{LOCATION}.{self.id}",
            "jobReference": {"projectId": PROJECT, "jobId": self.id, "location": LOCATION},
            "configuration": self.configuration | {"jobType": "QUERY"},
            "status": status,
            "statistics": {"totalBytesProcessed": str(size), "query": query, "creationTime": "0"},
            "user_email": "analyst@example.com",
        }

    def results(self, asked: dict[str, str]) -> dict[str, Any]:
        """A page of the rows."""
        reference = {"jobReference": {"projectId": PROJECT, "jobId": self.id, "location": LOCATION}}
        if not self.done.wait(min(float(asked.get("timeoutMs", 10_000)) / 1000, 10)):
            return reference | {"jobComplete": False}
        if self.error:
            raise self.error
        return reference | {"jobComplete": True, **page(self.rows, self.fields, asked)}


class BigqueryServer:
    """A running server; ``engine`` holds its data."""

    def __init__(self) -> None:
        self.engine, self.faults = Engine(), Faults()
        self.jobs: dict[str, Job] = {}
        self.rights: list[str] = []
        """What the account may do to tables, of what it is asked about."""
        self.pages = 0
        """How many pages of rows were asked for."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._names = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def url(self, dataset: str, more: str = "") -> str:
        return f"bigquery://{PROJECT}/{dataset}?endpoint={self.endpoint}&anonymous=1{more}"

    def new_dataset(self, script: str = "") -> str:
        """The name of a new dataset that a script of DuckDB's has filled."""
        self._names += 1
        name = f"test{self._names}"
        self.engine.execute(script or "SELECT 1", name)
        return name

    def running(self) -> list[Job]:
        return [job for job in self.jobs.values() if not job.done.is_set()]

    def close(self) -> None:
        self._server.shutdown()
        for job in self.running():
            job.stop("the server ends")
        self._server.server_close()

    def answer(self, method: str, path: list[str], asked: dict[str, str], body: dict[str, Any]) -> Any:
        """One call of the API.

        Raises:
            ApiError: It has no result.
        """
        if self.faults.expired:
            raise ApiError(401, "authError", "Request had invalid authentication credentials.")
        match (method, *path):
            case ("GET", "datasets"):
                shown = [name for name in self.engine.datasets() if name not in self.engine.closed]
                return {"datasets": [_dataset(name) for name in shown]}
            case ("GET", "datasets", dataset):
                self.engine.tables(dataset)
                return _dataset(dataset)
            case ("GET", "datasets", dataset, "tables"):
                kinds = self.engine.tables(dataset)
                return {"tables": [_table(dataset, name) | {"type": kind} for name, kind in kinds.items()]}
            case ("GET", "datasets", dataset, "tables", table):
                return _table(dataset, table) | self.engine.resource(dataset, table)
            case ("GET", "datasets", dataset, "tables", table, "data"):
                return self._data(dataset, table, asked)
            case ("POST", "datasets", _, "tables", table) if table.endswith(":testIamPermissions"):
                return {"permissions": self.rights}
            case ("POST", "jobs"):
                return self._insert(body)
            case ("GET", "jobs", id):
                return self._job(id).resource()
            case ("POST", "jobs", id, "cancel"):
                threading.Thread(target=self._job(id).stop, args=("by the user",), daemon=True).start()
                return {"job": self._job(id).resource()}
            case ("GET", "queries", id):
                self.pages += 1
                return self._job(id).results(asked)
        raise ApiError(501, "notImplemented", f"{method} {'/'.join(path)}")

    def _insert(self, body: dict[str, Any]) -> dict[str, Any]:
        configuration = body["configuration"]
        id = (body.get("jobReference") or {}).get("jobId") or str(uuid.uuid4())
        if id in self.jobs:
            raise ApiError(409, "duplicate", f"Already Exists: Job {PROJECT}:{LOCATION}.{id}")
        job = Job(self.engine, id, configuration)
        if configuration.get("dryRun"):
            job.done.set()
            return job.resource(lying=self.faults.lying_dry_run)
        self.jobs[id] = job
        threading.Thread(target=job.run, daemon=True).start()
        if self.faults.drop_inserts:
            self.faults.drop_inserts -= 1
            raise ConnectionAbortedError
        return job.resource()

    def _job(self, id: str) -> Job:
        if id not in self.jobs:
            raise ApiError(404, "notFound", f"Not found: Job {PROJECT}:{id}")
        return self.jobs[id]

    def _data(self, dataset: str, table: str, asked: dict[str, str]) -> dict[str, Any]:
        fields = self.engine.resource(dataset, table)["schema"]["fields"]
        name = table.replace('"', '""')
        limit = int(asked.get("maxResults", 1000))
        rows = self.engine.connection.cursor().execute(f'SELECT * FROM "{dataset}"."{name}" LIMIT {limit}')
        return page(rows.fetchall(), fields, {})


def page(rows: list[tuple[Any, ...]], fields: list[dict[str, Any]], asked: dict[str, str]) -> dict[str, Any]:
    """Rows from a token on; each scalar travels as a text."""
    start = int(asked.get("pageToken") or asked.get("startIndex") or 0)
    count = int(asked.get("maxResults") or 10_000)
    kept = rows[start : start + count] if asked.get("maxResults") != "0" else []
    found: dict[str, Any] = {
        "totalRows": str(len(rows)),
        "schema": {"fields": fields},
        "rows": [{"f": [{"v": cell(v, f)} for v, f in zip(row, fields, strict=True)]} for row in kept],
    }
    if kept and start + len(kept) < len(rows):
        found["pageToken"] = str(start + len(kept))
    return found


def cell(value: Any, known: dict[str, Any]) -> Any:
    """A value as the API writes it."""
    if known["mode"] == "REPEATED":
        return [{"v": cell(item, known | {"mode": "NULLABLE"})} for item in value or ()]
    if value is None:
        return None
    if known["type"] == "RECORD":
        return {"f": [{"v": cell(value[part["name"]], part)} for part in known["fields"]]}
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat()
        return str((value - EPOCH) // timedelta(microseconds=1))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, date) else str(value)


def _dataset(name: str) -> dict[str, Any]:
    return {"id": f"{PROJECT}:{name}", "datasetReference": {"projectId": PROJECT, "datasetId": name}}


def _table(dataset: str, name: str) -> dict[str, Any]:
    reference = {"projectId": PROJECT, "datasetId": dataset, "tableId": name}
    return {"id": f"{PROJECT}:{dataset}.{name}", "tableReference": reference}


def _handler(server: BigqueryServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet, else 40 ms a call

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

        def _answer(self) -> None:
            url = urlsplit(self.path)
            path = [unquote(part) for part in url.path.split("/") if part]
            asked = {name: values[0] for name, values in parse_qs(url.query).items()}
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            raw = gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw
            try:
                body = json.loads(raw) if raw else {}
                path = path[path.index("projects") + 2 :]
                code, found = 200, server.answer(self.command, path, asked, body)
            except ApiError as error:
                proto = {"reason": error.reason, "message": error.message, "domain": "global"}
                code = error.code
                found = {"error": {"code": code, "message": error.message, "errors": [proto]}}
            except ConnectionAbortedError:
                self.close_connection = True
                return
            text = json.dumps(found).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = _answer

    return Handler


@contextmanager
def running_bigquery() -> Iterator[BigqueryServer]:
    """A new server, in threads of this process."""
    server = BigqueryServer()
    try:
        yield server
    finally:
        server.close()
