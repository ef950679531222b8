"""One query at a time on BigQuery: told what it would do before it does it, then a job that can be cancelled.

BigQuery has no session that cannot write. Three locks instead: a dry run, which is free, says of each text
what kind of statement it is, what it would read and what that costs, and only a SELECT over what the URL
names goes on; the job carries the limit on bytes, which the server enforces again; its time is limited there,
too. A job's id is ours, so that a job whose answer was lost is looked up and never paid for twice.
"""

from __future__ import annotations

import asyncio
import uuid
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from quorum.tools.databases.bigquery.errors import client_errors, failure
from quorum.tools.databases.server import CANCEL_SECONDS, Gone, Refusal, ThreadLink, aside
from quorum.tools.databases.texts import tokens
from quorum.tools.databases.worker import Fetched
from quorum.tools.query import Estimate, Limits

if TYPE_CHECKING:
    from google.cloud.bigquery import Client, QueryJob

    from quorum.tools.databases.bigquery.url import Target

CALL_SECONDS: Final = 20.0
"""Time for one call of the API."""
PAGE_ROWS = 5_000
LABELS = {"application": "quorum"}
NAMES = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}
"""SQL's names of types that the API calls otherwise."""
REFUSED = "quorumRefused"
"""Our own reason beside BigQuery's."""


def client_of(target: Target) -> Client:
    """The client for all queries of a connector; its calls may be made from several threads.

    Raises:
        google.auth.exceptions.GoogleAuthError, OSError: There are no credentials, or not such ones.
    """
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # what Google's packages wish for
        import google.auth
        from google.api_core.client_options import ClientOptions
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import bigquery

    scopes = ["https://www.googleapis.com/auth/bigquery", "https://www.googleapis.com/auth/cloud-platform"]
    credentials: Any
    if target.anonymous:
        credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]
    elif target.credentials:
        credentials, _ = google.auth.load_credentials_from_file(  # type: ignore[no-untyped-call]
            target.credentials, scopes=scopes
        )
    else:
        credentials, _ = google.auth.default(scopes=scopes)
    return bigquery.Client(
        project=target.billing_project or target.project,
        credentials=credentials,
        location=target.location or None,
        client_options=ClientOptions(api_endpoint=target.endpoint) if target.endpoint else None,
    )


class BigqueryLink(ThreadLink):
    """A place for one query; nothing is open between two."""

    connect_seconds = 30.0

    def __init__(self, client: Client, target: Target) -> None:
        super().__init__()
        self._client, self._target = client, target
        self._job = ""

    async def fetch(self, sql: str, limits: Limits) -> Fetched:
        return await self.in_thread(self._fetch, sql, limits)

    async def estimate(self, sql: str, limits: Limits) -> Estimate:  # noqa: ARG002
        job = await self.in_thread(self._checked, sql)
        return Estimate(bytes=int(job.total_bytes_processed or 0), billed=True)

    async def start(self, seconds: float) -> None: ...

    async def end(self) -> None:
        self._job = ""

    async def cancel(self) -> None:
        job, self._cut = self._job, True
        if job:
            with suppress(Gone, Refusal, TimeoutError):
                async with asyncio.timeout(2 * CANCEL_SECONDS):
                    await aside(self._cancel, job)

    # In threads

    def user(self) -> str:
        """Return the account that BigQuery sees; this also proves that it may run queries."""
        return str(self._dry_run("SELECT 1").user_email or "")

    def _fetch(self, sql: str, limits: Limits) -> Fetched:
        from google.cloud.bigquery._pandas_helpers import bq_to_arrow_schema

        from quorum.tools.databases.arrow import capped_table

        planned = self._checked(sql)
        expected = int(planned.total_bytes_processed or 0)
        if limits.scan is not None and expected > limits.scan:
            raise Refusal(
                "bytesBilledLimitExceeded",
                f"The query would read {expected:,} bytes; {limits.scan:,} are allowed. LIMIT does not "
                "lessen what is read: name fewer columns, or filter by the partition column.",
            )
        if self._cut:
            raise Gone("it was closed")
        job = self._inserted(sql, limits)
        try:
            found = job.result(
                page_size=PAGE_ROWS,
                max_results=limits.rows + 1,
                timeout=limits.seconds + CALL_SECONDS,
                job_retry=None,
            )
            schema = list(found.schema)
            batches = found.to_arrow_iterable(bqstorage_client=None)
            arrow = bq_to_arrow_schema(schema)  # type: ignore[no-untyped-call]  # there may be no page
            table, truncated = capped_table(batches, arrow, limits.rows, limits.bytes)
        except client_errors() as error:
            raise failure(error) from None
        scanned = 0 if job.cache_hit else int(job.total_bytes_billed or job.total_bytes_processed or 0)
        slots = None if job.slot_millis is None else int(job.slot_millis) / 1000
        return Fetched(table, truncated, tuple(map(type_name, schema)), scanned, slots)

    def _checked(self, sql: str) -> QueryJob:
        """The dry run of a text that may run.

        Raises:
            Gone, Refusal: BigQuery is out of reach; it, or we, say no.
        """
        named = (token.text.upper() for token in tokens(sql, "bigquery") if token.kind in ("word", "name"))
        if any("INFORMATION_SCHEMA" in name for name in named):
            raise Refusal(REFUSED, "INFORMATION_SCHEMA is not read by queries.")
        job = self._dry_run(sql)
        if job.statement_type != "SELECT":
            raise Refusal(REFUSED, f"Only queries are run; this is {job.statement_type or 'no statement'}.")
        for table in job.referenced_tables:
            # what a view reads is among them: only what the text itself names was asked for
            if table.dataset_id in sql and not self._target.allows(table.project, table.dataset_id):
                where = f"{table.project}.{table.dataset_id}"
                raise Refusal(REFUSED, f"{where} is not among what may be read: {self._target.place}.")
        return job

    def _dry_run(self, sql: str) -> QueryJob:
        from google.cloud.bigquery import QueryJobConfig

        try:
            config = QueryJobConfig(dry_run=True, use_query_cache=False, **self._usual())
            return self._client.query(sql, job_config=config, timeout=CALL_SECONDS, job_retry=None)
        except client_errors() as error:
            raise failure(error) from None

    def _inserted(self, sql: str, limits: Limits) -> QueryJob:
        from google.api_core.exceptions import Conflict
        from google.cloud.bigquery import QueryJobConfig

        self._job = f"quorum-{uuid.uuid4()}"
        config = QueryJobConfig(use_query_cache=True, labels=LABELS, **self._usual())
        config.job_timeout_ms = max(1, round(limits.seconds * 1000))
        if limits.scan is not None:
            config.maximum_bytes_billed = limits.scan
        try:
            return self._client.query(
                sql, job_config=config, job_id=self._job, timeout=CALL_SECONDS, job_retry=None
            )
        except Conflict:  # the first answer was lost, and the client asked again
            return cast("QueryJob", self._client.get_job(self._job, timeout=CALL_SECONDS))
        except client_errors() as error:
            raise failure(error) from None

    def _usual(self) -> dict[str, Any]:
        """Return the settings of every job."""
        usual: dict[str, Any] = {"use_legacy_sql": False}
        if len(self._target.places) == 1:
            usual["default_dataset"] = ".".join(self._target.places[0])
        return usual

    def _cancel(self, job: str) -> None:
        try:
            self._client.cancel_job(job, timeout=2 * CANCEL_SECONDS)
        except client_errors() as error:
            raise failure(error) from None


def type_name(field: Any) -> str:
    """Return a field's type as SQL writes it: ``ARRAY<STRUCT<key STRING, value INT64>>``."""
    name = NAMES.get(field.field_type, field.field_type)
    if name == "STRUCT":
        name = f"STRUCT<{', '.join(f'{part.name} {type_name(part)}' for part in field.fields)}>"
    return f"ARRAY<{name}>" if field.mode == "REPEATED" else name
