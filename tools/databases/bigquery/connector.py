"""BigQuery by Google's own client, which is imported in ``session`` and its neighbours."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.base import Account
from quorum.tools.databases.bigquery.catalog import introspect
from quorum.tools.databases.bigquery.errors import client_errors, failure, query_error
from quorum.tools.databases.bigquery.session import REFUSED, BigqueryLink, client_of
from quorum.tools.databases.bigquery.url import Target
from quorum.tools.databases.introspection import nothing_to_read
from quorum.tools.databases.server import Gone, Refusal, ServerConnector, aside
from quorum.tools.query import ErrorKind, QueryError

if TYPE_CHECKING:
    from google.cloud.bigquery import Client


class BigqueryConnector(ServerConnector[BigqueryLink, Target]):
    """``bigquery://project/dataset``; see ``url.Target`` for what else a URL may name.

    BigQuery has no read-only session: ``open`` proves none. Each text is tried by a dry run first, and only
    what the server itself calls a SELECT runs. That run refuses what reads more than ``Limits.scan``, and so
    does the server.
    """

    dialect = "bigquery"
    scheme = "bigquery"
    urls = Target
    driver = ("google.cloud.bigquery", "google-cloud-bigquery", "A BigQuery dataset")
    links = 8
    estimates = bills = True
    hints = (
        (
            "credentials|authenticate|invalid_grant|token",
            "Log in with `gcloud auth application-default login`, or name a key file with ?credentials=FILE.",
        ),
        ("(?i)not found", "Check the project's and the dataset's name, and ?location=."),
        (
            "bigquery.jobs.create",
            "Whoever asks needs roles/bigquery.jobUser on the project that pays: gcloud projects "
            "add-iam-policy-binding PROJECT --member=user:NAME --role=roles/bigquery.jobUser",
        ),
        (
            "(?i)access denied|permission",
            "The account needs bigquery.jobUser, and bigquery.dataViewer on the data.",
        ),
    )
    reach = "Can this machine reach BigQuery?"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._client: Client | None = None
        self._user = ""

    @property
    def name(self) -> str:
        """The dataset's name where there is one, else the project's."""
        places = self.target.places
        return places[0][1] if len(places) == 1 else self.target.project

    @property
    def client(self) -> Client:
        """The open client.

        Raises:
            DatabaseUnavailable: It is closed.
        """
        self._check_open()
        assert self._client is not None
        return self._client

    async def close(self) -> None:
        await super().close()
        client, self._client = self._client, None
        if client is not None:
            await asyncio.to_thread(client.close)

    catalog = introspect

    async def identity(self) -> tuple[str, ...]:
        return ("endpoint: " + self.target.endpoint, "place: " + self.place, "account: " + self._user)

    async def account(self) -> Account:
        powers = await asyncio.to_thread(self._powers)
        return Account(self._user or "unknown", powers, sealed=False)

    async def connect(self) -> BigqueryLink:
        try:
            async with asyncio.timeout(BigqueryLink.connect_seconds):
                if self._client is None:
                    self._client = await aside(client_of, self.target)
                link = BigqueryLink(self._client, self.target)
                if not self._opened:
                    self._user = await link.in_thread(link.user)
                    for place in self.target.places:
                        await aside(self._look_into, self._client, *place)
        except TimeoutError:
            raise Gone("it does not answer") from None
        except client_errors() as error:
            raise failure(error) from None
        return link

    def _look_into(self, client: Client, project: str, dataset: str) -> None:
        from google.api_core.exceptions import Forbidden, NotFound

        try:
            client.get_dataset(f"{project}.{dataset}")
        except (Forbidden, NotFound) as error:
            raise self.missing_right(client, project, dataset, failure(error)) from None

    def missing_right(
        self, client: Client, project: str, dataset: str, why: Gone | Refusal, tables: int = 0
    ) -> DatabaseUnavailable:
        """Return why a dataset shows nothing: absent, closed, or of ``tables`` that may not be read."""
        try:
            known = [item.dataset_id for item in client.list_datasets(project)]
        except client_errors():  # it may not look
            known = []
        forbidden = isinstance(why, Refusal) and why.state == "accessDenied"
        schemas = dict.fromkeys(known, (True, 0)) | ({dataset: (True, tables)} if tables else {})
        if dataset in known and not tables:
            schemas[dataset] = (False, 0)
        who = self._user or "the account"
        kind = "serviceAccount" if who.endswith(".gserviceaccount.com") else "user"
        grants = {"read": f'GRANT `roles/bigquery.dataViewer` ON SCHEMA {{}} TO "{kind}:{who}";'}
        problem = nothing_to_read(
            self.place, who, (dataset,), schemas, grants, lambda name: f"`{project}.{name}`", hides=forbidden
        )
        assert problem is not None
        return DatabaseUnavailable(str(problem), hint=f"{self.scrubbed(str(why))} {problem.hint}")

    def query_error(self, refusal: Refusal, sql: str) -> QueryError:  # noqa: ARG002
        if refusal.state == REFUSED:
            return QueryError(ErrorKind.PERMISSION, refusal.message)
        return query_error(refusal)

    def _powers(self) -> tuple[str, ...]:
        """Datasets that the account may write to, tried on a table of each; it asks for no other right."""
        found = []
        for project, name in self.target.places:
            first = next(iter(self.client.list_tables(f"{project}.{name}", max_results=1)), None)
            if first is not None:
                wanted = ["bigquery.tables.updateData", "bigquery.tables.delete"]
                try:
                    answer = self.client.test_iam_permissions(first.reference, wanted)
                except client_errors() as error:
                    raise self.unreachable(failure(error)) from None
                if answer.get("permissions"):
                    found.append(f"may write to tables of {name}")
        return tuple(found)
