"""A BigQuery of the tests' own: the part of its REST API (v2) that Google's client uses, on loopback.

Figures of bytes are made up (``bigquery_sql``); jobs, pages, dry runs, limits, cancelling and errors behave
as documented.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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


class Job:
    """A query that runs in a thread of its own."""

    def __init__(self, engine: Engine, id: str, configuration: dict[str, Any]) -> None:
        self.configuration, self.query = configuration, configuration["query"]
        self.reference = {"projectId": PROJECT, "jobId": id, "location": LOCATION}
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
        timer = threading.Timer(int(self.configuration["jobTimeoutMs"]) / 1000, self.stop, ("Job timed out",))
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
            timer.cancel()
            self.done.set()

    def _run(self) -> None:
        limit = int(self.query.get("maximumBytesBilled") or 0)
        if limit and self.billed > limit:
            message = f"Query exceeded limit for bytes billed: {limit}. {self.billed} or higher required."
            raise ApiError(400, "bytesBilledLimitExceeded", message)
        self.cursor.execute(self.plan.sql)
        self.fields = [field_of(name, kind) for name, kind, *_ in self.cursor.description]
        names = [each["name"].casefold() for each in self.fields]
        if len(set(names)) < len(names):
            raise ApiError(400, "invalidQuery", "Duplicate column names in the result are not supported.")
        self.rows = self.cursor.fetchall()

    def stop(self, why: str) -> None:
        """End it; DuckDB forgets an interrupt that comes before it has begun."""
        self.cancelled = why
        while not self.done.wait(0.02):
            self.cursor.interrupt()

    def resource(self, *, lying: bool = False) -> dict[str, Any]:
        status: dict[str, Any] = {"state": "DONE" if self.done.is_set() else "RUNNING"}
        if self.error:
            status |= {"errorResult": {"reason": self.error.reason, "message": self.error.message}}
        query = {
            "totalBytesProcessed": str(0 if lying else self.plan.size),
            "totalBytesBilled": str(self.billed),
            "totalSlotMs": "1500",
            "statementType": self.plan.kind,
            "referencedTables": [
                {"projectId": PROJECT, "datasetId": dataset, "tableId": table}
                for dataset, table in self.plan.tables
            ],
        }
        return {
            "jobReference": self.reference,
            "configuration": self.configuration,
            "status": status,
            "statistics": {"query": query},
            "user_email": "analyst@example.com",
        }

    def results(self, asked: dict[str, str]) -> dict[str, Any]:
        """A page of the rows, once they are there."""
        self.done.wait()
        if self.error:
            raise self.error
        return {"jobReference": self.reference, "jobComplete": True, **page(self.rows, self.fields, asked)}


class BigqueryServer:
    """A running server; ``engine`` holds its data.

    Attributes:
        rights: What the account may do to tables, of what it is asked about.
        pages: How many pages of rows were asked for.
        expired: Credentials are not accepted any more.
        lost: How many answers to the next inserted jobs are lost after the job has begun.
        lying: Dry runs say that nothing is read.
    """

    def __init__(self) -> None:
        self.engine = Engine()
        self.jobs: dict[str, Job] = {}
        self.rights: list[str] = []
        self.pages = self.lost = 0
        self.expired = self.lying = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._names = 0

    def url(self, dataset: str) -> str:
        endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        return f"bigquery://{PROJECT}/{dataset}?endpoint={endpoint}&anonymous=1"

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
        self._server.server_close()

    def answer(self, method: str, path: list[str], asked: dict[str, str], body: dict[str, Any]) -> Any:
        """One call of the API.

        Raises:
            ApiError: It has no result.
        """
        if self.expired:
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
                return self.jobs[id].resource()
            case ("POST", "jobs", id, "cancel"):
                threading.Thread(target=self.jobs[id].stop, args=("by the user",), daemon=True).start()
                return {"job": self.jobs[id].resource()}
            case ("GET", "queries", id):
                self.pages += 1
                return self.jobs[id].results(asked)
        raise ApiError(501, "notImplemented", f"{method} {'/'.join(path)}")

    def _insert(self, body: dict[str, Any]) -> dict[str, Any]:
        configuration = body["configuration"]
        id = body["jobReference"]["jobId"]
        if id in self.jobs:
            raise ApiError(409, "duplicate", f"Already Exists: Job {PROJECT}:{LOCATION}.{id}")
        job = Job(self.engine, id, configuration)
        if configuration.get("dryRun"):
            job.done.set()
            return job.resource(lying=self.lying)
        self.jobs[id] = job
        threading.Thread(target=job.run, daemon=True).start()
        if self.lost:
            self.lost -= 1
            raise ConnectionAbortedError
        return job.resource()

    def _data(self, dataset: str, table: str, asked: dict[str, str]) -> dict[str, Any]:
        fields = self.engine.resource(dataset, table)["schema"]["fields"]
        name = table.replace('"', '""')
        limit = int(asked.get("maxResults", 1000))
        rows = self.engine.connection.cursor().execute(f'SELECT * FROM "{dataset}"."{name}" LIMIT {limit}')
        return page(rows.fetchall(), fields, {})


def page(rows: list[tuple[Any, ...]], fields: list[dict[str, Any]], asked: dict[str, str]) -> dict[str, Any]:
    """Rows from a token on; each scalar travels as a text."""
    start, count = int(asked.get("pageToken") or 0), int(asked.get("maxResults") or 10_000)
    kept = rows[start : start + count]
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
